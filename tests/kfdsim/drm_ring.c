// SPDX-License-Identifier: GPL-2.0-only
/*
 * The SDMA engines behind the kernel's rings: a queue of jobs and a thread each,
 * which executes the jobs' indirect buffers in their file's address space. A job
 * starts when all that it depends on has signaled and the earlier jobs of its
 * entity are done. The thread exists from the engine's first job on.
 */
#include <linux/delay.h>
#include <linux/dma-resv.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "compat.h"
#include "drm.h"

#define IB_WINDOW_DW 1024 /* so much of an IB is fetched at a time */
#define POLL_MAX_US  1000

struct sim_ring {
	struct sim_gpu *gpu;
	unsigned int index;
	struct task_struct *thread;
	wait_queue_head_t wait;
	struct list_head jobs;
	unsigned int queued; /* jobs listed or running */
	struct sim_job *running;
};

/* A GPU's rings; sim_gpu.drm_priv. */
struct rings {
	spinlock_t queue_lock; /* the rings' lists and counters */
	wait_queue_head_t idle; /* some job is done */
	unsigned int nr;
	struct sim_ring ring[SIM_MAX_ENGINES];
};

/*
 * Jobs enter the reservations of their BOs and the queues one at a time, on all
 * GPUs: a job can only depend on older ones, so that they cannot wait in a circle.
 */
static DEFINE_MUTEX(submit_lock);

/* ---- fences ---- */

struct fence {
	struct dma_fence base;
	spinlock_t lock;
	const struct sim_vm *vm; /* only compared */
};

static const char *fence_driver_name(struct dma_fence *fence)
{
	return "amdgpu";
}

static const char *fence_timeline_name(struct dma_fence *fence)
{
	return "sdma";
}

/* Sync files keep fences longer than anything else of ours: the code has to stay for them. */
static void fence_release(struct dma_fence *fence)
{
	dma_fence_free(fence);
	module_put(THIS_MODULE);
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = fence_driver_name,
	.get_timeline_name = fence_timeline_name,
	.release = fence_release,
};

static struct dma_fence *fence_new(const struct sim_vm *vm, u64 context, u64 sequence)
{
	struct fence *f = kzalloc(sizeof(*f), GFP_KERNEL);

	if (!f)
		return NULL;
	__module_get(THIS_MODULE);
	spin_lock_init(&f->lock);
	f->vm = vm;
	dma_fence_init(&f->base, &fence_ops, &f->lock, context, sequence);
	return &f->base;
}

static bool fence_is_of_vm(struct dma_fence *fence, const struct sim_vm *vm)
{
	return fence->ops == &fence_ops && container_of(fence, struct fence, base)->vm == vm;
}

/* ---- dependencies ---- */

struct dep {
	struct dma_fence_cb cb;
	struct dma_fence *fence;
	struct sim_job *job;
	bool armed;
};

int sim_job_add_dep(struct sim_job *job, struct dma_fence *fence)
{
	struct dep *dep;
	int ret;

	/* The entity's own order is kept anyway. */
	if (fence->context == job->entity->context || dma_fence_is_signaled(fence))
		return 0;
	dep = kzalloc(sizeof(*dep), GFP_KERNEL);
	if (!dep)
		return -ENOMEM;
	ret = xa_err(xa_store(&job->deps, job->nr_deps, dep, GFP_KERNEL));
	if (ret) {
		kfree(dep);
		return ret;
	}
	job->nr_deps++;
	dep->job = job;
	dep->fence = dma_fence_get(fence);
	return 0;
}

/* The job may be gone as soon as the last of its dependencies has been counted. */
static void dep_signaled(struct dma_fence *fence, struct dma_fence_cb *cb)
{
	struct sim_job *job = container_of(cb, struct dep, cb)->job;
	struct sim_ring *ring = job->ring;

	if (atomic_dec_and_test(&job->pending))
		wake_up(&ring->wait);
}

/* The job is not listed yet and its pending count is 1: it cannot start before it is. */
static void job_arm_deps(struct sim_job *job)
{
	unsigned long i;
	struct dep *dep;

	xa_for_each(&job->deps, i, dep) {
		atomic_inc(&job->pending);
		dep->armed = !dma_fence_add_callback(dep->fence, &dep->cb, dep_signaled);
		if (!dep->armed)
			atomic_dec(&job->pending); /* has signaled meanwhile */
	}
}

static void job_free_deps(struct sim_job *job)
{
	unsigned long i;
	struct dep *dep;

	xa_for_each(&job->deps, i, dep) {
		if (dep->armed)
			dma_fence_remove_callback(dep->fence, &dep->cb);
		dma_fence_put(dep->fence);
		kfree(dep);
	}
	xa_destroy(&job->deps);
}

/* ---- jobs ---- */

struct sim_job *sim_job_new(struct sim_drm_file *f, struct sim_ctx *ctx, struct sim_entity *entity)
{
	struct sim_job *job = kzalloc(sizeof(*job), GFP_KERNEL);

	if (!job)
		return NULL;
	job->ibs = kcalloc(SIM_JOB_MAX_IBS, sizeof(*job->ibs), GFP_KERNEL);
	if (!job->ibs) {
		kfree(job);
		return NULL;
	}
	xa_init(&job->deps);
	kref_get(&ctx->ref);
	job->ctx = ctx;
	job->entity = entity;
	job->vm = sim_vm_get(f->vm);
	job->owner = f;
	sim_object_add(SIM_OBJ_JOB, 1);
	return job;
}

void sim_job_free(struct sim_job *job)
{
	job_free_deps(job);
	dma_fence_put(job->fence);
	sim_bo_list_put(job->bos);
	if (job->user_fence)
		drm_gem_object_put(&job->user_fence->base);
	sim_ctx_put(job->ctx);
	sim_vm_put(job->vm);
	kfree(job->ibs);
	kfree(job);
	sim_object_add(SIM_OBJ_JOB, -1);
}

/* Asked by the packet interpreter within long packets. */
static bool job_stop(void *ctx)
{
	return READ_ONCE(((struct sim_job *)ctx)->dropped);
}

/* The line that a person sees when a job fails. */
#define job_err(job, fmt, ...)                                                                             \
	pr_err_ratelimited("kfdsim: gpu %#x sdma%u: " fmt "\n", (job)->ring->gpu->node->gpu_id,            \
			   (job)->ring->index, ##__VA_ARGS__)

/* The part of an IB that has been fetched. */
struct window {
	u32 *dw;
	u32 size;	/* dwords that dw has room for */
	u32 first, nr;	/* which of the IB's are in it */
};

static int window_fetch(struct sim_job *job, const struct sim_ib *ib, u32 pos, struct window *w)
{
	u64 va = (ib->va & GENMASK_ULL(47, 0)) + (u64)pos * sizeof(u32), fault_va;
	int ret;

	w->first = pos;
	w->nr = min(w->size, ib->dwords - pos);
	ret = sim_vm_read(job->vm, va, w->dw, (size_t)w->nr * sizeof(u32), &fault_va);
	if (ret)
		job_err(job, "page fault at GPU address %#llx, fetching commands", fault_va);
	return ret;
}

/* The packet at @pos is longer than what has been fetched of it. */
static int window_move(struct sim_job *job, const struct sim_ib *ib, u32 pos, struct window *w)
{
	u32 *larger;

	if (w->first + w->nr == ib->dwords) {
		job_err(job, "the last packet of the commands at %#llx is cut off after %u dwords", ib->va, ib->dwords);
		return -EFAULT;
	}
	if (w->first == pos) {
		larger = kvmalloc_array(w->size, 2 * sizeof(u32), GFP_KERNEL);
		if (!larger)
			return -ENOMEM;
		kvfree(w->dw);
		w->dw = larger;
		w->size *= 2;
	}
	return window_fetch(job, ib, pos, w);
}

/* Executes the packet at @pos, as soon as what it polls for is there. Returns what sim_sdma_execute() does. */
static int execute_packet(struct sim_job *job, struct sim_sdma *sdma, const struct window *w, u32 pos)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(SIM_JOB_TIMEOUT_MS);
	unsigned int us = 20;
	int n;

	for (;;) {
		n = sim_engine_check(job->ring->gpu);
		if (!n)
			n = sim_sdma_execute(sdma, w->dw + (pos - w->first), w->first + w->nr - pos);
		if (n != -EAGAIN)
			return n;
		if (job_stop(job))
			return -ECANCELED;
		if (time_after(jiffies, deadline)) {
			job_err(job, "hangs: nothing done for %u ms at dword %u of the commands at %#llx",
				SIM_JOB_TIMEOUT_MS, pos, job->ibs[0].va);
			return -ETIME;
		}
		usleep_range(us, 2 * us);
		us = min(2 * us, (unsigned int)POLL_MAX_US);
	}
}

static int execute_ib(struct sim_job *job, struct sim_sdma *sdma, const struct sim_ib *ib)
{
	struct window w = { .size = min(ib->dwords, (u32)IB_WINDOW_DW) };
	u32 pos = 0;
	int n, ret;

	if (!ib->dwords)
		return 0;
	w.dw = kvmalloc_array(w.size, sizeof(u32), GFP_KERNEL);
	if (!w.dw) {
		job_err(job, "no host memory to fetch %u dwords of commands", w.size);
		return -ENOMEM;
	}
	ret = window_fetch(job, ib, 0, &w);
	while (!ret && pos < ib->dwords) {
		n = execute_packet(job, sdma, &w, pos);
		if (n > 0)
			pos += n;
		else if (n < 0)
			ret = n;
		else
			ret = window_move(job, ib, pos, &w);
	}
	kvfree(w.dw);
	return ret;
}

static int job_execute(struct sim_job *job)
{
	struct sim_vm_limit limit;
	struct sim_sdma sdma;
	int ret = 0;
	u32 i;

	if (job_stop(job))
		return -ESRCH;
	if (READ_ONCE(job->ctx->guilty))
		return -ECANCELED;
	sim_sdma_init(&sdma, job->vm);
	sdma.engine = job->ring->index;
	sdma.stop = job_stop;
	sdma.ctx = job;
	/* Only what a job lists is sure to be in place. */
	if (job->bos)
		sim_vm_limit_begin(job->vm, &limit, &job->bos->set);
	for (i = 0; i < job->nr_ibs && !ret; i++)
		ret = execute_ib(job, &sdma, &job->ibs[i]);
	if (job->bos)
		sim_vm_limit_end(job->vm, &limit);
	if (ret == -ECANCELED)
		return -ESRCH; /* stopped in the middle */
	return ret ? -ETIME : 0;
}

static void job_write_user_fence(struct sim_job *job)
{
	u64 sequence = job->fence->seqno;

	if (!job->user_fence)
		return;
	smp_wmb(); /* whoever sees the fence sees the data */
	sim_bo_access(job->user_fence, job->user_fence_offset, &sequence, sizeof(sequence), true);
}

static void job_run(struct sim_job *job)
{
	struct sim_ring *ring = job->ring;
	struct rings *rings = ring->gpu->drm_priv;
	int ret = job_execute(job);

	if (ret) {
		if (ret == -ETIME)
			WRITE_ONCE(job->ctx->guilty, true);
		cmpxchg(&job->entity->error, 0, ret);
		dma_fence_set_error(job->fence, ret);
	} else {
		job_write_user_fence(job);
	}
	spin_lock(&rings->queue_lock);
	ring->running = NULL;
	ring->queued--;
	job->entity->queued--;
	spin_unlock(&rings->queue_lock);
	dma_fence_signal(job->fence);
	sim_job_free(job);
	wake_up(&rings->idle);
}

/* ---- engines ---- */

/* Is an earlier job of the same entity still in the list? */
static bool has_predecessor(const struct sim_ring *ring, const struct sim_job *job)
{
	const struct sim_job *other;

	list_for_each_entry(other, &ring->jobs, link) {
		if (other == job)
			return false;
		if (other->entity == job->entity)
			return true;
	}
	return false;
}

/* Takes the first job that can run. Others' locks are never taken under queue_lock. */
static struct sim_job *ring_take(struct sim_ring *ring)
{
	struct rings *rings = ring->gpu->drm_priv;
	struct sim_job *job, *found = NULL;

	spin_lock(&rings->queue_lock);
	list_for_each_entry(job, &ring->jobs, link) {
		if (atomic_read(&job->pending) && !job->dropped)
			continue;
		if (has_predecessor(ring, job))
			continue;
		list_del(&job->link);
		ring->running = job;
		found = job;
		break;
	}
	spin_unlock(&rings->queue_lock);
	return found;
}

static int ring_thread(void *data)
{
	struct sim_ring *ring = data;
	struct sim_job *job;

	for (;;) {
		wait_event_idle(ring->wait, (job = ring_take(ring)) || kthread_should_stop());
		if (!job)
			return 0;
		job_run(job);
	}
}

/* Under submit_lock. */
static int ring_start(struct sim_ring *ring)
{
	struct task_struct *thread;

	if (ring->thread)
		return 0;
	thread = kthread_run(ring_thread, ring, "kfdsim%u-sdma%u", ring->gpu->index, ring->index);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	ring->thread = thread;
	return 0;
}

/* The engine with the least to do, but an entity's jobs stay together. */
static struct sim_ring *choose_ring(struct rings *rings, const struct sim_entity *entity)
{
	struct sim_ring *best = &rings->ring[0];
	unsigned int i;

	if (entity->queued)
		return entity->ring;
	for (i = 1; i < rings->nr; i++)
		if (rings->ring[i].queued < best->queued)
			best = &rings->ring[i];
	return best;
}

/* ---- submission ---- */

/* Waits for what others do with the BO, and makes others wait for the job. */
static int job_add_to_resv(struct sim_job *job, struct dma_resv *resv, bool implicit)
{
	struct dma_resv_iter cursor;
	struct dma_fence *fence;
	int ret;

	dma_resv_lock(resv, NULL);
	ret = dma_resv_reserve_fences(resv, 1);
	if (!ret && implicit) {
		dma_resv_for_each_fence(&cursor, resv, DMA_RESV_USAGE_READ, fence) {
			if (fence == job->fence || fence_is_of_vm(fence, job->vm))
				continue;
			ret = sim_job_add_dep(job, fence);
			if (ret)
				break;
		}
	}
	if (!ret)
		dma_resv_add_fence(resv, job->fence, DMA_RESV_USAGE_WRITE);
	dma_resv_unlock(resv);
	return ret;
}

static int job_add_to_bos(struct sim_job *job)
{
	int ret = job_add_to_resv(job, &job->vm->resv, false);
	u32 i;

	for (i = 0; job->bos && i < job->bos->nr && !ret; i++) {
		struct sim_bo *bo = job->bos->bos[i];

		ret = job_add_to_resv(job, bo->base.resv, !(bo->create_flags & AMDGPU_GEM_CREATE_EXPLICIT_SYNC));
	}
	return ret;
}

/* Under submit_lock and ctx->lock. Nothing can fail any more. */
static void job_enqueue(struct sim_job *job)
{
	struct rings *rings = job->vm->gpu->drm_priv;
	struct sim_entity *entity = job->entity;
	struct dma_fence **slot = &entity->fences[job->fence->seqno % SIM_CTX_FENCES];
	struct sim_ring *ring = job->ring;

	dma_fence_put(*slot);
	*slot = dma_fence_get(job->fence);
	entity->sequence = job->fence->seqno;
	atomic_set(&job->pending, 1);
	job_arm_deps(job);
	spin_lock(&rings->queue_lock);
	entity->ring = ring;
	entity->queued++;
	ring->queued++;
	list_add_tail(&job->link, &ring->jobs);
	atomic_dec(&job->pending);
	spin_unlock(&rings->queue_lock);
	wake_up(&ring->wait); /* which owns the job now */
}

static int job_submit_locked(struct sim_job *job)
{
	struct rings *rings = job->vm->gpu->drm_priv;
	int ret;

	job->fence = fence_new(job->vm, job->entity->context, job->entity->sequence + 1);
	if (!job->fence)
		return -ENOMEM;
	spin_lock(&rings->queue_lock);
	job->ring = choose_ring(rings, job->entity);
	spin_unlock(&rings->queue_lock);
	ret = ring_start(job->ring);
	if (!ret)
		ret = job_add_to_bos(job);
	if (!ret) {
		job_enqueue(job);
		return 0;
	}
	/* Some BOs have the fence already. */
	dma_fence_set_error(job->fence, ret);
	dma_fence_signal(job->fence);
	return ret;
}

/* Takes ctx->lock; there is room for one more fence in the entity then. */
static int ctx_lock_with_room(struct sim_job *job)
{
	struct sim_entity *entity = job->entity;
	struct dma_fence *oldest;
	int ret;

	for (;;) {
		mutex_lock(&job->ctx->lock);
		oldest = entity->fences[(entity->sequence + 1) % SIM_CTX_FENCES];
		if (!oldest || dma_fence_is_signaled(oldest))
			return 0;
		dma_fence_get(oldest);
		mutex_unlock(&job->ctx->lock);
		ret = dma_fence_wait(oldest, true);
		dma_fence_put(oldest);
		if (ret < 0)
			return ret;
	}
}

int sim_job_submit(struct sim_job *job, u64 *ret_sequence, struct dma_fence **ret_fence)
{
	struct sim_ctx *ctx = job->ctx;
	struct dma_fence *fence = NULL;
	int ret;

	kref_get(&ctx->ref); /* the job may be done before this function is */
	ret = ctx_lock_with_room(job);
	if (!ret) {
		mutex_lock(&submit_lock);
		ret = job_submit_locked(job);
		if (!ret) {
			fence = dma_fence_get(job->entity->fences[job->entity->sequence % SIM_CTX_FENCES]);
			*ret_sequence = job->entity->sequence;
		}
		mutex_unlock(&submit_lock);
		mutex_unlock(&ctx->lock);
	}
	if (ret)
		sim_job_free(job);
	else
		*ret_fence = fence;
	sim_ctx_put(ctx);
	return ret;
}

/* ---- GPUs ---- */

/* Under queue_lock. */
static bool ring_has_jobs_of(struct sim_ring *ring, const struct sim_drm_file *owner, bool drop)
{
	struct sim_job *job = ring->running;
	bool has = job && job->owner == owner;

	if (has && drop)
		WRITE_ONCE(job->dropped, true);
	list_for_each_entry(job, &ring->jobs, link) {
		if (job->owner != owner)
			continue;
		has = true;
		if (drop)
			WRITE_ONCE(job->dropped, true);
	}
	return has;
}

static bool has_jobs_of(struct rings *rings, const struct sim_drm_file *owner, bool drop)
{
	bool has = false;
	unsigned int i;

	spin_lock(&rings->queue_lock);
	for (i = 0; i < rings->nr; i++)
		has |= ring_has_jobs_of(&rings->ring[i], owner, drop);
	spin_unlock(&rings->queue_lock);
	return has;
}

void sim_rings_close_file(struct sim_gpu *gpu, const struct sim_drm_file *owner, unsigned int patience_ms)
{
	struct rings *rings = gpu->drm_priv;
	unsigned int i;

	wait_event_timeout(rings->idle, !has_jobs_of(rings, owner, false), msecs_to_jiffies(patience_ms));
	if (!has_jobs_of(rings, owner, true))
		return;
	for (i = 0; i < rings->nr; i++)
		wake_up(&rings->ring[i].wait);
	wait_event(rings->idle, !has_jobs_of(rings, owner, false));
}

unsigned int sim_rings_count(struct sim_gpu *gpu)
{
	return ((struct rings *)gpu->drm_priv)->nr;
}

int sim_rings_init(struct sim_gpu *gpu)
{
	u64 engines = sim_gpu_prop(gpu, SIM_PROP_num_sdma_engines) + sim_gpu_prop(gpu, SIM_PROP_num_sdma_xgmi_engines);
	struct rings *rings = kzalloc(sizeof(*rings), GFP_KERNEL);
	unsigned int i;

	if (!rings)
		return -ENOMEM;
	spin_lock_init(&rings->queue_lock);
	init_waitqueue_head(&rings->idle);
	rings->nr = clamp_t(u64, engines, SIM_CTX_RINGS, SIM_MAX_ENGINES);
	for (i = 0; i < rings->nr; i++) {
		rings->ring[i].gpu = gpu;
		rings->ring[i].index = i;
		init_waitqueue_head(&rings->ring[i].wait);
		INIT_LIST_HEAD(&rings->ring[i].jobs);
	}
	gpu->drm_priv = rings;
	return 0;
}

static void ring_fini(struct rings *rings, struct sim_ring *ring)
{
	struct sim_job *job;

	spin_lock(&rings->queue_lock);
	if (ring->running)
		WRITE_ONCE(ring->running->dropped, true);
	list_for_each_entry(job, &ring->jobs, link)
		WRITE_ONCE(job->dropped, true);
	spin_unlock(&rings->queue_lock);
	if (ring->thread)
		kthread_stop(ring->thread); /* it executes (drops) what is listed before it ends */
	WARN_ON(!list_empty(&ring->jobs));
}

void sim_rings_fini(struct sim_gpu *gpu)
{
	struct rings *rings = gpu->drm_priv;
	unsigned int i;

	if (!rings)
		return;
	for (i = 0; i < rings->nr; i++)
		ring_fini(rings, &rings->ring[i]);
	gpu->drm_priv = NULL;
	kfree(rings);
}
