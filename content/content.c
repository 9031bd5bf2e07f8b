// SPDX-License-Identifier: GPL-2.0-only
/*
 * The entry of the engine: shares the staging memory out, starts the lanes of all GPUs, watches them from the caller's
 * thread, gives each its next buffer data, and reports.
 *
 * Only the caller's thread logs: criu's log is not made for threads. All signals are blocked in the others, so that
 * criu's handlers run where criu expects them.
 */
#include "content/content.h"

#include <inttypes.h>
#include <sys/statvfs.h>
#include <time.h>

#include "content/internal.h"

#define FENCE_TIMEOUT_MS  30000
#define PROGRESS_MS	  200
#define PROGRESS_LOG_SECS 5.0
/* How often a caller is asked again that has nothing for a GPU yet: a look at memory, and a restore ends with one. */
#define ASK_AGAIN_MS	  2

/* What belongs to the caller's thread. */
struct watch {
	struct content_options options; /* with their defaults */
	struct content_tally own_tally; /* for a caller that has none */
	struct content_gpu *gpus;
	struct content_run run;
	struct lanes *lanes; /* one for each GPU */
	size_t nr_begun;     /* GPUs that are being copied */
	double logged, next_look;
};

static void watch_done(struct watch *watch)
{
	free(watch->lanes);
	pthread_cond_destroy(&watch->run.ended);
	pthread_mutex_destroy(&watch->run.lock);
}

/* ---- lines and progress ---- */

static void read_stats(struct watch *watch, size_t i)
{
	const struct lanes *lanes = &watch->lanes[i];

	pthread_mutex_lock(&watch->run.lock);
	watch->gpus[i].stats = (struct content_stats){
		.bytes = lanes->bytes_done,
		.zero_bytes = lanes->zero_bytes,
		.seconds = (lanes->ended_at ?: monotonic_seconds()) - lanes->began_at,
		.direct = lanes->direct,
	};
	pthread_mutex_unlock(&watch->run.lock);
}

/* Every progress_ms, and every few seconds a line. */
static void report_progress(struct watch *watch)
{
	const struct content_options *options = &watch->options;
	double now = monotonic_seconds();
	bool logs = now - watch->logged >= PROGRESS_LOG_SECS;

	watch->next_look = now + options->progress_ms / 1e3;
	watch->logged = logs ? now : watch->logged;
	for (size_t i = 0; i < watch->run.nr_gpus; i++) {
		if (!watch->lanes[i].gpu) /* it is not being copied */
			continue;
		read_stats(watch, i);
		if (options->on_progress)
			options->on_progress(options->progress_arg, &watch->gpus[i]);
		if (logs)
			pr_info("%s: %" PRIu64 " of %" PRIu64 " bytes %s\n", watch->lanes[i].who,
				watch->gpus[i].stats.bytes, layout_content_bytes(&watch->lanes[i].layout),
				watch->run.dump ? "saved" : "restored");
	}
	if (options->is_cancelled && atomic_load(options->is_cancelled))
		content_run_fail(&watch->run, -ECANCELED);
}

/* ---- the run ---- */

static void end_gpu(struct watch *watch, size_t i)
{
	struct content_tally *tally = watch->options.tally;
	struct lanes *lanes = &watch->lanes[i];
	const struct content_gpu *gpu = &watch->gpus[i];
	const struct content_stats *stats = &gpu->stats;
	bool dump = watch->run.dump;
	size_t without = 0;

	lanes_join(lanes);
	read_stats(watch, i);
	if (!content_run_has_failed(&watch->run)) {
		for (size_t k = 0; !dump && k < gpu->nr_bos; k++)
			without += !gpu->bos[k].has_crc32c;
		if (without)
			pr_info("gpu %#x: %zu of %zu BOs were saved without a checksum and are not verified\n", gpu->gpu_id,
				without, gpu->nr_bos);
		pr_info("gpu %#x: %s %" PRIu64 " bytes in %.3f s (%.0f MB/s), %.0f %% zeros, %s\n", gpu->gpu_id,
			dump ? "saved" : "restored", stats->bytes, stats->seconds,
			stats->seconds > 0 ? (double)stats->bytes / 1e6 / stats->seconds : 0.0,
			stats->bytes ? 100.0 * (double)stats->zero_bytes / (double)stats->bytes : 0.0,
			stats->direct ? "direct" : "buffered");
		if (watch->options.on_progress)
			watch->options.on_progress(watch->options.progress_arg, gpu);
		atomic_fetch_add(&tally->bytes, stats->bytes);
		atomic_fetch_add(&tally->zero_bytes, stats->zero_bytes);
	}
	raise_to(&tally->ended_ns, kernel_time_in(0, monotonic_offset_ns()));
	atomic_fetch_sub(&tally->buffer_bytes, lanes->staging_bytes);
	lanes_done(lanes);
	watch->nr_begun--;
}

static void begin_gpu(struct watch *watch, size_t i)
{
	struct content_tally *tally = watch->options.tally;
	uint64_t max_bytes = watch->options.max_buffer_bytes;
	struct lanes *lanes = &watch->lanes[i];
	const struct content_gpu *gpu = &watch->gpus[i];
	struct statvfs fs;
	uint64_t none = 0;
	int err;

	atomic_compare_exchange_strong(&tally->began_ns, &none, kernel_time_in(0, monotonic_offset_ns()));
	if (max_bytes)
		max_bytes = max_bytes / watch->run.nr_gpus ?: 1;
	err = lanes_init(lanes, &watch->run, &watch->gpus[i], max_bytes);
	watch->nr_begun++;
	raise_to(&tally->most_bytes, atomic_fetch_add(&tally->buffer_bytes, lanes->staging_bytes) + lanes->staging_bytes);
	/* A dump goes on: zeros leave holes. Said now, since a full disk shows late. Some file systems tell no size. */
	if (!err && watch->run.dump && !gpu->streaming && !fstatvfs(gpu->pages_fd, &fs) && fs.f_blocks &&
	    (uint64_t)fs.f_bfree * fs.f_frsize < lanes->layout.file_bytes)
		pr_warn("%s: the disk has no room for the %" PRIu64 " bytes of %s; zeros among them may still make it fit\n",
			lanes->who, lanes->layout.file_bytes, gpu->pages_name);
	if (!err)
		err = lanes_start(lanes);
	if (err)
		end_gpu(watch, i);
}

/* Begins what the GPU copies next. GPUs do not wait for each other. */
static void begin_next(struct watch *watch, size_t i)
{
	const struct content_options *options = &watch->options;
	int r;

	if (content_run_has_failed(&watch->run))
		return;
	r = options->next(options->next_arg, &watch->gpus[i]);
	watch->lanes[i].is_waiting = r == -EAGAIN;
	if (r > 0)
		begin_gpu(watch, i);
	else if (r && r != -EAGAIN)
		content_run_fail(&watch->run, r);
}

static bool has_waiting(const struct watch *watch)
{
	for (size_t i = 0; i < watch->run.nr_gpus; i++)
		if (watch->lanes[i].is_waiting)
			return true;
	return false;
}

/* The number of a GPU that has ended; that of none when it is time to look at all. */
static size_t wait_for_gpu(struct watch *watch)
{
	struct content_run *run = &watch->run;
	double ask_again = monotonic_seconds() + ASK_AGAIN_MS / 1e3;
	double end = has_waiting(watch) && ask_again < watch->next_look ? ask_again : watch->next_look;
	const struct timespec until = { .tv_sec = (time_t)end, .tv_nsec = (long)((end - (double)(time_t)end) * 1e9) };
	int err = 0;
	size_t i;

	pthread_mutex_lock(&run->lock);
	for (;;) {
		for (i = 0; i < run->nr_gpus && !watch->lanes[i].ended_at; i++)
			;
		if (i < run->nr_gpus || err == ETIMEDOUT)
			break;
		err = pthread_cond_timedwait(&run->ended, &run->lock, &until);
	}
	pthread_mutex_unlock(&run->lock);
	return i;
}

static void run_gpus(struct watch *watch)
{
	bool has_next = watch->options.next;

	for (size_t i = 0; i < watch->run.nr_gpus && !content_run_has_failed(&watch->run); i++)
		has_next ? begin_next(watch, i) : begin_gpu(watch, i);
	while (watch->nr_begun || (has_waiting(watch) && !content_run_has_failed(&watch->run))) {
		size_t i = wait_for_gpu(watch);

		if (i < watch->run.nr_gpus) {
			end_gpu(watch, i);
			if (has_next)
				begin_next(watch, i);
		}
		if (monotonic_seconds() >= watch->next_look)
			report_progress(watch);
		for (i = 0; i < watch->run.nr_gpus; i++)
			if (watch->lanes[i].is_waiting)
				begin_next(watch, i);
	}
}

int content_copy(enum content_direction direction, struct content_gpu *gpus, size_t nr_gpus,
		 const struct content_options *options)
{
	struct watch watch = { .options = *options, .gpus = gpus, .logged = monotonic_seconds() };
	struct content_run *run = &watch.run;
	pthread_condattr_t attr;
	int err;

	if (!nr_gpus)
		return 0;
	watch.options.tally = options->tally ?: &watch.own_tally;
	watch.options.progress_ms = options->progress_ms ?: PROGRESS_MS;
	watch.next_look = watch.logged + watch.options.progress_ms / 1e3;
	watch.lanes = calloc(nr_gpus, sizeof(*watch.lanes));
	run->dump = direction == CONTENT_DUMP;
	run->nr_gpus = nr_gpus;
	run->fence_timeout_ms = options->fence_timeout_ms ?: FENCE_TIMEOUT_MS;
	pthread_mutex_init(&run->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&run->ended, &attr);
	pthread_condattr_destroy(&attr);
	if (!watch.lanes) {
		watch_done(&watch);
		return fail(-ENOMEM, "copying the buffer data of %zu GPUs: %m", nr_gpus);
	}
	fail_clear();
	run_gpus(&watch);
	err = atomic_load(&watch.run.err);
	fail_clear();
	if (err && run->error_text[0])
		fail(err, "%s", run->error_text);
	watch_done(&watch);
	return err;
}

int content_check_file(const struct content_gpu *gpu)
{
	_cleanup_free_ uint64_t *starts = NULL;
	struct pagesio io = { .flags = -1 };
	int err = content_starts(gpu->bos, gpu->nr_bos, &starts);

	if (err)
		return fail(err, "gpu %#x: image %s: %m", gpu->gpu_id, gpu->pages_name);
	err = pagesio_open(&io, gpu->pages_fd, false, starts[gpu->nr_bos]);
	pagesio_done(&io);
	return err ? fail_in(err, "gpu %#x: image %s", gpu->gpu_id, gpu->pages_name) : 0;
}
