// SPDX-License-Identifier: GPL-2.0-only
/* Which queues are refused at dump, and how they are found in sysfs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>

#include "checkpoint/limits.h"
#include "amdgpu_plugin_util.h"

#define GPU 0x9e41u
#define PID 4711

static char line[1024];

static void print_line(unsigned int level, const char *fmt, ...)
{
	va_list args;

	if (level > PLUGIN_LOG_WARN)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
}

static void __attribute__((constructor)) log_start(void)
{
	plugin_log_to(print_line);
}

static struct topology *machine(uint64_t gfx, uint64_t num_xcc)
{
	struct topology *topology = topology_new();
	struct topology_node *node;

	assert_non_null(topology);
	assert_int_equal(topology_add_node(topology, 1, &node), 0);
	assert_int_equal(topology_node_set(node, TOPOLOGY_GPU_ID, GPU), 0);
	assert_int_equal(topology_node_set(node, TOPOLOGY_SIMD_COUNT, 480), 0);
	assert_int_equal(topology_node_set(node, TOPOLOGY_GFX_TARGET_VERSION, gfx), 0);
	assert_int_equal(topology_node_set(node, TOPOLOGY_NUM_XCC, num_xcc), 0);
	assert_int_equal(topology_finish(topology), 0);
	return topology;
}

static bool limited(uint64_t gfx, uint64_t num_xcc, const char *release)
{
	struct topology *topology = machine(gfx, num_xcc);
	bool ret = limits_of_queue(topology->nodes[0], release) != NULL;

	topology_free(topology);
	return ret;
}

static void queues_of_one_xcc_are_dumped_by_every_kernel(void **arg)
{
	(void)arg;
	assert_false(limited(90402, 1, "7.3.4"));
	assert_false(limited(90010, 1, "6.1.0-56-amd64"));
	assert_false(limited(100300, 1, "7.2.12-amd64"));
}

static void queues_of_several_xccs_are_refused_on_kernels_that_check_their_size(void **arg)
{
	static const char *const refused[] = { "6.18.42", "6.18.50-generic", "7.1.6", "7.2.0", "7.2-rc1", "7.3.4", "8.0.0" };
	static const char *const dumped[] = { "6.12.107+deb13-amd64", "6.17.9", "6.18.41", "7.0.13", "7.1.5", "odd" };

	(void)arg;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		assert_true(limited(90402, 8, refused[i]));
	for (size_t i = 0; i < ARRAY_SIZE(dumped); i++)
		assert_false(limited(90402, 8, dumped[i]));
}

static void queues_of_gfx11_and_later_are_refused(void **arg)
{
	(void)arg;
	assert_true(limited(110000, 1, "6.12.0"));
	assert_true(limited(120001, 1, "7.3.4"));
}

/* ROOT/PID/queues/0/gpuid, as the KFD shows it. */
static void make_queue(char *root, uint32_t gpu_id)
{
	static const char *const parts[] = { "/4711", "/queues", "/0" };
	char path[128];
	size_t len;
	FILE *f;

	strcpy(root, "/tmp/test_limits.XXXXXX");
	assert_non_null(mkdtemp(root));
	len = (size_t)snprintf(path, sizeof(path), "%s", root);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		len += (size_t)snprintf(path + len, sizeof(path) - len, "%s", parts[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	snprintf(path + len, sizeof(path) - len, "/gpuid");
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%u\n", gpu_id);
	assert_int_equal(fclose(f), 0);
}

static void remove_queue(const char *root)
{
	static const char *const parts[] = { "/4711/queues/0/gpuid", "/4711/queues/0", "/4711/queues", "/4711", "" };
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		snprintf(path, sizeof(path), "%s%s", root, parts[i]);
		assert_int_equal(remove(path), 0);
	}
}

static int check(uint64_t gfx, uint32_t gpu_id, bool try)
{
	struct topology *topology = machine(gfx, 1);
	char root[64];
	int err;

	line[0] = '\0';
	make_queue(root, gpu_id);
	err = limits_check_queues(root, PID, topology, try);
	remove_queue(root);
	topology_free(topology);
	return err;
}

/* Only in the initial pid namespace do the numbers in sysfs mean anything to us. */
static bool sees_queues(void)
{
	char name[64] = "";

	return readlink("/proc/self/ns/pid", name, sizeof(name) - 1) > 0 && !strcmp(name, "pid:[4026531836]");
}

static void a_queue_in_sysfs_is_refused_by_name(void **arg)
{
	(void)arg;
	if (!sees_queues()) {
		assert_int_equal(check(110000, GPU, false), 0);
		skip();
	}
	assert_int_equal(check(110000, GPU, false), -EOPNOTSUPP);
	assert_non_null(strstr(line, "Error (amdgpu_plugin): pid 4711"));
	assert_non_null(strstr(line, "gpu 0x9e41"));
	assert_non_null(strstr(line, "gfx version 110000"));
	assert_non_null(strstr(line, "KFD_RESTORABLE_CHECK=0"));
}

static void the_setting_makes_it_a_warning(void **arg)
{
	(void)arg;
	if (!sees_queues())
		skip();
	assert_int_equal(check(110000, GPU, true), 0);
	assert_non_null(strstr(line, "Warning: pid 4711"));
}

static void other_queues_and_other_gpus_pass(void **arg)
{
	(void)arg;
	assert_int_equal(check(90008, GPU, false), 0);
	assert_int_equal(check(110000, GPU + 1, false), 0);
	assert_string_equal(line, "");
}

static void a_process_without_a_directory_passes(void **arg)
{
	struct topology *topology = machine(110000, 1);

	(void)arg;
	assert_int_equal(limits_check_queues("/nowhere", PID, topology, false), 0);
	topology_free(topology);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queues_of_one_xcc_are_dumped_by_every_kernel),
		cmocka_unit_test(queues_of_several_xccs_are_refused_on_kernels_that_check_their_size),
		cmocka_unit_test(queues_of_gfx11_and_later_are_refused),
		cmocka_unit_test(a_queue_in_sysfs_is_refused_by_name),
		cmocka_unit_test(the_setting_makes_it_a_warning),
		cmocka_unit_test(other_queues_and_other_gpus_pass),
		cmocka_unit_test(a_process_without_a_directory_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
