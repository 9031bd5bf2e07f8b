/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that say their name once: TEST(a_rule_that_holds) { ... }. They run in the order of the file. */
#ifndef UNIT_UNIT_H
#define UNIT_UNIT_H

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct CMUnitTest unit_tests[192]; /* cmocka passes over those without a name */

static inline void unit_add(const char *name, CMUnitTestFunction test, CMFixtureFunction setup,
			    CMFixtureFunction teardown, const void *row)
{
	size_t i = 0;

	while (unit_tests[i].name)
		i++;
	assert_true(i + 1 < sizeof(unit_tests) / sizeof(*unit_tests));
	unit_tests[i] = (struct CMUnitTest){ name, test, setup, teardown, (void *)(uintptr_t)row };
}

/* A function with the argument @unit_state, where @setup has left what it wants; @setup and @teardown may be NULL. */
#define UNIT_TEST(test, setup, teardown)                          \
	static void test(void **unit_state);                      \
	static void __attribute__((constructor)) add_##test(void) \
	{                                                         \
		unit_add(#test, test, setup, teardown, NULL);     \
	}                                                         \
	static void test(void **unit_state)

#define TEST(test) UNIT_TEST(test, NULL, NULL)

/*
 * A test for each row of an array of structs, whose member @name, a sentence, is the test's: *unit_state is the row,
 * which @setup leaves there. The body follows.
 */
#define ROW_TEST(test, rows, name, setup, teardown)                                       \
	static void test(void **unit_state);                                              \
	static void __attribute__((constructor)) add_##test(void)                         \
	{                                                                                 \
		for (size_t i = 0; i < sizeof(rows) / sizeof(*(rows)); i++)               \
			unit_add((rows)[i].name, test, setup, teardown, &(rows)[i]);      \
	}                                                                                 \
	static void test(void **unit_state)

/* What stands in for a function and only gives a value. @args: the parameters in parentheses. */
#define STUB(type, name, args, value) \
	type name args                \
	{                             \
		return value;         \
	}

/* Runs all tests, or those whose names match @filter, a pattern of the shell. One that no test matches is a mistake. */
static inline int unit_run(const char *file, const char *filter, CMFixtureFunction setup, CMFixtureFunction teardown)
{
	size_t nr_matching = 0;

	for (size_t i = 0; filter && unit_tests[i].name; i++)
		nr_matching += !fnmatch(filter, unit_tests[i].name, 0);
	if (filter && !nr_matching) {
		fprintf(stderr, "%s: no test's name matches \"%s\"\n", file, filter);
		return 2;
	}
	cmocka_set_test_filter(filter);
	return cmocka_run_group_tests_name(file, unit_tests, setup, teardown);
}

/* The filter is the program's first argument, or $TEST_FILTER. @setup and @teardown, for all together, may be NULL. */
#define UNIT_MAIN(setup, teardown)                                                     \
	int main(int argc, char **argv)                                                \
	{                                                                              \
		const char *filter = argc > 1 ? argv[1] : getenv("TEST_FILTER");       \
                                                                                       \
		return unit_run(__FILE__, filter && *filter ? filter : NULL, setup, teardown); \
	}

#endif
