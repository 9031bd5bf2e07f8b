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
/* Of an image other than contents: 272 bytes of state for each of a million BOs, and room. */
#define IMAGES_MAX_PAYLOAD (1ull << 30)

struct image_file {
	char name[IMAGE_NAME_MAX];
	struct image_name is;
	uint64_t size; /* bytes of the file */
	bool knows_disk;
	uint64_t disk_bytes; /* that it takes, without holes */
	bool has_length;     /* IMAGE_PAGES: of contents, as its first bytes say */
	uint64_t length;
	struct kfd_image *kfd;	     /* IMAGE_KFD */
	struct render_image *render; /* IMAGE_RENDER */
	struct dmabuf_image *dmabuf; /* IMAGE_DMABUF */
	struct heir_image *heir;     /* IMAGE_HEIR */
	int err;		     /* -EBADMSG: damaged; other -errno: cannot be read; 0 */
	char *problem;		     /* with err: a line about it */
};

struct images {
	int dir;		  /* of the files, or -1 */
	int archive;		  /* that they are in, or -1 */
	struct image_file *files; /* by id, kind and GPU */
	size_t nr, room;
};

/* Reads those in the directory or archive @path. 0, or -errno after a line; there is one file at least. */
int images_open(const char *path, struct images *ret);
void images_done(struct images *images);

/* An fd of a file of a directory, which the caller closes, or -errno without a message. Only of regular files. */
int images_open_file(const struct images *images, const char *name);

/* The contents of one GPU of the process with file @id; NULL when there are none. */
const struct image_file *images_pages(const struct images *images, int id, uint32_t gpu_id);

/* The file has the state of a process: it is of /dev/kfd, whole, and not one of several. */
static inline bool image_is_process(const struct image_file *file)
{
	return file->kfd && !file->kfd->another_file;
}

/* The files of this kind are messages, not contents. */
static inline bool image_kind_is_read(enum image_kind kind)
{
	return kind == IMAGE_KFD || kind == IMAGE_RENDER || kind == IMAGE_DMABUF || kind == IMAGE_HEIR;
}

/* The GPUs' part of a kfd image's state: with as many devices as it has GPUs, for kernel/records.h. Borrowed. */
struct kfd_state image_state(const struct kfd_image *kfd);

/* ---- for readers: images.c, archive.c ---- */

/*
 * Adds the file @name with what @fd, at its start, has; @fd is borrowed. Of two with one name, the later one counts. 0,
 * -E2BIG or -ENOMEM without a message.
 */
int images_add(struct images *images, const char *name, int fd, uint64_t size);
/* The same for one that cannot be read, with the reason; and for contents that are not looked at. */
int images_add_problem(struct images *images, const char *name, int err, const char *problem);
int images_add_pages(struct images *images, const char *name, uint64_t size, const uint8_t *first, size_t nr_first);

/* Reads the archive behind @fd. 0, or -errno after a line. */
int archive_read_images(const char *path, int fd, struct images *images);

/* ---- contents in an archive, one file after the other ---- */

struct archive_member;

/* The next bytes of a member: how many, 0 at its end, or -EBADMSG after a line. */
ssize_t archive_member_read(struct archive_member *member, void *buffer, size_t size);

/* Is shown a pages file. An error ends the reading: -EINVAL after a line; the reader reports others. */
typedef int (*archive_visitor)(void *arg, const struct image_name *is, struct archive_member *member);

/* Shows each pages file of the archive behind @fd to @visit. 0, or -errno after a line. */
int archive_visit_pages(const char *path, int fd, archive_visitor visit, void *arg);

#endif
