// SPDX-License-Identifier: GPL-2.0-only
/*
 * The records of CHECKPOINT: whatever their bytes are, reading ends, stays inside them, and says of records that fit
 * that they do. The first three bytes are the numbers of devices, BOs and objects.
 */
#include <errno.h>
#include <string.h>

#include "amdgpu_plugin_topology.h"
#include "kernel/driver.h"
#include "kernel/state.h"
#include "fuzz.h"

/* Every other BO and a placeholder: what comes out has records for just these. */
static void select_bos(struct kfd_state *state)
{
	const struct placeholder placeholder = { .gpu_id = 1, .handle = 7 };
	struct bo bos[256] = { 0 };
	struct kfd_state selection = { 0 };
	struct bo_record record;
	bool keep[256];
	int err;

	for (size_t i = 0; i < 256; i++)
		keep[i] = i & 1;
	state->bos = bos;
	err = records_select(state, keep, &placeholder, 1, &selection);
	expect(!err || err == -EPROTO);
	if (!err) {
		expect(selection.nr_bos == state->nr_bos / 2 + 1);
		expect(!records_bo(&selection, selection.nr_bos - 1, &record) && record.handle == 7);
	}
	records_selection_done(&selection);
	state->bos = NULL;
}

/* Not called: that needs a KFD. */
int kfd_restore(int fd, struct kfd_state *state)
{
	(void)fd;
	(void)state;
	return -ENODEV;
}

/* What RESTORE wants besides comes once for each memory of waves, with a size of its own. */
static void find_placeholders(struct kfd_state *state, const struct topology *gpu, const struct driver_release *driver,
			  uint32_t nr_queues)
{
	struct kfd_state whole = { 0 };
	struct bo_record record;

	expect(!placeholders_find(state, gpu, driver) && state->nr_placeholders <= nr_queues);
	expect(!records_select(state, NULL, state->placeholders, state->nr_placeholders, &whole));
	for (uint32_t i = 0; i < state->nr_placeholders; i++)
		expect(!records_bo(&whole, i, &record) && record.user_address == RECORDS_NO_MEMORY && whole.bos[i].addr &&
		       whole.bos[i].size % 4096 == 0);
	records_drop_placeholders(&whole);
	expect(!whole.nr_bos && whole.priv_size == state->priv_size &&
	       !memcmp(whole.priv_data, state->priv_data, state->priv_size));
	records_selection_done(&whole);
	free(state->placeholders);
}

/* What has become of the queues is what their bytes say. */
static void expect_queues(const struct kfd_state *state)
{
	struct kfd_state again = *state;

	again.queues = NULL;
	again.ranges = NULL;
	again.nr_queues = again.nr_ranges = 0;
	expect(!records_read(&again, again.nr_devices) && again.is_known && again.nr_queues == state->nr_queues);
	for (uint32_t i = 0; i < again.nr_queues; i++) {
		const struct queue_record *is = &state->queues[i], *wanted = &again.queues[i];

		expect(is->at == wanted->at && is->mqd == wanted->mqd && is->mqd_size == wanted->mqd_size &&
		       is->ctl_stack_size == wanted->ctl_stack_size && is->nr_mqds == wanted->nr_mqds);
	}
	free(again.queues);
	free(again.ranges);
}

/* What a restore makes of a state that can be read, on a GPU of two XCCs, can be read as well. */
static void prepare_queues(struct kfd_state *state)
{
	struct kfd_criu_device_bucket devices[256] = { 0 };
	struct topology *gpu = topology_new();
	struct topology_node *node;
	uint32_t id = state->nr_queues ? state->queues[state->nr_queues - 1].gpu_id : 0;
	const struct driver_release driver = { .major = 6, .minor = 12, .patch = 117 };
	int lost;

	expect(gpu && !topology_add_node(gpu, 1, &node));
	state->devices = devices;
	devices[0] = (struct kfd_criu_device_bucket){ .user_gpu_id = id, .actual_gpu_id = id };
	topology_node_set(node, TOPOLOGY_GPU_ID, id);
	topology_node_set(node, TOPOLOGY_GFX_TARGET_VERSION, 90402);
	topology_node_set(node, TOPOLOGY_NUM_XCC, 2);
	lost = stacks_add(state, gpu, &driver, true);
	expect(lost >= 0 && (unsigned int)lost <= state->nr_queues);
	expect_queues(state);
	fold_queues(state, gpu);
	expect_queues(state);
	if (!state->nr_bos)
		find_placeholders(state, gpu, &driver, state->nr_queues);
	topology_free(gpu);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kfd_state state = { 0 };

	if (size < 3)
		return 0;
	state = (struct kfd_state){ .nr_devices = data[0], .nr_bos = data[1], .nr_records = data[1], .nr_objects = data[2] };
	/* At the end of the allocation: what is read behind it is seen. */
	state.priv_size = size - 3;
	state.priv_data = malloc(state.priv_size + !state.priv_size);
	expect(state.priv_data);
	memcpy(state.priv_data, data + 3, state.priv_size);
	expect(!records_read(&state, state.nr_devices));
	expect(state.nr_queues + state.nr_events + state.nr_ranges <= state.nr_objects);
	expect(!state.is_known || state.nr_queues + state.nr_events + state.nr_ranges == state.nr_objects);
	select_bos(&state);
	if (state.is_known)
		prepare_queues(&state);
	free(state.priv_data);
	free(state.queues);
	free(state.ranges);
	return 0;
}
