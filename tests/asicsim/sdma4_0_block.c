// SPDX-License-Identifier: GPL-2.0-only
/* The SDMA block of an MI100. */
#include "amdgpu.h"
#include "amdgpu_sdma.h"

#define amdgpu_sdma_init_microcode(...) 0
#define sdma_v4_0_ip_funcs		real_sdma_v4_0_ip_funcs
#define sdma_v4_0_ip_block		real_sdma_v4_0_ip_block
#define sdma_v4_0_ras_hw_ops		real_sdma_v4_0_ras_hw_ops
#include "sdma_v4_0.c"

#define REAL(name) sdma_v4_0_##name
#include "sdma_block.h"

/* Of another chip's file, which sdma_v4_0.c names. */
struct amdgpu_sdma_ras sdma_v4_4_ras;

const struct amdgpu_ip_block_version chip_sdma4_0_block = {
	.type = AMD_IP_BLOCK_TYPE_SDMA,
	.major = 4,
	.funcs = &sdma_funcs,
};
