// SPDX-License-Identifier: GPL-2.0-only
/*
 * AQL queues: what CREATE_QUEUE wants for them, barriers, dispatches of the
 * built-in kernels, completion signals with and without an event, faults, and
 * eviction and checkpoint with their larger state.
 */
#include <sys/prctl.h>

#include "criu_test.h"

static int kfd, drm_fd;
static struct node gpu;

#define PACKETS	     64u
#define KERNEL_MAGIC 0x314b4d4953444b46ull
#define WORDS	     5000u

enum { VENDOR, INVALID, DISPATCH, BARRIER_AND, AGENT, BARRIER_OR };
enum { FILL = 1, ADD, COPY, CHECKSUM };

struct packet {
	uint16_t header, setup, workgroup[3], pad;
	uint32_t grid[3], private_size, group_size;
	uint64_t kernel_object, kernarg, reserved, completion;
};

struct barrier {
	uint16_t header, pad[3];
	uint64_t dep[5], reserved, completion;
};

struct barrier_value {
	uint16_t header;
	uint8_t format, pad[5];
	uint64_t signal;
	int64_t value, mask;
	uint32_t condition, reserved[5];
	uint64_t completion;
};

struct signal {
	int64_t kind, value;
	uint64_t mailbox;
	uint32_t event_id, pad;
	uint64_t start, end, reserved[3];
};

struct aql_queue {
	struct buffer ring, pointers, eop, cwsr, memory;
	uint32_t queue_id;
	volatile uint64_t *doorbell;
	uint8_t *doorbell_page;
	uint64_t next; /* packet index */
};

/* ---- the queue ---- */

static uint64_t cwsr_bytes(void)
{
	uint64_t cus = node_property(gpu.number, "simd_count") / node_property(gpu.number, "simd_per_cu") / gpu.num_xcc;
	uint64_t engines = node_property(gpu.number, "array_count") / node_property(gpu.number, "simd_arrays_per_engine");
	uint64_t waves = cus * 32, debug;

	if (gpu.gfx < 100100)
		waves = cus * 40 < engines * 512 ? cus * 40 : engines * 512;
	debug = (waves * 32 + 63) & ~63ull;
	return ((gpu.cwsr_size + debug) * gpu.num_xcc + PAGE - 1) & ~(PAGE - 1);
}

static struct create_queue aql_args(const struct aql_queue *q)
{
	return (struct create_queue){
		.ring = q->ring.va, .ring_size = PACKETS * 64, .wptr = q->pointers.va + 64, .rptr = q->pointers.va,
		.gpu_id = gpu.gpu_id, .type = 2, .percentage = 100, .priority = 7, .eop = q->eop.va, .eop_size = PAGE,
		.cwsr = q->cwsr.va, .cwsr_size = gpu.cwsr_size, .ctl_stack_size = gpu.ctl_stack_size,
	};
}

static struct aql_queue aql_unborn(void)
{
	struct aql_queue q = { 0 };
	struct packet *ring;
	unsigned int i;

	q.ring = buffer_new(kfd, drm_fd, gpu.gpu_id, PACKETS * 64, GTT_RW);
	q.pointers = buffer_new(kfd, drm_fd, gpu.gpu_id, PAGE, GTT_RW);
	q.eop = buffer_new(kfd, drm_fd, gpu.gpu_id, PAGE, VRAM_RW);
	q.cwsr = buffer_new(kfd, drm_fd, gpu.gpu_id, cwsr_bytes(), GTT_RW);
	q.memory = buffer_new(kfd, drm_fd, gpu.gpu_id, 256 << 10, GTT_RW);
	ring = (struct packet *)q.ring.va;
	for (i = 0; i < PACKETS; i++)
		ring[i].header = INVALID;
	return q;
}

static void aql_born(struct aql_queue *q)
{
	struct create_queue args = aql_args(q);

	must(ioctl(kfd, NR_CREATE_QUEUE, &args), "CREATE_QUEUE");
	q->queue_id = args.queue_id;
	q->doorbell_page = mmap(NULL, DOORBELLS, PROT_READ | PROT_WRITE, MAP_SHARED, kfd,
				args.doorbell_offset & ~(DOORBELLS - 1));
	if (q->doorbell_page == MAP_FAILED)
		err(1, "mmap doorbells");
	q->doorbell = (volatile uint64_t *)(q->doorbell_page + (args.doorbell_offset & (DOORBELLS - 1)));
}

static void aql_free(struct aql_queue *q, bool born)
{
	if (born) {
		must(queue_destroy(kfd, q->queue_id), "DESTROY_QUEUE");
		munmap(q->doorbell_page, DOORBELLS);
	}
	buffer_free(kfd, &q->ring);
	buffer_free(kfd, &q->pointers);
	buffer_free(kfd, &q->eop);
	buffer_free(kfd, &q->cwsr);
	buffer_free(kfd, &q->memory);
}

/* Body first, header last, as the queue's contract is; then the doorbell. */
static void aql_put(struct aql_queue *q, const void *packet)
{
	uint8_t *slot = (uint8_t *)q->ring.va + q->next % PACKETS * 64;

	memcpy(slot + 2, (const uint8_t *)packet + 2, 62);
	*(volatile uint64_t *)(q->pointers.va + 64) = q->next + 1;
	__atomic_store_n((uint16_t *)slot, *(const uint16_t *)packet, __ATOMIC_RELEASE);
	*q->doorbell = q->next++;
}

static uint64_t aql_read_index(const struct aql_queue *q)
{
	return *(volatile uint64_t *)q->pointers.va;
}

static bool signal_becomes(const struct signal *s, int64_t value)
{
	uint64_t end = now_ms() + 5000;

	while (__atomic_load_n(&s->value, __ATOMIC_ACQUIRE) != value) {
		if (now_ms() > end)
			return false;
		usleep(500);
	}
	return true;
}

/* ---- creation ---- */

static void check_create(void)
{
	struct aql_queue q = aql_unborn();
	const struct create_queue good = aql_args(&q);
	struct create_queue args;

#define CHECK_CREATE(change, want, text)                                         \
	do {                                                                     \
		args = good;                                                     \
		change;                                                          \
		check_errno(ioctl(kfd, NR_CREATE_QUEUE, &args), want, text);     \
	} while (0)

	CHECK_CREATE(args.eop_size = 2048, EINVAL, "an EOP buffer that is too small");
	CHECK_CREATE(args.eop = reserve(PAGE), EINVAL, "an EOP buffer that is not mapped");
	CHECK_CREATE(args.ctl_stack_size += PAGE, EINVAL, "a control stack of another size");
	CHECK_CREATE(args.cwsr_size -= PAGE, EINVAL, "a save area that is too small");
	CHECK_CREATE(args.cwsr_size += PAGE, EINVAL, "a save area larger than its mapping");
	CHECK_CREATE(args.cwsr += PAGE, EINVAL, "a save area that begins inside of its mapping");
	CHECK_CREATE(args.eop = 0, 0, "no EOP buffer");
	must(queue_destroy(kfd, args.queue_id), "DESTROY_QUEUE");
	CHECK_CREATE((void)0, 0, "an AQL queue");
	check_errno(kfd_unmap(kfd, q.cwsr.handle, gpu.gpu_id), EBUSY, "UNMAP of its save area");
	check_errno(kfd_unmap(kfd, q.eop.handle, gpu.gpu_id), EBUSY, "UNMAP of its EOP buffer");
	must(queue_destroy(kfd, args.queue_id), "DESTROY_QUEUE");
	aql_free(&q, false);
}

/* The save area may lie in SVM memory that is always mapped. */
static void check_svm_save_area(void)
{
	struct {
		struct kfd_ioctl_svm_args args;
		struct kfd_ioctl_svm_attribute attrs[2];
	} svm;
	struct aql_queue q = aql_unborn();
	struct create_queue args = aql_args(&q);
	void *p = mmap(NULL, cwsr_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(&svm, 0, sizeof(svm));
	svm.args = (struct kfd_ioctl_svm_args){ .start_addr = (uintptr_t)p, .size = cwsr_bytes(), .nattr = 1 };
	svm.attrs[0] = (struct kfd_ioctl_svm_attribute){ .type = KFD_IOCTL_SVM_ATTR_ACCESS, .value = gpu.gpu_id };
	must(ioctl(kfd, NR_SVM(1), &svm), "SVM");
	args.cwsr = (uintptr_t)p;
	check_errno(ioctl(kfd, NR_CREATE_QUEUE, &args), EINVAL, "a save area in SVM memory");
	svm.attrs[0] = (struct kfd_ioctl_svm_attribute){ .type = KFD_IOCTL_SVM_ATTR_SET_FLAGS, .value = 0x40 };
	must(ioctl(kfd, NR_SVM(1), &svm), "SVM");
	check_errno(ioctl(kfd, NR_CREATE_QUEUE, &args), 0, "... that is always mapped");
	must(queue_destroy(kfd, args.queue_id), "DESTROY_QUEUE");
	munmap(p, cwsr_bytes());
	aql_free(&q, false);
}

/* ---- kernels; q->memory: object at 0, arguments at 64, signal at 128, data from a page on ---- */

static uint64_t at(const struct aql_queue *q, uint64_t offset)
{
	return q->memory.va + offset;
}

static uint32_t *words(const struct aql_queue *q, unsigned int array)
{
	return (uint32_t *)at(q, PAGE + array * 5 * PAGE);
}

static struct signal *signal_of(const struct aql_queue *q)
{
	return (struct signal *)at(q, 128);
}

static void dispatch(struct aql_queue *q, uint32_t kernel, uint64_t a, uint64_t b, uint64_t c, uint32_t items)
{
	struct packet packet = {
		.header = DISPATCH, .setup = 1, .workgroup = { 64, 1, 1 }, .grid = { items, 1, 1 },
		.kernel_object = at(q, 0), .kernarg = at(q, 64), .completion = (uintptr_t)signal_of(q),
	};
	uint64_t *args = (uint64_t *)at(q, 64);

	*(uint64_t *)at(q, 0) = KERNEL_MAGIC;
	*(uint32_t *)at(q, 8) = kernel;
	args[0] = a;
	args[1] = b;
	args[2] = c;
	signal_of(q)->value = 1;
	aql_put(q, &packet);
}

static uint64_t fnv(const uint32_t *p, uint32_t n)
{
	uint64_t sum = 0xcbf29ce484222325ull;

	while (n--)
		sum = (sum ^ *p++) * 0x100000001b3ull;
	return sum;
}

static void check_kernels(void)
{
	struct aql_queue q = aql_unborn();
	uint32_t *a = words(&q, 0), *b = words(&q, 1), *c = words(&q, 2), i;
	bool ok = true;

	aql_born(&q);
	dispatch(&q, FILL, (uintptr_t)a, 0x1234567, 0, WORDS);
	check_true(signal_becomes(signal_of(&q), 0), "a dispatch completes its signal");
	check_true(a[0] == 0x1234567 && a[WORDS - 1] == 0x1234567 && !a[WORDS], "fill");
	check_u64(aql_read_index(&q), 1, "the read index counts");
	check_u64(((struct packet *)q.ring.va)->header & 0xff, INVALID, "the packet is given back");
	check_true(signal_of(&q)->start && signal_of(&q)->end >= signal_of(&q)->start, "the signal has times");
	for (i = 0; i < WORDS; i++)
		b[i] = i * 3;
	dispatch(&q, ADD, (uintptr_t)c, (uintptr_t)a, (uintptr_t)b, WORDS);
	signal_becomes(signal_of(&q), 0);
	for (i = 0; i < WORDS; i++)
		ok = ok && c[i] == 0x1234567 + i * 3;
	check_true(ok, "add");
	dispatch(&q, COPY, (uintptr_t)a, (uintptr_t)c, 0, WORDS);
	signal_becomes(signal_of(&q), 0);
	check_true(!memcmp(a, c, WORDS * 4), "copy");
	dispatch(&q, CHECKSUM, (uintptr_t)b, (uintptr_t)a, 0, WORDS);
	signal_becomes(signal_of(&q), 0);
	check_u64(*(uint64_t *)b, fnv(a, WORDS), "checksum");
	for (i = 0; i < 3 * PACKETS; i++) {
		dispatch(&q, FILL, (uintptr_t)a, i, 0, 8);
		ok = ok && signal_becomes(signal_of(&q), 0) && a[7] == i;
	}
	check_true(ok, "a ring can be gone round");
	aql_free(&q, true);
}

/* ---- barriers ---- */

static void check_barriers(void)
{
	struct aql_queue q = aql_unborn();
	struct signal *s = (struct signal *)at(&q, 512), *done = (struct signal *)at(&q, 1024);
	struct barrier barrier = { .header = BARRIER_AND, .dep = { (uintptr_t)&s[0], 0, (uintptr_t)&s[1] },
				   .completion = (uintptr_t)done };
	struct barrier_value value = { .header = VENDOR, .format = 2, .signal = (uintptr_t)&s[0], .value = 10,
				       .mask = -1, .condition = 3, .completion = (uintptr_t)done };

	aql_born(&q);
	s[0].value = s[1].value = 1;
	done->value = 3;
	aql_put(&q, &barrier);
	usleep(30000);
	check_u64(aql_read_index(&q), 0, "an AND barrier waits");
	s[0].value = 0;
	usleep(30000);
	check_u64(aql_read_index(&q), 0, "... for all its signals");
	s[1].value = 0;
	check_true(signal_becomes(done, 2), "... and passes");
	s[0].value = s[1].value = 1;
	barrier.header = BARRIER_OR;
	aql_put(&q, &barrier);
	usleep(30000);
	check_u64(aql_read_index(&q), 1, "an OR barrier waits");
	s[1].value = 0;
	check_true(signal_becomes(done, 1), "... for one of its signals");
	aql_put(&q, &value);
	usleep(30000);
	check_u64(aql_read_index(&q), 2, "a value barrier waits");
	s[0].value = 10;
	check_true(signal_becomes(done, 0), "... for a value");
	aql_free(&q, true);
}

static void check_event(void)
{
	struct aql_queue q = aql_unborn();
	struct buffer page = buffer_new(kfd, drm_fd, gpu.gpu_id, 32 << 10, GTT_RW);
	struct kfd_ioctl_create_event_args event = { .event_page_offset = page.handle, .auto_reset = 1 };
	struct event_data data;
	struct kfd_ioctl_wait_events_args wait = {
		.events_ptr = (uintptr_t)&data, .num_events = 1, .wait_for_all = 1, .timeout = 5000,
	};

	must(ioctl(kfd, NR_CREATE_EVENT, &event), "CREATE_EVENT");
	memset(&data, 0, sizeof(data));
	data.event_id = event.event_id;
	aql_born(&q);
	signal_of(&q)->mailbox = page.va + 8 * event.event_slot_index;
	signal_of(&q)->event_id = event.event_id;
	dispatch(&q, FILL, (uintptr_t)words(&q, 0), 1, 0, 16);
	check_errno(ioctl(kfd, NR_WAIT_EVENTS, &wait), 0, "waiting for a completion signal's event");
	check_u64(wait.wait_result, 0, "... which comes");
	check_u64(signal_of(&q)->value, 0, "... after the signal");
	aql_free(&q, true);
}

/* ---- faults ---- */

static void check_fault(const char *what, uint32_t kernel, uint64_t dst, uint16_t header)
{
	struct aql_queue q = aql_unborn();
	struct barrier bad = { .header = header };

	aql_born(&q);
	if (header)
		aql_put(&q, &bad);
	else
		dispatch(&q, kernel, dst, 1, 0, 16);
	usleep(100000);
	check_u64(aql_read_index(&q), 0, "%s stops the queue", what);
	aql_free(&q, true);
}

/* ---- under CRIU's eyes, in a child that this process traces ---- */

struct shared_aql {
	volatile uint32_t step;
	int kfd;
};

static void traced_main(struct shared_aql *s)
{
	struct aql_queue q;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	kfd = s->kfd = kfd_open();
	must(kfd_acquire(kfd, drm_fd = render_open(gpu.render_minor), gpu.gpu_id), "ACQUIRE_VM");
	q = aql_unborn();
	aql_born(&q);
	dispatch(&q, FILL, (uintptr_t)words(&q, 0), 1, 0, 16);
	signal_becomes(signal_of(&q), 0);
	announce(&s->step, 1);
	for (;;)
		pause();
}

static void check_saved(void)
{
	struct shared_aql *s = shared(sizeof(*s));
	uint64_t stack = gpu.gfx < 100000 ? gpu.ctl_stack_size * gpu.num_xcc : 0;
	struct state *state;
	struct queue_priv *saved;
	pid_t pid = fork();
	int fd, ret;

	must(pid, "fork");
	if (!pid)
		traced_main(s);
	await(&s->step, 1);
	state = calloc(1, sizeof(*state) + stack);
	trace(pid);
	fd = fd_of(pid, s->kfd);
	must(state_info(fd, state), "PROCESS_INFO");
	check_u64(state->info.num_objects, 1, "an AQL queue is saved");
	ret = state->info.priv_size > sizeof(state->priv) + stack ? -1 : state_checkpoint(fd, state);
	check_errno(ret, gpu.gfx >= 120000 ? EOPNOTSUPP : 0, "CHECKPOINT of an AQL queue");
	if (!ret) {
		saved = (struct queue_priv *)state_objects(state);
		check_u64(saved->type, 0, "... as a compute queue");
		check_u64(saved->format, 1, "... of AQL format");
		check_u64(saved->mqd_size, 2048 * gpu.num_xcc, "... with its MQDs");
		check_u64(saved->ctl_stack_size, stack, "... and its control stacks");
		state_close_fds(state);
	}
	reap(pid, true);
	close(fd);
	free(state);
}

int main(void)
{
	uint64_t nowhere;

	gpu = node_gpu(0);
	if (count_gpus(NULL) == 1)
		check_saved();
	else
		check_skip("CHECKPOINT of an AQL queue: for a machine with one GPU");
	kfd = kfd_open();
	drm_fd = render_open(gpu.render_minor);
	must(kfd_acquire(kfd, drm_fd, gpu.gpu_id), "ACQUIRE_VM");
	nowhere = reserve(PAGE);
	check_create();
	check_svm_save_area();
	check_kernels();
	check_barriers();
	check_event();
	check_fault("a write to what is not mapped", FILL, nowhere, 0);
	check_fault("a kernel that does not exist", 99, nowhere, 0);
	check_fault("an agent dispatch", 0, 0, AGENT);
	return conformance_end();
}
