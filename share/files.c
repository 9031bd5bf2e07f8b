// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which of a process' open files of one render node has the KFD's address space.
 *
 * The best sign is that the kernel lets all BOs of the KFD be mapped through that file, but through another one only
 * those of which it has a handle. See collect.c for others.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "amdgpu_plugin_util.h"
#include "host/host.h"
#include "share/survey.h"

static bool can_map(int fd, uint64_t offset)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, (off_t)offset);

	if (p == MAP_FAILED)
		return false;
	munmap(p, page);
	return true;
}

static bool is_beside(const struct task_file *file, const struct task_file *other)
{
	return other != file && other->pid == file->pid && other->minor == file->minor;
}

/* Whether a BO can be mapped by @other and not by @file. Some cannot be mapped at all. */
static bool maps_less(const struct kfd_state *state, uint32_t gpu_id, const struct task_file *file,
		      const struct task_file *other)
{
	for (size_t i = 0; i < state->nr_records; i++) {
		const struct bo *bo = &state->bos[i];

		if (bo->gpu_id == gpu_id && kfd_bo_has_contents(bo) && !can_map(file->fd, bo->offset) &&
		    can_map(other->fd, bo->offset))
			return true;
	}
	return false;
}

bool files_is_another(const struct survey *survey, size_t process, size_t file)
{
	const struct share_process *of = &survey->request->processes[process];
	const struct task_files *files = survey->request->files;
	int node = topology_find_minor(of->nodes, files->files[file].minor);

	for (size_t i = 0; node >= 0 && i < files->count; i++)
		if (is_beside(&files->files[file], &files->files[i]) &&
		    maps_less(of->state, topology_gpu_id(of->nodes->nodes[node]), &files->files[file], &files->files[i]))
			return true;
	return false;
}

bool files_compete(const struct survey *survey, size_t file, size_t other)
{
	const struct task_files *files = survey->request->files;

	return is_beside(&files->files[file], &files->files[other]) && !survey->is_another[file] &&
	       !survey->is_another[other];
}

bool files_may_be_another(const struct survey *survey, size_t file)
{
	for (size_t i = 0; i < survey->request->files->count; i++)
		if (files_compete(survey, file, i))
			return true;
	return false;
}

/* Whether all BOs of a process that the CPU can see can be mapped by the file; false when there are none. */
static bool maps_all(const struct share_process *process, uint32_t gpu_id, int fd)
{
	const uint32_t visible = KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
	bool any = false;

	for (size_t i = 0; i < process->state->nr_records; i++) {
		const struct bo *bo = &process->state->bos[i];

		if (bo->gpu_id != gpu_id || !kfd_bo_has_contents(bo) || !(bo->alloc_flags & visible))
			continue;
		if (!can_map(fd, bo->offset))
			return false;
		any = true;
	}
	return any;
}

size_t files_owner(const struct survey *survey, size_t file)
{
	const struct share_request *request = survey->request;
	const struct task_file *of = &request->files->files[file];
	size_t i;

	for (i = 0; i < request->nr_processes; i++) {
		const struct share_process *process = &request->processes[i];
		int node = topology_find_minor(process->nodes, of->minor);

		if (node >= 0 && process->pid != of->pid &&
		    maps_all(process, topology_gpu_id(process->nodes->nodes[node]), of->fd))
			break;
	}
	return i;
}

int share_kept_file(const struct share_task *task, uint32_t minor, int kept, uint64_t offset)
{
	for (size_t i = 0; i < task->nr_files; i++) {
		const struct share_file *file = &task->files[i];
		_cleanup_close_ int fd = -1, usual = -1;

		if (file->minor != minor || file->kept == kept)
			continue;
		usual = criu_kept_file(kept);
		if (usual < 0 || can_map(usual, offset))
			break;
		fd = criu_kept_file(file->kept);
		if (fd >= 0 && can_map(fd, offset))
			return file->kept;
	}
	fail_clear(); /* a file that is not there was only looked for */
	return kept;
}
