// SPDX-License-Identifier: GPL-2.0-only
/* test_faults.c with a criu that has POST_FORKING: a worker restores the contents. */
#define HOOKS 13 /* criu 4.2 */
#include "test_faults.c"
