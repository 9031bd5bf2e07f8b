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
#include "match_fixture.h"

static unsigned long n_calls, fail_at; /* fail_at 0: never */

static bool fails(void)
{
	return ++n_calls == fail_at;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
char *__real_strdup(const char *text);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return fails() ? NULL : __real_reallocarray(p, n, size);
}

char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : __real_strdup(text);
}

/* ---- the runs: 0 or -errno ---- */

static int run_topology(void)
{
	struct topology *t = NULL;
	int r = sysfs_read_topology(TEST_DATA "/topology/two-mi100", &t);

	topology_free(t);
	return r;
}

static const char *get_env(const char *name, void *arg)
{
	(void)arg;
	return strcmp(name, "KFD_DEVICE_MAP") ? NULL : "1=2";
}

static char conf_dir[64];

static int run_settings(void)
{
	struct settings s;
	char path[96];

	snprintf(path, sizeof(path), "%s/machine.conf", conf_dir);
	return settings_load(&s, path, -1, get_env, NULL);
}

static int run_match(void)
{
	struct match_map *m = NULL;
	int r = match_devices(saved, local, &options, &m);

	if (r == 0)
		assert_int_equal(m->nr_pairs, topology_count_gpus(saved));
	else
		assert_int_equal(fail_text()[0] != '\0', r != -ENOMEM);
	match_map_free(m);
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

FIXTURE_TEST(memory_for_the_topology_may_run_out)
{
	assert_in_range(fault_loop(run_topology, 0), 4, 100);
}

FIXTURE_TEST(memory_for_settings_may_run_out)
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

FIXTURE_TEST(memory_for_a_map_may_run_out)
{
	plain_machines(6, 8);
	link_hive(saved, GPU, 3);
	link_hive(saved, GPU + 3, 3);
	link_hive(local, GPU, 4);
	link_hive(local, GPU + 4, 4);
	for (uint32_t i = 0; i < 6; i++)
		set_prop(node_of(local, GPU + i), TOPOLOGY_LOCATION_ID, (0xa0 + (i * 5) % 8) << 8);
	assert_int_equal(match(), 0);
	assert_in_range(fault_loop(run_match, 0), 4, 100);
}

FIXTURE_TEST(memory_for_a_refusal_may_run_out)
{
	plain_machines(9, 10);
	for (uint32_t i = 0; i < 3; i++)
		link_hive(saved, GPU + 3 * i, 3);
	for (uint32_t i = 0; i < 2; i++)
		link_hive(local, GPU + 5 * i, 5);
	assert_int_equal(match(), -ENODEV);
	assert_in_range(fault_loop(run_match, -ENODEV), 3, 100);
}

UNIT_MAIN(NULL, NULL)
