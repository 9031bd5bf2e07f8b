// SPDX-License-Identifier: GPL-2.0-only
/*
 * hsajob's memory of the first GPU that two processes share, by the runtime's IPC or by its virtual memory (VMM). Each
 * writes one half of it in each generation, and both must find both.
 *
 * The functions for virtual memory are newer than the headers of Debian 12; they are looked up where the job runs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "hsajob_share.h"
#include "report.h"

#define BLOCK_BYTES   (2u << 20)
#define PATIENCE_NAPS 120000u

/* As in <hsa/hsa_ext_amd.h> of ROCm 6. */
struct vmem_handle {
	uint64_t handle;
};
struct vmem_access {
	hsa_access_permission_t permissions;
	hsa_agent_t agent;
};

static struct {
	hsa_status_t (*address_reserve)(void **va, size_t size, uint64_t address, uint64_t flags);
	hsa_status_t (*address_free)(void *va, size_t size);
	hsa_status_t (*handle_create)(hsa_amd_memory_pool_t pool, size_t size, int type, uint64_t flags,
				      struct vmem_handle *handle);
	hsa_status_t (*handle_release)(struct vmem_handle handle);
	hsa_status_t (*map)(void *va, size_t size, size_t offset, struct vmem_handle handle, uint64_t flags);
	hsa_status_t (*unmap)(void *va, size_t size);
	hsa_status_t (*set_access)(void *va, size_t size, const struct vmem_access *access, size_t nr_access);
	hsa_status_t (*export_handle)(int *dmabuf, struct vmem_handle handle, uint64_t flags);
	hsa_status_t (*import_handle)(int dmabuf, struct vmem_handle *handle);
} vmem;

static int must(hsa_status_t status, const char *what)
{
	const char *text = NULL;

	if (status == HSA_STATUS_SUCCESS)
		return 0;
	hsa_status_string(status, &text);
	return report(EIO, "%s: %s (%#x)", what, text ? text : "unknown status", (unsigned int)status);
}

/* ---- the other process ---- */

int hsa_share_prepare(struct hsa_share *share, enum hsa_sharing kind)
{
	void *p = mmap(NULL, sizeof(*share->control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, share->ends))
		return report(errno, "shared memory and a socket: %m");
	share->control = p;
	share->kind = kind;
	return 0;
}

static int meet(struct hsa_share *share)
{
	struct hsa_share_control *control = share->control;
	const struct timespec nap = { .tv_nsec = 1000000 };
	uint32_t times = ++control->meetings[share->number];

	for (unsigned int naps = 0; control->meetings[!share->number] < times; naps++) {
		if (control->failed)
			return -ECANCELED;
		if (naps == PATIENCE_NAPS)
			return report(ETIME, "the other process does not come to meeting %u", times);
		nanosleep(&nap, NULL);
	}
	return control->failed ? -ECANCELED : 0;
}

static int dmabuf_send(const struct hsa_share *share, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { "d", 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&msg);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(share->ends[0], &msg, MSG_NOSIGNAL) == 1 ? 0 : report(errno, "sending a dma-buf: %m");
}

static int dmabuf_receive(const struct hsa_share *share, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	if (recvmsg(share->ends[1], &msg, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&msg))
		return report(EPIPE, "receiving a dma-buf: %m");
	memcpy(ret_fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(*ret_fd));
	return 0;
}

/* ---- IPC ---- */

static int ipc_open(struct hsa_share *share)
{
	struct hsa_job *job = share->job;
	hsa_agent_t agents[HSA_MAX_GPUS];
	int err;

	for (unsigned int i = 0; i < job->nr_gpus; i++)
		agents[i] = job->gpus[i].agent;
	if (!share->number) {
		err = must(hsa_amd_memory_pool_allocate(job->gpus[0].vram, share->bytes, 0, &share->memory),
			   "allocating");
		err = err ? err
			  : must(hsa_amd_agents_allow_access(job->nr_gpus, agents, NULL, share->memory), "access");
		if (!err)
			err = must(hsa_amd_ipc_memory_create(share->memory, share->bytes, &share->control->handle),
				   "hsa_amd_ipc_memory_create");
		return err ? err : meet(share);
	}
	err = meet(share);
	return err ? err
		   : must(hsa_amd_ipc_memory_attach(&share->control->handle, share->bytes, job->nr_gpus, agents,
						    &share->memory),
			  "hsa_amd_ipc_memory_attach");
}

static int ipc_close(struct hsa_share *share)
{
	int err = share->number ? must(hsa_amd_ipc_memory_detach(share->memory), "hsa_amd_ipc_memory_detach") : 0;

	err = err ? err : meet(share);
	return err || share->number ? err : must(hsa_amd_memory_pool_free(share->memory), "freeing memory");
}

/* ---- virtual memory ---- */

static int vmem_find(void)
{
	static const struct {
		void *function;
		const char *name;
	} functions[] = {
		{ &vmem.address_reserve, "hsa_amd_vmem_address_reserve" },
		{ &vmem.address_free, "hsa_amd_vmem_address_free" },
		{ &vmem.handle_create, "hsa_amd_vmem_handle_create" },
		{ &vmem.handle_release, "hsa_amd_vmem_handle_release" },
		{ &vmem.map, "hsa_amd_vmem_map" },
		{ &vmem.unmap, "hsa_amd_vmem_unmap" },
		{ &vmem.set_access, "hsa_amd_vmem_set_access" },
		{ &vmem.export_handle, "hsa_amd_vmem_export_shareable_handle" },
		{ &vmem.import_handle, "hsa_amd_vmem_import_shareable_handle" },
	};

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
	int err = must(vmem.address_reserve(&share->memory, share->bytes, 0, 0), "hsa_amd_vmem_address_reserve");

	for (unsigned int i = 0; i < job->nr_gpus; i++)
		access[i] = (struct vmem_access){ HSA_ACCESS_PERMISSION_RW, job->gpus[i].agent };
	err = err ? err : must(vmem.map(share->memory, share->bytes, 0, handle, 0), "hsa_amd_vmem_map");
	return err ? err
		   : must(vmem.set_access(share->memory, share->bytes, access, job->nr_gpus),
			  "hsa_amd_vmem_set_access");
}

static int vmem_open(struct hsa_share *share)
{
	struct vmem_handle handle = { 0 };
	int fd = -1, err = vmem_find();

	if (!err && !share->number) {
		err = must(vmem.handle_create(share->job->gpus[0].vram, share->bytes, 0, 0, &handle),
			   "hsa_amd_vmem_handle_create");
		err = err ? err : must(vmem.export_handle(&fd, handle, 0), "hsa_amd_vmem_export_shareable_handle");
		err = err ? err : dmabuf_send(share, fd);
	} else if (!err) {
		err = dmabuf_receive(share, &fd);
		err = err ? err : must(vmem.import_handle(fd, &handle), "hsa_amd_vmem_import_shareable_handle");
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
		err = err ? err : must(vmem.unmap(share->memory, share->bytes), "hsa_amd_vmem_unmap");
		err = err ? err : must(vmem.address_free(share->memory, share->bytes), "hsa_amd_vmem_address_free");
	}
	return err ? err : must(vmem.handle_release(handle), "hsa_amd_vmem_handle_release");
}

/* ---- both ---- */

static uint64_t seed_of(unsigned int half, uint64_t generation)
{
	return (uint64_t)(half + 1) << 56 | generation;
}

static void *half_of(const struct hsa_share *share, unsigned int half)
{
	return (uint8_t *)share->memory + half * share->job->bytes;
}

static int halves_check(struct hsa_share *share, uint64_t generation)
{
	int err = 0;

	for (unsigned int half = 0; !err && half < 2; half++)
		for (unsigned int i = 0; !err && i < share->job->nr_gpus; i++)
			err = hsa_gpu_get(&share->job->gpus[i], half_of(share, half), seed_of(half, generation),
					  "shared memory");
	return err;
}

int hsa_share_open(struct hsa_share *share, struct hsa_job *job)
{
	int err;

	share->job = job;
	share->bytes = (2 * job->bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
	err = share->kind == HSA_SHARE_IPC ? ipc_open(share) : vmem_open(share);
	err = err ? err : hsa_gpu_put(&job->gpus[0], half_of(share, share->number), seed_of(share->number, 0));
	close(share->ends[0]);
	close(share->ends[1]);
	return err;
}

int hsa_share_round(struct hsa_share *share, bool *stop)
{
	int err;

	if (!share->number && *stop)
		share->control->stop = true;
	err = meet(share);
	if (err)
		return err;
	*stop = share->control->stop;
	err = halves_check(share, share->generation);
	err = err ? err : meet(share);
	share->generation++;
	err = err ? err
		  : hsa_gpu_put(&share->job->gpus[share->generation % share->job->nr_gpus],
				half_of(share, share->number), seed_of(share->number, share->generation));
	err = err ? err : meet(share);
	return err ? err : halves_check(share, share->generation);
}

int hsa_share_close(struct hsa_share *share)
{
	int err = meet(share);

	return err ? err : share->kind == HSA_SHARE_IPC ? ipc_close(share) : vmem_close(share);
}
