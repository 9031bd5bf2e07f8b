// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sorts the BOs of processes by GPU, opens a render node and a pages file for each, and runs the copy engine. The
 * render nodes are opened anew: the engine makes GEM handles and mappings in them, which must never happen in a file of
 * the dumped process.
 *
 * Processes of one GPU are copied one after the other, and only their files are open: memory does not grow with their
 * number.
 */
#include "pages/pages.h"

#include <inttypes.h>

#include "content/content.h"
#include "host/host.h"
#include "pages/internal.h"
#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"

_Static_assert(sizeof(((struct content_gpu *)0)->pages_name) == IMAGE_NAME_MAX, "each name fits");

/* What a process has on one GPU. */
struct part {
	const struct gpu_process *process;
	const struct discard *discard;
	size_t device;
	uint32_t minor;
};

/* A GPU of this machine, and what is copied there. */
struct place {
	uint32_t minor;
	const struct part *part; /* NULL: none yet, or no more */
	size_t next;		 /* where to look for the next one */
};

/* What processes have on GPUs. */
struct copying {
	enum content_direction direction;
	struct part *parts;
	size_t nr_parts;
	struct discard *discards; /* of each process */
	size_t nr_discards;
	struct content_gpu *gpus; /* what each of places copies now */
	struct place *places;
	size_t nr_gpus;
};

void pages_close(struct content_gpu *gpu)
{
	cleanup_close(&gpu->render_fd);
	cleanup_close(&gpu->pages_fd);
	free(gpu->bos);
	free((void *)gpu->discarded);
	*gpu = (struct content_gpu){ .render_fd = -1, .pages_fd = -1 };
}

/* The BOs of one GPU in the order of the kernel's buckets, which is the order in the file. */
static int list_bos(const struct kfd_state *state, struct content_gpu *gpu)
{
	gpu->bos = calloc(state->nr_bos + 1, sizeof(*gpu->bos));
	if (!gpu->bos)
		return -ENOMEM;
	for (size_t i = 0; i < state->nr_bos; i++) {
		const struct bo *bo = &state->bos[i];

		if (!kfd_state_owns_on(state, i, gpu->gpu_id))
			continue;
		gpu->bos[gpu->nr_bos++] = (struct content_bo){
			.dmabuf_fd = bo->dmabuf_fd,
			.size = bo->size,
			.index = (uint32_t)i,
			.crc32c = bo->crc32c,
			.has_crc32c = bo->has_crc32c,
		};
	}
	return 0;
}

/* What the process does not need of these BOs. Others may need what they have, too. */
static int list_discarded(const struct kfd_state *state, const struct discard *discard, struct content_gpu *gpu)
{
	uint64_t file_off = LENGTH_PREFIX_BYTES, bytes = 0;
	struct discard list = { 0 };
	int err = 0;

	for (size_t b = 0; !err && b < gpu->nr_bos; file_off += gpu->bos[b++].size) {
		const struct bo *bo = &state->bos[gpu->bos[b].index];

		if (gpu->bos[b].index < state->nr_records && !bo->share.buffer)
			err = discard_in_bo(discard, bo, file_off, &list);
	}
	for (size_t i = 0; i < list.nr; i++)
		bytes += list.ranges[i].to - list.ranges[i].from;
	if (bytes)
		pr_info("gpu %#x: pid %d does not need %" PRIu64 " bytes, which will be zeros\n", gpu->gpu_id, gpu->pid, bytes);
	gpu->discarded = list.ranges;
	gpu->nr_discarded = list.nr;
	return err;
}

uint64_t pages_bytes(const struct gpu_process *process)
{
	const struct kfd_state *state = &process->state;
	struct discard discard = { 0 }, list = { 0 };
	uint64_t bytes = 0;

	discard_read(process->file.pid, &discard);
	for (size_t i = 0; i < state->nr_records; i++) {
		if (!kfd_state_owns(state, i))
			continue;
		bytes += state->bos[i].size;
		if (!state->bos[i].share.buffer)
			discard_in_bo(&discard, &state->bos[i], 0, &list); /* out of memory: it counts as needed */
	}
	for (size_t i = 0; i < list.nr; i++)
		bytes -= list.ranges[i].to - list.ranges[i].from;
	discard_done(&discard);
	discard_done(&list);
	return bytes;
}

/* Other writers leave the file out where there is nothing to put into it. */
int pages_missing(const struct content_gpu *gpu)
{
	if (!gpu->nr_bos)
		return 0;
	return fail(-ENOENT, "image %s is missing: it holds %zu buffers of gpu %#x", gpu->pages_name, gpu->nr_bos, gpu->gpu_id);
}

int pages_open(const struct gpu_process *process, size_t device, enum content_direction direction, struct content_gpu *gpu)
{
	uint32_t minor = process->minors[device];
	int err;

	*gpu = (struct content_gpu){
		.gpu_id = process->state.devices[device].user_gpu_id,
		.pid = process->file.pid ?: (int)process->state.pid,
		.render_fd = -1,
		.pages_fd = -1,
		.streaming = criu_is_streaming(),
	};
	image_name_make(IMAGE_PAGES, process->id, gpu->gpu_id, gpu->pages_name);
	err = list_bos(&process->state, gpu);
	if (err)
		return err;
	/* A streamer has few files open at a time, and waits until one is read. */
	if (direction == CONTENT_DUMP || !gpu->streaming) {
		int fd = direction == CONTENT_DUMP ? criu_image_create(gpu->pages_name) : criu_image_open(gpu->pages_name);

		if (fd == -ENOENT && direction == CONTENT_RESTORE)
			return pages_missing(gpu);
		if (fd < 0)
			return fd;
		gpu->pages_fd = fd;
	}
	gpu->render_fd = drm_open_minor(minor);
	if (gpu->render_fd < 0)
		return fail(gpu->render_fd, "gpu %#x: cannot open renderD%u: %m", gpu->gpu_id, minor);
	/* What can be wrong with a file is known before criu restores all else. */
	if (direction == CONTENT_RESTORE && !gpu->streaming)
		err = content_check_file(gpu);
	return err ? err : 1;
}

struct content_options pages_options(const struct settings *settings, struct progress *progress, struct content_tally *tally)
{
	return (struct content_options){
		.max_buffer_bytes = settings->max_buffer_size_bytes,
		.on_progress = progress_report,
		.progress_arg = progress,
		.tally = tally,
	};
}

/* ---- a dump, and processes that stay ---- */

static void copying_done(struct copying *copying)
{
	for (size_t i = 0; i < copying->nr_gpus; i++)
		pages_close(&copying->gpus[i]);
	for (size_t i = 0; i < copying->nr_discards; i++)
		discard_done(&copying->discards[i]);
	free(copying->gpus);
	free(copying->places);
	free(copying->discards);
	free(copying->parts);
}

static int copying_init(struct copying *copying, struct gpu_process *const *processes, size_t nr_processes)
{
	size_t nr = 0;

	for (size_t i = 0; i < nr_processes; i++)
		nr += processes[i]->state.nr_devices;
	copying->parts = calloc(nr + 1, sizeof(*copying->parts));
	copying->discards = calloc(nr_processes + 1, sizeof(*copying->discards));
	copying->gpus = calloc(nr + 1, sizeof(*copying->gpus));
	copying->places = calloc(nr + 1, sizeof(*copying->places));
	if (!copying->parts || !copying->discards || !copying->gpus || !copying->places)
		return -ENOMEM;
	for (size_t i = 0; i < nr_processes; i++) {
		const struct gpu_process *process = processes[i];

		if (copying->direction == CONTENT_DUMP)
			discard_read(process->file.pid, &copying->discards[copying->nr_discards++]);
		for (size_t j = 0; j < process->state.nr_devices; j++) {
			size_t at = 0;

			copying->parts[copying->nr_parts++] = (struct part){
				.process = process, .discard = &copying->discards[i], .device = j, .minor = process->minors[j],
			};
			while (at < copying->nr_gpus && copying->places[at].minor != process->minors[j])
				at++;
			if (at < copying->nr_gpus)
				continue;
			copying->gpus[at] = (struct content_gpu){ .render_fd = -1, .pages_fd = -1 };
			copying->places[copying->nr_gpus++] = (struct place){ .minor = process->minors[j] };
		}
	}
	return 0;
}

/* Of a part that is copied. */
static int end_part(const struct copying *copying, struct content_gpu *gpu, const struct part *part)
{
	struct bo *bos = part->process->state.bos;

	if (copying->direction == CONTENT_RESTORE)
		return 0;
	if (close(steal_fd(&gpu->pages_fd)))
		return fail(errno_or_eio(), "image %s: cannot write it: %m", gpu->pages_name);
	for (size_t b = 0; b < gpu->nr_bos; b++) {
		struct bo *bo = &bos[gpu->bos[b].index];

		bo->crc32c = gpu->bos[b].crc32c;
		bo->has_crc32c = gpu->bos[b].has_crc32c;
	}
	return 0;
}

/* The next part of the GPU, see content_options. */
static int next_part(void *arg, struct content_gpu *gpu)
{
	struct copying *copying = arg;
	struct place *place = &copying->places[gpu - copying->gpus];
	int r = place->part ? end_part(copying, gpu, place->part) : 0;

	place->part = NULL;
	while (!r && place->next < copying->nr_parts) {
		const struct part *part = &copying->parts[place->next++];

		if (part->minor != place->minor)
			continue;
		pages_close(gpu);
		r = pages_open(part->process, part->device, copying->direction, gpu);
		if (r > 0 && copying->direction == CONTENT_DUMP)
			r = list_discarded(&part->process->state, part->discard, gpu) ?: 1;
		place->part = part;
	}
	if (!r)
		place->part = NULL;
	return r;
}

/* Processes on different GPUs are copied at the same time, those on one GPU one after the other. */
static int copy(struct gpu_process *const *processes, size_t nr_processes, enum content_direction direction,
		const struct settings *settings, struct progress *progress, struct content_tally *tally)
{
	_cleanup_(copying_done) struct copying copying = { .direction = direction };
	struct content_options options = pages_options(settings, progress, tally);
	int err = copying_init(&copying, processes, nr_processes);

	if (err)
		return err;
	options.next = next_part;
	options.next_arg = &copying;
	return content_copy(direction, copying.gpus, copying.nr_gpus, &options);
}

int pages_dump(struct gpu_process *const *processes, size_t nr_processes, const struct settings *settings,
	       struct content_tally *tally)
{
	_cleanup_(progress_close) struct progress progress = progress_open(settings->progress, "dump");
	/* A streamer has few files open at a time. */
	size_t nr_together = criu_is_streaming() ? 1 : nr_processes;
	int err = 0;

	for (size_t i = 0; !err && i < nr_processes; i += nr_together)
		err = copy(&processes[i], nr_together, CONTENT_DUMP, settings, &progress, tally);
	return err;
}

int pages_fill(struct gpu_process *const *processes, size_t nr_processes, const struct settings *settings,
	       struct content_tally *tally)
{
	_cleanup_(progress_close) struct progress progress = progress_open(settings->progress, "resume");

	return copy(processes, nr_processes, CONTENT_RESTORE, settings, &progress, tally);
}

/* ---- the summary ---- */

void pages_log_tally(const struct content_tally *tally, const char *what, size_t nr_processes, const char *lasting,
		     double seconds)
{
	uint64_t bytes = atomic_load(&tally->bytes), ns = atomic_load(&tally->ended_ns) - atomic_load(&tally->began_ns);

	pr_info("%s %zu process%s: %" PRIu64 " bytes, %.0f %% zeros, copied in %.3f s; %s %.3f s; at most %" PRIu64
		" KiB of buffers\n", what, nr_processes, nr_processes == 1 ? "" : "es", bytes,
		bytes ? 100.0 * (double)atomic_load(&tally->zero_bytes) / (double)bytes : 0.0, (double)ns / 1e9, lasting,
		seconds, atomic_load(&tally->most_bytes) >> 10);
}
