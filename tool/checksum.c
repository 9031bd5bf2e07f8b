// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checksums of large files. A buffer is cut into spans, which the threads take one after the other; the CRC of a
 * buffer is joined from those of its spans. Holes are zeros that nobody reads.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "tool/checksum.h"

#define READ_BYTES  (1u << 20)
#define SPAN_BYTES  (8ull << 20) /* at least, but for the end of a buffer */
#define MAX_SPANS   65536	 /* for each file, besides one for each buffer */
#define MAX_THREADS 256
#define PROGRESS_MS 200

struct span {
	size_t range;
	uint64_t from, size;
	uint32_t crc;
};

struct job {
	int fd;
	struct span *spans;
	size_t nr_spans;
	atomic_size_t next;
	atomic_ullong done; /* bytes */
	atomic_int err;	    /* the first */
	uint64_t at;	    /* where; written by the thread that set err */
};

static void fail(struct job *job, int err, uint64_t at)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&job->err, &none, err))
		job->at = at;
}

/* The end of what begins at @at: of a hole, for which *hole is set, or of data; at most @end. */
static uint64_t extent_end(int fd, uint64_t at, uint64_t end, bool *hole)
{
	off_t data = lseek(fd, (off_t)at, SEEK_DATA), stop;

	*hole = (data < 0 && errno == ENXIO) || data > (off_t)at;
	if (*hole)
		stop = data < 0 ? (off_t)end : data;
	else
		stop = data < 0 ? -1 : lseek(fd, (off_t)at, SEEK_HOLE);
	return stop <= (off_t)at || (uint64_t)stop > end ? end : (uint64_t)stop;
}

static int read_data(struct job *job, struct span *span, uint64_t at, uint64_t end, uint8_t *buffer)
{
	while (at < end && !atomic_load(&job->err)) {
		size_t want = end - at < READ_BYTES ? end - at : READ_BYTES;
		ssize_t n = pread(job->fd, buffer, want, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			fail(job, n ? -errno : -ENODATA, at);
			return -1;
		}
		span->crc = crc32c(span->crc, buffer, (size_t)n);
		at += (uint64_t)n;
		atomic_fetch_add(&job->done, (unsigned long long)n);
	}
	return 0;
}

static void do_span(struct job *job, struct span *span, uint8_t *buffer)
{
	uint64_t end = span->from + span->size, next;

	for (uint64_t at = span->from; at < end && !atomic_load(&job->err); at = next) {
		bool hole;

		next = extent_end(job->fd, at, end, &hole);
		if (!hole && read_data(job, span, at, next, buffer))
			return;
		if (hole) {
			span->crc = crc32c_zeros(span->crc, next - at);
			atomic_fetch_add(&job->done, next - at);
		}
	}
}

static void *run(void *arg)
{
	_cleanup_free_ uint8_t *buffer = malloc(READ_BYTES);
	struct job *job = arg;
	size_t i;

	if (!buffer)
		fail(job, -ENOMEM, 0);
	while (!atomic_load(&job->err) && (i = atomic_fetch_add(&job->next, 1)) < job->nr_spans)
		do_span(job, &job->spans[i], buffer);
	return NULL;
}

static unsigned int processors(void)
{
	cpu_set_t set;
	int nr = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);

	return nr > MAX_THREADS ? MAX_THREADS : (unsigned int)nr;
}

static void wait_for(pthread_t thread, struct job *job, checksum_progress progress, void *arg)
{
	struct timespec until;

	do {
		progress(arg, atomic_load(&job->done));
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += PROGRESS_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
	} while (pthread_timedjoin_np(thread, NULL, &until) == ETIMEDOUT);
}

/* In this thread where there can be no other. */
static void run_all(struct job *job, checksum_progress progress, void *arg)
{
	pthread_t threads[MAX_THREADS];
	unsigned int nr = 0, want = processors();

	while (nr < want && nr < job->nr_spans && !pthread_create(&threads[nr], NULL, run, job))
		nr++;
	if (!nr)
		run(job);
	for (unsigned int i = 0; i < nr; i++)
		wait_for(threads[i], job, progress, arg);
	progress(arg, atomic_load(&job->done));
}

static int make_spans(struct job *job, const struct buffer_range *ranges, size_t nr)
{
	uint64_t total = 0, unit;
	size_t nr_spans = 0;

	for (size_t i = 0; i < nr; i++)
		total += ranges[i].size;
	unit = total / MAX_SPANS > SPAN_BYTES ? total / MAX_SPANS : SPAN_BYTES;
	for (size_t i = 0; i < nr; i++)
		nr_spans += (ranges[i].size - 1) / unit + 1;
	job->spans = calloc(nr_spans + 1, sizeof(*job->spans));
	if (!job->spans)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		for (uint64_t at = 0; at < ranges[i].size; at += unit)
			job->spans[job->nr_spans++] = (struct span){
				.range = i,
				.from = ranges[i].from + at,
				.size = ranges[i].size - at < unit ? ranges[i].size - at : unit,
			};
	return 0;
}

int checksum_ranges(int fd, struct buffer_range *ranges, size_t nr, checksum_progress progress, void *arg,
		    struct checksum_error *ret_error)
{
	struct job job = { .fd = fd };
	int err = make_spans(&job, ranges, nr);

	if (!err) {
		run_all(&job, progress, arg);
		err = atomic_load(&job.err);
	}
	*ret_error = (struct checksum_error){ .err = err, .at = job.at };
	for (size_t i = 0; i < nr; i++)
		ranges[i].crc32c = 0;
	for (size_t i = 0; !err && i < job.nr_spans; i++) {
		struct buffer_range *range = &ranges[job.spans[i].range];

		range->crc32c = crc32c_join(range->crc32c, job.spans[i].crc, job.spans[i].size);
	}
	free(job.spans);
	return err;
}

/* ---- streams ---- */

int checksum_stream(checksum_read read, void *source, struct buffer_range *ranges, size_t nr,
		    checksum_progress progress, void *arg, struct checksum_error *ret_error)
{
	_cleanup_free_ uint8_t *buffer = malloc(READ_BYTES);
	uint64_t all = 0;

	*ret_error = (struct checksum_error){ .err = buffer ? 0 : -ENOMEM };
	for (size_t i = 0; !ret_error->err && i < nr; i++) {
		ranges[i].crc32c = 0;
		for (uint64_t done = 0; !ret_error->err && done < ranges[i].size;) {
			uint64_t want = ranges[i].size - done;
			ssize_t n = read(source, buffer, want < READ_BYTES ? want : READ_BYTES);

			if (n <= 0) {
				*ret_error = (struct checksum_error){ n ? (int)n : -ENODATA, ranges[i].from + done };
				continue;
			}
			ranges[i].crc32c = crc32c(ranges[i].crc32c, buffer, (size_t)n);
			done += (uint64_t)n;
			all += (uint64_t)n;
			progress(arg, all);
		}
	}
	return ret_error->err;
}
