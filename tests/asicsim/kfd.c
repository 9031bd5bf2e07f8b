// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the KFD asks of a chip's registers. Queues are mapped by the scheduler (scheduler.c), so that little is
 * left: the scheduler's own queue; what shaders need comes with the run list.
 */
#include "chip.h"
#include "compat.h"
#include "amdgpu_amdkfd.h"
#include "amdgpu_amdkfd_arcturus.h"

static void program_sh_mem_settings(struct amdgpu_device *adev, u32 vmid, u32 config, u32 ape1_base, u32 ape1_limit,
				    u32 bases, u32 inst)
{
}

static int set_pasid_vmid_mapping(struct amdgpu_device *adev, u32 pasid, unsigned int vmid, u32 inst)
{
	return 0;
}

static int init_interrupts(struct amdgpu_device *adev, u32 pipe, u32 inst)
{
	return 0;
}

static int hqd_load(struct amdgpu_device *adev, void *mqd, u32 pipe, u32 queue, u32 __user *wptr, u32 shift, u32 mask,
		    struct mm_struct *mm, u32 inst)
{
	return -EOPNOTSUPP; /* only without the scheduler */
}

static int hiq_mqd_load(struct amdgpu_device *adev, void *mqd, u32 pipe, u32 queue, u32 doorbell_off, u32 inst)
{
	return scheduler_map(chip_of(adev), inst, mqd, doorbell_off);
}

static int hqd_sdma_load(struct amdgpu_device *adev, void *mqd, u32 __user *wptr, struct mm_struct *mm)
{
	return -EOPNOTSUPP;
}

static int hqd_dump(struct amdgpu_device *adev, u32 pipe, u32 queue, u32 (**dump)[2], u32 *n, u32 inst)
{
	return -EOPNOTSUPP;
}

static int hqd_sdma_dump(struct amdgpu_device *adev, u32 engine, u32 queue, u32 (**dump)[2], u32 *n)
{
	return -EOPNOTSUPP;
}

static bool hqd_is_occupied(struct amdgpu_device *adev, u64 address, u32 pipe, u32 queue, u32 inst)
{
	return false;
}

static int hqd_destroy(struct amdgpu_device *adev, void *mqd, enum kfd_preempt_type type, unsigned int timeout,
		       u32 pipe, u32 queue, u32 inst)
{
	scheduler_unmap(chip_of(adev), inst);
	return 0;
}

static bool hqd_sdma_is_occupied(struct amdgpu_device *adev, void *mqd)
{
	return false;
}

static int hqd_sdma_destroy(struct amdgpu_device *adev, void *mqd, unsigned int timeout)
{
	return 0;
}

static int wave_control_execute(struct amdgpu_device *adev, u32 index, u32 cmd, u32 inst)
{
	return 0;
}

static bool get_atc_vmid_pasid_mapping_info(struct amdgpu_device *adev, u8 vmid, u16 *pasid)
{
	*pasid = 0;
	return false;
}

static void set_vm_context_page_table_base(struct amdgpu_device *adev, u32 vmid, u64 base)
{
}

static void get_cu_occupancy(struct amdgpu_device *adev, struct kfd_cu_occupancy *occupancy, int *max_waves, u32 inst)
{
	*max_waves = adev->gfx.cu_info.simd_per_cu * adev->gfx.cu_info.max_waves_per_simd;
}

static void get_iq_wait_times(struct amdgpu_device *adev, u32 *times, u32 inst)
{
	*times = 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
static void build_wait_counts(struct amdgpu_device *adev, u32 times, u32 sch_wave, u32 que_sleep, u32 *offset,
			      u32 *data)
{
	*offset = *data = 0;
}

/* Of a queue that hangs: none does in such a way that the scheduler could not take it off. */
static u32 hqd_sdma_get_doorbell(struct amdgpu_device *adev, int engine, int queue)
{
	return 0;
}
#else
static void build_grace_period(struct amdgpu_device *adev, u32 times, u32 period, u32 *offset, u32 *data)
{
	*offset = *data = 0;
}
#endif

static void program_trap_handler(struct amdgpu_device *adev, u32 vmid, u64 tba, u64 tma, u32 inst)
{
}

static u32 debug_trap(struct amdgpu_device *adev, bool restore, u32 vmid)
{
	return 0;
}

static int validate_trap_override(struct amdgpu_device *adev, u32 override, u32 *supported)
{
	*supported &= 0xff;
	return 0;
}

static u32 set_trap_override(struct amdgpu_device *adev, u32 vmid, u32 override, u32 bits, u32 request, u32 *prev,
			     u32 cntl_prev)
{
	*prev = 0;
	return 0;
}

static u32 set_launch_mode(struct amdgpu_device *adev, u8 mode, u32 vmid)
{
	return 0;
}

static u32 set_watch(struct amdgpu_device *adev, u64 address, u32 mask, u32 id, u32 mode, u32 vmid, u32 inst)
{
	return 0;
}

static u32 clear_watch(struct amdgpu_device *adev, u32 id)
{
	return 0;
}

static u64 hqd_get_pq_addr(struct amdgpu_device *adev, u32 pipe, u32 queue, u32 inst)
{
	return 0;
}

static u64 hqd_reset(struct amdgpu_device *adev, u32 pipe, u32 queue, u32 inst, unsigned int timeout)
{
	return 0;
}

const struct kfd2kgd_calls arcturus_kfd2kgd = {
	.program_sh_mem_settings = program_sh_mem_settings,
	.set_pasid_vmid_mapping = set_pasid_vmid_mapping,
	.init_interrupts = init_interrupts,
	.hqd_load = hqd_load,
	.hiq_mqd_load = hiq_mqd_load,
	.hqd_sdma_load = hqd_sdma_load,
	.hqd_dump = hqd_dump,
	.hqd_sdma_dump = hqd_sdma_dump,
	.hqd_is_occupied = hqd_is_occupied,
	.hqd_sdma_is_occupied = hqd_sdma_is_occupied,
	.hqd_destroy = hqd_destroy,
	.hqd_sdma_destroy = hqd_sdma_destroy,
	.wave_control_execute = wave_control_execute,
	.get_atc_vmid_pasid_mapping_info = get_atc_vmid_pasid_mapping_info,
	.set_vm_context_page_table_base = set_vm_context_page_table_base,
	.enable_debug_trap = debug_trap,
	.disable_debug_trap = debug_trap,
	.validate_trap_override_request = validate_trap_override,
	.set_wave_launch_trap_override = set_trap_override,
	.set_wave_launch_mode = set_launch_mode,
	.set_address_watch = set_watch,
	.clear_address_watch = clear_watch,
	.get_iq_wait_times = get_iq_wait_times,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
	.build_dequeue_wait_counts_packet_info = build_wait_counts,
	.hqd_sdma_get_doorbell = hqd_sdma_get_doorbell,
#else
	.build_grace_period_packet_info = build_grace_period,
#endif
	.get_cu_occupancy = get_cu_occupancy,
	.program_trap_handler_settings = program_trap_handler,
	.hqd_get_pq_addr = hqd_get_pq_addr,
	.hqd_reset = hqd_reset,
};

/* The same for other chips. */
extern const struct kfd2kgd_calls aldebaran_kfd2kgd __attribute__((alias("arcturus_kfd2kgd")));
extern const struct kfd2kgd_calls gfx_v11_kfd2kgd __attribute__((alias("arcturus_kfd2kgd")));
extern const struct kfd2kgd_calls gc_9_4_3_kfd2kgd __attribute__((alias("arcturus_kfd2kgd")));
