/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sharejob: processes that share GPU memory in every way there is, one named case at a time.
 *
 * A case makes buffers that several processes, GPUs or files have. Each way to reach the memory of one is a view: a
 * mapping of the CPU, an address of a GPU, an open dma-buf. Each view that may write has a page of the buffer to
 * itself, and writes it anew in each generation; then every view of every process must show every page. So what one
 * writes all others read, in all directions. Pages that no view has are static.
 *
 * What a case makes is kept in lists (objects): they say what to look for later, and what has to go at the end, each
 * without an error. Functions that return int give 0 or -errno and have reported the failure.
 */
#ifndef WORKLOADS_SHAREJOB_H
#define WORKLOADS_SHAREJOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gem.h"
#include "kfd.h"
#include "sdma.h"
#include "state.h"

#define SHARE_MAX_PROCESSES 16u
#define SHARE_MAX_BUFFERS   64u
#define SHARE_MAX_VIEWS	    128u
#define SHARE_MAX_OBJECTS   64u /* of each kind in a process */
#define SHARE_GPUS	    2u
#define SHARE_STEPS_OF	    3u /* processes */
#define SHARE_PAGES	    16u
#define SHARE_BYTES	    (SHARE_PAGES * KFD_PAGE_SIZE) /* of a buffer */

enum share_claim { SHARE_STATIC, SHARE_EACH_GENERATION, SHARE_AT_THE_END };

/* Shared by all processes of the job. */
struct share_control {
	_Atomic uint32_t meetings[SHARE_MAX_PROCESSES]; /* that each has come to; UINT32_MAX: it has left */
	_Atomic bool stop, failed;
	_Atomic uint8_t claims[SHARE_MAX_BUFFERS][SHARE_PAGES];		 /* enum share_claim */
	_Atomic uint64_t inodes[SHARE_MAX_PROCESSES][SHARE_MAX_BUFFERS]; /* of open dma-bufs; 0: none */
	_Atomic uint64_t inodes_differ;					 /* the last check that found this */
};

struct share_gpu {
	struct kfd_gpu *gpu;
	struct sdma_queue queue;
	struct kfd_bo window; /* through which the CPU sees what only the GPU reaches */
	uint64_t next_number; /* of the next KFD BO */
};

enum share_view_kind { SHARE_VIEW_CPU, SHARE_VIEW_GPU, SHARE_VIEW_DMABUF };

struct share_view {
	enum share_view_kind kind;
	unsigned int buffer, first, pages;
	int own_page; /* the one that it writes; -1: it only reads */
	uint8_t *cpu;
	struct share_gpu *gpu;
	uint64_t va;
	int dmabuf;
};

/* A handle of a render file. */
struct share_handle {
	int file;
	uint32_t handle;
	uint64_t size_bytes;
	uint64_t tiling;
	uint8_t metadata[64];
	uint32_t metadata_bytes;
};

struct share_mapping {
	int file;
	uint32_t handle, flags;
	uint64_t va, offset, size_bytes;
};

struct share_dmabuf {
	unsigned int buffer;
	int fd, mode; /* O_RDONLY or O_RDWR */
	char name[32];
};

struct share_syncobj {
	int file;
	uint32_t handle;
	uint64_t point; /* 0: it is binary */
	int state;	/* as of syncobj_state() */
};

struct share_file {
	int fd;
	bool own;	      /* to be closed here; else it is the KFD's of its GPU */
	bool alone;	      /* only this process makes handles in it */
	uint32_t next_handle; /* that it gives */
};

struct share_cpu_mapping {
	void *p;
	uint64_t size_bytes;
};

struct share_objects {
	struct kfd_bo bos[SHARE_MAX_OBJECTS];
	struct share_handle handles[SHARE_MAX_OBJECTS];
	struct share_mapping mappings[SHARE_MAX_OBJECTS];
	struct share_cpu_mapping cpu_mappings[SHARE_MAX_OBJECTS];
	struct share_dmabuf dmabufs[SHARE_MAX_OBJECTS];
	struct share_syncobj syncobjs[SHARE_MAX_OBJECTS];
	struct share_file files[SHARE_MAX_OBJECTS];
	unsigned int nr_bos, nr_handles, nr_mappings, nr_cpu_mappings, nr_dmabufs, nr_syncobjs, nr_files;
};

struct share_process {
	const struct share_case *kase;
	unsigned int number, nr_processes;
	bool outside;			     /* of the tree */
	pid_t first;			     /* the process with number 0, of all others */
	pid_t children[SHARE_MAX_PROCESSES]; /* by number; 0: none */
	struct share_control *control;
	int inboxes[SHARE_MAX_PROCESSES], outboxes[SHARE_MAX_PROCESSES]; /* only while the case is set up */
	struct kfd kfd;
	struct share_gpu gpus[SHARE_GPUS];
	unsigned int nr_gpus;
	struct share_view views[SHARE_MAX_VIEWS];
	unsigned int nr_views;
	struct share_objects objects;
	bool ending; /* the last generation has begun */
	uint64_t inode_checks;
	struct state_file state;
	int ready_fd;
	uint64_t rounds;
	const char *state_path;
};

enum share_trait {
	SHARE_NO_KFD = 1 << 0,	    /* /dev/kfd is not opened */
	SHARE_LATE = 1 << 1,	    /* the last process is forked by the first one after that was set up */
	SHARE_LAST_LEAVES = 1 << 2, /* the last process ends when all are set up */
	SHARE_OUTSIDE = 1 << 3,	    /* the last process is no child: it is not in the tree */
	SHARE_ONE_KFD = 1 << 4,	    /* only the last process opens /dev/kfd */
	SHARE_SPARE_FILES = 1 << 5, /* each render node is opened once more before the KFD gets it */
	SHARE_SECOND = 1 << 6,	    /* of two cases that differ in little */
};

/* What a process does, with its numbers (sharejob_steps.h). */
struct share_step {
	unsigned int what;
	int a, b, c, d, e, f, g;
};

struct share_case {
	const char *name, *what;
	unsigned int nr_processes; /* 0: as many as are asked for */
	unsigned int nr_gpus;
	unsigned int traits;
	const struct share_step *steps[SHARE_STEPS_OF]; /* of each process; NULL: those of the one before */
	int (*setup)(struct share_process *me); /* NULL, or what comes after the steps; asks me->number which one it is */
	int (*check)(struct share_process *me); /* NULL, or what is to be checked besides views and objects */
};

static inline bool share_is_second(const struct share_process *me)
{
	return me->kase->traits & SHARE_SECOND;
}

/* Each ends with an entry without name. */
extern const struct share_case share_cases[], share_later_cases[];

/* ---- sharejob.c ---- */

/* Waits until all processes have come as often. -ECANCELED when one has failed. */
int share_meet(struct share_process *me);

/* ---- sharejob_cases.c ---- */

/*
 * Each process computes on one of the GPUs and imports the buffers of all others on theirs; in the second case with handles
 * and tokens that are left behind.
 */
int share_mesh_setup(struct share_process *me);

/* ---- sharejob_data.c ---- */

/* A buffer's first contents, of generation 0, by the CPU at @cpu or else by the GPU at @va. */
int share_fill(unsigned int buffer, struct share_gpu *gpu, uint64_t va, void *cpu);
/* Views of pages [first, first + pages) of a buffer, which begin at @p or @va. @writes: takes a page for itself. */
int share_view_cpu(struct share_process *me, unsigned int buffer, void *p, unsigned int first, unsigned int pages,
		   bool writes);
int share_view_gpu(struct share_process *me, unsigned int buffer, struct share_gpu *gpu, uint64_t va,
		   unsigned int first, unsigned int pages, bool writes);
/* Of the whole buffer; looked at when all is checked, and written in the last generation. */
int share_view_dmabuf(struct share_process *me, unsigned int buffer, int fd, bool writes);
/* Takes back the views of a buffer, while the case is set up; their pages are static then. */
void share_views_drop(struct share_process *me, unsigned int buffer);
/* Whether all views show what they have to; @all: dma-bufs, too. */
int share_views_check(struct share_process *me, bool all);
/* Writes the pages of the next generation. */
int share_views_write(struct share_process *me);

/* ---- sharejob_objects.c: each keeps what it makes ---- */

/* A KFD BO with its first contents and views by its GPU and, when it can, the CPU. */
int share_bo_new(struct share_process *me, unsigned int buffer, struct share_gpu *gpu, enum kfd_memory kind,
		 struct kfd_bo **ret_bo);
/* A KFD import, with a view of @gpu. */
int share_bo_import(struct share_process *me, unsigned int buffer, struct share_gpu *gpu, int dmabuf,
		    struct kfd_bo **ret_bo);
/* An import that has no address. */
int share_bo_import_bare(struct share_process *me, struct share_gpu *gpu, int dmabuf);
/* Memory without an address: no view. */
int share_bo_bare(struct share_process *me, struct share_gpu *gpu, enum kfd_memory kind, struct kfd_bo **ret_bo);
/* Frees a BO before the end: numbers have gaps. */
int share_bo_drop(struct share_process *me, struct kfd_bo *bo);

int share_handle_create(struct share_process *me, int file, uint64_t domains, uint64_t flags, uint32_t *ret_handle);
int share_handle_import(struct share_process *me, int file, int dmabuf, uint32_t *ret_handle);
/* The flags of a dma-buf's memory, by a file of its GPU. */
int share_flags(int file, int dmabuf, uint64_t *ret_flags);
/* The handle of a KFD BO in a render file of any GPU. */
int share_handle_of_bo(struct share_process *me, int file, const struct kfd_bo *bo, uint32_t *ret_handle);
/* Closes a handle before the end. */
int share_handle_drop(struct share_process *me, int file, uint32_t handle);
/* Gives an object metadata that are looked for later. */
int share_handle_describe(struct share_process *me, int file, uint32_t handle, uint64_t tiling, const void *data,
			  uint32_t bytes);

/* Maps pages of a handle at a new address; with a view when @gpu is not NULL and the GPU may read. */
int share_map_gpu(struct share_process *me, unsigned int buffer, int file, struct share_gpu *gpu, uint32_t handle,
		  unsigned int first, unsigned int pages, uint32_t flags, uint64_t *ret_va);
/* Maps the first pages of a handle for the CPU; PROT_NONE: no view. @at: NULL, or where it replaces what is there. */
int share_map_cpu(struct share_process *me, unsigned int buffer, int file, uint32_t handle, unsigned int pages,
		  int prot, void *at);

/* Lets processes that are forked later inherit the CPU's mapping of a BO. */
int share_bo_lend(struct kfd_bo *bo);
/* In such a process, a view of its parent's BO. */
int share_bo_borrow(struct share_process *me, unsigned int buffer, const struct kfd_bo *bo);

/* Keeps an open dma-buf of a buffer, with a view. @name: NULL or its name. */
int share_dmabuf_keep(struct share_process *me, unsigned int buffer, int fd, const char *name);
/* @point 0: binary. */
int share_syncobj_new(struct share_process *me, int file, uint64_t point, bool signaled);
/* A render node opened once more. */
int share_file_open(struct share_process *me, const struct kfd_gpu *gpu, int *ret_file);
/* Takes a file into the list: @own: to be closed; @alone: no other process makes handles in it. */
int share_file_keep(struct share_process *me, int fd, bool own, bool alone);

/*
 * Whether all dma-bufs of a buffer are one file; all processes come here together. A checkpoint gives them new inodes:
 * when it comes in between, they are asked once more.
 */
int share_inodes_check(struct share_process *me);

/* Notes which numbers come next. */
int share_objects_note(struct share_process *me);
/* Whether all are as they were made. */
int share_objects_check(struct share_process *me);
/* Unmaps and maps again what a GPU has mapped. */
int share_objects_remap(struct share_process *me);
/* Unmaps, closes and frees everything; the process' own files stay open. */
int share_objects_free(struct share_process *me);
/* Forgets what a forked process has of its parent; closes the parent's KFD and its render files. */
void share_objects_forget(struct share_process *me);

/* ---- sharejob_send.c ---- */

int share_boxes_open(struct share_process *me);
void share_boxes_close(struct share_process *me);
/* Sends a dma-buf of @buffer to process @to. The fd stays the caller's. */
int share_send(struct share_process *me, unsigned int to, unsigned int buffer, int fd);
/* The next one that somebody has sent; the caller closes it. */
int share_receive(struct share_process *me, unsigned int *ret_buffer, int *ret_fd);
/* Sends a KFD BO to process @to, without keeping a dma-buf. */
int share_send_bo(struct share_process *me, unsigned int to, unsigned int buffer, const struct kfd_bo *bo);

#endif
