// SPDX-License-Identifier: GPL-2.0-only
/* What the dump wants of device mappings: the GPU of each, and that the kernel can make it again. */
#include <inttypes.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/vma.h"

/*
 * The kernel maps doorbells and registers of a GPU as a whole or not at all, and each other range of /dev/kfd from its
 * start. Mappings that were split (mprotect, munmap) are parts.
 */
static int check_whole(pid_t pid, const struct device_vma *vma)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), length = vma->end - vma->start;
	uint64_t from = vma->offset & (KFD_MMAP_GPU_UNIT - 1), whole = length;

	if (vma_names_gpu(vma))
		whole = (kfd_mmap_type(vma->offset) == KFD_MMAP_TYPE_MMIO ? 1 : VMA_DOORBELL_PAGES) * page;
	if (!from && length == whole)
		return 0;
	return fail(-EOPNOTSUPP, "pid %d: mapping at %#" PRIx64 " of /dev/kfd is not whole: %" PRIu64 " bytes from %#"
		    PRIx64 " on, and the kernel maps %" PRIu64 " from 0 on (a part was unmapped, or has another "
		    "protection)", pid, vma->start, length, from, whole);
}

static int resolve_kfd_vma(pid_t pid, const struct kfd_state *state, struct kfd_rules rules, struct device_vma *vma)
{
	int err = check_whole(pid, vma);

	if (err || !vma_names_gpu(vma))
		return err;
	vma->gpu_id = vma_kfd_gpu(vma, state, rules.maps_by_user_id);
	if (vma->gpu_id)
		return 0;
	return fail(-ENODEV, "pid %d: mapping at %#" PRIx64 " of /dev/kfd is of gpu %#x, which the process does not "
		    "have", pid, vma->start, kfd_mmap_gpu_id(vma->offset));
}

/*
 * A mapping of a render node has to be of a BO of the KFD or of an object of which a handle is open: nothing else of
 * the node is restored. The kernel maps a BO from its start only: what is left after a hole cannot be mapped again.
 */
static int check_render_vma(pid_t pid, const struct kfd_image *image, const struct vma_bos *bos,
			    const struct device_vma *vma)
{
	int node = topology_find_minor(image->nodes, vma->minor);
	const struct bo *bo = NULL;

	if (node >= 0)
		bo = vma_bo(vma, bos, topology_gpu_id(image->nodes->nodes[node]));
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

static int drop_foreign(const struct topology *machine, struct kfd_image *image)
{
	size_t nr_kept = 0;

	for (size_t i = 0; i < image->nr_vmas; i++) {
		int r = vma_is_foreign(machine, &image->vmas[i]);

		if (r < 0)
			return r;
		if (!r)
			image->vmas[nr_kept++] = image->vmas[i];
	}
	image->nr_vmas = nr_kept;
	return 0;
}

int vma_save(pid_t pid, const struct topology *machine, struct kfd_rules rules, struct kfd_image *image)
{
	_cleanup_(vma_bos_done) struct vma_bos bos = { 0 };
	int err = task_device_vmas(pid, &image->vmas, &image->nr_vmas);

	image->has_vmas = true;
	if (err)
		return err;
	err = vma_bos_sort(&image->state, &bos);
	if (err)
		return err;
	err = drop_foreign(machine, image);
	for (size_t i = 0; !err && i < image->nr_vmas; i++)
		err = image->vmas[i].minor ? check_render_vma(pid, image, &bos, &image->vmas[i]) :
					     resolve_kfd_vma(pid, &image->state, rules, &image->vmas[i]);
	return err;
}
