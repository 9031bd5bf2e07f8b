// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints the settings the way a document has them: "markdown" for README.md, "asciidoc"
 * for the man page. tests/unit/docs compares.
 */
#include "host/settings.h"
#include "log_stub.h"

static const char *or_none(const char *value)
{
	return value[0] ? value : "none";
}

static void print_markdown(void)
{
	enum setting id;

	printf("| setting | values | default | effect |\n|---|---|---|---|\n");
	for (id = 0; id < SETTING_MAX; id++) {
		const struct setting_info *info = setting_info(id);

		printf("| `%s` | %s | %s | %s |\n", info->name, info->accepted, or_none(info->default_value), info->help);
	}
}

static void print_asciidoc(void)
{
	enum setting id;

	for (id = 0; id < SETTING_MAX; id++) {
		const struct setting_info *info = setting_info(id);

		printf("*%s*::\n\t%s.\n\tValues: %s. Default: %s.\n\n", info->name, info->help, info->accepted,
		       or_none(info->default_value));
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "markdown"))
		print_markdown();
	else if (argc == 2 && !strcmp(argv[1], "asciidoc"))
		print_asciidoc();
	else
		return 2;
	return 0;
}
