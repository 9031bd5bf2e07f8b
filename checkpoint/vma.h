/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mappings of device files: what the dump wants of them, and what criu is told to map at
 * restore.
 */
#ifndef CHECKPOINT_VMA_H
#define CHECKPOINT_VMA_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/gpus.h"
#include "host/host.h"
#include "image/image.h"
#include "kernel/kernel.h"
#include "share/share.h"

/* A process' doorbells on one GPU. */
#define VMA_DOORBELL_PAGES 2

/* ---- which GPU and BO; pure ---- */

/* Whether a mapping of /dev/kfd names a GPU in its offset: doorbells and MMIO do. */
bool vma_names_gpu(const struct device_vma *vma);

/*
 * The user gpu id of the GPU that a doorbell or MMIO mapping is of, 0 when it is none of the process'. Kernels differ
 * in which id the offset holds: @by_user decides where both readings give a GPU.
 */
uint32_t vma_kfd_gpu(const struct device_vma *vma, const struct kfd_state *state, bool by_user);

/* The BOs with contents, in the order in which they are searched; {} to begin with. */
struct vma_bos {
	const struct bo **list; /* into the state, which has to stay */
	size_t nr;
};

/* 0 or -ENOMEM without a message. */
int vma_bos_sort(const struct kfd_state *state, struct vma_bos *ret);
void vma_bos_done(struct vma_bos *bos);

/*
 * The BO with contents on GPU @user_gpu_id that the whole mapping of a render node is of,
 * at whatever place in it. NULL when there is none.
 */
const struct bo *vma_bo(const struct device_vma *vma, const struct vma_bos *bos, uint32_t user_gpu_id);

/* The mapping's file offset in the restored BO. */
static inline uint64_t vma_restored_offset(const struct device_vma *vma, const struct bo *bo)
{
	return bo->restored_offset + (vma->offset - bo->offset);
}

/*
 * Describes a mapping of which only path, address and offset are known. False when the
 * path is not that of a device of ours.
 */
bool vma_from_path(const char *path, uint64_t start, uint64_t offset, struct device_vma *ret);

/* ---- dump ---- */

/* 1 for a mapping of another driver's render node, which is another plugin's; 0 for ours; -errno after an error line. */
int vma_is_foreign(const struct topology *machine, const struct device_vma *vma);

/*
 * Puts the device mappings of task @pid into *image, with the GPU of each, and refuses those
 * that could not be made again. image->state and image->nodes are those of the process;
 * @machine: all nodes. 0, or -errno after an error line; image->vmas is the caller's in either case.
 */
int vma_save(pid_t pid, const struct topology *machine, struct kfd_rules rules, struct kfd_image *image);

/* ---- restore ---- */

/* What a restored task knows when its mappings are made. */
struct vma_context {
	const struct kfd_image *image; /* NULL: none yet */
	const struct vma_bos *bos;     /* of the image */
	const struct gpus *gpus;
	const struct share_task *share;
	int kfd_token; /* the file of /dev/kfd; -1: none */
	struct kfd_rules rules;
	struct criu_traits traits;
};

/* Whether the mapping is one of ours; if so, *ret describes it. */
bool vma_find(const struct vma_context *context, const char *path, uint64_t start, uint64_t offset,
	      struct device_vma *ret);

/*
 * Where the mapping has to be mapped from now: *ret_fd is an fd that criu takes. 0, or
 * -errno after an error line that names @path.
 */
int vma_restore(const struct vma_context *context, const char *path, const struct device_vma *vma,
		uint64_t *ret_offset, int *ret_fd);

#endif
