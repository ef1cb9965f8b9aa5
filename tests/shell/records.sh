#!/usr/bin/env bash
# Records of real runs: each kind of run against docs/record.schema.json, then compared and reported.
. "$(dirname "$0")/lib.sh"

schema=$source_root/docs/record.schema.json
validate() { # validate FILE: every line; exits 99 without the validator
	python3 - "$schema" "$1" <<'PY'
import json, sys
try:
    import jsonschema
except ImportError:
    sys.exit(99)
validator = jsonschema.Draft7Validator(json.load(open(sys.argv[1])))
bad = 0
for line in open(sys.argv[2]):
    for error in validator.iter_errors(json.loads(line)):
        bad += 1
        print("/".join(map(str, error.absolute_path)), error.message[:120])
sys.exit(bad > 0)
PY
}

# run NAME ARGUMENT...: one real run whose record must be what the schema says.
run() {
	local name=$1 status
	shift
	gem_syslatency --warmup 0.1s --json "$work/$name.json" "$@" >"$work/$name.out" 2>&1
	status=$?
	if [ "$status" -eq 77 ]; then
		skip "$name" "$(tail -1 "$work/$name.out")"
		return
	fi
	validate "$work/$name.json" >"$work/$name.errors" 2>&1
	case $? in
	0)
		# 4: a run that a busy machine made invalid has its record all the same.
		if [ "$status" -eq 0 ] || [ "$status" -eq 4 ]; then
			ok "$name: the record is what the schema says"
		else
			not_ok "$name: exit $status"
			sed 's/^/# /' "$work/$name.out"
		fi
		;;
	99) skip "$name: schema" "python3-jsonschema is not installed" ;;
	*)
		not_ok "$name: the record is what the schema says"
		sed 's/^/# /' "$work/$name.errors" | head -20
		;;
	esac
}

run wakeup -n -t 0.5
run fixed -n -t 0.5 --interval 1ms
run wakeup-one-cpu -n -1 -t 0.5
run wakeup-null -t 0.5 --load null
run wakeup-gem -t 0.5 --load gem --backend shm --variant mapping --limit 300M
run wakeup-file-cache -t 0.5 --load file-cache --file-cache-dir "$source_root"
run thp -n -m -t 0.5 --pace 2ms
run thp-loads -m -t 0.5 --pace 2ms --load gem,thp --backend shm --variant stock --limit 300M

# Compared: the shortened reading finds the very numbers that a path into the whole record does.
check "real records are compared" syslat compare --json "$work/short.json" --metric max --include-invalid \
	"$work/wakeup.json" again="$work/wakeup.json"
check "by a path too" syslat compare --json "$work/path.json" --metric latency.max_us --include-invalid \
	"$work/wakeup.json" again="$work/wakeup.json"
check "both find the same numbers" python3 - "$work/short.json" "$work/path.json" "$work/wakeup.json" <<'PY'
import json, sys
short, path, record = (json.load(open(name)) for name in sys.argv[1:])
assert [a["median"] for a in short["arms"]] == [a["median"] for a in path["arms"]] == [record["latency"]["max_us"]] * 2
PY
expect "counters are still found by their path" 0 "^x +1 " syslat compare --metric counters.clock.elapsed_ms --include-invalid "$work/wakeup.json"
syslat report --mail --include-invalid "$work/wakeup.json" >"$work/mail.txt" 2>&1
expect "a real record as mail: command and machine" 0 '^Using "gem_syslatency .*" on ' bash -c "tr '\n' ' ' <'$work/mail.txt'"
check "72 columns" bash -c "! grep -nE '^.{73}' '$work/mail.txt'"
finish
