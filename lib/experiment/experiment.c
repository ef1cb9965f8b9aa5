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
	struct experiment_arm *arm = &experiment->arms[experiment->arm_count];
	int error = experiment_check_arm_name(name, message);

	if (error)
		return error;
	if (experiment_find_arm(experiment, name) >= 0)
		return message_set(message, -EINVAL, "arm \"%s\" is given twice: name each once",
				   name);
	if (experiment->arm_count == EXPERIMENT_ARMS_MOST)
		return message_set(message, -EINVAL, "more than %d arms", EXPERIMENT_ARMS_MOST);
	*arm = (struct experiment_arm){.name = strdup(name)};
	if (!arm->name)
		return message_set_errno(message, -ENOMEM, "arm %s", name);
	experiment->arm_count++;
	*ret_arm = arm;
	return 0;
}

static int append_word(struct experiment_arm *arm, const char *word, size_t size)
{
	size_t count = 0;
	char **argv;

	while (arm->argv && arm->argv[count])
		count++;
	argv = reallocarray(arm->argv, count + 2, sizeof(*argv));
	if (!argv)
		return -ENOMEM;
	arm->argv = argv;
	argv[count] = strndup(word, size);
	argv[count + 1] = NULL;
	return argv[count] ? 0 : -ENOMEM;
}

static int append_words(struct experiment_arm *arm, char *const *words)
{
	int error = 0;

	for (; *words && !error; words++)
		error = append_word(arm, *words, strlen(*words));
	return error;
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
	char *const with_variant[] = {variant ? (char[]){"--variant"} : NULL, (char *)variant,
				      NULL};
	struct experiment_arm *arm;
	int error = arm_begin(experiment, name, &arm, message);

	if (error)
		return error;
	error = append_words(arm, argv);
	if (!error)
		error = append_words(arm, with_variant);
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
	char *const shell[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, (char *)text, NULL};
	struct experiment_arm *arm;
	int error = arm_begin(experiment, name, &arm, message);

	if (error)
		return error;
	arm->shell = needs_shell(text);
	if (arm->shell)
		error = append_words(arm, shell);
	for (size_t size; !arm->shell && !error && *(text += strspn(text, " \t")); text += size) {
		size = strcspn(text, " \t");
		error = append_word(arm, text, size);
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
	return experiment_set_text(&experiment->arms[arm].kernel, release);
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

size_t experiment_slot(const struct experiment *experiment, int64_t block, size_t position)
{
	return (size_t)(block + experiment->warm_up_runs - 1) * experiment->arm_count + position;
}

size_t experiment_arm_at(const struct experiment *experiment, int64_t block, size_t position)
{
	return experiment->order[experiment_slot(experiment, block, position)];
}

size_t experiment_slots(const struct experiment *experiment)
{
	return (size_t)(experiment->warm_up_runs + experiment->blocks) * experiment->arm_count;
}

int64_t experiment_block_of(const struct experiment *experiment, size_t slot)
{
	return (int64_t)(slot / experiment->arm_count) + 1 - experiment->warm_up_runs;
}

int experiment_set_text(char **text, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}
