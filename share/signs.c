// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which of a process' files of one render node has the KFD's address space, where it has no buffer there that the CPU can
 * map: that with the KFD's pasid (Linux 6.1 and 6.12), else that with syncobjs. Of files without contexts, which are all
 * that can be saved, ROCm makes them in no other.
 */
#include "amdgpu_plugin_util.h"
#include "amdgpu_plugin_drm.h"
#include "share/survey.h"

/* Whether a file shows that it is the KFD's: 0, or -errno after an error line. */
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
		pr_err("pid %d: cannot ask renderD%u for syncobjs: %s", file->pid, file->minor, strerror(-err));
	*ret = objects.nr_syncobjs || pending;
	return err;
}

static int settle(struct survey *survey, size_t file, sign_fn has_sign)
{
	const struct task_files *files = survey->request->files;
	bool is_kfds = false, is_too;
	int err = file_may_be_another(survey, file) ? has_sign(&files->files[file], &is_kfds) : 0;

	for (size_t i = 0; !err && is_kfds && i < files->count; i++) {
		if (!files_compete(survey, file, i))
			continue;
		err = has_sign(&files->files[i], &is_too);
		survey->is_another[i] = !is_too;
	}
	return err;
}

int files_settle(struct survey *survey)
{
	static const sign_fn signs[] = { has_pasid, has_syncobjs };
	int err = 0;

	for (size_t sign = 0; sign < ARRAY_SIZE(signs); sign++)
		for (size_t file = 0; !err && file < survey->request->files->count; file++)
			err = settle(survey, file, signs[sign]);
	return err;
}
