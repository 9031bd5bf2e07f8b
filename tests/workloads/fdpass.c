// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages of a word and one file descriptor.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "fdpass.h"
#include "report.h"

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int fdpass_send(int socket, int fd, unsigned int word)
{
	struct iovec iov = { &word, sizeof(word) };
	union control control = { 0 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&msg);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(socket, &msg, MSG_NOSIGNAL) == sizeof(word) ? 0 : report(errno, "sending a dma-buf: %m");
}

int fdpass_receive(int socket, unsigned int *ret_word, int *ret_fd)
{
	struct iovec iov = { ret_word, sizeof(*ret_word) };
	union control control = { 0 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;

	if (recvmsg(socket, &msg, MSG_CMSG_CLOEXEC) != sizeof(*ret_word))
		return report(EPIPE, "receiving a dma-buf: %m");
	header = CMSG_FIRSTHDR(&msg);
	if (!header || header->cmsg_type != SCM_RIGHTS)
		return report(EPROTO, "a message without a dma-buf");
	memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
	return 0;
}
