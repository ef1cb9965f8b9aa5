# TAP for shell tests. Source it, then: check "what" command...; skip "what" "why"; finish.
# Every fault prints what was seen; nothing here passes by default.
set -u
build=${TEST_BUILD_ROOT:?run me through meson test}
source_root=${TEST_SOURCE_ROOT:?}
export PATH="$build/benchmarks:$build/tools:$PATH"
work=$(mktemp -d "${TMPDIR:-/tmp}/syslatency-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
tap_count=0

ok() { tap_count=$((tap_count + 1)); echo "ok $tap_count - $1"; }
not_ok() { tap_count=$((tap_count + 1)); echo "not ok $tap_count - $1"; }
skip() { tap_count=$((tap_count + 1)); echo "ok $tap_count - $1 # SKIP $2"; }

# As a user without privilege; only where can_be_nobody.
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
can_be_nobody() { [ "$(id -u)" -eq 0 ] && "${nobody[@]}" true 2>/dev/null; }

# for_nobody PROGRAM: a copy that such a user may run, who may also write in $work. He cannot enter a
# checkout that lies below /root.
for_nobody() {
	chmod 777 "$work"
	mkdir -p "$work/nobody"
	cp -u "$(command -v "$1")" "$work/nobody/$1"
	echo "$work/nobody/$1"
}

# check "what" command...: passes when the command exits 0; shows its output when not.
check() {
	local what=$1
	shift
	if "$@" >"$work/check.out" 2>&1; then
		ok "$what"
	else
		local status=$?
		not_ok "$what"
		echo "# status $status: $*"
		sed 's/^/# /' "$work/check.out" | head -40
	fi
}

# expect "what" STATUS PATTERN command...: exit status, and a pattern (grep -E) in stdout+stderr.
expect() {
	local what=$1 status=$2 pattern=$3 seen
	shift 3
	"$@" >"$work/expect.out" 2>"$work/expect.err"
	seen=$?
	if [ "$seen" -eq "$status" ] && cat "$work/expect.out" "$work/expect.err" | grep -qE -- "$pattern"; then
		ok "$what"
	else
		not_ok "$what"
		echo "# wanted status $status and /$pattern/, saw status $seen: $*"
		cat "$work/expect.out" "$work/expect.err" | head -30 | sed 's/^/# /'
	fi
}

# one_line_error "what" STATUS PATTERN command...: as expect, and standard error is exactly one line, standard output empty.
one_line_error() {
	local what=$1
	expect "$@"
	if [ "$(wc -l <"$work/expect.err")" -eq 1 ] && [ ! -s "$work/expect.out" ]; then
		ok "$what: one line"
	else
		not_ok "$what: one line"
		cat "$work/expect.out" "$work/expect.err" | head -30 | sed 's/^/# /'
	fi
}

finish() { echo "1..$tap_count"; }
