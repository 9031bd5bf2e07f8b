// SPDX-License-Identifier: GPL-2.0-only
/*
 * The dump: all KFD processes of the tree are paused before the first byte is saved, and run again together at the end.
 *
 * Runs in criu's main thread, the tracer of the tasks: the kernel takes the CRIU ioctl from no other.
 *
 * Queues run again also when criu is about to kill the tasks: the last call of the plugin cannot tell for sure whether
 * it will. Options that keep the tasks can come from the command line, files and RPC requests. And a post-dump script
 * that fails keeps them whatever the options say: criu 3.17 runs it after that call, later ones before it, but tell the
 * plugin only the result of the dump itself. A wrong guess would stop a living process for good: the kernel takes
 * UNPAUSE from the tracer alone, and by then criu traces nothing.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/internal.h"
#include "host/host.h"
#include "image/image.h"
#include "kernel/kernel.h"
#include "pages/pages.h"
#include "share/share.h"
#include "suspend/suspend.h"

struct dump {
	const struct settings *settings;
	struct kfd_rules rules;
	struct task_files files;
	uint32_t *losses; /* how often the GPU of each of these files had lost its VRAM before the queues were stopped */
	struct topology *machine;
	struct driver_release driver;
	struct gpu_process **processes;
	size_t nr_processes, nr_named; /* for that many, criu has asked */
	struct suspend_dump *suspended;
	struct share_request request;
	struct survey *survey;
	struct content_tally tally;
	pid_t guard;	   /* as long as queues may be stopped; 0: none */
	double stopped_at; /* the first queues */
	bool is_try;	   /* nothing will be written */
	bool is_forced;	   /* what this kernel is known not to restore is saved all the same */
	bool started;
	bool writes; /* images of an earlier dump were removed */
	int result;  /* of the pause */
};

struct dump *dump_new(const struct settings *settings)
{
	struct dump *dump = calloc(1, sizeof(*dump));

	if (!dump)
		return NULL;
	dump->settings = settings;
	dump->is_forced = !settings->flag[SETTING_RESTORABLE_CHECK];
	dump->suspended = suspend_dump_new();
	if (dump->suspended)
		return dump;
	free(dump);
	return NULL;
}

static struct gpu_process *process_by_pid(const struct dump *dump, pid_t pid)
{
	for (size_t i = 0; i < dump->nr_processes; i++)
		if (dump->processes[i]->file.pid == pid)
			return dump->processes[i];
	return NULL;
}

/* Whether it has queues that a dump stops. Those of a suspended process stay stopped. */
static bool has_own_queues(const struct gpu_process *process)
{
	return !process->no_kfd && !process->is_suspended;
}

int dump_check_complete(const struct dump *dump)
{
	if (dump && !dump->started)
		return refuse_suspended_unseen();
	if (!dump || dump->nr_named == dump->nr_processes)
		return 0;
	return fail(-ENODATA, "criu has not asked for the device files of %zu of %zu processes with AMD GPUs: nothing of "
		    "their GPUs is saved; dump again without options that take these files from criu (--external)",
		    dump->nr_processes - dump->nr_named, dump->nr_processes);
}

bool dump_free(struct dump *dump, bool succeeded)
{
	bool is_lost;

	if (!dump)
		return false;
	is_lost = succeeded && dump_check_complete(dump);
	/* A process without a GPU was dumped to where one with a GPU had been. */
	if (succeeded && !is_lost && !dump->writes)
		image_remove_all();
	for (size_t i = 0; i < dump->nr_processes; i++) {
		struct gpu_process *process = dump->processes[i];
		pid_t pid = process->file.pid;
		int err = has_own_queues(process) ? kfd_unpause(process->file.fd) : 0;

		/* -EINVAL is the answer for queues that run already: a failure while telling files apart can leave such. */
		if (err && err != -EINVAL && !criu_task_has_ended(pid)) {
			pr_err("pid %d: cannot let its GPU queues run again: %s (\"amdgpu-checkpoint resume %d\" tries again)\n", pid,
			       strerror(-err), pid);
			/* criu does not ask whether this worked, and would report success. */
			criu_fail_at_exit(pid);
		}
		gpu_process_free(process);
	}
	suspend_dump_end(dump->suspended);
	guard_end(dump->guard);
	if (succeeded && dump->nr_processes)
		pages_log_tally(&dump->tally, "saved", dump->nr_processes, "queues were stopped for",
				monotonic_seconds() - dump->stopped_at);
	free(dump->processes);
	share_dump_done(dump->survey);
	topology_free(dump->machine);
	free(dump->losses);
	task_files_done(&dump->files);
	free(dump);
	return is_lost;
}

/* ---- pause ---- */

static int pause_process(struct gpu_process *process)
{
	return kfd_pause(process->file.fd, process->file.pid, &process->state);
}

/*
 * Several open files can belong to one KFD process, which nothing in /proc says, and it must be paused only once. When
 * UNPAUSE by this file succeeds, the file is of a process that is paused already: the one that then refuses UNPAUSE,
 * mostly the last. Nothing is saved yet, so those that run now are paused anew.
 */
static int is_extra_file_of_paused(struct dump *dump, const struct task_file *file)
{
	size_t i = dump->nr_processes;
	bool found = false;
	int err = kfd_unpause(file->fd);

	if (err == -EINVAL)
		return 0;
	if (err)
		return fail(err, "pid %d: cannot stop its GPU queues: %m", file->pid);
	while (i && !found) {
		struct gpu_process *process = dump->processes[--i];
		int ret = has_own_queues(process) ? kfd_unpause(process->file.fd) : 0;

		found = ret == -EINVAL;
		if (!ret || found)
			continue;
		err = fail(ret, "pid %d: cannot let its GPU queues run again: %m (\"amdgpu-checkpoint resume %d\" tries again)",
			   process->file.pid, process->file.pid);
	}
	for (; !err && i < dump->nr_processes; i++)
		err = has_own_queues(dump->processes[i]) ? pause_process(dump->processes[i]) : 0;
	return err ? err : found;
}

/* @file: with which its state is saved. */
static int add_process(struct dump *dump, const struct task_file *file)
{
	struct gpu_process *process = calloc(1, sizeof(*process));
	int err = process ? array_add(dump->processes, dump->nr_processes, process) : -ENOMEM;

	if (err) {
		free(process);
		return err;
	}
	process->file = *file;
	process->no_kfd = file->minor;
	return 0;
}

/* Another file of /dev/kfd is an extra one. */
static int add_suspended(struct dump *dump, const struct task_file *file)
{
	int err = suspend_dump_has_file(dump->suspended, file) ? add_process(dump, file) : -ENOENT;

	if (err)
		return err == -ENOENT ? 0 : err;
	suspend_dump_counts(dump->suspended, dump->processes[dump->nr_processes - 1]);
	pr_info("pid %d: is suspended, and is dumped as it is\n", file->pid);
	return 0;
}

static int pause_file(struct dump *dump, const struct task_file *file)
{
	const struct kfd_state *state;
	int r = is_extra_file_of_paused(dump, file);

	if (r)
		return r < 0 ? r : 0;
	r = add_process(dump, file);
	if (!r)
		r = pause_process(dump->processes[dump->nr_processes - 1]);
	if (r)
		return r;
	state = &dump->processes[dump->nr_processes - 1]->state;
	pr_info("pid %d: GPU queues stopped; %u GPUs, %u BOs, %u objects, %" PRIu64 " bytes of state\n", file->pid,
		state->nr_devices, state->nr_bos, state->nr_objects, state->priv_size);
	return 0;
}

/* ---- what cannot be restored ---- */

/* Adds the tasks without /dev/kfd that take part, too: each becomes a process by its first file that holds something. */
static int check_restorable(struct dump *dump)
{
	int err = 0;

	for (size_t i = 0; !err && i < dump->nr_processes; i++) {
		const struct gpu_process *process = dump->processes[i];
		const struct gpu_process *first = process_by_pid(dump, process->file.pid);

		/* Either of two files of one process can be paused while the other is: to the KFD they are two contexts. */
		if (first != process && first->state.pid == process->state.pid)
			return refuse_context(process->file.pid);
		err = refuse_process(process, &dump->files, dump->machine, dump->is_forced);
	}
	for (size_t i = 0; !err && i < dump->files.count; i++) {
		const struct task_file *file = &dump->files.files[i];
		int r = !file->minor || process_by_pid(dump, file->pid) ? 0 : share_file_is_used(file);

		err = r > 0 ? add_process(dump, file) : r;
	}
	if (!err && dump->nr_processes)
		err = refuse_lazy_dump();
	for (size_t i = 0; !err && i < dump->files.nr_pids; i++) {
		const struct gpu_process *process = process_by_pid(dump, dump->files.pids[i]);

		if (!process || process->no_kfd)
			err = refuse_mappings(dump->files.pids[i], dump->machine, process);
		if (!err && dump->nr_processes && !dump->is_forced)
			err = refuse_timers(dump->files.pids[i]);
	}
	return err;
}

/* ---- queues that this driver restores between kernels only ---- */

/* For how long queues run at least before they are looked at again. */
#define RUN_SECONDS 0.02

/* What the KFD saves of each process. @ret_busy: one would be refused, and not when its queues have ended what they do. */
static int checkpoint_all(struct dump *dump, bool *ret_busy)
{
	int err = 0;

	*ret_busy = false;
	for (size_t i = 0; !err && i < dump->nr_processes; i++) {
		struct gpu_process *process = dump->processes[i];

		if (process->no_kfd || process->state.devices)
			continue;
		err = process->is_suspended ? suspend_dump_ask(dump->suspended, process) :
					      kfd_checkpoint(process->file.fd, process->file.pid, &process->state);
		if (err)
			return err;
		*ret_busy |= has_own_queues(process) &&
			     limits_are_busy(&process->state, dump->machine, &dump->driver, dump->is_forced);
	}
	return err;
}

/*
 * The states, if possible when queues have ended what they do: no task runs that could give them more. They run at least for
 * as long as it took to look at them, which is longer than most kernels where a process is large.
 */
static int checkpoint_when_idle(struct dump *dump)
{
	double began = monotonic_seconds(), looked = began, now = began;
	bool busy = false;
	int err = checkpoint_all(dump, &busy);

	while (!err && busy && (now = monotonic_seconds()) < began + dump->settings->idle_wait_seconds) {
		for (size_t i = 0; !err && i < dump->nr_processes; i++) {
			struct gpu_process *process = dump->processes[i];

			if (!has_own_queues(process))
				continue;
			kfd_state_done(&process->state);
			err = kfd_unpause(process->file.fd);
		}
		if (err)
			return fail(err, "cannot let the GPU queues finish their kernels: %m");
		usleep((useconds_t)((now - looked > RUN_SECONDS ? now - looked : RUN_SECONDS) * 1e6));
		for (size_t i = 0; !err && i < dump->nr_processes; i++)
			err = has_own_queues(dump->processes[i]) ? pause_process(dump->processes[i]) : 0;
		looked = monotonic_seconds();
		if (!err)
			err = checkpoint_all(dump, &busy);
	}
	if (!err && now > began)
		pr_info("waited %.3f s for kernels to end%s\n", now - began, busy ? ": some still run" : "");
	return err;
}

/* ---- the state of a process, taken ---- */

/* The place of a file's GPU in @nodes, or -EOPNOTSUPP after fail(). */
static int find_node(const struct topology *nodes, const struct task_file *file)
{
	int node = topology_find_minor(nodes, file->minor);

	if (node >= 0)
		return node;
	return fail(-EOPNOTSUPP, "pid %d: renderD%u is not of a GPU that /dev/kfd shows", file->pid, file->minor);
}

/* Whether all GPUs of which a task has opened files are among @nodes. */
static bool has_all_gpus(const struct topology *nodes, const struct task_files *files, pid_t pid)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->files[i].pid == pid && topology_find_minor(nodes, files->files[i].minor) < 0)
			return false;
	return true;
}

/*
 * The GPUs that the restore has to find for a task without /dev/kfd, which knows no gpu ids: those of a process that
 * has them all, by its ids and with what its queues need of them, so that both get the same ones; else those whose
 * render nodes the task has opened.
 */
static int task_nodes(const struct dump *dump, pid_t pid, struct kfd_state *state, struct topology **ret)
{
	const struct topology *machine = dump->machine;
	const struct kfd_state *lender = NULL;

	for (size_t i = 0; !lender && i < dump->nr_processes; i++) {
		const struct gpu_process *process = dump->processes[i];

		if (process->nodes && has_all_gpus(process->nodes, &dump->files, pid))
			lender = &process->state;
	}
	state->devices = calloc(machine->nr_nodes + 1, sizeof(*state->devices));
	if (!state->devices)
		return -ENOMEM;
	for (unsigned int i = 0; i < machine->nr_nodes; i++) {
		const struct topology_node *node = machine->nodes[i];
		uint32_t id = topology_gpu_id(node), known_as = id;

		if (!id || (lender ? kfd_state_user_id(lender, id, &known_as) :
				     !task_files_has(&dump->files, pid, topology_minor(node))))
			continue;
		state->devices[state->nr_devices++] = (struct kfd_criu_device_bucket){
			.user_gpu_id = known_as,
			.actual_gpu_id = id,
		};
	}
	return kfd_state_nodes(machine, pid, lender ? lender : state, ret);
}

/* Its state is what the survey finds in its files. Jobs and contexts have left something that nothing lists. */
static int render_take(struct dump *dump, struct gpu_process *process)
{
	pid_t pid = process->file.pid;
	int err = task_nodes(dump, pid, &process->state, &process->nodes);

	process->state.pid = (uint32_t)task_own_pid(pid);
	if (!err && !process->state.pid)
		err = fail(-EIO, "pid %d: cannot read its NSpid in /proc, by which its state is restored", pid);
	for (size_t i = 0; !err && i < dump->files.count; i++) {
		const struct task_file *file = &dump->files.files[i];

		if (file->pid == pid && find_node(process->nodes, file) < 0)
			return -EOPNOTSUPP;
		err = file->pid == pid ? refuse_used_file(file, true) : 0;
	}
	return err;
}

/* ---- pause, all ---- */

/* What the processes have on GPUs, and what becomes of it. All queues are stopped. */
static int take_states(struct dump *dump)
{
	struct share_request *request = &dump->request;
	int err;

	*request = (struct share_request){
		.processes = dump->processes,
		.nr_processes = dump->nr_processes,
		.files = &dump->files,
		.machine = dump->machine,
		.check_partners = dump->settings->flag[SETTING_SHARING_CHECK],
	};
	err = share_begin(request, &dump->driver);
	if (!err)
		err = checkpoint_when_idle(dump);
	for (size_t i = 0; !err && i < dump->nr_processes; i++) {
		struct gpu_process *process = dump->processes[i];

		if (process->no_kfd) {
			err = render_take(dump, process);
			continue;
		}
		if (process->is_suspended)
			err = refuse_suspended_queues(process->file.pid, &process->state, dump->machine, &dump->driver, dump->is_forced);
		if (!err)
			err = limits_check_queues(process->file.pid, &process->state, dump->machine, &dump->driver, dump->is_forced);
		if (!err)
			err = kfd_state_nodes(dump->machine, process->file.pid, &process->state, &process->nodes);
		if (!err)
			err = stacks_add(&process->state, process->nodes, &dump->driver, false);
	}
	if (!err)
		err = share_dump_collect(request, &dump->survey);
	/* After the survey and before the verdict: a job makes debugfs name these address spaces by criu's pid. */
	for (size_t i = 0; !err && i < dump->nr_processes; i++)
		if (!dump->processes[i]->no_kfd)
			err = runtime_find(dump->processes[i]->file.pid, &dump->processes[i]->state);
	return err ? err : share_dump_decide(dump->survey);
}

/* The order of a dump, up to the first file that criu asks for. */
static int pause_all(struct dump *dump)
{
	_cleanup_close_ int kfd = -1;
	int err = settings_check(dump->settings);

	if (!err)
		err = refuse_incremental();
	if (err)
		return err;
	kfd = kfd_open();
	err = kfd < 0 ? kfd : kfd_check_version(kfd);
	if (err)
		return err;
	dump->rules = kfd_ask_rules(kfd);
	driver_ask_release(DRIVER_VERSION_FILE, &dump->driver);
	err = sysfs_read_topology(SYSFS_TOPOLOGY_ROOT, &dump->machine);
	if (err)
		return err == -ENOENT ? fail(err, "%s is not there, though /dev/kfd is", SYSFS_TOPOLOGY_ROOT) : err;
	close(steal_fd(&kfd));
	err = task_files_collect(drm_is_amd, &dump->files);
	if (!err)
		err = suspend_dump_read(dump->suspended, &dump->files, dump->is_try);
	if (err)
		return err;
	dump->guard = guard_start(dump->files.pids, dump->files.nr_pids);
	/*
	 * A criu that was killed, and its guard with it, left the queues of its tasks stopped; undone here, since the kernel counts
	 * how often they were stopped.
	 */
	for (size_t i = 0; i < dump->files.count; i++) {
		const struct task_file *file = &dump->files.files[i];

		if (file->minor || suspend_dump_has(dump->suspended, file->pid))
			continue;
		err = kfd_unpause(file->fd);
		if (!err)
			pr_warn("pid %d: its GPU queues had been left stopped by a dump that was killed\n", file->pid);
		else if (err != -EINVAL)
			return fail(err, "pid %d: its /dev/kfd cannot be checkpointed: %m%s", file->pid,
				    err == -EACCES ? " (CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN is needed in the initial user "
						     "namespace)" :
				    err == -EBADF  ? " (the process that opened it is not being dumped)" :
						     "");
	}
	err = losses_note(&dump->files, &dump->losses);
	dump->stopped_at = monotonic_seconds();
	for (size_t i = 0; !err && i < dump->files.count; i++) {
		const struct task_file *file = &dump->files.files[i];

		if (!file->minor)
			err = suspend_dump_has(dump->suspended, file->pid) ? add_suspended(dump, file) : pause_file(dump, file);
	}
	if (!err)
		err = check_restorable(dump);
	return err || !dump->nr_processes ? err : take_states(dump);
}

int dump_pause(struct dump *dump)
{
	if (!dump->started) {
		dump->started = true;
		pr_info("version %s\n", plugin_version);
		dump->result = pause_all(dump);
	}
	return dump->result;
}

void dump_stop_suspended(struct dump *dump, pid_t pid)
{
	suspend_dump_stop(dump->suspended, pid);
}

bool dump_has_state(pid_t pid)
{
	struct task_kfd kfd;

	/* An error says nothing about a task that may have nothing to do with GPUs. */
	return !task_ask_kfd(pid, &kfd) && (kfd.nr_queues || kfd.vram_bytes);
}

int dump_pause_with(struct dump *dump, pid_t pid)
{
	struct task_files files = { 0 };
	bool is_ours = dump->started || dump_has_state(pid) || task_find_mark(pid, -1) >= 0;

	if (!is_ours) {
		if (task_files_collect_one(pid, drm_is_amd, &files))
			fail_clear();
		is_ours = files.count;
		task_files_done(&files);
	}
	return is_ours ? dump_pause(dump) : 0;
}

/*
 * An earlier dump in the directory is whole until criu writes over images of its own, which it has done by the time
 * that it asks for a file: whatever is refused before leaves it as it is.
 */
static int pause_and_begin(struct dump *dump)
{
	int err = dump_pause(dump);

	if (err || dump->writes)
		return err;
	dump->writes = true;
	image_remove_all();
	return 0;
}

/* ---- the state of a process ---- */

static int ask_flags(const struct task_file *file, int *ret)
{
	int flags = device_flags(file->fd);

	if (flags < 0)
		return fail(flags, "pid %d: cannot ask for the flags of its files: %m", file->pid);
	*ret = flags;
	return 0;
}

/* All but the buffer data. */
static int describe(const struct dump *dump, struct gpu_process *process)
{
	struct image_writer *writer = &process->writer;
	int err = ask_flags(&process->file, &process->flags);
	struct utsname name;

	if (err)
		return err;
	*writer = (struct image_writer){ .criu_hooks = criu_running_hooks() };
	if (!uname(&name))
		memcpy(writer->kernel, name.release, sizeof(name.release));
	snprintf(writer->plugin, sizeof(writer->plugin), "%s", plugin_version);
	memcpy(writer->driver, dump->driver.text, sizeof(dump->driver.text));
	err = kfd_state_minors(process->file.pid, &process->state, process->nodes, &process->minors);
	return err ? err : vma_save(dump->machine, dump->rules, process);
}

/* The data of all processes together, and the images behind them. */
static int save_all(struct dump *dump)
{
	int err = pages_dump(dump->processes, dump->nr_processes, dump->settings, &dump->tally);

	if (!err)
		err = losses_check(&dump->files, dump->losses);
	if (!err)
		err = suspend_dump_save(dump->suspended);
	/* Pages files look whole by now. */
	if (err)
		image_remove_all();
	for (size_t i = 0; !err && i < dump->nr_processes; i++)
		err = kfd_image_write(dump->processes[i]->id, dump->processes[i]);
	return err;
}

/* ---- render nodes ---- */

/* @image: what the file is and holds; gets the rest. @nodes: of its process. */
static int describe_render_file(const struct task_file *file, struct topology *nodes, struct render_image *image)
{
	int node = find_node(nodes, file);
	int err = node < 0 ? node : ask_flags(file, &image->flags);

	if (err)
		return err;
	if ((!image->without_kfd_vm || image->objects.nr_handles) && (image->flags & O_ACCMODE) != O_RDWR)
		return fail(-EOPNOTSUPP, "pid %d: its file of renderD%u, with which its memory on the GPU is mapped, "
			    "is not open for reading and writing (flags %#x): that cannot be restored; the program has to open "
			    "it with O_RDWR", file->pid, file->minor, image->flags);
	image->minor = file->minor;
	image->gpu_id = topology_gpu_id(nodes->nodes[node]);
	image->nodes = nodes;
	return 0;
}

static int dump_render_node(const struct dump *dump, const struct task_file *file, const struct gpu_process *process, int id)
{
	struct render_image image = share_describe_file(dump->survey, file);
	int err = describe_render_file(file, process->nodes, &image);

	return err ? err : render_image_write(id, &image);
}

int dump_foreign_file(struct dump *dump, int fd, int id)
{
	const char *kind = task_file_unsaved_kind(fd);
	struct dmabuf_image image;
	int err;

	if (!kind)
		return 0;
	/* A task with such a file may come before those with GPUs. */
	err = dump_pause(dump);
	if (err || !dump->nr_processes)
		return err;
	if (task_file_is_dmabuf(kind) && share_find_dmabuf(dump->survey, fd, &image)) {
		err = pause_and_begin(dump);
		if (err)
			return err;
		/* It may have none. */
		fdinfo_value(fd, "name", image.name, sizeof(image.name));
		err = dmabuf_image_write(id, &image);
		return err ? err : 1;
	}
	return fail(-EOPNOTSUPP, "a process of the dump, which has AMD GPUs, has %s open: that cannot be "
		    "saved%s", kind, task_file_is_dmabuf(kind) ? " (it is of another driver, such as udmabuf, or the "
		    "kernel is older than Linux 6.8)" : "");
}

int dump_file(struct dump *dump, int fd, const struct stat *st, int id)
{
	_cleanup_(kfd_state_done) struct kfd_state state = { 0 };
	_cleanup_topology_ struct topology *nodes = NULL;
	struct gpu_process extra = { .extra_file = true };
	struct render_image unused = { .without_kfd_vm = true };
	struct task_file *file = NULL;
	struct gpu_process *process;
	int err = pause_and_begin(dump);

	if (err)
		return err;
	err = task_files_find(&dump->files, fd, &file);
	if (err)
		return fail(err, "cannot compare file %#x of device %u:%u with those of the tasks: %m", id,
			    major(st->st_rdev), minor(st->st_rdev));
	if (!file)
		return refuse_file_under_way(st);
	process = process_by_pid(dump, file->pid);
	if (!process) {
		/*
		 * An empty file of a task without /dev/kfd, such as a program that asked for the GPUs' state has, and leaves to
		 * its children. The restore opens it again.
		 */
		err = refuse_used_file(file, false);
		if (!err)
			err = task_nodes(dump, file->pid, &state, &nodes);
		if (!err)
			err = describe_render_file(file, nodes, &unused);
		return err ? err : render_image_write(id, &unused);
	}
	if (process->file.fd != file->fd && file->minor)
		return dump_render_node(dump, file, process, id);
	if (process->file.fd != file->fd) {
		/*
		 * A process is saved with its first file. Of its other ones of /dev/kfd, only their existence and their GPUs are
		 * saved: the restore may open one of them first.
		 */
		err = ask_flags(file, &extra.flags);
		extra.state.pid = process->state.pid;
		extra.nodes = process->nodes;
		return err ? err : kfd_image_write(id, &extra);
	}
	err = describe(dump, process);
	if (err)
		return err;
	/* The number of the file is the name of the images. Nothing is saved before all processes have theirs. */
	process->id = id;
	if (++dump->nr_named == dump->nr_processes)
		err = save_all(dump);
	return err || !process->no_kfd ? err : dump_render_node(dump, file, process, id);
}

/* ---- a dump that ends before it writes ---- */

int dump_try(const struct settings *settings, double *ret_seconds)
{
	struct dump *dump = dump_new(settings);
	int err = -ENOMEM;

	if (dump) {
		dump->is_try = true;
		err = dump_pause(dump);
	}
	for (size_t i = 0; !err && i < dump->nr_processes; i++)
		err = describe(dump, dump->processes[i]);
	for (size_t i = 0; !err && i < dump->files.count; i++) {
		const struct task_file *file = &dump->files.files[i];
		const struct gpu_process *process = process_by_pid(dump, file->pid);
		struct render_image image;

		if (!file->minor)
			continue;
		if (process)
			image = share_describe_file(dump->survey, file);
		err = process ? describe_render_file(file, process->nodes, &image) : refuse_used_file(file, false);
	}
	*ret_seconds = dump && dump->nr_processes ? monotonic_seconds() - dump->stopped_at : 0;
	dump_free(dump, false);
	return err;
}
