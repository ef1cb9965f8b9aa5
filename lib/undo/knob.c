/* SPDX-License-Identifier: MIT */
#include "undo/knob.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpuset.h"
#include "base/file.h"
#include "undo/guardian.h"
#include "undo/internal.h"
#include "undo/journal.h"
#include "undo/lock.h"
#include "undo/mount.h"
#include "undo/process.h"
#include "undo/record.h"

#define LOCK_RETRY_NS (50 * NS_PER_MS)
#define SEND_LIMIT_MS 10000

/* Kept clear of 0, 1 and 2, which the guardian gives to /dev/null. */
static int above_stdio(int fd)
{
	int moved;

	if (fd < 0 || fd > 2)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	close(fd);
	return moved;
}

static int start_guardian(struct knobs *knobs, struct guardian *guardian, struct message *message)
{
	sigset_t all, before;
	int pair[2], result;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return message_set_errno(message, -errno, "socketpair");
	knobs->line.socket = above_stdio(pair[0]);
	guardian_limit_sends(knobs->line.socket, SEND_LIMIT_MS);
	guardian->socket = above_stdio(pair[1]);
	guardian->program_pidfd = above_stdio(process_pidfd(getpid()));
	/* No signal may end the guardian before it ignores them, and no handler run in it. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	knobs->guardian = fork();
	result = -errno;
	if (knobs->guardian == 0)
		guardian_main(guardian);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(guardian->socket);
	if (guardian->program_pidfd >= 0)
		close(guardian->program_pidfd);
	if (knobs->guardian < 0)
		return message_set_errno(message, result, "cannot start the guardian process");
	return 0;
}

int knobs_open(struct knobs **ret_knobs, const char *program, struct message *message)
{
	struct guardian guardian = {.lock_fd = -1, .program = getpid()};
	struct knobs *knobs = calloc(1, sizeof(*knobs));
	int result;

	if (!knobs)
		return message_set_errno(message, -ENOMEM, "transaction");
	*knobs = (struct knobs){
		.line = {.socket = -1, .end_by_ns = INT64_MAX}, .directory_fd = -1, .lock_fd = -1};
	snprintf(guardian.program_name, sizeof(guardian.program_name), "%s", program);
	result = journal_create(program, &guardian.journal, message);
	if (result < 0)
		goto free_knobs;
	guardian.journal.fd = above_stdio(guardian.journal.fd);
	guardian.journal.directory_fd = above_stdio(guardian.journal.directory_fd);
	memcpy(knobs->journal_name, guardian.journal.name, sizeof(knobs->journal_name));
	result = start_guardian(knobs, &guardian, message);
	if (result < 0) {
		journal_remove(&guardian.journal);
		journal_close(&guardian.journal);
		goto free_knobs;
	}
	/* The program keeps the folder, for the case that the guardian is killed. */
	knobs->directory_fd = guardian.journal.directory_fd;
	close(guardian.journal.fd);
	result = guardian_ask(&knobs->line, GUARDIAN_MARK, 0, NULL, NULL, NULL, message);
	if (result < 0) {
		knobs_close(knobs, NULL);
		return result;
	}
	*ret_knobs = knobs;
	return 0;

free_knobs:
	knobs_forget(knobs);
	return result;
}

void knobs_heed(struct knobs *knobs, const volatile sig_atomic_t *interrupted)
{
	knobs->interrupted = interrupted;
}

size_t knobs_mark(const struct knobs *knobs)
{
	uint64_t mark;

	/* Without a guardian nothing can be undone to a mark: then the mark that undoes nothing. */
	if (guardian_ask(&knobs->line, GUARDIAN_MARK, 0, NULL, &mark, NULL, NULL) < 0)
		return SIZE_MAX;
	return (size_t)mark;
}

int knobs_undo_to(struct knobs *knobs, size_t mark, struct message *message)
{
	return guardian_ask(&knobs->line, GUARDIAN_UNDO, mark, NULL, NULL, NULL, message);
}

static int add(struct knobs *knobs, enum undo_verb verb, const char *const *fields,
	       uint64_t *ret_sequence, struct message *message)
{
	char line[UNDO_LINE_BYTES];
	int result = undo_line_format(verb, fields, line, sizeof(line));

	if (result < 0)
		return message_set_errno(message, result, "%.100s", fields[0]);
	return guardian_ask(&knobs->line, GUARDIAN_ADD, 0, line, ret_sequence, NULL, message);
}

static void drop(struct knobs *knobs, uint64_t sequence)
{
	guardian_ask(&knobs->line, GUARDIAN_DROP, sequence, NULL, NULL, NULL, NULL);
}

/* The machine-wide lock, once and until everything is undone. */
int knobs_lock(struct knobs *knobs, struct message *message)
{
	int64_t wait_ns = lock_wait_ns(), deadline_ns = clock_now_ns() + wait_ns;
	struct message holder;
	int result, fd;

	if (knobs->lock_fd >= 0)
		return 0;
	for (;;) {
		result = guardian_ask(&knobs->line, GUARDIAN_LOCK, 0, NULL, NULL, &fd, &holder);
		if (result == 0) {
			knobs->lock_fd = fd;
			return 0;
		}
		if (result != -EBUSY)
			return message_set(message, result, "%s", holder.text);
		if (knobs->interrupted && *knobs->interrupted)
			return message_set(message, -EINTR,
					   "interrupted while the machine was in use by %.200s",
					   holder.text);
		if (clock_now_ns() >= deadline_ns)
			break;
		clock_sleep_for(LOCK_RETRY_NS);
	}
	return message_set(
		message, -EBUSY,
		"the machine is in use by %.200s; waited %.3g s (SYSLATENCY_LOCK_WAIT_S)",
		holder.text, (double)wait_ns / 1e9);
}

int knobs_write_reversibly(struct knobs *knobs, const char *path, const char *value,
			   const char *undo_value, struct message *message)
{
	const char *fields[] = {path, undo_value};
	uint64_t sequence;
	int result;

	result = knobs_lock(knobs, message);
	if (result < 0)
		return result;
	result = add(knobs, UNDO_WRITE, fields, &sequence, message);
	if (result < 0)
		return result;
	result = machine_write(path, value);
	if (result < 0) {
		drop(knobs, sequence);
		return message_set_errno(message, result, "cannot write \"%.100s\" to %s", value,
					 path);
	}
	return 0;
}

/* What a later write of the same text would set again; -ENOTSUP for tables of several lines. */
static int read_value(const char *path, char *buffer, size_t size)
{
	char *text;
	size_t line;
	int result = machine_read(path, &text, NULL);

	if (result < 0)
		return result;
	line = strcspn(text, "\n");
	if (text[line] && text[line + 1])
		result = -ENOTSUP;
	free(text);
	return result < 0 ? result : machine_read_choice(path, buffer, size);
}

int knobs_write(struct knobs *knobs, const char *path, const char *value, struct message *message)
{
	char now[4096];
	int result;

	/* The lock comes first: what is there while another program holds it is not the machine's.
	 */
	result = knobs_lock(knobs, message);
	if (result < 0)
		return result;
	result = read_value(path, now, sizeof(now));
	if (result < 0)
		return message_set_errno(message, result, "cannot note the value of %s", path);
	return knobs_write_reversibly(knobs, path, value, now, message);
}

/* Registers and makes a directory that the kernel fills (a group, a trace instance). */
static int make_directory(struct knobs *knobs, enum undo_verb verb, const char *path,
			  struct message *message)
{
	const char *fields[] = {path};
	char real[PATH_MAX];
	uint64_t sequence;
	int result;

	result = machine_path(path, real, sizeof(real));
	if (result < 0)
		return message_set_errno(message, result, "%.100s", path);
	if (access(real, F_OK) == 0)
		return message_set_errno(message, -EEXIST, "cannot make %s", path);
	result = add(knobs, verb, fields, &sequence, message);
	if (result < 0)
		return result;
	if (mkdir(real, 0755) < 0) {
		result = message_set_errno(message, -errno, "cannot make %s", path);
		drop(knobs, sequence);
	}
	return result;
}

int knobs_make_group(struct knobs *knobs, const char *path, struct message *message)
{
	return make_directory(knobs, UNDO_GROUP, path, message);
}

int knobs_make_trace_instance(struct knobs *knobs, const char *path, struct message *message)
{
	return make_directory(knobs, UNDO_TRACE_INSTANCE, path, message);
}

int knobs_mount_tracefs(struct knobs *knobs, struct message *message)
{
	const char *fields[] = {TRACEFS_PLACE};
	uint64_t sequence;
	int result;

	if (machine_root()[0])
		return message_set(message, -ENOTSUP, "a machine in a folder has no tracefs");
	result = add(knobs, UNDO_MOUNT, fields, &sequence, message);
	if (result < 0)
		return result;
	result = tracefs_mount(message);
	if (result < 0)
		drop(knobs, sequence);
	return result;
}

int knobs_own_tree(struct knobs *knobs, const char *path, struct message *message)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char folder[PATH_MAX], real[PATH_MAX], whole[PATH_MAX];
	const char *fields[] = {whole};
	uint64_t sequence;

	/* The guardian has another working folder. */
	if (snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1,
		     slash ? path : ".") >= (int)sizeof(folder))
		return message_set_errno(message, -ENAMETOOLONG, "%.100s", path);
	if (!realpath(folder, real))
		return message_set_errno(message, -errno, "%s", folder);
	if (snprintf(whole, sizeof(whole), "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) >=
	    (int)sizeof(whole))
		return message_set_errno(message, -ENAMETOOLONG, "%.100s", path);
	return add(knobs, UNDO_TREE, fields, &sequence, message);
}

int knobs_own_swap(struct knobs *knobs, const char *device, bool hot_added, struct message *message)
{
	char path[PATH_MAX], algorithm[64] = "";
	const char *fields[] = {device, hot_added ? "1" : "0", algorithm};
	int64_t initialised = 0;
	uint64_t sequence;
	int result;

	result = knobs_lock(knobs, message);
	if (result < 0)
		return result;
	snprintf(path, sizeof(path), "/sys/block/%.64s/initstate", device);
	if (machine_read_int64(path, &initialised) == 0 && initialised)
		return message_set(message, -EBUSY, "%s is in use", device);
	snprintf(path, sizeof(path), "/sys/block/%.64s/comp_algorithm", device);
	if (!hot_added && machine_read_choice(path, algorithm, sizeof(algorithm)) < 0)
		*algorithm = '\0';
	return add(knobs, UNDO_SWAP, fields, &sequence, message);
}

void knobs_disown_swap(struct knobs *knobs, const char *device)
{
	guardian_ask(&knobs->line, GUARDIAN_DISOWN, UNDO_SWAP, device, NULL, NULL, NULL);
}

int knobs_own_segment(struct knobs *knobs, int shmid, struct message *message)
{
	char id[16], creator[16];
	const char *fields[] = {id, creator};
	struct shmid_ds segment;
	uint64_t sequence;

	if (shmctl(shmid, IPC_STAT, &segment) < 0)
		return message_set_errno(message, -errno, "SysV segment %d", shmid);
	snprintf(id, sizeof(id), "%d", shmid);
	snprintf(creator, sizeof(creator), "%d", (int)segment.shm_cpid);
	return add(knobs, UNDO_SEGMENT, fields, &sequence, message);
}

int knobs_own_process(struct knobs *knobs, pid_t pid, struct message *message)
{
	char text[16], ticks[24];
	const char *fields[] = {text, ticks};
	uint64_t start_ticks, sequence;
	int result;

	result = process_start_ticks(pid, &start_ticks);
	if (result < 0)
		return message_set_errno(message, result, "process %d", (int)pid);
	snprintf(text, sizeof(text), "%d", (int)pid);
	snprintf(ticks, sizeof(ticks), "%" PRIu64, start_ticks);
	return add(knobs, UNDO_PROCESS, fields, &sequence, message);
}

void knobs_disown_process(struct knobs *knobs, pid_t pid)
{
	char text[16];

	if (!knobs)
		return;
	snprintf(text, sizeof(text), "%d", (int)pid);
	guardian_tell(&knobs->line, GUARDIAN_DISOWN, UNDO_PROCESS, text);
}

int knobs_save_scheduling(struct knobs *knobs, pid_t pid, struct message *message)
{
	char text[16], ticks[24], policy_text[16], priority[16], nice_text[16];
	const char *fields[] = {text, ticks, policy_text, priority, nice_text, NULL};
	struct sched_param parameters;
	struct cpu_list cpus = {0};
	uint64_t start_ticks, sequence;
	char *cpu_text;
	int policy, nice_value, result;

	result = knobs_lock(knobs, message);
	if (result < 0)
		return result;
	result = process_start_ticks(pid, &start_ticks);
	policy = sched_getscheduler(pid);
	if (result < 0 || policy < 0 || sched_getparam(pid, &parameters) < 0)
		return message_set_errno(message, result < 0 ? result : -errno,
					 "scheduling of task %d", (int)pid);
	if ((policy & ~SCHED_RESET_ON_FORK) == SCHED_DEADLINE)
		return message_set_errno(message, -ENOTSUP, "scheduling of deadline task %d",
					 (int)pid);
	errno = 0;
	nice_value = getpriority(PRIO_PROCESS, (id_t)pid);
	result = errno ? -errno : cpu_list_allowed(pid, &cpus);
	if (result < 0)
		return message_set_errno(message, result, "scheduling of task %d", (int)pid);
	cpu_text = cpu_list_format(&cpus);
	cpu_list_free(&cpus);
	if (!cpu_text)
		return message_set_errno(message, -ENOMEM, "scheduling of task %d", (int)pid);
	snprintf(text, sizeof(text), "%d", (int)pid);
	snprintf(ticks, sizeof(ticks), "%" PRIu64, start_ticks);
	snprintf(policy_text, sizeof(policy_text), "%d", policy);
	snprintf(priority, sizeof(priority), "%d", parameters.sched_priority);
	snprintf(nice_text, sizeof(nice_text), "%d", nice_value);
	fields[5] = cpu_text;
	result = add(knobs, UNDO_SCHEDULING, fields, &sequence, message);
	free(cpu_text);
	return result;
}
