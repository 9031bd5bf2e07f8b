// SPDX-License-Identifier: GPL-2.0-only
/*
 * hipjob: main program, requests, the state file.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hipjob_memory.h"
#include "job.h"
#include "launch.h"
#include "report.h"

#define BUFFER_BYTES (256u << 10)
#define PACE_NS	     10000000

static const char usage[] =
	"Usage: hipjob --state FILE --share KIND [--virtual] [--kernels CODE] [--background]\n"
	"Two processes on the HIP runtime that share memory of a GPU, have memory of their own, and check all of it.\n"
	"  --share KIND   by hipIpcGetMemHandle (ipc), by virtual memory (vmm), or nothing\n"
	"  --virtual      each process also has virtual memory of its own (hipMemCreate)\n"
	"  --kernels CODE a kernel of that file (busy.cl, compiled for the GPUs) runs from one generation to the next\n"
	"  --background   return when they compute, in a session of their own; their messages go to FILE.log\n"
	"SIGUSR1: check every byte. SIGTERM: check, clean up and end; the status is 0 only when all was right.\n";

struct process {
	struct job job;
	const char *code;
	bool has_virtual;
	struct hip_job hip;
	struct hip_share share;
};

static void describe(struct job *job)
{
	state_line(&job->state, "hip %d", ((struct process *)job)->hip.version);
}

static int check(struct job *job)
{
	return hip_job_check(&((struct process *)job)->hip, job->state.generation, &job->state.verified_bytes);
}

/* Both processes stop after the same generation, at the request of the first. */
static int loop(struct job *job)
{
	struct process *process = (struct process *)job;
	const struct timespec pace = { .tv_nsec = PACE_NS };
	bool asked = false, stop = false;
	int err = 0;

	while (!err && !stop) {
		int signal = sigtimedwait(&job->signals, NULL, &pace);

		asked = asked || signal == SIGTERM;
		stop = asked;
		if (signal == SIGUSR1)
			err = job_verify(job);
		err = err ? err : hip_job_round(&process->hip, job->state.generation);
		if (process->code)
			err = err ? err : hip_kernels_round(&process->hip, job->state.generation);
		err = err ? err : hip_share_round(&process->share, &stop);
		job->state.generation += !err;
		err = err ? err : job_phase(job, "running");
	}
	return err;
}

static int setup(struct job *job)
{
	struct process *process = (struct process *)job;
	int err = hip_job_open(&process->hip, BUFFER_BYTES, process->has_virtual);

	err = err ? err : hip_share_open(&process->share, &process->hip);
	if (process->code)
		err = err ? err : hip_kernels_open(&process->hip, process->code, job->state.generation);
	err = err ? err : job_phase(job, "running");
	if (!err)
		launch_ready(&job->ready_fd);
	return err;
}

static int close_all(struct job *job)
{
	struct process *process = (struct process *)job;
	int err = process->code ? hip_kernels_close(&process->hip, job->state.generation) : 0;

	err = err ? err : hip_share_close(&process->share);
	return err ? err : hip_job_close(&process->hip);
}

static bool sharing_take(const char *text, enum hip_sharing *ret)
{
	static const char *const names[HIP_SHARINGS] = { "nothing", "ipc", "vmm" };

	for (*ret = 0; *ret < HIP_SHARINGS && strcmp(text, names[*ret]); ++*ret)
		;
	return *ret < HIP_SHARINGS;
}

static bool options_parse(int argc, char **argv, struct process *process)
{
	static const struct option options[] = {
		{ "state", required_argument, NULL, 's' },
		{ "share", required_argument, NULL, 'x' },
		{ "virtual", no_argument, NULL, 'v' },
		{ "kernels", required_argument, NULL, 'k' },
		{ "background", no_argument, NULL, 'd' },
		{ 0 },
	};
	bool good = true;
	int option;

	while (good && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			process->job.state_path = optarg;
		else if (option == 'd')
			process->job.background = true;
		else if (option == 'v')
			process->has_virtual = true;
		else if (option == 'k')
			process->code = optarg;
		else
			good = option == 'x' && sharing_take(optarg, &process->share.kind);
	}
	if (good && optind == argc && process->job.state_path && process->share.kind != HIP_SHARINGS)
		return true;
	fputs(usage, stderr);
	return false;
}

int main(int argc, char **argv)
{
	static const struct job_steps steps = { describe, setup, loop, check, close_all };
	static struct process process = { .job = { .steps = &steps, .ready_fd = -1 }, .share.kind = HIP_SHARINGS };

	report_name("hipjob");
	if (!options_parse(argc, argv, &process))
		return 2;
	process.share.pair = &process.job.pair;
	return job_run(&process.job, 2);
}
