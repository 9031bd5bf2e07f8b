// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events: numbers and slots, setting and resetting, waiting with all its
 * outcomes, wake-ups by another thread, by an engine and by signals, and what a
 * signal leaves of the time.
 */
#include "kfd_test.h"

static int kfd, drm_fd;
static unsigned int release;
static struct node gpu;

enum { SIGNAL = 0, HW_EXCEPTION = 3, SYSTEM = 4, DEBUG = 5, MEMORY = 8 };
enum { COMPLETE, TIMEOUT, FAIL };

static int create(uint32_t type, bool auto_reset, struct kfd_ioctl_create_event_args *args)
{
	args->event_type = type;
	args->auto_reset = auto_reset;
	return ioctl(kfd, NR_CREATE_EVENT, args);
}

static uint32_t new_event(uint32_t type, bool auto_reset)
{
	struct kfd_ioctl_create_event_args args = { 0 };

	must(create(type, auto_reset, &args), "CREATE_EVENT");
	return args.event_id;
}

/* How many signal events can be created, up to @max; errno is that of the one that cannot. */
static uint32_t create_many(uint32_t max)
{
	uint32_t n;

	for (n = 0; n < max; n++) {
		struct kfd_ioctl_create_event_args args = { 0 };

		if (create(SIGNAL, false, &args))
			break;
	}
	return n;
}

static int simple(uint32_t nr, uint32_t id)
{
	struct kfd_ioctl_set_event_args args = { .event_id = id };

	return ioctl(kfd, nr, &args);
}

static int wait_for(struct event_data *data, uint32_t n, bool all, uint32_t timeout_ms, uint32_t *result)
{
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (uintptr_t)data,
		.num_events = n,
		.wait_for_all = all,
		.timeout = timeout_ms,
		.wait_result = 99,
	};
	int ret = ioctl(kfd, NR_WAIT_EVENTS, &args);

	*result = args.wait_result;
	return ret;
}

/* Waits for one event; the result. */
static uint32_t wait_one(uint32_t id, uint32_t timeout_ms)
{
	struct event_data data = { .event_id = id };
	uint32_t result;

	must(wait_for(&data, 1, true, timeout_ms, &result), "WAIT_EVENTS");
	return result;
}

/* ---- creation ---- */

static struct buffer check_page(void)
{
	struct buffer page = buffer_new(kfd, drm_fd, gpu.gpu_id, 32 << 10, GTT_RW);
	struct buffer small = buffer_new(kfd, drm_fd, gpu.gpu_id, 16 << 10, GTT_RW);
	struct kfd_ioctl_create_event_args args = { .event_page_offset = page.handle + 100 };

	check_errno(create(SIGNAL, false, &args), EINVAL, "CREATE_EVENT with a page that is no buffer");
	args.event_page_offset = (uint64_t)0xfffe << 32 | 1;
	check_errno(create(SIGNAL, false, &args), EINVAL, "CREATE_EVENT with a page on no GPU");
	args.event_page_offset = small.handle;
	check_errno(create(SIGNAL, false, &args), EINVAL, "CREATE_EVENT with a page that is too small");
	args.event_page_offset = page.handle;
	check_errno(create(SIGNAL, false, &args), 0, "CREATE_EVENT with a page");
	check_u64(args.event_id, 1, "the first signal event has id 1");
	check_u64(args.event_slot_index, args.event_id, "its slot is its id");
	check_u64(args.event_trigger_data, args.event_id, "and so is what triggers it");
	check_u64(args.event_page_offset, 2ull << 62, "the page's mmap offset");
	check_u64(*(uint64_t *)page.va, ~0ull, "the page says \"unsignalled\"");
	check_u64(((uint64_t *)page.va)[4095], ~0ull, "... everywhere");
	args.event_page_offset = page.handle;
	check_errno(create(SIGNAL, false, &args), EINVAL, "CREATE_EVENT with a page when there is one");
	check_errno(kfd_free(kfd, page.handle), EPERM, "FREE of the signal page");
	buffer_free(kfd, &small);
	return page;
}

static void check_create(void)
{
	struct kfd_ioctl_create_event_args args = { .event_slot_index = 77 };
	uint32_t id = new_event(SIGNAL, false);

	check_u64(id, 2, "the next signal event has id 2");
	check_errno(simple(NR_DESTROY_EVENT, 1), 0, "DESTROY_EVENT");
	check_errno(simple(NR_DESTROY_EVENT, 1), EINVAL, "DESTROY_EVENT again");
	check_u64(new_event(SIGNAL, false), 1, "an id that was freed is used again");
	check_errno(create(MEMORY, false, &args), 0, "CREATE_EVENT of a memory event");
	check_u64(args.event_id, 0x40000000, "events without slot have ids of their own");
	check_u64(args.event_slot_index, 77, "... and no slot");
	check_errno(create(SYSTEM, false, &args), 0, "CREATE_EVENT of another kind");
	must(simple(NR_DESTROY_EVENT, args.event_id), "DESTROY_EVENT");
	must(simple(NR_DESTROY_EVENT, 0x40000000), "DESTROY_EVENT");
	must(simple(NR_DESTROY_EVENT, 1), "DESTROY_EVENT");
	must(simple(NR_DESTROY_EVENT, 2), "DESTROY_EVENT");
}

static void check_limit(void)
{
	struct kfd_ioctl_create_event_args args = { 0 };
	uint32_t n = create_many(5000);

	check_u64(n, 4095, "there are 4095 signal events");
	check_errno(create(SIGNAL, false, &args), ENOSPC, "one more");
	while (n)
		must(simple(NR_DESTROY_EVENT, n--), "DESTROY_EVENT");
}

static void check_set(void)
{
	uint32_t signal = new_event(SIGNAL, false), memory = new_event(MEMORY, false);

	check_errno(simple(NR_SET_EVENT, 500), EINVAL, "SET_EVENT of an unknown event");
	check_errno(simple(NR_RESET_EVENT, 500), EINVAL, "RESET_EVENT of an unknown event");
	check_errno(simple(NR_SET_EVENT, memory), EINVAL, "SET_EVENT of an event of the GPU's");
	check_u64(wait_one(signal, 0), TIMEOUT, "an event that is not set");
	check_errno(simple(NR_SET_EVENT, signal), 0, "SET_EVENT");
	check_u64(wait_one(signal, 0), COMPLETE, "an event that is set");
	check_u64(wait_one(signal, 0), COMPLETE, "... stays so");
	check_errno(simple(NR_RESET_EVENT, signal), 0, "RESET_EVENT");
	check_u64(wait_one(signal, 0), TIMEOUT, "... ends it");
	must(simple(NR_DESTROY_EVENT, signal), "DESTROY_EVENT");
	must(simple(NR_DESTROY_EVENT, memory), "DESTROY_EVENT");

	signal = new_event(SIGNAL, true);
	must(simple(NR_SET_EVENT, signal), "SET_EVENT");
	check_u64(wait_one(signal, 0), COMPLETE, "an auto-reset event that is set");
	check_u64(wait_one(signal, 0), TIMEOUT, "... is consumed");
	must(simple(NR_DESTROY_EVENT, signal), "DESTROY_EVENT");
}

/* ---- waiting ---- */

static void check_wait_errors(void)
{
	struct event_data data = { .event_id = 500 }, *many = calloc(4097, sizeof(*many));
	uint32_t result;

	check_errno(wait_for(&data, 1, true, 0, &result), EINVAL, "waiting for an unknown event");
	check_u64(result, FAIL, "... has the result \"fail\"");
	check_errno(wait_for((void *)8, 1, true, 0, &result), EFAULT, "waiting for events that are not there");
	check_errno(wait_for(many, 4097, true, 0, &result), release < 702 ? EINVAL : ENOMEM,
		    "waiting for more events than there can be");
	free(many);
	check_errno(wait_for(&data, 0, true, 0, &result), 0, "waiting for no events");
	check_u64(result, COMPLETE, "... is over at once");
}

static void check_wait_many(void)
{
	struct event_data data[2] = { { .event_id = new_event(SIGNAL, false) },
				      { .event_id = new_event(SIGNAL, false) } };
	uint32_t result;
	uint64_t begin;

	must(simple(NR_SET_EVENT, data[1].event_id), "SET_EVENT");
	must(wait_for(data, 2, false, 1000, &result), "WAIT_EVENTS");
	check_u64(result, COMPLETE, "one of two events is enough when asked for");
	begin = now_ms();
	must(wait_for(data, 2, true, 150, &result), "WAIT_EVENTS");
	check_u64(result, TIMEOUT, "... and not enough when all are");
	check_true(now_ms() - begin >= 140, "... for which the time is waited (%" PRIu64 " ms)", now_ms() - begin);
	must(simple(NR_DESTROY_EVENT, data[0].event_id), "DESTROY_EVENT");
	must(simple(NR_DESTROY_EVENT, data[1].event_id), "DESTROY_EVENT");
}

static void check_age(void)
{
	struct event_data data = { .event_id = new_event(SIGNAL, true), .age = 1 };
	uint32_t result;

	if (kfd_minor_version(kfd) < 14) {
		check_skip("event age: KFD 1.%u has none", kfd_minor_version(kfd));
		return;
	}
	must(wait_for(&data, 1, true, 0, &result), "WAIT_EVENTS");
	check_u64(result, TIMEOUT, "a new event has age 1");
	must(simple(NR_SET_EVENT, data.event_id), "SET_EVENT");
	check_u64(wait_one(data.event_id, 0), COMPLETE, "set once");
	must(wait_for(&data, 1, true, 0, &result), "WAIT_EVENTS");
	check_u64(result, COMPLETE, "who knows an older age is not late");
	check_u64(data.age, 2, "... and learns the age");
	must(wait_for(&data, 1, true, 0, &result), "WAIT_EVENTS");
	check_u64(result, TIMEOUT, "who knows the age waits");
	must(simple(NR_DESTROY_EVENT, data.event_id), "DESTROY_EVENT");
}

static void *set_later(void *arg)
{
	usleep(50000);
	simple(NR_SET_EVENT, *(uint32_t *)arg);
	return NULL;
}

static void *destroy_later(void *arg)
{
	usleep(50000);
	simple(NR_DESTROY_EVENT, *(uint32_t *)arg);
	return NULL;
}

static void check_wake(void)
{
	struct event_data data = { .event_id = new_event(SIGNAL, true) };
	uint32_t result;
	pthread_t thread;

	pthread_create(&thread, NULL, set_later, &data.event_id);
	check_u64(wait_one(data.event_id, 5000), COMPLETE, "another thread's SET_EVENT wakes");
	pthread_join(thread, NULL);
	check_u64(wait_one(data.event_id, 0), TIMEOUT, "... and an auto-reset event is consumed by it");
	pthread_create(&thread, NULL, destroy_later, &data.event_id);
	check_errno(wait_for(&data, 1, true, 5000, &result), EIO, "another thread's DESTROY_EVENT ends a wait");
	check_u64(result, FAIL, "... with the result \"fail\"");
	pthread_join(thread, NULL);
}

/* ---- signals ---- */

static volatile sig_atomic_t signals;

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

static void install(int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };

	sigaction(SIGALRM, &sa, NULL);
}

static void check_interrupt(void)
{
	struct event_data data = { .event_id = new_event(SIGNAL, true) };
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (uintptr_t)&data,
		.num_events = 1,
		.wait_for_all = 1,
		.timeout = 2000,
	};
	uint64_t begin = now_ms();

	install(0);
	ualarm(200000, 0);
	check_errno(ioctl(kfd, NR_WAIT_EVENTS, &args), EINTR, "a signal without SA_RESTART ends a wait");
	check_true(args.timeout < 2000 && args.timeout > 1000, "... and the rest of the time is told (%u ms)",
		   args.timeout);
	check_u64(args.wait_result, FAIL, "... with the result \"fail\"");

	install(SA_RESTART);
	args.timeout = 600;
	begin = now_ms();
	ualarm(200000, 0);
	check_errno(ioctl(kfd, NR_WAIT_EVENTS, &args), 0, "a signal with SA_RESTART does not");
	check_u64(args.wait_result, TIMEOUT, "... it goes on to its end");
	check_true(now_ms() - begin < 790 && now_ms() - begin > 550, "... at the time it had (%" PRIu64 " ms)",
		   now_ms() - begin);
	check_u64(signals, 2, "the signals came");
	must(simple(NR_DESTROY_EVENT, data.event_id), "DESTROY_EVENT");
}

/* A process that is stopped and traced in a wait goes on waiting afterwards, as under CRIU. */
static void check_trace(void)
{
	uint64_t begin;
	int status;
	pid_t pid = fork();

	must(pid, "fork");
	if (!pid) {
		struct kfd_ioctl_create_event_args args = { 0 };

		kfd = kfd_open();
		if (create(MEMORY, false, &args))
			_exit(9);
		begin = now_ms();
		_exit(wait_one(args.event_id, 700) == TIMEOUT && now_ms() - begin >= 650 ? 0 : 1);
	}
	usleep(200000);
	must(ptrace(PTRACE_SEIZE, pid, 0, 0), "PTRACE_SEIZE");
	must(ptrace(PTRACE_INTERRUPT, pid, 0, 0), "PTRACE_INTERRUPT");
	waitpid(pid, &status, __WALL);
	must(ptrace(PTRACE_DETACH, pid, 0, 0), "PTRACE_DETACH");
	waitpid(pid, &status, 0);
	check_true(WIFEXITED(status) && !WEXITSTATUS(status), "a tracer's stop does not end a wait (status %#x)",
		   status);
}

/* ---- raised by an engine ---- */

static void check_engine(const struct buffer *page)
{
	struct sdma_queue q = sdma_new(kfd, drm_fd, gpu.gpu_id);
	uint32_t a = new_event(SIGNAL, true), b = new_event(SIGNAL, true);
	volatile uint64_t *slots = (volatile uint64_t *)page->va;

	sdma_fence(&q, page->va + 8 * a, a);
	sdma_trap(&q, a);
	sdma_ring_doorbell(&q);
	check_u64(wait_one(a, 5000), COMPLETE, "a trap that names an event raises it");
	check_true(sdma_drain(&q, 1000) && slots[a] == ~0ull, "... and takes back its slot");
	check_u64(wait_one(b, 0), TIMEOUT, "... and no other");
	sdma_fence(&q, page->va + 8 * b, b);
	sdma_fence(&q, page->va + 8 * b + 4, 0);
	sdma_trap(&q, 0);
	sdma_ring_doorbell(&q);
	check_u64(wait_one(b, 5000), COMPLETE, "a trap that names none raises those whose slots were written");
	check_u64(wait_one(a, 0), TIMEOUT, "... and no other");
	sdma_free(&q, kfd);
	must(simple(NR_DESTROY_EVENT, a), "DESTROY_EVENT");
	must(simple(NR_DESTROY_EVENT, b), "DESTROY_EVENT");
}

/* ---- a process without a page of its own ---- */

static int without_page(void)
{
	struct kfd_ioctl_create_event_args args = { 0 };
	int ret;
	void *p;

	kfd = kfd_open();
	ret = create(SIGNAL, false, &args);
	if (ret && errno == ENOMEM)
		return 1; /* 7.3 and later */
	if (ret)
		return 2;
	if (create_many(400) != 254 || errno != ENOSPC)
		return 3;
	p = mmap(NULL, 32 << 10, PROT_READ, MAP_SHARED, kfd, 2ull << 62);
	if (p == MAP_FAILED || *(uint64_t *)p != ~0ull)
		return 4;
	return create_many(1) == 1 ? 0 : 5;
}

static void check_without_page(bool expect_none)
{
	int status;
	pid_t pid = fork();

	must(pid, "fork");
	if (!pid)
		_exit(without_page());
	waitpid(pid, &status, 0);
	check_u64(WEXITSTATUS(status), expect_none, "a process without a page %s",
		  expect_none ? "gets no signal events"
			      : "gets one from the kernel, with more slots once it is mapped");
}

/* Argument: the release whose rules hold; since 7.3 the kernel makes no signal pages. */
int main(int argc, char **argv)
{
	struct buffer page;

	release = release_of(argc, argv);
	gpu = node_gpu(0);
	check_without_page(release >= 703);
	kfd = kfd_open();
	drm_fd = render_open(gpu.render_minor);
	must(kfd_acquire(kfd, drm_fd, gpu.gpu_id), "ACQUIRE_VM");
	page = check_page();
	check_create();
	check_limit();
	check_set();
	check_wait_errors();
	check_wait_many();
	check_age();
	check_wake();
	check_interrupt();
	check_engine(&page);
	check_trace();
	return conformance_end();
}
