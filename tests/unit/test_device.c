// SPDX-License-Identifier: GPL-2.0-only
/* Device nodes: recognised and opened by number, whatever lies at their paths. */
#include <fcntl.h>
#include <sys/sysmacros.h>

#include "unit.h"
#include "kernel/machine.h"
#include "amdgpu_plugin_util.h"
#include "log_stub.h"

#define KFD makedev(235, 7)

static const char *kfd_number_file; /* NULL: there is none */

/* The only file that is opened by the stream functions is the KFD's number. */
FILE *__wrap_fopen(const char *path, const char *mode)
{
	assert_string_equal(path, "/sys/class/kfd/kfd/dev");
	assert_string_equal(mode, "re");
	errno = ENOENT;
	return kfd_number_file ? fmemopen((void *)kfd_number_file, strlen(kfd_number_file), "r") : NULL;
}

static struct stat node(mode_t type, dev_t number)
{
	return (struct stat){ .st_mode = type | 0600, .st_rdev = number };
}

TEST(number_of_the_kfd_is_found_once)
{
	struct stat st = node(S_IFCHR, KFD);
	dev_t number;

	assert_false(device_kfd_number(&number));
	assert_false(device_is_kfd(&st));
	kfd_number_file = "nonsense";
	assert_false(device_kfd_number(&number));
	kfd_number_file = "235:7\n";
	assert_true(device_kfd_number(&number));
	assert_true(number == KFD);
	/* Remembered, for a task that sees no sysfs. */
	kfd_number_file = NULL;
	assert_true(device_kfd_number(&number));
	assert_true(number == KFD);
}

TEST(nodes_are_told_by_type_and_number)
{
	struct stat kfd = node(S_IFCHR, KFD), block = node(S_IFBLK, KFD), other = node(S_IFCHR, makedev(235, 8));
	struct stat render = node(S_IFCHR, makedev(226, 128)), card = node(S_IFCHR, makedev(226, 1));
	struct stat late = node(S_IFCHR, device_render_number(319)), file = node(S_IFREG, makedev(226, 128));

	kfd_number_file = "235:7\n";
	assert_true(device_is_kfd(&kfd));
	assert_false(device_is_kfd(&block));
	assert_false(device_is_kfd(&other));
	assert_true(device_is_render_node(&render));
	assert_true(device_is_render_node(&late));
	assert_false(device_is_render_node(&card));
	assert_false(device_is_render_node(&file));
	assert_false(device_is_render_node(&kfd));
}

/* An fd of this device, or none because only root may make a node; never another device. */
static void assert_device_or_none(int fd, dev_t number)
{
	struct stat st;

	if (fd < 0) {
		assert_int_equal(fd, -EPERM);
		return;
	}
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_true(st.st_rdev == number);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}

TEST(device_is_opened_where_it_is)
{
	int fd = device_open("/dev/null", makedev(1, 3), O_RDWR);

	assert_true(fd >= 0);
	assert_device_or_none(fd, makedev(1, 3));
}

TEST(device_is_never_another_one_at_its_path)
{
	assert_device_or_none(device_open("/dev/zero", makedev(1, 3), O_RDWR), makedev(1, 3));
	assert_device_or_none(device_open("/nowhere/at/all", makedev(1, 3), O_RDWR), makedev(1, 3));
	assert_device_or_none(device_open("/etc/passwd", makedev(1, 3), O_RDWR), makedev(1, 3));
}

TEST(file_systems_without_a_path)
{
	int fd = mount_private("tmpfs");

	if (fd == -EPERM)
		skip();
	assert_true(fd >= 0);
	assert_int_equal(mkdirat(fd, "x", 0700), 0);
	close(fd);
	assert_int_equal(mount_private("no such type"), -ENODEV);
}

UNIT_MAIN(NULL, NULL)
