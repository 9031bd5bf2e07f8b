// SPDX-License-Identifier: GPL-2.0-only
/* Device filters: the program is run here as the kernel would run it. */
#include <sys/sysmacros.h>

#include "unit.h"
#include <linux/bpf.h>
#include "kernel/kfd.h"
#include "kernel/machine.h"
#include "amdgpu_plugin_util.h"
#include "log_stub.h"

#define KFD_MAJOR 235

STUB(dev_t, device_render_number, (uint32_t minor_number), makedev(226, minor_number))

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

UNIT_MAIN(NULL, NULL)
