/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the plugin needs of the criu that loaded it, for every version from 3.17 on. The plugin is built without criu's
 * headers: one binary has to load everywhere, and the number of hooks differs. The layouts below are criu's plugin ABI
 * 0.2.0.
 */
#ifndef HOST_CRIU_H
#define HOST_CRIU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define CRIU_PLUGIN_ABI ((0 << 16) + (2 << 8) + 0)

enum criu_hook {
	CRIU_HOOK_DUMP_EXT_FILE = 2,
	CRIU_HOOK_RESTORE_EXT_FILE = 3,
	CRIU_HOOK_HANDLE_DEVICE_VMA = 7,
	CRIU_HOOK_UPDATE_VMA_MAP = 8,
	CRIU_HOOK_RESUME_DEVICES_LATE = 9,
	CRIU_HOOK_COUNT = 10,	/* criu 3.17: what every supported version has */
	CRIU_HOOK_PAUSE_DEVICES = 10, /* criu 4.0 and later, as the next one */
	CRIU_HOOK_CHECKPOINT_DEVICES = 11,
	CRIU_HOOK_POST_FORKING = 12, /* criu 4.2 and later */
	CRIU_HOOK_DUMP_FINISH = 16,	/* criu 4.3 and later */
	CRIU_HOOK_OURS,		/* one more than the last that the plugin has something for */
	CRIU_HOOKS_WITH_RETRY = 15, /* since it has this many, RESTORE_EXT_FILE has a second argument */
	CRIU_HOOK_MAX = 32,	/* more than any version has */
};

enum criu_stage {
	CRIU_STAGE_DUMP = 0,
	CRIU_STAGE_PRE_DUMP = 1,
	CRIU_STAGE_RESTORE = 2,
};

struct criu_plugin_desc {
	const char *name;
	int (*init)(int stage);
	void (*exit)(int stage, int ret);
	unsigned int version;
	unsigned int max_hooks;
	void *hooks[CRIU_HOOK_OURS];
};

/* Lets the plugin's lines go to criu's log. */
void criu_log_init(void);

/*
 * Number of hooks that the running criu knows, by the size of its exported plugin table. CRIU_HOOK_COUNT when that
 * cannot be read; CRIU_HOOKS of the build where libc does not help (musl).
 */
unsigned int criu_running_hooks(void);

/*
 * Opens an image for writing: a new file of mode 0600 in the image directory, which replaces one of that name, or the
 * streamer's pipe. Returns an fd that the caller owns, or -errno.
 */
int criu_image_create(const char *name);

/* For a program that is not criu: images are in this directory, whose fd is borrowed; -1 ends that. */
void criu_use_image_dir(int fd);

/* As criu_image_create(), for reading. -ENOENT: no message. */
int criu_image_open(const char *name);

/* To be called when criu has made its connections and has no file of a task yet, for what follows. */
void criu_look_for_streamer(void);

/* True when images go through criu-image-streamer: each file once, in order, no seek. */
bool criu_is_streaming(void);

/* Borrowed fd of the image directory, -1 when streaming or unknown. */
int criu_image_dir(void);

/* ---- criu's store: open files of a restore for later hooks of any task, which take no number of the restored program ---- */

/* In criu's main process, around a restore: notes what is kept in all tasks. 0 or -ENOMEM. */
int criu_store_begin(void);
void criu_store_end(void);

#define BUNDLE_MAX 32u

/* Keeps @nr files, BUNDLE_MAX at most, which stay the caller's. An id in the store for criu_kept_files(), or -errno after fail(). */
int criu_keep_files(const int *fds, size_t nr);
/* All of them, or as many as the process may have, but one; the caller's. 0, or -errno after fail(). */
int criu_kept_files(int store_id, int fds[BUNDLE_MAX], size_t *ret_nr);

/* The same of one file. The first takes @fd whatever happens; the second returns an fd that the caller owns. */
int criu_keep_file(int fd);
int criu_kept_file(int store_id);

/* In criu's main process: closes all that tasks have kept. 0, or -errno after fail(). */
int criu_let_go(void);

/* True when this dump leaves out memory that has not changed since an earlier one (criu's --prev-images-dir). */
bool criu_is_incremental(void);

/* At dump: whether criu's command line has --lazy-pages. */
bool criu_is_asked_for_lazy_pages(void);

/* At restore, in a task: whether memory will come only when it is touched. @store_id: of any file that was kept. */
bool criu_restores_lazily(int store_id);

/* At restore: whether the images may have an established TCP connection. */
bool criu_restores_connections(void);

/* At restore, in the main process: whether criu makes no task but one. False where criu does not tell. */
bool criu_restores_one_task(void);

/* Removes what made the dump incremental from the image directory, after the dump was refused for it. */
void criu_forget_parent(void);

/*
 * Whether criu leaves the fd of UPDATE_VMA_MAP open, as 3.17 and 3.18 do, which look like 3.19 from inside. To be called in
 * criu's main process, before it has tasks to wait for: asks for criu's version, where it matters.
 */
bool criu_leaves_vma_fds_open(void);

/*
 * An fd of the kept file for UPDATE_VMA_MAP. Where that @stays_open, it is one of the task's own fds of that file, if
 * it has any. -errno after fail().
 */
int criu_vma_file(int store_id, bool stays_open);

/* Whether a task has ended, or is about to: large ones give their memory back for a while. */
bool criu_task_has_ended(pid_t pid);
/* Lets criu go on, but end with a failure if the task still lives then: for hooks that cannot fail. */
void criu_fail_at_exit(pid_t pid);

/* Names the plugin in the inventory (criu 4.1 and later), so that restore demands it. 0 or -errno. */
int criu_inventory_add(void);

/* Whether images were written with the plugin. Perhaps: this criu, or the one that wrote them, is older than 4.1 and
 * keeps no list. */
enum criu_wanted { CRIU_NOT_WANTED, CRIU_WANTED, CRIU_WANTED_PERHAPS };

/* At restore, once: whether the images need the plugin. */
enum criu_wanted criu_inventory_wants_us(void);

/* ---- many open files as one ---- */

/* A file that holds @nr files, BUNDLE_MAX at most, which stay the caller's. The caller's fd, or -errno, no message. */
int bundle_new(const int *fds, size_t nr);

/* All files in it, which the caller owns; as many as the process may have. 0 or -errno, no message. */
int bundle_open(int bundle, int fds[BUNDLE_MAX], size_t *ret_nr);

/* Closes what it holds, for all who have it. 0 or -errno, no message. */
int bundle_empty(int bundle);

#endif
