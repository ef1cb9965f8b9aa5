/* SPDX-License-Identifier: MIT */
/*
 * Drop-in for IGT's gem_syslatency (flags, line and numbers), with loads, scopes, variants and
 * records of its own. Options here, one call to run_execute(), one report.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/parse.h"
#include "common.h"
#include "run/program.h"
#include "run/run.h"
#include "gem_syslatency_options.h"

#define PROGRAM "gem_syslatency"

/* Only IGT's flags: then everything is as IGT does it. */
static bool only_igt_flags(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "--", 2) == 0)
			return false;
	return true;
}

static int choose_cpus(struct settings *settings, struct message *message)
{
	struct run_settings *run = &settings->run;
	int error;

	if (settings->cpus)
		error = cpu_list_parse(settings->cpus, &run->cpus, message);
	else
		error = cpu_list_allowed(0, &run->cpus);
	if (error)
		return error;
	if (settings->one_cpu)
		run->cpus.count = 1;
	return cpu_list_check(&run->cpus, message);
}

/*
 * IGT's call has the load of buffers unless -n; ours has what --load names, and what an option is
 * about. The baseline is the same without that load.
 */
static int choose_loads(struct settings *settings, struct message *message)
{
	const struct load_ops *buffers = load_with(LOAD_HOLDS_BUFFERS), *cache = load_of_igt('b');
	struct run_settings *run = &settings->run;
	const char *option = settings->backend ? "--backend" : "--device";
	bool about_buffers = settings->backend || run->backend_settings.device;
	int error = 0;

	if (settings->no_gem && about_buffers)
		return message_set(message, -EINVAL,
				   "%s is about the %s load, which -n leaves out: give one of them",
				   option, buffers->name);
	if (!settings->no_gem &&
	    (run->pure_drop_in || about_buffers ||
	     (run->load_count == 0 && settings->thp_and_leak && !settings->file_cache)))
		error = gem_syslatency_add_load(run, buffers->name, strlen(buffers->name), message);
	if (!error && settings->file_cache)
		error = gem_syslatency_add_load(run, cache->name, strlen(cache->name), message);
	if (error || !settings->no_gem)
		return error;
	for (size_t i = 0; i < run->load_count; i++) {
		if (!(run->loads[i]->flags & LOAD_HOLDS_BUFFERS))
			continue;
		for (size_t k = i + 1; k < run->load_count; k++) {
			run->loads[k - 1] = run->loads[k];
			run->load_sizes[k - 1] = run->load_sizes[k];
		}
		run->load_count--;
	}
	run->backend_settings.variant = VARIANT_BASELINE;
	return 0;
}

/* "50" for every load, or "gem=20,thp=50". */
static int choose_rates(struct settings *settings, struct message *message)
{
	struct run_settings *run = &settings->run;
	const char *at = settings->load_rates;

	while (at && *at) {
		size_t length = strcspn(at, ","), found = 0;
		char word[64], *number = word, *equals;
		double rate;

		snprintf(word, sizeof(word), "%.*s", (int)length, at);
		equals = strchr(word, '=');
		if (equals) {
			*equals = '\0';
			number = equals + 1;
		}
		if (parse_double(number, &rate) < 0 || rate <= 0)
			return message_set(
				message, -EINVAL,
				"--load-rate: '%s' is no rate: write it like 50 or gem=20,thp=50",
				number);
		for (size_t i = 0; i < run->load_count; i++)
			if (!equals || strcmp(run->loads[i]->name, word) == 0) {
				run->load_rates_per_s[i] = rate;
				found++;
			}
		/* The baseline takes the same options as the other arms, and holds no buffers. */
		if (found == 0 &&
		    !(equals && strcmp(word, load_with(LOAD_HOLDS_BUFFERS)->name) == 0))
			return message_set(message, -EINVAL,
					   "--load-rate: no load '%s' is asked for",
					   equals ? word : "");
		at += length + (at[length] == ',');
	}
	return 0;
}

static int choose_backend(struct settings *settings, struct message *message)
{
	struct run_settings *run = &settings->run;

	if (!settings->backend || strcmp(settings->backend, "auto") == 0)
		return 0;
	run->backend = backend_find(settings->backend);
	if (!run->backend)
		return message_set(message, -EINVAL,
				   "--backend: there is no backend '%s': see syslat check",
				   settings->backend);
	if (!(run->backend->variants & (1u << run->backend_settings.variant)))
		return message_set(message, -EINVAL, "--backend %s cannot make the variant '%s'",
				   settings->backend, variant_name(run->backend_settings.variant));
	return 0;
}

/* Whatever is to be explained or drawn needs all events, unless the user says otherwise. */
static void choose_trace(struct settings *settings)
{
	struct run_settings *run = &settings->run;
	bool wanted = settings->explain > 0 || run->break_above_ns > 0 || run->perfetto_path;

	if (settings->trace)
		run->trace_level = strcmp(settings->trace, "full") == 0	   ? 2
				   : strcmp(settings->trace, "light") == 0 ? 1
									   : 0;
	else
		run->trace_level = wanted ? 2 : 0;
	run->worst = (unsigned int)settings->explain;
}

/* IGT's flags and ours, resolved into run settings. */
static int resolve(struct settings *settings, struct message *message)
{
	struct run_settings *run = &settings->run;
	int error;

	if (settings->time_ns == 0)
		return message_set(message, -EINVAL, "-t: a run of no length measures nothing");
	run->duration_ns = settings->time_ns < 0 ? INT64_MAX : settings->time_ns;
	if (!run->measure)
		run->measure = settings->thp_and_leak ? measure_of_igt('m')
						      : measure_with(MEASURE_DEFAULT);
	if (settings->variant &&
	    variant_parse(settings->variant, &run->backend_settings.variant) < 0)
		return -EINVAL;
	run->backend_settings.leak = settings->thp_and_leak;
	run->backend_settings.dependencies = settings->interrupts;
	run->backend_settings.batch_ns =
		settings->batch_us < 0 ? settings->batch_us : settings->batch_us * NS_PER_US;
	run->fifo = !settings->sched || strcmp(settings->sched, "fifo") == 0;
	run->scope = !settings->scope || strcmp(settings->scope, "auto") == 0 ? SCOPE_AUTO
		     : strcmp(settings->scope, "memcg") == 0		      ? SCOPE_MEMCG
									      : SCOPE_MACHINE;
	run->threads = (unsigned int)settings->threads;
	run->force = settings->force;
	run->reset = settings->reset;
	if (settings->interval_given) {
		if (!(run->measure->flags & MEASURE_SCHEDULES))
			return message_set(
				message, -EINVAL, "--interval is for --measure %s, not for %s",
				measure_with(MEASURE_SCHEDULES)->name, run->measure->name);
		run->measure_settings.schedule = SCHEDULE_FIXED;
	}
	if (run->measure_settings.pace_ns > 0 && !(run->measure->flags & MEASURE_PACES))
		return message_set(message, -EINVAL, "--pace is for --measure %s, not for %s",
				   measure_with(MEASURE_PACES)->name, run->measure->name);
	run->measure_settings.seed =
		settings->seed_given ? (uint64_t)settings->seed : random_fresh_seed();
	run->measure_settings.clock_cost_ns = clock_read_cost_ns();
	run->counters_off = settings->counters && strcmp(settings->counters, "off") == 0;
	run->measure_settings.count_steal = !run->counters_off;
	if (!settings->warmup_given)
		run->warmup_ns = !run->pure_drop_in	? NS_PER_S
				 : settings->file_cache ? 5 * NS_PER_S
							: 0;
	choose_trace(settings);
	error = choose_loads(settings, message);
	if (!error)
		error = choose_rates(settings, message);
	if (!error)
		error = choose_backend(settings, message);
	return error ? error : choose_cpus(settings, message);
}

static void show_progress(void *data, const struct run_progress *progress)
{
	static const char *const stages[] = {"starting", "warming up", "measuring", "stopping"};
	char left[32], p50[32], p99[32], max[32], stalled[96] = "";

	if (progress->stage == RUN_STOPPING) {
		fprintf(stderr, "\r\033[K");
		return;
	}
	if (progress->stalled_ns > 0)
		snprintf(stalled, sizeof(stalled), "  CPU %d late %s, still stalled",
			 progress->stalled_cpu,
			 format_duration(progress->stalled_ns, left, sizeof(left)));
	fprintf(stderr, "\r\033[K%s", stages[progress->stage]);
	if (progress->left_ns < INT64_MAX / 2)
		fprintf(stderr, ", %.0f s left",
			progress->left_ns > 0 ? ceil((double)progress->left_ns / 1e9) : 0);
	if (progress->samples > 0)
		fprintf(stderr, ", %llu samples, p50 %s, p99 %s, max %s",
			(unsigned long long)progress->samples,
			format_duration(progress->p50_ns, p50, sizeof(p50)),
			format_duration(progress->p99_ns, p99, sizeof(p99)),
			format_duration(progress->max_ns, max, sizeof(max)));
	fprintf(stderr, "%s", stalled);
	fflush(stderr);
}

/* Without a terminal only a stall is told, while it lasts and at most every ten seconds. */
static void tell_stalls(void *data, const struct run_progress *progress)
{
	int64_t *next_ns = data, now_ns = clock_now_ns();
	char text[32];

	if (progress->stalled_ns <= 0 || now_ns < *next_ns)
		return;
	*next_ns = now_ns + 10 * NS_PER_S;
	fprintf(stderr, PROGRAM ": CPU %d late %s, still stalled\n", progress->stalled_cpu,
		format_duration(progress->stalled_ns, text, sizeof(text)));
}

static void print_igt(const struct record *record, const struct settings *settings)
{
	if (!settings->field_given)
		printf("gem_syslatency: cycles=%.0f, latency mean=%.3fus max=%.0fus\n",
		       record->igt_cycles, record->igt_mean_us, record->igt_max_us);
	else if (settings->field == 0)
		printf("%.0f\n", record->igt_cycles);
	else if (settings->field == 1)
		printf("%.3f\n", record->igt_mean_us);
	else
		printf("%.0f\n", record->igt_max_us);
}

/* Whatever else is printed: an explanation may lack what was lost. */
static void tell_lost_events(const struct record *record)
{
	const json_t *account = json_object_get(record->counters, "causes");
	long long lost = (long long)(json_get_int64(account, "overrun_events", 0) +
				     json_get_int64(account, "commit_overrun_events", 0) +
				     json_get_int64(account, "dropped_events", 0));

	if (lost > 0)
		fprintf(stderr,
			PROGRAM ": %lld trace events were lost: causes near them may be unknown; "
				"a --trace-buffer above %lldK may hold them\n",
			lost, (long long)json_get_int64(account, "buffer_kib", 0));
}

static bool broke_above(const struct record *record, const struct settings *settings)
{
	return settings->run.break_above_ns > 0 && record->latency.count > 0 &&
	       record->latency.max_ns > settings->run.break_above_ns;
}

static int print_text(const struct record *record, const void *data)
{
	const struct settings *settings = data;
	int error = 0;

	print_igt(record, settings);
	if (!settings->run.pure_drop_in && !settings->field_given)
		error = report_with(REPORT_OF_RUN)->run(stdout, record);
	if (!error && (settings->explain > 0 || broke_above(record, settings)))
		error = report_with(REPORT_OF_CAUSES)->run(stdout, record);
	return error;
}

/* What a reader of the result has to know beside it; the exit code that follows from the record. */
static int tell_doubts(const struct record *record, const struct settings *settings)
{
	if (settings->run.pure_drop_in || settings->field_given)
		for (size_t i = 0;
		     record->verdict != VERDICT_VALID && i < json_array_size(record->reasons); i++)
			fprintf(stderr, PROGRAM ": %s: %s\n", verdict_name(record->verdict),
				json_string_value(json_array_get(record->reasons, i)));
	tell_lost_events(record);
	if (json_is_string(json_at(record->counters, "samples.why")))
		fprintf(stderr, PROGRAM ": --samples %s: %s\n", settings->run.samples_path,
			json_string_value(json_at(record->counters, "samples.why")));
	if (json_is_true(json_at(record->counters, "samples.failed")))
		return EXIT_FAILED;
	if (record->latency.count == 0)
		return benchmark_fail(&gem_syslatency, EXIT_FAILED,
				      "no sample was taken: the run was too short or was stalled");
	if (broke_above(record, settings))
		return EXIT_REGRESSION;
	if (record->verdict == VERDICT_INVALID && !settings->run.pure_drop_in)
		return EXIT_INVALID;
	return EXIT_DONE;
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.time_ns = 10 * NS_PER_S,
		.run = {.benchmark = PROGRAM,
			.priority = 99,
			.interrupted = &benchmark_interrupted,
			.backend_settings = {.variant = VARIANT_STOCK}},
	};
	int64_t next_stall_ns = 0;
	struct record *record;
	struct message message = {""}, left;
	int first, error, code;

	gem_syslatency_options();
	settings.run.pure_drop_in = only_igt_flags(argc, argv);
	if (!benchmark_begin(&gem_syslatency, &settings, argc, argv, &first, &code))
		return code;
	error = benchmark_refuse_operands(argc, argv, first, &message);
	if (!error)
		error = resolve(&settings, &message);
	if (error)
		return benchmark_fail(&gem_syslatency, exit_code_of(error), message.text);
	error = program_check_outputs(
		settings.json,
		(const char *const[]){settings.run.samples_path, settings.run.perfetto_path}, 2,
		&message);
	if (error)
		return benchmark_fail(&gem_syslatency, exit_code_of(error), message.text);
	if (settings.time_ns < 0)
		fprintf(stderr, PROGRAM ": measuring until stopped: end it with Ctrl-C\n");
	benchmark_catch_signals();
	if (program_wants_progress(settings.progress)) {
		settings.run.progress = show_progress;
	} else {
		settings.run.progress = tell_stalls;
		settings.run.progress_data = &next_stall_ns;
	}
	error = run_execute(&settings.run, &record, &message);
	cpu_list_free(&settings.run.cpus);
	if (error)
		return benchmark_fail(&gem_syslatency, exit_code_of(error),
				      message.text[0] ? message.text : strerrordesc_np(-error));
	left = message; /* not everything is put back */
	error = program_finish(record, settings.json, argc, argv, print_text, &settings, &message);
	code = error ? benchmark_fail(&gem_syslatency, EXIT_FAILED, message.text)
		     : tell_doubts(record, &settings);
	if (left.text[0])
		code = benchmark_fail(&gem_syslatency, EXIT_FAILED, left.text);
	record_free(record);
	return code;
}
