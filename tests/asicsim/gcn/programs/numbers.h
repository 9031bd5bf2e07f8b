/* SPDX-License-Identifier: GPL-2.0-only */
/* What lanes.h calls and compilers name differently: here for gfx908; test_gcn.c has the same for the processor. */
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef half f16;

#define fma16(a, b, c)	  __builtin_fmaf16(a, b, c)
#define min16(a, b)	  __builtin_fminf16(a, b)
#define max16(a, b)	  __builtin_fmaxf16(a, b)
#define floor16(a)	  __builtin_floorf16(a)
#define ceil16(a)	  __builtin_ceilf16(a)
#define trunc16(a)	  __builtin_truncf16(a)
#define rint16(a)	  __builtin_rintf16(a)
#define sqrt16(a)	  __builtin_sqrtf16(a)
#define median(a, b, c)	  __builtin_amdgcn_fmed3f(a, b, c)
#define is_of_class(a, b) __builtin_amdgcn_classf(a, b)
#define is_of_class64(a, b) __builtin_amdgcn_class(a, b)
#define frexp_mant(a)	  __builtin_amdgcn_frexp_mantf(a)
#define frexp_exp(a)	  __builtin_amdgcn_frexp_expf(a)
#define frexp_mant64(a)	  __builtin_amdgcn_frexp_mant(a)
#define frexp_exp64(a)	  __builtin_amdgcn_frexp_exp(a)
#define fract(a)	  __builtin_amdgcn_fractf(a)
#define root(a)		  one_source_sqrt(a)
#define power(a)	  __builtin_exp2f(a)
#define logarithm(a)	  __builtin_log2f(a)
#define inverse_root(a)	  __builtin_amdgcn_rsqf(a)
#define sine_of_turns(a)   __builtin_amdgcn_sinf(a)
#define cosine_of_turns(a) __builtin_amdgcn_cosf(a)
#define dot4(a, b, c)	  (u32)__builtin_amdgcn_sdot4((s32)(a), (s32)(b), (s32)(c), false)
#define dot2(a, b, c)	  __builtin_amdgcn_fdot2(as_pair(a), as_pair(b), c, false)

typedef f16 vh2 __attribute__((ext_vector_type(2)));
typedef u16 vu2 __attribute__((ext_vector_type(2)));
typedef s16 vs2 __attribute__((ext_vector_type(2)));

static vh2 as_pair(u32 x)
{
	union { u32 u; vh2 p; } v = { x };

	return v.p;
}

#define PAIRS(name, type, result)                        \
	static u32 name(u32 a, u32 b)                    \
	{                                                \
		union { u32 u; type p; } x = { a }, y = { b }; \
                                                         \
		x.p = (result);                          \
		return x.u;                              \
	}
PAIRS(pair_add, vh2, x.p + y.p)
PAIRS(pair_sub, vh2, x.p - y.p)
PAIRS(pair_mul, vh2, x.p * y.p)
PAIRS(pair_u16_add, vu2, x.p + y.p)
PAIRS(pair_u16_sub, vu2, x.p - y.p)
PAIRS(pair_u16_shl, vu2, x.p << y.p)
PAIRS(pair_u16_shr, vu2, x.p >> y.p)
PAIRS(pair_s16_shr, vs2, x.p >> y.p)

/* One instruction that the compiler does not choose, of two or three sources. */
#define ONE(name, type, format)                                                              \
	static type name(type a, type b)                                                     \
	{                                                                                    \
		type r;                                                                      \
                                                                                             \
		__asm__ volatile(format : "=v"(r) : "v"(a), "v"(b));                         \
		return r;                                                                    \
	}
ONE(clamped_add, f32, "v_add_f32_e64 %0, %1, %2 clamp")
ONE(clamped_u_add, u32, "v_add_u32_e64 %0, %1, %2 clamp")
ONE(clamped_u_sub, u32, "v_sub_u32_e64 %0, %1, %2 clamp")
/* Without denormals of 32 bits. */
ONE(flushed_mul, f32,
    "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0\nv_mul_f32_e32 %0, %1, %2\ns_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3")

static u32 pair_fma(u32 a, u32 b, u32 c)
{
	u32 r;

	__asm__ volatile("v_pk_fma_f16 %0, %1, %2, %3" : "=v"(r) : "v"(a), "v"(b), "v"(c));
	return r;
}

static u32 pair_u16_mad(u32 a, u32 b, u32 c)
{
	u32 r;

	__asm__ volatile("v_pk_mad_u16 %0, %1, %2, %3" : "=v"(r) : "v"(a), "v"(b), "v"(c));
	return r;
}

static f32 one_source_sqrt(f32 a)
{
	f32 r;

	__asm__ volatile("v_sqrt_f32_e32 %0, %1" : "=v"(r) : "v"(a));
	return r;
}
