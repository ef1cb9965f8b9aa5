/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pin_cycle/state.h"

/* A driver holds pages in one way, that of its kernel: it is the driver that is named. */
static bool is_driver(const struct backend_ops *ops)
{
	return !(ops->flags & BACKEND_MAKES_VARIANTS);
}

static void add_backend(struct pin_cycle *cycle, const struct backend_ops *ops)
{
	unsigned int asked = cycle->settings->variants;

	for (int variant = 0; variant < VARIANT_COUNT; variant++) {
		struct pin_worker *worker = &cycle->workers[cycle->worker_count];

		if (!(ops->variants & (1u << variant)) || (asked && !(asked & (1u << variant))) ||
		    (is_driver(ops) && variant == VARIANT_BASELINE) ||
		    cycle->worker_count == WORKERS_MOST)
			continue;
		*worker = (struct pin_worker){
			.ops = ops, .variant = (enum variant)variant, .socket = -1};
		snprintf(worker->label, sizeof(worker->label), "%s",
			 is_driver(ops) ? ops->name : variant_name(worker->variant));
		cycle->worker_count++;
		if (is_driver(ops))
			break;
	}
}

int pin_workers_choose(struct pin_cycle *cycle, struct message *message)
{
	const char *name = cycle->settings->backend;
	char known[128] = "";

	for (size_t i = 0; backends[i]; i++) {
		size_t used = strlen(known);

		snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
			 backends[i]->name);
	}
	/* A driver is the exception, and comes last. */
	for (int driver = 0; driver <= 1; driver++)
		for (size_t i = 0; backends[i]; i++)
			if (is_driver(backends[i]) == driver &&
			    (!name || strcmp(backends[i]->name, name) == 0))
				add_backend(cycle, backends[i]);
	if (cycle->worker_count > 0)
		return 0;
	if (name && backend_find(name))
		return message_set(message, -EINVAL,
				   "--backend %s makes none of the variants that were asked for",
				   name);
	return message_set(message, -EINVAL, "--backend: no backend '%s': one of %s", name ?: "",
			   known);
}

static bool is_told(const struct record *record, const char *note)
{
	for (size_t i = 0; i < json_array_size(record->notes); i++)
		if (strcmp(json_string_value(json_array_get(record->notes, i)), note) == 0)
			return true;
	return false;
}

/* What the user should know about how these pages are held; once. */
static void tell(struct record *record, const struct pin_worker *worker)
{
	const struct pin_greeting *greeting = &worker->greeting;

	if (worker->variant != VARIANT_BASELINE && !record->pin_method) {
		record->pin_method = strdup(greeting->pin_method);
		record->release_context = strdup(greeting->release_context);
	}
	if (is_driver(worker->ops))
		record_note(record, "%s: pages held by %s, released by the %s%s%s", worker->label,
			    greeting->pin_method, greeting->release_context,
			    greeting->observed_variant[0] ? "; observed: " : "",
			    greeting->observed_variant);
	else if (worker->variant == VARIANT_BASELINE)
		return;
	for (size_t i = 0; i < 4 && greeting->notes[i].text[0]; i++)
		if (!is_told(record, greeting->notes[i].text))
			record_note(record, "%s", greeting->notes[i].text);
}

int pin_workers_start(struct pin_cycle *cycle, const struct cgroup *group, struct message *message)
{
	const struct pin_cycle_settings *asked = cycle->settings;
	size_t working = 0;

	for (size_t i = 0; i < cycle->worker_count; i++) {
		struct pin_worker *worker = &cycle->workers[i];
		unsigned int flags = worker->ops->flags;
		struct backend_settings settings = {
			.variant = worker->variant,
			.device = flags & BACKEND_NEEDS_DEVICE ? asked->device : NULL,
			.pin_method = is_driver(worker->ops) ? NULL : asked->pin_method,
			.in_memcg = group != NULL,
			.transaction = cycle->transaction,
		};
		struct message why = {""};
		int error;

		if (worker->gone)
			continue;
		error = pin_worker_start(worker, &settings, group, &why);
		if (error == -EINVAL) /* what was asked for does not exist */
			return message_set(message, error, "%s", why.text);
		if (error) {
			worker->gone = true;
			if (asked->backend || !is_driver(worker->ops))
				record_note(cycle->record, "%s: n/a: %s", worker->label, why.text);
			message_set(message, -ENOTSUP, "%s: %s", worker->label, why.text);
			continue;
		}
		tell(cycle->record, worker);
		working++;
	}
	return working ? 0 : -ENOTSUP;
}

void pin_workers_stop(struct pin_cycle *cycle)
{
	for (size_t i = 0; i < cycle->worker_count; i++)
		pin_worker_stop(&cycle->workers[i], cycle->transaction);
}
