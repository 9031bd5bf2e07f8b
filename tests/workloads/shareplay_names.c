// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of buffers: how they are made, what each has to show, how they go.
 *
 * Left out, since the kernel does it wrong by itself:
 * - VRAM imported by another GPU: Linux 7.2 cannot within a hive, and keeps a reference to the dma-buf for each try
 *   (amdgpu_dma_buf_map). Outside of one, importers are not told of a move once the object has lost its last handle
 *   (amdgpu_bo_move_notify).
 * - VRAM mapped on another GPU outside of a hive: -EINVAL without large BARs, and a reference stays after the unmap.
 * - mappings that outlive their handle, and open messages: the plugin refuses them, as the man page says.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pattern.h"
#include "report.h"
#include "shareplay.h"

#define RING_BYTES (16u << 10)
#define VA_FLAGS   (GEM_READ | GEM_WRITE | GEM_EXECUTE)
#define LOWEST_FD  64 /* of a dma-buf that is kept: above the files that have to be restored before it */

/* ---- numbers and names ---- */

bool play_is_kfd(const struct play_name *name)
{
	return name->kind == PLAY_BO || name->kind == PLAY_IMPORT;
}

/*
 * All KFD BOs of one buffer on one GPU have one handle in a file of the driver's own, and each FREE of one of them closes
 * that number, whoever has it then. The others are loose: an allocation may get the number and lose it again when they
 * are freed. What was exported before is not hit. So what is made while there are loose ones is exported at once, and is
 * taken for loose as well.
 */
static void loosen(struct play_world *world, unsigned int buffer, unsigned int gpu)
{
	for (unsigned int i = 0; i < PLAY_NAMES; i++) {
		struct play_name *name = &world->names[i];

		if (!play_is_kfd(name) || name->buffer != buffer || name->gpu != gpu || name->loose)
			continue;
		name->loose = true;
		world->nr_loose[gpu]++;
	}
}

static bool has_names(const struct play_world *world, unsigned int buffer)
{
	for (unsigned int i = 0; i < PLAY_NAMES; i++)
		if (world->names[i].kind != PLAY_NONE && world->names[i].buffer == buffer)
			return true;
	return false;
}

void play_forget(struct play_world *world, struct play_name *name)
{
	bool was_kfd = play_is_kfd(name);

	name->kind = PLAY_NONE;
	if (was_kfd && name->loose)
		world->nr_loose[name->gpu]--;
	if (was_kfd)
		loosen(world, name->buffer, name->gpu);
	if (!has_names(world, name->buffer))
		world->buffers[name->buffer].used = false;
}

/* The number that the kernel has to give: the lowest that is free. */
static uint64_t next_number(const struct play *me, unsigned int gpu, bool kfd)
{
	uint64_t number = kfd ? me->first_number[gpu] : 1;

	for (unsigned int i = 0; i < PLAY_NAMES; i++) {
		const struct play_name *name = &me->world->names[i];

		if (name->player != me->number || name->gpu != gpu)
			continue;
		if (kfd ? !play_is_kfd(name) || (uint32_t)name->bo.handle != number
			: name->kind != PLAY_HANDLE || name->handle != number)
			continue;
		number++;
		i = UINT32_MAX; /* from the beginning */
	}
	return number;
}

static int number_check(const struct play *me, unsigned int gpu, bool kfd, uint64_t number)
{
	uint64_t want = next_number(me, gpu, kfd);

	if (number == want)
		return 0;
	return report(EILSEQ, "player %u: a new %s of GPU %u has number %" PRIu64 ", want %" PRIu64, me->number,
		      kfd ? "KFD BO" : "handle", gpu, number, want);
}

static struct play_name *name_new(struct play *me, unsigned int buffer, unsigned int gpu)
{
	for (unsigned int i = 0; i < PLAY_NAMES; i++) {
		struct play_name *name = &me->world->names[i];

		if (name->kind != PLAY_NONE)
			continue;
		memset(name, 0, sizeof(*name));
		name->player = me->number;
		name->buffer = buffer;
		name->gpu = gpu;
		name->fd = -1;
		return name;
	}
	report(ENOSPC, "too many names");
	return NULL;
}

static void name_keep(struct play *me, struct play_name *name, enum play_kind kind)
{
	name->kind = kind;
	if (!play_is_kfd(name) || !me->world->nr_loose[name->gpu])
		return;
	name->loose = true;
	me->world->nr_loose[name->gpu]++;
}

static int buffer_new(struct play *me, unsigned int gpu, enum kfd_memory kind, uint64_t bytes, unsigned int *ret)
{
	struct play_world *world = me->world;

	for (unsigned int i = 0; i < PLAY_BUFFERS; i++) {
		if (world->buffers[i].used)
			continue;
		world->buffers[i] = (struct play_buffer){ true, kind, gpu, bytes, ++world->seeds, 0 };
		*ret = i;
		return 0;
	}
	return report(ENOSPC, "too many buffers");
}

/* ---- contents ---- */

static const struct play_buffer *buffer_of(const struct play *me, const struct play_name *name)
{
	return &me->world->buffers[name->buffer];
}

/* Which buffer these bytes are of, for the message. */
static int find_contents(const struct play_world *world, const void *p)
{
	struct pattern_diff diff;

	for (unsigned int i = 0; i < PLAY_BUFFERS; i++)
		if (world->buffers[i].used && pattern_check(p, KFD_PAGE_SIZE, world->buffers[i].seed, 0, &diff))
			return (int)i;
	return -1;
}

static int shows(const struct play *me, unsigned int number, const void *p, const char *how)
{
	const struct play_buffer *buffer = &me->world->buffers[number];
	struct pattern_diff diff;

	if (pattern_check(p, buffer->bytes, buffer->seed, 0, &diff))
		return 0;
	return report(EILSEQ,
		      "player %u: buffer %u (%s of GPU %u, %" PRIu64 " bytes, contents %" PRIu64 ") by %s: byte %" PRIu64
		      " is %#04x, want %#04x; the contents are those of buffer %d",
		      me->number, number, kfd_memory_name(buffer->kind), buffer->gpu, buffer->bytes, buffer->seed, how,
		      diff.offset, diff.got, diff.want, find_contents(me->world, p));
}

static int gpu_shows(struct play *me, unsigned int buffer, unsigned int gpu, uint64_t va, const char *how)
{
	uint64_t bytes = me->world->buffers[buffer].bytes;
	int err;

	memset(me->windows[gpu].cpu, 0, bytes);
	err = sdma_copy_now(&me->queues[gpu], me->windows[gpu].va, va, bytes);
	return err ? err : shows(me, buffer, me->windows[gpu].cpu, how);
}

static int fill(struct play *me, unsigned int number, unsigned int gpu, void *cpu, uint64_t va)
{
	const struct play_buffer *buffer = &me->world->buffers[number];

	pattern_fill(cpu ? cpu : me->windows[gpu].cpu, buffer->bytes, buffer->seed, 0);
	return cpu ? 0 : sdma_copy_now(&me->queues[gpu], va, me->windows[gpu].va, buffer->bytes);
}

/* ---- mappings of handles ---- */

static bool has_kfd(const struct play *me)
{
	return me->world->has_kfd[me->number];
}

/* The CPU does not see an import of another GPU's memory. */
static bool is_visible(const struct play *me, unsigned int buffer, unsigned int gpu)
{
	return me->world->buffers[buffer].kind != KFD_MEMORY_VRAM && me->world->buffers[buffer].gpu == gpu;
}

static int map_gpu(struct play *me, unsigned int gpu, uint32_t handle, uint64_t bytes, uint64_t *ret_va)
{
	return gem_map_gpu(me->kfd.gpus[gpu].render_fd, handle, 0, bytes, VA_FLAGS, ret_va);
}

static int unmap_gpu(struct play *me, unsigned int gpu, uint32_t handle, uint64_t bytes, uint64_t va)
{
	int err = gem_va_unmap(me->kfd.gpus[gpu].render_fd, handle, va, 0, bytes);

	munmap((void *)(uintptr_t)va, bytes);
	return err;
}

static int map_cpu(struct play *me, unsigned int gpu, uint32_t handle, uint64_t bytes, void **ret)
{
	return gem_map_cpu(me->kfd.gpus[gpu].render_fd, handle, NULL, bytes, PROT_READ | PROT_WRITE, ret);
}

/* Size and metadata; those are seen on the owner's GPU only. */
static int handle_describes(struct play *me, unsigned int number, unsigned int gpu, uint32_t handle, const char *how)
{
	const struct play_buffer *buffer = &me->world->buffers[number];
	int file = me->kfd.gpus[gpu].render_fd, err;
	uint64_t size;

	err = gem_size(file, handle, &size);
	if (!err && size != buffer->bytes)
		err = report(EILSEQ, "player %u: buffer %u by %s has %" PRIu64 " bytes, want %" PRIu64, me->number, number,
			     how, size, buffer->bytes);
	if (err || gpu != buffer->gpu || !buffer->token)
		return err;
	return gem_metadata_check(file, handle, 0, &buffer->token, sizeof(buffer->token));
}

int play_describe(struct play *me, const struct play_name *name)
{
	uint32_t token = (uint32_t)++me->world->seeds;

	if (name->kind != PLAY_HANDLE || name->gpu != buffer_of(me, name)->gpu)
		return 0;
	me->world->buffers[name->buffer].token = token;
	return gem_metadata_set(me->kfd.gpus[name->gpu].render_fd, name->handle, 0, &token, sizeof(token));
}

/* What a handle shows, mapped only for that. */
static int handle_shows(struct play *me, unsigned int buffer, unsigned int gpu, uint32_t handle, const char *how)
{
	uint64_t bytes = me->world->buffers[buffer].bytes, va = 0;
	int err = handle_describes(me, buffer, gpu, handle, how), unmapped;
	void *cpu = NULL;

	if (err || (!has_kfd(me) && !is_visible(me, buffer, gpu)))
		return err;
	if (!has_kfd(me)) {
		err = map_cpu(me, gpu, handle, bytes, &cpu);
		err = err ? err : shows(me, buffer, cpu, how);
		munmap(cpu, bytes);
		return err;
	}
	err = map_gpu(me, gpu, handle, bytes, &va);
	if (err)
		return err;
	err = gpu_shows(me, buffer, gpu, va, how);
	unmapped = unmap_gpu(me, gpu, handle, bytes, va);
	return err ? err : unmapped;
}

bool play_has_handle(const struct play *me, unsigned int buffer, unsigned int gpu)
{
	for (unsigned int i = 0; i < PLAY_NAMES; i++) {
		const struct play_name *name = &me->world->names[i];

		if (name->kind == PLAY_HANDLE && name->player == me->number && name->buffer == buffer && name->gpu == gpu)
			return true;
	}
	return false;
}

/* By a handle that is closed again, unless it was there: a file has one for each buffer. */
static int dmabuf_shows(struct play *me, unsigned int buffer, int dmabuf, const char *how)
{
	unsigned int gpu = me->world->buffers[buffer].gpu;
	int file = me->kfd.gpus[gpu].render_fd, err, closed;
	bool had = play_has_handle(me, buffer, gpu);
	uint32_t handle;

	err = gem_import(file, dmabuf, &handle);
	err = err || had ? err : number_check(me, gpu, false, handle);
	if (err)
		return err;
	err = handle_shows(me, buffer, gpu, handle, how);
	closed = had ? 0 : gem_close(file, handle);
	return err ? err : closed;
}

/* ---- new names ---- */

int play_alloc(struct play *me, unsigned int gpu, enum kfd_memory kind, uint64_t bytes, bool bare)
{
	struct kfd_gpu *kfd_gpu = &me->kfd.gpus[gpu];
	unsigned int buffer;
	struct play_name *name;
	int fd, err = buffer_new(me, gpu, kind, bytes, &buffer);

	name = err ? NULL : name_new(me, buffer, gpu);
	if (!name)
		return -ENOSPC;
	err = bare ? kfd_bo_alloc_bare(&me->kfd, kfd_gpu, kind, bytes, &name->bo)
		   : kfd_bo_alloc(&me->kfd, kfd_gpu, kind, bytes, &name->bo);
	err = err ? err : number_check(me, gpu, true, (uint32_t)name->bo.handle);
	if (!err && !bare)
		err = fill(me, buffer, gpu, name->bo.cpu, name->bo.va);
	if (err)
		return err;
	name_keep(me, name, PLAY_BO);
	/* Memory without an address is filled by another name. */
	if (!bare && !name->loose)
		return 0;
	err = kfd_bo_export(&me->kfd, &name->bo, &fd);
	if (err)
		return err;
	if (bare) {
		err = play_handle(me, buffer, gpu, fd);
		for (unsigned int i = 0; !err && i < PLAY_NAMES; i++)
			if (me->world->names[i].kind == PLAY_HANDLE && me->world->names[i].buffer == buffer) {
				err = map_gpu(me, gpu, me->world->names[i].handle, bytes, &me->world->names[i].va);
				err = err ? err : fill(me, buffer, gpu, NULL, me->world->names[i].va);
			}
	}
	close(fd);
	return err;
}

int play_create(struct play *me, unsigned int gpu, enum kfd_memory kind, uint64_t bytes)
{
	uint64_t domain = kind == KFD_MEMORY_GTT ? GEM_DOMAIN_GTT : GEM_DOMAIN_VRAM;
	unsigned int buffer;
	struct play_name *name;
	int err = buffer_new(me, gpu, kind, bytes, &buffer);

	name = err ? NULL : name_new(me, buffer, gpu);
	if (!name)
		return -ENOSPC;
	err = gem_create(me->kfd.gpus[gpu].render_fd, bytes, domain, 0, &name->handle);
	err = err ? err : number_check(me, gpu, false, name->handle);
	err = err ? err : map_cpu(me, gpu, name->handle, bytes, &name->cpu);
	err = err ? err : fill(me, buffer, gpu, name->cpu, 0);
	if (!err)
		name_keep(me, name, PLAY_HANDLE);
	return err;
}

int play_import(struct play *me, unsigned int buffer, unsigned int gpu, int dmabuf)
{
	struct play_name *name = name_new(me, buffer, gpu);
	int err = name ? kfd_bo_import(&me->kfd, &me->kfd.gpus[gpu], dmabuf, me->world->buffers[buffer].bytes, &name->bo)
		       : -ENOSPC;

	err = err ? err : number_check(me, gpu, true, (uint32_t)name->bo.handle);
	if (!err)
		name_keep(me, name, PLAY_IMPORT);
	return err;
}

int play_handle(struct play *me, unsigned int buffer, unsigned int gpu, int dmabuf)
{
	struct play_name *name = name_new(me, buffer, gpu);
	int err = name ? gem_import(me->kfd.gpus[gpu].render_fd, dmabuf, &name->handle) : -ENOSPC;

	err = err ? err : number_check(me, gpu, false, name->handle);
	if (!err)
		name_keep(me, name, PLAY_HANDLE);
	return err;
}

int play_keep(struct play *me, unsigned int buffer, int dmabuf)
{
	struct play_name *name = name_new(me, buffer, me->world->buffers[buffer].gpu);
	int fd = name ? fcntl(dmabuf, F_DUPFD_CLOEXEC, LOWEST_FD) : -1;

	close(dmabuf);
	if (fd < 0)
		return report(errno, "keeping a dma-buf: %m");
	name->fd = fd;
	name_keep(me, name, PLAY_DMABUF);
	return 0;
}

/* ---- what is done with names ---- */

int play_export(struct play *me, const struct play_name *name, int *ret_fd)
{
	char how[64];
	int err = 0;

	snprintf(how, sizeof(how), "an export of %s", name->kind == PLAY_HANDLE ? "a handle" : "a KFD BO");
	if (play_is_kfd(name))
		err = kfd_bo_export(&me->kfd, &name->bo, ret_fd);
	else if (name->kind == PLAY_HANDLE)
		err = gem_export(me->kfd.gpus[name->gpu].render_fd, name->handle, true, ret_fd);
	else if ((*ret_fd = fcntl(name->fd, F_DUPFD_CLOEXEC, 0)) < 0)
		err = report(errno, "duplicate of a dma-buf: %m");
	return err ? err : dmabuf_shows(me, name->buffer, *ret_fd, how);
}

static int map_bo(struct play *me, struct play_name *name)
{
	unsigned int other = (name->gpu + 1) % me->world->nr_gpus;
	bool reaches = name->bo.kind == KFD_MEMORY_GTT || me->world->hive;

	/* An import does not say what it is of. */
	if (!name->bo.va)
		return 0;
	if (name->kind == PLAY_BO && other != name->gpu && reaches && name->bo.nr_mapped == 1)
		return kfd_bo_share(&me->kfd, &name->bo, &me->kfd.gpus[other]);
	return kfd_bo_remap(&me->kfd, &name->bo);
}

static int map_handle(struct play *me, struct play_name *name)
{
	uint64_t bytes = buffer_of(me, name)->bytes, va = name->va;
	void *cpu = name->cpu;

	if (is_visible(me, name->buffer, name->gpu) && play_draw(me->world, 2)) {
		if (!cpu)
			return map_cpu(me, name->gpu, name->handle, bytes, &name->cpu);
		name->cpu = NULL;
		return munmap(cpu, bytes) ? report(errno, "munmap: %m") : 0;
	}
	if (!va)
		return map_gpu(me, name->gpu, name->handle, bytes, &name->va);
	name->va = 0;
	return unmap_gpu(me, name->gpu, name->handle, bytes, va);
}

int play_map(struct play *me, struct play_name *name)
{
	if (name->kind == PLAY_HANDLE)
		return map_handle(me, name);
	return play_is_kfd(name) ? map_bo(me, name) : 0;
}

bool play_can_write(const struct play *me, const struct play_name *name)
{
	return play_is_kfd(name) ? name->bo.va : name->cpu || (name->va && has_kfd(me));
}

int play_write(struct play *me, struct play_name *name)
{
	void *cpu = play_is_kfd(name) ? name->bo.cpu : name->cpu;
	uint64_t va = play_is_kfd(name) ? name->bo.va : name->va;

	if (va && cpu && has_kfd(me) && play_draw(me->world, 2))
		cpu = NULL;
	me->world->buffers[name->buffer].seed = ++me->world->seeds;
	return fill(me, name->buffer, name->gpu, cpu, va);
}

static int bo_check(struct play *me, const struct play_name *name)
{
	const char *how = name->kind == PLAY_IMPORT ? "a KFD import" : "its KFD BO";
	int err = name->bo.va ? gpu_shows(me, name->buffer, name->gpu, name->bo.va, how) : 0;

	if (!err && name->bo.nr_mapped > 1)
		err = gpu_shows(me, name->buffer, (name->gpu + 1) % me->world->nr_gpus, name->bo.va, "the other GPU");
	return err || !name->bo.cpu ? err : shows(me, name->buffer, name->bo.cpu, "the CPU");
}

static int handle_check(struct play *me, const struct play_name *name)
{
	int err = handle_shows(me, name->buffer, name->gpu, name->handle, "a handle");

	if (!err && name->va && has_kfd(me))
		err = gpu_shows(me, name->buffer, name->gpu, name->va, "a GPU's mapping of a handle");
	return err || !name->cpu ? err : shows(me, name->buffer, name->cpu, "the CPU's mapping of a handle");
}

int play_check(struct play *me, const struct play_name *name)
{
	if (play_is_kfd(name))
		return bo_check(me, name);
	return name->kind == PLAY_HANDLE ? handle_check(me, name) : dmabuf_shows(me, name->buffer, name->fd, "a dma-buf");
}

int play_free(struct play *me, struct play_name *name)
{
	uint64_t bytes = buffer_of(me, name)->bytes;
	int err = 0;

	if (play_is_kfd(name))
		err = kfd_bo_free(&me->kfd, &name->bo);
	if (name->kind == PLAY_DMABUF && close(name->fd))
		err = report(errno, "closing a dma-buf: %m");
	if (name->kind == PLAY_HANDLE) {
		if (name->cpu)
			munmap(name->cpu, bytes);
		err = name->va ? unmap_gpu(me, name->gpu, name->handle, bytes, name->va) : 0;
		err = err ? err : gem_close(me->kfd.gpus[name->gpu].render_fd, name->handle);
	}
	play_forget(me->world, name);
	return err;
}

/* ---- the process ---- */

/* What comes next is a name's. */
static int open_gpu(struct play *me, unsigned int gpu)
{
	struct kfd_bo bo;
	int err = sdma_create(&me->kfd, &me->kfd.gpus[gpu], RING_BYTES, &me->queues[gpu]);

	err = err ? err : kfd_bo_alloc(&me->kfd, &me->kfd.gpus[gpu], KFD_MEMORY_GTT, PLAY_MAX_BYTES, &me->windows[gpu]);
	err = err ? err : kfd_bo_alloc_bare(&me->kfd, &me->kfd.gpus[gpu], KFD_MEMORY_GTT, KFD_PAGE_SIZE, &bo);
	if (err)
		return err;
	me->first_number[gpu] = (uint32_t)bo.handle;
	return kfd_bo_free(&me->kfd, &bo);
}

static int open_render_nodes(struct play *me)
{
	int err = 0;

	me->kfd.fd = -1;
	for (unsigned int i = 0; !err && i < me->kfd.nr_gpus; i++) {
		me->kfd.gpus[i].render_fd = kfd_gpu_reopen(&me->kfd.gpus[i]);
		err = me->kfd.gpus[i].render_fd < 0 ? -ENODEV : 0;
	}
	return err;
}

int play_open(struct play *me)
{
	int err;

	if (!has_kfd(me))
		return open_render_nodes(me);
	err = kfd_open(&me->kfd, ~0ull, false);
	for (unsigned int i = 0; !err && i < me->world->nr_gpus; i++)
		err = open_gpu(me, i);
	return err;
}

int play_close(struct play *me)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < PLAY_NAMES; i++)
		if (me->world->names[i].kind != PLAY_NONE && me->world->names[i].player == me->number)
			err = play_free(me, &me->world->names[i]);
	for (unsigned int i = 0; !err && has_kfd(me) && i < me->world->nr_gpus; i++) {
		err = sdma_destroy(&me->queues[i]);
		err = err ? err : kfd_bo_free(&me->kfd, &me->windows[i]);
	}
	return err || !has_kfd(me) ? err : kfd_close(&me->kfd);
}
