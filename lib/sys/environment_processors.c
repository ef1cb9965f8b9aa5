/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cpuset.h"
#include "base/file.h"
#include "base/json.h"
#include "sys/environment_internal.h"

#define CPU_ROOT "/sys/devices/system/cpu"

/* "key\t: value" of the first processor; allocated, NULL when there is none. */
static char *cpuinfo_value(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) == 0 && strchr("\t :", line[length])) {
			const char *colon = strchr(line, ':');

			if (!colon)
				return NULL;
			colon += 1 + strspn(colon + 1, " ");
			return strndup(colon, strcspn(colon, "\n"));
		}
	}
	return NULL;
}

static int put_owned(json_t *object, const char *key, char *text)
{
	int error = json_put(object, key, json_string_or_null(text));

	free(text);
	return error;
}

/* Other architectures name the model otherwise, or only in the device tree. */
static char *model_name(const char *cpuinfo)
{
	static const char *const keys[] = {"model name", "cpu model", "cpu", "Processor", "uarch"};
	char *model = NULL, line[256];

	for (size_t i = 0; !model && i < ARRAY_SIZE(keys); i++)
		model = cpuinfo_value(cpuinfo, keys[i]);
	if (!model && machine_read_line("/proc/device-tree/model", line, sizeof(line)) == 0)
		model = strdup(line);
	return model;
}

static bool has_flag(const char *cpuinfo, const char *flag)
{
	char *flags = cpuinfo_value(cpuinfo, "flags"), *word, *rest;
	bool found = false;

	for (word = flags ? strtok_r(flags, " ", &rest) : NULL; word && !found;
	     word = strtok_r(NULL, " ", &rest))
		found = strcmp(word, flag) == 0;
	free(flags);
	return found;
}

static int put_identity(json_t *environment)
{
	char *cpuinfo = NULL;
	int error;

	if (machine_read("/proc/cpuinfo", &cpuinfo, NULL))
		cpuinfo = strdup("");
	if (!cpuinfo)
		return -ENOMEM;
	error = put_owned(environment, "cpu_model", model_name(cpuinfo));
	if (!error)
		error = put_owned(environment, "microcode", cpuinfo_value(cpuinfo, "microcode"));
	if (!error)
		error = json_put(environment, "guest",
				 json_boolean(has_flag(cpuinfo, "hypervisor")));
	free(cpuinfo);
	return error;
}

static int put_count(json_t *environment, const char *key, const char *path)
{
	struct cpu_list list;
	json_t *count = json_null();
	char line[4096];

	if (machine_read_line(path, line, sizeof(line)) == 0 &&
	    cpu_list_parse(line, &list, NULL) == 0) {
		count = json_integer((json_int_t)list.count);
		cpu_list_free(&list);
	}
	return json_put(environment, key, count);
}

/* Empty files ("" isolated CPUs) are "", not null: the kernel says that there are none. */
static int put_lists(json_t *environment)
{
	if (put_count(environment, "cpus_present", CPU_ROOT "/present") ||
	    put_count(environment, "cpus_online", CPU_ROOT "/online") ||
	    environment_put_line(environment, "cpus_isolated", CPU_ROOT "/isolated") ||
	    environment_put_line(environment, "cpus_nohz_full", CPU_ROOT "/nohz_full") ||
	    environment_put_line(environment, "smt", CPU_ROOT "/smt/control"))
		return -ENOMEM;
	return 0;
}

/* One word when all CPUs agree, else all words that occur: "performance", "powersave/performance".
 */
static int put_governors(json_t *object)
{
	struct cpu_list online = {0};
	char all[256] = "";

	if (cpu_list_online(&online))
		online.count = 0;
	for (size_t i = 0; i < online.count; i++) {
		char path[128], word[64];
		size_t length = strlen(all);

		snprintf(path, sizeof(path), CPU_ROOT "/cpu%d/cpufreq/scaling_governor",
			 online.cpus[i]);
		if (machine_read_line(path, word, sizeof(word)) || strstr(all, word) ||
		    length + strlen(word) + 2 > sizeof(all))
			continue;
		snprintf(all + length, sizeof(all) - length, "%s%s", length ? "/" : "", word);
	}
	cpu_list_free(&online);
	return json_put(object, "governor", json_string_or_null(*all ? all : NULL));
}

static int put_frequency(json_t *environment)
{
	json_t *frequency = json_object();

	if (json_put(environment, "frequency", frequency) || put_governors(frequency) ||
	    environment_put_line(frequency, "driver", CPU_ROOT "/cpu0/cpufreq/scaling_driver") ||
	    environment_put_int64(frequency, "boost", CPU_ROOT "/cpufreq/boost") ||
	    environment_put_int64(frequency, "no_turbo", CPU_ROOT "/intel_pstate/no_turbo"))
		return -ENOMEM;
	return 0;
}

/* States of CPU 0, with "-" before those that are switched off. */
static int put_idle_states(json_t *idle)
{
	json_t *states = json_array();

	if (json_put(idle, "states", states))
		return -ENOMEM;
	for (int state = 0; state < 32; state++) {
		char path[128], name[64], text[66];
		int64_t disabled = 0;

		snprintf(path, sizeof(path), CPU_ROOT "/cpu0/cpuidle/state%d/name", state);
		if (machine_read_line(path, name, sizeof(name)))
			break;
		snprintf(path, sizeof(path), CPU_ROOT "/cpu0/cpuidle/state%d/disable", state);
		machine_read_int64(path, &disabled);
		snprintf(text, sizeof(text), "%s%s", disabled ? "-" : "", name);
		if (json_array_append_new(states, json_string_or_null(text)))
			return -ENOMEM;
	}
	return 0;
}

static int put_idle(json_t *environment)
{
	json_t *idle = json_object();

	if (json_put(environment, "idle", idle) ||
	    environment_put_line(idle, "driver", CPU_ROOT "/cpuidle/current_driver") ||
	    environment_put_line(idle, "governor", CPU_ROOT "/cpuidle/current_governor") ||
	    environment_put_int64(idle, "haltpoll_ns",
				  "/sys/module/haltpoll/parameters/guest_halt_poll_ns"))
		return -ENOMEM;
	return put_idle_states(idle);
}

/* What the CPU is not affected by is left out. */
static int put_mitigations(json_t *environment)
{
	char path[PATH_MAX], line[512];
	json_t *mitigations = json_object();
	struct dirent **names;
	int count, error = json_put(environment, "mitigations", mitigations);

	if (error || machine_path(CPU_ROOT "/vulnerabilities", path, sizeof(path)))
		return error;
	count = scandir(path, &names, NULL, alphasort);
	if (count < 0)
		return json_put(environment, "mitigations", json_null());
	for (int i = 0; i < count; i++) {
		const char *name = names[i]->d_name;

		snprintf(path, sizeof(path), CPU_ROOT "/vulnerabilities/%s", name);
		if (!error && name[0] != '.' && machine_read_line(path, line, sizeof(line)) == 0 &&
		    strcmp(line, "Not affected") != 0)
			error = json_put(mitigations, name, json_string_or_null(line));
		free(names[i]);
	}
	free(names);
	return error;
}

int environment_put_processors(json_t *environment)
{
	if (put_identity(environment) || put_lists(environment) || put_frequency(environment) ||
	    put_idle(environment) || put_mitigations(environment))
		return -ENOMEM;
	return 0;
}
