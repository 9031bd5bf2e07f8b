// SPDX-License-Identifier: GPL-2.0-only
/* Several XCCs in the room of one: what a driver that compares the size reads from a folded state. */

#include "unit.h"
#include "amdgpu_plugin_util.h"
#include "kernel/driver.h"
#include "machine_text.h"
#include "records_fixture.h"

#define GPU	   0x9e41u /* as the machine calls it */
#define USER_GPU   0x1234u /* as the process does */
#define STACK	   0x3000u
#define MQD	   COMPUTE_MQD_SIZE
#define SDMA	   512u
#define BEFORE	   (8u + 8u) /* the queues */
#define EVENT_SIZE 64u

static struct kfd_criu_device_bucket device = { .user_gpu_id = USER_GPU, .actual_gpu_id = GPU };
static struct fixture_records given;

static struct topology *gpu(uint32_t id, unsigned int nr_xcc)
{
	return machine_of(id, "1 gfx_target_version=90402 num_xcc=%u", nr_xcc);
}

static struct queue_record compute(uint32_t nr_xcc, uint32_t offset)
{
	return (struct queue_record){
		.type = QUEUE_TYPE_COMPUTE,
		.gpu_id = USER_GPU,
		.cwsr_address = 0x7f0000400000,
		.mqd_size = nr_xcc * MQD,
		.nr_mqds = nr_xcc,
		.ctl_stack_size = nr_xcc * STACK,
		.mqd_stack_size = STACK,
		.mqd_stack_offset = offset,
		.mqd_wave_offset = STACK,
	};
}

/* No byte of MQDs and stacks is like its neighbours', but for the offsets. */
static void add_queue(const struct queue_record *record)
{
	uint64_t begin = given.size + QUEUE_RECORD_SIZE;

	fixture_queue(&given, record);
	for (uint64_t i = begin; i < given.size; i++) {
		uint64_t at = (i - begin) % MQD;

		if (i - begin >= record->mqd_size || at < 696 || at >= 708)
			given.bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	}
}

static struct kfd_state on_heap(void)
{
	struct kfd_state state = fixture_state(&given);

	state.devices = &device;
	state.priv_data = malloc(given.size);
	assert_non_null(state.priv_data);
	memcpy(state.priv_data, given.bytes, given.size);
	fixture_read(&state);
	return state;
}

static uint32_t u32_at(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/*
 * As RESTORE reads a compute queue: MQDs one behind the other, stacks behind what the record calls MQDs, each by its
 * share, of which the bytes from the MQD's offset on count. Returns what is behind the record.
 */
static const uint8_t *expect_queue(const uint8_t *at, const uint8_t *was, uint32_t nr_xcc, uint32_t offset)
{
	uint32_t mqd_size = u32_at(at + QUEUE_MQD_SIZE_AT), stacks = u32_at(at + QUEUE_STACK_SIZE_AT);
	const uint8_t *mqds = at + QUEUE_RECORD_SIZE, *stack = mqds + mqd_size;
	const uint8_t *mqds_were = was + QUEUE_RECORD_SIZE, *stack_was = mqds_were + nr_xcc * MQD;

	assert_int_equal(mqd_size, MQD);
	assert_int_equal(stacks, nr_xcc * STACK);
	assert_memory_equal(at, was, QUEUE_STACK_SIZE_AT);
	assert_true(nr_xcc * MQD <= mqd_size + stacks);
	assert_memory_equal(mqds, mqds_were, nr_xcc * MQD);
	for (uint32_t i = 0; i < nr_xcc; i++)
		assert_memory_equal(stack + i * STACK + offset, stack_was + i * STACK + offset, STACK - offset);
	return stack + stacks;
}

static void fold(struct kfd_state *state, unsigned int nr_xcc)
{
	struct topology *machine = gpu(GPU, nr_xcc);

	fold_queues(state, machine);
	topology_free(machine);
}

static void fold_two_queues(uint32_t nr_xcc, uint32_t offset)
{
	struct queue_record record = compute(nr_xcc, offset), sdma = { .type = QUEUE_TYPE_SDMA, .gpu_id = USER_GPU };
	const uint8_t *was = given.bytes + BEFORE, *at;
	uint64_t size = QUEUE_RECORD_SIZE + record.mqd_size + record.ctl_stack_size;
	struct kfd_state state;

	sdma.mqd_size = nr_xcc * SDMA;
	fixture_begin(&given, 1, 0);
	add_queue(&record);
	add_queue(&sdma);
	add_queue(&record);
	fixture_event(&given);
	state = on_heap();
	fold(&state, nr_xcc);
	assert_memory_equal(state.priv_data, given.bytes, BEFORE);
	at = expect_queue(state.priv_data + BEFORE, was, nr_xcc, offset);
	was += size;
	assert_int_equal(u32_at(at + QUEUE_MQD_SIZE_AT), SDMA);
	assert_memory_equal(at, was, QUEUE_MQD_SIZE_AT);
	assert_memory_equal(at + QUEUE_RECORD_SIZE, was + QUEUE_RECORD_SIZE, SDMA);
	was += QUEUE_RECORD_SIZE + sdma.mqd_size;
	at = expect_queue(at + QUEUE_RECORD_SIZE + SDMA, was, nr_xcc, offset);
	assert_memory_equal(at, was + size, EVENT_SIZE);
	assert_ptr_equal(at + EVENT_SIZE, state.priv_data + state.priv_size);
	free(state.priv_data);
}

TEST(states_of_all_xccs_are_read_from_that_of_one)
{
	fold_two_queues(2, STACK);
	fold_two_queues(4, STACK);
	fold_two_queues(8, STACK);
}

/* Up to the last byte that is free; with eight XCCs, the MQDs reach into the second stack. */
TEST(waves_stay_where_they_leave_room)
{
	fold_two_queues(2, MQD);
	fold_two_queues(4, 3 * MQD);
	fold_two_queues(6, STACK - 8);
}

static void expect_same(const struct queue_record *record, unsigned int nr_xcc)
{
	struct kfd_state state;

	fixture_begin(&given, 1, 0);
	add_queue(record);
	state = on_heap();
	fold(&state, nr_xcc);
	assert_int_equal(state.priv_size, given.size);
	assert_memory_equal(state.priv_data, given.bytes, given.size);
	free(state.priv_data);
}

TEST(what_does_not_fit_stays_as_it_is)
{
	struct queue_record record = compute(8, STACK - 8);

	assert_false(fold_fits(&record, 8));
	expect_same(&record, 8);
	record = compute(4, 3 * MQD - 8);
	assert_false(fold_fits(&record, 4));
	expect_same(&record, 4);
	record = compute(1, 0);
	expect_same(&record, 1);
	expect_same(&record, 0);
}

/* Of an image that is not what CHECKPOINT gives. */
TEST(other_sizes_stay_as_they_are)
{
	struct queue_record record = compute(8, STACK), sdma = { .type = QUEUE_TYPE_SDMA, .gpu_id = USER_GPU };

	expect_same(&record, 4);
	record.ctl_stack_size--;
	assert_false(fold_fits(&record, 8));
	expect_same(&record, 8);
	record.ctl_stack_size = 8 * 8;
	record.mqd_stack_offset = 8;
	assert_false(fold_fits(&record, 8));
	expect_same(&record, 8);
	record = compute(8, STACK + 1);
	assert_false(fold_fits(&record, 8));
	expect_same(&record, 8);
	record = compute(1, STACK);
	expect_same(&record, 8);
	sdma.mqd_size = SDMA;
	expect_same(&sdma, 8);
	sdma.mqd_size = 8 * SDMA - 8;
	expect_same(&sdma, 8);
}

/* Linux 7.2.12 leaves them out: they fit before and after they are added. */
TEST(stacks_that_are_not_saved_are_folded_when_they_are_added)
{
	const struct driver_release driver = { .major = 7, .minor = 2, .patch = 12 };
	struct queue_record record = compute(8, STACK);
	struct topology *nodes = gpu(USER_GPU, 8);
	struct kfd_state state;

	record.ctl_stack_size = 0;
	assert_true(fold_fits(&record, 8));
	expect_same(&record, 8);
	state = on_heap();
	assert_int_equal(stacks_add(&state, nodes, &driver, true), 0);
	assert_int_equal(state.priv_size, given.size + 8 * STACK);
	fold(&state, 8);
	assert_int_equal(state.priv_size, BEFORE + QUEUE_RECORD_SIZE + MQD + 8 * STACK);
	assert_memory_equal(state.priv_data + BEFORE + QUEUE_RECORD_SIZE, given.bytes + BEFORE + QUEUE_RECORD_SIZE, 8 * MQD);
	free(state.priv_data);
	topology_free(nodes);
}

TEST(a_state_that_cannot_be_read_stays_as_it_is)
{
	struct queue_record record = compute(8, STACK);
	struct kfd_state state;

	fixture_begin(&given, 1, 0);
	add_queue(&record);
	fixture_u32(given.bytes, 2);
	state = on_heap();
	fold(&state, 8);
	assert_int_equal(state.priv_size, given.size);
	assert_memory_equal(state.priv_data, given.bytes, given.size);
	free(state.priv_data);
}

UNIT_MAIN(NULL, NULL)
