// SPDX-License-Identifier: GPL-2.0-only
/*
 * The node of another GPU in a container's /dev/dri. A directory of the test stands for that, with files for nodes,
 * which only root could make; the mounts of the machine are a text. Links are the kernel's to refuse.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "unit.h"
#include "kernel/machine.h"
#include "amdgpu_plugin_util.h"
#include "log_stub.h"
#include "remove_all.h"

#define OWNER 7
#define GROUP 44

static char top[32], dri[64];
static char mountinfo[65536]; /* "": there is none */
static long fs_type;
static unsigned int nr_made;
static dev_t made; /* the last one */
static int mknod_error, chown_error;
static uid_t chowned_uid;
static gid_t chowned_gid;

STUB(dev_t, device_render_number, (uint32_t minor), makedev(226, minor))

FILE *__wrap_fopen(const char *path, const char *mode)
{
	assert_string_equal(path, "/proc/self/mountinfo");
	assert_string_equal(mode, "re");
	errno = ENOENT;
	return mountinfo[0] ? fmemopen(mountinfo, strlen(mountinfo), "r") : NULL;
}

/* openat2 only, of the directory of this test. */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, int dir, const char *path, const void *how, size_t size)
{
	assert_int_equal(number, SYS_openat2);
	assert_string_equal(path, "/dev/dri");
	return __real_syscall(number, dir, dri, how, size);
}

int __wrap_fstatfs(int fd, struct statfs *fs)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	*fs = (struct statfs){ .f_type = fs_type };
	return 0;
}

static uint32_t minor_of(const char *name)
{
	return (uint32_t)strtoul(name + strlen("renderD"), NULL, 10);
}

/* Files whose names are those of nodes are nodes, with the number that they say, but for those made with another type.
 */
int __real_fstatat(int dir, const char *name, struct stat *st, int flags);
int __wrap_fstatat(int dir, const char *name, struct stat *st, int flags)
{
	int r = __real_fstatat(dir, name, st, flags);

	assert_int_equal(flags, AT_SYMLINK_NOFOLLOW);
	if (r || !S_ISREG(st->st_mode))
		return r;
	st->st_mode = S_IFCHR | (st->st_mode & 07777);
	st->st_rdev = makedev(226, minor_of(name));
	st->st_uid = OWNER;
	st->st_gid = GROUP;
	return 0;
}

int __wrap_mknodat(int dir, const char *name, mode_t mode, dev_t number)
{
	int fd;

	errno = mknod_error;
	if (mknod_error)
		return -1;
	assert_true(S_ISCHR(mode));
	assert_int_equal(minor_of(name), minor(number));
	fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	nr_made++;
	made = number;
	return 0;
}

int __wrap_fchownat(int dir, const char *name, uid_t uid, gid_t gid, int flags)
{
	assert_int_equal(flags, AT_SYMLINK_NOFOLLOW);
	assert_int_equal(faccessat(dir, name, F_OK, 0), 0);
	chowned_uid = uid;
	chowned_gid = gid;
	errno = chown_error;
	return chown_error ? -1 : 0;
}

/* ---- the tests' own ---- */

static void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *fmt, ...)
{
	char command[300];
	va_list args;

	va_start(args, fmt);
	vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	assert_int_equal(system(command), 0);
}

static int setup(void **state)
{
	strcpy(top, "/tmp/test_nodes.XXXXXX");
	if (!mkdtemp(top))
		return -1;
	snprintf(dri, sizeof(dri), "%s/dev/dri", top);
	run("mkdir -p %s", dri);
	strcpy(mountinfo, "22 1 254:1 / / rw - ext4 /dev/root rw\n");
	fs_type = TMPFS_MAGIC;
	nr_made = 0;
	mknod_error = chown_error = 0;
	chowned_uid = chowned_gid = 0;
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(remove_all(top), 0);
	return 0;
}

static int make(uint32_t minor, uint32_t model)
{
	struct mounted *mounted = mounted_read();
	int err;

	assert_non_null(mounted);
	err = nodes_make(mounted, minor, model);
	mounted_free(mounted);
	return err;
}

static mode_t mode_of(const char *name)
{
	struct stat st;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dri, name);
	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

/* A line for the file system that the test's directory is on. */
static void mount_own(void)
{
	struct stat st;

	assert_int_equal(stat(dri, &st), 0);
	snprintf(mountinfo + strlen(mountinfo), 64, "30 22 %u:%u / /tmp rw - tmpfs tmpfs rw\n", major(st.st_dev),
		 minor(st.st_dev));
}

#define FIXTURE_TEST(test) UNIT_TEST(test, setup, teardown)

FIXTURE_TEST(a_node_is_like_that_of_the_old_gpu)
{
	run("install -m 640 /dev/null %s/renderD128", dri);
	assert_int_equal(make(131, 128), 0);
	assert_int_equal(nr_made, 1);
	assert_true(made == makedev(226, 131));
	assert_int_equal(mode_of("renderD131"), 0640);
	assert_int_equal(chowned_uid, OWNER);
	assert_int_equal(chowned_gid, GROUP);
}

FIXTURE_TEST(without_an_old_node_all_may_use_it)
{
	assert_int_equal(make(131, 128), 0);
	assert_int_equal(nr_made, 1);
	assert_int_equal(mode_of("renderD131"), 0666);
	assert_int_equal(chowned_uid, 0);
	run("mkdir %s/renderD132", dri);
	assert_int_equal(make(133, 132), 0);
	assert_int_equal(mode_of("renderD133"), 0666);
	assert_int_equal(chowned_uid, 0);
}

FIXTURE_TEST(a_node_that_is_there_stays)
{
	run("install -m 600 /dev/null %s/renderD131", dri);
	assert_int_equal(make(131, 128), 0);
	assert_int_equal(nr_made, 0);
	assert_int_equal(mode_of("renderD131"), 0600);
}

FIXTURE_TEST(another_task_may_make_it_meanwhile)
{
	mknod_error = EEXIST;
	assert_int_equal(make(131, 128), 0);
}

FIXTURE_TEST(what_else_has_the_name_stays_and_is_an_error)
{
	run("mkdir %s/renderD131", dri);
	run("ln -s /dev/null %s/renderD132", dri);
	assert_int_equal(make(131, 128), -EEXIST);
	assert_int_equal(make(132, 128), -EEXIST);
	assert_int_equal(nr_made, 0);
}

FIXTURE_TEST(what_fails_is_an_error)
{
	run("install -m 640 /dev/null %s/renderD128", dri);
	mknod_error = EPERM;
	assert_int_equal(make(131, 128), -EPERM);
	mknod_error = 0;
	chown_error = EROFS;
	assert_int_equal(make(131, 128), -EROFS);
}

FIXTURE_TEST(what_the_machine_has_mounted_is_not_touched)
{
	mount_own();
	assert_int_equal(make(131, 128), 0);
	assert_int_equal(nr_made, 0);
}

FIXTURE_TEST(a_mount_among_many_is_found)
{
	for (unsigned int i = 0; i < 500; i++)
		snprintf(mountinfo + strlen(mountinfo), 64, "%u 22 0:%u / /m rw - proc proc rw\n", 100 + i, 100000 + i);
	assert_int_equal(make(131, 128), 0);
	assert_int_equal(nr_made, 1);
	run("rm %s/renderD131", dri);
	mount_own();
	assert_int_equal(make(131, 128), 0);
	assert_int_equal(nr_made, 1);
}

FIXTURE_TEST(another_file_system_than_a_tmpfs_is_not_touched)
{
	fs_type = EXT4_SUPER_MAGIC;
	assert_int_equal(make(131, 128), 0);
	assert_int_equal(nr_made, 0);
}

FIXTURE_TEST(no_symbolic_link_is_followed)
{
	run("mkdir %s/else && rmdir %s && ln -s ../else %s", top, dri, dri);
	assert_int_equal(make(131, 128), 0);
	run("mv %s/dev %s/other && mkdir %s/other/real && rm %s/other/dri && mkdir %s/other/dri && ln -s other %s/dev",
	    top, top, top, top, top, top);
	assert_int_equal(make(131, 128), 0);
	assert_int_equal(nr_made, 0);
}

FIXTURE_TEST(without_a_directory_or_known_mounts_nothing_is_made)
{
	assert_int_equal(nodes_make(NULL, 131, 128), 0);
	run("rmdir %s", dri);
	assert_int_equal(make(131, 128), 0);
	mountinfo[0] = '\0';
	assert_null(mounted_read());
	mounted_free(NULL);
	assert_int_equal(nr_made, 0);
}

UNIT_MAIN(NULL, NULL)
