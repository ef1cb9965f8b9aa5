/* SPDX-License-Identifier: MIT */
#include "sys/environment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/parse.h"
#include "build_id.h"
#include "config.h"
#include "sys/environment_internal.h"
#include "sys/gpu.h"
#include "sys/kernel_config.h"

/* Options of the kernel that change latency, reclaim or huge pages; only what is set is kept. */
static const char *const config_facts[] = {
	"HZ",
	"PREEMPT_NONE",
	"PREEMPT_VOLUNTARY",
	"PREEMPT",
	"PREEMPT_LAZY",
	"PREEMPT_RT",
	"PREEMPT_DYNAMIC",
	"NO_HZ_FULL",
	"HIGH_RES_TIMERS",
	"RCU_NOCB_CPU",
	"RT_GROUP_SCHED",
	"SCHED_AUTOGROUP",
	"PARAVIRT_SPINLOCKS",
	"TRANSPARENT_HUGEPAGE",
	"COMPACTION",
	"LRU_GEN",
	"LRU_GEN_ENABLED",
	"MEMCG",
	"MEMCG_V1",
	"ZSWAP_DEFAULT_ON",
	"ZRAM",
	"KSM",
	"NUMA_BALANCING",
	"PSI_DEFAULT_DISABLED",
	"DRM_I915",
	"INIT_ON_ALLOC_DEFAULT_ON",
	/* debugging that makes everything slower */
	"PROVE_LOCKING",
	"DEBUG_VM",
	"DEBUG_PAGEALLOC",
	"KASAN",
	"KCSAN",
	"SLUB_DEBUG_ON",
	"DEBUG_PREEMPT",
	"DEBUG_ATOMIC_SLEEP",
};

int environment_put_line(json_t *object, const char *key, const char *path)
{
	char line[4096];
	int error = machine_read_line(path, line, sizeof(line));

	return json_put(object, key, json_string_or_null(error ? NULL : line));
}

int environment_put_int64(json_t *object, const char *key, const char *path)
{
	int64_t value;
	int error = machine_read_int64(path, &value);

	return json_put(object, key, error ? json_null() : json_integer(value));
}

int environment_put_known(json_t *object, const char *key, int64_t value)
{
	return json_put(object, key, value < 0 ? json_null() : json_integer(value));
}

int environment_put_choice(json_t *object, const char *key, const char *path)
{
	char word[128];
	int error = machine_read_choice(path, word, sizeof(word));

	return json_put(object, key, json_string_or_null(error ? NULL : word));
}

static int put_config(json_t *environment, const char *config, const char *source)
{
	json_t *facts = json_object();
	char value[128];

	if (json_put(environment, "config_source", json_string_or_null(source)))
		return -ENOMEM;
	if (!config) {
		json_decref(facts);
		return json_put(environment, "config", json_null());
	}
	if (json_put(environment, "config", facts))
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(config_facts); i++)
		if (kernel_config_get(config, config_facts[i], value, sizeof(value)) == 0 &&
		    json_put(facts, config_facts[i], json_string_or_null(value)))
			return -ENOMEM;
	return 0;
}

static const char *config_preemption(const char *config)
{
	static const struct {
		const char *option, *model;
	} models[] = {{"PREEMPT_RT", "rt"},
		      {"PREEMPT_LAZY", "lazy"},
		      {"PREEMPT_VOLUNTARY", "voluntary"},
		      {"PREEMPT_NONE", "none"},
		      {"PREEMPT", "full"}};
	char value[8];

	for (size_t i = 0; config && i < ARRAY_SIZE(models); i++)
		if (kernel_config_get(config, models[i].option, value, sizeof(value)) == 0)
			return models[i].model;
	return NULL;
}

/*
 * "rt", "full", "voluntary", "none", "lazy"; with PREEMPT_DYNAMIC the one that holds now: from
 * debugfs, else from the command line, else the default of the build. kernel/sched/core.c.
 */
static int put_preemption(json_t *environment, const char *version, const char *cmdline,
			  const char *config)
{
	bool dynamic = strstr(version, "PREEMPT_DYNAMIC");
	const char *model = NULL, *source = "debugfs", *option, *open;
	char text[128], word[32];

	if (machine_read_line("/sys/kernel/debug/sched/preempt", text, sizeof(text)) == 0) {
		/* "none voluntary (full)": round brackets */
		open = strchr(text, '(');
		model = open ? open + 1 : text;
		text[strcspn(text, ")")] = '\0';
	} else if (strstr(version, "PREEMPT_RT") || strstr(version, "PREEMPT RT")) {
		model = "rt";
		source = "version";
	} else if (dynamic && (option = strstr(cmdline, "preempt="))) {
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(option + 8, " "), option + 8);
		model = word;
		source = "command line";
	} else if ((model = config_preemption(config))) {
		source = dynamic ? "default of the build" : "config";
	} else if (!dynamic && strstr(version, "PREEMPT")) {
		model = "full";
		source = "version";
	}
	if (json_put(environment, "preemption", json_string_or_null(model)) ||
	    json_put(environment, "preemption_dynamic", json_boolean(dynamic)) ||
	    json_put(environment, "preemption_source", json_string_or_null(model ? source : NULL)))
		return -ENOMEM;
	return 0;
}

/* Under a root prefix the files say which kernel; uname() would be the real machine's. */
static void kernel_words(char *release, char *version, size_t size)
{
	struct utsname name;

	if (machine_read_line("/proc/sys/kernel/osrelease", release, size) == 0 &&
	    machine_read_line("/proc/sys/kernel/version", version, size) == 0)
		return;
	uname(&name);
	snprintf(release, size, "%s", name.release);
	snprintf(version, size, "%s", name.version);
}

static int put_kernel(json_t *environment)
{
	char release[256], version[256], *cmdline = NULL, *config = NULL;
	const char *source = NULL;
	struct utsname name;
	int error = -ENOMEM;

	kernel_words(release, version, sizeof(release));
	uname(&name);
	if (machine_read("/proc/cmdline", &cmdline, NULL) == 0)
		cmdline[strcspn(cmdline, "\n")] = '\0';
	if (kernel_config_read(release, &config, &source))
		config = NULL;
	if (json_put(environment, "kernel", json_string_or_null(release)) ||
	    json_put(environment, "kernel_version", json_string_or_null(version)) ||
	    json_put(environment, "architecture", json_string_or_null(name.machine)) ||
	    json_put(environment, "cmdline", json_string_or_null(cmdline)) ||
	    put_preemption(environment, version, cmdline ? cmdline : "", config) ||
	    put_config(environment, config, source))
		goto out;
	error = 0;
out:
	free(cmdline);
	free(config);
	return error;
}

/* The number behind " @word" on the kernel's command line, or null. */
static json_t *command_line_number(const char *command_line, const char *word)
{
	const char *at = command_line ? strstr(command_line, word) : NULL;
	int64_t value;
	char text[32];

	if (!at || sscanf(at + strlen(word), "%31[0-9]", text) != 1 ||
	    parse_int64(text, 0, INT64_MAX, &value))
		return json_null();
	return json_integer(value);
}

/* The lab's machine (scripts/lab) says on its kernel's command line that QEMU counts instructions.
 */
static int put_clock(json_t *environment)
{
	static const char base[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	char *line = NULL;
	bool is_virtual;
	int bad;

	machine_read("/proc/cmdline", &line, NULL);
	is_virtual = line && strstr(line, " syslat.clock=virtual");
	bad = json_put(environment, "clock", json_string(is_virtual ? "virtual" : "real")) ||
	      json_put(environment, "ns_per_instruction",
		       command_line_number(line, " syslat.ns_per_instruction=")) ||
	      json_put(environment, "boot_seed", command_line_number(line, " syslat.seed="));
	free(line);
	if (bad || environment_put_line(environment, "clocksource", base))
		return -ENOMEM;
	return json_put(environment, "clock_read_ns",
			json_number_or_null(((int64_t)(clock_read_cost_ns() * 10 + 0.5)) / 10.0));
}

static json_t *limit_value(int resource)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return json_string("unlimited");
	return json_integer((json_int_t)limit.rlim_cur);
}

static int put_real_time(json_t *environment)
{
	static const char fair[] = "/sys/kernel/debug/sched/fair_server/cpu0";
	json_t *rt = json_object();
	char path[128];

	if (json_put(environment, "rt", rt) ||
	    environment_put_int64(rt, "runtime_us", "/proc/sys/kernel/sched_rt_runtime_us") ||
	    environment_put_int64(rt, "period_us", "/proc/sys/kernel/sched_rt_period_us") ||
	    environment_put_int64(rt, "timer_migration", "/proc/sys/kernel/timer_migration") ||
	    json_put(rt, "limit_rtprio", limit_value(RLIMIT_RTPRIO)) ||
	    json_put(rt, "limit_memlock_bytes", limit_value(RLIMIT_MEMLOCK)))
		return -ENOMEM;
	/* Since 6.12 the fair server, not throttling, keeps time for others; debugfs alone tells
	 * it. */
	snprintf(path, sizeof(path), "%s/runtime", fair);
	if (environment_put_int64(rt, "fair_server_runtime_ns", path))
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/period", fair);
	return environment_put_int64(rt, "fair_server_period_ns", path);
}

static int put_sysctls(json_t *environment)
{
	static const char *const names[] = {
		"vm/swappiness",
		"vm/compaction_proactiveness",
		"vm/compact_unevictable_allowed",
		"vm/min_free_kbytes",
		"vm/watermark_scale_factor",
		"vm/overcommit_memory",
		"vm/vfs_cache_pressure",
		"kernel/numa_balancing",
		"kernel/sched_autogroup_enabled",
		"kernel/nmi_watchdog",
		"kernel/hung_task_timeout_secs",
	};
	json_t *sysctl = json_object();

	if (json_put(environment, "sysctl", sysctl))
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[128];

		snprintf(path, sizeof(path), "/proc/sys/%s", names[i]);
		if (environment_put_int64(sysctl, strchr(names[i], '/') + 1, path))
			return -ENOMEM;
	}
	return 0;
}

static int put_tool(json_t *environment)
{
	json_t *tool = json_object();

	if (json_put(environment, "tool", tool) ||
	    json_put(tool, "version", json_string(SYSLATENCY_VERSION)) ||
	    json_put(tool, "build", json_string(SYSLATENCY_BUILD)))
		return -ENOMEM;
	return 0;
}

json_t *environment_describe(void)
{
	static int (*const parts[])(json_t * environment) = {
		put_kernel,    put_clock,   environment_put_processors, environment_put_memory,
		put_real_time, put_sysctls, environment_put_host,
	};
	json_t *environment = json_object();
	int error = environment ? 0 : -ENOMEM;

	for (size_t i = 0; !error && i < ARRAY_SIZE(parts); i++)
		error = parts[i](environment);
	if (error || json_put(environment, "gpus", gpu_list()) || put_tool(environment)) {
		json_decref(environment);
		return NULL;
	}
	return environment;
}

/* FNV-1a, 64 bits (Fowler, Noll, Vo): no secret, only short and stable. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return (hash ^ '\n') * UINT64_C(0x100000001b3);
}

void environment_machine_key(const json_t *environment, char key[17])
{
	int64_t memory_bytes = json_get_int64(environment, "memory_bytes", 0);
	const json_t *machine = json_at(environment, "machine"), *gpu;
	const char *product = json_get_string(machine, "product", NULL);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	char number[32];
	size_t i;

	hash = hash_text(hash, json_get_string(environment, "cpu_model", ""));
	snprintf(number, sizeof(number), "%lld",
		 (long long)json_get_int64(environment, "cpus_present", 0));
	hash = hash_text(hash, number);
	/* What the kernel reserves differs between builds by some MB: whole GiB hide that. */
	snprintf(number, sizeof(number), "%lld",
		 (long long)((memory_bytes + (INT64_C(1) << 29)) >> 30));
	hash = hash_text(hash, number);
	if (product) {
		hash = hash_text(hash, json_get_string(machine, "vendor", ""));
		hash = hash_text(hash, product);
		hash = hash_text(hash, json_get_string(machine, "board", ""));
	} else {
		hash = hash_text(hash, json_get_string(environment, "hypervisor", ""));
	}
	json_array_foreach (json_at(environment, "gpus"), i, gpu) {
		hash = hash_text(hash, json_get_string(gpu, "vendor", ""));
		hash = hash_text(hash, json_get_string(gpu, "device", ""));
	}
	/* Times of different clocks never make one series; records from before it was noted are
	 * real. */
	if (strcmp(json_get_string(environment, "clock", "real"), "real") != 0) {
		hash = hash_text(hash, json_get_string(environment, "clock", ""));
		snprintf(number, sizeof(number), "%lld",
			 (long long)json_get_int64(environment, "ns_per_instruction", 0));
		hash = hash_text(hash, number);
	}
	snprintf(key, 17, "%016llx", (unsigned long long)hash);
}
