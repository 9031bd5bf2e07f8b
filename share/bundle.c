// SPDX-License-Identifier: GPL-2.0-only
/*
 * A socket with one message, which holds the files and is only peeked at.
 *
 * criu finds a file of its store by walking over all that came before: for tens of thousands of buffers that would take
 * longer than everything else. In bundles they are few.
 */
#define _GNU_SOURCE
#include <sys/socket.h>

#include "amdgpu_plugin_util.h"
#include "share/bundle.h"

union control {
	char bytes[CMSG_SPACE(BUNDLE_MAX * sizeof(int))];
	struct cmsghdr align;
};

int bundle_new(const int *fds, size_t nr)
{
	struct iovec iov = { .iov_base = "", .iov_len = 1 };
	union control control = { .bytes = { 0 } };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(nr * sizeof(int)),
	};
	_cleanup_close_ int from = -1, to = -1;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		return -errno;
	from = ends[0];
	to = ends[1];
	CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(nr * sizeof(int));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), fds, nr * sizeof(int));
	if (sendmsg(from, &msg, MSG_NOSIGNAL) < 0)
		return -errno;
	return steal_fd(&to);
}

int bundle_get(int bundle, size_t index)
{
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	union control control;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control),
	};
	const struct cmsghdr *c;
	int fds[BUNDLE_MAX], found = -1;
	size_t nr;

	if (recvmsg(bundle, &msg, MSG_PEEK | MSG_CMSG_CLOEXEC) < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return -EMFILE;
	nr = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(c), nr * sizeof(int));
	for (size_t i = 0; i < nr; i++) {
		if (i == index)
			found = fds[i];
		else
			close(fds[i]);
	}
	return found < 0 ? -EMFILE : found;
}
