/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What bo.c, vm.c, sdma.c and the render node's files share among themselves.
 */
#ifndef KFDSIM_DRM_H
#define KFDSIM_DRM_H

#include <linux/dma-fence.h>
#include <linux/idr.h>
#include <linux/kref.h>
#include <drm/drm_file.h>

#include "drm_uapi.h"
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

/* AMDGPU_GEM metadata of a BO. */
struct sim_bo_metadata {
	u64 tiling_info;
	u64 flags;
	u32 size;
	u32 data[64];
};

/* ---- drm_drv.c: an open render (or primary) node ---- */

struct sim_drm_file {
	struct sim_gpu *gpu;
	struct sim_vm *vm;
	struct mutex lock;
	struct idr ctxs;	/* struct sim_ctx, under lock */
	struct idr bo_lists;	/* struct sim_bo_list, under lock */
	struct xarray handles;	/* number of GEM handles, by address of the BO */
};

static inline struct sim_drm_file *to_sim_drm_file(struct drm_file *file)
{
	return file->driver_priv;
}

/* What every ioctl handler looks like. */
#define SIM_IOCTL(name) int name(struct drm_device *ddev, void *data, struct drm_file *file)

/* Absolute time in ns (CLOCK_MONOTONIC; negative: for ever) to jiffies from now. */
unsigned long sim_timeout(u64 abs_ns);

/* ---- drm_gem.c, drm_handles.c ---- */

SIM_IOCTL(sim_ioctl_gem_create);
SIM_IOCTL(sim_ioctl_gem_mmap);
SIM_IOCTL(sim_ioctl_gem_userptr);
SIM_IOCTL(sim_ioctl_gem_metadata);
SIM_IOCTL(sim_ioctl_gem_wait_idle);
SIM_IOCTL(sim_ioctl_gem_va);
SIM_IOCTL(sim_ioctl_gem_op);
SIM_IOCTL(sim_ioctl_gem_list_handles);
SIM_IOCTL(sim_ioctl_gem_change_handle);

/* GEM_CREATE flags that the simulated kernel lets user space set. */
u64 sim_gem_settable_flags(void);
/* All flags of a BO: since 6.12 the kernel sets one on its own, on GTT, too. */
u64 sim_gem_flags(const struct sim_bo *bo);

/* Called when a file gets or loses a handle. */
int sim_gem_open(struct drm_gem_object *obj, struct drm_file *file);
void sim_gem_close(struct drm_gem_object *obj, struct drm_file *file);

/* ---- drm_info.c ---- */

SIM_IOCTL(sim_ioctl_info);

/* ---- drm_ring.c: engines that execute jobs ---- */

/*
 * A job that faults, meets an unknown packet or polls for longer than SIM_JOB_TIMEOUT_MS ends like one that a
 * GPU reset got rid of: one line in the log, its fence signals with -ETIME, its context is guilty. From then on
 * CS in that context gives -ECANCELED, WAIT_CS on the ring -ETIME, CTX QUERY_STATE2 the flags RESET and GUILTY.
 * Jobs of the context that were queued behind it signal with -ECANCELED, those of a killed process with -ESRCH.
 * Other contexts and files are not touched.
 */
#define SIM_JOB_TIMEOUT_MS 10000

#define SIM_CTX_RINGS 2	      /* DMA rings that a context has */
#define SIM_CTX_FENCES 32     /* per ring, so many of the last jobs can be waited for */
#define SIM_JOB_MAX_IBS 49
#define SIM_IB_MAX_DW 0xfffff

struct sim_ring;

/* A context's queue: its jobs run one after the other, on whichever engine. */
struct sim_entity {
	struct sim_ring *ring;	/* that its last job was given to; under the GPU's queue lock */
	unsigned int queued;	/* jobs not yet done; same lock */
	int error;		/* of a job that failed: every later use of the entity gets it */
	u64 context;		/* of its fences */
	u64 sequence;		/* of the last job, from 1; under ctx->lock like the fences */
	struct dma_fence *fences[SIM_CTX_FENCES];
};

struct sim_ctx {
	struct kref ref;
	struct mutex lock;
	bool guilty;
	bool reset_told; /* by QUERY_STATE */
	struct sim_entity entities[SIM_CTX_RINGS];
};

struct sim_ib {
	u64 va;
	u32 dwords;
};

struct sim_job {
	struct list_head link;	/* in the ring */
	struct sim_ctx *ctx;
	struct sim_entity *entity;
	struct sim_vm *vm;
	struct sim_ring *ring;
	struct dma_fence *fence;
	const struct sim_drm_file *owner; /* only compared: whose jobs to drop when it is killed */
	bool dropped;
	struct xarray deps;	/* what has to signal first */
	u32 nr_deps;
	atomic_t pending;	/* deps that have not, and 1 while the job is being submitted */
	struct sim_ib *ibs;
	u32 nr_ibs;
	struct sim_bo_list *bos; /* referenced until the job is done; may be NULL */
	struct sim_bo *user_fence;
	u32 user_fence_offset;
};

int sim_rings_init(struct sim_gpu *gpu);
void sim_rings_fini(struct sim_gpu *gpu);
unsigned int sim_rings_count(struct sim_gpu *gpu);

/* Takes references of what it is given. */
struct sim_job *sim_job_new(struct sim_drm_file *f, struct sim_ctx *ctx, struct sim_entity *entity);
/* For jobs that were not submitted. */
void sim_job_free(struct sim_job *job);
/* The job waits for @fence (not NULL; takes a reference if it keeps it). */
int sim_job_add_dep(struct sim_job *job, struct dma_fence *fence);
/*
 * Publishes the job's fence in its entity and in the BOs' reservations and hands the job to an engine. Takes
 * over the job, also when it fails. @ret_fence: with a reference for the caller.
 */
int sim_job_submit(struct sim_job *job, u64 *ret_sequence, struct dma_fence **ret_fence);
/* A file is being closed: its jobs get @patience_ms to be done, then they are dropped. None is left after this. */
void sim_rings_close_file(struct sim_gpu *gpu, const struct sim_drm_file *owner, unsigned int patience_ms);

/* ---- drm_ctx.c: contexts, BO lists, waiting ---- */

#define SIM_BO_LIST_MAX (128 * 1024)

struct sim_bo_list {
	struct kref ref;
	struct xarray set; /* of the same BOs, by address */
	u32 nr;
	struct sim_bo *bos[];
};

SIM_IOCTL(sim_ioctl_ctx);
SIM_IOCTL(sim_ioctl_bo_list);
SIM_IOCTL(sim_ioctl_wait_cs);
SIM_IOCTL(sim_ioctl_wait_fences);
SIM_IOCTL(sim_ioctl_fence_to_handle);

struct sim_ctx *sim_ctx_get(struct sim_drm_file *f, u32 id);
void sim_ctx_put(struct sim_ctx *ctx);
/* The context's queue for an engine's ring as user space names it. -EINVAL; the error of an earlier job. */
int sim_ctx_entity(struct sim_ctx *ctx, u32 ip_type, u32 ip_instance, u32 ring, struct sim_entity **ret);
/* The fence of a job, NULL when it has long been done, -EINVAL when there was no such job. */
struct dma_fence *sim_ctx_fence(struct sim_ctx *ctx, struct sim_entity *entity, u64 sequence);
/* @in as user space gave it to BO_LIST or in a chunk. */
int sim_bo_list_create(struct drm_file *file, const struct drm_amdgpu_bo_list_in *in, struct sim_bo_list **ret);
struct sim_bo_list *sim_bo_list_get(struct sim_drm_file *f, u32 id);
void sim_bo_list_put(struct sim_bo_list *list);
/* Everything that a closed file has left. */
void sim_ctx_file_fini(struct sim_drm_file *f);

/* ---- drm_cs.c ---- */

SIM_IOCTL(sim_ioctl_cs);

#endif
