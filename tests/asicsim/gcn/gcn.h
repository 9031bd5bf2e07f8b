/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A compute unit that executes code of gfx908 (GCN, wave64): waves, their groups, and what CP and SPI do with them. It
 * makes no call but to its environment.
 */
#ifndef GCN_H
#define GCN_H

#include "port.h"

#define GCN_LANES      64u
#define GCN_PAGE       4096u
#define GCN_MAX_WAVES  16u /* of a group */
#define GCN_MAX_GROUPS 8u  /* at once */
#define GCN_MAX_SLOTS  (GCN_MAX_GROUPS * GCN_MAX_WAVES)
#define GCN_MAX_LDS    65536u
#define GCN_TLB	       16u
#define GCN_DECODED    512u

/* Scalar registers by their number in an instruction. */
enum { GCN_VCC = 106, GCN_TTMP = 108, GCN_M0 = 124, GCN_EXEC = 126, GCN_SGPRS = 128 };
/* Accumulation registers come behind the others. */
enum { GCN_ACC = 256, GCN_VGPRS = 512 };

enum { GCN_STATUS_PRIV = 1 << 5, GCN_STATUS_EXECZ = 1 << 9, GCN_STATUS_VCCZ = 1 << 10, GCN_STATUS_HALT = 1 << 13 };
enum { GCN_TRAPSTS_SAVECTX = 1 << 10, GCN_TRAPSTS_ILLEGAL = 1 << 11 };
/* To the nearest, and of 16 and 64 bits with denormals: the only modes that there are. Of 32 bits as the mode says. */
enum {
	GCN_MODE_FIXED_MASK = 0xcf,
	GCN_MODE_FIXED = 0xc0,
	GCN_MODE_DENORMALS_IN = 1 << 4,
	GCN_MODE_DENORMALS_OUT = 1 << 5,
	GCN_MODE_FLOAT = 0xf0,
	GCN_MODE_FLOAT_MASK = 0xff,
	GCN_MODE_GPR_IDX = 1 << 27,
	GCN_MODE_VSKIP = 1 << 28,
};

enum gcn_state {
	GCN_RUNS,
	GCN_WAITS, /* at a barrier */
	GCN_ENDED,
	GCN_SAVED,
	GCN_STOPPED, /* for good: error says why */
};

/* Why a wave stopped. */
struct gcn_error {
	const char *what; /* NULL: it did not */
	u64 value;
	bool is_address; /* @value is, of memory that is not there */
	u64 pc;
	u32 w[2];
	const char *name; /* of the instruction */
};

/* A source: registers of all lanes, or one value for all, with which mask is 0; or bits of a mask. */
struct gcn_source {
	const u32 *low, *high;
	u32 mask;
	u64 bits;
};

/* An instruction's sources, and the results of all lanes that take part. */
struct gcn_lanes {
	struct gcn_source source[3];
	u32 changed[3][2][GCN_LANES]; /* a source that is not as in the registers */
	u64 r[GCN_LANES];
	u64 mask, vcc, exec, active; /* a bit of each lane */
	u32 matrix[32][GCN_LANES];
};

struct gcn_env;
struct gcn_group;
struct gcn_inst;

struct gcn_wave {
	u32 v[GCN_VGPRS][GCN_LANES];
	u32 s[GCN_SGPRS + 16]; /* the longest load from the last register on stays within */
	u64 pc;
	u32 mode, status, trapsts, ib_sts, gpr_alloc, lds_alloc;
	bool scc, in_trap;
	bool asks_room; /* for its state */
	bool restores;	/* itself, from its state in the save area */
	bool is_first;	/* of its group, as far as it is saved */
	u32 slot;	/* which part of the queue's private memory is its own */
	enum gcn_state state;
	struct gcn_env *env;
	struct gcn_group *group;
	struct gcn_error error;
};

struct gcn_group {
	struct gcn_wave *waves[GCN_MAX_WAVES];
	unsigned int nr_waves;
	u32 lds_size;
	u8 *lds;
};

/* Memory of waves that have ended, for the next ones: it is large. What is in it does not matter. */
struct gcn_pool {
	struct gcn_wave *waves[GCN_MAX_SLOTS];
	unsigned int nr;
};

enum gcn_access { GCN_READ, GCN_WRITE, GCN_EXECUTE };

/* What lies around: memory, time. It starts as zeros. */
struct gcn_env {
	/* Where the page of the GPU's address @va is, until gcn_forget(); NULL: nothing is there that can be accessed
	 * so. */
	void *(*page)(struct gcn_env *env, u64 va, enum gcn_access access);
	u64 (*clock)(struct gcn_env *env);
	/* Around each run of a few instructions; may be NULL. */
	void (*enter)(struct gcn_env *env);
	void (*leave)(struct gcn_env *env);
	/* A wave's message to the driver: 24 bits; whether its trap handler sends it. NULL: nobody takes it. */
	void (*interrupt)(struct gcn_env *env, u32 data, bool in_trap);
	/* A wave comes to what is not there, and its trap handler is told next; NULL: it stops. */
	void (*illegal)(struct gcn_env *env, const struct gcn_error *error);
	/* Each instruction that is executed, for a test; may be NULL. */
	void (*executed)(struct gcn_env *env, const char *name);
	u64 tba, tma;	  /* trap handlers */
	u32 sh_mem_bases; /* where LDS and private memory are in a flat address */
	u32 doorbell;	  /* the number of the queue's among the process' */
	struct gcn_translation {
		u64 va;
		u8 *at; /* NULL: unused */
		enum gcn_access access;
	} tlb[GCN_TLB + 1];	/* the last is for code */
	struct gcn_lanes lanes; /* of the instruction that is being executed */
	struct gcn_pool *pool;	/* NULL: none */
	/* By their place, valid as long as the dwords are the same; NULL: not kept. */
	struct gcn_inst *decoded;
};

static inline u64 gcn_s64(const struct gcn_wave *w, unsigned int i)
{
	return w->s[i] | (u64)w->s[i + 1] << 32;
}

static inline void gcn_set_s64(struct gcn_wave *w, unsigned int i, u64 x)
{
	w->s[i] = (u32)x;
	w->s[i + 1] = (u32)(x >> 32);
}

/* ---- wave.c ---- */

/* Executes up to @steps instructions, as long as the wave runs: how many. */
unsigned int gcn_run(struct gcn_wave *w, unsigned int steps);
/* The wave shall save itself. */
void gcn_preempt(struct gcn_wave *w);
/* Stops the wave for good: what, and one number. */
void gcn_stop(struct gcn_wave *w, const char *what, u64 value);
u32 gcn_hwreg(struct gcn_wave *w, u32 simm);
void gcn_set_hwreg(struct gcn_wave *w, u32 simm, u32 value);
void gcn_barrier(struct gcn_wave *w);
void gcn_end(struct gcn_wave *w, enum gcn_state state);
void gcn_trap(struct gcn_wave *w, u32 number);
void gcn_return_from_trap(struct gcn_wave *w, u64 pc);
void gcn_message(struct gcn_wave *w, u32 message);

/* ---- memory.c ---- */

/* The environment has changed its page tables, or may. */
void gcn_forget(struct gcn_env *env);
/* 0 or -EFAULT */
int gcn_fetch(struct gcn_env *env, u64 va, u32 *dword);
int gcn_read(struct gcn_env *env, u64 va, void *to, size_t size);
int gcn_write(struct gcn_env *env, u64 va, const void *from, size_t size);
void gcn_stop_at_address(struct gcn_wave *w, u64 va);

#endif
