// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recreates queues of MES in a process that is stopped after RESUME (kernel/mes.h).
 *
 * All are created first, empty, with both indices 0. Then each executes NOP packets until it is at its old position,
 * half a ring at a time: firmware may know a full ring from an empty one by its indices' difference alone. Then rings
 * and indices get what they had. AQL queues of ROCm's runtime whose last packet was executed begin their count anew:
 * both indices become smaller by whole rings, so that no more than a ring of NOPs is executed, however long they lived.
 * The runtime reads the indices in memory; a program that creates queues by itself may count on its own, and gets its
 * own count.
 *
 * Doorbells are in no other address space, and the stopped process writes them: ARCH_GET_GS stores the GS base at an
 * address, in one piece of eight bytes.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/syscall.h>

#include "amdgpu_plugin_util.h"
#include "stopped/inject.h"
#include "stopped/memory.h"
#include "stopped/recreate.h"

#define ROLL_SECONDS 10 /* in which a queue has to take a step */
#define POLL_USEC    20

/* AQL packets and signals, as the HSA standard and ROCm's runtime lay them out. */
#define PACKET_BARRIER 3u
#define PACKET_HEADER  (PACKET_BARRIER | 1u << 8 | 2u << 9 | 2u << 11) /* in order, with fences of the system */
#define SIGNAL_USER    1
struct barrier {
	uint16_t header, reserved[3];
	uint64_t dependencies[5], reserved2, completion;
};
struct signal {
	int64_t kind, value;
	uint64_t mailbox, event, begin, end, reserved[2];
};

/* What ROCm's runtime has around the indices of an AQL queue (amd_queue_t). */
#define RUNTIME_WRITE_AT 0x38u
#define RUNTIME_READ_AT	 0x80u
struct runtime_queue {
	uint32_t type, features;
	uint64_t base, doorbell_signal;
	uint32_t size, reserved;
};

#define SDMA_NOP_MAX 0x4000u /* dwords of a packet that says how many follow it */

/* What a queue had, and what it is to have. */
struct saved_queue {
	uint64_t read, write; /* indices; in bytes of an SDMA queue */
	uint64_t lowered;     /* by how much both become smaller */
	uint64_t doorbell;    /* address */
	uint8_t *ring;
};

struct all_queues {
	pid_t pid;
	int kfd;    /* its file of /dev/kfd, a number there */
	struct device_vma *vmas;
	size_t nr_vmas;
	struct inject inject;
	const struct queue_record *queues;
	size_t nr;
	struct saved_queue *saved; /* of each queue */
	struct sdma_slots slots;
};

static int write_word(const struct all_queues *all, uint64_t address, uint64_t word)
{
	return memory_write(all->pid, address, &word, sizeof(word));
}

/* ---- saved ---- */

static bool is_compute(const struct queue_record *queue)
{
	return queue->type == QUEUE_TYPE_COMPUTE;
}

static uint64_t ring_packets(const struct queue_record *queue)
{
	return queue->ring_size / AQL_PACKET_BYTES;
}

static bool is_of_runtime(const struct all_queues *all, const struct queue_record *queue)
{
	struct runtime_queue head;

	if (queue->read_address - queue->write_address != RUNTIME_READ_AT - RUNTIME_WRITE_AT)
		return false;
	if (memory_read(all->pid, queue->write_address - RUNTIME_WRITE_AT, &head, sizeof(head))) {
		fail_clear();
		return false;
	}
	return head.base == queue->ring_address && head.size == ring_packets(queue);
}

static int find_doorbell(const struct all_queues *all, const struct queue_record *queue, uint64_t *ret)
{
	uint64_t at = (uint64_t)queue->doorbell * KFD_DOORBELL_BYTES;

	for (size_t i = 0; i < all->nr_vmas; i++) {
		const struct device_vma *vma = &all->vmas[i];
		uint64_t first = vma->offset & KFD_MMAP_WITHIN;

		if (vma->minor || kfd_mmap_type(vma->offset) != KFD_MMAP_TYPE_DOORBELL ||
		    kfd_mmap_gpu_id(vma->offset) != queue->mapped_id || at < first ||
		    at - first >= vma->end - vma->start)
			continue;
		*ret = vma->start + at - first;
		return 0;
	}
	return fail(-EBADMSG, "pid %d: queue %u on gpu %#x: its doorbell is mapped nowhere", all->pid, queue->number,
		    queue->gpu_id);
}

/* Saves ring and indices, and sets both indices to 0. */
static int save_and_clear(const struct all_queues *all, const struct queue_record *queue, struct saved_queue *saved)
{
	int err = find_doorbell(all, queue, &saved->doorbell);

	if (!err)
		err = memory_read(all->pid, queue->read_address, &saved->read, sizeof(saved->read));
	if (!err)
		err = memory_read(all->pid, queue->write_address, &saved->write, sizeof(saved->write));
	if (err)
		return err;
	/* The GPU may be slow to write the index: the place in the ring is exact. */
	saved->read = !is_compute(queue) ? queue->done :
		       saved->read + ((queue->done - saved->read) & (ring_packets(queue) - 1));
	if (saved->read > saved->write ||
	    saved->write - saved->read > (is_compute(queue) ? ring_packets(queue) : queue->ring_size))
		return fail(-EBADMSG,
			    "pid %d: queue %u on gpu %#x: its indices %#" PRIx64 " and %#" PRIx64 " do not fit its ring",
			    all->pid, queue->number, queue->gpu_id, saved->read, saved->write);
	saved->ring = malloc(queue->ring_size);
	if (!saved->ring)
		return -ENOMEM;
	err = memory_read(all->pid, queue->ring_address, saved->ring, queue->ring_size);
	if (!err && is_compute(queue) && saved->read == saved->write && is_of_runtime(all, queue))
		saved->lowered = saved->read & ~(ring_packets(queue) - 1);
	if (!err)
		err = write_word(all, queue->read_address, 0);
	return err ? err : write_word(all, queue->write_address, 0);
}

/* ---- created ---- */

static int create(struct all_queues *all, const struct mes_step *step)
{
	const struct queue_record *queue = &all->queues[step->queue];
	struct kfd_ioctl_create_queue_args args = {
		.ring_base_address = queue->ring_address,
		.write_pointer_address = queue->write_address,
		.read_pointer_address = queue->read_address,
		.ring_size = (uint32_t)queue->ring_size,
		.gpu_id = queue->gpu_id,
		.queue_type = is_compute(queue) ? KFD_IOC_QUEUE_TYPE_COMPUTE_AQL : KFD_IOC_QUEUE_TYPE_SDMA,
		.queue_percentage = queue->percent,
		.queue_priority = queue->priority,
		.eop_buffer_address = queue->eop_address,
		.eop_buffer_size = queue->eop_size,
		.ctx_save_restore_address = queue->cwsr_address,
		.ctx_save_restore_size = queue->cwsr_size,
		.ctl_stack_size = queue->mqd_stack_size,
	};
	uint32_t doorbell;
	int err = step->is_placeholder ? 0 : sdma_slots_free_for(&all->slots, queue);

	if (!err)
		err = inject_kfd(&all->inject, AMDKFD_IOC_CREATE_QUEUE, &args);
	if (err)
		return fail(err, "pid %d: queue %u on gpu %#x cannot be recreated: %m (CREATE_QUEUE)",
			    all->pid, step->number, queue->gpu_id);
	doorbell = kfd_doorbell(args.doorbell_offset);
	if (args.queue_id == step->number && (step->is_placeholder || doorbell == queue->doorbell))
		return 0;
	return fail(
		-EBUSY,
		"pid %d: queue %u on gpu %#x is recreated as queue %u with doorbell %u instead of %u: another process "
		"has made one meanwhile, or this kernel numbers them otherwise",
		all->pid, step->number, queue->gpu_id, args.queue_id, doorbell, queue->doorbell);
}

static int create_queues(struct all_queues *all)
{
	_cleanup_free_ struct mes_step *steps = NULL;
	size_t nr = 0;
	int err = mes_plan(all->queues, all->nr, &steps, &nr);

	for (size_t i = 0; !err && i < nr; i++)
		err = create(all, &steps[i]);
	for (size_t i = 0; !err && i < nr; i++) {
		struct kfd_ioctl_destroy_queue_args args = { .queue_id = steps[i].number };

		if (!steps[i].is_placeholder)
			continue;
		err = inject_kfd(&all->inject, AMDKFD_IOC_DESTROY_QUEUE, &args);
		if (err)
			err = fail(err, "pid %d: queue %u, which held a number, cannot be ended: %m", all->pid,
				   steps[i].number);
	}
	return err;
}

/* ---- brought to its old position by NOPs ---- */

static int ring_doorbell(struct all_queues *all, const struct saved_queue *saved, uint64_t value)
{
	const uint64_t args[6] = { ARCH_GET_GS, saved->doorbell }, own = all->inject.own.regs.gs_base;
	int err;

	all->inject.own.regs.gs_base = value;
	err = inject_call(&all->inject, SYS_arch_prctl, args, NULL);
	all->inject.own.regs.gs_base = own;
	return err ? fail(err, "pid %d: cannot ring the doorbell at %#" PRIx64 ": %m", all->pid, saved->doorbell) : 0;
}

/* Until the word is @value, or less by @most. */
static int wait_for_word(const struct all_queues *all, const struct queue_record *queue, uint64_t address, uint64_t value,
			 uint64_t most)
{
	double end = monotonic_seconds() + ROLL_SECONDS;
	uint64_t word;
	int err;

	for (;;) {
		err = memory_read(all->pid, address, &word, sizeof(word));
		if (err || value - word <= most)
			return err;
		if (monotonic_seconds() > end)
			return fail(-ETIME,
				    "pid %d: queue %u on gpu %#x was recreated and does not execute NOPs: it is at "
				    "%#" PRIx64 " and not at %#" PRIx64,
				    all->pid, queue->number, queue->gpu_id, word, value);
		usleep(POLL_USEC);
	}
}

/* Packets [from, to), which are in one piece; the last counts down a signal in a slot that they do not use. */
static int roll_packets(struct all_queues *all, const struct queue_record *queue, const struct saved_queue *saved, uint64_t from,
			uint64_t to)
{
	_cleanup_free_ struct barrier *packets = calloc(to - from, sizeof(*packets));
	uint64_t nr = ring_packets(queue), signal_at = queue->ring_address + to % nr * AQL_PACKET_BYTES;
	struct signal signal = { .kind = SIGNAL_USER, .value = 1 };
	int err;

	if (!packets)
		return -ENOMEM;
	for (uint64_t i = 0; i < to - from; i++)
		packets[i].header = PACKET_HEADER;
	packets[to - from - 1].completion = signal_at;
	err = memory_write(all->pid, signal_at, &signal, sizeof(signal));
	if (!err)
		err = memory_write(all->pid, queue->ring_address + from % nr * AQL_PACKET_BYTES, packets, (to - from) * AQL_PACKET_BYTES);
	if (!err)
		err = write_word(all, queue->write_address, to);
	if (!err)
		err = ring_doorbell(all, saved, to - 1);
	return err ? err : wait_for_word(all, queue, signal_at + offsetof(struct signal, value), 0, 0);
}

/* Bytes [from, to), which are in one piece. */
static int roll_bytes(struct all_queues *all, const struct queue_record *queue, const struct saved_queue *saved, uint64_t from,
		      uint64_t to)
{
	uint64_t next;
	int err = 0;

	for (uint64_t at = from; !err && at < to; at = next) {
		uint64_t dwords = (to - at) / sizeof(uint32_t);
		uint32_t nop;

		dwords = dwords < SDMA_NOP_MAX ? dwords : SDMA_NOP_MAX;
		nop = (uint32_t)(dwords - 1) << 16;
		next = at + dwords * sizeof(uint32_t);
		err = memory_write(all->pid, queue->ring_address + at % queue->ring_size, &nop, sizeof(nop));
	}
	if (!err)
		err = write_word(all, queue->write_address, to);
	if (!err)
		err = ring_doorbell(all, saved, to);
	return err ? err : wait_for_word(all, queue, queue->read_address, to, 0);
}

/* A doorbell that was rung before is not known, and one too many does no harm: packets say themselves whether they are
 * there. */
static int restore_position(struct all_queues *all, const struct queue_record *queue, const struct saved_queue *saved)
{
	uint64_t read = saved->read - saved->lowered, write = saved->write - saved->lowered;
	uint64_t step = (is_compute(queue) ? ring_packets(queue) : queue->ring_size) / 2;
	int err = 0;

	/* Half a ring at a time, which ends where the ring does. */
	for (uint64_t from = 0, to; !err && from < read; from = to) {
		to = read - from < step ? read : from + step;
		err = (is_compute(queue) ? roll_packets : roll_bytes)(all, queue, saved, from, to);
	}
	/* Signals tell where an AQL queue is, and its read index may come later: it has to count as before. */
	if (!err && is_compute(queue))
		err = wait_for_word(all, queue, queue->read_address, read, ring_packets(queue) / 2);
	if (!err)
		err = memory_write(all->pid, queue->ring_address, saved->ring, queue->ring_size);
	if (!err)
		err = write_word(all, queue->write_address, write);
	if (!err && is_compute(queue)) /* tests/hardware reads it */
		pr_info("pid %d: queue %u on gpu %#x is at packet %" PRIu64 " instead of %" PRIu64 " (a ring has %" PRIu64
			", and its MQD had %" PRIu64 ")\n",
			all->pid, queue->number, queue->gpu_id, read, saved->read, ring_packets(queue), queue->counted);
	if (err || write == read)
		return err;
	return ring_doorbell(all, saved, is_compute(queue) ? write - 1 : write);
}

/* ---- all of it ---- */

static int recreation_begin(struct all_queues *all)
{
	_cleanup_free_ int *numbers = NULL;
	size_t nr = 0, i = 0;
	struct stat st;
	char path[64];
	int err = proc_list(all->pid, "fd", &numbers, &nr);

	for (; !err && i < nr; i++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", all->pid, numbers[i]);
		all->kfd = numbers[i];
		if (!stat_quietly(AT_FDCWD, path, &st) && device_is_kfd(&st))
			break;
	}
	if (err || i == nr)
		return fail(err ? err : -EBADMSG, "pid %d: has no /dev/kfd open, by which its queues could be recreated",
			    all->pid);
	err = task_device_vmas(all->pid, &all->vmas, &all->nr_vmas);
	if (err)
		return err;
	all->saved = calloc(all->nr, sizeof(*all->saved));
	return all->saved ? 0 : -ENOMEM;
}

static void recreation_done(struct all_queues *all)
{
	for (size_t i = 0; all->saved && i < all->nr; i++)
		free(all->saved[i].ring);
	free(all->saved);
	free(all->vmas);
	sdma_slots_done(&all->slots);
}

int mes_recreate(int kfd, pid_t pid, const struct queue_record *queues, size_t nr)
{
	/* Two restores that hold SDMA queues at once would take them from each other. */
	_cleanup_close_ int turn = nr ? turn_begin() : -1;
	_cleanup_(recreation_done) struct all_queues all = { .pid = pid, .queues = queues, .nr = nr };
	double began = monotonic_seconds();
	int err = nr ? recreation_begin(&all) : 0;

	(void)turn;
	if (err || !nr)
		return err;
	err = sdma_slots_take(kfd, queues, nr, &all.slots);
	for (size_t i = 0; !err && i < nr; i++)
		err = queues[i].is_restored ? 0 : save_and_clear(&all, &queues[i], &all.saved[i]);
	if (!err)
		err = inject_look(pid, all.kfd, &all.inject);
	if (!err)
		err = inject_begin(&all.inject);
	if (!err)
		err = create_queues(&all);
	for (size_t i = 0; !err && i < nr; i++)
		err = queues[i].is_restored ? 0 : restore_position(&all, &queues[i], &all.saved[i]);
	if (!err)
		err = inject_end(&all.inject);
	if (!err)
		pr_info("pid %d: its queues of gfx11 were recreated in %.3f s\n", pid, monotonic_seconds() - began);
	return err;
}
