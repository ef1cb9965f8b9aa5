#!/usr/bin/env bash
# SIGKILL of thp_collapse and pin_cycle at random moments: no process, group, swap area, segment or
# changed knob stays, and khugepaged is where it was.
. "$(dirname "$0")/lib.sh"

kills=${SYSLATENCY_KILLS:-8}
if [ "$(id -u)" -ne 0 ]; then
	skip "SIGKILL at random moments" "not root: nothing on the machine is changed"
	finish
	exit 0
fi

. "$(dirname "$0")/machine.sh"

before=$(state)
bad=0
for i in $(seq "$kills"); do
	case $((i % 3)) in
	0) pin_cycle --backend shm --sizes 1M,4M --time 3 --limit 64M --parts pressure,pageout >/dev/null 2>&1 & ;;
	1) thp_collapse --size 32M --window 0.5 --runs 2 --rows khugepaged,walked,fault,beside-scan --khugepaged-cpus 0 >/dev/null 2>&1 & ;;
	2) thp_collapse --size 32M --window 0.3 --runs 2 --rows collapse-swapped,scan-empty,remote,fork --pages-to-scan 4096,512 >/dev/null 2>&1 & ;;
	esac
	pid=$!
	ours="$ours $pid"
	sleep "$((RANDOM % 2)).$((RANDOM % 10))$((RANDOM % 10))"
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	if ! faults=$(as_before "$before"); then
		bad=$((bad + 1))
		echo "# after kill $i: $faults"
	fi
done
if [ $bad -eq 0 ]; then ok "the machine is as before after each of $kills kills"; else not_ok "the machine is as before ($bad of $kills differ)"; fi
finish
