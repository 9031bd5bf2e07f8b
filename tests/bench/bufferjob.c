// SPDX-License-Identifier: GPL-2.0-only
/*
 * bufferjob: a GPU process that is nothing but buffers in VRAM, as many and as large as
 * wanted, with a wanted share of zeros, of which it knows every byte. gpujob has queues
 * that work; this one has contents, and fills and compares them by the CPU, which no
 * limit of the simulated engines slows down.
 *
 * Prints "ready" when all is filled and on each SIGUSR1 "verified BYTES"; SIGTERM ends
 * it. Whatever is wrong ends it with a message. With --apart each GPU has a process of its
 * own, a child of that of the GPU before; the first one speaks for all.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../workloads/kfd.h"
#include "../workloads/pattern.h"
#include "../workloads/report.h"
#include "../workloads/sdma.h"

/* Of each so many parts one has data, the others are zeros. */
#define PARTS_PER_DATA 10

static struct {
	unsigned int nr_gpus, nr_bos; /* BOs of each GPU */
	uint64_t bo_bytes;
	uint64_t part_bytes; /* unit of data and zeros; 0: no zeros */
	uint64_t host_bytes; /* of memory that the GPU does not see */
	bool apart, has_queue;
} options = { .nr_gpus = 1, .nr_bos = 1, .bo_bytes = 1 << 20 };

static struct kfd kfd;
static struct sdma_queue queue; /* with --queue */
static struct kfd_bo *bos;
static void *host;

/* With --apart. */
static unsigned int number; /* of this process, and its GPU */
static pid_t child;
static volatile unsigned int *nr_done; /* processes that are ready or have verified, since the job began; shared */
static unsigned int nr_wanted;

/* Parts with data are at places that follow from their number, and seldom neighbours. */
static bool has_data(uint64_t part)
{
	return !options.part_bytes || (part * 0x9e3779b97f4a7c15u >> 32) % PARTS_PER_DATA == 0;
}

static bool all_zero(const char *mem, uint64_t len)
{
	return !mem[0] && !memcmp(mem, mem + 1, len - 1);
}

/* @n: number of the BO. New VRAM is zero already. */
static int bo_fill(unsigned int n)
{
	uint64_t step = options.part_bytes ? options.part_bytes : bos[n].size_bytes;

	for (uint64_t at = 0; at < bos[n].size_bytes; at += step)
		if (has_data(at / step))
			pattern_fill((char *)bos[n].cpu + at, step, n + 1, at);
	return 0;
}

static int bo_check(unsigned int n)
{
	uint64_t step = options.part_bytes ? options.part_bytes : bos[n].size_bytes;

	for (uint64_t at = 0; at < bos[n].size_bytes; at += step) {
		const char *mem = (const char *)bos[n].cpu + at;
		struct pattern_diff diff = { .offset = at };

		if (has_data(at / step) ? pattern_check(mem, step, n + 1, at, &diff) : all_zero(mem, step))
			continue;
		return report(EILSEQ, "BO %u of %" PRIu64 " bytes: byte %" PRIu64 " or one soon after it is wrong", n,
			      bos[n].size_bytes, diff.offset);
	}
	return 0;
}

static int all_bos(int (*fn)(unsigned int n))
{
	int err = 0;

	for (unsigned int i = 0; !err && i < options.nr_gpus * options.nr_bos; i++)
		if (!options.apart || i / options.nr_bos == number)
			err = fn(i);
	return err;
}

static uint64_t host_seed(void)
{
	return (uint64_t)options.nr_gpus * options.nr_bos + 1;
}

static int host_make(void)
{
	if (!options.host_bytes)
		return 0;
	host = mmap(NULL, options.host_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (host == MAP_FAILED)
		return report(ENOMEM, "no %" PRIu64 " bytes of memory", options.host_bytes);
	pattern_fill(host, options.host_bytes, host_seed(), 0);
	return 0;
}

static int host_check(void)
{
	struct pattern_diff diff;

	if (!options.host_bytes || pattern_check(host, options.host_bytes, host_seed(), 0, &diff))
		return 0;
	return report(EILSEQ, "byte %" PRIu64 " of the processor's memory is wrong", diff.offset);
}

static int bo_make(unsigned int n)
{
	return kfd_bo_alloc(&kfd, &kfd.gpus[n / options.nr_bos], KFD_MEMORY_VRAM_PUBLIC, options.bo_bytes, &bos[n]);
}

static int setup(void)
{
	int err = kfd_open(&kfd, UINT64_MAX, false);

	if (err)
		return err;
	if (kfd.nr_gpus < options.nr_gpus)
		return report(ENODEV, "--gpus %u: there are only %u", options.nr_gpus, kfd.nr_gpus);
	bos = calloc((size_t)options.nr_gpus * options.nr_bos, sizeof(*bos));
	if (!bos)
		return report(ENOMEM, "no memory for %u BOs", options.nr_gpus * options.nr_bos);
	err = all_bos(bo_make);
	err = err ? err : all_bos(bo_fill);
	if (!err && options.has_queue)
		err = sdma_create(&kfd, &kfd.gpus[0], 4 * KFD_PAGE_SIZE, &queue);
	return err ? err : host_make();
}

/* The children are forked before a GPU is opened. */
static int fork_all(void)
{
	nr_done = mmap(NULL, KFD_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (nr_done == MAP_FAILED)
		return report(errno, "mmap: %m");
	while (options.apart && number + 1 < options.nr_gpus) {
		child = fork();
		if (child < 0)
			return report(errno, "fork: %m");
		if (child)
			return 0;
		number++;
	}
	child = 0;
	return 0;
}

/* The first process waits for the others; when one has failed, whoever waits for the word gives up. */
static void say(const char *fmt, uint64_t bytes)
{
	const struct timespec nap = { .tv_nsec = 1000 * 1000 };

	__atomic_fetch_add(nr_done, 1, __ATOMIC_SEQ_CST);
	nr_wanted += options.apart ? options.nr_gpus : 1;
	while (!number && *nr_done < nr_wanted)
		nanosleep(&nap, NULL);
	if (!number)
		dprintf(STDOUT_FILENO, fmt, bytes);
}

static int serve(const sigset_t *signals)
{
	uint64_t bytes = (uint64_t)options.nr_gpus * options.nr_bos * options.bo_bytes;
	int err = 0, signal;

	say("ready\n", 0);
	while (!err) {
		signal = sigwaitinfo(signals, NULL);
		if (child && signal > 0)
			kill(child, signal);
		if (signal == SIGTERM)
			return child && waitpid(child, NULL, 0) != child ? report(errno, "waitpid: %m") : 0;
		err = signal == SIGUSR1 ? all_bos(bo_check) : 0;
		err = err ? err : host_check();
		if (!err && signal == SIGUSR1)
			say("verified %" PRIu64 "\n", bytes);
	}
	return err;
}

static void usage(void)
{
	fprintf(stderr, "usage: bufferjob [OPTION...]\n"
			"  --gpus N       the first N GPUs (1)\n"
			"  --bos N        BOs on each (1)\n"
			"  --size BYTES   of a BO, whole pages (1 MiB)\n"
			"  --queue        and an SDMA queue on the first one, by which others see that it is in use\n"
			"  --zeros BYTES  nine tenths of the parts of so many bytes are zeros; whole pages (no zeros)\n"
			"  --host BYTES   of the processor's memory beside them (none)\n"
			"  --apart        each GPU in a process of its own\n");
	exit(2);
}

static void parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "gpus", required_argument, NULL, 'g' },
		{ "bos", required_argument, NULL, 'b' },
		{ "size", required_argument, NULL, 's' },
		{ "zeros", required_argument, NULL, 'z' },
		{ "host", required_argument, NULL, 'h' },
		{ "apart", no_argument, NULL, 'a' },
		{ "queue", no_argument, NULL, 'q' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		uint64_t value = optarg ? strtoull(optarg, NULL, 10) : 0;

		if (option == 'g')
			options.nr_gpus = (unsigned int)value;
		else if (option == 'b')
			options.nr_bos = (unsigned int)value;
		else if (option == 's')
			options.bo_bytes = value;
		else if (option == 'z')
			options.part_bytes = value;
		else if (option == 'h')
			options.host_bytes = value;
		else if (option == 'a')
			options.apart = true;
		else if (option == 'q')
			options.has_queue = true;
		else
			usage();
	}
	if (optind < argc || !options.nr_gpus || !options.nr_bos || !options.bo_bytes ||
	    options.bo_bytes % KFD_PAGE_SIZE || options.part_bytes % KFD_PAGE_SIZE ||
	    (options.part_bytes && options.bo_bytes % options.part_bytes))
		usage();
}

int main(int argc, char **argv)
{
	sigset_t signals;
	int err;

	report_name("bufferjob");
	parse(argc, argv);
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	err = fork_all();
	err = err ? err : setup();
	err = err ? err : serve(&signals);
	return err ? 1 : 0;
}
