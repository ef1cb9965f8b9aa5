/* SPDX-License-Identifier: MIT */
#include "run_progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/parse.h"
#include "record/record.h"

char *format_span(int64_t ns, char *buffer, size_t size)
{
	int64_t seconds = (ns + 500000000) / 1000000000;

	if (ns < INT64_C(60000000000) && seconds < 60)
		snprintf(buffer, size, ns < INT64_C(9950000000) ? "%.1f s" : "%.0f s",
			 (double)ns / 1e9);
	else if (seconds < 3600 && seconds % 60 == 0)
		snprintf(buffer, size, "%lld min", (long long)(seconds / 60));
	else if (seconds < 3600)
		snprintf(buffer, size, "%lld min %lld s", (long long)(seconds / 60),
			 (long long)(seconds % 60));
	else
		snprintf(buffer, size, "%lld h %lld min", (long long)(seconds / 3600),
			 (long long)(seconds % 3600 / 60));
	return buffer;
}

void run_progress_clear(struct run_progress_printer *printer)
{
	if (printer->live)
		fputs("\r\033[K", stderr);
	printer->live = false;
}

/* "run 14/40, block 3, mapping": what is said of every run. */
static int describe(const struct experiment_step *step, char *buffer, size_t size)
{
	return snprintf(buffer, size, "run %lld/%lld, %s %lld, %s%s", (long long)step->number,
			(long long)step->total, step->warm_up ? "warm-up" : "block",
			(long long)step->block, step->arm->name,
			step->attempt > 1 ? ", second try" : "");
}

static void print_live(void *data, const struct experiment_step *step)
{
	struct run_progress_printer *printer = data;
	struct winsize window = {.ws_col = 80};
	char line[256], elapsed[32], left[32];
	int used = describe(step, line, sizeof(line));

	if (!printer->terminal || printer->quiet || used >= (int)sizeof(line))
		return;
	used += snprintf(line + used, sizeof(line) - (size_t)used, ": %s",
			 format_span(step->elapsed_ns, elapsed, sizeof(elapsed)));
	if (step->left_ns >= 0 && used < (int)sizeof(line))
		snprintf(line + used, sizeof(line) - (size_t)used, ", %s %s left",
			 step->experiment->stopping.rule == RULE_FIXED ? "about" : "at most",
			 format_span(step->left_ns, left, sizeof(left)));
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) < 0 || window.ws_col < 20)
		window.ws_col = 80;
	fprintf(stderr, "\r%.*s\033[K", window.ws_col - 1, line);
	fflush(stderr);
	printer->live = true;
}

/* "mean 812 us" of the record, or nothing. */
static void describe_value(const struct record *record, char *buffer, size_t size)
{
	static const char *const metrics[] = {"mean", "value"};
	const char *unit;
	double value;

	buffer[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		if (record_metric(record, metrics[i], &value, &unit) == 0 && isfinite(value)) {
			snprintf(buffer, size, "%s %.5g%s%s, ", metrics[i], value, *unit ? " " : "",
				 unit);
			return;
		}
}

static void print_end(void *data, const struct experiment_step *step, const struct record *record,
		      const char *why)
{
	struct run_progress_printer *printer = data;
	char what[160], value[80], elapsed[32], left[48] = "", span[32];
	bool failed = why[0] != '\0';

	if (printer->quiet || (printer->terminal && !failed))
		return;
	run_progress_clear(printer);
	describe(step, what, sizeof(what));
	describe_value(record, value, sizeof(value));
	format_span(step->elapsed_ns, elapsed, sizeof(elapsed));
	if (step->left_ns >= 0)
		snprintf(left, sizeof(left), "; %s left",
			 format_span(step->left_ns, span, sizeof(span)));
	if (record->interrupted)
		fprintf(stderr, "%s: interrupted after %s\n", what, elapsed);
	else if (failed)
		fprintf(stderr, "%s: failed after %s: %s%s\n", what, elapsed, why,
			step->attempt == 1 ? "; trying once more" : "");
	else
		fprintf(stderr, "%s: %s%s%s%s%s\n", what, value,
			record->verdict == VERDICT_VALID ? "" : verdict_name(record->verdict),
			record->verdict == VERDICT_VALID ? "" : ", ", elapsed, left);
}

static void print_note(void *data, const char *text)
{
	struct run_progress_printer *printer = data;

	run_progress_clear(printer);
	fprintf(stderr, "syslat run: %s\n", text);
}

void run_progress_init(struct run_progress_printer *printer, bool quiet)
{
	*printer = (struct run_progress_printer){
		.terminal = isatty(STDERR_FILENO) == 1,
		.quiet = quiet,
	};
}

void run_progress_events(struct run_progress_printer *printer, struct experiment_events *events)
{
	events->data = printer;
	events->begin = print_live;
	events->tick = print_live;
	events->end = print_end;
	events->note = print_note;
}
