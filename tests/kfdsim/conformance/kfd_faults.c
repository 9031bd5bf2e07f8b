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

/* A GPU that sticks keeps whoever wants to stop its queues waiting, and then fails him. */
static void check_stuck(void)
{
	struct state *state = shared(sizeof(*state));
	struct sdma_queue q;

	tell_gpu("stuck");
	check_errno(state_info(kfd, state), 0, "PROCESS_INFO of a process without queues on a GPU that sticks");
	must(criu_simple(kfd, OP_UNPAUSE), "UNPAUSE");
	q = sdma_new(kfd, drm_fd, gpu.gpu_id);
	check_errno(state_info(kfd, state), ETIME, "PROCESS_INFO of one with a queue there");
	check_errno(criu_simple(kfd, OP_UNPAUSE), EINVAL, "... and has paused nothing");
	tell_gpu("ok");
	check_errno(state_info(kfd, state), 0, "PROCESS_INFO when the GPU is well again");
	must(criu_simple(kfd, OP_UNPAUSE), "UNPAUSE");
	sdma_free(&q, kfd);
}

/* A buffer that the CPU sees by its dma-buf: the render node of another GPU does not show it. */
static struct buffer buffer_by_dmabuf(int file_kfd, uint64_t size)
{
	struct buffer b = { .va = reserve(size), .size = size, .gpu_id = gpu.gpu_id };
	struct export_dmabuf export = { 0 };

	must(kfd_alloc(file_kfd, gpu.gpu_id, b.va, size, GTT_RW, &b.offset, &b.handle), "ALLOC");
	must(kfd_map(file_kfd, b.handle, gpu.gpu_id), "MAP");
	export.handle = b.handle;
	must(ioctl(file_kfd, NR_EXPORT_DMABUF, &export), "EXPORT");
	if (mmap((void *)b.va, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, export.fd, 0) == MAP_FAILED)
		err(1, "mmap a dma-buf");
	return b;
}

/* In a child, whose GPUs have no address spaces yet. */
static void wrong_file(uint32_t render_minor)
{
	struct sdma_queue q = { .gpu_id = gpu.gpu_id };
	int fd = kfd_open(), file = render_open(render_minor);
	struct create_queue args;

	check_errno(kfd_acquire(fd, file, gpu.gpu_id), 0, "ACQUIRE_VM with the render node of another GPU");
	q.ring = buffer_by_dmabuf(fd, RING);
	q.pointers = buffer_by_dmabuf(fd, PAGE);
	args = sdma_args(&q);
	check_errno(ioctl(fd, NR_CREATE_QUEUE, &args), 0, "... a queue can be made");
	q.doorbell_offset = args.doorbell_offset;
	sdma_map_doorbell(&q, fd, args.doorbell_offset);
	sdma_fence(&q, q.pointers.va + 512, 1);
	sdma_ring_doorbell(&q);
	check_true(!sdma_drain(&q, 200), "... which does nothing");
}

static void check_wrong_file(void)
{
	pid_t pid;

	if (count_gpus(NULL) < 2 || kfd_minor_version(kfd) < 12) {
		check_skip("the render node of another GPU: there is none, or no dma-buf");
		return;
	}
	pid = fork();
	must(pid, "fork");
	if (!pid) {
		wrong_file(node_gpu(1).render_minor);
		_exit(conformance_failed);
	}
	reap(pid, false);
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
	check_stuck();
	check_wrong_file();
	return conformance_end();
}
