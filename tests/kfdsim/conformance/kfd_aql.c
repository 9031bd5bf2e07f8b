// SPDX-License-Identifier: GPL-2.0-only
/*
 * AQL queues: what CREATE_QUEUE wants for them, barriers, dispatches of the
 * built-in kernels, completion signals with and without an event, and faults.
 */
#include "aql_test.h"

/* ---- creation ---- */

static void check_create(void)
{
	struct aql_queue q = aql_unborn();
	const struct create_queue good = aql_args(&q);
	struct create_queue args;

#define CHECK_CREATE(change, want, text)                                        \
	do {                                                                    \
		args = good;                                                    \
		change;                                                         \
		check_errno(ioctl(on.kfd, NR_CREATE_QUEUE, &args), want, text); \
	} while (0)

	CHECK_CREATE(args.eop_size = 2048, EINVAL, "an EOP buffer that is too small");
	CHECK_CREATE(args.eop = reserve(PAGE), EINVAL, "an EOP buffer that is not mapped");
	CHECK_CREATE(args.ctl_stack_size += PAGE, EINVAL, "a control stack of another size");
	CHECK_CREATE(args.cwsr_size -= PAGE, EINVAL, "a save area that is too small");
	CHECK_CREATE(args.cwsr_size += PAGE, EINVAL, "a save area larger than its mapping");
	CHECK_CREATE(args.cwsr += PAGE, EINVAL, "a save area that begins inside of its mapping");
	CHECK_CREATE(args.eop = 0, 0, "no EOP buffer");
	must(queue_destroy(on.kfd, args.queue_id), "DESTROY_QUEUE");
	CHECK_CREATE((void)0, 0, "an AQL queue");
	check_errno(kfd_unmap(on.kfd, q.cwsr.handle, on.node.gpu_id), EBUSY, "UNMAP of its save area");
	check_errno(kfd_unmap(on.kfd, q.eop.handle, on.node.gpu_id), EBUSY, "UNMAP of its EOP buffer");
	must(queue_destroy(on.kfd, args.queue_id), "DESTROY_QUEUE");
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
	svm.attrs[0] = (struct kfd_ioctl_svm_attribute){ .type = KFD_IOCTL_SVM_ATTR_ACCESS, .value = on.node.gpu_id };
	must(ioctl(on.kfd, NR_SVM(1), &svm), "SVM");
	args.cwsr = (uintptr_t)p;
	check_errno(ioctl(on.kfd, NR_CREATE_QUEUE, &args), EINVAL, "a save area in SVM memory");
	svm.attrs[0] = (struct kfd_ioctl_svm_attribute){ .type = KFD_IOCTL_SVM_ATTR_SET_FLAGS, .value = 0x40 };
	must(ioctl(on.kfd, NR_SVM(1), &svm), "SVM");
	check_errno(ioctl(on.kfd, NR_CREATE_QUEUE, &args), 0, "... that is always mapped");
	must(queue_destroy(on.kfd, args.queue_id), "DESTROY_QUEUE");
	munmap(p, cwsr_bytes());
	aql_free(&q, false);
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
	struct barrier barrier = { .header = BARRIER_AND,
				   .dep = { (uintptr_t)&s[0], 0, (uintptr_t)&s[1] },
				   .completion = (uintptr_t)done };
	struct barrier_value value = { .header = VENDOR,
				       .format = 2,
				       .signal = (uintptr_t)&s[0],
				       .value = 10,
				       .mask = -1,
				       .condition = 3,
				       .completion = (uintptr_t)done };

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
	struct buffer page = buffer_new(on.kfd, on.drm_fd, on.node.gpu_id, 32 << 10, GTT_RW);
	struct kfd_ioctl_create_event_args event = { .event_page_offset = page.handle, .auto_reset = 1 };
	struct event_data data;
	struct kfd_ioctl_wait_events_args wait = {
		.events_ptr = (uintptr_t)&data,
		.num_events = 1,
		.wait_for_all = 1,
		.timeout = 5000,
	};

	must(ioctl(on.kfd, NR_CREATE_EVENT, &event), "CREATE_EVENT");
	memset(&data, 0, sizeof(data));
	data.event_id = event.event_id;
	aql_born(&q);
	signal_of(&q)->mailbox = page.va + 8 * event.event_slot_index;
	signal_of(&q)->event_id = event.event_id;
	dispatch(&q, FILL, (uintptr_t)words(&q, 0), 1, 0, 16);
	check_errno(ioctl(on.kfd, NR_WAIT_EVENTS, &wait), 0, "waiting for a completion signal's event");
	check_u64(wait.wait_result, 0, "... which comes");
	check_u64(signal_of(&q)->value, 0, "... after the signal");
	aql_free(&q, true);
}

/* ---- preemption ---- */

static void set_percentage(const struct aql_queue *q, uint32_t percentage)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = q->ring.va,
		.ring_size = PACKETS * 64,
		.queue_id = q->queue_id,
		.queue_percentage = percentage,
		.queue_priority = 7,
	};

	must(ioctl(on.kfd, NR_UPDATE_QUEUE, &args), "UPDATE_QUEUE");
}

/* A kernel that is stopped in the middle has its state in the save area and, up to gfx9, in the control stack. */
static void check_preemption(bool spoil)
{
	struct aql_queue q = aql_unborn();
	uint8_t *stack = calloc(1, on.node.ctl_stack_size);
	struct kfd_ioctl_get_queue_wave_state_args state = { .ctl_stack_address = (uintptr_t)stack };
	uint64_t size = on.node.gfx < 100000 ? on.node.ctl_stack_size : 0, i;

	aql_born(&q);
	state.queue_id = q.queue_id;
	for (i = 0; i < WORDS; i++)
		words(&q, 0)[i] = 3;
	check_errno(ioctl(on.kfd, NR_WAVE_STATE, &state), EINVAL, "wave state of a queue that may run");
	gather_begin(&q);
	set_percentage(&q, 0);
	*gather_gate(&q) = WORDS;
	check_u64(*gathered(&q), 3 * CHUNK, "a kernel is stopped in the middle");
	check_errno(ioctl(on.kfd, NR_WAVE_STATE, &state), 0, "wave state of its queue");
	check_u64(state.ctl_stack_used_size, size, "... has a control stack up to gfx9");
	check_true(!size || memcmp(stack, stack + 8, size - 8), "... with something on it");
	check_u64(state.save_area_used_size, on.node.cwsr_size, "... and a save area");
	if (spoil)
		*(uint8_t *)(q.cwsr.va + on.node.cwsr_size - 8) ^= 1;
	set_percentage(&q, 100);
	if (spoil) {
		usleep(200000);
		check_u64(*gathered(&q), 3 * CHUNK, "a changed save area keeps it from going on");
	} else {
		check_true(signal_becomes(signal_of(&q), 0), "it goes on");
		check_u64(*gathered(&q), 3 * WORDS, "... to its end");
	}
	free(stack);
	aql_free(&q, true);
}

/* ---- faults ---- */

struct fault_case {
	const char *what;
	uint32_t kernel;
	uint16_t header; /* 0: a dispatch of @kernel to where nothing is */
};

static void gpu_take(void)
{
	on.kfd = kfd_open();
	on.drm_fd = render_open(on.node.render_minor);
	must(kfd_acquire(on.kfd, on.drm_fd, on.node.gpu_id), "ACQUIRE_VM");
}

static void check_fault(const void *arg)
{
	const struct fault_case *c = arg;
	struct barrier bad = { .header = c->header };
	struct aql_queue q;

	gpu_take();
	q = aql_unborn();
	aql_born(&q);
	if (c->header)
		aql_put(&q, &bad);
	else
		dispatch(&q, c->kernel, reserve(PAGE), 1, 0, 16);
	usleep(100000);
	check_u64(aql_read_index(&q), 0, "%s stops the queue", c->what);
	aql_free(&q, true);
}

int main(void)
{
	static const struct fault_case faults[] = {
		{ "a write to what is not mapped", FILL, 0 },
		{ "a kernel that does not exist", 99, 0 },
		{ "an agent dispatch", 0, AGENT },
	};

	on.node = node_gpu(0);
	gpu_take();
	check_create();
	check_svm_save_area();
	check_kernels();
	check_barriers();
	check_event();
	check_preemption(false);
	check_preemption(true);
	for (unsigned int i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		conformance_in_process(check_fault, &faults[i]);
	return conformance_end();
}
