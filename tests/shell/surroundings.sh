#!/usr/bin/env bash
# What surrounds a program: a tiny stack, nonsense in the environment, a control group file system that
# is mounted read-only. Each works, or is told in one line that says what it is.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] || nobody=() # he is one already
may_widen() { bash -c 'ulimit -s 64; ulimit -s 8192' 2>/dev/null; }
for program in gem_syslatency thp_collapse pin_cycle syslat; do
	for value in ten -1 nan 1e9 "5 "; do
		one_line_error "$program: SYSLATENCY_LOCK_WAIT_S '$value'" 2 "SYSLATENCY_LOCK_WAIT_S: '$value' is no time" \
			env "SYSLATENCY_LOCK_WAIT_S=$value" "$program" --version
	done
	expect "$program: half a second of waiting" 0 'syslat' env SYSLATENCY_LOCK_WAIT_S=0.5 "$program" --version
	# bash sets both limits; only the superuser may raise the hard one again.
	if may_widen; then
		expect "$program: a stack of 64 KiB is widened" 0 'syslat' bash -c 'ulimit -s 64; exec "$0" --version' "$program"
	fi
	one_line_error "$program: or told, where that is not allowed" 77 'ulimit -s 8192' \
		bash -c 'ulimit -s 64; exec "$@"' bash "${nobody[@]}" "$(for_nobody $program)" --version
	expect "$program: a soft limit alone is no matter" 0 'syslat' \
		bash -c 'ulimit -S -s 64; exec "$@"' bash "${nobody[@]}" "$(for_nobody $program)" --version
done
if may_widen; then
	expect "a whole run on such a stack" 0 'verdict' \
		bash -c 'ulimit -s 64; exec gem_syslatency -t 0.2 --warmup 0 --load null'
else
	skip "a whole run on such a stack" "the hard limit cannot be raised here"
fi

expect "a whole run after a small soft limit" 0 'verdict' \
	bash -c 'ulimit -S -s 64; exec gem_syslatency -t 0.2 --warmup 0 --load null'

group=/sys/fs/cgroup
[ ! -d $group/memory ] || group=$group/memory
read_only="mount --bind $group $group && mount -o remount,bind,ro $group"
if [ "$(id -u)" -eq 0 ] && unshare -m sh -c "$read_only" 2>/dev/null; then
	one_line_error "groups mounted read-only: that is the reason, for root too" 77 'mounted read-only' \
		unshare -m sh -c "$read_only && exec gem_syslatency -t 0.2 --warmup 0 --load null --scope memcg"
	check "and nobody is told to be root" sh -c '! grep "run as root" "$1"' sh "$work/expect.err"
else
	skip "groups mounted read-only: that is the reason, for root too" "mounts cannot be made here"
fi
finish
