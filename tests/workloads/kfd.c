// SPDX-License-Identifier: GPL-2.0-only
/*
 * A small user of the KFD interface.
 *
 * It behaves as the ROCm runtime does where a checkpoint can tell: an address space on
 * every visible GPU, the same address for CPU and GPU, reserved address ranges, device
 * mappings that a child does not inherit. It knows nothing of queues (sdma.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <drm/drm.h>
#include <linux/kfd_ioctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../clear.h"
#include "kfd.h"
#include "report.h"

/* KFD 1.12, newer than some headers. */
struct export_dmabuf {
	uint64_t handle;
	uint32_t flags;
	uint32_t dmabuf_fd;
};
#define IOCTL_EXPORT_DMABUF _IOWR('K', 0x24, struct export_dmabuf)

int kfd_ioctl(int fd, unsigned long request, void *arg)
{
	while (ioctl(fd, request, arg) < 0) {
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
	return 0;
}

const char *kfd_memory_name(enum kfd_memory kind)
{
	static const char *const names[] = {
		[KFD_MEMORY_VRAM] = "VRAM",	  [KFD_MEMORY_VRAM_PUBLIC] = "visible VRAM", [KFD_MEMORY_GTT] = "GTT",
		[KFD_MEMORY_USERPTR] = "userptr", [KFD_MEMORY_DOORBELL] = "doorbell",
	};

	return names[kind];
}

int kfd_reopen(void)
{
	int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	return fd < 0 ? report(errno, "open /dev/kfd: %m") : fd;
}

int kfd_gpu_reopen(const struct kfd_gpu *gpu)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", gpu->render_minor);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? report(errno, "open %s: %m", path) : fd;
}

static int gpu_open(struct kfd *kfd, struct kfd_gpu *gpu, bool spare_first)
{
	struct kfd_ioctl_acquire_vm_args vm = { .gpu_id = gpu->gpu_id };
	int err;

	gpu->spare_fd = spare_first ? kfd_gpu_reopen(gpu) : -1;
	gpu->render_fd = kfd_gpu_reopen(gpu);
	if (gpu->render_fd < 0)
		return gpu->render_fd;
	if (wait_until_clear(gpu->render_fd))
		return report(errno, "renderD%u: its address space is not ready: %m", gpu->render_minor);
	vm.drm_fd = (uint32_t)gpu->render_fd;
	err = kfd_ioctl(kfd->fd, AMDKFD_IOC_ACQUIRE_VM, &vm);
	if (err)
		return report(-err, "gpu %#x: ACQUIRE_VM with renderD%u: %s", gpu->gpu_id, gpu->render_minor,
			      strerror(-err));
	return 0;
}

int kfd_open(struct kfd *kfd, uint64_t gpus, bool spare_first)
{
	int ret;

	memset(kfd, 0, sizeof(*kfd));
	kfd->fd = kfd_reopen();
	ret = kfd->fd < 0 ? kfd->fd : kfd_topology_read(kfd->gpus, KFD_MAX_GPUS);
	if (ret < 0)
		return ret;
	kfd->nr_gpus = (unsigned int)ret;
	for (unsigned int i = 0; i < kfd->nr_gpus; i++) {
		ret = gpus & 1ull << i ? gpu_open(kfd, &kfd->gpus[i], spare_first) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

int kfd_renumber(int *fd, int lowest)
{
	int above = fcntl(*fd, F_DUPFD_CLOEXEC, lowest);

	if (above < 0)
		return report(errno, "duplicate of a file: %m");
	close(*fd);
	*fd = above;
	return 0;
}

int kfd_reopen_check(int fd)
{
	struct kfd_ioctl_get_version_args version = { 0 };
	int err = kfd_ioctl(fd, AMDKFD_IOC_GET_VERSION, &version);

	return err ? report(-err, "second /dev/kfd: GET_VERSION: %s", strerror(-err)) : 0;
}

int kfd_gpu_reopen_check(const struct kfd_gpu *gpu, int fd)
{
	char name[32] = "";
	struct drm_version version = { .name = name, .name_len = sizeof(name) - 1 };
	int err = kfd_ioctl(fd, DRM_IOCTL_VERSION, &version);

	if (err)
		return report(-err, "gpu %#x: second render node: VERSION: %s", gpu->gpu_id, strerror(-err));
	if (strcmp(name, "amdgpu"))
		return report(EILSEQ, "gpu %#x: second render node: driver \"%s\", want \"amdgpu\"", gpu->gpu_id, name);
	return 0;
}

static int gpu_close(struct kfd *kfd, struct kfd_gpu *gpu)
{
	int err = kfd_bo_free(kfd, &gpu->doorbells);

	if (gpu->render_fd >= 0)
		close(gpu->render_fd);
	gpu->render_fd = -1;
	return err;
}

int kfd_close(struct kfd *kfd)
{
	int err = 0;

	/* The event page cannot be freed (-EPERM by contract): it goes with the process. */
	for (unsigned int i = 0; i < kfd->nr_gpus; i++) {
		int ret = gpu_close(kfd, &kfd->gpus[i]);

		err = err ? err : ret;
	}
	close(kfd->fd);
	kfd->fd = -1;
	return err;
}

static uint32_t alloc_flags(enum kfd_memory kind)
{
	const uint32_t writable = (uint32_t)KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE;
	const uint32_t common = writable | KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE | KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE;

	switch (kind) {
	case KFD_MEMORY_VRAM:
		return common | KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
	case KFD_MEMORY_VRAM_PUBLIC:
		return common | KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
	case KFD_MEMORY_GTT:
		return common | KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
	case KFD_MEMORY_USERPTR:
		return common | KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
	case KFD_MEMORY_DOORBELL:
		return writable | KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
	}
	return 0;
}

/* Takes the address range that CPU and GPU will both use; userptr memory is this range itself. */
static int bo_reserve(struct kfd_bo *bo)
{
	int prot = bo->kind == KFD_MEMORY_USERPTR ? PROT_READ | PROT_WRITE : PROT_NONE;
	void *p = mmap(NULL, bo->size_bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return report(errno, "gpu %#x: %" PRIu64 " bytes of address space for a %s BO: %m", bo->gpu->gpu_id,
			      bo->size_bytes, kfd_memory_name(bo->kind));
	bo->va = (uint64_t)(uintptr_t)p;
	if (bo->kind == KFD_MEMORY_USERPTR)
		bo->cpu = p;
	return 0;
}

static int map_fixed(struct kfd_bo *bo, int fd, uint64_t offset)
{
	void *p = mmap((void *)(uintptr_t)bo->va, bo->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		       (off_t)offset);

	if (p == MAP_FAILED)
		return report(errno, "gpu %#x: mmap of a %s BO of %" PRIu64 " bytes at offset %#" PRIx64 ": %m",
			      bo->gpu->gpu_id, kfd_memory_name(bo->kind), bo->size_bytes, offset);
	if (madvise(p, bo->size_bytes, MADV_DONTFORK))
		return report(errno, "gpu %#x: MADV_DONTFORK on a %s BO: %m", bo->gpu->gpu_id,
			      kfd_memory_name(bo->kind));
	bo->cpu = p;
	return 0;
}

static int bo_map_gpu(struct kfd *kfd, struct kfd_bo *bo, uint32_t gpu_id)
{
	struct kfd_ioctl_map_memory_to_gpu_args map = {
		.handle = bo->handle,
		.device_ids_array_ptr = (uint64_t)(uintptr_t)&gpu_id,
		.n_devices = 1,
	};
	int err = kfd_ioctl(kfd->fd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map);

	if (err)
		return report(-err, "gpu %#x: MAP of a %s BO of gpu %#x (handle %#" PRIx64 "): %s", gpu_id,
			      kfd_memory_name(bo->kind), bo->gpu->gpu_id, bo->handle, strerror(-err));
	bo->mapped_gpus[bo->nr_mapped++] = gpu_id;
	return 0;
}

static int bo_create(struct kfd *kfd, struct kfd_bo *bo, uint64_t *ret_mmap_offset)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args alloc = {
		.va_addr = bo->va,
		.size = bo->size_bytes,
		.gpu_id = bo->gpu->gpu_id,
		.flags = alloc_flags(bo->kind),
		.mmap_offset = bo->kind == KFD_MEMORY_USERPTR ? bo->va : 0,
	};
	int err = kfd_ioctl(kfd->fd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &alloc);

	if (err)
		return report(-err, "gpu %#x: ALLOC of a %s BO of %" PRIu64 " bytes: %s", bo->gpu->gpu_id,
			      kfd_memory_name(bo->kind), bo->size_bytes, strerror(-err));
	bo->handle = alloc.handle;
	*ret_mmap_offset = alloc.mmap_offset;
	return 0;
}

int kfd_bo_alloc(struct kfd *kfd, struct kfd_gpu *gpu, enum kfd_memory kind, uint64_t size_bytes, struct kfd_bo *bo)
{
	uint64_t offset = 0;
	int err;

	memset(bo, 0, sizeof(*bo));
	bo->gpu = gpu;
	bo->kind = kind;
	bo->size_bytes = (size_bytes + KFD_PAGE_SIZE - 1) & ~(uint64_t)(KFD_PAGE_SIZE - 1);
	err = bo_reserve(bo);
	if (err)
		return err;
	err = bo_create(kfd, bo, &offset);
	if (err)
		return err;
	bo->mmap_offset = offset;
	err = bo_map_gpu(kfd, bo, gpu->gpu_id);
	if (err)
		return err;
	if (kind == KFD_MEMORY_VRAM_PUBLIC || kind == KFD_MEMORY_GTT)
		return map_fixed(bo, gpu->render_fd, offset);
	return 0;
}

int kfd_bo_adopt(struct kfd *kfd, struct kfd_gpu *gpu, void *memory, uint64_t size_bytes, struct kfd_bo *bo)
{
	uint64_t offset;
	int err;

	*bo = (struct kfd_bo){
		.gpu = gpu,
		.kind = KFD_MEMORY_USERPTR,
		.va = (uint64_t)(uintptr_t)memory,
		.size_bytes = size_bytes,
		.cpu = memory,
	};
	err = bo_create(kfd, bo, &offset);
	return err ? err : bo_map_gpu(kfd, bo, gpu->gpu_id);
}

int kfd_bo_alloc_bare(struct kfd *kfd, struct kfd_gpu *gpu, enum kfd_memory kind, uint64_t size_bytes, struct kfd_bo *bo)
{
	*bo = (struct kfd_bo){ .gpu = gpu, .kind = kind, .size_bytes = size_bytes };
	return bo_create(kfd, bo, &bo->mmap_offset);
}

int kfd_bo_export(struct kfd *kfd, const struct kfd_bo *bo, int *ret_dmabuf)
{
	struct export_dmabuf export = { .handle = bo->handle, .flags = O_RDWR | O_CLOEXEC };
	int err = kfd_ioctl(kfd->fd, IOCTL_EXPORT_DMABUF, &export);

	if (err)
		return report(-err, "gpu %#x: EXPORT_DMABUF of a %s BO (handle %#" PRIx64 "): %s", bo->gpu->gpu_id,
			      kfd_memory_name(bo->kind), bo->handle, strerror(-err));
	*ret_dmabuf = (int)export.dmabuf_fd;
	return 0;
}

static int bo_import(struct kfd *kfd, int dmabuf, struct kfd_bo *bo)
{
	struct kfd_ioctl_import_dmabuf_args import = {
		.va_addr = bo->va,
		.gpu_id = bo->gpu->gpu_id,
		.dmabuf_fd = (uint32_t)dmabuf,
	};
	int err = kfd_ioctl(kfd->fd, AMDKFD_IOC_IMPORT_DMABUF, &import);

	bo->handle = import.handle;
	return err ? report(-err, "gpu %#x: IMPORT_DMABUF: %s", bo->gpu->gpu_id, strerror(-err)) : 0;
}

int kfd_bo_import(struct kfd *kfd, struct kfd_gpu *gpu, int dmabuf, uint64_t size_bytes, struct kfd_bo *bo)
{
	int err;

	*bo = (struct kfd_bo){ .gpu = gpu, .kind = KFD_MEMORY_VRAM, .size_bytes = size_bytes };
	err = bo_reserve(bo);
	err = err ? err : bo_import(kfd, dmabuf, bo);
	return err ? err : bo_map_gpu(kfd, bo, gpu->gpu_id);
}

int kfd_bo_import_bare(struct kfd *kfd, struct kfd_gpu *gpu, int dmabuf, uint64_t size_bytes, struct kfd_bo *bo)
{
	*bo = (struct kfd_bo){ .gpu = gpu, .kind = KFD_MEMORY_VRAM, .size_bytes = size_bytes };
	return bo_import(kfd, dmabuf, bo);
}

int kfd_bo_share(struct kfd *kfd, struct kfd_bo *bo, const struct kfd_gpu *other)
{
	for (unsigned int i = 0; i < bo->nr_mapped; i++)
		if (bo->mapped_gpus[i] == other->gpu_id)
			return 0;
	return bo_map_gpu(kfd, bo, other->gpu_id);
}

static int bo_unmap(struct kfd *kfd, const struct kfd_bo *bo)
{
	struct kfd_ioctl_unmap_memory_from_gpu_args unmap = {
		.handle = bo->handle,
		.device_ids_array_ptr = (uint64_t)(uintptr_t)bo->mapped_gpus,
		.n_devices = bo->nr_mapped,
	};
	int err = bo->nr_mapped ? kfd_ioctl(kfd->fd, AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &unmap) : 0;

	return err ? report(-err, "gpu %#x: UNMAP of a %s BO (handle %#" PRIx64 "): %s", bo->gpu->gpu_id,
			    kfd_memory_name(bo->kind), bo->handle, strerror(-err)) : 0;
}

int kfd_bo_remap(struct kfd *kfd, struct kfd_bo *bo)
{
	unsigned int nr = bo->nr_mapped;
	int err = bo_unmap(kfd, bo);

	bo->nr_mapped = 0;
	for (unsigned int i = 0; !err && i < nr; i++)
		err = bo_map_gpu(kfd, bo, bo->mapped_gpus[i]);
	return err;
}

int kfd_bo_free(struct kfd *kfd, struct kfd_bo *bo)
{
	struct kfd_ioctl_free_memory_of_gpu_args gone = { .handle = bo->handle };
	int err;

	if (!bo->gpu)
		return 0;
	err = bo_unmap(kfd, bo);
	if (err)
		return err;
	err = kfd_ioctl(kfd->fd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &gone);
	if (err)
		return report(-err, "gpu %#x: FREE of a %s BO (handle %#" PRIx64 "): %s", bo->gpu->gpu_id,
			      kfd_memory_name(bo->kind), bo->handle, strerror(-err));
	if (bo->va)
		munmap((void *)(uintptr_t)bo->va, bo->size_bytes);
	memset(bo, 0, sizeof(*bo));
	return 0;
}

int kfd_doorbells_map(struct kfd *kfd, struct kfd_gpu *gpu, uint64_t offset)
{
	int err;

	if (gpu->doorbell_page)
		return 0;
	err = kfd_bo_alloc(kfd, gpu, KFD_MEMORY_DOORBELL, KFD_DOORBELL_BYTES, &gpu->doorbells);
	if (err)
		return err;
	err = map_fixed(&gpu->doorbells, kfd->fd, offset & ~(uint64_t)(KFD_DOORBELL_BYTES - 1));
	if (err)
		return err;
	gpu->doorbell_page = gpu->doorbells.cpu;
	return 0;
}

/* <linux/kfd_ioctl.h> of Linux 6.5 has them. */
struct runtime_enable {
	uint64_t r_debug;
	uint32_t mode_mask, capabilities_mask;
};

int kfd_runtime_enable(struct kfd *kfd)
{
	struct runtime_enable args = { .mode_mask = 1 };
	int err = kfd_ioctl(kfd->fd, _IOWR('K', 0x25, struct runtime_enable), &args);

	return err ? report(-err, "RUNTIME_ENABLE: %s", strerror(-err)) : 0;
}

int kfd_event_create(struct kfd *kfd, struct kfd_gpu *gpu, struct kfd_event *event)
{
	struct kfd_ioctl_create_event_args create = {
		.event_type = KFD_IOC_EVENT_SIGNAL,
		.auto_reset = 1,
	};
	int err;

	if (!kfd->event_page.gpu) {
		err = kfd_bo_alloc(kfd, gpu, KFD_MEMORY_GTT, KFD_EVENT_PAGE_BYTES, &kfd->event_page);
		if (err)
			return err;
		create.event_page_offset = kfd->event_page.handle;
	}
	err = kfd_ioctl(kfd->fd, AMDKFD_IOC_CREATE_EVENT, &create);
	if (err)
		return report(-err, "gpu %#x: CREATE_EVENT: %s", gpu->gpu_id, strerror(-err));
	event->id = create.event_id;
	event->slot_va = kfd->event_page.va + 8ULL * create.event_slot_index;
	return kfd_bo_share(kfd, &kfd->event_page, gpu);
}

int kfd_event_destroy(struct kfd *kfd, struct kfd_event *event)
{
	struct kfd_ioctl_destroy_event_args destroy = { .event_id = event->id };
	int err;

	if (!event->slot_va)
		return 0;
	err = kfd_ioctl(kfd->fd, AMDKFD_IOC_DESTROY_EVENT, &destroy);
	if (err)
		return report(-err, "event %u: DESTROY_EVENT: %s", event->id, strerror(-err));
	event->slot_va = 0;
	return 0;
}

int kfd_event_wait(struct kfd *kfd, const struct kfd_event *event, uint32_t timeout_ms)
{
	struct kfd_event_data data = { .event_id = event->id };
	struct kfd_ioctl_wait_events_args wait = {
		.events_ptr = (uint64_t)(uintptr_t)&data,
		.num_events = 1,
		.wait_for_all = 1,
		.timeout = timeout_ms,
	};
	int err = kfd_ioctl(kfd->fd, AMDKFD_IOC_WAIT_EVENTS, &wait);

	if (err)
		return report(-err, "event %u: WAIT_EVENTS: %s", event->id, strerror(-err));
	if (wait.wait_result == KFD_IOC_WAIT_RESULT_TIMEOUT)
		return -ETIME;
	if (wait.wait_result != KFD_IOC_WAIT_RESULT_COMPLETE)
		return report(EIO, "event %u: WAIT_EVENTS: result %u", event->id, wait.wait_result);
	return 0;
}
