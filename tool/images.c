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
	for (size_t i = 0; i < images->nr_others; i++) {
		if (images->others[i].fd >= 0)
			close(images->others[i].fd);
		free(images->others[i].name);
		free(images->others[i].place);
	}
	free(images->files);
	free(images->place);
	if (images->path && images->fd >= 0)
		close(images->fd);
	*images = (struct images){ 0 };
}

/* ---- one file ---- */

/* A place for the file, empty except for its name. 0, -E2BIG or -ENOMEM. */
static int new_file(struct images *images, const char *name, struct image_file **ret)
{
	if (images->nr == IMAGES_MAX_FILES)
		return -E2BIG;
	if (array_add(images->files, images->nr, (struct image_file){ 0 }))
		return -ENOMEM;
	*ret = &images->files[images->nr - 1];
	(*ret)->order = images->nr;
	snprintf((*ret)->name, sizeof((*ret)->name), "%s", name);
	image_name_parse(name, &(*ret)->is);
	return 0;
}

static int reserve(struct images *images, uint64_t size)
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
	fail_clear();
	return file->problem ? 0 : -ENOMEM;
}

static int unpack(struct image_file *file, const uint8_t *data, size_t size)
{
	if (file->is.kind == IMAGE_KFD)
		return kfd_image_unpack(file->name, data, size, &file->kfd);
	if (file->is.kind == IMAGE_RENDER)
		return render_image_unpack(file->name, data, size, &file->render);
	file->dmabuf = calloc(1, sizeof(*file->dmabuf));
	return file->dmabuf ? dmabuf_image_unpack(file->name, data, size, file->dmabuf) : -ENOMEM;
}

static int read_payload(struct image_file *file, int fd)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t size;
	int err = image_payload_read(file->name, fd, &data, &size);

	file->length = err ? 0 : size;
	err = err ? err : unpack(file, data, size);
	if (err)
		free(steal_ptr(file->dmabuf));
	return err;
}

static int add_payload(struct image_file *file, struct member *member)
{
	_cleanup_close_ int fd = member_open(member);
	int err = fd < 0 ? fd : read_payload(file, fd);

	return fd >= 0 && err ? set_problem(file, err, fail_text()) : err;
}

/* Images of one directory only: those of two would look like one job. */
static int check_place(struct images *images, const char *place)
{
	if (!images->place)
		images->place = strdup(place);
	if (!images->place)
		return -ENOMEM;
	if (!strcmp(images->place, place))
		return 0;
	complain("%s: has images in two directories, '%s' and '%s': unpack it, and name one", images->path,
		 images->place, place);
	return -EINVAL;
}

static int add_other(struct images *images, struct member *member)
{
	struct other_file *other = &images->others[images->nr_others];

	if (images->nr_others == IMAGES_MAX_OTHERS || reserve(images, member->size))
		return -EFBIG;
	*other = (struct other_file){ strdup(member->name), strdup(member->place), member->err };
	images->nr_others++;
	if (!member->err)
		other->fd = member_open(member);
	return other->name && other->place ? 0 : -ENOMEM;
}

static int add(void *arg, struct member *member)
{
	struct images *images = arg;
	struct image_file *file;
	struct image_name is;
	int err;

	if (!image_name_parse(member->name, &is))
		return add_other(images, member);
	err = check_place(images, member->place);
	err = err ? err : new_file(images, member->name, &file);
	if (err)
		return err;
	file->size = member->size;
	if (member->err == -ELOOP)
		return set_problem(file, -EBADMSG, "is no regular file, which a restore would refuse");
	if (member->err)
		return set_problem(file, member->err, "");
	if (!image_kind_is_read(is.kind))
		return 0;
	if (reserve(images, member->size))
		return set_problem(file, -EFBIG, "is larger than such images can be (1 GiB together)");
	return add_payload(file, member);
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

/* Of a file that is there several times, the last one counts. */
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

static int open_path(struct images *images)
{
	struct stat st;

	/* A writer of a FIFO is not waited for; that one that is there writes is. */
	images->fd = open(images->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (images->fd < 0 || fstat(images->fd, &st) || fcntl(images->fd, F_SETFL, 0))
		return -errno;
	images->is_archive = !S_ISDIR(st.st_mode);
	return 0;
}

int images_open(const char *path, struct images *ret)
{
	int err;

	*ret = (struct images){ .path = path };
	err = open_path(ret);
	if (err) {
		complain("%s: %s", path, strerror(-err));
		return err;
	}
	err = images_walk(ret, add, ret);
	if (err)
		return err;
	if (!ret->nr) {
		complain("%s: there is no image of the plugin (amdgpu-*.img) in it", path);
		return -ENOENT;
	}
	sort_files(ret);
	return 0;
}

int images_open_other(const struct images *images, const char *name)
{
	for (size_t i = images->nr_others; i-- > 0;) {
		const struct other_file *other = &images->others[i];
		int fd;

		if (strcmp(other->name, name) || strcmp(other->place, images->place))
			continue;
		if (other->fd < 0)
			return other->fd;
		fd = fcntl(other->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 || lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd;
	}
	return -ENOENT;
}

const struct image_file *images_find(const struct images *images, enum image_kind kind, int id, uint32_t gpu_id)
{
	const struct image_file key = { .is = { .kind = kind, .id = id, .gpu_id = gpu_id } };
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
