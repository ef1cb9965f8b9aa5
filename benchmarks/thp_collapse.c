/* SPDX-License-Identifier: MIT */
/*
 * What collapsing huge pages costs, and what not collapsing them costs: khugepaged's scan,
 * MADV_COLLAPSE, page faults by size, and what they do to their neighbours. Options here, one call
 * to collapse_execute(), one table.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpuset.h"
#include "base/exit.h"
#include "base/file.h"
#include "base/json.h"
#include "base/options.h"
#include "build_id.h"
#include "config.h"
#include "engine/collapse.h"
#include "engine/program.h"
#include "record/arms.h"
#include "reports/collapse_mail.h"
#include "reports/metrics_text.h"

#define PROGRAM "thp_collapse"
#define ROWS_MOST 64

struct settings {
	struct collapse_settings collapse;
	const char *cpus, *json, *progress;
	int64_t runs;
	bool table, list;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

static int fail(enum exit_code code, const char *text)
{
	fprintf(stderr, PROGRAM ": %s\n", text);
	return code;
}

/* "65536" or "4096,65536": the first is the table's, the others a sweep. */
static int option_pages_to_scan(void *data, const char *argument, struct message *message)
{
	struct collapse_settings *collapse = &((struct settings *)data)->collapse;

	collapse->sweep_count = 0;
	for (const char *at = argument;; at++) {
		size_t length = strcspn(at, ",");
		char word[32];
		int64_t value;

		snprintf(word, sizeof(word), "%.*s", (int)length, at);
		if (parse_int64(word, 1, UINT32_MAX, &value) < 0)
			return message_set(message, -EINVAL,
					   "--pages-to-scan: '%s' is no number of pages: write "
					   "it like 65536 or 4096,65536",
					   word);
		if (collapse->sweep_count == COLLAPSE_SWEEP_MOST)
			return message_set(message, -EINVAL,
					   "--pages-to-scan: more than %d numbers",
					   COLLAPSE_SWEEP_MOST);
		collapse->pages_to_scan[collapse->sweep_count++] = (uint64_t)value;
		at += length;
		if (!*at)
			return 0;
	}
}

static const char *const progress_choices[] = {"auto", "always", "never", NULL};

#define AT(member) .offset = offsetof(struct settings, member)

static const struct option_row rows[] = {
	{.kind = OPTION_SECTION, .long_name = "What is measured"},
	{.kind = OPTION_STRING,
	 .long_name = "rows",
	 .argument = "LIST",
	 AT(collapse.rows),
	 .help = "rows or groups of rows (default: mail); --list names them"},
	{.kind = OPTION_FLAG, .long_name = "list", AT(list), .help = "name the rows, and stop"},
	{.kind = OPTION_SIZE,
	 .long_name = "size",
	 .argument = "SIZE",
	 AT(collapse.size),
	 .help = "memory to measure on (default 8G, or three quarters of what is free; % is of "
		 "that)"},
	{.kind = OPTION_DURATION,
	 .long_name = "window",
	 .argument = "TIME",
	 AT(collapse.window_ns),
	 .minimum = 100 * NS_PER_MS,
	 .maximum = 3600 * NS_PER_S,
	 .unit_ns = NS_PER_S,
	 .help = "length of one measurement (bare number: seconds; default 20)"},
	{.kind = OPTION_INT,
	 .long_name = "runs",
	 .argument = "N",
	 AT(runs),
	 .minimum = 1,
	 .maximum = 1000,
	 .help = "measure everything so often; the medians are given (default 5)"},
	{.kind = OPTION_CALL,
	 .long_name = "pages-to-scan",
	 .argument = "N[,N...]",
	 .call = option_pages_to_scan,
	 .help = "khugepaged/pages_to_scan (default 65536); further numbers: a sweep"},
	{.kind = OPTION_STRING,
	 .long_name = "khugepaged-cpus",
	 .argument = "LIST",
	 AT(cpus),
	 .help = "keep khugepaged on these CPUs while measuring"},
	{.kind = OPTION_SECTION, .long_name = "Result"},
	{.kind = OPTION_STRING,
	 .long_name = "json",
	 .argument = "FILE",
	 AT(json),
	 .help = "write the record (-: standard output, in place of the text)"},
	{.kind = OPTION_STRING,
	 .long_name = "arm",
	 .argument = "NAME",
	 AT(collapse.arm),
	 .help = "name of the arm in the record"},
	{.kind = OPTION_FLAG,
	 .long_name = "table",
	 AT(table),
	 .help = "measure nothing: print the table of linux-mm, one column for each RECORD\n"
		 "([NAME=]FILE; without a name: as posted, yours)"},
	{.kind = OPTION_CHOICE,
	 .long_name = "progress",
	 .argument = "WHEN",
	 AT(progress),
	 .choices = progress_choices,
	 .help = "auto (default: on a terminal), always, never"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void show_progress(void *data, const char *text)
{
	fprintf(stderr, "\r\033[K%s", text);
	fflush(stderr);
}

static int list_rows(void)
{
	struct collapse_row_name names[ROWS_MOST];
	size_t count = collapse_row_names(names, ROWS_MOST);

	for (size_t i = 0; i < count; i++) {
		if (i == 0 || strcmp(names[i].group, names[i - 1].group) != 0)
			printf("%s\n", names[i].group);
		printf("  %-18s %s\n", names[i].name, names[i].summary);
	}
	return EXIT_DONE;
}

/* --table: records of other runs side by side. */
static int print_table(char **operands, size_t count)
{
	struct record *records[16];
	const char *names[16];
	struct message message;
	struct arm_set *set;
	size_t used = 0;
	int error;

	if (count == 0)
		return fail(EXIT_USAGE,
			    "--table: give the records to print: --table A.json B.json");
	error = arm_set_read(operands, count, 1, &set, &message);
	if (error)
		return fail(exit_code_of(error), message.text);
	for (size_t i = 0; i < set->source_count && used < 16; i++) {
		const struct arm_source *source = &set->sources[i];

		for (size_t k = 0; k < source->record_count && used < 16; k++) {
			if (strcmp(source->records[k]->benchmark, PROGRAM) != 0)
				continue;
			names[used] = source->label ?: source->records[k]->arm;
			records[used++] = source->records[k];
		}
	}
	for (size_t i = 0; i < used; i++)
		if (!names[i])
			names[i] = used == 2 ? (i == 0 ? "as posted" : "yours") : "median";
	if (used == 0)
		error = fail(EXIT_FAILED, "--table: holds no record of " PROGRAM);
	else if (collapse_mail_print(stdout, records, names, used) < 0 || fflush(stdout) == EOF)
		error = fail(EXIT_FAILED, "cannot write the result to standard output");
	arm_set_free(set);
	return error;
}

/* What MADV_COLLAPSE answered, by the state of the memory. */
static void print_outcomes(const struct record *record)
{
	json_t *outcomes = json_object_get(record->counters, "collapse_answers"), *calls, *count;
	const char *row, *outcome;

	if (json_object_size(outcomes) > 0)
		printf("what MADV_COLLAPSE answered (calls)\n");
	json_object_foreach (outcomes, row, calls) {
		printf("  %-20s", row);
		json_object_foreach (calls, outcome, count)
			printf(" %s %lld", outcome, (long long)json_integer_value(count));
		putchar('\n');
	}
}

static int print_text(const struct record *record, const void *data)
{
	struct metrics_heading headings[ROWS_MOST + 1] = {{NULL, NULL}};
	struct collapse_row_name names[ROWS_MOST];
	size_t count = collapse_row_names(names, ROWS_MOST);
	const json_t *settings = record->settings;
	const char *shift = json_get_string(settings, "config_nodes_shift", NULL);
	char size[32];

	for (size_t i = 0; i < count; i++)
		headings[i] = (struct metrics_heading){names[i].name, names[i].summary};
	printf("%s of memory, %lld tables; pages_to_scan %lld: %lld tables a hold of the lock; "
	       "CONFIG_NODES_SHIFT %s\n",
	       format_size((uint64_t)json_get_int64(settings, "size_bytes", 0), size, sizeof(size)),
	       (long long)(json_get_int64(settings, "size_bytes", 0) /
			   json_get_int64(settings, "table_bytes", 1)),
	       (long long)json_integer_value(
		       json_array_get(json_object_get(settings, "pages_to_scan"), 0)),
	       (long long)json_get_int64(settings, "tables_per_hold", 0), shift ?: "not known");
	metrics_text_print(stdout, record, headings);
	print_outcomes(record);
	return metrics_text_verdict(stdout, record);
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.runs = 5,
		.collapse = {.window_ns = 20 * NS_PER_S,
			     .pages_to_scan = {65536},
			     .sweep_count = 1,
			     .interrupted = &interrupted},
	};
	struct message message = {""};
	struct cpu_list cpus = {0};
	struct record *record;
	int first, error;

	machine_set_root(getenv("SYSLATENCY_ROOT"));
	error = options_parse(rows, ROWS, &settings, argc, argv, 0, &first, &message);
	if (error == OPTIONS_HELP) {
		options_help(
			stdout, PROGRAM " [options]  or  " PROGRAM " --table RECORD...",
			"Measures what khugepaged's scan and MADV_COLLAPSE cost, and what they "
			"do to their neighbours.",
			rows, ROWS);
		return EXIT_DONE;
	}
	if (error == OPTIONS_VERSION) {
		printf(PROGRAM " (syslatency) " SYSLATENCY_VERSION " " SYSLATENCY_BUILD "\n");
		return EXIT_DONE;
	}
	if (!error && settings.list)
		return list_rows();
	if (!error && settings.table)
		return print_table(argv + first, (size_t)(argc - first));
	if (!error && first < argc)
		error = message_set(&message, -EINVAL, "'%s' is no option: see --help",
				    argv[first]);
	if (!error)
		error = collapse_check_rows(settings.collapse.rows, &message);
	if (!error && settings.cpus) {
		error = cpu_list_parse(settings.cpus, &cpus, &message);
		if (!error)
			error = cpu_list_check(&cpus, &message);
		settings.collapse.khugepaged_cpus = &cpus;
	}
	if (error)
		return fail(exit_code_of(error), message.text);
	if (program_check_outputs(settings.json, &message) < 0)
		return fail(EXIT_FAILED, message.text);
	settings.collapse.runs = (unsigned int)settings.runs;
	program_catch_signals(on_signal);
	if (program_wants_progress(settings.progress))
		settings.collapse.progress = show_progress;
	error = collapse_execute(&settings.collapse, &record, &message);
	cpu_list_free(&cpus);
	if (settings.collapse.progress)
		fprintf(stderr, "\r\033[K");
	if (error)
		return fail(exit_code_of(error),
			    message.text[0] ? message.text : strerrordesc_np(-error));
	error = program_finish(record, settings.json, argc, argv, print_text, NULL, &message);
	record_free(record);
	return error < 0 ? fail(EXIT_FAILED, message.text) : error;
}
