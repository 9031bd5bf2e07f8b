// SPDX-License-Identifier: GPL-2.0-only
/* The layout is that of content/: a length, then one buffer after the other. Memory does not grow with the file. */
#include "amdgpu_plugin_util.h"
#include "tool/verify.h"

void contents_done(struct contents *contents)
{
	free(contents->bos);
	free(contents->starts);
	*contents = (struct contents){ 0 };
}

int contents_init(struct contents *ret, const struct kfd_image *kfd, uint32_t gpu_id)
{
	size_t nr = 0;
	int err;

	for (size_t i = 0; i < kfd->state.nr_bos; i++)
		nr += kfd_state_owns_on(&kfd->state, i, gpu_id);
	*ret = (struct contents){ .bos = calloc(nr + 1, sizeof(*ret->bos)) };
	if (!ret->bos)
		return -ENOMEM;
	for (size_t i = 0; i < kfd->state.nr_bos; i++)
		if (kfd_state_owns_on(&kfd->state, i, gpu_id))
			ret->bos[ret->nr++] = (struct content_bo){
				.index = (uint32_t)i,
				.size = kfd->state.bos[i].size,
				.has_crc32c = kfd->state.bos[i].has_crc32c,
			};
	err = content_starts(ret->bos, nr, &ret->starts);
	if (err)
		contents_done(ret);
	return err;
}

bool contents_have_checksums(const struct contents *contents)
{
	for (size_t i = 0; i < contents->nr; i++)
		if (contents->bos[i].has_crc32c)
			return true;
	return false;
}

/* The next bytes of the file; @bytes NULL: zeros. What is behind the last buffer is passed over. */
static void add(struct contents *contents, const uint8_t *bytes, uint64_t size)
{
	while (size && contents->bo < contents->nr) {
		bool in_prefix = contents->at < contents->starts[0];
		uint64_t end = contents->starts[in_prefix ? 0 : contents->bo + 1];
		uint64_t n = size < end - contents->at ? size : end - contents->at;
		struct content_bo *bo = &contents->bos[contents->bo];

		if (!in_prefix)
			bo->crc32c = bytes ? crc32c(bo->crc32c, bytes, n) : crc32c_zeros(bo->crc32c, n);
		bytes = bytes ? bytes + n : NULL;
		size -= n;
		contents->at += n;
		contents->bo += !in_prefix && contents->at == end;
	}
}

int contents_read(struct contents *contents, struct member *member)
{
	const void *data;
	uint64_t at;
	size_t n;
	int r = 1;

	while (contents->bo < contents->nr && (r = member_read(member, &data, &n, &at)) > 0) {
		if (at < contents->at) {
			r = -EIO;
			break;
		}
		add(contents, NULL, at - contents->at);
		add(contents, data, n);
	}
	if (!r && member->size > contents->at)
		add(contents, NULL, member->size - contents->at);
	contents->err = r < 0 ? r : contents->bo < contents->nr ? -ENODATA : 0;
	return r == -EBADMSG ? r : 0;
}
