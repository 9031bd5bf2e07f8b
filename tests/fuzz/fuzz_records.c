// SPDX-License-Identifier: GPL-2.0-only
/*
 * The records of CHECKPOINT: whatever their bytes are, reading ends, stays inside them, and says of records that fit
 * that they do. The first three bytes are the numbers of devices, BOs and objects.
 */
#include <errno.h>
#include <string.h>

#include "kernel/records.h"
#include "fuzz.h"

/* Every other BO and a filler: what comes out has records for just these. */
static void select_bos(struct kfd_state *state)
{
	const struct filler filler = { .gpu_id = 1, .handle = 7 };
	struct kfd_criu_bo_bucket bos[256] = { 0 };
	struct kfd_state selection = { 0 };
	struct bo_record record;
	bool keep[256];
	int err;

	for (size_t i = 0; i < 256; i++)
		keep[i] = i & 1;
	state->bos = bos;
	err = records_select(state, keep, &filler, 1, &selection);
	expect(!err || err == -EPROTO);
	if (!err) {
		expect(selection.nr_bos == state->nr_bos / 2 + 1);
		expect(!records_bo(&selection, selection.nr_bos - 1, &record) && record.handle == 7);
	}
	records_selection_done(&selection);
	state->bos = NULL;
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
	state = (struct kfd_state){ .nr_devices = data[0], .nr_bos = data[1], .nr_objects = data[2] };
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
	free(state.priv_data - 3);
	return 0;
}
