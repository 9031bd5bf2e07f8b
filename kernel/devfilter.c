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

/* The program's instructions around those for the minors. */
enum { HEAD = 6, TAIL = 4 };

static struct bpf_insn load(unsigned int dst, size_t offset)
{
	return (struct bpf_insn){
		.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = dst, .src_reg = BPF_REG_1, .off = (short)offset
	};
}

static struct bpf_insn jump(unsigned int condition, unsigned int reg, uint32_t value, size_t insns)
{
	return (struct bpf_insn){
		.code = BPF_JMP | condition | BPF_K, .dst_reg = reg, .off = (short)insns, .imm = (int)value
	};
}

static struct bpf_insn answer(int value)
{
	return (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = value };
}

static struct bpf_insn leave(void)
{
	return (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
}

int devfilter_program(const uint32_t *minors, size_t nr_minors, struct bpf_insn **ret)
{
	struct bpf_insn *insns = calloc(HEAD + nr_minors + TAIL, sizeof(*insns)), *p = insns;
	size_t allow = HEAD + nr_minors + 2, i; /* where "yes" is answered */

	if (!insns)
		return -ENOMEM;
	*p++ = load(BPF_REG_2, offsetof(struct bpf_cgroup_dev_ctx, major));
	*p = jump(BPF_JNE, BPF_REG_2, major(device_render_number(0)), allow - (size_t)(p - insns) - 1);
	p++;
	*p++ = load(BPF_REG_2, offsetof(struct bpf_cgroup_dev_ctx, access_type));
	/* The type is in the lower half; access is in the upper one. */
	*p++ = (struct bpf_insn){ .code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = BPF_REG_2, .imm = 0xffff };
	*p = jump(BPF_JNE, BPF_REG_2, BPF_DEVCG_DEV_CHAR, allow - (size_t)(p - insns) - 1);
	p++;
	*p++ = load(BPF_REG_2, offsetof(struct bpf_cgroup_dev_ctx, minor));
	for (i = 0; i < nr_minors; i++, p++)
		*p = jump(BPF_JEQ, BPF_REG_2, minors[i], allow - (size_t)(p - insns) - 1);
	*p++ = answer(0);
	*p++ = leave();
	*p++ = answer(1);
	*p++ = leave();
	*ret = insns;
	return (int)(p - insns);
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
