// SPDX-License-Identifier: GPL-2.0-only
/* Device filters: the program is run here as the kernel would run it; rules of v1 go to files. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "unit.h"
#include <linux/bpf.h>
#include "kernel/kfd.h"
#include "kernel/machine.h"
#include "amdgpu_plugin_util.h"
#include "log_stub.h"

#define KFD_MAJOR 235

bool device_kfd_number(dev_t *ret)
{
	*ret = makedev(KFD_MAJOR, 0);
	return true;
}

dev_t device_render_number(uint32_t minor_number)
{
	return makedev(226, minor_number);
}

/* Runs the few instructions that a filter consists of; any other ends the test. */
static int run(const struct bpf_insn *insns, int n, const struct bpf_cgroup_dev_ctx *ctx)
{
	uint64_t reg[11] = { 0 };
	uint32_t word;

	for (int pc = 0; pc >= 0 && pc < n; pc++) {
		const struct bpf_insn *i = &insns[pc];

		switch (i->code) {
		case BPF_LDX | BPF_MEM | BPF_W:
			assert_int_equal(i->src_reg, BPF_REG_1);
			assert_in_range(i->off, 0, sizeof(*ctx) - sizeof(word));
			memcpy(&word, (const char *)ctx + i->off, sizeof(word));
			reg[i->dst_reg] = word;
			break;
		case BPF_ALU64 | BPF_AND | BPF_K:
			reg[i->dst_reg] &= (uint64_t)(int64_t)i->imm;
			break;
		case BPF_ALU64 | BPF_MOV | BPF_K:
			reg[i->dst_reg] = (uint64_t)(int64_t)i->imm;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += reg[i->dst_reg] == (uint64_t)(int64_t)i->imm ? i->off : 0;
			break;
		case BPF_JMP | BPF_JNE | BPF_K:
			pc += reg[i->dst_reg] != (uint64_t)(int64_t)i->imm ? i->off : 0;
			break;
		case BPF_JMP | BPF_EXIT:
			return (int)reg[0];
		default:
			fail_msg("instruction %d: unknown code %#x", pc, i->code);
		}
	}
	fail_msg("the program is left without an answer");
	return -1;
}

static int asked(const struct bpf_insn *insns, int n, uint32_t type, uint32_t major_number, uint32_t minor_number)
{
	struct bpf_cgroup_dev_ctx ctx = {
		.access_type = (BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE) << 16 | type,
		.major = major_number,
		.minor = minor_number,
	};

	return run(insns, n, &ctx);
}

TEST(filter_allows_of_drm_only_what_is_named)
{
	const uint32_t minors[] = { 128, 131, 200 };
	_cleanup_free_ struct bpf_insn *insns = NULL;
	int n = devfilter_program(minors, ARRAY_SIZE(minors), &insns);

	assert_true(n > 0);
	for (uint32_t i = 0; i < 512; i++)
		assert_int_equal(asked(insns, n, BPF_DEVCG_DEV_CHAR, 226, i), i == 128 || i == 131 || i == 200);
}

TEST(filter_says_nothing_about_other_devices)
{
	const uint32_t minors[] = { 128 };
	_cleanup_free_ struct bpf_insn *insns = NULL;
	int n = devfilter_program(minors, ARRAY_SIZE(minors), &insns);

	assert_int_equal(asked(insns, n, BPF_DEVCG_DEV_CHAR, KFD_MAJOR, 0), 1);
	assert_int_equal(asked(insns, n, BPF_DEVCG_DEV_CHAR, 1, 129), 1);
	assert_int_equal(asked(insns, n, BPF_DEVCG_DEV_BLOCK, 226, 129), 1);
	assert_int_equal(asked(insns, n, BPF_DEVCG_DEV_CHAR, 226, 129), 0);
}

TEST(filter_has_room_for_every_gpu)
{
	_cleanup_free_ struct bpf_insn *insns = NULL;
	uint32_t minors[256];
	int n;

	for (uint32_t i = 0; i < ARRAY_SIZE(minors); i++)
		minors[i] = 128 + 2 * i;
	n = devfilter_program(minors, ARRAY_SIZE(minors), &insns);
	for (uint32_t i = 128; i < 128 + 2 * ARRAY_SIZE(minors); i++)
		assert_int_equal(asked(insns, n, BPF_DEVCG_DEV_CHAR, 226, i), i % 2 == 0);
}

TEST(filter_without_gpus_allows_none)
{
	_cleanup_free_ struct bpf_insn *insns = NULL;
	int n = devfilter_program(NULL, 0, &insns);

	assert_int_equal(asked(insns, n, BPF_DEVCG_DEV_CHAR, 226, 128), 0);
	assert_int_equal(asked(insns, n, BPF_DEVCG_DEV_CHAR, KFD_MAJOR, 0), 1);
}

/* ---- v1: a directory with ordinary files stands for the cgroup ---- */

static int cgroup = -1;
static char cgroup_path[] = "/tmp/test_devfilter.XXXXXX";

static void make_file(const char *name)
{
	int fd = openat(cgroup, name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static int setup(void **state)
{
	(void)state;
	strcpy(cgroup_path, "/tmp/test_devfilter.XXXXXX");
	if (!mkdtemp(cgroup_path))
		return -1;
	cgroup = open(cgroup_path, O_DIRECTORY | O_CLOEXEC);
	return cgroup < 0;
}

static int teardown(void **state)
{
	(void)state;
	unlinkat(cgroup, "devices.deny", 0);
	unlinkat(cgroup, "devices.allow", 0);
	close(cgroup);
	return rmdir(cgroup_path);
}

#define FIXTURE_TEST(test) UNIT_TEST(test, setup, teardown)

FIXTURE_TEST(rules_of_v1_allow_what_is_named_and_kfd)
{
	const uint32_t minors[] = { 129 };
	char text[64] = "";
	int fd;

	make_file("devices.deny");
	make_file("devices.allow");
	assert_int_equal(devfilter_write(cgroup, minors, 1), 0);
	fd = openat(cgroup, "devices.deny", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text) - 1), 1);
	assert_string_equal(text, "a");
	close(fd);
	/* Each rule was written to the file's begin: the last one is there. */
	fd = openat(cgroup, "devices.allow", O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "c 226:129 rw");
	close(fd);
}

FIXTURE_TEST(rules_of_v1_that_cannot_be_written_are_an_error)
{
	const uint32_t minors[] = { 129 };

	assert_int_equal(devfilter_write(cgroup, minors, 1), -ENOENT);
	make_file("devices.deny");
	assert_int_equal(devfilter_write(cgroup, minors, 1), -ENOENT);
}

UNIT_MAIN(NULL, NULL)
