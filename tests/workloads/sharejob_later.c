// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a job does after a dump that it has survived, or has done before one. It frees buffers, makes others, and
 * exports them: a process has a pool of buffers with handles, as VMM and IPC of ROCm 7.2 have, and a new one takes the
 * oldest one's place at each check. Each export has to show the memory of its own buffer.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"
#include "sharejob.h"

#define POOL 3u

static struct pooled {
	struct kfd_bo *bo; /* in the list of objects */
	uint32_t handle;
	uint64_t stamp;
} pool[POOL];
static unsigned int oldest;
static uint64_t nr_made;

static int make(struct share_process *me, struct kfd_bo *bo, uint64_t *ret_stamp)
{
	int err = kfd_bo_alloc(&me->kfd, me->gpus[0].gpu, KFD_MEMORY_VRAM_PUBLIC, SHARE_BYTES, bo);
	uint64_t *words = bo->cpu;

	*ret_stamp = (uint64_t)getpid() << 32 | ++nr_made;
	for (size_t i = 0; !err && i < SHARE_BYTES / sizeof(*words); i++)
		words[i] = *ret_stamp;
	return err;
}

/* Whether an export of the BO is of its own memory. */
static int look(struct share_process *me, const struct kfd_bo *bo, uint64_t stamp)
{
	const uint64_t *words;
	int fd, err = kfd_bo_export(&me->kfd, bo, &fd);

	if (err)
		return err;
	words = mmap(NULL, SHARE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (words == MAP_FAILED)
		return report(errno, "mmap of a dma-buf: %m");
	if (words[0] != stamp)
		err = report(EILSEQ, "the dma-buf of KFD BO %#llx shows %#llx, want %#llx", (unsigned long long)bo->handle,
			     (unsigned long long)words[0], (unsigned long long)stamp);
	munmap((void *)(uintptr_t)words, SHARE_BYTES);
	return err;
}

static int fill_pool(struct share_process *me)
{
	int file = me->gpus[0].gpu->render_fd, err = 0;

	for (unsigned int i = 0; !err && i < POOL; i++) {
		err = share_bo_bare(me, &me->gpus[0], KFD_MEMORY_GTT, &pool[i].bo);
		err = err ? err : share_bo_drop(me, pool[i].bo);
		err = err ? err : make(me, pool[i].bo, &pool[i].stamp);
		err = err ? err : share_handle_of_bo(me, file, pool[i].bo, &pool[i].handle);
	}
	return err;
}

/* One buffer that stays plain, and one in the oldest one's place: numbers that a dump has freed would be given to these. */
static int later_check(struct share_process *me)
{
	struct pooled *old = &pool[oldest];
	int file = me->gpus[0].gpu->render_fd;
	struct kfd_bo plain;
	uint64_t stamp;
	int err = make(me, &plain, &stamp);

	err = err ? err : share_handle_drop(me, file, old->handle);
	err = err ? err : share_bo_drop(me, old->bo);
	err = err ? err : make(me, old->bo, &old->stamp);
	err = err ? err : look(me, &plain, stamp);
	for (unsigned int i = 0; !err && i < POOL; i++)
		err = look(me, pool[i].bo, pool[i].stamp);
	err = err ? err : share_handle_of_bo(me, file, old->bo, &old->handle);
	oldest = (oldest + 1) % POOL;
	return err ? err : kfd_bo_free(&me->kfd, &plain);
}

/* Each has the other's, too, with a handle. */
static int later_ipc_setup(struct share_process *me)
{
	int file = me->gpus[0].gpu->render_fd, err = fill_pool(me);

	for (unsigned int i = 0; !err && i < POOL; i++)
		err = share_send_bo(me, 1 - me->number, i, pool[i].bo);
	for (unsigned int i = 0; !err && i < POOL; i++) {
		unsigned int buffer;
		uint32_t handle;
		int fd;

		err = share_receive(me, &buffer, &fd);
		if (err)
			return err;
		err = share_bo_import_bare(me, &me->gpus[0], fd);
		err = err ? err : share_handle_import(me, file, fd, &handle);
		close(fd);
	}
	return err;
}

static int later_mesh_setup(struct share_process *me)
{
	int err = share_mesh_setup(me);

	return err ? err : fill_pool(me);
}

/* A render file that had something mapped far away, and nothing now: its page tables stay. */
static int render_freed_setup(struct share_process *me)
{
	uint32_t handle;
	int file, err = share_file_open(me, &me->kfd.gpus[0], &file);

	err = err ? err : gem_create(file, SHARE_BYTES, GEM_DOMAIN_VRAM, 0, &handle);
	for (uint64_t va = 1ull << 32; !err && va < 9ull << 32; va += 1ull << 32) {
		err = gem_va_map(file, handle, va, 0, SHARE_BYTES, GEM_READ | GEM_WRITE);
		err = err ? err : gem_va_unmap(file, handle, va, 0, SHARE_BYTES);
	}
	return err ? err : gem_close(file, handle);
}

const struct share_case share_later_cases[] = {
	{ "later", "handles of KFD BOs; others later, and exports", 1, 1, 0, { NULL }, fill_pool, later_check },
	{ "later-ipc", "the same of two processes that have each other's", 2, 1, 0, { NULL }, later_ipc_setup, later_check },
	{ "render-freed", "a render file that has been used, no KFD", 1, 0, SHARE_NO_KFD, { NULL }, render_freed_setup,
	  NULL },
	{ "later-mesh", "mesh-kept, and the same", 0, 2, SHARE_SECOND, { NULL }, later_mesh_setup, later_check },
	{ 0 },
};
