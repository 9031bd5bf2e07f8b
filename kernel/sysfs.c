// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reader of the KFD's topology in sysfs, and the only file of the plugin that reads it.
 *
 * It takes the root directory from its caller and calls nothing but libc, the log and the
 * topology structure, so it runs on any copy of such a tree.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <time.h>

#include "kernel/sysfs.h"
#include "amdgpu_plugin_util.h"

/* A sysfs file is one page; the 64 KiB pages of other machines are seen nowhere with KFD. */
#define SYSFS_FILE_MAX 8192

/* Reading takes milliseconds and hot-plug is rare: ten rounds never end in practice. */
#define READ_ATTEMPTS	10
#define READ_RETRY_USEC 2000

/* Values of heap_type in mem_banks */
#define HEAP_FB_PUBLIC	1
#define HEAP_FB_PRIVATE 2

/* One reading of the tree. Errors are kept as text: if the generation moved they do not count. */
struct reader {
	const char *root;
	int root_fd;
	char error[512];
};

__attribute__((format(printf, 3, 4))) static int reader_fail(struct reader *rd, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(rd->error, sizeof(rd->error), fmt, args);
	va_end(args);
	return err;
}

/* Silent: some callers expect some errors. In a stranger's copy of a tree anything may be in a file's place. */
static int read_node_file(const struct reader *rd, const char *path, char text[SYSFS_FILE_MAX])
{
	_cleanup_close_ int fd = openat(rd->root_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : read_text(fd, text, SYSFS_FILE_MAX);
}

/* Decimal digits up to the end of the string or a white space. */
static int parse_number(const char *text, uint64_t *ret)
{
	uint64_t value = 0;
	const char *p = text;

	for (; *p >= '0' && *p <= '9'; p++) {
		if (mul_overflows(value, (uint64_t)10, &value) || add_overflows(value, (uint64_t)(*p - '0'), &value))
			return -ERANGE;
	}
	if (p == text || (*p && !strchr(" \t\r\n", *p)))
		return -EINVAL;
	*ret = value;
	return 0;
}

static int read_number(struct reader *rd, const char *path, uint64_t max, uint64_t *ret)
{
	char text[SYSFS_FILE_MAX];
	uint64_t value;
	int r;

	r = read_node_file(rd, path, text);
	if (r < 0)
		return reader_fail(rd, r, "%s/%s: cannot read: %s", rd->root, path, strerror(-r));
	if (parse_number(text, &value) < 0 || value > max)
		return reader_fail(rd, -EINVAL, "%s/%s: '%.20s' is not a number up to %" PRIu64, rd->root, path, text,
				   max);
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

static struct field *find_field(struct field *fields, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (fields[i].name && !strcmp(fields[i].name, name))
			return &fields[i];
	}
	return NULL;
}

/* A line is "name value"; names that are not asked for and lines without a value are passed over. */
static int parse_field_line(struct reader *rd, const char *path, char *line, struct field *fields, size_t n)
{
	char *value = strpbrk(line, " \t");
	struct field *field;

	if (!value)
		return 0;
	*value++ = '\0';
	value += strspn(value, " \t\r");
	field = find_field(fields, n, line);
	if (!field || !*value)
		return 0;
	if (parse_number(value, &field->value) < 0 || (field->bits < 64 && field->value >> field->bits))
		return reader_fail(rd, -EINVAL, "%s/%s: %s: '%.40s' is not a number of %u bits", rd->root, path, line,
				   value, field->bits);
	field->seen = true;
	return 0;
}

/* The device cgroup hides a device by -EPERM; a security module answers -EACCES. */
static bool hides(int err)
{
	return err == -EPERM || err == -EACCES;
}

/* What is hidden comes back without a message. */
static int read_fields(struct reader *rd, const char *path, struct field *fields, size_t n)
{
	char text[SYSFS_FILE_MAX];
	char *rest = text, *line;
	int r;

	r = read_node_file(rd, path, text);
	if (hides(r))
		return r;
	if (r < 0)
		return reader_fail(rd, r, "%s/%s: cannot read: %s", rd->root, path, strerror(-r));
	while ((line = strsep(&rest, "\n"))) {
		r = parse_field_line(rd, path, line, fields, n);
		if (r < 0)
			return r;
	}
	return 0;
}

static int list_entries(struct reader *rd, const char *path, int **ret, size_t *ret_nr)
{
	int err = list_numbers(rd->root_fd, path, ret, ret_nr);

	return err ? reader_fail(rd, err, "%s/%s: cannot list: %s", rd->root, path, strerror(-err)) : 0;
}

static int read_link(struct reader *rd, const char *path, bool is_p2p, struct topology *t, struct topology_node *node)
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
	int r;

	r = read_fields(rd, path, f, ARRAY_SIZE(f));
	if (hides(r)) {
		t->nr_dropped_links++;
		return 0;
	}
	if (r < 0)
		return r;
	if (!f[TYPE].seen || !f[NODE_TO].seen)
		return reader_fail(rd, -EINVAL, "%s/%s: no type or no node_to", rd->root, path);
	link.type = (uint32_t)f[TYPE].value;
	link.node_to_id = (uint32_t)f[NODE_TO].value;
	link.has_weight = f[WEIGHT].seen;
	link.weight = (uint32_t)f[WEIGHT].value;
	link.has_bandwidth = f[MAX_BANDWIDTH].seen;
	link.min_bandwidth = (uint32_t)f[MIN_BANDWIDTH].value;
	link.max_bandwidth = (uint32_t)f[MAX_BANDWIDTH].value;
	link.has_flags = f[FLAGS].seen;
	link.flags = (uint32_t)f[FLAGS].value;
	r = topology_node_add_link(node, &link);
	return r < 0 ? reader_fail(rd, r, "%s/%s: cannot add the link: %s", rd->root, path, strerror(-r)) : 0;
}

static int read_links(struct reader *rd, const char *kind, struct topology *t, struct topology_node *node)
{
	bool is_p2p = !strcmp(kind, "p2p_links");
	_cleanup_free_ int *numbers = NULL;
	char path[96];
	size_t nr = 0;
	int err;

	snprintf(path, sizeof(path), "nodes/%u/%s", node->id, kind);
	err = list_entries(rd, path, &numbers, &nr);
	if (err == -ENOENT)
		return 0; /* older kernels have no p2p_links */
	for (size_t i = 0; !err && i < nr; i++) {
		snprintf(path, sizeof(path), "nodes/%u/%s/%d/properties", node->id, kind, numbers[i]);
		err = read_link(rd, path, is_p2p, t, node);
	}
	return err;
}

/* An APU may have no frame buffer bank: then it has no VRAM of its own, which is no error. */
static int read_vram(struct reader *rd, struct topology_node *node)
{
	uint64_t public_size = 0, private_size = 0;
	_cleanup_free_ int *numbers = NULL;
	size_t nr = 0;
	char path[96];
	int err;

	snprintf(path, sizeof(path), "nodes/%u/mem_banks", node->id);
	err = list_entries(rd, path, &numbers, &nr);
	if (err && err != -ENOENT)
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

static int read_properties(struct reader *rd, struct topology_node *node)
{
	struct field fields[TOPOLOGY_NR_PROPS] = { 0 };
	char path[64];
	int r;

	for (unsigned int i = 0; i < TOPOLOGY_NR_PROPS; i++) {
		const struct topology_prop_info *info = topology_prop_info(i);

		fields[i].name = info->in_properties ? info->name : NULL;
		fields[i].bits = info->bits;
	}
	snprintf(path, sizeof(path), "nodes/%u/properties", node->id);
	r = read_fields(rd, path, fields, ARRAY_SIZE(fields));
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < TOPOLOGY_NR_PROPS; i++) {
		if (fields[i].seen)
			topology_node_set(node, i, fields[i].value);
	}
	return 0;
}

static void read_name(const struct reader *rd, struct topology_node *node)
{
	char text[SYSFS_FILE_MAX];
	char path[64];

	snprintf(path, sizeof(path), "nodes/%u/name", node->id);
	if (read_node_file(rd, path, text) == 0)
		snprintf(node->name, sizeof(node->name), "%.*s", (int)strcspn(text, "\n"), text);
}

/* What belongs to a node besides its gpu id. */
static int read_parts(struct reader *rd, struct topology *t, struct topology_node *node)
{
	int r = read_properties(rd, node);

	if (r == 0)
		read_name(rd, node);
	if (r == 0 && topology_is_gpu(node))
		r = read_vram(rd, node);
	if (r == 0)
		r = read_links(rd, "io_links", t, node);
	if (r == 0)
		r = read_links(rd, "p2p_links", t, node);
	return r;
}

static int read_node(struct reader *rd, struct topology *t, uint32_t id)
{
	struct topology_node *node;
	uint64_t gpu_id;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "nodes/%u/gpu_id", id);
	r = read_number(rd, path, UINT32_MAX, &gpu_id);
	if (hides(r)) {
		t->nr_hidden++;
		return 0;
	}
	if (r < 0)
		return r;
	r = topology_add_node(t, id, &node);
	if (r < 0)
		return reader_fail(rd, r, "%s: node %u cannot be added (at most %d): %s", rd->root, id,
				   TOPOLOGY_MAX_NODES, strerror(-r));
	topology_node_set(node, TOPOLOGY_GPU_ID, gpu_id);
	r = read_parts(rd, t, node);
	if (hides(r)) {
		topology_remove_last(t);
		t->nr_hidden++;
		return 0;
	}
	return r;
}

static int read_nodes(struct reader *rd, struct topology *t)
{
	_cleanup_free_ int *numbers = NULL;
	size_t nr = 0;
	int err = list_entries(rd, "nodes", &numbers, &nr);

	for (size_t i = 0; !err && i < nr; i++)
		err = read_node(rd, t, (uint32_t)numbers[i]);
	return err;
}

/*
 * The driver puts the number of a partition into the function bits of location_id. Where all nodes are seen, a node
 * that is alone in its slot is a device in one piece, whatever function a virtual machine gave it.
 */
static void derive_partitions(struct topology *t)
{
	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		struct topology_node *node = t->nodes[i];
		bool alone = !t->nr_hidden;

		if (!topology_may_be_partition(node))
			continue;
		for (unsigned int j = 0; alone && j < t->nr_nodes; j++)
			alone = i == j || !topology_same_device(node, t->nodes[j]);
		topology_node_set(node, TOPOLOGY_SDMA_PARTITION, alone ? 0 : topology_get(node, TOPOLOGY_LOCATION_ID) & 7);
	}
}

/* Did the machine change since? When that cannot be told: no. */
static bool generation_moved(const struct reader *rd, uint64_t before)
{
	char text[SYSFS_FILE_MAX];
	uint64_t now;

	return read_node_file(rd, "generation_id", text) == 0 && parse_number(text, &now) == 0 && now != before;
}

/* Returns -EAGAIN when the generation moved while it was reading, whatever else went wrong. */
static int read_attempt(struct reader *rd, struct topology **ret)
{
	_cleanup_topology_ struct topology *t = topology_new();
	uint64_t generation;
	int r;

	if (!t)
		return reader_fail(rd, -ENOMEM, "%s: out of memory", rd->root);
	r = read_number(rd, "generation_id", UINT32_MAX, &generation);
	if (r < 0)
		return r;
	r = read_nodes(rd, t);
	if (generation_moved(rd, generation))
		return reader_fail(rd, -EAGAIN, "%s: generation_id kept changing during %d readings", rd->root,
				   READ_ATTEMPTS);
	if (r < 0)
		return r;
	derive_partitions(t);
	t->generation = (uint32_t)generation;
	*ret = steal_ptr(t);
	return 0;
}

int sysfs_read_topology(const char *root, struct topology **ret)
{
	const struct timespec pause = { .tv_nsec = READ_RETRY_USEC * 1000L };
	_cleanup_topology_ struct topology *t = NULL;
	_cleanup_close_ int root_fd = -1;
	struct reader rd = { .root = root };
	int r;

	root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return -ENOENT;
	if (root_fd < 0) {
		r = -errno;
		pr_err("%s: cannot open: %s", root, strerror(-r));
		return r;
	}
	if (faccessat(root_fd, "generation_id", F_OK, 0) < 0 && errno == ENOENT)
		return -ENOENT;
	rd.root_fd = root_fd;
	for (int i = 0; i < READ_ATTEMPTS; i++) {
		if (i > 0)
			nanosleep(&pause, NULL);
		r = read_attempt(&rd, &t);
		if (r != -EAGAIN)
			break;
	}
	if (r < 0) {
		/* -ENOENT means "no KFD" to the caller; here a part of one is missing. */
		pr_err("%s", rd.error);
		return r == -ENOENT ? -EIO : r;
	}
	r = topology_finish(t);
	if (r < 0)
		return r;
	*ret = steal_ptr(t);
	return 0;
}

/* -EPERM at reading is how the device cgroup hides a node; a security module answers -EACCES. */
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
