// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues that MES maps (gfx11): what CHECKPOINT gives of one, what its MQD tells, and how it comes back: RESTORE
 * without it, and after RESUME a CREATE_QUEUE that the stopped process is made to call, with its indices at 0. Packets
 * that do nothing bring the new queue to where the old one was. A doorbell is in no other address space: the call
 * ARCH_GET_GS writes it.
 *
 * With a second argument "restore": that RESTORE takes the queue, which needs a driver that is mended
 * (docs/kernel/mes.md).
 */
#include <asm/prctl.h>
#include <sys/user.h>

#include "aql_test.h"
#include "criu_test.h"

#define ARENA		 (1ull << 30) /* save areas are large */
#define BEFORE		 150u	      /* packets; more than twice the ring */
#define AFTER		 200u
#define STEP		 (AQL_PACKETS / 2)
#define GFX11		 110000u
#define DOORBELL_OF(gpu) (3ull << 62 | (uint64_t)(gpu) << 46)

/* In dwords of struct v11_compute_mqd. */
enum { MQD_PQ_RPTR = 138, MQD_EOP_RPTR = 168, MQD_EOP_WPTR, MQD_STACK_OFFSET = 174, MQD_STACK_SIZE, MQD_WAVE_OFFSET };

struct variant {
	const char *name;
	bool svm;     /* the save area is SVM's, which comes back at RESUME */
	bool record;  /* RESTORE gets the queue's record */
	bool barrier; /* the queue stands at a closed barrier, with a dispatch behind it */
};

struct source {
	volatile uint32_t step, go;
	int kfd;
	struct aql_queue queue;
};

static struct source *source, *heir;
static struct state *state;
static uint8_t *contents[MAX_STATE_BOS];
static uint64_t arena, svm_va, svm_size;
static struct variant variant;
static struct queue_priv saved;
static uint32_t saved_mqd[512];

static struct aql_signal *gate(const struct aql_queue *q)
{
	return (struct aql_signal *)at(q, 512);
}

/* ---- the first process ---- */

static void svm_map(int kfd)
{
	struct {
		struct kfd_ioctl_svm_args args;
		struct kfd_ioctl_svm_attribute attrs[2];
	} a = {
		.args = { .start_addr = svm_va, .size = svm_size, .op = KFD_IOCTL_SVM_OP_SET_ATTR, .nattr = 2 },
		.attrs = {
			{ KFD_IOCTL_SVM_ATTR_SET_FLAGS, KFD_IOCTL_SVM_FLAG_HOST_ACCESS | KFD_IOCTL_SVM_FLAG_COHERENT |
				KFD_IOCTL_SVM_FLAG_GPU_EXEC | KFD_IOCTL_SVM_FLAG_GPU_ALWAYS_MAPPED },
			{ KFD_IOCTL_SVM_ATTR_ACCESS, on.gpu->gpu_id },
		},
	};

	must_map(svm_va, svm_size, RW, -1, 0);
	must(ioctl(kfd, NR_SVM(2), &a), "SVM SET_ATTR");
}

static void stand_at_barrier(struct aql_queue *q)
{
	struct aql_barrier barrier = { .header = AQL_BARRIER_AND, .dep = { (uintptr_t)gate(q) } };

	gate(q)->value = 1;
	packet_put(q, &barrier);
	dispatch(q, AQL_KERNEL_FILL, (uintptr_t)words(q, 2), 0x3333, 0, WORDS);
	usleep(20000);
}

static void source_begin(void)
{
	struct aql_queue *q = &source->queue;
	int drm_fd[MAX_STATE_GPUS] = { -1 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	reserve_at = arena;
	on.kfd = source->kfd = kfd_file();
	gpus_acquire(on.kfd, drm_fd);
	on.drm_fd = drm_fd[0];
	*q = aql_unborn();
	if (variant.svm) {
		svm_map(on.kfd);
		q->cwsr.va = svm_va;
	}
	aql_born(q);
}

static void source_main(void)
{
	struct aql_queue *q = &source->queue;

	source_begin();
	for (unsigned int i = 0; i < BEFORE; i++) {
		dispatch(q, AQL_KERNEL_FILL, (uintptr_t)words(q, 0), 0x1111 + i, 0, WORDS);
		if (!signal_becomes(signal_of(q), 0))
			errx(1, "dispatch %u does not end", i);
	}
	if (variant.barrier)
		stand_at_barrier(q);
	announce(&source->step, 1);
	for (;;)
		pause();
}

/* ---- what is saved ---- */

/* The only queue's record. */
static void take_record(void)
{
	const uint8_t *at = state_objects(state);

	memcpy(&saved, at, sizeof(saved));
	if (saved.mqd_size == sizeof(saved_mqd))
		memcpy(saved_mqd, at + sizeof(saved), sizeof(saved_mqd));
	check_u64(saved.object_type, 0, "CHECKPOINT gives the queue");
	check_u64(saved.mqd_size, sizeof(saved_mqd), "... with its MQD");
	check_u64(saved.ctl_stack_size, 0, "... and no control stack");
	check_u64(saved_mqd[MQD_STACK_SIZE], on.gpu->ctl_stack_bytes, "... whose size the MQD has");
}

static void drop_record(void)
{
	uint8_t *at = state_objects(state);
	uint64_t size = sizeof(saved) + saved.mqd_size + saved.ctl_stack_size;

	memmove(at, at + size, state->info.priv_data_size - (at - state->priv) - size);
	state->info.priv_data_size -= size;
	state->info.num_objects--;
}

static void take_out(void)
{
	int fd;
	pid_t pid = child_checkpoint(source_main, &source->step, &source->kfd, state, &fd);

	take_record();
	check_u64(saved_mqd[MQD_STACK_OFFSET], saved_mqd[MQD_STACK_SIZE], "without a wave its stack is empty");
	check_u64(saved_mqd[MQD_WAVE_OFFSET], saved_mqd[MQD_STACK_SIZE], "... and so is the memory for waves");
	check_u64(saved_mqd[MQD_EOP_RPTR] & 0x1fff, saved_mqd[MQD_EOP_WPTR] & 0x1fff,
		  "... and no end of a kernel is under way");
	check_u64(saved_mqd[MQD_PQ_RPTR], BEFORE * 16 % (AQL_PACKETS * 16), "... and its place in the ring is known");
	save_contents(state, contents);
	if (!variant.record)
		drop_record();
	reap(pid, true);
	close(fd);
	usleep(300000);
}

/* ---- the heir ---- */

static void heir_restore(void)
{
	struct aql_queue *q = &heir->queue;

	*q = source->queue;
	on.kfd = heir->kfd = heir_open(state);
	on.drm_fd = device_of(state, on.gpu->gpu_id)->drm_fd;
	if (!check_errno(state_restore(on.kfd, state), 0, "RESTORE"))
		_exit(1);
	for (uint32_t i = 0; i < state->info.num_bos; i++) {
		const struct kfd_criu_bo_bucket *b = &state->bos[i];

		memcpy(must_map(b->addr, b->size, RW, on.drm_fd, b->restored_offset), contents[i], b->size);
	}
	state_close_fds(state);
	if (variant.svm)
		must_map(svm_va, svm_size, RW, -1, 0);
	must_map((uintptr_t)q->doorbell_page, DOORBELLS, RW, on.kfd, DOORBELL_OF(on.gpu->gpu_id));
}

static void heir_at_barrier(struct aql_queue *q)
{
	usleep(50000);
	check_u64(signal_of(q)->value, 1, "the barrier is closed");
	gate(q)->value = 0;
	check_true(signal_becomes(signal_of(q), 0), "... and opens");
	check_u64(words(q, 2)[WORDS - 1], 0x3333, "... to a dispatch that was there before");
}

static void heir_main(void)
{
	struct aql_queue *q = &heir->queue;
	uint32_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	heir_restore();
	announce(&heir->step, 1);
	while (!heir->go)
		usleep(1000);
	q->next = BEFORE + (variant.barrier ? 2 : 0);
	check_u64(aql_read_index(q), BEFORE, "the program sees the read index that it had");
	check_u64(*(volatile uint64_t *)(q->pointers.va + 64), q->next, "... and the write index");
	if (variant.barrier)
		heir_at_barrier(q);
	for (i = 0; i < AFTER; i++) {
		dispatch(q, AQL_KERNEL_FILL, (uintptr_t)words(q, 1), 0x2222 + i, 0, WORDS);
		if (!signal_becomes(signal_of(q), 0))
			break;
	}
	check_u64(i, AFTER, "more dispatches run");
	check_u64(words(q, 1)[WORDS - 1], 0x2222 + AFTER - 1, "... with the right data");
	check_u64(aql_read_index(q), q->next, "... and the read index goes on");
	check_u64(words(q, 0)[WORDS - 1], 0x1111 + BEFORE - 1, "... and what was there before still is");
	_exit(conformance_failed != 0);
}

/* ---- from outside ---- */

static void mem(pid_t pid, uint64_t va, void *p, size_t n, bool write_it)
{
	char path[64];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDWR);
	must(fd, path);
	got = write_it ? pwrite(fd, p, n, va) : pread(fd, p, n, va);
	if (got != (ssize_t)n)
		err(1, "%s of %zu bytes at %#" PRIx64 ": %zd", write_it ? "write" : "read", n, va, got);
	close(fd);
}

static uint64_t word(pid_t pid, uint64_t va)
{
	uint64_t w;

	mem(pid, va, &w, sizeof(w), false);
	return w;
}

static void set_word(pid_t pid, uint64_t va, uint64_t w)
{
	mem(pid, va, &w, sizeof(w), true);
}

/* Makes the stopped process call; its GS base is @gs meanwhile. */
static long call_in(pid_t pid, uint64_t gs, long nr, uint64_t a, uint64_t b, uint64_t c)
{
	static const uint8_t code[8] = { 0x0f, 0x05, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc };
	struct user_regs_struct old, regs;
	uint8_t was[sizeof(code)];
	int status;

	must(ptrace(PTRACE_GETREGS, pid, 0, &old), "GETREGS");
	regs = old;
	regs.rax = nr;
	regs.rdi = a;
	regs.rsi = b;
	regs.rdx = c;
	regs.gs_base = gs;
	regs.orig_rax = -1;
	mem(pid, old.rip, was, sizeof(was), false);
	mem(pid, old.rip, (void *)code, sizeof(code), true);
	must(ptrace(PTRACE_SETREGS, pid, 0, &regs), "SETREGS");
	must(ptrace(PTRACE_CONT, pid, 0, 0), "CONT");
	must(waitpid(pid, &status, __WALL), "waitpid");
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
		errx(1, "no trap: status %#x", status);
	must(ptrace(PTRACE_GETREGS, pid, 0, &regs), "GETREGS");
	mem(pid, old.rip, was, sizeof(was), true);
	must(ptrace(PTRACE_SETREGS, pid, 0, &old), "SETREGS");
	return (long)regs.rax;
}

static long create_in(pid_t pid, int kfd, struct kfd_ioctl_create_queue_args *args)
{
	struct user_regs_struct regs;
	uint8_t was[sizeof(*args)];
	uint64_t at;
	long ret;

	must(ptrace(PTRACE_GETREGS, pid, 0, &regs), "GETREGS");
	at = (regs.rsp - 1024) & ~63ull;
	mem(pid, at, was, sizeof(was), false);
	mem(pid, at, args, sizeof(*args), true);
	ret = call_in(pid, regs.gs_base, SYS_ioctl, kfd, AMDKFD_IOC_CREATE_QUEUE, at);
	mem(pid, at, args, sizeof(*args), false);
	mem(pid, at, was, sizeof(was), true);
	return ret;
}

static void ring_in(pid_t pid, uint64_t value)
{
	check_u64(call_in(pid, value, SYS_arch_prctl, ARCH_GET_GS, (uintptr_t)source->queue.doorbell, 0), 0,
		  "a call of the process rings its doorbell");
}

/* Half a ring at a time: more could look like nothing. */
static bool roll(pid_t pid, uint64_t to)
{
	uint64_t end = now_ms() + 20000, done, next;

	for (done = 0; done < to; done = next) {
		next = done + STEP < to ? done + STEP : to;
		for (uint64_t i = done; i < next; i++) {
			struct aql_barrier nop = { .header = AQL_BARRIER_AND };

			mem(pid, saved.ring + i % AQL_PACKETS * AQL_PACKET_BYTES, &nop, sizeof(nop), true);
		}
		set_word(pid, saved.wptr, next);
		ring_in(pid, next - 1);
		while (word(pid, saved.rptr) != next) {
			if (now_ms() > end)
				return false;
			usleep(100);
		}
	}
	return true;
}

static struct kfd_ioctl_create_queue_args create_args(void)
{
	return (struct kfd_ioctl_create_queue_args){
		.ring_base_address = saved.ring,
		.ring_size = saved.ring_size,
		.write_pointer_address = saved.wptr,
		.read_pointer_address = saved.rptr,
		.gpu_id = saved.gpu_id,
		.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.queue_percentage = saved.percent,
		.queue_priority = saved.priority,
		.eop_buffer_address = saved.eop,
		.eop_buffer_size = saved.eop_size,
		.ctx_save_restore_address = saved.cwsr,
		.ctx_save_restore_size = saved.cwsr_size,
		.ctl_stack_size = saved_mqd[MQD_STACK_SIZE],
	};
}

static bool recreate(pid_t pid, int kfd)
{
	struct kfd_ioctl_create_queue_args args = create_args();
	uint64_t rptr = word(pid, saved.rptr), wptr = word(pid, saved.wptr);
	static uint8_t ring[AQL_PACKETS * AQL_PACKET_BYTES];

	mem(pid, saved.ring, ring, saved.ring_size, false);
	set_word(pid, saved.rptr, 0);
	set_word(pid, saved.wptr, 0);
	args.ctl_stack_size += PAGE;
	check_u64(create_in(pid, kfd, &args), -EINVAL, "CREATE_QUEUE compares the size of the control stack");
	args = create_args();
	if (!check_u64(create_in(pid, kfd, &args), 0, "CREATE_QUEUE in the stopped process, after RESUME"))
		return false;
	check_u64(args.queue_id, saved.q_id, "... gives the queue's number");
	check_u64(args.doorbell_offset, DOORBELL_OF(saved.gpu_id) | saved.doorbell_id * 8, "... and its doorbell");
	if (!check_true(roll(pid, rptr), "packets that do nothing bring it to %" PRIu64, rptr))
		return false;
	mem(pid, saved.ring, ring, saved.ring_size, true);
	set_word(pid, saved.wptr, wptr);
	if (wptr != rptr)
		ring_in(pid, wptr - 1);
	return true;
}

static void bring_back(void)
{
	int kfd, status;
	pid_t pid = fork();

	must(pid, "fork");
	if (!pid)
		heir_main();
	while (!heir->step)
		if (waitpid(pid, &status, WNOHANG) == pid) {
			check_true(false, "%s: the heir comes to be", variant.name);
			return;
		}
	trace(pid);
	kfd = fd_of(pid, heir->kfd);
	if (!check_errno(criu_resume(kfd, pid), 0, "RESUME") || !(variant.record || recreate(pid, heir->kfd))) {
		reap(pid, true);
		return;
	}
	close(kfd);
	heir->go = 1;
	must(ptrace(PTRACE_DETACH, pid, 0, 0), "DETACH");
	waitpid(pid, &status, 0);
	check_u64(status, 0, "%s: the program goes on and ends well", variant.name);
}

/* ---- a kernel that is running ---- */

static void busy_main(void)
{
	struct aql_queue *q = &source->queue;

	source_begin();
	for (unsigned int i = 0; i < WORDS; i++)
		words(q, 0)[i] = 3;
	gather_begin(q);
	announce(&source->step, 1);
	while (!source->go)
		usleep(1000);
	*gather_gate(q) = WORDS;
	_exit(!signal_becomes(signal_of(q), 0) || *gathered(q) != 3 * WORDS);
}

static void stop_a_wave(void)
{
	int fd, status;
	pid_t pid = child_checkpoint(busy_main, &source->step, &source->kfd, state, &fd);

	take_record();
	check_true(saved_mqd[MQD_STACK_OFFSET] < saved_mqd[MQD_STACK_SIZE], "the MQD of a queue with a wave tells so");
	check_true(saved_mqd[MQD_WAVE_OFFSET] > saved_mqd[MQD_STACK_SIZE], "... twice");
	must(criu_simple(fd, KFD_CRIU_OP_UNPAUSE), "UNPAUSE");
	source->go = 1;
	must(ptrace(PTRACE_DETACH, pid, 0, 0), "DETACH");
	waitpid(pid, &status, 0);
	check_u64(status, 0, "the wave goes on from there");
	state_close_fds(state);
	close(fd);
}

static void begin(struct variant next)
{
	variant = next;
	memset(source, 0, sizeof(*source));
	memset(heir, 0, sizeof(*heir));
	printf("# %s\n", next.name);
	fflush(stdout);
}

static void goes_and_comes(struct variant next)
{
	begin(next);
	take_out();
	bring_back();
}

int main(int argc, char **argv)
{
	bool restore = argc > 2 && !strcmp(argv[2], "restore");

	gpus_find();
	on.gpu = &gpus[0];
	if (on.gpu->gfx_version < GFX11) {
		printf("# skip - no GPU whose queues MES maps\n");
		return conformance_end();
	}
	source = shared(sizeof(*source));
	heir = shared(sizeof(*heir));
	state = shared(sizeof(*state));
	arena = reserve(ARENA);
	svm_size = (on.gpu->save_area_bytes + PAGE - 1) & ~(PAGE - 1);
	svm_va = (reserve(svm_size + (4 << 20)) + (2 << 20) - 1) & ~((2ull << 20) - 1);
	if (restore) {
		goes_and_comes((struct variant){ .name = "RESTORE with the queue", .record = true });
		return conformance_end();
	}
	goes_and_comes((struct variant){ .name = "idle" });
	goes_and_comes((struct variant){ .name = "memory for waves in SVM", .svm = true });
	goes_and_comes((struct variant){ .name = "at a barrier", .barrier = true });
	begin((struct variant){ .name = "in a kernel" });
	stop_a_wave();
	return conformance_end();
}
