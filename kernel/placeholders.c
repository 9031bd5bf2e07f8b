// SPDX-License-Identifier: GPL-2.0-only
/* Placeholders: BOs at the addresses of SVM memory while RESTORE runs. */
#include <inttypes.h>

#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>

#include "amdgpu_plugin_util.h"
#include "kernel/driver.h"
#include "kernel/kfd.h"

/* The KFD gives the lowest free numbers. */
#define FIRST_NUMBER 0x70000000u

/* kfd_queue_ctx_save_restore_size() of Linux' kfd_queue.c: what the debugger is given of each wave. */
#define DEBUG_BYTES_PER_WAVE 32u
#define DEBUG_ALIGNMENT	     64u
#define GFX_NAVI10	     100100u

static uint64_t at_least_one(const struct topology_node *gpu, enum topology_prop prop)
{
	uint64_t value = topology_get(gpu, prop);

	return value ? value : 1;
}

/* Of an XCC. */
static uint64_t debug_bytes(const struct topology_node *gpu)
{
	uint64_t nr_xcc = at_least_one(gpu, TOPOLOGY_NUM_XCC);
	uint64_t cus = topology_get(gpu, TOPOLOGY_SIMD_COUNT) / at_least_one(gpu, TOPOLOGY_SIMD_PER_CU) / nr_xcc;
	uint64_t engines = topology_get(gpu, TOPOLOGY_ARRAY_COUNT) / nr_xcc /
			   at_least_one(gpu, TOPOLOGY_SIMD_ARRAYS_PER_ENGINE);
	uint64_t waves = cus * 32;

	if (topology_get(gpu, TOPOLOGY_GFX_TARGET_VERSION) < GFX_NAVI10)
		waves = cus * 40 < engines * 512 ? cus * 40 : engines * 512;
	return round_up(waves * DEBUG_BYTES_PER_WAVE, DEBUG_ALIGNMENT);
}

int placeholders_find(struct kfd_state *state, const struct topology *machine, const struct driver_release *driver)
{
	if (!driver_checks_queues(driver))
		return 0;
	for (uint32_t i = 0; i < state->nr_queues; i++) {
		const struct queue_record *queue = &state->queues[i];
		const struct topology_node *gpu = kfd_state_gpu(state, machine, queue->gpu_id);
		struct placeholder placeholder = {
			.gpu_id = queue->gpu_id,
			.handle = FIRST_NUMBER + state->nr_placeholders,
			.address = queue->cwsr_address,
		};
		bool is_there = !gpu || queue->type != QUEUE_TYPE_COMPUTE || !queue->cwsr_address;

		for (size_t k = 0; !is_there && k < state->nr_bos; k++)
			is_there = state->bos[k].addr == queue->cwsr_address;
		for (size_t k = 0; !is_there && k < state->nr_placeholders; k++)
			is_there = state->placeholders[k].address == queue->cwsr_address &&
				   state->placeholders[k].gpu_id == queue->gpu_id;
		if (is_there)
			continue;
		placeholder.size = round_up((queue->cwsr_size + debug_bytes(gpu)) * at_least_one(gpu, TOPOLOGY_NUM_XCC), PAGE_BYTES);
		if (array_add(state->placeholders, state->nr_placeholders, placeholder))
			return -ENOMEM;
	}
	return 0;
}

/* The render node that the KFD works with is open as long as RESTORE may need it. */
static int clear(const struct kfd_state *state, const struct placeholder *placeholder)
{
	struct drm_amdgpu_gem_va args = {
		.operation = AMDGPU_VA_OP_CLEAR,
		.va_address = placeholder->address,
		.map_size = placeholder->size,
	};
	int err = -ENODEV;

	for (uint32_t i = 0; i < state->nr_devices; i++)
		if (state->devices[i].user_gpu_id == placeholder->gpu_id)
			err = drm_call((int)state->devices[i].drm_fd, DRM_IOCTL_AMDGPU_GEM_VA, &args);
	if (!err)
		return 0;
	return fail(err, "gpu %#x: cannot make room for the memory of waves (CWSR) at %#" PRIx64 ": %m",
		    placeholder->gpu_id, placeholder->address);
}

int driver_restore(int kfd, struct kfd_state *state)
{
	struct kfd_state whole = { 0 };
	int err;

	if (!state->nr_placeholders)
		return kfd_restore(kfd, state);
	err = records_select(state, NULL, state->placeholders, state->nr_placeholders, &whole);
	if (!err)
		err = kfd_restore(kfd, &whole);
	for (uint32_t i = 0; !err && i < state->nr_placeholders; i++)
		err = clear(state, &state->placeholders[i]);
	if (!err)
		records_take_results(state, NULL, &whole);
	records_selection_done(&whole);
	return err;
}
