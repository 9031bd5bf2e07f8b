/* SPDX-License-Identifier: GPL-2.0-only */
/* A directory or an archive, and the files in it that are looked at, one after the other. */
#ifndef TOOL_SOURCE_H
#define TOOL_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Files beside the images. */
#define SOURCE_SETTINGS "amdgpu_plugin.conf"
#define SOURCE_FILES	"files.img" /* criu's list of open files */

struct source {
	const char *path; /* borrowed */
	int fd;		  /* of the directory or the archive */
	bool is_archive;
};

/* A file. It lives as long as the visit, and is read once. */
struct member {
	const struct source *source;
	const char *name;
	const char *place; /* its directory within the archive; "" */
	uint64_t size;
	int err; /* it cannot be read: -ELOOP for what is no regular file, and other -errno */
	/* How it is read: */
	int fd;			 /* in a directory */
	struct archive *archive; /* else */
	void *block;
	uint64_t at;
};

/* 0, or -errno after a line. */
int source_open(const char *path, struct source *ret);
void source_close(struct source *source);

/* An error ends the walk: -EBADMSG and -EINVAL after a line; the walk reports others. */
typedef int (*source_visitor)(void *arg, struct member *member);

/*
 * Shows images and the files beside them to @visit. An archive may have a file several times: the last one counts, as
 * when it is unpacked. No symbolic link is followed. 0, or -errno after a line.
 */
int source_walk(const struct source *source, source_visitor visit, void *arg);

/*
 * The next bytes of a member, valid until the next call, and their place in it; what is not covered is zeros. 1; 0 at
 * the end; -errno, of which there is a line for -EBADMSG.
 */
int member_read(struct member *member, const void **ret, size_t *ret_size, uint64_t *ret_at);

/* A file with the member's bytes, at its start: the plugin's code reads files. The caller's fd, or -errno as above. */
int member_open(struct member *member);

#endif
