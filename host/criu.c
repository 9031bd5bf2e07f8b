// SPDX-License-Identifier: GPL-2.0-only
/*
 * The only file, with options.c, that knows symbols of the running criu.
 *
 * One binary serves every criu from 3.17 on, so no header of criu is used. Each symbol is looked up with dlsym() when
 * it is needed: a version that lacks one loses one feature, never the load. criu checks the number of hooks at load; it
 * is read from the size of criu's exported plugin table. criu's `opts` is not touched, since its layout differs between
 * builds; whether images are streamed or memory comes later (--lazy-pages) is seen from the sockets that criu holds. At
 * dump there is no socket for the latter yet: only criu's command line tells of it, and neither RPC nor a configuration
 * file of criu can be seen.
 *
 * criu 3.17 and 3.18 duplicate the fd that UPDATE_VMA_MAP hands over and leave it open; later ones close it. Only
 * `criu --version` tells 3.18 from 3.19; they get an fd that the task has anyway.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <link.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "host/criu.h"
#include "amdgpu_plugin_util.h"

#define PLUGIN_NAME "amdgpu_plugin"
/* The name of no plugin: file names have no slash. */
#define NO_PLUGIN "amdgpu_plugin/none"

#define PARENT_LINK "parent"

#define CRIU_SYMBOL(name) ((__typeof__(&name))dlsym(RTLD_DEFAULT, #name))

/* criu's functions, by their own names; only their types are used, through CRIU_SYMBOL(). */
void print_on_level(unsigned int level, const char *fmt, ...);
int criu_get_image_dir(void);
int img_streamer_open(char *filename, int flags);
int fdstore_add(int fd);
int fdstore_get(int id);
int add_inventory_plugin(const char *name);
bool check_and_remove_inventory_plugin(const char *name, size_t len);
struct pstree_item;
extern struct pstree_item *root_item;
struct pstree_item *pstree_item_next(struct pstree_item *item);

/* Of a program that is not criu. */
static int own_image_dir = -1;

void criu_use_image_dir(int fd)
{
	own_image_dir = fd;
}

void criu_log_init(void)
{
	plugin_log_to(CRIU_SYMBOL(print_on_level));
}

#ifdef __GLIBC__
unsigned int criu_running_hooks(void)
{
	const ElfW(Sym) * sym = NULL;
	void *table = dlsym(RTLD_DEFAULT, "cr_plugin_ctl");
	Dl_info info;
	size_t hooks;

	/* The table is one list head for the plugins and one for each hook. */
	if (!table || !dladdr1(table, &info, (void **)&sym, RTLD_DL_SYMENT) || !sym)
		return CRIU_HOOK_COUNT;
	hooks = sym->st_size / (2 * sizeof(void *));
	if (hooks <= CRIU_HOOK_COUNT)
		return CRIU_HOOK_COUNT;
	return hooks - 1 < CRIU_HOOK_MAX ? hooks - 1 : CRIU_HOOK_MAX;
}
#elif defined(CRIU_HOOKS)
unsigned int criu_running_hooks(void)
{
	return CRIU_HOOKS;
}
#else
#error "this libc does not tell how many hooks criu has: make CFLAGS=-DCRIU_HOOKS=N, CR_PLUGIN_HOOK__MAX of its criu-plugin.h"
#endif

/* Whether a socket is connected to one that is bound to a path which ends in @name. */
static bool is_connected_to(int fd, const char *name)
{
	struct sockaddr_un addr = { 0 };
	socklen_t len = sizeof(addr) - 1;
	size_t path_len, name_len = strlen(name);

	if (getpeername(fd, (struct sockaddr *)&addr, &len) || addr.sun_family != AF_UNIX)
		return false;
	path_len = strlen(addr.sun_path);
	return path_len >= name_len && !strcmp(addr.sun_path + path_len - name_len, name);
}

/* Seen before criu has anything of a task: a task may have such a socket, too. Tasks that criu forks inherit it. */
static bool is_streaming;

void criu_look_for_streamer(void)
{
	_cleanup_free_ int *fds = NULL;
	size_t nr = 0;

	is_streaming = false;
	list_numbers(AT_FDCWD, "/proc/self/fd", &fds, &nr);
	for (size_t i = 0; i < nr; i++)
		is_streaming |= is_connected_to(fds[i], "streamer-capture.sock") ||
				is_connected_to(fds[i], "streamer-serve.sock");
}

bool criu_is_streaming(void)
{
	return is_streaming;
}

int criu_image_dir(void)
{
	__typeof__(&criu_get_image_dir) get = CRIU_SYMBOL(criu_get_image_dir);

	if (own_image_dir >= 0)
		return own_image_dir;
	if (!get || is_streaming)
		return -1;
	return get();
}

/*
 * criu makes a link to the earlier images before it loads plugins, and leaves an existing link as it is. So whoever
 * refuses the dump has to remove the link, or later dumps into the directory would look incremental.
 */
bool criu_is_incremental(void)
{
	int dir = criu_image_dir();

	return dir >= 0 && !faccessat(dir, PARENT_LINK, F_OK, AT_SYMLINK_NOFOLLOW);
}

void criu_forget_parent(void)
{
	int dir = criu_image_dir();
	struct stat st;

	if (dir >= 0 && !fstatat(dir, PARENT_LINK, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode) &&
	    unlinkat(dir, PARENT_LINK, 0))
		pr_warn("the link %s stays in the image directory: %s\n", PARENT_LINK, strerror(errno));
}

bool criu_is_asked_for_lazy_pages(void)
{
	static const char option[] = "--lazy-pages";
	_cleanup_fclose_ FILE *f = fopen("/proc/self/cmdline", "re");
	_cleanup_free_ char *argument = NULL;
	size_t room = 0;

	/* Abbreviated as getopt_long() allows it. */
	while (f && getdelim(&argument, &room, '\0', f) > 0)
		if (strlen(argument) >= strlen("--la") && !strncmp(option, argument, strlen(argument)))
			return true;
	return false;
}

static int open_image(const char *name, int flags, int streamer_flags)
{
	__typeof__(&img_streamer_open) stream = CRIU_SYMBOL(img_streamer_open);
	int dir, fd;

	if (stream && is_streaming) {
		fd = stream((char *)name, streamer_flags);
		return fd >= 0 || fd == -ENOENT ? fd : -EIO;
	}
	dir = criu_image_dir();
	if (dir < 0)
		return -ENOSYS;
	/* As criu does with its own images: what an earlier dump left is replaced, never written into. */
	if (flags & O_CREAT && unlinkat(dir, name, 0) && errno != ENOENT)
		return -errno;
	fd = openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

int criu_image_create(const char *name)
{
	int fd = open_image(name, O_WRONLY | O_CREAT | O_EXCL, O_WRONLY | O_CREAT | O_TRUNC);

	return fd < 0 ? fail(fd, "image %s: cannot create: %m", name) : fd;
}

int criu_image_open(const char *name)
{
	int fd, dir = is_streaming ? -1 : criu_image_dir();
	struct stat st;

	/* It would wait for its writer. */
	if (dir >= 0 && !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISFIFO(st.st_mode))
		return fail(-EINVAL, "image %s: is a named pipe", name);
	fd = open_image(name, O_RDONLY, O_RDONLY);
	return fd < 0 && fd != -ENOENT ? fail(fd, "image %s: cannot open: %m", name) : fd;
}

static int store(int fd)
{
	__typeof__(&fdstore_add) add = CRIU_SYMBOL(fdstore_add);
	int store_id = add ? add(fd) : -ENOSYS;

	return store_id == -1 ? errno_or_eio() : store_id;
}

static int stored(int store_id)
{
	__typeof__(&fdstore_get) get = CRIU_SYMBOL(fdstore_get);
	int fd = get ? get(store_id) : -ENOSYS;

	return fd == -1 ? errno_or_eio() : fd;
}

/* The ids in the store of what all tasks keep: more than there is room for stays open as long as criu runs. */
#define MAX_KEPT (1u << 20)

static struct kept {
	atomic_uint nr;
	int store_ids[MAX_KEPT];
} *kept;

int criu_store_begin(void)
{
	kept = shared_memory_new(sizeof(*kept));
	return kept ? 0 : -ENOMEM;
}

void criu_store_end(void)
{
	if (kept)
		munmap(kept, sizeof(*kept));
	kept = NULL;
}

/* criu gives no file of its store back, and may live as long as the tasks: it gets bundles, which can be emptied. */
int criu_keep_files(const int *fds, size_t nr)
{
	_cleanup_close_ int bundle = bundle_new(fds, nr);
	int store_id = bundle < 0 ? bundle : store(bundle);
	unsigned int at;

	if (store_id < 0)
		return fail(store_id, "cannot keep %zu device files for later: %m", nr);
	at = kept ? atomic_fetch_add(&kept->nr, 1) : MAX_KEPT;
	if (at < MAX_KEPT)
		kept->store_ids[at] = store_id;
	return store_id;
}

int criu_kept_files(int store_id, int fds[BUNDLE_MAX], size_t *ret_nr)
{
	_cleanup_close_ int bundle = stored(store_id);
	int err = bundle < 0 ? bundle : bundle_open(bundle, fds, ret_nr);

	if (!err && !*ret_nr)
		err = -EMFILE; /* this process may not have more */
	return err ? fail(err, "cannot get device file %d from criu again: %m", store_id) : 0;
}

int criu_keep_file(int fd)
{
	int store_id = criu_keep_files(&fd, 1);

	close(fd);
	return store_id;
}

int criu_kept_file(int store_id)
{
	int fds[BUNDLE_MAX];
	size_t nr = 0;
	int err = criu_kept_files(store_id, fds, &nr);

	return err ? err : fds[0];
}

int criu_let_go(void)
{
	unsigned int nr = kept ? atomic_load(&kept->nr) : 0;

	for (unsigned int i = 0; i < nr && i < MAX_KEPT; i++) {
		_cleanup_close_ int bundle = stored(kept->store_ids[i]);
		int err = bundle < 0 ? bundle : bundle_empty(bundle);

		if (err && err != -EAGAIN)
			return fail(err, "cannot close device file %d that criu holds: %m", kept->store_ids[i]);
	}
	return 0;
}

/* criu puts its connection to the server of pages into the fd store, before it makes tasks. */
bool criu_restores_lazily(int store_id)
{
	bool found = false;

	for (int i = 0; !found && i < store_id; i++) {
		_cleanup_close_ int fd = stored(i);

		found = fd >= 0 && is_connected_to(fd, "lazy-pages.socket");
	}
	return found;
}

bool criu_leaves_vma_fds_open(void)
{
	char exe[PATH_MAX] = "", command[PATH_MAX + 16], line[128];
	bool stay_open = false;
	int major, minor;
	FILE *f;

	/* Versions 3.17 to 3.19 look alike from inside: "criu --version" tells them apart. */
	if (criu_running_hooks() != CRIU_HOOK_COUNT || readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0 ||
	    strchr(exe, '\''))
		return false;
	snprintf(command, sizeof(command), "'%s' --version", exe);
	f = popen(command, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Version: %d.%d", &major, &minor) == 2)
			stay_open = major == 3 && minor <= 18;
	if (f)
		pclose(f);
	return stay_open;
}

int criu_vma_file(int store_id, bool stays_open)
{
	_cleanup_free_ int *fds = NULL;
	int fd = criu_kept_file(store_id);
	pid_t self = getpid();
	size_t nr = 0;

	if (fd < 0 || !stays_open)
		return fd;
	/* An fd of ours for the same open file, if there is another one. */
	list_numbers(AT_FDCWD, "/proc/self/fd", &fds, &nr);
	for (size_t i = 0; i < nr; i++)
		if (fds[i] != fd && !syscall(SYS_kcmp, self, self, KCMP_FILE, fd, fds[i])) {
			close(fd);
			return fds[i];
		}
	return fd;
}

/* criu saves what is queued in each established connection in an image of its own. */
bool criu_restores_connections(void)
{
	static const char name[] = "tcp-stream-";
	int fd = openat(criu_image_dir(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir)
		return true;
	while ((entry = readdir(dir)))
		if (!strncmp(entry->d_name, name, strlen(name)))
			return true;
	return false;
}

/* criu's tree has the tasks that it makes for a while, too: those inherit memory as well. */
bool criu_restores_one_task(void)
{
	__typeof__(&pstree_item_next) next = CRIU_SYMBOL(pstree_item_next);
	__typeof__(&root_item) root = dlsym(RTLD_DEFAULT, "root_item");

	return next && root && *root && !next(*root);
}

int criu_inventory_add(void)
{
	__typeof__(&add_inventory_plugin) add = CRIU_SYMBOL(add_inventory_plugin);

	if (!add || add(PLUGIN_NAME) == 0)
		return 0;
	return fail(-ENOMEM, "cannot enter %s in the inventory: %m", PLUGIN_NAME);
}

enum criu_wanted criu_inventory_wants_us(void)
{
	__typeof__(&check_and_remove_inventory_plugin) check = CRIU_SYMBOL(check_and_remove_inventory_plugin);

	/* Images of criu 4.0 and older have no list, and then criu says yes to every name. */
	if (!check || check(NO_PLUGIN, strlen(NO_PLUGIN)))
		return CRIU_WANTED_PERHAPS;
	return check(PLUGIN_NAME, strlen(PLUGIN_NAME)) ? CRIU_WANTED : CRIU_NOT_WANTED;
}
