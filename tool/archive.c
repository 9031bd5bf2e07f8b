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
/* Of one compression, and of the file: compressed a few times, 166 bytes become a terabyte. */
#define MAX_FILTERS 2

#define FUNCTIONS(X)                                                                                        \
	X(archive_read_new) X(archive_read_support_filter_gzip) X(archive_read_support_filter_zstd)         \
	X(archive_read_support_format_tar) X(archive_read_open_fd) X(archive_read_next_header)              \
	X(archive_read_data) X(archive_read_data_block) X(archive_filter_count) X(archive_read_free)        \
	X(archive_error_string) X(archive_entry_pathname)                                                   \
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

/* A file beside the images, and the directory that it is in. */
struct other {
	enum images_other which;
	int fd;
	char *place;
};

/* Far more than directories in an archive of one checkpoint have such files. */
#define MAX_OTHERS 16

/* What is done with each member. */
struct walk {
	const char *path;
	struct images *images; /* to which they are added; NULL: contents are visited */
	archive_visitor visit;
	void *arg;
	char *first_place; /* of images */
	struct other others[MAX_OTHERS];
	size_t nr_others;
};

static int wrong(const char *path, struct archive *archive)
{
	const char *why = lib.archive_error_string(archive);

	complain("%s: cannot be read as a tar archive: %s", path, why ? why : "unknown error");
	return -EBADMSG;
}

/* Copies the member of @size bytes into a file in memory: the plugin's code reads files. An fd or -errno. */
static int copy_member(const char *path, struct archive *archive, uint64_t size)
{
	_cleanup_close_ int fd = memfd_create("member", MFD_CLOEXEC);
	_cleanup_free_ void *block = malloc(BLOCK_BYTES);
	int err = fd < 0 ? -errno : block ? 0 : -ENOMEM;

	while (!err && size) {
		la_ssize_t n = lib.archive_read_data(archive, block, size < BLOCK_BYTES ? size : BLOCK_BYTES);

		if (n <= 0)
			return wrong(path, archive);
		err = write_all(fd, block, (size_t)n);
		size -= (uint64_t)n;
	}
	if (err)
		return err;
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : steal_fd(&fd);
}

static int add_payload(struct walk *walk, struct archive *archive, const char *name, uint64_t size)
{
	_cleanup_close_ int fd = -1;

	if (images_reserve(walk->images, size))
		return images_add_problem(walk->images, name, -EFBIG, IMAGES_TOO_LARGE);
	fd = copy_member(walk->path, archive, size);
	return fd < 0 ? fd : images_add(walk->images, name, fd, size, -1);
}

static int add_pages(struct walk *walk, struct archive *archive, const char *name, uint64_t size)
{
	uint8_t first[LENGTH_PREFIX_BYTES];
	la_ssize_t n = lib.archive_read_data(archive, first, sizeof(first));

	return n < 0 ? wrong(walk->path, archive) : images_add_pages(walk->images, name, size, first, (size_t)n);
}

/* Kept until it is known where the images are. The last one of a place counts; of too many places none does. */
static int add_other(struct walk *walk, struct archive *archive, enum images_other which, const char *place,
		     uint64_t size)
{
	struct other *other = walk->others;
	int fd;

	while (other < walk->others + walk->nr_others && (other->which != which || strcmp(other->place, place)))
		other++;
	if (other == walk->others + MAX_OTHERS || images_reserve(walk->images, size))
		return 0;
	fd = copy_member(walk->path, archive, size);
	if (fd < 0)
		return fd;
	if (other < walk->others + walk->nr_others) {
		close(other->fd);
		other->fd = fd;
		return 0;
	}
	walk->nr_others++;
	*other = (struct other){ which, fd, strdup(place) };
	return other->place ? 0 : -ENOMEM;
}

static void take_others(struct walk *walk)
{
	for (size_t i = 0; i < walk->nr_others; i++) {
		struct other *other = &walk->others[i];

		if (other->place && walk->first_place && !strcmp(other->place, walk->first_place))
			walk->images->others[other->which] = other->fd;
		else
			close(other->fd);
		free(other->place);
	}
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

static int add_image(struct walk *walk, struct archive *archive, const char *name, uint64_t size, bool is_regular)
{
	struct image_name is;

	image_name_parse(name, &is);
	if (!is_regular)
		return images_add_problem(walk->images, name, -EBADMSG, IMAGES_IS_NO_REGULAR);
	if (image_kind_is_read(is.kind))
		return add_payload(walk, archive, name, size);
	return add_pages(walk, archive, name, size);
}

static int add_member(struct walk *walk, struct archive *archive, struct archive_entry *entry)
{
	const char *pathname = lib.archive_entry_pathname(entry);
	_cleanup_free_ char *place = pathname ? strdup(pathname) : NULL;
	char *slash = place ? strrchr(place, '/') : NULL;
	_cleanup_free_ char *name = place ? strdup(slash ? slash + 1 : place) : NULL;
	bool is_regular = lib.archive_entry_filetype(entry) == AE_IFREG;
	int64_t size = lib.archive_entry_size(entry);
	enum images_other which;
	struct image_name is;
	const char *in;
	int err;

	if (!name)
		return pathname ? -ENOMEM : 0;
	place[slash ? slash + 1 - place : 0] = '\0';
	in = strncmp(place, "./", 2) ? place : place + 2;
	which = images_other_named(name);
	if (size < 0)
		return wrong(walk->path, archive);
	if (which != OTHER_NR && is_regular)
		return add_other(walk, archive, which, in, (uint64_t)size);
	if (!image_name_parse(name, &is))
		return 0;
	err = check_place(walk->path, in, &walk->first_place);
	return err ? err : add_image(walk, archive, name, (uint64_t)size, is_regular);
}

struct archive_member {
	struct archive *archive;
	const char *path;
};

int archive_member_next(struct archive_member *member, const void **ret, size_t *ret_size, uint64_t *ret_at)
{
	la_int64_t at = 0;
	int r = lib.archive_read_data_block(member->archive, ret, ret_size, &at);

	if (r == ARCHIVE_EOF)
		return 0;
	if (r < ARCHIVE_WARN || at < 0)
		return wrong(member->path, member->archive);
	*ret_at = (uint64_t)at;
	return 1;
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
		complain("%s: %s", walk->path, err == -E2BIG ? IMAGES_TOO_MANY : strerror(-err));
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
	lib.archive_read_support_format_tar(archive);
	/* Where it cannot do so itself, it would run a program that is found in PATH. */
	if (lib.archive_read_support_filter_gzip(archive) != ARCHIVE_OK ||
	    lib.archive_read_support_filter_zstd(archive) != ARCHIVE_OK) {
		complain("%s: %s was built without gzip or zstd: unpack the archive with tar", walk->path, LIBRARY);
		lib.archive_read_free(archive);
		return -ENOSYS;
	}
	err = lib.archive_read_open_fd(archive, fd, BLOCK_BYTES) == ARCHIVE_OK ? 0 : wrong(walk->path, archive);
	if (!err && lib.archive_filter_count(archive) > MAX_FILTERS) {
		complain("%s: is compressed more than once: unpack it", walk->path);
		err = -EINVAL;
	}
	if (!err)
		err = walk_members(walk, archive);
	lib.archive_read_free(archive);
	return err;
}

int archive_read_images(const char *path, int fd, struct images *images)
{
	struct walk walk = { .path = path, .images = images };
	int err = walk_archive(&walk, fd);

	take_others(&walk);
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

int archive_member_next(struct archive_member *member, const void **ret, size_t *ret_size, uint64_t *ret_at)
{
	(void)member;
	(void)ret;
	(void)ret_size;
	(void)ret_at;
	return -ENOSYS;
}

#endif
