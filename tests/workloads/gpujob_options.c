// SPDX-License-Identifier: GPL-2.0-only
/*
 * Command line of gpujob.
 */
#include <errno.h>
#include <stddef.h>
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
	"  --ib                 these batches are in indirect buffers, and wait in the middle of them\n"
	"  --pace MS            sleep between generations (10)\n"
	"  --children N         child processes that do the same on their own (0)\n"
	"  --split              process n uses only the n-th of the GPUs\n"
	"  --apart              no GPU reaches another one's VRAM\n"
	"  --reopen kfd|render|render-first\n"
	"                       open /dev/kfd or the render nodes a second time (render-first: before those that are used)\n"
	"                       and keep them open\n"
	"  --kfd-last           the number of /dev/kfd's file is above those of the render nodes\n"
	"  --lone               GPUs that are not used are not opened, and have no address space\n"
	"  --events             wait for GPU events instead of looking at memory\n"
	"  --extra NAME         also have (on the first GPU; may be given several times): svm (an SVM range),\n"
	"                       memfd (shared userptr memory), maps (a buffer mapped in several ways), fork (a\n"
	"                       child with inherited files), aql (an AQL queue), wave (one that is in a kernel), code (the same, of real code),\n"
	"                       idle (an AQL queue that has nothing to do between generations), old (the same after a million\n"
	"                       packets), packets (one without kernels, for any GPU), masked (that, on some CUs), nap (one that is in a kernel for half a second),\n"
	"                       assert (a kernel whose assertion fails, and a trap handler that tells),\n"
	"                       threads (that use the GPU), token (passed round by GPU writes),\n"
	"                       moved (doorbells), flags (files that are open in other ways),\n"
	"                       reads (a thread that reads VRAM by the CPU);\n"
	"                       what cannot be dumped: gem (a buffer), lent (part of a mapping, to a child),\n"
	"                       smi, hole (in a mapping), misc, timer (of a thread that has ended), closed (all files, not the mappings), context (a second one\n"
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

/* A number, with K, M or G behind it. */
static bool number_parse(const char *text, uint64_t *ret)
{
	static const char suffixes[] = "KMG";
	const char *suffix;
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 0);
	if (errno || end == text || *text == '-')
		return false;
	suffix = *end ? strchr(suffixes, *end) : NULL;
	if (suffix)
		*ret <<= 10 * (suffix - suffixes + 1);
	return suffix ? !end[1] : !*end;
}

/* ---- one function for each kind of value: false when it is not understood ---- */

static bool size_take(char *text, void *to, unsigned int most)
{
	(void)most;
	return number_parse(text, to);
}

static bool count_take(char *text, void *to, unsigned int most)
{
	uint64_t value;

	if (!number_parse(text, &value) || value > most)
		return false;
	*(unsigned int *)to = (unsigned int)value;
	return true;
}

static bool text_take(char *text, void *to, unsigned int most)
{
	(void)most;
	*(const char **)to = text;
	return true;
}

static bool gpus_take(char *text, void *to, unsigned int most)
{
	struct job_options *options = to;
	char *save = NULL;

	options->all_gpus = !strcmp(text, "all");
	options->nr_gpus = 0;
	if (options->all_gpus || !strcmp(text, "none"))
		return true;
	for (char *item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		if (options->nr_gpus == KFD_MAX_GPUS || !count_take(item, &options->gpus[options->nr_gpus++], most))
			return false;
	}
	return options->nr_gpus > 0;
}

static bool reopen_take(char *text, void *to, unsigned int most)
{
	struct job_options *options = to;

	(void)most;
	options->reopen_kfd |= !strcmp(text, "kfd");
	options->reopen_first |= !strcmp(text, "render-first");
	options->reopen_render |= !strcmp(text, "render") || options->reopen_first;
	return options->reopen_kfd || options->reopen_render;
}

static bool extra_take(char *text, void *to, unsigned int most)
{
	(void)most;
	*(uint64_t *)to |= job_extra_bit(text);
	return job_extra_bit(text) != 0;
}

static bool spoil_take(char *text, void *to, unsigned int most)
{
	static const char *const names[] = {
		[JOB_SPOIL_VRAM] = "vram",
		[JOB_SPOIL_GTT] = "gtt",
		[JOB_SPOIL_USERPTR] = "userptr",
		[JOB_SPOIL_PACKET] = "packet",
	};
	enum job_spoil *spoil = to;

	for (*spoil = JOB_SPOIL_VRAM; *spoil <= most && strcmp(text, names[*spoil]); ++*spoil)
		;
	return *spoil <= most;
}

#define AT(field) offsetof(struct job_options, field)

static const struct option {
	const char *name;
	bool (*take)(char *text, void *to, unsigned int most); /* NULL: it has no value, and is a bool */
	size_t at;
	unsigned int most;
} known[] = {
	{ "gpus", gpus_take, 0, KFD_MAX_GPUS - 1 },
	{ "vram", size_take, AT(vram_bytes), 0 },
	{ "gtt", size_take, AT(gtt_bytes), 0 },
	{ "userptr", size_take, AT(userptr_bytes), 0 },
	{ "chain", size_take, AT(chain_bytes), 0 },
	{ "buffers", count_take, AT(buffers), 4096 },
	{ "busy", count_take, AT(busy_units), 256 },
	{ "pace", count_take, AT(pace_ms), 60000 },
	{ "children", count_take, AT(children), 64 },
	{ "seed", size_take, AT(seed), 0 },
	{ "reopen", reopen_take, 0, 0 },
	{ "extra", extra_take, AT(extras), 0 },
	{ "spoil", spoil_take, AT(spoil), JOB_SPOIL_PACKET },
	{ "state", text_take, AT(state_path), 0 },
	{ "split", NULL, AT(split), 0 },
	{ "apart", NULL, AT(apart), 0 },
	{ "ib", NULL, AT(ib), 0 },
	{ "events", NULL, AT(events), 0 },
	{ "lone", NULL, AT(lone), 0 },
	{ "kfd-last", NULL, AT(kfd_last), 0 },
	{ "extra-last", NULL, AT(extras_last), 0 },
	{ "background", NULL, AT(background), 0 },
};

/* The arguments that the option takes, itself included; 0: it is not understood. */
static int option_take(char **argv, struct job_options *options)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		const struct option *option = &known[i];
		void *to = (char *)options + option->at;

		if (strncmp(argv[0], "--", 2) || strcmp(argv[0] + 2, option->name))
			continue;
		if (option->take)
			return argv[1] && option->take(argv[1], to, option->most) ? 2 : 0;
		*(bool *)to = true;
		return 1;
	}
	return 0;
}

bool job_options_parse(int argc, char **argv, struct job_options *options)
{
	int at = 1, taken = 1;

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
	for (; taken && at < argc; at += taken)
		taken = option_take(argv + at, options);
	if (taken && options->state_path && options->chain_bytes && options->buffers)
		return true;
	if (!taken)
		fprintf(stderr, "gpujob: %s: unknown, or a bad value\n", argv[at]);
	fputs(usage, stderr);
	return false;
}
