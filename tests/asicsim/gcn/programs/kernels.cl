// SPDX-License-Identifier: GPL-2.0-only
/* Code for gfx908, compiled when the tests are. Kernels are found by their order. */
#include "device.h"
#include "numbers.h"
#include "common.h"

/* Each lane its own values. */
#define L(name, expression)                                           \
	KERNEL void lane_##name(global u64 *out, global const u64 *in) \
	{                                                             \
		u32 i = GLOBAL_ID;                                    \
		u64 a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2]; \
		(void)a, (void)b, (void)c;                            \
		out[i] = (expression);                                \
	}
#include "lanes.h"
#undef L

/* The values are those of a whole group: the compiler chooses scalar instructions where there are any. */
#define L(name, expression)                                             \
	KERNEL void scalar_##name(global u64 *out, global const u64 *in) \
	{                                                               \
		u32 i = GROUP_ID;                                       \
		u64 a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2]; \
		(void)a, (void)b, (void)c;                              \
		out[i] = (expression);                                  \
	}
#include "lanes.h"
#undef L

/* What the processor has no words for: lanes that look at each other. 16 results each. */
KERNEL void cross(global u32 *out, global const u32 *in)
{
	u32 x = in[GLOBAL_ID], lane = ITEM & 63;
	global u32 *to = out + 16 * GLOBAL_ID;

	to[0] = __builtin_amdgcn_readfirstlane(x);
	to[1] = __builtin_amdgcn_readlane(x, in[0] & 63);
	to[2] = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 7));
	to[3] = (u32)__builtin_amdgcn_ds_bpermute((s32)(x << 2), (s32)x);
	to[4] = (u32)__builtin_amdgcn_ds_permute((s32)((lane ^ 21) << 2), (s32)x);
	to[5] = (u32)__builtin_amdgcn_update_dpp(77, (s32)x, 0x1b, 0xf, 0xf, false); /* quad_perm 3, 2, 1, 0 */
	to[6] = (u32)__builtin_amdgcn_update_dpp(77, (s32)x, 0x111, 0xf, 0xf, false); /* row_shr 1 */
	to[7] = (u32)__builtin_amdgcn_update_dpp(77, (s32)x, 0x103, 0xf, 0xf, true); /* row_shl 3, 0 from outside */
	to[8] = (u32)__builtin_amdgcn_update_dpp(77, (s32)x, 0x124, 0xf, 0xf, false); /* row_ror 4 */
	to[9] = (u32)__builtin_amdgcn_update_dpp(77, (s32)x, 0x138, 0xf, 0xf, false); /* wave_shr 1 */
	to[10] = (u32)__builtin_amdgcn_update_dpp(77, (s32)x, 0x142, 0xa, 0xf, false); /* bcast 15 to rows 1 and 3 */
	to[11] = (u32)__builtin_amdgcn_update_dpp(77, (s32)x, 0x143, 0xc, 0xf, false); /* bcast 31 to rows 2 and 3 */
	to[12] = (u32)__builtin_amdgcn_update_dpp(77, (s32)x, 0x141, 0xf, 0x3, false); /* half_mirror, half the banks */
	to[13] = (u32)(__builtin_amdgcn_uicmp(x, in[0], 34) >> (lane & 32)); /* greater than */
	to[14] = __builtin_amdgcn_perm(x, in[0], 0x0c0d0206);
	to[15] = (u32)__builtin_amdgcn_update_dpp(77, (s32)x, 0x140, 0xf, 0xf, false); /* row_mirror */
}

struct three {
	u32 x, y, z;
};

/* All sizes of memory accesses, also those that are not aligned, by global and by flat addresses. */
KERNEL void sizes(global u8 *out, global const u8 *in)
{
	u32 i = GLOBAL_ID;
	global u8 *to = out + 64 * i;
	global const u8 *from = in + 64 * i;
	const u8 *flat = from;

	to[0] = from[1];
	to[1] = from[0];
	*(global u16 *)(to + 2) = *(global const u16 *)(from + 2);
	*(global s32 *)(to + 4) = *(global const s8 *)(from + 4);
	*(global s32 *)(to + 8) = *(global const s16 *)(from + 6);
	*(global u8 *)(to + 12) = *(global const u32 *)(from + 8) >> 16;
	*(global u16 *)(to + 14) = *(global const u32 *)(from + 8) >> 16;
	*(global struct three *)(to + 16) = *(global const struct three *)(from + 16);
	*(global uint4 *)(to + 32) = *(const uint4 *)(flat + 32);
	*(global u64 *)(to + 48) = *(global const u64 *)(from + 48);
	*(global u32 *)(to + 56) = *(const u8 *)(flat + 56) + *(const u16 *)(flat + 58);
	*(global u32 *)(to + 60) = *(const u32 *)(flat + 60);
}

/* Atomic operations on LDS and on memory, some with what was there before. */
#define ATOMICS(space, p, q, x)                                                                            \
	do {                                                                                               \
		__atomic_fetch_add((space u32 *)(p) + 0, (u32)(x), __ATOMIC_RELAXED);                      \
		__atomic_fetch_sub((space u32 *)(p) + 1, (u32)(x), __ATOMIC_RELAXED);                      \
		__atomic_fetch_and((space u32 *)(p) + 2, (u32)(x) | 0xff, __ATOMIC_RELAXED);               \
		__atomic_fetch_or((space u32 *)(p) + 3, (u32)(x) & 0xff, __ATOMIC_RELAXED);                \
		__atomic_fetch_xor((space u32 *)(p) + 4, (u32)(x), __ATOMIC_RELAXED);                      \
		__atomic_fetch_min((space u32 *)(p) + 5, (u32)(x), __ATOMIC_RELAXED);                      \
		__atomic_fetch_max((space u32 *)(p) + 6, (u32)(x), __ATOMIC_RELAXED);                      \
		__atomic_fetch_min((space s32 *)(p) + 7, (s32)(x), __ATOMIC_RELAXED);                      \
		__atomic_fetch_max((space s32 *)(p) + 8, (s32)(x), __ATOMIC_RELAXED);                      \
		__atomic_fetch_add((space u64 *)(q) + 0, (x), __ATOMIC_RELAXED);                           \
		__atomic_fetch_sub((space u64 *)(q) + 1, (x), __ATOMIC_RELAXED);                           \
		__atomic_fetch_and((space u64 *)(q) + 2, (x) | 0xff, __ATOMIC_RELAXED);                    \
		__atomic_fetch_or((space u64 *)(q) + 3, (x) & 0xff, __ATOMIC_RELAXED);                     \
		__atomic_fetch_xor((space u64 *)(q) + 4, (x), __ATOMIC_RELAXED);                           \
		__atomic_fetch_min((space u64 *)(q) + 5, (x), __ATOMIC_RELAXED);                           \
		__atomic_fetch_max((space u64 *)(q) + 6, (x), __ATOMIC_RELAXED);                           \
		__atomic_fetch_min((space s64 *)(q) + 7, (s64)(x), __ATOMIC_RELAXED);                      \
		__atomic_fetch_max((space s64 *)(q) + 8, (s64)(x), __ATOMIC_RELAXED);                      \
	} while (0)

KERNEL void atomics(global u32 *out32, global u64 *out64, global const u64 *in, global u32 *tickets)
{
	local u32 narrow[16];
	local u64 wide[16];
	u64 x = in[GLOBAL_ID];
	u32 ticket, old;

	if (ITEM < 16) {
		narrow[ITEM] = 0;
		wide[ITEM] = 0;
	}
	BARRIER();
	ATOMICS(global, out32, out64, x);
	ATOMICS(local, narrow, wide, x);
	/* Each ticket once; the last slot is a lock that all take in turn. */
	ticket = __atomic_fetch_add(narrow + 15, 1, __ATOMIC_RELAXED);
	ticket += (u32)__atomic_fetch_add(wide + 15, 1000, __ATOMIC_RELAXED) % 1;
	tickets[GROUP_ID * GROUP + ticket] = __atomic_exchange_n(narrow + 14, ITEM + 1, __ATOMIC_RELAXED);
	do
		old = __atomic_load_n(out32 + 15, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(out32 + 15, &old, old + 3, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	do
		old = narrow[13];
	while (!__atomic_compare_exchange_n(narrow + 13, &old, old + 5, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	__atomic_exchange_n(out64 + 14, x, __ATOMIC_RELAXED);
	BARRIER();
	/* Every group has the same in LDS as the others but for its items: the sum of all is in the global ones. */
	if (ITEM < 9) {
		__atomic_fetch_add(out32 + 16 + ITEM, narrow[ITEM], __ATOMIC_RELAXED);
		__atomic_fetch_xor(out64 + 16 + ITEM, wide[ITEM], __ATOMIC_RELAXED);
	}
	if (!ITEM)
		__atomic_fetch_add(out32 + 14, narrow[13], __ATOMIC_RELAXED);
}

/* What each operation found there, of a place that no other item uses: the order is certain. */
#define CHAIN(U, S, space, p, x)                                                                              \
	do {                                                                                                  \
		U expected = (U)(x) + 5;                                                                      \
		sum = sum * 31 + __atomic_fetch_add((space U *)(p), (U)(x), __ATOMIC_RELAXED);                \
		sum = sum * 31 + __atomic_fetch_sub((space U *)(p), (U)(x) * 3, __ATOMIC_RELAXED);            \
		sum = sum * 31 + __atomic_fetch_and((space U *)(p), (U)(x) | 0xff00, __ATOMIC_RELAXED);       \
		sum = sum * 31 + __atomic_fetch_or((space U *)(p), (U)(x) & 0xff, __ATOMIC_RELAXED);          \
		sum = sum * 31 + __atomic_fetch_xor((space U *)(p), (U)(x), __ATOMIC_RELAXED);                \
		sum = sum * 31 + __atomic_fetch_min((space U *)(p), (U)(x), __ATOMIC_RELAXED);                \
		sum = sum * 31 + __atomic_fetch_max((space U *)(p), (U)(x) / 2, __ATOMIC_RELAXED);            \
		sum = sum * 31 + (U)__atomic_fetch_min((space S *)(p), (S)(x) + 1, __ATOMIC_RELAXED);         \
		sum = sum * 31 + (U)__atomic_fetch_max((space S *)(p), (S)(x) - 1, __ATOMIC_RELAXED);         \
		sum = sum * 31 + __atomic_exchange_n((space U *)(p), (U)(x) + 5, __ATOMIC_RELAXED);           \
		sum += __atomic_compare_exchange_n((space U *)(p), &expected, 9, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
		sum = sum * 31 + __atomic_load_n((space U *)(p), __ATOMIC_RELAXED);                           \
	} while (0)

KERNEL void chains(global u64 *out, global const u64 *in, global u32 *narrow, global u64 *wide)
{
	local u32 lds_narrow[GROUP];
	local u64 lds_wide[GROUP];
	u32 i = GLOBAL_ID;
	u64 x = in[i], sum = 0;

	lds_narrow[ITEM] = narrow[i];
	lds_wide[ITEM] = wide[i];
	CHAIN(u32, s32, global, narrow + i, x);
	CHAIN(u64, s64, global, wide + i, x);
	CHAIN(u32, s32, local, lds_narrow + ITEM, x);
	CHAIN(u64, s64, local, lds_wide + ITEM, x);
	out[i] = sum;
}

/* LDS in all sizes: every item writes 64 bytes, and reads those of another one. */
KERNEL void lds(global u8 *out, global const u8 *in)
{
	local u8 bytes[64 * GROUP] __attribute__((aligned(16)));
	local u32 words[4 * GROUP];
	local u64 longs[2 * GROUP];
	u32 i = GLOBAL_ID, other = (ITEM + 77) % GROUP;
	global u8 *to = out + 64 * i;
	global const u8 *from = in + 64 * i;
	local u8 *at = bytes + 64 * ITEM;

	at[0] = from[0];
	at[1] = from[1];
	*(local u16 *)(at + 2) = *(global const u16 *)(from + 2);
	*(local u32 *)(at + 4) = *(global const u32 *)(from + 4);
	*(local u64 *)(at + 8) = *(global const u64 *)(from + 8);
	*(local uint4 *)(at + 16) = *(global const uint4 *)(from + 16);
	words[ITEM] = *(global const u32 *)(from + 32);
	words[ITEM + 2 * GROUP] = *(global const u32 *)(from + 36);
	longs[ITEM] = *(global const u64 *)(from + 40);
	longs[ITEM + GROUP] = *(global const u64 *)(from + 48);
	BARRIER();
	at = bytes + 64 * other;
	*(global s32 *)to = (s32)*(local s8 *)at + at[1];
	*(global s32 *)(to + 4) = (s32)*(local s16 *)(at + 2) + *(local u16 *)(at + 4);
	*(global u64 *)(to + 8) = *(local u64 *)(at + 8);
	*(global uint4 *)(to + 16) = *(local uint4 *)(at + 16);
	*(global u64 *)(to + 32) = (u64)words[other] * words[other + 2 * GROUP];
	*(global u64 *)(to + 40) = longs[other] * longs[other + GROUP];
	*(global u64 *)(to + 48) = (u64)words[ITEM & ~1u] << 32 | words[ITEM | 1];
	*(global u64 *)(to + 56) = longs[ITEM & ~1u] + 3 * longs[ITEM | 1];
}

/* ---- matrices: each wave multiplies one; two words of each of A and B, and C in 32 registers ---- */

typedef f32 vf4 __attribute__((ext_vector_type(4)));
typedef f32 vf16 __attribute__((ext_vector_type(16)));
typedef f32 vf32 __attribute__((ext_vector_type(32)));
typedef s32 vi4 __attribute__((ext_vector_type(4)));
typedef s32 vi16 __attribute__((ext_vector_type(16)));
typedef s32 vi32 __attribute__((ext_vector_type(32)));
typedef f16 vh4 __attribute__((ext_vector_type(4)));
#define A32 f_u(a[0]), f_u(b[0])
#define A64 as_halves(a), as_halves(b)
#define A8  (s32)a[0], (s32)b[0]
#define A16 as_shorts(a[0]), as_shorts(b[0])

static vh4 as_halves(const u32 *x)
{
	union { u32 u[2]; vh4 h; } v = { { x[0], x[1] } };

	return v.h;
}

static vs2 as_shorts(u32 x)
{
	union { u32 u; vs2 s; } v = { x };

	return v.s;
}

#define X(name, rows, products, element, type, nr, arguments)                                     \
	KERNEL void matrix_##name(global u32 *out, global const u32 *in)                          \
	{                                                                                         \
		global const u32 *from = in + GLOBAL_ID * 36;                                     \
		u32 a[2] = { from[0], from[1] }, b[2] = { from[2], from[3] };                     \
		type c;                                                                           \
                                                                                                  \
		for (u32 i = 0; i < nr; i++)                                                      \
			((u32 *)&c)[i] = from[4 + i];                                             \
		c = __builtin_amdgcn_mfma_##name(arguments, c, 0, 0, 0);                          \
		for (u32 i = 0; i < nr; i++)                                                      \
			out[GLOBAL_ID * 32 + i] = ((u32 *)&c)[i];                                 \
	}
#include "matrices.h"
#undef X

/* What compilers choose seldom, if at all: halves of registers in memory and LDS, and buffers with an end. */
KERNEL void halves(global u32 *out, global const u32 *in, u32 bytes)
{
	local u32 words[GROUP];
	u32 i = GLOBAL_ID, lane = ITEM * 4, x = 0x11112222, y = 0x33334444, z, high, low;
	uint4 buffer = { (u32)(u64)in, (u32)((u64)in >> 32) & 0xffff, bytes, 0x27000 };
	u32 at = i * 8;
	global u32 *to = out + 13 * i;
	global const u32 *from = in + 2 * i;
	uint4 four = { 9, 9, 9, 9 };

	__asm__ volatile("global_load_short_d16 %0, %2, off offset:2\n"
			 "global_load_sbyte_d16_hi %1, %2, off\n"
			 "s_waitcnt vmcnt(0)" : "+v"(x), "+v"(y) : "v"(from));
	to[0] = x;
	to[1] = y;
	words[ITEM] = from[0];
	BARRIER();
	low = high = 0x55556666;
	z = from[1];
	__asm__ volatile("ds_read_u16_d16_hi %0, %2 offset:2\n"
			 "ds_read_u8_d16 %1, %2 offset:1\n"
			 "s_waitcnt lgkmcnt(0)\n"
			 "ds_write_b8_d16_hi %2, %3\n"
			 "s_waitcnt lgkmcnt(0)" : "+v"(high), "+v"(low) : "v"(lane), "v"(z) : "memory");
	BARRIER();
	to[2] = high;
	to[3] = low;
	to[4] = words[ITEM];
	to[5] = (u32)__builtin_amdgcn_ds_swizzle((s32)from[0], 0x8000 | 0x1b); /* of four: 3, 2, 1, 0 */
	to[6] = (u32)__builtin_amdgcn_ds_swizzle((s32)from[0], 0x041f); /* xor 1 */
	__asm__ volatile("buffer_load_dwordx2 %0, %1, %2, 0 offen offset:4\n"
			 "s_waitcnt vmcnt(0)" : "=v"(*(uint2 *)&four) : "v"(at), "s"(buffer));
	to[7] = four.x;
	to[8] = four.y;
	x = y = i;
	__asm__ volatile("v_swap_b32 %0, %1" : "+v"(x), "+v"(y));
	x = from[0];
	y = from[1];
	__asm__ volatile("v_swap_b32 %0, %1" : "+v"(x), "+v"(y));
	to[9] = x ^ y << 1;
	x = 0x77778888;
	__asm__ volatile("v_max3_i16 %0, %1, %2, %3 op_sel:[1,0,0,1]" : "+v"(x) : "v"(from[0]), "v"(from[1]), "v"(i));
	to[10] = x;
	to[11] = 0x99990000;
	__asm__ volatile("v_mad_u16 %0, %1, %2, %3" : "+v"(to[11]) : "v"(from[0]), "v"(from[1]), "v"(i));
	x = 0;
	__asm__ volatile("s_mov_b64 s[20:21], exec\n"
			 "v_cmpx_lt_u32 vcc, %1, %2\n"
			 "v_mov_b32 %0, 1\n"
			 "s_mov_b64 exec, s[20:21]" : "+v"(x) : "v"(from[0]), "v"(from[1]) : "vcc", "s20", "s21");
	to[12] = x;
}
