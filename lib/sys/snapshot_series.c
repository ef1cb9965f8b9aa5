/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/proc.h"
#include "sys/snapshot_internal.h"

/* Where a value of a point comes from. */
enum series_file { FILE_VMSTAT, FILE_PRESSURE, FILE_STAT, FILE_USAGE, FILE_HITS, FILE_COUNT };

static const struct series_value {
	const char *name; /* in the record */
	enum series_file file;
	const char *key; /* NULL: see read_value() */
	bool level;
} series_values[] = {
	{"pgscan_anon", FILE_VMSTAT, "pgscan_anon", false},
	{"pgscan_file", FILE_VMSTAT, "pgscan_file", false},
	{"pswpout", FILE_VMSTAT, "pswpout", false},
	{"pswpin", FILE_VMSTAT, "pswpin", false},
	{"thp_fault_alloc", FILE_VMSTAT, "thp_fault_alloc", false},
	{"thp_fault_fallback", FILE_VMSTAT, "thp_fault_fallback", false},
	{"nr_free_pages", FILE_VMSTAT, "nr_free_pages", true},
	{"nr_unevictable", FILE_VMSTAT, "nr_unevictable", true},
	{"nr_mlock", FILE_VMSTAT, "nr_mlock", true},
	{"memory_full_us", FILE_PRESSURE, NULL, false},
	{"steal_ms", FILE_STAT, NULL, false},
	{"memcg_usage_bytes", FILE_USAGE, NULL, true},
	{"memcg_limit_hits", FILE_HITS, NULL, false},
};

#define VALUES ARRAY_SIZE(series_values)
#define UNKNOWN INT64_MIN
#define FIRST_INTERVAL_NS NS_PER_S

struct series_point {
	int64_t when_ns;
	int64_t values[VALUES];
};

struct snapshot_series {
	int files[FILE_COUNT]; /* -1: this machine has none */
	enum cgroup_version version;
	int64_t interval_ns;
	size_t count;
	struct series_point points[SNAPSHOT_SERIES_POINTS];
	char buffer[16384]; /* the largest, /proc/vmstat, is about 5 KB */
};

static int open_group_file(const struct cgroup *group, const char *v1, const char *v2)
{
	char path[PATH_MAX];

	if (!group || group->version == CGROUP_NONE)
		return -1;
	if (snprintf(path, sizeof(path), "%s/%s", group->path,
		     group->version == CGROUP_V1 ? v1 : v2) >= (int)sizeof(path))
		return -1;
	return machine_open(path, O_RDONLY);
}

int snapshot_series_open(const struct cgroup *group, struct snapshot_series **ret_series)
{
	struct snapshot_series *series = calloc(1, sizeof(*series));

	if (!series)
		return -ENOMEM;
	series->version = group ? group->version : CGROUP_NONE;
	series->interval_ns = FIRST_INTERVAL_NS;
	series->files[FILE_VMSTAT] = machine_open("/proc/vmstat", O_RDONLY);
	series->files[FILE_PRESSURE] = machine_open("/proc/pressure/memory", O_RDONLY);
	series->files[FILE_STAT] = machine_open("/proc/stat", O_RDONLY);
	series->files[FILE_USAGE] =
		open_group_file(group, "memory.usage_in_bytes", "memory.current");
	series->files[FILE_HITS] = open_group_file(group, "memory.failcnt", "memory.events");
	*ret_series = series;
	return 0;
}

static int64_t keyed_value(const char *text, const char *key)
{
	int64_t value;

	return text_find_int64(text, key, &value) ? UNKNOWN : value;
}

static int64_t read_value(const struct snapshot_series *series, const struct series_value *wanted)
{
	const char *text = series->buffer;
	struct proc_pressure pressure;
	struct proc_cpu cpu;
	int64_t value = UNKNOWN;

	if (wanted->key)
		return keyed_value(text, wanted->key);
	switch (wanted->file) {
	case FILE_PRESSURE:
		proc_parse_pressure(text, &pressure);
		return pressure.full_us < 0 ? UNKNOWN : pressure.full_us;
	case FILE_STAT: /* the sum of all is the first line */
		return proc_next_cpu(&text, &cpu) && cpu.cpu < 0
			       ? cpu.steal_ticks * proc_tick_ns() / NS_PER_MS
			       : UNKNOWN;
	case FILE_HITS:
		if (series->version == CGROUP_V2)
			return keyed_value(text, "max");
		/* fall through */
	default:
		return sscanf(text, "%" SCNd64, &value) == 1 ? value : UNKNOWN;
	}
}

/* Every second point goes, so that a run of any length fits and is spanned whole. */
static void thin_out(struct snapshot_series *series)
{
	size_t kept = 0;

	for (size_t i = 0; i < series->count; i += 2)
		series->points[kept++] = series->points[i];
	series->count = kept;
	series->interval_ns *= 2;
}

void snapshot_series_sample(struct snapshot_series *series, int64_t now_ns)
{
	struct series_point *point;

	if (!series)
		return;
	if (series->count &&
	    now_ns - series->points[series->count - 1].when_ns < series->interval_ns)
		return;
	if (series->count == SNAPSHOT_SERIES_POINTS) {
		thin_out(series);
		if (now_ns - series->points[series->count - 1].when_ns < series->interval_ns)
			return;
	}
	point = &series->points[series->count++];
	point->when_ns = now_ns;
	for (int file = 0; file < FILE_COUNT; file++) {
		ssize_t got = series->files[file] < 0 ? -1
						      : pread(series->files[file], series->buffer,
							      sizeof(series->buffer) - 1, 0);

		series->buffer[got > 0 ? got : 0] = '\0';
		for (size_t i = 0; i < VALUES; i++)
			if ((int)series_values[i].file == file)
				point->values[i] =
					got > 0 ? read_value(series, &series_values[i]) : UNKNOWN;
	}
}

static json_t *one_value(const struct snapshot_series *series, size_t at, size_t index)
{
	int64_t value = series->points[at].values[index];

	if (value == UNKNOWN)
		return json_null();
	if (series_values[index].level)
		return json_integer(value);
	if (at == 0)
		return json_integer(0);
	if (series->points[at - 1].values[index] == UNKNOWN)
		return json_null();
	return json_integer(value - series->points[at - 1].values[index]);
}

/* A column that never moved (or does not exist) is left out, but for the levels. */
static bool worth_telling(const struct snapshot_series *series, size_t index)
{
	for (size_t i = 0; i < series->count; i++) {
		int64_t value = series->points[i].values[index];

		if (value != UNKNOWN &&
		    (series_values[index].level || value != series->points[0].values[index]))
			return true;
	}
	return false;
}

json_t *snapshot_series_json(const struct snapshot_series *series)
{
	json_t *object = json_object(), *times = json_array(), *column;
	int error = json_put(object, "interval_ms", json_integer(series->interval_ns / 1000000));

	error = error ? error : json_put(object, "t_ms", times);
	for (size_t i = 0; !error && i < series->count; i++)
		error = json_array_append_new(times, json_integer((series->points[i].when_ns -
								   series->points[0].when_ns) /
								  1000000));
	for (size_t index = 0; !error && index < VALUES; index++) {
		if (!worth_telling(series, index))
			continue;
		column = json_array();
		error = json_put(object, series_values[index].name, column);
		for (size_t i = 0; !error && i < series->count; i++)
			error = json_array_append_new(column, one_value(series, i, index));
	}
	if (error) {
		json_decref(object);
		return NULL;
	}
	return object;
}

void snapshot_series_close(struct snapshot_series *series)
{
	if (!series)
		return;
	for (int file = 0; file < FILE_COUNT; file++)
		if (series->files[file] >= 0)
			close(series->files[file]);
	free(series);
}
