// SPDX-License-Identifier: GPL-2.0-only
/* Pages that a child shares with its parent become its own, with their contents. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "unit.h"
#include "amdgpu_plugin_util.h"
#include "stopped/memory.h"
#include "log_stub.h"

#define PAGES 9u
#define SHARED 6u   /* of a MAP_SHARED mapping */
#define READABLE 7u /* can only be read */
#define UNTOUCHED 8u

static uint64_t page;
static uint8_t *memory;
static pid_t child;
/* The child's write fault in each page, when it is asked for them. */
static struct answer {
	_Atomic bool ready, asked, given;
	bool faults[PAGES];
} *answer;

static void child_answer(void)
{
	while (!answer->asked)
		usleep(1000);
	for (unsigned int i = 0; i < PAGES; i++) {
		struct rusage before, after;

		if (i == READABLE)
			continue;
		getrusage(RUSAGE_SELF, &before);
		memory[i * page + 1] ^= 0xff;
		getrusage(RUSAGE_SELF, &after);
		answer->faults[i] = after.ru_minflt > before.ru_minflt;
	}
	answer->given = true;
}

/* No two bytes of a page are alike that are near each other, and no two pages. */
static void fill_page(uint8_t *to, unsigned int i)
{
	for (uint64_t byte = 0; i < UNTOUCHED && byte < page; byte++)
		to[byte] = (uint8_t)(byte * 7 + (byte >> 8) + i + 1);
}

/* ---- what the kernel says of pages, and what is written ---- */

static int swapped;		   /* the page of which it says so; -1: none */
static unsigned int shared_writes; /* to the page that is the parent's as well */
static unsigned int pages_written, pagemap_reads;

ssize_t __real_pread(int fd, void *buf, size_t n, off_t off);
ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t off)
{
	ssize_t got = __real_pread(fd, buf, n, off);
	off_t at = ((off_t)((uintptr_t)memory / page) + swapped) * 8;

	pagemap_reads++;
	if (swapped >= 0 && got > 0 && at >= off && at < off + got)
		((uint64_t *)buf)[(at - off) / 8] = 1ull << 62;
	return got;
}

static int unreadable; /* as a guard page is; -1: none */

ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long nr_local, const struct iovec *remote,
				unsigned long nr, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long nr_local, const struct iovec *remote,
				unsigned long nr, unsigned long flags)
{
	for (unsigned long i = 0; unreadable >= 0 && i < nr; i++) {
		if ((uintptr_t)remote[i].iov_base / page != (uintptr_t)memory / page + (unsigned int)unreadable)
			continue;
		if (i)
			return __real_process_vm_readv(pid, local, nr_local, remote, i, flags);
		errno = EFAULT;
		return -1;
	}
	return __real_process_vm_readv(pid, local, nr_local, remote, nr, flags);
}

ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long nr_local, const struct iovec *remote,
				 unsigned long nr, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long nr_local, const struct iovec *remote,
				 unsigned long nr, unsigned long flags)
{
	pages_written += (unsigned int)nr;
	for (unsigned long i = 0; i < nr; i++)
		shared_writes += (uintptr_t)remote[i].iov_base / page == (uintptr_t)memory / page + SHARED;
	return __real_process_vm_writev(pid, local, nr_local, remote, nr, flags);
}

static int setup(void **state)
{
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	assert_true(mmap(memory + SHARED * page, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) != MAP_FAILED);
	for (unsigned int i = 0; i < UNTOUCHED; i++)
		fill_page(memory + i * page, i);
	assert_int_equal(mprotect(memory + READABLE * page, page, PROT_READ), 0);
	swapped = -1;
	unreadable = -1;
	shared_writes = 0;
	answer = mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(answer != MAP_FAILED);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* fork() leaves its entry in the page table out. */
		answer->ready = *(volatile uint8_t *)(memory + SHARED * page) != 0;
		child_answer();
		for (;;)
			pause();
	}
	while (!answer->ready)
		usleep(1000);
	return 0;
}

static int teardown(void **state)
{
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

static bool child_has_its_page(unsigned int i)
{
	uint8_t wanted[65536] = { 0 }, have[65536];
	char path[48];
	int fd;

	fill_page(wanted, i);
	snprintf(path, sizeof(path), "/proc/%d/mem", child);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, have, page, (off_t)((uintptr_t)memory + i * page)), page);
	close(fd);
	return !memcmp(wanted, have, page) && (i == UNTOUCHED || !memcmp(wanted, memory + i * page, page));
}

#define FIXTURE_TEST(test) UNIT_TEST(test, setup, teardown)

FIXTURE_TEST(pages_of_ranges_become_the_tasks_own)
{
	const struct svm_range ranges[] = {
		{ (uintptr_t)memory + page, page, false },
		{ (uintptr_t)memory + 3 * page, 100 * page, false },
	};

	for (unsigned int i = 0; i < PAGES; i++)
		assert_false(is_own(i));
	assert_int_equal(memory_unshare(child, ranges, 2), 0);
	for (unsigned int i = 0; i < PAGES; i++) {
		assert_int_equal(is_own(i), i == 1 || (i >= 3 && i < SHARED));
		assert_true(child_has_its_page(i));
	}
	assert_int_equal(shared_writes, 0);
}

/* On a disk, or in a GPU's memory: to read it brings it in. */
FIXTURE_TEST(pages_that_are_elsewhere_become_its_own_too)
{
	const struct svm_range range = { (uintptr_t)memory, PAGES * page, false };

	swapped = 4;
	assert_int_equal(memory_unshare(child, &range, 1), 0);
	swapped = -1;
	assert_true(is_own(4));
	assert_true(child_has_its_page(4));
}

/* The parent's pages are gone. The child's are mapped once, but not for writing before the first write. */
FIXTURE_TEST(pages_that_were_shared_are_written_too)
{
	const struct svm_range range = { (uintptr_t)memory + page, (PAGES - 1) * page, false };

	assert_int_equal(madvise(memory, SHARED * page, MADV_DONTNEED), 0);
	assert_true(is_own(1));
	assert_int_equal(memory_unshare(child, &range, 1), 0);
	answer->asked = true;
	while (!answer->given)
		usleep(1000);
	for (unsigned int i = 0; i < SHARED; i++)
		assert_int_equal(answer->faults[i], i == 0);
	assert_true(answer->faults[UNTOUCHED]);
}

FIXTURE_TEST(a_page_that_cannot_be_read_does_not_keep_others_shared)
{
	const struct svm_range ranges[] = {
		{ (uintptr_t)memory + 3 * page, 2 * page, false },
		{ (uintptr_t)memory, 3 * page, false },
	};

	unreadable = 1;
	assert_int_equal(memory_unshare(child, ranges, 2), -EFAULT);
	for (unsigned int i = 0; i < PAGES; i++)
		assert_int_equal(is_own(i), i < 5 && i != 1);
	assert_true(child_has_its_page(1));
}

FIXTURE_TEST(ranges_may_be_in_any_order)
{
	const struct svm_range ranges[] = {
		{ (uintptr_t)memory + 4 * page, page, false },
		{ (uintptr_t)memory + page, 2 * page, false },
		{ (uintptr_t)memory, page, false },
	};

	assert_int_equal(memory_unshare(child, ranges, 3), 0);
	for (unsigned int i = 0; i < PAGES; i++)
		assert_int_equal(is_own(i), i < 3 || i == 4);
}

/* Each mapping has some of the ranges: one look at each of both, where all pairs would be 250 million. */
#define MAPPINGS	   5000u
#define RANGES_OF_MAPPING 10u

FIXTURE_TEST(many_ranges_in_many_mappings_are_walked_once)
{
	struct svm_range *ranges = calloc(MAPPINGS * RANGES_OF_MAPPING, sizeof(*ranges));
	size_t size = 2 * RANGES_OF_MAPPING * page;
	uint8_t *area = mmap(NULL, MAPPINGS * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_non_null(ranges);
	assert_true(area != MAP_FAILED);
	for (unsigned int i = 0; i < MAPPINGS; i++) {
		for (unsigned int j = 0; j < RANGES_OF_MAPPING; j++)
			ranges[(MAPPINGS - 1 - i) * RANGES_OF_MAPPING + j] =
				(struct svm_range){ (uintptr_t)area + i * size + j * page, page, false };
		/* A hole of another kind keeps mappings apart. */
		assert_int_equal(mprotect(area + i * size + size / 2, size / 2, PROT_NONE), 0);
		area[i * size] = 1;
	}
	pages_written = pagemap_reads = 0;
	assert_int_equal(memory_unshare(getpid(), ranges, MAPPINGS * RANGES_OF_MAPPING), 0);
	assert_int_equal(pages_written, MAPPINGS);
	assert_int_equal(pagemap_reads, MAPPINGS * RANGES_OF_MAPPING);
	munmap(area, MAPPINGS * size);
	free(ranges);
}

FIXTURE_TEST(a_task_that_is_gone_is_an_error)
{
	const struct svm_range range = { (uintptr_t)memory, page, false };

	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(memory_unshare(child, &range, 1) < 0);
}

UNIT_MAIN(NULL, NULL)
