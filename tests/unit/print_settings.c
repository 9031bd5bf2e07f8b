// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints the settings the way the man page has them, in AsciiDoc. tests/unit/docs compares.
 */
#include "host/settings.h"
#include "log_stub.h"

int main(void)
{
	for (enum setting id = 0; id < SETTING_MAX; id++) {
		const struct setting_info *info = setting_info(id);
		const char *value = info->default_value[0] ? info->default_value : "none";

		printf("*%s*::\n\t%s.\n\tValues: %s. Default: %s.\n\n", info->name, info->help, info->accepted, value);
	}
	return 0;
}
