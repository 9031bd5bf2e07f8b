// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fills in what a description leaves out of its nodes: PCI identity, minors,
 * geometry by graphics version, capability bits, save-area sizes, memory
 * banks, caches, and gpu_id as the kernel driver derives it. Then checks that
 * the nodes make sense together.
 */
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/sizes.h>

#include "desc.h"

#define PCI_VENDOR_AMD	    0x1002
#define FAMILY_AI	    141
#define FAMILY_RV	    142
#define FIRST_RENDER_MINOR  128
#define MAX_RENDER_MINOR    191
#define MAX_CARD_MINOR	    63
#define FIRST_GPU_BUS	    0x41
#define FIRST_SIMD_ID	    0x80001000
#define DEFAULT_CPU_MEMORY  (16ULL * SZ_1G)
#define DEFAULT_PCIE_MBPS   32000
#define MAX_COMPUTE_UNITS   1024 /* one page of sysfs shows a cache's siblings */
#define MAX_SDMA_QUEUES	    1024 /* of an engine: as many as a process has doorbells */

/* uapi/linux/kfd_sysfs.h */
#define CAP_WATCH_POINTS	0x00000080
#define CAP_FOUR_WATCH_POINTS	(2 << 8)
#define CAP_DOORBELL_64_BIT	(2 << 12)
#define CAP_TRAP_DEBUG		0x00038000
#define CAP_PRECISE_MEMORY_OPS	0x00040000
#define CAP_ECC			(0x00100000 | 0x00200000 | 0x04000000)
#define CAP_ASIC_REVISION(rev)	(((rev) & 0xf) << 22)
#define CAP_SVM_API		0x08000000
#define CAP_TRAP_DEBUG_FIRMWARE 0x20000000
#define CAP_PER_QUEUE_RESET	0x80000000

#define DBG_WATCH_MASK(lo, hi)	((lo) | (hi) << 4)
#define DBG_DISPATCH_INFO_VALID 0x400

enum { HEAP_SYSTEM, HEAP_FB_PUBLIC, HEAP_FB_PRIVATE };
enum { CACHE_DATA = 1, CACHE_INSTRUCTION = 2, CACHE_CPU = 4, CACHE_HSACU = 8 };

/* What all chips of a graphics version have in common; the last row whose @from is not above a GPU's version counts. */
static const struct generation {
	u32 from;		/* gfx_target_version */
	u32 family;		/* AMDGPU_FAMILY_* */
	u32 wave_front_size, simd_per_cu, max_waves_per_simd;
	u32 lds_kb, num_gws, sdma_queues;
	u32 vgpr_bytes;		/* saved per CU */
	u32 l1_line, l2_line;	/* bytes */
	u32 sqc_cus;		/* CUs that share a scalar cache */
	u32 l1_kb, l2_kb;
	u32 xgmi_mbps;
} generations[] = {
	{ 90000, 141, 64, 4, 10, 64, 64, 2, 0x40000, 64, 64, 3, 16, 4096, 0 },
	{ 90002, 142, 64, 4, 10, 64, 64, 2, 0x40000, 64, 64, 3, 16, 1024, 0 },
	{ 90004, 141, 64, 4, 10, 64, 64, 8, 0x40000, 64, 64, 3, 16, 4096, 46000 },
	{ 90008, 141, 64, 4, 10, 64, 64, 8, 0x80000, 64, 64, 3, 16, 8192, 46000 },
	{ 90009, 142, 64, 4, 10, 64, 64, 2, 0x40000, 64, 64, 3, 16, 1024, 0 },
	{ 90010, 141, 64, 4, 8, 64, 64, 8, 0x80000, 64, 128, 2, 16, 8192, 50000 },
	{ 90012, 142, 64, 4, 10, 64, 64, 2, 0x40000, 64, 64, 3, 16, 1024, 0 },
	{ 90400, 141, 64, 4, 8, 64, 64, 8, 0x80000, 128, 128, 2, 32, 4096, 64000 },
	{ 90500, 141, 64, 4, 8, 160, 64, 8, 0x80000, 128, 128, 2, 32, 4096, 64000 },
	{ 100100, 143, 32, 2, 20, 64, 64, 8, 0x40000, 128, 128, 2, 16, 4096, 0 },
	{ 100300, 143, 32, 2, 16, 64, 64, 8, 0x40000, 128, 128, 2, 16, 4096, 0 },
	{ 110000, 145, 32, 2, 16, 64, 64, 6, 0x60000, 128, 128, 2, 32, 6144, 0 },
	{ 120000, 152, 32, 2, 16, 64, 64, 6, 0x60000, 128, 128, 2, 32, 8192, 0 },
};

static const struct generation *generation_of(const struct desc_draft *draft)
{
	u32 gfx = draft->node.prop[SIM_PROP_gfx_target_version];
	const struct generation *found = NULL;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(generations); i++)
		if (generations[i].from <= gfx)
			found = &generations[i];
	return found;
}

static u64 extra_or(u64 value, u64 otherwise)
{
	return value == DESC_NOT_GIVEN ? otherwise : value;
}

static bool is_gfx9(const struct desc_draft *draft)
{
	return draft->node.prop[SIM_PROP_gfx_target_version] < 100000;
}

/* ---- geometry ---- */

static void fill_geometry(struct desc_draft *draft, const struct generation *gen)
{
	const u64 *prop = draft->node.prop;

	desc_default(draft, SIM_PROP_num_xcc, 1);
	desc_default(draft, SIM_PROP_simd_per_cu, gen->simd_per_cu);
	desc_default(draft, SIM_PROP_wave_front_size, gen->wave_front_size);
	desc_default(draft, SIM_PROP_max_waves_per_simd, gen->max_waves_per_simd);
	desc_default(draft, SIM_PROP_lds_size_in_kb, gen->lds_kb);
	desc_default(draft, SIM_PROP_num_gws, gen->num_gws);
	desc_default(draft, SIM_PROP_max_slots_scratch_cu, 32);
	desc_default(draft, SIM_PROP_simd_arrays_per_engine, 1);
	desc_default(draft, SIM_PROP_array_count, 4 * prop[SIM_PROP_num_xcc]);
	desc_default(draft, SIM_PROP_cu_per_simd_array, 16);
	desc_default(draft, SIM_PROP_num_sdma_engines, 2);
	desc_default(draft, SIM_PROP_num_sdma_queues_per_engine, gen->sdma_queues);
	desc_default(draft, SIM_PROP_num_cp_queues, 24);
	desc_default(draft, SIM_PROP_max_engine_clk_fcompute, 1500);
	desc_default(draft, SIM_PROP_max_engine_clk_ccompute, 2000);
	if (!draft->node.family)
		draft->node.family = gen->family;
	draft->node.apu = extra_or(draft->extra.apu, draft->node.family == FAMILY_RV) != 0;
}

static u32 cus_per_xcc(const struct desc_draft *draft)
{
	const u64 *prop = draft->node.prop;

	return (u32)prop[SIM_PROP_simd_count] / (u32)prop[SIM_PROP_simd_per_cu] / (u32)prop[SIM_PROP_num_xcc];
}

/*
 * Sizes that user space computes too and that CREATE_QUEUE compares: per wave 8 or 12 bytes of
 * control stack behind headers of 40 and 8 bytes, and per CU its registers, LDS and hardware registers.
 */
static void fill_save_area(struct desc_draft *draft, const struct generation *gen)
{
	const u64 *prop = draft->node.prop;
	bool gfx9 = is_gfx9(draft);
	u32 cus = cus_per_xcc(draft);
	u32 engines = (u32)prop[SIM_PROP_array_count] / (u32)prop[SIM_PROP_simd_arrays_per_engine];
	u32 waves = gfx9 ? min(cus * 40, engines * 512) : cus * 32;
	u32 lds = prop[SIM_PROP_gfx_target_version] == 90500 ? gen->lds_kb * SZ_1K : SZ_64K;
	u32 per_cu = gen->vgpr_bytes + SZ_16K + lds + SZ_4K;
	u32 stack = PAGE_ALIGN(40 + 8 + waves * (gfx9 ? 8 : 12));

	if (prop[SIM_PROP_gfx_target_version] / 10000 == 10)
		stack = min_t(u32, stack, 0x7000);
	desc_default(draft, SIM_PROP_ctl_stack_size, stack);
	desc_default(draft, SIM_PROP_cwsr_size, PAGE_ALIGN(prop[SIM_PROP_ctl_stack_size] + PAGE_ALIGN(cus * per_cu)));
}

static void fill_capability(struct desc_draft *draft)
{
	u32 gfx = draft->node.prop[SIM_PROP_gfx_target_version];
	u32 cap = CAP_WATCH_POINTS | CAP_FOUR_WATCH_POINTS | CAP_DOORBELL_64_BIT | CAP_TRAP_DEBUG | CAP_SVM_API |
		  CAP_TRAP_DEBUG_FIRMWARE;
	u32 debug = DBG_WATCH_MASK(7, 29);

	if (is_gfx9(draft)) {
		cap |= CAP_PER_QUEUE_RESET;
		debug = gfx >= 90400 ? DBG_WATCH_MASK(7, 30) : DBG_WATCH_MASK(6, 29);
		if (gfx >= 90010)
			cap |= CAP_PRECISE_MEMORY_OPS;
		debug |= gfx >= 90010 ? DBG_DISPATCH_INFO_VALID : 0;
	}
	if (extra_or(draft->extra.ecc, 0))
		cap |= CAP_ECC;
	cap |= CAP_ASIC_REVISION((u32)extra_or(draft->extra.asic_revision, 0));
	desc_default(draft, SIM_PROP_capability, cap);
	desc_default(draft, SIM_PROP_debug_prop, debug);
}

/* ---- memory banks and caches ---- */

static int add_bank(struct desc_draft *draft, u32 heap, u64 size)
{
	struct sim_mem_bank *bank = desc_add_mem_bank(&draft->node);

	if (!bank)
		return -ENOMEM;
	bank->heap_type = heap;
	bank->size_in_bytes = size;
	bank->width = extra_or(draft->extra.mem_width, 0);
	bank->mem_clk_max = extra_or(draft->extra.mem_clk_max, 0);
	return 0;
}

/* One bank, which is private as a whole when the CPU does not see all of it: so the driver does it. */
static int fill_gpu_banks(struct desc_draft *draft)
{
	const struct sim_node *node = &draft->node;

	if (node->nr_mem_banks)
		return 0;
	return add_bank(draft, node->bar_size >= node->vram_size ? HEAP_FB_PUBLIC : HEAP_FB_PRIVATE, node->vram_size);
}

/* One cache of @size KiB for each @shared of the @cus compute units. */
static int add_caches(struct desc_draft *draft, u32 level, u32 type, u32 size, u32 line, u32 cus, u32 shared)
{
	u32 first_simd = draft->node.prop[SIM_PROP_simd_id_base];
	u32 cu;

	for (cu = 0; size && cu < cus; cu += shared) {
		struct sim_cache *cache = desc_add_cache(&draft->node);

		if (!cache)
			return -ENOMEM;
		cache->processor_id_low = first_simd + cu;
		cache->level = level;
		cache->type = type | CACHE_HSACU;
		cache->size = size;
		cache->cache_line_size = line;
		cache->cache_lines_per_tag = 1;
		cache->siblings = min(shared, cus - cu);
	}
	return 0;
}

static int fill_caches(struct desc_draft *draft, const struct generation *gen)
{
	u32 cus = cus_per_xcc(draft) * (u32)draft->node.prop[SIM_PROP_num_xcc];
	u32 l2 = extra_or(draft->extra.l2_size, gen->l2_kb), l3 = extra_or(draft->extra.l3_size, 0);
	int err;

	if (draft->node.nr_caches)
		return 0;
	err = add_caches(draft, 1, CACHE_DATA, gen->l1_kb, gen->l1_line, cus, 1);
	if (!err)
		err = add_caches(draft, 1, CACHE_INSTRUCTION, 2 * 16, 64, cus, gen->sqc_cus);
	if (!err)
		err = add_caches(draft, 1, CACHE_DATA, 16, 64, cus, gen->sqc_cus);
	if (!err)
		err = add_caches(draft, 2, CACHE_DATA, l2, gen->l2_line, cus, cus_per_xcc(draft));
	if (!err)
		err = add_caches(draft, 3, CACHE_DATA, l3, 64, cus, cus);
	return err;
}

/* ---- nodes one by one ---- */

static int check_gpu(const struct desc_drafts *drafts, const struct desc_draft *draft)
{
	const u64 *prop = draft->node.prop;

	if (!generation_of(draft))
		return desc_error(drafts->file, draft->line, "[gpu] needs gfx_target_version, 90000 or more");
	if (!prop[SIM_PROP_device_id] || !draft->node.vram_size || !prop[SIM_PROP_simd_count])
		return desc_error(drafts->file, draft->line, "[gpu] needs device_id, vram_size and simd_count");
	if (prop[SIM_PROP_device_id] > 0xffff || draft->node.gpu_id > 0xffff)
		return desc_error(drafts->file, draft->line, "device_id and gpu_id have 16 bits");
	if (draft->node.vram_size & ~PAGE_MASK)
		return desc_error(drafts->file, draft->line, "vram_size is no multiple of the page size");
	return 0;
}

/* After the defaults: what the code divides by, or uses as a bound. */
static int check_geometry(const struct desc_drafts *drafts, const struct desc_draft *draft)
{
	const u64 *prop = draft->node.prop;

	if (!prop[SIM_PROP_simd_per_cu] || !prop[SIM_PROP_num_xcc] || !prop[SIM_PROP_array_count] ||
	    !prop[SIM_PROP_simd_arrays_per_engine] || !cus_per_xcc(draft))
		return desc_error(drafts->file, draft->line,
				  "simd_count, simd_per_cu, num_xcc, array_count, simd_arrays_per_engine: one is 0 or "
				  "leaves no compute unit per XCC");
	if (prop[SIM_PROP_simd_count] / prop[SIM_PROP_simd_per_cu] > MAX_COMPUTE_UNITS ||
	    prop[SIM_PROP_array_count] > MAX_COMPUTE_UNITS)
		return desc_error(drafts->file, draft->line, "more than %u compute units or arrays", MAX_COMPUTE_UNITS);
	if (prop[SIM_PROP_num_xcc] > 16 || prop[SIM_PROP_num_sdma_engines] + prop[SIM_PROP_num_sdma_xgmi_engines] > 64)
		return desc_error(drafts->file, draft->line, "more than 16 XCCs or 64 SDMA engines");
	if (prop[SIM_PROP_num_sdma_queues_per_engine] > MAX_SDMA_QUEUES)
		return desc_error(drafts->file, draft->line, "more than %u SDMA queues per engine", MAX_SDMA_QUEUES);
	return 0;
}

static int fill_cpu(struct desc_drafts *drafts, struct desc_draft *draft, u32 *next_core)
{
	desc_default(draft, SIM_PROP_cpu_cores_count, 1);
	desc_default(draft, SIM_PROP_cpu_core_id_base, *next_core);
	*next_core = draft->node.prop[SIM_PROP_cpu_core_id_base] + draft->node.prop[SIM_PROP_cpu_cores_count];
	desc_default(draft, SIM_PROP_max_engine_clk_ccompute, 2000);
	if (draft->node.nr_mem_banks)
		return 0;
	return add_bank(draft, HEAP_SYSTEM, extra_or(draft->extra.memory, DEFAULT_CPU_MEMORY));
}

static void fill_pci(struct desc_draft *draft, unsigned int device)
{
	struct sim_node *node = &draft->node;

	if (node->pci_domain == U32_MAX) {
		node->pci_domain = 0;
		node->pci_bus = FIRST_GPU_BUS + 2 * device;
		node->pci_devfn = 0;
	}
	if (!node->pci_class)
		node->pci_class = is_gfx9(draft) && node->family == FAMILY_AI ? 0x120000 : 0x038000;
	if (!node->subsystem_vendor)
		node->subsystem_vendor = PCI_VENDOR_AMD;
	if (!node->subsystem_device)
		node->subsystem_device = 0x0c34;
	desc_default(draft, SIM_PROP_vendor_id, PCI_VENDOR_AMD);
	desc_default(draft, SIM_PROP_domain, node->pci_domain);
	desc_default(draft, SIM_PROP_location_id, node->pci_bus << 8 | node->pci_devfn | node->partition);
}

static int fill_gpu(struct desc_drafts *drafts, struct desc_draft *draft, unsigned int index, unsigned int device,
		    u32 *next_simd)
{
	const struct generation *gen;
	struct sim_node *node = &draft->node;
	int err = check_gpu(drafts, draft);

	if (err)
		return err;
	gen = generation_of(draft);
	fill_geometry(draft, gen);
	err = check_geometry(drafts, draft);
	if (err)
		return err;

	fill_pci(draft, device);
	desc_default(draft, SIM_PROP_simd_id_base, *next_simd);
	*next_simd += node->prop[SIM_PROP_simd_count] / node->prop[SIM_PROP_simd_per_cu];
	if (node->card_minor == U32_MAX)
		node->card_minor = index;
	desc_default(draft, SIM_PROP_drm_render_minor, FIRST_RENDER_MINOR + index);
	node->bar_size = min(extra_or(node->bar_size, node->vram_size), node->vram_size);
	draft->extra.xgmi_bandwidth = extra_or(draft->extra.xgmi_bandwidth, gen->xgmi_mbps);
	draft->extra.pcie_bandwidth = extra_or(draft->extra.pcie_bandwidth, DEFAULT_PCIE_MBPS);
	draft->extra.p2p = extra_or(draft->extra.p2p, 1);

	fill_save_area(draft, gen);
	fill_capability(draft);
	err = fill_gpu_banks(draft);
	return err ? err : fill_caches(draft, gen);
}

/* ---- gpu_id ---- */

/* CRC-16 with the reflected polynomial 0xa001, start value 0. */
static u16 crc16_of(const void *data, size_t len)
{
	const u8 *byte = data;
	u16 crc = 0;
	int bit;

	while (len--) {
		crc ^= *byte++;
		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xa001 : crc >> 1;
	}
	return crc;
}

static bool gpu_id_taken(const struct desc_drafts *drafts, u32 gpu_id)
{
	unsigned int i;

	for (i = 0; i < drafts->nr; i++)
		if (drafts->draft[i].node.is_gpu && drafts->draft[i].node.gpu_id == gpu_id)
			return true;
	return false;
}

/* The partition's first XCC and their number make partitions of one device differ. */
static void fill_gpu_id(struct desc_drafts *drafts, struct desc_draft *draft)
{
	struct sim_node *node = &draft->node;
	u32 xccs = node->prop[SIM_PROP_num_xcc];
	u32 identity[8] = {
		node->pci_devfn,
		node->subsystem_vendor | node->subsystem_device << 16,
		node->pci_domain,
		node->prop[SIM_PROP_device_id],
		node->pci_bus,
		lower_32_bits(node->vram_size),
		upper_32_bits(node->vram_size),
		node->partition * xccs | xccs << 16,
	};
	u32 gpu_id = crc16_of(identity, sizeof(identity));

	if (node->gpu_id)
		return;
	while (!gpu_id || gpu_id_taken(drafts, gpu_id))
		gpu_id = (gpu_id + 1) & 0xffff;
	node->gpu_id = gpu_id;
}

static void fill_unique_id(struct desc_draft *draft)
{
	const struct sim_node *node = &draft->node;

	desc_default(draft, SIM_PROP_unique_id,
		     0xa000000000000000ULL | (u64)node->pci_domain << 32 | node->pci_bus << 24 |
			     (node->pci_devfn | node->partition) << 16 | node->gpu_id);
}

/* ---- all of them ---- */

static int check_pair(const struct desc_drafts *drafts, const struct desc_draft *a, const struct desc_draft *b)
{
	const struct sim_node *x = &a->node, *y = &b->node;
	bool same_device = x->pci_domain == y->pci_domain && x->pci_bus == y->pci_bus && x->pci_devfn == y->pci_devfn;

	if (x->gpu_id == y->gpu_id)
		return desc_error(drafts->file, b->line, "gpu_id %#x is already that of node %u", y->gpu_id, x->id);
	if (x->card_minor == y->card_minor)
		return desc_error(drafts->file, b->line, "card_minor %u is already that of node %u", y->card_minor,
				  x->id);
	if (x->prop[SIM_PROP_drm_render_minor] == y->prop[SIM_PROP_drm_render_minor])
		return desc_error(drafts->file, b->line, "drm_render_minor %llu is already that of node %u",
				  y->prop[SIM_PROP_drm_render_minor], x->id);
	if (same_device && x->partition == y->partition)
		return desc_error(drafts->file, b->line, "PCI address %04x:%02x:%02x.%x is already that of node %u",
				  y->pci_domain, y->pci_bus, y->pci_devfn >> 3, y->pci_devfn & 7, x->id);
	return 0;
}

static int check_minors(const struct desc_drafts *drafts, const struct desc_draft *draft)
{
	u64 render = draft->node.prop[SIM_PROP_drm_render_minor];

	if (draft->node.card_minor > MAX_CARD_MINOR || render < FIRST_RENDER_MINOR || render > MAX_RENDER_MINOR)
		return desc_error(drafts->file, draft->line,
				  "card_minor %u, drm_render_minor %llu: not in 0..%u, %u..%u", draft->node.card_minor,
				  render, MAX_CARD_MINOR, FIRST_RENDER_MINOR, MAX_RENDER_MINOR);
	return 0;
}

static int check_gpus(const struct desc_drafts *drafts)
{
	unsigned int i, k;
	int err = 0;

	for (i = 0; i < drafts->nr; i++) {
		const struct desc_draft *draft = &drafts->draft[i];

		if (!draft->node.is_gpu)
			continue;
		err = check_minors(drafts, draft);
		for (k = 0; k < i && !err; k++)
			if (drafts->draft[k].node.is_gpu)
				err = check_pair(drafts, &drafts->draft[k], draft);
		if (err)
			return err;
	}
	return 0;
}

static int fill_each(struct desc_drafts *drafts, unsigned int *gpus)
{
	u32 next_core = 0, next_simd = FIRST_SIMD_ID;
	unsigned int i, devices = 0;
	int err = 0;

	for (i = 0; i < drafts->nr && !err; i++) {
		struct desc_draft *draft = &drafts->draft[i];

		if (!draft->node.is_gpu) {
			err = fill_cpu(drafts, draft, &next_core);
			continue;
		}
		if (*gpus == SIM_MAX_GPUS)
			return desc_error(drafts->file, draft->line, "more than %u GPUs", SIM_MAX_GPUS);
		if (draft->node.partition == 0)
			devices++;
		err = fill_gpu(drafts, draft, (*gpus)++, devices - 1, &next_simd);
	}
	return err;
}

static void fill_counts(struct desc_drafts *drafts)
{
	unsigned int i;

	for (i = 0; i < drafts->nr; i++) {
		struct sim_node *node = &drafts->draft[i].node;

		node->prop[SIM_PROP_mem_banks_count] = node->nr_mem_banks;
		node->prop[SIM_PROP_caches_count] = node->nr_caches;
	}
}

int desc_fill_nodes(struct desc_drafts *drafts)
{
	unsigned int i, gpus = 0;
	int err = fill_each(drafts, &gpus);

	if (err)
		return err;
	if (gpus == drafts->nr)
		return desc_error(drafts->file, 1, "no [cpu] node: the topology starts with one");
	if (drafts->draft[0].node.is_gpu)
		return desc_error(drafts->file, drafts->draft[0].line, "the first node has to be a [cpu]");
	for (i = 0; i < drafts->nr; i++)
		if (drafts->draft[i].node.is_gpu) {
			fill_gpu_id(drafts, &drafts->draft[i]);
			fill_unique_id(&drafts->draft[i]);
		}
	fill_counts(drafts);
	return check_gpus(drafts);
}
