/* SPDX-License-Identifier: MIT */
/* What every row needs in its turn: metrics, broken conditions, progress, samples, undoing. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "base/clock.h"
#include "collapse/state.h"
#include "stats/series.h"

bool collapse_stopping(const struct collapse *collapse)
{
	return collapse->settings->interrupted && *collapse->settings->interrupted;
}

/* --- progress --- */

/* With the time that is left now. */
static void show(struct collapse *collapse)
{
	int64_t now_ns = clock_now_ns();
	double left_s = (double)(collapse->expected_end_ns - now_ns) / 1e9;
	char text[200];

	collapse->progress_again_ns = now_ns + NS_PER_S;
	if (left_s < 1)
		snprintf(text, sizeof(text), "%s", collapse->progress);
	else
		snprintf(text, sizeof(text), "%s, about %.0f %s left", collapse->progress,
			 left_s < 100 ? left_s : left_s / 60, left_s < 100 ? "s" : "min");
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

bool collapse_sleep(struct collapse *collapse, int64_t ns)
{
	int64_t end_ns = clock_now_ns() + ns, now_ns;

	while ((now_ns = clock_now_ns()) < end_ns && !collapse_stopping(collapse)) {
		if (collapse->settings->progress && collapse->progress[0] &&
		    now_ns >= collapse->progress_again_ns)
			show(collapse);
		clock_sleep_until(end_ns - now_ns > 100 * NS_PER_MS ? now_ns + 100 * NS_PER_MS
								    : end_ns);
	}
	return !collapse_stopping(collapse);
}

/* --- metrics and conditions --- */

void collapse_prefix(struct collapse *collapse, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(collapse->prefix, sizeof(collapse->prefix), format, arguments);
	va_end(arguments);
}

void collapse_put(struct collapse *collapse, const char *name, const char *unit, double value,
		  const char *title_format, ...)
{
	char full[160], title[128];
	struct metric_kind kind = {full, title, unit, strcmp(unit, "ns") != 0};
	va_list arguments;

	snprintf(full, sizeof(full), "%s_%s%s", collapse->row->name, collapse->prefix, name);
	for (char *at = full; *at; at++)
		if (*at == '-')
			*at = '_';
	va_start(arguments, title_format);
	vsnprintf(title, sizeof(title), title_format, arguments);
	va_end(arguments);
	metric_table_add(&collapse->metrics, &kind, value);
}

void collapse_break(struct collapse *collapse, const char *format, ...)
{
	char *text = collapse->outcome->why.text;
	size_t used = strlen(text), size = sizeof(collapse->outcome->why.text);
	va_list arguments;

	collapse->conditions_met = false;
	/* Every reason of the first turn that was disturbed; later ones count. */
	if (collapse->outcome->broken > 0)
		return;
	if (used > 0)
		used += (size_t)snprintf(text + used, size - used, "; ");
	va_start(arguments, format);
	if (used < size)
		vsnprintf(text + used, size - used, format, arguments);
	va_end(arguments);
}

size_t collapse_mark(const struct collapse *collapse)
{
	return collapse->transaction ? transaction_mark(collapse->transaction) : 0;
}

int collapse_undo(struct collapse *collapse, size_t mark, int error, struct message *why)
{
	struct message undo;
	int undo_error =
		collapse->transaction ? transaction_undo_to(collapse->transaction, mark, &undo) : 0;

	return error || !undo_error ? error : message_set(why, undo_error, "%s", undo.text);
}

/* --- samples --- */

int collapse_samples_make(struct collapse_samples *samples, size_t capacity)
{
	double *values = malloc(capacity * sizeof(*values));

	if (!values)
		return -ENOMEM;
	/* Their pages shall exist before anything is timed. */
	for (size_t i = 0; i < capacity; i++)
		values[i] = 0;
	*samples = (struct collapse_samples){.values = values, .capacity = capacity};
	return 0;
}

void collapse_samples_free(struct collapse_samples *samples)
{
	free(samples->values);
	*samples = (struct collapse_samples){0};
}

void collapse_samples_add(const struct collapse *collapse, struct collapse_samples *samples,
			  int64_t begin_ns)
{
	double took_ns = (double)(clock_now_ns() - begin_ns) - collapse->clock_cost_ns;

	if (samples->count < samples->capacity)
		samples->values[samples->count++] = took_ns;
}

void collapse_samples_sort(struct collapse_samples *samples)
{
	series_sort(samples->values, samples->count);
}

double collapse_samples_at(const struct collapse_samples *samples, double fraction)
{
	double rarer = fraction < 0.5 ? fraction : 1 - fraction;

	if (samples->count == 0 || (rarer > 0 && (double)samples->count * rarer < 1))
		return NAN;
	return samples->values[fraction >= 1 ? samples->count - 1
					     : (size_t)((double)samples->count * fraction)];
}

void collapse_put_samples(struct collapse *collapse, struct collapse_samples *samples,
			  unsigned int further, const char *title_format, ...)
{
	static const struct {
		const char *name, *title;
		double fraction;
		unsigned int further; /* 0: always */
	} points[] = {{"p50_ns", "p50", 0.5, 0},
		      {"p99_ns", "p99", 0.99, 0},
		      {"p99_9_ns", "p99.9", 0.999, SAMPLES_P99_9},
		      {"max_ns", "max", 1, SAMPLES_MAX}};
	char title[100];
	va_list arguments;

	va_start(arguments, title_format);
	vsnprintf(title, sizeof(title), title_format, arguments);
	va_end(arguments);
	collapse_samples_sort(samples);
	for (size_t i = 0; i < ARRAY_SIZE(points); i++)
		if (!points[i].further || points[i].further & further)
			collapse_put(collapse, points[i].name, "ns",
				     collapse_samples_at(samples, points[i].fraction), "%s, %s",
				     title, points[i].title);
}

/* --- memory --- */

uint64_t collapse_small_bytes(const struct collapse *collapse, uint64_t most_bytes)
{
	uint64_t bytes = collapse->bytes / 4;

	if (bytes > most_bytes)
		bytes = most_bytes;
	bytes -= bytes % collapse->table_bytes;
	return bytes ? bytes : collapse->table_bytes;
}

void collapse_touch(const struct collapse *collapse, char *memory, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		*(volatile char *)(memory + i * collapse->page_bytes) = 1;
}

void collapse_warm_up(const struct collapse *collapse, uint64_t bytes)
{
	uint64_t twice = 2 * bytes < collapse->bytes ? 2 * bytes : collapse->bytes;
	struct thp_region region;

	if (thp_region_map(twice, &region) < 0)
		return;
	madvise(region.memory, region.bytes, MADV_HUGEPAGE);
	collapse_touch(collapse, region.memory, twice / collapse->page_bytes);
	thp_region_unmap(&region);
}
