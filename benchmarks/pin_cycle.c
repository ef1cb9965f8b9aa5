/* SPDX-License-Identifier: MIT */
/*
 * What it costs to pin buffers and to release them, for each way of holding their pages. Options
 * here, one call to pin_cycle_execute(), one table.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/file.h"
#include "base/options.h"
#include "base/parse.h"
#include "build_id.h"
#include "config.h"
#include "engine/pin_cycle.h"
#include "engine/program.h"
#include "reports/pin_cycle_text.h"

#define PROGRAM "pin_cycle"
#define MIB (UINT64_C(1) << 20)

struct settings {
	struct pin_cycle_settings cycle;
	struct size_value limit;
	const char *json, *progress;
	int64_t rounds;
	bool details;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

static int fail(enum exit_code code, const char *text)
{
	fprintf(stderr, PROGRAM ": %s\n", text);
	return code;
}

/* Calls @add with each word of a comma-separated list; empty words too, for it to refuse. */
static int each_word(struct settings *settings, const char *list,
		     int (*add)(struct settings *settings, const char *word,
				struct message *message),
		     struct message *message)
{
	for (const char *at = list;; at++) {
		size_t length = strcspn(at, ",");
		char word[32];
		int error;

		snprintf(word, sizeof(word), "%.*s", (int)length, at);
		error = add(settings, word, message);
		if (error)
			return error;
		at += length;
		if (!*at)
			return 0;
	}
}

static int add_size(struct settings *settings, const char *word, struct message *message)
{
	struct pin_cycle_settings *cycle = &settings->cycle;
	struct size_value size;

	if (parse_size(word, &size) < 0 || size.is_percent || size.bytes == 0)
		return message_set(message, -EINVAL,
				   "--sizes: '%s' is no size: write it like 2M,256M", word);
	if (cycle->size_count == PIN_CYCLE_SIZES_MOST)
		return message_set(message, -EINVAL, "--sizes: more than %d sizes",
				   PIN_CYCLE_SIZES_MOST);
	cycle->sizes[cycle->size_count++] = (size.bytes + 4095) / 4096 * 4096;
	return 0;
}

static int add_variant(struct settings *settings, const char *word, struct message *message)
{
	enum variant variant;

	if (variant_parse(word, &variant) < 0)
		return message_set(message, -EINVAL,
				   "--variants: '%s' is none of baseline, stock, mapping, mlock",
				   word);
	settings->cycle.variants |= 1u << variant;
	return 0;
}

static int add_part(struct settings *settings, const char *word, struct message *message)
{
	static const char *const names[] = {"cold", "pressure", "pageout"};

	for (unsigned int i = 0; i < 3; i++)
		if (strcmp(word, names[i]) == 0) {
			settings->cycle.parts |= 1u << i;
			return 0;
		}
	return message_set(message, -EINVAL, "--parts: '%s' is none of cold, pressure, pageout",
			   word);
}

static int option_sizes(void *data, const char *argument, struct message *message)
{
	((struct settings *)data)->cycle.size_count = 0;
	return each_word(data, argument, add_size, message);
}

static int option_variants(void *data, const char *argument, struct message *message)
{
	((struct settings *)data)->cycle.variants = 0;
	return each_word(data, argument, add_variant, message);
}

/* As "syslat run --variants" appends it. */
static int option_variant(void *data, const char *argument, struct message *message)
{
	((struct settings *)data)->cycle.variants = 0;
	return add_variant(data, argument, message);
}

static int option_parts(void *data, const char *argument, struct message *message)
{
	((struct settings *)data)->cycle.parts = 0;
	return each_word(data, argument, add_part, message);
}

static const char *const progress_choices[] = {"auto", "always", "never", NULL};

#define AT(member) .offset = offsetof(struct settings, member)

static const struct option_row rows[] = {
	{.kind = OPTION_SECTION, .long_name = "What is measured"},
	{.kind = OPTION_CALL,
	 .long_name = "sizes",
	 .argument = "LIST",
	 .call = option_sizes,
	 .help = "sizes of the buffers (default 2M,16M,64M)"},
	{.kind = OPTION_CALL,
	 .long_name = "variants",
	 .argument = "LIST",
	 .call = option_variants,
	 .help = "ways of holding pages (default: baseline,stock,mapping,mlock)"},
	{.kind = OPTION_CALL,
	 .long_name = "variant",
	 .argument = "NAME",
	 .call = option_variant,
	 .help = "only this one, as syslat run --variants gives it"},
	{.kind = OPTION_CALL,
	 .long_name = "parts",
	 .argument = "LIST",
	 .call = option_parts,
	 .help = "cold, pressure, pageout (default: all)"},
	{.kind = OPTION_DURATION,
	 .long_name = "time",
	 .argument = "TIME",
	 AT(cycle.time_ns),
	 .minimum = 100 * NS_PER_MS,
	 .maximum = 86400 * NS_PER_S,
	 .unit_ns = NS_PER_S,
	 .help = "measure for about so long in all (bare number: seconds; default 24)"},
	{.kind = OPTION_INT,
	 .long_name = "rounds",
	 .argument = "N",
	 AT(rounds),
	 .minimum = 1,
	 .maximum = 100000,
	 .help = "so many rounds of each size, in place of --time"},
	{.kind = OPTION_STRING,
	 .long_name = "backend",
	 .argument = "NAME",
	 AT(cycle.backend),
	 .help = "shm, i915 or drm-dumb (default: shm, and drivers that work here)"},
	{.kind = OPTION_STRING,
	 .long_name = "device",
	 .argument = "DEV",
	 AT(cycle.device),
	 .help = "DRM device: /dev/dri/... or pci:vendor=8086,device=ID,card=N"},
	{.kind = OPTION_STRING,
	 .long_name = "pin-method",
	 .argument = "NAME",
	 AT(cycle.pin_method),
	 .help = "shm: vmsplice, io_uring or udmabuf (default: the best that works)"},
	{.kind = OPTION_SIZE,
	 .long_name = "limit",
	 .argument = "SIZE",
	 AT(limit),
	 .help = "memory limit of the group under pressure (default 256M)"},
	{.kind = OPTION_SECTION, .long_name = "Result"},
	{.kind = OPTION_FLAG,
	 .long_name = "details",
	 AT(details),
	 .help = "print mean, p99 and processor time too"},
	{.kind = OPTION_STRING,
	 .long_name = "json",
	 .argument = "FILE",
	 AT(json),
	 .help = "write the record (-: standard output, in place of the text)"},
	{.kind = OPTION_STRING,
	 .long_name = "arm",
	 .argument = "NAME",
	 AT(cycle.arm),
	 .help = "name of the arm in the record"},
	{.kind = OPTION_CHOICE,
	 .long_name = "progress",
	 .argument = "WHEN",
	 AT(progress),
	 .choices = progress_choices,
	 .help = "auto (default: on a terminal), always, never"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void show_progress(void *data, const char *text)
{
	fprintf(stderr, "\r\033[K%s", text);
	fflush(stderr);
}

static int print_text(const struct record *record, const void *data)
{
	const struct settings *settings = data;

	return pin_cycle_text_print(stdout, record, settings->details);
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.cycle = {.parts = PIN_CYCLE_COLD | PIN_CYCLE_PRESSURE | PIN_CYCLE_PAGEOUT,
			  .sizes = {2 * MIB, 16 * MIB, 64 * MIB},
			  .size_count = 3,
			  .time_ns = 24 * NS_PER_S,
			  .interrupted = &interrupted},
		.limit = {.bytes = 256 * MIB},
	};
	struct message message = {""};
	struct record *record;
	int first, error;

	machine_set_root(getenv("SYSLATENCY_ROOT"));
	error = options_parse(rows, ROWS, &settings, argc, argv, 0, &first, &message);
	if (error == OPTIONS_HELP) {
		options_help(
			stdout, PROGRAM " [options]",
			"Measures what it costs to allocate, populate, pin and release buffers, "
			"for each way of holding their pages, and what reclaim pays for them.",
			rows, ROWS);
		return EXIT_DONE;
	}
	if (error == OPTIONS_VERSION) {
		printf(PROGRAM " (syslatency) " SYSLATENCY_VERSION " " SYSLATENCY_BUILD "\n");
		return EXIT_DONE;
	}
	if (!error && first < argc)
		error = message_set(&message, -EINVAL, "'%s' is no option: see --help",
				    argv[first]);
	if (!error && settings.limit.is_percent)
		error = message_set(&message, -EINVAL, "--limit: give a size, not a share");
	if (error)
		return fail(exit_code_of(error), message.text);
	if (program_check_outputs(settings.json, &message) < 0)
		return fail(EXIT_FAILED, message.text);
	settings.cycle.limit_bytes = settings.limit.bytes;
	settings.cycle.rounds = (unsigned int)settings.rounds;
	program_catch_signals(on_signal);
	if (program_wants_progress(settings.progress))
		settings.cycle.progress = show_progress;
	error = pin_cycle_execute(&settings.cycle, &record, &message);
	if (settings.cycle.progress)
		fprintf(stderr, "\r\033[K");
	if (error)
		return fail(exit_code_of(error),
			    message.text[0] ? message.text : strerrordesc_np(-error));
	error = program_finish(record, settings.json, argc, argv, print_text, &settings, &message);
	record_free(record);
	return error < 0 ? fail(EXIT_FAILED, message.text) : error;
}
