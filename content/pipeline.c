// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a GPU's threads, and what the copy thread does.
 *
 * Dump: the copy thread keeps the GPU supplied with submissions, one window each, and gives finished windows, checked
 * for zeros and checksummed, to the I/O thread. Restore is the reverse. The copy thread also does the processor's work,
 * since it would only wait for the GPU otherwise; the I/O thread does nothing but transfers
 * (content/transfer.c).
 *
 * Without threads, the caller's thread does what both do. The GPU's copies still overlap with file I/O: all slots but
 * one are in flight while the file is read or written.
 */
#include "content/pipeline.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#define BLOCK			LAYOUT_BLOCK_BYTES
#define HUGE_PAGE_BYTES		(2u << 20)
/* For a file in memory, four slots: there is no disk to wait for, and what fits in a cache is copied faster. */
#define STAGING_BYTES_IN_MEMORY (8u << 20)

/* ---- errors ---- */

static int copy_failed(struct pipeline *pipeline, int err, uint64_t file_off)
{
	fail_in(err, "%s: %s", pipeline->who, pipeline_place(pipeline, file_off).text);
	return content_run_fail(pipeline->run, err);
}

static const char *memory_hint(int err)
{
	return err == -ENOMEM ? ", of which a smaller KFD_MAX_BUFFER_SIZE takes less" : "";
}

/* ---- pieces ---- */

typedef int (*piece_fn)(struct pipeline *pipeline, uint64_t w, const struct piece *piece, bool data);

/* Calls @fn for each piece of each extent of a window. */
static int for_each_piece(struct pipeline *pipeline, uint64_t w, piece_fn fn)
{
	const uint8_t *map = slot_map(pipeline, w);
	uint64_t len, off = layout_window(&pipeline->layout, w, &len);

	for (struct extent extent = { 0 }; pagesio_next_extent(map, len, &extent);) {
		struct piece piece;

		layout_for_each_piece (&pipeline->layout, off + extent.from, off + extent.to, &piece) {
			int err = fn(pipeline, w, &piece, extent.data);

			if (err)
				return err;
		}
	}
	return 0;
}

static int map_bo_once(struct pipeline *pipeline, size_t bo)
{
	if (bo < pipeline->nr_mapped)
		return 0;
	pipeline->nr_mapped = bo + 1;
	return copier_map_bo(&pipeline->copier, &pipeline->gpu->bos[bo]);
}

static int submit_piece(struct pipeline *pipeline, uint64_t w, const struct piece *piece, bool data)
{
	const struct content_bo *bo = &pipeline->gpu->bos[piece->bo];
	uint64_t slot_off = piece->file_off % pipeline->layout.slot_bytes;
	unsigned int slot = slot_of(pipeline, w);
	int err = map_bo_once(pipeline, piece->bo);

	if (err)
		return copy_failed(pipeline, err, piece->file_off);
	err = copier_add(&pipeline->copier, slot, bo, piece->bo_off, slot_off, piece->len, data);
	return err ? copy_failed(pipeline, err, piece->file_off) : 0;
}

/* All of the BO is done: keep its checksum, or compare it. */
static int finish_checksum(struct pipeline *pipeline, const struct piece *piece)
{
	struct content_bo *bo = &pipeline->gpu->bos[piece->bo];

	if (pipeline->run->dump) {
		bo->crc32c = pipeline->crc;
		bo->has_crc32c = true;
		return 0;
	}
	if (!bo->has_crc32c || bo->crc32c == pipeline->crc)
		return 0;
	fail(-EBADMSG, "%s: %s at offset %" PRIu64 ": BO %u is damaged: CRC-32C of its %" PRIu64
	     " bytes is %08x, %08x was saved", pipeline->who, pipeline->gpu->pages_name,
	     pipeline->layout.starts[piece->bo], bo->index, bo->size, pipeline->crc, bo->crc32c);
	return content_run_fail(pipeline->run, -EBADMSG);
}

static int checksum_piece(struct pipeline *pipeline, uint64_t w, const struct piece *piece, bool data)
{
	const struct content_bo *bo = &pipeline->gpu->bos[piece->bo];

	if (!data)
		pipeline->window_zeros += piece->len;
	if (!pipeline->run->dump && !bo->has_crc32c)
		return 0;
	if (!piece->bo_off)
		pipeline->crc = 0;
	if (data)
		pipeline->crc =
			crc32c(pipeline->crc, slot_memory(pipeline, w) + piece->file_off % pipeline->layout.slot_bytes,
			       piece->len);
	else
		pipeline->crc = crc32c_zeros(pipeline->crc, piece->len);
	return piece->bo_off + piece->len == bo->size ? finish_checksum(pipeline, piece) : 0;
}

static bool is_zero(const uint8_t *mem, uint64_t len)
{
	return !mem[0] && !memcmp(mem, mem + 1, len - 1);
}

/* What the I/O thread gets in a dump: the map of zeros, and the length prefix where nothing else can write it. */
static void examine_window(struct pipeline *pipeline, uint64_t w)
{
	uint8_t *mem = slot_memory(pipeline, w), *map = slot_map(pipeline, w);
	uint64_t bytes = layout_content_bytes(&pipeline->layout);
	uint64_t len;

	layout_window(&pipeline->layout, w, &len);
	if (!w)
		length_prefix_put(mem, pipeline->gpu->streaming ? bytes : 0);
	for (uint64_t i = 0; i * BLOCK < len; i++)
		map[i] = !is_zero(mem + i * BLOCK, len - i * BLOCK < BLOCK ? len - i * BLOCK : BLOCK);
}

/* ---- the copy thread ---- */

static int submit_window(struct pipeline *pipeline, uint64_t w)
{
	uint64_t len, off = layout_window(&pipeline->layout, w, &len);
	int err;

	if (pipeline->run->dump)
		memset(slot_map(pipeline, w), 1, (len + BLOCK - 1) / BLOCK);
	err = for_each_piece(pipeline, w, submit_piece);
	if (err)
		return err;
	err = copier_submit(&pipeline->copier, slot_of(pipeline, w));
	if (err)
		return copy_failed(pipeline, err, off ? off : LENGTH_PREFIX_BYTES);
	/* This overlaps with the GPU's copy. */
	return pipeline->run->dump ? 0 : for_each_piece(pipeline, w, checksum_piece);
}

/* BOs whose last byte is in front of @end. */
static int release_bos(struct pipeline *pipeline, uint64_t end)
{
	while (pipeline->nr_released < pipeline->nr_mapped &&
	       pipeline->layout.starts[pipeline->nr_released + 1] <= end) {
		size_t i = pipeline->nr_released++;
		int err = copier_unmap_bo(&pipeline->gpu->bos[i]);

		if (err)
			return copy_failed(pipeline, err, pipeline->layout.starts[i]);
	}
	return 0;
}

static void count_zeros(struct pipeline *pipeline)
{
	pthread_mutex_lock(&pipeline->run->lock);
	pipeline->zero_bytes += pipeline->window_zeros;
	pthread_mutex_unlock(&pipeline->run->lock);
	pipeline->window_zeros = 0;
}

/* Waits until the GPU has done a window and hands it on. */
static int retire_window(struct pipeline *pipeline, uint64_t w)
{
	uint64_t len, off = layout_window(&pipeline->layout, w, &len);
	int err = copier_wait(&pipeline->copier, slot_of(pipeline, w));

	if (err == -ECANCELED && pipeline_is_stopped(pipeline))
		return err;
	if (err)
		return copy_failed(pipeline, err, off ? off : LENGTH_PREFIX_BYTES);
	if (pipeline->run->dump) {
		examine_window(pipeline, w);
		err = for_each_piece(pipeline, w, checksum_piece);
		if (err)
			return err;
	}
	count_zeros(pipeline);
	slot_copied(pipeline, w);
	return release_bos(pipeline, off + len);
}

static bool can_submit(struct pipeline *pipeline, uint64_t w, bool wait)
{
	if (w == pipeline->layout.nr_windows)
		return false;
	if (pipeline->run->dump || pipeline->alone)
		return slot_is_free(pipeline, w, wait);
	return slot_is_full(pipeline, w, wait);
}

static int begin_window(struct pipeline *pipeline, uint64_t w)
{
	if (pipeline->alone && !pipeline->run->dump) {
		int err = transfer_window(pipeline, &pipeline->io, w);

		if (err)
			return err;
	}
	return submit_window(pipeline, w);
}

static int end_window(struct pipeline *pipeline, uint64_t w)
{
	int err = retire_window(pipeline, w);

	if (err || !pipeline->alone)
		return err;
	if (!pipeline->has_thread)
		pipeline->run->between_windows(pipeline->run->between_arg);
	return pipeline->run->dump ? transfer_window(pipeline, &pipeline->io, w) : 0;
}

/* Keeps as many submissions in flight as there are windows for, and retires the oldest when there is none. */
static int copy_windows(struct pipeline *pipeline)
{
	uint64_t submitted = 0, retired = 0;

	while (retired < pipeline->layout.nr_windows) {
		bool submit = can_submit(pipeline, submitted, submitted == retired);
		int err;

		if (pipeline_is_stopped(pipeline))
			return -ECANCELED;
		err = submit ? begin_window(pipeline, submitted++) : end_window(pipeline, retired++);
		if (err)
			return err;
	}
	return 0;
}

static int copy_all(struct pipeline *pipeline)
{
	int err = copy_windows(pipeline);

	if (err)
		return err;
	err = copier_check_reset(&pipeline->copier);
	return err ? copy_failed(pipeline, err, LENGTH_PREFIX_BYTES) : 0;
}

/* In the order that the hardware needs: the GPU ends first, then its memory goes. */
static int release_copier(struct pipeline *pipeline)
{
	int ret = copier_drain(&pipeline->copier), err;

	while (pipeline->nr_released < pipeline->nr_mapped) {
		err = copier_unmap_bo(&pipeline->gpu->bos[pipeline->nr_released++]);
		ret = ret ?: err;
	}
	err = copier_done(&pipeline->copier);
	ret = ret ?: err;
	if (!ret || content_run_has_failed(pipeline->run))
		return ret;
	fail_in(ret, "%s (%zu BOs)", pipeline->who, pipeline->gpu->nr_bos);
	return content_run_fail(pipeline->run, ret);
}

static int use_copier(struct pipeline *pipeline)
{
	const struct copier_config config = {
		.render_fd = pipeline->gpu->render_fd,
		.staging = pipeline->staging,
		.slot_bytes = pipeline->layout.slot_bytes,
		.nr_slots = pipeline->layout.nr_slots,
		.fence_timeout_ms = pipeline->run->fence_timeout_ms,
		.to_staging = pipeline->run->dump,
		.stopped = pipeline_is_stopped,
		.stopped_arg = pipeline,
	};
	int err = copier_init(&pipeline->copier, &config);

	if (!err)
		return copy_all(pipeline);
	fail_in(err, "%s: to copy %zu BOs%s", pipeline->who, pipeline->gpu->nr_bos, memory_hint(err));
	return content_run_fail(pipeline->run, err);
}

/* Without BOs there is one window, for the length prefix. */
static int pass_empty_window(struct pipeline *pipeline)
{
	bool dump = pipeline->run->dump;
	int err;

	if (dump) {
		examine_window(pipeline, 0);
		slot_copied(pipeline, 0);
	}
	err = pipeline->alone ? transfer_window(pipeline, &pipeline->io, 0) : 0;
	if (err || dump)
		return err;
	if (!slot_is_full(pipeline, 0, true))
		return -ECANCELED;
	slot_copied(pipeline, 0);
	return 0;
}

static int copy_contents_of_gpu(struct pipeline *pipeline)
{
	int ret, err;

	if (!pipeline->gpu->nr_bos)
		return pass_empty_window(pipeline);
	ret = use_copier(pipeline);
	err = release_copier(pipeline);
	return ret ?: err;
}

/* Both do it all: there is one thread. */
static void copy_and_transfer(struct pipeline *pipeline)
{
	int err;

	pipeline->alone = true;
	err = transfer_open(pipeline);
	if (!err)
		err = copy_contents_of_gpu(pipeline);
	transfer_close(pipeline, err);
}

static void *io_thread(void *arg)
{
	struct pipeline *pipeline = arg;

	pipeline->io_err = transfer_all(pipeline);
	return NULL;
}

static void copy_beside(struct pipeline *pipeline, pthread_t io)
{
	int err = copy_contents_of_gpu(pipeline);

	pthread_join(io, NULL);
	/* Here, since a reset that is noticed last makes a file that is written a bad one. */
	transfer_close(pipeline, err ?: pipeline->io_err);
}

static void end(struct pipeline *pipeline)
{
	pthread_mutex_lock(&pipeline->run->lock);
	pipeline->ended_at = monotonic_seconds();
	pthread_cond_signal(&pipeline->run->ended);
	pthread_mutex_unlock(&pipeline->run->lock);
}

/* Where the other thread is refused, it does that one's work, too. */
static void *copy_thread(void *arg)
{
	struct pipeline *pipeline = arg;
	pthread_t io;

	if (pthread_create(&io, NULL, io_thread, pipeline))
		copy_and_transfer(pipeline);
	else
		copy_beside(pipeline, io);
	end(pipeline);
	return NULL;
}

/* A file that may not become so large is an error of write(), and not criu's end. */
void pipeline_run_alone(struct pipeline *pipeline)
{
	const struct timespec now = { 0 };
	sigset_t too_large, before;

	sigemptyset(&too_large);
	sigaddset(&too_large, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &too_large, &before);
	copy_and_transfer(pipeline);
	while (sigtimedwait(&too_large, NULL, &now) > 0)
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	end(pipeline);
}

/* ---- life ---- */

/* Anonymous memory, in huge pages where possible: fewer to pin and to look up. */
static int alloc_staging(struct pipeline *pipeline)
{
	size_t bytes = pipeline->layout.slot_bytes * pipeline->layout.nr_slots;
	size_t skip, align = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : BLOCK;
	uint8_t *mem = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		return errno_or_eio();
	skip = (align - (uintptr_t)mem % align) % align;
	if (skip)
		munmap(mem, skip);
	munmap(mem + skip + bytes, align - skip);
	pipeline->staging = mem + skip;
	pipeline->staging_bytes = bytes;
	madvise(pipeline->staging, bytes, MADV_HUGEPAGE);
	madvise(pipeline->staging, bytes, MADV_DONTFORK); /* a child would get registered pages */
	return 0;
}

static int alloc_all(struct pipeline *pipeline)
{
	size_t blocks = pipeline->layout.slot_bytes / BLOCK * pipeline->layout.nr_slots;

	pipeline->maps = calloc(blocks, 1);
	if (!pipeline->maps)
		return -ENOMEM;
	return alloc_staging(pipeline);
}

static uint64_t staging_limit(const struct content_gpu *gpu, uint64_t max_bytes)
{
	if (gpu->streaming || pagesio_place(gpu->pages_fd) != PAGESIO_IN_MEMORY)
		return max_bytes;
	return max_bytes && max_bytes < STAGING_BYTES_IN_MEMORY ? max_bytes : STAGING_BYTES_IN_MEMORY;
}

static void name_gpu(struct pipeline *pipeline)
{
	const struct content_gpu *gpu = pipeline->gpu;
	int used = gpu->pid ? snprintf(pipeline->who, sizeof(pipeline->who), "pid %d, ", gpu->pid) : 0;

	snprintf(pipeline->who + used, sizeof(pipeline->who) - (size_t)used, "gpu %#x", gpu->gpu_id);
}

int pipeline_init(struct pipeline *pipeline, struct content_run *run, pthread_cond_t *changed, struct content_gpu *gpu,
		  uint64_t max_bytes)
{
	int err;

	*pipeline = (struct pipeline){ .run = run, .gpu = gpu, .changed = changed, .began_at = monotonic_seconds() };
	name_gpu(pipeline);
	err = layout_init(&pipeline->layout, gpu->bos, gpu->nr_bos, staging_limit(gpu, max_bytes));
	if (err) {
		(void)fail(err, "%s: sizes of its %zu BOs make no file: %m", pipeline->who, gpu->nr_bos);
		return content_run_fail(run, err);
	}
	err = alloc_all(pipeline);
	if (!err)
		return 0;
	(void)fail(err, "%s: allocating %" PRIu64 " bytes of staging memory for %zu BOs%s: %m", pipeline->who,
	     pipeline->layout.slot_bytes * pipeline->layout.nr_slots, gpu->nr_bos, memory_hint(err));
	return content_run_fail(run, err);
}

void pipeline_done(struct pipeline *pipeline)
{
	if (pipeline->staging)
		munmap(pipeline->staging, pipeline->staging_bytes);
	free(pipeline->maps);
	layout_done(&pipeline->layout);
	*pipeline = (struct pipeline){ 0 };
}

int pipeline_start(struct pipeline *pipeline)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pipeline->has_thread = true; /* it is not seen to change by the thread */
	err = -pthread_create(&pipeline->thread, NULL, copy_thread, pipeline);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		pipeline->has_thread = false;
	return err;
}

void pipeline_join(struct pipeline *pipeline)
{
	if (pipeline->has_thread)
		pthread_join(pipeline->thread, NULL);
	pipeline->has_thread = false;
}
