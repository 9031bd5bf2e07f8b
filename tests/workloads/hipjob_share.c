// SPDX-License-Identifier: GPL-2.0-only
/*
 * hipjob's memory of the first GPU that two processes share.
 */
#include <stddef.h>
#include <unistd.h>

#include "hipjob_memory.h"

/* ---- IPC ---- */

/* What the first process writes for the second one. */
struct ipc_handles {
	struct hip_ipc_handle memory, event;
};

static struct ipc_handles *ipc_handles(struct hip_share *share)
{
	_Static_assert(sizeof(struct ipc_handles) <= sizeof(share->pair->control->token), "both fit");
	return (struct ipc_handles *)share->pair->control->token;
}

static int ipc_create(struct hip_share *share, struct ipc_handles *handles)
{
	int err = HIP(Malloc, &share->memory, share->bytes);

	err = err ? err : HIP(IpcGetMemHandle, &handles->memory, share->memory);
	err = err ? err : HIP(EventCreateWithFlags, &share->event, HIP_NO_TIMING | HIP_INTERPROCESS);
	err = err ? err : HIP(IpcGetEventHandle, &handles->event, share->event);
	return err ? err : pair_meet(share->pair);
}

static int ipc_open(struct hip_share *share)
{
	const struct ipc_handles *handles = ipc_handles(share);
	int err;

	if (!share->pair->number)
		return ipc_create(share, ipc_handles(share));
	err = pair_meet(share->pair);
	err = err ? err : HIP(IpcOpenMemHandle, &share->memory, handles->memory, HIP_IPC_LAZY_PEER_ACCESS);
	return err ? err : HIP(IpcOpenEventHandle, &share->event, handles->event);
}

/* In each generation, of the default stream; since HIP 7 the GPU runs code to record such an event. */
static int ipc_signal(struct hip_share *share)
{
	int err = HIP(SetDevice, 0);

	if (!err && !share->pair->number && share->job->version < 70000000)
		err = HIP(EventRecord, share->event, NULL);
	err = err ? err : pair_meet(share->pair);
	return err ? err : HIP(EventSynchronize, share->event);
}

static int ipc_close(struct hip_share *share)
{
	int err = HIP(EventDestroy, share->event);

	if (!err && share->pair->number)
		err = HIP(IpcCloseMemHandle, share->memory);
	err = err ? err : pair_meet(share->pair);
	return err || share->pair->number ? err : HIP(Free, share->memory);
}

/* ---- virtual memory ---- */

/* Before HIP 7.1 the handle is a pointer to the descriptor. */
static int vmm_import(struct hip_share *share, int *fd)
{
	void *handle = share->job->version < 70100000 ? (void *)fd : (void *)(intptr_t)*fd;

	return HIP(MemImportFromShareableHandle, &share->handle, handle, HIP_HANDLE_FD);
}

static int vmm_open(struct hip_share *share)
{
	int fd = -1, err;

	if (!share->pair->number) {
		err = hip_virtual_create(0, share->bytes, &share->handle);
		err = err ? err : HIP(MemExportToShareableHandle, &fd, share->handle, HIP_HANDLE_FD, 0);
		err = err ? err : pair_send(share->pair, fd);
	} else {
		err = pair_receive(share->pair, &fd);
		err = err ? err : vmm_import(share, &fd);
	}
	if (fd >= 0)
		close(fd);
	err = err ? err : HIP(MemAddressReserve, &share->memory, share->bytes, 0, NULL, 0);
	return err ? err : hip_virtual_map(share->memory, share->bytes, share->handle, share->job->nr_gpus);
}

/*
 * At last each process has other memory at the same address, as after a sleep of vLLM. Both free first: the second one to free
 * what they shared takes the number of its handle from whatever got it since (docs/kernel/handles.md).
 */
static int vmm_close(struct hip_share *share)
{
	int err = hip_virtual_free(share->memory, share->bytes, share->handle);

	err = err ? err : pair_meet(share->pair);
	err = err ? err : hip_virtual_create(0, share->bytes, &share->handle);
	err = err ? err : hip_virtual_map(share->memory, share->bytes, share->handle, share->job->nr_gpus);
	err = err ? err : hip_put(share->job, share->memory, share->halves.generation);
	err = err ? err : hip_get(share->job, share->memory, share->halves.generation, "memory after a sleep");
	err = err ? err : hip_virtual_free(share->memory, share->bytes, share->handle);
	return err ? err : HIP(MemAddressFree, share->memory, share->bytes);
}

/* ---- both ---- */

static void *half_of(const struct hip_share *share, unsigned int half)
{
	return (uint8_t *)share->memory + half * share->job->bytes;
}

static int half_put(void *data, unsigned int half, uint64_t generation)
{
	struct hip_share *share = data;
	int err = share->memory ? HIP(SetDevice, generation % share->job->nr_gpus) : 0;

	return err || !share->memory ? err : hip_put(share->job, half_of(share, half), pair_seed(half, generation));
}

static int half_get(void *data, unsigned int half, uint64_t generation)
{
	struct hip_share *share = data;
	int err = 0;

	for (unsigned int i = 0; !err && share->memory && i < share->job->nr_gpus; i++) {
		err = HIP(SetDevice, i);
		err = err ? err
			  : hip_get(share->job, half_of(share, half), pair_seed(half, generation), "shared memory");
	}
	return err;
}

int hip_share_open(struct hip_share *share, struct hip_job *job)
{
	int err = HIP(SetDevice, 0);

	share->job = job;
	share->bytes = (2 * job->bytes + HIP_BLOCK_BYTES - 1) / HIP_BLOCK_BYTES * HIP_BLOCK_BYTES;
	share->halves = (struct pair_memory){ half_put, half_get, share, 0 };
	if (!err && share->kind)
		err = share->kind == HIP_SHARE_IPC ? ipc_open(share) : vmm_open(share);
	err = err ? err : pair_begin(share->pair, &share->halves);
	pair_close_socket(share->pair);
	return err;
}

int hip_share_round(struct hip_share *share, bool *stop)
{
	int err = share->event ? ipc_signal(share) : 0;

	return err ? err : pair_round(share->pair, &share->halves, stop);
}

int hip_share_close(struct hip_share *share)
{
	int err = HIP(SetDevice, 0);

	err = err ? err : pair_meet(share->pair);
	if (err || !share->kind)
		return err;
	return share->kind == HIP_SHARE_IPC ? ipc_close(share) : vmm_close(share);
}
