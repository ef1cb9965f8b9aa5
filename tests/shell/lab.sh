#!/usr/bin/env bash
# The lab's machine: real DRM devices under QEMU. Skipped where QEMU or Debian's kernel cannot be had.
# shellcheck source=tests/shell/lib.sh
. "$TEST_SOURCE_ROOT/tests/shell/lib.sh"
lab=$source_root/scripts/lab

one_line_error "no command is a usage error" 2 'lab: boot takes a command' "$lab" boot
one_line_error "an unknown option is a usage error" 2 "unknown argument '--colour'" "$lab" boot --colour -- true
one_line_error "an unknown variant is a usage error" 2 "unknown variant 'best'" "$lab" kernel best
one_line_error "a kernel that is not there" 77 'there is no kernel' "$lab" boot --kernel mine=/nowhere/bzImage -- true

"$lab" test >"$work/out" 2>"$work/err"
status=$?
if [ "$status" -eq 77 ]; then
	skip "the drm-dumb backend on real DRM devices" "$(head -1 "$work/err")"
else
	while read -r line; do
		case "$line" in
		"ok "*) ok "vgem: ${line#*- }" ;;
		"not ok "*"# SKIP"*) skip "vgem: ${line##*SKIP }" "see above" ;;
		"not ok "*) not_ok "vgem: ${line#*- }" ;;
		"1.."*) ;;
		*) echo "# ${line#\# }" ;;
		esac
	done <"$work/out"
	check "the tests in the machine ran and passed" test "$status" -eq 0 -a -s "$work/out"
	sed 's/^/# /' "$work/err"
	# The words of the command, its status and its files come back as they are.
	# shellcheck disable=SC2016 # for the shell in the machine
	expect "status and words of a command" 5 "^it's \"1\"  2$" \
		"$lab" boot --out "$work/back" --memory 512M -- sh -c 'echo "$1"; echo kept >file; exit 5' sh "it's \"1\"  2"
	check "its files come back" grep -qx kept "$work/back/file"
fi
finish
