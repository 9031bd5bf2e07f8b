/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all tasks of a restore and criu's main process have in common, in one piece of shared memory: the choice of
 * GPUs, the tasks that have state on them, and what the main process has to clean up.
 */
#ifndef CHECKPOINT_SHARED_H
#define CHECKPOINT_SHARED_H

#include <stdbool.h>
#include <sys/types.h>

#include "kernel/kernel.h"
#include "match/match.h"
#include "pages/pages.h"

struct shared;

/* In criu's main process, before it has tasks. NULL when memory is short. */
struct shared *shared_new(void);
/* In criu's main process, when its tasks run or are dead: removes cgroups that these have left. Accepts NULL. */
void shared_free(struct shared *shared);

/* ---- the choice of GPUs ---- */

/*
 * How much VRAM all tasks together need of a saved GPU, and which local GPU it has become. They choose one after the
 * other, and the later ones follow the first: a task holds the lock from its first look until its own choice is noted.
 */
struct match_choices *shared_choices(struct shared *shared);
void shared_lock(struct shared *shared);
void shared_unlock(struct shared *shared);

/* Lets the first task that has the lock @ask once for all, with the token of a file that it has kept. */
void shared_ask_lazy(struct shared *shared, bool (*ask)(int token), int token);
/* Whether memory will come only when it is touched. After shared_ask_lazy(). */
bool shared_is_lazy(const struct shared *shared);

/* ---- files in criu's store ---- */

/* Notes the token of a file for shared_let_go(). Returns @token, which may be an error. */
int shared_note_file(struct shared *shared, int token);
/* Keeps a copy of @fd and notes it: a token, or -errno. */
int shared_keep_copy(struct shared *shared, int fd);
/* Closes all that are noted. 0 or -errno. */
int shared_let_go(const struct shared *shared);

/* ---- tasks with state on GPUs ---- */

struct shared_task {
	pid_t pid; /* in its own pid namespace, the same one for all */
	bool has_kfd;
	unsigned int nr_ranges; /* whose pages RESUME takes */
	const struct svm_range *ranges;
};

/* Adds the calling task before its @state is put in: so a task that is not there surely has none. 0 or -errno. */
int shared_add_task(struct shared *shared, bool has_kfd, const struct kfd_state *state);
/* In criu's main process: 1 and *ret; 0 for a task without such state; -errno. @pid as the caller sees it. */
int shared_find_task(const struct shared *shared, pid_t pid, struct shared_task *ret);

/* In criu's main process: how many there are, when all tasks have their files. */
unsigned int shared_count_tasks(const struct shared *shared);

/* ---- what was copied ---- */

/* Of the worker, and of tasks that copy by themselves. */
struct content_tally *shared_tally(struct shared *shared);
/* In a task: leaves it to the main process to wait for its contents. False when there is no room. */
bool shared_note_contents(struct shared *shared, int token);
/* In the main process: the @i-th of these tokens; -1 behind the last one. */
int shared_contents(const struct shared *shared, unsigned int i);
/* In a task, which has waited for its contents or has copied them since @began, by monotonic_seconds(). */
void shared_note_wait(struct shared *shared, double began);
/* In criu's main process: the most that one has waited, in seconds. */
double shared_longest_wait(const struct shared *shared);

/* ---- temporary cgroups, in which tasks hide GPUs from themselves ---- */

struct shared_keeper {
	struct hide_keeper hooks; /* for hide_begin() */
	struct shared *shared;
	struct shared_cgroup *own; /* of the calling task */
};

void shared_keeper_init(struct shared_keeper *keeper, struct shared *shared);

#endif
