// SPDX-License-Identifier: GPL-2.0-only
/*
 * A kernel whose assertion fails when it is let go, and a trap handler, which stands first in the code: it writes the
 * trap's number where its memory is (TMA), tells the driver which queue's wave has aborted, and ends it. Without a
 * handler the kernel goes on.
 */
#include "device.h"

__asm__(".text\n"
	"	s_bfe_u32 ttmp2, ttmp1, 0x80010\n" /* the number; 0: no trap, but an exception */
	"	s_cmp_eq_u32 ttmp2, 0\n"
	"	s_cselect_b32 ttmp2, 0xff, ttmp2\n"
	"	s_store_dword ttmp2, ttmp[14:15], 0x0 glc\n"
	"	s_dcache_wb\n"
	"	s_waitcnt lgkmcnt(0)\n"
	"	s_mov_b32 exec_lo, 0x80000000\n"
	"	s_sendmsg sendmsg(MSG_GET_DOORBELL)\n"
	"0:	s_nop 7\n"
	"	s_bitcmp1_b32 exec_lo, 31\n"
	"	s_cbranch_scc1 0b\n"
	"	s_and_b32 ttmp2, exec_lo, 0x3ff\n"
	"	s_or_b32 m0, ttmp2, 0x400\n" /* EC_QUEUE_WAVE_ABORT */
	"	s_nop 0\n"
	"	s_sendmsg sendmsg(MSG_INTERRUPT)\n"
	"	s_endpgm\n"
	"	.p2align 8\n");

KERNEL void failing(global const u32 *gate, global u32 *went_on)
{
	while (!__atomic_load_n(gate, __ATOMIC_RELAXED))
		;
	__asm__ volatile("s_trap 2");
	*went_on = 1;
}
