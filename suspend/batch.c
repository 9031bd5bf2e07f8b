// SPDX-License-Identifier: GPL-2.0-only
/* The processes that one command suspends or resumes together: what is read of each, and the copies. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "pages/pages.h"
#include "suspend/internal.h"

struct batch batch_begin(const struct settings *settings)
{
	struct batch ret = { .settings = settings, .began = monotonic_seconds(), .waiter.fd = -1 };

	driver_ask_release(DRIVER_VERSION_FILE, &ret.driver);
	return ret;
}

int batch_read_machine(struct batch *batch)
{
	int err = sysfs_read_topology(SYSFS_TOPOLOGY_ROOT, &batch->machine);

	return err == -ENOENT ? fail(err, "this machine has no KFD, and so no GPU that processes could use") : err;
}

bool batch_has(const struct batch *batch, pid_t pid)
{
	for (size_t i = 0; i < batch->nr; i++)
		if (batch->processes[i].head.pid == pid)
			return true;
	return false;
}

int batch_add(struct batch *batch, const struct suspend_target *target)
{
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0, before = batch->nr;
	int err = 0;

	for (size_t i = 0; !err && i < target->nr; i++)
		err = array_add(pids, nr, target->pids[i]);
	if (!err && target->cgroup)
		err = cgroup_processes(target->cgroup, true, &pids, &nr);
	if (err)
		return fail(err, "%s: cannot be asked for its processes: %m", target->cgroup);
	err = target->tree ? processes_add_descendants(&pids, &nr) : 0;
	for (size_t i = 0; !err && i < nr; i++) {
		const struct process process = {
			.head.pid = pids[i],
			.gpu = { .file = { .pid = pids[i], .fd = -1 }, .id = pids[i] },
		};

		if (!batch_has(batch, pids[i]) && (i < target->nr || process_is_alive(pids[i])))
			err = array_add(batch->processes, batch->nr, process);
	}
	return err ? err : (int)(batch->nr - before);
}

bool batch_drop_ended(struct batch *batch, const struct suspend_target *target, size_t i)
{
	struct process *process = &batch->processes[i];

	if (numbers_have(target->pids, target->nr, process->head.pid) || process_is_alive(process->head.pid))
		return false;
	process_done(process);
	memmove(process, process + 1, (--batch->nr - i) * sizeof(*process));
	return true;
}

void thawed_done(struct thawed *thawed)
{
	free(thawed->path);
	if (thawed->watch >= 0)
		close(thawed->watch);
}

void batch_end(struct batch *batch)
{
	wait_end(batch);
	for (size_t i = 0; i < batch->nr; i++)
		process_done(&batch->processes[i]);
	for (size_t i = 0; i < batch->nr_thawed; i++)
		thawed_done(&batch->thawed[i]);
	free(batch->thawed);
	free(batch->parents);
	free(batch->processes);
	topology_free(batch->machine);
}

int process_look(struct batch *batch, struct process *process)
{
	_cleanup_free_ int *numbers = NULL;
	struct gpu_process *gpu = &process->gpu;
	size_t nr = 0;
	int err = kfd_state_nodes(batch->machine, gpu->file.pid, &gpu->state, &gpu->nodes);

	if (!err)
		err = kfd_state_minors(gpu->file.pid, &gpu->state, gpu->nodes, &gpu->minors);
	if (err)
		return err;
	/* Also descriptors of files that another process has opened. */
	err = proc_list(process->head.pid, "fd", &numbers, &nr);
	if (err)
		return fail(err, "pid %d: cannot look at its files: %m", process->head.pid);
	for (size_t i = 0; !err && i < nr; i++) {
		char path[64];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", process->head.pid, numbers[i]);
		if (stat_quietly(AT_FDCWD, path, &st) || !device_is_render_node(&st))
			continue;
		err = array_add(process->fds, process->nr_fds, (struct render_fd){ numbers[i], minor(st.st_rdev) });
	}
	return err;
}

/* ---- copies ---- */

/* Only buffers that are freed, and are allocated now, have data to copy. */
static void choose_data(struct process *process)
{
	struct kfd_state *state = &process->gpu.state;

	for (size_t i = 0; i < state->nr_bos; i++)
		state->bos[i].share.kind =
			process->plan[i] && state->bos[i].dmabuf_fd != KFD_NO_FD ? KFD_BO_OWN : KFD_BO_IMPORT;
}

uint64_t batch_data_bytes(struct batch *batch)
{
	uint64_t bytes = 0;

	for (struct process *process = NULL; (process = batch_next(batch, process));) {
		choose_data(process);
		bytes += pages_bytes(&process->gpu);
	}
	return bytes;
}

int batch_copy(struct batch *batch, const char *dir, bool out)
{
	_cleanup_free_ struct gpu_process **list = NULL;
	struct content_tally tally = { 0 };
	size_t nr = 0;
	int err = 0;

	for (struct process *process = NULL; !err && (process = batch_next(batch, process));) {
		choose_data(process);
		if (process_has_kfd(process) && (out || process_lacks_buffers(process)) && !strcmp(process->head.dir, dir))
			err = array_add(list, nr, &process->gpu);
	}
	if (err || !nr)
		return err;
	return out ? pages_dump(list, nr, batch->settings, &tally) : pages_fill(list, nr, batch->settings, &tally);
}

int batch_report(const struct batch *batch, struct suspend_result *ret)
{
	ret->reports = calloc(batch->nr + 1, sizeof(*ret->reports));
	if (!ret->reports)
		return -ENOMEM;
	for (; ret->nr < batch->nr; ret->nr++) {
		ret->reports[ret->nr] = batch->processes[ret->nr].head.report;
		ret->reports[ret->nr].had_ended = batch->processes[ret->nr].has_ended;
	}
	return 0;
}
