// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shared state of a run. Knows nothing of what its threads do.
 */
#include "content/run.h"

#include <time.h>

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
