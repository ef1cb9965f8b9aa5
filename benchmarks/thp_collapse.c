/* SPDX-License-Identifier: MIT */
/*
 * What collapsing huge pages costs, and what not collapsing them costs: khugepaged's scan,
 * MADV_COLLAPSE, page faults by size, and what they do to their neighbours. Options here, one call
 * to collapse_execute(), one table.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/cpuset.h"
#include "base/json.h"
#include "base/parse.h"
#include "common.h"
#include "collapse/collapse.h"
#include "compare/arms.h"
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

static int add_pages_to_scan(void *data, const char *word, struct message *message)
{
	struct collapse_settings *collapse = &((struct settings *)data)->collapse;
	int64_t value;

	if (parse_int64(word, 1, UINT32_MAX, &value) < 0)
		return message_set(message, -EINVAL,
				   "--pages-to-scan: '%s' is no number of pages: write it like "
				   "65536 or 4096,65536",
				   word);
	if (collapse->sweep_count == COLLAPSE_SWEEP_MOST)
		return message_set(message, -EINVAL, "--pages-to-scan: more than %d numbers",
				   COLLAPSE_SWEEP_MOST);
	collapse->pages_to_scan[collapse->sweep_count++] = (uint64_t)value;
	return 0;
}

/* The first number is the table's, the others a sweep. */
static int option_pages_to_scan(void *data, const char *argument, struct message *message)
{
	((struct settings *)data)->collapse.sweep_count = 0;
	return benchmark_each_word(data, argument, add_pages_to_scan, message);
}

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
	BENCHMARK_JSON_ROW(json),
	BENCHMARK_ARM_ROW(collapse.arm),
	{.kind = OPTION_FLAG,
	 .long_name = "table",
	 AT(table),
	 .help = "measure nothing: print the table of linux-mm, one column for each RECORD\n"
		 "([NAME=]FILE; without a name: as posted, yours)"},
	BENCHMARK_PROGRESS_ROW(progress),
};

static const struct benchmark benchmark = {
	.name = PROGRAM,
	.usage = PROGRAM " [options]  or  " PROGRAM " --table RECORD...",
	.about = "Measures what khugepaged's scan and MADV_COLLAPSE cost, and what they do to "
		 "their neighbours.",
	.rows = rows,
	.row_count = ARRAY_SIZE(rows),
};

static int list_rows(void)
{
	struct collapse_row_name names[ROWS_MOST];
	size_t count = collapse_row_names(names, ROWS_MOST);

	for (size_t i = 0; i < count; i++) {
		if (i == 0 || strcmp(names[i].group, names[i - 1].group) != 0)
			printf("%s\n", names[i].group);
		printf("  %-18s %s\n", names[i].name, names[i].summary);
	}
	return benchmark_finish_output(&benchmark);
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
		return benchmark_fail(&benchmark, EXIT_USAGE,
				      "--table: give the records to print: --table A.json B.json");
	error = arm_set_read(operands, count, 1, &set, &message);
	if (error)
		return benchmark_fail(&benchmark, exit_code_of(error), message.text);
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
		error = benchmark_fail(&benchmark, EXIT_FAILED,
				       "--table: holds no record of " PROGRAM);
	else if (collapse_mail_print(stdout, records, names, used) < 0 || fflush(stdout) == EOF)
		error = benchmark_fail(&benchmark, EXIT_FAILED,
				       "cannot write the result to standard output");
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

/* What the options say together: rows that exist, CPUs that are there. */
static int resolve(struct settings *settings, struct cpu_list *cpus, struct message *message)
{
	int error = collapse_check_rows(settings->collapse.rows, message);

	settings->collapse.runs = (unsigned int)settings->runs;
	if (error || !settings->cpus)
		return error;
	settings->collapse.khugepaged_cpus = cpus;
	error = cpu_list_parse(settings->cpus, cpus, message);
	return error ? error : cpu_list_check(cpus, message);
}

static int execute(void *data, void (*show)(void *data, const char *text),
		   struct record **ret_record, struct message *message)
{
	struct settings *settings = data;

	settings->collapse.progress = show;
	return collapse_execute(&settings->collapse, ret_record, message);
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.runs = 5,
		.collapse = {.window_ns = 20 * NS_PER_S,
			     .pages_to_scan = {65536},
			     .sweep_count = 1,
			     .interrupted = &benchmark_interrupted},
	};
	struct message message = {""};
	struct cpu_list cpus = {0};
	int first, code, error;

	if (!benchmark_begin(&benchmark, &settings, argc, argv, &first, &code))
		return code;
	if (settings.list)
		return list_rows();
	if (settings.table)
		return print_table(argv + first, (size_t)(argc - first));
	error = benchmark_refuse_operands(argc, argv, first, &message);
	if (!error)
		error = resolve(&settings, &cpus, &message);
	if (error)
		code = benchmark_fail(&benchmark, exit_code_of(error), message.text);
	else
		code = benchmark_measure(&benchmark, &settings, settings.json, settings.progress,
					 execute, print_text, argc, argv);
	cpu_list_free(&cpus);
	return code;
}
