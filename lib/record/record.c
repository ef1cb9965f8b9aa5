/* SPDX-License-Identifier: MIT */
#include "record/record.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/random.h"

/* A random UUID, version 4 of RFC 9562. */
static void make_id(char id[37])
{
	uint64_t high = random_fresh_seed(), low = random_fresh_seed();

	high = (high & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
	low = (low & ~(UINT64_C(3) << 62)) | (UINT64_C(1) << 63);
	snprintf(id, 37, "%08x-%04x-%04x-%04x-%012llx", (unsigned int)(high >> 32),
		 (unsigned int)(high >> 16) & 0xffff, (unsigned int)high & 0xffff,
		 (unsigned int)(low >> 48), (unsigned long long)(low & UINT64_C(0xffffffffffff)));
}

struct record *record_new_blank(const char *benchmark)
{
	struct record *record = calloc(1, sizeof(*record));

	if (!record)
		return NULL;
	record->duration_s = NAN;
	record->igt_cycles = record->igt_mean_us = record->igt_max_us = NAN;
	record->pinned_bytes = -1;
	record->throttle_gaps = record->throttle_total_us = -1;
	record->block = record->order = -1;
	record->benchmark = benchmark ? strdup(benchmark) : NULL;
	record->status = strdup("ok");
	record->trace_level = strdup("off");
	record->reasons = json_array();
	record->notes = json_array();
	if ((benchmark && !record->benchmark) || !record->status || !record->trace_level ||
	    !record->reasons || !record->notes) {
		record_free(record);
		return NULL;
	}
	return record;
}

struct record *record_new(const char *benchmark)
{
	struct record *record = record_new_blank(benchmark);

	if (!record)
		return NULL;
	make_id(record->id);
	clock_rfc3339(record->started, sizeof(record->started));
	return record;
}

void record_free(struct record *record)
{
	if (!record)
		return;
	free(record->benchmark);
	free(record->arm);
	free(record->variant);
	free(record->backend);
	free(record->measure);
	free(record->scope);
	for (size_t i = 0; record->loads && record->loads[i]; i++)
		free(record->loads[i]);
	free(record->loads);
	free(record->histogram);
	free(record->sparse);
	free(record->per_cpu);
	free(record->pin_method);
	free(record->release_context);
	free(record->trace_level);
	free(record->status);
	free(record->stderr_tail);
	json_decref(record->phases);
	json_decref(record->load_stats);
	json_decref(record->counters);
	json_decref(record->environment);
	json_decref(record->causes);
	json_decref(record->worst);
	json_decref(record->metrics);
	json_decref(record->settings);
	json_decref(record->command);
	json_decref(record->reasons);
	json_decref(record->notes);
	free(record);
}

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[] = {"valid", "suspect", "invalid"};

	return (unsigned int)verdict < 3 ? names[verdict] : "unknown";
}

enum record_use record_use(const struct record *record)
{
	if (strcmp(record->status, "ok") != 0)
		return RECORD_FAILED;
	if (record->interrupted)
		return RECORD_INTERRUPTED;
	return record->verdict == VERDICT_INVALID ? RECORD_INVALID : RECORD_COUNTS;
}

const char *record_arm_name(const struct record *record)
{
	if (record->arm && *record->arm)
		return record->arm;
	return record->variant && *record->variant ? record->variant : record->benchmark;
}

static void append_text(json_t **array, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));

/* Without memory the text is lost, the verdict is not. */
static __attribute__((format(printf, 2, 0))) void append_text(json_t **array, const char *format,
							      va_list arguments)
{
	char *text = NULL;

	if (vasprintf(&text, format, arguments) < 0)
		return;
	if (!*array)
		*array = json_array();
	json_array_append_new(*array, json_string_or_null(text));
	free(text);
}

void record_reason(struct record *record, enum verdict at_least, const char *format, ...)
{
	va_list arguments;

	if (record->verdict < at_least)
		record->verdict = at_least;
	va_start(arguments, format);
	append_text(&record->reasons, format, arguments);
	va_end(arguments);
}

void record_note(struct record *record, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	append_text(&record->notes, format, arguments);
	va_end(arguments);
}

void commit_of_release(const char *release, char *buffer, size_t size)
{
	for (const char *at = release; (at = strstr(at, "-g")); at++) {
		size_t digits = strspn(at + 2, "0123456789abcdef");

		if (digits >= 7 && digits <= 40 && !isalnum((unsigned char)at[2 + digits])) {
			snprintf(buffer, size, "%.*s", (int)digits, at + 2);
			return;
		}
	}
	snprintf(buffer, size, "%s", *release ? release : "unknown");
}
