// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults on request as /dev/kfd meets them: ioctls and steps of CRIU_OP that
 * fail at their n-th call, and user queues of a GPU that hangs or is lost.
 */
#include "criu_test.h"

static int kfd, drm_fd;
static struct node gpu;

static void tell(const char *file, const char *line)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/debug/kfdsim/%s", file);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, line, strlen(line)) < 0)
		err(1, "%s: %s", path, line);
	close(fd);
}

static void tell_gpu(const char *state)
{
	char line[64];

	snprintf(line, sizeof(line), "%#x %s", gpu.gpu_id, state);
	tell("gpus", line);
}

static void check_ioctls(void)
{
	struct kfd_ioctl_get_version_args version;
	uint64_t handle = 0;
	int fd;

	tell("faults", "kfd:ALLOC_MEMORY_OF_GPU 2 ENOSPC");
	check_errno(kfd_alloc(kfd, gpu.gpu_id, reserve(PAGE), PAGE, GTT_RW, NULL, &handle), 0, "the first ALLOC works");
	check_errno(kfd_alloc(kfd, gpu.gpu_id, reserve(PAGE), PAGE, GTT_RW, NULL, NULL), ENOSPC, "the second fails");
	must(kfd_free(kfd, handle), "FREE");
	tell("faults", "kfd:GET_VERSION 1 EIO");
	check_errno(ioctl(kfd, NR_GET_VERSION, &version), EIO, "GET_VERSION fails when asked to");
	check_errno(ioctl(kfd, NR_GET_VERSION, &version), 0, "... once");
	tell("faults", "kfd:open 1 EMFILE");
	fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	check_errno(fd, EMFILE, "open fails when asked to");
	tell("faults", "clear");
}

static void check_criu(void)
{
	struct state *state = shared(sizeof(*state));

	tell("faults", "kfd:CRIU_PROCESS_INFO 1 EIO");
	check_errno(state_info(kfd, state), EIO, "PROCESS_INFO fails when asked to");
	check_errno(criu_simple(kfd, OP_UNPAUSE), EINVAL, "... and has paused nothing");
	must(state_info(kfd, state), "PROCESS_INFO");
	tell("faults", "kfd:CRIU_CHECKPOINT 1 ENOMEM");
	check_errno(state_checkpoint(kfd, state), ENOMEM, "CHECKPOINT fails when asked to");
	tell("faults", "kfd:CRIU_UNPAUSE 1 EBUSY");
	check_errno(criu_simple(kfd, OP_UNPAUSE), EBUSY, "UNPAUSE fails when asked to");
	check_errno(criu_simple(kfd, OP_UNPAUSE), 0, "... once");
	tell("faults", "clear");
}

static void check_engine(void)
{
	struct buffer flag = buffer_new(kfd, drm_fd, gpu.gpu_id, PAGE, GTT_RW);
	struct sdma_queue q = sdma_new(kfd, drm_fd, gpu.gpu_id);

	tell_gpu("hang");
	sdma_fence(&q, flag.va, 1);
	sdma_ring_doorbell(&q);
	check_true(!sdma_drain(&q, 100), "a queue of a GPU that hangs waits");
	tell_gpu("ok");
	check_true(sdma_drain(&q, 3000), "... and goes on when it does not");
	tell_gpu("lost");
	sdma_fence(&q, flag.va, 2);
	sdma_ring_doorbell(&q);
	check_true(!sdma_drain(&q, 100), "a queue of a GPU that is lost stops");
	tell_gpu("ok");
	check_true(!sdma_drain(&q, 100), "... for good");
	sdma_free(&q, kfd);
	buffer_free(kfd, &flag);
}

int main(void)
{
	gpu = node_gpu(0);
	kfd = kfd_open();
	drm_fd = render_open(gpu.render_minor);
	must(kfd_acquire(kfd, drm_fd, gpu.gpu_id), "ACQUIRE_VM");
	check_ioctls();
	check_criu();
	check_engine();
	return conformance_end();
}
