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

/* One name, of a BO that was allocated; and nobody else can have imported it, or nobody has. */
static bool is_alone(struct survey *survey, struct buffer *buffer)
{
	struct memory memory = { 0 };
	int r;

	if (buffer->nr != 1 || buffer->holders->kind != HOLDER_BO)
		return false;
	/* An open dma-buf, also the process' own, would go on naming the memory that was given up. */
	if (references_of_tasks(survey->references, buffer->holders->inode))
		return false;
	if (survey_is_private(survey, buffer))
		return true;
	if (!(holder_bo(survey, buffer->holders)->alloc_flags & ~IMPORT_FLAGS))
		return false;
	r = survey_find_gpu(survey, buffer);
	if (!r)
		r = references_explain(survey, buffer);
	/* With the memory go its metadata, tokens of IPC. What was never exported has none. */
	if (r > 0 && survey_look_at(survey, buffer->minor, buffer->dmabuf_fd, &memory,
				    &holder_bo(survey, buffer->holders)->share))
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

static int find_alone(struct survey *survey)
{
	double end = monotonic_seconds() + RECOUNT_SECONDS;
	int err = collect_bos(survey);

	if (err || !survey->nr_holders)
		return err;
	survey_sort(survey);
	err = references_read(survey);
	survey_sort(survey);
	while (!err && look(survey) && monotonic_seconds() < end)
		usleep(RECOUNT_US);
	return err;
}

int share_find_alone(const struct share_request *request)
{
	struct survey *survey;
	int err;

	if (!request->one_dmabuf)
		return fail(-EOPNOTSUPP, "before Linux 6.8 the kernel does not tell who else has a buffer: no VRAM could be freed");
	survey = calloc(1, sizeof(*survey));
	err = survey ? survey_init(survey, request) : -ENOMEM;
	if (!err)
		err = find_alone(survey);
	share_dump_done(survey);
	return err;
}
