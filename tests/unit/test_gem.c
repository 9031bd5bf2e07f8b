// SPDX-License-Identifier: GPL-2.0-only
/* How numbers that the kernel does not list are found: of syncobjs, and of handles before Linux 6.18. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>

#include "amdgpu_plugin_util.h"
#include "amdgpu_plugin_drm.h"

static const uint32_t *there; /* ends with 0 */

int __wrap_ioctl(int fd, unsigned long op, void *arg);
int __wrap_ioctl(int fd, unsigned long op, void *arg)
{
	const struct drm_syncobj_timeline_array *array = arg;
	const struct drm_amdgpu_gem_op *gem_op = arg;
	bool is_gem = op == DRM_IOCTL_AMDGPU_GEM_OP;
	uint32_t handle = is_gem ? gem_op->handle : *(const uint32_t *)(uintptr_t)array->handles;
	const uint32_t *at = there;

	(void)fd;
	while (*at && *at != handle)
		at++;
	if (*at && op == DRM_IOCTL_SYNCOBJ_QUERY)
		*(uint64_t *)(uintptr_t)array->points = handle;
	errno = ENOENT;
	return *at ? 0 : -1;
}

static void assert_handles(const uint32_t *numbers, uint32_t nr)
{
	_cleanup_free_ struct gem_entry *entries = NULL;
	size_t nr_found = 99;

	there = numbers;
	assert_int_equal(gem_search(3, &entries, &nr_found), 0);
	assert_int_equal(nr_found, nr);
	for (uint32_t i = 0; i < nr; i++)
		assert_int_equal(entries[i].handle, numbers[i]);
}

static void assert_found(const uint32_t *numbers, uint32_t nr)
{
	struct render_objects objects = { 0 };
	uint32_t pending = 99;

	there = numbers;
	assert_int_equal(gem_syncobjs(3, &objects, &pending), 0);
	assert_int_equal(pending, 0);
	assert_int_equal(objects.nr_syncobjs, nr);
	for (uint32_t i = 0; i < nr; i++) {
		assert_int_equal(objects.syncobjs[i].handle, numbers[i]);
		assert_int_equal(objects.syncobjs[i].point, numbers[i]);
	}
	free(objects.syncobjs);
	assert_handles(numbers, nr);
}

static void unlisted_numbers_are_found_whatever_they_are(void **arg)
{
	static const uint32_t none[] = { 0 }, few[] = { 1, 3, 0 }, large[] = { 2, 4096, 4097, 8000, 12000, 0 };

	(void)arg;
	assert_found(none, 0);
	assert_found(few, 2);
	assert_found(large, 5);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(unlisted_numbers_are_found_whatever_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
