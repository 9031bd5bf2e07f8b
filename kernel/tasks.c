// SPDX-License-Identifier: GPL-2.0-only
/*
 * Looks at the stopped tasks through /proc: which of them have AMD device files open, and
 * where these are mapped. Changes nothing in them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "kernel/machine.h"
#include "kernel/tasks.h"
#include "amdgpu_plugin_util.h"

/* Names of the initial namespaces: their numbers are fixed in the kernel's ABI. */
#define INITIAL_USER_NS "user:[4026531837]"
#define INITIAL_PID_NS	"pid:[4026531836]"

/* ---- tasks ---- */

/* NSpid has one number for each namespace, the innermost last. */
pid_t task_own_pid(pid_t pid)
{
	return (pid_t)proc_status(pid, "NSpid", 10);
}

bool task_is_in_user_ns(pid_t pid)
{
	char path[64], name[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return readlink(path, name, sizeof(name) - 1) > 0 && strcmp(name, INITIAL_USER_NS);
}

static bool begins_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

int task_in_initial_pid_ns(void)
{
	char name[64] = "";

	if (readlink("/proc/self/ns/pid", name, sizeof(name) - 1) < 0)
		return -errno;
	return !strcmp(name, INITIAL_PID_NS);
}

int task_ask_kfd(pid_t pid, struct task_kfd *ret)
{
	char path[64];
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	int err = task_in_initial_pid_ns();

	*ret = (struct task_kfd){ 0 };
	if (err <= 0)
		return err;
	snprintf(path, sizeof(path), KFD_PROCESSES "/%d", pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while ((entry = readdir(dir))) {
		_cleanup_free_ int *queues = NULL;
		const char *name = entry->d_name;
		bool is_vram = begins_with(name, "vram_");
		uint64_t bytes = 0, pasid = 0;
		size_t nr = 0;

		err = 0;
		if (!strcmp(name, "queues"))
			err = list_numbers(dirfd(dir), name, &queues, &nr);
		else if (is_vram)
			err = read_number_at(dirfd(dir), name, &bytes);
		else if (!strcmp(name, "pasid"))
			err = read_number_at(dirfd(dir), name, &pasid);
		if (err)
			return err;
		ret->pasid += (uint32_t)pasid;
		ret->nr_queues += nr;
		ret->vram_bytes += bytes;
		ret->nr_gpus += is_vram;
		ret->nr_contexts += begins_with(name, "context_");
	}
	return 0;
}

int task_list_kfd(int **ret, size_t *ret_nr)
{
	return list_numbers(AT_FDCWD, KFD_PROCESSES, ret, ret_nr);
}

/* ---- files ---- */

#define DMABUF_KIND "a dma-buf"

bool task_file_is_dmabuf(const char *kind)
{
	return !strcmp(kind, DMABUF_KIND);
}

const char *task_file_unsaved_kind(int fd)
{
	static const struct {
		const char *link, *kind;
	} kinds[] = {
		{ "/dmabuf:", DMABUF_KIND },
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

pid_t task_timer_of_ended_thread(pid_t pid)
{
	_cleanup_fclose_ FILE *timers = proc_file(pid, "timers");
	char line[128], path[64];
	pid_t tid;

	while (timers && fgets(line, sizeof(line), timers)) {
		if (sscanf(line, "notify: signal/tid.%d", &tid) != 1)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
		if (access(path, F_OK) && errno == ENOENT)
			return tid;
	}
	return 0;
}

int task_find_mark(pid_t pid, int after)
{
	static const char link[] = "/memfd:" TASK_MARK " ";
	_cleanup_free_ int *fds = NULL;
	char path[64], target[sizeof(link)];
	size_t nr = 0;

	proc_list(pid, "fd", &fds, &nr);
	for (size_t i = 0; i < nr; i++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fds[i]);
		length = fds[i] > after ? readlink(path, target, sizeof(target)) : 0;
		if (length == sizeof(target) && !memcmp(target, link, strlen(link)))
			return fds[i];
	}
	return -1;
}

/* The kernel compares files one by one: those of the same device are enough. */
static int find_file(const struct task_files *files, int fd, uint32_t minor_number, struct task_file **ret)
{
	pid_t self = getpid();

	*ret = NULL;
	for (size_t i = 0; !*ret && i < files->count; i++) {
		long r;

		if (files->files[i].minor != minor_number)
			continue;
		r = syscall(SYS_kcmp, self, self, KCMP_FILE, files->files[i].fd, fd);
		if (r < 0)
			return -errno;
		if (!r)
			*ret = &files->files[i];
	}
	return 0;
}

int task_file_holder(pid_t pid, int number, uint32_t minor_number, pid_t *ret)
{
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0;
	int err = list_numbers(AT_FDCWD, "/proc", &pids, &nr);

	*ret = 0;
	for (size_t i = 0; !err && !*ret && i < nr; i++) {
		_cleanup_free_ int *numbers = NULL;
		size_t nr_numbers = 0;

		if (pids[i] == pid || pids[i] == getpid())
			continue;
		err = proc_list(pids[i], "fd", &numbers, &nr_numbers);
		for (size_t k = 0; !err && !*ret && k < nr_numbers; k++) {
			char path[64];
			struct stat st;
			long r;

			snprintf(path, sizeof(path), "/proc/%d/fd/%d", pids[i], numbers[k]);
			if (stat_quietly(AT_FDCWD, path, &st) || !device_is_render_node(&st) || minor(st.st_rdev) != minor_number)
				continue;
			r = syscall(SYS_kcmp, pid, pids[i], KCMP_FILE, number, numbers[k]);
			if (!r)
				*ret = pids[i];
			else if (r < 0 && errno != ESRCH && errno != EBADF)
				err = -errno;
		}
		err = err == -ESRCH || err == -ENOENT ? 0 : err;
	}
	return err ? fail(err, "pid %d: cannot tell who else has its descriptor %d: %m", pid, number) : 0;
}

int task_list_sharers(pid_t pid, int **ret, size_t *ret_nr)
{
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0;
	int err = list_numbers(AT_FDCWD, "/proc", &pids, &nr);

	for (size_t i = 0; !err && i < nr; i++)
		if (pids[i] != pid && (!syscall(SYS_kcmp, pid, pids[i], KCMP_VM, 0, 0) ||
				       !syscall(SYS_kcmp, pid, pids[i], KCMP_FILES, 0, 0)))
			err = array_add(*ret, *ret_nr, pids[i]);
	return err ? fail(err, "cannot list /proc: %m") : 0;
}

int task_files_find(const struct task_files *files, int fd, struct task_file **ret)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	return find_file(files, fd, device_is_kfd(&st) ? 0 : minor(st.st_rdev), ret);
}

bool task_files_has(const struct task_files *files, pid_t pid, uint32_t minor_number)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->files[i].pid == pid && files->files[i].minor == minor_number)
			return true;
	return false;
}

bool task_file_has_pasid(const struct task_file *file, uint32_t pasid)
{
	uint32_t value;
	char text[32];

	return !fdinfo_value(file->fd, "pasid", text, sizeof(text)) && sscanf(text, "%" SCNu32, &value) == 1 &&
	       value == pasid;
}

unsigned int task_files_count_spaces(const struct task_files *files, pid_t pid, uint32_t pasid,
				     const struct topology *machine)
{
	unsigned int nr_opened = 0, nr_known = 0;

	for (unsigned int i = 0; i < machine->nr_nodes; i++) {
		const struct topology_node *node = machine->nodes[i];
		bool is_known = false;

		if (!topology_is_gpu(node))
			continue;
		nr_opened += task_files_has(files, pid, topology_minor(node));
		for (size_t j = 0; pasid && !is_known && j < files->count; j++)
			is_known = files->files[j].pid == pid && files->files[j].minor == topology_minor(node) &&
				   task_file_has_pasid(&files->files[j], pasid);
		nr_known += is_known;
	}
	return nr_known ? nr_known : nr_opened;
}

/* Whether a file is of /dev/kfd or a render node, and *ret_minor, 0 for the KFD's: 1, 0, or -ENOMEM. */
static int is_wanted(int dir_fd, const char *path, uint32_t *ret_minor)
{
	struct stat st = { 0 };

	if (stat_quietly(dir_fd, path, &st) == -ENOMEM)
		return -ENOMEM;
	*ret_minor = device_is_kfd(&st) ? 0 : minor(st.st_rdev);
	return device_is_kfd(&st) || device_is_render_node(&st);
}

/*
 * Looks at the file first, since duplicating every descriptor of a large program costs time; and at what was taken, since
 * a process outside of the dump may have the same table and put another file there.
 */
static int take_file(struct task_files *files, pid_t pid, int pidfd, int fd_number)
{
	_cleanup_close_ int fd = -1;
	struct task_file *known;
	uint32_t number;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd_number);
	r = is_wanted(AT_FDCWD, path, &number);
	if (r <= 0)
		return r;
	fd = syscall(SYS_pidfd_getfd, pidfd, fd_number, 0);
	if (fd < 0)
		return fail(-errno, "pid %d: cannot take a duplicate of fd %d: %m", pid, fd_number);
	/* A descriptor of O_PATH is a path to criu, and no file to the driver. */
	r = is_wanted(fd, "", &number);
	if (r <= 0 || fcntl(fd, F_GETFL) & O_PATH)
		return r < 0 ? r : 0;
	r = find_file(files, fd, number, &known);
	if (r)
		return fail(r, "pid %d: cannot compare its files with those of other tasks: %m", pid);
	if (known)
		return 0;
	r = array_add(files->files, files->count, (struct task_file){
		.pid = pid, .number = fd_number, .fd = fd, .minor = number,
	});
	if (!r)
		steal_fd(&fd);
	return r;
}

/* Is it a render node of the amdgpu driver? */
struct question {
	int (*is_amd)(int fd);
	int fd, answer;
};

static void *ask_driver(void *arg)
{
	struct question *question = arg;

	question->answer = question->is_amd(question->fd);
	return NULL;
}

/*
 * Leaves out render nodes of other drivers. The first call of another process on a file of a render node waits until readers
 * of RCU are done (drm_file_update_pid() of Linux 6.12). Threads wait together.
 */
static int drop_others(struct task_files *files, int (*is_amd)(int fd), bool uses_threads)
{
	_cleanup_free_ struct question *questions = calloc(files->count + 1, sizeof(*questions));
	size_t nr_asked = 0, nr = 0;
	int err = 0;

	if (!questions)
		return -ENOMEM;
	for (size_t i = 0; i < files->count; i++)
		if (files->files[i].minor)
			questions[nr_asked++] = (struct question){ .is_amd = is_amd, .fd = files->files[i].fd };
	if (uses_threads)
		all_at_once(questions, nr_asked, sizeof(*questions), ask_driver);
	else
		for (size_t i = 0; i < nr_asked; i++)
			ask_driver(&questions[i]);
	nr_asked = 0;
	for (size_t i = 0; i < files->count; i++) {
		const struct task_file *file = &files->files[i];
		int answer = file->minor ? questions[nr_asked++].answer : 1;

		if (answer < 0 && !err)
			err = fail(answer, "pid %d: cannot ask renderD%u for its driver: %m", file->pid, file->minor);
		if (answer)
			files->files[nr++] = *file;
		else
			close(file->fd);
	}
	files->count = nr;
	return err;
}

/* compare_u32() sorts them by what they begin with. */
struct numbered_task {
	pid_t own, pid;
};

static int collect(int *pids, size_t nr, int (*is_amd)(int fd), bool uses_threads, struct task_files *ret)
{
	_cleanup_(task_files_done) struct task_files files = { .pids = pids, .nr_pids = nr };
	_cleanup_free_ struct numbered_task *tasks = calloc(nr + 1, sizeof(*tasks));
	int err = 0;

	if (!tasks)
		return -ENOMEM;
	/*
	 * criu gives a file to the task that has the lowest pid in its own namespace. The numbers of the two namespaces need not
	 * have one order: tasks that were restored have chosen theirs. Each task is asked once.
	 */
	for (size_t i = 0; i < nr; i++)
		tasks[i] = (struct numbered_task){ task_own_pid(pids[i]), pids[i] };
	qsort(tasks, nr, sizeof(*tasks), compare_u32);
	for (size_t i = 0; i < nr; i++)
		pids[i] = tasks[i].pid;
	for (size_t i = 0; !err && i < nr; i++) {
		_cleanup_close_ int pidfd = -1;
		_cleanup_free_ int *fds = NULL;
		size_t count = 0;

		err = proc_list(pids[i], "fd", &fds, &count);
		if (!err && (pidfd = syscall(SYS_pidfd_open, pids[i], 0)) < 0)
			err = -errno;
		if (err)
			return fail(err, "pid %d: cannot look at its files: %m", pids[i]);
		for (size_t k = 0; !err && k < count; k++)
			err = take_file(&files, pids[i], pidfd, fds[k]);
	}
	if (!err)
		err = drop_others(&files, is_amd, uses_threads);
	if (err)
		return err;
	*ret = files;
	files = (struct task_files){ 0 };
	return 0;
}

int task_files_collect_of(int *pids, size_t nr, int (*is_amd)(int fd), struct task_files *ret)
{
	return collect(pids, nr, is_amd, true, ret);
}

int task_files_collect_one(pid_t pid, int (*is_amd)(int fd), struct task_files *ret)
{
	int *pids = malloc(sizeof(*pids));

	if (!pids)
		return -ENOMEM;
	*pids = pid;
	return collect(pids, 1, is_amd, false, ret);
}

int tasks_list_traced(int **ret_pids, size_t *ret_nr)
{
	_cleanup_free_ int *pids = NULL;
	pid_t self = gettid();
	size_t count = 0, nr = 0;
	int err = list_numbers(AT_FDCWD, "/proc", &pids, &count);

	if (err)
		return fail(err, "cannot list /proc: %m");
	for (size_t i = 0; i < count; i++)
		if ((pid_t)proc_status(pids[i], "TracerPid", 10) == self)
			pids[nr++] = pids[i];
	*ret_pids = steal_ptr(pids);
	*ret_nr = nr;
	return 0;
}

int task_files_collect(int (*is_amd)(int fd), struct task_files *ret)
{
	int *pids = NULL;
	size_t nr = 0;
	int err = tasks_list_traced(&pids, &nr);

	return err ? err : task_files_collect_of(pids, nr, is_amd, ret);
}

int task_take_file(pid_t pid, int number)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int fd = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);

	return fd < 0 ? -errno : fd;
}

int tasks_end_with_tracer(void)
{
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0;
	int err = tasks_list_traced(&pids, &nr);

	if (err)
		return err;
	for (size_t i = 0; i < nr; i++)
		if (ptrace(PTRACE_SETOPTIONS, pids[i], NULL, PTRACE_O_EXITKILL) && errno != ESRCH)
			return fail(errno_or_eio(), "pid %d: cannot be made to end with criu: %m", pids[i]);
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

int task_device_vmas(pid_t pid, struct device_vma **ret, size_t *ret_count)
{
	_cleanup_free_ struct device_vma *vmas = NULL;
	_cleanup_free_ char *text = NULL;
	_cleanup_fclose_ FILE *f = proc_file(pid, "maps");
	size_t room = 0, count = 0;
	int err = f ? 0 : -errno;

	while (!err && getline(&text, &room, f) > 0) {
		struct device_vma vma = { 0 };
		struct stat st;
		uint64_t inode;
		char path[96];

		if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*x:%*x %" SCNu64, &vma.start, &vma.end,
			   &vma.offset, &inode) != 4)
			err = -EBADMSG;
		if (err || !inode)
			continue;
		/* A mapping that is left out would be restored wrong. */
		snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, vma.start, vma.end);
		err = stat_quietly(AT_FDCWD, path, &st);
		if (err || (!device_is_kfd(&st) && !device_is_render_node(&st)))
			continue;
		vma.minor = device_is_kfd(&st) ? 0 : minor(st.st_rdev);
		err = array_add(vmas, count, vma);
	}
	if (err)
		return fail(err, "pid %d: cannot read its mappings: %m", pid);
	*ret = steal_ptr(vmas);
	*ret_count = count;
	return 0;
}
