// SPDX-License-Identifier: GPL-2.0-only
/* make_record PID PHASE DIR: writes the record of a process that is suspending, suspended or locked, without a GPU. */
#include <stdio.h>
#include <stdlib.h>

#include "suspend/internal.h"

static enum phase phase_of(const char *word)
{
	if (!strcmp(word, "suspended"))
		return PHASE_SUSPENDED;
	return strcmp(word, "locked") ? PHASE_TRYING : PHASE_LOCKED;
}

int main(int argc, char **argv)
{
	struct process process = { .head = { .pid = argc == 4 ? atoi(argv[1]) : 0 } };
	struct record_head *head = &process.head;

	if (!head->pid || datadir_make_run() || record_begin(head, 0x5eed))
		return 1;
	head->phase = phase_of(argv[2]);
	head->report.has_kfd = true;
	head->report.freed_bytes = 5 << 20;
	head->report.kept_bytes[KEPT_BY_QUEUES] = 1 << 20;
	snprintf(head->dir, sizeof(head->dir), "%s", argv[3]);
	return record_write(&process) ? 1 : 0;
}
