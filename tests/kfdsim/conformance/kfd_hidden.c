// SPDX-License-Identifier: GPL-2.0-only
/*
 * A GPU that the device cgroup hides, as a container engine does: for a process in
 * that cgroup it is not there, for all others nothing is different. The filter is put
 * in place by build/workloads/devcgroup.
 */
#include <libgen.h>

#include "criu_test.h"

#define CGROUP "/sys/fs/cgroup/kfd_hidden"

static struct node hidden, seen;
static unsigned int nr_gpus;

struct child {
	volatile uint32_t step;
	unsigned int passed, failed;
	int kfd;
};

static int topology_read(unsigned int number, const char *file)
{
	char path[160], text[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/topology/nodes/%u/%s", number, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	must(fd, path);
	n = read(fd, text, sizeof(text));
	close(fd);
	return n < 0 ? -1 : 0;
}

static int render_try(uint32_t minor)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", minor);
	return open(path, O_RDWR | O_CLOEXEC);
}

static void cgroup_write(const char *file, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", CGROUP, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	must(fd, path);
	must(write(fd, text, strlen(text)), path);
	close(fd);
}

static void check_topology(void)
{
	static const char *const files[] = { "gpu_id", "name", "properties", "mem_banks/0/properties",
					     "io_links/0/properties" };
	unsigned int i;

	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		check_errno(topology_read(hidden.number, files[i]), EPERM, "hidden: reading %s", files[i]);
		check_errno(topology_read(seen.number, files[i]), 0, "not hidden: reading %s", files[i]);
	}
	check_errno(topology_read(hidden.number, "caches/0/properties"), 0, "hidden: caches can be read since 6.2");
}

static void check_apertures(int kfd)
{
	struct kfd_process_device_apertures ap[80];
	struct kfd_ioctl_get_process_apertures_new_args args = {
		.kfd_process_device_apertures_ptr = (uintptr_t)ap,
		.num_of_nodes = nr_gpus,
	};
	unsigned int i;

	must(ioctl(kfd, NR_APERTURES_NEW, &args), "GET_PROCESS_APERTURES_NEW");
	check_u64(args.num_of_nodes, nr_gpus - 1, "the process has one GPU less");
	for (i = 0; i < args.num_of_nodes; i++)
		check_true(ap[i].gpu_id != hidden.gpu_id, "... and aperture %u is not the hidden one's", i);
}

static void check_kfd(int kfd)
{
	struct kfd_ioctl_smi_events_args smi = { .gpuid = hidden.gpu_id };
	struct kfd_ioctl_get_clock_counters_args clock = { .gpu_id = hidden.gpu_id };
	int drm_fd = render_open(seen.render_minor);

	check_errno(kfd_acquire(kfd, drm_fd, hidden.gpu_id), EINVAL, "ACQUIRE_VM of the hidden GPU");
	check_errno(kfd_acquire(kfd, drm_fd, seen.gpu_id), 0, "ACQUIRE_VM of the other");
	check_errno(kfd_alloc(kfd, hidden.gpu_id, reserve(PAGE), PAGE, GTT_RW, NULL, NULL), EINVAL,
		    "ALLOC on the hidden GPU");
	check_errno(ioctl(kfd, NR_SMI_EVENTS, &smi), EINVAL, "SMI_EVENTS of the hidden GPU");
	check_errno(ioctl(kfd, NR_CLOCK_COUNTERS, &clock), 0, "its clock, which any process may ask");
	check_u64(clock.gpu_clock_counter, 0, "... does not go");
}

static void child_main(struct child *child)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	cgroup_write("cgroup.procs", pid);
	check_errno(render_try(hidden.render_minor), EPERM, "the hidden GPU's render node");
	check_topology();
	child->kfd = kfd_open();
	check_apertures(child->kfd);
	check_kfd(child->kfd);
	child->passed = conformance_passed;
	child->failed = conformance_failed;
	announce(&child->step, 1);
	for (;;)
		pause();
}

static void check_from_outside(const struct child *child, pid_t pid)
{
	struct criu_args args = { 0 };
	int kfd;

	check_errno(topology_read(hidden.number, "gpu_id"), 0, "outside of the cgroup it is not hidden");
	trace(pid);
	kfd = fd_of(pid, child->kfd);
	check_errno(criu_op(kfd, OP_PROCESS_INFO, &args), 0, "PROCESS_INFO of the process");
	check_u64(args.num_devices, nr_gpus - 1, "... has one GPU less, whoever asks");
	must(criu_simple(kfd, OP_UNPAUSE), "UNPAUSE");
	close(kfd);
}

int main(int argc, char **argv)
{
	struct child *child = shared(sizeof(*child));
	char command[512];
	pid_t pid;

	(void)argc;
	nr_gpus = count_gpus(NULL);
	if (nr_gpus < 2 || nr_gpus > 80)
		errx(1, "the machine has %u GPUs, where one of several is to be hidden", nr_gpus);
	hidden = node_gpu(0);
	seen = node_gpu(1);
	must(mkdir(CGROUP, 0755), CGROUP);
	snprintf(command, sizeof(command), "%s/../workloads/devcgroup %s %u", dirname(argv[0]), CGROUP,
		 seen.render_minor);
	if (system(command))
		errx(1, "%s failed", command);
	pid = fork();
	must(pid, "fork");
	if (!pid)
		child_main(child);
	await(&child->step, 1);
	conformance_passed += child->passed;
	conformance_failed += child->failed;
	check_from_outside(child, pid);
	reap(pid, true);
	must(rmdir(CGROUP), CGROUP);
	return conformance_end();
}
