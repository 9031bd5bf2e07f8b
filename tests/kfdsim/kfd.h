/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /dev/kfd of the simulated GPUs: processes, their memory, queues, events,
 * SVM ranges, and what checkpoint and restore do with them.
 *
 * Locks, outer to inner: kfd_processes_lock, kfd_process.lock, kfd_queue.exec_lock
 * or mmap_lock, kfd_pdd.doorbell_lock, the spinlocks. An engine thread holds its
 * exec_lock only, a page fault the mmap_lock only.
 */
#ifndef KFDSIM_KFD_H
#define KFDSIM_KFD_H

#include <linux/atomic.h>
#include <linux/idr.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <uapi/linux/kfd_ioctl.h>
#include <drm/drm_client.h>

#include "compat.h"
#include "sim.h"

struct inode;
struct seq_file;
struct task_struct;
struct vm_area_struct;

/* ---- what the kernel's own kfd_ioctl.h has or lacks, by version: layouts of KFD 1.23 ---- */

struct kfdsim_create_queue_args {
	u64 ring_base_address;
	u64 write_pointer_address;
	u64 read_pointer_address;
	u64 doorbell_offset; /* out */
	u32 ring_size;
	u32 gpu_id;
	u32 queue_type;
	u32 queue_percentage;
	u32 queue_priority;
	u32 queue_id; /* out */
	u64 eop_buffer_address;
	u64 eop_buffer_size;
	u64 ctx_save_restore_address;
	u32 ctx_save_restore_size;
	u32 ctl_stack_size;
	u32 sdma_engine_id;	/* since 1.17 */
	u32 metadata_ring_size; /* since 1.22 */
};

struct kfdsim_event_data {
	union {
		struct kfd_hsa_memory_exception_data memory;
		struct kfd_hsa_hw_exception_data hw;
		u64 last_event_age; /* since 1.14 */
	};
	u64 ext;
	u32 event_id;
	u32 pad;
};

struct kfdsim_export_dmabuf_args {
	u64 handle;
	u32 flags;
	u32 dmabuf_fd; /* out */
};

struct kfdsim_runtime_enable_args {
	u64 r_debug;
	u32 mode_mask;
	u32 capabilities_mask; /* out */
};

#define KFDSIM_QUEUE_TYPE_SDMA_BY_ENG_ID 4

/* mmap offsets of /dev/kfd: type in bits 63:62, gpu id in 61:46. */
#define KFD_MMAP_TYPE_SHIFT    62
#define KFD_MMAP_TYPE_MMIO     (0ULL << KFD_MMAP_TYPE_SHIFT)
#define KFD_MMAP_TYPE_RESERVED (1ULL << KFD_MMAP_TYPE_SHIFT)
#define KFD_MMAP_TYPE_EVENTS   (2ULL << KFD_MMAP_TYPE_SHIFT)
#define KFD_MMAP_TYPE_DOORBELL (3ULL << KFD_MMAP_TYPE_SHIFT)
#define KFD_MMAP_TYPE_MASK     (3ULL << KFD_MMAP_TYPE_SHIFT)
#define KFD_MMAP_GPU_ID_SHIFT  46
#define KFD_MMAP_GPU_ID(id)    (((u64)(id)&0xffff) << KFD_MMAP_GPU_ID_SHIFT)
#define KFD_MMAP_GET_GPU_ID(o) ((u32)(((o) >> KFD_MMAP_GPU_ID_SHIFT) & 0xffff))

/* BO handles: gpu id in the high word, number below. */
#define KFD_HANDLE(gpu_id, nr) (((u64)(gpu_id) << 32) | (u32)(nr))
#define KFD_HANDLE_GPU_ID(h)   ((u32)((h) >> 32))
#define KFD_HANDLE_NR(h)       ((u32)(h))

/* Doorbells of a process on one GPU: 1024 of 8 bytes (SOC15 and later, all that is simulated). */
#define KFD_MAX_QUEUES	    1024
#define KFD_DOORBELL_SLICE  (KFD_MAX_QUEUES * sizeof(u64))
#define KFD_DOORBELL_PAGES  (KFD_DOORBELL_SLICE / PAGE_SIZE)
#define KFD_DOORBELL_MIRROR 512

#define KFD_GPUVM_BASE	0x10000ULL
#define KFD_GPUVM_LIMIT ((1ULL << 47) - 1)

#define KFD_SIGNAL_PAGE_SIZE (KFD_SIGNAL_EVENT_LIMIT * 8)
#define KFD_UNSIGNALED	     (~0ULL)

/* ---- one GPU as /dev/kfd sees it (sim_gpu.kfd_priv) ---- */

struct kfd_gpu {
	struct sim_gpu *gpu;
	struct page *mmio;	  /* the page behind MMIO_REMAP */
	struct drm_client_dev client; /* kfd_client.c */
	bool has_client;
	struct mutex lock;	  /* everything below */
	unsigned long *sdma_busy; /* by sdma_id: engine = id % engines, queue = id / engines */
	unsigned long *xgmi_busy;
	unsigned int nr_sdma, nr_xgmi; /* queues of each kind */
	unsigned int nr_queues;	       /* of all processes */
	struct list_head smi_clients;
};

static inline struct kfd_gpu *kfd_gpu(const struct sim_gpu *gpu)
{
	return gpu->kfd_priv;
}

/* ---- processes: one per mm ---- */

/* A GPU in a process. Its place in kfd_process never changes after open, what is in it is under kfd_process.lock. */
struct kfd_pdd {
	struct kfd_process *process;
	struct sim_gpu *gpu;
	unsigned int index;    /* in kfd_process.pdds */
	u32 user_gpu_id;       /* what the process calls this GPU */
	struct file *drm_file; /* the render node given by ACQUIRE_VM or RESTORE */
	struct sim_vm *vm;
	struct idr bos; /* struct kfd_bo by number, from 0 */
	atomic64_t vram_used;
	atomic64_t evicted_ns;
	atomic64_t sdma_us; /* time its SDMA queues were at work */
	bool faulted; /* none of the process' queues on this GPU runs any more */
	u64 evicted_since; /* ktime, 0 when its queues run */
	u64 tba, tma, scratch_va;
	struct mutex doorbell_lock;
	u64 *doorbells;		      /* KFD_DOORBELL_SLICE bytes, NULL until needed */
	unsigned long *doorbell_ids;  /* in use or reserved */
	bool doorbells_mapped;	      /* a CPU may write to them without a fault */
	unsigned int doorbell_seq;    /* counts the faults */
	unsigned long doorbell_pgoff; /* where its doorbells begin in mmap offsets */
	wait_queue_head_t doorbell_wq;
	unsigned int nr_queues;
	unsigned int nr_sdma_queues;
	struct kfd_proc_file *files; /* kfd_procfs.c */
	struct kobject *stats, *counters;
};

struct kfd_process {
	struct kref ref;       /* open files, the mm while it lives, and users */
	struct list_head node; /* kfd_processes; empty once torn down */
	struct mm_struct *mm;  /* mmgrab'bed */
	/* A secondary context is a process object of its own, which one file has and no mm; its primary is the mm's. */
	struct kfd_process *primary; /* NULL: this is it */
	u32 context_id;
	struct ida context_ids; /* of its secondary contexts */
	struct mmu_notifier notifier;
	struct work_struct exit_work, free_work;
	struct task_struct *lead_thread;
	struct inode *inode; /* its address space holds the doorbell mappings, so that they can be zapped */
	struct kobject kobj; /* /sys/class/kfd/kfd/proc/PID */
	struct kobject *queues_dir;
	bool in_sysfs;
	u32 pasid;
	struct kfd_pdd *pdds[SIM_MAX_GPUS];
	unsigned int nr_pdds;

	struct mutex lock;	 /* all that follows, but for what has its own lock */
	bool gone;		 /* the mm is: no new queues */
	struct list_head queues; /* struct kfd_queue, in order of creation */
	DECLARE_BITMAP(queue_ids, KFD_MAX_QUEUES);
	atomic_t evicted;	    /* reasons why no queue may run */
	bool queues_paused;	    /* by CRIU PROCESS_INFO */
	bool notifications_blocked; /* between CRIU RESTORE and RESUME */
	int xnack;
	bool runtime_enabled;

	spinlock_t event_lock; /* the events, their waiters and signal_* */
	struct idr events;
	unsigned int nr_signal_events;
	struct sim_bo *signal_bo; /* given by the process ... */
	u64 *signal_page;	  /* ... or made by the kernel */
	u64 signal_handle;
	u64 signal_size;

	spinlock_t svm_lock;
	struct list_head svm_ranges;   /* sorted, disjoint */
	struct list_head svm_restored; /* CRIU RESTORE puts them here, RESUME applies them */
};

extern struct mutex kfd_processes_lock;
extern struct list_head kfd_processes;

/* The process object of current's mm, made when there is none. The reference is the caller's. ERR_PTR on failure. */
struct kfd_process *kfd_process_open(void);
/* CREATE_PROCESS: a further context of @primary. The reference is the caller's, who ends it by kfd_context_close. */
struct kfd_process *kfd_context_open(struct kfd_process *primary);
void kfd_context_close(struct kfd_process *p);
/* The primary one whose mm the task of @pid has, with a reference, or NULL. */
struct kfd_process *kfd_process_by_pid(struct pid *pid);
void kfd_process_put(struct kfd_process *p);
struct kfd_pdd *kfd_pdd_by_user_id(struct kfd_process *p, u32 user_gpu_id);
struct kfd_pdd *kfd_pdd_by_gpu(struct kfd_process *p, const struct sim_gpu *gpu);
/* Takes over the address space of @drm_file (and a reference to it). -EINVAL when it is none or taken. */
int kfd_pdd_acquire_vm(struct kfd_pdd *pdd, struct file *drm_file);
void kfd_process_kobj_release(struct kobject *kobj);
/* Waits until what was released by now is gone. */
void kfd_process_flush(void);
int kfd_process_init(void);
void kfd_process_fini(void);

/* kfd_procfs.c: /sys/class/kfd/kfd/proc. Failures cost the directory only. */
struct kfd_queue;
int kfd_procfs_init(struct device *kfd);
void kfd_procfs_fini(void);
void kfd_procfs_init_process(struct kfd_process *p); /* p->kobj, whose last reference frees p */
void kfd_procfs_add_process(struct kfd_process *p);
void kfd_procfs_remove_process(struct kfd_process *p);
void kfd_procfs_add_queue(struct kfd_queue *q);
void kfd_procfs_remove_queue(struct kfd_queue *q);

/* ---- memory ---- */

struct kfd_bo {
	struct kfd_pdd *pdd;
	u32 nr; /* in pdd->bos */
	u64 va;
	u64 size;      /* of the BO: half of what was asked for with AQL_QUEUE_MEM */
	u32 flags;     /* KFD_IOC_ALLOC_MEM_FLAGS_* as given */
	u64 user_addr; /* USERPTR */
	u64 mmap_offset;
	bool imported;
	bool allowed; /* the pdd's render-node file may mmap it */
	u32 gem_handle;		/* in the GPU's client file; 0: none */
	struct dma_buf *dmabuf; /* once it was asked for, or imported */
	struct sim_bo *bo;
	DECLARE_BITMAP(mapped, SIM_MAX_GPUS);	/* by pdd index */
	DECLARE_BITMAP(attached, SIM_MAX_GPUS); /* likewise, once mapped there by the dma-buf, with a reference each */
};

struct kfd_bo *kfd_bo_by_handle(struct kfd_process *p, u64 handle);
/* @nr NULL: the lowest free number. @user_addr is for USERPTR. Under kfd_process.lock; *ret stays owned by the pdd. */
int kfd_bo_alloc(struct kfd_pdd *pdd, u64 va, u64 size, u32 flags, u64 user_addr, const u32 *nr, struct kfd_bo **ret);
int kfd_bo_map(struct kfd_bo *bo, struct kfd_pdd *peer);
/* kfd_client.c */
int kfd_client_init(struct kfd_gpu *kgpu);
void kfd_client_fini(struct kfd_gpu *kgpu);
/* Gives a new buffer a handle in its GPU's client file. */
int kfd_client_add(struct kfd_bo *bo);
/* Finds or makes bo->bo, with a reference, for the dma-buf @fd. */
int kfd_client_import(struct kfd_bo *bo, int fd);
/* Undoes both. */
void kfd_client_remove(struct kfd_bo *bo);
/* The buffer's dma-buf with a reference for the caller. -ENOENT: somebody else has closed the handle. */
int kfd_bo_export(struct kfd_bo *bo, struct dma_buf **ret);
#define KFD_MEM_WRITABLE (1U << 31)
/* Undoes everything: unmaps where it is mapped. */
void kfd_bo_destroy(struct kfd_bo *bo);

/* ---- queues ---- */

enum kfd_queue_type {
	KFD_QUEUE_COMPUTE,
	KFD_QUEUE_SDMA,
	KFD_QUEUE_HIQ,
	KFD_QUEUE_SDMA_XGMI,
	KFD_QUEUE_SDMA_BY_ENG_ID,
	KFD_QUEUE_TYPE_COUNT,
};

enum kfd_queue_format {
	KFD_QUEUE_PM4,
	KFD_QUEUE_AQL,
};

struct kfd_queue_props {
	u32 type, format;
	u64 ring_va, ring_size;
	u64 rptr_va, wptr_va;
	u64 eop_va, cwsr_va;
	u32 eop_size, cwsr_size, ctl_stack_size;
	u32 percent, priority;
	u32 sdma_engine_id;
	u32 metadata_ring_size;
};

/* What a kernel that is running has got: its registers. */
struct kfd_wave {
	u32 kernel; /* 0: none runs */
	u32 pad;
	u64 args[4];
	u64 items, at, sum;
	u64 began; /* GPU clock */
};

/* What a queue's MQD holds when it does not run, one for each XCC. */
struct kfd_mqd {
	u32 magic; /* KFD_MQD_MAGIC */
	u32 hung;
	u32 xcc;
	u32 ctl_stack_size; /* bytes that the engine writes when it is preempted, however much room there is */
	u64 wave; /* not 0: a kernel was preempted, this marks its state in save area and control stack */
	u64 rptr, doorbell;
	u64 packets, bytes; /* processed so far */
	u32 cu_mask[32];
};

#define KFD_MQD_MAGIC	     0x4451534b
#define KFD_MQD_SIZE_COMPUTE 2048
#define KFD_MQD_SIZE_SDMA    512
#define KFD_MQD_SIZE_SDMA10  520

struct kfd_queue {
	struct list_head node;
	struct kfd_process *process;
	struct kfd_pdd *pdd;
	u32 id;
	struct kfd_queue_props props;
	u32 doorbell_id;
	u32 sdma_id;
	bool gws;
	bool holds_id, holds_sdma, holds_doorbell, counted; /* what has to be given back */
	bool stopping;
	bool holds_buffers;  /* a restored queue does not keep its buffers from being unmapped */
	struct kobject *dir; /* kfd_procfs.c */
	struct task_struct *thread;
	bool kicked;		/* look again */
	struct mutex exec_lock; /* held while a packet is executed; the fields below */
	int (*step)(struct kfd_queue *q);
	struct kfd_mqd mqd;
	struct kfd_wave wave;
	u64 *ctl_stack; /* of all XCCs, one behind the other; NULL where the save area holds it */
	u32 *fetched;
	u32 fetch_size; /* dwords */
	struct sim_sdma sdma;
};

/* What CRIU RESTORE wants back. */
struct kfd_queue_restore {
	u32 id, doorbell_id, sdma_id;
	u32 mqd_size, ctl_stack_size; /* bytes in @state: MQDs, then control stacks */
	const u8 *state;
};

/* Under kfd_process.lock. */
int kfd_queue_create(struct kfd_pdd *pdd, const struct kfd_queue_props *props, const struct kfd_queue_restore *restore,
		     struct kfd_queue **ret);
/* Whether all that a queue needs is mapped, as CREATE_QUEUE wants it: 0 or -EINVAL. */
int kfd_queue_check_buffers(struct kfd_pdd *pdd, const struct kfd_queue_props *props);
void kfd_queue_destroy(struct kfd_queue *q);
struct kfd_queue *kfd_queue_by_id(struct kfd_process *p, u32 id);
unsigned int kfd_nr_engines(const struct sim_gpu *gpu, u32 type);
u32 kfd_gfx(const struct sim_gpu *gpu); /* gfx_target_version */
/* Nothing keeps it from executing packets. */
bool kfd_queue_may_run(const struct kfd_queue *q);
/* A queue holds a buffer that begins in the range. */
bool kfd_queue_uses(struct kfd_pdd *pdd, u64 va, u64 size);
u32 kfd_queue_mqd_size(const struct sim_gpu *gpu, u32 type);
/*
 * Counted. After evict no packet is being executed and none is begun until as many restores. @trigger, one of
 * KFD_QUEUE_EVICTION_*, is for those who watch (SMI).
 */
void kfd_process_evict_queues(struct kfd_process *p, u32 trigger);
void kfd_process_restore_queues(struct kfd_process *p);

/* kfd_engine.c */
int kfd_engine_start(struct kfd_queue *q);
void kfd_engine_stop(struct kfd_queue *q);
void kfd_engine_kick(struct kfd_queue *q);
/* Not active: no ring, percentage 0. */
bool kfd_queue_is_active(const struct kfd_queue *q);
/* The MQD of XCC 0. */
void kfd_engine_save(struct kfd_queue *q, struct kfd_mqd *mqd);
/* Stops the queue for good, with one line that says why. */
void kfd_engine_hang(struct kfd_queue *q, const char *what, u64 va);
/* 0, or why no packet may be executed now: -EAGAIN to try again, anything else after the queue was stopped. */
int kfd_engine_check(struct kfd_queue *q);
int kfd_doorbells_alloc(struct kfd_pdd *pdd);
void kfd_doorbells_free(struct kfd_pdd *pdd);
int kfd_doorbells_mmap(struct kfd_pdd *pdd, struct vm_area_struct *vma);
u64 kfd_doorbell_read(const struct kfd_queue *q);
int kfd_sdma_step(struct kfd_queue *q);
/* kfd_aql.c */
int kfd_aql_step(struct kfd_queue *q);

/*
 * kfd_wave.c: a kernel that is running is preempted when its queue stops. Its state then is in the queue's save area
 * and, up to gfx9, in the control stacks behind the MQDs. Under exec_lock.
 */
int kfd_waves_init(struct kfd_queue *q);
void kfd_waves_free(struct kfd_queue *q);
/* Bytes of a queue's control stack on one XCC. */
u32 kfd_ctl_stack_size(const struct kfd_queue *q);
/* Saves a running kernel's state, if there is one. */
void kfd_waves_preempt(struct kfd_queue *q);
/* Takes a preempted kernel's state back; -EFAULT, and a hung queue, when it is not what was saved. */
int kfd_waves_load(struct kfd_queue *q);
u32 kfd_num_xcc(const struct sim_gpu *gpu);

/* ---- events ---- */

void kfd_events_init(struct kfd_process *p);
void kfd_events_free(struct kfd_process *p);
int kfd_events_mmap(struct kfd_process *p, struct vm_area_struct *vma);
/* Makes the BO the signal page and fills it with "unsignaled". Under kfd_process.lock. */
int kfd_events_set_page(struct kfd_process *p, u64 handle);
/* An engine raised the trap @id, 0 when it named none. */
void kfd_event_interrupt(struct kfd_process *p, u32 id);
void kfd_event_memory_fault(struct kfd_pdd *pdd, u64 va);
unsigned int kfd_events_count(struct kfd_process *p);

/* The 64 bytes of an event in CRIU's private data. */
struct kfd_event_priv {
	u32 object_type;
	u64 user_handle;
	u32 event_id;
	u32 auto_reset;
	u32 type;
	u32 signaled;
	union {
		struct kfd_hsa_memory_exception_data memory;
		struct kfd_hsa_hw_exception_data hw;
	};
};

/* Fills up to @max entries; returns how many events there are. */
unsigned int kfd_events_save(struct kfd_process *p, struct kfd_event_priv *priv, unsigned int max);
int kfd_event_restore(struct kfd_process *p, const struct kfd_event_priv *priv);

/* ---- SVM ---- */

#define KFD_VA_PAGES	  (1ULL << (47 - PAGE_SHIFT))
#define KFD_SVM_UNDEFINED KFD_IOCTL_SVM_LOCATION_UNDEFINED

void kfd_svm_init(struct kfd_process *p);
void kfd_svm_free(struct kfd_process *p);
/* mmu notifier: the pages [start, end) are gone. Must not sleep. */
void kfd_svm_unmapped(struct kfd_process *p, unsigned long start, unsigned long end);
bool kfd_process_has_svm(const struct kfd_process *p);
bool kfd_svm_overlaps(struct kfd_process *p, u64 va, u64 size);
/* All of it is SVM memory that the GPU may use. */
bool kfd_svm_covers(struct kfd_pdd *pdd, u64 va, u64 size);
/* sim_vm.svm_lookup; @ctx is a pdd. */
struct mm_struct *kfd_svm_lookup(void *ctx, u64 va, u64 *avail, bool write);
unsigned int kfd_svm_count(struct kfd_process *p);
/* The @n-th range; -ENOENT past the last. */
int kfd_svm_nth(struct kfd_process *p, unsigned int n, u64 *ret_start, u64 *ret_last);
/* Attributes of the pages @start to @last. Under kfd_process.lock; @mm has users. */
int kfd_svm_set(struct kfd_process *p, struct mm_struct *mm, u64 start, u64 last,
		const struct kfd_ioctl_svm_attribute *new, u32 nr);
int kfd_svm_get(struct kfd_process *p, u64 start, u64 last, struct kfd_ioctl_svm_attribute *attrs, u32 nr);

/* kfd_svm_criu.c */
#define KFD_SVM_COMMON_ATTRS 4

/* The head of a range in CRIU's private data; KFD_SVM_COMMON_ATTRS + nr_pdds attributes follow. */
struct kfd_svm_priv {
	u32 object_type;
	u64 start; /* page number */
	u64 pages;
	struct kfd_ioctl_svm_attribute attrs[];
};

static inline size_t kfd_svm_priv_size(const struct kfd_process *p)
{
	return sizeof(struct kfd_svm_priv) +
	       (KFD_SVM_COMMON_ATTRS + p->nr_pdds) * sizeof(struct kfd_ioctl_svm_attribute);
}

/* The @n-th range; -ENOENT past the last. */
int kfd_svm_save(struct kfd_process *p, unsigned int n, struct kfd_svm_priv *priv);
int kfd_svm_restore(struct kfd_process *p, const struct kfd_svm_priv *priv);
int kfd_svm_resume(struct kfd_process *p);
void kfd_svm_forget_restored(struct kfd_process *p);

/* ---- ioctls: @data is the argument struct in kernel memory, at least as long as the table says ---- */

typedef int kfd_ioctl_handler(struct kfd_process *p, void *data);

kfd_ioctl_handler kfd_ioctl_get_version, kfd_ioctl_set_memory_policy, kfd_ioctl_get_clock_counters;
kfd_ioctl_handler kfd_ioctl_get_process_apertures, kfd_ioctl_get_process_apertures_new, kfd_ioctl_old_debugger;
kfd_ioctl_handler kfd_ioctl_set_scratch_backing_va, kfd_ioctl_get_tile_config, kfd_ioctl_set_trap_handler;
kfd_ioctl_handler kfd_ioctl_set_xnack_mode, kfd_ioctl_available_memory, kfd_ioctl_runtime_enable;
kfd_ioctl_handler kfd_ioctl_acquire_vm, kfd_ioctl_alloc_memory, kfd_ioctl_free_memory, kfd_ioctl_map_memory;
kfd_ioctl_handler kfd_ioctl_unmap_memory, kfd_ioctl_get_dmabuf_info, kfd_ioctl_import_dmabuf, kfd_ioctl_export_dmabuf;
kfd_ioctl_handler kfd_ioctl_create_queue, kfd_ioctl_destroy_queue, kfd_ioctl_update_queue, kfd_ioctl_set_cu_mask;
kfd_ioctl_handler kfd_ioctl_get_queue_wave_state, kfd_ioctl_alloc_queue_gws;
kfd_ioctl_handler kfd_ioctl_create_event, kfd_ioctl_destroy_event, kfd_ioctl_set_event, kfd_ioctl_reset_event;
kfd_ioctl_handler kfd_ioctl_wait_events, kfd_ioctl_svm, kfd_ioctl_smi_events, kfd_ioctl_criu;
int kfd_ioctl_svm_validate(const void *data, size_t size);

/* The pdd when its VM was acquired, else ERR_PTR(-ENODEV). */
struct kfd_pdd *kfd_pdd_bound(struct kfd_pdd *pdd);

bool kfd_process_has_xnack(const struct kfd_process *p);

/* kfd_smi.c */
void kfd_smi_init_gpu(struct kfd_gpu *kgpu);
/* Queues an event line for the readers on the GPU who asked for its kind. @p: whose it is; NULL: everybody's. */
__printf(4, 5) void kfd_smi_event(struct sim_gpu *gpu, struct kfd_process *p, unsigned int event, const char *fmt, ...);

#endif
