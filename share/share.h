/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Buffers that more than one file or process names: by BOs of the KFD, by GEM handles, by both.
 *
 * All functions return 0, or -errno after fail(), if nothing else is said.
 *
 * At dump, share_dump_collect() finds out who holds what, and share_dump_decide() refuses what cannot be recreated, and
 * writes the rest into the states of the processes. At restore each task makes its own buffers and exports them
 * (share_make()); only then does it wait for theirs (share_attach()), so that no cycle can form.
 */
#ifndef SHARE_SHARE_H
#define SHARE_SHARE_H

#include "amdgpu_plugin_topology.h"
#include "image/image.h"
#include "kernel/kernel.h"

/* ---- dump ---- */

struct share_request {
	struct gpu_process *const *processes; /* whose states were taken; get nr_sharers and nr_files */
	size_t nr_processes;
	const struct task_files *files;
	const struct topology *machine;
	bool check_partners;  /* refuse what might be shared with processes that are not dumped */
	/* What share_begin() finds. */
	bool one_dmabuf;      /* the kernel makes one dma-buf for a buffer (Linux 6.8), by whose inode it is known */
	bool is_dkms;	      /* the driver is amdgpu-dkms, which has an IPC of its own */
	uint64_t fresh_inode; /* dma-bufs with a larger one were not there yet */
};

struct survey;

/*
 * Whether a file of a task without /dev/kfd holds objects or syncobjs: 1 or 0. Objects that the kernel does not list
 * are refused.
 */
int share_file_is_used(const struct task_file *file);

/* To be called before the state of the first process is taken. request->machine has a GPU. */
int share_begin(struct share_request *request, const struct driver_release *driver);

/* Finds what the processes share and hold. *@request has to stay. */
int share_dump_collect(const struct share_request *request, struct survey **ret);

/*
 * Checks that everybody who shares is dumped. The states get shares and, behind the BOs of the KFD, the objects that are
 * not the KFD's; the dma-bufs of what a process does not own are closed. debugfs names an address space by who last gave
 * the GPU a job in it: by a task of the dump or, where that was the plugin, by the caller.
 */
int share_dump_decide(struct survey *survey);
void share_dump_done(struct survey *survey);

/* The image of a file of request->files: without_kfd_vm, and objects, which are borrowed. */
struct render_image share_describe_file(const struct survey *survey, const struct task_file *file);

/* Whether an open file of a task is the dma-buf of a buffer that is restored: its number, and nr_sharers. */
bool share_find_dmabuf(const struct survey *survey, int fd, struct dmabuf_image *ret);

/* ---- suspend ---- */

/* A GEM handle of a BO of the KFD, by its file's place in request->files. */
struct share_name {
	size_t file;
	uint32_t handle;
	size_t process, bo; /* the first that has the BO */
};

struct share_names {
	struct share_name *list; /* sorted by file and handle */
	size_t nr;
};
void share_names_done(struct share_names *names);
/* For bsearch(). */
int share_compare_names(const void *a, const void *b);

/*
 * Sets is_alone of BOs of the KFD, which is false before: nobody but the process has the BO, by whatever name. One of which
 * it cannot be told is not alone. *ret: its other names, GEM handles, which the kernel lists from Linux 6.18 on;
 * share_names_done() in any case. 0 or -errno after fail(): -EOPNOTSUPP without one_dmabuf.
 */
int share_find_alone(const struct share_request *request, struct share_names *ret);

/* ---- restore ---- */

/* Where the owners export their buffers, shared by all tasks and criu's main process. */
struct share_table;

/* Before tasks are forked. NULL when memory is short. */
struct share_table *share_table_new(void);
void share_table_free(struct share_table *table);

/* In a task that cannot be restored, so that nobody waits for its buffers. */
void share_table_fail(struct share_table *table);

/* Says how many tasks take part. 0, or -EBADMSG after fail() when another task has said otherwise. */
int share_table_begin(struct share_table *table, uint32_t nr_sharers);

/* In criu's main process, when all tasks are there: whether each has what it shares. */
int share_table_check(const struct share_table *table);

/*
 * The same without tasks, for whoever only looks at images: first what each process owns, then each buffer that an image
 * names, 0: none; then share_table_check(). 0, or -EBADMSG after fail(), for a buffer once.
 */
int share_check_owned(struct share_table *table, const struct gpu_process *image);
int share_check_named(struct share_table *table, uint32_t buffer);

/* A GPU of a restored process, here and at dump. */
struct gpu {
	uint32_t user_id;     /* by which the process knows it */
	uint32_t actual_id;   /* on this machine */
	uint32_t minor;	      /* render minor on this machine */
	uint32_t saved_minor; /* at dump */
	bool vram_known;      /* vram_free says something */
	uint64_t vram_free;   /* bytes, when it was chosen */
	int store_id;	      /* the render-node file that carries the KFD's address space */
	bool kfds_file_is_given; /* to the task, as one of its files */
};

/* A file of a render node that the task has, as criu keeps it. */
struct share_file {
	int store_id;
	uint32_t minor; /* on this machine */
	struct render_objects objects;
};

/* A task that shares. {} to begin with; placeholders and files belong to share_task_done(). */
struct share_task {
	struct share_table *table;
	const struct gpu *gpus;
	size_t nr_gpus;
	struct gpu_process *image;
	struct placeholder *placeholders; /* BOs of the KFD that hold numbers free */
	size_t nr_placeholders;
	struct share_file *files;
	size_t nr_files;
	bool attached;
};

void share_task_done(struct share_task *task);

/*
 * The first step, which waits for nobody: RESTORE with the BOs that are the process' own, then objects of render nodes
 * that it owns; exports all that others name. The state gets the dma-bufs and offsets of what the process owns. @kfd
 * and the state's devices are as for kfd_restore(); -1: the process has no /dev/kfd. 0, or -errno after fail().
 */
int share_make(struct share_task *task, int kfd);

/* In any task: an fd of a dma-buf, which the caller owns; waits for its owner. -errno after fail(). */
int share_open_dmabuf(struct share_table *table, const struct dmabuf_image *image);

/* Adds a file for the second step; takes the objects, leaving {}. 0 or -ENOMEM. */
int share_add_file(struct share_task *task, int store_id, uint32_t minor, struct render_objects *objects);

/*
 * The file through which the CPU can map what is at @offset of a render node, by its id in the store: @store_id, unless only
 * another file of the task has a handle of it.
 */
int share_store_id_for(const struct share_task *task, uint32_t minor, int store_id, uint64_t offset);

/*
 * The second step, when all files of the task are there: waits for what others own, imports it with the numbers,
 * addresses and mappings that it had, and gives the files their handles, mappings and syncobjs. The state gets the
 * offsets of what the process has mapped and does not own. @kfd: as for share_make(). 0, or -errno after fail().
 */
int share_attach(struct share_task *task, int kfd);

#endif
