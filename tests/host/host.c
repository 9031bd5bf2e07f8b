// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands in for a criu with HOOKS hooks: loads the plugin by the same rules and calls its
 * hooks with the arguments of that version, on a machine without an AMD GPU. For versions
 * that no distribution packages, next to the real ones in tests/e2e.
 *
 *     host-HOOKS PLUGIN
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/criu.h"

#ifndef HOOKS
#error "HOOKS is the number of hooks of the criu to stand in for"
#endif

/* What the plugin has a hook for; criu may have more. */
#define HOOKS_KNOWN (HOOKS < 17 ? HOOKS : 17)

/* The plugin ABI of that criu. */
#define ABI ((0 << 16) + ((HOOKS < 17 ? 2 : 3) << 8) + 0)

struct list_head {
	struct list_head *next, *prev;
};

/* What the plugin looks for in a criu: the table's size tells the number of hooks. */
struct {
	struct list_head head;
	struct list_head hook_chain[HOOKS];
} cr_plugin_ctl;

static int log_level_seen = 99;
static bool killed;
static int failed, count;

void print_on_level(unsigned int level, const char *fmt, ...)
{
	va_list args;

	if ((int)level < log_level_seen)
		log_level_seen = (int)level;
	fprintf(stderr, "# level %u: ", level);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
}

int criu_get_image_dir(void)
{
	static int dir = -1;

	if (dir < 0)
		dir = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return dir;
}

#if HOOKS >= 12
static bool in_inventory, no_inventory;

int add_inventory_plugin(const char *name)
{
	in_inventory = !strcmp(name, "amdgpu_plugin");
	return 0;
}

/* With 17 hooks it has one argument, and the whole name counts. */
bool check_and_remove_inventory_plugin(const char *name, size_t len)
{
	bool is_named = HOOKS < 17 ? !strncmp(name, "amdgpu_plugin", len) : !strcmp(name, "amdgpu_plugin");

	return no_inventory || (in_inventory && is_named);
}
#endif

#if HOOKS >= 17
static char *options[] = { "criu-plugin", "--other_plugin.flag", "--other_plugin.device-map=1", NULL };

int criu_plugin_get_options(int *argc, char ***argv)
{
	*argc = (int)(sizeof(options) / sizeof(options[0])) - 1;
	*argv = options;
	return 0;
}
#endif

/* Called instead of libc's. */
int kill(pid_t pid, int sig)
{
	(void)pid;
	(void)sig;
	killed = true;
	return 0;
}

static void check(bool ok, const char *text)
{
	count++;
	failed += !ok;
	printf("%sok - criu with %d hooks: %s\n", ok ? "" : "not ", HOOKS, text);
}

/* The checks of criu's loader: version and number of hooks must not exceed its own. */
static void check_descriptor(const struct criu_plugin_desc *desc)
{
	check(!strcmp(desc->name, "amdgpu_plugin"), "the name is the one for the inventory");
	check(desc->version <= ABI, "the version is not newer than this criu's");
	check(desc->max_hooks == HOOKS_KNOWN, "the number of hooks is this criu's, or the plugin's own");
}

/*
 * criu reads the second argument, where it has one, without having set it. Before that the register holds garbage: a
 * write through it would crash.
 */
static int restore_file(const struct criu_plugin_desc *desc, int id)
{
	int (*hook)(int, bool *) = (int (*)(int, bool *))desc->hooks[CRIU_HOOK_RESTORE_EXT_FILE];
	bool is_asked_again = true;
	int ret = hook(id, HOOKS >= CRIU_HOOKS_WITH_RETRY ? &is_asked_again : (bool *)16);

	return HOOKS >= CRIU_HOOKS_WITH_RETRY && is_asked_again ? -EAGAIN : ret;
}

static void check_restore_file(const struct criu_plugin_desc *desc)
{
	check(restore_file(desc, 4711) == -ENOTSUP, "a file id without an image is not ours, now or later");
}

static void check_hooks(const struct criu_plugin_desc *desc)
{
	int (*dump_file)(int, int) = (int (*)(int, int))desc->hooks[CRIU_HOOK_DUMP_EXT_FILE];
	int (*vma)(int, const struct stat *) = (int (*)(int, const struct stat *))desc->hooks[CRIU_HOOK_HANDLE_DEVICE_VMA];
	int (*update)(const char *, uint64_t, uint64_t, uint64_t *, int *) =
		(int (*)(const char *, uint64_t, uint64_t, uint64_t *, int *))desc->hooks[CRIU_HOOK_UPDATE_VMA_MAP];
	int (*resume)(int) = (int (*)(int))desc->hooks[CRIU_HOOK_RESUME_DEVICES_LATE];
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), plugin_fd = -1;
	uint64_t offset = 1;
	struct stat st;

	check(!fstat(fd, &st) && !desc->init(CRIU_STAGE_DUMP), "init for a dump");
	check(dump_file(fd, 1) == -ENOTSUP, "a foreign device file is not ours");
	check(vma(fd, &st) == -ENOTSUP, "a foreign device mapping is not ours");
	if (HOOKS > CRIU_HOOK_DUMP_FINISH)
		check(((int (*)(int))desc->hooks[CRIU_HOOK_DUMP_FINISH])(0) == -ENOTSUP, "a dump without GPUs may end");
	desc->exit(CRIU_STAGE_DUMP, 0);
	check(!desc->init(CRIU_STAGE_PRE_DUMP), "init for a pre-dump");
	check(vma(fd, &st) == -ENOTSUP, "nor in a pre-dump");
	desc->exit(CRIU_STAGE_PRE_DUMP, 0);
	check(!desc->init(CRIU_STAGE_RESTORE), "init for a restore");
	check_restore_file(desc);
	check(update("/dev/null", 0x1000, 0, &offset, &plugin_fd) == -ENOTSUP && offset == 1 && plugin_fd == -1,
	      "a foreign mapping stays as it is");
	if (HOOKS > CRIU_HOOK_POST_FORKING)
		check(((int (*)(void))desc->hooks[CRIU_HOOK_POST_FORKING])() == -ENOTSUP,
		      "other plugins hear of the end of forking, too");
	check(resume(getpid()) == -ENOTSUP, "a process without GPU is not resumed");
	desc->exit(CRIU_STAGE_RESTORE, 0);
	close(fd);
}

/* Numbers of no task, file or mapping, at each stage: they are nobody's, and nobody is sent a signal. */
static void check_nonsense(const struct criu_plugin_desc *desc, int stage)
{
	static const int numbers[] = { -1, 0, 1, INT_MIN };
	int (*resume)(int) = (int (*)(int))desc->hooks[CRIU_HOOK_RESUME_DEVICES_LATE];
	int (*checkpoint)(int) = (int (*)(int))desc->hooks[CRIU_HOOK_CHECKPOINT_DEVICES];
	int (*dump_file)(int, int) = (int (*)(int, int))desc->hooks[CRIU_HOOK_DUMP_EXT_FILE];
	int (*vma)(int, const struct stat *) = (int (*)(int, const struct stat *))desc->hooks[CRIU_HOOK_HANDLE_DEVICE_VMA];
	int (*update)(const char *, uint64_t, uint64_t, uint64_t *, int *) =
		(int (*)(const char *, uint64_t, uint64_t, uint64_t *, int *))desc->hooks[CRIU_HOOK_UPDATE_VMA_MAP];
	int (*pause)(int) = (int (*)(int))desc->hooks[CRIU_HOOK_PAUSE_DEVICES];
	bool ok = !desc->init(stage);

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		ok = ok && resume(numbers[i]) == -ENOTSUP && checkpoint(numbers[i]) == -ENOTSUP && pause(numbers[i]) == -ENOTSUP &&
		     restore_file(desc, numbers[i]) == -ENOTSUP;
	ok = ok && dump_file(-1, 1) == -ENOTSUP && dump_file(0, -1) == -ENOTSUP && vma(-1, NULL) == -ENOTSUP &&
	     update(NULL, 0, 0, NULL, NULL) == -ENOTSUP && update("/dev/kfd", 0, 0, NULL, NULL) == -ENOTSUP;
	desc->exit(stage, 0);
	check(ok, "numbers that are none are not ours");
	check(!killed, "nobody is sent a signal");
}

#if HOOKS >= 12
/* Of criu 4.0 and older: then criu says of every plugin that the images want it. */
static void check_images_without_inventory(const struct criu_plugin_desc *desc)
{
	int (*resume)(int) = (int (*)(int))desc->hooks[CRIU_HOOK_RESUME_DEVICES_LATE];

	no_inventory = true;
	check(!desc->init(CRIU_STAGE_RESTORE), "init for a restore of images without a list of plugins");
	check_restore_file(desc);
	check(resume(getpid()) == -ENOTSUP, "nor is a process of such images resumed");
	desc->exit(CRIU_STAGE_RESTORE, 0);
}
#endif

int main(int argc, char **argv)
{
	void *handle = argc == 2 ? dlopen(argv[1], RTLD_LAZY) : NULL;
	struct criu_plugin_desc *desc = handle ? dlsym(handle, "CR_PLUGIN_DESC") : NULL;

	check(desc != NULL, "the plugin loads");
	if (!desc) {
		fprintf(stderr, "# %s\n", handle || argc == 2 ? dlerror() : "usage: host PLUGIN");
		return 1;
	}
	check_descriptor(desc);
	check_hooks(desc);
#if HOOKS >= 12
	no_inventory = true;
#endif
	for (int stage = CRIU_STAGE_DUMP; stage <= CRIU_STAGE_RESTORE; stage++)
		check_nonsense(desc, stage);
#if HOOKS >= 12
	check_images_without_inventory(desc);
#endif
	check(log_level_seen > 2, "nothing is logged as an error or a warning");
#if HOOKS >= 12
	check(!in_inventory, "nothing enters the inventory");
#endif
	dlclose(handle);
	return failed != 0;
}
