/* SPDX-License-Identifier: GPL-2.0-only */
/* What fake_drm.c and fake_drm_ring.c share. Everything is guarded by fake.lock. */
#ifndef UNIT_FAKE_DRM_INTERNAL_H
#define UNIT_FAKE_DRM_INTERNAL_H

#include <pthread.h>
#include <sys/types.h>

#include <libdrm/amdgpu.h>

#include "fake_drm.h"

#define FAKE_IB_START_ALIGN 256

struct fake_mapping {
	struct amdgpu_bo *bo; /* NULL: unmapped */
	uint64_t address, bytes;
};

struct fake_job {
	struct fake_job *next;
	struct amdgpu_context *context;
	uint64_t seq;
	uint64_t submitted_ns;
	uint64_t ib_address;
	size_t nr_dw;
	struct amdgpu_bo **bos; /* the resource list */
	size_t nr_bos;
	bool hang;
};

struct fake_ring {
	struct amdgpu_device *device;
	pthread_t thread;
	pthread_cond_t changed;
	struct fake_job *first, **last;
	uint64_t free_ns; /* its last job has ended */
	bool running, stop;
};

struct amdgpu_device {
	struct amdgpu_device *next;
	dev_t st_dev;
	ino_t st_ino;
	unsigned int references, nr_contexts;
	struct amdgpu_bo *bos;
	uint64_t next_va;
	struct fake_mapping *mappings; /* by address; those below first_mapping are unmapped */
	size_t first_mapping, nr_mappings, max_mappings;
	struct fake_ring rings[FAKE_DRM_MAX_RINGS];
	bool hung;
};

struct amdgpu_bo {
	struct amdgpu_bo *next, *prev;
	struct amdgpu_device *device;
	uint8_t *mem;
	uint64_t bytes;
	unsigned int references, cpu_maps, pending;
	size_t nr_mappings;
	const struct fake_job *listed_for[FAKE_DRM_MAX_RINGS]; /* the job that runs and may use it */
	bool imported, is_user;
	bool owns_mem; /* the mapping goes with the BO */
	dev_t st_dev;
	ino_t st_ino;
};

struct amdgpu_va {
	struct amdgpu_device *device;
	uint64_t address, bytes;
};

struct amdgpu_context {
	struct amdgpu_device *device;
	uint64_t submitted[FAKE_DRM_MAX_RINGS], done[FAKE_DRM_MAX_RINGS];
};

struct amdgpu_bo_list {
	struct amdgpu_bo **bos;
	size_t nr;
};

struct fake_drm {
	pthread_mutex_t lock;
	struct fake_drm_config config;
	struct amdgpu_device *devices;
	unsigned int calls, submissions, rings_used;
	const char *failed_call;
	size_t live, mapped, peak_mapped;
	uint64_t fill_bytes, copy_bytes, user_pages_listed;
	char violation[200];
};

extern struct fake_drm fake;

void fake_violation(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
struct fake_mapping *fake_find_mapping(struct amdgpu_device *device, uint64_t address);
void fake_unmap(struct amdgpu_device *device, struct fake_mapping *mapping);

void fake_rings_start(struct amdgpu_device *device);
/* Gives the lock up while the threads end. */
void fake_rings_stop(struct amdgpu_device *device);
/* Forgets what the context has in the rings. */
void fake_rings_drop(struct amdgpu_context *context);
int fake_ring_submit(struct amdgpu_context *context, struct amdgpu_cs_request *request);
/* Whether the fence has signalled, after at most @timeout_ns. */
bool fake_ring_wait(const struct amdgpu_cs_fence *fence, uint64_t timeout_ns);

#endif
