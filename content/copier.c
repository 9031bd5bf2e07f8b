// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies by a GPU's DMA rings through libdrm_amdgpu: context, registered staging memory,
 * IBs, BO mappings, submissions and fences. Packets come from content/sdma.c.
 *
 * All GPU addresses are made in a render-node file of the plugin's own; a process that is
 * being dumped never sees them. Only calls that libdrm 2.4.114 has.
 *
 * Each slot is a BO of its own: at each submission the kernel walks over all pages of the
 * userptr BOs in its list (amdgpu_cs_parser_bos()).
 */
#include "content/copier.h"

#include <inttypes.h>

#include <libdrm/amdgpu_drm.h>

#include "content/sdma.h"
#include "amdgpu_plugin_util.h"

#define PAGE_BYTES	4096u
#define HUGE_PAGE_BYTES (2u << 20)
/* Holes shorter than this are not looked for, see content/pagesio.c: bounds the packets of a slot. */
#define FILL_BYTES_MIN	(64u << 10)
#define MAX_RINGS	2
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

struct dmacopy {
	struct copier *copier;
	uint32_t family_id;   /* AMDGPU_FAMILY_* */
	uint32_t usable_rings; /* a bit for each */
	uint32_t hung_rings; /* a fence did not signal in time: no other fence of the ring will */
	amdgpu_context_handle context;
	uint32_t rings[MAX_RINGS];
	unsigned int nr_rings;
	struct content_mapping *staging; /* of each slot, from its first use on */
	struct content_mapping ib;
	uint64_t part_bytes;	/* of a slot; all rings work on each, so that one is done as soon as possible */
	uint64_t ib_bytes;	/* for one part */
	size_t max_bos;		/* room of dma_part.bos */
	int64_t clock_offset;	/* monotonic_offset_ns() */
	struct dma_part *parts; /* those of a slot are neighbours, nr_rings of them */
};

static unsigned int nr_parts(const struct dmacopy *dma)
{
	return dma->copier->config.nr_slots * dma->nr_rings;
}

/* ---- mappings ---- */

/* Gives mapping->bo an address. */
static int gpu_map(struct dmacopy *dma, struct content_mapping *mapping, uint64_t size)
{
	uint64_t bytes = round_up(size, PAGE_BYTES);
	int err;

	err = amdgpu_va_range_alloc(dma->copier->device, amdgpu_gpu_va_range_general, bytes,
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
	err = gpu_map(copier->dma, &bo->mapping, bo->size);
	return err ? fail(err, "mapping the BO: %m") : 0;
}

int copier_unmap_bo(struct copier *copier, struct content_bo *bo)
{
	int err = gpu_unmap(&bo->mapping);

	(void)copier;
	return err ? fail(err, "unmapping the BO: %m") : 0;
}

/* ---- life ---- */

static void choose_rings(struct dmacopy *dma)
{
	unsigned int max_rings = dma->copier->config.slot_bytes < SPLIT_BYTES_MIN ? 1 : MAX_RINGS;

	for (uint32_t ring = 0; ring < 32 && dma->nr_rings < max_rings; ring++)
		if (dma->usable_rings >> ring & 1)
			dma->rings[dma->nr_rings++] = ring;
}

static int register_staging(struct dmacopy *dma, unsigned int slot)
{
	struct copier *copier = dma->copier;
	uint64_t bytes = copier->config.slot_bytes;
	struct content_mapping *staging = &dma->staging[slot];
	int err;

	if (staging->bo)
		return 0;
	err = amdgpu_create_bo_from_user_mem(copier->device, (char *)copier->config.staging + slot * bytes, bytes,
					     &staging->bo);
	if (err)
		return fail(err, "registering staging memory: %m");
	err = gpu_map(dma, staging, bytes);
	return err ? fail(err, "mapping staging memory: %m") : 0;
}

/* One BO holds the IBs of all parts. */
static int alloc_ibs(struct dmacopy *dma)
{
	struct copier *copier = dma->copier;
	struct amdgpu_bo_alloc_request request = {
		.preferred_heap = AMDGPU_GEM_DOMAIN_GTT,
		.phys_alignment = PAGE_BYTES,
	};
	uint64_t packets;
	int err;

	dma->part_bytes = round_up(copier->config.slot_bytes / dma->nr_rings, PAGE_BYTES);
	packets = dma->part_bytes / PAGE_BYTES + 2 * (dma->part_bytes / FILL_BYTES_MIN) + 16;
	dma->max_bos = packets + 2;
	dma->ib_bytes = round_up(packets * SDMA_COPY_DWORDS * sizeof(uint32_t), PAGE_BYTES);
	request.alloc_size = dma->ib_bytes * nr_parts(dma);
	err = amdgpu_bo_alloc(copier->device, &request, &dma->ib.bo);
	if (err)
		return fail(err, "allocating indirect buffers: %m");
	err = gpu_map(dma, &dma->ib, request.alloc_size);
	if (err)
		return fail(err, "mapping indirect buffers: %m");
	err = amdgpu_bo_cpu_map(dma->ib.bo, &dma->ib.cpu);
	return err ? fail(err, "mapping indirect buffers for the CPU: %m") : 0;
}

static void part_begin(struct dmacopy *dma, struct dma_part *part)
{
	part->ib.nr_dw = 0;
	part->bos[1] = dma->ib.bo;
	part->nr_bos = 2;
	part->uses_staging = false;
}

static int alloc_parts(struct dmacopy *dma)
{
	dma->staging = calloc(dma->copier->config.nr_slots, sizeof(*dma->staging));
	dma->parts = calloc(nr_parts(dma), sizeof(*dma->parts));
	if (!dma->staging || !dma->parts)
		return fail(-ENOMEM, "allocating memory: %m");
	for (unsigned int i = 0; i < nr_parts(dma); i++) {
		struct dma_part *part = &dma->parts[i];

		part->bos = calloc(dma->max_bos, sizeof(*part->bos));
		if (!part->bos)
			return fail(-ENOMEM, "allocating memory: %m");
		part->ib.dw = (uint32_t *)((char *)dma->ib.cpu + i * dma->ib_bytes);
		part->ib.max_dw = dma->ib_bytes / sizeof(uint32_t);
		part->ib.rules = sdma_rules(dma->family_id);
		part->ib_address = dma->ib.address + i * dma->ib_bytes;
		part->fence.context = dma->context;
		part->fence.ip_type = AMDGPU_HW_IP_DMA;
		part->fence.ring = dma->rings[i % dma->nr_rings];
		part_begin(dma, part);
	}
	return 0;
}

static int open_device(struct dmacopy *dma)
{
	struct copier *copier = dma->copier;
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
	dma->family_id = info.family_id;
	err = amdgpu_query_hw_ip_info(copier->device, AMDGPU_HW_IP_DMA, 0, &rings);
	if (err)
		return fail(err, "asking for DMA rings: %m");
	dma->usable_rings = rings.available_rings;
	if (!dma->usable_rings)
		return fail(-EOPNOTSUPP, "finding a DMA ring that programs may use, of which amdgpu.user_queue=2 leaves "
			    "none");
	return 0;
}

int copier_init(struct copier *copier, const struct copier_config *config)
{
	struct dmacopy *dma = calloc(1, sizeof(*dma));
	int err;

	*copier = (struct copier){ .config = *config, .dma = dma };
	if (!dma)
		return fail(-ENOMEM, "allocating memory: %m");
	dma->copier = copier;
	dma->clock_offset = monotonic_offset_ns();
	err = open_device(dma);
	if (err)
		return err;
	choose_rings(dma);
	err = amdgpu_cs_ctx_create(copier->device, &dma->context);
	if (err)
		return fail(err, "creating a GPU context: %m");
	err = alloc_ibs(dma);
	if (err)
		return err;
	return alloc_parts(dma);
}

static int free_ibs(struct dmacopy *dma)
{
	int ret = 0, err;

	if (dma->ib.cpu)
		ret = amdgpu_bo_cpu_unmap(dma->ib.bo);
	err = gpu_unmap(&dma->ib);
	return ret ?: err;
}

static int release_all(struct dmacopy *dma)
{
	unsigned int nr_slots = dma->staging ? dma->copier->config.nr_slots : 0;
	int ret = free_ibs(dma), err;

	for (unsigned int slot = 0; slot < nr_slots; slot++) {
		err = gpu_unmap(&dma->staging[slot]);
		ret = ret ?: err;
	}
	err = dma->context ? amdgpu_cs_ctx_free(dma->context) : 0;
	ret = ret ?: err;
	err = dma->copier->device ? amdgpu_device_deinitialize(dma->copier->device) : 0;
	return ret ?: err;
}

int copier_done(struct copier *copier)
{
	struct dmacopy *dma = copier->dma;
	int ret = copier_drain(copier), err;

	if (!dma)
		return ret;
	err = release_all(dma);
	if (err)
		(void)fail(err, "releasing GPU memory: %m");
	for (unsigned int i = 0; dma->parts && i < nr_parts(dma); i++)
		free(dma->parts[i].bos);
	free(dma->parts);
	free(dma->staging);
	free(dma);
	copier->dma = NULL;
	copier->device = NULL;
	return ret ?: err;
}

/* ---- fences ---- */

static int wait_part(struct dmacopy *dma, struct dma_part *part)
{
	struct copier *copier = dma->copier;
	uint32_t limit_ms = copier->config.fence_timeout_ms;
	uint64_t slice_ns = (limit_ms < FENCE_SLICE_MS ? limit_ms : FENCE_SLICE_MS) * 1000000ull;
	double deadline = monotonic_seconds() + limit_ms / 1e3;
	uint32_t expired = 0;

	while (part->in_flight) {
		int err = amdgpu_cs_query_fence_status(&part->fence, kernel_time_in(slice_ns, dma->clock_offset),
						       AMDGPU_QUERY_FENCE_TIMEOUT_IS_ABSOLUTE, &expired);

		if (err && err != -EINTR)
			return fail(err, "waiting for the GPU: %m");
		part->in_flight = err || !expired;
		if (part->in_flight && copier->config.stopped && copier->config.stopped(copier->config.stopped_arg))
			return -ECANCELED;
		if (part->in_flight && monotonic_seconds() >= deadline) {
			dma->hung_rings |= 1u << part->fence.ring;
			return fail(-ETIME, "the GPU does not finish a copy: %m");
		}
	}
	return 0;
}

int copier_wait(struct copier *copier, unsigned int slot)
{
	struct dmacopy *dma = copier->dma;

	for (unsigned int i = 0; i < dma->nr_rings; i++) {
		int err = wait_part(dma, &dma->parts[slot * dma->nr_rings + i]);

		if (err)
			return err;
	}
	return 0;
}

int copier_drain(struct copier *copier)
{
	struct dmacopy *dma = copier->dma;
	int ret = 0;

	copier->config.stopped = NULL; /* the memory must not go while the GPU uses it */
	for (unsigned int i = 0; dma && dma->parts && i < nr_parts(dma); i++) {
		struct dma_part *part = &dma->parts[i];
		int err = dma->hung_rings >> part->fence.ring & 1 ? 0 : wait_part(dma, part);

		ret = ret ?: err;
	}
	return ret;
}

int copier_check_reset(struct copier *copier)
{
	struct dmacopy *dma = copier->dma;
	uint64_t flags = 0;
	int err;

	err = amdgpu_cs_query_reset_state2(dma->context, &flags);
	if (err == -EINVAL)
		return 0; /* a kernel before 4.15: it has no such query */
	if (err)
		return fail(err, "asking whether the GPU was reset: %m");
	if (flags & (AMDGPU_CTX_QUERY2_FLAGS_RESET | AMDGPU_CTX_QUERY2_FLAGS_VRAMLOST))
		return fail(-EIO, "the GPU was reset during the copy: %m");
	return 0;
}

/* ---- submissions ---- */

static int submit_ib(struct dmacopy *dma, struct dma_part *part, amdgpu_bo_list_handle list)
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

	err = amdgpu_cs_submit(dma->context, 0, &request, 1);
	if (err)
		return fail(err, "submitting the copy: %m");
	part->fence.fence = request.seq_no;
	part->in_flight = true;
	return 0;
}

static int submit_part(struct dmacopy *dma, struct dma_part *part)
{
	size_t first = part->uses_staging ? 0 : 1;
	amdgpu_bo_list_handle list = NULL;
	int err, list_err;

	if (!part->ib.nr_dw)
		return 0;
	sdma_finish(&part->ib);
	err = amdgpu_bo_list_create(dma->copier->device, (uint32_t)(part->nr_bos - first), part->bos + first, NULL, &list);
	if (err)
		return fail(err, "listing buffers: %m");
	err = submit_ib(dma, part, list);
	part_begin(dma, part);
	/* The kernel holds the buffers of a submission itself. */
	list_err = amdgpu_bo_list_destroy(list);
	if (!err && list_err)
		return fail(list_err, "releasing a list of buffers: %m");
	return err;
}

int copier_submit(struct copier *copier, unsigned int slot)
{
	struct dmacopy *dma = copier->dma;

	for (unsigned int i = 0; i < dma->nr_rings; i++) {
		int err = submit_part(dma, &dma->parts[slot * dma->nr_rings + i]);

		if (err)
			return err;
	}
	return 0;
}

/* Makes room in a full IB. Only BOs smaller than a page can get here. */
static int flush_part(struct dmacopy *dma, struct dma_part *part)
{
	int err = submit_part(dma, part);

	if (err)
		return err;
	return wait_part(dma, part);
}

static int use_bo(struct dmacopy *dma, struct dma_part *part, amdgpu_bo_handle bo)
{
	if (part->bos[part->nr_bos - 1] == bo)
		return 0;
	if (part->nr_bos == dma->max_bos) {
		int err = flush_part(dma, part);

		if (err)
			return err;
	}
	part->bos[part->nr_bos++] = bo;
	return 0;
}

/* Packets for one part: a copy, or zeros where there is no @staging. */
static int add_to_part(struct dmacopy *dma, struct dma_part *part, amdgpu_bo_handle bo, uint64_t in_bo,
		       const struct content_mapping *staging, uint64_t in_slot, uint64_t len)
{
	bool out = dma->copier->config.to_staging;

	for (uint64_t done = 0;;) {
		uint64_t in_staging = staging ? staging->address + in_slot : 0;
		int err = use_bo(dma, part, bo);

		if (err)
			return err;
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
		err = flush_part(dma, part);
		if (err)
			return err;
	}
}

/* Each ring gets what lies in its part of the slot. */
static int add_to_slot(struct dmacopy *dma, unsigned int slot, const struct content_mapping *mapping, uint64_t bo_off,
		       uint64_t slot_off, uint64_t len, const struct content_mapping *staging)
{
	for (uint64_t done = 0, bytes; done < len; done += bytes) {
		uint64_t at = slot_off + done, ring = at / dma->part_bytes;
		uint64_t part_end = (ring + 1) * dma->part_bytes;
		int err;

		bytes = len - done < part_end - at ? len - done : part_end - at;
		err = add_to_part(dma, &dma->parts[slot * dma->nr_rings + ring], mapping->bo,
				  mapping->address + bo_off + done, staging, at, bytes);
		if (err)
			return err;
	}
	return 0;
}

int copier_copy(struct copier *copier, unsigned int slot, const struct content_bo *bo, uint64_t bo_off,
		uint64_t slot_off, uint64_t len)
{
	int err = register_staging(copier->dma, slot);

	if (err)
		return err;
	return add_to_slot(copier->dma, slot, &bo->mapping, bo_off, slot_off, len, &copier->dma->staging[slot]);
}

int copier_zero(struct copier *copier, unsigned int slot, const struct content_bo *bo, uint64_t bo_off,
		uint64_t slot_off, uint64_t len)
{
	return add_to_slot(copier->dma, slot, &bo->mapping, bo_off, slot_off, len, NULL);
}
