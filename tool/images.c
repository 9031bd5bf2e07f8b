// SPDX-License-Identifier: GPL-2.0-only
/*
 * The set of image files. Each is read by the plugin's own code, whose error lines are kept with the file: a damaged
 * file does not hide the others.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "tool/images.h"
#include "tool/print.h"

static void file_done(struct image_file *file)
{
	kfd_image_free(file->kfd);
	render_image_free(file->render);
	free(file->dmabuf);
	free(file->problem);
}

void images_done(struct images *images)
{
	for (size_t i = 0; i < images->nr; i++)
		file_done(&images->files[i]);
	free(images->files);
	if (images->dir >= 0)
		close(images->dir);
	if (images->archive >= 0)
		close(images->archive);
	for (unsigned int i = 0; i < OTHER_NR; i++)
		if (images->others[i] >= 0)
			close(images->others[i]);
	*images = (struct images){ .dir = -1, .archive = -1, .others = { -1, -1 } };
}

/* ---- one file ---- */

/* A place for the file, empty except for its name. 0, -E2BIG or -ENOMEM. */
static int new_file(struct images *images, const char *name, struct image_file **ret)
{
	if (images->nr == IMAGES_MAX_FILES)
		return -E2BIG;
	if (images->nr == images->room) {
		size_t room = 2 * images->room + 16;
		struct image_file *grown = reallocarray(images->files, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		images->files = grown;
		images->room = room;
	}
	*ret = &images->files[images->nr];
	**ret = (struct image_file){ .order = images->nr++ };
	snprintf((*ret)->name, sizeof((*ret)->name), "%s", name);
	image_name_parse(name, &(*ret)->is);
	return 0;
}

int images_reserve(struct images *images, uint64_t size)
{
	if (size > IMAGES_MAX_PAYLOAD - images->payload_bytes)
		return -EFBIG;
	images->payload_bytes += size;
	return 0;
}

/* The plugin's lines name the image, and so does whoever shows them. */
static int set_problem(struct image_file *file, int err, const char *problem)
{
	char prefix[IMAGE_NAME_MAX + 16];

	snprintf(prefix, sizeof(prefix), "image %s: ", file->name);
	if (!strncmp(problem, prefix, strlen(prefix)))
		problem += strlen(prefix);
	file->err = err;
	file->problem = strdup(problem[0] ? problem : strerror(-err));
	return file->problem ? 0 : -ENOMEM;
}

static int read_dmabuf(struct image_file *file, const uint8_t *data, size_t size)
{
	_cleanup_free_ struct dmabuf_image *dmabuf = calloc(1, sizeof(*dmabuf));
	int err = dmabuf ? dmabuf_image_unpack(file->name, data, size, dmabuf) : -ENOMEM;

	if (!err)
		file->dmabuf = steal_ptr(dmabuf);
	return err;
}

static int read_payload(struct image_file *file, int fd)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t size;
	int err = image_payload_read(file->name, fd, &data, &size);

	if (!err && file->is.kind == IMAGE_KFD)
		err = kfd_image_unpack(file->name, data, size, &file->kfd);
	else if (!err && file->is.kind == IMAGE_RENDER)
		err = render_image_unpack(file->name, data, size, &file->render);
	else if (!err)
		err = read_dmabuf(file, data, size);
	return err;
}

static int add_payload(struct image_file *file, int fd)
{
	char caught[CAUGHT_MAX];
	int err;

	catch_begin(caught);
	err = read_payload(file, fd);
	catch_end();
	return err ? set_problem(file, err, caught) : 0;
}

static void set_length(struct image_file *file, const uint8_t *first, size_t nr_first)
{
	file->has_length = nr_first >= LENGTH_PREFIX_BYTES;
	file->length = file->has_length ? length_prefix_get(first) : 0;
}

int images_add(struct images *images, const char *name, int fd, uint64_t size, int64_t disk_bytes)
{
	uint8_t first[LENGTH_PREFIX_BYTES];
	struct image_file *file;
	int err = new_file(images, name, &file);

	if (err)
		return err;
	file->size = size;
	file->knows_disk = disk_bytes >= 0;
	file->disk_bytes = file->knows_disk ? (uint64_t)disk_bytes : 0;
	if (pread(fd, first, sizeof(first), 0) == sizeof(first))
		set_length(file, first, sizeof(first));
	return image_kind_is_read(file->is.kind) ? add_payload(file, fd) : 0;
}

int images_add_problem(struct images *images, const char *name, int err, const char *problem)
{
	struct image_file *file;
	int failed = new_file(images, name, &file);

	return failed ? failed : set_problem(file, err, problem);
}

int images_add_pages(struct images *images, const char *name, uint64_t size, const uint8_t *first, size_t nr_first)
{
	struct image_file *file;
	int err = new_file(images, name, &file);

	if (err)
		return err;
	file->size = size;
	set_length(file, first, nr_first);
	return 0;
}

/* ---- a directory ---- */

int images_open_file(const struct images *images, const char *name)
{
	/* O_NONBLOCK: a FIFO of this name is not waited for. */
	_cleanup_close_ int fd = openat(images->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	return S_ISREG(st.st_mode) ? steal_fd(&fd) : -EINVAL;
}

static int add_from_directory(struct images *images, const char *name)
{
	_cleanup_close_ int fd = images_open_file(images, name);
	struct image_name is;
	struct stat st;

	if (fd == -ELOOP || fd == -EINVAL)
		return images_add_problem(images, name, -EBADMSG, IMAGES_IS_NO_REGULAR);
	if (fd < 0)
		return images_add_problem(images, name, fd, "");
	if (fstat(fd, &st))
		return -errno;
	image_name_parse(name, &is);
	if (image_kind_is_read(is.kind) && images_reserve(images, (uint64_t)st.st_size))
		return images_add_problem(images, name, -EFBIG, IMAGES_TOO_LARGE);
	return images_add(images, name, fd, (uint64_t)st.st_size, (int64_t)st.st_blocks * 512);
}

static int read_directory(const char *path, struct images *images)
{
	_cleanup_close_ int fd = openat(images->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct image_name is;
	struct dirent *entry;
	int err = dir ? 0 : -errno;

	if (dir)
		steal_fd(&fd);
	while (!err && (errno = 0, entry = readdir(dir)))
		if (image_name_parse(entry->d_name, &is))
			err = add_from_directory(images, entry->d_name);
	if (!err && errno)
		err = -errno;
	if (err)
		complain("%s: %s", path, err == -E2BIG ? IMAGES_TOO_MANY : strerror(-err));
	return err;
}

/* ---- files beside the images ---- */

static const char *const other_names[OTHER_NR] = {
	[OTHER_SETTINGS] = "amdgpu_plugin.conf",
	[OTHER_FILES] = "files.img",
};

enum images_other images_other_named(const char *name)
{
	unsigned int i = 0;

	while (i < OTHER_NR && strcmp(name, other_names[i]))
		i++;
	return i;
}

int images_open_other(const struct images *images, enum images_other which)
{
	int fd;

	if (images->dir >= 0)
		return images_open_file(images, other_names[which]);
	if (images->others[which] < 0)
		return -ENOENT;
	if (lseek(images->others[which], 0, SEEK_SET) < 0)
		return -errno;
	fd = fcntl(images->others[which], F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* ---- all ---- */

static int compare_keys(const struct image_file *x, const struct image_file *y)
{
	if (x->is.id != y->is.id)
		return x->is.id < y->is.id ? -1 : 1;
	if (x->is.kind != y->is.kind)
		return x->is.kind < y->is.kind ? -1 : 1;
	return (x->is.gpu_id > y->is.gpu_id) - (x->is.gpu_id < y->is.gpu_id);
}

static int compare_files(const void *a, const void *b)
{
	const struct image_file *x = a, *y = b;
	int order = compare_keys(x, y);

	order = order ? order : strcmp(x->name, y->name);
	return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* An archive may have a file several times: the last one counts, as when it is unpacked. */
static void sort_files(struct images *images)
{
	size_t nr = 0;

	qsort(images->files, images->nr, sizeof(*images->files), compare_files);
	for (size_t i = 0; i < images->nr; i++) {
		if (nr && !strcmp(images->files[nr - 1].name, images->files[i].name))
			file_done(&images->files[--nr]);
		images->files[nr++] = images->files[i];
	}
	images->nr = nr;
}

static int open_path(const char *path, struct images *images)
{
	/* A writer of a FIFO is not waited for; that one that is there writes is. */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	int err;

	if (fd < 0 || fstat(fd, &st) || fcntl(fd, F_SETFL, 0)) {
		err = -errno;
		complain("%s: %s", path, strerror(-err));
		return err;
	}
	if (!S_ISDIR(st.st_mode)) {
		images->archive = steal_fd(&fd);
		return archive_read_images(path, images->archive, images);
	}
	images->dir = steal_fd(&fd);
	return read_directory(path, images);
}

int images_open(const char *path, struct images *ret)
{
	int err;

	*ret = (struct images){ .dir = -1, .archive = -1, .others = { -1, -1 } };
	err = open_path(path, ret);
	if (!err && !ret->nr) {
		complain("%s: there is no image of the plugin (amdgpu-*.img) in it", path);
		err = -ENOENT;
	}
	if (err)
		images_done(ret);
	else
		sort_files(ret);
	return err;
}

const struct image_file *images_find(const struct images *images, enum image_kind kind, int id, uint32_t gpu_id)
{
	struct image_file key = { .is = { .kind = kind, .id = id, .gpu_id = gpu_id } };
	size_t low = 0, high = images->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_keys(&images->files[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < images->nr && !compare_keys(&images->files[low], &key) ? &images->files[low] : NULL;
}

int images_status(const struct images *images)
{
	int status = TOOL_GOOD;

	for (size_t i = 0; i < images->nr; i++) {
		int err = images->files[i].err;

		if (err == -EBADMSG || err == -EOPNOTSUPP)
			return TOOL_BAD;
		status = err ? TOOL_FAIL : status;
	}
	return status;
}

struct kfd_state image_state(const struct kfd_image *kfd)
{
	struct kfd_state state = kfd->state;

	state.nr_devices = topology_count_gpus(kfd->nodes);
	return state;
}
