// SPDX-License-Identifier: GPL-2.0-only
/*
 * Transfers between slots and the pages file.
 *
 * A file in memory or on a network has a second I/O thread, for every other window: there a transfer takes a processor,
 * or waits for an answer, while the other thread's goes on. A disk is kept busy by one.
 */
#include "content/pipeline.h"

#include <inttypes.h>

static int io_result(struct pipeline *pipeline, const struct pagesio *io, int err)
{
	if (!err || err == -ECANCELED)
		return err;
	fail_in(err, "%s: %s at offset %" PRIu64 " (%s)", pipeline->who, pipeline->gpu->pages_name, io->at,
		pipeline_place(pipeline, io->at).text);
	return content_run_fail(pipeline->run, err);
}

int transfer_open(struct pipeline *pipeline)
{
	const struct content_gpu *gpu = pipeline->gpu;
	uint64_t bytes = pipeline->layout.file_bytes;
	int err;

	pipeline->io = (struct pagesio){ .flags = -1, .stopped = pipeline_is_stopped, .stopped_arg = pipeline,
					 .stride = pipeline->layout.slot_bytes };
	err = pipeline->run->dump ? pagesio_create(&pipeline->io, gpu->pages_fd, gpu->streaming, bytes)
				  : pagesio_open(&pipeline->io, gpu->pages_fd, gpu->streaming, bytes);
	return io_result(pipeline, &pipeline->io, err);
}

int transfer_window(struct pipeline *pipeline, struct pagesio *io, uint64_t w)
{
	uint64_t len, off = layout_window(&pipeline->layout, w, &len);
	uint8_t *mem = slot_memory(pipeline, w), *map = slot_map(pipeline, w);
	int err = pipeline->run->dump ? pagesio_write(io, off, mem, len, map)
				      : pagesio_read(io, off, mem, len, map);

	if (err)
		return io_result(pipeline, io, err);
	slot_transferred(pipeline, w);
	return 0;
}

void transfer_close(struct pipeline *pipeline, int err)
{
	if (!err)
		err = io_result(pipeline, &pipeline->io, pipeline->run->dump ? pagesio_complete(&pipeline->io)
									     : pagesio_check_end(&pipeline->io));
	if (err && pipeline->run->dump)
		pagesio_discard(&pipeline->io);
	pthread_mutex_lock(&pipeline->run->lock);
	pipeline->direct = pipeline->io.want_direct && !pipeline->io.some_cached;
	pthread_mutex_unlock(&pipeline->run->lock);
	pagesio_done(&pipeline->io);
}

/* ---- one thread, or two ---- */

/* All windows from @first on, or with a second thread every other one. */
static int transfer_windows(struct pipeline *pipeline, struct pagesio *io, uint64_t first)
{
	uint64_t step = io->stride / pipeline->layout.slot_bytes;
	int err = 0;

	for (uint64_t w = first; !err && w < pipeline->layout.nr_windows; w += step) {
		bool ready = pipeline->run->dump ? slot_is_full(pipeline, w, true) : slot_is_free(pipeline, w, true);

		err = ready ? transfer_window(pipeline, io, w) : -ECANCELED;
	}
	return err;
}

static void *second_io_thread(void *arg)
{
	struct pipeline *pipeline = arg;
	int err = transfer_windows(pipeline, &pipeline->second_io, 1);

	if (!err)
		err = io_result(pipeline, &pipeline->second_io, pagesio_flush(&pipeline->second_io));
	pipeline->second_err = err;
	return NULL;
}

static bool may_have_second(const struct pipeline *pipeline)
{
	return !pipeline->gpu->streaming && pipeline->io.place != PAGESIO_ON_DISK && pipeline->layout.nr_slots > 1;
}

/* Where a second thread or its file is refused, the first goes on alone. */
static void start_second(struct pipeline *pipeline)
{
	if (!may_have_second(pipeline) || pagesio_open_again(&pipeline->second_io, &pipeline->io))
		return;
	pipeline->has_second = !pthread_create(&pipeline->second_thread, NULL, second_io_thread, pipeline);
	if (pipeline->has_second)
		pipeline->io.stride = pipeline->second_io.stride;
	else
		pagesio_join(&pipeline->io, &pipeline->second_io);
}

static int join_second(struct pipeline *pipeline)
{
	int err;

	if (!pipeline->has_second)
		return 0;
	pthread_join(pipeline->second_thread, NULL);
	err = io_result(pipeline, &pipeline->second_io, pagesio_join(&pipeline->io, &pipeline->second_io));
	return pipeline->second_err ?: err;
}

int transfer_all(struct pipeline *pipeline)
{
	int err = transfer_open(pipeline), second_err;

	if (!err) {
		start_second(pipeline);
		err = transfer_windows(pipeline, &pipeline->io, 0);
	}
	second_err = join_second(pipeline);
	return err ?: second_err;
}
