/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kernels are known not to save or restore: refused at dump, where the process can
 * still go on, rather than found out at restore.
 */
#ifndef CHECKPOINT_LIMITS_H
#define CHECKPOINT_LIMITS_H

#include <sys/types.h>

#include "amdgpu_plugin_topology.h"

/*
 * Why a queue on @gpu cannot be dumped and restored by a kernel of @release (as uname
 * says it), in words; NULL when nothing is known against it. Pure.
 */
const char *limits_of_queue(const struct topology_node *gpu, const char *release);

/*
 * Looks at the queues of KFD process @pid below @proc_root (/sys/class/kfd/kfd/proc) on the
 * GPUs of @machine. -EOPNOTSUPP after an error line when the running kernel is known not
 * to restore one; with @try, a warning and 0.
 */
int limits_check_queues(const char *proc_root, pid_t pid, const struct topology *machine, bool try);

#endif
