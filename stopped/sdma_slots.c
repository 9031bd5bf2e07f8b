// SPDX-License-Identifier: GPL-2.0-only
/*
 * SDMA queues of a GPU that criu holds for a moment. They are numbered over all processes, and a new one gets the
 * lowest number that is free, which its doorbell tells. Empty queues of criu's own take all that are free, up to the
 * highest that is wanted, and each is destroyed when its turn has come: so a process' queues get the numbers that they
 * had, whatever is free below them.
 */
#include <fcntl.h>

#include "amdgpu_plugin_util.h"
#include "stopped/recreate.h"

/* Where their ring and their indices are, each in a buffer of its own: the driver wants that. */
#define MEMORY_AT    (1ull << 32)
#define MEMORY_STEP  (1ull << 20)
#define BUFFER_BYTES 4096u
#define READ_AT	     8u /* beside the write index */

static bool needs_slot(const struct queue_record *queue)
{
	return !queue->is_restored && queue->type == QUEUE_TYPE_SDMA;
}

/*
 * criu keeps its address space on a GPU until it ends: a second one is refused. The file is closed before a queue is created:
 * where it was closed after that, Linux 7.2 reset the GPU (seen with radeon-two).
 */
static int enter(int kfd, const struct queue_record *queue)
{
	struct kfd_ioctl_acquire_vm_args args = { .gpu_id = queue->actual_id };
	_cleanup_close_ int node = -1;
	char path[32];
	int err;

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", queue->minor);
	node = device_open(path, device_render_number(queue->minor), O_RDWR);
	args.drm_fd = (uint32_t)node;
	err = node < 0 ? node : call_ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &args);
	return err == -EBUSY ? 0 : err;
}

static int add_buffer(struct sdma_slots *slots, uint32_t gpu_id, uint64_t *ret_va)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.va_addr = MEMORY_AT + slots->nr_buffers * MEMORY_STEP,
		.size = BUFFER_BYTES,
		.gpu_id = gpu_id,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE |
			 KFD_IOC_ALLOC_MEM_FLAGS_COHERENT,
	};
	int err = call_ioctl(slots->kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);

	*ret_va = args.va_addr;
	if (err)
		return err;
	err = array_add(slots->buffers, slots->nr_buffers, (struct sdma_buffer){ args.handle, gpu_id });
	if (err)
		kfd_free(slots->kfd, args.handle);
	return err ? err : kfd_map(slots->kfd, args.handle, &gpu_id, 1);
}

static const struct sdma_slot *find_slot(const struct sdma_slots *slots, const struct queue_record *queue)
{
	for (size_t i = 0; i < slots->nr; i++)
		if (slots->held[i].gpu_id == queue->actual_id && slots->held[i].doorbell == queue->doorbell)
			return &slots->held[i];
	return NULL;
}

/* Until that of @queue is among them. */
static int take_slot(struct sdma_slots *slots, const struct queue_record *queue)
{
	struct kfd_ioctl_create_queue_args args = {
		.gpu_id = queue->actual_id,
		.queue_type = KFD_IOC_QUEUE_TYPE_SDMA,
		.ring_size = BUFFER_BYTES,
		.queue_percentage = 100,
	};
	int err = enter(slots->kfd, queue);

	if (!err)
		err = add_buffer(slots, queue->actual_id, &args.ring_base_address);
	if (!err)
		err = add_buffer(slots, queue->actual_id, &args.write_pointer_address);
	args.read_pointer_address = args.write_pointer_address + READ_AT;
	while (!err && !find_slot(slots, queue)) {
		err = call_ioctl(slots->kfd, AMDKFD_IOC_CREATE_QUEUE, &args);
		if (err) /* -ENOMEM: none is free any more */
			return err == -ENOMEM ? -EBUSY : err;
		err = array_add(slots->held, slots->nr,
				(struct sdma_slot){ queue->actual_id, args.queue_id, kfd_doorbell(args.doorbell_offset) });
	}
	return err;
}

int sdma_slots_take(int kfd, const struct queue_record *queues, size_t nr, struct sdma_slots *slots)
{
	int err = 0;

	slots->kfd = kfd;
	for (size_t i = 0; i < nr; i++) {
		if (!needs_slot(&queues[i]) || find_slot(slots, &queues[i]))
			continue;
		err = take_slot(slots, &queues[i]);
		if (err == -EBUSY)
			return fail(err,
				    "queue %u on gpu %#x: another process holds an SDMA queue that this one had: end that "
				    "one, or choose another GPU by KFD_DEVICE_MAP",
				    queues[i].number, queues[i].gpu_id);
		if (err)
			return fail(err, "gpu %#x: criu cannot reserve SDMA queues: %m", queues[i].gpu_id);
	}
	return 0;
}

static int end_slot(const struct sdma_slots *slots, const struct sdma_slot *slot)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = slot->number };

	return call_ioctl(slots->kfd, AMDKFD_IOC_DESTROY_QUEUE, &args);
}

int sdma_slots_free_for(struct sdma_slots *slots, const struct queue_record *queue)
{
	const struct sdma_slot *slot = needs_slot(queue) ? find_slot(slots, queue) : NULL;
	int err = slot ? end_slot(slots, slot) : 0;

	if (err)
		return fail(err, "gpu %#x: criu cannot end a queue of its own: %m", queue->gpu_id);
	if (slot)
		slots->held[slot - slots->held] = slots->held[--slots->nr];
	return 0;
}

void sdma_slots_done(struct sdma_slots *slots)
{
	while (slots->nr)
		end_slot(slots, &slots->held[--slots->nr]);
	/* A buffer that is mapped is not freed. */
	for (size_t i = slots->nr_buffers; i-- > 0;) {
		struct kfd_ioctl_map_memory_to_gpu_args args = {
			.handle = slots->buffers[i].handle,
			.device_ids_array_ptr = (uintptr_t)&slots->buffers[i].gpu_id,
			.n_devices = 1,
		};

		call_ioctl(slots->kfd, AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &args);
		kfd_free(slots->kfd, slots->buffers[i].handle);
	}
	free(slots->held);
	free(slots->buffers);
}
