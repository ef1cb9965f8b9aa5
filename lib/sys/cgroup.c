/* SPDX-License-Identifier: MIT */
#include "sys/cgroup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "undo/transaction.h"

#define SMALLEST_LIMIT (UINT64_C(1) << 20)
#define HELP_DELEGATE "run as root, or under: systemd-run --user --scope -p Delegate=yes"

/* Is @word one of the words of @list, which are set apart by the characters of @separators? */
static bool has_word(const char *list, const char *word, const char *separators)
{
	size_t length = strlen(word);

	while (*list) {
		size_t here = strcspn(list, separators);

		if (here == length && strncmp(list, word, length) == 0)
			return true;
		list += here;
		list += strspn(list, separators);
	}
	return false;
}

static bool file_has_word(const char *group, const char *file, const char *word)
{
	char path[PATH_MAX], *text;
	bool found;

	if (snprintf(path, sizeof(path), "%s/%s", group, file) >= (int)sizeof(path) ||
	    machine_read(path, &text, NULL) < 0)
		return false;
	found = has_word(text, word, " \n");
	free(text);
	return found;
}

struct mount {
	char root[PATH_MAX]; /* the part of the file system that is mounted */
	char point[PATH_MAX];
};

/*
 * Finds a mount of @type (whose options have @option, unless NULL) in the text of mountinfo:
 * "id parent device root point options [tags] - type source options", proc(5).
 */
static bool find_mount(char *mountinfo, const char *type, const char *option,
		       struct mount *ret_mount)
{
	char *at = mountinfo, *line;
	bool found = false;

	while (!found && (line = strsep(&at, "\n"))) {
		char *rest = strstr(line, " - "), this_type[64], options[1024] = "";

		if (!rest || sscanf(rest, " - %63s %*s %1023s", this_type, options) < 1 ||
		    strcmp(this_type, type) != 0 || (option && !has_word(options, option, ",")) ||
		    sscanf(line, "%*s %*s %*s %4095s %4095s", ret_mount->root, ret_mount->point) !=
			    2)
			;
		else
			found = true;
		if (at)
			at[-1] = '\n'; /* as it was, for the next search */
	}
	return found;
}

void cgroup_own_path(const char *controller, char *buffer, size_t size)
{
	char *text, *at, *line;

	snprintf(buffer, size, "/");
	if (machine_read("/proc/self/cgroup", &text, NULL) < 0)
		return;
	at = text;
	while ((line = strsep(&at, "\n"))) {
		char *controllers = strchr(line, ':'), *path;

		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		controllers++;
		if (*controller ? has_word(controllers, controller, ",") : !*controllers)
			snprintf(buffer, size, "%s", path);
	}
	free(text);
}

/* The folder of our own group under @mount; the mount point when the group cannot be seen there. */
static int own_folder(const struct mount *mount, const char *path, char *buffer, size_t size)
{
	size_t root = strcmp(mount->root, "/") == 0 ? 0 : strlen(mount->root);
	const char *below = path;
	int length;

	if (root && strncmp(path, mount->root, root) == 0 && (!path[root] || path[root] == '/'))
		below = path + root;
	else if (root)
		below = "";
	if (strcmp(below, "/") == 0 || strncmp(below, "/..", 3) == 0)
		below = "";
	length = snprintf(buffer, size, "%s%s", mount->point, below);
	if (length >= (int)size)
		return -ENAMETOOLONG;
	if (!machine_exists(buffer))
		snprintf(buffer, size, "%s", mount->point);
	return 0;
}

static bool is_empty(const char *group)
{
	char path[PATH_MAX], *text;
	bool empty;

	if (snprintf(path, sizeof(path), "%s/cgroup.procs", group) >= (int)sizeof(path) ||
	    machine_read(path, &text, NULL) < 0)
		return false;
	empty = !*text;
	free(text);
	return empty;
}

/* The kernel's root group alone has no cgroup.type and may hold processes beside groups. */
static bool is_root_group(const char *group)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/cgroup.type", group) < (int)sizeof(path) &&
	       !machine_exists(path);
}

/* Why no group can be made in @group, which the caller may not write. */
static int tell_unwritable(const char *group, const char *remedy, struct message *message)
{
	char path[PATH_MAX];
	int error = machine_path(group, path, sizeof(path));

	if (!error && access(path, W_OK) < 0)
		error = -errno;
	if (error == -EROFS)
		return message_set(message, -EACCES,
				   "no group can be made below %s: it is mounted read-only (a "
				   "container?): mount -o remount,rw it, or use --scope machine",
				   group);
	if (geteuid() == 0)
		return message_set(
			message, -EACCES,
			"no group can be made below %s, not even as root (%s): use --scope "
			"machine",
			group, strerrordesc_np(error ? -error : EACCES));
	return message_set(message, -EACCES, "no permission to make a group below %s: %s", group,
			   remedy);
}

/*
 * v2: a group may hand memory on, or hold processes, not both ("no internal processes",
 * Documentation/admin-guide/cgroup-v2.rst). The nearest group upwards that does or could.
 */
static int find_v2_parent(const struct mount *mount, char *group, struct message *message)
{
	size_t shortest = strlen(mount->point);
	char own[PATH_MAX];
	bool suitable = false;

	snprintf(own, sizeof(own), "%s", group);
	for (;;) {
		if (file_has_word(group, "cgroup.subtree_control", "memory") ||
		    (file_has_word(group, "cgroup.controllers", "memory") &&
		     (is_root_group(group) || is_empty(group)))) {
			if (machine_writable(group))
				return 0;
			if (!suitable)
				tell_unwritable(group, HELP_DELEGATE, message);
			suitable = true;
		}
		if (strlen(group) <= shortest)
			break;
		*strrchr(group, '/') = '\0';
	}
	if (suitable)
		return -EACCES;
	return message_set(message, -ENOTSUP,
			   "no group from %s upwards can hand the memory controller on: %s", own,
			   HELP_DELEGATE);
}

static int find_v1_parent(const char *group, struct message *message)
{
	if (!machine_writable(group))
		return tell_unwritable(group, "run as root", message);
	return 0;
}

/* The controller's hierarchy, and the group that the caller is in; CGROUP_NONE: there is none. */
static int find_own(struct mount *mount, struct cgroup *ret_own)
{
	struct cgroup own = {CGROUP_NONE};
	char *mountinfo, path[PATH_MAX];
	int result = machine_read("/proc/self/mountinfo", &mountinfo, NULL);

	if (result < 0)
		return result;
	if (find_mount(mountinfo, "cgroup", "memory", mount))
		own.version = CGROUP_V1;
	else if (find_mount(mountinfo, "cgroup2", NULL, mount))
		own.version = CGROUP_V2;
	free(mountinfo);
	cgroup_own_path(own.version == CGROUP_V1 ? "memory" : "", path, sizeof(path));
	if (own.version != CGROUP_NONE)
		result = own_folder(mount, path, own.path, sizeof(own.path));
	/* Hybrid machines mount v2 without its controllers. */
	if (own.version == CGROUP_V2 &&
	    !file_has_word(mount->point, "cgroup.controllers", "memory"))
		own.version = CGROUP_NONE;
	*ret_own = own;
	return result;
}

int cgroup_detect(struct cgroup *ret_parent, struct message *message)
{
	struct mount *mount = calloc(1, sizeof(*mount));
	struct cgroup parent;
	int result = mount ? find_own(mount, &parent) : -ENOMEM;

	if (result < 0)
		message_set_errno(message, result, "cannot find the memory group of this process");
	else if (parent.version == CGROUP_V1)
		result = find_v1_parent(parent.path, message);
	else if (parent.version == CGROUP_V2)
		result = find_v2_parent(mount, parent.path, message);
	else
		result = message_set(message, -ENOTSUP,
				     "no memory control groups here (not mounted, or "
				     "cgroup_disable=memory): use --scope machine");
	if (result == 0)
		*ret_parent = parent;
	free(mount);
	return result;
}

static int group_file(const struct cgroup *group, const char *file, char *buffer, size_t size)
{
	return snprintf(buffer, size, "%s/%s", group->path, file) < (int)size ? 0 : -ENAMETOOLONG;
}

static int group_write(const struct cgroup *group, const char *file, const char *text)
{
	char path[PATH_MAX];
	int result = group_file(group, file, path, sizeof(path));

	return result < 0 ? result : machine_write(path, text);
}

/* Unlimited ("max", or v1's largest page count) is UINT64_MAX. */
static int group_read(const struct cgroup *group, const char *file, uint64_t *ret_value)
{
	char path[PATH_MAX], line[64];
	int result = group_file(group, file, path, sizeof(path));

	if (result == 0)
		result = machine_read_line(path, line, sizeof(line));
	if (result < 0)
		return result;
	*ret_value = strcmp(line, "max") == 0 ? UINT64_MAX : strtoull(line, NULL, 10);
	if (*ret_value > INT64_MAX - (UINT64_C(1) << 20))
		*ret_value = UINT64_MAX;
	return 0;
}

/* A count of a file of "name count" lines; -1 when the kernel does not have it. */
static int64_t group_count(const struct cgroup *group, const char *file, const char *name)
{
	char path[PATH_MAX], *text;
	int64_t count = -1;

	if (group_file(group, file, path, sizeof(path)) < 0 || machine_read(path, &text, NULL) < 0)
		return -1;
	if (text_find_int64(text, name, &count) < 0)
		count = -1;
	free(text);
	return count;
}

int cgroup_make(struct transaction *transaction, const char *name, struct cgroup *ret_group,
		struct message *message)
{
	char control[PATH_MAX];
	struct cgroup parent, group;
	int result;

	result = cgroup_detect(&parent, message);
	if (result < 0)
		return result;
	group.version = parent.version;
	if (snprintf(group.path, sizeof(group.path), "%s/syslatency-%d-%s", parent.path,
		     (int)getpid(), name) >= (int)sizeof(group.path) ||
	    group_file(&parent, "cgroup.subtree_control", control, sizeof(control)) < 0)
		return message_set_errno(message, -ENAMETOOLONG, "group below %.200s", parent.path);
	if (parent.version == CGROUP_V2 &&
	    !file_has_word(parent.path, "cgroup.subtree_control", "memory")) {
		result = transaction_write_reversibly(transaction, control, "+memory", "-memory",
						      message);
		if (result < 0)
			return result;
	}
	result = transaction_make_group(transaction, group.path, message);
	if (result == 0)
		*ret_group = group;
	return result;
}

int cgroup_set_limit(const struct cgroup *group, uint64_t bytes, struct message *message)
{
	const char *file = group->version == CGROUP_V1 ? "memory.limit_in_bytes" : "memory.max";
	char text[32];
	int result;

	if (bytes < SMALLEST_LIMIT)
		return message_set(message, -EINVAL,
				   "a memory limit of %" PRIu64 " bytes is below 1M", bytes);
	snprintf(text, sizeof(text), "%" PRIu64, bytes);
	result = group_write(group, file, text);
	if (result < 0)
		return message_set_errno(message, result, "cannot limit %s to %s bytes",
					 group->path, text);
	if (group->version == CGROUP_V2) {
		result = group_write(group, "memory.swap.max", "max");
		if (result < 0 && result != -ENOENT) /* -ENOENT: a kernel without swap */
			return message_set_errno(message, result, "cannot allow %s to swap",
						 group->path);
	}
	return 0;
}

int cgroup_enter(const struct cgroup *group, pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)pid);
	return group_write(group, "cgroup.procs", text);
}

int cgroup_read_usage(const struct cgroup *group, struct cgroup_usage *ret_usage)
{
	bool v1 = group->version == CGROUP_V1;
	struct cgroup_usage usage;
	uint64_t count;
	int result;

	result = group_read(group, v1 ? "memory.usage_in_bytes" : "memory.current",
			    &usage.usage_bytes);
	if (result == 0)
		result = group_read(group, v1 ? "memory.limit_in_bytes" : "memory.max",
				    &usage.limit_bytes);
	if (result < 0)
		return result;
	if (v1) {
		usage.limit_hits =
			group_read(group, "memory.failcnt", &count) == 0 ? (int64_t)count : -1;
		usage.oom_kills = group_count(group, "memory.oom_control", "oom_kill");
	} else {
		usage.limit_hits = group_count(group, "memory.events", "max");
		usage.oom_kills = group_count(group, "memory.events", "oom_kill");
	}
	*ret_usage = usage;
	return 0;
}

uint64_t cgroup_room(void)
{
	struct mount *mount = calloc(1, sizeof(*mount));
	uint64_t room = UINT64_MAX;
	struct cgroup group;

	if (mount && find_own(mount, &group) == 0 && group.version != CGROUP_NONE) {
		size_t shortest = strlen(mount->point);

		for (;;) {
			struct cgroup_usage usage;
			uint64_t left = UINT64_MAX;

			/* v2's root group has neither usage nor limit. */
			if (cgroup_read_usage(&group, &usage) == 0 &&
			    usage.limit_bytes != UINT64_MAX)
				left = usage.limit_bytes > usage.usage_bytes
					       ? usage.limit_bytes - usage.usage_bytes
					       : 0;
			if (left < room)
				room = left;
			if (strlen(group.path) <= shortest)
				break;
			*strrchr(group.path, '/') = '\0';
		}
	}
	free(mount);
	return room;
}
