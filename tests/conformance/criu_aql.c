// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRIU_OP for a process with an AQL queue in the middle of a kernel, with a
 * barrier and a dispatch behind it: what is saved, an heir in which the queue
 * goes on, and heirs in which it does not since a part of its state is missing.
 * On generations whose queues cannot be saved or restored, and with several
 * XCCs where the release does not restore them, that they cannot.
 */
#include <sys/prctl.h>

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

/* All GPUs' address spaces, which CHECKPOINT and RESTORE want; the queue is on the first. */
static struct node gpus[MAX_STATE_GPUS];
static unsigned int nr_gpus;
static unsigned int release;
static bool stackless; /* control stacks are not saved, as in 7.2.12 */
static bool acquires;  /* RESTORE looks at a queue's buffers, as since 6.12.111 */

static struct signal *gate(void)
{
	return (struct signal *)at(&source->queue, 512);
}

static void source_main(void)
{
	struct barrier barrier = { .header = BARRIER_AND };
	struct aql_queue *q = &source->queue;
	unsigned int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	reserve_at = arena;
	on.kfd = source->kfd = kfd_open();
	on.drm_fd = render_open(on.node.render_minor);
	must(kfd_acquire(on.kfd, on.drm_fd, on.node.gpu_id), "ACQUIRE_VM");
	for (i = 1; i < nr_gpus; i++)
		must(kfd_acquire(on.kfd, render_open(gpus[i].render_minor), gpus[i].gpu_id), "ACQUIRE_VM");
	*q = aql_unborn();
	aql_born(q);
	dispatch(q, FILL, (uintptr_t)words(q, 0), 0x1111, 0, WORDS);
	if (!signal_becomes(signal_of(q), 0))
		errx(1, "the first dispatch does not end");
	gather_begin(q);
	gate()->value = 1;
	barrier.dep[2] = (uintptr_t)gate();
	aql_put(q, &barrier);
	dispatch(q, COPY, (uintptr_t)words(q, 1), (uintptr_t)words(q, 0), 0, WORDS);
	usleep(20000);
	announce(&source->step, 1);
	for (;;)
		pause();
}

static void check_saved(void)
{
	uint64_t xccs = saved_xccs(&on.node, release), stack = 0;
	const struct queue_priv *q = (struct queue_priv *)state_objects(state);

	if (on.node.gfx < 100000 && !stackless)
		stack = on.node.ctl_stack_size * xccs;
	check_u64(q->object_type, 0, "a queue is saved");
	check_u64(q->type, 0, "... as a compute queue");
	check_u64(q->format, 1, "... of AQL format");
	check_u64(q->eop, source->queue.eop.va, "... with its EOP buffer");
	check_u64(q->cwsr, source->queue.cwsr.va, "... and its save area");
	check_u64(q->cwsr_size, on.node.cwsr_size, "... and its size");
	check_u64(q->mqd_size, 2048 * xccs, "... with an MQD per XCC, as far as the release saves them");
	check_u64(q->ctl_stack_size, stack, "... %s control stacks", stackless ? "without" : "and");
}

static void save_contents(void)
{
	uint32_t i;

	for (i = 0; i < state->info.num_bos; i++) {
		const struct bo_bucket *b = &state->bos[i];
		uint8_t *p;

		p = mmap(NULL, b->size, PROT_READ, MAP_SHARED, b->dmabuf_fd, 0);
		if (p == MAP_FAILED)
			err(1, "mmap a dma-buf");
		contents[i] = shared(b->size);
		memcpy(contents[i], p, b->size);
		munmap(p, b->size);
	}
	state_close_fds(state);
}

/* True when there is a state to go on with. */
static bool take_out(void)
{
	pid_t pid = fork();
	bool saved;
	int fd;

	must(pid, "fork");
	if (!pid)
		source_main();
	await(&source->step, 1);
	trace(pid);
	fd = fd_of(pid, source->kfd);
	must(state_info(fd, state), "PROCESS_INFO");
	if (state->info.priv_size > sizeof(state->priv))
		errx(1, "the private data is too large for this program");
	saved = !state_checkpoint(fd, state);
	check_errno(saved ? 0 : -1, on.node.gfx >= 120000 ? EOPNOTSUPP : 0, "CHECKPOINT with an AQL queue");
	if (saved) {
		check_saved();
		save_contents();
	}
	reap(pid, true);
	close(fd);
	usleep(300000); /* its engine is gone a moment later */
	return saved;
}

/* What is done to an heir's state before its queue is set going. */
enum spoil { WHOLE, NO_SAVE_AREA, OTHER_STACK, NO_BUFFER };

static void heir_restore(enum spoil spoil)
{
	struct queue_priv *saved = (struct queue_priv *)state_objects(state);
	uint32_t i;

	for (i = 0; i < state->info.num_bos; i++) {
		const struct bo_bucket *b = &state->bos[i];
		void *p = mmap((void *)b->addr, b->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, on.drm_fd,
			       b->restored_offset);

		if (p == MAP_FAILED)
			err(1, "mmap restored buffer %u", i);
		if (!(spoil == NO_SAVE_AREA && b->addr == saved->cwsr))
			memcpy(p, contents[i], b->size);
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

static void heir_main(enum spoil spoil)
{
	bool refused = on.node.gfx >= 110000 || (on.node.num_xcc > 1 && release >= 618) ||
		       (acquires && (on.node.gfx >= 100000 || spoil == NO_BUFFER));
	int want = refused ? EINVAL : 0;
	struct queue_priv *saved = (struct queue_priv *)state_objects(state);
	struct aql_queue *q = &source->queue;
	uint32_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	on.kfd = kfd_open();
	for (i = 0; i < nr_gpus; i++)
		state->devices[i].drm_fd = render_open(gpus[i].render_minor);
	on.drm_fd = state->devices[0].drm_fd;
	if (spoil == OTHER_STACK)
		((uint8_t *)(saved + 1))[saved->mqd_size + saved->ctl_stack_size - 1] ^= 1;
	/* As where SVM is, which comes back at RESUME. */
	if (spoil == NO_BUFFER)
		saved->cwsr = reserve(PAGE);
	if (!check_errno(state_restore(on.kfd, state), want, "RESTORE with an AQL queue%s",
			 spoil == NO_BUFFER ? " whose save area is no buffer" : "") ||
	    want || spoil == NO_BUFFER)
		return;
	heir_restore(spoil);
	if (spoil == WHOLE && !stackless && on.node.num_xcc <= saved_xccs(&on.node, release)) {
		heir_goes_on(q);
		return;
	}
	*gather_gate(q) = WORDS;
	usleep(200000);
	check_u64(aql_read_index(q), 1, "a queue does not go on %s",
		  spoil == NO_SAVE_AREA	 ? "without its save area"
		  : spoil == OTHER_STACK ? "with another control stack"
		  : stackless		 ? "without its control stack"
					 : "with the state of one of several XCCs");
}

static void run_heir(enum spoil spoil)
{
	struct queue_priv *saved = (struct queue_priv *)state_objects(state);
	uint8_t *last = (uint8_t *)(saved + 1) + saved->mqd_size + saved->ctl_stack_size - 1, before = *last;
	uint64_t cwsr = saved->cwsr;
	pid_t pid = fork();

	must(pid, "fork");
	if (!pid) {
		conformance_passed = conformance_failed = 0;
		heir_main(spoil);
		source->step = conformance_passed;
		_exit(conformance_failed);
	}
	source->step = 0;
	reap(pid, false);
	conformance_passed += source->step;
	*last = before;
	saved->cwsr = cwsr;
	usleep(300000); /* its engine is gone a moment later */
}

/* Argument: the release whose rules hold. */
int main(int argc, char **argv)
{
	unsigned int i;

	release = release_of(argc, argv);
	acquires = is_since(argc, argv, "6.12.111");
	nr_gpus = count_gpus(NULL);
	if (nr_gpus > MAX_STATE_GPUS)
		errx(1, "more than %d GPUs", MAX_STATE_GPUS);
	for (i = 0; i < nr_gpus; i++)
		gpus[i] = node_gpu(i);
	on.node = gpus[0];
	stackless = is_since(argc, argv, "7.2.12") && on.node.gfx < 100000;
	source = shared(sizeof(*source));
	state = shared(sizeof(*state));
	arena = reserve(ARENA);
	if (!take_out())
		return conformance_end();
	run_heir(WHOLE);
	if (on.node.gfx < 110000 && on.node.num_xcc == 1) {
		if (!acquires || on.node.gfx < 100000)
			run_heir(NO_SAVE_AREA);
		if (on.node.gfx < 100000 && !stackless)
			run_heir(OTHER_STACK);
		run_heir(NO_BUFFER);
	}
	return conformance_end();
}
