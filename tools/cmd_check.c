/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/exit.h"
#include "base/file.h"
#include "base/json.h"
#include "base/options.h"
#include "base/parse.h"
#include "command.h"
#include "ops.h"
#include "record/record.h"
#include "sys/cgroup.h"
#include "sys/environment.h"
#include "sys/kmsg.h"
#include "undo/transaction.h"
#include "sys/readiness.h"
#include "sys/rt.h"
#include "sys/snapshot.h"
#include "sys/swap.h"

#define CHECK_SCHEMA "syslatency/check/1"
#define QUIET_NS (300 * NS_PER_MS) /* looked at for steal and neighbours */

struct check_settings {
	const char *json;
	bool restore;
};

static const struct option_row rows[] = {
	{OPTION_STRING, 0, "json", "FILE", "write what was found as JSON (-: instead of the text)",
	 offsetof(struct check_settings, json)},
	{OPTION_FLAG, 0, "restore", NULL,
	 "put back what killed runs of this boot left changed on the machine",
	 offsetof(struct check_settings, restore)},
};

/*
 * Appends {"name", "can", "why", "command"} to the list @kind of @result; NULL without memory.
 * @cure: a command that is known to help when it cannot; NULL: none.
 */
static json_t *add(json_t *result, const char *kind, const char *name, int error, const char *why,
		   const char *cure)
{
	json_t *list = json_object_get(result, kind), *entry = json_object();

	if ((error == -EPERM || error == -EACCES) && geteuid() != 0)
		cure = "sudo syslat check   # much of this needs root";
	if (!list) {
		list = json_array();
		if (json_put(result, kind, list)) {
			json_decref(entry);
			return NULL;
		}
	}
	if (!entry || json_array_append_new(list, entry))
		return NULL;
	json_put(entry, "name", json_string(name));
	json_put(entry, "can", json_boolean(error == 0));
	json_put(entry, "why", json_string_or_null(error ? why : NULL));
	json_put(entry, "command", json_string_or_null(error ? cure : NULL));
	return entry;
}

static void check_measures(json_t *result)
{
	for (size_t i = 0; measures[i]; i++) {
		struct measure_settings settings = {.schedule = SCHEDULE_IGT};
		struct message message = {""};
		int error = measures[i]->check ? measures[i]->check(&settings, &message) : 0;

		add(result, "measures", measures[i]->name, error, message.text, measures[i]->cure);
	}
}

static void check_loads(json_t *result)
{
	for (size_t i = 0; loads[i]; i++) {
		/* With a backend that is always there; the backends follow alone. */
		struct load_settings settings = {
			.ops = loads[i],
			.backend = backend_preferred(BACKEND_MAKES_VARIANTS, INT_MAX),
			.backend_settings = {.variant = VARIANT_STOCK},
		};
		struct message message = {""};
		int error;

		error = loads[i]->check ? loads[i]->check(&settings, &message) : 0;
		add(result, "loads", loads[i]->name, error, message.text, loads[i]->cure);
	}
}

static int try_backend(const struct backend_ops *ops, enum variant variant, const char *pin_method,
		       const char **ret_pin_method, struct message *message)
{
	struct backend_settings settings = {.variant = variant, .pin_method = pin_method};
	struct backend *backend;
	int error = ops->open(&settings, &backend, message);

	if (error)
		return error;
	if (ret_pin_method)
		*ret_pin_method = backend->pin_method;
	ops->close(backend);
	return 0;
}

/* Each variant is opened, and each way to pin: what the table of the plugin says is only a claim.
 */
static void check_backend(json_t *result, const struct backend_ops *ops)
{
	json_t *variants = json_array(), *methods = json_array(), *entry;
	struct message first = {""}, message;
	const char *chosen = NULL;
	int error = -ENOTSUP;

	for (int variant = 0; variant < VARIANT_COUNT; variant++) {
		int tried;

		if (!(ops->variants & 1U << variant))
			continue;
		tried = try_backend(ops, (enum variant)variant, NULL, &chosen, &message);
		if (tried == 0)
			json_array_append_new(variants,
					      json_string(variant_name((enum variant)variant)));
		if (tried == 0 || (error && !*first.text))
			error = tried;
		if (tried && !*first.text)
			first = message;
	}
	for (size_t i = 0; error == 0 && ops->pin_methods && ops->pin_methods[i]; i++)
		if (try_backend(ops, VARIANT_STOCK, ops->pin_methods[i], NULL, &message) == 0)
			json_array_append_new(methods, json_string(ops->pin_methods[i]));
	if (error == 0 && json_array_size(methods) == 0 && chosen)
		json_array_append_new(methods, json_string(chosen));
	if (json_array_size(variants) > 0)
		error = 0;
	entry = add(result, "backends", ops->name, error, first.text, ops->cure);
	json_put(entry, "variants", variants);
	json_put(entry, "pin_methods", methods);
	/* Some variants work and some do not: say why not. */
	if (error == 0 && *first.text)
		json_put(entry, "why", json_string_or_null(first.text));
}

static void check_scopes(json_t *result)
{
	struct message message = {""};
	struct cgroup parent;
	int error = cgroup_detect(&parent, &message);
	json_t *entry;

	add(result, "scopes", "machine", 0, NULL, NULL);
	entry = add(result, "scopes", "memcg", error, message.text, NULL);
	json_put(entry, "version",
		 error ? json_null() : json_integer(parent.version == CGROUP_V1 ? 1 : 2));
}

static void check_swap(json_t *result)
{
	uint64_t total = 0, free_bytes = 0;
	bool own = swap_total(&total, &free_bytes) == 0 && total > 0;
	int error = 0;
	const char *why = NULL;
	json_t *entry;

	entry = add(result, "swap", "own", own ? 0 : -ENODEV, "no swap area is in use", NULL);
	json_put(entry, "free_bytes", json_integer((json_int_t)free_bytes));
	if (!machine_exists("/sys/class/zram-control") && !machine_exists("/sys/block/zram0")) {
		error = -ENODEV;
		why = "this kernel has no zram, or its module is not loaded";
	} else if (geteuid() != 0) {
		error = -EPERM;
		why = "making swap needs root";
	}
	add(result, "swap", "zram", error, why, "modprobe zram");
}

static void check_causes(json_t *result, struct message *not_put_back)
{
	struct message message = {""};
	struct transaction *transaction = NULL;

	/* Without a transaction only those fail that would change something. */
	if (transaction_open(&transaction, "syslat check", &message))
		transaction = NULL;
	for (size_t i = 0; causes[i]; i++) {
		struct cause_settings settings = {
			.level = 1, .worst = 1, .transaction = transaction};
		struct record *scratch = record_new("syslat check");
		void *state = NULL;
		int error;

		message.text[0] = '\0';
		cpu_list_allowed(0, &settings.cpus);
		error = causes[i]->start(&settings, &state, &message);
		if (!error && causes[i]->finish)
			causes[i]->finish(state, NULL, scratch, NULL);
		add(result, "causes", causes[i]->name, error, message.text, causes[i]->cure);
		cpu_list_free(&settings.cpus);
		record_free(scratch);
	}
	transaction_close(transaction, not_put_back);
}

static void check_fifo(json_t *result)
{
	struct sched_param ordinary = {0};
	struct message message = {""};
	struct rt_status status;
	int error = rt_set_fifo(99, &status, &message);

	if (!error)
		sched_setscheduler(0, SCHED_OTHER, &ordinary);
	add(result, "sampler", "fifo", error, message.text, "ulimit -r 99");
}

static void check_sampler(json_t *result)
{
	struct message message = {""};
	struct kmsg *kmsg = NULL;
	int fd, error = rt_lock_memory(&message);

	if (!error)
		munlockall();
	check_fifo(result);
	add(result, "sampler", "locked-memory", error, message.text, "ulimit -l unlimited");
	fd = rt_hold_dma_latency();
	if (fd >= 0)
		close(fd);
	add(result, "sampler", "idle-states-held-off", fd < 0 ? fd : 0,
	    "/dev/cpu_dma_latency cannot be opened", NULL);
	error = kmsg_open(&kmsg);
	if (!error)
		kmsg_close(kmsg);
	add(result, "sampler", "kernel-log", error, "/dev/kmsg cannot be read",
	    "sysctl -w kernel.dmesg_restrict=0");
}

/* Counters over a quiet moment; NULL when they cannot be read. */
static json_t *look_around(void)
{
	struct snapshot *before, *after;
	json_t *counters = NULL;

	if (snapshot_take(NULL, &before))
		return NULL;
	clock_sleep_for(QUIET_NS);
	if (snapshot_take(NULL, &after) == 0) {
		counters = snapshot_delta(before, after);
		snapshot_free(after);
	}
	snapshot_free(before);
	return counters;
}

static int warn_of_leftovers(json_t *warnings, const char *text)
{
	json_t *warning = json_object();

	if (!warning || json_array_insert_new(warnings, 0, warning))
		return -ENOMEM;
	return json_put(warning, "kind", json_string("left-over")) ||
			       json_put(warning, "text", json_string(text)) ||
			       json_put(warning, "command", json_string("syslat check --restore"))
		       ? -ENOMEM
		       : 0;
}

static json_t *check_all(void)
{
	json_t *result = json_object(), *environment, *counters, *warnings;
	struct message not_put_back = {""};
	char key[17], text[128];
	int abandoned = 0;

	counters = look_around(); /* first: what follows would be seen as busy */
	environment = environment_describe();
	environment_machine_key(environment, key);
	warnings = readiness_warnings(environment, counters);
	json_put(result, "schema", json_string(CHECK_SCHEMA));
	json_put(result, "machine_key", json_string(key));
	check_measures(result);
	check_loads(result);
	for (size_t i = 0; backends[i]; i++)
		check_backend(result, backends[i]);
	check_scopes(result);
	check_swap(result);
	check_sampler(result);
	check_causes(result, &not_put_back);
	if (transaction_count_abandoned(&abandoned))
		abandoned = 0;
	snprintf(text, sizeof(text), "%d killed runs left changes on this machine", abandoned);
	if (abandoned > 0)
		warn_of_leftovers(warnings, text);
	if (not_put_back.text[0])
		warn_of_leftovers(warnings, not_put_back.text);
	json_put(result, "left_over", json_integer(abandoned));
	json_put(result, "warnings", warnings);
	json_put(result, "environment", environment);
	json_decref(counters);
	return result;
}

static void print_machine(const json_t *result)
{
	const json_t *environment = json_object_get(result, "environment"), *gpu;
	char memory[32];
	size_t i;

	printf("%-10s Linux %s (preemption: %s), %s, %lld CPUs, %s", "machine",
	       json_get_string(environment, "kernel", "unknown"),
	       json_get_string(environment, "preemption", "unknown"),
	       json_get_string(environment, "cpu_model", "unknown CPU"),
	       (long long)json_get_int64(environment, "cpus_online", 0),
	       format_size((uint64_t)json_get_int64(environment, "memory_bytes", 0), memory,
			   sizeof(memory)));
	if (json_is_true(json_object_get(environment, "guest")))
		printf(", guest");
	printf(", key %s\n", json_get_string(result, "machine_key", ""));
	printf("%-10s", "gpu");
	json_array_foreach (json_object_get(environment, "gpus"), i, gpu) {
		printf("%s %s [%s:%s]%s%s, driver %s", i ? ";" : "",
		       json_get_string(gpu, "name", "unnamed"), json_get_string(gpu, "vendor", "-"),
		       json_get_string(gpu, "device", "-"),
		       json_get_string(gpu, "platform", NULL) ? " " : "",
		       json_get_string(gpu, "platform", ""),
		       json_get_string(gpu, "driver", "none"));
	}
	printf("%s\n", i ? "" : " none");
}

static void print_words(const char *before, const json_t *words, const char *after)
{
	const json_t *word;
	size_t i;

	if (json_array_size(words) == 0)
		return;
	fputs(before, stdout);
	json_array_foreach (words, i, word) {
		printf("%s%s", i ? " " : "", json_string_value(word));
	}
	fputs(after, stdout);
}

/* What can be had in one line; what cannot, a line each with its reason and remedy. */
static void print_list(const json_t *result, const char *kind)
{
	const json_t *list = json_object_get(result, kind), *entry;
	bool any = false;
	size_t i;

	printf("%-10s", kind);
	json_array_foreach (list, i, entry) {
		if (!json_is_true(json_object_get(entry, "can")))
			continue;
		printf("%s%s", any ? ", " : " ", json_get_string(entry, "name", ""));
		print_words(" (", json_object_get(entry, "variants"), ")");
		print_words(" by ", json_object_get(entry, "pin_methods"), "");
		if (json_is_integer(json_object_get(entry, "version")))
			printf(" (v%lld)", (long long)json_get_int64(entry, "version", 0));
		any = true;
	}
	printf("%s\n", any ? "" : " none");
	json_array_foreach (list, i, entry) {
		const char *why = json_get_string(entry, "why", NULL);
		const char *command = json_get_string(entry, "command", NULL);
		bool can = json_is_true(json_object_get(entry, "can"));

		if (!why)
			continue;
		printf("           %s %s: %s\n", can ? "in part:" : "not",
		       json_get_string(entry, "name", ""), why);
		if (command)
			printf("             $ %s\n", command);
	}
}

static void print_text(const json_t *result)
{
	static const char *const kinds[] = {"measures", "loads",   "backends", "scopes",
					    "swap",	"sampler", "causes"};
	const json_t *warning;
	size_t i;

	print_machine(result);
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		print_list(result, kinds[i]);
	json_array_foreach (json_object_get(result, "warnings"), i, warning) {
		const char *command = json_get_string(warning, "command", NULL);

		printf("warning    %s\n", json_get_string(warning, "text", ""));
		if (command)
			printf("             $ %s\n", command);
	}
}

static int write_json(const json_t *result, const char *path)
{
	char *line = json_line(result);
	bool standard_output = strcmp(path, "-") == 0;
	int error = -ENOMEM;

	if (line && standard_output)
		error = puts(line) < 0 ? -EIO : 0;
	else if (line)
		error = file_replace(path, line, strlen(line));
	free(line);
	/* What standard output does not take is told once, where it is flushed at the end. */
	if (error && !(standard_output && ferror(stdout)))
		command_error("check", "cannot write %s: %s", path, strerrordesc_np(-error));
	return error;
}

static int restore(void)
{
	struct message message = {""};
	int count = 0, error = transaction_restore(&count, &message);

	if (error) {
		command_error("check", "%s", message.text);
		return exit_code_of(error);
	}
	if (count)
		printf("put back what %d killed %s left\n", count, count == 1 ? "run" : "runs");
	else
		printf("nothing was left to put back\n");
	return EXIT_DONE;
}

static int run_check(int argc, char **argv)
{
	static const size_t row_count = ARRAY_SIZE(rows);
	struct check_settings settings = {0};
	struct message message = {""};
	json_t *result;
	int first, status;

	status = options_parse(rows, row_count, &settings, argc, argv, 0, &first, &message);
	if (status == OPTIONS_HELP) {
		options_help(
			stdout, "syslat check [--json FILE] [--restore]",
			"What this machine can measure, what it cannot and how to change that, and "
			"what spoils measurements on it.",
			rows, row_count);
		return EXIT_DONE;
	}
	if (status == OPTIONS_VERSION) {
		command_version();
		return EXIT_DONE;
	}
	if (status < 0 || first < argc) {
		command_error("check", "%s",
			      status < 0 ? message.text : "takes no operands; see --help");
		return EXIT_USAGE;
	}
	if (settings.restore)
		return restore();
	result = check_all();
	if (!result) {
		command_error("check", "out of memory");
		return EXIT_FAILED;
	}
	status = settings.json && write_json(result, settings.json) ? EXIT_FAILED : EXIT_DONE;
	if (!settings.json || strcmp(settings.json, "-") != 0)
		print_text(result);
	json_decref(result);
	return status;
}

const struct command command_check = {
	"check", "tell what this machine can measure, and what spoils it", run_check};
