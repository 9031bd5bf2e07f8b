// SPDX-License-Identifier: GPL-2.0-only
/*
 * Command line of gpujob.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpujob_extra.h"

static const char usage[] =
	"Usage: gpujob --state FILE [OPTION...]\n"
	"A GPU process that checks its own results. Sizes take K, M, G; counts of bytes are per GPU.\n"
	"  --gpus all|none|N[,N...]\n"
	"                       which GPUs to use, counted from 0 in sysfs order (all); all are opened anyway\n"
	"  --vram SIZE          static data in VRAM (1M)\n"
	"  --gtt SIZE           static data in GTT (256K)\n"
	"  --userptr SIZE       static data in userptr memory (256K)\n"
	"  --chain SIZE         data that goes through all kinds of memory each generation (50000)\n"
	"  --buffers K          buffers per kind of static data (3)\n"
	"  --busy N             copies per batch of the second queue, 0: no second queue (16)\n"
	"  --pace MS            sleep between generations (10)\n"
	"  --children N         child processes that do the same on their own (0)\n"
	"  --split              process n uses only the n-th of the GPUs\n"
	"  --reopen kfd|render|render-first\n"
	"                       open /dev/kfd or the render nodes a second time (render-first: before those that are used)\n"
	"                       and keep them open\n"
	"  --kfd-last           the number of /dev/kfd's file is above those of the render nodes\n"
	"  --lone               GPUs that are not used are not opened, and have no address space\n"
	"  --events             wait for GPU events instead of looking at memory\n"
	"  --extra NAME         also have (on the first GPU; may be given several times): svm (an SVM range),\n"
	"                       memfd (shared userptr memory), maps (a buffer mapped in several ways), fork (a\n"
	"                       child with inherited files), aql (an AQL queue), wave (one that is in a kernel), code (the same, of real code),\n"
	"                       assert (a kernel whose assertion fails, and a trap handler that tells),\n"
	"                       threads (that use the GPU), token (passed round by GPU writes),\n"
	"                       moved (doorbells), flags (files that are open in other ways), trap (a trap handler);\n"
	"                       what cannot be dumped: gem, dmabuf, shared (a buffer), lent (part of a mapping, to a child),\n"
	"                       smi, hole (in a mapping), misc, closed (all files, not the mappings), context (a second one\n"
	"                       of the KFD), path (a descriptor with O_PATH), flight (a file in a message), bells (of\n"
	"                       which a part is protected), drawing and syncing (a child with a render node only),\n"
	"                       bare (a child with VRAM and nothing open or mapped)\n"
	"  --extra-last         the last process only has extras\n"
	"  --seed N             of all patterns (1)\n"
	"  --spoil WHAT         what SIGUSR2 damages: vram, gtt, userptr or packet\n"
	"  --background         return when all processes are computing, in a session of their own;\n"
	"                       their messages go to FILE.log\n"
	"The state file is FILE, of the n-th child FILE.n. SIGUSR1: check every byte. SIGTERM: check, clean up and\n"
	"end; the status is 0 only when all was right.\n";

static bool number_parse(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 0);
	return !errno && end != text && !*end && *text != '-';
}

static bool size_parse(const char *text, uint64_t *ret)
{
	static const char suffixes[] = "KMG";
	char *end;
	const char *suffix;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || end == text || *text == '-')
		return false;
	suffix = *end ? strchr(suffixes, *end) : NULL;
	if (suffix)
		value <<= 10 * (suffix - suffixes + 1);
	*ret = value;
	return suffix ? !end[1] : !*end;
}

static bool uint_parse(const char *text, unsigned int max, unsigned int *ret)
{
	uint64_t value;

	if (!number_parse(text, &value) || value > max)
		return false;
	*ret = (unsigned int)value;
	return true;
}

static bool gpus_parse(char *text, struct job_options *options)
{
	char *save = NULL;

	options->all_gpus = !strcmp(text, "all");
	options->nr_gpus = 0;
	if (options->all_gpus || !strcmp(text, "none"))
		return true;
	for (char *item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		if (options->nr_gpus == KFD_MAX_GPUS ||
		    !uint_parse(item, KFD_MAX_GPUS - 1, &options->gpus[options->nr_gpus++]))
			return false;
	}
	return options->nr_gpus > 0;
}

static bool spoil_parse(const char *text, enum job_spoil *ret)
{
	static const char *const names[] = {
		[JOB_SPOIL_VRAM] = "vram",
		[JOB_SPOIL_GTT] = "gtt",
		[JOB_SPOIL_USERPTR] = "userptr",
		[JOB_SPOIL_PACKET] = "packet",
	};

	for (unsigned int i = JOB_SPOIL_VRAM; i <= JOB_SPOIL_PACKET; i++) {
		if (strcmp(text, names[i]))
			continue;
		*ret = i;
		return true;
	}
	return false;
}

enum {
	OPT_GPUS = 1,
	OPT_VRAM,
	OPT_GTT,
	OPT_USERPTR,
	OPT_CHAIN,
	OPT_BUFFERS,
	OPT_BUSY,
	OPT_PACE,
	OPT_CHILDREN,
	OPT_SPLIT,
	OPT_EVENTS,
	OPT_SEED,
	OPT_BACKGROUND,
	OPT_STATE,
	OPT_SPOIL,
	OPT_REOPEN,
	OPT_EXTRA,
	OPT_EXTRA_LAST,
	OPT_LONE,
	OPT_KFD_LAST,
};

static const struct option long_options[] = {
	{ "gpus", required_argument, NULL, OPT_GPUS },
	{ "vram", required_argument, NULL, OPT_VRAM },
	{ "gtt", required_argument, NULL, OPT_GTT },
	{ "userptr", required_argument, NULL, OPT_USERPTR },
	{ "chain", required_argument, NULL, OPT_CHAIN },
	{ "buffers", required_argument, NULL, OPT_BUFFERS },
	{ "busy", required_argument, NULL, OPT_BUSY },
	{ "pace", required_argument, NULL, OPT_PACE },
	{ "children", required_argument, NULL, OPT_CHILDREN },
	{ "split", no_argument, NULL, OPT_SPLIT },
	{ "events", no_argument, NULL, OPT_EVENTS },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "reopen", required_argument, NULL, OPT_REOPEN },
	{ "lone", no_argument, NULL, OPT_LONE },
	{ "kfd-last", no_argument, NULL, OPT_KFD_LAST },
	{ "extra", required_argument, NULL, OPT_EXTRA },
	{ "extra-last", no_argument, NULL, OPT_EXTRA_LAST },
	{ "spoil", required_argument, NULL, OPT_SPOIL },
	{ "background", no_argument, NULL, OPT_BACKGROUND },
	{ "state", required_argument, NULL, OPT_STATE },
	{ 0 },
};

static bool option_take(int option, char *arg, struct job_options *options)
{
	switch (option) {
	case OPT_GPUS:
		return gpus_parse(arg, options);
	case OPT_VRAM:
		return size_parse(arg, &options->vram_bytes);
	case OPT_GTT:
		return size_parse(arg, &options->gtt_bytes);
	case OPT_USERPTR:
		return size_parse(arg, &options->userptr_bytes);
	case OPT_CHAIN:
		return size_parse(arg, &options->chain_bytes) && options->chain_bytes > 0;
	case OPT_BUFFERS:
		return uint_parse(arg, 4096, &options->buffers) && options->buffers > 0;
	case OPT_BUSY:
		return uint_parse(arg, 256, &options->busy_units);
	case OPT_PACE:
		return uint_parse(arg, 60000, &options->pace_ms);
	case OPT_CHILDREN:
		return uint_parse(arg, 64, &options->children);
	case OPT_SEED:
		return number_parse(arg, &options->seed);
	case OPT_REOPEN:
		options->reopen_kfd |= !strcmp(arg, "kfd");
		options->reopen_first |= !strcmp(arg, "render-first");
		options->reopen_render |= !strcmp(arg, "render") || options->reopen_first;
		return options->reopen_kfd || options->reopen_render;
	case OPT_KFD_LAST:
		return options->kfd_last = true;
	case OPT_LONE:
		return options->lone = true;
	case OPT_EXTRA:
		options->extras |= job_extra_bit(arg);
		return job_extra_bit(arg) != 0;
	case OPT_EXTRA_LAST:
		return options->extras_last = true;
	case OPT_SPLIT:
		return options->split = true;
	case OPT_EVENTS:
		return options->events = true;
	case OPT_BACKGROUND:
		return options->background = true;
	case OPT_SPOIL:
		return spoil_parse(arg, &options->spoil);
	case OPT_STATE:
		options->state_path = arg;
		return true;
	}
	return false;
}

bool job_options_parse(int argc, char **argv, struct job_options *options)
{
	int option;

	*options = (struct job_options){
		.all_gpus = true,
		.vram_bytes = 1 << 20,
		.gtt_bytes = 256 << 10,
		.userptr_bytes = 256 << 10,
		.chain_bytes = 50000,
		.buffers = 3,
		.busy_units = 16,
		.pace_ms = 10,
		.seed = 1,
	};
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option_take(option, optarg, options))
			continue;
		if (option != '?')
			fprintf(stderr, "gpujob: %s: bad value\n", argv[optind - 1]);
		fputs(usage, stderr);
		return false;
	}
	if (optind == argc && options->state_path)
		return true;
	fputs(usage, stderr);
	return false;
}
