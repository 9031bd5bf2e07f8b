// SPDX-License-Identifier: GPL-2.0-only
/*
 * Command submission: checks the chunks that user space passed, in the kernel's
 * order, turns them into one job with its dependencies, and submits it.
 */
#include <linux/dma-fence-chain.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm_syncobj.h>

#include "compat.h"
#include "drm.h"

#define MAX_CHUNKS 4096
#define MAX_CHUNK_BYTES SZ_1M

struct chunk {
	u32 id;
	size_t bytes;
	void *data;
};

/* A syncobj that gets the job's fence. */
struct signal {
	struct drm_syncobj *syncobj;
	struct dma_fence_chain *chain;
	u64 point;
};

struct submission {
	struct drm_file *file;
	struct sim_drm_file *f;
	struct sim_ctx *ctx;
	struct sim_job *job;
	struct chunk *chunks;
	u32 nr_chunks;
	struct signal *signals;
	u32 nr_signals;
};

/* ---- first pass: sizes, engines, handles ---- */

static int check_ib(struct submission *s, const struct drm_amdgpu_cs_chunk_ib *ib)
{
	struct sim_entity *entity;
	int ret;

	ret = sim_ctx_entity(s->ctx, ib->ip_type, ib->ip_instance, ib->ring, &entity);
	if (ret)
		return ret;
	/* Jobs that run on several engines at once (gangs) are not simulated. */
	if (s->job && s->job->entity != entity)
		return -EINVAL;
	if (!s->job)
		s->job = sim_job_new(s->f, s->ctx, entity);
	if (!s->job)
		return -ENOMEM;
	if (s->job->nr_ibs == SIM_JOB_MAX_IBS)
		return -EINVAL;
	s->job->ibs[s->job->nr_ibs].va = ib->va_start;
	s->job->ibs[s->job->nr_ibs].dwords = ib->ib_bytes / sizeof(u32);
	s->job->nr_ibs++;
	return 0;
}

/* What a chunk refers to before it is known whether there will be a job. */
struct found {
	struct sim_bo *user_fence;
	u32 user_fence_offset;
	struct sim_bo_list *bos;
};

static int check_user_fence(struct submission *s, const struct drm_amdgpu_cs_chunk_fence *chunk, struct found *found)
{
	struct drm_gem_object *obj;

	if (found->user_fence)
		return -EINVAL;
	obj = drm_gem_object_lookup(s->file, chunk->handle);
	if (!obj)
		return -EINVAL;
	found->user_fence = to_sim_bo(obj);
	found->user_fence_offset = chunk->offset;
	if (obj->size != PAGE_SIZE || chunk->offset > PAGE_SIZE - sizeof(u64))
		return -EINVAL;
	return found->user_fence->kind == SIM_BO_USERPTR ? -EINVAL : 0;
}

static int check_chunk(struct submission *s, const struct chunk *chunk, struct found *found)
{
	switch (chunk->id) {
	case AMDGPU_CHUNK_ID_IB:
		if (chunk->bytes < sizeof(struct drm_amdgpu_cs_chunk_ib))
			return -EINVAL;
		return check_ib(s, chunk->data);
	case AMDGPU_CHUNK_ID_FENCE:
		if (chunk->bytes < sizeof(struct drm_amdgpu_cs_chunk_fence))
			return -EINVAL;
		return check_user_fence(s, chunk->data, found);
	case AMDGPU_CHUNK_ID_BO_HANDLES:
		if (chunk->bytes < sizeof(struct drm_amdgpu_bo_list_in) || found->bos)
			return -EINVAL;
		return sim_bo_list_create(s->file, chunk->data, &found->bos);
	case SIM_CHUNK_ID_CP_GFX_SHADOW:
		return chunk->bytes < 4 * sizeof(u64) ? -EINVAL : 0;
	case AMDGPU_CHUNK_ID_DEPENDENCIES:
	case AMDGPU_CHUNK_ID_SCHEDULED_DEPENDENCIES:
	case AMDGPU_CHUNK_ID_SYNCOBJ_IN:
	case AMDGPU_CHUNK_ID_SYNCOBJ_OUT:
	case AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT:
	case AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL:
		return 0;
	default:
		return -EINVAL;
	}
}

static int read_chunk(u64 user, struct chunk *chunk)
{
	struct drm_amdgpu_cs_chunk header;
	void *data;

	if (copy_from_user(&header, u64_to_user_ptr(user), sizeof(header)))
		return -EFAULT;
	if (header.length_dw > MAX_CHUNK_BYTES / sizeof(u32))
		return -ENOMEM;
	data = sim_memdup_array_user(u64_to_user_ptr(header.chunk_data), header.length_dw, sizeof(u32));
	if (IS_ERR(data))
		return PTR_ERR(data);
	chunk->id = header.chunk_id;
	chunk->bytes = header.length_dw * sizeof(u32);
	chunk->data = data;
	return 0;
}

static int read_chunks(struct submission *s, const union drm_amdgpu_cs *args, struct found *found)
{
	u32 n = args->in.num_chunks;
	u64 *users;
	int ret = 0;

	if (n > MAX_CHUNKS)
		return -ENOMEM;
	users = sim_memdup_array_user(u64_to_user_ptr(args->in.chunks), n, sizeof(*users));
	if (IS_ERR(users))
		return PTR_ERR(users);
	s->chunks = kcalloc(n, sizeof(*s->chunks), GFP_KERNEL);
	if (!s->chunks)
		ret = -ENOMEM;
	while (!ret && s->nr_chunks < n) {
		ret = read_chunk(users[s->nr_chunks], &s->chunks[s->nr_chunks]);
		if (!ret)
			ret = check_chunk(s, &s->chunks[s->nr_chunks++], found);
	}
	kfree(users);
	return ret;
}

/* Gives what was found to the job, or drops it. */
static int settle_found(struct submission *s, struct found *found, int ret)
{
	if (!ret && !s->job)
		ret = -EINVAL; /* nothing to execute */
	if (!ret) {
		s->job->user_fence = found->user_fence;
		s->job->user_fence_offset = found->user_fence_offset;
		s->job->bos = found->bos;
		return 0;
	}
	if (found->user_fence)
		drm_gem_object_put(&found->user_fence->base);
	sim_bo_list_put(found->bos);
	return ret;
}

/* ---- second pass: lengths, dependencies, syncobjs ---- */

static int add_dependency(struct submission *s, const struct drm_amdgpu_cs_chunk_dep *dep)
{
	struct sim_ctx *ctx = sim_ctx_get(s->f, dep->ctx_id);
	struct sim_entity *entity;
	struct dma_fence *fence;
	int ret;

	if (!ctx)
		return -EINVAL;
	ret = sim_ctx_entity(ctx, dep->ip_type, dep->ip_instance, dep->ring, &entity);
	fence = ret ? ERR_PTR(ret) : sim_ctx_fence(ctx, entity, dep->handle);
	sim_ctx_put(ctx);
	if (IS_ERR_OR_NULL(fence))
		return PTR_ERR_OR_ZERO(fence);
	ret = sim_job_add_dep(s->job, fence);
	dma_fence_put(fence);
	return ret;
}

static int add_wait(struct submission *s, u32 handle, u64 point, u64 flags)
{
	struct dma_fence *fence;
	int ret;

	ret = drm_syncobj_find_fence(s->file, handle, point, flags, &fence);
	if (ret)
		return ret;
	ret = sim_job_add_dep(s->job, fence);
	dma_fence_put(fence);
	return ret;
}

static int add_signal(struct submission *s, u32 handle, u64 point)
{
	struct signal *signal = &s->signals[s->nr_signals];

	signal->point = point;
	if (point) {
		signal->chain = dma_fence_chain_alloc();
		if (!signal->chain)
			return -ENOMEM;
	}
	signal->syncobj = drm_syncobj_find(s->file, handle);
	if (!signal->syncobj) {
		dma_fence_chain_free(signal->chain);
		return -EINVAL;
	}
	s->nr_signals++;
	return 0;
}

static int signals_alloc(struct submission *s, size_t n)
{
	if (s->signals)
		return -EINVAL; /* one chunk of that kind only */
	s->signals = kcalloc(max_t(size_t, n, 1), sizeof(*s->signals), GFP_KERNEL);
	return s->signals ? 0 : -ENOMEM;
}

static int apply_dependencies(struct submission *s, const struct chunk *chunk)
{
	const struct drm_amdgpu_cs_chunk_dep *deps = chunk->data;
	size_t i;
	int ret = 0;

	for (i = 0; i < chunk->bytes / sizeof(*deps) && !ret; i++)
		ret = add_dependency(s, &deps[i]);
	return ret;
}

static int apply_syncobjs(struct submission *s, const struct chunk *chunk, bool out)
{
	const struct drm_amdgpu_cs_chunk_sem *sems = chunk->data;
	size_t i, n = chunk->bytes / sizeof(*sems);
	int ret = out ? signals_alloc(s, n) : 0;

	for (i = 0; i < n && !ret; i++)
		ret = out ? add_signal(s, sems[i].handle, 0) : add_wait(s, sems[i].handle, 0, 0);
	return ret;
}

static int apply_timelines(struct submission *s, const struct chunk *chunk, bool out)
{
	const struct drm_amdgpu_cs_chunk_syncobj *points = chunk->data;
	size_t i, n = chunk->bytes / sizeof(*points);
	int ret = out ? signals_alloc(s, n) : 0;

	for (i = 0; i < n && !ret; i++) {
		if (out)
			ret = add_signal(s, points[i].handle, points[i].point);
		else
			ret = add_wait(s, points[i].handle, points[i].point, points[i].flags);
	}
	return ret;
}

static int apply_chunk(struct submission *s, const struct chunk *chunk)
{
	const struct drm_amdgpu_cs_chunk_ib *ib = chunk->data;

	switch (chunk->id) {
	case AMDGPU_CHUNK_ID_IB:
		return ib->ib_bytes / sizeof(u32) > SIM_IB_MAX_DW ? -EINVAL : 0;
	case AMDGPU_CHUNK_ID_DEPENDENCIES:
	case AMDGPU_CHUNK_ID_SCHEDULED_DEPENDENCIES: /* waits a little longer than it would have to */
		return apply_dependencies(s, chunk);
	case AMDGPU_CHUNK_ID_SYNCOBJ_IN:
		return apply_syncobjs(s, chunk, false);
	case AMDGPU_CHUNK_ID_SYNCOBJ_OUT:
		return apply_syncobjs(s, chunk, true);
	case AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT:
		return apply_timelines(s, chunk, false);
	case AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL:
		return apply_timelines(s, chunk, true);
	default:
		return 0;
	}
}

static int apply_chunks(struct submission *s)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < s->nr_chunks && !ret; i++)
		ret = apply_chunk(s, &s->chunks[i]);
	return ret;
}

static int attach_bo_list(struct submission *s, u32 handle)
{
	if (!handle)
		return 0;
	if (s->job->bos)
		return -EINVAL; /* given twice: as a chunk and as a handle */
	s->job->bos = sim_bo_list_get(s->f, handle);
	return s->job->bos ? 0 : -ENOENT;
}

/* ---- submission ---- */

static void submission_signal(struct submission *s, struct dma_fence *fence)
{
	u32 i;

	for (i = 0; i < s->nr_signals; i++) {
		struct signal *signal = &s->signals[i];

		if (signal->chain)
			drm_syncobj_add_point(signal->syncobj, signal->chain, fence, signal->point);
		else
			drm_syncobj_replace_fence(signal->syncobj, fence);
		signal->chain = NULL;
	}
}

static void submission_done(struct submission *s)
{
	u32 i;

	for (i = 0; i < s->nr_signals; i++) {
		dma_fence_chain_free(s->signals[i].chain);
		drm_syncobj_put(s->signals[i].syncobj);
	}
	kfree(s->signals);
	for (i = 0; i < s->nr_chunks; i++)
		kfree(s->chunks[i].data);
	kfree(s->chunks);
	if (s->job)
		sim_job_free(s->job);
	sim_ctx_put(s->ctx);
}

static int submit(struct submission *s, union drm_amdgpu_cs *args)
{
	u32 bo_list = args->in.bo_list_handle;
	struct dma_fence *fence;
	struct found found = {};
	u64 sequence;
	int ret;

	ret = settle_found(s, &found, read_chunks(s, args, &found));
	if (!ret)
		ret = apply_chunks(s);
	if (!ret)
		ret = attach_bo_list(s, bo_list);
	if (ret)
		return ret;
	ret = sim_job_submit(s->job, &sequence, &fence);
	s->job = NULL;
	if (ret)
		return ret;
	submission_signal(s, fence);
	dma_fence_put(fence);
	args->out.handle = sequence;
	return 0;
}

SIM_IOCTL(sim_ioctl_cs)
{
	union drm_amdgpu_cs *args = data;
	struct submission s = { .file = file, .f = to_sim_drm_file(file) };
	int ret;

	if (!args->in.num_chunks)
		return -EINVAL;
	s.ctx = sim_ctx_get(s.f, args->in.ctx_id);
	if (!s.ctx)
		return -EINVAL;
	ret = READ_ONCE(s.ctx->guilty) ? -ECANCELED : submit(&s, args);
	submission_done(&s);
	return ret;
}
