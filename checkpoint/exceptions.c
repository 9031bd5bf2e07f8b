// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a program is told of exceptions in its queues, which CHECKPOINT leaves out.
 *
 * RUNTIME_ENABLE has the KFD tell the program. The head of each queue's save area has the address
 * (kfd_send_exception_to_runtime() of Linux' kfd_process.c). The kernel does not say whether it was called, but only then
 * ROCm fills that head. Linux 6.5 and later have it.
 *
 * The kernel does not say either which trap handler SET_TRAP_HANDLER has set: it is lost.
 */
#include <fcntl.h>

#include "amdgpu_plugin_util.h"
#include "checkpoint/internal.h"

int runtime_find(pid_t pid, struct kfd_state *state)
{
	_cleanup_close_ int memory = -1;
	bool told = false;

	for (uint32_t i = 0; !told && i < state->nr_queues; i++) {
		const struct queue_record *queue = &state->queues[i];
		struct kfd_context_save_area_header head;

		if (queue->type != QUEUE_TYPE_COMPUTE || !queue->cwsr_address)
			continue;
		if (memory < 0)
			memory = proc_open(pid, "mem", O_RDONLY);
		if (memory < 0)
			return fail(memory, "cannot open /proc/%d/mem: %m", pid);
		/* What cannot be read, the KFD cannot read either. */
		told = pread(memory, &head, sizeof(head), (off_t)queue->cwsr_address) == sizeof(head) && head.err_payload_addr;
	}
	state->runtime_enabled = told;
	pr_warn("pid %d: a trap handler that ROCm has set is not saved, so that restored kernels continue after a failed assertion\n", pid);
	return 0;
}

/* The address of ROCr's own state, for a debugger that comes later, is not known. */
int runtime_enable(int fd, const struct kfd_state *state)
{
	struct kfd_ioctl_runtime_enable_args args = { .mode_mask = KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK };
	int err;

	if (!state->runtime_enabled)
		return 0;
	err = call_ioctl(fd, AMDKFD_IOC_RUNTIME_ENABLE, &args);
	if (err)
		return fail(err, "pid %u: the KFD does not take RUNTIME_ENABLE, without which the program does not hear of "
			    "exceptions in its queues: %m; restore it on a driver of the release where it was dumped",
			    state->pid);
	pr_info("pid %u: told of exceptions in its queues\n", state->pid);
	return 0;
}
