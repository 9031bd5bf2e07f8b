// SPDX-License-Identifier: GPL-2.0-only
/* The extra "discard": VRAM that need not be saved, but for both its ends (docs/discard.md). */
#include <errno.h>
#include <inttypes.h>

#include "../../docs/examples/discard/amdgpu_discard.h"
#include "gpujob_extra.h"
#include "pattern.h"
#include "report.h"

#define BYTES	(8u * KFD_PAGE_SIZE)
#define END	100u		     /* bytes at each end that are needed */
#define BLOCK	4096u		     /* of a pages file: up to so much more is saved */
#define INNER	(END + BLOCK)	     /* from here on nothing is saved */
#define NR_INNER (BYTES - 2 * INNER) /* bytes */

static struct kfd_bo bo;
static uint32_t nr_lost;

static int fill(struct job_gpu *gpu)
{
	pattern_fill(gpu->window.cpu, BYTES, gpu->seed + 0x6000, 0);
	return job_gpu_copy(gpu, bo.va, gpu->window.va, BYTES);
}

static int discard_setup(struct job_gpu *gpu)
{
	struct amdgpu_discard *table = amdgpu_discard_new();
	int err;

	if (!table)
		return report(errno, "table of what is not needed: %m");
	err = kfd_bo_alloc(gpu->kfd, gpu->gpu, KFD_MEMORY_VRAM, BYTES, &bo);
	if (err)
		return err;
	amdgpu_discard_set(table, &(struct amdgpu_discard_range){ bo.va + END, BYTES - 2 * END }, 1);
	return fill(gpu);
}

static bool is_zero(const uint8_t *bytes, size_t nr)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, nr - 1);
}

/* What was needed is there, and of the rest all or nothing. */
static int discard_check(struct job_gpu *gpu)
{
	const uint8_t *found = gpu->window.cpu;
	struct pattern_diff diff;
	int err = job_gpu_copy(gpu, gpu->window.va, bo.va, BYTES);
	bool lost = !err && is_zero(found + INNER, NR_INNER);

	if (err)
		return err;
	if (!pattern_check(found, lost ? END : BYTES, gpu->seed + 0x6000, 0, &diff) ||
	    !pattern_check(found + BYTES - END, END, gpu->seed + 0x6000, BYTES - END, &diff))
		return report(EILSEQ, "memory that is partly not needed: byte %lu is %#04x, want %#04x",
			      (unsigned long)diff.offset, diff.got, diff.want);
	nr_lost += lost;
	return lost ? fill(gpu) : 0;
}

static int discard_teardown(struct job_gpu *gpu)
{
	return kfd_bo_free(gpu->kfd, &bo);
}

uint32_t job_discard_value(void)
{
	return nr_lost;
}

const struct job_extra job_extra_discard = { "discard", discard_setup, NULL, discard_check, discard_teardown };
