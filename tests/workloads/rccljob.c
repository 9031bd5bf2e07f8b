// SPDX-License-Identifier: GPL-2.0-only
/*
 * rccljob: two ranks of RCCL, each a process with a GPU of its own, which add up their buffers again and again (ncclAllReduce)
 * and compare all sums on the host. The second rank comes late to each collective: the first one's kernel waits on its GPU.
 */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hip.h"
#include "job.h"
#include "launch.h"
#include "report.h"

#define NR_RANKS  2
#define LATE_NS	  300000000
#define RCCL_FLOAT 7
#define RCCL_SUM   0

static const char usage[] =
	"Usage: rccljob --state FILE [--count N] [--background]\n"
	"Two ranks of RCCL, each a process with a GPU of its own, that add up their buffers and check the sums.\n"
	"  --count N      floats of each buffer (4096)\n"
	"  --background   return when they compute, in a session of their own; their messages go to FILE.log\n"
	"SIGUSR1: check once more. SIGTERM: clean up and end; the status is 0 only when all was right.\n";

typedef struct rccl_communicator *rccl_communicator_t;

struct rccl_id {
	uint8_t bytes[128];
};

/* RCCL's functions, by their names there. */
static struct {
	int (*GetVersion)(int *version);
	int (*GetUniqueId)(struct rccl_id *id);
	int (*CommInitRank)(rccl_communicator_t *communicator, int nr_ranks, struct rccl_id id, int rank);
	int (*AllReduce)(const void *from, void *to, size_t count, int type, int operation, rccl_communicator_t communicator,
			 hip_stream_t stream);
	int (*CommDestroy)(rccl_communicator_t communicator);
	const char *(*GetErrorString)(int error);
} rccl;

#define RCCL(function, ...) rccl_must(rccl.function(__VA_ARGS__), "nccl" #function)

struct process {
	struct job job;
	int version;
	uint64_t count; /* floats */
	rccl_communicator_t communicator;
	hip_stream_t stream;
	float *host, *from, *to; /* the last two: the GPU's memory */
};

static int rccl_must(int error, const char *what)
{
	return error ? report(EIO, "%s: %s (%d)", what, rccl.GetErrorString(error), error) : 0;
}

static int rccl_load(void)
{
	static const struct {
		void *function;
		const char *name;
	} functions[] = {
		{ &rccl.GetVersion, "ncclGetVersion" },	      { &rccl.GetUniqueId, "ncclGetUniqueId" },
		{ &rccl.CommInitRank, "ncclCommInitRank" },   { &rccl.AllReduce, "ncclAllReduce" },
		{ &rccl.CommDestroy, "ncclCommDestroy" },     { &rccl.GetErrorString, "ncclGetErrorString" },
	};
	void *library = dlopen("librccl.so.1", RTLD_NOW);

	if (!library)
		return report(ENOENT, "no RCCL: %s", dlerror());
	for (unsigned int i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *p = dlsym(library, functions[i].name);

		if (!p)
			return report(ENOSYS, "RCCL has no %s", functions[i].name);
		memcpy(functions[i].function, &p, sizeof(p));
	}
	return 0;
}

static void describe(struct job *job)
{
	state_line(&job->state, "rccl %d", ((struct process *)job)->version);
}

/* ---- data ---- */

/* A whole number, so that sums are exact. */
static float value_of(unsigned int rank, uint64_t generation, uint64_t i)
{
	return (float)((i * 2654435761u + generation * 40503u + rank * 77773u) >> 7 & 0xfffff);
}

static int fill(struct process *process)
{
	for (uint64_t i = 0; i < process->count; i++)
		process->host[i] = value_of(process->job.pair.number, process->job.state.generation, i);
	return HIP(Memcpy, process->from, process->host, process->count * sizeof(float), HIP_HOST_TO_DEVICE);
}

static int sums_check(struct process *process, uint64_t generation)
{
	int err;

	memset(process->host, 0, process->count * sizeof(float));
	err = HIP(Memcpy, process->host, process->to, process->count * sizeof(float), HIP_DEVICE_TO_HOST);
	for (uint64_t i = 0; !err && i < process->count; i++) {
		float want = value_of(0, generation, i) + value_of(1, generation, i);

		if (process->host[i] != want)
			err = report(EILSEQ, "generation %" PRIu64 ": sum %" PRIu64 " is %a, not %a", generation, i, process->host[i],
				     want);
	}
	return err;
}

static int all_reduce(struct process *process)
{
	const struct timespec late = { .tv_nsec = LATE_NS };
	int err = fill(process);

	err = err ? err : job_phase(&process->job, "collective");
	if (!err && process->job.pair.number)
		nanosleep(&late, NULL);
	err = err ? err : RCCL(AllReduce, process->from, process->to, process->count, RCCL_FLOAT, RCCL_SUM, process->communicator,
			       process->stream);
	err = err ? err : HIP(StreamSynchronize, process->stream);
	return err ? err : sums_check(process, process->job.state.generation);
}

/* ---- the program ---- */

static int check(struct job *job)
{
	struct process *process = (struct process *)job;

	job->state.verified_bytes = process->count * sizeof(float);
	return sums_check(process, job->state.generation - 1);
}

/* Both stop after the same generation, at the request of the first. */
static int loop(struct job *job)
{
	struct process *process = (struct process *)job;
	const struct timespec at_once = { 0 };
	bool asked = false;
	int err = 0;

	while (!err) {
		int signal = sigtimedwait(&process->job.signals, NULL, &at_once);

		asked = asked || signal == SIGTERM;
		if (signal == SIGUSR1)
			err = job_verify(job);
		if (!process->job.pair.number && asked)
			process->job.pair.control->stop = true;
		err = err ? err : pair_meet(&process->job.pair);
		if (err || process->job.pair.control->stop)
			break;
		err = all_reduce(process);
		process->job.state.generation += !err;
		err = err ? err : job_phase(&process->job, "running");
	}
	return err;
}

static int communicator_open(struct process *process)
{
	struct rccl_id *id = (struct rccl_id *)process->job.pair.control->token;
	int err = process->job.pair.number ? 0 : RCCL(GetUniqueId, id);

	_Static_assert(sizeof(*id) <= sizeof(process->job.pair.control->token), "it fits");
	err = err ? err : pair_meet(&process->job.pair);
	return err ? err : RCCL(CommInitRank, &process->communicator, NR_RANKS, *id, (int)process->job.pair.number);
}

static int setup(struct job *job)
{
	struct process *process = (struct process *)job;
	size_t bytes = process->count * sizeof(float);
	int err;

	process->host = malloc(bytes);
	if (!process->host)
		return report(ENOMEM, "malloc: %m");
	err = hip_load();
	err = err ? err : rccl_load();
	err = err ? err : HIP(SetDevice, (int)process->job.pair.number);
	err = err ? err : RCCL(GetVersion, &process->version);
	err = err ? err : HIP(Malloc, (void **)&process->from, bytes);
	err = err ? err : HIP(Malloc, (void **)&process->to, bytes);
	err = err ? err : HIP(StreamCreateWithFlags, &process->stream, HIP_NON_BLOCKING);
	err = err ? err : communicator_open(process);
	err = err ? err : all_reduce(process);
	process->job.state.generation = 1;
	err = err ? err : job_phase(&process->job, "running");
	if (!err)
		launch_ready(&process->job.ready_fd);
	return err;
}

static int close_all(struct job *job)
{
	struct process *process = (struct process *)job;
	int err = RCCL(CommDestroy, process->communicator);

	err = err ? err : HIP(StreamDestroy, process->stream);
	err = err ? err : HIP(Free, process->from);
	err = err ? err : HIP(Free, process->to);
	free(process->host);
	return err;
}

static bool options_parse(int argc, char **argv, struct process *process)
{
	static const struct option options[] = {
		{ "state", required_argument, NULL, 's' },
		{ "count", required_argument, NULL, 'c' },
		{ "background", no_argument, NULL, 'd' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			process->job.state_path = optarg;
		else if (option == 'c')
			process->count = strtoull(optarg, NULL, 0);
		else if (option == 'd')
			process->job.background = true;
		else
			break;
	}
	if (option == -1 && optind == argc && process->job.state_path && process->count)
		return true;
	fputs(usage, stderr);
	return false;
}

int main(int argc, char **argv)
{
	static const struct job_steps steps = { describe, setup, loop, check, close_all };
	static struct process process = { .job = { .steps = &steps, .ready_fd = -1 }, .count = 4096 };

	report_name("rccljob");
	if (!options_parse(argc, argv, &process))
		return 2;
	return job_run(&process.job, NR_RANKS);
}
