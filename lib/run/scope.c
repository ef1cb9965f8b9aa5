/* SPDX-License-Identifier: MIT */
#include "run/state.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"

/*
 * A recorded start from the same state: no page cache of earlier runs, no fragmentation of theirs.
 * Both writes change no setting, so there is nothing to put back.
 */
static void reset_machine(struct run *run)
{
	static const struct {
		const char *path, *value;
	} steps[] = {
		{"/proc/sys/vm/drop_caches", "3"},
		{"/proc/sys/vm/compact_memory", "1"},
	};

	sync();
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		int error = machine_write(steps[i].path, steps[i].value);

		if (error)
			record_note(run->record, "reset: %s: %s", steps[i].path,
				    strerrordesc_np(-error));
	}
}

static int make_swap(struct run *run)
{
	char text[32];
	struct message reason;
	int error;

	if (run->plan.swap_bytes == 0)
		return 0;
	error = swap_make_zram(run->transaction, run->plan.swap_bytes, &run->swap, &reason);
	if (!error) {
		record_note(run->record, "swap: zram of %s made for this run",
			    format_size(run->plan.swap_bytes, text, sizeof(text)));
		return 0;
	}
	if (run->settings->swap == SWAP_ZRAM)
		return message_set(run->message, error, "%s", reason.text);
	if (error == -EBUSY || error == -EINTR)
		return message_set(run->message, error, "%s", reason.text);
	/* Asked for by the swap load alone: without swap it would only be killed. */
	return message_set(run->message, -ENODEV,
			   "the swap load needs swap and none can be made: %s", reason.text);
}

/* What the plan decided is had, or the run fails: its budgets are those of this scope. */
static int make_group(struct run *run)
{
	struct cgroup group;
	int error;

	if (!run->plan.memcg)
		return 0;
	error = cgroup_make(run->transaction, "run", &group, run->message);
	if (!error)
		error = cgroup_set_limit(&group, run->plan.limit_bytes, run->message);
	if (!error)
		run->group = group;
	return error;
}

int run_enter_scope(struct run *run)
{
	int error;

	if (run->settings->reset)
		reset_machine(run);
	error = make_group(run);
	if (!error)
		error = make_swap(run);
	return error;
}

/* "auto": the first that opens, in the order of their preference; says why others do not. */
const struct backend_ops *run_choose_backend(const struct run_settings *settings,
					     struct record *record)
{
	unsigned int flags = settings->backend_settings.device ? BACKEND_NEEDS_DEVICE : 0;
	const struct backend_ops *ops = settings->backend ?: backend_preferred(flags, INT_MAX);
	struct message reason = {""};
	struct backend *backend;

	while (!settings->backend && ops) {
		const struct backend_ops *next = backend_preferred(flags, ops->preference);

		/* The last is what it is: the load says why it does not work. */
		if (!next)
			break;
		if (ops->open(&settings->backend_settings, &backend, &reason) == 0) {
			ops->close(backend);
			break;
		}
		record_note(record, "backend: %s (no %s: %s)", next->name, ops->name, reason.text);
		ops = next;
	}
	return ops;
}
