// SPDX-License-Identifier: GPL-2.0-only
/*
 * The worker and its tasks, which are threads here: contents of several processes on the
 * same GPUs, and what can go wrong on either side.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "content_test.h"
#include "host/criu.h"
#include "pages/internal.h"
#include "content/layout.h"
#include "pages/pages.h"
#include "wrap.h"

#define MAX_TASKS 4
#define GPUS	  2

/* A process: what was saved, and where it is restored to. */
struct task {
	struct fixture_gpu saved[GPUS], target[GPUS];
	pthread_t thread;
	int token, result;
};

static struct settings settings;
static struct worker *worker;
static struct task tasks[MAX_TASKS];
static size_t nr_tasks;
static size_t fds_before;

/* ---- criu's fd store ---- */

static int store[64];
static size_t nr_stored;
static pthread_mutex_t store_lock = PTHREAD_MUTEX_INITIALIZER;

int criu_keep_file(int fd)
{
	int token;

	pthread_mutex_lock(&store_lock);
	assert_true(nr_stored < ARRAY_SIZE(store));
	token = (int)nr_stored;
	store[nr_stored++] = fd;
	pthread_mutex_unlock(&store_lock);
	return token;
}

int criu_kept_file(int token)
{
	int fd;

	pthread_mutex_lock(&store_lock);
	fd = fcntl(store[token], F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&store_lock);
	return fd;
}

/* ---- wrapped calls ---- */

int __real_fstat(int fd, struct stat *st);

/* Files that stand for render nodes differ in the number of their inode, devices in that of the device. */
int __wrap_fstat(int fd, struct stat *st)
{
	int ret = __real_fstat(fd, st);

	st->st_rdev = st->st_ino;
	return ret;
}

/* The n-th call of all threads fails, or of pthread_create() every one. */
static atomic_int calls_left;
static atomic_bool armed;
static atomic_bool fail_threads;

static bool hit(const char *name)
{
	return atomic_load(&armed) && !fake_drm_depth && atomic_fetch_sub(&calls_left, 1) == 1;
}

WRAP(void *, calloc, (size_t nr, size_t size), (nr, size), (errno = ENOMEM, NULL))
WRAP(ssize_t, sendmsg, (int sock, const struct msghdr *msg, int flags), (sock, msg, flags), (errno = ENOMEM, -1))
WRAP(ssize_t, recvmsg, (int sock, struct msghdr *msg, int flags), (sock, msg, flags), (errno = EIO, -1))
WRAP(int, poll, (struct pollfd * fds, nfds_t nr, int ms), (fds, nr, ms), (errno = EIO, -1))
WRAP(int, socketpair, (int domain, int type, int protocol, int socks[2]), (domain, type, protocol, socks),
     (errno = EMFILE, -1))
WRAP(int, unshare, (int flags), (flags), (errno = EPERM, -1))
WRAP(int, eventfd, (unsigned int count, int flags), (count, flags), (errno = EMFILE, -1))

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	return fail_threads || hit("pthread_create") ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}

/* ---- the common part ---- */

/* The same GPU for all tasks. */
static void share_gpu(struct fixture_gpu *f, const struct fixture_gpu *first)
{
	close(f->gpu.render_fd);
	f->gpu.render_fd = fcntl(first->gpu.render_fd, F_DUPFD_CLOEXEC, 0);
}

static bool own_gpus; /* each task has others */

static void task_init(struct task *task, const uint64_t *sizes, size_t nr, uint64_t seed)
{
	struct rng rng = { seed };

	for (uint32_t g = 0; g < GPUS; g++) {
		fixture_gpu_init(&task->saved[g], 0xa0 + g, sizes, nr, FILL_MIXED, &rng);
		task->saved[g].gpu.pages_fd = fixture_file(FIXTURE_MEMORY);
		assert_int_equal(fixture_dump(&task->saved[g].gpu, 1, 0), 0);
		fixture_gpu_like(&task->target[g], &task->saved[g]);
		if (task != tasks && !own_gpus)
			share_gpu(&task->target[g], &tasks[0].target[g]);
	}
}

static void begin_tasks(const struct fake_drm_config *config, size_t nr, const uint64_t *sizes, size_t nr_sizes)
{
	fds_before = fixture_open_fds();
	fake_drm_begin(&one_ring);
	nr_tasks = nr;
	for (size_t i = 0; i < nr; i++)
		task_init(&tasks[i], sizes, nr_sizes, i + 1);
	begin_gpus(config);
}

static void begin(const struct fake_drm_config *config, size_t nr, const uint64_t *sizes, size_t nr_sizes)
{
	begin_tasks(config, nr, sizes, nr_sizes);
	worker = worker_new(&settings, GPUS, NULL);
	assert_non_null(worker);
	worker_start(worker);
}

/* Everything is closed and freed, and no thread is left. */
static void end(void)
{
	worker_free(worker);
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

static int submit(struct task *task)
{
	const struct content_gpu gpus[GPUS] = { task->target[0].gpu, task->target[1].gpu };

	return worker_submit(worker, gpus, GPUS);
}

static void *task_thread(void *arg)
{
	struct task *task = arg;

	task->token = submit(task);
	task->result = task->token < 0 ? task->token : worker_wait(task->token);
	fail_log(); /* as a hook does */
	return NULL;
}

static void start_tasks(void)
{
	for (size_t i = 0; i < nr_tasks; i++)
		assert_int_equal(pthread_create(&tasks[i].thread, NULL, task_thread, &tasks[i]), 0);
}

static void join_tasks(void)
{
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

/* ---- tests ---- */

static const uint64_t sizes[] = { 1 * MIB, 4096, 3 * MIB, 12288 };

TEST(all_processes_get_their_contents)
{
	static const uint64_t caps[] = { 0, 4096, 1 * MIB };

	for (size_t c = 0; c < ARRAY_SIZE(caps); c++) {
		settings.max_buffer_size_bytes = caps[c];
		begin(&one_ring, MAX_TASKS, sizes, ARRAY_SIZE(sizes));
		start_tasks();
		join_tasks();
		for (size_t i = 0; i < MAX_TASKS; i++)
			assert_restored(&tasks[i]);
		assert_int_equal(worker_wait_all(worker), 0);
		assert_int_equal(log_errors, 0);
		assert_non_null(strstr(log_text, "gpu 0xa0: restored"));
		assert_non_null(strstr(log_text, "gpu 0xa1: restored"));
		/* A lane maps its slots, its IBs and, at a time, few BOs: nothing that grows with the tasks. */
		assert_true(fake_drm_peak_mapped() <= GPUS * (LAYOUT_MAX_SLOTS + 1 + ARRAY_SIZE(sizes)));
		end();
	}
	settings.max_buffer_size_bytes = 0;
}

TEST(many_buffers_travel_in_many_messages)
{
	static uint64_t small[700];
	struct rlimit limit, few;

	for (size_t i = 0; i < ARRAY_SIZE(small); i++)
		small[i] = 4096 * (1 + i % 3);
	getrlimit(RLIMIT_NOFILE, &limit); /* both sides are in this process */
	few = limit;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	begin(&one_ring, 1, small, ARRAY_SIZE(small));
	start_tasks();
	join_tasks();
	assert_restored(&tasks[0]);
	end();
	setrlimit(RLIMIT_NOFILE, &few);
}

static size_t count_lines(const char *text)
{
	const char *at = log_text;
	size_t nr = 0;

	for (; (at = strstr(at, text)); at++)
		nr++;
	return nr;
}

TEST(damage_is_told_once_and_cancels_the_others)
{
	unsigned int nr_cancelled = 0;

	begin(&one_ring, 3, sizes, ARRAY_SIZE(sizes));
	corrupt(&tasks[1]);
	start_tasks();
	join_tasks();
	for (size_t i = 0; i < nr_tasks; i += 2) {
		nr_cancelled += tasks[i].result == -ECANCELED;
		if (tasks[i].result != -ECANCELED)
			assert_restored(&tasks[i]);
	}
	assert_int_equal(tasks[1].result, -EBADMSG);
	assert_int_equal(count_lines("gpu 0xa1: pages-a1.img at offset 8: BO 100 is damaged"), 1);
	assert_int_equal(log_errors, 1);
	assert_int_equal(count_lines("the restore of contents was cancelled"), nr_cancelled);
	assert_int_equal(worker_wait_all(worker), -EBADMSG);
	end();
}

/* Some 25 s of work for each GPU. */
static const struct fake_drm_config slow = { .rings = 1, .bytes_per_second = 160e3 };

TEST(a_failure_is_told_while_other_gpus_are_busy)
{
	double began = monotonic_seconds();

	settings.max_buffer_size_bytes = 64 * KIB;
	own_gpus = true;
	begin(&slow, 2, sizes, ARRAY_SIZE(sizes));
	own_gpus = false;
	settings.max_buffer_size_bytes = 0;
	corrupt(&tasks[1]);
	start_tasks();
	join_tasks();
	assert_int_equal(tasks[0].result, -ECANCELED);
	assert_int_equal(tasks[1].result, -EBADMSG);
	assert_true(monotonic_seconds() - began < 15);
	end();
}

TEST(a_gpu_call_that_fails_fails_the_process)
{
	static const struct fake_drm_config failing = { .rings = 1, .fail_call = 20, .fail_err = -ENOMEM };

	begin(&failing, 1, sizes, ARRAY_SIZE(sizes));
	start_tasks();
	join_tasks();
	assert_int_equal(tasks[0].result, -ENOMEM);
	assert_int_equal(log_errors, 1);
	end();
}

/* As the driver says of what a reset took: that is no failure of another one, which has told it. */
TEST(a_gpu_call_that_was_cancelled_is_told)
{
	static const struct fake_drm_config failing = { .rings = 1, .fail_call = 20, .fail_err = -ECANCELED };

	begin(&failing, 1, sizes, ARRAY_SIZE(sizes));
	start_tasks();
	join_tasks();
	assert_int_equal(tasks[0].result, -EIO);
	assert_int_equal(log_errors, 1);
	end();
}

TEST(a_worker_that_ends_leaves_no_task_waiting)
{
	settings.max_buffer_size_bytes = 64 * KIB; /* what is in flight is waited for */
	begin(&slow, 2, sizes, ARRAY_SIZE(sizes));
	settings.max_buffer_size_bytes = 0;
	for (size_t i = 0; i < nr_tasks; i++)
		tasks[i].token = submit(&tasks[i]);
	worker_free(worker);
	worker = NULL;
	for (size_t i = 0; i < nr_tasks; i++) {
		assert_true(tasks[i].token >= 0);
		assert_true(worker_wait(tasks[i].token) < 0);
		fail_log();
	}
	assert_int_equal(log_errors, 0);
	assert_int_equal(count_lines("the restore of contents was cancelled"), 2);
	end();
}

TEST(a_task_that_is_gone_disturbs_nobody)
{
	int socks[2], channel;

	begin(&one_ring, 2, sizes, ARRAY_SIZE(sizes));
	/* One that leaves before it has said anything, one that leaves in the middle, one that does not wait. */
	channel = criu_kept_file(0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), 0);
	assert_int_equal(wire_send_fd(channel, socks[1]), 0);
	close(socks[0]);
	close(socks[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), 0);
	assert_int_equal(wire_send_fd(channel, socks[1]), 0);
	assert_int_equal(send(socks[0], &(size_t){ 2 }, sizeof(size_t), 0), sizeof(size_t));
	close(socks[0]);
	close(socks[1]);
	close(channel);
	assert_true(submit(&tasks[0]) >= 0);
	assert_int_equal(pthread_create(&tasks[1].thread, NULL, task_thread, &tasks[1]), 0);
	pthread_join(tasks[1].thread, NULL);
	assert_restored(&tasks[1]);
	assert_int_equal(worker_wait_all(worker), 0);
	tasks[0].result = 0;
	assert_restored(&tasks[0]);
	end();
}

TEST(a_message_that_is_no_job_is_refused)
{
	int socks[2], channel;

	begin(&one_ring, 0, NULL, 0);
	channel = criu_kept_file(0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), 0);
	assert_int_equal(wire_send_fd(channel, socks[1]), 0);
	assert_int_equal(send(socks[0], "abc", 3, 0), 3);
	close(socks[1]);
	close(channel);
	assert_int_equal(wire_recv_accepted(socks[0]), -EBADMSG);
	assert_int_equal(worker_wait_all(worker), 0);
	close(socks[0]);
	end();
}

TEST(too_few_files_leave_the_copy_to_the_task)
{
	static uint64_t small[200];
	struct rlimit limit, few;

	for (size_t i = 0; i < ARRAY_SIZE(small); i++)
		small[i] = 4096;
	begin(&one_ring, 1, small, ARRAY_SIZE(small));
	getrlimit(RLIMIT_NOFILE, &limit);
	few = limit;
	few.rlim_cur = fixture_open_fds() + 100;
	setrlimit(RLIMIT_NOFILE, &few);
	start_tasks();
	join_tasks();
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(tasks[0].result, -EMFILE); /* of worker_submit(): the task copies */
	assert_int_equal(worker_wait_all(worker), 0);
	assert_int_equal(log_errors, 0);
	end();
}

TEST(without_a_thread_the_task_copies)
{
	fail_threads = true;
	begin(&one_ring, 0, NULL, 0);
	fail_threads = false;
	assert_int_equal(submit(&tasks[0]), -ENOTCONN);
	assert_non_null(strstr(log_text, "each restores its own: starting a thread"));
	assert_int_equal(log_errors, 0);
	end();
}

/* The threads of lanes are refused, the receiver runs: as with a limit of the number of tasks. */
TEST(without_a_lane_the_task_copies)
{
	begin(&one_ring, 1, sizes, ARRAY_SIZE(sizes));
	fail_threads = true;
	assert_int_equal(submit(&tasks[0]), -EAGAIN);
	fail_threads = false;
	assert_int_equal(worker_wait_all(worker), 0);
	assert_int_equal(log_errors, 0);
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

/* A thread that shares its working directory with others cannot enter a mount namespace, and criu's main thread has to.
 */
TEST(the_main_thread_has_its_directories_alone)
{
	int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	unsigned int without_worker; /* a sanitizer may have a thread, too */

	assert_true(before >= 0);
	assert_int_equal(chdir("/proc"), 0);
	without_worker = threads_in("/proc");
	assert_int_equal(fchdir(before), 0);
	begin(&one_ring, 0, NULL, 0);
	assert_int_equal(chdir("/proc"), 0);
	assert_int_equal(threads_in("/proc"), without_worker);
	assert_int_equal(fchdir(before), 0);
	end();
	close(before);
}

/* A task restores, with the copy of its own where the worker does not take it; the n-th call fails. */
static void restore_with_fault(int n)
{
	struct task *task = &tasks[0];

	atomic_store(&calls_left, n);
	atomic_store(&armed, true);
	worker = worker_new(&settings, GPUS, NULL);
	task->token = -ENOTCONN;
	if (worker) {
		worker_start(worker);
		task->token = submit(task);
	}
	if (task->token >= 0)
		task->result = worker_wait(task->token);
	atomic_store(&armed, false);
	if (!worker || task->token >= 0)
		return;
	for (size_t g = 0; g < GPUS; g++)
		assert_int_equal(fixture_restore(&task->target[g].gpu, 1, 0), 0);
	task->result = 0;
}

TEST(every_call_may_fail_once)
{
	static const uint64_t few[] = { 12288, 4096 };
	int n = 1;

	do {
		begin_tasks(&one_ring, 1, few, ARRAY_SIZE(few));
		restore_with_fault(n++);
		if (!worker) {
			assert_said_once("cannot prepare the worker");
		} else if (tasks[0].result) {
			assert_int_equal(log_errors, 1);
		} else {
			assert_restored(&tasks[0]);
			assert_int_equal(log_errors, 0);
		}
		end();
	} while (atomic_load(&calls_left) <= 0);
	print_message("%d calls\n", n - 1);
	assert_true(n > 30);
}

UNIT_MAIN(NULL, NULL)
