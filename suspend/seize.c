// SPDX-License-Identifier: GPL-2.0-only
/* A process that has a record is seized: by a resume, and by a checkpoint of locked processes. */
#include "suspend/internal.h"

int process_read_head(struct process *process)
{
	int err = record_find(process->head.pid, &process->head);

	if (err)
		return err;
	process->has_ended = !record_is_alive(&process->head);
	if (!process->has_ended)
		return record_check(&process->head);
	record_remove(&process->head);
	return 0;
}

int process_seize(struct process *process)
{
	struct task_file *file = &process->gpu.file;
	int err = hold_begin(process->head.pid, true, &process->hold);

	if (!err)
		err = record_read(process);
	/* By now its number may be another one's. */
	if (!err && !record_is_alive(&process->head))
		err = -ENOENT;
	if (!err)
		err = freezer_find_cgroup(process);
	if (err)
		return err;
	freezer_note_stopped(process);
	if (!process->head.report.has_kfd)
		return 0;
	file->number = process->head.kfd_number;
	file->fd = task_take_file(file->pid, file->number);
	return file->fd < 0 ? fail(file->fd, "pid %d: cannot take its /dev/kfd: %m", file->pid) : 0;
}
