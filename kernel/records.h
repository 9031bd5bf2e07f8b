/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads what CHECKPOINT says about queues, BOs and SVM ranges. The bytes belong to the kernel and go back as they are;
 * they are only looked at to see, while the process is still there, what would not come back, and what it needs. Pure.
 */
#ifndef KERNEL_RECORDS_H
#define KERNEL_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/kfd.h"

/* Values of queue_record.type (enum kfd_queue_type of Linux' kfd_priv.h). */
#define QUEUE_TYPE_COMPUTE   0u
#define QUEUE_TYPE_SDMA	     1u
#define QUEUE_TYPE_SDMA_XGMI 3u

/* A queue, as struct kfd_criu_queue_priv_data of Linux' kfd_priv.h has it. */
struct queue_record {
	uint64_t cwsr_address; /* where waves are saved when the queue is stopped; GPU VA */
	uint32_t gpu_id;       /* user gpu id */
	uint32_t type;
	uint32_t doorbell_id;
	uint32_t sdma_id;
	uint32_t cwsr_size;	 /* bytes for the waves of one XCC */
	uint32_t ctl_stack_size; /* bytes */
	uint32_t mqd_size;	 /* bytes */
	uint64_t at;		 /* where the record is in the state; behind it are MQD and control stack */
	uint32_t nr_mqds;	 /* of a compute queue: one for each XCC */
	/* What the MQDs of a compute queue say, as struct v9_mqd of gfx9 has it: bytes. */
	uint32_t mqd_stack_size;   /* of the control stack; 0 where they differ */
	uint32_t mqd_stack_offset; /* the lowest one; as large as that: no wave has pushed anything */
	uint32_t mqd_wave_offset;  /* the highest one; as large as that: the state of no wave was saved */
};
#define QUEUE_RECORD_SIZE    120u
#define QUEUE_STACK_SIZE_AT  108u /* of ctl_stack_size in it */
#define QUEUE_MQD_SIZE_AT    112u /* of mqd_size */
#define COMPUTE_MQD_SIZE     2048u /* of one XCC of gfx9; no other has several */
#define MAX_XCCS	     8u	   /* that a GPU of gfx9 has */

/* A BO, as struct kfd_criu_bo_priv_data has it. */
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

/* Where the reading is. */
struct records {
	const uint8_t *bytes;
	uint64_t size, at;
	uint32_t nr_devices; /* each SVM range has an attribute for each */
	uint32_t nr_left;    /* objects */
	uint32_t version;    /* of the layout, as the kernel says */
	bool xnack;	     /* the GPU waits for pages that are not there */
	uint32_t nr_events, nr_svm_ranges; /* that were passed so far */
};

/*
 * Begins with the state that CHECKPOINT gave, which has to live as long as *ret. -EPROTO when its layout is of a
 * version that is not known, or when it is too short; ret->version is set where there is one.
 */
int records_begin(const struct kfd_state *state, struct records *ret);

/*
 * The next queue: 1 and *ret; 0 after the last one, when the records end exactly where the state does; -EPROTO when
 * they do not, or when one of them is of an unknown kind. No messages.
 */
int records_next_queue(struct records *records, struct queue_record *ret);

/* Makes MQDs say that their stacks of @stack_size bytes are empty, and that no wave was saved. */
void records_empty_mqds(uint8_t *mqds, uint32_t nr_mqds, uint32_t stack_size);

/* The next SVM range: 1 and *ret; 0 after the last one; -EPROTO as above. To be asked after records_begin() alone. */
int records_next_svm(struct records *records, struct svm_range *ret);

/* The record of BO number @i. 0, or -EPROTO without a message. */
int records_bo(const struct kfd_state *state, size_t i, struct bo_record *ret);

/* How many of mapped_gpus there are. */
uint32_t records_nr_mapped(const struct bo_record *bo);

/* A BO that RESTORE makes besides: a small one in GTT, mapped nowhere, or one of no memory at an address of its GPU. */
struct filler {
	uint32_t gpu_id; /* user gpu id */
	uint32_t handle;
	uint64_t address, size; /* bytes; address 0: mapped nowhere */
};

/* Of user memory that no process can have, also with five levels of page tables. */
#define RECORDS_NO_MEMORY (1ull << 56)

/*
 * The state for a RESTORE of some BOs and fillers: the BOs of *state with keep[i] (NULL: all), then nr_fillers BOs with
 * the GPUs and numbers of fillers[]. *ret borrows devices and stand-ins of *state; the caller ends it with
 * records_selection_done(). 0 or -errno without a message.
 */
int records_select(const struct kfd_state *state, const bool *keep, const struct filler *fillers, size_t nr_fillers,
		   struct kfd_state *ret);
/* Hands over what RESTORE has made of the BOs. */
void records_take_results(struct kfd_state *state, const bool *keep, struct kfd_state *selection);
void records_selection_done(struct kfd_state *selection);

/* Takes BO number @i, which has no dma-buf, out of a state to which nothing was added. */
void records_drop_bo(struct kfd_state *state, size_t i);

/* Whether a process has an SDMA queue on a GPU, by its user gpu id; false when the records cannot be read. */
bool records_have_sdma_queue(const struct kfd_state *state, uint32_t gpu_id);

#endif
