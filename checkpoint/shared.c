// SPDX-License-Identifier: GPL-2.0-only
/*
 * What all tasks of a restore and criu's main process have in common.
 *
 * When a task that holds the lock dies, criu ends the others as well.
 *
 * A cgroup is known by its directory in criu's fd store and a name in it. Paths would not do: a task may be in another
 * mount and cgroup namespace than criu.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/internal.h"
#include "host/host.h"

/* A task that was killed is in its cgroup until it has given back all its memory. */
#define REMOVE_ATTEMPTS	  100
#define REMOVE_RETRY_USEC 10000

enum cgroup_state { CGROUP_FREE, CGROUP_TAKEN, CGROUP_VALID };

struct shared *shared_new(void)
{
	struct shared *shared = shared_memory_new(sizeof(*shared));
	pthread_mutexattr_t between_processes;

	if (!shared)
		return NULL;
	pthread_mutexattr_init(&between_processes);
	pthread_mutexattr_setpshared(&between_processes, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared->lock, &between_processes);
	pthread_mutexattr_destroy(&between_processes);
	return shared;
}

/* ---- tasks with state on GPUs ---- */

int shared_add_task(struct shared *shared, bool has_kfd, const struct kfd_state *state, const struct queue_record *queues,
		    size_t nr_queues)
{
	bool has_place, has_room;

	pthread_mutex_lock(&shared->lock);
	has_place = shared->nr_tasks < SHARED_MAX_TASKS;
	has_room = nr_queues <= SHARED_MAX_QUEUES - shared->nr_queues;
	if (has_place && has_room) {
		struct shared_task *task = &shared->tasks[shared->nr_tasks++];

		*task = (struct shared_task){
			.pid = getpid(), .has_kfd = has_kfd, .first_range = shared->nr_ranges,
			.first_queue = shared->nr_queues, .nr_queues = (unsigned int)nr_queues,
		};
		/* Of which RESUME takes the pages; more than there is room for are left out. */
		for (uint32_t i = 0; has_kfd && i < state->nr_ranges && shared->nr_ranges < SHARED_MAX_RANGES; i++)
			if (!state->ranges[i].on_demand)
				shared->ranges[shared->nr_ranges++] = state->ranges[i];
		task->nr_ranges = shared->nr_ranges - task->first_range;
		for (size_t i = 0; i < nr_queues; i++)
			shared->queues[shared->nr_queues++] = queues[i];
	}
	pthread_mutex_unlock(&shared->lock);
	if (!has_place)
		return fail(-E2BIG, "more than %d processes with AMD GPUs cannot be restored", SHARED_MAX_TASKS);
	return has_room ? 0 : fail(-E2BIG, "more than %u queues of gfx11 cannot be restored", SHARED_MAX_QUEUES);
}

const struct shared_task *shared_find_task(const struct shared *shared, pid_t own_pid)
{
	for (unsigned int i = 0; i < shared->nr_tasks; i++)
		if (shared->tasks[i].pid == own_pid)
			return &shared->tasks[i];
	return NULL;
}

/* ---- GPUs that are reset meanwhile ---- */

static int losses_of_file(uint32_t minor, int fd, uint32_t *ret)
{
	int err = drm_count_losses(fd, ret);

	return err ? fail(err, "cannot ask renderD%u for resets: %m", minor) : 0;
}

int shared_note_gpu(struct shared *shared, uint32_t minor, int store_id)
{
	_cleanup_close_ int fd = criu_kept_file(store_id);
	struct shared_gpu gpu = { .minor = minor, .store_id = store_id };
	unsigned int i = 0;
	int err = fd < 0 ? fd : losses_of_file(minor, fd, &gpu.losses);

	if (err)
		return err;
	pthread_mutex_lock(&shared->lock);
	while (i < shared->nr_gpus && shared->gpus[i].minor != minor)
		i++;
	if (i == shared->nr_gpus && i < SHARED_MAX_GPUS)
		shared->gpus[shared->nr_gpus++] = gpu;
	pthread_mutex_unlock(&shared->lock);
	return 0;
}

int shared_check_losses(const struct shared *shared)
{
	for (unsigned int i = 0; i < shared->nr_gpus; i++) {
		const struct shared_gpu *gpu = &shared->gpus[i];
		_cleanup_close_ int fd = drm_open_minor(gpu->minor);
		uint32_t losses = 0;
		int err;

		/* By a file of criu's own: the first call on a task's file would wait for RCU (kernel/tasks.c). */
		if (fd < 0)
			fd = criu_kept_file(gpu->store_id);
		err = fd < 0 ? fd : losses_of_file(gpu->minor, fd, &losses);
		if (err)
			return err;
		if (losses != gpu->losses)
			return fail(-EIO, "the driver has reset the GPU of renderD%u during the restore, and what was in its VRAM is "
				    "lost: restore again (the kernel's log may say why)", gpu->minor);
	}
	return 0;
}

/* ---- temporary cgroups ---- */

static int cgroup_made(void *arg, int dir, const char *name)
{
	struct shared_keeper *keeper = arg;
	struct shared_cgroup *cgroup = keeper->shared->cgroups, *end = cgroup + SHARED_MAX_CGROUPS;
	int is_free = CGROUP_FREE, store_id;

	while (cgroup < end && !atomic_compare_exchange_strong(&cgroup->state, &is_free, CGROUP_TAKEN)) {
		cgroup++;
		is_free = CGROUP_FREE;
	}
	if (cgroup == end)
		return -ENOSPC;
	store_id = cgroup->store_id = criu_keep_files(&dir, 1);
	if (store_id < 0) {
		atomic_store(&cgroup->state, CGROUP_FREE);
		return store_id;
	}
	snprintf(cgroup->name, sizeof(cgroup->name), "%s", name);
	atomic_store(&cgroup->state, CGROUP_VALID);
	keeper->own = cgroup;
	return 0;
}

static void cgroup_removed(void *arg)
{
	struct shared_keeper *keeper = arg;

	atomic_store(&keeper->own->state, CGROUP_FREE);
}

void shared_keeper_init(struct shared_keeper *keeper, struct shared *shared)
{
	*keeper = (struct shared_keeper){ .hooks = { cgroup_made, cgroup_removed, keeper }, .shared = shared };
}

static void remove_left_cgroup(const struct shared_cgroup *cgroup)
{
	_cleanup_close_ int dir = criu_kept_file(cgroup->store_id);
	int err = dir < 0 ? dir : -EBUSY;

	for (int i = 0; dir >= 0 && err == -EBUSY && i < REMOVE_ATTEMPTS; i++) {
		if (i)
			usleep(REMOVE_RETRY_USEC);
		err = unlinkat(dir, cgroup->name, AT_REMOVEDIR) ? -errno : 0;
	}
	if (err && err != -ENOENT)
		pr_warn("the cgroup %s could not be removed: %s\n", cgroup->name, strerror(-err));
}

void shared_free(struct shared *shared)
{
	if (!shared)
		return;
	for (size_t i = 0; i < SHARED_MAX_CGROUPS; i++)
		if (atomic_load(&shared->cgroups[i].state) == CGROUP_VALID)
			remove_left_cgroup(&shared->cgroups[i]);
	munmap(shared, sizeof(*shared));
}
