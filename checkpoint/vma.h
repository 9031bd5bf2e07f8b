/* SPDX-License-Identifier: GPL-2.0-only */
/* Mappings of device files: of which GPU and BO they are, and where they are after a restore. Pure. */
#ifndef CHECKPOINT_VMA_H
#define CHECKPOINT_VMA_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/kernel.h"

/* A process' doorbells on one GPU. */
#define VMA_DOORBELL_PAGES 2

/* Whether a mapping of /dev/kfd names a GPU in its offset: doorbells and MMIO do. */
bool vma_names_gpu(const struct device_vma *vma);

/*
 * The user gpu id of the GPU that a doorbell or MMIO mapping is of, 0 when it is none of
 * the process'. Kernels differ in whose id the offset holds: @by_user decides where
 * both readings give a GPU.
 */
uint32_t vma_kfd_gpu(const struct device_vma *vma, const struct kfd_state *state, bool by_user);

/*
 * The BO with contents on GPU @user_gpu_id that the whole mapping of a render node is of,
 * at whatever place in it. NULL when there is none.
 */
const struct kfd_criu_bo_bucket *vma_bo(const struct device_vma *vma, const struct kfd_state *state,
					uint32_t user_gpu_id);

/* The mapping's file offset in the restored BO. */
static inline uint64_t vma_restored_offset(const struct device_vma *vma, const struct kfd_criu_bo_bucket *bo)
{
	return bo->restored_offset + (vma->offset - bo->offset);
}

/*
 * Describes a mapping of which only path, address and offset are known. False when the
 * path is not that of a device of ours.
 */
bool vma_from_path(const char *path, uint64_t start, uint64_t offset, struct device_vma *ret);

#endif
