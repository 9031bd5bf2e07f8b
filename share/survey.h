/* SPDX-License-Identifier: GPL-2.0-only */
/* What a dump knows of shared buffers, and its steps. All but survey.c work on what that one keeps. */
#ifndef SHARE_SURVEY_H
#define SHARE_SURVEY_H

#include "amdgpu_plugin_drm.h"
#include "share/share.h"

enum holder_kind {
	HOLDER_BO,     /* of the KFD */
	HOLDER_HANDLE, /* in a file of a render node */
	HOLDER_DMABUF, /* an open dma-buf that nothing else names the buffer by */
	NR_HOLDER_KINDS,
};

/* Who names a buffer. */
struct holder {
	uint64_t inode;	 /* of the buffer's dma-buf; where the kernel makes several, of one */
	uint64_t offset; /* of mappings on the holder's GPU: the buffer's name there */
	uint32_t minor;	 /* render minor of the holder's GPU */
	int dmabuf_fd;	 /* borrowed; -1: there is none of this holder's own */
	enum holder_kind kind;
	size_t process;
	size_t bo;	 /* of a HOLDER_BO: its place in the state */
	size_t file;	 /* of a HOLDER_HANDLE, as the next two are */
	uint32_t handle;
	bool is_import;	    /* of another GPU's memory */
	bool is_mappable;   /* offset says something */
	bool is_home;	    /* the memory is known to be of the holder's GPU */
	uint32_t gpu_minor; /* of the first holder of a buffer: of the GPU whose memory it is; 0: not found yet */
};

/* How the KFD describes a BO that was imported. */
#define IMPORT_FLAGS (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | \
		      KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE)

/* All holders of one buffer. */
struct buffer {
	struct holder *holders;
	size_t nr;
	int dmabuf_fd;	/* borrowed */
	uint32_t minor; /* of the GPU whose memory it is, after survey_find_gpu() */
};

/* What a file of a render node said when it was asked. Each error is of the fields that follow it. */
struct holdings {
	bool is_asked; /* it is of a process that is saved */
	int fd;
	struct render_objects *objects;
	int objects_err;
	uint32_t nr_contexts, pending; /* pending: a syncobj whose fence has not signalled */
	int handles_err; /* -EINVAL: they are not listed */
	struct gem_entry *handles;
	size_t nr_handles;
	int unlisted_err;
	uint32_t nr_unlisted;
};

struct open_buffer {
	uint64_t inode;
	uint32_t buffer;
};

struct survey {
	const struct share_request *request;
	struct holder *holders;
	size_t nr_holders, nr_kfd_holders; /* the first nr_kfd_holders are sorted by name */
	struct render_objects *objects; /* one for each file */
	struct holdings *holdings;	/* likewise (collect.c) */
	bool *without_kfd_vm;		/* likewise: the KFD's address space is that of another file */
	int *dmabufs;			/* of handles and descriptors */
	size_t nr_dmabufs;
	int kfd;			/* of the plugin */
	int own_files[2][TOPOLOGY_MAX_NODES]; /* our own files of each node's render node; -1: not opened */
	uint32_t nr_buffers;		/* numbers given out */
	uint32_t nr_sharers;
	bool has_gpu_without_kfd; /* asking the KFD about a buffer of such a GPU crashes the kernel: ask the render node first */
	struct references *references;
	struct open_buffer *open; /* whose dma-bufs tasks have open, by inode */
	size_t nr_open;
};

/* 0, -ENOMEM, or why /dev/kfd cannot be opened, without a message. survey_done() in any case. */
int survey_init(struct survey *survey, const struct share_request *request);
void survey_done(struct survey *survey);

/* ---- holders and buffers ---- */

/* Keeps a dma-buf for the survey's life; closes it after an error. 0 or -ENOMEM. */
int survey_keep_dmabuf(struct survey *survey, int fd);

/* Sorts the holders by buffer, those of one buffer by process and BO. */
void survey_sort(struct survey *survey);

/* The next buffer of sorted holders, {} to begin with; false behind the last. */
bool survey_next(const struct survey *survey, struct buffer *buffer);

/* Whether nobody could have imported a buffer: its dma-buf was made for this dump. */
bool survey_is_private(const struct survey *survey, const struct buffer *buffer);

/* The process of a task; nr_processes: none. */
size_t survey_process_of(const struct share_request *request, pid_t pid);

static inline struct gpu_process *holder_process(const struct survey *survey, const struct holder *holder)
{
	return survey->request->processes[holder->process];
}

static inline pid_t holder_pid(const struct survey *survey, const struct holder *holder)
{
	return holder_process(survey, holder)->file.pid;
}

static inline struct bo *holder_bo(const struct survey *survey, const struct holder *holder)
{
	return &holder_process(survey, holder)->state.bos[holder->bo];
}

/* ---- GPUs and dma-bufs ---- */

/* Whether two render minors are of one device: the same one, or partitions of it. */
bool survey_same_device(const struct survey *survey, uint32_t minor, uint32_t other);

/* A file of the render node that holds nothing of anybody; borrowed. -errno without a message. */
int survey_own_file(struct survey *survey, uint32_t minor);

/* What the memory of a dma-buf is on a GPU. */
struct memory {
	struct gem_info info;
	uint64_t offset;
	bool has_offset; /* it is for the CPU */
};

/*
 * Imports a dma-buf for a moment. @ret: its offset stays as it is for memory that is not for the CPU. @ret_metadata:
 * NULL, or gets what is attached to the memory. 0 or -errno without a message.
 */
int survey_look_at(struct survey *survey, uint32_t minor, int dmabuf_fd, struct memory *ret,
		   struct kfd_share *ret_metadata);

/* 0 or -errno without a message. */
int survey_inode(int fd, uint64_t *ret);

/*
 * Whether a dma-buf is memory of the GPU with this render minor: 1, 0, or -errno without a message. @known: a render minor of
 * that GPU's device; 0: none is known.
 */
int survey_is_home(struct survey *survey, uint32_t minor, int dmabuf_fd, uint32_t known);

/*
 * The actual id of the GPU whose memory a dma-buf is. @known: likewise. 0; -EINVAL: the memory is not of an AMD GPU that the
 * KFD drives; other -errno. No messages.
 */
int survey_ask_gpu(struct survey *survey, int dmabuf_fd, uint32_t known, uint32_t *ret);

/* The render minor of that GPU. Likewise. */
int survey_home(struct survey *survey, int dmabuf_fd, uint32_t known, uint32_t *ret_minor);

/* Sets the buffer's GPU. The kernel is asked once for each buffer, when the holders are sorted. */
int survey_find_gpu(struct survey *survey, struct buffer *buffer);

/* The refusal of memory that is not of amdgpu: -EOPNOTSUPP. */
int survey_refuse_memory(pid_t pid, uint32_t minor);

/* ---- files of render nodes (files.c) ---- */

/* Sets without_kfd_vm of all files, once their syncobjs are known. 0 or -ENOMEM. */
int files_find_kfd_vm(struct survey *survey);

/* Whether a process has another file of the node that may as well be the one with the KFD's address space. */
bool files_may_lack_kfd_vm(const struct survey *survey, size_t file);

/* The process that has the KFD's address space in this file of a task without /dev/kfd; nr_processes: none. */
size_t files_owner(const struct survey *survey, size_t file);

/* ---- who holds what (collect.c) ---- */

/* Finds the BOs of the KFD, and no handles. */
int collect_bos(struct survey *survey);
/*
 * After that: GEM handles of these in the processes' render files. What is not understood is left out: its references
 * then stay unexplained. Before Linux 6.18 there are none.
 */
int collect_known_handles(struct survey *survey);
/* Finds all holders, and what else the files of render nodes hold. */
int collect_all(struct survey *survey);

/* ---- references to a buffer (references.c) ---- */

/* Reads which dma-bufs are open, and adds what is held by nothing else to the holders, which are sorted by buffer. */
int references_read(struct survey *survey);
void references_free(struct references *references);

/* Whether a task has the dma-buf open. @references may be NULL. */
bool references_of_tasks(const struct references *references, uint64_t inode);

/* Whether all references to a buffer's dma-buf are those of the dump. */
int references_check(struct survey *survey, const struct buffer *buffer);
/* Whether they are so now: 1; 0; -errno after fail(). Those of what was just freed may still be there. */
int references_explain(struct survey *survey, const struct buffer *buffer);

/* ---- processes that are not dumped (externals.c) ---- */

/* What processes have that are not dumped. */
struct externals;

/* externals_free() in any case. */
int externals_read(const struct survey *survey, struct externals **ret);
void externals_free(struct externals *externals);

/* A process that has the buffer of this dma-buf, or 0. */
pid_t externals_find(const struct externals *externals, uint64_t inode);

/*
 * A process that may have the buffer, of which that cannot be seen; or 0. @any: in whatever way, else only by a handle.
 * @far: on GPUs that the buffer is not of, too.
 */
pid_t externals_suspect(const struct survey *survey, const struct externals *externals, const struct buffer *buffer,
			bool any, bool far);

/* ---- what is written down (decide.c) ---- */

/* Numbers the buffers with several names, and writes into the states what each is to its processes. */
int decide_all(struct survey *survey);

#endif
