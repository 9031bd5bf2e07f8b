// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpujob: main program, processes, signals, the state file.
 *
 * Children are forked before the GPU is opened: each process has a GPU context of its
 * own. Nothing is held open that criu could not save: the state file, the message file,
 * /dev/null, /dev/kfd and render nodes.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpujob_extra.h"
#include "launch.h"
#include "report.h"
#include "state.h"

struct job {
	struct job_options options;
	unsigned int number; /* 0: parent, else the child's */
	pid_t children[64];  /* of the parent; 0: gone */
	struct kfd kfd;
	int second_kfd, second_render[KFD_MAX_GPUS]; /* with --reopen */
	struct job_gpu gpus[KFD_MAX_GPUS];
	unsigned int nr_gpus;
	struct state_file state;
	int ready_fd; /* tells who waits for --background; -1: nobody */
};

static volatile sig_atomic_t verify_wanted, spoil_wanted, stop_wanted;

static void on_signal(int signal)
{
	if (signal == SIGTERM)
		stop_wanted = 1;
	else if (signal == SIGUSR2)
		spoil_wanted = 1;
	else
		verify_wanted = 1;
}

static int phase_set(struct job *job, const char *phase)
{
	state_begin(&job->state, phase);
	state_line(&job->state, "token %" PRIu32, job_token_value());
	state_line(&job->state, "discarded %" PRIu32, job_discard_value());
	return state_end(&job->state);
}

/* The GPUs that this process works on. */
static int gpus_choose(struct job *job)
{
	const struct job_options *options = &job->options;
	unsigned int nr = options->all_gpus ? job->kfd.nr_gpus : options->nr_gpus;

	for (unsigned int i = 0; i < nr; i++) {
		unsigned int index = options->all_gpus ? i : options->gpus[i];

		if (index >= job->kfd.nr_gpus)
			return report(ENODEV, "--gpus %u: there are only %u GPUs", index, job->kfd.nr_gpus);
		if (options->split && i != job->number % nr)
			continue;
		job->gpus[job->nr_gpus++] = (struct job_gpu){
			.kfd = &job->kfd,
			.gpu = &job->kfd.gpus[index],
			.options = options,
			.process = job->number,
			.seed = options->seed << 40 | (uint64_t)(job->number + 1) << 32 | (uint64_t)(index + 1) << 24,
		};
	}
	return 0;
}

static bool has_extras(const struct job *job)
{
	return job->nr_gpus && (!job->options.extras_last || job->number == job->options.children);
}

static int generation_run(struct job *job)
{
	for (unsigned int i = 0; i < job->nr_gpus; i++) {
		int err = job_gpu_busy_step(&job->gpus[i]);

		err = err ? err : job_gpu_round(&job->gpus[i], job->state.generation + 1);
		if (err)
			return err;
	}
	job->state.generation++;
	return has_extras(job) ? job_extras_step(&job->gpus[0]) : 0;
}

/* Second open files stay open and unused: a checkpoint has to keep them apart from the first. */
static int reopen(struct job *job)
{
	if (job->options.reopen_kfd) {
		job->second_kfd = kfd_reopen();
		if (job->second_kfd < 0)
			return job->second_kfd;
	}
	for (unsigned int i = 0; i < job->kfd.nr_gpus && job->options.reopen_render; i++) {
		job->second_render[i] = job->options.reopen_first ? job->kfd.gpus[i].spare_fd :
								    kfd_gpu_reopen(&job->kfd.gpus[i]);
		if (job->second_render[i] < 0)
			return job->second_render[i];
	}
	return 0;
}

static int reopened_check(struct job *job)
{
	int err = job->options.reopen_kfd ? kfd_reopen_check(job->second_kfd) : 0;

	for (unsigned int i = 0; !err && i < job->kfd.nr_gpus && job->options.reopen_render; i++) {
		struct kfd_gpu *gpu = &job->kfd.gpus[i];
		struct kfd_bo bo;

		err = kfd_gpu_reopen_check(gpu, job->second_render[i]);
		/* Only the file with the address space can map it. */
		err = err ? err : kfd_bo_alloc(&job->kfd, gpu, KFD_MEMORY_GTT, KFD_PAGE_SIZE, &bo);
		err = err ? err : kfd_bo_free(&job->kfd, &bo);
	}
	return err;
}

/* Those that are to be opened. */
static uint64_t gpus_wanted(const struct job_options *options)
{
	uint64_t wanted = options->lone ? 0 : ~0ull;

	for (unsigned int i = 0; i < options->nr_gpus; i++)
		wanted |= 1ull << options->gpus[i];
	return wanted;
}

static int setup(struct job *job)
{
	int err = kfd_open(&job->kfd, gpus_wanted(&job->options), job->options.reopen_first);

	err = err || !job->options.kfd_last ? err : kfd_renumber(&job->kfd.fd, 100);
	err = err ? err : reopen(job);
	err = err ? err : gpus_choose(job);
	if (!err && job->options.extras & job_extra_bit("assert"))
		err = kfd_runtime_enable(&job->kfd);
	for (unsigned int i = 0; !err && i < job->nr_gpus; i++)
		err = job_gpu_setup(&job->gpus[i]);
	for (unsigned int i = 0; !err && i < job->nr_gpus && !job->options.apart; i++)
		err = job_gpu_connect(&job->gpus[i], &job->gpus[(i + 1) % job->nr_gpus]);
	if (!err && has_extras(job))
		err = job_extras_setup(&job->gpus[0]);
	return err ? err : generation_run(job);
}

static int verify(struct job *job)
{
	int err = phase_set(job, "verifying");

	job->state.verified_bytes = 0;
	for (unsigned int i = 0; !err && i < job->nr_gpus; i++)
		err = job_gpu_check(&job->gpus[i], &job->state.verified_bytes);
	err = err ? err : reopened_check(job);
	if (!err && has_extras(job))
		err = job_extras_check(&job->gpus[0]);
	if (!err)
		job->state.verifies++;
	return err;
}

static int teardown(struct job *job)
{
	int err = has_extras(job) ? job_extras_teardown(&job->gpus[0]) : 0;

	for (unsigned int i = 0; !err && i < job->nr_gpus; i++)
		err = job_gpu_teardown(&job->gpus[i]);
	return err ? err : kfd_close(&job->kfd);
}

/* Sleeps between generations; a signal ends it early. */
static int pace(struct job *job)
{
	const struct job_options *options = &job->options;
	struct timespec t = { .tv_sec = options->pace_ms / 1000, .tv_nsec = options->pace_ms % 1000 * 1000000L };
	int err;

	if (!options->events || !job->nr_gpus) {
		nanosleep(&t, NULL);
		return 0;
	}
	err = kfd_event_wait(&job->kfd, &job->gpus[0].never, options->pace_ms);
	if (!err)
		return report(EILSEQ, "event %u came, but nothing signals it", job->gpus[0].never.id);
	return err == -ETIME ? 0 : err;
}

/* A child that ends on its own has failed. */
static int children_look(struct job *job)
{
	for (unsigned int i = 0; i < job->options.children && !job->number; i++) {
		int status;
		pid_t pid = job->children[i] ? waitpid(job->children[i], &status, WNOHANG) : 0;

		if (pid < 0)
			return report(errno, "child %u (pid %d): %m", i + 1, (int)job->children[i]);
		if (!pid)
			continue;
		job->children[i] = 0;
		return report(ECHILD, "child %u (pid %d) ended with status %#x", i + 1, (int)pid, status);
	}
	return 0;
}

static int children_stop(struct job *job, int signal)
{
	int err = 0;

	for (unsigned int i = 0; i < job->options.children && !job->number; i++)
		if (job->children[i])
			kill(job->children[i], signal);
	for (unsigned int i = 0; i < job->options.children && !job->number; i++) {
		int status = 0;

		if (!job->children[i])
			continue;
		if (waitpid(job->children[i], &status, 0) < 0)
			err = report(errno, "child %u (pid %d): %m", i + 1, (int)job->children[i]);
		else if (status && signal == SIGTERM)
			err = report(ECHILD, "child %u (pid %d) ended with status %#x", i + 1, (int)job->children[i],
				     status);
		job->children[i] = 0;
	}
	return err;
}

static int loop(struct job *job)
{
	while (!stop_wanted) {
		int err = children_look(job);

		if (!err && spoil_wanted) {
			spoil_wanted = 0;
			err = job_gpu_spoil(&job->gpus[0], job->options.spoil);
		}
		if (!err && verify_wanted) {
			verify_wanted = 0;
			err = verify(job);
		}
		err = err ? err : generation_run(job);
		err = err ? err : phase_set(job, "running");
		err = err ? err : pace(job);
		if (err)
			return err;
	}
	return 0;
}

static int process_run(struct job *job)
{
	int err = state_open(&job->state, job->options.state_path, job->number);

	err = err ? err : phase_set(job, "starting");
	err = err ? err : setup(job);
	err = err ? err : phase_set(job, "running");
	if (!err)
		launch_ready(&job->ready_fd);
	err = err ? err : loop(job);
	err = err ? err : verify(job);
	err = err ? err : children_stop(job, SIGTERM);
	err = err ? err : teardown(job);
	err = err ? err : phase_set(job, "done");
	if (!err)
		return 0;
	children_stop(job, SIGKILL);
	phase_set(job, "failed");
	return 1;
}

static int signals_setup(void)
{
	static const int signals[] = { SIGUSR1, SIGUSR2, SIGTERM };
	struct sigaction action = { .sa_handler = on_signal };

	for (unsigned int i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (sigaction(signals[i], &action, NULL))
			return report(errno, "sigaction: %m");
	return 0;
}

/* Parent and children; ends with the process' exit status. */
static int job_run(struct job *job)
{
	if (signals_setup())
		return 1;
	if (job->options.extras & job_extra_bit("token") && job_token_share(job->options.children))
		return 1;
	for (unsigned int i = 0; i < job->options.children; i++) {
		pid_t parent = getpid(), pid = fork();

		if (pid < 0) {
			report(errno, "fork: %m");
			return 1;
		}
		if (!pid) {
			job->number = i + 1;
			memset(job->children, 0, sizeof(job->children));
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				return 1;
			break;
		}
		job->children[i] = pid;
	}
	return process_run(job);
}

int main(int argc, char **argv)
{
	static struct job job = { .ready_fd = -1 };

	report_name("gpujob");
	if (!job_options_parse(argc, argv, &job.options))
		return 2;
	if (job.options.background &&
	    launch_background(job.options.state_path, job.options.children + 1, &job.ready_fd))
		return 1;
	return job_run(&job);
}
