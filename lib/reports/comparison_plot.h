/* SPDX-License-Identifier: MIT */
#ifndef REPORTS_COMPARISON_PLOT_H
#define REPORTS_COMPARISON_PLOT_H

#include <stdio.h>

#include "compare/comparison.h"

/* Most arms of one plot; the first seven symbols are ministat's. */
#define PLOT_ARMS_MAX 16
#define PLOT_ROWS_MAX 40

char plot_symbol(size_t arm);

/*
 * Dots in the look of ministat (P.-H. Kamp, FreeBSD): one column of marks a bin of the axis, every
 * arm counted from the bottom line, a bar with median (M), mean (A) and one standard deviation to
 * both sides below. No mark is lost: where arms overlap, a cell of two arms shows '*', of three and
 * more arms a letter for each set of arms that meets, explained below the plot; when a column is
 * higher than PLOT_ROWS_MAX, a mark stands for several values (rounded up), and a line says for how
 * many.
 * @kind PLOT_AUTO takes the log axis when all values are positive and the greatest is at least
 * 100 times the least, and says so. A bar that ends outside of the axis shows '<' or '>'.
 * @width: columns with the frame, at least 24. -ENOMEM, -E2BIG (arms), -ERANGE: log without
 * positive values.
 */
int plot_write(FILE *stream, const struct comparison *comparison, enum comparison_plot kind,
	       size_t width);

#endif
