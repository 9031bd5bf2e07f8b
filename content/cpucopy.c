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

/* Small enough for the processor's cache, in which the second half of a copy finds it. */
#define BOUNCE_BYTES (256u << 10)

struct cpucopy {
	int bounce_fd; /* between a BO's mapping and staging memory */
};

static int bounce_fd(const struct copier *copier)
{
	return ((const struct cpucopy *)copier->state)->bounce_fd;
}

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
static int bounce(const struct copier *copier, void *to, void *from, size_t len)
{
	int err = transfer(bounce_fd(copier), from, len, true);

	return err ? err : transfer(bounce_fd(copier), to, len, false);
}

/* Lets the exporter make caches coherent. Only dma-bufs know this call; what else can be mapped does not need it. */
static int sync_dmabuf(const struct copier *copier, const struct content_bo *bo, uint64_t stage)
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

static int cpu_init(struct copier *copier)
{
	struct cpucopy *cpu = calloc(1, sizeof(*cpu));

	copier->doing = "creating a bounce buffer";
	if (!cpu)
		return -ENOMEM;
	copier->state = cpu;
	cpu->bounce_fd = memfd_create("amdgpu-bounce", MFD_CLOEXEC);
	if (cpu->bounce_fd < 0)
		return errno_or_eio();
	if (ftruncate(cpu->bounce_fd, BOUNCE_BYTES) < 0)
		return errno_or_eio();
	return 0;
}

static int cpu_done(struct copier *copier)
{
	struct cpucopy *cpu = copier->state;

	if (cpu)
		cleanup_close(&cpu->bounce_fd);
	free(cpu);
	copier->state = NULL;
	return 0;
}

static int cpu_map_bo(struct copier *copier, struct content_bo *bo)
{
	int prot = copier->config.to_staging ? PROT_READ : PROT_READ | PROT_WRITE;
	off_t have;
	void *mem;

	copier->doing = "asking for the size of the dma-buf";
	have = lseek(bo->dmabuf_fd, 0, SEEK_END);
	if (have < 0)
		return errno_or_eio();
	copier->doing = "the dma-buf is smaller than the BO";
	if ((uint64_t)have < bo->size)
		return -EINVAL;
	copier->doing = "mapping the BO for the CPU (the GPU has no DMA ring)";
	mem = mmap(NULL, bo->size, prot, MAP_SHARED, bo->dmabuf_fd, 0);
	if (mem == MAP_FAILED)
		return errno_or_eio();
	bo->mapping.cpu = mem;
	bo->mapping.cpu_bytes = bo->size;
	return sync_dmabuf(copier, bo, DMA_BUF_SYNC_START);
}

static int cpu_unmap_bo(struct copier *copier, struct content_bo *bo)
{
	int ret = 0;

	copier->doing = "unmapping the BO from the CPU";
	if (bo->mapping.cpu) {
		ret = sync_dmabuf(copier, bo, DMA_BUF_SYNC_END);
		if (munmap(bo->mapping.cpu, bo->mapping.cpu_bytes) < 0 && !ret)
			ret = errno_or_eio();
	}
	bo->mapping = (struct content_mapping){ 0 };
	return ret;
}

static int cpu_copy(struct copier *copier, unsigned int slot, const struct content_bo *bo, uint64_t bo_off,
		    uint64_t slot_off, uint64_t len)
{
	char *in_staging = (char *)copier->config.staging + slot * copier->config.slot_bytes + slot_off;
	char *in_bo = (char *)bo->mapping.cpu + bo_off;

	copier->doing = "copying by the CPU";
	for (uint64_t done = 0; done < len; done += BOUNCE_BYTES) {
		size_t bytes = len - done < BOUNCE_BYTES ? len - done : BOUNCE_BYTES;
		int err = copier->config.to_staging ? bounce(copier, in_staging + done, in_bo + done, bytes)
						    : bounce(copier, in_bo + done, in_staging + done, bytes);

		if (err)
			return err;
	}
	return 0;
}

static int cpu_zero(struct copier *copier, unsigned int slot, const struct content_bo *bo, uint64_t bo_off,
		    uint64_t slot_off, uint64_t len)
{
	char *in_bo = (char *)bo->mapping.cpu + bo_off;

	(void)slot;
	(void)slot_off;
	copier->doing = "clearing by the CPU";
	/* A hole in the bounce file reads as zeros. */
	if (ftruncate(bounce_fd(copier), 0) < 0 || ftruncate(bounce_fd(copier), BOUNCE_BYTES) < 0)
		return errno_or_eio();
	for (uint64_t done = 0; done < len; done += BOUNCE_BYTES) {
		size_t bytes = len - done < BOUNCE_BYTES ? len - done : BOUNCE_BYTES;
		int err = transfer(bounce_fd(copier), in_bo + done, bytes, false);

		if (err)
			return err;
	}
	return 0;
}

const struct copier_ops cpucopy_ops = {
	.init = cpu_init,
	.done = cpu_done,
	.map_bo = cpu_map_bo,
	.unmap_bo = cpu_unmap_bo,
	.copy = cpu_copy,
	.zero = cpu_zero,
};
