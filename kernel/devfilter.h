/* SPDX-License-Identifier: GPL-2.0-only */
/* Device filters of cgroups: which render nodes the tasks in a cgroup may use. */
#ifndef KERNEL_DEVFILTER_H
#define KERNEL_DEVFILTER_H

#include <stddef.h>
#include <stdint.h>

#include <linux/bpf.h>

/*
 * The program for these render minors: of DRM's devices it allows only them, and it forbids no other device. The caller
 * frees *ret. Number of instructions, or -ENOMEM.
 */
int devfilter_program(const uint32_t *minors, size_t nr_minors, struct bpf_insn **ret);

/*
 * Attaches that program to the cgroup (v2) with this directory fd, besides those that
 * apply to it already. It goes with the cgroup. 0, or -errno, no message.
 */
int devfilter_attach(int cgroup, const uint32_t *minors, size_t nr_minors);

/*
 * Lets the tasks of the new cgroup (v1, controller "devices") with this directory fd use
 * these render nodes and /dev/kfd, and nothing else. 0, or -errno, no message.
 */
int devfilter_write(int cgroup, const uint32_t *minors, size_t nr_minors);

#endif
