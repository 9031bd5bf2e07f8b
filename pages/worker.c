// SPDX-License-Identifier: GPL-2.0-only
/*
 * The worker in criu's main process, and the tasks' side of it, see pages/pages.h.
 *
 * A receiver takes jobs, one for each process, and deals their GPUs out: one
 * thread for each render node, which runs the content engine for one process at a time.
 *
 * A task opens its render nodes and pages files in its own namespaces and sends them, with
 * the dma-bufs, on a pair of sockets whose other end travels through criu's fd store: there
 * is no name to connect to, and namespaces do not matter.
 *
 * criu calls POST_FORKING only up to the first plugin that takes it, so the worker may never start. A word in shared
 * memory decides once between the worker and the first task that has waited 10 s. A job that does not arrive complete
 * stays with its task.
 *
 * Threads never log: lines, and the text of a failure, go to the task, whose log is criu's as well.
 */
#define _GNU_SOURCE
#include "pages/pages.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "host/host.h"
#include "kernel/kernel.h"
#include "pages/internal.h"
#include "amdgpu_plugin_util.h"

/* How long a task waits for the worker to start: criu starts it as soon as tasks may open files. */
#define START_TRIES   1000
#define START_POLL_MS 10

enum { UNDECIDED, RUNS, OFF };

/* The contents of one process. */
struct job {
	struct worker *worker;
	int sock; /* to the task */
	struct content_gpu *gpus;
	struct turn *turns; /* one for each of gpus */
	size_t nr_gpus;
	size_t nr_left; /* GPUs that are not done; guarded by worker->lock like the rest */
	int err;
	char error_text[FAIL_TEXT_MAX]; /* of err */
};

/* The contents of one process on one GPU, which takes turns. */
struct turn {
	struct job *job;
	struct content_gpu *gpu;
	struct gpu_thread *thread;
	struct turn *next;
};

/* One GPU's thread. It stays until the end. */
struct gpu_thread {
	struct worker *worker;
	dev_t device;
	pthread_t id;
	struct turn *first, **last; /* waiting */
	struct gpu_thread *next;
};

struct worker {
	uint64_t max_bytes; /* staging memory of a thread, 0: the engine's default */
	struct content_tally *tally;
	const char *progress_path;
	struct progress progress;
	atomic_int *state; /* shared with the tasks */
	int channel;	   /* of the main process */
	int token;	   /* of the tasks' end */
	int stop_fd;
	atomic_bool stop;
	bool has_receiver;
	int ready; /* of the receiver: 1, or -errno when it cannot be; guarded by lock */
	pthread_t receiver;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct gpu_thread *threads; /* of the receiver, until it has ended */
	size_t nr_jobs;	    /* not yet ended */
	int err;	    /* of the first job that failed: the others are cancelled */
};

/* ---- jobs ---- */

/* All but the socket. */
static void job_end(struct job *job)
{
	struct worker *worker = job->worker;

	for (size_t i = 0; i < job->nr_gpus; i++)
		wire_gpu_done(&job->gpus[i]);
	free(job->gpus);
	free(job->turns);
	pthread_mutex_lock(&worker->lock);
	worker->nr_jobs--;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	free(job);
}

/* One GPU less to do. The task learns the outcome when all are done. */
static void job_put(struct job *job)
{
	bool last;

	pthread_mutex_lock(&job->worker->lock);
	last = --job->nr_left == 0;
	pthread_mutex_unlock(&job->worker->lock);
	if (!last)
		return;
	wire_send_verdict(job->sock, job->err, job->error_text);
	close(job->sock);
	job_end(job);
}

/* Keeps the first error, with the text of the calling thread for the verdict. It cancels all jobs. */
static void job_fail(struct job *job, int err)
{
	pthread_mutex_lock(&job->worker->lock);
	if (!job->err)
		snprintf(job->error_text, sizeof(job->error_text), "%s", fail_text());
	job->err = job->err ?: err;
	job->worker->err = job->worker->err ?: err;
	pthread_mutex_unlock(&job->worker->lock);
}

/* Lines of the engine. */
static void forward_line(void *arg, enum plugin_log_level level, const char *line)
{
	const struct turn *turn = arg;

	wire_send_line(turn->job->sock, level, line);
}

static bool turn_is_cancelled(void *arg)
{
	struct worker *worker = ((struct turn *)arg)->job->worker;
	bool failed;

	pthread_mutex_lock(&worker->lock);
	failed = worker->err;
	pthread_mutex_unlock(&worker->lock);
	return failed || atomic_load(&worker->stop);
}

static int turn_copy(struct turn *turn)
{
	struct worker *worker = turn->job->worker;
	const struct content_options options = {
		.max_buffer_bytes = worker->max_bytes,
		.on_progress = progress_report,
		.progress_arg = &worker->progress,
		.is_cancelled = turn_is_cancelled,
		.cancel_arg = turn,
		.tally = worker->tally,
	};
	int err;

	if (turn_is_cancelled(turn))
		return -ECANCELED;
	plugin_log_divert(forward_line, turn);
	err = content_restore(turn->gpu, 1, &options);
	if (!err)
		progress_report(&worker->progress, turn->gpu, 1);
	plugin_log_divert(NULL, NULL);
	return err;
}

static void turn_run(struct turn *turn)
{
	struct job *job = turn->job;
	int err = turn_copy(turn);

	wire_gpu_done(turn->gpu);
	/* -ECANCELED is for those whose failure another one has told. The driver says that, too, of work that a reset took. */
	if (err)
		job_fail(job, err == -ECANCELED && fail_text()[0] ? -EIO : err);
	fail_clear();
	job_put(job);
}

/* ---- threads ---- */

/* The next turn. When the worker stops, the rest are still given out, and cancelled. NULL: no more. */
static struct turn *next_turn(struct gpu_thread *thread)
{
	struct worker *worker = thread->worker;
	struct turn *turn;

	pthread_mutex_lock(&worker->lock);
	while (!thread->first && !atomic_load(&worker->stop))
		pthread_cond_wait(&worker->changed, &worker->lock);
	turn = thread->first;
	if (turn) {
		thread->first = turn->next;
		if (!thread->first)
			thread->last = &thread->first;
	}
	pthread_mutex_unlock(&worker->lock);
	return turn;
}

static void *run_turns(void *arg)
{
	struct turn *turn;

	while ((turn = next_turn(arg)))
		turn_run(turn);
	return NULL;
}

/* criu's signals belong to the main thread. */
static int start_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

static int add_thread(struct worker *worker, dev_t device, struct gpu_thread **ret)
{
	_cleanup_free_ struct gpu_thread *thread = calloc(1, sizeof(*thread));
	int err;

	if (!thread)
		return -ENOMEM;
	*thread = (struct gpu_thread){ .worker = worker, .device = device, .next = worker->threads };
	thread->last = &thread->first;
	err = start_thread(&thread->id, run_turns, thread);
	if (err)
		return err;
	worker->threads = *ret = steal_ptr(thread);
	return 0;
}

static int find_thread(struct worker *worker, dev_t device, struct gpu_thread **ret)
{
	for (struct gpu_thread *thread = worker->threads; thread; thread = thread->next)
		if (thread->device == device) {
			*ret = thread;
			return 0;
		}
	return add_thread(worker, device, ret);
}

/* All that may fail, so that a job that was accepted can be dealt out. */
static int plan_turns(struct job *job)
{
	job->turns = calloc(job->nr_gpus + 1, sizeof(*job->turns));
	if (!job->turns)
		return -ENOMEM;
	for (size_t i = 0; i < job->nr_gpus; i++) {
		struct turn *turn = &job->turns[i];
		struct stat st;
		int err;

		*turn = (struct turn){ .job = job, .gpu = &job->gpus[i] };
		err = fstat(turn->gpu->render_fd, &st) ? errno_or_eio() : find_thread(job->worker, st.st_rdev, &turn->thread);
		if (err)
			return err;
	}
	return 0;
}

static void deal_out(struct job *job)
{
	pthread_mutex_lock(&job->worker->lock);
	job->nr_left = job->nr_gpus + 1; /* until all are dealt out */
	for (size_t i = 0; i < job->nr_gpus; i++) {
		struct gpu_thread *thread = job->turns[i].thread;

		*thread->last = &job->turns[i];
		thread->last = &job->turns[i].next;
	}
	pthread_cond_broadcast(&job->worker->changed);
	pthread_mutex_unlock(&job->worker->lock);
	job_put(job);
}

/* ---- the receiver ---- */

/* When it returns 0, the task counts on the worker. */
static int accept_job(struct job *job)
{
	int err = wire_recv_job(job->sock, job->worker->stop_fd, &job->gpus, &job->nr_gpus);

	if (err)
		return err;
	err = plan_turns(job);
	if (err)
		return err;
	return wire_send_accepted(job->sock);
}

/* Where it fails, the task still has all its files and copies by itself. */
static int take_job(struct worker *worker, int sock)
{
	struct job *job = calloc(1, sizeof(*job));
	int err;

	if (!job)
		return -ENOMEM;
	*job = (struct job){ .worker = worker, .sock = sock };
	pthread_mutex_lock(&worker->lock);
	worker->nr_jobs++;
	pthread_mutex_unlock(&worker->lock);
	err = accept_job(job);
	if (err)
		job_end(job);
	else
		deal_out(job);
	return err;
}

static void receive_job(struct worker *worker, int sock)
{
	int err = take_job(worker, sock);

	if (!err)
		return;
	wire_send_verdict(sock, err, "");
	close(sock);
}

/*
 * criu's main thread enters mount namespaces, which the kernel allows while no other thread shares its root and
 * working directory. All other threads are made by the receiver, and share the receiver's.
 */
static int leave_directories(struct worker *worker)
{
	int err = unshare(CLONE_FS) ? errno_or_eio() : 0;

	pthread_mutex_lock(&worker->lock);
	worker->ready = err ? err : 1;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	return err;
}

static void *receiver_thread(void *arg)
{
	struct worker *worker = arg;
	int sock;

	if (leave_directories(worker))
		return NULL;
	while ((sock = wire_recv_fd(worker->channel, worker->stop_fd)) >= 0 || sock == -EMFILE)
		if (sock >= 0)
			receive_job(worker, sock);
	/* Tasks that are still in the queue or come later get an error at once. */
	close(steal_fd(&worker->channel));
	return NULL;
}

/* ---- life, in the main process ---- */

static int open_channel(struct worker *worker)
{
	int socks[2];

	worker->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (worker->stop_fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		return errno_or_eio();
	worker->channel = socks[0];
	worker->token = criu_keep_file(socks[1]);
	return worker->token < 0 ? worker->token : 0;
}

static void free_memory(struct worker *worker)
{
	cleanup_close(&worker->channel);
	cleanup_close(&worker->stop_fd);
	if (worker->state)
		munmap(worker->state, sizeof(*worker->state));
	progress_close(&worker->progress);
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}

static int worker_init(struct worker *worker, const struct settings *settings, unsigned int nr_gpus,
		       struct content_tally *tally)
{
	uint64_t bytes = settings->max_buffer_size_bytes;
	void *state;

	*worker = (struct worker){ .channel = -1, .stop_fd = -1, .progress = { .fd = -1 }, .tally = tally };
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->changed, NULL);
	worker->progress_path = settings->progress;
	if (bytes)
		worker->max_bytes = bytes / (nr_gpus ? nr_gpus : 1) ?: 1;
	state = mmap(NULL, sizeof(*worker->state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (state == MAP_FAILED)
		return errno_or_eio();
	worker->state = state;
	return open_channel(worker);
}

struct worker *worker_new(const struct settings *settings, unsigned int nr_gpus, struct content_tally *tally)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	int err = worker ? worker_init(worker, settings, nr_gpus, tally) : -ENOMEM;

	if (!err)
		return worker;
	if (worker)
		free_memory(worker);
	(void)fail(err, "cannot prepare the worker that restores contents: %m");
	return NULL;
}

static int start_receiver(struct worker *worker)
{
	int err = start_thread(&worker->receiver, receiver_thread, worker);

	if (err)
		return err;
	worker->has_receiver = true;
	pthread_mutex_lock(&worker->lock);
	while (!worker->ready)
		pthread_cond_wait(&worker->changed, &worker->lock);
	err = worker->ready < 0 ? worker->ready : 0;
	pthread_mutex_unlock(&worker->lock);
	return err;
}

void worker_start(struct worker *worker)
{
	int undecided = UNDECIDED, err;

	worker->progress = progress_open(worker->progress_path, "restore");
	err = start_receiver(worker);
	if (err)
		pr_warn("no worker for the contents of all processes, each restores its own: starting a thread: %s\n",
			strerror(-err));
	atomic_compare_exchange_strong(worker->state, &undecided, err ? OFF : RUNS);
}

void worker_free(struct worker *worker)
{
	struct gpu_thread *thread;

	if (!worker)
		return;
	/* The receiver ends first, so that no thread gets a turn after it has looked for the last time. */
	eventfd_write(worker->stop_fd, 1);
	if (worker->has_receiver)
		pthread_join(worker->receiver, NULL);
	pthread_mutex_lock(&worker->lock);
	atomic_store(&worker->stop, true);
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	while ((thread = worker->threads)) {
		worker->threads = thread->next;
		pthread_join(thread->id, NULL);
		run_turns(thread); /* cancels what was dealt out after the thread had ended */
		free(thread);
	}
	free_memory(worker);
}

int worker_wait_all(struct worker *worker)
{
	int err;

	pthread_mutex_lock(&worker->lock);
	while (worker->nr_jobs)
		pthread_cond_wait(&worker->changed, &worker->lock);
	err = worker->err;
	pthread_mutex_unlock(&worker->lock);
	return err;
}

/* ---- in a task ---- */

static bool is_running(const struct worker *worker)
{
	const struct timespec pause = { .tv_nsec = START_POLL_MS * 1000000L };
	int undecided = UNDECIDED;

	for (int i = 0; i < START_TRIES && atomic_load(worker->state) == UNDECIDED; i++)
		nanosleep(&pause, NULL);
	atomic_compare_exchange_strong(worker->state, &undecided, OFF);
	return atomic_load(worker->state) == RUNS;
}

/* Sends the files and what they are. Takes @worker_end. */
static int send_job(struct worker *worker, int sock, int worker_end, const struct content_gpu *gpus, size_t nr_gpus)
{
	_cleanup_close_ int channel = criu_kept_file(worker->token), end = worker_end;
	int err;

	if (channel < 0)
		return channel;
	err = wire_send_fd(channel, end);
	if (err)
		return err;
	return wire_send_job(sock, gpus, nr_gpus);
}

/* Takes @worker_end. When it returns 0, the worker has the job, or an error of its own is in the verdict. */
static int offer(struct worker *worker, int sock, int worker_end, const struct content_gpu *gpus, size_t nr_gpus)
{
	int err = send_job(worker, sock, worker_end, gpus, nr_gpus), reply;

	if (err)
		shutdown(sock, SHUT_WR);
	reply = wire_recv_accepted(sock);
	/* What the worker says is more precise than what the socket says. */
	if (reply && reply != -ECONNRESET)
		return reply;
	return err ?: reply;
}

int worker_submit(struct worker *worker, const struct content_gpu *gpus, size_t nr_gpus)
{
	_cleanup_close_ int sock = -1, worker_end = -1;
	int socks[2], kept, token, err;

	if (!is_running(worker))
		return -ENOTCONN;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		return errno_or_eio();
	sock = socks[0];
	worker_end = socks[1];
	/* At first what may fail here: when the worker has accepted the job, nothing may. */
	kept = fcntl(sock, F_DUPFD_CLOEXEC, 0);
	token = kept < 0 ? errno_or_eio() : criu_keep_file(kept);
	if (token < 0)
		return token;
	err = offer(worker, sock, steal_fd(&worker_end), gpus, nr_gpus);
	return err ? err : token;
}

int worker_wait(int token)
{
	_cleanup_close_ int sock = criu_kept_file(token);

	return sock < 0 ? sock : wire_recv_verdict(sock);
}
