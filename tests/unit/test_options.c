// SPDX-License-Identifier: GPL-2.0-only
/*
 * Settings as options of criu. This program stands in for a criu that has them, or fails to tell.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "host/options.h"
#include "log_stub.h"

static char *given[8];
static int fails;

int criu_plugin_get_options(int *argc, char ***argv);
int criu_plugin_get_options(int *argc, char ***argv)
{
	for (*argc = 0; given[*argc]; (*argc)++)
		;
	*argv = given;
	return fails;
}

static void options(const char *first, const char *second, const char *third)
{
	const char *all[] = { "criu-plugin", first, second, third };

	fails = 0;
	memset(given, 0, sizeof(given));
	for (size_t i = 0; i < 4 && all[i]; i++)
		given[i] = (char *)all[i];
}

static void load(struct settings *settings)
{
	log_clear();
	settings_load_quietly(settings, NULL, -1, options_or_environment, NULL);
	options_check(settings);
}

static void options_are_settings(void **state)
{
	struct settings settings;

	(void)state;
	options("--amdgpu_plugin.device-map=renderD128=renderD129", "--amdgpu_plugin.max-buffer-size=64M",
		"--amdgpu_plugin.fw-ver-check=0");
	load(&settings);
	assert_string_equal(settings.mistake, "");
	assert_int_equal(settings.n_device_map, 1);
	assert_int_equal(settings.device_map[0].local.value, 129);
	assert_int_equal(settings.max_buffer_size_bytes, 64 << 20);
	assert_false(settings.flag[SETTING_FW_VER_CHECK]);
	assert_true(settings.flag[SETTING_SDMA_FW_VER_CHECK]);
}

static void the_last_option_counts_and_comes_before_the_environment(void **state)
{
	struct settings settings;

	(void)state;
	setenv("KFD_MAX_BUFFER_SIZE", "1M", 1);
	options(NULL, NULL, NULL);
	load(&settings);
	assert_int_equal(settings.max_buffer_size_bytes, 1 << 20);
	options("--amdgpu_plugin.max-buffer-size=2M", "--amdgpu_plugin.max-buffer-size=4M", NULL);
	load(&settings);
	assert_int_equal(settings.max_buffer_size_bytes, 4 << 20);
	fails = -22;
	load(&settings);
	assert_int_equal(settings.max_buffer_size_bytes, 1 << 20);
	unsetenv("KFD_MAX_BUFFER_SIZE");
}

static void options_of_other_plugins_are_theirs(void **state)
{
	struct settings settings;

	(void)state;
	options("--cuda_plugin.device-map=a", "--amdgpu_plugin_too.nonsense", "--timeout=3");
	load(&settings);
	assert_string_equal(settings.mistake, "");
	assert_int_equal(settings.n_device_map, 0);
}

static void mistakes_are_kept(void **state)
{
	static const char *const wrong[] = {
		"--amdgpu_plugin.device-mapp=renderD128=renderD129", "--amdgpu_plugin.device",
		"--amdgpu_plugin.KFD_DEVICE_MAP=1=2",		     "--amdgpu_plugin.device-map",
		"--amdgpu_plugin.progress",			     "--amdgpu_plugin.fw-ver-check",
		"--amdgpu_plugin.fw-ver-check=perhaps",		     "--amdgpu_plugin.",
	};
	struct settings settings;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		options(wrong[i], NULL, NULL);
		load(&settings);
		assert_string_not_equal(settings.mistake, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_settings),
		cmocka_unit_test(the_last_option_counts_and_comes_before_the_environment),
		cmocka_unit_test(options_of_other_plugins_are_theirs),
		cmocka_unit_test(mistakes_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
