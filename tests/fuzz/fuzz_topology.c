// SPDX-License-Identifier: GPL-2.0-only
/*
 * The KFD's tree in sysfs. Input is text: a line "@PATH" begins a file below the root,
 * the lines after it are its contents.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/machine.h"
#include "fuzz.h"

#define MAX_FILES 64
#define MAX_BYTES 16384
#define MAX_PATH  96

static char root[64];

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	return where->level ? remove(path) : 0;
}

static void empty_root(void)
{
	if (!root[0]) {
		snprintf(root, sizeof(root), "%.40s/fuzz.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
		expect(mkdtemp(root));
		return;
	}
	expect(!nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS));
}

/* Only what stays below the root. */
static bool is_path(const char *path)
{
	return path[0] && path[0] != '/' && !strstr(path, "//") && path[strlen(path) - 1] != '/' &&
	       strspn(path, "abcdefghijklmnopqrstuvwxyz_0123456789/") == strlen(path);
}

/* Whatever cannot be made, such as a file where a directory is, is left out. */
static void make_file(const char *path, const char *text, size_t size)
{
	char full[sizeof(root) + MAX_PATH + 1];
	char *slash;
	int fd;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	expect(write(fd, text, size) == (ssize_t)size);
	close(fd);
}

static void make_tree(char *text)
{
	char *end = text + strlen(text);
	int n;

	for (n = 0; n < MAX_FILES && (text = memchr(text, '@', (size_t)(end - text))); n++) {
		char *path = text + 1, *line = strchr(path, '\n'), *next;

		if (!line)
			return;
		*line++ = '\0';
		next = strstr(line, "\n@");
		text = next ? next + 1 : end;
		if (strlen(path) < MAX_PATH && is_path(path))
			make_file(path, line, (size_t)(text - line));
	}
}

static void check_links(const struct topology *t, const struct topology_node *node)
{
	unsigned int i;

	expect(node->nr_links <= TOPOLOGY_MAX_LINKS);
	for (i = 0; i < node->nr_links; i++) {
		const struct topology_link *link = &node->links[i];

		expect(link->to >= 0 && (unsigned int)link->to < t->nr_nodes);
		expect(t->nodes[link->to]->id == link->node_to_id && t->nodes[link->to] != node);
	}
}

static void check_node(const struct topology *t, unsigned int n)
{
	const struct topology_node *node = t->nodes[n];
	char text[TOPOLOGY_VALUE_TEXT_MAX];
	unsigned int i;

	expect(!n || t->nodes[n - 1]->id < node->id);
	expect(memchr(node->name, '\0', sizeof(node->name)));
	if (topology_is_gpu(node))
		expect(topology_find_gpu(t, topology_gpu_id(node)) == (int)n);
	for (i = 0; i < TOPOLOGY_NR_PROPS; i++) {
		unsigned int bits = topology_prop_info(i)->bits;

		expect(topology_has(node, i) || !topology_get(node, i));
		expect(bits == 64 || !(topology_get(node, i) >> bits));
		topology_value_text(i, topology_get(node, i), text, sizeof(text));
		expect(text[0] && memchr(text, '\0', sizeof(text)));
	}
	check_links(t, node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct topology *t = NULL;
	char text[MAX_BYTES + 1];
	unsigned int i;
	int err;

	if (size > MAX_BYTES)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	empty_root();
	make_tree(text);
	err = sysfs_read_topology(root, &t);
	/* An absent topology is no error line; everything else is one. */
	expect(fuzz_errors() == (err && err != -2));
	expect(!t == (err != 0));
	if (err)
		return 0;
	expect(t->nr_nodes <= TOPOLOGY_MAX_NODES);
	for (i = 0; i < t->nr_nodes; i++)
		check_node(t, i);
	topology_free(t);
	return 0;
}
