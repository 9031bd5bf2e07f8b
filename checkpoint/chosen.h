/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all tasks of a restore have in common: how much VRAM they need together of a saved GPU, and which local GPU it
 * has become. They choose one after the other, and the later ones follow the first.
 */
#ifndef CHECKPOINT_CHOSEN_H
#define CHECKPOINT_CHOSEN_H

#include <stdbool.h>

#include "match/match.h"

struct chosen {
	int lock;
	bool was_asked, is_lazy;
	struct match_choices choices;
};

/* In criu's main process, before it has tasks: memory that all of them share. NULL when there is none. */
struct chosen *chosen_new(void);
/* Accepts NULL. */
void chosen_free(struct chosen *chosen);

/* A task has to hold the lock from the first look at the table until its own choice is in it. */
void chosen_lock(struct chosen *chosen);
void chosen_unlock(struct chosen *chosen);

/* Lets the first task that has the lock @ask once for all, with the token of a file that it has kept. */
void chosen_ask_lazy(struct chosen *chosen, bool (*ask)(int token), int token);
/* Whether memory will come only when it is touched. After chosen_ask_lazy(). */
bool chosen_is_lazy(const struct chosen *chosen);

#endif
