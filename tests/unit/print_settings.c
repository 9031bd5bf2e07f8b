// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints the settings and their values the way the man page has them, in AsciiDoc. tests/unit/docs compares.
 */
#include "host/settings.h"
#include "log_stub.h"

int main(void)
{
	for (enum setting id = 0; id < SETTING_MAX; id++)
		printf("*%s*::\n\tValues: %s.\n", setting_name(id), setting_accepted(id));
	return 0;
}
