/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of a process on its GPUs: what the kernel gives and takes, and what the plugin knows of each BO besides. */
#ifndef KERNEL_STATE_H
#define KERNEL_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "amdgpu_plugin_topology.h"
#include "kfd_ioctl.h"

/* A BO's handle: its GPU, as the process knows it, and its number there. */
static inline uint64_t kfd_handle(uint32_t gpu_id, uint32_t number)
{
	return (uint64_t)gpu_id << 32 | number;
}

/* A BO without a dma-buf, a device without an open file. */
#define KFD_NO_FD (-1)

/* What a buffer is to the process. */
enum kfd_bo_kind {
	KFD_BO_OWN,    /* of the KFD; RESTORE makes it */
	KFD_BO_IMPORT, /* of the KFD; imported from who owns the buffer */
	KFD_BO_GEM,    /* not of the KFD: an object of a render node, which the process owns */
	KFD_BO_REF,    /* not of the KFD: the process has handles of another one's buffer */
	KFD_NR_BO_KINDS,
};

/* The bytes that a program has attached to a BO (IPC tokens, tiling). */
#define KFD_METADATA_MAX 256u

/* What holds together the BOs, handles and files of several processes that are one buffer. */
struct kfd_share {
	uint32_t buffer; /* number of the buffer, the same in all images of a dump; 0: nothing else names it */
	enum kfd_bo_kind kind;
	uint64_t domains, flags, alignment; /* of a KFD_BO_GEM, as GEM_CREATE takes them; alignment in bytes */
	bool read_only;			    /* its dma-buf */
	uint64_t metadata_flags, tiling;    /* of a BO that is owned */
	uint32_t metadata_size;		    /* bytes */
	uint8_t metadata[KFD_METADATA_MAX];
};

struct bo {
	/* As in the kernel's bucket. */
	uint64_t addr, size; /* bytes */
	uint64_t offset;     /* of mappings, at dump */
	uint64_t restored_offset;
	uint32_t gpu_id; /* user gpu id */
	uint32_t alloc_flags;
	int dmabuf_fd; /* owned; KFD_NO_FD */
	/* Of its contents. */
	uint32_t crc32c;
	bool has_crc32c;
	struct kfd_share share; /* {}: nothing else names it */
};

/* The trap handler that a program has set on a GPU, to which the KFD's own jumps: its code and its memory. */
struct trap_handler {
	uint32_t gpu_id; /* user gpu id */
	uint64_t tba, tma;
};

struct filler;

/* The state of one process as the kernel gives and takes it. */
struct kfd_state {
	uint32_t pid; /* in its own pid namespace */
	uint32_t nr_devices, nr_objects;
	uint32_t nr_bos;     /* first those of the KFD, then objects of render nodes */
	uint32_t nr_records; /* how many are of the KFD, each with a record in priv_data */
	struct kfd_criu_device_bucket *devices;
	struct bo *bos;
	uint8_t *priv_data; /* opaque */
	uint64_t priv_size;
	struct filler *standins; /* what RESTORE needs besides (standin.h) */
	uint32_t nr_standins;
	struct trap_handler *traps; /* one for a GPU at most */
	uint32_t nr_traps;
};

/* Zeroed BOs without dma-bufs. NULL when memory is short. */
struct bo *kfd_bos_new(size_t nr);

/* Closes the BOs' dma-buf fds. */
void kfd_close_dmabufs(struct kfd_state *state);

/* Closes the BOs' dma-buf fds, frees everything and leaves *state empty. */
void kfd_state_done(struct kfd_state *state);

/* Whether a BO has contents, which means a dma-buf: VRAM or GTT. */
static inline bool kfd_bo_has_contents(const struct bo *bo)
{
	return bo->alloc_flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT);
}

/* Whether the contents of BO number @i are this process' to save and to restore. */
static inline bool kfd_state_owns(const struct kfd_state *state, size_t i)
{
	const struct bo *bo = &state->bos[i];

	return kfd_bo_has_contents(bo) && (bo->share.kind == KFD_BO_OWN || bo->share.kind == KFD_BO_GEM);
}

/* The same of the contents on one GPU. */
static inline bool kfd_state_owns_on(const struct kfd_state *state, size_t i, uint32_t user_id)
{
	return state->bos[i].gpu_id == user_id && kfd_state_owns(state, i);
}

/* The bytes of VRAM that a RESTORE makes on a GPU. @state NULL: not known, 0. */
uint64_t kfd_state_vram_needed(const struct kfd_state *state, uint32_t user_id);
/* The same for each of @nodes, by index. */
void kfd_state_vram_needs(const struct kfd_state *state, const struct topology *nodes, uint64_t *ret);

/* Whether anything else names one of the BOs. */
bool kfd_state_shares(const struct kfd_state *state);

/* Whether the address lies in a BO of the KFD. */
bool kfd_state_has_address(const struct kfd_state *state, uint64_t address);

/* Actual id of the GPU that the process calls @user_id; 0: it has none. */
uint32_t kfd_state_actual_gpu(const struct kfd_state *state, uint32_t user_id);

#endif
