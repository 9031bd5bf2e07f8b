// SPDX-License-Identifier: GPL-2.0-only
/* Which driver is said to run: that of amdgpu-dkms, or the kernel's own. */
#include <sys/utsname.h>

#include "unit.h"
#include "kernel/driver.h"
#include "amdgpu_plugin_util.h"

static struct driver_release ask(const char *version)
{
	char path[] = "/tmp/test_driver.XXXXXX";
	struct driver_release driver;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, version, strlen(version)), strlen(version));
	close(fd);
	driver_ask_release(path, &driver);
	unlink(path);
	return driver;
}

static void assert_release(const struct driver_release *driver, bool dkms, int major, int minor, int patch)
{
	assert_int_equal(driver->dkms, dkms);
	assert_int_equal(driver->major, major);
	assert_int_equal(driver->minor, minor);
	assert_int_equal(driver->patch, patch);
}

TEST(the_version_of_the_module_comes_before_that_of_the_kernel)
{
	struct driver_release driver = ask("6.12.12\n");

	assert_release(&driver, true, 6, 12, 12);
	assert_string_equal(driver.text, "amdgpu-dkms 6.12.12");
	driver = ask("6.16.6.60500-2255209.24.04");
	assert_release(&driver, true, 6, 16, 6);
}

TEST(without_one_it_is_the_kernels)
{
	struct driver_release driver;
	struct utsname name;

	assert_int_equal(uname(&name), 0);
	driver_ask_release("/nowhere/version", &driver);
	assert_false(driver.dkms);
	assert_true(driver.major > 0);
	assert_int_equal(strncmp(driver.text, "Linux ", 6), 0);
	assert_string_equal(driver.text + 6, name.release);
	driver = ask("\n");
	assert_false(driver.dkms);
}

TEST(a_version_that_is_none_tells_nothing)
{
	struct driver_release driver = ask("of its own");

	assert_release(&driver, true, 0, 0, 0);
	assert_string_equal(driver.text, "amdgpu-dkms of its own");
}

TEST(releases_are_compared_by_both_numbers)
{
	struct driver_release driver = ask("6.18.3");

	assert_true(driver_is_since(&driver, 6, 18));
	assert_true(driver_is_since(&driver, 5, 19));
	assert_false(driver_is_since(&driver, 6, 19));
	assert_false(driver_is_since(&driver, 7, 0));
}

UNIT_MAIN(NULL, NULL)
