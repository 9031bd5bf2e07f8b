// SPDX-License-Identifier: GPL-2.0-only
/* The order of a dump: collect who holds what, check that everybody is here, decide who owns each buffer. */
#include <inttypes.h>

#include "amdgpu_plugin_util.h"
#include "share/survey.h"

/* Exports a buffer for its inode; the buffer goes with its file. */
int share_begin(struct share_request *request, const struct driver_release *driver)
{
	const struct topology *machine = request->machine;

	request->one_dmabuf = driver_is_since(driver, 6, 8);
	request->is_dkms = driver->dkms;
	for (unsigned int i = 0; i < machine->nr_nodes; i++) {
		uint32_t handle, minor = topology_minor(machine->nodes[i]);
		_cleanup_close_ int fd = -1, dmabuf = -1;
		int err;

		fd = topology_is_gpu(machine->nodes[i]) ? drm_open_minor(minor) : -ENOENT;
		if (fd < 0)
			continue;
		err = gem_create_page(fd, &handle);
		dmabuf = err ? err : gem_export(fd, handle, false);
		err = dmabuf < 0 ? dmabuf : survey_inode(dmabuf, &request->fresh_inode);
		return err ? fail(err, "renderD%u: cannot make a dma-buf to tell new ones from old ones: %m", minor) : 0;
	}
	return fail(-ENODEV, "no render node of the GPUs can be opened to tell new dma-bufs from old ones");
}

/* ---- checks ---- */

/*
 * Before Linux 6.8 each export makes a dma-buf of its own, whose references say nothing of the others. A BO that was
 * imported is another process'; one that was allocated can have got out by EXPORT_DMABUF. ROCm's allocations never look
 * like imports: they have one flag more. To be called first: these kernels warn in their log when a buffer is imported by
 * another dma-buf than its first.
 */
static int check_unaccounted(const struct survey *survey, const struct gpu_process *process)
{
	bool can_export = kfd_can_export(survey->kfd);

	for (size_t i = 0; i < process->state.nr_bos; i++) {
		const struct bo *bo = &process->state.bos[i];
		bool is_import = !(bo->alloc_flags & ~IMPORT_FLAGS);

		if (!kfd_bo_has_data(bo) || !(is_import || can_export))
			continue;
		return fail(-EOPNOTSUPP, "pid %d: %s a buffer of %" PRIu64 " bytes on gpu %#x, and before Linux 6.8 the "
			    "kernel does not tell who else has it: if no other process has, KFD_SHARING_CHECK=0 dumps it; if one "
			    "has, use Linux 6.8 or later",
			    process->file.pid, is_import ? "has imported" : "may have exported", bo->size, bo->gpu_id);
	}
	return 0;
}

/* ---- all ---- */

int share_dump_collect(const struct share_request *request, struct survey **ret)
{
	struct survey *survey = calloc(1, sizeof(*survey));
	int err = survey ? survey_init(survey, request) : -ENOMEM;

	for (size_t i = 0; !err && !request->one_dmabuf && request->check_partners && i < request->nr_processes; i++)
		err = check_unaccounted(survey, request->processes[i]);
	if (!err)
		err = collect_all(survey);
	if (!err)
		survey_sort(survey);
	if (!err && request->one_dmabuf && survey->nr_holders) {
		err = references_read(survey);
		survey_sort(survey);
	}
	if (err)
		share_dump_done(survey);
	else
		*ret = survey;
	return err;
}

/* Whether each buffer is of the dump alone, and then who owns it. */
int share_dump_decide(struct survey *survey)
{
	const struct share_request *request = survey->request;
	struct buffer buffer = { 0 };
	int err = 0;

	while (!err && request->one_dmabuf && request->check_partners && survey_next(survey, &buffer)) {
		if (survey_is_private(survey, &buffer))
			continue;
		err = survey_find_gpu(survey, &buffer);
		if (!err)
			err = references_check(survey, &buffer);
	}
	return err ? err : decide_all(survey);
}

void share_dump_done(struct survey *survey)
{
	if (!survey)
		return;
	references_free(survey->references);
	survey_done(survey);
	free(survey);
}

/* ---- what came out ---- */

bool share_find_dmabuf(const struct survey *survey, int fd, struct dmabuf_image *ret)
{
	const struct open_buffer *open = NULL;
	uint64_t inode = 0;

	if (survey && survey->nr_open && !survey_inode(fd, &inode))
		open = bsearch(&inode, survey->open, survey->nr_open, sizeof(*open), compare_u64);
	if (!open)
		return false;
	*ret = (struct dmabuf_image){ .buffer = open->buffer, .nr_sharers = survey->nr_sharers };
	return true;
}

struct render_image share_describe_file(const struct survey *survey, const struct task_file *file)
{
	size_t i = (size_t)(file - survey->request->files->files);

	return (struct render_image){ .without_kfd_vm = survey->without_kfd_vm[i], .objects = survey->objects[i] };
}
