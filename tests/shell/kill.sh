#!/usr/bin/env bash
# SIGKILL of gem_syslatency and of syslat run at random moments: no process, SysV segment, group, swap
# area or changed knob stays.
. "$(dirname "$0")/lib.sh"

kills=${SYSLATENCY_KILLS:-15}
mark=$$-$RANDOM
export KILL_MARK=$mark
if [ "$(id -u)" -ne 0 ]; then
	skip "SIGKILL at random moments" "not root: nothing on the machine is changed"
	finish
	exit 0
fi

. "$(dirname "$0")/machine.sh"

# Our programs that carry our mark in their environment: children, guardians and samplers included.
marked() {
	local pid
	for pid in $(grep -lzx "KILL_MARK=$mark" /proc/[0-9]*/environ 2>/dev/null | grep -oE '[0-9]+'); do
		case "$(readlink "/proc/$pid/exe")" in
		*/gem_syslatency | */syslat) echo "$pid" ;;
		esac
	done
}

before=$(state)
bad=0
survivors=0
for i in $(seq "$kills"); do
	if [ $((i % 2)) -eq 0 ]; then
		variants=(stock mapping mlock)
		gem_syslatency -t 5 --measure thp --pace 2ms --load gem,swap --limit 128M --footprint 32M \
			--variant "${variants[i % 3]}" >/dev/null 2>&1 &
	else
		syslat run --variants stock,mapping --reps 2 -o "$work/kill-$i" -- gem_syslatency -t 2 \
			--measure thp --pace 2ms --load gem,swap --limit 128M --footprint 32M >/dev/null 2>&1 &
	fi
	pid=$!
	sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
	[ $((RANDOM % 4)) -eq 0 ] && sleep 1.2
	ours="$ours $pid $(marked | tr '\n' ' ')"
	kill -KILL $pid
	wait $pid 2>/dev/null
	for _ in $(seq 100); do
		[ -z "$(marked)" ] && break
		sleep 0.1
	done
	left=$(marked)
	if [ -n "$left" ]; then
		survivors=$((survivors + 1))
		echo "# after kill $i these live: $(for p in $left; do tr '\0' ' ' <"/proc/$p/cmdline"; done 2>/dev/null)"
	fi
	if ! faults=$(as_before "$before"); then
		bad=$((bad + 1))
		echo "# after kill $i: $faults"
		syslat check --restore >/dev/null 2>&1
	fi
done
if [ $survivors -eq 0 ]; then ok "no process stays after any of $kills kills"; else not_ok "no process stays ($survivors of $kills)"; fi
if [ $bad -eq 0 ]; then ok "groups, swap, segments and knobs are as before after $kills kills"; else not_ok "the machine is as before ($bad of $kills differ)"; fi
finish
