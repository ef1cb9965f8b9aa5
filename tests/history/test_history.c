/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>
#include <unistd.h>

#include "base/array.h"
#include "compare/comparison.h"
#include "history/history.h"
#include "history/reader.h"
#include "record/record.h"
#include "record/store.h"

/* From records to what a history keeps, and into a database. */

#define RECORD                                                                                  \
	"{\"schema\":\"syslatency/run/1\",\"id\":\"00000000-0000-4000-8000-%012d\","            \
	"\"benchmark\":\"b\",\"arm\":\"a\",\"started\":\"2026-01-02T03:04:%02dZ\",\"latency\":" \
	"{\"mean_us\":%d.5,\"max_us\":9},\"environment\":{\"kernel\":\"6.1\"},\"validity\":"    \
	"{\"verdict\":\"valid\"},\"status\":\"ok\",\"machine_key\":\"%s\",\"metrics\":{},"      \
	"\"settings\":%s,\"command\":[\"b\",\"-x\"]}\n"

static const struct run_labels labels = {.commit_time_us = INT64_MIN};

/* One record; @settings is its JSON. */
static int add_text(struct run_list *list, int id, int mean, const char *settings)
{
	char line[1000];

	snprintf(line, sizeof(line), RECORD, id, id % 60, mean, "m", settings);
	return run_list_read_text(list, "here", line, strlen(line), &labels, NULL);
}

/* How many series two runs make whose settings are these: each has a mean and a maximum. */
static size_t series_of(const char *a, const char *b)
{
	struct run_list list = {.runs = NULL};
	size_t count;

	assert_int_equal(add_text(&list, 1, 5, a), 0);
	assert_int_equal(add_text(&list, 2, 6, b), 0);
	count = list.series.count / 2;
	run_list_free(&list);
	return count;
}

static void settings_that_are_compared_make_a_series(void **state)
{
	static const struct {
		const char *a, *b;
		size_t series;
	} cases[] = {
		{"{\"t\":4}", "{\"t\":4}", 1},
		{"{\"t\":4}", "{\"t\":5}", 2},
		{"{\"t\":4,\"u\":1}", "{\"u\":1,\"t\":4}", 1},
		{"{\"t\":4,\"clock_read_ns\":25.5}", "{\"t\":4,\"clock_read_ns\":31}", 1},
		{"{\"t\":4,\"seed\":1}", "{\"t\":4,\"seed\":2}", 1},
		{"{\"t\":{\"clock_read_ns\":1}}", "{\"t\":{\"clock_read_ns\":2}}", 2},
		{"{\"t\":\"\\\"clock_read_ns\\\":1\"}", "{\"t\":\"\\\"clock_read_ns\\\":2\"}", 2},
		{"null", "null", 1},
		{"null", "{}", 2},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (series_of(cases[i].a, cases[i].b) != cases[i].series)
			fail_msg("%s and %s: not %zu series", cases[i].a, cases[i].b,
				 cases[i].series);
}

/* What was kept of one line must not reach into the next: many different heads, in turns, also
 * ones that are too long to be kept. */
static void every_line_has_its_own_series(void **state)
{
	enum { KINDS = 200, LONG = 20000 };
	struct run_list list = {.runs = NULL};
	char *text = malloc(2 * KINDS * (1000 + LONG)), *settings = malloc(LONG + 100);
	size_t length = 0;

	for (int i = 0; i < 2 * KINDS; i++) {
		int kind = i % KINDS;

		sprintf(settings, "{\"t\":%d,\"clock_read_ns\":%d,\"l\":\"%*s\"}", kind, i,
			kind % 10 == 3 ? LONG : 1, "x");
		length += (size_t)sprintf(text + length, RECORD, i, i % 60, i, "m", settings);
	}
	assert_int_equal(run_list_read_text(&list, "here", text, length, &labels, NULL), 0);
	assert_int_equal(list.count, 2 * KINDS);
	assert_int_equal(list.series.count, 2 * KINDS);
	for (int i = 0; i < 2 * KINDS; i++) {
		const struct run_value *value = &list.values[list.runs[i].first_value];
		char wanted[32];

		snprintf(wanted, sizeof(wanted), "\"t\":%d,", i % KINDS);
		assert_non_null(strstr(list.series.texts[value->series], wanted));
		assert_float_equal(value->value, i + 0.5, 0);
	}
	run_list_free(&list);
	free(settings);
	free(text);
}

static void bad_lines_are_named(void **state)
{
	struct run_list list = {.runs = NULL};
	struct message message = {""};
	char text[3000];
	int length = snprintf(text, sizeof(text), RECORD, 1, 1, 5, "m", "{}");

	length +=
		snprintf(text + length, sizeof(text) - (size_t)length, RECORD, 2, 2, 5, "n", "{}");
	assert_int_equal(run_list_read_text(&list, "f", text, (size_t)length, &labels, &message),
			 -EXDEV);
	assert_non_null(strstr(message.text, "f: line 2: runs of several machines (m, n)"));
	length = snprintf(text, sizeof(text), RECORD RECORD, 1, 1, 5, "m", "{}", 2, 2, 6, "m",
			  "[1]");
	assert_int_equal(run_list_read_text(&list, "f", text, (size_t)length, &labels, &message),
			 -EINVAL);
	assert_non_null(strstr(message.text, "f: line 2: record: settings: expected an object"));
	length =
		snprintf(text, sizeof(text), RECORD RECORD, 1, 1, 5, "m", "{}", 2, 2, 6, "m", "{}");
	assert_int_equal(
		run_list_read_text(&list, "f", text, (size_t)length - 20, &labels, &message),
		-EINVAL);
	assert_non_null(strstr(message.text, "f: line 2 is torn"));
	run_list_free(&list);
}

static void texts_are_kept_once(void **state)
{
	struct intern intern = {.texts = NULL};
	char text[16];
	uint32_t number;

	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 5000; i++) {
			int length = snprintf(text, sizeof(text), "t%u", i);

			assert_int_equal(intern_add(&intern, text, (size_t)length, &number), 0);
			assert_int_equal(number, i);
		}
	}
	assert_int_equal(intern.count, 5000);
	assert_string_equal(intern.texts[4321], "t4321");
	intern_free(&intern);
}

static void commits_and_times_are_read(void **state)
{
	char name[64];
	int64_t us;

	commit_of_release("6.12.0-rc1-00042-g0123456789ab", name, sizeof(name));
	assert_string_equal(name, "0123456789ab");
	commit_of_release("6.12.0-g0123456-dirty", name, sizeof(name));
	assert_string_equal(name, "0123456");
	commit_of_release("6.1.0-13-generic", name, sizeof(name)); /* "-generic" is no hash */
	assert_string_equal(name, "6.1.0-13-generic");
	commit_of_release("", name, sizeof(name));
	assert_string_equal(name, "unknown");
	assert_int_equal(time_parse_rfc3339("1970-01-02T00:00:01.5Z", &us), 0);
	assert_int_equal(us, 86401500000);
	assert_int_equal(time_parse_rfc3339("1970-01-02T02:00:00+02:00", &us), 0);
	assert_int_equal(us, 86400000000);
	assert_int_equal(time_parse_rfc3339("1970-01-02", &us), -EINVAL);
	assert_int_equal(time_parse_rfc3339("1970-01-02T00:00:00", &us), -EINVAL);
	assert_int_equal(time_parse_rfc3339("1970-01-02T00:00:00Zx", &us), -EINVAL);
}

/* Comparisons, text files and histories take the same runs. */
static void one_rule_says_which_runs_count(void **state)
{
	static const char *const statuses[] = {"ok", "failed"};
	static const char *const verdicts[] = {"valid", "suspect", "invalid"};
	const struct comparison_options options = {.include_invalid = false};
	char folder[4096], file[4200];
	size_t counted = 0;

	testing_make_tree(folder, sizeof(folder));
	snprintf(file, sizeof(file), "%s/a-mean.txt", folder);
	for (int i = 0; i < 12; i++) {
		struct run_list list = {.runs = NULL};
		struct record *record;
		char line[1000], rest[200];
		bool counts;

		snprintf(line, sizeof(line), RECORD, i, i, i, "m", "{}");
		snprintf(
			rest, sizeof(rest),
			",\"interrupted\":%s,\"validity\":{\"verdict\":\"%s\"},\"status\":\"%s\"}\n",
			i & 1 ? "true" : "false", verdicts[i / 2 % 3], statuses[i / 6]);
		strcpy(strstr(line, ",\"validity\""), ",\"machine_key\":\"m\"");
		strcat(line, rest);
		assert_int_equal(record_from_text(line, strlen(line), NULL, &record, NULL, NULL),
				 0);
		counts = record_counts(record);
		counted += counts;
		assert_int_equal(counts, i == 0 || i == 2);
		assert_int_equal(comparison_takes(record, &options), counts);
		assert_int_equal(run_list_read_text(&list, "f", line, strlen(line), &labels, NULL),
				 0);
		assert_int_equal(list.runs[0].state <= RUN_SUSPECT, counts);
		assert_int_equal(store_write_text(folder, &record, 1, NULL), 0);
		assert_int_equal(access(file, F_OK) == 0, counts);
		run_list_free(&list);
		record_free(record);
	}
	assert_int_equal(counted, 2);
	testing_remove_tree(folder);
}

/* What ended "history add" once: one latency with more keys than there was room for values. */
static void many_values_are_refused_or_kept(void **state)
{
	static const struct {
		int metrics;
		int error;
	} cases[] = {{250, 0}, {300, -EINVAL}};
	char *text = malloc(100000);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct run_list list = {.runs = NULL};
		size_t length = (size_t)sprintf(text, RECORD, 1, 1, 5, "m", "{}");
		char *at = strstr(text, "\"metrics\":{}") + 11;

		for (int k = 0; k < cases[i].metrics; k++)
			at += sprintf(at, "%s\"m%d\":{\"value\":%d}", k ? "," : "", k, k);
		length = (size_t)(at + sprintf(at, "}}\n") - text);
		assert_int_equal(run_list_read_text(&list, "f", text, length, &labels, NULL),
				 cases[i].error);
		assert_int_equal(list.count, cases[i].error ? 0 : 1);
		assert_int_equal(list.value_count, cases[i].error ? 0 : cases[i].metrics + 2);
		run_list_free(&list);
	}
	free(text);
}

/* --- the database --- */

struct place {
	char folder[4096], file[4200];
};

static int make_place(void **state)
{
	static struct place place;

	testing_make_tree(place.folder, sizeof(place.folder));
	snprintf(place.file, sizeof(place.file), "%s/h.db", place.folder);
	*state = &place;
	return 0;
}

static int remove_place(void **state)
{
	const struct place *place = *state;

	testing_remove_tree(place->folder);
	return 0;
}

static void open_history(const struct place *place, struct history *history)
{
	struct message message = {""};
	int error = history_open(place->file, true, history, &message);

	if (error == -ENOTSUP)
		SKIP_BECAUSE("built without SQLite");
	if (error)
		fail_msg("%s", message.text);
}

static size_t told, times;

static void acknowledge(void *data, size_t runs)
{
	(void)data;
	assert_true(runs > told);
	told = runs;
	times++;
}

static void make_runs(struct run_list *list, int from, int to)
{
	*list = (struct run_list){.runs = NULL};
	for (int i = from; i < to; i++)
		assert_int_equal(add_text(list, i, i, "{\"t\":4}"), 0);
}

static void adds_once_and_tells_each_transaction(void **state)
{
	struct history history;
	struct history_added added = {0};
	struct run_list list;

	open_history(*state, &history);
	make_runs(&list, 0, 25);
	told = times = 0;
	assert_int_equal(history_add(&history, &list, 10, acknowledge, NULL, &added, NULL), 0);
	assert_int_equal(added.runs, 25);
	assert_int_equal(added.values, 50);
	assert_int_equal(told, 25);
	assert_int_equal(times, 3);
	assert_int_equal(history_add(&history, &list, 0, NULL, NULL, &added, NULL), 0);
	assert_int_equal(added.runs, 0);
	assert_int_equal(added.known, 25);
	run_list_free(&list);
	make_runs(&list, 20, 30); /* some known, some new */
	assert_int_equal(history_add(&history, &list, 0, NULL, NULL, &added, NULL), 0);
	assert_int_equal(added.runs, 5);
	assert_int_equal(added.known, 5);
	run_list_free(&list);
	history_close(&history);
}

static void another_content_changes_nothing(void **state)
{
	struct history history;
	struct history_added added = {0};
	struct message message = {""};
	struct run_list list;

	open_history(*state, &history);
	make_runs(&list, 0, 10);
	assert_int_equal(history_add(&history, &list, 3, NULL, NULL, &added, NULL), 0);
	run_list_free(&list);
	make_runs(&list, 10, 20); /* new ones, and then one that is there as another */
	assert_int_equal(add_text(&list, 5, 77, "{\"t\":4}"), 0);
	assert_int_equal(history_add(&history, &list, 3, NULL, NULL, &added, &message), -EEXIST);
	assert_non_null(strstr(message.text, "in the history with another content"));
	run_list_free(&list);
	make_runs(&list, 10, 20);
	assert_int_equal(history_add(&history, &list, 3, NULL, NULL, &added, NULL), 0);
	assert_int_equal(added.runs, 10); /* none of them had been added */
	run_list_free(&list);
	history_close(&history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_that_are_compared_make_a_series),
		cmocka_unit_test(every_line_has_its_own_series),
		cmocka_unit_test(bad_lines_are_named),
		cmocka_unit_test(one_rule_says_which_runs_count),
		cmocka_unit_test(many_values_are_refused_or_kept),
		cmocka_unit_test(texts_are_kept_once),
		cmocka_unit_test(commits_and_times_are_read),
		cmocka_unit_test_setup_teardown(adds_once_and_tells_each_transaction, make_place,
						remove_place),
		cmocka_unit_test_setup_teardown(another_content_changes_nothing, make_place,
						remove_place),
	};

	return cmocka_run_group_tests_name("history/history", tests, NULL, NULL);
}
