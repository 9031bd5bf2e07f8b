// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where trap handlers are, the packet that copies them, and SET_TRAP_HANDLER; RUNTIME_ENABLE: how the dump finds out that it was
 * called, and the call at restore. How trap handlers are read: test_faults.c.
 */
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

/* Of the job, which does not run here. */
STUB(int, share_kfds_file, (const struct survey *survey, pid_t pid, uint32_t minor), -1)
STUB(int, drm_probe_open, (struct drm_probe *probe), -ENODEV)
STUB(int, drm_probe_close, (struct drm_probe *probe), 0)

#define HIGH_END 0xffffffffffbf0000ull

/* A parameter file with this text. */
static int find(int major, int minor, const char *text, uint64_t high_end, uint64_t *ret)
{
	struct driver_release driver = { .major = major, .minor = minor, .text = "Linux x" };
	int err, fd = memfd_create("cwsr_enable", MFD_CLOEXEC);
	char path[32];

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = trap_find(&driver, path, high_end, ret);
	close(fd);
	fail_log();
	return err;
}

TEST(the_place_is_known_since_linux_6_12)
{
	uint64_t at = 0;

	assert_int_equal(find(6, 12, "1\n", HIGH_END, &at), 0);
	assert_int_equal(at, HIGH_END + 4096 + 2048);
	assert_int_equal(find(7, 2, "1\n", HIGH_END, &at), 0);
	assert_int_equal(find(6, 11, "1\n", HIGH_END, &at), -EOPNOTSUPP);
	assert_int_equal(find(6, 1, "1\n", HIGH_END, &at), -EOPNOTSUPP);
	assert_int_equal(find(0, 0, "1\n", HIGH_END, &at), -EOPNOTSUPP);
}

TEST(what_is_not_certain_is_not_read)
{
	const struct driver_release driver = { .major = 7, .minor = 2 };
	uint64_t at = 0;

	assert_int_equal(find(7, 2, "0\n", HIGH_END, &at), -EOPNOTSUPP);
	assert_int_equal(find(7, 2, "", HIGH_END, &at), -EOPNOTSUPP);
	assert_int_equal(find(7, 2, "1\n", 0, &at), -EOPNOTSUPP);
	assert_int_equal(trap_find(&driver, "/nowhere/cwsr_enable", HIGH_END, &at), -EOPNOTSUPP);
	fail_clear();
	assert_int_equal(at, 0);
}

/* As the copy engine's encoder has it for gfx9. */
TEST(the_packet_is_a_copy)
{
	uint32_t dw[TRAP_PACKET_DWORDS], wanted[TRAP_PACKET_DWORDS];
	struct sdma_ib ib = { .dw = wanted, .max_dw = TRAP_PACKET_DWORDS };

	trap_put_packet(dw, 0xffffffffffbef800, 0xffffffffffbf1800);
	assert_int_equal(sdma_add_copy(&ib, 0xffffffffffbef800, 0xffffffffffbf1800, TRAP_BYTES), TRAP_BYTES);
	sdma_finish(&ib);
	assert_memory_equal(dw, wanted, sizeof(dw));
}

TEST(a_gpu_is_used_where_something_is_mapped)
{
	static struct fixture_records f;
	struct bo bos[2] = { { .addr = 0x10000, .size = 4096 }, { .addr = 0x20000, .size = 4096 } };
	struct kfd_state process;

	fixture_begin(&f, 1, 2);
	fixture_u32(f.bytes + 8 + 8 + 272 + 12, 0x11);
	fixture_u32(f.bytes + 8 + 8 + 272 + 16, 0x22);
	process = fixture_state(&f);
	process.bos = bos;
	assert_true(trap_gpu_is_used(&process, 0x11));
	assert_true(trap_gpu_is_used(&process, 0x22));
	assert_false(trap_gpu_is_used(&process, 0x33));
	assert_true(kfd_state_has_address(&process, 0x20fff));
	assert_false(kfd_state_has_address(&process, 0x21000));
	assert_false(kfd_state_has_address(&process, 0xffff));
	/* Objects of render nodes come behind those of the KFD, and their addresses are no one's. */
	process.nr_records = 1;
	assert_false(kfd_state_has_address(&process, 0x20000));
}

static struct kfd_ioctl_set_trap_handler_args calls[4];
static unsigned int nr_calls, failing;
static unsigned long wanted_op;

static void check_runtime_enable(const struct kfd_ioctl_runtime_enable_args *args)
{
	const struct kfd_ioctl_runtime_enable_args wanted = { .mode_mask = 1 };

	assert_memory_equal(args, &wanted, sizeof(wanted));
}

int __wrap_ioctl(int fd, unsigned long op, void *args)
{
	assert_int_equal(fd, 9);
	assert_int_equal(op, wanted_op);
	if (op == 0xc0104b25)
		check_runtime_enable(args);
	else
		memcpy(&calls[nr_calls], args, sizeof(*calls));
	errno = EINVAL;
	return ++nr_calls == failing ? -1 : 0;
}

TEST(each_gpu_gets_its_own)
{
	struct trap_handler traps[] = { { 0x11, 0x10000, 0x10100 }, { 0x22, 0x20000, 0 } };
	struct kfd_state process = { .pid = 7, .traps = traps, .nr_traps = ARRAY_SIZE(traps) };

	wanted_op = 0x40184b13;
	nr_calls = failing = 0;
	assert_int_equal(trap_set(9, &process), 0);
	assert_int_equal(nr_calls, 2);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(calls[i].gpu_id, traps[i].gpu_id);
		assert_int_equal(calls[i].tba_addr, traps[i].tba);
		assert_int_equal(calls[i].tma_addr, traps[i].tma);
	}
	nr_calls = 0;
	failing = 1;
	assert_int_equal(trap_set(9, &process), -EINVAL);
	assert_int_equal(nr_calls, 1);
	assert_non_null(strstr(fail_text(), "gpu 0x11: the KFD does not take the trap handler at 0x10000 that pid 7 had set: "
			       "Invalid argument"));
	fail_clear();
	nr_calls = 0;
	process.nr_traps = 0;
	assert_int_equal(trap_set(9, &process), 0);
	assert_int_equal(nr_calls, 0);
}

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

TEST(it_is_called_for_those_that_had_called_it)
{
	struct kfd_state state = { .pid = 7 };

	wanted_op = 0xc0104b25;
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
