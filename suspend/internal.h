/* SPDX-License-Identifier: GPL-2.0-only */
/* A process that is suspended, and what outlives the command that does it. */
#ifndef SUSPEND_INTERNAL_H
#define SUSPEND_INTERNAL_H

#include "amdgpu_plugin_util.h"
#include "kernel/kernel.h"
#include "share/share.h"
#include "suspend/suspend.h"

/* ---- the record (record.c) ---- */

/* How far a process is. */
enum phase {
	PHASE_COPYING,	/* its queues are stopped, nothing of it has changed */
	PHASE_CHANGING, /* all contents are saved; some buffers are there, others are not; registers may be a call's */
	PHASE_SUSPENDED,
	PHASE_WHOLE, /* all buffers have their contents, queues may run already */
};

/* A mapping by the CPU of a buffer that goes. */
struct suspend_vma {
	uint64_t start, end; /* addresses */
	uint64_t offset;     /* into the buffer */
	uint32_t bo;
	uint32_t minor; /* render minor */
	int32_t prot, flags;
	bool dontfork;
};

/* What becomes of a buffer. */
enum going {
	GOES_NOT,
	GOES,		    /* it is given up, and comes back */
	GOES_NOT_AFTER_ALL, /* its contents are saved, but it could not be given up */
};

struct record_head {
	char magic[8];
	uint32_t version, crc; /* of the head's rest */
	uint32_t parts_crc;    /* of what follows it */
	uint32_t phase;
	int32_t pid;
	uint64_t start; /* process_start() */
	int64_t since;
	uint32_t was_stopped, made_dir; /* made_dir: it goes with what is in it */
	uint32_t is_frozen, was_frozen; /* its own cgroup: by us, and before that by somebody else */
	int32_t kfd_number;		/* of the process' descriptor */
	struct inject_thread thread;
	char follows[PATH_MAX]; /* suspend_target.follows */
	struct suspend_report report;
	uint32_t nr_devices, nr_bos, nr_objects, nr_vmas;
	uint64_t priv_size;
	char dir[PATH_MAX];
};

struct process {
	/* What its record has. */
	struct record_head head;
	struct gpu_process gpu;	  /* its state; file.fd: our duplicate, -1: it has no /dev/kfd */
	uint8_t *goes;		  /* enum going, one for each BO */
	struct suspend_vma *vmas; /* by buffer */
	/* What this call knows of it. */
	struct hold hold;
	bool has_ended, is_changed;
	struct inject inject;
	int *fds; /* its descriptors of render nodes */
	uint32_t *fd_minors;
	size_t nr_fds;
};

static inline bool process_has_kfd(const struct process *process)
{
	return process->gpu.file.fd >= 0;
}

/* Writes its record for good, with this phase, and with the registers that the thread has of its own. */
int record_set(struct process *process, enum phase phase);
/* As it is. Without /dev/kfd there is no state. */
int record_write(struct process *process);
/* Fills a process that has nothing but its pid. -ENOENT, no message: there is no record. */
int record_read(struct process *process);
int record_read_head(pid_t pid, struct record_head *ret);
/* Forgets the process: its record, and its files of contents. */
void record_remove(const struct record_head *head);
/* Whether the process of the record is still there. */
bool record_is_alive(const struct record_head *head);

/* ---- a call ---- */

/* A cgroup that somebody else has frozen. */
struct thawed {
	char *path;
	int watch;	  /* cgroup_watch(); -errno */
	bool was_written; /* by somebody else, since it was thawed */
	bool is_late;	  /* it was frozen while calls were made, and so by nobody of us */
};

/* All that one call is about. */
struct cut {
	struct process *processes;
	size_t nr;
	const struct settings *settings;
	struct topology *machine;
	struct driver_release driver;
	double began, wait_until; /* monotonic_seconds() */
	struct thawed *thawed;
	size_t nr_thawed;
};

void thawed_done(struct thawed *thawed);
struct cut cut_begin(const struct settings *settings);
/* Before the processes are looked at. */
int cut_read_machine(struct cut *cut);
/* Adds those processes of the target that are not there yet: how many, or -errno. */
int cut_add(struct cut *cut, const struct suspend_target *target);
bool cut_has(const struct cut *cut, pid_t pid);
/* Those with /dev/kfd whose contents are in @dir, NULL: wherever. *ret: heap memory of the caller. 0 or -ENOMEM. */
int cut_list(struct cut *cut, const char *dir, struct gpu_process ***ret, size_t *ret_nr);
/* Lets all go that is held. */
void cut_end(struct cut *cut);
/* Nodes and minors, when the state is there; the descriptors of render nodes. */
int process_look(struct cut *cut, struct process *process);
/* Opens the directory; *ret is the caller's. */
int open_dir(const char *dir, int *ret);
/* Copies contents of all processes with this directory, out or in, those of buffers that go and have a dma-buf. */
int cut_copy(struct cut *cut, const char *dir, bool out);
int cut_report(const struct cut *cut, struct suspend_result *ret);

/* ---- how they stand still (still.c) ---- */

/* When all are seized: they stay stopped when the tracer goes, and can make calls. */
int still_for_calls(struct cut *cut);
/* Looks at the thread that is to make calls: whoever freezes it meanwhile has to wait for their end. */
int still_look(struct cut *cut, struct process *process);
/* Freezes what can be frozen of processes that stay suspended, and notes it in their records. */
void still_freeze(struct cut *cut);
/* After that: what somebody else had frozen, and has not thawed meanwhile, is so again. @stay: the processes are
 * suspended. */
void still_after(struct cut *cut, bool stay);

/* ---- what goes (plan.c) ---- */

/* Decides for all processes, whose states are there: goes, vmas, bytes. @request: all but the processes. */
int plan_all(struct cut *cut, struct share_request *request);

/* ---- calls in a process (calls.c): -errno of the call itself without a message, but -ESRCH, -ETIME, -EIO of inject.h
 * ---- */

/* Gives up a buffer, whose mappings are at @offset of its render node. *ret_kept: it could not, and is as it was. */
int calls_free(struct process *process, size_t bo, uint64_t offset, bool *ret_kept);
/* Has it again: -ENOMEM when the GPU has no room. @now: it is there, but for mappings; NULL: it is not. */
int calls_make(struct process *process, size_t bo, const struct bo *now);
int calls_mark(struct process *process);
int calls_unmark(struct process *process);
/* Takes the lowest free number of a GPU. */
int calls_fill_number(struct process *process, uint32_t gpu_id, uint64_t *ret_handle);
int calls_free_number(struct process *process, uint64_t handle);

#endif
