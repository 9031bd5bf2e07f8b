// SPDX-License-Identifier: GPL-2.0-only
/* Checksums of large files, whose bytes come one after the other. Memory does not grow with the file. */
#define _GNU_SOURCE
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "tool/checksum.h"

#define READ_BYTES (1u << 20)

void checksum_add(struct checksum *sum, const void *data, uint64_t size)
{
	const uint8_t *bytes = data;

	while (size && sum->bo < sum->nr) {
		bool in_prefix = sum->at < sum->starts[0];
		uint64_t end = in_prefix ? sum->starts[0] : sum->starts[sum->bo + 1];
		uint64_t n = size < end - sum->at ? size : end - sum->at;
		struct content_bo *bo = &sum->bos[sum->bo];

		if (!in_prefix)
			bo->crc32c = bytes ? crc32c(bo->crc32c, bytes, n) : crc32c_zeros(bo->crc32c, n);
		bytes = bytes ? bytes + n : NULL;
		size -= n;
		sum->at += n;
		sum->bo += !in_prefix && sum->at == end;
	}
	sum->progress(sum->arg, sum->at);
}

/* Adds a hole that is next; at the end of the file, nothing. 0 or -errno. */
static int add_hole(struct checksum *sum, int fd)
{
	off_t data = lseek(fd, (off_t)sum->at, SEEK_DATA);
	struct stat st;

	if (data < 0 && errno != ENXIO)
		return 0; /* a file system without holes */
	if (data < 0 && fstat(fd, &st))
		return -errno;
	data = data < 0 ? st.st_size : data;
	if (data > (off_t)sum->at)
		checksum_add(sum, NULL, (uint64_t)data - sum->at);
	return 0;
}

int checksum_file(struct checksum *sum, int fd)
{
	_cleanup_free_ uint8_t *buffer = malloc(READ_BYTES);
	int err = buffer ? 0 : -ENOMEM;

	while (!err && !checksum_is_whole(sum)) {
		ssize_t n;

		err = add_hole(sum, fd);
		if (err || checksum_is_whole(sum))
			break;
		n = pread(fd, buffer, READ_BYTES, (off_t)sum->at);
		if (n > 0)
			checksum_add(sum, buffer, (uint64_t)n);
		else if (!n || errno != EINTR)
			err = n ? -errno : -ENODATA;
	}
	return err;
}
