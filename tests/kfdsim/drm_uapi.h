/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ABI of the render nodes that the running kernel's <drm/amdgpu_drm.h> may
 * lack (Linux 6.1 lacks all of it, 6.12 most), under names of our own.
 */
#ifndef KFDSIM_DRM_UAPI_H
#define KFDSIM_DRM_UAPI_H

#include <linux/types.h>
#include <drm/amdgpu_drm.h>

/* GEM_VA with timeline fields (40 bytes before). */
struct sim_gem_va {
	__u32 handle;
	__u32 pad;
	__u32 operation;
	__u32 flags;
	__u64 va_address;
	__u64 offset_in_bo;
	__u64 map_size;
	__u64 vm_timeline_point;
	__u32 vm_timeline_syncobj_out;
	__u32 num_syncobj_handles;
	__u64 input_fence_syncobj_handles;
};
static_assert(sizeof(struct sim_gem_va) == 64);

#define SIM_VM_PAGE_NOALLOC (1 << 9)

/* GEM_OP with the number of entries (16 bytes before). */
struct sim_gem_op {
	__u32 handle;
	__u32 op;
	__u64 value;
	__u32 num_entries;
	__u32 padding;
};
static_assert(sizeof(struct sim_gem_op) == 24);

#define SIM_GEM_OP_GET_MAPPING_INFO 2

struct sim_gem_vm_entry {
	__u64 addr;
	__u64 size;
	__u64 offset;
	__u64 flags;
};
static_assert(sizeof(struct sim_gem_vm_entry) == 32);

#define SIM_DRM_GEM_LIST_HANDLES 0x19

struct sim_gem_list_handles {
	__u64 entries;
	__u32 num_entries;
	__u32 padding;
};
static_assert(sizeof(struct sim_gem_list_handles) == 16);

#define SIM_GEM_LIST_HANDLES_IS_IMPORT 1

struct sim_gem_list_handles_entry {
	__u32 gem_handle;
	__u32 flags;
	__u64 size;
	__u64 preferred_domains;
	__u64 alloc_flags;
	__u64 alignment;
};
static_assert(sizeof(struct sim_gem_list_handles_entry) == 40);

/* A number of the DRM core. */
#define SIM_DRM_NR_GEM_CHANGE_HANDLE 0xd2

struct sim_gem_change_handle {
	__u32 handle;
	__u32 new_handle;
};

/* GEM_CREATE flags younger than 6.1. */
#define SIM_GEM_CREATE_DISCARDABLE  (1 << 12)
#define SIM_GEM_CREATE_COHERENT	    (1 << 13)
#define SIM_GEM_CREATE_UNCACHED	    (1 << 14)
#define SIM_GEM_CREATE_EXT_COHERENT (1 << 15)
#define SIM_GEM_CREATE_GFX12_DCC    (1 << 16)

/* INFO queries and ids that are younger than 6.1. */
#define SIM_INFO_MAX_IBS	 0x22
#define SIM_INFO_GPUVM_FAULT	 0x23
#define SIM_FAMILY_GC_12_0_0	 152
#define SIM_HW_IP_NUM		 10
#define SIM_CTX_PRIORITY_UNSET	 (-2048)

struct sim_info_gpuvm_fault {
	__u64 addr;
	__u32 status;
	__u32 vmhub;
};

/* What DEV_INFO ends with; the part before it is struct drm_amdgpu_info_device as of Linux 5.10. */
#define SIM_DEV_INFO_BYTES	      440
#define SIM_DEV_INFO_PCIE_GEN	      132
#define SIM_DEV_INFO_MIN_ENGINE_CLOCK 368
#define SIM_DEV_INFO_MIN_MEMORY_CLOCK 376

/* CS chunks that not every header has. */
#define SIM_CHUNK_ID_CP_GFX_SHADOW 0x0a

#endif
