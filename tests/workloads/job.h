/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of a job of one or two processes on a runtime: begins, checks itself when it is asked to, ends. SIGUSR1: check
 * every byte. SIGTERM: check, clean up and end. Functions that return int give 0 or -errno and have reported the failure.
 */
#ifndef WORKLOADS_JOB_H
#define WORKLOADS_JOB_H

#include <signal.h>
#include <stdbool.h>

#include "pair.h"
#include "state.h"

struct job;

struct job_steps {
	void (*describe)(struct job *job);	/* state_line() of what is its own */
	int (*setup)(struct job *job);		/* ends with launch_ready() */
	int (*loop)(struct job *job);		/* until it is to end */
	int (*check)(struct job *job);		/* every byte; counts job->state.verified_bytes */
	int (*close)(struct job *job);
};

/* The first member of each program's own struct. */
struct job {
	const struct job_steps *steps;
	const char *state_path;
	bool background;
	int ready_fd; /* tells who waits for --background; -1: nobody */
	struct pair pair;
	struct state_file state;
	sigset_t signals; /* SIGUSR1 and SIGTERM, which are blocked */
};

/* Writes the state file. */
int job_phase(struct job *job, const char *phase);
int job_verify(struct job *job);
/* All of it, in @nr_processes processes (1 or 2). The program's status. */
int job_run(struct job *job, unsigned int nr_processes);

#endif
