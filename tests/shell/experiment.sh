#!/usr/bin/env bash
# experiment.json of real experiments against docs/experiment.schema.json: every rule, cut short and resumed.
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

schema=$source_root/docs/experiment.schema.json
python3 -c 'import jsonschema' 2>/dev/null || {
	skip "experiments are what the schema says" "python3-jsonschema is not installed"
	finish
	exit 0
}
validate() { # validate FILE
	python3 - "$schema" "$1" <<'PY'
import json, sys
import jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
bad = list(jsonschema.Draft7Validator(schema).iter_errors(json.load(open(sys.argv[2]))))
for error in bad:
    print("/".join(map(str, error.absolute_path)), error.message[:150])
sys.exit(len(bad) > 0)
PY
}
refuses() { ! validate "$1"; }
make() { # make NAME ARGUMENT...: an experiment of that name
	local name=$1
	shift
	syslat run --quiet --quiet-end --seed 3 -o "$name" "$@" >"$name.out" 2>&1 || { cat "$name.out"; return 1; }
}

check "fixed" make fixed --reps 2 --warmup-runs 1 --timeout 90s --unit us --arm a='echo 10' --arm b='echo "x 20.5us"'
check "fixed: what the schema says" validate fixed/experiment.json
check "until decided" make decided --until-decided --max-reps 12 --better higher --arm a='echo 10' --arm b='echo 30' --arm c='echo 10'
check "it looked, and decided one" jq -e '(.looks | length) > 0 and
	([.arms[] | select(.decision == "faster" or .decision == "slower")] | length) == 1' decided/experiment.json
check "until decided: what the schema says" validate decided/experiment.json
check "target ci" make precise --target-ci 5% --max-reps 12 --arm a='echo 10' --arm b='echo 11'
check "it looked at each arm" jq -e '.rule_met and (.looks[0].arms | length) == 2' precise/experiment.json
check "target ci: what the schema says" validate precise/experiment.json

# A kernel that is not booted leaves the rest for later; a failing arm leaves failed runs.
check "waits for a kernel" make waits --reps 1 --arm-kernel b=0.0.1 --arm a='echo 1' --arm b='echo 2'
check "waits for a kernel: what the schema says" validate waits/experiment.json
make fails --reps 1 --arm a='echo 1' --arm b='exit 3;' >/dev/null
check "runs that fail: what the schema says" validate fails/experiment.json
syslat run --quiet --quiet-end --resume fails >/dev/null 2>&1
check "resumed: what the schema says" validate fails/experiment.json

# The schema refuses what is no experiment.
jq 'del(.seed)' fixed/experiment.json >no-seed.json
jq '.stopping.rule = "sometimes"' fixed/experiment.json >rule.json
jq '.arms[0].comand = []' fixed/experiment.json >misspelt.json
jq '.looks[0].pairs[0].log_p = "small"' decided/experiment.json >look.json
for wrong in no-seed rule misspelt look; do
	check "refused: $wrong" refuses "$wrong.json"
done
finish
