// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payloads of amdgpu-kfd images. What is accepted keeps the rules by which the rest of the
 * plugin uses it, and comes back the same when it is written and read again.
 */
#include <string.h>

#include "image/image.h"
#include "fuzz.h"

static void check_bos(const struct gpu_process *image)
{
	uint64_t total = 0, end;

	for (size_t i = 0; i < image->state.nr_bos; i++) {
		const struct bo *bo = &image->state.bos[i];

		expect(topology_find_gpu(image->nodes, bo->gpu_id) >= 0);
		expect(bo->size && !__builtin_add_overflow(bo->addr, bo->size, &end));
		expect(!__builtin_add_overflow(total, bo->size, &total));
	}
}

/* Those that are not of the KFD come last; whoever imports says what. */
static void check_shares(const struct gpu_process *image)
{
	const struct kfd_state *state = &image->state;

	expect(state->nr_records <= state->nr_bos);
	expect(!kfd_state_shares(state) || image->nr_sharers);
	for (size_t i = 0; i < state->nr_bos; i++) {
		const struct kfd_share *share = &state->bos[i].share;

		expect(share->buffer <= IMAGE_MAX_NUMBER && share->metadata_size <= KFD_METADATA_MAX);
		expect(share->kind == KFD_BO_OWN || share->buffer);
		expect((share->kind == KFD_BO_GEM || share->kind == KFD_BO_REF) == (i >= state->nr_records));
	}
}

static void check_vmas(const struct gpu_process *image)
{
	size_t i;

	for (i = 0; i < image->nr_vmas; i++) {
		expect(image->vmas[i].start < image->vmas[i].end);
		expect(!i || image->vmas[i - 1].end <= image->vmas[i].start);
	}
}

static void check_rules(const struct gpu_process *image)
{
	expect(image->nodes && image->nodes->nr_nodes <= TOPOLOGY_MAX_NODES);
	if (image->extra_file)
		return;
	expect(topology_count_gpus(image->nodes) > 0);
	expect((image->state.priv_data && image->state.priv_size) == !image->no_kfd);
	expect(!image->no_kfd ||
	       (!image->state.nr_records && !image->state.nr_objects && image->nr_sharers));
	check_bos(image);
	check_shares(image);
	check_vmas(image);
}

static void check_round_trip(const struct gpu_process *image)
{
	uint8_t *once = NULL, *twice = NULL;
	size_t once_size, twice_size;
	struct gpu_process *back = NULL;

	expect(!kfd_image_pack(image, 7, &once, &once_size));
	expect(!kfd_image_unpack("written again", once, once_size, &back));
	expect(!kfd_image_pack(back, 7, &twice, &twice_size));
	expect(once_size == twice_size && !memcmp(once, twice, once_size));
	gpu_process_free(back);
	free(once);
	free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpu_process *image = NULL;
	int err = kfd_image_unpack("fuzzed", data, size, &image);

	expect(fuzz_errors() == (err != 0));
	expect(!image == (err != 0));
	if (err)
		return 0;
	check_rules(image);
	check_round_trip(image);
	expect(!fuzz_errors());
	gpu_process_free(image);
	return 0;
}
