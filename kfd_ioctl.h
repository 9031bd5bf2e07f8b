/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of the KFD's user-space ABI that the plugin speaks, by number: GET_VERSION, an event to see what kernel it is,
 * CREATE_QUEUE and its end, RUNTIME_ENABLE, GET_PROCESS_APERTURES_NEW for its count, what imports buffers,
 * and CRIU_OP.
 *
 * Written down here because the installed <linux/kfd_ioctl.h> may be older than Linux
 * 5.18, and includes <drm/drm.h>, which distributions put elsewhere. Names, numbers and
 * layouts are those of include/uapi/linux/kfd_ioctl.h; only 64-bit callers exist.
 */
#ifndef AMDGPU_PLUGIN_KFD_IOCTL_H
#define AMDGPU_PLUGIN_KFD_IOCTL_H

#include <linux/ioctl.h>
#include <stdint.h>

struct kfd_ioctl_get_version_args {
	uint32_t major_version, minor_version; /* out */
};
_Static_assert(sizeof(struct kfd_ioctl_get_version_args) == 8, "ABI");
#define AMDKFD_IOC_GET_VERSION _IOR('K', 0x01, struct kfd_ioctl_get_version_args)

#define KFD_IOC_QUEUE_TYPE_SDMA	       1
#define KFD_IOC_QUEUE_TYPE_COMPUTE_AQL 2

/* As it was up to Linux 6.10: later ones take a further field for none. */
struct kfd_ioctl_create_queue_args {
	uint64_t ring_base_address;
	uint64_t write_pointer_address;
	uint64_t read_pointer_address;
	uint64_t doorbell_offset; /* out */
	uint32_t ring_size;
	uint32_t gpu_id;
	uint32_t queue_type;
	uint32_t queue_percentage;
	uint32_t queue_priority;
	uint32_t queue_id; /* out */
	uint64_t eop_buffer_address;
	uint64_t eop_buffer_size;
	uint64_t ctx_save_restore_address;
	uint32_t ctx_save_restore_size;
	uint32_t ctl_stack_size;
};
_Static_assert(sizeof(struct kfd_ioctl_create_queue_args) == 88, "ABI");
#define AMDKFD_IOC_CREATE_QUEUE _IOWR('K', 0x02, struct kfd_ioctl_create_queue_args)

struct kfd_ioctl_destroy_queue_args {
	uint32_t queue_id;
	uint32_t pad;
};
_Static_assert(sizeof(struct kfd_ioctl_destroy_queue_args) == 8, "ABI");
#define AMDKFD_IOC_DESTROY_QUEUE _IOWR('K', 0x03, struct kfd_ioctl_destroy_queue_args)

#define KFD_IOC_EVENT_SIGNAL 0

struct kfd_ioctl_create_event_args {
	uint64_t event_page_offset;
	uint32_t event_trigger_data;
	uint32_t event_type;
	uint32_t auto_reset;
	uint32_t node_id;
	uint32_t event_id; /* out */
	uint32_t event_slot_index;
};
_Static_assert(sizeof(struct kfd_ioctl_create_event_args) == 32, "ABI");
#define AMDKFD_IOC_CREATE_EVENT _IOWR('K', 0x08, struct kfd_ioctl_create_event_args)

struct kfd_ioctl_destroy_event_args {
	uint32_t event_id;
	uint32_t pad;
};
_Static_assert(sizeof(struct kfd_ioctl_destroy_event_args) == 8, "ABI");
#define AMDKFD_IOC_DESTROY_EVENT _IOW('K', 0x09, struct kfd_ioctl_destroy_event_args)

#define KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK 1

struct kfd_ioctl_runtime_enable_args {
	uint64_t r_debug;
	uint32_t mode_mask;
	uint32_t capabilities_mask; /* out */
};
_Static_assert(sizeof(struct kfd_ioctl_runtime_enable_args) == 16, "ABI");
#define AMDKFD_IOC_RUNTIME_ENABLE _IOWR('K', 0x25, struct kfd_ioctl_runtime_enable_args)

/* The beginning of a compute queue's save area, which the program fills. */
struct kfd_context_save_area_header {
	uint32_t control_stack_offset, control_stack_size, wave_state_offset, wave_state_size;
	uint32_t debug_offset, debug_size;
	uint64_t err_payload_addr;
	uint32_t err_event_id;
	uint32_t reserved1;
};
_Static_assert(sizeof(struct kfd_context_save_area_header) == 40, "ABI");

struct kfd_ioctl_get_process_apertures_new_args {
	uint64_t apertures;    /* array of num_of_nodes */
	uint32_t num_of_nodes; /* 0: asks how many there are */
	uint32_t pad;
};
_Static_assert(sizeof(struct kfd_ioctl_get_process_apertures_new_args) == 16, "ABI");
#define AMDKFD_IOC_GET_PROCESS_APERTURES_NEW _IOWR('K', 0x14, struct kfd_ioctl_get_process_apertures_new_args)

struct kfd_ioctl_acquire_vm_args {
	uint32_t drm_fd;
	uint32_t gpu_id;
};
_Static_assert(sizeof(struct kfd_ioctl_acquire_vm_args) == 8, "ABI");
#define AMDKFD_IOC_ACQUIRE_VM _IOW('K', 0x15, struct kfd_ioctl_acquire_vm_args)

struct kfd_ioctl_alloc_memory_of_gpu_args {
	uint64_t va_addr;
	uint64_t size;
	uint64_t handle;	   /* out */
	uint64_t mmap_offset; /* out: of mappings of the render node; in: address of user memory */
	uint32_t gpu_id;
	uint32_t flags;
};
_Static_assert(sizeof(struct kfd_ioctl_alloc_memory_of_gpu_args) == 40, "ABI");
#define AMDKFD_IOC_ALLOC_MEMORY_OF_GPU _IOWR('K', 0x16, struct kfd_ioctl_alloc_memory_of_gpu_args)

struct kfd_ioctl_free_memory_of_gpu_args {
	uint64_t handle;
};
_Static_assert(sizeof(struct kfd_ioctl_free_memory_of_gpu_args) == 8, "ABI");
#define AMDKFD_IOC_FREE_MEMORY_OF_GPU _IOW('K', 0x17, struct kfd_ioctl_free_memory_of_gpu_args)

struct kfd_ioctl_map_memory_to_gpu_args {
	uint64_t handle;
	uint64_t device_ids_array_ptr; /* uint32_t gpu_id[n_devices] */
	uint32_t n_devices;
	uint32_t n_success; /* in, out */
};
_Static_assert(sizeof(struct kfd_ioctl_map_memory_to_gpu_args) == 24, "ABI");
#define AMDKFD_IOC_MAP_MEMORY_TO_GPU _IOWR('K', 0x18, struct kfd_ioctl_map_memory_to_gpu_args)
#define AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU _IOWR('K', 0x19, struct kfd_ioctl_map_memory_to_gpu_args)

struct kfd_ioctl_get_dmabuf_info_args {
	uint64_t size; /* out */
	uint64_t metadata_ptr;
	uint32_t metadata_size; /* in, out */
	uint32_t gpu_id;	/* out: actual gpu id */
	uint32_t flags;		/* out */
	uint32_t dmabuf_fd;
};
_Static_assert(sizeof(struct kfd_ioctl_get_dmabuf_info_args) == 32, "ABI");
#define AMDKFD_IOC_GET_DMABUF_INFO _IOWR('K', 0x1C, struct kfd_ioctl_get_dmabuf_info_args)

struct kfd_ioctl_import_dmabuf_args {
	uint64_t va_addr;
	uint64_t handle; /* out */
	uint32_t gpu_id;
	uint32_t dmabuf_fd;
};
_Static_assert(sizeof(struct kfd_ioctl_import_dmabuf_args) == 24, "ABI");
#define AMDKFD_IOC_IMPORT_DMABUF _IOWR('K', 0x1D, struct kfd_ioctl_import_dmabuf_args)

enum kfd_criu_op {
	KFD_CRIU_OP_PROCESS_INFO,
	KFD_CRIU_OP_CHECKPOINT,
	KFD_CRIU_OP_UNPAUSE,
	KFD_CRIU_OP_RESTORE,
	KFD_CRIU_OP_RESUME,
};

struct kfd_criu_device_bucket {
	uint32_t user_gpu_id;	/* by which the process knows the GPU */
	uint32_t actual_gpu_id; /* of this machine */
	uint32_t drm_fd;	/* restore only */
	uint32_t pad;
};
_Static_assert(sizeof(struct kfd_criu_device_bucket) == 16, "ABI");

struct kfd_criu_bo_bucket {
	uint64_t addr;
	uint64_t size;
	uint64_t offset;	  /* of mappings of the device file, as dumped */
	uint64_t restored_offset; /* as restored */
	uint32_t gpu_id;	  /* user gpu id */
	uint32_t alloc_flags;
	uint32_t dmabuf_fd; /* 0xffffffff: none */
	uint32_t pad;
};
_Static_assert(sizeof(struct kfd_criu_bo_bucket) == 48, "ABI");

struct kfd_ioctl_criu_args {
	uint64_t devices; /* struct kfd_criu_device_bucket[num_devices] */
	uint64_t bos;	  /* struct kfd_criu_bo_bucket[num_bos] */
	uint64_t priv_data;
	uint64_t priv_data_size;
	uint32_t num_devices;
	uint32_t num_bos;
	uint32_t num_objects;
	uint32_t pid;
	uint32_t op;
};
_Static_assert(sizeof(struct kfd_ioctl_criu_args) == 56, "ABI");
#define AMDKFD_IOC_CRIU_OP _IOWR('K', 0x22, struct kfd_ioctl_criu_args)

struct kfd_ioctl_get_available_memory_args {
	uint64_t available;
	uint32_t gpu_id;
	uint32_t pad;
};
_Static_assert(sizeof(struct kfd_ioctl_get_available_memory_args) == 16, "ABI");
#define AMDKFD_IOC_AVAILABLE_MEMORY _IOWR('K', 0x23, struct kfd_ioctl_get_available_memory_args)

/* kfd_criu_bo_bucket.alloc_flags */
#define KFD_IOC_ALLOC_MEM_FLAGS_VRAM         (1u << 0)
#define KFD_IOC_ALLOC_MEM_FLAGS_GTT          (1u << 1)
#define KFD_IOC_ALLOC_MEM_FLAGS_USERPTR      (1u << 2)
#define KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL     (1u << 3)
#define KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP   (1u << 4)
#define KFD_IOC_ALLOC_MEM_FLAGS_CONTIGUOUS   (1u << 23)
#define KFD_IOC_ALLOC_MEM_FLAGS_EXT_COHERENT (1u << 24)
#define KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED     (1u << 25)
#define KFD_IOC_ALLOC_MEM_FLAGS_COHERENT     (1u << 26)
#define KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC       (1u << 29)
#define KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE   (1u << 30)
#define KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE     (1u << 31)

#endif
