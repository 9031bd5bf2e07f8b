// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a buffer is held outside of the dump too: by the references to its dma-buf, of which each has to be explained.
 *
 * Measured on amdgpu, Linux 6.12: each open descriptor 1; on the buffer's own GPU each BO of the KFD 1, each file of a
 * render node with a handle 1, the KFD's own file 1 as long as no BO of the buffer was freed ("client"), the object 1
 * while it has a handle in any of these; on another GPU the KFD's BOs 1 each and 1 for each object that they have, by
 * their file offset (a new one, when a BO was freed before), its own file 2 under the same condition, each file of a
 * render node 3; mappings of the KFD on other GPUs as peers.c says.
 *
 * The kernel does not tell whether the KFD's own files have it. A further handle of the plugin's own shows whether the
 * object has any; a handle of a stranger is looked for in the files of all processes; where a process of the dump has
 * one, the number of references that one more import makes decides. That import is freed again, and the kernel closes
 * the client's handle with it, so this is kept for the cases that need it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "amdgpu_plugin_util.h"
#include "host/host.h"
#include "share/gem.h"
#include "share/survey.h"

/* A reference of another GPU goes some time after its handle: the count is read again up to this often. */
#define SETTLE_TRIES 50
#define SETTLE_NS    (20l * 1000 * 1000)

/* Where strangers' handles cannot be listed, they are tried up to this one. */
#define MAX_TRIED_HANDLE 4096u

/* A handle of a process that is not dumped. */
struct stranger {
	pid_t pid;
	uint32_t minor;
	bool is_mappable;
	uint64_t offset, size;
};

/* An open descriptor of a dma-buf. */
struct descriptor {
	uint64_t inode;
	pid_t pid; /* 0: the plugin's own */
	int fd;
};

struct references {
	dev_t device; /* of all dma-bufs */
	struct descriptor *list; /* by inode, those of tasks first */
	size_t nr;
	struct stranger *strangers;
	size_t nr_strangers;
	bool has_strangers; /* they were looked for */
};

/* ---- descriptors ---- */

static int add_descriptor(struct references *references, const struct descriptor *descriptor)
{
	struct descriptor *grown = array_grow(references->list, references->nr, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	references->list = grown;
	references->list[references->nr++] = *descriptor;
	return 0;
}

/*
 * One that is gone meanwhile was the listing's own. *ret_early: a dma-buf has a lower number than @state_fd, with
 * which the state of the task comes back.
 */
static int add_descriptors(struct references *references, const char *directory, pid_t pid, int state_fd, bool *ret_early)
{
	_cleanup_free_ int *fds = NULL;
	bool has_dmabuf = false;
	size_t nr = 0;
	int err = list_numbers(AT_FDCWD, directory, &fds, &nr);

	for (size_t i = 0; !err && i < nr; i++) {
		char path[64];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%d", directory, fds[i]);
		if (stat(path, &st))
			continue;
		*ret_early |= has_dmabuf && fds[i] == state_fd;
		if (st.st_dev != references->device)
			continue;
		has_dmabuf = true;
		err = add_descriptor(references, &(struct descriptor){ st.st_ino, pid, fds[i] });
	}
	return err;
}

/* Tasks with one table of descriptors have each descriptor once. */
static bool has_table_of_earlier(const struct task_files *files, size_t task)
{
	for (size_t i = 0; i < task; i++)
		if (!syscall(SYS_kcmp, files->pids[i], files->pids[task], KCMP_FILES, 0, 0))
			return true;
	return false;
}

/*
 * The descriptor with which the state of a task comes back: of /dev/kfd, which may have others of its parent's, or of a
 * render node; -1: it has none.
 */
static int state_fd_of(const struct share_request *request, pid_t pid)
{
	for (size_t i = 0; i < request->nr_processes; i++)
		if (request->processes[i].pid == pid)
			return request->processes[i].file->number;
	return -1;
}

static int add_task(struct references *references, const struct share_request *request, size_t task)
{
	const struct task_files *files = request->files;
	size_t before = references->nr;
	bool early = false;
	char path[32];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/fd", files->pids[task]);
	err = add_descriptors(references, path, files->pids[task], state_fd_of(request, files->pids[task]), &early);
	if (err)
		pr_err("pid %d: cannot look for open dma-bufs: %s", files->pids[task], strerror(-err));
	if (!err && references->nr > before && has_table_of_earlier(files, task))
		references->nr = before;
	if (err || !early || !criu_is_streaming())
		return err;
	pr_err("pid %d: has a dma-buf open whose number is lower than that of /dev/kfd or, without it, of the render node, "
	       "whose image a stream brings too late: dump into a directory", files->pids[task]);
	return -EOPNOTSUPP;
}

static int compare_descriptors(const void *a, const void *b)
{
	const struct descriptor *x = a, *y = b;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	if (!x->pid != !y->pid)
		return x->pid ? -1 : 1;
	return x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : x->fd - y->fd;
}

static void sort_descriptors(struct references *references)
{
	if (references->nr)
		qsort(references->list, references->nr, sizeof(*references->list), compare_descriptors);
}

/* The first of a buffer, NULL when there is none. */
static const struct descriptor *find_descriptor(const struct references *references, uint64_t inode)
{
	size_t low = 0, high = references->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (references->list[middle].inode < inode)
			low = middle + 1;
		else
			high = middle;
	}
	return low < references->nr && references->list[low].inode == inode ? &references->list[low] : NULL;
}

bool references_of_tasks(const struct references *references, uint64_t inode)
{
	const struct descriptor *first = references ? find_descriptor(references, inode) : NULL;

	return first && first->pid;
}

/* ---- buffers that only a descriptor holds ---- */

static int compare_inodes(const void *inode, const void *holder)
{
	uint64_t a = *(const uint64_t *)inode, b = ((const struct holder *)holder)->inode;

	return (a > b) - (a < b);
}

static int take_descriptor(const struct descriptor *descriptor)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, descriptor->pid, 0);
	int fd = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, descriptor->fd, 0);

	return fd < 0 ? -errno : fd;
}

/* Whoever is to own it has to have the GPU: best the process that has it open. */
static int add_lone(struct survey *survey, const struct descriptor *descriptor)
{
	int fd = take_descriptor(descriptor), err = fd < 0 ? fd : 0;

	if (!err)
		err = survey_add_descriptor(survey, descriptor->pid, descriptor->inode, fd);
	if (err)
		pr_err("pid %d: cannot look at its dma-buf %d: %s", descriptor->pid, descriptor->fd, strerror(-err));
	return err;
}

/* The holders are sorted by inode; those that are added come after them. */
static int add_lone_ones(struct survey *survey, const struct references *references)
{
	size_t nr_known = survey->nr_holders;
	uint64_t last = 0;
	int err = 0;

	for (size_t i = 0; !err && i < references->nr; i++) {
		uint64_t inode = references->list[i].inode;

		if (inode != last && !bsearch(&inode, survey->holders, nr_known, sizeof(*survey->holders), compare_inodes))
			err = add_lone(survey, &references->list[i]);
		last = inode;
	}
	return err;
}

static int read_descriptors(struct survey *survey, struct references *references)
{
	const struct task_files *files = survey->request->files;
	bool early = false;
	struct stat st;
	int err = 0;

	for (size_t i = 0; i < survey->nr_holders && !references->device; i++)
		if (survey->holders[i].dmabuf_fd >= 0 && !fstat(survey->holders[i].dmabuf_fd, &st))
			references->device = st.st_dev;
	for (size_t i = 0; !err && i < files->nr_pids; i++)
		err = add_task(references, survey->request, i);
	sort_descriptors(references);
	if (!err)
		err = add_lone_ones(survey, references);
	if (err)
		return err;
	err = add_descriptors(references, "/proc/self/fd", 0, -1, &early);
	if (err)
		pr_err("cannot look for dma-bufs of criu: %s", strerror(-err));
	sort_descriptors(references);
	return err;
}

int references_read(struct survey *survey, struct references **ret)
{
	struct references *references = calloc(1, sizeof(*references));
	int err = references ? read_descriptors(survey, references) : -ENOMEM;

	if (err) {
		references_free(references);
		return err;
	}
	*ret = references;
	return 0;
}

void references_free(struct references *references)
{
	if (!references)
		return;
	free(references->list);
	free(references->strangers);
	free(references);
}

static size_t nr_descriptors(const struct references *references, uint64_t inode)
{
	const struct descriptor *first = find_descriptor(references, inode);
	size_t nr = 0;

	while (first && first + nr < references->list + references->nr && first[nr].inode == inode)
		nr++;
	return nr;
}

/* ---- the count ---- */

static int read_count(int dmabuf_fd, int64_t *ret)
{
	char text[32];
	int err = fdinfo_value(dmabuf_fd, "count", text, sizeof(text));

	return err || sscanf(text, "%" SCNd64, ret) == 1 ? err : -ENODATA;
}

/* What the dump knows to hold references, and what may hold more of them. */
struct account {
	int64_t known;
	unsigned int nr_bos, nr_handles; /* on the buffer's GPU */
	unsigned int nr_other_gpus;	 /* with BOs of the KFD */
};

static bool is_here(const struct survey *survey, const struct buffer *buffer, const struct holder *holder)
{
	return survey_same_device(survey, holder->minor, buffer->minor);
}

/* Of the KFD's BOs of the buffer on another device; with @object, of those there that are the same import. */
static bool is_first_bo_there(const struct survey *survey, const struct buffer *buffer, size_t i, bool object)
{
	const struct holder *holder = &buffer->holders[i], *earlier;

	if (holder->bo == NO_BO || is_here(survey, buffer, holder))
		return false;
	for (earlier = buffer->holders; earlier < holder; earlier++)
		if (earlier->bo != NO_BO && survey_same_device(survey, earlier->minor, holder->minor) &&
		    (!object || earlier->offset == holder->offset))
			return false;
	return true;
}

static struct account account_for(struct survey *survey, const struct references *references,
				  const struct buffer *buffer)
{
	struct account ret = { .known = (int64_t)nr_descriptors(references, buffer->holders->inode) };

	for (size_t i = 0; i < buffer->nr; i++) {
		const struct holder *holder = &buffer->holders[i];
		bool here = is_here(survey, buffer, holder);

		if (holder->is_descriptor)
			continue;
		ret.known += holder->bo != NO_BO || here ? 1 : 3;
		ret.nr_bos += here && holder->bo != NO_BO;
		ret.nr_handles += here && holder->bo == NO_BO;
		if (here && holder->bo != NO_BO)
			ret.known += peers_references(survey, holder);
		ret.known += is_first_bo_there(survey, buffer, i, true);
		ret.nr_other_gpus += is_first_bo_there(survey, buffer, i, false);
	}
	return ret;
}

/* ---- strangers ---- */

static int add_stranger(struct references *references, const struct stranger *stranger)
{
	struct stranger *grown = array_grow(references->strangers, references->nr_strangers, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[references->nr_strangers++] = *stranger;
	references->strangers = grown;
	return 0;
}

static int add_stranger_handle(struct references *references, struct stranger stranger, int fd, uint32_t handle)
{
	struct gem_info info;

	/* It runs, and may have closed it. */
	if (gem_ask(fd, handle, &info))
		return 0;
	stranger.size = info.size;
	stranger.is_mappable = !gem_offset(fd, handle, &stranger.offset);
	return add_stranger(references, &stranger);
}

static int add_stranger_file(struct references *references, const struct stranger *stranger, int fd)
{
	_cleanup_free_ struct gem_entry *entries = NULL;
	size_t nr = 0;
	int err = gem_list(fd, &entries, &nr);

	if (err == -EINVAL) {
		err = 0;
		for (uint32_t handle = 1; !err && handle <= MAX_TRIED_HANDLE; handle++)
			err = add_stranger_handle(references, *stranger, fd, handle);
		return err;
	}
	for (size_t i = 0; !err && i < nr; i++)
		err = add_stranger_handle(references, *stranger, fd, entries[i].handle);
	return err;
}

static int add_stranger_task(const struct survey *survey, struct references *references, pid_t pid)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	_cleanup_free_ int *fds = NULL;
	size_t nr = 0;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	/* It may have ended. */
	if (pidfd < 0 || list_numbers(AT_FDCWD, path, &fds, &nr))
		return 0;
	for (size_t i = 0; i < nr; i++) {
		struct stranger stranger = { .pid = pid };
		_cleanup_close_ int fd = -1;
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fds[i]);
		if (stat(path, &st) || !device_is_render_node(&st))
			continue;
		stranger.minor = minor(st.st_rdev);
		if (topology_find_minor(survey->request->machine, stranger.minor) < 0)
			continue;
		fd = (int)syscall(SYS_pidfd_getfd, pidfd, fds[i], 0);
		err = fd < 0 ? 0 : add_stranger_file(references, &stranger, fd);
		if (err)
			return err;
	}
	return 0;
}

static bool is_dumped(const struct task_files *files, pid_t pid)
{
	for (size_t i = 0; i < files->nr_pids; i++)
		if (files->pids[i] == pid)
			return true;
	return false;
}

static int read_strangers(const struct survey *survey, struct references *references)
{
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0;
	int err = list_numbers(AT_FDCWD, "/proc", &pids, &nr);

	references->has_strangers = true;
	for (size_t i = 0; !err && i < nr; i++)
		if (pids[i] != getpid() && !is_dumped(survey->request->files, pids[i]))
			err = add_stranger_task(survey, references, pids[i]);
	return err;
}

/* A process that might hold the buffer by a handle, or 0. */
static pid_t find_stranger(const struct survey *survey, const struct references *references, const struct buffer *buffer)
{
	const struct holder *holder = buffer->holders;
	uint64_t size = holder->bo == NO_BO ? 0 : holder_process(survey, holder)->state->bos[holder->bo].size;

	for (size_t i = 0; i < references->nr_strangers; i++) {
		const struct stranger *stranger = &references->strangers[i];

		if (survey_same_device(survey, stranger->minor, buffer->minor) &&
		    (stranger->is_mappable ? stranger->offset == holder->offset : stranger->size == size))
			return stranger->pid;
	}
	return 0;
}

/* ---- what is settled by asking ---- */

/* Whether the object has a handle: one more adds a reference for the file, and one for the object where it had none. */
static int ask_object(struct survey *survey, const struct buffer *buffer, int64_t *ret)
{
	int fd = survey_scratch(survey, buffer->minor);
	int64_t before = 0, after = 0;
	uint32_t handle;
	int err = fd < 0 ? fd : read_count(buffer->dmabuf_fd, &before);

	if (!err)
		err = gem_import(fd, buffer->dmabuf_fd, &handle);
	if (err)
		return err;
	err = read_count(buffer->dmabuf_fd, &after);
	gem_close(fd, handle);
	*ret = 2 - (after - before);
	return err;
}

/* How many references one more import into the KFD makes on the GPU of a render node. */
static int ask_import(struct survey *survey, const struct buffer *buffer, uint32_t minor_number, int64_t *ret)
{
	const struct topology *machine = survey->request->machine;
	int node = topology_find_minor(machine, minor_number), fd = survey_scratch(survey, minor_number);
	int64_t before = 0, after = 0;
	uint64_t handle;
	uint32_t gpu_id;
	int err;

	if (fd < 0 || node < 0)
		return fd < 0 ? fd : node;
	gpu_id = topology_gpu_id(machine->nodes[node]);
	err = kfd_acquire_vm(survey->kfd, gpu_id, fd);
	if (err == -EBUSY || err == -EINVAL)
		err = 0; /* it has one by now */
	if (!err)
		err = read_count(buffer->dmabuf_fd, &before);
	if (!err)
		err = kfd_import_dmabuf(survey->kfd, gpu_id, 0, buffer->dmabuf_fd, &handle);
	if (err)
		return err;
	err = read_count(buffer->dmabuf_fd, &after);
	kfd_free(survey->kfd, handle);
	*ret = after - before;
	return err;
}

/*
 * The references of the KFD's own files. When nobody has a handle, the object's is that of the KFD's file, and a
 * stranger's is looked for: the import is not tried there, since the object would lose its last handle when it is freed
 * again, and Linux (6.12, 7.2) tells importers on other GPUs of a move only while there is one.
 */
static int ask_clients(struct survey *survey, const struct buffer *buffer, const struct account *account, int64_t object,
		       int64_t *ret)
{
	int64_t step = 0;
	int err = 0;

	*ret = account->nr_bos ? object : 0;
	if (account->nr_bos && account->nr_handles) {
		err = ask_import(survey, buffer, buffer->minor, &step);
		*ret = 2 - step;
	}
	for (size_t i = 0; !err && i < buffer->nr; i++) {
		const struct holder *holder = &buffer->holders[i];

		if (!is_first_bo_there(survey, buffer, i, false))
			continue;
		err = ask_import(survey, buffer, holder->minor, &step);
		/* Without a handle, the import makes an object and a handle of its own. */
		*ret += step == 1 ? 2 : 0;
	}
	return err;
}

/* ---- the verdict ---- */

static int refuse(const struct survey *survey, const struct buffer *buffer, int64_t count, int64_t known, pid_t pid)
{
	char who[64] = "a process that is not dumped (or a message under way)";

	if (pid)
		snprintf(who, sizeof(who), "pid %d, which is not dumped", pid);
	pr_err("pid %d: shares a buffer of renderD%u with %s: %" PRId64 " references, of which the dump has %" PRId64
	       ": dump both together, or end the sharing first (KFD_SHARING_CHECK=0 dumps it as if it were not shared)",
	       holder_process(survey, buffer->holders)->pid, buffer->minor, who, count, known);
	return -EOPNOTSUPP;
}

static int settle(struct survey *survey, struct references *references, const struct buffer *buffer,
		  const struct account *account, int64_t count)
{
	int64_t rest = count - account->known, object = 1, clients = 0;
	int err = account->nr_handles ? 0 : ask_object(survey, buffer, &object);
	pid_t stranger = 0;

	if (!err && rest == object)
		return 0;
	if (!err)
		err = ask_clients(survey, buffer, account, object, &clients);
	if (!err && !account->nr_handles && object && rest == object + clients) {
		err = references->has_strangers ? 0 : read_strangers(survey, references);
		stranger = err ? 0 : find_stranger(survey, references, buffer);
	}
	if (err) {
		pr_err("pid %d: cannot tell who else holds a buffer of renderD%u: %s",
		       holder_process(survey, buffer->holders)->pid, buffer->minor, strerror(-err));
		return err;
	}
	if (stranger)
		return refuse(survey, buffer, count, count - 1, stranger);
	return rest == object + clients ? 0 : refuse(survey, buffer, count, account->known + object + clients, 0);
}

static void nap(void)
{
	const struct timespec time = { .tv_nsec = SETTLE_NS };

	nanosleep(&time, NULL);
}

int references_check(struct survey *survey, struct references *references, const struct buffer *buffer)
{
	const struct account account = account_for(survey, references, buffer);
	int64_t most = account.known + 1 + (account.nr_bos > 0) + 2 * (int64_t)account.nr_other_gpus, count = 0;
	int err = read_count(buffer->dmabuf_fd, &count);

	for (unsigned int tries = 0; !err && count > most && tries < SETTLE_TRIES; tries++) {
		nap();
		err = read_count(buffer->dmabuf_fd, &count);
	}
	if (err) {
		pr_err("pid %d: cannot count the references to a buffer of renderD%u: %s",
		       holder_process(survey, buffer->holders)->pid, buffer->minor, strerror(-err));
		return err;
	}
	if (count > most)
		return refuse(survey, buffer, count, most, 0);
	return settle(survey, references, buffer, &account, count);
}
