# syslat history as a program: a million-run tool's small brother, kills, bad input, confirmation.
# shellcheck shell=bash source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
noise=$source_root/tests/stats/data/tip-mean.txt
make_history=$build/tests/history/make_history
cd "$work" || exit 1
if ! syslat history list --db none.db 2>&1 | grep -q "no history yet"; then
	skip "history" "built without SQLite"
	finish
	exit 0
fi

# --- add ---
"$make_history" -n 700 -r 7 -s 60 -f 2 -x 3 "$noise" >runs.jsonl
expect "add makes the database and its folder" 0 "700 runs added, 0 known already, 2800 values" \
	syslat history add --db deep/er/h.db runs.jsonl
expect "add again adds nothing" 0 "0 runs added, 700 known already" syslat history add --db deep/er/h.db runs.jsonl
mkdir folder && cp runs.jsonl folder/
expect "the same runs in a folder" 0 "0 runs added, 700 known already" syslat history add --db deep/er/h.db folder
expect "from standard input" 0 "0 runs added, 700 known" bash -c "syslat history add --db deep/er/h.db - <runs.jsonl"
db=deep/er/h.db
expect "list: four metrics of one arm" 0 "arm0 +p99" syslat history list --db $db
check "list: four series" test "$(syslat history list --db $db | wc -l)" -eq 5
expect "list of a series: a line a commit" 0 "100000000063 +7 " syslat history list --db $db --series 1
check "list of a series: 100 commits" test "$(syslat history list --db $db --series 1 | wc -l)" -eq 102
check "list --json" bash -c "syslat history list --db $db --series 1 --json - | python3 -c 'import json,sys; r=json.load(sys.stdin); assert len(r)==100 and r[0][\"runs\"]==7 and r[0][\"min\"]<=r[0][\"median\"]<=r[0][\"max\"], r[0]'"
id=$(head -1 runs.jsonl | python3 -c 'import json,sys; print(json.loads(sys.stdin.readline())["id"])')
expect "show a run" 0 "commit 100000000000, kernel 6.12.0-rc1-00042-g100000000000, valid" syslat history show --db $db "$id"
expect "show a run by the start of its id" 0 "series 1: arm0 mean [0-9.]+ us" syslat history show --db $db "${id:0:8}"
check "show a commit: 7 runs, 28 values" bash -c "test \$(syslat history show --db $db 100000000005 | grep -c '^run ') -eq 7 && test \$(syslat history show --db $db 100000000005 | grep -c 'series ') -eq 28"

# --- check ---
expect "a suspicion is no alarm yet" 0 "^suspected regression: series 1 gem_syslatency arm0 mean" syslat history check --db $db
expect "it asks for the runs that decide it" 0 "fresh runs so far: 0 before, 0 after; to decide it: .*--confirm COMMAND" syslat history check --db $db --metric mean
expect "the range of commits holds the planted one" 0 "first commit of the new level: 10000000003[a-e]" syslat history check --db $db --metric mean
expect "--without-confirmation" 3 "^REGRESSION: " syslat history check --db $db --metric mean --without-confirmation
check "JUnit" bash -c "syslat history check --db $db --without-confirmation --junit j.xml >/dev/null; python3 -c 'import xml.etree.ElementTree as e; r=e.parse(\"j.xml\").getroot(); assert r.get(\"failures\")==\"4\" and r.get(\"tests\")==\"4\" and len(r.findall(\"testcase/failure\"))==4'"

# A command that a user would give: builds nothing, measures the commit that it is asked for.
cat >measure <<'SH'
#!/usr/bin/env bash
# prints one mean as the noise has it, twice as great from commit 0x3c on
lines=(NOISE)
value=${lines[RANDOM % ${#lines[@]}]}
if [[ "$SYSLATENCY_COMMIT" < "10000000003c" ]]; then echo "$value"; else echo "$(python3 -c "print($value * 2)")"; fi
SH
sed -i "s/NOISE/$(tr '\n' ' ' <"$noise")/" measure && chmod +x measure
cp $db c.db
expect "--confirm measures both sides, and alarms" 3 "^REGRESSION: series 1 " syslat history check --db c.db --metric mean --confirm ./measure --confirm-dir fresh
expect "confirmed by how many" 3 "confirmed by fresh runs: [0-9]+ before, [0-9]+ after" syslat history check --db c.db --metric mean
check "fresh runs are kept as records" bash -c "test \$(wc -l <fresh/runs.jsonl) -ge 10"
check "JSON: an alarm with a range and an interval" bash -c "syslat history check --db c.db --metric mean --json - | python3 -c '
import json,sys
r=json.load(sys.stdin); assert r[\"schema\"]==\"syslatency/check/1\" and r[\"regressions\"]==1
(c,)=r[\"series\"][0][\"changes\"]; assert c[\"alarm\"] and c[\"confirmation\"]==\"confirmed\" and c[\"kind\"]==\"regression\"
assert c[\"last_good\"] < \"10000000003c\" <= c[\"first_bad\"] and 1.5 < c[\"ratio_ci\"][0] < c[\"ratio\"] < c[\"ratio_ci\"][1] < 2.6'"
syslat history rebuild --db c.db >rebuilt.txt
expect "rebuild from the records: fresh runs stay fresh" 3 "confirmed by fresh runs" syslat history check --db c.db --metric mean
# The same with a command that never differs: refuted.
printf '#!/bin/sh\necho $((1000 + $(od -An -N1 -tu1 /dev/urandom)))\n' >same && chmod +x same
cp $db r.db
expect "--confirm that finds nothing: no alarm" 0 "not confirmed" syslat history check --db r.db --metric mean --confirm ./same --confirm-dir fresh2 --confirm-runs 12
cp $db f.db
one_line_error "--confirm with a command that fails" 1 "commit 1000.*exit 1" syslat history check --db f.db --metric mean --confirm "exit 1"
change=$(syslat history check --db c.db --metric mean --json - | python3 -c 'import json,sys; print(json.load(sys.stdin)["series"][0]["changes"][0]["at"])')
check "acknowledge" syslat history acknowledge --db c.db --note "new allocator, known" "$change"
expect "an acknowledged change alarms no more" 0 "acknowledged: new allocator, known" syslat history check --db c.db --metric mean
syslat history rebuild --db c.db >/dev/null
expect "rebuild keeps notes" 0 "acknowledged: new allocator, known" syslat history check --db c.db --metric mean
one_line_error "acknowledge a stranger" 1 'no commit "nope"' syslat history acknowledge --db c.db --note x nope

# --- labels ---
expect "--commit, --branch, --tags, --commit-time" 0 "700 runs" syslat history add --db l.db --commit v6.12 --branch linus --tags rc,test --commit-time 2024-11-17T00:00:00Z runs.jsonl
expect "show says them" 0 "commit v6.12, tags rc,test" syslat history show --db l.db "$id"
expect "the commit's time orders" 0 "^2024-11-17T00:00:00Z v6.12 +700" syslat history list --db l.db --series 1 --branch linus
syslat history rebuild --db l.db >/dev/null
expect "rebuild keeps what was given" 0 "commit v6.12, tags rc,test" syslat history show --db l.db "$id"

# --- validity ---
python3 - <<'PY'
import json
runs = [json.loads(l) for l in open("runs.jsonl")]
for r in runs[-7:]:
    r["validity"] = {"verdict": "invalid", "reasons": ["nothing was swapped out"]}
open("invalid.jsonl", "w").write("".join(json.dumps(r) + "\n" for r in runs))
PY
syslat history add --db i.db invalid.jsonl >/dev/null
expect "newest runs invalid: exit 4" 4 "^invalid: series 1 .*no run of its newest commit counts" syslat history check --db i.db --metric mean

# --- rm ---
expect "rm a run" 0 "1 runs removed" syslat history rm --db l.db "$id"
one_line_error "rm it again" 1 "no run of" syslat history rm --db l.db "$id"
expect "rm a commit" 0 "699 runs removed" syslat history rm --db l.db --commit v6.12
one_line_error "rm without anything" 2 "give ids" syslat history rm --db l.db

# --- bad input changes nothing ---
same_after() { # same_after "what" STATUS PATTERN command...: one line, and the database as it was
	local before
	before=$(syslat history list --db $db --json - | sha256sum)
	one_line_error "$@"
	check "$1: nothing changed" test "$(syslat history list --db $db --json - | sha256sum)" = "$before"
}
"$make_history" -n 50 -x 9 "$noise" >more.jsonl
{ cat more.jsonl; head -c 300 runs.jsonl; } >torn.jsonl
same_after "a torn record" 1 "line 51 is torn: .*--drop-torn" syslat history add --db $db torn.jsonl
{ head -20 more.jsonl; echo '{"schema": "syslatency/run/1", "id": 5}'; tail -30 more.jsonl; } >bad.jsonl
same_after "a bad record in the middle" 1 "bad.jsonl: line 21: .*id: " syslat history add --db $db bad.jsonl
sed '3s/"mean_us":[0-9.]*/"mean_us":1.5/' runs.jsonl >other.jsonl
same_after "one id, another content" 1 "is in the history with another content; nothing was added" syslat history add --db $db more.jsonl other.jsonl
same_after "one id twice in the input" 1 "is there twice with different contents" syslat history add --db $db more.jsonl <(sed '1s/"mean_us":[0-9.]*/"mean_us":1.5/' more.jsonl)
"$make_history" -n 20 -m 2 -x 10 "$noise" >mixed.jsonl
same_after "mixed machines" 1 "runs of several machines .*--mix-machines" syslat history add --db $db mixed.jsonl
expect "--mix-machines" 0 "20 runs added" syslat history add --db mix.db --mix-machines mixed.jsonl
check "--mix-machines: series of their own" test "$(syslat history list --db mix.db | wc -l)" -eq 9
same_after "not JSON" 1 "line 1: not JSON at byte 1" syslat history add --db $db "$noise"
same_after "no such file" 1 "missing: No such file" syslat history add --db $db missing
same_after "an empty file" 1 "no runs" syslat history add --db $db /dev/null
same_after "a wrong schema" 1 'schema: expected "syslatency/run/1"' syslat history add --db $db <(echo '{"schema":"x"}')
same_after "nothing" 2 "nothing to add" syslat history add --db $db
expect "--drop-torn" 0 "50 runs added" syslat history add --db torn.db --drop-torn torn.jsonl
one_line_error "no such series" 1 "no such series" syslat history check --db $db --series 99
one_line_error "no database" 1 "no history yet; syslat history add makes one" syslat history check --db missing.db
check "asking makes no database" test ! -e missing.db
one_line_error "no part" 2 "a part is wanted" syslat history
one_line_error "an unknown part" 2 '"nope" is no part' syslat history nope
python3 - <<'PY'
import sqlite3
c = sqlite3.connect("foreign.db"); c.execute("CREATE TABLE photos (id INTEGER)"); c.commit()
c = sqlite3.connect("newer.db"); c.execute("CREATE TABLE syslat_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)"); c.execute("INSERT INTO syslat_meta VALUES ('schema', '99')"); c.commit()
open("text.db", "w").write("this is no database, but a text of some length " * 50)
PY
sha256sum foreign.db newer.db text.db >sums
one_line_error "a foreign database" 1 "a database of another program" syslat history add --db foreign.db runs.jsonl
one_line_error "a newer schema" 1 "made by a newer syslatency \(schema 99, this one knows [0-9]+\)" syslat history add --db newer.db runs.jsonl
one_line_error "no database at all" 1 "no history of syslat" syslat history add --db text.db runs.jsonl
check "they are as they were" sha256sum -c sums
one_line_error "a folder that cannot be made" 1 "cannot make the folder|/dev/null" syslat history add --db /dev/null/x/h.db runs.jsonl
one_line_error "an unknown URL" 1 "postgresql://" syslat history add --db mysql://x/y runs.jsonl

# --- an older schema is brought up to date ---
python3 - <<'PY'
import sqlite3
c = sqlite3.connect("deep/er/h.db"); old = sqlite3.connect("old.db")
for line in c.iterdump():
    if "syslat_note" not in line:
        old.execute(line) if line not in ("BEGIN TRANSACTION;", "COMMIT;") else None
old.execute("UPDATE syslat_meta SET value = '1'"); old.commit()
PY
expect "schema 1 opens and is migrated" 0 "700 known already" syslat history add --db old.db runs.jsonl
check "and has what schema 2 has" syslat history acknowledge --db old.db --note known 100000000005

# --- SIGKILL in the middle of add ---
"$make_history" -n 30000 -x 4 "$noise" >many.jsonl
for delay in 0.3 0.5 0.8; do
	rm -f k.db* progress
	syslat history add --db k.db --batch 200 --progress many.jsonl >progress &
	pid=$!
	for ((i = 0; i < 600; i++)); do
		[ -s progress ] && break
		sleep 0.05
	done
	sleep $delay
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	told=$(tail -1 progress | grep -oE '[0-9]+' | head -1)
	check "killed after ${told:-0} runs were told: all of them are there, and whole" python3 - "${told:-0}" <<'PY'
import json, sqlite3, sys
told = int(sys.argv[1])
assert told > 0, "killed too early"
c = sqlite3.connect("k.db")
assert c.execute("PRAGMA integrity_check").fetchone() == ("ok",)
there = {r[0] for r in c.execute("SELECT uuid FROM syslat_run")}
wanted = [json.loads(l)["id"] for _, l in zip(range(told), open("many.jsonl"))]
assert all(u in there for u in wanted), "a run that was told is gone"
assert c.execute("SELECT COUNT(*) FROM syslat_value").fetchone()[0] == 4 * len(there)
PY
done
expect "add goes on after the kill" 0 "runs added" syslat history add --db k.db many.jsonl
check "and then has all" python3 -c "import sqlite3; assert sqlite3.connect('k.db').execute('SELECT COUNT(*) FROM syslat_run').fetchone()[0] == 30000"

# --- a fleet: ssh and scp that stay on this machine ---
mkdir -p fake hosts/a hosts/b
cat >fake/ssh <<'SH'
#!/bin/sh
[ "$3" != down ] && cd "$FLEET/hosts/$3" && sh -c "$4"
SH
cat >fake/scp <<'SH'
#!/bin/sh
host=${4%%:*}
cp $FLEET/hosts/$host/${4#*:} "$5"
SH
chmod +x fake/*
printf 'a\nb\n' >up.txt
printf 'a\ndown\n' >down.txt
export FLEET=$work
fleet() { PATH="$work/fake:$PATH" "$source_root/scripts/fleet/run-on-hosts" "$@"; }
expect "run-on-hosts: both hosts' runs are in the history" 0 "3 runs added" fleet fleet.db abc123 up.txt -- syslat run --arm x='echo 5' --reps 3
check "run-on-hosts: six runs of the commit" test "$(syslat history show --db fleet.db abc123 | grep -c '^run ')" -eq 6
expect "run-on-hosts: a host that is down is told, the other kept" 1 "not every host gave its records" fleet fleet.db def456 down.txt -- syslat run --arm x='echo 5' --reps 3
check "run-on-hosts: three runs of the other" test "$(syslat history show --db fleet.db def456 | grep -c '^run ')" -eq 3
finish
