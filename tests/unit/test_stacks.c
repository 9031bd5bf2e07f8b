// SPDX-License-Identifier: GPL-2.0-only
/* Control stacks that the driver left out: which are added, and that nothing else of the state changes. */

#include "unit.h"
#include "amdgpu_plugin_util.h"
#include "kernel/driver.h"
#include "machine_text.h"
#include "records_fixture.h"

#define GFX9  0x9e41u
#define GFX10 0x1002u
#define STACK 0x800u

static const struct queue_record idle = {
	.cwsr_address = 0x7f0000400000, .gpu_id = GFX9, .type = QUEUE_TYPE_COMPUTE, .cwsr_size = 7, .mqd_size = 2048,
	.mqd_stack_size = STACK, .mqd_stack_offset = STACK, .mqd_wave_offset = STACK,
};
static const struct queue_record sdma = { .gpu_id = GFX9, .type = QUEUE_TYPE_SDMA, .mqd_size = 512 };

static struct queue_record saved(void)
{
	struct queue_record ret = idle;

	ret.ctl_stack_size = STACK;
	return ret;
}

static struct topology *machine(void)
{
	return machine_of(0, "2 gpu_id=%u,%u gfx_target_version=90008,100300", GFX9, GFX10);
}

/* Marks the MQD, behind what is read of it, and of the stack that follows. */
static void mark(struct fixture_records *f, const struct queue_record *queue, uint8_t with)
{
	fixture_queue(f, queue);
	memset(f->bytes + f->size - queue->ctl_stack_size - 512, with, 512);
}

static struct kfd_state on_heap(struct fixture_records *f)
{
	struct kfd_state state = fixture_state(f);

	state.priv_data = malloc(f->size);
	assert_non_null(state.priv_data);
	memcpy(state.priv_data, f->bytes, f->size);
	fixture_read(&state);
	return state;
}

/* Of which RESTORE looks at the bytes alone. */
static struct driver_release driver = { .major = 7, .minor = 2, .patch = 12 };

static unsigned int add_stacks(struct kfd_state *state)
{
	struct topology *topology = machine();
	int lost = stacks_add(state, topology, &driver, true);

	assert_true(lost >= 0);
	topology_free(topology);
	return (unsigned int)lost;
}

TEST(stacks_that_were_left_out_are_added_empty)
{
	struct fixture_records f, wanted;
	struct queue_record whole = saved();
	struct kfd_state state;

	fixture_begin(&f, 1, 2);
	fixture_begin(&wanted, 1, 2);
	for (unsigned int i = 0; i < 2; i++) {
		fixture_event(&f);
		mark(&f, i ? &idle : &whole, 0x55);
		mark(&f, &sdma, 0x66);
		mark(&f, &idle, 0x77);
		fixture_event(&wanted);
		mark(&wanted, &whole, 0x55);
		mark(&wanted, &sdma, 0x66);
		mark(&wanted, &whole, 0x77);
	}
	fixture_svm_range(&f);
	fixture_svm_range(&wanted);
	state = on_heap(&f);
	assert_int_equal(add_stacks(&state), 0);
	assert_int_equal(state.priv_size, wanted.size);
	assert_memory_equal(state.priv_data, wanted.bytes, wanted.size);
	free(state.priv_data);
}

TEST(a_state_without_such_queues_is_left_alone)
{
	struct queue_record gfx10 = idle, no_cwsr = idle, whole = saved();
	struct fixture_records f;
	struct kfd_state state;
	uint8_t *before;

	gfx10.gpu_id = GFX10;
	no_cwsr.cwsr_address = 0;
	fixture_begin(&f, 2, 0);
	fixture_queue(&f, &gfx10);
	fixture_queue(&f, &no_cwsr);
	fixture_queue(&f, &whole);
	fixture_queue(&f, &sdma);
	state = on_heap(&f);
	before = state.priv_data;
	assert_int_equal(add_stacks(&state), 0);
	assert_ptr_equal(state.priv_data, before);
	assert_int_equal(state.priv_size, f.size);
	free(state.priv_data);
}

/* Linux 6.12.111 compares the sizes with those of the GPU. */
TEST(stacks_in_the_memory_for_waves_are_added_where_the_driver_checks_their_size)
{
	struct queue_record gfx10 = idle;
	struct fixture_records f;
	struct kfd_state state;

	gfx10.gpu_id = GFX10;
	gfx10.mqd_stack_offset = 8; /* waves are on it */
	fixture_begin(&f, 2, 0);
	fixture_queue(&f, &gfx10);
	state = on_heap(&f);
	driver = (struct driver_release){ .major = 6, .minor = 12, .patch = 110 };
	assert_int_equal(add_stacks(&state), 0);
	assert_int_equal(state.priv_size, f.size);
	driver.patch = 111;
	assert_int_equal(add_stacks(&state), 0);
	driver = (struct driver_release){ .major = 7, .minor = 2, .patch = 12 };
	assert_int_equal(state.priv_size, f.size + STACK);
	fixture_read(&state);
	assert_int_equal(state.nr_queues, 1);
	assert_int_equal(state.queues[0].ctl_stack_size, STACK);
	assert_int_equal(state.queues[0].mqd_stack_offset, 8);
	free(state.priv_data);
}

static const struct queue_record on_stack = {
	.cwsr_address = 0x7f0000400000, .gpu_id = GFX9, .type = QUEUE_TYPE_COMPUTE, .cwsr_size = 8, .mqd_size = 2048,
	.mqd_stack_size = STACK, .mqd_stack_offset = 0x100, .mqd_wave_offset = 0x8000,
};

/* A queue that has them still has them at restore, where somebody counts. */
TEST(stacks_with_waves_are_left_out_at_dump)
{
	struct topology *topology = machine();
	struct fixture_records f;
	struct kfd_state state;

	fixture_begin(&f, 1, 0);
	fixture_queue(&f, &on_stack);
	fixture_queue(&f, &idle);
	state = on_heap(&f);
	assert_int_equal(stacks_add(&state, topology, &driver, false), 0);
	assert_int_equal(state.priv_size, f.size + STACK);
	assert_memory_equal(state.priv_data, f.bytes, 8 + 8 + 120 + 2048);
	assert_int_equal(add_stacks(&state), 1);
	assert_int_equal(state.priv_size, f.size + 2 * STACK);
	assert_int_equal(add_stacks(&state), 0);
	free(state.priv_data);
	topology_free(topology);
}

/* Room for later waves is made, and the MQD no longer knows of those that are lost. */
TEST(queues_with_waves_are_counted_and_emptied)
{
	struct queue_record pushed = saved(), in_area = idle, nonsense = idle;
	struct fixture_records f, wanted;
	struct kfd_state state;

	in_area.mqd_wave_offset = 0x8000;
	nonsense.mqd_stack_size = nonsense.mqd_stack_offset = nonsense.mqd_wave_offset = 0xfffff000;
	pushed.cwsr_size = on_stack.cwsr_size;
	fixture_begin(&f, 1, 0);
	mark(&f, &on_stack, 0x55);
	mark(&f, &in_area, 0x66);
	mark(&f, &nonsense, 0x77);
	mark(&f, &idle, 0x88);
	state = on_heap(&f);
	fixture_begin(&wanted, 1, 0);
	mark(&wanted, &pushed, 0x55);
	pushed.cwsr_size = idle.cwsr_size;
	mark(&wanted, &pushed, 0x66);
	nonsense.mqd_stack_size = nonsense.mqd_stack_offset = nonsense.mqd_wave_offset = 0;
	mark(&wanted, &nonsense, 0x77);
	mark(&wanted, &pushed, 0x88);
	assert_int_equal(add_stacks(&state), 3);
	assert_int_equal(state.priv_size, wanted.size);
	assert_memory_equal(state.priv_data, wanted.bytes, wanted.size);
	free(state.priv_data);
}

/* Each has a stack of its own; a wave on one of them is enough. */
TEST(several_xccs_get_as_many_stacks)
{
	struct queue_record record = idle, whole = saved();
	struct fixture_records f, wanted;
	struct kfd_state state;

	record.mqd_size = 4 * COMPUTE_MQD_SIZE;
	whole.mqd_size = record.mqd_size;
	whole.ctl_stack_size = 4 * STACK;
	fixture_begin(&f, 1, 0);
	fixture_queue(&f, &record);
	state = on_heap(&f);
	fixture_begin(&wanted, 1, 0);
	fixture_queue(&wanted, &whole);
	assert_int_equal(add_stacks(&state), 0);
	assert_int_equal(state.priv_size, wanted.size);
	assert_memory_equal(state.priv_data, wanted.bytes, wanted.size);
	free(state.priv_data);
	fixture_u32(f.bytes + 16 + QUEUE_RECORD_SIZE + 2 * COMPUTE_MQD_SIZE + 696, STACK - 8);
	state = on_heap(&f);
	assert_int_equal(add_stacks(&state), 1);
	assert_memory_equal(state.priv_data, wanted.bytes, wanted.size);
	free(state.priv_data);
}

TEST(an_unreadable_state_stays_as_it_is)
{
	struct topology *topology = machine();
	struct fixture_records f;
	struct kfd_state state;

	fixture_begin(&f, 1, 0);
	fixture_queue(&f, &idle);
	f.size--;
	state = on_heap(&f);
	assert_int_equal(stacks_add(&state, topology, &driver, false), 0);
	assert_int_equal(state.priv_size, f.size);
	free(state.priv_data);
	topology_free(topology);
}

UNIT_MAIN(NULL, NULL)
