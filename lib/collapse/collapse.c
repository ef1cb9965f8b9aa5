/* SPDX-License-Identifier: MIT */
#include "collapse/collapse.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/parse.h"
#include "collapse/state.h"
#include "run/plan.h"
#include "run/put_back.h"
#include "sys/environment.h"
#include "sys/kernel_config.h"

#define SIZE_DEFAULT (UINT64_C(8) << 30)
#define SIZE_LEAST_TABLES 4
/* Of what is free, so much may be taken: the rest of the machine goes on. */
#define SIZE_SHARE 0.75

/* The least of what is available and what groups above us allow. */
static uint64_t room_bytes(char *ret_whose, size_t size)
{
	struct machine_memory memory = {0};
	uint64_t group_bytes = cgroup_room();

	snprintf(ret_whose, size, "this machine has available");
	if (machine_memory_read(&memory) < 0)
		return 0;
	if (group_bytes >= memory.available_bytes)
		return memory.available_bytes;
	snprintf(ret_whose, size, "the memory limit of this control group leaves");
	return group_bytes;
}

static int choose_size(struct collapse *collapse, struct message *message)
{
	const struct size_value *asked = &collapse->settings->size;
	uint64_t room, bytes = SIZE_DEFAULT;
	bool given = asked->is_percent || asked->bytes > 0;
	char whose[64], text[32], room_text[32];

	room = room_bytes(whose, sizeof(whose));
	if (given)
		bytes = size_resolve(asked, room);
	else if ((double)bytes > SIZE_SHARE * (double)room)
		bytes = (uint64_t)(SIZE_SHARE * (double)room);
	bytes -= bytes % collapse->table_bytes;
	format_size(given ? size_resolve(asked, room) : bytes, text, sizeof(text));
	if (bytes < SIZE_LEAST_TABLES * collapse->table_bytes)
		return message_set(message, given ? -EINVAL : -ENOMEM,
				   "--size %s is too small: give at least %d huge pages, %s", text,
				   SIZE_LEAST_TABLES,
				   format_size(SIZE_LEAST_TABLES * collapse->table_bytes, room_text,
					       sizeof(room_text)));
	if ((double)bytes > 0.95 * (double)room)
		return message_set(message, -ENOMEM,
				   "--size %s is more than the %s that %s: "
				   "lower it",
				   text, format_size(room, room_text, sizeof(room_text)), whose);
	if (!given && bytes < SIZE_DEFAULT)
		record_note(collapse->record,
			    "size %s, not 8G: more does not fit beside what "
			    "runs here (%s %s)",
			    text, whose, format_size(room, room_text, sizeof(room_text)));
	collapse->bytes = bytes;
	collapse->tables = bytes / collapse->table_bytes;
	return 0;
}

/* Only the largest size, asked for by madvise; khugepaged idle until a row wakes it. */
static int set_knobs(struct collapse *collapse, struct message *message)
{
	static const char *const khugepaged[][2] = {
		{KHUGEPAGED_FOLDER "/scan_sleep_millisecs", "3600000"},
		/* One failed allocation would put it to sleep for a minute. */
		{KHUGEPAGED_FOLDER "/alloc_sleep_millisecs", "0"},
		{KHUGEPAGED_FOLDER "/max_ptes_none", "0"},
	};
	struct thp_size *sizes = NULL;
	size_t count = 0;
	char path[PATH_MAX];
	int error =
		transaction_write(collapse->transaction, THP_FOLDER "/enabled", "madvise", message);

	if (!error && thp_sizes(&sizes, &count) < 0)
		count = 0;
	for (size_t i = 0; i < count && !error; i++) {
		snprintf(path, sizeof(path), THP_FOLDER "/hugepages-%" PRIu64 "kB/enabled",
			 sizes[i].bytes / 1024);
		error = transaction_write(
			collapse->transaction, path,
			sizes[i].bytes == collapse->table_bytes ? "inherit" : "never", message);
	}
	free(sizes);
	for (size_t i = 0; i < ARRAY_SIZE(khugepaged) && !error; i++)
		error = transaction_write(collapse->transaction, khugepaged[i][0], khugepaged[i][1],
					  message);
	return error;
}

static int place_khugepaged(struct collapse *collapse, struct message *message)
{
	const struct cpu_list *cpus = collapse->settings->khugepaged_cpus;
	int error;

	if (khugepaged_find(&collapse->khugepaged) < 0) {
		collapse->khugepaged = 0;
		record_note(collapse->record, "khugepaged cannot be seen in this pid namespace: "
					      "its processor time is n/a");
		return cpus ? message_set(message, -ENOTSUP,
					  "--khugepaged-cpus: khugepaged cannot be seen here (a "
					  "pid namespace of its own?)")
			    : 0;
	}
	if (!cpus)
		return 0;
	error = transaction_save_scheduling(collapse->transaction, collapse->khugepaged, message);
	if (!error) {
		error = cpu_pin_list(collapse->khugepaged, cpus);
		if (error)
			message_set_errno(message, error, "cannot move khugepaged");
	}
	return error;
}

/* Takes over the machine's settings where we may; else says what the rows do without. */
static int prepare_machine(struct collapse *collapse, struct message *message)
{
	int error;

	if (geteuid() != 0 || !machine_writable(THP_FOLDER "/enabled")) {
		if (collapse->settings->khugepaged_cpus)
			return message_set(message, -EPERM,
					   "--khugepaged-cpus moves a kernel thread: run as root");
		if (thp_mode() == THP_NEVER)
			return message_set(message, -ENOTSUP,
					   "huge pages are off (" THP_FOLDER
					   "/enabled): set it to madvise, or run as root");
		khugepaged_find(&collapse->khugepaged);
		return 0;
	}
	error = transaction_open(&collapse->transaction, "thp_collapse", message);
	if (!error)
		error = set_knobs(collapse, message);
	return error ? error : place_khugepaged(collapse, message);
}

/* Tried on a good region first: EINVAL has five meanings elsewhere. */
static bool has_madv_collapse(const struct collapse *collapse)
{
	struct thp_region region;
	bool works;

	if (thp_region_map(collapse->table_bytes, &region) < 0)
		return false;
	madvise(region.memory, region.bytes, MADV_HUGEPAGE);
	*(volatile char *)region.memory = 1;
	works = madvise(region.memory, region.bytes, MADV_COLLAPSE) == 0 || errno != EINVAL;
	thp_region_unmap(&region);
	return works;
}

static void make_absent(struct collapse *collapse, size_t row, const char *why)
{
	struct collapse_outcome *outcome = &collapse->outcomes[row];

	outcome->absent = true;
	message_set(&outcome->why, 0, "%s", why);
	record_note(collapse->record, "row %s: n/a: %s", collapse_rows[row].name, why);
}

static void choose_rows(struct collapse *collapse)
{
	bool works = has_madv_collapse(collapse);

	for (size_t i = 0; collapse_rows[i].name; i++) {
		const struct collapse_row *row = &collapse_rows[i];
		struct collapse_outcome *outcome = &collapse->outcomes[i];

		outcome->wanted = collapse_row_wanted(collapse->settings->rows, row);
		if (outcome->wanted && row->flags & ROW_NEEDS_KNOBS && !collapse->transaction)
			make_absent(collapse, i,
				    "changes khugepaged's settings in /sys: run as root");
		else if (outcome->wanted && row->flags & ROW_NEEDS_COLLAPSE && !works)
			make_absent(collapse, i, "this kernel has no MADV_COLLAPSE (Linux 6.1)");
	}
}

static bool is_left(const struct collapse *collapse, size_t row)
{
	return collapse->outcomes[row].wanted && !collapse->outcomes[row].absent;
}

/* Before a row has been measured once its time is guessed from the window. */
static int64_t row_ns(const struct collapse *collapse, size_t row)
{
	const struct collapse_settings *settings = collapse->settings;

	if (collapse->outcomes[row].took_ns > 0)
		return collapse->outcomes[row].took_ns;
	if (collapse_rows[row].flags & ROW_SCANS)
		return (int64_t)settings->sweep_count * settings->window_ns / 2 * 3;
	return settings->window_ns / 2;
}

/* When all will be done, judged at the begin of @row. */
static void expect_end(struct collapse *collapse, size_t row)
{
	collapse->expected_end_ns = clock_now_ns();
	for (unsigned int run = collapse->run; run < collapse->settings->runs; run++, row = 0)
		for (; collapse_rows[row].name; row++)
			if (is_left(collapse, row))
				collapse->expected_end_ns += row_ns(collapse, row);
}

/* On memory that lies as the row wants it, between two looks at the machine's speed. */
static int measure_row(struct collapse *collapse, struct message *why)
{
	const struct collapse_row *row = collapse->row;
	unsigned int calls = row->flags & ROW_TIMES_REFERENCE ? 0 : REFERENCE_ROW_CALLS;
	int error = collapse_region(collapse, row->state, why);
	size_t mark = collapse_mark(collapse);

	if (error)
		return error;
	collapse_progress(collapse, "run %u of %u: %s", collapse->run + 1, collapse->settings->runs,
			  row->name);
	if (calls)
		collapse_reference_time(collapse, calls);
	error = row->run(collapse, row, why);
	error = collapse_undo(collapse, mark, error, why);
	if (calls)
		collapse_reference_time(collapse, calls);
	if (!error)
		collapse_reference_put(collapse);
	return error;
}

/* One turn of one row. A row that cannot be measured here is absent from then on. */
static int run_row(struct collapse *collapse, size_t row)
{
	struct collapse_outcome *outcome = &collapse->outcomes[row];
	struct message why = {""};
	int64_t begin_ns = clock_now_ns();
	int error;

	collapse->row = &collapse_rows[row];
	collapse->outcome = outcome;
	collapse->reference.count = 0;
	collapse->conditions_met = true;
	collapse->prefix[0] = '\0';
	collapse->metrics.group = COLLAPSE_GROUP(collapse->run, row);
	expect_end(collapse, row);
	error = measure_row(collapse, &why);
	if (collapse_stopping(collapse)) {
		/* What an ended turn has measured counts no less; a cut one does not. */
		if (error)
			metric_table_leave_out(&collapse->metrics, collapse->metrics.group);
		return -EINTR;
	}
	if (error) {
		make_absent(collapse, row, why.text[0] ? why.text : strerrordesc_np(-error));
		return 0;
	}
	outcome->runs++;
	outcome->took_ns = clock_now_ns() - begin_ns;
	if (!collapse->conditions_met) {
		outcome->broken++;
		metric_table_leave_out(&collapse->metrics, collapse->metrics.group);
	}
	return 0;
}

static int run_all(struct collapse *collapse)
{
	int error = 0;

	for (collapse->run = 0; collapse->run < collapse->settings->runs && !error;
	     collapse->run++) {
		/* Fresh memory for each run: where it lies may matter, and then runs show it. */
		collapse_region_free(collapse);
		for (size_t i = 0; collapse_rows[i].name && !error; i++)
			if (is_left(collapse, i))
				error = run_row(collapse, i);
	}
	collapse_region_free(collapse);
	return error;
}

static void judge(struct collapse *collapse)
{
	bool scanned = false;
	struct message why;

	for (size_t i = 0; collapse_rows[i].name; i++) {
		const struct collapse_row *row = &collapse_rows[i];
		const struct collapse_outcome *outcome = &collapse->outcomes[i];
		unsigned int good = outcome->runs - outcome->broken;

		if (!is_left(collapse, i) || outcome->runs == 0)
			continue;
		if (outcome->broken)
			record_reason(collapse->record,
				      2 * good < outcome->runs ? VERDICT_INVALID : VERDICT_SUSPECT,
				      "row %s: %u of %u runs %s: %s", row->name, outcome->broken,
				      outcome->runs, good ? "left out" : "disturbed",
				      outcome->why.text);
		/* khugepaged may be the other thread on the core that does the fixed work. */
		if (good > 0 && !collapse_runs_agree(&collapse->metrics, (unsigned int)i, row->name,
						     !(row->flags & ROW_SCANS), &why))
			record_reason(collapse->record, VERDICT_SUSPECT, "%s", why.text);
		scanned |= row->flags & ROW_SCANS;
	}
	if (scanned && collapse->khugepaged == 0)
		record_reason(collapse->record, VERDICT_SUSPECT,
			      "khugepaged cannot be seen here: whether it had a CPU to itself is "
			      "not known");
}

static json_t *numbers_json(const uint64_t *numbers, size_t count)
{
	json_t *json = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(json, json_integer((json_int_t)numbers[i]));
	return json;
}

static int describe(struct collapse *collapse)
{
	const struct collapse_settings *settings = collapse->settings;
	char shift[16], *config = NULL, *cpus = NULL;
	const char *source;
	struct utsname kernel;
	bool known;

	uname(&kernel);
	if (settings->khugepaged_cpus)
		cpus = cpu_list_format(settings->khugepaged_cpus);
	/* MADV_COLLAPSE clears an array of so many nodes for each table. */
	known = kernel_config_read(kernel.release, &config, &source) == 0 &&
		kernel_config_get(config, "NODES_SHIFT", shift, sizeof(shift)) == 0;
	collapse->record->settings = json_pack(
		"{s:I, s:I, s:f, s:i, s:s, s:o, s:I, s:s?, s:s?}", "size_bytes",
		(json_int_t)collapse->bytes, "table_bytes", (json_int_t)collapse->table_bytes,
		"window_s", (double)settings->window_ns / 1e9, "runs", settings->runs, "rows",
		settings->rows ?: "mail", "pages_to_scan",
		numbers_json(settings->pages_to_scan, settings->sweep_count), "tables_per_hold",
		(json_int_t)khugepaged_tables_per_hold(kernel.release, settings->pages_to_scan[0],
						       collapse->pages_per_table),
		"khugepaged_cpus", cpus, "config_nodes_shift", known ? shift : NULL);
	free(cpus);
	free(config);
	return collapse->record->settings ? 0 : -ENOMEM;
}

static int measure(struct collapse *collapse, struct message *message)
{
	struct record *record = collapse->record;
	struct snapshot *before = NULL, *after = NULL;
	int64_t begin_ns;
	int error = prepare_machine(collapse, message);

	if (error)
		return error;
	choose_rows(collapse);
	snapshot_take(NULL, &before);
	begin_ns = clock_now_ns();
	error = run_all(collapse);
	record->duration_s = (double)(clock_now_ns() - begin_ns) / 1e9;
	snapshot_take(NULL, &after);
	if (before && after)
		record->counters = snapshot_delta(before, after);
	snapshot_free(before);
	snapshot_free(after);
	if (error == -EINTR) {
		record->interrupted = true;
		error = collapse->metrics.count
				? 0
				: message_set(message, -EINTR, "stopped before a row was done");
	}
	if (error)
		return error;
	judge(collapse);
	if (record->counters && json_object_size(collapse->answers) > 0)
		json_object_set(record->counters, "collapse_answers", collapse->answers);
	record->metrics = metric_table_json(&collapse->metrics);
	return record->metrics ? 0 : -ENOMEM;
}

int collapse_execute(const struct collapse_settings *settings, struct record **ret_record,
		     struct message *message)
{
	struct collapse collapse = {.settings = settings};
	int error;

	error = collapse_check_rows(settings->rows, message);
	if (error)
		return error;
	if (thp_page_bytes(&collapse.table_bytes) < 0 || thp_mode() == THP_UNSUPPORTED)
		return message_set(message, -ENOTSUP,
				   "this kernel has no transparent huge pages (" THP_FOLDER
				   " is not there): build one with CONFIG_TRANSPARENT_HUGEPAGE");
	if (thp_forbidden_here())
		return message_set(message, -ENOTSUP,
				   "huge pages are forbidden to this process "
				   "(PR_SET_THP_DISABLE): start it from another one");
	collapse.record = record_new("thp_collapse");
	if (!collapse.record)
		return -ENOMEM;
	collapse.answers = json_object();
	collapse.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	collapse.pages_per_table = collapse.table_bytes / collapse.page_bytes;
	collapse.clock_cost_ns = clock_read_cost_ns();
	collapse.record->arm = settings->arm ? strdup(settings->arm) : NULL;
	collapse.record->scope = strdup("machine");
	collapse.record->environment = environment_describe();
	environment_machine_key(collapse.record->environment, collapse.record->machine_key);
	error = collapse_reference_open(&collapse);
	if (!error)
		error = choose_size(&collapse, message);
	if (!error)
		error = describe(&collapse);
	if (!error)
		error = measure(&collapse, message);
	collapse_region_free(&collapse);
	collapse_reference_close(&collapse);
	run_put_back(collapse.transaction, error, collapse.record, message);
	metric_table_free(&collapse.metrics);
	json_decref(collapse.answers);
	if (error)
		record_free(collapse.record);
	else
		*ret_record = collapse.record;
	return error;
}
