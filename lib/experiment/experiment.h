/* SPDX-License-Identifier: MIT */
#ifndef EXPERIMENT_EXPERIMENT_H
#define EXPERIMENT_EXPERIMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"

#define EXPERIMENT_SCHEMA "syslatency/experiment/1"
#define EXPERIMENT_ARMS_MOST 64

/* Seeds stay below 2^53, so that every JSON reader keeps them whole. */
#define EXPERIMENT_SEED_MAX ((INT64_C(1) << 53) - 1)

/* The plan of an experiment: what runs, in which order, and when it is enough. */

enum experiment_rule {
	RULE_FIXED,	    /* every block */
	RULE_UNTIL_DECIDED, /* looks at a pre-registered boundary (stats/sequential.h) */
	RULE_TARGET_CI,	    /* until every arm's median is known to +-target_ci */
};

struct experiment_stopping {
	enum experiment_rule rule;
	char *metric; /* name as record_metric() takes it; NULL: mean, or value of foreign commands
		       */
	size_t reference;  /* index of the arm that the others are compared with */
	double alpha;	   /* over all looks and pairs */
	double min_effect; /* 0.05: a ratio within 5% is no difference */
	double target_ci;  /* half width of the interval as a share of the median */
};

struct experiment_arm {
	char *name;	/* names files: letters, digits, '.', '_', '+', '-' */
	char **argv;	/* exec'd as it stands, NULL-terminated */
	bool shell;	/* argv is /bin/sh -c TEXT */
	char *kernel;	/* release (uname -r) that serves it; NULL: any */
	char *decision; /* NULL: runs on; else why it was dropped: "slower", "faster", "equivalent"
			 */
	int64_t decided_after; /* blocks */
};

struct experiment {
	char *name;
	char created[32];	 /* RFC 3339 */
	char *working_directory; /* of the commands */
	uint64_t seed;
	struct experiment_arm arms[EXPERIMENT_ARMS_MOST];
	size_t arm_count;
	int64_t blocks;	       /* planned; with a stopping rule: at most */
	int64_t warm_up_runs;  /* blocks that come before and are not compared */
	size_t *order;	       /* (warm_up_runs + blocks) x arm_count arm indices, warm-up first */
	char *unit;	       /* of a foreign command's value; NULL: none told */
	bool higher_is_better; /* of that value */
	int64_t timeout_ns;    /* of one run; 0: none */
	struct experiment_stopping stopping;
	json_t *host;  /* {"machine_key", "kernel", ...} */
	json_t *looks; /* array: what each look saw and decided */
	char *stopped; /* reason; NULL: not ended */
	bool rule_met; /* its stopping rule: nothing is missing any more */
};

struct experiment *experiment_new(const char *name); /* NULL without memory */
void experiment_free(struct experiment *experiment);

/* -EINVAL with the reason when @name cannot name an arm (and so a file). */
int experiment_check_arm_name(const char *name, struct message *message);

/*
 * Adds an arm that runs @argv (copied), with "--variant VARIANT" appended when @variant is not
 * NULL. -EINVAL: bad name, name taken, command not found or not executable.
 */
int experiment_add_arm(struct experiment *experiment, const char *name, char *const *argv,
		       const char *variant, struct message *message);

/*
 * Adds an arm from one line of text. It is split at blanks and exec'd; only a line that holds a
 * character of the shell (quotes, $, |, ;, redirections, wildcards, assignments...) is run by
 * /bin/sh -c.
 */
int experiment_add_arm_text(struct experiment *experiment, const char *name, const char *text,
			    struct message *message);

/* Index of the arm called @name, or -ENOENT. */
int experiment_find_arm(const struct experiment *experiment, const char *name);

/* The arm NAME is served by the kernel RELEASE alone. -EINVAL: no such arm. */
int experiment_set_kernel(struct experiment *experiment, const char *name, const char *release,
			  struct message *message);

/* Draws the order: every arm once in each block, blocks shuffled one by one from the seed. */
int experiment_make_order(struct experiment *experiment, struct message *message);

/* Index into experiment->order of position @position (0..arm_count-1) in block @block (1..blocks;
 * warm-up: -warm_up_runs+1..0), and the arm that stands there. */
size_t experiment_slot(const struct experiment *experiment, int64_t block, size_t position);
size_t experiment_arm_at(const struct experiment *experiment, int64_t block, size_t position);
/* How many slots there are, warm-up included, and the block of one. */
size_t experiment_slots(const struct experiment *experiment);
int64_t experiment_block_of(const struct experiment *experiment, size_t slot);

/* Replaces *text (NULL or allocated) by a copy of @value; -ENOMEM. */
int experiment_set_text(char **text, const char *value);

/* New reference, or NULL without memory. */
json_t *experiment_to_json(const struct experiment *experiment);
/* For experiment_free(). -EINVAL: names the member that is missing or wrong. */
int experiment_from_json(const json_t *json, struct experiment **ret_experiment,
			 struct message *message);

/* DIR/experiment.json, replaced as a whole; -errno of reading or writing it. */
int experiment_save(const struct experiment *experiment, const char *directory,
		    struct message *message);
int experiment_load(const char *directory, struct experiment **ret_experiment,
		    struct message *message);

/* argv as a line that a shell would read back; allocated, NULL without memory. */
char *command_line_format(char *const *argv);

#endif
