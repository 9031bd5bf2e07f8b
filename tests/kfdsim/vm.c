// SPDX-License-Identifier: GPL-2.0-only
/*
 * GPU address spaces: a tree of mappings of BOs, and access by GPU virtual
 * address for engines. A transfer resolves one mapping after the other and holds
 * only a BO reference while it moves bytes, never the address space's lock:
 * touching user memory may fault, and faults may come back here.
 */
#include <linux/highmem.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "drm.h"

struct sim_mapping {
	struct rb_node node;
	struct hlist_node by_bo;
	struct list_head removed;
	struct sim_bo *bo;
	u64 va, size, offset;
	u64 uapi_flags;
	u32 access;
};

/* ---- the tree, all under vm->lock ---- */

/* The first mapping that ends behind @va. */
static struct sim_mapping *first_from(struct sim_vm *vm, u64 va)
{
	struct rb_node *node = vm->mappings.rb_root.rb_node;
	struct sim_mapping *best = NULL;

	while (node) {
		struct sim_mapping *m = rb_entry(node, struct sim_mapping, node);

		if (va < m->va + m->size) {
			best = m;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return best;
}

static struct sim_mapping *next_of(struct sim_mapping *m)
{
	return rb_entry_safe(rb_next(&m->node), struct sim_mapping, node);
}

static void insert(struct sim_vm *vm, struct sim_mapping *m)
{
	struct rb_node **link = &vm->mappings.rb_root.rb_node, *parent = NULL;
	bool leftmost = true;

	while (*link) {
		parent = *link;
		if (m->va < rb_entry(parent, struct sim_mapping, node)->va) {
			link = &parent->rb_left;
		} else {
			link = &parent->rb_right;
			leftmost = false;
		}
	}
	rb_link_node(&m->node, parent, link);
	rb_insert_color_cached(&m->node, &vm->mappings, leftmost);
	hash_add(vm->by_bo, &m->by_bo, (unsigned long)m->bo);
	sim_object_add(SIM_OBJ_MAPPING, 1);
}

static struct sim_mapping *mapping_new(struct sim_bo *bo, u64 va, u64 offset, u64 size, u32 access, u64 uapi_flags)
{
	struct sim_mapping *m = kzalloc(sizeof(*m), GFP_KERNEL);

	if (!m)
		return NULL;
	drm_gem_object_get(&bo->base);
	m->bo = bo;
	m->va = va;
	m->size = size;
	m->offset = offset;
	m->access = access;
	m->uapi_flags = uapi_flags;
	return m;
}

/* BO references are dropped later, without the lock: the last one frees the BO. */
static void take_out(struct sim_vm *vm, struct sim_mapping *m, struct list_head *removed)
{
	rb_erase_cached(&m->node, &vm->mappings);
	hash_del(&m->by_bo);
	sim_object_add(SIM_OBJ_MAPPING, -1);
	list_add_tail(&m->removed, removed);
}

static void free_mapping(struct sim_mapping *m)
{
	if (!m)
		return;
	drm_gem_object_put(&m->bo->base);
	kfree(m);
}

static void free_removed(struct list_head *removed)
{
	struct sim_mapping *m, *next;

	list_for_each_entry_safe(m, next, removed, removed)
		free_mapping(m);
}

/* ---- life ---- */

struct sim_vm *sim_vm_create(struct sim_gpu *gpu)
{
	struct sim_vm *vm = kzalloc(sizeof(*vm), GFP_KERNEL);

	if (!vm)
		return NULL;
	kref_init(&vm->ref);
	mutex_init(&vm->lock);
	vm->gpu = gpu;
	vm->mappings = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&vm->limits);
	dma_resv_init(&vm->resv);
	sim_object_add(SIM_OBJ_VM, 1);
	return vm;
}

struct sim_vm *sim_vm_get(struct sim_vm *vm)
{
	kref_get(&vm->ref);
	return vm;
}

static void vm_release(struct kref *ref)
{
	struct sim_vm *vm = container_of(ref, struct sim_vm, ref);
	struct sim_mapping *m, *next;

	rbtree_postorder_for_each_entry_safe(m, next, &vm->mappings.rb_root, node) {
		sim_object_add(SIM_OBJ_MAPPING, -1);
		free_mapping(m);
	}
	dma_resv_fini(&vm->resv);
	mutex_destroy(&vm->lock);
	kfree(vm);
	sim_object_add(SIM_OBJ_VM, -1);
}

void sim_vm_put(struct sim_vm *vm)
{
	if (vm)
		kref_put(&vm->ref, vm_release);
}

void sim_vm_set_svm(struct sim_vm *vm, struct mm_struct *(*lookup)(void *ctx, u64 va, u64 *avail, bool write),
		    void *ctx)
{
	mutex_lock(&vm->lock);
	vm->svm_lookup = lookup;
	vm->svm_ctx = ctx;
	mutex_unlock(&vm->lock);
}

/* ---- changing it ---- */

static bool range_ok(u64 va, u64 size)
{
	return size && !((va | size) & ~PAGE_MASK) && va + size > va;
}

int sim_vm_map(struct sim_vm *vm, struct sim_bo *bo, u64 va, u64 offset, u64 size, u32 access, u64 uapi_flags)
{
	struct sim_mapping *m, *hit;

	if (!range_ok(va, size) || (offset & ~PAGE_MASK))
		return -EINVAL;
	if (offset > bo->base.size || size > bo->base.size - offset)
		return -EINVAL;
	m = mapping_new(bo, va, offset, size, access, uapi_flags);
	if (!m)
		return -ENOMEM;
	mutex_lock(&vm->lock);
	hit = first_from(vm, va);
	if (hit && hit->va < va + size) {
		mutex_unlock(&vm->lock);
		free_mapping(m);
		return -EINVAL;
	}
	insert(vm, m);
	mutex_unlock(&vm->lock);
	return 0;
}

int sim_vm_unmap(struct sim_vm *vm, struct sim_bo *bo, u64 va)
{
	struct sim_mapping *m;
	LIST_HEAD(removed);

	mutex_lock(&vm->lock);
	m = first_from(vm, va);
	if (m && m->va == va && m->bo == bo)
		take_out(vm, m, &removed);
	mutex_unlock(&vm->lock);
	if (list_empty(&removed))
		return -ENOENT;
	free_removed(&removed);
	return 0;
}

void sim_vm_unmap_gem(struct sim_vm *vm, struct sim_bo *bo)
{
	struct sim_mapping *m, *next;
	LIST_HEAD(removed);

	mutex_lock(&vm->lock);
	for (m = first_from(vm, 0); m; m = next) {
		next = next_of(m);
		if (m->bo == bo && (m->access & SIM_VM_GEM))
			take_out(vm, m, &removed);
	}
	mutex_unlock(&vm->lock);
	free_removed(&removed);
}

/* Makes @spare the part [va, end) of @m and puts it into the tree. */
static void keep_part(struct sim_vm *vm, struct sim_mapping *spare, struct sim_mapping *m, u64 va, u64 end)
{
	spare->bo = m->bo;
	drm_gem_object_get(&m->bo->base);
	spare->va = va;
	spare->size = end - va;
	spare->offset = m->offset + (va - m->va);
	spare->access = m->access;
	spare->uapi_flags = m->uapi_flags;
	insert(vm, spare);
}

int sim_vm_clear(struct sim_vm *vm, u64 va, u64 size)
{
	struct sim_mapping *before, *after, *m, *next;
	u64 end = va + size;
	LIST_HEAD(removed);

	if (!range_ok(va, size))
		return -EINVAL;
	before = kzalloc(sizeof(*before), GFP_KERNEL);
	after = kzalloc(sizeof(*after), GFP_KERNEL);
	if (!before || !after) {
		kfree(before);
		kfree(after);
		return -ENOMEM;
	}
	mutex_lock(&vm->lock);
	for (m = first_from(vm, va); m && m->va < end; m = next) {
		next = next_of(m);
		take_out(vm, m, &removed);
		if (m->va < va) {
			keep_part(vm, before, m, m->va, va);
			before = NULL;
		}
		if (m->va + m->size > end) {
			keep_part(vm, after, m, end, m->va + m->size);
			after = NULL;
			break;
		}
	}
	mutex_unlock(&vm->lock);
	kfree(before);
	kfree(after);
	free_removed(&removed);
	return 0;
}

/* ---- looking at it ---- */

bool sim_vm_is_exact(struct sim_vm *vm, u64 va, u64 size)
{
	struct sim_mapping *m;
	bool exact;

	mutex_lock(&vm->lock);
	m = first_from(vm, va);
	exact = m && m->va == va && m->size == size;
	mutex_unlock(&vm->lock);
	return exact;
}

bool sim_vm_begins_at(struct sim_vm *vm, u64 va)
{
	struct sim_mapping *m;
	bool begins;

	mutex_lock(&vm->lock);
	m = first_from(vm, va);
	begins = m && m->va == va;
	mutex_unlock(&vm->lock);
	return begins;
}

bool sim_vm_overlaps(struct sim_vm *vm, u64 va, u64 size)
{
	struct sim_mapping *m;
	bool overlaps;

	mutex_lock(&vm->lock);
	m = first_from(vm, va);
	overlaps = m && m->va < va + size;
	mutex_unlock(&vm->lock);
	return overlaps;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct sim_vm_range *x = a, *y = b;

	return x->va < y->va ? -1 : x->va > y->va;
}

unsigned int sim_vm_list(struct sim_vm *vm, struct sim_bo *bo, struct sim_vm_range *ranges, unsigned int max)
{
	struct sim_mapping *m;
	unsigned int n = 0;

	mutex_lock(&vm->lock);
	hash_for_each_possible(vm->by_bo, m, by_bo, (unsigned long)bo) {
		if (m->bo != bo)
			continue;
		if (n < max)
			ranges[n] = (struct sim_vm_range){ m->va, m->size, m->offset, m->uapi_flags };
		n++;
	}
	mutex_unlock(&vm->lock);
	sort(ranges, min(n, max), sizeof(*ranges), compare_ranges, NULL);
	return n;
}

/* ---- access by engines ---- */

/* A walk through ascending addresses, one mapping (or SVM range) at a time. */
struct walk {
	struct sim_vm *vm;
	u64 va;		/* where it stands */
	bool write;
	u64 left;	/* bytes of the current stretch from va on */
	u64 pos;	/* of va in the cursor */
	struct sim_bo *bo;
	struct mm_struct *mm;
	struct sim_cursor cur;
};

static void walk_init(struct walk *w, struct sim_vm *vm, u64 va, bool write)
{
	w->vm = vm;
	w->va = va;
	w->write = write;
	w->left = 0;
	w->bo = NULL;
	w->mm = NULL;
}

static void walk_done(struct walk *w)
{
	if (w->bo || w->mm)
		sim_cursor_done(&w->cur);
	if (w->bo)
		drm_gem_object_put(&w->bo->base);
	if (w->mm)
		mmdrop(w->mm);
	w->bo = NULL;
	w->mm = NULL;
}

void sim_vm_limit_begin(struct sim_vm *vm, struct sim_vm_limit *limit, struct xarray *bos)
{
	limit->task = current;
	limit->bos = bos;
	mutex_lock(&vm->lock);
	list_add(&limit->link, &vm->limits);
	mutex_unlock(&vm->lock);
}

void sim_vm_limit_end(struct sim_vm *vm, struct sim_vm_limit *limit)
{
	mutex_lock(&vm->lock);
	list_del(&limit->link);
	mutex_unlock(&vm->lock);
}

/* Under the vm's lock. */
static bool limit_allows(struct sim_vm *vm, struct sim_bo *bo)
{
	struct sim_vm_limit *limit;

	list_for_each_entry(limit, &vm->limits, link) if (limit->task == current) return bo->vm ||
		xa_load(limit->bos, (unsigned long)bo);
	return true;
}

static int walk_enter_mapping(struct walk *w, struct sim_mapping *m)
{
	if (!limit_allows(w->vm, m->bo))
		return -EFAULT;
	if (!(m->access & (w->write ? SIM_VM_WRITE : SIM_VM_READ)))
		return -EFAULT;
	drm_gem_object_get(&m->bo->base);
	w->bo = m->bo;
	w->left = m->va + m->size - w->va;
	sim_cursor_bo(&w->cur, m->bo, m->offset + (w->va - m->va), w->write);
	return 0;
}

static int walk_enter_svm(struct walk *w)
{
	u64 avail = 0;

	if (!w->vm->svm_lookup)
		return -EFAULT;
	w->mm = w->vm->svm_lookup(w->vm->svm_ctx, w->va, &avail, w->write);
	if (!w->mm)
		return -EFAULT;
	w->left = avail;
	sim_cursor_user(&w->cur, w->mm, w->va, w->write);
	return avail ? 0 : -EFAULT;
}

/* Makes sure that the walk stands on something that may be accessed. */
static int walk_settle(struct walk *w)
{
	struct sim_mapping *m;
	int ret;

	if (w->left)
		return 0;
	walk_done(w);
	w->pos = 0;
	mutex_lock(&w->vm->lock);
	m = first_from(w->vm, w->va);
	if (m && m->va <= w->va)
		ret = walk_enter_mapping(w, m);
	else
		ret = walk_enter_svm(w);
	mutex_unlock(&w->vm->lock);
	return ret;
}

static u64 walk_room(struct walk *w)
{
	return min_t(u64, w->left, PAGE_SIZE - sim_cursor_in_page(&w->cur, w->pos));
}

static int walk_page(struct walk *w, u64 len, struct page **page)
{
	return sim_cursor_page(&w->cur, w->pos, min(len, w->left), page);
}

static unsigned int walk_in_page(struct walk *w)
{
	return sim_cursor_in_page(&w->cur, w->pos);
}

static void walk_advance(struct walk *w, u64 n)
{
	w->va += n;
	w->pos += n;
	w->left -= n;
}

static int vm_access(struct sim_vm *vm, u64 va, void *buf, size_t len, bool write, u64 *fault_va)
{
	struct page *page;
	struct walk w;
	size_t n;
	int ret = 0;

	walk_init(&w, vm, va, write);
	while (len) {
		ret = walk_settle(&w);
		if (!ret)
			ret = walk_page(&w, len, &page);
		if (ret) {
			*fault_va = w.va;
			break;
		}
		n = min_t(u64, len, walk_room(&w));
		if (write)
			sim_page_write(page, walk_in_page(&w), buf, n);
		else
			sim_page_read(page, walk_in_page(&w), buf, n);
		walk_advance(&w, n);
		buf += n;
		len -= n;
	}
	walk_done(&w);
	return ret;
}

int sim_vm_read(struct sim_vm *vm, u64 va, void *buf, size_t len, u64 *fault_va)
{
	return vm_access(vm, va, buf, len, false, fault_va);
}

int sim_vm_write(struct sim_vm *vm, u64 va, const void *buf, size_t len, u64 *fault_va)
{
	return vm_access(vm, va, (void *)buf, len, true, fault_va);
}

static void copy_page_part(struct page *to, unsigned int to_off, struct page *from, unsigned int from_off, size_t n)
{
	void *src = kmap_local_page(from);

	if (to == from)
		memmove(src + to_off, src + from_off, n);
	else
		sim_page_write(to, to_off, src + from_off, n);
	kunmap_local(src);
}

static bool page_part_is_zero(struct page *page, unsigned int off, size_t n)
{
	void *p = kmap_local_page(page);
	bool zero = !memchr_inv(p + off, 0, n);

	kunmap_local(p);
	return zero;
}

static void zero_page_part(struct page *page, unsigned int off, size_t n)
{
	void *p = kmap_local_page(page);

	memset(p + off, 0, n);
	kunmap_local(p);
}

/* Copies @n bytes within one page on each side. Zeroes that land in a hole leave it a hole. */
static int copy_piece(struct walk *dst, struct page *from, unsigned int from_off, u64 n, u64 len)
{
	struct page *to;
	int ret;

	if (sim_cursor_is_hole(&dst->cur, dst->pos) && (!from || page_part_is_zero(from, from_off, n)))
		return 0;
	ret = walk_page(dst, len, &to);
	if (ret)
		return ret;
	if (from)
		copy_page_part(to, walk_in_page(dst), from, from_off, n);
	else
		zero_page_part(to, walk_in_page(dst), n);
	return 0;
}

int sim_vm_copy(struct sim_vm *vm, u64 dst, u64 src, u64 len, u64 *fault_va)
{
	struct walk from, to;
	struct page *page;
	int ret = 0;
	u64 n;

	walk_init(&from, vm, src, false);
	walk_init(&to, vm, dst, true);
	while (len) {
		*fault_va = from.va;
		ret = walk_settle(&from);
		if (!ret)
			ret = walk_page(&from, len, &page);
		if (ret)
			break;
		*fault_va = to.va;
		ret = walk_settle(&to);
		if (ret)
			break;
		n = min3(len, walk_room(&from), walk_room(&to));
		ret = copy_piece(&to, page, walk_in_page(&from), n, len);
		if (ret)
			break;
		walk_advance(&from, n);
		walk_advance(&to, n);
		len -= n;
		cond_resched();
	}
	walk_done(&from);
	walk_done(&to);
	return ret;
}

/* @phase: how many bytes of the pattern are already written. */
static void fill_page_part(struct page *page, unsigned int off, u32 value, u64 phase, size_t n)
{
	const u8 *pattern = (const u8 *)&value;
	u8 *p = kmap_local_page(page);
	size_t i;

	if (!((off | n | phase) & 3))
		memset32((u32 *)(p + off), value, n / 4);
	else
		for (i = 0; i < n; i++)
			p[off + i] = pattern[(phase + i) & 3];
	kunmap_local(p);
}

int sim_vm_fill(struct sim_vm *vm, u64 dst, u32 value, u64 len, u64 *fault_va)
{
	struct page *page;
	u64 n, done = 0;
	struct walk w;
	int ret = 0;

	walk_init(&w, vm, dst, true);
	while (done < len) {
		*fault_va = w.va;
		ret = walk_settle(&w);
		if (ret)
			break;
		n = min(len - done, walk_room(&w));
		if (value || !sim_cursor_is_hole(&w.cur, w.pos)) {
			ret = walk_page(&w, len - done, &page);
			if (ret)
				break;
			fill_page_part(page, walk_in_page(&w), value, done, n);
		}
		walk_advance(&w, n);
		done += n;
		cond_resched();
	}
	walk_done(&w);
	return ret;
}

static u64 atomic_step(void *p, bool wide, u64 (*op)(void *arg, u64 old), void *arg)
{
	u64 old64;
	u32 old32;

	if (wide) {
		do
			old64 = READ_ONCE(*(u64 *)p);
		while (cmpxchg((u64 *)p, old64, op(arg, old64)) != old64);
		return old64;
	}
	do
		old32 = READ_ONCE(*(u32 *)p);
	while (cmpxchg((u32 *)p, old32, (u32)op(arg, old32)) != old32);
	return old32;
}

int sim_vm_atomic(struct sim_vm *vm, u64 va, bool wide, u64 (*op)(void *arg, u64 old), void *arg, u64 *ret_old,
		  u64 *fault_va)
{
	struct page *page;
	struct walk w;
	void *p;
	int ret;

	*fault_va = va;
	if (va & (wide ? 7 : 3))
		return -EFAULT;
	walk_init(&w, vm, va, true);
	ret = walk_settle(&w);
	if (!ret)
		ret = walk_page(&w, wide ? 8 : 4, &page);
	if (!ret) {
		p = kmap_local_page(page);
		*ret_old = atomic_step(p + walk_in_page(&w), wide, op, arg);
		kunmap_local(p);
	}
	walk_done(&w);
	return ret;
}
