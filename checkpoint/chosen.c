// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of chosen GPUs, in shared memory. Its lock is one word: when a task that holds it dies, criu ends the
 * others as well.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "amdgpu_plugin_util.h"
#include "checkpoint/chosen.h"

#define LOCK_WAIT_USEC 1000

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

void chosen_ask_lazy(struct chosen *chosen, bool (*ask)(int token), int token)
{
	chosen->is_lazy = chosen->was_asked ? chosen->is_lazy : ask(token);
	chosen->was_asked = true;
}

bool chosen_is_lazy(const struct chosen *chosen)
{
	return chosen->is_lazy;
}
