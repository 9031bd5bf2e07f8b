// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel wants RESTORE to name every GPU that the process sees, and decides which these are when the process first
 * opens /dev/kfd. For that moment the task is put into a cgroup below its own, whose limits still hold, with a device
 * filter that leaves only the GPUs it had.
 *
 * Cgroups are reached by a mount of their own, since the task may have none in its mount
 * namespace. It is made in a new cgroup namespace: then its root is the task's cgroup,
 * wherever that is. A mount in the first namespace would reset the options of the whole
 * machine's. A task that is killed meanwhile cannot remove its cgroup: somebody else is told
 * where it is.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include "kernel/kfd.h"
#include "kernel/machine.h"
#include "amdgpu_plugin_util.h"

#define CGROUP_TEXT_MAX 16384

/* The hierarchies of cgroups in which the task is. */
struct hierarchies {
	bool v2;
	char v1_devices[256]; /* controllers of the one with "devices", separated by commas; "": none */
};

static bool has_controller(const char *list, const char *controller)
{
	size_t len = strlen(controller);

	for (; list; list = strchr(list, ','), list += list != NULL)
		if (!strncmp(list, controller, len) && (list[len] == ',' || !list[len]))
			return true;
	return false;
}

/* Lines are "NUMBER:CONTROLLER,...:PATH"; that of v2 is "0::PATH". */
static void parse_hierarchies(char *text, struct hierarchies *ret)
{
	char *line;

	while ((line = strsep(&text, "\n"))) {
		char *number = strsep(&line, ":"), *controllers = strsep(&line, ":");

		if (!line)
			continue;
		if (!strcmp(number, "0") && !*controllers)
			ret->v2 = true;
		else if (has_controller(controllers, "devices"))
			snprintf(ret->v1_devices, sizeof(ret->v1_devices), "%s", controllers);
	}
}

static int read_hierarchies(int proc, struct hierarchies *ret)
{
	_cleanup_close_ int fd = openat(proc, "self/cgroup", O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *text = calloc(1, CGROUP_TEXT_MAX);
	ssize_t n = fd >= 0 && text ? read(fd, text, CGROUP_TEXT_MAX - 1) : -1;

	if (n < 0)
		return -errno;
	parse_hierarchies(text, ret);
	return 0;
}

/* Moves the process: "0" is the one that writes. */
static int enter_cgroup(int dir)
{
	_cleanup_close_ int fd = openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, "0", 1) == 1 ? 0 : -errno;
}

/* Pids are unique in their namespace only; tasks of several may be in one cgroup. */
static int choose_name(int proc, struct hide *hide)
{
	struct stat ns;

	if (fstatat(proc, "self/ns/pid", &ns, 0))
		return -errno;
	snprintf(hide->name, sizeof(hide->name), "criu-amdgpu-%x-%d", (unsigned int)ns.st_ino, getpid());
	return 0;
}

/* An empty one of the same name was left by a task that was killed. */
static int make_cgroup(const struct hide *hide)
{
	if (!mkdirat(hide->cgroup, hide->name, 0755))
		return 0;
	if (errno == EEXIST && !unlinkat(hide->cgroup, hide->name, AT_REMOVEDIR) &&
	    !mkdirat(hide->cgroup, hide->name, 0755))
		return 0;
	return -errno;
}

static int filter_and_enter(const struct hide *hide, bool v2, const uint32_t *minors, size_t nr_minors)
{
	_cleanup_close_ int dir = openat(hide->cgroup, hide->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err;

	if (dir < 0)
		return fail(-errno, "opening a cgroup of %s: %m", v2 ? "v2" : "v1");
	err = v2 ? devfilter_attach(dir, minors, nr_minors) : devfilter_write(dir, minors, nr_minors);
	if (err)
		return fail(err, "%s: %m", v2 ? "device filter (BPF) of cgroup v2" : "device filter of cgroup v1");
	err = enter_cgroup(dir);
	return err ? fail(err, "entering a cgroup of %s: %m", v2 ? "v2" : "v1") : 0;
}

static void tell_removed(const struct hide *hide)
{
	if (hide->keeper)
		hide->keeper->removed(hide->keeper->arg);
}

/* What cannot be removed is left to the keeper. */
static int remove_cgroup(const struct hide *hide)
{
	if (unlinkat(hide->cgroup, hide->name, AT_REMOVEDIR))
		return -errno;
	tell_removed(hide);
	return 0;
}

static int make_kept_cgroup(const struct hide *hide)
{
	int err = hide->keeper ? hide->keeper->made(hide->keeper->arg, hide->cgroup, hide->name) : 0;

	if (err)
		return err;
	err = make_cgroup(hide);
	if (err)
		tell_removed(hide);
	return err;
}

/* @v1_devices: NULL for v2 */
static int hide_by(struct hide *hide, const char *v1_devices, const uint32_t *minors, size_t nr_minors)
{
	const char *version = v1_devices ? "v1 (devices)" : "v2";
	int err;

	hide->cgroup = mount_private(v1_devices ? "cgroup" : "cgroup2", v1_devices);
	if (hide->cgroup < 0)
		return fail(hide->cgroup, "mounting cgroup %s: %m", version);
	err = make_kept_cgroup(hide);
	if (err) {
		(void)fail(err, "making a cgroup of %s: %m", version);
	} else {
		err = filter_and_enter(hide, !v1_devices, minors, nr_minors);
		if (err)
			remove_cgroup(hide);
	}
	if (err)
		close(steal_fd(&hide->cgroup));
	return err;
}

static int hide_by_any(struct hide *hide, const struct hierarchies *in, const uint32_t *minors, size_t nr_minors)
{
	int err = -EOPNOTSUPP;

	if (in->v2)
		err = hide_by(hide, NULL, minors, nr_minors);
	if (err && in->v1_devices[0])
		err = hide_by(hide, in->v1_devices, minors, nr_minors);
	if (err)
		return fail(err, "there are no cgroups with a device filter");
	fail_clear();
	return 0;
}

int hide_begin(const uint32_t *minors, size_t nr_minors, const struct hide_keeper *keeper, struct hide *hide)
{
	_cleanup_close_ int proc = mount_private("proc", NULL);
	_cleanup_close_ int home = proc < 0 ? -1 : openat(proc, "self/ns/cgroup", O_RDONLY | O_CLOEXEC);
	struct hierarchies in = { 0 };
	int err;

	*hide = (struct hide){ .keeper = keeper, .cgroup = -1 };
	if (home < 0)
		return fail(proc < 0 ? proc : -errno, "looking for its cgroup namespace: %m");
	err = choose_name(proc, hide);
	if (err)
		return fail(err, "looking for its pid namespace: %m");
	err = read_hierarchies(proc, &in);
	if (err)
		return fail(err, "looking for its cgroups: %m");
	if (unshare(CLONE_NEWCGROUP))
		return fail(-errno, "making a cgroup namespace: %m");
	err = hide_by_any(hide, &in, minors, nr_minors);
	if (!setns(home, CLONE_NEWCGROUP))
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
