// SPDX-License-Identifier: GPL-2.0-only
/*
 * The worker in criu's main process, and the tasks' side of it, see pages/worker.h.
 *
 * A receiver takes jobs, one for each process, and deals their GPUs out to lanes: one
 * thread for each render node, which runs the content engine for one (process, GPU) at a
 * time. Threads never log: lines go to the task, whose log is criu's, too.
 *
 * criu calls POST_FORKING only in the first plugin that takes it, so the worker may never
 * start. Worker and tasks agree by a word in shared memory which of them copies.
 */
#define _GNU_SOURCE
#include "pages/worker.h"

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
#include "pages/progress.h"
#include "amdgpu_plugin_util.h"
#include "pages/wire.h"

/* How long a task waits for the worker to start. criu starts it as soon as tasks may open files. */
#define START_TRIES   1000
#define START_POLL_MS 10

enum { UNDECIDED, RUNS, OFF };

/* One process' contents. */
struct job {
	int sock; /* to the task */
	struct wire_gpu *gpus;
	size_t nr_gpus;
	size_t nr_left; /* GPUs that are not through; guarded by worker->lock like the rest */
	int err;
	char error_text[PLUGIN_LOG_LINE_MAX];
};

/* The contents of one process on one GPU. */
struct piece {
	struct worker *worker;
	struct job *job;
	struct wire_gpu *gpu;
	struct piece *next;
};

/* One GPU's thread. Lanes stay until the end. */
struct lane {
	struct worker *worker;
	dev_t device;
	pthread_t thread;
	struct piece *first, **last; /* waiting */
	struct lane *next;
};

struct worker {
	uint64_t max_bytes; /* staging memory of a lane, 0: the engine's default */
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
	struct lane *lanes; /* guarded by lock */
	size_t nr_jobs;	    /* not yet ended */
	int err;	    /* of the first job that failed */
};

/* ---- jobs ---- */

static void job_end(struct worker *worker, struct job *job)
{
	close(job->sock);
	for (size_t i = 0; i < job->nr_gpus; i++)
		wire_gpu_done(&job->gpus[i]);
	free(job->gpus);
	pthread_mutex_lock(&worker->lock);
	worker->err = worker->err ? worker->err : job->err;
	worker->nr_jobs--;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	free(job);
}

/* One part less to do. The task learns how it went when all are through. */
static void job_put(struct worker *worker, struct job *job)
{
	bool last;

	pthread_mutex_lock(&worker->lock);
	last = --job->nr_left == 0;
	pthread_mutex_unlock(&worker->lock);
	if (!last)
		return;
	wire_send_verdict(job->sock, job->err, job->error_text);
	job_end(worker, job);
}

/* Keeps the first error and the first text. */
static void job_fail(struct worker *worker, struct job *job, int err, const char *text)
{
	pthread_mutex_lock(&worker->lock);
	job->err = job->err ? job->err : err;
	if (!job->error_text[0])
		snprintf(job->error_text, sizeof(job->error_text), "%s", text);
	pthread_mutex_unlock(&worker->lock);
}

/* Lines of the engine: the first error is the verdict's text, what follows it is not worth a line. */
static void forward_line(void *arg, enum plugin_log_level level, const char *line)
{
	struct piece *piece = arg;

	if (level == PLUGIN_LOG_ERROR)
		job_fail(piece->worker, piece->job, 0, line);
	else
		wire_send_line(piece->job->sock, level, line);
}

static bool piece_is_cancelled(void *arg)
{
	struct piece *piece = arg;
	bool failed;

	pthread_mutex_lock(&piece->worker->lock);
	failed = piece->job->err;
	pthread_mutex_unlock(&piece->worker->lock);
	return failed || atomic_load(&piece->worker->stop);
}

static int piece_copy(struct piece *piece)
{
	struct content_gpu *gpu = &piece->gpu->gpu;
	const struct content_options options = {
		.max_buffer_bytes = piece->worker->max_bytes,
		.on_progress = progress_report,
		.progress_arg = &piece->worker->progress,
		.is_cancelled = piece_is_cancelled,
		.cancel_arg = piece,
	};
	int err;

	if (piece_is_cancelled(piece))
		return -ECANCELED;
	plugin_log_divert(forward_line, piece);
	err = content_restore(gpu, 1, &options);
	if (!err)
		progress_report(&piece->worker->progress, gpu, 1);
	plugin_log_divert(NULL, NULL);
	return err;
}

static void piece_run(struct piece *piece)
{
	struct worker *worker = piece->worker;
	struct job *job = piece->job;
	int err = piece_copy(piece);

	wire_gpu_done(piece->gpu);
	if (err)
		job_fail(worker, job, err, PLUGIN_ERROR_PREFIX "the restore of contents was cancelled\n");
	job_put(worker, job);
	free(piece);
}

/* ---- lanes ---- */

/* The next piece; when the worker stops, what is left is only taken to be cancelled. NULL: no more. */
static struct piece *lane_next(struct lane *lane)
{
	struct worker *worker = lane->worker;
	struct piece *piece;

	pthread_mutex_lock(&worker->lock);
	while (!lane->first && !atomic_load(&worker->stop))
		pthread_cond_wait(&worker->changed, &worker->lock);
	piece = lane->first;
	if (piece) {
		lane->first = piece->next;
		if (!lane->first)
			lane->last = &lane->first;
	}
	pthread_mutex_unlock(&worker->lock);
	return piece;
}

static void *lane_thread(void *arg)
{
	struct piece *piece;

	while ((piece = lane_next(arg)))
		piece_run(piece);
	return NULL;
}

/* criu's signals are the main thread's. */
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

/* By the receiver only, which is the only one that changes the list. */
static int find_lane(struct worker *worker, dev_t device, struct lane **ret)
{
	struct lane *lane;
	int err;

	for (lane = worker->lanes; lane; lane = lane->next)
		if (lane->device == device)
			break;
	*ret = lane;
	if (lane)
		return 0;
	lane = calloc(1, sizeof(*lane));
	if (!lane)
		return -ENOMEM;
	*lane = (struct lane){ .worker = worker, .device = device, .next = worker->lanes };
	lane->last = &lane->first;
	err = start_thread(&lane->thread, lane_thread, lane);
	if (err) {
		free(lane);
		return err;
	}
	worker->lanes = lane;
	*ret = lane;
	return 0;
}

static int deal_out(struct worker *worker, struct job *job, struct wire_gpu *gpu)
{
	struct piece *piece = calloc(1, sizeof(*piece));
	struct lane *lane = NULL;
	struct stat st;
	int err = piece ? 0 : -ENOMEM;

	if (!err && fstat(gpu->gpu.render_fd, &st))
		err = errno_or_eio();
	if (!err)
		err = find_lane(worker, st.st_rdev, &lane);
	if (err) {
		free(piece);
		return err;
	}
	*piece = (struct piece){ .worker = worker, .job = job, .gpu = gpu };
	pthread_mutex_lock(&worker->lock);
	job->nr_left++;
	*lane->last = piece;
	lane->last = &piece->next;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	return 0;
}

/* ---- the receiver ---- */

/* Takes the job: when it returns 0, the contents are the worker's, and an error is the job's. */
static int accept_job(struct worker *worker, struct job *job)
{
	int err = wire_recv_job(job->sock, worker->stop_fd, &job->gpus, &job->nr_gpus);

	err = err ? err : wire_send_accepted(job->sock);
	err = err ? err : wire_recv_begin(job->sock, worker->stop_fd);
	if (err)
		return err;
	for (size_t i = 0; i < job->nr_gpus && !err; i++)
		err = deal_out(worker, job, &job->gpus[i]);
	if (err)
		job_fail(worker, job, err, PLUGIN_ERROR_PREFIX "no memory or no thread to restore contents\n");
	return 0;
}

static void receive_job(struct worker *worker, int sock)
{
	struct job *job = calloc(1, sizeof(*job));
	int err = job ? 0 : -ENOMEM;

	if (!err) {
		*job = (struct job){ .sock = sock, .nr_left = 1 }; /* until all GPUs are dealt out */
		pthread_mutex_lock(&worker->lock);
		worker->nr_jobs++;
		pthread_mutex_unlock(&worker->lock);
		err = accept_job(worker, job);
	}
	if (!err) {
		job_put(worker, job);
		return;
	}
	/* The task still has all its files, and copies itself. */
	wire_send_verdict(sock, err, "");
	if (job)
		job_end(worker, job);
	else
		close(sock);
}

/*
 * criu's main thread enters mount namespaces, and the kernel lets it as long as no other thread has the same root and
 * working directory. All other threads are made by the receiver, and share those of the receiver.
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
	/* Tasks that are still in the queue, or come later, get an error instead of silence. */
	close(worker->channel);
	worker->channel = -1;
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
	if (worker->channel >= 0)
		close(worker->channel);
	if (worker->stop_fd >= 0)
		close(worker->stop_fd);
	if (worker->state)
		munmap(worker->state, sizeof(*worker->state));
	progress_close(&worker->progress);
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}

struct worker *worker_new(const struct settings *settings, unsigned int nr_gpus)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	void *state = mmap(NULL, sizeof(*worker->state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err = worker && state != MAP_FAILED ? 0 : -ENOMEM;

	if (worker) {
		*worker = (struct worker){ .channel = -1, .stop_fd = -1, .progress = { .fd = -1 } };
		pthread_mutex_init(&worker->lock, NULL);
		pthread_cond_init(&worker->changed, NULL);
		worker->progress_path = settings->progress;
		worker->state = state == MAP_FAILED ? NULL : state;
		if (settings->max_buffer_size_bytes)
			worker->max_bytes = settings->max_buffer_size_bytes / (nr_gpus ? nr_gpus : 1) ?: 1;
		err = err ? err : open_channel(worker);
		if (!err)
			return worker;
		free_memory(worker);
	}
	pr_err("preparing the worker that restores contents: %s", strerror(-err));
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
		pr_warn("no worker for the contents of all processes, each restores its own: starting a thread: %s",
			strerror(-err));
	atomic_compare_exchange_strong(worker->state, &undecided, err ? OFF : RUNS);
}

void worker_free(struct worker *worker)
{
	struct lane *lane;

	if (!worker)
		return;
	/* First the one that deals out, so that no lane gets a piece after it has looked for the last time. */
	eventfd_write(worker->stop_fd, 1);
	if (worker->has_receiver)
		pthread_join(worker->receiver, NULL);
	pthread_mutex_lock(&worker->lock);
	atomic_store(&worker->stop, true);
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	while ((lane = worker->lanes)) {
		worker->lanes = lane->next;
		pthread_join(lane->thread, NULL);
		lane_thread(lane); /* cancels what was dealt out when the thread had ended */
		free(lane);
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

/* Takes @worker_end. When it returns 0, the worker has the job and waits for the word to begin. */
static int offer(struct worker *worker, int sock, int worker_end, const struct content_gpu *gpus, size_t nr_gpus)
{
	_cleanup_close_ int channel = criu_kept_file(worker->token);
	int err = channel < 0 ? channel : wire_send_fd(channel, worker_end), reply;

	err = err ? err : wire_send_job(sock, gpus, nr_gpus);
	close(worker_end);
	/* What the worker says tells more than what the socket says. */
	if (err)
		shutdown(sock, SHUT_WR);
	reply = wire_recv_accepted(sock);
	return reply && reply != -ECONNRESET ? reply : err ? err : reply;
}

/* The token, when the worker begins. With an error it never will: it finds the socket closed. */
static int begin(int sock)
{
	int kept = fcntl(sock, F_DUPFD_CLOEXEC, 0), token, err;

	if (kept < 0)
		return errno_or_eio();
	token = criu_keep_file(kept);
	if (token < 0)
		return token;
	err = wire_send_begin(sock);
	if (!err)
		return token;
	shutdown(sock, SHUT_RDWR);
	return err;
}

int worker_submit(struct worker *worker, const struct content_gpu *gpus, size_t nr_gpus)
{
	int socks[2], ret;

	if (!is_running(worker))
		return -ENOTCONN;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		return errno_or_eio();
	ret = offer(worker, socks[0], socks[1], gpus, nr_gpus);
	ret = ret ? ret : begin(socks[0]);
	close(socks[0]);
	return ret;
}

int worker_wait(int token)
{
	_cleanup_close_ int sock = criu_kept_file(token);

	return sock < 0 ? sock : wire_recv_verdict(sock);
}
