/* SPDX-License-Identifier: MIT */
#include "run/loads.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/json.h"
#include "undo/transaction.h"

#define KILL_GRACE_NS (2 * NS_PER_S)

/* In the load's process. */
static int load_body(void *argument)
{
	struct load *load = argument;
	struct load_shared *shared = load->shared;
	int error = load->settings.ops->run(load);

	if (error < 0 && shared->message.text[0] == '\0')
		message_set_errno(&shared->message, error, "%s load", load->settings.ops->name);
	atomic_store(&shared->state, error < 0 ? error : LOAD_DONE);
	return error;
}

static int64_t group_oom_kills(const struct load_process *process)
{
	struct cgroup_usage usage;

	if (process->cgroup.version == CGROUP_NONE ||
	    cgroup_read_usage(&process->cgroup, &usage) < 0)
		return -1;
	return usage.oom_kills;
}

static int prepare(struct load_process *process, const struct load_settings *settings,
		   const struct cgroup *cgroup, struct message *message)
{
	struct load_settings *own = &process->load.settings;
	void *shared;
	int error;

	*own = *settings;
	own->cpus = (struct cpu_list){NULL, 0};
	if (own->budget_bytes == 0 && own->ops->default_budget)
		own->budget_bytes = own->ops->default_budget(settings);
	if (own->ops->check) {
		error = own->ops->check(own, message);
		if (error < 0)
			return error;
	}
	error = cpu_list_copy(&settings->cpus, &own->cpus);
	if (error < 0)
		return message_set_errno(message, error, "%s load", own->ops->name);
	shared = mmap(NULL, sizeof(struct load_shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		error = -errno;
		cpu_list_free(&own->cpus);
		return message_set_errno(message, error, "%s load", own->ops->name);
	}
	process->load.shared = shared;
	process->child.pidfd = -1;
	if (cgroup)
		process->cgroup = *cgroup;
	process->oom_kills_at_start = group_oom_kills(process);
	return 0;
}

static void release(struct load_process *process)
{
	if (process->load.shared)
		munmap(process->load.shared, sizeof(struct load_shared));
	process->load.shared = NULL;
	cpu_list_free(&process->load.settings.cpus);
}

int load_start(const struct load_settings *settings, const struct cgroup *cgroup,
	       struct load_process *ret_process, struct message *message)
{
	struct child_settings child = {
		.name = settings->ops->name,
		/* When memory ends it shall be a load that goes, not the sampler or a neighbour. */
		.oom_score_adj = 1000,
		.cgroup = cgroup,
		.transaction = settings->transaction,
	};
	int error;

	memset(ret_process, 0, sizeof(*ret_process));
	error = prepare(ret_process, settings, cgroup, message);
	if (error < 0)
		return error;
	error = child_start(&child, load_body, &ret_process->load, &ret_process->child, message);
	if (error < 0)
		release(ret_process);
	return error;
}

/* Why a process that has ended did so, when it could not say itself. */
static void tell_death(const struct load_process *process, struct message *message)
{
	const char *name = process->load.settings.ops->name;
	int64_t oom_kills = group_oom_kills(process);

	if (WIFSIGNALED(process->status) && WTERMSIG(process->status) == SIGKILL &&
	    oom_kills > process->oom_kills_at_start && process->oom_kills_at_start >= 0) {
		message_set(
			message, 0,
			"%s load: killed for want of memory in its group: raise --limit or --swap, "
			"or give the load less (--load %s=SIZE)",
			name, name);
	} else if (WIFSIGNALED(process->status)) {
		message_set(message, 0, "%s load: ended by signal %d (%s)%s", name,
			    WTERMSIG(process->status), strsignal(WTERMSIG(process->status)),
			    WTERMSIG(process->status) == SIGKILL
				    ? ": the kernel's out-of-memory killer, or someone"
				    : "");
	} else {
		message_set(message, 0, "%s load: ended by itself with status %d", name,
			    WEXITSTATUS(process->status));
	}
}

/* 0: still running; else the -errno of its failure, -ECHILD without one, and why in @message. */
static int poll_one(struct load_process *process, struct message *message)
{
	int state;

	if (!process->died) {
		struct child *child = &process->child;
		pid_t pid = child->pid;

		if (pid <= 0 || child_poll(child, &process->status) != 0)
			return 0;
		process->died = true;
		if (process->load.settings.transaction)
			transaction_disown_process(process->load.settings.transaction, pid);
		if (process->load.shared->message.text[0] == '\0')
			tell_death(process, &process->load.shared->message);
	}
	message_set(message, 0, "%s", process->load.shared->message.text);
	state = atomic_load(&process->load.shared->state);
	/* -ETIMEDOUT is the callers' own word for a wait that is not over yet. */
	if (state == -ETIMEDOUT)
		return -EIO;
	return state < 0 ? state : -ECHILD;
}

int loads_poll(struct load_process *processes, size_t count, struct message *message)
{
	for (size_t i = 0; i < count; i++)
		if (poll_one(&processes[i], message) < 0)
			return -ECHILD;
	return 0;
}

int loads_wait_steady(struct load_process *processes, size_t count, int64_t deadline_ns,
		      struct message *message)
{
	for (;;) {
		size_t waiting = count;

		for (size_t i = 0; i < count; i++) {
			int error = poll_one(&processes[i], message);

			if (error < 0)
				return error;
			if (atomic_load(&processes[i].load.shared->state) != LOAD_STEADY &&
			    waiting == count)
				waiting = i;
		}
		if (waiting == count)
			return 0;
		if (clock_now_ns() >= deadline_ns)
			return message_set(message, -ETIMEDOUT,
					   "the %s load has not built its working set yet",
					   processes[waiting].load.settings.ops->name);
		clock_sleep_for(2 * NS_PER_MS);
	}
}

void loads_begin(struct load_process *processes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct load_shared *shared = processes[i].load.shared;

		processes[i].ops_at_begin = atomic_load(&shared->ops);
		processes[i].bytes_at_begin = atomic_load(&shared->bytes);
		for (size_t k = 0; k < LOAD_EXTRA; k++)
			processes[i].extra_at_begin[k] = atomic_load(&shared->extra[k]);
	}
}

/* true: it has ended. */
static bool await_end(struct load_process *process, int64_t deadline_ns)
{
	struct transaction *transaction = process->load.settings.transaction;
	pid_t pid = process->child.pid;

	if (pid <= 0)
		return true;
	if (child_wait(&process->child, deadline_ns, &process->status) != 0)
		return false;
	/* A failure on the way out counts as a death too. */
	if (atomic_load(&process->load.shared->state) != LOAD_DONE)
		process->died = true;
	if (transaction)
		transaction_disown_process(transaction, pid);
	return true;
}

void loads_stop(struct load_process *processes, size_t count, int64_t asked_until_ns,
		int64_t killed_until_ns)
{
	/* Deaths before the request are told from ends that follow it. */
	loads_poll(processes, count, NULL);
	for (size_t i = 0; i < count; i++)
		atomic_store(&processes[i].load.shared->stop, 1);
	for (size_t i = 0; i < count; i++)
		processes[i].stuck = !await_end(&processes[i], asked_until_ns);
	for (size_t i = 0; i < count; i++)
		if (processes[i].stuck)
			kill(processes[i].child.pid, SIGKILL); /* not reaped: still this child */
	for (size_t i = 0; i < count; i++) {
		struct load_process *process = &processes[i];
		int64_t grace_ns = killed_until_ns - clock_now_ns();

		if (process->stuck)
			process->stuck = child_kill(&process->child, grace_ns > 0 ? grace_ns : 0,
						    process->load.settings.transaction) < 0;
	}
}

static int put_extras(json_t *object, const struct load_process *process)
{
	const struct load_shared *shared = process->load.shared;
	const char *const *names = process->load.settings.ops->extra_names;
	int error = 0;

	for (size_t i = 0; names && names[i] && i < LOAD_EXTRA; i++) {
		uint64_t value = atomic_load(&shared->extra[i]);
		bool level = names[i][0] == '=';

		if (!level)
			value -= process->extra_at_begin[i];
		if (json_put(object, names[i] + (level ? 1 : 0), json_integer((json_int_t)value)) <
		    0)
			error = -ENOMEM;
	}
	return error;
}

static json_t *statistics(const struct load_process *process, double window_s)
{
	const struct load_shared *shared = process->load.shared;
	const struct load_settings *settings = &process->load.settings;
	json_int_t ops = (json_int_t)(atomic_load(&shared->ops) - process->ops_at_begin);
	json_int_t bytes = (json_int_t)(atomic_load(&shared->bytes) - process->bytes_at_begin);
	json_t *object = json_object();
	bool timed = window_s > 0;
	int error = 0;

	if (!object)
		return NULL;
	error |= json_put(object, "ops", json_integer(ops));
	error |= json_put(object, "ops_per_s",
			  timed ? json_real((double)ops / window_s) : json_null());
	error |= json_put(object, "bytes", json_integer(bytes));
	error |= json_put(object, "bytes_per_s",
			  timed ? json_real((double)bytes / window_s) : json_null());
	error |= json_put(object, "offered_per_s",
			  settings->rate_per_s > 0 ? json_real(settings->rate_per_s) : json_null());
	error |= json_put(object, "budget_bytes", json_integer((json_int_t)settings->budget_bytes));
	error |= put_extras(object, process);
	error |= json_put(object, "died", json_boolean(process->died));
	if (error) {
		json_decref(object);
		return NULL;
	}
	return object;
}

json_t *loads_statistics(const struct load_process *processes, size_t count, double window_s)
{
	json_t *object = json_object();

	for (size_t i = 0; object && i < count; i++) {
		if (json_put(object, processes[i].load.settings.ops->name,
			     statistics(&processes[i], window_s)) < 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

void loads_free(struct load_process *processes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		child_kill(&processes[i].child, processes[i].stuck ? 0 : KILL_GRACE_NS,
			   processes[i].load.settings.transaction);
		release(&processes[i]);
	}
}
