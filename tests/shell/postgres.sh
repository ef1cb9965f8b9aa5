# The history on a real PostgreSQL server, started by this test: many writers at once, a server that goes away.
# shellcheck shell=bash source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
noise=$source_root/tests/stats/data/tip-mean.txt
bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -1)
[ -n "$bin" ] || bin=$(dirname "$(command -v initdb 2>/dev/null || echo /nonexistent/initdb)")
cd "$work" || exit 1
if [ ! -x "$bin/initdb" ] || ! syslat history list --db postgresql://nobody@127.0.0.1:1/x 2>&1 | grep -q "is the server there"; then
	skip "PostgreSQL" "no server is installed (postgresql), or built without libpq"
	finish
	exit 0
fi
# A server refuses to run as root.
as_owner=()
if [ "$(id -u)" -eq 0 ]; then
	owner=postgres
	id postgres >/dev/null 2>&1 || owner=nobody
	as_owner=(setpriv "--reuid=$owner" "--regid=$(id -g "$owner")" --clear-groups)
	chmod 755 "$work" && mkdir server && chown "$owner" server
else
	mkdir server
fi
stop() {
	"${as_owner[@]}" "$bin/pg_ctl" -D "$work/server/data" -m immediate stop >/dev/null 2>&1
	rm -rf "$work"
}
trap stop EXIT
"${as_owner[@]}" "$bin/initdb" -D "$work/server/data" -U syslat -A trust >init.log 2>&1
"${as_owner[@]}" "$bin/pg_ctl" -D "$work/server/data" -w -l "$work/server/log" \
	-o "-k $work/server -h '' -c fsync=off -c max_connections=30" start >>init.log 2>&1
url="postgresql://syslat@/postgres?host=$work/server"
if ! syslat history list --db "$url" >list.out 2>&1 && ! grep -q "no such series" list.out; then
	skip "PostgreSQL" "a server could not be started: $(tail -1 init.log)"
	finish
	exit 0
fi

# Eight writers at once: 7 with runs of their own, and all with the same first 200 too.
"$build/tests/history/make_history" -n 200 -x 100 "$noise" >shared.jsonl
for writer in 1 2 3 4 5 6 7 8; do
	{ cat shared.jsonl; "$build/tests/history/make_history" -n 500 -m 2 -x "$writer" "$noise"; } >"$writer.jsonl"
done
pids=()
for writer in 1 2 3 4 5 6 7 8; do
	syslat history add --db "$url" --batch 50 --mix-machines "$writer.jsonl" >"$writer.out" 2>&1 &
	pids+=($!)
done
failed=0
for pid in "${pids[@]}"; do wait "$pid" || failed=$((failed + 1)); done
check "eight writers at once, none fails" test $failed -eq 0
[ $failed -eq 0 ] || sed 's/^/# /' ./*.out
count() { syslat history export --db "$url" --metric mean | tail -n +2 | wc -l; }
check "and nothing is lost: 4,200 runs" test "$(count)" -eq 4200
expect "adding again adds nothing" 0 "0 runs added, 700 known already" syslat history add --db "$url" --mix-machines 3.jsonl
expect "check works there" 0 "^8 series, " syslat history check --db "$url"
id=$(head -1 shared.jsonl | python3 -c 'import json,sys; print(json.loads(sys.stdin.readline())["id"])')
expect "show" 0 "series [0-9]+: arm0 mean" syslat history show --db "$url" "$id"
sed '3s/"mean_us":[0-9.]*/"mean_us":1.5/' shared.jsonl >other.jsonl
one_line_error "one id, another content" 1 "another content; nothing was added" syslat history add --db "$url" other.jsonl
check "acknowledge" syslat history acknowledge --db "$url" --note known 100000000003
expect "rm" 0 "1 runs removed" syslat history rm --db "$url" "$id"
check "the removed one is gone" test "$(count)" -eq 4199
# The same tables give the same verdicts as SQLite's.
"$build/tests/history/make_history" -n 700 -r 7 -s 60 -f 2 -x 77 "$noise" | sed 's/0000000000abc000/0000000000abc0ff/' >step.jsonl
syslat history add --db "$url" step.jsonl >/dev/null && syslat history add --db s.db step.jsonl >/dev/null
verdicts() { syslat history check --db "$1" --machine 0000000000abc0ff --json - | sed -E 's/"series":[0-9]+/"series":0/g'; }
check "the step is seen" grep -q regression <(verdicts "$url")
check "the same verdicts as from SQLite" diff <(verdicts "$url") <(verdicts s.db)
# The server goes away.
"${as_owner[@]}" "$bin/pg_ctl" -D "$work/server/data" -m immediate stop >/dev/null 2>&1
one_line_error "a server that is gone" 1 "is the server there" syslat history add --db "$url" shared.jsonl
one_line_error "a password is not told" 1 "postgresql://u@127.0.0.1:1/x: " syslat history list --db "postgresql://u:secret@127.0.0.1:1/x"
finish
