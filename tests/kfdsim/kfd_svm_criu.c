// SPDX-License-Identifier: GPL-2.0-only
/*
 * SVM ranges in CRIU's private data: saved as queries of each range's
 * attributes, kept aside by RESTORE, and set by RESUME, when the memory that
 * they lie in is there again. All under kfd_process.lock.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kfd.h"

/* A range as CRIU RESTORE brought it. */
struct kfd_svm_saved {
	struct list_head node;
	struct kfd_svm_priv *priv;
};

int kfd_svm_save(struct kfd_process *p, unsigned int n, struct kfd_svm_priv *priv)
{
	static const u32 types[KFD_SVM_COMMON_ATTRS] = {
		KFD_IOCTL_SVM_ATTR_PREFERRED_LOC,
		KFD_IOCTL_SVM_ATTR_PREFETCH_LOC,
		KFD_IOCTL_SVM_ATTR_SET_FLAGS,
		KFD_IOCTL_SVM_ATTR_GRANULARITY,
	};
	unsigned int i;
	u64 last;
	int ret;

	ret = kfd_svm_nth(p, n, &priv->start, &last);
	if (ret)
		return ret;
	priv->object_type = 2;
	priv->pages = last - priv->start + 1;
	for (i = 0; i < KFD_SVM_COMMON_ATTRS; i++)
		priv->attrs[i].type = types[i];
	for (i = 0; i < p->nr_pdds; i++) {
		priv->attrs[KFD_SVM_COMMON_ATTRS + i].type = KFD_IOCTL_SVM_ATTR_ACCESS;
		priv->attrs[KFD_SVM_COMMON_ATTRS + i].value = p->pdds[i]->user_gpu_id;
	}
	return kfd_svm_get(p, priv->start, last, priv->attrs, KFD_SVM_COMMON_ATTRS + p->nr_pdds);
}

int kfd_svm_restore(struct kfd_process *p, const struct kfd_svm_priv *priv)
{
	struct kfd_svm_saved *saved = kzalloc(sizeof(*saved), GFP_KERNEL);

	if (!saved)
		return -ENOMEM;
	saved->priv = kmemdup(priv, kfd_svm_priv_size(p), GFP_KERNEL);
	if (!saved->priv) {
		kfree(saved);
		return -ENOMEM;
	}
	list_add_tail(&saved->node, &p->svm_restored);
	return 0;
}

/* The saved flags replace whatever is set by default; "no prefetch" cannot be set, so it becomes an empty SET_FLAGS. */
/* A range that a GPU has access to is mapped at once unless GPUs can fault, which needs all of its pages. */
static int kfd_svm_take_pages(struct kfd_process *p, const struct kfd_svm_priv *priv,
			      const struct kfd_ioctl_svm_attribute *attrs, unsigned int nr)
{
	u64 addr = priv->start << PAGE_SHIFT, end = addr + (priv->pages << PAGE_SHIFT), next;
	bool accessed = false;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < nr; i++)
		accessed |= attrs[i].type == KFD_IOCTL_SVM_ATTR_ACCESS ||
			    attrs[i].type == KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE;
	if (!accessed || p->xnack)
		return 0;
	for (; !ret && addr < end; addr = next) {
		struct vm_area_struct *vma;
		unsigned long flags = 0;

		mmap_read_lock(p->mm);
		vma = vma_lookup(p->mm, addr);
		next = vma ? min_t(u64, vma->vm_end, end) : end;
		if (vma)
			flags = vma->vm_flags;
		mmap_read_unlock(p->mm);
		if (!vma)
			ret = -EFAULT;
		else if (flags & VM_READ)
			ret = sim_user_pages_take(p->mm, addr, next - addr, flags & VM_WRITE);
	}
	return ret;
}

static int kfd_svm_resume_one(struct kfd_process *p, struct kfd_svm_priv *priv)
{
	unsigned int i, nr = KFD_SVM_COMMON_ATTRS + p->nr_pdds;
	struct kfd_ioctl_svm_attribute *attrs;
	u32 flags = ~0U;
	int ret;

	if (!priv->pages || priv->start >= KFD_VA_PAGES || priv->pages > KFD_VA_PAGES - priv->start)
		return -EFAULT;
	attrs = kcalloc(nr + 1, sizeof(*attrs), GFP_KERNEL);
	if (!attrs)
		return -ENOMEM;
	memcpy(attrs, priv->attrs, nr * sizeof(*attrs));
	for (i = 0; i < nr; i++) {
		if (attrs[i].type == KFD_IOCTL_SVM_ATTR_SET_FLAGS) {
			flags = attrs[i].value;
		} else if (attrs[i].type == KFD_IOCTL_SVM_ATTR_PREFETCH_LOC && attrs[i].value == KFD_SVM_UNDEFINED) {
			attrs[i].type = KFD_IOCTL_SVM_ATTR_SET_FLAGS;
			attrs[i].value = 0;
		}
	}
	attrs[nr].type = KFD_IOCTL_SVM_ATTR_CLR_FLAGS;
	attrs[nr].value = ~flags;
	ret = kfd_svm_set(p, p->mm, priv->start, priv->start + priv->pages - 1, attrs, nr + 1);
	if (!ret)
		ret = kfd_svm_take_pages(p, priv, attrs, nr);
	kfree(attrs);
	return ret;
}

void kfd_svm_forget_restored(struct kfd_process *p)
{
	struct kfd_svm_saved *saved, *next;

	list_for_each_entry_safe (saved, next, &p->svm_restored, node) {
		list_del(&saved->node);
		kfree(saved->priv);
		kfree(saved);
	}
}

int kfd_svm_resume(struct kfd_process *p)
{
	struct kfd_svm_saved *saved;
	int ret = 0;

	if (list_empty(&p->svm_restored))
		return 0;
	if (!mmget_not_zero(p->mm))
		return -ESRCH;
	list_for_each_entry (saved, &p->svm_restored, node) {
		ret = kfd_svm_resume_one(p, saved->priv);
		if (ret)
			break;
	}
	mmput_async(p->mm);
	kfd_svm_forget_restored(p);
	return ret;
}
