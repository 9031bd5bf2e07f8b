// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shared buffers and objects of render nodes in the images. What can be wrong within one image is refused here; whether
 * a buffer has one owner among all images shows when the owners tell of it (share/table.c).
 */
#include <inttypes.h>

#include "image/internal.h"

#define SHARE_FIELDS(X)	  X(buffer) X(kind) X(domains) X(alignment) X(read_only) X(metadata_flags) X(tiling)
#define HANDLE_FIELDS(X)  X(handle) X(buffer)
#define MAPPING_FIELDS(X) X(handle) X(flags) X(va) X(size) X(offset)
#define SYNCOBJ_FIELDS(X) X(handle) X(is_signalled) X(point)

/* ---- shares ---- */

void share_pack(struct kfd_share *from, KfdBoEntry *to)
{
	if (!from->buffer)
		return;
	SHARE_FIELDS(COPY)
	to->gem_flags = from->flags;
	to->metadata = (ProtobufCBinaryData){ .len = from->metadata_size, .data = from->metadata };
	to->has_buffer = to->has_kind = true;
	to->has_domains = to->has_gem_flags = to->has_alignment = from->kind == KFD_BO_GEM;
	to->has_read_only = from->kind == KFD_BO_GEM && from->read_only;
	to->has_metadata = from->metadata_size > 0;
	to->has_tiling = to->has_metadata_flags = to->has_metadata || from->tiling || from->metadata_flags;
}

static int share_unpack(const char *name, size_t i, const KfdBoEntry *from, struct kfd_share *to)
{
	if (from->kind >= KFD_NR_BO_KINDS || (from->kind != KFD_BO_OWN && !from->has_buffer))
		return bad_image(name, "BO %zu has kind %u, which is unknown or needs a buffer number", i, from->kind);
	if (from->has_buffer && (!from->buffer || from->buffer > IMAGE_MAX_NUMBER))
		return bad_image(name, "BO %zu has the buffer number %u, which is out of range", i, from->buffer);
	if (from->metadata.len > KFD_METADATA_MAX)
		return bad_image(name, "BO %zu has %zu bytes of metadata", i, from->metadata.len);
	SHARE_FIELDS(COPY)
	to->flags = from->gem_flags;
	to->metadata_size = (uint32_t)from->metadata.len;
	if (to->metadata_size)
		memcpy(to->metadata, from->metadata.data, to->metadata_size);
	if (to->kind == KFD_BO_GEM && !kfd_share_is_known(to))
		return bad_image(name, "BO %zu cannot be made: domains %#" PRIx64 ", flags %#" PRIx64 ", alignment %" PRIu64,
				 i, to->domains, to->flags, to->alignment);
	return 0;
}

int shares_unpack(const char *name, const CriuKfd *msg, struct kfd_state *state)
{
	_cleanup_free_ uint32_t *owned = calloc((size_t)state->nr_bos + 1, sizeof(*owned));
	size_t nr = 0;

	if (!owned)
		return -ENOMEM;
	for (size_t i = 0; i < state->nr_bos; i++) {
		struct bo *bo = &state->bos[i];
		const struct kfd_share *share = &bo->share;
		int err = share_unpack(name, i, msg->bo_entries[i], &bo->share);
		bool is_kfds = share->kind != KFD_BO_GEM && share->kind != KFD_BO_REF;

		if (err)
			return err;
		if (is_kfds && state->nr_records++ < i)
			return bad_image(name, "BO %zu of the KFD comes after objects of render nodes", i);
		if (share->kind != KFD_BO_OWN && !kfd_bo_has_data(bo))
			return bad_image(name, "BO %zu has kind %d, but is neither VRAM nor GTT", i, share->kind);
		if (share->buffer && (share->kind == KFD_BO_OWN || share->kind == KFD_BO_GEM))
			owned[nr++] = share->buffer;
	}
	/* Each buffer has one owner. */
	qsort(owned, nr, sizeof(*owned), compare_u32);
	for (size_t i = 1; i < nr; i++)
		if (owned[i] == owned[i - 1])
			return bad_image(name, "has buffer %u twice", owned[i]);
	return 0;
}

/* ---- objects ---- */

void render_objects_done(struct render_objects *objects)
{
	free(objects->handles);
	free(objects->mappings);
	free(objects->syncobjs);
	*objects = (struct render_objects){ 0 };
}

/* Copies an array into such messages. */
#define PACK_ALL(list, messages, nr, FIELDS)                    \
	for (size_t i = 0; i < (nr); i++) {                     \
		__typeof__(&(list)[i]) from = &(list)[i];       \
		__typeof__((messages)[i]) to = (messages)[i];   \
                                                                \
		FIELDS(COPY)                                    \
	}

int objects_pack(struct packing *packing, const struct render_objects *objects, CriuRenderNode *msg)
{
	msg->handles = packing_add(packing, objects->nr_handles, &gem_handle__descriptor);
	msg->mappings = packing_add(packing, objects->nr_mappings, &gem_mapping__descriptor);
	msg->syncobjs = packing_add(packing, objects->nr_syncobjs, &syncobj__descriptor);
	if (!msg->handles || !msg->mappings || !msg->syncobjs)
		return -ENOMEM;
	msg->num_of_bos = msg->n_handles = objects->nr_handles;
	msg->n_mappings = objects->nr_mappings;
	msg->n_syncobjs = objects->nr_syncobjs;
	PACK_ALL(objects->handles, msg->handles, msg->n_handles, HANDLE_FIELDS)
	PACK_ALL(objects->mappings, msg->mappings, msg->n_mappings, MAPPING_FIELDS)
	PACK_ALL(objects->syncobjs, msg->syncobjs, msg->n_syncobjs, SYNCOBJ_FIELDS)
	for (size_t i = 0; i < msg->n_syncobjs; i++)
		msg->syncobjs[i]->has_point = msg->syncobjs[i]->has_is_signalled = true;
	return 0;
}

/* Handles, mappings by their handles, which have to be there, and syncobjs, each in ascending order. */
int objects_unpack(const char *name, const CriuRenderNode *msg, struct render_objects *ret)
{
	uint32_t last = 0;
	size_t at = 0;

	if (msg->n_handles && msg->num_of_bos != msg->n_handles)
		return bad_image(name, "says it has %" PRIu64 " handles, but has %zu", msg->num_of_bos, msg->n_handles);
	ret->handles = calloc(msg->n_handles + 1, sizeof(*ret->handles));
	ret->mappings = calloc(msg->n_mappings + 1, sizeof(*ret->mappings));
	ret->syncobjs = calloc(msg->n_syncobjs + 1, sizeof(*ret->syncobjs));
	if (!ret->handles || !ret->mappings || !ret->syncobjs)
		return -ENOMEM;
	for (; ret->nr_handles < msg->n_handles; last = ret->handles[ret->nr_handles++].handle) {
		const GemHandle *from = msg->handles[ret->nr_handles];
		struct gem_handle *to = &ret->handles[ret->nr_handles];

		if (from->handle <= last || from->handle > IMAGE_MAX_NUMBER || !from->buffer ||
		    from->buffer > IMAGE_MAX_NUMBER)
			return bad_image(name, "handle %u of buffer %u comes after handle %u", from->handle, from->buffer,
					 last);
		HANDLE_FIELDS(COPY)
	}
	for (; ret->nr_mappings < msg->n_mappings; ret->nr_mappings++) {
		const GemMapping *from = msg->mappings[ret->nr_mappings];
		struct gem_mapping *to = &ret->mappings[ret->nr_mappings];
		uint64_t end;

		while (at < ret->nr_handles && ret->handles[at].handle < from->handle)
			at++;
		if (at == ret->nr_handles || ret->handles[at].handle != from->handle)
			return bad_image(name, "has a mapping at %#" PRIx64 " of handle %u, which is not there or out of order",
					 from->va, from->handle);
		if (!from->size || add_overflows(from->va, from->size, &end) ||
		    add_overflows(from->offset, from->size, &end))
			return bad_image(name, "has an impossible mapping of %" PRIu64 " bytes at %#" PRIx64, from->size,
					 from->va);
		MAPPING_FIELDS(COPY)
	}
	for (last = 0; ret->nr_syncobjs < msg->n_syncobjs; last = ret->syncobjs[ret->nr_syncobjs++].handle) {
		const Syncobj *from = msg->syncobjs[ret->nr_syncobjs];
		struct render_syncobj *to = &ret->syncobjs[ret->nr_syncobjs];

		if (from->handle <= last || from->handle > IMAGE_MAX_NUMBER)
			return bad_image(name, "syncobj %u comes after syncobj %u", from->handle, last);
		SYNCOBJ_FIELDS(COPY)
	}
	return 0;
}
