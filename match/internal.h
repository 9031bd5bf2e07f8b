/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the matcher share: the GPUs that are compared, the rules, the search and the report.
 *
 * A number "saved" is here the n-th saved GPU, and "local" the n-th local one that may be used.
 */
#ifndef MATCH_INTERNAL_H
#define MATCH_INTERNAL_H

#include "amdgpu_plugin_util.h"
#include "match/match.h"

#define GPUS_MAX    TOPOLOGY_MAX_NODES
#define MAX_DEMANDS 64

/* ---- the rules (match/rules.c) ---- */

#define NO_ATOMICS (TOPOLOGY_LINK_FLAG_NO_ATOMICS_32 | TOPOLOGY_LINK_FLAG_NO_ATOMICS_64)

/* How good a link is. A better one serves for a worse one. */
enum link_rank { LINK_NONE, LINK_PCIE, LINK_XGMI };

/* What one direction of a link offers, or has to offer. */
struct link_demand {
	enum link_rank rank;
	bool has_flags;
	bool numa;		/* between GPUs: both are on one NUMA node */
	uint32_t max_bandwidth; /* MB/s; 0: any will do */
	uint32_t flags;
};

struct match {
	const struct topology *saved;
	const struct topology *local;
	const struct match_options *options;
	unsigned int nr_saved;
	unsigned int nr_local;
	uint16_t saved_node[GPUS_MAX];	   /* index in saved->nodes[] */
	uint16_t local_node[GPUS_MAX];	   /* index in local->nodes[] */
	int pinned[GPUS_MAX];		   /* the local one that the pairs give to a saved one, or -1 */
	bool follows[GPUS_MAX];		   /* another process has chosen it, not the user */
	uint8_t worth[GPUS_MAX][GPUS_MAX]; /* saved, local: 0: the one cannot become the other; the more, the better */
	uint64_t needed[GPUS_MAX];	   /* bytes of VRAM, of each saved one; 0 also where room is not asked */
	uint64_t room[GPUS_MAX]; /* bytes on the device of each local one; UINT64_MAX: its partitions have room */
	struct link_demand saved_host[2][GPUS_MAX]; /* link to, and from, the host */
	struct link_demand local_host[2][GPUS_MAX];
	unsigned int nr_demands;
	struct link_demand demands[MAX_DEMANDS]; /* of pairs of saved GPUs, each once; number 0: none */
	uint8_t wants[GPUS_MAX][GPUS_MAX];	 /* number of the demand from one saved GPU to another one */
	uint64_t *serves; /* from one local GPU to another one: a bit for each demand that is met */
};

/* Why a local GPU cannot stand in for a saved one. */
enum obstacle_kind { OBSTACLE_NONE, OBSTACLE_PROP, OBSTACLE_ROOM, OBSTACLE_HOST_LINK, OBSTACLE_PINNED };

struct obstacle {
	enum obstacle_kind kind;
	enum topology_prop prop; /* OBSTACLE_PROP */
	bool from_host;		 /* OBSTACLE_HOST_LINK: wanted and found are link ranks */
	uint64_t wanted;	 /* OBSTACLE_ROOM: bytes */
	uint64_t found;
	enum match_check check; /* that would let it pass when switched off */
};

static inline const struct topology_node *saved_gpu(const struct match *m, unsigned int saved)
{
	return m->saved->nodes[m->saved_node[saved]];
}

static inline const struct topology_node *local_gpu(const struct match *m, unsigned int local)
{
	return m->local->nodes[m->local_node[local]];
}

/*
 * Fills in what the rules look up often; counts, nodes and pairs are set. 0; -E2BIG after saying why: the saved GPUs
 * are linked in too many ways; -ENOMEM. m->serves is the caller's in any case.
 */
int rule_prepare(struct match *m);

/* Must the local value be at least the saved one? */
bool rule_is_at_least(enum topology_prop prop);

/* The name of a bit in which two values of "capability" differ so that it matters, NULL when there is none. */
const char *rule_capability_difference(uint64_t a, uint64_t b);

/* The rules for one GPU alone. Returns the first obstacle, of kind NONE when it fits. */
struct obstacle rule_gpu(const struct match *m, unsigned int saved, unsigned int local);

/* Are two local GPUs one device, whose room they share? Not asked where it has room for all. */
bool rule_share_room(const struct match *m, unsigned int a, unsigned int b);

/* The demands that are met from one local GPU to another one; none from a GPU to itself. */
static inline uint64_t rule_serves(const struct match *m, unsigned int x, unsigned int y)
{
	return m->serves[x * m->nr_local + y];
}

/* The rules for two GPUs: can saved a become x when saved b becomes y? */
static inline bool rule_pair(const struct match *m, unsigned int a, unsigned int b, unsigned int x, unsigned int y)
{
	return rule_serves(m, x, y) >> m->wants[a][b] & 1 && rule_serves(m, y, x) >> m->wants[b][a] & 1;
}

/* Is local b to a as d is to c, for whatever two saved ones want? */
bool rule_same_pair(const struct match *m, unsigned int a, unsigned int b, unsigned int c, unsigned int d);

/* Which saved GPUs get idle local ones alone, as far as they have some: where anything is done; has queues; none. */
enum idle { IDLE_WORK, IDLE_QUEUES, IDLE_NONE };

/* Fills in what local GPUs are worth. Whether it differs from before. */
bool rule_worth(struct match *m, enum idle idle);

/* ---- the search (match/search.c) ---- */

/* More saved GPUs than local ones that any of them fits. */
struct crowd {
	bool is_there;
	bool saved[GPUS_MAX];
	bool local[GPUS_MAX];
};

/*
 * local[]: what each saved GPU becomes. A step of the limit takes one or two nanoseconds; how many there are depends on
 * the machines alone. 0; -ENODEV: there is no map, and *crowd says whether that is why; -E2BIG: the limit came first;
 * -ENOMEM. No message.
 */
int search_map(const struct match *m, uint64_t limit, int *local, struct crowd *crowd);

/* ---- the report (match/report.c) ---- */

/* Fails with the reason why there is no map: -ENODEV. */
int report_refusal(const struct match *m, const struct crowd *crowd);

#endif
