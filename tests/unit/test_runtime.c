// SPDX-License-Identifier: GPL-2.0-only
/* RUNTIME_ENABLE: how the dump finds out that it was called, and the call at restore. */
#include "unit.h"
#include "amdgpu_plugin_util.h"
#include "kernel/driver.h"
#include "log_stub.h"
#include "records_fixture.h"

static struct kfd_context_save_area_header told = { .err_payload_addr = 0x7000, .err_event_id = 5 }, untold;
static struct fixture_records records;

/* A queue whose save area begins with @head; NULL: it has none. */
static void add_queue(uint32_t type, const void *head)
{
	fixture_queue(&records, &(struct queue_record){ .type = type, .cwsr_address = (uintptr_t)head, .mqd_size = 2048 });
}

static bool is_enabled(uint32_t nr_traps)
{
	struct kfd_state state = fixture_state(&records);

	state.nr_traps = nr_traps;
	assert_int_equal(runtime_find(getpid(), &state), 0);
	return state.runtime_enabled;
}

TEST(a_queue_with_an_address_for_exceptions_shows_it)
{
	fixture_begin(&records, 1, 0);
	add_queue(QUEUE_TYPE_SDMA, &told);
	add_queue(QUEUE_TYPE_COMPUTE, &untold);
	assert_false(is_enabled(1));
	add_queue(QUEUE_TYPE_COMPUTE, (void *)4096);
	assert_false(is_enabled(1));
	add_queue(QUEUE_TYPE_COMPUTE, &told);
	assert_true(is_enabled(0));
}

TEST(a_trap_handler_shows_it_where_no_compute_queue_does)
{
	fixture_begin(&records, 1, 0);
	add_queue(QUEUE_TYPE_SDMA, &told);
	add_queue(QUEUE_TYPE_COMPUTE, NULL);
	assert_false(is_enabled(0));
	assert_true(is_enabled(1));
}

TEST(memory_that_cannot_be_opened_fails)
{
	struct kfd_state state;

	fixture_begin(&records, 1, 0);
	add_queue(QUEUE_TYPE_COMPUTE, &told);
	state = fixture_state(&records);
	assert_int_equal(runtime_find(0x7fffffff, &state), -ENOENT);
	assert_non_null(strstr(fail_text(), "cannot open /proc/2147483647/mem: No such file or directory"));
	fail_clear();
}

static unsigned int nr_calls;
static int failure;

int __wrap_ioctl(int fd, unsigned long op, void *args);
int __wrap_ioctl(int fd, unsigned long op, void *args)
{
	const struct kfd_ioctl_runtime_enable_args wanted = { .mode_mask = 1 };

	assert_int_equal(fd, 9);
	assert_int_equal(op, 0xc0104b25);
	assert_memory_equal(args, &wanted, sizeof(wanted));
	nr_calls++;
	errno = failure;
	return failure ? -1 : 0;
}

TEST(it_is_called_for_those_that_had_called_it)
{
	struct kfd_state state = { .pid = 7 };

	assert_int_equal(runtime_enable(9, &state), 0);
	assert_int_equal(nr_calls, 0);
	state.runtime_enabled = true;
	assert_int_equal(runtime_enable(9, &state), 0);
	assert_int_equal(nr_calls, 1);
	failure = ENOTTY;
	assert_int_equal(runtime_enable(9, &state), -ENOTTY);
	assert_non_null(strstr(fail_text(), "pid 7: the KFD does not take RUNTIME_ENABLE"));
	fail_clear();
}

UNIT_MAIN(NULL, NULL)
