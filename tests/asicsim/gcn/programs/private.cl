// SPDX-License-Identifier: GPL-2.0-only
/*
 * The same kernel as busy.cl, with what it computes in private memory: an array by an index, which is another one in each round
 * and lane, bytes and 64-bit words, and a function that gets pointers to them. Only while no barrier waits is anything in registers.
 */
#include "device.h"

#define KEPT 24

/* A step of the item's word: from the array's place @at to the next one. The bytes are those of @wide in another order. */
static __attribute__((noinline)) u32 next_word(volatile u32 *words, volatile u8 *bytes, u32 at, u32 other)
{
	u32 x = words[at] * 1664525 + other;

	words[(at + 1) % KEPT] = x;
	for (u32 i = 0; i < 4; i++)
		bytes[(i + at) % 8] = (u8)(x >> 8 * i);
	return x;
}

static u32 from_bytes(volatile u8 *bytes, u32 at)
{
	u32 x = 0;

	for (u32 i = 0; i < 4; i++)
		x |= (u32)bytes[(i + at) % 8] << 8 * i;
	return x;
}

KERNEL void busy(global u32 *words, global f64 *sums, global u32 *done, global u32 *rounds, global const u32 *gate, u32 least)
{
	local u32 shared[GROUP], last;
	u32 i = GLOBAL_ID, r = 0, stop, at, x;
	volatile u32 kept[KEPT];
	volatile u8 bytes[8];
	volatile u64 wide[2];
	volatile f64 sum[3];

	kept[i % KEPT] = words[i];
	wide[0] = i;
	sum[i % 3] = 0;
	do {
		at = (i + r) % KEPT;
		shared[ITEM] = kept[at];
		r++;
		if (!ITEM)
			last = r >= least && __atomic_load_n(gate, __ATOMIC_RELAXED);
		BARRIER();
		next_word(kept, bytes, at, shared[(ITEM + 17) % GROUP]);
		stop = last;
		BARRIER();
		x = from_bytes(bytes, at);
		wide[r & 1] = wide[~r & 1] * 6364136223846793005 + x;
		sum[(i + r) % 3] = __builtin_fma(sum[(i + r + 2) % 3], 0.75, (f64)(u32)(wide[r & 1] >> 32));
	} while (!stop);
	words[i] = kept[(i + r) % KEPT];
	sums[i] = sum[(i + r) % 3];
	if (!ITEM)
		rounds[GROUP_ID] = r;
	__atomic_fetch_add(done, 1, __ATOMIC_RELAXED);
}
