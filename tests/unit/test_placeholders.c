// SPDX-License-Identifier: GPL-2.0-only
/* The placeholders for the memory of waves while RESTORE runs. */
#include <errno.h>

#include <libdrm/amdgpu_drm.h>

#include "unit.h"
#include "kernel/driver.h"
#include "log_stub.h"
#include "machine_text.h"
#include "records_fixture.h"

#define MI100  0x1111u
#define MI300X 0x2222u
#define NAVI21 0x3333u
#define USER(gpu) ((gpu) + 0x10000u)
#define FD(gpu)	  ((int)((gpu) >> 12) + 40) /* of its render node */
#define CWSR   0x7f0000400000ull
#define NO_MEMORY (1ull << 56)

static const struct driver_release checking = { .major = 6, .minor = 12, .patch = 117 };

/* As sysfs shows them. */
static struct topology *machine(void)
{
	return machine_of(0, "3 gpu_id=%u,%u,%u gfx_target_version=90008,90402,100300 simd_count=480,1216,160 "
			  "simd_per_cu=4,4,2 array_count=8,32,8 simd_arrays_per_engine=1,1,2 num_xcc=1,8,1",
			  MI100, MI300X, NAVI21);
}

static struct kfd_criu_device_bucket devices[] = {
	{ .user_gpu_id = USER(MI100), .actual_gpu_id = MI100, .drm_fd = 41 },
	{ .user_gpu_id = USER(MI300X), .actual_gpu_id = MI300X, .drm_fd = 42 },
	{ .user_gpu_id = USER(NAVI21), .actual_gpu_id = NAVI21, .drm_fd = 43 },
};
static struct fixture_records given;
static struct bo bos[3];
static struct kfd_state state;

static struct queue_record queue(uint32_t gpu, uint64_t cwsr)
{
	return (struct queue_record){
		.cwsr_address = cwsr, .gpu_id = USER(gpu), .cwsr_size = 0x1000000, .mqd_size = 2048, .ctl_stack_size = 0x3000,
	};
}

static void given_queues(const struct queue_record *queues, size_t nr)
{
	fixture_begin(&given, ARRAY_SIZE(devices), 2);
	for (size_t i = 0; i < nr; i++)
		fixture_queue(&given, &queues[i]);
	fixture_svm_range(&given);
	state = fixture_state(&given);
	state.devices = devices;
	state.bos = bos;
	memset(bos, 0, sizeof(bos));
}

static void find(const struct driver_release *driver)
{
	struct topology *topology = machine();

	assert_int_equal(placeholders_find(&state, topology, driver), 0);
	topology_free(topology);
}

static void found(uint32_t i, uint32_t gpu, uint64_t address, uint64_t size)
{
	assert_true(i < state.nr_placeholders);
	assert_int_equal(state.placeholders[i].gpu_id, USER(gpu));
	assert_int_equal(state.placeholders[i].address, address);
	assert_int_equal(state.placeholders[i].size, size);
}

static int done(void **arg)
{
	free(state.placeholders);
	state = (struct kfd_state){ 0 };
	return 0;
}

#define FIXTURE_TEST(test) UNIT_TEST(test, NULL, done)

/* The debugger gets 32 bytes for each wave: 512 in each of 8 engines, 40 in each of 38 units, 32 in each of 80. */
FIXTURE_TEST(each_memory_for_waves_has_the_size_that_its_gpu_wants)
{
	const struct queue_record queues[] = { queue(MI100, CWSR), queue(MI300X, 2 * CWSR), queue(NAVI21, 3 * CWSR) };

	given_queues(queues, ARRAY_SIZE(queues));
	find(&checking);
	assert_int_equal(state.nr_placeholders, 3);
	found(0, MI100, CWSR, 0x1000000 + 8 * 512 * 32);
	found(1, MI300X, 2 * CWSR, (0x1000000 + 38 * 40 * 32) * 8);
	found(2, NAVI21, 3 * CWSR, 0x1000000 + 80 * 32 * 32);
	assert_int_not_equal(state.placeholders[0].handle, state.placeholders[1].handle);
	assert_true(state.placeholders[0].handle > 1 << 24 && state.placeholders[2].handle < 1u << 31);
}

FIXTURE_TEST(the_size_is_one_of_whole_pages)
{
	const struct queue_record record = queue(MI100, CWSR);
	struct topology *topology = machine_of(MI100, "1 gfx_target_version=90008 simd_count=12 simd_per_cu=4 "
					       "array_count=8 simd_arrays_per_engine=1 num_xcc=1");

	given_queues(&record, 1);
	assert_int_equal(placeholders_find(&state, topology, &checking), 0);
	found(0, MI100, CWSR, 0x1001000);
	topology_free(topology);
}

FIXTURE_TEST(what_is_a_buffer_already_needs_none)
{
	struct queue_record sdma = queue(MI100, 5 * CWSR), without = queue(MI100, 0);
	const struct queue_record queues[] = { queue(MI100, CWSR), queue(MI100, 2 * CWSR), queue(MI100, 2 * CWSR), sdma, without };

	given_queues(queues, ARRAY_SIZE(queues));
	bos[1].addr = CWSR;
	find(&checking);
	assert_int_equal(state.nr_placeholders, 2);
	found(0, MI100, 2 * CWSR, 0x1000000 + 8 * 512 * 32);
	found(1, MI100, 5 * CWSR, 0x1000000 + 8 * 512 * 32);
	done(NULL);
	sdma.type = QUEUE_TYPE_SDMA;
	given_queues(&sdma, 1);
	find(&checking);
	assert_int_equal(state.nr_placeholders, 0);
}

FIXTURE_TEST(other_drivers_want_none)
{
	static const struct driver_release others[] = {
		{ .major = 6, .minor = 12, .patch = 110 }, { .major = 6, .minor = 13, .patch = 117 },
		{ .major = 7, .minor = 12, .patch = 117 }, { .major = 6, .minor = 12, .patch = 117, .dkms = true }, { 0 },
	};
	const struct queue_record record = queue(MI100, CWSR);

	given_queues(&record, 1);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		find(&others[i]);
	assert_int_equal(state.nr_placeholders, 0);
	find(&(struct driver_release){ .major = 6, .minor = 12, .patch = 111 });
	assert_int_equal(state.nr_placeholders, 1);
}

/* ---- RESTORE ---- */

static struct {
	struct bo bos[8];
	struct bo_record records[8];
	uint32_t nr_bos;
	int result, clear_error;
	struct drm_amdgpu_gem_va cleared[4];
	int fds[4];
	unsigned int nr_cleared;
} kernel;

int kfd_restore(int fd, struct kfd_state *whole)
{
	assert_int_equal(fd, 7);
	kernel.nr_bos = whole->nr_bos;
	for (uint32_t i = 0; i < whole->nr_bos; i++) {
		kernel.bos[i] = whole->bos[i];
		assert_int_equal(records_bo(whole, i, &kernel.records[i]), 0);
		whole->bos[i].restored_offset = 0x1000 * (i + 1);
	}
	return kernel.result;
}

int __wrap_ioctl(int fd, unsigned long op, void *arg)
{
	assert_int_equal(op, DRM_IOCTL_AMDGPU_GEM_VA);
	kernel.fds[kernel.nr_cleared] = fd;
	kernel.cleared[kernel.nr_cleared++] = *(struct drm_amdgpu_gem_va *)arg;
	errno = kernel.clear_error;
	return errno ? -1 : 0;
}

static void given_two(void)
{
	const struct queue_record queues[] = { queue(MI100, CWSR), queue(MI300X, 2 * CWSR) };

	given_queues(queues, ARRAY_SIZE(queues));
	find(&checking);
	memset(&kernel, 0, sizeof(kernel));
}

FIXTURE_TEST(they_are_there_while_restore_runs_and_their_addresses_free_afterwards)
{
	const uint32_t gpus[] = { MI100, MI300X };

	given_two();
	assert_int_equal(driver_restore(7, &state), 0);
	assert_int_equal(kernel.nr_bos, 4);
	assert_int_equal(state.nr_bos, 2);
	assert_int_equal(bos[1].restored_offset, 0x2000);
	assert_int_equal(bos[2].restored_offset, 0);
	assert_int_equal(kernel.nr_cleared, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct bo *bo = &kernel.bos[2 + i];

		assert_int_equal(bo->addr, (i + 1) * CWSR);
		assert_int_equal(bo->size, state.placeholders[i].size);
		assert_int_equal(bo->gpu_id, USER(gpus[i]));
		assert_int_equal(bo->alloc_flags, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE);
		assert_int_equal(kernel.records[2 + i].user_address, NO_MEMORY);
		assert_int_equal(kernel.records[2 + i].handle, state.placeholders[i].handle);
		assert_int_equal(records_nr_mapped(&kernel.records[2 + i]), 1);
		assert_int_equal(kernel.records[2 + i].mapped_gpus[0], USER(gpus[i]));
		assert_int_equal(kernel.fds[i], FD(gpus[i]));
		assert_int_equal(kernel.cleared[i].operation, AMDGPU_VA_OP_CLEAR);
		assert_int_equal(kernel.cleared[i].va_address, (i + 1) * CWSR);
		assert_int_equal(kernel.cleared[i].map_size, state.placeholders[i].size);
		assert_int_equal(kernel.cleared[i].flags, 0);
	}
}

FIXTURE_TEST(without_any_the_state_goes_as_it_is)
{
	given_queues(NULL, 0);
	memset(&kernel, 0, sizeof(kernel));
	assert_int_equal(driver_restore(7, &state), 0);
	assert_int_equal(kernel.nr_bos, 2);
	assert_int_equal(kernel.nr_cleared, 0);
}

FIXTURE_TEST(a_restore_that_fails_clears_nothing)
{
	given_two();
	kernel.result = -EINVAL;
	assert_int_equal(driver_restore(7, &state), -EINVAL);
	assert_int_equal(kernel.nr_cleared, 0);
}

FIXTURE_TEST(an_address_that_stays_taken_is_an_error)
{
	given_two();
	kernel.clear_error = EINVAL;
	log_clear();
	assert_int_equal(driver_restore(7, &state), -EINVAL);
	assert_int_equal(kernel.nr_cleared, 1);
	assert_int_equal(log_errors, 1);
	assert_non_null(strstr(log_text, "gpu 0x11111: cannot make room"));
}

/* ---- the next dump ---- */

/* As CHECKPOINT gives them, between others. */
FIXTURE_TEST(they_are_no_part_of_a_later_state)
{
	static uint8_t before[FIXTURE_BYTES];
	const struct queue_record record = queue(MI100, CWSR);
	struct kfd_state whole = { 0 };

	given_queues(&record, 1);
	find(&checking);
	bos[0].addr = 1 << 20;
	bos[1].addr = 2 << 20;
	memcpy(before, given.bytes, sizeof(before));
	assert_int_equal(records_select(&state, NULL, state.placeholders, 1, &whole), 0);
	assert_int_equal(whole.nr_bos, 3);
	/* The first one is a stand-in, too. */
	memcpy(whole.priv_data + 8 + 3 * 8, whole.priv_data + 8 + 3 * 8 + 2 * 272, 272);
	records_drop_placeholders(&whole);
	assert_int_equal(whole.nr_bos, 1);
	assert_int_equal(whole.bos[0].addr, 2 << 20);
	assert_int_equal(whole.priv_size, given.size - 272);
	assert_memory_equal(whole.priv_data, before, 8 + 3 * 8 + 272);
	assert_memory_equal(whole.priv_data + 8 + 3 * 8 + 272, before + 8 + 3 * 8 + 2 * 272, given.size - 8 - 3 * 8 - 2 * 272);
	records_drop_placeholders(&whole);
	assert_int_equal(whole.nr_bos, 1);
	records_selection_done(&whole);
}

UNIT_MAIN(NULL, NULL)
