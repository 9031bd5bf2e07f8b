// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts and BO lists of an open file, and waiting for submitted jobs. A
 * context has one queue (entity) per DMA ring that user space can name; which
 * engine executes it is decided in drm_ring.c.
 */
#include <linux/capability.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sync_file.h>
#include <linux/uaccess.h>
#include <drm/drm_auth.h>
#include <drm/drm_syncobj.h>

#include "compat.h"
#include "drm.h"

#define MAX_CTXS 4096

/* ---- contexts ---- */

static void ctx_release(struct kref *ref)
{
	struct sim_ctx *ctx = container_of(ref, struct sim_ctx, ref);
	unsigned int i, j;

	for (i = 0; i < SIM_CTX_RINGS; i++)
		for (j = 0; j < SIM_CTX_FENCES; j++)
			dma_fence_put(ctx->entities[i].fences[j]);
	mutex_destroy(&ctx->lock);
	kfree(ctx);
	sim_object_add(SIM_OBJ_CTX, -1);
}

void sim_ctx_put(struct sim_ctx *ctx)
{
	kref_put(&ctx->ref, ctx_release);
}

struct sim_ctx *sim_ctx_get(struct sim_drm_file *f, u32 id)
{
	struct sim_ctx *ctx;

	mutex_lock(&f->lock);
	ctx = idr_find(&f->ctxs, id);
	if (ctx)
		kref_get(&ctx->ref);
	mutex_unlock(&f->lock);
	return ctx;
}

static struct sim_ctx *ctx_new(void)
{
	struct sim_ctx *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL);
	unsigned int i;

	if (!ctx)
		return NULL;
	kref_init(&ctx->ref);
	mutex_init(&ctx->lock);
	for (i = 0; i < SIM_CTX_RINGS; i++)
		ctx->entities[i].context = dma_fence_context_alloc(1);
	sim_object_add(SIM_OBJ_CTX, 1);
	return ctx;
}

/* Whatever else old programs put there counts as normal. */
static bool priority_is_high(s32 priority)
{
	return priority == AMDGPU_CTX_PRIORITY_HIGH || priority == AMDGPU_CTX_PRIORITY_VERY_HIGH;
}

static int ctx_alloc(struct drm_file *file, union drm_amdgpu_ctx *args)
{
	struct sim_drm_file *f = to_sim_drm_file(file);
	struct sim_ctx *ctx;
	int id;

	if (priority_is_high(args->in.priority) && !capable(CAP_SYS_NICE) && !drm_is_current_master(file))
		return -EACCES;
	ctx = ctx_new();
	if (!ctx)
		return -ENOMEM;
	mutex_lock(&f->lock);
	id = idr_alloc(&f->ctxs, ctx, 1, MAX_CTXS, GFP_KERNEL);
	mutex_unlock(&f->lock);
	if (id < 0) {
		sim_ctx_put(ctx);
		return id;
	}
	args->out.alloc.ctx_id = id;
	return 0;
}

static int ctx_free(struct sim_drm_file *f, u32 id)
{
	struct sim_ctx *ctx;

	mutex_lock(&f->lock);
	ctx = idr_remove(&f->ctxs, id);
	mutex_unlock(&f->lock);
	if (!ctx)
		return -EINVAL;
	sim_ctx_put(ctx);
	return 0;
}

/* The older query tells of a reset once and cannot say whose fault it was. */
static u32 ctx_reset_status(struct sim_ctx *ctx)
{
	u32 status = AMDGPU_CTX_NO_RESET;

	mutex_lock(&ctx->lock);
	if (ctx->guilty && !ctx->reset_told) {
		ctx->reset_told = true;
		status = AMDGPU_CTX_UNKNOWN_RESET;
	}
	mutex_unlock(&ctx->lock);
	return status;
}

static int ctx_query(struct sim_drm_file *f, union drm_amdgpu_ctx *args)
{
	bool older = args->in.op == AMDGPU_CTX_OP_QUERY_STATE;
	struct sim_ctx *ctx = sim_ctx_get(f, args->in.ctx_id);

	if (!ctx)
		return -EINVAL;
	args->out.state.flags = 0;
	args->out.state.hangs = 0;
	if (older)
		args->out.state.reset_status = ctx_reset_status(ctx);
	else if (READ_ONCE(ctx->guilty))
		args->out.state.flags = AMDGPU_CTX_QUERY2_FLAGS_RESET | AMDGPU_CTX_QUERY2_FLAGS_GUILTY;
	sim_ctx_put(ctx);
	return 0;
}

/* Clocks are not simulated: the power state is always "none" and cannot be changed. */
static int ctx_pstate(struct sim_drm_file *f, union drm_amdgpu_ctx *args)
{
	bool set = args->in.op == AMDGPU_CTX_OP_SET_STABLE_PSTATE;
	struct sim_ctx *ctx;

	if (set ? args->in.flags > AMDGPU_CTX_STABLE_PSTATE_PEAK : args->in.flags != 0)
		return -EINVAL;
	ctx = sim_ctx_get(f, args->in.ctx_id);
	if (!ctx)
		return -EINVAL;
	sim_ctx_put(ctx);
	if (set)
		return args->in.flags == AMDGPU_CTX_STABLE_PSTATE_NONE ? 0 : -EINVAL;
	args->out.pstate.flags = AMDGPU_CTX_STABLE_PSTATE_NONE;
	return 0;
}

SIM_IOCTL(sim_ioctl_ctx)
{
	struct sim_drm_file *f = to_sim_drm_file(file);
	union drm_amdgpu_ctx *args = data;

	switch (args->in.op) {
	case AMDGPU_CTX_OP_GET_STABLE_PSTATE:
	case AMDGPU_CTX_OP_SET_STABLE_PSTATE:
		return ctx_pstate(f, args);
	default:
		break;
	}
	if (args->in.flags)
		return -EINVAL;
	switch (args->in.op) {
	case AMDGPU_CTX_OP_ALLOC_CTX:
		return ctx_alloc(file, args);
	case AMDGPU_CTX_OP_FREE_CTX:
		return ctx_free(f, args->in.ctx_id);
	case AMDGPU_CTX_OP_QUERY_STATE:
	case AMDGPU_CTX_OP_QUERY_STATE2:
		return ctx_query(f, args);
	default:
		return -EINVAL;
	}
}

int sim_ctx_entity(struct sim_ctx *ctx, u32 ip_type, u32 ip_instance, u32 ring, struct sim_entity **ret)
{
	if (ip_type != AMDGPU_HW_IP_DMA || ip_instance || ring >= SIM_CTX_RINGS)
		return -EINVAL;
	*ret = &ctx->entities[ring];
	return READ_ONCE((*ret)->error);
}

struct dma_fence *sim_ctx_fence(struct sim_ctx *ctx, struct sim_entity *entity, u64 sequence)
{
	struct dma_fence *fence = NULL;

	mutex_lock(&ctx->lock);
	if (sequence == U64_MAX)
		sequence = entity->sequence;
	if (sequence > entity->sequence)
		fence = ERR_PTR(-EINVAL);
	else if (sequence + SIM_CTX_FENCES > entity->sequence && sequence)
		fence = dma_fence_get(entity->fences[sequence % SIM_CTX_FENCES]);
	mutex_unlock(&ctx->lock);
	return fence;
}

/* ---- BO lists ---- */

static void bo_list_release(struct kref *ref)
{
	struct sim_bo_list *list = container_of(ref, struct sim_bo_list, ref);
	u32 i;

	for (i = 0; i < list->nr; i++)
		drm_gem_object_put(&list->bos[i]->base);
	xa_destroy(&list->set);
	kvfree(list);
	sim_object_add(SIM_OBJ_BO_LIST, -1);
}

void sim_bo_list_put(struct sim_bo_list *list)
{
	if (list)
		kref_put(&list->ref, bo_list_release);
}

struct sim_bo_list *sim_bo_list_get(struct sim_drm_file *f, u32 id)
{
	struct sim_bo_list *list;

	mutex_lock(&f->lock);
	list = idr_find(&f->bo_lists, id);
	if (list)
		kref_get(&list->ref);
	mutex_unlock(&f->lock);
	return list;
}

/* Entries may be of another size than ours; only the handle in front matters. */
static int bo_list_add(struct drm_file *file, struct sim_bo_list *list, const void __user *entry, u32 entry_size)
{
	struct drm_amdgpu_bo_list_entry info = {};
	struct drm_gem_object *obj;
	struct sim_bo *bo;

	if (copy_from_user(&info, entry, min_t(u32, entry_size, sizeof(info))))
		return -EFAULT;
	obj = drm_gem_object_lookup(file, info.bo_handle);
	if (!obj)
		return -ENOENT;
	bo = to_sim_bo(obj);
	if (bo->kind == SIM_BO_USERPTR && bo->mm != current->mm) {
		drm_gem_object_put(obj);
		return -EPERM;
	}
	list->bos[list->nr++] = bo;
	return xa_err(xa_store(&list->set, (unsigned long)bo, bo, GFP_KERNEL));
}

int sim_bo_list_create(struct drm_file *file, const struct drm_amdgpu_bo_list_in *in, struct sim_bo_list **ret)
{
	const void __user *entries = u64_to_user_ptr(in->bo_info_ptr);
	struct sim_bo_list *list;
	int err = 0;
	u32 i;

	if (in->bo_number > SIM_BO_LIST_MAX)
		return -EINVAL;
	list = kvzalloc(struct_size(list, bos, in->bo_number), GFP_KERNEL);
	if (!list)
		return -ENOMEM;
	kref_init(&list->ref);
	xa_init(&list->set);
	sim_object_add(SIM_OBJ_BO_LIST, 1);
	for (i = 0; i < in->bo_number && !err; i++)
		err = bo_list_add(file, list, entries + (size_t)i * in->bo_info_size, in->bo_info_size);
	if (err) {
		sim_bo_list_put(list);
		return err;
	}
	*ret = list;
	return 0;
}

static int bo_list_install(struct sim_drm_file *f, struct sim_bo_list *list)
{
	int id;

	mutex_lock(&f->lock);
	id = idr_alloc(&f->bo_lists, list, 1, 0, GFP_KERNEL);
	mutex_unlock(&f->lock);
	return id;
}

static int bo_list_replace(struct sim_drm_file *f, u32 id, struct sim_bo_list *list)
{
	struct sim_bo_list *old;

	mutex_lock(&f->lock);
	old = idr_replace(&f->bo_lists, list, id);
	mutex_unlock(&f->lock);
	if (IS_ERR(old))
		return PTR_ERR(old);
	sim_bo_list_put(old);
	return id;
}

static void bo_list_remove(struct sim_drm_file *f, u32 id)
{
	struct sim_bo_list *list;

	mutex_lock(&f->lock);
	list = idr_remove(&f->bo_lists, id);
	mutex_unlock(&f->lock);
	sim_bo_list_put(list);
}

SIM_IOCTL(sim_ioctl_bo_list)
{
	struct sim_drm_file *f = to_sim_drm_file(file);
	union drm_amdgpu_bo_list *args = data;
	struct sim_bo_list *list;
	int ret;

	switch (args->in.operation) {
	case AMDGPU_BO_LIST_OP_CREATE:
	case AMDGPU_BO_LIST_OP_UPDATE:
		ret = sim_bo_list_create(file, &args->in, &list);
		if (ret)
			return ret;
		if (args->in.operation == AMDGPU_BO_LIST_OP_CREATE)
			ret = bo_list_install(f, list);
		else
			ret = bo_list_replace(f, args->in.list_handle, list);
		if (ret < 0) {
			sim_bo_list_put(list);
			return ret;
		}
		break;
	case AMDGPU_BO_LIST_OP_DESTROY: /* succeeds for a list that is not there, too */
		if (args->in.bo_number > SIM_BO_LIST_MAX)
			return -EINVAL;
		bo_list_remove(f, args->in.list_handle);
		ret = 0;
		break;
	default:
		return -EINVAL;
	}
	memset(args, 0, sizeof(*args));
	args->out.list_handle = ret;
	return 0;
}

void sim_ctx_file_fini(struct sim_drm_file *f)
{
	struct sim_bo_list *list;
	struct sim_ctx *ctx;
	int id;

	idr_for_each_entry(&f->ctxs, ctx, id)
		sim_ctx_put(ctx);
	idr_destroy(&f->ctxs);
	idr_for_each_entry(&f->bo_lists, list, id)
		sim_bo_list_put(list);
	idr_destroy(&f->bo_lists);
}

/* ---- waiting ---- */

/* NULL when the job is long done. */
static struct dma_fence *fence_lookup(struct sim_drm_file *f, u32 ctx_id, u32 ip_type, u32 ip_instance, u32 ring,
				      u64 sequence)
{
	struct sim_ctx *ctx = sim_ctx_get(f, ctx_id);
	struct sim_entity *entity;
	struct dma_fence *fence;
	int ret;

	if (!ctx)
		return ERR_PTR(-EINVAL);
	ret = sim_ctx_entity(ctx, ip_type, ip_instance, ring, &entity);
	fence = ret ? ERR_PTR(ret) : sim_ctx_fence(ctx, entity, sequence);
	sim_ctx_put(ctx);
	return fence;
}

static struct dma_fence *user_fence_lookup(struct sim_drm_file *f, const struct drm_amdgpu_fence *user)
{
	return fence_lookup(f, user->ctx_id, user->ip_type, user->ip_instance, user->ring, user->seq_no);
}

/* 1 when it has signaled, 0 when time is up, or an error, the job's own one too. Drops @fence, which may be NULL. */
static long wait_and_put(struct dma_fence *fence, unsigned long timeout)
{
	long ret;

	if (!fence)
		return 1;
	ret = dma_fence_wait_timeout(fence, true, timeout);
	if (ret > 0)
		ret = fence->error ? fence->error : 1;
	dma_fence_put(fence);
	return ret;
}

SIM_IOCTL(sim_ioctl_wait_cs)
{
	union drm_amdgpu_wait_cs *args = data;
	unsigned long timeout = sim_timeout(args->in.timeout);
	struct dma_fence *fence;
	long ret;

	fence = fence_lookup(to_sim_drm_file(file), args->in.ctx_id, args->in.ip_type, args->in.ip_instance,
			     args->in.ring, args->in.handle);
	if (IS_ERR(fence))
		return PTR_ERR(fence);
	ret = wait_and_put(fence, timeout);
	if (ret < 0)
		return ret;
	memset(args, 0, sizeof(*args));
	args->out.status = ret == 0;
	return 0;
}

static long wait_all(struct sim_drm_file *f, const struct drm_amdgpu_fence *user, u32 n, u64 timeout_ns)
{
	struct dma_fence *fence;
	long ret = 1;
	u32 i;

	for (i = 0; i < n && ret > 0; i++) {
		fence = user_fence_lookup(f, &user[i]);
		if (IS_ERR(fence))
			return PTR_ERR(fence);
		ret = wait_and_put(fence, sim_timeout(timeout_ns));
	}
	return ret;
}

/* *@ret_first is left alone when time is up. */
static long wait_any(struct sim_drm_file *f, const struct drm_amdgpu_fence *user, u32 n, u64 timeout_ns, u32 *ret_first)
{
	struct dma_fence **fences;
	long ret = 0;
	u32 i, got;

	if (!n)
		return -EINVAL;
	fences = kcalloc(n, sizeof(*fences), GFP_KERNEL);
	if (!fences)
		return -ENOMEM;
	for (got = 0; got < n; got++) {
		fences[got] = user_fence_lookup(f, &user[got]);
		if (!fences[got]) { /* long done */
			*ret_first = got;
			ret = 1;
			goto out;
		}
		if (IS_ERR(fences[got])) {
			ret = PTR_ERR(fences[got]);
			goto out;
		}
	}
	ret = dma_fence_wait_any_timeout(fences, n, true, sim_timeout(timeout_ns), ret_first);
	if (ret > 0)
		ret = fences[*ret_first]->error ? fences[*ret_first]->error : 1;
out:
	for (i = 0; i < got; i++)
		dma_fence_put(fences[i]);
	kfree(fences);
	return ret;
}

SIM_IOCTL(sim_ioctl_wait_fences)
{
	struct sim_drm_file *f = to_sim_drm_file(file);
	union drm_amdgpu_wait_fences *args = data;
	struct drm_amdgpu_fence *user;
	u32 n = args->in.fence_count, first = U32_MAX;
	bool all = args->in.wait_all;
	long ret;

	if (n > SIM_BO_LIST_MAX)
		return -ENOMEM;
	user = sim_memdup_array_user(u64_to_user_ptr(args->in.fences), n, sizeof(*user));
	if (IS_ERR(user))
		return PTR_ERR(user);
	if (all)
		ret = wait_all(f, user, n, args->in.timeout_ns);
	else
		ret = wait_any(f, user, n, args->in.timeout_ns, &first);
	kfree(user);
	if (ret < 0)
		return ret;
	memset(args, 0, sizeof(*args));
	args->out.status = ret > 0;
	if (!all)
		args->out.first_signaled = first;
	return 0;
}

/* ---- FENCE_TO_HANDLE ---- */

static int fence_to_sync_file(struct dma_fence *fence, u32 *ret_fd)
{
	struct sync_file *sync_file;
	int fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd < 0)
		return fd;
	sync_file = sync_file_create(fence);
	if (!sync_file) {
		put_unused_fd(fd);
		return -ENOMEM;
	}
	fd_install(fd, sync_file->file);
	*ret_fd = fd;
	return 0;
}

static int fence_to_syncobj(struct drm_file *file, struct dma_fence *fence, bool as_fd, u32 *ret_handle)
{
	struct drm_syncobj *syncobj;
	int ret;

	ret = drm_syncobj_create(&syncobj, 0, fence);
	if (ret)
		return ret;
	if (as_fd)
		ret = drm_syncobj_get_fd(syncobj, (int *)ret_handle);
	else
		ret = drm_syncobj_get_handle(file, syncobj, ret_handle);
	drm_syncobj_put(syncobj);
	return ret;
}

SIM_IOCTL(sim_ioctl_fence_to_handle)
{
	union drm_amdgpu_fence_to_handle *args = data;
	struct dma_fence *fence;
	u32 handle;
	int ret;

	fence = user_fence_lookup(to_sim_drm_file(file), &args->in.fence);
	if (IS_ERR(fence))
		return PTR_ERR(fence);
	if (!fence)
		fence = dma_fence_get_stub();
	if (args->in.what == AMDGPU_FENCE_TO_HANDLE_GET_SYNC_FILE_FD)
		ret = fence_to_sync_file(fence, &handle);
	else if (args->in.what == AMDGPU_FENCE_TO_HANDLE_GET_SYNCOBJ ||
		 args->in.what == AMDGPU_FENCE_TO_HANDLE_GET_SYNCOBJ_FD)
		ret = fence_to_syncobj(file, fence, args->in.what == AMDGPU_FENCE_TO_HANDLE_GET_SYNCOBJ_FD, &handle);
	else
		ret = -EINVAL;
	dma_fence_put(fence);
	if (!ret)
		args->out.handle = handle;
	return ret;
}
