# syslat plan: how many runs a question needs, from pilots with known answers.
# shellcheck shell=bash source=tests/shell/lib.sh
# shellcheck disable=SC2016 # the dollars belong to the commands that are run
source "${TEST_SOURCE_ROOT:?}/tests/shell/lib.sh"
cd "$work" || exit 1

# 40 runs around 100, 300 and again 100; and a pair whose effect (2%) lies below the least one.
awk 'BEGIN { srand(1); for (i = 0; i < 40; i++) print 100 + 10 * rand() }' >base.txt
awk 'BEGIN { srand(2); for (i = 0; i < 40; i++) print 300 + 10 * rand() }' >far.txt
awk 'BEGIN { srand(3); for (i = 0; i < 40; i++) print 100 + 10 * rand() }' >same.txt
number() { grep -o "\"$1\":[0-9.]*" plan.json | head -1 | cut -d: -f2; }
between() { awk -v x="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(x >= a && x <= b) }' || { echo "$1 is not within $2 to $3"; return 1; }; }

expect "text" 0 'far \(40 runs\) against base \(40 runs\)' syslat plan --simulations 200 --run-time 2m base.txt far.txt
check "the time of both arms" grep -qE 'fixed: +[0-9]+ \([0-9]+ min\) runs an arm' "$work/expect.out"
expect "JSON in place of the text" 0 '^\{"schema":"syslatency/plan/1"' syslat plan --simulations 200 --json - base.txt far.txt
syslat plan --simulations 500 --json plan.json base.txt far.txt >/dev/null
# Complete separation: p = 2 / C(2n, n) falls below 1% at n = 5.
check "separated pilots need the fewest runs that can decide" between "$(number fixed_runs)" 5 6
check "the sequential plan stops at its first looks" between "$(number sequential_median_runs)" 5 8
check "at full power" between "$(number sequential_power)" 0.99 1
syslat plan --json plan.json --max-reps 20 --simulations 1000 base.txt same.txt >/dev/null
check "no difference is not found" between "$(number sequential_power)" 0 0.02
check "and no number of runs claimed" grep -q '"fixed_runs":null' plan.json
syslat plan --json plan.json --simulations 500 --effect 50% base.txt >/dev/null
check "a supposed effect on one pilot" between "$(number fixed_runs)" 5 8
syslat plan --json plan.json --simulations 200 --run-time 10 base.txt far.txt >/dev/null
check "seconds are runs x arms x time" test "$(number fixed_s)" = "$(($(number fixed_runs) * 20)).0"
syslat plan --json one.json --simulations 200 --seed 3 base.txt far.txt >/dev/null
syslat plan --json two.json --simulations 200 --seed 3 base.txt far.txt >/dev/null
check "the seed repeats the answer" cmp one.json two.json
syslat run -q --quiet-end --reps 4 -o pilot --arm a='sleep 0.02; echo 1$(date +%N | cut -c1-2)' --arm b='echo 9$(date +%N | cut -c1-2)' >/dev/null
expect "an experiment is a pilot" 0 'b \(4 runs\) against a \(4 runs\)' syslat plan --simulations 200 --against a pilot
expect "records tell the time" 0 'the measured windows alone' syslat plan --simulations 200 pilot
check "the metric of other commands is their value" grep -q 'metric value' "$work/expect.out"

one_line_error "no pilot" 2 'a pilot is wanted' syslat plan
one_line_error "one pilot without an effect" 2 'say --effect' syslat plan base.txt
one_line_error "a file that is not there" 1 'nowhere.txt' syslat plan base.txt nowhere.txt
one_line_error "an unknown reference" 2 'no arm is called "z"' syslat plan --against z base.txt far.txt
printf '1\n2\n3\n' >short.txt
one_line_error "a pilot too short" 2 'needs at least 4' syslat plan base.txt short.txt
printf '1\n-2\n3\n0\n5\n' >zero.txt
one_line_error "ratios of values that are not positive" 2 'above zero' syslat plan --effect 10% zero.txt
one_line_error "alpha out of range" 2 '--alpha: 2 is not between' syslat plan --alpha 2 base.txt far.txt
one_line_error "an effect that is none" 2 "'x' is not a share" syslat plan --effect x base.txt far.txt
one_line_error "JSON that cannot be written" 1 'cannot write /dev/null/x' syslat plan --json /dev/null/x base.txt far.txt
expect "help" 0 'usage: syslat plan' syslat plan --help
finish
