// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lanes of a GPU, each a thread. A lane takes the next window, reads or submits it, and while the GPU copies, it ends
 * its oldest window: looks for zeros, checksums, writes.
 *
 * There are three, so that the next transfers are there when one ends; for a file in memory, where a transfer takes a processor,
 * two where processors are fewer than all GPUs' lanes. A pipe has one.
 */
#define _GNU_SOURCE
#include "content/internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define BLOCK			LAYOUT_BLOCK_BYTES
/* For a file in memory, two slots for each lane: there is no disk to wait for, and what fits in a cache is copied faster. */
#define STAGING_BYTES_IN_MEMORY (12u << 20)

/* ---- errors ---- */

int content_run_fail(struct content_run *run, int err)
{
	pthread_mutex_lock(&run->lock);
	if (!atomic_load(&run->err)) {
		snprintf(run->error_text, sizeof(run->error_text), "%s", fail_text());
		atomic_store(&run->err, err);
	}
	pthread_mutex_unlock(&run->lock);
	return err;
}

struct place {
	char text[64];
};

/* What an offset of the file means to the user. */
static struct place place_in_bo(const struct lanes *lanes, uint64_t file_off)
{
	struct place place;
	struct piece piece;

	if (file_off < LENGTH_PREFIX_BYTES)
		snprintf(place.text, sizeof(place.text), "length prefix");
	else if (layout_piece(&lanes->layout, file_off, UINT64_MAX, &piece))
		snprintf(place.text, sizeof(place.text), "BO %u, byte %" PRIu64, lanes->gpu->bos[piece.bo].index,
			 piece.bo_off);
	else
		snprintf(place.text, sizeof(place.text), "end of the buffer data");
	return place;
}

static int copy_failed(struct lanes *lanes, int err, uint64_t file_off)
{
	fail_in(err, "%s: %s", lanes->who, place_in_bo(lanes, file_off ?: LENGTH_PREFIX_BYTES).text);
	return content_run_fail(lanes->run, err);
}

static int io_result(struct lane *lane, int err)
{
	struct lanes *lanes = lane->lanes;

	if (!err || err == -ECANCELED)
		return err;
	fail_in(err, "%s: %s at offset %" PRIu64 " (%s)", lanes->who, lanes->gpu->pages_name, lane->io.at,
		place_in_bo(lanes, lane->io.at).text);
	return content_run_fail(lanes->run, err);
}

static const char *memory_hint(int err)
{
	return err == -ENOMEM ? ", of which a smaller KFD_MAX_BUFFER_SIZE takes less" : "";
}

/* ---- pieces ---- */

static uint8_t *slot_memory(const struct lane *lane, unsigned int slot)
{
	return lane->staging + slot * lane->lanes->layout.slot_bytes;
}

static uint8_t *slot_map(const struct lane *lane, unsigned int slot)
{
	return lane->maps + slot * (lane->lanes->layout.slot_bytes / BLOCK);
}

typedef int (*piece_fn)(struct lane *lane, unsigned int slot, const struct piece *piece, bool data);

/* Calls @fn for each piece of each extent of the window in a slot. */
static int for_each_piece(struct lane *lane, unsigned int slot, piece_fn fn)
{
	const struct layout *layout = &lane->lanes->layout;
	const uint8_t *map = slot_map(lane, slot);
	uint64_t len, off = layout_window(layout, lane->window[slot], &len);

	for (struct extent extent = { 0 }; pagesio_next_extent(map, len, &extent);) {
		struct piece piece;

		layout_for_each_piece (layout, off + extent.from, off + extent.to, &piece) {
			int err = fn(lane, slot, &piece, extent.data);

			if (err)
				return err;
		}
	}
	return 0;
}

static int submit_piece(struct lane *lane, unsigned int slot, const struct piece *piece, bool data)
{
	struct lanes *lanes = lane->lanes;
	struct content_bo *bo = &lanes->gpu->bos[piece->bo];
	int err = 0;

	if (lanes->run->dump && !data) /* discarded */
		return 0;
	pthread_mutex_lock(&lanes->bo_lock);
	if (!bo->mapping.map_bytes)
		err = copier_map_bo(&lane->copier, bo);
	if (err) /* before another lane tries it, too */
		copier_unmap_bo(bo);
	pthread_mutex_unlock(&lanes->bo_lock);
	if (!err)
		err = copier_add(&lane->copier, slot, bo, piece->bo_off, piece->file_off % lanes->layout.slot_bytes,
				 piece->len, data);
	return err ? copy_failed(lanes, err, piece->file_off) : 0;
}

/* Checksums of pieces add up, whatever their order: each as if only zeros followed, and were before. */
static int checksum_piece(struct lane *lane, unsigned int slot, const struct piece *piece, bool data)
{
	struct lanes *lanes = lane->lanes;
	const struct content_bo *bo = &lanes->gpu->bos[piece->bo];
	const uint8_t *mem = slot_memory(lane, slot) + piece->file_off % lanes->layout.slot_bytes;
	uint32_t crc;

	if (!lanes->run->dump && !bo->has_crc32c)
		return 0;
	crc = data ? crc32c(0, mem, piece->len) : crc32c_zeros(0, piece->len);
	crc = crc32c_shift(crc, bo->size - piece->bo_off - piece->len);
	pthread_mutex_lock(&lanes->bo_lock);
	lanes->rest[piece->bo].crc ^= crc;
	pthread_mutex_unlock(&lanes->bo_lock);
	return 0;
}

/* When all of a BO is done, its checksum is kept or compared. */
static int finish_piece(struct lane *lane, unsigned int slot, const struct piece *piece, bool data)
{
	struct lanes *lanes = lane->lanes;
	struct content_bo *bo = &lanes->gpu->bos[piece->bo];
	uint64_t start = lanes->layout.starts[piece->bo];
	bool is_whole;
	uint32_t crc;
	int err = 0;

	(void)slot;
	pthread_mutex_lock(&lanes->bo_lock);
	lanes->rest[piece->bo].bytes -= piece->len;
	is_whole = !lanes->rest[piece->bo].bytes;
	crc = lanes->rest[piece->bo].crc;
	if (is_whole)
		err = copier_unmap_bo(bo);
	pthread_mutex_unlock(&lanes->bo_lock);
	pthread_mutex_lock(&lanes->run->lock);
	lanes->bytes_done += piece->len;
	lanes->zero_bytes += data ? 0 : piece->len;
	pthread_mutex_unlock(&lanes->run->lock);
	if (err)
		return copy_failed(lanes, err, start);
	if (!is_whole)
		return 0;
	if (lanes->run->dump) {
		bo->crc32c = crc;
		bo->has_crc32c = true;
	}
	err = content_check_crc(bo, crc);
	if (!err)
		return 0;
	fail_in(err, "%s: %s at offset %" PRIu64 ": BO %u", lanes->who, lanes->gpu->pages_name, start, bo->index);
	return content_run_fail(lanes->run, err);
}

/* ---- windows ---- */

/* The map before a copy: all blocks but those that are discarded. A stream has no holes, so their memory is cleared. */
static void expect_window(struct lane *lane, unsigned int slot)
{
	const struct content_gpu *gpu = lane->lanes->gpu;
	uint64_t len, off = layout_window(&lane->lanes->layout, lane->window[slot], &len);
	size_t i = content_find_range(gpu->discarded, gpu->nr_discarded, off);
	uint8_t *map = slot_map(lane, slot);

	memset(map, 1, (len + BLOCK - 1) / BLOCK);
	for (; i < gpu->nr_discarded && gpu->discarded[i].from < off + len; i++) {
		const struct content_range *range = &gpu->discarded[i];
		uint64_t from = range->from > off ? round_up(range->from - off, BLOCK) : 0;
		uint64_t to = (range->to < off + len ? range->to - off : len) / BLOCK * BLOCK;

		if (from >= to)
			continue;
		memset(map + from / BLOCK, 0, (to - from) / BLOCK);
		if (gpu->streaming)
			memset(slot_memory(lane, slot) + from, 0, to - from);
	}
}

static int begin_window(struct lane *lane, unsigned int slot)
{
	struct lanes *lanes = lane->lanes;
	uint64_t len, off = layout_window(&lanes->layout, lane->window[slot], &len);
	int err = 0;

	if (lanes->run->dump)
		expect_window(lane, slot);
	else
		err = io_result(lane, pagesio_read(&lane->io, off, slot_memory(lane, slot), len, slot_map(lane, slot)));
	if (!err)
		err = for_each_piece(lane, slot, submit_piece);
	if (err)
		return err;
	err = lanes->gpu->nr_bos ? copier_submit(&lane->copier, slot) : 0;
	if (err)
		return copy_failed(lanes, err, off);
	/* This overlaps with the GPU's copy. */
	return lanes->run->dump ? 0 : for_each_piece(lane, slot, checksum_piece);
}

/* Of a dump: which blocks are zeros, and the length prefix where nothing else can write it. */
static int end_window(struct lane *lane, unsigned int slot)
{
	struct lanes *lanes = lane->lanes;
	uint8_t *mem = slot_memory(lane, slot), *map = slot_map(lane, slot);
	uint64_t len, off = layout_window(&lanes->layout, lane->window[slot], &len);
	int err = lanes->gpu->nr_bos ? copier_wait(&lane->copier, slot) : 0;

	if (err == -ECANCELED && content_run_has_failed(lanes->run))
		return err;
	if (err)
		return copy_failed(lanes, err, off);
	if (lanes->run->dump) {
		if (!lane->window[slot])
			length_prefix_put(mem, lanes->gpu->streaming ? layout_content_bytes(&lanes->layout) : 0);
		for (uint64_t i = 0; i * BLOCK < len; i++) {
			const uint8_t *block = mem + i * BLOCK;
			uint64_t bytes = len - i * BLOCK < BLOCK ? len - i * BLOCK : BLOCK;

			map[i] = map[i] && (block[0] || memcmp(block, block + 1, bytes - 1));
		}
		err = for_each_piece(lane, slot, checksum_piece);
		if (!err)
			err = io_result(lane, pagesio_write(&lane->io, off, mem, len, map));
	}
	return err ? err : for_each_piece(lane, slot, finish_piece);
}

/* ---- a lane ---- */

/* Keeps as many submissions in flight as there are windows for, and ends the oldest when there is none. */
static int copy_windows(struct lane *lane)
{
	struct lanes *lanes = lane->lanes;
	uint64_t begun = 0, ended = 0, w = 0;

	for (;;) {
		int err;

		if (content_run_has_failed(lanes->run))
			return -ECANCELED;
		if (w < lanes->layout.nr_windows && begun - ended < lanes->nr_slots)
			w = atomic_fetch_add(&lanes->next_window, 1);
		if (w < lanes->layout.nr_windows && begun - ended < lanes->nr_slots) {
			lane->window[begun % lanes->nr_slots] = w;
			err = begin_window(lane, begun++ % lanes->nr_slots);
		} else if (ended < begun) {
			err = end_window(lane, ended++ % lanes->nr_slots);
		} else {
			return 0;
		}
		if (err)
			return err;
	}
}

/* In the order that the hardware needs: the GPU ends first, then its memory goes. */
static void copy_contents_of_gpu(struct lane *lane)
{
	struct lanes *lanes = lane->lanes;
	const struct copier_config config = {
		.render_fd = lanes->gpu->render_fd,
		.staging = lane->staging,
		.slot_bytes = lanes->layout.slot_bytes,
		.nr_slots = lanes->nr_slots,
		.first_ring = (unsigned int)(lane - lanes->lane),
		.fence_timeout_ms = lanes->run->fence_timeout_ms,
		.to_staging = lanes->run->dump,
		.stop = &lanes->run->err,
	};
	int err;

	if (!lanes->gpu->nr_bos) {
		copy_windows(lane);
		return;
	}
	err = copier_init(&lane->copier, &config);
	if (err) {
		fail_in(err, "%s: to copy %zu BOs%s", lanes->who, lanes->gpu->nr_bos, memory_hint(err));
		content_run_fail(lanes->run, err);
	} else if (!copy_windows(lane)) {
		err = copier_check_reset(&lane->copier);
		if (err)
			copy_failed(lanes, err, 0);
	}
	err = copier_drain(&lane->copier);
	if (err && !content_run_has_failed(lanes->run)) {
		fail_in(err, "%s (%zu BOs)", lanes->who, lanes->gpu->nr_bos);
		content_run_fail(lanes->run, err);
	}
}

/* ---- all lanes ---- */

/*
 * Has the calling thread, and those that it starts, run on the processors of the GPU's NUMA node, so that their memory is
 * near, too. Not where none of them is allowed, or nothing is known.
 */
static void stay_near_gpu(const struct lanes *lanes)
{
	_cleanup_fclose_ FILE *file = NULL;
	unsigned int from, to;
	cpu_set_t near, allowed;
	char path[80];
	struct stat device;

	if (stat_quietly(lanes->gpu->render_fd, "", &device))
		return;
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/device/local_cpulist", major(device.st_rdev),
		 minor(device.st_rdev));
	file = fopen(path, "re");
	if (!file || pthread_getaffinity_np(pthread_self(), sizeof(allowed), &allowed))
		return;
	/* A list such as "0-7,64-71". */
	CPU_ZERO(&near);
	while (fscanf(file, "%u", &from) == 1) {
		to = from;
		if (fscanf(file, "-%u", &to) != EOF)
			(void)!fscanf(file, ",");
		for (; from <= to && from < CPU_SETSIZE; from++)
			CPU_SET(from, &near);
	}
	CPU_AND(&near, &near, &allowed);
	if (CPU_COUNT(&near))
		pthread_setaffinity_np(pthread_self(), sizeof(near), &near);
}

static void *other_lane(void *arg)
{
	struct lane *lane = arg;

	copy_contents_of_gpu(lane);
	if (lane->lanes->run->dump && !content_run_has_failed(lane->lanes->run))
		io_result(lane, pagesio_flush(&lane->io));
	return NULL;
}

/* Releases what the lanes had, with the file last. */
static void close_lanes(struct lanes *lanes)
{
	struct lane *first = &lanes->lane[0];
	int err = 0;

	for (size_t i = 0; i < lanes->gpu->nr_bos; i++)
		err = copier_unmap_bo(&lanes->gpu->bos[i]) ?: err;
	for (unsigned int i = 0; i < lanes->nr_lanes; i++)
		err = copier_done(&lanes->lane[i].copier) ?: err;
	if (err && !content_run_has_failed(lanes->run)) {
		fail_in(err, "%s (%zu BOs)", lanes->who, lanes->gpu->nr_bos);
		content_run_fail(lanes->run, err);
	}
	for (unsigned int i = 1; i < lanes->nr_lanes; i++)
		io_result(&lanes->lane[i], pagesio_join(&first->io, &lanes->lane[i].io));
	if (!content_run_has_failed(lanes->run))
		io_result(first, lanes->run->dump ? pagesio_complete(&first->io) : pagesio_check_end(&first->io));
	if (content_run_has_failed(lanes->run) && lanes->run->dump)
		pagesio_discard(&first->io);
	pthread_mutex_lock(&lanes->run->lock);
	lanes->direct = first->io.want_direct && !first->io.some_cached;
	pthread_mutex_unlock(&lanes->run->lock);
	pagesio_done(&first->io);
}

/* All of a GPU, in the thread of its first lane. Where a file or a thread is refused, fewer lanes do it. */
static void *first_lane(void *arg)
{
	struct lanes *lanes = arg;
	const struct content_gpu *gpu = lanes->gpu;
	struct lane *first = &lanes->lane[0];
	uint64_t bytes = lanes->layout.file_bytes;
	unsigned int nr = 1;
	int err;

	stay_near_gpu(lanes);
	first->io = (struct pagesio){ .flags = -1, .stop = &lanes->run->err };
	err = lanes->run->dump ? pagesio_create(&first->io, gpu->pages_fd, gpu->streaming, bytes)
			       : pagesio_open(&first->io, gpu->pages_fd, gpu->streaming, bytes);
	while (!err && nr < lanes->nr_lanes && !pagesio_open_again(&lanes->lane[nr].io, &first->io))
		nr++;
	lanes->nr_lanes = nr;
	if (!io_result(first, err)) {
		for (nr = 1; nr < lanes->nr_lanes; nr++)
			if (pthread_create(&lanes->lane[nr].thread, NULL, other_lane, &lanes->lane[nr]))
				break;
		copy_contents_of_gpu(first);
		while (--nr)
			pthread_join(lanes->lane[nr].thread, NULL);
	}
	close_lanes(lanes);
	pthread_mutex_lock(&lanes->run->lock);
	lanes->ended_at = monotonic_seconds();
	pthread_cond_signal(&lanes->run->ended);
	pthread_mutex_unlock(&lanes->run->lock);
	return NULL;
}

int lanes_start(struct lanes *lanes)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&lanes->lane[0].thread, NULL, first_lane, lanes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	lanes->has_thread = !err;
	if (!err)
		return 0;
	(void)fail(err, "%s: starting a thread: %m", lanes->who);
	return content_run_fail(lanes->run, err);
}

void lanes_join(struct lanes *lanes)
{
	if (lanes->has_thread)
		pthread_join(lanes->lane[0].thread, NULL);
	lanes->has_thread = false;
}

/* ---- life ---- */

/* Staging is anonymous memory, in huge pages where possible: fewer to pin and to look up. */
static int alloc_all(struct lanes *lanes)
{
	size_t blocks = lanes->layout.slot_bytes / BLOCK, bytes = lanes->layout.slot_bytes * lanes->layout.nr_slots;
	size_t skip, align = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : BLOCK;
	uint8_t *maps = calloc(blocks, lanes->layout.nr_slots), *mem;

	lanes->lane[0].maps = maps;
	lanes->rest = calloc(lanes->gpu->nr_bos + 1, sizeof(*lanes->rest));
	if (!maps || !lanes->rest)
		return -ENOMEM;
	mem = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return errno_or_eio();
	skip = (align - (uintptr_t)mem % align) % align;
	if (skip)
		munmap(mem, skip);
	munmap(mem + skip + bytes, align - skip);
	lanes->staging = mem + skip;
	lanes->staging_bytes = bytes;
	madvise(lanes->staging, bytes, MADV_HUGEPAGE);
	madvise(lanes->staging, bytes, MADV_DONTFORK); /* a child would get registered pages */
	for (size_t i = 0; i < lanes->gpu->nr_bos; i++)
		lanes->rest[i].bytes = lanes->gpu->bos[i].size;
	for (unsigned int i = 0; i < lanes->nr_lanes; i++) {
		lanes->lane[i].lanes = lanes;
		lanes->lane[i].maps = maps + i * blocks * lanes->nr_slots;
		lanes->lane[i].staging = lanes->staging + i * lanes->nr_slots * lanes->layout.slot_bytes;
	}
	return 0;
}

int lanes_init(struct lanes *lanes, struct content_run *run, struct content_gpu *gpu, uint64_t max_bytes)
{
	bool in_memory = !gpu->streaming && pagesio_in_memory(gpu->pages_fd);
	unsigned int max_lanes = gpu->streaming ? 1 : MAX_LANES, by_slots;
	cpu_set_t allowed;
	int err, used;

	/* sched_getaffinity() fails where there are more processors than fit. */
	if (in_memory && !sched_getaffinity(0, sizeof(allowed), &allowed) &&
	    (size_t)CPU_COUNT(&allowed) < MAX_LANES * run->nr_gpus)
		max_lanes = 2;

	*lanes = (struct lanes){ .run = run, .gpu = gpu, .began_at = monotonic_seconds() };
	pthread_mutex_init(&lanes->bo_lock, NULL);
	used = gpu->pid ? snprintf(lanes->who, sizeof(lanes->who), "pid %d, ", gpu->pid) : 0;
	snprintf(lanes->who + used, sizeof(lanes->who) - (size_t)used, "gpu %#x", gpu->gpu_id);
	if (in_memory && (!max_bytes || max_bytes > STAGING_BYTES_IN_MEMORY))
		max_bytes = STAGING_BYTES_IN_MEMORY;
	err = layout_init(&lanes->layout, gpu->bos, gpu->nr_bos, max_bytes);
	if (err) {
		(void)fail(err, "%s: sizes of its %zu BOs make no file: %m", lanes->who, gpu->nr_bos);
		return content_run_fail(run, err);
	}
	/* Two slots each: one for the GPU, and one for the file. */
	by_slots = (lanes->layout.nr_slots + 1) / 2;
	lanes->nr_lanes = by_slots < max_lanes ? by_slots : max_lanes;
	lanes->nr_slots = lanes->layout.nr_slots / lanes->nr_lanes;
	err = alloc_all(lanes);
	if (!err)
		return 0;
	(void)fail(err, "%s: allocating %" PRIu64 " bytes of staging memory for %zu BOs%s: %m", lanes->who,
	     lanes->layout.slot_bytes * lanes->layout.nr_slots, gpu->nr_bos, memory_hint(err));
	return content_run_fail(run, err);
}

void lanes_done(struct lanes *lanes)
{
	if (lanes->staging)
		munmap(lanes->staging, lanes->staging_bytes);
	free(lanes->lane[0].maps);
	free(lanes->rest);
	layout_done(&lanes->layout);
	pthread_mutex_destroy(&lanes->bo_lock);
	*lanes = (struct lanes){ 0 };
}
