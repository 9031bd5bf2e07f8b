// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sorts a process' BOs by GPU, opens a render node and a pages file for each, and runs
 * the content engine. The render nodes are opened anew: the engine makes GEM handles and
 * mappings in them, which must never happen in a file of the dumped process.
 */
#include "content/content.h"
#include "host/host.h"
#include "amdgpu_plugin_drm.h"
#include "pages/pages.h"
#include "pages/progress.h"
#include "amdgpu_plugin_util.h"

enum direction { SAVE, FILL };

struct job {
	struct content_gpu *gpus; /* one for each GPU that has contents */
	size_t nr_gpus;
	char (*names)[IMAGE_NAME_MAX];
};

static void job_done(struct job *job)
{
	size_t i;

	for (i = 0; i < job->nr_gpus; i++) {
		if (job->gpus[i].render_fd >= 0)
			close(job->gpus[i].render_fd);
		if (job->gpus[i].pages_fd >= 0)
			close(job->gpus[i].pages_fd);
		free(job->gpus[i].bos);
	}
	free(job->gpus);
	free(job->names);
}

/* The BOs of one GPU in the order of the kernel's buckets, which is the order in the file. */
static int collect_bos(const struct kfd_state *state, struct content_gpu *gpu)
{
	size_t i;

	gpu->bos = calloc(state->nr_bos + 1, sizeof(*gpu->bos));
	if (!gpu->bos)
		return -ENOMEM;
	for (i = 0; i < state->nr_bos; i++) {
		const struct kfd_criu_bo_bucket *bo = &state->bos[i];

		if (bo->gpu_id != gpu->gpu_id || !kfd_bo_has_contents(bo))
			continue;
		gpu->bos[gpu->nr_bos++] = (struct content_bo){
			.dmabuf_fd = (int)bo->dmabuf_fd,
			.size = bo->size,
			.index = (uint32_t)i,
			.crc32c = state->checksums[i].crc32c,
			.has_crc32c = state->checksums[i].is_known,
		};
	}
	return 0;
}

static int open_files(struct content_gpu *gpu, int id, uint32_t minor, char *name, enum direction direction)
{
	gpu->pages_name = name;
	gpu->streaming = criu_is_streaming();
	gpu->pages_fd = direction == SAVE ? pages_image_create(id, gpu->gpu_id, name) :
					    pages_image_open(id, gpu->gpu_id, name);
	if (gpu->pages_fd == -ENOENT && direction == FILL && gpu->nr_bos)
		pr_err("image %s is missing: it holds %zu buffers of gpu %#x", name, gpu->nr_bos, gpu->gpu_id);
	if (gpu->pages_fd < 0)
		return gpu->pages_fd;
	gpu->render_fd = drm_open_minor(minor);
	if (gpu->render_fd < 0)
		pr_err("gpu %#x: cannot open renderD%u: %s", gpu->gpu_id, minor, strerror(-gpu->render_fd));
	return gpu->render_fd < 0 ? gpu->render_fd : 0;
}

static int add_gpu(struct job *job, int id, const struct kfd_state *state, size_t device, uint32_t minor,
		   enum direction direction)
{
	struct content_gpu *gpu = &job->gpus[job->nr_gpus];
	char *name = job->names[job->nr_gpus++];
	int err;

	gpu->gpu_id = state->devices[device].user_gpu_id;
	gpu->render_fd = -1;
	gpu->pages_fd = -1;
	err = collect_bos(state, gpu);
	if (!err)
		err = open_files(gpu, id, minor, name, direction);
	/* Writers other than this one leave the file out where there is nothing to put into it. */
	if (err == -ENOENT && direction == FILL && !gpu->nr_bos) {
		free(gpu->bos);
		job->nr_gpus--;
		err = 0;
	}
	return err;
}

static int close_files(struct job *job)
{
	size_t i;
	int err = 0;

	for (i = 0; i < job->nr_gpus; i++) {
		if (close(job->gpus[i].pages_fd) && !err) {
			err = -errno;
			pr_err("image %s: %s", job->names[i], strerror(-err));
		}
		job->gpus[i].pages_fd = -1;
	}
	return err;
}

static void take_checksums(const struct job *job, struct kfd_checksum *checksums)
{
	size_t i, b;

	for (i = 0; i < job->nr_gpus; i++)
		for (b = 0; b < job->gpus[i].nr_bos; b++) {
			const struct content_bo *bo = &job->gpus[i].bos[b];

			checksums[bo->index] = (struct kfd_checksum){ .crc32c = bo->crc32c, .is_known = bo->has_crc32c };
		}
}

static int copy(struct job *job, const struct settings *settings, struct progress *progress, enum direction direction)
{
	struct content_options options = {
		.max_buffer_bytes = settings->max_buffer_size_bytes,
		.on_progress = progress_report,
		.progress_arg = progress,
	};
	int err = direction == SAVE ? content_dump(job->gpus, job->nr_gpus, &options) :
				      content_restore(job->gpus, job->nr_gpus, &options);

	if (!err)
		progress_report(progress, job->gpus, job->nr_gpus);
	return err;
}

static int job_init(struct job *job, size_t max_gpus)
{
	job->gpus = calloc(max_gpus + 1, sizeof(*job->gpus));
	job->names = calloc(max_gpus + 1, sizeof(*job->names));
	return job->gpus && job->names ? 0 : -ENOMEM;
}

static int add_gpus(struct job *job, int id, const struct kfd_state *state, const uint32_t *minors,
		    enum direction direction)
{
	int err = job_init(job, state->nr_devices);
	size_t i;

	for (i = 0; !err && i < state->nr_devices; i++)
		err = add_gpu(job, id, state, i, minors[i], direction);
	return err;
}

int pages_dump(int id, struct kfd_state *state, const uint32_t *minors, const struct settings *settings)
{
	_cleanup_(job_done) struct job job = { 0 };
	_cleanup_(progress_close) struct progress progress = progress_open(settings->progress, "dump");
	int err = add_gpus(&job, id, state, minors, SAVE);

	if (!err)
		err = copy(&job, settings, &progress, SAVE);
	if (!err)
		err = close_files(&job);
	if (!err)
		take_checksums(&job, state->checksums);
	return err;
}

/* The streamer sends one file at a time, and waits until it has been read. */
static int restore_stream(int id, const struct kfd_state *state, const uint32_t *minors,
			  const struct settings *settings)
{
	_cleanup_(progress_close) struct progress progress = progress_open(settings->progress, "restore");
	size_t i;
	int err = 0;

	for (i = 0; !err && i < state->nr_devices; i++) {
		_cleanup_(job_done) struct job job = { 0 };

		err = job_init(&job, 1);
		if (!err)
			err = add_gpu(&job, id, state, i, minors[i], FILL);
		if (!err)
			err = copy(&job, settings, &progress, FILL);
	}
	return err;
}

/* A token, or -errno: the caller copies. */
static int hand_over(const struct job *job, struct worker *worker)
{
	int token = worker_submit(worker, job->gpus, job->nr_gpus);

	if (token < 0)
		pr_warn("contents are not restored by criu's main process, but here: %s", strerror(-token));
	else
		pr_info("the contents of %zu GPUs are restored by criu's main process", job->nr_gpus);
	return token;
}

int pages_restore(int id, const struct kfd_state *state, const uint32_t *minors, const struct settings *settings,
		  struct worker *worker, int *ret_token)
{
	_cleanup_(job_done) struct job job = { 0 };
	_cleanup_(progress_close) struct progress progress = { .fd = -1 };
	int err;

	*ret_token = -1;
	if (criu_is_streaming())
		return restore_stream(id, state, minors, settings);
	err = add_gpus(&job, id, state, minors, FILL);
	if (err || !job.nr_gpus)
		return err;
	if (worker)
		*ret_token = hand_over(&job, worker);
	if (*ret_token >= 0)
		return 0;
	*ret_token = -1;
	progress = progress_open(settings->progress, "restore");
	return copy(&job, settings, &progress, FILL);
}
