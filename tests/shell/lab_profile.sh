#!/usr/bin/env bash
# A profile of one delay, in virtual time: by the plugin the guest's times stay as they are, each instruction between the
# delay's two instants is counted once, and another run than the record's is refused. On Debian's kernel.
# shellcheck source=tests/shell/lib.sh
. "$TEST_SOURCE_ROOT/tests/shell/lib.sh"
lab=$source_root/scripts/lab

record() { # record CLOCK KEYS-OF-A-DELAY
	jq -n --arg clock "$1" --argjson delay "$2" '{measure: "thp", per_cpu: [{}], environment: {clock: $clock,
		ns_per_instruction: 2}, worst: [{late_us: 10} + $delay]}'
}
record host '{"index": 3}' >"$work/real.json"
record virtual '{}' >"$work/old.json"
record virtual '{"index": 3}' >"$work/unknown.json"
one_line_error "neither a record nor a command" 2 "a record, or a command" "$lab" profile --memory 256M
one_line_error "a delay that is none" 2 "number from 1, not '0'" "$lab" profile --worst 0 -- true
one_line_error "a record that is not there" 2 "there is no record /nowhere" "$lab" profile /nowhere
one_line_error "a record of real time" 2 "are not virtual" "$lab" profile "$work/real.json"
one_line_error "a record without the sample's number" 2 "measure again" "$lab" profile "$work/old.json"
one_line_error "a delay that the record does not have" 2 "has 1 of" "$lab" profile "$work/unknown.json" --worst 2
one_line_error "a record whose run is not kept" 2 "no kept run has" "$lab" profile "$work/unknown.json"

profile() { # profile NAME ARGUMENT... [-- COMMAND...]
	local name=$1
	shift
	mkdir -p "$work/$name"
	(cd "$work/$name" && "$lab" profile "$@") >"$work/$name.out" 2>"$work/$name.err"
}
folded() { awk '{ sum += $NF } END { print sum + 0 }' "$work/$1/delay.folded"; }
counted() { sed -n '2s/ instructions.*//p' "$work/$1.out"; }
succeeded() { # succeeded NAME STATUS
	cat "$work/$1.err"
	[ "$2" -eq 0 ] && grep -q "^folded stacks: $work/$1/delay.folded$" "$work/$1.out"
}

# shellcheck disable=SC2054 # commas of one word
thp=(--memory 256M --clock virtual -- gem_syslatency -t 0.3 --warmup 50ms --measure thp --pace 5ms --backend shm
	--variant mapping --load gem,swap --limit 48M --footprint 8M --swap zram:64M)
# Side by side, for the time that it takes.
profile wakeup --memory 256M -- gem_syslatency -n -t 0.2 --warmup 50ms &
wakeup=$!
profile two --kernel mapping-v7 --memory 256M -- sh -c 'gem_syslatency -n -t 0.1 --warmup 10ms >first; gem_syslatency -n -t 0.1 --warmup 10ms >second' &
two=$!
SYSLATENCY_RECORD=$work/thp.json "$lab" boot "${thp[@]}" >/dev/null 2>"$work/boot.err"
status=$?
if [ "$status" -eq 77 ]; then
	wait "$two" "$wakeup"
	skip "a profile in virtual time" "$(head -1 "$work/boot.err")"
	finish
	exit
fi
profile thp "$work/thp.json"
status=$?

check "thp: profiled from its record alone, and the profiled run gives the same" succeeded thp "$status"
check "thp: the stacks add up to all that was counted" test "$(folded thp)" -gt 100000 -a "$(folded thp)" = "$(counted thp)"
# Besides the delay a clock read, and what faulted: an instruction that faults is counted twice.
check "thp: what was counted is the delay's time" jq -e --argjson n "$(folded thp)" \
	'.worst[0].late_us * 500 | . - 100 < $n and $n < . * 1.001 + 2000' "$work/thp/record.json"
check "thp: the path into reclaim is one stack" grep -qE \
	'^sampling thread;asm_exc_page_fault;.*;try_to_free_mem_cgroup_pages;.*;shrink_node;shrink_lruvec;shrink_folio_list[ ;]' "$work/thp/delay.folded"
check "thp: interrupts are told apart" grep -qE '%.* interrupts$' "$work/thp.out"
jq '.worst[0].index += 1' "$work/thp.json" >"$work/forged.json"
one_line_error "a record of another run than the command's" 1 "gives another record" \
	env SYSLATENCY_RECORD=/dev/null "$lab" profile "$work/forged.json" --out "$work/forged" "${thp[@]}"
wait "$two"
status=$?
if [ "$status" -eq 77 ]; then
	skip "two measurements in one boot are refused" "$(head -1 "$work/two.err")"
else
	check "two measurements in one boot are refused" test "$status" -eq 2
	check "two measurements in one boot: why" grep -q "more than one sampling loop" "$work/two.err"
fi
wait "$wakeup"
check "wakeup: profiled" succeeded wakeup $?
check "wakeup: from the expiry to the clock read, an instruction each 2 ns" \
	test "$(folded wakeup)" = "$(jq '.worst[0].late_us * 1000 / 2 | floor' "$work/wakeup/record.json")"
check "wakeup: idle time within is told" test "$(grep -m1 -c '\[halt\]' "$work/wakeup/delay.folded")" = \
	"$(grep -m1 -c '^[0-9].*the CPU was idle' "$work/wakeup.out")"
check "wakeup: the timer's interrupt woke the sampling thread" grep -qE \
	';asm_sysvec_apic_timer_interrupt;sysvec_apic_timer_interrupt;(.*;)?hrtimer_interrupt;.*;try_to_wake_up[ ;]' "$work/wakeup/delay.folded"
finish
