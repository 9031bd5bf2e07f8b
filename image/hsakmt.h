/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The two files that ROCm before 6.0 shares between all its processes: a piece of shared
 * memory and a semaphore. A restored process may have them mapped, and criu does not save
 * files: they are made again where they are missing. Nothing else needs them.
 */
#ifndef IMAGE_HSAKMT_H
#define IMAGE_HSAKMT_H

#include <stdint.h>

#define HSAKMT_MAX_BYTES 4096 /* far more than any version has: 8 */

struct hsakmt {
	uint32_t bytes; /* of the shared memory; 0: it was not there */
	uint32_t magic; /* its first word */
};

/*
 * Looks for the memory of the task whose root directory is @root ("/proc/PID/root"). What is not there, or is no such
 * file, is left out, the latter with a warning.
 */
void hsakmt_save(const char *root, struct hsakmt *ret);

/*
 * Makes the files that are absent below @root ("/" in the task itself); each is there with all its bytes at once, or not
 * at all, also when several tasks do this at the same time. What fails is a warning.
 */
void hsakmt_restore(const char *root, const struct hsakmt *hsakmt);

#endif
