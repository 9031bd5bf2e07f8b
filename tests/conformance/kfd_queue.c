// SPDX-License-Identifier: GPL-2.0-only
/*
 * User SDMA queues: what CREATE_QUEUE checks, the numbers that queues get, and
 * that they work: doorbells that wake a sleeping engine, rings that wrap, several
 * queues at once, faults, updates, and no processor time while there is nothing to do.
 */
#include "criu_test.h"

static int kfd, drm_fd;
static struct node gpu;
static unsigned int release;

#define BAD_GPU	 0xfffe
#define ENOTSUPP 524
#define BYTES	 (256ull << 10)

static int create(struct create_queue *args)
{
	return ioctl(kfd, NR_CREATE_QUEUE, args);
}

/* A ring and pointers that no queue has yet. */
static struct sdma_queue unborn(void)
{
	struct sdma_queue q = { .gpu_id = gpu.gpu_id };

	q.ring = buffer_new(kfd, drm_fd, gpu.gpu_id, RING, GTT_RW);
	q.pointers = buffer_new(kfd, drm_fd, gpu.gpu_id, PAGE, GTT_RW);
	return q;
}

/* ---- creation ---- */

/* Kernels look at a queue's buffers, and keep them, since some release behind 6.1. */
static bool checks_buffers(void)
{
	return release >= 612;
}

static void check_create_errors(void)
{
	struct sdma_queue q = unborn();
	const struct create_queue good = sdma_args(&q);
	struct create_queue args;

#define CHECK_CREATE(change, want, text)                \
	do {                                            \
		args = good;                            \
		change;                                 \
		check_errno(create(&args), want, text); \
	} while (0)

	CHECK_CREATE(args.percentage = 101, EINVAL, "CREATE_QUEUE with more than 100 percent");
	CHECK_CREATE(args.priority = 16, EINVAL, "... with priority 16");
	CHECK_CREATE(args.ring = 0xffff800000000000, EFAULT, "... with a ring in the kernel");
	CHECK_CREATE(args.ring_size = 3 * 4096, EINVAL, "... with a ring whose size is no power of two");
	CHECK_CREATE(args.rptr = 0xffff800000000000, EFAULT, "... with a read pointer in the kernel");
	CHECK_CREATE(args.wptr = 0xffff800000000000, EFAULT, "... with a write pointer in the kernel");
	CHECK_CREATE(args.type = 77, ENOTSUPP, "... with an unknown type");
	CHECK_CREATE(args.gpu_id = BAD_GPU, EINVAL, "... on no GPU");
	if (checks_buffers()) {
		CHECK_CREATE(args.ring_size = RING / 2, EINVAL, "... with half of the ring's mapping");
		CHECK_CREATE(args.ring += PAGE, EINVAL, "... with a ring that begins inside of its mapping");
		CHECK_CREATE(args.wptr = q.ring.va, EINVAL,
			     "... with a write pointer in a mapping of more than a page");
		CHECK_CREATE(args.rptr = reserve(PAGE), EINVAL, "... with a read pointer that is not mapped");
	}
	CHECK_CREATE(args.type = 4; args.engine = gpu.sdma_engines + gpu.xgmi_engines,
				    kfd_minor_version(kfd) < 17 ? ENOTSUPP : EINVAL,
				    "... on an engine that the GPU does not have, or that it cannot name");
	buffer_free(kfd, &q.ring);
	buffer_free(kfd, &q.pointers);
}

static void check_create(void)
{
	struct sdma_queue q = unborn(), q2 = unborn();
	struct create_queue args = sdma_args(&q), args2 = sdma_args(&q2);
	uint64_t doorbell;

	if (!check_errno(create(&args), 0, "CREATE_QUEUE"))
		return;
	check_u64(args.queue_id, 0, "the first queue has id 0");
	doorbell = args.doorbell_offset;
	check_u64(doorbell >> 62, 3, "doorbell offset: type");
	check_u64(doorbell >> 46 & 0xffff, gpu.gpu_id, "doorbell offset: gpu id");
	check_true((doorbell & (DOORBELLS - 1)) % 8 == 0, "doorbell offset: a multiple of 8 bytes");
	check_errno(create(&args2), 0, "CREATE_QUEUE");
	check_u64(args2.queue_id, 1, "the second queue has id 1");
	check_true(args2.doorbell_offset != doorbell, "... and another doorbell");
	if (checks_buffers()) {
		check_errno(kfd_unmap(kfd, q.ring.handle, gpu.gpu_id), EBUSY, "UNMAP of a queue's ring");
		check_errno(kfd_unmap(kfd, q.pointers.handle, gpu.gpu_id), EBUSY, "UNMAP of a queue's pointers");
	} else {
		check_errno(kfd_unmap(kfd, q.ring.handle, gpu.gpu_id), 0, "UNMAP of a queue's ring");
		must(kfd_map(kfd, q.ring.handle, gpu.gpu_id), "MAP");
	}
	check_errno(queue_destroy(kfd, 0), 0, "DESTROY_QUEUE");
	check_errno(queue_destroy(kfd, 0), EINVAL, "DESTROY_QUEUE again");
	args.queue_id = 55;
	must(create(&args), "CREATE_QUEUE");
	check_u64(args.queue_id, 0, "an id that was freed is used again");
	check_u64(args.doorbell_offset, doorbell, "... and an SDMA queue's doorbell is that of its engine");
	must(queue_destroy(kfd, 0), "DESTROY_QUEUE");
	must(queue_destroy(kfd, 1), "DESTROY_QUEUE");
	args.ring_size = 0;
	if (release >= 618) {
		check_errno(create(&args), EINVAL, "a ring of 0 bytes counts as 1024, which is one page");
	} else {
		check_errno(create(&args), 0, "a ring of 0 bytes, whose mapping may have any size");
		must(queue_destroy(kfd, args.queue_id), "DESTROY_QUEUE");
	}
	check_errno(kfd_unmap(kfd, q.ring.handle, gpu.gpu_id), 0, "UNMAP of a ring without queue");
	must(kfd_map(kfd, q.ring.handle, gpu.gpu_id), "MAP");
	buffer_free(kfd, &q.ring);
	buffer_free(kfd, &q.pointers);
	buffer_free(kfd, &q2.ring);
	buffer_free(kfd, &q2.pointers);
}

static void check_old_struct(void)
{
	struct sdma_queue q = unborn();
	struct create_queue args = sdma_args(&q);

	args.engine = 0xdead;
	check_errno(ioctl(kfd, NR_CREATE_QUEUE_OLD, &args), 0, "CREATE_QUEUE with the struct before 1.17");
	check_u64(args.engine, 0xdead, "... leaves alone what is behind it");
	must(queue_destroy(kfd, args.queue_id), "DESTROY_QUEUE");
	buffer_free(kfd, &q.ring);
	buffer_free(kfd, &q.pointers);
}

/* The first doorbell of an SDMA engine follows from its place among those of all partitions of the device. */
static void check_sdma_doorbells(void)
{
	unsigned int i, n = count_gpus(NULL);

	for (i = 0; i < n && i < 8; i++) {
		struct node node = node_gpu(i);
		uint64_t engine = node_partition(&node) * (node.sdma_engines + node.xgmi_engines);
		uint64_t want = 0x100 + 10 * engine;
		int file = drm_fd;
		struct sdma_queue q;

		if (node.gpu_id != gpu.gpu_id) {
			file = render_open(node.render_minor);
			must(kfd_acquire(kfd, file, node.gpu_id), "ACQUIRE_VM");
		}
		if (node.gfx >= 90400 && node.gfx < 100000 && release >= 702)
			want = (want + 3) & ~3ull;
		q = sdma_new(kfd, file, node.gpu_id);
		check_u64((q.doorbell_offset & (DOORBELLS - 1)) / 8, want,
			  "doorbell of the first SDMA engine of GPU %u", i);
		sdma_free(&q, kfd);
	}
}

/* The kernel's own number of a queue's type is saved, and that of XGMI engines has changed. */
static void check_saved_type(void)
{
	static struct state state;
	struct sdma_queue q = unborn();
	struct create_queue args = sdma_args(&q);

	if (!gpu.xgmi_engines || count_gpus(NULL) > MAX_STATE_GPUS) {
		check_skip("the type that XGMI queues are saved with: no such engines, or too many GPUs");
	} else {
		args.type = 3;
		must(create(&args), "CREATE_QUEUE");
		must(state_info(kfd, &state), "PROCESS_INFO");
		must(state_checkpoint(kfd, &state), "CHECKPOINT");
		check_u64(((struct queue_priv *)state_objects(&state))->type, release < 618 ? 4 : 3,
			  "the type that an XGMI queue is saved with");
		state_close_fds(&state);
		must(criu_simple(kfd, OP_UNPAUSE), "UNPAUSE");
		must(queue_destroy(kfd, args.queue_id), "DESTROY_QUEUE");
	}
	buffer_free(kfd, &q.ring);
	buffer_free(kfd, &q.pointers);
}

/* There are as many SDMA queues as the engines have. */
static void check_limits(void)
{
	struct sdma_queue q = unborn();
	struct create_queue args = sdma_args(&q);
	uint64_t n = 0, want = gpu.sdma_engines * gpu.queues_per_engine, i;

	while (n <= want && !create(&args))
		n++;
	check_u64(n, want, "as many SDMA queues as there are");
	check_errno(create(&args), ENOMEM, "one more");
	args.type = 3;
	check_errno(create(&args), gpu.xgmi_engines ? 0 : ENOMEM, "the XGMI engines have their own");
	if (gpu.xgmi_engines)
		must(queue_destroy(kfd, args.queue_id), "DESTROY_QUEUE");
	for (i = 0; i < n; i++)
		must(queue_destroy(kfd, i), "DESTROY_QUEUE");
	args.type = 4;
	args.engine = gpu.sdma_engines + gpu.xgmi_engines - 1;
	if (kfd_minor_version(kfd) >= 17) {
		check_errno(create(&args), 0, "a queue on the last engine");
		must(queue_destroy(kfd, args.queue_id), "DESTROY_QUEUE");
	}
	buffer_free(kfd, &q.ring);
	buffer_free(kfd, &q.pointers);
}

/* ---- work ---- */

static void fill(struct buffer *b, uint32_t seed)
{
	uint32_t *p = (uint32_t *)b->va;
	uint64_t i;

	for (i = 0; i < b->size / 4; i++)
		p[i] = seed = seed * 1664525 + 1013904223;
}

static void check_copy(void)
{
	struct buffer a = buffer_new(kfd, drm_fd, gpu.gpu_id, BYTES, VRAM_RW);
	struct buffer b = buffer_new(kfd, drm_fd, gpu.gpu_id, BYTES, GTT_RW);
	struct sdma_queue q = sdma_new(kfd, drm_fd, gpu.gpu_id);
	unsigned int i;
	bool ok = true;

	for (i = 0; i < 5; i++) {
		fill(&a, i);
		sdma_copy(&q, b.va, a.va, BYTES);
		sdma_ring_doorbell(&q);
		ok = ok && sdma_drain(&q, 3000) && !memcmp((void *)a.va, (void *)b.va, BYTES);
		usleep(i * 15000); /* the engine falls asleep in between */
	}
	check_true(ok, "copies, with the engine awake and asleep");

	memset((void *)b.va, 0, BYTES);
	sdma_copy(&q, b.va + 3, a.va + 4093, 4099);
	sdma_ring_doorbell(&q);
	check_true(sdma_drain(&q, 3000) && !memcmp((void *)(b.va + 3), (void *)(a.va + 4093), 4099) &&
			   !((uint8_t *)b.va)[2] && !((uint8_t *)b.va)[3 + 4099],
		   "a copy of odd size between odd addresses");
	sdma_free(&q, kfd);
	buffer_free(kfd, &a);
	buffer_free(kfd, &b);
}

static void check_wrap(void)
{
	struct buffer flag = buffer_new(kfd, drm_fd, gpu.gpu_id, PAGE, GTT_RW);
	struct sdma_queue q = sdma_new(kfd, drm_fd, gpu.gpu_id);
	unsigned int i, n = 0;
	bool ok = true;

	/* Packets of 16 and 28 bytes: one of them will stand across the ring's end. */
	while (q.wptr < 2 * RING + 1000) {
		for (i = 0; i < 500; i++, n++) {
			sdma_fence(&q, flag.va, n);
			sdma_copy(&q, flag.va + 8, flag.va, 4);
		}
		sdma_ring_doorbell(&q);
		ok = ok && sdma_drain(&q, 20000);
	}
	check_true(ok, "a ring can be gone round");
	check_u64(((uint32_t *)flag.va)[2], n - 1, "... all packets of which were executed");
	check_u64(sdma_rptr(&q), q.wptr, "... and the read pointer goes on counting");
	sdma_free(&q, kfd);
	buffer_free(kfd, &flag);
}

/* Two queues, each waiting for what the other writes. */
/* The largest ring, full, that begins with the longest packet. */
static void check_large_ring(void)
{
	const uint64_t size = 2ull << 30;
	const uint32_t words = 1 << 20;
	struct sdma_queue q = unborn();
	struct buffer target = buffer_new(kfd, drm_fd, gpu.gpu_id, words * 4, GTT_RW);
	struct buffer ring = buffer_new(kfd, drm_fd, gpu.gpu_id, size, GTT_RW);
	struct create_queue args = sdma_args(&q);
	uint32_t *dw = (uint32_t *)ring.va;
	uint64_t end = now_ms() + 120000;

	dw[0] = 2;
	memcpy(&dw[1], &target.va, 8);
	dw[3] = words - 1;
	dw[4] = 0x600d;
	dw[3 + words] = 0xf00d;
	args.ring = ring.va;
	args.ring_size = size;
	check_errno(ioctl(kfd, NR_CREATE_QUEUE, &args), 0, "CREATE_QUEUE with a ring of 2 GiB");
	q.doorbell_offset = args.doorbell_offset;
	sdma_map_doorbell(&q, kfd, args.doorbell_offset);
	/* The engine may get the queue later than its doorbell rings: it reads the write pointer then. */
	q.wptr = size;
	sdma_ring_doorbell(&q);
	while (((volatile uint32_t *)target.va)[words - 1] != 0xf00d && now_ms() < end)
		usleep(1000);
	check_u64(((uint32_t *)target.va)[0], 0x600d, "the longest packet is executed");
	check_u64(((uint32_t *)target.va)[words - 1], 0xf00d, "... to its end");
	must(queue_destroy(kfd, args.queue_id), "DESTROY_QUEUE");
	munmap(q.doorbell_page, DOORBELLS);
	buffer_free(kfd, &ring);
	buffer_free(kfd, &target);
	buffer_free(kfd, &q.ring);
	buffer_free(kfd, &q.pointers);
}

static void check_two(void)
{
	struct buffer flag = buffer_new(kfd, drm_fd, gpu.gpu_id, PAGE, GTT_RW);
	struct sdma_queue a = sdma_new(kfd, drm_fd, gpu.gpu_id), b = sdma_new(kfd, drm_fd, gpu.gpu_id);
	unsigned int i;

	for (i = 1; i <= 20; i++) {
		sdma_fence(&a, flag.va, i);
		sdma_poll(&a, flag.va + 64, i);
		sdma_poll(&b, flag.va, i);
		sdma_fence(&b, flag.va + 64, i);
	}
	sdma_ring_doorbell(&a);
	usleep(20000);
	check_true(sdma_rptr(&a) < a.wptr, "a queue waits in a POLL_REGMEM packet");
	sdma_ring_doorbell(&b);
	check_true(sdma_drain(&a, 5000) && sdma_drain(&b, 5000), "two queues go in step");
	sdma_free(&a, kfd);
	sdma_free(&b, kfd);
	buffer_free(kfd, &flag);
}

static void check_userptr(void)
{
	uint8_t *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct buffer a = buffer_new(kfd, drm_fd, gpu.gpu_id, 3 * PAGE, VRAM_RW);
	struct sdma_queue q = sdma_new(kfd, drm_fd, gpu.gpu_id);
	uint64_t offset = (uintptr_t)p, handle = 0;

	fill(&a, 9);
	must(kfd_alloc(kfd, gpu.gpu_id, (uintptr_t)p, 3 * PAGE, MEM_USERPTR | MEM_WRITABLE, &offset, &handle), "ALLOC");
	must(kfd_map(kfd, handle, gpu.gpu_id), "MAP");
	sdma_copy(&q, (uintptr_t)p, a.va, 3 * PAGE);
	sdma_ring_doorbell(&q);
	check_true(sdma_drain(&q, 3000) && !memcmp(p, (void *)a.va, 3 * PAGE), "a copy to user memory");
	madvise(p, 3 * PAGE, MADV_DONTNEED);
	sdma_copy(&q, (uintptr_t)p + PAGE, a.va, PAGE);
	sdma_ring_doorbell(&q);
	check_true(sdma_drain(&q, 3000) && !p[0] && !memcmp(p + PAGE, (void *)a.va, PAGE),
		   "... whose pages were exchanged");
	sdma_free(&q, kfd);
	must(kfd_unmap(kfd, handle, gpu.gpu_id), "UNMAP");
	must(kfd_free(kfd, handle), "FREE");
	munmap(p, 3 * PAGE);
	buffer_free(kfd, &a);
}

/* ---- updates and faults ---- */

static int update(uint32_t id, uint64_t ring, uint32_t size, uint32_t percentage)
{
	struct kfd_ioctl_update_queue_args args = {
		.queue_id = id,
		.ring_base_address = ring,
		.ring_size = size,
		.queue_percentage = percentage,
	};

	return ioctl(kfd, NR_UPDATE_QUEUE, &args);
}

static void check_update(void)
{
	struct buffer flag = buffer_new(kfd, drm_fd, gpu.gpu_id, PAGE, GTT_RW);
	struct sdma_queue q = sdma_new(kfd, drm_fd, gpu.gpu_id);

	check_errno(update(q.queue_id, q.ring.va, RING, 101), EINVAL, "UPDATE_QUEUE to more than 100 percent");
	check_errno(update(q.queue_id, q.ring.va, 3000, 100), EINVAL, "UPDATE_QUEUE to a ring of an odd size");
	check_errno(update(77, q.ring.va, RING, 100), EFAULT, "UPDATE_QUEUE of an unknown queue");
	check_errno(update(q.queue_id, q.ring.va + PAGE, RING, 100), checks_buffers() ? EFAULT : 0,
		    "UPDATE_QUEUE to an unmapped ring");
	check_errno(update(q.queue_id, q.ring.va, RING, 0), 0, "UPDATE_QUEUE to 0 percent");
	sdma_fence(&q, flag.va, 5);
	sdma_ring_doorbell(&q);
	usleep(50000);
	check_u64(sdma_rptr(&q), 0, "... stops the queue");
	check_errno(update(q.queue_id, q.ring.va, RING, 100), 0, "UPDATE_QUEUE to 100 percent");
	check_true(sdma_drain(&q, 3000), "... lets it go on");
	check_errno(update(q.queue_id, 0, 0, 100), 0, "UPDATE_QUEUE to no ring");
	sdma_fence(&q, flag.va, 6);
	sdma_ring_doorbell(&q);
	usleep(50000);
	check_u64(*(uint32_t *)flag.va, 5, "... stops it, too");
	sdma_free(&q, kfd);
	buffer_free(kfd, &flag);
}

struct fault_case {
	const char *what;
	/* Places, from the beginning of the first of three pages of which one is a buffer, or of a read-only buffer. */
	bool from_hole, to_last, to_read_only;
	uint32_t bytes;
};

/* Waits until the process is told of a fault at @bad. */
static void check_exception(const char *what, const struct kfd_ioctl_create_event_args *event, uint64_t bad)
{
	struct event_data data = { .event_id = event->event_id };
	struct kfd_ioctl_wait_events_args wait = {
		.events_ptr = (uintptr_t)&data,
		.num_events = 1,
		.wait_for_all = 1,
		.timeout = 3000,
	};

	must(ioctl(kfd, NR_WAIT_EVENTS, &wait), "WAIT_EVENTS");
	check_u64(wait.wait_result, 0, "%s: a memory exception", what);
	check_u64(data.memory.va, bad, "%s: ... that names the address", what);
	check_u64(data.memory.gpu_id, gpu.gpu_id, "%s: ... on the GPU", what);
}

static bool copy_runs(struct sdma_queue *q, const struct buffer *b)
{
	sdma_copy(q, b->va + 8, b->va, 4);
	sdma_ring_doorbell(q);
	return sdma_drain(q, 500);
}

/* All queues of the process stop on that GPU, and on no other. */
static void check_evicted(const char *what, struct sdma_queue *other, const struct buffer *a)
{
	struct node second = count_gpus(NULL) > 1 ? node_gpu(1) : gpu;
	struct sdma_queue young = sdma_new(kfd, drm_fd, gpu.gpu_id), far;
	struct buffer b;
	int fd;

	check_true(!copy_runs(other, a), "%s: another queue of the process runs no more", what);
	check_true(!copy_runs(&young, a), "%s: nor does a new one", what);
	if (second.gpu_id == gpu.gpu_id)
		return;
	fd = render_open(second.render_minor);
	must(kfd_acquire(kfd, fd, second.gpu_id), "ACQUIRE_VM");
	b = buffer_new(kfd, fd, second.gpu_id, PAGE, GTT_RW);
	far = sdma_new(kfd, fd, second.gpu_id);
	check_true(copy_runs(&far, &b), "%s: one on another GPU does", what);
}

static void check_fault(const void *arg)
{
	const struct fault_case *c = arg;
	struct kfd_ioctl_create_event_args event = { .event_type = 8, .auto_reset = 1 };
	uint64_t last = reserve(3 * PAGE), hole = last + 2 * PAGE, handle = 0, bad;
	struct sdma_queue q, other;
	struct buffer a, ro;

	kfd = kfd_open();
	drm_fd = render_open(gpu.render_minor);
	must(kfd_acquire(kfd, drm_fd, gpu.gpu_id), "ACQUIRE_VM");
	a = buffer_new(kfd, drm_fd, gpu.gpu_id, 2 * PAGE, GTT_RW);
	ro = buffer_new(kfd, drm_fd, gpu.gpu_id, PAGE, MEM_GTT);
	must(kfd_alloc(kfd, gpu.gpu_id, last, PAGE, GTT_RW, NULL, &handle), "ALLOC");
	must(kfd_map(kfd, handle, gpu.gpu_id), "MAP");
	other = sdma_new(kfd, drm_fd, gpu.gpu_id);
	q = sdma_new(kfd, drm_fd, gpu.gpu_id);
	check_true(copy_runs(&other, &a), "%s: before it, queues run", c->what);
	must(ioctl(kfd, NR_CREATE_EVENT, &event), "CREATE_EVENT");
	bad = c->from_hole ? hole : c->to_last ? last + PAGE : ro.va;
	sdma_copy(&q, c->to_last ? last : c->to_read_only ? ro.va : a.va, c->from_hole ? hole : a.va, c->bytes);
	sdma_ring_doorbell(&q);
	check_exception(c->what, &event, bad);
	check_u64(sdma_rptr(&q), 0, "%s: the queue stands at the packet", c->what);
	check_evicted(c->what, &other, &a);
}

static void check_faults(void)
{
	static const struct fault_case cases[] = {
		{ .what = "reading what is not mapped", .from_hole = true, .bytes = 1 },
		{ .what = "one byte behind a buffer", .to_last = true, .bytes = PAGE + 1 },
		{ .what = "writing to a read-only buffer", .to_read_only = true, .bytes = 16 },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		conformance_in_process(check_fault, &cases[i]);
}

/* ---- rest ---- */

static void check_gws_and_masks(void)
{
	struct sdma_queue q = sdma_new(kfd, drm_fd, gpu.gpu_id);
	struct kfd_ioctl_alloc_queue_gws_args gws = { .queue_id = 99, .num_gws = 1 };
	struct kfd_ioctl_set_cu_mask_args mask = { .queue_id = q.queue_id, .num_cu_mask = 33 };
	struct kfd_ioctl_get_queue_wave_state_args waves = { .queue_id = q.queue_id };
	uint32_t bits[4] = { ~0u, ~0u, ~0u, ~0u };

	check_errno(ioctl(kfd, NR_QUEUE_GWS, &gws), EINVAL, "GWS for an unknown queue");
	gws.queue_id = q.queue_id;
	if (gpu.num_gws) {
		check_errno(ioctl(kfd, NR_QUEUE_GWS, &gws), 0, "GWS for a queue");
		check_errno(ioctl(kfd, NR_QUEUE_GWS, &gws), EBUSY, "... which has it already");
		gws.num_gws = 0;
		check_errno(ioctl(kfd, NR_QUEUE_GWS, &gws), 0, "... and gives it back");
		check_errno(ioctl(kfd, NR_QUEUE_GWS, &gws), EINVAL, "... once");
	} else {
		check_errno(ioctl(kfd, NR_QUEUE_GWS, &gws), ENODEV, "GWS on a GPU without");
	}
	check_errno(ioctl(kfd, NR_CU_MASK, &mask), EINVAL, "a CU mask of 33 bits");
	mask.num_cu_mask = 0;
	check_errno(ioctl(kfd, NR_CU_MASK, &mask), EINVAL, "a CU mask of no bits");
	mask.num_cu_mask = 128;
	check_errno(ioctl(kfd, NR_CU_MASK, &mask), EFAULT, "a CU mask that is not there");
	mask.cu_mask_ptr = (uintptr_t)bits;
	check_errno(ioctl(kfd, NR_CU_MASK, &mask), 0, "a CU mask");
	mask.queue_id = 99;
	check_errno(ioctl(kfd, NR_CU_MASK, &mask), EFAULT, "a CU mask for an unknown queue");
	check_errno(ioctl(kfd, NR_WAVE_STATE, &waves), EINVAL, "wave state of an SDMA queue");
	waves.queue_id = 99;
	check_errno(ioctl(kfd, NR_WAVE_STATE, &waves), EFAULT, "wave state of an unknown queue");
	sdma_free(&q, kfd);
}

/* Argument: the release whose rules hold. */
int main(int argc, char **argv)
{
	release = release_of(argc, argv);
	gpu = node_gpu(0);
	kfd = kfd_open();
	drm_fd = render_open(gpu.render_minor);
	must(kfd_acquire(kfd, drm_fd, gpu.gpu_id), "ACQUIRE_VM");
	check_create_errors();
	check_create();
	check_old_struct();
	check_sdma_doorbells();
	check_saved_type();
	check_limits();
	check_copy();
	check_wrap();
	check_large_ring();
	check_two();
	check_userptr();
	check_update();
	check_faults();
	check_gws_and_masks();
	return conformance_end();
}
