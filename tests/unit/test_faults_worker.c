// SPDX-License-Identifier: GPL-2.0-only
/* test_faults.c with a criu that has POST_FORKING: a worker restores the contents. */
#define HOOKS 13 /* criu 4.2 */
#include "test_faults.c"

/*
 * The sanitizer would look for leaks at the end of each turn, for as long as that has run. fake_leaks() counts those of the
 * plugin, and test_faults finds those of libraries.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
