// SPDX-License-Identifier: GPL-2.0-only
/*
 * sharejob: main program, processes, generations, the state file.
 *
 * Processes are forked before the GPU is opened, and meet in shared memory: all write, all check, all end at the same
 * generation. Signals and state files are those of gpujob.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"
#include "report.h"
#include "sharejob_steps.h"

#define RING_BYTES    (16u << 10)
#define PATIENCE_NAPS 60000u
#define PACE_MS	      20u

static const char usage[] =
	"usage: sharejob --state FILE [OPTION...] CASE\n"
	"       sharejob --list\n"
	"Processes that share GPU memory; --list tells the cases.\n"
	"  --state FILE   what the first process does, for scripts; FILE.1 and so on for the others\n"
	"  --processes N  of cases that take any number (4)\n"
	"  --rounds N     ends by itself after N generations\n"
	"  --background   return when it computes, in a session of its own; its messages go to FILE.log\n"
	"SIGUSR1: check everything. SIGUSR2 to a process without views: it ends and frees nothing.\n"
	"SIGTERM to the first process: check, free everything and end; the status is 0 only when all was right.\n";

static const struct share_case *const subjects[] = { share_cases, share_later_cases };

#define NR_SUBJECTS (sizeof(subjects) / sizeof(*subjects))

static volatile sig_atomic_t verify_wanted, stop_wanted, quit_wanted;

static void on_signal(int signal)
{
	if (signal == SIGTERM)
		stop_wanted = 1;
	else if (signal == SIGUSR2)
		quit_wanted = 1;
	else
		verify_wanted = 1;
}

static void nap(unsigned int ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

/* ---- meetings ---- */

static bool all_came(const struct share_process *me, uint32_t times)
{
	for (unsigned int i = 0; i < me->nr_processes; i++)
		if (me->control->meetings[i] < times)
			return false;
	return true;
}

/* One that is not in the tree ends when the first process is gone. */
static bool alone(const struct share_process *me)
{
	return me->outside && kill(me->first, 0) && errno == ESRCH;
}

int share_meet(struct share_process *me)
{
	uint32_t times = ++me->control->meetings[me->number];

	for (unsigned int naps = 0; !all_came(me, times); naps++) {
		if (me->control->failed || alone(me))
			return -ECANCELED;
		if (naps == PATIENCE_NAPS)
			return report(ETIME, "the other processes do not come to meeting %u", times);
		nap(1);
	}
	return me->control->failed ? -ECANCELED : 0;
}

/* ---- one process ---- */

static int gpu_open(struct share_process *me, struct share_gpu *gpu, struct kfd_gpu *kfd_gpu)
{
	int err = sdma_create(&me->kfd, kfd_gpu, RING_BYTES, &gpu->queue);

	gpu->gpu = kfd_gpu;
	err = err ? err : kfd_bo_alloc(&me->kfd, kfd_gpu, KFD_MEMORY_GTT, SHARE_BYTES, &gpu->window);
	return err ? err : share_file_keep(me, kfd_gpu->render_fd, false, true);
}

static int gpus_open(struct share_process *me)
{
	unsigned int wanted = me->kase->nr_gpus, traits = me->kase->traits;
	int nr, err;

	if (traits & SHARE_NO_KFD || (traits & SHARE_ONE_KFD && me->number < me->nr_processes - 1)) {
		nr = kfd_topology_read(me->kfd.gpus, KFD_MAX_GPUS);
		me->kfd.nr_gpus = nr < 0 ? 0 : (unsigned int)nr;
		me->kfd.fd = -1;
		return nr < 0 ? nr : 0;
	}
	err = kfd_open(&me->kfd, ~0ull, traits & SHARE_SPARE_FILES);
	if (!err && me->kfd.nr_gpus < wanted)
		err = report(ENODEV, "%s needs %u GPUs, there are %u", me->kase->name, wanted, me->kfd.nr_gpus);
	for (; !err && me->nr_gpus < wanted; me->nr_gpus++)
		err = gpu_open(me, &me->gpus[me->nr_gpus], &me->kfd.gpus[me->nr_gpus]);
	return err;
}

static int gpus_close(struct share_process *me)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < me->nr_gpus; i++) {
		err = sdma_destroy(&me->gpus[i].queue);
		err = err ? err : kfd_bo_free(&me->kfd, &me->gpus[i].window);
	}
	return err || me->kfd.fd < 0 ? err : kfd_close(&me->kfd);
}

static int check(struct share_process *me, bool all)
{
	int err = share_views_check(me, all);

	if (!err && all)
		err = share_objects_check(me);
	return err || !all || !me->kase->check ? err : me->kase->check(me);
}

/* Looks at the last generation, as a checkpoint may just have been, and makes the next one. */
static int generation_run(struct share_process *me, bool *ret_last)
{
	bool verify, last;
	int err;

	if (!me->number && (stop_wanted || (me->rounds && me->state.generation + 1 >= me->rounds)))
		me->control->stop = true;
	err = share_meet(me);
	if (err)
		return err;
	last = me->control->stop;
	verify = verify_wanted || last;
	verify_wanted = 0;
	err = share_inodes_check(me);
	err = err ? err : check(me, verify);
	err = err ? err : share_meet(me);
	if (err)
		return err;
	me->ending = last;
	err = share_views_write(me);
	err = err ? err : share_meet(me);
	err = err ? err : share_views_check(me, last);
	me->state.verifies += !err && verify;
	*ret_last = last;
	return err;
}

/* Nobody waits for it any more. */
static void leave(struct share_process *me)
{
	me->control->meetings[me->number] = UINT32_MAX;
	_exit(0);
}

static int loop(struct share_process *me)
{
	bool last = false;
	int err = 0;

	while (!err && !last) {
		if (quit_wanted)
			leave(me);
		err = generation_run(me, &last);
		err = err ? err : state_write(&me->state, "running");
		if (err || last)
			break;
		launch_ready(&me->ready_fd);
		nap(PACE_MS);
	}
	return err;
}

/* All that is mapped is mapped anew and still shows the same; then everything is freed, by all at once. */
static int end(struct share_process *me)
{
	int err = share_meet(me);

	err = err ? err : share_objects_remap(me);
	err = err ? err : share_views_check(me, true);
	err = err ? err : share_meet(me);
	err = err ? err : share_objects_free(me);
	return err ? err : gpus_close(me);
}

static int children_wait(struct share_process *me)
{
	int err = 0;

	for (unsigned int i = 1; i < me->nr_processes; i++) {
		int status = 0;

		if (!me->children[i])
			continue;
		if (waitpid(me->children[i], &status, 0) < 0)
			err = report(errno, "process %u: %m", i);
		else if (status)
			err = report(ECHILD, "process %u (pid %d) ended with status %#x", i, (int)me->children[i],
				     status);
		me->children[i] = 0;
	}
	return err;
}

/* The last process of some cases is gone before the others compute. */
static int last_leaves(struct share_process *me)
{
	unsigned int last = me->nr_processes - 1;
	int status;

	if (me->number == last) {
		char path[4096];

		snprintf(path, sizeof(path), "%s.%u", me->state_path, last);
		unlink(path);
		launch_ready(&me->ready_fd);
		leave(me);
	}
	if (me->number)
		return 0;
	if (waitpid(me->children[last], &status, 0) < 0)
		return report(errno, "process %u: %m", last);
	me->children[last] = 0;
	return status ? report(ECHILD, "process %u ended with status %#x", last, status) : 0;
}

static int fork_process(struct share_process *me, unsigned int number);

static int setup(struct share_process *me)
{
	const unsigned int traits = me->kase->traits;
	bool late = traits & SHARE_LATE && me->number == me->nr_processes - 1;
	int err = state_open(&me->state, me->state_path, me->number);

	err = err ? err : state_write(&me->state, "starting");
	err = err || late ? err : gpus_open(me);
	err = err ? err : share_steps_run(me);
	err = err || !me->kase->setup ? err : me->kase->setup(me);
	if (!err && traits & SHARE_LATE && !me->number) {
		err = fork_process(me, me->nr_processes - 1);
		if (!err && me->number)
			return setup(me);
	}
	err = err ? err : share_meet(me);
	share_boxes_close(me);
	if (!err && traits & SHARE_LAST_LEAVES)
		err = last_leaves(me);
	return err ? err : share_objects_note(me);
}

static int process_run(struct share_process *me)
{
	int err = setup(me);

	err = err ? err : loop(me);
	err = err ? err : end(me);
	if (err)
		me->control->failed = true;
	if (!me->number && !err)
		err = children_wait(me);
	state_write(&me->state, err ? "failed" : "done");
	return err ? 1 : 0;
}

/* ---- all processes ---- */

/* The new process gets @me->number = @number. One outside of the tree is a child of a process that is gone. */
static int fork_process(struct share_process *me, unsigned int number)
{
	bool outside = me->kase->traits & SHARE_OUTSIDE && number == me->nr_processes - 1;
	pid_t first = getpid(), pid = fork();

	if (pid < 0)
		return report(errno, "fork: %m");
	if (pid) {
		if (!outside)
			me->children[number] = pid;
		else if (waitpid(pid, NULL, 0) < 0)
			return report(errno, "waiting for a process: %m");
		return 0;
	}
	memset(me->children, 0, sizeof(me->children));
	if (me->number == 0 && me->state.fd)
		close(me->state.fd);
	me->number = number;
	me->first = first;
	me->outside = outside;
	if (outside) {
		pid = fork();
		if (pid)
			_exit(pid < 0);
		setsid();
		return 0;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != first)
		_exit(1);
	return 0;
}

static int job_run(struct share_process *me)
{
	unsigned int early = me->nr_processes - !!(me->kase->traits & SHARE_LATE);
	struct sigaction action = { .sa_handler = on_signal };
	void *p = mmap(NULL, sizeof(*me->control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err;

	if (p == MAP_FAILED || sigaction(SIGUSR1, &action, NULL) || sigaction(SIGUSR2, &action, NULL) ||
	    sigaction(SIGTERM, &action, NULL))
		return report(errno, "shared memory and signals: %m");
	me->control = p;
	err = share_boxes_open(me);
	for (unsigned int i = 1; !err && i < early && !me->number; i++)
		err = fork_process(me, i);
	return err ? 1 : process_run(me);
}

/* ---- arguments ---- */

static const struct share_case *case_find(const char *name)
{
	for (unsigned int i = 0; i < NR_SUBJECTS; i++)
		for (const struct share_case *kase = subjects[i]; kase->name; kase++)
			if (!strcmp(kase->name, name))
				return kase;
	return NULL;
}

static int cases_list(void)
{
	for (unsigned int i = 0; i < NR_SUBJECTS; i++)
		for (const struct share_case *kase = subjects[i]; kase->name; kase++)
			printf("%-22s %s\n", kase->name, kase->what);
	return 0;
}

static unsigned int number_take(const char *text)
{
	char *rest;
	unsigned long number = strtoul(text, &rest, 0);

	return *rest || number > 1000000 ? 0 : (unsigned int)number;
}

static bool options_parse(int argc, char **argv, struct share_process *me, bool *background)
{
	static const struct option options[] = {
		{ "state", required_argument, NULL, 's' },
		{ "processes", required_argument, NULL, 'n' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "background", no_argument, NULL, 'd' },
		{ "list", no_argument, NULL, 'l' },
		{ 0 },
	};
	unsigned int number = 1;
	int option;

	me->nr_processes = 4;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'l')
			exit(cases_list());
		if (option == 's')
			me->state_path = optarg;
		else if (option == 'd')
			*background = true;
		else
			number = option == '?' ? 0 : number_take(optarg);
		if (!number)
			return false;
		if (option == 'n')
			me->nr_processes = number;
		else if (option == 'r')
			me->rounds = number;
	}
	if (!me->state_path || optind + 1 != argc || me->nr_processes > SHARE_MAX_PROCESSES)
		return false;
	me->kase = case_find(argv[optind]);
	if (me->kase && me->kase->nr_processes)
		me->nr_processes = me->kase->nr_processes;
	return me->kase;
}

int main(int argc, char **argv)
{
	static struct share_process me = { .ready_fd = -1, .kfd.fd = -1 };
	bool background = false;

	report_name("sharejob");
	if (!options_parse(argc, argv, &me, &background)) {
		fputs(usage, stderr);
		return 2;
	}
	if (background && launch_background(me.state_path, me.nr_processes, &me.ready_fd))
		return 1;
	return job_run(&me);
}
