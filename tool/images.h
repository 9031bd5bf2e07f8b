/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The plugin's image files in a directory or an archive, read and checked one by one. Nothing is written, and no
 * symbolic link is followed: criu and the plugin follow none either.
 */
#ifndef TOOL_IMAGES_H
#define TOOL_IMAGES_H

#include "image/image.h"
#include "suspend/suspend.h"

#define IMAGES_CRIU_FILES "files.img" /* criu's list of open files, beside the images */

/* More is refused: far above what a job has, and it bounds what is read of a stranger's directory. */
#define IMAGES_MAX_FILES   16384
/* Of all files but buffer data together: 272 bytes of state for each of a million BOs, and room. */
#define IMAGES_MAX_PAYLOAD (1ull << 30)

struct image_file {
	char name[IMAGE_NAME_MAX];
	struct image_name is;
	uint64_t size;	 /* bytes of the file */
	uint64_t length; /* that stands in front of a message */
	/* What it says, NULL in a file of another kind, or one that cannot be used: */
	struct gpu_process *kfd;	     /* IMAGE_KFD */
	struct render_image *render; /* IMAGE_RENDER */
	struct dmabuf_image *dmabuf; /* IMAGE_DMABUF */
	struct suspend_image *suspended; /* IMAGE_SUSPENDED */
	int err;		     /* what image_state() takes */
	char *problem;		     /* with err: a line about it */
	bool was_read, is_listed;    /* for verify.c */
};

struct images {
	const char *path; /* borrowed */
	int fd;		  /* of the directory or the archive */
	bool is_archive;
	struct image_file *files; /* by id, kind and GPU */
	size_t nr;
	char *place;		  /* directory of the images within an archive */
	uint64_t payload_bytes;	  /* of all files but buffer data */
	int settings, criu_files; /* SETTINGS_IMAGE_CONF and IMAGES_CRIU_FILES: fds at their start; -ENOENT; other -errno */
};

/* Reads those in the directory or archive @path. 0, or -errno after a line; there is one file at least. */
int images_open(const char *path, struct images *ret);
/* Accepts what images_open() has left after an error. */
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
	uint64_t at;		 /* up to where */
	uint64_t gap, left;	 /* before @at, what was not taken: bytes of zero, then those of @data */
	const uint8_t *data;
	uint8_t **block; /* in a directory: what was read */
};

/* An error ends the walk: -EBADMSG and -EINVAL after a line; the walk reports others. */
typedef int (*member_visitor)(void *arg, struct member *member);

/*
 * Shows images and the files beside them to @visit, of which images->files need not know yet. 0, or -errno after a
 * line.
 */
int images_walk(const struct images *images, member_visitor visit, void *arg);

/* Shows one file of a directory. As a visitor, which may run in several threads. */
int images_visit(const struct images *images, const char *name, member_visitor visit, void *arg);

/*
 * The next bytes of a member, @max at most: *ret is valid until the next call; NULL: zeros. How many; -ENODATA at the
 * end; other -errno, of which there is a line for -EBADMSG.
 */
int64_t member_read(struct member *member, uint64_t max, const uint8_t **ret);

/* A file with the member's bytes, at its start: the plugin's code reads files. The caller's fd, or -errno as above. */
int member_open(struct member *member);

/* The file of this kind; @gpu_id: of IMAGE_PAGES, else 0. NULL when there is none. */
struct image_file *images_find(const struct images *images, enum image_kind kind, int id, uint32_t gpu_id);

/* What an error of a file means, for all commands: it is good or damaged, this plugin does not restore it, or it was not read. */
enum image_state { IMAGE_GOOD, IMAGE_DAMAGED, IMAGE_UNSUPPORTED, IMAGE_UNREAD };
enum image_state image_state(int err);
/* In words: "good" and so on. */
const char *image_state_word(enum image_state state);

/* TOOL_GOOD; TOOL_BAD: a file cannot be restored; else TOOL_FAIL: one cannot be read. */
int images_status(const struct images *images);

/* The file has the state of a process: it is of /dev/kfd, whole, and not one of several. */
static inline bool image_is_process(const struct image_file *file)
{
	return file->kfd && !file->kfd->extra_file;
}

/* The files of this kind are messages that belong to a file of criu's, not buffer data. */
static inline bool image_kind_is_read(enum image_kind kind)
{
	return kind == IMAGE_KFD || kind == IMAGE_RENDER || kind == IMAGE_DMABUF;
}

/* The buffers on a GPU whose data are the process' own. Their sum has no overflow in any image that was read. */
struct buffer_data {
	size_t nr, nr_without; /* buffers; those without a checksum */
	uint64_t bytes;
};
struct buffer_data buffer_data_of(const struct kfd_state *state, uint32_t gpu_id);

#endif
