#!/usr/bin/env bash
# gem_syslatency on an Intel GPU that the preloaded double plays: every option of the load, and failures.
# shellcheck source=tests/shell/lib.sh
. "$TEST_SOURCE_ROOT/tests/shell/lib.sh"
double=$build/tests/double/libi915double.so
if [ ! -e "$double" ]; then
	skip "gem_syslatency on i915" "built without libdrm"
	finish
	exit 0
fi
export I915_DOUBLE_TREE=$work/tree I915_DOUBLE_LOG=$work/log
cd "$work" || exit 1

# on PART [FAILURE] -- OPTION...: runs the program on that part; the double's log starts anew.
on() {
	local part=$1 failure=""
	shift
	[ "$1" = -- ] || { failure=$1 && shift; }
	shift
	rm -f "$I915_DOUBLE_LOG" record.json
	I915_DOUBLE=$part I915_DOUBLE_FAIL=$failure ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" \
		LD_PRELOAD=$double timeout -k 1 60 gem_syslatency "$@"
}

no_breach() {
	grep -q '^closed:' "$I915_DOUBLE_LOG" && ! grep '^breach' "$I915_DOUBLE_LOG"
}

# counted NAME: the greatest count of that name over the nodes that were closed.
counted() {
	sed -n "s/^closed:.* $1=\([0-9]*\).*/\1/p" "$I915_DOUBLE_LOG" | sort -n | tail -1
}

record() {
	jq -e "$1" record.json
}

expect "the drop-in call finds the GPU" 0 'cycles=[1-9][0-9]*, latency mean=[0-9.]+us max=' on kbl -- -t 1
check "every call was as the uAPI says" no_breach
check "a buffer ran on four engines" test "$(counted submitted)" -ge "$((4 * $(counted pwritten) - 40))"

for part in tgl adl dg2 ivb; do
	expect "$part: the load runs" 0 'load gem: [1-9]' on "$part" -- -t 1 --load gem --backend i915 --scope machine --json record.json
	check "$part: every call was as the uAPI says" no_breach
	check "$part: the record names the backend and what was found" \
		record '.backend == "i915" and .load_stats.gem.submissions > 0 and (.notes | tostring | test("engines"))'
done
check "adl wrote through mappings alone" test "$(on adl -- -t 1 >/dev/null && counted pwritten)" -eq 0
expect "dg2: local memory is said" 0 'local memory' on dg2 -- -t 1 --load gem --backend i915 --scope machine

expect "-i and -r" 0 'cycles=[1-9]' on kbl -- -t 1 -i -r 500
check "-i and -r: every call was as the uAPI says" no_breach
expect "-r below zero is a size" 0 'batches of 64K' on kbl -- -t 1 -r -65536 --load gem --backend i915 --scope machine
expect "-m leaks to the shrinker" 0 'load gem: [1-9]' \
	env I915_DOUBLE_PURGE=100000000 bash -c "$(declare -f on); double=$double; on kbl -- -t 2 -m --pace 5ms --load gem --backend i915 --scope machine --json record.json"
check "-m: every call was as the uAPI says" no_breach
check "-m: what was purged was closed, and only that" test "$(counted purged)" -gt 0 -a "$(counted left)" -gt 0
check "-m: released in the shrinker" record '.release_context == "shrinker"'
one_line_error "-m under a memory limit" 77 'shrinker' on kbl -- -t 1 -m --limit 256M --load gem --backend i915
expect "the label is contradicted by what was observed" 4 'not the variant "mlock"' \
	on kbl -- -t 1 --variant mlock --load gem --backend i915 --scope machine
expect "-n leaves the GPU alone" 0 'cycles=0' on kbl -- -t 1 -n -r 500
check "-n: no node was opened" test ! -e "$I915_DOUBLE_LOG"

expect "interrupted calls are restarted" 0 'load gem: [1-9]' \
	on kbl 'eintr*2,eagain*1' -- -t 1 --load gem --backend i915 --scope machine
for failure in "eio hung" "enodev gone"; do
	expect "${failure% *} in the middle ends the load with a reason" 4 "${failure#* }" \
		on kbl "${failure% *}@50" -- -t 1 --load gem --backend i915 --scope machine --json record.json
	check "${failure% *}: the record is there and says so" \
		record ".load_stats.gem.died and (.notes | tostring | test(\"${failure#* }\"))"
done
expect "a full address space is said" 4 'address space' on kbl enospc@50 -- -t 1 --load gem --backend i915 --scope machine
expect "a load that gets no memory waits, and the run says that it proves nothing" 4 'not one buffer' \
	on kbl enomem@100 -- -t 1 --load gem --backend i915 --scope machine --json record.json
check "out of memory is counted, and is no death" record '.load_stats.gem | .allocation_failures > 0 and (.died | not)'
one_line_error "a wedged GPU" 1 'wedged' on kbl eio@1 -- -t 1 --load gem --backend i915
# Found after 2 s: the window may have begun, then there is a record that is invalid.
on kbl hang@1 -- -t 1 --load gem --backend i915 >"$work/hang" 2>&1
status=$?
check "a hung GPU fails the run" test "$status" -eq 1 -o "$status" -eq 4
check "a hung GPU is named" grep -q 'busy or hung' "$work/hang"
one_line_error "no permission" 77 'no permission' on kbl eacces -- -t 1 --load gem --backend i915
one_line_error "another filter" 77 '8086:5912' on kbl -- -t 1 --load gem --backend i915 --device pci:device=9999
one_line_error "a filter that is none" 2 'not understood' on kbl -- -t 1 --load gem --backend i915 --device pci:colour=red
expect "auto falls back to shm and says why" 0 'backend: shm .*no permission' on kbl eacces -- -t 1 --load gem
finish
