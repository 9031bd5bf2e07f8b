// SPDX-License-Identifier: GPL-2.0-only
/* Shared buffers and objects of render nodes in the images: they come back, and what contradicts itself is refused. */
#define _GNU_SOURCE
#include <fcntl.h>

#include "unit.h"
#include "image/image.h"
#include "criu-amdgpu.pb-c.h"
#include "log_stub.h"
#include "image_dir.h"
#include "image_message.h"
#include "machine_text.h"

#define GPU	0x1234
#define NR_BOS	4

static struct bo bos[NR_BOS] = {
	{ .addr = 0x10000, .size = 4096, .offset = 0x100000, .alloc_flags = 1, .gpu_id = GPU,
	  .share = { .buffer = 1, .metadata_flags = 3, .tiling = 5, .metadata_size = 4, .metadata = "\1\2\3\4" } },
	{ .addr = 0x20000, .size = 8192, .offset = 0x110000, .alloc_flags = 1, .gpu_id = GPU,
	  .share = { .buffer = 7, .kind = KFD_BO_IMPORT } },
	{ .size = 4096, .offset = 0x120000, .alloc_flags = 2, .gpu_id = GPU,
	  .share = { .buffer = 2, .kind = KFD_BO_GEM, .domains = 2, .flags = 0x200, .alignment = 65536 } },
	{ .size = 4096, .offset = 0x130000, .alloc_flags = 1, .gpu_id = GPU,
	  .share = { .buffer = 8, .kind = KFD_BO_REF } },
};

static struct gem_handle handles[] = { { 1, 2 }, { 4, 8 } };
static struct gem_mapping mappings[] = {
	{ .handle = 1, .flags = 0xe, .va = 0x100000, .size = 4096 },
	{ .handle = 4, .flags = 2, .va = 0x200000, .size = 4096, .offset = 4096 },
	{ .handle = 4, .flags = 2, .va = 0x300000, .size = 4096 },
};
static struct render_syncobj syncobjs[] = { { .handle = 1, .point = 9, .is_signalled = true }, { .handle = 3 } };

static CriuKfd *kfd_message(void)
{
	static uint8_t priv[] = { 1, 2, 3 };
	struct gpu_process image = {
		.state = { .pid = 42, .bos = bos, .nr_bos = NR_BOS, .nr_records = 2, .priv_data = priv,
			   .priv_size = sizeof(priv) },
		.nodes = machine_of(GPU, "1"),
		.nr_sharers = 2,
		.nr_files = 3,
	};

	image.flags = O_RDWR;
	return message_of(&image);
}

TEST(shared_buffers_come_back)
{
	struct gpu_process *back = message_unpack(kfd_message());

	assert_non_null(back);
	assert_int_equal(back->nr_sharers, 2);
	assert_int_equal(back->nr_files, 3);
	assert_int_equal(back->state.nr_records, 2);
	for (size_t i = 0; i < NR_BOS; i++) {
		assert_int_equal(back->state.bos[i].share.buffer, bos[i].share.buffer);
		assert_int_equal(back->state.bos[i].share.kind, bos[i].share.kind);
		assert_int_equal(back->state.bos[i].share.metadata_size, bos[i].share.metadata_size);
		assert_memory_equal(back->state.bos[i].share.metadata, bos[i].share.metadata, bos[i].share.metadata_size);
	}
	assert_int_equal(back->state.bos[0].share.tiling, 5);
	assert_int_equal(back->state.bos[0].share.metadata_flags, 3);
	assert_int_equal(back->state.bos[2].share.flags, 0x200);
	/* More than its size, as the kernel allows. */
	assert_int_equal(back->state.bos[2].share.alignment, 65536);
	assert_true(kfd_state_owns(&back->state, 0) && kfd_state_owns(&back->state, 2));
	assert_false(kfd_state_owns(&back->state, 1) || kfd_state_owns(&back->state, 3));
	gpu_process_free(back);
}

TEST(contradictions_of_buffers_are_refused)
{
	refused(kfd_message(), msg->bo_entries[1]->kind = 4, "BO 1 has kind 4");
	refused(kfd_message(), msg->bo_entries[1]->has_buffer = false, "BO 1 has kind 1, which is unknown or needs a buffer number");
	refused(kfd_message(), msg->bo_entries[0]->buffer = IMAGE_MAX_NUMBER + 1, "BO 0 has the buffer number 1048577");
	refused(kfd_message(), msg->bo_entries[2]->buffer = 1, "has buffer 1 twice");
	refused(kfd_message(), msg->bo_entries[3]->kind = KFD_BO_IMPORT, "BO 3 of the KFD comes after objects");
	refused(kfd_message(), msg->bo_entries[1]->alloc_flags = 8, "BO 1 has kind 1, but is neither VRAM nor GTT");
	refused(kfd_message(), msg->bo_entries[2]->domains = 0x40, "BO 2 cannot be made");
	refused(kfd_message(), msg->bo_entries[2]->gem_flags = 1 << 6, "BO 2 cannot be made");
	refused(kfd_message(), msg->bo_entries[2]->domains = 0, "BO 2 cannot be made");
	refused(kfd_message(), msg->has_nr_sharers = false, "shares buffers with no process");
	refused(kfd_message(), msg->nr_files = 0, "belongs to 2 processes that share buffers, but to no file");
}

/* ---- a process without /dev/kfd ---- */

/* Of the sample, what is not of the KFD. */
static CriuKfd *render_only_message(void)
{
	static struct device_vma vma = { .start = 0x1000, .end = 0x2000, .offset = 0x120000, .minor = 128 };
	struct gpu_process image = {
		.state = { .pid = 42, .bos = bos + 2, .nr_bos = NR_BOS - 2 },
		.nodes = machine_of(GPU, "1"),
		.vmas = &vma,
		.nr_vmas = 1,
		.nr_sharers = 1,
		.nr_files = 1,
		.no_kfd = true,
		.flags = O_RDWR,
	};

	return message_of(&image);
}

TEST(a_process_without_kfd_comes_back)
{
	struct gpu_process *back = message_unpack(render_only_message());
	CriuKfd *msg = kfd_message();

	assert_non_null(back);
	assert_true(back->no_kfd);
	assert_int_equal(back->state.nr_bos, NR_BOS - 2);
	assert_int_equal(back->state.nr_records, 0);
	assert_null(back->state.priv_data);
	gpu_process_free(back);
	/* Others do not say anything of it. */
	assert_false(msg->has_no_kfd);
	back = message_unpack(msg);
	assert_false(back->no_kfd);
	gpu_process_free(back);
}

static void state_of_the_kernel(CriuKfd *msg)
{
	static uint8_t bytes[3];

	msg->priv_data = (ProtobufCBinaryData){ .len = sizeof(bytes), .data = malloc(sizeof(bytes)) };
	assert_non_null(msg->priv_data.data);
	memcpy(msg->priv_data.data, bytes, sizeof(bytes));
}

/* No buffers, but syncobjs: nobody would restore them. */
static void nobody_shares(CriuKfd *msg)
{
	msg->has_nr_sharers = false;
	while (msg->n_bo_entries)
		kfd_bo_entry__free_unpacked(msg->bo_entries[--msg->n_bo_entries], NULL);
	msg->num_of_bos = 0;
}

TEST(contradictions_without_kfd_are_refused)
{
	refused(render_only_message(), msg->bo_entries[0]->kind = KFD_BO_OWN,
		"belongs to a process without /dev/kfd, but has 1 BOs, 0 objects and 0 bytes");
	refused(render_only_message(), state_of_the_kernel(msg),
		"without /dev/kfd, but has 0 BOs, 0 objects and 3 bytes");
	refused(render_only_message(), msg->num_of_objects = 2, "without /dev/kfd, but has 0 BOs, 2 objects");
	refused(render_only_message(), msg->shared_mem_size = 4096, "without /dev/kfd, but has 0 BOs");
	refused(render_only_message(), msg->vmas[0]->minor = 0, "without /dev/kfd, but has a mapping of it at 0x1000");
	refused(render_only_message(), msg->has_extra_file = msg->extra_file = true,
		"belongs to a further file of /dev/kfd of a process that has none");
	refused(render_only_message(), nobody_shares(msg), "without /dev/kfd, but does not say how many processes share");
	refused(render_only_message(), msg->nr_files = 0, "belongs to 1 processes that share buffers, but to no file");
}

/* ---- files of render nodes ---- */

static CriuRenderNode *render_message(void)
{
	struct render_image image = { .gpu_id = GPU, .minor = 128, .nodes = machine_of(GPU, "1") };
	CriuRenderNode *msg;
	uint8_t *data = NULL;
	size_t size;

	image.flags = O_RDWR;
	image.objects = (struct render_objects){ handles, ARRAY_SIZE(handles), mappings, ARRAY_SIZE(mappings), syncobjs,
						 ARRAY_SIZE(syncobjs) };
	assert_int_equal(render_image_pack(&image, 9, &data, &size), 0);
	msg = criu_render_node__unpack(NULL, size, data);
	assert_non_null(msg);
	msg->has_crc32c = false;
	free(data);
	topology_free(image.nodes);
	return msg;
}

static struct render_image *render_unpack(CriuRenderNode *msg)
{
	struct render_image *back = NULL;
	size_t size = criu_render_node__get_packed_size(msg);
	uint8_t *data = malloc(size);
	int err;

	criu_render_node__pack(msg, data);
	log_clear();
	err = render_image_unpack("sample", data, size, &back);
	assert_true(err ? !back && err == -EBADMSG && log_errors == 1 : !log_errors);
	free(data);
	criu_render_node__free_unpacked(msg, NULL);
	return back;
}

TEST(objects_come_back)
{
	struct render_image *back = render_unpack(render_message());

	assert_non_null(back);
	assert_int_equal(back->objects.nr_handles, ARRAY_SIZE(handles));
	assert_memory_equal(back->objects.handles, handles, sizeof(handles));
	assert_int_equal(back->objects.nr_mappings, ARRAY_SIZE(mappings));
	assert_memory_equal(back->objects.mappings, mappings, sizeof(mappings));
	assert_int_equal(back->objects.nr_syncobjs, ARRAY_SIZE(syncobjs));
	assert_int_equal(back->objects.syncobjs[0].point, 9);
	assert_true(back->objects.syncobjs[0].is_signalled && !back->objects.syncobjs[1].is_signalled);
	render_image_free(back);
}

static void render_message_refused(CriuRenderNode *msg, const char *text)
{
	assert_null(render_unpack(msg));
	if (!strstr(log_text, text))
		fail_msg("log is \"%s\", expected \"%s\"", log_text, text);
}

#define render_refused(change, text)                    \
	do {                                            \
		CriuRenderNode *msg = render_message(); \
		change;                                 \
		render_message_refused(msg, text);      \
	} while (0)

TEST(contradictions_of_objects_are_refused)
{
	render_refused(msg->handles[1]->handle = 1, "handle 1 of buffer 8 comes after handle 1");
	render_refused(msg->handles[1]->handle = IMAGE_MAX_NUMBER + 1,
		       "handle 1048577 of buffer 8 comes after handle 1");
	render_refused(msg->handles[0]->buffer = 0, "handle 1 of buffer 0");
	render_refused(msg->mappings[1]->handle = 3, "of handle 3, which is not there");
	render_refused(msg->mappings[0]->va = UINT64_MAX, "has an impossible mapping");
	render_refused(msg->mappings[0]->size = 0, "has an impossible mapping");
	render_refused(msg->syncobjs[1]->handle = 1, "syncobj 1 comes after syncobj 1");
	render_refused(msg->num_of_bos = 1, "says it has 1 handles, but has 2");
}

TEST(dmabufs_come_back)
{
	const struct dmabuf_image image = { .buffer = 5, .nr_sharers = 2, .name = "weights" }, none = { .nr_sharers = 2 };
	struct dmabuf_image back;

	log_clear();
	assert_int_equal(dmabuf_image_write(3, &image), 0);
	assert_int_equal(dmabuf_image_read(3, &back), 0);
	assert_int_equal(back.buffer, 5);
	assert_int_equal(back.nr_sharers, 2);
	assert_string_equal(back.name, "weights");
	assert_int_equal(dmabuf_image_read(4, &back), -ENOENT);
	assert_int_equal(dmabuf_image_write(5, &none), 0);
	assert_int_equal(log_errors, 0);
	assert_int_equal(dmabuf_image_read(5, &back), -EBADMSG);
	assert_non_null(strstr(log_text, "belongs to buffer 0"));
}

/* ---- memory ---- */

TEST(the_fullest_tables_are_read)
{
	struct render_image image = { .gpu_id = GPU, .minor = 128, .flags = O_RDWR, .nodes = machine_of(GPU, "1") };
	struct render_objects *objects = &image.objects;
	struct render_image *back = NULL;
	uint8_t *data = NULL;
	size_t size;

	objects->nr_handles = objects->nr_mappings = objects->nr_syncobjs = IMAGE_MAX_NUMBER;
	objects->handles = calloc(IMAGE_MAX_NUMBER, sizeof(*objects->handles));
	objects->mappings = calloc(IMAGE_MAX_NUMBER, sizeof(*objects->mappings));
	objects->syncobjs = calloc(IMAGE_MAX_NUMBER, sizeof(*objects->syncobjs));
	for (uint32_t i = 0; i < IMAGE_MAX_NUMBER; i++) {
		objects->handles[i] = (struct gem_handle){ i + 1, i + 1 };
		objects->mappings[i] = (struct gem_mapping){ .handle = 1, .va = i * 4096ull, .size = 4096 };
		objects->syncobjs[i].handle = i + 1;
	}
	assert_int_equal(render_image_pack(&image, 9, &data, &size), 0);
	assert_int_equal(render_image_unpack("sample", data, size, &back), 0);
	assert_int_equal(back->objects.nr_syncobjs, IMAGE_MAX_NUMBER);
	render_image_free(back);
	render_objects_done(objects);
	topology_free(image.nodes);
	free(data);
}

/* Equal syncobjs, each 5 bytes in the image and 50 in memory. */
TEST(an_image_takes_no_more_memory_than_its_size_explains)
{
	static const uint8_t syncobj[] = { 0x82, 0x07, 0x02, 0x08, 0x01 };
	size_t nr = 4u << 20;
	uint8_t *data = malloc(2 + nr * sizeof(syncobj));
	struct render_image *back = NULL;

	memcpy(data, "\x08\x01", 2); /* gpu_id */
	for (size_t i = 0; i < nr; i++)
		memcpy(data + 2 + i * sizeof(syncobj), syncobj, sizeof(syncobj));
	log_clear();
	assert_int_equal(render_image_unpack("sample", data, 2 + nr * sizeof(syncobj), &back), -EFBIG);
	assert_int_equal(log_errors, 1);
	assert_non_null(strstr(log_text, "too much memory"));
	free(data);
}

UNIT_MAIN(make_directory, remove_directory)
