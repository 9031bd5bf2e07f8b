/* SPDX-License-Identifier: GPL-2.0-only */
/* The pages files of processes: which BO is in which file, and their copies. All functions: 0, or -errno after fail(). */
#ifndef PAGES_PAGES_H
#define PAGES_PAGES_H

#include <stdint.h>

#include "content/content.h"
#include "host/host.h"
#include "image/image.h"
#include "kernel/kernel.h"

/*
 * Saves the data of all BOs of all processes, whose dma-bufs are open, into one file for each process and GPU: those of
 * different GPUs at the same time. Sets the states' checksums. @tally: as in content.h.
 */
int pages_dump(struct gpu_process *const *processes, size_t nr_processes, const struct settings *settings,
	       struct content_tally *tally);

/* How many bytes pages_dump() would write for a process, at most: zeros take no room on a disk or in memory. */
uint64_t pages_bytes(const struct gpu_process *process);

/* Fills the BOs of processes of the caller from these files, and verifies the checksums that are known. */
int pages_fill(struct gpu_process *const *processes, size_t nr_processes, const struct settings *settings,
	       struct content_tally *tally);

/* A line about all of a dump or restore. @what was done with how many processes, and what has lasted @seconds. */
void pages_log_tally(const struct content_tally *tally, const char *what, size_t nr_processes, const char *lasting,
		     double seconds);

/* ---- BOs of restored tasks, which criu's main process fills ---- */

struct pages_filling;

/*
 * In criu's main process, before there are tasks. @settings is borrowed; @nr_gpus of the machine share its
 * max_buffer_size_bytes. @waits: pages_await() has to wait. NULL after fail() unless memory is short.
 */
struct pages_filling *pages_filling_new(const struct settings *settings, size_t nr_gpus, bool waits);
/* In criu's main process: ends what is being copied. Accepts NULL. */
void pages_filling_free(struct pages_filling *filling);

/*
 * In a task, with its dma-bufs open: opens the files in its namespaces, and keeps all in criu's store. What can be wrong with
 * the files is known before criu restores all else, unless they are streamed.
 */
int pages_hand_over(struct pages_filling *filling, const struct gpu_process *process);

/*
 * In a task that has handed over: waits until its BOs are filled; -ECANCELED where another one says why not. Where no thread of
 * criu's main process fills them yet, pages_filling_end() does so later.
 */
int pages_await(const struct pages_filling *filling);

/* In criu's main process, when tasks open their files: a thread begins to fill, unless files are streamed. */
void pages_filling_begin(struct pages_filling *filling);
/* In criu's main process, when all tasks have handed over: all is filled. */
int pages_filling_end(struct pages_filling *filling);
/* What was copied. */
const struct content_tally *pages_filling_tally(const struct pages_filling *filling);

#endif
