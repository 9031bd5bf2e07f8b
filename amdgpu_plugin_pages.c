// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sorts a process' BOs by GPU, opens a render node and a pages file for each, and runs
 * the content engine. The render nodes are opened anew: the engine makes GEM handles and
 * mappings in them, which must never happen in a file of the dumped process.
 */
#include "amdgpu_plugin_content.h"
#include "amdgpu_plugin_criu.h"
#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_pages.h"
#include "amdgpu_plugin_progress.h"
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
static int collect_bos(const struct kfd_state *state, const struct kfd_image_bo *bos, struct content_gpu *gpu)
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
			.crc32c = bos[i].crc32c,
			.has_crc32c = bos[i].has_crc32c,
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
		   const struct kfd_image_bo *bos, enum direction direction)
{
	struct content_gpu *gpu = &job->gpus[job->nr_gpus];
	char *name = job->names[job->nr_gpus++];
	int err;

	gpu->gpu_id = state->devices[device].user_gpu_id;
	gpu->render_fd = -1;
	gpu->pages_fd = -1;
	err = collect_bos(state, bos, gpu);
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

static void take_checksums(const struct job *job, struct kfd_image_bo *bos)
{
	size_t i, b;

	for (i = 0; i < job->nr_gpus; i++)
		for (b = 0; b < job->gpus[i].nr_bos; b++) {
			const struct content_bo *bo = &job->gpus[i].bos[b];

			bos[bo->index].crc32c = bo->crc32c;
			bos[bo->index].has_crc32c = bo->has_crc32c;
		}
}

static int copy(struct job *job, const struct settings *settings, enum direction direction)
{
	struct progress progress = progress_open(settings->progress, direction == SAVE ? "dump" : "restore");
	struct content_options options = {
		.max_buffer_bytes = settings->max_buffer_size_bytes,
		.on_progress = progress_report,
		.progress_arg = &progress,
	};
	int err = direction == SAVE ? content_dump_opts(job->gpus, job->nr_gpus, &options) :
				      content_restore_opts(job->gpus, job->nr_gpus, &options);

	if (!err)
		progress_report(&progress, job->gpus, job->nr_gpus);
	progress_close(&progress);
	return err;
}

static int run(int id, const struct kfd_state *state, const uint32_t *minors, const struct settings *settings,
	       struct kfd_image_bo *bos, enum direction direction)
{
	_cleanup_(job_done) struct job job = { 0 };
	size_t i;
	int err = 0;

	job.gpus = calloc(state->nr_devices, sizeof(*job.gpus));
	job.names = calloc(state->nr_devices, sizeof(*job.names));
	if (!job.gpus || !job.names)
		return -ENOMEM;
	for (i = 0; !err && i < state->nr_devices; i++)
		err = add_gpu(&job, id, state, i, minors[i], bos, direction);
	if (err)
		return err;
	err = copy(&job, settings, direction);
	if (direction == FILL)
		return err;
	if (!err)
		err = close_files(&job);
	if (!err)
		take_checksums(&job, bos);
	return err;
}

int pages_dump(int id, const struct kfd_state *state, const uint32_t *minors, const struct settings *settings,
	       struct kfd_image_bo *bos)
{
	return run(id, state, minors, settings, bos, SAVE);
}

int pages_restore(int id, const struct kfd_state *state, const uint32_t *minors, const struct settings *settings,
		  struct kfd_image_bo *bos)
{
	return run(id, state, minors, settings, bos, FILL);
}
