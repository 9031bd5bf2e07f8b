/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shareplay: processes that share GPU memory as a seed wants it.
 *
 * One move at a time: the referee, the parent of all, gives the turn to a player, which allocates, exports, passes on,
 * imports, maps, writes, frees. What there is stands in memory that all share (the world): buffers, their contents by
 * the seed of a pattern, and the names by which players have them. So each player knows what each of its names has to
 * show, and which number the next one gets. The moves follow from the seed alone, whenever the processes are dumped.
 *
 * Functions that return int give 0 or -errno and have reported the failure.
 */
#ifndef WORKLOADS_SHAREPLAY_H
#define WORKLOADS_SHAREPLAY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gem.h"
#include "kfd.h"
#include "sdma.h"

#define PLAY_PLAYERS	8u
#define PLAY_GPUS	3u
#define PLAY_BUFFERS	32u
#define PLAY_NAMES	160u
#define PLAY_OWN_NAMES	16u /* from here on a player frees */
#define PLAY_MAX_PAGES	65u
#define PLAY_MAX_BYTES	(PLAY_MAX_PAGES * KFD_PAGE_SIZE)
#define PLAY_NOBODY	UINT32_MAX

enum play_kind { PLAY_NONE, PLAY_BO, PLAY_IMPORT, PLAY_HANDLE, PLAY_DMABUF };

struct play_buffer {
	bool used;
	enum kfd_memory kind;
	unsigned int gpu; /* the owner */
	uint64_t bytes;
	uint64_t seed;	/* of its contents */
	uint32_t token; /* its metadata, as IPC of ROCm 7.2 has them; 0: none */
};

struct play_name {
	enum play_kind kind;
	unsigned int player, buffer, gpu;
	bool loose;	  /* see loosen() */
	struct kfd_bo bo; /* va 0: without an address */
	uint32_t handle;
	uint64_t va; /* of a handle, 0: not mapped */
	void *cpu;   /* of a handle */
	int fd;
};

enum play_order { PLAY_START, PLAY_MOVE, PLAY_LOOK, PLAY_TAKE, PLAY_DROP, PLAY_FORK, PLAY_LEAVE, PLAY_END };

struct play_world {
	_Atomic uint32_t turn; /* whose it is: a player's number, or the referee's */
	_Atomic bool failed;
	enum play_order order, follow; /* what to do; what has to follow: PLAY_MOVE is nothing */
	unsigned int buffer, gpu;      /* of the order */
	unsigned int taker;
	uint64_t chance, moves, seeds;
	unsigned int nr_gpus;
	bool lists;	   /* the kernel lists the handles of a render file, without which none is dumped */
	bool hive;	   /* all GPUs are one: they see each other's VRAM */
	bool tidy;	   /* no move is made while names are loose */
	unsigned int nr_loose[PLAY_GPUS];
	struct play_buffer buffers[PLAY_BUFFERS];
	struct play_name names[PLAY_NAMES];
	bool present[PLAY_PLAYERS + 1], has_kfd[PLAY_PLAYERS + 1];
	uint64_t counts[PLAY_END + 1];
	char message[512];
};

/* A process. Number 0 is the referee. */
struct play {
	struct play_world *world;
	unsigned int number;
	struct kfd kfd;
	struct sdma_queue queues[PLAY_GPUS];
	struct kfd_bo windows[PLAY_GPUS]; /* through which the CPU sees what only a GPU reaches */
	uint64_t first_number[PLAY_GPUS]; /* of KFD BOs that are names */
	int box[2];			  /* from any player to any other */
	pid_t heir;			  /* a child that has inherited its files and does nothing; 0: none */
};

/* 0 .. @n - 1, the same in all runs of a seed. */
unsigned int play_draw(struct play_world *world, unsigned int n);

/* ---- shareplay_names.c ---- */

/* Opens the GPUs, by /dev/kfd or only their render nodes. */
int play_open(struct play *me);
/* Frees all names and closes. */
int play_close(struct play *me);

/* A new buffer of the KFD, @bare: without an address; or of the render node. */
int play_alloc(struct play *me, unsigned int gpu, enum kfd_memory kind, uint64_t bytes, bool bare);
int play_create(struct play *me, unsigned int gpu, enum kfd_memory kind, uint64_t bytes);
/* Another name of what @dmabuf is. play_keep() takes the fd. */
int play_import(struct play *me, unsigned int buffer, unsigned int gpu, int dmabuf);
int play_handle(struct play *me, unsigned int buffer, unsigned int gpu, int dmabuf);
int play_keep(struct play *me, unsigned int buffer, int dmabuf);
bool play_has_handle(const struct play *me, unsigned int buffer, unsigned int gpu);
bool play_is_kfd(const struct play_name *name);

/* A dma-buf, looked at: whether it is the right buffer. The caller closes it. */
int play_export(struct play *me, const struct play_name *name, int *ret_fd);
/* What can be mapped of a name is mapped, or no longer. */
int play_map(struct play *me, struct play_name *name);
int play_write(struct play *me, struct play_name *name);
bool play_can_write(const struct play *me, const struct play_name *name);
int play_check(struct play *me, const struct play_name *name);
/* Gives the buffer of a handle new metadata, where handles show them: on its own GPU. */
int play_describe(struct play *me, const struct play_name *name);
int play_free(struct play *me, struct play_name *name);

/* The name is no more: by play_free(), or with its process. */
void play_forget(struct play_world *world, struct play_name *name);

#endif
