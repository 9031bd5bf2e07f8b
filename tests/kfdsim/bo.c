// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory objects of the simulated GPU. A BO's pages are ordinary host pages,
 * taken when first touched, so that VRAM larger than the host's memory can be
 * allocated. Userptr BOs have no pages: the owner's are looked up at each access.
 * Knows GEM and dma-buf, but no ioctl.
 */
#include <linux/dma-buf.h>
#include <linux/fcntl.h>
#include <linux/highmem.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/amdgpu_drm.h>
#include <drm/drm_drv.h>
#include <drm/drm_prime.h>
#include <drm/drm_vma_manager.h>

#include "compat.h"
#include "drm.h"

SIM_IMPORT_NS(DMA_BUF);

#define SIM_BO_MAX_SIZE (1ULL << 40) /* what the core's space of fake mmap offsets can take */
#define SIM_BO_PREFAULT 16

static const struct dma_buf_ops sim_dmabuf_ops;

/* ---- pages ---- */

static int bo_page_alloc(struct sim_bo *bo, unsigned long index, struct page **ret)
{
	struct page *page, *old;

	page = alloc_page(GFP_HIGHUSER | __GFP_ZERO | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	if (!page)
		return -ENOMEM;
	old = xa_cmpxchg(&bo->pages, index, NULL, page, GFP_KERNEL);
	if (!old) {
		sim_object_add(SIM_OBJ_PAGE, 1);
		*ret = page;
		return 0;
	}
	__free_page(page);
	if (xa_is_err(old))
		return xa_err(old);
	*ret = old;
	return 0;
}

/* Page @index of a BO that has pages of its own or a foreign exporter's; NULL for a hole unless @alloc. */
static int bo_page(struct sim_bo *bo, unsigned long index, bool alloc, struct page **ret)
{
	if (index >= bo->base.size >> PAGE_SHIFT)
		return -EFAULT;
	if (bo->kind == SIM_BO_IMPORT) {
		*ret = bo->import_pages[index];
		return 0;
	}
	*ret = xa_load(&bo->pages, index);
	if (*ret || !alloc)
		return 0;
	return bo_page_alloc(bo, index, ret);
}

static void bo_free_pages(struct sim_bo *bo)
{
	unsigned long index;
	struct page *page;
	long n = 0;

	xa_for_each(&bo->pages, index, page) {
		__free_page(page);
		if (++n % 1024 == 0)
			cond_resched();
	}
	xa_destroy(&bo->pages);
	sim_object_add(SIM_OBJ_PAGE, -n);
}

/* The object that has the pages: an import from another simulated GPU stands for its exporter. */
static struct sim_bo *bo_backing(struct sim_bo *bo)
{
	return bo->exporter ? bo->exporter : bo;
}

/* ---- cursors ---- */

void sim_cursor_user(struct sim_cursor *cur, struct mm_struct *mm, u64 addr, bool write)
{
	cur->bo = NULL;
	cur->mm = mm;
	cur->base = addr;
	cur->write = write;
	cur->denied = false;
	cur->nr_pinned = 0;
}

void sim_cursor_bo(struct sim_cursor *cur, struct sim_bo *bo, u64 offset, bool write)
{
	bo = bo_backing(bo);
	if (bo->kind == SIM_BO_USERPTR) {
		sim_cursor_user(cur, bo->mm, bo->user_addr + offset, write);
		cur->denied = (write && bo->user_readonly) || READ_ONCE(bo->user_missing);
		return;
	}
	sim_cursor_user(cur, NULL, offset, write);
	cur->bo = bo;
}

static void cursor_unpin(struct sim_cursor *cur)
{
	if (cur->nr_pinned)
		unpin_user_pages_dirty_lock(cur->pinned, cur->nr_pinned, cur->write);
	cur->nr_pinned = 0;
}

/*
 * Pins the pages from @addr on. The last user of an address space may be us: its
 * teardown is left to a worker, since it may have to wait for the caller's thread.
 */
static int cursor_pin(struct sim_cursor *cur, u64 addr, u64 len)
{
	u64 span = (addr & (PAGE_SIZE - 1)) + min_t(u64, len, SIM_CURSOR_BATCH * PAGE_SIZE);
	unsigned int want = clamp_t(u64, DIV_ROUND_UP(span, PAGE_SIZE), 1, SIM_CURSOR_BATCH);
	int locked = 1;
	long n;

	cursor_unpin(cur);
	if (cur->denied)
		return -EFAULT;
	if (!mmget_not_zero(cur->mm))
		return -ESRCH;
	mmap_read_lock(cur->mm);
	n = sim_pin_user_pages_remote(cur->mm, addr & PAGE_MASK, want, cur->write ? FOLL_WRITE : 0, cur->pinned,
				      &locked);
	if (locked)
		mmap_read_unlock(cur->mm);
	mmput_async(cur->mm);
	if (n <= 0)
		return n == -ENOMEM ? -ENOMEM : -EFAULT;
	cur->nr_pinned = n;
	cur->pinned_addr = addr & PAGE_MASK;
	return 0;
}

int sim_user_pages_take(struct mm_struct *mm, u64 addr, u64 size, bool write)
{
	u64 end = PAGE_ALIGN(addr + size);
	struct page *pages[SIM_CURSOR_BATCH];
	int ret = 0;
	long n;

	if (!mmget_not_zero(mm))
		return -ESRCH;
	mmap_read_lock(mm);
	for (addr &= PAGE_MASK; !ret && addr < end; addr += (u64)n << PAGE_SHIFT) {
		/* Without a place to say that the lock was dropped, nobody may wait. */
		n = sim_pin_user_pages_remote(mm, addr, min_t(u64, SIM_CURSOR_BATCH, (end - addr) >> PAGE_SHIFT),
					      write ? FOLL_WRITE : 0, pages, NULL);
		if (n <= 0)
			ret = n == -ENOMEM ? -ENOMEM : -EFAULT;
		else
			unpin_user_pages(pages, n);
	}
	mmap_read_unlock(mm);
	mmput_async(mm);
	return ret;
}

int sim_cursor_page(struct sim_cursor *cur, u64 pos, u64 len, struct page **ret)
{
	u64 addr = cur->base + pos;
	int err;

	if (cur->bo)
		return bo_page(cur->bo, addr >> PAGE_SHIFT, cur->write, ret);
	if (!cur->nr_pinned || addr < cur->pinned_addr ||
	    addr - cur->pinned_addr >= (u64)cur->nr_pinned << PAGE_SHIFT) {
		err = cursor_pin(cur, addr, len);
		if (err)
			return err;
	}
	*ret = cur->pinned[(addr - cur->pinned_addr) >> PAGE_SHIFT];
	return 0;
}

bool sim_cursor_is_hole(struct sim_cursor *cur, u64 pos)
{
	struct page *page;

	if (!cur->bo || bo_page(cur->bo, (cur->base + pos) >> PAGE_SHIFT, false, &page))
		return false;
	return !page;
}

void sim_cursor_done(struct sim_cursor *cur)
{
	cursor_unpin(cur);
}

/* Other processors look at fences and pointers while they are written: those must not be seen half done. */
static void copy_words(void *dst, const void *src, size_t len)
{
	unsigned long at = (unsigned long)dst | (unsigned long)src;

	if (len == sizeof(u64) && !(at & (sizeof(u64) - 1)))
		WRITE_ONCE(*(u64 *)dst, READ_ONCE(*(const u64 *)src));
	else if (len == sizeof(u32) && !(at & (sizeof(u32) - 1)))
		WRITE_ONCE(*(u32 *)dst, READ_ONCE(*(const u32 *)src));
	else
		memcpy(dst, src, len);
}

void sim_page_read(struct page *page, unsigned int in_page, void *buf, size_t len)
{
	void *p;

	if (!page) {
		memset(buf, 0, len);
		return;
	}
	p = kmap_local_page(page);
	copy_words(buf, p + in_page, len);
	kunmap_local(p);
}

void sim_page_write(struct page *page, unsigned int in_page, const void *buf, size_t len)
{
	void *p = kmap_local_page(page);

	copy_words(p + in_page, buf, len);
	kunmap_local(p);
}

static int cursor_access(struct sim_cursor *cur, void *buf, size_t len)
{
	size_t pos, n;
	int ret;

	for (pos = 0; pos < len; pos += n) {
		unsigned int in_page = sim_cursor_in_page(cur, pos);
		struct page *page;

		n = min_t(size_t, len - pos, PAGE_SIZE - in_page);
		ret = sim_cursor_page(cur, pos, len - pos, &page);
		if (ret)
			return ret;
		if (cur->write)
			sim_page_write(page, in_page, buf + pos, n);
		else
			sim_page_read(page, in_page, buf + pos, n);
	}
	return 0;
}

int sim_bo_access(struct sim_bo *bo, u64 offset, void *buf, size_t len, bool write)
{
	struct sim_cursor cur;
	int ret;

	if (offset > bo->base.size || len > bo->base.size - offset)
		return -EFAULT;
	sim_cursor_bo(&cur, bo, offset, write);
	ret = cursor_access(&cur, buf, len);
	sim_cursor_done(&cur);
	return ret;
}

/* ---- mmap ---- */

/* Pages that exist already are mapped along, as many faults cost more than one. */
static void fault_around(struct vm_area_struct *vma, struct sim_bo *bo, unsigned long addr, unsigned long index)
{
	struct page *page;
	int i;

	for (i = 1; i < SIM_BO_PREFAULT; i++) {
		addr += PAGE_SIZE;
		if (addr >= vma->vm_end || bo_page(bo, index + i, false, &page) || !page)
			return;
		if (vmf_insert_pfn(vma, addr, page_to_pfn(page)) != VM_FAULT_NOPAGE)
			return;
	}
}

static vm_fault_t bo_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct sim_bo *bo = to_sim_bo(vma->vm_private_data);
	unsigned long index = vmf->pgoff - drm_vma_node_start(&bo->base.vma_node);
	struct page *page;
	vm_fault_t fault;
	int ret;

	if (bo->kind != SIM_BO_PAGES) /* as on hardware: imported pages are not mapped through the importer */
		return VM_FAULT_SIGBUS;
	ret = bo_page(bo, index, true, &page);
	if (ret)
		return ret == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
	WRITE_ONCE(bo->cpu_touched, true);
	fault = vmf_insert_pfn(vma, vmf->address, page_to_pfn(page));
	if (fault == VM_FAULT_NOPAGE)
		fault_around(vma, bo, vmf->address & PAGE_MASK, index);
	return fault;
}

/* Debuggers read device mappings through this. */
static int bo_vma_access(struct vm_area_struct *vma, unsigned long addr, void *buf, int len, int write)
{
	struct sim_bo *bo = to_sim_bo(vma->vm_private_data);
	u64 first = vma->vm_pgoff - drm_vma_node_start(&bo->base.vma_node);
	int ret;

	if (len <= 0)
		return -EIO;
	ret = sim_bo_access(bo, (first << PAGE_SHIFT) + (addr - vma->vm_start), buf, len, write);
	return ret ? -EIO : len;
}

static const struct vm_operations_struct bo_vm_ops = {
	.open = drm_gem_vm_open,
	.close = drm_gem_vm_close,
	.fault = bo_fault,
	.access = bo_vma_access,
};

static int bo_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	struct sim_bo *bo = to_sim_bo(obj);
	const vm_flags_t cow = VM_SHARED | VM_MAYWRITE;

	if (bo->kind == SIM_BO_USERPTR || (bo->create_flags & AMDGPU_GEM_CREATE_NO_CPU_ACCESS))
		return -EPERM;
	/*
	 * A private mapping that could become writable would need pages that can
	 * be copied. libhsakmt reserves address space with private PROT_NONE
	 * mappings: these are let through, but never become writable.
	 */
	if ((vma->vm_flags & cow) == VM_MAYWRITE) {
		if (vma->vm_flags & VM_ACCESS_FLAGS)
			return -EINVAL;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP);
	return 0;
}

int sim_bo_mmap_offset(struct sim_bo *bo, u64 *ret)
{
	*ret = drm_vma_node_offset_addr(&bo->base.vma_node);
	return 0;
}

/* ---- creation ---- */

static atomic64_t *bo_account(struct sim_gpu *gpu, u32 domain, u64 *limit)
{
	if (domain == AMDGPU_GEM_DOMAIN_VRAM) {
		*limit = gpu->node->vram_size;
		return &gpu->vram_used;
	}
	*limit = sim_gpu_gtt_size(gpu);
	return &gpu->gtt_used;
}

static int bo_charge(struct sim_gpu *gpu, u32 domain, u64 size)
{
	u64 limit;
	atomic64_t *used = bo_account(gpu, domain, &limit);

	if (atomic64_add_return(size, used) <= limit)
		return 0;
	atomic64_sub(size, used);
	return -ENOMEM;
}

static void bo_uncharge(struct sim_bo *bo)
{
	u64 limit;

	if (bo->kind == SIM_BO_PAGES)
		atomic64_sub(bo->base.size, bo_account(bo->gpu, bo->domain, &limit));
}

u64 sim_gpu_gtt_size(const struct sim_gpu *gpu)
{
	return max_t(u64, (u64)totalram_pages() << PAGE_SHIFT, SZ_16G);
}

static void bo_destroy(struct sim_bo *bo)
{
	bo_free_pages(bo);
	drm_gem_object_release(&bo->base);
	if (bo->mm)
		mmdrop(bo->mm);
	kvfree(bo->import_pages);
	kfree(bo->metadata);
	sim_vm_put(bo->vm);
	kfree(bo);
	sim_object_add(SIM_OBJ_BO, -1);
}

static int bo_new(struct sim_gpu *gpu, enum sim_bo_kind kind, u64 size, u32 domain, struct sim_bo **ret)
{
	struct sim_bo *bo;
	int err;

	if (!size)
		return -EINVAL;
	if (size > SIM_BO_MAX_SIZE)
		return -ENOMEM;
	bo = kzalloc(sizeof(*bo), GFP_KERNEL);
	if (!bo)
		return -ENOMEM;
	bo->gpu = gpu;
	bo->kind = kind;
	bo->size = size;
	bo->domain = domain;
	bo->preferred_domains = domain;
	xa_init(&bo->pages);
	drm_gem_private_object_init(&gpu->ddev, &bo->base, PAGE_ALIGN(size));
	bo->base.funcs = &sim_bo_funcs;
	sim_object_add(SIM_OBJ_BO, 1);
	err = drm_gem_create_mmap_offset(&bo->base);
	if (err) {
		bo_destroy(bo);
		return err;
	}
	*ret = bo;
	return 0;
}

int sim_bo_create(struct sim_gpu *gpu, u64 size, u32 domain, u64 create_flags, struct sim_bo **ret)
{
	struct sim_bo *bo;
	int err;

	/* The memory managers take no bytes for more than they have. */
	if (!size)
		return -ENOSPC;
	err = bo_new(gpu, SIM_BO_PAGES, size, domain, &bo);
	if (err)
		return err;
	err = bo_charge(gpu, domain, bo->base.size);
	if (err) {
		bo_destroy(bo);
		return err;
	}
	bo->create_flags = create_flags;
	*ret = bo;
	return 0;
}

int sim_bo_create_userptr(struct sim_gpu *gpu, struct mm_struct *mm, u64 user_addr, u64 size, bool readonly,
			  struct sim_bo **ret)
{
	struct sim_bo *bo;
	int err;

	if (user_addr + size < user_addr)
		return -EINVAL;
	err = bo_new(gpu, SIM_BO_USERPTR, size, AMDGPU_GEM_DOMAIN_GTT, &bo);
	if (err)
		return err;
	mmgrab(mm);
	bo->mm = mm;
	bo->user_addr = user_addr;
	bo->user_readonly = readonly;
	*ret = bo;
	return 0;
}

static void bo_free(struct drm_gem_object *obj)
{
	struct sim_bo *bo = to_sim_bo(obj);

	if (obj->import_attach)
		drm_prime_gem_destroy(obj, bo->sgt);
	bo_uncharge(bo);
	bo_destroy(bo);
}

/* ---- dma-buf ---- */

/* For importers that are no simulated GPUs: they want all pages at once. */
static struct sg_table *bo_get_sg_table(struct drm_gem_object *obj)
{
	struct sim_bo *bo = to_sim_bo(obj);
	unsigned long i, n = obj->size >> PAGE_SHIFT;
	struct sg_table *sgt = ERR_PTR(-ENOMEM);
	struct page **pages;

	if (bo->kind != SIM_BO_PAGES || n > INT_MAX)
		return ERR_PTR(-EINVAL);
	pages = kvmalloc_array(n, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return sgt;
	for (i = 0; i < n; i++)
		if (bo_page(bo, i, true, &pages[i]))
			goto out;
	sgt = drm_prime_pages_to_sg(obj->dev, pages, n);
out:
	kvfree(pages);
	return sgt;
}

/* Called by the DRM core, too, which holds object_name_lock then. */
static struct dma_buf *bo_export(struct drm_gem_object *obj, int flags)
{
	struct sim_bo *bo = to_sim_bo(obj);
	struct dma_buf *buf;

	if (bo->kind == SIM_BO_USERPTR || (bo->create_flags & AMDGPU_GEM_CREATE_VM_ALWAYS_VALID))
		return ERR_PTR(-EPERM);
	buf = drm_gem_prime_export(obj, flags);
	if (!IS_ERR(buf))
		buf->ops = &sim_dmabuf_ops;
	return buf;
}

/* Same behaviour as the core's, but recognisable as ours. */
static const struct dma_buf_ops sim_dmabuf_ops = {
	.attach = drm_gem_map_attach,
	.detach = drm_gem_map_detach,
	.map_dma_buf = drm_gem_map_dma_buf,
	.unmap_dma_buf = drm_gem_unmap_dma_buf,
	.release = drm_gem_dmabuf_release,
	.mmap = drm_gem_dmabuf_mmap,
};

struct sim_bo *sim_bo_of_dmabuf(const struct dma_buf *buf)
{
	return buf->ops == &sim_dmabuf_ops ? to_sim_bo(buf->priv) : NULL;
}

struct dma_buf *sim_bo_new_dmabuf(struct sim_bo *bo, int flags)
{
	return bo_export(&bo->base, flags);
}

bool sim_bo_is_refused_import(const struct sim_bo *bo)
{
	u64 hive = bo->gpu->node->prop[SIM_PROP_hive_id];

	return sim_machine.desc.kernel.refuse_hive_imports && bo->exporter && hive &&
	       hive == bo->exporter->gpu->node->prop[SIM_PROP_hive_id] &&
	       bo->exporter->preferred_domains & AMDGPU_GEM_DOMAIN_VRAM;
}

/* Takes over the pages of a dma-buf that no simulated GPU exported. */
static int import_foreign(struct sim_bo *bo, struct dma_buf_attachment *attach)
{
	unsigned long i = 0, n = bo->base.size >> PAGE_SHIFT;
	struct sg_page_iter iter;
	struct sg_table *sgt;

	bo->import_pages = kvmalloc_array(n, sizeof(*bo->import_pages), GFP_KERNEL);
	if (!bo->import_pages)
		return -ENOMEM;
	sgt = sim_dma_buf_map(attach, DMA_BIDIRECTIONAL);
	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	for_each_sgtable_page(sgt, &iter, 0)
		if (i < n)
			bo->import_pages[i++] = sg_page_iter_page(&iter);
	bo->sgt = sgt;
	return i == n ? 0 : -EINVAL;
}

static int import_attached(struct sim_gpu *gpu, struct dma_buf_attachment *attach, struct sim_bo **ret)
{
	struct dma_buf *buf = attach->dmabuf;
	struct sim_bo *bo;
	int err;

	err = bo_new(gpu, SIM_BO_IMPORT, buf->size, AMDGPU_GEM_DOMAIN_GTT, &bo);
	if (err)
		return err;
	if (buf->ops == &sim_dmabuf_ops)
		bo->exporter = to_sim_bo(buf->priv);
	else
		err = import_foreign(bo, attach);
	if (err) {
		if (bo->sgt)
			sim_dma_buf_unmap(attach, bo->sgt, DMA_BIDIRECTIONAL);
		bo_destroy(bo);
		return err;
	}
	bo->base.import_attach = attach;
	bo->base.resv = buf->resv;
	*ret = bo;
	return 0;
}

/* The core's hook for PRIME_FD_TO_HANDLE. */
struct drm_gem_object *sim_prime_import(struct drm_device *ddev, struct dma_buf *buf)
{
	struct dma_buf_attachment *attach;
	struct drm_gem_object *obj;
	struct sim_bo *bo;
	int err;

	if (buf->ops == &sim_dmabuf_ops) {
		obj = buf->priv;
		if (obj->dev == ddev) {
			drm_gem_object_get(obj);
			return obj;
		}
	}
	attach = dma_buf_attach(buf, ddev->dev);
	if (IS_ERR(attach))
		return ERR_CAST(attach);
	get_dma_buf(buf); /* dropped by drm_prime_gem_destroy */
	err = import_attached(to_sim_gpu(ddev), attach, &bo);
	if (!err)
		return &bo->base;
	dma_buf_detach(buf, attach);
	dma_buf_put(buf);
	return ERR_PTR(err);
}

const struct drm_gem_object_funcs sim_bo_funcs = {
	.free = bo_free,
	.open = sim_gem_open,
	.close = sim_gem_close,
	.export = bo_export,
	.get_sg_table = bo_get_sg_table,
	.mmap = bo_mmap,
	.vm_ops = &bo_vm_ops,
};
