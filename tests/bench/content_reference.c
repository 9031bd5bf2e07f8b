// SPDX-License-Identifier: GPL-2.0-only
/* The plain copy loop: producer and consumer over a ring of buffers. */
#define _GNU_SOURCE
#include "content_reference.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"

struct ring {
	struct reference_stream *stream;
	uint8_t *buffers;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t produced, consumed; /* buffers, counted from the beginning */
};

static uint64_t nr_steps(const struct ring *ring)
{
	return (ring->stream->bytes + ring->stream->buffer_bytes - 1) / ring->stream->buffer_bytes;
}

static uint64_t step_len(const struct ring *ring, uint64_t step)
{
	uint64_t rest = ring->stream->bytes - step * ring->stream->buffer_bytes;

	return rest < ring->stream->buffer_bytes ? rest : ring->stream->buffer_bytes;
}

static uint8_t *buffer_of(const struct ring *ring, uint64_t step)
{
	return ring->buffers + step % ring->stream->nr_buffers * ring->stream->buffer_bytes;
}

static void copy_step(struct ring *ring, uint64_t step)
{
	uint8_t *mem = ring->stream->mem + step * ring->stream->buffer_bytes;

	if (ring->stream->to_file)
		memcpy(buffer_of(ring, step), mem, step_len(ring, step));
	else
		memcpy(mem, buffer_of(ring, step), step_len(ring, step));
}

static void io_step(struct ring *ring, uint64_t step)
{
	uint64_t off = step * ring->stream->buffer_bytes, len = step_len(ring, step), done = 0;
	uint8_t *buffer = buffer_of(ring, step);

	while (done < len && !ring->stream->err) {
		ssize_t n = ring->stream->to_file
				    ? pwrite(ring->stream->file, buffer + done, len - done, (off_t)(off + done))
				    : pread(ring->stream->file, buffer + done, len - done, (off_t)(off + done));

		if (n > 0)
			done += (uint64_t)n;
		else if (n == 0 || errno != EINTR)
			ring->stream->err = n ? -errno : -EIO;
	}
}

static void produce(struct ring *ring, void (*step_fn)(struct ring *ring, uint64_t step))
{
	for (uint64_t step = 0; step < nr_steps(ring); step++) {
		pthread_mutex_lock(&ring->lock);
		while (step - ring->consumed >= ring->stream->nr_buffers)
			pthread_cond_wait(&ring->changed, &ring->lock);
		pthread_mutex_unlock(&ring->lock);
		step_fn(ring, step);
		pthread_mutex_lock(&ring->lock);
		ring->produced++;
		pthread_cond_broadcast(&ring->changed);
		pthread_mutex_unlock(&ring->lock);
	}
}

static void consume(struct ring *ring, void (*step_fn)(struct ring *ring, uint64_t step))
{
	for (uint64_t step = 0; step < nr_steps(ring); step++) {
		pthread_mutex_lock(&ring->lock);
		while (ring->produced <= step)
			pthread_cond_wait(&ring->changed, &ring->lock);
		pthread_mutex_unlock(&ring->lock);
		step_fn(ring, step);
		pthread_mutex_lock(&ring->lock);
		ring->consumed++;
		pthread_cond_broadcast(&ring->changed);
		pthread_mutex_unlock(&ring->lock);
	}
}

static void *io_thread(void *arg)
{
	struct ring *ring = arg;

	if (ring->stream->to_file)
		consume(ring, io_step);
	else
		produce(ring, io_step);
	return NULL;
}

static int alloc_buffers(struct ring *ring)
{
	size_t bytes = ring->stream->buffer_bytes * ring->stream->nr_buffers;

	if (posix_memalign((void **)&ring->buffers, HUGE_PAGE_BYTES, bytes))
		return -ENOMEM;
	madvise(ring->buffers, bytes, MADV_HUGEPAGE);
	return 0;
}

static void *stream_thread(void *arg)
{
	struct ring ring = { .stream = arg, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
	int flags = fcntl(ring.stream->file, F_GETFL);
	pthread_t io;

	ring.stream->err = alloc_buffers(&ring);
	if (ring.stream->err)
		return NULL;
	if (ring.stream->direct)
		fcntl(ring.stream->file, F_SETFL, flags | O_DIRECT);
	ring.stream->err = -pthread_create(&io, NULL, io_thread, &ring);
	if (!ring.stream->err) {
		if (ring.stream->to_file)
			produce(&ring, copy_step);
		else
			consume(&ring, copy_step);
		pthread_join(io, NULL);
	}
	fcntl(ring.stream->file, F_SETFL, flags);
	free(ring.buffers);
	return NULL;
}

double reference_run(struct reference_stream *streams, size_t nr, int *ret_err)
{
	pthread_t *threads = calloc(nr, sizeof(*threads));
	double start = monotonic_seconds();
	size_t started = 0;

	*ret_err = threads ? 0 : -ENOMEM;
	for (; threads && started < nr && !*ret_err; started += !*ret_err)
		*ret_err = -pthread_create(&threads[started], NULL, stream_thread, &streams[started]);
	for (size_t i = 0; i < started; i++) {
		pthread_join(threads[i], NULL);
		*ret_err = *ret_err ? *ret_err : streams[i].err;
	}
	free(threads);
	return monotonic_seconds() - start;
}
