// SPDX-License-Identifier: GPL-2.0-only
/*
 * SVM: ranges of a process' ordinary memory with attributes, which say among
 * others what GPUs may use them at their CPU addresses. Pages stay where they
 * are; locations are kept and reported. Ranges go when their memory is unmapped.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kfd.h"

#define KFD_CAP_SVMAPI	      0x08000000
#define KFD_SVM_GRANULARITY   9
#define KFD_SVM_DEFAULT_FLAGS (KFD_IOCTL_SVM_FLAG_HOST_ACCESS | KFD_IOCTL_SVM_FLAG_COHERENT)
#define KFD_SVM_ALWAYS_MAPPED 0x40 /* newer than the oldest kernel's headers */

struct kfd_svm_attrs {
	u32 preferred, prefetch; /* user gpu id, 0 for system memory, KFD_SVM_UNDEFINED */
	u32 flags;
	u32 granularity;
	DECLARE_BITMAP(access, SIM_MAX_GPUS); /* by pdd index */
	DECLARE_BITMAP(in_place, SIM_MAX_GPUS);
};

struct kfd_svm_range {
	struct list_head node;
	u64 start, last; /* page numbers */
	struct kfd_svm_attrs attrs;
};

static bool kfd_svm_supported(const struct kfd_pdd *pdd)
{
	return sim_gpu_prop(pdd->gpu, SIM_PROP_capability) & KFD_CAP_SVMAPI;
}

bool kfd_process_has_svm(const struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->nr_pdds; i++)
		if (kfd_svm_supported(p->pdds[i]))
			return true;
	return false;
}

/* ---- the list, under svm_lock ---- */

static struct kfd_svm_range *kfd_range_new(u64 start, u64 last, const struct kfd_svm_attrs *attrs)
{
	struct kfd_svm_range *range = kzalloc(sizeof(*range), GFP_NOWAIT | __GFP_NOWARN);

	if (!range)
		return NULL;
	range->start = start;
	range->last = last;
	range->attrs = *attrs;
	sim_object_add(SIM_OBJ_SVM_RANGE, 1);
	return range;
}

static void kfd_range_free(struct kfd_svm_range *range)
{
	list_del(&range->node);
	kfree(range);
	sim_object_add(SIM_OBJ_SVM_RANGE, -1);
}

/* The first range that ends at @page or behind it. */
static struct kfd_svm_range *kfd_range_from(struct kfd_process *p, u64 page)
{
	struct kfd_svm_range *range;

	list_for_each_entry (range, &p->svm_ranges, node)
		if (range->last >= page)
			return range;
	return NULL;
}

static struct kfd_svm_range *kfd_range_next(struct kfd_process *p, struct kfd_svm_range *range)
{
	return list_is_last(&range->node, &p->svm_ranges) ? NULL : list_next_entry(range, node);
}

/* Makes @range end before @page; a new one goes on from there. */
static int kfd_range_split(struct kfd_svm_range *range, u64 page)
{
	struct kfd_svm_range *tail = kfd_range_new(page, range->last, &range->attrs);

	if (!tail)
		return -ENOMEM;
	range->last = page - 1;
	list_add(&tail->node, &range->node);
	return 0;
}

/* A range for the pages that have none, before @next (the list's end for NULL). */
static int kfd_range_insert(struct kfd_process *p, u64 start, u64 last, struct kfd_svm_range *next)
{
	struct kfd_svm_attrs attrs = {
		.preferred = KFD_SVM_UNDEFINED,
		.prefetch = KFD_SVM_UNDEFINED,
		.flags = KFD_SVM_DEFAULT_FLAGS,
		.granularity = KFD_SVM_GRANULARITY,
	};
	struct kfd_svm_range *range;
	unsigned int i;

	for (i = 0; p->xnack && i < p->nr_pdds; i++)
		if (kfd_svm_supported(p->pdds[i]))
			__set_bit(i, attrs.access);
	range = kfd_range_new(start, last, &attrs);
	if (!range)
		return -ENOMEM;
	list_add_tail(&range->node, next ? &next->node : &p->svm_ranges);
	return 0;
}

/* ---- attributes ---- */

static struct kfd_pdd *kfd_svm_gpu(struct kfd_process *p, u32 user_gpu_id)
{
	struct kfd_pdd *pdd = kfd_pdd_by_user_id(p, user_gpu_id);

	return pdd && kfd_svm_supported(pdd) ? pdd : NULL;
}

static int kfd_svm_check_attr(struct kfd_process *p, const struct kfd_ioctl_svm_attribute *attr)
{
	bool is_gpu = true;

	switch (attr->type) {
	case KFD_IOCTL_SVM_ATTR_PREFERRED_LOC:
		is_gpu = attr->value != KFD_IOCTL_SVM_LOCATION_SYSMEM && attr->value != KFD_SVM_UNDEFINED;
		break;
	case KFD_IOCTL_SVM_ATTR_PREFETCH_LOC:
		is_gpu = attr->value != KFD_IOCTL_SVM_LOCATION_SYSMEM;
		break;
	case KFD_IOCTL_SVM_ATTR_ACCESS:
	case KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE:
	case KFD_IOCTL_SVM_ATTR_NO_ACCESS:
		break;
	case KFD_IOCTL_SVM_ATTR_SET_FLAGS:
	case KFD_IOCTL_SVM_ATTR_CLR_FLAGS:
	case KFD_IOCTL_SVM_ATTR_GRANULARITY:
		return 0;
	default:
		return -EINVAL;
	}
	return is_gpu && !kfd_svm_gpu(p, attr->value) ? -EINVAL : 0;
}

static void kfd_svm_apply_access(struct kfd_process *p, struct kfd_svm_attrs *attrs, u32 type, u32 gpu_id)
{
	unsigned int index = kfd_svm_gpu(p, gpu_id)->index;

	__clear_bit(index, attrs->access);
	__clear_bit(index, attrs->in_place);
	if (type == KFD_IOCTL_SVM_ATTR_ACCESS)
		__set_bit(index, attrs->access);
	else if (type == KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE)
		__set_bit(index, attrs->in_place);
}

/* @new was checked. */
static void kfd_svm_apply(struct kfd_process *p, struct kfd_svm_attrs *attrs, const struct kfd_ioctl_svm_attribute *new,
			  u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		switch (new[i].type) {
		case KFD_IOCTL_SVM_ATTR_PREFERRED_LOC:
			attrs->preferred = new[i].value;
			break;
		case KFD_IOCTL_SVM_ATTR_PREFETCH_LOC:
			attrs->prefetch = new[i].value;
			break;
		case KFD_IOCTL_SVM_ATTR_SET_FLAGS:
			attrs->flags |= new[i].value;
			break;
		case KFD_IOCTL_SVM_ATTR_CLR_FLAGS:
			attrs->flags &= ~new[i].value;
			break;
		case KFD_IOCTL_SVM_ATTR_GRANULARITY:
			attrs->granularity = min_t(u32, new[i].value, 0x3f);
			break;
		default:
			kfd_svm_apply_access(p, attrs, new[i].type, new[i].value);
		}
	}
}

/* ---- setting ---- */

/* Cuts the range at the ends of [start, last], if the new attributes change it, and applies them. */
static int kfd_svm_set_range(struct kfd_process *p, struct kfd_svm_range *range, u64 start, u64 last,
			     const struct kfd_ioctl_svm_attribute *new, u32 nr)
{
	struct kfd_svm_attrs attrs = range->attrs;
	int ret;

	kfd_svm_apply(p, &attrs, new, nr);
	if (!memcmp(&attrs, &range->attrs, sizeof(attrs)))
		return 0;
	if (range->last > last) {
		ret = kfd_range_split(range, last + 1);
		if (ret)
			return ret;
	}
	if (range->start < start) {
		ret = kfd_range_split(range, start);
		if (ret)
			return ret;
		range = list_next_entry(range, node);
	}
	range->attrs = attrs;
	return 0;
}

static int kfd_svm_set_locked(struct kfd_process *p, u64 start, u64 last, const struct kfd_ioctl_svm_attribute *new,
			      u32 nr)
{
	struct kfd_svm_range *range;
	u64 at = start, end;
	int ret;

	while (at <= last) {
		range = kfd_range_from(p, at);
		if (!range || range->start > at) {
			end = range ? min(last, range->start - 1) : last;
			ret = kfd_range_insert(p, at, end, range);
			if (ret)
				return ret;
			continue; /* it is found now */
		}
		end = range->last;
		ret = kfd_svm_set_range(p, range, start, last, new, nr);
		if (ret)
			return ret;
		at = end + 1;
	}
	return 0;
}

/* Every page belongs to ordinary memory. */
static int kfd_svm_check_vmas(struct mm_struct *mm, u64 start, u64 last)
{
	unsigned long at = start << PAGE_SHIFT, end = (last + 1) << PAGE_SHIFT;
	int ret = 0;

	mmap_read_lock(mm);
	while (!ret && at < end) {
		struct vm_area_struct *vma = find_vma(mm, at);

		if (!vma || vma->vm_start > at || (vma->vm_flags & (VM_IO | VM_PFNMAP | VM_MIXEDMAP)))
			ret = -EFAULT;
		else
			at = vma->vm_end;
	}
	mmap_read_unlock(mm);
	return ret;
}

static bool kfd_overlap(u64 a, u64 a_size, u64 b, u64 b_size)
{
	return a < b + b_size && b < a + a_size;
}

/* Under kfd_process.lock: no buffer is mapped there, none has its user memory there. */
static int kfd_svm_check_bos(struct kfd_process *p, u64 start, u64 last)
{
	u64 va = start << PAGE_SHIFT, size = (last - start + 1) << PAGE_SHIFT;
	struct kfd_bo *bo;
	unsigned int i;
	int nr;

	for (i = 0; i < p->nr_pdds; i++) {
		if (p->pdds[i]->vm && sim_vm_overlaps(p->pdds[i]->vm, va, size))
			return -EADDRINUSE;
		idr_for_each_entry (&p->pdds[i]->bos, bo, nr) {
			if (bo->user_addr && kfd_overlap(va, size, bo->user_addr, bo->size))
				return -EADDRINUSE;
		}
	}
	return 0;
}

static bool kfd_process_has_vm(const struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->nr_pdds; i++)
		if (p->pdds[i]->vm)
			return true;
	return false;
}

int kfd_svm_set(struct kfd_process *p, struct mm_struct *mm, u64 start, u64 last,
		const struct kfd_ioctl_svm_attribute *new, u32 nr)
{
	int ret;
	u32 i;

	for (i = 0; i < nr; i++) {
		ret = kfd_svm_check_attr(p, &new[i]);
		if (ret)
			return ret;
	}
	if (!kfd_process_has_vm(p))
		return -EINVAL;
	ret = kfd_svm_check_vmas(mm, start, last);
	if (ret)
		return ret;
	ret = kfd_svm_check_bos(p, start, last);
	if (ret)
		return ret;
	spin_lock(&p->svm_lock);
	ret = kfd_svm_set_locked(p, start, last, new, nr);
	spin_unlock(&p->svm_lock);
	return ret;
}

/* ---- getting ---- */

/* What is true for all pages of a stretch. */
struct kfd_svm_common {
	struct kfd_svm_attrs attrs;
	u32 flags_or;
	bool any;
};

static u32 kfd_same_or_undefined(bool first, u32 so_far, u32 value)
{
	return first || so_far == value ? value : KFD_SVM_UNDEFINED;
}

static void kfd_svm_intersect(struct kfd_svm_common *common, const struct kfd_svm_attrs *attrs)
{
	struct kfd_svm_attrs *all = &common->attrs;
	bool first = !common->any;

	if (first) {
		*all = *attrs;
		common->flags_or = attrs->flags;
		common->any = true;
		return;
	}
	all->preferred = kfd_same_or_undefined(first, all->preferred, attrs->preferred);
	all->prefetch = kfd_same_or_undefined(first, all->prefetch, attrs->prefetch);
	all->flags &= attrs->flags;
	common->flags_or |= attrs->flags;
	all->granularity = min(all->granularity, attrs->granularity);
	bitmap_and(all->access, all->access, attrs->access, SIM_MAX_GPUS);
	bitmap_and(all->in_place, all->in_place, attrs->in_place, SIM_MAX_GPUS);
}

static void kfd_svm_collect(struct kfd_process *p, u64 start, u64 last, struct kfd_svm_common *common)
{
	struct kfd_svm_range *range;
	unsigned int i;

	spin_lock(&p->svm_lock);
	for (range = kfd_range_from(p, start); range && range->start <= last; range = kfd_range_next(p, range))
		kfd_svm_intersect(common, &range->attrs);
	spin_unlock(&p->svm_lock);
	if (common->any)
		return;
	common->attrs.preferred = KFD_SVM_UNDEFINED;
	common->attrs.prefetch = KFD_SVM_UNDEFINED;
	common->attrs.flags = common->flags_or = KFD_SVM_DEFAULT_FLAGS;
	common->attrs.granularity = KFD_SVM_GRANULARITY;
	for (i = 0; p->xnack && i < p->nr_pdds; i++)
		__set_bit(i, common->attrs.access);
}

static int kfd_svm_report_access(struct kfd_process *p, const struct kfd_svm_attrs *attrs,
				 struct kfd_ioctl_svm_attribute *attr)
{
	struct kfd_pdd *pdd = kfd_pdd_by_user_id(p, attr->value);

	if (!pdd)
		return -EINVAL;
	if (test_bit(pdd->index, attrs->access))
		attr->type = KFD_IOCTL_SVM_ATTR_ACCESS;
	else if (test_bit(pdd->index, attrs->in_place))
		attr->type = KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE;
	else
		attr->type = KFD_IOCTL_SVM_ATTR_NO_ACCESS;
	return 0;
}

static int kfd_svm_report(struct kfd_process *p, const struct kfd_svm_common *common,
			  struct kfd_ioctl_svm_attribute *attr)
{
	switch (attr->type) {
	case KFD_IOCTL_SVM_ATTR_PREFERRED_LOC:
		attr->value = common->attrs.preferred;
		return 0;
	case KFD_IOCTL_SVM_ATTR_PREFETCH_LOC:
		attr->value = common->attrs.prefetch;
		return 0;
	case KFD_IOCTL_SVM_ATTR_ACCESS:
		return kfd_svm_report_access(p, &common->attrs, attr);
	case KFD_IOCTL_SVM_ATTR_SET_FLAGS:
		attr->value = common->attrs.flags;
		return 0;
	case KFD_IOCTL_SVM_ATTR_CLR_FLAGS:
		attr->value = ~common->flags_or;
		return 0;
	case KFD_IOCTL_SVM_ATTR_GRANULARITY:
		attr->value = common->attrs.granularity;
		return 0;
	default:
		return -EINVAL;
	}
}

static int kfd_svm_check_query(const struct kfd_ioctl_svm_attribute *attr)
{
	bool bad = attr->type == KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE || attr->type == KFD_IOCTL_SVM_ATTR_NO_ACCESS ||
		   attr->type > KFD_IOCTL_SVM_ATTR_GRANULARITY;

	return bad ? -EINVAL : 0;
}

int kfd_svm_get(struct kfd_process *p, u64 start, u64 last, struct kfd_ioctl_svm_attribute *attrs, u32 nr)
{
	struct kfd_svm_common common = {};
	int ret = 0;
	u32 i;

	for (i = 0; !ret && i < nr; i++)
		ret = kfd_svm_check_query(&attrs[i]);
	if (ret)
		return ret;
	kfd_svm_collect(p, start, last, &common);
	for (i = 0; !ret && i < nr; i++)
		ret = kfd_svm_report(p, &common, &attrs[i]);
	return ret;
}

/* ---- the ioctl ---- */

int kfd_ioctl_svm_validate(const void *data, size_t size)
{
	const struct kfd_ioctl_svm_args *args = data;

	return size < struct_size(args, attrs, args->nattr) ? -EINVAL : 0;
}

int kfd_ioctl_svm(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_svm_args *args = data;
	u64 start = args->start_addr >> PAGE_SHIFT, last = start + (args->size >> PAGE_SHIFT) - 1;
	int ret;

	if (p->primary)
		return -EOPNOTSUPP;
	if (!kfd_process_has_svm(p))
		return -EPERM;
	if ((args->start_addr | args->size) & ~PAGE_MASK || !args->start_addr || !args->size)
		return -EINVAL;
	if (args->op != KFD_IOCTL_SVM_OP_SET_ATTR && args->op != KFD_IOCTL_SVM_OP_GET_ATTR)
		return -EINVAL;
	if (last < start || last >= KFD_VA_PAGES)
		return -EFAULT;
	mutex_lock(&p->lock);
	if (args->op == KFD_IOCTL_SVM_OP_SET_ATTR) {
		ret = kfd_svm_set(p, current->mm, start, last, args->attrs, args->nattr);
	} else {
		ret = kfd_svm_check_vmas(current->mm, start, last);
		if (!ret)
			ret = kfd_svm_get(p, start, last, args->attrs, args->nattr);
	}
	mutex_unlock(&p->lock);
	return ret;
}

/* ---- used by the rest ---- */

void kfd_svm_init(struct kfd_process *p)
{
	spin_lock_init(&p->svm_lock);
	INIT_LIST_HEAD(&p->svm_ranges);
	INIT_LIST_HEAD(&p->svm_restored);
}

void kfd_svm_free(struct kfd_process *p)
{
	struct kfd_svm_range *range, *next;

	list_for_each_entry_safe (range, next, &p->svm_ranges, node)
		kfd_range_free(range);
	kfd_svm_forget_restored(p);
}

/* Takes [start, last] out of one range. Returns false when memory for the second part is missing: it is lost, too. */
static bool kfd_range_trim(struct kfd_svm_range *range, u64 start, u64 last)
{
	bool split_ok = true;

	if (range->start < start && range->last > last)
		split_ok = !kfd_range_split(range, last + 1);
	if (range->start < start)
		range->last = min(range->last, start - 1);
	else if (range->last > last)
		range->start = last + 1;
	else
		kfd_range_free(range);
	return split_ok;
}

void kfd_svm_unmapped(struct kfd_process *p, unsigned long start, unsigned long end)
{
	u64 first = start >> PAGE_SHIFT, last = ((u64)end - 1) >> PAGE_SHIFT;
	struct kfd_svm_range *range, *next;
	bool ok = true;

	if (list_empty_careful(&p->svm_ranges))
		return;
	spin_lock(&p->svm_lock);
	for (range = kfd_range_from(p, first); range && range->start <= last; range = next) {
		next = kfd_range_next(p, range);
		ok &= kfd_range_trim(range, first, last);
	}
	spin_unlock(&p->svm_lock);
	if (!ok)
		pr_warn("kfdsim: process %d: no memory to split an SVM range at %#lx; its end is no SVM range any "
			"more\n",
			p->lead_thread->pid, end);
}

bool kfd_svm_overlaps(struct kfd_process *p, u64 va, u64 size)
{
	struct kfd_svm_range *range;
	bool hit;

	spin_lock(&p->svm_lock);
	range = kfd_range_from(p, va >> PAGE_SHIFT);
	hit = range && range->start <= (va + size - 1) >> PAGE_SHIFT;
	spin_unlock(&p->svm_lock);
	return hit;
}

static bool kfd_range_allows(const struct kfd_svm_range *range, const struct kfd_pdd *pdd)
{
	return test_bit(pdd->index, range->attrs.access) || test_bit(pdd->index, range->attrs.in_place);
}

bool kfd_svm_covers(struct kfd_pdd *pdd, u64 va, u64 size)
{
	u64 at = va >> PAGE_SHIFT, last = (va + size - 1) >> PAGE_SHIFT;
	struct kfd_process *p = pdd->process;
	struct kfd_svm_range *range;

	spin_lock(&p->svm_lock);
	for (range = kfd_range_from(p, at); range && at <= last; range = kfd_range_next(p, range)) {
		if (range->start > at || !kfd_range_allows(range, pdd) || !(range->attrs.flags & KFD_SVM_ALWAYS_MAPPED))
			break;
		at = range->last + 1;
	}
	spin_unlock(&p->svm_lock);
	return size && at > last;
}

/* With XNACK a GPU may fault in whatever memory the process has, registered or not. */
struct mm_struct *kfd_svm_lookup(void *ctx, u64 va, u64 *avail, bool write)
{
	struct kfd_pdd *pdd = ctx;
	struct kfd_process *p = pdd->process;
	u64 page = va >> PAGE_SHIFT, end = 0;
	struct kfd_svm_range *range;

	spin_lock(&p->svm_lock);
	range = kfd_range_from(p, page);
	if (range && range->start <= page) {
		if (kfd_range_allows(range, pdd) && !(write && (range->attrs.flags & KFD_IOCTL_SVM_FLAG_GPU_RO)))
			end = range->last + 1;
	} else if (p->xnack && page < KFD_VA_PAGES) {
		end = range ? range->start : KFD_VA_PAGES;
	}
	spin_unlock(&p->svm_lock);
	if (!end)
		return NULL;
	*avail = (end << PAGE_SHIFT) - va;
	mmgrab(p->mm);
	return p->mm;
}

unsigned int kfd_svm_count(struct kfd_process *p)
{
	struct kfd_svm_range *range;
	unsigned int n = 0;

	spin_lock(&p->svm_lock);
	list_for_each_entry (range, &p->svm_ranges, node)
		n++;
	spin_unlock(&p->svm_lock);
	return n;
}

int kfd_svm_nth(struct kfd_process *p, unsigned int n, u64 *ret_start, u64 *ret_last)
{
	struct kfd_svm_range *range;
	int ret = -ENOENT;

	spin_lock(&p->svm_lock);
	list_for_each_entry (range, &p->svm_ranges, node) {
		if (n--)
			continue;
		*ret_start = range->start;
		*ret_last = range->last;
		ret = 0;
		break;
	}
	spin_unlock(&p->svm_lock);
	return ret;
}
