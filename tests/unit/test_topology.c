// SPDX-License-Identifier: GPL-2.0-only
/*
 * Topology: trees of several machines and kernels are read right, changed and
 * damaged ones are handled, and what is built by hand obeys the same rules.
 *
 * openat() is the test's own, to hide nodes as the device cgroup does and to
 * change the machine in the middle of a reading.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "unit.h"
#include "kernel/machine.h"
#include "log_stub.h"
#include "remove_all.h"

/* ---- what openat() does besides opening ---- */

static const char *hidden[4];	     /* paths that fail with EPERM */
static const char *denied;	     /* a path that fails with EACCES */
static const char *broken;	     /* a path that fails with EIO */
static void (*at_generation)(int n); /* called before the n-th opening of generation_id, from 1 */
static int n_generation;

int openat(int dir_fd, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	va_start(args, flags);
	if (flags & O_CREAT)
		mode = va_arg(args, mode_t);
	va_end(args);
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
		if (hidden[i] && !strcmp(path, hidden[i])) {
			errno = EPERM;
			return -1;
		}
	}
	if (denied && !strcmp(path, denied)) {
		errno = EACCES;
		return -1;
	}
	if (broken && !strcmp(path, broken)) {
		errno = EIO;
		return -1;
	}
	if (at_generation && !strcmp(path, "generation_id"))
		at_generation(++n_generation);
	return (int)syscall(SYS_openat, dir_fd, path, flags, mode);
}

/* ---- a copy of a tree that a test may change ---- */

static char dir[64];
static struct topology *topo;

static void run(const char *fmt, ...)
{
	char command[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	assert_int_equal(system(command), 0);
}

static int setup(void **state)
{
	log_clear();
	memset(hidden, 0, sizeof(hidden));
	denied = NULL;
	broken = NULL;
	at_generation = NULL;
	n_generation = 0;
	topo = NULL;
	strcpy(dir, "/tmp/test_topology.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	topology_free(topo);
	assert_int_equal(remove_all(dir), 0);
	return 0;
}

static void copy_tree(const char *name)
{
	run("cp -r '%s/topology/%s/.' '%s'", TEST_DATA, name, dir);
}

static void write_file(const char *name, const char *text)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fclose(f), 0);
}

/* Reads the copy, in place of what was read before. */
static void read_copy(void)
{
	topology_free(topo);
	topo = NULL;
	assert_int_equal(sysfs_read_topology(dir, &topo), 0);
	assert_int_equal(log_errors, 0);
}

static void read_data(const char *name)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/topology/%s", TEST_DATA, name);
	assert_int_equal(sysfs_read_topology(path, &topo), 0);
	assert_int_equal(log_errors, 0);
}

/* Reading the copy fails, with one error line that has both parts. */
static void assert_refused(int err, const char *a, const char *b)
{
	log_clear();
	assert_int_equal(sysfs_read_topology(dir, &topo), err);
	assert_null(topo);
	assert_int_equal(log_errors, 1);
	if (!strstr(log_text, a) || !strstr(log_text, b))
		fail_msg("'%s' or '%s' is not in the log: %s", a, b, log_text);
}

static const struct topology_link *find_link(const struct topology_node *node, int to, bool is_p2p)
{
	for (unsigned int i = 0; i < node->nr_links; i++) {
		if (node->links[i].to == to && node->links[i].is_p2p == is_p2p)
			return &node->links[i];
	}
	return NULL;
}

/* ---- trees ---- */

#define FIXTURE_TEST(test) UNIT_TEST(test, setup, teardown)

FIXTURE_TEST(topology_reads_two_linked_gpus)
{
	const struct topology_node *gpu;
	const struct topology_link *link;

	read_data("two-mi100");
	assert_int_equal(topo->nr_nodes, 4);
	assert_int_equal(topology_count_gpus(topo), 2);
	gpu = topo->nodes[3];
	assert_int_equal(gpu->id, 3);
	assert_string_equal(gpu->name, "arcturus");
	assert_int_equal(topology_gpu_id(gpu), 0x9e35);
	assert_int_equal(topology_get(gpu, TOPOLOGY_DRM_RENDER_MINOR), 129);
	assert_int_equal(topology_get(gpu, TOPOLOGY_GFX_TARGET_VERSION), 90008);
	assert_int_equal(topology_get(gpu, TOPOLOGY_VENDOR_ID), 0x1002);
	assert_int_equal(topology_get(gpu, TOPOLOGY_DEVICE_ID), 0x738c);
	assert_int_equal(topology_get(gpu, TOPOLOGY_LOCATION_ID), 0xc300);
	assert_int_equal(topology_get(gpu, TOPOLOGY_HIVE_ID), 9314161361426427293ULL);
	assert_int_equal(topology_get(gpu, TOPOLOGY_UNIQUE_ID), 0x2222);
	assert_int_equal(topology_get(gpu, TOPOLOGY_CACHES_COUNT), 146);
	assert_int_equal(topology_get(gpu, TOPOLOGY_FW_VERSION), 64);
	assert_int_equal(topology_get(gpu, TOPOLOGY_SDMA_FW_VERSION), 18);
	assert_int_equal(topology_get(gpu, TOPOLOGY_NUM_XCC), 1);
	assert_int_equal(topology_get(gpu, TOPOLOGY_VRAM_SIZE), 34342961152ULL);
	assert_int_equal(topology_get(gpu, TOPOLOGY_VRAM_PUBLIC), 1);
	assert_int_equal(topology_get(gpu, TOPOLOGY_NUMA_NODE), 1);
	assert_int_equal(topology_get(topo->nodes[2], TOPOLOGY_NUMA_NODE), 0);

	link = find_link(gpu, 2, false);
	assert_non_null(link);
	assert_int_equal(link->type, TOPOLOGY_LINK_XGMI);
	assert_int_equal(link->weight, 15);
	assert_int_equal(link->min_bandwidth, 50000);
	assert_int_equal(link->max_bandwidth, 100000);
	assert_int_equal(link->flags, TOPOLOGY_LINK_FLAG_ENABLED);
	assert_true(link->has_weight && link->has_bandwidth && link->has_flags);
	link = find_link(gpu, 2, true);
	assert_non_null(link);
	assert_int_equal(link->type, TOPOLOGY_LINK_PCIE);
	assert_null(find_link(topo->nodes[2], 3, true));
	assert_non_null(find_link(topo->nodes[0], 2, false));
}

FIXTURE_TEST(topology_reads_every_property_of_the_table)
{
	read_data("two-mi100");
	for (unsigned int i = 0; i < TOPOLOGY_NR_PROPS; i++) {
		/* MI100 has no partitions. */
		if (!topology_has(topo->nodes[2], i) != (i == TOPOLOGY_SDMA_PARTITION))
			fail_msg("%s was not read", topology_prop_info(i)->name);
	}
}

FIXTURE_TEST(topology_reads_partitions_as_nodes_of_their_own)
{
	read_data("partitions");
	assert_int_equal(topology_count_gpus(topo), 4);
	for (unsigned int i = 0; i < 4; i++) {
		const struct topology_node *gpu = topo->nodes[1 + i];

		assert_int_equal(topology_gpu_id(gpu), 0x7001 + i);
		assert_int_equal(topology_get(gpu, TOPOLOGY_LOCATION_ID), 0x500 + i);
		assert_int_equal(topology_get(gpu, TOPOLOGY_DOMAIN), 1);
		assert_true(topology_has(gpu, TOPOLOGY_SDMA_PARTITION));
		assert_int_equal(topology_get(gpu, TOPOLOGY_SDMA_PARTITION), i);
		assert_int_equal(topology_find_minor(topo, 128 + i), 1 + i);
		assert_int_equal(topology_find_gpu(topo, 0x7001 + i), 1 + i);
		assert_int_equal(gpu->nr_links, 4);
		assert_int_equal(topology_get(gpu, TOPOLOGY_NUMA_NODE), 0);
		assert_true(topology_same_device(gpu, topo->nodes[1]));
	}
	assert_int_equal(topology_node_set(topo->nodes[4], TOPOLOGY_LOCATION_ID, 0x50b), 0);
	assert_false(topology_same_device(topo->nodes[4], topo->nodes[1]));
	assert_int_equal(topology_node_set(topo->nodes[3], TOPOLOGY_DOMAIN, 2), 0);
	assert_false(topology_same_device(topo->nodes[3], topo->nodes[1]));
	/* Functions of other GPUs are devices of their own. */
	for (unsigned int i = 1; i < 3; i++)
		assert_int_equal(topology_node_set(topo->nodes[i], TOPOLOGY_GFX_TARGET_VERSION, 90010), 0);
	assert_false(topology_same_device(topo->nodes[2], topo->nodes[1]));
	topology_node_unset(topo->nodes[1], TOPOLOGY_LOCATION_ID);
	assert_false(topology_same_device(topo->nodes[2], topo->nodes[1]));
	assert_true(topology_same_device(topo->nodes[1], topo->nodes[1]));
}

/* Only where all nodes are seen is one that is alone known to be a whole device, at whatever PCI function. */
FIXTURE_TEST(topology_knows_a_device_in_one_piece)
{
	copy_tree("partitions");
	run("rm -r '%s'/nodes/1 '%s'/nodes/2 '%s'/nodes/3", dir, dir, dir);
	read_copy();
	assert_int_equal(topology_count_gpus(topo), 1);
	assert_int_equal(topology_get(topo->nodes[1], TOPOLOGY_SDMA_PARTITION), 0);
	assert_true(topology_has(topo->nodes[1], TOPOLOGY_SDMA_PARTITION));
	hidden[0] = "nodes/9/gpu_id";
	run("mkdir '%s'/nodes/9", dir);
	read_copy();
	assert_int_equal(topo->nr_hidden, 1);
	assert_int_equal(topology_get(topo->nodes[1], TOPOLOGY_SDMA_PARTITION), 3);
}

FIXTURE_TEST(topology_reads_an_apu_without_frame_buffer)
{
	read_data("apu");
	assert_int_equal(topo->nr_nodes, 1);
	assert_true(topology_is_gpu(topo->nodes[0]));
	assert_true(topology_has_cpu(topo->nodes[0]));
	assert_true(topology_has(topo->nodes[0], TOPOLOGY_VRAM_SIZE));
	assert_int_equal(topology_get(topo->nodes[0], TOPOLOGY_VRAM_SIZE), 0);
	assert_int_equal(topology_get(topo->nodes[0], TOPOLOGY_VRAM_PUBLIC), 0);
	assert_int_equal(topology_get(topo->nodes[0], TOPOLOGY_NUMA_NODE), 0);
}

FIXTURE_TEST(topology_reads_an_old_kernel)
{
	const struct topology_node *gpu;

	read_data("old-kernel"); /* node 1 is missing, lines in another order */
	assert_int_equal(topo->nr_nodes, 2);
	gpu = topo->nodes[1];
	assert_int_equal(gpu->id, 2);
	assert_int_equal(topology_get(gpu, TOPOLOGY_DEVICE_ID), 0x6860);
	assert_int_equal(topology_get(gpu, TOPOLOGY_SIMD_COUNT), 480);
	assert_false(topology_has(gpu, TOPOLOGY_GFX_TARGET_VERSION));
	assert_false(topology_has(gpu, TOPOLOGY_NUM_XCC));
	assert_false(topology_has(gpu, TOPOLOGY_UNIQUE_ID));
	assert_false(topology_has(gpu, TOPOLOGY_DOMAIN));
	assert_int_equal(topology_get(gpu, TOPOLOGY_VRAM_SIZE), 268435456ULL + 16911433728ULL);
	assert_int_equal(topology_get(gpu, TOPOLOGY_VRAM_PUBLIC), 0);
	assert_int_equal(gpu->nr_links, 1);
	assert_false(gpu->links[0].has_bandwidth);
	assert_true(gpu->links[0].has_flags);
	assert_int_equal(gpu->links[0].to, 0);
	assert_int_equal(topology_get(gpu, TOPOLOGY_NUMA_NODE), 0);
}

/* ---- no topology, hidden nodes ---- */

FIXTURE_TEST(topology_without_kfd_is_not_there)
{
	assert_int_equal(sysfs_read_topology("/nonexistent/topology", &topo), -ENOENT);
	assert_int_equal(sysfs_read_topology(dir, &topo), -ENOENT);
	assert_int_equal(sysfs_read_topology("/dev/null", &topo), -ENOENT);
	assert_int_equal(log_errors, 0);
}

FIXTURE_TEST(topology_leaves_out_nodes_that_the_cgroup_hides)
{
	copy_tree("two-mi100");
	hidden[0] = "nodes/2/gpu_id";
	hidden[1] = "nodes/0/io_links/1/properties";
	read_copy();
	assert_int_equal(topo->nr_nodes, 3);
	assert_int_equal(topo->nr_hidden, 1);
	assert_int_equal(topology_count_gpus(topo), 1);
	assert_int_equal(topology_find_gpu(topo, 0x4ac1), -ENODEV);
	/* The hidden link, and two from the GPU that is left. */
	assert_int_equal(topo->nodes[2]->nr_links, 1);
	assert_int_equal(topo->nodes[topo->nodes[2]->links[0].to]->id, 1);
}

/* Whichever of its files is the first that may not be read, and whatever the kernel calls that. */
FIXTURE_TEST(topology_leaves_out_nodes_of_which_a_part_is_hidden)
{
	static const char *const parts[] = { "nodes/2/properties", "nodes/2/mem_banks/0/properties" };
	char path[160];

	copy_tree("two-mi100");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		hidden[0] = parts[i];
		read_copy();
		assert_int_equal(topo->nr_nodes, 3);
		assert_int_equal(topo->nr_hidden, 1);
		assert_int_equal(topology_find_gpu(topo, 0x4ac1), -ENODEV);
	}
	hidden[0] = NULL;
	denied = "nodes/2/gpu_id";
	read_copy();
	assert_int_equal(topo->nr_hidden, 1);
	/* That of a whole machine is another matter. */
	topology_free(topo);
	topo = NULL;
	denied = "generation_id";
	snprintf(path, sizeof(path), "%s/generation_id", dir);
	assert_refused(-EACCES, path, "Permission denied");
}

FIXTURE_TEST(topology_drops_links_to_absent_nodes)
{
	copy_tree("two-mi100");
	run("rm -r '%s/nodes/2'", dir);
	read_copy();
	assert_int_equal(topo->nr_nodes, 3);
	assert_int_equal(topo->nr_hidden, 0);
	for (unsigned int i = 0; i < topo->nr_nodes; i++) {
		for (unsigned int l = 0; l < topo->nodes[i]->nr_links; l++)
			assert_in_range(topo->nodes[i]->links[l].to, 0, 2);
	}
}

/* ---- a machine that changes ---- */

static void change_once(int n)
{
	/* After the first reading a GPU has been removed. */
	if (n != 2)
		return;
	run("rm -r '%s/nodes/3'", dir);
	write_file("generation_id", "4\n");
}

FIXTURE_TEST(topology_reads_again_when_the_generation_moved)
{
	copy_tree("two-mi100");
	at_generation = change_once;
	read_copy();
	assert_int_equal(topology_count_gpus(topo), 1);
	assert_int_equal(n_generation, 4);
}

static void vanish_in_the_middle(int n)
{
	if (n == 1)
		run("rm -r '%s/nodes/3/properties'", dir);
	if (n != 2)
		return;
	run("rm -r '%s/nodes/3'", dir);
	write_file("generation_id", "4\n");
}

FIXTURE_TEST(topology_forgets_errors_of_a_reading_that_was_overtaken)
{
	copy_tree("two-mi100");
	at_generation = vanish_in_the_middle;
	read_copy();
	assert_int_equal(topology_count_gpus(topo), 1);
}

static void change_always(int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%d\n", n);
	write_file("generation_id", text);
}

FIXTURE_TEST(topology_gives_up_when_the_generation_never_stands_still)
{
	copy_tree("two-mi100");
	at_generation = change_always;
	assert_refused(-EAGAIN, "generation_id", "kept changing");
	assert_in_range(n_generation, 4, 100);
}

/* ---- damage ---- */

/* clang-format off */
static const struct damage {
	const char *what, *file, *text; /* NULL: the file is gone */
	int err;
	const char *says[2];
} damages[] = {
	{ "a gpu id that is no number", "nodes/2/gpu_id", "many\n", -EINVAL, { "nodes/2/gpu_id", "'many" } },
	{ "a gpu id of more than 32 bits", "nodes/2/gpu_id", "4294967296\n", -EINVAL, { "nodes/2/gpu_id", "4294967295" } },
	{ "a property below 0", "nodes/2/properties", "vendor_id 4098\nsimd_count -1\n", -EINVAL,
	  { "nodes/2/properties: simd_count", "'-1'" } },
	{ "a property of more than 32 bits", "nodes/2/properties", "simd_count 4294967296\n", -EINVAL,
	  { "simd_count", "32 bits" } },
	{ "a property of more than 64 bits", "nodes/2/properties", "unique_id 18446744073709551616\n", -EINVAL,
	  { "unique_id", "64 bits" } },
	{ "an empty generation", "generation_id", "", -EINVAL, { "generation_id", "number" } },
	{ "a link without a peer", "nodes/2/io_links/0/properties", "type 2\nweight 20\n", -EINVAL,
	  { "nodes/2/io_links/0/properties", "node_to" } },
	{ "two GPUs with one id", "nodes/2/gpu_id", "40501\n", -EEXIST, { "nodes 2 and 3", "0x9e35" } },
	{ "no properties", "nodes/2/properties", NULL, -EIO, { "nodes/2/properties", "No such file" } },
	{ "no nodes", "nodes", NULL, -EIO, { "/nodes", "No such file" } },
};
/* clang-format on */

ROW_TEST(topology_refuses, damages, what, setup, teardown)
{
	const struct damage *row = *unit_state;

	copy_tree("two-mi100");
	if (row->text)
		write_file(row->file, row->text);
	else
		run("rm -r '%s/%s'", dir, row->file);
	assert_refused(row->err, row->says[0], row->says[1]);
}

FIXTURE_TEST(topology_reports_read_errors)
{
	static const char *const paths[] = { "nodes/2/gpu_id",	  "nodes/3/properties",
					     "nodes/2/mem_banks", "nodes/2/mem_banks/0/properties",
					     "nodes/0/io_links",  "nodes/3/p2p_links/0/properties" };

	copy_tree("two-mi100");
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		broken = paths[i];
		assert_refused(-EIO, paths[i], "Input/output error");
	}
}

FIXTURE_TEST(topology_refuses_files_that_are_too_long)
{
	char path[128];

	copy_tree("two-mi100");
	snprintf(path, sizeof(path), "%s/nodes/2/properties", dir);
	assert_int_equal(truncate(path, 1 << 20), 0);
	assert_refused(-EFBIG, "nodes/2/properties", "File too large");
}

static void make_nodes(unsigned int n)
{
	run("mkdir -p '%s/nodes' && cd '%s/nodes' && for i in $(seq 0 %u); do mkdir $i; echo $((i + 1)) > $i/gpu_id; "
	    "echo vendor_id 4098 > $i/properties; done; echo 1 > ../generation_id",
	    dir, dir, n - 1);
}

FIXTURE_TEST(topology_reads_as_many_nodes_as_there_can_be)
{
	make_nodes(TOPOLOGY_MAX_NODES);
	read_copy();
	assert_int_equal(topology_count_gpus(topo), TOPOLOGY_MAX_NODES);
	for (unsigned int i = 0; i < TOPOLOGY_MAX_NODES; i++)
		assert_int_equal(topo->nodes[i]->id, i);
}

FIXTURE_TEST(topology_refuses_more_nodes_than_there_can_be)
{
	make_nodes(TOPOLOGY_MAX_NODES + 1);
	assert_refused(-E2BIG, "node 256", "256");
}

/* ---- built by hand, as from an image ---- */

static struct topology_node *add_node(uint32_t id, uint32_t gpu_id, uint32_t cores)
{
	struct topology_node *node;

	if (!topo)
		topo = topology_new();
	assert_non_null(topo);
	assert_int_equal(topology_add_node(topo, id, &node), 0);
	assert_int_equal(topology_node_set(node, TOPOLOGY_GPU_ID, gpu_id), 0);
	assert_int_equal(topology_node_set(node, TOPOLOGY_CPU_CORES_COUNT, cores), 0);
	return node;
}

static void add_link(struct topology_node *node, uint32_t type, uint32_t to)
{
	assert_int_equal(topology_node_add_link(node, &(struct topology_link){ .type = type, .node_to_id = to }), 0);
}

FIXTURE_TEST(topology_keeps_absent_apart_from_zero)
{
	struct topology_node *node = add_node(7, 1, 0);

	assert_true(topology_has(node, TOPOLOGY_CPU_CORES_COUNT));
	assert_false(topology_has(node, TOPOLOGY_NUM_XCC));
	assert_int_equal(topology_get(node, TOPOLOGY_NUM_XCC), 0);
	assert_int_equal(topology_node_set(node, TOPOLOGY_NUM_XCC, 0), 0);
	assert_true(topology_has(node, TOPOLOGY_NUM_XCC));
}

FIXTURE_TEST(topology_refuses_values_that_do_not_fit)
{
	struct topology_node *node = add_node(7, 1, 0);

	assert_int_equal(topology_node_set(node, TOPOLOGY_VRAM_PUBLIC, 2), -ERANGE);
	assert_int_equal(topology_node_set(node, TOPOLOGY_FW_VERSION, 1ULL << 32), -ERANGE);
	assert_int_equal(topology_node_set(node, TOPOLOGY_FW_VERSION, UINT32_MAX), 0);
	assert_int_equal(topology_node_set(node, TOPOLOGY_HIVE_ID, UINT64_MAX), 0);
	assert_false(topology_has(node, TOPOLOGY_VRAM_PUBLIC));
}

FIXTURE_TEST(topology_refuses_a_node_id_twice)
{
	struct topology_node *node;

	add_node(7, 1, 0);
	assert_int_equal(topology_add_node(topo, 7, &node), -EEXIST);
}

FIXTURE_TEST(topology_finds_links_by_node_id_in_any_order)
{
	struct topology_node *gpu;

	gpu = add_node(9, 0x10, 0);
	add_node(4, 0, 8);
	add_link(gpu, TOPOLOGY_LINK_PCIE, 4);
	add_link(gpu, TOPOLOGY_LINK_XGMI, 1000); /* a node that the image does not have */
	add_link(gpu, TOPOLOGY_LINK_XGMI, 9);	 /* itself */
	assert_int_equal(topology_finish(topo), 0);
	assert_int_equal(gpu->nr_links, 1);
	assert_int_equal(gpu->links[0].to, 1);
	assert_int_equal(topology_get(gpu, TOPOLOGY_NUMA_NODE), 4);
}

FIXTURE_TEST(topology_does_not_guess_the_numa_node)
{
	struct topology_node *gpu = add_node(2, 0x10, 0), *none = add_node(3, 0x11, 0);

	add_node(0, 0, 8);
	add_node(1, 0, 8);
	add_link(gpu, TOPOLOGY_LINK_PCIE, 0);
	add_link(gpu, TOPOLOGY_LINK_PCIE, 1);
	assert_int_equal(topology_finish(topo), 0);
	assert_false(topology_has(gpu, TOPOLOGY_NUMA_NODE));
	assert_false(topology_has(none, TOPOLOGY_NUMA_NODE));
}

FIXTURE_TEST(topology_takes_the_lightest_link_for_the_numa_node)
{
	struct topology_node *gpu = add_node(2, 0x10, 0);
	struct topology_link link = { .type = TOPOLOGY_LINK_PCIE, .has_weight = true };

	add_node(0, 0, 8);
	add_node(1, 0, 8);
	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		link.node_to_id = cpu;
		link.weight = cpu ? 20 : 52;
		assert_int_equal(topology_node_add_link(gpu, &link), 0);
	}
	assert_int_equal(topology_finish(topo), 0);
	assert_int_equal(topology_get(gpu, TOPOLOGY_NUMA_NODE), 1);
}

FIXTURE_TEST(topology_accepts_several_nodes_without_gpu_id)
{
	add_node(0, 0, 8);
	add_node(1, 0, 0);
	add_node(2, 0, 0);
	assert_int_equal(topology_finish(topo), 0);
	assert_int_equal(topology_count_gpus(topo), 0);
	assert_int_equal(topology_find_gpu(topo, 0), -ENODEV);
	assert_int_equal(topology_find_minor(topo, 0), -ENODEV);
}

FIXTURE_TEST(topology_bounds_the_links_of_a_node)
{
	struct topology_node *node = add_node(0, 1, 0);
	struct topology_link link = { .type = TOPOLOGY_LINK_XGMI, .node_to_id = 1 };

	for (unsigned int i = 0; i < TOPOLOGY_MAX_LINKS; i++)
		assert_int_equal(topology_node_add_link(node, &link), 0);
	assert_int_equal(topology_node_add_link(node, &link), -E2BIG);
}

/* ---- the tables ---- */

FIXTURE_TEST(topology_values_are_written_for_people)
{
	char text[TOPOLOGY_VALUE_TEXT_MAX];

	topology_value_text(TOPOLOGY_VRAM_SIZE, 64ULL << 30, text, sizeof(text));
	assert_string_equal(text, "64 GiB");
	topology_value_text(TOPOLOGY_VRAM_SIZE, (64ULL << 30) + 1, text, sizeof(text));
	assert_string_equal(text, "68719476737 bytes");
	topology_value_text(TOPOLOGY_VRAM_SIZE, 0, text, sizeof(text));
	assert_string_equal(text, "0 bytes");
	topology_value_text(TOPOLOGY_DEVICE_ID, 0x740c, text, sizeof(text));
	assert_string_equal(text, "0x740c");
	topology_value_text(TOPOLOGY_FW_VERSION, 4294967295U, text, sizeof(text));
	assert_string_equal(text, "4294967295");
	topology_value_text(TOPOLOGY_HIVE_ID, UINT64_MAX, text, sizeof(text));
	assert_string_equal(text, "0xffffffffffffffff");
}

FIXTURE_TEST(topology_table_has_a_name_and_width_for_all)
{
	for (unsigned int i = 0; i < TOPOLOGY_NR_PROPS; i++) {
		const struct topology_prop_info *info = topology_prop_info(i);

		assert_non_null(info->name);
		assert_true(info->bits == 1 || info->bits == 32 || info->bits == 64);
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(info->name, topology_prop_info(j)->name);
	}
}

UNIT_MAIN(NULL, NULL)
