#!/usr/bin/env bash
# The lab's driver that speaks i915, under our backend and IGT's program. Skipped where the lab's kernel is not built.
# LAB_I915_KERNEL=debug runs the same on the kernel that finds a driver's faults.
# shellcheck source=tests/shell/lib.sh
. "$TEST_SOURCE_ROOT/tests/shell/lib.sh"
igt=/usr/libexec/igt-gpu-tools/benchmarks/gem_syslatency
kernel=${LAB_I915_KERNEL:-mapping-v7}

cat >"$work/steps" <<'STEPS'
mount -t debugfs debugfs /sys/kernel/debug
CMOCKA_MESSAGE_OUTPUT=TAP /out/test_i915_lab 2>&1 | sed 's/^/ioctls: /'
umount /sys/kernel/debug
cd /sys/module/i915lab/parameters || exit 1
seen() { echo "$1 $(cat "$2")"; }
for variant in stock mapping mapping-v7 mlock; do
	echo $variant >variant
	gem_syslatency -t 1 --backend i915 --scope machine --load gem --variant ${variant%-v7} 2>&1 |
		sed -n "s/.*observed /observed $variant: /p"
	pin_cycle --backend i915 --variant ${variant%-v7} --sizes 2M,16M --rounds 2 --parts cold >/dev/null 2>&1
	echo "pin_cycle $variant $?"
	gem_syslatency -m -t 3 --pace 10ms --backend i915 --scope machine --load gem,thp=64M --variant ${variant%-v7} --force >/dev/null 2>&1
	seen "purged $variant" purged_objects
done
gem_syslatency -t 4 --backend i915 --scope machine --footprint 128M --load gem,swap=400M --swap zram:512M --variant mlock --force >/dev/null 2>&1
seen released released_pages
echo never-heard-of >variant 2>/dev/null || echo "refused"
for flags in "" -i "-r 100" -m -b; do
	[ ! -x /out/gem_syslatency ] || echo "igt$flags $(/out/gem_syslatency -t 1 $flags 2>&1 | tail -n 1)"
done
dmesg | grep -E 'WARNING|BUG|Call Trace|possible|inconsistent|KASAN' | sed 's/^/fault /'
echo end
STEPS

files=(--file "$work/steps" --file "$build/tests/backends/test_i915_lab")
[ ! -x "$igt" ] || files+=(--file "$igt")
"$source_root/scripts/lab" boot --kernel "$kernel" --clock host --memory 640M --timeout "${LAB_I915_TIMEOUT:-300}" \
	"${files[@]}" -- sh /out/steps >"$work/out" 2>"$work/err"
if [ $? -eq 77 ]; then
	skip "the driver that speaks i915" "$(head -n 1 "$work/err")"
	finish
	exit
fi
sed 's/^/# /' "$work/out" "$work/err"
has() { grep -qE "$1" "$work/out"; } # has PATTERN
ioctls_pass() { has '^ioctls: ok' && ! has '^ioctls: not ok'; }
value() { sed -n "s/^$1 //p" "$work/out"; }

check "the machine came to the end of its steps" has '^end$'
check "its ioctls behave as i915's" ioctls_pass
check "stock pages stay on their list" has '^observed stock: stock'
check "mapping's pages leave it" has '^observed mapping: mapping'
check "mapping-v7's pages leave it" has '^observed mapping-v7: mapping'
check "mlock's pages are locked" has '^observed mlock: mlock'
before=0
for variant in stock mapping mapping-v7 mlock; do
	check "buffers go through their life: $variant" has "^pin_cycle $variant 0$"
	now=$(value "purged $variant")
	check "leaked buffers are purged by the shrinker: $variant" test "${now:-0}" -gt "$before"
	before=${now:-0}
done
check "idle buffers are let go of where there is swap" test "$(value released)" -gt 0
check "an unknown variant is refused" has '^refused$'
if [ -x "$igt" ]; then
	# With -m its probe may leave the load no time at all.
	check "IGT's program runs with -m" has '^igt-m gem_syslatency: cycles='
	for flags in "" -i "-r 100" -b; do
		check "IGT's program runs${flags:+ with $flags}" has "^igt$flags gem_syslatency: cycles=[1-9]"
	done
else
	skip "IGT's program runs" "intel-gpu-tools is not installed"
fi
check "the kernel found no fault" test "$(grep -c '^fault' "$work/out")" -eq 0
finish
