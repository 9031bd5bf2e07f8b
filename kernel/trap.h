/* SPDX-License-Identifier: GPL-2.0-only */
/* The second-level trap handlers of a process, which CHECKPOINT leaves out. */
#ifndef KERNEL_TRAP_H
#define KERNEL_TRAP_H

#include "kernel/driver.h"
#include "kernel/state.h"

/* Whether the driver saves waves, for which its own trap handler is: "1", "0". */
#define TRAP_PARAMETER_FILE "/sys/module/amdgpu/parameters/cwsr_enable"

/*
 * Where a GPU finds both addresses in the address space that a process has there. @high_end: where the addresses end that
 * programs may use, as DEV_INFO says (high_va_max). 0, or -EOPNOTSUPP after fail() where it is not certain that anything
 * is mapped there: a page fault would be reported to the process.
 */
int trap_find(const struct driver_release *driver, const char *parameter_file, uint64_t high_end, uint64_t *ret);

/* Commands that let an SDMA engine copy both addresses to @to. Pure. */
#define TRAP_PACKET_DWORDS 8
#define TRAP_BYTES	   16
void trap_put_packet(uint32_t dw[TRAP_PACKET_DWORDS], uint64_t to, uint64_t from);

/* Whether anything of the process can run on a GPU: one of its BOs is mapped there. Pure. */
bool trap_gpu_is_used(const struct kfd_state *state, uint32_t gpu_id);

/* After RESTORE, in the restored process, whose file @fd is: sets what state->traps has. 0, or -errno after fail(). */
int trap_set(int fd, const struct kfd_state *state);

#endif
