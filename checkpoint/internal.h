/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of checkpoint/ use of each other. */
#ifndef CHECKPOINT_INTERNAL_H
#define CHECKPOINT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "checkpoint/checkpoint.h"
#include "host/host.h"
#include "image/image.h"
#include "kernel/kernel.h"
#include "match/match.h"
#include "pages/pages.h"
#include "share/share.h"
#include "stopped/stopped.h"

/* A task with state on GPUs. */
struct shared_task {
	pid_t pid; /* in its own pid namespace, the same one for all */
	bool has_kfd;
	unsigned int first_range, nr_ranges; /* whose pages RESUME takes */
	unsigned int first_queue, nr_queues; /* that are recreated after RESUME */
};

/* A GPU that tasks are restored on. */
struct shared_gpu {
	uint32_t minor;
	uint32_t losses; /* how often it had lost its VRAM when the first of them took it */
	int store_id;	 /* of a file of its render node */
};

/* More than a machine has; others are not asked. */
#define SHARED_MAX_GPUS 128

/* More than the kernel gives address spaces on GPUs: 16 bits for all processes of the machine. */
#define SHARED_MAX_TASKS  65536
#define SHARED_MAX_RANGES (1u << 20)
#define SHARED_MAX_QUEUES 65536

/* Temporary cgroups, in which tasks hide GPUs from themselves: at one time, or of tasks that died while they did. */
#define SHARED_MAX_CGROUPS 1024
struct shared_cgroup {
	atomic_int state;
	int store_id; /* of the directory that the cgroup is in */
	char name[48];
};

/*
 * What all tasks of a restore and criu's main process have in common, in one piece of shared memory: the choice of
 * GPUs, the tasks that have state on them, and what the main process has to clean up.
 */
struct shared {
	/*
	 * How much VRAM all tasks together need of a saved GPU, and which local GPU it has become. They choose one after
	 * the other, and the later ones follow the first: a task holds the lock from its first look until its own choice
	 * is noted.
	 */
	pthread_mutex_t lock; /* between processes; of tasks, ranges and GPUs, too */
	struct match_choices choices;
	bool asked_lazy, is_lazy;    /* whether memory will come only when it is touched */
	unsigned int nr_tasks, nr_ranges, nr_gpus, nr_queues;
	struct shared_task tasks[SHARED_MAX_TASKS];
	struct svm_range ranges[SHARED_MAX_RANGES];
	struct shared_gpu gpus[SHARED_MAX_GPUS];
	struct queue_record queues[SHARED_MAX_QUEUES];
	struct shared_cgroup cgroups[SHARED_MAX_CGROUPS];
};

/* In criu's main process, before it has tasks. NULL when memory is short. */
struct shared *shared_new(void);
/* In criu's main process, when its tasks run or are dead: removes cgroups that these have left. Accepts NULL. */
void shared_free(struct shared *shared);

/*
 * A GPU whose VRAM was lost between the first file that a task has of it and RESUME would run a dead job. In a task: notes
 * @store_id, of such a file. In criu's main process: asks again. 0, or -errno after fail().
 */
int shared_note_gpu(struct shared *shared, uint32_t minor, int store_id);
int shared_check_losses(const struct shared *shared);

/*
 * Adds the calling task before its @state is restored: so a task that is not there surely has none. @queues: that are
 * recreated after RESUME. 0, or -errno after fail().
 */
int shared_add_task(struct shared *shared, bool has_kfd, const struct kfd_state *state, const struct queue_record *queues,
		    size_t nr_queues);
/* In criu's main process. @own_pid: in its own pid namespace. NULL for a task without such state. */
const struct shared_task *shared_find_task(const struct shared *shared, pid_t own_pid);

struct shared_keeper {
	struct hide_keeper hooks; /* for hide_begin() */
	struct shared *shared;
	struct shared_cgroup *own; /* of the calling task */
};

void shared_keeper_init(struct shared_keeper *keeper, struct shared *shared);

struct restore;

/* ---- the GPUs of a restored task: chosen once, opened, and found again by their names ---- */

/* {} to begin with. */
struct gpus {
	struct gpu *list;
	size_t nr;
	size_t nr_visible; /* GPUs of this machine that the kernel would show the task */
};

/*
 * For each file of the task with @saved, the GPUs that its image names. The first call chooses and opens a local GPU
 * for each, later ones check that the images agree. @state: of the task; NULL: not known yet. 0, or -errno after
 * fail().
 */
int gpus_setup(struct gpus *gpus, const struct restore *restore, const struct topology *saved,
	       const struct kfd_state *state);
void gpus_done(struct gpus *gpus);

/* NULL when the task has no such GPU. */
struct gpu *gpus_by_user_id(const struct gpus *gpus, uint32_t user_id);
struct gpu *gpus_by_saved_minor(const struct gpus *gpus, uint32_t minor);

/* Whether the VRAM of the chosen GPUs has room for the BOs of @state. 0, or -ENOSPC after fail(). */
int gpus_check_room(const struct gpus *gpus, const struct restore *restore, const struct kfd_state *state);

/* The local render minors, heap memory of the caller; NULL when memory is short. */
uint32_t *gpus_minors(const struct gpus *gpus);

/*
 * The buckets that RESTORE wants, with open files of render nodes for gpus_close_devices(). 0, or -errno after fail().
 */
int gpus_open_devices(const struct gpus *gpus, struct kfd_state *state);
void gpus_close_devices(struct kfd_state *state);

/* ---- mappings of device files: which GPU and BO; pure ---- */

/* A process' doorbells on one GPU. */
#define VMA_DOORBELL_PAGES 2

/* Whether a mapping of /dev/kfd names a GPU in its offset: doorbells and MMIO do. */
bool vma_names_gpu(const struct device_vma *vma);

/*
 * The user gpu id of the GPU that a doorbell or MMIO mapping is of, 0 when it is none of the process'. Kernels differ
 * in which id the offset holds: @by_user decides where both readings give a GPU.
 */
uint32_t vma_kfd_gpu(const struct device_vma *vma, const struct kfd_state *state, bool by_user);

/* The mapping's file offset in the restored BO. */
static inline uint64_t vma_restored_offset(const struct device_vma *vma, const struct bo *bo)
{
	return bo->restored_offset + (vma->offset - bo->offset);
}

/* Describes a mapping of which only path, address and offset are known. False for a path of no device of ours. */
bool vma_from_path(const char *path, uint64_t start, uint64_t offset, struct device_vma *ret);

/* ---- mappings at dump ---- */

/* 1 for a mapping of another driver's render node, which is another plugin's; 0 for ours; -errno after fail(). */
int vma_is_foreign(const struct topology *machine, const struct device_vma *vma);

/*
 * Finds the device mappings of a process, whose state and nodes are known, with the GPU of each, and refuses those that
 * cannot be recreated. @machine: all nodes. 0, or -errno after fail().
 */
int vma_save(const struct topology *machine, struct kfd_rules rules, struct gpu_process *process);

/* ---- restore ---- */

/* A task that is restored: its GPUs, the state on them, its device files. */
struct restored_task {
	const struct restore *restore;
	struct gpus gpus;	 /* {}: not chosen yet */
	struct gpu_process *image; /* whose state is the task's; NULL: not restored yet */
	bool looked_for_image;	 /* before its file came */
	struct vma_bos bos;	 /* of the image */
	int kfd_store_id;		 /* of the file of /dev/kfd; -1 */
	bool awaited;		 /* its buffer data */
	uint32_t nr_files;	 /* that were restored so far */
	struct queue_record *queues; /* that RESTORE does not get, and those that it does beside them */
	size_t nr_queues;
	struct share_task share;
	struct shared_keeper keeper;
};

void restored_task_done(struct restored_task *task);

/* What criu's main process has read and made before there are tasks, and which hooks have run. */
struct restore {
	const struct settings *settings;
	struct topology *machine;
	int machine_error;	  /* why there is no topology */
	struct topology *largest; /* the GPUs of the process that has most; NULL: the images could not be read yet */
	struct kfd_rules rules;
	struct driver_release driver;
	bool vma_fds_stay_open; /* that UPDATE_VMA_MAP hands to criu */
	struct mounted *mounted; /* where criu's main process is; NULL: the tasks' /dev stays as it is */
	struct shared *shared;
	struct suspend_restore *suspended; /* processes that come back suspended */
	struct share_table *buffers; /* shared by all tasks as well */
	struct pages_filling *filling; /* which criu's main process fills; NULL: there can be none */
	double waited_seconds;	     /* for these, when all tasks were there */
	struct restored_task task;   /* untouched in the main process: each task has a copy */
	int resume_fd;		     /* /dev/kfd */
	unsigned int nr_resumed;
	bool finished;		     /* all tasks have their files, and criu none; buffer data are there */
};

/* Whether the mapping is one of ours; if so, *ret describes it. */
bool vma_find(const struct restored_task *task, const char *path, uint64_t start, uint64_t offset,
	      struct device_vma *ret);

/* From where it has to be mapped now: *ret_fd is an fd that criu takes. 0, or -errno after fail() that names @path. */
int vma_restore(const struct restored_task *task, const char *path, const struct device_vma *vma,
		uint64_t *ret_offset, int *ret_fd);

/* ---- before there are tasks ---- */

/*
 * Waits some seconds at most until the KFD has taken down processes that have ended, such as the one that is to come
 * back: their GPUs would look busy. The next open of /dev/kfd waits until their memory is free, too. @certain: that a
 * process with GPUs is restored; if not, images of one have to be there.
 */
void precheck_wait(bool certain);

/*
 * Whether some process of the image directory has a chance: GPUs of @machine that are good enough for its own, and
 * pairs of KFD_DEVICE_MAP that are there. Adds what each process works on to @shared. *largest: NULL before; the GPUs of
 * the process that has most, the caller's in any case. 0, also where it cannot be said yet or is not @certain; -errno
 * after fail().
 */
int precheck_images(const struct topology *machine, const struct settings *settings, const struct suspend_restore *suspended,
		    struct shared *shared, bool certain, struct topology **largest);

/* ---- what a dump refuses, since it could not be restored. All functions: 0, or -errno after fail() ---- */

/*
 * A paused KFD process, before its state is taken. @files: of all tasks. @is_forced: takes even what this
 * kernel is known not to restore.
 */
int refuse_process(const struct gpu_process *process, const struct task_files *files, const struct topology *machine,
		   bool is_forced);

/* A process two of whose files are of different KFD contexts. */
int refuse_context(pid_t pid);

/*
 * A process that amdgpu-checkpoint has suspended, with queues that a restore makes again: these would run; or that was suspended
 * in a kernel which this driver does not restore: it does not end before a resume.
 */
int refuse_suspended_queues(pid_t pid, const struct kfd_state *state, const struct topology *machine,
			    const struct driver_release *driver, bool is_forced);
/* Suspended tasks without AMD files: criu before 4.0 asks about none of those, and another plugin may keep the question. */
int refuse_suspended_unseen(void);

/*
 * A file of a render node in a task without /dev/kfd, unless it holds nothing; @is_saved: nothing but what is saved of
 * it.
 */
int refuse_used_file(const struct task_file *file, bool is_saved);

/* A file of a device of ours that criu has found and that no task has open. */
int refuse_file_under_way(const struct stat *st);

/*
 * A task without /dev/kfd that has device files mapped, or queues and memory left. @is_saved: its state is that of its
 * render nodes, and mappings of them come with it.
 */
int refuse_mappings(pid_t pid, const struct topology *machine, bool is_saved);

/* POSIX timers that criu would save and not restore. */
int refuse_timers(pid_t pid);

/* A dump on top of earlier images. */
int refuse_incremental(void);

/* A dump whose memory is fetched later, where criu's command line says so. */
int refuse_lazy_dump(void);

/* ---- a child that lets the queues run again when criu ends in the middle of a dump ---- */

/*
 * @pids: the stopped tasks, before any of their queues is stopped. The pid of the child for guard_end(); 0 where there can be
 * none, after a warning.
 */
pid_t guard_start(const int *pids, size_t nr);
/* When all queues run. Accepts 0. */
void guard_end(pid_t guard);

/* ---- how a program hears of exceptions in its queues, which CHECKPOINT leaves out ---- */

/* Whether process @pid has called RUNTIME_ENABLE, into state->runtime_enabled. 0, or -errno after fail(). */
int runtime_find(pid_t pid, struct kfd_state *state);

/* In the restored process, whose file @fd is: before RESTORE, as queues may not be there yet. 0, or -errno after fail(). */
int runtime_enable(int fd, const struct kfd_state *state);

#endif
