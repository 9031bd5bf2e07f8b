// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma-bufs from process to process: one inbox for each, which all others have the other end of. They are closed as
 * soon as the case is set up.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report.h"
#include "sharejob.h"

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int share_boxes_open(struct share_process *me)
{
	for (unsigned int i = 0; i < me->nr_processes; i++) {
		int ends[2];

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
			return report(errno, "socketpair: %m");
		me->inboxes[i] = ends[0];
		me->outboxes[i] = ends[1];
	}
	return 0;
}

void share_boxes_close(struct share_process *me)
{
	for (unsigned int i = 0; i < me->nr_processes; i++) {
		close(me->inboxes[i]);
		close(me->outboxes[i]);
	}
}

int share_send(struct share_process *me, unsigned int to, unsigned int buffer, int fd)
{
	struct iovec iov = { &buffer, sizeof(buffer) };
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
	if (sendmsg(me->outboxes[to], &msg, MSG_NOSIGNAL) != sizeof(buffer))
		return report(errno, "sending a dma-buf to process %u: %m", to);
	return 0;
}

int share_receive(struct share_process *me, unsigned int *ret_buffer, int *ret_fd)
{
	struct iovec iov = { ret_buffer, sizeof(*ret_buffer) };
	union control control = { 0 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;

	if (recvmsg(me->inboxes[me->number], &msg, MSG_CMSG_CLOEXEC) != sizeof(*ret_buffer))
		return report(EPIPE, "receiving a dma-buf: %m");
	header = CMSG_FIRSTHDR(&msg);
	if (!header || header->cmsg_type != SCM_RIGHTS)
		return report(EPROTO, "a message without a dma-buf");
	memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
	return 0;
}

int share_send_bo(struct share_process *me, unsigned int to, unsigned int buffer, const struct kfd_bo *bo)
{
	int fd, err = kfd_bo_export(&me->kfd, bo, &fd);

	if (err)
		return err;
	err = share_send(me, to, buffer, fd);
	close(fd);
	return err;
}
