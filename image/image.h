/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The plugin's image files: names, framing, packing, and validation of what is read. Layout on disk is that of the
 * plugin in CRIU's tree: 8 bytes of payload length, little endian, then the payload; no magic.
 */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/kernel.h"
#include "amdgpu_plugin_topology.h"

#define IMAGE_NAME_MAX 64

/* The files of this plugin and of the one in CRIU's tree. */
enum image_kind {
	IMAGE_KFD,	 /* amdgpu-kfd-ID.img */
	IMAGE_RENDER,	 /* amdgpu-renderD-ID.img */
	IMAGE_PAGES,	 /* amdgpu-pages-ID-GPU.img */
	IMAGE_DMABUF,	 /* amdgpu-shared-ID.img */
	IMAGE_SUSPENDED, /* amdgpu-suspended-PID.img: the record of a suspended process (suspend/move.c) */
	IMAGE_FREED,	 /* amdgpu-freed-PID-GPU.img: the data of the BOs that it has freed */
	IMAGE_DMABUF_OLD, /* amdgpu-dmabuf_ID.img, of CRIU's development branch and early versions; parsed as the above */
	IMAGE_DRM_PAGES, /* amdgpu-drm-pages-ID-MINOR-BO.img, of that branch */
};

struct image_name {
	enum image_kind kind;
	int id;		 /* criu's number of the file; IMAGE_SUSPENDED, IMAGE_FREED: the process' own pid */
	uint32_t gpu_id; /* IMAGE_PAGES, IMAGE_FREED: user gpu id */
};

/* The name of an image. @gpu_id: as in it, else 0. Not for IMAGE_DRM_PAGES, which nobody makes. */
void image_name_make(enum image_kind kind, int id, uint32_t gpu_id, char ret[IMAGE_NAME_MAX]);

/* Whether a file's name is that of an image; *ret is what it says. */
bool image_name_parse(const char *name, struct image_name *ret);

/* What wrote an image, as the image says; empty and 0: not said, as in images of other writers and older ones. */
#define IMAGE_WRITER_MAX 96
struct image_writer {
	char plugin[IMAGE_WRITER_MAX]; /* its plugin_version */
	char kernel[IMAGE_WRITER_MAX]; /* its release */
	char driver[IMAGE_WRITER_MAX]; /* as struct driver_release has it */
	unsigned int criu_hooks;       /* how many hooks the criu knew, criu_running_hooks() */
};

/*
 * A process with state on GPUs: of the KFD or, without /dev/kfd, with objects of render nodes. A dump and a suspend fill it
 * from the kernel, a restore from amdgpu-kfd-<id>.img, which has all but what is said to be of the machine.
 */
struct gpu_process {
	struct task_file file;	/* of the machine: with which its state is restored, its first of /dev/kfd or, without one, of a
				   render node; fd: borrowed */
	int id;			/* of its images: criu's number of that file, once criu has asked for it */
	uint32_t *minors;	/* of the machine: render minors, one for each of state.devices */
	struct kfd_state state; /* devices: of the machine; those of the image are in nodes */
	struct topology *nodes; /* CPUs and GPUs; gpu_id is the user gpu id */
	struct image_writer writer;
	bool has_crc32c;	/* of the file itself, and it was right; false in images of other writers */
	struct device_vma *vmas;
	size_t nr_vmas;		/* 0 in images of other writers */
	bool extra_file;	/* one more file of a process whose state is in another image: state.pid, nodes and flags are all there is */
	bool no_kfd;		/* of a process without /dev/kfd: all of its BOs are objects of render nodes, one of whose
				   files has this image beside its own */
	bool is_suspended;	/* its queues stay stopped, and some of its BOs are freed: an image of IMAGE_SUSPENDED says which */
	int flags;		/* of the file, DEVICE_FLAGS of kernel/machine.h */
	uint32_t nr_sharers;	/* how many processes of the dump share buffers or have render nodes with objects, in each
				   of them; 0: this one does not */
	uint32_t nr_files;	/* of a sharer: how many device files of its task are in images, this one included */
};

/* Whether the process shares buffers of the KFD, which confuses changed ids when one is exported. */
static inline bool kfd_image_keeps_ids(const struct gpu_process *process)
{
	return process->nr_sharers && kfd_state_shares(&process->state) && !process->no_kfd;
}

/* No number of a buffer, handle or syncobj is larger: a restore fills all gaps below it. */
#define IMAGE_MAX_NUMBER (1u << 20)

/* What an open file of a render node holds. */
struct gem_handle {
	uint32_t handle;
	uint32_t buffer; /* of struct kfd_share */
};

/* A mapping in the GPU's address space, as GEM_VA takes it. */
struct gem_mapping {
	uint32_t handle;
	uint32_t flags;
	uint64_t va, size, offset;
};

struct render_syncobj {
	uint32_t handle;
	bool is_signalled;
	uint64_t point; /* of a timeline; 0: none has signalled */
};

struct render_objects {
	struct gem_handle *handles; /* ascending, like the rest */
	size_t nr_handles;
	struct gem_mapping *mappings;
	size_t nr_mappings;
	struct render_syncobj *syncobjs;
	size_t nr_syncobjs;
};

/* Leaves {}. */
void render_objects_done(struct render_objects *objects);

/* amdgpu-renderD-<id>.img */
struct render_image {
	uint32_t gpu_id;	/* user gpu id */
	uint32_t minor;		/* at dump; 0: unknown */
	struct topology *nodes; /* as in struct gpu_process, or NULL in images of other writers */
	bool without_kfd_vm;	/* the KFD's address space is that of another file of the node */
	int flags;		/* as in struct gpu_process */
	bool has_crc32c;	/* as in struct gpu_process */
	struct render_objects objects;
};

/* Accepts NULL. */
void gpu_process_free(struct gpu_process *process);
/* What is in it; leaves {}. */
void gpu_process_done(struct gpu_process *process);
void render_image_free(struct render_image *image);

/*
 * Packing and unpacking alone, without files. Packing fails with -ENOMEM only. Unpacking checks counts, sums, ids and
 * sizes: -EBADMSG with words that name @name and the place; -EFBIG for an image that would need far more memory than
 * its size.
 */
int kfd_image_pack(const struct gpu_process *image, int id, uint8_t **ret, size_t *ret_size);
int kfd_image_unpack(const char *name, const uint8_t *data, size_t size, struct gpu_process **ret);
int render_image_pack(const struct render_image *image, int id, uint8_t **ret, size_t *ret_size);
int render_image_unpack(const char *name, const uint8_t *data, size_t size, struct render_image **ret);

/* Writes an image file. 0 or -errno. */
int kfd_image_write(int id, const struct gpu_process *image);
int render_image_write(int id, const struct render_image *image);

/*
 * The payload of an image file behind @fd, which is at its start. Heap memory of the caller; or -errno, -EBADMSG
 * where the file is not whole.
 */
int image_payload_read(const char *name, int fd, uint8_t **ret, size_t *ret_size);

/* Reads an image file. -ENOENT, no message, when there is none; otherwise 0 or -errno. */
int kfd_image_read(int id, struct gpu_process **ret);
int render_image_read(int id, struct render_image **ret);

#define DMABUF_NAME_MAX 32u /* of a name, its end included (linux/dma-buf.h) */

/* amdgpu-shared-<id>.img: an open dma-buf. */
struct dmabuf_image {
	uint32_t buffer;     /* of struct kfd_share */
	uint32_t nr_sharers; /* as in struct gpu_process */
	bool has_crc32c;     /* likewise */
	char name[DMABUF_NAME_MAX];
};

int dmabuf_image_write(int id, const struct dmabuf_image *image);

/* As for the others. Those of CRIU's development branch say too little and are refused, -EOPNOTSUPP. */
int dmabuf_image_unpack(const char *name, const uint8_t *data, size_t size, struct dmabuf_image *ret);
int dmabuf_image_read(int id, struct dmabuf_image *ret);

/* The lowest id above @after for which the image directory has an image of this kind; -1: none, or a stream. */
int image_next(enum image_kind kind, int after);

/*
 * Adds the numbers of the files that plugins have saved, as criu's list of open files (files.img) has them; heap memory
 * of the caller in any case. 0; no message: -EBADMSG where it is no such list, -EFBIG, -ENOMEM.
 */
int criu_list_unpack(const uint8_t *data, size_t size, uint32_t **ret_ids, size_t *ret_nr);

/*
 * Removes all files and links with names of the plugin's images from the image directory: for a dump, before it
 * writes its own, and after a failure. Does nothing when streaming. What cannot be removed is named in a warning.
 */
void image_remove_all(void);

#endif
