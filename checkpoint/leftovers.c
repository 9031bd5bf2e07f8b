// SPDX-License-Identifier: GPL-2.0-only
/*
 * A list of cgroups in shared memory, each as a directory in criu's fd store and a name in it.
 * Paths would not do: a task may be in another mount and cgroup namespace than criu.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "amdgpu_plugin_util.h"
#include "checkpoint/leftovers.h"
#include "host/host.h"

/* Tasks that hide GPUs at one time, or die while they do. */
#define MAX_CGROUPS	  1024
/* A task that was killed is in its cgroup until it has given back all its memory. */
#define REMOVE_ATTEMPTS	  100
#define REMOVE_RETRY_USEC 10000

enum entry_state { ENTRY_FREE, ENTRY_TAKEN, ENTRY_VALID };

struct entry {
	int state;
	int token; /* of the directory that the cgroup is in */
	char name[48];
};

struct leftovers {
	struct hide_keeper keeper;
	struct entry *entries; /* shared */
	struct entry *own;     /* of the calling task */
};

static struct entry *take_entry(struct entry *entries)
{
	for (size_t i = 0; i < MAX_CGROUPS; i++) {
		int free_entry = ENTRY_FREE;

		if (__atomic_compare_exchange_n(&entries[i].state, &free_entry, ENTRY_TAKEN, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return &entries[i];
	}
	return NULL;
}

static int keep(void *arg, int dir, const char *name)
{
	struct leftovers *leftovers = arg;
	struct entry *entry = take_entry(leftovers->entries);
	int copy = entry ? fcntl(dir, F_DUPFD_CLOEXEC, 0) : -1;

	if (!entry)
		return -ENOSPC;
	entry->token = copy < 0 ? -errno : criu_keep_file(copy);
	if (entry->token < 0) {
		int err = entry->token;

		__atomic_store_n(&entry->state, ENTRY_FREE, __ATOMIC_RELEASE);
		return err;
	}
	snprintf(entry->name, sizeof(entry->name), "%s", name);
	__atomic_store_n(&entry->state, ENTRY_VALID, __ATOMIC_RELEASE);
	leftovers->own = entry;
	return 0;
}

static void forget(void *arg)
{
	struct leftovers *leftovers = arg;

	__atomic_store_n(&leftovers->own->state, ENTRY_FREE, __ATOMIC_RELEASE);
}

struct leftovers *leftovers_new(void)
{
	struct leftovers *leftovers = calloc(1, sizeof(*leftovers));
	void *mem = mmap(NULL, MAX_CGROUPS * sizeof(struct entry), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);

	if (!leftovers || mem == MAP_FAILED) {
		free(leftovers);
		if (mem != MAP_FAILED)
			munmap(mem, MAX_CGROUPS * sizeof(struct entry));
		return NULL;
	}
	*leftovers = (struct leftovers){ .keeper = { keep, forget, leftovers }, .entries = mem };
	return leftovers;
}

static void remove_left(const struct entry *entry)
{
	_cleanup_close_ int dir = criu_kept_file(entry->token);
	int err = dir < 0 ? dir : -EBUSY;

	for (int i = 0; dir >= 0 && err == -EBUSY && i < REMOVE_ATTEMPTS; i++) {
		if (i)
			usleep(REMOVE_RETRY_USEC);
		err = unlinkat(dir, entry->name, AT_REMOVEDIR) ? -errno : 0;
	}
	if (err && err != -ENOENT)
		pr_warn("the cgroup %s stays behind: %s", entry->name, strerror(-err));
}

void leftovers_free(struct leftovers *leftovers)
{
	if (!leftovers)
		return;
	for (size_t i = 0; i < MAX_CGROUPS; i++)
		if (__atomic_load_n(&leftovers->entries[i].state, __ATOMIC_ACQUIRE) == ENTRY_VALID)
			remove_left(&leftovers->entries[i]);
	munmap(leftovers->entries, MAX_CGROUPS * sizeof(struct entry));
	free(leftovers);
}

const struct hide_keeper *leftovers_keeper(struct leftovers *leftovers)
{
	return &leftovers->keeper;
}
