/* SPDX-License-Identifier: MIT */
#include "undo/guardian.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"

/* Undoing waits for processes, busy groups and swapoff; all else is a line in the journal. */
#define ANSWER_MS 10000
#define ANSWER_TO_UNDO_MS 60000

union fd_control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

/* One packet, with a descriptor when @fd is one. */
static int send_packet(int socket, const void *data, size_t size, int fd, int flags)
{
	union fd_control control = {0};
	struct iovec vector = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
	struct msghdr packet = {.msg_iov = &vector, .msg_iovlen = 1};
	ssize_t sent;

	if (fd >= 0) {
		packet.msg_control = &control;
		packet.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	do {
		sent = sendmsg(socket, &packet, MSG_NOSIGNAL | flags);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int guardian_receive(int socket, void *data, size_t size, int *ret_fd)
{
	union fd_control control = {0};
	struct iovec vector = {.iov_base = data, .iov_len = size};
	struct msghdr packet = {
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	ssize_t got;

	do {
		got = recvmsg(socket, &packet, MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	*ret_fd = -1;
	if (got < 0)
		return -errno;
	header = CMSG_FIRSTHDR(&packet);
	if (header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len >= CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
	return (int)got;
}

int guardian_answer(int socket, const struct guardian_reply *reply, int fd)
{
	return send_packet(socket, reply, sizeof(*reply), fd, 0);
}

/* Is there something to read, or the end, before the guardian must be taken for stuck? */
static bool answered(int socket, enum guardian_operation operation, int64_t end_by_ns)
{
	bool undoes = operation == GUARDIAN_UNDO || operation == GUARDIAN_CLOSE;
	int64_t deadline_ns = clock_now_ns() + (undoes ? ANSWER_TO_UNDO_MS : ANSWER_MS) * NS_PER_MS;
	struct pollfd wait = {.fd = socket, .events = POLLIN};

	if (end_by_ns < deadline_ns)
		deadline_ns = end_by_ns;
	for (;;) {
		int64_t left_ns = deadline_ns - clock_now_ns();
		int ready = poll(&wait, 1, left_ns > 0 ? (int)(left_ns / NS_PER_MS) + 1 : 0);

		if (ready > 0)
			return true;
		if ((ready < 0 && errno != EINTR) || left_ns <= 0)
			return false;
	}
}

/* Sends the request; *ret_answer is where its answer comes. */
static int send_request(const struct guardian_line *line, enum guardian_operation operation,
			uint64_t value, const char *text, int flags, int *ret_answer)
{
	struct guardian_request request = {.operation = operation, .value = value};
	size_t length = text ? strlen(text) : 0;
	int pair[2];

	if (length >= sizeof(request.text))
		return -EMSGSIZE;
	if (length)
		memcpy(request.text, text, length);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	/* Where it fails, nobody holds the other end, and the answer's socket tells its end. */
	send_packet(line->socket, &request, offsetof(struct guardian_request, text) + length + 1,
		    pair[1], flags);
	close(pair[1]);
	*ret_answer = pair[0];
	return 0;
}

void guardian_limit_sends(int socket, int limit_ms)
{
	struct timeval limit = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};

	setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

void guardian_tell(const struct guardian_line *line, enum guardian_operation operation,
		   uint64_t value, const char *text)
{
	int answer;

	if (send_request(line, operation, value, text, MSG_DONTWAIT, &answer) == 0)
		close(answer);
}

int guardian_ask(const struct guardian_line *line, enum guardian_operation operation,
		 uint64_t value, const char *text, uint64_t *ret_value, int *ret_fd,
		 struct message *message)
{
	struct guardian_reply reply;
	int answer, fd = -1, result;

	result = send_request(line, operation, value, text, 0, &answer);
	if (result < 0)
		return message_set_errno(message, result, "request to the guardian process");
	if (!answered(answer, operation, line->end_by_ns)) {
		/* Whoever asks next need not wait too, and a guardian that wakes again undoes all.
		 */
		shutdown(line->socket, SHUT_RDWR);
		close(answer);
		return message_set(message, -EPIPE,
				   "the guardian process does not answer (stopped?); nothing is "
				   "changed any more");
	}
	result = guardian_receive(answer, &reply, sizeof(reply), &fd);
	close(answer);
	if (result < (int)sizeof(reply)) {
		if (fd >= 0)
			close(fd);
		return message_set(message, -EPIPE,
				   "the guardian process was killed; nothing is changed any more");
	}
	if (ret_fd)
		*ret_fd = fd;
	else if (fd >= 0)
		close(fd);
	if (ret_value)
		*ret_value = reply.value;
	if (reply.error < 0 && message)
		*message = reply.message;
	return reply.error;
}
