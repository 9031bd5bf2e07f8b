/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /dev/kfd by its bare ioctls, and what the kfd*.c and criu.c programs do with it: GPUs, buffers, SDMA queues. A step that
 * a check is not about ends the program when it fails.
 */
#ifndef CONFORMANCE_KFD_TEST_H
#define CONFORMANCE_KFD_TEST_H

#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/kfd_ioctl.h>

#include "../clear.h"
#include "../workloads/kfd.h"
#include "../workloads/sdma.h"
#include "conformance.h"

/* Numbers that the kernel's header does not have, or not always. */
#define NR_SVM(nattr)	 (AMDKFD_IOC_SVM + ((nattr)*8u << 16))
#define NR_EXPORT_DMABUF 0xc0104b24u

#define MEM_VRAM     (1u << 0)
#define MEM_GTT	     (1u << 1)
#define MEM_USERPTR  (1u << 2)
#define MEM_DOORBELL (1u << 3)
#define MEM_MMIO     (1u << 4)
#define MEM_COHERENT (1u << 26)
#define MEM_NO_SUBST (1u << 28)
#define MEM_PUBLIC   (1u << 29)
#define MEM_EXEC     (1u << 30)
#define MEM_WRITABLE (1u << 31)

#define PAGE	  4096ull
#define DOORBELLS 8192ull
#define RING	  (64ull << 10)
#define GTT_RW	  (MEM_GTT | MEM_WRITABLE | MEM_NO_SUBST)
#define VRAM_RW	  (MEM_VRAM | MEM_WRITABLE | MEM_NO_SUBST)

struct event_data {
	union {
		struct kfd_hsa_memory_exception_data memory;
		uint64_t age;
	};
	uint64_t ext;
	uint32_t event_id, pad;
};

/* ---- files ---- */

static inline uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

static inline int kfd_file(void)
{
	int fd = kfd_reopen();

	if (fd < 0)
		exit(1);
	return fd;
}

/* Succeeds or ends the program. */
static inline void must(long ret, const char *what)
{
	if (ret < 0)
		err(1, "%s", what);
}

static inline int render_open(uint32_t minor)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", minor);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		err(1, "open %s", path);
	if (wait_until_clear(fd))
		err(1, "%s: its address space is not ready", path);
	return fd;
}

/* ---- memory ---- */

#define RW (PROT_READ | PROT_WRITE)

/* Maps a file; @fd -1: memory of its own; @at 0: anywhere. Ends the program when it cannot. */
static inline void *must_map(uint64_t at, uint64_t size, int prot, int fd, uint64_t offset)
{
	int flags = (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | (at ? MAP_FIXED : 0);
	void *p = mmap((void *)at, size, prot, flags, fd, offset);

	if (p == MAP_FAILED)
		err(1, "mmap of %" PRIu64 " bytes at offset %#" PRIx64, size, offset);
	return p;
}

static inline int kfd_acquire(int kfd, int drm_fd, uint32_t gpu_id)
{
	struct kfd_ioctl_acquire_vm_args args = { .drm_fd = drm_fd, .gpu_id = gpu_id };

	return ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &args);
}

static inline int kfd_alloc(int kfd, uint32_t gpu_id, uint64_t va, uint64_t size, uint32_t flags, uint64_t *offset,
			    uint64_t *handle)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.va_addr = va,
		.size = size,
		.gpu_id = gpu_id,
		.flags = flags,
		.mmap_offset = offset ? *offset : 0,
	};
	int ret = ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);

	if (ret)
		return ret;
	if (offset)
		*offset = args.mmap_offset;
	if (handle)
		*handle = args.handle;
	return 0;
}

static inline int kfd_free(int kfd, uint64_t handle)
{
	struct kfd_ioctl_free_memory_of_gpu_args args = { .handle = handle };

	return ioctl(kfd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &args);
}

static inline int kfd_map_ids(int kfd, uint64_t handle, const uint32_t *ids, uint32_t n, bool map)
{
	struct kfd_ioctl_map_memory_to_gpu_args args = {
		.handle = handle,
		.device_ids_array_ptr = (uintptr_t)ids,
		.n_devices = n,
	};

	return ioctl(kfd, map ? AMDKFD_IOC_MAP_MEMORY_TO_GPU : AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &args);
}

static inline int kfd_map(int kfd, uint64_t handle, uint32_t gpu_id)
{
	return kfd_map_ids(kfd, handle, &gpu_id, 1, true);
}

static inline int kfd_unmap(int kfd, uint64_t handle, uint32_t gpu_id)
{
	return kfd_map_ids(kfd, handle, &gpu_id, 1, false);
}

/* Set: where reserve() takes from next, in a stretch that the program keeps free. */
static uint64_t reserve_at;

/* Address space that nothing else uses, for GPU virtual addresses. */
static inline uint64_t reserve(uint64_t size)
{
	uint64_t at = reserve_at;
	void *p;

	if (at) {
		reserve_at += (size + PAGE - 1) & ~(PAGE - 1);
		return at;
	}
	p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		err(1, "reserve address space");
	return (uintptr_t)p;
}

/* A buffer at the same address on CPU and GPU, mapped on the GPU it is of. */
struct buffer {
	uint64_t va, size, offset, handle;
	uint32_t gpu_id;
};

static inline struct buffer buffer_new(int kfd, int drm_fd, uint32_t gpu_id, uint64_t size, uint32_t flags)
{
	struct buffer b = { .va = reserve(size), .size = size, .gpu_id = gpu_id };

	must(kfd_alloc(kfd, gpu_id, b.va, size, flags, &b.offset, &b.handle), "ALLOC_MEMORY_OF_GPU");
	must(kfd_map(kfd, b.handle, gpu_id), "MAP_MEMORY_TO_GPU");
	must_map(b.va, size, RW, drm_fd, b.offset);
	return b;
}

static inline void buffer_free(int kfd, struct buffer *b)
{
	munmap((void *)b->va, b->size);
	must(kfd_unmap(kfd, b->handle, b->gpu_id), "UNMAP_MEMORY_FROM_GPU");
	must(kfd_free(kfd, b->handle), "FREE_MEMORY_OF_GPU");
}

/* ---- SDMA queues ---- */

struct test_queue {
	struct sdma_queue sdma; /* for the packets; its buffers are these: */
	struct buffer ring, pointers; /* rptr at 0, wptr at 64 */
	uint64_t doorbell_offset; /* as CREATE_QUEUE gave it */
	uint8_t *doorbell_page;
};

static inline void queue_map_doorbell(struct test_queue *q, int kfd, uint64_t offset)
{
	q->doorbell_page = must_map(0, DOORBELLS, RW, kfd, offset & ~(DOORBELLS - 1));
	q->sdma.doorbell = (volatile uint64_t *)(q->doorbell_page + (q->doorbell_offset & (DOORBELLS - 1)));
}

static inline struct test_queue queue_new_of_type(int kfd, int drm_fd, struct kfd_gpu *gpu, uint32_t type)
{
	struct test_queue q = { .sdma.gpu = gpu };
	struct kfd_ioctl_create_queue_args args = {
		.ring_size = RING,
		.gpu_id = gpu->gpu_id,
		.queue_type = type,
		.queue_percentage = 100,
		.queue_priority = 7,
	};

	q.ring = buffer_new(kfd, drm_fd, gpu->gpu_id, RING, GTT_RW);
	q.pointers = buffer_new(kfd, drm_fd, gpu->gpu_id, PAGE, GTT_RW);
	args.ring_base_address = q.ring.va;
	args.write_pointer_address = q.pointers.va + 64;
	args.read_pointer_address = q.pointers.va;
	must(ioctl(kfd, AMDKFD_IOC_CREATE_QUEUE, &args), "CREATE_QUEUE");
	q.sdma.ring = (struct kfd_bo){ .cpu = (void *)q.ring.va, .size_bytes = RING };
	q.sdma.rptr.cpu = (void *)q.pointers.va;
	q.sdma.wptr.cpu = (uint8_t *)q.pointers.va + 64;
	q.sdma.queue_id = args.queue_id;
	q.doorbell_offset = args.doorbell_offset;
	queue_map_doorbell(&q, kfd, args.doorbell_offset);
	return q;
}

static inline struct test_queue queue_new(int kfd, int drm_fd, struct kfd_gpu *gpu)
{
	return queue_new_of_type(kfd, drm_fd, gpu, KFD_IOC_QUEUE_TYPE_SDMA);
}

static inline int queue_destroy(int kfd, uint32_t queue_id)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = queue_id };

	return ioctl(kfd, AMDKFD_IOC_DESTROY_QUEUE, &args);
}

static inline void queue_free(struct test_queue *q, int kfd)
{
	must(queue_destroy(kfd, q->sdma.queue_id), "DESTROY_QUEUE");
	munmap(q->doorbell_page, DOORBELLS);
	buffer_free(kfd, &q->ring);
	buffer_free(kfd, &q->pointers);
}

#endif
