// SPDX-License-Identifier: GPL-2.0-only
/*
 * Image files as a whole: the length before the payload against what is there. The first
 * byte says of which kind the file is.
 */
#include <string.h>

#include "image/image.h"
#include "fuzz.h"

/* What the length and the payload alone lead to, without a file. */
static int unpack(bool render, const uint8_t *data, size_t size)
{
	struct render_image *node = NULL;
	struct kfd_image *kfd = NULL;
	int err = render ? render_image_unpack("amdgpu-renderD-8.img", data, size, &node) :
			   kfd_image_unpack("amdgpu-kfd-7.img", data, size, &kfd);

	render_image_free(node);
	kfd_image_free(kfd);
	return err;
}

static bool is_complete(const uint8_t *data, size_t size)
{
	uint64_t length;

	if (size < sizeof(length))
		return false;
	memcpy(&length, data, sizeof(length));
	return length <= size - sizeof(length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct render_image *node = NULL;
	struct kfd_image *kfd = NULL;
	uint64_t length;
	bool render;
	int err;

	if (!size)
		return 0;
	render = data[0] & 1;
	data++;
	size--;
	fuzz_set_image(data, size);
	err = render ? render_image_read(8, &node) : kfd_image_read(7, &kfd);
	expect(fuzz_errors() == (err != 0));
	expect((!node && !kfd) == (err != 0));
	render_image_free(node);
	kfd_image_free(kfd);
	if (is_complete(data, size)) {
		memcpy(&length, data, sizeof(length));
		expect(err == unpack(render, data + sizeof(length), length));
	} else {
		expect(err);
	}
	fuzz_errors();
	return 0;
}
