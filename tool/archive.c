// SPDX-License-Identifier: GPL-2.0-only
/*
 * Archives of container engines: tar, also compressed with gzip or zstd, by libarchive.
 *
 * libarchive is loaded when an archive is read, not linked: with all that it needs it is larger than anything else that
 * the package depends on, and only this command uses it. Without its headers at build time, archives are refused.
 * Filters that libarchive runs as programs are not enabled.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>

#include "amdgpu_plugin_util.h"
#include "tool/images.h"
#include "tool/print.h"

#ifdef HAVE_LIBARCHIVE
#include <archive.h>
#include <archive_entry.h>

/* Its name since 3.0 of 2011; the number stands for its ABI. */
#define LIBRARY "libarchive.so.13"

#define BLOCK_BYTES (64u << 10)

#define FUNCTIONS(X)                                                                                        \
	X(archive_read_new) X(archive_read_support_filter_gzip) X(archive_read_support_filter_zstd)         \
	X(archive_read_support_format_tar) X(archive_read_open_fd) X(archive_read_next_header)              \
	X(archive_read_data) X(archive_read_free) X(archive_error_string) X(archive_entry_pathname)         \
	X(archive_entry_size) X(archive_entry_filetype)

static struct {
#define X(name) __typeof__(&name) name;
	FUNCTIONS(X)
#undef X
} lib;

static int load_library(const char *path)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		complain("%s: is no directory, and archives need %s, which is not installed: unpack it with tar", path,
			 LIBRARY);
		return -ENOSYS;
	}
#define X(name) lib.name = (__typeof__(&name))dlsym(handle, #name);
	FUNCTIONS(X)
#undef X
#define X(name) && lib.name
	if (true FUNCTIONS(X))
		return 0;
#undef X
	complain("%s: %s is too old to read archives with", path, LIBRARY);
	return -ENOSYS;
}

/* ---- members ---- */

/* What is done with each member. */
struct walk {
	const char *path;
	struct images *images; /* to which they are added; NULL: contents are visited */
	archive_visitor visit;
	void *arg;
	char *first_place;
};

static int wrong(const char *path, struct archive *archive)
{
	const char *why = lib.archive_error_string(archive);

	complain("%s: cannot be read as a tar archive: %s", path, why ? why : "unknown error");
	return -EBADMSG;
}

/* Copies the member into a file in memory: the plugin's code reads files. */
static int copy_member(const char *path, struct archive *archive, int fd, uint64_t *ret_size)
{
	_cleanup_free_ void *block = malloc(BLOCK_BYTES);
	uint64_t size = 0;
	la_ssize_t n = 0;
	int err = block ? 0 : -ENOMEM;

	while (!err && size <= IMAGES_MAX_PAYLOAD && (n = lib.archive_read_data(archive, block, BLOCK_BYTES)) > 0) {
		err = write_all(fd, block, (size_t)n);
		size += (uint64_t)n;
	}
	if (err || n < 0)
		return err ? err : wrong(path, archive);
	*ret_size = size;
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

static int add_payload(const char *path, struct archive *archive, const char *name, struct images *images)
{
	_cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC);
	uint64_t size = 0;
	int err = fd < 0 ? -errno : copy_member(path, archive, fd, &size);

	return err ? err : images_add(images, name, fd, size);
}

static int add_pages(const char *path, struct archive *archive, struct archive_entry *entry, const char *name,
		     struct images *images)
{
	int64_t size = lib.archive_entry_size(entry);
	uint8_t first[LENGTH_PREFIX_BYTES];
	la_ssize_t n = lib.archive_read_data(archive, first, sizeof(first));

	if (n < 0 || size < 0)
		return wrong(path, archive);
	return images_add_pages(images, name, (uint64_t)size, first, (size_t)n);
}

/* Images of one directory only: those of two would look like one job. */
static int check_place(const char *path, const char *place, char **first_place)
{
	if (!*first_place)
		*first_place = strdup(place);
	if (!*first_place)
		return -ENOMEM;
	if (!strcmp(*first_place, place))
		return 0;
	complain("%s: has images in two directories, '%s' and '%s': unpack it, and name one", path, *first_place,
		 place);
	return -EINVAL;
}

static int add_member(struct walk *walk, struct archive *archive, struct archive_entry *entry)
{
	const char *pathname = lib.archive_entry_pathname(entry);
	_cleanup_free_ char *place = pathname ? strdup(pathname) : NULL;
	char *slash = place ? strrchr(place, '/') : NULL;
	const char *name = slash ? slash + 1 : place;
	char copy[IMAGE_NAME_MAX];
	struct image_name is;
	int err;

	if (!place || !image_name_parse(name, &is))
		return 0;
	snprintf(copy, sizeof(copy), "%s", name);
	place[name - place] = '\0';
	err = check_place(walk->path, strncmp(place, "./", 2) ? place : place + 2, &walk->first_place);
	if (err)
		return err;
	if (lib.archive_entry_filetype(entry) != AE_IFREG)
		return images_add_problem(walk->images, copy, -EINVAL,
					  "is no regular file, which a restore would refuse");
	if (image_kind_is_read(is.kind))
		return add_payload(walk->path, archive, copy, walk->images);
	return add_pages(walk->path, archive, entry, copy, walk->images);
}

struct archive_member {
	struct archive *archive;
	const char *path;
};

ssize_t archive_member_read(struct archive_member *member, void *buffer, size_t size)
{
	la_ssize_t n = lib.archive_read_data(member->archive, buffer, size);

	return n < 0 ? wrong(member->path, member->archive) : n;
}

static int visit_member(struct walk *walk, struct archive *archive, struct archive_entry *entry)
{
	const char *pathname = lib.archive_entry_pathname(entry);
	const char *slash = pathname ? strrchr(pathname, '/') : NULL;
	const char *name = slash ? slash + 1 : pathname;
	struct archive_member member = { archive, walk->path };
	struct image_name is;

	if (!name || !image_name_parse(name, &is) || is.kind != IMAGE_PAGES ||
	    lib.archive_entry_filetype(entry) != AE_IFREG)
		return 0;
	return walk->visit(walk->arg, &is, &member);
}

static int walk_members(struct walk *walk, struct archive *archive)
{
	struct archive_entry *entry;
	int err = 0, r = ARCHIVE_OK;

	while (!err && ((r = lib.archive_read_next_header(archive, &entry)) == ARCHIVE_OK || r == ARCHIVE_WARN))
		err = walk->images ? add_member(walk, archive, entry) : visit_member(walk, archive, entry);
	/* For these there is a line already. */
	if (err && err != -EBADMSG && err != -EINVAL)
		complain("%s: %s", walk->path, err == -E2BIG ? "too many image files" : strerror(-err));
	if (err)
		return err;
	return r == ARCHIVE_EOF ? 0 : wrong(walk->path, archive);
}

static int walk_archive(struct walk *walk, int fd)
{
	struct archive *archive;
	int err = lib.archive_read_new ? 0 : load_library(walk->path);

	if (err)
		return err;
	archive = lib.archive_read_new();
	if (!archive)
		return -ENOMEM;
	lib.archive_read_support_filter_gzip(archive);
	lib.archive_read_support_filter_zstd(archive);
	lib.archive_read_support_format_tar(archive);
	err = lib.archive_read_open_fd(archive, fd, BLOCK_BYTES) == ARCHIVE_OK ? 0 : wrong(walk->path, archive);
	if (!err)
		err = walk_members(walk, archive);
	lib.archive_read_free(archive);
	return err;
}

int archive_read_images(const char *path, int fd, struct images *images)
{
	struct walk walk = { .path = path, .images = images };
	int err = walk_archive(&walk, fd);

	free(walk.first_place);
	return err;
}

int archive_visit_pages(const char *path, int fd, archive_visitor visit, void *arg)
{
	struct walk walk = { .path = path, .visit = visit, .arg = arg };
	int err;

	if (!lseek(fd, 0, SEEK_SET))
		return walk_archive(&walk, fd);
	err = -errno;
	complain("%s: cannot be read a second time: %s", path, strerror(-err));
	return err;
}

#else

int archive_read_images(const char *path, int fd, struct images *images)
{
	(void)fd;
	(void)images;
	complain("%s: is no directory, and this amdgpu-image was built without libarchive: unpack the archive with tar",
		 path);
	return -ENOSYS;
}

/* Nobody gets far enough to have a member. */
int archive_visit_pages(const char *path, int fd, archive_visitor visit, void *arg)
{
	(void)visit;
	(void)arg;
	return archive_read_images(path, fd, NULL);
}

ssize_t archive_member_read(struct archive_member *member, void *buffer, size_t size)
{
	(void)member;
	(void)buffer;
	(void)size;
	return -ENOSYS;
}

#endif
