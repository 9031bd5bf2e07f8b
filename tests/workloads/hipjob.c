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
#include "launch.h"
#include "report.h"
#include "state.h"

#define BUFFER_BYTES (256u << 10)
#define PACE_NS	     10000000

static const char usage[] =
	"Usage: hipjob --state FILE --share KIND [--kernels CODE] [--background]\n"
	"Two processes on the HIP runtime that share memory of a GPU, have memory of their own, and check all of it.\n"
	"  --share KIND   by hipIpcGetMemHandle (ipc), by virtual memory (vmm), or nothing\n"
	"  --kernels CODE a kernel of that file (busy.cl, compiled for the GPUs) runs from one generation to the next\n"
	"  --background   return when they compute, in a session of their own; their messages go to FILE.log\n"
	"SIGUSR1: check every byte. SIGTERM: check, clean up and end; the status is 0 only when all was right.\n";

struct process {
	const char *state_path, *code;
	bool background;
	int ready_fd; /* tells who waits for --background; -1: nobody */
	struct hip_job hip;
	struct hip_share share;
	struct state_file state;
	sigset_t signals;
};

static int phase_set(struct process *process, const char *phase)
{
	state_begin(&process->state, phase);
	state_line(&process->state, "hip %d", process->hip.version);
	return state_end(&process->state);
}

static int verify(struct process *process)
{
	int err = phase_set(process, "verifying");

	process->state.verified_bytes = 0;
	err = err ? err : hip_job_check(&process->hip, process->state.generation, &process->state.verified_bytes);
	if (!err)
		process->state.verifies++;
	return err;
}

/* Both processes stop after the same generation, at the request of the first. */
static int loop(struct process *process)
{
	const struct timespec pace = { .tv_nsec = PACE_NS };
	bool asked = false, stop = false;
	int err = 0;

	while (!err && !stop) {
		int signal = sigtimedwait(&process->signals, NULL, &pace);

		asked = asked || signal == SIGTERM;
		stop = asked;
		if (signal == SIGUSR1)
			err = verify(process);
		err = err ? err : hip_job_round(&process->hip, process->state.generation);
		if (process->code)
			err = err ? err : hip_kernels_round(&process->hip, process->state.generation);
		err = err ? err : hip_share_round(&process->share, &stop);
		process->state.generation += !err;
		err = err ? err : phase_set(process, "running");
	}
	return err;
}

static int setup(struct process *process)
{
	int err = phase_set(process, "starting");

	err = err ? err : hip_job_open(&process->hip, BUFFER_BYTES);
	err = err ? err : hip_share_open(&process->share, &process->hip);
	if (process->code)
		err = err ? err : hip_kernels_open(&process->hip, process->code, process->state.generation);
	err = err ? err : phase_set(process, "running");
	if (!err)
		launch_ready(&process->ready_fd);
	return err;
}

static int process_run(struct process *process)
{
	int err = state_open(&process->state, process->state_path, process->share.pair.number);

	/* Before the runtime starts threads of its own, which inherit it. */
	sigemptyset(&process->signals);
	sigaddset(&process->signals, SIGUSR1);
	sigaddset(&process->signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &process->signals, NULL);
	err = err ? err : setup(process);
	err = err ? err : loop(process);
	err = err ? err : verify(process);
	if (process->code)
		err = err ? err : hip_kernels_close(&process->hip, process->state.generation);
	err = err ? err : hip_share_close(&process->share);
	err = err ? err : hip_job_close(&process->hip);
	if (err)
		process->share.pair.control->failed = true;
	err = err ? err : pair_wait(&process->share.pair);
	err = err ? err : phase_set(process, "done");
	if (!err)
		return 0;
	phase_set(process, "failed");
	return 1;
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
		{ "kernels", required_argument, NULL, 'k' },
		{ "background", no_argument, NULL, 'd' },
		{ 0 },
	};
	bool good = true;
	int option;

	while (good && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			process->state_path = optarg;
		else if (option == 'd')
			process->background = true;
		else if (option == 'k')
			process->code = optarg;
		else
			good = option == 'x' && sharing_take(optarg, &process->share.kind);
	}
	if (good && optind == argc && process->state_path && process->share.kind != HIP_SHARINGS)
		return true;
	fputs(usage, stderr);
	return false;
}

int main(int argc, char **argv)
{
	static struct process process = { .ready_fd = -1, .share.kind = HIP_SHARINGS };

	report_name("hipjob");
	if (!options_parse(argc, argv, &process))
		return 2;
	if (process.background && launch_background(process.state_path, 2, &process.ready_fd))
		return 1;
	if (pair_fork(&process.share.pair))
		return 1;
	return process_run(&process);
}
