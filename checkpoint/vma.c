// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device mappings: which GPU and BO each is of, that the kernel can make it again, and from where a restored task maps it.
 *
 * An offset of /dev/kfd names a GPU by its user or its actual id, which depends on the kernel; which of them it is
 * shows in whether the process has such a GPU. Where GPUs have taken each other's ids, both are possible, and the
 * kernel's rule decides.
 */
#include <inttypes.h>
#include <sys/mman.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/internal.h"

/* ---- which GPU and BO ---- */

bool vma_names_gpu(const struct device_vma *vma)
{
	enum kfd_mmap_type type = kfd_mmap_type(vma->offset);

	return !vma->minor && (type == KFD_MMAP_TYPE_DOORBELL || type == KFD_MMAP_TYPE_MMIO);
}

uint32_t vma_kfd_gpu(const struct device_vma *vma, const struct kfd_state *state, bool by_user)
{
	uint32_t id = kfd_mmap_gpu_id(vma->offset), as_user = 0, as_actual = 0;

	for (size_t i = 0; i < state->nr_devices; i++) {
		if (state->devices[i].user_gpu_id == id)
			as_user = id;
		if (state->devices[i].actual_gpu_id == id)
			as_actual = state->devices[i].user_gpu_id;
	}
	if (as_user && as_actual)
		return by_user ? as_user : as_actual;
	return as_user ? as_user : as_actual;
}

bool vma_from_path(const char *path, uint64_t start, uint64_t offset, struct device_vma *ret)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned int minor = 0;

	if (strcmp(path, "/dev/kfd") && sscanf(path, "/dev/dri/renderD%u", &minor) != 1)
		return false;
	/* One page is enough to tell which BO it is. */
	*ret = (struct device_vma){
		.start = start,
		.end = start + (minor ? 1 : VMA_DOORBELL_PAGES) * page,
		.offset = offset,
		.minor = minor,
	};
	return true;
}

/* ---- dump ---- */

/*
 * The kernel maps doorbells and registers of a GPU as a whole or not at all, and each other range of /dev/kfd from its
 * start. Mappings that were split (mprotect, munmap) are parts.
 */
static int resolve_kfd_vma(const struct gpu_process *process, struct kfd_rules rules, struct device_vma *vma)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), length = vma->end - vma->start;
	uint64_t from = vma->offset & KFD_MMAP_WITHIN, whole = length;
	pid_t pid = process->file.pid;

	if (vma_names_gpu(vma))
		whole = (kfd_mmap_type(vma->offset) == KFD_MMAP_TYPE_MMIO ? 1 : VMA_DOORBELL_PAGES) * page;
	if (from || length != whole)
		return fail(-EOPNOTSUPP, "pid %d: mapping at %#" PRIx64 " of /dev/kfd is incomplete: %" PRIu64 " bytes from %#"
			    PRIx64 " on, and the kernel maps %" PRIu64 " from 0 on (a part was unmapped, or has another "
			    "protection)", pid, vma->start, length, from, whole);
	if (!vma_names_gpu(vma))
		return 0;
	vma->gpu_id = vma_kfd_gpu(vma, &process->state, rules.maps_by_user_id);
	if (vma->gpu_id)
		return 0;
	return fail(-ENODEV, "pid %d: mapping at %#" PRIx64 " of /dev/kfd is of gpu %#x, which the process does not "
		    "have", pid, vma->start, kfd_mmap_gpu_id(vma->offset));
}

/*
 * A mapping of a render node has to be of a BO of the KFD or of an object of which a handle is open: nothing else of
 * the node is restored. The kernel maps a BO from its start only: what is left after a hole cannot be mapped again.
 */
static int check_render_vma(const struct gpu_process *process, const struct vma_bos *bos, const struct device_vma *vma)
{
	int node = topology_find_minor(process->nodes, vma->minor);
	const struct bo *bo = NULL;
	pid_t pid = process->file.pid;

	if (node >= 0)
		bo = vma_bo(vma, bos, topology_gpu_id(process->nodes->nodes[node]));
	if (bo && bo->offset == vma->offset)
		return 0;
	if (bo)
		return fail(-EOPNOTSUPP, "pid %d: mapping at %#" PRIx64 " of renderD%u does not begin where its buffer "
			    "does (%#" PRIx64 " bytes into it, behind a part that was unmapped or protected): the "
			    "kernel cannot map it again", pid, vma->start, vma->minor, vma->offset - bo->offset);
	return fail(-EOPNOTSUPP, "pid %d: mapping at %#" PRIx64 " of renderD%u is not of a buffer that the process has "
		    "by the KFD or an open handle: that cannot be saved", pid, vma->start, vma->minor);
}

int vma_is_foreign(const struct topology *machine, const struct device_vma *vma)
{
	int r;

	if (!vma->minor || topology_find_minor(machine, vma->minor) >= 0)
		return 0;
	r = drm_minor_is_amd(vma->minor);
	if (r < 0)
		return fail(r, "mapping at %#" PRIx64 ": cannot ask renderD%u for its driver: %m", vma->start,
			    vma->minor);
	return !r;
}

int vma_save(const struct topology *machine, struct kfd_rules rules, struct gpu_process *process)
{
	_cleanup_(vma_bos_done) struct vma_bos bos = { 0 };
	int err = task_device_vmas(process->file.pid, &process->vmas, &process->nr_vmas);
	size_t nr_ours = 0;

	if (err)
		return err;
	err = vma_bos_sort(&process->state, &bos);
	if (err)
		return err;
	for (size_t i = 0; i < process->nr_vmas; i++) {
		int r = vma_is_foreign(machine, &process->vmas[i]);

		if (r < 0)
			return r;
		if (!r)
			process->vmas[nr_ours++] = process->vmas[i];
	}
	process->nr_vmas = nr_ours;
	for (size_t i = 0; !err && i < process->nr_vmas; i++)
		err = process->vmas[i].minor ? check_render_vma(process, &bos, &process->vmas[i]) :
					     resolve_kfd_vma(process, rules, &process->vmas[i]);
	return err;
}

/* ---- restore ---- */

/* Every GPU has doorbells. */
static bool can_map_doorbells(const struct restored_task *task, uint32_t gpu_id)
{
	uint64_t offset = kfd_mmap_with_gpu_id((uint64_t)KFD_MMAP_TYPE_DOORBELL << KFD_MMAP_TYPE_SHIFT, gpu_id);
	uint64_t length = VMA_DOORBELL_PAGES * (uint64_t)sysconf(_SC_PAGESIZE);
	_cleanup_close_ int fd = criu_kept_file(task->kfd_store_id);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (p == MAP_FAILED)
		return false;
	munmap(p, length);
	return true;
}

/* Decided by the first GPU whose ids tell: its id on this machine is not one by which the process knows a GPU. */
static bool maps_by_user_id(const struct restored_task *task)
{
	for (size_t i = 0; i < task->gpus.nr; i++) {
		uint32_t actual_id = task->gpus.list[i].actual_id;

		if (!gpus_by_user_id(&task->gpus, actual_id))
			return !can_map_doorbells(task, actual_id);
	}
	return task->restore->rules.maps_by_user_id;
}

/*
 * Doorbells and MMIO. Up to Linux 7.2 the offset names the actual GPU, since 7.3 the
 * user's; asked of the kernel, where the ids differ in a way that it can tell.
 */
static int map_kfd(const struct restored_task *task, const struct device_vma *vma, uint64_t *ret_offset)
{
	const struct gpu *gpu;

	*ret_offset = vma->offset;
	if (!vma_names_gpu(vma))
		return 0;
	gpu = gpus_by_user_id(&task->gpus, vma->gpu_id ? vma->gpu_id : kfd_mmap_gpu_id(vma->offset));
	if (!gpu)
		return -ENODEV;
	*ret_offset = kfd_mmap_with_gpu_id(vma->offset, maps_by_user_id(task) ? gpu->user_id : gpu->actual_id);
	return 0;
}

/* The saved description; images of other writers have none, and tell ours by the GPUs that they name. */
bool vma_find(const struct restored_task *task, const char *path, uint64_t start, uint64_t offset,
	      struct device_vma *ret)
{
	const struct gpu_process *image = task->image;
	const struct device_vma *found;

	if (image && image->nr_vmas) {
		found = bsearch(&start, image->vmas, image->nr_vmas, sizeof(*image->vmas), compare_u64);
		if (found)
			*ret = *found;
		return found;
	}
	return vma_from_path(path, start, offset, ret) &&
	       (!ret->minor || gpus_by_saved_minor(&task->gpus, ret->minor));
}

int vma_restore(const struct restored_task *task, const char *path, const struct device_vma *vma,
		uint64_t *ret_offset, int *ret_fd)
{
	const struct gpu *gpu = vma->minor ? gpus_by_saved_minor(&task->gpus, vma->minor) : NULL;
	const struct bo *bo = NULL;
	int fd, store_id = task->kfd_store_id, err = -ENODEV;

	if (gpu && (task->kfd_store_id >= 0 || (task->image && task->image->no_kfd)))
		bo = vma_bo(vma, &task->bos, gpu->user_id);
	if (task->kfd_store_id >= 0 && !vma->minor)
		err = map_kfd(task, vma, ret_offset);
	if (bo) {
		*ret_offset = vma_restored_offset(vma, bo);
		err = 0;
	}
	if (err)
		return fail(err, "mapping at %#" PRIx64 " of %s: no restored GPU or buffer has file offset %#" PRIx64,
			    vma->start, path, vma->offset);
	if (gpu)
		store_id = share_store_id_for(&task->share, gpu->minor, gpu->store_id, *ret_offset);
	fd = criu_vma_file(store_id, task->restore->vma_fds_stay_open);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
