// SPDX-License-Identifier: GPL-2.0-only
/*
 * libdrm_amdgpu for the command: looked for when contents are copied, since all else works without, and "doctor" says
 * what is missing. content/ calls these functions by their names, as in the plugin, which is linked with the library.
 */
#include <dlfcn.h>

#include <libdrm/amdgpu.h>

#include "amdgpu_plugin_util.h"

#define LIBRARY "libdrm_amdgpu.so.1"

static void *find(const char *name)
{
	static void *library; /* the same for all threads */
	void *loaded = library, *ret = NULL;

	if (!loaded)
		library = loaded = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (loaded)
		ret = dlsym(loaded, name);
	if (!ret)
		fail(-ELIBACC, "%s cannot be used: %s", LIBRARY, dlerror());
	return ret;
}

#define FORWARD(name, parameters, arguments)                             \
	int name parameters                                              \
	{                                                                \
		__typeof__(&name) next = (__typeof__(&name))find(#name); \
                                                                         \
		return next ? next arguments : -ELIBACC;                 \
	}

FORWARD(amdgpu_device_initialize, (int fd, uint32_t *major, uint32_t *minor, amdgpu_device_handle *device),
	(fd, major, minor, device))
FORWARD(amdgpu_device_deinitialize, (amdgpu_device_handle device), (device))
FORWARD(amdgpu_query_gpu_info, (amdgpu_device_handle device, struct amdgpu_gpu_info *info), (device, info))
FORWARD(amdgpu_query_hw_ip_info,
	(amdgpu_device_handle device, unsigned int type, unsigned int instance, struct drm_amdgpu_info_hw_ip *info),
	(device, type, instance, info))
FORWARD(amdgpu_bo_alloc, (amdgpu_device_handle device, struct amdgpu_bo_alloc_request *request, amdgpu_bo_handle *bo),
	(device, request, bo))
FORWARD(amdgpu_create_bo_from_user_mem, (amdgpu_device_handle device, void *cpu, uint64_t size, amdgpu_bo_handle *bo),
	(device, cpu, size, bo))
FORWARD(amdgpu_bo_import,
	(amdgpu_device_handle device, enum amdgpu_bo_handle_type type, uint32_t handle,
	 struct amdgpu_bo_import_result *result),
	(device, type, handle, result))
FORWARD(amdgpu_bo_free, (amdgpu_bo_handle bo), (bo))
FORWARD(amdgpu_bo_cpu_map, (amdgpu_bo_handle bo, void **cpu), (bo, cpu))
FORWARD(amdgpu_bo_cpu_unmap, (amdgpu_bo_handle bo), (bo))
FORWARD(amdgpu_bo_list_create,
	(amdgpu_device_handle device, uint32_t nr, amdgpu_bo_handle *bos, uint8_t *priorities,
	 amdgpu_bo_list_handle *list),
	(device, nr, bos, priorities, list))
FORWARD(amdgpu_bo_list_destroy, (amdgpu_bo_list_handle list), (list))
FORWARD(amdgpu_bo_va_op,
	(amdgpu_bo_handle bo, uint64_t offset, uint64_t size, uint64_t va, uint64_t flags, uint32_t op),
	(bo, offset, size, va, flags, op))
FORWARD(amdgpu_va_range_alloc,
	(amdgpu_device_handle device, enum amdgpu_gpu_va_range type, uint64_t size, uint64_t alignment,
	 uint64_t required, uint64_t *va, amdgpu_va_handle *range, uint64_t flags),
	(device, type, size, alignment, required, va, range, flags))
FORWARD(amdgpu_va_range_free, (amdgpu_va_handle range), (range))
FORWARD(amdgpu_cs_ctx_create, (amdgpu_device_handle device, amdgpu_context_handle *context), (device, context))
FORWARD(amdgpu_cs_ctx_free, (amdgpu_context_handle context), (context))
FORWARD(amdgpu_cs_submit,
	(amdgpu_context_handle context, uint64_t flags, struct amdgpu_cs_request *requests, uint32_t nr),
	(context, flags, requests, nr))
FORWARD(amdgpu_cs_query_fence_status,
	(struct amdgpu_cs_fence * fence, uint64_t timeout, uint64_t flags, uint32_t *expired),
	(fence, timeout, flags, expired))
FORWARD(amdgpu_cs_query_reset_state2, (amdgpu_context_handle context, uint64_t *flags), (context, flags))
