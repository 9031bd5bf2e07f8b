// SPDX-License-Identifier: GPL-2.0-only
/*
 * An AQL queue that is always busy: behind what the CPU lets go in the next step stands a dispatch of the simulator's
 * kernel that adds two arrays. The sum goes from one of two places to the other, and each dispatch counts a signal
 * down: one that is lost or done twice shows.
 *
 * "aql" is held up by a barrier, so that no kernel runs; "wave" by a kernel that has added up a part of an array, and
 * so is stopped in the middle whenever the queue is; "code" by a kernel of real code, which only asicsim executes;
 * "assert" by one whose assertion fails when it is let go, which only the process' own trap handler tells.
 *
 * Others are not: before a step of "nap" runs a kernel that ends by itself after a while, and "idle" has only the sum. "old" is
 * the same after a million packets. "packets" has no kernel at all, and so runs on any GPU: its steps only count down. "masked" is the same, on some CUs.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "aql.h"
#include "gpujob_busy.h"
#include "gpujob_extra.h"
#include "report.h"

#define GATES	     AQL_PACKETS
#define WORDS	     1024u /* one page */
#define GATHER_WORDS (4 * WORDS)
#define BUSIES	     2u /* one of them has ended */
#define FAILINGS     2u
#define TRAP_ASSERT  2u
#define HANDLER_AT   256u /* in the code */
#define TOLD_AT      24u  /* in the save area, as kfd_context_save_area_header of <linux/kfd_ioctl.h> has it since Linux 6.5 */
#define TOLD_ABORT   1u   /* EC_QUEUE_WAVE_ABORT */
#define COUNT_DOWN_FROM (1ll << 40)
#define NAP_NS		500000000ull
#define OLD_PACKETS	1000000u

/* What a kernel that waits gets, gives, and waits for. */
struct gather {
	uint64_t arguments[4], sum;
	uint32_t gate, pad;
};

/* A kernel whose assertion fails. */
struct failing {
	uint64_t arguments[2];
	uint32_t gate, went_on;
};

struct memory {
	struct aql_kernel add, gather, nap;
	uint64_t nap_arguments[4];
	uint64_t arguments[2][4]; /* from A to B and back */
	struct aql_signal done, gates[GATES];
	struct gather gathers[GATES];
	struct busy_code code;
	struct busy busies[BUSIES];
	struct failing failings[FAILINGS];
	uint32_t trapped; /* the trap handler's memory */
	uint64_t told;	  /* exceptions that the KFD tells of: a bit each */
	uint32_t ones[GATHER_WORDS] __attribute__((aligned(4096))), sums[2][WORDS];
};

static struct kfd_bo ring, pointers, eop, memory_bo;
static void *save_area;
static uint64_t save_area_bytes;
static uint32_t queue_id;
static volatile uint64_t *doorbell;
static uint64_t steps; /* steps: dispatches submitted; all but the last are let go */

static struct memory *memory(void)
{
	return memory_bo.cpu;
}

static uint64_t va_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static struct aql_runtime_queue *head(void)
{
	return pointers.cpu;
}

static void packet_put(const void *packet)
{
	aql_put(ring.cpu, &head()->write_index, doorbell, head()->write_index, packet);
}

static void dispatch_put(const void *kernel, uint16_t group, uint32_t words, const void *arguments,
			 const struct aql_signal *completion)
{
	struct aql_dispatch dispatch = {
		.header = AQL_DISPATCH,
		.setup = 1,
		.workgroup = { group, 1, 1 },
		.grid = { words, 1, 1 },
		.group_size = BUSY_LDS_BYTES,
		.kernel_object = va_of(kernel),
		.kernarg = va_of(arguments),
		.completion = completion ? va_of(completion) : 0,
	};

	packet_put(&dispatch);
}

/* ---- what holds up the sum of a step: a packet before it, until it is let go, and what it has done then ---- */

static const struct holder {
	const char *code; /* that is loaded, NULL: none */
	void (*put)(uint64_t step);
	void (*let_go)(uint64_t step); /* NULL: it ends by itself, and so do all steps */
	int (*check)(uint64_t step, uint32_t gpu_id);
} *holder;

static void nothing_put(uint64_t step)
{
	(void)step;
}

static void nap_put(uint64_t step)
{
	(void)step;
	dispatch_put(&memory()->nap, 64, 1, memory()->nap_arguments, NULL);
}

static int nothing_check(uint64_t step, uint32_t gpu_id)
{
	(void)step;
	(void)gpu_id;
	return 0;
}

static void barrier_put(uint64_t step)
{
	struct aql_signal *gate = &memory()->gates[step % GATES];
	struct aql_barrier barrier = { .header = AQL_BARRIER_AND, .dep = { va_of(gate) } };

	gate->value = 1;
	packet_put(&barrier);
}

static void barrier_let_go(uint64_t step)
{
	__atomic_store_n(&memory()->gates[step % GATES].value, 0, __ATOMIC_RELEASE);
}

static void gather_put(uint64_t step)
{
	struct gather *gather = &memory()->gathers[step % GATES];

	gather->arguments[0] = va_of(&gather->sum);
	gather->arguments[1] = va_of(memory()->ones);
	gather->arguments[2] = va_of(&gather->gate);
	gather->sum = 0;
	gather->gate = 1;
	dispatch_put(&memory()->gather, 64, GATHER_WORDS, gather->arguments, NULL);
}

static void gather_let_go(uint64_t step)
{
	__atomic_store_n(&memory()->gathers[step % GATES].gate, GATHER_WORDS, __ATOMIC_RELEASE);
}

static int gather_check(uint64_t step, uint32_t gpu_id)
{
	uint64_t sum = memory()->gathers[step % GATES].sum;

	if (sum == GATHER_WORDS)
		return 0;
	return report(EILSEQ, "gpu %#x: AQL queue: a kernel that was held up adds up %" PRIu64 " of %u words", gpu_id, sum,
		      GATHER_WORDS);
}

static void code_put(uint64_t step)
{
	struct busy *busy = &memory()->busies[step % BUSIES];

	busy_start(busy, step);
	dispatch_put(&memory()->code, BUSY_GROUP, BUSY_ITEMS, busy->arguments, NULL);
}

static void code_let_go(uint64_t step)
{
	__atomic_store_n(&memory()->busies[step % BUSIES].gate, 1, __ATOMIC_RELEASE);
}

static int code_check(uint64_t step, uint32_t gpu_id)
{
	return busy_check(&memory()->busies[step % BUSIES], step, gpu_id);
}

static void failing_put(uint64_t step)
{
	struct failing *failing = &memory()->failings[step % FAILINGS];

	*failing = (struct failing){ .arguments = { va_of(&failing->gate), va_of(&failing->went_on) } };
	dispatch_put(&memory()->code, BUSY_GROUP, BUSY_ITEMS, failing->arguments, NULL);
}

static void failing_let_go(uint64_t step)
{
	memory()->trapped = 0;
	memory()->told = 0;
	__atomic_store_n(&memory()->failings[step % FAILINGS].gate, 1, __ATOMIC_RELEASE);
}

/* The KFD passes on what the handler sends it, a little later. */
static uint64_t told_wait(void)
{
	uint64_t told = 0;

	for (unsigned int naps = 0; !told && naps < 10000; naps++) {
		told = __atomic_load_n(&memory()->told, __ATOMIC_ACQUIRE);
		usleep(told ? 0 : 1000);
	}
	return told;
}

/* The handler and the KFD have told, and no wave has gone on. */
static int failing_check(uint64_t step, uint32_t gpu_id)
{
	bool went_on = memory()->failings[step % FAILINGS].went_on;
	uint64_t told = told_wait();

	if (memory()->trapped == TRAP_ASSERT && told == TOLD_ABORT && !went_on)
		return 0;
	return report(EILSEQ, "gpu %#x: step %" PRIu64 ": an assertion failed, and the trap handler tells of trap %u, the KFD "
		      "of exceptions %#" PRIx64 "%s", gpu_id, step, memory()->trapped, told,
		      went_on ? ", while the kernel went on" : "");
}

static const struct holder by_barrier = { NULL, barrier_put, barrier_let_go, nothing_check };
static const struct holder by_nap = { NULL, nap_put, NULL, nothing_check };
static const struct holder by_nothing = { NULL, nothing_put, NULL, nothing_check };
static const struct holder by_packets = { NULL, nothing_put, NULL, nothing_check }; /* and without a sum */
static const struct holder by_gather = { NULL, gather_put, gather_let_go, gather_check };
static const struct holder by_code = { "busy", code_put, code_let_go, code_check };
static const struct holder by_assert = { "failing", failing_put, failing_let_go, failing_check };

/* ---- steps ---- */

static void step_submit(void)
{
	const struct aql_barrier count_down = { .header = AQL_BARRIER_AND | AQL_IN_ORDER, .completion = va_of(&memory()->done) };

	holder->put(steps);
	if (holder == &by_packets)
		packet_put(&count_down);
	else
		dispatch_put(&memory()->add, 64, WORDS, memory()->arguments[steps % 2], &memory()->done);
	steps++;
}

static uint64_t steps_done(void)
{
	return (uint64_t)(COUNT_DOWN_FROM - __atomic_load_n(&memory()->done.value, __ATOMIC_ACQUIRE));
}

/* Waits for the steps that were let go: all, or all but the last. */
static int steps_wait(const struct job_gpu *gpu)
{
	uint64_t wanted = holder->let_go ? steps - 1 : steps;

	for (unsigned int naps = 0; steps_done() != wanted; naps++) {
		if (naps == 30000 || steps_done() > wanted)
			return report(EILSEQ, "gpu %#x: AQL queue: %" PRIu64 " dispatches let go, %" PRIu64 " done",
				      gpu->gpu->gpu_id, wanted, steps_done());
		usleep(1000);
	}
	return 0;
}

/* Of the step that was done last, before its place is used again. */
static int last_check(const struct job_gpu *gpu)
{
	return steps_done() ? holder->check(steps_done() - 1, gpu->gpu->gpu_id) : 0;
}

/* ---- the queue ---- */

static int queue_create(struct job_gpu *gpu)
{
	struct kfd_ioctl_create_queue_args create = {
		.ring_base_address = ring.va,
		.ring_size = AQL_PACKETS * AQL_PACKET_BYTES,
		.write_pointer_address = va_of((void *)&head()->write_index),
		.read_pointer_address = va_of((void *)&head()->read_index),
		.gpu_id = gpu->gpu->gpu_id,
		.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.queue_percentage = KFD_MAX_QUEUE_PERCENTAGE,
		.queue_priority = KFD_MAX_QUEUE_PRIORITY / 2,
		.eop_buffer_address = eop.va,
		.eop_buffer_size = KFD_PAGE_SIZE,
		.ctx_save_restore_address = va_of(save_area),
		.ctx_save_restore_size = gpu->gpu->cwsr_bytes,
		.ctl_stack_size = gpu->gpu->ctl_stack_bytes,
	};
	int err = kfd_ioctl(gpu->kfd->fd, AMDKFD_IOC_CREATE_QUEUE, &create);

	if (err)
		return report(-err, "gpu %#x: CREATE_QUEUE (AQL): %s", gpu->gpu->gpu_id, strerror(-err));
	queue_id = create.queue_id;
	err = kfd_doorbells_map(gpu->kfd, gpu->gpu, create.doorbell_offset);
	if (err)
		return err;
	doorbell = gpu->gpu->doorbell_page + create.doorbell_offset % KFD_DOORBELL_BYTES / sizeof(uint64_t);
	return 0;
}

/* As ROCr does: memory of the CPU that the GPU may always use. At @at, if that is not NULL. */
static int save_area_map(struct job_gpu *gpu, void *at, uint64_t bytes)
{
	struct kfd_ioctl_svm_attribute attrs[] = {
		{ KFD_IOCTL_SVM_ATTR_SET_FLAGS, KFD_IOCTL_SVM_FLAG_HOST_ACCESS | KFD_IOCTL_SVM_FLAG_GPU_EXEC | 0x40 },
		{ KFD_IOCTL_SVM_ATTR_ACCESS, gpu->gpu->gpu_id },
	};

	save_area = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
	if (save_area == MAP_FAILED)
		return report(errno, "mmap of %" PRIu64 " bytes: %m", bytes);
	return job_svm_attributes(gpu, KFD_IOCTL_SVM_OP_SET_ATTR, save_area, bytes, attrs, 2);
}

static int save_area_setup(struct job_gpu *gpu)
{
	save_area_bytes = (gpu->gpu->save_area_bytes + KFD_PAGE_SIZE - 1) & ~(uint64_t)(KFD_PAGE_SIZE - 1);
	return save_area_map(gpu, NULL, save_area_bytes);
}

/* Where it was, that of another queue can be, and then a buffer. */
static int save_area_reuse(struct job_gpu *gpu)
{
	struct kfd_bo bo = { 0 };
	int err;

	munmap(save_area, save_area_bytes);
	err = save_area_map(gpu, save_area, KFD_PAGE_SIZE);
	if (err)
		return err;
	munmap(save_area, KFD_PAGE_SIZE);
	if (mmap(save_area, KFD_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != save_area)
		return report(errno, "mmap of a page: %m");
	err = kfd_bo_adopt(gpu->kfd, gpu->gpu, save_area, KFD_PAGE_SIZE, &bo);
	return err ? err : kfd_bo_free(gpu->kfd, &bo);
}

static void memory_fill(void)
{
	struct memory *m = memory();

	memset(m, 0, sizeof(*m));
	m->add = (struct aql_kernel){ .magic = AQL_KERNEL_MAGIC, .kernel = AQL_KERNEL_ADD };
	m->gather = (struct aql_kernel){ .magic = AQL_KERNEL_MAGIC, .kernel = AQL_KERNEL_GATHER };
	m->nap = (struct aql_kernel){ .magic = AQL_KERNEL_MAGIC, .kernel = AQL_KERNEL_NAP };
	m->nap_arguments[0] = NAP_NS;
	m->done = (struct aql_signal){ .kind = 1, .value = COUNT_DOWN_FROM };
	for (unsigned int i = 0; i < GATHER_WORDS; i++)
		m->ones[i] = 1;
	for (unsigned int i = 0; i < 2; i++) {
		m->arguments[i][0] = va_of(m->sums[!i]);
		m->arguments[i][1] = va_of(m->sums[i]);
		m->arguments[i][2] = va_of(m->ones);
	}
	aql_ring_init(ring.cpu);
	memset(pointers.cpu, 0, KFD_PAGE_SIZE);
	head()->ring = ring.va;
	head()->size = AQL_PACKETS;
	head()->read_index_at = offsetof(struct aql_runtime_queue, read_index);
}

static int handler_set(const struct job_gpu *gpu)
{
	struct kfd_ioctl_set_trap_handler_args args = {
		.tba_addr = va_of(&memory()->code) + HANDLER_AT,
		.tma_addr = va_of(&memory()->trapped),
		.gpu_id = gpu->gpu->gpu_id,
	};
	int err = kfd_ioctl(gpu->kfd->fd, AMDKFD_IOC_SET_TRAP_HANDLER, &args);

	return err ? report(-err, "trap handler: %s", strerror(-err)) : 0;
}

static int queue_setup(struct job_gpu *gpu, const struct holder *by)
{
	int err = ring.cpu ? report(EBUSY, "aql, wave, code and assert are one queue: ask for one of them") : 0;

	err = err ? err : kfd_bo_alloc(gpu->kfd, gpu->gpu, KFD_MEMORY_GTT, AQL_PACKETS * AQL_PACKET_BYTES, &ring);
	err = err ? err : kfd_bo_alloc(gpu->kfd, gpu->gpu, KFD_MEMORY_GTT, KFD_PAGE_SIZE, &pointers);
	err = err ? err : kfd_bo_alloc(gpu->kfd, gpu->gpu, KFD_MEMORY_VRAM, KFD_PAGE_SIZE, &eop);
	err = err ? err : kfd_bo_alloc(gpu->kfd, gpu->gpu, KFD_MEMORY_GTT, sizeof(struct memory), &memory_bo);
	err = err ? err : save_area_setup(gpu);
	if (err)
		return err;
	memory_fill();
	holder = by;
	err = by->code ? busy_code_init(&memory()->code, by->code) : 0;
	if (by == &by_assert) {
		const uint64_t told_va = va_of(&memory()->told);

		memcpy((uint8_t *)save_area + TOLD_AT, &told_va, sizeof(told_va));
		err = err ? err : handler_set(gpu);
	}
	err = err ? err : queue_create(gpu);
	if (!err)
		step_submit();
	return err;
}

static int queue_end(const struct job_gpu *gpu, uint32_t id)
{
	struct kfd_ioctl_destroy_queue_args destroy = { .queue_id = id };
	int err = kfd_ioctl(gpu->kfd->fd, AMDKFD_IOC_DESTROY_QUEUE, &destroy);

	return err ? report(-err, "gpu %#x: DESTROY_QUEUE (AQL): %s", gpu->gpu->gpu_id, strerror(-err)) : 0;
}

/* Of two queues in the same memory, the first one ends: its number and its doorbell are free. */
static int second_setup(struct job_gpu *gpu, const struct holder *by)
{
	int err = queue_setup(gpu, by);
	uint32_t first = queue_id;

	err = err ? err : steps_wait(gpu);
	head()->write_index = head()->read_index = 0;
	err = err ? err : queue_create(gpu);
	return err ? err : queue_end(gpu, first);
}

static int nap_setup(struct job_gpu *gpu)
{
	return queue_setup(gpu, &by_nap);
}

static void packets_run(unsigned int nr)
{
	static const struct aql_barrier nothing = { .header = AQL_BARRIER_AND };

	for (unsigned int i = 0; i < nr; i++) {
		while (head()->write_index - head()->read_index >= AQL_PACKETS)
			usleep(0);
		packet_put(&nothing);
	}
}

static int idle_setup(struct job_gpu *gpu)
{
	return second_setup(gpu, &by_nothing);
}

static int old_setup(struct job_gpu *gpu)
{
	int err = queue_setup(gpu, &by_nothing);

	if (!err)
		packets_run(OLD_PACKETS);
	return err;
}

static int packets_setup(struct job_gpu *gpu)
{
	int err = second_setup(gpu, &by_packets);

	if (!err)
		packets_run(3 * AQL_PACKETS);
	return err;
}

static int masked_setup(struct job_gpu *gpu)
{
	static const uint32_t cus[] = { 0x0c00f0cf, 0x30000003, 0x3c000000 };
	struct kfd_ioctl_set_cu_mask_args args = { .num_cu_mask = 8 * sizeof(cus), .cu_mask_ptr = va_of(cus) };
	int err = packets_setup(gpu);

	args.queue_id = queue_id;
	err = err ? err : kfd_ioctl(gpu->kfd->fd, AMDKFD_IOC_SET_CU_MASK, &args);
	return err ? report(-err, "gpu %#x: SET_CU_MASK: %s", gpu->gpu->gpu_id, strerror(-err)) : 0;
}

static int aql_setup(struct job_gpu *gpu)
{
	return queue_setup(gpu, &by_barrier);
}

static int wave_setup(struct job_gpu *gpu)
{
	return queue_setup(gpu, &by_gather);
}

static int code_setup(struct job_gpu *gpu)
{
	return queue_setup(gpu, &by_code);
}

static int assert_setup(struct job_gpu *gpu)
{
	return queue_setup(gpu, &by_assert);
}

static int aql_step(struct job_gpu *gpu)
{
	uint64_t last = steps - 1;
	int err = steps_wait(gpu);

	err = err ? err : last_check(gpu);
	if (err)
		return err;
	step_submit();
	if (holder->let_go)
		holder->let_go(last);
	return 0;
}

static int aql_check(struct job_gpu *gpu)
{
	const uint32_t *sums;
	int err = steps_wait(gpu);

	if (err)
		return err;
	sums = memory()->sums[steps_done() % 2];
	for (unsigned int i = 0; holder != &by_packets && i < WORDS; i++)
		if (sums[i] != (uint32_t)steps_done())
			return report(EILSEQ, "gpu %#x: AQL queue: word %u is %" PRIu32 " after %" PRIu64 " additions",
				      gpu->gpu->gpu_id, i, sums[i], steps_done());
	return last_check(gpu);
}

static int aql_teardown(struct job_gpu *gpu)
{
	struct kfd_bo *const bos[] = { &ring, &pointers, &eop, &memory_bo };
	int err = queue_end(gpu, queue_id);

	for (unsigned int i = 0; !err && i < sizeof(bos) / sizeof(*bos); i++)
		err = kfd_bo_free(gpu->kfd, bos[i]);
	return err ? err : save_area_reuse(gpu);
}

const struct job_extra job_extra_aql = { "aql", aql_setup, aql_step, aql_check, aql_teardown };
const struct job_extra job_extra_idle = { "idle", idle_setup, aql_step, aql_check, aql_teardown };
const struct job_extra job_extra_nap = { "nap", nap_setup, aql_step, aql_check, aql_teardown };
const struct job_extra job_extra_old = { "old", old_setup, aql_step, aql_check, aql_teardown };
const struct job_extra job_extra_packets = { "packets", packets_setup, aql_step, aql_check, aql_teardown };
const struct job_extra job_extra_masked = { "masked", masked_setup, aql_step, aql_check, aql_teardown };
const struct job_extra job_extra_wave = { "wave", wave_setup, aql_step, aql_check, aql_teardown };
const struct job_extra job_extra_assert = { "assert", assert_setup, aql_step, aql_check, aql_teardown };
const struct job_extra job_extra_code = { "code", code_setup, aql_step, aql_check, aql_teardown };
