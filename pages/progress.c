// SPDX-License-Identifier: GPL-2.0-only
/*
 * Progress lines. The reader may be slow, gone or never there: nothing here waits for it,
 * and a line that does not fit is dropped.
 */
#define _GNU_SOURCE
#include "pages/internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>

#include "amdgpu_plugin_util.h"

#define LINE_MAX_BYTES 128

struct progress progress_open(const char *path, const char *stage)
{
	struct progress progress = { .stage = stage, .fd = -1 };

	if (!path[0])
		return progress;
	/* This way the two names also work for sockets, and where /dev has no such links. */
	if (!strcmp(path, "/dev/stdout"))
		progress.fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	else if (!strcmp(path, "/dev/stderr"))
		progress.fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	else
		progress.fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
	if (progress.fd < 0)
		pr_warn("no progress is shown: KFD_PROGRESS=%s: %s\n", path,
			errno == ENXIO ? "no process reads from it" : strerror(errno));
	return progress;
}

void progress_close(struct progress *progress)
{
	cleanup_close(&progress->fd);
	progress->fd = -1;
}

/* One write, so that lines of several writers do not mix. poll() leaves criu's own stderr blocking. */
void progress_report(void *arg, const struct content_gpu *gpu)
{
	const struct progress *progress = arg;
	struct pollfd ready = { .fd = progress->fd, .events = POLLOUT };
	char line[LINE_MAX_BYTES], left[32] = "?";
	uint64_t total = 0;
	double rate;
	int len;

	if (progress->fd < 0 || poll(&ready, 1, 0) != 1)
		return;
	rate = gpu->stats.seconds > 0 ? (double)gpu->stats.bytes / gpu->stats.seconds : 0;
	for (size_t i = 0; i < gpu->nr_bos; i++)
		total += gpu->bos[i].size;
	if (rate > 0 && gpu->stats.bytes <= total)
		snprintf(left, sizeof(left), "%.1f", (double)(total - gpu->stats.bytes) / rate);
	len = snprintf(line, sizeof(line), "%s gpu=%#x done=%" PRIu64 " total=%" PRIu64 " rate=%.1f left=%s\n", progress->stage,
		       gpu->gpu_id, gpu->stats.bytes, total, rate / 1e6, left);
	if (write(progress->fd, line, (size_t)len) < 0)
		pr_debug("a progress line was not taken: %s\n", strerror(errno));
}
