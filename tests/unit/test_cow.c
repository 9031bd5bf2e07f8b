// SPDX-License-Identifier: GPL-2.0-only
/* Pages that a child shares with its parent become its own, with their contents. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "amdgpu_plugin_util.h"
#include "kernel/cow.h"
#include "log_stub.h"

#define PAGES 8u

static uint64_t page;
static uint8_t *memory;
static pid_t child;
/* The child's write fault in each page, when it is asked for them. */
static struct answer {
	_Atomic bool asked, given;
	bool faults[PAGES];
} *answer;

static void child_answer(void)
{
	while (!answer->asked)
		usleep(1000);
	for (unsigned int i = 0; i < PAGES; i++) {
		struct rusage before, after;

		if (i == PAGES - 2)
			continue;
		getrusage(RUSAGE_SELF, &before);
		memory[i * page + 1] ^= 0xff;
		getrusage(RUSAGE_SELF, &after);
		answer->faults[i] = after.ru_minflt > before.ru_minflt;
	}
	answer->given = true;
}

static int setup(void **state)
{
	(void)state;
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	/* The last page is never touched; the one before it can only be read. */
	for (unsigned int i = 0; i < PAGES - 1; i++)
		memset(memory + i * page, (int)i + 1, page);
	assert_int_equal(mprotect(memory + (PAGES - 2) * page, page, PROT_READ), 0);
	answer = mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(answer != MAP_FAILED);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child_answer();
		for (;;)
			pause();
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return munmap(answer, sizeof(*answer)) || munmap(memory, PAGES * page);
}

static bool is_own(unsigned int i)
{
	uint64_t entry = 0;
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", child);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &entry, sizeof(entry), (off_t)(((uintptr_t)memory / page + i) * sizeof(entry))),
			 sizeof(entry));
	close(fd);
	return entry >> 63 && entry >> 56 & 1;
}

static uint8_t byte_of_child(unsigned int i)
{
	char path[48];
	uint8_t byte = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", child);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, (off_t)((uintptr_t)memory + i * page + page - 1)), 1);
	close(fd);
	return byte;
}

static void pages_of_ranges_become_the_tasks_own(void **state)
{
	const struct svm_range ranges[] = {
		{ (uintptr_t)memory + page, page },
		{ (uintptr_t)memory + 3 * page, 100 * page },
	};

	(void)state;
	for (unsigned int i = 0; i < PAGES; i++)
		assert_false(is_own(i));
	assert_int_equal(cow_break(child, ranges, 2), 0);
	for (unsigned int i = 0; i < PAGES; i++) {
		assert_int_equal(is_own(i), i == 1 || (i >= 3 && i < PAGES - 2));
		assert_int_equal(byte_of_child(i), i < PAGES - 1 ? i + 1 : 0);
		if (i < PAGES - 1)
			assert_int_equal(memory[i * page], i + 1);
	}
}

/* The parent's pages are gone. The child's are mapped once, but not for writing before the first write. */
static void pages_that_were_shared_are_written_too(void **state)
{
	const struct svm_range range = { (uintptr_t)memory + page, (PAGES - 1) * page };

	(void)state;
	assert_int_equal(madvise(memory, (PAGES - 2) * page, MADV_DONTNEED), 0);
	assert_true(is_own(1));
	assert_int_equal(cow_break(child, &range, 1), 0);
	answer->asked = true;
	while (!answer->given)
		usleep(1000);
	for (unsigned int i = 0; i < PAGES; i++)
		assert_int_equal(answer->faults[i], i == 0 || i == PAGES - 1);
}

static void a_task_that_is_gone_is_an_error(void **state)
{
	const struct svm_range range = { (uintptr_t)memory, page };

	(void)state;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(cow_break(child, &range, 1) < 0);
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pages_of_ranges_become_the_tasks_own),
		TEST(pages_that_were_shared_are_written_too),
		TEST(a_task_that_is_gone_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
