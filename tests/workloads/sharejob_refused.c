// SPDX-License-Identifier: GPL-2.0-only
/*
 * What cannot be saved: partners that are not in the tree, memory of other drivers, objects and states that no program
 * can make again.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report.h"
#include "sharejob.h"

/* ---- a partner outside of the tree: the last process ---- */

static int export_to_other(struct share_process *me)
{
	struct kfd_bo *bo;
	int err = share_bo_new(me, 0, &me->gpus[0], KFD_MEMORY_VRAM_PUBLIC, &bo);

	return err ? err : share_send_bo(me, 1 - me->number, 0, bo);
}

/* The process in the tree exports, or it is the importer. */
static int outside_bo_setup(struct share_process *me)
{
	unsigned int buffer;
	struct kfd_bo *bo;

	if (me->number == share_is_second(me))
		return export_to_other(me);
	return share_take(me, &me->gpus[0], &buffer, &bo);
}

/* ---- an order of files that criu cannot keep ---- */

/* The dma-buf of a process has a lower number than /dev/kfd. */
static int early_setup(struct share_process *me)
{
	struct kfd_bo *bo;
	int fd, err = kfd_renumber(&me->kfd.fd, 500);

	err = err ? err : share_bo_new(me, 0, &me->gpus[0], KFD_MEMORY_VRAM_PUBLIC, &bo);
	err = err ? err : kfd_bo_export(&me->kfd, bo, &fd);
	return err ? err : share_dmabuf_keep(me, 0, fd, NULL);
}

/* Of two processes, each has the other's. */
static int early_pair_setup(struct share_process *me)
{
	struct kfd_bo *bo;
	unsigned int buffer;
	int fd, err = kfd_renumber(&me->kfd.fd, 500);

	err = err ? err : share_bo_new(me, me->number, &me->gpus[0], KFD_MEMORY_VRAM_PUBLIC, &bo);
	err = err ? err : share_send_bo(me, 1 - me->number, me->number, bo);
	err = err ? err : share_receive(me, &buffer, &fd);
	return err ? err : share_dmabuf_keep(me, buffer, fd, NULL);
}

/* The same of a process without it: than the file of the render node that has the object. */
static int render_early_setup(struct share_process *me)
{
	uint32_t handle;
	int fd, file = kfd_gpu_reopen(&me->kfd.gpus[0]);
	int err = file < 0 ? file : kfd_renumber(&file, 500);

	err = err ? err : share_file_keep(me, file, true, true);
	err = err ? err : share_handle_create(me, file, GEM_DOMAIN_GTT, 0, &handle);
	err = err ? err : share_map_cpu(me, 0, file, handle, SHARE_PAGES, PROT_READ | PROT_WRITE, NULL);
	err = err ? err : share_fill(0, NULL, 0, me->views[me->nr_views - 1].cpu);
	err = err ? err : gem_export(file, handle, true, &fd);
	return err ? err : share_dmabuf_keep(me, 0, fd, NULL);
}

static int outside_handle_setup(struct share_process *me)
{
	int file = me->gpus[0].gpu->render_fd, err;
	unsigned int buffer;
	uint32_t handle;
	uint64_t va;

	if (!me->number)
		return export_to_other(me);
	err = share_take_handle(me, file, &buffer, &handle);
	return err ? err
		   : share_map_gpu(me, buffer, file, &me->gpus[0], handle, 0, SHARE_PAGES, GEM_READ | GEM_WRITE, &va);
}

static int outside_dmabuf_setup(struct share_process *me)
{
	unsigned int buffer;
	int fd, err;

	if (!me->number)
		return export_to_other(me);
	err = share_receive(me, &buffer, &fd);
	return err ? err : share_dmabuf_keep(me, buffer, fd, NULL);
}

/* A message that nobody has read yet. */
static int under_way_setup(struct share_process *me)
{
	struct kfd_bo *bo;
	int ends[2], err = share_bo_new(me, 0, &me->gpus[0], KFD_MEMORY_VRAM_PUBLIC, &bo);

	if (!err && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		err = report(errno, "socketpair: %m");
	if (err)
		return err;
	me->outboxes[1] = ends[1];
	return share_send_bo(me, 1, 0, bo);
}

/* ---- other drivers' memory ---- */

static int udmabuf_setup(struct share_process *me)
{
	int memfd = memfd_create("pages", MFD_ALLOW_SEALING | MFD_CLOEXEC), device, fd, err;
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = SHARE_BYTES };
	struct kfd_bo *bo;
	void *p;

	if (memfd < 0 || ftruncate(memfd, SHARE_BYTES) || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		return report(errno, "memfd: %m");
	p = mmap(NULL, SHARE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (p == MAP_FAILED || device < 0)
		return report(errno, "/dev/udmabuf: %m");
	create.memfd = (uint32_t)memfd;
	fd = ioctl(device, UDMABUF_CREATE, &create);
	if (fd < 0)
		return report(errno, "UDMABUF_CREATE: %m");
	err = share_fill(0, NULL, 0, p);
	err = err ? err : share_bo_import(me, 0, &me->gpus[0], fd, &bo);
	close(fd);
	close(device);
	close(memfd);
	return err ? err : share_view_cpu(me, 0, p, 0, SHARE_PAGES, true);
}

/* ---- objects and states ---- */

static int object_setup(struct share_process *me)
{
	bool doorbell = share_is_second(me);
	uint32_t handle;

	return share_handle_create(me, me->gpus[0].gpu->render_fd, doorbell ? GEM_DOMAIN_DOORBELL : GEM_DOMAIN_VRAM,
				   doorbell ? 0 : GEM_ALWAYS_VALID, &handle);
}

static int userptr_setup(struct share_process *me)
{
	void *p = mmap(NULL, SHARE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t handle;

	if (p == MAP_FAILED)
		return report(errno, "mmap: %m");
	return gem_userptr(me->gpus[0].gpu->render_fd, p, SHARE_BYTES, &handle);
}

static int context_setup(struct share_process *me)
{
	uint32_t context;
	int file, err = share_file_open(me, me->gpus[0].gpu, &file);

	err = err ? err : gem_context_create(file, &context);
	return err ? err : gem_context_use(file, context);
}

const struct share_case share_refused_cases[] = {
	{ "outside-import", "a process outside of the tree imports", 2, 1, SHARE_OUTSIDE, outside_bo_setup, NULL },
	{ "outside-export", "one outside of the tree exports", 2, 1, SHARE_OUTSIDE | SHARE_SECOND, outside_bo_setup, NULL },
	{ "outside-handle", "one outside of the tree has a handle", 2, 1, SHARE_OUTSIDE, outside_handle_setup, NULL },
	{ "outside-dmabuf", "one outside of the tree has a dma-buf open", 2, 1, SHARE_OUTSIDE, outside_dmabuf_setup,
	  NULL },
	{ "early", "a dma-buf with a lower number than /dev/kfd", 1, 1, 0, early_setup, NULL },
	{ "early-pair", "two processes have each other's so", 2, 1, 0, early_pair_setup, NULL },
	{ "render-early", "one with a lower number than the render file, no KFD", 1, 0, SHARE_NO_KFD, render_early_setup,
	  NULL },
	{ "under-way", "a dma-buf in a message that is not read", 1, 1, 0, under_way_setup, NULL },
	{ "udmabuf", "pages of a memfd imported", 1, 1, 0, udmabuf_setup, NULL },
	{ "always-valid", "an object that is always valid", 1, 1, 0, object_setup, NULL },
	{ "doorbell", "a doorbell object", 1, 1, SHARE_SECOND, object_setup, NULL },
	{ "userptr", "a userptr object of a render file", 1, 1, 0, userptr_setup, NULL },
	{ "context", "a context that has executed jobs", 1, 1, 0, context_setup, NULL },
	{ 0 },
};
