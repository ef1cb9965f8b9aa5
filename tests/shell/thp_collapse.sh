#!/usr/bin/env bash
# thp_collapse from the command line: rows, records, the table of the mail, and every kind of bad input.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/machine.sh"

if [ ! -e /sys/kernel/mm/transparent_hugepage/hpage_pmd_size ]; then
	one_line_error "a kernel without THP" 77 'no transparent huge pages' thp_collapse
	finish
	exit 0
fi
expect "help" 0 '^usage: thp_collapse' thp_collapse --help
expect "version" 0 '^thp_collapse \(syslatency\) [0-9]' thp_collapse --version
expect "the rows are named" 0 '^  walked ' thp_collapse --list

# --- the rows of the mail; another program may disturb us, so "invalid" (4) is an answer too ---
before=$(state)
thp_collapse --size 64M --window 0.5 --runs 2 --json "$work/a.json" >"$work/a.out" 2>"$work/a.err"
status=$?
check "it measures" test "$status" -eq 0 -o "$status" -eq 4
check "the record is of our schema" jq -e '.schema == "syslatency/run/1" and .benchmark == "thp_collapse"' "$work/a.json"
if jq -e '.metrics.collapse_2M_p50_ns' "$work/a.json" >/dev/null; then
	check "a call over 64M costs more than one over 2M" jq -e '.metrics.collapse_whole_p50_ns.value > .metrics.collapse_2M_p50_ns.value' "$work/a.json"
	check "both runs are in the record" jq -e '.metrics.collapse_2M_p50_ns.values | length == 2' "$work/a.json"
else
	check "no MADV_COLLAPSE: the row says so" jq -e '.notes | any(test("row collapse: n/a: "))' "$work/a.json"
fi
if [ "$(id -u)" -eq 0 ] && jq -e '.metrics.khugepaged_passes' "$work/a.json" >/dev/null; then
	check "khugepaged passes over huge memory, and the cost of a table follows" jq -e '.metrics as $m
		| ($m.khugepaged_passes.values[0] * 32 * $m.khugepaged_table_ns.values[0]) as $ns
		| $m.khugepaged_passes.value > 0 and $ns > 0.45e9 and $ns < 0.55e9' "$work/a.json"
	check "a table that is walked in full costs more processor time than one that is huge" \
		jq -e '.metrics.khugepaged_table_cpu_ns == null or .metrics.khugepaged_table_cpu_ns.value == null
		or .metrics.walked_table_cpu_ns.value > 3 * .metrics.khugepaged_table_cpu_ns.value' "$work/a.json"
	check "the text says how many tables a hold" grep -qE 'pages_to_scan 65536: [0-9]+ tables a hold' "$work/a.out"
else
	check "without root the row says so" jq -e '[.notes[], .validity.reasons[]] | any(test("n/a"))' "$work/a.json"
fi
check "fixed work beside each row shows the machine's speed, and takes longer than a clock read" jq -e '[.metrics | to_entries[]
	| select(.key | endswith("_reference_p50_ns")) | .value.value] | length >= 1 and min > 100' "$work/a.json"
check "every knob is as it was" as_before "$before"
check "a verdict in words" grep -qE '^(valid|suspect|invalid)$' "$work/a.out"
expect "the table of the mail, two columns" 0 '^ +posted +ours$' thp_collapse --table posted="$work/a.json" ours="$work/a.json"
expect "without names" 0 '^ +as posted +yours$' thp_collapse --table "$work/a.json" "$work/a.json"
thp_collapse --size 16M --window 0.2 --runs 1 --rows collapse --json - >"$work/stdout.json" 2>/dev/null
check "--json - puts only JSON on standard output" jq -e .schema "$work/stdout.json"
SYSLATENCY_RECORD="$work/env.json" thp_collapse --size 16M --window 0.2 --runs 1 --rows collapse --arm x >/dev/null 2>&1
check "SYSLATENCY_RECORD names the record's file" jq -e '.arm == "x"' "$work/env.json"

# --- rows beyond the mail ---
thp_collapse --size 64M --window 0.3 --runs 1 --rows scan,state,fault,neighbours --json "$work/b.json" >"$work/b.out" 2>"$work/b.err"
status=$?
check "every row is measured" test "$status" -eq 0 -o "$status" -eq 4
check "each row has metrics, or a note says why not" jq -e '.metrics as $m | .notes as $n
	| all(("scan_first", "scan_empty", "collapse_small", "collapse_swapped", "collapse_no_table", "remote", "populate", "fault", "fork",
		"beside_idle", "beside_scan", "beside_collapse", "beside_loop") as $row
		| ($m | keys | any(startswith($row + "_"))) or ($n | any(test("row \($row | gsub("_"; "-")): n/a: "))); .)' "$work/b.json"
if jq -e '.counters.collapse_answers["collapse-small"]' "$work/b.json" >/dev/null; then
	check "a table of small pages collapses, where there is none the answer is EINVAL, a short range does nothing" jq -e '.counters.collapse_answers
		| (.["collapse-small"].collapsed > 0) and (.["collapse-no-table"].EINVAL > 0) and (.["collapse-unaligned"]["nothing done"] > 0)' "$work/b.json"
	check "the answers are in the text" grep -qE '^  collapse-no-table +EINVAL [0-9]+' "$work/b.out"
fi
check "a fault of 2M takes longer than one of 4K" jq -e '.metrics["fault_2M_p50_ns"] == null or .metrics["fault_2M_p50_ns"].value > .metrics["fault_4K_p50_ns"].value' "$work/b.json"
check "neighbours: rate and latency, idle and loaded" jq -e '.metrics | .beside_idle_map_done_pct.value > 0 and .beside_idle_fault_same_p50_ns.value > 0
	and (.beside_loop_map_done_pct == null or .beside_loop_map_done_pct.value > 0)' "$work/b.json"
check "every knob is as it was, after all rows" as_before "$before"
if [ "$(id -u)" -eq 0 ]; then
	thp_collapse --size 32M --window 0.3 --runs 1 --rows khugepaged --pages-to-scan 65536,512 --json "$work/sweep.json" >/dev/null 2>&1
	check "a sweep measures each number of pages" jq -e '.settings.pages_to_scan == [65536, 512] and (.metrics.khugepaged_passes.value != null)
		and .metrics.khugepaged_scan512_passes.value != null' "$work/sweep.json"
fi

# --- planted faults are found ---
scan_sleep=/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs
# Has it the machine to itself, and does khugepaged scan without a pause for it? Then its row is measured.
measures() { grep -qF "(pid $1)" /run/syslatency/lock && [ "$(cat $scan_sleep)" = 0 ]; }
# planted "what" PATTERN command...: runs thp_collapse while the command disturbs it.
planted() {
	local what=$1 pattern=$2
	shift 2
	thp_collapse --size 64M --window 3 --runs 1 --rows khugepaged --json "$work/planted.json" >/dev/null 2>&1 &
	pid=$!
	for _ in $(seq 3000); do
		measures $pid 2>/dev/null && break
		sleep 0.1
	done
	sleep 0.5
	"$@" >/dev/null 2>&1
	wait $pid
	status=$?
	check "$what: invalid" test $status -eq 4
	check "$what: told" jq -e --arg pattern "$pattern" '.validity.verdict == "invalid" and (.validity.reasons | any(test($pattern)))' "$work/planted.json"
}
turn_knob() { echo 1234 >/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan; }
restart_khugepaged() {
	echo never >/sys/kernel/mm/transparent_hugepage/enabled
	echo madvise >/sys/kernel/mm/transparent_hugepage/enabled
}
busy() { timeout 4 sh -c 'while :; do :; done'; }
if [ "$(id -u)" -eq 0 ] && jq -e '.metrics.khugepaged_passes' "$work/a.json" >/dev/null; then
	planted "someone turns a knob" 'someone changed .*pages_to_scan' turn_knob
	planted "khugepaged is started anew" 'khugepaged was started anew' restart_khugepaged
	planted "a busy neighbour" 'others used [0-9]+% of a CPU' busy
	check "every knob is as it was, after the faults" as_before "$before"
fi

# --- where khugepaged's process cannot be seen ---
if [ "$(id -u)" -eq 0 ] && jq -e '.metrics.khugepaged_passes' "$work/a.json" >/dev/null && unshare -pf --mount-proc true 2>/dev/null; then
	for window in 0.5 2 8; do # khugepaged is nice: beside others it needs longer
		unshare -pf --mount-proc thp_collapse --size 64M --window $window --runs 1 --rows khugepaged --json "$work/hidden.json" >/dev/null 2>&1
		jq -e '.metrics.khugepaged_passes.value > 0' "$work/hidden.json" >/dev/null && break
	done
	check "its processor time is n/a, its passes are not" jq -e '.metrics.khugepaged_passes.value > 0 and .metrics.khugepaged_table_cpu_ns.value == null' "$work/hidden.json"
	check "and the record says why it is not valid" jq -e '.validity.verdict != "valid" and (.notes | any(test("khugepaged cannot be seen")))' "$work/hidden.json"
	one_line_error "it cannot be moved either" 77 'cannot be seen here' unshare -pf --mount-proc thp_collapse --size 64M --khugepaged-cpus 0
else
	skip "its processor time is n/a, its passes are not" "no pid namespace, or no scan rows here"
fi

# --- interruption ---
thp_collapse --size 64M --window 1 --runs 100 --rows collapse,khugepaged --json "$work/int.json" >/dev/null 2>&1 &
pid=$!
for _ in $(seq 100); do
	sleep 0.1
	[ -e "$work/int.json" ] && break
	[ "$SECONDS" -gt 6 ] && kill -INT $pid 2>/dev/null && break
done
wait $pid
status=$?
if [ -s "$work/int.json" ]; then
	check "SIGINT ends it early and writes the record" jq -e '.interrupted' "$work/int.json"
else
	check "SIGINT before the first row: failed" test "$status" -eq 1
fi
check "and every knob is as it was" as_before "$before"

# --- bad input ---
one_line_error "unknown option" 2 'unknown option --nope' thp_collapse --nope
one_line_error "unknown row" 2 "no row 'nope': one of .*khugepaged" thp_collapse --rows nope
one_line_error "no row" 2 'LIST is empty' thp_collapse --rows ''
one_line_error "a size with rubbish" 2 'size' thp_collapse --size 8Q
one_line_error "too small" 2 'too small' thp_collapse --size 1M
one_line_error "more than there is" 1 'lower it' thp_collapse --size 90T
one_line_error "no window" 2 'window' thp_collapse --window 0
one_line_error "no runs" 2 'runs' thp_collapse --runs 0
one_line_error "pages to scan: rubbish" 2 'no number of pages' thp_collapse --pages-to-scan 1,x
one_line_error "pages to scan: none" 2 'no number of pages' thp_collapse --pages-to-scan 4096,
one_line_error "an absent CPU for khugepaged" 77 'does not exist' thp_collapse --khugepaged-cpus 4000
one_line_error "an operand" 2 'is no option' thp_collapse foo
one_line_error "--table without a record" 2 'give the records' thp_collapse --table
one_line_error "--table of an absent file" 1 'absent' thp_collapse --table "$work/absent.json"
one_line_error "unwritable record" 1 'cannot write' thp_collapse --json "$work/absent/run.json"

# --- a machine without huge pages ---
mkdir -p "$work/root/proc"
one_line_error "a kernel without THP" 77 'no transparent huge pages' env SYSLATENCY_ROOT="$work/root" thp_collapse --size 16M

# --- without privilege ---
if can_be_nobody; then
	program=$(for_nobody thp_collapse)
	for window in 0.2 1 4; do # beside others no huge page may be free, or no turn for us
		"${nobody[@]}" env TMPDIR="$work" "$program" \
			--size 16M --window $window --runs 1 --json "$work/user.json" >"$work/user.out" 2>"$work/user.err"
		jq -e '.metrics.collapse_2M_p50_ns.value > 0' "$work/user.json" >/dev/null && break
	done
	check "an ordinary user measures what needs no privilege" jq -e '.metrics.collapse_2M_p50_ns.value > 0 or (.notes | any(test("collapse: n/a")))' "$work/user.json"
	check "and is told what he misses" jq -e '.notes | any(test("row walked: n/a: .*root"))' "$work/user.json"
else
	skip "an ordinary user measures what needs no privilege" "not root"
fi
finish
