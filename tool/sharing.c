// SPDX-License-Identifier: GPL-2.0-only
/* A buffer has one number in all images of a dump: references are collected from each, and sorted by it. */
#include "amdgpu_plugin_util.h"
#include "tool/sharing.h"

static size_t count(const struct image_file *file)
{
	if (file->kfd)
		return file->kfd->state.nr_bos;
	return file->render ? file->render->objects.nr_handles : file->dmabuf != NULL;
}

static void add(struct sharing *sharing, const struct image_file *file, uint32_t buffer, enum sharing_role role,
		size_t bo)
{
	sharing->refs[sharing->nr++] = (struct sharing_ref){ buffer, role, file, bo };
}

static void add_process(struct sharing *sharing, const struct image_file *file)
{
	const struct kfd_state *state = &file->kfd->state;

	for (size_t i = 0; i < state->nr_bos; i++)
		if (state->bos[i].share.buffer)
			add(sharing, file, state->bos[i].share.buffer,
			    kfd_state_owns(state, i) ? SHARING_OWNER : SHARING_IMPORTER, i);
}

static void add_file(struct sharing *sharing, const struct image_file *file)
{
	if (file->kfd)
		add_process(sharing, file);
	else if (file->dmabuf)
		add(sharing, file, file->dmabuf->buffer, SHARING_DMABUF, 0);
	for (size_t i = 0; file->render && i < file->render->objects.nr_handles; i++)
		add(sharing, file, file->render->objects.handles[i].buffer, SHARING_HANDLE, 0);
}

static int compare(const void *a, const void *b)
{
	const struct sharing_ref *x = a, *y = b;

	if (x->buffer != y->buffer)
		return x->buffer < y->buffer ? -1 : 1;
	if (x->role != y->role)
		return x->role < y->role ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return (x->bo > y->bo) - (x->bo < y->bo);
}

int sharing_init(struct sharing *sharing, const struct images *images)
{
	size_t room = 1;

	for (size_t i = 0; i < images->nr; i++)
		room += count(&images->files[i]);
	*sharing = (struct sharing){ .refs = calloc(room, sizeof(*sharing->refs)) };
	if (!sharing->refs)
		return -ENOMEM;
	for (size_t i = 0; i < images->nr; i++)
		add_file(sharing, &images->files[i]);
	qsort(sharing->refs, sharing->nr, sizeof(*sharing->refs), compare);
	return 0;
}

void sharing_done(struct sharing *sharing)
{
	free(sharing->refs);
	*sharing = (struct sharing){ 0 };
}

bool sharing_next(const struct sharing *sharing, size_t *at, struct shared_buffer *ret)
{
	if (*at == sharing->nr)
		return false;
	*ret = (struct shared_buffer){ .number = sharing->refs[*at].buffer, .refs = &sharing->refs[*at] };
	for (; *at < sharing->nr && sharing->refs[*at].buffer == ret->number; (*at)++)
		ret->nr[sharing->refs[*at].role]++;
	return true;
}

const struct bo *sharing_bo(const struct shared_buffer *buffer)
{
	return buffer->nr[SHARING_OWNER] ? &buffer->refs->file->kfd->state.bos[buffer->refs->bo] : NULL;
}

bool sharing_is_gem(const struct shared_buffer *buffer)
{
	const struct sharing_ref *owner = buffer->refs;

	return buffer->nr[SHARING_OWNER] && owner->file->kfd->state.bos[owner->bo].share.kind == KFD_BO_GEM;
}
