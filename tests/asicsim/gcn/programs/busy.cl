// SPDX-License-Identifier: GPL-2.0-only
/* A kernel that takes as long as it is told: LDS, barriers, doubles, 64-bit integers, and atomics at the end. */
#include "device.h"

KERNEL void busy(global u32 *words, global f64 *sums, global u32 *done, u32 rounds)
{
	local u32 shared[GROUP];
	u32 i = GLOBAL_ID, x = words[i];
	f64 sum = 0;
	u64 wide = i;

	for (u32 r = 0; r < rounds; r++) {
		shared[ITEM] = x;
		BARRIER();
		x = x * 1664525 + shared[(ITEM + 17) % GROUP];
		BARRIER();
		wide = wide * 6364136223846793005 + x;
		sum = __builtin_fma(sum, 0.75, (f64)(u32)(wide >> 32));
	}
	words[i] = x;
	sums[i] = sum;
	__atomic_fetch_add(done, 1, __ATOMIC_RELAXED);
}
