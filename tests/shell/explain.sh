#!/usr/bin/env bash
# Causes of the worst delays: options, table, record, the same again from the record, and nothing left.
. "$(dirname "$0")/lib.sh"

# --- usage ---
one_line_error "--explain=0" 2 'from 1 to 10' gem_syslatency -t 1 --explain=0
one_line_error "--explain=11" 2 'from 1 to 10' gem_syslatency -t 1 --explain=11
one_line_error "--explain=x" 2 'no count' gem_syslatency -t 1 --explain=x
one_line_error "an unknown level" 2 'off, light' gem_syslatency -t 1 --trace heavy
one_line_error "--break-above 0" 2 'break-above' gem_syslatency -t 1 --break-above 0
one_line_error "no record" 2 'no record is named' syslat explain
one_line_error "two records" 2 'one record' syslat explain a b
one_line_error "a file that is not there" 1 'no-such' syslat explain "$work/no-such.json"
expect "help" 0 'usage: syslat explain' syslat explain --help

# --- without events: counters, one line of what would enable more, and a run like any other ---
gem_syslatency --warmup 0.2s -t 1 --load null --trace off --json "$work/off.json" >/dev/null 2>&1
check "off collects nothing" jq -e '.trace_level == "off" and .causes == null or .causes == []' "$work/off.json"
one_line_error "a record without causes" 1 'has causes' syslat explain "$work/off.json"
if can_be_nobody; then
	program=$(for_nobody gem_syslatency)
	"${nobody[@]}" "$program" --warmup 0.2s -t 1 --load null --explain=3 --json - >"$work/nobody.json" 2>"$work/nobody.err"
	status=$?
	if [ "$status" -eq 77 ]; then
		skip "without root" "$(head -1 "$work/nobody.err")"
	else
		check "without root the run is a run" test "$status" -eq 0 -o "$status" -eq 4
		check "without root there are counters and a note" jq -e '.trace_level == "off" and (.causes | length) == 3
			and .counters.causes.from == "counters"
			and ([.notes[] | select(startswith("causes without tracefs"))] | length) == 1' "$work/nobody.json"
		expect "the causes of counters are printed" 0 'unknown without kernel events|the host stopped' syslat explain "$work/nobody.json"
	fi
else
	skip "without root" "not root, or no setpriv"
fi

# --- with events ---
gem_syslatency --warmup 0.2s -t 1 --load null --explain=4 --perfetto "$work/trace.json" --json "$work/full.json" >"$work/full.out" 2>&1
if [ "$(jq -r .trace_level "$work/full.json" 2>/dev/null)" != full ]; then
	skip "kernel events" "$(jq -r '[.notes[] | select(startswith("causes"))][0]' "$work/full.json" 2>/dev/null)"
	finish
	exit 0
fi
check "four causes, each with its split and sentence" jq -e '(.causes | length) == 4 and ([.causes[] |
	select(.sentence != "" and .split_us.timer >= 0 and .split_us.dispatch >= 0)] | length) == 4' "$work/full.json"
check "the split of a delay is the whole of it" jq -e '[.causes[] |
	((.split_us.timer + .split_us.dispatch + .split_us.return - .late_us) | fabs) < 0.01] | all' "$work/full.json"
check "at least 95% explained, or the sentence says unknown" jq -e '[.causes[] |
	select(.explained_percent < 95 and (.sentence | test("unknown") | not))] | length == 0 or error(tostring)' "$work/full.json"
check "the longest first" jq -e '[.causes[].late_us] | . == (sort | reverse)' "$work/full.json"
check "losses are told" jq -e '.counters.causes | .overrun_events >= 0 and .dropped_events >= 0 and (.missing_events | type) == "array"' "$work/full.json"
check "the shares of the tail sum up" jq -e '[.counters.causes.tail.by_cause[].percent] | add | . > 99 and . < 101' "$work/full.json"
check "the table is printed" grep -q 'dispatch' "$work/full.out"
syslat explain "$work/full.json" >"$work/again.out"
check "syslat explain prints the same" grep -qF "$(jq -r '.causes[0].sentence' "$work/full.json")" "$work/again.out"
check "syslat explain --json" sh -c "syslat explain --json - '$work/full.json' | jq -e '.[0].causes | length == 4'"
check "standard input" sh -c "syslat explain - <'$work/full.json' | grep -q dispatch"
check "what perfetto reads" jq -e '.traceEvents | length > 10' "$work/trace.json"

check "at the default buffer nothing is lost, or it is told" jq -e '.counters.causes |
	.buffer_kib == 2048 and .overrun_events + .commit_overrun_events + .dropped_events == 0' "$work/full.json" ||
	grep -q 'trace events were lost' "$work/full.out"

# --- a buffer too small for what comes between two looks ---
one_line_error "a buffer below a page" 2 'trace-buffer' gem_syslatency -t 1 --trace full --trace-buffer 1K
gem_syslatency --warmup 0.2s -t 1 --load null --trace full --trace-buffer 8K --json "$work/tiny.json" >/dev/null 2>"$work/tiny.err"
check "what was overrun is in the record" jq -e '.counters.causes.overrun_events > 0 and .counters.causes.buffer_kib == 8
	and ([.notes[] | select(test("trace events were lost"))] | length) == 1' "$work/tiny.json"
check "and told in one line" test "$(grep -c 'trace events were lost.*--trace-buffer' "$work/tiny.err")" -eq 1
check "what is not known is called unknown" jq -e '[.causes[] |
	select(.explained_percent < 95 and (.sentence | test("unknown") | not))] | length == 0 or error(tostring)' "$work/tiny.json"

gem_syslatency --warmup 0.2s -t 1 --load null --trace light --json "$work/light.json" >/dev/null 2>&1
check "light has causes too" jq -e '.trace_level == "light" and (.causes | length) > 0' "$work/light.json"
expect "levels are not mixed" 1 'trace level' syslat compare "$work/light.json" "$work/full.json"

# --- a threshold ---
expect "--break-above ends the run and says why" 3 'CPU' gem_syslatency --warmup 0.2s -t 30 --load null --break-above 2us --json "$work/break.json"
check "it ended early, with a note and a cause" jq -e '.duration_s < 20 and (.causes | length) > 0 and .latency.max_us > 2
	and ([.notes[] | select(test("first delay above"))] | length) == 1' "$work/break.json"
expect "a threshold that is not reached" 0 'verdict' gem_syslatency --warmup 0.2s -t 1 --load null --break-above 1000s

# --- a sample of thp is an interval ---
gem_syslatency --warmup 0.2s -t 1 --measure thp --pace 2ms --load null --explain=2 --json "$work/thp.json" >"$work/thp.out" 2>&1
check "on and off the CPU make up the sample" jq -e '[.causes[] |
	((.split_us.on_cpu + .split_us.off_cpu - .late_us) | fabs) < 0.01] | all' "$work/thp.json"

# --- nothing is left; what a program that still runs has made is its own ---
instances() { # also when nobody has tracefs mounted any more
	local at
	at=$(mktemp -d /tmp/syslatency-tracefs.XXXXXX)
	mount -t tracefs tracefs "$at" && ls "$at/instances" && umount "$at"
	rmdir "$at"
}
left_over() {
	local instance
	for instance in $(instances | grep '^syslatency-'); do
		[ -d "/proc/${instance##*-}" ] || echo "$instance"
	done
}
check "no instance is left" test -z "$(left_over)"
gem_syslatency -t 60 --load null --explain >/dev/null 2>&1 &
pid=$!
made() { instances | grep -qx "syslatency-$pid"; }
for _ in $(seq 300); do
	made && break
	sleep 0.1
done
check "a run has an instance of its own" made
kill -KILL $pid
wait $pid 2>/dev/null
for _ in $(seq 100); do
	[ -n "$(left_over)" ] || break
	sleep 0.1
done
check "which does not stay after SIGKILL" test -z "$(left_over)"
finish
