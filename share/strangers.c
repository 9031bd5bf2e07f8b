// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that are not dumped: which buffers they have, by what can be looked at without a change to anything.
 *
 * Their files of render nodes tell the handles, and /proc their open dma-bufs. BOs of the KFD show only in debugfs,
 * which lists the buffers of each address space; where it is not mounted, any process that the KFD's sysfs shows on the
 * GPU may have the buffer. They run meanwhile: what is gone when it is looked at is passed over, and nothing else is.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "amdgpu_plugin_util.h"
#include "share/survey.h"

#define DRI	      "/sys/kernel/debug/dri"
#define KFD_PROCESSES "/sys/class/kfd/kfd/proc"

/*
 * What shows that a process has a buffer: the inode of an open dma-buf or of a BO's; on the buffer's own device the offset
 * of a handle, or the size of one that is not for the CPU; on another GPU, where each import is an object of its own, which
 * is mapped elsewhere, the size of any handle.
 */
enum clue { BY_INODE, BY_OFFSET, BY_SIZE, BY_SIZE_FAR };

struct stranger {
	enum clue clue;
	uint64_t value;
	uint32_t minor; /* of a handle's file */
	pid_t pid;
};

struct strangers {
	struct stranger *list; /* sorted, when all are there */
	size_t nr;
	int *kfd_pids; /* processes of the KFD */
	size_t nr_kfd_pids;
	bool has_debugfs;
};

static bool is_ours(const struct survey *survey, pid_t pid)
{
	const struct task_files *files = survey->request->files;

	for (size_t i = 0; i < files->nr_pids; i++)
		if (files->pids[i] == pid)
			return true;
	return pid == getpid();
}

static int add(struct strangers *strangers, const struct stranger *stranger)
{
	return array_add(strangers->list, strangers->nr, *stranger);
}

/* ---- files ---- */

static bool is_gone(int err)
{
	return err == -ESRCH || err == -ENOENT || err == -EBADF;
}

static int add_handle(struct strangers *strangers, struct stranger stranger, int fd, uint32_t handle)
{
	struct gem_info info;
	int err = gem_ask(fd, handle, &info);

	if (err)
		return err;
	stranger.clue = BY_SIZE_FAR;
	stranger.value = info.size;
	err = add(strangers, &stranger);
	if (err)
		return err;
	stranger.clue = gem_offset(fd, handle, &stranger.value) ? BY_SIZE : BY_OFFSET;
	return add(strangers, &stranger);
}

static int add_render_file(struct strangers *strangers, const struct stranger *stranger, int fd)
{
	_cleanup_free_ struct gem_entry *entries = NULL;
	size_t nr = 0;
	int err = gem_list(fd, &entries, &nr);

	if (err == -EINVAL)
		err = gem_search(fd, &entries, &nr);
	if (err)
		return err;
	for (size_t i = 0; i < nr; i++) {
		err = add_handle(strangers, *stranger, fd, entries[i].handle);
		if (err && !is_gone(err))
			return err;
	}
	return 0;
}

static int add_file(const struct survey *survey, struct strangers *strangers, pid_t pid, int number, dev_t dmabufs)
{
	struct stranger stranger = { .pid = pid };
	_cleanup_close_ int fd = -1;
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
	if (stat(path, &st))
		return -errno;
	if (st.st_dev == dmabufs) {
		stranger.value = st.st_ino;
		return add(strangers, &stranger);
	}
	stranger.minor = minor(st.st_rdev);
	if (!device_is_render_node(&st) || topology_find_minor(survey->request->machine, stranger.minor) < 0)
		return 0;
	fd = survey_take_file(pid, number);
	return fd < 0 ? fd : add_render_file(strangers, &stranger, fd);
}

static int add_process(const struct survey *survey, struct strangers *strangers, pid_t pid, dev_t dmabufs)
{
	_cleanup_free_ int *fds = NULL;
	size_t nr = 0;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	err = list_numbers(AT_FDCWD, path, &fds, &nr);
	if (err)
		return err;
	for (size_t i = 0; i < nr; i++) {
		err = add_file(survey, strangers, pid, fds[i], dmabufs);
		if (err && !is_gone(err))
			return err;
	}
	return 0;
}

static int read_processes(const struct survey *survey, struct strangers *strangers, dev_t dmabufs)
{
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0;
	int err = list_numbers(AT_FDCWD, "/proc", &pids, &nr);

	if (err)
		return fail(err, "cannot list /proc: %m");
	for (size_t i = 0; i < nr; i++) {
		err = is_ours(survey, pids[i]) ? 0 : add_process(survey, strangers, pids[i], dmabufs);
		if (err && !is_gone(err))
			return fail(err, "cannot look whether pid %d, which is not dumped, has buffers of the processes that "
				    "are: %m", pids[i]);
	}
	return 0;
}

/* ---- BOs of the KFD ---- */

/* The plugin is one of them. In a pid namespace sysfs has other pids, of which only the number says something. */
static int read_kfd(const struct survey *survey, struct strangers *strangers)
{
	const struct share_request *request = survey->request;
	size_t nr = 0, nr_listed = 0, nr_ours = 1;
	int err = list_numbers(AT_FDCWD, KFD_PROCESSES, &strangers->kfd_pids, &nr_listed);

	if (err)
		return fail(err, "cannot list the processes of the KFD: %m");
	for (size_t i = 0; i < request->nr_processes; i++)
		nr_ours += !request->processes[i].file->minor;
	for (size_t i = 0; i < nr_listed && nr_listed > nr_ours; i++)
		if (!is_ours(survey, strangers->kfd_pids[i]))
			strangers->kfd_pids[nr++] = strangers->kfd_pids[i];
	strangers->nr_kfd_pids = nr;
	return 0;
}

/* The driver names an address space by a thread. */
static bool is_our_thread(const struct survey *survey, pid_t tid)
{
	const struct task_files *files = survey->request->files;
	char path[64];

	for (size_t i = 0; i < files->nr_pids; i++) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d", files->pids[i], tid);
		if (!access(path, F_OK))
			return true;
	}
	return is_ours(survey, tid);
}

/* "pid:7 ..." begins an address space, and "... exported as ino:5" or "... imported from ino:5" is a buffer in it. */
static int read_spaces(const struct survey *survey, struct strangers *strangers, FILE *f)
{
	struct stranger stranger = { 0 };
	bool is_stranger = false;
	char line[512];

	while (fgets(line, sizeof(line), f)) {
		const char *inode = strstr(line, " ino:");

		if (sscanf(line, "pid:%d", &stranger.pid) == 1)
			is_stranger = stranger.pid && !is_our_thread(survey, stranger.pid);
		else if (is_stranger && inode) {
			stranger.value = strtoull(inode + strlen(" ino:"), NULL, 10);
			if (add(strangers, &stranger))
				return -ENOMEM;
		}
	}
	return ferror(f) ? -EIO : 0;
}

static int read_gpu(const struct survey *survey, struct strangers *strangers, const char *name)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), DRI "/%s/amdgpu_vm_info", name);
	f = fopen(path, "re");
	return f ? read_spaces(survey, strangers, f) : -errno;
}

/* Each GPU has a directory, and links to it. Without any, or with one that cannot be read, nothing is proven. */
static int read_debugfs(const struct survey *survey, struct strangers *strangers)
{
	_cleanup_closedir_ DIR *dir = opendir(DRI);
	struct dirent *entry;
	size_t nr = 0;

	while (dir && (entry = readdir(dir))) {
		int err = entry->d_type == DT_DIR ? read_gpu(survey, strangers, entry->d_name) : -ENOENT;

		if (err && err != -ENOENT)
			return err == -ENOMEM ? err : 0;
		nr += !err;
	}
	strangers->has_debugfs = nr;
	return 0;
}

/* ---- all ---- */

static int compare_strangers(const void *a, const void *b)
{
	const struct stranger *x = a, *y = b;

	if (x->clue != y->clue)
		return x->clue < y->clue ? -1 : 1;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return (x->minor > y->minor) - (x->minor < y->minor);
}

int strangers_read(const struct survey *survey, dev_t dmabufs, struct strangers **ret)
{
	struct strangers *strangers = *ret = calloc(1, sizeof(*strangers));
	int err = strangers ? read_processes(survey, strangers, dmabufs) : -ENOMEM;

	if (!err)
		err = read_kfd(survey, strangers);
	if (!err && strangers->nr_kfd_pids)
		err = read_debugfs(survey, strangers);
	if (!err && strangers->nr)
		qsort(strangers->list, strangers->nr, sizeof(*strangers->list), compare_strangers);
	return err;
}

void strangers_free(struct strangers *strangers)
{
	if (!strangers)
		return;
	free(strangers->list);
	free(strangers->kfd_pids);
	free(strangers);
}

/* Somebody who has it, or 0. */
static pid_t search(const struct strangers *strangers, enum clue clue, uint64_t value, uint32_t minor)
{
	const struct stranger wanted = { .clue = clue, .value = value, .minor = minor }, *found = NULL;

	if (strangers->nr)
		found = bsearch(&wanted, strangers->list, strangers->nr, sizeof(*found), compare_strangers);
	return found ? found->pid : 0;
}

/* By a handle in a file of one GPU; @holder is on the buffer's own. */
static pid_t search_gpu(const struct survey *survey, const struct strangers *strangers, const struct buffer *buffer,
			const struct holder *holder, uint32_t minor, bool far)
{
	uint64_t size = (uint64_t)lseek(buffer->dmabuf_fd, 0, SEEK_END);
	pid_t pid;

	if (!survey_same_device(survey, minor, buffer->minor))
		return far ? search(strangers, BY_SIZE_FAR, size, minor) : 0;
	pid = search(strangers, BY_OFFSET, holder->offset, minor);
	return pid ? pid : search(strangers, BY_SIZE, size, minor);
}

pid_t strangers_find(const struct survey *survey, const struct strangers *strangers, const struct buffer *buffer,
		     bool far)
{
	const struct topology *machine = survey->request->machine;
	const struct holder *holder = buffer->holders;
	pid_t pid = search(strangers, BY_INODE, holder->inode, 0);

	while (holder < buffer->holders + buffer->nr - 1 && !survey_same_device(survey, holder->minor, buffer->minor))
		holder++;
	for (unsigned int i = 0; i < machine->nr_nodes && !pid; i++)
		pid = search_gpu(survey, strangers, buffer, holder, topology_minor(machine->nodes[i]), far);
	return pid;
}

static bool uses_gpu(pid_t pid, uint32_t gpu_id)
{
	char path[96];

	snprintf(path, sizeof(path), KFD_PROCESSES "/%d/vram_%u", pid, gpu_id);
	return !access(path, F_OK);
}

pid_t strangers_unclear(const struct survey *survey, const struct strangers *strangers, const struct buffer *buffer,
			bool far)
{
	const struct topology *machine = survey->request->machine;

	for (size_t i = 0; i < strangers->nr_kfd_pids && !strangers->has_debugfs; i++)
		for (unsigned int node = 0; node < machine->nr_nodes; node++)
			if (topology_is_gpu(machine->nodes[node]) &&
			    (far || survey_same_device(survey, topology_minor(machine->nodes[node]), buffer->minor)) &&
			    uses_gpu(strangers->kfd_pids[i], topology_gpu_id(machine->nodes[node])))
				return strangers->kfd_pids[i];
	return 0;
}
