// SPDX-License-Identifier: GPL-2.0-only
/*
 * A kernel that runs until it is let go: LDS, barriers, doubles, 64-bit integers, a gate that it looks at in every
 * round, and atomics at the end. Each group says how many rounds it has done.
 */
#include "device.h"

KERNEL void busy(global u32 *words, global f64 *sums, global u32 *done, global u32 *rounds, global const u32 *gate,
		 u32 least)
{
	local u32 shared[GROUP], last;
	u32 i = GLOBAL_ID, x = words[i], r = 0, stop;
	f64 sum = 0;
	u64 wide = i;

	do {
		shared[ITEM] = x;
		r++;
		if (!ITEM)
			last = r >= least && __atomic_load_n(gate, __ATOMIC_RELAXED);
		BARRIER();
		x = x * 1664525 + shared[(ITEM + 17) % GROUP];
		stop = last;
		BARRIER();
		wide = wide * 6364136223846793005 + x;
		sum = __builtin_fma(sum, 0.75, (f64)(u32)(wide >> 32));
	} while (!stop);
	words[i] = x;
	sums[i] = sum;
	if (!ITEM)
		rounds[GROUP_ID] = r;
	__atomic_fetch_add(done, 1, __ATOMIC_RELAXED);
}
