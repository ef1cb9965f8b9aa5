# syslat run: experiments of small scripts in place of benchmarks.
# shellcheck shell=bash source=tests/shell/lib.sh
# shellcheck disable=SC2016 # the dollars belong to the commands that are run
source "${TEST_SOURCE_ROOT:?}/tests/shell/lib.sh"
cd "$work" || exit 1

good() { grep -c '"status":"ok"' "$1/runs.jsonl"; }
failed() { grep -c '"status":"failed"' "$1/runs.jsonl"; }
lines() { wc -l <"$1"; }
# Every planned run has exactly one good record: ARM NUMBER-OF-BLOCKS...
whole() {
	local directory=$1 blocks=$2 arm block count
	shift 2
	for arm; do
		for ((block = 1; block <= blocks; block++)); do
			count=$(grep '"status":"ok"' "$directory/runs.jsonl" | grep "\"arm\":\"$arm\"" |
				grep -c "\"block\":$block,")
			[ "$count" -eq 1 ] || { echo "$arm block $block: $count records"; return 1; }
		done
	done
}
is() { [ "$1" = "$2" ] || { echo "saw '$1', wanted '$2'"; return 1; }; }
contains() { grep -qE -- "$2" "$1" || { echo "no /$2/ in $1:"; head -c 2000 "$1"; return 1; }; }
ends_soon() { # PID...: gone (or a zombie) within 10 s
	local pid i state
	for pid; do
		for ((i = 0; i < 200; i++)); do
			state=$(sed 's/.*) //; s/ .*//' "/proc/$pid/stat" 2>/dev/null) || state=
			[ -z "$state" ] || [ "$state" = Z ] || { sleep 0.05; continue; }
			break
		done
		[ "$i" -lt 200 ] || { echo "process $pid is still there"; return 1; }
	done
}
wait_for() { local i; for ((i = 0; i < 400; i++)); do [ -s "$1" ] && return 0; sleep 0.025; done; return 1; }

# --- what it makes ---

expect "two commands, three blocks" 0 'results: one \(6 runs; all blocks are done\)' \
	syslat run --reps 3 --seed 5 --unit us -o one --arm a='echo 10' --arm b='echo "x 20.5us"'
check "one good record a run" whole one 3 a b
check "values in the text files" is "$(cat one/a-value.txt one/b-value.txt | tr '\n' ' ')" "10 10 10 20.5 20.5 20.5 "
check "the unit is recorded" contains one/runs.jsonl '"unit":"us"'
check "a line a run when piped" is "$(grep -c '^run [1-6]/6, block' "$work/expect.err")" 6
# A run of 2 s, of which 4 are left after the second: the time left is not counted down twice.
expect "time left" 0 'run 2/4, .*; (3\.[5-9]|4\.|5\.).* left' syslat run --quiet-end --reps 2 -o left --arm a='sleep 2; echo 1' --arm b='sleep 2; echo 1'
check "experiment.json tells seed and end" contains one/experiment.json '"seed": 5'
syslat run --reps 3 --seed 5 -o same --arm a='echo 10' --arm b='echo 1' >/dev/null 2>&1
order() { tr -d ' \n' <"$1/experiment.json" | sed 's/.*"order":\(\[\[.*\]\]\).*/\1/'; }
check "the same seed makes the same order" is "$(order same)" "$(order one)"
ran() { sed 's/.*"arm":"\([^"]*\)".*"block":\([0-9]*\).*/\2\1/' "$1/runs.jsonl" | tr -d '\n'; }
planned() { order "$1" | tr -d '",' | sed 's/^\[\[//; s/\]\]$//; s/\]\[/\n/g' | awk '{ n = split($0, a, ""); for (i = 1; i <= n; i++) printf "%d%s", NR, a[i] }'; }
check "runs are made in the planned order" is "$(ran one)" "$(planned one)"

# shellcheck disable=SC2016 # for the command's own shell
check "a command knows the number of its block" bash -c \
	'syslat run --reps 3 -o block --arm a='"'"'echo $SYSLATENCY_BLOCK'"'"' >/dev/null 2>&1 && jq -es "map([.block, .metrics.value.value]) | sort == [[1,1],[2,2],[3,3]]" block/runs.jsonl'
expect "warm-up runs" 0 'results: warm' syslat run --reps 2 --warmup-runs 1 -o warm --arm a='echo 1' --arm b='echo 2'
check "warm-up is recorded apart" is "$(good warm/warm-up) $(good warm)" "2 4"
expect "one command alone" 0 'results: single' syslat run --reps 2 -o single -- echo 3
check "it is named after its program" is "$(tr '\n' ' ' <single/echo-value.txt)" "3 3 "

cat >bench <<'SCRIPT'
#!/bin/sh
# A benchmark of ours: writes the record where it is told.
variant=none
while [ $# -gt 0 ]; do case $1 in --variant) variant=$2; shift ;; --code) code=$2; shift ;; esac; shift; done
sed "s/\"benchmark\":\"[^\"]*\"/\"benchmark\":\"bench\"/; s/\"variant\":null/\"variant\":\"$variant\"/; s/\"value\":{\"value\":[0-9.]*/\"value\":{\"value\":77/" record.line >"$SYSLATENCY_RECORD"
exit "${code:-0}"
SCRIPT
chmod +x bench
head -1 one/runs.jsonl >record.line
expect "variants of one command" 0 'results: own' syslat run --variants baseline,stock --reps 2 -o own -- ./bench -t 1
check "its own records are taken" is "$(grep -c '"benchmark":"bench"' own/runs.jsonl)" 4
check "the variant reached it" is "$(grep -c '"arm":"stock".*"variant":"stock"' own/runs.jsonl)" 2
expect "an invalid run is a recorded run" 4 'every run is invalid' sh -c \
	'sed "s/\"verdict\":\"valid\"/\"verdict\":\"invalid\"/" record.line >x && mv x record.line && syslat run --reps 2 -o invalid -- ./bench --code 4'
check "and not tried again" is "$(good invalid) $(failed invalid)" "2 0"
expect "code 1 with a record is a failed run" 1 'failed' syslat run --reps 1 -o one-failed -- ./bench --code 1
expect "but not where only the putting back was late" 4 'every run is invalid' sh -c \
	'sed "s/\"counters\":null/\"counters\":{\"not_put_back\":true}/" record.line >x && mv x record.line && syslat run --reps 1 -o late -- ./bench --code 1'
check "its result counts" is "$(good late) $(failed late)" "1 0"
echo '{"schema": "rubbish"' >record.line
expect "a record that cannot be read is a failure" 1 'its record cannot be read' syslat run --reps 1 -o rubbish -- ./bench

# --- failures ---

cat >once <<'SCRIPT'
#!/bin/sh
[ -e "once.$1" ] && { echo 4; exit 0; }
touch "once.$1"; echo "first time fails" >&2; exit 9
SCRIPT
chmod +x once
expect "a failed run is tried again" 0 'failed after .*: exit 9: first time fails; trying once more' \
	syslat run --reps 2 -o again --arm a='./once a' --arm b='echo 1'
check "and is recorded" is "$(good again) $(failed again)" "4 1"
check "with its standard error" contains again/runs.jsonl '"stderr_tail":"first time fails'
printf 'echo "$((n = $(cat n 2>/dev/null || echo 0) + 1))" >n; [ "$(cat n)" -gt 1 ] && [ ! -e mended ] && exit 5; echo 3\n' >flaky
expect "a run that fails twice ends in 1" 1 '1 of 4 runs failed twice.*--resume twice' \
	syslat run --reps 2 --seed 1 -o twice --arm a='sh flaky' --arm b='echo 1'
check "both tries are recorded" is "$(good twice) $(failed twice)" "3 2"
touch mended
expect "resume tries it once more" 0 'results: twice \(4 runs' syslat run --resume twice
check "then all is there" whole twice 2 a b
expect "no number printed" 1 'no number on its standard output' syslat run --reps 1 -o nonumber --arm a='echo none'
expect "a death by signal" 1 'killed by SIGSEGV' syslat run --reps 1 -o segv --arm a='kill -SEGV $$'
expect "a time limit" 1 'took longer than --timeout' syslat run --reps 1 --timeout 200ms -o slow --arm a='sleep 60'
expect "an arm that cannot run here ends it in 77" 77 'arm b cannot run: exit 77: no GPU here' \
	syslat run --reps 3 -o skip --arm b='echo "no GPU here" >&2; exit 77'
expect "an arm whose options are wrong ends it in 2" 2 'arm b cannot run: exit 2: bad option' \
	syslat run --reps 3 -o usage --arm b='echo "bad option" >&2; exit 2'
expect "an arm not found by the shell ends it in 2" 2 'arm b cannot run: exit 127' \
	syslat run --reps 3 -o absent --arm b='no-such-program; exit $?'
expect "huge output is bounded" 0 'results: huge' \
	syslat run --reps 1 -o huge --arm a='yes 1234567 | head -c 30000000; echo 8'
check "its last number counts, its record is small" sh -c '[ "$(cat huge/a-value.txt)" = 8 ] && [ "$(wc -c <huge/runs.jsonl)" -lt 20000 ]'
expect "a child in the background is ended" 0 'results: child' \
	syslat run --reps 1 -o child --arm a='sleep 300 & echo $! >child.pid; echo 8'
check "it is gone" ends_soon "$(cat child.pid)"
check "and told in the record" contains child/runs.jsonl '1 processes of the command were still there'

# --- wrong usage ---

usage() { local what=$1 pattern=$2; shift 2; one_line_error "$what" 2 "$pattern" "$@"; }
usage "nothing to run" 'nothing to run' syslat run
usage "unknown option" 'unknown option --frob' syslat run --frob -- echo 1
usage "zero blocks" '--reps: 0 is not within' syslat run --reps 0 -- echo 1
usage "blocks that are no number" "'x' is not a whole number" syslat run --reps x -- echo 1
usage "an arm name with a slash" 'arm name "a/b" cannot be used' syslat run --arm a/b='echo 1'
usage "an arm name with a blank" 'arm name "a b" cannot be used' syslat run --arm 'a b=echo 1'
usage "an arm name that goes up" 'arm name ".." cannot be used' syslat run --arm ..='echo 1'
usage "an arm without a name" 'no name' syslat run --arm ='echo 1'
usage "an arm without a command" 'no command' syslat run --arm a=
usage "an arm without =" 'not NAME=COMMAND' syslat run --arm a
usage "an arm twice" 'given twice' syslat run --arm a='echo 1' --arm a='echo 2'
usage "a variant twice" 'given twice' syslat run --variants stock,stock -- echo 1
usage "an empty variant" 'empty name' syslat run --variants stock,,mlock -- echo 1
usage "variants of nothing" 'needs the command' syslat run --variants stock
usage "a missing command" 'not found or not executable' syslat run --arm a='no-such-program-1'
usage "a command beside arms" 'beside --arm' syslat run --arm a='echo 1' -- echo 2
usage "an unknown reference" 'no arm is called "z"' syslat run --against z --arm a='echo 1'
usage "a kernel of no arm" 'no arm is called "z"' syslat run --arm-kernel z=6.1 --arm a='echo 1'
usage "one arm cannot be decided" 'at least two' syslat run --until-decided --arm a='echo 1'
usage "two rules" 'two rules' syslat run --until-decided --target-ci 5% --arm a='echo 1' --arm b='echo 1'
usage "too few looks" 'needs 5 to 500' syslat run --until-decided --max-reps 4 --arm a='echo 1' --arm b='echo 1'
usage "reps with a rule" 'give --max-reps' syslat run --until-decided --reps 9 --arm a='echo 1' --arm b='echo 1'
usage "a share that is none" "'x%' is not a share" syslat run --target-ci x% --arm a='echo 1'
usage "alpha out of range" 'not between' syslat run --alpha 2 --arm a='echo 1'
usage "a folder that is taken" 'holds an experiment already' syslat run -o one -- echo 1
usage "resume with a plan" 'give no command' syslat run --resume one --reps 4
one_line_error "resume of nothing" 1 'experiment.json' syslat run --resume nothing-here
one_line_error "a folder that cannot be made" 1 'cannot make /dev/null/x' syslat run -o /dev/null/x -- echo 1
mkdir broken && echo '{"schema": "syslatency/experiment/1"}' >broken/experiment.json
expect "resume of a damaged plan" 2 'broken/experiment.json: "arms" is missing or wrong' syslat run --resume broken
check "nothing is left by wrong usage" sh -c '! ls results 2>/dev/null | grep .'
expect "help" 0 '[Uu]sage: syslat run' syslat run --help
expect "dry run" 0 'sleep 1' syslat run --dry-run --reps 2 --run-time 3 --arm a='sleep 1' --arm b="echo 'x y'"
check "it tells the time" contains "$work/expect.out" '4 runs to make, about 12 s'
check "it makes no folder" test ! -e results

# --- interruption ---

cat >slow_bench <<'SCRIPT'
#!/bin/sh
trap 'echo told >>told; exit 0' INT
echo $$ >slow.pid
i=0; while [ $i -lt "${1:-10}" ]; do sleep 0.05; i=$((i + 1)); done
echo 6
SCRIPT
chmod +x slow_bench
# A script's background children ignore SIGINT unless it is reset: env does.
env --default-signal=INT syslat run --reps 3 -o ctrlc --arm a='./slow_bench 200' --arm b='./slow_bench 200' >ctrlc.out 2>&1 &
pid=$!
wait_for slow.pid
kill -INT $pid
wait $pid
check "Ctrl-C ends in 1" is $? 1
check "it says how to go on" contains ctrlc.out 'interrupted after 0 of 6 runs, all kept; go on with: syslat run --resume ctrlc'
check "the command was told" test -s told
check "the cut run is recorded as such" contains ctrlc/runs.jsonl '"interrupted":true.*"status":"failed"'
check "no process stays" ends_soon "$(cat slow.pid)"
sed -i 's/"\.\/slow_bench", *$/&/; s/"200"/"1"/; s/slow_bench 200/slow_bench 1/' ctrlc/experiment.json
expect "resume goes on" 0 'results: ctrlc \(6 runs' syslat run --resume ctrlc
check "every run is there once" whole ctrlc 3 a b
expect "resume of a complete experiment runs nothing" 0 'results: ctrlc \(6 runs' syslat run --resume ctrlc
check "no record was added" is "$(good ctrlc)" 6

rm -f slow.pid
syslat run --reps 3 -o busy --arm a='./slow_bench 100' >/dev/null 2>&1 &
pid=$!
wait_for slow.pid
kill -STOP $pid # holds the lock, does nothing
expect "a folder in use" 1 'still at work there' env SYSLATENCY_LOCK_WAIT_S=1 syslat run --resume busy
kill -KILL $pid
wait $pid 2>/dev/null
check "after a kill nothing stays" ends_soon "$(cat slow.pid)"

# SIGKILL at random moments, resume each time: in the end every run is there exactly once.
syslat run --reps 0 >/dev/null 2>&1
kills=0
rm -f pids
arm='echo $$ >>pids; sleep 0.0$((($$ % 7) + 1)); echo 2'
syslat run --reps 12 -o killed --arm a="$arm" --arm b="$arm" --arm c="$arm" >/dev/null 2>killed.err &
for ((i = 0; i < 20; i++)); do
	pid=$!
	sleep "0.$(printf %03d $((RANDOM % 250)))"
	kill -KILL $pid 2>/dev/null && kills=$((kills + 1))
	wait $pid 2>/dev/null
	[ -e killed/experiment.json ] || { i=$((i - 1)); rm -rf killed; syslat run --reps 12 -o killed --arm a="$arm" --arm b="$arm" --arm c="$arm" >/dev/null 2>killed.err & continue; }
	syslat run --resume killed >/dev/null 2>>killed.err &
done
wait $!
expect "resumed after $kills kills" 0 'results: killed \(36 runs' syslat run --resume killed
check "every run is there once" whole killed 12 a b c
# shellcheck disable=SC2046
check "no process stays" ends_soon $(cat pids)
check "no file of a run stays" test ! -e killed/current-run.json

cp -r one torn
truncate -s -30 torn/runs.jsonl
expect "a torn last line is told" 0 'last line of runs.jsonl was torn' syslat run --resume torn
check "and its run made again" whole torn 3 a b
check "every line is whole" is "$(grep -c '}$' torn/runs.jsonl)" 6
cp -r one middle
sed -i '2s/.*/{"schema":/' middle/runs.jsonl
expect "a damaged line in the middle is an error" 2 'line 2' syslat run --resume middle

# --- disk full ---

(ulimit -f 6; syslat run --reps 20 -o limit --arm a='echo 1' >limit.out 2>&1)
check "a file size limit ends it in 1" is $? 1
check "with the reason" contains limit.out 'File too large; what was measured is kept'
expect "resume once there is room" 0 'results: limit \(20 runs' syslat run --resume limit
check "nothing is lost or twice" whole limit 20 a
mkdir small
if mount -t tmpfs -o size=32k none small 2>/dev/null; then
	expect "a full disk ends it in 1" 1 'No space left on device; what was measured is kept' \
		syslat run --reps 40 -o small/full --arm a='echo 1'
	mount -o remount,size=1m small
	expect "resume once there is space" 0 'results: small/full \(40 runs' syslat run --resume small/full
	check "nothing is lost or twice" whole small/full 40 a
	umount small
else
	skip "a full disk" "no permission to mount a tmpfs"
fi

# --- kernels ---

here=$(uname -r)
expect "arms of two kernels" 0 'boot kernel 9.9.9 for arm b .*then: syslat run --resume kernels' \
	syslat run --reps 2 -o kernels --arm a='echo 1' --arm b='echo 2' --arm-kernel a="$here" --arm-kernel b=9.9.9
check "this kernel's arm is done" whole kernels 2 a
sed -i "s/9\\.9\\.9/$here/" kernels/experiment.json # as if the other one was booted
expect "after the reboot the rest runs" 0 'results: kernels \(4 runs' syslat run --resume kernels
check "all is there" whole kernels 2 a b

# --- until decided ---

cat >noisy <<'SCRIPT'
#!/bin/sh
# noisy FILE: the next line of FILE
n=$(cat "$1.at" 2>/dev/null || echo 0); n=$((n + 1)); echo $n >"$1.at"; sed -n "${n}p" "$1"
SCRIPT
chmod +x noisy
awk 'BEGIN { srand(1); for (i = 0; i < 40; i++) print 100 + 10 * rand() }' >series.base
awk 'BEGIN { srand(2); for (i = 0; i < 40; i++) print 300 + 10 * rand() }' >series.slow
awk 'BEGIN { srand(3); for (i = 0; i < 40; i++) print 100 + 10 * rand() }' >series.same
expect "a clear difference stops early" 0 'results: decided .*every pair is decided' \
	syslat run --until-decided -o decided --arm base='./noisy series.base' --arm slow='./noisy series.slow'
check "the decision is told" contains "$work/expect.err" 'slow is slower than base \(x2\.8|slow is slower than base \(x2\.9'
check "it took fewer than the 40 blocks" sh -c '[ "$(wc -l <decided/runs.jsonl)" -lt 24 ]'
check "looks and decision are kept" contains decided/experiment.json '"decision": "slower"'
rm -f ./*.at
expect "an arm that is decided is dropped" 0 'max-reps reached' \
	syslat run --until-decided --max-reps 12 -o dropped --arm base='./noisy series.base' --arm slow='./noisy series.slow' --arm same='./noisy series.same'
check "the others went on" sh -c '[ "$(grep -c "\"arm\":\"same\"" dropped/runs.jsonl)" = 12 ] && [ "$(grep -c "\"arm\":\"slow\"" dropped/runs.jsonl)" -lt 12 ]'
rm -f ./*.at
expect "a target precision" 0 'as precise as --target-ci asks' \
	syslat run --target-ci 10% -o precise --arm base='./noisy series.base' --arm slow='./noisy series.slow'
rm -f ./*.at
expect "higher is better turns the words" 0 'slow is faster than base' \
	syslat run --until-decided --better higher -o higher --arm base='./noisy series.base' --arm slow='./noisy series.slow'
expect "a metric that the runs lack" 2 'no metric "p99"; --metric takes: value' \
	syslat run --until-decided --metric p99 -o nometric --arm a='echo 1' --arm b='echo 2'

finish
