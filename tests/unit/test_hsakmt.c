// SPDX-License-Identifier: GPL-2.0-only
/* The shared files of old ROCm versions, in a root directory of the test's. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "unit.h"
#include "image/image.h"
#include "log_stub.h"
#include "remove_all.h"

#define MAGIC 0x54415348u

static char root[64];

static char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/dev/shm/%s", root, name);
	return path;
}

static int setup(void **state)
{
	char path[128];

	(void)state;
	log_clear();
	strcpy(root, "/tmp/test_hsakmt.XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(path, sizeof(path), "%s/dev", root);
	if (mkdir(path, 0755))
		return -1;
	strcat(path, "/shm");
	return mkdir(path, 0755);
}

static int teardown(void **state)
{
	(void)state;
	return remove_all(root);
}

static void put(const char *name, const void *data, size_t size, mode_t mode)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void expect_file(const char *name, const void *data, size_t size, mode_t mode)
{
	char got[HSAKMT_MAX_BYTES + 1];
	struct stat st;
	int fd = open(path_of(name), O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, got, sizeof(got)), size);
	assert_memory_equal(got, data, size);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, mode);
	assert_int_equal(st.st_uid, getuid());
	close(fd);
}

/* Nothing but what has a name of its own, no remains of the making. */
static void expect_count(unsigned int wanted)
{
	DIR *dir = opendir(path_of(""));
	struct dirent *entry;
	unsigned int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	assert_int_equal(n, wanted);
}

static const uint32_t memory[2] = { MAGIC };
/* As glibc has one whose value is 1. */
static const uint32_t semaphore[8] = { 1 };

static void save_sample(struct hsakmt *ret)
{
	put("hsakmt_shared_mem", memory, sizeof(memory), 0640);
	hsakmt_save(root, ret);
	assert_int_equal(unlink(path_of("hsakmt_shared_mem")), 0);
}

#define FIXTURE_TEST(test) UNIT_TEST(test, setup, teardown)

FIXTURE_TEST(the_files_are_made_again)
{
	mode_t mask = umask(077);
	struct hsakmt saved;

	save_sample(&saved);
	assert_int_equal(saved.bytes, sizeof(memory));
	assert_int_equal(saved.magic, MAGIC);
	hsakmt_restore(root, &saved);
	umask(mask);
	expect_file("hsakmt_shared_mem", memory, sizeof(memory), 0666);
	expect_file("sem.hsakmt_semaphore", semaphore, sizeof(semaphore), 0666);
	expect_count(2);
	assert_string_equal(log_text, "");
}

FIXTURE_TEST(what_is_there_is_left_alone)
{
	struct hsakmt saved;

	save_sample(&saved);
	put("hsakmt_shared_mem", "another", 7, 0600);
	hsakmt_restore(root, &saved);
	expect_file("hsakmt_shared_mem", "another", 7, 0600);
	expect_file("sem.hsakmt_semaphore", semaphore, sizeof(semaphore), 0666);
	expect_count(2);
	assert_string_equal(log_text, "");
}

FIXTURE_TEST(without_the_files_nothing_happens)
{
	struct hsakmt saved;

	hsakmt_save(root, &saved);
	assert_int_equal(saved.bytes, 0);
	hsakmt_restore(root, &saved);
	expect_count(0);
	hsakmt_save("/nonexistent", &saved);
	hsakmt_restore("/nonexistent", &saved);
	assert_string_equal(log_text, "");
}

FIXTURE_TEST(other_things_of_the_name_are_not_read)
{
	static char large[HSAKMT_MAX_BYTES + 1];
	struct hsakmt saved;

	assert_int_equal(mkfifo(path_of("hsakmt_shared_mem"), 0600), 0);
	hsakmt_save(root, &saved);
	assert_int_equal(saved.bytes, 0);
	assert_non_null(strstr(log_text, "/dev/shm/hsakmt_shared_mem is not saved"));
	assert_int_equal(unlink(path_of("hsakmt_shared_mem")), 0);
	put("hsakmt_shared_mem", large, sizeof(large), 0600);
	hsakmt_save(root, &saved);
	assert_int_equal(saved.bytes, 0);
	assert_int_equal(log_errors, 0);
}

/* A container's /dev/shm may be a link; it leads somewhere in the container. */
FIXTURE_TEST(the_root_is_not_left)
{
	char path[128], outside[] = "/tmp/test_hsakmt_outside.XXXXXX";
	struct hsakmt saved;

	assert_non_null(mkdtemp(outside));
	snprintf(path, sizeof(path), "%s/hsakmt_shared_mem", outside);
	close(open(path, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(truncate(path, 8), 0);
	assert_int_equal(rmdir(path_of("")), 0);
	snprintf(path, sizeof(path), "%s/dev/shm", root);
	assert_int_equal(symlink(outside, path), 0);
	hsakmt_save(root, &saved);
	assert_int_equal(saved.bytes, 0);
	assert_int_equal(remove_all(outside), 0);
}

FIXTURE_TEST(several_tasks_make_them_at_once)
{
	struct hsakmt saved;
	int i, status;

	save_sample(&saved);
	for (i = 0; i < 8; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			hsakmt_restore(root, &saved);
			_exit(log_text[0] != '\0');
		}
	}
	for (i = 0; i < 8; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	expect_file("hsakmt_shared_mem", memory, sizeof(memory), 0666);
	expect_file("sem.hsakmt_semaphore", semaphore, sizeof(semaphore), 0666);
	expect_count(2);
}

FIXTURE_TEST(the_semaphore_is_free)
{
	sem_t *sem;
	int fd;

	hsakmt_restore(root, &(struct hsakmt){ .bytes = 8, .magic = MAGIC });
	fd = open(path_of("sem.hsakmt_semaphore"), O_RDWR);
	sem = mmap(NULL, sizeof(*sem), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(sem != MAP_FAILED);
	assert_int_equal(sem_trywait(sem), 0);
	assert_int_equal(sem_trywait(sem), -1);
	assert_int_equal(sem_post(sem), 0);
	munmap(sem, sizeof(*sem));
	close(fd);
}

UNIT_MAIN(NULL, NULL)
