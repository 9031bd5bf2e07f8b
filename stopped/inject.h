/* SPDX-License-Identifier: GPL-2.0-only */
/* System calls that a stopped thread is made to make: the KFD takes most of its ioctls from the process itself alone. */
#ifndef STOPPED_INJECT_H
#define STOPPED_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>

/* What calls change in a thread, as it was before: plain bytes, which the caller may keep in a file. */
struct inject_thread {
	struct user_regs_struct regs;
	uint64_t blocked; /* signals, by their bits */
	uint64_t rseq_at, rseq_cs; /* where the thread says what must not be interrupted, and what it says; 0: nowhere */
};

/* A stopped process that is made to call. */
struct inject {
	pid_t tid; /* of its first thread */
	int kfd;   /* the number of its descriptor of /dev/kfd */
	struct inject_thread own;
	uint64_t instruction; /* address of one that makes a system call */
	uint64_t memory;      /* address of INJECT_MEMORY bytes in the task, for arguments; 0: none */
	bool is_changed;      /* the thread is not as @own says: inject_end() restores that */
	bool is_lost;	      /* a call was not made, or did not return, or its memory is out of reach: no more can follow */
	unsigned int nr_stops; /* how often the thread has taken SIGSTOP in its calls */
	/* For the caller, after inject_look(): asked each INJECT_ASK_SECONDS in which a call does not come back. */
	void (*ask)(void *arg);
	void *arg;
};
#define INJECT_ASK_SECONDS 0.1

/* What a caller has of the task's memory: ioctls' arguments at its beginning, what they point to behind that. */
#define INJECT_MEMORY 8192u
#define INJECT_DATA   1024u
#define INJECT_ROOM   2048u /* the end of both */
#define INJECT_SPARE  4096u /* and from there on a page in whose place anything can be mapped, which goes with the rest */

/*
 * All: the calling thread traces @tid (PTRACE_SEIZE), which is in a ptrace stop, and not at the beginning of a call. 0,
 * or -errno after fail(): -ESRCH when the thread is gone, -ETIME when it does not come back from a call in
 * INJECT_SECONDS.
 *
 * A tracer that dies lets the thread run, with whatever registers it has. So the process has to be stopped as well
 * (SIGSTOP), and seized with INJECT_OPTIONS, without which stops leave SIGTRAP behind: then it stops again, wherever it
 * is, and inject_adopt() takes it over. Or it has to die with its tracer.
 */
#define INJECT_SECONDS 60
#define INJECT_OPTIONS PTRACE_O_TRACESYSGOOD

/* Looks at the thread, changes nothing. -EOPNOTSUPP for one that runs 32-bit code, or without a vDSO. */
int inject_look(pid_t tid, int kfd, struct inject *ret);

/*
 * After inject_look(), of a thread that a tracer may have left in the middle of it all: @own is what that one had seen
 * before. True where it was so: then *inject goes on, with or without memory, and calls and inject_end() may follow.
 */
bool inject_adopt(struct inject *inject, const struct inject_thread *own);

/* Blocks signals, and maps the memory. After an error the thread has all that it had, as after inject_end(). */
int inject_begin(struct inject *inject);

/*
 * Makes a call; *ret: what it returned (NULL: not asked for). Interrupted ones are repeated. -errno of the call itself
 * has no message; when the call could not be made, inject->is_lost is set after fail(). So fail() of a caller, which
 * keeps the first message, is right for both.
 */
int inject_call(struct inject *inject, long nr, const uint64_t args[6], int64_t *ret);

/* The same for an ioctl of its /dev/kfd; @args, of the size that @op says, are copied into the memory and back. */
int inject_kfd(struct inject *inject, unsigned long op, void *args);

/* Writes bytes into the memory at @at (INJECT_DATA and above); the address is inject->memory + @at. */
int inject_write(struct inject *inject, size_t at, const void *data, size_t size);

/* fail() for a call that returned @err: names the limit of the process or machine, and how to raise it. */
int inject_fail(const struct inject *inject, int err, const char *what);

/* Unmaps the memory, and restores the thread. */
int inject_end(struct inject *inject);

#endif
