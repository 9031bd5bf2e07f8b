// SPDX-License-Identifier: GPL-2.0-only
/*
 * The matcher: a table of pairs of machines, each rule and option, the choice among several maps, KFD_DEVICE_MAP, what
 * the process works on, and images of other writers.
 */
#define _GNU_SOURCE
#include "unit.h"
#include "host/settings.h"
#include "match/match.h"
#include "log_stub.h"
#include "machine_text.h"

#define GPU GPU_NODE

static struct topology *saved, *local;
static struct match_options options;
static struct settings settings;
static struct match_map *map;

/* Machines as machine_of() reads them: saved GPUs are 0xa0, 0xa1, ..., local ones 0xb0, ... (0xb000, ... of many). */
static void given(const char *was, const char *is)
{
	saved = machine_of(0xa0, "%s", was);
	local = machine_of(atoi(was) > 16 ? 0xb000 : 0xb0, "%s", is);
}

static int setup(void **state)
{
	log_clear();
	options = (struct match_options){ .nr_pairs = 0 };
	saved = local = NULL;
	map = NULL;
	return 0;
}

static int teardown(void **state)
{
	free(map);
	topology_free(saved);
	topology_free(local);
	return 0;
}

#define FIXTURE_TEST(test) UNIT_TEST(test, setup, teardown)

static int match(void)
{
	free(steal_ptr(map));
	fail_clear();
	must(topology_finish(saved));
	must(topology_finish(local));
	return match_devices(saved, local, &options, &map);
}

static void assert_report(const char *part)
{
	if (!strstr(fail_text(), part))
		fail_msg("'%s' is not in the refusal: %s", part, fail_text());
}

static void assert_refused(const char *a, const char *b)
{
	assert_int_equal(match(), -ENODEV);
	assert_null(map);
	assert_report(a);
	assert_report(b);
}

/* The n-th pair is (user gpu id, actual gpu id). */
static void assert_pair(unsigned int n, uint32_t user, uint32_t actual)
{
	assert_non_null(map);
	assert_true(n < map->nr_pairs);
	if (map->pairs[n].user_gpu_id != user || map->pairs[n].actual_gpu_id != actual)
		fail_msg("pair %u is %#x -> %#x, expected %#x -> %#x", n, map->pairs[n].user_gpu_id,
			 map->pairs[n].actual_gpu_id, user, actual);
}

/* ---- a table of cases ---- */

#define NUMA_CHECK "KFD_NUMA_CHECK=0 does not look at NUMA nodes"
#define NO_CHOICE   "no choice of local GPUs keeps all links and NUMA nodes of the saved ones; " NUMA_CHECK
#define NO_TWO(how)                                                                                                  \
	"no two local GPUs that fit are as saved 0xa0 and 0xa1 were: linked by " how " with atomics, on one NUMA node; " \
	NUMA_CHECK

/* clang-format off */
static const struct row {
	const char *what, *saved, *local;
	const char *becomes;  /* local gpu ids; "*": any, "=": the same places; NULL: it is refused, ... */
	const char *says;     /* ... by this text, without its beginning: see refusal() */
	int err;	      /* then; 0: -ENODEV */
	const char *relaxed;  /* a setting that is off */
	const char *map;      /* KFD_DEVICE_MAP */
	const char *busy;     /* for each local GPU: 1 where others use it */
	const char *unusable; /* for each local GPU: 1 or 2, by which reason it may not be used */
	unsigned int nr_hidden;
	bool is_old; /* the image is one of criu 3.17 to 4.2 */
} rows[] = {
#define ROW(what_, saved_, local_, ...) { .what = what_, .saved = saved_, .local = local_, __VA_ARGS__ }
	ROW("no GPUs", "0", "2", .becomes = ""),
	ROW("three GPUs of different VRAM", "3 vram_size=32G,16G,24G", "3 vram_size=24G,16G,32G",
	    .becomes = "b2 b1 b0"),
	ROW("four GPUs of different VRAM", "4 vram_size=48G,32G,24G,16G", "4 vram_size=48G,16G,32G,48G",
	    .becomes = "b0 b2 b3 b1"),
	ROW("NUMA nodes swapped", "@110", "@100", .becomes = "b1 b2 b0"),
	ROW("NUMA nodes cannot be kept", "@0000", "@0100", .says = NO_CHOICE),
	ROW("NUMA nodes are not looked at", "@0000", "@0100", .becomes = "* * * *", .relaxed = "KFD_NUMA_CHECK"),
	ROW("64 GPUs", "64 x0-63", "64 x0-63", .becomes = "="),
	ROW("as many GPUs as a topology has", "254", "254", .becomes = "="),
	ROW("links to absent nodes", "2 x0>75:1000 p-2>76", "2 p0>77", .becomes = "* *"),
	ROW("two hives swapped", "8 device_id=1,1,1,1,2,2,2,2 x0-3 x4-7", "8 device_id=2,2,2,2,1,1,1,1 x0-3 x4-7",
	    .becomes = "b4 b5 b6 b7 b0 b1 b2 b3"),
	ROW("one GPU, from a machine of eight to one of four", "1 io_links_count=8", "@0011 x0-3", .becomes = "b0"),
	ROW("partial links inside hives", "@000111 x0+1 x1+2 x3+4 x4+5", "@000111 x0+1 x1+2 x3+4 x4+5",
	    .becomes = "* b1 * * b4 *"),
	ROW("the one in the middle is of another kind, and here it is at the end",
	    "@000111 device_id=5,1,5,5,5,5 x0+1 x1+2 x3+4 x4+5", "@000111 device_id=5,5,1,5,5,5 x0+1 x1+2 x3+4 x4+5",
	    .says = NO_CHOICE),
	ROW("the linked GPU is at another index", "6 p0+1 p0+2 p0+3 p0+4 p0+5", "6 p4+0 p4+1 p4+2 p4+3 p4+5",
	    .becomes = "b4 b0 * * * *"),
	ROW("a one-way link to the host", "1", "@- p0>-2",
	    .says = "1 of 1 saved GPUs fit no local GPU; saved 0xa0: link from the host, wanted PCIe: local 0xb0 (no link)"),
	ROW("PCIe where the host had XGMI", "@- x0+-2", "1",
	    .says = "1 of 1 saved GPUs fit no local GPU; saved 0xa0: link to the host, wanted XGMI: local 0xb0 (PCIe)"),
	ROW("a hive and loose GPUs", "8 x0-3", "8 x4-7", .becomes = "b4 b5 b6 b7 b0 b1 b2 b3"),
	ROW("types at other positions", "5 device_id=1,2,3,1,2", "5 device_id=2,3,2,1,1",
	    .becomes = "b3 b0 b1 b4 b2"),
	ROW("a hive too many", "4 x0-3", "8 x0-3 x4-7", .becomes = "b0 * * *"),
	ROW("a hive into a bigger one", "3 x0-2", "8 x0-1 x2-7", .becomes = "b2 * b4"),
	ROW("a broken hive", "4 x0-3", "4 x0-1 x2-3", .says = NO_CHOICE),
	ROW("a link is missing", "2 x0+1", "3 p0+1", .says = NO_TWO("XGMI of 50000 MB/s")),
	ROW("too little bandwidth", "2 x0+1:100000", "4 x0+1", .says = NO_TWO("XGMI of 100000 MB/s")),
	ROW("more bandwidth", "2 x0+1:100000", "4 x0+1 x2+3:200000", .becomes = "b2 b3"),
	ROW("no link where PCIe was", "2 p0+1", "2", .says = NO_TWO("PCIe")),
	ROW("XGMI serves for PCIe", "2 p0+1", "2 x0+1", .becomes = "* *"),
	ROW("a link in the saved direction only", "2 x0>1", "2 x1>0", .becomes = "b1 b0"),
	ROW("a link in one direction, and both were there", "2 x0+1", "2 x1>0", .says = NO_TWO("XGMI of 50000 MB/s")),
	ROW("pairs whose links go out alike, and come in by another bandwidth", "4 x0+1 x2>3 x3>2:100000",
	    "4 x0>1 x1>0:100000 x2+3", .becomes = "b2 * b0 *"),
	ROW("two NUMA nodes where one was", "@11", "@01",
	    .says = "no two local GPUs that fit are as saved 0xa0 and 0xa1 were: on one NUMA node; KFD_NUMA_CHECK=0 "
	    "does not look at NUMA nodes"),
	ROW("partitions", "4 num_xcc=1 location_id=0x500,0x501,0x502,0x503",
	    "8 num_xcc=16,16,16,16,1,1,1,1 location_id=0xb000,0xb100,0xb200,0xb300,0x503,0x502,0x501,0x500",
	    .becomes = "b7 b6 b5 b4"),
	ROW("partitions of another size", "4 num_xcc=1", "8 num_xcc=16,16,16,16,2,2,2,2",
	    .says = "4 of 4 saved GPUs fit no local GPU; saved 0xa0: num_xcc, wanted 1: local 0xb0 0xb1 0xb2 0xb3 (16) "
	    "0xb4 0xb5 0xb6 0xb7 (2)"),
	ROW("the same gpu ids come first", "4",
	    "4 gpu_id=0xa1,0xa2,0xa3,0xa0 location_id=0xa000,0xa100,0xa200,0xa300", .becomes = "a0 a1 a2 a3"),
	ROW("NUMA nodes come before low numbers", "@1", "@00101", .becomes = "b2"),
	ROW("the first of two", "@1", "@10", .becomes = "b0"),
	ROW("PCI addresses come before NUMA nodes", "@1", "@10 location_id=0xb000,0xa000", .becomes = "b1"),
	ROW("the same address in another domain is another one", "@1", "@10 location_id=0xb000,0xa000 domain=0,1",
	    .becomes = "b0"),
	ROW("idle GPUs come before all names", "2", "4 gpu_id=0xa0,0xa1,0xa2,0xa3", .becomes = "a2 a3",
	    .busy = "1100"),
	ROW("where one has to be busy, the name decides which", "2", "4 gpu_id=0xa0,0xa1,0xa2,0xa3",
	    .becomes = "a3 a1", .busy = "1110"),
	ROW("links come before idle GPUs", "3 x0-2", "5 x0-2 x3-4", .becomes = "b2 b0 b1", .busy = "11000"),
	ROW("a map of some", "3", "4", .becomes = "b1 b2 b0", .map = "0xa2=0xb0"),
	ROW("the map is checked", "1", "2 vram_size=64G,32G", .map = "0xa0=0xb1",
	    .says = "1 of 1 saved GPUs fit no local GPU; saved 0xa0: KFD_DEVICE_MAP chooses 0xb1, not: local 0xb0; "
	    "vram_size, wanted at least 64 GiB (KFD_VRAM_SIZE_CHECK=0 accepts it): local 0xb1 (32 GiB)"),
	ROW("the map is not checked", "1", "2 vram_size=64G,32G", .becomes = "b1", .relaxed = "KFD_VRAM_SIZE_CHECK",
	    .map = "0xa0=0xb1"),
	ROW("links of the map are checked", "2 x0-1", "3 x0-1", .map = "0xa0=0xb2",
	    .says = NO_TWO("XGMI of 50000 MB/s")),
	ROW("links of the map are there", "2 x0-1", "3 x0-1", .becomes = "b1 b0", .map = "0xa0=0xb1"),
	ROW("what the first of eight meets", "8 vram_size=64G,65G,66G,67G,68G,69G,70G,71G",
	    "8 vram_size=32G,33G,34G,35G,36G,37G,38G,39G",
	    .says = "8 of 8 saved GPUs fit no local GPU; saved 0xa0: vram_size, wanted at least 64 GiB "
	    "(KFD_VRAM_SIZE_CHECK=0 accepts it): local 0xb0 (32 GiB) 0xb1 (33 GiB) 0xb2 (34 GiB) 0xb3 (35 GiB) 0xb4 "
	    "(36 GiB) 0xb5 (37 GiB) 0xb6 (38 GiB) 0xb7 (39 GiB)"),
	ROW("equal GPUs are told of once", "8", "8 fw_version=15",
	    .says = "8 of 8 saved GPUs fit no local GPU; saved 0xa0: fw_version, wanted at least 16 "
	    "(KFD_FW_VER_CHECK=0 accepts it): local 0xb0 0xb1 0xb2 0xb3 0xb4 0xb5 0xb6 0xb7 (15)"),
	ROW("too few fit", "3 vram_size=128G", "4 vram_size=192G,192G,64G,64G",
	    .says = "3 saved GPUs fit only 2 local GPUs: saved 0xa0 0xa1 0xa2; local 0xb0 0xb1; saved 0xa0: vram_size, "
	    "wanted at least 128 GiB (KFD_VRAM_SIZE_CHECK=0 accepts it): local 0xb2 0xb3 (64 GiB)"),
	ROW("three hives of three do not fit into two of five", "9 x0-2 x3-5 x6-8", "10 x0-4 x5-9",
	    .says = NO_CHOICE),
	ROW("hives of different size: 3 + 5, 3 + 5, 2 + 3 + 4", "25 x0-2 x3-5 x6-10 x11-15 x16-17 x18-20 x21-24",
	    "26 x0-7 x8-15 x16-25", .becomes = "* * * * * * * * * * * * * * * * * * * * * * * * *"),
	ROW("two linked GPUs and two that are not look the same to the last two",
	    "5 device_id=7,8,9,9,9 x0+2 x1+2 x3+4",
	    "6 device_id=9,9,9,9,7,8 x4+5 x0+1 x0+4 x0+5 x1+4 x1+5 x2+4 x2+5 x3+4 x3+5", .becomes = "* * * b0 b1"),
	ROW("a linked GPU and one that is not look the same to the last two",
	    "6 device_id=7,8,9,9,9,9 x0+2 x1+2 x4+5",
	    "7 device_id=9,9,9,9,9,7,8 x5+6 x1+2 x0+5 x0+6 x1+5 x1+6 x2+5 x2+6 x3+5 x3+6 x4+5 x4+6",
	    .becomes = "* * * * b1 b2"),
	ROW("an equal GPU under another name", "1", "1 drm_render_minor=200", .becomes = "b0"),
	ROW("a bandwidth that the image does not tell", "2 x0+1!?", "2 x0+1", .becomes = "* *"),
	ROW("a bandwidth that the machine does not tell", "2 x0+1:100000", "2 x0+1!?", .becomes = "* *"),
	ROW("a link without peer access", "2 p0+1", "2 p0>1!d p1>0", .says = NO_TWO("PCIe")),
	ROW("peer access that was not there, either", "2 p0>1!d p1>0", "2 p0>1!d p1>0", .becomes = "* *"),
	ROW("a link without atomics", "2 p0+1", "2 p0>1!l p1>0", .says = NO_TWO("PCIe")),
	ROW("atomics that were not there, either", "2 p0+1!l", "2 p0>1!l p1>0", .becomes = "* *"),
	ROW("a link to the host without atomics", "2", "@-- p0>-2!s p-2>0 p1>-2!s p-2>1",
	    .says = "2 of 2 saved GPUs fit no local GPU; saved 0xa0: link to the host, wanted PCIe: local "
	    "0xb0 0xb1 (no atomics)"),
	ROW("GPUs that may not be used", "2", "4", .becomes = "b1 b3", .unusable = "1 2 "),
	ROW("too few that may be used", "2", "4", .unusable = "1 21",
	    .says = "2 saved GPUs fit only 1 local GPUs: saved 0xa0 0xa1; local 0xb1; not used: 0xb0 0xb3: first "
	    "reason; not used: 0xb2: second reason"),
	ROW("none that may be used, and hidden ones", "2", "4", .unusable = "1121", .nr_hidden = 5,
	    .says = "2 of 2 saved GPUs fit no local GPU; not used: 0xb0 0xb1 0xb3: first reason; not used: 0xb2: "
	    "second reason"),
	ROW("an image of criu 3.17 to 4.2", "4 x0-3", "4 x0-3", .becomes = "* * * *", .is_old = true),
	ROW("what such an image has is compared", "4 x0-3", "4 x0-3 fw_version=15,16,16,16", .is_old = true,
	    .says = "4 saved GPUs fit only 3 local GPUs: saved 0xa0 0xa1 0xa2 0xa3; local 0xb1 0xb2 0xb3; saved 0xa0: "
	    "fw_version, wanted at least 16 (KFD_FW_VER_CHECK=0 accepts it): local 0xb0 (15)"),
	ROW("an image of their successors: a GPU that the process did not have has no id, and CPUs no links",
	    "@--- gpu_id=0xa0,0,0xa2 x0+1", "2", .becomes = "b0 b1", .is_old = true),
	ROW("minors and PCI addresses in the map", "2", "3", .becomes = "b2 b0",
	    .map = "renderD130=0000:b2:00.0,0000:a1:00.0=renderD130"),
	ROW("an address of several partitions: kernels put their number into its upper bits", "2",
	    "2 location_id=0xc100,0x1000c100", .err = -EINVAL, .map = "0xa0=c1:00.0",
	    .says = "KFD_DEVICE_MAP: 0000:c1:00.0 names several GPUs of the machine; use gpu ids"),
	ROW("an address of one of several partitions: others put their number into its function", "2",
	    "2 location_id=0xc100,0xc101", .becomes = "b1 b0", .map = "0xa0=c1:00.1"),
	ROW("a map of a GPU that the image does not have", "2", "2", .err = -EINVAL, .map = "0xb0=0xb0",
	    .says = "KFD_DEVICE_MAP: 0xb0 is no GPU of the image"),
	ROW("a map of a GPU that the machine does not have", "2", "2", .err = -EINVAL, .map = "0xa0=0xa0",
	    .says = "KFD_DEVICE_MAP: 0xa0 is no GPU of the machine"),
	ROW("a map of an address that the image does not have", "2", "2", .err = -EINVAL, .map = "01:00.0=0xb0",
	    .says = "KFD_DEVICE_MAP: 0000:01:00.0 is no GPU of the image"),
	ROW("a map of an address, and the image has none", "2 location_id=", "2", .err = -EINVAL,
	    .map = "01:00.0=0xb0",
	    .says = "KFD_DEVICE_MAP: 0000:01:00.0: the image has no PCI addresses; use gpu ids or render minors"),
	ROW("a map of a GPU that may not be used", "2", "2", .err = -EINVAL, .map = "0xa0=0xb1", .unusable = " 1",
	    .says = "KFD_DEVICE_MAP: the restored process may not use 0xb1 of this machine: first reason"),
	ROW("a map of a minor that two GPUs have", "2", "2 drm_render_minor=130", .err = -EINVAL,
	    .map = "0xa0=renderD130",
	    .says = "KFD_DEVICE_MAP: renderD130 names several GPUs of the machine; use gpu ids"),
	ROW("a map that names a saved GPU twice", "2", "2", .err = -EINVAL, .map = "0xa0=0xb0,renderD130=0xb1",
	    .says = "KFD_DEVICE_MAP: the entry for saved GPU renderD130 names a GPU a second time"),
	ROW("a map that names a local GPU twice", "2", "2", .err = -EINVAL, .map = "0xa0=0xb0,0xa1=b0:00.0",
	    .says = "KFD_DEVICE_MAP: the entry for saved GPU 0xa1 names a GPU a second time"),
};
/* clang-format on */

static const char *map_text;

static const char *map_of(const char *name)
{
	return strcmp(name, "KFD_DEVICE_MAP") ? NULL : map_text;
}

static void set_map(const char *text)
{
	map_text = text;
	assert_int_equal(settings_load(&settings, NULL, -1, map_of), 0);
	options.pairs = settings.device_map;
	options.nr_pairs = settings.n_device_map;
}

/* What the existing plugin of criu 3.17 to 4.2 stores. */
static void strip_to_old_image(struct topology *t)
{
	static const enum topology_prop added[] = { TOPOLOGY_GFX_TARGET_VERSION, TOPOLOGY_NUM_XCC, TOPOLOGY_UNIQUE_ID,
						    TOPOLOGY_LOCATION_ID, TOPOLOGY_NUMA_NODE };

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(added); k++)
			topology_node_unset(t->nodes[i], added[k]);
		for (unsigned int l = 0; l < t->nodes[i]->nr_links; l++) {
			struct topology_link *link = &t->nodes[i]->links[l];

			*link = (struct topology_link){ .type = link->type, .node_to_id = link->node_to_id };
		}
	}
}

/* Each pair tells the same in all its words. */
static void check_pair(const struct match_pair *pair)
{
	const struct topology_node *was = saved->nodes[pair->saved], *is = local->nodes[pair->local];

	assert_int_equal(pair->user_gpu_id, topology_gpu_id(was));
	assert_int_equal(pair->actual_gpu_id, topology_gpu_id(is));
	assert_int_equal(pair->saved_minor, topology_minor(was));
	assert_int_equal(pair->local_minor, topology_minor(is));
}

static void check_map(const char *becomes)
{
	char copy[256], *rest = copy, *token;
	unsigned int nr = 0;

	for (unsigned int i = 0; i < map->nr_pairs; i++) {
		check_pair(&map->pairs[i]);
		assert_true(*becomes != '=' || map->pairs[i].saved == map->pairs[i].local);
	}
	snprintf(copy, sizeof(copy), "%s", becomes);
	for (; *becomes != '=' && *becomes && (token = strsep(&rest, " ")); nr++)
		if (*token != '*' && strtoul(token, NULL, 16) != map->pairs[nr].actual_gpu_id)
			fail_msg("%#x becomes %#x, not %s", map->pairs[nr].user_gpu_id, map->pairs[nr].actual_gpu_id,
				 token);
	assert_int_equal(map->nr_pairs, *becomes == '=' ? topology_count_gpus(saved) : nr);
}

static void set_use(const char *busy, const char *unusable, struct gpu_usage *usage, const char **reasons)
{
	for (size_t i = 0; busy && busy[i]; i++)
		usage[GPU + i].has_queues = busy[i] == '1';
	for (size_t i = 0; unusable && unusable[i]; i++)
		reasons[GPU + i] = unusable[i] == '1' ? "first reason" : unusable[i] == '2' ? "second reason" : NULL;
	options.usage = usage;
	options.unusable = unusable ? reasons : NULL;
}

/* What is said of a map that the user names, or how many GPUs there are, and why that does not do. */
static const char *refusal(const struct row *row)
{
	static char text[1024];
	unsigned int nr_unusable = 0, nr = topology_count_gpus(local), nr_saved = topology_count_gpus(saved);
	char unusable[64] = "", hidden[64] = "";

	for (unsigned int i = 0; options.unusable && i < local->nr_nodes; i++)
		nr_unusable += !!options.unusable[i];
	if (nr_unusable)
		snprintf(unusable, sizeof(unusable), ", %u more may not be used by the process", nr_unusable);
	if (local->nr_hidden)
		snprintf(hidden, sizeof(hidden), ", %u more are hidden", local->nr_hidden);
	snprintf(text, sizeof(text), "cannot place %u saved GPU%s on %u local one%s%s%s: %s", nr_saved,
		 nr_saved == 1 ? "" : "s", nr - nr_unusable, nr - nr_unusable == 1 ? "" : "s", unusable, hidden, row->says);
	return row->err ? row->says : text;
}

ROW_TEST(match_answers, rows, what, setup, teardown)
{
	const char *reasons[TOPOLOGY_MAX_NODES] = { NULL };
	struct gpu_usage usage[TOPOLOGY_MAX_NODES] = { 0 };
	const struct row *row = *unit_state;
	int err;

	given(row->saved, row->local);
	if (row->is_old)
		strip_to_old_image(saved);
	local->nr_hidden = row->nr_hidden;
	for (unsigned int check = 0; row->relaxed && check < MATCH_NR_CHECKS; check++)
		options.relaxed[check] = !strcmp(match_check_name(check), row->relaxed);
	set_use(row->busy, row->unusable, usage, reasons);
	if (row->map)
		set_map(row->map);
	err = match();
	assert_int_equal(err, row->becomes ? 0 : row->err ? row->err : -ENODEV);
	if (row->becomes)
		check_map(row->becomes);
	else
		assert_string_equal(fail_text(), refusal(row));
	assert_int_equal(!map, !row->becomes);
}

/* ---- properties ---- */

/* The rule of each property: what of less, equal and more does, and what accepts less. */
static const struct {
	enum topology_prop prop;
	bool more;
	const char *setting;
	enum match_check check;
} ruled[] = {
	{ .prop = TOPOLOGY_VENDOR_ID },
	{ .prop = TOPOLOGY_DEVICE_ID },
	{ .prop = TOPOLOGY_GFX_TARGET_VERSION },
	{ .prop = TOPOLOGY_NUM_XCC },
	{ .prop = TOPOLOGY_SIMD_COUNT },
	{ .prop = TOPOLOGY_SIMD_PER_CU },
	{ .prop = TOPOLOGY_CU_PER_SIMD_ARRAY },
	{ .prop = TOPOLOGY_SIMD_ARRAYS_PER_ENGINE },
	{ .prop = TOPOLOGY_ARRAY_COUNT },
	{ .prop = TOPOLOGY_MAX_WAVES_PER_SIMD },
	{ .prop = TOPOLOGY_MAX_SLOTS_SCRATCH_CU },
	{ .prop = TOPOLOGY_WAVE_FRONT_SIZE },
	{ .prop = TOPOLOGY_LDS_SIZE_IN_KB },
	{ .prop = TOPOLOGY_NUM_SDMA_ENGINES },
	{ .prop = TOPOLOGY_NUM_SDMA_XGMI_ENGINES },
	{ .prop = TOPOLOGY_NUM_SDMA_QUEUES_PER_ENGINE },
	{ .prop = TOPOLOGY_NUM_CP_QUEUES },
	{ .prop = TOPOLOGY_VRAM_PUBLIC },
	{ .prop = TOPOLOGY_SDMA_PARTITION },
	{ TOPOLOGY_VRAM_SIZE, true, "KFD_VRAM_SIZE_CHECK", MATCH_CHECK_VRAM_SIZE },
	{ TOPOLOGY_NUM_GWS, true, "KFD_NUM_GWS_CHECK", MATCH_CHECK_NUM_GWS },
	{ TOPOLOGY_CACHES_COUNT, true, "KFD_CACHES_COUNT_CHECK", MATCH_CHECK_CACHES_COUNT },
	{ TOPOLOGY_FW_VERSION, true, "KFD_FW_VER_CHECK", MATCH_CHECK_FW_VERSION },
	{ TOPOLOGY_SDMA_FW_VERSION, true, "KFD_SDMA_FW_VER_CHECK", MATCH_CHECK_SDMA_FW_VERSION },
};

FIXTURE_TEST(match_applies_the_rule_of_every_property)
{
	bool seen[TOPOLOGY_NR_PROPS] = { [TOPOLOGY_GPU_ID] = true, [TOPOLOGY_CAPABILITY] = true };

	given("1", "1");
	for (size_t i = 0; i < ARRAY_SIZE(ruled); i++) {
		uint64_t *value = &node_of(local, GPU)->value[ruled[i].prop];

		seen[ruled[i].prop] = true;
		*value -= 1;
		assert_refused(topology_prop_info(ruled[i].prop)->name, "wanted");
		*value += 2;
		assert_int_equal(match(), ruled[i].more ? 0 : -ENODEV);
		*value -= 1;
		assert_int_equal(match(), 0);
	}
	for (unsigned int i = 0; i < TOPOLOGY_NR_PROPS; i++) {
		if (seen[i])
			continue;
		node_of(local, GPU)->value[i]++;
		assert_int_equal(match(), 0);
	}
}

FIXTURE_TEST(match_relaxes_what_an_option_relaxes)
{
	char text[64];

	given("1", "1");
	for (size_t i = 0; i < ARRAY_SIZE(ruled); i++) {
		if (!ruled[i].setting)
			continue;
		node_of(local, GPU)->value[ruled[i].prop] = 0;
		snprintf(text, sizeof(text), "(%s=0 accepts it)", ruled[i].setting);
		assert_refused(topology_prop_info(ruled[i].prop)->name, text);
		options.relaxed[ruled[i].check] = true;
		assert_int_equal(match(), 0);
		options.relaxed[ruled[i].check] = false;
		node_of(local, GPU)->value[ruled[i].prop] = node_of(saved, GPU)->value[ruled[i].prop];
	}
	node_of(local, GPU)->value[TOPOLOGY_CAPABILITY] = 0;
	assert_refused("capability", "(KFD_CAPABILITY_CHECK=0 accepts it)");
	options.relaxed[MATCH_CHECK_CAPABILITY] = true;
	assert_int_equal(match(), 0);
}

FIXTURE_TEST(match_ignores_what_the_image_does_not_have)
{
	given("1", "1");
	for (unsigned int i = TOPOLOGY_VENDOR_ID; i < TOPOLOGY_NR_PROPS; i++) {
		node_of(local, GPU)->value[i] = ~node_of(saved, GPU)->value[i];
		topology_node_unset(node_of(saved, GPU), i);
	}
	assert_int_equal(match(), 0);
}

FIXTURE_TEST(match_compares_capability_bits_that_user_space_acts_on)
{
	/* ATS, queue sizes, VA limit, doorbell type, double map, ASIC revision, SRAM EDC, SVM, coherent host access */
	const uint32_t compared = 0x1fc0705a;

	given("1", "1");
	for (unsigned int bit = 0; bit < 32; bit++) {
		uint32_t capability = 0x2c00a280 ^ 1U << bit;

		set_prop(node_of(local, GPU), TOPOLOGY_CAPABILITY, capability);
		assert_int_equal(match(), compared >> bit & 1 ? -ENODEV : 0);
	}
	set_prop(node_of(local, GPU), TOPOLOGY_CAPABILITY, 0x2800a280);
	assert_refused("capability", "SRAM EDC");
}

FIXTURE_TEST(match_describes_64_gpus_within_its_bounds)
{
	given("64", "64");
	for (uint32_t i = 0; i < 64; i++)
		set_prop(node_of(local, GPU + i), TOPOLOGY_VRAM_SIZE, 1000000007 + i);
	assert_refused("64 of 64 saved GPUs fit no local GPU", "vram_size, wanted at least 64 GiB");
	assert_report("0xb00f (1000000022 bytes)");
	assert_report("...");
}

/* ---- the search ---- */

/* 16 of 3 into 8 of 8: two in each. */
FIXTURE_TEST(match_packs_hives_that_just_fit)
{
	given("48 x/3", "64 x/8");
	assert_int_equal(match(), 0);
	for (unsigned int i = 0; i < 48; i++)
		assert_int_equal((map->pairs[i].local - GPU) / 8, (map->pairs[i / 3 * 3].local - GPU) / 8);
}

/* 17 of 3 into 8 of 8: GPUs enough, and a proof that takes too long. */
FIXTURE_TEST(match_says_when_it_is_undecided)
{
	given("51 x/3", "64 x/8");
	for (uint32_t i = 0; i < 64; i++)
		link_both(local, GPU + i, GPU + (i * 7 + 5) % 64, TOPOLOGY_LINK_PCIE, 0);
	assert_int_equal(match(), -E2BIG);
	assert_report("undecided whether there is a map of 51 saved to 64 local GPUs; name pairs by KFD_DEVICE_MAP");
}

FIXTURE_TEST(match_gives_up_on_too_many_kinds_of_links)
{
	given("10", "10");
	for (uint32_t i = 0; i < 10; i++)
		for (uint32_t j = 0; j < 10; j++)
			if (i != j)
				link_one_way(saved, GPU + i, GPU + j, TOPOLOGY_LINK_XGMI, 1 + 10 * i + j);
	assert_int_equal(match(), -E2BIG);
	assert_report("undecided: the image's GPUs are linked in more than 64 different ways");
}

/* ---- work: a process sees more GPUs than it works on ---- */

static struct match_candidates candidates;
static struct match_choices choices;

/* A machine of eight in a hive, with the same ids at dump and at restore. @done, @others: a digit for each GPU. */
static void eight_gpus(const char *done, const char *others, uint64_t others_free, struct match_process *process)
{
	memset(&candidates, 0, sizeof(candidates));
	memset(&choices, 0, sizeof(choices));
	*process = (struct match_process){ .saved = saved, .machine = local, .options = &options, .choices = &choices };
	for (uint32_t i = 0; i < 8; i++) {
		struct gpu_usage *usage = &candidates.usage[GPU + i];

		process->work[GPU + i].has_queues = done[i] == 'q';
		process->work[GPU + i].vram_needed = done[i] == '.' ? 0 : done[i] == 'c' ? GIB : 50 * GIB;
		usage->vram_known = true;
		usage->has_queues = others[i] == 'q';
		usage->vram_free = others[i] == 'q' ? others_free : 64 * GIB;
	}
}

static int choose(const struct match_process *process)
{
	free(steal_ptr(map));
	fail_clear();
	return match_choose(process, &candidates, &map);
}

/* q: queues and much VRAM, c: a little VRAM, .: nothing. What each of the eight becomes. */
static const struct {
	const char *done, *others;
	uint64_t others_free_gib;
	const char *becomes;
} eights[] = {
	{ ".......q", "........", 64, "01234567" },
	{ ".......q", "q.......", 40, "01234567" },
	{ ".......q", "q.......", 60, "01234567" },
	{ "....qqqq", "qqqq....", 40, "01234567" },
	{ "....qqqq", "qqqq....", 60, "01234567" },
	{ "q.......", ".......q", 40, "01234567" },
	{ "qqqq....", "....qqqq", 40, "01234567" },
	/* Its own is taken: an idle one. */
	{ "q.......", "q.......", 40, "10234567" },
	{ "q.......", "q.......", 60, "10234567" },
	/* Too few are idle for all: those whose own is keep it. */
	{ "qqqqqqqq", "q.......", 60, "01234567" },
	{ "........", "q.......", 40, "01234567" },
	/* A runtime keeps a little in each GPU that it sees: the queues decide. */
	{ "qccccccc", "q.......", 60, "10234567" },
	{ "cccccccq", "q.......", 60, "01234567" },
};

FIXTURE_TEST(match_keeps_gpus_that_the_job_works_on)
{
	struct match_process process;
	char becomes[9] = "";

	saved = machine_of(0xa0, "8 x/8");
	local = machine_of(0xa0, "8 x/8");
	for (size_t n = 0; n < ARRAY_SIZE(eights); n++) {
		eight_gpus(eights[n].done, eights[n].others, eights[n].others_free_gib * GIB, &process);
		assert_int_equal(choose(&process), 0);
		for (unsigned int i = 0; i < 8; i++)
			becomes[i] = (char)('0' + map->pairs[i].local - GPU);
		if (strcmp(becomes, eights[n].becomes))
			fail_msg("work %s, others %s, %u GiB free there: %s, not %s", eights[n].done, eights[n].others,
				 (unsigned int)eights[n].others_free_gib, becomes, eights[n].becomes);
	}
}

/* A process of what given() has made, the first one of its restore. */
static void begin_choices(struct match_process *process)
{
	process->saved = saved;
	process->machine = local;
	memset(&candidates, 0, sizeof(candidates));
	memset(&choices, 0, sizeof(choices));
}

/* It is a rule of one saved and one local GPU: where nothing is needed, a full one does. */
FIXTURE_TEST(match_takes_a_full_gpu_where_no_memory_is_needed)
{
	struct match_process process = { .options = &options, .choices = &choices };

	given("2", "2");
	begin_choices(&process);
	process.work[GPU].vram_needed = 10 * GIB;
	candidates.usage[GPU] = (struct gpu_usage){ .vram_known = true, .vram_free = 9 * GIB + 1 };
	candidates.usage[GPU + 1] = (struct gpu_usage){ .vram_known = true, .vram_free = 10 * GIB };
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xb1);
	assert_pair(1, 0xa1, 0xb0);
	candidates.usage[GPU + 1].vram_free--;
	assert_int_equal(choose(&process), -ENODEV);
	assert_report("1 of 2 saved GPUs fit no local GPU; saved 0xa0: free VRAM, wanted at least 10240 MiB "
		      "(KFD_VRAM_SIZE_CHECK=0 accepts it): local 0xb0 (9216 MiB) 0xb1 (10239 MiB)");
	options.relaxed[MATCH_CHECK_VRAM_SIZE] = true;
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xb0);
}

/* A suspended process has little, and its resume needs more: idle GPUs with room for both come first. */
FIXTURE_TEST(match_prefers_gpus_with_room_for_a_resume)
{
	struct match_process process = { .options = &options, .choices = &choices };
	struct gpu_work work[TOPOLOGY_MAX_NODES] = { [GPU] = { .vram_needed = GIB, .vram_later = 10 * GIB } };

	given("1", "3");
	begin_choices(&process);
	match_need(&choices, saved, work, false);
	process.work[GPU].vram_needed = GIB;
	for (uint32_t i = 0; i < 3; i++)
		candidates.usage[GPU + i] = (struct gpu_usage){ .vram_known = true, .vram_free = 11 * GIB - 1 };
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xb0);
	candidates.usage[GPU + 1] = (struct gpu_usage){ .has_queues = true, .vram_known = true, .vram_free = 11 * GIB };
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xb0);
	candidates.usage[GPU + 1].has_queues = false;
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xb1);
	/* Two such processes of one job: the GPU becomes the same one in both. */
	match_need(&choices, saved, work, false);
	candidates.usage[GPU + 2].vram_free = 22 * GIB;
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xb2);
	/* What stayed allocated is needed. */
	for (uint32_t i = 0; i < 3; i++)
		candidates.usage[GPU + i].vram_free = 2 * GIB - 1;
	assert_int_equal(choose(&process), -ENODEV);
	assert_report("saved 0xa0: free VRAM, wanted at least 2048 MiB");
}

/* A restore refuses a process that shares buffers and would get other gpu ids. */
FIXTURE_TEST(match_does_not_change_ids_that_are_kept_for_room_of_a_resume)
{
	struct match_process process = { .options = &options, .choices = &choices };
	struct gpu_work work[TOPOLOGY_MAX_NODES] = { [GPU] = { .vram_needed = GIB, .vram_later = 10 * GIB } };

	given("1", "1");
	topology_free(local);
	local = machine_of(0xa0, "2");
	begin_choices(&process);
	match_need(&choices, saved, work, true);
	process.work[GPU].vram_needed = GIB;
	candidates.usage[GPU] = (struct gpu_usage){ .has_queues = true, .vram_known = true, .vram_free = 20 * GIB };
	candidates.usage[GPU + 1] = (struct gpu_usage){ .vram_known = true, .vram_free = 20 * GIB };
	options.keeps_ids = true;
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xa0);
	candidates.usage[GPU] = (struct gpu_usage){ .vram_known = true, .vram_free = 5 * GIB };
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xa0);
	options.keeps_ids = false;
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xa1);
}

/* The queues there are those of the same restore. */
FIXTURE_TEST(match_prefers_room_for_a_resume_beside_gpus_that_another_process_of_the_job_has_taken)
{
	struct match_process process = { .options = &options, .choices = &choices };
	const struct gpu_work one = { .vram_needed = GIB, .vram_later = 10 * GIB };
	struct gpu_work work[TOPOLOGY_MAX_NODES] = { [GPU] = one, [GPU + 1] = one };

	given("2", "3");
	begin_choices(&process);
	match_need(&choices, saved, work, false);
	process.work[GPU].vram_needed = process.work[GPU + 1].vram_needed = GIB;
	match_remember(&choices, &(struct match_pair){ .saved_minor = topology_minor(saved->nodes[GPU]), .actual_gpu_id = 0xb0 });
	candidates.usage[GPU] = (struct gpu_usage){ .has_queues = true, .vram_known = true, .vram_free = 5 * GIB };
	candidates.usage[GPU + 1] = (struct gpu_usage){ .vram_known = true, .vram_free = 5 * GIB };
	candidates.usage[GPU + 2] = (struct gpu_usage){ .vram_known = true, .vram_free = 20 * GIB };
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xb0);
	assert_pair(1, 0xa1, 0xb2);
}

/* Two partitions of 100 GiB each, and one device with 150 GiB: each would have room alone. */
FIXTURE_TEST(match_asks_for_the_room_of_partitions_together)
{
	struct match_process process = { .options = &options, .choices = &choices };

	given("2 gfx_target_version=90402", "4 gfx_target_version=90402 location_id=0x100,0x101,0x200,0x201");
	begin_choices(&process);
	for (uint32_t i = 0; i < 4; i++) {
		if (i < 2)
			process.work[GPU + i].vram_needed = 100 * GIB;
		candidates.usage[GPU + i] = (struct gpu_usage){ .vram_known = true, .vram_free = 150 * GIB };
	}
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xb0);
	assert_pair(1, 0xa1, 0xb2);
	strcpy(candidates.reason[GPU + 2], "it is somebody's");
	strcpy(candidates.reason[GPU + 3], "it is somebody's");
	assert_int_equal(choose(&process), -ENODEV);
	assert_report(
		"and has room for those that become partitions of one device; KFD_VRAM_SIZE_CHECK=0 does not look");
	candidates.usage[GPU].vram_free = candidates.usage[GPU + 1].vram_free = 200 * GIB;
	assert_int_equal(choose(&process), 0);
}

/* ---- one process after the other ---- */

/* The first process has one GPU of a hive of two, the second one both: the first must not take the lone one. */
FIXTURE_TEST(match_leaves_room_for_the_process_with_the_most_gpus)
{
	_cleanup_topology_ struct topology *first = machine_of(0x70, "1");
	struct match_process process = { .saved = first, .options = &options, .choices = &choices };

	memset(&candidates, 0, sizeof(candidates));
	memset(&choices, 0, sizeof(choices));
	given("2 x0-1", "3 x1-2");
	process.largest = saved;
	process.machine = local;
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0x70, 0xb1);
	match_remember(&choices, &map->pairs[0]);
	process.saved = saved;
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0xa0, 0xb1);
	assert_pair(1, 0xa1, 0xb2);
	/* Where the larger one has no map at all, each is on its own. */
	memset(&choices, 0, sizeof(choices));
	strcpy(candidates.reason[GPU + 1], "it is somebody's");
	process.saved = first;
	assert_int_equal(choose(&process), 0);
	assert_pair(0, 0x70, 0xb0);
}

UNIT_MAIN(NULL, NULL)
