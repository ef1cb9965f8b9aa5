/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <math.h>

#include "base/json.h"
#include "record/metric_table.h"

static const struct metric_kind passes = {"a_passes", "passes", "passes", true};

static void median_of_what_counts(void **state)
{
	const double values[] = {5, 1, 4, 2, 100};
	struct metric_table table = {0};
	const json_t *metric;
	json_t *json;

	for (unsigned int i = 0; i < 5; i++) {
		table.group = i;
		metric_table_add(&table, &passes, values[i]);
	}
	metric_table_leave_out(&table, 4);
	json = metric_table_json(&table);
	metric = json_object_get(json, "a_passes");
	assert_true(json_get_number(metric, "value", 0) == 3);
	assert_true(json_get_number(metric, "min", 0) == 1);
	assert_true(json_get_number(metric, "max", 0) == 5);
	assert_int_equal(json_get_int64(metric, "count", 0), 4);
	assert_int_equal(json_get_int64(metric, "left_out", 0), 1);
	assert_string_equal(json_get_string(metric, "better", ""), "higher");
	/* What was left out can still be seen, in order of time. */
	assert_int_equal(json_array_size(json_object_get(metric, "values")), 5);
	assert_true(json_number_value(json_array_get(json_object_get(metric, "values"), 4)) == 100);
	json_decref(json);
	metric_table_free(&table);
}

static void all_left_out_is_told_and_shown(void **state)
{
	struct metric_table table = {.group = 7};
	json_t *json;

	metric_table_add(&table, &passes, 2);
	metric_table_add(&table, &passes, 4);
	metric_table_leave_out(&table, 7);
	json = metric_table_json(&table);
	assert_true(json_get_number(json_at(json, "a_passes"), "value", 0) == 3);
	assert_int_equal(json_get_int64(json_at(json, "a_passes"), "left_out", 0), 2);
	json_decref(json);
	metric_table_free(&table);
}

static void nan_is_null(void **state)
{
	struct metric_table table = {0};
	json_t *json;

	metric_table_add(&table, &passes, NAN);
	json = metric_table_json(&table);
	assert_true(json_is_null(json_at(json, "a_passes.value")));
	assert_true(json_is_null(json_array_get(json_at(json, "a_passes.values"), 0)));
	assert_int_equal(json_get_int64(json_at(json, "a_passes"), "count", -1), 0);
	json_decref(json);
	metric_table_free(&table);
}

static void many_series_of_many_values(void **state)
{
	struct metric_table table = {0};
	json_t *json;

	for (int i = 0; i < 100; i++)
		for (int k = 0; k < 50; k++) {
			char name[32];
			struct metric_kind kind = {name, "some", "ns", false};

			snprintf(name, sizeof(name), "m%d", k);
			metric_table_add(&table, &kind, i * k);
		}
	assert_false(table.failed);
	assert_int_equal(table.count, 50);
	json = metric_table_json(&table);
	assert_true(json_get_number(json_at(json, "m49"), "max", 0) == 99 * 49);
	assert_null(metric_table_find(&table, "m50"));
	json_decref(json);
	metric_table_free(&table);
}

static json_t *of_values(int count)
{
	struct metric_table table = {0};
	json_t *json;

	for (int i = 1; i <= count; i++)
		metric_table_add(&table, &passes, i);
	json = metric_table_json(&table);
	metric_table_free(&table);
	assert_non_null(json);
	return json;
}

static void numbers_as_the_count_allows(void **state)
{
	json_t *few = of_values(5), *some = of_values(9), *many = of_values(200);

	assert_true(json_is_null(json_at(few, "a_passes.median_ci")));
	assert_true(json_is_null(json_at(few, "a_passes.p99")));
	/* 2 and 8 of 9 leave 2% each outside (binomial). */
	assert_true(json_number_value(json_array_get(json_at(some, "a_passes.median_ci"), 0)) == 2);
	assert_true(json_number_value(json_array_get(json_at(some, "a_passes.median_ci"), 1)) == 8);
	assert_true(json_get_number(json_at(many, "a_passes"), "mean", 0) == 100.5);
	assert_true(json_get_number(json_at(many, "a_passes"), "p99", 0) == 199);
	assert_null(json_at(many, "a_passes.values")); /* too long for a record */
	json_decref(few);
	json_decref(some);
	json_decref(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(median_of_what_counts),
		cmocka_unit_test(all_left_out_is_told_and_shown),
		cmocka_unit_test(nan_is_null),
		cmocka_unit_test(many_series_of_many_values),
		cmocka_unit_test(numbers_as_the_count_allows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
