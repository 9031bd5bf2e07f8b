// SPDX-License-Identifier: GPL-2.0-only
/* What a program says that it does not need, by the header and the Python file that programs are given. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/wait.h>

#include "unit.h"
#include "docs/examples/discard/amdgpu_discard.h"
#include "log_stub.h"
#include "pages/internal.h"

#define GIB (1ull << 30)

static struct discard discard;

static void expect_ranges(pid_t pid, const struct content_range *ranges, size_t nr)
{
	discard_read(pid, &discard);
	assert_int_equal(discard.nr, nr);
	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(discard.ranges[i].from, ranges[i].from);
		assert_int_equal(discard.ranges[i].to, ranges[i].to);
	}
	discard_done(&discard);
}

static void expect_warning(const char *why)
{
	discard_read(getpid(), &discard);
	assert_int_equal(discard.nr, 0);
	if (!strstr(log_text, why))
		fail_msg("no \"%s\" in %s", why, log_text);
	log_clear();
}

static void table_free(struct amdgpu_discard *table)
{
	munmap(table, sizeof(*table));
}

/* ---- tables ---- */

TEST(a_program_without_a_table_needs_all)
{
	expect_ranges(getpid(), NULL, 0);
	assert_string_equal(log_text, "");
}

TEST(ranges_are_sorted_and_joined)
{
	static const struct amdgpu_discard_range ranges[] = {
		{ 9 * GIB, 4096 }, { GIB, 8192 }, { GIB + 4096, 4096 }, { 5 * GIB, 0 }, { GIB + 8192, 1 }, { 2 * GIB, 1 },
	};
	static const struct content_range found[] = {
		{ GIB, GIB + 8193 }, { 2 * GIB, 2 * GIB + 1 }, { 9 * GIB, 9 * GIB + 4096 },
	};
	struct amdgpu_discard *table = amdgpu_discard_new();

	assert_non_null(table);
	amdgpu_discard_set(table, ranges, 6);
	expect_ranges(getpid(), found, 3);
	amdgpu_discard_set(table, NULL, 0);
	expect_ranges(getpid(), NULL, 0);
	table_free(table);
	assert_string_equal(log_text, "");
}

TEST(a_process_may_have_several_tables)
{
	static const struct content_range found[] = { { GIB, GIB + 1 }, { 2 * GIB, 2 * GIB + 1 } };
	struct amdgpu_discard *a = amdgpu_discard_new(), *b = amdgpu_discard_new();

	amdgpu_discard_set(a, &(struct amdgpu_discard_range){ 2 * GIB, 1 }, 1);
	amdgpu_discard_set(b, &(struct amdgpu_discard_range){ GIB, 1 }, 1);
	expect_ranges(getpid(), found, 2);
	table_free(a);
	table_free(b);
}

/* Each mapping counts, also of ranges without bytes: who reads them stops a job meanwhile. */
TEST(all_tables_together_have_a_bound)
{
	static const struct content_range found[] = { { GIB, GIB + 1 } };
	struct amdgpu_discard *a = amdgpu_discard_new(), *b = amdgpu_discard_new();

	a->nr = AMDGPU_DISCARD_MAX - 1;
	amdgpu_discard_set(b, &(struct amdgpu_discard_range){ GIB, 1 }, 1);
	expect_ranges(getpid(), found, 1);
	assert_string_equal(log_text, "");
	a->nr = AMDGPU_DISCARD_MAX;
	expect_warning("cannot be read: Argument list too long");
	table_free(a);
	table_free(b);
}

TEST(a_child_has_no_table)
{
	struct amdgpu_discard *table = amdgpu_discard_new();
	pid_t pid;

	amdgpu_discard_set(table, &(struct amdgpu_discard_range){ GIB, 1 }, 1);
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	expect_ranges(pid, NULL, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	table_free(table);
}

TEST(of_a_wrong_table_nothing_counts)
{
	/* One of the others is read before it. */
	struct amdgpu_discard *above = amdgpu_discard_new(), *table = amdgpu_discard_new(), *below = amdgpu_discard_new();

	amdgpu_discard_set(above, &(struct amdgpu_discard_range){ GIB, 4096 }, 1);
	amdgpu_discard_set(below, &(struct amdgpu_discard_range){ GIB, 4096 }, 1);
	amdgpu_discard_set(table, &(struct amdgpu_discard_range){ 2 * GIB, UINT64_MAX }, 1);
	expect_warning("amdgpu-discard) cannot be read: Value too large");
	table->nr = AMDGPU_DISCARD_MAX + 1;
	expect_warning("cannot be read: Argument list too long");
	table->nr = 0;
	table->magic[7] = '2';
	expect_warning("cannot be read: Bad message");
	table_free(above);
	table_free(table);
	table_free(below);
}

TEST(a_table_that_its_file_does_not_hold_is_wrong)
{
	struct amdgpu_discard *table = amdgpu_discard_new();

	table->nr = 300;
	assert_int_equal(munmap((char *)table + 4096, sizeof(*table) - 4096), 0);
	expect_warning("cannot be read: Argument list too long");
	munmap(table, 4096);
}

TEST(a_process_that_is_gone_is_a_warning)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	discard_read(pid, &discard);
	assert_int_equal(discard.nr, 0);
	assert_non_null(strstr(log_text, "all is saved"));
	log_clear();
}

TEST(python_has_the_same_table)
{
	static const struct content_range found[] = { { 4096, 12288 }, { 65536, 65537 } };
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		dup2(ready[1], STDOUT_FILENO);
		close(ready[0]);
		close(ready[1]);
		execlp("python3", "python3", "-B", "-c",
		       "import sys, time; sys.path.insert(0, 'docs/examples/discard'); import amdgpu_discard\n"
		       "class Tensor:\n"
		       "  data_ptr = lambda self: 65536\n"
		       "  numel = element_size = lambda self: 1\n"
		       "a = amdgpu_discard.Discard(); a.set([(8192, 4096), (4096, 4096)])\n"
		       "b = amdgpu_discard.Discard(); b.set_tensors([Tensor()])\n"
		       "print(flush=True); time.sleep(100)", NULL);
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	expect_ranges(pid, found, 2);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- BOs ---- */

TEST(ranges_become_those_of_the_file)
{
	struct content_range ranges[] = { { 1000, 3000 }, { 5000, 9000 } };
	const struct discard declared = { ranges, 2 };
	const struct bo bos[] = { { .addr = 500, .size = 100 }, { .addr = 900, .size = 2000 }, { .addr = 2900, .size = 50 },
				  { .addr = 4950, .size = 1000 }, { .addr = 5000, .size = 10 }, { .addr = 9000, .size = 1 } };
	uint64_t at = 8;

	discard = (struct discard){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(bos); at += bos[i++].size)
		assert_int_equal(discard_in_bo(&declared, &bos[i], at, &discard), 0);
	/* Address 900 is at 108 of the file, 2900 at 2108, 4950 at 2158 and 5000 at 3158. */
	assert_int_equal(discard.nr, 2);
	assert_int_equal(discard.ranges[0].from, 208);
	assert_int_equal(discard.ranges[0].to, 2158);
	assert_int_equal(discard.ranges[1].from, 2208);
	assert_int_equal(discard.ranges[1].to, 3168);
	discard_done(&discard);
}

UNIT_MAIN(NULL, NULL)
