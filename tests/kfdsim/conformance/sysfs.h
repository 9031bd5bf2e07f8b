/* SPDX-License-Identifier: GPL-2.0-only */
/* Small readers of sysfs files for the conformance programs. */
#ifndef KFDSIM_CONFORMANCE_SYSFS_H
#define KFDSIM_CONFORMANCE_SYSFS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KFD_TOPOLOGY "/sys/class/kfd/kfd/topology"

/* The whole file into @buf, NUL-terminated. Length, or -errno. One read, as sysfs files are made for. */
__attribute__((format(printf, 3, 4))) static inline int sysfs_read(char *buf, size_t size, const char *format, ...)
{
	char path[512];
	va_list args;
	ssize_t len;
	int fd, err;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	buf[0] = 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, buf, size - 1);
	err = errno;
	close(fd);
	if (len < 0)
		return -err;
	buf[len] = 0;
	return len;
}

/* The value on the line "name value" of @text; @missing when there is none. */
static inline unsigned long long sysfs_property(const char *text, const char *name, unsigned long long missing)
{
	size_t len = strlen(name);
	const char *line;

	for (line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		if (!strncmp(line, name, len) && line[len] == ' ')
			return strtoull(line + len + 1, NULL, 10);
	return missing;
}

/* How many entries of a directory have numbers as names. -1 when it cannot be read. */
__attribute__((format(printf, 1, 2))) static inline int sysfs_count(const char *format, ...)
{
	struct dirent *entry;
	char path[512];
	va_list args;
	int n = 0;
	DIR *dir;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	dir = opendir(path);
	if (!dir)
		return -1;
	while ((entry = readdir(dir)))
		n += entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
	closedir(dir);
	return n;
}

#endif
