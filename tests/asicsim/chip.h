/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The simulated chip below the real amdgpu: what its files share. A chip is one GPU. Its thread does what hardware does
 * by itself: it runs the kernel's SDMA rings, the scheduler's queue (HIQ) and the queues of user space, with addresses
 * translated by the page tables that the driver wrote.
 */
#ifndef ASICSIM_CHIP_H
#define ASICSIM_CHIP_H

#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "amdgpu.h"
#include "pci_config.h"

#define CHIP_VMIDS	16
#define CHIP_XCCS	8
#define CHIP_FILL_WORDS 1024
/* Of an SDMA queue's midcmd_cntl: the words are those of an IB that was begun. */
#define CHIP_IB_BEGUN	BIT(0)

/* An address space as an engine sees it: VMID 0 is the driver's own, others are walked from their page directory. */
struct chip_vm {
	u32 vmid, pasid;
	u64 pd;
	u32 ih_node;	   /* the die from which its interrupts come */
	bool default_page; /* stands in for each page that is not mapped, as the hub's registers say */
};

/* Packets that a packet points to, as far as they have been run. */
struct chip_ib {
	u64 base;
	u32 *dw, size, at; /* dwords */
	struct chip_vm vm;
};

/* Whoever runs SDMA packets: a ring of the kernel, or a queue of user space. */
struct sdma_run {
	struct chip *chip;
	struct chip_vm vm;
	u32 engine;
	struct amdgpu_ring *ring; /* the kernel's, or NULL */
	struct chip_ib *ib;	  /* NULL within one */
	u64 fault;		  /* address at which the last packet failed */
};

/* What a process has for its shaders: trap handlers, and where LDS is in a flat address. */
struct chip_shaders {
	u64 tba, tma;
	u32 sh_mem_bases;
};

/* A built-in kernel that is running, or was preempted. */
struct chip_wave {
	u64 kernel;    /* 0: none */
	u64 items, at; /* words in all, and done */
	u64 sum;
	u64 args[3];
};

/* A queue of user space that the scheduler has mapped. */
struct chip_queue {
	struct list_head link;
	struct chip_hiq *hiq; /* by whose run list it is mapped */
	struct chip_vm vm;
	bool sdma;
	bool aql;
	bool stopped; /* after a fault */
	u64 mqd_addr;
	u32 engine, id;	     /* sdma */
	u64 base, size;	     /* of the ring, in bytes */
	u64 rptr, rptr_addr; /* rptr is in bytes (sdma) or dwords (compute) */
	u64 *doorbell;
	struct chip_ib ib;
	struct chip_wave wave;
	struct chip_shaders shaders;
	struct chip_code *code; /* a kernel of real code that is running */
	u32 restart[3];		/* its next group, while the queue is not mapped */
	bool wave_is_saved; /* there is a kernel to go on with, in the save area and the control stack */
	/* Of mes.c: the MQD's address by which it was mapped; rptr is worked out from the write index. */
	u64 given_mqd;
	bool derives;
	u64 save_addr;
	u32 save_size, stack_size;
	/* A queue on several XCCs has an MQD, a control stack and a save area for each, at these distances. */
	u32 nr_xccs, mqd_stride;
};

/* The queue in which the driver talks to the scheduler of a partition, whose first XCC is @xcc. */
struct chip_hiq {
	struct chip_queue q;
	bool mapped;
	unsigned int xcc;
	struct chip_vm process; /* whose queues the run list names now */
	struct chip_shaders shaders;
};

/* A ring of the kernel. */
struct chip_ring {
	u64 rptr;  /* dwords */
	bool hung; /* or not started since a reset */
	struct chip_ib ib;
	u64 copied;	/* bytes */
	u64 busy_until; /* ns: a copy takes as long as the chip's rate wants */
};

/* What tells one kind of GPU from another: mi100.c, mi200.c, mi300.c, navi31.c. */
struct chip_model {
	u16 device_id;
	enum amd_asic_type type;
	unsigned int nr_engines;	 /* shader engines of an XCC */
	u32 cus_of_engine;		 /* a bit for each */
	u32 lds_kib;			 /* of a CU */
	unsigned int engines_of_die;	 /* SDMA engines, of which each die counts its own from 0; 0: there is one die */
	const struct amdgpu_ip_block_version *sdma_block;
	u32 sdma_count;			 /* the bits of a copy's or fill's count */
	u32 memory_core; /* version of the graphics core that the memory controller knows; 0: that which there is */
	bool mes;	 /* mes.c maps the queues, control stacks are in the save areas */
	int (*set_ip_versions)(struct amdgpu_device *adev);
	/* What gfx.c does not know of the graphics core; NULL: nothing. */
	void (*set_core)(struct amdgpu_device *adev);
	void (*preset_registers)(struct amdgpu_device *adev, const struct asicsim_config *config);
	void (*init_doorbell_index)(struct amdgpu_device *adev);
	/* Puts @nr_xccs XCCs into each partition; NULL: there are no partitions. */
	int (*partition)(struct amdgpu_device *adev, int nr_xccs);
	/* The interrupt client of an SDMA engine. */
	u32 (*sdma_client)(unsigned int engine);
};

struct chip {
	struct list_head link;
	struct amdgpu_device *adev;
	struct asicsim_config config;
	struct task_struct *thread;
	wait_queue_head_t wait;
	atomic_t kicks;
	/* Held while memory is accessed that page tables name: a TLB flush waits for it. */
	spinlock_t walk_lock;
	/* Held while rings and queues run, and when they come and go. */
	struct mutex queue_lock;
	struct list_head queues;
	u64 *doorbells; /* the BAR */
	void *vram;	/* all of it, however little of it the driver lets the CPU see */
	u64 vram_size;
	struct chip_hiq hiqs[CHIP_XCCS]; /* of each partition, at its first XCC's place */
	bool halted; /* nothing runs; control.c */
	bool reset_held; /* a reset waits; control.c */
	bool slow;   /* each step of the kernel's rings takes some time; control.c */
	u32 mbps;    /* that the kernel's ring of an engine copies, 0: as fast as it can; control.c */
	struct chip_ring rings[AMDGPU_MAX_SDMA_INSTANCES];
	struct irq_work irq;
	spinlock_t ih_lock;
	s64 vram_kib_before, gtt_kib_before;				/* objects.c */
	u32 fill[CHIP_FILL_WORDS] __aligned(8), fill2[CHIP_FILL_WORDS]; /* scratch of the thread */
};

/* ---- chip.c ---- */

/* The chip of a driver's device; NULL before its start and after its end. */
struct chip *chip_of(struct amdgpu_device *adev);
/* Calls @visit for each chip; chips do not come or go meanwhile. It may sleep. */
void chips_each(void (*visit)(struct chip *chip, void *data), void *data);
/* The GPU of the hive of @chip whose memory is the segment @index; NULL: there is none. */
struct chip *chip_of_segment(struct chip *chip, unsigned int index);
/* What configuration space says of @adev. */
void chip_config_read(struct amdgpu_device *adev, struct asicsim_config *config);
int chip_start(struct amdgpu_device *adev);
void chip_stop(struct amdgpu_device *adev);
/* There is something to do. */
void chip_kick(struct amdgpu_device *adev);
/* Forgets queues and what rings have, as a reset of the whole chip does; rings stand still until they are started. */
void chip_reset(struct chip *chip);

/*
 * ---- walk.c: 0, or -EFAULT with the address in *fault (which may be NULL). With a default page an access succeeds all
 * the same, and *fault is set. ----
 */

int chip_read(struct chip *chip, const struct chip_vm *vm, u64 va, void *to, size_t len, u64 *fault);
int chip_write(struct chip *chip, const struct chip_vm *vm, u64 va, const void *from, size_t len, u64 *fault);
int chip_copy(struct chip *chip, const struct chip_vm *vm, u64 dst, u64 src, u64 len, u64 *fault);
extern const struct chip_vm chip_kernel_vm;
/* The kernel's address of a byte whose page has these bits; NULL: there is none. Only under chip->walk_lock. */
void *chip_walk(struct chip *chip, const struct chip_vm *vm, u64 va, u64 bits);

/* ---- sdma.c ---- */

/* Runs the packet at @dw, of which @avail dwords are there: its length in dwords, 0: not complete, or an error.
 * -EAGAIN: it waits. */
int sdma_packet(struct sdma_run *run, const u32 *dw, unsigned int avail);
/* Reads the IB that @run is in, whose base, size and vm are set: 0 or an error, without it. */
int sdma_ib_read(struct sdma_run *run);
/* Goes on with the IB that @run is in: 0 at its end, -EAGAIN when it waits, or an error, with which it ends. */
int sdma_ib_continue(struct sdma_run *run);
void chip_ib_drop(struct chip_ib *ib);

/* ---- wave.c ---- */

/* What the MQD says of the save area. */
void wave_read_mqd(struct chip_queue *q, const void *mqd);
/* Puts a kernel that is running away, for the time that the queue is not mapped. */
void wave_save(struct chip *chip, struct chip_queue *q);
/* Takes it up again: 0, or -EFAULT with the address of what is not as it was left. */
int wave_load(struct chip *chip, struct chip_queue *q, u64 *fault);

/* Says in the MQD whether there is a state to go on from, by its offsets in the control stack and in the save area. */
int wave_set_offsets(struct chip *chip, struct chip_queue *q, u32 stack, u32 area);

/* ---- code.c: kernels of real code, on compute units (gcn) ---- */

struct gcn_packet;
/* Goes on with the packet's kernel, or begins with it: 0: it has ended, -EAGAIN: it has not, or an error. */
int code_run(struct chip *chip, struct chip_queue *q, const struct gcn_packet *packet, u64 *fault);
void code_save(struct chip *chip, struct chip_queue *q);
/* Frees what was kept for kernels to come. */
void code_done(void);

/* ---- ring.c, queue.c, aql.c, scheduler.c: true when something was done ---- */

bool ring_run(struct chip *chip, unsigned int engine);
/* The ring is empty, and runs what comes from now on. */
void ring_start(struct amdgpu_device *adev, unsigned int engine);
/* Before its memory goes: nothing of it is looked at any more when this returns. */
void ring_stop(struct amdgpu_device *adev, unsigned int engine);
bool queue_run(struct chip *chip, struct chip_queue *q);
bool aql_run(struct chip *chip, struct chip_queue *q);
bool scheduler_run(struct chip *chip);

/* @count dwords of the queue's ring buffer, from byte @at on. */
int queue_read(struct chip *chip, struct chip_queue *q, u64 at, u32 *dw, u64 count, u64 *fault);
/* Stops the queue for good, says so in the kernel's log, and tells the driver when an address was wrong. */
void queue_fault(struct chip *chip, struct chip_queue *q, int err, u32 packet, u64 fault);
/* What MAP_QUEUES says, for @hiq's process; the doorbell is the BAR's @doorbell-th dword. */
void queue_map(struct chip *chip, struct chip_hiq *hiq, u64 mqd_addr, u64 wptr_addr, u32 doorbell, bool sdma);
void queue_unmap(struct chip *chip, struct chip_queue *q);
/* Takes a compute queue's ring from its MQD. */
void queue_read_compute_mqd(struct chip_queue *q, const void *mqd);

/* Of the partition whose first XCC is @xcc; other XCCs of a partition have the same queue. */
int scheduler_map(struct chip *chip, unsigned int xcc, const void *mqd, u32 doorbell);
void scheduler_unmap(struct chip *chip, unsigned int xcc);

/* ---- ih.c ---- */

/* An interrupt vector into the IH ring, and the interrupt. */
void chip_interrupt(struct chip *chip, u32 client, u32 source, u32 ring, const struct chip_vm *vm, const u32 data[4]);
/* The memory controller's: nothing is at @va that @vm may access so. */
void chip_vm_fault(struct chip *chip, const struct chip_vm *vm, u64 va);
void chip_irq(struct irq_work *work);

/* ---- model.c, objects.c ---- */

const struct chip_model *chip_model_of(struct amdgpu_device *adev);
void objects_start(void);
void objects_stop(void);

/* ---- control.c ---- */

void control_files(struct dentry *dir);

/* ---- guard.c ---- */

void guards_start(void);
void guards_stop(void);
/* Whether the driver has written behind its buffers: a warning in the kernel's log. */
void guards_check(void);

/* ---- partition.c ---- */

/* How many XCCs work together on a queue, and which partition XCC @xcc is in. */
unsigned int chip_xccs_of_partition(struct chip *chip);
unsigned int chip_partition_of(struct chip *chip, unsigned int xcc);
/* The dies from which interrupts of an SDMA engine and of an XCC come, as the driver numbers them. */
u32 chip_node_of_engine(struct chip *chip, unsigned int engine);
u32 chip_node_of_xcc(struct chip *chip, unsigned int xcc);
/* The engine of the chip that a partition, whose first XCC is @xcc, knows by @engine. */
unsigned int chip_engine_of_partition(struct chip *chip, unsigned int xcc, unsigned int engine);
/* A VMID that @pasid may have in that partition. */
u32 chip_vmid_of(struct chip *chip, unsigned int xcc, u32 pasid);

/* ---- mes.c ---- */

void mes_init(struct amdgpu_device *adev);
/* The part of a MQD that is another one than on gfx9: @q has the rest, of a compute queue. */
void mes_read_mqd(struct chip_queue *q, const void *mqd);
void mes_write_mqd(const struct chip_queue *q, void *mqd);
/* Works out where an AQL queue is that is to run to the packet before @end. */
void mes_derive(struct chip_queue *q, u64 end);

extern const struct chip_model model_mi100, model_mi210, model_mi300x, model_mi350x, model_navi31;
extern const struct amdgpu_ip_block_version chip_common_block, chip_gmc_block, chip_ih_block, chip_gfx_block,
	chip_sdma4_0_block, chip_sdma4_4_2_block;

#endif
