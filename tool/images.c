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
	heir_image_free(file->heir);
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
	*images = (struct images){ .dir = -1, .archive = -1 };
}

/* ---- one file ---- */

/* A place for the file, empty except for its name; NULL when there is no memory, or too many files. */
static struct image_file *new_file(struct images *images, const char *name)
{
	struct image_file *file = NULL;

	for (size_t i = 0; i < images->nr; i++)
		if (!strcmp(images->files[i].name, name))
			file = &images->files[i];
	if (file) {
		file_done(file);
	} else {
		if (images->nr == IMAGES_MAX_FILES)
			return NULL;
		if (images->nr == images->room) {
			size_t room = 2 * images->room + 16;
			struct image_file *grown = reallocarray(images->files, room, sizeof(*grown));

			if (!grown)
				return NULL;
			images->files = grown;
			images->room = room;
		}
		file = &images->files[images->nr++];
	}
	*file = (struct image_file){ 0 };
	snprintf(file->name, sizeof(file->name), "%s", name);
	image_name_parse(name, &file->is);
	return file;
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
	else if (!err && file->is.kind == IMAGE_HEIR)
		err = heir_image_unpack(file->name, data, size, &file->heir);
	else if (!err)
		err = read_dmabuf(file, data, size);
	return err;
}

static int add_payload(struct image_file *file, int fd)
{
	char caught[CAUGHT_MAX];
	int err;

	if (file->size > IMAGES_MAX_PAYLOAD)
		return set_problem(file, -EFBIG, "is larger than such an image can be");
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

int images_add(struct images *images, const char *name, int fd, uint64_t size)
{
	struct image_file *file = new_file(images, name);
	uint8_t first[LENGTH_PREFIX_BYTES];

	if (!file)
		return -E2BIG;
	file->size = size;
	if (image_kind_is_read(file->is.kind))
		return add_payload(file, fd);
	if (size >= sizeof(first) && !read_all(fd, first, sizeof(first)))
		set_length(file, first, sizeof(first));
	return 0;
}

int images_add_problem(struct images *images, const char *name, int err, const char *problem)
{
	struct image_file *file = new_file(images, name);

	return file ? set_problem(file, err, problem) : -E2BIG;
}

int images_add_pages(struct images *images, const char *name, uint64_t size, const uint8_t *first, size_t nr_first)
{
	struct image_file *file = new_file(images, name);

	if (!file)
		return -E2BIG;
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
	struct stat st;
	int err;

	if (fd == -ELOOP || fd == -EINVAL)
		return images_add_problem(images, name, fd, "is no regular file, which a restore would refuse");
	if (fd < 0)
		return images_add_problem(images, name, fd, "");
	if (fstat(fd, &st))
		return -errno;
	err = images_add(images, name, fd, (uint64_t)st.st_size);
	if (!err) {
		struct image_file *file = &images->files[images->nr - 1];

		file->knows_disk = true;
		file->disk_bytes = (uint64_t)st.st_blocks * 512;
	}
	return err;
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
		complain("%s: %s", path, err == -E2BIG ? "too many image files" : strerror(-err));
	return err;
}

/* ---- all ---- */

static int compare_files(const void *a, const void *b)
{
	const struct image_file *x = a, *y = b;

	if (x->is.id != y->is.id)
		return x->is.id < y->is.id ? -1 : 1;
	if (x->is.kind != y->is.kind)
		return x->is.kind < y->is.kind ? -1 : 1;
	return (x->is.gpu_id > y->is.gpu_id) - (x->is.gpu_id < y->is.gpu_id);
}

static int open_path(const char *path, struct images *images)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	int err;

	if (fd < 0 || fstat(fd, &st)) {
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

	*ret = (struct images){ .dir = -1, .archive = -1 };
	err = open_path(path, ret);
	if (!err && !ret->nr) {
		complain("%s: there is no image of the plugin (amdgpu-*.img) in it", path);
		err = -ENOENT;
	}
	if (err)
		images_done(ret);
	else
		qsort(ret->files, ret->nr, sizeof(*ret->files), compare_files);
	return err;
}

const struct image_file *images_pages(const struct images *images, int id, uint32_t gpu_id)
{
	for (size_t i = 0; i < images->nr; i++) {
		const struct image_file *file = &images->files[i];

		if (file->is.kind == IMAGE_PAGES && file->is.id == id && file->is.gpu_id == gpu_id)
			return file;
	}
	return NULL;
}

struct kfd_state image_state(const struct kfd_image *kfd)
{
	struct kfd_state state = kfd->state;

	state.nr_devices = topology_count_gpus(kfd->nodes);
	return state;
}
