// SPDX-License-Identifier: GPL-2.0-only
/*
 * Settings as options of criu. This program stands in for a criu that has them, or fails to tell.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "host/settings.h"
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
	settings_load_quietly(settings, NULL, -1, options_or_environment);
	options_check(settings);
}

TEST(options_are_settings)
{
	struct settings settings;

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

TEST(the_last_option_counts_and_comes_before_the_environment)
{
	struct settings settings;

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

TEST(options_of_other_plugins_are_theirs)
{
	struct settings settings;

	options("--cuda_plugin.device-map=a", "--amdgpu_plugin_too.nonsense", "--timeout=3");
	load(&settings);
	assert_string_equal(settings.mistake, "");
	assert_int_equal(settings.n_device_map, 0);
}

TEST(mistakes_are_kept)
{
	static const char *const wrong[] = {
		"--amdgpu_plugin.device-mapp=renderD128=renderD129", "--amdgpu_plugin.device",
		"--amdgpu_plugin.KFD_DEVICE_MAP=1=2",		     "--amdgpu_plugin.device-map",
		"--amdgpu_plugin.progress",			     "--amdgpu_plugin.fw-ver-check",
		"--amdgpu_plugin.fw-ver-check=perhaps",		     "--amdgpu_plugin.",
	};
	struct settings settings;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		options(wrong[i], NULL, NULL);
		load(&settings);
		assert_string_not_equal(settings.mistake, "");
	}
}

UNIT_MAIN(NULL, NULL)
