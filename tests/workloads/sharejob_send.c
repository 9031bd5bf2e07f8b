// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma-bufs from process to process: one inbox for each, which all others have the other end of. They are closed as
 * soon as the case is set up.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fdpass.h"
#include "report.h"
#include "sharejob.h"

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
	return fdpass_send(me->outboxes[to], &buffer, sizeof(buffer), fd);
}

int share_receive(struct share_process *me, unsigned int *ret_buffer, int *ret_fd)
{
	return fdpass_receive(me->inboxes[me->number], ret_buffer, sizeof(*ret_buffer), ret_fd);
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
