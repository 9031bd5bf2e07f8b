/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What bo.c, vm.c, sdma.c and the render node's files share among themselves.
 */
#ifndef KFDSIM_DRM_H
#define KFDSIM_DRM_H

#include "sim.h"

/* ---- bo.c: page by page access, without copies in between ---- */

#define SIM_CURSOR_BATCH 16

/*
 * A position in a BO or in user memory. User pages are pinned a few at a time,
 * so a cursor lives only as long as one transfer. It holds no reference to the
 * BO or mm that it was made for.
 */
struct sim_cursor {
	struct sim_bo *bo;	/* SIM_BO_PAGES or foreign SIM_BO_IMPORT; NULL: user memory */
	struct mm_struct *mm;
	u64 base;		/* offset in the BO or user address */
	bool write;
	bool denied;		/* writing to read-only user memory */
	unsigned int nr_pinned;
	u64 pinned_addr;
	struct page *pinned[SIM_CURSOR_BATCH];
};

void sim_cursor_bo(struct sim_cursor *cur, struct sim_bo *bo, u64 offset, bool write);
void sim_cursor_user(struct sim_cursor *cur, struct mm_struct *mm, u64 addr, bool write);
/*
 * The page that holds byte @pos; @len bytes from there on will be wanted. A read
 * of memory that was never written gives NULL: zeroes. Valid until the next call.
 */
int sim_cursor_page(struct sim_cursor *cur, u64 pos, u64 len, struct page **ret);
/* True when byte @pos is still without a page and would read as zero. */
bool sim_cursor_is_hole(struct sim_cursor *cur, u64 pos);
void sim_cursor_done(struct sim_cursor *cur);

static inline unsigned int sim_cursor_in_page(struct sim_cursor *cur, u64 pos)
{
	return (cur->base + pos) & (PAGE_SIZE - 1);
}

/* Move bytes between a page and kernel memory; 4 and 8 aligned bytes in one access. @page NULL reads zeroes. */
void sim_page_read(struct page *page, unsigned int in_page, void *buf, size_t len);
void sim_page_write(struct page *page, unsigned int in_page, const void *buf, size_t len);

extern const struct drm_gem_object_funcs sim_bo_funcs;
struct drm_gem_object *sim_prime_import(struct drm_device *ddev, struct dma_buf *buf);

/* How many bytes of GTT the BOs of a GPU may have together. */
u64 sim_gpu_gtt_size(const struct sim_gpu *gpu);

/* ---- drm_gem.c: called when a render-node file gets or loses a handle ---- */

int sim_gem_open(struct drm_gem_object *obj, struct drm_file *file);
void sim_gem_close(struct drm_gem_object *obj, struct drm_file *file);

#endif
