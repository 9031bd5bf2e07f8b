/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The plugin's image files in a directory or an archive, read and checked one by one. Nothing is written, and no
 * symbolic link is followed: criu and the plugin follow none either.
 */
#ifndef TOOL_IMAGES_H
#define TOOL_IMAGES_H

#include "image/image.h"

/* More is refused: far above what a job has, and it bounds what is read of a stranger's directory. */
#define IMAGES_MAX_FILES   16384
/* Of all files but contents together: 272 bytes of state for each of a million BOs, and room. */
#define IMAGES_MAX_PAYLOAD (1ull << 30)

#define IMAGES_TOO_MANY	     "there are more than 16384 image files"
#define IMAGES_TOO_LARGE     "is larger than such images can be (1 GiB together)"
#define IMAGES_IS_NO_REGULAR "is no regular file, which a restore would refuse"

struct image_file {
	char name[IMAGE_NAME_MAX];
	struct image_name is;
	size_t order;  /* in which it was found */
	uint64_t size; /* bytes of the file */
	bool knows_disk;
	uint64_t disk_bytes; /* that it takes, without holes */
	bool has_length;     /* of what follows, as its first bytes say */
	uint64_t length;
	struct kfd_image *kfd;	     /* IMAGE_KFD */
	struct render_image *render; /* IMAGE_RENDER */
	struct dmabuf_image *dmabuf; /* IMAGE_DMABUF */
	int err;		     /* -EBADMSG: damaged; other -errno: cannot be read; 0 */
	char *problem;		     /* with err: a line about it */
};

/* Files beside the images. */
enum images_other {
	OTHER_SETTINGS, /* amdgpu_plugin.conf */
	OTHER_FILES,	/* files.img, criu's list of open files */
	OTHER_NR,
};

struct images {
	int dir;		  /* of the files, or -1 */
	int archive;		  /* that they are in, or -1 */
	struct image_file *files; /* by id, kind and GPU */
	size_t nr, room;
	uint64_t payload_bytes; /* of all files but contents */
	int others[OTHER_NR];	/* of an archive: copies in memory; -1: not there */
};

/* Reads those in the directory or archive @path. 0, or -errno after a line; there is one file at least. */
int images_open(const char *path, struct images *ret);
void images_done(struct images *images);

/* An fd of a file of a directory, which the caller closes, or -errno without a message. Only of regular files. */
int images_open_file(const struct images *images, const char *name);

/* The file beside the images: an fd, which the caller closes, at its start. -ENOENT: it is not there. */
int images_open_other(const struct images *images, enum images_other which);

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

/* It has one of itself, which is right. */
static inline bool image_has_checksum(const struct image_file *file)
{
	return (file->kfd && file->kfd->has_crc32c) || (file->render && file->render->has_crc32c) ||
	       (file->dmabuf && file->dmabuf->has_crc32c);
}

/* The GPUs' part of a kfd image's state: with as many devices as it has GPUs, for kernel/records.h. Borrowed. */
struct kfd_state image_state(const struct kfd_image *kfd);

/* ---- for readers: images.c, archive.c ---- */

/* A file other than contents has @size bytes. Whether there may be so many: 0 or -EFBIG. */
int images_reserve(struct images *images, uint64_t size);

/*
 * Adds the file @name, for which there is room, with what @fd, at its start, has; @fd is borrowed. @disk_bytes: that it
 * takes, -1: not known. 0, -E2BIG or -ENOMEM without a message.
 */
int images_add(struct images *images, const char *name, int fd, uint64_t size, int64_t disk_bytes);
/* The same for one that cannot be read, with the reason; and for contents that are not looked at. */
int images_add_problem(struct images *images, const char *name, int err, const char *problem);
int images_add_pages(struct images *images, const char *name, uint64_t size, const uint8_t *first, size_t nr_first);

/* Which of the other files this is, by its name; OTHER_NR: none. */
enum images_other images_other_named(const char *name);

/* Reads the archive behind @fd. 0, or -errno after a line. */
int archive_read_images(const char *path, int fd, struct images *images);

/* ---- contents in an archive, one file after the other ---- */

struct archive_member;

/*
 * The next bytes of a member, which are valid until the next call, and their place in the file; what is not covered is
 * zeros. 1, 0 at its end, or -EBADMSG after a line.
 */
int archive_member_next(struct archive_member *member, const void **ret, size_t *ret_size, uint64_t *ret_at);

/* Is shown a pages file. An error ends the reading: -EINVAL after a line; the reader reports others. */
typedef int (*archive_visitor)(void *arg, const struct image_name *is, struct archive_member *member);

/* Shows each pages file of the archive behind @fd to @visit. 0, or -errno after a line. */
int archive_visit_pages(const char *path, int fd, archive_visitor visit, void *arg);

#endif
