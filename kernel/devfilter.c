// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device filters of cgroups: a few instructions of BPF, which name what is allowed. The filter of a parent may be
 * anything, and they can only narrow it.
 */
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "kernel/kfd.h"
#include "kernel/machine.h"
#include "amdgpu_plugin_util.h"

#define LOAD(field)                                                                                               \
	{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_1,                         \
	  .off = offsetof(struct bpf_cgroup_dev_ctx, field) }
#define JUMP(condition, value, distance)                                                                          \
	{ .code = BPF_JMP | (condition) | BPF_K, .dst_reg = BPF_REG_2, .off = (short)(distance), .imm = (int)(value) }

int devfilter_program(const uint32_t *minors, size_t nr_minors, struct bpf_insn **ret)
{
	size_t allow = 6 + nr_minors + 2; /* where "yes" is answered; distances are from the next instruction on */
	const struct bpf_insn head[6] = {
		LOAD(major),
		JUMP(BPF_JNE, major(device_render_number(0)), allow - 2),
		LOAD(access_type),
		/* The type is in the lower half; access is in the upper one. */
		{ .code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = BPF_REG_2, .imm = 0xffff },
		JUMP(BPF_JNE, BPF_DEVCG_DEV_CHAR, allow - 5),
		LOAD(minor),
	};
	static const struct bpf_insn tail[4] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct bpf_insn *insns = calloc(ARRAY_SIZE(head) + nr_minors + ARRAY_SIZE(tail), sizeof(*insns));

	if (!insns)
		return -ENOMEM;
	memcpy(insns, head, sizeof(head));
	for (size_t i = 0; i < nr_minors; i++)
		insns[6 + i] = (struct bpf_insn)JUMP(BPF_JEQ, minors[i], allow - (6 + i) - 1);
	memcpy(insns + 6 + nr_minors, tail, sizeof(tail));
	*ret = insns;
	return (int)(ARRAY_SIZE(head) + nr_minors + ARRAY_SIZE(tail));
}

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	int r = (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return r < 0 ? -errno : r;
}

int devfilter_attach(int cgroup, const uint32_t *minors, size_t nr_minors)
{
	_cleanup_free_ struct bpf_insn *insns = NULL;
	_cleanup_close_ int program = -1;
	union bpf_attr attr = { 0 };
	int n = devfilter_program(minors, nr_minors, &insns);

	if (n < 0)
		return n;
	attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = (uint32_t)n;
	attr.license = (uintptr_t) "GPL";
	program = bpf(BPF_PROG_LOAD, &attr);
	if (program < 0)
		return program;
	attr = (union bpf_attr){ 0 };
	attr.target_fd = (uint32_t)cgroup;
	attr.attach_bpf_fd = (uint32_t)program;
	attr.attach_type = BPF_CGROUP_DEVICE;
	attr.attach_flags = BPF_F_ALLOW_MULTI;
	return bpf(BPF_PROG_ATTACH, &attr);
}
