// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who owns each buffer, and what it is to the others.
 *
 * The owner makes it at restore and has its contents: whoever allocated it from the KFD; where that one has freed it or
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

/* ---- the owner ---- */

static bool is_better_owner(const struct survey *survey, const struct buffer *buffer, const struct holder *holder,
			    const struct holder *than)
{
	if (holder->minor != buffer->minor || holder->is_import)
		return false;
	if (!than || holder->kind != HOLDER_BO || than->kind != HOLDER_BO)
		return !than || (than->kind != HOLDER_BO && holder->kind == HOLDER_BO);
	return holder_bo(survey, holder)->alloc_flags & ~IMPORT_FLAGS &&
	       !(holder_bo(survey, than)->alloc_flags & ~IMPORT_FLAGS);
}

/* NULL: nobody can be. */
static struct holder *find_owner(const struct survey *survey, const struct buffer *buffer)
{
	struct holder *owner = NULL;

	for (size_t i = 0; i < buffer->nr; i++)
		if (is_better_owner(survey, buffer, &buffer->holders[i], owner))
			owner = &buffer->holders[i];
	return owner;
}

/* ---- what is written down ---- */

/* A BO behind those of the KFD, of a handle. */
static int note_owned_bo(const struct survey *survey, const struct holder *holder, const struct gem_info *info,
		  const struct kfd_share *share, struct bo **ret)
{
	struct gpu_process *process = holder_process(survey, holder);
	struct kfd_state *state = &process->state;
	int node = topology_find_minor(process->nodes, holder->minor);
	struct bo *grown = node < 0 ? NULL : reallocarray(state->bos, state->nr_bos + 1, sizeof(*grown));

	if (!grown)
		return node < 0 ? node : -ENOMEM;
	state->bos = grown;
	grown[state->nr_bos] = (struct bo){
		.size = info->size,
		.offset = holder->is_mappable ? holder->offset : 0,
		.gpu_id = topology_gpu_id(process->nodes->nodes[node]),
		.alloc_flags = info->domains & AMDGPU_GEM_DOMAIN_VRAM ? KFD_IOC_ALLOC_MEM_FLAGS_VRAM :
									KFD_IOC_ALLOC_MEM_FLAGS_GTT,
		.dmabuf_fd = KFD_NO_FD,
		.share = *share,
	};
	*ret = &grown[state->nr_bos++];
	return 0;
}

static int note_handle(struct survey *survey, const struct holder *holder, uint32_t buffer)
{
	struct render_objects *objects = &survey->objects[holder->file];

	return array_add(objects->handles, objects->nr_handles,
			 (struct gem_handle){ .handle = holder->handle, .buffer = buffer });
}

/* ---- owners ---- */

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

/* Of the flags that a restore takes, a kernel knows those of its release: it is asked for a page of such memory. */
static int try_object(struct survey *survey, const struct holder *owner, const struct kfd_share *share)
{
	const struct gem_info page = { .size = PAGE_BYTES, .domains = share->domains, .flags = share->flags };
	int fd = survey_own_file(survey, owner->minor), err = kfd_share_is_known(share) ? fd : -EINVAL;
	uint32_t handle;

	if (err >= 0)
		err = gem_create(fd, &page, &handle);
	if (!err)
		return gem_close(fd, handle);
	(void)fail(err, "pid %d: %s of renderD%u is of memory that the kernel does not make again (flags %#" PRIx64 "): %m",
	     holder_pid(survey, owner), owner->kind == HOLDER_DMABUF ? "a dma-buf" : "a handle", owner->minor,
	     share->flags);
	return -EOPNOTSUPP;
}

static int own_object(struct survey *survey, const struct buffer *buffer, const struct holder *owner,
		      const struct gem_info *info, struct kfd_share *share)
{
	struct bo *bo;
	int err, fd;

	share->kind = KFD_BO_GEM;
	share->domains = info->domains;
	share->flags = info->flags & ~CREATE_FORCED;
	share->alignment = info->alignment;
	err = try_object(survey, owner, share);
	if (!err)
		err = note_owned_bo(survey, owner, info, share, &bo);
	if (err)
		return err;
	fd = fcntl(buffer->dmabuf_fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	bo->dmabuf_fd = fd;
	return 0;
}

static bool has_bo(const struct buffer *buffer, const struct holder *handle)
{
	for (size_t i = 0; i < buffer->nr; i++)
		if (buffer->holders[i].kind == HOLDER_BO && buffer->holders[i].process == handle->process &&
		    buffer->holders[i].minor == handle->minor)
			return true;
	return false;
}

/* A process that has handles of another one's buffer, and no BO of it, gets one in its image. */
static int note_reference(struct survey *survey, const struct buffer *buffer, const struct holder *holder,
			  const struct holder *owner, const struct gem_info *info, uint32_t number)
{
	const struct kfd_share share = { .buffer = number, .kind = KFD_BO_REF };
	struct bo *bo;
	int err = note_handle(survey, holder, number);

	if (err || holder == owner || holder->is_import || holder->process == owner->process || has_bo(buffer, holder))
		return err;
	return note_owned_bo(survey, holder, info, &share, &bo);
}

static void note_import(const struct survey *survey, const struct buffer *buffer, const struct holder *holder,
			uint32_t number)
{
	struct bo *bo = holder_bo(survey, holder);

	bo->share = (struct kfd_share){ .buffer = number, .kind = KFD_BO_IMPORT };
	/* The CPU cannot use memory of another GPU by such a BO. */
	if (!survey_same_device(survey, holder->minor, buffer->minor))
		bo->offset = 0;
}

/* Writes down for each holder but the owner's BO how it gets the buffer. The owner's handles are such holders, too. */
static int note_others(struct survey *survey, const struct buffer *buffer, const struct holder *owner,
		       const struct gem_info *info, uint32_t number)
{
	for (size_t i = 0; i < buffer->nr; i++) {
		const struct holder *holder = &buffer->holders[i];
		int err = 0;

		if (holder->kind == HOLDER_HANDLE)
			err = note_reference(survey, buffer, holder, owner, info, number);
		else if (holder->kind == HOLDER_BO && holder != owner)
			note_import(survey, buffer, holder, number);
		if (err)
			return err;
	}
	return 0;
}

static bool has_open_dmabuf(const struct survey *survey, const struct buffer *buffer)
{
	return references_of_tasks(survey->references, buffer->holders->inode);
}

/* An open dma-buf keeps the access mode it was made with. RESTORE exports for reading and writing, which may be more. */
static int note_open(struct survey *survey, const struct buffer *buffer, const struct holder *owner,
		     struct kfd_share *share)
{
	int flags = fcntl(buffer->dmabuf_fd, F_GETFL);

	if (flags < 0)
		return -errno;
	share->read_only = (flags & O_ACCMODE) == O_RDONLY;
	if (!has_open_dmabuf(survey, buffer))
		return 0;
	if (share->read_only && owner->kind == HOLDER_BO)
		return fail(-EOPNOTSUPP, "pid %d: a dma-buf of a buffer that it allocated on renderD%u is open for reading only, "
			    "which the kernel does not make again", holder_pid(survey, owner), owner->minor);
	return array_add(survey->open, survey->nr_open, (struct open_buffer){ buffer->holders->inode, share->buffer });
}

/* @info, @share: what the kernel says of the memory. */
static int number_buffer(struct survey *survey, const struct buffer *buffer, struct holder *owner,
			 const struct gem_info *info, struct kfd_share *share)
{
	int err;

	if (survey->nr_buffers == IMAGE_MAX_NUMBER)
		return fail(-E2BIG, "more than %u buffers with several names cannot be saved", IMAGE_MAX_NUMBER);
	share->buffer = ++survey->nr_buffers;
	err = note_open(survey, buffer, owner, share);
	if (err)
		return err;
	if (owner->kind != HOLDER_BO)
		err = own_object(survey, buffer, owner, info, share);
	else
		holder_bo(survey, owner)->share = *share;
	return err ? err : note_others(survey, buffer, owner, info, share->buffer);
}

static int decide(struct survey *survey, struct buffer *buffer)
{
	pid_t pid = holder_pid(survey, buffer->holders);
	struct kfd_share share = { 0 };
	struct memory memory = { 0 };
	struct holder *owner;
	int err = survey_find_gpu(survey, buffer);

	if (err)
		return err;
	err = survey_look_at(survey, buffer->minor, buffer->dmabuf_fd, &memory, &share);
	if (err)
		return fail(err, "pid %d: cannot look at a buffer of renderD%u: %m", pid, buffer->minor);
	owner = find_owner(survey, buffer);
	if (!owner)
		return fail(-EOPNOTSUPP, "pid %d: has a buffer of renderD%u that no process of the dump holds there: that cannot "
			    "be saved", pid, buffer->minor);
	if (owner->kind == HOLDER_BO)
		widen_flags(&memory.info, holder_bo(survey, owner));
	if (buffer->nr == 1 && owner->kind == HOLDER_BO && !share.metadata_size && !share.tiling && !has_open_dmabuf(survey, buffer))
		return 0;
	return number_buffer(survey, buffer, owner, &memory.info, &share);
}

/* ---- mappings ---- */

/* The KFD maps its BOs in the same address space, and lists show both: two mappings never overlap. */
static int drop_kfd_mappings(const struct gpu_process *process, uint32_t minor, struct render_objects *objects)
{
	const struct kfd_state *state = &process->state;
	_cleanup_free_ uint64_t *addresses = calloc((size_t)state->nr_bos + 1, sizeof(*addresses));
	int node = topology_find_minor(process->nodes, minor);
	size_t kept = 0, nr = 0;
	uint32_t gpu_id;

	if (!addresses || node < 0)
		return addresses ? node : -ENOMEM;
	gpu_id = topology_gpu_id(process->nodes->nodes[node]);
	for (size_t i = 0; i < state->nr_records; i++)
		if (records_map_bo(state, i, gpu_id))
			addresses[nr++] = state->bos[i].addr;
	qsort(addresses, nr, sizeof(*addresses), compare_u64);
	for (size_t i = 0; i < objects->nr_mappings; i++) {
		const struct gem_mapping *mapping = &objects->mappings[i];

		if (mapping->offset || !bsearch(&mapping->va, addresses, nr, sizeof(*addresses), compare_u64))
			objects->mappings[kept++] = objects->mappings[i];
	}
	objects->nr_mappings = kept;
	return 0;
}

static int read_mappings(const struct survey *survey, size_t number, const struct gpu_process *process)
{
	const struct task_file *file = &survey->request->files->files[number];
	struct render_objects *objects = &survey->objects[number];

	for (size_t i = 0; i < objects->nr_handles; i++) {
		int err = gem_mappings(file->fd, objects->handles[i].handle, objects);

		if (err)
			return err;
	}
	return survey->without_kfd_vm[number] ? 0 : drop_kfd_mappings(process, file->minor, objects);
}

static int take_mappings(const struct survey *survey, size_t number, const struct gpu_process *process)
{
	const struct task_file *file = &survey->request->files->files[number];
	struct render_objects *objects = &survey->objects[number];
	uint32_t last;
	int err;

	if (!objects->nr_handles)
		return 0;
	qsort(objects->handles, objects->nr_handles, sizeof(*objects->handles), compare_u32);
	last = objects->handles[objects->nr_handles - 1].handle;
	if (last > IMAGE_MAX_NUMBER)
		return fail(-E2BIG, "pid %d: its file of renderD%u has a handle with number %u, which is too large to be saved",
			    file->pid, file->minor, last);
	err = read_mappings(survey, number, process);
	return err ? fail(err, "pid %d: cannot ask for the GPU mappings of its renderD%u: %m", file->pid, file->minor) : 0;
}

/* ---- all ---- */

/* What is not owned is not copied. */
static void close_imports(struct gpu_process *process)
{
	struct kfd_state *state = &process->state;

	for (size_t i = 0; i < state->nr_bos; i++) {
		if (state->bos[i].dmabuf_fd == KFD_NO_FD || kfd_state_owns(state, i))
			continue;
		close(state->bos[i].dmabuf_fd);
		state->bos[i].dmabuf_fd = KFD_NO_FD;
	}
}

/* A process that shares comes back with fillers in the gaps of its BOs' numbers. */
static int check_numbers(const struct gpu_process *process)
{
	for (size_t i = 0; i < process->state.nr_records; i++) {
		struct bo_record record;

		if (records_bo(&process->state, i, &record) || record.handle <= IMAGE_MAX_NUMBER)
			continue;
		return fail(-E2BIG, "pid %d: shares buffers and has a buffer of gpu %#x with number %u, which is too large to be "
			    "restored", process->file.pid, process->state.bos[i].gpu_id, record.handle);
	}
	return 0;
}

static int finish_process(struct survey *survey, struct gpu_process *process)
{
	bool shares = kfd_state_shares(&process->state);
	int err = shares ? check_numbers(process) : 0;

	if (err)
		return err;
	for (size_t i = 0; i < survey->request->files->count; i++) {
		const struct render_objects *objects = &survey->objects[i];

		if (survey->request->files->files[i].pid != process->file.pid)
			continue;
		process->nr_files++;
		shares = shares || objects->nr_handles || objects->nr_syncobjs;
		err = take_mappings(survey, i, process);
		if (err)
			return err;
	}
	survey->nr_sharers += shares;
	process->nr_sharers = shares; /* finish() knows how many */
	close_imports(process);
	return 0;
}

static int finish(struct survey *survey)
{
	const struct share_request *request = survey->request;

	for (size_t i = 0; i < request->nr_processes; i++) {
		int err = finish_process(survey, request->processes[i]);

		if (err)
			return err;
	}
	for (size_t i = 0; i < request->nr_processes; i++)
		if (request->processes[i]->nr_sharers)
			request->processes[i]->nr_sharers = survey->nr_sharers;
	return 0;
}

int decide_all(struct survey *survey)
{
	struct buffer buffer = { 0 };

	while (survey_next(survey, &buffer)) {
		int err = survey_is_private(survey, &buffer) ? 0 : decide(survey, &buffer);

		if (err)
			return err;
	}
	if (survey->nr_buffers)
		pr_info("%u buffers have several names\n", survey->nr_buffers);
	return finish(survey);
}
