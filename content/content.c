// SPDX-License-Identifier: GPL-2.0-only
/*
 * The content engine's way in: shares the staging memory out, starts the pipelines of all
 * GPUs, watches over them from the caller's thread, and reports.
 *
 * Only the caller's thread logs: criu's log is not made for threads. All signals are
 * blocked in the others, so that criu's handlers run where criu expects them.
 */
#include "content/content.h"

#include <signal.h>
#include <time.h>

#include "content/pipeline.h"
#include "amdgpu_plugin_util.h"

#define FENCE_TIMEOUT_MS  30000
#define PROGRESS_MS	  200
#define PROGRESS_LOG_SECS 5.0

typedef unsigned long long ull;

struct watch {
	const struct content_options *options;
	struct content_gpu *gpus;
	double started, logged;
};

static int run_init(struct content_run *run, size_t nr_gpus, bool dump, const struct content_options *options)
{
	pthread_condattr_t attr;

	*run = (struct content_run){ .dump = dump };
	run->fence_timeout_ms = options->fence_timeout_ms ? options->fence_timeout_ms : FENCE_TIMEOUT_MS;
	run->pipelines = calloc(nr_gpus, sizeof(*run->pipelines));
	if (!run->pipelines) {
		pr_err("no memory for copying the contents of %zu GPUs", nr_gpus);
		return -ENOMEM;
	}
	run->nr_pipelines = nr_gpus;
	pthread_mutex_init(&run->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&run->ended, &attr);
	pthread_condattr_destroy(&attr);
	for (size_t i = 0; i < nr_gpus; i++)
		pthread_cond_init(&run->pipelines[i].changed, NULL);
	return 0;
}

static void run_done(struct content_run *run)
{
	for (size_t i = 0; i < run->nr_pipelines; i++) {
		pipeline_done(&run->pipelines[i]);
		pthread_cond_destroy(&run->pipelines[i].changed);
	}
	free(run->pipelines);
	pthread_cond_destroy(&run->ended);
	pthread_mutex_destroy(&run->lock);
}

static void run_start(struct content_run *run, struct content_gpu *gpus, uint64_t max_bytes)
{
	sigset_t all, before;
	int err = 0;

	if (max_bytes)
		max_bytes = max_bytes / run->nr_pipelines ? max_bytes / run->nr_pipelines : 1;
	for (size_t i = 0; i < run->nr_pipelines && !err; i++)
		err = pipeline_init(&run->pipelines[i], run, &gpus[i], max_bytes);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (size_t i = 0; i < run->nr_pipelines && !err; i++)
		err = pipeline_start(&run->pipelines[i]);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void take_stats(struct content_run *run, struct content_gpu *gpus, double started)
{
	bool ended = !run->running;

	for (size_t i = 0; i < run->nr_pipelines; i++) {
		struct pipeline *pipeline = &run->pipelines[i];

		gpus[i].stats = (struct content_stats){
			.bytes = pipeline->bytes_done,
			.zero_bytes = pipeline->zero_bytes,
			.seconds = (ended ? pipeline->ended_at : pipeline_now()) - started,
			.direct = pipeline->direct,
			.cpu_copy = pipeline->cpu_copy,
		};
	}
}

/* Once for each file. */
static void log_space(struct content_run *run)
{
	for (size_t i = 0; i < run->nr_pipelines; i++) {
		struct pipeline *pipeline = &run->pipelines[i];

		if (!pipeline->warn_space)
			continue;
		pipeline->warn_space = false;
		pr_warn("gpu %#x: the disk has no room for the %llu bytes of %s; zeros among them may still make it "
			"fit",
			pipeline->gpu->gpu_id, (ull)pipeline->layout.file_bytes, pipeline->gpu->pages_name);
	}
}

static void log_progress(struct content_run *run, struct watch *watch)
{
	double now = pipeline_now();

	if (now - watch->logged < PROGRESS_LOG_SECS)
		return;
	watch->logged = now;
	for (size_t i = 0; i < run->nr_pipelines; i++)
		pr_info("gpu %#x: %llu of %llu bytes %s", watch->gpus[i].gpu_id, (ull)watch->gpus[i].stats.bytes,
			(ull)layout_content_bytes(&run->pipelines[i].layout), run->dump ? "saved" : "restored");
}

/* Called with the lock held, which is not held while others are called. */
static void report_progress(struct content_run *run, struct watch *watch)
{
	const struct content_options *options = watch->options;

	take_stats(run, watch->gpus, watch->started);
	log_space(run);
	pthread_mutex_unlock(&run->lock);
	log_progress(run, watch);
	if (options->on_progress)
		options->on_progress(options->progress_arg, watch->gpus, run->nr_pipelines);
	if (options->is_cancelled && options->is_cancelled(options->cancel_arg)) {
		run->cancelled = true;
		content_run_fail(run, -ECANCELED, "cancelled");
	}
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

static void run_watch(struct content_run *run, struct watch *watch)
{
	unsigned int every_ms = watch->options->progress_ms ? watch->options->progress_ms : PROGRESS_MS;
	struct timespec next;

	pthread_mutex_lock(&run->lock);
	while (run->running) {
		int err = 0;

		clock_gettime(CLOCK_MONOTONIC, &next);
		add_ms(&next, every_ms);
		while (run->running && err != ETIMEDOUT)
			err = pthread_cond_timedwait(&run->ended, &run->lock, &next);
		if (run->running)
			report_progress(run, watch);
	}
	pthread_mutex_unlock(&run->lock);
	for (size_t i = 0; i < run->nr_pipelines; i++)
		pipeline_join(&run->pipelines[i]);
	take_stats(run, watch->gpus, watch->started);
	log_space(run);
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
	pr_info("%s: %s %llu bytes in %.3f s (%.0f MB/s), %.0f %% zeros, %s", who, dump ? "saved" : "restored",
		(ull)stats->bytes, stats->seconds,
		stats->seconds > 0 ? (double)stats->bytes / 1e6 / stats->seconds : 0.0,
		stats->bytes ? 100.0 * (double)stats->zero_bytes / (double)stats->bytes : 0.0,
		stats->direct ? "direct" : "buffered");
}

static void log_gpu(const struct content_gpu *gpu, bool dump)
{
	char who[32];

	if (gpu->stats.cpu_copy)
		pr_warn("gpu %#x: no DMA ring to submit to: the CPU copied, which is slow", gpu->gpu_id);
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

static int content_run(struct content_gpu *gpus, size_t nr_gpus, const struct content_options *options, bool dump)
{
	struct watch watch = { .options = options, .gpus = gpus, .started = pipeline_now() };
	struct content_run run;
	int err;

	if (!nr_gpus)
		return 0;
	err = run_init(&run, nr_gpus, dump, options);
	if (err)
		return err;
	watch.logged = watch.started;
	run_start(&run, gpus, options->max_buffer_bytes);
	run_watch(&run, &watch);
	err = atomic_load(&run.err);
	if (err && !(err == -ECANCELED && run.cancelled)) /* a GPU that was reset answers so, too */
		pr_err("%s", run.error_text);
	if (!err)
		log_summary(gpus, nr_gpus, dump);
	run_done(&run);
	return err;
}

int content_dump(struct content_gpu *gpus, size_t nr_gpus, const struct content_options *options)
{
	return content_run(gpus, nr_gpus, options, true);
}

int content_restore(struct content_gpu *gpus, size_t nr_gpus, const struct content_options *options)
{
	return content_run(gpus, nr_gpus, options, false);
}
