/* SPDX-License-Identifier: MIT */
#include "sys/kmsg.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/json.h"

/* What a record holds at most: a stuck machine repeats itself. */
#define ENTRIES_MAX 16
#define TEXT_MAX 120

struct kmsg {
	int fd;
};

/*
 * Words of the kernel's own messages: kernel/hung_task.c, kernel/watchdog.c, mm/oom_kill.c,
 * kernel/rcu/tree_stall.h, mm/page_alloc.c (warn_alloc), kernel/sched/rt.c.
 */
static const struct {
	const char *kind, *first, *second; /* second: NULL, or must follow the first */
} patterns[] = {
	{"hung-task", "INFO: task ", " blocked for more than "},
	{"hung-task", "INFO: task ", " blocked on "},
	{"soft-lockup", "watchdog: BUG: soft lockup", NULL},
	{"soft-lockup", "BUG: soft lockup", NULL},
	{"hard-lockup", "hard LOCKUP", NULL},
	{"rcu-stall", "rcu", "detected stall"},
	{"rcu-stall", "rcu", "self-detected stall"},
	{"rcu-stall", "rcu", "detected expedited stalls"},
	{"oom", "invoked oom-killer", NULL},
	{"oom", "Out of memory: Kill", NULL},
	{"oom", "emory cgroup out of memory", NULL},
	{"allocation-failure", "page allocation failure", NULL},
	{"allocation-failure", "page allocation stalls", NULL},
	{"rt-throttling", "RT throttling activated", NULL},
	{"workqueue-lockup", "BUG: workqueue lockup", NULL},
};

static const char *classify(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		const char *found = strstr(text, patterns[i].first);

		if (found && (!patterns[i].second || strstr(found, patterns[i].second)))
			return patterns[i].kind;
	}
	return NULL;
}

int kmsg_open(struct kmsg **ret_kmsg)
{
	struct kmsg *kmsg = calloc(1, sizeof(*kmsg));
	int error;

	if (!kmsg)
		return -ENOMEM;
	/* Without CAP_SYSLOG this opens when kernel.dmesg_restrict is 0. */
	kmsg->fd = machine_open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	if (kmsg->fd < 0) {
		error = kmsg->fd;
		free(kmsg);
		return error == -EACCES ? -EPERM : error;
	}
	/* The start mark. A plain file (a test's) starts at its end too. */
	if (lseek(kmsg->fd, 0, SEEK_END) < 0) {
		error = -errno;
		kmsg_close(kmsg);
		return error;
	}
	*ret_kmsg = kmsg;
	return 0;
}

/* "priority,sequence,microseconds,flags[,...];text\n KEY=value...\n",
 * Documentation/ABI/testing/dev-kmsg. */
static int keep_line(json_t *entries, char *line, size_t *dropped)
{
	char *text = strchr(line, ';'), *newline;
	const char *kind;
	int64_t when_us;
	json_t *entry;

	if (!text || line[0] == ' ')
		return 0;
	*text++ = '\0';
	newline = strchr(text, '\n');
	if (newline)
		*newline = '\0';
	kind = classify(text);
	if (!kind)
		return 0;
	if (json_array_size(entries) >= ENTRIES_MAX) {
		(*dropped)++;
		return 0;
	}
	if (sscanf(line, "%*u,%*u,%" SCNd64, &when_us) != 1)
		when_us = -1;
	if (strlen(text) > TEXT_MAX)
		text[TEXT_MAX] = '\0';
	entry = json_object();
	if (!entry || json_array_append_new(entries, entry))
		return -ENOMEM;
	if (json_put(entry, "kind", json_string(kind)) ||
	    json_put(entry, "when_us", when_us < 0 ? json_null() : json_integer(when_us)) ||
	    json_put(entry, "text", json_string_or_null(text)))
		return -ENOMEM;
	return 0;
}

static int note(json_t *entries, const char *kind, const char *text)
{
	json_t *entry = json_object();

	if (!entry || json_array_append_new(entries, entry))
		return -ENOMEM;
	return json_put(entry, "kind", json_string(kind)) ||
			       json_put(entry, "when_us", json_null()) ||
			       json_put(entry, "text", json_string(text))
		       ? -ENOMEM
		       : 0;
}

/* One read() of the device is one record; of a plain file it may be many lines. */
static int read_all(struct kmsg *kmsg, json_t *entries, size_t *dropped)
{
	char buffer[8193]; /* CONSOLE_EXT_LOG_MAX */
	bool overrun = false;
	int error = 0;

	while (!error) {
		ssize_t got = read(kmsg->fd, buffer, sizeof(buffer) - 1);
		char *line, *rest;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EPIPE) {
			/* The ring wrapped over what was not read; the next read goes on behind the
			 * hole. */
			if (!overrun)
				error = note(entries, "overrun",
					     "the kernel log wrapped: some messages were lost");
			overrun = true;
			continue;
		}
		if (got <= 0)
			break;
		buffer[got] = '\0';
		for (line = strtok_r(buffer, "\n", &rest); line && !error;
		     line = strtok_r(NULL, "\n", &rest))
			error = keep_line(entries, line, dropped);
	}
	return error;
}

json_t *kmsg_collect(struct kmsg *kmsg)
{
	json_t *entries = json_array();
	size_t dropped = 0;
	char text[64];
	int error = 0;

	if (!entries || !kmsg)
		return entries;
	error = read_all(kmsg, entries, &dropped);
	if (!error && dropped) {
		snprintf(text, sizeof(text), "%zu more such messages", dropped);
		error = note(entries, "more", text);
	}
	if (error) {
		json_decref(entries);
		return NULL;
	}
	return entries;
}

void kmsg_close(struct kmsg *kmsg)
{
	if (!kmsg)
		return;
	close(kmsg->fd);
	free(kmsg);
}
