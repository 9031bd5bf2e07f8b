/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of pages/ use of each other. */
#ifndef PAGES_INTERNAL_H
#define PAGES_INTERNAL_H

#include <stddef.h>

#include "amdgpu_plugin_util.h"
#include "pages/pages.h"

/* ---- data that a program does not need ---- */

/* Ranges, ascending and apart: of addresses, or of a pages file. */
struct discard {
	struct content_range *ranges;
	size_t nr;
};

/* What a process has declared; nothing where a table of its is wrong, with a warning. */
void discard_read(pid_t pid, struct discard *ret);
/* Adds to *ret what is in a BO whose data begin at @file_off; BOs by ascending offset. 0 or -ENOMEM. */
int discard_in_bo(const struct discard *discard, const struct bo *bo, uint64_t file_off, struct discard *ret);
void discard_done(struct discard *discard);

/* ---- the files of what a process has on one GPU ---- */

/*
 * Opens a pages file, and the GPU's render node anew; pages_close() in any case. 1; 0: there is nothing to fill, and no file;
 * -errno after fail(). Of a stream to fill, the pages file is not opened: pages_fd is negative.
 */
int pages_open(const struct gpu_process *process, size_t device, enum content_direction direction, struct content_gpu *gpu);
void pages_close(struct content_gpu *gpu);
/* The result where there is no pages file: 0, or -ENOENT after fail(). */
int pages_missing(const struct content_gpu *gpu);

/* ---- progress of a copy of buffer data, for people and programs (KFD_PROGRESS) ---- */

struct progress {
	const char *stage; /* "dump", "restore" or "resume" */
	int fd;		   /* -1: none */
};

/*
 * Opens the file, FIFO or device at @path, "" for none; /dev/stdout and /dev/stderr are those of the calling process.
 * Never waits: where the file cannot be opened at once, no progress is shown, with a warning.
 */
struct progress progress_open(const char *path, const char *stage);
void progress_close(struct progress *progress);

/*
 * Writes "STAGE gpu=ID done=BYTES total=BYTES rate=MBPS left=SECONDS", with "left=?" until something is copied. As
 * content_options.on_progress, @arg is a struct progress.
 */
void progress_report(void *arg, const struct content_gpu *gpu);

/* Options of the engine, without a source of more. */
struct content_options pages_options(const struct settings *settings, struct progress *progress, struct content_tally *tally);

#endif
