/* SPDX-License-Identifier: MIT */
#include "run/state.h"

#include <errno.h>
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
	error = swap_make_zram(run->knobs, run->plan.swap_bytes, &run->swap, &reason);
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

static int make_group(struct run *run)
{
	struct message reason;
	int error;

	if (!run->plan.memcg)
		return 0;
	error = cgroup_make(run->knobs, "run", &run->group, &reason);
	if (!error)
		error = cgroup_set_limit(&run->group, run->plan.limit_bytes, &reason);
	if (!error)
		return 0;
	run->group = (struct cgroup){0};
	if (run->settings->scope == SCOPE_MEMCG || run->settings->limit.bytes ||
	    run->settings->limit.is_percent || error == -EINVAL)
		return message_set(run->message, error, "%s", reason.text);
	run->plan.memcg = false;
	run->plan.limit_bytes = 0;
	record_note(run->record, "machine scope, since no memory group can be made: %s",
		    reason.text);
	for (size_t i = 0; i < run->plan.load_count; i++)
		run->plan.loads[i].in_memcg = false;
	return 0;
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

/*
 * "auto": a real i915 where there is one, else shm, and says why. drm-dumb is never chosen by
 * itself: vgem or virtio-gpu being there does not mean that the question is about them.
 */
const struct backend_ops *run_choose_backend(const struct run_settings *settings,
					     struct record *record)
{
	const struct backend_ops *i915 = backend_find("i915");
	struct message reason = {"not in this build"};
	struct backend *backend;

	if (settings->backend)
		return settings->backend;
	if (i915 && i915->open(&settings->backend_settings, &backend, &reason) == 0) {
		i915->close(backend);
		return i915;
	}
	record_note(record, "backend: shm (no i915: %s)", reason.text);
	return backend_find("shm");
}
