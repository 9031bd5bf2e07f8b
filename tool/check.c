// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-checkpoint check: whether a process and its descendants would be dumped here. What is of GPUs is judged by the
 * plugin's own dump, which is ended before it writes: threads and queues stand still for that moment. What criu would not
 * save otherwise is read from /proc.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sys/sysmacros.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/checkpoint.h"
#include "host/host.h"
#include "kernel/kernel.h"
#include "stopped/stopped.h"
#include "tool/commands.h"

struct task {
	int pid;
	char name[64]; /* for messages: "pid 42 (python3)" */
	char said[256]; /* the last file that was named */
};

struct check {
	int root;
	struct settings settings;
	struct driver_release driver;
	struct topology *machine;
	int *pids; /* of the tree */
	size_t nr;
	struct hold *holds; /* of some of them */
	size_t nr_holds;
	bool has_gpus; /* something of an AMD GPU */
	bool is_held; /* one of them by a debugger, or suspended */
	uint64_t vram_bytes, memory_bytes;
};

/* ---- files ---- */

static bool criu_saves(const char *link, const struct stat *st)
{
	static const char *const kinds[] = { "eventfd",	 "eventpoll", "inotify", "fanotify",
					     "signalfd", "timerfd",   "pidfd",	 "bpf-map" };
	bool is_anonymous = !strncmp(link, "anon_inode:", strlen("anon_inode:"));
	unsigned int number = major(st->st_rdev);

	for (size_t i = 0; is_anonymous && i < ARRAY_SIZE(kinds); i++)
		if (strstr(link, kinds[i]))
			return true;
	if (is_anonymous || S_ISBLK(st->st_mode))
		return false;
	if (!S_ISCHR(st->st_mode))
		return true;
	/* Of devices: memory, terminals, tun and autofs. */
	if (number == 10)
		return minor(st->st_rdev) == 200 || minor(st->st_rdev) == 235;
	return number == 1 || number == 4 || number == 5 || (number >= 128 && number <= 143) || number == 188 ||
	       number == 204;
}

static void check_files(struct check *c, struct task *task)
{
	_cleanup_free_ int *fds = NULL;
	size_t nr = 0;
	char path[64];

	if (proc_list(task->pid, "fd", &fds, &nr))
		return;
	for (size_t i = 0; i < nr; i++) {
		const char *advice = "criu saves it only with a plugin for it: end its use";
		char link[256] = "";
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", task->pid, fds[i]);
		if (readlink(path, link, sizeof(link) - 1) < 0 || stat_quietly(AT_FDCWD, path, &st))
			continue;
		if (device_is_kfd(&st) ||
		    (device_is_render_node(&st) && topology_find_minor(c->machine, minor(st.st_rdev)) >= 0)) {
			c->has_gpus = true;
			continue;
		}
		if (!strcmp(task->said, link))
			continue;
		if (strncmp(link, "/dmabuf:", strlen("/dmabuf:")) ?
			    criu_saves(link, &st) :
			    driver_is_since(&c->driver, 6, 8) || driver_may_be_any(&c->driver))
			continue;
		snprintf(task->said, sizeof(task->said), "%s", link);
		if (strstr(link, "io_uring"))
			advice = "Keep the program from io_uring: sysctl kernel.io_uring_disabled=2, or a seccomp profile";
		else if (strstr(link, "/infiniband/"))
			advice = "Keep the program from RDMA: NCCL_IB_DISABLE=1 (RCCL), UCX_TLS=self,sm,tcp (UCX)";
		print_point(POINT_PROBLEM, task->name, advice, "has %s open, which cannot be saved", link);
	}
}

/* ---- a process ---- */

static int check_task(struct check *c, pid_t pid)
{
	_cleanup_fclose_ FILE *comm = proc_file(pid, "comm"), *memory = proc_file(pid, "smaps_rollup");
	_cleanup_free_ struct device_vma *vmas = NULL;
	struct task task = { .pid = pid };
	char name[32] = "", line[256];
	struct task_kfd kfd;
	size_t nr_vmas = 0;
	uint64_t kib;
	int tracer, err = task_ask_kfd(pid, &kfd);

	if (err)
		return complain("pid %d: cannot ask the KFD's sysfs: %s", pid, strerror(-err));
	if (comm && fgets(name, sizeof(name), comm))
		name[strcspn(name, "\n")] = '\0';
	snprintf(task.name, sizeof(task.name), "pid %d (%s)", pid, name);
	if (task_find_mark(pid, -1) >= 0) {
		print_point(POINT_OK, task.name, NULL, "is suspended: it is dumped as it is, with the data of its freed buffers");
		c->has_gpus = true;
	}
	tracer = (int)proc_status(pid, "TracerPid", 10);
	if (tracer) {
		print_point(POINT_PROBLEM, task.name, "End the debugger", "is traced by pid %d: a process has one tracer", tracer);
		c->is_held = true;
	}
	/* Of memory that processes share, its part: that is saved once. */
	while (memory && fgets(line, sizeof(line), memory))
		if (sscanf(line, "Anonymous: %" SCNu64, &kib) == 1 || sscanf(line, "Pss_Shmem: %" SCNu64, &kib) == 1 ||
		    sscanf(line, "Swap: %" SCNu64, &kib) == 1)
			c->memory_bytes += kib << 10;
	check_files(c, &task);
	if (kfd.nr_gpus) {
		c->vram_bytes += kfd.vram_bytes;
		print_point(POINT_OK, task.name, NULL, "sees %u GPU%s, has %u queues and %" PRIu64 " MiB of VRAM", kfd.nr_gpus,
			    kfd.nr_gpus == 1 ? "" : "s", kfd.nr_queues, kfd.vram_bytes >> 20);
	}
	/* The process runs: where a mapping goes while it is looked at, the list ends. */
	if (!kfd.nr_gpus && task_device_vmas(pid, &vmas, &nr_vmas))
		fail_clear();
	c->has_gpus |= kfd.nr_gpus || nr_vmas;
	return TOOL_GOOD;
}

/* ---- the dump ---- */

static void try_dump(struct check *c)
{
	double seconds = 0;
	size_t nr = 0;
	int err = 0;

	/* Processes make others until all are held. */
	while (!err && nr < c->nr) {
		for (; !err && nr < c->nr; nr++) {
			struct hold hold;

			err = hold_begin(c->pids[nr], false, &hold);
			if (err == -ESRCH) { /* a part of it has ended: there is nothing to save */
				fail_clear();
				err = 0;
				continue;
			}
			if (!err)
				err = array_add(c->holds, c->nr_holds, hold);
			if (err)
				hold_end(&hold);
		}
		if (!err)
			err = processes_add_descendants(&c->pids, &c->nr);
	}
	if (!err)
		err = dump_try(&c->settings, &seconds);
	while (c->nr_holds)
		hold_end(&c->holds[--c->nr_holds]);
	if (err)
		print_failure("dump", NULL, err);
	else
		print_point(POINT_OK, "dump", NULL, "the plugin would save all that is on GPUs; queues were stopped for %.2f s",
			    seconds);
}

/* ---- all ---- */

static void check_done(struct check *c)
{
	topology_free(c->machine);
	free(c->holds);
	free(c->pids);
}

int command_check(const struct arguments *arguments)
{
	_cleanup_(check_done) struct check c = { .root = arguments->pid };
	int err, status = TOOL_GOOD;
	bool is_old;
	dev_t kfd;

	if (settings_load(&c.settings, SETTINGS_MACHINE_CONF, -1, options_or_environment))
		return TOOL_FAIL;
	if (task_in_initial_pid_ns() <= 0)
		return complain("has to be run in the first pid namespace, whose pids the KFD names");
	if (!device_kfd_number(&kfd))
		return complain("there is no KFD on this machine, and so no process that uses it");
	driver_ask_release(DRIVER_VERSION_FILE, &c.driver);
	if (sysfs_read_topology(SYSFS_TOPOLOGY_ROOT, &c.machine))
		return TOOL_FAIL;
	if (!process_start(c.root))
		return complain("pid %d: there is no such process", c.root);
	err = array_add(c.pids, c.nr, c.root);
	if (!err)
		err = processes_add_descendants(&c.pids, &c.nr);
	if (err)
		return complain("cannot list processes: %s", strerror(-err));
	print_number("pid", NULL, (uint64_t)c.root);
	print_array("points");
	/* A distribution's driver may be newer than its kernel: the dump asks it. */
	is_old = c.driver.major && !driver_is_since(&c.driver, 5, 18) && !driver_may_be_any(&c.driver);
	print_point(is_old ? POINT_PROBLEM : POINT_OK, "driver", "Use Linux 5.18 or later", "%s", c.driver.text);
	check_permissions();
	for (size_t i = 0; i < c.nr && status == TOOL_GOOD; i++)
		status = check_task(&c, c.pids[i]);
	if (c.has_gpus && !c.is_held && status == TOOL_GOOD)
		try_dump(&c);
	if (arguments->images_dir)
		check_images_dir(arguments->images_dir, c.vram_bytes + c.memory_bytes);
	print_end();
	print_bytes("vram_bytes", "images: VRAM ", c.vram_bytes);
	print_bytes("memory_bytes", ", memory up to ", c.memory_bytes);
	print_text("\n%s\n", print_has_problem() ? "would not be dumped" : "would be dumped");
	return status != TOOL_GOOD ? status : print_has_problem() ? TOOL_BAD : TOOL_GOOD;
}
