// SPDX-License-Identifier: GPL-2.0-only
/* The SDMA block of an MI300X. */
#include "amdgpu.h"
#include "amdgpu_sdma.h"

#define amdgpu_sdma_init_microcode(...) 0
#define sdma_v4_4_2_ip_funcs		real_sdma_v4_4_2_ip_funcs
#define sdma_v4_4_2_ip_block		real_sdma_v4_4_2_ip_block
#include "sdma_v4_4_2.c"

#define REAL(name) sdma_v4_4_2_##name
#include "sdma_block.h"

const struct amdgpu_ip_block_version chip_sdma4_4_2_block = {
	.type = AMD_IP_BLOCK_TYPE_SDMA,
	.major = 4,
	.funcs = &sdma_funcs,
};
