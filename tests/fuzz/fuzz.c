// SPDX-License-Identifier: GPL-2.0-only
/* What the fuzz targets share. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/criu.h"
#include "amdgpu_plugin_util.h"
#include "fuzz.h"

static char last_line[1024];
static unsigned int errors;

static void print_line(unsigned int level, const char *fmt, ...)
{
	char line[sizeof(last_line)];
	va_list args;

	/* Formatted in any case: the arguments are part of what is tested. */
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (level != PLUGIN_LOG_ERROR)
		return;
	errors++;
	memcpy(last_line, line, sizeof(line));
}

static void __attribute__((constructor)) log_start(void)
{
	plugin_log_to(print_line);
}

unsigned int fuzz_errors(void)
{
	unsigned int ret;

	fail_log();
	ret = errors;
	errors = 0;
	return ret;
}

void fuzz_show_log(void)
{
	fprintf(stderr, "last error line: %s\n", last_line);
}

static void write_bytes(int fd, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		expect(n > 0);
		data += n;
		size -= (size_t)n;
	}
}

int fuzz_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	expect(fd >= 0);
	write_bytes(fd, data, size);
	expect(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

int fuzz_pipe(const uint8_t *data, size_t size)
{
	int ends[2];

	expect(size <= FUZZ_PIPE_MAX && !pipe2(ends, O_CLOEXEC));
	write_bytes(ends[1], data, size);
	close(ends[1]);
	return ends[0];
}

/* Targets have their bytes in memory. Weak, as the command has the plugin's own. */
__attribute__((weak)) int criu_image_open(const char *name)
{
	(void)name;
	return -ENOENT;
}

__attribute__((weak)) int criu_image_create(const char *name)
{
	(void)name;
	return -EROFS;
}
