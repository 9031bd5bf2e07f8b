// SPDX-License-Identifier: GPL-2.0-only
/*
 * BOs of restored tasks, which criu's main process fills. A task opens pages files and render nodes in its own namespaces, and
 * puts them with its dma-bufs into criu's store of files; what they are is in memory that all share.
 *
 * With criu 4.2 and later a thread fills what is there while tasks restore their memory, and ends before a task runs; with
 * older ones, or where another plugin keeps the hook from this one, all is filled then. Streams are, too: the
 * pages files come one after the other, and criu reads its own meanwhile.
 *
 * criu's main thread enters mount namespaces meanwhile, which the kernel allows while no other thread shares its root and
 * working directory: the thread has its own, and starts all others. It does not log, since criu's log is not made for
 * threads: criu's main thread logs its lines in the end.
 */
#define _GNU_SOURCE
#include "pages/pages.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "content/content.h"
#include "host/host.h"
#include "pages/internal.h"
#include "amdgpu_plugin_util.h"

#define MAX_HANDED     (1u << 14) /* 256 processes on 64 GPUs each */
#define MAX_HANDED_BOS (1u << 20)

#define AWAIT_NAP_MS  5
#define START_SECONDS 10 /* how long a task waits for the thread: it starts when tasks may open files */

enum handed_state { HANDED_NOT_YET, HANDED, HANDED_TAKEN, HANDED_DONE };

/* What a task has on one GPU. */
struct handed {
	atomic_int state;
	uint32_t minor;
	int pid; /* of the task, in its own namespace */
	struct content_gpu gpu; /* without files and BOs */
	int files_store_id;	/* of a bundle with the render node and, unless it is streamed, the pages file */
	unsigned int first_bo;
	size_t nr_bos;
};

struct handed_bo {
	int store_id;	      /* of the bundle with its dma-buf, and those of its neighbours */
	struct content_bo bo; /* dmabuf_fd: the task's */
};

/*
 * In memory that tasks share with criu's main process. Who sets what, once:
 *
 *   is_filling   the main process, when its thread has begun to fill
 *   is_closed    the main process, when no task hands over any more
 *   err          who fills, when that has failed; after error_text
 *   is_told      the process that says these words
 */
struct handed_table {
	atomic_uint nr, nr_bos;
	atomic_bool is_filling, is_closed, is_told;
	atomic_int err;
	char error_text[FAIL_TEXT_MAX];
	struct handed list[MAX_HANDED];
	struct handed_bo bos[MAX_HANDED_BOS];
};

struct line {
	enum plugin_log_level level;
	char text[PLUGIN_LOG_LINE_MAX];
};

/* A GPU, and what is copied there. */
struct place {
	uint32_t minor;	       /* 0: not known yet */
	struct handed *handed; /* NULL: none */
};

/* In criu's main process; tasks have a copy, of which they use the table. */
struct pages_filling {
	struct handed_table *table;
	const struct settings *settings;
	struct content_gpu *gpus; /* what is copied now on each GPU; one for all where files are streamed */
	struct place *places;	  /* of each */
	size_t nr_gpus;
	unsigned int first_left; /* of the table: those before are taken */
	struct content_tally tally;
	int main_store_id; /* a pidfd of criu's main process; -1: no task waits */

	bool has_thread;
	pthread_t thread;
	atomic_bool is_cancelled;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int started;	    /* 1, or -errno; 0: not yet. Guarded by lock, as those that follow */
	bool ended;
	struct line *lines; /* of the thread, not logged yet */
	size_t nr_lines;
};

/* ---- in a task ---- */

static size_t bundle_size(size_t left)
{
	return left < BUNDLE_MAX ? left : BUNDLE_MAX;
}

static int hand_over(struct handed_table *table, const struct content_gpu *gpu, uint32_t minor)
{
	const int fds[] = { gpu->render_fd, gpu->pages_fd };
	unsigned int at = atomic_fetch_add(&table->nr, 1);
	unsigned int first = atomic_fetch_add(&table->nr_bos, (unsigned int)gpu->nr_bos);
	struct handed *handed;
	int store_id;

	if (at >= MAX_HANDED || first > MAX_HANDED_BOS || gpu->nr_bos > MAX_HANDED_BOS - first)
		return fail(-E2BIG, "more than %u buffers, or processes with more than %u GPUs together, cannot be restored",
			    MAX_HANDED_BOS, MAX_HANDED);
	store_id = criu_keep_files(fds, gpu->streaming ? 1 : ARRAY_SIZE(fds));
	if (store_id < 0)
		return store_id;
	handed = &table->list[at];
	handed->minor = minor;
	handed->pid = getpid();
	handed->first_bo = first;
	handed->nr_bos = gpu->nr_bos;
	handed->files_store_id = store_id;
	handed->gpu = *gpu;
	handed->gpu.render_fd = handed->gpu.pages_fd = -1;
	handed->gpu.bos = NULL;
	handed->gpu.nr_bos = 0;
	for (size_t i = 0; i < gpu->nr_bos; i += BUNDLE_MAX) {
		size_t size = bundle_size(gpu->nr_bos - i);
		int bo_fds[BUNDLE_MAX];

		for (size_t j = 0; j < size; j++)
			bo_fds[j] = gpu->bos[i + j].dmabuf_fd;
		store_id = criu_keep_files(bo_fds, size);
		if (store_id < 0)
			return store_id;
		for (size_t j = i; j < i + size; j++)
			table->bos[first + j] = (struct handed_bo){ store_id, gpu->bos[j] };
	}
	atomic_store(&handed->state, HANDED);
	return 0;
}

int pages_hand_over(struct pages_filling *filling, const struct gpu_process *process)
{
	size_t nr = 0;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < process->state.nr_devices; i++) {
		struct content_gpu gpu;

		r = pages_open(process, i, CONTENT_RESTORE, &gpu);
		nr += r > 0;
		if (r > 0)
			r = hand_over(filling->table, &gpu, process->minors[i]);
		pages_close(&gpu);
	}
	if (r < 0)
		return r;
	if (nr)
		pr_info("criu's main process restores the buffer data of %zu GPU%s\n", nr, nr == 1 ? "" : "s");
	return 0;
}

/* The words of the first failure are said once. */
static int tell_failure(struct handed_table *table)
{
	int err = atomic_load(&table->err);

	if (!err)
		return 0;
	if (!atomic_exchange(&table->is_told, true))
		return fail(err == -ECANCELED ? -EIO : err, "%s", table->error_text);
	pr_info("the buffer data of another process cannot be restored\n");
	return -ECANCELED;
}

int pages_await(const struct pages_filling *filling)
{
	struct handed_table *table = filling->table;
	_cleanup_close_ int criu = filling->main_store_id < 0 ? -1 : criu_kept_file(filling->main_store_id);
	struct pollfd ended = { .fd = criu, .events = POLLIN };
	double end = monotonic_seconds() + START_SECONDS;

	if (criu < 0)
		return filling->main_store_id < 0 ? 0 : criu;
	while (!atomic_load(&table->err)) {
		unsigned int nr = atomic_load(&table->nr);
		bool is_filled = true;

		for (unsigned int i = 0; i < nr && i < MAX_HANDED; i++) {
			/* Those of other tasks may not be complete yet. */
			int state = atomic_load(&table->list[i].state);

			if (state != HANDED_NOT_YET && state != HANDED_DONE && table->list[i].pid == getpid())
				is_filled = false;
		}
		if (is_filled)
			break;
		if (!atomic_load(&table->is_filling) && monotonic_seconds() > end)
			return 0;
		if (poll(&ended, 1, AWAIT_NAP_MS) > 0)
			return fail(-ECONNRESET, "criu's main process, which restores the memory of the GPUs, is gone");
	}
	return tell_failure(table);
}

/* ---- in criu's main process: what tasks have handed over ---- */

static int take(int store_id, int fds[BUNDLE_MAX], size_t nr)
{
	size_t got = 0;
	int err = criu_kept_files(store_id, fds, &got);

	if (err || got == nr)
		return err;
	while (got)
		close(fds[--got]);
	return fail(-EMFILE, "cannot take %zu files that a task has opened: %m", nr);
}

static void put_back(struct content_gpu *gpu)
{
	for (size_t i = 0; i < gpu->nr_bos; i++)
		cleanup_close(&gpu->bos[i].dmabuf_fd);
	pages_close(gpu);
}

/* With its files; put_back() in any case. 1; 0: a stream has nothing for it; -errno after fail(). */
static int take_handed(const struct handed_table *table, struct handed *handed, struct content_gpu *gpu)
{
	int err, fds[BUNDLE_MAX];

	atomic_store(&handed->state, HANDED_TAKEN);
	*gpu = handed->gpu;
	err = take(handed->files_store_id, fds, gpu->streaming ? 1 : 2);
	if (err)
		return err;
	gpu->render_fd = fds[0];
	if (!gpu->streaming)
		gpu->pages_fd = fds[1];
	gpu->bos = calloc(handed->nr_bos + 1, sizeof(*gpu->bos));
	if (!gpu->bos)
		return -ENOMEM;
	while (!err && gpu->nr_bos < handed->nr_bos) {
		const struct handed_bo *bos = &table->bos[handed->first_bo + gpu->nr_bos];
		size_t size = bundle_size(handed->nr_bos - gpu->nr_bos);

		err = take(bos->store_id, fds, size);
		for (size_t i = 0; !err && i < size; i++) {
			gpu->bos[gpu->nr_bos] = bos[i].bo;
			gpu->bos[gpu->nr_bos++].dmabuf_fd = fds[i];
		}
	}
	if (err || !gpu->streaming)
		return err ? err : 1;
	gpu->pages_fd = criu_image_open(gpu->pages_name);
	return gpu->pages_fd == -ENOENT ? pages_missing(gpu) : gpu->pages_fd < 0 ? gpu->pages_fd : 1;
}

/* Whether a place is that of a GPU, which gets the place that asks first. */
static bool is_place_of(const struct pages_filling *filling, struct place *place, uint32_t minor)
{
	for (size_t i = 0; i < filling->nr_gpus; i++)
		if (filling->places[i].minor == minor)
			return &filling->places[i] == place;
	if (place->minor)
		return false;
	place->minor = minor;
	return true;
}

/* The next one that is handed over on a GPU, or on any for a stream. NULL: none yet. */
static struct handed *find_handed(struct pages_filling *filling, struct place *place)
{
	struct handed_table *table = filling->table;
	unsigned int nr = atomic_load(&table->nr);

	while (filling->first_left < nr && filling->first_left < MAX_HANDED &&
	       atomic_load(&table->list[filling->first_left].state) >= HANDED_TAKEN)
		filling->first_left++;
	for (unsigned int i = filling->first_left; i < nr && i < MAX_HANDED; i++) {
		struct handed *handed = &table->list[i];

		if (atomic_load(&handed->state) == HANDED &&
		    (handed->gpu.streaming || is_place_of(filling, place, handed->minor)))
			return handed;
	}
	return NULL;
}

/* See content_options. */
static int next_handed(void *arg, struct content_gpu *gpu)
{
	struct pages_filling *filling = arg;
	struct place *place = &filling->places[gpu - filling->gpus];
	int r = 0;

	while (!r) {
		bool closed = atomic_load(&filling->table->is_closed); /* before the look: nothing comes after it */

		put_back(gpu);
		if (place->handed)
			atomic_store(&place->handed->state, HANDED_DONE);
		place->handed = find_handed(filling, place);
		if (!place->handed)
			return closed ? 0 : -EAGAIN;
		r = take_handed(filling->table, place->handed, gpu);
	}
	return r == -EAGAIN ? -EIO : r;
}

/* Fills all that tasks have handed over, and hand over until the table is closed. A failure is noted there. */
static void fill(struct pages_filling *filling)
{
	_cleanup_(progress_close) struct progress progress = progress_open(filling->settings->progress, "restore");
	struct content_options options = pages_options(filling->settings, &progress, &filling->tally);
	struct handed_table *table = filling->table;
	int err;

	options.next = next_handed;
	options.next_arg = filling;
	options.is_cancelled = &filling->is_cancelled;
	err = content_copy(CONTENT_RESTORE, filling->gpus, filling->nr_gpus, &options);
	for (size_t i = 0; i < filling->nr_gpus; i++)
		put_back(&filling->gpus[i]);
	if (err)
		snprintf(table->error_text, sizeof(table->error_text), "%s", fail_text()[0] ? fail_text() : strerror(-err));
	fail_clear();
	atomic_store(&table->err, err);
}

/* ---- the thread ---- */

static void keep_line(void *arg, enum plugin_log_level level, const char *text)
{
	struct pages_filling *filling = arg;
	struct line line = { .level = level };

	snprintf(line.text, sizeof(line.text), "%s", text);
	pthread_mutex_lock(&filling->lock);
	(void)array_add(filling->lines, filling->nr_lines, line); /* or it is lost */
	pthread_cond_broadcast(&filling->changed);
	pthread_mutex_unlock(&filling->lock);
}

static void *fill_in_thread(void *arg)
{
	struct pages_filling *filling = arg;
	int err = unshare(CLONE_FS) ? errno_or_eio() : 0;

	pthread_mutex_lock(&filling->lock);
	filling->started = err ? err : 1;
	pthread_cond_broadcast(&filling->changed);
	pthread_mutex_unlock(&filling->lock);
	if (!err) {
		plugin_log_divert(keep_line, filling);
		fill(filling);
		plugin_log_divert(NULL, NULL);
	}
	pthread_mutex_lock(&filling->lock);
	filling->ended = true;
	pthread_cond_broadcast(&filling->changed);
	pthread_mutex_unlock(&filling->lock);
	return NULL;
}

/* Until the thread has ended: logs its lines. */
static void join(struct pages_filling *filling)
{
	bool ended;

	do {
		_cleanup_free_ struct line *lines = NULL;
		size_t nr;

		pthread_mutex_lock(&filling->lock);
		while (!filling->ended && !filling->nr_lines)
			pthread_cond_wait(&filling->changed, &filling->lock);
		lines = steal_ptr(filling->lines);
		nr = filling->nr_lines;
		filling->nr_lines = 0;
		ended = filling->ended;
		pthread_mutex_unlock(&filling->lock);
		for (size_t i = 0; i < nr; i++)
			plugin_log(lines[i].level, "%s", lines[i].text);
	} while (!ended);
	pthread_join(filling->thread, NULL);
	filling->has_thread = false;
}

void pages_filling_begin(struct pages_filling *filling)
{
	sigset_t all, before;
	int err;

	if (criu_is_streaming())
		return;
	/* criu's signals belong to its main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&filling->thread, NULL, fill_in_thread, filling);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	filling->has_thread = !err;
	pthread_mutex_lock(&filling->lock);
	while (filling->has_thread && !filling->started)
		pthread_cond_wait(&filling->changed, &filling->lock);
	err = err ?: filling->started < 0 ? filling->started : 0;
	pthread_mutex_unlock(&filling->lock);
	if (err)
		pr_warn("buffer data are restored after the memory of processes, not at the same time: starting a thread: %s\n",
			strerror(-err));
	if (err && filling->has_thread)
		join(filling);
	atomic_store(&filling->table->is_filling, !err);
}

/* ---- life, in criu's main process ---- */

int pages_filling_end(struct pages_filling *filling)
{
	atomic_store(&filling->table->is_closed, true);
	if (filling->has_thread)
		join(filling);
	else
		fill(filling);
	return tell_failure(filling->table);
}

const struct content_tally *pages_filling_tally(const struct pages_filling *filling)
{
	return &filling->tally;
}

static int filling_init(struct pages_filling *filling, bool waits)
{
	int pidfd;

	filling->table = shared_memory_new(sizeof(*filling->table));
	filling->gpus = calloc(filling->nr_gpus + 1, sizeof(*filling->gpus));
	filling->places = calloc(filling->nr_gpus + 1, sizeof(*filling->places));
	if (!filling->table || !filling->gpus || !filling->places)
		return -ENOMEM;
	for (size_t i = 0; i < filling->nr_gpus; i++)
		filling->gpus[i] = (struct content_gpu){ .render_fd = -1, .pages_fd = -1 };
	if (!waits || criu_is_streaming())
		return 0;
	pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	filling->main_store_id = pidfd < 0 ? -errno : criu_keep_file(pidfd);
	return filling->main_store_id < 0 ? filling->main_store_id : 0;
}

struct pages_filling *pages_filling_new(const struct settings *settings, size_t nr_gpus, bool waits)
{
	struct pages_filling *filling = calloc(1, sizeof(*filling));
	int err;

	if (!filling)
		return NULL;
	*filling = (struct pages_filling){
		.settings = settings, .main_store_id = -1,
		/* The streamer sends each file once and waits until it has been read: so one after the other. */
		.nr_gpus = criu_is_streaming() ? 1 : nr_gpus,
	};
	pthread_mutex_init(&filling->lock, NULL);
	pthread_cond_init(&filling->changed, NULL);
	err = filling_init(filling, waits);
	if (!err)
		return filling;
	(void)fail(err, "cannot prepare for the memory of GPUs: %m");
	pages_filling_free(filling);
	return NULL;
}

void pages_filling_free(struct pages_filling *filling)
{
	if (!filling)
		return;
	atomic_store(&filling->is_cancelled, true);
	if (filling->has_thread)
		join(filling);
	if (filling->table)
		munmap(filling->table, sizeof(*filling->table));
	pthread_cond_destroy(&filling->changed);
	pthread_mutex_destroy(&filling->lock);
	free(filling->lines);
	free(filling->gpus);
	free(filling->places);
	free(filling);
}
