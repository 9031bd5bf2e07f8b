// SPDX-License-Identifier: GPL-2.0-only
/*
 * The copier on libdrm_amdgpu: device, context, registered staging memory, IBs, BO
 * mappings, submissions and fences. Packets come from content/sdma.c, the CPU path
 * is content/cpucopy.c.
 *
 * All GPU addresses are made in a render-node file of the plugin's own; a process that is
 * being dumped never sees them. Only calls that libdrm 2.4.114 has.
 */
#include "content/copier.h"

#include <libdrm/amdgpu_drm.h>
#include <time.h>

#include "content/cpucopy.h"
#include "amdgpu_plugin_util.h"

#define PAGE_BYTES	4096u
#define HUGE_PAGE_BYTES (2u << 20)
/* Holes shorter than this are not looked for, see content/pagesio.h: bounds the packets of a slot. */
#define FILL_BYTES_MIN	(64u << 10)
/* Slots smaller than this are not worth more than one ring. */
#define SPLIT_BYTES_MIN (1u << 20)
/* How often a wait for a fence looks whether it should end. */
#define FENCE_SLICE_MS	100

/* Gives bo->bo an address. */
static int gpu_map(struct copier *copier, struct copier_bo *bo, uint64_t size)
{
	uint64_t bytes = round_up(size, PAGE_BYTES);
	int err;

	err = amdgpu_va_range_alloc(copier->device, amdgpu_gpu_va_range_general, bytes,
				    bytes < HUGE_PAGE_BYTES ? PAGE_BYTES : HUGE_PAGE_BYTES, 0, &bo->address, &bo->va,
				    0);
	if (err)
		return err;
	err = amdgpu_bo_va_op(bo->bo, 0, bytes, bo->address, 0, AMDGPU_VA_OP_MAP);
	if (!err)
		bo->map_bytes = bytes;
	return err;
}

/* First error, and goes on: the next steps release what a failed one left. */
static int gpu_unmap(struct copier_bo *bo)
{
	int ret = 0, err;

	if (bo->map_bytes)
		ret = amdgpu_bo_va_op(bo->bo, 0, bo->map_bytes, bo->address, 0, AMDGPU_VA_OP_UNMAP);
	if (bo->va) {
		err = amdgpu_va_range_free(bo->va);
		ret = ret ? ret : err;
	}
	if (bo->bo) {
		err = amdgpu_bo_free(bo->bo);
		ret = ret ? ret : err;
	}
	*bo = (struct copier_bo){ 0 };
	return ret;
}

static int find_rings(struct copier *copier)
{
	unsigned int max_rings = copier->config.slot_bytes < SPLIT_BYTES_MIN ? 1 : COPIER_MAX_RINGS;
	struct drm_amdgpu_info_hw_ip info = { 0 };
	int err;

	copier->doing = "asking for DMA rings";
	err = amdgpu_query_hw_ip_info(copier->device, AMDGPU_HW_IP_DMA, 0, &info);
	if (err)
		return err;
	for (uint32_t ring = 0; ring < 32 && copier->nr_rings < max_rings; ring++)
		if (info.available_rings >> ring & 1)
			copier->rings[copier->nr_rings++] = ring;
	return 0;
}

static int open_device(struct copier *copier)
{
	struct amdgpu_gpu_info info = { 0 };
	uint32_t major, minor;
	int err;

	copier->doing = "opening the render node by libdrm, which has to find it in /dev/dri";
	err = amdgpu_device_initialize(copier->config.render_fd, &major, &minor, &copier->device);
	if (err)
		return err;
	copier->doing = "asking for the GPU's family";
	err = amdgpu_query_gpu_info(copier->device, &info);
	if (err)
		return err;
	copier->rules = sdma_rules(info.family_id);
	return find_rings(copier);
}

static int register_staging(struct copier *copier)
{
	uint64_t bytes = copier->config.slot_bytes * copier->config.nr_slots;
	int err;

	copier->doing = "registering staging memory";
	err = amdgpu_create_bo_from_user_mem(copier->device, copier->config.staging, bytes, &copier->staging.bo);
	if (err)
		return err;
	copier->doing = "mapping staging memory";
	return gpu_map(copier, &copier->staging, bytes);
}

static unsigned int nr_parts(const struct copier *copier)
{
	return copier->config.nr_slots * copier->nr_rings;
}

/* One BO holds the IBs of all parts. */
static int alloc_ibs(struct copier *copier)
{
	struct amdgpu_bo_alloc_request request = {
		.preferred_heap = AMDGPU_GEM_DOMAIN_GTT,
		.phys_alignment = PAGE_BYTES,
	};
	uint64_t packets;
	int err;

	copier->part_bytes = round_up(copier->config.slot_bytes / copier->nr_rings, PAGE_BYTES);
	packets = copier->part_bytes / PAGE_BYTES + 2 * (copier->part_bytes / FILL_BYTES_MIN) + 16;
	copier->max_bos = packets + 2;
	copier->ib_bytes = round_up(packets * SDMA_COPY_DWORDS * sizeof(uint32_t), PAGE_BYTES);
	request.alloc_size = copier->ib_bytes * nr_parts(copier);
	copier->doing = "allocating indirect buffers";
	err = amdgpu_bo_alloc(copier->device, &request, &copier->ib.bo);
	if (err)
		return err;
	copier->doing = "mapping indirect buffers";
	err = gpu_map(copier, &copier->ib, request.alloc_size);
	if (err)
		return err;
	copier->doing = "mapping indirect buffers for the CPU";
	return amdgpu_bo_cpu_map(copier->ib.bo, &copier->ib.cpu);
}

static void part_begin(struct copier *copier, struct copier_part *part)
{
	part->ib.nr_dw = 0;
	part->bos[0] = copier->staging.bo;
	part->bos[1] = copier->ib.bo;
	part->nr_bos = 2;
}

static int alloc_parts(struct copier *copier)
{
	copier->doing = "allocating memory";
	copier->parts = calloc(nr_parts(copier), sizeof(*copier->parts));
	if (!copier->parts)
		return -ENOMEM;
	for (unsigned int i = 0; i < nr_parts(copier); i++) {
		struct copier_part *part = &copier->parts[i];

		part->bos = calloc(copier->max_bos, sizeof(*part->bos));
		if (!part->bos)
			return -ENOMEM;
		part->ib.dw = (uint32_t *)((char *)copier->ib.cpu + i * copier->ib_bytes);
		part->ib.max_dw = copier->ib_bytes / sizeof(uint32_t);
		part->ib.rules = copier->rules;
		part->ib_address = copier->ib.address + i * copier->ib_bytes;
		part->fence.context = copier->context;
		part->fence.ip_type = AMDGPU_HW_IP_DMA;
		part->fence.ring = copier->rings[i % copier->nr_rings];
		part_begin(copier, part);
	}
	return 0;
}

int copier_init(struct copier *copier, const struct copier_config *config)
{
	int err;

	*copier = (struct copier){ .config = *config, .bounce_fd = -1 };
	err = open_device(copier);
	if (err)
		return err;
	if (!copier->nr_rings) {
		copier->cpu = true;
		return cpucopy_init(copier);
	}
	copier->doing = "creating a GPU context";
	err = amdgpu_cs_ctx_create(copier->device, &copier->context);
	err = err ? err : register_staging(copier);
	err = err ? err : alloc_ibs(copier);
	return err ? err : alloc_parts(copier);
}

static int free_ibs(struct copier *copier)
{
	int ret = 0, err;

	if (copier->ib.cpu)
		ret = amdgpu_bo_cpu_unmap(copier->ib.bo);
	copier->ib.cpu = NULL;
	err = gpu_unmap(&copier->ib);
	return ret ? ret : err;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int wait_part(struct copier *copier, struct copier_part *part)
{
	uint32_t limit_ms = copier->config.fence_timeout_ms;
	uint64_t slice_ns = (limit_ms < FENCE_SLICE_MS ? limit_ms : FENCE_SLICE_MS) * 1000000ull;
	uint64_t deadline = now_ms() + limit_ms;
	uint32_t expired = 0;
	int err;

	copier->doing = "waiting for the GPU";
	while (part->in_flight) {
		err = amdgpu_cs_query_fence_status(&part->fence, slice_ns, 0, &expired);
		if (err && err != -EINTR)
			return err;
		part->in_flight = err || !expired;
		if (part->in_flight && copier->config.stopped && copier->config.stopped(copier->config.stopped_arg))
			return -ECANCELED;
		if (part->in_flight && now_ms() >= deadline) {
			copier->doing = "the GPU does not finish a copy";
			copier->hung_rings |= 1u << part->fence.ring;
			return -ETIME;
		}
	}
	return 0;
}

int copier_wait(struct copier *copier, unsigned int slot)
{
	int err = 0;

	for (unsigned int i = 0; copier->parts && i < copier->nr_rings && !err; i++)
		err = wait_part(copier, &copier->parts[slot * copier->nr_rings + i]);
	return err;
}

int copier_drain(struct copier *copier)
{
	int ret = 0;

	copier->config.stopped = NULL; /* the memory must not go while the GPU uses it */
	for (unsigned int i = 0; copier->parts && i < nr_parts(copier); i++) {
		struct copier_part *part = &copier->parts[i];
		int err = 0;

		if (!(copier->hung_rings >> part->fence.ring & 1))
			err = wait_part(copier, part);
		ret = ret ? ret : err;
	}
	return ret;
}

int copier_done(struct copier *copier)
{
	int ret = copier_drain(copier), err;

	for (unsigned int i = 0; copier->parts && i < nr_parts(copier); i++)
		free(copier->parts[i].bos);
	free(copier->parts);
	copier->parts = NULL;
	cpucopy_done(copier);
	copier->doing = "releasing GPU memory";
	err = free_ibs(copier);
	ret = ret ? ret : err;
	err = gpu_unmap(&copier->staging);
	ret = ret ? ret : err;
	copier->doing = "releasing the GPU";
	err = copier->context ? amdgpu_cs_ctx_free(copier->context) : 0;
	ret = ret ? ret : err;
	err = copier->device ? amdgpu_device_deinitialize(copier->device) : 0;
	copier->context = NULL;
	copier->device = NULL;
	return ret ? ret : err;
}

int copier_map_bo(struct copier *copier, int dmabuf_fd, uint64_t size, struct copier_bo *bo)
{
	struct amdgpu_bo_import_result import = { 0 };
	int err;

	bo->dmabuf_fd = dmabuf_fd;
	if (copier->cpu)
		return cpucopy_map(copier, bo, size);
	copier->doing = "importing the dma-buf";
	err = amdgpu_bo_import(copier->device, amdgpu_bo_handle_type_dma_buf_fd, (uint32_t)dmabuf_fd, &import);
	/* The one call of libdrm whose failure may be a plain -1, with the reason in errno. */
	if (err)
		return err == -1 ? errno_or_eio() : err;
	bo->bo = import.buf_handle;
	copier->doing = "the dma-buf is smaller than the BO";
	if (import.alloc_size < size)
		return -EINVAL;
	copier->doing = "mapping the BO";
	return gpu_map(copier, bo, size);
}

int copier_unmap_bo(struct copier *copier, struct copier_bo *bo)
{
	if (copier->cpu)
		return cpucopy_unmap(copier, bo);
	copier->doing = "unmapping the BO";
	return gpu_unmap(bo);
}

static int submit_ib(struct copier *copier, struct copier_part *part, amdgpu_bo_list_handle list)
{
	struct amdgpu_cs_ib_info ib = {
		.ib_mc_address = part->ib_address,
		.size = (uint32_t)part->ib.nr_dw,
	};
	struct amdgpu_cs_request request = {
		.ip_type = AMDGPU_HW_IP_DMA,
		.ring = part->fence.ring,
		.resources = list,
		.number_of_ibs = 1,
		.ibs = &ib,
	};
	int err;

	copier->doing = "submitting the copy";
	err = amdgpu_cs_submit(copier->context, 0, &request, 1);
	if (!err)
		part->fence.fence = request.seq_no;
	return err;
}

static int submit_part(struct copier *copier, struct copier_part *part)
{
	amdgpu_bo_list_handle list = NULL;
	int err, list_err;

	if (!part->ib.nr_dw)
		return 0;
	sdma_finish(&part->ib);
	copier->doing = "listing buffers";
	err = amdgpu_bo_list_create(copier->device, (uint32_t)part->nr_bos, part->bos, NULL, &list);
	if (err)
		return err;
	err = submit_ib(copier, part, list);
	part->in_flight = !err;
	part_begin(copier, part);
	/* The kernel holds the buffers of a submission itself. */
	list_err = amdgpu_bo_list_destroy(list);
	return err ? err : list_err;
}

int copier_submit(struct copier *copier, unsigned int slot)
{
	int err = 0;

	for (unsigned int i = 0; copier->parts && i < copier->nr_rings && !err; i++)
		err = submit_part(copier, &copier->parts[slot * copier->nr_rings + i]);
	return err;
}

/* Makes room in a full IB. Only BOs smaller than a page can get here. */
static int flush(struct copier *copier, struct copier_part *part)
{
	int err = submit_part(copier, part);

	return err ? err : wait_part(copier, part);
}

static int use_bo(struct copier *copier, struct copier_part *part, amdgpu_bo_handle bo)
{
	if (part->bos[part->nr_bos - 1] == bo)
		return 0;
	if (part->nr_bos == copier->max_bos) {
		int err = flush(copier, part);

		if (err)
			return err;
	}
	part->bos[part->nr_bos++] = bo;
	return 0;
}

/* Packets for one part: a copy, or zeros where there is no address of staging memory. */
static int add_to_part(struct copier *copier, struct copier_part *part, struct copier_bo *bo, uint64_t in_bo,
		       uint64_t in_staging, uint64_t len)
{
	bool out = copier->config.to_staging;

	for (uint64_t done = 0;;) {
		int err = use_bo(copier, part, bo->bo);

		if (err)
			return err;
		if (!in_staging)
			done += sdma_add_zeros(&part->ib, in_bo + done, len - done);
		else
			done += sdma_add_copy(&part->ib, (out ? in_staging : in_bo) + done,
					      (out ? in_bo : in_staging) + done, len - done);
		if (done == len)
			return 0;
		err = flush(copier, part);
		if (err)
			return err;
	}
}

/* Each ring gets what lies in its part of the slot. */
static int add(struct copier *copier, unsigned int slot, struct copier_bo *bo, uint64_t bo_off, uint64_t slot_off,
	       uint64_t len, bool zero)
{
	uint64_t staging = copier->staging.address + slot * copier->config.slot_bytes;
	int err = 0;

	for (uint64_t done = 0, bytes; done < len && !err; done += bytes) {
		uint64_t at = slot_off + done, ring = at / copier->part_bytes;
		uint64_t part_end = (ring + 1) * copier->part_bytes;

		bytes = len - done < part_end - at ? len - done : part_end - at;
		err = add_to_part(copier, &copier->parts[slot * copier->nr_rings + ring], bo,
				  bo->address + bo_off + done, zero ? 0 : staging + at, bytes);
	}
	return err;
}

int copier_copy(struct copier *copier, unsigned int slot, struct copier_bo *bo, uint64_t bo_off, uint64_t slot_off,
		uint64_t len)
{
	if (copier->cpu)
		return cpucopy_copy(copier, bo, bo_off, slot * copier->config.slot_bytes + slot_off, len);
	return add(copier, slot, bo, bo_off, slot_off, len, false);
}

int copier_zero(struct copier *copier, unsigned int slot, struct copier_bo *bo, uint64_t bo_off, uint64_t slot_off,
		uint64_t len)
{
	if (copier->cpu)
		return cpucopy_zero(copier, bo, bo_off, len);
	return add(copier, slot, bo, bo_off, slot_off, len, true);
}

int copier_check_reset(struct copier *copier)
{
	uint64_t flags = 0;
	int err;

	if (!copier->context)
		return 0;
	copier->doing = "asking whether the GPU was reset";
	err = amdgpu_cs_query_reset_state2(copier->context, &flags);
	if (err == -EINVAL)
		return 0; /* a kernel before 4.15: it has no such query */
	if (err)
		return err;
	copier->doing = "the GPU was reset during the copy";
	return flags & (AMDGPU_CTX_QUERY2_FLAGS_RESET | AMDGPU_CTX_QUERY2_FLAGS_VRAMLOST) ? -EIO : 0;
}
