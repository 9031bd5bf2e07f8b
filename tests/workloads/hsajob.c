// SPDX-License-Identifier: GPL-2.0-only
/*
 * hsajob: main program, requests, the state file.
 *
 * A thread of its own takes signals, since with --asleep the main thread is inside the runtime when
 * they come: then the thread opens the gate, the GPU copies, and the runtime wakes.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hsajob.h"
#include "job.h"
#include "launch.h"
#include "report.h"

static const char usage[] =
	"Usage: hsajob --state FILE [OPTION...]\n"
	"A program on the HSA runtime that copies on all GPUs and checks its own results.\n"
	"  --size BYTES   of each buffer (524288; four of them for each GPU in its memory and the host's)\n"
	"  --asleep       instead: copies are handed to the GPUs, but wait in them for a signal, and this process\n"
	"                 sleeps in the runtime until SIGUSR1 or SIGTERM\n"
	"  --share KIND   two processes that share memory by the runtime's IPC (ipc) or virtual memory (vmem)\n"
	"  --kernels CODE with --share: a kernel of that file (busy.cl, private.cl) in each process computes in memory of the\n"
	"                 other one\n"
	"  --stop-at N    with --kernels: in generation N both stop (SIGSTOP) while the kernels wait for private memory\n"
	"  --assert CODE  a kernel of that file (failing.cl) fails in each generation, and the runtime has to tell\n"
	"  --rounds N     ends by itself after N generations\n"
	"  --background   return when it computes, in a session of its own; its messages go to FILE.log\n"
	"SIGUSR1: check every byte. SIGTERM: check, clean up and end; the status is 0 only when all was right.\n";

struct process {
	struct job job;
	uint64_t bytes, rounds;
	bool asleep;
	struct hsa_job hsa;
	struct hsa_share share;
	struct hsa_code code;
	struct hsa_failing failing;
	bool ending; /* with --share: both processes have seen the end */
};

static atomic_bool verify_wanted, stop_wanted;

static void describe(struct job *job)
{
	struct process *process = (struct process *)job;

	for (unsigned int i = 0; i < process->hsa.nr_gpus; i++)
		state_line(&job->state, "gpu %u %s", i, process->hsa.gpus[i].name);
}

/* Takes signals as long as the process lives. */
static void *requests_take(void *data)
{
	struct process *process = data;
	int signal;

	for (;;) {
		if (sigwait(&process->job.signals, &signal))
			continue;
		if (signal == SIGTERM)
			stop_wanted = true;
		else
			verify_wanted = true;
		if (process->asleep)
			hsa_signal_store_screlease(process->hsa.gate, 0);
	}
	return NULL;
}

static int check(struct job *job)
{
	return hsa_job_check(&((struct process *)job)->hsa, &job->state.verified_bytes);
}

/* Both processes stop after the same generation. */
static int share_run(struct process *process)
{
	bool stop = stop_wanted;
	int err = pair_round(process->share.pair, &process->share.halves, &stop);

	if (stop)
		stop_wanted = true;
	process->ending = stop;
	if (!err && process->code.share)
		err = hsa_code_round(&process->code, process->job.state.generation);
	return err;
}

/*
 * One generation. Asleep, the gate is shut before the copies are handed over; what was asked for before that
 * opens it at once.
 */
static int generation_run(struct process *process, bool asleep)
{
	struct hsa_job *hsa = &process->hsa;
	int err;

	hsa_signal_store_screlease(hsa->gate, asleep);
	if (asleep && (verify_wanted || stop_wanted))
		hsa_signal_store_screlease(hsa->gate, 0);
	err = hsa_job_submit(hsa, process->job.state.generation + 1);
	if (!err && asleep) {
		err = job_phase(&process->job, "asleep");
		launch_ready(&process->job.ready_fd);
	}
	err = err ? err : hsa_job_wait(hsa, process->job.state.generation + 1, asleep ? UINT64_MAX : hsa->timeout);
	err = err || !process->share.job ? err : share_run(process);
	err = err || !process->failing.gpu ? err : hsa_failing_round(&process->failing);
	process->job.state.generation += !err;
	return err;
}

static int loop(struct job *job)
{
	struct process *process = (struct process *)job;
	const struct timespec pace = { .tv_nsec = 10000000 };
	int err = 0;

	while (!err && !(process->share.kind ? process->ending : stop_wanted)) {
		if (atomic_exchange(&verify_wanted, false))
			err = job_verify(job);
		err = err ? err : generation_run(process, process->asleep);
		err = err ? err : job_phase(&process->job, "running");
		if (process->job.state.generation == process->rounds)
			stop_wanted = true;
		if (!err && !process->asleep)
			nanosleep(&pace, NULL);
	}
	return err;
}

static int setup(struct job *job)
{
	struct process *process = (struct process *)job;
	pthread_t thread;
	int err = hsa_job_open(&process->hsa, process->bytes);

	if (!err && process->share.kind)
		err = hsa_share_open(&process->share, &process->hsa);
	err = err ? err : generation_run(process, false);
	if (!err && process->code.path)
		err = hsa_code_open(&process->code, &process->share, process->job.state.generation);
	if (!err && process->failing.path)
		err = hsa_failing_open(&process->failing, &process->hsa);
	if (err)
		return err;
	err = pthread_create(&thread, NULL, requests_take, process);
	err = err ? report(err, "pthread_create: %s", strerror(err)) : job_phase(job, "running");
	if (!err && !process->asleep)
		launch_ready(&job->ready_fd);
	return err;
}

static int close_all(struct job *job)
{
	struct process *process = (struct process *)job;
	int err = process->code.share ? hsa_code_close(&process->code, job->state.generation) : 0;

	if (!err && process->failing.gpu)
		err = hsa_failing_close(&process->failing);
	if (!err && process->share.kind)
		err = hsa_share_close(&process->share);
	return err ? err : hsa_job_close(&process->hsa);
}

static bool number_take(const char *text, uint64_t *ret)
{
	char *end;

	*ret = strtoull(text, &end, 0);
	return *ret && !*end;
}

static bool sharing_take(const char *text, enum hsa_sharing *ret)
{
	*ret = strcmp(text, "ipc") ? HSA_SHARE_VMEM : HSA_SHARE_IPC;
	return *ret == HSA_SHARE_IPC || !strcmp(text, "vmem");
}

static bool options_parse(int argc, char **argv, struct process *process)
{
	static const struct option options[] = {
		{ "state", required_argument, NULL, 's' },
		{ "share", required_argument, NULL, 'x' },
		{ "kernels", required_argument, NULL, 'k' },
		{ "stop-at", required_argument, NULL, 'p' },
		{ "assert", required_argument, NULL, 'f' },
		{ "size", required_argument, NULL, 'b' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "asleep", no_argument, NULL, 'a' },
		{ "background", no_argument, NULL, 'd' },
		{ 0 },
	};
	bool good = true;
	int option;

	while (good && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			process->job.state_path = optarg;
		else if (option == 'a')
			process->asleep = true;
		else if (option == 'd')
			process->job.background = true;
		else if (option == 'k')
			process->code.path = optarg;
		else if (option == 'f')
			process->failing.path = optarg;
		else if (option == 'x')
			good = sharing_take(optarg, &process->share.kind);
		else if (option == 'p')
			good = number_take(optarg, &process->code.stop_at);
		else
			good = option != '?' && number_take(optarg, option == 'b' ? &process->bytes : &process->rounds);
	}
	if (good && optind == argc && process->job.state_path && (process->share.kind || !process->code.path))
		return true;
	fputs(usage, stderr);
	return false;
}

int main(int argc, char **argv)
{
	static const struct job_steps steps = { describe, setup, loop, check, close_all };
	static struct process process = { .job = { .steps = &steps, .ready_fd = -1 }, .bytes = 512 << 10 };

	report_name("hsajob");
	if (!options_parse(argc, argv, &process))
		return 2;
	process.share.pair = &process.job.pair;
	return job_run(&process.job, process.share.kind ? 2 : 1);
}
