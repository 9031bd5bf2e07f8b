// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults on request: /sys/kernel/debug/kfdsim/faults arms a point, counts its
 * calls, fails the right ones, and forgets on "clear". Run as root.
 */
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "conformance.h"
#include "sysfs.h"

#define FAULTS "/sys/kernel/debug/kfdsim/faults"
#define GPUS   "/sys/kernel/debug/kfdsim/gpus"

static int kfd;

static int write_line(const char *path, const char *line)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret, err;

	if (fd < 0)
		return -1;
	ret = write(fd, line, strlen(line));
	err = errno;
	close(fd);
	errno = err;
	return ret < 0 ? -1 : 0;
}

static int get_version(void)
{
	struct kfd_ioctl_get_version_args args;

	return ioctl(kfd, AMDKFD_IOC_GET_VERSION, &args);
}

static int get_counters(void)
{
	struct kfd_ioctl_get_clock_counters_args args = { 0 };

	return ioctl(kfd, AMDKFD_IOC_GET_CLOCK_COUNTERS, &args);
}

static void check_format(void)
{
	check_errno(write_line(FAULTS, "kfd:GET_VERSION 1"), EINVAL, "a line without errno is refused");
	check_errno(write_line(FAULTS, "kfd:GET_VERSION 0 EIO"), EINVAL, "calls are counted from 1");
	check_errno(write_line(FAULTS, "kfd:GET_VERSION 1 ENOSUCHNAME"), EINVAL, "an unknown errno is refused");
	check_errno(write_line(FAULTS, "kfd:GET_VERSION 1 5000"), EINVAL, "a number that is no errno is refused");
	check_errno(write_line(FAULTS, "kfd:GET_VERSIONS 1 EIO"), EINVAL, "an unknown point is refused");
	check_errno(write_line(FAULTS, "kfd:GET_VERSION 1 EIO all"), EINVAL, "a count that is no number is refused");
	check_errno(write_line(FAULTS, "kfd:GET_VERSION 1 EIO 1 1"), EINVAL, "more than four words are refused");
	check_errno(get_version(), 0, "what was refused has no effect");
}

/* All kinds of points that there are. */
static void check_points(void)
{
	static const char *const points[] = {
		"kfd:GET_VERSION",	  "kfd:RUNTIME_ENABLE",	   "kfd:CRIU_OP",
		"kfd:CRIU_PROCESS_INFO",  "kfd:CRIU_RESUME",	   "kfd:open",
		"drm:GEM_CREATE",	  "drm:GEM_LIST_HANDLES",  "drm:GEM_CLOSE",
		"drm:PRIME_HANDLE_TO_FD", "drm:GEM_CHANGE_HANDLE", "drm:engine",
	};
	char line[64];
	unsigned int i;

	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		snprintf(line, sizeof(line), "%s 1000000 EIO", points[i]);
		check_errno(write_line(FAULTS, line), 0, "%s is a point", points[i]);
	}
	write_line(FAULTS, "clear");
}

static void check_nth(void)
{
	char text[512];

	check_errno(write_line(FAULTS, "kfd:GET_VERSION 2 EIO\n"), 0, "a fault is armed");
	check_errno(get_version(), 0, "the first call succeeds");
	check_errno(get_version(), EIO, "the second fails");
	check_errno(get_version(), 0, "the third succeeds again");
	sysfs_read(text, sizeof(text), FAULTS);
	check_str(text, "kfd:GET_VERSION nth 2 errno 5 times 1 calls 3 failed 1\n", "the file tells what happened");
	check_errno(write_line(FAULTS, "clear"), 0, "faults can be cleared");
	sysfs_read(text, sizeof(text), FAULTS);
	check_str(text, "", "nothing is armed then");
}

static void check_many(void)
{
	int i, failed = 0;

	check_errno(write_line(FAULTS, "kfd:GET_VERSION 1 12 2"), 0, "an errno may be a number");
	check_errno(get_version(), ENOMEM, "the first of two fails");
	check_errno(get_version(), ENOMEM, "the second of two fails");
	check_errno(get_version(), 0, "the one after them succeeds");
	write_line(FAULTS, "clear");

	write_line(FAULTS, "kfd:GET_VERSION 3 ENODEV 0");
	for (i = 0; i < 10; i++)
		failed += get_version() < 0 && errno == ENODEV;
	check_u64(failed, 8, "with 0 times all calls from the third on fail");
	check_true(get_counters() == 0 || errno != ENODEV, "other ioctls are not affected");
	write_line(FAULTS, "clear");
	check_errno(get_version(), 0, "after clear the ioctl works");
}

static void check_open(void)
{
	int fd;

	write_line(FAULTS, "kfd:open 1 EAGAIN");
	fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	check_errno(fd, EAGAIN, "open of /dev/kfd fails on request");
	if (fd >= 0)
		close(fd);
	write_line(FAULTS, "clear");
}

static void check_gpus(void)
{
	char before[4096], after[4096], line[64];
	unsigned int gpu_id = 0;

	check_true(sysfs_read(before, sizeof(before), GPUS) > 0, "the list of GPUs can be read");
	check_true(sscanf(before, "%x ok", &gpu_id) == 1 && gpu_id, "the first GPU is ok");
	check_errno(write_line(GPUS, "0x10000 hang"), ENODEV, "an unknown GPU cannot hang");
	snprintf(line, sizeof(line), "%#x sleeps", gpu_id);
	check_errno(write_line(GPUS, line), EINVAL, "an unknown state is refused");
	snprintf(line, sizeof(line), "%#x hang\n", gpu_id);
	check_errno(write_line(GPUS, line), 0, "a GPU can be made to hang");
	sysfs_read(after, sizeof(after), GPUS);
	check_true(!strncmp(after, line, strlen(line)), "the list shows it");
	snprintf(line, sizeof(line), "%#x ok", gpu_id);
	check_errno(write_line(GPUS, line), 0, "and to go on");
	sysfs_read(after, sizeof(after), GPUS);
	check_str(after, before, "the list is as before");
}

int main(void)
{
	kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	if (!check_true(kfd >= 0, "/dev/kfd can be opened"))
		return conformance_end();
	write_line(FAULTS, "clear");
	check_format();
	check_points();
	check_nth();
	check_many();
	check_open();
	check_gpus();
	close(kfd);
	return conformance_end();
}
