/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a ROCm process does with /dev/kfd and the render nodes, without ROCm:
 * GPUs found in sysfs, memory of every kind, doorbells, events.
 *
 * All functions that return int give 0 or -errno and have reported the failure.
 */
#ifndef WORKLOADS_KFD_H
#define WORKLOADS_KFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KFD_MAX_GPUS	     64
#define KFD_PAGE_SIZE	     4096u
#define KFD_DOORBELL_BYTES   8192u  /* a process' slice on GPUs with 64-bit doorbells: 1024 of them */
#define KFD_EVENT_PAGE_BYTES 32768u /* 4096 signal slots of 8 bytes */

enum kfd_memory {
	KFD_MEMORY_VRAM,	/* the CPU cannot see it */
	KFD_MEMORY_VRAM_PUBLIC, /* mapped for the CPU, too */
	KFD_MEMORY_GTT,
	KFD_MEMORY_USERPTR, /* anonymous memory of this process */
	KFD_MEMORY_DOORBELL,
};

const char *kfd_memory_name(enum kfd_memory kind);

struct kfd_bo {
	struct kfd_gpu *gpu; /* the owner; NULL: not allocated */
	enum kfd_memory kind;
	uint64_t handle;
	uint64_t va;	     /* on the GPU */
	uint64_t size_bytes; /* whole pages */
	uint64_t mmap_offset; /* in the render node; of VRAM and GTT */
	void *cpu;	     /* at the same address as va; NULL when the CPU cannot see it */
	uint32_t mapped_gpus[KFD_MAX_GPUS];
	unsigned int nr_mapped;
};

struct kfd_gpu {
	unsigned int index; /* among the GPUs that this process can use */
	uint32_t gpu_id;
	uint32_t render_minor;
	uint32_t gfx_version; /* major * 10000 + minor * 100 + step */
	uint64_t hive_id; /* 0: in none */
	uint64_t pci_device; /* partitions of one GPU have the same */
	uint32_t num_xcc, sdma_engines, xgmi_engines; /* of the partition */
	uint64_t vram_bytes;
	uint64_t public_vram_bytes;
	uint32_t cwsr_bytes, ctl_stack_bytes; /* of a compute queue, in each XCC */
	uint64_t save_area_bytes;	      /* what a compute queue has to bring for these, altogether */
	int render_fd;
	int spare_fd; /* opened before it */
	struct kfd_bo doorbells; /* allocated with the first queue */
	volatile uint64_t *doorbell_page;
};

struct kfd {
	int fd;
	unsigned int nr_gpus;
	struct kfd_gpu gpus[KFD_MAX_GPUS];
	struct kfd_bo event_page;
};

/*
 * Fills @gpus with what /sys/class/kfd describes, in the order of node numbers; nodes that the device cgroup hides are left
 * out. Returns their number, which is not 0, or -errno.
 */
int kfd_topology_read(struct kfd_gpu *gpus, unsigned int max_gpus);

/*
 * Opens /dev/kfd and the render node of each GPU whose bit is set in @gpus, and gives these GPUs an address space; the
 * ROCm runtime does that with all. @spare_first: opens each render node once before.
 */
int kfd_open(struct kfd *kfd, uint64_t gpus, bool spare_first);
/* Frees what the library itself allocated (doorbells, event page) and closes. The caller's BOs must be gone. */
int kfd_close(struct kfd *kfd);

/* Gives a file a number from @lowest on. */
int kfd_renumber(int *fd, int lowest);

/* Memory of @size_bytes (rounded up to pages), mapped on its own GPU and, when it can be, for the CPU. */
int kfd_bo_alloc(struct kfd *kfd, struct kfd_gpu *gpu, enum kfd_memory kind, uint64_t size_bytes, struct kfd_bo *bo);
/* Makes userptr memory of whole pages that are mapped already; kfd_bo_free() unmaps them. */
int kfd_bo_adopt(struct kfd *kfd, struct kfd_gpu *gpu, void *memory, uint64_t size_bytes, struct kfd_bo *bo);
/* VRAM or GTT without an address, as the ROCm runtime has it for VMM: nothing can map it but a GEM handle. */
int kfd_bo_alloc_bare(struct kfd *kfd, struct kfd_gpu *gpu, enum kfd_memory kind, uint64_t size_bytes,
		      struct kfd_bo *bo);
/* A dma-buf of the BO, which the caller closes. Linux 6.3 and later. */
int kfd_bo_export(struct kfd *kfd, const struct kfd_bo *bo, int *ret_dmabuf);
/* The memory of @dmabuf, of @size_bytes, as a BO of @gpu with an address of its own, mapped there. The CPU does not see it. */
int kfd_bo_import(struct kfd *kfd, struct kfd_gpu *gpu, int dmabuf, uint64_t size_bytes, struct kfd_bo *bo);
/* The same without an address. */
int kfd_bo_import_bare(struct kfd *kfd, struct kfd_gpu *gpu, int dmabuf, uint64_t size_bytes, struct kfd_bo *bo);
/* Takes it from all GPUs that have it mapped, and maps it on them again. */
int kfd_bo_remap(struct kfd *kfd, struct kfd_bo *bo);
/* Lets another GPU use it at the same address. */
int kfd_bo_share(struct kfd *kfd, struct kfd_bo *bo, const struct kfd_gpu *other);
/* Does nothing with a BO that was not allocated. */
int kfd_bo_free(struct kfd *kfd, struct kfd_bo *bo);

/* RUNTIME_ENABLE, before the process has queues: it is told of exceptions in them. */
int kfd_runtime_enable(struct kfd *kfd);

/* Maps the GPU's doorbells; @offset is what CREATE_QUEUE returned. */
int kfd_doorbells_map(struct kfd *kfd, struct kfd_gpu *gpu, uint64_t offset);

/* Opens /dev/kfd, or a GPU's render node, once more: the fd or -errno. */
int kfd_reopen(void);
int kfd_gpu_reopen(const struct kfd_gpu *gpu);
/* Whether such an fd still is what it was. */
int kfd_reopen_check(int fd);
int kfd_gpu_reopen_check(const struct kfd_gpu *gpu, int fd);

struct kfd_event {
	uint32_t id;
	uint64_t slot_va; /* where the GPU writes before it traps */
};

/* A signal event that resets itself. The first one brings the signal page, on @gpu. */
int kfd_event_create(struct kfd *kfd, struct kfd_gpu *gpu, struct kfd_event *event);
int kfd_event_destroy(struct kfd *kfd, struct kfd_event *event);
/* Sleeps until it is signaled: 0, -ETIME when @timeout_ms have gone (not reported), other errors. */
int kfd_event_wait(struct kfd *kfd, const struct kfd_event *event, uint32_t timeout_ms);

/* An ioctl on any fd, restarted after signals. 0 or -errno, nothing reported. */
int kfd_ioctl(int fd, unsigned long request, void *arg);

#endif
