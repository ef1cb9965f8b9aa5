/* SPDX-License-Identifier: MIT */
#include "base/cpuset.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* More than any kernel is built for (NR_CPUS of 8192 today); a bound for typing errors. */
#define CPU_NUMBER_LIMIT 65536

void cpu_list_free(struct cpu_list *list)
{
	free(list->cpus);
	list->cpus = NULL;
	list->count = 0;
}

bool cpu_list_contains(const struct cpu_list *list, int cpu)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (list->cpus[middle] == cpu)
			return true;
		if (list->cpus[middle] < cpu)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

int cpu_list_copy(const struct cpu_list *from, struct cpu_list *ret_list)
{
	struct cpu_list copy = {.count = from->count};

	copy.cpus = malloc((from->count ? from->count : 1) * sizeof(*copy.cpus));
	if (!copy.cpus)
		return -ENOMEM;
	if (from->count)
		memcpy(copy.cpus, from->cpus, from->count * sizeof(*copy.cpus));
	*ret_list = copy;
	return 0;
}

static int list_from_bits(const unsigned char *bits, size_t size, struct cpu_list *ret_list)
{
	struct cpu_list list = {0};
	size_t count = 0;

	for (size_t i = 0; i < size; i++)
		count += bits[i] != 0;
	list.cpus = malloc((count ? count : 1) * sizeof(*list.cpus));
	if (!list.cpus)
		return -ENOMEM;
	for (size_t i = 0; i < size; i++)
		if (bits[i])
			list.cpus[list.count++] = (int)i;
	*ret_list = list;
	return 0;
}

static const char *parse_cpu(const char *at, long *ret_cpu)
{
	char *end;

	if (!isdigit((unsigned char)*at))
		return NULL;
	errno = 0;
	*ret_cpu = strtol(at, &end, 10);
	if (errno || *ret_cpu >= CPU_NUMBER_LIMIT)
		return NULL;
	return end;
}

int cpu_list_parse(const char *text, struct cpu_list *ret_list, struct message *message)
{
	unsigned char *bits = calloc(CPU_NUMBER_LIMIT, 1);
	const char *at = text;
	int error;

	if (!bits)
		return -ENOMEM;
	for (;;) {
		long first, last;

		at = parse_cpu(at, &first);
		last = first;
		if (at && *at == '-')
			at = parse_cpu(at + 1, &last);
		if (!at || last < first || (*at != ',' && *at != '\0')) {
			error = message_set(message, -EINVAL,
					    "'%s' is not a CPU list: write it like 0-3,8", text);
			goto out;
		}
		memset(bits + first, 1, (size_t)(last - first) + 1);
		if (*at == '\0')
			break;
		at++;
	}
	error = list_from_bits(bits, CPU_NUMBER_LIMIT, ret_list);
out:
	free(bits);
	return error;
}

char *cpu_list_format(const struct cpu_list *list)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return NULL;
	for (size_t i = 0; i < list->count;) {
		size_t last = i;

		while (last + 1 < list->count && list->cpus[last + 1] == list->cpus[last] + 1)
			last++;
		fprintf(stream, "%s%d", i ? "," : "", list->cpus[i]);
		if (last > i)
			fprintf(stream, "-%d", list->cpus[last]);
		i = last + 1;
	}
	if (fclose(stream) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

int cpu_list_allowed(pid_t pid, struct cpu_list *ret_list)
{
	/* The kernel refuses a mask smaller than its own with EINVAL: grow until it fits. */
	for (int cpus = 1024; cpus <= CPU_NUMBER_LIMIT; cpus *= 2) {
		cpu_set_t *set = CPU_ALLOC(cpus);
		size_t size = CPU_ALLOC_SIZE(cpus);
		unsigned char *bits;
		int error;

		if (!set)
			return -ENOMEM;
		CPU_ZERO_S(size, set);
		if (sched_getaffinity(pid, size, set) < 0) {
			error = -errno;
			CPU_FREE(set);
			if (error == -EINVAL)
				continue;
			return error;
		}
		bits = calloc((size_t)cpus, 1);
		if (!bits) {
			CPU_FREE(set);
			return -ENOMEM;
		}
		for (int cpu = 0; cpu < cpus; cpu++)
			bits[cpu] = CPU_ISSET_S(cpu, size, set) != 0;
		error = list_from_bits(bits, (size_t)cpus, ret_list);
		free(bits);
		CPU_FREE(set);
		return error;
	}
	return -EINVAL;
}

int cpu_list_online(struct cpu_list *ret_list)
{
	char *text;
	int error = machine_read("/sys/devices/system/cpu/online", &text, NULL);

	if (error)
		return error;
	text[strcspn(text, "\n")] = '\0';
	error = cpu_list_parse(text, ret_list, NULL);
	free(text);
	return error;
}

int cpu_list_check(const struct cpu_list *wanted, struct message *message)
{
	struct cpu_list allowed, online = {0}, present = {0};
	char *text = NULL, *allowed_text = NULL;
	int error = cpu_list_allowed(0, &allowed);

	if (error)
		return message_set_errno(message, error, "cannot read the allowed CPUs");
	if (cpu_list_online(&online) < 0)
		error = cpu_list_copy(&allowed, &online);
	if (machine_read("/sys/devices/system/cpu/present", &text, NULL) == 0) {
		text[strcspn(text, "\n")] = '\0';
		cpu_list_parse(text, &present, NULL);
	}
	for (size_t i = 0; !error && i < wanted->count; i++) {
		int cpu = wanted->cpus[i];

		if (cpu_list_contains(&online, cpu) && cpu_list_contains(&allowed, cpu))
			continue;
		if (present.count && !cpu_list_contains(&present, cpu))
			error = message_set(message, -ENXIO,
					    "CPU %d does not exist on this machine", cpu);
		else if (!cpu_list_contains(&online, cpu))
			error = message_set(message, -ENXIO,
					    "CPU %d is offline: write 1 to "
					    "/sys/devices/system/cpu/cpu%d/online",
					    cpu, cpu);
		else {
			allowed_text = cpu_list_format(&allowed);
			error = message_set(
				message, -ENXIO,
				"CPU %d is not in the allowed set %s (cpuset or taskset)", cpu,
				allowed_text ? allowed_text : "");
		}
	}
	free(text);
	free(allowed_text);
	cpu_list_free(&allowed);
	cpu_list_free(&online);
	cpu_list_free(&present);
	return error;
}

int cpu_pin_list(pid_t pid, const struct cpu_list *list)
{
	int highest = list->count ? list->cpus[list->count - 1] : -1;
	cpu_set_t *set;
	size_t size;
	int error = 0;

	if (highest < 0)
		return -EINVAL;
	set = CPU_ALLOC(highest + 1);
	if (!set)
		return -ENOMEM;
	size = CPU_ALLOC_SIZE(highest + 1);
	CPU_ZERO_S(size, set);
	for (size_t i = 0; i < list->count; i++)
		CPU_SET_S(list->cpus[i], size, set);
	if (sched_setaffinity(pid, size, set) < 0)
		error = -errno;
	CPU_FREE(set);
	return error;
}

int cpu_pin(pid_t pid, int cpu)
{
	const struct cpu_list list = {.cpus = &cpu, .count = 1};

	return cpu_pin_list(pid, &list);
}
