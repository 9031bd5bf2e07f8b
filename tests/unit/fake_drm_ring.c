// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA rings of the stand-in: a thread for each, which takes submissions in order and
 * executes their packets. A packet that touches one byte outside of a mapping, or of a BO
 * that is not in the submission's list, is a violation and ends the submission.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libdrm/amdgpu_drm.h>

#include "fake_drm_internal.h"

#define OP_NOP	      0u
#define OP_COPY	      1u
#define OP_CONST_FILL 11u
#define IB_MAX_DW     0xfffffu
#define COUNT_MAX     0x3fffffu /* 22 bits */

typedef unsigned long long ull;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- packets ---- */

struct packet {
	bool fill;
	uint64_t src, dst, bytes;
	uint32_t value;
};

/* Decodes the packet at @dw: its dwords, 0 when it is none. */
static size_t decode(const uint32_t *dw, size_t nr, struct packet *packet)
{
	uint32_t count;

	*packet = (struct packet){ 0 };
	if (dw[0] == OP_NOP)
		return 1;
	if (dw[0] == OP_COPY && nr >= 7) {
		count = dw[1];
		packet->src = dw[3] | (uint64_t)dw[4] << 32;
		packet->dst = dw[5] | (uint64_t)dw[6] << 32;
		if (dw[2])
			return 0;
	} else if ((dw[0] & 0x3fffffff) == OP_CONST_FILL && nr >= 5) {
		packet->fill = true;
		packet->dst = dw[1] | (uint64_t)dw[2] << 32;
		packet->value = dw[3];
		count = dw[4];
	} else {
		return 0;
	}
	if (count > COUNT_MAX)
		return 0;
	packet->bytes = count + 1;
	/* The unit is a dword (2) or a byte (0). */
	if (packet->fill && dw[0] >> 30 == 2 && (packet->bytes % 4 || packet->dst % 4))
		return 0;
	if (packet->fill && dw[0] >> 30 != 2 && dw[0] >> 30 != 0)
		return 0;
	return packet->fill ? 5 : 7;
}

static void execute(const struct packet *packet, uint8_t *dst, const uint8_t *src)
{
	if (packet->fill)
		memset(dst, (int)(packet->value & 0xff), packet->bytes);
	else if (packet->bytes)
		memcpy(dst, src, packet->bytes);
}

int fake_drm_execute(const uint32_t *dw, size_t nr_dw)
{
	struct packet packet;

	for (size_t i = 0, n; i < nr_dw; i += n) {
		n = decode(dw + i, nr_dw - i, &packet);
		if (!n)
			return -EINVAL;
		execute(&packet, (uint8_t *)(uintptr_t)packet.dst, (const uint8_t *)(uintptr_t)packet.src);
	}
	return 0;
}

/* ---- jobs ---- */

/* Marks the BOs that the job may touch: a list may be long, and is asked for each packet. */
static void mark_list(struct fake_ring *ring, const struct fake_job *job)
{
	pthread_mutex_lock(&fake.lock);
	for (size_t i = 0; i < job->nr_bos; i++)
		job->bos[i]->listed_for[ring - ring->device->rings] = job;
	pthread_mutex_unlock(&fake.lock);
}

/* Host memory of a GPU range; NULL after a violation. */
static uint8_t *resolve(struct fake_ring *ring, const struct fake_job *job, uint64_t address, uint64_t bytes,
			const char *what)
{
	struct fake_mapping *mapping;
	uint8_t *ret = NULL;

	pthread_mutex_lock(&fake.lock);
	mapping = fake_find_mapping(ring->device, address);
	if (!mapping || bytes > mapping->bytes - (address - mapping->address))
		fake_violation("%s of %llu bytes at %#llx leaves the mapping", what, (ull)bytes, (ull)address);
	else if (mapping->bo->listed_for[ring - ring->device->rings] != job)
		fake_violation("%s at %#llx: the BO is not in the list of the submission", what, (ull)address);
	else
		ret = mapping->bo->mem + (address - mapping->address);
	pthread_mutex_unlock(&fake.lock);
	return ret;
}

/* The bytes moved; stops at the first packet that is wrong. */
static uint64_t run_packets(struct fake_ring *ring, const struct fake_job *job, const uint32_t *dw)
{
	uint64_t moved = 0;
	struct packet packet;

	for (size_t i = 0, n; i < job->nr_dw; i += n) {
		uint8_t *src = NULL, *dst;

		n = decode(dw + i, job->nr_dw - i, &packet);
		if (!n) {
			pthread_mutex_lock(&fake.lock);
			fake_violation("dword %zu of an IB is no packet: %#x", i, dw[i]);
			pthread_mutex_unlock(&fake.lock);
			break;
		}
		if (!packet.bytes)
			continue;
		dst = resolve(ring, job, packet.dst, packet.bytes, packet.fill ? "fill" : "copy to");
		if (!packet.fill)
			src = resolve(ring, job, packet.src, packet.bytes, "copy from");
		if (!dst || (!packet.fill && !src))
			break;
		if (!fake.config.idle)
			execute(&packet, dst, src);
		moved += packet.bytes;
		pthread_mutex_lock(&fake.lock);
		*(packet.fill ? &fake.fill_bytes : &fake.copy_bytes) += packet.bytes;
		pthread_mutex_unlock(&fake.lock);
	}
	return moved;
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* A job that was waiting begins when the last one ends, however late this thread wakes up. */
static void run_job(struct fake_ring *ring, const struct fake_job *job)
{
	uint64_t start = job->submitted_ns > ring->free_ns ? job->submitted_ns : ring->free_ns, moved = 0, end;
	bool is_late = fake.config.late_rings >> (ring - ring->device->rings) & 1;
	uint8_t *dw;

	mark_list(ring, job);
	end = start + (is_late || !fake.config.late_rings ? fake.config.delay_us * 1000ull : 0);
	if (is_late)
		sleep_until(end);
	dw = resolve(ring, job, job->ib_address, job->nr_dw * 4, "IB");
	if (dw)
		moved = run_packets(ring, job, (const uint32_t *)dw);
	if (fake.config.bytes_per_second > 0)
		end += (uint64_t)((double)moved * 1e9 / fake.config.bytes_per_second);
	ring->free_ns = end;
	if (end != start)
		sleep_until(end);
}

static void free_job(struct fake_job *job)
{
	for (size_t i = 0; i < job->nr_bos; i++) {
		job->bos[i]->pending--;
		for (unsigned int ring = 0; ring < FAKE_DRM_MAX_RINGS; ring++)
			if (job->bos[i]->listed_for[ring] == job)
				job->bos[i]->listed_for[ring] = NULL;
	}
	free(job->bos);
	free(job);
}

static void *ring_thread(void *arg)
{
	struct fake_ring *ring = arg;

	fake_drm_depth++;
	pthread_mutex_lock(&fake.lock);
	while (!ring->stop) {
		struct fake_job *job = ring->first;

		if (!job || job->hang) {
			pthread_cond_wait(&ring->changed, &fake.lock);
			continue;
		}
		pthread_mutex_unlock(&fake.lock);
		run_job(ring, job);
		pthread_mutex_lock(&fake.lock);
		ring->first = job->next;
		if (!ring->first)
			ring->last = &ring->first;
		job->context->done[ring - ring->device->rings] = job->seq;
		free_job(job);
		pthread_cond_broadcast(&ring->changed);
	}
	pthread_mutex_unlock(&fake.lock);
	return NULL;
}

void fake_rings_start(struct amdgpu_device *device)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	for (unsigned int i = 0; i < FAKE_DRM_MAX_RINGS; i++) {
		struct fake_ring *ring = &device->rings[i];

		ring->device = device;
		ring->last = &ring->first;
		pthread_cond_init(&ring->changed, &attr);
		if (fake.config.rings >> i & 1) {
			if (pthread_create(&ring->thread, NULL, ring_thread, ring))
				abort();
			ring->running = true;
		}
	}
	pthread_condattr_destroy(&attr);
}

void fake_rings_stop(struct amdgpu_device *device)
{
	for (unsigned int i = 0; i < FAKE_DRM_MAX_RINGS; i++) {
		struct fake_ring *ring = &device->rings[i];

		ring->stop = true;
		pthread_cond_broadcast(&ring->changed);
		if (ring->running) {
			pthread_mutex_unlock(&fake.lock);
			pthread_join(ring->thread, NULL);
			pthread_mutex_lock(&fake.lock);
		}
		pthread_cond_destroy(&ring->changed);
	}
}

void fake_rings_drop(struct amdgpu_context *context)
{
	for (unsigned int i = 0; i < FAKE_DRM_MAX_RINGS; i++) {
		struct fake_ring *ring = &context->device->rings[i];

		if (context->done[i] == context->submitted[i])
			continue;
		if (!context->device->hung)
			fake_violation("a context is freed while its submissions are in flight");
		while (context->done[i] < context->submitted[i] && ring->first && !ring->first->hang)
			pthread_cond_wait(&ring->changed, &fake.lock);
		while (ring->first) { /* behind one that hangs; the BOs are gone already */
			struct fake_job *job = ring->first;

			ring->first = job->next;
			free(job->bos);
			free(job);
		}
		ring->last = &ring->first;
	}
}

int fake_ring_submit(struct amdgpu_context *context, struct amdgpu_cs_request *request)
{
	struct fake_ring *ring = &context->device->rings[request->ring];
	struct fake_job *job;

	if (request->ibs->ib_mc_address % FAKE_IB_START_ALIGN || !request->ibs->size || request->ibs->size % 8 ||
	    request->ibs->size > IB_MAX_DW)
		return -EINVAL;
	job = calloc(1, sizeof(*job));
	if (!job)
		abort();
	job->context = context;
	job->seq = ++context->submitted[request->ring];
	job->submitted_ns = now_ns();
	job->ib_address = request->ibs->ib_mc_address;
	job->nr_dw = request->ibs->size;
	job->nr_bos = request->resources->nr;
	job->bos = calloc(job->nr_bos, sizeof(*job->bos));
	if (!job->bos)
		abort();
	for (size_t i = 0; i < job->nr_bos; i++) {
		job->bos[i] = request->resources->bos[i];
		job->bos[i]->pending++;
	}
	job->hang = ++fake.submissions == fake.config.hang;
	context->device->hung |= job->hang;
	fake.rings_used |= 1u << request->ring;
	*ring->last = job;
	ring->last = &job->next;
	pthread_cond_broadcast(&ring->changed);
	request->seq_no = job->seq;
	return 0;
}

bool fake_ring_wait(const struct amdgpu_cs_fence *fence, uint64_t timeout_ns)
{
	struct fake_ring *ring = &fence->context->device->rings[fence->ring];
	uint64_t until = now_ns() + timeout_ns;
	struct timespec t = { .tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000) };
	int err = 0;

	if (!fence->fence || fence->fence > fence->context->submitted[fence->ring])
		fake_violation("a fence is waited for that was never submitted");
	while (fence->context->done[fence->ring] < fence->fence && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&ring->changed, &fake.lock, &t);
	return fence->context->done[fence->ring] >= fence->fence;
}
