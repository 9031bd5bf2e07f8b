// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRIU_OP without a restore: who may call it, in what order, with what counts,
 * and what CHECKPOINT hands out. The process that is looked at is a child of
 * this one, traced as CRIU would.
 */
#include "criu_test.h"

/* What the child owns and tells about itself. */
struct child {
	volatile uint32_t step; /* 1: child is ready; 2: it may go on; 3: it has */
	pid_t pid;
	int kfd;
	struct buffer vram, gtt, readonly;
	uint64_t user_va;
	struct test_queue queue;
	struct events events;
};

static struct child *child;
static struct state *state;
static unsigned int release;

static void child_main(void)
{
	const uint32_t ids[] = { gpus[0].gpu_id, gpus[1].gpu_id };
	struct kfd_ioctl_set_event_args set;
	int drm_fd[MAX_STATE_GPUS] = { -1 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child->pid = getpid();
	child->kfd = kfd_file();
	gpus_acquire(child->kfd, drm_fd);
	child->vram = buffer_new(child->kfd, drm_fd[0], gpus[0].gpu_id, 3 * PAGE, VRAM_RW);
	memset((void *)child->vram.va, 0x5a, child->vram.size);
	child->gtt = buffer_new(child->kfd, drm_fd[0], gpus[0].gpu_id, PAGE, GTT_RW);
	child->readonly = buffer_new(child->kfd, drm_fd[0], gpus[0].gpu_id, PAGE, MEM_GTT);
	if (nr_gpus > 1)
		must(kfd_map_ids(child->kfd, child->vram.handle, ids, 2, true), "MAP on two GPUs");
	child->user_va = special_memory_new(child->kfd, (uintptr_t)must_map(0, 2 * PAGE, RW, -1, 0));
	child->events = events_new(child->kfd, drm_fd[0]);
	set.event_id = child->events.signal;
	must(ioctl(child->kfd, AMDKFD_IOC_SET_EVENT, &set), "SET_EVENT");
	child->queue = queue_new(child->kfd, drm_fd[0], &gpus[0]);
	announce(&child->step, 1);

	/* Copies that must not happen while the process is paused are rung by the tracer's leave. */
	for (;;) {
		await(&child->step, 2);
		sdma_copy(&child->queue.sdma, child->gtt.va, child->vram.va, PAGE);
		sdma_kick(&child->queue.sdma);
		announce(&child->step, 3);
	}
}

static void start_child(void)
{
	pid_t pid = fork();

	must(pid, "fork");
	if (!pid)
		child_main();
	await(&child->step, 1);
}

/* ---- who may call ---- */

static void *other_thread(void *arg)
{
	int kfd = *(int *)arg;

	check_errno(criu_simple(kfd, KFD_CRIU_OP_PROCESS_INFO), EBADF, "another thread of the tracer may not");
	return NULL;
}

static void check_callers(int kfd)
{
	struct kfd_ioctl_get_version_args version;
	pthread_t thread;

	check_errno(criu_simple(kfd, KFD_CRIU_OP_PROCESS_INFO), EBADF, "who is not the tracer may not call CRIU_OP");
	check_errno(criu_simple(kfd, 17), EBADF, "... which comes before the operation is looked at");
	trace(child->pid);
	check_errno(ioctl(kfd, AMDKFD_IOC_GET_VERSION, &version), EBADF, "the tracer may not call GET_VERSION");
	check_errno(ioctl(kfd, AMDKFD_IOC_CRIU_OP, (void *)8), EFAULT, "the tracer's arguments are read");
	must(pthread_create(&thread, NULL, other_thread, &kfd), "pthread_create");
	pthread_join(thread, NULL);
}

/* ---- order and counts ---- */

static void check_before_pause(int kfd)
{
	struct kfd_ioctl_criu_args args;

	check_errno(criu_simple(kfd, 5), EINVAL, "operation 5");
	check_errno(criu_simple(kfd, KFD_CRIU_OP_UNPAUSE), EINVAL, "UNPAUSE of a process that is not paused");
	check_errno(criu_simple(kfd, KFD_CRIU_OP_CHECKPOINT), EINVAL, "CHECKPOINT without pointers");
	args = (struct kfd_ioctl_criu_args){ .devices = 8, .bos = 8, .priv_data = 8 };
	check_errno(criu_op(kfd, KFD_CRIU_OP_CHECKPOINT, &args), EINVAL, "CHECKPOINT of a process that is not paused");
}

static void check_info(int kfd)
{
	struct kfd_ioctl_criu_args *info = &state->info;

	check_errno(state_info(kfd, state), 0, "PROCESS_INFO");
	check_u64(info->pid, child->pid, "PROCESS_INFO: pid");
	check_u64(info->num_devices, nr_gpus, "PROCESS_INFO: all GPUs, used or not");
	/* three buffers, userptr, doorbells, MMIO, event page, ring, pointers */
	check_u64(info->num_bos, 9, "PROCESS_INFO: buffers");
	check_u64(info->num_objects, 3, "PROCESS_INFO: one queue and two events");
	check_u64(info->priv_data_size,
		  8 + 8ull * nr_gpus + 272 * 9 + 120 + sdma_mqd_size(&gpus[0], release) + 2 * 64,
		  "PROCESS_INFO: size of the private data");
}

static unsigned int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* ---- contents ---- */

static const struct kfd_criu_bo_bucket *bucket_at(uint64_t va)
{
	uint32_t i;

	for (i = 0; i < state->info.num_bos; i++)
		if (state->bos[i].addr == va)
			return &state->bos[i];
	errx(1, "no bucket for address %#" PRIx64, va);
}

static struct bo_priv *priv_of(const struct kfd_criu_bo_bucket *b)
{
	return state_bo_priv(state, b - state->bos);
}

static void check_devices(void)
{
	unsigned int i;

	for (i = 0; i < nr_gpus; i++) {
		check_u64(state->devices[i].user_gpu_id, gpus[i].gpu_id, "device %u: user gpu id", i);
		check_u64(state->devices[i].actual_gpu_id, gpus[i].gpu_id, "device %u: actual gpu id", i);
		check_u64(state->devices[i].drm_fd, 0, "device %u: no render node", i);
	}
	check_u64(*(uint32_t *)state->priv, 1, "private data: version");
}

static void check_fd(const struct kfd_criu_bo_bucket *b, uint64_t size, bool writable)
{
	int flags = fcntl(b->dmabuf_fd, F_GETFL);

	check_u64(lseek(b->dmabuf_fd, 0, SEEK_END), size, "... whose dma-buf has its size");
	check_u64(flags & O_ACCMODE, writable ? O_RDWR : O_RDONLY, "... and is %s",
		  writable ? "read-write" : "read-only, as the buffer");
	check_u64(fcntl(b->dmabuf_fd, F_GETFD), 0, "... and stays open over exec");
}

static void check_contents(void)
{
	const struct kfd_criu_bo_bucket *b = bucket_at(child->vram.va);
	uint8_t *p = must_map(0, b->size, PROT_READ, b->dmabuf_fd, 0);

	check_true(p[0] == 0x5a && p[b->size - 1] == 0x5a, "the VRAM buffer's dma-buf shows what the process wrote");
	munmap(p, b->size);
}

static void check_plain_buffers(void)
{
	const struct kfd_criu_bo_bucket *b = bucket_at(child->vram.va);
	unsigned int i;

	check_u64(b->size, 3 * PAGE, "VRAM buffer: size");
	check_u64(b->alloc_flags, VRAM_RW, "VRAM buffer: flags");
	check_u64(b->gpu_id, gpus[0].gpu_id, "VRAM buffer: gpu id");
	check_u64(b->offset, child->vram.offset, "VRAM buffer: mmap offset");
	check_u64(b->restored_offset, 0, "VRAM buffer: no restored offset");
	check_u64(priv_of(b)->idr_handle, (uint32_t)child->vram.handle, "VRAM buffer: number");
	check_u64(priv_of(b)->mapped[0], gpus[0].gpu_id, "VRAM buffer: mapped on its GPU");
	for (i = 1; i < nr_gpus && i < 2; i++)
		check_true(priv_of(b)->mapped[i] != 0, "VRAM buffer: mapped on the other GPU");
	check_u64(priv_of(b)->mapped[i], 0, "VRAM buffer: and nowhere else");
	check_fd(b, 3 * PAGE, true);
	check_fd(bucket_at(child->readonly.va), PAGE, false);
	check_contents();
}

static void check_special_buffers(void)
{
	const struct kfd_criu_bo_bucket *b = bucket_at(child->user_va);
	uint32_t i, seen = 0;

	check_u64(b->dmabuf_fd, NO_FD, "userptr buffer: no fd");
	check_u64(priv_of(b)->user_addr, child->user_va, "userptr buffer: address of its memory");
	for (i = 0; i < state->info.num_bos; i++) {
		b = &state->bos[i];
		if (b->alloc_flags & MEM_DOORBELL) {
			check_u64(b->offset, 3ull << 62 | (uint64_t)gpus[0].gpu_id << 46, "doorbells: offset");
			check_u64(b->dmabuf_fd, NO_FD, "doorbells: no fd");
			seen |= 1;
		} else if (b->alloc_flags & MEM_MMIO) {
			check_u64(b->offset, (uint64_t)gpus[0].gpu_id << 46, "MMIO page: offset");
			check_u64(b->dmabuf_fd, NO_FD, "MMIO page: no fd");
			seen |= 2;
		}
	}
	check_u64(seen, 3, "doorbells and MMIO page are saved");
}

static void check_objects(void)
{
	const struct queue_priv *q = (void *)state_objects(state);
	const struct event_priv *ev = (void *)(state_objects(state) + 120 + q->mqd_size);

	check_u64(q->object_type, 0, "first object: a queue");
	check_u64(q->type, 1, "queue: SDMA");
	check_u64(q->format, 0, "queue: format");
	check_u64(q->ring, child->queue.ring.va, "queue: ring");
	check_u64(q->ring_size, RING, "queue: size of the ring");
	check_u64(q->rptr, child->queue.pointers.va, "queue: read pointer");
	check_u64(q->wptr, child->queue.pointers.va + 64, "queue: write pointer");
	check_u64(q->gpu_id, gpus[0].gpu_id, "queue: user gpu id");
	check_u64(q->q_id, child->queue.sdma.queue_id, "queue: id");
	check_u64(q->percent, 100, "queue: percentage");
	check_u64(q->priority, 7, "queue: priority");
	check_u64(q->doorbell_id, (child->queue.doorbell_offset & (DOORBELLS - 1)) / 8, "queue: doorbell");
	check_u64(q->mqd_size, sdma_mqd_size(&gpus[0], release), "queue: size of the MQDs, one per XCC");
	check_u64(q->ctl_stack_size, 0, "queue: no control stack");
	check_u64(ev[0].object_type, 1, "second object: an event");
	check_u64(ev[0].event_id, child->events.signal, "signal event: id");
	check_u64(ev[0].user_handle, child->events.page.handle, "signal event: the page's handle, in the first event");
	check_u64(ev[0].signaled, 1, "signal event: signalled");
	check_u64(ev[1].object_type, 1, "third object: an event");
	check_u64(ev[1].event_id, child->events.memory, "memory event: id");
	check_u64(ev[1].user_handle, 0, "memory event: no page");
	check_u64(ev[1].type, 8, "memory event: type");
	check_u64(ev[1].auto_reset, 1, "memory event: auto reset");
}

/* The inode of the first dma-buf of the state. */
static ino_t bucket_inode(void)
{
	struct stat st = { 0 };
	uint32_t i;

	for (i = 0; i < state->info.num_bos && !st.st_ino; i++)
		if (state->bos[i].dmabuf_fd != NO_FD)
			fstat(state->bos[i].dmabuf_fd, &st);
	return st.st_ino;
}

static void check_checkpoint(int kfd)
{
	unsigned int before = count_fds();
	ino_t inode;

	if (!check_errno(state_checkpoint(kfd, state), 0, "CHECKPOINT"))
		return;
	check_u64(count_fds() - before, 6, "CHECKPOINT gives one fd per VRAM and GTT buffer to the caller");
	check_devices();
	check_plain_buffers();
	check_special_buffers();
	check_objects();
	inode = bucket_inode();
	state_close_fds(state);
	check_errno(state_checkpoint(kfd, state), 0, "CHECKPOINT once more");
	check_true(bucket_inode() == inode, "... gives the same dma-bufs");
}

/* ---- pause ---- */

/* Lets the stopped child go on to ring its doorbell, and shows whether the engine cares. */
static void child_rings(void)
{
	int status;

	announce(&child->step, 2);
	must(ptrace(PTRACE_CONT, child->pid, 0, 0), "PTRACE_CONT");
	await(&child->step, 3);
	must(ptrace(PTRACE_INTERRUPT, child->pid, 0, 0), "PTRACE_INTERRUPT");
	must(waitpid(child->pid, &status, __WALL), "waitpid");
}

/* The byte that the child's copies change, through the dma-buf of the last CHECKPOINT. */
static volatile uint8_t *gtt_byte(void)
{
	return must_map(0, PAGE, RW, bucket_at(child->gtt.va)->dmabuf_fd, 0);
}

static bool becomes(volatile uint8_t *byte, uint8_t value, unsigned int ms)
{
	uint64_t end = now_ms() + ms;

	while (*byte != value) {
		if (now_ms() > end)
			return false;
		usleep(1000);
	}
	return true;
}

static void check_pause(int kfd)
{
	volatile uint8_t *byte = gtt_byte();

	*byte = 0;
	child_rings();
	check_true(!becomes(byte, 0x5a, 200), "a paused queue ignores its doorbell");
	check_errno(criu_simple(kfd, KFD_CRIU_OP_UNPAUSE), 0, "UNPAUSE");
	check_true(becomes(byte, 0x5a, 3000), "after UNPAUSE the queue does what was rung meanwhile");
	check_errno(criu_simple(kfd, KFD_CRIU_OP_UNPAUSE), EINVAL, "UNPAUSE again");
	*byte = 0;
	child_rings();
	check_true(becomes(byte, 0x5a, 3000), "and goes on from there");
	munmap((void *)byte, PAGE);
}

/* Up to 7.2 each PROCESS_INFO is one more reason to stand still, of which UNPAUSE takes back one. Comes last. */
static void check_counting(int kfd, bool counts)
{
	volatile uint8_t *byte = gtt_byte();

	must(state_info(kfd, state), "PROCESS_INFO");
	check_errno(state_info(kfd, state), 0, "PROCESS_INFO of a paused process");
	check_errno(criu_simple(kfd, KFD_CRIU_OP_UNPAUSE), 0, "UNPAUSE after two PROCESS_INFO");
	check_errno(criu_simple(kfd, KFD_CRIU_OP_UNPAUSE), EINVAL, "... is all there is to take back");
	*byte = 0;
	child_rings();
	check_u64(becomes(byte, 0x5a, counts ? 300 : 3000), !counts, "... and the queue %s",
		  counts ? "stands still all the same" : "runs");
	munmap((void *)byte, PAGE);
}

/* Argument: the release whose rules hold; since 7.3 PROCESS_INFO does not count. */
int main(int argc, char **argv)
{
	int kfd;

	release = release_of(argc, argv);
	child = shared(sizeof(*child));
	state = shared(sizeof(*state));
	gpus_find();
	start_child();
	kfd = fd_of(child->pid, child->kfd);
	check_callers(kfd);
	check_before_pause(kfd);
	check_info(kfd);
	check_checkpoint(kfd);
	check_pause(kfd);
	check_counting(kfd, release < 703);
	state_close_fds(state);
	reap(child->pid, true);
	close(kfd);
	return conformance_end();
}
