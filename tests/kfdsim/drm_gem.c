// SPDX-License-Identifier: GPL-2.0-only
/*
 * GEM ioctls on one buffer: creation, mapping by the CPU and by the GPU, userptr,
 * metadata. What concerns the table of handles is in drm_handles.c.
 */
#include <linux/dma-fence-chain.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm_syncobj.h>

#include "compat.h"
#include "drm.h"

/* The part of the address space that the kernel keeps for itself. */
#define VA_BOTTOM     0x10000ULL
#define VA_HOLE_START 0x0000800000000000ULL
#define VA_HOLE_END   0xffff800000000000ULL
#define VA_MASK	      0x0000ffffffffffffULL
#define VA_TOP	      ((1ULL << 48) - SZ_2M - SZ_2M - SZ_64K)

/* ---- creation ---- */

u64 sim_gem_settable_flags(void)
{
	const u64 always = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED | AMDGPU_GEM_CREATE_NO_CPU_ACCESS |
			   AMDGPU_GEM_CREATE_CPU_GTT_USWC | AMDGPU_GEM_CREATE_VRAM_CLEARED |
			   AMDGPU_GEM_CREATE_VM_ALWAYS_VALID | AMDGPU_GEM_CREATE_EXPLICIT_SYNC |
			   AMDGPU_GEM_CREATE_ENCRYPTED | SIM_GEM_CREATE_GFX12_DCC | SIM_GEM_CREATE_DISCARDABLE;

	if (!sim_machine.desc.kernel.gem_list_handles)
		return always;
	/* What GEM_LIST_HANDLES reports can be asked for since the same release. */
	return always | AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE | SIM_GEM_CREATE_COHERENT | SIM_GEM_CREATE_UNCACHED |
	       SIM_GEM_CREATE_EXT_COHERENT;
}

u64 sim_gem_flags(const struct sim_bo *bo)
{
	bool wiped = sim_machine.desc.kernel.release >= 612;

	return bo->create_flags | (wiped ? AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE : 0);
}

static int check_create(const struct drm_amdgpu_gem_create_in *in)
{
	const u64 domains = AMDGPU_GEM_DOMAIN_CPU | AMDGPU_GEM_DOMAIN_GTT | AMDGPU_GEM_DOMAIN_VRAM;

	if (in->domain_flags & ~sim_gem_settable_flags())
		return -EINVAL;
	/* There is no GDS, GWS, OA or doorbell domain. */
	if (in->domains & ~domains)
		return -EINVAL;
	/* Nothing has trusted memory zones. */
	return in->domain_flags & AMDGPU_GEM_CREATE_ENCRYPTED ? -EINVAL : 0;
}

/*
 * VRAM that is full spills into GTT, unseen; VRAM that could never hold the BO
 * makes GTT one of its domains.
 */
static int create_placed(struct sim_gpu *gpu, const struct drm_amdgpu_gem_create_in *in, struct sim_bo **ret)
{
	u64 flags = in->domain_flags | AMDGPU_GEM_CREATE_VRAM_CLEARED;
	u32 domains = in->domains;
	int err = -ENOMEM;

	if ((domains & AMDGPU_GEM_DOMAIN_VRAM) && in->bo_size > gpu->node->bar_size)
		flags &= ~(u64)AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED;
	if (domains == AMDGPU_GEM_DOMAIN_VRAM && PAGE_ALIGN(in->bo_size) > gpu->node->vram_size)
		domains |= AMDGPU_GEM_DOMAIN_GTT;
	if (domains & AMDGPU_GEM_DOMAIN_VRAM)
		err = sim_bo_create(gpu, in->bo_size, AMDGPU_GEM_DOMAIN_VRAM, flags, ret);
	if (err == -ENOMEM)
		err = sim_bo_create(gpu, in->bo_size, AMDGPU_GEM_DOMAIN_GTT, flags, ret);
	if (!err)
		(*ret)->preferred_domains = domains;
	return err;
}

SIM_IOCTL(sim_ioctl_gem_create)
{
	struct sim_drm_file *f = to_sim_drm_file(file);
	union drm_amdgpu_gem_create *args = data;
	struct sim_bo *bo;
	u32 handle;
	int ret;

	ret = check_create(&args->in);
	if (ret)
		return ret;
	ret = create_placed(f->gpu, &args->in, &bo);
	if (ret)
		return ret;
	bo->alignment = ALIGN(args->in.alignment, PAGE_SIZE);
	if (bo->create_flags & AMDGPU_GEM_CREATE_VM_ALWAYS_VALID) {
		bo->vm = sim_vm_get(f->vm);
		bo->base.resv = &f->vm->resv;
	}
	ret = drm_gem_handle_create(file, &bo->base, &handle);
	drm_gem_object_put(&bo->base);
	if (ret)
		return ret;
	memset(args, 0, sizeof(*args));
	args->out.handle = handle;
	return 0;
}

/* Would an engine be able to access the pages? Faults them in, as the kernel does when asked to validate. */
static int userptr_validate(u64 addr, u64 size, u32 flags)
{
	bool write = !(flags & AMDGPU_GEM_USERPTR_READONLY);
	struct vm_area_struct *vma;
	struct sim_cursor cur;
	struct page *page;
	int ret = 0;
	u64 pos;

	mmap_read_lock(current->mm);
	vma = find_vma(current->mm, addr);
	if (!vma || vma->vm_start > addr)
		ret = -EFAULT;
	else if ((flags & AMDGPU_GEM_USERPTR_ANONONLY) && vma->vm_file)
		ret = -EPERM;
	mmap_read_unlock(current->mm);
	if (ret)
		return ret;
	sim_cursor_user(&cur, current->mm, addr, write);
	for (pos = 0; pos < size && !ret; pos += PAGE_SIZE) {
		ret = sim_cursor_page(&cur, pos, size - pos, &page);
		if (fatal_signal_pending(current))
			ret = -ERESTARTSYS;
	}
	sim_cursor_done(&cur);
	return ret;
}

SIM_IOCTL(sim_ioctl_gem_userptr)
{
	const u32 known = AMDGPU_GEM_USERPTR_READONLY | AMDGPU_GEM_USERPTR_ANONONLY | AMDGPU_GEM_USERPTR_VALIDATE |
			  AMDGPU_GEM_USERPTR_REGISTER;
	struct drm_amdgpu_gem_userptr *args = data;
	bool readonly = args->flags & AMDGPU_GEM_USERPTR_READONLY;
	struct sim_bo *bo;
	int ret;

	if (((args->addr | args->size) & ~PAGE_MASK) || (args->flags & ~known))
		return -EINVAL;
	if (!readonly && !(args->flags & AMDGPU_GEM_USERPTR_REGISTER))
		return -EACCES;
	ret = sim_bo_create_userptr(to_sim_gpu(ddev), current->mm, args->addr, args->size, readonly, &bo);
	if (ret)
		return ret;
	if (args->flags & AMDGPU_GEM_USERPTR_VALIDATE)
		ret = userptr_validate(args->addr, args->size, args->flags);
	if (!ret)
		ret = drm_gem_handle_create(file, &bo->base, &args->handle);
	drm_gem_object_put(&bo->base);
	return ret;
}

/* ---- what is done to one handle ---- */

static struct sim_bo *bo_lookup(struct drm_file *file, u32 handle)
{
	struct drm_gem_object *obj = drm_gem_object_lookup(file, handle);

	return obj ? to_sim_bo(obj) : NULL;
}

SIM_IOCTL(sim_ioctl_gem_mmap)
{
	union drm_amdgpu_gem_mmap *args = data;
	struct sim_bo *bo = bo_lookup(file, args->in.handle);
	int ret = 0;
	u64 offset;

	if (!bo)
		return -ENOENT;
	if (bo->kind == SIM_BO_USERPTR || (bo->create_flags & AMDGPU_GEM_CREATE_NO_CPU_ACCESS))
		ret = -EPERM;
	else
		ret = sim_bo_mmap_offset(bo, &offset);
	drm_gem_object_put(&bo->base);
	if (ret)
		return ret;
	memset(args, 0, sizeof(*args));
	args->out.addr_ptr = offset;
	return 0;
}

SIM_IOCTL(sim_ioctl_gem_wait_idle)
{
	union drm_amdgpu_gem_wait_idle *args = data;
	unsigned long timeout = sim_timeout(args->in.timeout);
	struct sim_bo *bo = bo_lookup(file, args->in.handle);
	long ret;

	if (!bo)
		return -ENOENT;
	ret = dma_resv_wait_timeout(bo->base.resv, DMA_RESV_USAGE_READ, true, timeout);
	drm_gem_object_put(&bo->base);
	if (ret < 0)
		return ret;
	memset(args, 0, sizeof(*args));
	args->out.status = ret == 0;
	return 0;
}

/* Under the BO's reservation lock. */
static int metadata_set(struct sim_bo *bo, const struct drm_amdgpu_gem_metadata *args)
{
	if (args->data.data_size_bytes > sizeof(bo->metadata->data))
		return -EINVAL;
	if (!bo->metadata)
		bo->metadata = kzalloc(sizeof(*bo->metadata), GFP_KERNEL);
	if (!bo->metadata)
		return -ENOMEM;
	bo->metadata->tiling_info = args->data.tiling_info;
	bo->metadata->size = args->data.data_size_bytes;
	if (!bo->metadata->size)
		return 0;
	bo->metadata->flags = args->data.flags;
	memcpy(bo->metadata->data, args->data.data, bo->metadata->size);
	return 0;
}

static int metadata_get(struct sim_bo *bo, struct drm_amdgpu_gem_metadata *args)
{
	static const struct sim_bo_metadata none;
	const struct sim_bo_metadata *m = bo->metadata ? bo->metadata : &none;

	args->data.tiling_info = m->tiling_info;
	args->data.flags = m->flags;
	args->data.data_size_bytes = m->size;
	memcpy(args->data.data, m->data, m->size);
	return 0;
}

SIM_IOCTL(sim_ioctl_gem_metadata)
{
	struct drm_amdgpu_gem_metadata *args = data;
	struct sim_bo *bo = bo_lookup(file, args->handle);
	int ret = 0; /* as in the kernel, an unknown operation does nothing */

	if (!bo)
		return -ENOENT;
	dma_resv_lock(bo->base.resv, NULL);
	if (args->op == AMDGPU_GEM_METADATA_OP_SET_METADATA)
		ret = metadata_set(bo, args);
	else if (args->op == AMDGPU_GEM_METADATA_OP_GET_METADATA)
		ret = metadata_get(bo, args);
	dma_resv_unlock(bo->base.resv);
	drm_gem_object_put(&bo->base);
	return ret;
}

/* ---- GEM_OP ---- */

static int op_create_info(struct sim_bo *bo, const struct sim_gem_op *args)
{
	struct drm_amdgpu_gem_create_in info = {
		.bo_size = bo->base.size,
		.alignment = bo->alignment,
		.domains = bo->preferred_domains,
		.domain_flags = sim_gem_flags(bo),
	};

	return copy_to_user(u64_to_user_ptr(args->value), &info, sizeof(info)) ? -EFAULT : 0;
}

static int op_set_placement(struct sim_bo *bo, const struct sim_gem_op *args)
{
	if (bo->base.import_attach && (args->value & AMDGPU_GEM_DOMAIN_VRAM))
		return -EINVAL;
	if (bo->kind == SIM_BO_USERPTR)
		return -EPERM;
	bo->preferred_domains = args->value & (AMDGPU_GEM_DOMAIN_VRAM | AMDGPU_GEM_DOMAIN_GTT | AMDGPU_GEM_DOMAIN_CPU);
	return 0;
}

/* Copied only when the array takes all of it; the real number comes back in any case. */
static int op_mapping_info(struct sim_drm_file *f, struct sim_bo *bo, struct sim_gem_op *args)
{
	struct sim_gem_vm_entry *entries;
	struct sim_vm_range *ranges;
	unsigned int n, i;
	int ret = 0;

	if (args->num_entries > INT_MAX / sizeof(*entries))
		return -EINVAL;
	BUILD_BUG_ON(sizeof(*ranges) != sizeof(*entries));
	ranges = kvcalloc(args->num_entries, sizeof(*ranges), GFP_KERNEL);
	if (!ranges)
		return -ENOMEM;
	n = sim_vm_list(f->vm, bo, ranges, args->num_entries);
	entries = (struct sim_gem_vm_entry *)ranges;
	for (i = 0; i < min(n, args->num_entries); i++)
		entries[i] = (struct sim_gem_vm_entry){ ranges[i].va, ranges[i].size, ranges[i].offset,
							ranges[i].uapi_flags };
	if (n && n <= args->num_entries && copy_to_user(u64_to_user_ptr(args->value), entries, n * sizeof(*entries)))
		ret = -EFAULT;
	args->num_entries = n;
	kvfree(ranges);
	return ret;
}

SIM_IOCTL(sim_ioctl_gem_op)
{
	bool has_mapping_info = sim_machine.desc.kernel.gem_list_handles;
	struct sim_gem_op *args = data;
	struct sim_bo *bo;
	int ret = -EINVAL;

	if (has_mapping_info && args->padding)
		return -EINVAL;
	bo = bo_lookup(file, args->handle);
	if (!bo)
		return -ENOENT;
	if (args->op == AMDGPU_GEM_OP_GET_GEM_CREATE_INFO)
		ret = op_create_info(bo, args);
	else if (args->op == AMDGPU_GEM_OP_SET_PLACEMENT)
		ret = op_set_placement(bo, args);
	else if (args->op == SIM_GEM_OP_GET_MAPPING_INFO && has_mapping_info)
		ret = op_mapping_info(to_sim_drm_file(file), bo, args);
	drm_gem_object_put(&bo->base);
	return ret;
}

/* ---- GEM_VA ---- */

static int check_va(struct sim_gem_va *args)
{
	const u32 known = AMDGPU_VM_DELAY_UPDATE | AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE |
			  AMDGPU_VM_PAGE_EXECUTABLE | AMDGPU_VM_MTYPE_MASK | SIM_VM_PAGE_NOALLOC;
	u64 end;

	if (args->va_address < VA_BOTTOM)
		return -EINVAL;
	if (args->va_address >= VA_HOLE_START && args->va_address < VA_HOLE_END)
		return -EINVAL;
	args->va_address &= VA_MASK;
	if (check_add_overflow(args->va_address, args->map_size, &end) || end > VA_TOP)
		return -EINVAL;
	/* Sparse (PRT) mappings are not simulated. */
	if (args->flags & ~known)
		return -EINVAL;
	if (args->operation < AMDGPU_VA_OP_MAP || args->operation > AMDGPU_VA_OP_REPLACE)
		return -EINVAL;
	return (args->flags & AMDGPU_VM_DELAY_UPDATE) && args->vm_timeline_syncobj_out ? -EINVAL : 0;
}

static int wait_input_fences(struct drm_file *file, const struct sim_gem_va *args)
{
	struct dma_fence *fence;
	u32 *handles, i;
	int ret = 0;

	if (!args->num_syncobj_handles)
		return 0;
	handles = sim_memdup_array_user(u64_to_user_ptr(args->input_fence_syncobj_handles), args->num_syncobj_handles,
					sizeof(*handles));
	if (IS_ERR(handles))
		return PTR_ERR(handles);
	for (i = 0; i < args->num_syncobj_handles && !ret; i++) {
		ret = handles[i] ? drm_syncobj_find_fence(file, handles[i], 0, 0, &fence) : -EINVAL;
		if (ret)
			break;
		ret = dma_fence_wait(fence, true);
		dma_fence_put(fence);
	}
	kfree(handles);
	return ret;
}

/* The syncobj that is told when the mapping is in place: at once, when the ioctl succeeds. */
struct timeline {
	struct drm_syncobj *syncobj;
	struct dma_fence_chain *chain;
};

static int timeline_prepare(struct drm_file *file, const struct sim_gem_va *args, struct timeline *t)
{
	t->syncobj = NULL;
	t->chain = NULL;
	if (!args->vm_timeline_syncobj_out)
		return 0;
	t->syncobj = drm_syncobj_find(file, args->vm_timeline_syncobj_out);
	if (!t->syncobj)
		return -ENOENT;
	if (!args->vm_timeline_point)
		return 0;
	t->chain = dma_fence_chain_alloc();
	if (t->chain)
		return 0;
	drm_syncobj_put(t->syncobj);
	t->syncobj = NULL;
	return -ENOMEM;
}

static void timeline_finish(const struct sim_gem_va *args, struct timeline *t, bool signal)
{
	struct dma_fence *fence;

	if (t->syncobj && signal) {
		fence = dma_fence_get_stub();
		if (t->chain)
			drm_syncobj_add_point(t->syncobj, t->chain, fence, args->vm_timeline_point);
		else
			drm_syncobj_replace_fence(t->syncobj, fence);
		dma_fence_put(fence);
		t->chain = NULL;
	}
	dma_fence_chain_free(t->chain);
	if (t->syncobj)
		drm_syncobj_put(t->syncobj);
}

static u32 access_of(u32 flags)
{
	return SIM_VM_GEM | (flags & AMDGPU_VM_PAGE_READABLE ? SIM_VM_READ : 0) |
	       (flags & AMDGPU_VM_PAGE_WRITEABLE ? SIM_VM_WRITE : 0) |
	       (flags & AMDGPU_VM_PAGE_EXECUTABLE ? SIM_VM_EXEC : 0);
}

static int va_map(struct sim_vm *vm, struct sim_bo *bo, const struct sim_gem_va *args)
{
	return sim_vm_map(vm, bo, args->va_address, args->offset_in_bo, args->map_size, access_of(args->flags),
			  args->flags);
}

/* Nothing is taken away when the new mapping is not possible anyway. */
static int va_replace(struct sim_vm *vm, struct sim_bo *bo, const struct sim_gem_va *args)
{
	int ret;

	if (((args->va_address | args->offset_in_bo | args->map_size) & ~PAGE_MASK) ||
	    args->offset_in_bo > bo->base.size || args->map_size > bo->base.size - args->offset_in_bo)
		return -EINVAL;
	ret = sim_vm_clear(vm, args->va_address, args->map_size);
	return ret ? ret : va_map(vm, bo, args);
}

static int va_operate(struct sim_vm *vm, struct sim_bo *bo, const struct sim_gem_va *args)
{
	switch (args->operation) {
	case AMDGPU_VA_OP_MAP:
		return va_map(vm, bo, args);
	case AMDGPU_VA_OP_UNMAP:
		return sim_vm_unmap(vm, bo, args->va_address & PAGE_MASK);
	case AMDGPU_VA_OP_CLEAR:
		return sim_vm_clear(vm, args->va_address, args->map_size);
	default:
		return va_replace(vm, bo, args);
	}
}

SIM_IOCTL(sim_ioctl_gem_va)
{
	struct sim_drm_file *f = to_sim_drm_file(file);
	struct sim_gem_va *args = data;
	struct sim_bo *bo = NULL;
	struct timeline timeline;
	int ret;

	/* The struct ended before the timeline. */
	if (sim_machine.desc.kernel.drm_minor < 64)
		args->vm_timeline_point = args->vm_timeline_syncobj_out = args->num_syncobj_handles = 0;
	ret = check_va(args);
	if (ret)
		return ret;
	if (args->operation != AMDGPU_VA_OP_CLEAR) {
		bo = bo_lookup(file, args->handle);
		if (!bo)
			return -ENOENT;
	}
	ret = wait_input_fences(file, args);
	if (!ret)
		ret = timeline_prepare(file, args, &timeline);
	if (!ret) {
		ret = va_operate(f->vm, bo, args);
		timeline_finish(args, &timeline, !ret);
	}
	if (bo)
		drm_gem_object_put(&bo->base);
	return ret;
}
