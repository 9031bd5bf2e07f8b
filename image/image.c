// SPDX-License-Identifier: GPL-2.0-only
/*
 * The messages of image files. A restore runs as root, so nothing that is read here is believed: each count, id and
 * size is checked before anything else sees it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>

#include "image/internal.h"

#define NO_HANDLE 0xffffffffu

/* ---- amdgpu-kfd ---- */

void gpu_process_done(struct gpu_process *process)
{
	topology_free(process->nodes);
	kfd_state_done(&process->state);
	free(process->minors);
	free(process->vmas);
	*process = (struct gpu_process){ 0 };
}

void gpu_process_free(struct gpu_process *process)
{
	if (process)
		gpu_process_done(process);
	free(process);
}

#define BO_FIELDS(X)   X(addr) X(size) X(offset) X(alloc_flags) X(gpu_id) X(has_crc32c) X(crc32c)
#define VMA_FIELDS(X)  X(start) X(end) X(offset) X(minor) X(gpu_id)

int kfd_image_pack(const struct gpu_process *image, int id, uint8_t **ret, size_t *ret_size)
{
	_cleanup_packing_ struct packing packing = { 0 };
	const struct kfd_state *state = &image->state;
	const struct image_writer *by = &image->writer;
	CriuKfd msg = CRIU_KFD__INIT;
	ImageWriter writer = IMAGE_WRITER__INIT;

	msg.device_entries = nodes_pack(&packing, image->nodes);
	msg.bo_entries = packing_add(&packing, state->nr_bos, &kfd_bo_entry__descriptor);
	msg.vmas = packing_add(&packing, image->nr_vmas, &device_vma__descriptor);
	if (!msg.device_entries || !msg.bo_entries || !msg.vmas)
		return -ENOMEM;
	for (size_t i = 0; i < state->nr_bos; i++) {
		struct bo *from = &state->bos[i];
		KfdBoEntry *to = msg.bo_entries[i];

		BO_FIELDS(COPY)
		to->has_handle = true;
		to->handle = NO_HANDLE;
		share_pack(&from->share, to);
	}
	for (size_t i = 0; i < image->nr_vmas; i++) {
		const struct device_vma *from = &image->vmas[i];
		DeviceVma *to = msg.vmas[i];

		VMA_FIELDS(COPY)
		to->has_gpu_id = to->gpu_id != 0;
	}
	msg.pid = state->pid;
	msg.num_of_gpus = topology_count_gpus(image->nodes);
	msg.n_device_entries = image->nodes->nr_nodes;
	msg.num_of_cpus = (uint32_t)msg.n_device_entries - msg.num_of_gpus;
	msg.num_of_bos = msg.n_bo_entries = state->nr_bos;
	msg.num_of_objects = state->nr_objects;
	msg.priv_data = (ProtobufCBinaryData){ .len = state->priv_size, .data = state->priv_data };
	msg.n_vmas = image->nr_vmas;
	msg.has_runtime_enabled = msg.runtime_enabled = state->runtime_enabled;
	writer.plugin = by->plugin[0] ? (char *)by->plugin : NULL;
	writer.kernel = by->kernel[0] ? (char *)by->kernel : NULL;
	writer.driver = by->driver[0] ? (char *)by->driver : NULL;
	writer.has_criu_hooks = by->criu_hooks != 0;
	writer.criu_hooks = by->criu_hooks;
	msg.writer = &writer;
	msg.has_extra_file = msg.extra_file = image->extra_file;
	msg.has_no_kfd = msg.no_kfd = image->no_kfd;
	msg.has_is_suspended = msg.is_suspended = image->is_suspended;
	msg.has_nr_sharers = msg.has_nr_files = image->nr_sharers > 0;
	msg.nr_sharers = image->nr_sharers;
	msg.nr_files = image->nr_files;
	msg.has_flags = msg.has_file_id = msg.has_crc32c = true;
	msg.flags = (uint32_t)image->flags;
	msg.file_id = (uint32_t)id;
	return image_message_pack(&msg.base, ret, ret_size);
}

static int unpack_bos(const char *name, const CriuKfd *msg, const struct topology *nodes, struct kfd_state *state)
{
	uint64_t total = 0;

	if (msg->num_of_bos != msg->n_bo_entries)
		return bad_image(name, "says it has %" PRIu64 " BOs, but has %zu", msg->num_of_bos, msg->n_bo_entries);
	state->bos = kfd_bos_new(msg->n_bo_entries);
	if (!state->bos)
		return -ENOMEM;
	for (size_t i = 0; i < msg->n_bo_entries; i++) {
		const KfdBoEntry *from = msg->bo_entries[i];
		struct bo *to = &state->bos[state->nr_bos++];
		uint64_t end;

		if (topology_find_gpu(nodes, from->gpu_id) < 0)
			return bad_image(name, "BO %zu is on gpu %#x, which the image does not have", i, from->gpu_id);
		if (!from->size || add_overflows(from->addr, from->size, &end) || add_overflows(total, from->size, &total))
			return bad_image(name, "BO %zu has an impossible size of %" PRIu64 " bytes", i, from->size);
		BO_FIELDS(COPY)
	}
	return shares_unpack(name, msg, state);
}

/* Nothing is known about files of other writers. */
static int unpack_flags(const char *name, bool has_flags, uint32_t flags, int *ret)
{
	*ret = has_flags ? (int)flags : O_RDWR;
	if (!has_flags || !(flags & ~(uint32_t)DEVICE_FLAGS))
		return 0;
	return bad_image(name, "belongs to a file with flags %#x", flags);
}

/* What a process has besides its BOs and mappings. One without /dev/kfd has an image since it takes part in the sharing. */
static int unpack_state(const char *name, const CriuKfd *msg, struct gpu_process *image)
{
	unsigned int gpus = topology_count_gpus(image->nodes);
	struct kfd_state *state = &image->state;

	/* Later versions of the plugin in CRIU's tree count GPUs that the process cannot see, with gpu id 0. */
	if (!gpus || gpus > msg->num_of_gpus ||
	    (uint64_t)msg->num_of_gpus + msg->num_of_cpus != msg->n_device_entries)
		return bad_image(name, "says it has %u GPUs and %u CPUs, but has %u GPUs among %zu nodes",
				 msg->num_of_gpus, msg->num_of_cpus, gpus, msg->n_device_entries);
	if (image->no_kfd) {
		if (msg->priv_data.len || msg->num_of_objects || state->nr_records || msg->shared_mem_size)
			return bad_image(name, "belongs to a process without /dev/kfd, but has %u BOs, %u objects and %zu bytes "
					 "of its state", state->nr_records, msg->num_of_objects, msg->priv_data.len);
		if (!image->nr_sharers)
			return bad_image(name, "belongs to a process without /dev/kfd, but does not say how many processes "
					 "share its buffers");
		for (size_t i = 0; i < image->nr_vmas; i++)
			if (!image->vmas[i].minor)
				return bad_image(name, "belongs to a process without /dev/kfd, but has a mapping of it at "
						 "%#" PRIx64, image->vmas[i].start);
		return 0;
	}
	if (!msg->priv_data.len)
		return bad_image(name, "has no kernel state");
	state->priv_data = malloc(msg->priv_data.len);
	if (!state->priv_data)
		return -ENOMEM;
	memcpy(state->priv_data, msg->priv_data.data, msg->priv_data.len);
	state->priv_size = msg->priv_data.len;
	state->nr_objects = msg->num_of_objects;
	state->runtime_enabled = msg->runtime_enabled;
	return records_read(state, gpus);
}

static int unpack_kfd(const char *name, const CriuKfd *msg, struct gpu_process *image)
{
	struct image_writer *writer = &image->writer;
	int err = nodes_unpack(name, msg->device_entries, msg->n_device_entries, &image->nodes);

	if (err)
		return err;
	image->state.pid = msg->pid;
	image->extra_file = msg->extra_file;
	image->no_kfd = msg->no_kfd;
	image->is_suspended = msg->is_suspended;
	image->nr_sharers = msg->nr_sharers;
	image->nr_files = msg->nr_files;
	err = unpack_flags(name, msg->has_flags, msg->flags, &image->flags);
	if (err)
		return err;
	if (image->extra_file && image->no_kfd)
		return bad_image(name, "belongs to a further file of /dev/kfd of a process that has none");
	if (image->extra_file)
		return 0;
	if (image->nr_sharers && (!msg->has_nr_files || !image->nr_files))
		return bad_image(name, "belongs to %u processes that share buffers, but to no file", image->nr_sharers);
	err = unpack_bos(name, msg, image->nodes, &image->state);
	if (err)
		return err;
	if (kfd_state_shares(&image->state) && !image->nr_sharers)
		return bad_image(name, "shares buffers with no process");
	image->vmas = calloc(msg->n_vmas + 1, sizeof(*image->vmas));
	if (!image->vmas)
		return -ENOMEM;
	for (size_t i = 0; i < msg->n_vmas; i++) {
		const DeviceVma *from = msg->vmas[i];
		struct device_vma *to = &image->vmas[i];

		if (from->start >= from->end || (i && from->start < msg->vmas[i - 1]->end))
			return bad_image(name, "mapping %zu at %#" PRIx64 " ends at or overlaps another one", i, from->start);
		VMA_FIELDS(COPY)
	}
	image->nr_vmas = msg->n_vmas;
	/* Names are for people: one that is too long is cut. */
	if (msg->writer) {
		snprintf(writer->plugin, sizeof(writer->plugin), "%s", msg->writer->plugin ? msg->writer->plugin : "");
		snprintf(writer->kernel, sizeof(writer->kernel), "%s", msg->writer->kernel ? msg->writer->kernel : "");
		snprintf(writer->driver, sizeof(writer->driver), "%s", msg->writer->driver ? msg->writer->driver : "");
		writer->criu_hooks = msg->writer->criu_hooks;
	}
	return unpack_state(name, msg, image);
}

int kfd_image_unpack(const char *name, const uint8_t *data, size_t size, struct gpu_process **ret)
{
	_cleanup_message_ CriuKfd *msg = NULL;
	struct gpu_process *image;
	int err = image_message_unpack(name, &criu_kfd__descriptor, "file_id", data, size, &msg);

	if (err)
		return err;
	image = calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	image->has_crc32c = msg->has_crc32c;
	err = unpack_kfd(name, msg, image);
	if (err) {
		gpu_process_free(image);
		return err;
	}
	*ret = image;
	return 0;
}

int kfd_image_write(int id, const struct gpu_process *image)
{
	_cleanup_payload_ struct image_payload payload = { .data = NULL };
	int err = kfd_image_pack(image, id, &payload.data, &payload.size);

	return err ? err : image_file_write(IMAGE_KFD, id, &payload);
}

int kfd_image_read(int id, struct gpu_process **ret)
{
	_cleanup_payload_ struct image_payload payload = { .data = NULL };
	int err = image_file_read(IMAGE_KFD, id, &payload);

	if (!err)
		err = kfd_image_unpack(payload.name, payload.data, payload.size, ret);
	if (!err)
		(*ret)->id = id;
	return err;
}

/* ---- amdgpu-renderD ---- */

void render_image_free(struct render_image *image)
{
	if (!image)
		return;
	topology_free(image->nodes);
	render_objects_done(&image->objects);
	free(image);
}

int render_image_pack(const struct render_image *image, int id, uint8_t **ret, size_t *ret_size)
{
	_cleanup_packing_ struct packing packing = { 0 };
	CriuRenderNode msg = CRIU_RENDER_NODE__INIT;

	msg.device_entries = nodes_pack(&packing, image->nodes);
	if (!msg.device_entries || objects_pack(&packing, &image->objects, &msg))
		return -ENOMEM;
	msg.gpu_id = image->gpu_id;
	msg.has_id = msg.has_drm_render_minor = msg.has_num_of_bos = msg.has_flags = msg.has_crc32c = true;
	msg.id = (uint32_t)id;
	msg.drm_render_minor = image->minor;
	msg.has_without_kfd_vm = msg.without_kfd_vm = image->without_kfd_vm;
	msg.flags = (uint32_t)image->flags;
	msg.n_device_entries = image->nodes->nr_nodes;
	return image_message_pack(&msg.base, ret, ret_size);
}

static int unpack_render(const char *name, const CriuRenderNode *msg, struct render_image *image)
{
	int err;

	if (!msg->gpu_id)
		return bad_image(name, "names no GPU");
	if (msg->has_num_of_bos && msg->num_of_bos && !msg->n_handles)
		return fail(-EOPNOTSUPP, "image %s: has %" PRIu64 " buffers of the render node itself, which cannot be "
			    "restored", name, msg->num_of_bos);
	image->has_crc32c = msg->has_crc32c;
	image->gpu_id = msg->gpu_id;
	image->minor = msg->drm_render_minor;
	image->without_kfd_vm = msg->without_kfd_vm;
	err = msg->n_device_entries ? nodes_unpack(name, msg->device_entries, msg->n_device_entries, &image->nodes) : 0;
	if (err)
		return err;
	if (image->nodes && topology_find_gpu(image->nodes, msg->gpu_id) < 0)
		return bad_image(name, "belongs to gpu %#x, which is not among its nodes", msg->gpu_id);
	err = unpack_flags(name, msg->has_flags, msg->flags, &image->flags);
	if (err)
		return err;
	err = objects_unpack(name, msg, &image->objects);
	if (err)
		return err;
	if (!image->without_kfd_vm && (image->flags & O_ACCMODE) != O_RDWR)
		return bad_image(name, "has an address space and flags %#x", image->flags);
	return 0;
}

int render_image_unpack(const char *name, const uint8_t *data, size_t size, struct render_image **ret)
{
	_cleanup_message_ CriuRenderNode *msg = NULL;
	struct render_image *image;
	int err = image_message_unpack(name, &criu_render_node__descriptor, "id", data, size, &msg);

	if (err)
		return err;
	image = calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	err = unpack_render(name, msg, image);
	if (err) {
		render_image_free(image);
		return err;
	}
	*ret = image;
	return 0;
}

int render_image_write(int id, const struct render_image *image)
{
	_cleanup_payload_ struct image_payload payload = { .data = NULL };
	int err = render_image_pack(image, id, &payload.data, &payload.size);

	return err ? err : image_file_write(IMAGE_RENDER, id, &payload);
}

int render_image_read(int id, struct render_image **ret)
{
	_cleanup_payload_ struct image_payload payload = { .data = NULL };
	int err = image_file_read(IMAGE_RENDER, id, &payload);

	return err ? err : render_image_unpack(payload.name, payload.data, payload.size, ret);
}

/* ---- amdgpu-shared ---- */

int dmabuf_image_write(int id, const struct dmabuf_image *image)
{
	CriuDmabuf msg = CRIU_DMABUF__INIT;
	_cleanup_payload_ struct image_payload payload = { .data = NULL };
	int err;

	msg.has_buffer = msg.has_nr_sharers = msg.has_file_id = msg.has_crc32c = true;
	msg.file_id = (uint32_t)id;
	msg.buffer = image->buffer;
	msg.nr_sharers = image->nr_sharers;
	msg.name = image->name[0] ? (char *)image->name : NULL;
	err = image_message_pack(&msg.base, &payload.data, &payload.size);
	return err ? err : image_file_write(IMAGE_DMABUF, id, &payload);
}

int dmabuf_image_unpack(const char *name, const uint8_t *data, size_t size, struct dmabuf_image *ret)
{
	_cleanup_message_ CriuDmabuf *msg = NULL;
	int err = image_message_unpack(name, &criu_dmabuf__descriptor, "file_id", data, size, &msg);

	if (err)
		return err;
	if (!msg->has_buffer)
		return fail(-EOPNOTSUPP, "image %s: belongs to a dma-buf, but does not name its buffer: it cannot be restored",
			    name);
	if (!msg->buffer || msg->buffer > IMAGE_MAX_NUMBER || !msg->has_nr_sharers || !msg->nr_sharers)
		return bad_image(name, "belongs to buffer %u, which %u processes share", msg->buffer, msg->nr_sharers);
	*ret = (struct dmabuf_image){
		.buffer = msg->buffer,
		.nr_sharers = msg->nr_sharers,
		.has_crc32c = msg->has_crc32c,
	};
	snprintf(ret->name, sizeof(ret->name), "%s", msg->name ? msg->name : "");
	return 0;
}

int dmabuf_image_read(int id, struct dmabuf_image *ret)
{
	_cleanup_payload_ struct image_payload payload = { .data = NULL };
	int err = image_file_read(IMAGE_DMABUF, id, &payload);

	if (err == -ENOENT)
		err = image_file_read(IMAGE_DMABUF_OLD, id, &payload);
	return err ? err : dmabuf_image_unpack(payload.name, payload.data, payload.size, ret);
}
