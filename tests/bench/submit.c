// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the driver needs to take a job of a GPU's DMA engine, by how much memory of this process is in the job's list of
 * BOs: the kernel looks at each page of it, whether the job uses it or not.
 *
 *     submit MINOR MIB...
 *
 * Prints a line "submit MIB MICROSECONDS" for each: the median of 101 jobs, which are NOPs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <libdrm/amdgpu.h>
#include <libdrm/amdgpu_drm.h>

#include "amdgpu_plugin_util.h"

#define IB_BYTES  4096u
#define IB_DWORDS 8u /* 0: a NOP of one dword */
#define JOBS	  101
#define WAIT_NS	  10000000000ull

static amdgpu_device_handle device;
static amdgpu_context_handle context;
static amdgpu_bo_handle ib;
static uint64_t ib_address;

static void check(const char *what, int err)
{
	if (!err)
		return;
	fprintf(stderr, "submit: %s: %s\n", what, strerror(-err));
	exit(1);
}

static void open_gpu(const char *minor)
{
	uint32_t major_version, minor_version;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/dri/renderD%s", minor);
	fd = open(path, O_RDWR | O_CLOEXEC);
	check(path, fd < 0 ? -errno : 0);
	check("the device", amdgpu_device_initialize(fd, &major_version, &minor_version, &device));
	check("a context", amdgpu_cs_ctx_create(device, &context));
}

/* Zeroed by the driver. */
static void make_ib(void)
{
	struct amdgpu_bo_alloc_request request = {
		.alloc_size = IB_BYTES, .phys_alignment = IB_BYTES, .preferred_heap = AMDGPU_GEM_DOMAIN_GTT,
	};
	amdgpu_va_handle range;

	check("an IB", amdgpu_bo_alloc(device, &request, &ib));
	check("an address", amdgpu_va_range_alloc(device, amdgpu_gpu_va_range_general, IB_BYTES, 0, 0, &ib_address, &range, 0));
	check("mapping the IB", amdgpu_bo_va_op(ib, 0, IB_BYTES, ib_address, 0, AMDGPU_VA_OP_MAP));
}

static amdgpu_bo_handle make_staging(uint64_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	amdgpu_bo_handle ret;

	check("memory", memory == MAP_FAILED ? -errno : 0);
	check("a userptr BO", amdgpu_create_bo_from_user_mem(device, memory, bytes, &ret));
	return ret;
}

/* Seconds of the submission, without the job. */
static double submit(amdgpu_bo_list_handle list)
{
	struct amdgpu_cs_ib_info info = { .ib_mc_address = ib_address, .size = IB_DWORDS };
	struct amdgpu_cs_request request = { .ip_type = AMDGPU_HW_IP_DMA, .resources = list, .number_of_ibs = 1, .ibs = &info };
	struct amdgpu_cs_fence fence = { .context = context, .ip_type = AMDGPU_HW_IP_DMA };
	double start = monotonic_seconds(), taken;
	uint32_t expired = 0;

	check("a submission", amdgpu_cs_submit(context, 0, &request, 1));
	taken = monotonic_seconds() - start;
	fence.fence = request.seq_no;
	check("the fence", amdgpu_cs_query_fence_status(&fence, WAIT_NS, 0, &expired));
	check("the job", expired ? 0 : -ETIMEDOUT);
	return taken;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(unsigned long mib)
{
	amdgpu_bo_handle bos[] = { ib, make_staging((uint64_t)mib << 20) };
	amdgpu_bo_list_handle list;
	double taken[JOBS];

	check("a list of BOs", amdgpu_bo_list_create(device, 2, bos, NULL, &list));
	submit(list); /* the first one takes the pages */
	for (int i = 0; i < JOBS; i++)
		taken[i] = submit(list);
	qsort(taken, JOBS, sizeof(taken[0]), compare);
	printf("submit %lu %.1f\n", mib, taken[JOBS / 2] * 1e6);
	check("the list", amdgpu_bo_list_destroy(list));
	check("the userptr BO", amdgpu_bo_free(bos[1]));
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: submit MINOR MIB...\n");
		return 2;
	}
	open_gpu(argv[1]);
	make_ib();
	for (int i = 2; i < argc; i++)
		measure(strtoul(argv[i], NULL, 10));
	return 0;
}
