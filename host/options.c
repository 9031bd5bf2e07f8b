// SPDX-License-Identifier: GPL-2.0-only
/*
 * Settings as options of criu, "--plugin-option amdgpu_plugin.device-map=..." on its command line, in its configuration
 * files and in requests of container engines. KFD_DEVICE_MAP is device-map there, and so on.
 *
 * criu hands over the options of all plugins, each with two dashes before it. Those of others are theirs; it does not
 * say when nobody knows one.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>

#include "host/settings.h"
#include "amdgpu_plugin_util.h"

#define OPTION_PREFIX  "--amdgpu_plugin."
#define SETTING_PREFIX "KFD_"
/* An option without "=VALUE" gets this value, which every setting refuses in its usual words. */
#define NO_VALUE       "(no value)"

/* criu's function, looked up: older versions have none. The strings stay criu's. */
int criu_plugin_get_options(int *argc, char ***argv);

static unsigned int get_options(char ***ret)
{
	__typeof__(&criu_plugin_get_options) get =
		(__typeof__(&criu_plugin_get_options))dlsym(RTLD_DEFAULT, "criu_plugin_get_options");
	int n = 0;

	return get && !get(&n, ret) && n > 0 ? (unsigned int)n : 0;
}

/* What follows the name of the setting in the option: "=VALUE" or "". NULL: the option is of something else. */
static const char *behind_name(const char *option, const char *setting)
{
	if (strncmp(option, OPTION_PREFIX, strlen(OPTION_PREFIX)))
		return NULL;
	option += strlen(OPTION_PREFIX);
	for (setting += strlen(SETTING_PREFIX); *setting; setting++, option++)
		if (*option != (*setting == '_' ? '-' : tolower((unsigned char)*setting)))
			return NULL;
	return *option && *option != '=' ? NULL : option;
}

const char *options_or_environment(const char *name)
{
	const char *value = getenv(name);
	char **options;
	unsigned int n = get_options(&options);

	for (unsigned int i = 0; i < n; i++) {
		const char *rest = behind_name(options[i], name);

		if (rest)
			value = *rest ? rest + 1 : NO_VALUE;
	}
	return value;
}

void options_check(struct settings *settings)
{
	char **options;
	unsigned int n = get_options(&options);

	for (unsigned int i = 0; i < n && !settings->mistake[0]; i++) {
		bool is_known = strncmp(options[i], OPTION_PREFIX, strlen(OPTION_PREFIX));

		for (unsigned int id = 0; id < SETTING_MAX && !is_known; id++)
			is_known = behind_name(options[i], setting_name((enum setting)id));
		if (!is_known)
			snprintf(settings->mistake, sizeof(settings->mistake),
				 "criu's option --plugin-option %.200s is not a setting of this plugin", options[i] + 2);
	}
}
