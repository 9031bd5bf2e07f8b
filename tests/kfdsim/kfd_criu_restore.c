// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRIU RESTORE: makes the calling process the owner of a saved state, record by
 * record. Nothing is rolled back: a process that it failed on is to be thrown
 * away. The queues stand still until RESUME.
 */
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kfd_criu.h"

static int kfd_restore_process(struct kfd_process *p, struct kfd_priv_cursor *cur)
{
	struct kfd_process_priv priv;
	int ret = kfd_priv_get(cur, &priv, sizeof(priv));

	if (ret)
		return ret;
	if (priv.version != KFD_CRIU_VERSION)
		return -EINVAL;
	if (priv.xnack_mode && !kfd_process_has_xnack(p))
		return -EPERM;
	p->xnack = !!priv.xnack_mode;
	return 0;
}

static int kfd_restore_device(struct kfd_process *p, const struct kfd_criu_device_bucket *bucket)
{
	struct sim_gpu *gpu = sim_gpu_by_id(bucket->actual_gpu_id);
	struct kfd_pdd *pdd = gpu ? kfd_pdd_by_gpu(p, gpu) : NULL;
	struct file *drm_file;
	int ret;

	if (!bucket->user_gpu_id || !pdd || pdd->drm_file)
		return -EINVAL;
	drm_file = fget(bucket->drm_fd);
	if (!drm_file)
		return -EINVAL;
	ret = kfd_pdd_acquire_vm(pdd, drm_file);
	fput(drm_file);
	if (ret)
		return -EINVAL;
	WRITE_ONCE(pdd->user_gpu_id, bucket->user_gpu_id);
	return kfd_doorbells_alloc(pdd);
}

static int kfd_restore_devices(struct kfd_process *p, struct kfd_ioctl_criu_args *args, struct kfd_priv_cursor *cur)
{
	u8 __user *user = u64_to_user_ptr(args->devices);
	struct kfd_criu_device_bucket bucket;
	struct kfd_device_priv priv;
	unsigned int i;
	int ret;

	if (args->num_devices != p->nr_pdds)
		return -EINVAL;
	for (i = 0; i < p->nr_pdds; i++) {
		ret = kfd_priv_get(cur, &priv, sizeof(priv));
		if (ret)
			return ret;
		if (copy_from_user(&bucket, user + i * sizeof(bucket), sizeof(bucket)))
			return -EFAULT;
		ret = kfd_restore_device(p, &bucket);
		if (ret)
			return ret;
	}
	return 0;
}

static int kfd_restore_bo_check(const struct kfd_criu_bo_bucket *bucket, const struct kfd_bo_priv *priv)
{
	if (priv->idr_handle > INT_MAX)
		return -EINVAL;
	if (bucket->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL)
		return bucket->size == KFD_DOORBELL_SLICE ? 0 : -EINVAL;
	if (bucket->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP)
		return bucket->size == PAGE_SIZE ? 0 : -EINVAL;
	return 0;
}

static int kfd_restore_mappings(struct kfd_process *p, struct kfd_bo *bo, const struct kfd_bo_priv *priv)
{
	unsigned int i, max = min(p->nr_pdds, (unsigned int)KFD_CRIU_MAX_MAPPED);
	int ret;

	for (i = 0; i < max && priv->mapped_gpuids[i]; i++) {
		struct kfd_pdd *peer = kfd_pdd_by_user_id(p, priv->mapped_gpuids[i]);

		if (!peer)
			return -EINVAL;
		if (!peer->vm)
			return -ENODEV;
		ret = kfd_bo_map(bo, peer);
		if (ret)
			return ret;
	}
	return 0;
}

static int kfd_restore_bo(struct kfd_process *p, struct kfd_criu_bo_bucket *bucket, const struct kfd_bo_priv *priv,
			  struct kfd_fds *fds)
{
	struct kfd_pdd *pdd = kfd_pdd_by_user_id(p, bucket->gpu_id);
	u32 flags = bucket->alloc_flags;
	struct kfd_bo *bo;
	int ret;

	if (!pdd)
		return -ENODEV;
	ret = kfd_restore_bo_check(bucket, priv);
	if (ret)
		return ret;
	ret = kfd_bo_alloc(pdd, bucket->addr, bucket->size, flags,
			   flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR ? priv->user_addr : 0, &priv->idr_handle, &bo);
	if (ret)
		return ret;
	if (flags & (KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP | KFD_MEM_SHAREABLE))
		bucket->restored_offset = kfd_criu_offset(bo);
	ret = kfd_restore_mappings(p, bo, priv);
	if (ret)
		return ret;
	return kfd_fds_add(fds, bo, &bucket->dmabuf_fd);
}

static int kfd_restore_each_bo(struct kfd_process *p, u32 n, struct kfd_criu_bo_bucket *buckets,
			       struct kfd_priv_cursor *cur, struct kfd_fds *fds)
{
	struct kfd_bo_priv *priv = kmalloc(sizeof(*priv), GFP_KERNEL);
	int ret = 0;
	u32 i;

	if (!priv)
		return -ENOMEM;
	for (i = 0; !ret && i < n; i++) {
		ret = kfd_priv_get(cur, priv, sizeof(*priv));
		if (!ret)
			ret = kfd_restore_bo(p, &buckets[i], priv, fds);
	}
	kfree(priv);
	return ret;
}

static int kfd_restore_bos(struct kfd_process *p, struct kfd_ioctl_criu_args *args, struct kfd_priv_cursor *cur)
{
	u8 __user *user = u64_to_user_ptr(args->bos);
	struct kfd_criu_bo_bucket *buckets;
	struct kfd_fds fds = {};
	u32 n = args->num_bos;
	int ret;

	if ((u64)n * sizeof(struct kfd_bo_priv) > cur->size - cur->at)
		return -EINVAL;
	p->notifications_blocked = true;
	buckets = kvcalloc(n, sizeof(*buckets), GFP_KERNEL | __GFP_NOWARN);
	ret = kfd_fds_init(&fds, n);
	if (!buckets)
		ret = -ENOMEM;
	if (!ret && copy_from_user(buckets, user, n * sizeof(*buckets)))
		ret = -EFAULT;
	if (!ret)
		ret = kfd_restore_each_bo(p, n, buckets, cur, &fds);
	if (!ret && copy_to_user(user, buckets, n * sizeof(*buckets)))
		ret = -EFAULT;
	kfd_fds_done(&fds, !ret);
	kvfree(buckets);
	return ret;
}

static void kfd_props_from_priv(const struct sim_gpu *gpu, const struct kfd_queue_priv *priv,
				struct kfd_queue_props *props)
{
	props->type = kfd_queue_type_of_criu(priv->type);
	props->format = priv->format;
	props->ring_va = priv->q_address;
	props->ring_size = priv->q_size;
	props->rptr_va = priv->read_ptr_addr;
	props->wptr_va = priv->write_ptr_addr;
	props->eop_va = priv->eop_ring_buffer_address;
	props->eop_size = priv->eop_ring_buffer_size;
	props->cwsr_va = priv->ctx_save_restore_area_address;
	props->cwsr_size = priv->ctx_save_restore_area_size;
	props->ctl_stack_size = priv->ctl_stack_size;
	if (props->type == KFD_QUEUE_COMPUTE && sim_machine.desc.kernel.save_all_xccs)
		props->ctl_stack_size /= kfd_num_xcc(gpu);
	props->percent = priv->q_percent;
	props->priority = priv->priority;
}

static int kfd_restore_queue_check(const struct sim_gpu *gpu, const struct kfd_queue_priv *priv)
{
	const struct sim_kernel *kernel = &sim_machine.desc.kernel;
	u32 type = kfd_queue_type_of_criu(priv->type);

	if (type >= KFD_QUEUE_TYPE_COUNT)
		return -EINVAL;
	if (kernel->check_mqd_size && priv->mqd_size != kfd_queue_mqd_size(gpu, type))
		return -EINVAL;
	/* Since 7.3. */
	if (kernel->mmap_user_id &&
	    priv->ctl_stack_size > sim_gpu_prop(gpu, SIM_PROP_ctl_stack_size) * kfd_num_xcc(gpu))
		return -EINVAL;
	return 0;
}

/* Micro engine schedulers want a buffer for the write pointer that nothing here can give. */
static int kfd_restore_queue_from(struct kfd_pdd *pdd, const struct kfd_queue_priv *priv, const void *payload)
{
	struct kfd_queue_restore restore = {
		.id = priv->q_id,
		.doorbell_id = priv->doorbell_id,
		.sdma_id = priv->sdma_id,
		.mqd_size = priv->mqd_size,
		.ctl_stack_size = priv->ctl_stack_size,
		.state = payload,
	};
	struct kfd_queue_props props = {};
	struct kfd_queue *q;
	int ret = 0;

	if (sim_gpu_prop(pdd->gpu, SIM_PROP_gfx_target_version) >= 110000) {
		if (sim_machine.desc.kernel.release == 612)
			sim_would_crash("RESTORE of a queue of a micro engine scheduler");
		return -EINVAL;
	}
	kfd_props_from_priv(pdd->gpu, priv, &props);
	if (sim_machine.desc.kernel.acquire_at_restore)
		ret = kfd_queue_check_buffers(pdd, &props);
	ret = ret ? ret : kfd_queue_create(pdd, &props, &restore, &q);
	if (ret)
		return ret;
	q->gws = priv->gws;
	return 0;
}

static int kfd_restore_queue(struct kfd_process *p, struct kfd_priv_cursor *cur)
{
	struct kfd_queue_priv priv;
	struct kfd_pdd *pdd;
	void *payload;
	u64 len;
	int ret;

	ret = kfd_priv_get(cur, &priv, sizeof(priv));
	if (ret)
		return ret;
	pdd = kfd_pdd_by_user_id(p, priv.gpu_id);
	if (!pdd)
		return -EINVAL;
	ret = kfd_restore_queue_check(pdd->gpu, &priv);
	if (ret)
		return ret;
	len = (u64)priv.mqd_size + priv.ctl_stack_size;
	if (len > cur->size - cur->at)
		return -EINVAL;
	payload = kvmalloc(len, GFP_KERNEL | __GFP_NOWARN);
	if (!payload)
		return -ENOMEM;
	ret = kfd_priv_get(cur, payload, len);
	if (!ret)
		ret = kfd_restore_queue_from(pdd, &priv, payload);
	kvfree(payload);
	return ret;
}

static int kfd_restore_event(struct kfd_process *p, struct kfd_priv_cursor *cur)
{
	struct kfd_event_priv priv;
	int ret = kfd_priv_get(cur, &priv, sizeof(priv));

	return ret ? ret : kfd_event_restore(p, &priv);
}

static int kfd_restore_svm(struct kfd_process *p, struct kfd_priv_cursor *cur)
{
	size_t size = kfd_svm_priv_size(p);
	struct kfd_svm_priv *priv = kmalloc(size, GFP_KERNEL);
	int ret;

	if (!priv)
		return -ENOMEM;
	ret = kfd_priv_get(cur, priv, size);
	if (!ret)
		ret = kfd_svm_restore(p, priv);
	kfree(priv);
	return ret;
}

static int kfd_restore_object(struct kfd_process *p, struct kfd_priv_cursor *cur)
{
	u32 type;
	int ret = kfd_priv_peek(cur, &type, sizeof(type));

	if (ret)
		return ret;
	switch (type) {
	case KFD_CRIU_QUEUE:
		return kfd_restore_queue(p, cur);
	case KFD_CRIU_EVENT:
		return kfd_restore_event(p, cur);
	case KFD_CRIU_SVM_RANGE:
		return kfd_restore_svm(p, cur);
	default:
		return -EINVAL;
	}
}

int kfd_criu_restore(struct kfd_process *p, struct kfd_ioctl_criu_args *args)
{
	struct kfd_priv_cursor cur = { .base = u64_to_user_ptr(args->priv_data), .size = args->priv_data_size };
	u32 i;
	int ret;

	kfd_process_evict_queues(p, KFD_QUEUE_EVICTION_CRIU_RESTORE);
	ret = kfd_restore_process(p, &cur);
	if (ret)
		return ret;
	ret = kfd_restore_devices(p, args, &cur);
	if (ret)
		return ret;
	ret = kfd_restore_bos(p, args, &cur);
	if (ret)
		return ret;
	for (i = 0; i < args->num_objects; i++) {
		ret = kfd_restore_object(p, &cur);
		if (ret)
			return ret;
	}
	return cur.at == cur.size ? 0 : -EINVAL;
}
