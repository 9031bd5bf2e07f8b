// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRIU plugin for AMD GPUs: the hook table and the error boundary.
 *
 * The only file that criu calls, and the only one that knows -ENOTSUP: a hook answers it
 * for everything that is not ours, so that other plugins get their turn and a machine
 * without AMD GPUs does not notice that the plugin is installed.
 *
 * criu does not hear of some failures. It ignores a failed UPDATE_VMA_MAP and would map whatever is at the old place:
 * the answer is an offset and an fd that cannot be mapped. It ignores a failed RESUME: the tasks are killed here, by which
 * criu notices. It does not ask whether a dump could let all queues go, or has all files.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "host/host.h"
#include "kernel/kernel.h"
#include "amdgpu_plugin_drm.h"
#include "checkpoint/checkpoint.h"
#include "amdgpu_plugin_util.h"

/* A file offset that no mapping can have. */
#define BAD_OFFSET (~0xfffull)

static struct {
	bool awake;
	int stage;
	bool in_inventory;
	struct settings settings;
	struct dump *dump;
	struct restore *restore;
	pid_t *tasks; /* that were restored, in criu's main process */
	size_t nr_tasks;
	bool resume_failed;
	unsigned int error_lines; /* when a hook failed last */
} plugin;

/*
 * A hook's result. Where the hook has failed and written no error line, as after a failed allocation, the line is written
 * here. What plugin_init() found out, it has written itself. -ECANCELED without words: another task has failed, which says why.
 */
static int result(int err, const char *what)
{
	if (!err)
		return 0;
	if (!fail_log() && err != -ECANCELED && plugin_error_lines() == plugin.error_lines)
		pr_err("%s: %s\n", what, strerror(-err));
	plugin.error_lines = plugin_error_lines();
	return -1;
}

static int plugin_init(int stage)
{
	enum criu_wanted wanted = CRIU_WANTED_PERHAPS;
	dev_t kfd;

	plugin.stage = stage;
	plugin.awake = device_kfd_number(&kfd);
	criu_look_for_streamer();
	if (stage == CRIU_STAGE_RESTORE) {
		wanted = criu_inventory_wants_us();
		if (wanted == CRIU_WANTED && !plugin.awake)
			return result(fail(-ENODEV, "the images are of a process with AMD GPUs, and there is no "
					   "/dev/kfd on this machine: load amdgpu"), "starting");
		plugin.awake = wanted != CRIU_NOT_WANTED;
	}
	if (!plugin.awake)
		return 0;
	if (wanted == CRIU_WANTED)
		pr_info("version %s\n", plugin_version);
	/* A mistake in the settings ends a dump or restore only once that is known to be of a GPU process. */
	settings_load_quietly(&plugin.settings, SETTINGS_MACHINE_CONF, criu_image_dir(), options_or_environment);
	options_check(&plugin.settings);
	if (wanted == CRIU_WANTED && settings_check(&plugin.settings))
		return result(-EINVAL, "settings");
	if (stage == CRIU_STAGE_DUMP)
		plugin.dump = dump_new(&plugin.settings);
	else if (stage == CRIU_STAGE_RESTORE)
		plugin.restore = restore_new(&plugin.settings, wanted == CRIU_WANTED);
	return result(stage == CRIU_STAGE_PRE_DUMP || plugin.dump || plugin.restore ? 0 : -ENOMEM, "starting");
}

static void plugin_exit(int stage, int ret)
{
	bool is_lost;

	(void)stage;
	fail_clear();
	is_lost = dump_free(plugin.dump, ret == 0);
	restore_free(plugin.restore);
	fail_log();
	plugin.dump = NULL;
	plugin.restore = NULL;
	free(plugin.tasks);
	plugin.tasks = NULL;
	plugin.nr_tasks = 0;
	plugin.awake = false;
	if (plugin.resume_failed)
		pr_info("the restored tasks were killed, since their GPUs do not run\n");
	/* criu would end tasks that are not saved, or report success for those that were killed, if it has not noticed. */
	if (is_lost || (plugin.resume_failed && !ret))
		_exit(EXIT_FAILURE);
	/* One criu may serve several requests. */
	plugin.in_inventory = plugin.resume_failed = false;
}

static int enter_inventory(void)
{
	int err = plugin.in_inventory ? 0 : criu_inventory_add();

	plugin.in_inventory = !err;
	return err;
}

/* 1, 0 or -errno. */
static int is_ours(int fd, const struct stat *st)
{
	int r = device_is_kfd(st);

	if (r || !device_is_render_node(st))
		return r;
	r = drm_is_amd(fd);
	/* A mapping's file as a path, where its node is not on a file system in memory. */
	if (r == -EBADF)
		r = drm_minor_is_amd(minor(st->st_rdev));
	return r < 0 ? fail(r, "cannot ask renderD%u for its driver: %m", minor(st->st_rdev)) : r;
}

static int hook_dump_ext_file(int fd, int id)
{
	struct stat st;
	int r, err = 0;

	fail_clear();
	if (!plugin.dump || id < 0 || fstat(fd, &st))
		return -ENOTSUP;
	/* A descriptor that is a path is criu's own. */
	if (fcntl(fd, F_GETFL) & O_PATH)
		return -ENOTSUP;
	r = is_ours(fd, &st);
	if (r < 0)
		return result(r, "looking at a device file");
	if (r)
		err = dump_file(plugin.dump, fd, &st, id);
	else
		r = dump_foreign_file(plugin.dump, fd, id);
	if (r <= 0)
		return r ? result(r, "saving a dma-buf") : -ENOTSUP;
	if (!err)
		err = enter_inventory();
	return result(err, "saving a device file");
}

static int refuse_pre_dump(void)
{
	return result(fail(-EOPNOTSUPP, "a process with an AMD GPU cannot be pre-dumped: the GPU's writes to memory "
			   "are not tracked"), "pre-dump");
}

static int hook_handle_device_vma(int fd, const struct stat *st)
{
	int err, r;

	fail_clear();
	r = plugin.awake && st ? is_ours(fd, st) : 0;
	if (r < 0)
		return result(r, "looking at a device mapping");
	if (!r)
		return -ENOTSUP;
	if (plugin.stage != CRIU_STAGE_DUMP)
		return refuse_pre_dump();
	err = dump_pause(plugin.dump);
	if (!err)
		err = enter_inventory();
	return result(err, "looking at the processes with GPUs");
}

/* criu may have a number that means no task, or all; kill() takes some for everybody. */
static bool is_task(int pid)
{
	return pid > 1;
}

/* criu calls this for every task before it stops it. In a pre-dump of a task without device mappings it is the only hook. */
static int hook_pause_devices(int pid)
{
	if (plugin.dump && is_task(pid))
		dump_stop_suspended(plugin.dump, pid);
	if (!plugin.awake || plugin.stage != CRIU_STAGE_PRE_DUMP || !is_task(pid) || !dump_has_state(pid))
		return -ENOTSUP;
	return refuse_pre_dump();
}

/* A broadcast, of each task when all are stopped. A plugin before us may keep it from us. */
static int hook_checkpoint_devices(int pid)
{
	int err;

	fail_clear();
	err = plugin.dump && is_task(pid) ? dump_pause_with(plugin.dump, pid) : 0;
	return err ? result(err, "looking at the processes with GPUs") : -ENOTSUP;
}

/*
 * Since criu 4.3, before it lets the tasks go, or ends them. What fails here it takes back: it unlocks the network and lets all
 * go on. Others are ended in plugin_exit(). A broadcast, also of a dump that failed.
 */
static int hook_dump_finish(int ret)
{
	int err;

	fail_clear();
	err = ret ? 0 : dump_check_complete(plugin.dump);
	return err ? result(err, "looking at what is saved") : -ENOTSUP;
}

/* A criu that can ask again later reads the answer to that, which it has not set. Older ones do not pass the argument. */
static int hook_restore_ext_file(int id, bool *retry_needed)
{
	int fd;

	fail_clear();
	if (criu_running_hooks() >= CRIU_HOOKS_WITH_RETRY)
		*retry_needed = false;
	if (!plugin.restore || id < 0)
		return -ENOTSUP;
	fd = restore_file(plugin.restore, id);
	if (fd == -ENOENT)
		return -ENOTSUP;
	return fd < 0 ? result(fd, "restoring a device file") : fd;
}

/*
 * criu takes an error here for "nothing to change" and would map whatever it finds at the
 * old place, so a failure is answered with an fd and an offset that cannot be mapped.
 */
static int hook_update_vma_map(const char *path, const uint64_t start, const uint64_t offset, uint64_t *new_offset,
			       int *fd)
{
	int err;

	fail_clear();
	if (!plugin.restore || !path || !new_offset || !fd)
		return -ENOTSUP;
	err = restore_vma(plugin.restore, path, start, offset, new_offset, fd);
	if (err == -ENOENT)
		return -ENOTSUP;
	if (result(err, "restoring a device mapping")) {
		*new_offset = BAD_OFFSET;
		*fd = open("/", O_PATH | O_CLOEXEC);
	}
	return 1;
}

/* A broadcast: other plugins want it, too. */
static int hook_post_forking(void)
{
	if (plugin.restore)
		restore_forked(plugin.restore);
	return -ENOTSUP;
}

/*
 * criu ignores the result before 4.3, which kills the tasks, too. When the GPU of one task does not run, none of the tasks may
 * run: they are killed here, and plugin_exit() lets the restore fail.
 */
static int hook_resume_devices_late(int pid)
{
	int err;

	fail_clear();
	if (!plugin.restore || !is_task(pid))
		return -ENOTSUP;
	err = array_add(plugin.tasks, plugin.nr_tasks, pid);
	if (!err)
		err = plugin.resume_failed ? -ECANCELED : restore_resume(plugin.restore, pid);
	if (err == -ESRCH)
		return -ENOTSUP;
	if (!err)
		return 0;
	result(err, "letting a restored task run");
	plugin.resume_failed = true;
	kill(pid, SIGKILL);
	while (plugin.nr_tasks)
		kill(plugin.tasks[--plugin.nr_tasks], SIGKILL);
	return -1;
}

__attribute__((visibility("default"))) struct criu_plugin_desc CR_PLUGIN_DESC = {
	.name = "amdgpu_plugin",
	.init = plugin_init,
	.exit = plugin_exit,
	.version = CRIU_PLUGIN_ABI,
	.max_hooks = CRIU_HOOK_COUNT,
	.hooks = {
		[CRIU_HOOK_DUMP_EXT_FILE] = (void *)hook_dump_ext_file,
		[CRIU_HOOK_RESTORE_EXT_FILE] = (void *)hook_restore_ext_file,
		[CRIU_HOOK_HANDLE_DEVICE_VMA] = (void *)hook_handle_device_vma,
		[CRIU_HOOK_UPDATE_VMA_MAP] = (void *)hook_update_vma_map,
		[CRIU_HOOK_RESUME_DEVICES_LATE] = (void *)hook_resume_devices_late,
		[CRIU_HOOK_PAUSE_DEVICES] = (void *)hook_pause_devices,
		[CRIU_HOOK_CHECKPOINT_DEVICES] = (void *)hook_checkpoint_devices,
		[CRIU_HOOK_POST_FORKING] = (void *)hook_post_forking,
		[CRIU_HOOK_DUMP_FINISH] = (void *)hook_dump_finish,
	},
};

/* criu refuses a plugin with more hooks than it knows, and the number differs between versions. */
static void __attribute__((constructor)) fit_running_criu(void)
{
	unsigned int hooks = criu_running_hooks();

	criu_log_init();
	CR_PLUGIN_DESC.max_hooks = hooks < CRIU_HOOK_OURS ? hooks : CRIU_HOOK_OURS;
}
