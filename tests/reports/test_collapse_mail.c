/* SPDX-License-Identifier: MIT */
/* The published table, from its own numbers. */
#include "support/testing.h"

#include <math.h>

#include "base/array.h"
#include "base/json.h"
#include "reports/collapse_mail.h"
#include "reports/metrics_text.h"

struct numbers {
	double passes, cpu, table_ns, long_ns, short_ns, walked;
};

static void put(json_t *metrics, const char *name, const char *unit, const char *title,
		double value)
{
	json_object_set_new(metrics, name,
			    json_pack("{s:o,s:s,s:s,s:s}", "value", json_number_or_null(value),
				      "unit", unit, "better", "lower", "title", title));
}

static struct record *record_of(const struct numbers *numbers, double window_s)
{
	struct record *record = record_new("thp_collapse");

	assert_non_null(record);
	record->settings =
		json_pack("{s:I,s:f}", "size_bytes", (json_int_t)8 << 30, "window_s", window_s);
	record->metrics = json_object();
	put(record->metrics, "khugepaged_passes", "passes", "full passes over 8G in 20s",
	    numbers->passes);
	put(record->metrics, "khugepaged_cpu_pct", "%", "khugepaged CPU", numbers->cpu);
	put(record->metrics, "khugepaged_table_ns", "ns", "cost per refused table, wall",
	    numbers->table_ns);
	put(record->metrics, "collapse_512M_p50_ns", "ns", "512M per call, p50", numbers->long_ns);
	put(record->metrics, "collapse_2M_p50_ns", "ns", "2M per call, p50", numbers->short_ns);
	put(record->metrics, "walked_passes", "passes", "full passes over 8G in 20s",
	    numbers->walked);
	return record;
}

static char *printed(struct record *const *records, const char *const *names, size_t count)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	assert_int_equal(collapse_mail_print(stream, records, names, count), 0);
	fclose(stream);
	return text;
}

static void as_it_was_posted(void **state)
{
	static const struct numbers posted = {251180, 100, 19.4, 3800, 703, 803};
	static const struct numbers prototype = {55477, 100, 88.0, 17400, 703, 836};
	struct record *records[] = {record_of(&posted, 20), record_of(&prototype, 20)};
	const char *const names[] = {"as posted", "yours"};
	char *text = printed(records, names, 2);

	assert_string_equal(text,
			    "                                          as posted        yours\n"
			    "khugepaged, nothing to collapse:\n"
			    "  full passes over 8G in 20s                251,180       55,477\n"
			    "  khugepaged CPU                               100%         100%\n"
			    "  cost per refused table                    19.4 ns      88.0 ns\n"
			    "MADV_COLLAPSE, already huge:\n"
			    "  512M per call, p50                        3.80 us      17.4 us\n"
			    "  2M per call, p50                           703 ns       703 ns\n"
			    "tables walked in full then refused\n"
			    "  (max_ptes_none 0), passes in 20s              803          836\n");
	free(text);
	record_free(records[0]);
	record_free(records[1]);
}

static void what_is_missing_or_unlike_is_told(void **state)
{
	static const struct numbers some = {100, NAN, 19.4, 3800, 703, 803};
	struct record *records[] = {record_of(&some, 20), record_of(&some, 5)};
	const char *const names[] = {"a", "b"};
	char *text;

	json_object_del(records[1]->metrics, "collapse_512M_p50_ns");
	text = printed(records, names, 2);
	assert_non_null(
		strstr(text, "  memory, window                            8G, 20s       8G, 5s\n"));
	assert_non_null(
		strstr(text, "  khugepaged CPU                                n/a          n/a\n"));
	assert_non_null(
		strstr(text, "  512M per call, p50                        3.80 us          n/a\n"));
	assert_non_null(
		strstr(text, "  memory, window                            8G, 20s       8G, 5s\n"));
	assert_non_null(
		strstr(text, "  khugepaged CPU                                n/a          n/a\n"));
	assert_non_null(
		strstr(text, "  512M per call, p50                        3.80 us          n/a\n"));
	assert_non_null(strstr(text, "  full passes in the window                     100"));
	free(text);
	record_free(records[0]);
	record_free(records[1]);
}

/* The same work of the kernel tells that one column was measured on a slower machine. */
static void machines_that_were_not_equally_fast_are_told(void **state)
{
	static const struct numbers some = {100, 100, 19.4, 3800, 703, 803};
	struct record *records[] = {record_of(&some, 20), record_of(&some, 20)};
	const char *const names[] = {"a", "b"};
	char *text;

	put(records[0]->metrics, "collapse_reference_p50_ns", "ns", "fixed work", 60);
	text = printed(records, names, 2); /* nothing to compare it with */
	assert_null(strstr(text, "note:"));
	free(text);
	put(records[1]->metrics, "khugepaged_reference_p50_ns", "ns", "fixed work", 64);
	text = printed(records, names, 2);
	assert_null(strstr(text, "note:"));
	free(text);
	put(records[1]->metrics, "collapse_reference_p50_ns", "ns", "fixed work", 75);
	text = printed(records, names, 2);
	assert_non_null(strstr(text, "took 60.0 ns to 75.0 ns"));
	free(text);
	record_free(records[0]);
	record_free(records[1]);
}

static void numbers_for_people(void **state)
{
	static const struct {
		double value;
		const char *unit, *text;
	} cases[] = {
		{251180, "passes", "251,180"},
		{1234567, "passes", "1,234,567"},
		{19.44, "ns", "19.4 ns"},
		{703, "ns", "703 ns"},
		{999.7, "ns", "1.00 us"},
		{3800, "ns", "3.80 us"},
		{17400, "ns", "17.4 us"},
		{7.9e6, "ns", "7.90 ms"},
		{6e10, "ns", "60.0 s"},
		{99.6, "%", "100%"},
		{NAN, "ns", "n/a"},
		{19, "passes", "19.0"},
		{-12.5, "ns", "-12.5 ns"},
		{0, "ns", "0.00 ns"},
		{-251180, "passes", "-251,180"},
	};
	char text[32];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(
			metric_format(cases[i].value, cases[i].unit, text, sizeof(text)),
			cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_it_was_posted),
		cmocka_unit_test(what_is_missing_or_unlike_is_told),
		cmocka_unit_test(machines_that_were_not_equally_fast_are_told),
		cmocka_unit_test(numbers_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
