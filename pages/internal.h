/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of pages/ use of each other. */
#ifndef PAGES_INTERNAL_H
#define PAGES_INTERNAL_H

#include <stddef.h>

#include "amdgpu_plugin_util.h"
#include "pages/pages.h"

/* ---- contents that a program does not need ---- */

/* Ranges, ascending and apart: of addresses, or of a pages file. */
struct discard {
	struct content_range *ranges;
	size_t nr;
};

/* What a process has declared; nothing where a table of its is wrong, with a warning. */
void discard_read(pid_t pid, struct discard *ret);
/* Adds to *ret what is in a BO whose contents begin at @file_off; BOs by ascending offset. 0 or -ENOMEM. */
int discard_in_bo(const struct discard *discard, const struct bo *bo, uint64_t file_off, struct discard *ret);
void discard_done(struct discard *discard);

/* ---- a job of the worker ---- */

/*
 * What travels between a restoring task and the worker in criu's main process: a job with
 * its open files one way, log lines and a verdict the other.
 *
 * Sockets are of type SOCK_SEQPACKET and made by socketpair() in processes of one criu: both ends run this very code,
 * and there is no name that anybody else could connect to.
 */

/* Sends a copy of @fd. 0 or -errno. */
int wire_send_fd(int sock, int fd);

/*
 * Receives what wire_send_fd() sent. An fd that the caller owns; -ECONNRESET when the
 * other end is closed, -ECANCELED when @stop_fd becomes readable, or another -errno.
 */
int wire_recv_fd(int sock, int stop_fd);

/* Sends GPUs, their BOs as they are, and copies of all fds, in as many messages as it takes. 0 or -errno. */
int wire_send_job(int sock, const struct content_gpu *gpus, size_t nr_gpus);

/* Receives what wire_send_job() sent; errors as wire_recv_fd(), with nothing left open. */
int wire_recv_job(int sock, int stop_fd, struct content_gpu **ret_gpus, size_t *ret_nr);

/* Closes all files of a GPU that was received and frees its BOs; gpu->nr_bos is 0 afterwards. */
void wire_gpu_done(struct content_gpu *gpu);

/*
 * Tells the task that its job has arrived complete and is the worker's. 0, or -errno: the task will not know. Never waits.
 */
int wire_send_accepted(int sock);

/*
 * Waits for that. -errno, no message: the verdict when it came instead, -ECONNRESET when nothing came. Else 0, also after an
 * error of the call: then the worker may have accepted the job, and the two must never both copy; the verdict tells.
 */
int wire_recv_accepted(int sock);

/* Sends a line for the task's log. Never waits: a task that does not read loses lines. */
void wire_send_line(int sock, enum plugin_log_level level, const char *line);

/* Ends the job: @err is 0 or -errno with its words in @text. Never waits. */
void wire_send_verdict(int sock, int err, const char *text);

/*
 * Waits for the verdict and logs the lines that come before it. 0, -errno of the job
 * with its words, or another -errno, e.g. -ECONNRESET.
 */
int wire_recv_verdict(int sock);

/* ---- progress of a copy of contents, for people and programs (KFD_PROGRESS) ---- */

struct progress {
	const char *stage; /* "dump", "restore" or "resume" */
	int fd;		   /* -1: none */
};

/*
 * Opens the file, FIFO or device at @path, "" for none; /dev/stdout and /dev/stderr are
 * those of the calling process. Never fails and never waits: where the file cannot be opened
 * at once, no progress is shown, with a warning.
 */
struct progress progress_open(const char *path, const char *stage);
void progress_close(struct progress *progress);

/*
 * Writes one line for each GPU, all at once:
 *     STAGE gpu=ID done=BYTES total=BYTES rate=MBPS left=SECONDS
 * with "left=?" until something is copied. As content_options.on_progress, @arg is a
 * struct progress.
 */
void progress_report(void *arg, const struct content_gpu *gpus, size_t nr_gpus);

#endif
