# syslat compare and syslat report as programs: plain files, records, bad input, exit codes.
# shellcheck shell=bash source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
data=$source_root/tests/data
tip=$data/tip-mean.rebuilt.txt
mapping=$data/mapping-mean.rebuilt.txt
cd "$work" || exit 1

# --- the dispatcher ---
one_line_error "no command" 2 "a command is wanted" syslat
one_line_error "unknown command" 2 'unknown command "nope"' syslat nope
expect "help lists the commands" 0 "compare +compare arms" syslat help
expect "help of a command" 0 "usage: syslat compare" syslat help compare
expect "version" 0 "^syslatency [0-9]" syslat --version
expect "version of a command" 0 "^syslatency [0-9]" syslat compare --version

# --- the two given series ---
expect "mapping is slower than tip, in words" 0 \
	"^mapping is slower than tip: x1\.95 \[1\.75, 2\.13\], P\(slower\) 0\.86, p 2e-25$" syslat compare "$tip" "$mapping"
expect "ministat's table" 0 "^x 120      2475\.318     73172\.303       7558\.83     9540\.1447     9544\.4109$" \
	syslat compare "$tip" "$mapping"
expect "--against turns the pair" 0 "^tip is faster than mapping: x0\.513" syslat compare --against mapping "$tip" "$mapping"
expect "a name of one's own" 0 "^new is slower than old" syslat compare old="$tip" new="$mapping"
expect "standard input" 0 "^mapping-mean.rebuilt is slower than stdin" bash -c "syslat compare - '$mapping' <'$tip'"
expect "--fail-on-slower" 3 "is slower than" syslat compare --fail-on-slower "$tip" "$mapping"
expect "--fail-on-slower of a faster one" 0 "is faster than" syslat compare --fail-on-slower "$mapping" "$tip"
expect "a least effect that is not reached" 0 "undecided: .*within the least effect of 100%" \
	syslat compare --min-effect 100% "$tip" "$mapping"

# No mark is lost: as many marks as values (here no two arms meet in a cell unseen).
marks() { grep '^|' | grep -v '[AM]' | tr -dc "$1" | wc -c; }
syslat compare "$tip" >one.txt
check "one arm: 120 values, 120 marks" test "$(marks x <one.txt)" -eq 120
syslat compare "$tip" "$mapping" >two.txt
check "two arms: x and * are 120" test "$(($(marks x <two.txt) + $(marks '*' <two.txt)))" -eq 120
check "two arms: + and * are 120" test "$(($(marks + <two.txt) + $(marks '*' <two.txt)))" -eq 120
check "74 columns" test "$(grep '^[|+]' two.txt | grep -v '^+ ' | awk '{ print length }' | sort -u)" = 74
expect "three arms: overlaps are letters with a legend" 0 "^overlaps: a = " syslat compare "$tip" "$mapping" third="$tip"
seq 1 100000 >many.txt
expect "heights are scaled and the scale told" 0 "each mark is up to [0-9]+ values" syslat compare --plot linear many.txt
check "few lines for many values" test "$(syslat compare many.txt | wc -l)" -lt 60
expect "log chosen by the range, and told" 0 "^log axis, 1 to 1e\+05, for its range" syslat compare many.txt
expect "--plot log" 0 "^log axis" syslat compare --plot log "$tip"
check "--plot none" bash -c "! syslat compare --plot none '$tip' | grep -q '^|'"
expect "--normalise" 0 "0 = tip and 1 = mapping: c 0\.000" syslat compare --normalise=tip,mapping tip="$tip" mapping="$mapping" c="$tip"
expect "--metric of plain files" 2 "one metric" syslat compare --metric mean,max "$tip"

# --- JSON ---
syslat compare --json out.json "$tip" "$mapping" >/dev/null
check "JSON: the schema of comparisons" python3 - <<'PY'
import json
c = json.load(open("out.json"))
assert c["schema"] == "syslatency/compare/1", c
assert c["metric"] == "mean" and c["alpha"] == 0.01 and c["min_effect"] == 0.05
assert [a["name"] for a in c["arms"]] == ["tip", "mapping"]
for a in c["arms"]:
    assert a["n"] == 120 and a["min"] < a["median"] < a["max"] and a["stddev"] > 0
    assert a["median_ci"][0] <= a["median"] <= a["median_ci"][1]
(p,) = c["pairs"]
assert (p["a"], p["b"], p["verdict"]) == ("mapping", "tip", "slower"), p
assert 1e-26 < p["p"] < 1e-24 and p["p_holm"] == p["p"] and p["u"] == 12416
assert p["ratio_ci"][0] < p["ratio"] < p["ratio_ci"][1] and 0.8 < p["superiority"] < 0.9
PY
check "--json -: nothing but the JSON" bash -c "syslat compare --json - '$tip' '$mapping' | python3 -m json.tool"
one_line_error "JSON that cannot be written" 1 "no/such/dir" syslat compare --json no/such/dir/x "$tip"

# --- what crashes or misleads ministat ---
printf '1\nnan\n2\n' >nan; printf '1\ninf\n2\n' >inf; printf '1\n-Infinity\n' >minus-inf; printf '1\n1e999\n' >beyond
: >empty; printf '\n# only a comment\n\n' >comment; printf '1,5\n2,5\n' >comma; printf 'hello\n' >text
printf '0x10\n' >hex; printf '12us\n' >unit; printf '1\n\0\n2\n' >nul; printf '5\n' >one; printf '3\n3\n3\n3\n' >constant
one_line_error "NaN" 1 'nan: line 2: "nan" is not a number that can be ranked' syslat compare nan
one_line_error "infinity" 1 'inf: line 2: "inf" is not a finite number' syslat compare inf
one_line_error "minus infinity" 1 'line 2: "-Infinity" is not a finite number' syslat compare minus-inf
one_line_error "beyond a double" 1 'line 2: "1e999" is not a finite number' syslat compare beyond
one_line_error "an empty file" 1 "empty: no values" syslat compare empty one
one_line_error "comments alone" 1 "comment: no values" syslat compare one comment
one_line_error "decimal commas" 1 'comma: line 1: "1,5" is not a number: decimals take a point' syslat compare comma
one_line_error "text" 1 'text: line 1: "hello" is not a number' syslat compare text
one_line_error "hexadecimal" 1 '"0x10" is not a number' syslat compare hex
one_line_error "a unit" 1 '"12us" is not a number' syslat compare unit
one_line_error "a NUL byte" 1 'nul: line 2' syslat compare nul
one_line_error "no such file" 1 "missing: No such file" syslat compare missing
one_line_error "a folder that is no experiment" 1 "runs.jsonl" syslat compare .
one_line_error "a binary" 1 "line 1" syslat compare "$build/tools/syslat"
one_line_error "nothing" 2 "nothing to compare" syslat compare
one_line_error "standard input twice" 2 "named twice" syslat compare - -
one_line_error "--against a stranger" 2 'no arm called "x"' syslat compare --against x one constant
one_line_error "--alpha 2" 2 "alpha" syslat compare --alpha 2 one
one_line_error "--plot pie" 2 "plot" syslat compare --plot pie one
expect "one value: no standard deviation" 0 "^x   1             5             5             5             5             -$" \
	syslat compare one
expect "one value: cannot conclude, and why" 0 "too few runs: with 4 and 1 the least attainable p is 0\.4" syslat compare one constant
expect "zero variance" 0 "^x   4             3             3             3             3             0$" syslat compare constant
expect "constant against itself" 0 "is equivalent to constant" syslat compare constant constant
seq 1 4 >four; seq 11 14 >fourteen
expect "too few runs to decide" 0 "least attainable p is 0\.029, above alpha 0\.01; 5 an arm can decide" syslat compare four fourteen
printf '1\r\n2\r\n3.5\r\n' >crlf; printf '\xef\xbb\xbf1\n2\n3' >bom; printf '  7 # why\n8\t9\n' >columns
expect "CRLF" 0 "^x   3             1           3.5             2     2.1666667" syslat compare crlf
expect "a byte order mark, no last newline" 0 "^x   3             1             3             2             2" syslat compare bom
expect "further columns are told" 0 "columns: column 1 was read; 1 lines hold more" syslat compare columns
expect "--column" 1 "line 1 has no column 2" syslat compare --column 2 columns
printf '1e-300\n1e300\n5\n-1e300\n' >huge; printf '1e308\n1.7e308\n-1.7e308\n' >huger; printf '5e-324\n1e-320\n6\n' >tiny
for file in huge huger tiny; do
	check "$file: a finite table" bash -c "syslat compare $file | grep -E '^x   [34] ' | grep -vqE 'inf|nan'"
done
printf '1000000000000001\n1000000000000002\n1000000000000003\n' >cancel
expect "no cancellation: 1e15 + 1, 2, 3" 0 " 1$" syslat compare cancel
{ echo 1; printf '%100000s2\n' ''; printf '3 # %300000s\n' ''; printf '%050000d5\n' 0; } >long
expect "long lines" 0 "^x   4             1             5           2.5          2.75" syslat compare long
for width in 1 2 3 24 500; do
	check "--width $width" syslat compare --width "$width" "$tip" "$mapping"
done
check "a locale with decimal commas" env LC_ALL=de_DE.UTF-8 syslat compare "$tip"
expect "an even number of values: the true median" 0 " 2\.5 " syslat compare four
expect "a pipe" 0 "^x   3 " bash -c "seq 3 | syslat compare /dev/stdin"
check "a full disk is no success" bash -c "! syslat compare one >/dev/full 2>/dev/null"

# --- ministat itself ---
if command -v ministat >/dev/null; then
	expect "--ministat" 0 "Difference at 99" syslat compare --ministat "$tip" "$mapping"
	expect "--ministat: sets that are too small for it are told" 0 "^one, value: left out, .* \\(here 1\\)$" \
		syslat compare --ministat one four
	expect "--ministat: the other sets are compared" 0 "^x +4 " syslat compare --ministat one four
	expect "--ministat: two values are too few too" 0 "^two-values, value: left out" \
		bash -c "seq 2 >two-values; syslat compare --ministat two-values"
	check "--ministat leaves nothing behind" bash -c "! ls -d ${TMPDIR:-/tmp}/syslat-compare.* 2>/dev/null"
else
	skip "--ministat" "ministat is not installed"
fi
one_line_error "--ministat without ministat" 77 "ministat is not installed" \
	env PATH=/nonexistent "$build/tools/syslat" compare --ministat "$tip" "$mapping"

# --- records ---
python3 - <<'PY'
import json, os, random
random.seed(7)
def run(arm, mean, **more):
    r = {"schema": "syslatency/run/1", "id": "00000000-0000-4000-8000-000000000000", "benchmark": "gem_syslatency",
         "arm": arm, "variant": arm, "measure": "thp", "scope": "memcg", "release_context": "load", "duration_s": 8.0,
         "latency": {"count": 4000, "mean_us": mean, "max_us": 9 * mean},
         "command": ["/usr/bin/gem_syslatency", "-t", "8", "--variant", arm, "--json", "x"],
         "environment": {"kernel": "6.1.0", "cpu_model": "a CPU", "thp": {"enabled": "always"}},
         "validity": {"verdict": "valid", "reasons": []}, "trace_level": "off",
         "settings": {"limit_bytes": 1 << 30, "clock_read_ns": random.random()}, "status": "ok"}
    r.update(more)
    return r
def experiment(name, runs):
    os.mkdir(name)
    open(name + "/experiment.json", "w").write(json.dumps({"seed": 5, "arms": [{"name": "baseline"}, {"name": "stock"}]}))
    open(name + "/runs.jsonl", "w").write("".join(json.dumps(r) + "\n" for r in runs))
def arms(n=12, **more):
    return [r for i in range(n) for r in (run("stock", 7000 + 100 * random.random(), **more), run("baseline", 800 + 10 * random.random(), **more))]
experiment("good", arms())
experiment("doubt", arms() + [run("stock", 1.0, validity={"verdict": "invalid", "reasons": ["3 major faults"]}),
                             run("stock", 1.0, status="failed"), run("stock", 7050, validity={"verdict": "suspect", "reasons": ["steal"]})])
experiment("cut", arms() + [run("stock", 7000, interrupted=True)])
experiment("traced", arms(trace_level="light"))
experiment("virtual", arms(environment={"kernel": "6.1.0", "clock": "virtual", "ns_per_instruction": 2}))
experiment("limit", arms(settings={"limit_bytes": 2 << 30}))
experiment("wakeup", arms(measure="wakeup"))
experiment("short", arms(duration_s=2.0))
experiment("kernel", arms(environment={"kernel": "6.2.0"}))
experiment("within", arms() + [run("stock", 7000, settings={"limit_bytes": 3 << 30})])
open("torn.jsonl", "w").write(open("good/runs.jsonl").read() + '{"schema": "sys')
open("ops.jsonl", "w").write("".join(json.dumps({"schema": "syslatency/run/1", "benchmark": "b", "arm": a,
    "metrics": {"passes": {"value": v + i, "unit": u, "better": "higher"}}}) + "\n"
    for a, v, u in (("old", 1000, "passes"), ("new", 2000, "passes")) for i in range(9)))
open("units.jsonl", "w").write("".join(json.dumps({"schema": "syslatency/run/1", "benchmark": "b", "arm": a,
    "metrics": {"t": {"value": 1.0 + i, "unit": u, "better": "lower"}}}) + "\n" for a, u in (("old", "ms"), ("new", "us")) for i in range(9)))
PY
expect "arms in the order of the plan, not of the shuffled runs" 0 "^x baseline-mean.txt" syslat compare good
expect "stock is slower" 0 "^stock is slower than baseline" syslat compare good
check "mean and max by default" bash -c "syslat compare --json - good | wc -l | grep -qx 2"
expect "Holm over the whole report" 0 "p adjusted for 2 comparisons \(Holm\)" syslat compare good
expect "exclusions by arm" 0 "^stock: 13 runs; left out: 1 invalid, 1 failed; suspect: 1 \(3 major faults\)" syslat compare doubt
expect "the verdict with the invalid runs too" 0 "with the invalid runs, the same: stock is slower" syslat compare doubt
check "--include-invalid" bash -c "syslat compare --include-invalid --metric mean --json - doubt | grep -q '\"n\":14'"
check "--without suspect" bash -c "syslat compare --without suspect --metric mean --json - doubt | grep -vq '\"n\":13'"
expect "interrupted runs are left out" 0 "stock: 12 runs; left out: 1 interrupted" syslat compare cut
expect "--without interrupted" 0 "stock: 12 runs; left out: 1 interrupted" syslat compare --without interrupted cut
# ministat gets the very values of our table, whatever leaves runs out or takes them in.
same_values() { # same_values OPTION... OPERAND...
	python3 - "$@" <<'PY'
import json, re, subprocess, sys
def out(*options):
    return subprocess.run(["syslat", "compare", *options, *sys.argv[1:]], capture_output=True, text=True, check=True).stdout
ours = [(a["n"], a["min"], a["max"], a["mean"]) for a in json.loads(out("--json", "-").splitlines()[0])["arms"]]
table = [line.split()[1:] for line in out("--ministat").splitlines() if re.match(r"[x+*%#@O] +[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+", line)]
theirs = [(int(row[0]), float(row[1]), float(row[2]), float(row[4])) for row in table]
assert len(ours) == len(theirs) >= 1, (ours, theirs)
for a, b in zip(ours, theirs):
    assert a[0] == b[0] and all(abs(x - y) <= 1e-6 * abs(x) for x, y in zip(a, b)), (ours, theirs)
print(ours)
PY
}
if command -v ministat >/dev/null; then
	paste -d ' ' "$tip" "$mapping" >columns
	check "--ministat: the same runs" same_values --metric mean doubt
	check "--ministat --include-invalid" same_values --include-invalid --metric mean doubt
	check "--ministat --without suspect" same_values --without suspect --metric mean doubt
	check "--ministat --without interrupted" same_values --without interrupted --metric mean cut
	check "--ministat --column" same_values --column 2 columns
	check "these differ, or the tests above say nothing" test "$({ same_values --metric mean doubt; same_values --include-invalid --metric mean doubt; same_values --without suspect --metric mean doubt; } | sort -u | wc -l)" -eq 3
fi
expect "--mix interrupted" 0 "stock is slower" syslat compare --mix interrupted cut
one_line_error "trace levels" 1 "differ in trace level \(off, light\): --mix trace-levels" syslat compare good traced
one_line_error "virtual and real time" 1 "good/baseline has times of the real clock, virtual/baseline of the virtual clock: they cannot" \
	syslat compare good virtual
one_line_error "virtual and real time, whatever --mix says" 1 "they cannot be compared" syslat compare --mix all good virtual
expect "virtual times among themselves" 0 "^stock is slower than baseline" syslat compare virtual
one_line_error "settings of two experiments" 1 "settings.limit_bytes \(1073741824, 2147483648\): --mix settings" syslat compare good limit
one_line_error "settings within an arm" 1 "stock: runs differ in settings.limit_bytes" syslat compare within
one_line_error "what is measured" 1 "differ in what is measured \(thp, wakeup\): --mix benchmarks" syslat compare good wakeup
one_line_error "lengths, for a maximum" 1 "--mix durations" syslat compare good short
expect "lengths, for a mean" 0 "slower" syslat compare --metric mean good short
one_line_error "units" 1 "the unit \(ms, us\): --mix units" syslat compare units.jsonl
expect "--mix units" 0 "undecided|equivalent" syslat compare --mix units units.jsonl
expect "two experiments: names by folder" 0 "^x good/baseline-mean" syslat compare --mix settings good limit
expect "what differs besides the arm" 0 "environment.kernel: good/baseline has 6.1.0, kernel/baseline has 6.2.0" syslat compare good kernel
expect "a torn line is told" 0 "torn.jsonl: a torn last line was dropped" syslat compare torn.jsonl
expect "higher is better" 0 "^new is faster than old" syslat compare ops.jsonl
one_line_error "a metric that nobody has" 1 'no run that counts has a metric called "p42"' syslat compare --metric p42 good
expect "records beside plain numbers" 0 "^mapping-mean.rebuilt is slower than baseline" syslat compare good "$mapping"

# --- report ---
syslat report --mail good >mail.txt
check "mail: 72 columns at most" bash -c "! grep -nE '^.{73}' mail.txt"
expect "mail: the command, without what differs between runs" 0 '^Using "gem_syslatency -t 8" on a CPU' cat mail.txt
expect "mail: verdict" 0 "^stock is slower than baseline: x" cat mail.txt
expect "mail: validity" 0 "^Of 24 runs 24 are valid" cat mail.txt
expect "mail: memcg reclaim is another" 0 "kswapd takes no part" cat mail.txt
expect "mail: release context" 0 'release_context "load"' bash -c "tr '\n' ' ' <mail.txt"
check "Markdown by the file's ending" bash -c "syslat report good -o out.md && grep -q '^# Comparison' out.md && grep -q '^| stock | baseline | \*\*slower\*\*' out.md"
one_line_error "two forms" 2 "exclude each other" syslat report --mail --markdown good
one_line_error "report to nowhere" 1 "no/such" syslat report good -o no/such/file
check "report of plain files" bash -c "syslat report '$tip' '$mapping' | grep -q 'is slower than tip'"
finish
