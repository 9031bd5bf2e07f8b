// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-image: looks into images of processes with AMD GPUs, at machines that they may be restored on, and at
 * processes before their dump.
 *
 * The command is built on the plugin's own code, so that both agree, and needs neither criu nor, for images, a GPU. But
 * for "resume", it changes nothing and writes to nothing but its standard output. What is read belongs to strangers.
 */
#include <getopt.h>

#include <sys/resource.h>

#include "amdgpu_plugin_util.h"
#include "tool/commands.h"

static const char help[] =
	"usage: amdgpu-image [--json] COMMAND [ARGUMENT]\n\n"
	"  show      DIR|ARCHIVE  what is in the images\n"
	"  verify    DIR|ARCHIVE  are the images whole: structure, sizes, checksums\n"
	"  match     DIR|ARCHIVE  would they be restored here, and on which GPUs\n"
	"  check     PID          would this process and its descendants be dumped here\n"
	"  doctor                 what a dump or a restore would meet on this machine\n"
	"  resume    PID          lets GPU queues run that a killed criu has left stopped\n\n"
	"  --json          for programs; see amdgpu-image(1) for what it has\n"
	"  --machine DIR   match: a copy of another machine's /sys/class/kfd/kfd/topology\n"
	"  --images-dir DIR  check, doctor: where a dump would write\n"
	"  --help, --version\n\n"
	"status: 0 good, 1 damaged, does not fit or would not be dumped, 2 cannot be told\n";

static const struct command {
	const char *name;
	int (*run)(const struct arguments *arguments);
	bool wants_path;
} commands[] = {
	{ "show", command_show, true },	    { "verify", command_verify, true }, { "match", command_match, true },
	{ "check", command_check, true },   { "doctor", command_doctor, false }, { "resume", command_resume, true },
};

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
	if (arguments->machine && command->run != command_match)
		return wrong_usage("--machine is for match");
	if (arguments->images_dir && command->run != command_check && command->run != command_doctor)
		return wrong_usage("--images-dir is for check and doctor");
	arguments->path = argv[1];
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
		{ "json", no_argument, NULL, 'j' },   { "machine", required_argument, NULL, 'm' },
		{ "images-dir", required_argument, NULL, 'i' },
		{ "help", no_argument, NULL, 'h' },   { "version", no_argument, NULL, 'v' },
		{ 0 },
	};
	struct arguments arguments = { 0 };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (option == 'j') {
			print_start(true);
		} else if (option == 'm') {
			arguments.machine = optarg;
		} else if (option == 'i') {
			arguments.images_dir = optarg;
		} else if (option == 'h' || option == 'v') {
			fputs(option == 'h' ? help : "amdgpu-image " PLUGIN_VERSION "\n", stdout);
			return TOOL_GOOD;
		} else {
			return TOOL_FAIL;
		}
	}
	return run(argc - optind, argv + optind, &arguments);
}

int main(int argc, char **argv)
{
	int status;

	limit_memory();
	print_start(false);
	status = parse_and_run(argc, argv);
	complain_failure();
	/* A full disk or a closed pipe must not look like an answer. */
	if (fflush(stdout) || ferror(stdout))
		return complain("cannot write: %s", strerror(errno));
	return status;
}
