/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes that are seized by the calling thread, and cgroups that are frozen. */
#ifndef STOPPED_HOLD_H
#define STOPPED_HOLD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* All threads of a process, each in a ptrace stop. */
struct hold {
	pid_t pid;
	pid_t *tids; /* the leader's first */
	size_t nr;
	bool was_stopped; /* by a signal, when it was seized */
};

/*
 * Seizes all threads and stops them; they are not told. With @calls, calls can be injected into the leader (inject.h):
 * seccomp is suspended there. 0, or -errno after fail(), with nothing held: -EPERM when another one traces it, -EBUSY
 * when a thread does not come out of a call in HOLD_SECONDS, -EOPNOTSUPP when the leader has ended and others run.
 */
#define HOLD_SECONDS 10
int hold_begin(pid_t pid, bool calls, struct hold *ret);

/* Whether another process traces it, and is not about to end. */
bool hold_is_traced(pid_t pid);

/* Whether a signal has stopped the process, and nobody has continued it since it is held. */
bool hold_is_stopped(const struct hold *hold);

/* Detaches from all threads. Accepts {}, and what hold_end() has left. */
void hold_end(struct hold *hold);

/* Adds all descendants of the processes. 0 or -errno, no message. */
int processes_add_descendants(int **pids, size_t *nr);

/* 0: there is no such process, or it has none that is seen here. */
pid_t process_parent(pid_t pid);

/* When a process was started, in ticks since the boot: with the pid, its name. 0: there is none. */
uint64_t process_start(pid_t pid);

/* The state of a process or thread, as /proc has it: 'T' when a signal has stopped it, 'Z'; 0: there is none. */
char task_state(pid_t tid);
/* Whether it has ended, or there is none. */
static inline bool task_has_ended(pid_t tid)
{
	return strchr("ZX", task_state(tid));
}

/*
 * Whether a process has ended, or is about to: /proc shows one that was killed, or exits, as running until it has let go
 * of whom it traces.
 */
bool process_is_ending(pid_t pid);

/* ---- cgroups, version 2 ---- */

#define CGROUPS "/sys/fs/cgroup"

/* Whether a path is that of the directory, or below it. */
static inline bool path_is_in(const char *path, const char *dir)
{
	size_t length = strlen(dir);

	return !strncmp(path, dir, length) && (!path[length] || path[length] == '/');
}

bool cgroup_is_v2(const char *path);

/* The directory of the process' cgroup, which may be the root; false where it is not below a /sys/fs/cgroup of v2. */
bool cgroup_of(pid_t pid, char path[PATH_MAX]);

/* Makes it that of the cgroup above; false: there is none that can be frozen. */
bool cgroup_above(char *path);

/* Whether cgroup.freeze of that directory says so, whatever is above. */
bool cgroup_is_frozen(const char *path);
/* Whether all its processes are frozen, by that or by one above. */
bool cgroup_all_frozen(const char *path);
/* 0 or -errno, no message. */
int cgroup_freeze(const char *path, bool freeze);
/* Makes one that processes can be in; an empty one of that name gives way. 0 or -errno, no message: -EOPNOTSUPP below
 * threaded cgroups, -EAGAIN at a limit (cgroup.max.depth, cgroup.max.descendants). */
int cgroup_make(const char *path);
/* Moves the process with all its threads. 0 or -errno, no message. */
int cgroup_enter(const char *path, pid_t pid);
/* For cgroup_was_written(): whether others freeze or thaw the cgroup from now on. A descriptor, or -errno, no message. */
int cgroup_watch(const char *path);
bool cgroup_was_written(int watch);

/* All processes in the cgroup, @below: and below it. Heap memory of the caller. 0 or -errno, no message. */
int cgroup_processes(const char *path, bool below, int **ret, size_t *ret_nr);

#endif
