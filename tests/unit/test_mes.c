// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues that MES maps: which are refused, which calls make them again, and that they are where they were then. The
 * stopped process is this program; a KFD and firmware that are made up here answer its calls.
 */
#include <fcntl.h>
#include <libdrm/amdgpu_drm.h>
#include <sys/syscall.h>

#include "unit.h"
#include "amdgpu_plugin_util.h"
#include "kernel/kfd.h"
#include "kernel/machine.h"
#include "kernel/mes.h"
#include "kernel/tasks.h"
#include "stopped/inject.h"
#include "stopped/recreate.h"
#include "log_stub.h"
#include "machine_text.h"
#include "records_fixture.h"

#define GPU	    0x9e41u
#define USER_GPU    0x1234u
#define NR_QUEUES   6
#define PACKETS	    64u
#define RING_BYTES  (PACKETS * 64u)
#define SDMA_FIRST  300u /* doorbell of the first SDMA queue */
#define NR_SDMA	    8u	 /* of the GPU */
#define MINOR	    130u
#define OWN_KFD	    66 /* of criu */
#define COMPUTE_MQD 2048u
#define SDMA_MQD    512u
#define STACK	    0xa000u

/* ---- the process' memory ---- */

/* As ROCm's runtime has it. */
struct runtime_queue {
	uint32_t type, features;
	uint64_t base, signal;
	uint32_t size, reserved;
	uint64_t id, reserved1[2], write, reserved2[8], read;
};

static struct memory {
	_Alignas(64) uint8_t ring[RING_BYTES];
	struct runtime_queue head;
} memory[NR_QUEUES];
static uint64_t doorbells[1024];

/* ---- KFD and firmware ---- */

static struct live {
	bool is_there;
	struct kfd_ioctl_create_queue_args args;
	uint32_t number, doorbell;
	uint64_t at; /* packets, or bytes */
} live[32];
static bool derives, is_dead, loses_count;
static unsigned int nr_ran, nr_created, nr_destroyed, nr_rung;
static uint32_t first_free_number;
static int create_error;
/* What criu has, and which SDMA queues are those of other processes. */
static struct live own[NR_SDMA];
static bool is_others[NR_SDMA];
static unsigned int nr_buffers, nr_mapped;
static int own_error, acquire_error;
static bool is_begun;

static uint32_t lowest(bool (*is_taken)(uint32_t value, uint32_t gpu), uint32_t from, uint32_t gpu)
{
	while (is_taken(from, gpu))
		from++;
	return from;
}

static bool number_is_taken(uint32_t number, uint32_t gpu)
{
	for (size_t i = 0; i < ARRAY_SIZE(live); i++)
		if (live[i].is_there && live[i].number == number)
			return true;
	return false;
}

static bool doorbell_is_taken(uint32_t doorbell, uint32_t gpu)
{
	for (size_t i = 0; i < ARRAY_SIZE(live); i++)
		if (live[i].is_there && live[i].doorbell == doorbell && live[i].args.gpu_id == gpu)
			return true;
	for (size_t i = 0; i < NR_SDMA; i++)
		if ((own[i].is_there && own[i].doorbell == doorbell) || (is_others[i] && doorbell == SDMA_FIRST + i))
			return true;
	return false;
}

/* 0 where all are taken. */
static uint32_t lowest_sdma(void)
{
	uint32_t ret = lowest(doorbell_is_taken, SDMA_FIRST, USER_GPU);

	return ret < SDMA_FIRST + NR_SDMA ? ret : 0;
}

static int create(struct kfd_ioctl_create_queue_args *args)
{
	struct live *q = live;

	if (create_error)
		return -create_error;
	while (q->is_there)
		q++;
	*q = (struct live){ .args = *args };
	q->number = lowest(number_is_taken, first_free_number, 0);
	q->doorbell = args->queue_type == KFD_IOC_QUEUE_TYPE_SDMA ? lowest_sdma()
								  : lowest(doorbell_is_taken, 0, args->gpu_id);
	q->is_there = true;
	assert_int_equal(*(uint64_t *)(uintptr_t)args->read_pointer_address, 0);
	assert_int_equal(*(uint64_t *)(uintptr_t)args->write_pointer_address, 0);
	args->queue_id = q->number;
	args->doorbell_offset = 3ull << 62 | (uint64_t)args->gpu_id << 46 | q->doorbell * 8;
	nr_created++;
	return 0;
}

static int destroy(const struct kfd_ioctl_destroy_queue_args *args)
{
	for (size_t i = 0; i < ARRAY_SIZE(live); i++)
		if (live[i].is_there && live[i].number == args->queue_id) {
			live[i].is_there = false;
			nr_destroyed++;
			return 0;
		}
	return -EINVAL;
}

struct packet {
	uint16_t header, reserved[3];
	uint64_t dependencies[5], reserved2, completion;
};

/* False where it stays. */
static bool run_packet(struct live *q, uint8_t *ring)
{
	struct packet *packet = (struct packet *)(ring + q->at % PACKETS * 64);

	if ((packet->header & 0xff) != 3 || packet->dependencies[0])
		return false;
	packet->header = 1;
	if (packet->completion)
		((int64_t *)(uintptr_t)packet->completion)[1]--;
	q->at++;
	nr_ran++;
	return true;
}

static void run_aql(struct live *q, uint64_t end)
{
	uint64_t left = (end - q->at) % (2 * (uint64_t)PACKETS);

	if (derives)
		q->at = end - (left > PACKETS ? left - PACKETS : left);
	while (q->at < end && run_packet(q, (uint8_t *)(uintptr_t)q->args.ring_base_address))
		;
	*(uint64_t *)(uintptr_t)q->args.read_pointer_address = loses_count ? q->at + PACKETS : q->at;
}

static void run_sdma(struct live *q, uint64_t end)
{
	const uint8_t *ring = (uint8_t *)(uintptr_t)q->args.ring_base_address;
	uint32_t nop;

	while (q->at < end) {
		memcpy(&nop, ring + q->at % RING_BYTES, sizeof(nop));
		if (nop & 0xff)
			break;
		q->at += 4 * (1 + (nop >> 16 & 0x3fff));
		nr_ran++;
	}
	*(uint64_t *)(uintptr_t)q->args.read_pointer_address = q->at;
}

static void ring_doorbell(uint64_t *at, uint64_t value)
{
	*at = value;
	nr_rung++;
	for (size_t i = 0; i < ARRAY_SIZE(live); i++)
		if (live[i].is_there && live[i].doorbell == at - doorbells && !is_dead) {
			bool is_sdma = live[i].args.queue_type == KFD_IOC_QUEUE_TYPE_SDMA;

			(is_sdma ? run_sdma : run_aql)(&live[i], is_sdma ? value : value + 1);
		}
}

/* ---- criu's own process ---- */

/* Only one restore at a time has queues of its own. */
static bool is_turn;
static int turn_pipe;

static bool turn_lasts(void)
{
	char byte;

	return is_turn && read(turn_pipe, &byte, 1) < 0;
}

static int own_create(struct kfd_ioctl_create_queue_args *args)
{
	struct live *q = own;

	if (own_error || !lowest_sdma())
		return own_error ? own_error : -ENOMEM;
	while (q->is_there)
		q++;
	assert_true(turn_lasts());
	assert_int_equal(args->queue_type, KFD_IOC_QUEUE_TYPE_SDMA);
	assert_int_equal(args->gpu_id, GPU);
	assert_true(nr_mapped && nr_mapped % 2 == 0);
	assert_int_equal(args->read_pointer_address - args->write_pointer_address, 8);
	assert_int_not_equal(args->write_pointer_address, args->ring_base_address);
	*q = (struct live){ .number = 50 + (uint32_t)(q - own), .doorbell = lowest_sdma(), .is_there = true };
	args->queue_id = q->number;
	args->doorbell_offset = 3ull << 62 | (uint64_t)GPU << 46 | q->doorbell * 8;
	return 0;
}

static int own_destroy(const struct kfd_ioctl_destroy_queue_args *args)
{
	struct live *q = &own[args->queue_id - 50];

	assert_true(q->is_there && turn_lasts());
	q->is_there = false;
	return 0;
}

int __wrap_call_ioctl(int fd, unsigned long op, void *args)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args *alloc = args;

	assert_int_equal(fd, OWN_KFD);
	switch (op) {
	case AMDKFD_IOC_ACQUIRE_VM:
		assert_int_equal(((struct kfd_ioctl_acquire_vm_args *)args)->gpu_id, GPU);
		return acquire_error;
	case AMDKFD_IOC_ALLOC_MEMORY_OF_GPU:
		assert_int_equal(alloc->gpu_id, GPU);
		alloc->handle = 0x700 + nr_buffers++;
		return 0;
	case AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU:
		assert_int_equal(((struct kfd_ioctl_map_memory_to_gpu_args *)args)->handle, 0x700 + --nr_mapped);
		return 0;
	case AMDKFD_IOC_CREATE_QUEUE:
		return own_create(args);
	default:
		assert_int_equal(op, AMDKFD_IOC_DESTROY_QUEUE);
		return own_destroy(args);
	}
}

int kfd_map(int kfd, uint64_t handle, const uint32_t *gpu_ids, uint32_t nr_gpus)
{
	assert_int_equal(kfd, OWN_KFD);
	assert_int_equal(handle, 0x700 + nr_mapped++);
	assert_true(nr_gpus == 1 && *gpu_ids == GPU);
	return 0;
}

int kfd_free(int kfd, uint64_t handle)
{
	assert_int_equal(kfd, OWN_KFD);
	assert_int_equal(handle, 0x700 + --nr_buffers);
	assert_int_equal(nr_mapped, nr_buffers); /* one that is mapped is not freed */
	return 0;
}

STUB(dev_t, device_render_number, (uint32_t minor), minor)

int device_open(const char *path, dev_t number, int flags)
{
	assert_string_equal(path, "/dev/dri/renderD130");
	assert_int_equal(number, MINOR);
	return open("/dev/null", flags | O_CLOEXEC);
}

int turn_begin(void)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	turn_pipe = ends[0];
	is_turn = true;
	return ends[1];
}

static void turn_is_over(void)
{
	assert_false(turn_lasts());
	if (is_turn)
		close(turn_pipe);
	is_turn = false;
}

static void nothing_of_criu_is_left(void)
{
	turn_is_over();
	for (size_t i = 0; i < NR_SDMA; i++)
		assert_false(own[i].is_there);
	assert_int_equal(nr_buffers, 0);
}

/* ---- what stands in for other files ---- */

int inject_look(pid_t tid, int kfd, struct inject *ret)
{
	*ret = (struct inject){ .tid = tid, .kfd = kfd };
	ret->own.regs.gs_base = 77;
	return 0;
}

int inject_begin(struct inject *inject)
{
	is_begun = true;
	return 0;
}

int inject_end(struct inject *inject)
{
	assert_int_equal(inject->own.regs.gs_base, 77);
	is_begun = false;
	return 0;
}

int inject_call(struct inject *inject, long nr, const uint64_t args[6], int64_t *ret)
{
	assert_true(is_begun);
	assert_int_equal(nr, SYS_arch_prctl);
	assert_int_equal(args[0], 0x1004);
	ring_doorbell((uint64_t *)(uintptr_t)args[1], inject->own.regs.gs_base);
	return 0;
}

int inject_kfd(struct inject *inject, unsigned long op, void *args)
{
	struct stat st;

	assert_true(is_begun);
	assert_int_equal(fstat(inject->kfd, &st), 0);
	assert_true(device_is_kfd(&st));
	return op == AMDKFD_IOC_CREATE_QUEUE ? create(args) : destroy(args);
}

/* /dev/full is the KFD. */
bool device_is_kfd(const struct stat *st)
{
	struct stat full;

	return !stat("/dev/full", &full) && S_ISCHR(st->st_mode) && st->st_rdev == full.st_rdev;
}

int task_device_vmas(pid_t pid, struct device_vma **ret, size_t *ret_count)
{
	struct device_vma *vmas = calloc(2, sizeof(*vmas));

	vmas[0] = (struct device_vma){ .start = 4096, .end = 8192, .offset = 3ull << 62 | (uint64_t)USER_GPU << 46 };
	vmas[1] = (struct device_vma){
		.start = (uintptr_t)doorbells,
		.end = (uintptr_t)(doorbells + 1024),
		.offset = 3ull << 62 | (uint64_t)GPU << 46,
	};
	*ret = vmas;
	*ret_count = 2;
	return 0;
}

/* A GPU of six engines with two arrays of eight CUs; the first one lacks a pair. */
static double now;
double __wrap_monotonic_seconds(void)
{
	return now += 0.01;
}

/* ---- queues ---- */

static int kfd_file;

static int setup(void **test)
{
	memset(live, 0, sizeof(live));
	memset(memory, 0, sizeof(memory));
	derives = is_dead = loses_count = is_begun = false;
	nr_ran = nr_created = nr_destroyed = nr_rung = first_free_number = create_error = 0;
	nr_mapped = nr_buffers = 0;
	own_error = acquire_error = 0;
	memset(own, 0, sizeof(own));
	memset(is_others, 0, sizeof(is_others));
	log_clear();
	for (size_t i = 0; i < NR_QUEUES; i++)
		for (size_t k = 0; k < RING_BYTES; k++)
			memory[i].ring[k] = (uint8_t)(k * 7 + i);
	kfd_file = open("/dev/full", O_RDWR | O_CLOEXEC);
	return kfd_file < 0;
}

static int teardown(void **test)
{
	close(kfd_file);
	return 0;
}

#define AGAIN(test) UNIT_TEST(test, setup, teardown)

/* Queue @i, whose memory has these indices. */
static struct queue_record a_queue(size_t i, uint32_t type, uint64_t read, uint64_t write)
{
	bool is_compute = type == QUEUE_TYPE_COMPUTE;

	memory[i].head.read = read;
	memory[i].head.write = write;
	return (struct queue_record){
		.number = (uint32_t)i,
		.type = type,
		.gpu_id = USER_GPU,
		.mapped_id = GPU,
		.actual_id = GPU,
		.minor = MINOR,
		.doorbell = (uint32_t)i + (is_compute ? 0 : SDMA_FIRST),
		.percent = 100,
		.priority = 5,
		.ring_address = (uintptr_t)memory[i].ring,
		.ring_size = RING_BYTES,
		.read_address = (uintptr_t)&memory[i].head.read,
		.write_address = (uintptr_t)&memory[i].head.write,
		.mqd_stack_size = STACK,
		.done = is_compute ? read % PACKETS : read,
	};
}

static void is_of_runtime(size_t i)
{
	memory[i].head.base = (uintptr_t)memory[i].ring;
	memory[i].head.size = PACKETS;
}

static void ring_is_as_before(size_t i)
{
	for (size_t k = 0; k < RING_BYTES; k++)
		assert_int_equal(memory[i].ring[k], (uint8_t)(k * 7 + i));
}

static int make_again(const struct queue_record *queues, size_t nr)
{
	int err = mes_recreate(OWN_KFD, getpid(), queues, nr);

	nothing_of_criu_is_left();
	return err;
}

/* One queue, of which a number that is not told is that of what works. */
/* clang-format off */
static const struct one {
	const char *what;
	bool is_sdma;
	uint64_t read, write; /* its indices */
	unsigned int ran;     /* packets that make it be there again */
	unsigned int rung;    /* by so many doorbells; 0: not asked */
	uint64_t is_at;	      /* then; 0: @read */
	uint64_t is_lower;    /* by how much its indices are, then */
	bool derives, is_dead, loses_count, is_taken; /* what KFD, firmware and others do */
	int create_error, own_error, acquire_error;
	bool is_of_runtime;
	uint32_t size;	     /* that the runtime has; 0: its own */
	uint32_t at_packet;  /* by its MQD, plus one; 0: @read */
	uint32_t doorbell, mapped_id; /* 0: as it is */
	int err;
	const char *says;
} ones[] = {
	{ "a queue is where it was", .read = 150, .write = 150, .ran = 150 },
	{ "one that has not run is not rolled", .read = 0 },
	{ "firmware may work out the index", .derives = true, .read = 150, .write = 150, .ran = 150 },
	{ "a full ring is rolled in halves", .derives = true, .read = 2 * PACKETS, .write = 2 * PACKETS, .ran = 2 * PACKETS,
	  .rung = 4 },
	{ "packets that wait are told of again", .read = 150, .write = 153, .ran = 150 },
	{ "the place in the ring is more exact than the index", .read = 150, .write = 153, .at_packet = 152 % PACKETS + 1,
	  .is_at = 152, .ran = 152 },
	{ "indices that do not fit the ring are refused", .read = 150, .write = 153, .at_packet = 149 % PACKETS + 1,
	  .err = -EBADMSG, .says = "do not fit its ring" },
	{ "a long life costs no more than a ring", .read = 1000005, .write = 1000005, .is_of_runtime = true,
	  .is_lower = 1000000, .ran = 5,
	  .says = "is at packet 5 instead of 1000005 (a ring has 64, and its MQD had 1000005)" },
	{ "a program that counts by itself keeps its count", .read = 1005, .write = 1005, .is_of_runtime = true,
	  .size = PACKETS * 2, .ran = 1005 },
	{ "an index that is promised stays", .read = 1005, .write = 1006, .is_of_runtime = true, .ran = 1005 },
	{ "sdma queues skip what they have read", .is_sdma = true, .read = 10 * RING_BYTES + 28, .write = 10 * RING_BYTES + 28,
	  .ran = 21 },
	{ "sdma packets that wait are told of again", .is_sdma = true, .read = 28, .write = 96, .ran = 1 },
	{ "a doorbell that would be another one is refused before", .read = 70, .write = 70, .doorbell = 1, .err = -EOPNOTSUPP,
	  .says = "queue 0 on gpu 0x1234: it has doorbell 1 and would get 0 when it is recreated" },
	{ "an sdma queue that somebody else has is told", .is_sdma = true, .read = 28, .write = 28, .is_taken = true,
	  .err = -EBUSY, .says = "queue 0 on gpu 0x1234: another process holds an SDMA queue that this one had" },
	{ "what criu cannot do for sdma queues is told", .is_sdma = true, .read = 28, .write = 28, .own_error = -EIO,
	  .err = -EIO, .says = "gpu 0x1234: criu cannot reserve SDMA queues" },
	{ "nor does criu without an address space", .is_sdma = true, .read = 28, .write = 28, .acquire_error = -EPERM, .err = -EPERM,
	  .says = "" },
	{ "a call that fails is told", .read = 70, .write = 70, .create_error = EINVAL, .err = -EINVAL,
	  .says = "queue 0 on gpu 0x1234 cannot be recreated: Invalid argument" },
	{ "a queue that does not run is told", .read = 70, .write = 70, .is_dead = true, .err = -ETIME,
	  .says = "was recreated and does not execute NOPs" },
	{ "a queue that counts otherwise is told", .read = 70, .write = 70, .loses_count = true, .err = -ETIME, .says = "" },
	{ "a doorbell that is mapped nowhere is told", .read = 70, .write = 70, .mapped_id = 0x4321, .err = -EBADMSG,
	  .says = "its doorbell is mapped nowhere" },
};
/* clang-format on */

static void prepare(const struct one *row)
{
	derives = row->derives;
	is_dead = row->is_dead;
	loses_count = row->loses_count;
	is_others[0] = row->is_taken;
	create_error = row->create_error;
	own_error = row->own_error;
	acquire_error = row->acquire_error;
	if (row->is_of_runtime)
		is_of_runtime(0);
	if (row->size)
		memory[0].head.size = row->size;
}

static void has_come_back(const struct one *row)
{
	uint64_t at = row->is_at ? row->is_at : row->read - row->is_lower;

	assert_int_equal(live[0].at, at);
	assert_int_equal(memory[0].head.read, at);
	assert_int_equal(memory[0].head.write, row->write - row->is_lower);
	assert_int_equal(live[0].args.queue_priority, 5);
	assert_int_equal(live[0].args.ctl_stack_size, STACK);
	assert_int_equal(nr_ran, row->ran);
	assert_true(row->rung ? nr_rung == row->rung : row->write ? nr_rung : !nr_rung);
	if (row->write)
		assert_int_equal(doorbells[row->is_sdma ? SDMA_FIRST : 0],
				 row->write - row->is_lower - !row->is_sdma);
	ring_is_as_before(0);
	assert_false(is_begun);
}

ROW_TEST(one_is_made_again, ones, what, setup, teardown)
{
	const struct one *row = *unit_state;
	struct queue_record queue = a_queue(0, row->is_sdma ? QUEUE_TYPE_SDMA : QUEUE_TYPE_COMPUTE, row->read, row->write);

	prepare(row);
	queue.counted = row->is_lower ? row->read : 0;
	queue.done = row->at_packet ? row->at_packet - 1 : queue.done;
	queue.doorbell = row->doorbell ? row->doorbell : queue.doorbell;
	queue.mapped_id = row->mapped_id ? row->mapped_id : queue.mapped_id;
	assert_int_equal(make_again(&queue, 1), row->err);
	if (row->says)
		assert_non_null(strstr(log_text, row->says));
	assert_true(log_errors <= 1 && (row->err || !log_errors));
	if (!row->err)
		has_come_back(row);
	else if (!row->is_dead && !row->loses_count && !row->mapped_id)
		assert_int_equal(nr_created, 0);
}

AGAIN(all_queues_of_a_process_come_back)
{
	struct queue_record queues[] = {
		a_queue(0, QUEUE_TYPE_SDMA, 280, 280),
		a_queue(1, QUEUE_TYPE_COMPUTE, 70, 70),
		a_queue(2, QUEUE_TYPE_COMPUTE, 3, 5),
		a_queue(3, QUEUE_TYPE_SDMA, 0, 0),
	};

	queues[1].doorbell = 0;
	queues[2].doorbell = 1;
	queues[3].doorbell = SDMA_FIRST + 1;
	assert_int_equal(make_again(queues, 4), 0);
	assert_int_equal(nr_created, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(live[i].number, i);
	assert_int_equal(live[1].at, 70);
	assert_int_equal(doorbells[1], 4);
}

AGAIN(numbers_that_are_free_are_filled_meanwhile)
{
	struct queue_record queues[] = { a_queue(1, QUEUE_TYPE_COMPUTE, 70, 70), a_queue(3, QUEUE_TYPE_SDMA, 28, 28) };

	queues[1].doorbell = SDMA_FIRST;
	assert_int_equal(make_again(queues, 2), 0);
	assert_int_equal(nr_created, 4);
	assert_int_equal(nr_destroyed, 2);
	assert_true(number_is_taken(1, 0) && number_is_taken(3, 0));
	assert_false(number_is_taken(0, 0) || number_is_taken(2, 0));
}

AGAIN(queues_that_restore_brings_back_have_their_numbers)
{
	struct queue_record queues[] = { { .is_restored = true, .number = 0 }, a_queue(1, QUEUE_TYPE_COMPUTE, 70, 70) };

	queues[1].doorbell = 0;
	first_free_number = 1;
	assert_int_equal(make_again(queues, 2), 0);
	assert_int_equal(nr_created, 1);
	assert_int_equal(nr_destroyed, 0);
}

/* Another process has the second, and the first, third and fourth are free. */
AGAIN(an_sdma_queue_gets_its_number_whatever_is_free_below)
{
	struct queue_record queues[] = {
		a_queue(0, QUEUE_TYPE_SDMA, 28, 28),
		a_queue(1, QUEUE_TYPE_COMPUTE, 70, 70),
		a_queue(2, QUEUE_TYPE_SDMA, 0, 0),
	};

	is_others[1] = true;
	acquire_error = -EBUSY; /* of a process before, criu has its address space already */
	queues[0].doorbell = SDMA_FIRST + 4;
	queues[1].doorbell = 0;
	assert_int_equal(make_again(queues, 3), 0);
	assert_int_equal(live[0].doorbell, SDMA_FIRST + 4);
	assert_int_equal(live[0].number, 0);
	assert_int_equal(live[2].doorbell, SDMA_FIRST + 2);
	assert_int_equal(live[2].number, 2);
}

AGAIN(without_its_kfd_file_nothing_can_be_made)
{
	struct queue_record queue = a_queue(0, QUEUE_TYPE_COMPUTE, 70, 70);

	close(kfd_file);
	assert_int_equal(make_again(&queue, 1), -EBADMSG);
	assert_non_null(strstr(log_text, "has no /dev/kfd open"));
	kfd_file = open("/dev/full", O_RDWR | O_CLOEXEC);
}

/* ---- records ---- */

static struct fixture_records records;
static struct kfd_criu_device_bucket device = { .user_gpu_id = USER_GPU, .actual_gpu_id = GPU, .drm_fd = 55 };

static struct topology *machine(unsigned int gfx)
{
	return machine_of(GPU, "1 drm_render_minor=%u gfx_target_version=%u", MINOR, gfx);
}

/* Adds a record; its MQD, in dwords. */
static uint32_t *record(uint32_t number, uint32_t type)
{
	bool is_compute = type == QUEUE_TYPE_COMPUTE;
	struct queue_record queue = {
		.ring_size = RING_BYTES,
		.gpu_id = USER_GPU,
		.type = type,
		.format = QUEUE_FORMAT_AQL,
		.number = number,
		.percent = 100,
		.mqd_size = is_compute ? COMPUTE_MQD : SDMA_MQD,
		.doorbell = number,
		.mqd_stack_size = STACK,
		.mqd_stack_offset = STACK,
		.mqd_wave_offset = STACK,
	};
	uint32_t *mqd;

	fixture_queue(&records, &queue);
	mqd = (uint32_t *)(records.bytes + records.size - queue.mqd_size);
	for (unsigned int i = 23; is_compute && i < 48; i++)
		mqd[i] = UINT32_MAX;
	return mqd;
}

static struct kfd_state state(void)
{
	struct kfd_state ret = fixture_state(&records);

	ret.devices = &device;
	ret.pid = 9;
	return ret;
}

static int list(unsigned int gfx, struct queue_record **ret, size_t *ret_nr)
{
	struct topology *topology = machine(gfx);
	struct kfd_state s = state();
	int err = mes_list(&s, topology, false, ret, ret_nr);

	topology_free(topology);
	return err;
}

/* The worst of all. */
static enum mes_verdict judge(void)
{
	struct kfd_state s = state();
	enum mes_verdict worst = MES_FINE;
	char why[LIMITS_TEXT_MAX];

	for (uint32_t i = 0; i < s.nr_queues; i++) {
		enum mes_verdict one = mes_judge(&s.queues[i], why);

		worst = one > worst ? one : worst;
	}
	return worst;
}

TEST(queues_are_listed_by_number)
{
	struct queue_record *queues;
	uint32_t *mqd;
	size_t nr;

	fixture_begin(&records, 1, 0);
	mqd = record(1, QUEUE_TYPE_COMPUTE);
	mqd[138] = 70 * 16;
	mqd[96] = 70;
	fixture_event(&records);
	record(0, QUEUE_TYPE_COMPUTE);
	records.bytes[8 + 8 + 88] = 1;
	assert_int_equal(list(110000, &queues, &nr), 0);
	assert_int_equal(nr, 2);
	assert_int_equal(queues[0].number, 0);
	assert_int_equal(queues[1].done, 70 % PACKETS);
	assert_int_equal(queues[1].counted, 70);
	assert_int_equal(queues[1].mqd_stack_size, STACK);
	assert_int_equal(queues[1].mapped_id, GPU);
	assert_int_equal(queues[1].actual_id, GPU);
	assert_int_equal(queues[1].minor, MINOR);
	free(queues);
	assert_int_equal(list(90008, &queues, &nr), 0);
	assert_int_equal(nr, 0);
}

/* The records are of an image, and each queue is compared with all others. */
TEST(more_queues_than_a_process_can_have_are_refused)
{
	static struct queue_record many[1025];
	struct topology *topology = machine(110000);
	struct queue_record *queues = NULL;
	struct kfd_state s;
	size_t nr = 0;

	fixture_begin(&records, 1, 0);
	record(0, QUEUE_TYPE_SDMA);
	s = state();
	for (uint32_t i = 0; i < 1025; i++) {
		many[i] = s.queues[0];
		many[i].number = i % 1024;
	}
	s.queues = many;
	s.nr_queues = 1024;
	assert_int_equal(mes_list(&s, topology, false, &queues, &nr), 0);
	assert_int_equal(nr, 1024);
	free(queues);
	s.nr_queues++;
	assert_int_equal(mes_list(&s, topology, false, &queues, &nr), -EBADMSG);
	assert_string_equal(fail_text(), "pid 9: has 1025 queues, more than a process can have (1024)");
	fail_clear();
	topology_free(topology);
}

TEST(a_queue_that_runs_on_some_cus_is_not_made_again)
{
	struct queue_record *queues;
	size_t nr;

	fixture_begin(&records, 1, 0);
	record(0, QUEUE_TYPE_COMPUTE)[45] = 3;
	assert_int_equal(list(110000, &queues, &nr), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "it runs on some CUs only (CU mask)"));
	log_clear();
}

TEST(restore_does_not_get_them)
{
	struct topology *topology = machine(110000);
	struct kfd_state s;

	fixture_begin(&records, 1, 0);
	record(0, QUEUE_TYPE_COMPUTE);
	fixture_event(&records);
	record(1, QUEUE_TYPE_SDMA);
	s = state();
	mes_cut(&s, topology);
	assert_int_equal(s.nr_queues, 0);
	assert_int_equal(s.nr_objects, 1);
	assert_int_equal(s.priv_size, 8 + 8 + 64);
	fixture_read(&s);
	assert_true(s.is_known);
	topology_free(topology);
}

TEST(a_queue_in_a_kernel_is_busy)
{
	static const struct {
		unsigned int dword;
		uint32_t value;
	} busy[] = { { 174, STACK - 64 }, { 176, STACK + 64 }, { 168, 1 }, { 169, 5 } };

	for (size_t i = 0; i < ARRAY_SIZE(busy); i++) {
		fixture_begin(&records, 1, 0);
		record(0, QUEUE_TYPE_COMPUTE)[busy[i].dword] = busy[i].value;
		assert_int_equal(judge(), MES_BUSY);
	}
	fixture_begin(&records, 1, 0);
	record(0, QUEUE_TYPE_COMPUTE)[168] = 1u << 31; /* a flag */
	assert_int_equal(judge(), MES_FINE);
}

TEST(an_sdma_queue_in_a_copy_is_busy)
{
	static const unsigned int busy[] = { 14, 15, 23, 42 };
	uint32_t *mqd;

	for (size_t i = 0; i < ARRAY_SIZE(busy); i++) {
		fixture_begin(&records, 1, 0);
		mqd = record(0, QUEUE_TYPE_SDMA);
		mqd[5] = 28;
		assert_int_equal(judge(), MES_FINE); /* it waits before a command */
		mqd[busy[i]] = 1;
		assert_int_equal(judge(), MES_BUSY);
		mqd[3] = 28;
		assert_int_equal(judge(), busy[i] == 42 ? MES_BUSY : MES_FINE);
	}
}

static void is_never(uint64_t at, uint32_t value, const char *why)
{
	struct queue_record *queues;
	size_t nr;

	fixture_begin(&records, 1, 0);
	record(0, QUEUE_TYPE_COMPUTE);
	fixture_u32(records.bytes + 8 + 8 + at, value);
	assert_int_equal(judge(), MES_NEVER);
	assert_int_equal(list(110000, &queues, &nr), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, why));
	log_clear();
}

TEST(what_cannot_be_made_again_is_refused)
{
	is_never(72, 0, "its packets are PM4");
	is_never(84, 0, "it is switched off");
	is_never(92, 1, "a global wave sync");
	is_never(68, 3, "of a kind that is not known");
	is_never(16, 48, "has an unknown layout");
}

UNIT_MAIN(NULL, NULL)
