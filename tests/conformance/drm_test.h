/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Render nodes by their bare ioctl numbers, as the ABI has them, and what the
 * drm_*.c programs do with them: buffers, mappings, SDMA packets, submissions.
 * A step that a check is not about ends the program when it fails.
 */
#ifndef CONFORMANCE_DRM_TEST_H
#define CONFORMANCE_DRM_TEST_H

#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <libdrm/amdgpu_drm.h>

#include "conformance.h"

/* Numbers of Linux 7.2, spelled out: direction, struct size, type and number are all part of the ABI. */
#define NR_GEM_CLOSE	   0x40086409u
#define NR_HANDLE_TO_FD	   0xc00c642du
#define NR_FD_TO_HANDLE	   0xc00c642eu
#define NR_CHANGE_HANDLE   0xc00864d2u
#define NR_GEM_CREATE	   0xc0206440u
#define NR_GEM_MMAP	   0xc0086441u
#define NR_CTX		   0xc0106442u
#define NR_CS		   0xc0186444u
#define NR_METADATA	   0xc1206446u
#define NR_GEM_VA	   0x40406448u
#define NR_WAIT_CS	   0xc0206449u
#define NR_GEM_OP_OLD	   0xc0106450u
#define NR_USERPTR	   0xc0186451u

#define DOMAIN_GTT  2
#define DOMAIN_VRAM 4
#define RWX	    (2 | 4 | 8) /* AMDGPU_VM_PAGE_READABLE and so on */

struct gem_va {
	uint32_t handle, pad, operation, flags;
	uint64_t va, offset, size, point;
	uint32_t syncobj_out, num_syncobjs;
	uint64_t syncobjs;
};

struct gem_op {
	uint32_t handle, op;
	uint64_t value;
	uint32_t num_entries, padding;
};

struct list_entry {
	uint32_t handle, flags;
	uint64_t size, domains, alloc_flags, alignment;
};

struct list_handles {
	uint64_t entries;
	uint32_t num_entries, padding;
};

struct vm_entry {
	uint64_t va, size, offset, flags;
};

/* ---- nodes ---- */

static int render_path(unsigned int index, char *path, size_t len)
{
	unsigned int minor, found = 0;

	for (minor = 128; minor < 256; minor++) {
		snprintf(path, len, "/dev/dri/renderD%u", minor);
		if (!access(path, F_OK) && found++ == index)
			return 0;
	}
	return -1;
}

/* The index-th render node; ends the program when there is none. */
static inline int render_open(unsigned int index)
{
	char path[64];
	int fd;

	if (render_path(index, path, sizeof(path)))
		errx(2, "there is no render node number %u", index);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		err(2, "%s", path);
	return fd;
}

/* ---- buffers ---- */

static inline int try_create(int fd, uint64_t size, uint64_t align, uint64_t domains, uint64_t flags, uint32_t *handle)
{
	union drm_amdgpu_gem_create c = {
		.in = { .bo_size = size, .alignment = align, .domains = domains, .domain_flags = flags }
	};
	int ret = ioctl(fd, NR_GEM_CREATE, &c);

	*handle = ret ? 0 : c.out.handle;
	return ret;
}

static inline uint32_t bo_create(int fd, uint64_t size, uint64_t domains)
{
	uint32_t handle;

	if (try_create(fd, size, 0, domains, 0, &handle))
		err(2, "creating a BO of %#" PRIx64 " bytes", size);
	return handle;
}

static inline int bo_close(int fd, uint32_t handle)
{
	uint32_t args[2] = { handle, 0 };

	return ioctl(fd, NR_GEM_CLOSE, args);
}

static inline int bo_offset(int fd, uint32_t handle, uint64_t *offset)
{
	union drm_amdgpu_gem_mmap m = { .in = { .handle = handle } };
	int ret = ioctl(fd, NR_GEM_MMAP, &m);

	*offset = ret ? 0 : m.out.addr_ptr;
	return ret;
}

static inline void *bo_map(int fd, uint32_t handle, uint64_t size)
{
	uint64_t offset;
	void *p;

	if (bo_offset(fd, handle, &offset))
		err(2, "GEM_MMAP of handle %u", handle);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
	if (p == MAP_FAILED)
		err(2, "mapping handle %u", handle);
	return p;
}

static inline int try_userptr(int fd, void *p, uint64_t size, uint32_t flags, uint32_t *handle)
{
	struct drm_amdgpu_gem_userptr u = { .addr = (uintptr_t)p, .size = size, .flags = flags };
	int ret = ioctl(fd, NR_USERPTR, &u);

	*handle = ret ? 0 : u.handle;
	return ret;
}

static inline int try_export(int fd, uint32_t handle, uint32_t flags, int *dmabuf)
{
	struct drm_prime_handle p = { .handle = handle, .flags = flags };
	int ret = ioctl(fd, NR_HANDLE_TO_FD, &p);

	*dmabuf = ret ? -1 : p.fd;
	return ret;
}

static inline int try_import(int fd, int dmabuf, uint32_t *handle)
{
	struct drm_prime_handle p = { .fd = dmabuf };
	int ret = ioctl(fd, NR_FD_TO_HANDLE, &p);

	*handle = ret ? 0 : p.handle;
	return ret;
}

static inline int va_op(int fd, uint32_t handle, uint32_t operation, uint32_t flags, uint64_t va, uint64_t offset,
			uint64_t size)
{
	struct gem_va args = {
		.handle = handle, .operation = operation, .flags = flags, .va = va, .offset = offset, .size = size
	};

	return ioctl(fd, NR_GEM_VA, &args);
}

static inline void va_map(int fd, uint32_t handle, uint64_t va, uint64_t size)
{
	if (va_op(fd, handle, AMDGPU_VA_OP_MAP, RWX, va, 0, size))
		err(2, "mapping handle %u at GPU address %#" PRIx64, handle, va);
}

/* ---- submissions ---- */

static inline uint32_t ctx_create(int fd)
{
	union drm_amdgpu_ctx c = { .in = { .op = AMDGPU_CTX_OP_ALLOC_CTX } };

	if (ioctl(fd, NR_CTX, &c))
		err(2, "creating a context");
	return c.out.alloc.ctx_id;
}

static inline int ctx_free(int fd, uint32_t ctx)
{
	union drm_amdgpu_ctx c = { .in = { .op = AMDGPU_CTX_OP_FREE_CTX, .ctx_id = ctx } };

	return ioctl(fd, NR_CTX, &c);
}

struct submit {
	uint32_t ctx, ring, ip_type, ip_instance, bo_list;
	uint64_t ib_va;
	uint32_t ib_bytes;
	const struct drm_amdgpu_cs_chunk *more; /* further chunks */
	uint32_t nr_more;
};

static inline int try_submit(int fd, const struct submit *s, uint64_t *sequence)
{
	struct drm_amdgpu_cs_chunk_ib ib = {
		.va_start = s->ib_va, .ib_bytes = s->ib_bytes, .ip_type = s->ip_type,
		.ip_instance = s->ip_instance, .ring = s->ring
	};
	struct drm_amdgpu_cs_chunk chunk = {
		.chunk_id = AMDGPU_CHUNK_ID_IB, .length_dw = sizeof(ib) / 4, .chunk_data = (uintptr_t)&ib
	};
	uint64_t chunks[8] = { (uintptr_t)&chunk };
	union drm_amdgpu_cs cs = {
		.in = { .ctx_id = s->ctx, .bo_list_handle = s->bo_list, .num_chunks = 1 + s->nr_more,
			.chunks = (uintptr_t)chunks }
	};
	uint32_t i;
	int ret;

	for (i = 0; i < s->nr_more && i < 7; i++)
		chunks[1 + i] = (uintptr_t)&s->more[i];
	ret = ioctl(fd, NR_CS, &cs);
	*sequence = ret ? 0 : cs.out.handle;
	return ret;
}

#define FOREVER UINT64_MAX

/* 0 done, 1 busy, -1 with errno. */
static inline int job_wait(int fd, uint32_t ctx, uint32_t ring, uint64_t sequence, uint64_t timeout)
{
	union drm_amdgpu_wait_cs w = {
		.in = { .handle = sequence, .timeout = timeout, .ip_type = AMDGPU_HW_IP_DMA, .ring = ring,
			.ctx_id = ctx }
	};
	int ret = ioctl(fd, NR_WAIT_CS, &w);

	return ret ? ret : (int)w.out.status;
}

/* ---- packets ---- */

/* Commands that are put together in a mapped BO. */
struct commands {
	uint32_t *dw, n;
};

static inline void emit(struct commands *c, uint32_t dw)
{
	c->dw[c->n++] = dw;
}

static inline void emit64(struct commands *c, uint64_t value)
{
	emit(c, value);
	emit(c, value >> 32);
}

static inline void emit_fill(struct commands *c, uint64_t dst, uint32_t value, uint32_t bytes)
{
	emit(c, 11 | 2u << 30);
	emit64(c, dst);
	emit(c, value);
	emit(c, bytes - 1);
}

/* ---- a file with a context and room for commands ---- */

struct engine {
	int fd;
	uint32_t ctx, ib_handle, bo_list;
	uint64_t ib_va, next_va;
	struct commands c;
};

#define IB_BYTES 65536

static inline void engine_open(struct engine *e, unsigned int gpu)
{
	memset(e, 0, sizeof(*e));
	e->fd = render_open(gpu);
	e->ctx = ctx_create(e->fd);
	e->ib_handle = bo_create(e->fd, IB_BYTES, DOMAIN_GTT);
	e->c.dw = bo_map(e->fd, e->ib_handle, IB_BYTES);
	e->ib_va = 0x100000000ull;
	e->next_va = 0x200000000ull;
	va_map(e->fd, e->ib_handle, e->ib_va, IB_BYTES);
}

static inline void engine_close(struct engine *e)
{
	munmap(e->c.dw, IB_BYTES);
	close(e->fd);
}

/* IBs of SDMA are multiples of 8 dwords. */
static inline void emit_padding(struct commands *c)
{
	while (c->n & 7)
		emit(c, 0);
}

static inline int engine_start(struct engine *e, uint32_t ring, uint64_t *sequence)
{
	struct submit s;

	emit_padding(&e->c);
	s = (struct submit){
		.ctx = e->ctx, .ring = ring, .ip_type = AMDGPU_HW_IP_DMA, .bo_list = e->bo_list, .ib_va = e->ib_va,
		.ib_bytes = e->c.n * 4
	};

	e->c.n = 0;
	return try_submit(e->fd, &s, sequence);
}

/* ---- data ---- */

static inline uint8_t pattern_byte(uint64_t seed, uint64_t i)
{
	uint64_t x = (i >> 3) * 0x9e3779b97f4a7c15ull + seed;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ull;
	return x >> (8 * (i & 7));
}

static inline void pattern_fill(uint8_t *p, uint64_t size, uint64_t seed)
{
	uint64_t i;

	for (i = 0; i < size; i++)
		p[i] = pattern_byte(seed, i);
}

/* Where @p stops being the pattern from its byte @from on; @size when nowhere. */
static inline uint64_t pattern_compare(const uint8_t *p, uint64_t from, uint64_t size, uint64_t seed)
{
	uint64_t i;

	for (i = 0; i < size; i++)
		if (p[i] != pattern_byte(seed, from + i))
			return i;
	return size;
}

#endif
