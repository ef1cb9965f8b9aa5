/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/random.h"
#include "pin_cycle/state.h"

#define ROUNDS_LEAST 7	 /* an interval of the median at 95% needs 6 */
#define ROUNDS_MOST 1000 /* enough for p99 of small buffers */
/* A turn that takes longer is given up: so much, and as much again for each GiB. */
#define TURN_MOST_NS (60 * NS_PER_S)
#define GIB (UINT64_C(1) << 30)

static const char *const phase_names[PHASES] = {"allocate", "populate", "pin", "release",
						"reclaim"};

/* What this round's turn of each worker took. */
struct round {
	struct pin_turn turns[WORKERS_MOST];
	bool done[WORKERS_MOST];
};

struct size_of_buffer {
	const char *prefix;
	char text[32];
	double pages;
	bool reclaim; /* only what reclaim costs is taken */
};

static void show_progress(const struct pin_cycle *cycle, const struct size_of_buffer *size,
			  unsigned int round)
{
	char text[160];

	if (!cycle->settings->progress)
		return;
	snprintf(text, sizeof(text), "%s%s, round %u", size->prefix, size->text, round);
	cycle->settings->progress(cycle->settings->progress_data, text);
}

/* What @phase cost by @label's way, by the clock and in processor time. */
static void put(struct pin_cycle *cycle, const struct size_of_buffer *size, int phase,
		const char *label, double ns, double cpu_ns)
{
	for (int cpu = 0; cpu <= 1; cpu++) {
		char name[128], title[160];
		struct metric_kind kind = {name, title, "ns", false};

		snprintf(name, sizeof(name), "%s%s_%s_%s_page_%sns", size->prefix,
			 phase_names[phase], label, size->text, cpu ? "cpu_" : "");
		snprintf(title, sizeof(title), "%s%s of %s, %s a page", size->prefix,
			 phase_names[phase], size->text, cpu ? "processor time" : "time");
		for (char *at = title; *at; at++)
			if (*at == '_')
				*at = ' ';
		metric_table_add(&cycle->metrics, &kind, (cpu ? cpu_ns : ns) / size->pages);
	}
}

static void put_turn(struct pin_cycle *cycle, const struct size_of_buffer *size,
		     const struct pin_worker *worker, const struct pin_turn *turn)
{
	if (size->reclaim && turn->ns[PHASE_RECLAIM] >= 0)
		put(cycle, size, PHASE_RECLAIM, worker->label, (double)turn->ns[PHASE_RECLAIM],
		    (double)turn->cpu_ns[PHASE_RECLAIM]);
	for (int phase = 0; phase < BUFFER_PHASES && !size->reclaim; phase++)
		/* Not every way has every phase: the baseline pins nothing. */
		if (phase != BUFFER_PIN || worker->variant != VARIANT_BASELINE)
			put(cycle, size, phase, worker->label,
			    fmax(0, (double)turn->ns[phase] - cycle->clock_cost_ns),
			    (double)turn->cpu_ns[phase]);
}

static const struct pin_turn *turn_of(const struct pin_cycle *cycle, const struct round *round,
				      const char *label)
{
	for (size_t i = 0; i < cycle->worker_count; i++)
		if (round->done[i] && strcmp(cycle->workers[i].label, label) == 0)
			return &round->turns[i];
	return NULL;
}

/* What one way costs more than another, from the two turns of one round. Processor time too: what a
 * neighbour takes of the CPU meanwhile is not in it. */
static void put_difference(struct pin_cycle *cycle, const struct size_of_buffer *size,
			   const struct round *round, const char *one, const char *other)
{
	const struct pin_turn *a = turn_of(cycle, round, one), *b = turn_of(cycle, round, other);
	int phase = size->reclaim ? PHASE_RECLAIM : BUFFER_RELEASE;
	char label[72];

	if (!a || !b || a->ns[phase] < 0 || b->ns[phase] < 0)
		return;
	snprintf(label, sizeof(label), "%s_over_%s", one, other);
	put(cycle, size, phase, label, (double)(a->ns[phase] - b->ns[phase]),
	    (double)(a->cpu_ns[phase] - b->cpu_ns[phase]));
}

/* One turn of every worker, in an order drawn anew. @message: why the last one that failed did. */
static int take_round(struct pin_cycle *cycle, struct random *random, uint64_t bytes, bool reclaim,
		      struct round *round, struct message *message)
{
	int64_t most_ns = TURN_MOST_NS + (int64_t)(bytes / GIB) * TURN_MOST_NS;
	size_t order[WORKERS_MOST];
	int error = 0;

	*round = (struct round){0};
	for (size_t i = 0; i < cycle->worker_count; i++)
		order[i] = i;
	random_shuffle(random, order, cycle->worker_count);
	for (size_t k = 0; k < cycle->worker_count && error != -EINTR; k++) {
		struct pin_worker *worker = &cycle->workers[order[k]];
		struct message why = {""};

		if (worker->gone)
			continue;
		error = pin_worker_turn(worker, bytes, reclaim, most_ns,
					cycle->settings->interrupted, &round->turns[order[k]],
					&why);
		if (error == -EINTR)
			break;
		round->done[order[k]] = error == 0;
		if (error) {
			worker->gone = true;
			record_note(cycle->record, "%s: n/a from here on: %s", worker->label,
				    why.text);
			message_set(message, -ENOTSUP, "no way of holding pages works (%s: %s)",
				    worker->label, why.text);
		}
	}
	return error == -EINTR ? error : 0;
}

static bool any_left(const struct pin_cycle *cycle)
{
	for (size_t i = 0; i < cycle->worker_count; i++)
		if (!cycle->workers[i].gone)
			return true;
	return false;
}

/* On a busy machine a size may take half as much time again, for the rounds that an interval needs;
 * not more, or the whole would take a multiple of what was asked for. */
static bool enough_rounds(unsigned int rounds, int64_t end_ns, int64_t time_ns)
{
	int64_t now_ns = clock_now_ns();

	if (rounds > ROUNDS_MOST)
		return true;
	return rounds > 1 && now_ns > (rounds > ROUNDS_LEAST ? end_ns : end_ns + time_ns / 2);
}

int pin_cycle_rounds(struct pin_cycle *cycle, const char *prefix, uint64_t bytes, bool reclaim,
		     int64_t time_ns, struct message *message)
{
	unsigned int asked = cycle->settings->rounds;
	struct size_of_buffer size = {
		.prefix = prefix,
		.pages = (double)bytes / (double)cycle->page_bytes,
		.reclaim = reclaim,
	};
	int64_t end_ns = clock_now_ns() + time_ns;
	struct random random;
	struct round round;

	format_size(bytes, size.text, sizeof(size.text));
	random_seed(&random, random_fresh_seed());
	for (unsigned int i = 0; asked ? i <= asked : !enough_rounds(i, end_ns, time_ns); i++) {
		int error;

		show_progress(cycle, &size, i);
		error = take_round(cycle, &random, bytes, reclaim, &round, message);
		if (error)
			return error;
		if (!any_left(cycle))
			return -ENOTSUP; /* why is in the message */
		if (i == 0)
			continue; /* each process met cold caches of its own code */
		for (size_t k = 0; k < cycle->worker_count; k++)
			if (round.done[k] && ++cycle->workers[k].turns)
				put_turn(cycle, &size, &cycle->workers[k], &round.turns[k]);
		put_difference(cycle, &size, &round, "mapping", "stock");
		put_difference(cycle, &size, &round, "mapping", "mlock");
		put_difference(cycle, &size, &round, "stock", "baseline");
	}
	return 0;
}
