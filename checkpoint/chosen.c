// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of chosen GPUs, in shared memory. Its lock is one word: when a task that holds it dies, criu ends the
 * others as well.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/chosen.h"

#define LOCK_WAIT_USEC 1000

struct chosen {
	int lock;
	unsigned int nr;
	bool was_asked, is_lazy, keeps_ids;
	struct chosen_pair {
		uint32_t saved_minor;
		uint32_t local_gpu_id; /* 0: none yet */
		uint64_t vram_needed;
	} pairs[TOPOLOGY_MAX_NODES];
};

struct chosen *chosen_new(void)
{
	void *mem = mmap(NULL, sizeof(struct chosen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

void chosen_free(struct chosen *chosen)
{
	if (chosen)
		munmap(chosen, sizeof(*chosen));
}

void chosen_lock(struct chosen *chosen)
{
	while (__atomic_exchange_n(&chosen->lock, 1, __ATOMIC_ACQUIRE))
		usleep(LOCK_WAIT_USEC);
}

void chosen_unlock(struct chosen *chosen)
{
	__atomic_store_n(&chosen->lock, 0, __ATOMIC_RELEASE);
}

static const struct chosen_pair *find(const struct chosen *chosen, uint32_t saved_minor)
{
	for (unsigned int i = 0; i < chosen->nr; i++)
		if (chosen->pairs[i].saved_minor == saved_minor)
			return &chosen->pairs[i];
	return NULL;
}

static struct chosen_pair *find_or_add(struct chosen *chosen, uint32_t saved_minor)
{
	const struct chosen_pair *pair = find(chosen, saved_minor);

	if (pair)
		return &chosen->pairs[pair - chosen->pairs];
	if (chosen->nr == ARRAY_SIZE(chosen->pairs))
		return NULL;
	chosen->pairs[chosen->nr].saved_minor = saved_minor;
	return &chosen->pairs[chosen->nr++];
}

void chosen_need(struct chosen *chosen, uint32_t saved_minor, uint64_t vram_bytes)
{
	struct chosen_pair *pair = find_or_add(chosen, saved_minor);

	if (pair)
		pair->vram_needed += vram_bytes;
}

uint64_t chosen_needed(const struct chosen *chosen, uint32_t saved_minor)
{
	const struct chosen_pair *pair = find(chosen, saved_minor);

	return pair ? pair->vram_needed : 0;
}

uint32_t chosen_local(const struct chosen *chosen, uint32_t saved_minor)
{
	const struct chosen_pair *pair = find(chosen, saved_minor);

	return pair ? pair->local_gpu_id : 0;
}

int chosen_saved(const struct chosen *chosen, uint32_t local_gpu_id)
{
	for (unsigned int i = 0; i < chosen->nr; i++)
		if (chosen->pairs[i].local_gpu_id == local_gpu_id)
			return (int)chosen->pairs[i].saved_minor;
	return -ENOENT;
}

void chosen_keep_ids(struct chosen *chosen)
{
	chosen->keeps_ids = true;
}

bool chosen_keeps_ids(const struct chosen *chosen)
{
	return chosen->keeps_ids;
}

void chosen_ask_lazy(struct chosen *chosen, bool (*ask)(int token), int token)
{
	chosen->is_lazy = chosen->was_asked ? chosen->is_lazy : ask(token);
	chosen->was_asked = true;
}

bool chosen_is_lazy(const struct chosen *chosen)
{
	return chosen->is_lazy;
}

int chosen_add(struct chosen *chosen, uint32_t saved_minor, uint32_t local_gpu_id)
{
	struct chosen_pair *pair = find_or_add(chosen, saved_minor);

	if (!pair)
		return -ENOSPC;
	pair->local_gpu_id = local_gpu_id;
	return 0;
}
