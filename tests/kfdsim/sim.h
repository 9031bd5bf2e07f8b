/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The device model of the simulated GPU: descriptions, GPUs, memory objects,
 * GPU address spaces and the SDMA interpreter.
 *
 * Nothing here knows an ioctl. The two front ends stand above it and do not
 * know each other: drm_*.c (render nodes) and kfd_*.c (/dev/kfd).
 */
#ifndef KFDSIM_SIM_H
#define KFDSIM_SIM_H

#include <linux/device.h>
#include <linux/dma-resv.h>
#include <linux/hashtable.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/xarray.h>
#include <drm/drm_device.h>
#include <drm/drm_gem.h>

struct dma_buf;
struct drm_file;
struct file;
struct pci_dev;
struct task_struct;

/* ---- desc.c: the text description of the machine's nodes ---- */

/*
 * Properties of a node in the order in which sysfs prints them. A GPU prints
 * all of them, a CPU node all but the last group (SIM_PROP_GPU_ONLY..).
 */
#define SIM_PROPERTIES(X)                                                                                     \
	X(cpu_cores_count) X(simd_count) X(mem_banks_count) X(caches_count) X(io_links_count)                 \
	X(p2p_links_count) X(cpu_core_id_base) X(simd_id_base) X(max_waves_per_simd) X(lds_size_in_kb)        \
	X(gds_size_in_kb) X(num_gws) X(wave_front_size) X(array_count) X(simd_arrays_per_engine)              \
	X(cu_per_simd_array) X(simd_per_cu) X(max_slots_scratch_cu) X(gfx_target_version) X(vendor_id)        \
	X(device_id) X(location_id) X(domain) X(drm_render_minor) X(hive_id) X(num_sdma_engines)              \
	X(num_sdma_xgmi_engines) X(num_sdma_queues_per_engine) X(num_cp_queues) X(cwsr_size)                  \
	X(ctl_stack_size) X(max_engine_clk_fcompute) X(local_mem_size) X(fw_version) X(capability)            \
	X(capability2) X(debug_prop) X(sdma_fw_version) X(unique_id) X(num_xcc) X(max_engine_clk_ccompute)

enum sim_property {
#define X(name) SIM_PROP_##name,
	SIM_PROPERTIES(X)
#undef X
	SIM_PROP_COUNT,
};

struct sim_mem_bank {
	u32 heap_type; /* SYSTEM 0, FB_PUBLIC 1, FB_PRIVATE 2, GDS 3, LDS 4, SCRATCH 5 */
	u64 size_in_bytes;
	u32 flags;
	u32 width;
	u32 mem_clk_max;
};

struct sim_cache {
	u32 processor_id_low, level, size, cache_line_size, cache_lines_per_tag, association, latency, type;
	u32 siblings; /* how many ones the sibling_map starts with */
};

struct sim_link {
	bool p2p; /* listed below p2p_links instead of io_links */
	u32 type; /* HT 1, PCIe 2, QPI 5, XGMI 11 */
	u32 version_major, version_minor, node_from, node_to, weight, min_latency, max_latency;
	u32 min_bandwidth, max_bandwidth, recommended_transfer_size, recommended_sdma_engine_id_mask, flags;
};

struct sim_node {
	unsigned int id;	/* number below nodes/ */
	bool is_gpu;
	char name[32];
	u32 gpu_id;		/* 0 for a CPU node */
	u64 prop[SIM_PROP_COUNT];
	struct sim_mem_bank *mem_banks;
	struct sim_cache *caches;
	struct sim_link *links;	/* io_links first, then p2p_links */
	unsigned int nr_mem_banks, nr_caches, nr_links;
	/* not in sysfs properties */
	u64 vram_size;		/* bytes */
	u64 bar_size;		/* bytes of VRAM that the CPU can map */
	u32 card_minor;		/* N of cardN */
	u32 family;		/* AMDGPU_FAMILY_* that INFO reports */
	bool apu;		/* shares the system's memory with a CPU */
	bool iommu;		/* has an IOMMU group to itself, whose addresses are not those of memory */
	u32 sdma_mbps;		/* bandwidth per SDMA engine in MB/s, 0 = unlimited */
	/* identity of the PCI device, which all partitions of one GPU share */
	u32 pci_domain, pci_bus, pci_devfn, pci_class, pci_revision;
	u32 subsystem_vendor, subsystem_device;
	u32 partition;		/* index within the PCI device; 0 has the PCI device, others a platform device */
	u32 nr_partitions;
};

/* Which kernel's behaviour is simulated, where generations differ. */
struct sim_kernel {
	u32 release;		     /* major * 100 + minor, for differences that have no switch of their own */
	u32 kfd_minor;		     /* KFD interface 1.N */
	u32 drm_minor;		     /* DRM interface 3.N */
	bool mmap_user_id;	     /* /dev/kfd mmap offsets hold the user gpu id (7.3) instead of the actual one */
	bool process_info_counts;    /* every PROCESS_INFO evicts once more (<= 7.2) */
	bool save_all_xccs;	     /* queues are saved and restored with the state of all XCCs (6.16.4) */
	bool check_mqd_size;	     /* RESTORE wants the per-XCC mqd size */
	bool acquire_at_restore;     /* RESTORE wants what CREATE_QUEUE does of buffers (6.12.111 to 6.12.117) */
	bool lose_ctl_stacks;	     /* control stacks are neither saved nor restored (7.2.12) */
	bool refuse_hive_imports;    /* VRAM cannot be imported by another GPU of its hive (7.2.12) */
	bool criu_without_bos;	     /* RESTORE accepts num_bos 0 (6.18) */
	bool gem_list_handles;	     /* GEM_LIST_HANDLES and GEM_OP mapping info exist (6.18) */
	bool gem_alignment_in_pages; /* GEM_LIST_HANDLES says a BO's alignment in pages, not in bytes (6.18) */
	bool align_sdma_doorbells;   /* an SDMA engine's first doorbell is a multiple of 4 on gfx94x, gfx95x */
	bool gem_change_handle;	     /* GEM_CHANGE_HANDLE exists and is enabled */
	bool dmabuf_per_export;	     /* each export by KFD makes a new dma-buf; imports from the same GPU only (6.1) */
	bool free_closes_handle;     /* FREE closes the number that all KFD buffers of a memory have together */
	bool tolerate_overrun;	     /* SDMA clients that count bytes instead of bytes-1 are let through */
};

struct sim_desc {
	struct sim_node *nodes;
	unsigned int nr_nodes;
	struct sim_kernel kernel;
	u64 platform_oem, platform_id, platform_rev;
};

/* Parses @text (NUL-terminated, modified). Errors are printed as "@name:LINE: reason" and end in -EINVAL. */
int sim_desc_parse(const char *name, char *text, struct sim_desc *desc);
void sim_desc_free(struct sim_desc *desc);

/* ---- device.c: the GPUs ---- */

#define SIM_MAX_GPUS 64
#define SIM_MAX_ENGINES 16

struct sim_engine {
	atomic64_t busy_until; /* ns of ktime_get: shares the bandwidth (sdma_mbps) of one engine */
	atomic64_t bytes;      /* copied and filled since the module was loaded */
};

enum sim_gpu_state {
	SIM_GPU_OK,
	SIM_GPU_HANGS, /* engines take no further packet */
	SIM_GPU_STUCK, /* ... and user queues cannot be stopped */
	SIM_GPU_LOST,  /* nothing answers any more */
};

struct sim_gpu {
	struct drm_device ddev;	 /* first: devm_drm_dev_alloc */
	struct sim_node *node;
	unsigned int index;	 /* among the GPUs, from 0 */
	struct device *dev;	 /* parent of the DRM device (PCI) */
	atomic64_t vram_used;	 /* bytes */
	enum sim_gpu_state state; /* see sim_engine_check */
	atomic64_t gtt_used;	 /* bytes */
	struct sim_engine engines[SIM_MAX_ENGINES]; /* SDMA */
	void *drm_priv;		 /* drm_*.c */
	void *kfd_priv;		 /* kfd_*.c */
};

struct sim_machine {
	struct sim_desc desc;
	struct sim_gpu *gpus[SIM_MAX_GPUS];
	unsigned int nr_gpus;
};

extern struct sim_machine sim_machine;

static inline struct sim_gpu *to_sim_gpu(struct drm_device *ddev)
{
	return container_of(ddev, struct sim_gpu, ddev);
}

static inline u64 sim_gpu_prop(const struct sim_gpu *gpu, enum sim_property prop)
{
	return gpu->node->prop[prop];
}

/* NULL when no GPU of the machine has it. */
struct sim_gpu *sim_gpu_by_id(u32 actual_gpu_id);

/* True when the device cgroup of the current task hides the GPU's render node. */
bool sim_gpu_is_hidden(const struct sim_gpu *gpu);

/* kfd_chardev.c: the device "kfd" of class "kfd"; topology and proc directories hang below it. NULL before sim_kfd_init. */
struct device *sim_kfd_device(void);

/* ---- fault.c: faults on request ---- */

/* Asked by an engine before each packet: 0, -EAGAIN while a person lets the GPU hang or stick, -EFAULT when it is lost.
 */
int sim_engine_check(const struct sim_gpu *gpu);

/*
 * A request that the kernel does not survive. It is refused with -EINVAL here; one line in the log, and
 * /sys/kernel/debug/kfdsim/crashes counts them, so that a test can fail over it.
 */
void sim_would_crash(const char *request);

/* Live objects by kind, for leak checks: /sys/kernel/debug/kfdsim/objects shows "name count". */
enum sim_object {
	SIM_OBJ_BO,
	SIM_OBJ_PAGE,
	SIM_OBJ_VM,
	SIM_OBJ_MAPPING,
	SIM_OBJ_DRM_FILE,
	SIM_OBJ_CTX,
	SIM_OBJ_BO_LIST,
	SIM_OBJ_JOB,
	SIM_OBJ_KFD_PROCESS,
	SIM_OBJ_KFD_BO,
	SIM_OBJ_QUEUE,
	SIM_OBJ_EVENT,
	SIM_OBJ_SVM_RANGE,
	SIM_OBJ_COUNT,
};

void sim_object_add(enum sim_object kind, long n);

/* Each front end is brought up once per machine, after the GPUs exist, and taken down before they go. */
int sim_drm_init_gpu(struct sim_gpu *gpu);  /* before drm_dev_register */
void sim_drm_fini_gpu(struct sim_gpu *gpu); /* after drm_dev_unplug */
/* The driver as the description's release wants it. */
const struct drm_driver *sim_drm_driver_init(void);
int sim_kfd_init(void);
void sim_kfd_fini(void);
int sim_topology_init(void);
void sim_topology_fini(void);

/* ---- bo.c: memory ---- */

enum sim_bo_kind {
	SIM_BO_PAGES,	/* VRAM or GTT: own pages, taken when first touched, zeroed */
	SIM_BO_USERPTR,	/* pages of a process, looked up at every access */
	SIM_BO_IMPORT,	/* another device's dma-buf */
};

struct sim_bo {
	struct drm_gem_object base;	/* base.size is page-aligned */
	struct sim_gpu *gpu;
	enum sim_bo_kind kind;
	u64 size;			/* as asked for */
	u32 domain;			/* AMDGPU_GEM_DOMAIN_VRAM or _GTT: where it is accounted */
	u32 preferred_domains;		/* AMDGPU_GEM_DOMAIN_* as asked for */
	u64 create_flags;		/* AMDGPU_GEM_CREATE_* */
	u64 alignment;			/* bytes */
	struct xarray pages;		/* SIM_BO_PAGES */
	struct mm_struct *mm;		/* SIM_BO_USERPTR: mmgrab'bed, not mmget */
	u64 user_addr;
	bool user_readonly;
	bool user_missing;		/* its pages could not be had when they were taken: all accesses fault */
	struct sim_bo *exporter;	/* SIM_BO_IMPORT from another simulated GPU */
	struct sg_table *sgt;		/* SIM_BO_IMPORT from anything else */
	struct page **import_pages;	/* of sgt, base.size / PAGE_SIZE of them */
	bool by_kfd;			/* allocated through /dev/kfd */
	unsigned int kfd_users;		/* KFD buffers on its GPU; under kfd_gpu.lock */
	bool cpu_touched;		/* a CPU has had a page of it */
	struct sim_vm *vm;		/* AMDGPU_GEM_CREATE_VM_ALWAYS_VALID: the only one it can be mapped in */
	struct sim_bo_metadata *metadata; /* GEM_METADATA, under base.resv; NULL when never set */
};

static inline struct sim_bo *to_sim_bo(struct drm_gem_object *obj)
{
	return container_of(obj, struct sim_bo, base);
}

/*
 * A BO with one reference (drop it with drm_gem_object_put). VRAM is accounted
 * against the GPU's size: -ENOMEM when it is full. Pages are taken lazily.
 */
int sim_bo_create(struct sim_gpu *gpu, u64 size, u32 domain, u64 create_flags, struct sim_bo **ret);
int sim_bo_create_userptr(struct sim_gpu *gpu, struct mm_struct *mm, u64 user_addr, u64 size, bool readonly,
			  struct sim_bo **ret);

/*
 * Copies between kernel memory and the BO. -EFAULT when out of range or the user pages are gone,
 * -ESRCH when their process has ended, -ENOMEM. May sleep.
 */
int sim_bo_access(struct sim_bo *bo, u64 offset, void *buf, size_t len, bool write);

/* The BO that @dma_buf was exported from; NULL when that is none of ours. No reference but the dma-buf's. */
struct sim_bo *sim_bo_of_dmabuf(const struct dma_buf *dma_buf);
/* Whether @bo is VRAM of another GPU of the hive, which drivers that have refuse_hive_imports do not map. */
bool sim_bo_is_refused_import(const struct sim_bo *bo);
/* A dma-buf of its own, whatever others the BO has, with a reference for the caller. @flags: DRM_RDWR. ERR_PTR. */
struct dma_buf *sim_bo_new_dmabuf(struct sim_bo *bo, int flags);

/*
 * Takes the pages of a process and gives them back, as a driver does that maps them for its GPU: without waiting for
 * a userfaultfd. -EFAULT when one cannot be had (or written to, for @write), -ESRCH when the process has ended,
 * -ENOMEM.
 */
int sim_user_pages_take(struct mm_struct *mm, u64 addr, u64 size, bool write);

/* Fake offset for mmap on the render node. */
int sim_bo_mmap_offset(struct sim_bo *bo, u64 *ret);

/* ---- vm.c: GPU address spaces ---- */

#define SIM_VM_READ  1
#define SIM_VM_WRITE 2
#define SIM_VM_EXEC  4
#define SIM_VM_GEM   8 /* made by GEM_VA: goes away with the last GEM handle */

struct sim_vm {
	struct kref ref;
	struct sim_gpu *gpu;
	struct mutex lock;
	struct rb_root_cached mappings;
	DECLARE_HASHTABLE(by_bo, 10); /* the same; a list of one BO's takes no walk over all */
	bool compute;	/* taken over by KFD (ACQUIRE_VM) */
	u64 fault_va;	/* of the last fault, 0 when there was none: INFO GPUVM_FAULT */
	struct dma_resv resv; /* fences of jobs, for VM_ALWAYS_VALID BOs */
	struct list_head limits; /* struct sim_vm_limit */
	/*
	 * SVM: asked, with the lock held, for addresses that nothing maps. Returns the mm to access,
	 * with mmgrab, and how many bytes from @va on it may be asked for, or NULL.
	 */
	struct mm_struct *(*svm_lookup)(void *ctx, u64 va, u64 *avail, bool write);
	void *svm_ctx;
};

/* A piece of an address space, as sim_vm_list reports it. */
struct sim_vm_range {
	u64 va, size, offset;
	u64 uapi_flags;
};

/* What one task may access while it executes a job: BOs by address, and those that are always valid. */
struct sim_vm_limit {
	struct list_head link;
	const struct task_struct *task;
	struct xarray *bos;
};

/* For the current task, from begin to end. */
void sim_vm_limit_begin(struct sim_vm *vm, struct sim_vm_limit *limit, struct xarray *bos);
void sim_vm_limit_end(struct sim_vm *vm, struct sim_vm_limit *limit);

struct sim_vm *sim_vm_create(struct sim_gpu *gpu);
struct sim_vm *sim_vm_get(struct sim_vm *vm);
void sim_vm_put(struct sim_vm *vm);

/*
 * Maps [offset, offset+size) of @bo at @va; holds a BO reference until unmapped.
 * @uapi_flags is kept for GEM_OP mapping info; @access are SIM_VM_* bits.
 * -EINVAL when misaligned, out of the BO, or overlapping.
 */
int sim_vm_map(struct sim_vm *vm, struct sim_bo *bo, u64 va, u64 offset, u64 size, u32 access, u64 uapi_flags);
/* Removes the mapping of @bo that starts at @va; -ENOENT. */
int sim_vm_unmap(struct sim_vm *vm, struct sim_bo *bo, u64 va);
/* Removes whatever lies in the range, splitting at its ends. */
int sim_vm_clear(struct sim_vm *vm, u64 va, u64 size);
/* Removes every SIM_VM_GEM mapping of @bo. */
void sim_vm_unmap_gem(struct sim_vm *vm, struct sim_bo *bo);
/* True when exactly one mapping covers [va, va+size) and starts and ends there. */
bool sim_vm_is_exact(struct sim_vm *vm, u64 va, u64 size);
/* True when a mapping begins at @va. */
bool sim_vm_begins_at(struct sim_vm *vm, u64 va);
/* True when anything is mapped there. */
bool sim_vm_overlaps(struct sim_vm *vm, u64 va, u64 size);
/* Number of mappings of @bo; the first @max of them, by address, in @ranges. */
unsigned int sim_vm_list(struct sim_vm *vm, struct sim_bo *bo, struct sim_vm_range *ranges, unsigned int max);
/* Sets or (NULL) clears svm_lookup. After clearing it is not called any more. */
void sim_vm_set_svm(struct sim_vm *vm, struct mm_struct *(*lookup)(void *ctx, u64 va, u64 *avail, bool write),
		    void *ctx);

/*
 * Access by GPU virtual address, across mappings. On a fault -EFAULT (-ESRCH, -ENOMEM: see
 * sim_bo_access) and the first bad address in *fault_va. May sleep; must not be called with
 * the vm's lock held.
 */
int sim_vm_read(struct sim_vm *vm, u64 va, void *buf, size_t len, u64 *fault_va);
int sim_vm_write(struct sim_vm *vm, u64 va, const void *buf, size_t len, u64 *fault_va);
int sim_vm_copy(struct sim_vm *vm, u64 dst, u64 src, u64 len, u64 *fault_va);
int sim_vm_fill(struct sim_vm *vm, u64 dst, u32 value, u64 len, u64 *fault_va);
/*
 * One atomic read-modify-write of 4 or (@wide) 8 bytes, which @va must be aligned to. @op computes the
 * new value and may be called more than once; it gets 32-bit values zero-extended.
 */
int sim_vm_atomic(struct sim_vm *vm, u64 va, bool wide, u64 (*op)(void *arg, u64 old), void *arg, u64 *ret_old,
		  u64 *fault_va);

/* drm_drv.c: the address space of an open render node; NULL when @file is not one of ours. Takes a reference. */
struct sim_vm *sim_vm_of_file(struct file *file);
/* drm_drv.c: lets the render-node file mmap @bo's fake offset (KFD BOs have no handle there). */
int sim_bo_allow_file(struct sim_bo *bo, struct file *file);
void sim_bo_revoke_file(struct sim_bo *bo, struct file *file);

/* ---- sdma.c: packets ---- */

struct sim_sdma {
	struct sim_vm *vm;
	unsigned int engine;	/* whose bandwidth is used; 0 after init */
	bool count_minus_one;	/* SDMA 4.0 and later (gfx9+) */
	u32 max_copy;		/* bytes in one linear copy */
	/* TRAP: context id of the packet. Optional. */
	void (*trap)(void *ctx, u32 context_id);
	/* Asked within long packets: true ends it with -ECANCELED. Optional. */
	bool (*stop)(void *ctx);
	void *ctx;
	u64 bytes_copied;	/* by copies and fills */
	u64 fault_va;		/* of the last page fault */
};

void sim_sdma_init(struct sim_sdma *sdma, struct sim_vm *vm);

/*
 * Executes the packet at @dw, of which @avail dwords can be seen, and sleeps as long as
 * the engine's bandwidth asks for. Returns its length in dwords; 0 when more dwords are
 * needed; -EAGAIN when it polls memory that is not yet as wanted (nothing was done);
 * -EFAULT with the reason printed for a fault or unknown packet.
 */
int sim_sdma_execute(struct sim_sdma *sdma, const u32 *dw, unsigned int avail);

/* No packet is longer: a linear write, whose count has 20 bits, behind four dwords. */
#define SIM_SDMA_MAX_PACKET_DW (4 + (1U << 20))

/* The GPU's free running clock, SIM_CLOCK_KHZ. */
#define SIM_CLOCK_KHZ 100000
u64 sim_gpu_clock(struct sim_gpu *gpu);

#endif
