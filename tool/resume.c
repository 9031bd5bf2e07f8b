// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lets the GPU queues of a process run again that a killed criu, and its guard with it, have left stopped.
 *
 * The kernel takes that from the tracer of the process alone, and a process has one: what criu or a debugger has at
 * this moment is refused before anything is asked of the driver. The driver leaves queues alone that run.
 * The process is not stopped, and is let go with the end of this program.
 */
#define _GNU_SOURCE
#include <sys/ptrace.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "kernel/kernel.h"
#include "tool/commands.h"

int resume_queues(int pid)
{
	struct task_files files = { 0 };
	int err, status = TOOL_BAD;
	bool has_kfd = false;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		return complain("pid %d: %s%s", pid, strerror(errno),
				errno == EPERM ? " (only root may, and not while criu or a debugger traces it)" : "");
	if (task_files_collect(drm_says_amd, &files))
		return TOOL_FAIL;
	for (size_t i = 0; i < files.count; i++) {
		const struct task_file *file = &files.files[i];

		has_kfd |= !file->minor;
		if (file->minor || status != TOOL_BAD) /* one file of the process itself is enough, whatever else it has */
			continue;
		err = kfd_unpause(file->fd);
		if (!err)
			print_text("pid %d: its GPU queues were stopped and run again\n", file->pid);
		else if (err == -EINVAL)
			print_text("pid %d: its GPU queues were not stopped\n", file->pid);
		else if (err == -EBADF) /* it has inherited the file */
			complain("pid %d: file %d of /dev/kfd is of another process: name that one", file->pid, file->number);
		else
			complain("pid %d: its GPU queues cannot be restarted: %s", file->pid, strerror(-err));
		status = !err || err == -EINVAL ? TOOL_GOOD : err == -EBADF ? TOOL_BAD : TOOL_FAIL;
	}
	if (!has_kfd)
		complain("pid %d: has no file of /dev/kfd open", pid);
	task_files_done(&files);
	return status;
}
