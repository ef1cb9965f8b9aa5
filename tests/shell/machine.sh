# shellcheck shell=bash
# What runs may change on the machine, as text: source it after lib.sh.
# Programs of others may run beside this test: groups and journals count by the pid in their name, and what
# others take away of their own is no fault.
ours=
is_ours() { case " $ours " in *" $1 "*) ;; *) return 1 ;; esac; }

# While a program (or its guardian) holds the machine-wide lock, swap and knobs are as it set them.
await_lock() {
	for _ in $(seq 600); do
		[ ! -e /run/syslatency/lock ] || flock -n /run/syslatency/lock true && return
		sleep 0.1
	done
}

# Everything that a run may change, as text.
state() {
	local path pid
	await_lock
	cat /proc/swaps
	awk '{ print "segment", $2, $4, $7 }' /proc/sysvipc/shm
	find /sys/fs/cgroup -maxdepth 4 -type d -name 'syslatency-*' 2>/dev/null | while read -r path; do
		pid=${path##*/syslatency-}
		! is_ours "${pid%%-*}" || echo "$path"
	done
	for path in /run/syslatency/*.journal; do
		pid=${path##*/}
		! is_ours "${pid%.journal}" || echo "$path"
	done
	grep -r . /sys/kernel/mm/transparent_hugepage 2>/dev/null | grep -vE 'full_scans|pages_collapsed|/stats/' | sort
	for path in $(grep -lx khugepaged /proc/[0-9]*/comm 2>/dev/null); do
		grep -E '^Cpus_allowed_list' "${path%comm}status"
	done
	for path in /sys/block/zram*/disksize /sys/block/zram*/comp_algorithm /proc/sys/vm/swappiness \
		/proc/sys/kernel/sched_rt_runtime_us /proc/sys/kernel/shmmax; do
		[ ! -r "$path" ] || echo "$path $(head -n 1 "$path")"
	done
}

# as_before STATE: is all as it was then? The kernel removes groups and frees memory in its own time.
as_before() {
	local faults
	for _ in $(seq 100); do
		faults=$(diff <(echo "$1") <(state) | grep '^[<>]' | grep -v '^< segment')
		[ -n "$faults" ] || return 0
		sleep 0.1
	done
	echo "$faults"
	return 1
}
