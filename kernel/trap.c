// SPDX-License-Identifier: GPL-2.0-only
/*
 * SET_TRAP_HANDLER gives the KFD the addresses of a trap handler of the program, and of its memory. The KFD writes them
 * into the memory of its own handler, 6144 bytes behind the start (KFD_CWSR_TMA_OFFSET of Linux' kfd_priv.h), and nothing
 * gives them back. That memory is mapped in the program's address space on the GPU, for reading: since Linux 6.12 at the
 * latest right behind the addresses that programs may use (AMDGPU_VA_RESERVED_TRAP_START); before, elsewhere.
 */
#include <fcntl.h>
#include <inttypes.h>

#include "kernel/driver.h"
#include "amdgpu_plugin_util.h"

#define ADDRESSES_AT 6144u

/* A linear copy of SDMA 4 and later; the count is one less. */
#define SDMA_OP_COPY 1u

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
		return fail(-EOPNOTSUPP, "%s is not known to be 1, without which the driver does not keep it where it can be "
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

static bool is_mapped(const struct bo_record *bo, uint32_t gpu_id)
{
	for (uint32_t i = 0; i < records_nr_mapped(bo); i++)
		if (bo->mapped_gpus[i] == gpu_id)
			return true;
	return false;
}

bool trap_gpu_is_used(const struct kfd_state *state, uint32_t gpu_id)
{
	struct bo_record bo;

	for (size_t i = 0; i < state->nr_records; i++)
		if (!records_bo(state, i, &bo) && is_mapped(&bo, gpu_id))
			return true;
	return false;
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
