// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs and verdicts on a socket, see pages/internal.h. The length and the number of
 * files of each message follow from the messages before it; anything else is an error.
 */
#define _GNU_SOURCE
#include "pages/internal.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Lines wait for the task up to this many bytes of its socket, so that there is always room for the verdict. */
#define LINES_QUEUED_MAX (64 << 10)

enum { FD_RENDER, FD_PAGES, FDS_OF_GPU };

enum line_kind { ACCEPTED, LINE, VERDICT };

struct line_message {
	enum line_kind kind;
	int value; /* of a line: its level; of a verdict: 0 or -errno */
	char text[PLUGIN_LOG_LINE_MAX];
};

static int wait_readable(int sock, int stop_fd)
{
	struct pollfd p[2] = { { .fd = sock, .events = POLLIN }, { .fd = stop_fd, .events = POLLIN } };

	while (poll(p, ARRAY_SIZE(p), -1) < 0)
		if (errno != EINTR)
			return errno_or_eio();
	return p[1].revents ? -ECANCELED : 0;
}

static void close_fds(const int *fds, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		close(fds[i]);
}

static int recv_message(int sock, int stop_fd, void *data, size_t len, int *fds, size_t nr_fds)
{
	int got[MESSAGE_FDS_MAX];
	int err = wait_readable(sock, stop_fd);
	bool cut = false;
	size_t nr_got;
	ssize_t n;

	if (err)
		return err;
	n = message_receive(sock, data, len, 0, got, &nr_got, &cut);
	if (n <= 0)
		return n ? (int)n : -ECONNRESET;
	if ((size_t)n == len && nr_got == nr_fds && !cut) {
		if (nr_fds)
			memcpy(fds, got, nr_fds * sizeof(*fds));
		return 0;
	}
	close_fds(got, nr_got);
	return nr_got < nr_fds ? -EMFILE : -EBADMSG;
}

int wire_send_fd(int sock, int fd)
{
	return message_send(sock, "", 1, &fd, 1, 0);
}

int wire_recv_fd(int sock, int stop_fd)
{
	char byte;
	int fd, err = recv_message(sock, stop_fd, &byte, 1, &fd, 1);

	return err ? err : fd;
}

/* ---- jobs ---- */

static size_t batch_size(size_t left)
{
	return left < MESSAGE_FDS_MAX ? left : MESSAGE_FDS_MAX;
}

static int send_bos(int sock, const struct content_bo *bos, size_t nr)
{
	int fds[MESSAGE_FDS_MAX];

	for (size_t i = 0; i < nr; i++)
		fds[i] = bos[i].dmabuf_fd;
	return message_send(sock, bos, nr * sizeof(*bos), fds, nr, 0);
}

static int send_gpu(int sock, const struct content_gpu *gpu)
{
	int fds[FDS_OF_GPU] = { [FD_RENDER] = gpu->render_fd, [FD_PAGES] = gpu->pages_fd };
	int err = message_send(sock, gpu, sizeof(*gpu), fds, FDS_OF_GPU, 0);

	for (size_t i = 0; !err && i < gpu->nr_bos; i += batch_size(gpu->nr_bos - i))
		err = send_bos(sock, &gpu->bos[i], batch_size(gpu->nr_bos - i));
	return err;
}

int wire_send_job(int sock, const struct content_gpu *gpus, size_t nr_gpus)
{
	int err = message_send(sock, &nr_gpus, sizeof(nr_gpus), NULL, 0, 0);

	for (size_t i = 0; !err && i < nr_gpus; i++)
		err = send_gpu(sock, &gpus[i]);
	return err;
}

static int recv_bos(int sock, int stop_fd, struct content_gpu *gpu, size_t nr)
{
	struct content_bo *bos = &gpu->bos[gpu->nr_bos];
	int fds[MESSAGE_FDS_MAX];
	int err = recv_message(sock, stop_fd, bos, nr * sizeof(*bos), fds, nr);

	if (err)
		return err;
	for (size_t i = 0; i < nr; i++)
		bos[i].dmabuf_fd = fds[i];
	gpu->nr_bos += nr;
	return 0;
}

static int recv_gpu(int sock, int stop_fd, struct content_gpu *ret)
{
	struct content_gpu gpu;
	size_t nr_bos;
	int fds[FDS_OF_GPU];
	int err = recv_message(sock, stop_fd, &gpu, sizeof(gpu), fds, FDS_OF_GPU);

	if (err)
		return err;
	nr_bos = gpu.nr_bos;
	*ret = gpu;
	ret->render_fd = fds[FD_RENDER];
	ret->pages_fd = fds[FD_PAGES];
	ret->nr_bos = 0;
	ret->bos = calloc(nr_bos + 1, sizeof(*ret->bos));
	if (!ret->bos)
		return -ENOMEM;
	while (!err && ret->nr_bos < nr_bos)
		err = recv_bos(sock, stop_fd, ret, batch_size(nr_bos - ret->nr_bos));
	return err;
}

void wire_gpu_done(struct content_gpu *gpu)
{
	for (size_t i = 0; i < gpu->nr_bos; i++)
		close(gpu->bos[i].dmabuf_fd);
	free(gpu->bos);
	cleanup_close(&gpu->render_fd);
	cleanup_close(&gpu->pages_fd);
	*gpu = (struct content_gpu){ .render_fd = -1, .pages_fd = -1 };
}

int wire_recv_job(int sock, int stop_fd, struct content_gpu **ret_gpus, size_t *ret_nr)
{
	struct content_gpu *gpus;
	size_t nr;
	int err = recv_message(sock, stop_fd, &nr, sizeof(nr), NULL, 0);

	if (err)
		return err;
	gpus = calloc(nr + 1, sizeof(*gpus));
	if (!gpus)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		gpus[i] = (struct content_gpu){ .render_fd = -1, .pages_fd = -1 };
	for (size_t i = 0; !err && i < nr; i++)
		err = recv_gpu(sock, stop_fd, &gpus[i]);
	if (!err) {
		*ret_gpus = gpus;
		*ret_nr = nr;
		return 0;
	}
	for (size_t i = 0; i < nr; i++)
		wire_gpu_done(&gpus[i]);
	free(gpus);
	return err;
}

/* ---- lines and the verdict ---- */

static int send_line(int sock, enum line_kind kind, int value, const char *text)
{
	struct line_message message = { .kind = kind, .value = value };

	snprintf(message.text, sizeof(message.text), "%s", text);
	return message_send(sock, &message, sizeof(message), NULL, 0, MSG_DONTWAIT);
}

int wire_send_accepted(int sock)
{
	return send_line(sock, ACCEPTED, 0, "");
}

int wire_recv_accepted(int sock)
{
	struct line_message message;
	int err = recv_message(sock, -1, &message, sizeof(message), NULL, 0);

	/* The kernel tells first that messages were left unread, and only then what was answered. */
	if (err == -ECONNRESET)
		err = recv_message(sock, -1, &message, sizeof(message), NULL, 0);
	if (err || message.kind == ACCEPTED)
		return err == -ECONNRESET ? err : 0;
	return message.kind == VERDICT && message.value ? message.value : -EBADMSG;
}

void wire_send_line(int sock, enum plugin_log_level level, const char *line)
{
	int queued = 0;

	if (ioctl(sock, SIOCOUTQ, &queued) == 0 && queued < LINES_QUEUED_MAX)
		send_line(sock, LINE, (int)level, line);
}

void wire_send_verdict(int sock, int err, const char *text)
{
	send_line(sock, VERDICT, err, text);
}

int wire_recv_verdict(int sock)
{
	struct line_message message;
	int err;

	while (!(err = recv_message(sock, -1, &message, sizeof(message), NULL, 0)) && message.kind != VERDICT)
		if (message.kind == LINE)
			plugin_log((enum plugin_log_level)message.value, "%s", message.text);
	if (err)
		return fail(err, "the worker that restores the contents of the GPUs is gone: %m");
	if (!message.value)
		return 0;
	if (message.value == -ECANCELED) {
		pr_info("the restore of contents was cancelled, as another one has failed\n");
		return -ECANCELED;
	}
	fail(message.value, "%s", message.text);
	return fail(message.value, "the worker has not taken the contents of the GPUs: %m"); /* where it had no words */
}
