// SPDX-License-Identifier: GPL-2.0-only
/* Directories, and archives of container engines: tar, also compressed with gzip or zstd, by libarchive. */
#define _GNU_SOURCE
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "image/image.h"
#include "tool/print.h"
#include "tool/source.h"

#define BLOCK_BYTES (1u << 20)
/* Of one compression, and of the file: compressed a few times, 166 bytes become a terabyte. */
#define MAX_FILTERS 2

static int source_fail(const struct source *source, int err)
{
	complain("%s: %s", source->path, strerror(-err));
	return err;
}

int source_open(const char *path, struct source *ret)
{
	/* A writer of a FIFO is not waited for; that one that is there writes is. */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	*ret = (struct source){ .path = path, .fd = -1 };
	if (fd < 0 || fstat(fd, &st) || fcntl(fd, F_SETFL, 0))
		return source_fail(ret, -errno);
	ret->is_archive = !S_ISDIR(st.st_mode);
	ret->fd = steal_fd(&fd);
	return 0;
}

void source_close(struct source *source)
{
	if (source->fd >= 0)
		close(source->fd);
	source->fd = -1;
}

static bool is_wanted(const char *name)
{
	struct image_name is;

	return image_name_parse(name, &is) || !strcmp(name, SOURCE_SETTINGS) || !strcmp(name, SOURCE_FILES);
}

/* ---- a directory ---- */

/* O_NONBLOCK: a FIFO of this name is not waited for. */
static void open_file(struct member *member)
{
	struct stat st;

	member->fd = openat(member->source->fd, member->name,
			    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (member->fd < 0 || fstat(member->fd, &st))
		member->err = errno == ENXIO ? -ELOOP : -errno;
	else if (!S_ISREG(st.st_mode))
		member->err = -ELOOP;
	else
		member->size = (uint64_t)st.st_size;
}

static int visit_file(const struct source *source, const char *name, void *block, source_visitor visit, void *arg)
{
	struct member member = { .source = source, .name = name, .place = "", .block = block };
	int err;

	open_file(&member);
	err = visit(arg, &member);
	if (member.fd >= 0)
		close(member.fd);
	return err;
}

static int walk_directory(const struct source *source, void *block, source_visitor visit, void *arg)
{
	_cleanup_close_ int fd = openat(source->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return -errno;
	steal_fd(&fd);
	while (!err && (errno = 0, entry = readdir(dir)))
		if (is_wanted(entry->d_name))
			err = visit_file(source, entry->d_name, block, visit, arg);
	return err ? err : -errno;
}

/* Holes are passed over, where the file system tells of them. */
static int read_file(struct member *member, const void **ret, size_t *ret_size, uint64_t *ret_at)
{
	off_t data = lseek(member->fd, (off_t)member->at, SEEK_DATA);
	ssize_t n;

	if (data < 0 && errno == ENXIO)
		return 0;
	if (data > (off_t)member->at)
		member->at = (uint64_t)data;
	do
		n = pread(member->fd, member->block, BLOCK_BYTES, (off_t)member->at);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n ? -errno : 0;
	*ret = member->block;
	*ret_size = (size_t)n;
	*ret_at = member->at;
	member->at += (uint64_t)n;
	return 1;
}

/* ---- an archive ---- */

static int wrong(const struct source *source, struct archive *archive)
{
	const char *why = archive_error_string(archive);

	complain("%s: cannot be read as a tar archive: %s", source->path, why ? why : "unknown error");
	return -EBADMSG;
}

static int read_member(struct member *member, const void **ret, size_t *ret_size, uint64_t *ret_at)
{
	la_int64_t at = 0;
	int r = archive_read_data_block(member->archive, ret, ret_size, &at);

	if (r == ARCHIVE_EOF)
		return 0;
	if (r < ARCHIVE_WARN || at < 0 || (uint64_t)at > member->size || *ret_size > member->size - (uint64_t)at)
		return wrong(member->source, member->archive);
	*ret_at = (uint64_t)at;
	return 1;
}

static int visit_entry(const struct source *source, struct archive *archive, struct archive_entry *entry,
		       source_visitor visit, void *arg)
{
	const char *path = archive_entry_pathname(entry), *slash = path ? strrchr(path, '/') : NULL;
	_cleanup_free_ char *place = slash ? strndup(path, (size_t)(slash + 1 - path)) : strdup("");
	bool is_regular = archive_entry_filetype(entry) == AE_IFREG;
	struct member member = { .source = source, .archive = archive, .fd = -1, .err = is_regular ? 0 : -ELOOP };

	if (!place)
		return -ENOMEM;
	member.name = slash ? slash + 1 : path;
	if (!path || !is_wanted(member.name))
		return 0;
	if (archive_entry_size(entry) < 0)
		return wrong(source, archive);
	member.size = (uint64_t)archive_entry_size(entry);
	member.place = strncmp(place, "./", 2) ? place : place + 2;
	return visit(arg, &member);
}

static int walk_entries(const struct source *source, struct archive *archive, source_visitor visit, void *arg)
{
	struct archive_entry *entry;
	int err = 0, r = ARCHIVE_OK;

	if (archive_read_open_fd(archive, source->fd, BLOCK_BYTES) != ARCHIVE_OK)
		return wrong(source, archive);
	if (archive_filter_count(archive) > MAX_FILTERS) {
		complain("%s: is compressed more than once: unpack it", source->path);
		return -EINVAL;
	}
	while (!err && ((r = archive_read_next_header(archive, &entry)) == ARCHIVE_OK || r == ARCHIVE_WARN))
		err = visit_entry(source, archive, entry, visit, arg);
	if (err)
		return err;
	return r == ARCHIVE_EOF ? 0 : wrong(source, archive);
}

static int walk_archive(const struct source *source, source_visitor visit, void *arg)
{
	struct archive *archive = archive_read_new();
	int err = -EINVAL;

	if (!archive)
		return -ENOMEM;
	archive_read_support_format_tar(archive);
	/* Where it cannot do so itself, it would run a program that is found in PATH. */
	if (archive_read_support_filter_gzip(archive) == ARCHIVE_OK &&
	    archive_read_support_filter_zstd(archive) == ARCHIVE_OK)
		err = walk_entries(source, archive, visit, arg);
	else
		complain("%s: libarchive was built without gzip or zstd: unpack the archive with tar", source->path);
	archive_read_free(archive);
	return err;
}

/* ---- both ---- */

int source_walk(const struct source *source, source_visitor visit, void *arg)
{
	_cleanup_free_ void *block = malloc(BLOCK_BYTES);
	int err = -ENOMEM;

	/* Fails at the first walk through a pipe as well, which is at its start then. */
	if (source->is_archive && lseek(source->fd, 0, SEEK_SET) < 0 && errno != ESPIPE)
		return source_fail(source, -errno);
	if (block)
		err = source->is_archive ? walk_archive(source, visit, arg) : walk_directory(source, block, visit, arg);
	return err && err != -EBADMSG && err != -EINVAL ? source_fail(source, err) : err;
}

int member_read(struct member *member, const void **ret, size_t *ret_size, uint64_t *ret_at)
{
	return member->archive ? read_member(member, ret, ret_size, ret_at) : read_file(member, ret, ret_size, ret_at);
}

static int copy(struct member *member, int fd)
{
	const void *data;
	uint64_t at;
	size_t n;
	int r;

	if (ftruncate(fd, (off_t)member->size))
		return -errno;
	while ((r = member_read(member, &data, &n, &at)) > 0) {
		if (lseek(fd, (off_t)at, SEEK_SET) < 0)
			return -errno;
		r = write_all(fd, data, n);
		if (r)
			return r;
	}
	return r ? r : lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

int member_open(struct member *member)
{
	_cleanup_close_ int fd = -1;
	int err;

	if (!member->archive) {
		fd = fcntl(member->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : steal_fd(&fd);
	}
	fd = memfd_create("member", MFD_CLOEXEC);
	err = fd < 0 ? -errno : copy(member, fd);
	return err ? err : steal_fd(&fd);
}
