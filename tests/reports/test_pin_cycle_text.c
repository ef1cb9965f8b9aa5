/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include "base/json.h"
#include "reports/pin_cycle_text.h"

static void put(json_t *metrics, const char *name, double value, double low, double high)
{
	json_object_set_new(metrics, name,
			    json_pack("{s:f,s:s,s:s,s:i,s:f,s:[f,f]}", "value", value, "unit", "ns",
				      "better", "lower", "count", 20, "mean", value + 1,
				      "median_ci", low, high));
}

static char *printed(const struct record *record, bool details)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	assert_int_equal(pin_cycle_text_print(stream, record, details), 0);
	fclose(stream);
	return text;
}

static void a_column_a_way_and_verdicts_by_the_interval(void **state)
{
	struct record *record = record_new("pin_cycle");
	json_t *metrics = json_object();
	char *text;

	record->settings = json_pack("{s:[s,s,s]}", "lanes", "stock", "mapping", "mlock");
	record->metrics = metrics;
	put(metrics, "cold_release_stock_16M_page_ns", 600, 590, 610);
	put(metrics, "cold_release_mapping_16M_page_ns", 780, 770, 790);
	put(metrics, "cold_release_mapping_16M_page_cpu_ns", 770, 760, 780);
	put(metrics, "cold_release_mapping_over_stock_16M_page_ns", 180, 170, 190);
	put(metrics, "cold_release_mapping_over_stock_16M_page_cpu_ns", 180, 170, 190);
	put(metrics, "cold_release_mapping_over_mlock_16M_page_cpu_ns", -130, -140, -120);
	put(metrics, "pressure_release_mapping_over_mlock_2M_page_cpu_ns", -13, -140, 20);
	put(metrics, "pageout_reclaim_mapping_over_stock_8M_page_cpu_ns", -13, 0, 0);
	json_object_set_new(
		json_object_get(metrics, "pageout_reclaim_mapping_over_stock_8M_page_cpu_ns"),
		"median_ci", json_null());
	text = printed(record, false);
	assert_non_null(strstr(text, "memory free; a page, median of 20 rounds (16M)\n"));
	/* mlock was not measured for this phase. */
	assert_non_null(strstr(
		text, "  16M    release                   600 ns      780 ns           -\n"));
	assert_non_null(strstr(text, "180 ns a page, 95% [170 ns, 190 ns]: dearer\n"));
	assert_non_null(strstr(text, "-130 ns a page, 95% [-140 ns, -120 ns]: cheaper\n"));
	assert_non_null(strstr(text, "-13.0 ns a page, 95% [-140 ns, 20.0 ns]: not told apart\n"));
	assert_non_null(strstr(text, "[n/a, n/a]: too few rounds to say\n"));
	assert_null(strstr(text, "processor time   "));
	free(text);
	text = printed(record, true);
	assert_non_null(strstr(text, "  16M      mean                    601 ns      781 ns"));
	assert_non_null(strstr(text, "  16M      processor time               -      770 ns"));
	free(text);
	record_free(record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_column_a_way_and_verdicts_by_the_interval),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
