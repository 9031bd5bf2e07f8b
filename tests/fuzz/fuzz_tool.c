// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-checkpoint on a directory of a stranger's images: a kfd image, contents of one GPU, a render node. The first two
 * bytes say how long the kfd image is, the next two the same of the contents; the rest is the render node, and also a
 * dma-buf and criu's list of files. Every command answers, and a status other than the good one has its line.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "image/image.h"
#include "tool/commands.h"
#include "fuzz.h"

static char directory[PATH_MAX];

static void write_file(const char *name, const uint8_t *data, size_t size, bool framed)
{
	uint8_t prefix[LENGTH_PREFIX_BYTES];
	char path[PATH_MAX + 64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	expect(fd >= 0);
	length_prefix_put(prefix, size);
	expect(!framed || !write_all(fd, prefix, sizeof(prefix)));
	expect(!write_all(fd, data, size));
	close(fd);
}

static void begin(void)
{
	const char *tmp = getenv("TMPDIR");

	if (directory[0])
		return;
	snprintf(directory, sizeof(directory), "%s/fuzz_tool.XXXXXX", tmp ? tmp : "/tmp");
	expect(mkdtemp(directory));
}

/* The GPU that the contents are of: the image's first, or any. */
static uint32_t first_gpu(const uint8_t *data, size_t size)
{
	struct gpu_process *image = NULL;
	uint32_t ret = 0x1234;

	if (!kfd_image_unpack("fuzzed", data, size, &image) && image->state.nr_bos)
		ret = image->state.bos[0].gpu_id;
	gpu_process_free(image);
	return ret;
}

static size_t take(const uint8_t **data, size_t *size)
{
	size_t want = (*data)[0] | (size_t)(*data)[1] << 8;

	*data += 2;
	*size -= 2;
	return want;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arguments arguments = { .path = directory };
	char name[64], pages[PATH_MAX + 64];
	size_t kfd, contents;

	if (size < 4)
		return 0;
	begin();
	kfd = take(&data, &size);
	contents = take(&data, &size);
	kfd = kfd > size ? size : kfd;
	contents = contents > size - kfd ? size - kfd : contents;
	snprintf(name, sizeof(name), "amdgpu-pages-7-%04x.img", first_gpu(data, kfd));
	write_file("amdgpu-kfd-7.img", data, kfd, true);
	write_file(name, data + kfd, contents, false);
	write_file("amdgpu-renderD-8.img", data + kfd + contents, size - kfd - contents, true);
	write_file("amdgpu-shared-9.img", data + kfd + contents, size - kfd - contents, true);
	write_file("files.img", data + kfd + contents, size - kfd - contents, false);
	for (int json = 0; json < 2; json++) {
		int status;

		print_start(json);
		status = command_show(&arguments);
		expect(status == TOOL_GOOD || status == TOOL_BAD);
		status = command_verify(&arguments);
		expect(status == TOOL_GOOD || status == TOOL_BAD || status == TOOL_FAIL);
		arguments.machine = "tests/unit/data/topology/two-mi100";
		status = command_match(&arguments);
		expect(status == TOOL_GOOD || status == TOOL_BAD || status == TOOL_FAIL);
		arguments.machine = NULL;
	}
	snprintf(pages, sizeof(pages), "%s/%s", directory, name);
	unlink(pages);
	fuzz_errors();
	return 0;
}
