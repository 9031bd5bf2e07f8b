// SPDX-License-Identifier: GPL-2.0-only
/* Names of image files. A name is one of ours when what it says, written again, gives the same name. */
#include <stdio.h>
#include <string.h>

#include "image/image.h"

static bool is(const char *name, const char *made)
{
	return !strcmp(name, made);
}

bool image_name_parse(const char *name, struct image_name *ret)
{
	char made[IMAGE_NAME_MAX] = "";
	unsigned int minor, bo;
	int id;

	*ret = (struct image_name){ 0 };
	if (sscanf(name, "amdgpu-kfd-%d.img", &id) == 1) {
		snprintf(made, sizeof(made), "amdgpu-kfd-%d.img", id);
		ret->kind = IMAGE_KFD;
	} else if (sscanf(name, "amdgpu-renderD-%d.img", &id) == 1) {
		snprintf(made, sizeof(made), "amdgpu-renderD-%d.img", id);
		ret->kind = IMAGE_RENDER;
	} else if (sscanf(name, "amdgpu-pages-%d-%x.img", &id, &ret->gpu_id) == 2) {
		snprintf(made, sizeof(made), "amdgpu-pages-%d-%04x.img", id, ret->gpu_id);
		ret->kind = IMAGE_PAGES;
	} else if (sscanf(name, "amdgpu-dmabuf_%d.img", &id) == 1) {
		snprintf(made, sizeof(made), "amdgpu-dmabuf_%d.img", id);
		ret->kind = IMAGE_DMABUF;
	} else if (sscanf(name, "amdgpu-drm-pages-%d-%u-%x.img", &id, &minor, &bo) == 3) {
		snprintf(made, sizeof(made), "amdgpu-drm-pages-%d-%u-%04x.img", id, minor, bo);
		ret->kind = IMAGE_DRM_PAGES;
	} else if (sscanf(name, "amdgpu-heir-%d.img", &id) == 1) {
		snprintf(made, sizeof(made), "amdgpu-heir-%d.img", id);
		ret->kind = IMAGE_HEIR;
	} else {
		return false;
	}
	ret->id = id;
	return id >= 0 && is(name, made);
}
