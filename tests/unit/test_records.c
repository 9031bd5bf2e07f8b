// SPDX-License-Identifier: GPL-2.0-only
/* What is read of the records of CHECKPOINT, and that nothing is read which is not there. */

#include "unit.h"
#include "amdgpu_plugin_util.h"
#include "records_fixture.h"

static const struct queue_record compute = {
	.cwsr_address = 0x7f0012345000, .gpu_id = 0x9e41, .type = QUEUE_TYPE_COMPUTE, .cwsr_size = 5,
	.ctl_stack_size = 4096, .mqd_size = 2048,
};
static const struct queue_record sdma = {
	.gpu_id = 0xb2d6, .type = QUEUE_TYPE_SDMA_XGMI, .mqd_size = 512,
};

static void fill(struct fixture_records *f)
{
	fixture_begin(f, 2, 3);
	fixture_queue(f, &compute);
	fixture_queue(f, &sdma);
	fixture_event(f);
	fixture_event(f);
	fixture_svm_range(f);
}

static void assert_queue(const struct queue_record *found, const struct queue_record *wanted)
{
	assert_int_equal(found->cwsr_address, wanted->cwsr_address);
	assert_int_equal(found->gpu_id, wanted->gpu_id);
	assert_int_equal(found->type, wanted->type);
	assert_int_equal(found->cwsr_size, wanted->cwsr_size);
	assert_int_equal(found->ctl_stack_size, wanted->ctl_stack_size);
	assert_int_equal(found->mqd_size, wanted->mqd_size);
}

/* How many queues there are, or -EPROTO. The bytes are on the heap, where a sanitizer sees what is read behind them. */
static int count_queues(const struct kfd_state *state)
{
	uint8_t *copy = malloc(state->priv_size + 1);
	struct kfd_state exact = *state;

	assert_non_null(copy);
	copy = realloc(copy, state->priv_size ? state->priv_size : 1);
	assert_non_null(copy);
	memcpy(copy, state->priv_data, state->priv_size);
	exact.priv_data = copy;
	fixture_read(&exact);
	free(copy);
	return exact.is_known ? (int)exact.nr_queues : -EPROTO;
}

TEST(queues_are_read_and_the_rest_is_passed_over)
{
	struct fixture_records f;
	struct kfd_state state;

	fill(&f);
	state = fixture_state(&f);
	assert_true(state.is_known);
	assert_int_equal(state.nr_queues, 2);
	assert_queue(&state.queues[0], &compute);
	assert_queue(&state.queues[1], &sdma);
}

TEST(a_process_without_objects_has_no_queues)
{
	struct fixture_records f;
	struct kfd_state state;

	fixture_begin(&f, 8, 0);
	state = fixture_state(&f);
	assert_int_equal(count_queues(&state), 0);
}

TEST(another_version_is_not_read)
{
	struct fixture_records f;
	struct kfd_state state;

	fill(&f);
	fixture_u32(f.bytes, 2);
	state = fixture_state(&f);
	assert_false(state.is_known);
	assert_int_equal(state.version, 2);
}

TEST(each_missing_byte_is_noticed)
{
	struct fixture_records f;
	struct kfd_state state;
	uint64_t size;

	fill(&f);
	state = fixture_state(&f);
	assert_int_equal(count_queues(&state), 2);
	for (size = 0; size < f.size; size++) {
		state.priv_size = size;
		assert_int_equal(count_queues(&state), -EPROTO);
	}
}

TEST(bytes_that_belong_to_no_record_are_noticed)
{
	struct fixture_records f;
	struct kfd_state state;

	fill(&f);
	state = fixture_state(&f);
	state.priv_size++;
	assert_int_equal(count_queues(&state), -EPROTO);
	state = fixture_state(&f);
	state.nr_objects--;
	assert_int_equal(count_queues(&state), -EPROTO);
	state.nr_objects += 2;
	assert_int_equal(count_queues(&state), -EPROTO);
}

TEST(unknown_kinds_and_impossible_sizes_are_noticed)
{
	struct queue_record huge = compute;
	struct fixture_records f;
	struct kfd_state state;
	uint64_t at;

	fixture_begin(&f, 1, 0);
	at = f.size;
	fixture_event(&f);
	fixture_u32(f.bytes + at, 3);
	state = fixture_state(&f);
	assert_int_equal(count_queues(&state), -EPROTO);

	huge.mqd_size = huge.ctl_stack_size = 0;
	fixture_begin(&f, 1, 0);
	at = f.size;
	fixture_queue(&f, &huge);
	fixture_u32(f.bytes + at + 108, UINT32_MAX);
	fixture_u32(f.bytes + at + 112, 1);
	state = fixture_state(&f);
	assert_int_equal(count_queues(&state), -EPROTO);
	state.nr_bos = state.nr_records = state.nr_devices = UINT32_MAX;
	assert_int_equal(count_queues(&state), -EPROTO);
}

TEST(sdma_queues_are_found_by_gpu)
{
	struct fixture_records f;
	struct kfd_state state;

	fill(&f);
	state = fixture_state(&f);
	assert_true(records_have_sdma_queue(&state, sdma.gpu_id));
	assert_false(records_have_sdma_queue(&state, compute.gpu_id));
	assert_false(records_have_sdma_queue(&state, 1));
	fixture_u32(f.bytes, 2);
	fixture_read(&state);
	assert_false(records_have_sdma_queue(&state, sdma.gpu_id));
}

TEST(events_and_svm_ranges_are_counted)
{
	struct fixture_records f;
	struct kfd_state state;

	fixture_begin(&f, 1, 1);
	fixture_event(&f);
	fixture_queue(&f, &compute);
	fixture_svm_range(&f);
	fixture_event(&f);
	state = fixture_state(&f);
	assert_true(state.is_known);
	assert_int_equal(state.nr_events, 2);
	assert_int_equal(state.nr_ranges, 1);
}

TEST(svm_ranges_are_found_between_other_objects)
{
	struct fixture_records f;
	struct kfd_state state;
	uint64_t pages[] = { 0x7f0000123, 5 };

	fixture_begin(&f, 1, 1);
	fixture_queue(&f, &compute);
	fixture_svm_range(&f);
	memcpy(f.bytes + f.size - (24 + 8 * 5) + 8, pages, sizeof(pages));
	fixture_event(&f);
	fixture_svm_range(&f);
	state = fixture_state(&f);
	assert_true(state.is_known);
	assert_int_equal(state.nr_ranges, 2);
	assert_int_equal(state.ranges[0].start, 0x7f0000123000);
	assert_int_equal(state.ranges[0].size, 5 * 4096);
	state.priv_size -= 8;
	fixture_read(&state);
	assert_false(state.is_known);
	assert_int_equal(state.nr_ranges, 1);
}

TEST(events_in_a_page_of_the_kfd_are_counted)
{
	static const uint32_t types[] = { 8, 0, 3, 5, 0 };
	struct fixture_records f;
	struct kfd_state state;
	uint64_t first;

	fixture_begin(&f, 1, 1);
	fixture_queue(&f, &compute);
	first = f.size;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		fixture_event(&f);
		fixture_u32(f.bytes + f.size - 64 + 24, types[i]);
		if (i == 2)
			fixture_svm_range(&f);
	}
	state = fixture_state(&f);
	assert_int_equal(state.nr_signals, 3);
	assert_false(state.has_event_page);
	state.priv_size -= 8;
	fixture_read(&state);
	assert_false(state.is_known);
	/* The first event has the page's handle. */
	fixture_u32(f.bytes + first + 8, 17);
	state = fixture_state(&f);
	assert_true(state.has_event_page);
}

/* Those that were read know where their bytes are. */
TEST(queues_move_with_their_bytes)
{
	struct kfd_state state;
	struct fixture_records f;
	uint64_t at;

	fill(&f);
	state = fixture_state(&f);
	state.priv_data = malloc(f.size);
	assert_non_null(state.priv_data);
	memcpy(state.priv_data, f.bytes, f.size);
	at = state.queues[1].at;
	assert_int_equal(records_insert(&state, at, 24), 0);
	assert_int_equal(state.queues[0].at, 8 + 8 * f.nr_devices + 272 * f.nr_bos);
	assert_int_equal(state.queues[1].at, at + 24);
	assert_ptr_equal(state.queues[1].mqd, state.priv_data + at + 24 + QUEUE_RECORD_SIZE);
	assert_memory_equal(state.priv_data + state.queues[1].at, f.bytes + at, QUEUE_RECORD_SIZE + sdma.mqd_size);
	records_cut(&state, at, 24);
	assert_int_equal(state.queues[1].at, at);
	assert_int_equal(state.priv_size, f.size);
	assert_memory_equal(state.priv_data, f.bytes, f.size);
	free(state.priv_data);
}

/* With XNACK, unless an attribute says otherwise. */
TEST(pages_that_come_on_demand_are_known)
{
	static const struct {
		uint32_t type, value;
		bool at_once;
	} cases[] = {
		{ 0, 7, false }, /* the preferred location */
		{ 1, 0, false }, { 1, UINT32_MAX, false }, { 1, 7, true }, /* the location of the last prefetch */
		{ 2, 7, false }, { 3, 7, true }, { 4, 7, false }, /* access, in place, none */
		{ 5, 1, false }, { 5, 0x41, true }, /* flags: host access, always mapped */
		{ 7, 0x40, false }, /* granularity */
	};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		struct fixture_records f;
		struct kfd_state state;

		fixture_begin(&f, 1, 1);
		if (i % 2)
			fixture_xnack(&f);
		fixture_svm_attr(fixture_svm_range(&f), (unsigned int)i % 5, cases[i / 2].type, cases[i / 2].value);
		state = fixture_state(&f);
		assert_int_equal(state.nr_ranges, 1);
		assert_int_equal(state.ranges[0].on_demand, i % 2 && !cases[i / 2].at_once);
	}
}

/* The imports are left out, and placeholders come in. */
TEST(bos_are_selected)
{
	const struct placeholder placeholders[] = { { .gpu_id = 7, .handle = 5 }, { .gpu_id = 8, .handle = 1 } };
	const bool keep[] = { true, false, true };
	struct bo bos[3] = { { .size = 1 }, { .size = 2 }, { .size = 3 } };
	struct kfd_state all, some;
	struct fixture_records f;
	struct bo_record record;

	fill(&f);
	all = fixture_state(&f);
	assert_int_equal(all.nr_bos, 3);
	all.bos = bos;
	/* Which bytes of the rest are there is seen only where none is zero. */
	for (uint64_t i = 8 + 8 * f.nr_devices + 272 * 3; i < f.size; i++)
		f.bytes[i] = (uint8_t)(1 + i % 251);
	for (uint32_t i = 0; i < 3; i++) {
		fixture_u32(f.bytes + 8 + 8 * f.nr_devices + 272 * i + 8, 10 + i);
		fixture_u32(f.bytes + 8 + 8 * f.nr_devices + 272 * i + 12, 7);
	}
	assert_int_equal(records_bo(&all, 2, &record), 0);
	assert_int_equal(record.handle, 12);
	assert_int_equal(records_nr_mapped(&record), 1);
	assert_int_equal(record.mapped_gpus[0], 7);
	assert_int_equal(records_bo(&all, 3, &record), -EPROTO);
	assert_int_equal(records_select(&all, keep, placeholders, 2, &some), 0);
	assert_int_equal(some.nr_bos, 4);
	assert_int_equal(some.priv_size, all.priv_size + 272);
	assert_int_equal(some.bos[1].size, 3);
	assert_int_equal(some.bos[3].gpu_id, 8);
	assert_int_equal(records_bo(&some, 1, &record), 0);
	assert_int_equal(record.handle, 12);
	assert_int_equal(records_bo(&some, 2, &record), 0);
	assert_int_equal(record.handle, 5);
	assert_int_equal(records_nr_mapped(&record), 0);
	assert_int_equal(records_bo(&some, 3, &record), 0);
	assert_int_equal(record.handle, 1);
	assert_memory_equal(some.priv_data + 8 + 8 * f.nr_devices + 272 * 4, f.bytes + 8 + 8 * f.nr_devices + 272 * 3,
			    f.size - 8 - 8 * f.nr_devices - 272 * 3);
	records_selection_done(&some);
}

/* Each BO that was selected gets what RESTORE says of it; the others stay as they are. */
TEST(results_go_to_the_bos_that_were_selected)
{
	const struct placeholder placeholder = { .gpu_id = 7, .handle = 5 };
	const bool keep[] = { false, true, true };
	struct bo bos[3] = { { .dmabuf_fd = 30 }, { .dmabuf_fd = 31 }, { .dmabuf_fd = 32 } };
	struct fixture_records f;
	struct kfd_state all, some;

	fill(&f);
	all = fixture_state(&f);
	all.bos = bos;
	assert_int_equal(records_select(&all, keep, &placeholder, 1, &some), 0);
	for (int i = 0; i < 3; i++) {
		some.bos[i].restored_offset = 0x1000 * (uint64_t)(i + 1);
		some.bos[i].dmabuf_fd = 50 + i;
	}
	some.bos[2].dmabuf_fd = KFD_NO_FD;
	records_take_results(&all, keep, &some);
	assert_int_equal(bos[0].restored_offset, 0);
	assert_int_equal(bos[0].dmabuf_fd, 30);
	assert_int_equal(bos[1].restored_offset, 0x1000);
	assert_int_equal(bos[1].dmabuf_fd, 50);
	assert_int_equal(bos[2].restored_offset, 0x2000);
	assert_int_equal(bos[2].dmabuf_fd, 51);
	assert_int_equal(some.bos[1].dmabuf_fd, KFD_NO_FD);
	records_selection_done(&some);
}

UNIT_MAIN(NULL, NULL)
