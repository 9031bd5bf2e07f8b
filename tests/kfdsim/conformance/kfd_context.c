// SPDX-License-Identifier: GPL-2.0-only
/*
 * Secondary contexts (CREATE_PROCESS, KFD 1.19): a file of /dev/kfd with buffers, numbers and queues of its own beside
 * those of the process' other files, what it cannot do, and what CRIU_OP sees of it.
 */
#include "criu_test.h"

static struct node gpu;
static int kfd, drm_fd; /* of the primary context */

static int context_new(void)
{
	int fd = kfd_open();

	must(ioctl(fd, NR_CREATE_PROCESS), "CREATE_PROCESS");
	return fd;
}

static bool proc_has(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d/%s", getpid(), name);
	return !access(path, F_OK);
}

static void check_create(void)
{
	int fd = kfd_open(), fd2;

	check_errno(ioctl(fd, NR_CREATE_PROCESS), 0, "CREATE_PROCESS");
	check_errno(ioctl(fd, NR_CREATE_PROCESS), EINVAL, "CREATE_PROCESS of a file that has its own context");
	check_true(proc_has("context_0/pasid"), "proc: the context is a directory of the process'");
	fd2 = context_new();
	check_true(proc_has("context_1/pasid"), "... the second has the next number");
	close(fd);
	check_true(!proc_has("context_0"), "... which goes with its file");
	close(fd2);
	check_true(proc_has("pasid"), "... and leaves the process' own");
}

static void check_separate(void)
{
	uint64_t va = (uintptr_t)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t mine, theirs, offset = va;
	struct kfd_ioctl_svm_args svm = { .start_addr = va, .size = PAGE };
	int fd = context_new(), file = render_open(gpu.render_minor);

	must(kfd_alloc(kfd, gpu.gpu_id, reserve(PAGE), PAGE, VRAM_RW, NULL, &mine), "ALLOC");
	check_errno(kfd_alloc(fd, gpu.gpu_id, reserve(PAGE), PAGE, VRAM_RW, NULL, NULL), ENODEV,
		    "a context has no address space at first");
	check_errno(kfd_acquire(fd, drm_fd, gpu.gpu_id), EINVAL, "... cannot have that of another");
	check_errno(kfd_acquire(fd, file, gpu.gpu_id), 0, "... and gets one of its own");
	check_errno(kfd_alloc(fd, gpu.gpu_id, reserve(PAGE), PAGE, VRAM_RW, NULL, &theirs), 0, "ALLOC in a context");
	check_u64(theirs, mine, "... numbers are the context's own");
	check_errno(kfd_alloc(fd, gpu.gpu_id, reserve(PAGE), PAGE, MEM_USERPTR | MEM_WRITABLE, &offset, NULL),
		    EOPNOTSUPP, "ALLOC of user memory in a context");
	check_errno(ioctl(fd, NR_SVM(0), &svm), EOPNOTSUPP, "SVM in a context");
	must(kfd_free(kfd, mine), "FREE");
	check_errno(kfd_free(fd, theirs), 0, "FREE in a context");
	close(fd);
	close(file);
}

static void check_queue(void)
{
	int fd = context_new(), file = render_open(gpu.render_minor);
	struct sdma_queue q, mine = sdma_new(kfd, drm_fd, gpu.gpu_id);
	struct buffer word;

	must(kfd_acquire(fd, file, gpu.gpu_id), "ACQUIRE_VM");
	q = sdma_new(fd, file, gpu.gpu_id);
	word = buffer_new(fd, file, gpu.gpu_id, PAGE, GTT_RW);
	check_u64(q.queue_id, mine.queue_id, "queue ids are the context's own");
	sdma_fence(&q, word.va, 0x1234);
	sdma_ring_doorbell(&q);
	check_true(sdma_drain(&q, 5000), "a context's queue works by its own doorbells");
	check_u64(*(volatile uint32_t *)word.va, 0x1234, "... in its own address space");
	check_u64(sdma_rptr(&mine), 0, "... and no other moves");
	sdma_free(&mine, kfd);
	close(fd); /* with all that is in it */
	close(file);
}

/* Each file's CRIU_OP sees its own context; RESUME finds the primary one only. */
static void check_criu(void)
{
	int fd = context_new(), file = render_open(gpu.render_minor);
	struct criu_args args = { 0 };
	uint64_t handle;

	must(kfd_acquire(fd, file, gpu.gpu_id), "ACQUIRE_VM");
	must(kfd_alloc(fd, gpu.gpu_id, reserve(PAGE), PAGE, VRAM_RW, NULL, &handle), "ALLOC");
	check_errno(criu_op(kfd, OP_PROCESS_INFO, &args), 0, "PROCESS_INFO by the process' file");
	check_u64(args.num_bos, 0, "... does not see a context's buffers");
	check_errno(criu_simple(fd, OP_UNPAUSE), EINVAL, "... and does not pause it");
	must(criu_simple(kfd, OP_UNPAUSE), "UNPAUSE");
	check_errno(criu_op(fd, OP_PROCESS_INFO, &args), 0, "PROCESS_INFO by the context's file");
	check_u64(args.num_bos, 1, "... sees them");
	check_u64(args.pid, getpid(), "... with the pid of the process");
	must(criu_simple(fd, OP_UNPAUSE), "UNPAUSE");
	close(fd);
	close(file);
}

/* Its end takes contexts along that a child still has a file of. */
static void check_end(void)
{
	pid_t pid = fork();

	must(pid, "fork");
	if (!pid) {
		int fd = context_new(), file = render_open(gpu.render_minor);

		must(kfd_acquire(fd, file, gpu.gpu_id), "ACQUIRE_VM");
		sdma_new(fd, file, gpu.gpu_id);
		pid = fork();
		if (pid)
			_exit(0);
		usleep(200000);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	usleep(400000);
	check_true(kfd_open() >= 0, "a process ends before its context's last file is closed");
}

int main(void)
{
	gpu = node_gpu(0);
	kfd = kfd_open();
	drm_fd = render_open(gpu.render_minor);
	must(kfd_acquire(kfd, drm_fd, gpu.gpu_id), "ACQUIRE_VM");
	if (kfd_minor_version(kfd) < 19) {
		check_errno(ioctl(kfd, NR_CREATE_PROCESS), ENOTTY, "CREATE_PROCESS before KFD 1.19");
		return conformance_end();
	}
	check_create();
	check_separate();
	check_queue();
	check_criu();
	check_end();
	return conformance_end();
}
