// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two processes that meet in shared memory. They wait by sleeping, which a checkpoint does not disturb.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fdpass.h"
#include "pair.h"
#include "report.h"

#define PATIENCE_NAPS 120000u

int pair_fork(struct pair *pair)
{
	void *p = mmap(NULL, sizeof(*pair->control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t first = getpid();

	if (p == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair->ends))
		return report(errno, "shared memory and a socket: %m");
	pair->control = p;
	pair->second = fork();
	if (pair->second < 0)
		return report(errno, "fork: %m");
	if (pair->second)
		return 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != first)
		_exit(1);
	pair->number = 1;
	return 0;
}

int pair_wait(const struct pair *pair)
{
	int status;

	if (!pair->second)
		return 0;
	if (waitpid(pair->second, &status, 0) < 0)
		return report(errno, "the second process: %m");
	return status ? report(ECHILD, "the second process ended with status %#x", status) : 0;
}

int pair_meet(struct pair *pair)
{
	struct pair_control *control = pair->control;
	const struct timespec nap = { .tv_nsec = 1000000 };
	uint32_t times = ++control->meetings[pair->number];

	for (unsigned int naps = 0; control->meetings[!pair->number] < times; naps++) {
		if (control->failed)
			return -ECANCELED;
		if (naps == PATIENCE_NAPS)
			return report(ETIME, "the other process does not come to meeting %u", times);
		nanosleep(&nap, NULL);
	}
	return control->failed ? -ECANCELED : 0;
}

int pair_send(const struct pair *pair, int fd)
{
	return fdpass_send(pair->ends[0], "", 1, fd);
}

int pair_receive(const struct pair *pair, int *ret_fd)
{
	char byte;

	return fdpass_receive(pair->ends[1], &byte, 1, ret_fd);
}

void pair_close_socket(struct pair *pair)
{
	close(pair->ends[0]);
	close(pair->ends[1]);
}

/* ---- memory that both have ---- */

uint64_t pair_seed(unsigned int half, uint64_t generation)
{
	return (uint64_t)(half + 1) << 56 | generation;
}

static int halves_check(const struct pair_memory *memory)
{
	int err = memory->get(memory->data, 0, memory->generation);

	return err ? err : memory->get(memory->data, 1, memory->generation);
}

int pair_begin(struct pair *pair, struct pair_memory *memory)
{
	memory->generation = 0;
	return memory->put(memory->data, pair->number, 0);
}

int pair_round(struct pair *pair, struct pair_memory *memory, bool *stop)
{
	int err;

	if (!pair->number && *stop)
		pair->control->stop = true;
	err = pair_meet(pair);
	if (err)
		return err;
	*stop = pair->control->stop;
	err = halves_check(memory);
	err = err ? err : pair_meet(pair);
	memory->generation++;
	err = err ? err : memory->put(memory->data, pair->number, memory->generation);
	err = err ? err : pair_meet(pair);
	return err ? err : halves_check(memory);
}
