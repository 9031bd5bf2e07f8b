// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRIU_OP for a process with an AQL queue in the middle of a kernel, with a
 * barrier and a dispatch behind it: what is saved, and an heir in which the queue
 * goes on, or does not where the release has not saved all of its state.
 * With several XCCs, where the release does not restore them, that it cannot.
 */
#include "aql_test.h"
#include "criu_test.h"

#define ARENA (1ull << 30) /* save areas are large */

struct source {
	volatile uint32_t step;
	int kfd;
	struct aql_queue queue;
};

static struct source *source;
static struct state *state;
static uint8_t *contents[MAX_STATE_BOS];
static uint64_t arena;

static unsigned int release;
static bool stackless; /* control stacks are not saved, as since 7.2.12 */

static struct aql_signal *gate(void)
{
	return (struct aql_signal *)at(&source->queue, 512);
}

static void source_main(void)
{
	struct aql_barrier barrier = { .header = AQL_BARRIER_AND };
	struct aql_queue *q = &source->queue;
	int drm_fd[MAX_STATE_GPUS] = { -1 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	reserve_at = arena;
	on.kfd = source->kfd = kfd_file();
	gpus_acquire(on.kfd, drm_fd);
	on.drm_fd = drm_fd[0];
	*q = aql_unborn();
	aql_born(q);
	dispatch(q, AQL_KERNEL_FILL, (uintptr_t)words(q, 0), 0x1111, 0, WORDS);
	if (!signal_becomes(signal_of(q), 0))
		errx(1, "the first dispatch does not end");
	gather_begin(q);
	gate()->value = 1;
	barrier.dep[2] = (uintptr_t)gate();
	packet_put(q, &barrier);
	dispatch(q, AQL_KERNEL_COPY, (uintptr_t)words(q, 1), (uintptr_t)words(q, 0), 0, WORDS);
	usleep(20000);
	announce(&source->step, 1);
	for (;;)
		pause();
}

static void check_saved(void)
{
	uint64_t xccs = saved_xccs(on.gpu, release), stack = 0;
	const struct queue_priv *q = (struct queue_priv *)state_objects(state);

	if (!stackless)
		stack = (uint64_t)on.gpu->ctl_stack_bytes * xccs;
	check_u64(q->object_type, 0, "a queue is saved");
	check_u64(q->type, 0, "... as a compute queue");
	check_u64(q->format, 1, "... of AQL format");
	check_u64(q->eop, source->queue.eop.va, "... with its EOP buffer");
	check_u64(q->cwsr, source->queue.cwsr.va, "... and its save area");
	check_u64(q->cwsr_size, on.gpu->cwsr_bytes, "... and its size");
	check_u64(q->mqd_size, 2048 * xccs, "... with an MQD per XCC, as far as the release saves them");
	check_u64(q->ctl_stack_size, stack, "... %s control stacks", stackless ? "without" : "and");
}

static void take_out(void)
{
	int fd;
	pid_t pid = child_checkpoint(source_main, &source->step, &source->kfd, state, &fd);

	check_saved();
	save_contents(state, contents);
	reap(pid, true);
	close(fd);
	usleep(300000); /* its engine is gone a moment later */
}

static void heir_restore(void)
{
	uint32_t i;

	for (i = 0; i < state->info.num_bos; i++) {
		const struct kfd_criu_bo_bucket *b = &state->bos[i];

		memcpy(must_map(b->addr, b->size, RW, on.drm_fd, b->restored_offset), contents[i], b->size);
	}
	state_close_fds(state);
	must(criu_resume(on.kfd, getpid()), "RESUME");
}

static void heir_goes_on(struct aql_queue *q)
{
	usleep(30000);
	check_u64(aql_read_index(q), 1, "the queue stands in the middle of a kernel");
	check_u64(*gathered(q), 0x1111 * CHUNK, "... which has not gone on yet");
	*gather_gate(q) = WORDS;
	check_true(signal_becomes(signal_of(q), 0), "when it may the kernel goes on to its end");
	check_u64(*gathered(q), 0x1111 * WORDS, "... with what it had before");
	usleep(30000);
	check_u64(aql_read_index(q), 2, "the queue stands at the barrier");
	check_true(words(q, 1)[WORDS - 1] == 0, "... and the dispatch behind it has not run");
	signal_of(q)->value = 1;
	gate()->value = 0;
	check_true(signal_becomes(signal_of(q), 0), "when the barrier opens the dispatch runs");
	check_true(!memcmp(words(q, 0), words(q, 1), WORDS * 4) && words(q, 1)[0] == 0x1111, "... with the right data");
	check_u64(aql_read_index(q), 4, "... and the read index goes on");
}

static void heir_main(void)
{
	int want = on.gpu->num_xcc > 1 && release >= 618 ? EINVAL : 0;
	struct aql_queue *q = &source->queue;

	on.kfd = heir_open(state);
	on.drm_fd = device_of(state, on.gpu->gpu_id)->drm_fd;
	if (!check_errno(state_restore(on.kfd, state), want, "RESTORE with an AQL queue") || want)
		return;
	heir_restore();
	if (!stackless && on.gpu->num_xcc <= saved_xccs(on.gpu, release)) {
		heir_goes_on(q);
		return;
	}
	*gather_gate(q) = WORDS;
	usleep(200000);
	check_u64(aql_read_index(q), 1, "a queue does not go on %s",
		  stackless ? "without its control stack" : "with the state of one of several XCCs");
}

/* Argument: the release whose rules hold. */
int main(int argc, char **argv)
{
	release = release_of(argc, argv);
	gpus_find();
	on.gpu = &gpus[0];
	stackless = is_since_7_2_12(argc, argv);
	source = shared(sizeof(*source));
	state = shared(sizeof(*state));
	arena = reserve(ARENA);
	take_out();
	check_in_child(heir_main);
	return conformance_end();
}
