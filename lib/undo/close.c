/* SPDX-License-Identifier: MIT */
/* The end of a transaction: by the guardian, by the program when that was killed, or not yet. */
#include "undo/knob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "undo/guardian.h"
#include "undo/internal.h"
#include "undo/journal.h"
#include "undo/lock.h"
#include "undo/process.h"

/* For a guardian that was not asked, and undoes because its socket ended. */
#define UNDO_LIMIT_NS (60 * NS_PER_S)
/* What the program takes in the dead guardian's place, however late it is. */
#define ALONE_LEAST_NS (100 * NS_PER_MS)
/* For room in the socket of a guardian that is not there to read it. */
#define SEND_LATE_MS 50

void knobs_forget(struct knobs *knobs)
{
	if (!knobs)
		return;
	if (knobs->line.socket >= 0)
		close(knobs->line.socket);
	if (knobs->directory_fd >= 0)
		close(knobs->directory_fd);
	if (knobs->lock_fd >= 0)
		close(knobs->lock_fd);
	free(knobs);
}

void knobs_end_by(struct knobs *knobs, int64_t deadline_ns)
{
	if (!knobs)
		return;
	knobs->line.end_by_ns = deadline_ns;
	guardian_limit_sends(knobs->line.socket, SEND_LATE_MS);
}

/* The guardian was killed: the program undoes its journal itself. */
static int undo_alone(struct knobs *knobs, struct message *message)
{
	int64_t left_ns = knobs->line.end_by_ns - clock_now_ns();
	struct journal_content content;
	struct journal journal;
	enum journal_state state;
	int result;

	/* The dead guardian's lock is still held here; it is taken again while undoing. */
	lock_release(knobs->lock_fd);
	knobs->lock_fd = -1;
	result = journal_claim(knobs->directory_fd, knobs->journal_name, getpid(), &journal,
			       &content, &state, message);
	if (result < 0)
		return result;
	if (state == JOURNAL_ABANDONED)
		result = journal_undo(&journal, &content, getpid(),
				      left_ns > ALONE_LEAST_NS ? left_ns : ALONE_LEAST_NS, message);
	else if (state == JOURNAL_STALE)
		journal_remove(&journal);
	else
		result = message_set(message, -EBUSY, "another program undoes it");
	journal_content_free(&content);
	journal_close(&journal);
	return result;
}

/* Its end, or false when it does not come: a guardian may be stopped, or stuck in the kernel. */
static bool guardian_ended(const struct knobs *knobs, int64_t limit_ns)
{
	int64_t deadline_ns = clock_now_ns() + limit_ns;

	if (knobs->line.end_by_ns < deadline_ns)
		deadline_ns = knobs->line.end_by_ns;
	for (;;) {
		pid_t got = waitpid(knobs->guardian, NULL, WNOHANG);

		if (got > 0 || (got < 0 && errno != EINTR))
			return true;
		if (clock_now_ns() >= deadline_ns)
			return false;
		clock_sleep_for(NS_PER_MS);
	}
}

/* It lives and has not done its work: which of the two ways there are, as the user needs to know.
 */
static int tell_unfinished(const struct knobs *knobs, struct message *message)
{
	int pid = (int)knobs->guardian;

	if (process_stopped(knobs->guardian))
		return message_set(
			message, -EBUSY,
			"the guardian process %d is stopped: it puts everything back once "
			"it is continued (kill -CONT %d); or kill it and run: syslat "
			"check --restore",
			pid, pid);
	return message_set(message, -EBUSY,
			   "the guardian process %d is still at it and goes on by itself for 5 "
			   "minutes; what is left then: syslat check --restore",
			   pid);
}

/* After a request that got no answer. */
static int close_unanswered(struct knobs *knobs, int result, struct message *message)
{
	if (!guardian_ended(knobs, result == -EPIPE ? NS_PER_S : UNDO_LIMIT_NS))
		return tell_unfinished(knobs, message);
	/* One that woke up late, or saw the end of its socket, has undone all on its own. */
	if (faccessat(knobs->directory_fd, knobs->journal_name, F_OK, 0) < 0)
		return 0;
	result = undo_alone(knobs, message);
	if (result < 0 && message) {
		struct message why = *message;

		message_set(message, result, "%.400s; put it back with: syslat check --restore",
			    why.text);
	}
	return result;
}

int knobs_close(struct knobs *knobs, struct message *message)
{
	const uint64_t unanswered = UINT64_MAX;
	uint64_t goes_on = unanswered;
	struct message why = {0};
	int result;

	if (!knobs)
		return 0;
	result = guardian_ask(&knobs->line, GUARDIAN_CLOSE, 0, NULL, &goes_on, NULL, &why);
	/* Where nothing could be asked (no descriptor left), the end of the socket asks. */
	close(knobs->line.socket);
	knobs->line.socket = -1;
	if (goes_on == unanswered) {
		result = close_unanswered(knobs, result, message);
	} else {
		if (!goes_on)
			guardian_ended(knobs, NS_PER_S);
		if (result < 0)
			message_set(message, result, "%.400s; %s", why.text,
				    goes_on ? "its guardian process goes on trying for 5 minutes"
					    : "put it back with: syslat check --restore");
	}
	knobs_forget(knobs);
	return result;
}
