/* SPDX-License-Identifier: MIT */
#ifndef BENCHMARKS_COMMON_H
#define BENCHMARKS_COMMON_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/exit.h"
#include "base/message.h"
#include "base/options.h"
#include "record/record.h"

/* What the three programs do alike around their one call. They print; the library does not. */

struct benchmark {
	const char *name;  /* "pin_cycle" */
	const char *usage; /* "pin_cycle [options]" */
	const char *about; /* one sentence or two */
	const struct option_row *rows;
	size_t row_count;
};

/* Rows of the table of options that each of them has; @member of their struct settings. */
#define BENCHMARK_STRING_ROW(name, word, member, text)                      \
	{                                                                   \
		.kind = OPTION_STRING, .long_name = name, .argument = word, \
		.offset = offsetof(struct settings, member), .help = text   \
	}
#define BENCHMARK_JSON_ROW(member)                   \
	BENCHMARK_STRING_ROW("json", "FILE", member, \
			     "write the record (-: standard output, in place of the text)")
#define BENCHMARK_ARM_ROW(member) \
	BENCHMARK_STRING_ROW("arm", "NAME", member, "name of the arm in the record")
#define BENCHMARK_DEVICE_ROW(member)                  \
	BENCHMARK_STRING_ROW("device", "DEV", member, \
			     "DRM device: /dev/dri/... or pci:vendor=8086,device=ID,card=N")
#define BENCHMARK_PIN_METHOD_ROW(member)                   \
	BENCHMARK_STRING_ROW("pin-method", "NAME", member, \
			     "shm: vmsplice, io_uring or udmabuf (default: the best that works)")
#define BENCHMARK_PROGRESS_ROW(member)                                              \
	{                                                                           \
		.kind = OPTION_CHOICE, .long_name = "progress", .argument = "WHEN", \
		.offset = offsetof(struct settings, member),                        \
		.choices = benchmark_progress_choices,                              \
		.help = "auto (default: on a terminal), always, never"              \
	}
extern const char *const benchmark_progress_choices[];

/* Set once a signal asks for the end, after benchmark_catch_signals(). */
extern volatile sig_atomic_t benchmark_interrupted;
void benchmark_catch_signals(void);

/* "NAME: @text" on standard error; returns @code. */
int benchmark_fail(const struct benchmark *benchmark, enum exit_code code, const char *text);

/* What was printed has to arrive: EXIT_DONE, or told as EXIT_FAILED. */
int benchmark_finish_output(const struct benchmark *benchmark);

/* Calls @add with each word of a comma-separated list; empty ones too, for it to refuse. */
int benchmark_each_word(void *settings, const char *list,
			int (*add)(void *settings, const char *word, struct message *message),
			struct message *message);

/*
 * Reads the options into @settings. false: the program ends with *ret_code (help and version are
 * printed, wrong usage is told). Operands are left from *ret_first on.
 */
bool benchmark_begin(const struct benchmark *benchmark, void *settings, int argc, char **argv,
		     int *ret_first, int *ret_code);

/* -EINVAL when an operand is left. */
int benchmark_refuse_operands(int argc, char **argv, int first, struct message *message);

/* One call that measures, with @show for its progress (NULL: nobody looks). */
typedef int benchmark_execute(void *settings, void (*show)(void *data, const char *text),
			      struct record **ret_record, struct message *message);

/*
 * Checks that the record can be written (@json; $SYSLATENCY_RECORD), measures, prints by @print,
 * writes the record. @progress: what --progress says. Returns the exit code.
 */
int benchmark_measure(const struct benchmark *benchmark, void *settings, const char *json,
		      const char *progress, benchmark_execute *execute,
		      int (*print)(const struct record *record, const void *settings), int argc,
		      char **argv);

#endif
