// SPDX-License-Identifier: GPL-2.0-only
/*
 * GEM handles of BOs that are freed, and their mappings on GPUs: ROCm's virtual memory management. The calls are made
 * here, in duplicates of the process' render files: unlike the KFD, render nodes do not ask who calls.
 *
 * A handle is closed before its BO is freed, and imported after it is allocated again: a handle that is there is of the
 * BO that is there. So a resume finds its place in whatever a killed suspend or resume has left.
 */
#include <inttypes.h>

#include <libdrm/amdgpu_drm.h>

#include "amdgpu_plugin_drm.h"
#include "suspend/internal.h"

/* ---- before anything changes ---- */

static int add_mappings(struct process *process, int fd, const struct suspend_handle *handle)
{
	_cleanup_(render_objects_done) struct render_objects objects = { 0 };
	const struct bo *bo = &process->gpu.state.bos[handle->bo];
	size_t nr = process->head.nr_mappings;
	int err = gem_mappings(fd, handle->handle, &objects);

	for (size_t i = 0; !err && i < objects.nr_mappings; i++) {
		const struct suspend_mapping mapping = { process->head.nr_handles, objects.mappings[i] };

		/* The KFD's own is listed, too. */
		if (!bo->addr || mapping.mapping.va != bo->addr)
			err = array_add(process->mappings, nr, mapping);
	}
	process->head.nr_mappings = (uint32_t)nr;
	return err;
}

static int add_handle(struct process *process, const struct share_request *request, const struct share_names *names,
		      size_t number, const struct gem_entry *entry)
{
	const struct task_file *file = &request->files->files[number];
	const struct share_name key = { .file = number, .handle = entry->handle };
	/* Of the BO of the KFD that it is of; NULL: there is none. */
	const struct share_name *name =
		names->nr ? bsearch(&key, names->list, names->nr, sizeof(key), share_compare_names) : NULL;
	bool is_own = name && request->processes[name->process] == &process->gpu;
	const struct suspend_handle handle = {
		.number = file->number,
		.handle = entry->handle,
		.bo = is_own ? (uint32_t)name->bo : NO_BO,
	};
	size_t nr = process->head.nr_handles;
	struct gem_info info;
	int err = 0;

	/* VRAM that no BO of the KFD is. What was exported by another GPU is counted there. */
	if (!name && !entry->is_import) {
		err = gem_ask(file->fd, entry->handle, &info);
		if (!err && info.domains & AMDGPU_GEM_DOMAIN_VRAM)
			process->head.report.kept_bytes[KEPT_BY_RENDER_NODE] += info.size;
	}
	if (!err && is_own && process->gpu.state.bos[handle.bo].is_alone)
		err = add_mappings(process, file->fd, &handle);
	if (!err)
		err = array_add(process->handles, nr, handle);
	process->head.nr_handles = (uint32_t)nr;
	return err;
}

/*
 * Another process that has the file, too, could take a number of a handle meanwhile: those BOs stay. So they do where the
 * command cannot see all processes of the machine.
 */
static int check_holder(struct process *process, const struct task_file *file, size_t first)
{
	bool any = false, sees_all = task_in_initial_pid_ns() > 0;
	pid_t holder = 0;
	int err = 0;

	for (size_t i = first; i < process->head.nr_handles; i++)
		any |= process->handles[i].bo != NO_BO && process->gpu.state.bos[process->handles[i].bo].is_alone;
	if (any && sees_all)
		err = task_file_holder(process->head.pid, file->number, file->minor, &holder);
	for (size_t i = first; !err && (holder || !sees_all) && i < process->head.nr_handles; i++)
		if (process->handles[i].bo != NO_BO)
			process->gpu.state.bos[process->handles[i].bo].is_alone = false;
	return err;
}

int vmm_look(struct process *process, const struct share_request *request, const struct share_names *names)
{
	const struct task_files *files = request->files;
	pid_t pid = process->head.pid;
	int err = 0;

	for (size_t i = 0; !err && i < files->count; i++) {
		const struct task_file *file = &files->files[i];
		_cleanup_free_ struct gem_entry *entries = NULL;
		size_t nr = 0, first = process->head.nr_handles;
		uint32_t nr_unlisted = 0;

		if (!file->minor || file->pid != pid)
			continue;
		err = gem_list(file->fd, &entries, &nr);
		if (err == -EINVAL) {
			err = drm_count_objects(file->fd, &nr_unlisted);
			if (!err && nr_unlisted)
				pr_warn("pid %d: VRAM of VMM (hipMallocAsync, hipMemCreate, expandable segments) is not freed: "
					"the kernel does not list the %u handles of renderD%u before Linux 6.18\n",
					pid, nr_unlisted, file->minor);
		}
		for (size_t k = 0; !err && k < nr; k++)
			err = add_handle(process, request, names, i, &entries[k]);
		if (!err)
			err = check_holder(process, file, first);
		if (err)
			err = fail(err, "pid %d: cannot ask its renderD%u for its handles: %m", pid, file->minor);
	}
	return err;
}

uint32_t vmm_bo_at(const struct process *process, uint64_t address)
{
	for (uint32_t i = 0; i < process->head.nr_mappings; i++) {
		const struct gem_mapping *mapping = &process->mappings[i].mapping;

		if (address >= mapping->va && address - mapping->va < mapping->size)
			return process->handles[process->mappings[i].of].bo;
	}
	return NO_BO;
}

/* ---- one file after the other ---- */

/* A render file with the handles that it had. */
struct render_file {
	struct process *process;
	const struct suspend_handle *handles;
	size_t nr;
	int fd;
};

static bool is_freed(const struct process *process, const struct suspend_handle *handle)
{
	return handle->bo != NO_BO && process->plan[handle->bo];
}

/* Those that have had a handle of a BO that is freed. -ENOMEM without a message. */
static int for_each_file(struct process *process, int (*act)(struct render_file *file))
{
	const struct suspend_handle *next = process->handles, *end = next + process->head.nr_handles;
	int err = 0;

	while (!err && next < end) {
		struct render_file file = { .process = process, .handles = next };
		_cleanup_close_ int fd = -1;
		bool any = false;

		for (; next < end && next->number == file.handles->number; next++, file.nr++)
			any |= is_freed(process, next);
		if (!any)
			continue;
		fd = file.fd = task_take_file(process->head.pid, file.handles->number);
		err = fd < 0 ? fd : act(&file);
		if (err && err != -ENOMEM)
			err = fail(err, "pid %d: cannot change the handles of its descriptor %d: %m", process->head.pid,
				   file.handles->number);
	}
	return err;
}

/* The mappings of a handle are neighbours, in the order of handles. */
static uint32_t first_mapping(const struct process *process, uint32_t of)
{
	return record_first(process->mappings, process->head.nr_mappings, sizeof(*process->mappings),
			    offsetof(struct suspend_mapping, of), of);
}

/* ---- suspend ---- */

static int close_handle(const struct render_file *file, const struct suspend_handle *handle)
{
	const struct process *process = file->process;
	uint32_t of = (uint32_t)(handle - process->handles), end = process->head.nr_mappings;
	int err = 0;

	/* Where the KFD has the BO mapped, these would outlive the handle. */
	for (uint32_t i = first_mapping(process, of); !err && i < end && process->mappings[i].of == of; i++) {
		err = gem_unmap(file->fd, &process->mappings[i].mapping);
		err = err == -ENOENT ? 0 : err;
	}
	return err ? err : gem_close(file->fd, handle->handle);
}

static int close_handles(struct render_file *file)
{
	int err = 0;

	for (size_t i = 0; !err && i < file->nr; i++)
		if (is_freed(file->process, &file->handles[i]))
			err = close_handle(file, &file->handles[i]);
	return err;
}

int vmm_close(struct process *process)
{
	/* From here on it has lost something. */
	int err = record_frees_handles(process) ? record_write_count(process, process->nr_bos_now) : 0;

	if (!err)
		err = for_each_file(process, close_handles);
	return err ? fail(err, "pid %d: cannot close its handles: %m", process->head.pid) : 0;
}

/*
 * To import an object whose handle is not there would create one: a killed command would leave it under another number.
 * And a number may be that of an object that the process has made meanwhile. An object that the file has keeps its
 * handle.
 */
static int close_imported(struct render_file *file)
{
	_cleanup_free_ struct gem_entry *there = NULL;
	size_t nr = 0;
	int err = gem_list(file->fd, &there, &nr);

	for (size_t i = 0; !err && nr && i < file->nr; i++) {
		const struct suspend_handle *handle = &file->handles[i];
		uint32_t got = 0;
		int dmabuf_fd;

		if (!is_freed(file->process, handle) ||
		    !bsearch(&handle->handle, there, nr, sizeof(*there), compare_u32))
			continue;
		dmabuf_fd = file->process->gpu.state.bos[handle->bo].dmabuf_fd;
		if (dmabuf_fd == KFD_NO_FD)
			continue;
		err = gem_import(file->fd, dmabuf_fd, &got);
		if (!err)
			err = got == handle->handle ? close_handle(file, handle) : gem_close(file->fd, got);
	}
	return err;
}

int vmm_close_imported(struct process *process)
{
	return for_each_file(process, close_imported);
}

/* ---- resume ---- */

/* As gem_create_page() makes it. */
static bool is_placeholder(int fd, const struct gem_entry *entry)
{
	struct gem_info info;

	return !entry->is_import && !gem_ask(fd, entry->handle, &info) && info.size == PAGE_BYTES &&
	       info.domains == AMDGPU_GEM_DOMAIN_GTT;
}

/* What was not there is a placeholder, of this resume or of one that was killed. */
static int close_placeholders(const struct render_file *file)
{
	_cleanup_free_ struct gem_entry *there = NULL;
	size_t nr = 0, known = 0;
	int err = gem_list(file->fd, &there, &nr);

	for (size_t i = 0; !err && i < nr; i++) {
		while (known < file->nr && file->handles[known].handle < there[i].handle)
			known++;
		if ((known == file->nr || file->handles[known].handle != there[i].handle) && is_placeholder(file->fd, &there[i]))
			err = gem_close(file->fd, there[i].handle);
	}
	return err;
}

static int fail_number(const struct render_file *file, uint32_t wanted, uint32_t got)
{
	gem_close(file->fd, got);
	return fail(-EEXIST, "pid %d: has run meanwhile, or another process has its descriptor %d: handle %u gets the number %u: "
		    "it cannot be resumed; end it", file->process->head.pid, file->handles->number, wanted, got);
}

static bool is_mapped(const struct render_objects *now, const struct gem_mapping *mapping)
{
	for (size_t i = 0; i < now->nr_mappings; i++)
		if (now->mappings[i].va == mapping->va)
			return true;
	return false;
}

/* An object that the file has already keeps its handle, and its mappings. */
static int import_handle(const struct render_file *file, const struct suspend_handle *handle)
{
	_cleanup_(render_objects_done) struct render_objects now = { 0 };
	const struct process *process = file->process;
	uint32_t of = (uint32_t)(handle - process->handles), end = process->head.nr_mappings, got = 0;
	int err = gem_import(file->fd, process->gpu.state.bos[handle->bo].dmabuf_fd, &got);

	if (!err && got != handle->handle)
		return fail_number(file, handle->handle, got);
	if (!err)
		err = gem_mappings(file->fd, handle->handle, &now);
	for (uint32_t i = first_mapping(process, of); !err && i < end && process->mappings[i].of == of; i++)
		if (!is_mapped(&now, &process->mappings[i].mapping))
			err = gem_map(file->fd, &process->mappings[i].mapping);
	return err;
}

/* The lowest free number is taken next: those between two handles, which were free, get a page for a moment. */
static int import_file(struct render_file *file)
{
	uint32_t next = 1, got = 0;
	int left, err = close_placeholders(file);

	for (size_t i = 0; !err && i < file->nr; next = file->handles[i++].handle + 1) {
		for (; !err && next < file->handles[i].handle; next++) {
			err = gem_create_page(file->fd, &got);
			if (!err && got != next)
				err = fail_number(file, next, got);
		}
		if (!err && is_freed(file->process, &file->handles[i]))
			err = import_handle(file, &file->handles[i]);
	}
	left = close_placeholders(file);
	return err ? err : left;
}

int vmm_import(struct process *process)
{
	return for_each_file(process, import_file);
}
