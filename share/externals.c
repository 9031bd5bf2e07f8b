// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that are not dumped: which buffers they have. Nothing is asked of them, of their files, or of file systems,
 * which may be remote and never answer.
 *
 * /proc tells their open dma-bufs, and debugfs the handles in each open file of a render node, and the buffers in its
 * address space, among them BOs of the KFD. What debugfs does not tell, any process may have that the KFD's sysfs shows on
 * the GPU. They run meanwhile: what is gone when it is looked at is passed over.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>

#include "amdgpu_plugin_util.h"
#include "share/survey.h"

#define DRI	      "/sys/kernel/debug/dri"

struct external {
	uint64_t inode; /* of a dma-buf that it has, by whatever name */
	pid_t pid;
};

struct externals {
	struct external *list; /* sorted by inode, when all are there */
	size_t nr;
	int *kfd_pids; /* processes of the KFD */
	size_t nr_kfd_pids;
	pid_t hidden;	   /* a process whose files cannot be looked at; 0: none */
	bool knows_pids;   /* sysfs and debugfs have the pids of /proc */
	bool tells_handles; /* debugfs does */
	bool tells_bos;	    /* likewise, of the KFD's BOs */
};

static bool is_in_dump(const struct survey *survey, pid_t pid)
{
	const struct task_files *files = survey->request->files;

	return numbers_have(files->pids, files->nr_pids, pid) || pid == getpid();
}

/* ---- open dma-bufs ---- */

static bool is_gone(int err)
{
	return err == -ESRCH || err == -ENOENT;
}

/* @path: what /proc says of an open file. A dma-buf has the line "exp_name:". Its inode stands before. */
static int add_if_dmabuf(struct externals *externals, pid_t pid, const char *link_path, const char *path)
{
	static const char name[] = "/dmabuf:";
	_cleanup_close_ int fd = -1;
	char link[sizeof(name)], text[1024];
	const char *inode;
	ssize_t len = readlink(link_path, link, sizeof(link));

	/* The link asks nothing; to describe other files may take their drivers long. */
	if (len < 0)
		return -errno;
	if (len < (ssize_t)strlen(name) || memcmp(link, name, strlen(name)))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? fd : read(fd, text, sizeof(text) - 1);
	if (len < 0)
		return -errno;
	text[len] = '\0';
	inode = strstr(text, "\nexp_name:") ? strstr(text, "\nino:") : NULL;
	if (!inode)
		return 0;
	return array_add(externals->list, externals->nr,
			 (struct external){ strtoull(inode + strlen("\nino:"), NULL, 10), pid });
}

/* Threads mostly have their files in common. Where the first one has ended, another one has them. */
static int add_external(struct externals *externals, pid_t pid)
{
	_cleanup_free_ int *tids = NULL;
	pid_t known = 0; /* a thread whose files were looked at */
	char link[80], path[80];
	size_t nr = 0;
	int err = proc_list(pid, "task", &tids, &nr);

	for (size_t i = 0; !err && i < nr; i++) {
		_cleanup_free_ int *fds = NULL;
		size_t nr_files = 0;

		if (known && !syscall(SYS_kcmp, known, tids[i], KCMP_FILES, 0, 0))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%d/fd", pid, tids[i]);
		err = list_numbers(AT_FDCWD, path, &fds, &nr_files);
		for (size_t k = 0; !err && k < nr_files; k++) {
			snprintf(link, sizeof(link), "/proc/%d/task/%d/fd/%d", pid, tids[i], fds[k]);
			snprintf(path, sizeof(path), "/proc/%d/task/%d/fdinfo/%d", pid, tids[i], fds[k]);
			err = add_if_dmabuf(externals, pid, link, path);
			err = is_gone(err) ? 0 : err;
		}
		err = is_gone(err) ? 0 : err;
		known = !known && nr_files ? tids[i] : known;
	}
	return err;
}

/* ---- handles, and BOs of the KFD ---- */

/* The open files of a GPU's nodes, by who used each last: a pid; 0: of the dump. */
struct clients {
	int *pids;
	size_t nr;
};

static FILE *open_text(int dir, const char *gpu, const char *name)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", gpu, name);
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? NULL : fdopen(fd, "r");
}

/* "... exported as ino:5 ..." or "... imported from ino:5 ..." is a buffer that has a dma-buf. 0: another line. */
static uint64_t inode_in(const char *line)
{
	const char *inode = strstr(line, " ino:");

	return inode ? strtoull(inode + strlen(" ino:"), NULL, 10) : 0;
}

/* "pid        7 command NAME:" begins an open file. A name may have a line feed, but no room for such a line. */
static bool begins_client(const char *line)
{
	return strlen(line) > 21 && !strncmp(line, "pid ", 4) && !strncmp(line + 12, " command ", 9);
}

static int read_handles(const struct survey *survey, struct externals *externals, FILE *f, struct clients *clients)
{
	char line[512];
	int err = f ? 0 : -errno;

	while (!err && fgets(line, sizeof(line), f)) {
		pid_t pid = begins_client(line) ? atoi(line + 4) : 0;
		uint64_t inode = inode_in(line);

		if (begins_client(line))
			err = array_add(clients->pids, clients->nr, is_in_dump(survey, pid) ? 0 : pid);
		else if (inode && clients->nr && clients->pids[clients->nr - 1])
			err = array_add(externals->list, externals->nr, (struct external){ inode, clients->pids[clients->nr - 1] });
	}
	return err ? err : ferror(f) ? -EIO : 0;
}

/* "pid:7\tProcess:NAME ..." begins an address space. They are in the same order, and may be named by a thread that has ended. */
static int read_spaces(struct externals *externals, FILE *f, const struct clients *clients)
{
	size_t nr = 0;
	char line[512];
	int err = f ? 0 : -errno;

	while (!err && fgets(line, sizeof(line), f)) {
		uint64_t inode = inode_in(line);

		if (!strncmp(line, "pid:", 4) && strstr(line, "\tProcess:"))
			nr++;
		else if (inode && (!nr || nr > clients->nr))
			err = -EAGAIN;
		else if (inode && clients->pids[nr - 1])
			err = array_add(externals->list, externals->nr, (struct external){ inode, clients->pids[nr - 1] });
	}
	return err ? err : ferror(f) ? -EIO : nr == clients->nr ? 0 : -EAGAIN;
}

/* The files that are open have to be the same before and after, to know the address spaces by their place. */
static int read_gpu(const struct survey *survey, struct externals *externals, int dir, const char *gpu)
{
	_cleanup_fclose_ FILE *handles = open_text(dir, gpu, "amdgpu_gem_info"), *spaces = NULL, *again = NULL;
	struct clients clients = { 0 }, after = { 0 };
	int err = read_handles(survey, externals, handles, &clients);

	if (!err && externals->tells_bos && clients.nr) {
		spaces = open_text(dir, gpu, "amdgpu_vm_info");
		externals->tells_bos = !read_spaces(externals, spaces, &clients);
		again = externals->tells_bos ? open_text(dir, gpu, "amdgpu_gem_info") : NULL;
		if (externals->tells_bos)
			externals->tells_bos = !read_handles(survey, externals, again, &after) && after.nr == clients.nr &&
					       !memcmp(after.pids, clients.pids, after.nr * sizeof(*after.pids));
	}
	free(clients.pids);
	free(after.pids);
	return err;
}

/*
 * Whether a dma-buf is imported anywhere. Kernels (6.12, 7.2) follow a NULL pointer when they are asked for an address
 * space with an import by the KFD.
 */
static bool has_imports(int dir)
{
	_cleanup_fclose_ FILE *f = open_text(dir, "..", "dma_buf/bufinfo");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, " devices attached") && strncmp(line, "Total 0 ", 8))
			return true;
	return !f || ferror(f);
}

/* Each GPU has a directory, and links to it. Without any, or with one that cannot be read, nothing is proven. */
static void read_debugfs(const struct survey *survey, struct externals *externals)
{
	_cleanup_close_ int root = -1, fd = open(DRI, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	size_t nr = 0;
	int err = 0;

	if (fd < 0) {
		root = mount_private("debugfs");
		fd = root < 0 ? root : openat(root, "dri", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return;
	steal_fd(&fd);
	externals->tells_bos = !has_imports(dirfd(dir));
	while (!err && (entry = readdir(dir))) {
		err = entry->d_type == DT_DIR && *entry->d_name != '.' ?
			      read_gpu(survey, externals, dirfd(dir), entry->d_name) : -ENOENT;
		nr += !err;
		err = err == -ENOENT ? 0 : err;
	}
	externals->tells_handles = nr && !err;
	externals->tells_bos &= externals->tells_handles;
}

/*
 * Whether a process runs this very program: a criu that waits for a job that it has restored is one of the KFD, with nothing
 * of its own there.
 */
static bool is_criu(pid_t pid)
{
	char path[32], exe[PATH_MAX], own[PATH_MAX];
	ssize_t len, own_len = readlink("/proc/self/exe", own, sizeof(own));

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	len = readlink(path, exe, sizeof(exe));
	return len > 0 && len == own_len && !memcmp(exe, own, (size_t)len);
}

/* ---- all ---- */

int externals_read(const struct survey *survey, struct externals **ret)
{
	const struct share_request *request = survey->request;
	struct externals *externals = *ret = calloc(1, sizeof(*externals));
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0, nr_ours = 1;
	int err = externals ? list_numbers(AT_FDCWD, "/proc", &pids, &nr) : -ENOMEM;

	if (err)
		return externals ? fail(err, "cannot list /proc: %m") : err;
	for (size_t i = 0; i < nr; i++) {
		err = is_in_dump(survey, pids[i]) ? 0 : add_external(externals, pids[i]);
		if (err == -ENOMEM)
			return err;
		if (err && !is_gone(err) && !externals->hidden)
			externals->hidden = pids[i];
	}
	externals->knows_pids = task_in_initial_pid_ns() > 0;
	/* The plugin is one of the KFD's, too. In a pid namespace sysfs has other pids, of which only the number says something. */
	err = list_numbers(AT_FDCWD, KFD_PROCESSES, &externals->kfd_pids, &nr);
	if (err)
		return fail(err, "cannot list the processes of the KFD: %m");
	for (size_t i = 0; i < request->nr_processes; i++)
		nr_ours += !request->processes[i]->file.minor;
	for (size_t i = 0; i < nr && nr > nr_ours; i++)
		if (!externals->knows_pids || !(is_in_dump(survey, externals->kfd_pids[i]) || is_criu(externals->kfd_pids[i])))
			externals->kfd_pids[externals->nr_kfd_pids++] = externals->kfd_pids[i];
	if (externals->knows_pids)
		read_debugfs(survey, externals);
	if (externals->nr)
		qsort(externals->list, externals->nr, sizeof(*externals->list), compare_u64);
	return 0;
}

void externals_free(struct externals *externals)
{
	if (!externals)
		return;
	free(externals->list);
	free(externals->kfd_pids);
	free(externals);
}

pid_t externals_find(const struct externals *externals, uint64_t inode)
{
	const struct external *found = NULL;

	if (externals->nr)
		found = bsearch(&inode, externals->list, externals->nr, sizeof(*found), compare_u64);
	return found ? found->pid : 0;
}

pid_t externals_suspect(const struct survey *survey, const struct externals *externals, const struct buffer *buffer,
			bool any, bool far)
{
	bool is_told = any ? externals->tells_bos : externals->tells_handles || !externals->knows_pids;
	const struct topology *machine = survey->request->machine;
	char path[96];

	/* A process of the KFD that uses the GPU, or any. */
	for (size_t i = 0; !is_told && i < externals->nr_kfd_pids; i++)
		for (unsigned int node = 0; node < machine->nr_nodes; node++) {
			if (!topology_is_gpu(machine->nodes[node]) ||
			    (!far && !survey_same_device(survey, topology_minor(machine->nodes[node]), buffer->minor)))
				continue;
			snprintf(path, sizeof(path), KFD_PROCESSES "/%d/vram_%u", externals->kfd_pids[i],
				 topology_gpu_id(machine->nodes[node]));
			if (!access(path, F_OK))
				return externals->kfd_pids[i];
		}
	return any ? externals->hidden : 0;
}
