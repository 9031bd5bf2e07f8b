// SPDX-License-Identifier: GPL-2.0-only
/*
 * hsajob's memory of the first GPU that two processes share, by the runtime's IPC or by its virtual memory (VMM).
 *
 * The functions for virtual memory are newer than the headers of Debian 12; they are looked up where the job runs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "hsajob.h"
#include "report.h"

#define BLOCK_BYTES (2u << 20)

/* As in <hsa/hsa_ext_amd.h> of ROCm 6. */
struct vmem_handle {
	uint64_t handle;
};
struct vmem_access {
	hsa_access_permission_t permissions;
	hsa_agent_t agent;
};

/* hsa_amd_vmem_NAME */
#define VMEM_FUNCTIONS(F) \
	F(address_reserve, void **va, size_t size, uint64_t address, uint64_t flags) \
	F(address_free, void *va, size_t size) \
	F(handle_create, hsa_amd_memory_pool_t pool, size_t size, int type, uint64_t flags, struct vmem_handle *handle) \
	F(handle_release, struct vmem_handle handle) \
	F(map, void *va, size_t size, size_t offset, struct vmem_handle handle, uint64_t flags) \
	F(unmap, void *va, size_t size) \
	F(set_access, void *va, size_t size, const struct vmem_access *access, size_t nr_access) \
	F(export_shareable_handle, int *dmabuf, struct vmem_handle handle, uint64_t flags) \
	F(import_shareable_handle, int dmabuf, struct vmem_handle *handle)

#define VMEM_DECLARE(name, ...) hsa_status_t (*name)(__VA_ARGS__);

static struct {
	VMEM_FUNCTIONS(VMEM_DECLARE)
} vmem;

/* Calls one: 0 or -EIO, reported. */
#define VMEM(name, ...) hsa_must(vmem.name(__VA_ARGS__), "hsa_amd_vmem_" #name)

/* ---- IPC ---- */

static hsa_amd_ipc_memory_t *ipc_handle(struct hsa_share *share)
{
	_Static_assert(sizeof(hsa_amd_ipc_memory_t) <= sizeof(share->pair->control->token), "a handle fits");
	return (hsa_amd_ipc_memory_t *)share->pair->control->token;
}

static int ipc_open(struct hsa_share *share)
{
	struct hsa_job *job = share->job;
	int err;

	if (!share->pair->number) {
		err = hsa_allocate(job, job->gpus[0].vram, share->bytes, &share->memory);
		if (!err)
			err = hsa_must(hsa_amd_ipc_memory_create(share->memory, share->bytes, ipc_handle(share)),
				   "hsa_amd_ipc_memory_create");
		return err ? err : pair_meet(share->pair);
	}
	err = pair_meet(share->pair);
	return err ? err
		   : hsa_must(hsa_amd_ipc_memory_attach(ipc_handle(share), share->bytes, job->nr_gpus, job->agents,
						    &share->memory),
			  "hsa_amd_ipc_memory_attach");
}

static int ipc_close(struct hsa_share *share)
{
	int err = 0;

	if (share->pair->number)
		err = hsa_must(hsa_amd_ipc_memory_detach(share->memory), "hsa_amd_ipc_memory_detach");
	err = err ? err : pair_meet(share->pair);
	return err || share->pair->number ? err : hsa_must(hsa_amd_memory_pool_free(share->memory), "freeing memory");
}

/* ---- virtual memory ---- */

#define VMEM_FUNCTION(name, ...) { &vmem.name, "hsa_amd_vmem_" #name },

static int vmem_find(void)
{
	static const struct {
		void *function;
		const char *name;
	} functions[] = { VMEM_FUNCTIONS(VMEM_FUNCTION) };

	for (unsigned int i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *p = dlsym(RTLD_DEFAULT, functions[i].name);

		if (!p)
			return report(ENOSYS, "the runtime has no %s", functions[i].name);
		memcpy(functions[i].function, &p, sizeof(p));
	}
	return 0;
}

/* At an address of its own, for all GPUs. */
static int vmem_map(struct hsa_share *share)
{
	struct vmem_handle handle = { share->vmem_handle };
	struct vmem_access access[HSA_MAX_GPUS];
	struct hsa_job *job = share->job;
	int err = VMEM(address_reserve, &share->memory, share->bytes, 0, 0);

	for (unsigned int i = 0; i < job->nr_gpus; i++)
		access[i] = (struct vmem_access){ HSA_ACCESS_PERMISSION_RW, job->gpus[i].agent };
	err = err ? err : VMEM(map, share->memory, share->bytes, 0, handle, 0);
	return err ? err
		   : VMEM(set_access, share->memory, share->bytes, access, job->nr_gpus);
}

static int vmem_open(struct hsa_share *share)
{
	struct vmem_handle handle = { 0 };
	int fd = -1, err = vmem_find();

	if (!err && !share->pair->number) {
		err = VMEM(handle_create, share->job->gpus[0].vram, share->bytes, 0, 0, &handle);
		err = err ? err : VMEM(export_shareable_handle, &fd, handle, 0);
		err = err ? err : pair_send(share->pair, fd);
	} else if (!err) {
		err = pair_receive(share->pair, &fd);
		err = err ? err : VMEM(import_shareable_handle, fd, &handle);
	}
	if (fd >= 0)
		close(fd);
	share->vmem_handle = handle.handle;
	return err ? err : vmem_map(share);
}

/* Mapped once more, elsewhere, before it goes. */
static int vmem_close(struct hsa_share *share)
{
	struct vmem_handle handle = { share->vmem_handle };
	int err = 0;

	for (unsigned int times = 0; !err && times < 2; times++) {
		if (times)
			err = vmem_map(share);
		err = err ? err : VMEM(unmap, share->memory, share->bytes);
		err = err ? err : VMEM(address_free, share->memory, share->bytes);
	}
	return err ? err : VMEM(handle_release, handle);
}

/* ---- both ---- */

static void *half_of(const struct hsa_share *share, unsigned int half)
{
	return (uint8_t *)share->memory + half * share->job->bytes;
}

/* By another GPU each time. */
static int half_put(void *data, unsigned int half, uint64_t generation)
{
	struct hsa_share *share = data;
	struct hsa_gpu *gpu = &share->job->gpus[generation % share->job->nr_gpus];

	return hsa_gpu_put(gpu, half_of(share, half), pair_seed(half, generation));
}

static int half_get(void *data, unsigned int half, uint64_t generation)
{
	struct hsa_share *share = data;
	int err = 0;

	for (unsigned int i = 0; !err && i < share->job->nr_gpus; i++)
		err = hsa_gpu_get(&share->job->gpus[i], half_of(share, half), pair_seed(half, generation),
				  "shared memory");
	return err;
}

int hsa_share_open(struct hsa_share *share, struct hsa_job *job)
{
	int err;

	share->job = job;
	share->bytes = (2 * job->bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
	share->halves = (struct pair_memory){ half_put, half_get, share, 0 };
	err = share->kind == HSA_SHARE_IPC ? ipc_open(share) : vmem_open(share);
	err = err ? err : pair_begin(share->pair, &share->halves);
	pair_close_socket(share->pair);
	return err;
}

int hsa_share_close(struct hsa_share *share)
{
	int err = pair_meet(share->pair);

	return err ? err : share->kind == HSA_SHARE_IPC ? ipc_close(share) : vmem_close(share);
}
