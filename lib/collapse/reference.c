/* SPDX-License-Identifier: MIT */
/*
 * Work of the kernel that is the same on every turn, timed beside each row: where the runs of a row
 * differ and this differs as much, it is the machine that changed its speed. A call that clears one
 * small page again and again, because that is what a call of MADV_COLLAPSE over huge memory mostly
 * does, and because it shows best when another thread (a neighbour's, on another virtual machine)
 * runs on the same core: such calls take a third longer, where a call that does nothing takes a
 * tenth more.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "collapse/state.h"

#define SAMPLES_MOST 200000
#define CLEARED_BYTES 4096
#define CLEARED_TIMES 64
#define UNTIMED_CALLS 3 /* whoever slept or did something else comes back to cold caches */

int collapse_reference_open(struct collapse *collapse)
{
	collapse->zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	return collapse_samples_make(&collapse->reference, SAMPLES_MOST);
}

void collapse_reference_close(struct collapse *collapse)
{
	if (collapse->zeros >= 0)
		close(collapse->zeros);
	collapse->zeros = -1;
	collapse_samples_free(&collapse->reference);
}

void collapse_reference_time(struct collapse *collapse, unsigned int calls)
{
	static char page[CLEARED_BYTES] __attribute__((aligned(CLEARED_BYTES)));
	struct iovec ranges[CLEARED_TIMES];

	for (size_t i = 0; i < CLEARED_TIMES; i++)
		ranges[i] = (struct iovec){page, sizeof(page)};
	for (unsigned int i = 0; i < UNTIMED_CALLS + calls; i++) {
		int64_t begin_ns = clock_now_ns();

		if (readv(collapse->zeros, ranges, CLEARED_TIMES) < 0)
			return;
		if (i >= UNTIMED_CALLS)
			collapse_samples_add(collapse, &collapse->reference, begin_ns);
	}
}

void collapse_reference_put(struct collapse *collapse)
{
	struct collapse_samples *samples = &collapse->reference;
	double fast_ns;

	collapse_samples_sort(samples);
	collapse->prefix[0] = '\0';
	fast_ns = collapse_samples_at(samples, 0.01);
	if (samples->count > 0)
		collapse_put(collapse, REFERENCE_METRIC, "ns", collapse_samples_at(samples, 0.5),
			     "fixed work beside (reading %d zero pages), p50", CLEARED_TIMES);
	if (isfinite(fast_ns)) /* a short window has too few for it */
		collapse_put(collapse, REFERENCE_FAST_METRIC, "ns", fast_ns,
			     "fixed work beside, p1");
	samples->count = 0;
}
