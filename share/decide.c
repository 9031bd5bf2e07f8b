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
#include "share/decide.h"
#include "amdgpu_plugin_drm.h"

/* Flags of GEM_CREATE that are younger than some headers. */
#define CREATE_COHERENT	    (1ull << 13)
#define CREATE_UNCACHED	    (1ull << 14)
#define CREATE_EXT_COHERENT (1ull << 15)
#define PAGE_BYTES 4096u
/* Given to every object, and before Linux 6.18 not to be asked for: cleared, and wiped when it is freed. */
#define CREATE_FORCED (AMDGPU_GEM_CREATE_VRAM_CLEARED | (1ull << 9))
/* Their contents cannot be copied, or they are of one address space. */
#define CREATE_BAD (AMDGPU_GEM_CREATE_ENCRYPTED | AMDGPU_GEM_CREATE_VM_ALWAYS_VALID)

static struct bo *bo_of(const struct survey *survey, const struct holder *holder)
{
	return &holder_process(survey, holder)->state->bos[holder->bo];
}

/* ---- buffers ---- */

static int compare_inodes(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return (x->bo > y->bo) - (x->bo < y->bo);
}

static int compare_names(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;

	if (x->minor != y->minor)
		return x->minor < y->minor ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static struct buffer buffer_at(const struct survey *survey, size_t first)
{
	int (*compare)(const void *, const void *) = survey->request->one_dmabuf ? NULL : compare_names;
	struct buffer buffer = { .holders = &survey->holders[first], .nr = 1, .dmabuf_fd = -1 };
	const struct holder *holder = buffer.holders;

	while (first + buffer.nr < survey->nr_holders &&
	       (compare ? !compare(holder, holder + buffer.nr) : holder->inode == holder[buffer.nr].inode))
		buffer.nr++;
	for (size_t i = 0; i < buffer.nr && buffer.dmabuf_fd < 0; i++)
		buffer.dmabuf_fd = buffer.holders[i].dmabuf_fd;
	return buffer;
}

/* Nobody could have imported it: its dma-buf was made for this dump. */
static bool is_private(const struct survey *survey, const struct buffer *buffer)
{
	return buffer->nr == 1 && buffer->holders->bo != NO_BO &&
	       (!survey->request->one_dmabuf || buffer->holders->inode > survey->request->fresh_inode);
}

/* Of the partition @minor or, since system memory is the device's, of one that a holder uses. */
static uint32_t partition_of(const struct survey *survey, const struct buffer *buffer, uint32_t minor)
{
	uint32_t found = minor;

	for (size_t i = 0; i < buffer->nr; i++) {
		if (buffer->holders[i].minor == minor)
			return minor;
		if (found == minor && survey_same_device(survey, buffer->holders[i].minor, minor))
			found = buffer->holders[i].minor;
	}
	return found;
}

static int find_gpu(struct survey *survey, struct buffer *buffer)
{
	pid_t pid = holder_process(survey, buffer->holders)->pid;
	uint32_t minor = 0;
	int err = survey_home(survey, buffer->dmabuf_fd, &minor);

	if (err == -EINVAL)
		return refuse_memory(pid, buffer->holders->minor);
	if (err) {
		pr_err("pid %d: cannot tell whose memory a buffer of renderD%u is: %s", pid, buffer->holders->minor,
		       strerror(-err));
		return err;
	}
	buffer->minor = partition_of(survey, buffer, minor);
	return 0;
}

/* ---- the owner ---- */

static bool is_better_owner(const struct survey *survey, const struct buffer *buffer, const struct holder *holder,
			    const struct holder *than)
{
	if (holder->minor != buffer->minor || holder->is_import)
		return false;
	if (!than || holder->bo == NO_BO || than->bo == NO_BO)
		return !than || (than->bo == NO_BO && holder->bo != NO_BO);
	return bo_of(survey, holder)->alloc_flags & ~IMPORT_FLAGS &&
	       !(bo_of(survey, than)->alloc_flags & ~IMPORT_FLAGS);
}

static struct holder *find_owner(const struct survey *survey, const struct buffer *buffer)
{
	struct holder *owner = NULL;

	for (size_t i = 0; i < buffer->nr; i++)
		if (is_better_owner(survey, buffer, &buffer->holders[i], owner))
			owner = &buffer->holders[i];
	if (owner)
		return owner;
	pr_err("pid %d: has a buffer of renderD%u that no process of the dump holds there: that cannot be saved",
	       holder_process(survey, buffer->holders)->pid, buffer->minor);
	return NULL;
}

/* What the kernel says of the memory, whoever names it. */
static int look_at(struct survey *survey, const struct buffer *buffer, struct gem_info *ret, struct kfd_share *ret_share)
{
	int fd = survey_scratch(survey, buffer->minor);
	uint32_t handle = 0;
	int err = fd < 0 ? fd : gem_import(fd, buffer->dmabuf_fd, &handle);

	if (fd < 0)
		return fd;
	if (!err) {
		err = gem_ask(fd, handle, ret);
		if (!err)
			err = gem_get_metadata(fd, handle, ret_share);
		gem_close(fd, handle);
	}
	if (err)
		pr_err("pid %d: cannot look at a buffer of renderD%u: %s", holder_process(survey, buffer->holders)->pid,
		       buffer->minor, strerror(-err));
	return err;
}

/* ---- what is written down ---- */

/* Makes room for one more BO behind those of the KFD; the room for added ones doubles. */
static int grow_bos(struct kfd_state *state)
{
	size_t nr_added = state->nr_bos - state->nr_records;
	struct bo *grown;

	if (nr_added & (nr_added - 1))
		return 0;
	grown = reallocarray(state->bos, state->nr_bos + nr_added + 2, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	state->bos = grown;
	return 0;
}

/* A BO behind those of the KFD, of a handle. */
static int add_bo(const struct survey *survey, const struct holder *holder, const struct gem_info *info,
		  const struct kfd_share *share, struct bo **ret)
{
	const struct share_process *process = holder_process(survey, holder);
	struct kfd_state *state = process->state;
	int err, node = topology_find_minor(process->nodes, holder->minor);

	if (node < 0)
		return node;
	err = grow_bos(state);
	if (err)
		return err;
	state->bos[state->nr_bos] = (struct bo){
		.size = info->size,
		.offset = holder->is_mappable ? holder->offset : 0,
		.gpu_id = topology_gpu_id(process->nodes->nodes[node]),
		.alloc_flags = info->domains & AMDGPU_GEM_DOMAIN_VRAM ? KFD_IOC_ALLOC_MEM_FLAGS_VRAM :
									KFD_IOC_ALLOC_MEM_FLAGS_GTT,
		.dmabuf_fd = KFD_NO_FD,
		.share = *share,
	};
	*ret = &state->bos[state->nr_bos++];
	return 0;
}

static int note_handle(struct survey *survey, const struct holder *holder, uint32_t buffer)
{
	struct render_objects *objects = &survey->objects[holder->file];
	struct gem_handle *grown;

	grown = array_grow(objects->handles, objects->nr_handles, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	objects->handles = grown;
	objects->handles[objects->nr_handles++] = (struct gem_handle){ .handle = holder->handle, .buffer = buffer };
	return 0;
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

/* Which flags the kernel takes depends on its release: it is asked for a page of such memory. */
static int try_object(struct survey *survey, const struct holder *owner, const struct kfd_share *share)
{
	const struct gem_info page = { .size = PAGE_BYTES, .domains = share->domains, .flags = share->flags };
	int fd = survey_scratch(survey, owner->minor), err = share->flags & CREATE_BAD ? -EINVAL : 0;
	uint32_t handle;

	if (fd < 0)
		return fd;
	if (!err)
		err = gem_create(fd, &page, &handle);
	if (!err)
		return gem_close(fd, handle);
	pr_err("pid %d: %s of renderD%u is of memory that the kernel does not make again (flags %#" PRIx64 "): %s",
	       holder_process(survey, owner)->pid, owner->is_descriptor ? "a dma-buf" : "a handle", owner->minor,
	       share->flags, strerror(-err));
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
		err = add_bo(survey, owner, info, share, &bo);
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
		if (buffer->holders[i].bo != NO_BO && buffer->holders[i].process == handle->process &&
		    buffer->holders[i].minor == handle->minor)
			return true;
	return false;
}

/* Everybody but the owner. */
static int note_others(struct survey *survey, const struct buffer *buffer, const struct holder *owner,
		       const struct gem_info *info, uint32_t number)
{
	struct kfd_share share = { .buffer = number };
	int err = 0;

	for (size_t i = 0; !err && i < buffer->nr; i++) {
		const struct holder *holder = &buffer->holders[i];
		struct bo *bo;

		if (holder->is_descriptor)
			continue;
		if (holder->bo == NO_BO)
			err = note_handle(survey, holder, number);
		if (err || holder == owner)
			continue;
		share.kind = holder->bo == NO_BO ? KFD_BO_REF : KFD_BO_IMPORT;
		if (holder->bo != NO_BO)
			bo_of(survey, holder)->share = share;
		/* The CPU cannot use memory of another GPU by such a BO. */
		if (!err && holder->bo != NO_BO && !survey_same_device(survey, holder->minor, buffer->minor))
			bo_of(survey, holder)->offset = 0;
		if (!err && holder->bo == NO_BO && !holder->is_import && !has_bo(buffer, holder) &&
		    holder->process != owner->process)
			err = add_bo(survey, holder, info, &share, &bo);
	}
	return err;
}

static bool is_open(const struct survey *survey, const struct buffer *buffer)
{
	return references_of_tasks(survey->references, buffer->holders->inode);
}

/* A dma-buf that a task has open keeps its mode, but RESTORE makes them for writing, too. */
static int note_open(struct survey *survey, const struct buffer *buffer, const struct holder *owner,
		     struct kfd_share *share)
{
	int flags = fcntl(buffer->dmabuf_fd, F_GETFL);
	struct open_buffer *grown;

	if (flags < 0)
		return -errno;
	share->read_only = (flags & O_ACCMODE) == O_RDONLY;
	if (!is_open(survey, buffer))
		return 0;
	if (share->read_only && owner->bo != NO_BO) {
		pr_err("pid %d: a dma-buf of a buffer that it allocated on renderD%u is open for reading only, which the "
		       "kernel does not make again", holder_process(survey, owner)->pid, owner->minor);
		return -EOPNOTSUPP;
	}
	grown = array_grow(survey->open, survey->nr_open, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	grown[survey->nr_open++] = (struct open_buffer){ buffer->holders->inode, share->buffer };
	survey->open = grown;
	return 0;
}

static int decide(struct survey *survey, struct buffer *buffer)
{
	struct kfd_share share = { 0 };
	struct holder *owner;
	struct gem_info info;
	int err = find_gpu(survey, buffer);

	if (!err)
		err = look_at(survey, buffer, &info, &share);
	if (err)
		return err;
	owner = find_owner(survey, buffer);
	if (!owner)
		return -EOPNOTSUPP;
	if (owner->bo != NO_BO)
		widen_flags(&info, bo_of(survey, owner));
	if (buffer->nr == 1 && owner->bo != NO_BO && !share.metadata_size && !share.tiling && !is_open(survey, buffer))
		return 0;
	if (survey->nr_buffers == IMAGE_MAX_NUMBER) {
		pr_err("more than %u buffers with several names cannot be saved", IMAGE_MAX_NUMBER);
		return -E2BIG;
	}
	share.buffer = ++survey->nr_buffers;
	err = note_open(survey, buffer, owner, &share);
	if (err)
		return err;
	if (owner->bo == NO_BO)
		err = own_object(survey, buffer, owner, &info, &share);
	else
		bo_of(survey, owner)->share = share;
	return err ? err : note_others(survey, buffer, owner, &info, share.buffer);
}

/* ---- mappings ---- */

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static bool is_mapped_on(const struct kfd_state *state, size_t bo, uint32_t gpu_id)
{
	struct bo_record record;

	if (records_bo(state, bo, &record))
		return false;
	for (uint32_t i = 0; i < records_nr_mapped(&record); i++)
		if (record.mapped_gpus[i] == gpu_id)
			return true;
	return false;
}

/* The KFD maps its BOs in the same address space, and lists show both: two mappings never overlap. */
static int drop_kfd_mappings(const struct share_process *process, uint32_t minor, struct render_objects *objects)
{
	const struct kfd_state *state = process->state;
	_cleanup_free_ uint64_t *addresses = calloc((size_t)state->nr_bos + 1, sizeof(*addresses));
	int node = topology_find_minor(process->nodes, minor);
	size_t kept = 0, nr = 0;
	uint32_t gpu_id;

	if (!addresses || node < 0)
		return addresses ? node : -ENOMEM;
	gpu_id = topology_gpu_id(process->nodes->nodes[node]);
	for (size_t i = 0; i < state->nr_records; i++)
		if (is_mapped_on(state, i, gpu_id))
			addresses[nr++] = state->bos[i].addr;
	qsort(addresses, nr, sizeof(*addresses), compare_addresses);
	for (size_t i = 0; i < objects->nr_mappings; i++) {
		const struct gem_mapping *mapping = &objects->mappings[i];

		if (mapping->offset || !bsearch(&mapping->va, addresses, nr, sizeof(*addresses), compare_addresses))
			objects->mappings[kept++] = objects->mappings[i];
	}
	objects->nr_mappings = kept;
	return 0;
}

static int compare_handles(const void *a, const void *b)
{
	uint32_t x = ((const struct gem_handle *)a)->handle, y = ((const struct gem_handle *)b)->handle;

	return (x > y) - (x < y);
}

static int take_mappings(const struct survey *survey, size_t file, const struct share_process *process)
{
	const struct task_file *of = &survey->request->files->files[file];
	struct render_objects *objects = &survey->objects[file];
	int err = 0;

	if (!objects->nr_handles)
		return 0;
	qsort(objects->handles, objects->nr_handles, sizeof(*objects->handles), compare_handles);
	if (objects->handles[objects->nr_handles - 1].handle > IMAGE_MAX_NUMBER) {
		pr_err("pid %d: its file of renderD%u has a handle with number %u, which is too large to be saved", of->pid,
		       of->minor, objects->handles[objects->nr_handles - 1].handle);
		return -E2BIG;
	}
	for (size_t i = 0; !err && i < objects->nr_handles; i++)
		err = gem_mappings(of->fd, objects->handles[i].handle, objects);
	if (!err && !survey->is_another[file])
		err = drop_kfd_mappings(process, of->minor, objects);
	if (err)
		pr_err("pid %d: cannot ask for the GPU mappings of its renderD%u: %s", of->pid, of->minor, strerror(-err));
	return err;
}

/* ---- all ---- */

/* Where a buffer can have more than one dma-buf. */
static int check_older(struct survey *survey, const struct buffer *buffer)
{
	int err = 0;

	if (buffer->nr > 1) {
		pr_err("pid %d: shares a buffer of renderD%u with pid %d (IPC, dma-buf), which cannot be saved before Linux 6.8",
		       holder_process(survey, buffer->holders)->pid, buffer->holders->minor,
		       holder_process(survey, buffer->holders + 1)->pid);
		return -EOPNOTSUPP;
	}
	if (!survey->request->check_partners || buffer->holders->bo == NO_BO)
		return 0;
	if (!survey->older)
		err = older_read(survey, &survey->older);
	return err ? err : older_check(survey, survey->older, buffer);
}

static int check_buffers(struct survey *survey)
{
	struct buffer buffer;
	int err = 0;

	for (size_t i = 0; !err && i < survey->nr_holders; i += buffer.nr) {
		buffer = buffer_at(survey, i);
		if (!survey->request->one_dmabuf)
			err = check_older(survey, &buffer);
		else if (survey->request->check_partners && !is_private(survey, &buffer)) {
			err = find_gpu(survey, &buffer);
			if (!err)
				err = references_check(survey, survey->references, &buffer);
		}
	}
	return err;
}

/* What is not owned is not copied. */
static void close_imports(const struct share_process *process)
{
	struct kfd_state *state = process->state;

	for (size_t i = 0; i < state->nr_bos; i++) {
		if (state->bos[i].dmabuf_fd == KFD_NO_FD || kfd_state_owns(state, i))
			continue;
		close(state->bos[i].dmabuf_fd);
		state->bos[i].dmabuf_fd = KFD_NO_FD;
	}
}

/* A process that shares comes back with fillers in the gaps of its BOs' numbers. */
static int check_numbers(const struct share_process *process)
{
	for (size_t i = 0; i < process->state->nr_records; i++) {
		struct bo_record record;

		if (records_bo(process->state, i, &record) || record.handle <= IMAGE_MAX_NUMBER)
			continue;
		pr_err("pid %d: shares buffers and has a buffer of gpu %#x with number %u, which is too large to be restored",
		       process->pid, process->state->bos[i].gpu_id, record.handle);
		return -E2BIG;
	}
	return 0;
}

static int finish_process(const struct survey *survey, struct share_process *process)
{
	bool shares = kfd_state_shares(process->state);
	int err = shares ? check_numbers(process) : 0;

	for (size_t i = 0; !err && i < survey->request->files->count; i++) {
		const struct render_objects *objects = &survey->objects[i];

		if (survey->request->files->files[i].pid != process->pid)
			continue;
		process->nr_files++;
		shares = shares || objects->nr_handles || objects->nr_syncobjs;
		err = take_mappings(survey, i, process);
	}
	process->nr_sharers = shares;
	close_imports(process);
	return err;
}

static int finish(struct survey *survey)
{
	const struct share_request *request = survey->request;
	uint32_t nr_sharers = 0;
	int err = 0;

	for (size_t i = 0; !err && i < request->nr_processes; i++) {
		err = finish_process(survey, &request->processes[i]);
		nr_sharers += request->processes[i].nr_sharers;
	}
	survey->nr_sharers = nr_sharers;
	for (size_t i = 0; i < request->nr_processes; i++)
		if (request->processes[i].nr_sharers)
			request->processes[i].nr_sharers = nr_sharers;
	return err;
}

static void sort_holders(struct survey *survey)
{
	if (survey->nr_holders)
		qsort(survey->holders, survey->nr_holders, sizeof(*survey->holders),
		      survey->request->one_dmabuf ? compare_inodes : compare_names);
}

int decide_all(struct survey *survey)
{
	struct buffer buffer;
	int err = 0;

	sort_holders(survey);
	if (survey->request->one_dmabuf && survey->nr_holders)
		err = references_read(survey, &survey->references);
	sort_holders(survey);
	if (!err)
		err = check_buffers(survey);
	for (size_t i = 0; !err && i < survey->nr_holders; i += buffer.nr) {
		buffer = buffer_at(survey, i);
		if (!is_private(survey, &buffer))
			err = decide(survey, &buffer);
	}
	if (!err)
		err = finish(survey);
	if (!err && survey->nr_buffers)
		pr_info("%u buffers have several names", survey->nr_buffers);
	return err;
}
