// SPDX-License-Identifier: GPL-2.0-only
/*
 * The steps of which most cases are made: what each does with its numbers, which sharejob_steps.h tells.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"
#include "sharejob_steps.h"

#define SLOTS 64u

const uint8_t share_token[4] = { 0x5a, 0xa5, 0x10, 0x72 };

/* Of this process. BOs, descriptors, handles and where these are mapped are by number, mostly that of their buffer. */
static struct {
	struct kfd_bo *bo[SLOTS];
	int fd[SLOTS];
	uint32_t handle[SLOTS];
	uint64_t va[SLOTS];
	unsigned int it; /* the buffer of what came last */
	int it_fd;
	struct share_objects parents;
} have;

/* A number of the steps, or that of what came last. */
static unsigned int number(int n)
{
	return n == IT ? have.it : (unsigned int)n;
}

static int file_of(const struct share_process *me, int n)
{
	return me->objects.files[n].fd;
}

struct kfd_bo *share_bo_of(unsigned int n)
{
	return have.bo[n];
}

/* ---- KFD BOs ---- */

static int lend(struct share_process *me, unsigned int n, struct share_gpu *other)
{
	struct kfd_bo *bo = have.bo[n];
	int err = kfd_bo_share(&me->kfd, bo, other->gpu);

	return err ? err : share_view_gpu(me, n, other, bo->va, 0, SHARE_PAGES, true);
}

/* The KFD's own file loses its handle of an import when one is freed: the next one is an object of its own. */
static int lose_handle(struct share_process *me, struct share_gpu *gpu)
{
	int err = share_bo_import_bare(me, gpu, have.it_fd);

	return err ? err : share_bo_drop(me, &me->objects.bos[me->objects.nr_bos - 1]);
}

int share_keep_handle(struct share_process *me, struct share_gpu *gpu, const struct kfd_bo *bo, bool exporter)
{
	int file = gpu->gpu->render_fd;
	uint32_t handle = 0;
	int err = share_handle_of_bo(me, file, bo, &handle);

	if (err || !exporter)
		return err;
	return share_handle_describe(me, file, handle, 0, share_token, sizeof(share_token));
}

static int import(struct share_process *me, struct share_gpu *gpu)
{
	return share_bo_import(me, have.it, gpu, have.it_fd, &have.bo[have.it]);
}

/* Takes @nr buffers in the order in which they come, with a free KFD number before each import. */
static int take(struct share_process *me, unsigned int nr)
{
	struct share_gpu *gpu = &me->gpus[0];
	struct kfd_bo *fillers[SHARE_MAX_PROCESSES];
	int err = 0;

	for (unsigned int i = 0; !err && i < nr; i++) {
		err = share_bo_bare(me, gpu, KFD_MEMORY_GTT, &fillers[i]);
		err = err ? err : share_receive(me, &have.it, &have.it_fd);
		if (err)
			return err;
		err = import(me, gpu);
		close(have.it_fd);
		if (!err && share_is_second(me))
			err = share_keep_handle(me, gpu, have.bo[have.it], false);
	}
	for (unsigned int i = 0; !err && i < nr; i++)
		err = share_bo_drop(me, fillers[i]);
	return err;
}

static int do_bo(struct share_process *me, const struct share_step *s)
{
	struct share_gpu *gpu = &me->gpus[s->c];

	switch (s->what & ~WHEN) {
	case BO: return share_bo_new(me, number(s->a), gpu, s->b, &have.bo[s->a]);
	case BARE: return share_bo_bare(me, gpu, s->b, &have.bo[s->a]);
	case DROP: return share_bo_drop(me, have.bo[s->a]);
	case UNVIEW: share_views_drop(me, number(s->a)); return 0;
	case SEND: return share_send_bo(me, number(s->b), number(s->a), have.bo[s->a]);
	case LEND: return lend(me, number(s->a), &me->gpus[s->b]);
	case KEPT: return share_keep_handle(me, &me->gpus[s->b], have.bo[s->a], true);
	case IMPORT: return import(me, &me->gpus[s->a]);
	case IMPORT_BARE: return share_bo_import_bare(me, &me->gpus[s->a], have.it_fd);
	case LOSE: return lose_handle(me, &me->gpus[s->a]);
	case TAKE: return take(me, number(s->a));
	case RECEIVE: return share_receive(me, &have.it, &have.it_fd);
	case PUT_AWAY: return close(have.it_fd);
	case MEET: return share_meet(me);
	}
	return -EOPNOTSUPP;
}

/* ---- handles and mappings ---- */

static int map(struct share_process *me, const struct share_step *s)
{
	struct share_gpu *gpu = s->c == BY_CPU ? NULL : &me->gpus[s->c];
	unsigned int n = number(s->d);
	uint64_t va = 0;
	int err = share_map_gpu(me, number(s->a), file_of(me, s->b), gpu, have.handle[n], number(s->e), number(s->f),
				(uint32_t)s->g, &va);

	have.va[n] = have.va[n] ? have.va[n] : va; /* of all of it, which comes first */
	return err;
}

static int map_cpu(struct share_process *me, const struct share_step *s)
{
	unsigned int n = number(s->a);
	void *at = s->e ? (void *)(uintptr_t)have.va[n] : NULL;

	return share_map_cpu(me, n, file_of(me, s->b), have.handle[n], number(s->c), s->d, at);
}

/* Its first contents, by the GPU where it is mapped, or by the CPU that has just mapped it. */
static int fill(struct share_process *me, const struct share_step *s)
{
	if (s->b == BY_CPU)
		return share_fill(number(s->a), NULL, 0, me->views[me->nr_views - 1].cpu);
	return share_fill(number(s->a), &me->gpus[s->b], have.va[s->a], NULL);
}

static int describe(struct share_process *me, const struct share_step *s)
{
	static const uint8_t longer[40] = { 1, 2, 3, 5, 8, 13, 21, 34 };

	return share_handle_describe(me, file_of(me, s->b), have.handle[s->a], (uint64_t)s->c,
				     s->d ? longer : share_token, s->d ? number(s->d) : sizeof(share_token));
}

/* With gaps: a timeline, one that is signaled, one without a fence. */
static int syncobjs_new(struct share_process *me, int file)
{
	uint32_t fillers[2];
	int err = share_syncobj_new(me, file, SHARE_SYNCOBJ_POINT, false);

	err = err ? err : syncobj_create(file, false, &fillers[0]);
	err = err ? err : share_syncobj_new(me, file, 0, true);
	err = err ? err : syncobj_create(file, false, &fillers[1]);
	err = err ? err : share_syncobj_new(me, file, 0, false);
	err = err ? err : syncobj_destroy(file, fillers[0]);
	return err ? err : syncobj_destroy(file, fillers[1]);
}

static int do_handle(struct share_process *me, const struct share_step *s)
{
	switch (s->what & ~WHEN) {
	case CREATE: return share_handle_create(me, file_of(me, s->b), number(s->c), number(s->d), &have.handle[s->a]);
	case HANDLE_OF: return share_handle_of_bo(me, file_of(me, s->b), have.bo[s->a], &have.handle[s->c]);
	case HANDLE: return share_handle_import(me, file_of(me, s->a), have.it_fd, &have.handle[have.it]);
	case CLOSE: return share_handle_drop(me, file_of(me, s->b), have.handle[s->a]);
	case DESCRIBE: return describe(me, s);
	case MAP: return map(me, s);
	case CPU: return map_cpu(me, s);
	case FILL: return fill(me, s);
	case SYNCOBJS: return syncobjs_new(me, file_of(me, s->a));
	}
	return -EOPNOTSUPP;
}

/* ---- files ---- */

static int keep_twice(struct share_process *me, unsigned int n)
{
	int err = share_dmabuf_keep(me, n, have.fd[n], "weights"), second;

	if (err)
		return err;
	second = fcntl(have.fd[n], F_DUPFD_CLOEXEC, 0);
	return second < 0 ? report(errno, "duplicating a dma-buf: %m") : share_dmabuf_keep(me, n, second, NULL);
}

static int open_files(struct share_process *me, unsigned int first, unsigned int last)
{
	int file, err = 0;

	for (unsigned int i = first; !err && i <= last && i < me->kfd.nr_gpus; i++)
		err = share_file_open(me, &me->kfd.gpus[i], &file);
	return err;
}

/* A process that is forked has nothing of its parent's but what it is told to keep. */
static int forget(struct share_process *me)
{
	have.parents = me->objects;
	share_objects_forget(me);
	return 0;
}

static int inherit_dmabufs(struct share_process *me)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < have.parents.nr_dmabufs; i++)
		err = share_dmabuf_keep(me, have.parents.dmabufs[i].buffer, have.parents.dmabufs[i].fd, NULL);
	return err;
}

static int do_file(struct share_process *me, const struct share_step *s)
{
	switch (s->what & ~WHEN) {
	case EXPORT: return kfd_bo_export(&me->kfd, have.bo[s->a], &have.fd[s->a]);
	case EXPORT_HANDLE: return gem_export(file_of(me, s->b), have.handle[s->a], s->c, &have.fd[s->a]);
	case SEND_FD: return share_send(me, number(s->b), number(s->a), have.fd[s->a]);
	case CLOSE_FD: return close(have.fd[s->a]);
	case KEEP: return share_dmabuf_keep(me, number(s->a), s->a == IT ? have.it_fd : have.fd[s->a], NULL);
	case KEEP_TWICE: return keep_twice(me, number(s->a));
	case OPEN: return open_files(me, number(s->a), number(s->b));
	case SHARED: me->objects.files[s->a].alone = false; return 0;
	case SEND_FILE: return share_send(me, number(s->b), 0, file_of(me, s->a));
	case KEEP_FILE: return share_file_keep(me, have.it_fd, true, false);
	case FORGET: return forget(me);
	case INHERIT_DMABUFS: return inherit_dmabufs(me);
	case INHERIT_FILE: return share_file_keep(me, have.parents.files[have.parents.nr_files - 1].fd, true, false);
	case LEND_CPU: return share_bo_lend(have.bo[s->a]);
	case BORROW: return share_bo_borrow(me, number(s->a), &have.parents.bos[0]);
	case RENUMBER: return kfd_renumber(&me->kfd.fd, 500);
	case IF_GPU:
	case IF_SECOND: return 0;
	}
	return -EOPNOTSUPP;
}

/* ---- all ---- */

static int step_run(struct share_process *me, const struct share_step *s)
{
	unsigned int what = s->what & ~WHEN;

	if (s->what & WHEN && share_is_second(me) != !!(s->what & SECOND))
		return 0;
	return what <= LAST_OF_BOS ? do_bo(me, s) : what <= LAST_OF_HANDLES ? do_handle(me, s) : do_file(me, s);
}

static bool is_end(const struct share_process *me, const struct share_step *s)
{
	return !s->what || (s->what == IF_GPU && me->kfd.nr_gpus <= number(s->a)) ||
	       (s->what == IF_SECOND && !share_is_second(me));
}

int share_steps_run(struct share_process *me)
{
	const struct share_step *step = NULL;
	int err = 0;

	for (unsigned int i = 0; i < SHARE_STEPS_OF && i <= me->number; i++)
		step = me->kase->steps[i] ? me->kase->steps[i] : step;
	for (; !err && step && !is_end(me, step); step++)
		err = step_run(me, step);
	return err;
}
