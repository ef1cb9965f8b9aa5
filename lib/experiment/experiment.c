/* SPDX-License-Identifier: MIT */
#include "experiment/experiment.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"

#define ARM_NAME_LENGTH 64
#define ARMS_MAX 64
#define ORDER_MAX (1 << 20) /* runs planned in all */

/* Characters that mean something to a shell: a line that holds one is not ours to split. */
#define SHELL_CHARACTERS "|&;<>()$`\\\"'*?[]#~{}!\n"

struct experiment *experiment_new(const char *name)
{
	struct experiment *experiment = calloc(1, sizeof(*experiment));

	if (!experiment)
		return NULL;
	clock_rfc3339(experiment->created, sizeof(experiment->created));
	experiment->name = strdup(name);
	experiment->working_directory = getcwd(NULL, 0);
	experiment->looks = json_array();
	experiment->stopping.alpha = 0.01;
	experiment->stopping.min_effect = 0.05;
	if (!experiment->name || !experiment->working_directory || !experiment->looks) {
		experiment_free(experiment);
		return NULL;
	}
	return experiment;
}

static void arm_free(struct experiment_arm *arm)
{
	free(arm->name);
	for (char **word = arm->argv; word && *word; word++)
		free(*word);
	free(arm->argv);
	free(arm->kernel);
	free(arm->decision);
}

void experiment_free(struct experiment *experiment)
{
	if (!experiment)
		return;
	for (size_t i = 0; i < experiment->arm_count; i++)
		arm_free(&experiment->arms[i]);
	free(experiment->arms);
	free(experiment->name);
	free(experiment->working_directory);
	free(experiment->order);
	free(experiment->unit);
	free(experiment->stopping.metric);
	free(experiment->stopped);
	json_decref(experiment->host);
	json_decref(experiment->looks);
	free(experiment);
}

int experiment_check_arm_name(const char *name, struct message *message)
{
	size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789._+-");

	if (!*name)
		return message_set(message, -EINVAL, "an arm has no name: give NAME=COMMAND");
	if (name[good] || name[0] == '.' || name[0] == '-')
		return message_set(
			message, -EINVAL,
			"arm name \"%.80s\" cannot be used: it names files, so give "
			"letters, digits, '.', '_', '+', '-' and begin with none of '.', "
			"'-'",
			name);
	if (good > ARM_NAME_LENGTH)
		return message_set(message, -EINVAL,
				   "arm name \"%.20s...\" has %zu characters: at most %d", name,
				   good, ARM_NAME_LENGTH);
	return 0;
}

int experiment_find_arm(const struct experiment *experiment, const char *name)
{
	for (size_t i = 0; i < experiment->arm_count; i++)
		if (strcmp(experiment->arms[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}

static bool executable_file(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static bool command_exists(const char *program)
{
	char path[PATH_MAX];
	const char *step = getenv("PATH");
	int length;

	if (strchr(program, '/'))
		return executable_file(program);
	for (step = step ? step : "/usr/bin:/bin"; *step; step += *step == ':') {
		size_t size = strcspn(step, ":");

		length = snprintf(path, sizeof(path), "%.*s/%s", size ? (int)size : 1,
				  size ? step : ".", program);
		step += size;
		if (length > 0 && (size_t)length < sizeof(path) && executable_file(path))
			return true;
	}
	return false;
}

/* Room for one more arm; the name is checked and taken. */
static int arm_begin(struct experiment *experiment, const char *name,
		     struct experiment_arm **ret_arm, struct message *message)
{
	struct experiment_arm *arms;
	int error = experiment_check_arm_name(name, message);

	if (error)
		return error;
	if (experiment_find_arm(experiment, name) >= 0)
		return message_set(message, -EINVAL, "arm \"%s\" is given twice: name each once",
				   name);
	if (experiment->arm_count == ARMS_MAX)
		return message_set(message, -EINVAL, "more than %d arms", ARMS_MAX);
	arms = realloc(experiment->arms, (experiment->arm_count + 1) * sizeof(*arms));
	if (!arms)
		return message_set_errno(message, -ENOMEM, "arm %s", name);
	experiment->arms = arms;
	memset(&arms[experiment->arm_count], 0, sizeof(*arms));
	arms[experiment->arm_count].name = strdup(name);
	if (!arms[experiment->arm_count].name)
		return message_set_errno(message, -ENOMEM, "arm %s", name);
	*ret_arm = &arms[experiment->arm_count++];
	return 0;
}

static int arm_append_word(struct experiment_arm *arm, size_t *count, const char *word, size_t size)
{
	char **argv = realloc(arm->argv, (*count + 2) * sizeof(*argv));

	if (!argv)
		return -ENOMEM;
	arm->argv = argv;
	argv[*count + 1] = NULL;
	argv[*count] = strndup(word, size);
	if (!argv[*count])
		return -ENOMEM;
	(*count)++;
	return 0;
}

static int arm_check_command(const struct experiment_arm *arm, struct message *message)
{
	if (!arm->argv || !arm->argv[0] || !arm->argv[0][0])
		return message_set(message, -EINVAL, "arm %s has no command", arm->name);
	if (!command_exists(arm->argv[0]))
		return message_set(message, -EINVAL,
				   "arm %s: command \"%.200s\" not found or not executable: give "
				   "its path or put it on PATH",
				   arm->name, arm->argv[0]);
	return 0;
}

int experiment_add_arm(struct experiment *experiment, const char *name, char *const *argv,
		       const char *variant, struct message *message)
{
	struct experiment_arm *arm;
	size_t count = 0;
	int error = arm_begin(experiment, name, &arm, message);

	if (error)
		return error;
	for (size_t i = 0; argv[i] && !error; i++)
		error = arm_append_word(arm, &count, argv[i], strlen(argv[i]));
	if (!error && variant)
		error = arm_append_word(arm, &count, "--variant", strlen("--variant"));
	if (!error && variant)
		error = arm_append_word(arm, &count, variant, strlen(variant));
	if (error)
		return message_set_errno(message, error, "arm %s", name);
	return arm_check_command(arm, message);
}

/* Does @text need /bin/sh? An '=' in the first word is an assignment. */
static bool needs_shell(const char *text)
{
	size_t first;

	if (text[strcspn(text, SHELL_CHARACTERS)])
		return true;
	text += strspn(text, " \t");
	first = strcspn(text, " \t");
	return memchr(text, '=', first) != NULL;
}

int experiment_add_arm_text(struct experiment *experiment, const char *name, const char *text,
			    struct message *message)
{
	struct experiment_arm *arm;
	size_t count = 0, size;
	int error = arm_begin(experiment, name, &arm, message);

	if (error)
		return error;
	arm->shell = needs_shell(text);
	if (arm->shell) {
		error = arm_append_word(arm, &count, "/bin/sh", strlen("/bin/sh"));
		if (!error)
			error = arm_append_word(arm, &count, "-c", 2);
		if (!error)
			error = arm_append_word(arm, &count, text, strlen(text));
	} else {
		for (text += strspn(text, " \t"); *text && !error; text += strspn(text, " \t")) {
			size = strcspn(text, " \t");
			error = arm_append_word(arm, &count, text, size);
			text += size;
		}
	}
	if (error)
		return message_set_errno(message, error, "arm %s", name);
	return arm_check_command(arm, message);
}

int experiment_set_kernel(struct experiment *experiment, const char *name, const char *release,
			  struct message *message)
{
	int arm = experiment_find_arm(experiment, name);

	if (arm < 0)
		return message_set(message, -EINVAL, "--arm-kernel: no arm is called \"%.80s\"",
				   name);
	if (!*release)
		return message_set(message, -EINVAL,
				   "--arm-kernel %s: give the release as uname -r prints it", name);
	free(experiment->arms[arm].kernel);
	experiment->arms[arm].kernel = strdup(release);
	return experiment->arms[arm].kernel ? 0 : -ENOMEM;
}

int experiment_make_order(struct experiment *experiment, struct message *message)
{
	int64_t blocks = experiment->warm_up_runs + experiment->blocks;
	size_t arms = experiment->arm_count;
	struct random random;
	size_t *order;

	if (arms == 0)
		return message_set(message, -EINVAL, "nothing to run: give a command or --arm");
	if (experiment->blocks < 1)
		return message_set(message, -EINVAL, "at least one block (--reps) is needed");
	if (blocks > (int64_t)(ORDER_MAX / arms))
		return message_set(message, -EINVAL, "more than %d runs in all", ORDER_MAX);
	order = calloc((size_t)blocks * arms, sizeof(*order));
	if (!order)
		return message_set_errno(message, -ENOMEM, "order of the runs");
	random_seed(&random, experiment->seed);
	for (int64_t block = 0; block < blocks; block++) {
		size_t *place = order + (size_t)block * arms;

		for (size_t i = 0; i < arms; i++)
			place[i] = i;
		random_shuffle(&random, place, arms);
	}
	free(experiment->order);
	experiment->order = order;
	return 0;
}

size_t experiment_arm_at(const struct experiment *experiment, int64_t block, size_t position)
{
	size_t row = (size_t)(block + experiment->warm_up_runs - 1);

	return experiment->order[row * experiment->arm_count + position];
}
