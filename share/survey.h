/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files that find out about sharing have in common. */
#ifndef SHARE_SURVEY_H
#define SHARE_SURVEY_H

#include "share/share.h"

/* Who names a buffer: a BO of the KFD, or a handle in a file of a render node. */
struct holder {
	uint64_t inode;	 /* of the buffer's dma-buf; where the kernel makes several, of one */
	uint64_t offset; /* of mappings on the holder's GPU: the buffer's name there */
	uint32_t minor;	 /* render minor of the holder's GPU */
	int dmabuf_fd;	 /* borrowed; -1: there is none of this holder's own */
	size_t process;
	size_t bo;	 /* of the KFD; NO_BO: a handle */
	size_t file;
	uint32_t handle;
	bool is_import;	  /* a handle of another GPU's memory */
	bool is_descriptor; /* no handle: nothing but an open dma-buf */
	bool is_mappable; /* offset says something */
};
#define NO_BO SIZE_MAX

/* How the KFD describes a BO that was imported. */
#define IMPORT_FLAGS (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | \
		      KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE)

/* All holders of one buffer. */
struct buffer {
	struct holder *holders;
	size_t nr;
	int dmabuf_fd;	/* borrowed */
	uint32_t minor; /* of the GPU whose memory it is */
};

struct survey {
	const struct share_request *request;
	struct holder *holders; /* sorted by buffer */
	size_t nr_holders;
	struct render_objects *objects; /* one for each file */
	bool *is_another;		/* likewise: not the one with the KFD's address space */
	int *dmabufs;			/* of handles */
	size_t nr_dmabufs;
	int kfd;			/* of the plugin */
	int *scratch;			/* by node of the machine, a file of its render node; -1: none yet */
	uint32_t nr_buffers;		/* numbers given out */
	uint32_t nr_sharers;
	struct iommu_group groups[TOPOLOGY_MAX_NODES]; /* of the machine's nodes, when they have been asked for */
	bool has_groups;
	bool asks_first; /* the machine has a GPU of whose memory the KFD must not be asked */
	struct references *references;
	struct older *older; /* before Linux 6.8, instead */
	struct open_buffer *open; /* whose dma-bufs tasks have open, by inode */
	size_t nr_open;
};

struct open_buffer {
	uint64_t inode;
	uint32_t buffer;
};

/* Adds a holder that is nothing but an open dma-buf of task @pid; takes the fd. 0 or -errno without a message. */
int survey_add_descriptor(struct survey *survey, pid_t pid, uint64_t inode, int dmabuf_fd);

/* A file of the render node that holds nothing of anybody; borrowed. -errno after an error line. */
int survey_scratch(struct survey *survey, uint32_t minor);

/* The render minor of the GPU whose memory a dma-buf is. 0; -EINVAL: it is not of amdgpu; other -errno. No messages. */
int survey_home(struct survey *survey, int dmabuf_fd, uint32_t *ret_minor);

/* The error line for memory that is not of amdgpu; -EOPNOTSUPP. */
int refuse_memory(pid_t pid, uint32_t minor);

/* Whether a process has the KFD's address space on a GPU in another file than this one of the same render node. */
bool file_is_another(const struct survey *survey, size_t process, size_t file);
/* Whether two files are of one node and one process, and each may be that with the KFD's address space. */
bool files_compete(const struct survey *survey, size_t file, size_t other);
/* Marks files as another one, where the KFD's shows in other ways. 0, or -errno after an error line. */
int files_settle(struct survey *survey);
/* Whether that cannot be told: the process has another one of the node that is as good. */
bool file_may_be_another(const struct survey *survey, size_t file);
/* The process, of another task, that has the KFD's address space in this file; nr_processes: none. */
size_t file_lender(const struct survey *survey, size_t file);

static inline uint32_t minor_of(const struct topology_node *node)
{
	return (uint32_t)topology_get(node, TOPOLOGY_DRM_RENDER_MINOR);
}

/* The holder's process. */
static inline struct share_process *holder_process(const struct survey *survey, const struct holder *holder)
{
	return &survey->request->processes[holder->process];
}

/* Whether two render minors are of one device: the same one, or partitions of it. */
bool survey_same_device(const struct survey *survey, uint32_t minor, uint32_t other);

/* How many references the mappings of a KFD BO on other GPUs hold; @holder is on the buffer's own device. */
int64_t peers_references(struct survey *survey, const struct buffer *buffer, const struct holder *holder);

/* Whether all references to a buffer's dma-buf are those of the dump. 0, or -errno after an error line. */
struct references;
/* Reads which dma-bufs are open, and adds what is held by nothing else to the holders, which are sorted by inode. */
int references_read(struct survey *survey, struct references **ret);
/* Whether a task has the dma-buf open. @references may be NULL. */
bool references_of_tasks(const struct references *references, uint64_t inode);
void references_free(struct references *references);
int references_check(struct survey *survey, struct references *references, const struct buffer *buffer);

/* What processes have that are not dumped. @dmabufs: the device of dma-bufs. 0, or -errno after an error line. */
struct strangers;
int strangers_read(const struct survey *survey, dev_t dmabufs, struct strangers **ret);
void strangers_free(struct strangers *strangers);
/* One that has the buffer, or 0. @far: also on GPUs that it is not of, where handles tell its size only. */
pid_t strangers_find(const struct survey *survey, const struct strangers *strangers, const struct buffer *buffer,
		     bool far);
/* One that uses the buffer's GPU, @far: any GPU, by the KFD, where nothing tells what it has there; or 0. */
pid_t strangers_unclear(const struct survey *survey, const struct strangers *strangers, const struct buffer *buffer,
			bool far);

/* Whether somebody who is not dumped may hold a buffer, where the references do not tell (before Linux 6.8). */
struct older;
int older_read(const struct survey *survey, struct older **ret);
void older_free(struct older *older);
/* Of a BO that was imported: always. 0, or -errno after an error line. */
int older_check_import(const struct survey *survey, const struct holder *holder);
/* @buffer has one BO of the KFD. 0, or -errno after an error line. */
int older_check(const struct survey *survey, const struct older *older, const struct buffer *buffer);

#endif
