// SPDX-License-Identifier: GPL-2.0-only
/*
 * The INFO ioctl: what libdrm_amdgpu, libhsakmt and their users ask about a GPU.
 * One table row per query; every answer comes from the GPU's description or from
 * the device model's counters.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "drm.h"

#define VA_HOLE_START 0x0000800000000000ULL
#define VA_HOLE_END   0xffff800000000000ULL
#define VA_TOP	      ((1ULL << 48) - SZ_2M - SZ_2M - SZ_64K)
#define VRAM_RESERVED SZ_8M
#define INFO_MAX      512 /* bytes of the longest answer */

struct query {
	struct sim_gpu *gpu;
	struct sim_drm_file *file;
	const struct drm_amdgpu_info *args;
	u8 out[INFO_MAX];
	size_t len; /* bytes of out, set by the handler */
};

static int answer(struct query *q, const void *data, size_t len)
{
	memcpy(q->out, data, len);
	q->len = len;
	return 0;
}

static int answer32(struct query *q, u32 value)
{
	return answer(q, &value, sizeof(value));
}

static int answer64(struct query *q, u64 value)
{
	return answer(q, &value, sizeof(value));
}

/* ---- generations ---- */

/* What the gfx version (major * 10000 + minor * 100 + stepping) implies. The last row that fits counts. */
struct generation {
	u32 gfx;
	u8 sdma_major, sdma_minor, sdma_revision;
	u32 vram_type;
};

static const struct generation generations[] = {
	{ 0, 3, 0, 0, AMDGPU_VRAM_TYPE_GDDR5 },
	{ 90000, 4, 0, 0, AMDGPU_VRAM_TYPE_HBM },
	{ 90002, 4, 1, 0, AMDGPU_VRAM_TYPE_DDR4 },
	{ 90004, 4, 0, 1, AMDGPU_VRAM_TYPE_HBM },
	{ 90006, 4, 2, 0, AMDGPU_VRAM_TYPE_HBM },
	{ 90008, 4, 2, 2, AMDGPU_VRAM_TYPE_HBM },
	{ 90009, 4, 1, 1, AMDGPU_VRAM_TYPE_DDR4 },
	{ 90010, 4, 4, 0, AMDGPU_VRAM_TYPE_HBM },
	{ 90012, 4, 1, 2, AMDGPU_VRAM_TYPE_DDR4 },
	{ 90400, 4, 4, 2, AMDGPU_VRAM_TYPE_HBM },
	{ 90500, 4, 4, 5, AMDGPU_VRAM_TYPE_HBM },
	{ 100100, 5, 0, 0, AMDGPU_VRAM_TYPE_GDDR6 },
	{ 100300, 5, 2, 0, AMDGPU_VRAM_TYPE_GDDR6 },
	{ 110000, 6, 0, 0, AMDGPU_VRAM_TYPE_GDDR6 },
	{ 120000, 7, 0, 0, AMDGPU_VRAM_TYPE_GDDR6 },
};

static const struct generation *generation_of(const struct sim_gpu *gpu)
{
	size_t i = ARRAY_SIZE(generations) - 1;

	while (generations[i].gfx > sim_gpu_prop(gpu, SIM_PROP_gfx_target_version))
		i--;
	return &generations[i];
}

static bool is_apu(const struct sim_gpu *gpu)
{
	return gpu->node->apu;
}

/* ---- the device ---- */

static int info_accel_working(struct query *q)
{
	return answer32(q, 1);
}

static u64 ratio(u64 a, u64 b)
{
	return b ? a / b : 0;
}

static void fill_geometry(struct drm_amdgpu_info_device *dev, const struct sim_gpu *gpu)
{
	u64 per_array = sim_gpu_prop(gpu, SIM_PROP_cu_per_simd_array);
	u64 arrays = sim_gpu_prop(gpu, SIM_PROP_simd_arrays_per_engine);
	u32 left, se, sa, n;

	dev->num_shader_engines = ratio(sim_gpu_prop(gpu, SIM_PROP_array_count), arrays);
	dev->num_shader_arrays_per_engine = arrays;
	dev->num_cu_per_sh = per_array;
	dev->cu_active_number = ratio(sim_gpu_prop(gpu, SIM_PROP_simd_count), sim_gpu_prop(gpu, SIM_PROP_simd_per_cu));
	dev->wave_front_size = sim_gpu_prop(gpu, SIM_PROP_wave_front_size);
	left = dev->cu_active_number;
	for (se = 0; se < min(dev->num_shader_engines, 4u); se++) {
		for (sa = 0; sa < min(dev->num_shader_arrays_per_engine, 4u); sa++) {
			n = min3(left, (u32)per_array, 31u);
			dev->cu_bitmap[se][sa] = (1U << n) - 1;
			left -= n;
		}
	}
}

static void fill_memory(struct drm_amdgpu_info_device *dev, const struct sim_gpu *gpu)
{
	const struct sim_node *node = gpu->node;

	dev->virtual_address_offset = 0x10000;
	dev->virtual_address_max = VA_HOLE_START;
	dev->virtual_address_alignment = PAGE_SIZE;
	dev->pte_fragment_size = SZ_2M;
	dev->gart_page_size = PAGE_SIZE;
	dev->high_va_offset = VA_HOLE_END;
	dev->high_va_max = VA_HOLE_END | VA_TOP;
	dev->vram_type = generation_of(gpu)->vram_type;
	if (node->nr_mem_banks) {
		dev->vram_bit_width = node->mem_banks[0].width;
		dev->max_memory_clock = node->mem_banks[0].mem_clk_max * 1000ULL;
	}
}

static int info_dev_info(struct query *q)
{
	struct drm_amdgpu_info_device dev = {};
	u32 pcie_gen = 4;
	u64 clock = sim_gpu_prop(q->gpu, SIM_PROP_max_engine_clk_fcompute) * 1000;

	dev.device_id = sim_gpu_prop(q->gpu, SIM_PROP_device_id);
	dev.chip_rev = 1;
	dev.external_rev = 0x32;
	dev.pci_rev = q->gpu->node->pci_revision;
	dev.family = q->gpu->node->family;
	dev.gpu_counter_freq = SIM_CLOCK_KHZ;
	dev.max_engine_clock = clock;
	dev.ids_flags = is_apu(q->gpu) ? AMDGPU_IDS_FLAGS_FUSION : 0;
	dev.num_hw_gfx_contexts = 8;
	dev.num_shader_visible_vgprs = 256;
	fill_geometry(&dev, q->gpu);
	fill_memory(&dev, q->gpu);
	answer(q, &dev, min(sizeof(dev), (size_t)SIM_DEV_INFO_BYTES));
	memcpy(q->out + SIM_DEV_INFO_PCIE_GEN, &pcie_gen, sizeof(pcie_gen));
	memcpy(q->out + SIM_DEV_INFO_MIN_ENGINE_CLOCK, &clock, sizeof(clock));
	memcpy(q->out + SIM_DEV_INFO_MIN_MEMORY_CLOCK, &dev.max_memory_clock, sizeof(dev.max_memory_clock));
	q->len = SIM_DEV_INFO_BYTES;
	return 0;
}

/* GB_ADDR_CONFIG is the one register that libdrm reads on every GPU since gfx9. */
#define REG_GB_ADDR_CONFIG	0x263e
#define REG_GB_ADDR_CONFIG_GFX9 0x2a114042
#define REG_MAX			128

static int info_read_register(struct query *q)
{
	u32 se = q->args->read_mmr_reg.instance & AMDGPU_INFO_MMR_SE_INDEX_MASK;
	u32 sh = (q->args->read_mmr_reg.instance >> AMDGPU_INFO_MMR_SH_INDEX_SHIFT) & AMDGPU_INFO_MMR_SH_INDEX_MASK;

	if (se != AMDGPU_INFO_MMR_SE_INDEX_MASK && se >= 4)
		return -EINVAL;
	if (sh != AMDGPU_INFO_MMR_SH_INDEX_MASK && sh >= 2)
		return -EINVAL;
	if (q->args->read_mmr_reg.count > REG_MAX)
		return -EINVAL;
	if (!q->args->read_mmr_reg.count)
		return 0;
	if (q->args->read_mmr_reg.dword_offset != REG_GB_ADDR_CONFIG || q->args->read_mmr_reg.count != 1)
		return -EFAULT; /* the kernel's answer for a register that is not allowed */
	return answer32(q, REG_GB_ADDR_CONFIG_GFX9);
}

static int info_timestamp(struct query *q)
{
	return answer64(q, sim_gpu_clock(q->gpu));
}

static int info_zero32(struct query *q)
{
	return answer32(q, 0);
}

static int info_zero64(struct query *q)
{
	return answer64(q, 0);
}

/* ---- engines ---- */

static int info_hw_ip(struct query *q)
{
	const struct generation *gen = generation_of(q->gpu);
	u32 gfx = sim_gpu_prop(q->gpu, SIM_PROP_gfx_target_version);
	struct drm_amdgpu_info_hw_ip ip = {};

	if (q->args->query_hw_ip.ip_instance || q->args->query_hw_ip.type >= SIM_HW_IP_NUM)
		return -EINVAL;
	switch (q->args->query_hw_ip.type) {
	case AMDGPU_HW_IP_DMA:
		ip.hw_ip_version_major = gen->sdma_major;
		ip.hw_ip_version_minor = gen->sdma_minor;
		ip.available_rings = (1 << min(sim_rings_count(q->gpu), SIM_CTX_RINGS)) - 1;
		ip.ib_start_alignment = 256;
		ip.ib_size_alignment = 4;
		ip.ip_discovery_version = gen->sdma_major << 16 | gen->sdma_minor << 8 | gen->sdma_revision;
		break;
	case AMDGPU_HW_IP_GFX:
	case AMDGPU_HW_IP_COMPUTE:
		/* There are such blocks, but without a kernel ring that commands could be submitted to. */
		ip.hw_ip_version_major = gfx / 10000;
		ip.hw_ip_version_minor = gfx / 100 % 100;
		ip.ib_start_alignment = 32;
		ip.ib_size_alignment = 32;
		ip.ip_discovery_version = gfx / 10000 << 16 | gfx / 100 % 100 << 8 | gfx % 100;
		break;
	default: /* the kernel knows the type, the GPU does not have it: all zero */
		break;
	}
	return answer(q, &ip, sizeof(ip));
}

static int info_hw_ip_count(struct query *q)
{
	switch (q->args->query_hw_ip.type) {
	case AMDGPU_HW_IP_DMA:
		return answer32(q, sim_rings_count(q->gpu));
	case AMDGPU_HW_IP_GFX:
	case AMDGPU_HW_IP_COMPUTE:
		return answer32(q, 1);
	default:
		return -EINVAL;
	}
}

static int info_firmware(struct query *q)
{
	const struct drm_amdgpu_query_fw *fw = &q->args->query_fw;
	struct drm_amdgpu_info_firmware info = {};

	if (fw->ip_instance)
		return -EINVAL;
	switch (fw->fw_type) {
	case AMDGPU_INFO_FW_GFX_MEC:
		if (fw->index > 1)
			return -EINVAL;
		info.ver = sim_gpu_prop(q->gpu, SIM_PROP_fw_version);
		break;
	case AMDGPU_INFO_FW_SDMA:
		if (fw->index >= sim_rings_count(q->gpu))
			return -EINVAL;
		info.ver = sim_gpu_prop(q->gpu, SIM_PROP_sdma_fw_version);
		break;
	default:
		if (!fw->fw_type || fw->fw_type > 0x1c || fw->fw_type == 9)
			return -EINVAL;
		break; /* known to the kernel, absent from the GPU: version 0 */
	}
	return answer(q, &info, sizeof(info));
}

static int info_max_ibs(struct query *q)
{
	static const u32 max_ibs[SIM_HW_IP_NUM] = { 192, 125, 49, 49, 49, 49, 49, 49, 16, 49 };

	BUILD_BUG_ON(SIM_JOB_MAX_IBS != 49);
	return answer(q, max_ibs, sizeof(max_ibs));
}

static int info_gpuvm_fault(struct query *q)
{
	struct sim_info_gpuvm_fault fault = { .addr = READ_ONCE(q->file->vm->fault_va) };

	fault.status = fault.addr ? 1 : 0;
	return answer(q, &fault, sizeof(fault));
}

/* ---- memory ---- */

static u64 vram_used(const struct sim_gpu *gpu)
{
	return atomic64_read(&gpu->vram_used);
}

static u64 vram_usable(const struct sim_gpu *gpu)
{
	return gpu->node->vram_size > VRAM_RESERVED ? gpu->node->vram_size - VRAM_RESERVED : 0;
}

static int info_vram_usage(struct query *q)
{
	return answer64(q, vram_used(q->gpu));
}

static int info_visible_usage(struct query *q)
{
	return answer64(q, min(vram_used(q->gpu), q->gpu->node->bar_size));
}

static int info_gtt_usage(struct query *q)
{
	return answer64(q, atomic64_read(&q->gpu->gtt_used));
}

static int info_vram_gtt(struct query *q)
{
	struct drm_amdgpu_info_vram_gtt info = {
		.vram_size = vram_usable(q->gpu),
		.vram_cpu_accessible_size = min(q->gpu->node->bar_size, vram_usable(q->gpu)),
		.gtt_size = sim_gpu_gtt_size(q->gpu),
	};

	return answer(q, &info, sizeof(info));
}

static struct drm_amdgpu_heap_info heap(u64 total, u64 usable, u64 used)
{
	return (struct drm_amdgpu_heap_info){
		.total_heap_size = total,
		.usable_heap_size = usable,
		.heap_usage = used,
		.max_allocation = usable / 4 * 3,
	};
}

static int info_memory(struct query *q)
{
	const struct sim_gpu *gpu = q->gpu;
	u64 bar = gpu->node->bar_size, usable = vram_usable(gpu), gtt = sim_gpu_gtt_size(gpu);
	struct drm_amdgpu_memory_info info = {
		.vram = heap(gpu->node->vram_size, usable, vram_used(gpu)),
		.cpu_accessible_vram = heap(bar, min(bar, usable), min(vram_used(gpu), bar)),
		.gtt = heap(gtt, gtt, atomic64_read(&gpu->gtt_used)),
	};

	return answer(q, &info, sizeof(info));
}

static int info_gds(struct query *q)
{
	struct drm_amdgpu_info_gds gds = {};

	return answer(q, &gds, sizeof(gds));
}

/* ---- the table ---- */

static int (*const queries[])(struct query *q) = {
	[AMDGPU_INFO_ACCEL_WORKING] = info_accel_working,
	[AMDGPU_INFO_HW_IP_INFO] = info_hw_ip,
	[AMDGPU_INFO_HW_IP_COUNT] = info_hw_ip_count,
	[AMDGPU_INFO_TIMESTAMP] = info_timestamp,
	[AMDGPU_INFO_FW_VERSION] = info_firmware,
	[AMDGPU_INFO_NUM_BYTES_MOVED] = info_zero64,
	[AMDGPU_INFO_VRAM_USAGE] = info_vram_usage,
	[AMDGPU_INFO_GTT_USAGE] = info_gtt_usage,
	[AMDGPU_INFO_GDS_CONFIG] = info_gds,
	[AMDGPU_INFO_VRAM_GTT] = info_vram_gtt,
	[AMDGPU_INFO_READ_MMR_REG] = info_read_register,
	[AMDGPU_INFO_DEV_INFO] = info_dev_info,
	[AMDGPU_INFO_VIS_VRAM_USAGE] = info_visible_usage,
	[AMDGPU_INFO_NUM_EVICTIONS] = info_zero64,
	[AMDGPU_INFO_MEMORY] = info_memory,
	[AMDGPU_INFO_NUM_VRAM_CPU_PAGE_FAULTS] = info_zero64,
	[AMDGPU_INFO_VRAM_LOST_COUNTER] = info_zero32,
	[SIM_INFO_MAX_IBS] = info_max_ibs,
	[SIM_INFO_GPUVM_FAULT] = info_gpuvm_fault,
};

static int info_copy(const struct drm_amdgpu_info *args, const struct query *q)
{
	size_t len = min_t(size_t, args->return_size, q->len);

	return copy_to_user(u64_to_user_ptr(args->return_pointer), q->out, len) ? -EFAULT : 0;
}

SIM_IOCTL(sim_ioctl_info)
{
	struct drm_amdgpu_info *args = data;
	struct query *q;
	int ret;

	if (!args->return_size || !args->return_pointer)
		return -EINVAL;
	if (args->query >= ARRAY_SIZE(queries) || !queries[args->query])
		return -EINVAL;
	q = kzalloc(sizeof(*q), GFP_KERNEL);
	if (!q)
		return -ENOMEM;
	q->gpu = to_sim_gpu(ddev);
	q->file = to_sim_drm_file(file);
	q->args = args;
	ret = queries[args->query](q);
	if (!ret)
		ret = info_copy(args, q);
	kfree(q);
	return ret;
}
