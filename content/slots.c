// SPDX-License-Identifier: GPL-2.0-only
/* What threads have in common: of all GPUs the run, of one GPU its slots. */
#include "content/pipeline.h"

#include <inttypes.h>
#include <time.h>

/* ---- the run ---- */

int content_run_init(struct content_run *run, bool dump, size_t nr_gpus)
{
	pthread_condattr_t attr;

	*run = (struct content_run){ .dump = dump, .nr_gpus = nr_gpus };
	run->changed = calloc(nr_gpus * RUN_NR_WAITERS, sizeof(*run->changed));
	if (!run->changed)
		return -ENOMEM;
	pthread_mutex_init(&run->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&run->ended, &attr);
	pthread_condattr_destroy(&attr);
	for (size_t i = 0; i < nr_gpus * RUN_NR_WAITERS; i++)
		pthread_cond_init(&run->changed[i], NULL);
	return 0;
}

void content_run_done(struct content_run *run)
{
	for (size_t i = 0; i < run->nr_gpus * RUN_NR_WAITERS; i++)
		pthread_cond_destroy(&run->changed[i]);
	free(run->changed);
	pthread_cond_destroy(&run->ended);
	pthread_mutex_destroy(&run->lock);
}

int content_run_fail(struct content_run *run, int err)
{
	pthread_mutex_lock(&run->lock);
	if (!atomic_load(&run->err)) {
		snprintf(run->error_text, sizeof(run->error_text), "%s", fail_text());
		atomic_store(&run->err, err);
	}
	for (size_t i = 0; i < run->nr_gpus * RUN_NR_WAITERS; i++)
		pthread_cond_broadcast(&run->changed[i]);
	pthread_mutex_unlock(&run->lock);
	return err;
}

/* ---- slots ---- */

bool pipeline_is_stopped(void *arg)
{
	const struct pipeline *pipeline = arg;

	return content_run_has_failed(pipeline->run);
}

unsigned int slot_of(const struct pipeline *pipeline, uint64_t w)
{
	return (unsigned int)(w % pipeline->layout.nr_slots);
}

uint8_t *slot_memory(const struct pipeline *pipeline, uint64_t w)
{
	return pipeline->staging + slot_of(pipeline, w) * pipeline->layout.slot_bytes;
}

uint8_t *slot_map(const struct pipeline *pipeline, uint64_t w)
{
	return pipeline->maps + slot_of(pipeline, w) * (pipeline->layout.slot_bytes / LAYOUT_BLOCK_BYTES);
}

/* Which thread waits for window @w: each is woken for its own windows only. */
static pthread_cond_t *waiting_for(struct pipeline *pipeline, uint64_t w, bool copies)
{
	return &pipeline->changed[copies ? RUN_COPIES : w % 2 ? RUN_TRANSFERS_ODD : RUN_TRANSFERS_EVEN];
}

/* Whether @counter has reached @count; when @wait, waits for that or for the end of the run. */
static bool reached(struct pipeline *pipeline, pthread_cond_t *changed, const uint64_t *counter, uint64_t count,
		    bool wait)
{
	struct content_run *run = pipeline->run;
	bool ret;

	pthread_mutex_lock(&run->lock);
	while (wait && *counter < count && !content_run_has_failed(run))
		pthread_cond_wait(changed, &run->lock);
	ret = *counter >= count;
	pthread_mutex_unlock(&run->lock);
	return ret;
}

bool slot_is_free(struct pipeline *pipeline, uint64_t w, bool wait)
{
	pthread_cond_t *changed = waiting_for(pipeline, w, pipeline->run->dump);
	uint64_t nr_slots = pipeline->layout.nr_slots;

	return w < nr_slots || reached(pipeline, changed, &pipeline->nr_consumed, w + 1 - nr_slots, wait);
}

bool slot_is_full(struct pipeline *pipeline, uint64_t w, bool wait)
{
	pthread_cond_t *changed = waiting_for(pipeline, w, !pipeline->run->dump);

	return reached(pipeline, changed, &pipeline->nr_produced, w + 1, wait);
}

/* Called with the lock held: one more window has come into staging memory, or left it again. */
static void count_window(struct pipeline *pipeline, bool has_come)
{
	uint64_t len, off;

	if (has_come) {
		pipeline->nr_produced++;
		return;
	}
	off = layout_window(&pipeline->layout, pipeline->nr_consumed++, &len);
	pipeline->bytes_done = off + len - LENGTH_PREFIX_BYTES;
}

void slot_copied(struct pipeline *pipeline, uint64_t w)
{
	bool dump = pipeline->run->dump;

	pthread_mutex_lock(&pipeline->run->lock);
	count_window(pipeline, dump);
	pthread_mutex_unlock(&pipeline->run->lock);
	pthread_cond_signal(waiting_for(pipeline, dump ? w : w + pipeline->layout.nr_slots, false));
}

/* Windows count in their order: the next one may have been faster. */
void slot_transferred(struct pipeline *pipeline, uint64_t w)
{
	bool dump = pipeline->run->dump;
	const uint64_t *nr = dump ? &pipeline->nr_consumed : &pipeline->nr_produced;

	pthread_mutex_lock(&pipeline->run->lock);
	pipeline->is_transferred[slot_of(pipeline, w)] = true;
	while (pipeline->is_transferred[slot_of(pipeline, *nr)]) {
		pipeline->is_transferred[slot_of(pipeline, *nr)] = false;
		count_window(pipeline, !dump);
	}
	pthread_mutex_unlock(&pipeline->run->lock);
	pthread_cond_signal(waiting_for(pipeline, w, true));
}

struct place pipeline_place(const struct pipeline *pipeline, uint64_t file_off)
{
	struct place place;
	struct piece piece;

	if (file_off < LENGTH_PREFIX_BYTES)
		snprintf(place.text, sizeof(place.text), "length prefix");
	else if (layout_piece(&pipeline->layout, file_off, UINT64_MAX, &piece))
		snprintf(place.text, sizeof(place.text), "BO %u, byte %" PRIu64, pipeline->gpu->bos[piece.bo].index,
			 piece.bo_off);
	else
		snprintf(place.text, sizeof(place.text), "end of the contents");
	return place;
}
