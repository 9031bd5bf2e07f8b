// SPDX-License-Identifier: GPL-2.0-only
/* Device mappings: which GPU and BO they are of, and their offsets after a restore. */

#include "unit.h"
#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/internal.h"
#include "log_stub.h"
#include "share/survey.h"

#define PAGE 4096ull
#define GPU_A 0x1111u
#define GPU_B 0x2222u
#define DOORBELL(id) ((3ull << 62) | ((uint64_t)(id) << 46))
#define MMIO(id)     ((uint64_t)(id) << 46)
#define EVENTS	     (2ull << 62)
#define FOREIGN_MINOR 140
#define LOST_MINOR    141

/* The process calls the GPUs A and B; the machine's ids are given. */
static struct kfd_criu_device_bucket devices[2] = { { .user_gpu_id = GPU_A }, { .user_gpu_id = GPU_B } };

/* GPU A: VRAM of 4 pages, a userptr BO with the same offset, GTT of 2; GPU B: VRAM at the offset of A's. */
static struct bo bos[] = {
	{ .gpu_id = GPU_A, .offset = 0x100000, .size = 4 * PAGE, .restored_offset = 0x900000,
	  .alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM },
	{ .gpu_id = GPU_A, .offset = 0x200000, .size = 4 * PAGE, .alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR },
	{ .gpu_id = GPU_A, .offset = 0x200000, .size = 2 * PAGE, .restored_offset = 0xa00000,
	  .alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT },
	{ .gpu_id = GPU_B, .offset = 0x100000, .size = 4 * PAGE, .restored_offset = 0xb00000,
	  .alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM },
};

static struct kfd_state state_with(uint32_t actual_a, uint32_t actual_b)
{
	devices[0].actual_gpu_id = actual_a;
	devices[1].actual_gpu_id = actual_b;
	return (struct kfd_state){ .devices = devices, .nr_devices = 2, .bos = bos, .nr_bos = ARRAY_SIZE(bos) };
}

static struct device_vma vma_at(uint64_t offset, uint64_t pages, uint32_t minor)
{
	return (struct device_vma){ .start = 0x7000000, .end = 0x7000000 + pages * PAGE, .offset = offset,
				    .minor = minor };
}

/* What the halves that talk to criu and the kernel would call. */

STUB(int, criu_kept_file, (int store_id), -1)
STUB(int, criu_vma_file, (int store_id, bool stays_open), -1)

int drm_minor_is_amd(uint32_t minor)
{
	return minor == LOST_MINOR ? -ENODEV : minor != FOREIGN_MINOR;
}

/* The mappings of the task that is dumped. */
static const struct device_vma *task_vmas;
static size_t nr_task_vmas;

int task_device_vmas(pid_t pid, struct device_vma **ret, size_t *ret_count)
{
	*ret = calloc(nr_task_vmas + 1, sizeof(**ret));
	assert_non_null(*ret);
	memcpy(*ret, task_vmas, nr_task_vmas * sizeof(**ret));
	*ret_count = nr_task_vmas;
	return 0;
}

STUB(struct gpu *, gpus_by_user_id, (const struct gpus *gpus, uint32_t user_id), NULL)
STUB(struct gpu *, gpus_by_saved_minor, (const struct gpus *gpus, uint32_t minor), NULL)
/* Of the dump, in a file whose step of the restore is called. */
STUB(int, task_ask_kfd, (pid_t pid, struct task_kfd *ret), -ESRCH)
STUB(bool, task_file_has_pasid, (const struct task_file *file, uint32_t pasid), false)
STUB(size_t, survey_process_of, (const struct share_request *request, pid_t pid), 0)

static uint32_t gpu_of(uint64_t offset, const struct kfd_state *state, bool by_user)
{
	struct device_vma vma = vma_at(offset, 2, 0);

	return vma_kfd_gpu(&vma, state, by_user);
}

TEST(only_doorbells_and_mmio_of_the_kfd_name_a_gpu)
{
	struct device_vma doorbell = vma_at(DOORBELL(GPU_A), 2, 0), mmio = vma_at(MMIO(GPU_A), 1, 0);
	struct device_vma events = vma_at(EVENTS, 8, 0), render = vma_at(0x100000, 1, 128);

	assert_true(vma_names_gpu(&doorbell));
	assert_true(vma_names_gpu(&mmio));
	assert_false(vma_names_gpu(&events));
	assert_false(vma_names_gpu(&render));
}

TEST(kfd_mapping_by_actual_or_by_user_id)
{
	struct kfd_state state = state_with(0x3333, 0x4444);

	assert_int_equal(gpu_of(DOORBELL(0x3333), &state, false), GPU_A);
	assert_int_equal(gpu_of(DOORBELL(GPU_B), &state, false), GPU_B);
	assert_int_equal(gpu_of(MMIO(0x4444), &state, true), GPU_B);
	assert_int_equal(gpu_of(DOORBELL(0x5555), &state, false), 0);
}

TEST(swapped_ids_are_decided_by_the_kernels_rule)
{
	struct kfd_state state = state_with(GPU_B, GPU_A);

	assert_int_equal(gpu_of(DOORBELL(GPU_A), &state, false), GPU_B);
	assert_int_equal(gpu_of(DOORBELL(GPU_A), &state, true), GPU_A);
}

static uint64_t restored(uint64_t offset, uint64_t pages, uint32_t gpu)
{
	struct kfd_state state = state_with(GPU_A, GPU_B);
	struct device_vma vma = vma_at(offset, pages, 128);
	const struct bo *bo;
	struct vma_bos sorted;
	uint64_t ret;

	assert_int_equal(vma_bos_sort(&state, &sorted), 0);
	bo = vma_bo(&vma, &sorted, gpu);
	ret = bo ? vma_restored_offset(&vma, bo) : 0;
	vma_bos_done(&sorted);
	return ret;
}

TEST(whole_and_partial_mappings_find_their_bo)
{
	assert_int_equal(restored(0x100000, 4, GPU_A), 0x900000);
	assert_int_equal(restored(0x100000, 1, GPU_A), 0x900000);
	assert_int_equal(restored(0x100000 + 3 * PAGE, 1, GPU_A), 0x900000 + 3 * PAGE);
}

TEST(equal_offsets_on_two_gpus_are_told_apart)
{
	assert_int_equal(restored(0x100000, 4, GPU_B), 0xb00000);
}

TEST(bos_without_contents_are_not_meant)
{
	assert_int_equal(restored(0x200000, 2, GPU_A), 0xa00000);
}

TEST(mappings_outside_all_bos_are_not_found)
{
	assert_int_equal(restored(0x100000, 5, GPU_A), 0);
	assert_int_equal(restored(0x100000 + 3 * PAGE, 2, GPU_A), 0);
	assert_int_equal(restored(0x100000 + 4 * PAGE, 1, GPU_A), 0);
	assert_int_equal(restored(0x100000 - PAGE, 1, GPU_A), 0);
	assert_int_equal(restored(0x200000, 2, GPU_B), 0);
}

TEST(gpu_id_of_an_offset_is_replaced_alone)
{
	uint64_t offset = DOORBELL(0xffff) | 0x1000;

	assert_int_equal(kfd_mmap_gpu_id(offset), 0xffff);
	assert_int_equal(kfd_mmap_with_gpu_id(offset, GPU_A), DOORBELL(GPU_A) | 0x1000);
	assert_int_equal(kfd_mmap_type(offset), KFD_MMAP_TYPE_DOORBELL);
}

TEST(paths_name_devices)
{
	struct device_vma vma;

	assert_true(vma_from_path("/dev/dri/renderD130", 0x1000, 0x5000, &vma));
	assert_int_equal(vma.minor, 130);
	assert_int_equal(vma.offset, 0x5000);
	assert_true(vma_from_path("/dev/kfd", 0x1000, DOORBELL(GPU_A), &vma));
	assert_int_equal(vma.minor, 0);
	assert_int_equal(vma.end - vma.start, 2 * PAGE);
	assert_false(vma_from_path("/dev/dri/card0", 0x1000, 0, &vma));
	assert_false(vma_from_path("/dev/nvidia0", 0x1000, 0, &vma));
}

static int save(const struct device_vma *vmas, size_t nr, size_t *ret_kept)
{
	struct topology machine = { 0 };
	struct gpu_process image = { .file.pid = 4711, .state = state_with(GPU_A, GPU_B), .nodes = &machine };
	int err;

	task_vmas = vmas;
	nr_task_vmas = nr;
	log_clear();
	err = vma_save(&machine, (struct kfd_rules){ 0 }, &image);
	assert_int_equal(log_errors, err != 0);
	*ret_kept = image.nr_vmas;
	free(image.vmas);
	return err;
}

static int save_one(uint64_t offset, uint64_t pages)
{
	struct device_vma vma = vma_at(offset, pages, 0);
	size_t kept;

	return save(&vma, 1, &kept);
}

TEST(kfd_mappings_that_are_not_whole_are_refused)
{
	assert_int_equal(save_one(DOORBELL(GPU_A), 2), 0);
	assert_int_equal(save_one(DOORBELL(GPU_A), 1), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "mapping at 0x7000000 of /dev/kfd is incomplete: 4096 bytes from 0 on"));
	assert_int_equal(save_one(DOORBELL(GPU_A) + PAGE, 1), -EOPNOTSUPP);
	assert_int_equal(save_one(DOORBELL(GPU_A) + PAGE, 2), -EOPNOTSUPP);
	assert_int_equal(save_one(MMIO(GPU_B), 1), 0);
	assert_int_equal(save_one(MMIO(GPU_B), 2), -EOPNOTSUPP);
	assert_int_equal(save_one(EVENTS, 8), 0);
	assert_int_equal(save_one(EVENTS, 4), 0);
	assert_int_equal(save_one(EVENTS + PAGE, 4), -EOPNOTSUPP);
}

TEST(only_mappings_of_other_drivers_are_left_out)
{
	struct device_vma foreign[2] = { vma_at(0, 1, FOREIGN_MINOR), vma_at(DOORBELL(GPU_A), 2, 0) };
	struct device_vma lost = vma_at(0, 1, LOST_MINOR), ours = vma_at(0, 1, 142);
	size_t kept;

	assert_int_equal(save(foreign, 2, &kept), 0);
	assert_int_equal(kept, 1);
	assert_int_equal(save(&lost, 1, &kept), -ENODEV);
	assert_non_null(strstr(log_text, "cannot ask renderD141 for its driver: No such device"));
	assert_int_equal(save(&ours, 1, &kept), -EOPNOTSUPP);
}

UNIT_MAIN(NULL, NULL)
