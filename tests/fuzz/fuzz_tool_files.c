// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files that amdgpu-image takes whole: archives with images ('a' first), copies of a topology (anything else). Nothing
 * of either is left behind.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "tool/commands.h"
#include "tool/images.h"
#include "tool/topology.h"
#include "fuzz.h"

static unsigned int entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned int nr = 0;

	expect(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

static void try_archive(const uint8_t *data, size_t size)
{
	struct images images = { .dir = -1, .archive = -1 };
	char path[32];
	struct arguments arguments = { .path = path };
	int fd = fuzz_file(data, size), status;

	archive_read_images("fuzzed", fd, &images);
	for (size_t i = 0; i < images.nr; i++)
		expect(!images.files[i].err == !images.files[i].problem);
	images_done(&images);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	status = command_verify(&arguments);
	expect(status == TOOL_GOOD || status == TOOL_BAD || status == TOOL_FAIL);
	close(fd);
}

static void try_topology(const uint8_t *data, size_t size)
{
	const char *tmp = getenv("TMPDIR");
	unsigned int before = entries(tmp ? tmp : "/tmp");
	struct topology *topology = NULL;
	int fd = fuzz_file(data, size);
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	expect(!topology_open(path, &topology) == !!topology);
	topology_free(topology);
	close(fd);
	expect(!tmp || entries(tmp) == before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] == 'a')
		try_archive(data + 1, size - 1);
	else
		try_topology(data + 1, size - 1);
	fuzz_errors();
	return 0;
}
