/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The KFD's CRIU ioctl: pause a process, take its state, put the state into another process and let that run.
 */
#ifndef KERNEL_KFD_H
#define KERNEL_KFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "amdgpu_plugin_topology.h"
#include "kernel/hide.h"
#include "kfd_ioctl.h"

/* A BO's handle: its GPU, as the process knows it, and its number there. */
static inline uint64_t kfd_handle(uint32_t gpu_id, uint32_t number)
{
	return (uint64_t)gpu_id << 32 | number;
}

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
#define KFD_MMAP_GPU_UNIT   (1ull << KFD_MMAP_GPU_SHIFT)
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

/* Of a BO's contents. */
struct kfd_checksum {
	uint32_t crc32c;
	bool is_known;
};

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

struct filler;

/* The state of one KFD process as the kernel gives and takes it. */
struct kfd_state {
	uint32_t pid; /* in its own pid namespace */
	uint32_t nr_devices, nr_bos, nr_objects;
	uint32_t nr_added; /* of nr_bos, the last ones: not of the KFD */
	struct kfd_criu_device_bucket *devices;
	struct kfd_criu_bo_bucket *bos;
	struct kfd_share *shares;	/* one for each of bos; NULL: all are KFD_BO_OWN and nothing else names them */
	struct kfd_checksum *checksums; /* one for each of bos; NULL: none is known */
	uint8_t *priv_data; /* opaque */
	uint64_t priv_size;
	struct filler *standins; /* what RESTORE needs besides (standin.h) */
	uint32_t nr_standins;
};

/* Closes the BOs' dma-buf fds. */
void kfd_close_dmabufs(struct kfd_state *state);

/* Closes the BOs' dma-buf fds, frees everything and leaves *state empty. */
void kfd_state_done(struct kfd_state *state);

/* Whether a BO has contents, which means a dma-buf: VRAM or GTT. */
static inline bool kfd_bo_has_contents(const struct kfd_criu_bo_bucket *bo)
{
	return bo->alloc_flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT);
}

/* Whether the contents of BO number @i are this process' to save and to restore. */
static inline bool kfd_state_owns(const struct kfd_state *state, size_t i)
{
	return kfd_bo_has_contents(&state->bos[i]) &&
	       (!state->shares || state->shares[i].kind == KFD_BO_OWN || state->shares[i].kind == KFD_BO_GEM);
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

/* How many BOs have a record in priv_data. */
static inline uint32_t kfd_state_records(const struct kfd_state *state)
{
	return state->nr_bos - state->nr_added;
}

/* Actual id of the GPU that the process calls @user_id; 0: it has none. */
uint32_t kfd_state_actual_gpu(const struct kfd_state *state, uint32_t user_id);

/* What differs between kernels. */
struct kfd_rules {
	/*
	 * Offsets of mappings of /dev/kfd hold user gpu ids (Linux 7.3 and later) instead of actual ones. Matters
	 * where both readings make sense.
	 */
	bool maps_by_user_id;
};

/* Asks the kernel; @fd is the caller's own, opened for this only. Judges by the release where @fd is -1. */
struct kfd_rules kfd_ask_rules(int fd);

/* Opens /dev/kfd for the calling process. fd, or -errno after an error line. */
int kfd_open(void);
/* With other flags than O_RDWR, for a task that has it open with these. */
int kfd_open_as(int flags);

/*
 * The same for a process that will be restored: the kernel wants it to see exactly the GPUs that it had, those with
 * these render minors. @nr_visible: how many it would see; when there are more, the others are hidden from it for good.
 * @keeper: as for hide_begin().
 */
int kfd_open_for(const uint32_t *minors, size_t nr_minors, size_t nr_visible, const struct hide_keeper *keeper);

/* Whether the KFD behind @fd (the caller's own) can checkpoint. 0, or -errno after an error line. */
int kfd_check_version(int fd);

/*
 * Stops the queues of the process behind @fd, which the calling thread has to trace, and
 * fills in the counts of *state. Not to be called twice without kfd_unpause() between:
 * kernels up to 7.2 count. -errno after an error line.
 */
int kfd_pause(int fd, pid_t pid, struct kfd_state *state);

/* Lets the queues run again. -EINVAL when they were not paused; no message. */
int kfd_unpause(int fd);

/*
 * Takes the state of a paused process. *state has the counts of kfd_pause(); on
 * success also the rest, with dma-buf fds. -errno after an error line.
 */
int kfd_checkpoint(int fd, pid_t pid, struct kfd_state *state);

/* Whether the kernel can restore a process without BOs; before 6.18 many cannot. @fd as for kfd_ask_rules(). */
bool kfd_restores_without_bos(int fd);

/*
 * Puts *state into the calling process, whose file @fd is. devices have to name actual
 * ids and render-node fds. On success the BOs have new dma-buf fds and restored_offset.
 * -errno after an error line; the process is then unusable.
 */
int kfd_restore(int fd, struct kfd_state *state);

/*
 * Lets the restored process @pid (in the caller's pid namespace) run. Only for one into which kfd_restore() has put
 * state: kernels crash over others. -errno after an error line.
 */
int kfd_resume(int fd, pid_t pid);

#endif
