// SPDX-License-Identifier: GPL-2.0-only
/*
 * VMM: memory without an address, handles of it in render files, and mappings of its parts (hipMemCreate, hipMemMap).
 */
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"
#include "sharejob.h"

#define ALL (GEM_READ | GEM_WRITE | GEM_EXECUTE)

/* Parts of a handle at several addresses, read-only and not; if it can, the CPU has its beginning, twice, and a
 * reservation. */
static int map_parts(struct share_process *me, unsigned int buffer, struct share_gpu *gpu, uint32_t handle, bool cpu)
{
	int file = gpu->gpu->render_fd;
	uint64_t va, part;
	int err = share_map_gpu(me, buffer, file, gpu, handle, 0, SHARE_PAGES, ALL, &va);

	err = err ? err : share_fill(buffer, gpu, va, NULL);
	err = err ? err : share_map_gpu(me, buffer, file, gpu, handle, 4, 4, GEM_READ, &part);
	err = err ? err : share_map_gpu(me, buffer, file, gpu, handle, 8, 8, GEM_READ | GEM_WRITE, &part);
	err = err ? err : share_map_gpu(me, buffer, file, gpu, handle, 9, 1, ALL, &part);
	if (err || !cpu)
		return err;
	/* Where the GPU has it. */
	err = share_map_cpu(me, buffer, file, handle, 6, PROT_READ | PROT_WRITE, (void *)(uintptr_t)va);
	err = err ? err : share_map_cpu(me, buffer, file, handle, 3, PROT_READ, NULL);
	return err ? err : share_map_cpu(me, buffer, file, handle, SHARE_PAGES, PROT_NONE, NULL);
}

/* Memory of each kind, with gaps in the numbers of handles. @bare: the KFD BO is gone, only the handle holds it. */
static int vmm(struct share_process *me, bool bare)
{
	static const enum kfd_memory kinds[] = { KFD_MEMORY_VRAM, KFD_MEMORY_VRAM_PUBLIC, KFD_MEMORY_GTT };
	struct share_gpu *gpu = &me->gpus[0];
	int file = gpu->gpu->render_fd, err = 0;
	uint32_t fillers[3], handle;

	for (unsigned int i = 0; !err && i < 3; i++) {
		struct kfd_bo *bo;

		err = share_bo_bare(me, gpu, kinds[i], &bo);
		err = err ? err : share_handle_create(me, file, GEM_DOMAIN_GTT, 0, &fillers[i]);
		err = err ? err : share_handle_of_bo(me, file, bo, &handle);
		err = err ? err : map_parts(me, i, gpu, handle, kinds[i] != KFD_MEMORY_VRAM);
		if (!err && bare)
			err = share_bo_drop(me, bo);
	}
	for (unsigned int i = 0; !err && i < 3; i++)
		err = share_handle_drop(me, file, fillers[i]);
	return err;
}

/* The second case has handles only, also of an object that KFD never had. */
static int vmm_setup(struct share_process *me)
{
	struct share_gpu *gpu = &me->gpus[0];
	uint32_t handle;
	int err = vmm(me, share_is_second(me));

	if (err || !share_is_second(me))
		return err;
	err = share_handle_create(me, gpu->gpu->render_fd, GEM_DOMAIN_VRAM, 0, &handle);
	return err ? err : map_parts(me, 3, gpu, handle, true);
}

/* Each GPU's memory in the files of both; of one the KFD BO is gone. */
static int vmm_far_setup(struct share_process *me)
{
	int err = 0;

	for (unsigned int n = 0; !err && n < 2; n++) {
		struct share_gpu *near = &me->gpus[n], *other = &me->gpus[1 - n];
		uint32_t handle, other_handle;
		struct kfd_bo *bo;
		uint64_t va;

		err = share_bo_bare(me, near, KFD_MEMORY_GTT, &bo);
		err = err ? err : share_handle_of_bo(me, other->gpu->render_fd, bo, &other_handle);
		err = err ? err : share_handle_of_bo(me, near->gpu->render_fd, bo, &handle);
		err = err ? err : map_parts(me, n, near, handle, true);
		err = err ? err : share_map_gpu(me, n, other->gpu->render_fd, other, other_handle, 2, 9, ALL, &va);
		if (!err && n)
			err = share_bo_drop(me, bo);
	}
	return err;
}

/* ---- two processes ---- */

/* Buffer 0: only a handle, and exported by it; 1: a KFD BO that the other imports without an address. */
static int vmm_export(struct share_process *me)
{
	struct share_gpu *gpu = &me->gpus[0];
	int file = gpu->gpu->render_fd, fd = -1;
	uint32_t handles[2];
	struct kfd_bo *bos[2];
	int err = 0;

	for (unsigned int i = 0; !err && i < 2; i++) {
		err = share_bo_bare(me, gpu, KFD_MEMORY_VRAM_PUBLIC, &bos[i]);
		err = err ? err : share_handle_of_bo(me, file, bos[i], &handles[i]);
		err = err ? err : map_parts(me, i, gpu, handles[i], true);
	}
	err = err ? err : share_bo_drop(me, bos[0]);
	err = err ? err : gem_export(file, handles[0], true, &fd);
	err = err ? err : share_send(me, 1, 0, fd);
	close(fd);
	return err ? err : share_send_bo(me, 1, 1, bos[1]);
}

/* Of buffer 0 a handle and the open dma-buf, as ROCm 7.14 has it; of 1 a handle and a KFD BO, as before. */
static int vmm_take(struct share_process *me)
{
	struct share_gpu *gpu = &me->gpus[0];
	int file = gpu->gpu->render_fd, err = 0;

	for (unsigned int i = 0; !err && i < 2; i++) {
		unsigned int buffer;
		uint32_t handle;
		uint64_t va;
		int fd;

		err = share_receive(me, &buffer, &fd);
		err = err ? err : share_handle_import(me, file, fd, &handle);
		err = err ? err : share_map_gpu(me, buffer, file, gpu, handle, 1, 12, ALL, &va);
		if (!err && !buffer) {
			err = share_dmabuf_keep(me, buffer, fd, NULL);
		} else if (!err) {
			err = share_bo_import_bare(me, gpu, fd);
			close(fd);
		}
	}
	return err;
}

static int vmm_shared_setup(struct share_process *me)
{
	return me->number ? vmm_take(me) : vmm_export(me);
}

const struct share_case share_vmm_cases[] = {
	{ "vmm", "memory without address, a handle, mappings of parts", 1, 1, 0, vmm_setup, NULL },
	{ "vmm-handle", "the same, held by the handle only", 1, 1, SHARE_SECOND, vmm_setup, NULL },
	{ "vmm-far", "handles in the files of both GPUs", 1, 2, 0, vmm_far_setup, NULL },
	{ "vmm-shared", "two processes", 2, 1, 0, vmm_shared_setup, NULL },
	{ 0 },
};
