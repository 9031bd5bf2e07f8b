// SPDX-License-Identifier: GPL-2.0-only
/*
 * KFD imports between processes, as hipIpcOpenMemHandle makes them: on the owner's GPU, also mapped on another one, and
 * on another GPU; importers that live on when the exporter does not.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"
#include "sharejob.h"

#define LARGE_BYTES (64ull << 20)

static const uint8_t token[4] = { 0x5a, 0xa5, 0x10, 0x72 };

/* ROCm 7.2 keeps a handle at both ends, and the exporter's object has a token. */
static int keep_handle(struct share_process *me, struct share_gpu *gpu, const struct kfd_bo *bo, bool exporter)
{
	int file = gpu->gpu->render_fd;
	uint32_t handle = 0;
	int err = share_handle_of_bo(me, file, bo, &handle);

	if (err || !exporter)
		return err;
	return share_handle_describe(me, file, handle, 0, token, sizeof(token));
}

/* Takes @nr buffers in the order in which they come, with a free KFD number before each import. */
static int take(struct share_process *me, unsigned int nr, bool kept)
{
	struct kfd_bo *fillers[SHARE_MAX_PROCESSES], *bo;
	int err = 0;

	for (unsigned int i = 0; !err && i < nr; i++) {
		unsigned int buffer;

		err = share_bo_bare(me, &me->gpus[0], KFD_MEMORY_GTT, &fillers[i]);
		err = err ? err : share_take(me, &me->gpus[0], &buffer, &bo);
		if (!err && kept)
			err = keep_handle(me, &me->gpus[0], bo, false);
	}
	for (unsigned int i = 0; !err && i < nr; i++)
		err = share_bo_drop(me, fillers[i]);
	return err;
}

/* Both export and import; one buffer is imported twice. */
static int pair(struct share_process *me, bool kept)
{
	static const enum kfd_memory kinds[][3] = {
		{ KFD_MEMORY_VRAM_PUBLIC, KFD_MEMORY_GTT, KFD_MEMORY_VRAM },
		{ KFD_MEMORY_VRAM, KFD_MEMORY_VRAM_PUBLIC, KFD_MEMORY_GTT },
	};
	unsigned int other = 1 - me->number;
	int err = 0;

	for (unsigned int i = 0; !err && i < 3; i++) {
		unsigned int buffer = 3 * me->number + i;
		struct kfd_bo *bo;

		err = share_bo_new(me, buffer, &me->gpus[0], kinds[me->number][i], &bo);
		if (!err && kept)
			err = keep_handle(me, &me->gpus[0], bo, true);
		err = err ? err : share_send_bo(me, other, buffer, bo);
		if (!err && !i)
			err = share_send_bo(me, other, buffer, bo);
	}
	return err ? err : take(me, 4, kept);
}

static int ipc_setup(struct share_process *me)
{
	return pair(me, share_is_second(me));
}

/* ---- two GPUs ---- */

/* Another GPU sees it, too. */
static int lend(struct share_process *me, unsigned int buffer, struct kfd_bo *bo, struct share_gpu *other)
{
	int err = kfd_bo_share(&me->kfd, bo, other->gpu);

	return err ? err : share_view_gpu(me, buffer, other, bo->va, 0, SHARE_PAGES, true);
}

static const struct {
	unsigned int gpu;
	enum kfd_memory kind;
} far_buffers[] = {
	{ 0, KFD_MEMORY_GTT },
	{ 1, KFD_MEMORY_GTT },
	{ 0, KFD_MEMORY_VRAM_PUBLIC },
	{ 1, KFD_MEMORY_VRAM },
};

#define FAR_BUFFERS	   4u
#define FAR_BUFFERS_SYSMEM 2u

/* The first @nr. @lent: the exporter's other GPU sees them, too. */
static int far_export(struct share_process *me, unsigned int nr, bool lent)
{
	struct kfd_bo *bo;
	int err = 0;

	for (unsigned int i = 0; !err && i < nr; i++) {
		unsigned int gpu = far_buffers[i].gpu;

		err = share_bo_new(me, i, &me->gpus[gpu], far_buffers[i].kind, &bo);
		if (!err && lent)
			err = lend(me, i, bo, &me->gpus[1 - gpu]);
		err = err ? err : share_send_bo(me, 1, i, bo);
	}
	return err;
}

/* @across: imported on the GPU that does not own it; else on the owner, and mapped on the other one. */
static int far_take(struct share_process *me, unsigned int nr, bool across)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < nr; i++) {
		unsigned int buffer, gpu = far_buffers[i].gpu; /* they come in order */
		struct kfd_bo *bo;

		err = share_take(me, &me->gpus[across ? 1 - gpu : gpu], &buffer, &bo);
		if (!err && !across)
			err = lend(me, buffer, bo, &me->gpus[1 - gpu]);
	}
	return err;
}

static int far_setup(struct share_process *me)
{
	unsigned int nr = share_is_second(me) ? FAR_BUFFERS_SYSMEM : FAR_BUFFERS;

	return me->number ? far_take(me, nr, false) : far_export(me, nr, true);
}

static int across_setup(struct share_process *me)
{
	return me->number ? far_take(me, FAR_BUFFERS, true) : far_export(me, FAR_BUFFERS, false);
}

/* The first process has a buffer in memory of the host, which the other one takes. */
static int take_gtt(struct share_process *me, int (*take_it)(struct share_process *me))
{
	struct kfd_bo *bo;
	int err;

	if (me->number)
		return take_it(me);
	err = share_bo_new(me, 0, &me->gpus[0], KFD_MEMORY_GTT, &bo);
	return err ? err : share_send_bo(me, 1, 0, bo);
}

/* The KFD's own file loses its handle of an import when one is freed: the next one is an object of its own. */
static int lose_handle(struct share_process *me, struct share_gpu *gpu, int dmabuf)
{
	int err = share_bo_import_bare(me, gpu, dmabuf);

	return err ? err : share_bo_drop(me, &me->objects.bos[me->objects.nr_bos - 1]);
}

static int anew_take(struct share_process *me)
{
	struct share_gpu *gpu = &me->gpus[1];
	struct kfd_bo *bo;
	unsigned int buffer;
	int fd, err = share_receive(me, &buffer, &fd);

	if (err)
		return err;
	err = lose_handle(me, gpu, fd);
	for (unsigned int i = 0; !err && i < 2; i++) {
		err = share_bo_import(me, buffer, gpu, fd, &bo);
		err = err ? err : lose_handle(me, gpu, fd);
	}
	close(fd);
	return err;
}

static int anew_setup(struct share_process *me)
{
	return take_gtt(me, anew_take);
}

/* ---- all to all ---- */

static int mesh_take(struct share_process *me, unsigned int mine, bool kept)
{
	unsigned int buffer;
	struct kfd_bo *bo;
	int fd, err = share_receive(me, &buffer, &fd);

	if (err)
		return err;
	err = share_bo_import(me, buffer, &me->gpus[buffer % 2], fd, &bo);
	close(fd);
	if (!err && buffer % 2 != mine % 2)
		err = kfd_bo_share(&me->kfd, bo, me->gpus[mine % 2].gpu);
	if (!err && buffer % 2 != mine % 2)
		err = share_view_gpu(me, buffer, &me->gpus[mine % 2], bo->va, 0, SHARE_PAGES, false);
	return err || !kept ? err : keep_handle(me, &me->gpus[buffer % 2], bo, false);
}

int share_mesh_setup(struct share_process *me)
{
	struct share_gpu *gpu = &me->gpus[me->number % 2];
	bool kept = share_is_second(me);
	struct kfd_bo *bo;
	int err = share_bo_new(me, me->number, gpu, KFD_MEMORY_VRAM_PUBLIC, &bo);

	if (!err && kept)
		err = keep_handle(me, gpu, bo, true);
	for (unsigned int i = 0; !err && i < me->nr_processes; i++)
		if (i != me->number)
			err = share_send_bo(me, i, me->number, bo);
	for (unsigned int i = 1; !err && i < me->nr_processes; i++)
		err = mesh_take(me, me->number, kept);
	return err;
}

/* ---- memory of the host, as for signals and events of IPC ---- */

/* The importer has a handle and a mapping where the CPU has it; its KFD import is gone again. */
static int sysmem_take(struct share_process *me)
{
	struct share_gpu *gpu = &me->gpus[0];
	int file = gpu->gpu->render_fd, fd, err;
	struct kfd_bo import;
	unsigned int buffer;
	uint32_t handle;
	uint64_t va;

	err = share_receive(me, &buffer, &fd);
	if (err)
		return err;
	err = kfd_bo_import(&me->kfd, gpu->gpu, fd, SHARE_BYTES, &import);
	err = err ? err : share_handle_import(me, file, fd, &handle);
	err = err ? err : kfd_bo_free(&me->kfd, &import);
	close(fd);
	err = err ? err
		  : share_map_gpu(me, buffer, file, gpu, handle, 0, SHARE_PAGES, GEM_READ | GEM_WRITE | GEM_EXECUTE,
				  &va);
	return err ? err
		   : share_map_cpu(me, buffer, file, handle, SHARE_PAGES, PROT_READ | PROT_WRITE,
				   (void *)(uintptr_t)va);
}

static int sysmem_setup(struct share_process *me)
{
	return take_gtt(me, sysmem_take);
}

/* ---- orphans ---- */

static int orphan_export(struct share_process *me, struct kfd_bo **bos)
{
	int err = share_bo_new(me, 0, &me->gpus[0], KFD_MEMORY_VRAM, &bos[0]);

	err = err ? err : share_bo_new(me, 1, &me->gpus[0], KFD_MEMORY_GTT, &bos[1]);
	for (unsigned int i = 0; !err && i < me->nr_processes; i++)
		for (unsigned int buffer = 0; !err && i != me->number && buffer < 2; buffer++)
			err = share_send_bo(me, i, buffer, bos[buffer]);
	err = err ? err : share_meet(me); /* the others have it */
	share_views_drop(me, 0);
	share_views_drop(me, 1);
	return err;
}

static int orphan_take(struct share_process *me)
{
	int err = take(me, 2, false);

	return err ? err : share_meet(me);
}

static int orphan_freed_setup(struct share_process *me)
{
	struct kfd_bo *bos[2];
	int err;

	if (me->number)
		return orphan_take(me);
	err = orphan_export(me, bos);
	err = err ? err : share_bo_drop(me, bos[0]);
	return err ? err : share_bo_drop(me, bos[1]);
}

static int orphan_exited_setup(struct share_process *me)
{
	struct kfd_bo *bos[2];

	return me->number == me->nr_processes - 1 ? orphan_export(me, bos) : orphan_take(me);
}

static uint64_t alone_flags[2];

/* Of both buffers. The importer has only BOs of imports, and the window. */
static int alone_look(struct share_process *me, uint64_t flags[2])
{
	int err = 0;

	for (unsigned int i = 0, n = 0; !err && i < me->objects.nr_bos && n < 2; i++) {
		int fd;

		if (!me->objects.bos[i].gpu)
			continue;
		err = kfd_bo_export(&me->kfd, &me->objects.bos[i], &fd);
		if (err)
			return err;
		err = share_flags(me->gpus[0].gpu->render_fd, fd, &flags[n++]);
		close(fd);
	}
	return err;
}

static int orphan_alone_setup(struct share_process *me)
{
	int err = orphan_exited_setup(me);

	return err || me->number ? err : alone_look(me, alone_flags);
}

static int orphan_alone_check(struct share_process *me)
{
	uint64_t flags[2] = { 0 };
	int err = alone_look(me, flags);

	for (unsigned int i = 0; !err && i < 2; i++)
		if ((flags[i] | GEM_ADDED) != (alone_flags[i] | GEM_ADDED))
			err = report(EILSEQ, "buffer %u has flags %#llx, want %#llx", i, (unsigned long long)flags[i],
				     (unsigned long long)alone_flags[i]);
	return err;
}

/* ---- a process that ends later, of which nothing may stay ---- */

/* It has no view, and in the second case a handle of the others' buffer. */
static int quits_setup(struct share_process *me)
{
	static struct kfd_bo large;
	bool kept = share_is_second(me);
	unsigned int buffer;
	uint32_t handle;
	int err;

	if (me->number < 2 && !kept)
		return pair(me, false);
	if (me->number < 2) {
		struct kfd_bo *bo;

		err = share_bo_new(me, me->number, &me->gpus[0], KFD_MEMORY_VRAM_PUBLIC, &bo);
		return err ? err : share_send_bo(me, 2, me->number, bo);
	}
	err = kfd_bo_alloc(&me->kfd, me->gpus[0].gpu, KFD_MEMORY_VRAM, LARGE_BYTES, &large);
	for (unsigned int i = 0; !err && kept && i < 2; i++)
		err = share_take_handle(me, me->gpus[0].gpu->render_fd, &buffer, &handle);
	return err;
}

/* ---- what must not be taken for shared memory ---- */

static int apart_setup(struct share_process *me)
{
	struct kfd_bo *bo;

	return share_bo_new(me, 0, &me->gpus[0], KFD_MEMORY_VRAM_PUBLIC, &bo);
}

const struct share_case share_ipc_cases[] = {
	{ "ipc", "two processes import from each other on one GPU", 2, 1, 0, ipc_setup, NULL },
	{ "ipc-kept", "the same, with handles and tokens left behind", 2, 1, SHARE_SECOND, ipc_setup, NULL },
	{ "ipc-far", "imports on the owner's GPU, mapped on another one", 2, 2, 0, far_setup, NULL },
	{ "ipc-far-sysmem", "the same with memory of the host", 2, 2, SHARE_SECOND, far_setup, NULL },
	{ "ipc-across", "imports on another GPU than the owner's", 2, 2, 0, across_setup, NULL },
	{ "ipc-anew", "imports on another GPU, two objects there", 2, 2, 0, anew_setup, NULL },
	{ "ipc-sysmem", "memory of the host by handle, mapping and CPU", 2, 1, 0, sysmem_setup, NULL },
	{ "mesh", "N processes on two GPUs, all to all", 0, 2, 0, share_mesh_setup, NULL },
	{ "mesh-kept", "the same, with handles and tokens left behind", 0, 2, SHARE_SECOND, share_mesh_setup, NULL },
	{ "orphan-freed", "the exporter has freed its BO", 3, 1, 0, orphan_freed_setup, NULL },
	{ "orphan-exited", "the exporter has ended", 3, 1, SHARE_LAST_LEAVES, orphan_exited_setup, NULL },
	{ "orphan-alone", "the exporter has ended, one importer is left", 2, 1, SHARE_LAST_LEAVES, orphan_alone_setup,
	  orphan_alone_check },
	{ "quits", "two share, a third one ends when it gets SIGUSR2", 3, 1, 0, quits_setup, NULL },
	{ "quits-kept", "the third one has handles of the others' buffers", 3, 1, SHARE_SECOND, quits_setup, NULL },
	{ "apart", "two buffers that pass for one: both processes fail", 2, 1, 0, apart_setup, NULL },
	{ 0 },
};
