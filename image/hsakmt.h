/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The two files that ROCm before 6.0 shares between all its processes: a piece of shared
 * memory and a semaphore. A restored process may have them mapped, and criu does not save
 * files: they are made again where they are missing. Nothing else needs them.
 */
#ifndef IMAGE_HSAKMT_H
#define IMAGE_HSAKMT_H

#include <stdint.h>

#define HSAKMT_FILE_MAX 4096 /* far more than any version has: 8 and 32 bytes */

struct hsakmt_file {
	uint32_t size; /* 0: the file was not there */
	uint32_t mode; /* permissions */
	uint32_t uid, gid;
	uint8_t data[HSAKMT_FILE_MAX];
};

struct hsakmt {
	struct hsakmt_file memory;
	struct hsakmt_file semaphore;
};

/* The first word of the shared memory. */
uint32_t hsakmt_magic(const struct hsakmt *hsakmt);

/* The files as they begin, for images that only say how large the memory was and what its first word is. */
void hsakmt_begin(uint32_t size, uint32_t magic, struct hsakmt *ret);

/*
 * Reads both files of the task whose root directory is @root ("/proc/PID/root"). What is not there, or is no such file,
 * is left out, the latter with a warning.
 */
void hsakmt_save(const char *root, struct hsakmt *ret);

/*
 * Makes those that are absent below @root ("/" in the task itself); each is there with all its
 * bytes at once, or not at all, also when several tasks do this at the same time. What fails
 * is a warning.
 */
void hsakmt_restore(const char *root, const struct hsakmt *hsakmt);

#endif
