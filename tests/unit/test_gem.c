// SPDX-License-Identifier: GPL-2.0-only
/* How numbers that the kernel does not list are found: of syncobjs, and of handles before Linux 6.18. */
#include <errno.h>

#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>

#include "unit.h"
#include "amdgpu_plugin_util.h"
#include "amdgpu_plugin_drm.h"

static const uint32_t *there; /* ends with 0 */
static unsigned int nr_calls;

int __wrap_ioctl(int fd, unsigned long op, void *arg)
{
	const struct drm_syncobj_timeline_array *array = arg;
	const struct drm_amdgpu_gem_op *gem_op = arg;
	const union drm_amdgpu_ctx *context = arg;
	const uint32_t *at = there;
	uint32_t handle;

	nr_calls++;
	if (op == DRM_IOCTL_AMDGPU_GEM_OP)
		handle = gem_op->handle;
	else
		handle = op == DRM_IOCTL_AMDGPU_CTX ? context->in.ctx_id : *(const uint32_t *)(uintptr_t)array->handles;
	while (*at && *at != handle)
		at++;
	if (*at && op == DRM_IOCTL_SYNCOBJ_QUERY)
		*(uint64_t *)(uintptr_t)array->points = handle;
	errno = op == DRM_IOCTL_AMDGPU_CTX ? EINVAL : ENOENT;
	return *at ? 0 : -1;
}

static void assert_handles(const uint32_t *numbers, uint32_t nr)
{
	uint32_t nr_found = 99;

	there = numbers;
	nr_calls = 0;
	assert_int_equal(drm_count_objects(3, &nr_found), 0);
	assert_int_equal(nr_found, nr);
}

static void assert_found(const uint32_t *numbers, uint32_t nr)
{
	struct render_objects objects = { 0 };
	uint32_t pending = 99, nr_contexts = 99;

	there = numbers;
	nr_calls = 0;
	assert_int_equal(gem_syncobjs(3, &objects, &pending), 0);
	assert_int_equal(pending, 0);
	assert_int_equal(objects.nr_syncobjs, nr);
	for (uint32_t i = 0; i < nr; i++) {
		assert_int_equal(objects.syncobjs[i].handle, numbers[i]);
		assert_int_equal(objects.syncobjs[i].point, numbers[i]);
	}
	free(objects.syncobjs);
	assert_int_equal(drm_count_contexts(3, &nr_contexts), 0);
	assert_int_equal(nr_contexts, nr);
}

TEST(unlisted_numbers_are_found_whatever_they_are)
{
	static const uint32_t none[] = { 0 }, few[] = { 1, 3, 0 }, large[] = { 2, 4096, 4097, 8000, 12000, 0 };

	assert_handles(none, 0);
	assert_handles(few, 2);
	assert_handles(large, 5);
}

/* A process that has had hundreds of them at a time, and has freed most. */
TEST(syncobjs_and_contexts_are_found_behind_a_gap)
{
	static const uint32_t none[] = { 0 }, few[] = { 1, 3, 0 }, large[] = { 2, 512, 1000, 1001, 0 };

	assert_found(none, 0);
	assert_found(few, 2);
	assert_found(large, 4);
}

/* There are as many files as processes times GPUs. */
TEST(a_file_without_any_is_asked_little)
{
	static const uint32_t none[] = { 0 };

	assert_found(none, 0);
	assert_in_range(nr_calls, 2, 1100);
}

/* Linux 7.3 has no last number; before, it is 4095. */
TEST(more_contexts_than_older_kernels_have_are_found)
{
	uint32_t numbers[5001] = { 0 }, nr_contexts = 0;

	for (uint32_t i = 0; i < 5000; i++)
		numbers[i] = i + 1;
	there = numbers;
	assert_int_equal(drm_count_contexts(3, &nr_contexts), 0);
	assert_int_equal(nr_contexts, 5000);
}

UNIT_MAIN(NULL, NULL)
