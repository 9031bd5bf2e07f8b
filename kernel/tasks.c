// SPDX-License-Identifier: GPL-2.0-only
/*
 * Looks at the stopped tasks through /proc: which of them have AMD device files open, and
 * where these are mapped. Changes nothing in them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "kernel/device.h"
#include "kernel/tasks.h"
#include "amdgpu_plugin_util.h"

/* Name of the initial user namespace: a fixed number of the kernel's ABI. */
#define INITIAL_USER_NS "user:[4026531837]"

/* ---- tasks ---- */

/* The last number in a line of /proc/PID/status, 0 when there is no such line. */
static pid_t status_number(pid_t pid, const char *key)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[256];
	size_t len = strlen(key);

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, len)) {
			const char *last = strrchr(line, '\t');

			return last ? atoi(last) : 0;
		}
	return 0;
}

/* NSpid has one number for each namespace, the innermost last. */
pid_t task_own_pid(pid_t pid)
{
	return status_number(pid, "NSpid:");
}

bool task_is_in_user_ns(pid_t pid)
{
	char path[64], name[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return readlink(path, name, sizeof(name) - 1) > 0 && strcmp(name, INITIAL_USER_NS);
}

/* ---- files ---- */

static int same_file(int fd_a, int fd_b)
{
	pid_t self = getpid();
	long r = syscall(SYS_kcmp, self, self, KCMP_FILE, fd_a, fd_b);

	return r < 0 ? -errno : r == 0;
}

const char *task_file_unsaved_kind(int fd)
{
	static const struct {
		const char *link, *kind;
	} kinds[] = {
		{ "/dmabuf:", "a dma-buf" },
		{ "anon_inode:kfd_smi_ev", "a file of SMI events" },
	};
	char path[64], target[64] = "";
	size_t i;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, target, sizeof(target) - 1) < 0)
		return NULL;
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strncmp(target, kinds[i].link, strlen(kinds[i].link)))
			return kinds[i].kind;
	return NULL;
}

struct task_file *task_files_find(const struct task_files *files, int fd)
{
	struct stat st, other;
	size_t i;

	if (fstat(fd, &st))
		return NULL;
	for (i = 0; i < files->count; i++) {
		if (fstat(files->files[i].fd, &other) || st.st_rdev != other.st_rdev)
			continue;
		if (same_file(fd, files->files[i].fd) == 1)
			return &files->files[i];
	}
	return NULL;
}

static int add_file(struct task_files *files, pid_t pid, int *fd, uint32_t minor_number)
{
	struct task_file *grown;

	if (task_files_find(files, *fd))
		return 0;
	grown = reallocarray(files->files, files->count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	files->files = grown;
	grown[files->count++] = (struct task_file){ .pid = pid, .fd = steal_fd(fd), .minor = minor_number };
	return 0;
}

/* Looks at the file first, since duplicating every descriptor of a large program costs time. */
static bool worth_taking(pid_t pid, int fd_number, struct stat *st)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd_number);
	return !stat(path, st) && (device_is_kfd(st) || device_is_render_node(st));
}

static int take_file(struct task_files *files, pid_t pid, int pidfd, int fd_number, bool (*is_amd)(int fd))
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (!worth_taking(pid, fd_number, &st))
		return 0;
	fd = syscall(SYS_pidfd_getfd, pidfd, fd_number, 0);
	if (fd < 0) {
		int err = -errno;

		pr_err("pid %d: cannot take a duplicate of fd %d: %s", pid, fd_number, strerror(-err));
		return err;
	}
	if (device_is_kfd(&st))
		return add_file(files, pid, &fd, 0);
	if (!is_amd(fd))
		return 0;
	return add_file(files, pid, &fd, minor(st.st_rdev));
}

static int collect_task(struct task_files *files, pid_t pid, bool (*is_amd)(int fd))
{
	_cleanup_close_ int pidfd = -1;
	_cleanup_free_ int *fds = NULL;
	size_t i, count = 0;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	err = list_numbers(AT_FDCWD, path, &fds, &count);
	if (!err) {
		pidfd = syscall(SYS_pidfd_open, pid, 0);
		err = pidfd < 0 ? -errno : 0;
	}
	if (err) {
		pr_err("pid %d: cannot look at its files: %s", pid, strerror(-err));
		return err;
	}
	for (i = 0; !err && i < count; i++)
		err = take_file(files, pid, pidfd, fds[i], is_amd);
	return err;
}

bool task_has_open(pid_t pid, dev_t device)
{
	_cleanup_free_ int *fds = NULL;
	size_t i, count = 0;
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	if (list_numbers(AT_FDCWD, path, &fds, &count))
		return false;
	for (i = 0; i < count; i++)
		if (worth_taking(pid, fds[i], &st) && st.st_rdev == device)
			return true;
	return false;
}

int task_files_collect(bool (*is_amd)(int fd), struct task_files *ret)
{
	_cleanup_(task_files_done) struct task_files files = { 0 };
	_cleanup_free_ int *pids = NULL;
	pid_t self = gettid();
	size_t i, count = 0;
	int err = list_numbers(AT_FDCWD, "/proc", &pids, &count);

	if (err)
		pr_err("cannot list /proc: %s", strerror(-err));
	for (i = 0; !err && i < count; i++)
		if (status_number(pids[i], "TracerPid:") == self) {
			pids[files.nr_pids++] = pids[i];
			err = collect_task(&files, pids[i], is_amd);
		}
	if (err)
		return err;
	files.pids = steal_ptr(pids);
	*ret = files;
	files = (struct task_files){ 0 };
	return 0;
}

void task_files_done(struct task_files *files)
{
	size_t i;

	for (i = 0; i < files->count; i++)
		close(files->files[i].fd);
	free(files->files);
	free(files->pids);
	*files = (struct task_files){ 0 };
}

/* ---- mappings ---- */

struct maps_line {
	uint64_t start, end, offset, inode;
};

static bool parse_maps_line(const char *text, struct maps_line *line)
{
	return sscanf(text, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*x:%*x %" SCNu64, &line->start, &line->end,
		      &line->offset, &line->inode) == 4;
}

/* 1 for a device of ours or a render node, 0 for others, -errno: a mapping that is left out would be restored wrong. */
static int vma_device(pid_t pid, const struct maps_line *line, uint32_t *ret_minor)
{
	struct stat st;
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, line->start, line->end);
	if (stat(path, &st))
		return -errno;
	*ret_minor = device_is_kfd(&st) ? 0 : minor(st.st_rdev);
	return device_is_kfd(&st) || device_is_render_node(&st);
}

static int add_vma(struct device_vma **vmas, size_t *count, const struct device_vma *vma)
{
	struct device_vma *grown = reallocarray(*vmas, *count + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[(*count)++] = *vma;
	*vmas = grown;
	return 0;
}

int task_device_vmas(pid_t pid, struct device_vma **ret, size_t *ret_count)
{
	_cleanup_free_ struct device_vma *vmas = NULL;
	_cleanup_free_ char *text = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	struct maps_line line;
	size_t room = 0, count = 0;
	char path[64];
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		err = -errno;
	while (!err && getline(&text, &room, f) > 0) {
		uint32_t minor_number = 0;
		int r;

		if (!parse_maps_line(text, &line)) {
			err = -EBADMSG;
			break;
		}
		r = line.inode ? vma_device(pid, &line, &minor_number) : 0;
		err = r < 0 ? r : 0;
		if (r > 0)
			err = add_vma(&vmas, &count, &(struct device_vma){ .start = line.start, .end = line.end,
				.offset = line.offset, .minor = minor_number });
	}
	if (err) {
		pr_err("pid %d: cannot read its mappings: %s", pid, strerror(-err));
		return err;
	}
	*ret = steal_ptr(vmas);
	*ret_count = count;
	return 0;
}
