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
#include "host/criu.h"

union control {
	char bytes[CMSG_SPACE(BUNDLE_MAX * sizeof(int))];
	struct cmsghdr head;
};

int bundle_new(const int *fds, size_t nr)
{
	union control control = {
		.head = { .cmsg_len = CMSG_LEN(nr * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS },
	};
	struct iovec iov = { .iov_base = &(char){ 0 }, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = CMSG_SPACE(nr * sizeof(int)),
	};
	_cleanup_close_ int from = -1, to = -1;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		return -errno;
	from = ends[0];
	to = ends[1];
	memcpy(CMSG_DATA(&control.head), fds, nr * sizeof(int));
	while (sendmsg(from, &msg, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return errno_or_eio();
	return steal_fd(&to);
}

static int receive(int bundle, int flags, int fds[BUNDLE_MAX], size_t *ret_nr)
{
	union control control;
	struct iovec iov = { .iov_base = &(char){ 0 }, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control),
	};
	const struct cmsghdr *head;

	*ret_nr = 0;
	while (recvmsg(bundle, &msg, flags | MSG_CMSG_CLOEXEC) < 0)
		if (errno != EINTR)
			return errno_or_eio();
	head = CMSG_FIRSTHDR(&msg);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
		*ret_nr = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(head), *ret_nr * sizeof(int));
	}
	return 0;
}

int bundle_open(int bundle, int ret[BUNDLE_MAX], size_t *ret_nr)
{
	return receive(bundle, MSG_PEEK, ret, ret_nr);
}

int bundle_empty(int bundle)
{
	int fds[BUNDLE_MAX];
	size_t nr = 0;
	int err = receive(bundle, 0, fds, &nr);

	for (size_t i = 0; !err && i < nr; i++)
		close(fds[i]);
	return err;
}
