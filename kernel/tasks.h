/* SPDX-License-Identifier: GPL-2.0-only */
/* The tasks that criu has stopped, their AMD device files and mappings of these. */
#ifndef KERNEL_TASKS_H
#define KERNEL_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/state.h"

/* An open file of /dev/kfd or of an AMD render node. */
struct task_file {
	pid_t pid;	/* a task that has it open: the one with the lowest pid */
	int number;	/* of its descriptor in that task */
	int fd;		/* our own duplicate */
	uint32_t minor; /* render minor, 0 for /dev/kfd */
};

struct task_files {
	struct task_file *files; /* each open file once, by ascending own pid and fd number */
	size_t count;
	pid_t *pids; /* all tasks that were looked at, by ascending own pid */
	size_t nr_pids;
};

/* A mapping of a device file. */
struct device_vma {
	uint64_t start, end; /* addresses */
	uint64_t offset;     /* in the device file */
	uint32_t minor;	     /* render minor, 0 for /dev/kfd */
	uint32_t gpu_id;     /* user gpu id of a doorbell or MMIO mapping; 0: not told */
};

/*
 * Finds the AMD files of all tasks that the calling thread traces, but for descriptors
 * that are paths (O_PATH). @is_amd: 1 for a render node of the amdgpu driver, 0 for
 * another, -errno (no message) when it cannot be told; called in several threads. 0 or -errno.
 */
int task_files_collect(int (*is_amd)(int fd), struct task_files *ret);
/* The same of these tasks, which the caller may trace and need not. @pids: heap memory that is given away. */
int task_files_collect_of(int *pids, size_t nr, int (*is_amd)(int fd), struct task_files *ret);
/* Of one of them, without threads. */
int task_files_collect_one(pid_t pid, int (*is_amd)(int fd), struct task_files *ret);
void task_files_done(struct task_files *files);

/* A copy of an open file of a task, which the caller owns; -errno without a message. */
int task_take_file(pid_t pid, int number);

/* The tasks that the calling thread traces, ascending. Heap memory of the caller. 0, or -errno after fail(). */
int tasks_list_traced(int **ret_pids, size_t *ret_nr);

/*
 * The tasks that the calling thread traces, which are stopped, die with it from now on, until it lets them go. 0, or
 * -errno after fail().
 */
int tasks_end_with_tracer(void);

/* The pid of a task in its own pid namespace, 0 when that cannot be read. */
pid_t task_own_pid(pid_t pid);

/* 1 in the initial pid namespace, whose pids are those of the KFD's sysfs; 0 in another; -errno, no message. */
int task_in_initial_pid_ns(void);

/* What the KFD's sysfs says of a task; all 0 when it is no process of the KFD. */
struct task_kfd {
	unsigned int nr_gpus;	  /* that it sees */
	unsigned int nr_contexts; /* further ones (CREATE_PROCESS, Linux 7.2) */
	unsigned int nr_queues;
	uint64_t vram_bytes; /* on all GPUs */
	uint32_t pasid;	     /* of all its address spaces, up to Linux 7.1; 0: each has its own */
};

/*
 * Outside of the initial pid namespace nothing is known of any task, which is not an error. 0 or -errno, no message.
 */
int task_ask_kfd(pid_t pid, struct task_kfd *ret);

/* The processes that have a state in the KFD. Heap memory of the caller. 0 or -errno, no message. */
int task_list_kfd(int **ret, size_t *ret_nr);

/* Whether a task is in a user namespace other than the initial one. */
bool task_is_in_user_ns(pid_t pid);

/*
 * The kind of an open file that GPU processes have and that cannot be saved: a dma-buf, SMI events.
 * NULL for any other.
 */
const char *task_file_unsaved_kind(int fd);
/* Whether that is a dma-buf. */
bool task_file_is_dmabuf(const char *kind);

/* A thread for which the process has a POSIX timer, and which has ended; 0: none. */
pid_t task_timer_of_ended_thread(pid_t pid);

/*
 * A process that amdgpu-checkpoint has suspended has a memfd of this name open: its queues must not run, and it must not be
 * saved. The lowest such descriptor above @after (-1: any), -1: there is none.
 */
#define TASK_MARK "amdgpu-suspended"
int task_find_mark(pid_t pid, int after);

/* The entry whose open file @fd refers to, NULL when there is none. 0 or -errno, no message. */
int task_files_find(const struct task_files *files, int fd, struct task_file **ret);

/*
 * Another process, whoever's, that has an open file of a task of this render minor, too, such as a forked child; 0: none.
 * Files that are on their way to another process are not seen. 0, or -errno after fail().
 */
int task_file_holder(pid_t pid, int number, uint32_t minor, pid_t *ret);

/*
 * Other processes that have the same memory or the same table of descriptors (clone()). Heap memory of the caller. 0, or
 * -errno after fail().
 */
int task_list_sharers(pid_t pid, int **ret, size_t *ret_nr);

/* Whether a task has opened the device itself, and not only inherited a file of it. */
bool task_files_has(const struct task_files *files, pid_t pid, uint32_t minor);

/* Whether the address space of a file of a render node has this pasid. False also where fdinfo does not tell it. */
bool task_file_has_pasid(const struct task_file *file, uint32_t pasid);

/*
 * GPUs on which the process has an address space. A file that it has opened has one of its own, too; where those of the
 * KFD have @pasid (0: not known), that tells them apart. Elsewhere a process that opened the render node of a GPU has given
 * it to the KFD.
 */
unsigned int task_files_count_spaces(const struct task_files *files, pid_t pid, uint32_t pasid,
				     const struct topology *machine);

/*
 * The mappings of /dev/kfd and of render nodes of a task, in address order. *ret is
 * heap memory of the caller. 0 or -errno.
 */
int task_device_vmas(pid_t pid, struct device_vma **ret, size_t *ret_count);

/* The BOs with data, in the order in which they are searched; {} to begin with. */
struct vma_bos {
	const struct bo **list; /* into the state, which has to stay */
	size_t nr;
};

/* 0 or -ENOMEM without a message. */
int vma_bos_sort(const struct kfd_state *state, struct vma_bos *ret);
void vma_bos_done(struct vma_bos *bos);

/*
 * The BO with data on GPU @user_gpu_id that the whole mapping of a render node is of,
 * at whatever place in it. NULL when there is none.
 */
const struct bo *vma_bo(const struct device_vma *vma, const struct vma_bos *bos, uint32_t user_gpu_id);

#endif
