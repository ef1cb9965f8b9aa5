#!/usr/bin/env bash
# pin_cycle from the command line: tables, records, and every kind of bad input.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/machine.sh"

expect "help" 0 '^usage: pin_cycle' pin_cycle --help
expect "version" 0 '^pin_cycle \(syslatency\) [0-9]' pin_cycle --version

before=$(state)
pin_cycle --backend shm --sizes 2M,8M --rounds 12 --limit 64M --json "$work/a.json" >"$work/a.out" 2>"$work/a.err" &
ours="$ours $!"
wait $!
status=$?
check "it measures" test "$status" -eq 0 -o "$status" -eq 4
check "the record is of our schema" jq -e '.schema == "syslatency/run/1" and .benchmark == "pin_cycle"' "$work/a.json"
check "each way has each phase, or a note says why not" jq -e '.metrics as $m | .notes as $n
	| all(("stock", "mapping", "mlock") as $lane | ("allocate", "populate", "pin", "release") as $phase
		| ($m["cold_\($phase)_\($lane)_2M_page_ns"].count == 12) or ($n | any(test("^\($lane): n/a"))); .)' "$work/a.json"
check "the baseline pins nothing" jq -e '.metrics.cold_pin_baseline_2M_page_ns == null and .metrics.cold_populate_baseline_2M_page_ns.value > 0' "$work/a.json"
check "no phase takes less processor time than nothing" jq -e '[.metrics | to_entries[] | select(.key | test("over") | not) | .value.min] | min >= 0' "$work/a.json"
if jq -e '.metrics.cold_release_mapping_over_stock_2M_page_cpu_ns' "$work/a.json" >/dev/null; then
	check "differences have an interval that holds their median" jq -e '.metrics.cold_release_mapping_over_stock_2M_page_cpu_ns
		| .median_ci[0] <= .value and .value <= .median_ci[1]' "$work/a.json"
	check "the table compares the ways" grep -qE 'mapping against stock' "$work/a.out"
else
	skip "differences have an interval that holds their median" "no way but one works here"
fi
if [ "$(id -u)" -eq 0 ] && jq -e '.metrics.pageout_reclaim_mlock_16M_page_ns' "$work/a.json" >/dev/null; then
	check "reclaim passes over locked pages more quickly than it takes free ones" \
		jq -e '.metrics.pageout_reclaim_mlock_16M_page_cpu_ns.value < .metrics.pageout_reclaim_baseline_16M_page_cpu_ns.value' "$work/a.json"
else
	check "without swap the part is n/a" grep -qE 'pageout: n/a' "$work/a.out"
fi
if jq -e '.metrics.pressure_release_stock_2M_page_ns' "$work/a.json" >/dev/null; then
	check "an eighth of the limit is held under pressure" jq -e '.metrics.pressure_release_stock_8M_page_ns.count > 0' "$work/a.json"
	pin_cycle --backend shm --variant stock --parts pressure --sizes 2M,16M --rounds 1 --limit 64M --json "$work/large.json" >/dev/null 2>&1
	check "more is not, and that is told" jq -e '.metrics.pressure_release_stock_16M_page_ns == null
		and (.notes | any(test("pressure, 16M: n/a: more than 8M")))' "$work/large.json"
else
	skip "an eighth of the limit is held under pressure" "no memory group or swap can be made here"
fi
check "swap, segments and groups are as before" as_before "$before"
pin_cycle --backend shm --variant stock --parts cold --sizes 1M --rounds 2 --json - >"$work/stdout.json" 2>/dev/null
check "--json - puts only JSON on standard output, --variant one way" jq -e '.settings.lanes == ["stock"]' "$work/stdout.json"
expect "--details: mean and p99" 0 'processor time' pin_cycle --backend shm --variants stock,mlock --parts cold --sizes 1M --rounds 2 --details
check "two rounds are too few for an interval" jq -e '.metrics.cold_release_stock_1M_page_ns.median_ci == null' "$work/stdout.json"

pin_cycle --backend shm --parts cold --sizes 4M --time 60 --json "$work/int.json" >/dev/null 2>&1 &
pid=$!
sleep 2
kill -INT $pid
wait $pid
check "SIGINT ends it early and writes the record" jq -e '.interrupted and .duration_s < 30' "$work/int.json"

one_line_error "unknown option" 2 'unknown option --nope' pin_cycle --nope
one_line_error "a size with rubbish" 2 "'x' is no size" pin_cycle --sizes 2M,x
one_line_error "an empty size" 2 "'' is no size" pin_cycle --sizes 2M,
one_line_error "a size too small" 2 'too small' pin_cycle --sizes 4096
one_line_error "a size too large" 1 'lower it' pin_cycle --sizes 90T
one_line_error "a limit too large" 1 'lower it' pin_cycle --limit 90T
one_line_error "a limit too small" 2 'at least 32M' pin_cycle --limit 1M
one_line_error "unknown variant" 2 "'zzz' is none of" pin_cycle --variants zzz
one_line_error "unknown part" 2 "'zzz' is none of" pin_cycle --parts cold,zzz
one_line_error "unknown backend" 2 "no backend 'zzz'" pin_cycle --backend zzz
one_line_error "unknown pin method" 2 'zzz' pin_cycle --pin-method zzz --sizes 1M
one_line_error "no way of holding pages: told with the reason" 77 'no way of holding pages works \(stock: no descriptor is left' bash -c \
	'ulimit -n 24; exec pin_cycle --backend shm --variants stock --pin-method vmsplice --parts cold --sizes 64M --rounds 1'
one_line_error "an operand" 2 'is no option' pin_cycle foo
one_line_error "unwritable record" 1 'cannot write' pin_cycle --json "$work/absent/run.json"
finish
