// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sorts the BOs of processes by GPU, opens a render node and a pages file for each, and runs
 * the content engine. The render nodes are opened anew: the engine makes GEM handles and
 * mappings in them, which must never happen in a file of the dumped process.
 */
#include "pages/pages.h"

#include "content/content.h"
#include "host/host.h"
#include "pages/progress.h"
#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"

enum direction { SAVE, FILL };

/* The open files of a process' contents. */
struct page_files {
	struct content_gpu *gpus; /* one for each GPU that has contents */
	size_t nr_gpus;
	char (*names)[IMAGE_NAME_MAX];
	struct bo **bos; /* of each one's process; borrowed */
};

/* The contents of a process on one GPU, which are to be saved. */
struct part {
	const struct pages_process *process;
	size_t device;
	uint32_t minor;
	uint64_t bytes;
	bool is_saved;
};

static void files_done(struct page_files *files)
{
	for (size_t i = 0; i < files->nr_gpus; i++) {
		if (files->gpus[i].render_fd >= 0)
			close(files->gpus[i].render_fd);
		if (files->gpus[i].pages_fd >= 0)
			close(files->gpus[i].pages_fd);
		free(files->gpus[i].bos);
	}
	free(files->gpus);
	free(files->names);
	free(files->bos);
}

/* The BOs of one GPU in the order of the kernel's buckets, which is the order in the file. */
static int collect_bos(const struct kfd_state *state, struct content_gpu *gpu)
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

static int open_files(struct content_gpu *gpu, int id, uint32_t minor, char *name, enum direction direction)
{
	gpu->pages_name = name;
	gpu->streaming = criu_is_streaming();
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

static int open_gpu(struct page_files *files, int id, const struct kfd_state *state, size_t device, uint32_t minor,
		    enum direction direction)
{
	struct content_gpu *gpu = &files->gpus[files->nr_gpus];
	char *name = files->names[files->nr_gpus];
	int err;

	files->bos[files->nr_gpus++] = state->bos;
	gpu->gpu_id = state->devices[device].user_gpu_id;
	gpu->render_fd = -1;
	gpu->pages_fd = -1;
	err = collect_bos(state, gpu);
	if (err)
		return err;
	err = open_files(gpu, id, minor, name, direction);
	if (err != -ENOENT || direction == SAVE || gpu->nr_bos)
		return err;
	/* Other writers leave the file out where there is nothing to put into it. */
	free(gpu->bos);
	files->nr_gpus--;
	return 0;
}

static int files_init(struct page_files *files, size_t max_gpus)
{
	files->gpus = calloc(max_gpus + 1, sizeof(*files->gpus));
	files->names = calloc(max_gpus + 1, sizeof(*files->names));
	files->bos = calloc(max_gpus + 1, sizeof(*files->bos));
	return files->gpus && files->names && files->bos ? 0 : -ENOMEM;
}

static int files_open(struct page_files *files, int id, const struct kfd_state *state, const uint32_t *minors)
{
	int err = files_init(files, state->nr_devices);

	if (err)
		return err;
	for (size_t i = 0; i < state->nr_devices; i++) {
		err = open_gpu(files, id, state, i, minors[i], FILL);
		if (err)
			return err;
	}
	return 0;
}

static int close_written(struct page_files *files)
{
	int ret = 0;

	for (size_t i = 0; i < files->nr_gpus; i++) {
		if (close(files->gpus[i].pages_fd) && !ret)
			ret = fail(errno_or_eio(), "image %s: cannot write it: %m", files->names[i]);
		files->gpus[i].pages_fd = -1;
	}
	return ret;
}

static void take_checksums(const struct page_files *files)
{
	for (size_t i = 0; i < files->nr_gpus; i++)
		for (size_t b = 0; b < files->gpus[i].nr_bos; b++) {
			const struct content_bo *from = &files->gpus[i].bos[b];
			struct bo *bo = &files->bos[i][from->index];

			bo->crc32c = from->crc32c;
			bo->has_crc32c = from->has_crc32c;
		}
}

static int run_engine(struct page_files *files, const struct settings *settings, struct progress *progress,
		      enum direction direction)
{
	const struct content_options options = {
		.max_buffer_bytes = memory_for_copies(settings->max_buffer_size_bytes),
		.on_progress = progress_report,
		.progress_arg = progress,
		.no_threads = direction == FILL, /* of a restored task: they would take pids that other tasks need */
	};
	int err = direction == SAVE ? content_dump(files->gpus, files->nr_gpus, &options)
				    : content_restore(files->gpus, files->nr_gpus, &options);

	if (err)
		return err;
	progress_report(progress, files->gpus, files->nr_gpus);
	return 0;
}

/* ---- dump ---- */

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->minor != y->minor)
		return x->minor < y->minor ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (x->process > y->process) - (x->process < y->process);
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
static int list_parts(const struct pages_process *processes, size_t nr_processes, struct part **ret, size_t *ret_nr)
{
	struct part *parts;
	size_t nr = 0;

	for (size_t i = 0; i < nr_processes; i++)
		nr += processes[i].state->nr_devices;
	*ret = parts = calloc(nr + 1, sizeof(*parts));
	*ret_nr = nr;
	if (!parts)
		return -ENOMEM;
	for (size_t i = 0; i < nr_processes; i++)
		for (size_t j = 0; j < processes[i].state->nr_devices; j++)
			*parts++ = (struct part){
				.process = &processes[i],
				.device = j,
				.minor = processes[i].minors[j],
				.bytes = bytes_on(processes[i].state, j),
			};
	qsort(*ret, nr, sizeof(**ret), compare_parts);
	return 0;
}

/* The next part of each GPU. */
static int open_round(struct page_files *files, struct part *parts, size_t nr_parts)
{
	const struct part *last = NULL;
	int err = files_init(files, nr_parts);

	if (err)
		return err;
	for (size_t i = 0; i < nr_parts; i++) {
		struct part *part = &parts[i];

		if (part->is_saved || (last && last->minor == part->minor))
			continue;
		last = part;
		part->is_saved = true;
		err = open_gpu(files, part->process->id, part->process->state, part->device, part->minor, SAVE);
		if (err)
			return err;
	}
	return 0;
}

/* Processes that use different GPUs are saved at the same time, those of one GPU one after the other. */
static int dump_parts(struct part *parts, size_t nr_parts, const struct settings *settings, struct progress *progress)
{
	for (size_t nr_saved = 0; nr_saved < nr_parts;) {
		_cleanup_(files_done) struct page_files files = { 0 };
		int err = open_round(&files, parts, nr_parts);

		if (err)
			return err;
		nr_saved += files.nr_gpus;
		err = run_engine(&files, settings, progress, SAVE);
		if (err)
			return err;
		err = close_written(&files);
		if (err)
			return err;
		take_checksums(&files);
	}
	return 0;
}

static int dump_processes(const struct pages_process *processes, size_t nr_processes, const struct settings *settings,
			  struct progress *progress)
{
	_cleanup_free_ struct part *parts = NULL;
	size_t nr_parts;
	int err = list_parts(processes, nr_processes, &parts, &nr_parts);

	if (err)
		return err;
	return dump_parts(parts, nr_parts, settings, progress);
}

int pages_dump(const struct pages_process *processes, size_t nr_processes, const struct settings *settings)
{
	_cleanup_(progress_close) struct progress progress = progress_open(settings->progress, "dump");
	/* A streamer has few files open at a time. */
	size_t nr_together = criu_is_streaming() ? 1 : nr_processes;

	for (size_t i = 0; i < nr_processes; i += nr_together) {
		int err = dump_processes(&processes[i], nr_together, settings, &progress);

		if (err)
			return err;
	}
	return 0;
}

/* ---- restore ---- */

static int restore_from_stream(int id, const struct kfd_state *state, size_t device, uint32_t minor,
			       const struct settings *settings, struct progress *progress)
{
	_cleanup_(files_done) struct page_files files = { 0 };
	int err = files_init(&files, 1);

	if (err)
		return err;
	err = open_gpu(&files, id, state, device, minor, FILL);
	if (err)
		return err;
	return run_engine(&files, settings, progress, FILL);
}

/* The streamer sends each file once and waits until it has been read: so one after the other. */
static int restore_all_from_stream(int id, const struct kfd_state *state, const uint32_t *minors,
				   const struct settings *settings)
{
	_cleanup_(progress_close) struct progress progress = progress_open(settings->progress, "restore");

	for (size_t i = 0; i < state->nr_devices; i++) {
		int err = restore_from_stream(id, state, i, minors[i], settings, &progress);

		if (err)
			return err;
	}
	return 0;
}

/* A token, or -errno: the caller copies. */
static int hand_over(const struct page_files *files, struct worker *worker)
{
	int token = worker_submit(worker, files->gpus, files->nr_gpus);

	if (token < 0) {
		pr_warn("contents are restored here instead of by criu's main process: %s",
			fail_text()[0] ? fail_text() : strerror(-token));
		fail_clear();
	} else {
		pr_info("the contents of %zu GPUs are restored by criu's main process", files->nr_gpus);
	}
	return token;
}

int pages_restore(int id, const struct kfd_state *state, const uint32_t *minors, const struct settings *settings,
		  struct worker *worker, int *ret_token)
{
	_cleanup_(files_done) struct page_files files = { 0 };
	_cleanup_(progress_close) struct progress progress = { .fd = -1 };
	int token, err;

	*ret_token = -1;
	if (criu_is_streaming())
		return restore_all_from_stream(id, state, minors, settings);
	err = files_open(&files, id, state, minors);
	if (err || !files.nr_gpus)
		return err;
	token = worker ? hand_over(&files, worker) : -ENOTCONN;
	if (token >= 0) {
		*ret_token = token;
		return 0;
	}
	progress = progress_open(settings->progress, "restore");
	return run_engine(&files, settings, &progress, FILL);
}
