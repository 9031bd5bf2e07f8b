// SPDX-License-Identifier: GPL-2.0-only
/*
 * pressure MIB [MINOR]: a graphics program that wants MIB of a GPU's VRAM again and again, by buffers of 16 MiB that it
 * allocates, writes, checks and frees. When others have the VRAM, the driver moves their buffers out of it, and back
 * later. It writes "round N" to stdout after each round, and ends with 1 when a byte is not as written.
 */
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES (16u << 20)
#define MAX_BUFFERS  256

static amdgpu_bo_handle buffer_new(amdgpu_device_handle device)
{
	struct amdgpu_bo_alloc_request request = {
		.alloc_size = BUFFER_BYTES,
		.phys_alignment = 4096,
		.preferred_heap = AMDGPU_GEM_DOMAIN_VRAM,
	};
	amdgpu_bo_handle bo;
	int ret = amdgpu_bo_alloc(device, &request, &bo);

	if (ret)
		errx(1, "allocating %u bytes of VRAM: %s", BUFFER_BYTES, strerror(-ret));
	return bo;
}

/* Calls @each with every page's number and first word. */
static void buffer_pages(amdgpu_bo_handle bo, unsigned int i, void (*each)(uint64_t *word, uint64_t want))
{
	void *map;
	int ret = amdgpu_bo_cpu_map(bo, &map);

	if (ret)
		errx(1, "mapping VRAM: %s", strerror(-ret));
	for (unsigned int at = 0; at < BUFFER_BYTES; at += 4096)
		each((uint64_t *)((char *)map + at), (uint64_t)i << 32 | at);
	amdgpu_bo_cpu_unmap(bo);
}

static void page_write(uint64_t *word, uint64_t want)
{
	*word = want;
}

static void page_check(uint64_t *word, uint64_t want)
{
	if (*word != want)
		errx(1, "found %#" PRIx64 " in VRAM, wrote %#" PRIx64, *word, want);
}

int main(int argc, char **argv)
{
	unsigned int minor = argc > 2 ? atoi(argv[2]) : 128, nr = argc > 1 ? atoi(argv[1]) / 16 : 0, round = 0;
	amdgpu_bo_handle bos[MAX_BUFFERS];
	amdgpu_device_handle device;
	uint32_t major, minor_version;
	char path[64];
	int fd;

	if (!nr || nr > MAX_BUFFERS)
		errx(2, "usage: pressure MIB [RENDER-MINOR], 16 to %u MiB", 16 * MAX_BUFFERS);
	snprintf(path, sizeof(path), "/dev/dri/renderD%u", minor);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		err(1, "%s", path);
	if (amdgpu_device_initialize(fd, &major, &minor_version, &device))
		errx(1, "%s is not amdgpu's", path);
	for (;;) {
		for (unsigned int i = 0; i < nr; i++) {
			bos[i] = buffer_new(device);
			buffer_pages(bos[i], i, page_write);
		}
		for (unsigned int i = 0; i < nr; i++) {
			buffer_pages(bos[i], i, page_check);
			amdgpu_bo_free(bos[i]);
		}
		printf("round %u\n", ++round);
		fflush(stdout);
		usleep(200000);
	}
}
