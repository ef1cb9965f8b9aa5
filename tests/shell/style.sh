#!/usr/bin/env bash
# What a reader trips over: formatting, left-over marks, overlong files, shell faults.
. "$(dirname "$0")/lib.sh"
cd "$source_root" || exit 1
sources=$(git ls-files '*.c' '*.h' 2>/dev/null | grep -v '/golden/')
[ -n "$sources" ] || sources=$(find lib benchmarks tools tests -name '*.[ch]')

report() { # report "what" FAULTS
	if [ -z "$2" ]; then ok "$1"; else
		not_ok "$1"
		echo "$2" | head -20 | sed 's/^/# /'
	fi
}

if command -v clang-format >/dev/null; then
	# shellcheck disable=SC2086
	report "clang-format leaves the sources as they are" \
		"$(clang-format --dry-run $sources 2>&1 | grep -E 'warning:' | cut -d: -f1 | sort | uniq -c)"
else
	skip "clang-format leaves the sources as they are" "clang-format is not installed"
fi
# shellcheck disable=SC2086
report "every source names its licence" "$(grep -L 'SPDX-License-Identifier: MIT' $sources)"
# shellcheck disable=SC2086
report "no left-over marks" "$(grep -nE '\b(TODO|FIXME|XXX|HACK)\b' $sources)"
# shellcheck disable=SC2086
report "no file over 600 lines" "$(wc -l $sources | awk '$2 != "total" && $1 > 600 { print $2, $1 }' | grep -v '/golden' || true)"
if command -v shellcheck >/dev/null; then
	scripts=$(git ls-files 2>/dev/null | while read -r file; do
		head -n 1 "$file" 2>/dev/null | grep -aqE '^#!.*\b(ba)?sh\b' && echo "$file"
	done)
	# shellcheck disable=SC2086
	report "shellcheck finds no fault" "$(shellcheck -x -S warning $scripts 2>&1 | grep -E '^In |SC[0-9]+' | head -20)"
else
	skip "shellcheck finds no fault" "shellcheck is not installed"
fi
if command -v mandoc >/dev/null; then
	report "mandoc finds no fault in the man pages" "$(ls man/*.[1-9] >/dev/null 2>&1 && mandoc -Tlint -Wwarning man/*.[1-9] 2>&1 | head)"
else
	skip "mandoc finds no fault in the man pages" "mandoc is not installed"
fi
finish
