/* SPDX-License-Identifier: MIT */
/*
 * The template of a load: does nothing to the memory, keeps its rate, stops when asked. It also
 * shows what the harness itself costs beside a load.
 */
#include "base/pace.h"
#include "ops.h"

static int null_run(struct load *load)
{
	struct load_shared *shared = load->shared;
	/* An operation is a sleep, so that an unpaced null load does not spin. */
	double rate_per_s = load->settings.rate_per_s > 0 ? load->settings.rate_per_s : 1000;
	struct pace pace;

	pace_start(&pace, rate_per_s);
	atomic_store(&shared->state, LOAD_STEADY);
	while (pace_wait(&pace, &shared->stop))
		atomic_fetch_add_explicit(&shared->ops, 1, memory_order_relaxed);
	return 0;
}

static const char *const null_extras[] = {NULL};
static const struct claim null_claims[] = {{.name = NULL}};

const struct load_ops load_null = {
	.name = "null",
	.summary = "nothing: wakes 1000 times a second (or at --load-rate), touches no memory",
	.flags = LOAD_IDLES,
	.extra_names = null_extras,
	.claims = null_claims,
	.run = null_run,
};
