/* SPDX-License-Identifier: MIT */
#include "reports/comparison_plot.h"

#include <errno.h>
#include <math.h>

#include "base/array.h"
#include "support/testing.h"

#include "stats/series.h"

#define ARMS 17

/* A comparison that holds no more than a plot looks at. */
struct picture {
	struct comparison comparison;
	struct comparison_arm arms[ARMS];
	char *text;
};

static void add_arm(struct picture *picture, double *values, size_t count)
{
	struct comparison_arm *arm = &picture->arms[picture->comparison.count++];
	double sum = 0, square = 0;

	assert_int_equal(series_sort(values, count), 0);
	for (size_t i = 0; i < count; i++)
		sum += values[i];
	for (size_t i = 0; i < count; i++)
		square += (values[i] - sum / (double)count) * (values[i] - sum / (double)count);
	*arm = (struct comparison_arm){
		.sorted = values,
		.count = count,
		.minimum = values[0],
		.maximum = values[count - 1],
		.median = series_median(values, count),
		.mean = sum / (double)count,
		.stddev = count > 1 ? sqrt(square / (double)(count - 1)) : NAN,
	};
	picture->comparison.arms = picture->arms;
	picture->comparison.unit = "us";
}

static int draw(struct picture *picture, enum comparison_plot kind, size_t width)
{
	size_t size;
	FILE *stream;
	int error;

	free(picture->text);
	picture->text = NULL;
	stream = open_memstream(&picture->text, &size);
	error = plot_write(stream, &picture->comparison, kind, width);
	fclose(stream);
	return error;
}

/* Cells above the bars that hold @mark; every line of the frame must be @width wide. */
static size_t marks(const struct picture *picture, char mark, size_t width)
{
	size_t count = 0, arms = picture->comparison.count, rows = 0, row = 0;

	for (const char *line = picture->text; *line; line = strchr(line, '\n') + 1)
		rows += *line == '|';
	for (const char *line = picture->text; *line; line = strchr(line, '\n') + 1) {
		size_t length = (size_t)(strchr(line, '\n') - line);

		if (*line == '|' || *line == '+')
			assert_int_equal(length, width);
		if (*line != '|' || ++row > rows - arms)
			continue;
		for (size_t i = 1; i + 1 < length; i++)
			count += line[i] == mark;
	}
	return count;
}

static void no_mark_is_lost(void **state)
{
	static double values[200], same[120];
	struct picture picture = {.text = NULL};

	for (int i = 0; i < 200; i++)
		values[i] = 1000 + i % 37 * (i % 5);
	for (int i = 0; i < 120; i++)
		same[i] = 1000 + i;
	add_arm(&picture, values, 200);
	assert_int_equal(draw(&picture, PLOT_LINEAR, 74), 0);
	assert_true(strstr(picture.text, "each mark is up to 2 values"));
	free(picture.text);
	picture = (struct picture){.text = NULL};
	add_arm(&picture, same, 120);
	assert_int_equal(draw(&picture, PLOT_LINEAR, 74), 0);
	assert_int_equal(marks(&picture, 'x', 74), 120);
	assert_null(strstr(picture.text, "each mark"));
	assert_int_equal(draw(&picture, PLOT_LOG, 40), 0);
	assert_int_equal(marks(&picture, 'x', 40), 120);
	free(picture.text);
}

static void overlaps_are_told_apart(void **state)
{
	double a[] = {1, 2, 2, 9}, b[] = {2, 9, 9}, c[] = {2, 5};
	struct picture picture = {.text = NULL};

	add_arm(&picture, a, 4);
	add_arm(&picture, b, 3);
	assert_int_equal(draw(&picture, PLOT_LINEAR, 74), 0);
	assert_int_equal(marks(&picture, '*', 74), 2); /* at 2 and at 9 */
	assert_int_equal(marks(&picture, 'x', 74), 2);
	assert_int_equal(marks(&picture, '+', 74), 1);
	add_arm(&picture, c, 2);
	assert_int_equal(draw(&picture, PLOT_LINEAR, 74), 0);
	/* '*' is the third arm now; all three meet at 2, the first two at 9. */
	assert_int_equal(marks(&picture, '*', 74), 1);
	assert_int_equal(marks(&picture, 'x', 74), 2);
	assert_true(strstr(picture.text, "overlaps: a = "));
	assert_true(strstr(picture.text, "= x+*"));
	assert_true(strstr(picture.text, "= x+ ") || strstr(picture.text, "= x+\n"));
	free(picture.text);
}

static void the_axis(void **state)
{
	double near[] = {100, 9999}, far[] = {100, 10000}, zero[] = {0, 1e6}, minus[] = {-1, 1};
	double wide[] = {1, 10, 100};
	struct picture picture = {.text = NULL};

	add_arm(&picture, near, 2);
	assert_int_equal(draw(&picture, PLOT_AUTO, 74), 0);
	assert_null(strstr(picture.text, "log axis"));
	picture.comparison.count = 0;
	add_arm(&picture, far, 2);
	assert_int_equal(draw(&picture, PLOT_AUTO, 74), 0);
	assert_true(strstr(picture.text, "log axis, 100 to 1e+04 us, for its range"));
	assert_int_equal(draw(&picture, PLOT_LINEAR, 74), 0);
	assert_null(strstr(picture.text, "log axis"));
	picture.comparison.count = 0;
	add_arm(&picture, zero, 2);
	assert_int_equal(draw(&picture, PLOT_AUTO, 74), 0);
	assert_null(strstr(picture.text, "log axis"));
	assert_int_equal(draw(&picture, PLOT_LOG, 74), -ERANGE);
	picture.comparison.count = 0;
	add_arm(&picture, minus, 2);
	assert_int_equal(draw(&picture, PLOT_LOG, 74), -ERANGE);
	/* On the log axis 10 lies in the middle of 1 and 100, on the edge of two columns. */
	picture.comparison.count = 0;
	add_arm(&picture, wide, 3);
	assert_int_equal(draw(&picture, PLOT_LOG, 74), 0);
	assert_true(strchr(picture.text, '\n')[1 + 1 + 35] == 'x' ||
		    strchr(picture.text, '\n')[1 + 1 + 36] == 'x');
	free(picture.text);
}

static void heights_are_scaled(void **state)
{
	static double values[100000];
	struct picture picture = {.text = NULL};
	size_t each = 0, seen;

	for (int i = 0; i < 100000; i++)
		values[i] = i < 99999 ? 5 : 1;
	add_arm(&picture, values, 100000);
	assert_int_equal(draw(&picture, PLOT_LINEAR, 74), 0);
	assert_int_equal(sscanf(strstr(picture.text, "each mark is up to "),
				"each mark is up to %zu", &each),
			 1);
	seen = marks(&picture, 'x', 74);
	assert_int_equal(each, 2500);
	assert_int_equal(seen, 41); /* 40 for the heap, and the single one still has its own */
	free(picture.text);
}

static void any_width_any_values(void **state)
{
	static const size_t widths[] = {0, 1, 2, 3, 23, 24, 25, 74, 500};
	double one[] = {5}, equal[] = {3, 3, 3}, huge[] = {-1.7e308, 1e308, 1.7e308},
	       tiny[] = {5e-324, 1e-320, 6};
	struct {
		double *values;
		size_t count;
	} sets[] = {{one, 1}, {equal, 3}, {huge, 3}, {tiny, 3}};

	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		for (size_t j = 0; j < ARRAY_SIZE(widths); j++) {
			struct picture picture = {.text = NULL};
			size_t width = widths[j] < 24 ? 24 : widths[j];

			add_arm(&picture, sets[i].values, sets[i].count);
			assert_int_equal(draw(&picture, PLOT_AUTO, widths[j]), 0);
			assert_int_equal(marks(&picture, 'x', width), sets[i].count);
			free(picture.text);
		}
}

static void many_arms(void **state)
{
	static double values[ARMS][2];
	struct picture picture = {.text = NULL};

	for (size_t i = 0; i < ARMS - 1; i++) {
		values[i][0] = (double)(10 * i);
		values[i][1] = 1000; /* where all meet */
		add_arm(&picture, values[i], 2);
		assert_int_equal(draw(&picture, PLOT_LINEAR, 200), 0);
		for (size_t j = 0; j <= i && i >= 6; j++)
			assert_int_equal(marks(&picture, plot_symbol(j), 200), 1);
	}
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(plot_symbol(i), "x+*%#@O"[i]);
	add_arm(&picture, values[ARMS - 1], 2);
	assert_int_equal(draw(&picture, PLOT_LINEAR, 200), -E2BIG);
	assert_int_equal(draw(&picture, PLOT_NONE, 200), 0);
	assert_string_equal(picture.text, "");
	free(picture.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_mark_is_lost),
		cmocka_unit_test(overlaps_are_told_apart),
		cmocka_unit_test(the_axis),
		cmocka_unit_test(heights_are_scaled),
		cmocka_unit_test(any_width_any_values),
		cmocka_unit_test(many_arms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
