// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver's release. A driver of the kernel's own tree has no version but the kernel's; one of amdgpu-dkms has
 * a module version, which begins with the Linux release that it was made from, and may run below any kernel.
 */
#include <sys/utsname.h>

#include "kernel/driver.h"
#include "amdgpu_plugin_util.h"

void driver_ask_release(const char *version_file, struct driver_release *ret)
{
	_cleanup_fclose_ FILE *f = fopen(version_file, "re");
	struct utsname name = { 0 };
	char version[65] = "";

	if (f && fgets(version, sizeof(version), f))
		version[strcspn(version, "\n")] = '\0';
	*ret = (struct driver_release){ .dkms = version[0] };
	if (!ret->dkms) {
		uname(&name);
		snprintf(version, sizeof(version), "%s", name.release);
	}
	snprintf(ret->text, sizeof(ret->text), "%s %s", ret->dkms ? "amdgpu-dkms" : "Linux", version);
	if (sscanf(version, "%d.%d.%d", &ret->major, &ret->minor, &ret->patch) < 2)
		ret->major = ret->minor = ret->patch = 0;
}
