// SPDX-License-Identifier: GPL-2.0-only
/* Where trap handlers are, the packet that copies them, and SET_TRAP_HANDLER. How they are read: test_faults.c. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "unit.h"
#include "content/sdma.h"
#include "kernel/driver.h"
#include "amdgpu_plugin_util.h"
#include "log_stub.h"
#include "records_fixture.h"

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

int __wrap_ioctl(int fd, unsigned long op, void *args);
int __wrap_ioctl(int fd, unsigned long op, void *args)
{
	assert_int_equal(fd, 9);
	assert_int_equal(op, 0x40184b13);
	memcpy(&calls[nr_calls++], args, sizeof(*calls));
	errno = EINVAL;
	return nr_calls == failing ? -1 : 0;
}

TEST(each_gpu_gets_its_own)
{
	struct trap_handler traps[] = { { 0x11, 0x10000, 0x10100 }, { 0x22, 0x20000, 0 } };
	struct kfd_state process = { .pid = 7, .traps = traps, .nr_traps = ARRAY_SIZE(traps) };

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

UNIT_MAIN(NULL, NULL)
