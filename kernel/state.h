/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a process on its GPUs: what the kernel gives and takes, what the plugin knows of each BO besides, and the
 * records in what CHECKPOINT gave.
 */
#ifndef KERNEL_STATE_H
#define KERNEL_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "amdgpu_plugin_topology.h"
#include "kfd_ioctl.h"

/* A BO's handle: its GPU, as the process knows it, and its number there. */
static inline uint64_t kfd_handle(uint32_t gpu_id, uint32_t number)
{
	return (uint64_t)gpu_id << 32 | number;
}

/* A BO without a dma-buf, a device without an open file. */
#define KFD_NO_FD (-1)

/* What a buffer is to the process. */
enum kfd_bo_kind {
	KFD_BO_OWN,    /* of the KFD; RESTORE makes it */
	KFD_BO_IMPORT, /* of the KFD; imported from who owns the buffer */
	KFD_BO_GEM,    /* not of the KFD: an object of a render node, which the process owns */
	KFD_BO_REF,    /* not of the KFD: the process has handles of another one's buffer */
	KFD_NR_BO_KINDS,
};

/* The bytes that a program has attached to a BO (IPC tokens, tiling). */
#define KFD_METADATA_MAX 256u

/* What holds together the BOs, handles and files of several processes that are one buffer. */
struct kfd_share {
	uint32_t buffer; /* number of the buffer, the same in all images of a dump; 0: nothing else names it */
	enum kfd_bo_kind kind;
	uint64_t domains, flags, alignment; /* of a KFD_BO_GEM, as GEM_CREATE takes them; alignment in bytes */
	bool read_only;			    /* its dma-buf */
	uint64_t metadata_flags, tiling;    /* of a BO that is owned */
	uint32_t metadata_size;		    /* bytes */
	uint8_t metadata[KFD_METADATA_MAX];
};

/*
 * Whether an object of such memory can be in an image: in VRAM, GTT or CPU memory, with flags that GEM_CREATE takes on every
 * kernel that lists handles. Those of VM_ALWAYS_VALID, VRAM_CONTIGUOUS, ENCRYPTED and PREEMPTIBLE are not among them.
 */
static inline bool kfd_share_is_known(const struct kfd_share *share)
{
	return share->domains && !(share->domains & ~0x7ull) && !(share->flags & ~0x1f28full);
}

struct bo {
	/* As in the kernel's bucket. */
	uint64_t addr, size; /* bytes */
	uint64_t offset;     /* of mappings, at dump */
	uint64_t restored_offset;
	uint32_t gpu_id; /* user gpu id */
	uint32_t alloc_flags;
	int dmabuf_fd; /* owned; KFD_NO_FD */
	/* Of its data. */
	uint32_t crc32c;
	bool has_crc32c;
	bool is_alone; /* no other process has it, for a suspend (share_find_alone()) */
	struct kfd_share share; /* {}: nothing else names it */
};

struct placeholder;
struct queue_record;
struct svm_range;

/* The state of one process as the kernel gives and takes it. */
struct kfd_state {
	uint32_t pid; /* in its own pid namespace */
	uint32_t nr_devices, nr_objects;
	uint32_t nr_bos;     /* first those of the KFD, then objects of render nodes */
	uint32_t nr_records; /* how many are of the KFD, each with a record in priv_data */
	struct kfd_criu_device_bucket *devices;
	struct bo *bos;
	uint8_t *priv_data; /* opaque */
	uint64_t priv_size;
	/* What records_read() has found in it. */
	uint64_t bos_at;  /* where the records of BOs begin; 0: not known */
	bool is_known;	  /* all of it; false: the layout is unknown, and the rest is what comes before that shows */
	uint32_t version; /* of the layout, as the kernel says */
	struct queue_record *queues;
	uint32_t nr_queues;
	struct svm_range *ranges;
	uint32_t nr_ranges;
	uint32_t nr_events, nr_signals; /* of all kinds, and those that a page has a slot for */
	bool has_event_page;		/* the process has given the page; false: the KFD had made it by itself */
	struct placeholder *placeholders; /* what RESTORE needs besides (driver.h) */
	uint32_t nr_placeholders;
	bool runtime_enabled; /* RUNTIME_ENABLE was called: the KFD tells the program of exceptions in its queues */
};

/* Zeroed BOs without dma-bufs. NULL when memory is short. */
struct bo *kfd_bos_new(size_t nr);

/* Closes the BOs' dma-buf fds. */
void kfd_close_dmabufs(struct kfd_state *state);

/* Closes the BOs' dma-buf fds, frees everything and leaves *state empty. */
void kfd_state_done(struct kfd_state *state);

/* Whether a BO has data, which means a dma-buf: VRAM or GTT. */
static inline bool kfd_bo_has_data(const struct bo *bo)
{
	return bo->alloc_flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT);
}

/* Whether the data of BO number @i are this process' to save and to restore. */
static inline bool kfd_state_owns(const struct kfd_state *state, size_t i)
{
	const struct bo *bo = &state->bos[i];

	return kfd_bo_has_data(bo) && (bo->share.kind == KFD_BO_OWN || bo->share.kind == KFD_BO_GEM);
}

/* The same of the data on one GPU. */
static inline bool kfd_state_owns_on(const struct kfd_state *state, size_t i, uint32_t user_id)
{
	return state->bos[i].gpu_id == user_id && kfd_state_owns(state, i);
}

/* The bytes of VRAM that a RESTORE makes on a GPU. @state NULL: not known, 0. */
uint64_t kfd_state_vram_needed(const struct kfd_state *state, uint32_t user_id);
/* What the process works on, for each of @nodes by index. @state NULL: not known, nothing. */
void kfd_state_work(const struct kfd_state *state, const struct topology *nodes, struct gpu_work *ret);

/* Whether anything else names one of the BOs. */
bool kfd_state_shares(const struct kfd_state *state);

/* The GPU of @machine that the process calls @user_id; NULL: it has none. */
const struct topology_node *kfd_state_gpu(const struct kfd_state *state, const struct topology *machine, uint32_t user_id);

/* The id by which the process knows a GPU. 0 or -ENODEV. */
int kfd_state_user_id(const struct kfd_state *state, uint32_t actual_gpu_id, uint32_t *ret);
/*
 * The machine's CPUs and the GPUs that the process has, by its own ids. @machine: all nodes, by actual ids. *ret is the
 * caller's. 0, or -errno after fail().
 */
int kfd_state_nodes(const struct topology *machine, pid_t pid, const struct kfd_state *state, struct topology **ret);

/* The render minor of each of state->devices, of @nodes as above. *ret is the caller's. 0, or -errno after fail(). */
int kfd_state_minors(pid_t pid, const struct kfd_state *state, const struct topology *nodes, uint32_t **ret);

/* ---- records ---- */

/*
 * What CHECKPOINT says about queues, BOs, events and SVM ranges. The bytes belong to the kernel and go back as they are;
 * they are only looked at to see, while the process is still there, what would not be restored, and what it needs. Pure.
 */

/* Values of queue_record.type (enum kfd_queue_type of Linux' kfd_priv.h). */
#define QUEUE_TYPE_COMPUTE   0u
#define QUEUE_TYPE_SDMA	     1u
#define QUEUE_TYPE_SDMA_XGMI 3u

/* Of queue_record.format (enum kfd_queue_format). */
#define QUEUE_FORMAT_AQL 1u
#define AQL_PACKET_BYTES 64u

/* A queue, as struct kfd_criu_queue_priv_data of Linux' kfd_priv.h has it. */
struct queue_record {
	uint64_t ring_address, ring_size;	/* bytes */
	uint64_t read_address, write_address;	/* of the indices: packets of an AQL queue, bytes of SDMA */
	uint64_t eop_address;
	uint64_t cwsr_address; /* where waves are saved when the queue is stopped; GPU VA */
	uint32_t gpu_id;       /* user gpu id */
	uint32_t type, format;
	uint32_t number;       /* by which the process knows it */
	uint32_t priority, percent;
	uint32_t doorbell;     /* of the process' on the GPU, 8 bytes each */
	uint32_t gws;	       /* not 0: it has a global wave sync */
	uint32_t eop_size;     /* bytes */
	const uint8_t *mqd;    /* in the state; NULL: not known */
	uint32_t cwsr_size;	 /* bytes for the waves of one XCC */
	uint32_t ctl_stack_size; /* bytes */
	uint32_t mqd_size;	 /* bytes */
	uint64_t at;		 /* where the record is in the state; behind it are MQD and control stack */
	uint32_t nr_mqds;	 /* of a compute queue: one for each XCC */
	/* What the MQDs of a compute queue say, as struct v9_mqd of gfx9 has it: bytes. */
	uint32_t mqd_stack_size;   /* of the control stack; 0 where they differ */
	uint32_t mqd_stack_offset; /* the lowest one; as large as that: no wave has pushed anything */
	uint32_t mqd_wave_offset;  /* the highest one; as large as that: the state of no wave was saved */
	/* Filled by mes_list(), where a queue of the process is recreated. */
	bool is_restored;	   /* RESTORE restores this one: only its number matters */
	uint32_t mapped_id;	   /* of the GPU in offsets of /dev/kfd */
	uint32_t actual_id, minor; /* of the GPU, where it is now */
	uint64_t done;		   /* packets from the begin of the ring on; of an SDMA queue, bytes that it has read in its life */
	uint64_t counted;	   /* packets, by firmware that keeps their count in the MQD: for a report alone */
};
#define QUEUE_RECORD_SIZE    120u
#define QUEUE_STACK_SIZE_AT  108u /* of ctl_stack_size in it */
#define QUEUE_MQD_SIZE_AT    112u /* of mqd_size */
#define SDMA_MQD_SIZE	     512u  /* of gfx9 and gfx11 */
#define COMPUTE_MQD_SIZE     2048u /* of one XCC of gfx9; no other has several */
#define MAX_XCCS	     8u	   /* that a GPU of gfx9 has */

/* A BO, as struct kfd_criu_bo_priv_data has it. */
#define BO_RECORD_SIZE 272u
struct bo_record {
	uint64_t user_address;	  /* of userptr memory */
	uint32_t handle;	  /* the lower half of the handle: the BO's number on its GPU, from 0 on */
	uint32_t mapped_gpus[64]; /* user gpu ids, ended by 0 */
};

/* Memory that the SVM knows. */
struct svm_range {
	uint64_t start, size; /* bytes */
	bool on_demand;	      /* XNACK: its pages are taken when the GPU asks for them, and not at RESUME */
};

/*
 * Reads the records, once: each later change of the bytes keeps what was found right. @nr_devices: GPUs of the process,
 * which the state of an image does not say. 0, also for an unknown layout, or -ENOMEM.
 */
int records_read(struct kfd_state *state, uint32_t nr_devices);

/* Puts zeros into the state. 0 or -ENOMEM. */
int records_insert(struct kfd_state *state, uint64_t at, uint64_t size);

/* Takes bytes out of it. */
void records_cut(struct kfd_state *state, uint64_t at, uint64_t size);

/* Makes the MQDs of a compute queue say that their stacks of @stack_size bytes are empty, and that no wave was saved. */
void records_empty_mqds(struct kfd_state *state, struct queue_record *queue, uint32_t stack_size);

/* The record of BO number @i. 0, or -EPROTO without a message. */
int records_bo(const struct kfd_state *state, size_t i, struct bo_record *ret);

/* A BO by its handle. */
struct bo_number {
	uint64_t handle;
	uint32_t bo; /* its place in the state */
};

/* Those of the KFD, nr_records of them, by ascending handle. *ret: heap memory of the caller. 0 or -errno without a message. */
int records_numbers(const struct kfd_state *state, struct bo_number **ret);

/* How many of mapped_gpus there are. */
uint32_t records_nr_mapped(const struct bo_record *bo);

/* Whether BO number @i is mapped on a GPU, by its user gpu id; false when its record cannot be read. */
bool records_map_bo(const struct kfd_state *state, size_t i, uint32_t gpu_id);

/* A BO that RESTORE makes besides: a small one in GTT, mapped nowhere, or one of no memory at an address of its GPU. */
struct placeholder {
	uint32_t gpu_id; /* user gpu id */
	uint32_t handle;
	uint64_t address, size; /* bytes; address 0: mapped nowhere */
};

/* Of user memory that no process can have, also with five levels of page tables. */
#define RECORDS_NO_MEMORY (1ull << 56)

/*
 * The state for a RESTORE of some BOs and placeholders: the BOs of *state with keep[i] (NULL: all), then
 * nr_placeholders BOs with the GPUs and numbers of placeholders[]. *ret borrows devices and placeholders of *state; the
 * caller ends it with records_selection_done(). 0 or -errno without a message.
 */
int records_select(const struct kfd_state *state, const bool *keep, const struct placeholder *placeholders,
		   size_t nr_placeholders, struct kfd_state *ret);
/* Hands over what RESTORE has made of the BOs. */
void records_take_results(struct kfd_state *state, const bool *keep, struct kfd_state *selection);
void records_selection_done(struct kfd_state *selection);

/* Takes the placeholders of no memory, which an earlier RESTORE has left, out of a state to which nothing was added. */
void records_drop_placeholders(struct kfd_state *state);

/* Whether a process has an SDMA queue on a GPU, by its user gpu id. */
bool records_have_sdma_queue(const struct kfd_state *state, uint32_t gpu_id);

#endif
