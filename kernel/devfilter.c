// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device filters: a few instructions of BPF for cgroup v2, rules in text for v1. Both name what is allowed: the filter
 * of a parent may be anything, and they can only narrow it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
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

/* The kernel takes one rule for each write. */
static int write_rule(int cgroup, const char *file, const char *rule)
{
	_cleanup_close_ int fd = openat(cgroup, file, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, rule, strlen(rule)) == (ssize_t)strlen(rule) ? 0 : -errno;
}

static int allow(int cgroup, dev_t number, const char *access)
{
	char rule[64];

	snprintf(rule, sizeof(rule), "c %u:%u %s", major(number), minor(number), access);
	return write_rule(cgroup, "devices.allow", rule);
}

int devfilter_write(int cgroup, const uint32_t *minors, size_t nr_minors)
{
	dev_t kfd;
	int err;

	if (!device_kfd_number(&kfd))
		return -ENODEV;
	err = write_rule(cgroup, "devices.deny", "a");
	if (err)
		return err;
	err = allow(cgroup, kfd, "rw");
	if (err)
		return err;
	/* Making a node is often not allowed, and often not needed. */
	(void)allow(cgroup, kfd, "m");
	for (size_t i = 0; i < nr_minors; i++) {
		err = allow(cgroup, device_render_number(minors[i]), "rw");
		if (err)
			return err;
	}
	return 0;
}
