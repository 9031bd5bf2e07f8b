// SPDX-License-Identifier: GPL-2.0-only
/*
 * KFD memory: buffers of a process on a GPU, mapped at one address into the
 * address spaces of one or more GPUs, and their import and export as dma-bufs.
 * The buffers themselves and the address spaces are the device model's.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/amdgpu_drm.h>
#include <drm/drm_gem.h>

#include "drm.h"
#include "kfd.h"

#define KFD_MEM_KINDS                                                                                   \
	(KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | \
	 KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP)
#define KFD_MEM_EXECUTABLE   (1U << 30)
/* Newer than the oldest kernel's headers. */
#define KFD_MEM_EXT_COHERENT (1U << 24)
#define KFD_MEM_CONTIGUOUS   (1U << 23)
#define KFD_GEM_COHERENT     (1ULL << 13)
#define KFD_GEM_UNCACHED     (1ULL << 14)
#define KFD_GEM_EXT_COHERENT (1ULL << 15)

#define KFD_VRAM_GRANULE (2ULL << 20)

/* ---- buffers ---- */

struct kfd_bo *kfd_bo_by_handle(struct kfd_process *p, u64 handle)
{
	struct kfd_pdd *pdd = kfd_pdd_by_user_id(p, KFD_HANDLE_GPU_ID(handle));

	return pdd ? idr_find(&pdd->bos, KFD_HANDLE_NR(handle)) : NULL;
}

static u64 kfd_gem_flags(u32 flags)
{
	u64 gem = 0;

	if (flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) {
		gem |= AMDGPU_GEM_CREATE_VRAM_CLEARED | AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE;
		if (flags & KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC)
			gem |= AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED;
		if (flags & KFD_MEM_CONTIGUOUS)
			gem |= AMDGPU_GEM_CREATE_VRAM_CONTIGUOUS;
	}
	if (flags & KFD_IOC_ALLOC_MEM_FLAGS_COHERENT)
		gem |= KFD_GEM_COHERENT;
	if (flags & KFD_MEM_EXT_COHERENT)
		gem |= KFD_GEM_EXT_COHERENT;
	if (flags & KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED)
		gem |= KFD_GEM_UNCACHED;
	return gem;
}

/*
 * What lies behind DOORBELL and MMIO_REMAP is mapped by the CPU through
 * /dev/kfd; in the GPU's address space a buffer of its own stands for it:
 * engines do not ring doorbells.
 */
static int kfd_bo_create_backing(struct kfd_bo *bo)
{
	struct sim_gpu *gpu = bo->pdd->gpu;
	int ret;

	if (!(bo->flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT)) &&
	    (bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR))
		return sim_bo_create_userptr(gpu, bo->pdd->process->mm, bo->user_addr, bo->size,
					     !(bo->flags & KFD_MEM_WRITABLE), &bo->bo);
	ret = sim_bo_create(gpu, bo->size, bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM ? AMDGPU_GEM_DOMAIN_VRAM :
										       AMDGPU_GEM_DOMAIN_GTT,
			    kfd_gem_flags(bo->flags), &bo->bo);
	if (!ret)
		bo->bo->by_kfd = true;
	return ret;
}

/* Drops the BO and what belongs to it. It is not in the pdd's table and not mapped. */
static void kfd_bo_free(struct kfd_bo *bo)
{
	unsigned int i;

	for_each_set_bit (i, bo->attached, SIM_MAX_GPUS)
		dma_buf_put(bo->dmabuf);
	if (bo->bo) {
		if (bo->allowed)
			sim_bo_revoke_file(bo->bo, bo->pdd->drm_file);
		kfd_client_remove(bo);
		drm_gem_object_put(&bo->bo->base);
	}
	kfree(bo);
	sim_object_add(SIM_OBJ_KFD_BO, -1);
}

static struct kfd_bo *kfd_bo_new(struct kfd_pdd *pdd, u64 va, u64 size, u32 flags)
{
	struct kfd_bo *bo = kzalloc(sizeof(*bo), GFP_KERNEL);

	if (!bo)
		return NULL;
	bo->pdd = pdd;
	bo->va = va;
	bo->size = size;
	bo->flags = flags;
	sim_object_add(SIM_OBJ_KFD_BO, 1);
	return bo;
}

/* The mmap offset, the right to use it, and a number: @nr, or the lowest free one for NULL. */
static int kfd_bo_publish(struct kfd_bo *bo, const u32 *nr)
{
	struct kfd_pdd *pdd = bo->pdd;
	int ret;

	ret = sim_bo_mmap_offset(bo->bo, &bo->mmap_offset);
	if (ret)
		return ret;
	ret = sim_bo_allow_file(bo->bo, pdd->drm_file);
	if (ret)
		return ret;
	bo->allowed = true;
	ret = idr_alloc(&pdd->bos, bo, nr ? *nr : 0, nr && *nr < INT_MAX ? *nr + 1 : 0, GFP_KERNEL);
	if (ret < 0)
		return nr ? -ENOMEM : -EFAULT;
	bo->nr = ret;
	return 0;
}

int kfd_bo_alloc(struct kfd_pdd *pdd, u64 va, u64 size, u32 flags, u64 user_addr, const u32 *nr, struct kfd_bo **ret)
{
	struct kfd_bo *bo;
	int err;

	if (!(flags & KFD_MEM_KINDS))
		return -EINVAL;
	if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) && size > UINT_MAX)
		return -EINVAL;
	if (flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM)
		size >>= 1;
	if (PAGE_ALIGN(size) < size || (!size && sim_machine.desc.kernel.release >= 702))
		return -EINVAL;
	bo = kfd_bo_new(pdd, va, PAGE_ALIGN(size), flags);
	if (!bo)
		return -ENOMEM;
	bo->user_addr = user_addr;
	err = kfd_bo_create_backing(bo);
	if (err)
		goto err_free;
	bo->bo->alignment = PAGE_SIZE;
	err = kfd_client_add(bo);
	if (!err)
		err = kfd_bo_publish(bo, nr);
	if (err)
		goto err_free;
	if (flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM)
		atomic64_add(bo->size, &pdd->vram_used);
	*ret = bo;
	return 0;

err_free:
	kfd_bo_free(bo);
	return err;
}

/* ---- mapping ---- */

static bool kfd_bo_is_aql(const struct kfd_bo *bo)
{
	return bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM;
}

/* Partitions of one GPU are one device. */
static bool kfd_same_device(const struct sim_node *a, const struct sim_node *b)
{
	return a->pci_domain == b->pci_domain && a->pci_bus == b->pci_bus && a->pci_devfn == b->pci_devfn;
}

/* By PCIe, which the description says of both, and the target's BAR. */
static bool kfd_is_peer_accessible(const struct sim_node *from, const struct sim_node *to)
{
	unsigned int i;

	if (to->bar_size < to->vram_size)
		return false;
	for (i = 0; i < from->nr_links; i++)
		if (from->links[i].node_to == to->id)
			return true;
	return false;
}

static bool kfd_same_hive(const struct sim_node *a, const struct sim_node *b)
{
	return a->prop[SIM_PROP_hive_id] && a->prop[SIM_PROP_hive_id] == b->prop[SIM_PROP_hive_id];
}

/* VRAM is reached in a hive or by PCIe, doorbells and MMIO by PCIe only. System memory is for all. */
static bool kfd_may_map(const struct kfd_bo *bo, const struct kfd_pdd *peer)
{
	const u32 mmio = KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP;
	const struct sim_node *from = peer->gpu->node, *to = bo->pdd->gpu->node;

	if (from->apu || kfd_same_device(from, to))
		return true;
	if (bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM && kfd_same_hive(from, to))
		return true;
	return !(bo->flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | mmio)) || kfd_is_peer_accessible(from, to);
}

/* Whether the peer uses the BO itself; else it imports the dma-buf. What has no dma-buf is mapped in other ways. */
static bool kfd_peer_uses_bo(const struct kfd_bo *bo, const struct kfd_pdd *peer)
{
	const struct sim_node *from = peer->gpu->node, *to = bo->pdd->gpu->node;

	if (kfd_same_device(from, to) || bo->bo->kind != SIM_BO_PAGES || sim_machine.desc.kernel.dmabuf_per_export)
		return true;
	if (bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM)
		return kfd_same_hive(from, to);
	return !(bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_GTT) || (!from->iommu && !to->iommu);
}

/* For good: the reference stays when it is unmapped. */
static int kfd_bo_attach(struct kfd_bo *bo, struct kfd_pdd *peer)
{
	struct dma_buf *buf;
	int ret;

	if (test_bit(peer->index, bo->attached) || kfd_peer_uses_bo(bo, peer))
		return 0;
	ret = kfd_bo_export(bo, &buf);
	if (!ret)
		__set_bit(peer->index, bo->attached);
	return ret;
}

int kfd_bo_map(struct kfd_bo *bo, struct kfd_pdd *peer)
{
	u64 uapi = AMDGPU_VM_PAGE_READABLE;
	u32 access = SIM_VM_READ;
	int ret;

	if (test_bit(peer->index, bo->mapped))
		return 0;
	if (!bo->va || !kfd_may_map(bo, peer))
		return -EINVAL;
	if (bo->flags & KFD_MEM_WRITABLE) {
		access |= SIM_VM_WRITE;
		uapi |= AMDGPU_VM_PAGE_WRITEABLE;
	}
	if (bo->flags & KFD_MEM_EXECUTABLE) {
		access |= SIM_VM_EXEC;
		uapi |= AMDGPU_VM_PAGE_EXECUTABLE;
	}
	ret = kfd_bo_attach(bo, peer);
	if (!ret)
		ret = sim_vm_map(peer->vm, bo->bo, bo->va, 0, bo->size, access, uapi);
	if (ret)
		return ret;
	/* Rings of old packet processors run over their end into a second view of their beginning. */
	if (kfd_bo_is_aql(bo)) {
		ret = sim_vm_map(peer->vm, bo->bo, bo->va + bo->size, 0, bo->size, access, uapi);
		if (ret) {
			sim_vm_unmap(peer->vm, bo->bo, bo->va);
			return ret;
		}
	}
	__set_bit(peer->index, bo->mapped);
	return 0;
}

static void kfd_bo_unmap(struct kfd_bo *bo, struct kfd_pdd *peer)
{
	sim_vm_unmap(peer->vm, bo->bo, bo->va);
	if (kfd_bo_is_aql(bo))
		sim_vm_unmap(peer->vm, bo->bo, bo->va + bo->size);
	__clear_bit(peer->index, bo->mapped);
}

static void kfd_bo_remove(struct kfd_bo *bo)
{
	idr_remove(&bo->pdd->bos, bo->nr);
	if ((bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) && !bo->imported)
		atomic64_sub(bo->size, &bo->pdd->vram_used);
	kfd_bo_free(bo);
}

void kfd_bo_destroy(struct kfd_bo *bo)
{
	struct kfd_process *p = bo->pdd->process;
	unsigned int i;

	for_each_set_bit (i, bo->mapped, p->nr_pdds)
		kfd_bo_unmap(bo, p->pdds[i]);
	kfd_bo_remove(bo);
}

/* ---- ioctls: address spaces ---- */

static int kfd_acquire_vm(struct kfd_process *p, u32 gpu_id, struct file *drm_file)
{
	struct kfd_pdd *pdd = kfd_pdd_by_user_id(p, gpu_id);

	if (!pdd)
		return -EINVAL;
	if (pdd->drm_file)
		return pdd->drm_file == drm_file ? 0 : -EBUSY;
	return kfd_pdd_acquire_vm(pdd, drm_file);
}

int kfd_ioctl_acquire_vm(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_acquire_vm_args *args = data;
	struct file *drm_file = fget(args->drm_fd);
	int ret;

	if (!drm_file)
		return -EINVAL;
	mutex_lock(&p->lock);
	ret = kfd_acquire_vm(p, args->gpu_id, drm_file);
	mutex_unlock(&p->lock);
	fput(drm_file);
	return ret;
}

int kfd_ioctl_available_memory(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_get_available_memory_args *args = data;
	struct kfd_pdd *pdd = kfd_pdd_by_user_id(p, args->gpu_id);
	u64 size, used;

	if (!pdd)
		return -EINVAL;
	size = pdd->gpu->node->vram_size;
	used = round_up((u64)atomic64_read(&pdd->gpu->vram_used), KFD_VRAM_GRANULE);
	args->available = size > used ? round_down(size - used, KFD_VRAM_GRANULE) : 0;
	return 0;
}

/* ---- ioctls: allocation ---- */

/* The checks that ALLOC makes before it looks at the kind of memory. */
static int kfd_alloc_check(struct kfd_pdd *pdd, const struct kfd_ioctl_alloc_memory_of_gpu_args *args)
{
	const struct sim_node *node = pdd->gpu->node;
	u32 flags = args->flags;

	if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC) && (flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) &&
	    node->bar_size < node->vram_size)
		return -EINVAL;
	if (!pdd->vm)
		return -ENODEV;
	if (flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) {
		if (args->size != KFD_DOORBELL_SLICE)
			return -EINVAL;
		return kfd_doorbells_alloc(pdd);
	}
	if (flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP)
		return args->size == PAGE_SIZE ? 0 : -EINVAL;
	return 0;
}

static bool kfd_alloc_is_userptr(u32 flags)
{
	return (flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) &&
	       !(flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT));
}

/* -EPERM for memory that may be read only: the kernel asks for writable pages, whatever the BO's flags. */
static int kfd_user_error(u64 addr)
{
	struct vm_area_struct *vma;
	int ret = -EFAULT;

	mmap_read_lock(current->mm);
	vma = vma_lookup(current->mm, addr);
	if (vma && (vma->vm_flags & (VM_READ | VM_WRITE | VM_IO | VM_PFNMAP)) == VM_READ)
		ret = -EPERM;
	mmap_read_unlock(current->mm);
	return ret;
}

/* The pages of a new userptr BO must be there and writable. */
static int kfd_probe_user(u64 addr, u64 size)
{
	struct page *pages[64];
	u64 end = PAGE_ALIGN(addr + size);

	if (end < addr)
		return -EFAULT;
	for (addr &= PAGE_MASK; addr < end;) {
		int want = min_t(u64, ARRAY_SIZE(pages), (end - addr) >> PAGE_SHIFT);
		int n = get_user_pages_fast(addr, want, FOLL_WRITE, pages);

		if (n <= 0)
			return kfd_user_error(addr);
		addr += (u64)n << PAGE_SHIFT;
		while (n)
			put_page(pages[--n]);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static int kfd_alloc(struct kfd_process *p, struct kfd_ioctl_alloc_memory_of_gpu_args *args)
{
	struct kfd_pdd *pdd = kfd_pdd_by_user_id(p, args->gpu_id);
	struct kfd_bo *bo;
	int ret;

	if (!pdd)
		return -EINVAL;
	ret = kfd_alloc_check(pdd, args);
	if (ret)
		return ret;
	if (kfd_alloc_is_userptr(args->flags) && !args->mmap_offset)
		return -EINVAL;
	ret = kfd_bo_alloc(pdd, args->va_addr, args->size, args->flags, args->mmap_offset, NULL, &bo);
	if (ret)
		return ret;
	args->handle = KFD_HANDLE(args->gpu_id, bo->nr);
	args->mmap_offset = bo->mmap_offset;
	if (args->flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP)
		args->mmap_offset = KFD_MMAP_TYPE_MMIO | KFD_MMAP_GPU_ID(args->gpu_id);
	return 0;
}

int kfd_ioctl_alloc_memory(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args *args = data;
	bool anywhere = !args->va_addr && (args->flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	int ret;

	if (!args->size)
		return -EINVAL;
	if (p->primary && (args->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR))
		return -EOPNOTSUPP;
	if (!anywhere && kfd_svm_overlaps(p, args->va_addr, args->size))
		return -EADDRINUSE;
	if (args->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) {
		if (kfd_svm_overlaps(p, args->mmap_offset, args->size))
			return -EADDRINUSE;
		args->mmap_offset = untagged_addr(args->mmap_offset);
	}
	/* Before the lock: user memory may be anything, also something that waits for this process. */
	if (kfd_alloc_is_userptr(args->flags) && args->mmap_offset && kfd_pdd_by_user_id(p, args->gpu_id)) {
		ret = kfd_probe_user(args->mmap_offset, args->size);
		if (ret)
			return ret;
	}
	mutex_lock(&p->lock);
	ret = kfd_alloc(p, args);
	mutex_unlock(&p->lock);
	return ret;
}

static int kfd_free(struct kfd_process *p, u64 handle)
{
	struct kfd_bo *bo;

	if (p->signal_handle && p->signal_handle == handle)
		return -EPERM;
	bo = kfd_bo_by_handle(p, handle);
	if (!bo)
		return -EINVAL;
	if (!bitmap_empty(bo->mapped, SIM_MAX_GPUS))
		return -EBUSY;
	kfd_bo_remove(bo);
	return 0;
}

int kfd_ioctl_free_memory(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_free_memory_of_gpu_args *args = data;
	int ret;

	mutex_lock(&p->lock);
	ret = kfd_free(p, args->handle);
	mutex_unlock(&p->lock);
	return ret;
}

/* ---- ioctls: mapping ---- */

static int kfd_map_one(struct kfd_process *p, struct kfd_bo *bo, u32 gpu_id)
{
	struct kfd_pdd *peer = kfd_pdd_by_user_id(p, gpu_id);

	if (!peer)
		return -EINVAL;
	if (!peer->vm)
		return -ENODEV;
	return kfd_bo_map(bo, peer);
}

static int kfd_unmap_one(struct kfd_process *p, struct kfd_bo *bo, u32 gpu_id)
{
	struct kfd_pdd *peer = kfd_pdd_by_user_id(p, gpu_id);

	if (!peer || !test_bit(peer->index, bo->mapped))
		return -EINVAL;
	if (kfd_queue_uses(peer, bo->va, bo->size))
		return -EBUSY;
	kfd_bo_unmap(bo, peer);
	return 0;
}

/* MAP and UNMAP have the same arguments and go on where an earlier call stopped. */
static int kfd_for_each_gpu(struct kfd_process *p, struct kfd_ioctl_map_memory_to_gpu_args *args, bool map)
{
	struct kfd_pdd *pdd;
	struct kfd_bo *bo;
	int ret = 0;
	u32 *ids;

	if (!args->n_devices || args->n_success > args->n_devices)
		return -EINVAL;
	ids = memdup_user(u64_to_user_ptr(args->device_ids_array_ptr), array_size(args->n_devices, sizeof(*ids)));
	if (IS_ERR(ids))
		return PTR_ERR(ids);

	mutex_lock(&p->lock);
	pdd = kfd_pdd_by_user_id(p, KFD_HANDLE_GPU_ID(args->handle));
	if (!pdd) {
		ret = -EINVAL;
		goto out;
	}
	if (map && !pdd->vm) {
		ret = -ENODEV;
		goto out;
	}
	bo = kfd_bo_by_handle(p, args->handle);
	if (!bo) {
		ret = -ENOMEM;
		goto out;
	}
	while (!ret && args->n_success < args->n_devices) {
		u32 gpu_id = ids[args->n_success];

		ret = map ? kfd_map_one(p, bo, gpu_id) : kfd_unmap_one(p, bo, gpu_id);
		if (!ret)
			args->n_success++;
	}
out:
	mutex_unlock(&p->lock);
	kfree(ids);
	return ret;
}

int kfd_ioctl_map_memory(struct kfd_process *p, void *data)
{
	return kfd_for_each_gpu(p, data, true);
}

int kfd_ioctl_unmap_memory(struct kfd_process *p, void *data)
{
	BUILD_BUG_ON(sizeof(struct kfd_ioctl_map_memory_to_gpu_args) !=
		     sizeof(struct kfd_ioctl_unmap_memory_from_gpu_args));
	return kfd_for_each_gpu(p, data, false);
}

/* ---- ioctls: dma-bufs ---- */

/* What GEM_METADATA gave the BO, as the render node would. */
static int kfd_copy_metadata(struct sim_bo *bo, u64 user_ptr, u32 *size)
{
	struct sim_bo_metadata metadata = {};
	u32 room = *size;

	dma_resv_lock(bo->base.resv, NULL);
	if (bo->metadata)
		metadata = *bo->metadata;
	dma_resv_unlock(bo->base.resv);
	*size = metadata.size;
	if (metadata.size > room)
		return -EINVAL;
	if (!user_ptr || !metadata.size)
		return 0;
	return copy_to_user(u64_to_user_ptr(user_ptr), metadata.data, metadata.size) ? -EFAULT : 0;
}

/* Memory that is of no partition counts as that of the first GPU, where devices can have partitions. */
static const struct sim_node *kfd_dmabuf_node(const struct kfd_process *p, const struct sim_bo *origin)
{
	const struct sim_node *node = origin->gpu->node;
	bool has_partition = origin->by_kfd ? origin->preferred_domains & AMDGPU_GEM_DOMAIN_VRAM : node->nr_partitions > 1;
	u64 gfx = node->prop[SIM_PROP_gfx_target_version];

	return gfx >= 90400 && gfx < 100000 && !has_partition ? p->pdds[0]->gpu->node : node;
}

static int kfd_dmabuf_info(const struct kfd_process *p, struct sim_bo *origin,
			   struct kfd_ioctl_get_dmabuf_info_args *args)
{
	int ret;

	ret = kfd_copy_metadata(origin, args->metadata_ptr, &args->metadata_size);
	args->size = origin->base.size;
	args->gpu_id = kfd_dmabuf_node(p, origin)->gpu_id;
	args->flags =
		origin->domain == AMDGPU_GEM_DOMAIN_VRAM ? KFD_IOC_ALLOC_MEM_FLAGS_VRAM : KFD_IOC_ALLOC_MEM_FLAGS_GTT;
	/* Not what ALLOC was asked for, but what came of it. */
	if (READ_ONCE(origin->cpu_touched))
		args->flags |= KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
	return ret;
}

int kfd_ioctl_get_dmabuf_info(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_get_dmabuf_info_args *args = data;
	struct dma_buf *buf;
	struct sim_bo *origin;
	int ret;

	if (!p->nr_pdds)
		return -EINVAL;
	buf = dma_buf_get(args->dmabuf_fd);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	origin = sim_bo_of_dmabuf(buf);
	ret = origin ? kfd_dmabuf_info(p, origin, args) : -EINVAL;
	dma_buf_put(buf);
	return ret;
}

/* Memory of another GPU is system memory for the importer. */
static int kfd_import(struct kfd_pdd *pdd, struct kfd_ioctl_import_dmabuf_args *args)
{
	struct kfd_bo *bo = kfd_bo_new(pdd, args->va_addr, 0, KFD_MEM_WRITABLE | KFD_MEM_EXECUTABLE);
	int ret;

	if (!bo)
		return -ENOMEM;
	bo->imported = true;
	ret = kfd_client_import(bo, args->dmabuf_fd);
	if (!ret) {
		bo->size = bo->bo->base.size;
		bo->flags |= bo->bo->preferred_domains & AMDGPU_GEM_DOMAIN_VRAM ? KFD_IOC_ALLOC_MEM_FLAGS_VRAM
										: KFD_IOC_ALLOC_MEM_FLAGS_GTT;
		ret = kfd_bo_publish(bo, NULL);
	}
	if (ret) {
		kfd_bo_free(bo);
		return ret;
	}
	args->handle = KFD_HANDLE(pdd->user_gpu_id, bo->nr);
	return 0;
}

int kfd_ioctl_import_dmabuf(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_import_dmabuf_args *args = data;
	struct kfd_pdd *pdd;
	int ret = -EINVAL;

	mutex_lock(&p->lock);
	pdd = kfd_pdd_by_user_id(p, args->gpu_id);
	if (pdd)
		ret = pdd->vm ? kfd_import(pdd, args) : -ENODEV;
	mutex_unlock(&p->lock);
	return ret;
}

/* Unlike everywhere else the id in the handle is taken for the actual one. */
static int kfd_export(struct kfd_process *p, u64 handle, struct dma_buf **ret)
{
	struct sim_gpu *gpu = sim_gpu_by_id(KFD_HANDLE_GPU_ID(handle));
	struct kfd_pdd *pdd = gpu ? kfd_pdd_by_gpu(p, gpu) : NULL;
	struct kfd_bo *bo = pdd ? idr_find(&pdd->bos, KFD_HANDLE_NR(handle)) : NULL;

	return bo ? kfd_bo_export(bo, ret) : -EINVAL;
}

int kfd_ioctl_export_dmabuf(struct kfd_process *p, void *data)
{
	struct kfdsim_export_dmabuf_args *args = data;
	struct dma_buf *buf;
	int ret;

	mutex_lock(&p->lock);
	ret = kfd_export(p, args->handle, &buf);
	mutex_unlock(&p->lock);
	if (ret)
		return ret;
	ret = dma_buf_fd(buf, args->flags);
	if (ret < 0) {
		dma_buf_put(buf);
		return ret;
	}
	args->dmabuf_fd = ret;
	return 0;
}
