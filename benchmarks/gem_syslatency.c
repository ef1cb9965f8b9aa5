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

static int choose_loads(struct settings *settings, struct message *message)
{
	struct run_settings *run = &settings->run;
	int error = 0;

	/* IGT's call has the gem load unless -n; ours has what --load names. */
	if (run->pure_drop_in && !settings->no_gem)
		error = gem_syslatency_add_load(run, "gem", strlen("gem"), message);
	if (!error && settings->file_cache)
		error = gem_syslatency_add_load(run, "file-cache", strlen("file-cache"), message);
	if (!error && !run->pure_drop_in && run->load_count == 0 && settings->thp_and_leak &&
	    !settings->no_gem)
		error = gem_syslatency_add_load(run, "gem", strlen("gem"), message);
	if (error || !settings->no_gem)
		return error;
	for (size_t i = 0; i < run->load_count; i++) {
		if (strcmp(run->loads[i]->name, "gem") != 0)
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
		/* The baseline takes the same options as the other arms, and has no gem load. */
		if (found == 0 && !(equals && strcmp(word, "gem") == 0))
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
	const char *measure = settings->measure;
	int error;

	if (settings->time_ns == 0)
		return message_set(message, -EINVAL, "-t: a run of no length measures nothing");
	run->duration_ns = settings->time_ns < 0 ? INT64_MAX : settings->time_ns;
	if (!measure)
		measure = settings->thp_and_leak ? "thp" : "wakeup";
	run->measure = measure_find(measure);
	if (!run->measure)
		return message_set(message, -EINVAL, "--measure: '%s' is not in this build",
				   measure);
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
		if (!run->measure->can_schedule)
			return message_set(message, -EINVAL,
					   "--interval is for --measure wakeup; "
					   "thp has --pace");
		run->measure_settings.schedule = SCHEDULE_FIXED;
	}
	if (run->measure_settings.pace_ns > 0 && run->measure->can_schedule)
		return message_set(message, -EINVAL,
				   "--pace is for --measure thp; wakeup has --interval");
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

static int report(const struct settings *settings, struct record *record, int argc, char **argv)
{
	const char *path = getenv("SYSLATENCY_RECORD");
	bool json_to_stdout = settings->json && strcmp(settings->json, "-") == 0;
	bool broke = settings->run.break_above_ns > 0 && record->latency.count > 0 &&
		     record->latency.max_ns > settings->run.break_above_ns;
	struct message message;
	int error = 0;

	record->command = json_array();
	for (int i = 0; i < argc; i++)
		json_array_append_new(record->command, json_string_or_null(argv[i]));
	if (!json_to_stdout) {
		print_igt(record, settings);
		if (!settings->run.pure_drop_in && !settings->field_given)
			report_find("text")->run(stdout, record);
		if (settings->explain > 0 || broke)
			report_find("causes")->run(stdout, record);
	}
	if (settings->json)
		error = program_write_record(settings->json, record, &message);
	if (!error && path && *path)
		error = program_write_record(path, record, &message);
	if (error)
		return benchmark_fail(&gem_syslatency, EXIT_FAILED, message.text);
	if (benchmark_finish_output(&gem_syslatency) != EXIT_DONE)
		return EXIT_FAILED;
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
	if (broke)
		return EXIT_REGRESSION;
	if (record->verdict == VERDICT_INVALID && !settings->run.pure_drop_in)
		return EXIT_INVALID;
	return EXIT_DONE;
}

static bool same_file(const char *one, const char *other)
{
	struct stat a, b;

	if (!one || !other)
		return false;
	if (strcmp(one, other) == 0)
		return strcmp(one, "-") != 0;
	return stat(one, &a) == 0 && stat(other, &b) == 0 && S_ISREG(a.st_mode) &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int check_outputs(const struct settings *settings, struct message *message)
{
	const char *const paths[] = {settings->json, getenv("SYSLATENCY_RECORD"),
				     settings->run.samples_path, settings->run.perfetto_path};
	const size_t count = ARRAY_SIZE(paths), records = 2;

	for (size_t i = records; i < count; i++)
		for (size_t k = 0; k < i; k++)
			if (same_file(paths[i], paths[k]))
				return message_set(message, -EINVAL,
						   "%s cannot hold two results: give each a file "
						   "of its own",
						   paths[i]);
	for (size_t i = 0; i < count; i++) {
		int error = 0;

		if (paths[i] && *paths[i] && (i >= records || strcmp(paths[i], "-") != 0))
			error = program_check_output(paths[i], message);
		if (error)
			return error;
	}
	return 0;
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
	struct message message = {""};
	int first, error, code;

	settings.run.pure_drop_in = only_igt_flags(argc, argv);
	if (!benchmark_begin(&gem_syslatency, &settings, argc, argv, &first, &code))
		return code;
	error = benchmark_refuse_operands(argc, argv, first, &message);
	if (!error)
		error = resolve(&settings, &message);
	if (error)
		return benchmark_fail(&gem_syslatency, exit_code_of(error), message.text);
	error = check_outputs(&settings, &message);
	if (error) /* what cannot be written is no lack of this machine's: never 77 */
		return benchmark_fail(&gem_syslatency, error == -EINVAL ? EXIT_USAGE : EXIT_FAILED,
				      message.text);
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
	code = report(&settings, record, argc, argv);
	if (message.text[0])
		fprintf(stderr, PROGRAM ": %s\n", message.text);
	record_free(record);
	return code;
}
