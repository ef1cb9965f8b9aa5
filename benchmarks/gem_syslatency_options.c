/* SPDX-License-Identifier: MIT */
#include "gem_syslatency_options.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"

/* "swap=1400M,gem": one more load with its size. */
int gem_syslatency_add_load(struct run_settings *run, const char *word, size_t length,
			    struct message *message)
{
	char name[64], known[256], *equals;
	const struct load_ops *ops;
	struct size_value size = {0};

	if (length == 0 || length >= sizeof(name))
		return message_set(message, -EINVAL, "--load: empty or overlong name");
	memcpy(name, word, length);
	name[length] = '\0';
	equals = strchr(name, '=');
	if (equals) {
		*equals = '\0';
		if (parse_size(equals + 1, &size) < 0 || (!size.is_percent && size.bytes == 0))
			return message_set(
				message, -EINVAL,
				"--load %s: '%s' is not a size: write it like 1400M or 70%%", name,
				equals + 1);
	}
	ops = load_find(name);
	if (!ops)
		return message_set(message, -EINVAL, "--load: there is no load '%s': one of %s",
				   name, plugin_names(PLUGINS(loads), known, sizeof(known)));
	for (size_t i = 0; i < run->load_count; i++)
		if (run->loads[i] == ops) {
			run->load_sizes[i] = equals ? size : run->load_sizes[i];
			return 0;
		}
	run->load_sizes[run->load_count] = size;
	run->loads[run->load_count++] = ops;
	return 0;
}

static int option_load(void *data, const char *argument, struct message *message)
{
	struct settings *settings = data;
	int error = 0;

	for (const char *at = argument; !error;) {
		size_t length = strcspn(at, ",");

		error = gem_syslatency_add_load(&settings->run, at, length, message);
		if (at[length] == '\0')
			break;
		at += length + 1;
	}
	return error;
}

static int option_measure(void *data, const char *argument, struct message *message)
{
	const struct measure_ops **measure = &((struct settings *)data)->run.measure;
	char known[256];

	*measure = measure_find(argument);
	if (!*measure)
		return message_set(message, -EINVAL, "--measure: '%s' is none of %s", argument,
				   plugin_names(PLUGINS(measures), known, sizeof(known)));
	return 0;
}

static int option_swap(void *data, const char *argument, struct message *message)
{
	struct settings *settings = data;

	if (strcmp(argument, "auto") == 0)
		settings->run.swap = SWAP_AUTO;
	else if (strcmp(argument, "none") == 0)
		settings->run.swap = SWAP_NONE;
	else if (strncmp(argument, "zram:", 5) == 0 &&
		 parse_size(argument + 5, &settings->run.swap_size) == 0 &&
		 (settings->run.swap_size.is_percent || settings->run.swap_size.bytes > 0))
		settings->run.swap = SWAP_ZRAM;
	else
		return message_set(message, -EINVAL,
				   "--swap: '%s' is none of auto, none, zram:SIZE", argument);
	return 0;
}

static int option_explain(void *data, const char *argument, struct message *message)
{
	struct settings *settings = data;

	settings->explain = SAMPLING_WORST;
	if (argument && parse_int64(argument, 1, SAMPLING_WORST, &settings->explain) < 0)
		return message_set(message, -EINVAL,
				   "--explain: '%s' is no count: write a number from 1 to %d",
				   argument, SAMPLING_WORST);
	return 0;
}

static const char *const variant_choices[] = {"baseline", "stock", "mapping", "mlock", NULL};
static const char *const scope_choices[] = {"auto", "machine", "memcg", NULL};
static const char *const sched_choices[] = {"fifo", "other", NULL};
static const char *const trace_choices[] = {"off", "light", "full", NULL};
static const char *const counters_choices[] = {"on", "off", NULL};

#define AT(member) .offset = offsetof(struct settings, member)
#define LONGEST_NS INT64_MAX

/* Filled from the tables of plugins. */
static char measure_help[128], load_help[192], backend_help[192];

static const struct option_row measuring[] = {
	{.kind = OPTION_SECTION, .long_name = "As in IGT's gem_syslatency"},
	{.kind = OPTION_DURATION,
	 .short_name = 't',
	 .argument = "TIME",
	 AT(time_ns),
	 .minimum = -LONGEST_NS,
	 .unit_ns = NS_PER_S,
	 .help = "measure for TIME (bare number: seconds; default 10; below 0: until stopped)"},
	{.kind = OPTION_FLAG, .short_name = 'n', AT(no_gem), .help = "no gem load: the baseline"},
	{.kind = OPTION_FLAG,
	 .short_name = 'm',
	 AT(thp_and_leak),
	 .help = "measure 2 MiB THP allocate + populate + unmap; the gem load leaks its buffers"},
	{.kind = OPTION_FLAG,
	 .short_name = 'b',
	 AT(file_cache),
	 .help = "also read the file tree through the page cache"},
	{.kind = OPTION_FLAG,
	 .short_name = 'i',
	 AT(interrupts),
	 .help = "make batches depend on each other (i915)"},
	{.kind = OPTION_INT,
	 .short_name = 'r',
	 .argument = "US",
	 AT(batch_us),
	 .minimum = -INT32_MAX,
	 .maximum = INT32_MAX,
	 .given_offset = offsetof(struct settings, batch_given),
	 .help = "batch length in microseconds (i915); negative: batch size in bytes"},
	{.kind = OPTION_FLAG,
	 .short_name = '1',
	 AT(one_cpu),
	 .help = "one CPU only, the first allowed"},
	{.kind = OPTION_INT,
	 .short_name = 'f',
	 .argument = "N",
	 AT(field),
	 .maximum = 2,
	 .given_offset = offsetof(struct settings, field_given),
	 .help = "print one number only: 0 cycles, 1 mean (us), 2 max (us)"},

	{.kind = OPTION_SECTION, .long_name = "Measure"},
	{.kind = OPTION_CALL,
	 .long_name = "measure",
	 .argument = "NAME",
	 .call = option_measure,
	 .help = measure_help},
	{.kind = OPTION_DURATION,
	 .long_name = "interval",
	 .argument = "TIME",
	 AT(run.measure_settings.interval_ns),
	 .minimum = 10 * NS_PER_US,
	 .maximum = 3600 * NS_PER_S,
	 .unit_ns = NS_PER_US,
	 .given_offset = offsetof(struct settings, interval_given),
	 .help = "wakeup: a fixed schedule of this period (bare number: us), observed and corrected"},
	{.kind = OPTION_DURATION,
	 .long_name = "pace",
	 .argument = "TIME",
	 AT(run.measure_settings.pace_ns),
	 .maximum = 3600 * NS_PER_S,
	 .unit_ns = NS_PER_US,
	 .help = "thp: sleep so long between samples, so that nothing is throttled"},
	{.kind = OPTION_STRING,
	 .long_name = "cpus",
	 .argument = "LIST",
	 AT(cpus),
	 .help = "CPUs to measure on, as 0-3,8 (default: all that are allowed)"},
	{.kind = OPTION_INT,
	 .long_name = "threads",
	 .argument = "N",
	 AT(threads),
	 .minimum = 1,
	 .maximum = 65536,
	 .given_offset = offsetof(struct settings, threads_given),
	 .help = "sampling threads (default: one a CPU)"},
	{.kind = OPTION_CHOICE,
	 .long_name = "sched",
	 .argument = "POLICY",
	 AT(sched),
	 .choices = sched_choices,
	 .help = "fifo (default) or other"},
	{.kind = OPTION_INT,
	 .long_name = "priority",
	 .argument = "N",
	 AT(run.priority),
	 .minimum = 1,
	 .maximum = 99,
	 .help = "FIFO priority of the sampler (default 99)"},
	{.kind = OPTION_DURATION,
	 .long_name = "warmup",
	 .argument = "TIME",
	 AT(run.warmup_ns),
	 .maximum = 3600 * NS_PER_S,
	 .unit_ns = NS_PER_S,
	 .given_offset = offsetof(struct settings, warmup_given),
	 .help = "let the loads run so long before measuring (default 1s)"},
	{.kind = OPTION_INT,
	 .long_name = "seed",
	 .argument = "N",
	 AT(seed),
	 .minimum = INT64_MIN,
	 .maximum = INT64_MAX,
	 .given_offset = offsetof(struct settings, seed_given),
	 .help = "seed of intervals and loads (default: fresh, recorded)"},
};

static const struct option_row loading[] = {
	{.kind = OPTION_SECTION, .long_name = "Loads"},
	{.kind = OPTION_CALL,
	 .long_name = "load",
	 .argument = "LIST",
	 .call = option_load,
	 .help = load_help},
	{.kind = OPTION_STRING,
	 .long_name = "backend",
	 .argument = "NAME",
	 AT(backend),
	 .help = backend_help},
	BENCHMARK_DEVICE_ROW(run.backend_settings.device),
	{.kind = OPTION_CHOICE,
	 .long_name = "variant",
	 .argument = "NAME",
	 AT(variant),
	 .choices = variant_choices,
	 .help = "how the pages are held: baseline (no gem load), stock, mapping, mlock"},
	BENCHMARK_PIN_METHOD_ROW(run.backend_settings.pin_method),
	{.kind = OPTION_SIZE,
	 .long_name = "footprint",
	 .argument = "SIZE",
	 AT(run.footprint),
	 .help = "hold this much pinned through the run, besides the churn (% is of the limit)"},
	{.kind = OPTION_STRING,
	 .long_name = "load-rate",
	 .argument = "RATES",
	 AT(load_rates),
	 .help = "offer the loads fixed operations a second: 50, or gem=20,thp=50 (default: as fast "
		 "as they can)"},
};

static const struct option_row rest[] = {
	{.kind = OPTION_SECTION, .long_name = "Pressure"},
	{.kind = OPTION_CHOICE,
	 .long_name = "scope",
	 .argument = "NAME",
	 AT(scope),
	 .choices = scope_choices,
	 .help = "who is under pressure: machine or memcg (default where memory is held)"},
	{.kind = OPTION_SIZE,
	 .long_name = "limit",
	 .argument = "SIZE",
	 AT(run.limit),
	 .minimum = 1,
	 .help = "memory limit of the group (default: the lesser of 2G and a fifth of memory)"},
	{.kind = OPTION_CALL,
	 .long_name = "swap",
	 .argument = "WHAT",
	 .call = option_swap,
	 .help = "auto (default: zram when the swap load needs it), none, zram:SIZE"},
	{.kind = OPTION_FLAG,
	 .long_name = "reset",
	 AT(reset),
	 .help = "start from dropped caches and compacted memory"},
	{.kind = OPTION_FLAG,
	 .long_name = "force",
	 AT(force),
	 .help = "allow loads beyond the available memory"},

	{.kind = OPTION_SECTION, .long_name = "Causes"},
	{.kind = OPTION_CALL,
	 .long_name = "explain",
	 .argument = "N",
	 .call = option_explain,
	 .optional_argument = 1,
	 .help = "say why the N worst delays (default 10) happened; traces fully"},
	{.kind = OPTION_CHOICE,
	 .long_name = "trace",
	 .argument = "LEVEL",
	 AT(trace),
	 .choices = trace_choices,
	 .help = "kernel events to collect: off (default), light (scheduler, reclaim), full "
		 "(and interrupts, locks, stacks)"},
	{.kind = OPTION_SIZE,
	 .long_name = "trace-buffer",
	 .argument = "SIZE",
	 AT(run.trace_buffer),
	 .minimum = 4096,
	 .help = "of the kernel for events, a CPU (default 2M); larger where events are lost"},
	{.kind = OPTION_DURATION,
	 .long_name = "break-above",
	 .argument = "TIME",
	 AT(run.break_above_ns),
	 .minimum = 1,
	 .maximum = LONGEST_NS,
	 .unit_ns = NS_PER_US,
	 .help = "end at the first delay above TIME (bare number: us), explain it, exit 3"},
	{.kind = OPTION_STRING,
	 .long_name = "perfetto",
	 .argument = "FILE",
	 AT(run.perfetto_path),
	 .help = "write the events around the worst delays for ui.perfetto.dev"},

	{.kind = OPTION_SECTION, .long_name = "Result"},
	BENCHMARK_JSON_ROW(json),
	{.kind = OPTION_STRING,
	 .long_name = "samples",
	 .argument = "FILE",
	 AT(run.samples_path),
	 .help = "write every sample (.txt: text, else binary)"},
	BENCHMARK_ARM_ROW(run.arm),
	{.kind = OPTION_CHOICE,
	 .long_name = "counters",
	 .argument = "WHEN",
	 AT(counters),
	 .choices = counters_choices,
	 .help = "off: no snapshots of the kernel's counters, to measure what they cost; nothing is "
		 "proved then (default on)"},
	BENCHMARK_PROGRESS_ROW(progress),
};

#define ROWS_MOST 256

static struct option_row rows[ROWS_MOST];

struct benchmark gem_syslatency = {
	.name = "gem_syslatency",
	.usage = "gem_syslatency [-1bimn] [-t TIME] [-r US] [-f N] [options]",
	.about = "Measures how late the system wakes its tasks (wakeup), or how long a huge page "
		 "takes (thp), while memory is under load and pinned buffers hold it.",
	.rows = rows,
};

static size_t append(const struct option_row *more, size_t count, size_t used)
{
	for (size_t i = 0; i < count && used < ROWS_MOST; i++)
		rows[used++] = more[i];
	return used;
}

void gem_syslatency_options(void)
{
	char names[128];
	size_t used = append(measuring, ARRAY_SIZE(measuring), 0);

	snprintf(measure_help, sizeof(measure_help), "what is timed: %s",
		 plugin_names(PLUGINS(measures), names, sizeof(names)));
	snprintf(load_help, sizeof(load_help), "%s; with a size: swap=1400M (%% is of the limit)",
		 plugin_names(PLUGINS(loads), names, sizeof(names)));
	snprintf(backend_help, sizeof(backend_help),
		 "where gem buffers come from: auto, %s; implies --load gem",
		 plugin_names(PLUGINS(backends), names, sizeof(names)));
	used = plugin_options(PLUGINS(measures), rows, used, ROWS_MOST);
	used = append(loading, ARRAY_SIZE(loading), used);
	used = plugin_options(PLUGINS(loads), rows, used, ROWS_MOST);
	used = plugin_options(PLUGINS(backends), rows, used, ROWS_MOST);
	used = append(rest, ARRAY_SIZE(rest), used);
	gem_syslatency.row_count = plugin_options(PLUGINS(causes), rows, used, ROWS_MOST);
}
