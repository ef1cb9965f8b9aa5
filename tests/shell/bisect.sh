# syslat bisect step under a real git bisect run: a repository of 100 commits, noise as published.
# shellcheck shell=bash source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
good=$source_root/tests/stats/data/tip-mean.txt
bad=$source_root/tests/stats/data/mapping-mean.txt
cd "$work" || exit 1

seq 100 120 >low; seq 200 220 >high
expect "a bad tree: 1" 1 "^bad after [0-9]+ runs" syslat bisect step --good low --bad high -- echo 210
expect "a good tree: 0" 0 "^good after [0-9]+ runs" syslat bisect step --good low --bad high -- echo 110
expect "neither: 125" 125 "neither like the good nor like the bad" syslat bisect step --good low --bad high -- echo 160
# shellcheck disable=SC2016 # for the command's own shell
expect "each run of a tree has a number of its own" 1 '"values":.201.0,202.0,203.0' \
	syslat bisect step --good low --bad high --json - -- sh -c 'echo $((200 + SYSLATENCY_BLOCK))'
one_line_error "sides that do not differ: 125" 125 "do not differ" syslat bisect step --good low --bad low -- echo 1
one_line_error "sides the wrong way round: 125" 125 "right way round" syslat bisect step --good high --bad low -- echo 1
one_line_error "a build that fails: 125" 125 "the build failed with exit 7" syslat bisect step --good low --bad high --build "exit 7" -- echo 1
one_line_error "a command that fails: 125" 125 "exit 1" syslat bisect step --good low --bad high -- false
one_line_error "a command that prints nothing: 125" 125 "no number" syslat bisect step --good low --bad high -- true
one_line_error "no such command: 125" 125 "nonsense" syslat bisect step --good low --bad high -- nonsense
one_line_error "wrong usage is never a verdict: 125" 125 "unknown|nope" syslat bisect step --nope
one_line_error "sides missing: 125" 125 "--good and --bad are wanted" syslat bisect step -- echo 1
one_line_error "no such file: 125" 125 "missing" syslat bisect step --good missing --bad high -- echo 1
one_line_error "bisect without a step" 2 '"step" is wanted' syslat bisect
check "JSON" bash -c "syslat bisect step --good low --bad high --json - -- echo 210 | python3 -c 'import json,sys; r=json.load(sys.stdin); assert r[\"verdict\"]==\"bad\" and r[\"runs\"]==len(r[\"values\"])'"
# The state of a tree outlives a restart: two values are there already.
printf '210\n211\n' >state
expect "--state goes on with earlier runs" 1 "^bad after" syslat bisect step --good low --bad high --state state -- echo 212
check "--state: gone when decided" test ! -e state
echo rubbish >state
one_line_error "--state that is none" 125 "no state of a step" syslat bisect step --good low --bad high --state state -- echo 212

# git bisect run over 100 commits; each measurement is drawn from the published series of its side.
cat >measure <<'SH'
#!/bin/sh
if [ "$(cat level)" = bad ]; then shuf -n 1 "$BAD_FILE"; else shuf -n 1 "$GOOD_FILE"; fi
SH
chmod +x measure
export GOOD_FILE=$good BAD_FILE=$bad PLANTED=37 GIT_CONFIG_GLOBAL=/dev/null
git init -q repository && cd repository || exit 1
git config user.name test && git config user.email test@localhost
for ((i = 0; i <= 100; i++)); do
	if [ "$i" -lt $PLANTED ]; then echo good >level; else echo bad >level; fi
	echo "$i" >number && git add -A && git commit -q -m "commit $i"
done
git bisect start HEAD HEAD~100 >/dev/null
git bisect run syslat bisect step --good "$good" --bad "$bad" -- ../measure >../log 2>&1
check "git bisect run finds the planted commit" grep -q "commit 37$" <(git log -1 --format=%s refs/bisect/bad)
check "in about seven steps" test "$(grep -cE '^(good|bad) after' ../log)" -le 9
sed -n 's/^\(good\|bad\) after/# &/p' ../log

# A kernel's bisection across reboots: a boot is a call, the installed commit the one that "runs".
cat >"$work/conf" <<'C'
TREE=$PWD GOOD=HEAD~100 BAD=HEAD GOOD_RUNS=$GOOD_FILE BAD_RUNS=$BAD_FILE
BUILD='! grep -qx 50 number' INSTALL='git rev-parse HEAD >"$work/booted"' RUNNING='cat "$work/booted"' REBOOT=true
MEASURE="cd $work/repository && ../measure"
C
git bisect reset >/dev/null 2>&1
export work
"$source_root/scripts/kernel-bisect" start "$work/conf" >../kernel.log 2>&1
check "kernel-bisect: the middle does not build and is skipped" grep -q "does not build" ../kernel.log
for ((boot = 0; boot < 20; boot++)); do
	[ -e "$work/conf.state.commit" ] || break
	"$source_root/scripts/kernel-bisect" step "$work/conf" >>../kernel.log 2>&1
done
check "kernel-bisect finds the planted commit after $boot boots" grep -q "commit 37$" <(git log -1 --format=%s refs/bisect/bad)
check "and is over" test ! -e "$work/conf.state.commit"
finish
