// SPDX-License-Identifier: GPL-2.0-only
/*
 * Render files besides that of KFD, with objects or without, of one process or of two, and processes without KFD.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"
#include "sharejob.h"

#define SYNCOBJ_POINT 7u

/* With gaps: a timeline, one that is signaled, one without a fence. */
static int syncobjs_new(struct share_process *me, int file)
{
	uint32_t fillers[2];
	int err = share_syncobj_new(me, file, SYNCOBJ_POINT, false);

	err = err ? err : syncobj_create(file, false, &fillers[0]);
	err = err ? err : share_syncobj_new(me, file, 0, true);
	err = err ? err : syncobj_create(file, false, &fillers[1]);
	err = err ? err : share_syncobj_new(me, file, 0, false);
	err = err ? err : syncobj_destroy(file, fillers[0]);
	return err ? err : syncobj_destroy(file, fillers[1]);
}

/* An object that the CPU sees and a GPU has mapped in the address space of the file; nobody can compute there. */
static int object_new(struct share_process *me, int file, unsigned int buffer, uint64_t domains, uint32_t *ret_handle)
{
	struct share_view *last;
	uint64_t va;
	int err = share_handle_create(me, file, domains, 0, ret_handle);

	err = err ? err : share_map_cpu(me, buffer, file, *ret_handle, SHARE_PAGES, PROT_READ | PROT_WRITE, NULL);
	if (err)
		return err;
	last = &me->views[me->nr_views - 1];
	err = share_fill(buffer, NULL, 0, last->cpu);
	err = err ? err : share_map_gpu(me, buffer, file, NULL, *ret_handle, 0, SHARE_PAGES, GEM_READ | GEM_WRITE, &va);
	return err ? err : share_map_gpu(me, buffer, file, NULL, *ret_handle, 3, 2, GEM_READ, &va);
}

/* Objects with a gap between their handles, and metadata. */
static int objects_new(struct share_process *me, int file, unsigned int buffer)
{
	static const char text[] = "the rest is tiled";
	uint32_t filler, handle;
	int err = object_new(me, file, buffer, GEM_DOMAIN_VRAM, &handle);

	err = err ? err : share_handle_create(me, file, GEM_DOMAIN_GTT, 0, &filler);
	err = err ? err : share_handle_describe(me, file, handle, 9, text, sizeof(text));
	err = err ? err : object_new(me, file, buffer + 1, GEM_DOMAIN_GTT, &handle);
	err = err ? err : share_handle_drop(me, file, filler);
	return err ? err : syncobjs_new(me, file);
}

/* ---- of a process with KFD ---- */

/* A second file with objects, a third one without, and sync objects in the first. */
static int files_setup(struct share_process *me)
{
	const struct kfd_gpu *gpu = me->gpus[0].gpu;
	int second, third;
	int err = share_file_open(me, gpu, &second);

	err = err ? err : objects_new(me, second, 0);
	err = err ? err : share_file_open(me, gpu, &third);
	return err ? err : syncobjs_new(me, gpu->render_fd);
}

/* Of a GPU without buffers: the file of before is not the KFD's, in which memory is mapped. */
static int files_spare_setup(struct share_process *me)
{
	struct kfd_gpu *gpu = &me->kfd.gpus[1];
	int err = share_file_keep(me, gpu->spare_fd, true, true);

	return err || share_is_second(me) ? err : share_syncobj_new(me, gpu->render_fd, SYNCOBJ_POINT, false);
}

/* By the file with the KFD's address space the CPU can map whatever the KFD allocates. */
static int files_spare_check(struct share_process *me)
{
	struct kfd_bo bo;
	int err = kfd_bo_alloc(&me->kfd, &me->kfd.gpus[1], KFD_MEMORY_VRAM_PUBLIC, SHARE_BYTES, &bo);

	return err ? err : kfd_bo_free(&me->kfd, &bo);
}

/* One second file of two processes: each has made an object in it. The second one maps none. */
static int files_forked_setup(struct share_process *me)
{
	struct share_objects parents = me->objects;
	uint32_t handle;
	int file, err;

	if (!me->number) {
		err = share_file_open(me, me->gpus[0].gpu, &file);
		if (err)
			return err;
		me->objects.files[me->objects.nr_files - 1].alone = false;
		return object_new(me, file, 0, GEM_DOMAIN_VRAM, &handle);
	}
	file = parents.files[parents.nr_files - 1].fd;
	share_objects_forget(me);
	err = share_file_keep(me, file, true, false);
	return err ? err : share_handle_create(me, file, GEM_DOMAIN_GTT, 0, &handle);
}

/* A child that has nothing but the mapping. */
static int map_forked_setup(struct share_process *me)
{
	struct share_objects parents = me->objects;
	struct kfd_bo *bo;
	int err;

	if (me->number) {
		share_objects_forget(me);
		return share_bo_borrow(me, 0, &parents.bos[0]);
	}
	err = share_bo_new(me, 0, &me->gpus[0], KFD_MEMORY_GTT, &bo);
	return err ? err : share_bo_lend(bo);
}

/* ---- without KFD ---- */

/* As programs have them that ask for a GPU's properties. */
static int render_empty_setup(struct share_process *me)
{
	int file, err = 0;

	for (unsigned int i = 0; !err && i < me->kfd.nr_gpus; i++)
		err = share_file_open(me, &me->kfd.gpus[i], &file);
	return err;
}

static int render_setup(struct share_process *me)
{
	int file, err = 0;

	for (unsigned int i = 0; !err && i < me->kfd.nr_gpus && i < 2; i++) {
		err = share_file_open(me, &me->kfd.gpus[i], &file);
		err = err ? err : objects_new(me, file, 2 * i);
	}
	return err;
}

/* A new object, which processes @first to @last get. */
static int give_object(struct share_process *me, int file, unsigned int buffer, unsigned int first, unsigned int last)
{
	uint32_t handle;
	int fd, err = object_new(me, file, buffer, GEM_DOMAIN_VRAM, &handle);

	err = err ? err : gem_export(file, handle, true, &fd);
	if (err)
		return err;
	for (unsigned int to = first; !err && to <= last; to++)
		err = share_send(me, to, buffer, fd);
	close(fd);
	return err;
}

/* What a process without KFD gets: a handle, and a mapping of the CPU. */
static int take_object(struct share_process *me, int file, uint32_t *ret_handle)
{
	unsigned int buffer;
	int err = share_take_handle(me, file, &buffer, ret_handle);

	return err ? err : share_map_cpu(me, buffer, file, *ret_handle, SHARE_PAGES, PROT_READ | PROT_WRITE, NULL);
}

static int render_pair_setup(struct share_process *me)
{
	uint32_t handle;
	int file, err = share_file_open(me, &me->kfd.gpus[0], &file);

	if (err)
		return err;
	return me->number ? take_object(me, file, &handle) : give_object(me, file, 0, 1, 1);
}

/* A mapping of the GPU, too, where nobody can compute. */
static int take_mapped(struct share_process *me, int file)
{
	uint32_t handle;
	uint64_t va;
	int err = take_object(me, file, &handle);

	return err ? err : share_map_gpu(me, 0, file, NULL, handle, 0, SHARE_PAGES, GEM_READ | GEM_WRITE, &va);
}

/* The last process computes on its own buffer and on an object of the first one; the second one has both. */
static int render_kfd_setup(struct share_process *me)
{
	struct kfd_bo *bo;
	unsigned int buffer;
	int file, err;

	if (me->number == 2) {
		err = share_bo_new(me, 0, &me->gpus[0], KFD_MEMORY_VRAM_PUBLIC, &bo);
		err = err ? err : share_send_bo(me, 0, 0, bo);
		err = err ? err : share_send_bo(me, 1, 0, bo);
		return err ? err : share_take(me, &me->gpus[0], &buffer, &bo);
	}
	err = share_file_open(me, &me->kfd.gpus[0], &file);
	err = err ? err : take_mapped(me, file);
	if (err)
		return err;
	return me->number ? take_mapped(me, file) : give_object(me, file, 1, 1, 2);
}

/* The first process has the file with the KFD's address space from the last one, and an object in it. */
static int render_lent_setup(struct share_process *me)
{
	unsigned int buffer;
	uint32_t handle;
	int file, err;

	if (me->number) {
		me->objects.files[0].alone = false;
		err = share_file_open(me, me->gpus[0].gpu, &file);
		return err ? err : share_send(me, 0, 0, me->gpus[0].gpu->render_fd);
	}
	err = share_receive(me, &buffer, &file);
	err = err ? err : share_file_keep(me, file, true, false);
	err = err ? err : share_handle_create(me, file, GEM_DOMAIN_GTT, 0, &handle);
	err = err ? err : share_map_cpu(me, buffer, file, handle, SHARE_PAGES, PROT_READ | PROT_WRITE, NULL);
	return err ? err : share_fill(buffer, NULL, 0, me->views[me->nr_views - 1].cpu);
}

/* The kernel makes objects in a file for reading, too; the CPU cannot write to them by it. */
static int render_readonly_setup(struct share_process *me)
{
	uint32_t handle;
	char path[64];
	int file, err = render_setup(me);

	if (err)
		return err;
	snprintf(path, sizeof(path), "/dev/dri/renderD%u", me->kfd.gpus[0].render_minor);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return report(errno, "open %s for reading: %m", path);
	err = share_file_keep(me, file, true, true);
	return err ? err : share_handle_create(me, file, GEM_DOMAIN_VRAM, 0, &handle);
}

/* It could compute. */
static int render_ctx_setup(struct share_process *me)
{
	uint32_t context;
	int err = render_setup(me);

	return err ? err : gem_context_create(me->objects.files[0].fd, &context);
}

const struct share_case share_file_cases[] = {
	{ "files", "a second render file with objects, a third without", 1, 1, 0, files_setup, NULL },
	{ "files-spare", "a file before the KFD's, which has a sync object", 1, 1, SHARE_SPARE_FILES, files_spare_setup,
	  files_spare_check },
	{ "files-bare", "the same without the sync object", 1, 1, SHARE_SPARE_FILES | SHARE_SECOND, files_spare_setup,
	  files_spare_check },
	{ "files-forked", "a render file of two processes", 2, 1, SHARE_LATE, files_forked_setup, NULL },
	{ "map-forked", "a child with a mapping of its parent's buffer", 2, 1, SHARE_LATE, map_forked_setup, NULL },
	{ "render-empty", "render files without objects, no KFD", 1, 0, SHARE_NO_KFD, render_empty_setup, NULL },
	{ "render", "objects, mappings, sync objects, no KFD", 1, 0, SHARE_NO_KFD, render_setup, NULL },
	{ "render-pair", "two processes without KFD share an object", 2, 0, SHARE_NO_KFD, render_pair_setup, NULL },
	{ "render-kfd", "two processes without KFD share objects with one that has it", 3, 1, SHARE_ONE_KFD,
	  render_kfd_setup, NULL },
	{ "render-lent", "the file of a process with KFD in one without", 2, 1, SHARE_ONE_KFD, render_lent_setup,
	  NULL },
	{ "render-readonly", "as render, with an object in a file for reading", 1, 0, SHARE_NO_KFD,
	  render_readonly_setup, NULL },
	{ "render-ctx", "as render, with a context", 1, 0, SHARE_NO_KFD, render_ctx_setup, NULL },
	{ 0 },
};
