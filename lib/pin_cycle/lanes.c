/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pin_cycle/state.h"

static void add_lane(struct pin_cycle *cycle, const struct backend_ops *ops, enum variant variant)
{
	struct pin_lane *lane = &cycle->lanes[cycle->lane_count];

	if (cycle->lane_count == LANES_MOST)
		return;
	*lane = (struct pin_lane){.ops = ops, .variant = variant};
	/* A driver holds pages in one way, that of its kernel: it is the driver that is named. */
	snprintf(lane->label, sizeof(lane->label), "%s",
		 strcmp(ops->name, "shm") == 0 ? variant_name(variant) : ops->name);
	lane->worker.socket = -1;
	cycle->lane_count++;
}

static void add_backend(struct pin_cycle *cycle, const struct backend_ops *ops)
{
	bool driver = strcmp(ops->name, "shm") != 0;

	for (int variant = 0; variant < VARIANT_COUNT; variant++) {
		if (!(ops->variants & (1u << variant)) ||
		    (cycle->settings->variants && !(cycle->settings->variants & (1u << variant))))
			continue;
		if (driver && variant == VARIANT_BASELINE)
			continue;
		add_lane(cycle, ops, (enum variant)variant);
		if (driver)
			break;
	}
}

int pin_lanes_choose(struct pin_cycle *cycle, struct message *message)
{
	const char *name = cycle->settings->backend;
	char known[128] = "";

	for (size_t i = 0; backends[i]; i++) {
		size_t used = strlen(known);

		snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
			 backends[i]->name);
		/* shm first: a driver is the exception. */
		if (name ? strcmp(backends[i]->name, name) == 0
			 : strcmp(backends[i]->name, "shm") == 0)
			add_backend(cycle, backends[i]);
	}
	for (size_t i = 0; backends[i] && !name; i++)
		if (strcmp(backends[i]->name, "shm") != 0)
			add_backend(cycle, backends[i]);
	if (cycle->lane_count == 0 && name && backend_find(name))
		return message_set(message, -EINVAL,
				   "--backend %s makes none of the variants that were asked for",
				   name);
	if (cycle->lane_count == 0)
		return message_set(message, -EINVAL, "--backend: no backend '%s': one of %s",
				   name ?: "", known);
	return 0;
}

/* What the user should know about how this lane holds its pages; once. */
static void tell_lane(struct pin_cycle *cycle, const struct pin_lane *lane)
{
	const struct pin_worker *worker = &lane->worker;
	struct record *record = cycle->record;

	if (lane->variant != VARIANT_BASELINE && !record->pin_method) {
		record->pin_method = strdup(worker->pin_method);
		record->release_context = strdup(worker->release_context);
	}
	if (strcmp(lane->ops->name, "shm") != 0)
		record_note(record, "%s: pages held by %s, released by the %s%s%s", lane->label,
			    worker->pin_method, worker->release_context,
			    worker->observed_variant[0] ? "; observed: " : "",
			    worker->observed_variant);
	else if (lane->variant == VARIANT_BASELINE)
		return;
	for (size_t i = 0; i < 4 && worker->notes[i].text[0]; i++) {
		bool told = false;

		for (size_t k = 0; k < json_array_size(record->notes); k++)
			told |= strcmp(json_string_value(json_array_get(record->notes, k)),
				       worker->notes[i].text) == 0;
		if (!told)
			record_note(record, "%s", worker->notes[i].text);
	}
}

int pin_lanes_start(struct pin_cycle *cycle, const struct cgroup *group, struct message *message)
{
	size_t working = 0;

	for (size_t i = 0; i < cycle->lane_count; i++) {
		struct pin_lane *lane = &cycle->lanes[i];
		struct backend_settings settings = {
			.variant = lane->variant,
			.device = strcmp(lane->ops->name, "shm") == 0 ? NULL
								      : cycle->settings->device,
			.pin_method = strcmp(lane->ops->name, "shm") == 0
					      ? cycle->settings->pin_method
					      : NULL,
			.in_memcg = group != NULL,
			.knobs = cycle->knobs,
		};
		struct message why = {""};
		int error;

		if (lane->gone)
			continue;
		error = pin_worker_start(lane->ops, &settings, group, cycle->knobs, &lane->worker,
					 &why);
		if (error == -EINVAL) /* what was asked for does not exist */
			return message_set(message, error, "%s", why.text);
		if (error) {
			lane->gone = true;
			if (cycle->settings->backend || strcmp(lane->ops->name, "shm") == 0)
				record_note(cycle->record, "%s: n/a: %s", lane->label, why.text);
			message_set(message, -ENOTSUP, "%s: %s", lane->label, why.text);
			continue;
		}
		tell_lane(cycle, lane);
		working++;
	}
	return working ? 0 : -ENOTSUP;
}

void pin_lanes_stop(struct pin_cycle *cycle)
{
	for (size_t i = 0; i < cycle->lane_count; i++)
		pin_worker_stop(&cycle->lanes[i].worker, cycle->knobs);
}
