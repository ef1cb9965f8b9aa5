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
	# a test run under nohup hands an ignored SIGHUP on, which the program rightly leaves ignored
	env --default-signal=HUP gem_syslatency -n -t 30 --samples "$work/$signal.samples" --json "$work/$signal.json" >/dev/null 2>&1 &
	pid=$!
	for _ in $(seq 600); do # on a busy machine it may begin late
		[ ! -s "$work/$signal.samples" ] || break
		sleep 0.05
	done
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
one_line_error "unknown measure" 2 "none of wakeup, thp" gem_syslatency -t 1 --measure zzz
one_line_error "a backend beside no gem load" 2 'which -n leaves out' gem_syslatency -n -t 1 --backend shm
one_line_error "a device implies the gem load" 77 'nope' gem_syslatency -t 1 --device /dev/dri/nope
one_line_error "a device beside another load does too" 77 'nope' gem_syslatency -t 1 --load null --device /dev/dri/nope
one_line_error "a backend does, and finds no such device" 77 'nope' gem_syslatency -t 1 --backend drm-dumb --device /dev/dri/nope
gem_syslatency -t 0.5 --backend shm --scope machine --json "$work/implied.json" >/dev/null 2>&1
check "a backend implies the gem load" jq -e '.loads == ["gem"] and .backend == "shm"' "$work/implied.json"
gem_syslatency -t 0.5 --backend shm --variant baseline --json "$work/baseline.json" >/dev/null 2>&1
check "the baseline leaves it out, as one that was named" jq -e '.loads == []' "$work/baseline.json"

# --- where there are no huge pages: skipped before anything is changed ---
mkdir -p "$work/no-thp/proc"
cp /proc/meminfo "$work/no-thp/proc/"
one_line_error "a kernel without huge pages" 77 'no transparent huge pages' env SYSLATENCY_ROOT="$work/no-thp" gem_syslatency -n -m -t 1
one_line_error "huge pages forbidden to the process" 77 'forbidden to this process' python3 -c '
import ctypes, os
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)
os.execvp("gem_syslatency", ["gem_syslatency", "-n", "-m", "-t", "1"])'
one_line_error "--pace with wakeup" 2 'for --measure thp' gem_syslatency -t 1 --pace 1ms
one_line_error "--interval with thp" 2 'for --measure wakeup' gem_syslatency -t 1 --measure thp --interval 1ms
one_line_error "unwritable record" 1 'cannot write' gem_syslatency -n -t 1 --json "$work/absent/run.json"
one_line_error "an operand" 2 'is no option' gem_syslatency -n -t 1 foo
one_line_error "too much memory in machine scope" 1 'available' gem_syslatency -t 1 --load swap=90T --scope machine
expect "a full disk is told" 1 'cannot write' gem_syslatency -n -t 1 --json /dev/full
expect "a closed standard output is told" 1 'cannot write' sh -c 'gem_syslatency -n -t 1 >/dev/full'

# --- outputs of every kind ---
one_line_error "an empty name of a file" 2 'FILE is empty' gem_syslatency -n -t 1 --json ""
one_line_error "no room for nothing" 2 'is less than' gem_syslatency -t 1 --load gem --limit 0
one_line_error "a load without size" 2 'not a size' gem_syslatency -t 1 --load gem=0
one_line_error "swap without size" 2 'none of auto' gem_syslatency -t 1 --load swap --swap zram:0
one_line_error "samples and record in one file" 2 'cannot hold two' gem_syslatency -n -t 1 --samples "$work/same" --json "$work/same"
mkfifo "$work/fifo"
one_line_error "a FIFO that nobody reads" 1 'nobody reads' timeout 20 gem_syslatency -n -t 1 --json "$work/fifo"
one_line_error "samples into a FIFO that nobody reads" 1 'nobody reads' timeout 20 gem_syslatency -n -t 1 --samples "$work/fifo"
timeout 20 cat "$work/fifo" >"$work/fifo.json" &
gem_syslatency -n -t 0.5 --json "$work/fifo" >/dev/null 2>&1
wait $!
check "a FIFO with a reader gets the record" jq -e '.latency.count > 0' "$work/fifo.json"
mkdir "$work/links"
ln -s target "$work/links/link"
gem_syslatency -n -t 0.5 --json "$work/links/link" >/dev/null 2>&1
check "a symbolic link stays one" test -L "$work/links/link"
check "and leads to the record" jq -e .schema "$work/links/target"
expect "a full disk under the samples is told" 1 'samples file lacks [1-9][0-9]* samples: No space' \
	gem_syslatency -n -t 0.5 --samples /dev/full --json "$work/full.json"
check "and is in the record" jq -e '.counters.samples.failed and .counters.samples.lost > 0
	and ([.notes[]] | any(test("samples")))' "$work/full.json"
gem_syslatency -n -t 0.5 --samples "$work/all.txt" --json "$work/all.json" >/dev/null 2>&1
check "samples that are all there" jq -e '.counters.samples.failed == false and .counters.samples.lost == 0' "$work/all.json"
expect "a file size limit under the samples is told" 1 'File too large' \
	sh -c 'ulimit -f 4; { gem_syslatency -n -t 1 --interval 100us --samples "$1" 2>&1; } | cat; exit 1' sh "$work/limited"
expect "a file size limit under the record is told" 1 'File too large' \
	bash -c 'set -o pipefail; ulimit -f 4; gem_syslatency -n -t 0.5 --json "$1" 2>&1 | cat' bash "$work/limited.json"
expect "help into a full disk is told" 1 'cannot write' sh -c 'gem_syslatency --help >/dev/full'

# --- few descriptors: it ends, and says why ---
for limit in 5 6 7 8 9 10 12 14 16 18; do
	(
		ulimit -n $limit
		timeout 30 gem_syslatency -t 0.2 --warmup 0 --load null >"$work/few.out" 2>"$work/few.err"
	)
	status=$?
	if [ $status -le 4 ] && { [ $status -ne 1 ] || [ "$(wc -l <"$work/few.err")" -eq 1 ]; }; then
		ok "$limit descriptors: it ends"
	else
		not_ok "$limit descriptors: status $status: $(head -c 200 "$work/few.err")"
	fi
done

# --- signals while the loads start, and nohup ---
if [ "$(id -u)" -eq 0 ]; then
	gem_syslatency -t 1 --load gem --limit 600M --footprint 512M --load-rate 0.01 >/dev/null 2>"$work/start.err" &
	pid=$!
	sleep 0.2
	begin=$SECONDS
	kill -INT $pid
	wait $pid
	check "an interruption while starting ends it" test $((SECONDS - begin)) -le 5
fi
nohup gem_syslatency -n -t 2 --json "$work/nohup.json" >/dev/null 2>&1 &
pid=$!
sleep 1
kill -HUP $pid
wait $pid
check "nohup keeps SIGHUP away" jq -e '.interrupted == false' "$work/nohup.json"

# --- without privilege it measures what it can and says what ---
if can_be_nobody; then
	program=$(for_nobody gem_syslatency)
	"${nobody[@]}" env TMPDIR="$work" "$program" \
		-n -t 1 --json "$work/user.json" >"$work/user.out" 2>"$work/user.err"
	check "an ordinary user measures under SCHED_OTHER" jq -e '.per_cpu[0].policy == "other" and .latency.count > 0' "$work/user.json"
	for _ in 1 2 3; do # one page that is moved is no fault of ours
		"${nobody[@]}" env TMPDIR="$work" "$program" \
			-n -t 1 --sched other --json - >"$work/faults.json" 2>/dev/null
		[ "$(jq '[.per_cpu[].minflt] | add' "$work/faults.json")" = 0 ] && break
	done
	check "without a lock on its code, the sampler takes no fault" jq -e '[.per_cpu[].minflt] | add == 0' "$work/faults.json"
	check "and the record says so" jq -e '[.notes[], .validity.reasons[]] | any(test("FIFO|SCHED_OTHER"))' "$work/user.json"
else
	skip "an ordinary user measures under SCHED_OTHER" "not root"
fi
finish
