// SPDX-License-Identifier: GPL-2.0-only
/*
 * The KFD keeps the addresses of a trap handler where only the process' own address space on the GPU reaches them. An
 * SDMA engine copies them: by a job in the open file that has this address space, into a page that is mapped there at the
 * very end of what programs may use, which is beside the KFD's memory and needs no further page table.
 */
#include <inttypes.h>

#include <libdrm/amdgpu_drm.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/internal.h"
#include "kernel/kernel.h"

#define RESULT_AT   2048u /* in the page, behind the commands */
_Static_assert(RESULT_AT + 16 <= DRM_PROBE_BYTES, "");
#define JOB_SECONDS 10
#define NOT_COPIED  UINT64_MAX

static int ask_high_end(int fd, uint64_t *ret)
{
	struct drm_amdgpu_info_device device = { 0 };
	struct drm_amdgpu_info args = {
		.return_pointer = (uintptr_t)&device, .return_size = sizeof(device), .query = AMDGPU_INFO_DEV_INFO,
	};
	int err = drm_call(fd, DRM_IOCTL_AMDGPU_INFO, &args);

	*ret = device.high_va_max;
	return err;
}

static int submit(const struct drm_probe *probe, uint64_t *ret_job)
{
	struct drm_amdgpu_cs_chunk_ib ib = {
		.va_start = probe->address, .ib_bytes = TRAP_PACKET_DWORDS * 4, .ip_type = AMDGPU_HW_IP_DMA,
	};
	struct drm_amdgpu_bo_list_entry page = { .bo_handle = probe->handle };
	struct drm_amdgpu_bo_list_in list = {
		.operation = ~0u, .list_handle = ~0u, .bo_number = 1, .bo_info_size = sizeof(page),
		.bo_info_ptr = (uintptr_t)&page,
	};
	struct drm_amdgpu_cs_chunk chunks[] = {
		{ AMDGPU_CHUNK_ID_IB, sizeof(ib) / 4, (uintptr_t)&ib },
		{ AMDGPU_CHUNK_ID_BO_HANDLES, sizeof(list) / 4, (uintptr_t)&list },
	};
	uint64_t pointers[] = { (uintptr_t)&chunks[0], (uintptr_t)&chunks[1] };
	union drm_amdgpu_cs args = {
		.in = { .ctx_id = probe->context, .num_chunks = ARRAY_SIZE(chunks), .chunks = (uintptr_t)pointers },
	};
	int err = drm_call(probe->fd, DRM_IOCTL_AMDGPU_CS, &args);

	*ret_job = args.out.handle;
	return err;
}

static int wait_for_job(const struct drm_probe *probe, uint64_t job)
{
	union drm_amdgpu_wait_cs args = {
		.in = {
			.handle = job,
			.timeout = kernel_time_in(JOB_SECONDS * 1000000000ull, monotonic_offset_ns()),
			.ip_type = AMDGPU_HW_IP_DMA,
			.ctx_id = probe->context,
		},
	};
	int err = drm_call(probe->fd, DRM_IOCTL_AMDGPU_WAIT_CS, &args);

	return err ? err : args.out.status ? -ETIME : 0;
}

static int copy_handler(const struct drm_probe *probe, uint64_t from, uint64_t ret[2])
{
	volatile uint64_t *result = (volatile uint64_t *)((char *)probe->page + RESULT_AT);
	uint64_t job;
	int err;

	result[0] = result[1] = NOT_COPIED;
	trap_put_packet(probe->page, probe->address + RESULT_AT, from);
	err = submit(probe, &job);
	if (!err)
		err = wait_for_job(probe, job);
	if (err)
		return err;
	ret[0] = result[0];
	ret[1] = result[1];
	return ret[0] == NOT_COPIED && ret[1] == NOT_COPIED ? -EIO : 0;
}

static int probe_copy(int fd, uint64_t high_end, uint64_t from, uint64_t ret[2])
{
	struct drm_probe probe = { .fd = fd, .address = high_end - PAGE_BYTES };
	int err = drm_probe_open(&probe), left;

	if (!err)
		err = copy_handler(&probe, from, ret);
	left = drm_probe_close(&probe);
	if (left)
		return fail(left, "the page and the context for reading it stay in the process' file: %m");
	return err ? fail(err, "the GPU cannot be asked for it: %m") : 0;
}

/* The process' file with the KFD's address space on a GPU, or -1. */
static int file_of_minor(const struct trap_request *request, uint32_t minor)
{
	const struct task_files *files = request->files;

	for (size_t i = 0; i < files->count; i++)
		if (files->files[i].pid == request->pid && files->files[i].minor == minor &&
		    !share_without_kfd_vm(request->survey, i))
			return files->files[i].fd;
	return -1;
}

static int ask_job(const struct trap_request *request, uint32_t minor, uint64_t ret[2])
{
	int fd = file_of_minor(request, minor), err;
	uint64_t high_end, from;

	if (fd < 0)
		return fail(-EOPNOTSUPP, "the process has no file of renderD%u open, by which it can be read", minor);
	err = ask_high_end(fd, &high_end);
	if (err)
		return fail(err, "renderD%u cannot be asked for the GPU's addresses: %m", minor);
	err = trap_find(request->driver, TRAP_PARAMETER_FILE, high_end, &from);
	return err ? err : probe_copy(fd, high_end, from, ret);
}

/* A handler that is elsewhere would not come back: what is set then is a guess. */
static int check_addresses(const struct kfd_state *state, const uint64_t trap[2])
{
	if (!trap[0] || (kfd_state_has_address(state, trap[0]) && (!trap[1] || kfd_state_has_address(state, trap[1]))))
		return 0;
	return fail(-EOPNOTSUPP, "its addresses %#" PRIx64 " and %#" PRIx64 " are not both in buffers that are saved", trap[0],
		    trap[1]);
}

static void read_one(const struct trap_request *request, uint32_t gpu_id, struct kfd_state *state)
{
	int node = topology_find_gpu(request->nodes, gpu_id);
	uint64_t trap[2] = { 0 };
	int err = node < 0 ? node : ask_job(request, topology_minor(request->nodes->nodes[node]), trap);

	if (!err)
		err = check_addresses(state, trap);
	if (err) {
		pr_warn("pid %d: gpu %#x: a trap handler that ROCm has set is not saved, so that restored kernels go on after a "
			"failed assertion: %s\n", request->pid, gpu_id, fail_text());
		fail_clear();
	} else if (trap[0]) {
		state->traps[state->nr_traps++] =
			(struct trap_handler){ .gpu_id = gpu_id, .tba = trap[0], .tma = trap[1] };
	}
}

int trap_handlers_read(const struct trap_request *request, struct kfd_state *state)
{
	state->traps = calloc(state->nr_devices + 1, sizeof(*state->traps));
	if (!state->traps)
		return -ENOMEM;
	for (uint32_t i = 0; i < state->nr_devices; i++)
		if (trap_gpu_is_used(state, state->devices[i].user_gpu_id))
			read_one(request, state->devices[i].user_gpu_id, state);
	return 0;
}
