/* SPDX-License-Identifier: GPL-2.0-only */
/* Which amdgpu driver runs: rules that cannot be asked for go by its release. */
#ifndef KERNEL_DRIVER_H
#define KERNEL_DRIVER_H

#include <stdbool.h>
#include <string.h>

/* Where a driver that does not come with the kernel says its version. */
#define DRIVER_VERSION_FILE "/sys/module/amdgpu/version"

struct driver_release {
	/*
	 * Of Linux; of an amdgpu-dkms the Linux that it was made from, and a patch number of its own. All 0 when it
	 * cannot be told.
	 */
	int major, minor, patch;
	bool dkms;
	char text[96]; /* for messages: "Linux 6.12.107+deb13-amd64", "amdgpu-dkms 6.12.12" */
};

/* Asks @version_file (DRIVER_VERSION_FILE), and the kernel when there is none. */
void driver_ask_release(const char *version_file, struct driver_release *ret);

/* Whether the driver's release is at least @major.@minor. */
static inline bool driver_is_since(const struct driver_release *driver, int major, int minor)
{
	return driver->major > major || (driver->major == major && driver->minor >= minor);
}

/*
 * Whether RESTORE wants of a compute queue what CREATE_QUEUE does: memory for waves, and the size of its control stack.
 * "Properly acquire queue buffers in CRIU restore" came to 6.12 with 6.12.111, without the change that reverts it.
 */
static inline bool driver_checks_queues(const struct driver_release *driver)
{
	return !driver->dkms && driver->major == 6 && driver->minor == 12 && driver->patch >= 111;
}

/*
 * Whether it tries again when a page of an SVM range is copied while it takes the range's pages. 6.12.114 changes that, and
 * 6.12.117 dropped it; 6.1 has it up to 6.1.192 at least. A kernel of RHEL, or one without a patch number, may have any
 * driver.
 */
static inline bool driver_waits_for_pages(const struct driver_release *driver)
{
	if (driver->dkms || driver->major != 6 || !driver->patch || strstr(driver->text, ".el"))
		return false;
	return (driver->minor == 1 && driver->patch <= 192) || (driver->minor == 12 && driver->patch < 114);
}

#endif
