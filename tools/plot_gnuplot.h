/* SPDX-License-Identifier: MIT */
#ifndef PLOT_GNUPLOT_H
#define PLOT_GNUPLOT_H

#include <stdio.h>

#include "base/message.h"

/*
 * A picture made by gnuplot: PATH.svg or PATH.png, with PATH.gp and PATH.dat beside it, so that
 * users can change them and run gnuplot again.
 */
struct picture {
	char *base;	  /* path without its ending */
	const char *kind; /* "svg", "png" */
	FILE *script, *data;
	char *script_text, *data_text;
	size_t script_size, data_size;
};

/* @path ends in .svg or .png: -EINVAL else. Opens script and data as memory. */
int picture_open(const char *path, int width, int height, struct picture *picture,
		 struct message *message);
/* Writes both files and runs gnuplot. -ENOTSUP: gnuplot is not installed. Closes in any case. */
int picture_finish(struct picture *picture, struct message *message);
void picture_discard(struct picture *picture);

/* Text as a string of gnuplot, in double quotes, without its own markup. */
void picture_string(FILE *stream, const char *text);

#endif
