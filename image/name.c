// SPDX-License-Identifier: GPL-2.0-only
/* Names of image files. */
#include <stdio.h>
#include <string.h>

#include "image/image.h"
#include "image/internal.h"

/* Of the file's number and, for contents, the user gpu id. */
static const char *const formats[] = {
	[IMAGE_KFD] = "amdgpu-kfd-%d.img",
	[IMAGE_RENDER] = "amdgpu-renderD-%d.img",
	[IMAGE_PAGES] = "amdgpu-pages-%d-%04x.img",
	[IMAGE_DMABUF] = "amdgpu-shared-%d.img",
	[IMAGE_DMABUF_OLD] = "amdgpu-dmabuf_%d.img",
};

void image_name(enum image_kind kind, int id, uint32_t gpu_id, char ret[IMAGE_NAME_MAX])
{
	snprintf(ret, IMAGE_NAME_MAX, formats[kind], id, gpu_id);
}

/* A name is one of ours when what it says, written again, gives the same name. */
bool image_name_parse(const char *name, struct image_name *ret)
{
	char made[IMAGE_NAME_MAX];
	unsigned int minor, bo;

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		size_t numbers = strcspn(formats[i], "%");

		*ret = (struct image_name){ .kind = (enum image_kind)i };
		if (strncmp(name, formats[i], numbers) || sscanf(name + numbers, "%9d-%8x", &ret->id, &ret->gpu_id) < 1)
			continue;
		image_name(ret->kind, ret->id, ret->gpu_id, made);
		ret->kind = ret->kind == IMAGE_DMABUF_OLD ? IMAGE_DMABUF : ret->kind;
		return ret->id >= 0 && !strcmp(name, made);
	}
	*ret = (struct image_name){ .kind = IMAGE_DRM_PAGES };
	if (sscanf(name, "amdgpu-drm-pages-%9d-%9u-%8x", &ret->id, &minor, &bo) != 3)
		return false;
	snprintf(made, sizeof(made), "amdgpu-drm-pages-%d-%u-%04x.img", ret->id, minor, bo);
	return ret->id >= 0 && !strcmp(name, made);
}
