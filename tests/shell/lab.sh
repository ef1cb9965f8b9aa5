#!/usr/bin/env bash
# The lab's machine: real DRM devices under QEMU. Skipped where QEMU or Debian's kernel cannot be had.
# shellcheck source=tests/shell/lib.sh
. "$TEST_SOURCE_ROOT/tests/shell/lib.sh"
lab=$source_root/scripts/lab

one_line_error "no command is a usage error" 2 'lab: boot takes a command' "$lab" boot
one_line_error "an unknown option is a usage error" 2 "unknown argument '--colour'" "$lab" boot --colour -- true
one_line_error "an unknown variant is a usage error" 2 "unknown variant 'best'" "$lab" kernel best
one_line_error "a kernel that is not there" 77 'there is no kernel' "$lab" boot --kernel mine=/nowhere/bzImage -- true
one_line_error "a matrix without kernels says how to get them" 77 'scripts/(lab kernel|setup)' \
	env SYSLATENCY_LAB_CACHE="$work/cache" "$lab" matrix
one_line_error "an arm's kernel that is not there" 2 'there is no such file' \
	"$lab" matrix --kernel stock=/nowhere --kernel mapping=/nowhere --kernel mapping-v7=/nowhere --kernel mlock=/nowhere

# What a matrix hands to its boots, and when it boots, with a QEMU that only notes how it is called and answers "7".
mkdir -p "$work/bin" "$work/answer/lab" "$work/answer/out"
cat >"$work/bin/qemu-system-x86_64" <<EOF
#!/bin/bash
[ "\$1" != --version ] || { echo "QEMU of a test"; exit 0; }
serial=()
while [ \$# -gt 0 ]; do
	case "\$1" in
	-append) echo "\$2" >>"$work/boots" ;;
	file:*) serial+=("\${1#file:}") ;;
	esac
	shift
done
echo 7 >"\${serial[1]}"
: >"\${serial[2]}"
tar -c -z -f "\${serial[3]}" -C "$work/answer" lab out
EOF
chmod +x "$work/bin/qemu-system-x86_64"
echo 0 >"$work/answer/lab/status"
: >"$work/answer/lab/dmesg"
: >"$work/kernel"
boots() { # boots OPTION...: how many boots a matrix makes
	rm -rf "$work/matrix"
	: >"$work/boots"
	PATH=$work/bin:$PATH SYSLATENCY_LAB_CACHE=$work/cache "$lab" matrix --aa --clock virtual --reps 2 --kernel "k=$work/kernel" \
		--append extra=word --out "$work/matrix" "$@" -- echo 7 >"$work/matrix.out" 2>&1
	wc -l <"$work/boots"
}
if command -v busybox >/dev/null && command -v cpio >/dev/null && busybox --list | grep -x depmod >/dev/null; then
	check "a matrix boots each run once" test "$(boots)" -eq 4
	check "with the words of the kernel's command line" test "$(grep -c 'syslat.seed=[12] extra=word' "$work/boots")" -eq 4
	check "seed 1 and seed 2" test "$(grep -o 'syslat.seed=[0-9]*' "$work/boots" | sort -u | wc -l)" -eq 2
	check "and leaves a folder of runs" jq -es 'length == 4 and all(.metrics.value.value == 7)' "$work/matrix/runs.jsonl"
	check "what is kept is not booted again" test "$(boots)" -eq 0
	check "unless it is asked for" test "$(boots --again)" -eq 4
else
	skip "a matrix boots each run once" "busybox-static or cpio is not installed"
fi

"$lab" test >"$work/out" 2>"$work/err"
status=$?
if [ "$status" -eq 77 ]; then
	skip "the drm-dumb backend on real DRM devices" "$(head -1 "$work/err")"
else
	while read -r line; do
		case "$line" in
		"ok "*"# SKIP"*) skip "in the lab: ${line##*SKIP }" "see above" ;;
		"ok "*) ok "in the lab: ${line#*- }" ;;
		"not ok "*"# SKIP"*) skip "in the lab: ${line##*SKIP }" "see above" ;;
		"not ok "*) not_ok "in the lab: ${line#*- }" ;;
		"1.."*) ;;
		*) echo "# ${line#\# }" ;;
		esac
	done <"$work/out"
	check "the tests in the machine ran and passed" test "$status" -eq 0 -a -s "$work/out"
	sed 's/^/# /' "$work/err"
	# The words of the command, its status and its files come back as they are; the command is the whole program on
	# vgem. Without swap nothing scans the pinned pages, and the verdict says so.
	# shellcheck disable=SC2016 # for the shell in the machine
	expect "words of a command, and the status of gem_syslatency with dumb buffers in a memory group" 4 "^it's \"1\"  2$" \
		"$lab" boot --out "$work/gem" -- sh -c 'echo "$1"; echo kept >file; exec gem_syslatency -t 2 --interval 5ms \
			--backend drm-dumb --variant mapping --load gem --limit 320M --footprint 128M --json record.json' sh "it's \"1\"  2"
	check "its words on standard error" grep -q 'observed mapping or mapping-v7' "$work/expect.out" "$work/expect.err"
	check "its files come back" grep -qx kept "$work/gem/file"
	check "its record names driver, variant and pinned bytes" jq -e '.pin_method == "driver" and .backend == "drm-dumb" and
		.pinned_bytes >= 134217728 and .load_stats.gem.observed_unevictable_pages > 30000' "$work/gem/record.json"
	check "virtual times are told, emulated ones are suspect, or KVM ran" jq -e '
		if .environment.clock == "virtual" then (.notes | any(test("times are virtual")))
		elif .environment.hypervisor | startswith("TCG") then (.validity.reasons | any(test("emulated")))
		else true end' "$work/gem/record.json"
fi
finish
