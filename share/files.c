// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which of a process' open files of one render node has the KFD's address space.
 *
 * The kernel lets all BOs of the KFD be mapped through the file with that address space, and through another file only
 * those of which that one has a handle. This is the best sign; choose_by() has others.
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

#define ANY_FLAGS     UINT32_MAX
/* Of BOs that the CPU sees; VRAM that was imported may be seen as well, and has neither. */
#define VISIBLE_FLAGS (KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC)

/* How many BOs of a process on a GPU, with one of @flags, can be mapped by a file; -1: how many there are. */
static size_t count_bos(const struct gpu_process *process, uint32_t minor, uint32_t flags, int fd)
{
	const struct kfd_state *state = &process->state;
	int node = topology_find_minor(process->nodes, minor);
	size_t nr = 0;

	for (size_t i = 0; node >= 0 && i < state->nr_records; i++) {
		const struct bo *bo = &state->bos[i];

		if (bo->gpu_id == topology_gpu_id(process->nodes->nodes[node]) && bo->alloc_flags & flags &&
		    kfd_bo_has_data(bo))
			nr += fd < 0 || can_map(fd, bo->offset);
	}
	return nr;
}

/* Whether another file of the same render node can map more BOs of the process. */
static bool another_maps_more(const struct survey *survey, const struct gpu_process *of, size_t file)
{
	const struct task_files *files = survey->request->files;
	const struct task_file *its = &files->files[file];
	size_t nr = SIZE_MAX; /* not counted yet */

	for (size_t i = 0; i < files->count; i++) {
		const struct task_file *other = &files->files[i];

		if (!is_beside(its, other))
			continue;
		nr = nr < SIZE_MAX ? nr : count_bos(of, its->minor, ANY_FLAGS, its->fd);
		if (count_bos(of, its->minor, ANY_FLAGS, other->fd) > nr)
			return true;
	}
	return false;
}

/* Whether two files are of one node and one process, and each may be the one with the KFD's address space. */
static bool compete(const struct survey *survey, size_t file, size_t other)
{
	const struct task_files *files = survey->request->files;

	return is_beside(&files->files[file], &files->files[other]) && !survey->without_kfd_vm[file] &&
	       !survey->without_kfd_vm[other];
}

bool files_may_lack_kfd_vm(const struct survey *survey, size_t file)
{
	for (size_t i = 0; i < survey->request->files->count; i++)
		if (compete(survey, file, i))
			return true;
	return false;
}

/*
 * Marks those beside a file that shows that it is the KFD's, and do not. Where a process has no buffer on the GPU that
 * the CPU can map, that is the file with the KFD's pasid (Linux 6.1 and 6.12), else that with syncobjs. Of files
 * without contexts, which are all that can be saved, ROCm makes them in no other. Each is asked once: a sign may be
 * many calls.
 */
static int choose_by(struct survey *survey, bool by_pasid)
{
	const struct task_files *files = survey->request->files;
	_cleanup_free_ bool *signs = calloc(files->count + 1, sizeof(*signs));
	struct task_kfd kfd;

	if (!signs)
		return -ENOMEM;
	for (size_t i = 0; i < files->count; i++) {
		const struct task_file *file = &files->files[i];

		if (files_may_lack_kfd_vm(survey, i))
			signs[i] = !by_pasid ? survey->objects[i].nr_syncobjs :
				   !task_ask_kfd(file->pid, &kfd) && kfd.pasid && task_file_has_pasid(file, kfd.pasid);
	}
	for (size_t i = 0; i < files->count; i++)
		for (size_t j = 0; signs[i] && j < files->count; j++)
			if (!signs[j] && compete(survey, i, j))
				survey->without_kfd_vm[j] = true;
	return 0;
}

int files_find_kfd_vm(struct survey *survey)
{
	const struct share_request *request = survey->request;
	int err;

	for (size_t i = 0; i < request->files->count; i++) {
		size_t process = survey_process_of(request, request->files->files[i].pid);
		const struct gpu_process *of = process < request->nr_processes ? request->processes[process] : NULL;

		survey->without_kfd_vm[i] = !request->files->files[i].minor || !of || of->file.minor ||
					    another_maps_more(survey, of, i);
	}
	err = choose_by(survey, true);
	return err ? err : choose_by(survey, false);
}

size_t files_owner(const struct survey *survey, size_t file)
{
	const struct share_request *request = survey->request;
	const struct task_file *of = &request->files->files[file];
	size_t i;

	for (i = 0; i < request->nr_processes; i++) {
		size_t nr = count_bos(request->processes[i], of->minor, VISIBLE_FLAGS, -1);

		if (nr && count_bos(request->processes[i], of->minor, VISIBLE_FLAGS, of->fd) == nr)
			break;
	}
	return i;
}

int share_store_id_for(const struct share_task *task, uint32_t minor, int store_id, uint64_t offset)
{
	for (size_t i = 0; i < task->nr_files; i++) {
		const struct share_file *file = &task->files[i];
		_cleanup_close_ int fd = -1, usual = -1;

		if (file->minor != minor || file->store_id == store_id)
			continue;
		usual = criu_kept_file(store_id);
		if (usual < 0 || can_map(usual, offset))
			break;
		fd = criu_kept_file(file->store_id);
		if (fd >= 0 && can_map(fd, offset))
			return file->store_id;
	}
	fail_clear(); /* a file that is not there was only looked for */
	return store_id;
}
