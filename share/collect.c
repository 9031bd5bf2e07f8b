// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who holds which buffer: all BOs of the KFD and all GEM handles of the dumped processes, brought together by what
 * they name. What cannot be recreated is refused.
 *
 * Nothing is changed in the files of the tasks, except that a handle whose buffer the KFD does not know gets a dma-buf,
 * which stays with the handle.
 */
#include <inttypes.h>

#include <libdrm/amdgpu_drm.h>

#include "amdgpu_plugin_util.h"
#include "share/survey.h"

/* ---- BOs of the KFD ---- */

/* By GPU and offset, the names of buffers on one GPU. */
static int compare_names(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;

	if (x->minor != y->minor)
		return x->minor < y->minor ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/*
 * Whether a BO is an import of another GPU's memory, which has an offset of its own in each file: 1 or 0, or -errno after
 * fail(). What was allocated on a GPU is there. *known: of the same memory; -1: not asked yet.
 */
static int is_far_import(struct survey *survey, const struct holder *holder, int *known)
{
	uint32_t gpu_id = 0;
	int err;

	if (holder_bo(survey, holder)->alloc_flags & ~IMPORT_FLAGS)
		return 0;
	if (*known >= 0)
		return *known;
	err = survey_ask_gpu(survey, holder->dmabuf_fd, 0, &gpu_id);
	if (err == -EINVAL)
		return survey_refuse_memory(holder_pid(survey, holder), holder->minor);
	*known = !err && !survey_is_home(survey, holder->minor, holder->dmabuf_fd, 0);
	return *known;
}

/*
 * Kernels can hand out another BO's dma-buf (its handle in the KFD's own file was given to that one). The holders are sorted
 * by name: of those with one dma-buf, one is looked at.
 */
static int check_dmabufs(struct survey *survey)
{
	struct memory memory = { 0 };
	int is_far = -1, r = 0;

	for (size_t i = 0; i < survey->nr_holders; i++) {
		struct holder *holder = &survey->holders[i];
		const struct bo *bo = holder_bo(survey, holder);
		pid_t pid = holder_pid(survey, holder);

		if (!i || compare_names(holder - 1, holder) || holder[-1].inode != holder->inode) {
			memory = (struct memory){ .offset = holder->offset };
			is_far = -1;
			r = survey_look_at(survey, holder->minor, holder->dmabuf_fd, &memory, NULL);
			if (r)
				return fail(r, "pid %d: cannot look at buffer %zu of gpu %#x: %m", pid, holder->bo, bo->gpu_id);
		}
		holder->is_home = memory.has_offset && memory.offset == bo->offset;
		if (memory.offset == bo->offset && memory.info.size >= bo->size)
			continue;
		r = is_far_import(survey, holder, &is_far);
		if (r < 0)
			return r;
		if (!r || memory.info.size < bo->size)
			return fail(-EOPNOTSUPP, "pid %d: the kernel returned the wrong dma-buf for buffer %zu of gpu %#x (file "
				    "offset %#" PRIx64 " for %#" PRIx64 ", %" PRIu64 " bytes for %" PRIu64 "): its data cannot be "
				    "saved", pid, holder->bo, bo->gpu_id, memory.offset, bo->offset, memory.info.size, bo->size);
	}
	return 0;
}

/*
 * A buffer is known by its dma-buf, and must not have two. Before Linux 6.8 each holder makes one, and none may share. The
 * holders are sorted by name.
 */
static int check_names(const struct survey *survey)
{
	bool one_dmabuf = survey->request->one_dmabuf;

	for (size_t i = 1; i < survey->nr_holders; i++) {
		const struct holder *a = &survey->holders[i - 1], *b = a + 1;

		if (compare_names(a, b) || (one_dmabuf && a->inode == b->inode))
			continue;
		if (!one_dmabuf)
			return fail(-EOPNOTSUPP, "pid %d: shares a buffer of renderD%u with pid %d (IPC, dma-buf), which cannot be "
				    "saved before Linux 6.8", holder_pid(survey, a), a->minor, holder_pid(survey, b));
		return fail(-EOPNOTSUPP, "pid %d: shares a buffer of renderD%u with pid %d by legacy IPC of amdgpu-dkms (two "
			    "dma-bufs, file offset %#" PRIx64 "), which cannot be saved: start the programs with "
			    "HSA_ENABLE_IPC_MODE_LEGACY=0", holder_pid(survey, a), a->minor,
			    holder_pid(survey, b), a->offset);
	}
	return 0;
}

/* ---- what is no buffer ---- */

/* Numbers that the kernel does not list are tried, which takes long: of all files at once. */
static void *ask_file(void *arg)
{
	struct holdings *ret = arg;

	if (!ret->is_asked)
		return NULL;
	ret->objects_err = drm_count_contexts(ret->fd, &ret->nr_contexts);
	if (!ret->objects_err)
		ret->objects_err = gem_syncobjs(ret->fd, ret->objects, &ret->pending);
	ret->handles_err = gem_list(ret->fd, &ret->handles, &ret->nr_handles);
	if (ret->handles_err == -EINVAL)
		ret->unlisted_err = drm_count_objects(ret->fd, &ret->nr_unlisted);
	return NULL;
}

static int note_file(struct survey *survey, size_t number)
{
	survey->holdings[number] = (struct holdings){
		.is_asked = true, .fd = survey->request->files->files[number].fd, .objects = &survey->objects[number],
	};
	return 0;
}

static int check_objects(struct survey *survey, size_t number)
{
	const struct task_file *file = &survey->request->files->files[number];
	const struct holdings *holdings = &survey->holdings[number];

	if (holdings->objects_err)
		return fail(holdings->objects_err, "pid %d: cannot ask renderD%u for contexts and syncobjs: %m", file->pid,
			    file->minor);
	if (holdings->nr_contexts)
		return fail(-EOPNOTSUPP, "pid %d: its file of renderD%u has %u contexts (graphics, video), which cannot be saved",
			    file->pid, file->minor, holdings->nr_contexts);
	if (holdings->pending)
		return fail(-EOPNOTSUPP, "pid %d: syncobj %u of its renderD%u waits for a fence that has not signalled, which "
			    "cannot be saved: dump it again later", file->pid, holdings->pending, file->minor);
	return 0;
}

/* ---- handles ---- */

#define USERPTR_OF_KFD (1ull << 63)
#define GOOD_DOMAINS   ((uint64_t)(AMDGPU_GEM_DOMAIN_CPU | AMDGPU_GEM_DOMAIN_GTT | AMDGPU_GEM_DOMAIN_VRAM))

/* Why such a handle cannot be recreated; NULL: it can. */
static const char *bad_handle(const struct gem_info *info, int mmap_error)
{
	if (info->domains & 0x40)
		return "a doorbell of a user queue";
	if (!info->domains)
		return "memory that no GPU can use (of no domain)";
	if (info->domains & ~GOOD_DOMAINS)
		return "GDS, GWS or OA memory";
	if (info->flags & AMDGPU_GEM_CREATE_VM_ALWAYS_VALID)
		return "a buffer of graphics that is always valid";
	if (info->flags & AMDGPU_GEM_CREATE_ENCRYPTED)
		return "encrypted";
	if (info->flags & USERPTR_OF_KFD ||
	    (mmap_error == -EPERM && !(info->flags & AMDGPU_GEM_CREATE_NO_CPU_ACCESS)))
		return "memory of the process that was given to the GPU (userptr)";
	return NULL;
}

/* Completes the holder that a handle is. No message but for a refusal. */
static int look_at_handle(struct survey *survey, const struct task_file *file, struct holder *holder)
{
	const struct holder *known = NULL;
	struct gem_info info;
	const char *bad;
	int asked, err = gem_ask(file->fd, holder->handle, &info);

	if (err)
		return err;
	asked = gem_offset(file->fd, holder->handle, &holder->offset);
	bad = bad_handle(&info, asked);
	if (bad)
		return fail(-EOPNOTSUPP, "pid %d: handle %u of its renderD%u is %s (%" PRIu64 " bytes, domains %#" PRIx64
			    ", flags %#" PRIx64 "), which cannot be saved", file->pid, holder->handle, file->minor, bad,
			    info.size, info.domains, info.flags);
	if (asked && asked != -EPERM)
		return asked;
	holder->is_mappable = !asked;
	if (!asked && !holder->is_import && survey->nr_kfd_holders)
		known = bsearch(holder, survey->holders, survey->nr_kfd_holders, sizeof(*holder), compare_names);
	if (known) {
		holder->inode = known->inode;
		return 0;
	}
	/* A buffer that is not known by its name on this GPU. */
	holder->dmabuf_fd = gem_export(file->fd, holder->handle, false);
	if (holder->dmabuf_fd < 0)
		return holder->dmabuf_fd;
	err = survey_keep_dmabuf(survey, holder->dmabuf_fd);
	return err ? err : survey_inode(holder->dmabuf_fd, &holder->inode);
}

/* Before Linux 6.18 handles are not listed, nor are mappings. @what: such buffers may be. */
static int check_unlisted(const struct task_file *file, int err, uint32_t count, const char *what)
{
	if (err)
		return fail(err, "pid %d: cannot ask renderD%u for its buffers: %m", file->pid, file->minor);
	if (!count)
		return 0;
	return fail(-EOPNOTSUPP, "pid %d: its file of renderD%u holds %u buffers of the render node itself (%s), "
		    "which cannot be saved: the kernel does not list them before Linux 6.18", file->pid, file->minor, count,
		    what);
}

/* What a file holds can be used in the file's own address space only. */
static int check_kfd_vm_known(const struct survey *survey, size_t number)
{
	const struct task_file *file = &survey->request->files->files[number];

	if (!files_may_lack_kfd_vm(survey, number))
		return 0;
	return fail(-EOPNOTSUPP, "pid %d: has renderD%u open more than once, one of the files holds buffers or syncobjs, and "
		    "nothing shows which file has the KFD's address space: that cannot be saved", file->pid, file->minor);
}

static struct holder holder_of_handle(const struct survey *survey, size_t number, const struct gem_entry *entry)
{
	const struct task_file *file = &survey->request->files->files[number];

	return (struct holder){
		.kind = HOLDER_HANDLE, .minor = file->minor, .dmabuf_fd = -1, .process = survey_process_of(survey->request, file->pid),
		.file = number, .handle = entry->handle, .is_import = entry->is_import, .is_home = !entry->is_import,
	};
}

int share_file_is_used(const struct task_file *file)
{
	_cleanup_free_ struct gem_entry *entries = NULL;
	_cleanup_(render_objects_done) struct render_objects objects = { 0 };
	uint32_t pending, nr_unlisted = 0;
	size_t nr = 0;
	int err = gem_list(file->fd, &entries, &nr);

	if (err == -EINVAL) {
		err = drm_count_objects(file->fd, &nr_unlisted);
		return check_unlisted(file, err, nr_unlisted, "graphics, video, dma-buf imports");
	}
	if (!err && !nr)
		err = gem_syncobjs(file->fd, &objects, &pending);
	if (err)
		return fail(err, "pid %d: cannot ask renderD%u for its buffers: %m", file->pid, file->minor);
	return nr || objects.nr_syncobjs;
}

/* ---- all ---- */

static int collect_file(struct survey *survey, size_t number)
{
	const struct share_request *request = survey->request;
	const struct task_file *file = &request->files->files[number];
	const struct holdings *holdings = &survey->holdings[number];
	size_t owner = request->nr_processes;
	int err = 0;

	/* A task without /dev/kfd knows no address space of its own. */
	if (request->processes[survey_process_of(request, file->pid)]->file.minor)
		owner = files_owner(survey, number);
	if (owner < request->nr_processes)
		return fail(-EOPNOTSUPP, "pid %d: has the file of renderD%u in which pid %d, with a higher pid, has its address space "
			    "on the GPU: criu would restore it in the wrong process", file->pid, file->minor,
			    request->processes[owner]->file.pid);
	if (survey->objects[number].nr_syncobjs)
		err = check_kfd_vm_known(survey, number);
	if (err)
		return err;
	if (holdings->handles_err == -EINVAL)
		return check_unlisted(file, holdings->unlisted_err, holdings->nr_unlisted, "VMM, IPC, graphics, video");
	if (holdings->handles_err)
		return fail(holdings->handles_err, "pid %d: cannot list the buffers of its renderD%u: %m", file->pid, file->minor);
	err = holdings->nr_handles ? check_kfd_vm_known(survey, number) : 0;
	for (size_t i = 0; !err && i < holdings->nr_handles; i++) {
		struct holder holder = holder_of_handle(survey, number, &holdings->handles[i]);

		err = look_at_handle(survey, file, &holder);
		if (err)
			return fail(err, "pid %d: cannot look at handle %u of its renderD%u: %m", file->pid, holder.handle,
				    file->minor);
		err = array_add(survey->holders, survey->nr_holders, holder);
	}
	return err;
}

int collect_bos(struct survey *survey)
{
	const struct share_request *request = survey->request;
	int err;

	for (size_t number = 0; number < request->nr_processes; number++) {
		const struct gpu_process *process = request->processes[number];

		for (size_t i = 0; i < process->state.nr_bos; i++) {
			const struct bo *bo = &process->state.bos[i];
			struct holder holder = {
				.offset = bo->offset, .dmabuf_fd = bo->dmabuf_fd, .process = number, .bo = i, .is_mappable = true,
			};
			int node = topology_find_gpu(process->nodes, bo->gpu_id);

			if (!kfd_bo_has_data(bo))
				continue;
			if (node < 0 || bo->dmabuf_fd == KFD_NO_FD)
				return fail(-EPROTO, "pid %d: the kernel gives no dma-buf for buffer %zu of gpu %#x",
					    process->file.pid, i, bo->gpu_id);
			holder.minor = topology_minor(process->nodes->nodes[node]);
			err = survey_inode(holder.dmabuf_fd, &holder.inode);
			if (!err)
				err = array_add(survey->holders, survey->nr_holders, holder);
			if (err)
				return err;
		}
	}
	if (survey->nr_holders)
		qsort(survey->holders, survey->nr_holders, sizeof(*survey->holders), compare_names);
	survey->nr_kfd_holders = survey->nr_holders;
	err = check_dmabufs(survey);
	return err ? err : check_names(survey);
}

/* Of render nodes, of processes that are saved. */
static int for_each_file(struct survey *survey, int (*add)(struct survey *survey, size_t number))
{
	const struct share_request *request = survey->request;
	int err = 0;

	for (size_t i = 0; !err && i < request->files->count; i++)
		if (request->files->files[i].minor &&
		    survey_process_of(request, request->files->files[i].pid) < request->nr_processes)
			err = add(survey, i);
	return err;
}

/* What cannot be looked at is left out. */
static int add_known_handles(struct survey *survey, size_t number)
{
	const struct task_file *file = &survey->request->files->files[number];
	_cleanup_free_ struct gem_entry *entries = NULL;
	size_t nr = 0;
	int err = gem_list(file->fd, &entries, &nr);

	for (size_t i = 0; !err && i < nr; i++) {
		struct holder holder = holder_of_handle(survey, number, &entries[i]);
		const struct holder *known;

		holder.is_mappable = !gem_offset(file->fd, holder.handle, &holder.offset);
		if (!holder.is_import && holder.is_mappable) {
			known = bsearch(&holder, survey->holders, survey->nr_kfd_holders, sizeof(holder), compare_names);
			if (!known)
				continue;
			holder.inode = known->inode;
		} else {
			holder.dmabuf_fd = gem_export(file->fd, holder.handle, false);
			if (holder.dmabuf_fd < 0)
				continue;
			err = survey_keep_dmabuf(survey, holder.dmabuf_fd);
			if (err || survey_inode(holder.dmabuf_fd, &holder.inode))
				continue;
		}
		err = array_add(survey->holders, survey->nr_holders, holder);
	}
	return err == -ENOMEM ? err : 0;
}

int collect_known_handles(struct survey *survey)
{
	return for_each_file(survey, add_known_handles);
}

int collect_all(struct survey *survey)
{
	int err = collect_bos(survey);

	if (err)
		return err;
	for_each_file(survey, note_file);
	all_at_once(survey->holdings, survey->request->files->count, sizeof(*survey->holdings), ask_file);
	err = for_each_file(survey, check_objects);
	if (!err)
		err = files_find_kfd_vm(survey);
	return err ? err : for_each_file(survey, collect_file);
}
