// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a buffer may be held outside of the dump too, before Linux 6.8, where each export makes a dma-buf of its own,
 * whose references say nothing of the others.
 *
 * A BO that was imported is somebody else's. One that was allocated can only have got out by EXPORT_DMABUF, which came
 * with interface 1.12 of the KFD; then there is a dma-buf of its size that is older than the dump. ROCm's allocations
 * never look like imports: they have one flag more.
 */
#define _GNU_SOURCE
#include <inttypes.h>

#include "amdgpu_plugin_util.h"
#include "share/survey.h"

#define BUFINFO "/sys/kernel/debug/dma_buf/bufinfo"
#define HINT "dump it with everybody who shares it on Linux 6.8 or later, or end the sharing (KFD_SHARING_CHECK=0 dumps it " \
	     "as if it were not shared)"

struct older {
	uint64_t *sizes; /* of the dma-bufs that were there before the dump, ascending */
	size_t nr;
	bool can_export;
	int error; /* why they are not known */
};

static int compare_sizes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int add_size(struct older *older, uint64_t size)
{
	uint64_t *grown = reallocarray(older->sizes, older->nr + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[older->nr++] = size;
	older->sizes = grown;
	return 0;
}

/* A line for each: size, flags, mode, count, exporter, inode. All graphics drivers have the same exporter. */
static int read_sizes(struct older *older, uint64_t fresh_inode)
{
	_cleanup_fclose_ FILE *f = fopen(BUFINFO, "re");
	uint64_t size, inode;
	char line[512];
	int err = 0;

	if (!f)
		return -errno;
	while (!err && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNu64 " %*x %*x %*d drm %" SCNu64, &size, &inode) == 2 && inode < fresh_inode)
			err = add_size(older, size);
	if (older->nr)
		qsort(older->sizes, older->nr, sizeof(*older->sizes), compare_sizes);
	return err;
}

int older_read(const struct survey *survey, struct older **ret)
{
	struct older *older = calloc(1, sizeof(*older));

	if (!older)
		return -ENOMEM;
	older->can_export = kfd_can_export(survey->kfd);
	if (older->can_export)
		older->error = read_sizes(older, survey->request->fresh_inode);
	*ret = older;
	return 0;
}

void older_free(struct older *older)
{
	if (!older)
		return;
	free(older->sizes);
	free(older);
}

/* To be called first: kernels warn in their log when a buffer is imported by another dma-buf than its first. */
int older_check_import(const struct survey *survey, const struct holder *holder)
{
	const struct share_process *process = holder_process(survey, holder);
	const struct bo *bo = &process->state->bos[holder->bo];

	if (bo->alloc_flags & ~IMPORT_FLAGS)
		return 0;
	pr_err("pid %d: has imported a buffer of %" PRIu64 " bytes on renderD%u, and before Linux 6.8 nothing tells who else "
	       "has it: " HINT, process->pid, (uint64_t)bo->size, holder->minor);
	return -EOPNOTSUPP;
}

int older_check(const struct survey *survey, const struct older *older, const struct buffer *buffer)
{
	const struct share_process *process = holder_process(survey, buffer->holders);
	const struct bo *bo = &process->state->bos[buffer->holders->bo];

	if (!older->can_export)
		return 0;
	if (older->error)
		pr_err("pid %d: may share a buffer of %" PRIu64 " bytes of renderD%u, which before Linux 6.8 shows in " BUFINFO
		       " only (%s): mount debugfs, or " HINT, process->pid, (uint64_t)bo->size, buffer->holders->minor,
		       strerror(-older->error));
	else if (older->nr &&
		 bsearch(&(uint64_t){ bo->size }, older->sizes, older->nr, sizeof(*older->sizes), compare_sizes))
		pr_err("pid %d: may share a buffer of %" PRIu64 " bytes of renderD%u: there is a dma-buf of that size, and before "
		       "Linux 6.8 nothing tells whose it is: " HINT, process->pid, (uint64_t)bo->size,
		       buffer->holders->minor);
	else
		return 0;
	return -EOPNOTSUPP;
}
