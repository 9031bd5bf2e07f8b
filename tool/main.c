// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-checkpoint: looks into images of processes with AMD GPUs, at machines that they may be restored on, and at
 * processes before their dump.
 *
 * The command is built on the plugin's own code, so that both agree, and needs neither criu nor, for images, a GPU. But
 * for "suspend" and "resume", it changes nothing and writes to nothing but its standard output. What is read belongs to strangers.
 */
#include <getopt.h>
#include <sys/resource.h>

#include "amdgpu_plugin_util.h"
#include "tool/commands.h"

static const char help[] =
	"usage: amdgpu-checkpoint [--json] COMMAND [OPTION]... [ARGUMENT]...\n\n"
	"  show    DIR|ARCHIVE  print what the images contain\n"
	"  verify  DIR|ARCHIVE  are the images complete and undamaged?\n"
	"  match   DIR|ARCHIVE  can they be restored here, and on which GPUs?\n"
	"  check   PID          can this process and its descendants be dumped here?\n"
	"  doctor               is this machine ready for dumps and restores?\n"
	"  suspend PID...       free GPU memory of running processes and keep them stopped\n"
	"  resume  PID...       undo suspend; also restart queues left stopped by a killed criu\n"
	"  follow               suspend processes while their cgroup is frozen\n"
	"  state   [PID...]     list suspended processes\n"
	"  lock, checkpoint     suspend in two steps, for processes of several machines\n"
	"  restore, unlock      resume in two steps\n"
	"  toggle  PID...       suspend or resume, and\n"
	"  get-state PID...     print one word, as cuda-checkpoint does\n\n"
	"  --json               print one JSON object: amdgpu-checkpoint-json(5)\n"
	"  -h, --help           this help; with a command, its options\n"
	"  -V, --version\n\n"
	"status: 0 good; 1 damaged, does not fit or refused; 2 unknown, after an error;\n"
	"3 suspended, but less than half of the VRAM is free; resumed, but a GPU was reset\n"
#ifdef HOMEPAGE
	"\n" HOMEPAGE "\n"
#endif
	;

#define CGROUP_HELP "  --cgroup PATH     all processes in a cgroup and below it\n"
#define DIR_HELP    "  -D, --dir DIR     write buffer data below DIR, not into memory\n"
#define TIMEOUT_HELP "  --timeout SECONDS let the processes run on if it takes longer\n"
#define TREE_HELP   "  --tree            with all descendants\n"
#define IMAGES_HELP "  --images-dir DIR  would the images have room in DIR?\n"

enum argument { NOTHING, IMAGES, PID, PIDS };

static const struct command {
	const char *name;
	int (*run)(const struct arguments *arguments);
	enum argument wants;
	const char *synopsis, *options;
	enum suspend_verb verb;
} commands[] = {
	{ "show", command_show, IMAGES, "show DIR|ARCHIVE", "", NO_VERB },
	{ "verify", command_verify, IMAGES, "verify DIR|ARCHIVE", "", NO_VERB },
	{ "match", command_match, IMAGES, "match [--machine DIR] DIR|ARCHIVE",
	  "\n  --machine DIR     a copy of another machine's /sys/class/kfd/kfd/topology\n", NO_VERB },
	{ "check", command_check, PID, "check [--images-dir DIR] PID", "\n" IMAGES_HELP, NO_VERB },
	{ "doctor", command_doctor, NOTHING, "doctor [--images-dir DIR]", "\n" IMAGES_HELP, NO_VERB },
	{ "suspend", command_verb, PIDS, "suspend [-D DIR] [--timeout SECONDS] [--tree] PID... | --cgroup PATH",
	  "\n" DIR_HELP TIMEOUT_HELP TREE_HELP CGROUP_HELP, SUSPEND },
	{ "resume", command_verb, PIDS, "resume [--wait SECONDS] [--tree] PID... | --cgroup PATH",
	  "\n  --wait SECONDS    wait for memory that others use\n" TREE_HELP CGROUP_HELP, RESUME },
	{ "lock", command_verb, PIDS, "lock [--timeout SECONDS] [--tree] PID... | --cgroup PATH",
	  "\n" TIMEOUT_HELP TREE_HELP CGROUP_HELP, LOCK },
	{ "checkpoint", command_verb, PIDS, "checkpoint [-D DIR] [--timeout SECONDS] [--tree] PID... | --cgroup PATH",
	  "\n" DIR_HELP TIMEOUT_HELP TREE_HELP CGROUP_HELP, CHECKPOINT },
	{ "restore", command_verb, PIDS, "restore [--wait SECONDS] [--tree] PID... | --cgroup PATH",
	  "\n  --wait SECONDS    wait for memory that others use\n" TREE_HELP CGROUP_HELP, RESTORE },
	{ "unlock", command_verb, PIDS, "unlock [--tree] PID... | --cgroup PATH", "\n" TREE_HELP CGROUP_HELP, UNLOCK },
	{ "follow", command_follow, NOTHING, "follow [-D DIR] [--stopped] --cgroup PATH",
	  "\n" DIR_HELP CGROUP_HELP "  --stopped         also processes that SIGSTOP has stopped, until SIGCONT\n", NO_VERB },
	{ "state", command_state, PIDS, "state [PID...] | --until STATE [--wait SECONDS] PID...",
	  "\n  --until STATE     wait until all are running, locked or suspended\n"
	  "  --wait SECONDS    with --until: wait at most so long\n", NO_VERB },
	{ "toggle", command_toggle, PIDS, "toggle PID...", "", NO_VERB },
	{ "get-state", command_get_state, PIDS, "get-state PID...", "", NO_VERB },
};

static int parse_pid(const char *text, int *ret)
{
	char *end;
	long pid = strtol(text, &end, 10);

	if (pid <= 0 || pid > INT32_MAX || *end)
		return complain("\"%s\" is not a pid", text);
	*ret = (int)pid;
	return TOOL_GOOD;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

/* Honest images need far less memory. What those of others need beyond that is refused. */
#ifndef MEMORY_MAX
#define MEMORY_MAX (4ull << 30)
#endif

static int run_command(int argc, char **argv, struct arguments *arguments)
{
	static const char *const wanted[] = { "no argument", "one directory or archive", "one pid" };
	const struct command *command = argc ? find_command(argv[0]) : NULL;
	struct rlimit limit;
	int resource;

	if (!argc)
		return complain("which command? (--help names them)");
	if (!command)
		return complain("there is no command \"%s\" (--help says more)", argv[0]);
	if (command->wants != PIDS && argc != 1 + (command->wants != NOTHING))
		return complain("%s wants %s (--help says more)", command->name, wanted[command->wants]);
	if (arguments->machine && command->run != command_match)
		return complain("--machine works with match only");
	if (arguments->stopped && command->run != command_follow)
		return complain("--stopped works with follow only");
	if (arguments->timeout && command->verb != SUSPEND && command->verb != LOCK && command->verb != CHECKPOINT)
		return complain("--timeout works with suspend, lock and checkpoint only");
	if (arguments->until && command->run != command_state)
		return complain("--until works with state only");
	if (arguments->images_dir && command->run != command_check && command->run != command_doctor)
		return complain("--images-dir works with check and doctor only");
	arguments->verb = command->verb;
	arguments->path = command->wants == IMAGES && !strcmp(argv[1], "-") ? "/dev/stdin" : argv[1];
	/* Of memory, for reading images; else of open files: the kernel opens a dma-buf here for each buffer of a process. */
	resource = command->wants == IMAGES ? RLIMIT_DATA : RLIMIT_NOFILE;
	if (!getrlimit(resource, &limit)) {
		if (resource == RLIMIT_NOFILE)
			limit.rlim_cur = limit.rlim_max;
		else if (limit.rlim_cur > MEMORY_MAX)
			limit.rlim_cur = MEMORY_MAX;
		setrlimit(resource, &limit);
	}
	if (command->wants == PID && parse_pid(argv[1], &arguments->pid))
		return TOOL_FAIL;
	arguments->pids = calloc((size_t)argc, sizeof(*arguments->pids));
	if (!arguments->pids)
		return complain("%s", strerror(ENOMEM));
	for (int i = 1; command->wants == PIDS && i < argc; i++)
		if (parse_pid(argv[i], &arguments->pids[arguments->nr_pids++]))
			return TOOL_FAIL;
	return command->run(arguments);
}

/* Options that are fields of the arguments, by their places there: a text, or a flag where none follows. */
#define FIELDS	  0x100
#define AT(field) (FIELDS + (int)offsetof(struct arguments, field))

enum { VERSION = -1, UNKNOWN = -2, HELP = -3 };

/* TOOL_GOOD; HELP or VERSION: the option was the question; UNKNOWN: one is wrong, which *ret_wrong has. */
static int parse_options(int argc, char **argv, struct arguments *arguments, bool *json, const char **ret_wrong)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "machine", required_argument, NULL, AT(machine) },
		{ "images-dir", required_argument, NULL, AT(images_dir) },
		{ "dir", required_argument, NULL, AT(dir) },
		{ "tree", no_argument, NULL, AT(tree) },
		{ "stopped", no_argument, NULL, AT(stopped) },
		{ "cgroup", required_argument, NULL, AT(cgroup) },
		{ "wait", required_argument, NULL, AT(wait) },
		{ "timeout", required_argument, NULL, AT(timeout) },
		{ "until", required_argument, NULL, AT(until) },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	int option, status = TOOL_GOOD;
	void *field;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "hVD:", options, NULL)) >= 0) {
		if (option == 'V')
			return VERSION;
		if (option == 'h')
			status = HELP;
		*json |= option == 'j';
		option = option == 'D' ? AT(dir) : option;
		field = (char *)arguments + (option - FIELDS);
		if (option >= FIELDS && optarg)
			*(const char **)field = optarg;
		else if (option >= FIELDS)
			*(bool *)field = true;
		if (option == '?' && status == TOOL_GOOD) {
			status = UNKNOWN;
			*ret_wrong = argv[optind - 1];
		}
	}
	return status;
}

static int parse_and_run(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	const char *wrong = NULL;
	bool json = false;
	int status = parse_options(argc, argv, &arguments, &json, &wrong);

	if (status == VERSION) {
		printf("amdgpu-checkpoint %s\n", plugin_version);
		return TOOL_GOOD;
	}
	if (status == HELP || (optind < argc && !strcmp(argv[optind], "help"))) {
		const char *name = argv[optind + (optind < argc && status != HELP)];
		const struct command *command = name ? find_command(name) : NULL;

		if (command)
			printf("usage: amdgpu-checkpoint %s\n%s\nMore: man amdgpu-checkpoint\n", command->synopsis, command->options);
		else
			fputs(help, stdout);
		return TOOL_GOOD;
	}
	print_start(json);
	print_object(NULL);
	if (status == UNKNOWN)
		complain("option \"%s\" is not known, or wants an argument (--help says more)", wrong);
	else
		status = run_command(argc - optind, argv + optind, &arguments);
	complain_failure();
	free(arguments.pids);
	return status == UNKNOWN ? TOOL_FAIL : status;
}

int main(int argc, char **argv)
{
	print_start(false);
	return print_finish(parse_and_run(argc, argv));
}
