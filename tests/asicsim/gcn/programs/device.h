/* SPDX-License-Identifier: GPL-2.0-only */
/* Words for code of the GPU, in OpenCL's C without its library. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef signed char s8;
typedef short s16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long u64;
typedef long s64;
typedef float f32;
typedef double f64;

#define GROUP	  256
#define KERNEL	  kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#define ITEM	  __builtin_amdgcn_workitem_id_x()
#define GROUP_ID  __builtin_amdgcn_workgroup_id_x()
#define GLOBAL_ID (GROUP_ID * GROUP + ITEM)
#define BARRIER()                                                      \
	do {                                                           \
		__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); \
		__builtin_amdgcn_s_barrier();                          \
		__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); \
	} while (0)
