// SPDX-License-Identifier: GPL-2.0-only
/* test_faults.c with the criu after 4.2: it has POST_FORKING, where a thread begins to fill the contents. */
#define HOOKS 16
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
