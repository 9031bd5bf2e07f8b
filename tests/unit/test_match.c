// SPDX-License-Identifier: GPL-2.0-only
/*
 * The matcher: a table of pairs of machines, each rule and option, the choice among several maps, KFD_DEVICE_MAP, what
 * the process works on, and images of other writers.
 */
#define _GNU_SOURCE
#include "unit.h"
#include "match_fixture.h"

/* ---- a table of cases ---- */

/*
 * A machine: how many GPUs it has, all of CPU 0, or "@" and for each its CPU, "-" for none; then properties, one value
 * for all or one for each; then links: x for XGMI (of 50000 MB/s unless that follows a colon), p for PCIe; "0-3"
 * between all from 0 to 3, "0+1" between two, "0>1" in one direction; GPUs count from 0, CPUs from -2. Saved GPUs are
 * 0xa0, 0xa1, ..., local ones 0xb0, ... (0xb000, ... where there are many).
 */
/* clang-format off */
static const struct {
	const char *what, *saved, *local;
	const char *becomes; /* local gpu ids; "*": any, "=": the same places; NULL: it is refused, ... */
	const char *says[3]; /* ... with these texts */
	const char *relaxed; /* a setting that is off */
	const char *map;     /* KFD_DEVICE_MAP, of gpu ids */
	const char *busy;    /* for each local GPU: 1 where others use it */
} rows[] = {
#define ROW(what_, saved_, local_, ...) { .what = what_, .saved = saved_, .local = local_, __VA_ARGS__ }
	ROW("no GPUs", "0", "2", .becomes = ""),
	ROW("three GPUs of different VRAM", "3 vram_size=32G,16G,24G", "3 vram_size=24G,16G,32G",
	    .becomes = "b2 b1 b0"),
	ROW("four GPUs of different VRAM", "4 vram_size=48G,32G,24G,16G", "4 vram_size=48G,16G,32G,48G",
	    .becomes = "b0 b2 b3 b1"),
	ROW("NUMA nodes swapped", "@110", "@100", .becomes = "b1 b2 b0"),
	ROW("NUMA nodes cannot be kept", "@0000", "@0100", .says = { "NUMA",
	    "KFD_NUMA_CHECK=0 does not look at NUMA nodes" }),
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
	    .says = { "no choice of local GPUs", "KFD_NUMA_CHECK=0 does not look at NUMA nodes",
	    "KFD_TOPOLOGY_CHECK=0 does not look at links" }),
	ROW("links are not looked at", "@000111 device_id=5,1,5,5,5,5 x0+1 x1+2 x3+4 x4+5",
	    "@000111 device_id=5,5,1,5,5,5 x0+1 x1+2 x3+4 x4+5", .becomes = "* * * * * *",
	    .relaxed = "KFD_TOPOLOGY_CHECK"),
	ROW("the linked GPU is at another index", "6 p0+1 p0+2 p0+3 p0+4 p0+5", "6 p4+0 p4+1 p4+2 p4+3 p4+5",
	    .becomes = "b4 b0 * * * *"),
	ROW("a one-way link to the host", "1", "@- p0>-2", .says = { "link from the host, wanted PCIe",
	    "0xb0 (no link)", "KFD_TOPOLOGY_CHECK=0" }),
	ROW("a one-way link to the host is not looked at", "1", "@- p0>-2", .becomes = "b0",
	    .relaxed = "KFD_TOPOLOGY_CHECK"),
	ROW("PCIe where the host had XGMI", "@- x0+-2", "1", .says = { "link to the host, wanted XGMI",
	    "0xb0 (PCIe)" }),
	ROW("a hive and loose GPUs", "8 x0-3", "8 x4-7", .becomes = "b4 b5 b6 b7 b0 b1 b2 b3"),
	ROW("types at other positions", "5 device_id=1,2,3,1,2", "5 device_id=2,3,2,1,1", .becomes = "b3 b0 b1 b4 b2"),
	ROW("a hive too many", "4 x0-3", "8 x0-3 x4-7", .becomes = "b0 * * *"),
	ROW("a hive into a bigger one", "3 x0-2", "8 x0-1 x2-7", .becomes = "b2 * b4"),
	ROW("a broken hive", "4 x0-3", "4 x0-1 x2-3", .says = { "no choice of local GPUs keeps all links",
	    "KFD_TOPOLOGY_CHECK=0 does not look at links" }),
	ROW("a broken hive is not looked at", "4 x0-3", "4 x0-1 x2-3", .becomes = "* * * *",
	    .relaxed = "KFD_TOPOLOGY_CHECK"),
	ROW("a link is missing", "2 x0+1", "3 p0+1",
	    .says = { "no two local GPUs that fit are as saved 0xa0 and 0xa1 were: linked by XGMI of 50000 MB/s",
	    "KFD_TOPOLOGY_CHECK=0 does not look at links" }),
	ROW("too little bandwidth", "2 x0+1:100000", "4 x0+1", .says = { "no two local GPUs",
	    "linked by XGMI of 100000 MB/s" }),
	ROW("more bandwidth", "2 x0+1:100000", "4 x0+1 x2+3:200000", .becomes = "b2 b3"),
	ROW("no link where PCIe was", "2 p0+1", "2", .says = { "no two local GPUs", "linked by PCIe" }),
	ROW("XGMI serves for PCIe", "2 p0+1", "2 x0+1", .becomes = "* *"),
	ROW("a link in the saved direction only", "2 x0>1", "2 x1>0", .becomes = "b1 b0"),
	ROW("a link in one direction, and both were there", "2 x0+1", "2 x1>0", .says = { "0xa0", "XGMI" }),
	ROW("pairs whose links go out alike, and come in by another bandwidth", "4 x0+1 x2>3 x3>2:100000",
	    "4 x0>1 x1>0:100000 x2+3", .becomes = "b2 * b0 *"),
	ROW("an unknown NUMA node", "@11", "@--", .says = { "as saved 0xa0 and 0xa1 were: on one NUMA node;",
	    "KFD_NUMA_CHECK=0 does not look at NUMA nodes" }, .relaxed = "KFD_TOPOLOGY_CHECK"),
	ROW("partitions", "4 num_xcc=1 location_id=0x500,0x501,0x502,0x503",
	    "8 num_xcc=16,16,16,16,1,1,1,1 location_id=0xb000,0xb100,0xb200,0xb300,0x503,0x502,0x501,0x500",
	    .becomes = "b7 b6 b5 b4"),
	ROW("partitions of another size", "4 num_xcc=1", "8 num_xcc=16,16,16,16,2,2,2,2",
	    .says = { "num_xcc, wanted 1", "0xb0 0xb1 0xb2 0xb3 (16)" }),
	ROW("the same gpu ids come first", "4", "4 gpu_id=0xa1,0xa2,0xa3,0xa0 location_id=0xa000,0xa100,0xa200,0xa300",
	    .becomes = "a0 a1 a2 a3"),
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
	ROW("a map of some", "3", "4", .becomes = "b1 b2 b0", .map = "a2=b0"),
	ROW("the map is checked", "1", "2 vram_size=64G,32G", .says = { "vram_size, wanted at least 64 GiB",
	    "0xb1 (32 GiB)", "KFD_DEVICE_MAP chooses 0xb1, not: local 0xb0" }, .map = "a0=b1"),
	ROW("the map is not checked", "1", "2 vram_size=64G,32G", .becomes = "b1", .relaxed = "KFD_VRAM_SIZE_CHECK",
	    .map = "a0=b1"),
	ROW("links of the map are checked", "2 x0-1", "3 x0-1",
	    .says = { "as saved 0xa0 and 0xa1 were: linked by XGMI", "KFD_TOPOLOGY_CHECK=0" }, .map = "a0=b2"),
	ROW("links of the map are there", "2 x0-1", "3 x0-1", .becomes = "b1 b0", .map = "a0=b1"),
	ROW("what the first of eight meets", "8 vram_size=64G,65G,66G,67G,68G,69G,70G,71G",
	    "8 vram_size=32G,33G,34G,35G,36G,37G,38G,39G",
	    .says = { "8 of 8 saved GPUs fit no local GPU; saved 0xa0: vram_size, wanted at least 64 GiB",
	    "0xb7 (39 GiB)", "-saved 0xa1" }),
	ROW("equal GPUs are told of once", "8", "8 fw_version=15",
	    .says = { "saved 0xa0: fw_version, wanted at least 16 (KFD_FW_VER_CHECK=0 accepts it): local",
	    ": local 0xb0 0xb1 0xb2 0xb3 0xb4 0xb5 0xb6 0xb7 (15)" }),
	ROW("too few fit", "3 vram_size=128G", "4 vram_size=192G,192G,64G,64G",
	    .says = { "3 saved GPUs fit only 2 local GPUs", "0xb2 0xb3 (64 GiB)",
	    "saved 0xa0 0xa1 0xa2; local 0xb0 0xb1" }),
	ROW("three hives of three do not fit into two of five", "9 x0-2 x3-5 x6-8", "10 x0-4 x5-9",
	    .says = { "no choice of local GPUs keeps all links", "KFD_TOPOLOGY_CHECK=0 does not look at links" }),
	ROW("hives of different size: 3 + 5, 3 + 5, 2 + 3 + 4", "25 x0-2 x3-5 x6-10 x11-15 x16-17 x18-20 x21-24",
	    "26 x0-7 x8-15 x16-25", .becomes = "* * * * * * * * * * * * * * * * * * * * * * * * *"),
	ROW("two linked GPUs and two that are not look the same to the last two",
	    "5 device_id=7,8,9,9,9 x0+2 x1+2 x3+4",
	    "6 device_id=9,9,9,9,7,8 x4+5 x0+1 x0+4 x0+5 x1+4 x1+5 x2+4 x2+5 x3+4 x3+5", .becomes = "* * * b0 b1"),
	ROW("and so does a single one", "6 device_id=7,8,9,9,9,9 x0+2 x1+2 x4+5",
	    "7 device_id=9,9,9,9,9,7,8 x5+6 x1+2 x0+5 x0+6 x1+5 x1+6 x2+5 x2+6 x3+5 x3+6 x4+5 x4+6",
	    .becomes = "* * * * b1 b2"),
};
/* clang-format on */

static void set_values(struct topology *t, enum topology_prop prop, unsigned int nr, char *values)
{
	char *next = values;

	for (uint32_t i = 0; i < nr; i++) {
		uint64_t value = strtoull(next, &next, 0);

		set_prop(node_of(t, GPU + i), prop, *next == 'G' ? value * GIB : value);
		next += *next == 'G';
		next = *next == ',' ? next + 1 : values;
	}
}

static void add_links(struct topology *t, const char *text)
{
	int first, last, nr;
	uint32_t type, bandwidth;
	char kind, how;

	nr = sscanf(text, "%c%d%c%d:%u", &kind, &first, &how, &last, &bandwidth);
	must(nr >= 4 && strchr("xp", kind) && strchr("-+>", how) ? 0 : -EINVAL);
	type = kind == 'x' ? TOPOLOGY_LINK_XGMI : TOPOLOGY_LINK_PCIE;
	bandwidth = nr == 5 ? bandwidth : kind == 'x' ? 50000 : 0;
	for (int a = first; a < last && how == '-'; a++)
		for (int b = a + 1; b <= last; b++)
			link_both(t, (uint32_t)(GPU + a), (uint32_t)(GPU + b), type, bandwidth);
	if (how != '-')
		link_one_way(t, (uint32_t)(GPU + first), (uint32_t)(GPU + last), type, bandwidth);
	if (how == '+')
		link_one_way(t, (uint32_t)(GPU + last), (uint32_t)(GPU + first), type, bandwidth);
}

static void build(struct topology *t, uint32_t first_id, const char *text)
{
	char copy[512], *rest = copy, *token, *value;
	unsigned int nr, prop = 0;

	assert_true((size_t)snprintf(copy, sizeof(copy), "%s", text) < sizeof(copy));
	token = strsep(&rest, " ");
	nr = *token == '@' ? (unsigned int)strlen(token + 1) : (unsigned int)atoi(token);
	for (uint32_t i = 0; i < nr; i++)
		add_gpu(t, GPU + i, first_id + i,
			*token != '@'	      ? 0
			: token[1 + i] == '-' ? 99
					      : (uint32_t)(token[1 + i] - '0'));
	while ((token = strsep(&rest, " "))) {
		value = strchr(token, '=');
		if (!value) {
			add_links(t, token);
			continue;
		}
		*value++ = '\0';
		for (prop = 0; strcmp(topology_prop_info(prop)->name, token); prop++)
			must(prop + 1 < TOPOLOGY_NR_PROPS ? 0 : -EINVAL);
		set_values(t, prop, nr, value);
	}
}

static struct device_map_entry pairs[TOPOLOGY_MAX_NODES];

static void set_map(const char *text)
{
	char copy[256];

	snprintf(copy, sizeof(copy), "%s", text);
	options.pairs = pairs;
	options.nr_pairs = 0;
	for (char *rest = copy, *pair; (pair = strsep(&rest, ","));) {
		struct device_map_entry *e = &pairs[options.nr_pairs++];
		unsigned int a, b;

		assert_int_equal(sscanf(pair, "%x=%x", &a, &b), 2);
		e->saved = (struct device_ref){ DEVICE_REF_GPU_ID, a };
		e->local = (struct device_ref){ DEVICE_REF_GPU_ID, b };
	}
}

static void check_map(const char *what, const char *becomes)
{
	char copy[256], *rest = copy, *token;
	unsigned int nr = 0;

	if (!map)
		fail_msg("%s: %s", what, fail_text());
	for (unsigned int i = 0; *becomes == '=' && i < map->nr_pairs; i++)
		assert_int_equal(map->pairs[i].saved, map->pairs[i].local);
	snprintf(copy, sizeof(copy), "%s", becomes);
	for (; *becomes != '=' && *becomes && (token = strsep(&rest, " ")); nr++)
		if (*token != '*' && strtoul(token, NULL, 16) != map->pairs[nr].actual_gpu_id)
			fail_msg("%s: %#x becomes %#x, not %s", what, map->pairs[nr].user_gpu_id,
				 map->pairs[nr].actual_gpu_id, token);
	assert_int_equal(map->nr_pairs, *becomes == '=' ? topology_count_gpus(saved) : nr);
}

/* A text that begins with "-" must not be there. */
static void check_refusal(const char *what, const char *const *says)
{
	if (map)
		fail_msg("%s: has a map", what);
	for (unsigned int i = 0; i < 3 && says[i]; i++)
		if (!strstr(fail_text(), says[i] + (*says[i] == '-')) == (*says[i] != '-'))
			fail_msg("%s: '%s': %s", what, says[i], fail_text());
}

static void check_row(size_t n)
{
	struct gpu_usage usage[TOPOLOGY_MAX_NODES] = { 0 };
	int err;

	setup(NULL);
	build(saved, 0xa0, rows[n].saved);
	build(local, atoi(rows[n].saved) > 16 ? 0xb000 : 0xb0, rows[n].local);
	for (unsigned int check = 0; rows[n].relaxed && check < MATCH_NR_CHECKS; check++)
		options.relaxed[check] = !strcmp(match_check_name(check), rows[n].relaxed);
	for (size_t i = 0; rows[n].busy && rows[n].busy[i]; i++)
		usage[GPU + i].has_queues = rows[n].busy[i] == '1';
	options.usage = usage;
	if (rows[n].map)
		set_map(rows[n].map);
	err = match();
	assert_true(!err || err == -ENODEV);
	if (rows[n].becomes)
		check_map(rows[n].what, rows[n].becomes);
	else
		check_refusal(rows[n].what, rows[n].says);
	teardown(NULL);
}

TEST(match_answers_each_row)
{
	for (size_t n = 0; n < ARRAY_SIZE(rows); n++)
		check_row(n);
}

/* ---- properties ---- */

FIXTURE_TEST(match_accepts_an_equal_gpu_under_other_names)
{
	plain_machines(1, 1);
	set_prop(node_of(local, GPU), TOPOLOGY_DRM_RENDER_MINOR, 200);
	assert_int_equal(match(), 0);
	assert_int_equal(map->nr_pairs, 1);
	assert_pair(0, 0xa0, 0xb0);
	assert_int_equal(map->pairs[0].saved, 2);
	assert_int_equal(map->pairs[0].local, 2);
	assert_int_equal(map->pairs[0].saved_minor, 130);
	assert_int_equal(map->pairs[0].local_minor, 200);
}

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

	plain_machines(1, 1);
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

	plain_machines(1, 1);
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
	plain_machines(1, 1);
	for (unsigned int i = TOPOLOGY_VENDOR_ID; i < TOPOLOGY_NR_PROPS; i++) {
		node_of(local, GPU)->value[i] = ~node_of(saved, GPU)->value[i];
		clear_prop(node_of(saved, GPU), i);
	}
	assert_int_equal(match(), 0);
}

FIXTURE_TEST(match_compares_capability_bits_that_user_space_acts_on)
{
	/* ATS, queue sizes, VA limit, doorbell type, double map, ASIC revision, SRAM EDC, SVM, coherent host access */
	const uint32_t compared = 0x1fc0705a;

	plain_machines(1, 1);
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
	plain_machines(64, 64);
	for (uint32_t i = 0; i < 64; i++)
		set_prop(node_of(local, GPU + i), TOPOLOGY_VRAM_SIZE, 1000000007 + i);
	assert_refused("64 of 64 saved GPUs fit no local GPU", "vram_size, wanted at least 64 GiB");
	assert_report("0xb00f (1000000022 bytes)");
	assert_report("...");
}

/* ---- links ---- */

static void assert_untold_bandwidth_serves(struct topology *untold)
{
	plain_machines(2, 2);
	link_both(saved, GPU, GPU + 1, TOPOLOGY_LINK_XGMI, 100000);
	link_both(local, GPU, GPU + 1, TOPOLOGY_LINK_XGMI, 50000);
	for (uint32_t i = 0; i < 2; i++) {
		struct topology_node *node = node_of(untold, GPU + i);

		for (unsigned int l = 0; l < node->nr_links; l++) {
			node->links[l].has_bandwidth = false;
			node->links[l].max_bandwidth = 0;
		}
	}
	assert_int_equal(match(), 0);
}

FIXTURE_TEST(match_wants_no_bandwidth_that_the_image_does_not_tell)
{
	assert_untold_bandwidth_serves(saved);
}

FIXTURE_TEST(match_takes_a_link_whose_bandwidth_the_machine_does_not_tell)
{
	assert_untold_bandwidth_serves(local);
}

/* The flags of every link from one node to another. */
static void set_flags(struct topology *t, uint32_t from, uint32_t to, uint32_t flags)
{
	struct topology_node *node = node_of(t, from);

	for (unsigned int i = 0; i < node->nr_links; i++) {
		if (node->links[i].node_to_id == to)
			node->links[i].flags = flags;
	}
}

FIXTURE_TEST(match_does_not_take_a_link_without_peer_access)
{
	plain_machines(2, 2);
	link_both(saved, GPU, GPU + 1, TOPOLOGY_LINK_PCIE, 0);
	link_both(local, GPU, GPU + 1, TOPOLOGY_LINK_PCIE, 0);
	set_flags(local, GPU, GPU + 1, TOPOLOGY_LINK_FLAG_ENABLED | TOPOLOGY_LINK_FLAG_NO_P2P_DMA);
	assert_refused("no two local GPUs", "linked by PCIe");
	/* And does not want it where the saved one had none. */
	set_flags(saved, GPU, GPU + 1, TOPOLOGY_LINK_FLAG_ENABLED | TOPOLOGY_LINK_FLAG_NO_P2P_DMA);
	assert_int_equal(match(), 0);
}

FIXTURE_TEST(match_wants_atomics_that_were_there)
{
	plain_machines(2, 2);
	link_both(saved, GPU, GPU + 1, TOPOLOGY_LINK_PCIE, 0);
	link_both(local, GPU, GPU + 1, TOPOLOGY_LINK_PCIE, 0);
	set_flags(local, GPU, GPU + 1, TOPOLOGY_LINK_FLAG_NO_ATOMICS_64);
	assert_refused("no two local GPUs", "linked by PCIe with atomics");
	set_flags(saved, GPU, GPU + 1, TOPOLOGY_LINK_FLAG_NO_ATOMICS_64);
	set_flags(saved, GPU + 1, GPU, TOPOLOGY_LINK_FLAG_NO_ATOMICS_64);
	assert_int_equal(match(), 0);
	set_flags(local, GPU, 0, TOPOLOGY_LINK_FLAG_NO_ATOMICS_32);
	set_flags(local, GPU + 1, 0, TOPOLOGY_LINK_FLAG_NO_ATOMICS_32);
	assert_refused("link to the host, wanted PCIe", "(no atomics)");
}

/* ---- candidates, images of other writers ---- */

FIXTURE_TEST(match_uses_no_gpu_that_is_unusable)
{
	const char *unusable[TOPOLOGY_MAX_NODES] = { [GPU] = "first reason", [GPU + 2] = "second reason" };

	plain_machines(2, 4);
	options.unusable = unusable;
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb1);
	assert_pair(1, 0xa1, 0xb3);
	unusable[GPU + 3] = "first reason";
	assert_refused("2 saved GPUs fit only 1 local GPUs", "3 more may not be used");
	assert_report("not used: 0xb0 0xb3: first reason");
	assert_report("not used: 0xb2: second reason");
	unusable[GPU + 1] = "first reason";
	local->nr_hidden = 5;
	assert_refused("on 0 local ones (4 more may not be used by the process, 5 are hidden)", "0xb0 0xb1 0xb3");
}

/* What the existing plugin of criu 3.17 to 4.2 stores. */
static void strip_to_old_image(struct topology *t)
{
	static const enum topology_prop added[] = { TOPOLOGY_GFX_TARGET_VERSION, TOPOLOGY_NUM_XCC, TOPOLOGY_UNIQUE_ID,
						    TOPOLOGY_LOCATION_ID, TOPOLOGY_NUMA_NODE };

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(added); k++)
			clear_prop(t->nodes[i], added[k]);
		for (unsigned int l = 0; l < t->nodes[i]->nr_links; l++) {
			struct topology_link *link = &t->nodes[i]->links[l];

			*link = (struct topology_link){ .type = link->type, .node_to_id = link->node_to_id };
		}
	}
}

FIXTURE_TEST(match_takes_images_of_criu_3_17_to_4_2)
{
	plain_machines(4, 4);
	link_hive(saved, GPU, 4);
	link_hive(local, GPU, 4);
	strip_to_old_image(saved);
	assert_int_equal(match(), 0);
	/* What they have is compared all the same. */
	set_prop(node_of(local, GPU), TOPOLOGY_FW_VERSION, 15);
	assert_refused("fw_version, wanted at least 16", "0xb0 (15)");
}

/* Their successors list GPUs that the process did not have with gpu_id 0, and no links to CPUs. */
FIXTURE_TEST(match_takes_images_with_nodes_without_gpu_id)
{
	plain_machines(3, 2);
	set_prop(node_of(saved, GPU + 1), TOPOLOGY_GPU_ID, 0);
	link_both(saved, GPU, GPU + 1, TOPOLOGY_LINK_XGMI, 0);
	strip_to_old_image(saved);
	for (uint32_t i = 0; i < 2 + 3; i++)
		node_of(saved, i)->nr_links = 0;
	assert_int_equal(match(), 0);
	assert_int_equal(map->nr_pairs, 2);
	assert_pair(0, 0xa0, 0xb0);
	assert_pair(1, 0xa2, 0xb1);
}

/* ---- KFD_DEVICE_MAP ---- */

FIXTURE_TEST(match_takes_minors_and_pci_addresses_in_the_device_map)
{
	plain_machines(2, 3);
	options.pairs = pairs;
	options.nr_pairs = 2;
	pairs[0] = (struct device_map_entry){ { DEVICE_REF_RENDER_MINOR, 128 + GPU }, { DEVICE_REF_PCI, 0xb200 } };
	pairs[1] = (struct device_map_entry){ { DEVICE_REF_PCI, 0xa100 }, { DEVICE_REF_RENDER_MINOR, 128 + GPU } };
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb2);
	assert_pair(1, 0xa1, 0xb0);
}

static void assert_bad_map(const char *part)
{
	assert_int_equal(match(), -EINVAL);
	assert_report(part);
}

/* Kernels put the number of a partition into the function, or into the upper bits. */
FIXTURE_TEST(match_takes_no_pci_address_for_one_of_several_partitions)
{
	plain_machines(2, 2);
	set_map("a0=b1");
	for (uint32_t i = 0; i < 2; i++)
		set_prop(node_of(local, GPU + i), TOPOLOGY_LOCATION_ID, 0xc100 | i << 28);
	pairs[0].local = (struct device_ref){ DEVICE_REF_PCI, 0xc100 };
	assert_bad_map("0000:c1:00.0 names several GPUs of the machine; use gpu ids");
	set_prop(node_of(local, GPU + 1), TOPOLOGY_LOCATION_ID, 0xc101);
	pairs[0].local = (struct device_ref){ DEVICE_REF_PCI, 0xc101 };
	assert_int_equal(match(), 0);
	assert_pair(0, 0xa0, 0xb1);
}

FIXTURE_TEST(match_refuses_device_maps_of_gpus_that_are_not_there)
{
	const char *unusable[TOPOLOGY_MAX_NODES] = { [GPU + 1] = "it is full" };

	plain_machines(2, 2);
	set_map("b0=b0");
	assert_bad_map("0xb0 is no GPU of the image");
	set_map("a0=a0");
	assert_bad_map("0xa0 is no GPU of the machine");
	set_map("a0=b0");
	pairs[0].saved = (struct device_ref){ DEVICE_REF_PCI, 0x100 };
	assert_bad_map("0000:01:00.0 is no GPU of the image");
	for (unsigned int i = 0; i < 2; i++)
		clear_prop(node_of(saved, GPU + i), TOPOLOGY_LOCATION_ID);
	assert_bad_map("the image has no PCI addresses");
	set_map("a0=b1");
	options.unusable = unusable;
	assert_bad_map("may not use 0xb1 of this machine: it is full");
	options.unusable = NULL;
	set_prop(node_of(local, GPU + 1), TOPOLOGY_DRM_RENDER_MINOR, 128 + GPU);
	pairs[0].local = (struct device_ref){ DEVICE_REF_RENDER_MINOR, 128 + GPU };
	assert_bad_map("renderD130 names several GPUs of the machine");
}

FIXTURE_TEST(match_refuses_device_maps_that_name_a_gpu_twice)
{
	plain_machines(2, 2);
	set_map("a0=b0,a1=b1");
	pairs[1].saved = (struct device_ref){ DEVICE_REF_RENDER_MINOR, 128 + GPU };
	assert_bad_map("second time");
	set_map("a0=b0,a1=b1");
	pairs[1].local = (struct device_ref){ DEVICE_REF_PCI, 0xb000 };
	assert_bad_map("second time");
}

/* ---- the search ---- */

static void in_hives_of(struct topology *t, unsigned int nr, unsigned int size)
{
	for (uint32_t first = GPU; first + size <= GPU + nr; first += size)
		link_hive(t, first, size);
}

/* 16 of 3 into 8 of 8: two in each. */
FIXTURE_TEST(match_packs_hives_that_just_fit)
{
	plain_machines(48, 64);
	in_hives_of(saved, 48, 3);
	in_hives_of(local, 64, 8);
	assert_int_equal(match(), 0);
	for (unsigned int i = 0; i < 48; i++)
		assert_int_equal((map->pairs[i].local - GPU) / 8, (map->pairs[i / 3 * 3].local - GPU) / 8);
}

/* 17 of 3 into 8 of 8: GPUs enough, and a proof that takes too long. */
FIXTURE_TEST(match_says_when_it_is_undecided)
{
	plain_machines(51, 64);
	in_hives_of(saved, 51, 3);
	in_hives_of(local, 64, 8);
	for (uint32_t i = 0; i < 64; i++)
		link_both(local, GPU + i, GPU + (i * 7 + 5) % 64, TOPOLOGY_LINK_PCIE, 0);
	assert_int_equal(match(), -E2BIG);
	assert_report("undecided whether there is a map of 51 saved to 64 local GPUs; name pairs by KFD_DEVICE_MAP");
}

FIXTURE_TEST(match_gives_up_on_too_many_kinds_of_links)
{
	plain_machines(10, 10);
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
	match_map_free(steal_ptr(map));
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

	for (uint32_t i = 0; i < 8; i++) {
		add_gpu(saved, GPU + i, 0xa0 + i, 0);
		add_gpu(local, GPU + i, 0xa0 + i, 0);
	}
	link_hive(saved, GPU, 8);
	link_hive(local, GPU, 8);
	must(topology_finish(saved));
	must(topology_finish(local));
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

/* It is a rule of one saved and one local GPU: where nothing is needed, a full one does. */
FIXTURE_TEST(match_takes_a_full_gpu_where_no_memory_is_needed)
{
	struct match_process process = { .saved = saved, .machine = local, .options = &options, .choices = &choices };

	plain_machines(2, 2);
	must(topology_finish(saved));
	must(topology_finish(local));
	memset(&candidates, 0, sizeof(candidates));
	memset(&choices, 0, sizeof(choices));
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

/* Two partitions of 100 GiB each, and one device with 150 GiB: each would have room alone. */
FIXTURE_TEST(match_asks_for_the_room_of_partitions_together)
{
	struct match_process process = { .saved = saved, .machine = local, .options = &options, .choices = &choices };

	plain_machines(2, 4);
	memset(&candidates, 0, sizeof(candidates));
	memset(&choices, 0, sizeof(choices));
	for (uint32_t i = 0; i < 4; i++) {
		if (i < 2)
			process.work[GPU + i].vram_needed = 100 * GIB;
		set_prop(node_of(local, GPU + i), TOPOLOGY_GFX_TARGET_VERSION, 90402);
		set_prop(node_of(local, GPU + i), TOPOLOGY_LOCATION_ID, (1 + i / 2) << 8 | i % 2);
		candidates.usage[GPU + i] = (struct gpu_usage){ .vram_known = true, .vram_free = 150 * GIB };
	}
	set_prop(node_of(saved, GPU), TOPOLOGY_GFX_TARGET_VERSION, 90402);
	set_prop(node_of(saved, GPU + 1), TOPOLOGY_GFX_TARGET_VERSION, 90402);
	must(topology_finish(saved));
	must(topology_finish(local));
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

/* Three GPUs of which two are linked by XGMI; @only: the process has no other. */
static void linked_pair(struct topology *t, unsigned int nr, uint32_t first_id, unsigned int pair, unsigned int only)
{
	for (uint32_t i = 0; i < nr; i++)
		if (!only || only == i + 1)
			add_gpu(t, GPU + i, first_id + i, 0);
	if (!only)
		link_hive(t, GPU + pair, 2);
	must(topology_finish(t));
}

/* The first process has one GPU of a hive of two, the second one both: the first must not take the lone one. */
FIXTURE_TEST(match_leaves_room_for_the_process_with_the_most_gpus)
{
	_cleanup_topology_ struct topology *first = machine_new(2);
	struct match_process process = { .machine = local, .options = &options, .choices = &choices, .largest = saved };

	memset(&candidates, 0, sizeof(candidates));
	memset(&choices, 0, sizeof(choices));
	linked_pair(local, 3, 0xb0, 1, 0);
	linked_pair(saved, 2, 0xa0, 0, 0);
	linked_pair(first, 2, 0x70, 0, 1);
	process.saved = first;
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
