// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is known at dump not to be restored, or to be restored wrong, is refused before anything is saved: the process would
 * be gone then. Limits that depend on the kind of GPU are in kernel/limits.c.
 */
#include <inttypes.h>
#include <sys/sysmacros.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/internal.h"
#include "host/host.h"
#include "kernel/kernel.h"

/* ---- processes and files ---- */

int refuse_suspended_queues(pid_t pid, const struct kfd_state *state, const struct topology *machine,
			    const struct driver_release *driver, bool is_forced)
{
	for (size_t i = 0; i < state->nr_devices; i++) {
		int node = topology_find_gpu(machine, state->devices[i].actual_gpu_id);

		if (node >= 0 && mes_maps(machine->nodes[node]))
			return fail(-EOPNOTSUPP, "pid %d: is suspended, and its GPU %#x is a gfx11, whose queues a restore makes "
				    "again and lets run: resume it first (\"amdgpu-checkpoint resume %d\")", pid,
				    state->devices[i].user_gpu_id, pid);
	}
	if (is_forced || !limits_are_busy(state, machine, driver, false))
		return 0;
	return fail(-EOPNOTSUPP, "pid %d: was suspended in the middle of a kernel, and this driver (%s) restores idle queues only: "
		    "resume it first (\"amdgpu-checkpoint resume %d\") (KFD_RESTORABLE_CHECK=0 tries it anyway)", pid, driver->text, pid);
}

int refuse_suspended_unseen(void)
{
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0;
	int err = tasks_list_traced(&pids, &nr);

	for (size_t i = 0; !err && i < nr; i++)
		if (task_find_mark(pids[i], -1) >= 0)
			err = fail(-EOPNOTSUPP, "pid %d: is suspended, and its GPU memory is freed: resume it first "
				   "(\"amdgpu-checkpoint resume %d\")", pids[i], pids[i]);
	return err;
}

/* A newly opened render file already has memory of the driver's: compared with that, not with 0. */
int refuse_used_file(const struct task_file *file, bool is_saved)
{
	_cleanup_close_ int fd = drm_open_minor(file->minor);
	struct drm_holdings holdings, fresh;
	int err = fd < 0 ? fd : drm_ask_holdings(fd, &fresh);

	if (!err)
		err = drm_ask_holdings(file->fd, &holdings);
	if (err)
		return fail(err, "pid %d: cannot ask renderD%u for what its file holds: %m", file->pid, file->minor);
	if (!holdings.nr_contexts && !holdings.has_computed &&
	    (is_saved || (!holdings.nr_syncobjs && holdings.memory_kib <= fresh.memory_kib)))
		return 0;
	return fail(-EOPNOTSUPP, "pid %d: has renderD%u open and not /dev/kfd, and the file is in use: %u contexts, %u "
		    "syncobjs, %" PRIu64 " KiB of system memory (%" PRIu64 " when new)%s: that cannot be saved",
		    file->pid, file->minor, holdings.nr_contexts, holdings.nr_syncobjs, holdings.memory_kib,
		    fresh.memory_kib, holdings.has_computed ? ", jobs" : "");
}

int refuse_file_under_way(const struct stat *st)
{
	char name[32] = "/dev/kfd";

	if (!device_is_kfd(st))
		snprintf(name, sizeof(name), "renderD%u", minor(st->st_rdev));
	return fail(-EOPNOTSUPP, "a descriptor of %s was sent over a socket (SCM_RIGHTS) and not received yet, or is open "
		    "outside of the tasks that are being dumped: it cannot be saved", name);
}

/* Userptr memory and SVM ranges: what the GPU writes does not make a page look changed. */
int refuse_incremental(void)
{
	if (!criu_is_incremental())
		return 0;
	criu_forget_parent();
	return fail(-EOPNOTSUPP, "a process with an AMD GPU cannot be dumped on top of earlier images "
		    "(--prev-images-dir): the GPU's writes to memory are not tracked; the link \"parent\" to them is "
		    "removed, dump again without them");
}

/* The process that serves the memory afterwards cannot go on when the restore is refused. */
int refuse_lazy_dump(void)
{
	if (!criu_is_asked_for_lazy_pages())
		return 0;
	return fail(-EOPNOTSUPP, "a process with an AMD GPU cannot be dumped with --lazy-pages: the driver does not "
		    "wait for memory that comes after the restore");
}

static int ask_kfd(pid_t pid, struct task_kfd *ret)
{
	int err = task_ask_kfd(pid, ret);

	if (err)
		return fail(err, "pid %d: cannot look for it among the KFD's processes: %m", pid);
	return 0;
}

int refuse_context(pid_t pid)
{
	return fail(-EOPNOTSUPP, "pid %d: has a second KFD context (CREATE_PROCESS), which cannot be saved: dump it "
		    "when the program has closed the file of that context", pid);
}

int refuse_process(const struct gpu_process *process, const struct task_files *files, const struct topology *machine,
		   bool is_forced)
{
	const struct kfd_state *state = &process->state;
	_cleanup_close_ int fd = -1;
	struct task_kfd kfd = { 0 };
	pid_t pid = process->file.pid, own = task_own_pid(pid);
	unsigned int nr;
	int err;

	/*
	 * criu restores a file in the task with the lowest pid that has it open. The KFD's has to be restored in the process
	 * that opened it.
	 */
	if (own != (pid_t)state->pid)
		return fail(-EOPNOTSUPP, "pid %d (%d in its pid namespace): has inherited its /dev/kfd from pid %u, which has "
			    "a higher pid: criu would restore the GPU state in the wrong process (close /dev/kfd in pid %d, or "
			    "restart the job)", pid, own, state->pid, pid);
	err = ask_kfd(pid, &kfd);
	if (err)
		return err;
	/* RESTORE knows the first context of a process only. */
	if (kfd.nr_contexts)
		return refuse_context(pid);
	if (is_forced)
		return 0;
	/* The task itself makes the ioctl at restore. */
	if (task_is_in_user_ns(pid))
		return fail(-EOPNOTSUPP, "pid %d: is in a user namespace, where the kernel does not restore GPU state: "
			    "CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN is needed in the initial one (KFD_RESTORABLE_CHECK=0 "
			    "dumps it anyway)", pid);
	if (!state->nr_bos) {
		fd = kfd_open();
		if (fd < 0 || kfd_restores_without_bos(fd))
			return fd < 0 ? fd : 0;
		return fail(-EOPNOTSUPP, "pid %d: has no buffers on its GPUs, and this kernel does not restore such a process "
			    "(Linux 6.18 does, and some before it; KFD_RESTORABLE_CHECK=0 dumps it anyway)", pid);
	}
	/* The kernel looks up each BO in the address space of every GPU that the process sees, and oopses without one. */
	nr = task_files_count_spaces(files, pid, kfd.pasid, machine);
	if (nr >= state->nr_devices)
		return 0;
	return fail(-EOPNOTSUPP, "pid %d: sees %u GPUs and has an address space on %u: kernels crash when they save "
		    "buffers of a process without an address space on each GPU that it sees (KFD_RESTORABLE_CHECK=0 "
		    "tries it anyway)", pid, state->nr_devices, nr);
}

/*
 * criu before 4.3 saves such a timer, and fails when it makes it again: the kernel wants the thread. Later it makes one that
 * tells nobody, which is what such a timer does.
 */
int refuse_timers(pid_t pid)
{
	pid_t tid = task_timer_of_ended_thread(pid);

	if (!tid || criu_running_hooks() > CRIU_HOOK_DUMP_FINISH)
		return 0;
	return fail(-EOPNOTSUPP, "pid %d: has a POSIX timer for its thread %d, which has ended: criu before 4.3 saves such a timer "
		    "and cannot restore it (KFD_RESTORABLE_CHECK=0 dumps it anyway)", pid, tid);
}

int refuse_mappings(pid_t pid, const struct topology *machine, bool is_saved)
{
	_cleanup_free_ struct device_vma *vmas = NULL;
	struct task_kfd kfd;
	size_t count = 0;
	int err = task_device_vmas(pid, &vmas, &count);

	if (err)
		return err;
	for (size_t i = 0; i < count; i++) {
		int r = vma_is_foreign(machine, &vmas[i]);
		char node[32] = "/dev/kfd";

		if (r < 0)
			return r;
		if (r || (vmas[i].minor && is_saved))
			continue;
		if (vmas[i].minor)
			snprintf(node, sizeof(node), "renderD%u", vmas[i].minor);
		return fail(-EOPNOTSUPP, "pid %d: mapping at %#" PRIx64 " of %s: the process has no /dev/kfd open (it has "
			    "inherited the mapping, or closed the file): that cannot be saved", pid, vmas[i].start, node);
	}
	/*
	 * A KFD process lives until its memory is gone, and has buffers and queues without any file. One that has neither, such
	 * as that of a program that asked for the GPUs and closed them again, is no longer needed.
	 */
	err = ask_kfd(pid, &kfd);
	if (err || !(kfd.nr_queues || kfd.vram_bytes))
		return err;
	return fail(-EOPNOTSUPP, "pid %d: has closed /dev/kfd, but still has %u queues and %" PRIu64 " KiB of VRAM on GPUs, "
		    "which cannot be saved without it: dump when the program has freed them, or let it keep the file open", pid,
		    kfd.nr_queues, kfd.vram_bytes >> 10);
}
