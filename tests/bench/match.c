// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long the matcher takes.
 *
 * Ordinary machines are matched or refused in less than 10 ms. Puzzles of 64
 * GPUs are answered rightly or left undecided in less than 100 ms; so are
 * choices between many parts of hives, of which the best may stay unproved. Prints the
 * median of RUNS matches in milliseconds of CPU time and the steps of the
 * search; ends with status 1 when a goal is missed or an outcome is wrong. An
 * argument chooses the machines and puzzles whose names contain it.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdarg.h>
#include <time.h>

#include "../unit/match_ordinary.h"

#define RUNS 11
#define N    64
#define GPU  8 /* node id of the first GPU, after 8 CPU nodes */

static struct topology *saved, *local;
static uint32_t order[N]; /* saved GPU i corresponds to local GPU order[i] */
static uint64_t random_state;

static void print_line(unsigned int level, const char *fmt, ...)
{
	(void)level;
	(void)fmt;
}

static void __attribute__((constructor)) log_start(void)
{
	plugin_log_to(print_line);
}

static uint32_t below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)((random_state >> 33) % n);
}

static void shuffle(uint32_t *values, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		unsigned int j = below(i + 1);

		values[i] = values[j];
		values[j] = i;
	}
}

static void shuffle_sizes(unsigned int *sizes, unsigned int n)
{
	for (unsigned int i = n; i > 1; i--) {
		unsigned int j = below(i), size = sizes[i - 1];

		sizes[i - 1] = sizes[j];
		sizes[j] = size;
	}
}

static uint32_t no_numa(unsigned int i)
{
	(void)i;
	return 0;
}

static uint32_t numa_of_16(unsigned int i)
{
	return i / 16;
}

static uint32_t numa_of_17(unsigned int i)
{
	return i / 17;
}

/* N saved GPUs and, in the shuffled order, their likes. */
static void machines(uint32_t first_local_id, uint32_t (*saved_numa)(unsigned int),
		     uint32_t (*local_numa)(unsigned int))
{
	uint32_t at[N];

	shuffle(order, N);
	for (uint32_t i = 0; i < N; i++)
		at[order[i]] = i;
	for (uint32_t i = 0; i < N; i++) {
		add_gpu(saved, GPU + i, 0x1000 + i, saved_numa(i));
		add_gpu(local, GPU + i, first_local_id + i, local_numa(at[i]));
	}
}

/* Hives of "size", the same GPUs on both sides. */
static void hives(struct topology *t, const uint32_t *at, unsigned int n, unsigned int size)
{
	for (uint32_t a = 0; a < n; a++) {
		for (uint32_t b = a + 1; b < n && b / size == a / size; b++)
			link_both(t, GPU + (at ? at[a] : a), GPU + (at ? at[b] : b), TOPOLOGY_LINK_XGMI, 50000);
	}
}

static void edge(struct topology *t, const uint32_t *at, uint32_t a, uint32_t b)
{
	link_both(t, GPU + (at ? at[a] : a), GPU + (at ? at[b] : b), TOPOLOGY_LINK_XGMI, 50000);
}

/* ---- cases: each fills saved and local ---- */

static void identical(void)
{
	machines(0x2000, no_numa, no_numa);
}

static void same_machine(void)
{
	machines(0x1000, no_numa, no_numa);
	hives(saved, NULL, N, 8);
	hives(local, NULL, N, 8);
}

static void one_hive_of_64(void)
{
	machines(0x2000, no_numa, no_numa);
	hives(saved, NULL, N, N);
	hives(local, NULL, N, N);
}

static void numa_nodes(void)
{
	machines(0x2000, numa_of_16, numa_of_16);
}

static void shuffled_hives(void)
{
	machines(0x2000, no_numa, no_numa);
	hives(saved, NULL, N, 8);
	hives(local, order, N, 8);
}

static void shuffled_hives_on_numa_nodes(void)
{
	machines(0x2000, numa_of_16, numa_of_16);
	hives(saved, NULL, N, 8);
	hives(local, order, N, 8);
}

/* Names are shuffled against the hives: how many can be kept is a problem of its own. */
static void shuffled_hives_with_old_names(void)
{
	machines(0x1000, no_numa, no_numa);
	hives(saved, NULL, N, 8);
	hives(local, order, N, 8);
}

/* Each GPU differs from the one before in one property. */
static void one_property_each(void)
{
	static const enum topology_prop props[] = { TOPOLOGY_VRAM_SIZE, TOPOLOGY_FW_VERSION, TOPOLOGY_SDMA_FW_VERSION,
						    TOPOLOGY_NUM_GWS, TOPOLOGY_CACHES_COUNT };

	machines(0x2000, no_numa, no_numa);
	for (uint32_t i = 0; i < N; i++) {
		enum topology_prop prop = props[i % ARRAY_SIZE(props)];

		set_prop(node_of(saved, GPU + i), prop, 1000 + i);
		set_prop(node_of(local, GPU + order[i]), prop, 1000 + i);
	}
	for (uint32_t i = 0; i < N; i++) {
		set_prop(node_of(saved, GPU + i), TOPOLOGY_VRAM_SIZE, 1000 + i);
		set_prop(node_of(local, GPU + order[i]), TOPOLOGY_VRAM_SIZE, 1000 + i);
	}
}

static void cube(void)
{
	machines(0x2000, no_numa, no_numa);
	for (uint32_t a = 0; a < N; a++) {
		for (uint32_t bit = 1; bit < N; bit *= 2) {
			if (!(a & bit)) {
				edge(saved, NULL, a, a | bit);
				edge(local, order, a, a | bit);
			}
		}
	}
}

static void one_too_small(void)
{
	one_property_each();
	set_prop(node_of(local, GPU + order[N - 1]), TOPOLOGY_VRAM_SIZE, 1);
}

static void all_too_small(void)
{
	one_property_each();
	for (uint32_t i = 0; i < N; i++)
		set_prop(node_of(local, GPU + i), TOPOLOGY_VRAM_SIZE, 1 + i);
}

static void every_gpu_another_obstacle(void)
{
	one_property_each();
	for (uint32_t i = 0; i < N; i++) {
		set_prop(node_of(saved, GPU + i), TOPOLOGY_DEVICE_ID, i);
		set_prop(node_of(local, GPU + i), TOPOLOGY_DEVICE_ID, N + i);
	}
}

static void hives_of_3_in_8(void)
{
	machines(0x2000, no_numa, no_numa);
	hives(saved, NULL, 51, 3);
	hives(local, order, N, 8);
}

static void hives_of_5_in_8_and_9(void)
{
	machines(0x2000, no_numa, no_numa);
	hives(saved, NULL, 40, 5);
	hives(local, order, 36, 9);
	for (uint32_t a = 36; a < N; a++) {
		for (uint32_t b = a + 1; b < N && (b - 36) / 8 == (a - 36) / 8; b++)
			edge(local, order, a, b);
	}
}

static void numa_nodes_of_other_sizes(void)
{
	machines(0x2000, numa_of_16, numa_of_17);
}

static void hives_split_by_numa(void)
{
	machines(0x2000, numa_of_16, numa_of_17);
	hives(saved, NULL, N, 8);
	hives(local, order, N, 8);
}

static void broken_hive(void)
{
	struct topology_node *node;

	shuffled_hives();
	node = node_of(local, GPU + order[63]);
	node->nr_links = 2;
}

static void ring_in_two_rings(void)
{
	machines(0x2000, no_numa, no_numa);
	for (uint32_t i = 0; i < N; i++) {
		edge(saved, NULL, i, (i + 1) % N);
		edge(local, order, i, i / 32 * 32 + (i + 1) % 32);
	}
}

static void random_links(struct topology *t)
{
	for (uint32_t k = 0; k < 4; k++) {
		uint32_t to[N];

		shuffle(to, N);
		for (uint32_t i = 0; i < N; i += 2)
			edge(t, NULL, to[i], to[i + 1]);
	}
}

static void random_networks(void)
{
	machines(0x2000, no_numa, no_numa);
	random_links(saved);
	random_links(local);
}

/* Hives of these sizes, one after the other; 0 ends. */
static void mixed_hives(struct topology *t, const uint32_t *at, const unsigned int *sizes)
{
	for (unsigned int first = 0; *sizes; first += *sizes++) {
		for (uint32_t a = first; a < first + *sizes; a++) {
			for (uint32_t b = a + 1; b < first + *sizes; b++)
				edge(t, at, a, b);
		}
	}
}

/* Hives of 2 to 7, and bigger ones that consist of two to four of them each. */
static void packed_hives(void)
{
	unsigned int small[N] = { 0 }, big[N] = { 0 }, n = 0, m = 0, total = 0;

	machines(0x2000, no_numa, no_numa);
	for (; total < N - 7; m++) {
		for (unsigned int parts = 2 + below(3); parts && total < N - 7; parts--) {
			small[n] = 2 + below(6);
			big[m] += small[n];
			total += small[n++];
		}
	}
	shuffle(order, N);
	shuffle_sizes(small, n);
	mixed_hives(saved, NULL, small);
	mixed_hives(local, order, big);
}

/* Even ones: in 7 there is room for 6, in 9 for 8, in 11 for 10, together for 48 of 50. */
static void even_hives_in_odd_ones(void)
{
	static const unsigned int even[] = { 4, 6, 4, 6, 4, 6, 4, 6, 4, 6, 0 }, odd[] = { 7, 9, 11, 7, 9, 11, 0 };

	machines(0x2000, no_numa, no_numa);
	mixed_hives(saved, NULL, even);
	mixed_hives(local, order, odd);
}

struct puzzle {
	const char *name;
	void (*make)(void);
	int outcome; /* or -E2BIG */
};

static const struct puzzle puzzles[] = {
	{ "identical", identical, 0 },
	{ "same machine, hives of 8", same_machine, 0 },
	{ "one hive of 64", one_hive_of_64, 0 },
	{ "4 NUMA nodes", numa_nodes, 0 },
	{ "8 shuffled hives", shuffled_hives, 0 },
	{ "8 shuffled hives on 4 NUMA nodes", shuffled_hives_on_numa_nodes, 0 },
	{ "8 shuffled hives with old names", shuffled_hives_with_old_names, 0 },
	{ "one property differs each", one_property_each, 0 },
	{ "hypercube", cube, 0 },
	{ "hives of 2 to 7 in bigger ones", packed_hives, 0 },
	{ "refused: even hives in odd ones", even_hives_in_odd_ones, -ENODEV },
	{ "refused: one too small", one_too_small, -ENODEV },
	{ "refused: all too small", all_too_small, -ENODEV },
	{ "refused: 64 x 64 obstacles", every_gpu_another_obstacle, -ENODEV },
	{ "refused: 17 hives of 3 in 8 of 8", hives_of_3_in_8, -ENODEV },
	{ "refused: 8 hives of 5 in 9s and 8s", hives_of_5_in_8_and_9, -ENODEV },
	{ "refused: NUMA nodes of other sizes", numa_nodes_of_other_sizes, -ENODEV },
	{ "refused: hives split by NUMA", hives_split_by_numa, -ENODEV },
	{ "refused: broken hive", broken_hive, -ENODEV },
	{ "refused: ring in two rings", ring_in_two_rings, -ENODEV },
	{ "refused: other random network", random_networks, -ENODEV },
};

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static const char *chosen;
static int status;

/* Several matches of one kind. */
struct series {
	double ms[RUNS];
	unsigned int nr;
	uint64_t steps; /* most of all */
	unsigned int nr_undecided;
	unsigned int nr_not_nearest;
	bool wrong;
};

/* Returns what match_devices() does. */
static int measure(struct series *s, const struct match_options *options)
{
	static struct match_report report;
	struct match_map *map = NULL;
	double start = now_ms();
	int err = match_devices(saved, local, options, &map, &report);

	s->ms[s->nr++] = now_ms() - start;
	s->steps = report.steps > s->steps ? report.steps : s->steps;
	s->nr_undecided += err == -E2BIG;
	s->nr_not_nearest += map && !map->nearest;
	match_map_free(map);
	return err;
}

static void print_series(struct series *s, const char *name, const char *change, double goal_ms)
{
	double median;

	qsort(s->ms, s->nr, sizeof(s->ms[0]), compare_doubles);
	median = s->ms[s->nr / 2];
	printf("%-34s %-42s median %7.2f ms, worst %7.2f ms, goal %3.0f ms, %9" PRIu64 " steps%s%s", name, change,
	       median, s->ms[s->nr - 1], goal_ms, s->steps, median < goal_ms ? "" : "  MISSED",
	       s->wrong ? "  WRONG OUTCOME" : "");
	if (s->nr_undecided)
		printf("  (%u of %u undecided)", s->nr_undecided, s->nr);
	if (s->nr_not_nearest)
		printf("  (%u of %u not proved nearest)", s->nr_not_nearest, s->nr);
	printf("\n");
	if (median >= goal_ms || s->wrong)
		status = 1;
}

static void run_puzzle(const struct puzzle *p)
{
	const struct match_options options = { .nr_pairs = 0 };
	struct series s = { .nr = 0 };

	while (s.nr < RUNS) {
		int err;

		random_state = 12345 + s.nr;
		saved = machine_new(8);
		local = machine_new(8);
		p->make();
		must(topology_finish(saved));
		must(topology_finish(local));
		err = measure(&s, &options);
		s.wrong = s.wrong || (err != p->outcome && err != -E2BIG);
		topology_free(saved);
		topology_free(local);
	}
	print_series(&s, "puzzle", p->name, 100);
}

static void run_ordinary(const char *name, const struct description *d)
{
	if (chosen && !strstr(name, chosen))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct series s = { .nr = 0 };
		struct ordinary_case c;

		ordinary_make(&c, d, &changes[i]);
		saved = c.saved;
		local = c.local;
		while (s.nr < RUNS)
			measure(&s, &c.options);
		s.wrong = s.nr_undecided || (s.nr_not_nearest && !changes[i].hard);
		print_series(&s, name, changes[i].name, changes[i].hard ? 100 : 10);
		ordinary_done(&c);
	}
}

int main(int argc, char **argv)
{
	chosen = argc > 1 ? argv[1] : NULL;
	for_each_ordinary("tests/kfdsim/gpus", run_ordinary);
	for (size_t i = 0; i < ARRAY_SIZE(puzzles); i++) {
		if (!chosen || strstr(puzzles[i].name, chosen))
			run_puzzle(&puzzles[i]);
	}
	return status;
}
