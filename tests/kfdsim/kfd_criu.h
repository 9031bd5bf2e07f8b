/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kfd_criu*.c share among themselves: the private data's records and how they travel. */
#ifndef KFDSIM_KFD_CRIU_H
#define KFDSIM_KFD_CRIU_H

#include <linux/fs.h>

#include "kfd.h"

#define KFD_CRIU_VERSION    1
#define KFD_CRIU_MAX_MAPPED 64
#define KFD_MEM_SHAREABLE   (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT)

enum kfd_criu_object {
	KFD_CRIU_QUEUE,
	KFD_CRIU_EVENT,
	KFD_CRIU_SVM_RANGE,
};

struct kfd_process_priv {
	u32 version;
	u32 xnack_mode;
};

struct kfd_device_priv {
	u64 reserved;
};

struct kfd_bo_priv {
	u64 user_addr;
	u32 idr_handle;
	u32 mapped_gpuids[KFD_CRIU_MAX_MAPPED]; /* user ids; 0 ends */
};

struct kfd_queue_priv {
	u32 object_type;
	u64 q_address, q_size;
	u64 read_ptr_addr, write_ptr_addr;
	u64 doorbell_off; /* unused */
	u64 eop_ring_buffer_address, ctx_save_restore_area_address;
	u32 gpu_id; /* user id */
	u32 type, format, q_id, priority, q_percent, doorbell_id, gws, sdma_id;
	u32 eop_ring_buffer_size, ctx_save_restore_area_size;
	u32 ctl_stack_size, mqd_size; /* of the bytes behind */
};

/* The private data in the caller's memory, and how far it was read or written. */
struct kfd_priv_cursor {
	u8 __user *base;
	u64 at;
	u64 size;
};

int kfd_priv_put(struct kfd_priv_cursor *cur, const void *data, size_t len);
int kfd_priv_peek(const struct kfd_priv_cursor *cur, void *data, size_t len);
int kfd_priv_get(struct kfd_priv_cursor *cur, void *data, size_t len);

/* dma-buf fds: made one by one, given to the caller all or none. */
struct kfd_fds {
	u32 nr;
	struct file **files; /* NULL where the BO has none */
	int *fds;
};

int kfd_fds_init(struct kfd_fds *fds, u32 max);
/* The fd for one BO, KFD_INVALID_FD for those that have none. */
int kfd_fds_add(struct kfd_fds *fds, struct kfd_bo *bo, u32 *ret_fd);
void kfd_fds_done(struct kfd_fds *fds, bool commit);

/* What lies at or below the base of the GPU's address space is the kernel's own. */
bool kfd_bo_is_saved(const struct kfd_bo *bo);
/* The offset of a BO in a bucket: with the actual gpu id for doorbells and the MMIO page. */
u64 kfd_criu_offset(const struct kfd_bo *bo);
/*
 * A queue's type in its record and back (KFD_QUEUE_TYPE_COUNT for one that the release does not know). The kernel saves
 * its own number, and XGMI's was 4 as long as there were queues for debuggers.
 */
u32 kfd_criu_queue_type(u32 type);
u32 kfd_queue_type_of_criu(u32 saved);
/* How many bytes follow a queue's header. */
void kfd_queue_payload(const struct kfd_queue *q, u32 *mqd_size, u32 *ctl_stack_size);

/* Under kfd_process.lock. */
int kfd_criu_save(struct kfd_process *p, struct kfd_ioctl_criu_args *args);
int kfd_criu_restore(struct kfd_process *p, struct kfd_ioctl_criu_args *args);

#endif
