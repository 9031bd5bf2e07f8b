// SPDX-License-Identifier: GPL-2.0-only
/*
 * Open dma-bufs: duplicates, sent and inherited ones, read-only ones, with a name, and one that alone holds its memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "report.h"
#include "sharejob.h"

static int keep_twice(struct share_process *me, unsigned int buffer, int fd, const char *name)
{
	int err = share_dmabuf_keep(me, buffer, fd, name), second;

	if (err)
		return err;
	second = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return second < 0 ? report(errno, "duplicating a dma-buf: %m") : share_dmabuf_keep(me, buffer, second, NULL);
}

/* Buffer 0: a KFD BO, the dma-buf has a name; 1: a handle, read-only; 2: its BO is freed, only the dma-buf is left. */
static int owner_setup(struct share_process *me)
{
	struct share_gpu *gpu = &me->gpus[0];
	int file = gpu->gpu->render_fd, fds[3];
	struct kfd_bo *bo, *gone;
	uint32_t handle;
	uint64_t va;
	int err = share_bo_new(me, 0, gpu, KFD_MEMORY_VRAM_PUBLIC, &bo);

	err = err ? err : kfd_bo_export(&me->kfd, bo, &fds[0]);
	err = err ? err : share_handle_create(me, file, GEM_DOMAIN_GTT, 0, &handle);
	err = err ? err : gem_export(file, handle, false, &fds[1]);
	err = err ? err : share_map_gpu(me, 1, file, gpu, handle, 0, SHARE_PAGES, GEM_READ | GEM_WRITE, &va);
	err = err ? err : share_fill(1, gpu, va, NULL);
	err = err ? err : share_bo_new(me, 2, gpu, KFD_MEMORY_VRAM_PUBLIC, &gone);
	err = err ? err : kfd_bo_export(&me->kfd, gone, &fds[2]);
	if (err)
		return err;
	share_views_drop(me, 2);
	err = share_bo_drop(me, gone);
	err = err ? err : keep_twice(me, 0, fds[0], "weights");
	for (unsigned int i = 1; !err && i < 3; i++)
		err = share_dmabuf_keep(me, i, fds[i], NULL);
	for (unsigned int i = 0; !err && i < 3; i++)
		err = share_send(me, 1, i, fds[i]);
	return err;
}

/* Got by a message: of buffer 0 also imported, the others only open. */
static int receiver_setup(struct share_process *me)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < 3; i++) {
		unsigned int buffer;
		struct kfd_bo *bo;
		int fd;

		err = share_receive(me, &buffer, &fd);
		if (!err && !buffer)
			err = share_bo_import(me, buffer, &me->gpus[0], fd, &bo);
		err = err ? err : share_dmabuf_keep(me, buffer, fd, NULL);
	}
	return err;
}

/* Inherited by a process that has nothing of KFD. */
static int heir_setup(struct share_process *me)
{
	struct share_objects parents = me->objects;
	int err = 0;

	share_objects_forget(me);
	for (unsigned int i = 0; !err && i < parents.nr_dmabufs; i++)
		err = share_dmabuf_keep(me, parents.dmabufs[i].buffer, parents.dmabufs[i].fd, NULL);
	return err;
}

static int dmabuf_setup(struct share_process *me)
{
	if (!me->number)
		return owner_setup(me);
	return me->number == 1 ? receiver_setup(me) : heir_setup(me);
}

/* ---- of a BO that is freed ---- */

static uint64_t lone_flags;

/* KFD memory of the host is coherent here. */
static int lone_setup(struct share_process *me)
{
	struct share_gpu *gpu = &me->gpus[0];
	struct kfd_bo *gone;
	int fd, err = share_bo_new(me, 0, gpu, share_is_second(me) ? KFD_MEMORY_GTT : KFD_MEMORY_VRAM_PUBLIC, &gone);

	err = err ? err : kfd_bo_export(&me->kfd, gone, &fd);
	if (err)
		return err;
	share_views_drop(me, 0);
	err = share_bo_drop(me, gone);
	err = err ? err : share_dmabuf_keep(me, 0, fd, NULL);
	return err ? err : share_flags(gpu->gpu->render_fd, fd, &lone_flags);
}

static int lone_check(struct share_process *me)
{
	uint64_t flags;
	int err = share_flags(me->gpus[0].gpu->render_fd, me->objects.dmabufs[0].fd, &flags);

	if (!err && (flags | GEM_ADDED) != (lone_flags | GEM_ADDED))
		err = report(EILSEQ, "the dma-buf's memory has flags %#llx, want %#llx", (unsigned long long)flags,
			     (unsigned long long)lone_flags);
	return err;
}

const struct share_case share_dmabuf_cases[] = {
	{ "dmabuf", "open dma-bufs of three processes", 3, 1, SHARE_LATE, dmabuf_setup, NULL },
	{ "dmabuf-lone", "a dma-buf is all that is left", 1, 1, 0, lone_setup, lone_check },
	{ "dmabuf-lone-coherent", "the same of coherent memory", 1, 1, SHARE_SECOND, lone_setup, lone_check },
	{ 0 },
};
