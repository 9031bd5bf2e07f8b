// SPDX-License-Identifier: GPL-2.0-only
/* RUNTIME_ENABLE: how the dump finds out that it was called, and the call at restore. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "unit.h"
#include "amdgpu_plugin_drm.h"
#include "checkpoint/internal.h"
#include "content/sdma.h"
#include "amdgpu_plugin_util.h"
#include "log_stub.h"
#include "records_fixture.h"

static unsigned int nr_calls, failing;

int __wrap_ioctl(int fd, unsigned long op, void *args)
{
	const struct kfd_ioctl_runtime_enable_args wanted = { .mode_mask = 1 };

	assert_int_equal(fd, 9);
	assert_int_equal(op, 0xc0104b25);
	assert_memory_equal(args, &wanted, sizeof(wanted));
	errno = EINVAL;
	return ++nr_calls == failing ? -1 : 0;
}

static struct kfd_context_save_area_header told = { .err_payload_addr = 0x7000, .err_event_id = 5 }, untold;
static struct fixture_records records;

/* A queue whose save area begins with @head; NULL: it has none. */
static void add_queue(uint32_t type, const void *head)
{
	fixture_queue(&records, &(struct queue_record){ .type = type, .cwsr_address = (uintptr_t)head, .mqd_size = 2048 });
}

static bool is_enabled(void)
{
	struct kfd_state state = fixture_state(&records);

	assert_int_equal(runtime_find(getpid(), &state), 0);
	return state.runtime_enabled;
}

TEST(a_queue_with_an_address_for_exceptions_shows_it)
{
	fixture_begin(&records, 1, 0);
	add_queue(QUEUE_TYPE_SDMA, &told);
	add_queue(QUEUE_TYPE_COMPUTE, &untold);
	assert_false(is_enabled());
	add_queue(QUEUE_TYPE_COMPUTE, (void *)4096);
	assert_false(is_enabled());
	add_queue(QUEUE_TYPE_COMPUTE, &told);
	assert_true(is_enabled());
}

TEST(without_a_compute_queue_it_is_not_known)
{
	fixture_begin(&records, 1, 0);
	add_queue(QUEUE_TYPE_SDMA, &told);
	add_queue(QUEUE_TYPE_COMPUTE, NULL);
	assert_false(is_enabled());
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

TEST(it_is_called_for_those_that_had_called_it)
{
	struct kfd_state state = { .pid = 7 };

	nr_calls = failing = 0;
	assert_int_equal(runtime_enable(9, &state), 0);
	assert_int_equal(nr_calls, 0);
	state.runtime_enabled = true;
	assert_int_equal(runtime_enable(9, &state), 0);
	assert_int_equal(nr_calls, 1);
	failing = 2;
	assert_int_equal(runtime_enable(9, &state), -EINVAL);
	assert_non_null(strstr(fail_text(), "pid 7: the KFD does not take RUNTIME_ENABLE"));
	fail_clear();
}

UNIT_MAIN(NULL, NULL)
