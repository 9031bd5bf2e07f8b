// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies by the CPU, for GPUs whose kernel offers no DMA ring.
 *
 * A mapped BO that the kernel cannot make visible raises SIGBUS when touched, which would
 * kill criu in the middle of its work. So the mapping is never touched from here: the
 * kernel reads or writes it as the buffer of a system call on a bounce file, and then
 * reports a bad page as EFAULT.
 */
#define _GNU_SOURCE
#include "content/cpucopy.h"

#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "amdgpu_plugin_util.h"

/* Small enough for the processor's cache, which the second half of a copy then hits. */
#define BOUNCE_BYTES (256u << 10)

static int transfer(int fd, void *mem, size_t len, bool write_it)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write_it ? pwrite(fd, (char *)mem + done, len - done, (off_t)done)
				     : pread(fd, (char *)mem + done, len - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno_or_eio();
		if (!n)
			return -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* Bounces at most BOUNCE_BYTES from one place to another. */
static int bounce(struct copier *copier, void *to, void *from, size_t len)
{
	int err = transfer(copier->bounce_fd, from, len, true);

	return err ? err : transfer(copier->bounce_fd, to, len, false);
}

/* Lets the exporter make caches coherent. Only dma-bufs know it; what else can be mapped needs none. */
static int sync_dmabuf(const struct copier *copier, const struct copier_bo *bo, uint64_t stage)
{
	struct dma_buf_sync sync = {
		.flags = stage | (copier->config.to_staging ? DMA_BUF_SYNC_READ : DMA_BUF_SYNC_WRITE),
	};
	int ret;

	do {
		ret = ioctl(bo->dmabuf_fd, DMA_BUF_IOCTL_SYNC, &sync);
	} while (ret < 0 && (errno == EINTR || errno == EAGAIN));
	if (ret < 0 && errno != ENOTTY)
		return errno_or_eio();
	return 0;
}

int cpucopy_init(struct copier *copier)
{
	copier->doing = "creating a bounce buffer";
	copier->bounce_fd = memfd_create("amdgpu-bounce", MFD_CLOEXEC);
	if (copier->bounce_fd < 0)
		return errno_or_eio();
	if (ftruncate(copier->bounce_fd, BOUNCE_BYTES) < 0)
		return errno_or_eio();
	return 0;
}

void cpucopy_done(struct copier *copier)
{
	cleanup_close(&copier->bounce_fd);
	copier->bounce_fd = -1;
}

int cpucopy_map(struct copier *copier, struct copier_bo *bo, uint64_t size)
{
	int prot = copier->config.to_staging ? PROT_READ : PROT_READ | PROT_WRITE;
	off_t have;
	void *mem;

	copier->doing = "asking for the size of the dma-buf";
	have = lseek(bo->dmabuf_fd, 0, SEEK_END);
	if (have < 0)
		return errno_or_eio();
	copier->doing = "the dma-buf is smaller than the BO";
	if ((uint64_t)have < size)
		return -EINVAL;
	copier->doing = "mapping the BO for the CPU (the GPU has no DMA ring)";
	mem = mmap(NULL, size, prot, MAP_SHARED, bo->dmabuf_fd, 0);
	if (mem == MAP_FAILED)
		return errno_or_eio();
	bo->cpu = mem;
	bo->cpu_bytes = size;
	return sync_dmabuf(copier, bo, DMA_BUF_SYNC_START);
}

int cpucopy_unmap(struct copier *copier, struct copier_bo *bo)
{
	int ret = 0;

	copier->doing = "unmapping the BO from the CPU";
	if (bo->cpu) {
		ret = sync_dmabuf(copier, bo, DMA_BUF_SYNC_END);
		if (munmap(bo->cpu, bo->cpu_bytes) < 0 && !ret)
			ret = errno_or_eio();
	}
	*bo = (struct copier_bo){ 0 };
	return ret;
}

int cpucopy_copy(struct copier *copier, struct copier_bo *bo, uint64_t bo_off, uint64_t staging_off, uint64_t len)
{
	char *in_bo = (char *)bo->cpu + bo_off;
	char *in_staging = (char *)copier->config.staging + staging_off;
	int err = 0;

	copier->doing = "copying by the CPU";
	for (uint64_t done = 0; done < len && !err; done += BOUNCE_BYTES) {
		size_t bytes = len - done < BOUNCE_BYTES ? len - done : BOUNCE_BYTES;

		if (copier->config.to_staging)
			err = bounce(copier, in_staging + done, in_bo + done, bytes);
		else
			err = bounce(copier, in_bo + done, in_staging + done, bytes);
	}
	return err;
}

int cpucopy_zero(struct copier *copier, struct copier_bo *bo, uint64_t bo_off, uint64_t len)
{
	char *in_bo = (char *)bo->cpu + bo_off;
	int err = 0;

	copier->doing = "clearing by the CPU";
	/* A hole in the bounce file reads as zeros. */
	if (ftruncate(copier->bounce_fd, 0) < 0 || ftruncate(copier->bounce_fd, BOUNCE_BYTES) < 0)
		return errno_or_eio();
	for (uint64_t done = 0; done < len && !err; done += BOUNCE_BYTES) {
		size_t bytes = len - done < BOUNCE_BYTES ? len - done : BOUNCE_BYTES;

		err = transfer(copier->bounce_fd, in_bo + done, bytes, false);
	}
	return err;
}
