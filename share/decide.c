// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who owns each buffer, and what it is to the others.
 *
 * The owner makes it at restore and has its data: whoever allocated it from the KFD; where that one has freed it or
 * is gone, any BO of the KFD on the buffer's own GPU; else a handle there. All checks come first: what is opened
 * afterwards would count as a reference.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>

#include <libdrm/amdgpu_drm.h>

#include "amdgpu_plugin_util.h"
#include "share/survey.h"

/* Flags of GEM_CREATE that are younger than some headers. */
#define CREATE_COHERENT	    (1ull << 13)
#define CREATE_UNCACHED	    (1ull << 14)
#define CREATE_EXT_COHERENT (1ull << 15)
/* The driver sets these on every object and, before Linux 6.18, refuses them from user space: cleared, and wiped when freed. */
#define CREATE_FORCED (AMDGPU_GEM_CREATE_VRAM_CLEARED | (1ull << 9))

/* ---- one buffer ---- */

/* How good an owner is: 3: has allocated it from the KFD; 2: has a BO of it; 1: a handle or an open dma-buf; 0: none. */
static unsigned int fitness(const struct survey *survey, const struct buffer *buffer, const struct holder *holder)
{
	if (holder->minor != buffer->minor || holder->is_import)
		return 0;
	if (holder->kind != HOLDER_BO)
		return 1;
	return holder_bo(survey, holder)->alloc_flags & ~IMPORT_FLAGS ? 3 : 2;
}

/* An importer does not know how its memory was allocated: the memory does. */
static void widen_flags(const struct gem_info *info, struct bo *bo)
{
	static const struct {
		uint64_t create;
		uint32_t alloc;
	} flags[] = {
		{ AMDGPU_GEM_CREATE_VRAM_CONTIGUOUS, KFD_IOC_ALLOC_MEM_FLAGS_CONTIGUOUS },
		{ CREATE_COHERENT, KFD_IOC_ALLOC_MEM_FLAGS_COHERENT },
		{ CREATE_UNCACHED, KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED },
		{ CREATE_EXT_COHERENT, KFD_IOC_ALLOC_MEM_FLAGS_EXT_COHERENT },
	};

	if (bo->alloc_flags & ~IMPORT_FLAGS)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (info->flags & flags[i].create)
			bo->alloc_flags |= flags[i].alloc;
	/* Only a part of the VRAM may be for the CPU. */
	if (bo->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM && info->flags & AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED)
		bo->alloc_flags |= KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
}

/* A BO behind those of the KFD, for a holder that has none. @dmabuf_fd: borrowed; -1: without. */
static int add_bo(const struct survey *survey, const struct holder *holder, const struct gem_info *info,
		  const struct kfd_share *share, int dmabuf_fd)
{
	struct gpu_process *process = holder_process(survey, holder);
	struct kfd_state *state = &process->state;
	int fd = -1, node = topology_find_minor(process->nodes, holder->minor);
	struct bo *grown = node < 0 ? NULL : reallocarray(state->bos, state->nr_bos + 1, sizeof(*grown));

	if (!grown)
		return node < 0 ? node : -ENOMEM;
	state->bos = grown;
	if (dmabuf_fd >= 0 && (fd = fcntl(dmabuf_fd, F_DUPFD_CLOEXEC, 0)) < 0)
		return -errno;
	grown[state->nr_bos++] = (struct bo){
		.size = info->size,
		.offset = holder->is_mappable ? holder->offset : 0,
		.gpu_id = topology_gpu_id(process->nodes->nodes[node]),
		.alloc_flags = info->domains & AMDGPU_GEM_DOMAIN_VRAM ? KFD_IOC_ALLOC_MEM_FLAGS_VRAM :
									KFD_IOC_ALLOC_MEM_FLAGS_GTT,
		.dmabuf_fd = fd,
		.share = *share,
	};
	return 0;
}

/*
 * The owner has no BO of the KFD, and makes the object at restore. Of the flags that this takes, a kernel knows those of its
 * release: it is asked for a page of such memory.
 */
static int own_object(struct survey *survey, const struct buffer *buffer, const struct holder *owner,
		      const struct gem_info *info, struct kfd_share *share)
{
	const struct gem_info page = { .size = PAGE_BYTES, .domains = info->domains, .flags = info->flags & ~CREATE_FORCED };
	int fd = survey_own_file(survey, owner->minor), err;
	uint32_t handle;

	share->kind = KFD_BO_GEM;
	share->domains = page.domains;
	share->flags = page.flags;
	share->alignment = info->alignment;
	err = !kfd_share_is_known(share) ? -EINVAL : fd < 0 ? fd : gem_create(fd, &page, &handle);
	if (err) {
		(void)fail(err, "pid %d: %s of renderD%u is of memory that the kernel cannot recreate (flags %#" PRIx64 "): %m",
		     holder_pid(survey, owner), owner->kind == HOLDER_DMABUF ? "a dma-buf" : "a handle", owner->minor, share->flags);
		return -EOPNOTSUPP;
	}
	err = gem_close(fd, handle);
	return err ? err : add_bo(survey, owner, info, share, buffer->dmabuf_fd);
}

static bool has_bo(const struct buffer *buffer, const struct holder *handle)
{
	for (size_t i = 0; i < buffer->nr; i++)
		if (buffer->holders[i].kind == HOLDER_BO && buffer->holders[i].process == handle->process &&
		    buffer->holders[i].minor == handle->minor)
			return true;
	return false;
}

/* For each holder but the owner's BO, how it gets the buffer. The owner's handles are such holders, too. */
static int note_others(struct survey *survey, const struct buffer *buffer, const struct holder *owner,
		       const struct gem_info *info, uint32_t number)
{
	const struct kfd_share reference = { .buffer = number, .kind = KFD_BO_REF };
	int err = 0;

	for (const struct holder *holder = buffer->holders; !err && holder < buffer->holders + buffer->nr; holder++) {
		struct render_objects *objects = &survey->objects[holder->file];

		if (holder->kind == HOLDER_BO && holder != owner) {
			struct bo *bo = holder_bo(survey, holder);

			bo->share = (struct kfd_share){ .buffer = number, .kind = KFD_BO_IMPORT };
			/* The CPU cannot use memory of another GPU by such a BO. */
			if (!survey_same_device(survey, holder->minor, buffer->minor))
				bo->offset = 0;
		}
		if (holder->kind != HOLDER_HANDLE)
			continue;
		err = array_add(objects->handles, objects->nr_handles,
				(struct gem_handle){ .handle = holder->handle, .buffer = number });
		/* A process with handles of another one's buffer, and no BO of it, gets one in its image. */
		if (!err && holder->process != owner->process && !holder->is_import && !has_bo(buffer, holder))
			err = add_bo(survey, holder, info, &reference, -1);
	}
	return err;
}

static int decide(struct survey *survey, struct buffer *buffer)
{
	pid_t pid = holder_pid(survey, buffer->holders);
	struct kfd_share share = { 0 };
	struct memory memory = { 0 };
	struct holder *owner = buffer->holders;
	bool is_open = references_of_tasks(survey->references, owner->inode);
	int flags, err = survey_find_gpu(survey, buffer);

	if (err)
		return err;
	err = survey_look_at(survey, buffer->minor, buffer->dmabuf_fd, &memory, &share);
	if (err)
		return fail(err, "pid %d: cannot look at a buffer of renderD%u: %m", pid, buffer->minor);
	for (size_t i = 1; i < buffer->nr; i++)
		if (fitness(survey, buffer, &buffer->holders[i]) > fitness(survey, buffer, owner))
			owner = &buffer->holders[i];
	if (!fitness(survey, buffer, owner))
		return fail(-EOPNOTSUPP, "pid %d: has a buffer of renderD%u that no process of the dump holds there: that cannot "
			    "be saved", pid, buffer->minor);
	if (owner->kind == HOLDER_BO)
		widen_flags(&memory.info, holder_bo(survey, owner));
	if (buffer->nr == 1 && owner->kind == HOLDER_BO && !share.metadata_size && !share.tiling && !is_open)
		return 0;

	/* It has several names: a number. An open dma-buf keeps the access mode it was made with. */
	if (survey->nr_buffers == IMAGE_MAX_NUMBER)
		return fail(-E2BIG, "more than %u buffers with several names cannot be saved", IMAGE_MAX_NUMBER);
	share.buffer = ++survey->nr_buffers;
	flags = fcntl(buffer->dmabuf_fd, F_GETFL);
	if (flags < 0)
		return -errno;
	share.read_only = (flags & O_ACCMODE) == O_RDONLY;
	/* RESTORE exports for reading and writing, which may be more. */
	if (is_open && share.read_only && owner->kind == HOLDER_BO)
		return fail(-EOPNOTSUPP, "pid %d: a dma-buf of a buffer that it allocated on renderD%u is open for reading only, "
			    "which the kernel cannot recreate", holder_pid(survey, owner), owner->minor);
	if (is_open)
		err = array_add(survey->open, survey->nr_open, (struct open_buffer){ owner->inode, share.buffer });
	if (!err && owner->kind != HOLDER_BO)
		err = own_object(survey, buffer, owner, &memory.info, &share);
	else if (!err)
		holder_bo(survey, owner)->share = share;
	return err ? err : note_others(survey, buffer, owner, &memory.info, share.buffer);
}

/* ---- files and processes ---- */

/* The KFD maps its BOs in the same address space, and lists show both: two mappings never overlap. */
static int drop_kfd_mappings(const struct gpu_process *process, uint32_t minor, struct render_objects *objects)
{
	const struct kfd_state *state = &process->state;
	_cleanup_free_ uint64_t *addresses = calloc((size_t)state->nr_bos + 1, sizeof(*addresses));
	int node = topology_find_minor(process->nodes, minor);
	size_t kept = 0, nr = 0;

	if (!addresses || node < 0)
		return addresses ? node : -ENOMEM;
	for (size_t i = 0; i < state->nr_records; i++)
		if (records_map_bo(state, i, topology_gpu_id(process->nodes->nodes[node])))
			addresses[nr++] = state->bos[i].addr;
	qsort(addresses, nr, sizeof(*addresses), compare_u64);
	for (size_t i = 0; i < objects->nr_mappings; i++)
		if (objects->mappings[i].offset || !bsearch(&objects->mappings[i].va, addresses, nr, sizeof(*addresses), compare_u64))
			objects->mappings[kept++] = objects->mappings[i];
	objects->nr_mappings = kept;
	return 0;
}

static int take_mappings(const struct survey *survey, size_t number, const struct gpu_process *process)
{
	const struct task_file *file = &survey->request->files->files[number];
	struct render_objects *objects = &survey->objects[number];
	uint32_t last;
	int err = 0;

	if (!objects->nr_handles)
		return 0;
	qsort(objects->handles, objects->nr_handles, sizeof(*objects->handles), compare_u32);
	last = objects->handles[objects->nr_handles - 1].handle;
	if (last > IMAGE_MAX_NUMBER)
		return fail(-E2BIG, "pid %d: its file of renderD%u has a handle with number %u, which is too large to be saved",
			    file->pid, file->minor, last);
	for (size_t i = 0; !err && i < objects->nr_handles; i++)
		err = gem_mappings(file->fd, objects->handles[i].handle, objects);
	if (!err && !survey->without_kfd_vm[number])
		err = drop_kfd_mappings(process, file->minor, objects);
	return err ? fail(err, "pid %d: cannot ask for the GPU mappings of its renderD%u: %m", file->pid, file->minor) : 0;
}

static int finish_process(struct survey *survey, struct gpu_process *process)
{
	struct kfd_state *state = &process->state;
	bool shares = kfd_state_shares(state);
	int err = 0;

	/* A process that shares is restored with placeholders in the gaps of its BOs' numbers. */
	for (size_t i = 0; shares && i < state->nr_records; i++) {
		struct bo_record record;

		if (!records_bo(state, i, &record) && record.handle > IMAGE_MAX_NUMBER)
			return fail(-E2BIG, "pid %d: shares buffers and has a buffer of gpu %#x with number %u, which is too large "
				    "to be restored", process->file.pid, state->bos[i].gpu_id, record.handle);
	}
	for (size_t i = 0; !err && i < survey->request->files->count; i++) {
		if (survey->request->files->files[i].pid != process->file.pid)
			continue;
		process->nr_files++;
		shares = shares || survey->objects[i].nr_handles || survey->objects[i].nr_syncobjs;
		err = take_mappings(survey, i, process);
	}
	if (err)
		return err;
	survey->nr_sharers += shares;
	process->nr_sharers = shares; /* decide_all() knows how many */
	/* What is not owned is not copied. */
	for (size_t i = 0; i < state->nr_bos; i++)
		if (state->bos[i].dmabuf_fd != KFD_NO_FD && !kfd_state_owns(state, i)) {
			close(state->bos[i].dmabuf_fd);
			state->bos[i].dmabuf_fd = KFD_NO_FD;
		}
	return 0;
}

int decide_all(struct survey *survey)
{
	const struct share_request *request = survey->request;
	struct buffer buffer = { 0 };
	int err = 0;

	while (!err && survey_next(survey, &buffer))
		err = survey_is_private(survey, &buffer) ? 0 : decide(survey, &buffer);
	if (!err && survey->nr_buffers)
		pr_info("%u buffers have several names\n", survey->nr_buffers);
	for (size_t i = 0; !err && i < request->nr_processes; i++)
		err = finish_process(survey, request->processes[i]);
	for (size_t i = 0; !err && i < request->nr_processes; i++)
		if (request->processes[i]->nr_sharers)
			request->processes[i]->nr_sharers = survey->nr_sharers;
	return err;
}
