// SPDX-License-Identifier: GPL-2.0-only
/*
 * Image files: what is written is read back, what other versions wrote is read, and
 * nothing that is damaged gets through.
 */
#define _GNU_SOURCE
#include <sys/stat.h>

#include "unit.h"
#include "content/content.h"
#include "image/image.h"
#include "criu-amdgpu.pb-c.h"
#include "log_stub.h"
#include "image_dir.h"
#include "image_message.h"
#include "records_fixture.h"

#define ID 7

/* ---- a sample ---- */

static struct topology_node *add_gpu(struct topology *nodes, uint32_t node_id, uint32_t gpu_id)
{
	struct topology_node *node;

	assert_int_equal(topology_add_node(nodes, node_id, &node), 0);
	assert_int_equal(topology_node_set(node, TOPOLOGY_GPU_ID, gpu_id), 0);
	assert_int_equal(topology_node_set(node, TOPOLOGY_VENDOR_ID, 0x1002), 0);
	assert_int_equal(topology_node_set(node, TOPOLOGY_VRAM_SIZE, 32ull << 30), 0);
	assert_int_equal(topology_node_set(node, TOPOLOGY_DRM_RENDER_MINOR, 128 + node_id), 0);
	assert_int_equal(topology_node_set(node, TOPOLOGY_NUM_XCC, 1), 0);
	snprintf(node->name, sizeof(node->name), "arcturus");
	return node;
}

static struct topology *sample_nodes(void)
{
	struct topology *nodes = topology_new();
	struct topology_node *cpu, *gpu;

	assert_non_null(nodes);
	assert_int_equal(topology_add_node(nodes, 0, &cpu), 0);
	assert_int_equal(topology_node_set(cpu, TOPOLOGY_CPU_CORES_COUNT, 16), 0);
	gpu = add_gpu(nodes, 1, 0x1234);
	assert_int_equal(topology_node_add_link(gpu, &(struct topology_link){ .type = TOPOLOGY_LINK_PCIE,
			 .node_to_id = 0, .has_weight = true, .weight = 20 }), 0);
	assert_int_equal(topology_node_add_link(gpu, &(struct topology_link){ .type = TOPOLOGY_LINK_PCIE,
			 .node_to_id = 2, .is_p2p = true }), 0);
	add_gpu(nodes, 2, 0x5678);
	assert_int_equal(topology_finish(nodes), 0);
	return nodes;
}

static struct bo sample_bos[] = {
	{ .addr = 0x10000, .size = 4096, .offset = 0x100000, .alloc_flags = 1, .gpu_id = 0x1234,
	  .crc32c = 0xdeadbeef, .has_crc32c = true },
	{ .addr = 0x7f0000000000, .size = 3ull << 30, .offset = 0x200000, .alloc_flags = 2, .gpu_id = 0x5678 },
};

static struct device_vma sample_vmas[] = {
	{ .start = 0x1000, .end = 0x3000, .offset = 3ull << 62, .minor = 0, .gpu_id = 0x1234 },
	{ .start = 0x3000, .end = 0x4000, .offset = 0x100000, .minor = 129 },
};

static uint8_t sample_priv[] = { 1, 2, 3, 4, 5 };

static struct gpu_process sample_image(void)
{
	return (struct gpu_process){
		.state = {
			.pid = 42,
			.bos = sample_bos,
			.nr_bos = ARRAY_SIZE(sample_bos),
			.nr_objects = 3,
			.runtime_enabled = true,
			.priv_data = sample_priv,
			.priv_size = sizeof(sample_priv),
		},
		.nodes = sample_nodes(),
		.vmas = sample_vmas,
		.nr_vmas = ARRAY_SIZE(sample_vmas),
		.writer = { .plugin = "0.1", .kernel = "6.12.1", .driver = "amdgpu-dkms 6.16.13", .criu_hooks = 13 },
	};
}

static void write_sample(void)
{
	struct gpu_process image = sample_image();

	assert_int_equal(kfd_image_write(ID, &image), 0);
	topology_free(image.nodes);
}

/* Opens the sample, which is written. */
static int open_sample(struct stat *st)
{
	char path[256];
	int fd;

	write_sample();
	snprintf(path, sizeof(path), "%s/amdgpu-kfd-%d.img", directory, ID);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, st), 0);
	return fd;
}

/* ---- tests ---- */

#define FIXTURE_TEST(test) UNIT_TEST(test, make_directory, remove_directory)

/* They decide which saved GPUs get one that nobody else works on. */
FIXTURE_TEST(an_image_says_on_which_gpus_its_queues_are)
{
	struct gpu_work work[TOPOLOGY_MAX_NODES];
	struct gpu_process image = sample_image(), *back = NULL;
	struct fixture_records f;

	fixture_begin(&f, 2, ARRAY_SIZE(sample_bos));
	fixture_event(&f);
	fixture_queue(&f, &(struct queue_record){ .gpu_id = 0x5678, .type = QUEUE_TYPE_COMPUTE, .mqd_size = 2048 });
	image.state.priv_data = f.bytes;
	image.state.priv_size = f.size;
	image.state.nr_objects = f.nr_objects;
	assert_int_equal(kfd_image_write(ID, &image), 0);
	assert_int_equal(kfd_image_read(ID, &back), 0);
	kfd_state_work(&back->state, back->nodes, work);
	assert_false(work[1].has_queues);
	assert_true(work[2].has_queues);
	gpu_process_free(back);
	topology_free(image.nodes);
}

FIXTURE_TEST(kfd_image_comes_back_as_it_was)
{
	struct gpu_process *back = NULL;
	struct topology_node *gpu;

	write_sample();
	assert_int_equal(kfd_image_read(ID, &back), 0);
	assert_int_equal(back->state.pid, 42);
	assert_int_equal(back->state.nr_objects, 3);
	assert_int_equal(back->state.nr_bos, ARRAY_SIZE(sample_bos));
	assert_int_equal(back->state.bos[1].size, 3ull << 30);
	assert_true(back->state.bos[0].has_crc32c && back->state.bos[0].crc32c == 0xdeadbeef);
	assert_false(back->state.bos[1].has_crc32c);
	assert_int_equal(back->state.priv_size, sizeof(sample_priv));
	assert_memory_equal(back->state.priv_data, sample_priv, sizeof(sample_priv));
	assert_memory_equal(back->vmas, sample_vmas, sizeof(sample_vmas));
	assert_true(back->state.runtime_enabled);
	assert_int_equal(topology_count_gpus(back->nodes), 2);
	gpu = back->nodes->nodes[topology_find_gpu(back->nodes, 0x1234)];
	assert_int_equal(topology_get(gpu, TOPOLOGY_VRAM_SIZE), 32ull << 30);
	assert_string_equal(gpu->name, "arcturus");
	assert_true(topology_has(gpu, TOPOLOGY_NUM_XCC));
	assert_false(topology_has(gpu, TOPOLOGY_UNIQUE_ID));
	assert_int_equal(gpu->nr_links, 2);
	assert_int_equal(gpu->links[0].weight, 20);
	assert_true(gpu->links[1].is_p2p);
	assert_string_equal(back->writer.plugin, "0.1");
	assert_string_equal(back->writer.kernel, "6.12.1");
	assert_string_equal(back->writer.driver, "amdgpu-dkms 6.16.13");
	assert_int_equal(back->writer.criu_hooks, 13);
	assert_true(back->has_crc32c);
	gpu_process_free(back);
}

FIXTURE_TEST(another_file_of_a_process_needs_no_state)
{
	struct gpu_process image = { .state.pid = 42, .nodes = topology_new(), .extra_file = true }, *back = NULL;

	image.flags = O_RDONLY | O_NONBLOCK;
	assert_int_equal(kfd_image_write(ID, &image), 0);
	assert_int_equal(kfd_image_read(ID, &back), 0);
	assert_true(back->extra_file);
	assert_int_equal(back->flags, O_RDONLY | O_NONBLOCK);
	assert_int_equal(back->state.pid, 42);
	gpu_process_free(back);
	topology_free(image.nodes);
}

FIXTURE_TEST(payload_has_its_length_before_it)
{
	struct stat st;
	uint64_t prefix;
	int fd = open_sample(&st);

	assert_int_equal(read(fd, &prefix, sizeof(prefix)), sizeof(prefix));
	assert_int_equal(prefix + 8, st.st_size);
	assert_int_equal(st.st_mode & 0777, 0600);
	close(fd);
}

FIXTURE_TEST(an_image_that_is_there_is_not_overwritten)
{
	struct gpu_process image = sample_image();

	write_sample();
	assert_int_equal(kfd_image_write(ID, &image), -EEXIST);
	topology_free(image.nodes);
}

/* Gives the image of file ID the name of that of the next one. */
static void rename_image(const char *kind)
{
	char from[256], to[256];

	snprintf(from, sizeof(from), "%s/amdgpu-%s-%d.img", directory, kind, ID);
	snprintf(to, sizeof(to), "%s/amdgpu-%s-%d.img", directory, kind, ID + 1);
	assert_int_equal(rename(from, to), 0);
	log_clear();
}

/* It is whole, and would give the file what another one had. */
FIXTURE_TEST(the_image_of_another_file_is_refused)
{
	struct gpu_process image = sample_image(), *back = NULL;
	struct render_image render = { .gpu_id = 1, .nodes = image.nodes, .flags = O_RDWR, .without_kfd_vm = true }, *node = NULL;

	write_sample();
	rename_image("kfd");
	assert_int_equal(kfd_image_read(ID + 1, &back), -EBADMSG);
	assert_non_null(strstr(log_text, "belongs to file 0x7, not to file 0x8"));
	render.gpu_id = topology_gpu_id(image.nodes->nodes[image.nodes->nr_nodes - 1]);
	assert_int_equal(render_image_write(ID, &render), 0);
	assert_int_equal(render_image_read(ID, &node), 0);
	render_image_free(node);
	rename_image("renderD");
	assert_int_equal(render_image_read(ID + 1, &node), -EBADMSG);
	assert_non_null(strstr(log_text, "belongs to file 0x7, not to file 0x8"));
	topology_free(image.nodes);
}

FIXTURE_TEST(an_absent_image_is_no_error_line)
{
	struct gpu_process *image = NULL;
	struct render_image *render = NULL;

	assert_int_equal(kfd_image_read(ID, &image), -ENOENT);
	assert_int_equal(render_image_read(ID, &render), -ENOENT);
	assert_int_equal(log_errors, 0);
}

FIXTURE_TEST(every_truncation_is_refused)
{
	struct gpu_process *back;
	struct stat st;
	int fd = open_sample(&st);

	for (off_t size = st.st_size - 1; size >= 0; size--) {
		log_clear();
		assert_int_equal(ftruncate(fd, size), 0);
		back = NULL;
		assert_int_equal(kfd_image_read(ID, &back), -EBADMSG);
		assert_null(back);
		assert_int_equal(log_errors, 1);
	}
	close(fd);
}

FIXTURE_TEST(every_wrong_bit_of_the_payload_is_found)
{
	struct gpu_process *back;
	uint8_t byte, wrong;
	struct stat st;
	int fd = open_sample(&st);

	for (off_t at = sizeof(uint64_t); at < st.st_size; at++) {
		log_clear();
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		wrong = byte ^ (1 << at % 8);
		assert_int_equal(pwrite(fd, &wrong, 1, at), 1);
		back = NULL;
		/* A wrong tag of the CRC itself makes it a field that nobody knows. */
		if (at < st.st_size - 6 || at >= st.st_size - 4) {
			assert_int_equal(kfd_image_read(ID, &back), -EBADMSG);
			assert_null(back);
			assert_int_equal(log_errors, 1);
		}
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	close(fd);
}

FIXTURE_TEST(a_length_beyond_the_file_takes_no_memory)
{
	uint64_t prefix = 1ull << 31;
	struct gpu_process *back = NULL;
	int fd = criu_image_create("amdgpu-kfd-7.img");

	assert_int_equal(write(fd, &prefix, sizeof(prefix)), sizeof(prefix));
	close(fd);
	assert_int_equal(kfd_image_read(ID, &back), -EBADMSG);
	assert_non_null(strstr(log_text, "truncated"));
}

FIXTURE_TEST(stale_bytes_after_the_payload_do_no_harm)
{
	static const char more[] = "left over from a longer image";
	struct gpu_process *back = NULL;
	struct stat st;
	int fd = open_sample(&st);

	assert_int_equal(pwrite(fd, more, sizeof(more), st.st_size), sizeof(more));
	close(fd);
	assert_int_equal(kfd_image_read(ID, &back), 0);
	gpu_process_free(back);
}

static CriuKfd *sample_message(void)
{
	struct gpu_process image = sample_image();

	return message_of(&image);
}

TEST(contradictions_are_refused)
{
	refused(sample_message(), msg->num_of_bos = 100, "says it has 100 BOs, but has 2");
	refused(sample_message(), msg->num_of_gpus = 1, "has 2 GPUs");
	refused(sample_message(), msg->num_of_cpus = UINT32_MAX, "says it has 2 GPUs and 4294967295 CPUs");
	refused(sample_message(), msg->bo_entries[0]->gpu_id = 0x9999, "BO 0 is on gpu 0x9999");
	refused(sample_message(), msg->bo_entries[0]->size = 0, "BO 0 has an impossible size");
	refused(sample_message(), msg->bo_entries[1]->size = UINT64_MAX, "BO 1 has an impossible size");
	refused(sample_message(), msg->device_entries[2]->gpu_id = msg->device_entries[1]->gpu_id,
		"have the same gpu id");
	refused(sample_message(), msg->device_entries[2]->node_id = msg->device_entries[1]->node_id, "node 1");
	refused(sample_message(), msg->vmas[0]->end = msg->vmas[0]->start, "mapping 0");
	refused(sample_message(), msg->vmas[0]->end = msg->vmas[1]->start + 1, "mapping 1");
	refused(sample_message(), msg->priv_data.len = 0, "no kernel state");
}

/* As the plugin of criu 3.17 to 4.2 writes: fields 1 to 5 of a BO, nothing above field 10. */
TEST(images_of_criu_3_17_are_read)
{
	struct gpu_process image = sample_image(), *back = NULL;
	uint8_t *data = NULL, *old;
	CriuKfd *msg;
	size_t i, size;

	assert_int_equal(kfd_image_pack(&image, 7, &data, &size), 0);
	msg = criu_kfd__unpack(NULL, size, data);
	for (i = 0; i < msg->n_bo_entries; i++)
		msg->bo_entries[i]->has_handle = msg->bo_entries[i]->has_crc32c = false;
	for (i = 0; i < msg->n_vmas; i++)
		device_vma__free_unpacked(msg->vmas[i], NULL);
	msg->n_vmas = 0;
	msg->has_crc32c = false;
	size = criu_kfd__get_packed_size(msg);
	old = malloc(size);
	criu_kfd__pack(msg, old);
	assert_int_equal(kfd_image_unpack("old", old, size, &back), 0);
	assert_int_equal(back->nr_vmas, 0);
	assert_int_equal(back->state.nr_bos, 2);
	gpu_process_free(back);
	criu_kfd__free_unpacked(msg, NULL);
	free(old);
	free(data);
	topology_free(image.nodes);
}

FIXTURE_TEST(render_image_comes_back_as_it_was)
{
	struct render_image image = { .gpu_id = 0x5678, .minor = 130, .nodes = sample_nodes() }, *back = NULL;

	image.flags = O_RDWR | O_NONBLOCK;
	assert_int_equal(render_image_write(ID, &image), 0);
	assert_int_equal(render_image_read(ID, &back), 0);
	assert_int_equal(back->gpu_id, 0x5678);
	assert_int_equal(back->minor, 130);
	assert_int_equal(back->nodes->nr_nodes, 3);
	assert_int_equal(back->flags, O_RDWR | O_NONBLOCK);
	assert_false(back->without_kfd_vm);
	render_image_free(back);
	topology_free(image.nodes);
}

static int read_back_with(struct render_image *image, int flags, bool without_kfd_vm)
{
	struct render_image *back = NULL;
	uint8_t *data = NULL;
	size_t size;
	int err;

	image->flags = flags;
	image->without_kfd_vm = without_kfd_vm;
	assert_int_equal(render_image_pack(image, 7, &data, &size), 0);
	err = render_image_unpack("flags", data, size, &back);
	assert_true(err || back->flags == flags);
	render_image_free(back);
	free(data);
	return err;
}

/* Puts the checksum into a message that ends with one. */
static void seal(uint8_t *data, size_t size)
{
	uint32_t crc = crc32c(0, data, size - 6);

	memcpy(data + size - sizeof(crc), &crc, sizeof(crc));
}

/* What comes of a message whose @part has a field that is not known here; that of the whole comes first. Frees it. */
static int unpack_with_field(CriuKfd *msg, ProtobufCMessage *part, uint32_t tag)
{
	const uint8_t varint[] = { (uint8_t)(tag << 3 | 0x80), (uint8_t)(tag >> 4), 1 };
	size_t first = part == &msg->base ? sizeof(varint) : 0, size;
	ProtobufCMessageUnknownField *field = calloc(1, sizeof(*field));
	struct gpu_process *back = NULL;
	uint8_t *data;
	int err;

	*field = (ProtobufCMessageUnknownField){ .tag = tag, .len = 1, .data = calloc(1, 1) };
	part->unknown_fields = field;
	part->n_unknown_fields = !first;
	msg->has_crc32c = true;
	size = first + criu_kfd__get_packed_size(msg);
	data = malloc(size);
	memcpy(data, varint, first);
	criu_kfd__pack(msg, data + first);
	seal(data, size);
	log_clear();
	err = kfd_image_unpack("sample", data, size, &back);
	assert_int_equal(log_errors, err != 0);
	if (!err)
		gpu_process_free(back);
	free(data);
	part->n_unknown_fields = 1;
	criu_kfd__free_unpacked(msg, NULL);
	return err;
}

/* What it says would be lost. CRIU's plugin has numbers below 100. */
TEST(fields_of_a_later_version_are_refused_wherever_they_are)
{
	for (unsigned int i = 0; i < 6; i++)
		for (uint32_t tag = 99; tag <= 130; tag += 31) {
			struct gpu_process image = sample_image();
			CriuKfd *msg = message_of(&image);
			ProtobufCMessage *const parts[] = {
				&msg->base, &msg->bo_entries[1]->base, &msg->device_entries[2]->base,
				&msg->device_entries[1]->iolinks[0]->base, &msg->vmas[0]->base,
				&msg->writer->base,
			};

			assert_int_equal(unpack_with_field(msg, parts[i], tag), tag == 99 ? 0 : -EOPNOTSUPP);
			assert_true(tag == 99 || strstr(log_text, "was written by version 0.1 of the plugin, and version "));
		}
}

/* Such a field may also be the checksum, with another bit in its number: every version writes one. */
TEST(fields_of_a_later_version_are_refused_of_an_unknown_writer)
{
	uint8_t later[] = { 0x08, 0xb4, 0x24, 0x98, 0x08, 0x01, 0xc5, 0x3e, 0, 0, 0, 0 };
	struct render_image *back = NULL;

	seal(later, sizeof(later));
	log_clear();
	assert_int_equal(render_image_unpack("later", later, sizeof(later), &back), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "was written by version (unknown) of the plugin"));
	assert_non_null(strstr(log_text, "use that version"));
	log_clear();
	assert_int_equal(render_image_unpack("later", later, 6, &back), -EBADMSG);
	assert_non_null(strstr(log_text, "is damaged: it has no CRC-32C of itself"));
}

TEST(flags_of_a_file_are_checked)
{
	struct render_image image = { .gpu_id = 0x5678, .minor = 130, .nodes = sample_nodes() };

	assert_int_equal(read_back_with(&image, O_RDONLY, true), 0);
	assert_int_equal(read_back_with(&image, O_WRONLY | O_NONBLOCK | O_APPEND, true), 0);
	assert_int_equal(read_back_with(&image, O_RDWR | O_CREAT, true), -EBADMSG);
	assert_int_equal(read_back_with(&image, O_RDONLY | O_PATH, true), -EBADMSG);
	/* The KFD's memory is mapped with it. */
	assert_int_equal(read_back_with(&image, O_RDONLY, false), -EBADMSG);
	topology_free(image.nodes);
}

/* ---- criu's list of open files ---- */

/* A regular file, and two of plugins; of one of them more is said than is read here. */
static const uint8_t list[] = {
	0x19, 0x43, 0x56, 0x54, 0x38, 0x31, 0x30, 0x56,
	6, 0, 0, 0, 0x08, 1, 0x10, 3, 0x1a, 0,
	5, 0, 0, 0, 0x08, 16, 0x10, 0x87, 0x01,
	9, 0, 0, 0, 0x08, 16, 0x10, 9, 0x7a, 3, 1, 2, 3,
};

/* Of its first @size bytes. */
static int unpack_list(size_t size, size_t *ret_nr)
{
	_cleanup_free_ uint8_t *copy = malloc(size + 1);
	_cleanup_free_ uint32_t *ids = NULL;
	int err;

	memcpy(copy, list, size);
	*ret_nr = 0;
	err = criu_list_unpack(copy, size, &ids, ret_nr);
	assert_true(*ret_nr < 1 || ids[0] == 135);
	assert_true(*ret_nr < 2 || ids[1] == 9);
	return err;
}

TEST(files_of_plugins_are_found_in_the_list_of_criu)
{
	const size_t ends[] = { 8, 18, 27, sizeof(list) };
	size_t nr, end = 0;

	for (size_t size = 0; size <= sizeof(list); size++) {
		bool is_whole = size == ends[end];

		assert_int_equal(unpack_list(size, &nr), is_whole ? 0 : -EBADMSG);
		end += is_whole;
		assert_int_equal(nr, end > 1 ? end - 2 : 0);
	}
	assert_int_equal(end, ARRAY_SIZE(ends));
}

/* As the plugin of criu 3.17 to 4.2 writes: field 1 alone, gpu id 0x1234. */
TEST(render_image_of_criu_3_17_is_read)
{
	static const uint8_t old[] = { 0x08, 0xb4, 0x24 };
	struct render_image *back = NULL;

	assert_int_equal(render_image_unpack("old", old, sizeof(old), &back), 0);
	assert_int_equal(back->gpu_id, 0x1234);
	assert_null(back->nodes);
	assert_int_equal(back->flags, O_RDWR);
	render_image_free(back);
}

FIXTURE_TEST(pages_files_are_named_by_id_and_gpu)
{
	char name[IMAGE_NAME_MAX];
	int fd;

	image_name_make(IMAGE_PAGES, ID, 0xab, name);
	assert_string_equal(name, "amdgpu-pages-7-00ab.img");
	fd = criu_image_create(name);
	assert_true(fd >= 0);
	close(fd);
	fd = criu_image_open(name);
	assert_true(fd >= 0);
	close(fd);
}

TEST(files_are_known_by_their_names)
{
	static const char *const others[] = { "amdgpu-kfd-7.img.old", "amdgpu-kfd-07.img", "amdgpu-kfd--7.img",
		"amdgpu-kfd-7", "amdgpu-kfd-.img", "xamdgpu-kfd-7.img", "amdgpu-pages-7-95DE.img", "core-7.img", "",
		"amdgpu-pages-7-de.img", "amdgpu-kfd-99999999999.img", "amdgpu-dmabuf-7.img" };
	struct image_name name;

	assert_true(image_name_parse("amdgpu-kfd-7.img", &name) && name.kind == IMAGE_KFD && name.id == 7);
	assert_true(image_name_parse("amdgpu-renderD-12.img", &name) && name.kind == IMAGE_RENDER && name.id == 12);
	assert_true(image_name_parse("amdgpu-pages-7-95de.img", &name) && name.kind == IMAGE_PAGES);
	assert_int_equal(name.id, 7);
	assert_int_equal(name.gpu_id, 0x95de);
	assert_true(image_name_parse("amdgpu-pages-7-00de.img", &name) && name.gpu_id == 0xde);
	assert_true(image_name_parse("amdgpu-shared-3.img", &name) && name.kind == IMAGE_DMABUF);
	assert_true(image_name_parse("amdgpu-dmabuf_3.img", &name) && name.kind == IMAGE_DMABUF && name.id == 3);
	assert_true(image_name_parse("amdgpu-drm-pages-3-128-0001.img", &name) && name.kind == IMAGE_DRM_PAGES);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(image_name_parse(others[i], &name));
}

UNIT_MAIN(NULL, NULL)
