// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a program hears of exceptions in its queues, such as a failed assertion, which CHECKPOINT leaves out. Both parts are read
 * of a stopped process, and given to a restored one.
 *
 * SET_TRAP_HANDLER gives the KFD the addresses of a trap handler of the program, and of its memory. The KFD writes them
 * into the memory of its own handler, 6144 bytes behind the start (KFD_CWSR_TMA_OFFSET of Linux' kfd_priv.h), and nothing
 * gives them back. That memory is mapped in the program's address space on the GPU, for reading: since Linux 6.12 at the
 * latest right behind the addresses that programs may use (AMDGPU_VA_RESERVED_TRAP_START); before, elsewhere. No other
 * address space reaches it, so an SDMA engine copies them: by a job in the open file that has this one, into a page that is
 * mapped there at the very end of what programs may use, which needs no further page table.
 *
 * RUNTIME_ENABLE has the KFD tell the program. The head of each queue's save area has the address
 * (kfd_send_exception_to_runtime() of Linux' kfd_process.c). The kernel does not say whether it was called, but only then
 * ROCm fills that head. Linux 6.5 and later have it.
 */
#include <fcntl.h>
#include <inttypes.h>

#include <libdrm/amdgpu_drm.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/internal.h"
#include "kernel/kernel.h"

#define ADDRESSES_AT 6144u

/* A linear copy of SDMA 4 and later; the count is one less. */
#define SDMA_OP_COPY 1u

#define RESULT_AT   2048u /* in the page, behind the commands */
_Static_assert(RESULT_AT + TRAP_BYTES <= DRM_PROBE_BYTES, "");
#define JOB_SECONDS 10
#define NOT_COPIED  UINT64_MAX

/* ---- trap handlers, at dump ---- */

static bool saves_waves(const char *parameter_file)
{
	uint64_t value;

	return !read_number_at(AT_FDCWD, parameter_file, &value) && value;
}

int trap_find(const struct driver_release *driver, const char *parameter_file, uint64_t high_end, uint64_t *ret)
{
	if (!driver_is_since(driver, 6, 12))
		return fail(-EOPNOTSUPP, "%s does not show it; Linux 6.12 and later do", driver->text);
	if (!saves_waves(parameter_file))
		return fail(-EOPNOTSUPP, "%s is not 1 or cannot be read: only then does the driver keep it where it can be "
			    "read", parameter_file);
	if (!high_end)
		return fail(-EOPNOTSUPP, "the GPU has no upper half of addresses");
	*ret = high_end + ADDRESSES_AT;
	return 0;
}

void trap_put_packet(uint32_t dw[TRAP_PACKET_DWORDS], uint64_t to, uint64_t from)
{
	const uint32_t packet[TRAP_PACKET_DWORDS] = {
		SDMA_OP_COPY, TRAP_BYTES - 1, 0,
		(uint32_t)from, (uint32_t)(from >> 32), (uint32_t)to, (uint32_t)(to >> 32),
	};

	memcpy(dw, packet, sizeof(packet));
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

bool trap_gpu_is_used(const struct kfd_state *state, uint32_t gpu_id)
{
	for (size_t i = 0; i < state->nr_records; i++)
		if (records_map_bo(state, i, gpu_id))
			return true;
	return false;
}

static int ask_job(int fd, uint32_t minor, const struct driver_release *driver, uint64_t ret[2])
{
	struct drm_amdgpu_info_device device = { 0 };
	uint64_t from;
	int err;

	if (fd < 0)
		return fail(-EOPNOTSUPP, "the process has no file of renderD%u open, by which it can be read", minor);
	err = driver_ask_device(fd, &device);
	if (err)
		return fail(err, "renderD%u cannot be asked for the GPU's addresses: %m", minor);
	err = trap_find(driver, TRAP_PARAMETER_FILE, device.high_va_max, &from);
	return err ? err : probe_copy(fd, device.high_va_max, from, ret);
}

/* A handler that is elsewhere would not come back: what is set then is a guess. */
static int check_addresses(const struct kfd_state *state, const uint64_t trap[2])
{
	if (!trap[0] || (kfd_state_has_address(state, trap[0]) && (!trap[1] || kfd_state_has_address(state, trap[1]))))
		return 0;
	return fail(-EOPNOTSUPP, "its addresses %#" PRIx64 " and %#" PRIx64 " are not both in buffers that are saved", trap[0],
		    trap[1]);
}

/* One that cannot be read is lost, after a warning. */
static void read_handler(struct gpu_process *process, const struct topology_node *gpu, const struct survey *survey,
			 const struct driver_release *driver)
{
	uint32_t gpu_id = topology_gpu_id(gpu), minor = topology_minor(gpu);
	struct kfd_state *state = &process->state;
	pid_t pid = process->file.pid;
	uint64_t trap[2] = { 0 };
	int err = ask_job(share_kfds_file(survey, pid, minor), minor, driver, trap);

	if (!err)
		err = check_addresses(state, trap);
	if (err) {
		pr_warn("pid %d: gpu %#x: a trap handler that ROCm has set is not saved, so that restored kernels go on after a "
			"failed assertion: %s\n", pid, gpu_id, fail_text());
		fail_clear();
	} else if (trap[0]) {
		state->traps[state->nr_traps++] =
			(struct trap_handler){ .gpu_id = gpu_id, .tba = trap[0], .tma = trap[1] };
	}
}

/* ---- RUNTIME_ENABLE, at dump ---- */

/* What cannot be read, the KFD cannot read either. */
static bool has_exception_address(int memory, const struct queue_record *queue)
{
	struct kfd_context_save_area_header head;
	ssize_t got = pread(memory, &head, sizeof(head), (off_t)queue->cwsr_address);

	return got == sizeof(head) && head.err_payload_addr;
}

int runtime_find(pid_t pid, struct kfd_state *state)
{
	_cleanup_close_ int memory = -1;
	bool has_queue = false, told = false;
	struct queue_record queue;
	struct records records;

	records_begin(state, &records);
	while (!told && records_next_queue(&records, &queue) > 0) {
		if (queue.type != QUEUE_TYPE_COMPUTE || !queue.cwsr_address)
			continue;
		if (!has_queue)
			memory = proc_open(pid, "mem", O_RDONLY);
		if (memory < 0)
			return fail(memory, "cannot open /proc/%d/mem: %m", pid);
		has_queue = true;
		told = has_exception_address(memory, &queue);
	}
	state->runtime_enabled = has_queue ? told : state->nr_traps > 0;
	return 0;
}

int exceptions_read(struct gpu_process *process, const struct survey *survey, const struct driver_release *driver)
{
	struct kfd_state *state = &process->state;

	state->traps = calloc(state->nr_devices + 1, sizeof(*state->traps));
	if (!state->traps)
		return -ENOMEM;
	for (unsigned int i = 0; i < process->nodes->nr_nodes; i++) {
		const struct topology_node *gpu = process->nodes->nodes[i];

		if (topology_is_gpu(gpu) && trap_gpu_is_used(state, topology_gpu_id(gpu)))
			read_handler(process, gpu, survey, driver);
	}
	return runtime_find(process->file.pid, state);
}

/* ---- restore ---- */

/* The address of ROCr's own state, for a debugger that comes later, is not known. */
int runtime_enable(int fd, const struct kfd_state *state)
{
	struct kfd_ioctl_runtime_enable_args args = { .mode_mask = KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK };
	int err;

	if (!state->runtime_enabled)
		return 0;
	err = call_ioctl(fd, AMDKFD_IOC_RUNTIME_ENABLE, &args);
	if (err)
		return fail(err, "pid %u: the KFD does not take RUNTIME_ENABLE, without which the program does not hear of "
			    "exceptions in its queues: %m; restore it on a driver of the release where it was dumped",
			    state->pid);
	pr_info("pid %u: told of exceptions in its queues\n", state->pid);
	return 0;
}

int trap_set(int fd, const struct kfd_state *state)
{
	for (uint32_t i = 0; i < state->nr_traps; i++) {
		const struct trap_handler *trap = &state->traps[i];
		struct kfd_ioctl_set_trap_handler_args args = {
			.tba_addr = trap->tba, .tma_addr = trap->tma, .gpu_id = trap->gpu_id,
		};
		int err = call_ioctl(fd, AMDKFD_IOC_SET_TRAP_HANDLER, &args);

		if (err)
			return fail(err, "gpu %#x: the KFD does not take the trap handler at %#" PRIx64 " that pid %u had "
				    "set: %m; restore it on a driver of the release where it was dumped", trap->gpu_id,
				    trap->tba, state->pid);
	}
	return 0;
}
