#!/usr/bin/env bash
# The promise of virtual time: the same kernel, programs, command and seed give the same record, to the last digit,
# however busy the host is. On Debian's kernel, which needs no build.
# shellcheck source=tests/shell/lib.sh
. "$TEST_SOURCE_ROOT/tests/shell/lib.sh"
lab=$source_root/scripts/lab

one_line_error "two CPUs are refused" 2 "virtual time has one CPU" "$lab" boot --clock virtual --cpus 2 -- true
one_line_error "a clock that is none" 2 "takes virtual or host, not 'fast'" "$lab" boot --clock fast -- true
one_line_error "a number of boots that is none" 2 "takes a number from 1, not '0'" "$lab" boot --clock virtual -j 0 -- true
one_line_error "a size that is none" 2 "takes a size such as 1G, not 'big'" "$lab" boot --clock virtual --root-files big -- true
one_line_error "a seed that is none" 2 "whole number, not '-1'" "$lab" boot --clock virtual --seed -1 -- true

# Wakeups without load, then huge pages in a group that is reclaimed beside every load.
measure='gem_syslatency -n -t 0.5 --warmup 100ms --json wakeup.json
gem_syslatency -t 0.5 --warmup 100ms --measure thp --pace 5ms --backend drm-dumb --variant mapping --limit 64M --footprint 16M \
	--load gem,swap,thp,file-cache --swap zram:100M --json thp.json
true'
boot() { # boot NAME SEED OPTION...
	local name=$1 seed=$2
	shift 2
	"$lab" boot --clock virtual --memory 512M --root-files 64M --seed "$seed" --out "$work/$name" "$@" -- \
		sh -c "$measure" >"$work/$name.out" 2>"$work/$name.err"
}
first_error() { grep -v '^gem_syslatency: suspect' "$1" | head -1; }

boot first 1 --again &
other=$!
boot seed2 2 --again
status=$?
wait "$other" || status=$?
if [ "$status" -eq 77 ]; then
	skip "three boots give one record" "$(head -1 "$work/first.err")"
	finish
	exit
fi
# The third beside busy loops of our own.
loops=()
for _ in $(seq "$(nproc)"); do
	sh -c 'while :; do :; done' &
	loops+=($!)
done
boot busy 1 --again
kill "${loops[@]}" 2>/dev/null

for record in wakeup thp; do
	check "$record: measured" jq -e '.latency.count > 5 and .environment.clock == "virtual" and
		.environment.ns_per_instruction == 2 and .environment.boot_seed == 1' "$work/first/$record.json"
	check "$record: not called emulated, but what it is" jq -e '(.validity.reasons | tostring | test("emulated") | not) and
		(.notes | tostring | test("no caches, no TLB, no memory bandwidth, no second CPU"))' "$work/first/$record.json"
	check "$record: the same record at every boot, also beside busy loops" cmp "$work/first/$record.json" "$work/busy/$record.json"
	check "$record: another seed is another run" jq -es '.[0].histogram != .[1].histogram and .[0].id != .[1].id' \
		"$work/first/$record.json" "$work/seed2/$record.json"
done
check "the thp run reclaimed and swapped" jq -e '.counters.vmstat.pgscan_anon > 100 and .counters.vmstat.pswpout > 100' \
	"$work/first/thp.json"
# What was measured once is not measured again: the answer is there at once, and the same.
check "a run that is kept is not booted again" boot kept 1
check "and gives the same record" cmp "$work/first/thp.json" "$work/kept/thp.json"
finish
