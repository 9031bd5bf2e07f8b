/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The KFD's CRIU ioctl: pause a process, take its state, put the state into another process and let that run. And the
 * ioctls that import buffers.
 */
#ifndef KERNEL_KFD_H
#define KERNEL_KFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/state.h"

struct hide_keeper;

/* CRIU_OP copies VRAM and GTT BOs by dma-buf since this interface version (Linux 5.18). */
#define KFD_MIN_MAJOR 1
#define KFD_MIN_MINOR 8

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

/* Of a mapping's offset: where in the GPU's doorbells; and which doorbell is there. */
#define KFD_MMAP_WITHIN	   (KFD_MMAP_GPU_UNIT - 1)
#define KFD_DOORBELL_BYTES 8u

static inline uint32_t kfd_doorbell(uint64_t offset)
{
	return (uint32_t)((offset & KFD_MMAP_WITHIN) / KFD_DOORBELL_BYTES);
}

/* What differs between kernels. */
struct kfd_rules {
	/*
	 * Offsets of mappings of /dev/kfd hold user gpu ids (Linux 7.3 and later) instead of actual ones. Matters
	 * where both readings make sense.
	 */
	bool maps_by_user_id;
	/* Signal events need a page that the process has given (Linux 7.3 and later). */
	bool wants_event_page;
};

/* Asks the kernel; @fd is the caller's own, opened for this only. Judges by the release where @fd is -1. */
struct kfd_rules kfd_ask_rules(int fd);

/* Opens /dev/kfd for the calling process, after a reset of a GPU. fd, or -errno after fail(). */
int kfd_open(void);
/* With other flags than O_RDWR, for a task that has it open with these. */
int kfd_open_as(int flags);

/*
 * The same for a process that will be restored: the kernel wants it to see exactly the GPUs that it had, those with
 * these render minors. @nr_visible: how many it would see; when there are more, the others are hidden from it for good.
 * @keeper: as for hide_begin().
 */
int kfd_open_for(const uint32_t *minors, size_t nr_minors, size_t nr_visible, const struct hide_keeper *keeper);

/* Whether the KFD behind @fd (the caller's own) can checkpoint. 0, or -errno after fail(). */
int kfd_check_version(int fd);

/*
 * Stops the queues of the process behind @fd, which the calling thread has to trace, and
 * fills in the counts of *state. Not to be called twice without kfd_unpause() between:
 * kernels up to 7.2 count. -errno after fail().
 */
int kfd_pause(int fd, pid_t pid, struct kfd_state *state);

/* Lets the queues run again. -EINVAL when they were not paused; no message. */
int kfd_unpause(int fd);

/*
 * Takes the state of a paused process. *state has the counts of kfd_pause(); on success also the rest, with dma-buf fds,
 * and without the placeholders of an earlier RESTORE (driver.h). -errno after fail().
 */
int kfd_checkpoint(int fd, pid_t pid, struct kfd_state *state);

/*
 * The same of a paused process whose state was taken before, as *state says, and that has other BOs now: @nr_bos, or up to
 * @max_difference more or fewer, placeholders not counted. The kernel's log has a line for each number that is wrong. *ret is
 * a state of its own.
 */
int kfd_checkpoint_again(int fd, pid_t pid, const struct kfd_state *state, uint32_t nr_bos, uint32_t max_difference,
			 struct kfd_state *ret);

/* Whether the kernel can restore a process without BOs; before 6.18 many cannot. @fd as for kfd_ask_rules(). */
bool kfd_restores_without_bos(int fd);

/*
 * Puts *state into the calling process, whose file @fd is. devices have to name actual
 * ids and render-node fds. On success the BOs have new dma-buf fds and restored_offset.
 * -errno after fail(); the process is then unusable.
 */
int kfd_restore(int fd, struct kfd_state *state);

/*
 * Lets the restored process @pid (in the caller's pid namespace) run. Only for one into which kfd_restore() has put
 * state: kernels crash over others. -errno after fail().
 */
int kfd_resume(int fd, pid_t pid);

/*
 * Buffers besides those of CRIU_OP. All: @kfd is a file of the calling process, gpu ids are those by which the process
 * knows its GPUs, unless said otherwise. 0 or -errno without a message.
 */

/* Makes a BO of a dma-buf, at GPU address @va (0: none). It takes the lowest free number of the GPU. */
int kfd_import_dmabuf(int kfd, uint32_t gpu_id, uint64_t va, int dmabuf_fd, uint64_t *ret_handle);

/* Maps a BO at its address on GPUs. */
int kfd_map(int kfd, uint64_t handle, const uint32_t *gpu_ids, uint32_t nr_gpus);

int kfd_free(int kfd, uint64_t handle);

/* The GPU, by its actual id, whose memory or system memory a dma-buf is. -EINVAL for one that is not of amdgpu. */
int kfd_dmabuf_gpu(int kfd, int dmabuf_fd, uint32_t *ret_gpu_id);

/*
 * How much VRAM the KFD would give to a process now: it takes memory that the display or graphics use, but counts each BO of
 * another process as a multiple of 2 MiB.
 */
int kfd_available(int kfd, uint32_t gpu_id, uint64_t *ret);

/* Whether programs can make dma-bufs of BOs (EXPORT_DMABUF: interface 1.12). */
bool kfd_can_export(int kfd);

/* ---- GPUs that the kernel does not show ---- */

/*
 * Told of each temporary cgroup, for the time when its task is killed or cannot remove it. made() comes before the
 * cgroup, @dir and @name are borrowed; 0 or -errno, no message. removed() says that it is gone.
 */
struct hide_keeper {
	int (*made)(void *arg, int dir, const char *name);
	void (*removed)(void *arg);
	void *arg;
};

struct hide {
	const struct hide_keeper *keeper;
	int cgroup;    /* directory of the task's own cgroup */
	char name[32]; /* of the one below it in which the task is meanwhile */
};

/*
 * Puts the calling process into a cgroup (v2) of its own in which it may use only these render nodes. 0, then hide_end()
 * has to follow; -errno after fail(): nothing has changed. @keeper: borrowed until hide_end().
 */
int hide_begin(const uint32_t *minors, size_t nr_minors, const struct hide_keeper *keeper, struct hide *hide);

/* Puts it back and removes the cgroup. 0; -errno when it cannot be put back. */
int hide_end(struct hide *hide);

/* ---- device filters of cgroups: which render nodes their tasks may use ---- */

struct bpf_insn;

/*
 * The program for these render minors: of DRM's devices it allows only them, and it forbids no other device. The caller
 * frees *ret. Number of instructions, or -ENOMEM.
 */
int devfilter_program(const uint32_t *minors, size_t nr_minors, struct bpf_insn **ret);

/*
 * Attaches that program to the cgroup (v2) with this directory fd, besides those that
 * apply to it already. It goes with the cgroup. 0, or -errno, no message.
 */
int devfilter_attach(int cgroup, const uint32_t *minors, size_t nr_minors);

#endif
