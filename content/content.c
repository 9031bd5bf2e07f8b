// SPDX-License-Identifier: GPL-2.0-only
/*
 * The entry of the engine: shares the staging memory out, starts the lanes of all
 * GPUs, watches them from the caller's thread, gives each its next contents, and reports.
 *
 * Only the caller's thread logs: criu's log is not made for threads. All signals are
 * blocked in the others, so that criu's handlers run where criu expects them.
 */
#include "content/content.h"

#include <inttypes.h>
#include <sys/statvfs.h>
#include <time.h>

#include "content/internal.h"

#define FENCE_TIMEOUT_MS  30000
#define PROGRESS_MS	  200
#define PROGRESS_LOG_SECS 5.0

/* What belongs to the caller's thread. */
struct watch {
	struct content_options options; /* with their defaults */
	struct content_tally own_tally; /* for a caller that has none */
	struct content_gpu *gpus;
	struct content_run run;
	struct lanes *lanes; /* one for each GPU */
	size_t nr_begun;	    /* GPUs that have something to copy */
	double logged, next_look;
	bool lacks_threads; /* said once */
};

static int watch_init(struct watch *watch, const struct content_options *options, size_t nr_gpus, bool dump)
{
	pthread_condattr_t attr;

	watch->options = *options;
	watch->options.tally = options->tally ?: &watch->own_tally;
	watch->options.progress_ms = options->progress_ms ?: PROGRESS_MS;
	watch->logged = monotonic_seconds();
	watch->next_look = watch->logged + watch->options.progress_ms / 1e3;
	watch->lanes = calloc(nr_gpus, sizeof(*watch->lanes));
	if (!watch->lanes)
		return -ENOMEM;
	watch->run.dump = dump;
	watch->run.nr_gpus = nr_gpus;
	watch->run.fence_timeout_ms = options->fence_timeout_ms ?: FENCE_TIMEOUT_MS;
	pthread_mutex_init(&watch->run.lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&watch->run.ended, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

static void watch_done(struct watch *watch)
{
	free(watch->lanes);
	pthread_cond_destroy(&watch->run.ended);
	pthread_mutex_destroy(&watch->run.lock);
}

/* ---- the tally ---- */

static void tally_run(struct content_tally *tally, bool begins)
{
	uint64_t none = 0, now = kernel_time_in(0, monotonic_offset_ns());

	if (begins)
		atomic_compare_exchange_strong(&tally->began_ns, &none, now);
	else
		raise_to(&tally->ended_ns, now);
}

static void tally_buffers(struct content_tally *tally, uint64_t bytes)
{
	raise_to(&tally->most_bytes, atomic_fetch_add(&tally->buffer_bytes, bytes) + bytes);
}

static void tally_copied(struct content_tally *tally, const struct content_stats *stats)
{
	atomic_fetch_add(&tally->bytes, stats->bytes);
	atomic_fetch_add(&tally->zero_bytes, stats->zero_bytes);
}

/* ---- lines and progress ---- */

/* Called with the lock held. */
static void take_stats(struct watch *watch, size_t i)
{
	const struct lanes *lanes = &watch->lanes[i];

	watch->gpus[i].stats = (struct content_stats){
		.bytes = lanes->bytes_done,
		.zero_bytes = lanes->zero_bytes,
		.seconds = (lanes->ended_at ?: monotonic_seconds()) - lanes->began_at,
		.direct = lanes->direct,
	};
}

/* A dump goes on: zeros leave holes. Without, a disk that is too small would show late. Some file systems tell no size. */
static void warn_of_full_disk(const struct lanes *lanes)
{
	const struct content_gpu *gpu = lanes->gpu;
	uint64_t bytes = lanes->layout.file_bytes;
	struct statvfs fs;

	if (gpu->streaming || fstatvfs(gpu->pages_fd, &fs) || !fs.f_blocks || (uint64_t)fs.f_bfree * fs.f_frsize >= bytes)
		return;
	pr_warn("%s: the disk has no room for the %" PRIu64 " bytes of %s; zeros among them may still make it fit\n",
		lanes->who, bytes, gpu->pages_name);
}

static void read_stats(struct watch *watch, size_t i)
{
	pthread_mutex_lock(&watch->run.lock);
	take_stats(watch, i);
	pthread_mutex_unlock(&watch->run.lock);
}

/* Whether it has something to copy. */
static bool is_begun(const struct watch *watch, size_t i)
{
	return watch->lanes[i].gpu != NULL;
}

static void log_progress(struct watch *watch)
{
	double now = monotonic_seconds();

	if (now - watch->logged < PROGRESS_LOG_SECS)
		return;
	watch->logged = now;
	for (size_t i = 0; i < watch->run.nr_gpus; i++)
		if (is_begun(watch, i))
			pr_info("%s: %" PRIu64 " of %" PRIu64 " bytes %s\n", watch->lanes[i].who,
				watch->gpus[i].stats.bytes, layout_content_bytes(&watch->lanes[i].layout),
				watch->run.dump ? "saved" : "restored");
}

static void report_progress(void *arg)
{
	struct watch *watch = arg;
	const struct content_options *options = &watch->options;
	double now = monotonic_seconds();

	if (now < watch->next_look)
		return;
	watch->next_look = now + options->progress_ms / 1e3;
	for (size_t i = 0; i < watch->run.nr_gpus; i++)
		if (is_begun(watch, i))
			read_stats(watch, i);
	log_progress(watch);
	if (options->on_progress)
		options->on_progress(options->progress_arg, watch->gpus, watch->run.nr_gpus);
	if (options->is_cancelled && options->is_cancelled(options->cancel_arg))
		content_run_fail(&watch->run, -ECANCELED);
}

static void log_checksums(const struct content_gpu *gpu)
{
	size_t without = 0;

	for (size_t i = 0; i < gpu->nr_bos; i++)
		without += !gpu->bos[i].has_crc32c;
	if (without)
		pr_info("gpu %#x: %zu of %zu BOs were saved without a checksum and are not verified\n", gpu->gpu_id,
			without, gpu->nr_bos);
}

static void log_done(const struct lanes *lanes, bool dump)
{
	const struct content_gpu *gpu = lanes->gpu;
	const struct content_stats *stats = &gpu->stats;

	if (!dump)
		log_checksums(gpu);
	pr_info("gpu %#x: %s %" PRIu64 " bytes in %.3f s (%.0f MB/s), %.0f %% zeros, %s\n", gpu->gpu_id,
		dump ? "saved" : "restored", stats->bytes, stats->seconds,
		stats->seconds > 0 ? (double)stats->bytes / 1e6 / stats->seconds : 0.0,
		stats->bytes ? 100.0 * (double)stats->zero_bytes / (double)stats->bytes : 0.0, stats->direct ? "direct" : "buffered");
}

/* ---- the run ---- */

static void start(struct watch *watch, struct lanes *lanes)
{
	bool no_threads = watch->options.no_threads;
	int err = no_threads ? -EAGAIN : lanes_start(lanes);

	if (!err)
		return;
	if (!no_threads && !watch->lacks_threads)
		pr_warn("no thread can be started (%s): contents are copied without, one GPU after the other\n",
			strerror(-err));
	watch->lacks_threads = true;
	lanes_run_alone(lanes);
}

static uint64_t max_bytes_of_gpu(const struct watch *watch)
{
	uint64_t max_bytes = watch->options.max_buffer_bytes;

	return max_bytes ? max_bytes / watch->run.nr_gpus ?: 1 : 0;
}

static void end_gpu(struct watch *watch, size_t i)
{
	struct content_tally *tally = watch->options.tally;
	struct lanes *lanes = &watch->lanes[i];

	lanes_join(lanes);
	read_stats(watch, i);
	if (!content_run_has_failed(&watch->run)) {
		log_done(lanes, watch->run.dump);
		tally_copied(tally, &watch->gpus[i].stats);
	}
	atomic_fetch_sub(&tally->buffer_bytes, lanes->staging_bytes);
	lanes_done(lanes);
	watch->nr_begun--;
}

static void begin_gpu(struct watch *watch, size_t i)
{
	struct lanes *lanes = &watch->lanes[i];
	int err = lanes_init(lanes, &watch->run, &watch->gpus[i], max_bytes_of_gpu(watch));

	watch->nr_begun++;
	tally_buffers(watch->options.tally, lanes->staging_bytes);
	if (err) {
		end_gpu(watch, i);
		return;
	}
	if (watch->run.dump)
		warn_of_full_disk(lanes);
	start(watch, lanes);
}

static void go_on(struct watch *watch, size_t i)
{
	const struct content_options *options = &watch->options;
	int r;

	end_gpu(watch, i);
	if (!options->next || content_run_has_failed(&watch->run))
		return;
	r = options->next(options->next_arg, &watch->gpus[i]);
	if (r > 0)
		begin_gpu(watch, i);
	else if (r)
		content_run_fail(&watch->run, r);
}

static size_t find_ended(const struct watch *watch)
{
	size_t i = 0;

	while (i < watch->run.nr_gpus && !watch->lanes[i].ended_at)
		i++;
	return i;
}

/* The number of one that has ended; that of none when it is time to look at all. */
static size_t wait_for_gpu(struct watch *watch)
{
	struct content_run *run = &watch->run;
	const struct timespec until = {
		.tv_sec = (time_t)watch->next_look,
		.tv_nsec = (long)((watch->next_look - (double)(time_t)watch->next_look) * 1e9),
	};
	int err = 0;
	size_t i;

	pthread_mutex_lock(&run->lock);
	while ((i = find_ended(watch)) == watch->run.nr_gpus && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&run->ended, &run->lock, &until);
	pthread_mutex_unlock(&run->lock);
	return i;
}

static void run_gpus(struct watch *watch)
{
	watch->run.between_windows = report_progress;
	watch->run.between_arg = watch;
	for (size_t i = 0; i < watch->run.nr_gpus && !content_run_has_failed(&watch->run); i++)
		begin_gpu(watch, i);
	while (watch->nr_begun) {
		size_t i = wait_for_gpu(watch);

		if (i < watch->run.nr_gpus)
			go_on(watch, i);
		else
			report_progress(watch);
	}
}

static int copy_contents(struct content_gpu *gpus, size_t nr_gpus, const struct content_options *options, bool dump)
{
	struct watch watch = { .gpus = gpus };
	int err;

	if (!nr_gpus)
		return 0;
	err = watch_init(&watch, options, nr_gpus, dump);
	if (err)
		return fail(err, "copying the contents of %zu GPUs: %m", nr_gpus);
	fail_clear();
	tally_run(watch.options.tally, true);
	run_gpus(&watch);
	tally_run(watch.options.tally, false);
	err = atomic_load(&watch.run.err);
	fail_clear();
	if (err && watch.run.error_text[0])
		fail(err, "%s", watch.run.error_text);
	watch_done(&watch);
	return err;
}

int content_dump(struct content_gpu *gpus, size_t nr_gpus, const struct content_options *options)
{
	return copy_contents(gpus, nr_gpus, options, true);
}

int content_restore(struct content_gpu *gpus, size_t nr_gpus, const struct content_options *options)
{
	return copy_contents(gpus, nr_gpus, options, false);
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
