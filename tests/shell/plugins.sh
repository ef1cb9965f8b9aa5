#!/usr/bin/env bash
# A plugin is one new file and one word in a Meson list; nothing else knows its name. A toy of every kind
# is added to a copy of the tree, built, and looked for in --help, syslat check, the man page and a record.
# shellcheck shell=bash source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$source_root" || exit 1
tree=$work/tree
mkdir "$tree"
tar -c --exclude='./build*' --exclude=./.git --exclude=./results . | tar -x -C "$tree"

# --- the toys ---
# add KIND ROOM: the toy's file is standard input.
add() {
	{
		echo '/* SPDX-License-Identifier: MIT */'
		cat
	} >"$tree/lib/$2/toy.c"
	sed -i "0,/$1_names += \[/s//$1_names += ['toy', /" "$tree/lib/$2/meson.build"
}

add measure measures <<'C'
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "ops.h"

static struct {
	int64_t value;
} own;

static const struct option_row options[] = {
	{.kind = OPTION_INT, .long_name = "toy-value", .argument = "N", .settings = &own,
	 .maximum = 9, .help = "what the toy measure is told"},
	{0},
};

static int check(const struct measure_settings *settings, struct message *message)
{
	return getenv("TOY_FAILS") ? message_set(message, -ENODEV, "no toy to measure") : 0;
}

static void loop(struct measure_thread *thread)
{
	while (!atomic_load(thread->stop)) {
		int64_t start_ns = clock_now_ns();

		clock_sleep_for(NS_PER_MS);
		sampling_add(thread->shared, start_ns, clock_now_ns() - start_ns);
		for (int phase = 0; phase < 2; phase++)
			sampling_add_phase(thread->shared, phase, phase + 1);
	}
}

static const char *const phases[] = {"open", "close", NULL};

const struct measure_ops measure_toy = {
	.name = "toy", .summary = "sleeps", .options = options, .cure = "modprobe toy-measure",
	.subject = SUBJECT_INTERVAL, .phases = phases, .check = check, .loop = loop,
};
C

add load loads <<'C'
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "ops.h"

static struct {
	const char *word;
} own;

static const struct option_row options[] = {
	{.kind = OPTION_STRING, .long_name = "toy-word", .argument = "WORD", .settings = &own,
	 .help = "what the toy load is told"},
	{0},
};

static int check(const struct load_settings *settings, struct message *message)
{
	return getenv("TOY_FAILS") ? message_set(message, -ENODEV, "no toy to load") : 0;
}

static int run(struct load *load)
{
	atomic_store(&load->shared->state, LOAD_STEADY);
	while (!load_stopping(load)) {
		clock_sleep_for(NS_PER_MS);
		atomic_fetch_add(&load->shared->ops, 1);
		atomic_fetch_add(&load->shared->extra[0], own.word ? 2 : 1);
	}
	return 0;
}

static const char *const extras[] = {"toy_turns", NULL};
static const struct claim claims[] = {
	{.name = "the toy turned", .witness = "load_stats.toy.toy_turns", .test = CLAIM_AT_LEAST,
	 .bound = 1e12, .failure = CLAIM_CASTS_DOUBT, .why = "it is a toy", .advice = "play longer"},
	{0},
};

const struct load_ops load_toy = {
	.name = "toy", .summary = "turns", .options = options, .flags = LOAD_IDLES,
	.cure = "modprobe toy-load", .extra_names = extras, .claims = claims, .check = check, .run = run,
};
C

add backend backends <<'C'
#include <errno.h>
#include <stdlib.h>

#include "ops.h"

extern const struct backend_ops backend_toy;

static struct {
	bool quick;
} own;

static const struct option_row options[] = {
	{.kind = OPTION_FLAG, .long_name = "toy-quick", .settings = &own,
	 .help = "what the toy backend is told"},
	{0},
};

static int open_toy(const struct backend_settings *settings, struct backend **ret_backend,
		    struct message *message)
{
	struct backend *backend;

	if (getenv("TOY_FAILS"))
		return message_set(message, -ENODEV, "no toy for buffers");
	backend = calloc(1, sizeof(*backend));
	backend->ops = &backend_toy;
	backend->settings = *settings;
	backend->pin_method = own.quick ? "quick" : "slow";
	backend->release_context = "load";
	*ret_backend = backend;
	return 0;
}

static int allocate(struct backend *backend, struct buffer *buffer)
{
	buffer->private_data = malloc(64);
	return 0;
}

static int release(struct backend *backend, struct buffer *buffer)
{
	free(buffer->private_data);
	return 0;
}

static void close_toy(struct backend *backend)
{
	free(backend);
}

const struct backend_ops backend_toy = {
	.name = "toy", .summary = "buffers of a toy", .options = options,
	.flags = BACKEND_MAKES_VARIANTS, .cure = "modprobe toy-backend",
	.variants = 1 << VARIANT_STOCK, .open = open_toy, .allocate = allocate, .release = release,
	.close = close_toy,
};
C

add report reports <<'C'
#include "ops.h"

static int compare(FILE *stream, const struct comparison_report *report)
{
	fputs("a toy of a comparison\n", stream);
	return 0;
}

const struct report_ops report_toy = {
	.name = "toy", .summary = "says that it is one", .compare = compare};
C

add export exports <<'C'
#include "compare/arms.h"
#include "ops.h"

static struct {
	const char *word;
} own = {"toys"};

static const struct option_row options[] = {
	{.kind = OPTION_STRING, .long_name = "toy-unit", .argument = "WORD", .settings = &own,
	 .help = "what the toy export is told"},
	{0},
};

static int write_toy(FILE *stream, const struct arm_set *set,
		     const struct export_settings *settings, struct message *message)
{
	fprintf(stream, "%zu %s\n", set->count, own.word);
	return 0;
}

const struct export_ops export_toy = {
	.name = "toy", .summary = "counts arms", .options = options, .write = write_toy};
C

add import imports <<'C'
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "imports/import.h"

static bool knows(const char *text)
{
	return strncmp(text, "TOY ", 4) == 0;
}

static int read_toy(const char *text, const struct import_settings *settings,
		    struct import_list *list, struct message *message)
{
	struct record *record = import_new(list, settings, "toy");

	return record ? import_metric(record, "toys", strtod(text + 4, NULL), "") : -ENOMEM;
}

const struct import_ops import_toy = {
	.name = "toy", .summary = "a count of toys", .knows = knows, .read = read_toy};
C
check "each is one new file, and one word in a list" test "$(diff -rq "$source_root/lib" "$tree/lib" | grep -c toy.c)$(
	diff -r "$source_root/lib" "$tree/lib" | grep -c "^> .*'toy'")" = 66

# --- built as this tree was; from the cache what is the same ---
command -v ccache >/dev/null && export CC="ccache ${CC:-cc}" CCACHE_NOHASHDIR=1 CCACHE_BASEDIR="$tree"
option() { meson introspect --buildoptions "$build" | jq -r ".[] | select(.name == \"$1\") | .value"; }
check "the tree with toys builds" sh -c 'meson setup "$1/build-test" "$1" -Dtests=false -Dbuildtype="$2" -Dwerror="$3" &&
	ninja -C "$1/build-test"' sh "$tree" "$(option buildtype)" "$(option werror)"
export PATH="$tree/build-test/benchmarks:$tree/build-test/tools:$PATH"

# --- and knows them ---
gem_syslatency --help | tr -s ' \n' ' ' >"$work/help"
for text in 'what is timed: [^:]*toy' ' --load LIST [^;]*toy' 'come from: [^;]*toy' '--toy-value N what the toy measure' \
	'--toy-word WORD what the toy load' '--toy-quick what the toy backend'; do
	check "--help has $text" grep -qE -- "$text" "$work/help"
done
for option in toy-value toy-word toy-quick; do
	check "the man page has --$option" grep -q "^.It Fl -$option" "$tree/build-test/man/gem_syslatency.1"
done
one_line_error "an option of a plugin is checked" 2 'not within 0 to 9' gem_syslatency --toy-value 10
syslat check --json "$work/check.json" >/dev/null
check "syslat check can have all three" jq -e '[.measures, .loads, .backends | .[] | select(.name == "toy") | .can] == [true, true, true]' "$work/check.json"
TOY_FAILS=1 syslat check --json "$work/check.json" >/dev/null
check "or says why not, and the plugin's cure" jq -e '[.measures, .loads, .backends | .[] | select(.name == "toy") | .why, .command] ==
	["no toy to measure", "modprobe toy-measure", "no toy to load", "modprobe toy-load", "no toy for buffers", "modprobe toy-backend"]' "$work/check.json"
one_line_error "a run asks the measure first" 77 'no toy to measure' env TOY_FAILS=1 gem_syslatency -t 1 --measure toy

gem_syslatency -t 0.5 --warmup 0 --sched other --scope machine --measure toy --load toy,gem --backend toy \
	--toy-value 5 --toy-word play --toy-quick --json "$work/toy.json" >"$work/toy.out" 2>&1
check "a record holds them" jq -e '.measure == "toy" and .loads == ["toy", "gem"] and .backend == "toy" and .pin_method == "quick"
	and .latency.count > 0 and .load_stats.toy.toy_turns >= 2' "$work/toy.json"
check "with their options" jq -e '.settings.options == {"toy-value": 5, "toy-word": "play", "toy-quick": true}' "$work/toy.json"
check "with their phases" jq -e '.thp_phases.open.mean_us == 0.001 and .thp_phases.close.mean_us == 0.002 and .thp_phases.open.count > 0' "$work/toy.json"
check "with their claims" jq -e '.validity.reasons | any(test("the toy turned: toy_turns is .* play longer"))' "$work/toy.json"
check "the text shows the phases" grep -qE '^ *close ' "$work/toy.out"
expect "an export" 0 '^1 puppets$' syslat export -f toy --toy-unit puppets "$work/toy.json"
expect "in its --help" 0 'csv.*toy|toy.*csv' syslat export --help
printf 'TOY 7\n' >"$work/toys.txt"
expect "an import that knows its text" 0 '1 runs' syslat import -o "$work/toys" "$work/toys.txt"
check "with its number" jq -e '.metrics.toys.value == 7' "$work/toys/runs.jsonl"
printf '1\n2\n' >"$work/a.txt"
printf '3\n4\n' >"$work/b.txt"
expect "a report" 0 '^a toy of a comparison$' syslat report --format toy "$work/a.txt" "$work/b.txt"

# --- nothing is decided by a plugin's name outside its own files ---
# Compared with, looked up by, or named as an object. What stays, and why:
known='^(lib/pin_cycle/pin_cycle.c:.*load_find\("swap"\)|tools/cmd_(plot|run).c:.*strcmp\((kind|commands\[i\]->name), |tools/cmd_explain.c:.*strncmp\(json_string_value\(note\), )'
#   pin_cycle is defined with the swap load beside it; "counters" is a kind of plot, "compare" a command, "causes" the begin of a note.
cd "$source_root" || exit 1
for kind in measure:measures load:loads backend:backends cause:causes report:reports export:exports import:imports; do
	room=${kind#*:} kind=${kind%:*} named="" count=0
	for file in $(sed -n "s/^ *${kind}_names += \[\(.*\)\]/\1/p" \
		"lib/$room/meson.build" | tr -d "',"); do
		count=$((count + 1))
		name=$(sed -n '/^const struct .*_ops '"${kind}_$file"' = {/,/};/s/.*\.name = "\([^"]*\)".*/\1/p' "lib/$room/$file.c")
		[ -n "$name" ] || named+="lib/$room/$file.c: no name found"$'\n'
		named+=$(grep -rnE "cmp\([^;]*\"${name:-?}\"|_find\(\"${name:-?}\"|^[^*]*\b${kind}_$file\b" lib benchmarks tools --include='*.[ch]' |
			grep -vE "^lib/$room/$file(_[a-z0-9]*)?\.[ch]:|:[0-9]+: \*" | grep -vE "$known")
	done
	check "no $kind is decided on by its name (of $count)" sh -c 'echo "$1"; test "$2" -gt 1 -a -z "$1"' sh "$named" "$count"
done
finish
