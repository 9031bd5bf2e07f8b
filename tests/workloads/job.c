// SPDX-License-Identifier: GPL-2.0-only
#include "job.h"
#include "launch.h"

int job_phase(struct job *job, const char *phase)
{
	state_begin(&job->state, phase);
	job->steps->describe(job);
	return state_end(&job->state);
}

int job_verify(struct job *job)
{
	int err = job_phase(job, "verifying");

	job->state.verified_bytes = 0;
	err = err ? err : job->steps->check(job);
	job->state.verifies += !err;
	return err;
}

static int live(struct job *job)
{
	const struct job_steps *steps = job->steps;
	int err = state_open(&job->state, job->state_path, job->pair.number);

	/* Before the runtime starts threads of its own, which inherit it. */
	sigemptyset(&job->signals);
	sigaddset(&job->signals, SIGUSR1);
	sigaddset(&job->signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &job->signals, NULL);
	err = err ? err : job_phase(job, "starting");
	err = err ? err : steps->setup(job);
	err = err ? err : steps->loop(job);
	err = err ? err : job_verify(job);
	return err ? err : steps->close(job);
}

int job_run(struct job *job, unsigned int nr_processes)
{
	int err;

	if (job->background && launch_background(job->state_path, nr_processes, &job->ready_fd))
		return 1;
	if (nr_processes == 2 && pair_fork(&job->pair))
		return 1;
	err = live(job);
	if (err && job->pair.control)
		job->pair.control->failed = true;
	err = err ? err : pair_wait(&job->pair);
	err = err ? err : job_phase(job, "done");
	if (err)
		job_phase(job, "failed");
	return err ? 1 : 0;
}
