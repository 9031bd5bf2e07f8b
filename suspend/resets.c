// SPDX-License-Identifier: GPL-2.0-only
/*
 * Resets of GPUs: the driver counts how often each has lost its VRAM. The record has the numbers of the suspend, so
 * that a resume can tell what happened since: buffer data are safe, but what had stayed in VRAM is lost.
 */
#include "amdgpu_plugin_drm.h"
#include "suspend/internal.h"

static int ask(pid_t pid, uint32_t minor, uint32_t *ret)
{
	_cleanup_close_ int fd = drm_open_minor(minor);
	int err = fd < 0 ? fd : drm_count_losses(fd, ret);

	return err ? fail(err, "pid %d: cannot ask renderD%u for resets: %m", pid, minor) : 0;
}

int resets_note(struct process *process)
{
	struct record_head *head = &process->head;
	int err = 0;

	for (uint32_t i = 0; !err && i < process->gpu.state.nr_devices && i < ARRAY_SIZE(head->gpus); i++) {
		head->gpus[i].minor = process->gpu.minors[i];
		err = ask(head->pid, head->gpus[i].minor, &head->gpus[i].losses);
		if (!err)
			head->nr_gpus = i + 1;
	}
	return err;
}

int resets_find(const struct record_head *head, uint32_t *ret_minor)
{
	int err = 0;

	*ret_minor = 0;
	for (uint32_t i = 0; !err && !*ret_minor && i < head->nr_gpus; i++) {
		uint32_t losses = 0;

		err = ask(head->pid, head->gpus[i].minor, &losses);
		if (!err && losses != head->gpus[i].losses)
			*ret_minor = head->gpus[i].minor;
	}
	return err;
}
