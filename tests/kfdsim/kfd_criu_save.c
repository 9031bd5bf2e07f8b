// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRIU CHECKPOINT: the state of a paused process, written record by record.
 * Buffers come last, for with them the caller gets dma-buf fds, after which
 * nothing may fail.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kfd_criu.h"

static int kfd_save_process(struct kfd_process *p, struct kfd_priv_cursor *cur)
{
	struct kfd_process_priv priv = { .version = KFD_CRIU_VERSION, .xnack_mode = !!p->xnack };

	return kfd_priv_put(cur, &priv, sizeof(priv));
}

static int kfd_save_devices(struct kfd_process *p, u8 __user *user, struct kfd_priv_cursor *cur)
{
	struct kfd_device_priv priv = {};
	unsigned int i;
	int ret;

	for (i = 0; i < p->nr_pdds; i++) {
		struct kfd_criu_device_bucket bucket = {
			.user_gpu_id = p->pdds[i]->user_gpu_id,
			.actual_gpu_id = p->pdds[i]->gpu->node->gpu_id,
		};

		if (copy_to_user(user + i * sizeof(bucket), &bucket, sizeof(bucket)))
			return -EFAULT;
		ret = kfd_priv_put(cur, &priv, sizeof(priv));
		if (ret)
			return ret;
	}
	return 0;
}

static void kfd_fill_queue_priv(const struct kfd_queue *q, struct kfd_queue_priv *priv)
{
	const struct kfd_queue_props *props = &q->props;

	priv->object_type = KFD_CRIU_QUEUE;
	priv->q_address = props->ring_va;
	priv->q_size = props->ring_size;
	priv->read_ptr_addr = props->rptr_va;
	priv->write_ptr_addr = props->wptr_va;
	priv->eop_ring_buffer_address = props->eop_va;
	priv->ctx_save_restore_area_address = props->cwsr_va;
	priv->gpu_id = q->pdd->user_gpu_id;
	priv->type = kfd_criu_queue_type(props->type);
	priv->format = props->format;
	priv->q_id = q->id;
	priv->priority = props->priority;
	priv->q_percent = props->percent;
	priv->doorbell_id = q->doorbell_id;
	priv->gws = q->gws;
	priv->sdma_id = q->sdma_id;
	priv->eop_ring_buffer_size = props->eop_size;
	priv->ctx_save_restore_area_size = props->cwsr_size;
	kfd_queue_payload(q, &priv->mqd_size, &priv->ctl_stack_size);
}

/* Of struct v9_mqd and v10_compute_mqd, as far as others than the driver read them: where preempted waves are. */
#define MQD_STACK_OFFSET_AT 696
#define MQD_STACK_SIZE_AT   700
#define MQD_WAVE_OFFSET_AT  704

static void kfd_save_offsets(const struct kfd_queue *q, u8 *mqd)
{
	u32 saved = kfd_ctl_stack_size(q), size = saved ? saved : sim_gpu_prop(q->pdd->gpu, SIM_PROP_ctl_stack_size);
	u32 waves = q->mqd.wave ? q->props.cwsr_size : size;

	BUILD_BUG_ON(sizeof(struct kfd_mqd) > MQD_STACK_OFFSET_AT);
	*(u32 *)(mqd + MQD_STACK_OFFSET_AT) = q->mqd.wave ? 0 : size;
	*(u32 *)(mqd + MQD_STACK_SIZE_AT) = size;
	*(u32 *)(mqd + MQD_WAVE_OFFSET_AT) = waves;
}

/* MQDs of all XCCs that are saved, then their control stacks. */
static void kfd_save_queue_state(struct kfd_queue *q, const struct kfd_queue_priv *priv, u8 *data)
{
	u32 size = kfd_queue_mqd_size(q->pdd->gpu, q->props.type), xcc;
	struct kfd_mqd mqd;

	kfd_engine_save(q, &mqd);
	for (xcc = 0; xcc < priv->mqd_size / size; xcc++) {
		mqd.xcc = xcc;
		memcpy(data + xcc * size, &mqd, sizeof(mqd));
		if (q->props.type == KFD_QUEUE_COMPUTE)
			kfd_save_offsets(q, data + xcc * size);
	}
	memcpy(data + priv->mqd_size, q->ctl_stack, priv->ctl_stack_size);
}

static int kfd_save_queue(struct kfd_queue *q, struct kfd_priv_cursor *cur)
{
	struct kfd_queue_priv priv = {};
	size_t len;
	void *data;
	int ret;

	if (sim_gpu_prop(q->pdd->gpu, SIM_PROP_gfx_target_version) >= 120000)
		return -EOPNOTSUPP;
	kfd_fill_queue_priv(q, &priv);
	ret = kfd_priv_put(cur, &priv, sizeof(priv));
	if (ret)
		return ret;
	len = (size_t)priv.mqd_size + priv.ctl_stack_size;
	data = kvzalloc(len, GFP_KERNEL);
	if (!data)
		return -ENOMEM;
	kfd_save_queue_state(q, &priv, data);
	ret = kfd_priv_put(cur, data, len);
	kvfree(data);
	return ret;
}

static int kfd_save_queues(struct kfd_process *p, struct kfd_priv_cursor *cur)
{
	struct kfd_queue *q;
	unsigned int i;
	int ret;

	for (i = 0; i < p->nr_pdds; i++) {
		list_for_each_entry (q, &p->queues, node) {
			if (q->pdd != p->pdds[i])
				continue;
			ret = kfd_save_queue(q, cur);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static int kfd_save_events(struct kfd_process *p, struct kfd_priv_cursor *cur)
{
	unsigned int n = kfd_events_count(p);
	struct kfd_event_priv *priv;
	int ret;

	if (!n)
		return 0;
	priv = kvcalloc(n, sizeof(*priv), GFP_KERNEL);
	if (!priv)
		return -ENOMEM;
	ret = kfd_events_save(p, priv, n) == n ? kfd_priv_put(cur, priv, n * sizeof(*priv)) : -EINVAL;
	kvfree(priv);
	return ret;
}

static int kfd_save_svm(struct kfd_process *p, struct kfd_priv_cursor *cur)
{
	size_t size = kfd_svm_priv_size(p);
	struct kfd_svm_priv *priv = kzalloc(size, GFP_KERNEL);
	unsigned int n;
	int ret = 0;

	if (!priv)
		return -ENOMEM;
	for (n = 0; !ret; n++) {
		ret = kfd_svm_save(p, n, priv);
		if (!ret)
			ret = kfd_priv_put(cur, priv, size);
	}
	kfree(priv);
	return ret == -ENOENT ? 0 : ret;
}

static int kfd_save_bo(struct kfd_bo *bo, struct kfd_criu_bo_bucket *bucket, struct kfd_bo_priv *priv,
		       struct kfd_fds *fds)
{
	struct kfd_process *p = bo->pdd->process;
	unsigned int i, n = 0;

	bucket->addr = bo->va;
	bucket->size = bo->size;
	bucket->offset = kfd_criu_offset(bo);
	bucket->gpu_id = bo->pdd->user_gpu_id;
	bucket->alloc_flags = bo->flags;
	priv->idr_handle = bo->nr;
	if (bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
		priv->user_addr = bo->user_addr;
	for_each_set_bit (i, bo->mapped, p->nr_pdds)
		if (n < KFD_CRIU_MAX_MAPPED)
			priv->mapped_gpuids[n++] = p->pdds[i]->user_gpu_id;
	return kfd_fds_add(fds, bo, &bucket->dmabuf_fd);
}

/* The kernel looks up mappings in the address space of each GPU, and oopses when one has none. */
static bool kfd_all_have_vm(const struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->nr_pdds; i++)
		if (!p->pdds[i]->vm)
			return false;
	return true;
}

static int kfd_save_each_bo(struct kfd_process *p, struct kfd_criu_bo_bucket *buckets, struct kfd_bo_priv *privs,
			    struct kfd_fds *fds)
{
	struct kfd_bo *bo;
	unsigned int i;
	u32 n = 0;
	int nr, ret;

	for (i = 0; i < p->nr_pdds; i++) {
		idr_for_each_entry (&p->pdds[i]->bos, bo, nr) {
			if (!kfd_bo_is_saved(bo))
				continue;
			ret = kfd_save_bo(bo, &buckets[n], &privs[n], fds);
			if (ret)
				return ret;
			n++;
		}
	}
	return 0;
}

/* Last of all: nothing may fail once the caller has the fds. */
static int kfd_save_bos(struct kfd_process *p, u32 n, u8 __user *user, struct kfd_priv_cursor *cur)
{
	struct kfd_criu_bo_bucket *buckets;
	struct kfd_bo_priv *privs;
	struct kfd_fds fds = {};
	int ret;

	if (n && !kfd_all_have_vm(p)) {
		sim_would_crash("CHECKPOINT with buffers while a GPU has no address space");
		return -EINVAL;
	}
	buckets = kvcalloc(n, sizeof(*buckets), GFP_KERNEL);
	privs = kvcalloc(n, sizeof(*privs), GFP_KERNEL);
	ret = kfd_fds_init(&fds, n);
	if (!buckets || !privs)
		ret = -ENOMEM;
	if (!ret)
		ret = kfd_save_each_bo(p, buckets, privs, &fds);
	if (!ret && copy_to_user(user, buckets, n * sizeof(*buckets)))
		ret = -EFAULT;
	if (!ret)
		ret = kfd_priv_put(cur, privs, n * sizeof(*privs));
	kfd_fds_done(&fds, !ret);
	kvfree(buckets);
	kvfree(privs);
	return ret;
}

int kfd_criu_save(struct kfd_process *p, struct kfd_ioctl_criu_args *args)
{
	struct kfd_priv_cursor cur = { .base = u64_to_user_ptr(args->priv_data), .size = args->priv_data_size };
	struct kfd_priv_cursor bos;
	int ret;

	ret = kfd_save_process(p, &cur);
	if (ret)
		return ret;
	ret = kfd_save_devices(p, u64_to_user_ptr(args->devices), &cur);
	if (ret)
		return ret;
	bos = cur;
	cur.at += (u64)args->num_bos * sizeof(struct kfd_bo_priv);
	ret = kfd_save_queues(p, &cur);
	if (ret)
		return ret;
	ret = kfd_save_events(p, &cur);
	if (ret)
		return ret;
	ret = kfd_save_svm(p, &cur);
	if (ret)
		return ret;
	if (cur.at != cur.size)
		return -EINVAL;
	return kfd_save_bos(p, args->num_bos, u64_to_user_ptr(args->bos), &bos);
}
