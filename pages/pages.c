// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sorts the BOs of processes by GPU, opens a render node and a pages file for each, and runs
 * the content engine. The render nodes are opened anew: the engine makes GEM handles and
 * mappings in them, which must never happen in a file of the dumped process.
 */
#include "pages/pages.h"

#include <inttypes.h>

#include "content/content.h"
#include "host/host.h"
#include "pages/internal.h"
#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"

enum direction { SAVE, FILL };

_Static_assert(sizeof(((struct content_gpu *)0)->pages_name) == IMAGE_NAME_MAX, "each name fits");

/* Open files of contents, those of one GPU after the other. */
struct page_files {
	struct content_gpu *gpus; /* one for each GPU that has some */
	size_t nr_gpus;
	bool streaming; /* criu_is_streaming() */
};

/* The contents of a process on one GPU, which are to be saved. */
struct part {
	const struct gpu_process *process;
	const struct discard *discard;
	size_t device;
	uint32_t minor;
	uint64_t bytes;
};

static void gpu_done(struct content_gpu *gpu)
{
	cleanup_close(&gpu->render_fd);
	cleanup_close(&gpu->pages_fd);
	free(gpu->bos);
	free((void *)gpu->discarded);
}

static void files_done(struct page_files *files)
{
	for (size_t i = 0; i < files->nr_gpus; i++)
		gpu_done(&files->gpus[i]);
	free(files->gpus);
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

static int open_pages_file(struct content_gpu *gpu, int id, uint32_t minor, enum direction direction)
{
	char *name = gpu->pages_name;

	gpu->pages_fd =
		direction == SAVE ? pages_image_create(id, gpu->gpu_id, name) : pages_image_open(id, gpu->gpu_id, name);
	if (gpu->pages_fd == -ENOENT && direction == FILL && gpu->nr_bos)
		return fail(-ENOENT, "image %s is missing: it holds %zu buffers of gpu %#x", name, gpu->nr_bos,
			    gpu->gpu_id);
	if (gpu->pages_fd < 0)
		return gpu->pages_fd;
	gpu->render_fd = drm_open_minor(minor);
	if (gpu->render_fd < 0)
		return fail(gpu->render_fd, "gpu %#x: cannot open renderD%u: %m", gpu->gpu_id, minor);
	return 0;
}

/* As the @at-th of the files, whatever has been there. */
static int open_gpu(struct page_files *files, size_t at, const struct gpu_process *process, size_t device,
		    enum direction direction)
{
	struct content_gpu *gpu = &files->gpus[at];
	int err;

	*gpu = (struct content_gpu){
		.gpu_id = process->state.devices[device].user_gpu_id,
		.pid = process->file.pid,
		.render_fd = -1,
		.pages_fd = -1,
		.streaming = files->streaming,
	};
	if (at == files->nr_gpus)
		files->nr_gpus++;
	err = list_bos(&process->state, gpu);
	if (err)
		return err;
	err = open_pages_file(gpu, process->id, process->minors[device], direction);
	if (err != -ENOENT || direction == SAVE || gpu->nr_bos)
		return err;
	/* Other writers leave the file out where there is nothing to put into it. */
	free(gpu->bos);
	files->nr_gpus--;
	return 0;
}

static int files_init(struct page_files *files, size_t max_gpus)
{
	files->streaming = criu_is_streaming();
	files->gpus = calloc(max_gpus + 1, sizeof(*files->gpus));
	return files->gpus ? 0 : -ENOMEM;
}

static struct content_options engine_options(const struct settings *settings, struct progress *progress,
					      struct content_tally *tally)
{
	return (struct content_options){
		.max_buffer_bytes = settings->max_buffer_size_bytes,
		.on_progress = progress_report,
		.progress_arg = progress,
		.tally = tally,
	};
}

/* ---- dump ---- */

/* What processes have on GPUs, each of which has a place in @files. */
struct saving {
	struct page_files files;
	struct discard *discards; /* of each process */
	size_t nr_processes;
	struct part *parts; /* those of a GPU are neighbours */
	size_t nr_parts;
	struct part **at; /* which each place of @files is at */
	struct progress *progress;
};

static void saving_done(struct saving *saving)
{
	files_done(&saving->files);
	for (size_t i = 0; i < saving->nr_processes; i++)
		discard_done(&saving->discards[i]);
	free(saving->discards);
	free(saving->parts);
	free(saving->at);
}

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->minor != y->minor)
		return x->minor < y->minor ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (x->discard > y->discard) - (x->discard < y->discard); /* in the order of the processes */
}

static uint64_t bytes_on(const struct kfd_state *state, size_t device)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < state->nr_bos; i++)
		if (kfd_state_owns_on(state, i, state->devices[device].user_gpu_id))
			bytes += state->bos[i].size;
	return bytes;
}

/* By GPU, and the large ones first: many programs use one GPU and have a little on all others. */
static int list_parts(struct gpu_process *const *processes, size_t nr_processes, struct saving *saving)
{
	struct part *parts;
	size_t nr = 0;

	for (size_t i = 0; i < nr_processes; i++)
		nr += processes[i]->state.nr_devices;
	saving->parts = parts = calloc(nr + 1, sizeof(*parts));
	saving->discards = calloc(nr_processes + 1, sizeof(*saving->discards));
	saving->nr_parts = nr;
	if (!parts || !saving->discards)
		return -ENOMEM;
	for (size_t i = 0; i < nr_processes; i++) {
		discard_read(processes[i]->file.pid, &saving->discards[saving->nr_processes++]);
		for (size_t j = 0; j < processes[i]->state.nr_devices; j++)
			*parts++ = (struct part){
				.process = processes[i],
				.discard = &saving->discards[i],
				.device = j,
				.minor = processes[i]->minors[j],
				.bytes = bytes_on(&processes[i]->state, j),
			};
	}
	qsort(saving->parts, nr, sizeof(*saving->parts), compare_parts);
	return 0;
}

static int open_part(struct saving *saving, size_t place, struct part *part)
{
	int err;

	saving->at[place] = part;
	err = open_gpu(&saving->files, place, part->process, part->device, SAVE);
	return err ? err : list_discarded(&part->process->state, part->discard, &saving->files.gpus[place]);
}

/* The first part of each GPU. */
static int open_first_parts(struct saving *saving)
{
	struct page_files *files = &saving->files;
	int err = files_init(files, saving->nr_parts);

	saving->at = calloc(saving->nr_parts + 1, sizeof(*saving->at));
	if (!saving->at)
		return -ENOMEM;
	for (size_t i = 0; !err && i < saving->nr_parts; i++)
		if (!i || saving->parts[i].minor != saving->parts[i - 1].minor)
			err = open_part(saving, files->nr_gpus, &saving->parts[i]);
	return err;
}

static int finish_part(struct saving *saving, size_t place)
{
	struct content_gpu *gpu = &saving->files.gpus[place];
	struct bo *bos = saving->at[place]->process->state.bos;

	if (close(steal_fd(&gpu->pages_fd)))
		return fail(errno_or_eio(), "image %s: cannot write it: %m", gpu->pages_name);
	for (size_t b = 0; b < gpu->nr_bos; b++) {
		struct bo *bo = &bos[gpu->bos[b].index];

		bo->crc32c = gpu->bos[b].crc32c;
		bo->has_crc32c = gpu->bos[b].has_crc32c;
	}
	progress_report(saving->progress, gpu, 1);
	return 0;
}

/* The next part of the GPU, which does not wait for other GPUs. */
static int next_part(void *arg, struct content_gpu *gpu)
{
	struct saving *saving = arg;
	size_t place = (size_t)(gpu - saving->files.gpus);
	struct part *part = saving->at[place];
	int err = finish_part(saving, place);

	if (err)
		return err;
	if (part + 1 == saving->parts + saving->nr_parts || part[1].minor != part->minor)
		return 0;
	gpu_done(gpu);
	err = open_part(saving, place, part + 1);
	return err ? err : 1;
}

/* Processes on different GPUs are saved at the same time, those on one GPU one after the other. */
static int dump_processes(struct gpu_process *const *processes, size_t nr_processes, const struct settings *settings,
			  struct progress *progress, struct content_tally *tally)
{
	_cleanup_(saving_done) struct saving saving = { .progress = progress };
	struct content_options options = engine_options(settings, progress, tally);
	int err = list_parts(processes, nr_processes, &saving);

	if (err)
		return err;
	err = open_first_parts(&saving);
	if (err)
		return err;
	options.next = next_part;
	options.next_arg = &saving;
	return content_dump(saving.files.gpus, saving.files.nr_gpus, &options);
}

int pages_dump(struct gpu_process *const *processes, size_t nr_processes, const struct settings *settings,
	       struct content_tally *tally)
{
	_cleanup_(progress_close) struct progress progress = progress_open(settings->progress, "dump");
	/* A streamer has few files open at a time. */
	size_t nr_together = criu_is_streaming() ? 1 : nr_processes;
	int err = 0;

	for (size_t i = 0; !err && i < nr_processes; i += nr_together)
		err = dump_processes(&processes[i], nr_together, settings, &progress, tally);
	return err;
}

/* ---- restore ---- */

/* The files of @nr devices from @first on. What can be wrong with them is known before criu restores all else. */
static int add_files(struct page_files *files, const struct gpu_process *process, size_t first, size_t nr)
{
	int err = 0;

	for (size_t i = first; !err && i < first + nr; i++) {
		size_t at = files->nr_gpus;

		err = open_gpu(files, at, process, i, FILL);
		if (!err && files->nr_gpus > at && !files->streaming)
			err = content_check_file(&files->gpus[at]);
	}
	return err;
}

static int files_open(struct page_files *files, const struct gpu_process *process, size_t first, size_t nr)
{
	int err = files_init(files, nr);

	return err ? err : add_files(files, process, first, nr);
}

/* The threads of a restored task would take pids that other tasks need. */
static int restore_parts(struct page_files *files, const struct settings *settings, struct content_tally *tally)
{
	_cleanup_(progress_close) struct progress progress = progress_open(settings->progress, "restore");
	struct content_options options = engine_options(settings, &progress, tally);
	int err;

	options.no_threads = true;
	err = content_restore(files->gpus, files->nr_gpus, &options);
	if (err)
		return err;
	progress_report(&progress, files->gpus, files->nr_gpus);
	return 0;
}

/* A token, or -errno: the caller copies. */
static int hand_over(const struct page_files *files, struct worker *worker)
{
	int token = worker_submit(worker, files->gpus, files->nr_gpus);

	if (token < 0) {
		pr_warn("contents are restored here instead of by criu's main process: %s\n",
			fail_text()[0] ? fail_text() : strerror(-token));
		fail_clear();
	} else {
		pr_info("the contents of %zu GPUs are restored by criu's main process\n", files->nr_gpus);
	}
	return token;
}

/* The streamer sends each file once and waits until it has been read: so one after the other. */
static int restore_from_stream(const struct gpu_process *process, const struct settings *settings,
			       struct content_tally *tally)
{
	int err = 0;

	for (size_t i = 0; !err && i < process->state.nr_devices; i++) {
		_cleanup_(files_done) struct page_files files = { 0 };

		err = files_open(&files, process, i, 1);
		if (!err)
			err = restore_parts(&files, settings, tally);
	}
	return err;
}

int pages_restore(const struct gpu_process *process, const struct settings *settings, struct worker *worker,
		  struct content_tally *tally, int *ret_token)
{
	_cleanup_(files_done) struct page_files files = { 0 };
	int token, err;

	*ret_token = -1;
	if (criu_is_streaming())
		return restore_from_stream(process, settings, tally);
	err = files_open(&files, process, 0, process->state.nr_devices);
	if (err || !files.nr_gpus)
		return err;
	token = worker ? hand_over(&files, worker) : -ENOTCONN;
	if (token < 0)
		return restore_parts(&files, settings, tally);
	*ret_token = token;
	return 0;
}

/* ---- of processes that stay: all together, by threads ---- */

static int open_pages_files(struct gpu_process *const *processes, size_t nr_processes, struct page_files *files)
{
	size_t nr = 0;
	int err;

	for (size_t i = 0; i < nr_processes; i++)
		nr += processes[i]->state.nr_devices;
	err = files_init(files, nr);
	for (size_t i = 0; !err && i < nr_processes; i++)
		err = add_files(files, processes[i], 0, processes[i]->state.nr_devices);
	return err;
}

int pages_fill(struct gpu_process *const *processes, size_t nr_processes, const struct settings *settings,
	       struct content_tally *tally)
{
	_cleanup_(files_done) struct page_files files = { 0 };
	_cleanup_(progress_close) struct progress progress = progress_open(settings->progress, "resume");
	struct content_options options = engine_options(settings, &progress, tally);
	int err = open_pages_files(processes, nr_processes, &files);

	return err ? err : content_restore(files.gpus, files.nr_gpus, &options);
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
