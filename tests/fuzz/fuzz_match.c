// SPDX-License-Identifier: GPL-2.0-only
/*
 * The nodes of an image against themselves: a process can always go back to the machine that
 * it was dumped on, whatever that looks like, and each GPU has itself for a place.
 */
#include <errno.h>

#include "amdgpu_plugin_util.h"
#include "image/image.h"
#include "match/match.h"
#include "fuzz.h"

static void check_map(const struct topology *nodes, const struct match_map *map)
{
	bool taken[TOPOLOGY_MAX_NODES] = { false };
	unsigned int i;

	expect(map->nr_pairs == topology_count_gpus(nodes));
	for (i = 0; i < map->nr_pairs; i++) {
		expect(map->pairs[i].saved < nodes->nr_nodes && map->pairs[i].local < nodes->nr_nodes);
		expect(!taken[map->pairs[i].local]);
		taken[map->pairs[i].local] = true;
		/* The map that keeps every gpu id exists, so it is the one. */
		expect(map->pairs[i].user_gpu_id == map->pairs[i].actual_gpu_id);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpu_process *image = NULL;
	struct match_map *map = NULL;
	const struct match_options options = { .nr_pairs = 0 };
	int err;

	if (!kfd_image_unpack("fuzzed", data, size, &image)) {
		err = match_devices(image->nodes, image->nodes, &options, &map);
		if (err) {
			fprintf(stderr, "%d: %s\n", err, fail_text());
			expect(err == -E2BIG && fail_text()[0]);
		} else {
			check_map(image->nodes, map);
		}
	}
	free(map);
	gpu_process_free(image);
	fuzz_errors();
	return 0;
}
