/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What this build of the driver takes back of the packaged kernel's configuration, and what it adds. The compiler
 * includes it before everything else.
 */
#undef CONFIG_DRM_AMD_DC
#undef CONFIG_DRM_AMD_DC_FP
#undef CONFIG_DRM_AMD_DC_SI
#undef CONFIG_DRM_AMD_ACP
#undef CONFIG_DRM_AMD_ISP
#undef CONFIG_DRM_AMDGPU_SI
#undef CONFIG_DRM_AMDGPU_CIK
#undef CONFIG_VGA_SWITCHEROO

/*
 * Debian's 6.12 has no device-private memory, and therefore leaves SVM out. The driver's SVM code works without; ranges
 * stay in system memory then (migrate.c), as on a GPU whose memory is full.
 */
#ifndef CONFIG_HSA_AMD_SVM
#define CONFIG_HSA_AMD_SVM 1
#endif
