// SPDX-License-Identifier: GPL-2.0-only
/*
 * A table in memory that all tasks share: by the number of a buffer, where criu keeps its dma-buf. A task waits only
 * after it has told of its own, so waits end: by the owner's word, when all have told, when one fails (criu then kills
 * the others, too), or after a time that no restore takes.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#include "amdgpu_plugin_util.h"
#include "host/host.h"
#include "share/table.h"

#define WAIT_SECONDS 600
#define NAP_NS	     (1000l * 1000)

struct share_table {
	atomic_uint nr_sharers;	 /* 0: nobody has begun */
	atomic_uint nr_told, nr_attached;
	atomic_uint nr_files, nr_filled; /* of render nodes, with objects */
	atomic_int failed;	 /* pid, in its own namespace, of a task that cannot be restored */
	atomic_int kept[IMAGE_MAX_NUMBER + 1]; /* criu's number for the file, plus 1 */
};

struct share_table *share_table_new(void)
{
	void *p = mmap(NULL, sizeof(struct share_table), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void share_table_free(struct share_table *table)
{
	if (table)
		munmap(table, sizeof(*table));
}

void share_table_fail(struct share_table *table)
{
	atomic_store(&table->failed, getpid());
}

int share_table_begin(struct share_table *table, uint32_t nr_sharers)
{
	unsigned int others = 0;

	if (atomic_compare_exchange_strong(&table->nr_sharers, &others, nr_sharers) || others == nr_sharers)
		return 0;
	pr_err("the images say that %u processes share buffers, and that %u do: they are of different dumps", others,
	       nr_sharers);
	return -EBADMSG;
}

int share_table_put(struct share_table *table, uint32_t buffer, int dmabuf_fd)
{
	int none = 0, kept = criu_keep_file(dmabuf_fd);

	if (kept < 0)
		return kept;
	if (atomic_compare_exchange_strong(&table->kept[buffer], &none, kept + 1))
		return 0;
	pr_err("buffer %u of the images has two owners", buffer);
	return -EBADMSG;
}

void share_table_told(struct share_table *table)
{
	atomic_fetch_add(&table->nr_told, 1);
}

static void nap(void)
{
	const struct timespec time = { .tv_nsec = NAP_NS };

	nanosleep(&time, NULL);
}

int share_table_get(struct share_table *table, uint32_t buffer)
{
	double end = monotonic_seconds() + WAIT_SECONDS;

	for (;; nap()) {
		/* In this order: who has told has put before. */
		bool all_told = atomic_load(&table->nr_told) >= atomic_load(&table->nr_sharers);
		int failed = atomic_load(&table->failed), kept = atomic_load(&table->kept[buffer]);

		if (kept)
			return criu_kept_file(kept - 1);
		if (failed) {
			pr_err("pid %d, which shares buffers with this process, cannot be restored", failed);
			return -ECANCELED;
		}
		if (all_told) {
			pr_err("buffer %u, which the process shares, has no owner in the images", buffer);
			return -EBADMSG;
		}
		if (monotonic_seconds() > end) {
			pr_err("buffer %u, which the process shares, did not come within %d s: %u of %u processes have "
			       "made theirs", buffer, WAIT_SECONDS, atomic_load(&table->nr_told),
			       atomic_load(&table->nr_sharers));
			return -ETIMEDOUT;
		}
	}
}

void share_table_file(struct share_table *table)
{
	atomic_fetch_add(&table->nr_files, 1);
}

void share_table_attached(struct share_table *table, size_t nr_files)
{
	atomic_fetch_add(&table->nr_filled, (unsigned int)nr_files);
	atomic_fetch_add(&table->nr_attached, 1);
}

int share_table_check(const struct share_table *table)
{
	unsigned int nr_sharers = atomic_load(&table->nr_sharers), nr_attached = atomic_load(&table->nr_attached);

	if (nr_attached == nr_sharers && atomic_load(&table->nr_files) == atomic_load(&table->nr_filled))
		return 0;
	pr_err("%u of %u processes that share buffers have them again: the others' files were restored elsewhere",
	       nr_attached, nr_sharers);
	return -EBADMSG;
}
