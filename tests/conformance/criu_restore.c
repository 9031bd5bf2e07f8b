// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRIU_OP as a whole: the state of a process whose queue waits in the middle of
 * its work is taken out, the process killed, and another one made its heir, in
 * which the queue goes on where it was; once as it was, and once on other GPUs.
 * Before that, a state without objects, and one whose SDMA queue is taken, each in a process of its own.
 */
#include "criu_test.h"

#define ARENA	    (64ull << 20)
#define FLAG	    77u
#define COPY_BYTES  (5 * PAGE)

/* What the first process tells; addresses hold in its heirs, too. */
struct source {
	volatile uint32_t step;
	pid_t pid;
	int kfd;
	struct buffer vram, target, flag;
	struct test_queue queue;
	struct events events;
	uint64_t user_va, svm_va;
};

static struct source *source;
static struct state *state;
static uint8_t *contents[MAX_STATE_BOS];
static uint64_t arena;
static unsigned int release;

static uint8_t pattern(uint64_t i)
{
	return i * 7 + (i >> 8) * 13 + 3;
}

/* ---- the first process ---- */

static void source_user_memory(void)
{
	struct {
		struct kfd_ioctl_svm_args args;
		struct kfd_ioctl_svm_attribute attrs[1];
	} svm;

	source->user_va = reserve(2 * PAGE);
	must_map(source->user_va, 2 * PAGE, RW, -1, 0);
	special_memory_new(source->kfd, source->user_va);
	source->svm_va = reserve(4 * PAGE);
	must_map(source->svm_va, 4 * PAGE, RW, -1, 0);
	memset(&svm, 0, sizeof(svm));
	svm.args = (struct kfd_ioctl_svm_args){ .start_addr = source->svm_va, .size = 4 * PAGE, .nattr = 1 };
	svm.attrs[0] = (struct kfd_ioctl_svm_attribute){ .type = KFD_IOCTL_SVM_ATTR_ACCESS, .value = gpus[0].gpu_id };
	must(ioctl(source->kfd, NR_SVM(1), &svm), "SVM");
}

/* Waits for the flag, then copies from VRAM, to SVM memory, writes a fence to user memory, and interrupts. */
static void source_submit(void)
{
	struct sdma_queue *q = &source->queue.sdma;

	sdma_copy(q, source->target.va, source->vram.va, 64);
	sdma_wait_memory(q, source->flag.va, FLAG);
	sdma_copy(q, source->target.va, source->vram.va, COPY_BYTES);
	sdma_copy(q, source->svm_va + 16, source->vram.va, PAGE);
	sdma_fence(q, source->user_va, 4711);
	sdma_fence(q, source->events.page.va + 8 * source->events.signal, source->events.signal);
	sdma_trap(q, source->events.signal);
	sdma_kick(q);
	while (sdma_done_bytes(q) != 28)
		usleep(1000);
}

static void source_main(void)
{
	int drm_fd[MAX_STATE_GPUS] = { -1 };
	uint64_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	reserve_at = arena;
	source->pid = getpid();
	source->kfd = kfd_file();
	gpus_acquire(source->kfd, drm_fd);
	source->vram = buffer_new(source->kfd, drm_fd[0], gpus[0].gpu_id, COPY_BYTES, VRAM_RW | MEM_EXEC);
	source->target = buffer_new(source->kfd, drm_fd[0], gpus[0].gpu_id, COPY_BYTES, GTT_RW);
	source->flag = buffer_new(source->kfd, drm_fd[0], gpus[0].gpu_id, PAGE, GTT_RW);
	source->events = events_new(source->kfd, drm_fd[0]);
	source->queue = queue_new(source->kfd, drm_fd[0], &gpus[0]);
	source_user_memory();
	for (i = 0; i < COPY_BYTES; i++)
		((uint8_t *)source->vram.va)[i] = pattern(i);
	source_submit();
	announce(&source->step, 1);
	for (;;)
		pause();
}

/* ---- taking it out ---- */

static long live(const char *kind)
{
	char key[64];
	long value;
	FILE *f = fopen("/sys/kernel/debug/asicsim/objects", "re");

	if (!f)
		err(1, "debugfs: asicsim/objects");
	while (fscanf(f, "%63s %ld", key, &value) == 2)
		if (!strcmp(key, kind))
			break;
	fclose(f);
	return value;
}

static void await_no_queues(void)
{
	uint64_t end = now_ms() + 10000;

	while (live("queue") || live("kfd_process"))
		if (now_ms() > end)
			errx(1, "the queues of a process that has ended are still there");
}

static void take_out(void)
{
	int kfd;
	pid_t pid = child_checkpoint(source_main, &source->step, &source->kfd, state, &kfd);

	save_contents(state, contents);
	check_u64(state->info.num_objects, 4, "a queue, two events, an SVM range are saved");
	check_errno(criu_simple(kfd, KFD_CRIU_OP_UNPAUSE), 0, "UNPAUSE");
	reap(pid, true);
	close(kfd);
	await_no_queues();
}

/* ---- the heirs ---- */

static void heir_check_buckets(void)
{
	uint32_t i;

	for (i = 0; i < state->info.num_bos; i++) {
		const struct kfd_criu_bo_bucket *b = &state->bos[i];
		uint64_t actual = device_of(state, b->gpu_id)->actual_gpu_id;

		if (b->alloc_flags & MEM_DOORBELL)
			check_u64(b->restored_offset, 3ull << 62 | actual << 46, "doorbells: restored offset");
		else if (b->alloc_flags & MEM_MMIO)
			check_u64(b->restored_offset, actual << 46, "MMIO page: restored offset");
		else if (b->alloc_flags & MEM_USERPTR)
			check_u64(b->restored_offset, 0, "userptr: restored offset is left alone");
		else
			check_true(b->restored_offset && !(b->restored_offset & (PAGE - 1)),
				   "buffer %u: restored offset", i);
		if (b->alloc_flags & (MEM_VRAM | MEM_GTT))
			check_u64(lseek(b->dmabuf_fd, 0, SEEK_END), b->size, "buffer %u: dma-buf", i);
		else
			check_u64(b->dmabuf_fd, NO_FD, "buffer %u: no dma-buf", i);
	}
}

static void heir_fill_memory(void)
{
	uint32_t i;
	void *p;

	for (i = 0; i < state->info.num_bos; i++) {
		const struct kfd_criu_bo_bucket *b = &state->bos[i];

		if (!contents[i])
			continue;
		p = must_map(b->addr, b->size, RW, device_of(state, b->gpu_id)->drm_fd, b->restored_offset);
		memcpy(p, contents[i], b->size);
	}
	must_map(source->user_va, 2 * PAGE, RW, -1, 0);
	must_map(source->svm_va, 4 * PAGE, RW, -1, 0);
}

/* The heir waits for the event that the queue raises at its end. */
static void heir_wait(int kfd)
{
	struct event_data data = { .event_id = source->events.signal };
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (uintptr_t)&data,
		.num_events = 1,
		.wait_for_all = 1,
		.timeout = 5000,
	};

	check_errno(ioctl(kfd, AMDKFD_IOC_WAIT_EVENTS, &args), 0, "waiting for the restored event");
	check_u64(args.wait_result, 0, "... which comes");
}

static bool heir_data_ok(uint64_t va, uint64_t bytes)
{
	uint64_t i;

	for (i = 0; i < bytes; i++)
		if (((uint8_t *)va)[i] != pattern(i))
			return false;
	return true;
}

static void heir_check_queue(int kfd, struct sdma_queue *q)
{
	volatile uint32_t *flag = (volatile uint32_t *)source->flag.va;

	check_u64(sdma_done_bytes(q), 28, "the queue stands where it stood");
	*(uint32_t *)source->user_va = 0;
	usleep(50000);
	check_u64(sdma_done_bytes(q), 28, "... and waits");
	*flag = FLAG;
	heir_wait(kfd);
	check_true(!sdma_drain(q), "the queue goes on to its end");
	check_true(heir_data_ok(source->target.va, COPY_BYTES), "... the copied data is right");
	check_true(heir_data_ok(source->svm_va + 16, PAGE), "... also in SVM memory");
	check_u64(*(volatile uint32_t *)source->user_va, 4711, "... and the fence in user memory");
}

static void heir_check_doorbell(int kfd, struct test_queue *queue)
{
	struct sdma_queue *q = &queue->sdma;
	uint32_t gpu = q->gpu->gpu_id;
	bool user_ids = release >= 703;
	uint64_t id = user_ids ? gpu : device_of(state, gpu)->actual_gpu_id;
	uint64_t wrong = user_ids ? device_of(state, gpu)->actual_gpu_id : gpu;

	if (id != wrong) {
		void *p = mmap(NULL, DOORBELLS, PROT_READ | PROT_WRITE, MAP_SHARED, kfd, 3ull << 62 | wrong << 46);

		/* With two GPUs that changed places the other id is that of a GPU, too: a mapping of the wrong one. */
		check_true(p != MAP_FAILED, "the other gpu id in a doorbell offset means the other GPU");
		munmap(p, DOORBELLS);
	}
	queue_map_doorbell(queue, kfd, 3ull << 62 | id << 46);
	memset((void *)source->target.va, 0, COPY_BYTES);
	sdma_copy(q, source->target.va, source->vram.va, COPY_BYTES);
	sdma_kick(q);
	check_true(!sdma_drain(q), "the doorbell of the restored queue works");
	check_true(heir_data_ok(source->target.va, COPY_BYTES), "... and its data is right");
}

static void heir_check_handles(int kfd)
{
	uint32_t gpu = gpus[0].gpu_id;
	struct buffer another;
	struct test_queue q;

	check_errno(kfd_free(kfd, source->vram.handle), EBUSY, "buffers have their old handles and are mapped");
	check_errno(kfd_unmap(kfd, source->vram.handle, gpu), 0, "... on the GPUs that they were mapped on");
	check_errno(kfd_unmap(kfd, source->vram.handle, gpu), EINVAL, "... once");
	check_errno(kfd_map(kfd, source->vram.handle, gpu), 0, "... and can be mapped again");
	check_errno(kfd_free(kfd, source->events.page.handle), EPERM, "the signal page is known");
	another = buffer_new(kfd, device_of(state, gpu)->drm_fd, gpu, PAGE, GTT_RW);
	check_true(another.handle != source->vram.handle, "a new buffer has a new handle");
	q = queue_new(kfd, device_of(state, gpu)->drm_fd, &gpus[0]);
	check_u64(q.sdma.queue_id, source->queue.sdma.queue_id + 1, "a new queue has the next id");
	check_errno(queue_destroy(kfd, source->queue.sdma.queue_id), 0, "the restored queue can be destroyed");
}

static void heir_main(void)
{
	struct test_queue queue = source->queue;
	int kfd;

	reserve_at = arena + ARENA / 2;
	kfd = heir_open(state);
	if (!check_errno(state_restore(kfd, state), 0, "RESTORE"))
		return;
	heir_check_buckets();
	state_close_fds(state);
	heir_fill_memory();
	check_errno(criu_resume(kfd, 999999), ESRCH, "RESUME of no process");
	check_errno(criu_resume(kfd, getppid()), ESRCH, "RESUME of a process without /dev/kfd");
	check_errno(criu_resume(kfd, getpid()), 0, "RESUME");
	check_errno(criu_resume(kfd, getpid()), EINVAL, "RESUME again");
	heir_check_queue(kfd, &queue.sdma);
	heir_check_doorbell(kfd, &queue);
	heir_check_handles(kfd);
	check_errno(state_restore(kfd, state), EINVAL, "RESTORE again");
}

static void run_heir(const char *how, void (*heir)(void))
{
	printf("# %s\n", how);
	check_in_child(heir);
	await_no_queues();
}

/* ---- states with something wrong, in a private copy ---- */

/* In a child: RESTORE of a spoilt copy. */
static int restore_spoilt(void (*spoil)(struct state *s))
{
	struct state *s = malloc(sizeof(*s));
	int kfd;

	*s = *state;
	kfd = heir_open(s);
	spoil(s);
	return state_restore(kfd, s) ? errno : 0;
}

static void check_spoilt(const char *name, void (*spoil)(struct state *s), int want)
{
	int status;
	pid_t pid = fork();

	must(pid, "fork");
	if (!pid)
		_exit(restore_spoilt(spoil));
	waitpid(pid, &status, 0);
	errno = WEXITSTATUS(status);
	check_errno(WIFEXITED(status) && !errno ? 0 : -1, want, "RESTORE with %s", name);
	/* Its SDMA queue is free again a moment after its end. */
	await_no_queues();
}

static void no_objects(struct state *s)
{
	s->info.num_bos = s->info.num_objects = 0;
	s->info.priv_data_size = 8 + 8ull * s->info.num_devices;
}

/* A second queue of another number wants the SDMA queue of the first. */
static void sdma_queue_twice(struct state *s)
{
	uint8_t *objects = state_objects(s);
	struct queue_priv *queue = (struct queue_priv *)objects;
	size_t bytes = sizeof(*queue) + queue->mqd_size;

	memmove(objects + bytes, objects, s->info.priv_data_size - (size_t)(objects - s->priv));
	s->info.priv_data_size += bytes;
	s->info.num_objects++;
	queue->q_id = 5;
}

static void check_after_acquire(void)
{
	int kfd = kfd_file(), drm_fd = render_open(gpus[0].render_minor);

	must(kfd_acquire(kfd, drm_fd, gpus[0].gpu_id), "ACQUIRE_VM");
	state->devices[0].drm_fd = render_open(gpus[0].render_minor);
	check_errno(state_restore(kfd, state), EINVAL, "RESTORE after ACQUIRE_VM");
	check_errno(criu_resume(kfd, getpid()), EINVAL, "RESUME of a process that was not restored");
}

static void nothing(struct state *s)
{
	(void)s;
}

/* Kernels compare the size of one XCC's state with that of all: such queues cannot come back. */
static void check_multi_xcc(void)
{
	check_spoilt("a queue on a GPU with several XCCs", nothing, EINVAL);
}

static void check_heirs(void)
{
	run_heir("on the same GPUs", heir_main);
	if (nr_gpus < 2)
		return;
	swap_gpus(state);
	if (partition_of(&gpus[0]) != partition_of(&gpus[1]))
		check_spoilt("an SDMA queue that comes to another partition", nothing, EINVAL);
	else
		run_heir("on GPUs that changed places", heir_main);
	swap_gpus(state);
}

/* Argument: the release whose rules hold. */
int main(int argc, char **argv)
{
	release = release_of(argc, argv);
	source = shared(sizeof(*source));
	state = shared(sizeof(*state));
	arena = reserve(ARENA);
	gpus_find();
	take_out();
	if (gpus[0].num_xcc > 1 && release >= 618) {
		check_multi_xcc();
		return conformance_end();
	}
	check_spoilt("nothing but GPUs", no_objects, 0);
	check_spoilt("an SDMA queue twice", sdma_queue_twice, EBUSY);
	check_heirs();
	check_in_child(check_after_acquire);
	return conformance_end();
}
