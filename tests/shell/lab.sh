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
