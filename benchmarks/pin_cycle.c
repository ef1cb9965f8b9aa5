/* SPDX-License-Identifier: MIT */
/*
 * What it costs to pin buffers and to release them, for each way of holding their pages. Options
 * here, one call to pin_cycle_execute(), one table.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/parse.h"
#include "common.h"
#include "pin_cycle/pin_cycle.h"
#include "reports/pin_cycle_text.h"

#define MIB (UINT64_C(1) << 20)

struct settings {
	struct pin_cycle_settings cycle;
	struct size_value limit;
	const char *json, *progress;
	int64_t rounds;
	bool details;
};

static int add_size(void *data, const char *word, struct message *message)
{
	struct pin_cycle_settings *cycle = &((struct settings *)data)->cycle;
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

static int add_variant(void *data, const char *word, struct message *message)
{
	enum variant variant;

	if (variant_parse(word, &variant) < 0)
		return message_set(message, -EINVAL,
				   "--variants: '%s' is none of baseline, stock, mapping, mlock",
				   word);
	((struct settings *)data)->cycle.variants |= 1u << variant;
	return 0;
}

static int add_part(void *data, const char *word, struct message *message)
{
	static const char *const names[] = {"cold", "pressure", "pageout"};

	for (unsigned int i = 0; i < 3; i++)
		if (strcmp(word, names[i]) == 0) {
			((struct settings *)data)->cycle.parts |= 1u << i;
			return 0;
		}
	return message_set(message, -EINVAL, "--parts: '%s' is none of cold, pressure, pageout",
			   word);
}

static int option_sizes(void *data, const char *argument, struct message *message)
{
	((struct settings *)data)->cycle.size_count = 0;
	return benchmark_each_word(data, argument, add_size, message);
}

static int option_variants(void *data, const char *argument, struct message *message)
{
	((struct settings *)data)->cycle.variants = 0;
	return benchmark_each_word(data, argument, add_variant, message);
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
	return benchmark_each_word(data, argument, add_part, message);
}

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
	BENCHMARK_DEVICE_ROW(cycle.device),
	BENCHMARK_PIN_METHOD_ROW(cycle.pin_method),
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
	BENCHMARK_JSON_ROW(json),
	BENCHMARK_ARM_ROW(cycle.arm),
	BENCHMARK_PROGRESS_ROW(progress),
};

static const struct benchmark benchmark = {
	.name = "pin_cycle",
	.usage = "pin_cycle [options]",
	.about = "Measures what it costs to allocate, populate, pin and release buffers, for each "
		 "way of holding their pages, and what reclaim pays for them.",
	.rows = rows,
	.row_count = ARRAY_SIZE(rows),
};

static int print_text(const struct record *record, const void *data)
{
	const struct settings *settings = data;

	return pin_cycle_text_print(stdout, record, settings->details);
}

static int execute(void *data, void (*show)(void *data, const char *text),
		   struct record **ret_record, struct message *message)
{
	struct settings *settings = data;

	settings->cycle.limit_bytes = settings->limit.bytes;
	settings->cycle.rounds = (unsigned int)settings->rounds;
	settings->cycle.progress = show;
	return pin_cycle_execute(&settings->cycle, ret_record, message);
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.cycle = {.parts = PIN_CYCLE_COLD | PIN_CYCLE_PRESSURE | PIN_CYCLE_PAGEOUT,
			  .sizes = {2 * MIB, 16 * MIB, 64 * MIB},
			  .size_count = 3,
			  .time_ns = 24 * NS_PER_S,
			  .interrupted = &benchmark_interrupted},
		.limit = {.bytes = 256 * MIB},
	};
	struct message message = {""};
	int first, code, error;

	if (!benchmark_begin(&benchmark, &settings, argc, argv, &first, &code))
		return code;
	error = benchmark_refuse_operands(argc, argv, first, &message);
	if (!error && settings.limit.is_percent)
		error = message_set(&message, -EINVAL, "--limit: give a size, not a share");
	if (error)
		return benchmark_fail(&benchmark, exit_code_of(error), message.text);
	return benchmark_measure(&benchmark, &settings, settings.json, settings.progress, execute,
				 print_text, argc, argv);
}
