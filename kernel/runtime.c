// SPDX-License-Identifier: GPL-2.0-only
/*
 * RUNTIME_ENABLE has the KFD tell the program of exceptions in its queues, such as a failed assertion. The head of each
 * queue's save area has the address (kfd_send_exception_to_runtime() of Linux' kfd_process.c). The kernel does not say
 * whether it was called, but only then ROCm fills that head. Linux 6.5 and later have it.
 */
#include <fcntl.h>

#include "amdgpu_plugin_util.h"
#include "kernel/driver.h"

/* 1, 0 or -errno. What cannot be read, the KFD cannot read either. */
static int has_exception_address(pid_t pid, const struct queue_record *queue)
{
	struct kfd_context_save_area_header head;
	_cleanup_close_ int memory = -1;
	char path[32];
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		return fail(-errno, "cannot open %s: %m", path);
	got = pread(memory, &head, sizeof(head), (off_t)queue->cwsr_address);
	return got == sizeof(head) && head.err_payload_addr;
}

int runtime_find(pid_t pid, struct kfd_state *state)
{
	bool has_queue = false;
	struct queue_record queue;
	struct records records;
	int told = 0;

	records_begin(state, &records);
	while (!told && records_next_queue(&records, &queue) > 0) {
		if (queue.type != QUEUE_TYPE_COMPUTE || !queue.cwsr_address)
			continue;
		has_queue = true;
		told = has_exception_address(pid, &queue);
	}
	if (told < 0)
		return told;
	state->runtime_enabled = has_queue ? told : state->nr_traps > 0;
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
