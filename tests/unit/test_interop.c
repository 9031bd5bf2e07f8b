// SPDX-License-Identifier: GPL-2.0-only
/*
 * Images from and for the plugin in CRIU's tree. The samples of tests/images are read; what
 * is written is decoded by protoc with the schemas of tests/images, which say what the other
 * plugin demands and share nothing with this one's.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sys/stat.h>

#include "unit.h"
#include "image/image.h"
#include "log_stub.h"
#include "image_dir.h"

/* The other writer's GPUs: their ids in the samples. */
#define GPU_A 51110
#define GPU_B 33367

/* Fields from this number on are this plugin's own. */
#define OWN_FIELDS 100

static struct gpu_process *read_kfd(const char *sample)
{
	struct gpu_process *image = NULL;

	log_clear();
	snprintf(directory, sizeof(directory), "%s/%s", SAMPLE_IMAGES, sample);
	if (kfd_image_read(7, &image))
		fail_msg("%s is not read: %s", sample, log_text);
	assert_int_equal(log_errors, 0);
	assert_int_equal(image->state.pid, 4711);
	assert_int_equal(image->state.priv_size, 20);
	assert_memory_equal(image->state.priv_data, "\1\0\0\0the kernel's own", 20);
	/* What only this plugin writes is known to be missing. */
	assert_false(image->nr_vmas || image->extra_file);
	return image;
}

static struct render_image *read_render(const char *sample, int id)
{
	struct render_image *image = NULL;

	log_clear();
	snprintf(directory, sizeof(directory), "%s/%s", SAMPLE_IMAGES, sample);
	if (render_image_read(id, &image))
		fail_msg("%s is not read: %s", sample, log_text);
	return image;
}

static const struct topology_node *gpu_node(const struct gpu_process *image, uint32_t gpu_id)
{
	int node = topology_find_gpu(image->nodes, gpu_id);

	assert_true(node >= 0);
	return image->nodes->nodes[node];
}

TEST(images_of_3_17_to_4_2_are_read)
{
	struct gpu_process *image = read_kfd("3.17-one-gpu");
	struct render_image *render = read_render("3.17-one-gpu", 8);
	const struct topology_node *gpu = gpu_node(image, GPU_A);

	assert_int_equal(image->nodes->nr_nodes, 2);
	assert_int_equal(topology_get(gpu, TOPOLOGY_VRAM_SIZE), 34342961152);
	assert_int_equal(topology_get(gpu, TOPOLOGY_DRM_RENDER_MINOR), 128);
	assert_int_equal(topology_get(gpu, TOPOLOGY_SIMD_COUNT), 480);
	assert_int_equal(gpu->nr_links, 1);
	assert_false(topology_has(gpu, TOPOLOGY_GFX_TARGET_VERSION));
	assert_int_equal(image->state.nr_bos, 3);
	assert_int_equal(image->state.bos[2].addr, 0x7f0000200000);
	assert_int_equal(image->state.bos[2].size, 4096);
	assert_int_equal(image->state.bos[2].offset, 0x100004000);
	assert_int_equal(image->state.bos[2].alloc_flags, 0x80000002);
	assert_int_equal(image->state.bos[2].gpu_id, GPU_A);
	assert_false(image->state.bos[0].has_crc32c);
	assert_int_equal(image->state.nr_objects, 4);
	assert_int_equal(render->gpu_id, GPU_A);
	assert_null(render->nodes);
	gpu_process_free(image);
	render_image_free(render);
}

TEST(an_image_with_the_shared_memory_of_an_old_rocm_is_read)
{
	gpu_process_free(read_kfd("3.17-shared-memory"));
}

TEST(images_of_the_development_branch_are_read)
{
	struct gpu_process *image = read_kfd("dev-two-gpus");
	struct render_image *render = read_render("dev-two-gpus", 8);
	const struct topology_node *gpu = gpu_node(image, GPU_B);

	assert_int_equal(image->nodes->nr_nodes, 4);
	assert_int_equal(topology_get(gpu, TOPOLOGY_HIVE_ID), 77);
	assert_int_equal(gpu->nr_links, 2);
	assert_int_equal(image->nodes->nodes[gpu->links[1].to]->id, 2);
	assert_int_equal(image->state.nr_bos, 3);
	assert_int_equal(image->state.bos[2].gpu_id, GPU_B);
	assert_int_equal(render->minor, 128);
	gpu_process_free(image);
	render_image_free(render);
}

TEST(buffers_of_the_render_node_are_refused)
{
	struct render_image *image = NULL;

	log_clear();
	snprintf(directory, sizeof(directory), "%s/dev-two-gpus", SAMPLE_IMAGES);
	assert_int_equal(render_image_read(9, &image), -EOPNOTSUPP);
	assert_int_equal(log_errors, 1);
	assert_non_null(strstr(log_text, "amdgpu-renderD-9.img: has 3 buffers of the render node itself"));
}

/* They have the number of a handle, field 1. */
TEST(dmabufs_are_refused)
{
	static const uint8_t bytes[] = { 2, 0, 0, 0, 0, 0, 0, 0, 0x08, 5 };
	struct dmabuf_image image;
	int fd;

	assert_int_equal(make_directory(NULL), 0);
	fd = criu_image_create("amdgpu-dmabuf_9.img");
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	close(fd);
	assert_int_equal(dmabuf_image_read(8, &image), -ENOENT);
	assert_int_equal(log_errors, 0);
	assert_int_equal(dmabuf_image_read(9, &image), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "amdgpu-dmabuf_9.img: belongs to a dma-buf"));
	remove_directory(NULL);
}

TEST(gpus_that_the_process_did_not_see_are_passed_over)
{
	struct gpu_process *image = read_kfd("later-hidden-gpu");

	assert_int_equal(image->nodes->nr_nodes, 3);
	assert_int_equal(topology_count_gpus(image->nodes), 1);
	assert_int_equal(gpu_node(image, GPU_B)->nr_links, 0);
	gpu_process_free(image);
}

/* ---- what is written ---- */

/* The text that protoc makes of an image, by a schema. It complains about what the schema demands and is not there. */
static void decode(const char *name, const char *message, const char *schema, char *text, size_t room)
{
	char command[512];
	size_t used;
	FILE *p;

	snprintf(command, sizeof(command),
		 "tail -c +9 '%s/%s' | protoc --decode=%s --proto_path=tests/images tests/images/%s 2>&1", directory,
		 name, message, schema);
	p = popen(command, "r");
	assert_non_null(p);
	used = fread(text, 1, room - 1, p);
	text[used] = '\0';
	if (pclose(p) || strstr(text, "missing required") || strstr(text, "warning"))
		fail_msg("%s by %s:\n%s", name, schema, text);
}

/* A field that the schema does not have is printed with its number; what is inside of it is ours anyway. */
static void check_unknown_fields(const char *text)
{
	size_t skip = SIZE_MAX; /* indentation of the field of ours that is being passed over */
	const char *line, *word;

	for (line = text; *line; line = strchr(line, '\n') + 1) {
		word = line + strspn(line, " ");
		if (skip != SIZE_MAX) {
			if (*word == '}' && (size_t)(word - line) == skip)
				skip = SIZE_MAX;
			continue;
		}
		if (*word < '0' || *word > '9')
			continue;
		if (atoi(word) < OWN_FIELDS)
			fail_msg("a field without a name: %.80s", line);
		if (strchr(word, '\n')[-1] == '{')
			skip = (size_t)(word - line);
	}
}

static void check_length(const char *name)
{
	uint64_t length = 0;
	struct stat st;
	int fd = criu_image_open(name);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, &length, sizeof(length)), sizeof(length));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(length + sizeof(length), st.st_size);
	close(fd);
}

static unsigned int count(const char *text, const char *what)
{
	unsigned int n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* An image with all that this plugin adds. */
static void write_images(void)
{
	struct gpu_process *image = read_kfd("dev-two-gpus");
	struct device_vma vma = { .start = 0x1000, .end = 0x3000, .offset = 3ull << 62, .gpu_id = GPU_A };
	struct render_image render = { .gpu_id = GPU_B, .minor = 129, .nodes = image->nodes };
	struct topology_node *gpu = (struct topology_node *)gpu_node(image, GPU_A);

	assert_int_equal(topology_node_set(gpu, TOPOLOGY_GFX_TARGET_VERSION, 90008), 0);
	assert_int_equal(topology_node_set(gpu, TOPOLOGY_UNIQUE_ID, 1), 0);
	strcpy(gpu->name, "arcturus");
	gpu->links[0].has_weight = true;
	gpu->links[1].is_p2p = true;
	image->state.bos[0].has_crc32c = true;
	image->state.bos[0].crc32c = 1;
	free(image->vmas);
	image->vmas = &vma;
	image->nr_vmas = 1;
	assert_int_equal(make_directory(NULL), 0);
	assert_int_equal(kfd_image_write(7, image), 0);
	assert_int_equal(render_image_write(9, &render), 0);
	image->vmas = NULL;
	image->nr_vmas = 0;
	gpu_process_free(image);
}

static void check_kfd_by(const char *schema)
{
	static char text[32768];

	decode("amdgpu-kfd-7.img", "criu_kfd", schema, text, sizeof(text));
	assert_non_null(strstr(text, "num_of_gpus: 2\nnum_of_cpus: 2\n"));
	assert_int_equal(count(text, "\ndevice_entries {"), 4);
	assert_non_null(strstr(text, "num_of_bos: 3\n"));
	assert_int_equal(count(text, "\nbo_entries {"), 3);
	assert_int_equal(count(text, "gpu_id: 51110\n  cpu_cores_count: 0\n  simd_count: 480\n"), 1);
	assert_non_null(strstr(text, "priv_data: \"\\001\\000\\000\\000the kernel\\'s own\""));
	/* All that is new is there as well, and was passed over above. */
	assert_int_equal(count(text, "\n100 {"), 1);
	assert_non_null(strstr(text, "105: \"arcturus\""));
}

TEST(written_images_are_read_by_the_others_rules)
{
	static char text[32768];

	write_images();
	check_length("amdgpu-kfd-7.img");
	check_length("amdgpu-renderD-9.img");
	check_kfd_by("criu-3.17.proto");
	check_kfd_by("criu-dev.proto");
	decode("amdgpu-kfd-7.img", "criu_kfd", "criu-dev.proto", text, sizeof(text));
	assert_int_equal(count(text, "handle: 4294967295\n"), 3);
	check_unknown_fields(text);
	decode("amdgpu-renderD-9.img", "criu_render_node", "criu-3.17.proto", text, sizeof(text));
	assert_non_null(strstr(text, "gpu_id: 33367\n"));
	decode("amdgpu-renderD-9.img", "criu_render_node", "criu-dev.proto", text, sizeof(text));
	check_unknown_fields(text);
	assert_non_null(strstr(text, "gpu_id: 33367\nid: 9\ndrm_render_minor: 129\nnum_of_bos: 0\n"));
	remove_directory(NULL);
}

UNIT_MAIN(NULL, NULL)
