/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A stand-in for libdrm_amdgpu, linked instead of it: the functions that the content
 * engine calls, with GPUs that execute SDMA packets by memcpy and are strict about it.
 *
 * memfds serve as dma-bufs and as render nodes; the same file is the same GPU, as libdrm
 * has it. Configuration is global: one test at a time.
 */
#ifndef UNIT_FAKE_DRM_H
#define UNIT_FAKE_DRM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FAKE_DRM_MAX_RINGS 4

struct fake_drm_config {
	uint32_t family_id;	 /* 0 = AMDGPU_FAMILY_AI */
	uint32_t rings;		 /* bit mask of DMA rings */
	unsigned int delay_us;	 /* each submission takes at least this long */
	uint32_t late_rings;	 /* bit mask: these alone, and they copy only then */
	double bytes_per_second; /* what a ring moves at most, 0 = as fast as it can */
	unsigned int hang;	 /* the n-th submission (from 1) never ends */
	uint64_t reset;		 /* what contexts say of resets, AMDGPU_CTX_QUERY2_FLAGS_ */
	bool idle;		 /* packets are not executed: what is measured then is everything else */
	unsigned int fail_call;	 /* the n-th call (from 1) fails */
	int fail_err;		 /* with this, a negative number */
	/* Where a dma-buf's memory is mapped for good; unless set, and where it is NULL, importing maps it. */
	void *(*memory_of)(int dmabuf_fd);
	/* Whether the GPU of a render node may import a dma-buf; unless set, all may. */
	bool (*may_import)(ino_t render_node, int dmabuf_fd);
	/* Is told of the caller's memory that a GPU uses from now on. */
	void (*registers)(void *cpu, uint64_t size);
};

/* Forgets everything of the test before; all objects have to be gone. */
void fake_drm_begin(const struct fake_drm_config *config);

unsigned int fake_drm_calls(void);	/* so far, all functions together */
const char *fake_drm_failed_call(void); /* the one that was made to fail; NULL = none yet */
size_t fake_drm_live_objects(void);	/* devices, contexts, BOs, ranges, mappings, lists that exist */
size_t fake_drm_peak_mapped(void);	/* most GPU mappings at one time */
unsigned int fake_drm_submissions(void);
unsigned int fake_drm_rings_used(void); /* bit mask */
uint64_t fake_drm_user_pages_listed(void); /* in all lists of BOs */
uint64_t fake_drm_fill_bytes(void);	/* written by constant fill packets */
uint64_t fake_drm_copy_bytes(void);	/* written by copy packets */
/* The first thing done that hardware or kernel would not take, in words; NULL = none. */
const char *fake_drm_violation(void);

/* Greater than 0 in a thread that is inside of the stand-in: wrapped system calls let these through. */
extern _Thread_local int fake_drm_depth;

/* Executes an IB of @nr_dw dwords between host addresses, without any of the above. 0 or -EINVAL. For packet tests. */
int fake_drm_execute(const uint32_t *dw, size_t nr_dw);

#endif
