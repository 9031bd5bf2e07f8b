// SPDX-License-Identifier: GPL-2.0-only
/*
 * User SDMA queues: what CREATE_QUEUE checks, the numbers and doorbells that queues get, the type that is saved.
 */
#include "criu_test.h"

static int kfd, drm_fd;
static struct node gpu;
static unsigned int release;

#define BAD_GPU	 0xfffe
#define ENOTSUPP 524

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

/* ---- updates and faults ---- */

struct fault_case {
	const char *what;
	/* Places, from the beginning of the first of three pages of which one is a buffer, or of a read-only buffer. */
	bool from_hole, to_last, to_read_only;
	uint32_t bytes;
};

/* ---- rest ---- */

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
	return conformance_end();
}
