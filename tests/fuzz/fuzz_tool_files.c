// SPDX-License-Identifier: GPL-2.0-only
/* Archives that amdgpu-checkpoint reads images from. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "tool/commands.h"
#include "tool/images.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct images images;
	char path[32];
	struct arguments arguments = { .path = path };
	int fd = fuzz_file(data, size), status;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	print_start(false);
	images_open(path, &images);
	for (size_t i = 0; i < images.nr; i++)
		expect(!images.files[i].err == !images.files[i].problem);
	images_done(&images);
	status = command_verify(&arguments);
	expect(status == TOOL_GOOD || status == TOOL_BAD || status == TOOL_FAIL);
	close(fd);
	fuzz_errors();
	return 0;
}
