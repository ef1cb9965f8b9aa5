#!/usr/bin/env bash
# A run ends within 2 s of its time, whatever is stuck: each process of a run is stopped in the window,
# and frozen, so that not even SIGKILL ends it. Then all goes on, and the machine is as before.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/machine.sh"

if [ "$(id -u)" -ne 0 ] || ! syslat check --json - | jq -e '.scopes[] | select(.name == "memcg") | .can' >/dev/null; then
	skip "stuck processes do not hold a run up" "no memory group can be made here"
	finish
	exit 0
fi
renice -n -19 $$ >/dev/null # its turn comes between those of the loads
window_s=1
# Of its time, what a busy machine may add; without a limit a run takes 10 to 60 s more.
late_most_ms=4500
record=$work/run.json
freezer=/sys/fs/cgroup/freezer
ice=
trap '[ -z "$ice" ] || echo THAWED >"$ice/freezer.state"; rm -rf "$work"' EXIT

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

# Sets $child to the child of $1 with the name $2; without a fork, which may take long beside loads.
child_named() {
	local children name
	read -ra children <"/proc/$1/task/$1/children" || true
	for child in "${children[@]}"; do
		if read -r name <"/proc/$child/comm" && [ "$name" = "$2" ]; then
			return 0
		fi
	done 2>/dev/null
	child=
	return 1
} 2>/dev/null

hold() { # how pid
	if [ "$1" = stop ]; then
		kill -STOP "$2"
	else
		ice=$freezer/syslatency-test-$$
		mkdir "$ice" && echo "$2" >"$ice/cgroup.procs" && echo FROZEN >"$ice/freezer.state"
	fi
}

let_go() { # how pid
	if [ "$1" = stop ]; then
		kill -CONT "$2" 2>/dev/null
	else
		echo THAWED >"$ice/freezer.state"
	fi
	return 0
}

put_ice_away() {
	[ -n "$ice" ] || return 0
	for _ in $(seq 200); do
		rmdir "$ice" 2>/dev/null && break
		sleep 0.1
	done
	ice=
}

# try HOW VICTIM: leaves $late_ms, $status, $victim
try() {
	local how=$1 name=$2 begin_ms load
	case $name in
	gem | swap | file-cache | thp) load=$name ;;
	*) load=gem,swap ;;
	esac
	before=$(state)
	rm -f "$record" "$work/samples"
	victim=
	nice -n 19 gem_syslatency -t $window_s --warmup 200ms --interval 5ms --load $load --limit 128M \
		--file-cache-dir /usr --swap zram:256M --samples "$work/samples" --json "$record" >"$work/out" 2>"$work/err" &
	pid=$!
	ours="$ours $pid"
	for _ in $(seq 1200); do # the first samples come with the warm-up of 0.2 s
		if [ -s "$work/samples" ] || ! kill -0 $pid 2>/dev/null; then
			break
		fi
		sleep 0.05
	done
	begin_ms=$(now_ms)
	sleep 0.3
	if child_named $pid "$name"; then
		victim=$child
		hold "$how" "$victim"
	fi
	wait $pid
	status=$?
	late_ms=$(($(now_ms) - begin_ms - window_s * 1000))
}

judge() { # how victim
	local how=$1 name=$2
	if [ -z "$victim" ]; then
		not_ok "$name ($how): was there to be held"
		sed 's/^/# /' "$work/err"
		return
	fi
	check "$name ($how): the run ends in time ($late_ms ms after its window)" test "$late_ms" -lt $late_most_ms
	check "$name ($how): with its record (status $status)" jq -e '.latency.count > 0 and .duration_s < 3' "$record"
	if [ "$name" = syslat-guardian ] || [ "$how" = freeze ]; then
		check "$name ($how): one line says what is not put back" \
			test "$(grep -c 'not everything is put back: .*guardian process [0-9]* ' "$work/err")" -eq 1
		check "$name ($how): and so does the record" \
			jq -e '.counters.not_put_back and (.notes | any(test("not everything is put back: .*guardian process")))' "$record"
		check "$name ($how): the run ends with 1 (status $status)" test "$status" -eq 1
	else
		check "$name ($how): nothing is left to say" sh -c '! grep "not everything" "$1"' sh "$work/err"
	fi
	let_go "$how" "$victim"
	check "$name ($how): the machine is as before" as_before "$before"
	put_ice_away
}

# Beside others the last steps may take longer, and the guardian longer than the run waits for it, which the run
# tells: then once more.
try_again() { # how victim
	local tries=0
	while try "$1" "$2" && tries=$((tries + 1)) && [ $tries -lt 3 ]; do
		if [ "$late_ms" -lt $late_most_ms ] &&
			{ [ "$2" = syslat-guardian ] || [ "$1" = freeze ] ||
				! grep -q 'not everything .* still at it and goes on' "$work/err"; }; then
			break
		fi
		let_go "$1" "$victim"
		put_ice_away
	done
	judge "$1" "$2"
}
for name in syslat-guardian sampler samples gem swap file-cache thp; do
	try_again stop $name
done
if [ -e $freezer/cgroup.procs ] && mkdir "$freezer/syslatency-probe-$$" 2>/dev/null; then
	rmdir "$freezer/syslatency-probe-$$"
	for name in syslat-guardian sampler swap; do
		try_again freeze $name
	done
else
	skip "processes that SIGKILL does not end" "no v1 freezer here"
fi
finish
