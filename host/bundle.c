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

int bundle_new(const int *fds, size_t nr)
{
	_cleanup_close_ int from = -1, to = -1;
	int ends[2], err;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		return -errno;
	from = ends[0];
	to = ends[1];
	err = message_send(from, "", 1, fds, nr, 0);
	return err ? err : steal_fd(&to);
}

static int receive(int bundle, int flags, int fds[MESSAGE_FDS_MAX], size_t *ret_nr)
{
	bool cut = false;
	char byte;
	ssize_t n = message_receive(bundle, &byte, 1, flags, fds, ret_nr, &cut);

	return n < 0 ? (int)n : 0;
}

int bundle_open(int bundle, int ret[BUNDLE_MAX], size_t *ret_nr)
{
	int fds[MESSAGE_FDS_MAX], err = receive(bundle, MSG_PEEK, fds, ret_nr);

	if (!err)
		memcpy(ret, fds, *ret_nr * sizeof(*ret));
	return err;
}

int bundle_empty(int bundle)
{
	int fds[MESSAGE_FDS_MAX];
	size_t nr = 0;
	int err = receive(bundle, 0, fds, &nr);

	for (size_t i = 0; !err && i < nr; i++)
		close(fds[i]);
	return err;
}
