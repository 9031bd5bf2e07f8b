// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is known of a suspended process, in a file of its own below /run, which lasts as long as processes can: until
 * the machine stops. A new state takes the place of the one before as a whole.
 *
 * A record's first part is the same in all versions. It says which process it is: pids mean something in one pid
 * namespace, start times in one time namespace, both in one boot. From elsewhere nobody can tell whether the process is
 * there, and the record is left alone. A file's name has the number of the suspend: no two records have the same name,
 * and what is removed is what was read.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "content/content.h"
#include "suspend/internal.h"

#define RECORDS	      RUN_ROOT SUSPEND_RUN
#define SHOWN(path)   ((path) + strlen(RUN_ROOT)) /* as the user knows it */
#define MAGIC	      "amdgpurc"
#define VERSION	      3
#define NEW	      ".new"
#define COUNT	      ".count"
#define STALE_SECONDS 60 /* a record is written in much less */

static void record_path(const struct record_head *head, const char *suffix, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, RECORDS "/%d.%016" PRIx64 "%s", head->pid, head->id, suffix);
}

/* The parts behind the head, in their order. */
struct record_part {
	void **data;
	uint64_t size;
};
#define NR_PARTS 7

static void record_parts(struct process *process, struct record_part parts[NR_PARTS])
{
	const struct record_head *head = &process->head;
	struct kfd_state *state = &process->gpu.state;

	parts[0] = (struct record_part){ (void **)&state->devices, head->nr_devices * sizeof(*state->devices) };
	parts[1] = (struct record_part){ (void **)&state->bos, head->nr_bos * sizeof(*state->bos) };
	parts[2] = (struct record_part){ (void **)&state->priv_data, head->priv_size };
	parts[3] = (struct record_part){ (void **)&process->plan, head->nr_bos * sizeof(*process->plan) };
	parts[4] = (struct record_part){ (void **)&process->vmas, head->nr_vmas * sizeof(*process->vmas) };
	parts[5] = (struct record_part){ (void **)&process->handles, head->nr_handles * sizeof(*process->handles) };
	parts[6] = (struct record_part){ (void **)&process->mappings, head->nr_mappings * sizeof(*process->mappings) };
}

/* Of the bytes between two fields of the head. */
#define CRC_OF(head, from, to) \
	crc32c(0, (const uint8_t *)(head) + offsetof(struct record_head, from), (to) - offsetof(struct record_head, from))

static uint32_t fixed_crc(const struct record_head *head)
{
	return CRC_OF(head, pid, RECORD_FIXED);
}

static uint32_t own_crc(const struct record_head *head)
{
	return CRC_OF(head, parts_crc, sizeof(*head));
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

/* ---- which process it is ---- */

uint64_t suspend_new_id(void)
{
	uint64_t id = 0;

	while (!id && getrandom(&id, sizeof(id), 0) != sizeof(id))
		continue;
	return id;
}

static uint64_t namespace_inode(const char *name)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	return stat_quietly(AT_FDCWD, path, &st) ? 0 : st.st_ino;
}

/* Namespaces, boot and writer, as they are here. All that is known of processes is from /proc. */
static int fill_here(struct record_head *head)
{
	static const char boot_id[] = "/proc/sys/kernel/random/boot_id";
	_cleanup_close_ int fd = -1;
	char self[32] = "";
	int err;

	if (readlink("/proc/self", self, sizeof(self) - 1) < 0 || atoi(self) != getpid())
		return fail(-EOPNOTSUPP, "/proc is of another pid namespace: mount that of this one (unshare --mount-proc)");
	head->pid_ns = namespace_inode("pid");
	head->time_ns = namespace_inode("time");
	snprintf(head->writer, sizeof(head->writer), "%s", plugin_version);
	memset(head->boot, 0, sizeof(head->boot));
	if (!head->pid_ns)
		return fail(-ENOENT, "/proc: has no namespaces: %m");
	fd = open(boot_id, O_RDONLY | O_CLOEXEC);
	err = fd < 0 ? -errno : read_text(fd, head->boot, sizeof(head->boot));
	head->boot[strcspn(head->boot, "\n")] = '\0';
	return err ? fail(err, "%s: %m", boot_id) : 0;
}

int record_begin(struct record_head *head, uint64_t id)
{
	head->id = id;
	head->since = time(NULL);
	head->start = process_start(head->pid);
	head->report.pid = head->pid;
	return fill_here(head);
}

/* 0, or why it cannot be told here whether the process is there: -EXDEV, pids are of another namespace; -ESTALE. */
static int compare_here(const struct record_head *head, const struct record_head *here)
{
	if (head->pid_ns != here->pid_ns)
		return -EXDEV;
	return strncmp(head->boot, here->boot, sizeof(head->boot)) || head->time_ns != here->time_ns ? -ESTALE : 0;
}

static int fail_elsewhere(const struct record_head *head, const struct record_head *here)
{
	int err = compare_here(head, here);
	bool is_boot = strncmp(head->boot, here->boot, sizeof(head->boot));
	char path[PATH_MAX];

	record_path(head, "", path);
	if (is_boot)
		return fail(err,
			    "pid %d: a process of this number was suspended during another boot, or on another machine: if "
			    "that is over, remove %s",
			    head->pid, SHOWN(path));
	return fail(err,
		    "pid %d: a process of this number was suspended in another %s namespace: run amdgpu-checkpoint there (%s)",
		    head->pid, err == -EXDEV ? "pid" : "time", SHOWN(path));
}

/* One that was killed may have a parent that is suspended, and does not wait for it. */
bool process_is_alive(pid_t pid)
{
	return process_start(pid) && (!task_has_ended(pid) || proc_status(pid, "Threads", 10) > 1);
}

bool record_is_alive(const struct record_head *head)
{
	return process_start(head->pid) == head->start && process_is_alive(head->pid);
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

/* Fills in what the head says of itself and of the parts. */
static void seal(struct process *process)
{
	const struct kfd_state *state = &process->gpu.state;
	struct record_head *head = &process->head;

	memcpy(head->magic, MAGIC, sizeof(head->magic));
	head->version = VERSION;
	head->nr_devices = state->nr_devices;
	head->nr_bos = state->nr_bos;
	head->nr_objects = state->nr_objects;
	head->priv_size = state->priv_data ? state->priv_size : 0;
	if (!state->devices)
		head->nr_devices = head->nr_bos = head->nr_vmas = head->nr_handles = head->nr_mappings = 0;
	head->parts_crc = parts_crc(process);
	head->own_crc = own_crc(head);
	head->crc = fixed_crc(head);
}

int record_write(struct process *process)
{
	const struct record_head *head = &process->head;
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX], made[PATH_MAX];
	int err;

	seal(process);
	record_path(head, "", path);
	record_path(head, NEW, made);
	fd = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	err = fd < 0 ? -errno : write_parts(fd, process);
	if (!err && fsync(fd))
		err = -errno;
	if (!err && rename(made, path))
		err = -errno;
	return err ? fail(err, "pid %d: cannot write %s: %m", head->pid, SHOWN(path)) : 0;
}

int record_set(struct process *process, enum phase phase)
{
	process->head.phase = phase;
	process->head.thread = process->inject.own;
	return record_write(process);
}

/* Other than a record it is written in place: a number as a whole, for which there is room once it was written. */
int record_write_count(const struct process *process, uint32_t nr)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];

	record_path(&process->head, COUNT, path);
	fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && pwrite(fd, &nr, sizeof(nr), 0) == sizeof(nr))
		return 0;
	return fail(errno_or_eio(), "pid %d: cannot write %s: %m", process->head.pid, SHOWN(path));
}

/* ---- reading ---- */

int record_read_count(const struct process *process, uint32_t *ret)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	int err;

	record_path(&process->head, COUNT, path);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	err = fd < 0 ? -errno : read_all(fd, ret, sizeof(*ret));
	/* Killed between the two calls that make it: nothing has changed. */
	if (err == -ENODATA)
		return -ENOENT;
	return err ? fail(err, "%s: %m", SHOWN(path)) : 0;
}

static int fail_damaged(const struct record_head *head, int err)
{
	char path[PATH_MAX];

	record_path(head, "", path);
	return fail(err == -ENODATA ? -EBADMSG : err, "pid %d: its record %s is damaged: %m", head->pid, SHOWN(path));
}

/* @ret: pid and id, by the file's name. A head of another version is zero behind its fixed part. *ret_fd: the caller's. */
static int read_head(struct record_head *ret, int *ret_fd)
{
	const struct record_head name = *ret;
	char path[PATH_MAX];
	int err;

	record_path(&name, "", path);
	*ret_fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_fd < 0)
		return errno == ENOENT ? -ENOENT : fail(-errno, "%s: %m", SHOWN(path));
	memset(ret, 0, sizeof(*ret));
	err = read_all(*ret_fd, ret, RECORD_FIXED);
	if (!err && (memcmp(ret->magic, MAGIC, sizeof(ret->magic)) || fixed_crc(ret) != ret->crc ||
		     ret->pid != name.pid || ret->id != name.id))
		err = -EBADMSG;
	if (!err && ret->version == VERSION)
		read_all(*ret_fd, (uint8_t *)ret + RECORD_FIXED, sizeof(*ret) - RECORD_FIXED);
	return err ? fail_damaged(&name, err) : 0;
}

int record_check(const struct record_head *head)
{
	if (head->version != VERSION)
		return fail(-EPROTO,
			    "pid %d: was suspended by amdgpu-checkpoint %s, whose records this one (%s) cannot read: resume it "
			    "with that version",
			    head->pid, head->writer, plugin_version);
	return own_crc(head) == head->own_crc ? 0 : fail_damaged(head, -EBADMSG);
}

/* The records of a process (0: of all), by their names alone. */
static int list_names(pid_t pid, struct record_head **ret, size_t *ret_nr)
{
	int fd = open(RECORDS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat st;
	int err = dir || errno == ENOENT ? 0 : fail(-errno, SUSPEND_RUN ": %m");

	if (!dir && access("/proc/self", F_OK))
		return fail(-errno, "/proc: is not there, by which records are found: %m");
	if (dir && (fstat(fd, &st) || st.st_uid != geteuid()))
		return fail(-EPERM, SUSPEND_RUN ": belongs to another user");
	while (dir && !err && (entry = readdir(dir))) {
		struct record_head head = { 0 };
		int end = 0;

		if (sscanf(entry->d_name, "%d.%16" SCNx64 "%n", &head.pid, &head.id, &end) == 2 && !entry->d_name[end] &&
		    (!pid || head.pid == pid))
			err = array_add(*ret, *ret_nr, head);
	}
	return err;
}

/* How much a record says of its process, where there are several. */
enum worth { WORTH_NOTHING, WORTH_ELSEWHERE, WORTH_DAMAGED, WORTH_GONE, WORTH_ALIVE };

static enum worth look_at(struct record_head *head, const struct record_head *here)
{
	_cleanup_close_ int fd = -1;
	int err = read_head(head, &fd);

	if (err)
		return err == -ENOENT ? WORTH_NOTHING : WORTH_DAMAGED;
	if (compare_here(head, here))
		return WORTH_ELSEWHERE;
	return record_is_alive(head) ? WORTH_ALIVE : WORTH_GONE;
}

int record_find(pid_t pid, struct record_head *ret)
{
	_cleanup_free_ struct record_head *heads = NULL;
	struct record_head here = { 0 };
	enum worth best = WORTH_NOTHING;
	size_t nr = 0;
	int err = list_names(pid, &heads, &nr);

	if (!err && nr)
		err = fill_here(&here);
	for (size_t i = 0; !err && i < nr; i++) {
		enum worth worth = look_at(&heads[i], &here);

		if (worth > best)
			*ret = heads[i];
		best = worth > best ? worth : best;
	}
	if (err)
		return err;
	if (best == WORTH_DAMAGED)
		return -EBADMSG;
	fail_clear();
	if (best == WORTH_NOTHING)
		return -ENOENT;
	return best == WORTH_ELSEWHERE ? fail_elsewhere(ret, &here) : 0;
}

static int load_parts(struct process *process, const uint8_t *data, uint64_t left)
{
	struct record_part parts[NR_PARTS];

	record_parts(process, parts);
	for (size_t i = 0; i < NR_PARTS; i++) {
		if (parts[i].size > left)
			return -EBADMSG;
		*parts[i].data = calloc(1, parts[i].size + 1);
		if (!*parts[i].data)
			return -ENOMEM;
		memcpy(*parts[i].data, data, parts[i].size);
		data += parts[i].size;
		left -= parts[i].size;
	}
	return left || parts_crc(process) != process->head.parts_crc ? -EBADMSG : 0;
}

static int fill_state(const struct record_head *head, struct kfd_state *state)
{
	state->nr_devices = head->nr_devices;
	state->nr_bos = state->nr_records = head->nr_bos;
	state->nr_objects = head->nr_objects;
	state->priv_size = head->priv_size;
	for (size_t i = 0; i < head->nr_bos; i++)
		state->bos[i].dmabuf_fd = KFD_NO_FD;
	return records_read(state, head->nr_devices);
}

int record_read(struct process *process)
{
	const struct record_head *head = &process->head;
	_cleanup_free_ uint8_t *data = NULL;
	_cleanup_close_ int fd = -1;
	uint64_t size = 0;
	struct stat st;
	int err = record_find(head->pid, &process->head);

	if (!err)
		err = read_head(&process->head, &fd);
	if (!err)
		err = record_check(head);
	if (err)
		return err;
	err = fstat(fd, &st) ? -errno : (uint64_t)st.st_size < sizeof(*head) ? -EBADMSG : 0;
	if (!err) {
		size = (uint64_t)st.st_size - sizeof(*head);
		data = malloc(size + 1);
		err = data ? read_all(fd, data, size) : -ENOMEM;
	}
	if (!err)
		err = load_parts(process, data, size);
	if (!err)
		err = fill_state(head, &process->gpu.state);
	if (err)
		return fail_damaged(head, err);
	process->gpu.state.pid = (uint32_t)task_own_pid(head->pid);
	return 0;
}

void process_done(struct process *process)
{
	hold_end(&process->hold);
	cleanup_close(&process->gpu.file.fd);
	gpu_process_done(&process->gpu);
	free(process->plan);
	free(process->vmas);
	free(process->handles);
	free(process->mappings);
	free(process->fds);
}

/* ---- what is in it ---- */

uint32_t record_first(const void *list, uint32_t nr, size_t size, size_t at, uint32_t key)
{
	uint32_t low = 0, high = nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (*(const uint32_t *)((const uint8_t *)list + middle * size + at) < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool record_frees_handles(const struct process *process)
{
	for (size_t i = 0; i < process->head.nr_handles; i++)
		if (process->handles[i].bo != NO_BO && process->plan[process->handles[i].bo])
			return true;
	return false;
}

uint64_t freed_on(const struct kfd_state *state, const uint8_t *plan, uint32_t gpu_id)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < state->nr_records; i++)
		if (plan[i] == BO_FREE && state->bos[i].gpu_id == gpu_id)
			bytes += state->bos[i].size;
	return bytes;
}

/* ---- in an image ---- */

int record_save(struct process *process, int fd)
{
	struct record_part parts[NR_PARTS];
	uint64_t size = sizeof(process->head);
	uint8_t prefix[LENGTH_PREFIX_BYTES];
	int err;

	seal(process);
	record_parts(process, parts);
	for (size_t i = 0; i < NR_PARTS; i++)
		size += parts[i].size;
	length_prefix_put(prefix, size);
	err = write_all(fd, prefix, sizeof(prefix));
	return err ? err : write_parts(fd, process);
}

#define ENDS(text) memchr(text, '\0', sizeof(text))

/* An image may come from anywhere, and a CRC proves nothing: what is an index, a count or a size here. */
static bool is_sound(const struct process *process)
{
	const struct record_head *head = &process->head;
	const struct kfd_state *state = &process->gpu.state;
	uint64_t bytes = LENGTH_PREFIX_BYTES;
	bool ret = ENDS(head->follows) && head->nr_devices <= ARRAY_SIZE(head->gpus) && head->nr_gpus <= ARRAY_SIZE(head->gpus);

	for (size_t i = 0; ret && i < head->nr_bos; i++)
		ret = process->plan[i] <= BO_FREE_FAILED && !add_overflows(bytes, state->bos[i].size, &bytes) &&
		      state->bos[i].share.metadata_size <= KFD_METADATA_MAX;
	for (size_t i = 0; ret && i < head->nr_vmas; i++)
		ret = process->vmas[i].bo < head->nr_bos && process->vmas[i].start < process->vmas[i].end;
	for (size_t i = 0; ret && i < head->nr_handles; i++)
		ret = process->handles[i].bo == NO_BO || process->handles[i].bo < head->nr_bos;
	for (size_t i = 0; ret && i < head->nr_mappings; i++)
		ret = process->mappings[i].of < head->nr_handles;
	return ret;
}

int record_load(const char *name, const uint8_t *data, size_t size, struct process *process)
{
	struct record_head *head = &process->head;
	int err = size < RECORD_FIXED ? -EBADMSG : 0;

	memcpy(head, data, size < sizeof(*head) ? size : sizeof(*head));
	if (!err && (memcmp(head->magic, MAGIC, sizeof(head->magic)) || fixed_crc(head) != head->crc || !ENDS(head->boot) ||
		     !ENDS(head->writer) || !ENDS(head->dir) || !ENDS(head->home)))
		err = -EBADMSG;
	if (!err && head->version != VERSION)
		return fail(-EOPNOTSUPP,
			    "image %s: is of a process that amdgpu-checkpoint %s has suspended, whose records this version (%s) "
			    "cannot read: restore it with that version",
			    name, head->writer, plugin_version);
	if (!err && (size < sizeof(*head) || own_crc(head) != head->own_crc))
		err = -EBADMSG;
	if (!err)
		err = load_parts(process, data + sizeof(*head), size - sizeof(*head));
	if (!err && !is_sound(process))
		err = -EBADMSG;
	if (!err)
		err = fill_state(head, &process->gpu.state);
	return err ? fail(err, "image %s: is damaged: %m", name) : 0;
}

bool record_cgroup(const struct record_head *head, char path[PATH_MAX])
{
	if (head->by_home)
		return snprintf(path, PATH_MAX, "%s", head->home) < PATH_MAX;
	return head->home[0] && snprintf(path, PATH_MAX, "%s/amdgpu-suspended-%d", head->home, head->pid) < PATH_MAX;
}

int record_remove_cgroup(const struct record_head *head)
{
	char path[PATH_MAX];

	if (head->by_home && !record_is_alive(head))
		cgroup_freeze(head->home, false);
	if (head->by_home || !record_cgroup(head, path) || !rmdir(path) || errno == ENOENT)
		return 0;
	return -errno;
}

/* ---- all records ---- */

int suspend_list(uint64_t id, int **ret, size_t *ret_nr)
{
	_cleanup_free_ struct record_head *heads = NULL;
	size_t nr = 0;
	int err = list_names(0, &heads, &nr);

	for (size_t i = 0; !err && i < nr; i++)
		if ((!id || heads[i].id == id) && !numbers_have(*ret, *ret_nr, heads[i].pid))
			err = array_add(*ret, *ret_nr, heads[i].pid);
	if (!err && *ret_nr)
		qsort(*ret, *ret_nr, sizeof(**ret), compare_u32);
	return err;
}

/* The processes of a suspend need its directory, also where they have no data. */
static void remove_dir(const struct record_head *head)
{
	_cleanup_free_ struct record_head *heads = NULL;
	bool is_needed = !head->dir[0];
	size_t nr = 0;

	if (list_names(0, &heads, &nr))
		return;
	for (size_t i = 0; !is_needed && i < nr; i++) {
		_cleanup_close_ int fd = -1;
		struct record_head other;
		char path[PATH_MAX];

		if (heads[i].pid == head->pid && heads[i].id == head->id)
			continue;
		record_path(&heads[i], "", path);
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		is_needed = fd >= 0 && !read_all(fd, &other, RECORD_FIXED) && !strncmp(other.dir, head->dir, sizeof(other.dir));
	}
	if (!is_needed)
		datadir_remove(head);
}

int record_remove_data(struct process *process)
{
	struct record_head *head = &process->head;
	char path[PATH_MAX];

	datadir_remove_files(head);
	remove_dir(head);
	record_path(head, COUNT, path);
	unlink(path);
	head->dir[0] = '\0';
	return record_write(process);
}

/* The last record of a suspend removes the directory, too; of several at once, the one that looks last. */
void record_remove(const struct record_head *head)
{
	int err = record_remove_cgroup(head);
	char path[PATH_MAX];

	datadir_remove_files(head);
	/* Its threads are on their way out: the next command removes the rest. */
	if (err == -EBUSY && !record_is_alive(head))
		return;
	if (err && record_cgroup(head, path))
		pr_warn("%s: cannot be removed: %s\n", path, strerror(-err));
	remove_dir(head);
	record_path(head, NEW, path);
	unlink(path);
	record_path(head, COUNT, path);
	unlink(path);
	record_path(head, "", path);
	if (unlink(path) && errno != ENOENT)
		pr_warn("%s: cannot be removed: %s\n", SHOWN(path), strerror(errno));
	remove_dir(head);
}

void suspend_clean(void)
{
	_cleanup_free_ struct record_head *heads = NULL;
	_cleanup_closedir_ DIR *dir = NULL;
	struct record_head here = { 0 };
	struct dirent *entry;
	struct stat st;
	size_t nr = 0;
	int fd;

	if (!fill_here(&here) && !list_names(0, &heads, &nr))
		for (size_t i = 0; i < nr; i++)
			if (look_at(&heads[i], &here) == WORTH_GONE)
				record_remove(&heads[i]);
	/* What a command that was killed while it wrote has left. Nothing is known of it. */
	fd = open(RECORDS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	while (dir && (entry = readdir(dir))) {
		const char *suffix = strrchr(entry->d_name, '.');

		if (suffix && !strcmp(suffix, NEW) && !fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    st.st_mtime + STALE_SECONDS < time(NULL))
			unlinkat(fd, entry->d_name, 0);
	}
	fail_clear();
}

/* ---- states ---- */

static enum suspend_state state_of(const struct record_head *head)
{
	if (!record_is_alive(head))
		return STATE_GONE;
	if (head->phase == PHASE_LOCKED)
		return STATE_LOCKED;
	return head->phase == PHASE_SUSPENDED ? STATE_SUSPENDED : STATE_HALF;
}

bool process_is_frozen(pid_t pid, const char *own)
{
	char path[PATH_MAX];
	bool more = cgroup_of(pid, path);

	for (; more; more = cgroup_above(path))
		if (cgroup_is_frozen(path) && !(own && !strcmp(path, own)))
			return true;
	return false;
}

int suspend_ask(pid_t pid, struct suspend_info *ret)
{
	char path[PATH_MAX];
	struct record_head head;
	int err = record_find(pid, &head);
	bool is_marked = err == -ENOENT && task_find_mark(pid, -1) >= 0;

	*ret = (struct suspend_info){ .report = { .pid = pid } };
	/* A suspend may have begun between the two questions. */
	if (is_marked)
		err = record_find(pid, &head);
	if (err == -ENOENT && is_marked)
		return fail(-EXDEV,
			    "pid %d: is suspended, and nothing here says where its memory is: resume it where it was suspended (in "
			    "another pid namespace, in a container, or by another version)",
			    pid);
	if (err == -ENOENT)
		return process_start(pid) ? 0 : fail(-ESRCH, "pid %d: there is no such process", pid);
	if (err)
		return err;
	ret->state = state_of(&head);
	if (ret->state == STATE_GONE)
		record_remove(&head);
	else
		err = record_check(&head);
	ret->since = head.since;
	if (ret->state != STATE_GONE)
		memcpy(ret->dir, head.dir, sizeof(ret->dir));
	memcpy(ret->follows, head.follows, sizeof(ret->follows));
	/* A signal may still be on its way: what is frozen takes it when it is thawed. */
	ret->may_run = !process_is_frozen(pid, record_cgroup(&head, path) ? path : NULL) &&
		       !(head.by_stop && (task_state(pid) == 'T' || proc_has_pending(pid, SIGSTOP)));
	ret->report = head.report;
	if (ret->state == STATE_LOCKED)
		ret->report = (struct suspend_report){ 0 };
	/* Also where its record says otherwise: a dump that was killed together with its guard leaves it so. */
	if (ret->state == STATE_SUSPENDED || ret->state == STATE_LOCKED)
		ret->report.is_held_by_signal =
			head.report.is_held_by_signal || (cgroup_of(pid, path) && !cgroup_is_frozen(path));
	ret->report.pid = pid;
	if (!err && ret->state != STATE_GONE && !ret->report.reset_minor)
		err = resets_find(&head, &ret->report.reset_minor);
	return err;
}
