#!/usr/bin/env bash
# Runs a test that speaks TAP. cmocka writes a skipped case as "not ok 3 # SKIP name", which readers of TAP take
# for a failure: here it becomes "ok 3 - name # SKIP". What is no TAP (print_message, a program's own words) becomes
# a diagnostic, which readers of TAP pass over.
"$@" | sed -u -E -e 's/^not ok ([0-9]+) # SKIP (.*)$/ok \1 - \2 # SKIP/' \
	-e '/^(ok|not ok|[0-9]+\.\.[0-9]+|#|Bail out!|TAP version)/!s/^/# /'
exit "${PIPESTATUS[0]}"
