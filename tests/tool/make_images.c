// SPDX-License-Identifier: GPL-2.0-only
/*
 * make_images TOPOLOGY DIR: writes images as the plugin does, without a GPU. GPUs are those of the topology; a first
 * process has all, a second one the last. DIR is new. Some sets are made by further words:
 *     nasty     names of GPUs and writers that are no text
 *     large     buffers of many megabytes
 *     sharing   the first process' first buffer is imported by the second, and so is an object of a render node
 *     owners    likewise, and a third process owns both, too
 *     render    one process alone, which has no /dev/kfd and all GPUs
 *     suspended one process alone, with the last GPU, which was suspended and has freed its first buffer
 * Each has criu's list of open files as well, files.img.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "host/criu.h"
#include "image/image.h"
#include "records_fixture.h"
#include "suspend/internal.h"

#define MAX_BOS 64
#define NASTY	"a\"\\\n\x1b[31m\xff\xc3\xa9\xed\xa0\x80\x7f"

static bool nasty, sharing, owners, render, suspended;
static uint64_t unit = 4096;

#define must(condition)                                                                 \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                        \
		}                                                                       \
	} while (0)

/* ---- criu's list of files ---- */

#define FILE_REG 1
#define FILE_EXT 16

static FILE *list;

/* A file_entry: type, id, and a message of the type, here an empty one. */
static void list_file(int type, int id)
{
	uint8_t entry[] = { 6, 0, 0, 0, 0x08, (uint8_t)type, 0x10, (uint8_t)id, type == FILE_REG ? 0x1a : 0x7a, 0 };

	must(id < 128 && fwrite(entry, sizeof(entry), 1, list) == 1);
}

static void list_begin(void)
{
	static const uint32_t magic[] = { 0x54564319, 0x56303138 };
	int fd = criu_image_create("files.img");

	list = fd < 0 ? NULL : fdopen(fd, "w");
	must(list && fwrite(magic, sizeof(magic), 1, list) == 1);
	list_file(FILE_REG, 3);
}

/* ---- nodes ---- */

/* All CPUs of the machine, and its GPUs from the @first on. */
static struct topology *nodes_from(const struct topology *machine, unsigned int first)
{
	struct topology *nodes = topology_new();
	unsigned int gpus = 0;

	must(nodes);
	for (unsigned int i = 0; i < machine->nr_nodes; i++) {
		const struct topology_node *from = machine->nodes[i];
		struct topology_node *node;

		if (topology_is_gpu(from) && gpus++ < first)
			continue;
		must(!topology_add_node(nodes, from->id, &node));
		node->present = from->present;
		memcpy(node->value, from->value, sizeof(node->value));
		snprintf(node->name, sizeof(node->name), "%s", nasty ? NASTY : from->name);
		for (unsigned int l = 0; l < from->nr_links; l++)
			must(!topology_node_add_link(node, &from->links[l]));
	}
	must(!topology_finish(nodes));
	return nodes;
}

/* ---- contents ---- */

/* Zeros, which become a hole, for every third buffer; else a pattern that knows its place. */
static void fill(uint8_t *bytes, uint64_t size, size_t bo)
{
	for (uint64_t i = 0; bo % 3 != 2 && i < size; i++)
		bytes[i] = (uint8_t)((i * 7 + i / 4096) ^ bo * 29);
}

static void write_data(int fd, struct kfd_state *state, uint32_t gpu_id)
{
	uint8_t prefix[LENGTH_PREFIX_BYTES];
	uint64_t at = sizeof(prefix);

	must(fd >= 0);
	for (size_t i = 0; i < state->nr_bos; i++) {
		struct bo *bo = &state->bos[i];
		uint8_t *bytes;

		if (bo->gpu_id != gpu_id || !kfd_state_owns(state, i))
			continue;
		bytes = calloc(1, bo->size);
		must(bytes);
		fill(bytes, bo->size, i);
		bo->crc32c = crc32c(0, bytes, bo->size);
		bo->has_crc32c = true;
		if (i % 3 != 2)
			must(pwrite(fd, bytes, bo->size, (off_t)at) == (ssize_t)bo->size);
		free(bytes);
		at += bo->size;
	}
	length_prefix_put(prefix, at - sizeof(prefix));
	must(!ftruncate(fd, (off_t)at) && pwrite(fd, prefix, sizeof(prefix), 0) == sizeof(prefix));
	close(fd);
}

static void write_pages(int id, struct kfd_state *state, uint32_t gpu_id)
{
	char name[IMAGE_NAME_MAX];

	image_name_make(IMAGE_PAGES, id, gpu_id, name);
	write_data(criu_image_create(name), state, gpu_id);
}

/* ---- a process ---- */

static void add_bo(struct kfd_state *state, uint32_t gpu_id, uint32_t flags, uint64_t size)
{
	size_t i = state->nr_bos++;

	must(i < MAX_BOS);
	state->bos[i] = (struct bo){
		.addr = 0x7f0000000000 + (uint64_t)i * (1ull << 32),
		.size = size,
		.offset = 0x100000000 + (uint64_t)i * (1ull << 32),
		.alloc_flags = flags,
		.gpu_id = gpu_id,
	};
}

static void add_bos(struct kfd_state *state, uint32_t gpu_id)
{
	add_bo(state, gpu_id, KFD_IOC_ALLOC_MEM_FLAGS_VRAM, 700 * unit + 4096);
	add_bo(state, gpu_id, KFD_IOC_ALLOC_MEM_FLAGS_GTT, 16 * unit);
	add_bo(state, gpu_id, KFD_IOC_ALLOC_MEM_FLAGS_VRAM, 300 * unit);
	add_bo(state, gpu_id, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR, 8 * unit);
	add_bo(state, gpu_id, KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL, 8192);
}

/* Buffer 1 is the first process' first one, 2 a GTT object of its render node; the second one imports both. */
static void add_sharing(struct gpu_process *image, bool owns)
{
	struct kfd_state *state = &image->state;
	uint32_t gpu_id = state->bos[0].gpu_id;

	image->nr_sharers = 2;
	image->nr_files = 1 + topology_count_gpus(image->nodes);
	state->bos[0].share = (struct kfd_share){ .buffer = 1, .kind = owns ? KFD_BO_OWN : KFD_BO_IMPORT };
	add_bo(state, gpu_id, KFD_IOC_ALLOC_MEM_FLAGS_GTT, 3 * unit);
	state->bos[state->nr_bos - 1].share = (struct kfd_share){
		.buffer = 2,
		.kind = owns ? KFD_BO_GEM : KFD_BO_REF,
		.domains = owns ? 2 : 0,
	};
}

/* ---- a suspended process ---- */

static void create_image(enum image_kind kind, uint32_t pid, uint32_t gpu_id, int *ret_fd)
{
	char name[IMAGE_NAME_MAX];

	image_name_make(kind, (int)pid, gpu_id, name);
	*ret_fd = criu_image_create(name);
}

/* Its record and the data of its first buffer, which the state has no more. */
static void free_first(struct kfd_state *state, uint32_t gpu_id)
{
	struct kfd_criu_device_bucket device = { .user_gpu_id = gpu_id, .actual_gpu_id = gpu_id };
	uint8_t plan[MAX_BOS] = { BO_FREE };
	struct process process = { .gpu.state = *state, .plan = plan };
	int fd;

	must(!record_begin(&process.head, 0x5eed));
	process.head.pid = (int32_t)state->pid;
	process.head.phase = PHASE_SUSPENDED;
	process.head.report.has_kfd = true;
	process.gpu.state.devices = &device;
	process.gpu.state.nr_devices = 1;
	for (size_t i = 0; i < state->nr_bos; i++)
		state->bos[i].share.kind = plan[i] ? KFD_BO_OWN : KFD_BO_IMPORT;
	create_image(IMAGE_FREED, state->pid, gpu_id, &fd);
	write_data(fd, &process.gpu.state, gpu_id);
	for (size_t i = 0; i < state->nr_bos; i++)
		state->bos[i].share.kind = KFD_BO_OWN;
	create_image(IMAGE_SUSPENDED, state->pid, 0, &fd);
	must(!record_save(&process, fd) && !close(fd));
	memmove(state->bos, state->bos + 1, --state->nr_bos * sizeof(*state->bos));
	state->nr_records = state->nr_bos;
}

/* ---- all ---- */

static void write_process(int id, uint32_t pid, struct topology *nodes)
{
	struct bo bos[MAX_BOS];
	struct device_vma vma = { .start = 0x1000, .end = 0x3000, .minor = 128 };
	struct fixture_records *f = calloc(1, sizeof(*f));
	struct gpu_process image = {
		.state = { .pid = pid, .bos = bos },
		.nodes = nodes,
		.vmas = &vma,
		.nr_vmas = 1,
		.writer = { .plugin = "0.2+0b407ae",
			    .kernel = "6.12.107",
			    .driver = "Linux 6.12.107",
			    .criu_hooks = 13 },
		.flags = O_RDWR,
	};

	must(f);
	if (nasty)
		snprintf(image.writer.kernel, sizeof(image.writer.kernel), NASTY);
	for (unsigned int i = 0; i < nodes->nr_nodes; i++)
		if (topology_is_gpu(nodes->nodes[i]))
			add_bos(&image.state, topology_gpu_id(nodes->nodes[i]));
	image.state.nr_records = image.state.nr_bos;
	if (sharing)
		add_sharing(&image, id != 27);
	image.is_suspended = suspended;
	if (suspended)
		free_first(&image.state, bos[0].gpu_id);
	fixture_begin(f, topology_count_gpus(nodes), image.state.nr_records);
	for (unsigned int i = 0; i < nodes->nr_nodes; i++) {
		uint32_t gpu_id = topology_gpu_id(nodes->nodes[i]);

		if (!gpu_id)
			continue;
		fixture_queue(f,
			      &(struct queue_record){ .gpu_id = gpu_id, .type = QUEUE_TYPE_COMPUTE, .mqd_size = 2048 });
		fixture_queue(f, &(struct queue_record){ .gpu_id = gpu_id, .type = QUEUE_TYPE_SDMA, .mqd_size = 512 });
		write_pages(id, &image.state, gpu_id);
	}
	fixture_event(f);
	fixture_event(f);
	fixture_svm_range(f);
	image.state.priv_data = f->bytes;
	image.state.priv_size = f->size;
	image.state.nr_objects = f->nr_objects;
	must(!kfd_image_write(id, &image));
	list_file(FILE_EXT, id);
	free(f);
}

static void write_render(int id, const struct topology *nodes)
{
	struct gem_handle handles[] = { { 3, 2 }, { 4, 1 } };
	struct gem_mapping mappings[] = { { .handle = 3, .va = 0x100000, .size = 4096 } };
	struct render_syncobj syncobjs[] = { { .handle = 1, .point = 9, .is_signalled = true } };

	for (unsigned int i = 0; i < nodes->nr_nodes; i++) {
		struct render_image image = { .nodes = (struct topology *)nodes, .flags = O_RDWR };

		if (!topology_is_gpu(nodes->nodes[i]))
			continue;
		if (sharing) {
			image.objects = (struct render_objects){
				.handles = handles,
				.nr_handles = ARRAY_SIZE(handles),
				.mappings = mappings,
				.nr_mappings = ARRAY_SIZE(mappings),
				.syncobjs = syncobjs,
				.nr_syncobjs = ARRAY_SIZE(syncobjs),
			};
		}
		image.gpu_id = topology_gpu_id(nodes->nodes[i]);
		image.minor = (uint32_t)topology_get(nodes->nodes[i], TOPOLOGY_DRM_RENDER_MINOR);
		list_file(FILE_EXT, id);
		must(!render_image_write(id++, &image));
	}
}

/* Its only buffer is an object of the first GPU; the state is beside the first render node. */
static void write_render_only(int id, uint32_t pid, struct topology *nodes)
{
	struct bo bos[MAX_BOS];
	struct gem_handle handle = { 1, 1 };
	struct gpu_process image = {
		.state = { .pid = pid, .bos = bos },
		.nodes = nodes,
		.writer = { .plugin = "0.2+0b407ae", .kernel = "7.2.13", .driver = "Linux 7.2.13", .criu_hooks = 13 },
		.flags = O_RDWR,
		.no_kfd = true,
		.nr_sharers = 1,
		.nr_files = topology_count_gpus(nodes),
	};

	for (unsigned int i = 0, files = 0; i < nodes->nr_nodes; i++) {
		struct render_image file = { .nodes = nodes, .flags = O_RDWR, .without_kfd_vm = true };

		if (!topology_is_gpu(nodes->nodes[i]))
			continue;
		file.gpu_id = topology_gpu_id(nodes->nodes[i]);
		file.minor = (uint32_t)topology_get(nodes->nodes[i], TOPOLOGY_DRM_RENDER_MINOR);
		if (!files) {
			add_bo(&image.state, file.gpu_id, KFD_IOC_ALLOC_MEM_FLAGS_VRAM, unit);
			bos[0].share = (struct kfd_share){ .buffer = 1, .kind = KFD_BO_GEM, .domains = 4 };
			file.objects = (struct render_objects){ .handles = &handle, .nr_handles = 1 };
		}
		list_file(FILE_EXT, id + (int)files);
		must(!render_image_write(id + (int)files++, &file));
		write_pages(id, &image.state, file.gpu_id);
	}
	must(!kfd_image_write(id, &image));
}

int main(int argc, char **argv)
{
	struct topology *machine, *all, *last;
	int directory;

	must(argc > 2);
	for (int i = 3; i < argc; i++) {
		nasty |= !strcmp(argv[i], "nasty");
		owners |= !strcmp(argv[i], "owners");
		sharing |= owners || !strcmp(argv[i], "sharing");
		render |= !strcmp(argv[i], "render");
		suspended |= !strcmp(argv[i], "suspended");
		unit = !strcmp(argv[i], "large") ? 65536 : unit;
	}
	must(!mkdir(argv[2], 0700));
	directory = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(directory >= 0 && !sysfs_read_topology(argv[1], &machine));
	criu_use_image_dir(directory);
	list_begin();
	all = nodes_from(machine, 0);
	last = nodes_from(machine, topology_count_gpus(machine) - 1);
	if (render) {
		write_render_only(7, 42, all);
	} else if (suspended) {
		write_process(7, 42, last);
	} else {
		write_process(7, 42, all);
		write_render(8, all);
		write_process(27, 43, last);
		write_render(28, last);
	}
	if (owners)
		write_process(17, 44, all);
	if (sharing) {
		must(!dmabuf_image_write(40, &(struct dmabuf_image){ .buffer = 1, .nr_sharers = 2, .name = "tensor" }));
		list_file(FILE_EXT, 40);
	}
	must(!fclose(list));
	topology_free(all);
	topology_free(last);
	topology_free(machine);
	return 0;
}
