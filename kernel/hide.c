// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel wants RESTORE to name every GPU that the process sees, and decides which these are when the process first
 * opens /dev/kfd. For that moment the task is put into a cgroup below its own, whose limits still hold, with a device
 * filter for only the GPUs it had. Filters need cgroup v2, which exists beside the controllers of v1, too.
 *
 * Cgroups are reached by a mount of their own, since the task may have none in its mount
 * namespace. It is made in a new cgroup namespace: then its root is the task's cgroup,
 * wherever that is. A mount in the first namespace would reset the options of the whole
 * machine's. A task that is killed meanwhile cannot remove its cgroup: criu's main
 * process is told where it is, and does.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include "kernel/kfd.h"
#include "kernel/machine.h"
#include "amdgpu_plugin_util.h"

/* Moves the process: "0" is the one that writes. */
static int enter_cgroup(int dir)
{
	_cleanup_close_ int fd = openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, "0", 1) == 1 ? 0 : -errno;
}

/* What cannot be removed is left to the keeper. */
static int remove_cgroup(const struct hide *hide)
{
	if (unlinkat(hide->cgroup, hide->name, AT_REMOVEDIR))
		return -errno;
	hide->keeper->removed(hide->keeper->arg);
	return 0;
}

/* In a cgroup namespace of its own. */
static int enter_filtered_cgroup(struct hide *hide, const uint32_t *minors, size_t nr_minors)
{
	_cleanup_close_ int dir = -1;
	int err;

	hide->cgroup = mount_private("cgroup2");
	if (hide->cgroup < 0)
		return fail(hide->cgroup, "mounting cgroup v2: %m");
	err = hide->keeper->made(hide->keeper->arg, hide->cgroup, hide->name);
	/* An empty one of the same name was left by a task that was killed. */
	if (!err && mkdirat(hide->cgroup, hide->name, 0755) &&
	    (errno != EEXIST || unlinkat(hide->cgroup, hide->name, AT_REMOVEDIR) || mkdirat(hide->cgroup, hide->name, 0755))) {
		err = -errno;
		hide->keeper->removed(hide->keeper->arg);
	}
	if (err) {
		close(steal_fd(&hide->cgroup));
		return fail(err, "making a cgroup: %m");
	}
	dir = openat(hide->cgroup, hide->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		err = fail(-errno, "opening a cgroup: %m");
	if (!err && (err = devfilter_attach(dir, minors, nr_minors)))
		err = fail(err, "device filter (BPF) of a cgroup: %m");
	else if (!err && (err = enter_cgroup(dir)))
		err = fail(err, "entering a cgroup: %m");
	if (!err)
		return 0;
	remove_cgroup(hide);
	close(steal_fd(&hide->cgroup));
	return err;
}

int hide_begin(const uint32_t *minors, size_t nr_minors, const struct hide_keeper *keeper, struct hide *hide)
{
	_cleanup_close_ int proc = mount_private("proc");
	_cleanup_close_ int own = proc < 0 ? -1 : openat(proc, "self/ns/cgroup", O_RDONLY | O_CLOEXEC);
	struct stat ns;
	int err;

	*hide = (struct hide){ .keeper = keeper, .cgroup = -1 };
	if (own < 0)
		return fail(proc < 0 ? proc : -errno, "looking for its cgroup namespace: %m");
	/* Pids are unique in their namespace only; tasks of several may be in one cgroup. */
	if (fstatat(proc, "self/ns/pid", &ns, 0))
		return fail(-errno, "looking for its pid namespace: %m");
	snprintf(hide->name, sizeof(hide->name), "criu-amdgpu-%x-%d", (unsigned int)ns.st_ino, getpid());
	if (unshare(CLONE_NEWCGROUP))
		return fail(-errno, "making a cgroup namespace: %m");
	err = enter_filtered_cgroup(hide, minors, nr_minors);
	if (!setns(own, CLONE_NEWCGROUP))
		return err;
	err = fail(-errno, "going back to its cgroup namespace: %m");
	hide_end(hide);
	return err;
}

int hide_end(struct hide *hide)
{
	int err;

	if (hide->cgroup < 0)
		return 0;
	err = enter_cgroup(hide->cgroup);
	if (err)
		(void)fail(err, "cannot leave the cgroup %s in which GPUs were hidden: %m", hide->name);
	else if (remove_cgroup(hide))
		pr_info("the cgroup %s cannot be removed yet\n", hide->name);
	close(steal_fd(&hide->cgroup));
	return err;
}
