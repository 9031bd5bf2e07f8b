// SPDX-License-Identifier: GPL-2.0-only
/*
 * Command submission and SDMA: the errors of CS, contexts, BO lists and waiting,
 * one by one, and what the packets do to memory, byte for byte.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include <amdgpu.h>

#include "drm_test.h"

#define MiB (1ull << 20)

/* ---- contexts and BO lists ---- */

static void test_ctx(void)
{
	union drm_amdgpu_ctx c = { .in = { .op = AMDGPU_CTX_OP_ALLOC_CTX } };
	int fd = render_open(0);
	uint32_t first, second;

	first = ctx_create(fd);
	second = ctx_create(fd);
	check_u64(first, 1, "the first context of a file is number 1");
	check_u64(second, 2, "the second is number 2");
	check_errno(ctx_free(fd, first), 0, "a context can be freed");
	check_errno(ctx_free(fd, first), EINVAL, "but only once");
	check_u64(ctx_create(fd), first, "a freed number is used again");
	c.in.flags = 1;
	check_errno(ioctl(fd, NR_CTX, &c), EINVAL, "CTX with flags");
	c = (union drm_amdgpu_ctx){ .in = { .op = 77 } };
	check_errno(ioctl(fd, NR_CTX, &c), EINVAL, "CTX with an unknown operation");
	c = (union drm_amdgpu_ctx){ .in = { .op = AMDGPU_CTX_OP_ALLOC_CTX, .priority = 12345 } };
	check_errno(ioctl(fd, NR_CTX, &c), 0, "a meaningless priority counts as normal");
	c = (union drm_amdgpu_ctx){ .in = { .op = AMDGPU_CTX_OP_QUERY_STATE, .ctx_id = second } };
	check_errno(ioctl(fd, NR_CTX, &c), 0, "the state of a context can be asked for");
	check_u64(c.out.state.reset_status, AMDGPU_CTX_NO_RESET, "a fresh context saw no reset");
	c = (union drm_amdgpu_ctx){ .in = { .op = AMDGPU_CTX_OP_QUERY_STATE2, .ctx_id = 999 } };
	check_errno(ioctl(fd, NR_CTX, &c), EINVAL, "the state of an unknown context");
	c = (union drm_amdgpu_ctx){ .in = { .op = AMDGPU_CTX_OP_GET_STABLE_PSTATE, .ctx_id = second } };
	check_errno(ioctl(fd, NR_CTX, &c), 0, "the power state can be asked for");
	close(fd);
}

static int bo_list(int fd, uint32_t op, uint32_t list, const void *entries, uint32_t n, uint32_t size, uint32_t *ret)
{
	union drm_amdgpu_bo_list b = {
		.in = { .operation = op, .list_handle = list, .bo_number = n, .bo_info_size = size,
			.bo_info_ptr = (uintptr_t)entries }
	};
	int err = ioctl(fd, NR_BO_LIST, &b);

	*ret = err ? 0 : b.out.list_handle;
	return err;
}

static void must_list(int fd, const struct drm_amdgpu_bo_list_entry *entries, uint32_t n, uint32_t *ret)
{
	if (bo_list(fd, AMDGPU_BO_LIST_OP_CREATE, 0, entries, n, sizeof(*entries), ret))
		err(2, "BO_LIST");
}

static void test_bo_list(void)
{
	int fd = render_open(0);
	struct drm_amdgpu_bo_list_entry e[2] = { { .bo_handle = bo_create(fd, 4096, DOMAIN_GTT) },
						 { .bo_handle = bo_create(fd, 4096, DOMAIN_VRAM) } };
	struct drm_amdgpu_bo_list_entry bad = { .bo_handle = 4711 };
	uint32_t handles[2] = { e[1].bo_handle, e[0].bo_handle };
	uint32_t list, other;

	check_errno(bo_list(fd, AMDGPU_BO_LIST_OP_CREATE, 0, e, 2, sizeof(e[0]), &list), 0, "a BO list of two");
	check_u64(list, 1, "the first BO list is number 1");
	check_errno(bo_list(fd, AMDGPU_BO_LIST_OP_CREATE, 0, &bad, 1, sizeof(bad), &other), ENOENT,
		    "a BO list with an unknown handle");
	check_errno(bo_list(fd, AMDGPU_BO_LIST_OP_CREATE, 0, handles, 2, 4, &other), 0,
		    "a BO list with entries of another size, the handle in front");
	check_errno(bo_list(fd, AMDGPU_BO_LIST_OP_CREATE, 0, e, 1 << 20, sizeof(e[0]), &other), EINVAL,
		    "a BO list that is far too long");
	check_errno(bo_list(fd, AMDGPU_BO_LIST_OP_CREATE, 0, (void *)8, 1, sizeof(e[0]), &other), EFAULT,
		    "a BO list from a bad address");
	check_errno(bo_list(fd, AMDGPU_BO_LIST_OP_UPDATE, list, e, 1, sizeof(e[0]), &other), 0, "changing a BO list");
	check_errno(bo_list(fd, AMDGPU_BO_LIST_OP_UPDATE, 99, e, 1, sizeof(e[0]), &other), ENOENT,
		    "changing an unknown BO list");
	check_errno(bo_list(fd, AMDGPU_BO_LIST_OP_DESTROY, list, NULL, 0, sizeof(e[0]), &other), 0,
		    "destroying a BO list");
	check_errno(bo_list(fd, AMDGPU_BO_LIST_OP_DESTROY, list, NULL, 0, sizeof(e[0]), &other), 0,
		    "destroying it again does nothing");
	check_errno(bo_list(fd, 9, 0, e, 1, sizeof(e[0]), &other), EINVAL, "an unknown BO_LIST operation");
	close(fd);
}

/* ---- what CS refuses ---- */

static void test_cs_arguments(struct engine *e)
{
	struct submit good = { .ctx = e->ctx, .ip_type = AMDGPU_HW_IP_DMA, .ib_va = e->ib_va, .ib_bytes = 32 }, s;
	union drm_amdgpu_cs cs = { .in = { .ctx_id = e->ctx } };
	uint64_t seq;

	memset(e->c.dw, 0, 32); /* NOPs */
	check_errno(ioctl(e->fd, NR_CS, &cs), EINVAL, "CS without chunks");
	s = good, s.ctx = 99;
	check_errno(try_submit(e->fd, &s, &seq), EINVAL, "CS in an unknown context");
	s = good, s.ip_type = 10;
	check_errno(try_submit(e->fd, &s, &seq), EINVAL, "CS for an IP type out of range");
	s = good, s.ip_instance = 1;
	check_errno(try_submit(e->fd, &s, &seq), EINVAL, "CS for an IP instance other than 0");
	s = good, s.ring = 2;
	check_errno(try_submit(e->fd, &s, &seq), EINVAL, "CS for a ring out of range");
	s = good, s.ib_bytes = 4u << 20;
	check_errno(try_submit(e->fd, &s, &seq), EINVAL, "an indirect buffer of 0x100000 dwords");
	s = good, s.bo_list = 99;
	check_errno(try_submit(e->fd, &s, &seq), ENOENT, "CS with an unknown BO list");
	check_errno(try_submit(e->fd, &good, &seq), 0, "CS of NOPs");
	check_u64(seq, 1, "the first job of a ring is number 1");
	check_u64(job_wait(e->fd, e->ctx, 0, seq, FOREVER), 0, "it ends");
	s = good, s.ring = 1;
	check_errno(try_submit(e->fd, &s, &seq), 0, "CS on the other ring");
	check_u64(seq, 1, "rings count for themselves");
	check_errno(try_submit(e->fd, &good, &seq), 0, "a second job on the first ring");
	check_u64(seq, 2, "it is number 2");
}

static void test_cs_chunks(struct engine *e)
{
	struct submit good = { .ctx = e->ctx, .ip_type = AMDGPU_HW_IP_DMA, .ib_va = e->ib_va, .ib_bytes = 32 }, s;
	struct drm_amdgpu_cs_chunk chunk = { .chunk_id = 0x77 };
	struct drm_amdgpu_cs_chunk_fence fence = { .handle = bo_create(e->fd, 4096, DOMAIN_GTT), .offset = 16 };
	struct drm_amdgpu_bo_list_in handles = { .bo_number = 1, .bo_info_size = 8 };
	struct drm_amdgpu_bo_list_entry entry = { .bo_handle = e->ib_handle };
	struct drm_amdgpu_cs_chunk_dep dep = { .ip_type = AMDGPU_HW_IP_DMA, .ctx_id = e->ctx, .handle = 1000 };
	volatile uint64_t *fence_map = bo_map(e->fd, fence.handle, 4096);
	uint64_t seq, chunks[1] = { 8 };
	union drm_amdgpu_cs cs = { .in = { .ctx_id = e->ctx, .num_chunks = 1, .chunks = (uintptr_t)chunks } };

	s = good, s.more = &chunk, s.nr_more = 1;
	check_errno(try_submit(e->fd, &s, &seq), EINVAL, "CS with an unknown chunk");
	check_errno(ioctl(e->fd, NR_CS, &cs), EFAULT, "CS with a chunk at a bad address");
	chunk = (struct drm_amdgpu_cs_chunk){ AMDGPU_CHUNK_ID_IB, 4, (uintptr_t)&good };
	check_errno(try_submit(e->fd, &s, &seq), EINVAL, "CS with an IB chunk that is too short");
	chunk = (struct drm_amdgpu_cs_chunk){ AMDGPU_CHUNK_ID_FENCE, 2, (uintptr_t)&fence };
	check_errno(try_submit(e->fd, &s, &seq), 0, "CS with a user fence");
	check_u64(job_wait(e->fd, e->ctx, 0, seq, FOREVER), 0, "it ends");
	check_u64(fence_map[2], seq, "the user fence holds the job's number");
	fence.offset = 4090;
	check_errno(try_submit(e->fd, &s, &seq), EINVAL, "a user fence across the end of its page");
	fence = (struct drm_amdgpu_cs_chunk_fence){ .handle = e->ib_handle };
	check_errno(try_submit(e->fd, &s, &seq), EINVAL, "a user fence in a BO of more than a page");
	handles.bo_info_ptr = (uintptr_t)&entry;
	chunk = (struct drm_amdgpu_cs_chunk){ AMDGPU_CHUNK_ID_BO_HANDLES, sizeof(handles) / 4, (uintptr_t)&handles };
	check_errno(try_submit(e->fd, &s, &seq), 0, "CS with the BO list as a chunk");
	entry.bo_handle = 4711;
	check_errno(try_submit(e->fd, &s, &seq), ENOENT, "CS with an unknown BO in that chunk");
	chunk = (struct drm_amdgpu_cs_chunk){ AMDGPU_CHUNK_ID_DEPENDENCIES, sizeof(dep) / 4, (uintptr_t)&dep };
	check_errno(try_submit(e->fd, &s, &seq), EINVAL, "CS that depends on a job that there is not yet");
	dep.handle = 1;
	check_errno(try_submit(e->fd, &s, &seq), 0, "CS that depends on an old job");
	check_u64(job_wait(e->fd, e->ctx, 0, seq, FOREVER), 0, "it ends");
	munmap((void *)fence_map, 4096);
}

static void test_wait(struct engine *e)
{
	union drm_amdgpu_wait_cs w = { .in = { .handle = 1, .ip_type = AMDGPU_HW_IP_DMA, .ctx_id = 99 } };

	check_errno(ioctl(e->fd, NR_WAIT_CS, &w), EINVAL, "WAIT_CS in an unknown context");
	check_errno(job_wait(e->fd, e->ctx, 0, 100000, 0), EINVAL, "WAIT_CS for a job that there is not yet");
	check_errno(job_wait(e->fd, e->ctx, 5, 1, 0), EINVAL, "WAIT_CS on a ring out of range");
	check_u64(job_wait(e->fd, e->ctx, 0, 1, 0), 0, "WAIT_CS for an old job does not wait");
	check_u64(job_wait(e->fd, e->ctx, 0, 0, 0), 0, "WAIT_CS for job 0 (nothing submitted) does not wait");
}

/* ---- copies ---- */

/* Odd sizes and offsets; what lies around the copied bytes must not change. */
static void test_copy_sizes(struct engine *e)
{
	static const uint64_t sizes[] = { 1,	2,    3,    4,	   7,	  8,	   63,	   64,
					  65, 4095, 4096, 4097, 65535, 65537, 1 << 20, 3000001 };
	static const unsigned int offsets[] = { 0, 1, 3, 8, 4095, 4097 };
	uint64_t room = 4 * MiB, src_va, dst_va, bad;
	uint32_t src = bo_create(e->fd, room, DOMAIN_VRAM), dst = bo_create(e->fd, room, DOMAIN_GTT);
	uint8_t *s = bo_map(e->fd, src, room), *d = bo_map(e->fd, dst, room);
	unsigned int i, j, wrong = 0, n = 0;

	src_va = engine_map(e, src, room);
	dst_va = engine_map(e, dst, room);
	pattern_fill(s, room, 42);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (j = 0; j < 6; j++) {
			uint64_t from = offsets[j], to = offsets[5 - j], len = sizes[i];

			memset(d, 0, to + len + 4096);
			emit_copy(&e->c, dst_va + to, src_va + from, len);
			if (engine_run(e))
				err(2, "copying %" PRIu64 " bytes", len);
			bad = pattern_compare(d + to, from, len, 42);
			if (bad != len || zero_compare(d, to) != to || zero_compare(d + to + len, 4096) != 4096) {
				printf("# %" PRIu64 " bytes from %" PRIu64 " to %" PRIu64 ": byte %" PRIu64 "\n", len,
				       from, to, bad);
				wrong++;
			}
			n++;
		}
	}
	check_u64(wrong, 0, "%u copies VRAM to GTT of odd sizes at odd offsets, all bytes right", n);
	munmap(s, room);
	munmap(d, room);
}

static void test_copy_long(struct engine *e)
{
	uint64_t size = 16 * MiB, gtt_va, va, i;
	uint32_t vram = bo_create(e->fd, size, DOMAIN_VRAM), gtt = bo_create(e->fd, size, DOMAIN_GTT);
	uint8_t *g = bo_map(e->fd, gtt, size), *v = bo_map(e->fd, vram, size);
	uint32_t parts[4];

	pattern_fill(g, size, 7);
	/* The destination is four BOs side by side: one copy runs across all of them. */
	va = e->next_va;
	e->next_va += size + MiB;
	for (i = 0; i < 4; i++) {
		parts[i] = bo_create(e->fd, size / 4, DOMAIN_VRAM);
		va_map(e->fd, parts[i], va + i * (size / 4), size / 4);
	}
	gtt_va = engine_map(e, gtt, size);
	emit_copy(&e->c, va, gtt_va, size);
	check_errno(engine_run(e), 0, "a copy of 16 MiB across four mappings");
	emit_copy(&e->c, engine_map(e, vram, size), va, size);
	check_errno(engine_run(e), 0, "and back into one BO");
	check_u64(pattern_compare(v, 0, size, 7), size, "all bytes are right");
	munmap(g, size);
	munmap(v, size);
}

static void test_userptr(struct engine *e)
{
	uint64_t size = 5 * MiB + 4096, user_va, bo_va;
	uint8_t *user = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *b;
	uint32_t handle, bo = bo_create(e->fd, size, DOMAIN_VRAM);
	const uint32_t flags = AMDGPU_GEM_USERPTR_ANONONLY | AMDGPU_GEM_USERPTR_REGISTER | AMDGPU_GEM_USERPTR_VALIDATE;

	if (user == MAP_FAILED)
		err(2, "mmap");
	b = bo_map(e->fd, bo, size);
	pattern_fill(user, size, 3);
	check_errno(try_userptr(e->fd, user, size, flags, &handle), 0, "a userptr BO");
	user_va = engine_map(e, handle, size);
	bo_va = engine_map(e, bo, size);
	emit_copy(&e->c, bo_va + 5, user_va + 3, size - 11);
	check_errno(engine_run(e), 0, "a copy from user memory into VRAM");
	check_u64(pattern_compare(b + 5, 3, size - 11, 3), size - 11, "all bytes are right");
	pattern_fill(b, size, 4);
	memset(user, 0xee, size);
	emit_copy(&e->c, user_va + 1, bo_va, size - 2);
	check_errno(engine_run(e), 0, "a copy from VRAM into user memory");
	check_u64(pattern_compare(user + 1, 0, size - 2, 4), size - 2, "all bytes are right");
	check_true(user[0] == 0xee && user[size - 1] == 0xee, "the bytes around it are untouched");
	munmap(user, size);
	emit_copy(&e->c, bo_va, user_va, 4096);
	check_errno(engine_run(e), ETIME, "a copy from user memory that was unmapped faults");
	engine_new_ctx(e);
	check_errno(bo_close(e->fd, handle), 0, "the userptr BO can be closed all the same");
	munmap(b, size);
}

static void test_userptr_readonly(struct engine *e)
{
	const uint32_t flags = AMDGPU_GEM_USERPTR_READONLY | AMDGPU_GEM_USERPTR_VALIDATE;
	uint8_t *user = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t handle;
	uint64_t va;

	check_errno(try_userptr(e->fd, user, 4096, flags, &handle), 0, "a read-only userptr BO needs no REGISTER");
	va = engine_map(e, handle, 4096);
	emit_copy(&e->c, va, e->ib_va, 64);
	check_errno(engine_run(e), ETIME, "writing to it faults");
	engine_new_ctx(e);
	munmap(user, 4096);
}

/* ---- other packets ---- */

static void test_packets(struct engine *e)
{
	uint32_t bo = bo_create(e->fd, 65536, DOMAIN_GTT);
	volatile uint32_t *p = bo_map(e->fd, bo, 65536);
	uint64_t va = engine_map(e, bo, 65536), stamp;
	struct commands *c = &e->c;
	unsigned int i, wrong = 0;

	emit_fill(c, va + 4096, 0x12345678, 8192);
	emit(c, 2); /* write linear: three dwords */
	emit64(c, va + 16);
	emit(c, 2);
	emit(c, 0xa), emit(c, 0xb), emit(c, 0xc);
	emit(c, 0 | 3 << 16); /* a NOP that skips three more dwords */
	emit(c, 0xffffffff), emit(c, 0xffffffff), emit(c, 0xffffffff);
	emit(c, 5); /* fence */
	emit64(c, va + 64);
	emit(c, 0xfe2ce);
	emit(c, 10 | 0x2fu << 25); /* atomic add, 64 bits */
	emit64(c, va + 128);
	emit64(c, 0xffffffffull);
	emit64(c, 0);
	emit(c, 0);
	emit(c, 13 | 2 << 8); /* global timestamp */
	emit64(c, va + 256);
	emit(c, 6); /* trap */
	emit(c, 1);
	*(volatile uint64_t *)(p + 32) = 5;
	check_errno(engine_run(e), 0, "fill, write, NOP, fence, atomic, timestamp and trap packets");
	for (i = 1024; i < 3072; i++)
		wrong += p[i] != 0x12345678;
	check_u64(wrong, 0, "the fill is right");
	check_true(!p[1023] && !p[3072], "and ends where it should");
	check_true(p[4] == 0xa && p[5] == 0xb && p[6] == 0xc && !p[7] && !p[3], "the three dwords are right");
	check_u64(p[16], 0xfe2ce, "the fence value is right");
	check_u64(*(volatile uint64_t *)(p + 32), 0x100000004ull, "the sum is right, with a carry");
	stamp = *(volatile uint64_t *)(p + 64);
	check_true(stamp, "the timestamp is not zero");
	munmap((void *)p, 65536);
}

static void test_fill_bytes(struct engine *e)
{
	uint32_t bo = bo_create(e->fd, 4096, DOMAIN_GTT);
	uint8_t *p = bo_map(e->fd, bo, 4096);
	uint64_t va = engine_map(e, bo, 4096);

	emit(&e->c, 11); /* constant fill by bytes */
	emit64(&e->c, va + 3);
	emit(&e->c, 0x5a);
	emit(&e->c, 10 - 1);
	check_errno(engine_run(e), 0, "a fill by bytes");
	check_true(!p[2] && p[3] == 0x5a && p[12] == 0x5a && !p[13], "fills just these bytes");
	munmap(p, 4096);
}

static void test_window_copy(struct engine *e)
{
	uint32_t bo = bo_create(e->fd, 65536, DOMAIN_GTT);
	uint8_t *p = bo_map(e->fd, bo, 65536);
	uint64_t va = engine_map(e, bo, 65536);
	unsigned int x, y, wrong = 0;
	struct commands *c = &e->c;

	/* 5 by 3 elements of 4 bytes from (2, 1) in rows of 16 to (1, 4) in rows of 32. */
	pattern_fill(p, 4096, 9);
	emit(c, 1 | 4 << 8 | 2u << 29);
	emit64(c, va);
	emit(c, 2 | 1 << 16);
	emit(c, (16 - 1) << 13);
	emit(c, 16 * 16 - 1);
	emit64(c, va + 32768);
	emit(c, 1 | 4 << 16);
	emit(c, (32 - 1) << 13);
	emit(c, 32 * 32 - 1);
	emit(c, (5 - 1) | (3 - 1) << 16);
	emit(c, 0);
	check_errno(engine_run(e), 0, "a sub-window copy");
	for (y = 0; y < 3; y++)
		for (x = 0; x < 20; x++)
			wrong += p[32768 + (4 + y) * 128 + 4 + x] != p[(1 + y) * 64 + 8 + x];
	check_u64(wrong, 0, "moves the right bytes");
	check_true(!p[32768 + 4 * 128 + 3] && !p[32768 + 4 * 128 + 24], "and no others");
	munmap(p, 65536);
}

/* A job waits in the middle of its commands until the processor writes what it polls for. */
static void test_poll(struct engine *e)
{
	uint32_t bo = bo_create(e->fd, 4096, DOMAIN_GTT);
	volatile uint32_t *p = bo_map(e->fd, bo, 4096);
	uint64_t va = engine_map(e, bo, 4096), seq;

	emit_poll_equal(&e->c, va, 77);
	emit_fill(&e->c, va + 64, 0x1111, 4);
	check_errno(engine_start(e, 0, &seq), 0, "a job that polls memory");
	check_u64(job_wait(e->fd, e->ctx, 0, seq, in_ms(50)), 1, "does not end while the value is not there");
	check_u64(p[16], 0, "and executes nothing behind the poll");
	p[0] = 77;
	check_u64(job_wait(e->fd, e->ctx, 0, seq, in_ms(5000)), 0, "it ends once the value is there");
	check_u64(p[16], 0x1111, "and has executed the rest");
	munmap((void *)p, 4096);
}

/* ---- faults ---- */

static void check_guilty(struct engine *e, const char *what)
{
	union drm_amdgpu_ctx c = { .in = { .op = AMDGPU_CTX_OP_QUERY_STATE2, .ctx_id = e->ctx } };
	uint64_t seq;

	e->c.n = 8;
	memset(e->c.dw, 0, 32);
	check_errno(engine_start(e, 0, &seq), ECANCELED, "%s: later CS in the context", what);
	if (ioctl(e->fd, NR_CTX, &c))
		err(2, "asking for the context's state");
	check_u64(c.out.state.flags, AMDGPU_CTX_QUERY2_FLAGS_RESET | AMDGPU_CTX_QUERY2_FLAGS_GUILTY,
		  "%s: the context is guilty of a reset", what);
	engine_new_ctx(e);
	e->c.n = 8;
	check_errno(engine_run(e), 0, "%s: another context is not affected", what);
}

/* What a job's list does not have need not be in place when it runs. */
static void test_listed(struct engine *e)
{
	uint32_t bo[2] = { bo_create(e->fd, 4096, DOMAIN_VRAM), bo_create(e->fd, 4096, DOMAIN_GTT) };
	struct drm_amdgpu_bo_list_entry entries[3] = { { .bo_handle = e->ib_handle },
						       { .bo_handle = bo[0] },
						       { .bo_handle = bo[1] } };
	uint64_t src = engine_map(e, bo[0], 4096), dst = engine_map(e, bo[1], 4096), seq;
	struct submit s = { .ctx = e->ctx, .ip_type = AMDGPU_HW_IP_DMA, .ib_va = e->ib_va };

	emit_copy(&e->c, dst, src, 4096);
	s.ib_bytes = e->c.n * 4;
	e->c.n = 0;
	must_list(e->fd, entries, 3, &s.bo_list);
	check_errno(try_submit(e->fd, &s, &seq), 0, "CS with a list of all that it needs");
	check_u64(job_wait(e->fd, e->ctx, 0, seq, FOREVER), 0, "... ends well");
	must_list(e->fd, entries, 2, &s.bo_list);
	check_errno(try_submit(e->fd, &s, &seq), 0, "CS with a list that lacks a BO");
	check_errno(job_wait(e->fd, e->ctx, 0, seq, FOREVER), ETIME, "... faults there");
	engine_new_ctx(e);
}

static void test_faults(struct engine *e)
{
	uint32_t bo = bo_create(e->fd, 8192, DOMAIN_VRAM);
	uint64_t va = engine_map(e, bo, 8192);
	struct drm_amdgpu_info info = { .query = 0x23 };
	struct {
		uint64_t addr;
		uint32_t status, vmhub;
	} fault = { 0 };

	emit_copy_count(&e->c, va + 4096, va, 4095);
	check_errno(engine_run(e), 0, "a copy up to the last byte of a mapping");
	emit_copy_count(&e->c, va + 4096, va, 4096);
	check_errno(engine_run(e), ETIME, "a copy of one byte more faults");
	info.return_pointer = (uintptr_t)&fault;
	info.return_size = sizeof(fault);
	check_errno(ioctl(e->fd, NR_INFO, &info), 0, "INFO about the last fault");
	check_u64(fault.addr, va + 8192, "it was at the first byte behind the mapping");
	check_guilty(e, "fault");
	emit_copy_count(&e->c, va, va + 8190, 2);
	check_errno(engine_run(e), ETIME, "a copy whose source ends one byte too late faults");
	engine_new_ctx(e);
	emit(&e->c, 0x3f);
	check_errno(engine_run(e), ETIME, "an unknown packet");
	check_guilty(e, "unknown packet");
	emit(&e->c, 1);
	emit(&e->c, 3);
	check_errno(engine_run(e), ETIME, "a packet that is cut off by the end of the commands");
	engine_new_ctx(e);
	emit_copy_count(&e->c, va, va + 4096, 1 << 22);
	check_errno(engine_run(e), ETIME, "a count beyond the packet's field");
	engine_new_ctx(e);
	e->c.n = 8;
	e->ib_va += 1ull << 40;
	check_errno(engine_run(e), ETIME, "commands at an address that is not mapped");
	e->ib_va -= 1ull << 40;
	engine_new_ctx(e);
}

static void test_permissions(struct engine *e)
{
	uint32_t bo = bo_create(e->fd, 4096, DOMAIN_VRAM);
	uint64_t va = e->next_va;

	e->next_va += MiB;
	if (va_op(e->fd, bo, AMDGPU_VA_OP_MAP, 2, va, 0, 4096))
		err(2, "mapping read-only");
	emit_copy(&e->c, e->ib_va + 4096, va, 64);
	check_errno(engine_run(e), 0, "reading a read-only mapping");
	emit_copy(&e->c, va, e->ib_va + 4096, 64);
	check_errno(engine_run(e), ETIME, "writing a read-only mapping faults");
	engine_new_ctx(e);
}

/* ---- several rings, contexts, fences ---- */

/* Each of the two rings waits for what the other one writes: this ends only when both run at once. */
static void test_parallel(struct engine *e)
{
	uint32_t bo = bo_create(e->fd, 2 * IB_BYTES, DOMAIN_GTT);
	uint8_t *p = bo_map(e->fd, bo, 2 * IB_BYTES);
	uint64_t va = engine_map(e, bo, 2 * IB_BYTES), flag = va + IB_BYTES, seq[2];
	struct commands second = { .dw = (uint32_t *)p };
	struct submit s = { .ctx = e->ctx, .ring = 1, .ip_type = AMDGPU_HW_IP_DMA, .ib_va = va };

	emit_poll_equal(&e->c, flag, 1);
	emit_fill(&e->c, flag + 4, 1, 4);
	emit_fill(&second, flag, 1, 4);
	emit_poll_equal(&second, flag + 4, 1);
	s.ib_bytes = second.n * 4;
	check_errno(engine_start(e, 0, &seq[0]), 0, "a job on ring 0 that waits for ring 1");
	check_errno(try_submit(e->fd, &s, &seq[1]), 0, "a job on ring 1 that waits for ring 0");
	check_u64(job_wait(e->fd, e->ctx, 0, seq[0], in_ms(5000)), 0, "ring 0 gets on: both run at the same time");
	check_u64(job_wait(e->fd, e->ctx, 1, seq[1], in_ms(5000)), 0, "ring 1, too");
	munmap(p, 2 * IB_BYTES);
}

static void test_dependency(struct engine *e)
{
	uint32_t bo = bo_create(e->fd, 4096, DOMAIN_GTT), ctx = ctx_create(e->fd);
	volatile uint32_t *p = bo_map(e->fd, bo, 4096);
	uint64_t va = engine_map(e, bo, 4096), first, second;
	struct drm_amdgpu_cs_chunk_dep dep = { .ip_type = AMDGPU_HW_IP_DMA, .ctx_id = e->ctx };
	struct drm_amdgpu_cs_chunk chunk = { AMDGPU_CHUNK_ID_DEPENDENCIES, sizeof(dep) / 4, (uintptr_t)&dep };
	struct submit s = { .ctx = ctx, .ip_type = AMDGPU_HW_IP_DMA, .ib_va = e->ib_va + 4096, .more = &chunk,
			    .nr_more = 1 };
	struct commands later = { .dw = e->c.dw + 1024 };
	struct drm_amdgpu_fence fences[2];
	union drm_amdgpu_wait_fences w = { .in = { .fences = (uintptr_t)fences, .fence_count = 2 } };

	emit_poll_equal(&e->c, va, 1);
	emit_fill(&e->c, va + 4, 10, 4);
	if (engine_start(e, 0, &first))
		err(2, "submitting");
	dep.handle = first;
	emit_fill(&later, va + 4, 20, 4);
	s.ib_bytes = later.n * 4;
	check_errno(try_submit(e->fd, &s, &second), 0, "a job in another context that depends on a job that waits");
	check_u64(job_wait(e->fd, ctx, 0, second, in_ms(50)), 1, "does not start");
	fences[0] = (struct drm_amdgpu_fence){ .ctx_id = e->ctx, .ip_type = AMDGPU_HW_IP_DMA, .seq_no = first };
	fences[1] = (struct drm_amdgpu_fence){ .ctx_id = ctx, .ip_type = AMDGPU_HW_IP_DMA, .seq_no = second };
	w.in.timeout_ns = in_ms(20);
	check_errno(ioctl(e->fd, NR_WAIT_FENCES, &w), 0, "WAIT_FENCES for any of the two");
	check_u64(w.out.status, 0, "tells that time was up");
	p[0] = 1;
	w.in = (struct drm_amdgpu_wait_fences_in){ (uintptr_t)fences, 2, 1, FOREVER };
	check_errno(ioctl(e->fd, NR_WAIT_FENCES, &w), 0, "WAIT_FENCES for both");
	check_u64(w.out.status, 1, "ends when both are done");
	check_u64(p[1], 20, "the dependent job was the later one");
	fences[1].seq_no = 1000;
	w.in = (struct drm_amdgpu_wait_fences_in){ (uintptr_t)fences, 2, 1, FOREVER };
	check_errno(ioctl(e->fd, NR_WAIT_FENCES, &w), EINVAL, "WAIT_FENCES for a job that there is not yet");
	w.in = (struct drm_amdgpu_wait_fences_in){ (uintptr_t)fences, 0, 0, FOREVER };
	check_errno(ioctl(e->fd, NR_WAIT_FENCES, &w), EINVAL, "WAIT_FENCES for any of no job");
	munmap((void *)p, 4096);
}

/* A job of one file waits for the job of another on the same buffer when both list it. */
static void test_implicit_sync(void)
{
	struct engine a, b;
	uint32_t bo, imported, list_a, list_b;
	uint64_t va_a, va_b, seq_a, seq_b;
	volatile uint32_t *p;
	struct drm_amdgpu_bo_list_entry entries[2] = { 0 };
	union drm_amdgpu_gem_wait_idle idle;
	int dmabuf;

	engine_open(&a, 0);
	engine_open(&b, 0);
	bo = bo_create(a.fd, 4096, DOMAIN_GTT);
	p = bo_map(a.fd, bo, 4096);
	if (try_export(a.fd, bo, DRM_CLOEXEC, &dmabuf) || try_import(b.fd, dmabuf, &imported))
		err(2, "sharing a BO");
	va_a = engine_map(&a, bo, 4096);
	va_b = engine_map(&b, imported, 4096);
	entries[0].bo_handle = bo;
	entries[1].bo_handle = a.ib_handle;
	must_list(a.fd, entries, 2, &list_a);
	entries[0].bo_handle = imported;
	entries[1].bo_handle = b.ib_handle;
	must_list(b.fd, entries, 2, &list_b);
	emit_poll_equal(&a.c, va_a, 1);
	emit_fill(&a.c, va_a + 4, 10, 4);
	emit_fill(&b.c, va_b + 4, 20, 4);
	struct submit sa = { a.ctx, 0, AMDGPU_HW_IP_DMA, 0, list_a, a.ib_va, a.c.n * 4, NULL, 0 };
	struct submit sb = { b.ctx, 0, AMDGPU_HW_IP_DMA, 0, list_b, b.ib_va, b.c.n * 4, NULL, 0 };

	check_errno(try_submit(a.fd, &sa, &seq_a), 0, "a job of one file on a shared buffer");
	check_errno(try_submit(b.fd, &sb, &seq_b), 0, "a job of another file on the same buffer");
	check_u64(job_wait(b.fd, b.ctx, 0, seq_b, in_ms(50)), 1, "waits for the first");
	idle = (union drm_amdgpu_gem_wait_idle){ .in = { .handle = imported, .timeout = in_ms(20) } };
	check_errno(ioctl(b.fd, NR_WAIT_IDLE, &idle), 0, "WAIT_IDLE on the buffer");
	check_u64(idle.out.status, 1, "says busy when time is up");
	p[0] = 1;
	check_u64(job_wait(b.fd, b.ctx, 0, seq_b, in_ms(5000)), 0, "and goes on after it");
	check_u64(p[1], 20, "in that order");
	idle = (union drm_amdgpu_gem_wait_idle){ .in = { .handle = imported, .timeout = FOREVER } };
	check_errno(ioctl(b.fd, NR_WAIT_IDLE, &idle), 0, "WAIT_IDLE again");
	check_u64(idle.out.status, 0, "says idle");
	close(dmabuf);
	munmap((void *)p, 4096);
	engine_close(&a);
	engine_close(&b);
}

static void test_many_jobs(struct engine *e)
{
	uint32_t bo = bo_create(e->fd, 4096, DOMAIN_GTT);
	volatile uint64_t *p = bo_map(e->fd, bo, 4096);
	uint64_t va = engine_map(e, bo, 4096), seq = 0;
	unsigned int i;

	for (i = 0; i < 500; i++) {
		struct submit s = { e->ctx, 0, AMDGPU_HW_IP_DMA, 0, 0, e->ib_va, 32, NULL, 0 };

		e->c.n = 0;
		emit(&e->c, 10 | 0x2fu << 25);
		emit64(&e->c, va);
		emit64(&e->c, 1);
		emit64(&e->c, 0);
		emit(&e->c, 0);
		if (try_submit(e->fd, &s, &seq))
			err(2, "job %u", i);
	}
	e->c.n = 0;
	check_u64(job_wait(e->fd, e->ctx, 0, seq, FOREVER), 0, "500 jobs in a row end");
	check_u64(p[0], 500, "each was executed once");
	check_u64(job_wait(e->fd, e->ctx, 0, seq - 400, 0), 0, "a job of long ago counts as done");
	munmap((void *)p, 4096);
}

static void test_syncobj(struct engine *e)
{
	struct drm_syncobj_create create = { 0 };
	struct drm_amdgpu_cs_chunk_sem sem;
	struct drm_amdgpu_cs_chunk chunk = { AMDGPU_CHUNK_ID_SYNCOBJ_OUT, sizeof(sem) / 4, (uintptr_t)&sem };
	struct submit s = { e->ctx, 0, AMDGPU_HW_IP_DMA, 0, 0, e->ib_va, 32, &chunk, 1 };
	struct drm_syncobj_wait wait = { .count_handles = 1, .timeout_nsec = INT64_MAX };
	union drm_amdgpu_fence_to_handle f = { .in = { .what = AMDGPU_FENCE_TO_HANDLE_GET_SYNC_FILE_FD } };
	uint64_t seq;

	if (ioctl(e->fd, DRM_IOCTL_SYNCOBJ_CREATE, &create))
		err(2, "creating a syncobj");
	memset(e->c.dw, 0, 32);
	sem.handle = create.handle;
	check_errno(try_submit(e->fd, &s, &seq), 0, "CS that signals a syncobj");
	wait.handles = (uintptr_t)&create.handle;
	check_errno(ioctl(e->fd, DRM_IOCTL_SYNCOBJ_WAIT, &wait), 0, "it is signaled");
	chunk.chunk_id = AMDGPU_CHUNK_ID_SYNCOBJ_IN;
	check_errno(try_submit(e->fd, &s, &seq), 0, "CS that waits for it");
	sem.handle = 999;
	check_errno(try_submit(e->fd, &s, &seq), ENOENT, "CS that waits for an unknown syncobj");
	chunk.chunk_id = AMDGPU_CHUNK_ID_SYNCOBJ_OUT;
	check_errno(try_submit(e->fd, &s, &seq), EINVAL, "CS that signals an unknown syncobj");
	f.in.fence = (struct drm_amdgpu_fence){ .ctx_id = e->ctx, .ip_type = AMDGPU_HW_IP_DMA, .seq_no = 1 };
	check_errno(ioctl(e->fd, NR_FENCE_TO_HANDLE, &f), 0, "FENCE_TO_HANDLE makes a sync file");
	close(f.out.handle);
}

/* ---- libdrm, and clients that vanish ---- */

/* A buffer of libdrm's with an address on the GPU. */
struct libdrm_bo {
	amdgpu_bo_handle bo;
	amdgpu_va_handle range;
	uint64_t va, size;
	uint8_t *map;
};

static int libdrm_map_gpu(amdgpu_device_handle dev, struct libdrm_bo *b)
{
	int ret = amdgpu_va_range_alloc(dev, amdgpu_gpu_va_range_general, b->size, 1 << 20, 0, &b->va, &b->range, 0);

	return ret ? ret : amdgpu_bo_va_op(b->bo, 0, b->size, b->va, 0, AMDGPU_VA_OP_MAP);
}

static int libdrm_alloc(amdgpu_device_handle dev, struct libdrm_bo *b, uint64_t size, uint32_t heap)
{
	struct amdgpu_bo_alloc_request request = { .alloc_size = size, .phys_alignment = 4096, .preferred_heap = heap };
	int ret = amdgpu_bo_alloc(dev, &request, &b->bo);

	b->size = size;
	if (!ret)
		ret = amdgpu_bo_cpu_map(b->bo, (void **)&b->map);
	return ret ? ret : libdrm_map_gpu(dev, b);
}

static int libdrm_userptr(amdgpu_device_handle dev, struct libdrm_bo *b, uint64_t size)
{
	int ret;

	b->size = size;
	b->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ret = amdgpu_create_bo_from_user_mem(dev, b->map, size, &b->bo);
	return ret ? ret : libdrm_map_gpu(dev, b);
}

static void libdrm_free(struct libdrm_bo *b)
{
	amdgpu_bo_va_op(b->bo, 0, b->size, b->va, 0, AMDGPU_VA_OP_UNMAP);
	amdgpu_va_range_free(b->range);
	amdgpu_bo_free(b->bo);
}

static int libdrm_submit(amdgpu_context_handle ctx, amdgpu_bo_list_handle list, const struct libdrm_bo *ib,
			 uint32_t dwords)
{
	struct amdgpu_cs_ib_info info = { .ib_mc_address = ib->va, .size = dwords };
	struct amdgpu_cs_request request = {
		.ip_type = AMDGPU_HW_IP_DMA, .number_of_ibs = 1, .ibs = &info, .resources = list
	};
	struct amdgpu_cs_fence fence = { .context = ctx, .ip_type = AMDGPU_HW_IP_DMA };
	uint32_t expired = 0;
	int ret = amdgpu_cs_submit(ctx, 0, &request, 1);

	fence.fence = request.seq_no;
	if (!ret)
		ret = amdgpu_cs_query_fence_status(&fence, AMDGPU_TIMEOUT_INFINITE, 0, &expired);
	return ret ? ret : expired ? 0 : -ETIME;
}

/* User memory to VRAM and back into other user memory, as a program that transfers contents does it. */
static void libdrm_copy(amdgpu_device_handle dev, unsigned int gpu)
{
	const uint64_t size = 3 * MiB, len = size - 4099;
	struct libdrm_bo from = { 0 }, vram = { 0 }, to = { 0 }, ib = { 0 };
	amdgpu_context_handle ctx;
	amdgpu_bo_list_handle list;
	amdgpu_bo_handle bos[4];
	struct commands c = { 0 };

	if (libdrm_userptr(dev, &from, size) || libdrm_userptr(dev, &to, size) ||
	    libdrm_alloc(dev, &vram, size, AMDGPU_GEM_DOMAIN_VRAM) ||
	    libdrm_alloc(dev, &ib, 4096, AMDGPU_GEM_DOMAIN_GTT) || amdgpu_cs_ctx_create(dev, &ctx))
		errx(2, "libdrm cannot make its buffers on GPU %u", gpu);
	memcpy(bos, (amdgpu_bo_handle[]){ from.bo, to.bo, vram.bo, ib.bo }, sizeof(bos));
	check_u64(amdgpu_bo_list_create(dev, 4, bos, NULL, &list), 0, "GPU %u: libdrm makes a BO list", gpu);
	pattern_fill(from.map, size, gpu);
	c.dw = (uint32_t *)ib.map;
	emit_copy(&c, vram.va + 1, from.va + 7, len);
	emit_copy(&c, to.va + 3, vram.va + 1, len);
	check_u64(libdrm_submit(ctx, list, &ib, c.n), 0, "GPU %u: libdrm submits copies and waits for them", gpu);
	check_u64(pattern_compare(vram.map + 1, 7, len, gpu), len, "GPU %u: VRAM has all bytes", gpu);
	check_u64(pattern_compare(to.map + 3, 7, len, gpu), len, "GPU %u: user memory has them again", gpu);
	amdgpu_bo_list_destroy(list);
	amdgpu_cs_ctx_free(ctx);
	libdrm_free(&ib);
	libdrm_free(&vram);
	libdrm_free(&to);
	libdrm_free(&from);
	munmap(from.map, size);
	munmap(to.map, size);
}

static void test_libdrm(unsigned int gpu)
{
	uint32_t major, minor;
	amdgpu_device_handle dev;
	struct amdgpu_gpu_info info;
	struct amdgpu_heap_info heap;
	int fd = render_open(gpu);

	if (!check_u64(amdgpu_device_initialize(fd, &major, &minor, &dev), 0, "GPU %u: amdgpu_device_initialize",
		       gpu)) {
		close(fd);
		return;
	}
	check_u64(major, 3, "GPU %u: libdrm sees driver version 3", gpu);
	check_u64(amdgpu_query_gpu_info(dev, &info), 0, "GPU %u: amdgpu_query_gpu_info", gpu);
	check_true(info.gpu_counter_freq && info.family_id, "GPU %u: it has a family and a clock", gpu);
	check_u64(amdgpu_query_heap_info(dev, AMDGPU_GEM_DOMAIN_VRAM, 0, &heap), 0, "GPU %u: amdgpu_query_heap_info",
		  gpu);
	check_true(heap.heap_size && heap.max_allocation, "GPU %u: VRAM has a size", gpu);
	libdrm_copy(dev, gpu);
	amdgpu_device_deinitialize(dev);
	close(fd);
}

static void child_submit_and_hang(int ready)
{
	struct engine e;
	uint64_t seq;
	char c = 1;
	int i;

	engine_open(&e, 0);
	for (i = 0; i < 8; i++) {
		e.c.n = 0;
		emit_poll_equal(&e.c, e.ib_va + 8192, 1);
		if (engine_start(&e, i & 1, &seq))
			_exit(1);
	}
	if (write(ready, &c, 1) != 1)
		_exit(1);
	pause();
	_exit(0);
}

/* A killed client's jobs must not keep the engines. */
static void test_killed(struct engine *e)
{
	int ready[2], status;
	char c;
	pid_t pid;

	if (pipe(ready))
		err(2, "pipe");
	pid = fork();
	if (!pid)
		child_submit_and_hang(ready[1]);
	close(ready[1]);
	check_true(read(ready[0], &c, 1) == 1, "a process has jobs that never end");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	e->c.n = 8;
	memset(e->c.dw, 0, 32);
	check_errno(engine_run(e), 0, "after it was killed the engines work for others");
	close(ready[0]);
}

int main(void)
{
	unsigned int gpu;
	struct engine e;

	test_ctx();
	test_bo_list();
	engine_open(&e, 0);
	test_cs_arguments(&e);
	test_cs_chunks(&e);
	test_wait(&e);
	test_copy_sizes(&e);
	test_copy_long(&e);
	test_userptr(&e);
	test_userptr_readonly(&e);
	test_packets(&e);
	test_fill_bytes(&e);
	test_window_copy(&e);
	test_poll(&e);
	test_listed(&e);
	test_faults(&e);
	test_permissions(&e);
	test_parallel(&e);
	test_dependency(&e);
	test_implicit_sync();
	test_many_jobs(&e);
	test_syncobj(&e);
	for (gpu = 0; gpu < render_count(); gpu++)
		test_libdrm(gpu);
	test_killed(&e);
	engine_close(&e);
	return conformance_end();
}
