// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-checkpoint check: whether a process and its descendants would be dumped here. Nothing is stopped or traced: all is
 * read from /proc and sysfs, and open render nodes are asked through duplicates for what they hold.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sys/sysmacros.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "host/host.h"
#include "kernel/kernel.h"
#include "tool/commands.h"

struct task {
	int pid;
	char name[64]; /* for messages: "pid 42 (python3)" */
	bool has_kfd, uses_gpus;
	char said[256]; /* the last file that was named */
};

struct check {
	int root;
	bool try; /* KFD_RESTORABLE_CHECK=0 */
	struct driver_release driver;
	struct topology *machine;
	struct task *tasks; /* of the tree */
	size_t nr;
	struct task_files files; /* of these tasks: /dev/kfd and AMD's render nodes */
	uint64_t vram_bytes, memory_bytes;
};

static FILE *open_task_file(const struct task *task, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", task->pid, name);
	return fopen(path, "re");
}

/* ---- the tree ---- */

static void name_task(struct task *task)
{
	_cleanup_fclose_ FILE *f = open_task_file(task, "comm");
	char name[32] = "";

	if (f && fgets(name, sizeof(name), f))
		name[strcspn(name, "\n")] = '\0';
	snprintf(task->name, sizeof(task->name), "pid %d (%s)", task->pid, name);
}

static struct task *find_task(const struct check *c, int pid)
{
	for (size_t i = 0; i < c->nr; i++)
		if (c->tasks[i].pid == pid)
			return &c->tasks[i];
	return NULL;
}

static int find_tree(struct check *c)
{
	int *pids = NULL, err;
	size_t nr = 0;

	if (!process_start(c->root))
		return complain("pid %d: there is no such process", c->root);
	err = array_add(pids, nr, c->root);
	if (!err)
		err = processes_add_descendants(&pids, &nr);
	c->tasks = err ? NULL : calloc(nr, sizeof(*c->tasks));
	if (!c->tasks) {
		free(pids);
		return complain("cannot list processes: %s", strerror(err ? -err : ENOMEM));
	}
	err = task_files_collect_of(pids, nr, drm_is_amd, &c->files);
	for (; c->nr < c->files.nr_pids; c->nr++) {
		c->tasks[c->nr].pid = c->files.pids[c->nr];
		name_task(&c->tasks[c->nr]);
	}
	return err;
}

/* ---- files and mappings ---- */

static bool is_amd_file(const struct check *c, const struct stat *st)
{
	return device_is_kfd(st) ||
	       (device_is_render_node(st) && topology_find_minor(c->machine, minor(st->st_rdev)) >= 0);
}

/* Devices that criu itself knows: memory, terminals, tun and autofs. */
static bool criu_knows_device(const struct stat *st)
{
	unsigned int number = major(st->st_rdev);

	if (number == 10)
		return minor(st->st_rdev) == 200 || minor(st->st_rdev) == 235;
	return number == 1 || number == 4 || number == 5 || (number >= 128 && number <= 143) || number == 188 ||
	       number == 204;
}

static bool criu_saves(const char *link, const struct stat *st)
{
	static const char *const kinds[] = { "eventfd",	 "eventpoll", "inotify", "fanotify",
					     "signalfd", "timerfd",   "pidfd",	 "bpf-map" };

	if (strncmp(link, "anon_inode:", strlen("anon_inode:")))
		return S_ISCHR(st->st_mode) ? criu_knows_device(st) : !S_ISBLK(st->st_mode);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strstr(link, kinds[i]))
			return true;
	return false;
}

static const char *unsaved_advice(const char *link)
{
	if (strstr(link, "io_uring"))
		return "Keep the program from io_uring: sysctl kernel.io_uring_disabled=2, or a seccomp profile";
	if (strstr(link, "/infiniband/"))
		return "Keep the program from RDMA: NCCL_IB_DISABLE=1 (RCCL), UCX_TLS=self,sm,tcp (UCX)";
	return "criu saves it only with a plugin for it: end its use";
}

static void say_unsaved(struct task *task, const char *link, const char *how)
{
	if (!strcmp(task->said, link))
		return;
	snprintf(task->said, sizeof(task->said), "%s", link);
	print_point(POINT_PROBLEM, task->name, unsaved_advice(link), "has %s %s, which cannot be saved", link, how);
}

static void check_open_file(struct check *c, struct task *task, const char *link, const struct stat *st)
{
	bool is_dmabuf = !strncmp(link, "/dmabuf:", strlen("/dmabuf:"));

	if (device_is_kfd(st))
		task->has_kfd = true;
	else if (is_dmabuf && !driver_is_since(&c->driver, 6, 8))
		say_unsaved(task, link, "open, before Linux 6.8,");
	else if (!is_dmabuf && !is_amd_file(c, st) && !criu_saves(link, st))
		say_unsaved(task, link, "open");
}

/* What is closed meanwhile is passed over. */
static void check_files(struct check *c, struct task *task)
{
	_cleanup_free_ int *fds = NULL;
	size_t nr = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", task->pid);
	if (list_numbers(AT_FDCWD, path, &fds, &nr))
		return;
	for (size_t i = 0; i < nr; i++) {
		char link[256] = "";
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", task->pid, fds[i]);
		if (readlink(path, link, sizeof(link) - 1) >= 0 && !stat_quietly(AT_FDCWD, path, &st))
			check_open_file(c, task, link, &st);
	}
}

static void check_task_mappings(struct check *c, struct task *task)
{
	_cleanup_free_ struct device_vma *vmas = NULL;
	size_t nr = 0;

	/* The task runs: the list ends where a mapping goes while it is looked at. */
	for (unsigned int attempt = 0; attempt < 10 && task_device_vmas(task->pid, &vmas, &nr); attempt++)
		fail_clear();
	for (size_t i = 0; i < nr; i++) {
		char node[32];

		snprintf(node, sizeof(node), "/dev/dri/renderD%u", vmas[i].minor);
		if (vmas[i].minor && topology_find_minor(c->machine, vmas[i].minor) < 0) {
			say_unsaved(task, node, "mapped");
		} else if (!task->has_kfd && !(vmas[i].minor && task_files_has(&c->files, task->pid, vmas[i].minor))) {
			print_point(POINT_PROBLEM, task->name, "Let it unmap the memory, or keep /dev/kfd open",
				    "has memory of AMD GPUs mapped and no /dev/kfd open");
			return;
		}
	}
}

/* What a render node's own buffers need, and what is in use without /dev/kfd. */
static void check_render_file(struct check *c, const struct task_file *file)
{
	const struct task *task = find_task(c, file->pid);
	uint32_t nr_objects = 0, nr_contexts = 0;

	if (!drm_lists_objects(file->fd) && !drm_count_objects(file->fd, &nr_objects) && nr_objects)
		print_point(POINT_PROBLEM, task->name,
			    "Use Linux 6.18 or later, or keep the program from such memory: criu-plugin-amdgpu(1), SHARED BUFFERS",
			    "has %u buffers of renderD%u itself (VMM, IPC of ROCm 7.2, graphics), which this kernel does "
			    "not list", nr_objects, file->minor);
	if (!task->uses_gpus && !drm_count_contexts(file->fd, &nr_contexts) && nr_contexts)
		print_point(POINT_PROBLEM, task->name, "End its graphics or video",
			    "uses renderD%u without /dev/kfd, with %u contexts", file->minor, nr_contexts);
}

/* ---- GPUs ---- */

static void check_task_queues(struct check *c, const struct task *task)
{
	_cleanup_close_ int sysfs = open("/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct gpu_usage usage[TOPOLOGY_MAX_NODES] = { 0 };

	usage_read_queues(sysfs, task->pid, c->machine, usage);
	for (unsigned int i = 0; i < c->machine->nr_nodes; i++) {
		const struct topology_node *node = c->machine->nodes[i];
		char why[LIMITS_TEXT_MAX];
		enum limit limit =
			usage[i].has_queues ? limits_of_gpu(node, c->machine, &c->driver, why) : LIMIT_NONE;

		if (limit)
			print_point(limit < LIMIT_LOSS || (limit == LIMIT_LOSS && c->try) ? POINT_WARNING : POINT_PROBLEM, task->name,
				    "See KERNELS in criu-plugin-amdgpu(1)", "has queues on gpu %#x, %s%s: %s",
				    topology_gpu_id(node), c->driver.text,
				    limit == LIMIT_BUSY ? ", refused while they run a kernel" : "", why);
	}
}

static unsigned int count_opened(const struct check *c, const struct task *task)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < c->machine->nr_nodes; i++)
		nr += topology_is_gpu(c->machine->nodes[i]) &&
		      task_files_has(&c->files, task->pid, topology_minor(c->machine->nodes[i]));
	return nr;
}

static void check_kfd_process(struct check *c, const struct task *task, const struct task_kfd *kfd)
{
	enum point_state loss = c->try ? POINT_WARNING : POINT_PROBLEM;
	unsigned int nr_opened = count_opened(c, task);

	print_point(POINT_OK, task->name, NULL, "sees %u GPU%s, has %u queues and %" PRIu64 " MiB of VRAM", kfd->nr_gpus,
		    kfd->nr_gpus == 1 ? "" : "s",
		    kfd->nr_queues, kfd->vram_bytes >> 20);
	if (kfd->nr_contexts)
		print_point(POINT_PROBLEM, task->name, "Wait until the program has closed it",
			    "has a second KFD context (CREATE_PROCESS), which cannot be saved");
	if (!task->has_kfd && (kfd->nr_queues || kfd->vram_bytes))
		print_point(POINT_PROBLEM, task->name, "Dump when it has ended them",
			    "has closed its /dev/kfd, without which its queues and VRAM cannot be saved");
	if (task_is_in_user_ns(task->pid))
		print_point(loss, task->name, "Run the container without a user namespace",
			    "is in a user namespace, where the kernel does not restore GPU state");
	if (kfd->vram_bytes && nr_opened < kfd->nr_gpus)
		print_point(loss, task->name, "Let it see only the GPUs that it uses: device cgroup",
			    "sees %u GPUs and has opened %u: kernels crash when they save such a process", kfd->nr_gpus, nr_opened);
	check_task_queues(c, task);
}

static void check_tracer(const struct task *task)
{
	_cleanup_fclose_ FILE *f = open_task_file(task, "status");
	char line[256];
	int tracer;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "TracerPid: %d", &tracer) == 1 && tracer)
			print_point(POINT_PROBLEM, task->name, "End the debugger",
				    "is traced by pid %d: a process has one tracer", tracer);
}

/* Its part of memory that processes share: that is saved once. */
static void add_memory(struct check *c, const struct task *task)
{
	_cleanup_fclose_ FILE *f = open_task_file(task, "smaps_rollup");
	char line[256];
	uint64_t kib;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Anonymous: %" SCNu64, &kib) == 1 || sscanf(line, "Pss_Shmem: %" SCNu64, &kib) == 1 ||
		    sscanf(line, "Swap: %" SCNu64, &kib) == 1)
			c->memory_bytes += kib << 10;
}

/* ---- all ---- */

static int check_task(struct check *c, struct task *task)
{
	struct task_kfd kfd;
	int err = task_ask_kfd(task->pid, &kfd);

	if (err)
		return complain("pid %d: cannot ask the KFD's sysfs: %s", task->pid, strerror(-err));
	task->uses_gpus = kfd.nr_gpus != 0;
	c->vram_bytes += kfd.vram_bytes;
	if (task_find_mark(task->pid, -1) >= 0)
		print_point(POINT_PROBLEM, task->name, "Run \"amdgpu-checkpoint resume\" first", "is suspended, and its GPU memory is not there");
	check_tracer(task);
	add_memory(c, task);
	check_files(c, task);
	check_task_mappings(c, task);
	if (task->uses_gpus)
		check_kfd_process(c, task, &kfd);
	return TOOL_GOOD;
}

static int check_tasks(struct check *c)
{
	int status = TOOL_GOOD;

	for (size_t i = 0; i < c->nr && status == TOOL_GOOD; i++)
		status = check_task(c, &c->tasks[i]);
	for (size_t i = 0; i < c->files.count; i++)
		if (c->files.files[i].minor)
			check_render_file(c, &c->files.files[i]);
	return status;
}

static int look_at_machine(struct check *c)
{
	struct settings settings;
	dev_t kfd;

	if (settings_load(&settings, SETTINGS_MACHINE_CONF, -1, options_or_environment, NULL))
		return TOOL_FAIL;
	c->try = !settings.flag[SETTING_RESTORABLE_CHECK];
	if (task_in_initial_pid_ns() <= 0)
		return complain("has to be run in the first pid namespace, whose pids the KFD names");
	if (!device_kfd_number(&kfd))
		return complain("there is no KFD on this machine, and so no process that uses it");
	driver_ask_release(DRIVER_VERSION_FILE, &c->driver);
	if (sysfs_read_topology(SYSFS_TOPOLOGY_ROOT, &c->machine) || find_tree(c))
		return TOOL_FAIL;
	return TOOL_GOOD;
}

static int check_tree(struct check *c, const char *images_dir)
{
	/* A distribution's driver may be newer than its kernel: the dump asks it. */
	bool is_old = c->driver.major && !driver_is_since(&c->driver, 5, 18) && !driver_may_be_any(&c->driver);
	int status;

	print_number("pid", NULL, (uint64_t)c->root);
	print_array("points");
	print_point(is_old ? POINT_PROBLEM : POINT_OK, "driver", "Use Linux 5.18 or later", "%s", c->driver.text);
	check_permissions();
	status = check_tasks(c);
	if (images_dir)
		check_images_dir(images_dir, c->vram_bytes + c->memory_bytes);
	print_end();
	print_bytes("vram_bytes", "images: VRAM ", c->vram_bytes);
	print_bytes("memory_bytes", ", memory up to ", c->memory_bytes);
	print_text("\n%s\n", print_has_problem() ? "would not be dumped"
						 : "would be dumped, as far as can be seen from outside: shared "
						   "buffers and running GPU kernels cannot be seen");
	return status != TOOL_GOOD ? status : print_has_problem() ? TOOL_BAD : TOOL_GOOD;
}

int command_check(const struct arguments *arguments)
{
	struct check c = { .root = arguments->pid };
	int status = look_at_machine(&c);

	if (status == TOOL_GOOD)
		status = check_tree(&c, arguments->images_dir);
	task_files_done(&c.files);
	topology_free(c.machine);
	free(c.tasks);
	return status;
}
