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

static const char *const phase_names[BUFFER_PHASES] = {"allocate", "populate", "pin", "release"};

/* What this round's turn of each lane took. */
struct round {
	struct pin_turn turns[LANES_MOST];
	bool done[LANES_MOST];
};

struct size_of_buffer {
	const char *prefix;
	char text[32];
	double pages;
};

static void put(struct pin_cycle *cycle, const struct size_of_buffer *size, const char *what,
		const char *lane, const char *unit_name, double ns)
{
	char name[128], title[160];
	struct metric_kind kind = {name, title, "ns", false};

	snprintf(name, sizeof(name), "%s%s_%s_%s_%s", size->prefix, what, lane, size->text,
		 unit_name);
	snprintf(title, sizeof(title), "%s%s of %s, %s a page", size->prefix, what, size->text,
		 strstr(unit_name, "cpu") ? "processor time" : "time");
	for (char *at = title; *at; at++)
		if (*at == '_')
			*at = ' ';
	metric_table_add(&cycle->metrics, &kind, ns / size->pages);
}

static void put_turn(struct pin_cycle *cycle, const struct size_of_buffer *size,
		     const struct pin_lane *lane, const struct pin_turn *turn, bool pageout)
{
	if (pageout) {
		if (turn->pageout_ns >= 0) {
			put(cycle, size, "reclaim", lane->label, "page_ns",
			    (double)turn->pageout_ns);
			put(cycle, size, "reclaim", lane->label, "page_cpu_ns",
			    (double)turn->pageout_cpu_ns);
		}
		return;
	}
	for (int phase = 0; phase < BUFFER_PHASES; phase++) {
		/* Not every way has every phase: the baseline pins nothing. */
		if (phase == BUFFER_PIN && lane->variant == VARIANT_BASELINE)
			continue;
		put(cycle, size, phase_names[phase], lane->label, "page_ns",
		    fmax(0, (double)turn->phase_ns[phase] - cycle->clock_cost_ns));
		put(cycle, size, phase_names[phase], lane->label, "page_cpu_ns",
		    (double)turn->phase_cpu_ns[phase]);
	}
}

static const struct pin_turn *turn_of(const struct pin_cycle *cycle, const struct round *round,
				      const char *label)
{
	for (size_t i = 0; i < cycle->lane_count; i++)
		if (round->done[i] && strcmp(cycle->lanes[i].label, label) == 0)
			return &round->turns[i];
	return NULL;
}

/* What one way costs more than another, from the two turns of one round. */
static void put_difference(struct pin_cycle *cycle, const struct size_of_buffer *size,
			   const struct round *round, const char *one, const char *other,
			   bool pageout)
{
	const struct pin_turn *a = turn_of(cycle, round, one), *b = turn_of(cycle, round, other);
	char lanes[72];

	if (!a || !b)
		return;
	snprintf(lanes, sizeof(lanes), "%s_over_%s", one, other);
	if (pageout && (a->pageout_ns < 0 || b->pageout_ns < 0))
		return;
	put(cycle, size, pageout ? "reclaim" : "release", lanes, "page_ns",
	    pageout ? (double)(a->pageout_ns - b->pageout_ns)
		    : (double)(a->phase_ns[BUFFER_RELEASE] - b->phase_ns[BUFFER_RELEASE]));
	/* What a neighbour takes of the CPU meanwhile is not in the processor time. */
	put(cycle, size, pageout ? "reclaim" : "release", lanes, "page_cpu_ns",
	    pageout ? (double)(a->pageout_cpu_ns - b->pageout_cpu_ns)
		    : (double)(a->phase_cpu_ns[BUFFER_RELEASE] - b->phase_cpu_ns[BUFFER_RELEASE]));
}

/* One turn of every lane, in an order drawn anew. @message: why the last lane that failed did. */
static int take_round(struct pin_cycle *cycle, struct random *random, uint64_t bytes, bool pageout,
		      struct round *round, struct message *message)
{
	int64_t most_ns = TURN_MOST_NS + (int64_t)(bytes / GIB) * TURN_MOST_NS;
	size_t order[LANES_MOST];
	int error = 0;

	*round = (struct round){0};
	for (size_t i = 0; i < cycle->lane_count; i++)
		order[i] = i;
	random_shuffle(random, order, cycle->lane_count);
	for (size_t k = 0; k < cycle->lane_count && error != -EINTR; k++) {
		struct pin_lane *lane = &cycle->lanes[order[k]];
		struct message why = {""};

		if (lane->gone)
			continue;
		error = pin_worker_turn(&lane->worker, bytes, pageout, most_ns,
					cycle->settings->interrupted, &round->turns[order[k]],
					&why);
		if (error == -EINTR)
			break;
		round->done[order[k]] = error == 0;
		if (error) {
			lane->gone = true;
			record_note(cycle->record, "%s: n/a from here on: %s", lane->label,
				    why.text);
			message_set(message, -ENOTSUP, "no way of holding pages works (%s: %s)",
				    lane->label, why.text);
		}
	}
	return error == -EINTR ? error : 0;
}

static bool any_left(const struct pin_cycle *cycle)
{
	for (size_t i = 0; i < cycle->lane_count; i++)
		if (!cycle->lanes[i].gone)
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

int pin_cycle_rounds(struct pin_cycle *cycle, const char *prefix, uint64_t bytes, bool pageout,
		     int64_t time_ns, struct message *message)
{
	unsigned int asked = cycle->settings->rounds;
	struct size_of_buffer size = {
		.prefix = prefix,
		.pages = (double)bytes / (double)cycle->page_bytes,
	};
	int64_t end_ns = clock_now_ns() + time_ns;
	struct random random;
	struct round round;

	format_size(bytes, size.text, sizeof(size.text));
	random_seed(&random, random_fresh_seed());
	/* The first turn of each process meets cold caches of its own code: not counted. */
	for (unsigned int i = 0;; i++) {
		bool counts = i > 0;
		int error;

		if (asked ? i > asked : enough_rounds(i, end_ns, time_ns))
			return 0;
		pin_cycle_progress(cycle, "%s%s, round %u", prefix, size.text, i);
		error = take_round(cycle, &random, bytes, pageout, &round, message);
		if (error)
			return error;
		if (!any_left(cycle))
			return -ENOTSUP; /* why is in the message */
		for (size_t k = 0; k < cycle->lane_count && counts; k++)
			if (round.done[k] && ++cycle->lanes[k].turns)
				put_turn(cycle, &size, &cycle->lanes[k], &round.turns[k], pageout);
		if (!counts)
			continue;
		put_difference(cycle, &size, &round, "mapping", "stock", pageout);
		put_difference(cycle, &size, &round, "mapping", "mlock", pageout);
		put_difference(cycle, &size, &round, "stock", "baseline", pageout);
	}
}
