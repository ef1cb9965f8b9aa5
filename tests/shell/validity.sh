#!/usr/bin/env bash
# Verdicts of real runs: clean ones are never invalid, and faults planted for real are found and named.
. "$(dirname "$0")/lib.sh"

record=$work/run.json
run() { gem_syslatency --warmup 0.3s --json "$record" "$@" >/dev/null 2>"$work/err"; }
reasons() { jq -r '.validity.verdict, .validity.reasons[]' "$record" | sed 's/^/# /'; }
# verdict "what" JQ: judges the last record.
verdict() {
	if jq -e "$2" "$record" >/dev/null; then ok "$1"; else
		not_ok "$1"
		reasons
	fi
}

# --- clean: valid, or suspect for a reason that this machine gave (a stolen tick, a neighbour) ---
invalid=0
for _ in 1 2 3 4 5 6 7 8 9 10; do
	run -t 0.5 --load null
	if [ "$(jq -r .validity.verdict "$record")" = invalid ]; then
		invalid=$((invalid + 1))
		reasons
	fi
done
check "10 of 10 clean runs are not invalid" test "$invalid" -eq 0
verdict "the record has what the verdict is made of" '.counters.vmstat and .counters.clock.elapsed_ms > 400 and .counters.sampler
	and (.counters.kmsg | type == "array") and (.counters.series.t_ms | length >= 1) and (.environment.kernel | length > 0)
	and (.machine_key | test("^[0-9a-f]{16}$"))'

# --- the counters switched off: nothing is proved, and that is said ---
run -t 0.3 --load null --counters off
verdict "without counters a run is suspect" '.validity.verdict == "suspect" and .settings.counters == "off"
	and (.validity.reasons | any(test("--counters off"))) and (.counters | has("vmstat") or has("series") | not)'
run -t 0.3 --load thp --scope machine --counters off
verdict "and invalid beside a load" '.validity.verdict == "invalid" and (.validity.reasons | any(test("--counters off")))'
run -t 0.3 --load null --counters on
verdict "on is the default" '(.settings | has("counters") | not) and .counters.vmstat'

# --- a neighbour that eats a CPU ---
timeout 20 bash -c 'while :; do :; done' &
hog=$!
run -t 1 --load null
kill "$hog" 2>/dev/null
wait "$hog" 2>/dev/null
verdict "a busy neighbour makes the run suspect, and is named" '.validity.verdict != "valid"
	and (.validity.reasons | any(test("other programs used .* of a CPU .*pid")))'

# --- a sampler without FIFO ---
if can_be_nobody; then
	program=$(for_nobody gem_syslatency)
	rm -f "$record"
	"${nobody[@]}" "$program" -n -t 0.5 --load null --json "$record" >"$work/err" 2>&1
	status=$?
	if [ -s "$record" ] && [ "$(jq -r '.per_cpu[0].policy' "$record")" != fifo ]; then
		verdict "FIFO asked and not got: invalid, with the remedy" '.validity.verdict == "invalid"
			and (.validity.reasons | any(test("not as SCHED_FIFO.*(ulimit|root)")))'
		check "exit 4" test "$status" -eq 4
		check "and the reason before the user's eyes" grep -q 'as SCHED_OTHER, not as SCHED_FIFO' "$work/err"
	else
		skip "FIFO asked and not got: invalid, with the remedy" "an ordinary user gets FIFO here, or cannot run"
	fi
else
	skip "FIFO asked and not got: invalid, with the remedy" "not root"
fi

# --- memory: needs a group of our own ---
if ! syslat check --json - | jq -e '.scopes[] | select(.name == "memcg") | .can' >/dev/null; then
	skip "nothing presses on held pages: invalid" "no memory group can be made here"
	finish
	exit
fi
run -t 1 --load gem --limit 512M --footprint 64M --swap none
verdict "nothing presses on held pages: invalid, and says what to do" '.validity.verdict == "invalid"
	and (.validity.reasons | any(test("anon lists .*were not scanned.*(add --swap|add --load swap|measure longer)")))'
verdict "the variant was seen for what it is" '.validity.reasons | all(test("not the variant") | not)'
if [ "$(awk 'NR > 1' /proc/swaps | wc -l)" -eq 0 ]; then
	verdict "without swap: that is the reason" '.validity.reasons | any(test("there is no swap"))'
else
	skip "without swap: that is the reason" "this machine has swap"
fi
run -t 1 --load gem --limit 512M --footprint 64M --swap none --variant mlock
verdict "mlock is seen as mlock" '(.validity.reasons | all(test("not the variant") | not))
	and .load_stats.gem.observed_mlock_pages >= 14000'

# --- a neighbour whose group is reclaimed hard: /proc/vmstat counts that, and it is not ours ---
gem_syslatency -t 30 --sched other --load swap --limit 64M --swap zram:256M --json "$work/neighbour.json" >/dev/null 2>"$work/err" &
neighbour=$!
for _ in $(seq 300); do
	sleep 0.1
	for child in $(cat "/proc/$neighbour/task/$neighbour/children" 2>/dev/null); do
		[ "$(cat "/proc/$child/comm" 2>/dev/null)" = sampler ] && break 2
	done
done
run -t 2 --load gem --limit 512M --footprint 64M --swap none
still=$(kill -0 "$neighbour" 2>/dev/null && echo yes)
kill -INT "$neighbour" 2>/dev/null
wait "$neighbour" 2>/dev/null
if [ -n "$still" ] && jq -e '.counters.vmstat.pgscan_anon > 16384' "$record" >/dev/null; then
	verdict "a neighbour's reclaim does not stand in for ours" '.validity.verdict == "invalid"
		and (.validity.reasons | any(test("a neighbour.s reclaim; the group itself was not reclaimed")))'
	check "whose own group did show it" jq -e '.counters.memcg | .workingset_refault_anon > 256 or .pgscan > 256 or .limit_hits > 0' "$work/neighbour.json"
else
	skip "a neighbour's reclaim does not stand in for ours" "the neighbour could not be made: $(head -c 200 "$work/err" | tr '\n' ' ')"
fi

# --- a load that ends before its time is a condition, not a result ---
gem_syslatency -t 60 --load swap --limit 256M --swap zram:512M --json "$record" >/dev/null 2>"$work/err" &
pid=$!
victim='' sampling=''
for _ in $(seq 300); do # once the sampler is there the load is steady
	sleep 0.1
	for child in $(cat "/proc/$pid/task/$pid/children" 2>/dev/null); do
		case $(cat "/proc/$child/comm" 2>/dev/null) in
		swap) victim=$child ;;
		sampler) sampling=yes ;;
		esac
	done
	[ -n "$sampling" ] && break
done
if [ -n "$victim" ] && [ -n "$sampling" ]; then
	sleep 1
	kill -KILL "$victim" 2>/dev/null
	sleep 0.5
	kill -INT "$pid"
	wait "$pid"
	verdict "a killed load is told" '.load_stats.swap.died and .validity.verdict == "invalid"
		and (.validity.reasons | any(test("swap load ended by itself|killed for want of memory")))'
else
	kill -INT "$pid"
	wait "$pid"
	skip "a killed load is told" "the load's process was not found: $(head -c 200 "$work/err" | tr '\n' ' ')"
fi
finish
