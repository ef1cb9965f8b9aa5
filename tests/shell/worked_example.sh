# The worked example of docs/history.md, run as it stands there.
# shellcheck shell=bash source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$source_root/docs/history.md" >example.sh
if ! syslat history list --db none.db 2>&1 | grep -q "no history yet"; then
	skip "the worked example" "built without SQLite"
	finish
	exit 0
fi
export GIT_CONFIG_GLOBAL=/dev/null
check "every line of it works" bash -euo pipefail example.sh
tail -25 check.out | sed 's|^|# |'
cp check.out log
cd guard || exit 1
expect "the change is known in the end" 0 "acknowledged: the price of correctness" syslat history check
expect "it was confirmed by fresh runs" 0 "confirmed by fresh runs: [0-9]+ before, [0-9]+ after" syslat history check
at=$(syslat history check --json - | sed 's/.*"at":"\([0-9a-f]*\)".*/\1/')
number=$(git -C tree show -s --format=%s "$at")
check "and lies at the planted commit or beside it ($number)" grep -qE "^change (18|19|20)$" <<<"$number"
check "the bisect ended at the planted commit" grep -q "change 19$" <(grep -A12 "is the first bad commit" "$work/log")
check "the page is there" grep -q "is slower than" report.html
finish
