// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is known of a suspended process, in a file of its own below /run, which lasts as long as processes can: until
 * the machine stops. A new state takes the place of the one before as a whole.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "content/content.h"
#include "image/image.h"
#include "suspend/internal.h"

#define RECORDS	 "/run/amdgpu-checkpoint"
#define MAGIC	 "amdgpusp"
#define VERSION	 1
#define MAX_SIZE (4ull << 30)

static void record_path(pid_t pid, const char *suffix, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, RECORDS "/%d%s", pid, suffix);
}

/* The parts behind the head, in their order. */
struct record_part {
	void **data;
	uint64_t size;
};
#define NR_PARTS 5

static void record_parts(struct process *process, struct record_part parts[NR_PARTS])
{
	const struct record_head *head = &process->head;
	struct kfd_state *state = &process->gpu.state;

	parts[0] = (struct record_part){ (void **)&state->devices, head->nr_devices * sizeof(*state->devices) };
	parts[1] = (struct record_part){ (void **)&state->bos, head->nr_bos * sizeof(*state->bos) };
	parts[2] = (struct record_part){ (void **)&state->priv_data, head->priv_size };
	parts[3] = (struct record_part){ (void **)&process->goes, head->nr_bos * sizeof(*process->goes) };
	parts[4] = (struct record_part){ (void **)&process->vmas, head->nr_vmas * sizeof(*process->vmas) };
}

#define CRC_FROM offsetof(struct record_head, parts_crc)

static uint32_t head_crc(const struct record_head *head)
{
	return crc32c(0, (const uint8_t *)head + CRC_FROM, sizeof(*head) - CRC_FROM);
}

static uint32_t parts_crc(struct process *process)
{
	struct record_part parts[NR_PARTS];
	uint32_t crc = 0;

	record_parts(process, parts);
	for (size_t i = 0; i < NR_PARTS; i++)
		crc = crc32c(crc, *parts[i].data, parts[i].size);
	return crc;
}

/* ---- writing ---- */

static int write_parts(int fd, struct process *process)
{
	struct record_part parts[NR_PARTS];
	int err = write_all(fd, &process->head, sizeof(process->head));

	record_parts(process, parts);
	for (size_t i = 0; !err && i < NR_PARTS; i++)
		err = write_all(fd, *parts[i].data, parts[i].size);
	return err;
}

static int write_file(const char *path, struct process *process)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int err = fd < 0 ? -errno : write_parts(fd, process);

	if (!err && fsync(fd))
		err = -errno;
	return err;
}

int record_write(struct process *process)
{
	const struct kfd_state *state = &process->gpu.state;
	struct record_head *head = &process->head;
	char path[PATH_MAX], made[PATH_MAX];
	int err = 0;

	memcpy(head->magic, MAGIC, sizeof(head->magic));
	head->version = VERSION;
	head->nr_devices = state->nr_devices;
	head->nr_bos = state->nr_bos;
	head->nr_objects = state->nr_objects;
	head->priv_size = state->priv_data ? state->priv_size : 0;
	if (!state->devices)
		head->nr_devices = head->nr_bos = head->nr_vmas = 0;
	head->parts_crc = parts_crc(process);
	head->crc = head_crc(head);
	record_path(head->pid, "", path);
	record_path(head->pid, ".new", made);
	if (mkdir(RECORDS, 0700) && errno != EEXIST)
		err = -errno;
	if (!err)
		err = write_file(made, process);
	if (!err && rename(made, path))
		err = -errno;
	return err ? fail(err, "pid %d: cannot write %s: %m", head->pid, path) : 0;
}

int record_set(struct process *process, enum phase phase)
{
	process->head.phase = phase;
	process->head.thread = process->inject.own;
	return record_write(process);
}

/* ---- reading ---- */

static int fail_record(const char *path, int err)
{
	return fail(err == -ENODATA ? -EBADMSG : err, "%s: is damaged, or of another version of amdgpu-checkpoint: %m",
		    path);
}

static int read_part(int fd, struct record_part *part, uint64_t *left)
{
	if (part->size > *left)
		return -ENODATA;
	*left -= part->size;
	*part->data = calloc(1, part->size + 1);
	return *part->data ? read_all(fd, *part->data, part->size) : -ENOMEM;
}

/* *ret_fd is the caller's. */
static int open_record(pid_t pid, char path[PATH_MAX], int *ret_fd, struct record_head *head)
{
	int err;

	record_path(pid, "", path);
	*ret_fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_fd < 0)
		return errno == ENOENT ? -ENOENT : fail(-errno, "%s: %m", path);
	err = read_all(*ret_fd, head, sizeof(*head));
	if (!err && (memcmp(head->magic, MAGIC, sizeof(head->magic)) || head->version != VERSION ||
		     head_crc(head) != head->crc))
		err = -EBADMSG;
	return err ? fail_record(path, err) : 0;
}

int record_read_head(pid_t pid, struct record_head *ret)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];

	return open_record(pid, path, &fd, ret);
}

static int fill_parts(const char *path, int fd, struct process *process)
{
	struct record_part parts[NR_PARTS];
	struct stat st;
	uint64_t left;
	int err = fstat(fd, &st) ? -errno : 0;

	left = (uint64_t)st.st_size - sizeof(process->head);
	record_parts(process, parts);
	for (size_t i = 0; !err && i < NR_PARTS; i++)
		err = read_part(fd, &parts[i], &left);
	if (err || left || parts_crc(process) != process->head.parts_crc)
		return fail_record(path, err ? err : -EBADMSG);
	return 0;
}

int record_read(struct process *process)
{
	const struct record_head *head = &process->head;
	struct kfd_state *state = &process->gpu.state;
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	int err = open_record(head->pid, path, &fd, &process->head);

	if (!err)
		err = fill_parts(path, fd, process);
	if (err)
		return err;
	state->pid = (uint32_t)task_own_pid(head->pid);
	state->nr_devices = head->nr_devices;
	state->nr_bos = state->nr_records = head->nr_bos;
	state->nr_objects = head->nr_objects;
	state->priv_size = head->priv_size;
	for (size_t i = 0; i < head->nr_bos; i++)
		state->bos[i].dmabuf_fd = KFD_NO_FD;
	return 0;
}

bool record_is_alive(const struct record_head *head)
{
	return process_start(head->pid) == head->start;
}

/* ---- the end ---- */

static void remove_contents(const struct record_head *head)
{
	_cleanup_close_ int dir = open(head->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	DIR *list = dir < 0 ? NULL : fdopendir(dup(dir));

	while (list && (entry = readdir(list))) {
		struct image_name name;

		if (image_name_parse(entry->d_name, &name) && name.kind == IMAGE_PAGES && name.id == head->pid)
			unlinkat(dir, entry->d_name, 0);
	}
	if (list)
		closedir(list);
	/* Others' contents keep it. */
	if (head->made_dir)
		rmdir(head->dir);
}

void record_remove(const struct record_head *head)
{
	char path[PATH_MAX];

	record_path(head->pid, "", path);
	remove_contents(head);
	if (unlink(path) && errno != ENOENT)
		pr_warn("%s: cannot be removed: %s\n", path, strerror(errno));
}

int suspend_list(int **ret, size_t *ret_nr)
{
	int err = list_numbers(AT_FDCWD, RECORDS, ret, ret_nr);

	return err == -ENOENT ? 0 : (err ? fail(err, "%s: %m", RECORDS) : 0);
}

static enum suspend_state state_of(const struct record_head *head)
{
	if (!record_is_alive(head))
		return STATE_GONE;
	return head->phase == PHASE_SUSPENDED ? STATE_SUSPENDED : STATE_HALF;
}

/* Whether no cgroup of the process is frozen, but by its suspend. */
static bool is_thawed(const struct record_head *head)
{
	bool is_own = head->is_frozen && !head->was_frozen;
	char path[PATH_MAX];
	bool more = cgroup_of(head->pid, path);

	for (; more; more = cgroup_above(path), is_own = false)
		if (!is_own && cgroup_is_frozen(path))
			return false;
	return true;
}

int suspend_ask(pid_t pid, struct suspend_info *ret)
{
	struct record_head head;
	int err = record_read_head(pid, &head);

	*ret = (struct suspend_info){ .report = { .pid = pid } };
	if (err == -ENOENT)
		return process_start(pid) ? 0 : fail(-ESRCH, "pid %d: there is no such process", pid);
	if (err)
		return err;
	ret->state = state_of(&head);
	ret->since = head.since;
	memcpy(ret->dir, head.dir, sizeof(ret->dir));
	memcpy(ret->follows, head.follows, sizeof(ret->follows));
	ret->is_thawed = is_thawed(&head);
	ret->report = head.report;
	return 0;
}
