// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRIU_OP: pause a process, hand out its state, make another process that
 * state's owner, set it going. The private data is one run of records:
 * process, devices, BOs, then queues, events and SVM ranges. RESTORE does not
 * roll back: a process that it failed on is to be thrown away.
 */
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kfd.h"

#define KFD_CRIU_VERSION      1
#define KFD_CRIU_MAX_MAPPED   64
#define KFD_MEM_SHAREABLE     (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT)

enum kfd_criu_object {
	KFD_CRIU_QUEUE,
	KFD_CRIU_EVENT,
	KFD_CRIU_SVM_RANGE,
};

struct kfd_process_priv {
	u32 version;
	u32 xnack_mode;
};

struct kfd_device_priv {
	u64 reserved;
};

struct kfd_bo_priv {
	u64 user_addr;
	u32 idr_handle;
	u32 mapped_gpuids[KFD_CRIU_MAX_MAPPED]; /* user ids; 0 ends */
};

struct kfd_queue_priv {
	u32 object_type;
	u64 q_address, q_size;
	u64 read_ptr_addr, write_ptr_addr;
	u64 doorbell_off; /* unused */
	u64 eop_ring_buffer_address, ctx_save_restore_area_address;
	u32 gpu_id; /* user id */
	u32 type, format, q_id, priority, q_percent, doorbell_id, gws, sdma_id;
	u32 eop_ring_buffer_size, ctx_save_restore_area_size;
	u32 ctl_stack_size, mqd_size; /* of the bytes behind */
};

/* The private data in the caller's memory, and how far it was read or written. */
struct kfd_priv_cursor {
	u8 __user *base;
	u64 at;
	u64 size;
};

/* What the caller made room for was counted: more would mean that something was created since. */
static int kfd_priv_put(struct kfd_priv_cursor *cur, const void *data, size_t len)
{
	if (cur->at > cur->size || len > cur->size - cur->at)
		return -EINVAL;
	if (copy_to_user(cur->base + cur->at, data, len))
		return -EFAULT;
	cur->at += len;
	return 0;
}

static int kfd_priv_peek(const struct kfd_priv_cursor *cur, void *data, size_t len)
{
	if (cur->at > cur->size || len > cur->size - cur->at)
		return -EINVAL;
	return copy_from_user(data, cur->base + cur->at, len) ? -EFAULT : 0;
}

static int kfd_priv_get(struct kfd_priv_cursor *cur, void *data, size_t len)
{
	int ret = kfd_priv_peek(cur, data, len);

	if (!ret)
		cur->at += len;
	return ret;
}

/* ---- counting ---- */

static u32 kfd_num_xcc(const struct sim_gpu *gpu)
{
	return max(sim_gpu_prop(gpu, SIM_PROP_num_xcc), 1ULL);
}

/* What lies at or below the base of the GPU's address space is the kernel's own. */
static bool kfd_bo_is_saved(const struct kfd_bo *bo)
{
	return !bo->va || bo->va > KFD_GPUVM_BASE;
}

static void kfd_queue_payload(const struct kfd_queue *q, u32 *mqd_size, u32 *ctl_stack_size)
{
	const struct sim_gpu *gpu = q->pdd->gpu;
	u32 gfx = sim_gpu_prop(gpu, SIM_PROP_gfx_target_version);

	*mqd_size = kfd_queue_mqd_size(gpu, q->props.type) * kfd_num_xcc(gpu);
	*ctl_stack_size = 0;
	if (q->props.type == KFD_QUEUE_COMPUTE && gfx < 100000)
		*ctl_stack_size = q->props.ctl_stack_size * kfd_num_xcc(gpu);
}

static u32 kfd_count_bos(struct kfd_process *p)
{
	struct kfd_bo *bo;
	unsigned int i;
	u32 n = 0;
	int nr;

	for (i = 0; i < p->nr_pdds; i++)
		idr_for_each_entry(&p->pdds[i]->bos, bo, nr)
			n += kfd_bo_is_saved(bo);
	return n;
}

static void kfd_count_objects(struct kfd_process *p, struct kfd_ioctl_criu_args *ret)
{
	u32 mqd_size, ctl_stack_size, events = kfd_events_count(p), ranges = kfd_svm_count(p);
	struct kfd_queue *q;

	ret->num_devices = p->nr_pdds;
	ret->num_bos = kfd_count_bos(p);
	ret->num_objects = events + ranges;
	ret->priv_data_size = sizeof(struct kfd_process_priv) + p->nr_pdds * sizeof(struct kfd_device_priv) +
			      (u64)ret->num_bos * sizeof(struct kfd_bo_priv) +
			      (u64)events * sizeof(struct kfd_event_priv) + (u64)ranges * kfd_svm_priv_size(p);
	list_for_each_entry(q, &p->queues, node) {
		kfd_queue_payload(q, &mqd_size, &ctl_stack_size);
		ret->num_objects++;
		ret->priv_data_size += sizeof(struct kfd_queue_priv) + mqd_size + ctl_stack_size;
	}
}

/* ---- PROCESS_INFO, UNPAUSE ---- */

static int kfd_criu_process_info(struct kfd_process *p, struct kfd_ioctl_criu_args *args)
{
	if (!p->nr_pdds)
		return -ENODEV;
	/* Up to 7.2 every call adds a reason to stand still, of which UNPAUSE takes away one. */
	if (!p->queues_paused || sim_machine.desc.kernel.process_info_counts)
		kfd_process_evict_queues(p);
	p->queues_paused = true;
	args->pid = task_pid_nr_ns(p->lead_thread, task_active_pid_ns(p->lead_thread));
	kfd_count_objects(p, args);
	return 0;
}

static int kfd_criu_unpause(struct kfd_process *p, struct kfd_ioctl_criu_args *args)
{
	if (!p->queues_paused)
		return -EINVAL;
	kfd_process_restore_queues(p);
	p->queues_paused = false;
	return 0;
}

/* ---- dma-buf fds: made one by one, given to the caller all or none ---- */

struct kfd_fds {
	u32 nr;
	struct file **files; /* NULL where the BO has none */
	int *fds;
};

static int kfd_fds_init(struct kfd_fds *fds, u32 max)
{
	fds->nr = 0;
	fds->files = kvcalloc(max, sizeof(*fds->files), GFP_KERNEL | __GFP_NOWARN);
	fds->fds = kvcalloc(max, sizeof(*fds->fds), GFP_KERNEL | __GFP_NOWARN);
	return fds->files && fds->fds ? 0 : -ENOMEM;
}

static int kfd_fds_add(struct kfd_fds *fds, struct kfd_bo *bo, u32 *ret_fd)
{
	struct dma_buf *buf;
	int fd, ret;

	if (!(bo->flags & KFD_MEM_SHAREABLE)) {
		*ret_fd = KFD_INVALID_FD;
		fds->nr++;
		return 0;
	}
	ret = kfd_bo_export(bo, &buf);
	if (ret)
		return ret;
	fd = get_unused_fd_flags(0);
	if (fd < 0) {
		dma_buf_put(buf);
		return fd;
	}
	fds->files[fds->nr] = buf->file;
	fds->fds[fds->nr++] = fd;
	*ret_fd = fd;
	return 0;
}

static void kfd_fds_done(struct kfd_fds *fds, bool commit)
{
	u32 i;

	for (i = 0; i < fds->nr; i++) {
		if (!fds->files[i])
			continue;
		if (commit) {
			fd_install(fds->fds[i], fds->files[i]);
		} else {
			put_unused_fd(fds->fds[i]);
			fput(fds->files[i]);
		}
	}
	kvfree(fds->files);
	kvfree(fds->fds);
}

/* ---- CHECKPOINT ---- */

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
	priv->type = props->type;
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

/* The control stack is empty: no wave is ever stopped half way. */
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
	kfd_engine_save(q, data);
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
		list_for_each_entry(q, &p->queues, node) {
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

static u64 kfd_criu_offset(const struct kfd_bo *bo)
{
	u32 actual = bo->pdd->gpu->node->gpu_id;

	if (bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL)
		return KFD_MMAP_TYPE_DOORBELL | KFD_MMAP_GPU_ID(actual);
	if (bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP)
		return KFD_MMAP_TYPE_MMIO | KFD_MMAP_GPU_ID(actual);
	return bo->mmap_offset;
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
	for_each_set_bit(i, bo->mapped, p->nr_pdds)
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
		idr_for_each_entry(&p->pdds[i]->bos, bo, nr) {
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

	if (n && !kfd_all_have_vm(p))
		return -EINVAL;
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

static int kfd_criu_save(struct kfd_process *p, struct kfd_ioctl_criu_args *args)
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

static int kfd_criu_checkpoint(struct kfd_process *p, struct kfd_ioctl_criu_args *args)
{
	struct kfd_ioctl_criu_args fresh = {};

	if (!p->nr_pdds)
		return -ENODEV;
	if (!p->queues_paused)
		return -EINVAL;
	kfd_count_objects(p, &fresh);
	if (fresh.num_devices != args->num_devices || fresh.num_bos != args->num_bos ||
	    fresh.num_objects != args->num_objects || fresh.priv_data_size != args->priv_data_size)
		return -EINVAL;
	return kfd_criu_save(p, args);
}

/* ---- RESTORE ---- */

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
			   flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR ? priv->user_addr : 0, priv->idr_handle, &bo);
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
	props->type = priv->type;
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
	if (priv->type == KFD_QUEUE_COMPUTE)
		props->ctl_stack_size /= kfd_num_xcc(gpu);
	props->percent = priv->q_percent;
	props->priority = priv->priority;
}

static int kfd_restore_queue_check(const struct sim_gpu *gpu, const struct kfd_queue_priv *priv)
{
	const struct sim_kernel *kernel = &sim_machine.desc.kernel;

	if (priv->type >= KFD_QUEUE_TYPE_COUNT)
		return -EINVAL;
	if (kernel->check_mqd_size && priv->mqd_size != kfd_queue_mqd_size(gpu, priv->type))
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
	};
	struct kfd_queue_props props = {};
	struct kfd_mqd mqd = {};
	struct kfd_queue *q;
	int ret;

	if (sim_gpu_prop(pdd->gpu, SIM_PROP_gfx_target_version) >= 110000)
		return -EINVAL;
	memcpy(&mqd, payload, min_t(size_t, sizeof(mqd), priv->mqd_size));
	restore.mqd = &mqd;
	kfd_props_from_priv(pdd->gpu, priv, &props);
	ret = kfd_queue_create(pdd, &props, &restore, &q);
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

static int kfd_criu_restore(struct kfd_process *p, struct kfd_ioctl_criu_args *args)
{
	struct kfd_priv_cursor cur = { .base = u64_to_user_ptr(args->priv_data), .size = args->priv_data_size };
	u32 i;
	int ret;

	kfd_process_evict_queues(p);
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

/* ---- RESUME ---- */

static int kfd_resume_target(struct kfd_process *target)
{
	unsigned int i;
	int ret;

	ret = kfd_svm_resume(target);
	if (ret)
		return ret;
	/* The kernel oopses for a process that never had an address space. */
	for (i = 0; i < target->nr_pdds && !target->pdds[i]->vm;)
		i++;
	if (i == target->nr_pdds || !target->notifications_blocked)
		return -EINVAL;
	target->notifications_blocked = false;
	kfd_process_restore_queues(target);
	return 0;
}

/* The number is one of the caller's pid namespace. */
static int kfd_criu_resume(struct kfd_ioctl_criu_args *args)
{
	struct pid *pid = find_get_pid(args->pid);
	struct kfd_process *target;
	int ret;

	if (!pid)
		return -ESRCH;
	target = kfd_process_by_pid(pid);
	put_pid(pid);
	if (!target)
		return -ESRCH;
	mutex_lock(&target->lock);
	ret = kfd_resume_target(target);
	mutex_unlock(&target->lock);
	kfd_process_put(target);
	return ret;
}

/* ---- the ioctl ---- */

static int kfd_criu_check_checkpoint(const struct kfd_ioctl_criu_args *args)
{
	return args->devices && args->bos && args->priv_data ? 0 : -EINVAL;
}

static int kfd_criu_check_restore(const struct kfd_ioctl_criu_args *args)
{
	bool without_bos = sim_machine.desc.kernel.criu_without_bos && !args->num_bos;

	if (!args->devices || !args->priv_data || !args->priv_data_size || !args->num_devices)
		return -EINVAL;
	return without_bos || (args->bos && args->num_bos) ? 0 : -EINVAL;
}

struct kfd_criu_row {
	const char *name; /* fault point */
	int (*check)(const struct kfd_ioctl_criu_args *args); /* before the lock */
	int (*run)(struct kfd_process *p, struct kfd_ioctl_criu_args *args);
};

static const struct kfd_criu_row kfd_criu_rows[] = {
	[KFD_CRIU_OP_PROCESS_INFO] = { "kfd:CRIU_PROCESS_INFO", NULL, kfd_criu_process_info },
	[KFD_CRIU_OP_CHECKPOINT] = { "kfd:CRIU_CHECKPOINT", kfd_criu_check_checkpoint, kfd_criu_checkpoint },
	[KFD_CRIU_OP_UNPAUSE] = { "kfd:CRIU_UNPAUSE", NULL, kfd_criu_unpause },
	[KFD_CRIU_OP_RESTORE] = { "kfd:CRIU_RESTORE", kfd_criu_check_restore, kfd_criu_restore },
};

int kfd_ioctl_criu(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_criu_args *args = data;
	const struct kfd_criu_row *row;
	int ret;

	BUILD_BUG_ON(sizeof(struct kfd_queue_priv) != 120);
	BUILD_BUG_ON(sizeof(struct kfd_bo_priv) != 272);
	BUILD_BUG_ON(sizeof(struct kfd_svm_priv) != 24);
	BUILD_BUG_ON(sizeof(struct kfd_mqd) > KFD_MQD_SIZE_SDMA);

	if (args->op == KFD_CRIU_OP_RESUME) {
		ret = sim_fault_check("kfd:CRIU_RESUME");
		return ret ? ret : kfd_criu_resume(args);
	}
	if (args->op >= ARRAY_SIZE(kfd_criu_rows))
		return -EINVAL;
	row = &kfd_criu_rows[args->op];
	ret = sim_fault_check(row->name);
	if (!ret && row->check)
		ret = row->check(args);
	if (ret)
		return ret;
	mutex_lock(&p->lock);
	ret = row->run(p, args);
	mutex_unlock(&p->lock);
	return ret;
}
