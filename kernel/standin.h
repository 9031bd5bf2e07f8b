/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory for waves (CWSR) that RESTORE wants to see before it comes back.
 *
 * Drivers whose RESTORE checks queues (driver.h) want that memory as a BO or a range of SVM, of exactly the size that the
 * local GPU needs. Ranges, where ROCm has it, come back at RESUME, and not where a BO is mapped. So a BO stands in for
 * them while RESTORE runs: user memory at an address that no process can have, so that it has no pages, ever. Then its
 * mapping is cleared through the render node, as the KFD would not unmap what a queue uses. The BO, mapped nowhere, stays
 * until the process ends, under a number that the program does not meet, and is left out of later dumps.
 */
#ifndef KERNEL_STANDIN_H
#define KERNEL_STANDIN_H

#include "amdgpu_plugin_topology.h"
#include "kernel/driver.h"
#include "kernel/kfd.h"

/*
 * Finds what @driver wants for the queues in *state, which names the GPUs of @machine by now: into state->standins. 0,
 * -ENOMEM, or -EPROTO for a state that cannot be read, without a message.
 */
int standin_find(struct kfd_state *state, const struct topology *machine, const struct driver_release *driver);

/* kfd_restore() with what was found. */
int standin_restore(int kfd, struct kfd_state *state);

/* Takes what an earlier restore has left out of the state that CHECKPOINT gave. */
void standin_drop(struct kfd_state *state);

#endif
