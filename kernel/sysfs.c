// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reader of the KFD's topology in sysfs; groups of the IOMMU.
 *
 * It takes the root directory from its caller and calls nothing but libc, the log and the
 * topology structure, so it runs on any copy of such a tree.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <time.h>

#include "kernel/machine.h"
#include "amdgpu_plugin_util.h"

/* A sysfs file is one page; the 64 KiB pages of other machines are seen nowhere with KFD. */
#define SYSFS_FILE_MAX 8192

/* Reading takes milliseconds and hot-plug is rare: ten rounds never end in practice. */
#define READ_ATTEMPTS	10
#define READ_RETRY_USEC 2000

/* Values of heap_type in mem_banks */
#define HEAP_FB_PUBLIC	1
#define HEAP_FB_PRIVATE 2

/* One reading of the tree. If the generation moved meanwhile, errors do not count. */
struct reader {
	const char *root;
	int root_fd;
};

/* No message: some callers expect some errors. In a copied tree anything may be in a file's place. */
static int read_node_file(const struct reader *rd, const char *path, char text[SYSFS_FILE_MAX])
{
	_cleanup_close_ int fd = openat(rd->root_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : read_text(fd, text, SYSFS_FILE_MAX);
}

/* Decimal digits up to the end of the string or a white space. */
static int parse_decimal(const char *text, uint64_t *ret)
{
	const char *end;
	int err = parse_digits(text, 10, UINT64_MAX, &end, ret);

	if (err)
		return err;
	return *end && !strchr(" \t\r\n", *end) ? -EINVAL : 0;
}

/* The device cgroup hides a device by -EPERM; a security module answers -EACCES. */
static bool hides(int err)
{
	return err == -EPERM || err == -EACCES;
}

/* No message for what is hidden. */
static int read_needed_file(const struct reader *rd, const char *path, char text[SYSFS_FILE_MAX])
{
	int err = read_node_file(rd, path, text);

	return err && !hides(err) ? fail(err, "%s/%s: cannot read: %m", rd->root, path) : err;
}

static int read_number(const struct reader *rd, const char *path, uint64_t max, uint64_t *ret)
{
	char text[SYSFS_FILE_MAX];
	uint64_t value;
	int err = read_needed_file(rd, path, text);

	if (err)
		return err;
	if (parse_decimal(text, &value) < 0 || value > max)
		return fail(-EINVAL, "%s/%s: '%.20s' is not a number up to %" PRIu64, rd->root, path, text, max);
	*ret = value;
	return 0;
}

/* What to look for in a "properties" file. */
struct field {
	const char *name;
	unsigned int bits;
	uint64_t value;
	bool seen;
};

/* A line is "name value"; names that are not asked for and lines without a value are passed over. */
static int read_fields(const struct reader *rd, const char *path, struct field *fields, size_t n)
{
	char text[SYSFS_FILE_MAX];
	char *rest = text, *line;
	int err = read_needed_file(rd, path, text);

	while (!err && (line = strsep(&rest, "\n"))) {
		char *value = strpbrk(line, " \t");
		struct field *field = NULL;

		if (!value)
			continue;
		*value++ = '\0';
		value += strspn(value, " \t\r");
		for (size_t i = 0; i < n && !field; i++)
			field = fields[i].name && !strcmp(fields[i].name, line) ? &fields[i] : NULL;
		if (!field || !*value)
			continue;
		if (parse_decimal(value, &field->value) < 0 || (field->bits < 64 && field->value >> field->bits))
			return fail(-EINVAL, "%s/%s: %s: '%.40s' is not a number of %u bits", rd->root, path, line, value,
				    field->bits);
		field->seen = true;
	}
	return err;
}

/* *ret_nr is 0 where there is no such directory. */
static int list_entries(const struct reader *rd, const char *path, int **ret, size_t *ret_nr)
{
	int err = list_numbers(rd->root_fd, path, ret, ret_nr);

	return err && err != -ENOENT ? fail(err, "%s/%s: cannot list: %m", rd->root, path) : 0;
}

static int read_link(const struct reader *rd, const char *path, bool is_p2p, struct topology_node *node)
{
	enum { TYPE, NODE_TO, WEIGHT, MIN_BANDWIDTH, MAX_BANDWIDTH, FLAGS };
	struct field f[] = {
		[TYPE] = { .name = "type", .bits = 32 },
		[NODE_TO] = { .name = "node_to", .bits = 32 },
		[WEIGHT] = { .name = "weight", .bits = 32 },
		[MIN_BANDWIDTH] = { .name = "min_bandwidth", .bits = 32 },
		[MAX_BANDWIDTH] = { .name = "max_bandwidth", .bits = 32 },
		[FLAGS] = { .name = "flags", .bits = 32 },
	};
	struct topology_link link = { .is_p2p = is_p2p };
	int err = read_fields(rd, path, f, ARRAY_SIZE(f));

	if (err)
		return hides(err) ? 0 : err;
	if (!f[TYPE].seen || !f[NODE_TO].seen)
		return fail(-EINVAL, "%s/%s: no type or no node_to", rd->root, path);
	link.type = (uint32_t)f[TYPE].value;
	link.node_to_id = (uint32_t)f[NODE_TO].value;
	link.has_weight = f[WEIGHT].seen;
	link.weight = (uint32_t)f[WEIGHT].value;
	link.has_bandwidth = f[MAX_BANDWIDTH].seen;
	link.min_bandwidth = (uint32_t)f[MIN_BANDWIDTH].value;
	link.max_bandwidth = (uint32_t)f[MAX_BANDWIDTH].value;
	link.has_flags = f[FLAGS].seen;
	link.flags = (uint32_t)f[FLAGS].value;
	err = topology_node_add_link(node, &link);
	return err ? fail(err, "%s/%s: cannot add the link: %m", rd->root, path) : 0;
}

/* Older kernels have no p2p_links. */
static int read_links(const struct reader *rd, const char *kind, struct topology_node *node)
{
	bool is_p2p = !strcmp(kind, "p2p_links");
	_cleanup_free_ int *numbers = NULL;
	char path[96];
	size_t nr = 0;
	int err;

	snprintf(path, sizeof(path), "nodes/%u/%s", node->id, kind);
	err = list_entries(rd, path, &numbers, &nr);
	if (err)
		return err;
	for (size_t i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), "nodes/%u/%s/%d/properties", node->id, kind, numbers[i]);
		err = read_link(rd, path, is_p2p, node);
		if (err)
			return err;
	}
	return 0;
}

/* An APU may have no frame buffer bank: then it has no VRAM of its own, which is no error. */
static int read_vram(const struct reader *rd, struct topology_node *node)
{
	uint64_t public_size = 0, private_size = 0;
	_cleanup_free_ int *numbers = NULL;
	size_t nr = 0;
	char path[96];
	int err;

	snprintf(path, sizeof(path), "nodes/%u/mem_banks", node->id);
	err = list_entries(rd, path, &numbers, &nr);
	if (err)
		return err;
	for (size_t i = 0; i < nr; i++) {
		struct field f[] = { { .name = "heap_type", .bits = 32 }, { .name = "size_in_bytes", .bits = 64 } };

		snprintf(path, sizeof(path), "nodes/%u/mem_banks/%d/properties", node->id, numbers[i]);
		err = read_fields(rd, path, f, ARRAY_SIZE(f));
		if (err)
			return err;
		if (f[0].value == HEAP_FB_PUBLIC)
			public_size += f[1].value;
		else if (f[0].value == HEAP_FB_PRIVATE)
			private_size += f[1].value;
	}
	topology_node_set(node, TOPOLOGY_VRAM_SIZE, public_size + private_size);
	topology_node_set(node, TOPOLOGY_VRAM_PUBLIC, public_size && !private_size);
	return 0;
}

/* What belongs to a node besides its gpu id. */
static int read_parts(const struct reader *rd, struct topology_node *node)
{
	struct field fields[TOPOLOGY_NR_PROPS] = { 0 };
	char text[SYSFS_FILE_MAX], path[64];
	int err;

	for (unsigned int i = 0; i < TOPOLOGY_NR_PROPS; i++) {
		const struct topology_prop_info *info = topology_prop_info(i);

		fields[i].name = info->in_properties ? info->name : NULL;
		fields[i].bits = info->bits;
	}
	snprintf(path, sizeof(path), "nodes/%u/properties", node->id);
	err = read_fields(rd, path, fields, ARRAY_SIZE(fields));
	if (err)
		return err;
	for (unsigned int i = 0; i < TOPOLOGY_NR_PROPS; i++)
		if (fields[i].seen)
			topology_node_set(node, i, fields[i].value);
	snprintf(path, sizeof(path), "nodes/%u/name", node->id);
	if (!read_node_file(rd, path, text))
		snprintf(node->name, sizeof(node->name), "%.*s", (int)strcspn(text, "\n"), text);
	err = topology_is_gpu(node) ? read_vram(rd, node) : 0;
	if (!err)
		err = read_links(rd, "io_links", node);
	return err ? err : read_links(rd, "p2p_links", node);
}

static int read_node(const struct reader *rd, struct topology *t, uint32_t id)
{
	struct topology_node *node;
	uint64_t gpu_id;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "nodes/%u/gpu_id", id);
	err = read_number(rd, path, UINT32_MAX, &gpu_id);
	if (hides(err)) {
		t->nr_hidden++;
		return 0;
	}
	if (err)
		return err;
	err = topology_add_node(t, id, &node);
	if (err)
		return fail(err, "%s: node %u cannot be added (at most %d): %m", rd->root, id, TOPOLOGY_MAX_NODES);
	topology_node_set(node, TOPOLOGY_GPU_ID, gpu_id);
	err = read_parts(rd, node);
	if (!hides(err))
		return err;
	fail_clear();
	topology_remove_last(t);
	t->nr_hidden++;
	return 0;
}

/* Returns -EAGAIN when the generation moved while it was reading, whatever else went wrong. */
static int read_attempt(const struct reader *rd, struct topology **ret)
{
	_cleanup_topology_ struct topology *t = topology_new();
	_cleanup_free_ int *numbers = NULL;
	char text[SYSFS_FILE_MAX];
	uint64_t generation, now;
	size_t nr = 0;
	int err;

	if (!t)
		return -ENOMEM;
	err = read_number(rd, "generation_id", UINT32_MAX, &generation);
	if (hides(err))
		return fail(err, "%s/generation_id: cannot read: %m", rd->root);
	if (err)
		return err;
	err = list_numbers(rd->root_fd, "nodes", &numbers, &nr);
	if (err)
		err = fail(err, "%s/nodes: cannot list: %m", rd->root);
	for (size_t i = 0; !err && i < nr; i++)
		err = read_node(rd, t, (uint32_t)numbers[i]);
	/* Whether the machine has changed since; when that cannot be told, it has not. */
	if (!read_node_file(rd, "generation_id", text) && !parse_decimal(text, &now) && now != generation) {
		fail_clear();
		return -EAGAIN;
	}
	if (err)
		return err;
	/*
	 * The driver puts the number of a partition into the function bits of location_id. Where all nodes are seen, a node
	 * that is alone in its slot is a device in one piece, whatever function a virtual machine gave it.
	 */
	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		struct topology_node *node = t->nodes[i];
		bool alone = !t->nr_hidden && !topology_shares_device(t, node);

		if (topology_may_be_partition(node))
			topology_node_set(node, TOPOLOGY_SDMA_PARTITION,
					  alone ? 0 : topology_get(node, TOPOLOGY_LOCATION_ID) & 7);
	}
	*ret = steal_ptr(t);
	return 0;
}

int sysfs_read_topology(const char *root, struct topology **ret)
{
	const struct timespec pause = { .tv_nsec = READ_RETRY_USEC * 1000L };
	_cleanup_topology_ struct topology *t = NULL;
	_cleanup_close_ int root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct reader rd = { .root = root, .root_fd = root_fd };
	int err;

	if (root_fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return -ENOENT;
	if (root_fd < 0)
		return fail(-errno, "%s: cannot open: %m", root);
	if (faccessat(root_fd, "generation_id", F_OK, 0) < 0 && errno == ENOENT)
		return -ENOENT;
	err = read_attempt(&rd, &t);
	for (int i = 1; err == -EAGAIN && i < READ_ATTEMPTS; i++) {
		nanosleep(&pause, NULL);
		err = read_attempt(&rd, &t);
	}
	if (err == -EAGAIN)
		return fail(err, "%s: generation_id kept changing during %d readings: try again when its GPUs are settled",
			    root, READ_ATTEMPTS);
	/* -ENOENT means "no KFD" to the caller; here a part of one is missing. */
	if (err)
		return err == -ENOENT ? -EIO : err;
	err = topology_finish(t);
	if (err)
		return err;
	*ret = steal_ptr(t);
	return 0;
}

bool sysfs_node_is_hidden(int sysfs, uint32_t node, bool otherwise)
{
	_cleanup_close_ int fd = -1;
	char path[64], c;

	snprintf(path, sizeof(path), "class/kfd/kfd/topology/nodes/%u/gpu_id", node);
	fd = openat(sysfs, path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? read(fd, &c, 1) < 0 && errno == EPERM : otherwise;
}

void sysfs_pci_path(const struct topology_node *node, char *path)
{
	unsigned int location = (unsigned int)topology_get(node, TOPOLOGY_LOCATION_ID) & 0xffff;
	bool is_partition = topology_get(node, TOPOLOGY_SDMA_PARTITION) != 0;

	snprintf(path, SYSFS_PCI_PATH_MAX, "bus/pci/devices/%04x:%02x:%02x.%x",
		 (unsigned int)topology_get(node, TOPOLOGY_DOMAIN), location >> 8, location >> 3 & 0x1f,
		 is_partition ? 0 : location & 7);
}

void iommu_read_group(int sysfs, const struct topology_node *node, struct iommu_group *ret)
{
	char device[SYSFS_PCI_PATH_MAX], path[128], link[256] = "", type[32] = "";
	_cleanup_close_ int fd = -1;

	*ret = (struct iommu_group){ 0 };
	sysfs_pci_path(node, device);
	snprintf(path, sizeof(path), "%s/iommu_group", device);
	if (readlinkat(sysfs, path, link, sizeof(link) - 1) < 0 || !strrchr(link, '/'))
		return;
	snprintf(ret->number, sizeof(ret->number), "%s", strrchr(link, '/') + 1);
	snprintf(path, sizeof(path), "%s/iommu_group/type", device);
	fd = openat(sysfs, path, O_RDONLY | O_CLOEXEC);
	/* "unknown": the group has no addresses of its own. */
	ret->translates = fd >= 0 && !read_text(fd, type, sizeof(type)) && strncmp(type, "identity", 8) &&
			  strncmp(type, "unknown", 7);
}

bool iommu_is_common(const struct iommu_group *a, const struct iommu_group *b)
{
	return (!a->translates && !b->translates) || !strcmp(a->number, b->number);
}
