/* SPDX-License-Identifier: GPL-2.0-only */
/* The GPUs of a restored task: chosen once, opened, and found again by their names. */
#ifndef CHECKPOINT_GPUS_H
#define CHECKPOINT_GPUS_H

#include <stddef.h>
#include <stdint.h>

#include "amdgpu_plugin_topology.h"
#include "checkpoint/shared.h"
#include "host/host.h"
#include "kernel/kernel.h"
#include "match/match.h"

/* A GPU of the process, here and at dump. */
struct gpu {
	uint32_t user_id;     /* by which the process knows it */
	uint32_t actual_id;   /* on this machine */
	uint32_t minor;	      /* render minor on this machine */
	uint32_t saved_minor; /* at dump */
	bool knows_vram;      /* vram_free says something */
	uint64_t vram_free;   /* bytes, when it was chosen */
	int file_token;	      /* the render-node file that carries the KFD's address space */
	bool kfds_file_is_given; /* to the task, as one of its files */
};

/* {} to begin with. */
struct gpus {
	struct gpu *list;
	size_t nr;
	size_t nr_visible; /* GPUs of this machine that the kernel would show the task */
};

/* What the choice is made from. All of it is borrowed. */
struct gpus_request {
	const struct topology *saved;	/* the GPUs of the task */
	const struct topology *machine; /* what sysfs_read_topology() gave */
	int machine_error;		/* or its error */
	const struct kfd_state *state;	/* of the task; NULL: how much memory it needs is not known yet */
	const struct settings *settings;
	struct shared *shared; /* by other tasks */
	const struct mounted *mounted; /* where criu's main process is; NULL: the task's /dev stays as it is */
};

/*
 * Called for each file of the task with the GPUs that its image names. The first call
 * chooses and opens a local GPU for each, later ones check that the images agree.
 * 0, or -errno after an error line.
 */
int gpus_setup(struct gpus *gpus, const struct gpus_request *request);
void gpus_done(struct gpus *gpus);

/* What the settings say about the choice. Borrows the pairs of @settings. */
struct match_options gpus_match_options(const struct settings *settings);

/* NULL when the task has no such GPU. */
struct gpu *gpus_by_user_id(const struct gpus *gpus, uint32_t user_id);
struct gpu *gpus_by_saved_minor(const struct gpus *gpus, uint32_t minor);

/* Whether the VRAM of the chosen GPUs has room for the BOs of @state. 0, or -ENOSPC after an error line. */
int gpus_check_room(const struct gpus *gpus, const struct kfd_state *state, const struct settings *settings);

/* The local render minors, heap memory of the caller; NULL when memory is short. */
uint32_t *gpus_minors(const struct gpus *gpus);

/*
 * The buckets that RESTORE wants, with an open render-node file each. On success the caller
 * closes these after the ioctl by gpus_close_devices(). 0, or -errno after an error line.
 */
int gpus_open_devices(const struct gpus *gpus, struct kfd_state *state);
void gpus_close_devices(struct kfd_state *state);

#endif
