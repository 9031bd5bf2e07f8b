/* SPDX-License-Identifier: GPL-2.0-only */
/* A process that is suspended, and what outlives the command that does it. */
#ifndef SUSPEND_INTERNAL_H
#define SUSPEND_INTERNAL_H

#include "amdgpu_plugin_util.h"
#include "kernel/kernel.h"
#include "share/share.h"
#include "stopped/stopped.h"
#include "suspend/suspend.h"

/* ---- the record (record.c) ---- */

/* How far a process is. */
enum phase {
	PHASE_COPYING,	/* its queues are stopped, nothing of it has changed */
	PHASE_TRYING,	/* the same, but it is stopped by us; registers may be a call's, and it may have the mark */
	PHASE_CHANGING, /* all data are saved; some buffers are allocated, others are not; registers may be a call's */
	PHASE_SUSPENDED,
	PHASE_RESTORED, /* all buffers have their data, queues may run already */
	PHASE_LOCKED, /* it has all its buffers, is held as when it is suspended, and has the mark; its queues are stopped */
};

/* A mapping by the CPU of a buffer that is freed. */
struct suspend_vma {
	uint64_t start, end; /* addresses */
	uint64_t offset;     /* into the buffer */
	uint32_t bo;
	uint32_t minor; /* render minor */
	int32_t prot, flags, key; /* key: of memory protection keys; 0: none */
	bool dontfork;
};

/* A GEM handle, by render file and number. All handles of these files are there. */
struct suspend_handle {
	int32_t number; /* of the file's descriptor */
	uint32_t handle;
	uint32_t bo; /* NO_BO: it is of no BO of the KFD */
};
#define NO_BO UINT32_MAX

/* Where a GPU has a BO mapped by a handle, in the order of handles. */
struct suspend_mapping {
	uint32_t of; /* the handle's place */
	struct gem_mapping mapping;
};

/* What a suspend does to a buffer. */
enum bo_plan {
	BO_LEAVE,	/* it stays allocated, and is not copied */
	BO_FREE,	/* its data are saved, and it is freed */
	BO_FREE_FAILED, /* its data are saved, and it could not be freed */
};

/* Up to here a record is the same in all versions for ever: whose it is, and what is removed with it. */
#define RECORD_FIXED offsetof(struct record_head, own_crc)

struct record_head {
	char magic[8];
	uint32_t version; /* of what follows the fixed part */
	uint32_t crc;	  /* of the fixed part's rest */
	int32_t pid;
	uint32_t made_base; /* the directory above @dir was made for it, and is removed when it is empty */
	uint64_t start;	    /* process_start() */
	uint64_t id;	    /* of the suspend: all its records have it */
	uint64_t pid_ns, time_ns; /* inodes; 0: this kernel has none */
	char boot[40];		  /* the kernel's boot_id */
	char writer[88];	  /* version text */
	char dir[PATH_MAX];	  /* with the data of this suspend alone; as the caller of the suspend sees it */
	char home[PATH_MAX];	  /* the cgroup in which it has one of its own, and was before; "": it has none */
	/* What only this version has. */
	uint32_t own_crc;   /* of the head's rest */
	uint32_t parts_crc; /* of what follows it */
	uint32_t phase;
	uint32_t was_stopped;
	int64_t since;
	uint32_t is_stopped;		/* by SIGSTOP of this command, on top of was_stopped */
	uint32_t by_home;		/* @home itself is frozen, and SIGSTOP stays: it has no cgroup of its own */
	int32_t kfd_number;		/* of the process' descriptor */
	uint32_t by_stop;		/* suspend_target.by_stop */
	struct inject_thread thread;
	char follows[PATH_MAX]; /* suspend_target.follows */
	struct suspend_report report;
	uint32_t nr_devices, nr_bos, nr_objects, nr_vmas, nr_handles, nr_mappings;
	uint64_t priv_size;
	uint32_t nr_gpus;
	struct {
		uint32_t minor, losses; /* render minor; how often its VRAM was lost before (resets.c) */
	} gpus[TOPOLOGY_MAX_NODES];
};

/* A descriptor of the process. */
struct render_fd {
	int number;
	uint32_t minor;
};

struct process {
	/* What its record has. */
	struct record_head head;
	struct gpu_process gpu;	  /* its state; file.fd: our duplicate, -1: it has no /dev/kfd */
	uint8_t *plan;		  /* enum bo_plan, one for each BO */
	struct suspend_vma *vmas; /* by buffer */
	struct suspend_handle *handles;
	struct suspend_mapping *mappings;
	/* What this call knows of it. */
	struct hold hold;
	bool was_left_stopped; /* by SIGSTOP of an earlier command */
	unsigned int nr_stops; /* SIGSTOPs that it has taken, or is about to, and that are known (freezer.c) */
	bool has_no_cgroup; /* it cannot have one of its own, which was said */
	bool has_ended;	      /* when its record was read */
	bool is_released;     /* it is not held any more */
	bool has_freed;	      /* some buffer was freed, or was about to be */
	bool is_locked;	      /* when this call took it: its queues are stopped */
	uint32_t nr_bos_now;  /* how many it has */
	struct inject inject;
	struct render_fd *fds; /* its descriptors of render nodes */
	size_t nr_fds;
};

static inline bool process_has_kfd(const struct process *process)
{
	return process->gpu.file.fd >= 0;
}

/* Buffers of it are freed, or not filled yet: it is in a phase in which they can be. */
static inline bool process_lacks_buffers(const struct process *process)
{
	return process->has_freed && (process->head.phase == PHASE_CHANGING || process->head.phase == PHASE_SUSPENDED);
}

/* Writes its record for good, with this phase, and with the registers that the thread has of its own. */
int record_set(struct process *process, enum phase phase);
/* The first entry whose number, at @at in it, is @key or greater, of a list in the order of these numbers. */
uint32_t record_first(const void *list, uint32_t nr, size_t size, size_t at, uint32_t key);
/* Whether it has handles of BOs that are freed. */
bool record_frees_handles(const struct process *process);
/* VRAM that a resume allocates on one GPU, by its user id. @plan: of each BO. */
uint64_t freed_on(const struct kfd_state *state, const uint8_t *plan, uint32_t gpu_id);
/* As it is. Without /dev/kfd there is no state. */
int record_write(struct process *process);
/* Says in the head who the process is: of which suspend, here and now. 0, or -errno after fail(). */
int record_begin(struct record_head *head, uint64_t id);
/*
 * Finds the record of a process: its fixed part, and what this version knows of the rest. Of several the living one's.
 * -ENOENT, no message: there is none. -EXDEV: there are only records of another pid namespace, time namespace or boot.
 */
int record_find(pid_t pid, struct record_head *ret);
/* Whether this version can use all of it. 0, or -errno after fail(), which names the version that wrote it. */
int record_check(const struct record_head *head);
/* Fills the rest of a process whose head is there. */
int record_read(struct process *process);
void process_done(struct process *process);
/* The same as an image: writes it; fills a process that has nothing yet. 0 or -errno, for the second after fail(). */
int record_save(struct process *process, int fd);
int record_load(const char *name, const uint8_t *data, size_t size, struct process *process);
/* Forgets the process: its record, and its files of data. */
void record_remove(const struct record_head *head);
/* Forgets its data alone. */
int record_remove_data(struct process *process);
/*
 * How many buffers the process has, in a file beside the record: written before each call that changes it, as it is to
 * be then, since the kernel answers only who knows it. record_read_count(): -ENOENT, no message: nothing has changed.
 */
int record_write_count(const struct process *process, uint32_t nr);
int record_read_count(const struct process *process, uint32_t *ret);
/* The cgroup that is frozen while it is suspended. False: there is none. */
bool record_cgroup(const struct record_head *head, char path[PATH_MAX]);
/* Removes it, if it is its own; that of others is thawed when the process has ended. 0 or -errno, no message. */
int record_remove_cgroup(const struct record_head *head);
/* Whether a cgroup that it is in is frozen, but for @own (NULL: whichever). */
bool process_is_frozen(pid_t pid, const char *own);
/* Whether a thread of it is. */
bool process_is_alive(pid_t pid);
/* Whether the process of the record is still there. */
bool record_is_alive(const struct record_head *head);

/* ---- directories for buffer data (datadir.c) ---- */

/* In the mount namespace of pid 1, whatever that of the caller is: a mount there lasts as long as the processes. */
#define RUN_ROOT "/proc/1/root"

/* The directory of a suspend. */
struct datadir {
	char base[PATH_MAX]; /* the directory that the user names, or SUSPEND_MEMORY */
	char dir[PATH_MAX];  /* a new one in it */
	bool is_new_base;
};

/* Creates /run/amdgpu-checkpoint. */
int datadir_make_run(void);
/* The path of a directory for this program. */
void datadir_path(const char *dir, char path[PATH_MAX]);
/* Chooses the directory, and creates nothing. @dir: NULL for memory. Removes what an earlier boot has left there. */
int datadir_choose(const char *dir, uint64_t id, struct datadir *ret);
/* Creates it, when records name it: what no record names would stay if the command is killed. *ret_fd: the caller's. */
int datadir_make(const struct datadir *datadir, int *ret_fd);
/* -ENOSPC after fail(): @bytes do not fit there. */
int datadir_check_room(const char *dir, int fd, uint64_t bytes);
/* Opens the directory that a record names, for reading. */
int datadir_open(const char *dir, int *ret_fd);
/* Removes the data files of a process. */
void datadir_remove_files(const struct record_head *head);
/* Removes the directory, and the one above if it was created for this one. Both only if they are empty. */
void datadir_remove(const struct record_head *head);

/* ---- a call ---- */

/* A cgroup that others have frozen. */
struct thawed {
	char *path;
	int watch; /* cgroup_watch(); -errno */
};

/* The processes that one command suspends or resumes together. */
struct batch {
	struct process *processes;
	size_t nr;
	const struct settings *settings;
	struct topology *machine;
	struct driver_release driver;
	double began, wait_until; /* monotonic_seconds() */
	enum resume_to to;
	struct suspend_waiter waiter; /* its place among those that wait for memory */
	bool keeps_waiter;	      /* @waiter is the caller's, and stays when the command ends */
	bool lacks_memory;
	struct thawed *thawed;
	size_t nr_thawed;
	pid_t *parents; /* processes above that were not stopped before those of the call were */
	size_t nr_parents;
};

/* The first process of the batch that has not ended, or the next behind @after; NULL: there is none. */
static inline struct process *batch_next(const struct batch *batch, const struct process *after)
{
	size_t i = after ? (size_t)(after - batch->processes) + 1 : 0;

	while (i < batch->nr && batch->processes[i].has_ended)
		i++;
	return i < batch->nr ? &batch->processes[i] : NULL;
}

void thawed_done(struct thawed *thawed);
struct batch batch_begin(const struct settings *settings);
/* Reads the topology, which process_look() needs. */
int batch_read_machine(struct batch *batch);
/* Adds those processes of the target that are not in the batch yet. How many, or -errno. */
int batch_add(struct batch *batch, const struct suspend_target *target);
/* Drops process @i if it has ended. False: it has not, or the target names its pid. */
bool batch_drop_ended(struct batch *batch, const struct suspend_target *target, size_t i);
bool batch_has(const struct batch *batch, pid_t pid);
/* Releases all processes. */
void batch_end(struct batch *batch);
/* Reads the head of its record, and removes that of one that has ended. -ENOENT, no message: there is no record. */
int process_read_head(struct process *process);
/* Seizes it, and reads its record again: until then another command may have changed it. -ENOENT likewise. */
int process_seize(struct process *process);
/* When its state is there: its GPUs' nodes and minors, and its descriptors of render nodes. */
int process_look(struct batch *batch, struct process *process);
/* The bytes of all buffers that are freed. */
uint64_t batch_data_bytes(struct batch *batch);
/*
 * Copies the data of buffers that are freed and have a dma-buf, of all processes with this directory: @out into files,
 * else from them, for those that lack buffers.
 */
int batch_copy(struct batch *batch, const char *dir, bool out);
int batch_report(const struct batch *batch, struct suspend_result *ret);

/* ---- what keeps processes from running (freezer.c) ---- */

/* When all are seized: stops them by SIGSTOP and thaws their cgroups, so that they can make calls. Defers SIGTERM. */
int freezer_stop_for_calls(struct batch *batch);
/* Freezes those that are suspended while data is copied, or memory is waited for: no SIGCONT lets them run then. */
void freezer_freeze_between_calls(struct batch *batch);
/* inject_look() at the thread that is to make calls. If its cgroup is frozen during a call, it is thawed for that. */
int freezer_look_at_thread(struct batch *batch, struct process *process);
/*
 * When a process of a record is seized: its cgroup, by the path that it has here. In another cgroup namespace, or with
 * other mounts, that is not the record's. 0, or -errno after fail(): it is frozen where nobody here can thaw it.
 */
int freezer_find_cgroup(struct process *process);
/* Then: whether others have stopped it. */
void freezer_note_stopped(struct process *process);
/* From now on those that have changed are frozen, if possible, instead of stopped by a signal. Writes their records. */
void freezer_freeze(struct batch *batch);
/*
 * Moves one that has its memory again back to its cgroup, and continues it. It runs with the end of its tracer. False: it
 * was killed, and is still in its own cgroup.
 */
bool freezer_release(struct process *process);
/*
 * Around a dump by criu, which runs code in threads, and takes a process for stopped when a signal has stopped it. The
 * first: of one that is seized, SIGSTOP instead of the frozen cgroup; it stops when it is let go. 0, or -errno after
 * fail(). The second: of one that is stopped by SIGSTOP, frozen as well.
 */
int freezer_change_to_signal(struct process *process);
void freezer_change_to_cgroup(struct process *process);
/*
 * Continues parents that have stopped with a process, but for those above one that SIGSTOP alone holds. It comes before the
 * records are written or removed: if the command is killed first, they still say SIGSTOP, and a resume continues the parents.
 */
void freezer_continue_parents(struct batch *batch);
/* The end of calls: freezes again what others had frozen, and have not thawed meanwhile, and continues parents. */
void freezer_end(struct batch *batch);

/* ---- memory on GPUs (wait.c) ---- */

/* Waits until the driver has enough memory for all processes, and for those that wait longer. -ENOMEM after fail(). */
int wait_for_vram(struct batch *batch);
/* There is too little, though the driver reports enough. -ENOMEM after fail(). */
int wait_fail(const struct batch *batch);
/* Waits no longer. */
void wait_end(struct batch *batch);

/* ---- resets of GPUs (resets.c) ---- */

/* Notes in the record's head how often each GPU of the process has lost its VRAM. */
int resets_note(struct process *process);
/* *ret_minor: of a GPU that has lost it since; 0: none has. */
int resets_find(const struct record_head *head, uint32_t *ret_minor);

/* ---- what is freed (plan.c) ---- */

/* Decides for all processes, whose states were read: plan, vmas, bytes. @request: all but the processes. */
int plan_all(struct batch *batch, struct share_request *request);

/* ---- GEM handles of BOs that are freed (vmm.c) ---- */

/* Notes handles and mappings, before it is decided what is freed: BOs of a file that others have, too, are not alone. */
int vmm_look(struct process *process, const struct share_request *request, const struct share_names *names);
/* The BO that a GPU has mapped there by a handle; NO_BO: none. */
uint32_t vmm_bo_at(const struct process *process, uint64_t address);
/* Closes the handles of BOs before these are freed. */
int vmm_close(struct process *process);
/* Closes those that a resume has made, of BOs with a dma-buf. */
int vmm_close_imported(struct process *process);
/* Makes missing handles of BOs that have dma-bufs again. -ENOMEM without a message: the GPU has no room. */
int vmm_import(struct process *process);

/* ---- calls in a process (calls.c): -errno of the call itself without a message, as of inject_call() ---- */

/* Frees a buffer, whose mappings are at @offset of its render node. *ret_kept: that failed, and it is as it was. */
int calls_free(struct process *process, size_t bo, uint64_t offset, bool *ret_kept);
/* Allocates it, unless it is there (@now), and maps it. -ENOMEM: the GPU has no room. */
int calls_allocate(struct process *process, size_t bo, const struct bo *now);
/* Makes the calls that can fail by the process' limits, and changes nothing; after inject_look(), with a message. */
int calls_try(struct process *process);
int calls_mark(struct process *process);
int calls_unmark(struct process *process);
/* Ends the calls of a process that stays suspended: it has the mark and its own registers. */
int calls_end_marked(struct process *process);
/* Allocates a buffer that only takes the lowest free number of a GPU. */
int calls_make_placeholder(struct process *process, uint32_t gpu_id, uint64_t *ret_handle);
int calls_free_handle(struct process *process, uint64_t handle);

#endif
