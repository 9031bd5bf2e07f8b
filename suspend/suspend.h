/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frees the GPU memory of processes in place, and restores it. The processes do not notice.
 *
 * All functions return 0, or -errno after fail(), if nothing else is said.
 */
#ifndef SUSPEND_SUSPEND_H
#define SUSPEND_SUSPEND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/host.h"
#include "kernel/kernel.h"

/* Records, and the file system in memory for the data of those that name no other directory. */
#define SUSPEND_RUN    "/run/amdgpu-checkpoint"
#define SUSPEND_MEMORY SUSPEND_RUN "/memory"

/* Why memory stays on the GPU. */
enum suspend_kept { KEPT_BY_QUEUES, KEPT_BY_SHARING, KEPT_BY_MAPPING, KEPT_BY_RENDER_NODE, SUSPEND_NR_KEPT };

/* A resume that waits for memory (wait.c), as long as its file is open. */
struct suspend_waiter {
	uint64_t since; /* 0: it does not wait yet */
	int fd;		/* -1: none */
};

/* Processes: those that are named, @tree: their descendants, @cgroup (NULL: none): all in and below that directory. */
struct suspend_target {
	const int *pids;
	size_t nr;
	bool tree;
	const char *cgroup;
	/* Of suspend_processes(): the cgroup whose freeze is the reason, noted with the processes; NULL: none. */
	const char *follows;
	bool by_stop; /* the reason is that a signal has stopped them, in that cgroup */
	bool are_locked; /* of suspend_processes() */
	/* Of suspend_processes() and suspend_lock(): SIGALRM ends a caller that has freed nothing by then; 0: never. */
	unsigned int timeout_seconds;
	/* suspend_new_id(), of suspend_processes(). Of suspend_resume(): all processes of that suspend, and no others. */
	uint64_t id;
	/* The place of a suspend_resume() that is tried again and again; NULL: it has one while it waits. */
	const struct suspend_waiter *waiter;
};

/* What has become of a process. */
struct suspend_report {
	pid_t pid;
	bool has_kfd;
	bool had_ended;	      /* before it was resumed */
	uint32_t reset_minor; /* render minor of a GPU that the driver has reset since the suspend; 0: none */
	bool is_held_by_signal; /* not by a frozen cgroup: SIGCONT would let it run */
	uint64_t freed_bytes, kept_bytes[SUSPEND_NR_KEPT]; /* of VRAM */
};

/* Of all that one call has done: seconds until queues are stopped, data are copied, memory is freed or restored. */
struct suspend_times {
	double stopped, copied, done;
};

struct suspend_result {
	struct suspend_report *reports; /* heap memory of the caller */
	size_t nr;
	struct suspend_times times;
	bool is_half; /* locked processes: it has failed when memory of some was freed */
};

/* A number that no other suspend has. */
uint64_t suspend_new_id(void);

/*
 * Suspends processes together: no queue of any runs when the first byte is copied, and all is copied before the first
 * byte is freed. A process without /dev/kfd is only stopped. All are suspended, or none: after an error
 * suspend_resume() with the same id lets those run that have changed. @dir: for the data, NULL: memory.
 *
 * Locked processes (@target->are_locked) are locked as before after an error, or death of the caller; if result.is_half,
 * only RESUME_TO_LOCK makes them so.
 */
int suspend_processes(const struct suspend_target *target, const char *dir, const struct settings *settings,
		      struct suspend_result *ret);

/*
 * Stops the processes and their queues, for callers that stop those of several machines before any is copied. All
 * processes or none. A locked process has all its memory, and is frozen as a suspended one is.
 */
int suspend_lock(const struct suspend_target *target, const struct settings *settings, struct suspend_result *ret);

enum resume_to {
	RESUME_TO_RUN,
	RESUME_TO_LOCK,	  /* the memory of suspended processes is there again, and they are locked */
	RESUME_FROM_LOCK, /* locked processes run; those that are suspended are refused */
};

/*
 * Resumes those of the processes that have a record, also where any of these functions was interrupted; then the others
 * of the same suspend are resumed, too. -ENOENT, without a message: none has a record.
 * @wait_seconds: so long it waits for memory that others use. -ENOMEM: too little is free, they stay as they were.
 */
int suspend_resume(const struct suspend_target *target, enum resume_to to, unsigned int wait_seconds,
		   const struct settings *settings, struct suspend_result *ret);

/* Begins to wait, if it does not yet; waits no longer. */
void suspend_waiter_join(struct suspend_waiter *waiter);
void suspend_waiter_leave(struct suspend_waiter *waiter);

enum suspend_state {
	STATE_RUNNING,
	STATE_HALF, /* in the middle of a suspend or resume, or what has died there has left it */
	STATE_SUSPENDED,
	STATE_LOCKED,
	STATE_GONE, /* there is no such process, and its record has been left */
};

struct suspend_info {
	enum suspend_state state;
	int64_t since;		/* CLOCK_REALTIME, seconds */
	char dir[PATH_MAX];	/* with the data */
	char follows[PATH_MAX]; /* the cgroup whose freeze was the reason; "": none */
	bool may_run;		/* no cgroup of it is frozen, but by the suspend, nor is it stopped, if that was the reason */
	struct suspend_report report;
};

/* What is known of a process without touching it. -ESRCH: there is none. Removes what is left of one that is gone. */
int suspend_ask(pid_t pid, struct suspend_info *ret);

/* The processes of which there is a record, of one suspend; @id 0: of all. Heap memory of the caller. */
int suspend_list(uint64_t id, int **ret, size_t *ret_nr);

/* Removes what is left of processes that are gone. */
void suspend_clean(void);

/* ---- suspended processes in a dump by criu (move.c): they are dumped as they are ---- */

struct suspend_dump;
struct gpu_process;
struct task_file;

/* NULL: out of memory. */
struct suspend_dump *suspend_dump_new(void);
/* Before criu seizes @pid and those below it: SIGSTOP instead of a frozen cgroup holds those that are suspended. */
void suspend_dump_stop(struct suspend_dump *dump, pid_t pid);
/* When all tasks are seized, with their files: refuses what cannot be dumped as it is. @is_try: nothing will be dumped. */
int suspend_dump_read(struct suspend_dump *dump, const struct task_files *files, bool is_try);
bool suspend_dump_has(const struct suspend_dump *dump, pid_t pid);
/* Whether this is the file by which a process was suspended. */
bool suspend_dump_has_file(const struct suspend_dump *dump, const struct task_file *file);
/* The counts of a process' state, in place of kfd_pause(); the state, in place of kfd_checkpoint(). */
void suspend_dump_counts(const struct suspend_dump *dump, struct gpu_process *process);
int suspend_dump_ask(const struct suspend_dump *dump, struct gpu_process *process);
/* Writes the images of the records, and of the data of freed buffers. */
int suspend_dump_save(struct suspend_dump *dump);
/* They are held as before. Accepts NULL. */
void suspend_dump_end(struct suspend_dump *dump);
/* The same of one whose dump was killed. The caller traces it. */
void suspend_hold_again(pid_t pid);

/* ---- and in a restore ---- */

struct suspend_restore;

/* In criu's main process, before there are tasks: reads the records, looks for the data. *ret: free it in any case. */
int suspend_restore_read(struct suspend_restore **ret);
void suspend_restore_free(struct suspend_restore *restore);
/* @own_pid, here and below: in its own pid namespace. 0, not known: whether it may be one. */
bool suspend_restore_has(const struct suspend_restore *restore, pid_t own_pid);
/* Whether the image of a process and its record are of the same dump. */
int suspend_restore_check(const struct suspend_restore *restore, const struct gpu_process *image);
/* Adds what a resume will allocate on each of @nodes to @work. */
void suspend_restore_add_work(const struct suspend_restore *restore, pid_t own_pid, const struct topology *nodes,
			      struct gpu_work *work);
/* There, before RESUME: stops the queues of a process with /dev/kfd. Nothing for those that are not suspended. */
int suspend_restore_stop(const struct suspend_restore *restore, pid_t own_pid, pid_t pid);
/* After it, for each that was suspended: its record, its data, and what holds it. */
int suspend_restore_finish(struct suspend_restore *restore, pid_t own_pid, pid_t pid, const struct topology *machine);

/* What the image of a record says. */
struct suspend_image {
	bool has_kfd;
	struct kfd_state state; /* it owns those of its BOs whose data are in images of their own */
	uint8_t *plan; /* of each BO */
	uint64_t freed_bytes;
	uint32_t nr_left; /* BOs that the process has all the same: its own image has them */
};
/* *ret: suspend_image_done() in any case. */
int suspend_image_read(const char *name, const uint8_t *data, size_t size, struct suspend_image *ret);
void suspend_image_done(struct suspend_image *image);
/* As suspend_restore_check(); @record NULL: there is none of the process. */
int suspend_image_check(const struct suspend_image *record, const struct gpu_process *image);
/* As suspend_restore_add_work(). */
void suspend_image_add_work(const struct suspend_image *image, const struct topology *nodes, struct gpu_work *work);

#endif
