// SPDX-License-Identifier: GPL-2.0-only
/* Payloads of amdgpu-renderD images: as fuzz_kfd.c. */
#include <string.h>

#include "image/image.h"
#include "fuzz.h"

static void check_round_trip(const struct render_image *image)
{
	uint8_t *once = NULL, *twice = NULL;
	size_t once_size, twice_size;
	struct render_image *back = NULL;

	expect(!render_image_pack(image, 7, &once, &once_size));
	expect(!render_image_unpack("written again", once, once_size, &back));
	expect(!render_image_pack(back, 7, &twice, &twice_size));
	expect(once_size == twice_size && !memcmp(once, twice, once_size));
	render_image_free(back);
	free(once);
	free(twice);
}

static void check_objects(const struct render_objects *objects)
{
	for (size_t i = 0; i < objects->nr_handles; i++) {
		expect(objects->handles[i].handle && objects->handles[i].handle <= IMAGE_MAX_NUMBER);
		expect(objects->handles[i].buffer && objects->handles[i].buffer <= IMAGE_MAX_NUMBER);
		expect(!i || objects->handles[i - 1].handle < objects->handles[i].handle);
	}
	for (size_t i = 0; i < objects->nr_mappings; i++)
		expect(objects->nr_handles && objects->mappings[i].size);
	for (size_t i = 1; i < objects->nr_syncobjs; i++)
		expect(objects->syncobjs[i - 1].handle < objects->syncobjs[i].handle);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct render_image *image = NULL;
	int err = render_image_unpack("fuzzed", data, size, &image);

	expect(fuzz_errors() == (err != 0));
	expect(!image == (err != 0));
	if (err)
		return 0;
	expect(image->gpu_id);
	check_objects(&image->objects);
	expect(!image->nodes || topology_find_gpu(image->nodes, image->gpu_id) >= 0);
	/* Only images of other writers lack the nodes; they are never written. */
	if (image->nodes)
		check_round_trip(image);
	expect(!fuzz_errors());
	render_image_free(image);
	return 0;
}
