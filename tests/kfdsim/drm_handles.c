// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of GEM handles of an open file: who may have a handle, what goes
 * away with the last one, listing all of them and changing one's number.
 */
#include <linux/dma-buf.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm_prime.h>
#include <drm/drm_vma_manager.h>

#include "compat.h"
#include "drm.h"

int sim_gem_open(struct drm_gem_object *obj, struct drm_file *file)
{
	struct sim_drm_file *f = to_sim_drm_file(file);
	unsigned long key = (unsigned long)obj, n;
	struct sim_bo *bo = to_sim_bo(obj);
	void *entry;

	if (bo->kind == SIM_BO_USERPTR && bo->mm != current->mm)
		return -EPERM;
	if ((bo->create_flags & AMDGPU_GEM_CREATE_VM_ALWAYS_VALID) && bo->vm != f->vm)
		return -EPERM;
	/* The KFD maps imports at once. */
	if (f->vm->compute && sim_bo_is_refused_import(bo))
		return -EINVAL;
	mutex_lock(&f->lock);
	entry = xa_load(&f->handles, key);
	n = entry ? xa_to_value(entry) : 0;
	entry = xa_store(&f->handles, key, xa_mk_value(n + 1), GFP_KERNEL);
	mutex_unlock(&f->lock);
	return xa_err(entry);
}

/* Mappings in the GPU's address space live as long as the file has a handle of the BO. */
void sim_gem_close(struct drm_gem_object *obj, struct drm_file *file)
{
	struct sim_drm_file *f = to_sim_drm_file(file);
	unsigned long key = (unsigned long)obj, n;

	mutex_lock(&f->lock);
	n = xa_to_value(xa_load(&f->handles, key)) - 1;
	if (n)
		xa_store(&f->handles, key, xa_mk_value(n), GFP_KERNEL); /* in place: needs no memory */
	else
		xa_erase(&f->handles, key);
	mutex_unlock(&f->lock);
	if (!n)
		sim_vm_unmap_gem(f->vm, to_sim_bo(obj));
}

/* ---- GEM_LIST_HANDLES ---- */

static unsigned int count_handles(struct drm_file *file)
{
	struct drm_gem_object *obj;
	unsigned int n = 0;
	int id;

	spin_lock(&file->table_lock);
	idr_for_each_entry(&file->object_idr, obj, id)
		n++;
	spin_unlock(&file->table_lock);
	return n;
}

static void describe_handle(struct sim_gem_list_handles_entry *entry, u32 handle, const struct sim_bo *bo)
{
	entry->gem_handle = handle;
	entry->flags = bo->base.import_attach ? SIM_GEM_LIST_HANDLES_IS_IMPORT : 0;
	entry->size = bo->base.size;
	entry->preferred_domains = bo->preferred_domains;
	entry->alloc_flags = sim_gem_flags(bo) & sim_gem_settable_flags();
	entry->alignment = bo->alignment;
	if (sim_machine.desc.kernel.gem_alignment_in_pages)
		entry->alignment >>= PAGE_SHIFT;
}

/* The number of handles; -EAGAIN when there are more than @max by now. */
static int list_handles(struct drm_file *file, struct sim_gem_list_handles_entry *entries, unsigned int max)
{
	struct drm_gem_object *obj;
	unsigned int n = 0;
	int id, ret = 0;

	spin_lock(&file->table_lock);
	idr_for_each_entry(&file->object_idr, obj, id) {
		if (n == max) {
			ret = -EAGAIN;
			break;
		}
		describe_handle(&entries[n++], id, to_sim_bo(obj));
	}
	spin_unlock(&file->table_lock);
	return ret ? ret : n;
}

SIM_IOCTL(sim_ioctl_gem_list_handles)
{
	struct sim_gem_list_handles_entry *entries;
	struct sim_gem_list_handles *args = data;
	unsigned int have;
	int n;

	if (!sim_machine.desc.kernel.gem_list_handles)
		return -EINVAL;
	have = count_handles(file);
	if (args->num_entries < have || !have) {
		args->num_entries = have;
		return 0;
	}
	entries = kvcalloc(have, sizeof(*entries), GFP_KERNEL);
	if (!entries)
		return -ENOMEM;
	n = list_handles(file, entries, have);
	if (n >= 0 && copy_to_user(u64_to_user_ptr(args->entries), entries, (size_t)n * sizeof(*entries)))
		n = -EFAULT;
	kvfree(entries);
	if (n < 0)
		return n;
	args->num_entries = n;
	return 0;
}

/* ---- GEM_CHANGE_HANDLE ---- */

/* Gives @obj, which has a handle, a second one with the number @handle. */
static int handle_add(struct drm_file *file, struct drm_gem_object *obj, u32 handle)
{
	int ret;

	ret = drm_vma_node_allow(&obj->vma_node, file);
	if (ret)
		return ret;
	ret = sim_gem_open(obj, file);
	if (ret) {
		drm_vma_node_revoke(&obj->vma_node, file);
		return ret;
	}
	mutex_lock(&obj->dev->object_name_lock);
	obj->handle_count++;
	mutex_unlock(&obj->dev->object_name_lock);
	spin_lock(&file->table_lock);
	idr_replace(&file->object_idr, obj, handle);
	spin_unlock(&file->table_lock);
	return 0;
}

static int handle_reserve(struct drm_file *file, u32 handle)
{
	int ret;

	idr_preload(GFP_KERNEL);
	spin_lock(&file->table_lock);
	ret = idr_alloc(&file->object_idr, NULL, handle, handle + 1, GFP_NOWAIT);
	spin_unlock(&file->table_lock);
	idr_preload_end();
	return ret < 0 ? ret : 0;
}

static void handle_release(struct drm_file *file, u32 handle)
{
	spin_lock(&file->table_lock);
	idr_remove(&file->object_idr, handle);
	spin_unlock(&file->table_lock);
}

/* The file's cache of imports learns the new number when the core is asked for the dma-buf again. */
static int recache(struct drm_file *file, struct drm_gem_object *obj, u32 handle)
{
	struct dma_buf *buf;

	if (!READ_ONCE(obj->dma_buf) && !obj->import_attach)
		return 0;
	buf = sim_prime_handle_to_dmabuf(obj->dev, file, handle, DRM_RDWR);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	dma_buf_put(buf);
	return 0;
}

SIM_IOCTL(sim_ioctl_gem_change_handle)
{
	struct sim_gem_change_handle *args = data;
	struct drm_gem_object *obj;
	int ret;

	if (args->new_handle > INT_MAX)
		return -EINVAL;
	if (args->new_handle == args->handle)
		return 0;
	obj = drm_gem_object_lookup(file, args->handle);
	if (!obj)
		return -ENOENT;
	ret = handle_reserve(file, args->new_handle);
	if (ret) {
		drm_gem_object_put(obj);
		return ret;
	}
	ret = handle_add(file, obj, args->new_handle);
	if (ret) {
		handle_release(file, args->new_handle);
	} else if (drm_gem_handle_delete(file, args->handle)) {
		/* Somebody else closed or changed it meanwhile. */
		drm_gem_handle_delete(file, args->new_handle);
		ret = -ENOENT;
	} else {
		ret = recache(file, obj, args->new_handle);
	}
	drm_gem_object_put(obj);
	return ret;
}
