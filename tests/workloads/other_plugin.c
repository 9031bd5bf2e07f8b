// SPDX-License-Identifier: GPL-2.0-only
/*
 * Another plugin of criu's, for what happens when ours is not the only one: it saves files of /dev/cpu_dma_latency, which neither
 * criu nor ours does, or takes those of $OTHER_PLUGIN_DEVICE, and answers to every hook of files and mappings.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/criu.h"

#define DEVICE "/dev/cpu_dma_latency"
#define IMAGE "other-misc-%d.img"

void print_on_level(unsigned int level, const char *fmt, ...);
int criu_get_image_dir(void);

static const char *device(void)
{
	const char *wanted = getenv("OTHER_PLUGIN_DEVICE");

	return wanted ? wanted : DEVICE;
}

static int init(int stage)
{
	print_on_level(3, "other_plugin: stage %d\n", stage);
	return 0;
}

static void done(int stage, int ret)
{
	print_on_level(3, "other_plugin: stage %d ends with %d\n", stage, ret);
}

static int dump_ext_file(int fd, int id)
{
	struct stat st, own;
	char name[64];
	int image;

	if (fstat(fd, &st) || stat(device(), &own) || !S_ISCHR(st.st_mode) || st.st_rdev != own.st_rdev)
		return -ENOTSUP;
	snprintf(name, sizeof(name), IMAGE, id);
	image = openat(criu_get_image_dir(), name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (image < 0)
		return -1;
	print_on_level(3, "other_plugin: file %#x saved\n", id);
	return close(image);
}

static int restore_ext_file(int id)
{
	char name[64];

	snprintf(name, sizeof(name), IMAGE, id);
	if (faccessat(criu_get_image_dir(), name, R_OK, 0))
		return -ENOTSUP;
	return open(device(), O_RDONLY);
}

static int handle_device_vma(int fd, const struct stat *st)
{
	(void)fd;
	(void)st;
	return -ENOTSUP;
}

static int update_vma_map(const char *path, const uint64_t start, const uint64_t offset, uint64_t *new_offset, int *fd)
{
	(void)path;
	(void)start;
	(void)offset;
	(void)new_offset;
	(void)fd;
	return -ENOTSUP;
}

struct criu_plugin_desc CR_PLUGIN_DESC = {
	.name = "other_plugin",
	.init = init,
	.exit = done,
	.version = CRIU_PLUGIN_ABI,
	.max_hooks = CRIU_HOOK_COUNT,
	.hooks = {
		[CRIU_HOOK_DUMP_EXT_FILE] = (void *)dump_ext_file,
		[CRIU_HOOK_RESTORE_EXT_FILE] = (void *)restore_ext_file,
		[CRIU_HOOK_HANDLE_DEVICE_VMA] = (void *)handle_device_vma,
		[CRIU_HOOK_UPDATE_VMA_MAP] = (void *)update_vma_map,
	},
};
