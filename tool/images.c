// SPDX-License-Identifier: GPL-2.0-only
/*
 * The set of image files. Each is read by the plugin's own code, whose error lines are kept with the file: a damaged
 * file does not hide the others.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "host/host.h"
#include "tool/images.h"
#include "tool/print.h"

void images_done(struct images *images)
{
	for (size_t i = 0; i < images->nr; i++) {
		gpu_process_free(images->files[i].kfd);
		render_image_free(images->files[i].render);
		free(images->files[i].dmabuf);
		if (images->files[i].suspended)
			suspend_image_done(images->files[i].suspended);
		free(images->files[i].suspended);
		free(images->files[i].problem);
	}
	free(images->files);
	free(images->place);
	cleanup_close(&images->settings);
	cleanup_close(&images->criu_files);
	cleanup_close(&images->fd);
}

/* ---- one file ---- */

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

static int unpack(struct image_file *file, int fd)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t size;
	int err = image_payload_read(file->name, fd, &data, &size);

	if (err)
		return err;
	file->length = size;
	if (file->is.kind == IMAGE_KFD)
		return kfd_image_unpack(file->name, data, size, &file->kfd);
	if (file->is.kind == IMAGE_RENDER)
		return render_image_unpack(file->name, data, size, &file->render);
	if (file->is.kind == IMAGE_SUSPENDED) {
		file->suspended = calloc(1, sizeof(*file->suspended));
		err = file->suspended ? suspend_image_read(file->name, data, size, file->suspended) : -ENOMEM;
		if (err)
			free(steal_ptr(file->suspended));
		return err;
	}
	file->dmabuf = calloc(1, sizeof(*file->dmabuf));
	err = file->dmabuf ? dmabuf_image_unpack(file->name, data, size, file->dmabuf) : -ENOMEM;
	if (err)
		free(steal_ptr(file->dmabuf));
	return err;
}

static int add_image(struct images *images, struct member *member, const struct image_name *is)
{
	struct image_file new = { .is = *is, .size = member->size }, *file;
	_cleanup_close_ int fd = -1;
	int err;

	if (images->nr == IMAGES_MAX_FILES)
		return -E2BIG;
	snprintf(new.name, sizeof(new.name), "%s", member->name);
	if (array_add(images->files, images->nr, new))
		return -ENOMEM;
	file = &images->files[images->nr - 1];
	if (member->err == -ELOOP)
		return set_problem(file, -EBADMSG, "is no regular file, which a restore would refuse");
	if (member->err)
		return set_problem(file, member->err, "");
	if (!image_kind_is_read(is->kind) && is->kind != IMAGE_SUSPENDED)
		return 0;
	if (reserve(images, member->size))
		return set_problem(file, -EFBIG, "is larger than such images can be (1 GiB together)");
	fd = member_open(member);
	if (fd < 0)
		return fd;
	err = unpack(file, fd);
	return err ? set_problem(file, err, fail_text()) : 0;
}

/* ---- all ---- */

static int refuse_twice(const struct images *images, const char *name)
{
	complain("%s: has %s twice: unpack it", images->path, name);
	return -EINVAL;
}

/* Images, and what is beside them, are of one directory only: those of two would look like one job. */
static int add_member(void *arg, struct member *member)
{
	struct images *images = arg;
	struct image_name is;
	int *fd = strcmp(member->name, SETTINGS_IMAGE_CONF) ? &images->criu_files : &images->settings;

	if (!images->place)
		images->place = strdup(member->place);
	if (!images->place)
		return -ENOMEM;
	if (strcmp(images->place, member->place)) {
		complain("%s: has images, or files beside them, in two directories, '%s' and '%s': unpack it, and name one",
			 images->path, images->place, member->place);
		return -EINVAL;
	}
	if (image_name_parse(member->name, &is))
		return add_image(images, member, &is);
	if (*fd != -ENOENT)
		return refuse_twice(images, member->name);
	if (reserve(images, member->size))
		return -EFBIG;
	*fd = member->err ? member->err : member_open(member);
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	const struct image_file *x = a, *y = b;

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

	return order ? order : strcmp(x->name, y->name);
}

int images_open(const char *path, struct images *ret)
{
	struct stat st;
	int err;

	*ret = (struct images){ .path = path, .settings = -ENOENT, .criu_files = -ENOENT };
	/* open() must not wait for the writer of a FIFO. Reads wait for the data of a writer that is there. */
	ret->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (ret->fd < 0 || fstat(ret->fd, &st) || fcntl(ret->fd, F_SETFL, 0)) {
		err = -errno;
		complain("%s: %s%s", path, strerror(-err), err == -EACCES && geteuid() ? " (root may read it)" : "");
		return err;
	}
	ret->is_archive = !S_ISDIR(st.st_mode);
	err = images_walk(ret, add_member, ret);
	if (err)
		return err;
	if (!ret->nr) {
		complain("%s: there is no image of the plugin (amdgpu-*.img) in it", path);
		return -ENOENT;
	}
	qsort(ret->files, ret->nr, sizeof(*ret->files), compare_files);
	for (size_t i = 1; i < ret->nr; i++)
		if (!strcmp(ret->files[i - 1].name, ret->files[i].name))
			return refuse_twice(ret, ret->files[i].name);
	return 0;
}

struct image_file *images_find(const struct images *images, enum image_kind kind, int id, uint32_t gpu_id)
{
	const struct image_file key = { .is = { .kind = kind, .id = id, .gpu_id = gpu_id } };

	return bsearch(&key, images->files, images->nr, sizeof(key), compare_keys);
}

enum image_state image_state(int err)
{
	return !err ? IMAGE_GOOD : err == -EBADMSG ? IMAGE_DAMAGED : err == -EOPNOTSUPP ? IMAGE_UNSUPPORTED : IMAGE_UNREAD;
}

const char *image_state_word(enum image_state state)
{
	static const char *const words[] = { "good", "damaged", "unsupported", "unknown" };

	return words[state];
}

int images_status(const struct images *images)
{
	int status = TOOL_GOOD;

	for (size_t i = 0; i < images->nr && status != TOOL_BAD; i++) {
		enum image_state state = image_state(images->files[i].err);

		if (state != IMAGE_GOOD)
			status = state == IMAGE_UNREAD ? TOOL_FAIL : TOOL_BAD;
	}
	return status;
}

struct buffer_data buffer_data_of(const struct kfd_state *state, uint32_t gpu_id)
{
	struct buffer_data sum = { 0 };

	for (size_t i = 0; i < state->nr_bos; i++) {
		if (!kfd_state_owns_on(state, i, gpu_id))
			continue;
		sum.nr++;
		sum.nr_without += !state->bos[i].has_crc32c;
		sum.bytes += state->bos[i].size;
	}
	return sum;
}
