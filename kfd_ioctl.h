/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The KFD's user-space ABI: the installed <linux/kfd_ioctl.h> and what the plugin
 * needs to know about the values in it. No ioctl newer than KFD 1.8 is used.
 */
#ifndef AMDGPU_PLUGIN_KFD_IOCTL_H
#define AMDGPU_PLUGIN_KFD_IOCTL_H

#include <linux/kfd_ioctl.h>
#include <stdint.h>

/* CRIU_OP copies VRAM and GTT BOs by dma-buf since this interface version (Linux 5.18). */
#define KFD_MIN_MAJOR 1
#define KFD_MIN_MINOR 8

/* A BO bucket without a dma-buf. */
#define KFD_NO_FD 0xffffffffu

/*
 * File offsets of mappings of /dev/kfd: bits 63:62 say what is mapped, bits 61:46
 * hold a gpu id (amdkfd/kfd_priv.h of Linux).
 */
#define KFD_MMAP_TYPE_SHIFT 62
#define KFD_MMAP_GPU_SHIFT  46
#define KFD_MMAP_GPU_MASK   (0xffffull << KFD_MMAP_GPU_SHIFT)

enum kfd_mmap_type {
	KFD_MMAP_TYPE_MMIO = 0,
	KFD_MMAP_TYPE_RESERVED = 1,
	KFD_MMAP_TYPE_EVENTS = 2,
	KFD_MMAP_TYPE_DOORBELL = 3,
};

static inline enum kfd_mmap_type kfd_mmap_type(uint64_t offset)
{
	return (enum kfd_mmap_type)(offset >> KFD_MMAP_TYPE_SHIFT);
}

static inline uint32_t kfd_mmap_gpu_id(uint64_t offset)
{
	return (offset & KFD_MMAP_GPU_MASK) >> KFD_MMAP_GPU_SHIFT;
}

static inline uint64_t kfd_mmap_with_gpu_id(uint64_t offset, uint32_t gpu_id)
{
	return (offset & ~KFD_MMAP_GPU_MASK) | ((uint64_t)gpu_id << KFD_MMAP_GPU_SHIFT);
}

#endif
