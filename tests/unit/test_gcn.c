// SPDX-License-Identifier: GPL-2.0-only
/*
 * The simulated chip's compute unit (tests/asicsim/gcn) runs code that clang made for gfx908; the same source, compiled
 * for the processor, says what has to come out.
 */
#include <glob.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "unit.h"
#include "tests/asicsim/gcn/dispatch.h"
#include "tests/asicsim/gcn/inst.h"

typedef _Float16 f16;
typedef float f32;
typedef double f64;

#define __builtin_bitreverse64(x) reversed(x)
#define __builtin_bitreverse32(x) (u32)(reversed(x) >> 32)

static u64 reversed(u64 x)
{
	u64 r = 0;

	for (unsigned int i = 0; i < 64; i++)
		r |= (x >> i & 1) << (63 - i);
	return r;
}

#include "tests/asicsim/gcn/programs/common.h"

/* ---- the same for the processor ---- */

#include "gcn_numbers.h"

#define L(name, expression)                         \
	static u64 lane_##name(u64 a, u64 b, u64 c) \
	{                                           \
		(void)a, (void)b, (void)c;          \
		return (expression);                \
	}
#include "tests/asicsim/gcn/programs/lanes.h"
#undef L

static const struct lane_program {
	const char *name;
	u64 (*run)(u64 a, u64 b, u64 c);
} lane_programs[] = {
#define L(ident, expression) { #ident, lane_##ident },
#include "tests/asicsim/gcn/programs/lanes.h"
#undef L
};

/* Kernels in the order of kernels.cl: programs with values of a lane, the same with values of a group, others. */
enum {
	NR_LANE_PROGRAMS = GCN_COUNT(lane_programs),
	KERNEL_CROSS = 2 * NR_LANE_PROGRAMS,
	KERNEL_SIZES,
	KERNEL_ATOMICS,
	KERNEL_CHAINS,
	KERNEL_LDS,
	KERNEL_MATRICES
};

/* ---- a GPU's address space: that of this process, as far as pages are given to it ---- */

#define MEMORY_BYTES (1u << 20)

static struct gcn_env env;
static u8 *memory;		  /* read and written */
static u8 *code, *busy, *private, *failing, *handler; /* read */
static size_t code_bytes, busy_bytes, private_bytes, failing_bytes, handler_bytes;

/* What a runtime has allocated as private memory of waves. */
#define SLOTS	   20u
#define SLOT_BYTES (32u << 10)

static u8 *slots;

static bool is_within(u64 va, const u8 *start, size_t bytes)
{
	return va >= (uintptr_t)start && va < (uintptr_t)start + bytes;
}

/* Code can be read, but is not in memory that can be written, unless a test says so. */
static bool memory_is_code;

static void *page(struct gcn_env *e, u64 va, enum gcn_access access)
{
	if (is_within(va, slots, SLOTS * SLOT_BYTES))
		return access != GCN_EXECUTE ? (void *)(uintptr_t)va : NULL;
	if (is_within(va, memory, MEMORY_BYTES))
		return access != GCN_EXECUTE || memory_is_code ? (void *)(uintptr_t)va : NULL;
	if (access == GCN_WRITE || !(is_within(va, code, code_bytes) || is_within(va, busy, busy_bytes) ||
				     is_within(va, private, private_bytes) || is_within(va, failing, failing_bytes) ||
				     is_within(va, handler, handler_bytes)))
		return NULL;
	return (void *)(uintptr_t)va;
}

static u64 clock_ticks(struct gcn_env *e)
{
	static u64 ticks;

	return ticks++;
}

/* Which instructions have been executed, by their names' addresses. */
#define NR_NAMES 8192
static const char *executed_names[NR_NAMES];

static const char **executed_slot(const char *name)
{
	size_t i = (uintptr_t)name % NR_NAMES;

	while (executed_names[i] && executed_names[i] != name)
		i = (i + 1) % NR_NAMES;
	return &executed_names[i];
}

static void executed(struct gcn_env *e, const char *name)
{
	*executed_slot(name) = name;
}

/* The file at whole pages. */
static u8 *file_read(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "rb");
	u8 *at = aligned_alloc(GCN_PAGE, MEMORY_BYTES);
	size_t n;

	assert_non_null(f);
	assert_non_null(at);
	memset(at, 0, MEMORY_BYTES);
	n = fread(at, 1, MEMORY_BYTES - 1, f);
	fclose(f);
	assert_true(n > 0);
	*bytes = (n + GCN_PAGE - 1) & ~(size_t)(GCN_PAGE - 1);
	return at;
}

static struct gcn_inst decoded[GCN_DECODED];
static struct gcn_pool pool;

static int setup(void **state)
{
	code = file_read(GCN_PROGRAMS "kernels.bin", &code_bytes);
	busy = file_read(GCN_PROGRAMS "busy.bin", &busy_bytes);
	private = file_read(GCN_PROGRAMS "private.bin", &private_bytes);
	failing = file_read(GCN_PROGRAMS "failing.bin", &failing_bytes);
	slots = aligned_alloc(GCN_PAGE, SLOTS * SLOT_BYTES);
	memory = aligned_alloc(GCN_PAGE, MEMORY_BYTES);
	env = (struct gcn_env){ .page = page,
				.clock = clock_ticks,
				.executed = executed,
				.sh_mem_bases = 0x00010002,
				.pool = &pool,
				.decoded = decoded };
	return 0;
}

static int teardown(void **state)
{
	gcn_pool_free(&pool);
	free(code);
	free(busy);
	free(private);
	free(failing);
	free(slots);
	free(handler);
	free(memory);
	return 0;
}

static u64 random_bits(void)
{
	static u64 x = 88172645463325252ULL;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

/* All kinds of numbers: small ones, ends of ranges, numbers with a fraction and what is next to them. */
static u64 random_number(void)
{
	static const u64 special[] = { 0,
				       1,
				       0x80000000,
				       0x7fffffff,
				       0xffffffff,
				       0x8000000000000000,
				       0x7fffffffffffffff,
				       ~0ULL,
				       0x3f800000,
				       0x7f800000,
				       0xff800000,
				       0x7fc00000,
				       0x00800000,
				       0x007fffff,
				       0x80000001,
				       0x3ff0000000000000,
				       0x7ff0000000000000,
				       0xfff0000000000000,
				       0x7ff8000000000000,
				       0x0010000000000000,
				       0x000fffffffffffff };
	u64 r = random_bits();

	switch (r >> 60) {
	case 0:
		return special[r % GCN_COUNT(special)];
	case 1:
		return special[r % GCN_COUNT(special)] + (r >> 8 & 7) - 3;
	case 2:
		return r & 0xff;
	case 3:
		return (random_bits() & 0x800fffff800fffff) | (0x3f0 + (r & 15)) << 20 | (0x3f0 + (r >> 4 & 15)) << 52;
	}
	return random_bits();
}

/*
 * Arcturus' trap handler from the driver's header, of an image that tests/vm has prepared: false when there is none.
 * The first words of the page behind it, where a second handler could be named, stay 0.
 */
static bool handler_read(void)
{
	const char *cache = getenv("CRIU_AMDGPU_CACHE");
	char pattern[4096], word[64];
	glob_t found;
	FILE *f;
	u32 n = 0;

	snprintf(pattern, sizeof(pattern), "%s/driver-*/drivers/gpu/drm/amd/amdkfd/cwsr_trap_handler.h",
		 cache ? cache : "/var/cache/criu-amdgpu");
	if (glob(pattern, 0, NULL, &found))
		return false;
	f = fopen(found.gl_pathv[0], "r");
	globfree(&found);
	assert_non_null(f);
	handler_bytes = 2 * GCN_PAGE;
	handler = aligned_alloc(GCN_PAGE, handler_bytes);
	assert_non_null(handler);
	memset(handler, 0, handler_bytes);
	while (fscanf(f, "%63s", word) == 1 && strcmp(word, "cwsr_trap_arcturus_hex[]"))
		;
	assert_int_equal(fscanf(f, " = {"), 0);
	while (n < GCN_PAGE / 4 && fscanf(f, " 0x%x ,", (u32 *)handler + n) == 1)
		n++;
	fclose(f);
	assert_true(n > 100);
	env.tba = (uintptr_t)handler;
	env.tma = (uintptr_t)handler + GCN_PAGE;
	return true;
}

/* Runs a kernel of one-dimensional groups of 256 to its end. */
static void run(unsigned int kernel, u32 items, void *arguments)
{
	struct gcn_dispatch d = { .env = &env };
	struct gcn_packet packet = { .kernel = (uintptr_t)code + 64 * kernel,
				     .arguments = (uintptr_t)arguments,
				     .workgroup = { 256, 1, 1 },
				     .grid = { items, 1, 1 },
				     .lds_size = ((struct gcn_kernel *)(code + 64 * kernel))->lds_size };
	int err = gcn_dispatch_start(&d, &packet);

	while (!err || err == -EAGAIN) {
		err = gcn_dispatch_run(&d, 50);
		if (!err)
			break;
	}
	gcn_dispatch_end(&d);
	if (err)
		fail_msg("kernel %u: %s: %#llx: %s %08x %08x at %#llx", kernel, d.error.what, (long long)d.error.value,
			 d.error.name ? d.error.name : "", d.error.w[0], d.error.w[1],
			 (long long)(d.error.pc - (uintptr_t)code));
}

/* ---- the tests ---- */

#define ITEMS 1024u

static bool is_number_type(const char *name, char type)
{
	return name[0] == type && name[1] == '_';
}

static bool is_nan16(u64 x)
{
	return (x & 0x7fff) > 0x7c00;
}

/* The steps between two numbers of 32 bits. */
static u32 distance(u64 x, u64 y)
{
	s64 a = x >> 31 & 1 ? -(s64)(x & 0x7fffffff) : (s64)x, b = y >> 31 & 1 ? -(s64)(y & 0x7fffffff) : (s64)y;

	return (u32)(a > b ? a - b : b - a);
}

/* What is no number has no certain bits. Powers and logarithms are those of the processor's library, or next to them. */
static bool same(const char *name, u64 x, u64 y)
{
	bool narrow = is_number_type(name, 'f') || !strncmp(name, "d_narrow", 8);

	if (x == y)
		return true;
	if (!strncmp(name, "about", 5))
		return distance(x, y) <= 2;
	if (narrow && !(x >> 32) && !(y >> 32) && isnan(f_u(x)) && isnan(f_u(y)))
		return true;
	if (is_number_type(name, 'h') && is_nan16(x) && is_nan16(y))
		return true;
	if (is_number_type(name, 'p'))
		return same("h_low", (u16)x, (u16)y) && same("h_high", x >> 16, y >> 16);
	return (is_number_type(name, 'd') || !strcmp(name, "f_widen")) && isnan(d_u(x)) && isnan(d_u(y));
}

/* @items: how many items have the same values */
static void programs_check(unsigned int first, unsigned int items)
{
	u64 *arguments = (u64 *)memory, *out = arguments + 512, *in = out + ITEMS;

	for (unsigned int k = 0; k < NR_LANE_PROGRAMS; k++) {
		const struct lane_program *p = &lane_programs[k];

		for (u32 i = 0; i < 3 * ITEMS; i++)
			in[i] = random_number();
		arguments[0] = (uintptr_t)out;
		arguments[1] = (uintptr_t)in;
		run(first + k, ITEMS, arguments);
		for (u32 i = 0; i < ITEMS / items; i++) {
			u64 *x = in + 3 * i, want = p->run(x[0], x[1], x[2]);

			if (!same(p->name, out[i], want))
				fail_msg("%s(%#llx, %#llx, %#llx) is %#llx and not %#llx", p->name, (long long)x[0],
					 (long long)x[1], (long long)x[2], (long long)out[i], (long long)want);
		}
	}
}

TEST(lanes_compute_what_the_processor_does)
{
	programs_check(0, 1);
}

TEST(scalars_compute_what_the_processor_does)
{
	for (int i = 0; i < 20; i++)
		programs_check(NR_LANE_PROGRAMS, 256);
}

TEST(a_grid_ends_within_a_group)
{
	u64 *arguments = (u64 *)memory, *out = arguments + 512, *in = out + ITEMS;

	for (u32 i = 0; i < 3 * ITEMS; i++)
		in[i] = random_bits();
	memset(out, 0x5a, ITEMS * sizeof(*out));
	arguments[0] = (uintptr_t)out;
	arguments[1] = (uintptr_t)in;
	run(0, 300, arguments);
	for (u32 i = 0; i < ITEMS; i++)
		assert_int_equal(out[i], i < 300 ? lane_programs[0].run(in[3 * i], in[3 * i + 1], 0) : 0x5a5a5a5a5a5a5a5a);
}

/* Of the 64 lanes whose values are in @x, what lane @l has to see; @first: of all. */
static void cross_expect(const u32 *x, u32 first, unsigned int l, u32 want[16])
{
	unsigned int row = l & 48, at = l & 15;
	u64 greater = 0;

	for (unsigned int i = 0; i < 64; i++)
		greater |= (u64)(x[i] > first) << i;
	want[0] = x[0];
	want[1] = x[first & 63];
	want[2] = 7 + l;
	want[3] = x[x[l] & 63];
	want[4] = x[l ^ 21];
	want[5] = x[l ^ 3];
	want[6] = at ? x[l - 1] : 77;
	want[7] = at < 13 ? x[l + 3] : 0;
	want[8] = x[row + ((at + 12) & 15)];
	want[9] = l ? x[l - 1] : 77;
	want[10] = row & 16 ? x[row - 1] : 77;
	want[11] = row & 32 ? x[31] : 77;
	want[12] = at < 8 ? x[l ^ 7] : 77;
	want[13] = (u32)(greater >> (l & 32));
	/* bytes 6 and 2 of the pair, all ones, and 0 */
	want[14] = 0xff0000 | (first >> 16 & 0xff) << 8 | (x[l] >> 16 & 0xff);
	want[15] = x[l ^ 15];
}

TEST(lanes_see_each_other)
{
	u64 *arguments = (u64 *)memory;
	u32 *in = (u32 *)(arguments + 512), *out = in + ITEMS, want[16];

	for (u32 i = 0; i < ITEMS; i++)
		in[i] = (u32)random_bits();
	arguments[0] = (uintptr_t)out;
	arguments[1] = (uintptr_t)in;
	run(KERNEL_CROSS, ITEMS, arguments);
	for (u32 i = 0; i < ITEMS; i++) {
		cross_expect(in + (i & ~63u), in[0], i & 63, want);
		for (int k = 0; k < 16; k++)
			if (out[16 * i + k] != want[k])
				fail_msg("item %u: result %d is %#x and not %#x", i, k, out[16 * i + k], want[k]);
	}
}

static void sizes_expect(const u8 *from, u8 *to)
{
	s32 x;
	u32 sum;

	to[0] = from[1];
	to[1] = from[0];
	memcpy(to + 2, from + 2, 2);
	x = (s8)from[4];
	memcpy(to + 4, &x, 4);
	x = (s16)(from[6] | from[7] << 8);
	memcpy(to + 8, &x, 4);
	to[12] = from[10];
	memcpy(to + 14, from + 10, 2);
	memcpy(to + 16, from + 16, 12);
	memcpy(to + 32, from + 32, 24);
	sum = from[56] + (from[58] | (u32)from[59] << 8);
	memcpy(to + 56, &sum, 4);
	memcpy(to + 60, from + 60, 4);
}

TEST(memory_is_accessed_in_all_sizes)
{
	u64 *arguments = (u64 *)memory;
	u8 *in = memory + GCN_PAGE, *out = in + 64 * ITEMS, want[64];

	for (u32 i = 0; i < 64 * ITEMS; i++)
		in[i] = (u8)random_bits();
	memset(out, 0x5a, 64 * ITEMS);
	arguments[0] = (uintptr_t)out;
	arguments[1] = (uintptr_t)in;
	run(KERNEL_SIZES, ITEMS, arguments);
	for (u32 i = 0; i < ITEMS; i++) {
		memset(want, 0x5a, sizeof(want));
		sizes_expect(in + 64 * i, want);
		assert_memory_equal(out + 64 * i, want, sizeof(want));
	}
}

/* All operations do not depend on the order of items. */
static void combine32(u32 *p, u32 x)
{
	p[0] += x;
	p[1] -= x;
	p[2] &= x | 0xff;
	p[3] |= x & 0xff;
	p[4] ^= x;
	p[5] = p[5] < x ? p[5] : x;
	p[6] = p[6] > x ? p[6] : x;
	p[7] = (u32)((s32)p[7] < (s32)x ? p[7] : x);
	p[8] = (u32)((s32)p[8] > (s32)x ? p[8] : x);
}

static void combine64(u64 *p, u64 x)
{
	p[0] += x;
	p[1] -= x;
	p[2] &= x | 0xff;
	p[3] |= x & 0xff;
	p[4] ^= x;
	p[5] = p[5] < x ? p[5] : x;
	p[6] = p[6] > x ? p[6] : x;
	p[7] = (s64)p[7] < (s64)x ? p[7] : x;
	p[8] = (s64)p[8] > (s64)x ? p[8] : x;
}

struct atomics_memory {
	u64 arguments[4];
	u64 out64[32], want64[32];
	u32 out32[32], want32[32];
	u64 in[ITEMS];
	u32 tickets[ITEMS];
};

/* Each item of a group found there what the one before it had left. */
static void tickets_check(const u32 *tickets)
{
	bool seen[257] = { false };

	for (u32 i = 0; i < 256; i++) {
		assert_true(tickets[i] <= 256 && !seen[tickets[i]]);
		seen[tickets[i]] = true;
	}
	assert_true(seen[0]);
}

TEST(atomics_lose_nothing)
{
	struct atomics_memory *m = (struct atomics_memory *)memory;
	u32 narrow[16];
	u64 wide[16];

	memset(m, 0, sizeof(*m));
	m->arguments[0] = (uintptr_t)m->out32;
	m->arguments[1] = (uintptr_t)m->out64;
	m->arguments[2] = (uintptr_t)m->in;
	m->arguments[3] = (uintptr_t)m->tickets;
	for (u32 i = 0; i < 9; i++) {
		m->out32[i] = m->want32[i] = (u32)random_bits();
		m->out64[i] = m->want64[i] = random_bits();
	}
	for (u32 i = 0; i < ITEMS; i++)
		m->in[i] = random_number();
	for (u32 g = 0; g < ITEMS / 256; g++) {
		memset(narrow, 0, sizeof(narrow));
		memset(wide, 0, sizeof(wide));
		for (u32 i = 256 * g; i < 256 * g + 256; i++) {
			combine32(m->want32, (u32)m->in[i]);
			combine64(m->want64, m->in[i]);
			combine32(narrow, (u32)m->in[i]);
			combine64(wide, m->in[i]);
		}
		for (u32 i = 0; i < 9; i++) {
			m->want32[16 + i] += narrow[i];
			m->want64[16 + i] ^= wide[i];
		}
	}
	m->want32[14] = 5 * ITEMS;
	m->want32[15] = 3 * ITEMS;
	run(KERNEL_ATOMICS, ITEMS, m->arguments);
	m->want64[14] = m->out64[14];
	assert_memory_equal(m->out32, m->want32, sizeof(m->out32));
	assert_memory_equal(m->out64, m->want64, sizeof(m->out64));
	for (u32 g = 0; g < ITEMS / 256; g++)
		tickets_check(m->tickets + 256 * g);
}

#define CHAIN(U, S, p, x)                                            \
	do {                                                         \
		U *at = (p), v = (U)(x), step[11];                   \
		step[0] = *at;                                       \
		step[1] = step[0] + v;                               \
		step[2] = step[1] - v * 3;                           \
		step[3] = step[2] & (v | 0xff00);                    \
		step[4] = step[3] | (v & 0xff);                      \
		step[5] = step[4] ^ v;                               \
		step[6] = step[5] < v ? step[5] : v;                 \
		step[7] = step[6] > v / 2 ? step[6] : v / 2;         \
		step[8] = (S)step[7] < (S)(v + 1) ? step[7] : v + 1; \
		step[9] = (S)step[8] > (S)(v - 1) ? step[8] : v - 1; \
		for (int n = 0; n < 10; n++)                         \
			sum = sum * 31 + step[n];                    \
		sum = (sum + 1) * 31 + 9;                            \
	} while (0)

TEST(atomics_return_what_was_there)
{
	struct chains_memory {
		u64 arguments[4], out[ITEMS], in[ITEMS], wide[ITEMS], want[ITEMS];
		u32 narrow[ITEMS];
	} *m = (struct chains_memory *)memory;

	m->arguments[0] = (uintptr_t)m->out;
	m->arguments[1] = (uintptr_t)m->in;
	m->arguments[2] = (uintptr_t)m->narrow;
	m->arguments[3] = (uintptr_t)m->wide;
	for (u32 i = 0; i < ITEMS; i++) {
		u64 sum = 0;

		m->in[i] = random_bits();
		m->narrow[i] = (u32)random_bits();
		m->wide[i] = random_bits();
		for (int k = 0; k < 2; k++) {
			CHAIN(u32, s32, &m->narrow[i], m->in[i]);
			CHAIN(u64, s64, &m->wide[i], m->in[i]);
		}
		m->want[i] = sum;
	}
	run(KERNEL_CHAINS, ITEMS, m->arguments);
	assert_memory_equal(m->out, m->want, sizeof(m->out));
}

static u64 long_at(const u8 *bytes)
{
	u64 x;

	memcpy(&x, bytes, 8);
	return x;
}

/* @group: what its items have written, 64 bytes each */
static void lds_expect(const u8 *group, u32 item, u64 want[8])
{
	const u8 *at = group + 64 * ((item + 77) % 256), *even = group + 64 * (item & ~1u),
		 *odd = group + 64 * (item | 1);
	u32 first = (u32)((s8)at[0] + at[1]), second = (u32)((s16)(at[2] | at[3] << 8) + (at[4] | at[5] << 8));

	want[0] = first | (u64)second << 32;
	memcpy(want + 1, at + 8, 24);
	want[4] = (u64)(u32)long_at(at + 32) * (u32)(long_at(at + 32) >> 32);
	want[5] = long_at(at + 40) * long_at(at + 48);
	want[6] = long_at(even + 32) << 32 | (u32)long_at(odd + 32);
	want[7] = long_at(even + 40) + 3 * long_at(odd + 40);
}

TEST(lds_is_accessed_in_all_sizes)
{
	u64 *arguments = (u64 *)memory, want[8];
	u8 *in = memory + GCN_PAGE, *out = in + 64 * ITEMS;

	for (u32 i = 0; i < 64 * ITEMS; i++)
		in[i] = (u8)random_bits();
	arguments[0] = (uintptr_t)out;
	arguments[1] = (uintptr_t)in;
	run(KERNEL_LDS, ITEMS, arguments);
	for (u32 i = 0; i < ITEMS; i++) {
		lds_expect(in + 64 * (i & ~255u), i & 255, want);
		assert_memory_equal(out + 64 * i, want, sizeof(want));
	}
}

/* ---- matrices ---- */

static const struct matrix_program {
	const char *name;
	u32 rows, products, registers; /* of the result */
	enum gcn_element element;
} matrices[] = {
#define X(ident, size, nr, what, type, nr_registers, arguments) { #ident, size, nr, nr_registers, what },
#include "tests/asicsim/gcn/programs/matrices.h"
#undef X
};

/* A lane's words of A, of B, and of C. */
struct matrix_lane {
	u32 a[2], b[2], c[32];
};

/* A value that has no infinity and is no NaN, as often small as not: sums come near 0. */
static u32 matrix_word(enum gcn_element element)
{
	u32 x = (u32)random_bits();

	switch (element) {
	case FLOATS:
		return (u32)mid32(random_bits());
	case HALVES:
		return x & 0xbbffbbff;
	case BRAINS: /* the sum of two products and C has room in 113 bits */
		return (x & 0x8fff8fff) | 0x30003000;
	default:
		return x;
	}
}

/* A factor of one element of the result: number @k of a row of A or a column of B, of block @block. */
static u32 factor(const struct matrix_lane *lanes, const struct matrix_program *m, bool of_b, u32 row, u32 block, u32 k)
{
	static const u32 sizes[] = { [FLOATS] = 32, [HALVES] = 16, [BYTES] = 8, [BRAINS] = 16 };
	static const u32 held[] = { [FLOATS] = 1, [HALVES] = 4, [BYTES] = 4, [BRAINS] = 2 };
	u32 lane = row + m->rows * (block + k / held[m->element]), bit = k % held[m->element] * sizes[m->element];
	const u32 *words = of_b ? lanes[lane].b : lanes[lane].a;

	return words[bit / 32] >> bit % 32;
}

static u32 matrix_sum(const struct matrix_lane *lanes, const struct matrix_program *m, u32 row, u32 column, u32 block,
		      u32 c)
{
	u32 at_once = m->element == HALVES ? 4 : m->element == BRAINS ? 2 : 1;
	__float128 sum = 0;

	for (u32 k = 0; k < m->products; k++) {
		u32 x = factor(lanes, m, false, row, block, k), y = factor(lanes, m, true, column, block, k);

		if (m->element == BYTES)
			c += (u32)((s8)x * (s8)y);
		else if (m->element == FLOATS)
			c = (u32)u_f(fmaf(f_u(x), f_u(y), f_u(c)));
		else if (m->element == HALVES)
			sum += (__float128)h_u(x) * h_u(y);
		else
			sum += (__float128)f_u(x << 16) * f_u(y << 16);
		if (m->element != BYTES && m->element != FLOATS && k % at_once == at_once - 1) {
			c = (u32)u_f((f32)(sum + (__float128)f_u(c)));
			sum = 0;
		}
	}
	return c;
}

/* Where an element of the result is: its lane, and its register. */
static u32 matrix_lane_of(const struct matrix_program *m, u32 row, u32 column, u32 block, u32 *reg)
{
	u32 of_four = row / 4, lanes_of_four = 64 / m->rows;

	if (m->rows == 4) {
		*reg = row;
		return 4 * block + column;
	}
	*reg = row % 4 + 4 * (of_four / lanes_of_four) + block * (m->rows == 32 ? 16 : 4);
	return column + m->rows * (of_four % lanes_of_four);
}

static void matrix_check(const struct matrix_program *m, const struct matrix_lane *lanes, const u32 (*out)[32])
{
	u32 blocks = m->registers * 64 / (m->rows * m->rows), reg, lane, want;

	for (u32 n = 0; n < m->rows * m->rows * blocks; n++) {
		u32 block = n / (m->rows * m->rows), row = n / m->rows % m->rows, column = n % m->rows;

		lane = matrix_lane_of(m, row, column, block, &reg);
		want = matrix_sum(lanes, m, row, column, block, lanes[lane].c[reg]);
		if (out[lane][reg] != want)
			fail_msg("%s: row %u, column %u of block %u is %#x and not %#x", m->name, row, column, block,
				 out[lane][reg], want);
	}
}

TEST(matrices_are_multiplied)
{
	u64 *arguments = (u64 *)memory;
	struct matrix_lane *lanes = (struct matrix_lane *)(arguments + 512);
	u32(*out)[32] = (u32(*)[32])(lanes + 256);

	arguments[0] = (uintptr_t)out;
	arguments[1] = (uintptr_t)lanes;
	for (u32 k = 0; k < GCN_COUNT(matrices); k++) {
		for (u32 l = 0; l < 256; l++) {
			for (u32 i = 0; i < 32; i++)
				lanes[l].c[i] = matrix_word(matrices[k].element == BYTES ? BYTES : FLOATS);
			for (u32 i = 0; i < 2; i++) {
				lanes[l].a[i] = matrix_word(matrices[k].element);
				lanes[l].b[i] = matrix_word(matrices[k].element);
			}
		}
		run(KERNEL_MATRICES + k, 256, arguments);
		for (u32 wave = 0; wave < 256; wave += 64)
			matrix_check(&matrices[k], lanes + wave, (const u32(*)[32])out + wave);
	}
}

/* ---- halves of registers, and the end of a buffer ---- */

#define HALVES_RESULTS 13u

static u32 max3(s16 a, s16 b, s16 c)
{
	s16 most = a > b ? a : b;

	return (u16)(most > c ? most : c);
}

/* @in: two words of each item of a wave; @bytes: of the buffer, from the first item on */
static void halves_expect(const u32 (*in)[2], u32 item, u32 bytes, u32 want[HALVES_RESULTS])
{
	const u32 *all = in[0], *x = in[item], *in_four = in[item ^ 3], *next = in[item ^ 1];

	/* The other half becomes 0. */
	want[0] = x[0] >> 16;
	want[1] = (u32)(u16)(s8)x[0] << 16;
	want[2] = x[0] & 0xffff0000;
	want[3] = x[0] >> 8 & 0xff;
	want[4] = (x[0] & ~0xffu) | (x[1] >> 16 & 0xff);
	want[5] = in_four[0];
	want[6] = next[0];
	for (u32 k = 0; k < 2; k++)
		want[7 + k] = item * 8 + 4 * k + 4 < bytes ? all[2 * item + 1 + k] : 0;
	want[9] = x[1] ^ x[0] << 1;
	want[10] = max3((s16)(x[0] >> 16), (s16)x[1], (s16)item) << 16 | 0x8888;
	want[11] = (u16)(x[0] * x[1] + item);
	want[12] = x[0] < x[1];
}

TEST(halves_and_ends_of_buffers)
{
	u64 *arguments = (u64 *)memory;
	u32(*in)[2] = (u32(*)[2])(arguments + 512), (*out)[HALVES_RESULTS] = (u32(*)[HALVES_RESULTS])(in + ITEMS + 2);
	u32 want[HALVES_RESULTS], bytes = 8 * ITEMS - 98;

	for (u32 i = 0; i < ITEMS + 2; i++)
		for (u32 k = 0; k < 2; k++)
			in[i][k] = (u32)random_bits();
	arguments[0] = (uintptr_t)out;
	arguments[1] = (uintptr_t)in;
	arguments[2] = bytes;
	run(KERNEL_MATRICES + GCN_COUNT(matrices), ITEMS, arguments);
	for (u32 i = 0; i < ITEMS; i++) {
		halves_expect((const u32(*)[2])in, i, bytes, want);
		for (u32 k = 0; k < HALVES_RESULTS; k++)
			if (out[i][k] != want[k])
				fail_msg("item %u: result %u is %#x and not %#x", i, k, out[i][k], want[k]);
	}
}

/* ---- a kernel that is preempted again and again ---- */

#define BUSY_GROUPS 12u
#define BUSY_ITEMS  (256 * BUSY_GROUPS)
#define BUSY_ROUNDS 40u
#define STACK_BYTES 4096u
#define SAVE_BYTES  (MEMORY_BYTES / 2)

struct busy_memory {
	u64 arguments[6];
	u32 done, gate, rounds[BUSY_GROUPS];
	u32 words[BUSY_ITEMS], want[BUSY_ITEMS];
	f64 sums[BUSY_ITEMS];
};

static u8 stack[STACK_BYTES];

static struct busy_memory *busy_setup(void)
{
	struct busy_memory *m = (struct busy_memory *)memory;

	memset(m, 0, sizeof(*m));
	m->arguments[0] = (uintptr_t)m->words;
	m->arguments[1] = (uintptr_t)m->sums;
	m->arguments[2] = (uintptr_t)&m->done;
	m->arguments[3] = (uintptr_t)m->rounds;
	m->arguments[4] = (uintptr_t)&m->gate;
	m->arguments[5] = BUSY_ROUNDS;
	m->gate = 1;
	for (u32 i = 0; i < BUSY_ITEMS; i++)
		m->words[i] = m->want[i] = (u32)random_bits();
	return m;
}

static void busy_check(struct busy_memory *m)
{
	static u64 wide[BUSY_ITEMS];
	static f64 sums[BUSY_ITEMS];
	u32 before[256];

	for (u32 i = 0; i < BUSY_ITEMS; i++) {
		wide[i] = i;
		sums[i] = 0;
	}
	for (u32 r = 0; r < BUSY_ROUNDS; r++) {
		for (u32 i = 0; i < BUSY_ITEMS; i++) {
			if (i % 256 == 0)
				memcpy(before, m->want + i, sizeof(before));
			m->want[i] = m->want[i] * 1664525 + before[(i + 17) % 256];
			wide[i] = wide[i] * 6364136223846793005 + m->want[i];
			sums[i] = fma(sums[i], 0.75, (f64)(u32)(wide[i] >> 32));
		}
	}
	assert_memory_equal(m->words, m->want, sizeof(m->words));
	assert_memory_equal(m->sums, sums, sizeof(sums));
	assert_int_equal(m->done, BUSY_ITEMS);
	for (u32 g = 0; g < BUSY_GROUPS; g++)
		assert_int_equal(m->rounds[g], BUSY_ROUNDS);
}

static struct gcn_packet busy_packet(const struct busy_memory *m)
{
	return (struct gcn_packet){ .kernel = (uintptr_t)busy,
				    .arguments = (uintptr_t)m->arguments,
				    .workgroup = { 256, 1, 1 },
				    .grid = { BUSY_ITEMS, 1, 1 },
				    .lds_size = ((struct gcn_kernel *)busy)->lds_size };
}

/* Nothing is left of a dispatch but memory, the control stack and what an MQD holds. */
static int preempt(struct gcn_dispatch *d, struct gcn_save_area *area)
{
	struct gcn_packet packet = d->packet;
	u64 next;
	int err = gcn_dispatch_save(d, area);

	if (err)
		return err;
	next = d->next;
	*d = (struct gcn_dispatch){ .env = &env };
	err = gcn_dispatch_start(d, &packet);
	d->next = next;
	return err ? err : gcn_dispatch_load(d, area);
}

static struct gcn_save_area save_area(void)
{
	return (struct gcn_save_area){
		.va = (uintptr_t)memory + SAVE_BYTES, .size = SAVE_BYTES, .stack = stack, .stack_size = STACK_BYTES
	};
}

/* To its end; where the driver's trap handler is there, preempted again and again. */
static void busy_run(const struct gcn_packet *packet)
{
	unsigned int preemptions = 0, steps = 1;
	struct gcn_dispatch d = { .env = &env };
	struct gcn_save_area area = save_area();
	int err = gcn_dispatch_start(&d, packet);

	while (!err) {
		err = gcn_dispatch_run(&d, steps++ % 97 + 1);
		if (err != -EAGAIN)
			break;
		err = 0;
		if (!handler || random_bits() % 8)
			continue;
		err = preempt(&d, &area);
		preemptions++;
	}
	gcn_dispatch_end(&d);
	if (err)
		fail_msg("%s: %#llx: %s %08x %08x at %#llx", d.error.what, (long long)d.error.value,
			 d.error.name ? d.error.name : "", d.error.w[0], d.error.w[1], (long long)d.error.pc);
	assert_true(!handler || preemptions > 20);
}

TEST(waves_come_back_from_the_save_area)
{
	struct busy_memory *m = busy_setup();
	struct gcn_packet packet = busy_packet(m);

	if (!handler && !handler_read()) {
		print_message("no image of the driver is there (tests/vm/setup): its trap handler is not run\n");
		skip();
	}
	busy_run(&packet);
	busy_check(m);
}

/* As a runtime describes it: swizzled, words of 64 lanes side by side. */
static struct gcn_packet private_packet(const struct busy_memory *m, u32 nr_slots)
{
	struct gcn_packet packet = busy_packet(m);

	memset(slots, 0x5a, SLOTS * SLOT_BYTES);
	packet.kernel = (uintptr_t)private;
	packet.lds_size = ((struct gcn_kernel *)private)->lds_size;
	packet.private_base = (uintptr_t)slots;
	packet.private_buffer[0] = (u32)packet.private_base;
	packet.private_buffer[1] = (u32)(packet.private_base >> 32) | 1u << 31;
	packet.private_buffer[2] = nr_slots * SLOT_BYTES;
	packet.private_buffer[3] = 1u << 23 | 3u << 21 | 1u << 19;
	packet.private_wave_bytes = SLOT_BYTES;
	packet.private_waves = nr_slots;
	packet.private_size = ((struct gcn_kernel *)private)->private_size;
	assert_in_range(packet.private_size, 1, SLOT_BYTES / GCN_LANES);
	return packet;
}

/* Groups have four waves each: as many of them run at once as private memory is there for. */
TEST(private_memory_stays_with_its_wave)
{
	if (!handler)
		handler_read();
	for (u32 nr = 4; nr <= SLOTS; nr += 5) {
		struct busy_memory *m = busy_setup();
		struct gcn_packet packet = private_packet(m, nr);

		busy_run(&packet);
		busy_check(m);
		for (u32 i = nr * SLOT_BYTES; i < SLOTS * SLOT_BYTES; i++)
			assert_int_equal(slots[i], 0x5a);
	}
}

TEST(a_group_that_is_larger_than_the_private_memory_is_refused)
{
	struct gcn_packet packet = private_packet(busy_setup(), 3);
	struct gcn_dispatch d = { .env = &env };

	assert_int_equal(gcn_dispatch_start(&d, &packet), -EFAULT);
	assert_int_equal(d.error.value, 3);
}

/* ---- a kernel whose assertion fails ---- */

#define HANDLER_AT 256u /* in failing.bin */
#define DOORBELL   0x2a5u
#define ABORTED	   0x400u /* EC_QUEUE_WAVE_ABORT, above the doorbell's number */

static unsigned int nr_told;

static void driver_told(struct gcn_env *from, u32 data, bool in_trap)
{
	assert_ptr_equal(from, &env);
	assert_int_equal(data, DOORBELL | ABORTED);
	assert_true(in_trap);
	nr_told++;
}

struct failing_memory {
	u64 arguments[2];
	u32 gate, went_on, trapped;
};

/* The kernel is preempted before it fails. @tells: a second handler is named behind the driver's, as the KFD does it. */
static struct failing_memory *failing_run(bool tells)
{
	struct failing_memory *m = (struct failing_memory *)memory;
	struct gcn_dispatch d = { .env = &env };
	struct gcn_save_area area = save_area();
	struct gcn_packet packet = {
		.kernel = (uintptr_t)failing, .arguments = (uintptr_t)m, .workgroup = { 256, 1, 1 }, .grid = { 512, 1, 1 },
	};
	u64 *named = (u64 *)(handler + GCN_PAGE);
	int err;

	*m = (struct failing_memory){ .arguments = { (uintptr_t)&m->gate, (uintptr_t)&m->went_on } };
	named[0] = tells ? (uintptr_t)failing + HANDLER_AT : 0;
	named[1] = tells ? (uintptr_t)&m->trapped : 0;
	env.doorbell = DOORBELL;
	env.interrupt = driver_told;
	nr_told = 0;
	assert_int_equal(gcn_dispatch_start(&d, &packet), 0);
	assert_int_equal(gcn_dispatch_run(&d, 50), -EAGAIN);
	assert_int_equal(preempt(&d, &area), 0);
	m->gate = 1;
	while ((err = gcn_dispatch_run(&d, 50)) == -EAGAIN)
		;
	gcn_dispatch_end(&d);
	assert_int_equal(err, 0);
	named[0] = named[1] = 0;
	return m;
}

TEST(the_drivers_handler_alone_lets_a_failed_assertion_go_on)
{
	struct failing_memory *m;

	if (!handler && !handler_read())
		skip();
	m = failing_run(false);
	assert_int_equal(m->trapped, 0);
	assert_int_equal(m->went_on, 1);
}

TEST(a_second_handler_tells_of_a_failed_assertion)
{
	struct failing_memory *m;

	if (!handler && !handler_read())
		skip();
	m = failing_run(true);
	assert_int_equal(m->trapped, 2);
	assert_int_equal(m->went_on, 0);
	assert_int_equal(nr_told, 8); /* each wave */
}

/* What was saved is damaged: nothing of it is believed that does not fit the save area. */
TEST(a_damaged_control_stack_is_refused)
{
	struct gcn_dispatch d = { .env = &env };
	struct gcn_save_area area = save_area(), again;
	struct gcn_packet packet = busy_packet(busy_setup());
	unsigned int refused = 0;
	u8 saved[STACK_BYTES];

	if (!handler && !handler_read())
		skip();
	assert_int_equal(gcn_dispatch_start(&d, &packet), 0);
	assert_int_equal(gcn_dispatch_run(&d, 50), -EAGAIN);
	assert_int_equal(gcn_dispatch_save(&d, &area), 0);
	assert_true(area.stack_at < STACK_BYTES);
	memcpy(saved, stack, sizeof(saved));
	for (u32 i = area.stack_at + 8; i < STACK_BYTES; i += 4) {
		memcpy(stack, saved, sizeof(saved));
		*(u32 *)(stack + i) ^= 0x800fffff;
		again = area;
		refused += gcn_dispatch_load(&d, &again) == -EFAULT;
		gcn_dispatch_end(&d);
	}
	assert_int_equal(refused, (STACK_BYTES - area.stack_at - 8) / 4);
	memcpy(stack, saved, sizeof(saved));
	assert_int_equal(gcn_dispatch_load(&d, &area), 0);
	gcn_dispatch_end(&d);
}

/* ---- what cannot be executed ---- */

/* Begins a kernel of one wave, whose code these words are. */
static void start_words(struct gcn_dispatch *d, const u32 *words, size_t bytes)
{
	struct gcn_kernel *k = (struct gcn_kernel *)(memory + GCN_PAGE);
	struct gcn_packet packet = { .kernel = (uintptr_t)k, .workgroup = { 64, 1, 1 }, .grid = { 64, 1, 1 } };

	*k = (struct gcn_kernel){ .entry = 256, .rsrc1 = GCN_MODE_FLOAT << 12, .properties = 1 /* private memory */ };
	memcpy(memory + GCN_PAGE + 256, words, bytes);
	assert_int_equal(gcn_dispatch_start(d, &packet), 0);
}

/* Why it stops. */
static struct gcn_error run_words_as(bool is_code, const u32 *words, size_t bytes)
{
	struct gcn_dispatch d = { .env = &env };

	start_words(&d, words, bytes);
	memory_is_code = is_code;
	assert_int_equal(gcn_dispatch_run(&d, 100), -EFAULT);
	memory_is_code = false;
	gcn_dispatch_end(&d);
	return d.error;
}

static struct gcn_error run_words(const u32 *words, size_t bytes)
{
	return run_words_as(true, words, bytes);
}

TEST(code_is_executed_only_from_pages_for_it)
{
	const u32 words[] = { 0xbf810000 };
	struct gcn_error error = run_words_as(false, words, sizeof(words));

	assert_true(error.is_address);
	assert_int_equal(error.value, (uintptr_t)memory + GCN_PAGE + 256);
}

TEST(an_unknown_instruction_stops_the_wave)
{
	const u32 words[] = { 0xbf800000 /* s_nop */, 0x7e00a002 /* v_exp_f16 or so */, 0xbf810000 };
	struct gcn_error error = run_words(words, sizeof(words));

	assert_false(error.is_address);
	assert_string_equal(error.name, "VOP1");
	assert_int_equal(error.pc, (uintptr_t)memory + GCN_PAGE + 256 + 4);
	assert_int_equal(error.w[0], 0x7e00a002);
}

static struct gcn_error was_illegal;

static void illegal(struct gcn_env *from, const struct gcn_error *error)
{
	assert_ptr_equal(from, &env);
	was_illegal = *error;
}

/* The driver's handler goes on to a second one, which sees an exception, tells the driver and ends the wave. */
TEST(a_trap_handler_hears_of_an_unknown_instruction)
{
	const u32 words[] = { 0xbf800000 /* s_nop */, 0x7e00a002, 0xbf810000 };
	u32 *trapped = (u32 *)(memory + 2 * GCN_PAGE);
	struct gcn_dispatch d = { .env = &env };
	u64 *named = (u64 *)(handler + GCN_PAGE);
	int err;

	if (!handler && !handler_read())
		skip();
	named[0] = (uintptr_t)failing + HANDLER_AT;
	named[1] = (uintptr_t)trapped;
	env.illegal = illegal;
	nr_told = 0;
	start_words(&d, words, sizeof(words));
	memory_is_code = true;
	while ((err = gcn_dispatch_run(&d, 100)) == -EAGAIN)
		;
	memory_is_code = false;
	env.illegal = NULL;
	named[0] = named[1] = 0;
	gcn_dispatch_end(&d);
	assert_int_equal(err, 0);
	assert_int_equal(*trapped, 0xff);
	assert_int_equal(nr_told, 1);
	assert_int_equal(was_illegal.w[0], 0x7e00a002);
}

TEST(modes_that_are_not_there_stop_the_wave)
{
	/* s_setreg_imm32_b32 of the rounding; v_and_b32 with clamp; a message of graphics */
	const u32 rounding[] = { 0xba000000 | 0x1801, 1, 0xbf810000 }, clamp[] = { 0xd1138000, 0x00020000, 0xbf810000 };
	const u32 message[] = { 0xbf900002, 0xbf810000 };

	assert_string_equal(run_words(rounding, sizeof(rounding)).name, "s_setreg_imm32_b32");
	assert_string_equal(run_words(clamp, sizeof(clamp)).name, "VOP3");
	assert_string_equal(run_words(message, sizeof(message)).name, "s_sendmsg");
}

TEST(vector_instructions_are_left_out_when_asked)
{
	/* s_setvskip 1, 0; global_load_dword v0, v[0:1], off, of address 0 or so; s_setvskip 0, 0 */
	const u32 words[] = { 0xbf108081, 0xdc508000, 0x007f0000, 0xbf108080, 0xbf810000 };
	struct gcn_dispatch d = { .env = &env };

	start_words(&d, words, sizeof(words));
	memory_is_code = true;
	assert_int_equal(gcn_dispatch_run(&d, 100), 0);
	memory_is_code = false;
	gcn_dispatch_end(&d);
	assert_true(run_words(words + 1, sizeof(words) - 4).is_address);
}

TEST(a_halted_wave_is_saved_and_stays_halted)
{
	/* s_setreg_imm32_b32 of STATUS.HALT */
	const u32 words[] = { 0xba000000 | 13 << 6 | 2, 1, 0xbf810000 };
	struct gcn_dispatch d = { .env = &env };
	struct gcn_save_area area = save_area();

	if (!handler && !handler_read())
		skip();
	start_words(&d, words, sizeof(words));
	memory_is_code = true;
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(gcn_dispatch_run(&d, 10000), -EAGAIN);
		assert_int_equal(preempt(&d, &area), 0);
	}
	assert_int_equal(gcn_dispatch_run(&d, 10000), -EAGAIN);
	d.groups[0].waves[0]->status &= ~(u32)GCN_STATUS_HALT;
	assert_int_equal(gcn_dispatch_run(&d, 10000), 0);
	memory_is_code = false;
	assert_null(d.error.what);
	gcn_dispatch_end(&d);
}

TEST(an_address_that_is_not_there_stops_the_wave)
{
	/* s_load_dword s4, s[2:3], 0x7c; the registers are 0 */
	const u32 words[] = { 0xc0020101, 0x7c, 0xbf810000 };
	struct gcn_error error = run_words(words, sizeof(words));

	assert_true(error.is_address);
	assert_int_equal(error.value, 0x7c);
	assert_string_equal(error.name, "s_load_dword");
}

TEST(a_negative_address_of_lds_wraps_with_its_offset)
{
	/* v_mov_b32 v0, -4; v_mov_b32 v1, 7; ds_write_b32 v0, v1 offset:8 */
	const u32 words[] = { 0x7e0002c4, 0x7e020287, 0xd81a0008, 0x00000100, 0xbf810000 };
	struct gcn_dispatch d = { .env = &env };

	start_words(&d, words, sizeof(words));
	d.packet.lds_size = 512;
	memory_is_code = true;
	assert_int_equal(gcn_dispatch_run(&d, 3), -EAGAIN);
	memory_is_code = false;
	assert_int_equal(d.groups[0].lds[4], 7);
	gcn_dispatch_end(&d);
}

/* Two words that are always the same, in pairs: an access of eight bytes is seen as a whole, by the wave and by the processor. */
#define ROUNDS 100000u

struct pairs {
	u64 in[2], unused[6], out[2], unused2[6];
	u32 torn;
	bool end;
};

static void *pairs_write_and_look(void *arg)
{
	struct pairs *p = arg;
	uintptr_t torn = 0;

	for (u64 n = 0; !__atomic_load_n(&p->end, __ATOMIC_RELAXED); n++) {
		for (unsigned int i = 0; i < 2; i++) {
			u64 x = __atomic_load_n(&p->out[i], __ATOMIC_RELAXED);

			torn += x >> 32 != (u32)x;
			__atomic_store_n(&p->in[i], (u32)n | n << 32, __ATOMIC_RELAXED);
		}
	}
	return (void *)torn;
}

TEST(eight_bytes_are_one_access)
{
	struct pairs *p = memset(memory, 0, sizeof(*p));
	const u32 words[] = {
		0xbe8400ff, (u32)(uintptr_t)p, 0xbe8500ff, (u32)((uintptr_t)p >> 32), /* s[4:5] = p */
		0xbe8600ff, ROUNDS, 0xbe880180, /* s6 = ROUNDS, s[8:9] = 0 */
		0x7e000204, 0x7e020205, 0x7e100280, /* v[0:1] = p, v8 = 0 */
		0xdc5c8000, 0x047f0000, 0xbf8c0f70, /* global_load_dwordx4 v[4:7], v[0:1], off */
		0x7d9a0b04, 0x87886a08, 0x7d9a0f06, 0x87886a08, /* s[8:9] |= v4 != v5 || v6 != v7 */
		0x68101081, 0x7e120308, 0x7e140308, 0x7e160308, /* v8++, v9, v10, v11 = v8 */
		0xdc7c8040, 0x007f0800, /* global_store_dwordx4 v[0:1], v[8:11], off offset:64 */
		0x80868106, 0xbf078006, 0xbf85fff0, /* again while --s6 */
		0x7e040208, 0xdc708080, 0x007f0200, 0xbf810000, /* torn = s8 */
	};
	struct gcn_dispatch d = { .env = &env };
	pthread_t thread;
	void *torn;
	int err;

	assert_int_equal(pthread_create(&thread, NULL, pairs_write_and_look, p), 0);
	while (!__atomic_load_n(&p->in[1], __ATOMIC_RELAXED))
		sched_yield();
	start_words(&d, words, sizeof(words));
	memory_is_code = true;
	do
		err = gcn_dispatch_run(&d, 10000);
	while (err == -EAGAIN);
	memory_is_code = false;
	gcn_dispatch_end(&d);
	__atomic_store_n(&p->end, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, &torn), 0);
	assert_int_equal(err, 0);
	assert_int_equal(p->out[0] >> 32, ROUNDS);
	assert_int_equal(p->torn, 0);
	assert_null(torn);
}

TEST(private_memory_stops_the_wave)
{
	/* buffer_store_dword v0, off, s[0:3], 0 */
	const u32 words[] = { 0xe0700000, 0x80000000, 0xbf810000 };
	struct gcn_error error = run_words(words, sizeof(words));

	assert_string_equal(error.what, "private memory is accessed");
	assert_string_equal(error.name, "buffer_store_dword");
}

/* ---- what of the tables has been executed ---- */

static const struct gcn_op *op_of(enum gcn_format format, unsigned int n)
{
	if (format <= SOPP)
		return gcn_scalar_op(format, n);
	if (format >= VOP2 && format <= VOP3P)
		return gcn_vector_op(format, n);
	return n < 0x100 ? gcn_memory_op(format, n) : NULL;
}

#define EXECUTED_BY_PROGRAMS 380u /* at least: a compiler may choose others */

TEST(most_instructions_have_been_executed)
{
	unsigned int nr = 0, nr_executed = 0;
	const struct gcn_op *op;

	for (unsigned int f = 0; f < GCN_FORMATS; f++) {
		for (unsigned int n = 0; n < 0x400; n++) {
			op = op_of(f, n);
			if (!op)
				continue;
			nr++;
			if (*executed_slot(op->name))
				nr_executed++;
			else if (getenv("GCN_SHOW"))
				print_message("%s\n", op->name);
		}
	}
	print_message("%u of %u instructions have been executed\n", nr_executed, nr);
	assert_true(nr_executed >= EXECUTED_BY_PROGRAMS);
}

UNIT_MAIN(setup, teardown)
