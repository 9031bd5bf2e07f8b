/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compute queues of several XCCs, for drivers whose RESTORE takes the size of one XCC's state.
 *
 * The fix of CVE-2026-68258 compares the size of the MQDs with that of one, while CHECKPOINT gives those of all XCCs,
 * and what follows (restore_mqd_v9_4_3()) still reads all of them: MQD i at i times their size, control stack i at
 * i times its size behind what the record calls MQDs. So a record that names one MQD, behind which the others lie in
 * what also counts as the begin of the stacks, is read right, as long as nothing is there: a stack fills from its end.
 * Drivers without the comparison read such a record in the same way.
 */
#ifndef KERNEL_FOLD_H
#define KERNEL_FOLD_H

#include "amdgpu_plugin_topology.h"
#include "kernel/kfd.h"
#include "kernel/records.h"

/* Whether the stacks of a compute queue, saved or still to be added, leave room for the MQDs of @nr_xcc. Pure. */
bool fold_fits(const struct queue_record *record, uint64_t nr_xcc);

/*
 * Folds what fits, in place. SDMA queues, of whose states the first is the only one, get the size of that. @machine has
 * the GPUs by actual ids, of which the state knows. A state that cannot be read stays as it is.
 */
void fold_queues(struct kfd_state *state, const struct topology *machine);

#endif
