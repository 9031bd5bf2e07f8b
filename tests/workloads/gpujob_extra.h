/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a gpujob can have besides its buffers and queues, on the first of its GPUs; each is asked for by
 * name with --extra. Functions that return int give 0 or -errno and have reported the failure.
 */
#ifndef WORKLOADS_GPUJOB_EXTRA_H
#define WORKLOADS_GPUJOB_EXTRA_H

#include <linux/kfd_ioctl.h>

#include "gpujob.h"

/* One kind of extra. A function that it does not need is NULL. */
struct job_extra {
	const char *name;
	int (*setup)(struct job_gpu *gpu);
	int (*step)(struct job_gpu *gpu); /* once in each generation */
	int (*check)(struct job_gpu *gpu);
	int (*teardown)(struct job_gpu *gpu);
};

/* Each keeps its state to itself: there is one of a kind in a process. */
extern const struct job_extra job_extra_aql, job_extra_wave, job_extra_code, job_extra_assert, job_extra_idle, job_extra_nap, job_extra_old, job_extra_packets,
	job_extra_masked, job_extra_threads, job_extra_token, job_extra_discard, job_extra_reads;

/* The bit of an extra in job_options.extras; 0 for an unknown name. */
uint64_t job_extra_bit(const char *name);

/* The SVM ioctl on [@p, @p + @bytes); at most 4 attributes. */
int job_svm_attributes(struct job_gpu *gpu, uint32_t op, const void *p, uint64_t bytes,
		       struct kfd_ioctl_svm_attribute *attrs, uint32_t n);

/* The token: memory for all processes of the job, before they part; the last process has number @last. */
int job_token_share(unsigned int last);
/* How often it was passed on. */
uint32_t job_token_value(void);

/* How often what need not be saved was found to be zeros. */
uint32_t job_discard_value(void);

int job_extras_setup(struct job_gpu *gpu);
int job_extras_step(struct job_gpu *gpu);
int job_extras_check(struct job_gpu *gpu);
int job_extras_teardown(struct job_gpu *gpu);

#endif
