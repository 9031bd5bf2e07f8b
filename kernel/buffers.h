/* SPDX-License-Identifier: GPL-2.0-only */
/* Buffers of the KFD besides those of its CRIU ioctl: imports by dma-buf, their mappings, and what a dma-buf is. */
#ifndef KERNEL_BUFFERS_H
#define KERNEL_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * All: @kfd is a file of the calling process, gpu ids are those by which the process knows its GPUs, unless said
 * otherwise. 0 or -errno without a message.
 */

/* Makes a BO of a dma-buf, at GPU address @va (0: none). It takes the lowest free number of the GPU. */
int kfd_import_dmabuf(int kfd, uint32_t gpu_id, uint64_t va, int dmabuf_fd, uint64_t *ret_handle);

/* Maps a BO at its address on GPUs. */
int kfd_map(int kfd, uint64_t handle, const uint32_t *gpu_ids, uint32_t nr_gpus);

int kfd_free(int kfd, uint64_t handle);

/* The GPU, by its actual id, whose memory or system memory a dma-buf is. -EINVAL for one that is not of amdgpu. */
int kfd_dmabuf_gpu(int kfd, int dmabuf_fd, uint32_t *ret_gpu_id);

/* Whether programs can make dma-bufs of BOs (EXPORT_DMABUF: interface 1.12). */
bool kfd_can_export(int kfd);

#endif
