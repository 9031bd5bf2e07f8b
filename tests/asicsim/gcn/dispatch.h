/* SPDX-License-Identifier: GPL-2.0-only */
/* What CP and SPI do: a packet's kernel in groups of waves, which are saved and come back when a queue is preempted. */
#ifndef GCN_DISPATCH_H
#define GCN_DISPATCH_H

#include "gcn.h"

struct gcn_packet {
	u64 va;	   /* where the packet is */
	u64 queue; /* the runtime's description of the queue */
	u64 kernel, arguments;
	u32 workgroup[3], grid[3];
	u32 lds_size;
	/* Private memory that the runtime has allocated for the queue's waves; its buffer as the shader has it in registers. */
	u64 private_base;
	u32 private_buffer[4];
	u32 private_wave_bytes, private_waves; /* 0: the kernel has none */
	u32 private_size;		       /* of an item, as the packet says */
};

/* A kernel's descriptor. */
struct gcn_kernel {
	u32 lds_size, private_size, arguments_size, reserved0;
	s64 entry;
	u8 reserved1[20];
	u32 rsrc3, rsrc1, rsrc2;
	u16 properties, reserved2[3];
};

struct gcn_dispatch {
	struct gcn_env *env;
	struct gcn_packet packet;
	struct gcn_kernel kernel;
	u32 nr_groups[3];
	u64 next; /* group to launch */
	struct gcn_group groups[GCN_MAX_GROUPS];
	struct gcn_error error; /* why it cannot go on */
};

/* Where the state of waves goes: a process's memory, and the control stack that belongs to the driver. */
struct gcn_save_area {
	u64 va;
	u32 size;
	u8 *stack;
	u32 stack_size;
	u32 stack_at, area_at; /* as the MQD has them: both at the stack's size when nothing is saved */
};

/* ---- dispatch.c: 0, -ENOMEM, or -EFAULT with d->error ---- */

/* @d is all zeros but for env. Nothing is launched yet. */
int gcn_dispatch_start(struct gcn_dispatch *d, const struct gcn_packet *packet);
/* Every wave does up to @steps: -EAGAIN as long as there is more to do. */
int gcn_dispatch_run(struct gcn_dispatch *d, unsigned int steps);
/* Frees what is left. */
void gcn_dispatch_end(struct gcn_dispatch *d);

int gcn_dispatch_fail(struct gcn_dispatch *d, const char *what, u64 value);
/* Sizes as registers and the control stack have them: blocks of VGPRs and of SGPRs less one. */
int gcn_group_alloc(struct gcn_dispatch *d, struct gcn_group *g, unsigned int nr_waves, u32 lds_size, u32 vgpr_blocks);
void gcn_group_free(struct gcn_group *g);
/* NULL: no memory */
struct gcn_wave *gcn_wave_alloc(struct gcn_env *env, u32 vgpr_blocks);
void gcn_pool_free(struct gcn_pool *pool);
void gcn_wave_init(struct gcn_wave *w, u32 vgpr_blocks, u32 sgpr_blocks);
unsigned int gcn_wave_run(struct gcn_wave *w, unsigned int steps);

/* ---- cwsr.c: the same ---- */

/* Lets the driver's trap handler save all waves, and forgets them. */
int gcn_dispatch_save(struct gcn_dispatch *d, struct gcn_save_area *area);
/* Makes waves that restore themselves. */
int gcn_dispatch_load(struct gcn_dispatch *d, struct gcn_save_area *area);

#endif
