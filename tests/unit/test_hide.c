// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hiding GPUs: order of the steps, the way back, and what is said when it cannot be done.
 * Directories stand for proc and the cgroups, the way the kernel's look to their user; each
 * step can be made to fail.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "unit.h"
#include "kernel/kfd.h"
#include "kernel/machine.h"
#include "amdgpu_plugin_util.h"
#include "log_stub.h"
#include "remove_all.h"

static char top[] = "/tmp/test_hide.XXXXXX";
static int top_fd = -1;
static char child[32];	  /* the temporary cgroup, "" when there is none */
static bool filtered;
static bool own_namespace;
static int steps, failing_step; /* the step that fails; 0: none */
static bool filter_fails;

static const uint32_t minors[] = { 129 };

static bool step_fails(void)
{
	if (++steps != failing_step)
		return false;
	errno = EACCES;
	return true;
}

static void write_file(const char *name, const char *text)
{
	int fd = openat(top_fd, name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void assert_file(const char *name, const char *text)
{
	char found[64] = "";
	int fd = openat(top_fd, name, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(read(fd, found, sizeof(found) - 1) >= 0);
	close(fd);
	assert_string_equal(found, text);
}

/* ---- what the module calls ---- */

int mount_private(const char *type)
{
	if (step_fails())
		return -errno;
	if (strcmp(type, "proc"))
		assert_true(own_namespace);
	return openat(top_fd, type, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int devfilter_attach(int cgroup, const uint32_t *wanted, size_t n)
{
	struct stat st;

	if (filter_fails)
		return -EPERM;
	if (step_fails())
		return -errno;
	assert_int_equal(fstat(cgroup, &st), 0);
	assert_int_equal(n, 1);
	assert_int_equal(wanted[0], 129);
	filtered = true;
	return 0;
}

int __wrap_unshare(int flags)
{
	assert_true(flags != 0 && !own_namespace);
	if (step_fails())
		return -1;
	own_namespace = true;
	return 0;
}

int __wrap_setns(int fd, int flags)
{
	assert_true(fd >= 0 && flags != 0 && own_namespace);
	if (step_fails())
		return -1;
	own_namespace = false;
	return 0;
}

/* A cgroup is born with its files. */
int __real_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_mkdirat(int dir, const char *name, mode_t mode)
{
	char path[64];
	int fd;

	if (step_fails() || __real_mkdirat(dir, name, mode))
		return -1;
	snprintf(path, sizeof(path), "%s/cgroup.procs", name);
	fd = openat(dir, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	snprintf(child, sizeof(child), "%s", name);
	return 0;
}

int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/cgroup.procs", name);
	__real_unlinkat(dir, path, 0);
	child[0] = '\0';
	return __real_unlinkat(dir, name, flags);
}

/* ---- */

static int made(void *arg, int dir, const char *name)
{
	return 0;
}

static void removed(void *arg)
{
}

static const struct hide_keeper nobody = { made, removed, NULL };

static int setup(void **state)
{
	static const char *const dirs[] = { "proc", "proc/self", "proc/self/ns", "cgroup2" };

	strcpy(top, "/tmp/test_hide.XXXXXX");
	if (!mkdtemp(top))
		return -1;
	top_fd = open(top, O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		assert_int_equal(__real_mkdirat(top_fd, dirs[i], 0700), 0);
	write_file("proc/self/ns/cgroup", "");
	write_file("proc/self/ns/pid", "");
	write_file("cgroup2/cgroup.procs", "");
	child[0] = '\0';
	own_namespace = filtered = filter_fails = false;
	steps = failing_step = 0;
	log_clear();
	return 0;
}

static int teardown(void **state)
{
	close(top_fd);
	return remove_all(top);
}

static unsigned int open_fds(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

#define FIXTURE_TEST(test) UNIT_TEST(test, setup, teardown)

FIXTURE_TEST(hide_filters_and_comes_back)
{
	struct hide hide;
	char name[64];

	assert_int_equal(hide_begin(minors, 1, &nobody, &hide), 0);
	assert_true(filtered);
	assert_false(own_namespace);
	assert_true(child[0]);
	snprintf(name, sizeof(name), "cgroup2/%s/cgroup.procs", child);
	assert_file(name, "0");
	assert_file("cgroup2/cgroup.procs", "");
	assert_int_equal(hide_end(&hide), 0);
	assert_file("cgroup2/cgroup.procs", "0");
	assert_false(child[0]);
	assert_int_equal(log_errors, 0);
}

FIXTURE_TEST(hide_says_why_it_cannot)
{
	struct hide hide;

	filter_fails = true;
	assert_int_equal(hide_begin(minors, 1, &nobody, &hide), -EPERM);
	assert_string_equal(fail_text(), "device filter (BPF) of a cgroup: Operation not permitted");
	assert_false(child[0]);
	assert_false(own_namespace);
}

FIXTURE_TEST(hide_replaces_a_dead_cgroup_of_its_name)
{
	struct hide hide;
	char name[64];

	assert_int_equal(hide_begin(minors, 1, &nobody, &hide), 0);
	snprintf(name, sizeof(name), "cgroup2/%s", child);
	assert_int_equal(hide_end(&hide), 0);
	assert_int_equal(__real_mkdirat(top_fd, name, 0700), 0);
	assert_int_equal(hide_begin(minors, 1, &nobody, &hide), 0);
	assert_string_equal(name + strlen("cgroup2/"), child);
	assert_true(filtered);
	assert_int_equal(hide_end(&hide), 0);
}

/* Two tasks in one cgroup may have one pid, each in a namespace of its own. */
FIXTURE_TEST(hide_leaves_cgroups_of_other_pid_namespaces_alone)
{
	struct hide one, other;

	assert_int_equal(hide_begin(minors, 1, &nobody, &one), 0);
	write_file("proc/self/ns/other", "");
	assert_int_equal(renameat(top_fd, "proc/self/ns/other", top_fd, "proc/self/ns/pid"), 0);
	assert_int_equal(hide_begin(minors, 1, &nobody, &other), 0);
	assert_string_not_equal(one.name, other.name);
	assert_int_equal(faccessat(one.cgroup, one.name, F_OK, 0), 0);
	assert_int_equal(hide_end(&other), 0);
	assert_int_equal(hide_end(&one), 0);
}

/* Whatever fails: nothing has changed and the reason is told. */
FIXTURE_TEST(hide_leaves_nothing_behind_when_a_step_fails)
{
	unsigned int fds = open_fds();
	int total, step;

	for (step = 1;; step++) {
		struct hide hide;
		int err;

		failing_step = step;
		steps = 0;
		own_namespace = false;
		err = hide_begin(minors, 1, &nobody, &hide);
		total = steps;
		if (!err)
			assert_int_equal(hide_end(&hide), 0);
		else
			assert_true(fail_text()[0]);
		fail_clear();
		assert_false(child[0]);
		assert_int_equal(open_fds(), fds);
		if (total < step)
			break;
	}
	assert_true(step > 5);
}

FIXTURE_TEST(hide_end_says_when_there_is_no_way_back)
{
	unsigned int fds = open_fds();
	struct hide hide;

	assert_int_equal(hide_begin(minors, 1, &nobody, &hide), 0);
	assert_int_equal(__real_unlinkat(top_fd, "cgroup2/cgroup.procs", 0), 0);
	assert_int_equal(hide_end(&hide), -ENOENT);
	assert_int_equal(log_errors, 1);
	assert_int_equal(open_fds(), fds);
}

/* ---- cgroups that stay ---- */

static char kept[48]; /* the cgroup that the keeper knows of */
static int keeper_error;

static int keep(void *arg, int dir, const char *name)
{
	struct stat st;

	assert_ptr_equal(arg, kept);
	assert_int_equal(fstat(dir, &st), 0);
	assert_string_equal(kept, "");
	snprintf(kept, sizeof(kept), "%s", keeper_error ? "" : name);
	return keeper_error;
}

static void forget(void *arg)
{
	assert_ptr_equal(arg, kept);
	kept[0] = '\0';
}

static const struct hide_keeper keeper = { keep, forget, kept };

FIXTURE_TEST(hide_tells_its_keeper_of_a_cgroup_as_long_as_it_is_there)
{
	struct hide hide;
	char name[64];

	kept[0] = '\0';
	assert_int_equal(hide_begin(minors, 1, &keeper, &hide), 0);
	assert_string_equal(kept, hide.name);
	assert_int_equal(hide_end(&hide), 0);
	assert_string_equal(kept, "");
	/* Another task in it: the kernel does not remove it. */
	assert_int_equal(hide_begin(minors, 1, &keeper, &hide), 0);
	snprintf(name, sizeof(name), "cgroup2/%s/busy", hide.name);
	write_file(name, "");
	assert_int_equal(hide_end(&hide), 0);
	assert_true(kept[0]);
	assert_int_equal(log_errors, 0);
}

FIXTURE_TEST(hide_keeps_no_cgroup_that_failed)
{
	struct hide hide;

	kept[0] = '\0';
	filter_fails = true;
	assert_int_equal(hide_begin(minors, 1, &keeper, &hide), -EPERM);
	assert_string_equal(kept, "");
	keeper_error = -ENOSPC;
	assert_int_equal(hide_begin(minors, 1, &keeper, &hide), -ENOSPC);
	assert_false(child[0]);
	keeper_error = 0;
}

UNIT_MAIN(NULL, NULL)
