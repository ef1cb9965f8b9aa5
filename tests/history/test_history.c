/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>

#include "base/array.h"
#include "history/history.h"
#include "history/reader.h"

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

		snprintf(wanted, sizeof(wanted), "\"t\":%d}", i % KINDS);
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
			 0); /* an array of settings is kept as it stands */
	length =
		snprintf(text, sizeof(text), RECORD RECORD, 1, 1, 5, "m", "{}", 2, 2, 6, "m", "{}");
	assert_int_equal(
		run_list_read_text(&list, "f", text, (size_t)length - 20, &labels, &message),
		-EINVAL);
	assert_non_null(strstr(message.text, "f: line 2 is torn"));
	run_list_free(&list);
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
		cmocka_unit_test_setup_teardown(adds_once_and_tells_each_transaction, make_place,
						remove_place),
		cmocka_unit_test_setup_teardown(another_content_changes_nothing, make_place,
						remove_place),
	};

	return cmocka_run_group_tests_name("history/history", tests, NULL, NULL);
}
