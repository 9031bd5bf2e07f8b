/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Settings: options, environment variables and configuration files in one struct. Three sources, the later ones win:
 *   1. SETTINGS_IMAGE_CONF in the image directory,
 *   2. the machine's file (normally SETTINGS_MACHINE_CONF),
 *   3. criu's options (options.c), else environment variables.
 * Images travel between machines: the first file may have KFD_DEVICE_MAP and KFD_MAX_BUFFER_SIZE, and nothing else.
 *
 * Files hold lines "KEY = VALUE"; "#" at the start of a line or after white space begins a comment. Unknown keys, keys
 * given twice and bad values are errors. The keys are the names of the environment variables.
 */
#ifndef HOST_SETTINGS_H
#define HOST_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"

#define SETTINGS_MACHINE_CONF "/etc/criu/amdgpu_plugin.conf"
#define SETTINGS_IMAGE_CONF   "amdgpu_plugin.conf"

enum setting {
	/* Flags: index of settings.flag[] */
	SETTING_FW_VER_CHECK,
	SETTING_SDMA_FW_VER_CHECK,
	SETTING_CACHES_COUNT_CHECK,
	SETTING_NUM_GWS_CHECK,
	SETTING_VRAM_SIZE_CHECK,
	SETTING_NUMA_CHECK,
	SETTING_CAPABILITY_CHECK,
	SETTING_RESTORABLE_CHECK,
	SETTING_SHARING_CHECK,
	SETTING_N_FLAGS, /* all above are checks */
	/* Others */
	SETTING_MAX_BUFFER_SIZE = SETTING_N_FLAGS,
	SETTING_DEVICE_MAP,
	SETTING_PROGRESS,
	SETTING_IDLE_WAIT,
	SETTING_MAX,
};

/* Where a value comes from. */
enum setting_source { SETTING_BY_DEFAULT, SETTING_OF_MACHINE, SETTING_OF_IMAGE, SETTING_OF_ENVIRONMENT };

struct settings {
	enum setting_source from[SETTING_MAX];
	bool flag[SETTING_N_FLAGS];
	uint64_t max_buffer_size_bytes; /* multiple of the page size; 0: the built-in default */
	unsigned int n_device_map;
	struct device_map_entry device_map[TOPOLOGY_MAX_NODES];
	char progress[PATH_MAX]; /* "": no progress file */
	unsigned int idle_wait_seconds; /* of a dump, for kernels to end */
	char mistake[FAIL_TEXT_MAX]; /* the words of settings_check(); "": none */
};

/* Same contract as getenv(): NULL when unset, not owned by the caller. */
typedef const char *(*settings_getenv_fn)(const char *name);

/*
 * machine_conf	path of the machine's file; it may be absent; NULL: none
 * image_dir_fd	directory that may hold SETTINGS_IMAGE_CONF, or that file itself at its start; -1: none
 * getenv_fn	environment look-up; NULL: no environment
 *
 * Returns 0, or -errno (-EINVAL for anything wrong in what was written). *ret is
 * written on success only; it holds no resources.
 */
int settings_load(struct settings *ret, const char *machine_conf, int image_dir_fd, settings_getenv_fn getenv_fn);

/*
 * The same for a criu that may have no GPU process to deal with: after a mistake every setting is at its default, and
 * settings_check() says what is wrong.
 */
void settings_load_quietly(struct settings *ret, const char *machine_conf, int image_dir_fd,
			   settings_getenv_fn getenv_fn);

/* To be called before settings are used for a process with a GPU. 0, or -EINVAL with the words that were kept. */
int settings_check(const struct settings *settings);

/* Name of the variable, e.g. "KFD_NUMA_CHECK". */
const char *setting_name(enum setting id);

/* The flag of that name, which has to be one. */
bool settings_flag(const struct settings *settings, const char *name);

/* The values that it takes, in words. */
const char *setting_accepted(enum setting id);

/* ---- settings as options of the running criu, where it has such ---- */

/* A settings_getenv_fn: the last --plugin-option for the setting, else the environment variable. */
const char *options_or_environment(const char *name);

/*
 * Keeps as the mistake in @settings, if there is none yet, that an option of this plugin is no setting. A variable of the
 * environment may be another user's.
 */
void options_check(struct settings *settings);

#endif
