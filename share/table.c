// SPDX-License-Identifier: GPL-2.0-only
/*
 * A table in memory that all tasks share: by the number of a buffer, where its dma-buf is kept. A task waits only after
 * it has exported its own, so a wait ends: when the owner exports, when all have exported, when one fails (criu then kills the
 * others, too), or after a time that no restore takes.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "amdgpu_plugin_util.h"
#include "host/host.h"
#include "share/table.h"

#define WAIT_SECONDS 600
#define NAP_US	     1000 /* at first: many tasks that look so often leave no processor for the work */
#define NAP_MAX_US   32000

struct share_table *share_table_new(void)
{
	return shared_memory_new(sizeof(struct share_table));
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
	return fail(-EBADMSG, "the images say that %u processes share buffers, and that %u do: they are of different dumps",
		    others, nr_sharers);
}

/* criu keeps a bundle of dma-bufs: its number and the place in it, from 1 on. */
static int place_of(int store_id, size_t index)
{
	return store_id * (int)BUNDLE_MAX + (int)index + 1;
}

static int set_place(struct share_table *table, uint32_t buffer, int place)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&table->place[buffer], &none, place))
		return 0;
	return fail(-EBADMSG, "buffer %u of the images has two owners", buffer);
}

static int fail_no_owner(uint32_t buffer)
{
	return fail(-EBADMSG, "buffer %u, which the process shares, has no owner in the images", buffer);
}

int share_batch_export(struct share_batch *batch, struct share_table *table)
{
	int store_id = batch->nr ? criu_keep_files(batch->dmabufs, batch->nr) : 0, err = store_id < 0 ? store_id : 0;

	for (size_t i = 0; !err && i < batch->nr; i++)
		err = set_place(table, batch->buffers[i], place_of(store_id, i));
	if (!err)
		batch->nr = 0;
	return err;
}

int share_batch_add(struct share_batch *batch, struct share_table *table, uint32_t buffer, int dmabuf_fd)
{
	batch->buffers[batch->nr] = buffer;
	batch->dmabufs[batch->nr++] = dmabuf_fd;
	return batch->nr < BUNDLE_MAX ? 0 : share_batch_export(batch, table);
}

/* Waits until a task exports the buffer; returns its place. */
static int wait_for_buffer(const struct share_table *table, uint32_t buffer)
{
	double end = monotonic_seconds() + WAIT_SECONDS;
	useconds_t nap = NAP_US;

	for (;; usleep(nap), nap = nap < NAP_MAX_US ? 2 * nap : nap) {
		/* Counts first, then the places: a task raises its count only after its places are stored. */
		bool all_exported = atomic_load(&table->nr_exported) >= atomic_load(&table->nr_sharers);
		int failed = atomic_load(&table->failed), place = atomic_load(&table->place[buffer]);

		if (place)
			return place;
		if (failed) {
			pr_info("pid %d, which shares buffers with this process, cannot be restored\n", failed);
			return -ECANCELED;
		}
		if (all_exported)
			return fail_no_owner(buffer);
		if (monotonic_seconds() > end)
			return fail(-ETIMEDOUT, "buffer %u, which the process shares, was not created within %d s: %u of %u "
				    "processes have created theirs", buffer, WAIT_SECONDS, atomic_load(&table->nr_exported),
				    atomic_load(&table->nr_sharers));
	}
}

void share_open_done(struct share_open *open)
{
	for (size_t i = 0; i < open->nr; i++)
		close(open->fds[i]);
	*open = (struct share_open){ 0 };
}

static bool is_place_open(const struct share_open *open, int place)
{
	return open->nr && place >= open->place && (size_t)(place - open->place) < open->nr;
}

int share_table_borrow(struct share_table *table, struct share_open *open, uint32_t buffer)
{
	int place = wait_for_buffer(table, buffer), store_id = (place - 1) / (int)BUNDLE_MAX, err;

	if (place < 0)
		return place;
	if (!is_place_open(open, place)) {
		share_open_done(open);
		open->place = place_of(store_id, 0);
		err = criu_kept_files(store_id, open->fds, &open->nr);
		if (err)
			return err;
	}
	/* This process may not have as many files as were exported. */
	if (!is_place_open(open, place))
		return fail(-EMFILE, "cannot take the dma-buf of buffer %u: %m", buffer);
	return open->fds[place - open->place];
}

int share_table_get(struct share_table *table, uint32_t buffer)
{
	_cleanup_(share_open_done) struct share_open open = { 0 };
	int copy, fd = share_table_borrow(table, &open, buffer);

	if (fd < 0)
		return fd;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return copy < 0 ? fail(-errno, "cannot take the dma-buf of buffer %u: %m", buffer) : copy;
}

int share_table_check(const struct share_table *table)
{
	unsigned int nr_sharers = atomic_load(&table->nr_sharers), nr_attached = atomic_load(&table->nr_attached);

	if (nr_attached == nr_sharers && atomic_load(&table->nr_files) == atomic_load(&table->nr_filled))
		return 0;
	return fail(-EBADMSG, "%u processes share buffers, and %u are there with all that they share", nr_sharers, nr_attached);
}

/* ---- images alone ---- */

int share_check_owned(struct share_table *table, const struct gpu_process *image)
{
	const struct kfd_state *state = &image->state;
	int err = image->nr_sharers ? share_table_begin(table, image->nr_sharers) : 0;

	for (size_t i = 0; i < state->nr_bos; i++)
		if (state->bos[i].share.buffer && kfd_state_owns(state, i))
			err = set_place(table, state->bos[i].share.buffer, place_of(0, 0)) ?: err;
	if (image->nr_sharers)
		atomic_fetch_add(&table->nr_attached, 1);
	return err;
}

int share_check_named(struct share_table *table, uint32_t buffer)
{
	if (!buffer || atomic_load(&table->place[buffer]))
		return 0;
	/* Once is enough. */
	set_place(table, buffer, place_of(0, 0));
	return fail_no_owner(buffer);
}
