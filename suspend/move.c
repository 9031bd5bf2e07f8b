// SPDX-License-Identifier: GPL-2.0-only
/*
 * Suspended processes in a dump and a restore of criu: a process is dumped as it is, and restored as a suspended one.
 *
 * The images have what it still has on GPUs. Beside them are its record (amdgpu-suspended-PID.img) and the data of the
 * BOs that it has freed (amdgpu-freed-PID-GPU.img), which are second names of the same files, or copies; PID: its own.
 *
 * A dump: criu runs code in threads, and takes a process for stopped when a signal has stopped it. So before criu
 * seizes it, SIGSTOP takes the place of the frozen cgroup, and in the end both hold it. Its queues are stopped all the
 * time.
 *
 * A restore: RESTORE leaves queues stopped. Before RESUME would let them run PROCESS_INFO stops them, as a suspend
 * does. Then the process gets a record of this machine, which names its GPUs, render nodes, pid and directory; all else
 * in a record is the process' own. The data get a directory of a new suspend, since engines remove the images when the
 * restore is over.
 *
 * If criu dies here, SIGSTOP still stops the process, and it has a record, in a dump; in a restore it dies with criu,
 * and the next command removes its record and data.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "image/image.h"
#include "suspend/internal.h"

#define STOP_SECONDS 5
#define WAIT_USEC    1000

/* ---- what is in a record ---- */

/* BOs that it has not. */
static uint32_t count_freed(const struct process *process)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < process->gpu.state.nr_records; i++)
		nr += process->plan[i] == BO_FREE;
	return nr;
}

static uint32_t count_left(const struct process *process)
{
	return process->gpu.state.nr_records - count_freed(process);
}

/* The bytes of its file of data of a GPU: a length, then one buffer after the other. 0: there is none. */
static uint64_t data_bytes(const struct process *process, uint32_t gpu_id)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < process->gpu.state.nr_records; i++)
		if (process->plan[i] && process->gpu.state.bos[i].gpu_id == gpu_id)
			bytes += process->gpu.state.bos[i].size;
	return bytes ? bytes + LENGTH_PREFIX_BYTES : 0;
}

static int open_data(pid_t pid, int dir, const char *name, uint64_t bytes, int *ret_fd)
{
	struct stat st;

	*ret_fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (*ret_fd < 0)
		return fail(-errno, "pid %d: the data of its freed buffers are not there: %s: %m", pid, name);
	if (fstat(*ret_fd, &st))
		return fail(-errno, "pid %d: %s: %m", pid, name);
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size >= bytes)
		return 0;
	return fail(-EBADMSG, "pid %d: %s has %" PRIu64 " bytes, and the buffers that were freed have %" PRIu64, pid, name,
		    (uint64_t)st.st_size, bytes);
}

/* What is zero in a file takes no room in the other. */
static int copy_data(int from, int to)
{
	off_t at = 0, end = lseek(from, 0, SEEK_END), hole;
	int err = end < 0 || ftruncate(to, end) ? -errno : 0;

	while (!err && (at = lseek(from, at, SEEK_DATA)) >= 0) {
		hole = lseek(from, at, SEEK_HOLE);
		if (hole < 0 || lseek(to, at, SEEK_SET) < 0)
			return -errno;
		while (!err && at < hole) {
			ssize_t n = sendfile(to, from, &at, (size_t)(hole - at));

			err = n < 0 ? -errno : n ? 0 : -EIO;
		}
	}
	return err ? err : errno == ENXIO ? 0 : -errno;
}

/* Files of its data: in a directory, by names of a kind of image and of a pid. */
struct data_files {
	int dir;
	enum image_kind kind;
	pid_t pid;
	const char *place; /* for messages */
	bool needs_room;   /* it is the directory of a suspend: is there room for a copy? */
};

static void data_files_close(struct data_files *files)
{
	cleanup_close(&files->dir);
}

/*
 * All are there, and long enough; where nothing is freed, a resume needs none. Each gets a second name among those of @to
 * (NULL: none), or is copied.
 */
static int check_or_copy_data(const struct process *process, const struct data_files *from, const struct data_files *to)
{
	const struct kfd_state *state = &process->gpu.state;
	int err = 0;

	for (size_t i = 0; !err && count_freed(process) && i < state->nr_devices; i++) {
		uint32_t gpu_id = state->devices[i].user_gpu_id;
		uint64_t bytes = data_bytes(process, gpu_id);
		_cleanup_close_ int in = -1, out = -1;
		char name[IMAGE_NAME_MAX], copy[IMAGE_NAME_MAX];

		if (!bytes)
			continue;
		image_name_make(from->kind, from->pid, gpu_id, name);
		err = open_data(from->pid, from->dir, name, bytes, &in);
		if (err || !to)
			continue;
		image_name_make(to->kind, to->pid, gpu_id, copy);
		unlinkat(to->dir, copy, 0); /* of an earlier dump, whose images are replaced */
		if (!linkat(from->dir, name, to->dir, copy, 0))
			continue;
		err = to->needs_room ? datadir_check_room(to->place, to->dir, bytes) : 0;
		if (err)
			continue;
		out = openat(to->dir, copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		err = out < 0 ? -errno : copy_data(in, out);
		if (err)
			err = fail(err, "pid %d: the data of its freed buffers cannot be copied to %s (%s): %m",
				   from->pid, to->place, copy);
	}
	return err;
}

/* ---- a dump ---- */

/* A suspended task of the dump. */
struct dumped {
	struct process process;
	bool is_by_signal; /* SIGSTOP holds it, and no cgroup */
};

struct suspend_dump {
	struct dumped *list;
	size_t nr;
	bool has_looked; /* for tasks below the first */
};

struct suspend_dump *suspend_dump_new(void)
{
	return calloc(1, sizeof(struct suspend_dump));
}

static struct dumped *find_dumped(const struct suspend_dump *dump, pid_t pid)
{
	for (size_t i = 0; i < dump->nr; i++)
		if (dump->list[i].process.head.pid == pid)
			return &dump->list[i];
	return NULL;
}

static int refuse(pid_t pid, const char *why)
{
	return fail(-EOPNOTSUPP, "pid %d: %s: resume it first (\"amdgpu-checkpoint resume %d\")", pid, why, pid);
}

static int read_suspended(struct process *process)
{
	pid_t pid = process->head.pid;
	int err = record_read(process);

	if (err && err != -ENOENT)
		return err;
	if (err || !record_is_alive(&process->head))
		return refuse(pid, "is suspended, and its GPU memory is freed");
	if (process->head.phase == PHASE_LOCKED)
		return refuse(pid, "is locked");
	return process->head.phase == PHASE_SUSPENDED ? 0 : refuse(pid, "is in the middle of a suspend or resume");
}

static bool all_threads_stopped(pid_t pid)
{
	_cleanup_free_ int *tids = NULL;
	size_t nr = 0;
	bool ret = !proc_list(pid, "task", &tids, &nr);

	for (size_t i = 0; ret && i < nr; i++)
		ret = task_state(tids[i]) == 'T';
	return ret;
}

static int add_dumped(struct suspend_dump *dump, pid_t pid)
{
	const struct dumped one = { .process = { .head.pid = pid, .gpu.file = { .pid = pid, .fd = -1 } } };

	return array_add(dump->list, dump->nr, one);
}

void suspend_dump_stop(struct suspend_dump *dump, pid_t pid)
{
	_cleanup_free_ int *pids = NULL, *suspended = NULL;
	size_t nr = 0, nr_suspended = 0, first = dump->nr;
	int err = suspend_list(0, &suspended, &nr_suspended);
	double end;

	/* Most dumps have none, and to look for descendants is to look at all processes. */
	if (!err && !nr_suspended)
		return;
	err = array_add(pids, nr, pid);
	/* criu may have frozen those below by the time that it asks for them. */
	if (!err && !dump->has_looked)
		err = processes_add_descendants(&pids, &nr);
	dump->has_looked = true;
	for (size_t i = 0; !err && i < nr; i++) {
		struct process *process;

		if (find_dumped(dump, pids[i]) || task_find_mark(pids[i], -1) < 0 || add_dumped(dump, pids[i]))
			continue;
		process = &dump->list[dump->nr - 1].process;
		/* What fails is said when all are seized. */
		if (!hold_begin(pids[i], false, &process->hold) && !read_suspended(process) &&
		    !freezer_change_to_signal(process)) {
			dump->list[dump->nr - 1].is_by_signal = true;
			hold_end(&process->hold);
		} else {
			process_done(process);
			dump->nr--;
		}
	}
	end = monotonic_seconds() + STOP_SECONDS;
	for (size_t i = first; i < dump->nr; i++) {
		pid_t dumped = dump->list[i].process.head.pid;

		/* Who has frozen it has to thaw it before a signal can stop it. */
		while (!all_threads_stopped(dumped) && !process_is_frozen(dumped, NULL) && monotonic_seconds() < end)
			usleep(WAIT_USEC);
	}
	fail_clear();
}

/* All processes of a suspend come along, one of them with GPU memory: its image keeps older plugins from a restore. */
static int check_others(const struct suspend_dump *dump, const struct record_head *head, const int *tasks, size_t nr_tasks)
{
	_cleanup_free_ int *pids = NULL;
	bool any = false;
	size_t nr = 0;
	int err = suspend_list(head->id, &pids, &nr);

	for (size_t i = 0; !err && i < nr; i++) {
		struct record_head other;

		if (numbers_have(tasks, nr_tasks, pids[i])) {
			const struct dumped *one = find_dumped(dump, pids[i]);

			any |= one && one->process.head.report.has_kfd;
			continue;
		}
		err = record_find(pids[i], &other);
		if (!err && other.id == head->id && record_is_alive(&other))
			return fail(-EOPNOTSUPP,
				    "pid %d: was suspended together with pid %d, which is not in this dump: dump both, or resume "
				    "them first (\"amdgpu-checkpoint resume %d\")",
				    head->pid, pids[i], head->pid);
		err = err == -ENOENT ? 0 : err;
	}
	return err || any ? err : refuse(head->pid, "is suspended, and no process of that suspend has GPU memory");
}

/* Whether this is the file by which it was suspended. */
static bool is_its_file(const struct record_head *head, const struct task_file *file)
{
	return head->report.has_kfd && file->pid == head->pid && file->number == head->kfd_number && !file->minor;
}

static int check_dumped(const struct suspend_dump *dump, const struct dumped *one, const struct task_files *files, bool is_try)
{
	const struct record_head *head = &one->process.head;
	_cleanup_(data_files_close) struct data_files data = { .dir = -1, .kind = IMAGE_PAGES, .pid = head->pid };
	uint32_t minor = head->report.reset_minor;
	int err = check_others(dump, head, files->pids, files->nr_pids);
	bool has_file = !head->report.has_kfd;

	if (!err && !minor)
		err = resets_find(head, &minor);
	if (err)
		return err;
	/* Only a resume here says that it is lost. */
	if (minor)
		return refuse(head->pid, "is suspended, and the driver has reset its GPU since, by which what had stayed in "
					 "VRAM is lost");
	if (record_frees_handles(&one->process))
		return refuse(head->pid, "is suspended, and has freed memory of VMM (hipMallocAsync, hipMemCreate, expandable "
					 "segments), which cannot be dumped meanwhile");
	if (!is_try && criu_image_dir() < 0)
		return refuse(head->pid, "is suspended, and the data of its freed buffers cannot go into a stream of images");
	if (!is_try && !one->is_by_signal && !head->report.is_held_by_signal)
		return refuse(head->pid, "is suspended, and is held by a frozen cgroup that it could not leave (criu 4.0 or "
					 "later is needed)");
	for (size_t i = 0; i < files->count; i++)
		has_file |= is_its_file(head, &files->files[i]);
	if (!has_file)
		return refuse(head->pid, "is suspended, and its /dev/kfd is not among its files");
	err = count_freed(&one->process) ? datadir_open(head->dir, &data.dir) : 0;
	return err ? err : check_or_copy_data(&one->process, &data, NULL);
}

int suspend_dump_read(struct suspend_dump *dump, const struct task_files *files, bool is_try)
{
	int err = 0;

	for (size_t i = 0; !err && i < files->nr_pids; i++) {
		if (find_dumped(dump, files->pids[i]) || task_find_mark(files->pids[i], -1) < 0)
			continue;
		err = add_dumped(dump, files->pids[i]);
		if (!err)
			err = read_suspended(&dump->list[dump->nr - 1].process);
	}
	for (size_t i = 0; !err && i < dump->nr; i++)
		err = check_dumped(dump, &dump->list[i], files, is_try);
	return err;
}

bool suspend_dump_has(const struct suspend_dump *dump, pid_t pid)
{
	return find_dumped(dump, pid);
}

bool suspend_dump_has_file(const struct suspend_dump *dump, const struct task_file *file)
{
	const struct dumped *one = find_dumped(dump, file->pid);

	return one && is_its_file(&one->process.head, file);
}

/* As PROCESS_INFO would tell, which would stop the queues once more. */
void suspend_dump_counts(const struct suspend_dump *dump, struct gpu_process *process)
{
	const struct process *one = &find_dumped(dump, process->file.pid)->process;
	const struct kfd_state *before = &one->gpu.state;

	process->is_suspended = true;
	process->state.pid = before->pid;
	process->state.nr_devices = before->nr_devices;
	process->state.nr_bos = process->state.nr_records = count_left(one);
	process->state.nr_objects = before->nr_objects;
	process->state.priv_size = before->priv_size;
}

int suspend_dump_ask(const struct suspend_dump *dump, struct gpu_process *process)
{
	const struct process *one = &find_dumped(dump, process->file.pid)->process;

	return kfd_checkpoint_again(process->file.fd, process->file.pid, &one->gpu.state, count_left(one), 0, &process->state);
}

int suspend_dump_save(struct suspend_dump *dump)
{
	for (size_t i = 0; i < dump->nr; i++) {
		struct process *process = &dump->list[i].process;
		pid_t own_pid = task_own_pid(process->head.pid);
		_cleanup_(data_files_close) struct data_files from = {
			.dir = -1, .kind = IMAGE_PAGES, .pid = process->head.pid,
		};
		const struct data_files to = {
			.dir = criu_image_dir(), .kind = IMAGE_FREED, .pid = own_pid, .place = "the images",
		};
		_cleanup_close_ int fd = -1;
		char name[IMAGE_NAME_MAX];
		int err;

		if (!own_pid)
			return fail(-EIO, "pid %d: cannot read its NSpid in /proc, by which its images are named", process->head.pid);
		err = count_freed(process) ? datadir_open(process->head.dir, &from.dir) : 0;
		if (!err)
			err = check_or_copy_data(process, &from, &to);
		if (err)
			return err;
		image_name_make(IMAGE_SUSPENDED, own_pid, 0, name);
		fd = criu_image_create(name);
		err = fd < 0 ? fd : record_save(process, fd);
		if (err)
			return fail(err, "image %s: cannot be written: %m", name);
	}
	return 0;
}

void suspend_dump_end(struct suspend_dump *dump)
{
	if (!dump)
		return;
	for (size_t i = 0; i < dump->nr; i++) {
		struct process *process = &dump->list[i].process;

		if (dump->list[i].is_by_signal && record_is_alive(&process->head))
			freezer_change_to_cgroup(process);
		process_done(process);
	}
	free(dump->list);
	free(dump);
}

void suspend_hold_again(pid_t pid)
{
	struct process process = { .head.pid = pid, .gpu.file = { .pid = pid, .fd = -1 } };

	if (!read_suspended(&process) && process.head.is_stopped)
		freezer_change_to_cgroup(&process);
	process_done(&process);
	fail_clear();
}

/* ---- images ---- */

int suspend_image_read(const char *name, const uint8_t *data, size_t size, struct suspend_image *ret)
{
	struct process process = { .gpu.file.fd = -1 };
	struct kfd_state *state = &process.gpu.state;
	int err = record_load(name, data, size, &process);
	bool has_data = !err && count_freed(&process);

	*ret = (struct suspend_image){ .has_kfd = process.head.report.has_kfd };
	for (size_t i = 0; !err && i < state->nr_bos; i++) {
		state->bos[i].share.kind = process.plan[i] && has_data ? KFD_BO_OWN : KFD_BO_IMPORT;
		ret->freed_bytes += process.plan[i] == BO_FREE ? state->bos[i].size : 0;
	}
	if (!err) {
		ret->nr_left = count_left(&process);
		ret->state = *state;
		ret->plan = steal_ptr(process.plan);
		*state = (struct kfd_state){ 0 };
	}
	process_done(&process);
	return err;
}

int suspend_image_check(const struct suspend_image *record, const struct gpu_process *image)
{
	/* What has no /dev/kfd has nothing to be resumed but its threads. */
	if (image->no_kfd)
		return 0;
	if (!image->is_suspended == !record && (!record || record->nr_left == image->state.nr_records))
		return 0;
	if (!record)
		return fail(-EBADMSG, "image amdgpu-suspended-%u.img is missing: the process was suspended, and only that image says "
				      "what a resume has to restore", image->state.pid);
	return fail(-EBADMSG, "image amdgpu-suspended-%u.img is of another dump", image->state.pid);
}

void suspend_image_done(struct suspend_image *image)
{
	kfd_state_done(&image->state);
	free(image->plan);
}

void suspend_image_add_work(const struct suspend_image *image, const struct topology *nodes, struct gpu_work *work)
{
	for (unsigned int i = 0; i < nodes->nr_nodes; i++)
		if (topology_is_gpu(nodes->nodes[i]))
			work[i].vram_later += freed_on(&image->state, image->plan, topology_gpu_id(nodes->nodes[i]));
}

/* ---- a restore ---- */

/* A suspended process of the images. */
struct restored {
	struct process process; /* as it was dumped */
	pid_t own_pid;
	uint64_t new_id; /* of its suspend, whose other processes have the same */
	bool has_datadir;	 /* the directory for data of that suspend is there */
};

struct suspend_restore {
	struct restored *list;
	size_t nr;
};

int suspend_restore_read(struct suspend_restore **ret)
{
	struct suspend_restore *restore = *ret = calloc(1, sizeof(**ret));
	int err = restore ? 0 : -ENOMEM;

	for (int pid = image_next(IMAGE_SUSPENDED, -1); !err && pid >= 0; pid = image_next(IMAGE_SUSPENDED, pid)) {
		struct restored one = { .process.gpu.file.fd = -1, .own_pid = pid, .new_id = suspend_new_id() };
		const struct data_files files = { .dir = criu_image_dir(), .kind = IMAGE_FREED, .pid = pid };
		_cleanup_free_ uint8_t *data = NULL;
		_cleanup_close_ int fd = -1;
		char name[IMAGE_NAME_MAX];
		size_t size = 0;

		image_name_make(IMAGE_SUSPENDED, pid, 0, name);
		fd = criu_image_open(name);
		err = fd < 0 ? fd : image_payload_read(name, fd, &data, &size);
		if (!err)
			err = record_load(name, data, size, &one.process);
		for (size_t i = 0; !err && i < restore->nr; i++)
			if (restore->list[i].process.head.id == one.process.head.id)
				one.new_id = restore->list[i].new_id;
		if (!err)
			err = check_or_copy_data(&one.process, &files, NULL);
		if (!err)
			err = array_add(restore->list, restore->nr, one);
		if (err)
			process_done(&one.process);
	}
	/* What was dumped may have left its cgroup frozen, in which criu would wait for the tasks. */
	if (!err && restore->nr)
		suspend_clean();
	return err;
}

void suspend_restore_free(struct suspend_restore *restore)
{
	for (size_t i = 0; restore && i < restore->nr; i++)
		process_done(&restore->list[i].process);
	if (restore)
		free(restore->list);
	free(restore);
}

static struct restored *find_restored(const struct suspend_restore *restore, pid_t own_pid)
{
	for (size_t i = 0; restore && own_pid && i < restore->nr; i++)
		if (restore->list[i].own_pid == own_pid)
			return &restore->list[i];
	return NULL;
}

bool suspend_restore_has(const struct suspend_restore *restore, pid_t own_pid)
{
	return find_restored(restore, own_pid) || (!own_pid && restore && restore->nr);
}

void suspend_restore_add_work(const struct suspend_restore *restore, pid_t own_pid, const struct topology *nodes,
			      struct gpu_work *work)
{
	const struct restored *one = find_restored(restore, own_pid);

	if (one)
		suspend_image_add_work(&(struct suspend_image){ .state = one->process.gpu.state, .plan = one->process.plan },
				       nodes, work);
}

int suspend_restore_check(const struct suspend_restore *restore, const struct gpu_process *image)
{
	const struct restored *one = find_restored(restore, (pid_t)image->state.pid);
	const struct suspend_image record = { .nr_left = one ? count_left(&one->process) : 0 };

	return suspend_image_check(one ? &record : NULL, image);
}

int suspend_restore_stop(const struct suspend_restore *restore, pid_t own_pid, pid_t pid)
{
	struct restored *one = find_restored(restore, own_pid);
	struct task_file *file = one ? &one->process.gpu.file : NULL;
	struct kfd_state state;

	if (!one)
		return 0;
	file->pid = pid;
	file->number = one->process.head.kfd_number;
	file->fd = task_take_file(pid, file->number);
	if (file->fd < 0)
		return fail(file->fd, "pid %d: cannot take its /dev/kfd: %m", pid);
	return kfd_pause(file->fd, pid, &state);
}

/* ---- what is of this machine in a record ---- */

/* SVM ranges are there from RESUME on. A kernel whose state has another size than a resume counts on fails here. */
static int set_gpus(struct process *process, pid_t pid, const struct topology *machine)
{
	_cleanup_(kfd_state_done) struct kfd_state now = { 0 };
	struct kfd_state *state = &process->gpu.state;
	const struct record_head before = process->head;
	int err = kfd_checkpoint_again(process->gpu.file.fd, pid, state, count_left(process), 0, &now);

	if (err)
		return err;
	kfd_close_dmabufs(&now);
	for (size_t i = 0; i < state->nr_devices; i++) {
		struct kfd_criu_device_bucket *device = &state->devices[i];
		size_t same = 0;

		while (same < now.nr_devices && now.devices[same].user_gpu_id != device->user_gpu_id)
			same++;
		if (same == now.nr_devices)
			return fail(-EBADMSG, "the record of a suspended process names gpu %#x, which the process does not have",
				    device->user_gpu_id);
		device->actual_gpu_id = now.devices[same].actual_gpu_id;
	}
	err = kfd_state_nodes(machine, pid, state, &process->gpu.nodes);
	if (!err)
		err = kfd_state_minors(pid, state, process->gpu.nodes, &process->gpu.minors);
	if (!err)
		err = resets_note(process);
	/* Mappings of what is freed. */
	for (size_t i = 0; !err && i < process->head.nr_vmas; i++) {
		uint32_t *minor = &process->vmas[i].minor, gpu = 0;

		while (gpu < before.nr_gpus && before.gpus[gpu].minor != *minor)
			gpu++;
		if (gpu == before.nr_gpus)
			return fail(-EBADMSG, "the record of a suspended process names renderD%u, which is of none of its GPUs",
				    *minor);
		*minor = process->head.gpus[gpu].minor;
	}
	return err;
}

/* ---- its data ---- */

/* The record is there before what it names. */
static int make_datadir(struct suspend_restore *restore, struct restored *one)
{
	struct process *process = &one->process;
	const struct data_files from = { .dir = criu_image_dir(), .kind = IMAGE_FREED, .pid = one->own_pid };
	_cleanup_(data_files_close) struct data_files to = {
		.dir = -1, .kind = IMAGE_PAGES, .pid = process->head.pid, .place = process->head.dir, .needs_room = true,
	};
	struct datadir datadir = { 0 };
	bool is_there = false, is_usable;
	char base[PATH_MAX], *slash;
	int err = 0;

	/* Where the suspend had put them, if that is a directory here that the caller may use; memory otherwise. */
	snprintf(base, sizeof(base), "%s", process->head.dir);
	slash = strrchr(base, '/');
	if (slash)
		*slash = '\0';
	is_usable = slash && base[0] && strcmp(base, SUSPEND_MEMORY) && !access(base, F_OK) &&
		    !datadir_choose(base, one->new_id, &datadir);
	if (!is_usable) {
		fail_clear();
		err = datadir_choose(NULL, one->new_id, &datadir);
	}
	if (!err)
		err = datadir_make_run();
	if (err)
		return err;
	snprintf(process->head.dir, sizeof(process->head.dir), "%s", datadir.dir);
	process->head.made_base = datadir.is_new_base;
	err = record_write(process);
	/* All processes of a suspend have one directory. */
	for (size_t i = 0; i < restore->nr; i++)
		is_there |= restore->list[i].new_id == one->new_id && restore->list[i].has_datadir;
	if (!err)
		err = is_there ? datadir_open(datadir.dir, &to.dir) : datadir_make(&datadir, &to.dir);
	one->has_datadir = !err;
	if (!err)
		err = check_or_copy_data(process, &from, &to);
	if (!err && count_freed(process))
		err = record_write_count(process, count_left(process));
	return err;
}

int suspend_restore_finish(struct suspend_restore *restore, pid_t own_pid, pid_t pid, const struct topology *machine)
{
	struct restored *one = find_restored(restore, own_pid);
	struct record_head *head = one ? &one->process.head : NULL;
	int64_t since;
	int err;

	if (!one)
		return 0;
	/* An earlier process of this number may have left its own. */
	suspend_clean();
	err = head->report.has_kfd ? set_gpus(&one->process, pid, machine) : 0;
	if (err)
		return err;
	head->pid = pid;
	since = head->since;
	err = record_begin(head, one->new_id);
	head->since = since;
	head->phase = PHASE_SUSPENDED;
	/* criu stops it by SIGSTOP before it lets it go. */
	head->is_stopped = true;
	head->by_home = head->by_stop = false;
	head->home[0] = head->follows[0] = '\0';
	head->report.is_held_by_signal = false;
	head->report.reset_minor = 0;
	one->process.gpu.state.pid = (uint32_t)one->own_pid;
	if (!err)
		err = make_datadir(restore, one);
	if (err)
		return err;
	freezer_change_to_cgroup(&one->process);
	pr_info("pid %d: is suspended, VRAM that \"amdgpu-checkpoint resume %d\" needs: %" PRIu64 " bytes\n", pid, pid,
		head->report.freed_bytes);
	return 0;
}
