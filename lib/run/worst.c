/* SPDX-License-Identifier: MIT */
#include "run/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/json.h"

/* The ten worst delays of a run, with what the machine did around them. */

static int compare_worst(const void *a, const void *b)
{
	int64_t left = (*(const struct sampling_worst *const *)a)->late_ns;
	int64_t right = (*(const struct sampling_worst *const *)b)->late_ns;

	return left < right ? 1 : left > right ? -1 : 0;
}

/* Members of @from that moved, into @to under "<prefix><name>". */
static void keep_moved(json_t *to, const char *prefix, json_t *from)
{
	const char *name;
	json_t *value;

	json_object_foreach (from, name, value) {
		char key[96];

		if (!json_is_number(value) || json_number_value(value) == 0)
			continue;
		snprintf(key, sizeof(key), "%s%s", prefix, name);
		json_object_set(to, key, value);
	}
}

/*
 * The counters that say most about one delay, those that moved in the seconds around it: the whole
 * delta would be as big as the record.
 */
static json_t *context_of(const struct run *run, const struct sampling_worst *worst)
{
	static const char *const kept[] = {
		"pgscan_anon", "pgscan_file",	"pgscan_direct", "pswpout",
		"pswpin",      "compact_stall", "oom_kill",	 "thp_fault_fallback"};

	for (size_t i = 0; i < run->context_count; i++) {
		const struct worst_context *context = &run->contexts[i];
		json_t *deltas, *vmstat;

		if (context->when_ns != worst->when_ns || context->late_ns != worst->late_ns ||
		    !context->deltas)
			continue;
		deltas = json_object();
		vmstat = json_object_get(context->deltas, "vmstat");
		keep_moved(deltas, "psi_us.", json_object_get(context->deltas, "psi_us"));
		for (size_t k = 0; k < ARRAY_SIZE(kept); k++) {
			json_t *value = json_object_get(vmstat, kept[k]);

			if (json_is_integer(value) && json_integer_value(value) != 0)
				json_object_set(deltas, kept[k], value);
		}
		return deltas;
	}
	return json_null();
}

int run_fill_worst(struct run *run)
{
	const struct sampling_worst **all;
	size_t count, used = 0;

	sampler_threads(run->sampler, &count);
	all = calloc(count * SAMPLING_WORST + 1, sizeof(*all));
	run->record->worst = json_array();
	if (!all || !run->record->worst) {
		free(all);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count * SAMPLING_WORST; i++) {
		const struct sampling_worst *worst =
			&sampler_thread(run->sampler, i / SAMPLING_WORST)
				 ->worst[i % SAMPLING_WORST];

		if (worst->late_ns > 0)
			all[used++] = worst;
	}
	qsort(all, used, sizeof(*all), compare_worst);
	for (size_t i = 0; i < used && i < SAMPLING_WORST; i++) {
		json_t *entry = json_object();

		json_put(entry, "when_us",
			 json_real((double)(all[i]->when_ns - run->begin_ns) / 1e3));
		json_put(entry, "index", json_integer((json_int_t)all[i]->index));
		json_put(entry, "cpu", json_integer(all[i]->cpu));
		json_put(entry, "late_us", json_real((double)all[i]->late_ns / 1e3));
		json_put(entry, "steal_ms",
			 all[i]->steal_ns < 0 ? json_null()
					      : json_real((double)all[i]->steal_ns / 1e6));
		json_put(entry, "deltas", context_of(run, all[i]));
		json_array_append_new(run->record->worst, entry);
	}
	free(all);
	return 0;
}
