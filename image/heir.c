// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings of devices in images, and the image of a task that has nothing else of GPUs: an heir, such as a child made
 * by fork() that uses its parent's buffers. It has no file of its own among criu's, so its image is known by its pid.
 */
#include <inttypes.h>

#include "amdgpu_plugin_util.h"
#include "image/file.h"
#include "image/image.h"
#include "image/internal.h"

#define HEIR_NAME "amdgpu-heir-%d.img"

/* ---- mappings ---- */

DeviceVma **image_vmas_pack(const struct device_vma *vmas, size_t count)
{
	DeviceVma **entries = image_pointers(count, sizeof(**entries));

	for (size_t i = 0; entries && i < count; i++) {
		device_vma__init(entries[i]);
		entries[i]->start = vmas[i].start;
		entries[i]->end = vmas[i].end;
		entries[i]->offset = vmas[i].offset;
		entries[i]->minor = vmas[i].minor;
		entries[i]->has_gpu_id = vmas[i].gpu_id != 0;
		entries[i]->gpu_id = vmas[i].gpu_id;
		entries[i]->has_buffer = vmas[i].buffer != 0;
		entries[i]->buffer = vmas[i].buffer;
	}
	return entries;
}

int image_vmas_unpack(const char *name, DeviceVma **entries, size_t count, struct device_vma **ret)
{
	*ret = calloc(count + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const DeviceVma *entry = entries[i];

		if (entry->start >= entry->end || (i && entry->start < entries[i - 1]->end))
			return bad_image(name, "mapping %zu at %#" PRIx64 " ends at or overlaps another one", i,
					 entry->start);
		(*ret)[i] = (struct device_vma){
			.start = entry->start,
			.end = entry->end,
			.offset = entry->offset,
			.minor = entry->minor,
			.gpu_id = entry->has_gpu_id ? entry->gpu_id : 0,
			.buffer = entry->has_buffer ? entry->buffer : 0,
		};
	}
	return 0;
}

/* ---- amdgpu-heir ---- */

void heir_image_free(struct heir_image *image)
{
	if (!image)
		return;
	free(image->vmas);
	free(image);
}

int heir_image_pack(const struct heir_image *image, int pid, uint8_t **ret, size_t *ret_size)
{
	CriuHeir msg = CRIU_HEIR__INIT;
	int err;

	msg.pid = (uint32_t)pid;
	msg.nr_sharers = image->nr_sharers;
	msg.vmas = image_vmas_pack(image->vmas, image->nr_vmas);
	msg.n_vmas = image->nr_vmas;
	msg.has_crc32c = true;
	err = msg.vmas ? pack_message(&msg.base, ret, ret_size) : -ENOMEM;
	image_pointers_free(msg.vmas);
	return err;
}

static int unpack(const char *name, const CriuHeir *msg, struct heir_image *image)
{
	struct image_name parsed;
	int err = image_vmas_unpack(name, msg->vmas, msg->n_vmas, &image->vmas);

	if (err)
		return err;
	if (image_name_parse(name, &parsed) && (uint32_t)parsed.id != msg->pid)
		return bad_image(name, "is that of pid %u, not of pid %d", msg->pid, parsed.id);
	image->nr_vmas = msg->n_vmas;
	image->nr_sharers = msg->nr_sharers;
	image->has_crc32c = msg->has_crc32c;
	if (!msg->nr_sharers)
		return bad_image(name, "is of a process that uses the buffers of others, and no process shares any");
	for (size_t i = 0; i < image->nr_vmas; i++)
		if (!image->vmas[i].minor || !image->vmas[i].buffer || image->vmas[i].buffer > IMAGE_MAX_NUMBER)
			return bad_image(name, "has a mapping at %#" PRIx64 " of buffer %u of renderD%u", image->vmas[i].start,
					 image->vmas[i].buffer, image->vmas[i].minor);
	return 0;
}

int heir_image_unpack(const char *name, const uint8_t *data, size_t size, struct heir_image **ret)
{
	int err;
	CriuHeir *msg = unpack_message(name, &criu_heir__descriptor, data, size, &err);
	struct heir_image *image = calloc(1, sizeof(*image));

	if (!err && !image)
		err = -ENOMEM;
	if (!err)
		err = check_crc(name, msg->has_crc32c, msg->crc32c, data, size);
	if (!err)
		err = unpack(name, msg, image);
	free_message(msg);
	if (err) {
		heir_image_free(image);
		return err;
	}
	*ret = image;
	return 0;
}

int heir_image_write(int pid, const struct heir_image *image)
{
	_cleanup_free_ uint8_t *data = NULL;
	char name[IMAGE_NAME_MAX];
	size_t size;
	int err = heir_image_pack(image, pid, &data, &size);

	snprintf(name, sizeof(name), HEIR_NAME, pid);
	return err ? err : write_image(name, data, size);
}

int heir_image_read(int pid, struct heir_image **ret)
{
	_cleanup_free_ uint8_t *data = NULL;
	char name[IMAGE_NAME_MAX];
	size_t size;
	int err;

	snprintf(name, sizeof(name), HEIR_NAME, pid);
	err = read_image(name, &data, &size);
	return err ? err : heir_image_unpack(name, data, size, ret);
}
