/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "run/state.h"

#define WORST_DEFAULT 10

void run_start_causes(struct run *run)
{
	const struct run_settings *settings = run->settings;
	struct cause_settings cause = {
		.level = settings->trace_level,
		.worst = settings->worst ? settings->worst : WORST_DEFAULT,
		.cpus = settings->cpus,
		.transaction = run->transaction,
		.subject = settings->measure->subject,
		.guest = json_is_true(json_object_get(run->record->environment, "guest")),
		.perfetto_path = settings->perfetto_path,
		.buffer_kib = (int64_t)((settings->trace_buffer.bytes + 1023) >> 10),
	};

	if (settings->trace_level <= 0)
		return;
	cause.threads = sampler_threads(run->sampler, &cause.thread_count);
	for (size_t i = 0; i < RUN_CAUSES_MAX && causes[i]; i++) {
		struct message message = {""};

		if (causes[i]->start(&cause, &run->cause_states[i], &message) == 0)
			continue;
		run->cause_states[i] = NULL;
		record_note(run->record, "causes without %s: %s", causes[i]->name, message.text);
	}
}

void run_poll_causes(struct run *run)
{
	size_t count;
	const struct sampling_thread *threads = sampler_threads(run->sampler, &count);

	for (size_t i = 0; i < RUN_CAUSES_MAX && causes[i]; i++)
		if (run->cause_states[i] && causes[i]->poll)
			causes[i]->poll(run->cause_states[i], threads, count);
}

void run_finish_causes(struct run *run)
{
	struct cause_end end = {.begin_ns = run->begin_ns};

	end.threads = sampler_threads(run->sampler, &end.thread_count);
	for (size_t i = 0; i < RUN_CAUSES_MAX && causes[i]; i++) {
		struct message message = {""};

		if (run->cause_states[i] &&
		    causes[i]->finish(run->cause_states[i], &end, run->record, &message) < 0)
			record_note(run->record, "causes of %s: %s", causes[i]->name, message.text);
		run->cause_states[i] = NULL;
	}
}

void run_abandon_causes(struct run *run)
{
	for (size_t i = 0; i < RUN_CAUSES_MAX && causes[i]; i++) {
		if (run->cause_states[i])
			causes[i]->finish(run->cause_states[i], NULL, NULL, NULL);
		run->cause_states[i] = NULL;
	}
}
