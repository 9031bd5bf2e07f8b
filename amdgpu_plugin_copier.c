// SPDX-License-Identifier: GPL-2.0-only
/*
 * The copier on libdrm_amdgpu: device, context, registered staging memory, IBs, BO
 * mappings, submissions and fences. Packets come from amdgpu_plugin_sdma.c, the CPU path
 * is amdgpu_plugin_cpucopy.c.
 *
 * All GPU addresses are made in a render-node file of the plugin's own; a process that is
 * being dumped never sees them. Only calls that libdrm 2.4.114 has.
 */
#include "amdgpu_plugin_copier.h"

#include <libdrm/amdgpu_drm.h>
#include <time.h>

#include "amdgpu_plugin_cpucopy.h"
#include "amdgpu_plugin_util.h"

#define PAGE_BYTES	4096u
#define HUGE_PAGE_BYTES (2u << 20)
/* Holes shorter than this are not looked for, see amdgpu_plugin_pagesio.h: bounds the packets of a slot. */
#define FILL_BYTES_MIN	(64u << 10)
/* How often a wait for a fence looks whether it should end. */
#define FENCE_SLICE_MS	100

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

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
	struct drm_amdgpu_info_hw_ip info = { 0 };
	int err;

	copier->doing = "asking for DMA rings";
	err = amdgpu_query_hw_ip_info(copier->device, AMDGPU_HW_IP_DMA, 0, &info);
	if (err)
		return err;
	for (uint32_t ring = 0; ring < 32 && copier->nr_rings < COPIER_MAX_RINGS; ring++)
		if (info.available_rings >> ring & 1)
			copier->rings[copier->nr_rings++] = ring;
	return 0;
}

static int open_device(struct copier *copier)
{
	struct amdgpu_gpu_info info = { 0 };
	uint32_t major, minor;
	int err;

	copier->doing = "opening the render node by libdrm";
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

/* One BO holds the IBs of all slots. */
static int alloc_ibs(struct copier *copier)
{
	uint64_t blocks = copier->config.slot_bytes / PAGE_BYTES;
	uint64_t packets = blocks + 2 * (copier->config.slot_bytes / FILL_BYTES_MIN) + 16;
	struct amdgpu_bo_alloc_request request = { .preferred_heap = AMDGPU_GEM_DOMAIN_GTT,
						   .phys_alignment = PAGE_BYTES };
	int err;

	copier->max_bos = packets + 2;
	copier->ib_bytes = round_up(packets * SDMA_COPY_DWORDS * sizeof(uint32_t), PAGE_BYTES);
	request.alloc_size = copier->ib_bytes * copier->config.nr_slots;
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

static void slot_begin(struct copier *copier, struct copier_slot *slot)
{
	slot->ib.nr_dw = 0;
	slot->bos[0] = copier->staging.bo;
	slot->bos[1] = copier->ib.bo;
	slot->nr_bos = 2;
}

static int alloc_slots(struct copier *copier)
{
	unsigned int nr = copier->config.nr_slots;

	copier->doing = "allocating memory";
	copier->slots = calloc(nr, sizeof(*copier->slots));
	if (!copier->slots)
		return -ENOMEM;
	for (unsigned int i = 0; i < nr; i++) {
		struct copier_slot *slot = &copier->slots[i];

		slot->bos = calloc(copier->max_bos, sizeof(*slot->bos));
		if (!slot->bos)
			return -ENOMEM;
		slot->ib.dw = (uint32_t *)((char *)copier->ib.cpu + i * copier->ib_bytes);
		slot->ib.max_dw = copier->ib_bytes / sizeof(uint32_t);
		slot->ib.rules = copier->rules;
		slot->ib_address = copier->ib.address + i * copier->ib_bytes;
		slot->fence.context = copier->context;
		slot->fence.ip_type = AMDGPU_HW_IP_DMA;
		slot->fence.ring = copier->rings[i % copier->nr_rings];
		slot_begin(copier, slot);
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
	return err ? err : alloc_slots(copier);
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

int copier_drain(struct copier *copier)
{
	int ret = 0;

	copier->config.stopped = NULL; /* the memory must not go while the GPU uses it */
	for (unsigned int i = 0; copier->slots && i < copier->config.nr_slots; i++) {
		int err = 0;

		if (!(copier->hung_rings >> copier->slots[i].fence.ring & 1))
			err = copier_wait(copier, i);
		ret = ret ? ret : err;
	}
	return ret;
}

int copier_done(struct copier *copier)
{
	int ret = copier_drain(copier), err;

	for (unsigned int i = 0; copier->slots && i < copier->config.nr_slots; i++)
		free(copier->slots[i].bos);
	free(copier->slots);
	copier->slots = NULL;
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
	if (err)
		return err;
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

/* Makes room in a full IB. Only BOs smaller than a page can get here. */
static int flush(struct copier *copier, unsigned int slot)
{
	int err = copier_submit(copier, slot);

	return err ? err : copier_wait(copier, slot);
}

static int use_bo(struct copier *copier, unsigned int nr, amdgpu_bo_handle bo)
{
	struct copier_slot *slot = &copier->slots[nr];

	if (slot->bos[slot->nr_bos - 1] == bo)
		return 0;
	if (slot->nr_bos == copier->max_bos) {
		int err = flush(copier, nr);

		if (err)
			return err;
	}
	slot->bos[slot->nr_bos++] = bo;
	return 0;
}

int copier_copy(struct copier *copier, unsigned int nr, struct copier_bo *bo, uint64_t bo_off, uint64_t slot_off,
		uint64_t len)
{
	uint64_t staging_off = nr * copier->config.slot_bytes + slot_off;
	uint64_t done = 0;
	int err;

	if (copier->cpu)
		return cpucopy_copy(copier, bo, bo_off, staging_off, len);
	for (;;) {
		uint64_t in_bo = bo->address + bo_off + done;
		uint64_t in_staging = copier->staging.address + staging_off + done;

		err = use_bo(copier, nr, bo->bo);
		if (err)
			return err;
		done += sdma_add_copy(&copier->slots[nr].ib, copier->config.to_staging ? in_staging : in_bo,
				      copier->config.to_staging ? in_bo : in_staging, len - done);
		if (done == len)
			return 0;
		err = flush(copier, nr);
		if (err)
			return err;
	}
}

int copier_zero(struct copier *copier, unsigned int nr, struct copier_bo *bo, uint64_t bo_off, uint64_t len)
{
	uint64_t done = 0;
	int err;

	if (copier->cpu)
		return cpucopy_zero(copier, bo, bo_off, len);
	for (;;) {
		err = use_bo(copier, nr, bo->bo);
		if (err)
			return err;
		done += sdma_add_zeros(&copier->slots[nr].ib, bo->address + bo_off + done, len - done);
		if (done == len)
			return 0;
		err = flush(copier, nr);
		if (err)
			return err;
	}
}

static int submit_ib(struct copier *copier, struct copier_slot *slot, amdgpu_bo_list_handle list)
{
	struct amdgpu_cs_ib_info ib = {
		.ib_mc_address = slot->ib_address,
		.size = (uint32_t)slot->ib.nr_dw,
	};
	struct amdgpu_cs_request request = {
		.ip_type = AMDGPU_HW_IP_DMA,
		.ring = slot->fence.ring,
		.resources = list,
		.number_of_ibs = 1,
		.ibs = &ib,
	};
	int err;

	copier->doing = "submitting the copy";
	err = amdgpu_cs_submit(copier->context, 0, &request, 1);
	if (!err)
		slot->fence.fence = request.seq_no;
	return err;
}

int copier_submit(struct copier *copier, unsigned int nr)
{
	amdgpu_bo_list_handle list = NULL;
	struct copier_slot *slot;
	int err, list_err;

	if (copier->cpu)
		return 0;
	slot = &copier->slots[nr];
	if (!slot->ib.nr_dw)
		return 0;
	sdma_finish(&slot->ib);
	copier->doing = "listing buffers";
	err = amdgpu_bo_list_create(copier->device, (uint32_t)slot->nr_bos, slot->bos, NULL, &list);
	if (err)
		return err;
	err = submit_ib(copier, slot, list);
	slot->in_flight = !err;
	slot_begin(copier, slot);
	/* The kernel holds the buffers of a submission itself. */
	list_err = amdgpu_bo_list_destroy(list);
	return err ? err : list_err;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int copier_wait(struct copier *copier, unsigned int nr)
{
	struct copier_slot *slot = copier->slots ? &copier->slots[nr] : NULL;
	uint64_t deadline = now_ms() + copier->config.fence_timeout_ms;
	uint64_t slice =
		copier->config.fence_timeout_ms < FENCE_SLICE_MS ? copier->config.fence_timeout_ms : FENCE_SLICE_MS;
	uint32_t expired = 0;
	int err;

	if (!slot || !slot->in_flight)
		return 0;
	copier->doing = "waiting for the GPU";
	for (;;) {
		err = amdgpu_cs_query_fence_status(&slot->fence, slice * 1000000, 0, &expired);
		if (err && err != -EINTR)
			return err;
		if (!err && expired) {
			slot->in_flight = false;
			return 0;
		}
		if (copier->config.stopped && copier->config.stopped(copier->config.stopped_arg))
			return -ECANCELED;
		if (now_ms() >= deadline) {
			copier->doing = "the GPU does not finish a copy";
			copier->hung_rings |= 1u << slot->fence.ring;
			return -ETIME;
		}
	}
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
