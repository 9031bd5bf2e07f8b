// SPDX-License-Identifier: GPL-2.0-only
/*
 * What tasks, which are threads here, hand over to criu's main process: contents of several processes on the same GPUs, filled
 * meanwhile or in the end, and what can go wrong on either side.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "content_test.h"
#include "content/layout.h"
#include "host/criu.h"
#include "pages/internal.h"
#include "pages/pages.h"
#include "wrap.h"

#define MAX_TASKS 4
#define GPUS	  2

/* A process: what was saved, and where it is restored to. */
struct task {
	struct fixture_gpu saved[GPUS], target[GPUS];
	struct kfd_criu_device_bucket devices[GPUS];
	uint32_t minors[GPUS];
	struct gpu_process process;
	pthread_t thread;
	int result;
};

static struct settings settings;
static struct pages_filling *filling;
static struct task tasks[MAX_TASKS];
static size_t nr_tasks, fds_before;
static bool is_streaming, own_gpus; /* each task has others */

/* ---- criu ---- */

static int store[256];
static size_t nr_stored;
static pthread_mutex_t store_lock = PTHREAD_MUTEX_INITIALIZER;

STUB(bool, criu_is_streaming, (void), is_streaming)

int criu_keep_files(const int *fds, size_t nr)
{
	int store_id, bundle = bundle_new(fds, nr);

	if (bundle < 0)
		return (fail)(bundle, "cannot keep files: %m");
	pthread_mutex_lock(&store_lock);
	assert_true(nr_stored < ARRAY_SIZE(store));
	store_id = (int)nr_stored;
	store[nr_stored++] = bundle;
	pthread_mutex_unlock(&store_lock);
	return store_id;
}

int criu_kept_files(int store_id, int fds[BUNDLE_MAX], size_t *ret_nr)
{
	int err;

	pthread_mutex_lock(&store_lock);
	err = bundle_open(store[store_id], fds, ret_nr);
	pthread_mutex_unlock(&store_lock);
	return err ? (fail)(err, "cannot get kept files: %m") : *ret_nr ? 0 : -EMFILE;
}

int criu_keep_file(int fd)
{
	int store_id = criu_keep_files(&fd, 1);

	close(fd);
	return store_id;
}

int criu_kept_file(int store_id)
{
	int fds[BUNDLE_MAX], err;
	size_t nr = 0;

	err = criu_kept_files(store_id, fds, &nr);
	return err ? err : fds[0];
}

/* ---- wrapped calls: the n-th call of all threads fails, or of pthread_create() every one ---- */

static atomic_int calls_left;
static atomic_bool armed, fail_threads;

static bool hit(const char *name)
{
	return atomic_load(&armed) && !fake_drm_depth && atomic_fetch_sub(&calls_left, 1) == 1;
}

WRAP(void *, calloc, (size_t nr, size_t size), (nr, size), (errno = ENOMEM, NULL))
WRAP(ssize_t, sendmsg, (int sock, const struct msghdr *msg, int flags), (sock, msg, flags), (errno = ENOMEM, -1))
WRAP(ssize_t, recvmsg, (int sock, struct msghdr *msg, int flags), (sock, msg, flags), (errno = EIO, -1))
WRAP(int, socketpair, (int domain, int type, int protocol, int socks[2]), (domain, type, protocol, socks),
     (errno = EMFILE, -1))
WRAP(int, unshare, (int flags), (flags), (errno = EPERM, -1))

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	return fail_threads || hit("pthread_create") ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}

/* ---- the files of a task ---- */

static int copy_fd(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	assert_true(copy >= 0);
	return copy;
}

/* Where each reader has a position of its own. */
static int open_pages(const struct task *task, size_t device)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", task->saved[device].gpu.pages_fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* The dma-bufs stay the task's. */
int pages_open(const struct gpu_process *process, size_t device, enum content_direction direction, struct content_gpu *gpu)
{
	const struct content_gpu *target = &tasks[process->id].target[device].gpu;

	assert_int_equal(direction, CONTENT_RESTORE);
	*gpu = *target;
	gpu->streaming = is_streaming;
	gpu->render_fd = copy_fd(target->render_fd);
	gpu->pages_fd = is_streaming ? -1 : open_pages(&tasks[process->id], device);
	if (is_streaming)
		snprintf(gpu->pages_name, sizeof(gpu->pages_name), "pages-%d-%zu.img", process->id, device);
	gpu->bos = malloc((target->nr_bos + 1) * sizeof(*gpu->bos));
	memcpy(gpu->bos, target->bos, target->nr_bos * sizeof(*gpu->bos));
	return 1;
}

static atomic_int looks = -1; /* of the thread that fills, into what is handed over; -1: not counted; -2: not now */

static void hand_over_between_looks(void);

/* Called before each look, too. */
void pages_close(struct content_gpu *gpu)
{
	if (atomic_load(&looks) >= 0)
		hand_over_between_looks();
	cleanup_close(&gpu->render_fd);
	cleanup_close(&gpu->pages_fd);
	free(gpu->bos);
	*gpu = (struct content_gpu){ .render_fd = -1, .pages_fd = -1 };
}

static const char *missing; /* of a stream; NULL: none */

int pages_missing(const struct content_gpu *gpu)
{
	return gpu->nr_bos ? (fail)(-ENOENT, "image %s is missing", gpu->pages_name) : 0;
}

int criu_image_open(const char *name)
{
	size_t device;
	int id;

	assert_true(is_streaming);
	assert_int_equal(sscanf(name, "pages-%d-%zu.img", &id, &device), 2);
	return missing && !strcmp(name, missing) ? -ENOENT : open_pages(&tasks[id], device);
}

struct content_options pages_options(const struct settings *wanted, struct progress *progress, struct content_tally *tally)
{
	return (struct content_options){ .max_buffer_bytes = wanted->max_buffer_size_bytes, .progress_ms = 20, .tally = tally };
}

/* ---- the common part ---- */

static void task_init(struct task *task, const uint64_t *sizes, size_t nr, uint64_t seed)
{
	struct rng rng = { seed };

	*task = (struct task){ 0 };
	for (uint32_t g = 0; g < GPUS; g++) {
		fixture_gpu_init(&task->saved[g], 0xa0 + g, sizes, nr, FILL_MIXED, &rng);
		task->saved[g].gpu.pages_fd = fixture_file(FIXTURE_MEMORY);
		assert_int_equal(fixture_dump(&task->saved[g].gpu, 1, 0), 0);
		fixture_gpu_like(&task->target[g], &task->saved[g]);
		task->minors[g] = 128 + g + (own_gpus ? GPUS * (uint32_t)(task - tasks) : 0);
		task->devices[g].user_gpu_id = 0xa0 + g;
	}
	task->process.id = (int)(task - tasks);
	task->process.minors = task->minors;
	task->process.state.devices = task->devices;
	task->process.state.nr_devices = GPUS;
}

static void begin_tasks(const struct fake_drm_config *config, size_t nr, const uint64_t *sizes, size_t nr_sizes, bool waits)
{
	fds_before = fixture_open_fds();
	fake_drm_begin(&one_ring);
	nr_tasks = nr;
	for (size_t i = 0; i < nr; i++)
		task_init(&tasks[i], sizes, nr_sizes, i + 1);
	begin_gpus(config);
	filling = pages_filling_new(&settings, own_gpus ? GPUS * nr : GPUS, waits);
	assert_non_null(filling);
}

/* Everything is closed and freed, and no thread is left. */
static void end(void)
{
	pages_filling_free(filling);
	for (size_t i = 0; i < nr_stored; i++)
		close(store[i]);
	nr_stored = 0;
	for (size_t i = 0; i < nr_tasks; i++)
		for (size_t g = 0; g < GPUS; g++) {
			close(tasks[i].saved[g].gpu.pages_fd);
			fixture_gpu_done(&tasks[i].saved[g]);
			fixture_gpu_done(&tasks[i].target[g]);
		}
	assert_clean();
	assert_int_equal(fixture_open_fds(), fds_before);
}

/* A task that waits, where the images have a connection. */
static void *task_thread(void *arg)
{
	struct task *task = arg;

	task->result = pages_hand_over(filling, &task->process);
	if (!task->result)
		task->result = pages_await(filling);
	fail_log(); /* as a hook does */
	return NULL;
}

static void run_tasks(void)
{
	for (size_t i = 0; i < nr_tasks; i++)
		assert_int_equal(__real_pthread_create(&tasks[i].thread, NULL, task_thread, &tasks[i]), 0);
	for (size_t i = 0; i < nr_tasks; i++)
		assert_int_equal(pthread_join(tasks[i].thread, NULL), 0);
}

static void assert_restored(const struct task *task)
{
	assert_int_equal(task->result, 0);
	for (size_t g = 0; g < GPUS; g++)
		assert_true(fixture_gpus_same(&task->saved[g], &task->target[g]));
}

static void corrupt(struct task *task)
{
	int fd = task->saved[1].gpu.pages_fd;
	char byte;

	assert_int_equal(pread(fd, &byte, 1, 5000), 1);
	byte = (char)~byte;
	assert_int_equal(pwrite(fd, &byte, 1, 5000), 1);
}

static size_t count_lines(const char *text)
{
	const char *at = log_text;
	size_t nr = 0;

	for (; (at = strstr(at, text)); at++)
		nr++;
	return nr;
}

/* ---- tests ---- */

static const uint64_t sizes[] = { 1 * MIB, 4096, 3 * MIB, 12288 };

/* With a thread meanwhile, with one while tasks wait, and without one, as with an older criu. */
TEST(all_processes_get_their_contents)
{
	static const uint64_t caps[] = { 0, 4096, 1 * MIB };

	for (size_t c = 0; c < ARRAY_SIZE(caps); c++)
		for (int way = 0; way < 3; way++) {
			settings.max_buffer_size_bytes = caps[c];
			begin_tasks(&one_ring, MAX_TASKS, sizes, ARRAY_SIZE(sizes), way == 1);
			if (way != 2)
				pages_filling_begin(filling);
			run_tasks();
			if (way == 1)
				for (size_t i = 0; i < MAX_TASKS; i++)
					assert_restored(&tasks[i]);
			assert_int_equal(pages_filling_end(filling), 0);
			for (size_t i = 0; i < MAX_TASKS; i++)
				assert_restored(&tasks[i]);
			assert_int_equal(log_errors, 0);
			assert_int_equal(count_lines("gpu 0xa0: restored"), MAX_TASKS);
			assert_int_equal(count_lines("gpu 0xa1: restored"), MAX_TASKS);
			assert_int_equal(pages_filling_tally(filling)->bytes, MAX_TASKS * GPUS * (4 * MIB + 16384));
			/* A lane maps its slots, its IBs and, at a time, few BOs: nothing that grows with the tasks. */
			assert_true(fake_drm_peak_mapped() <= GPUS * (LAYOUT_MAX_SLOTS + 1 + ARRAY_SIZE(sizes)));
			end();
		}
	settings.max_buffer_size_bytes = 0;
}

/* By the thread that fills, so that nothing else comes between. */
static void hand_over_between_looks(void)
{
	int nr = atomic_exchange(&looks, -2) + 1;

	if (nr == 2)
		for (size_t i = 0; i < 2; i++)
			assert_int_equal(pages_hand_over(filling, &tasks[i].process), 0);
	if (nr == 4)
		assert_int_equal(pages_hand_over(filling, &tasks[2].process), 0);
	atomic_store(&looks, nr == 4 ? -1 : nr);
}

/* It was looked for on the first GPU when none was there yet; on the second when two were, both on that. */
TEST(buffer_data_on_a_gpu_that_comes_late_are_filled)
{
	begin_tasks(&one_ring, 3, sizes, ARRAY_SIZE(sizes), false);
	tasks[0].process.state.nr_devices = tasks[1].process.state.nr_devices = 1;
	atomic_store(&looks, 0);
	pages_filling_begin(filling);
	for (int naps = 0; naps < 20000 && atomic_load(&looks) != -1; naps++)
		usleep(1000);
	assert_int_equal(looks, -1);
	assert_int_equal(pages_filling_end(filling), 0);
	assert_true(fixture_gpus_same(&tasks[0].saved[0], &tasks[0].target[0]));
	assert_true(fixture_gpus_same(&tasks[1].saved[0], &tasks[1].target[0]));
	assert_restored(&tasks[2]);
	end();
}

TEST(a_stream_is_read_in_the_end_one_file_after_the_other)
{
	is_streaming = true;
	begin_tasks(&one_ring, 2, sizes, ARRAY_SIZE(sizes), true);
	pages_filling_begin(filling);
	run_tasks();
	assert_null(strstr(log_text, "restored 4"));
	assert_int_equal(pages_filling_end(filling), 0);
	for (size_t i = 0; i < nr_tasks; i++)
		assert_restored(&tasks[i]);
	end();
	missing = "pages-0-0.img";
	begin_tasks(&one_ring, 2, sizes, ARRAY_SIZE(sizes), true);
	run_tasks();
	assert_int_equal(pages_filling_end(filling), -ENOENT);
	assert_non_null(strstr(fail_text(), "image pages-0-0.img is missing"));
	fail_clear();
	missing = NULL;
	is_streaming = false;
	end();
}

TEST(many_buffers_travel_in_many_bundles)
{
	static uint64_t small[700];
	struct rlimit limit, few;

	for (size_t i = 0; i < ARRAY_SIZE(small); i++)
		small[i] = 4096 * (1 + i % 3);
	getrlimit(RLIMIT_NOFILE, &limit); /* both sides are in this process */
	few = limit;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	begin_tasks(&one_ring, 1, small, ARRAY_SIZE(small), false);
	pages_filling_begin(filling);
	run_tasks();
	assert_int_equal(pages_filling_end(filling), 0);
	assert_restored(&tasks[0]);
	end();
	setrlimit(RLIMIT_NOFILE, &few);
}

TEST(damage_is_told_once_and_ends_all)
{
	unsigned int nr_told = 0;

	begin_tasks(&one_ring, 3, sizes, ARRAY_SIZE(sizes), true);
	corrupt(&tasks[1]);
	pages_filling_begin(filling);
	run_tasks();
	for (size_t i = 0; i < nr_tasks; i++) {
		assert_true(tasks[i].result == -EBADMSG || tasks[i].result == -ECANCELED || !tasks[i].result);
		nr_told += tasks[i].result == -EBADMSG;
	}
	assert_int_equal(nr_told, 1);
	assert_int_equal(count_lines("gpu 0xa1: pages-a1.img at offset 8: BO 100: is damaged"), 1);
	assert_int_equal(log_errors, 1);
	assert_int_equal(pages_filling_end(filling), -ECANCELED);
	end();
	begin_tasks(&one_ring, 3, sizes, ARRAY_SIZE(sizes), false);
	corrupt(&tasks[1]);
	run_tasks();
	assert_int_equal(pages_filling_end(filling), -EBADMSG);
	assert_non_null(strstr(fail_text(), "BO 100: is damaged"));
	fail_clear();
	end();
}

/* Some 25 s of work for each GPU, of which damage shows after 7. */
static const struct fake_drm_config slow = { .rings = 1, .bytes_per_second = 160e3 };

TEST(a_failure_is_told_while_other_gpus_are_busy)
{
	double began;

	settings.max_buffer_size_bytes = 64 * KIB;
	own_gpus = true;
	begin_tasks(&slow, 2, sizes, ARRAY_SIZE(sizes), false);
	began = monotonic_seconds();
	own_gpus = false;
	settings.max_buffer_size_bytes = 0;
	corrupt(&tasks[1]);
	pages_filling_begin(filling);
	run_tasks();
	assert_int_equal(pages_filling_end(filling), -EBADMSG);
	fail_clear();
	assert_true(monotonic_seconds() - began < 20);
	end();
}

/* As after the failure of a task. */
TEST(a_restore_that_ends_leaves_no_copy)
{
	double began;

	begin_tasks(&slow, 2, sizes, ARRAY_SIZE(sizes), false);
	began = monotonic_seconds();
	pages_filling_begin(filling);
	run_tasks();
	usleep(50000);
	end();
	assert_true(monotonic_seconds() - began < 20);
	begin_tasks(&one_ring, 0, sizes, 0, false);
	pages_filling_begin(filling);
	end();
}

/* As the driver says of what a reset took: that is no failure of another one, which has told it. */
TEST(a_gpu_call_that_was_cancelled_is_told)
{
	static const struct fake_drm_config failing = { .rings = 1, .fail_call = 20, .fail_err = -ECANCELED };

	begin_tasks(&failing, 1, sizes, ARRAY_SIZE(sizes), false);
	pages_filling_begin(filling);
	run_tasks();
	assert_int_equal(pages_filling_end(filling), -EIO);
	assert_true(fail_text()[0]);
	fail_clear();
	end();
}

static unsigned int threads_in(const char *directory)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int nr = 0;
	struct dirent *entry;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char path[300], target[300];
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/task/%s/cwd", entry->d_name);
		len = entry->d_name[0] == '.' ? -1 : readlink(path, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = 0;
		nr += !strcmp(target, directory);
	}
	closedir(dir);
	return nr;
}

/* A thread that shares its working directory with others cannot enter a mount namespace, and criu's main thread has to. */
TEST(the_main_thread_has_its_directories_alone)
{
	int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	unsigned int without; /* a sanitizer may have a thread, too */

	assert_true(before >= 0);
	assert_int_equal(chdir("/proc"), 0);
	without = threads_in("/proc");
	assert_int_equal(fchdir(before), 0);
	begin_tasks(&one_ring, 0, sizes, 0, false);
	pages_filling_begin(filling);
	assert_int_equal(chdir("/proc"), 0);
	assert_int_equal(threads_in("/proc"), without);
	assert_int_equal(fchdir(before), 0);
	end();
	close(before);
}

TEST(without_a_thread_all_is_filled_in_the_end)
{
	begin_tasks(&one_ring, 1, sizes, ARRAY_SIZE(sizes), false);
	fail_threads = true;
	pages_filling_begin(filling);
	fail_threads = false;
	run_tasks();
	assert_non_null(strstr(log_text, "after the memory of processes"));
	assert_int_equal(pages_filling_end(filling), 0);
	assert_restored(&tasks[0]);
	end();
}

static bool fails_once(int nth)
{
	bool reached;
	int err;

	begin_tasks(&one_ring, 2, sizes, 2, false);
	calls_left = nth;
	armed = true;
	pages_filling_begin(filling);
	run_tasks();
	err = pages_filling_end(filling);
	armed = false;
	reached = calls_left <= 0;
	for (size_t i = 0; i < nr_tasks; i++)
		if (!err && !tasks[i].result)
			assert_restored(&tasks[i]);
	if (err && !fail_text()[0] && !log_errors)
		fail_msg("call %d fails without a word", nth);
	fail_clear();
	end();
	return reached;
}

TEST(every_call_may_fail_once)
{
	int nth = 1;

	while (fails_once(nth))
		nth++;
	assert_true(nth > 30);
}

UNIT_MAIN(NULL, NULL)
