// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers that tasks without GPU state of their own have mapped: children that use their parent's files or mappings.
 *
 * On one GPU a buffer has one file offset, whoever maps it, by whatever file of the render node. So the mapping comes
 * back by a file of the process that owns the buffer, which tells where it is once it has everything again.
 */
#include <inttypes.h>

#include "amdgpu_plugin_util.h"
#include "host/host.h"
#include "share/survey.h"
#include "share/table.h"

/* ---- dump ---- */

static int compare_places(uint32_t minor, uint64_t offset, const struct device_vma *vma)
{
	if (minor != vma->minor)
		return minor < vma->minor ? -1 : 1;
	return (offset > vma->offset) - (offset < vma->offset);
}

static int compare_vmas(const void *a, const void *b)
{
	const struct device_vma *const *x = a, *const *y = b;

	return compare_places((*x)->minor, (*x)->offset, *y);
}

int lent_collect(struct survey *survey)
{
	const struct share_request *request = survey->request;
	size_t room = 1;

	for (size_t i = 0; i < request->nr_heirs; i++)
		room += request->heirs[i].nr_vmas;
	survey->lent = calloc(room, sizeof(*survey->lent));
	if (!survey->lent)
		return -ENOMEM;
	for (size_t i = 0; i < request->nr_heirs; i++)
		for (size_t j = 0; j < request->heirs[i].nr_vmas; j++)
			survey->lent[survey->nr_lent++] = &request->heirs[i].vmas[j];
	qsort(survey->lent, survey->nr_lent, sizeof(*survey->lent), compare_vmas);
	return 0;
}

/* The first mapping of what the holder names; nr_lent: there is none. */
static size_t find(const struct survey *survey, const struct holder *holder)
{
	size_t low = 0, high = survey->nr_lent;

	if (holder->is_descriptor || !holder->is_mappable)
		return survey->nr_lent;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_places(holder->minor, holder->offset, survey->lent[middle]) > 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < survey->nr_lent && !compare_places(holder->minor, holder->offset, survey->lent[low]))
		return low;
	return survey->nr_lent;
}

bool lent_has(const struct survey *survey, const struct holder *holder)
{
	return find(survey, holder) < survey->nr_lent;
}

void lent_note(const struct survey *survey, const struct holder *owner, uint32_t buffer)
{
	for (size_t i = find(survey, owner);
	     i < survey->nr_lent && !compare_places(owner->minor, owner->offset, survey->lent[i]); i++)
		survey->lent[i]->buffer = buffer;
}

int lent_check(const struct survey *survey)
{
	const struct share_request *request = survey->request;

	for (size_t i = 0; i < request->nr_heirs; i++)
		for (size_t j = 0; j < request->heirs[i].nr_vmas; j++) {
			const struct device_vma *vma = &request->heirs[i].vmas[j];

			if (vma->buffer)
				continue;
			pr_err("pid %d: mapping at %#" PRIx64 " of renderD%u: the process has no /dev/kfd open (it has "
			       "inherited the mapping, or closed the file), and no process that is dumped has a buffer that "
			       "begins there by the KFD or an open handle%s: that cannot be saved", request->heirs[i].pid,
			       vma->start, vma->minor, request->one_dmabuf ? "" : ", by which it is known from Linux 6.8 on");
			return -EOPNOTSUPP;
		}
	return 0;
}

/* ---- restore ---- */

static const struct share_gpu *gpu_of(const struct share_task *task, uint32_t user_id)
{
	for (size_t i = 0; i < task->nr_gpus; i++)
		if (task->gpus[i].user_id == user_id)
			return &task->gpus[i];
	return NULL;
}

int lent_tell(const struct share_task *task, const struct kfd_state *state)
{
	for (size_t i = 0; state->shares && i < state->nr_bos; i++) {
		const struct share_gpu *gpu = gpu_of(task, state->bos[i].gpu_id);
		uint64_t offset = state->bos[i].restored_offset;

		if (!state->shares[i].lent)
			continue;
		if (!gpu)
			return -ENODEV;
		share_table_lend(task->table, state->shares[i].buffer, share_kept_file(task, gpu->minor, gpu->kept, offset),
				 offset);
	}
	return 0;
}

int share_borrow(struct share_table *table, uint32_t nr_sharers, uint32_t buffer, int *ret_kept, uint64_t *ret_offset)
{
	int err = share_table_begin(table, nr_sharers);

	return err ? err : share_table_borrow(table, buffer, ret_kept, ret_offset);
}
