// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shared buffers and objects of render nodes in the images. What can be wrong within one image is refused here; whether
 * a buffer has one owner among all images shows when the owners tell of it (share/table.c).
 */
#include <inttypes.h>

#include "image/internal.h"

static void *array_of(size_t count, size_t size)
{
	return calloc(count + 1, size);
}

/* ---- shares ---- */

void share_pack(struct kfd_share *share, KfdBoEntry *entry)
{
	if (!share->buffer)
		return;
	entry->has_buffer = entry->has_kind = true;
	entry->buffer = share->buffer;
	entry->kind = share->kind;
	entry->has_domains = entry->has_gem_flags = entry->has_alignment = share->kind == KFD_BO_GEM;
	entry->has_read_only = share->kind == KFD_BO_GEM && share->read_only;
	entry->read_only = share->read_only;
	entry->domains = share->domains;
	entry->gem_flags = share->flags;
	entry->alignment = share->alignment;
	entry->has_metadata = share->metadata_size > 0;
	entry->has_tiling = entry->has_metadata_flags = entry->has_metadata || share->tiling || share->metadata_flags;
	entry->tiling = share->tiling;
	entry->metadata_flags = share->metadata_flags;
	entry->metadata = (ProtobufCBinaryData){ .len = share->metadata_size, .data = share->metadata };
}

static int share_unpack(const char *name, size_t i, const KfdBoEntry *entry, struct kfd_share *ret)
{
	uint32_t kind = entry->has_kind ? entry->kind : KFD_BO_OWN;

	if (kind >= KFD_NR_BO_KINDS || (kind != KFD_BO_OWN && !entry->has_buffer))
		return bad_image(name, "BO %zu is of kind %u, without a buffer's number or unknown", i, kind);
	if (entry->has_buffer && (!entry->buffer || entry->buffer > IMAGE_MAX_NUMBER))
		return bad_image(name, "BO %zu is buffer %u, which is no number of one", i, entry->buffer);
	if (kind == KFD_BO_GEM && !kfd_share_is_known(&(struct kfd_share){ .domains = entry->domains, .flags = entry->gem_flags }))
		return bad_image(name, "BO %zu cannot be made: domains %#" PRIx64 ", flags %#" PRIx64 ", alignment %" PRIu64,
				 i, entry->domains, entry->gem_flags, entry->alignment);
	if (entry->has_metadata && entry->metadata.len > KFD_METADATA_MAX)
		return bad_image(name, "BO %zu has %zu bytes of metadata", i, entry->metadata.len);
	*ret = (struct kfd_share){
		.buffer = entry->has_buffer ? entry->buffer : 0,
		.kind = kind,
		.domains = entry->domains,
		.flags = entry->gem_flags,
		.alignment = entry->alignment,
		.read_only = entry->has_read_only && entry->read_only,
		.metadata_flags = entry->metadata_flags,
		.tiling = entry->tiling,
		.metadata_size = entry->has_metadata ? (uint32_t)entry->metadata.len : 0,
	};
	if (ret->metadata_size)
		memcpy(ret->metadata, entry->metadata.data, ret->metadata_size);
	return 0;
}

/* Each buffer has one owner. */
static int check_object_owners(const char *name, const struct kfd_state *state)
{
	_cleanup_free_ uint32_t *owned = array_of(state->nr_bos, sizeof(*owned));
	size_t nr = 0;

	if (!owned)
		return -ENOMEM;
	for (size_t i = 0; i < state->nr_bos; i++) {
		const struct kfd_share *share = &state->bos[i].share;

		if (share->buffer && (share->kind == KFD_BO_OWN || share->kind == KFD_BO_GEM))
			owned[nr++] = share->buffer;
	}
	qsort(owned, nr, sizeof(*owned), compare_u32);
	for (size_t i = 1; i < nr; i++)
		if (owned[i] == owned[i - 1])
			return bad_image(name, "has buffer %u twice", owned[i]);
	return 0;
}

static bool is_added(const struct kfd_share *share)
{
	return share->kind == KFD_BO_GEM || share->kind == KFD_BO_REF;
}

int shares_unpack(const char *name, const CriuKfd *msg, struct kfd_state *state)
{
	for (size_t i = 0; i < state->nr_bos; i++) {
		struct bo *bo = &state->bos[i];
		int err = share_unpack(name, i, msg->bo_entries[i], &bo->share);

		if (err)
			return err;
		if (!is_added(&bo->share) && state->nr_records++ < i)
			return bad_image(name, "BO %zu of the KFD comes after objects of render nodes", i);
		if (bo->share.kind != KFD_BO_OWN && !kfd_bo_has_contents(bo))
			return bad_image(name, "BO %zu is of kind %d and neither VRAM nor GTT", i, bo->share.kind);
	}
	return check_object_owners(name, state);
}

/* ---- objects ---- */

void render_objects_done(struct render_objects *objects)
{
	free(objects->handles);
	free(objects->mappings);
	free(objects->syncobjs);
	*objects = (struct render_objects){ 0 };
}

static void put_objects(const struct render_objects *objects, CriuRenderNode *msg)
{
	for (size_t i = 0; i < objects->nr_handles; i++) {
		gem_handle__init(msg->handles[i]);
		msg->handles[i]->handle = objects->handles[i].handle;
		msg->handles[i]->buffer = objects->handles[i].buffer;
	}
	for (size_t i = 0; i < objects->nr_mappings; i++) {
		gem_mapping__init(msg->mappings[i]);
		msg->mappings[i]->handle = objects->mappings[i].handle;
		msg->mappings[i]->va = objects->mappings[i].va;
		msg->mappings[i]->size = objects->mappings[i].size;
		msg->mappings[i]->offset = objects->mappings[i].offset;
		msg->mappings[i]->flags = objects->mappings[i].flags;
	}
	for (size_t i = 0; i < objects->nr_syncobjs; i++) {
		syncobj__init(msg->syncobjs[i]);
		msg->syncobjs[i]->handle = objects->syncobjs[i].handle;
		msg->syncobjs[i]->has_point = msg->syncobjs[i]->has_is_signalled = true;
		msg->syncobjs[i]->point = objects->syncobjs[i].point;
		msg->syncobjs[i]->is_signalled = objects->syncobjs[i].is_signalled;
	}
}

int objects_pack(const struct render_objects *objects, CriuRenderNode *msg)
{
	msg->handles = image_pointers(objects->nr_handles, sizeof(**msg->handles));
	msg->mappings = image_pointers(objects->nr_mappings, sizeof(**msg->mappings));
	msg->syncobjs = image_pointers(objects->nr_syncobjs, sizeof(**msg->syncobjs));
	if (!msg->handles || !msg->mappings || !msg->syncobjs)
		return -ENOMEM;
	msg->num_of_bos = msg->n_handles = objects->nr_handles;
	msg->n_mappings = objects->nr_mappings;
	msg->n_syncobjs = objects->nr_syncobjs;
	put_objects(objects, msg);
	return 0;
}

void objects_pack_done(CriuRenderNode *msg)
{
	image_pointers_free(msg->handles);
	image_pointers_free(msg->mappings);
	image_pointers_free(msg->syncobjs);
}

static int unpack_handles(const char *name, const CriuRenderNode *msg, struct render_objects *ret)
{
	uint32_t last = 0;

	for (; ret->nr_handles < msg->n_handles; ret->nr_handles++) {
		const GemHandle *entry = msg->handles[ret->nr_handles];

		if (entry->handle <= last || entry->handle > IMAGE_MAX_NUMBER || !entry->buffer ||
		    entry->buffer > IMAGE_MAX_NUMBER)
			return bad_image(name, "handle %u of buffer %u comes after handle %u", entry->handle,
					 entry->buffer, last);
		ret->handles[ret->nr_handles] = (struct gem_handle){ .handle = entry->handle, .buffer = entry->buffer };
		last = entry->handle;
	}
	return 0;
}

/* Sorted by handle; each handle has to be there. */
static int unpack_mappings(const char *name, const CriuRenderNode *msg, struct render_objects *ret)
{
	size_t at = 0;

	for (; ret->nr_mappings < msg->n_mappings; ret->nr_mappings++) {
		const GemMapping *entry = msg->mappings[ret->nr_mappings];
		uint64_t end;

		while (at < ret->nr_handles && ret->handles[at].handle < entry->handle)
			at++;
		if (at == ret->nr_handles || ret->handles[at].handle != entry->handle)
			return bad_image(name, "has a mapping at %#" PRIx64 " of handle %u, which is not there or out of order",
					 entry->va, entry->handle);
		if (!entry->size || add_overflows(entry->va, entry->size, &end) ||
		    add_overflows(entry->offset, entry->size, &end))
			return bad_image(name, "has an impossible mapping of %" PRIu64 " bytes at %#" PRIx64, entry->size,
					 entry->va);
		ret->mappings[ret->nr_mappings] = (struct gem_mapping){
			.handle = entry->handle,
			.flags = entry->flags,
			.va = entry->va,
			.size = entry->size,
			.offset = entry->offset,
		};
	}
	return 0;
}

static int unpack_syncobjs(const char *name, const CriuRenderNode *msg, struct render_objects *ret)
{
	uint32_t last = 0;

	for (; ret->nr_syncobjs < msg->n_syncobjs; ret->nr_syncobjs++) {
		const Syncobj *entry = msg->syncobjs[ret->nr_syncobjs];

		if (entry->handle <= last || entry->handle > IMAGE_MAX_NUMBER)
			return bad_image(name, "syncobj %u comes after syncobj %u", entry->handle, last);
		ret->syncobjs[ret->nr_syncobjs] = (struct render_syncobj){
			.handle = entry->handle,
			.is_signalled = entry->has_is_signalled && entry->is_signalled,
			.point = entry->has_point ? entry->point : 0,
		};
		last = entry->handle;
	}
	return 0;
}

int objects_unpack(const char *name, const CriuRenderNode *msg, struct render_objects *ret)
{
	int err;

	if (msg->n_handles && msg->num_of_bos != msg->n_handles)
		return bad_image(name, "announces %" PRIu64 " handles and has %zu", msg->num_of_bos, msg->n_handles);
	ret->handles = array_of(msg->n_handles, sizeof(*ret->handles));
	ret->mappings = array_of(msg->n_mappings, sizeof(*ret->mappings));
	ret->syncobjs = array_of(msg->n_syncobjs, sizeof(*ret->syncobjs));
	if (!ret->handles || !ret->mappings || !ret->syncobjs)
		return -ENOMEM;
	err = unpack_handles(name, msg, ret);
	if (err)
		return err;
	err = unpack_mappings(name, msg, ret);
	if (err)
		return err;
	return unpack_syncobjs(name, msg, ret);
}
