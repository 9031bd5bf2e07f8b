// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies by a GPU's DMA rings through libdrm_amdgpu: only calls that libdrm 2.4.114 has. All GPU addresses are made in
 * a render-node file of the plugin's own; a process that is being dumped never sees them.
 *
 * Each slot is a BO of its own: at each submission the kernel walks over all pages of the userptr BOs in its list
 * (amdgpu_cs_parser_bos()).
 */
#include "content/copier.h"

#include <inttypes.h>

#include <libdrm/amdgpu_drm.h>

#include "content/sdma.h"
#include "amdgpu_plugin_util.h"

/* Holes shorter than this are not looked for, see content/pagesio.c: bounds the packets of a slot. */
#define FILL_BYTES_MIN	(64u << 10)
/* A slot smaller than this is not worth more than one ring. */
#define SPLIT_BYTES_MIN (1u << 20)
/* How often a wait for a fence looks whether it should end. */
#define FENCE_SLICE_MS	100

struct dma_part {
	struct sdma_ib ib;
	uint64_t ib_address;
	struct amdgpu_cs_fence fence;
	bool in_flight;
	amdgpu_bo_handle *bos; /* used by the IB being built: the slot's staging, IB, then the others */
	size_t nr_bos;
	bool uses_staging;
};

static unsigned int nr_parts(const struct copier *copier)
{
	return copier->config.nr_slots * copier->nr_rings;
}

/* ---- mappings ---- */

/* Gives mapping->bo an address. */
static int gpu_map(struct copier *copier, struct content_mapping *mapping, uint64_t size)
{
	uint64_t bytes = round_up(size, PAGE_BYTES);
	int err;

	err = amdgpu_va_range_alloc(copier->device, amdgpu_gpu_va_range_general, bytes,
				    bytes < HUGE_PAGE_BYTES ? PAGE_BYTES : HUGE_PAGE_BYTES, 0, &mapping->address,
				    &mapping->va, 0);
	if (err)
		return err;
	err = amdgpu_bo_va_op(mapping->bo, 0, bytes, mapping->address, 0, AMDGPU_VA_OP_MAP);
	if (err)
		return err;
	mapping->map_bytes = bytes;
	return 0;
}

/* Returns the first error, but goes on: the next steps release what a failed one left. */
static int gpu_unmap(struct content_mapping *mapping)
{
	int ret = 0, err;

	if (mapping->map_bytes)
		ret = amdgpu_bo_va_op(mapping->bo, 0, mapping->map_bytes, mapping->address, 0, AMDGPU_VA_OP_UNMAP);
	if (mapping->va) {
		err = amdgpu_va_range_free(mapping->va);
		ret = ret ?: err;
	}
	if (mapping->bo) {
		err = amdgpu_bo_free(mapping->bo);
		ret = ret ?: err;
	}
	*mapping = (struct content_mapping){ 0 };
	return ret;
}

int copier_map_bo(struct copier *copier, struct content_bo *bo)
{
	struct amdgpu_bo_import_result import = { 0 };
	int err;

	bo->mapping = (struct content_mapping){ 0 };
	err = amdgpu_bo_import(copier->device, amdgpu_bo_handle_type_dma_buf_fd, (uint32_t)bo->dmabuf_fd, &import);
	/* The one call of libdrm whose failure may be a plain -1, with the reason in errno. */
	if (err)
		return fail(err == -1 ? errno_or_eio() : err, "importing the dma-buf: %m");
	bo->mapping.bo = import.buf_handle;
	if (import.alloc_size < bo->size)
		return fail(-EINVAL, "the dma-buf is smaller than the BO: %" PRIu64 " bytes", import.alloc_size);
	err = gpu_map(copier, &bo->mapping, bo->size);
	return err ? fail(err, "mapping the BO: %m") : 0;
}

int copier_unmap_bo(struct content_bo *bo)
{
	int err = gpu_unmap(&bo->mapping);

	return err ? fail(err, "unmapping the BO: %m") : 0;
}

/* ---- life ---- */

static int register_staging(struct copier *copier, unsigned int slot)
{
	uint64_t bytes = copier->config.slot_bytes;
	struct content_mapping *staging = &copier->staging[slot];
	int err;

	if (staging->bo)
		return 0;
	err = amdgpu_create_bo_from_user_mem(copier->device, (char *)copier->config.staging + slot * bytes, bytes,
					     &staging->bo);
	if (err)
		return fail(err, "registering staging memory: %m");
	err = gpu_map(copier, staging, bytes);
	return err ? fail(err, "mapping staging memory: %m") : 0;
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
	err = amdgpu_bo_alloc(copier->device, &request, &copier->ib.bo);
	if (err)
		return fail(err, "allocating indirect buffers: %m");
	err = gpu_map(copier, &copier->ib, request.alloc_size);
	if (err)
		return fail(err, "mapping indirect buffers: %m");
	err = amdgpu_bo_cpu_map(copier->ib.bo, &copier->ib.cpu);
	return err ? fail(err, "mapping indirect buffers for the CPU: %m") : 0;
}

static void part_begin(struct copier *copier, struct dma_part *part)
{
	part->ib.nr_dw = 0;
	part->bos[1] = copier->ib.bo;
	part->nr_bos = 2;
	part->uses_staging = false;
}

/* libdrm does not survive a GPU that does not tell the driver's version, which the caller has asked for. */
static int open_device(struct copier *copier)
{
	struct drm_amdgpu_info_hw_ip rings = { 0 };
	struct amdgpu_gpu_info info = { 0 };
	uint32_t major, minor;
	int err;

	err = amdgpu_device_initialize(copier->config.render_fd, &major, &minor, &copier->device);
	if (err)
		return fail(err, "opening the render node by libdrm, which has to find it in /dev/dri: %m");
	err = amdgpu_query_gpu_info(copier->device, &info);
	if (err)
		return fail(err, "asking for the GPU's family: %m");
	if (info.family_id < AMDGPU_FAMILY_AI)
		return fail(-EOPNOTSUPP, "using a GPU older than gfx9 (family %u), whose DMA packets are not known",
			    info.family_id);
	err = amdgpu_query_hw_ip_info(copier->device, AMDGPU_HW_IP_DMA, 0, &rings);
	if (err)
		return fail(err, "asking for DMA rings: %m");
	for (uint32_t ring = 0; ring < 32 && copier->nr_rings < COPIER_MAX_RINGS; ring++)
		if (rings.available_rings >> ring & 1)
			copier->rings[copier->nr_rings++] = ring;
	if (!copier->nr_rings)
		return fail(-EOPNOTSUPP, "finding a DMA ring that programs may use, of which amdgpu.user_queue=2 leaves "
			    "none");
	if (copier->config.slot_bytes < SPLIT_BYTES_MIN) {
		copier->rings[0] = copier->rings[copier->config.first_ring % copier->nr_rings];
		copier->nr_rings = 1;
	}
	return 0;
}

int copier_init(struct copier *copier, const struct copier_config *config)
{
	int err;

	*copier = (struct copier){ .config = *config, .clock_offset = monotonic_offset_ns() };
	err = open_device(copier);
	if (err)
		return err;
	err = amdgpu_cs_ctx_create(copier->device, &copier->context);
	if (err)
		return fail(err, "creating a GPU context: %m");
	err = alloc_ibs(copier);
	if (err)
		return err;
	copier->staging = calloc(copier->config.nr_slots, sizeof(*copier->staging));
	copier->parts = calloc(nr_parts(copier), sizeof(*copier->parts));
	if (!copier->staging || !copier->parts)
		return fail(-ENOMEM, "allocating memory: %m");
	for (unsigned int i = 0; i < nr_parts(copier); i++) {
		struct dma_part *part = &copier->parts[i];

		part->bos = calloc(copier->max_bos, sizeof(*part->bos));
		if (!part->bos)
			return fail(-ENOMEM, "allocating memory: %m");
		part->ib.dw = (uint32_t *)((char *)copier->ib.cpu + i * copier->ib_bytes);
		part->ib.max_dw = copier->ib_bytes / sizeof(uint32_t);
		part->ib_address = copier->ib.address + i * copier->ib_bytes;
		part->fence.context = copier->context;
		part->fence.ip_type = AMDGPU_HW_IP_DMA;
		part->fence.ring = copier->rings[i % copier->nr_rings];
		part_begin(copier, part);
	}
	return 0;
}

int copier_done(struct copier *copier)
{
	int err = 0, ret = copier->ib.cpu ? amdgpu_bo_cpu_unmap(copier->ib.bo) : 0;

	ret = gpu_unmap(&copier->ib) ?: ret;
	for (unsigned int slot = 0; copier->staging && slot < copier->config.nr_slots; slot++)
		ret = gpu_unmap(&copier->staging[slot]) ?: ret;
	err = copier->context ? amdgpu_cs_ctx_free(copier->context) : 0;
	ret = ret ?: err;
	err = copier->device ? amdgpu_device_deinitialize(copier->device) : 0;
	ret = ret ?: err;
	for (unsigned int i = 0; copier->parts && i < nr_parts(copier); i++)
		free(copier->parts[i].bos);
	free(copier->parts);
	free(copier->staging);
	return ret ? fail(ret, "releasing GPU memory: %m") : 0;
}

/* ---- fences ---- */

static int wait_part(struct copier *copier, struct dma_part *part)
{
	uint32_t limit_ms = copier->config.fence_timeout_ms;
	uint64_t slice_ns = (limit_ms < FENCE_SLICE_MS ? limit_ms : FENCE_SLICE_MS) * 1000000ull;
	double deadline = monotonic_seconds() + limit_ms / 1e3;
	uint32_t expired = 0;

	while (part->in_flight) {
		int err = amdgpu_cs_query_fence_status(&part->fence, kernel_time_in(slice_ns, copier->clock_offset),
						       AMDGPU_QUERY_FENCE_TIMEOUT_IS_ABSOLUTE, &expired);

		if (err && err != -EINTR)
			return fail(err, "waiting for the GPU: %m");
		part->in_flight = err || !expired;
		if (part->in_flight && copier->config.stop && atomic_load(copier->config.stop))
			return -ECANCELED;
		if (part->in_flight && monotonic_seconds() >= deadline) {
			copier->hung_rings |= 1u << part->fence.ring;
			return fail(-ETIME, "the GPU does not finish a copy: %m");
		}
	}
	return 0;
}

int copier_wait(struct copier *copier, unsigned int slot)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < copier->nr_rings; i++)
		err = wait_part(copier, &copier->parts[slot * copier->nr_rings + i]);
	return err;
}

int copier_drain(struct copier *copier)
{
	int ret = 0;

	copier->config.stop = NULL; /* the memory must not go while the GPU uses it */
	for (unsigned int i = 0; copier->parts && i < nr_parts(copier); i++) {
		struct dma_part *part = &copier->parts[i];
		int err = copier->hung_rings >> part->fence.ring & 1 ? 0 : wait_part(copier, part);

		ret = ret ?: err;
	}
	return ret;
}

int copier_check_reset(struct copier *copier)
{
	uint64_t flags = 0;
	int err;

	err = amdgpu_cs_query_reset_state2(copier->context, &flags);
	if (err == -EINVAL)
		return 0; /* a kernel before 4.15: it has no such query */
	if (err)
		return fail(err, "asking whether the GPU was reset: %m");
	if (flags & (AMDGPU_CTX_QUERY2_FLAGS_RESET | AMDGPU_CTX_QUERY2_FLAGS_VRAMLOST))
		return fail(-EIO, "the GPU was reset during the copy: %m");
	return 0;
}

/* ---- submissions ---- */

static int submit_part(struct copier *copier, struct dma_part *part)
{
	struct amdgpu_cs_ib_info ib = { .ib_mc_address = part->ib_address };
	struct amdgpu_cs_request request = {
		.ip_type = AMDGPU_HW_IP_DMA,
		.ring = part->fence.ring,
		.number_of_ibs = 1,
		.ibs = &ib,
	};
	size_t first = part->uses_staging ? 0 : 1;
	int err, list_err;

	if (!part->ib.nr_dw)
		return 0;
	sdma_finish(&part->ib);
	ib.size = (uint32_t)part->ib.nr_dw;
	err = amdgpu_bo_list_create(copier->device, (uint32_t)(part->nr_bos - first), part->bos + first, NULL,
				    &request.resources);
	if (err)
		return fail(err, "listing buffers: %m");
	err = amdgpu_cs_submit(copier->context, 0, &request, 1);
	if (!err) {
		part->fence.fence = request.seq_no;
		part->in_flight = true;
	}
	part_begin(copier, part);
	/* The kernel holds the buffers of a submission itself. */
	list_err = amdgpu_bo_list_destroy(request.resources);
	if (err)
		return fail(err, "submitting the copy: %m");
	return list_err ? fail(list_err, "releasing a list of buffers: %m") : 0;
}

int copier_submit(struct copier *copier, unsigned int slot)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < copier->nr_rings; i++)
		err = submit_part(copier, &copier->parts[slot * copier->nr_rings + i]);
	return err;
}

/* Makes room in a full IB. Only BOs smaller than a page can get here. */
static int flush_part(struct copier *copier, struct dma_part *part)
{
	int err = submit_part(copier, part);

	return err ? err : wait_part(copier, part);
}

/* Packets for one part: a copy, or zeros where there is no @staging. */
static int add_to_part(struct copier *copier, struct dma_part *part, amdgpu_bo_handle bo, uint64_t in_bo,
		       const struct content_mapping *staging, uint64_t in_slot, uint64_t len)
{
	bool out = copier->config.to_staging;

	for (uint64_t done = 0;;) {
		uint64_t in_staging = staging ? staging->address + in_slot : 0;
		int err = 0;

		if (part->bos[part->nr_bos - 1] != bo) {
			if (part->nr_bos == copier->max_bos)
				err = flush_part(copier, part);
			if (err)
				return err;
			part->bos[part->nr_bos++] = bo;
		}
		if (staging) {
			part->bos[0] = staging->bo;
			part->uses_staging = true;
			done += sdma_add_copy(&part->ib, (out ? in_staging : in_bo) + done,
					      (out ? in_bo : in_staging) + done, len - done);
		} else {
			done += sdma_add_zeros(&part->ib, in_bo + done, len - done);
		}
		if (done == len)
			return 0;
		err = flush_part(copier, part);
		if (err)
			return err;
	}
}

/* Each ring gets what lies in its part of the slot. */
int copier_add(struct copier *copier, unsigned int slot, const struct content_bo *bo, uint64_t bo_off, uint64_t slot_off,
	       uint64_t len, bool data)
{
	const struct content_mapping *staging = data ? &copier->staging[slot] : NULL;
	int err = data ? register_staging(copier, slot) : 0;

	for (uint64_t done = 0, bytes; !err && done < len; done += bytes) {
		uint64_t at = slot_off + done, ring = at / copier->part_bytes;
		uint64_t part_end = (ring + 1) * copier->part_bytes;

		bytes = len - done < part_end - at ? len - done : part_end - at;
		err = add_to_part(copier, &copier->parts[slot * copier->nr_rings + ring], bo->mapping.bo,
				  bo->mapping.address + bo_off + done, staging, at, bytes);
	}
	return err;
}
