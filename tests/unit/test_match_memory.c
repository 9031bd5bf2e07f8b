// SPDX-License-Identifier: GPL-2.0-only
/*
 * Topology, settings and matcher when memory runs out: each allocation of a run
 * fails once, one after the other, until a run is untouched. Every failing run
 * says so and leaks nothing (the address sanitizer looks on).
 */
#define _GNU_SOURCE
#include <fcntl.h>

#include "unit.h"
#include "kernel/machine.h"
#include "host/settings.h"
#include "match/match.h"
#include "log_stub.h"
#include "machine_text.h"
#include "wrap.h"

static unsigned long n_calls, fail_at; /* fail_at 0: never */

static bool hit(const char *name)
{
	return ++n_calls == fail_at;
}

WRAP(void *, malloc, (size_t size), (size), NULL)
WRAP(void *, calloc, (size_t n, size_t size), (n, size), NULL)
WRAP(void *, realloc, (void *p, size_t size), (p, size), NULL)
WRAP(void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size), NULL)
WRAP(char *, strdup, (const char *text), (text), NULL)

/* ---- the runs: 0 or -errno ---- */

static int run_topology(void)
{
	struct topology *t = NULL;
	int r = sysfs_read_topology(TEST_DATA "/topology/two-mi100", &t);

	topology_free(t);
	return r;
}

static const char *get_env(const char *name)
{
	return strcmp(name, "KFD_DEVICE_MAP") ? NULL : "1=2";
}

static struct topology *saved, *local;
static char conf_dir[64];

static int run_settings(void)
{
	struct settings s;
	char path[96];

	snprintf(path, sizeof(path), "%s/machine.conf", conf_dir);
	return settings_load(&s, path, -1, get_env);
}

static int run_match(void)
{
	const struct match_options options = { .nr_pairs = 0 };
	struct match_map *m = NULL;
	int r = match_devices(saved, local, &options, &m);

	if (r == 0)
		assert_int_equal(m->nr_pairs, topology_count_gpus(saved));
	else
		assert_int_equal(fail_text()[0] != '\0', r != -ENOMEM);
	free(m);
	return r;
}

/* Returns how many runs failed. Without memory trouble the result is "expected". */
static unsigned int fault_loop(int (*run)(void), int expected)
{
	unsigned int n_failed = 0;
	int r;

	for (fail_at = 1;; fail_at++) {
		n_calls = 0;
		log_clear();
		fail_clear();
		r = run();
		if (n_calls < fail_at)
			break;
		/* Some memory is for speed only: without it the result is as good. */
		if (r != expected && r != -ENOMEM)
			fail_msg("allocation %lu failed: result %d", fail_at, r);
		n_failed += r == -ENOMEM;
	}
	fail_at = 0;
	assert_int_equal(r, expected);
	return n_failed;
}

/* ---- tests ---- */

TEST(memory_for_the_topology_may_run_out)
{
	assert_in_range(fault_loop(run_topology, 0), 4, 100);
}

TEST(memory_for_settings_may_run_out)
{
	char path[96];
	FILE *f;

	strcpy(conf_dir, "/tmp/test_match_memory.XXXXXX");
	assert_non_null(mkdtemp(conf_dir));
	snprintf(path, sizeof(path), "%s/machine.conf", conf_dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("KFD_NUMA_CHECK = 1\n", f);
	assert_int_equal(fclose(f), 0);
	assert_in_range(fault_loop(run_settings, 0), 3, 10);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(conf_dir), 0);
}

static void match_fails(const char *was, const char *is, int expected, unsigned int at_least)
{
	saved = machine_of(0xa0, "%s", was);
	local = machine_of(0xb0, "%s", is);
	assert_int_equal(run_match(), expected);
	assert_in_range(fault_loop(run_match, expected), at_least, 100);
	topology_free(saved);
	topology_free(local);
}

TEST(memory_for_a_map_may_run_out)
{
	match_fails("6 x/3", "8 x/4 location_id=0xa000,0xa500,0xa200,0xa700,0xa400,0xa100,0xb600,0xb700", 0, 4);
}

TEST(memory_for_a_refusal_may_run_out)
{
	match_fails("9 x/3", "10 x/5", -ENODEV, 3);
}

UNIT_MAIN(NULL, NULL)
