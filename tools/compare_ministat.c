/* SPDX-License-Identifier: MIT */
#include "compare_ministat.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "record/record.h"

#define SETS_MAX 7
#define VALUES_LEAST 3 /* with fewer ministat ends, and says nothing of the other sets */

/* The confidence levels that ministat knows; the nearest that claims no more than was asked for. */
static const char *confidence_of(double alpha)
{
	static const struct {
		double alpha;
		const char *text;
	} known[] = {{0.01, "99"}, {0.02, "98"}, {0.05, "95"}, {0.1, "90"}, {0.2, "80"}};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (alpha <= known[i].alpha * 1.0000001)
			return known[i].text;
	return "80";
}

struct ministat {
	char folder[64];
	char *files[SETS_MAX]; /* to be removed when @made */
	bool made[SETS_MAX];
	size_t count;
};

/* "baseline-mean.txt", as in the folder of an experiment; '/' of a longer name becomes '_'. */
static char *file_name(const struct ministat *ministat, const char *arm, const char *metric)
{
	size_t prefix = strlen(ministat->folder) + 1;
	char *name;

	if (asprintf(&name, "%s/%s-%s.txt", ministat->folder, arm, metric) < 0)
		return NULL;
	for (char *at = name + prefix; *at; at++)
		if (*at == '/')
			*at = '_';
	return name;
}

/* *ret_count: how many were written. */
static int write_values(const char *path, const struct arm *arm, const char *metric,
			const struct comparison_options *options, size_t *ret_count)
{
	FILE *stream = fopen(path, "wxe");
	size_t count = arm->value_count;
	int error = 0;

	if (!stream)
		return -errno;
	for (size_t i = 0; i < arm->value_count; i++)
		fprintf(stream, "%.17g\n", arm->values[i]);
	for (size_t i = 0; i < arm->record_count; i++) {
		const char *unit;
		double value;

		if (comparison_takes(arm->records[i], options) &&
		    record_metric(arm->records[i], metric, &value, &unit) == 0 && isfinite(value)) {
			fprintf(stream, "%.15g\n", value);
			count++;
		}
	}
	if (ferror(stream))
		error = -EIO;
	if (fclose(stream) != 0)
		error = -errno;
	*ret_count = count;
	return error;
}

static void drop_set(struct ministat *ministat, size_t index)
{
	if (ministat->made[index])
		unlink(ministat->files[index]);
	free(ministat->files[index]);
	ministat->made[index] = false;
}

static void forget(struct ministat *ministat)
{
	while (ministat->count > 0)
		drop_set(ministat, --ministat->count);
}

/* A set of fewer values than ministat takes is told and left out. */
static int add_set(struct ministat *ministat, const struct compare_job *job, size_t index,
		   const char *metric, struct message *message)
{
	const struct arm *arm = &job->set->arms[index];
	const struct arm_source *source = &job->set->sources[arm->source];
	struct comparison_options options;
	size_t at = ministat->count, values = arm->value_count;
	int error = 0;

	compare_job_options(job, &options);
	if (source->plain && strcmp(source->path, "-") != 0 && job->settings.column == 1) {
		ministat->files[at] = strdup(source->path);
	} else {
		ministat->files[at] = file_name(ministat, arm->name, metric);
		ministat->made[at] = true;
	}
	if (!ministat->files[at])
		return -ENOMEM;
	ministat->count++;
	if (ministat->made[at])
		error = write_values(ministat->files[at], arm, metric, &options, &values);
	if (!error && values < VALUES_LEAST) {
		printf("%s, %s: left out, ministat takes no set of fewer than %d values (here %zu)\n",
		       arm->name, metric, VALUES_LEAST, values);
		drop_set(ministat, --ministat->count);
	}
	return error ? message_set_errno(message, error, "%s", ministat->files[at]) : 0;
}

static bool all_made(const struct ministat *ministat)
{
	for (size_t i = 0; i < ministat->count; i++)
		if (!ministat->made[i])
			return false;
	return true;
}

static void become_ministat(const struct ministat *ministat, double alpha, size_t width)
{
	char columns[32];
	char *argv[SETS_MAX + 6] = {(char[]){"ministat"}, (char[]){"-c"},
				    strdup(confidence_of(alpha)), (char[]){"-w"}, columns};

	snprintf(columns, sizeof(columns), "%zu",
		 width < 24 ? 22 : width - 2); /* its frame is not counted */
	/* Files of our making are named as the seed's mail names them, without the temporary
	 * folder. */
	if (all_made(ministat) && chdir(ministat->folder) < 0)
		_exit(126);
	for (size_t i = 0; i < ministat->count; i++)
		argv[5 + i] = all_made(ministat) ? strrchr(ministat->files[i], '/') + 1
						 : ministat->files[i];
	execvp(argv[0], argv);
	_exit(errno == ENOENT ? 127 : 126);
}

static int run_once(const struct ministat *ministat, double alpha, size_t width,
		    struct message *message)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return message_set_errno(message, -errno, "fork");
	if (pid == 0)
		become_ministat(ministat, alpha, width);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return message_set_errno(message, -errno, "ministat");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return message_set(message, -ENOTSUP,
				   "ministat is not installed (Debian: apt install ministat)");
	if (WIFSIGNALED(status))
		return message_set(message, -EIO, "ministat died of signal %d on these values",
				   WTERMSIG(status));
	return message_set(message, -EIO, "ministat ended with status %d", WEXITSTATUS(status));
}

int ministat_run(const struct compare_job *job, size_t width, struct message *message)
{
	const struct arm_set *set = job->set;
	const char *base = getenv("TMPDIR");
	struct ministat ministat = {.count = 0};
	int error = 0;

	if (set->count > SETS_MAX)
		return message_set(message, -ENOTSUP,
				   "ministat takes at most %d sets, here are %zu", SETS_MAX,
				   set->count);
	if (snprintf(ministat.folder, sizeof(ministat.folder), "%s/syslat-compare.XXXXXX",
		     base && strlen(base) < 36 ? base : "/tmp") < 0 ||
	    !mkdtemp(ministat.folder))
		return message_set_errno(message, -errno, "%s", ministat.folder);
	for (size_t i = 0; i < job->metrics.count && !error; i++) {
		for (size_t arm = 0; arm < set->count && !error; arm++)
			error = add_set(&ministat, job, arm, job->metrics.names[i], message);
		if (!error && ministat.count > 0)
			error = run_once(&ministat, job->settings.alpha_share, width, message);
		forget(&ministat);
	}
	rmdir(ministat.folder);
	return error;
}
