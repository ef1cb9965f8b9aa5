/* SPDX-License-Identifier: MIT */
#include "plot_gnuplot.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

extern char **environ;

void picture_string(FILE *stream, const char *text)
{
	fputc('"', stream);
	for (; *text; text++) {
		if (strchr("\"\\", *text))
			fputc('\\', stream);
		fputc((unsigned char)*text < 0x20 || *text == '`' ? ' ' : *text, stream);
	}
	fputc('"', stream);
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The streams keep the addresses of their texts: the struct is filled where it stays. */
int picture_open(const char *path, int width, int height, struct picture *picture,
		 struct message *message)
{
	const char *dot = strrchr(file_name(path), '.');

	*picture = (struct picture){.base = NULL};
	if (!dot || dot == file_name(path) ||
	    (strcmp(dot, ".svg") != 0 && strcmp(dot, ".png") != 0))
		return message_set(message, -EINVAL,
				   "-o %s: a name that ends in .svg or .png is "
				   "wanted",
				   path);
	picture->kind = dot[1] == 's' ? "svg" : "png";
	picture->base = strndup(path, (size_t)(dot - path));
	picture->script = open_memstream(&picture->script_text, &picture->script_size);
	picture->data = open_memstream(&picture->data_text, &picture->data_size);
	if (!picture->base || !picture->script || !picture->data) {
		picture_discard(picture);
		return message_set_errno(message, -ENOMEM, "%s", path);
	}
	fprintf(picture->script,
		"# gnuplot %s.gp makes the picture anew\n"
		"set terminal %s size %d,%d%s noenhanced\nset output ",
		file_name(picture->base), picture->kind[0] == 's' ? "svg" : "pngcairo", width,
		height, picture->kind[0] == 's' ? " dynamic background \"white\"" : "");
	picture_string(picture->script, file_name(path));
	fputs("\nset grid\nset key outside bottom center horizontal\nset datafile missing \"nan\"\n"
	      "data = ",
	      picture->script);
	picture_string(picture->script, file_name(picture->base));
	fputs(".\".dat\"\n", picture->script);
	return 0;
}

void picture_discard(struct picture *picture)
{
	if (picture->script)
		fclose(picture->script);
	if (picture->data)
		fclose(picture->data);
	free(picture->script_text);
	free(picture->data_text);
	free(picture->base);
	*picture = (struct picture){.base = NULL};
}

static int write_file(const struct picture *picture, const char *ending, const char *text,
		      size_t size, struct message *message)
{
	char path[4096];
	int error;

	if (snprintf(path, sizeof(path), "%s.%s", picture->base, ending) >= (int)sizeof(path))
		return message_set_errno(message, -ENAMETOOLONG, "%s", picture->base);
	error = file_replace(path, text, size);
	return error ? message_set_errno(message, error, "%s", path) : 0;
}

/* In the picture's folder, so that script, data and picture can be moved together. */
static int run_gnuplot(const struct picture *picture, struct message *message)
{
	const char *name = file_name(picture->base);
	posix_spawn_file_actions_t actions;
	char folder[4096], script[4096];
	char *argv[] = {(char *)"gnuplot", script, NULL};
	int status, error;
	pid_t pid;

	snprintf(folder, sizeof(folder), "%.*s", (int)(name - picture->base), picture->base);
	snprintf(script, sizeof(script), "%s.gp", name);
	posix_spawn_file_actions_init(&actions);
	if (*folder)
		posix_spawn_file_actions_addchdir_np(&actions, folder);
	error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error == ENOENT)
		return message_set(message, -ENOTSUP,
				   "gnuplot is not installed (gnuplot-nox); %s.gp and %s.dat are "
				   "there",
				   picture->base, picture->base);
	if (error)
		return message_set_errno(message, -error, "gnuplot");
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return message_set_errno(message, -errno, "gnuplot");
	if (status != 0)
		return message_set(message, -EIO, "gnuplot failed on %s.gp", picture->base);
	return 0;
}

int picture_finish(struct picture *picture, struct message *message)
{
	int error = fclose(picture->script) || fclose(picture->data) ? -ENOMEM : 0;

	picture->script = picture->data = NULL;
	if (error)
		message_set_errno(message, error, "plot");
	if (!error)
		error = write_file(picture, "dat", picture->data_text, picture->data_size, message);
	if (!error)
		error = write_file(picture, "gp", picture->script_text, picture->script_size,
				   message);
	if (!error)
		error = run_gnuplot(picture, message);
	picture_discard(picture);
	return error;
}
