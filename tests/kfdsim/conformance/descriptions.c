// SPDX-License-Identifier: GPL-2.0-only
/*
 * Descriptions that users make: a mistake is one line of the log with file and line, and no module; what is right
 * loads and has the GPUs that it says. At the end loads the machine again that was there.
 */
#include "kfd_test.h"

#define DESCRIPTION "/tmp/descriptions-%u.txt"
#define CPU	    "[cpu]\n"
#define GPU	    CPU "[gpu]\ngfx_target_version = 90008\ndevice_id = 0x738c\nvram_size = 16G\nsimd_count = 480\n"

static unsigned int nr_written;

/* What kfdsim-load says of @text, the kernel's last lines included. Returns whether it loaded. */
static bool load(const char *text, char *ret_said, size_t size)
{
	char path[64], command[128];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), DESCRIPTION, ++nr_written);
	f = fopen(path, "we");
	if (!f || fputs(text, f) < 0 || fclose(f))
		err(2, "%s", path);
	snprintf(command, sizeof(command), "kfdsim-load %s 2>&1", path);
	f = popen(command, "re");
	if (!f)
		err(2, "%s", command);
	n = fread(ret_said, 1, size - 1, f);
	ret_said[n] = 0;
	return !pclose(f);
}

static void check_refused(unsigned int line, const char *reason, const char *text)
{
	char said[16384], wanted[256], *at;

	if (!check_true(!load(text, said, sizeof(said)), "refused: %s", reason))
		return;
	snprintf(wanted, sizeof(wanted), "descriptions-%u.txt:", nr_written);
	at = strstr(said, wanted);
	if (at)
		at[strcspn(at, "\n")] = 0;
	snprintf(wanted, sizeof(wanted), "descriptions-%u.txt:%u: %s", nr_written, line, reason);
	check_true(at && !strncmp(at, wanted, strlen(wanted)), "... by that in line %u (said \"%s\")", line,
		   at ? at : "");
	check_true(access("/dev/kfd", F_OK) < 0, "... and nothing is loaded");
}

static void check_text(void)
{
	check_refused(1, "\"cpu_cores_count = 1\" stands before the first [section]", "cpu_cores_count = 1\n");
	check_refused(2, "\"hello\" is neither [section] nor key = value", CPU "hello\n");
	check_refused(2, "\"[gpu\" is not a [section]", CPU "[gpu\n");
	check_refused(2, "key or value is empty", CPU "memory =\n");
	check_refused(2, "no section is called [disk]", CPU "[disk]\n");
	check_refused(1, "[cache] stands before the first [cpu] or [gpu]", "[cache]\nlevel = 1\n");
	check_refused(2, "[cpu] has no key \"colour\"", CPU "colour = 1\n");
	check_refused(2, "release: \"5.4\" is none of", "[kernel]\nrelease = 5.4\n" GPU);
}

static void check_numbers(void)
{
	check_refused(2, "memory: \"lots\" is not a number", CPU "memory = lots\n");
	check_refused(2, "memory: \"08\" is not a number", CPU "memory = 08\n");
	check_refused(2, "memory: \"1GB\" is not a number", CPU "memory = 1GB\n");
	check_refused(2, "memory: \"0x10000000000000000\" is too large", CPU "memory = 0x10000000000000000\n");
	check_refused(2, "memory: \"16777216T\" is too large", CPU "memory = 16777216T\n");
	check_refused(7, "lds_size_in_kb: 4294967296 is too large", GPU "lds_size_in_kb = 4G\n");
	check_refused(7, "name: 3 values for 1 nodes", GPU "name = a, b, c\n");
	check_refused(7, "caches_count follows from the node's lists", GPU "caches_count = 3\n");
	check_refused(7, "partitions: must be 1 to 8", GPU "partitions = 9\n");
}

static void check_nodes(void)
{
	check_refused(1, "no [cpu] node",
		      "[gpu]\ngfx_target_version = 90008\ndevice_id = 1\nvram_size = 1G\nsimd_count = 4\n");
	check_refused(2, "[gpu] needs device_id, vram_size and simd_count", CPU "[gpu]\ngfx_target_version = 90008\n");
	check_refused(2, "[gpu] needs gfx_target_version, 90000 or more", GPU "gfx_target_version = 80003\n");
	check_refused(2, "vram_size is no multiple of the page size", GPU "vram_size = 1000000\n");
	check_refused(2, "simd_count, simd_per_cu", GPU "simd_per_cu = 0\n");
	check_refused(2, "more than 1024 SDMA queues per engine", GPU "num_sdma_queues_per_engine = 4000000000\n");
	check_refused(7, "pci: \"41:00\" is not DDDD:BB:DD.F", GPU "pci = 41:00\n");
	check_refused(2, "gpu_id 0x17 is already that of node 1", GPU "count = 2\ngpu_id = 0x17\n");
	check_refused(2, "card_minor 64, drm_render_minor 128: not in", GPU "card_minor = 64\n");
	check_refused(2, "node 1: link from node 1 to node 7", GPU "[io_link]\nnode_to = 7\n");
}

static void check_loads(unsigned int gpus, unsigned int first_minor, const char *what, const char *text)
{
	char said[16384];

	if (!check_true(load(text, said, sizeof(said)), "loads: %s", what)) {
		printf("%s\n", said);
		return;
	}
	check_u64(count_gpus(NULL), gpus, "... GPUs");
	check_u64(node_gpu(0).render_minor, first_minor, "... first render minor");
	close(render_open(first_minor));
}

static void check_good(void)
{
	check_loads(1, 128, "the least that there can be", GPU);
	check_loads(1, 128, "comments, spaces, no newline at the end",
		    "# a\n\n \t[ cpu ] # b\nmemory=1K#c\n" GPU "\tname =  a b \t\n#");
	check_loads(3, 140, "numbers, lists and steps",
		    GPU "count = 3\nvram_size = 0x10000000, 02000000000, 268435456\n"
			"gpu_id = 0xfff0 + 1\ndrm_render_minor = 140 + 7\ncard_minor = 2, 9, 5\n");
	check_loads(4, 128, "partitions at an address of their own",
		    GPU "count = 2\npartitions = 2\npci = 0007:10:1f.3 + 2\n");
	check_loads(1, 191, "the last minors, a tiny VRAM",
		    GPU "vram_size = 4K\ndrm_render_minor = 191\ncard_minor = 63\n");
}

int main(void)
{
	char original[512], command[600];
	FILE *f = fopen("/sys/module/kfdsim/parameters/gpus", "re");

	if (!f || !fgets(original, sizeof(original), f))
		errx(2, "the module kfdsim is not loaded");
	fclose(f);
	original[strcspn(original, "\n")] = 0;
	check_text();
	check_numbers();
	check_nodes();
	check_good();
	snprintf(command, sizeof(command), "kfdsim-load '%s'", original);
	check_u64(system(command), 0, "the machine that was there loads again");
	return conformance_end();
}
