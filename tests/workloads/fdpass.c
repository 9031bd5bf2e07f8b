// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages of data and at most one file descriptor.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "fdpass.h"
#include "report.h"

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int fdpass_send(int socket, const void *data, size_t bytes, int fd)
{
	struct iovec iov = { (void *)(uintptr_t)data, bytes };
	union control control = {
		.align = { .cmsg_len = CMSG_LEN(sizeof(fd)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS },
	};
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	return sendmsg(socket, &msg, MSG_NOSIGNAL) == (ssize_t)bytes ? 0 : report(errno, "sending a file: %m");
}

int fdpass_receive(int socket, void *data, size_t bytes, int *ret_fd)
{
	struct iovec iov = { data, bytes };
	union control control;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);

	*ret_fd = -1;
	if (!n)
		return -EPIPE;
	if (n != (ssize_t)bytes)
		return report(n < 0 ? errno : EPROTO, "receiving a file: %m");
	if (CMSG_FIRSTHDR(&msg))
		memcpy(ret_fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(*ret_fd));
	return 0;
}
