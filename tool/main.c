// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-image: looks into images of processes with AMD GPUs, and at machines that they may be restored on.
 *
 * It is built on the plugin's own code, so that both agree about every image, and needs neither criu nor a GPU. But for
 * "resume", it changes nothing and writes to nothing but its standard output. What is read belongs to strangers: see images.c.
 */
#include <getopt.h>

#include <sys/resource.h>

#include "amdgpu_plugin_util.h"
#include "kernel/kernel.h"
#include "tool/commands.h"

static const struct command {
	const char *name;
	int (*run)(const struct arguments *arguments);
	bool wants_path;
	bool takes_machine;
	const char *help;
} commands[] = {
	{ "show", command_show, true, false, "DIR|ARCHIVE\twhat is in the images" },
	{ "verify", command_verify, true, false, "DIR|ARCHIVE\tare the images whole: structure, sizes, checksums" },
	{ "match", command_match, true, true, "DIR|ARCHIVE\twould they be restored here, and on which GPUs" },
	{ "doctor", command_doctor, false, false, "\twhat a dump or a restore would meet on this machine" },
	{ "resume", command_resume, true, false, "PID\tlets GPU queues run that a killed criu has left stopped" },
};

static void usage(FILE *out)
{
	fputs("usage: amdgpu-image [--json] COMMAND [ARGUMENT]\n\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		const char *tab = strchr(commands[i].help, '\t');

		fprintf(out, "  %-8s  %-11.*s  %s\n", commands[i].name, (int)(tab - commands[i].help), commands[i].help,
			tab + 1);
	}
	fputs("\n"
	      "  --json          for programs; see amdgpu-image(1) for what it has\n"
	      "  --machine DIR   match: a copy of another machine's " SYSFS_TOPOLOGY_ROOT "\n"
	      "  --help, --version\n"
	      "\n"
	      "status: 0 good, 1 damaged or does not fit, 2 cannot be told\n",
	      out);
}

static int wrong_usage(const char *what)
{
	complain("%s (--help says more)", what);
	return TOOL_FAIL;
}

static int run(int argc, char **argv, struct arguments *arguments)
{
	const struct command *command = NULL;

	if (argc == 0)
		return wrong_usage("which command?");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[0], commands[i].name))
			command = &commands[i];
	if (!command)
		return wrong_usage("there is no such command");
	if (command->wants_path && argc < 2)
		return wrong_usage("which images, or which process?");
	if (argc > 1 + command->wants_path)
		return wrong_usage("too many arguments");
	if (arguments->machine && !command->takes_machine)
		return wrong_usage("--machine is for match");
	arguments->path = command->wants_path ? argv[1] : NULL;
	return command->run(arguments);
}

/* Honest images need far less. What a stranger's need beyond that is refused, not taken from others. */
#ifndef MEMORY_MAX
#define MEMORY_MAX (4ull << 30)
#endif

static void limit_memory(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_DATA, &limit) || limit.rlim_cur <= MEMORY_MAX)
		return;
	limit.rlim_cur = MEMORY_MAX;
	setrlimit(RLIMIT_DATA, &limit);
}

static int parse_and_run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "machine", required_argument, NULL, 'm' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ 0 },
	};
	struct arguments arguments = { 0 };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (option) {
		case 'j':
			arguments.json = true;
			break;
		case 'm':
			arguments.machine = optarg;
			break;
		case 'h':
			usage(stdout);
			return TOOL_GOOD;
		case 'v':
			puts("amdgpu-image " PLUGIN_VERSION);
			return TOOL_GOOD;
		default:
			return TOOL_FAIL;
		}
	}
	return run(argc - optind, argv + optind, &arguments);
}

int main(int argc, char **argv)
{
	int status;

	limit_memory();
	print_start();
	status = parse_and_run(argc, argv);
	/* A full disk or a closed pipe must not look like an answer. */
	if (fflush(stdout) || ferror(stdout))
		return complain("cannot write: %s", strerror(errno));
	return status;
}
