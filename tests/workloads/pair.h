/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two processes of one workload that do things together. Functions that return int give 0 or -errno and have reported
 * the failure.
 */
#ifndef WORKLOADS_PAIR_H
#define WORKLOADS_PAIR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Shared by both. */
struct pair_control {
	_Atomic uint32_t meetings[2]; /* that each has come to */
	_Atomic bool stop, failed;
	_Alignas(8) uint8_t token[128]; /* what one tells the other, before a meeting */
};

struct pair {
	unsigned int number; /* 0: the process that was first */
	pid_t second;	     /* in the first process; 0: there is none */
	int ends[2];	     /* of a socket, for pair_send() and pair_receive() */
	struct pair_control *control;
};

/* Starts the second process, which returns too, and dies with the first. */
int pair_fork(struct pair *pair);
/* In the first process, as its last step: the second one's end. */
int pair_wait(const struct pair *pair);

/* Until both have come here. -ECANCELED, not reported: the other one has failed. */
int pair_meet(struct pair *pair);
/* The first sends a dma-buf, the second receives it. */
int pair_send(const struct pair *pair, int fd);
int pair_receive(const struct pair *pair, int *ret_fd);
/* No more of them. */
void pair_close_socket(struct pair *pair);

/*
 * Memory that both have. Each process writes its half of it anew in each generation, and both must find both. @put and
 * @get: write half @half with data of pair_seed(@half, @generation), or compare it with them; 0 or -errno, reported.
 */
struct pair_memory {
	int (*put)(void *data, unsigned int half, uint64_t generation);
	int (*get)(void *data, unsigned int half, uint64_t generation);
	void *data;
	uint64_t generation;
};

uint64_t pair_seed(unsigned int half, uint64_t generation);
/* Writes generation 0 of this process' half. */
int pair_begin(struct pair *pair, struct pair_memory *memory);
/* Checks the last generation, writes the next, and checks that. *@stop of the first process becomes that of both. */
int pair_round(struct pair *pair, struct pair_memory *memory, bool *stop);

#endif
