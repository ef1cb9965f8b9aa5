/* SPDX-License-Identifier: MIT */
/* What is under way and how long it will take, for a person who waits. */
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "collapse/state.h"

#define AGAIN_NS NS_PER_S

/* Before a row has been measured once its time is guessed from the window. */
static int64_t row_ns(const struct collapse *collapse, size_t row)
{
	const struct collapse_settings *settings = collapse->settings;

	if (collapse->outcomes[row].took_ns > 0)
		return collapse->outcomes[row].took_ns;
	if (collapse_rows[row].run == collapse_scan_row)
		return (int64_t)settings->sweep_count * settings->window_ns / 2 * 3;
	return settings->window_ns / 2;
}

void collapse_expect_end(struct collapse *collapse)
{
	int64_t left_ns = 0;

	for (unsigned int run = collapse->run; run < collapse->settings->runs; run++)
		for (size_t i = run == collapse->run ? collapse->row : 0; collapse_rows[i].name;
		     i++)
			if (collapse->outcomes[i].wanted && !collapse->outcomes[i].absent)
				left_ns += row_ns(collapse, i);
	collapse->expected_end_ns = clock_now_ns() + left_ns;
}

static void show(struct collapse *collapse)
{
	int64_t now_ns = clock_now_ns();
	double left_s = (double)(collapse->expected_end_ns - now_ns) / 1e9;
	char text[200];

	collapse->progress_again_ns = now_ns + AGAIN_NS;
	if (left_s < 1)
		snprintf(text, sizeof(text), "%s", collapse->progress);
	else if (left_s < 100)
		snprintf(text, sizeof(text), "%s, about %.0f s left", collapse->progress, left_s);
	else
		snprintf(text, sizeof(text), "%s, about %.0f min left", collapse->progress,
			 left_s / 60);
	collapse->settings->progress(collapse->settings->progress_data, text);
}

void collapse_progress(struct collapse *collapse, const char *format, ...)
{
	va_list arguments;

	if (!collapse->settings->progress)
		return;
	va_start(arguments, format);
	vsnprintf(collapse->progress, sizeof(collapse->progress), format, arguments);
	va_end(arguments);
	show(collapse);
}

void collapse_progress_again(struct collapse *collapse)
{
	if (collapse->settings->progress && collapse->progress[0] &&
	    clock_now_ns() >= collapse->progress_again_ns)
		show(collapse);
}
