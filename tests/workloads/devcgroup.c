// SPDX-License-Identifier: GPL-2.0-only
/*
 * devcgroup DIR MINOR...: from now on the tasks in the cgroup (v2) DIR may use these render nodes only, as with a
 * container engine's device filter.
 */
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kfd.h"

int main(int argc, char **argv)
{
	uint32_t minors[256];
	size_t n = 0;
	int dir, ret;

	if (argc < 2 || argc > 258)
		errx(2, "usage: devcgroup DIR MINOR...");
	dir = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		err(1, "%s", argv[1]);
	for (; n + 2 < (size_t)argc; n++)
		minors[n] = (uint32_t)strtoul(argv[n + 2], NULL, 10);
	ret = devfilter_attach(dir, minors, n);
	if (ret)
		errx(1, "%s: attaching a device filter: %s", argv[1], strerror(-ret));
	return 0;
}
