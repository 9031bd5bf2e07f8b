/* SPDX-License-Identifier: GPL-2.0-only */
/* criu's image directory for unit tests: criu_image_create() and criu_image_open() in a directory of the test's. */
#ifndef UNIT_IMAGE_DIR_H
#define UNIT_IMAGE_DIR_H

#include <fcntl.h>

#include "host/criu.h"
#include "amdgpu_plugin_util.h"
#include "remove_all.h"

static char directory[128];

static int open_in_directory(const char *name, int flags)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, flags | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

int criu_image_create(const char *name)
{
	return open_in_directory(name, O_WRONLY | O_CREAT | O_EXCL);
}

int criu_image_open(const char *name)
{
	return open_in_directory(name, O_RDONLY);
}

static int make_directory(void **state)
{
	log_clear();
	strcpy(directory, "/tmp/unit_images.XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	return remove_all(directory);
}

#endif
