#!/usr/bin/env bash
# gem_syslatency from the command line: IGT's interface, ours, and every kind of bad input.
. "$(dirname "$0")/lib.sh"

line='^gem_syslatency: cycles=[0-9]+, latency mean=-?[0-9]+\.[0-9]{3}us max=-?[0-9]+us$'
expect "help" 0 '^usage: gem_syslatency' gem_syslatency -h
expect "version" 0 '^gem_syslatency \(syslatency\) [0-9]' gem_syslatency --version

# --- the drop-in ---
expect "IGT's line" 0 "$line" gem_syslatency -n -t 1
check "only that line on standard output" test "$(wc -l <"$work/expect.out")" -eq 1
expect "-f 0: cycles of a run without gem" 0 '^0$' gem_syslatency -n -t 1 -f 0
expect "-f 1: the mean" 0 '^-?[0-9]+\.[0-9]{3}$' gem_syslatency -n -t 1 -f 1
expect "-f 2: the maximum" 0 '^[0-9]+$' gem_syslatency -n -1 -t 1 -f 2
expect "-m" 0 "$line" gem_syslatency -n -m -t 1
expect "half a second" 0 "$line" gem_syslatency -n -t 0.5
expect "flags in one word" 0 "$line" gem_syslatency -n1t1
expect "-i and -r without i915 are accepted" 0 "$line" gem_syslatency -n -i -r 100 -t 1

# --- records ---
gem_syslatency -n -t 1 --json "$work/run.json" >/dev/null 2>&1
check "a record is JSON of our schema" jq -e '.schema == "syslatency/run/1" and .latency.count > 0
	and .benchmark == "gem_syslatency" and .interrupted == false and (.latency.max_us >= .latency.p99_us)' "$work/run.json"
check "the histogram holds every sample" jq -e '([.histogram.buckets[][1]] | add) == .latency.count' "$work/run.json"
gem_syslatency -n -t 1 --json - >"$work/stdout.json" 2>/dev/null
check "--json - puts only JSON on standard output" jq -e .schema "$work/stdout.json"
SYSLATENCY_RECORD="$work/env.json" gem_syslatency -n -t 1 >/dev/null 2>&1
check "SYSLATENCY_RECORD names the record's file" jq -e .schema "$work/env.json"
gem_syslatency -n -t 1 --interval 1ms --json "$work/fixed.json" >/dev/null 2>&1
check "a fixed schedule has both: observed and corrected" jq -e '.latency_corrected.count >= .latency.count' "$work/fixed.json"
check "IGT's schedule has nothing to correct" jq -e '.latency_corrected == null' "$work/run.json"

# --- interruption: the record is written and says so ---
for signal in INT TERM HUP; do
	gem_syslatency -n -t 30 --json "$work/$signal.json" >/dev/null 2>&1 &
	pid=$!
	sleep 1.5
	kill -"$signal" $pid
	wait $pid
	check "SIG$signal ends the run early and writes the record" jq -e '.interrupted and .latency.count > 0 and .duration_s < 10' "$work/$signal.json"
done

# --- bad input: one line, the right code, nothing measured ---
one_line_error "unknown option" 2 'unknown option -x' gem_syslatency -x
one_line_error "unknown long option" 2 'unknown option --nope' gem_syslatency --nope
one_line_error "-t abc" 2 'not a duration' gem_syslatency -t abc
one_line_error "-t 0" 2 'no length' gem_syslatency -t 0
one_line_error "-t without a value" 2 'needs TIME' gem_syslatency -t
one_line_error "-f 9" 2 'not within 0 to 2' gem_syslatency -f 9
one_line_error "absent CPU" 77 'CPU 4000 does not exist' gem_syslatency -n -t 1 --cpus 4000
one_line_error "half a CPU list" 2 'CPU list' gem_syslatency -n -t 1 --cpus 0-
one_line_error "unknown load" 2 "no load 'nope'" gem_syslatency -t 1 --load nope
one_line_error "empty load" 2 'empty' gem_syslatency -t 1 --load gem,
one_line_error "load with rubbish for a size" 2 'not a size' gem_syslatency -t 1 --load swap=x
one_line_error "unknown variant" 2 'none of baseline' gem_syslatency -t 1 --variant zzz
one_line_error "unknown backend" 2 "no backend 'zzz'" gem_syslatency -t 1 --backend zzz
one_line_error "--limit 1" 2 'at least 32M' gem_syslatency -t 1 --load swap --limit 1
one_line_error "--limit in machine scope" 2 'scope memcg' gem_syslatency -t 1 --load swap --limit 1G --scope machine
one_line_error "footprint above the limit" 2 'does not fit' gem_syslatency -t 1 --load gem --limit 64M --footprint 64M
one_line_error "--pace with wakeup" 2 'for --measure thp' gem_syslatency -t 1 --pace 1ms
one_line_error "--interval with thp" 2 'for --measure wakeup' gem_syslatency -t 1 --measure thp --interval 1ms
one_line_error "unwritable record" 1 'cannot write' gem_syslatency -n -t 1 --json "$work/absent/run.json"
one_line_error "an operand" 2 'is no option' gem_syslatency -n -t 1 foo
one_line_error "too much memory in machine scope" 1 'available' gem_syslatency -t 1 --load swap=90T --scope machine
expect "a full disk is told" 1 'cannot write' gem_syslatency -n -t 1 --json /dev/full
expect "a closed standard output is told" 1 'cannot write' sh -c 'gem_syslatency -n -t 1 >/dev/full'

# --- without privilege it measures what it can and says what ---
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	chmod 777 "$work"
	setpriv --reuid 65534 --regid 65534 --clear-groups env TMPDIR="$work" "$(command -v gem_syslatency)" \
		-n -t 1 --json "$work/user.json" >"$work/user.out" 2>"$work/user.err"
	check "an ordinary user measures under SCHED_OTHER" jq -e '.per_cpu[0].policy == "other" and .latency.count > 0' "$work/user.json"
	check "and the record says so" jq -e '[.notes[], .validity.reasons[]] | any(test("FIFO|SCHED_OTHER"))' "$work/user.json"
else
	skip "an ordinary user measures under SCHED_OTHER" "not root"
fi
finish
