// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rules that /sys/class/kfd topology follows, whatever the description:
 * files and their format, counts, links, identity of the GPUs and their render
 * nodes and PCI devices, and what the device cgroup hides. Run as root.
 */
#include <linux/bpf.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <xf86drm.h>

#include "conformance.h"
#include "sysfs.h"

#define MAX_NODES 96
#define PAGE 4096
#define DRM_MAJOR 226
#define LINK_PCIE 2
#define LINK_XGMI 11
#define HEAP_SYSTEM 0
#define HEAP_FB_PUBLIC 1
#define HEAP_FB_PRIVATE 2

static const char *const all_properties[] = {
	"cpu_cores_count", "simd_count", "mem_banks_count", "caches_count", "io_links_count", "p2p_links_count",
	"cpu_core_id_base", "simd_id_base", "max_waves_per_simd", "lds_size_in_kb", "gds_size_in_kb", "num_gws",
	"wave_front_size", "array_count", "simd_arrays_per_engine", "cu_per_simd_array", "simd_per_cu",
	"max_slots_scratch_cu", "gfx_target_version", "vendor_id", "device_id", "location_id", "domain",
	"drm_render_minor", "hive_id", "num_sdma_engines", "num_sdma_xgmi_engines", "num_sdma_queues_per_engine",
	"num_cp_queues", "cwsr_size", "ctl_stack_size",
	"max_engine_clk_fcompute", "local_mem_size", "fw_version", "capability", "capability2", "debug_prop",
	"sdma_fw_version", "unique_id", "num_xcc",
	"max_engine_clk_ccompute", NULL
};

static const char *cpu_properties[sizeof(all_properties) / sizeof(*all_properties)];

/* A CPU lacks the names from max_engine_clk_fcompute up to num_xcc. */
static void fill_cpu_properties(void)
{
	const char *const *name;
	bool gpu_only = false;
	int n = 0;

	for (name = all_properties; *name; name++) {
		gpu_only |= !strcmp(*name, "max_engine_clk_fcompute");
		if (!gpu_only)
			cpu_properties[n++] = *name;
		gpu_only &= strcmp(*name, "num_xcc") != 0;
	}
}

static const char *const bank_properties[] = { "heap_type", "size_in_bytes", "flags", "width", "mem_clk_max", NULL };

static const char *const cache_properties[] = { "processor_id_low", "level", "size", "cache_line_size",
						"cache_lines_per_tag", "association", "latency", "type",
						"sibling_map", NULL };

static const char *const link_properties[] = {
	"type", "version_major", "version_minor", "node_from", "node_to", "weight", "min_latency", "max_latency",
	"min_bandwidth", "max_bandwidth", "recommended_transfer_size", "recommended_sdma_engine_id_mask", "flags", NULL
};

struct node {
	char properties[PAGE];
	unsigned long gpu_id;
};

static struct node nodes[MAX_NODES];
static int nr_nodes;

static unsigned long long prop(int node, const char *name)
{
	return sysfs_property(nodes[node].properties, name, ~0ULL);
}

static bool is_gpu(int node)
{
	return nodes[node].gpu_id != 0;
}

/* The first name that is not where it should be, NULL when all are. */
static const char *first_misplaced(const char *text, const char *const *names)
{
	for (; *names; names++) {
		size_t len = strlen(*names);

		if (strncmp(text, *names, len) || text[len] != ' ')
			return *names;
		text = strchr(text, '\n');
		if (!text)
			return *names;
		text++;
	}
	return *text ? "(end of file)" : NULL;
}

static bool check_names(const char *text, const char *const *names, const char *what, int node)
{
	const char *bad = first_misplaced(text, names);

	return check_true(!bad, "node %d: %s has all names in order%s%s", node, what, bad ? ", but not " : "",
			  bad ? bad : "");
}

/* ---- the root ---- */

static const char *const system_names[] = { "platform_oem", "platform_id", "platform_rev", NULL };

static void check_root(void)
{
	char first[PAGE], second[PAGE], number[32];
	struct stat st;
	int len;

	check_true(access("/sys/devices/virtual/kfd/kfd/topology/nodes", F_OK) == 0,
		   "the topology is below /sys/devices/virtual/kfd/kfd");
	len = sysfs_read(first, sizeof(first), KFD_TOPOLOGY "/generation_id");
	check_true(len > 1, "generation_id can be read");
	snprintf(number, sizeof(number), "%lu\n", strtoul(first, NULL, 10));
	check_str(first, number, "generation_id is one decimal number and a newline");
	sysfs_read(second, sizeof(second), KFD_TOPOLOGY "/generation_id");
	check_str(second, first, "generation_id stays when nothing changes");
	sysfs_read(first, sizeof(first), KFD_TOPOLOGY "/system_properties");
	check_true(!first_misplaced(first, system_names), "system_properties has its three lines in order");
	check_true(stat(KFD_TOPOLOGY "/generation_id", &st) == 0 && (st.st_mode & 0777) == 0444,
		   "generation_id has mode 0444");
	check_true(access("/sys/class/kfd/kfd/proc", F_OK) == 0, "the directory of KFD processes exists");
}

static void read_nodes(void)
{
	char text[64];
	int i;

	nr_nodes = sysfs_count(KFD_TOPOLOGY "/nodes");
	check_true(nr_nodes > 0 && nr_nodes <= MAX_NODES, "there are nodes");
	if (nr_nodes > MAX_NODES)
		nr_nodes = MAX_NODES;
	for (i = 0; i < nr_nodes; i++) {
		int len = sysfs_read(nodes[i].properties, PAGE, KFD_TOPOLOGY "/nodes/%d/properties", i);

		check_true(len > 0 && len < PAGE - 1, "node %d: properties can be read in one page", i);
		check_true(sysfs_read(text, sizeof(text), KFD_TOPOLOGY "/nodes/%d/gpu_id", i) > 1,
			   "node %d: gpu_id can be read", i);
		nodes[i].gpu_id = strtoul(text, NULL, 10);
	}
}

/* ---- single nodes ---- */

static void check_counts(int i)
{
	static const char *const dirs[] = { "mem_banks", "caches", "io_links", "p2p_links" };
	char name[32];
	unsigned int k;

	for (k = 0; k < sizeof(dirs) / sizeof(*dirs); k++) {
		snprintf(name, sizeof(name), "%s_count", dirs[k]);
		check_u64(sysfs_count(KFD_TOPOLOGY "/nodes/%d/%s", i, dirs[k]), prop(i, name), "node %d: %s is right",
			  i, name);
	}
}

static bool is_apicid(unsigned long long id)
{
	char line[4096];
	FILE *file = fopen("/proc/cpuinfo", "re");
	bool found = false;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "apicid\t", 7))
			found |= strtoull(strchr(line, ':') + 1, NULL, 10) == id;
	if (file)
		fclose(file);
	return found;
}

static void check_cpu(int i)
{
	char name[64];

	sysfs_read(name, sizeof(name), KFD_TOPOLOGY "/nodes/%d/name", i);
	check_str(name, "\n", "node %d: a CPU's name is empty", i);
	check_names(nodes[i].properties, cpu_properties, "a CPU's properties file", i);
	check_true(prop(i, "cpu_cores_count") > 0, "node %d: a CPU has cores", i);
	check_u64(prop(i, "simd_count"), 0, "node %d: a CPU has no SIMDs", i);
	check_u64(prop(i, "drm_render_minor"), 0, "node %d: a CPU has render minor 0", i);
	check_true(is_apicid(prop(i, "cpu_core_id_base")), "node %d: cpu_core_id_base is an apicid of this machine", i);
}

static void check_lower_case_name(int i)
{
	char name[64];
	const char *c;
	bool lower = true;
	int len = sysfs_read(name, sizeof(name), KFD_TOPOLOGY "/nodes/%d/name", i);

	for (c = name; *c; c++)
		lower &= *c < 'A' || *c > 'Z';
	check_true(len > 1 && lower && name[len - 1] == '\n', "node %d: a GPU's name is lower case with a newline", i);
}

/* The sizes that user space computes by itself and CREATE_QUEUE compares. */
static void check_save_area(int i)
{
	unsigned long long gfx = prop(i, "gfx_target_version");
	unsigned long long cus = prop(i, "simd_count") / prop(i, "simd_per_cu") / prop(i, "num_xcc");
	unsigned long long engines = prop(i, "array_count") / prop(i, "simd_arrays_per_engine");
	unsigned long long waves = gfx < 100100 ? cus * 40 : cus * 32;
	unsigned long long stack, vgprs = 0x40000;

	if (gfx < 100100 && waves > engines * 512)
		waves = engines * 512;
	stack = (48 + waves * (gfx < 100100 ? 8 : 12) + 4095) / 4096 * 4096;
	if (gfx / 10000 == 10 && stack > 0x7000)
		stack = 0x7000;
	if (gfx == 90402 || gfx == 90010 || gfx == 90008)
		vgprs = 0x80000;
	else if (gfx == 110000 || gfx == 110001 || gfx >= 120000)
		vgprs = 0x60000;
	check_u64(prop(i, "ctl_stack_size"), stack, "node %d: ctl_stack_size follows from waves", i);
	check_u64(prop(i, "cwsr_size"), stack + cus * (vgprs + 0x4000 + 0x10000 + 0x1000),
		  "node %d: cwsr_size follows from compute units", i);
}

static void check_gpu(int i)
{
	check_lower_case_name(i);
	check_names(nodes[i].properties, all_properties, "a GPU's properties file", i);
	check_true(nodes[i].gpu_id <= 0xffff, "node %d: gpu_id has 16 bits", i);
	check_u64(prop(i, "vendor_id"), 0x1002, "node %d: vendor_id is AMD's", i);
	check_u64(prop(i, "cpu_cores_count"), 0, "node %d: a GPU has no CPU cores", i);
	check_u64(prop(i, "local_mem_size"), 0, "node %d: local_mem_size is always 0", i);
	check_u64(prop(i, "capability") >> 12 & 3, 2, "node %d: the capability says 64-bit doorbells", i);
	check_true(prop(i, "simd_count") > 0 && prop(i, "simd_per_cu") > 0, "node %d: a GPU has SIMDs", i);
	check_true(prop(i, "num_sdma_engines") > 0, "node %d: a GPU has an SDMA engine", i);
	check_true(prop(i, "gfx_target_version") >= 90000, "node %d: gfx_target_version is known to ROCm", i);
	check_save_area(i);
}

static void check_banks(int i)
{
	unsigned long long heap, public = 0, private = 0, system = 0;
	int k, bad = 0, n = prop(i, "mem_banks_count");
	char text[PAGE];

	for (k = 0; k < n; k++) {
		sysfs_read(text, sizeof(text), KFD_TOPOLOGY "/nodes/%d/mem_banks/%d/properties", i, k);
		bad += first_misplaced(text, bank_properties) != NULL;
		heap = sysfs_property(text, "heap_type", ~0ULL);
		system += heap == HEAP_SYSTEM ? sysfs_property(text, "size_in_bytes", 0) : 0;
		public += heap == HEAP_FB_PUBLIC ? sysfs_property(text, "size_in_bytes", 0) : 0;
		private += heap == HEAP_FB_PRIVATE ? sysfs_property(text, "size_in_bytes", 0) : 0;
	}
	check_u64(bad, 0, "node %d: mem_banks have all names in order", i);
	if (is_gpu(i))
		check_true(public + private > 0 && !system, "node %d: a GPU has frame buffer memory only", i);
	else
		check_true(system > 0 && !public && !private, "node %d: a CPU has system memory only", i);
}

static bool is_sibling_map(const char *text)
{
	const char *map = strstr(text, "sibling_map ");
	bool last = false;

	for (map = map ? map + 12 : ""; *map && !last; map += 2) {
		if ((*map != '0' && *map != '1') || (map[1] != ',' && map[1] != '\n'))
			return false;
		last = map[1] == '\n';
	}
	return last && !*map;
}

static void check_caches(int i)
{
	int k, bad_names = 0, bad_maps = 0, bad_types = 0, n = prop(i, "caches_count");
	char text[PAGE];

	for (k = 0; k < n; k++) {
		sysfs_read(text, sizeof(text), KFD_TOPOLOGY "/nodes/%d/caches/%d/properties", i, k);
		bad_names += first_misplaced(text, cache_properties) != NULL;
		bad_maps += !is_sibling_map(text);
		bad_types += is_gpu(i) && !(sysfs_property(text, "type", 0) & 8);
	}
	check_u64(bad_names, 0, "node %d: caches have all names in order", i);
	check_u64(bad_maps, 0, "node %d: sibling maps are comma lists of bits", i);
	check_u64(bad_types, 0, "node %d: a GPU's caches have the HSACU bit", i);
}

/* ---- links ---- */

struct links {
	int bad_names, bad_from, bad_to, bad_type, twice, disabled;
	unsigned char type_to[MAX_NODES]; /* 0: no link */
	bool p2p_to[MAX_NODES];
	int n;
};

static struct links links[MAX_NODES];

static void read_link(int i, const char *dir, int k)
{
	struct links *l = &links[i];
	unsigned long long to, type;
	char text[PAGE];

	sysfs_read(text, sizeof(text), KFD_TOPOLOGY "/nodes/%d/%s/%d/properties", i, dir, k);
	to = sysfs_property(text, "node_to", ~0ULL);
	type = sysfs_property(text, "type", 0);
	l->n++;
	l->bad_names += first_misplaced(text, link_properties) != NULL;
	l->bad_from += sysfs_property(text, "node_from", ~0ULL) != (unsigned long long)i;
	if (to >= (unsigned long long)nr_nodes || to == (unsigned long long)i) {
		l->bad_to++;
		return;
	}
	l->twice += l->type_to[to] != 0;
	l->type_to[to] = type;
	l->p2p_to[to] = dir[0] == 'p';
	l->bad_type += type != 1 && type != LINK_PCIE && type != 5 && type != LINK_XGMI;
	l->disabled += (is_gpu(i) || is_gpu(to)) && !(sysfs_property(text, "flags", 0) & 1);
}

static void read_links(int i)
{
	int k;

	for (k = 0; k < (int)prop(i, "io_links_count"); k++)
		read_link(i, "io_links", k);
	for (k = 0; k < (int)prop(i, "p2p_links_count"); k++)
		read_link(i, "p2p_links", k);
}

static void check_links(int i)
{
	unsigned long long hive = prop(i, "hive_id");
	int k, one_way = 0, bad_hive = 0, cpus = 0;

	check_u64(links[i].bad_names, 0, "node %d: links have all names in order", i);
	check_u64(links[i].bad_from, 0, "node %d: links start here", i);
	check_u64(links[i].bad_to, 0, "node %d: links end at other nodes", i);
	check_u64(links[i].bad_type, 0, "node %d: links have known types", i);
	check_u64(links[i].twice, 0, "node %d: at most one link to each node", i);
	check_u64(links[i].disabled, 0, "node %d: links of GPUs are enabled", i);
	check_true(links[i].n < nr_nodes, "node %d: no more links than other nodes", i);
	if (!is_gpu(i))
		return;
	for (k = 0; k < nr_nodes; k++) {
		one_way += links[i].type_to[k] == LINK_XGMI && links[k].type_to[i] != LINK_XGMI;
		cpus += !is_gpu(k) && links[i].type_to[k] && !links[i].p2p_to[k];
		if (k != i && is_gpu(k) && hive && prop(k, "hive_id") == hive)
			bad_hive += links[i].type_to[k] != LINK_XGMI || links[i].p2p_to[k];
	}
	check_u64(cpus, 1, "node %d: a GPU is attached to one CPU", i);
	check_u64(one_way, 0, "node %d: XGMI goes both ways", i);
	check_u64(bad_hive, 0, "node %d: GPUs of one hive are io_links by XGMI", i);
}

/* ---- what else shows the GPU ---- */

static unsigned long long pci_number(unsigned long long minor, const char *file)
{
	char text[64];

	if (sysfs_read(text, sizeof(text), "/sys/dev/char/%d:%llu/device/%s", DRM_MAJOR, minor, file) <= 0)
		return ~0ULL;
	return strtoull(text, NULL, 0);
}

static bool has_card(unsigned long long minor)
{
	struct dirent *entry;
	char path[128];
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/dev/char/%d:%llu/device/drm", DRM_MAJOR, minor);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		found |= !strncmp(entry->d_name, "card", 4);
	if (dir)
		closedir(dir);
	return found;
}

static void check_pci(int i, unsigned long long minor)
{
	unsigned int domain, bus, slot, function;
	char path[128], target[512];
	const char *name;
	ssize_t len;

	snprintf(path, sizeof(path), "/sys/dev/char/%d:%llu/device", DRM_MAJOR, minor);
	len = readlink(path, target, sizeof(target) - 1);
	target[len > 0 ? len : 0] = 0;
	name = strrchr(target, '/');
	if (!name || sscanf(name, "/%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4) {
		/* A partition other than the first one is not below the PCI device. */
		check_true(name && !strncmp(name, "/amdgpu_xcp_", 12), "node %d: a partition has a platform device", i);
		return;
	}
	check_u64(prop(i, "domain"), domain, "node %d: domain is the PCI device's", i);
	check_u64(prop(i, "location_id") & ~7ULL, bus << 8 | slot << 3, "node %d: location_id is the PCI device's", i);
	check_u64(pci_number(minor, "vendor"), prop(i, "vendor_id"), "node %d: the PCI vendor is the same", i);
	check_u64(pci_number(minor, "device"), prop(i, "device_id"), "node %d: the PCI device id is the same", i);
	check_true(pci_number(minor, "class") >> 16 == 0x03 || pci_number(minor, "class") >> 16 == 0x12,
		   "node %d: the PCI class is a display or an accelerator", i);
	snprintf(path, sizeof(path), "/sys/class/drm/renderD%llu/device/remove", minor);
	check_true(access(path, F_OK) < 0, "node %d: the PCI device cannot be taken away under the GPU", i);
}

static void check_render_node(int i)
{
	unsigned long long minor = prop(i, "drm_render_minor");
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/dev/dri/renderD%llu", minor);
	check_true(stat(path, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(DRM_MAJOR, minor),
		   "node %d: %s is its render node", i, path);
	check_true(has_card(minor), "node %d: the render node has a card next to it", i);
	check_pci(i, minor);
}

static void check_unique(void)
{
	int i, k, ids = 0, minors = 0;

	for (i = 0; i < nr_nodes; i++)
		for (k = 0; k < i; k++) {
			if (!is_gpu(i) || !is_gpu(k))
				continue;
			ids += nodes[i].gpu_id == nodes[k].gpu_id;
			minors += prop(i, "drm_render_minor") == prop(k, "drm_render_minor");
		}
	check_u64(ids, 0, "no gpu_id occurs twice");
	check_u64(minors, 0, "no render minor occurs twice");
}

static int node_of_render_node(const char *path)
{
	char own[64];
	int i;

	for (i = 0; i < nr_nodes; i++) {
		snprintf(own, sizeof(own), "/dev/dri/renderD%llu", prop(i, "drm_render_minor"));
		if (is_gpu(i) && !strcmp(own, path))
			return i;
	}
	return -1;
}

static bool is_same_pci(int i, drmDevicePtr device)
{
	const drmPciBusInfo *bus = device->businfo.pci;

	return device->bustype != DRM_BUS_PCI ||
	       (bus->domain == prop(i, "domain") && bus->bus == prop(i, "location_id") >> 8 &&
		device->deviceinfo.pci->vendor_id == prop(i, "vendor_id") &&
		device->deviceinfo.pci->device_id == prop(i, "device_id"));
}

/* libdrm's list of devices, by which programs find their GPU. */
static void check_libdrm(void)
{
	drmDevicePtr devices[2 * MAX_NODES];
	int n = drmGetDevices2(0, devices, 2 * MAX_NODES), i, k, found = 0, wrong = 0, gpus = 0;

	for (i = 0; i < nr_nodes; i++)
		gpus += is_gpu(i);
	for (k = 0; k < n; k++) {
		i = devices[k]->available_nodes & 1 << DRM_NODE_RENDER ?
			    node_of_render_node(devices[k]->nodes[DRM_NODE_RENDER]) : -1;
		found += i >= 0;
		wrong += i >= 0 && !is_same_pci(i, devices[k]);
	}
	check_u64(found, gpus, "drmGetDevices2 finds every GPU");
	check_u64(wrong, 0, "drmGetDevices2 shows the PCI identity of the topology");
	if (n > 0)
		drmFreeDevices(devices, n);
}

/* ---- the device cgroup ---- */

#define CGROUP "/sys/fs/cgroup/kfdsim-conformance"

/* A program that denies the character device 226:@minor and allows all others. */
static int load_deny(unsigned int minor)
{
	struct bpf_insn code[] = {
		{ BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_1, 4, 0 }, /* major */
		{ BPF_JMP | BPF_JNE | BPF_K, BPF_REG_2, 0, 4, DRM_MAJOR },
		{ BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_1, 8, 0 }, /* minor */
		{ BPF_JMP | BPF_JNE | BPF_K, BPF_REG_2, 0, 2, minor },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0 },
		{ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1 },
		{ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof(code) / sizeof(*code),
		.license = (uintptr_t)"GPL",
	};

	return syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int attach(int cgroup, int program)
{
	union bpf_attr attr = {
		.target_fd = cgroup,
		.attach_bpf_fd = program,
		.attach_type = BPF_CGROUP_DEVICE,
	};

	return syscall(SYS_bpf, BPF_PROG_ATTACH, &attr, sizeof(attr));
}

/* What a process in the cgroup sees of node @i: the results of reads, as "-errno" of each. */
static void look_from_inside(int i, int *result)
{
	char text[PAGE];
	FILE *procs = fopen(CGROUP "/cgroup.procs", "we");

	if (!procs || fprintf(procs, "%d\n", getpid()) < 0 || fclose(procs)) {
		result[0] = 1;
		return;
	}
	result[1] = sysfs_read(text, sizeof(text), KFD_TOPOLOGY "/nodes/%d/gpu_id", i);
	result[2] = sysfs_read(text, sizeof(text), KFD_TOPOLOGY "/nodes/%d/name", i);
	result[3] = sysfs_read(text, sizeof(text), KFD_TOPOLOGY "/nodes/%d/properties", i);
	result[4] = sysfs_read(text, sizeof(text), KFD_TOPOLOGY "/nodes/%d/mem_banks/0/properties", i);
	result[5] = sysfs_read(text, sizeof(text), KFD_TOPOLOGY "/nodes/%d/io_links/0/properties", i);
	result[6] = sysfs_read(text, sizeof(text), KFD_TOPOLOGY "/nodes/%d/caches/0/properties", i);
	result[7] = sysfs_read(text, sizeof(text), KFD_TOPOLOGY "/nodes/0/properties");
}

static void check_hidden_in(int i, int cgroup)
{
	static const char *const files[] = { "gpu_id", "name", "properties", "mem_banks/0", "io_links/0" };
	int program = load_deny(prop(i, "drm_render_minor"));
	int result[8] = { 0 }, pipes[2], k;
	pid_t pid;

	if (program < 0 || attach(cgroup, program) || pipe(pipes)) {
		check_skip("device cgroup: no BPF program can be attached: %s", strerror(errno));
		return;
	}
	pid = fork();
	if (!pid) {
		look_from_inside(i, result);
		_exit(write(pipes[1], result, sizeof(result)) != sizeof(result));
	}
	if (read(pipes[0], result, sizeof(result)) != sizeof(result) || result[0])
		check_true(false, "node %d: a process enters the cgroup", i);
	waitpid(pid, NULL, 0);
	check_true(result[6] > 0, "node %d hidden by the device cgroup: its caches can be read since 6.2", i);
	for (k = 0; k < 5; k++)
		check_u64(-result[k + 1], EPERM, "node %d hidden by the device cgroup: %s answers EPERM", i, files[k]);
	check_true(result[7] > 0, "node 0 can still be read with node %d hidden", i);
	close(program);
	close(pipes[0]);
	close(pipes[1]);
}

static void check_hidden(void)
{
	int i = nr_nodes - 1, cgroup;

	if (mkdir(CGROUP, 0755) && errno != EEXIST) {
		check_skip("device cgroup: %s: %s", CGROUP, strerror(errno));
		return;
	}
	cgroup = open(CGROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup >= 0 && is_gpu(i))
		check_hidden_in(i, cgroup);
	else
		check_skip("device cgroup: it cannot be opened, or the last node is no GPU");
	close(cgroup);
	rmdir(CGROUP);
}

int main(void)
{
	int i;

	fill_cpu_properties();
	check_root();
	read_nodes();
	for (i = 0; i < nr_nodes; i++) {
		check_counts(i);
		check_banks(i);
		check_caches(i);
		read_links(i);
		if (is_gpu(i)) {
			check_gpu(i);
			check_render_node(i);
		} else {
			check_cpu(i);
		}
	}
	for (i = 0; i < nr_nodes; i++)
		check_links(i);
	check_unique();
	check_libdrm();
	check_hidden();
	return conformance_end();
}
