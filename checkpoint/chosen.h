/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all tasks of a restore have in common: how much VRAM they need together of a saved GPU, and which local GPU it
 * has become. They choose one after the other, and the later ones follow the first. A saved GPU is named by its render
 * minor at dump, since each process has gpu ids of its own.
 */
#ifndef CHECKPOINT_CHOSEN_H
#define CHECKPOINT_CHOSEN_H

#include <stdbool.h>
#include <stdint.h>

struct chosen;

/* In criu's main process, before it has tasks: memory that all of them share. NULL when there is none. */
struct chosen *chosen_new(void);
/* Accepts NULL. */
void chosen_free(struct chosen *chosen);

/* A task has to hold the lock from the first look at the table until its own choice is in it. */
void chosen_lock(struct chosen *chosen);
void chosen_unlock(struct chosen *chosen);

/* The local gpu id that a saved GPU has become; 0: none yet. */
uint32_t chosen_local(const struct chosen *chosen, uint32_t saved_minor);

/* The saved render minor that has become this local GPU, -ENOENT when there is none. */
int chosen_saved(const struct chosen *chosen, uint32_t local_gpu_id);

/* The bytes of VRAM that all tasks need of a saved GPU; 0: not known. Added before there are tasks. */
void chosen_need(struct chosen *chosen, uint32_t saved_minor, uint64_t vram_bytes);
uint64_t chosen_needed(const struct chosen *chosen, uint32_t saved_minor);

/* Some task shares buffers and needs GPUs of the same ids, which matters more than idle ones. */
void chosen_keep_ids(struct chosen *chosen);
bool chosen_keeps_ids(const struct chosen *chosen);

/* Lets the first task that has the lock @ask once for all, with the token of a file that it has kept. */
void chosen_ask_lazy(struct chosen *chosen, bool (*ask)(int token), int token);
/* Whether memory will come only when it is touched. After chosen_ask_lazy(). */
bool chosen_is_lazy(const struct chosen *chosen);

/* Adds a pair; one that is there already is no error. -ENOSPC, without a message, when the table is full. */
int chosen_add(struct chosen *chosen, uint32_t saved_minor, uint32_t local_gpu_id);

#endif
