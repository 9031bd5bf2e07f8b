// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fault loop: each library and system call of a dump and of a restore fails once, one
 * after the other. Whatever fails, the engine either says so with that error, in one line,
 * or has done its work completely; and nothing of it remains.
 *
 * The system calls are wrapped by the linker (--wrap, see unit.mk). Which of several
 * threads makes the n-th call differs from run to run; that all are made to fail does not.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <libdrm/amdgpu.h>

#include "unit.h"
#include "content/pagesio.h"
#include "content_fixture.h"
#include "fake_drm.h"
#include "log_stub.h"
#include "wrap.h"

#define KIB 1024ull

/* ---- wrapped system calls ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool armed;
static unsigned int calls, fail_nth;
static int fail_errno;
static const char *failed_call;
static uint64_t direct_bytes, cached_bytes; /* read from files, the length prefix apart */
static const char *never_works;	      /* each call of this name fails */
static unsigned int searches;	      /* calls of lseek */
static bool direct_never_works;	      /* transfers to and from a file fail with EINVAL while O_DIRECT is on */
static long mapped_bytes, peak_bytes; /* by mmap less munmap, of the engine */

/* Whether the call of this name is the one; errno is set then. */
static bool hit(const char *name)
{
	bool ret = false;

	if (fake_drm_depth)
		return false;
	pthread_mutex_lock(&lock);
	searches += !strcmp(name, "lseek");
	if (armed && (++calls == fail_nth || (never_works && !strcmp(name, never_works)))) {
		failed_call = name;
		ret = true;
	}
	pthread_mutex_unlock(&lock);
	if (ret)
		errno = fail_errno;
	return ret;
}

static void count_mapped(long bytes)
{
	if (fake_drm_depth)
		return;
	pthread_mutex_lock(&lock);
	mapped_bytes += bytes;
	if (mapped_bytes > peak_bytes)
		peak_bytes = mapped_bytes;
	pthread_mutex_unlock(&lock);
}

WRAP(void *, calloc, (size_t n, size_t size), (n, size), NULL)
WRAP(ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, n), -1)
WRAP(ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, n), -1)
WRAP(off_t, lseek, (int fd, off_t off, int whence), (fd, off, whence), -1)
WRAP(int, fstat, (int fd, struct stat *st), (fd, st), -1)
WRAP(int, ftruncate, (int fd, off_t len), (fd, len), -1)
WRAP(int, posix_fadvise, (int fd, off_t off, off_t len, int advice), (fd, off, len, advice), fail_errno)
WRAP(int, poll, (struct pollfd * fds, nfds_t n, int timeout), (fds, n, timeout), -1)
WRAP(int, memfd_create, (const char *name, unsigned int flags), (name, flags), -1)
WRAP(int, madvise, (void *mem, size_t len, int advice), (mem, len, advice), -1)
static long counts_as; /* what file systems seem to be; 0: what they are */

int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs)
{
	int ret = hit("fstatfs") ? -1 : __real_fstatfs(fd, fs);

	if (!ret && !fake_drm_depth && counts_as)
		fs->f_type = counts_as;
	return ret;
}

static bool full_disk, no_size; /* of the disk: no room; it tells none, as some file systems do */

int __real_fstatvfs(int fd, struct statvfs *fs);
int __wrap_fstatvfs(int fd, struct statvfs *fs)
{
	int ret = hit("fstatvfs") ? -1 : __real_fstatvfs(fd, fs);

	if (full_disk)
		fs->f_bfree = 1;
	if (no_size)
		fs->f_blocks = fs->f_bfree = 0;
	return ret;
}

static unsigned int nr_inner, nth_inner_refused; /* of those that threads start */
static pthread_t main_thread;

static bool is_refused(void)
{
	if (fake_drm_depth || !armed)
		return false;
	if (pthread_equal(pthread_self(), main_thread))
		return false;
	return __atomic_add_fetch(&nr_inner, 1, __ATOMIC_RELAXED) == nth_inner_refused;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	if (!fake_drm_depth && hit("pthread_create"))
		return fail_errno;
	if (is_refused())
		return EAGAIN;
	return __real_pthread_create(thread, attr, fn, arg);
}

/* These two have arguments that vary; all that are used here fit into one of the width of a pointer. */
int __real_fcntl(int fd, int op, ...);
int __wrap_fcntl(int fd, int op, ...)
{
	va_list args;
	long arg;

	va_start(args, op);
	arg = va_arg(args, long);
	va_end(args);
	return hit("fcntl") ? -1 : __real_fcntl(fd, op, arg);
}

/* ---- what is in the page cache only ---- */

#define BLOCK	   4096u
#define MAX_BLOCKS 1024u

/* Blocks of a pages file that were written through the cache and that nobody has waited for since. */
static struct cached {
	ino_t file; /* that several fds may have open */
	bool blocks[MAX_BLOCKS];
} cached[2];

static ino_t inode(int fd)
{
	struct stat st = { 0 };

	return __real_fstat(fd, &st) ? 0 : st.st_ino;
}

static void note_blocks(int fd, off_t from, size_t len, bool is_cached)
{
	ino_t file = inode(fd);

	pthread_mutex_lock(&lock);
	for (size_t f = 0; armed && !fake_drm_depth && f < ARRAY_SIZE(cached); f++)
		for (size_t i = (size_t)from / BLOCK; cached[f].file == file && i * BLOCK < (size_t)from + len; i++)
			cached[f].blocks[i] = is_cached;
	pthread_mutex_unlock(&lock);
}

static size_t blocks_in_cache(void)
{
	size_t nr = 0;

	for (size_t f = 0; f < ARRAY_SIZE(cached); f++)
		for (size_t i = 0; i < MAX_BLOCKS; i++)
			nr += cached[f].blocks[i];
	return nr;
}

int __real_sync_file_range(int fd, off_t off, off_t len, unsigned int flags);
int __wrap_sync_file_range(int fd, off_t off, off_t len, unsigned int flags)
{
	if (hit("sync_file_range"))
		return -1;
	if (flags == (SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER))
		note_blocks(fd, off, (size_t)len, false);
	return __real_sync_file_range(fd, off, len, flags);
}

static off_t fail_at = -1; /* a transfer that begins there fails */

static bool hit_direct(const char *name, int fd, off_t off)
{
	if (hit(name))
		return true;
	if (armed && !fake_drm_depth && off == fail_at) {
		failed_call = name;
		errno = fail_errno;
		return true;
	}
	if (fake_drm_depth || !direct_never_works || !(__real_fcntl(fd, F_GETFL) & O_DIRECT))
		return false;
	errno = EINVAL;
	return true;
}

/* In use for cachestat() only, which has four arguments. */
long __real_syscall(long nr, ...);
long __wrap_syscall(long nr, ...)
{
	va_list args;
	long a[4];

	va_start(args, nr);
	for (size_t i = 0; i < ARRAY_SIZE(a); i++)
		a[i] = va_arg(args, long);
	va_end(args);
	return hit("syscall") ? -1 : __real_syscall(nr, a[0], a[1], a[2], a[3]);
}

static void note_read(int fd, size_t n)
{
	pthread_mutex_lock(&lock);
	if (!fake_drm_depth && n > 8)
		*(__real_fcntl(fd, F_GETFL) & O_DIRECT ? &direct_bytes : &cached_bytes) += n;
	pthread_mutex_unlock(&lock);
}

ssize_t __real_pread(int fd, void *buf, size_t n, off_t off);
ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t off)
{
	note_read(fd, n);
	return hit_direct("pread", fd, n > 8 ? off : -2) ? -1 : __real_pread(fd, buf, n, off);
}

ssize_t __real_pwrite(int fd, const void *buf, size_t n, off_t off);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t n, off_t off)
{
	if (hit_direct("pwrite", fd, n > 8 ? off : -2))
		return -1;
	if (!(__real_fcntl(fd, F_GETFL) & O_DIRECT))
		note_blocks(fd, off, n, true);
	return __real_pwrite(fd, buf, n, off);
}

void *__real_mmap(void *mem, size_t len, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *mem, size_t len, int prot, int flags, int fd, off_t off)
{
	if (hit("mmap"))
		return MAP_FAILED;
	count_mapped((long)len);
	return __real_mmap(mem, len, prot, flags, fd, off);
}

int __real_munmap(void *mem, size_t len);
int __wrap_munmap(void *mem, size_t len)
{
	int ret = __real_munmap(mem, len);

	count_mapped(-(long)len);
	return hit("munmap") ? -1 : ret;
}

int __real_close(int fd);
int __wrap_close(int fd)
{
	int ret = __real_close(fd);

	return hit("close") ? -1 : ret;
}

/* ---- one run ---- */

struct scenario {
	const char *name;
	bool restore, streaming;
	uint32_t rings; /* 0: one */
	const char *dir;
	uint64_t max_bytes; /* 0: 1 MiB */
	bool in_turn; /* both on one GPU, one after the other */
};

struct fault {
	bool in_library;
	unsigned int nth;
	int err; /* positive */
};

static const uint64_t sizes[2][4] = { { 40 * KIB, 4096, 1500 * KIB, 12288 }, { 4096, 100, 200 * KIB, 4096 } };
static struct fixture_gpu saved[2];
static int saved_files[2], memory_files[2]; /* the same contents */

static void arm(const struct fault *fault, const struct scenario *scenario)
{
	struct fake_drm_config config = { .rings = scenario->rings ? scenario->rings : 1 };

	if (fault && fault->in_library) {
		config.fail_call = fault->nth;
		config.fail_err = -fault->err;
	}
	fake_drm_begin(&config);
	log_clear();
	pthread_mutex_lock(&lock);
	calls = 0;
	failed_call = NULL;
	fail_nth = fault && !fault->in_library ? fault->nth : 0;
	fail_errno = fault ? fault->err : 0;
	mapped_bytes = 0;
	armed = true;
	pthread_mutex_unlock(&lock);
}

static const char *disarm(void)
{
	pthread_mutex_lock(&lock);
	armed = false;
	pthread_mutex_unlock(&lock);
	return failed_call ? failed_call : fake_drm_failed_call();
}

struct ends {
	struct fixture_peer *peers[2];
};

static void open_ends(const struct scenario *scenario, struct fixture_gpu *f, struct ends *ends)
{
	for (int i = 0; i < 2; i++) {
		int file = f[i].gpu.pages_fd;

		f[i].gpu.streaming = scenario->streaming;
		ends->peers[i] = NULL;
		if (!scenario->streaming)
			f[i].gpu.pages_fd = file;
		else if (scenario->restore)
			ends->peers[i] = fixture_writer(file, 8 + f[i].bytes, &f[i].gpu.pages_fd);
		else
			ends->peers[i] = fixture_reader(file, &f[i].gpu.pages_fd);
	}
}

static void close_ends(const struct scenario *scenario, struct fixture_gpu *f, struct ends *ends)
{
	for (int i = 0; i < 2; i++)
		if (scenario->streaming) {
			close(f[i].gpu.pages_fd);
			fixture_peer_join(ends->peers[i]);
		}
}

static bool is_one_of(const char *call, const char *const *names, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(call, names[i]))
			return true;
	return false;
}

/*
 * What a file system or kernel may lack, what is only advice, and what releases what holds no contents: the pages files
 * are closed by others. An error of the disk is none of these.
 */
static bool may_be_ignored(const char *call, int err)
{
	static const char *const names[] = { "madvise", "posix_fadvise", "fstatfs", "fstatvfs", "lseek",
					     "fcntl",	"munmap",	 "close",   "syscall",
					     "pthread_create" /* of a further lane */ };

	if (!strcmp(call, "sync_file_range"))
		return err != EIO && err != ENOSPC && err != EDQUOT;
	return is_one_of(call, names, ARRAY_SIZE(names));
}

static bool is_retried(const char *call, int err)
{
	static const char *const names[] = {
		"read", "write", "pread", "pwrite", "poll", "amdgpu_cs_query_fence_status"
	};

	return err == EINTR && is_one_of(call, names, ARRAY_SIZE(names));
}

static void check_outcome(const struct scenario *scenario, const struct fault *fault, const char *call, int ret)
{
	int err = strcmp(call, "calloc") ? fault->err : ENOMEM;

	if (!ret && !may_be_ignored(call, err) && !is_retried(call, err))
		fail_msg("%s: %s failed (call %u), and nobody noticed", scenario->name, call, fault->nth);
	if (ret && (ret != -err || is_retried(call, err)))
		fail_msg("%s: %s failed with %d, reported was %d:\n%s", scenario->name, call, -err, ret, log_text);
	if (log_errors != (ret != 0))
		fail_msg("%s: %s failed, %u error lines:\n%s", scenario->name, call, log_errors, log_text);
}

static void check_left(const struct scenario *scenario, const char *call, size_t fds)
{
	if (fake_drm_violation())
		fail_msg("%s, %s fails: %s", scenario->name, call, fake_drm_violation());
	if (fake_drm_live_objects())
		fail_msg("%s, %s fails: %zu objects left", scenario->name, call, fake_drm_live_objects());
	if (fixture_open_fds() != fds)
		fail_msg("%s, %s fails: an fd is left", scenario->name, call);
	if (mapped_bytes)
		fail_msg("%s, %s fails: %ld mapped bytes left", scenario->name, call, mapped_bytes);
}

/* An image's length says nothing of what is in it, so one that is not complete, as another GPU's may be, is empty. */
static void check_discarded(const struct scenario *scenario, const char *call, int fd, const struct fixture_gpu *f)
{
	struct stat st;

	if (scenario->restore || scenario->streaming || !strcmp(call, "ftruncate"))
		return;
	assert_int_equal(__real_fstat(fd, &st), 0);
	if (st.st_size && !fixture_file_is_right(fd, f))
		fail_msg("%s, %s fails: %lld bytes are left", scenario->name, call, (long long)st.st_size);
}

/* With flags of its own: giving them back may be what fails. */
static int reopen(int fd)
{
	char path[32];
	int ret;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(ret >= 0);
	return ret;
}

static bool is_on_disk(const struct scenario *scenario)
{
	return scenario->dir && !strcmp(scenario->dir, FIXTURE_DISK);
}

/* Of two, one after the other. */
static int next_of_two(void *arg, struct content_gpu *gpu)
{
	struct content_gpu **next = arg, *end = next[1];

	if (next[0] == end)
		return 0;
	*gpu = *next[0]++;
	return 1;
}

static int run_engine(const struct scenario *scenario, struct content_gpu gpus[2])
{
	struct content_gpu *next[] = { gpus, gpus + 2 }, place = { 0 };
	const struct content_options options = {
		.max_buffer_bytes = scenario->max_bytes ? scenario->max_bytes : 1024 * KIB,
		.next = scenario->in_turn ? next_of_two : NULL,
		.next_arg = next,
	};
	size_t nr_gpus = scenario->in_turn ? 1 : 2;

	if (scenario->in_turn)
		gpus = &place;
	return content_copy(scenario->restore ? CONTENT_RESTORE : CONTENT_DUMP, gpus, nr_gpus, &options);
}

/* The call that failed; NULL when there are fewer than fault->nth. */
static const char *run_once(const struct scenario *scenario, const struct fault *fault)
{
	struct fixture_gpu f[2];
	struct content_gpu gpus[2];
	struct ends ends;
	size_t fds = fixture_open_fds();
	const char *call;
	int ret, files[2];

	for (int i = 0; i < 2; i++) {
		fixture_gpu_like(&f[i], &saved[i]);
		files[i] = scenario->restore ? reopen(scenario->dir ? memory_files[i] : saved_files[i])
					     : fixture_file(scenario->dir);
		f[i].gpu.pages_fd = files[i];
		for (size_t b = 0; !scenario->restore && b < f[i].gpu.nr_bos; b++)
			assert_true(dup2(saved[i].gpu.bos[b].dmabuf_fd, f[i].gpu.bos[b].dmabuf_fd) >= 0);
	}
	open_ends(scenario, f, &ends);
	gpus[0] = f[0].gpu;
	gpus[1] = f[1].gpu;
	for (int i = 0; i < 2; i++)
		cached[i] = (struct cached){ .file = is_on_disk(scenario) ? inode(files[i]) : 0 };
	arm(fault, scenario);
	ret = run_engine(scenario, gpus);
	call = disarm();
	close_ends(scenario, f, &ends);
	if (call)
		check_outcome(scenario, fault, call, ret);
	else
		assert_int_equal(ret, 0);
	for (int i = 0; i < 2; i++) {
		if (!ret)
			assert_true(scenario->restore ? fixture_gpus_same(&f[i], &saved[i])
						      : fixture_file_is_right(files[i], &f[i]));
		else
			check_discarded(scenario, call, files[i], &f[i]);
		fixture_gpu_done(&f[i]);
		close(files[i]);
	}
	if (!ret && !(call && !strcmp(call, "sync_file_range")) && blocks_in_cache())
		fail_msg("%s, %s fails: errors of writing %zu blocks to the disk are not seen", scenario->name,
			 call ? call : "nothing", blocks_in_cache());
	check_left(scenario, call ? call : "nothing", fds);
	return call;
}

static void fail_each_call(const struct scenario *scenario, bool in_library, int err)
{
	struct fault fault = { .in_library = in_library, .err = err };

	do {
		fault.nth++;
	} while (run_once(scenario, &fault));
	/* Fewer would mean that the loop did not reach what it is for. */
	assert_true(fault.nth > 30);
}

static void fail_all(const struct scenario *scenario)
{
	fail_each_call(scenario, false, EIO);
	fail_each_call(scenario, false, EINTR);
	fail_each_call(scenario, true, ENOMEM);
}

static const struct scenario
	dump_to_disk = { "dump to disk", .dir = FIXTURE_DISK },
	dump_to_memory = { "dump to memory", .rings = 3, .dir = FIXTURE_MEMORY },
	dump_to_pipe = { "dump to a pipe", .streaming = true, .dir = FIXTURE_MEMORY },
	dump_in_turn = { "dump of two on one GPU", .dir = FIXTURE_DISK, .in_turn = true },
	restore = { "restore", .restore = true },
	restore_from_memory = { "restore from memory", .restore = true, .dir = FIXTURE_MEMORY },
	restore_from_pipe = { "restore from a pipe", .restore = true, .streaming = true };

#define FAULT_TEST(name, scenario)     \
	TEST(name)                     \
	{                              \
		fail_all(&(scenario)); \
	}

FAULT_TEST(any_failure_of_a_dump_to_disk_is_reported, dump_to_disk)
FAULT_TEST(any_failure_of_a_dump_to_memory_is_reported, dump_to_memory)
FAULT_TEST(any_failure_of_a_dump_to_a_pipe_is_reported, dump_to_pipe)
FAULT_TEST(any_failure_of_a_dump_of_two_on_one_gpu_is_reported, dump_in_turn)
FAULT_TEST(any_failure_of_a_restore_is_reported, restore)
FAULT_TEST(any_failure_of_a_restore_from_memory_is_reported, restore_from_memory)
FAULT_TEST(any_failure_of_a_restore_from_a_pipe_is_reported, restore_from_pipe)

/* Fault-free but for calls that the kernel or the file system lacks. */
static void run_without(const struct scenario *scenario, const char *call, int err, const char *warning)
{
	struct fault fault = { .err = err };

	never_works = call;
	run_once(scenario, &fault);
	never_works = NULL;
	if (log_errors)
		fail_msg("%s without %s: %s", scenario->name, call, log_text);
	if (!!strstr(log_text, "Warning") != !!warning || (warning && !strstr(log_text, warning)))
		fail_msg("%s without %s: expected warning \"%s\":\n%s", scenario->name, call, warning ? warning : "",
			 log_text);
}

TEST(what_a_kernel_lacks_is_not_needed)
{
	full_disk = true;
	run_without(&dump_to_disk, "nothing", 0, "gpu 0x61: the disk has no room for the ");
	full_disk = false;
	no_size = true;
	run_without(&dump_to_disk, "nothing", 0, NULL);
	no_size = false;
	run_without(&dump_to_disk, "sync_file_range", ENOSYS, NULL);
	run_without(&dump_to_disk, "posix_fadvise", EINVAL, NULL);
	run_without(&dump_to_disk, "madvise", EINVAL, NULL);
	run_without(&dump_to_disk, "fstatfs", ENOSYS, NULL);
	run_without(&restore, "lseek", EINVAL, NULL);
	run_without(&restore, "syscall", ENOSYS, NULL);
	run_without(&restore, "syscall", EPERM, NULL);
}

/* ---- the lanes of a GPU ---- */

static const struct scenario *const by_two[] = { &dump_to_memory, &restore_from_memory };

TEST(a_lane_that_is_refused_is_not_needed)
{
	for (size_t i = 0; i < ARRAY_SIZE(by_two); i++)
		for (nth_inner_refused = 0; nth_inner_refused <= 1; nth_inner_refused++) {
			nr_inner = 0;
			run_without(by_two[i], "nothing", 0, NULL);
			assert_int_equal(nr_inner, 1); /* the second GPU has two windows, and one lane */
		}
	nth_inner_refused = 0;
}

/* Windows that begin with a hole are not transferred there. */
TEST(a_failure_of_any_lane_names_the_place)
{
	static const struct fault fault = { .err = EIO };
	const off_t window = 128 * KIB;

	for (size_t i = 0; i < ARRAY_SIZE(by_two); i++) {
		unsigned int nr_failures[2] = { 0 };
		char text[64];

		for (fail_at = window; fail_at < (off_t)saved[0].bytes; fail_at += window) {
			snprintf(text, sizeof(text), ".img at offset %lld (BO ", (long long)fail_at);
			if (!run_once(by_two[i], &fault))
				continue;
			nr_failures[fail_at / window % 2]++;
			if (!strstr(log_text, text))
				fail_msg("the log lacks \"%s\":\n%s", text, log_text);
		}
		assert_true(nr_failures[0] && nr_failures[1]);
	}
	fail_at = -1;
}

static cpu_set_t processors(void)
{
	cpu_set_t ret;

	assert_int_equal(sched_getaffinity(0, sizeof(ret), &ret), 0);
	return ret;
}

static void use_processors(const cpu_set_t *set)
{
	assert_int_equal(sched_setaffinity(0, sizeof(*set), set), 0);
}

/* Of contents that are large enough; one lane is in the thread that the caller starts. */
TEST(a_file_has_lanes_by_where_it_is)
{
	static const uint64_t large[] = { 16 * 1024 * KIB };
	cpu_set_t one, allowed = processors();
	const struct {
		long f_type;
		const cpu_set_t *processors;
		unsigned int nr_lanes;
	} known[] = {
		{ EXT4_SUPER_MAGIC, &allowed, .nr_lanes = 3 },
		{ TMPFS_MAGIC, &one, .nr_lanes = 2 },
		{ TMPFS_MAGIC, &allowed, .nr_lanes = CPU_COUNT(&allowed) < 3 ? 2 : 3 },
		{ NFS_SUPER_MAGIC, &one, .nr_lanes = 3 },
	};
	struct rng rng = { 5 };
	struct fixture_gpu gpu;

	CPU_ZERO(&one);
	for (int cpu = 0; !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &allowed))
			CPU_SET(cpu, &one);
	fixture_gpu_init(&gpu, 0x62, large, 1, FILL_RANDOM, &rng);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		gpu.gpu.pages_fd = fixture_file(FIXTURE_MEMORY);
		counts_as = known[i].f_type;
		nr_inner = 0;
		use_processors(known[i].processors);
		arm(NULL, &dump_to_disk);
		assert_int_equal(fixture_dump(&gpu.gpu, 1, 0), 0);
		disarm();
		use_processors(&allowed);
		assert_int_equal(nr_inner, known[i].nr_lanes - 1);
		counts_as = 0;
		assert_true(fixture_file_is_right(gpu.gpu.pages_fd, &gpu));
		close(gpu.gpu.pages_fd);
	}
	fixture_gpu_done(&gpu);
}

/* ---- the processors near a GPU ---- */

static const char *near_gpu; /* what sysfs says; NULL: nothing */
static cpu_set_t chosen;
static unsigned int nr_chosen;

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (strncmp(path, "/sys/dev/char/", strlen("/sys/dev/char/")))
		return __real_fopen(path, mode);
	return near_gpu ? fmemopen((void *)(uintptr_t)near_gpu, strlen(near_gpu), "r") : NULL;
}

int __wrap_pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
	assert_int_equal(size, sizeof(chosen));
	pthread_mutex_lock(&lock);
	chosen = *set;
	nr_chosen++;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* Of those that the process may use. */
TEST(lanes_run_near_their_gpu)
{
	char text[64];
	cpu_set_t allowed = processors();
	int first = 0;

	while (!CPU_ISSET(first, &allowed))
		first++;
	snprintf(text, sizeof(text), "%d,%d-%d\n", first, CPU_SETSIZE - 2, CPU_SETSIZE + 9);
	near_gpu = text;
	nr_chosen = 0;
	assert_null(run_once(&dump_to_disk, NULL));
	assert_int_equal(nr_chosen, 2); /* once for each of two GPUs */
	assert_int_equal(CPU_COUNT(&chosen), 1);
	assert_true(CPU_ISSET(first, &chosen));
	nr_chosen = 0;
	near_gpu = "1022-1023\n";
	assert_null(run_once(&dump_to_disk, NULL));
	near_gpu = NULL;
	assert_null(run_once(&dump_to_disk, NULL));
	assert_int_equal(nr_chosen, 0);
}

TEST(file_systems_in_memory_are_known)
{
	static const struct {
		long f_type;
		bool in_memory;
	} known[] = {
		{ EXT4_SUPER_MAGIC, false }, { OVERLAYFS_SUPER_MAGIC, false }, { NFS_SUPER_MAGIC, false },
		{ TMPFS_MAGIC, true }, { RAMFS_MAGIC, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		counts_as = known[i].f_type;
		assert_int_equal(pagesio_in_memory(saved_files[0]), known[i].in_memory);
	}
	counts_as = 0;
}

/* With direct transfers and through the page cache, of which the end of the lanes leaves nothing unwritten. */
TEST(a_network_is_served_by_lanes)
{
	counts_as = NFS_SUPER_MAGIC;
	for (int never = 0; never < 2; never++) {
		direct_never_works = never;
		nr_inner = 0;
		assert_null(run_once(&dump_to_disk, NULL));
		assert_null(run_once(&restore, NULL));
		assert_int_equal(nr_inner, 2);
	}
	direct_never_works = false;
	fail_each_call(&dump_to_disk, false, EIO);
	counts_as = 0;
}

TEST(direct_transfers_that_are_refused_go_through_the_cache)
{
	direct_never_works = true;
	assert_null(run_once(&dump_to_disk, NULL));
	assert_null(strstr(log_text, "direct"));
	assert_null(run_once(&restore, NULL));
	assert_null(strstr(log_text, "direct"));
	direct_never_works = false;
}

TEST(a_full_disk_is_reported_as_that)
{
	fail_each_call(&dump_to_disk, false, ENOSPC);
}

/* So the kernel answers when a reset took a submission away, and so the engine's own threads are stopped. */
TEST(a_submission_that_was_cancelled_is_an_error)
{
	fail_each_call(&dump_to_memory, true, ECANCELED);
	fail_each_call(&restore, true, ECANCELED);
}

/* All that the engine maps, staging memory above all. */
TEST(mapped_memory_stays_within_the_cap)
{
	static const uint64_t caps[] = { 8192, 64 * KIB, 128 * KIB };

	for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
		struct scenario scenario = dump_to_memory;

		scenario.max_bytes = caps[i];
		peak_bytes = 0;
		assert_null(run_once(&scenario, NULL));
		/* To align it, each GPU maps a little more at first. */
		assert_in_range(peak_bytes, 1, caps[i] + 2 * 4096);
	}
}

/* A search looks at all the data up to the next hole: one for each window would be slow for a file without holes. */
TEST(holes_are_searched_once)
{
	struct scenario scenario = restore;
	unsigned int needed = 0;

	for (int i = 0; i < 2; i++, needed += 2)
		for (off_t data, hole = 0; (data = __real_lseek(saved_files[i], hole, SEEK_DATA)) >= 0; needed += 2)
			hole = __real_lseek(saved_files[i], data, SEEK_HOLE);
	scenario.max_bytes = 8192;
	searches = 0;
	assert_null(run_once(&scenario, NULL));
	assert_in_range(searches, 1, needed);
}

/* ---- images that are in the page cache ---- */

/* Of all pages files, in blocks. */
static size_t resident_blocks(void)
{
	unsigned char pages[MAX_BLOCKS];
	size_t nr = 0;

	for (int i = 0; i < 2; i++) {
		size_t len = 8 + saved[i].bytes;
		void *mem = __real_mmap(NULL, len, PROT_READ, MAP_SHARED, saved_files[i], 0);

		assert_true(mem != MAP_FAILED);
		assert_int_equal(mincore(mem, len, pages), 0);
		for (size_t p = 0; p * BLOCK < len; p++)
			nr += pages[p] & 1;
		__real_munmap(mem, len);
	}
	return nr;
}

/* Leaves the first @bytes of each file in the page cache, and nothing else. */
static void warm(size_t bytes)
{
	static char buf[BLOCK];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(fsync(saved_files[i]), 0);
		assert_int_equal(__real_posix_fadvise(saved_files[i], 0, 0, POSIX_FADV_DONTNEED), 0);
		assert_int_equal(__real_posix_fadvise(saved_files[i], 0, 0, POSIX_FADV_RANDOM), 0);
		for (size_t at = 0; at < bytes && __real_pread(saved_files[i], buf, BLOCK, (off_t)at) > 0; at += BLOCK)
			;
	}
	direct_bytes = cached_bytes = 0;
}

/* A file system in memory drops nothing. */
static void skip_unless_dropped(void)
{
	warm(0);
	if (resident_blocks())
		skip();
}

/*
 * A restore leaves what was warm. A machine may page out by itself what nobody has mapped (DAMON): this one takes some of
 * the pages in one of a hundred tries, whatever reads them. What the engine drops, it drops each time.
 */
static void expect_kept(size_t bytes, const char *missing)
{
	size_t before = 0, after = 1;

	for (int i = 0; i < 5 && before != after; i++) {
		warm(bytes);
		before = resident_blocks();
		assert_true(before > 250);
		run_without(&restore, missing, ENOSYS, NULL);
		after = resident_blocks();
	}
	assert_int_equal(after, before);
}

/* Nor has the engine left anything that was not there. */
static void expect_left_cold(const char *missing)
{
	warm(0);
	run_without(&restore, missing, ENOSYS, NULL);
	assert_int_equal(resident_blocks(), 0);
}

TEST(a_warm_image_is_read_from_the_page_cache)
{
	static const char *const missing[] = { NULL, "syscall" }; /* cachestat(), so mincore() */

	skip_unless_dropped();
	for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
		expect_kept(SIZE_MAX, missing[i]);
		assert_int_equal(direct_bytes, 0);
		expect_left_cold(missing[i]);
		assert_int_equal(cached_bytes, 0);
		expect_kept(1000 * KIB, missing[i]);
		assert_in_range(cached_bytes, 300 * KIB, 2 * 1000 * KIB);
		assert_true(direct_bytes > 100 * KIB);
	}
}

/* What the engine itself has read is dropped, and what was there before is not. */
TEST(without_direct_transfers_a_warm_image_stays_warm)
{
	skip_unless_dropped();
	direct_never_works = true;
	for (int network = 0; network < 2; network++) {
		counts_as = network ? NFS_SUPER_MAGIC : 0;
		expect_kept(SIZE_MAX, NULL);
		expect_left_cold(NULL);
	}
	counts_as = 0;
	direct_never_works = false;
}

static int save_once(void **state)
{
	struct rng rng = { 4 };

	main_thread = pthread_self();
	arm(NULL, &restore);
	disarm();
	for (int i = 0; i < 2; i++) {
		fixture_gpu_init(&saved[i], 0x60 + (uint32_t)i, sizes[i], 4, FILL_MIXED, &rng);
		saved_files[i] = saved[i].gpu.pages_fd = fixture_file(FIXTURE_DISK);
		if (fixture_dump(&saved[i].gpu, 1, 0))
			return -1;
		memory_files[i] = fixture_file(FIXTURE_MEMORY);
		saved[i].gpu.pages_fd = memory_files[i];
		if (fixture_dump(&saved[i].gpu, 1, 0))
			return -1;
		saved[i].gpu.pages_fd = saved_files[i];
	}
	return 0;
}

static int forget(void **state)
{
	for (int i = 0; i < 2; i++) {
		close(saved_files[i]);
		close(memory_files[i]);
		fixture_gpu_done(&saved[i]);
	}
	return 0;
}

UNIT_MAIN(save_once, forget)
