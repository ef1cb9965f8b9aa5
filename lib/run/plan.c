/* SPDX-License-Identifier: MIT */
#include "run/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/proc.h"
#include "sys/swap.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* What a sampling thread may cost. */
#define THREAD_MOST_BYTES (UINT64_C(256) << 10)

/* Below this a group cannot hold the processes of a run. */
#define LIMIT_LEAST_BYTES (32 * MIB)

int machine_memory_read(struct machine_memory *ret_memory)
{
	struct machine_memory memory = {0};
	uint64_t swap_total_bytes;
	struct proc_memory read;
	int error = proc_read_memory(&read);

	if (error)
		return error;
	if (read.total_bytes < 0 || read.available_bytes < 0)
		return -ENOENT;
	memory.total_bytes = (uint64_t)read.total_bytes;
	memory.available_bytes = (uint64_t)read.available_bytes;
	if (swap_total(&swap_total_bytes, &memory.swap_free_bytes) < 0)
		memory.swap_free_bytes = 0;
	*ret_memory = memory;
	return 0;
}

static bool size_given(const struct size_value *size)
{
	return size->is_percent || size->bytes > 0;
}

static bool has_load(const struct run_settings *settings, unsigned int any_of)
{
	for (size_t i = 0; i < settings->load_count; i++)
		if (settings->loads[i]->flags & any_of)
			return true;
	return false;
}

/* A load that holds memory wants a group of its own, unless this is IGT's call unchanged. */
static bool wants_memcg(const struct run_settings *settings)
{
	if (settings->scope != SCOPE_AUTO)
		return settings->scope == SCOPE_MEMCG;
	if (settings->pure_drop_in)
		return false;
	return size_given(&settings->limit) || size_given(&settings->footprint) ||
	       has_load(settings, LOAD_HOLDS_BUFFERS | LOAD_HOLDS_MEMORY | LOAD_FILLS_CACHE);
}

static int decide_limit(const struct run_settings *settings, const struct machine_memory *memory,
			struct run_plan *plan, struct message *message)
{
	uint64_t fifth = memory->total_bytes / 5;

	plan->memcg = wants_memcg(settings);
	if (!plan->memcg) {
		if (size_given(&settings->limit))
			return message_set(message, -EINVAL,
					   "--limit needs a group: use --scope memcg with it");
		return 0;
	}
	if (size_given(&settings->limit))
		plan->nominal_limit_bytes = size_resolve(&settings->limit, memory->total_bytes);
	else
		plan->nominal_limit_bytes = fifth < 2 * GIB ? fifth : 2 * GIB;
	plan->limit_bytes = plan->nominal_limit_bytes;
	if (plan->limit_bytes < LIMIT_LEAST_BYTES)
		return message_set(message, -EINVAL,
				   "--limit: %llu bytes cannot hold a run: give at least 32M",
				   (unsigned long long)plan->limit_bytes);
	return 0;
}

static int decide_footprint(const struct run_settings *settings,
			    const struct machine_memory *memory, struct run_plan *plan,
			    struct message *message)
{
	uint64_t whole = plan->memcg ? plan->nominal_limit_bytes : memory->total_bytes;
	uint64_t bytes = size_resolve(&settings->footprint, whole);
	char footprint_text[32], whole_text[32];

	plan->footprint_bytes = plan->nominal_footprint_bytes = bytes;
	if (bytes == 0)
		return 0;
	if (bytes + LIMIT_LEAST_BYTES > whole)
		return message_set(
			message, -EINVAL,
			"--footprint %s does not fit %s of %s: lower it or raise --limit",
			format_size(bytes, footprint_text, sizeof(footprint_text)),
			plan->memcg ? "the limit" : "the memory",
			format_size(whole, whole_text, sizeof(whole_text)));
	if (!has_load(settings, LOAD_HOLDS_BUFFERS) &&
	    settings->backend_settings.variant != VARIANT_BASELINE)
		return message_set(
			message, -EINVAL,
			"--footprint is held by the %s load, and it is not among the loads",
			load_with(LOAD_HOLDS_BUFFERS)->name);
	return 0;
}

/* The loads' settings; budgets refer to the nominal limit so that every arm gets the same traffic.
 */
static int decide_loads(const struct run_settings *settings, const struct machine_memory *memory,
			struct run_plan *plan, struct message *message)
{
	uint64_t whole = plan->memcg ? plan->nominal_limit_bytes : memory->available_bytes;

	for (size_t i = 0; i < settings->load_count; i++) {
		const struct load_ops *ops = settings->loads[i];
		struct load_settings *load = &plan->loads[plan->load_count];

		*load = (struct load_settings){
			.ops = ops,
			.backend = ops->flags & LOAD_HOLDS_BUFFERS ? settings->backend : NULL,
			.backend_settings = settings->backend_settings,
			.footprint_bytes = plan->footprint_bytes,
			.rate_per_s = settings->load_rates_per_s[i],
			.cpus = settings->cpus,
			.in_memcg = plan->memcg,
			.limit_bytes = plan->nominal_limit_bytes,
			.seed = settings->measure_settings.seed + 0x6c6f6164 + i,
		};
		if (size_given(&settings->load_sizes[i]))
			load->budget_bytes = size_resolve(&settings->load_sizes[i], whole);
		else if (ops->default_budget)
			load->budget_bytes = ops->default_budget(load);
		if (size_given(&settings->load_sizes[i]) && load->budget_bytes < MIB)
			return message_set(message, -EINVAL, "--load %s: give at least 1M",
					   ops->name);
		plan->asked[plan->asked_count++] = *load;
		if (!(ops->flags & LOAD_HOLDS_BUFFERS) ||
		    settings->backend_settings.variant != VARIANT_BASELINE)
			plan->load_count++;
	}
	return 0;
}

/* "Baseline: same traffic, limit lowered by the footprint": the others feel the same pressure. */
static int lower_for_baseline(const struct run_settings *settings, struct run_plan *plan,
			      struct record *record, struct message *message)
{
	char footprint_text[32];

	if (settings->backend_settings.variant != VARIANT_BASELINE || plan->footprint_bytes == 0)
		return 0;
	if (plan->memcg) {
		plan->limit_bytes -= plan->footprint_bytes;
		if (plan->limit_bytes < LIMIT_LEAST_BYTES)
			return message_set(
				message, -EINVAL,
				"the baseline's limit, lowered by the footprint, is below "
				"32M: raise --limit or lower --footprint");
		if (record)
			record_note(record, "baseline: nothing is held; the limit is lowered by %s",
				    format_size(plan->footprint_bytes, footprint_text,
						sizeof(footprint_text)));
	}
	plan->footprint_bytes = 0;
	return 0;
}

static int check_budget(const struct run_settings *settings, const struct machine_memory *memory,
			const struct run_plan *plan, struct message *message)
{
	uint64_t held = plan->footprint_bytes;
	char held_text[32], available_text[32];

	if (plan->memcg) {
		if (plan->limit_bytes > memory->available_bytes && !settings->force)
			return message_set(
				message, -ENOMEM,
				"--limit %s is more than the %s that this machine has "
				"available: lower it, or --force",
				format_size(plan->limit_bytes, held_text, sizeof(held_text)),
				format_size(memory->available_bytes, available_text,
					    sizeof(available_text)));
		return 0;
	}
	for (size_t i = 0; i < plan->load_count; i++)
		if (plan->loads[i].ops->flags & (LOAD_HOLDS_BUFFERS | LOAD_HOLDS_MEMORY))
			held += plan->loads[i].budget_bytes;
	if (held > memory->available_bytes && !settings->force)
		return message_set(message, -ENOMEM,
				   "the loads would hold %s of the %s that this machine has "
				   "available: lower them, use --scope memcg, or --force",
				   format_size(held, held_text, sizeof(held_text)),
				   format_size(memory->available_bytes, available_text,
					       sizeof(available_text)));
	return 0;
}

/*
 * Sampling threads are memory that is locked, and tasks: a quarter of what the machine has of
 * either is left as the most, so that the rest of it goes on.
 */
static int check_threads(const struct run_settings *settings, const struct machine_memory *memory,
			 struct message *message)
{
	static const char *const limits[] = {"/proc/sys/kernel/pid_max",
					     "/proc/sys/kernel/threads-max"};
	uint64_t most = memory->available_bytes / 4 / THREAD_MOST_BYTES;
	const char *what = "the memory that is available";

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		int64_t tasks;

		if (machine_read_int64(limits[i], &tasks) < 0 || (uint64_t)tasks / 4 >= most)
			continue;
		most = (uint64_t)tasks / 4;
		what = limits[i];
	}
	/* One a CPU is always right: it is what nobody had to ask for. */
	if (settings->threads <= settings->cpus.count || settings->threads <= most)
		return 0;
	return message_set(message, -ENOTSUP,
			   "--threads %u: a quarter of %s is enough for %llu: give no more",
			   settings->threads, what, (unsigned long long)most);
}

static void decide_swap(const struct run_settings *settings, const struct machine_memory *memory,
			struct run_plan *plan)
{
	uint64_t traffic = 0;

	if (settings->swap == SWAP_ZRAM) {
		plan->swap_bytes = size_resolve(&settings->swap_size, memory->total_bytes);
		return;
	}
	if (settings->swap == SWAP_NONE || settings->pure_drop_in)
		return;
	for (size_t i = 0; i < plan->load_count; i++)
		if (plan->loads[i].ops->flags & LOAD_NEEDS_SWAP)
			traffic += plan->loads[i].budget_bytes;
	/* Twice the traffic: what the others push out has room too. */
	if (traffic > 0 && memory->swap_free_bytes < traffic)
		plan->swap_bytes = 2 * traffic;
}

int run_plan_make(const struct run_settings *settings, const struct machine_memory *memory,
		  struct run_plan *ret_plan, struct record *record, struct message *message)
{
	struct run_plan plan = {0};
	int error = decide_limit(settings, memory, &plan, message);

	if (!error)
		error = decide_footprint(settings, memory, &plan, message);
	if (!error)
		error = decide_loads(settings, memory, &plan, message);
	if (!error)
		error = lower_for_baseline(settings, &plan, record, message);
	if (!error)
		error = check_budget(settings, memory, &plan, message);
	if (!error)
		error = check_threads(settings, memory, message);
	if (error)
		return error;
	decide_swap(settings, memory, &plan);
	*ret_plan = plan;
	return 0;
}
