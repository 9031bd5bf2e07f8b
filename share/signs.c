// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which of a process' files of one render node has the KFD's address space, where it has no buffer there that the CPU can
 * map: that with the KFD's pasid (Linux 6.1 and 6.12), else that with syncobjs. Of files without contexts, which are all
 * that can be saved, ROCm makes them in no other.
 */
#include "amdgpu_plugin_util.h"
#include "amdgpu_plugin_drm.h"
#include "share/files.h"
#include "share/signs.h"

/* Whether a file shows that it is the KFD's. */
typedef int (*sign_fn)(const struct task_file *file, bool *ret);

static int has_pasid(const struct task_file *file, bool *ret)
{
	struct task_kfd kfd;

	*ret = !task_ask_kfd(file->pid, &kfd) && kfd.pasid && task_file_has_pasid(file, kfd.pasid);
	return 0;
}

static int has_syncobjs(const struct task_file *file, bool *ret)
{
	_cleanup_(render_objects_done) struct render_objects objects = { 0 };
	uint32_t pending = 0;
	int err = gem_syncobjs(file->fd, &objects, &pending);

	if (err)
		return fail(err, "pid %d: cannot ask renderD%u for syncobjs: %m", file->pid, file->minor);
	*ret = objects.nr_syncobjs || pending;
	return 0;
}

static int settle(struct survey *survey, size_t file, sign_fn has_sign)
{
	const struct task_files *files = survey->request->files;
	bool is_kfds = false, is_too = false;
	int err = files_may_be_another(survey, file) ? has_sign(&files->files[file], &is_kfds) : 0;

	if (err || !is_kfds)
		return err;
	for (size_t i = 0; i < files->count; i++) {
		if (!files_compete(survey, file, i))
			continue;
		err = has_sign(&files->files[i], &is_too);
		if (err)
			return err;
		survey->is_another[i] = !is_too;
	}
	return 0;
}

int signs_settle(struct survey *survey)
{
	static const sign_fn signs[] = { has_pasid, has_syncobjs };
	size_t nr_files = survey->request->files->count;

	for (size_t i = 0; i < ARRAY_SIZE(signs) * nr_files; i++) {
		int err = settle(survey, i % nr_files, signs[i / nr_files]);

		if (err)
			return err;
	}
	return 0;
}
