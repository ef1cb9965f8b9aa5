#!/usr/bin/env bash
# syslat check: one screen, exit 0 whatever it finds, JSON, and what an unfit machine is told.
. "$(dirname "$0")/lib.sh"

expect "a screen for this machine" 0 '^machine +Linux ' syslat check
check "it fits one screen" test "$(wc -l <"$work/expect.out")" -le 50
check "every measure is in it" grep -qE '^measures .*wakeup' "$work/expect.out"
check "nothing on standard error" test ! -s "$work/expect.err"

expect "--json - puts only JSON on standard output" 0 '.' syslat check --json -
cp "$work/expect.out" "$work/check.json"
check "of its schema, one line" sh -c "test \$(wc -l <'$work/check.json') -eq 1 && jq -e '.schema == \"syslatency/check/1\"' '$work/check.json'"
check "with every part" jq -e 'has("machine_key") and has("warnings") and has("environment") and has("left_over")
	and (["measures", "loads", "backends", "scopes", "swap", "sampler"] - keys == [])' "$work/check.json"
check "what cannot be had says why" jq -e '[.measures, .loads, .backends, .scopes, .swap, .sampler, (.causes // [])]
	| flatten | all(.can or ((.why // "") | length > 5))' "$work/check.json"
check "a backend that can be had names its variants and how it pins" \
	jq -e '[.backends[] | select(.can)] | length > 0 and all((.variants | length > 0) and (.pin_methods | length > 0))' "$work/check.json"
check "warnings have a text and a command or null" jq -e '.warnings | all((.text | length > 10) and has("command"))' "$work/check.json"
expect "--json FILE keeps the screen" 0 '^machine' syslat check --json "$work/file.json"
check "and writes the file" jq -e .machine_key "$work/file.json"
check "the machine's key is the same each time" test "$(jq -r .machine_key "$work/file.json")" = "$(jq -r .machine_key "$work/check.json")"

# --- an unfit machine, laid out in a folder ---
unfit=$work/unfit
mkdir -p "$unfit"/proc/sys/kernel "$unfit"/sys/kernel/mm/transparent_hugepage
echo "always madvise [never]" >"$unfit"/sys/kernel/mm/transparent_hugepage/enabled
printf 'MemTotal: 8000000 kB\nMemAvailable: 6000000 kB\nSwapTotal: 0 kB\n' >"$unfit"/proc/meminfo
printf 'Filename Type Size Used Priority\n' >"$unfit"/proc/swaps
printf 'Node 0, zone Normal 9 9 9 9 9 9 9 9 9 1 0\n' >"$unfit"/proc/buddyinfo
echo 950000 >"$unfit"/proc/sys/kernel/sched_rt_runtime_us
echo 1000000 >"$unfit"/proc/sys/kernel/sched_rt_period_us
export SYSLATENCY_ROOT=$unfit
expect "no swap is told, with the command" 0 'there is no swap' syslat check
check "so is THP off" grep -q 'echo madvise' "$work/expect.out"
check "and fragmentation" grep -q 'only 1 free blocks' "$work/expect.out"
check "and throttling" grep -q 'sched_rt_runtime_us=-1' "$work/expect.out"
check "thp cannot be measured" grep -qE '^ +not thp:' "$work/expect.out"
expect "no memory controller: the memcg scope is not there" 0 'not memcg:' syslat check
unset SYSLATENCY_ROOT

# --- without privilege ---
if can_be_nobody; then
	expect "an ordinary user gets his screen too" 0 '^machine' "${nobody[@]}" "$(for_nobody syslat)" check
	check "with what he lacks" grep -qE 'not (fifo|zram|memcg)' "$work/expect.out"
else
	skip "an ordinary user gets his screen too" "not root"
	skip "with what he lacks" "not root"
fi

# --- restore ---
expect "nothing to put back" 0 'nothing was left|put back' syslat check --restore

one_line_error "an operand" 2 'takes no operands' syslat check now
one_line_error "an unknown option" 2 '--nope' syslat check --nope
one_line_error "a file that cannot be written" 1 'cannot write' sh -c 'syslat check --json /nonexistent/x >/dev/null'
one_line_error "standard output that is full" 1 'cannot write' sh -c 'syslat check --json - >/dev/full'
expect "help" 0 '^usage: syslat check' syslat check --help
expect "version" 0 '^syslatency [0-9]' syslat check --version
finish
