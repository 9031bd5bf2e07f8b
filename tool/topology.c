// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies of the KFD's tree in sysfs: a tar archive with what kernel/sysfs.c reads and nothing else. The reader takes
 * only that: a name that is not of the tree, or more or larger files than there can be, is refused. It unpacks them
 * into a directory of its own for as long as they are read.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "kernel/kernel.h"
#include "tool/commands.h"
#include "tool/topology.h"

#define TREE	   "topology/" /* before each name in the archive */
#define BLOCK	   512u
#define FILE_MAX   8192u
#define MAX_FILES  (TOPOLOGY_MAX_NODES * (TOPOLOGY_MAX_LINKS + 16u))
#define PATH_BYTES 100u /* of a header */

/* A header of POSIX' ustar format, as far as it is used. */
struct header {
	char name[PATH_BYTES], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6],
		version[2], rest[247];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

static unsigned int header_sum(const struct header *header)
{
	const unsigned char *bytes = (const unsigned char *)header;
	unsigned int sum = 0;

	/* The sum itself counts as blanks. */
	for (size_t i = 0; i < sizeof(*header); i++)
		sum += i >= offsetof(struct header, checksum) && i < offsetof(struct header, type) ? ' ' : bytes[i];
	return sum;
}

/* ---- which files ---- */

/* The next component of a name: a number ("N") or one of the words. Moves *name behind it and the slash. */
static bool component(const char **name, const char *const *words, const char **ret)
{
	size_t len = strcspn(*name, "/");

	for (; *words; words++) {
		bool number = !strcmp(*words, "N") && len && len < 10 && strspn(*name, "0123456789") == len;

		if (!number && (strlen(*words) != len || strncmp(*name, *words, len)))
			continue;
		*name += len + ((*name)[len] == '/');
		*ret = *words;
		return true;
	}
	return false;
}

/* Whether a file of the tree is one that is copied. */
static bool is_wanted(const char *name)
{
	static const char *const top[] = { "generation_id", "nodes", NULL };
	static const char *const number[] = { "N", NULL };
	static const char *const node[] = { "gpu_id",	 "name",      "properties", "mem_banks",
					    "io_links", "p2p_links", NULL };
	static const char *const leaf[] = { "properties", NULL };
	const char *word;

	if (!component(&name, top, &word))
		return false;
	if (!strcmp(word, "generation_id"))
		return !*name;
	if (!component(&name, number, &word) || !component(&name, node, &word))
		return false;
	if (!strchr(word, '_') || !strcmp(word, "gpu_id"))
		return !*name;
	return component(&name, number, &word) && component(&name, leaf, &word) && !*name;
}

/* ---- writing ---- */

static int write_member(const char *name, const char *text, size_t size)
{
	static const char zeros[BLOCK];
	struct header header = { .type = '0', .magic = "ustar", .version = { '0', '0' } };

	snprintf(header.name, sizeof(header.name), TREE "%s", name);
	snprintf(header.mode, sizeof(header.mode), "%07o", 0644u);
	snprintf(header.uid, sizeof(header.uid), "%07o", 0u);
	snprintf(header.gid, sizeof(header.gid), "%07o", 0u);
	snprintf(header.size, sizeof(header.size), "%011zo", size);
	snprintf(header.mtime, sizeof(header.mtime), "%011o", 0u);
	snprintf(header.checksum, sizeof(header.checksum), "%06o", header_sum(&header));
	header.checksum[7] = ' ';
	fwrite(&header, sizeof(header), 1, stdout);
	fwrite(text, 1, size, stdout);
	fwrite(zeros, 1, (BLOCK - size % BLOCK) % BLOCK, stdout);
	return ferror(stdout) ? -EIO : 0;
}

/* 1: it is hidden from the caller. */
static int copy_file(int root, const char *root_path, const char *name)
{
	_cleanup_close_ int fd = openat(root, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char text[FILE_MAX];
	int err = fd < 0 ? -errno : read_text(fd, text, sizeof(text));

	if (err == -EPERM || err == -EACCES)
		return 1;
	if (err) {
		complain("%s/%s: %s", root_path, name, strerror(-err));
		return err;
	}
	return write_member(name, text, strlen(text));
}

static int copy_numbered(int root, const char *root_path, const char *list)
{
	_cleanup_free_ int *numbers = NULL;
	char name[2 * PATH_BYTES];
	size_t nr = 0;
	int err = list_numbers(root, list, &numbers, &nr);

	if (err == -ENOENT)
		return 0;
	for (size_t i = 0; !err && i < nr; i++) {
		snprintf(name, sizeof(name), "%s/%d/properties", list, numbers[i]);
		err = copy_file(root, root_path, name);
		err = err > 0 ? 0 : err; /* the link leads to a hidden node */
	}
	return err;
}

static int copy_node(int root, const char *root_path, int node)
{
	static const char *const files[] = { "gpu_id", "name", "properties" };
	static const char *const lists[] = { "mem_banks", "io_links", "p2p_links" };
	char name[PATH_BYTES];
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(files); i++) {
		snprintf(name, sizeof(name), "nodes/%d/%s", node, files[i]);
		if (!faccessat(root, name, F_OK, 0))
			err = copy_file(root, root_path, name);
		if (err > 0) {
			complain("node %d is hidden from you: it is left out", node);
			return 0;
		}
	}
	for (size_t i = 0; !err && i < ARRAY_SIZE(lists); i++) {
		snprintf(name, sizeof(name), "nodes/%d/%s", node, lists[i]);
		err = copy_numbered(root, root_path, name);
	}
	return err;
}

static int copy_tree(const char *path)
{
	_cleanup_close_ int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	static const char end[2 * BLOCK];
	_cleanup_free_ int *nodes = NULL;
	size_t nr = 0;
	int err = root < 0 ? -errno : list_numbers(root, "nodes", &nodes, &nr);

	if (err) {
		complain("%s: %s", path, err == -ENOENT ? "there is no topology of a KFD" : strerror(-err));
		return err;
	}
	err = copy_file(root, path, "generation_id") ? -EIO : 0;
	for (size_t i = 0; !err && i < nr; i++)
		err = copy_node(root, path, nodes[i]);
	if (!err)
		fwrite(end, sizeof(end), 1, stdout);
	return err;
}

int command_topology(const struct arguments *arguments)
{
	const char *path = arguments->machine ? arguments->machine : SYSFS_TOPOLOGY_ROOT;
	struct topology *topology;

	if (isatty(STDOUT_FILENO))
		return complain("topology writes a tar archive: amdgpu-image topology > FILE");
	/* A tree that nobody could read is not worth a copy. */
	if (topology_open(path, &topology))
		return TOOL_FAIL;
	topology_free(topology);
	return copy_tree(path) ? TOOL_FAIL : TOOL_GOOD;
}

/* ---- reading ---- */

/* An octal number; the field may end in a blank or NUL. */
static int parse_octal(const char *text, size_t size, uint64_t *ret)
{
	size_t i = 0;

	for (*ret = 0; i < size && text[i] >= '0' && text[i] <= '7'; i++)
		*ret = *ret * 8 + (uint64_t)(text[i] - '0');
	return i && (i == size || text[i] == ' ' || !text[i]) ? 0 : -EBADMSG;
}

static int make_directories(int dir, const char *name)
{
	char path[PATH_BYTES];

	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(path, sizeof(path), "%.*s", (int)(slash - name), name);
		if (mkdirat(dir, path, 0700) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int unpack_file(int dir, const char *name, const char *text, size_t size)
{
	_cleanup_close_ int fd = -1;
	int err = make_directories(dir, name);

	if (err)
		return err;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : write_all(fd, text, size);
}

/* The name below the tree, NULL when "topology" writes no such file. */
static const char *name_in_tree(const struct header *header)
{
	const char *name = header->name;

	if (!memchr(header->name, '\0', sizeof(header->name)) || strncmp(name, TREE, strlen(TREE)))
		return NULL;
	name += strlen(TREE);
	return (header->type == '0' || !header->type) && is_wanted(name) ? name : NULL;
}

/* 1: a member; 0: the end. */
static int unpack_member(int fd, int dir)
{
	struct header header;
	char text[FILE_MAX];
	const char *name;
	uint64_t size, sum;
	int err = read_all(fd, &header, sizeof(header));

	if (err)
		return err == -ENODATA ? -EBADMSG : err;
	if (!header.name[0])
		return 0;
	name = name_in_tree(&header);
	if (!name || parse_octal(header.size, sizeof(header.size), &size) || size >= sizeof(text) ||
	    parse_octal(header.checksum, sizeof(header.checksum), &sum) || sum != header_sum(&header))
		return -EBADMSG;
	err = read_all(fd, text, round_up(size, BLOCK));
	if (!err)
		err = unpack_file(dir, name, text, size);
	return err ? err : 1;
}

static int unpack(int fd, int dir)
{
	int r = 1;

	for (unsigned int i = 0; r > 0 && i < MAX_FILES; i++)
		r = unpack_member(fd, dir);
	return r > 0 ? -EBADMSG : r;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static int read_copy(const char *path, int fd, struct topology **ret)
{
	const char *tmp = getenv("TMPDIR");
	_cleanup_close_ int dir = -1;
	_cleanup_free_ char *scratch = NULL;
	int err;

	if (asprintf(&scratch, "%s/amdgpu-image.XXXXXX", tmp && tmp[0] ? tmp : "/tmp") < 0) {
		scratch = NULL;
		return -ENOMEM;
	}
	if (!mkdtemp(scratch)) {
		err = -errno;
		complain("%s: %s", scratch, strerror(-err));
		return err;
	}
	dir = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = dir < 0 ? -errno : unpack(fd, dir);
	if (err)
		complain("%s: is no topology that amdgpu-image wrote: %s", path, strerror(-err));
	if (!err) {
		err = sysfs_read_topology(scratch, ret);
		if (err == -ENOENT)
			complain("%s: there is no topology of a KFD in it", path);
	}
	nftw(scratch, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	return err;
}

int topology_open(const char *path, struct topology **ret)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int err;

	fd = open(path ? path : SYSFS_TOPOLOGY_ROOT, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 && !path && errno == ENOENT) {
		complain("%s is not there: this machine has no GPU to restore on (--machine asks about another)",
			 SYSFS_TOPOLOGY_ROOT);
		return -ENOENT;
	}
	if (fd < 0 || fstat(fd, &st)) {
		err = -errno;
		complain("%s: %s", path ? path : SYSFS_TOPOLOGY_ROOT, strerror(-err));
		return err;
	}
	if (!S_ISDIR(st.st_mode))
		return read_copy(path, fd, ret);
	err = sysfs_read_topology(path ? path : SYSFS_TOPOLOGY_ROOT, ret);
	if (err == -ENOENT)
		complain("%s: there is no topology of a KFD in it", path ? path : SYSFS_TOPOLOGY_ROOT);
	return err;
}
