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
static void find_standins(struct kfd_state *state, const struct topology *gpu, const struct driver_release *driver,
			  uint32_t nr_queues)
{
	struct kfd_state whole = { 0 };
	struct bo_record record;

	expect(!standin_find(state, gpu, driver) && state->nr_standins <= nr_queues);
	expect(!records_select(state, NULL, state->standins, state->nr_standins, &whole));
	for (uint32_t i = 0; i < state->nr_standins; i++)
		expect(!records_bo(&whole, i, &record) && record.user_address == RECORDS_NO_MEMORY && whole.bos[i].addr &&
		       whole.bos[i].size % 4096 == 0);
	standin_drop(&whole);
	expect(!whole.nr_bos && whole.priv_size == state->priv_size &&
	       !memcmp(whole.priv_data, state->priv_data, state->priv_size));
	records_selection_done(&whole);
	free(state->standins);
}

static uint32_t count_queues(const struct kfd_state *state, uint32_t *ret_gpu)
{
	struct queue_record record = { 0 };
	struct records records;
	uint32_t nr = 0;

	expect(!records_begin(state, &records));
	while (records_next_queue(&records, &record) > 0)
		nr++;
	expect(!records.nr_left && records.at == records.size);
	*ret_gpu = record.gpu_id;
	return nr;
}

/* What a restore makes of a state that can be read, on a GPU of two XCCs, can be read as well. */
static void prepare_queues(struct kfd_state state)
{
	struct kfd_criu_device_bucket devices[256] = { 0 };
	struct topology *gpu = topology_new();
	struct topology_node *node;
	uint32_t id, same;
	uint32_t nr = count_queues(&state, &id);
	uint8_t *bytes = malloc(state.priv_size);
	const struct driver_release driver = { .major = 6, .minor = 12, .patch = 117 };
	int lost;

	expect(gpu && bytes && !topology_add_node(gpu, 1, &node));
	memcpy(bytes, state.priv_data, state.priv_size);
	state.priv_data = bytes;
	state.devices = devices;
	devices[0] = (struct kfd_criu_device_bucket){ .user_gpu_id = id, .actual_gpu_id = id };
	topology_node_set(node, TOPOLOGY_GPU_ID, id);
	topology_node_set(node, TOPOLOGY_GFX_TARGET_VERSION, 90402);
	topology_node_set(node, TOPOLOGY_NUM_XCC, 2);
	lost = stacks_add(&state, gpu, &driver, true);
	expect(lost >= 0 && (unsigned int)lost <= nr);
	fold_queues(&state, gpu);
	expect(count_queues(&state, &same) == nr && same == id);
	if (!state.nr_bos)
		find_standins(&state, gpu, &driver, nr);
	free(state.priv_data);
	topology_free(gpu);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kfd_state state = { 0 };
	struct queue_record record;
	struct records records;
	uint32_t nr_queues = 0;
	int r;

	if (size < 3)
		return 0;
	state = (struct kfd_state){ .nr_devices = data[0], .nr_bos = data[1], .nr_records = data[1], .nr_objects = data[2] };
	state.priv_size = size - 3;
	state.priv_data = malloc(size);
	expect(state.priv_data);
	/* At the end of the allocation: what is read behind it is seen. */
	memcpy(state.priv_data + 3, data + 3, size - 3);
	state.priv_data += 3;
	r = records_begin(&state, &records);
	expect(!r || r == -EPROTO);
	while (!r && (r = records_next_queue(&records, &record)) > 0) {
		nr_queues++;
		r = 0;
	}
	expect(!r || r == -EPROTO);
	expect(nr_queues <= state.nr_objects && records.at <= records.size);
	expect(r || (records.at == records.size && !records.nr_left));
	select_bos(&state);
	if (!r)
		prepare_queues(state);
	free(state.priv_data - 3);
	return 0;
}
