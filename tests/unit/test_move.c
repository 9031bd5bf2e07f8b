// SPDX-License-Identifier: GPL-2.0-only
/* Suspended processes in dumps and restores: what is refused, what travels, and what is left by whoever dies in the middle. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "unit.h"
#include "content/content.h"
#include "image/image.h"
#include "log_stub.h"
#define RECORD_DIR "/tmp/move.XXXXXX"
#include "record_dir.h"
#include "remove_all.h"
#include "suspend/internal.h"

#define PID    5242880 /* with a GPU; no number that Linux gives */
#define OTHER  5242881 /* its parent, without one */
#define RESTORED   5242882 /* what PID is after a restore */
#define ID     0x5eedull
#define KFD    7
#define GPU    0x1111u
#define MINOR  128u
#define LATER  129u /* of the GPU after a restore */
#define ACTUAL 0x2222u
#define HOME   "/sys/fs/cgroup/job"
#define BYTES  (3 * 4096u)

/* ---- the machine. What a process that dies has done is in memory that is shared ---- */

static struct machine {
	bool is_stopped[2], in_own[2], is_frozen[2]; /* of PID and OTHER: SIGSTOP; a cgroup of its own; which is frozen */
	bool home_is_frozen;
	bool is_gone[2], is_unmarked[2];
	unsigned int steps, dies_at; /* changes of a process, and of its record */
	unsigned int nr_pauses, nr_let_go;
} * machine;

static int index_of(pid_t pid)
{
	return pid == OTHER;
}

/* Whoever calls does not come back, where that is asked for. */
static void step(void)
{
	if (++machine->steps == machine->dies_at)
		_exit(42);
}

STUB(uint64_t, process_start, (pid_t pid), pid == PID || pid == OTHER || pid == RESTORED ? (machine->is_gone[index_of(pid)] ? 0 : 77) : 0)
STUB(char, task_state, (pid_t pid), machine->is_stopped[index_of(pid)] ? 'T' : 'S')
STUB(uint64_t, __wrap_proc_status, (pid_t pid, const char *name, int base), 0)
static bool hides_own_pids;
STUB(pid_t, task_own_pid, (pid_t pid), hides_own_pids ? 0 : pid == RESTORED ? PID : pid)
STUB(int, task_in_initial_pid_ns, (void), 1)
STUB(int, task_find_mark, (pid_t pid, int after), machine->is_unmarked[index_of(pid)] ? -1 : 9)
STUB(pid_t, process_parent, (pid_t pid), 1)
STUB(bool, hold_is_stopped, (const struct hold *hold), false)
STUB(bool, batch_has, (const struct batch *cut, pid_t pid), false)
STUB(int, inject_look, (pid_t pid, int kfd, struct inject *ret), 0)
STUB(int, cgroup_processes, (const char *path, bool below, int **ret, size_t *nr), 0)
STUB(int, cgroup_watch, (const char *path), -ENOSYS)
STUB(bool, cgroup_was_written, (int watch), false)
STUB(bool, cgroup_above, (char *path), false)
STUB(int, mount_memory, (const char *path), 0)
STUB(int, task_take_file, (pid_t pid, int number), number == KFD ? open("/dev/null", O_RDWR) : -EBADF)
STUB(int, drm_open_minor, (uint32_t minor), (int)minor)
STUB(int, drm_count_losses, (int fd, uint32_t *ret), (*ret = fd == LATER ? 3 : 1, 0))
STUB(int, kfd_pause, (int fd, pid_t pid, struct kfd_state *state), (machine->nr_pauses++, 0))
STUB(void, memory_ask_room, (struct memory_room *ret),
     (void)(*ret = (struct memory_room){ .bytes = 1u << 30, .by = "the machine" }))
STUB(int, processes_add_descendants, (int **pids, size_t *nr), 0)

/* Of threads: one. */
int __wrap_list_numbers(int dir, const char *path, int **ret, size_t *ret_nr)
{
	return array_add(*ret, *ret_nr, PID);
}

int hold_begin(pid_t pid, bool calls, struct hold *ret)
{
	*ret = (struct hold){ .pid = pid };
	return 0;
}

void hold_end(struct hold *hold)
{
}

bool cgroup_of(pid_t pid, char path[PATH_MAX])
{
	int i = index_of(pid);

	if (machine->in_own[i])
		snprintf(path, PATH_MAX, HOME "/amdgpu-suspended-%d", pid);
	else
		strcpy(path, HOME);
	return true;
}

static bool *frozen_of(const char *path)
{
	const char *own = strstr(path, "amdgpu-suspended-");

	return own ? &machine->is_frozen[index_of(atoi(own + strlen("amdgpu-suspended-")))] : &machine->home_is_frozen;
}

STUB(bool, cgroup_is_frozen, (const char *path), *frozen_of(path))

int cgroup_freeze(const char *path, bool freeze)
{
	step();
	*frozen_of(path) = freeze;
	return 0;
}

int cgroup_make(const char *path)
{
	step();
	*frozen_of(path) = false;
	return 0;
}

int cgroup_enter(const char *path, pid_t pid)
{
	step();
	machine->in_own[index_of(pid)] = strcmp(path, HOME);
	return 0;
}

int __real_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig)
{
	if (pid != PID && pid != OTHER && pid != RESTORED)
		return __real_kill(pid, sig);
	step();
	if (sig == SIGSTOP || sig == SIGCONT)
		machine->is_stopped[index_of(pid)] = sig == SIGSTOP;
	return 0;
}

static uint32_t nr_left; /* BOs that the process has */
static size_t nr_files; /* of /dev/kfd that it has open */

/* What the restored process has: the GPU has another id. */
int kfd_checkpoint_again(int fd, pid_t pid, const struct kfd_state *state, uint32_t nr_bos, uint32_t max_difference,
			 struct kfd_state *ret)
{
	*ret = (struct kfd_state){ .nr_devices = 1, .nr_records = nr_bos };
	ret->devices = calloc(1, sizeof(*ret->devices));
	ret->devices[0].user_gpu_id = GPU;
	ret->devices[0].actual_gpu_id = ACTUAL;
	return nr_bos == nr_left ? 0 : -EINVAL;
}

STUB(int, kfd_state_nodes, (const struct topology *all, pid_t pid, const struct kfd_state *state, struct topology **ret), 0)

int kfd_state_minors(pid_t pid, const struct kfd_state *state, const struct topology *nodes, uint32_t **ret)
{
	*ret = calloc(state->nr_devices, sizeof(**ret));
	**ret = state->devices[0].actual_gpu_id == ACTUAL ? LATER : MINOR;
	return 0;
}

void thawed_done(struct thawed *thawed)
{
}

void gpu_process_done(struct gpu_process *process)
{
	kfd_state_done(&process->state);
	free(process->minors);
	process->minors = NULL;
}

/* ---- files ---- */

int __real_rmdir(const char *path);
int __wrap_rmdir(const char *path)
{
	char to[PATH_MAX];

	if (!strncmp(path, HOME, strlen(HOME)))
		return 0;
	return __real_rmdir(redirect(path, to));
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
	char a[PATH_MAX], b[PATH_MAX];

	step();
	return __real_rename(redirect(from, a), redirect(to, b));
}

static int images = -1;
STUB(int, criu_image_dir, (void), images)
STUB(int, criu_image_open, (const char *name), openat(images, name, O_RDONLY))
STUB(int, criu_image_create, (const char *name), openat(images, name, O_WRONLY | O_CREAT | O_EXCL, 0600))

void image_name_make(enum image_kind kind, int id, uint32_t gpu_id, char ret[IMAGE_NAME_MAX])
{
	const char *format = kind == IMAGE_SUSPENDED ? "amdgpu-suspended-%d.img" :
			     kind == IMAGE_FREED     ? "amdgpu-freed-%d-%04x.img" :
						       "amdgpu-pages-%d-%04x.img";

	snprintf(ret, IMAGE_NAME_MAX, format, id, gpu_id);
}

bool image_name_parse(const char *name, struct image_name *ret)
{
	*ret = (struct image_name){ .kind = IMAGE_PAGES };
	return sscanf(name, "amdgpu-pages-%u-", &ret->id) == 1;
}

int image_next(enum image_kind kind, int after)
{
	int next = -1, pids[] = { OTHER, PID };
	char name[IMAGE_NAME_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		image_name_make(kind, pids[i], 0, name);
		if (pids[i] > after && !faccessat(images, name, F_OK, 0))
			next = pids[i];
	}
	return next;
}

int image_payload_read(const char *name, int fd, uint8_t **ret, size_t *ret_size)
{
	uint8_t prefix[LENGTH_PREFIX_BYTES];
	struct stat st;

	assert_int_equal(read(fd, prefix, sizeof(prefix)), sizeof(prefix));
	assert_int_equal(fstat(fd, &st), 0);
	*ret_size = length_prefix_get(prefix);
	assert_int_equal(*ret_size, st.st_size - sizeof(prefix));
	*ret = malloc(*ret_size);
	assert_int_equal(read(fd, *ret, *ret_size), *ret_size);
	return 0;
}

/* ---- suspended processes ---- */

static const int both[] = { PID, OTHER };
static struct datadir place;

/* Two BOs, one of which is freed, and was mapped. */
static void give_memory(struct process *process)
{
	struct kfd_state *state = &process->gpu.state;

	process->head.kfd_number = KFD;
	process->head.report.has_kfd = true;
	process->head.report.freed_bytes = BYTES;
	process->head.nr_gpus = 1;
	process->head.gpus[0].minor = MINOR;
	process->head.gpus[0].losses = 1;
	state->nr_devices = 1;
	state->devices = calloc(1, sizeof(*state->devices));
	state->devices[0].user_gpu_id = GPU;
	state->devices[0].actual_gpu_id = GPU;
	state->nr_bos = state->nr_records = 2;
	state->bos = calloc(2, sizeof(*state->bos));
	state->bos[0].gpu_id = state->bos[1].gpu_id = GPU;
	state->bos[0].size = 4096;
	state->bos[1].size = BYTES;
	state->bos[0].dmabuf_fd = state->bos[1].dmabuf_fd = KFD_NO_FD;
	process->plan = calloc(2, 1);
	process->plan[1] = BO_FREE;
	process->vmas = calloc(1, sizeof(*process->vmas));
	process->vmas[0] = (struct suspend_vma){ .start = 4096, .end = 8192, .bo = 1, .minor = MINOR };
	process->head.nr_vmas = 1;
	process->handles = calloc(1, sizeof(*process->handles));
	process->handles[0].bo = NO_BO;
	process->head.nr_handles = 1;
}

static struct process process_of(pid_t pid)
{
	return (struct process){ .head.pid = pid, .gpu.file = { .pid = pid, .fd = -1 } };
}

/* Changes what a record says. */
static void change(pid_t pid, void (*how)(struct process *process))
{
	struct process process = process_of(pid);

	assert_int_equal(record_read(&process), 0);
	how(&process);
	assert_int_equal(record_write(&process), 0);
	process_done(&process);
}

static void suspend(pid_t pid)
{
	struct process process = process_of(pid);

	assert_int_equal(record_begin(&process.head, ID), 0);
	process.head.phase = PHASE_SUSPENDED;
	process.head.since = 1234567;
	strcpy(process.head.dir, place.dir);
	strcpy(process.head.home, HOME);
	strcpy(process.head.follows, HOME);
	if (pid == PID)
		give_memory(&process);
	assert_int_equal(record_write(&process), 0);
	process_done(&process);
	machine->in_own[index_of(pid)] = machine->is_frozen[index_of(pid)] = true;
}

static void make_images(void)
{
	char path[64];

	if (images >= 0)
		close(images);
	snprintf(path, sizeof(path), "%s/images", directory);
	mkdir(path, 0700);
	images = open(path, O_RDONLY | O_DIRECTORY);
	assert_true(images >= 0);
}

/* Each test begins with it: two processes are suspended. */
static void boot(void)
{
	char base[64];
	int fd = -1, data;

	remove_all(directory);
	assert_int_equal(mkdir(directory, 0700), 0);
	put("machine-id", "01234567-89ab-cdef-0000-000000000000\n");
	put("boot_id", "01234567-89ab-cdef-0000-000000000000\n");
	snprintf(base, sizeof(base), "%s/run", directory);
	assert_int_equal(mkdir(base, 0755), 0);
	snprintf(base, sizeof(base), "%s/disk", directory);
	assert_int_equal(mkdir(base, 0755), 0);
	make_images();
	*machine = (struct machine){ 0 };
	nr_left = nr_files = 1;
	hides_own_pids = false;
	assert_int_equal(datadir_choose(base, ID, &place), 0);
	assert_int_equal(datadir_make_run(), 0);
	assert_int_equal(datadir_make(&place, &fd), 0);
	data = openat(fd, "amdgpu-pages-5242880-1111.img", O_WRONLY | O_CREAT, 0600);
	assert_int_equal(ftruncate(data, BYTES + LENGTH_PREFIX_BYTES), 0);
	assert_int_equal(pwrite(data, "data", 4, 5000), 4);
	close(data);
	close(fd);
	suspend(PID);
	suspend(OTHER);
}

#define expect_text(text)                                              \
	do {                                                           \
		if (!strstr(fail_text(), text))                        \
			fail_msg("\"%s\" is not in: %s", text, fail_text()); \
		fail_clear();                                          \
	} while (0)

/* Of these tasks, the first of which has its /dev/kfd open; up to the files. */
static int dump_of(const int *pids, size_t nr, bool is_asked)
{
	struct task_file file = { .pid = PID, .fd = -1, .number = KFD };
	const struct task_files files = { .files = &file, .count = nr_files, .pids = (int *)pids, .nr_pids = nr };
	struct suspend_dump *dump = suspend_dump_new();
	int err;

	for (size_t i = 0; is_asked && i < nr; i++)
		suspend_dump_stop(dump, pids[i]);
	err = suspend_dump_read(dump, &files, false);
	if (!err)
		err = suspend_dump_save(dump);
	suspend_dump_end(dump);
	return err;
}

static int dump(void)
{
	return dump_of(both, 2, true);
}

/* ---- a dump ---- */

TEST(before_criu_comes_a_signal_takes_the_place_of_the_cgroup)
{
	struct suspend_dump *dump = suspend_dump_new();
	struct process process = process_of(PID);

	boot();
	suspend_dump_stop(dump, PID);
	assert_true(machine->is_stopped[0] && !machine->in_own[0]);
	assert_int_equal(record_read(&process), 0);
	assert_true(process.head.is_stopped && process.head.phase == PHASE_SUSPENDED);
	process_done(&process);
	suspend_dump_end(dump);
	assert_true(machine->in_own[0] && machine->is_frozen[0]);
}

static void set_by_home(struct process *process)
{
	process->head.by_home = true;
}

TEST(a_frozen_cgroup_of_others_is_frozen_after_a_dump_and_thawed_for_a_restore)
{
	struct suspend_restore *restore;

	boot();
	change(PID, set_by_home);
	machine->in_own[0] = false;
	machine->home_is_frozen = true;
	assert_int_equal(dump_of(both, 2, true), 0);
	assert_true(machine->home_is_frozen && machine->is_stopped[0]);
	machine->is_gone[0] = machine->is_gone[1] = true;
	assert_int_equal(suspend_restore_read(&restore), 0);
	assert_false(machine->home_is_frozen);
	suspend_restore_free(restore);
}

static void set_half(struct process *process)
{
	process->head.phase = PHASE_CHANGING;
}

static void set_vmm(struct process *process)
{
	process->handles[0].bo = 1;
}

static void lose_data(void)
{
	int fd = -1;

	assert_int_equal(datadir_open(place.dir, &fd), 0);
	assert_int_equal(unlinkat(fd, "amdgpu-pages-5242880-1111.img", 0), 0);
	close(fd);
}

static void cut_data(void)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/amdgpu-pages-5242880-1111.img", place.dir);
	assert_int_equal(truncate(path, BYTES + LENGTH_PREFIX_BYTES - 1), 0);
}

static void stream(void)
{
	close(images);
	images = -1;
}

/* The driver has reset the GPU since the suspend, and a resume that found no room has seen that. */
static void be_reset(struct process *process)
{
	process->head.gpus[0].losses = 0;
}

static void note_reset(struct process *process)
{
	process->head.report.reset_minor = MINOR;
}

static void lose_file(void)
{
	nr_files = 0;
}

static void hide_own_pids(void)
{
	hides_own_pids = true;
}

static void lose_records(void)
{
	struct record_head head;

	assert_int_equal(record_find(PID, &head), 0);
	machine->is_gone[0] = true;
	record_remove(&head);
	machine->is_gone[0] = false;
}

static const struct refusal {
	const char *name;
	void (*prepare)(void);
	void (*how)(struct process *process);
	size_t nr; /* of the tasks */
	bool is_not_asked;
	const char *text;
} refusals[] = {
	{ "a_process_that_was_suspended_with_others_is_not_dumped_alone", NULL, NULL, 1, false,
	  "pid 5242880: was suspended together with pid 5242881, which is not in this dump" },
	{ "what_is_in_the_middle_of_a_suspend_is_not_dumped", NULL, set_half, 2, false, "pid 5242880: is in the middle of a suspend" },
	{ "freed_memory_of_vmm_is_refused", NULL, set_vmm, 2, false, "pid 5242880: is suspended, and has freed memory of VMM" },
	{ "data_that_are_missing_are_refused", lose_data, NULL, 2, false, "not there: amdgpu-pages-5242880-1111.img" },
	{ "data_that_are_cut_are_refused", cut_data, NULL, 2, false, "has 12295 bytes, and the buffers that were freed have 12296" },
	{ "what_a_reset_has_taken_is_not_dumped", NULL, be_reset, 2, false, "pid 5242880: is suspended, and the driver has reset its GPU" },
	{ "a_reset_that_a_resume_has_seen_counts_as_well", NULL, note_reset, 2, false, "and the driver has reset its GPU since" },
	{ "a_stream_has_no_room_for_data", stream, NULL, 2, false, "cannot go into a stream" },
	{ "a_criu_that_does_not_ask_before_it_seizes_is_refused", NULL, NULL, 2, true, "by a frozen cgroup that it could not leave" },
	{ "a_process_that_does_not_have_its_file_is_refused", lose_file, NULL, 2, false,
	  "pid 5242880: is suspended, and its /dev/kfd is not among its files" },
	{ "a_process_whose_own_pid_cannot_be_read_gets_no_image", hide_own_pids, NULL, 2, false,
	  "pid 5242880: cannot read its NSpid in /proc, by which its images are named" },
	{ "a_process_without_a_record_is_refused", lose_records, NULL, 2, false,
	  "pid 5242880: is suspended, and its GPU memory is freed: resume it first" },
};

ROW_TEST(refused, refusals, name, NULL, NULL)
{
	const struct refusal *row = *unit_state;

	boot();
	if (row->prepare)
		row->prepare();
	if (row->how)
		change(PID, row->how);
	assert_true(dump_of(both, row->nr, !row->is_not_asked) < 0);
	expect_text(row->text);
	for (int i = 0; i < 2; i++)
		assert_true(machine->in_own[i] && machine->is_frozen[i]);
}

TEST(without_a_process_with_memory_there_is_nothing_to_move)
{
	static const int parent[] = { OTHER };
	struct record_head head;

	boot();
	assert_int_equal(record_find(PID, &head), 0);
	machine->is_gone[0] = true;
	record_remove(&head);
	assert_true(dump_of(parent, 1, true) < 0);
	expect_text("pid 5242881: is suspended, and no process of that suspend has GPU memory");
}

/* ---- whoever dies in a dump ---- */

/* Nobody runs without its memory, a resume knows who has stopped it, and "state" what holds it. */
static void assert_held(unsigned int at)
{
	for (int i = 0; i < 2; i++) {
		struct process process = process_of(both[i]);
		bool is_frozen = machine->in_own[i] && machine->is_frozen[i];
		struct suspend_info info;

		if (!machine->is_stopped[i] && !is_frozen)
			fail_msg("step %u: pid %d runs", at, both[i]);
		assert_int_equal(suspend_ask(both[i], &info), 0);
		assert_int_equal(info.report.is_held_by_signal, !is_frozen);
		assert_int_equal(record_read(&process), 0);
		assert_int_equal(process.head.phase, PHASE_SUSPENDED);
		if (machine->is_stopped[i] && !process.head.is_stopped)
			fail_msg("step %u: nobody will continue pid %d", at, both[i]);
		process_done(&process);
	}
}

TEST(whoever_dies_in_a_dump_leaves_all_suspended)
{
	unsigned int at = 0;
	int status;

	do {
		pid_t child;

		boot();
		machine->steps = 0;
		machine->dies_at = ++at;
		child = fork();
		if (!child)
			_exit(dump() ? 1 : 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		machine->dies_at = 0;
		assert_held(at);
		/* The guard. */
		for (int i = 0; i < 2; i++)
			suspend_hold_again(both[i]);
		assert_held(at);
		for (int i = 0; i < 2; i++)
			assert_true(machine->in_own[i] && machine->is_frozen[i]);
	} while (WEXITSTATUS(status) == 42);
	assert_int_equal(status, 0);
	assert_true(at > 12);
}

/* ---- a restore ---- */

static int restore_all(struct suspend_restore **ret)
{
	int err = suspend_restore_read(ret);

	if (!err)
		err = suspend_restore_stop(*ret, PID, RESTORED);
	if (!err)
		err = suspend_restore_finish(*ret, PID, RESTORED, NULL);
	return err;
}

static void leave_machine(void)
{
	struct record_head head;

	for (int i = 0; i < 2; i++)
		if (!record_find(both[i], &head)) {
			machine->is_gone[i] = true;
			record_remove(&head);
		}
	*machine = (struct machine){ .is_stopped = { true, true } };
}

TEST(a_process_comes_back_suspended_on_another_gpu)
{
	struct gpu_process image = { .state = { .pid = PID, .nr_records = 1 }, .is_suspended = true };
	struct process process = process_of(RESTORED);
	struct suspend_restore *restore = NULL;
	char path[PATH_MAX + 64], byte[4] = "";
	uint32_t nr = 0;
	int fd;

	boot();
	assert_int_equal(dump(), 0);
	leave_machine();
	assert_int_equal(restore_all(&restore), 0);
	assert_true(suspend_restore_has(restore, PID) && !suspend_restore_has(restore, RESTORED));
	assert_true(suspend_restore_has(restore, 0)); /* it may be */
	assert_int_equal(suspend_restore_check(restore, &image), 0);
	assert_int_equal(machine->nr_pauses, 1);
	assert_int_equal(record_read(&process), 0);
	assert_int_equal(process.head.phase, PHASE_SUSPENDED);
	assert_int_equal(process.head.since, 1234567);
	assert_true(process.head.id != ID && process.head.is_stopped && !process.head.follows[0] && process.head.start == 77);
	assert_int_equal(process.head.gpus[0].minor, LATER);
	assert_int_equal(process.head.gpus[0].losses, 3);
	assert_int_equal(process.vmas[0].minor, LATER);
	assert_int_equal(process.gpu.state.devices[0].user_gpu_id, GPU);
	assert_int_equal(process.gpu.state.devices[0].actual_gpu_id, ACTUAL);
	assert_int_equal(record_read_count(&process, &nr), 0);
	assert_int_equal(nr, 1);
	assert_true(machine->in_own[0] && machine->is_frozen[0]);
	snprintf(path, sizeof(path), "%s/amdgpu-pages-5242882-1111.img", process.head.dir);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0 && pread(fd, byte, 4, 5000) == 4 && !memcmp(byte, "data", 4));
	close(fd);
	record_remove(&process.head);
	process_done(&process);
	assert_int_equal(faccessat(images, "amdgpu-freed-5242880-1111.img", F_OK, 0), 0);
	suspend_restore_free(restore);
}

static void set_free_failed(struct process *process)
{
	process->plan[1] = BO_FREE_FAILED;
}

TEST(data_of_a_process_that_could_free_nothing_are_not_moved)
{
	struct process process = process_of(RESTORED);
	struct suspend_restore *restore = NULL;
	uint32_t nr;

	boot();
	change(PID, set_free_failed);
	nr_left = 2;
	assert_int_equal(dump(), 0);
	assert_int_equal(faccessat(images, "amdgpu-freed-5242880-1111.img", F_OK, 0), -1);
	leave_machine();
	assert_int_equal(restore_all(&restore), 0);
	assert_int_equal(record_read(&process), 0);
	assert_int_equal(record_read_count(&process, &nr), -ENOENT);
	record_remove(&process.head);
	process_done(&process);
	suspend_restore_free(restore);
}

TEST(an_image_says_which_data_are_beside_it)
{
	struct topology_node node = { .value[TOPOLOGY_GPU_ID] = GPU }, other = { .value[TOPOLOGY_GPU_ID] = GPU + 1 };
	const struct topology nodes = { .nodes = { &other, &node }, .nr_nodes = 2 };
	struct gpu_work work[2] = { 0 };
	struct gpu_process process = { .state = { .pid = PID, .nr_records = 1 }, .is_suspended = true };
	struct suspend_restore *restore = NULL;
	struct suspend_image image;
	uint8_t *data = NULL;
	size_t size = 0;
	int fd;

	boot();
	assert_int_equal(dump(), 0);
	fd = criu_image_open("amdgpu-suspended-5242880.img");
	assert_int_equal(image_payload_read("amdgpu-suspended-5242880.img", fd, &data, &size), 0);
	close(fd);
	assert_int_equal(suspend_image_read("amdgpu-suspended-5242880.img", data, size, &image), 0);
	assert_true(image.has_kfd);
	assert_int_equal(image.freed_bytes, BYTES);
	assert_int_equal(image.state.devices[0].user_gpu_id, GPU);
	assert_int_equal(image.state.nr_bos, 2);
	assert_true(image.state.bos[0].share.kind != KFD_BO_OWN && image.state.bos[1].share.kind == KFD_BO_OWN);
	/* Of which dump it is, to who has no restore. */
	assert_int_equal(suspend_image_check(&image, &process), 0);
	process.state.nr_records = 2;
	assert_int_equal(suspend_image_check(&image, &process), -EBADMSG);
	expect_text("image amdgpu-suspended-5242880.img is of another dump");
	assert_int_equal(suspend_image_check(NULL, &process), -EBADMSG);
	expect_text("image amdgpu-suspended-5242880.img is missing");
	/* And what a resume will allocate. */
	suspend_image_add_work(&image, &nodes, work);
	assert_true(work[1].vram_later == BYTES && !work[0].vram_later && !work[1].vram_needed);
	assert_int_equal(suspend_restore_read(&restore), 0);
	suspend_restore_add_work(restore, PID, &nodes, work);
	suspend_restore_add_work(restore, PID + 100, &nodes, work);
	suspend_restore_add_work(NULL, PID, &nodes, work);
	assert_int_equal(work[1].vram_later, 2 * BYTES);
	suspend_restore_free(restore);
	suspend_image_done(&image);
	assert_int_equal(suspend_image_read("amdgpu-suspended-5242880.img", data, size - 1, &image), -EBADMSG);
	expect_text("image amdgpu-suspended-5242880.img: is damaged");
	suspend_image_done(&image);
	free(data);
}

TEST(any_bit_of_a_record_is_refused_when_it_is_wrong)
{
	struct suspend_restore *restore = NULL;
	struct stat st;
	int fd;

	boot();
	assert_int_equal(dump(), 0);
	leave_machine();
	fd = openat(images, "amdgpu-suspended-5242880.img", O_RDWR);
	assert_true(fd >= 0 && !fstat(fd, &st));
	for (off_t at = LENGTH_PREFIX_BYTES; at < st.st_size; at += 61) {
		uint8_t byte;

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 4;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		assert_true(suspend_restore_read(&restore) < 0);
		if (!strstr(fail_text(), "image amdgpu-suspended-5242880.img: is "))
			fail_msg("byte %ld: %s", (long)at, fail_text());
		fail_clear();
		suspend_restore_free(restore);
		byte ^= 4;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	close(fd);
	assert_int_equal(suspend_restore_read(&restore), 0);
	suspend_restore_free(restore);
}

/* Records that no suspend writes, with all their CRCs right. */
static void no_end_of_writer(struct process *process)
{
	memset(process->head.writer, 'w', sizeof(process->head.writer));
}

static void no_end_of_dir(struct process *process)
{
	memset(process->head.dir, 'd', sizeof(process->head.dir));
}

static void too_many_gpus(struct process *process)
{
	process->head.nr_gpus = ARRAY_SIZE(process->head.gpus) + 1;
}

static void unknown_going(struct process *process)
{
	process->plan[0] = BO_FREE_FAILED + 1;
}

static void bytes_overflow(struct process *process)
{
	process->gpu.state.bos[0].size = UINT64_MAX;
}

static void too_much_metadata(struct process *process)
{
	process->gpu.state.bos[0].share.metadata_size = KFD_METADATA_MAX + 1;
}

static void vma_of_no_bo(struct process *process)
{
	process->vmas[0].bo = 2;
}

static void vma_of_no_bytes(struct process *process)
{
	process->vmas[0].end = process->vmas[0].start;
}

static void handle_of_no_bo(struct process *process)
{
	process->handles[0].bo = 2;
}

static void mapping_of_no_handle(struct process *process)
{
	free(process->mappings);
	process->mappings = calloc(1, sizeof(*process->mappings));
	process->mappings[0].of = process->head.nr_handles;
	process->head.nr_mappings = 1;
}

TEST(a_record_that_is_not_sound_is_refused)
{
	void (*const how[])(struct process *) = { no_end_of_writer, no_end_of_dir, too_many_gpus, unknown_going, bytes_overflow,
						  too_much_metadata, vma_of_no_bo, vma_of_no_bytes, handle_of_no_bo, mapping_of_no_handle };

	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		struct process process = process_of(PID);
		struct suspend_restore *restore = NULL;
		int fd;

		boot();
		assert_int_equal(dump(), 0);
		assert_int_equal(record_read(&process), 0);
		how[i](&process);
		fd = openat(images, "amdgpu-suspended-5242880.img", O_WRONLY | O_TRUNC);
		assert_int_equal(record_save(&process, fd), 0);
		close(fd);
		process_done(&process);
		if (suspend_restore_read(&restore) != -EBADMSG)
			fail_msg("record %zu is taken", i);
		expect_text("image amdgpu-suspended-5242880.img: is damaged");
		suspend_restore_free(restore);
	}
}

TEST(images_that_are_not_whole_are_refused)
{
	struct gpu_process image = { .state = { .pid = PID, .nr_records = 2 }, .is_suspended = true };
	struct suspend_restore *restore = NULL;

	boot();
	assert_int_equal(dump(), 0);
	leave_machine();
	assert_int_equal(suspend_restore_read(&restore), 0);
	assert_int_equal(suspend_restore_check(restore, &image), -EBADMSG);
	expect_text("image amdgpu-suspended-5242880.img is of another dump");
	image.no_kfd = true;
	image.is_suspended = false;
	assert_int_equal(suspend_restore_check(restore, &image), 0);
	image.no_kfd = false;
	image.is_suspended = true;
	suspend_restore_free(restore);
	assert_int_equal(unlinkat(images, "amdgpu-freed-5242880-1111.img", 0), 0);
	assert_int_equal(suspend_restore_read(&restore), -ENOENT);
	expect_text("not there: amdgpu-freed-5242880-1111.img");
	suspend_restore_free(restore);
	assert_int_equal(unlinkat(images, "amdgpu-suspended-5242880.img", 0), 0);
	assert_int_equal(suspend_restore_read(&restore), 0);
	assert_int_equal(suspend_restore_check(restore, &image), -EBADMSG);
	expect_text("image amdgpu-suspended-5242880.img is missing");
	suspend_restore_free(restore);
}

static int begin(void **state)
{
	machine = mmap(NULL, sizeof(*machine), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return machine == MAP_FAILED || !mkdtemp(directory);
}

static int end(void **state)
{
	remove_all(directory);
	return 0;
}

UNIT_MAIN(begin, end)
