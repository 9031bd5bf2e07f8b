// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which buffers are of one process alone: it may give them up and get others in their place. Nothing is refused here:
 * what is not certain is not alone.
 */
#include "amdgpu_plugin_util.h"
#include "share/survey.h"

/* References of what was freed a moment ago, as by a process that has ended. */
#define RECOUNT_SECONDS 1
#define RECOUNT_US	(50 * 1000)

/*
 * A BO that was allocated, and GEM handles in files of the same process on the BO's GPU (VMM). And nobody else can have
 * imported it, or nobody has.
 */
static bool is_alone(struct survey *survey, struct buffer *buffer)
{
	const struct holder *first = buffer->holders;
	struct memory memory = { 0 };
	int r;

	if (first->kind != HOLDER_BO)
		return false;
	for (const struct holder *holder = first + 1; holder < first + buffer->nr; holder++)
		if (holder->kind != HOLDER_HANDLE || holder->is_import || holder->process != first->process ||
		    survey->request->files->files[holder->file].pid != holder_pid(survey, first))
			return false;
	/* An open dma-buf, also the process' own, would go on naming the memory that was given up. */
	if (references_of_tasks(survey->references, first->inode))
		return false;
	if (buffer->nr == 1 && survey_is_private(survey, buffer))
		return true;
	if (!(holder_bo(survey, first)->alloc_flags & ~IMPORT_FLAGS))
		return false;
	r = survey_find_gpu(survey, buffer);
	if (!r)
		r = references_explain(survey, buffer);
	/* With the memory go its metadata, tokens of IPC. What was never exported has none. */
	if (r > 0 && survey_look_at(survey, buffer->minor, buffer->dmabuf_fd, &memory, &holder_bo(survey, first)->share))
		r = 0;
	fail_clear();
	return r > 0;
}

/* How many are not alone. */
static size_t look(struct survey *survey)
{
	struct buffer buffer = { 0 };
	size_t nr = 0;

	while (survey_next(survey, &buffer)) {
		struct bo *bo;

		if (buffer.holders->kind != HOLDER_BO)
			continue;
		bo = holder_bo(survey, buffer.holders);
		bo->is_alone = bo->is_alone || is_alone(survey, &buffer);
		nr += !bo->is_alone;
	}
	return nr;
}

/* ---- the other names ---- */

void share_names_done(struct share_names *names)
{
	free(names->list);
}

int share_compare_names(const void *a, const void *b)
{
	const struct share_name *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return (x->handle > y->handle) - (x->handle < y->handle);
}

int share_find_alone(const struct share_request *request, struct share_names *ret)
{
	double end = monotonic_seconds() + RECOUNT_SECONDS;
	struct buffer buffer = { 0 };
	struct survey *survey;
	int err;

	if (!request->one_dmabuf)
		return fail(-EOPNOTSUPP, "before Linux 6.8 the kernel does not tell who else has a buffer: no VRAM could be freed");
	survey = calloc(1, sizeof(*survey));
	err = survey ? survey_init(survey, request) : -ENOMEM;
	if (!err)
		err = collect_bos(survey);
	if (!err && survey->nr_holders)
		err = collect_known_handles(survey);
	if (!err && survey->nr_holders) {
		survey_sort(survey);
		err = references_read(survey);
		survey_sort(survey);
	}
	while (!err && look(survey) && monotonic_seconds() < end)
		usleep(RECOUNT_US);
	while (!err && survey_next(survey, &buffer)) {
		const struct holder *bo = buffer.holders;

		for (size_t i = 0; !err && bo->kind == HOLDER_BO && i < buffer.nr; i++)
			if (bo[i].kind == HOLDER_HANDLE)
				err = array_add(ret->list, ret->nr,
						(struct share_name){ bo[i].file, bo[i].handle, bo->process, bo->bo });
	}
	if (ret->nr)
		qsort(ret->list, ret->nr, sizeof(*ret->list), share_compare_names);
	share_dump_done(survey);
	return err;
}
