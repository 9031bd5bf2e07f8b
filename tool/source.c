// SPDX-License-Identifier: GPL-2.0-only
/* Directories, and archives of container engines: tar, also compressed with gzip or zstd, by libarchive. */
#define _GNU_SOURCE
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "host/host.h"
#include "tool/images.h"
#include "tool/print.h"

#define BLOCK_BYTES (1u << 20)
/* Of one compression, and of the file: compressed a few times, 166 bytes become a terabyte. */
#define MAX_FILTERS 2

static bool is_image_name(const char *name)
{
	struct image_name is;

	return image_name_parse(name, &is) || !strcmp(name, SETTINGS_IMAGE_CONF) || !strcmp(name, IMAGES_CRIU_FILES);
}

/* ---- a directory ---- */

/* O_NONBLOCK: a FIFO of this name is not waited for. */
int images_visit(const struct images *images, const char *name, member_visitor visit, void *arg)
{
	_cleanup_free_ uint8_t *block = NULL;
	_cleanup_close_ int fd =
		openat(images->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct member member = { .images = images, .name = name, .place = "", .fd = fd, .block = &block };
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		member.err = errno == ENXIO ? -ELOOP : -errno;
	else if (!S_ISREG(st.st_mode))
		member.err = -ELOOP;
	else
		member.size = (uint64_t)st.st_size;
	return visit(arg, &member);
}

static int walk_directory(const struct images *images, member_visitor visit, void *arg)
{
	_cleanup_close_ int fd = openat(images->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return -errno;
	steal_fd(&fd);
	while (!err && (errno = 0, entry = readdir(dir)))
		if (is_image_name(entry->d_name))
			err = images_visit(images, entry->d_name, visit, arg);
	return err ? err : -errno;
}

/* Holes are passed over, where the file system tells of them. */
static int read_directory_file(struct member *member, uint64_t *ret_at)
{
	off_t data = lseek(member->fd, (off_t)member->at, SEEK_DATA);
	ssize_t n;

	*member->block = *member->block ? *member->block : malloc(BLOCK_BYTES);
	if (!*member->block)
		return -ENOMEM;
	if (data < 0 && errno == ENXIO)
		return 0;
	*ret_at = data > (off_t)member->at ? (uint64_t)data : member->at;
	do
		n = pread(member->fd, *member->block, BLOCK_BYTES, (off_t)*ret_at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	member->data = *member->block;
	member->left = (uint64_t)n;
	return n > 0;
}

/* ---- an archive ---- */

static void archive_cleanup(struct archive **archive)
{
	archive_read_free(*archive);
}

static int wrong(const struct images *images, const char *why)
{
	const char *advice = "";
	char magic[4] = "";

	/* What else archives are compressed with. */
	if (pread(images->fd, magic, sizeof(magic), 0) == sizeof(magic))
		advice = !memcmp(magic, "\xfd\x37zX", 4) ? ": decompress it with \"xz -d\" first" :
			 !memcmp(magic, "BZh", 3)	  ? ": decompress it with \"bzip2 -d\" first" : "";
	complain("%s: cannot be read as a tar archive: %s%s", images->path, why ? why : "unknown error", advice);
	return -EBADMSG;
}

static int read_entry(struct member *member, uint64_t *ret_at)
{
	const void *data;
	size_t n;
	la_int64_t at = 0;
	int r = archive_read_data_block(member->archive, &data, &n, &at);

	if (r == ARCHIVE_EOF)
		return 0;
	if (r < ARCHIVE_WARN || at < (la_int64_t)member->at || (uint64_t)at > member->size ||
	    n > member->size - (uint64_t)at)
		return wrong(member->images, archive_error_string(member->archive));
	member->data = data;
	member->left = n;
	*ret_at = (uint64_t)at;
	return 1;
}

static int visit_entry(const struct images *images, struct archive *archive, struct archive_entry *entry,
		       member_visitor visit, void *arg)
{
	const char *name = archive_entry_pathname(entry);
	size_t length = name ? strlen(name) : 0;
	/* That of a directory ends in a slash. */
	_cleanup_free_ char *path = strndup(name ? name : "", length && name[length - 1] == '/' ? length - 1 : length);
	const char *slash = path ? strrchr(path, '/') : NULL;
	_cleanup_free_ char *place = slash ? strndup(path, (size_t)(slash + 1 - path)) : strdup("");
	bool is_regular = archive_entry_filetype(entry) == AE_IFREG;
	struct member member = { .images = images, .archive = archive, .fd = -1, .err = is_regular ? 0 : -ELOOP };

	if (!path || !place)
		return -ENOMEM;
	member.name = slash ? slash + 1 : path;
	if (!is_image_name(member.name))
		return 0;
	/* Unpacked it is a file like others. */
	if (archive_entry_hardlink(entry)) {
		complain("%s: %s is a hard link in it: unpack it", images->path, path);
		return -EINVAL;
	}
	if (archive_entry_size(entry) < 0)
		return wrong(images, archive_error_string(archive));
	member.size = (uint64_t)archive_entry_size(entry);
	member.place = strncmp(place, "./", 2) ? place : place + 2;
	return visit(arg, &member);
}

/* How much of the file was read. */
static uint64_t bytes_read(void *arg)
{
	const struct images *images = arg;

	return (uint64_t)lseek(images->fd, 0, SEEK_CUR);
}

/*
 * At the next member; 0: there is none. The end is a block of zeros: without it, what was behind the last member may have been
 * cut away.
 */
static int next_member(const struct images *images, struct archive *archive, struct archive_entry **ret)
{
	int r = *ret ? archive_read_data_skip(archive) : ARCHIVE_OK;
	la_int64_t end = archive_filter_bytes(archive, 0);

	r = r < ARCHIVE_WARN ? r : archive_read_next_header(archive, ret);
	if (r == ARCHIVE_OK || r == ARCHIVE_WARN)
		return 1;
	if (r != ARCHIVE_EOF)
		return wrong(images, archive_error_string(archive));
	return archive_filter_bytes(archive, 0) > end ? 0 : wrong(images, "it is truncated: it has no end-of-archive block");
}

static int walk_archive(const struct images *images, member_visitor visit, void *arg)
{
	_cleanup_(archive_cleanup) struct archive *archive = archive_read_new();
	_cleanup_(progress_stop) struct progress_line *progress = NULL;
	struct archive_entry *entry = NULL;
	struct stat st;
	int err, r;

	if (!archive)
		return -ENOMEM;
	/* It may have been read before: the first walk begins where a pipe is as well. */
	if (lseek(images->fd, 0, SEEK_SET) < 0 && errno != ESPIPE)
		return -errno;
	archive_read_support_format_tar(archive);
	/* Where it cannot do so itself, it would run a program that is found in PATH. */
	if (archive_read_support_filter_gzip(archive) != ARCHIVE_OK ||
	    archive_read_support_filter_zstd(archive) != ARCHIVE_OK) {
		complain("%s: libarchive was built without gzip or zstd: unpack the archive with tar", images->path);
		return -EINVAL;
	}
	if (archive_read_open_fd(archive, images->fd, BLOCK_BYTES) != ARCHIVE_OK)
		return wrong(images, archive_error_string(archive));
	if (archive_filter_count(archive) > MAX_FILTERS) {
		complain("%s: is compressed more than once: unpack it", images->path);
		return -EINVAL;
	}
	if (!fstat(images->fd, &st) && S_ISREG(st.st_mode))
		progress = progress_start((uint64_t)st.st_size, bytes_read, (void *)images);
	while ((r = next_member(images, archive, &entry)) > 0) {
		err = visit_entry(images, archive, entry, visit, arg);
		if (err)
			return err;
	}
	return r;
}

/* ---- both ---- */

int images_walk(const struct images *images, member_visitor visit, void *arg)
{
	int err = (images->is_archive ? walk_archive : walk_directory)(images, visit, arg);

	if (err && err != -EBADMSG && err != -EINVAL)
		complain("%s: %s", images->path, strerror(-err));
	return err;
}

int64_t member_read(struct member *member, uint64_t max, const uint8_t **ret)
{
	uint64_t at = member->at, *rest, n;
	int r;

	/* All of the last block was taken. What no block covers is zeros, also behind the last one. */
	if (!member->gap && !member->left) {
		r = member->archive ? read_entry(member, &at) : read_directory_file(member, &at);
		if (r < 0)
			return r;
		if (!r)
			at = member->size;
		if (!r && at <= member->at)
			return -ENODATA;
		member->gap = at - member->at;
		member->at = at + member->left;
	}
	rest = member->gap ? &member->gap : &member->left;
	n = *rest < max ? *rest : max;
	*ret = member->gap ? NULL : member->data;
	*rest -= n;
	if (*ret)
		member->data += n;
	return (int64_t)n;
}

int member_open(struct member *member)
{
	_cleanup_close_ int fd = -1;
	const uint8_t *data;
	int64_t n;
	int err;

	if (!member->archive) {
		fd = fcntl(member->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : steal_fd(&fd);
	}
	fd = memfd_create("member", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)member->size))
		return -errno;
	while ((n = member_read(member, UINT64_MAX, &data)) >= 0) {
		err = data ? write_all(fd, data, (size_t)n) : lseek(fd, n, SEEK_CUR) < 0 ? -errno : 0;
		if (err)
			return err;
	}
	if (n != -ENODATA)
		return (int)n;
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : steal_fd(&fd);
}
