// SPDX-License-Identifier: GPL-2.0-only
/*
 * Eight processes that allocate, map, copy, wait and end, are killed at any
 * moment, or are traced, paused and killed like that: kfd_stress [SECONDS]. Their
 * data has to be right as long as they live, and nothing may be left of them.
 *
 * A process is left alone until it has its first SVM range. Linux, 7.2.12 at least, follows a NULL pointer when a signal
 * comes while that is made: the first notifier of a process cannot be had then (mm_take_all_locks()), and
 * svm_range_add_notifier_locked() does not ask whether it was.
 */
#include <sys/prctl.h>

#include "criu_test.h"

#define PROCESSES   8
#define MAX_BUFFERS 12

static struct node gpus[MAX_STATE_GPUS];
static unsigned int nr_gpus;
static struct stress {
	volatile uint64_t rounds, copies;
	volatile uint32_t wrong;
	volatile int kfd[PROCESSES]; /* of a process that may be stopped and killed, or -1 */
} * stress;

static uint32_t random_state;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % n;
}

/* ---- a process' work ---- */

struct work {
	int kfd, drm_fd;
	uint32_t gpu_id;
	struct buffer buffers[MAX_BUFFERS];
	unsigned int nr_buffers;
	struct sdma_queue queue;
	bool has_queue;
};

static void work_buffer(struct work *w)
{
	static const uint32_t kinds[] = { VRAM_RW, GTT_RW, VRAM_RW | MEM_EXEC };

	if (w->nr_buffers == MAX_BUFFERS || (w->nr_buffers > 2 && !random_below(3))) {
		struct buffer *b = &w->buffers[random_below(w->nr_buffers)];

		buffer_free(w->kfd, b);
		*b = w->buffers[--w->nr_buffers];
		return;
	}
	w->buffers[w->nr_buffers++] =
		buffer_new(w->kfd, w->drm_fd, w->gpu_id, PAGE * (1 + random_below(40)), kinds[random_below(3)]);
}

static void work_copy(struct work *w)
{
	struct buffer *a, *b;
	uint64_t n, at;

	if (w->nr_buffers < 2)
		return;
	a = &w->buffers[0];
	b = &w->buffers[1 + random_below(w->nr_buffers - 1)];
	n = 1 + random_below(a->size < b->size ? a->size : b->size);
	at = random_below(a->size - n + 1);
	memset((void *)a->va, 1 + random_below(255), a->size);
	memset((void *)b->va, 0, b->size);
	sdma_copy(&w->queue, b->va, a->va + at, n);
	sdma_ring_doorbell(&w->queue);
	if (!sdma_drain(&w->queue, 20000) || memcmp((void *)b->va, (void *)(a->va + at), n) ||
	    (n < b->size && ((uint8_t *)b->va)[n]))
		__atomic_fetch_add(&stress->wrong, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&stress->copies, 1, __ATOMIC_RELAXED);
}

static void work_queue(struct work *w)
{
	struct create_queue args;

	if (w->has_queue) {
		sdma_free(&w->queue, w->kfd);
		w->has_queue = false;
		return;
	}
	memset(&w->queue, 0, sizeof(w->queue));
	w->queue.gpu_id = w->gpu_id;
	w->queue.ring = buffer_new(w->kfd, w->drm_fd, w->gpu_id, RING, GTT_RW);
	w->queue.pointers = buffer_new(w->kfd, w->drm_fd, w->gpu_id, PAGE, GTT_RW);
	args = sdma_args(&w->queue);
	must(ioctl(w->kfd, NR_CREATE_QUEUE, &args), "CREATE_QUEUE");
	w->queue.queue_id = args.queue_id;
	w->queue.doorbell_offset = args.doorbell_offset;
	sdma_map_doorbell(&w->queue, w->kfd, args.doorbell_offset);
	w->has_queue = true;
}

static void work_event(struct work *w)
{
	struct kfd_ioctl_create_event_args create = { .event_type = 8, .auto_reset = 1 };
	struct event_data data = { 0 };
	struct kfd_ioctl_wait_events_args wait = {
		.events_ptr = (uintptr_t)&data,
		.num_events = 1,
		.timeout = random_below(5),
	};

	must(ioctl(w->kfd, NR_CREATE_EVENT, &create), "CREATE_EVENT");
	data.event_id = create.event_id;
	must(ioctl(w->kfd, NR_WAIT_EVENTS, &wait), "WAIT_EVENTS");
	if (random_below(2))
		must(ioctl(w->kfd, NR_DESTROY_EVENT, &create.event_id), "DESTROY_EVENT");
}

static uint8_t *svm_new(struct work *w, uint64_t size)
{
	struct {
		struct kfd_ioctl_svm_args args;
		struct kfd_ioctl_svm_attribute attrs[1];
	} svm;
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(&svm, 0, sizeof(svm));
	svm.args = (struct kfd_ioctl_svm_args){ .start_addr = (uintptr_t)p, .size = size, .nattr = 1 };
	svm.attrs[0] = (struct kfd_ioctl_svm_attribute){ .type = KFD_IOCTL_SVM_ATTR_ACCESS, .value = w->gpu_id };
	must(ioctl(w->kfd, NR_SVM(1), &svm), "SVM");
	return p;
}

static void work_svm(struct work *w)
{
	uint8_t *p = svm_new(w, 16 * PAGE);

	if (w->has_queue && w->nr_buffers) {
		memset((void *)w->buffers[0].va, 7, PAGE);
		sdma_copy(&w->queue, (uintptr_t)p + 5 * PAGE, w->buffers[0].va, PAGE);
		sdma_ring_doorbell(&w->queue);
		if (!sdma_drain(&w->queue, 20000) || p[5 * PAGE] != 7 || p[6 * PAGE])
			__atomic_fetch_add(&stress->wrong, 1, __ATOMIC_RELAXED);
	}
	munmap(p + random_below(8) * PAGE, 4 * PAGE);
	munmap(p, 16 * PAGE);
}

static void work_main(unsigned int slot, uint32_t seed)
{
	unsigned int gpu = seed % nr_gpus, rounds, i;
	struct work w = { .gpu_id = gpus[gpu].gpu_id };
	struct buffer shared;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	random_state = seed;
	w.kfd = kfd_open();
	for (i = 0; i < nr_gpus; i++) {
		int fd = render_open(gpus[i].render_minor);

		must(kfd_acquire(w.kfd, fd, gpus[i].gpu_id), "ACQUIRE_VM");
		if (i == gpu)
			w.drm_fd = fd;
	}
	/* Mapped by another GPU, too, until the process ends: whichever address space goes first. */
	i = (gpu + 1) % nr_gpus;
	shared = buffer_new(w.kfd, w.drm_fd, w.gpu_id, PAGE, GTT_RW);
	must(kfd_map(w.kfd, shared.handle, gpus[i].gpu_id), "MAP_MEMORY_TO_GPU");
	svm_new(&w, PAGE);
	stress->kfd[slot] = w.kfd;
	for (rounds = 20 + random_below(200); rounds; rounds--) {
		switch (random_below(8)) {
		case 0:
			work_queue(&w);
			break;
		case 1:
			work_event(&w);
			break;
		case 2:
			work_svm(&w);
			break;
		case 3:
		case 4:
			work_buffer(&w);
			break;
		default:
			if (w.has_queue)
				work_copy(&w);
		}
		__atomic_fetch_add(&stress->rounds, 1, __ATOMIC_RELAXED);
	}
	_exit(0);
}

/* ---- what happens to it ---- */

static unsigned int nr_ended, nr_killed, nr_paused, nr_failed;

static pid_t start(unsigned int slot)
{
	pid_t pid;

	stress->kfd[slot] = -1;
	pid = fork();
	must(pid, "fork");
	if (!pid)
		work_main(slot, random_state ^ (slot << 20) ^ getpid());
	random_below(2);
	return pid;
}

/* Stops it under this process' trace; false when it had ended, or ends, before. */
static bool stop_it(pid_t pid)
{
	siginfo_t info;
	int status;

	if (ptrace(PTRACE_SEIZE, pid, 0, 0) || ptrace(PTRACE_INTERRUPT, pid, 0, 0))
		return false;
	if (waitid(P_PID, pid, &info, WEXITED | WSTOPPED | WNOWAIT) || info.si_code == CLD_EXITED ||
	    info.si_code == CLD_KILLED)
		return false;
	return waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status);
}

/* Takes the process' state out in the middle of whatever it does. */
static void pause_it(pid_t pid, unsigned int slot, struct state *state)
{
	int kfd = stress->kfd[slot], fd, pidfd;

	if (kfd < 0 || !stop_it(pid))
		return;
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	fd = syscall(SYS_pidfd_getfd, pidfd, kfd, 0);
	close(pidfd);
	if (fd < 0)
		errx(1, "the process' file cannot be had");
	if (state_info(fd, state) || state->info.num_bos > MAX_STATE_BOS || state_checkpoint(fd, state))
		nr_failed++;
	else
		state_close_fds(state);
	nr_paused++;
	if (random_below(2))
		criu_simple(fd, OP_UNPAUSE);
	if (random_below(2))
		kill(pid, SIGKILL);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	close(fd);
	kill(pid, SIGKILL);
}

static void run(unsigned int seconds)
{
	struct state *state = shared(sizeof(*state));
	uint64_t end = now_ms() + seconds * 1000ull;
	pid_t pids[PROCESSES];
	unsigned int i;
	int status;

	for (i = 0; i < PROCESSES; i++)
		pids[i] = start(i);
	while (now_ms() < end) {
		usleep(10000 + random_below(30000));
		i = random_below(PROCESSES);
		switch (random_below(6)) {
		case 0:
			if (stress->kfd[i] >= 0)
				kill(pids[i], SIGKILL);
			break;
		case 1:
			pause_it(pids[i], i, state);
			break;
		}
		for (i = 0; i < PROCESSES; i++) {
			if (waitpid(pids[i], &status, WNOHANG) != pids[i] || WIFSTOPPED(status))
				continue;
			nr_killed += WIFSIGNALED(status);
			nr_ended += WIFEXITED(status) && !WEXITSTATUS(status);
			nr_failed += WIFEXITED(status) && WEXITSTATUS(status);
			pids[i] = start(i);
		}
	}
	for (i = 0; i < PROCESSES; i++) {
		while (stress->kfd[i] < 0 && waitpid(pids[i], &status, WNOHANG) != pids[i])
			usleep(10000);
		kill(pids[i], SIGKILL);
		waitpid(pids[i], &status, 0);
	}
}

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 1 ? strtoul(argv[1], NULL, 0) : 15, i;

	nr_gpus = count_gpus(NULL);
	if (nr_gpus > MAX_STATE_GPUS)
		nr_gpus = MAX_STATE_GPUS;
	for (i = 0; i < nr_gpus; i++)
		gpus[i] = node_gpu(i);
	stress = shared(sizeof(*stress));
	random_state = getpid();
	run(seconds);
	printf("# %" PRIu64 " rounds, %" PRIu64 " copies; processes: %u ended, %u killed, %u paused\n", stress->rounds,
	       stress->copies, nr_ended, nr_killed, nr_paused);
	check_true(stress->copies > 10, "copies were made");
	check_true(nr_killed > 2 && nr_paused > 0, "processes were killed and paused");
	check_u64(stress->wrong, 0, "all copied data was right");
	check_u64(nr_failed, 0, "no process and no operation failed");
	check_true(nothing_left(10000), "nothing is left of them");
	return conformance_end();
}
