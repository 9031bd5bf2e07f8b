/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The plugin's image files in a directory or an archive, read and checked one by one. Nothing is written, and no
 * symbolic link is followed: criu and the plugin follow none either. An archive may have a file several times: the
 * last one counts, as when it is unpacked.
 */
#ifndef TOOL_IMAGES_H
#define TOOL_IMAGES_H

#include "image/image.h"

/* Files beside the images. */
#define IMAGES_SETTINGS "amdgpu_plugin.conf"
#define IMAGES_FILES	"files.img" /* criu's list of open files */

/* More is refused: far above what a job has, and it bounds what is read of a stranger's directory. */
#define IMAGES_MAX_FILES   16384
/* Of all files but contents together: 272 bytes of state for each of a million BOs, and room. */
#define IMAGES_MAX_PAYLOAD (1ull << 30)
/* Far more than directories in an archive of one checkpoint have files beside images. */
#define IMAGES_MAX_OTHERS  16

struct image_file {
	char name[IMAGE_NAME_MAX];
	struct image_name is;
	size_t order;  /* in which it was found */
	uint64_t size; /* bytes of the file */
	uint64_t length; /* that stands in front of a message */
	/* What it says, NULL in a file of another kind, or one that cannot be used: */
	struct kfd_image *kfd;	     /* IMAGE_KFD */
	struct render_image *render; /* IMAGE_RENDER */
	struct dmabuf_image *dmabuf; /* IMAGE_DMABUF */
	int err;		     /* -EBADMSG: damaged; other -errno: cannot be read; 0 */
	char *problem;		     /* with err: a line about it */
};

/* A file beside images. */
struct other_file {
	char *name, *place;
	int fd; /* with its bytes, or -errno */
};

struct images {
	const char *path; /* borrowed */
	int fd;		  /* of the directory or the archive */
	bool is_archive;
	struct image_file *files; /* by id, kind and GPU */
	size_t nr;
	char *place;		/* directory of the images within an archive */
	uint64_t payload_bytes; /* of all files but contents */
	struct other_file others[IMAGES_MAX_OTHERS];
	size_t nr_others;
};

/* Reads those in the directory or archive @path. 0, or -errno after a line; there is one file at least. */
int images_open(const char *path, struct images *ret);
/* Accepts what images_open() has left after an error, and {}. */
void images_done(struct images *images);

/* A file in the directory or archive. It lives as long as the visit, and is read once. */
struct member {
	const struct images *images;
	const char *name;
	const char *place; /* its directory within the archive; "" */
	uint64_t size;
	int err; /* it cannot be read: -ELOOP for what is no regular file, and other -errno */
	/* How it is read: */
	int fd;			 /* in a directory */
	struct archive *archive; /* else */
	uint64_t at;
};

/* An error ends the walk: -EBADMSG and -EINVAL after a line; the walk reports others. */
typedef int (*member_visitor)(void *arg, struct member *member);

/* Shows images and the files beside them to @visit, of which images->files need not know yet. 0, or -errno after a line. */
int images_walk(const struct images *images, member_visitor visit, void *arg);

/*
 * The next bytes of a member, valid until the next call, and their place in it; what is not covered is zeros. 1; 0 at
 * the end; -errno, of which there is a line for -EBADMSG.
 */
int member_read(struct member *member, const void **ret, size_t *ret_size, uint64_t *ret_at);

/* A file with the member's bytes, at its start: the plugin's code reads files. The caller's fd, or -errno as above. */
int member_open(struct member *member);

/* The file beside the images: an fd of the caller, at its start. -ENOENT: it is not there; other -errno. */
int images_open_other(const struct images *images, const char *name);

/* The file of this kind; @gpu_id: of IMAGE_PAGES, else 0. NULL when there is none. */
const struct image_file *images_find(const struct images *images, enum image_kind kind, int id, uint32_t gpu_id);

/* TOOL_GOOD; TOOL_BAD: a file cannot be restored; else TOOL_FAIL: one cannot be read. */
int images_status(const struct images *images);

/* The file has the state of a process: it is of /dev/kfd, whole, and not one of several. */
static inline bool image_is_process(const struct image_file *file)
{
	return file->kfd && !file->kfd->another_file;
}

/* The files of this kind are messages, not contents. */
static inline bool image_kind_is_read(enum image_kind kind)
{
	return kind == IMAGE_KFD || kind == IMAGE_RENDER || kind == IMAGE_DMABUF;
}

/* The image has a checksum of itself, which is right. */
static inline bool image_has_checksum(const struct image_file *file)
{
	return (file->kfd && file->kfd->has_crc32c) || (file->render && file->render->has_crc32c) ||
	       (file->dmabuf && file->dmabuf->has_crc32c);
}

/* The GPUs' part of a kfd image's state: with as many devices as it has GPUs, for records_begin(). Borrowed. */
struct kfd_state image_state(const struct kfd_image *kfd);

#endif
