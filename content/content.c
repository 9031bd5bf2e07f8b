// SPDX-License-Identifier: GPL-2.0-only
/*
 * The entry of the engine: shares the staging memory out, starts the pipelines of all
 * GPUs, watches them from the caller's thread, and reports.
 *
 * Only the caller's thread logs: criu's log is not made for threads. All signals are
 * blocked in the others, so that criu's handlers run where criu expects them.
 */
#include "content/content.h"

#include <inttypes.h>
#include <signal.h>
#include <time.h>

#include "content/pipeline.h"
#include "amdgpu_plugin_util.h"

#define FENCE_TIMEOUT_MS  30000
#define PROGRESS_MS	  200
#define PROGRESS_LOG_SECS 5.0

/* What belongs to the caller's thread. */
struct watch {
	const struct content_options *options;
	struct content_gpu *gpus;
	struct content_run run;
	struct pipeline *pipelines; /* one for each GPU */
	double started, logged;
	double next_look; /* without threads */
};

static int watch_init(struct watch *watch, size_t nr_gpus, bool dump)
{
	watch->started = watch->logged = monotonic_seconds();
	watch->pipelines = calloc(nr_gpus, sizeof(*watch->pipelines));
	if (!watch->pipelines)
		return -ENOMEM;
	if (content_run_init(&watch->run, dump, nr_gpus)) {
		free(watch->pipelines);
		return -ENOMEM;
	}
	watch->run.fence_timeout_ms =
		watch->options->fence_timeout_ms ? watch->options->fence_timeout_ms : FENCE_TIMEOUT_MS;
	return 0;
}

static void watch_done(struct watch *watch)
{
	for (size_t i = 0; i < watch->run.nr_gpus; i++)
		pipeline_done(&watch->pipelines[i]);
	free(watch->pipelines);
	content_run_done(&watch->run);
}

static int init_pipelines(struct watch *watch)
{
	uint64_t max_bytes = watch->options->max_buffer_bytes;
	size_t nr_gpus = watch->run.nr_gpus;

	if (max_bytes)
		max_bytes = max_bytes / nr_gpus ? max_bytes / nr_gpus : 1;
	for (size_t i = 0; i < nr_gpus; i++) {
		int err = pipeline_init(&watch->pipelines[i], &watch->run, i, &watch->gpus[i], max_bytes);

		if (err)
			return err;
	}
	return 0;
}

static void join_pipelines(struct watch *watch)
{
	for (size_t i = 0; i < watch->run.nr_gpus; i++)
		pipeline_join(&watch->pipelines[i]);
}

/* All threads or none. */
static int start_pipelines(struct watch *watch)
{
	sigset_t all, before;
	size_t nr_started = 0;
	int err = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (nr_started < watch->run.nr_gpus && !(err = pipeline_start(&watch->pipelines[nr_started])))
		nr_started++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	content_run_release(&watch->run, !err);
	if (!err)
		return 0;
	join_pipelines(watch);
	if (err == -EAGAIN)
		return err;
	fail(err, "gpu %#x: starting a thread: %m", watch->gpus[nr_started].gpu_id);
	return content_run_fail(&watch->run, err);
}

static void take_stats(struct watch *watch)
{
	bool ended = !watch->run.nr_running;

	for (size_t i = 0; i < watch->run.nr_gpus; i++) {
		const struct pipeline *pipeline = &watch->pipelines[i];

		watch->gpus[i].stats = (struct content_stats){
			.bytes = pipeline->bytes_done,
			.zero_bytes = pipeline->zero_bytes,
			.seconds = (ended ? pipeline->ended_at : monotonic_seconds()) - watch->started,
			.direct = pipeline->direct,
		};
	}
}

/* Once for each file. */
static void log_space(struct watch *watch)
{
	for (size_t i = 0; i < watch->run.nr_gpus; i++) {
		struct pipeline *pipeline = &watch->pipelines[i];

		if (!pipeline->warn_space)
			continue;
		pipeline->warn_space = false;
		pr_warn("gpu %#x: the disk has no room for the %" PRIu64 " bytes of %s; zeros among them may still "
			"make it fit",
			pipeline->gpu->gpu_id, pipeline->layout.file_bytes, pipeline->gpu->pages_name);
	}
}

static void log_progress(struct watch *watch)
{
	double now = monotonic_seconds();

	if (now - watch->logged < PROGRESS_LOG_SECS)
		return;
	watch->logged = now;
	for (size_t i = 0; i < watch->run.nr_gpus; i++)
		pr_info("gpu %#x: %" PRIu64 " of %" PRIu64 " bytes %s", watch->gpus[i].gpu_id,
			watch->gpus[i].stats.bytes, layout_content_bytes(&watch->pipelines[i].layout),
			watch->run.dump ? "saved" : "restored");
}

/* Called with the lock held, which it drops while it calls others. */
static void report_progress(struct watch *watch)
{
	const struct content_options *options = watch->options;
	struct content_run *run = &watch->run;

	take_stats(watch);
	log_space(watch);
	pthread_mutex_unlock(&run->lock);
	log_progress(watch);
	if (options->on_progress)
		options->on_progress(options->progress_arg, watch->gpus, run->nr_gpus);
	if (options->is_cancelled && options->is_cancelled(options->cancel_arg))
		content_run_fail(run, -ECANCELED);
	pthread_mutex_lock(&run->lock);
}

static void add_ms(struct timespec *t, unsigned int ms)
{
	t->tv_sec += ms / 1000;
	t->tv_nsec += ms % 1000 * 1000000L;
	if (t->tv_nsec >= 1000000000L) {
		t->tv_nsec -= 1000000000L;
		t->tv_sec++;
	}
}

static unsigned int every_ms(const struct watch *watch)
{
	return watch->options->progress_ms ? watch->options->progress_ms : PROGRESS_MS;
}

static void watch_pipelines(struct watch *watch)
{
	struct content_run *run = &watch->run;

	pthread_mutex_lock(&run->lock);
	while (run->nr_running) {
		struct timespec next;
		int err = 0;

		clock_gettime(CLOCK_MONOTONIC, &next);
		add_ms(&next, every_ms(watch));
		while (run->nr_running && err != ETIMEDOUT)
			err = pthread_cond_timedwait(&run->ended, &run->lock, &next);
		if (run->nr_running)
			report_progress(watch);
	}
	pthread_mutex_unlock(&run->lock);
	join_pipelines(watch);
}

static void look_between_windows(void *arg)
{
	struct watch *watch = arg;
	double now = monotonic_seconds();

	if (now < watch->next_look)
		return;
	watch->next_look = now + every_ms(watch) / 1e3;
	pthread_mutex_lock(&watch->run.lock);
	report_progress(watch);
	pthread_mutex_unlock(&watch->run.lock);
}

static void run_alone(struct watch *watch)
{
	watch->run.between_windows = look_between_windows;
	watch->run.between_arg = watch;
	watch->next_look = watch->started + every_ms(watch) / 1e3;
	for (size_t i = 0; i < watch->run.nr_gpus && !content_run_has_failed(&watch->run); i++)
		pipeline_run_alone(&watch->pipelines[i]);
}

static void run_pipelines(struct watch *watch)
{
	int err;

	if (init_pipelines(watch))
		return;
	err = watch->options->no_threads ? -EAGAIN : start_pipelines(watch);
	if (err && err != -EAGAIN)
		return;
	if (err && !watch->options->no_threads)
		pr_warn("no thread can be started (%s): contents are copied without, one GPU after the other",
			strerror(-err));
	if (err)
		run_alone(watch);
	else
		watch_pipelines(watch);
}

static void log_checksums(const struct content_gpu *gpu)
{
	size_t without = 0;

	for (size_t i = 0; i < gpu->nr_bos; i++)
		without += !gpu->bos[i].has_crc32c;
	if (without)
		pr_info("gpu %#x: %zu of %zu BOs were saved without a checksum and are not verified", gpu->gpu_id,
			without, gpu->nr_bos);
}

/* @who: a GPU, or all of them. */
static void log_done(const char *who, const struct content_stats *stats, bool dump)
{
	pr_info("%s: %s %" PRIu64 " bytes in %.3f s (%.0f MB/s), %.0f %% zeros, %s", who, dump ? "saved" : "restored",
		stats->bytes, stats->seconds, stats->seconds > 0 ? (double)stats->bytes / 1e6 / stats->seconds : 0.0,
		stats->bytes ? 100.0 * (double)stats->zero_bytes / (double)stats->bytes : 0.0,
		stats->direct ? "direct" : "buffered");
}

static void log_gpu(const struct content_gpu *gpu, bool dump)
{
	char who[32];

	if (!dump)
		log_checksums(gpu);
	snprintf(who, sizeof(who), "gpu %#x", gpu->gpu_id);
	log_done(who, &gpu->stats, dump);
}

static void log_summary(const struct content_gpu *gpus, size_t nr_gpus, bool dump)
{
	struct content_stats sum = { .direct = true };
	char who[32];

	for (size_t i = 0; i < nr_gpus; i++) {
		const struct content_stats *stats = &gpus[i].stats;

		log_gpu(&gpus[i], dump);
		sum.bytes += stats->bytes;
		sum.zero_bytes += stats->zero_bytes;
		sum.seconds = stats->seconds > sum.seconds ? stats->seconds : sum.seconds;
		sum.direct &= stats->direct;
	}
	if (nr_gpus < 2)
		return;
	snprintf(who, sizeof(who), "all %zu GPUs", nr_gpus);
	log_done(who, &sum, dump);
}

static int copy_contents(struct content_gpu *gpus, size_t nr_gpus, const struct content_options *options, bool dump)
{
	struct watch watch = { .options = options, .gpus = gpus };
	int err;

	if (!nr_gpus)
		return 0;
	err = watch_init(&watch, nr_gpus, dump);
	if (err)
		return fail(err, "copying the contents of %zu GPUs: %m", nr_gpus);
	fail_clear();
	run_pipelines(&watch);
	take_stats(&watch);
	log_space(&watch);
	err = atomic_load(&watch.run.err);
	fail_clear();
	if (err && watch.run.error_text[0])
		fail(err, "%s", watch.run.error_text);
	if (!err)
		log_summary(gpus, nr_gpus, dump);
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
