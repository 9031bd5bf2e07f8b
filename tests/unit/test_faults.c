// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whole dumps and restores through the hooks, with a stand-in for criu here and one for the
 * kernel in fake_kfd.c. Then the fault loop: each call that the plugin makes in criu's thread
 * fails once. Either the hook says so and there is an error line, or the work is done, which
 * is verified; in any case nothing is left open or stopped. Calls of the copy threads:
 * test_content_faults.c.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#include "unit.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/internal.h"
#include "host/criu.h"
#include "host/settings.h"
#include "image/image.h"
#include "amdgpu_plugin_util.h"
#include "content_fixture.h"
#include "fake_drm.h"
#include "fake_kfd.h"
#include "machine_text.h"
#include "records_fixture.h"
#include "remove_all.h"

#ifndef HOOKS
#define HOOKS	   12 /* criu 4.0 and 4.1: contents are filled when all tasks are there. See test_faults_forked.c */
#endif
#define KFD_ID	   7
#define RENDER_ID  8
#define SECOND_KFD_ID 10
#define UNUSED_ID  11
#define FD_STORE   64
#define MAX_FAULTS 20000
/* A restore that stands still for longer hangs. */
#define HANG_SECONDS 60

/* Each test begins with the ordinary process. */
static int set_ordinary(void **state)
{
	fake_kfd_set(NULL);
	return 0;
}
#undef TEST
#define TEST(test) UNIT_TEST(test, set_ordinary, NULL)

/* Each call of a dump fails. With POST_FORKING, which is for restores, a dump is the same: once is enough. */
#if HOOKS > 12
#define DUMP_LOOP(test) static void __attribute__((unused)) test(void **unit_state)
#else
#define DUMP_LOOP(test) TEST(test)
#endif

#define SETUP(...) (&(const struct fake_setup){ __VA_ARGS__ })

extern struct criu_plugin_desc CR_PLUGIN_DESC;

/* ---- criu ---- */

struct list_head {
	struct list_head *next, *prev;
};

struct {
	struct list_head head;
	struct list_head hook_chain[HOOKS];
} cr_plugin_ctl;

void print_on_level(unsigned int level, const char *fmt, ...);
int criu_get_image_dir(void);
int fdstore_add(int fd);
int fdstore_get(int id);
int add_inventory_plugin(const char *name);
bool check_and_remove_inventory_plugin(const char *name, size_t len);
int img_streamer_open(char *filename, int flags);

static char log_text[65536];
static unsigned int log_errors;
static char images[64];
static int images_fd = -1;
static int fd_store[FD_STORE];
static int nr_stored;

void print_on_level(unsigned int level, const char *fmt, ...)
{
	size_t used = strlen(log_text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(log_text + used, sizeof(log_text) - used, fmt, args);
	va_end(args);
	log_errors += level == PLUGIN_LOG_ERROR;
}

int criu_get_image_dir(void)
{
	return images_fd;
}

int fdstore_add(int fd)
{
	if (nr_stored == FD_STORE)
		return -1;
	fd_store[nr_stored] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return nr_stored++;
}

int fdstore_get(int id)
{
	return id < nr_stored ? fcntl(fd_store[id], F_DUPFD_CLOEXEC, 0) : -1;
}

int add_inventory_plugin(const char *name)
{
	return strcmp(name, "amdgpu_plugin") ? -1 : 0;
}

bool check_and_remove_inventory_plugin(const char *name, size_t len)
{
	return len == strlen("amdgpu_plugin") && !strncmp(name, "amdgpu_plugin", len);
}

struct pstree_item {
	struct pstree_item *next;
};

struct pstree_item *root_item;
struct pstree_item *pstree_item_next(struct pstree_item *item);

struct pstree_item *pstree_item_next(struct pstree_item *item)
{
	return item->next;
}

/* What is kept would stay until criu ends. Without GPU state no hook says that all is there. */
static bool store_holds_files(void)
{
	char byte;

	for (int i = 0; i < nr_stored; i++)
		if (recv(fd_store[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0)
			return true;
	return false;
}

static void empty_store(void)
{
	while (nr_stored)
		close(fd_store[--nr_stored]);
}

/* Of a child: cmocka's way back would lead into the rest of the tests. */
static void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void complain(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, ":\n%s", log_text);
	exit(2);
}

static void remove_images(void)
{
	close(images_fd);
	images_fd = -1;
	if (remove_all(images))
		complain("cannot remove %s", images);
}

/* An empty image directory. */
static void new_images(void)
{
	if (images_fd >= 0)
		remove_images();
	strcpy(images, "/dev/shm/test_faults.XXXXXX");
	if (mkdtemp(images))
		images_fd = open(images, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (images_fd < 0)
		complain("cannot make an image directory");
}

static void touch(const char *name)
{
	int fd = openat(images_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, "old", 3) != 3)
		complain("cannot make %s", name);
	close(fd);
}

/* As of criu or of a task: a connection to a socket of that name in the image directory, whose other end is @ret_server. */
static int connection_to(const char *name, int *ret_server)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", images, name);
	*ret_server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(*ret_server, (struct sockaddr *)&addr, sizeof(addr)) || listen(*ret_server, 1) ||
	    connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		complain("cannot connect to %s", name);
	return fd;
}

/* Of a streamer that is not there: criu ends itself then. */
int img_streamer_open(char *filename, int flags)
{
	complain("criu is asked to stream %s", filename);
}

/* The name of a socket to which criu has a connection of the task, from the first hook on. */
static const char *task_socket;
static int task_connection = -1, task_server = -1;

static void take_from_task(void)
{
	if (task_socket)
		task_connection = connection_to(task_socket, &task_server);
}

static void give_back_to_task(void)
{
	if (task_connection >= 0) {
		close(task_connection);
		close(task_server);
	}
	task_connection = -1;
}

static bool has_image(const char *name)
{
	return !faccessat(images_fd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* What an earlier dump has left in the directory. */
static const char *const older[] = { "amdgpu-kfd-99.img", "amdgpu-renderD-99.img",
				     "amdgpu-pages-99-00ab.img" };

static void older_images(void)
{
	new_images();
	for (size_t i = 0; i < ARRAY_SIZE(older); i++)
		touch(older[i]);
}

static size_t count_older(void)
{
	size_t nr = 0;

	for (size_t i = 0; i < ARRAY_SIZE(older); i++)
		nr += has_image(older[i]);
	return nr;
}

/* ---- one dump ---- */

static int one_dump_file(int process_fd, int id)
{
	int (*hook)(int, int) = (int (*)(int, int))CR_PLUGIN_DESC.hooks[CRIU_HOOK_DUMP_EXT_FILE];
	int fd = fake_process_file(process_fd), ret = hook(fd, id);

	close(fd);
	return ret;
}

static int dump_mapping(int process_fd)
{
	int (*hook)(int, const struct stat *) =
		(int (*)(int, const struct stat *))CR_PLUGIN_DESC.hooks[CRIU_HOOK_HANDLE_DEVICE_VMA];
	int fd = fake_process_file(process_fd), ret;
	struct stat st;

	ret = fstat(fd, &st) ? -ENOTSUP : hook(fd, &st);
	close(fd);
	return ret;
}

static bool is_replaced; /* criu asks for files: it has written over images of its own by then */

/* Of criu 4.0 and later, before the task is stopped, and when all are. */
static int dump_task(void)
{
	int (*pause)(int) = (int (*)(int))CR_PLUGIN_DESC.hooks[CRIU_HOOK_PAUSE_DEVICES];
	int (*hook)(int) = (int (*)(int))CR_PLUGIN_DESC.hooks[CRIU_HOOK_CHECKPOINT_DEVICES];
	int ret = pause(FAKE_PID);

	return ret == -ENOTSUP ? hook(FAKE_PID) : ret;
}

/* Files of other tasks. */
static int dump_more(void)
{
	int ret = 0;

	if (fake_setup.second_kfd)
		ret = one_dump_file(FAKE_SECOND_KFD_FD, SECOND_KFD_ID);
	if (ret || !fake_setup.has_tree)
		return ret;
	ret = dump_mapping(FAKE_FOREIGN_FD);
	return ret == -ENOTSUP ? one_dump_file(FAKE_UNUSED_FD, UNUSED_ID) : -1;
}

/* In the order of criu; ends at the first hook that fails. */
static int dump(void)
{
	int ret = CR_PLUGIN_DESC.init(CRIU_STAGE_DUMP);

	is_replaced = false;
	if (ret)
		return ret;
	take_from_task();
	ret = dump_task();
	if (ret == -ENOTSUP)
		ret = dump_mapping(fake_setup.render_only ? FAKE_RENDER_FD : FAKE_KFD_FD);
	is_replaced = !ret;
	if (!ret && !fake_setup.render_only)
		ret = one_dump_file(FAKE_KFD_FD, KFD_ID);
	if (!ret)
		ret = one_dump_file(FAKE_RENDER_FD, RENDER_ID);
	if (!ret)
		ret = one_dump_file(FAKE_RENDER_FD + 1, RENDER_ID + 1);
	if (!ret)
		ret = dump_more();
	CR_PLUGIN_DESC.exit(CRIU_STAGE_DUMP, ret);
	give_back_to_task();
	return ret;
}

/* ---- one restore ---- */

/* The task's file of the first render node, until the restore has ended. */
static int render_fd = -1;

/* criu reads the second argument, where it has one, without having set it; where not, the register holds anything. */
static int call_restore_file(int id)
{
	int (*hook)(int, bool *) = (int (*)(int, bool *))CR_PLUGIN_DESC.hooks[CRIU_HOOK_RESTORE_EXT_FILE];
	bool is_asked_again = true;
	int fd = hook(id, HOOKS >= CRIU_HOOKS_WITH_RETRY ? &is_asked_again : (bool *)16);

	if (HOOKS >= CRIU_HOOKS_WITH_RETRY && is_asked_again)
		complain("criu would ask for file %d again", id);
	return fd;
}

static int one_restore_file(int id)
{
	int fd = call_restore_file(id);

	if (fd < 0)
		return fd;
	if (id == RENDER_ID && (fake_setup.shares || fake_setup.render_only))
		render_fd = fd;
	else
		close(fd);
	return 0;
}

static uint64_t mapped_at; /* of fake_render_vma */

static bool shares_same(void)
{
	return fake_setup.render_only ? fake_render_only_same(render_fd, mapped_at) : fake_shares_same(render_fd);
}

/* A failure shows as a file that cannot be mapped there. */
static int restore_mapping(const struct fake_vma *vma)
{
	int (*hook)(const char *, uint64_t, uint64_t, uint64_t *, int *) =
		(int (*)(const char *, uint64_t, uint64_t, uint64_t *, int *))CR_PLUGIN_DESC.hooks[CRIU_HOOK_UPDATE_VMA_MAP];
	uint64_t offset = 0;
	int fd = -1, ret = hook(vma->path, vma->start, vma->offset, &offset, &fd);
	bool can_be_mapped = fd >= 0 && !(fcntl(fd, F_GETFL) & O_PATH);

	if (fd >= 0)
		close(fd);
	mapped_at = offset;
	if (ret != 1)
		return ret < 0 ? ret : -1;
	return (offset == fake_restored_offset(vma) || fake_setup.render_only) && can_be_mapped ? 0 : -1;
}

static bool last_comes_first;

/* In the order of criu; the files of render nodes may come in any. */
static int restore_files(void)
{
	int ret = fake_setup.render_only ? 0 : one_restore_file(KFD_ID);

	if (!ret)
		ret = one_restore_file(RENDER_ID + last_comes_first);
	if (!ret)
		ret = one_restore_file(RENDER_ID + !last_comes_first);
	if (!ret && fake_setup.second_kfd)
		ret = one_restore_file(SECOND_KFD_ID);
	return ret;
}

static int restore_mappings(void)
{
	int ret = 0;

	if (fake_setup.render_only)
		return restore_mapping(&fake_render_vma);
	for (int i = 0; !ret && i < FAKE_NR_VMAS; i++)
		ret = restore_mapping(&fake_vmas[i]);
	return ret;
}

static bool is_mapped; /* by the last restore: its contents were not awaited before */

static int resume_task(int pid)
{
	int (*hook)(int) = (int (*)(int))CR_PLUGIN_DESC.hooks[CRIU_HOOK_RESUME_DEVICES_LATE];

	return hook(pid);
}

static int restore(void)
{
	int (*forked)(void) = (int (*)(void))CR_PLUGIN_DESC.hooks[CRIU_HOOK_POST_FORKING];
	int ret = CR_PLUGIN_DESC.init(CRIU_STAGE_RESTORE);

	if (ret)
		return ret;
	if (HOOKS > CRIU_HOOK_POST_FORKING)
		forked();
	take_from_task();
	ret = restore_files();
	if (!ret)
		ret = restore_mappings();
	is_mapped = !ret;
	if (!ret)
		ret = resume_task(getpid());
	CR_PLUGIN_DESC.exit(CRIU_STAGE_RESTORE, ret);
	give_back_to_task();
	return ret;
}

/* ---- the loop ---- */

static const char *fail_name; /* the first call of that name fails, instead of the n-th one */
static int library_error;     /* of libdrm's first call */

static void begin(unsigned int nth, int err)
{
	struct fake_drm_config config = { .rings = 1, .may_import = fake_may_import };

	config.fail_call = library_error != 0;
	config.fail_err = library_error;
	fake_drm_begin(&config);
	log_text[0] = '\0';
	log_errors = 0;
	if (fail_name)
		fake_fail_named(fail_name, err);
	else
		fake_fail(nth, err);
}

static const char *run(int (*what)(void), unsigned int nth, int err, int *ret)
{
	size_t fds = fixture_open_fds();
	const char *call;

	begin(nth, err);
	*ret = setjmp(fake_exit) ? -1 : what();
	call = fake_failed();
	if (!*ret && render_fd >= 0 && !shares_same())
		complain("call %u, %s: what is shared is not what it was", nth, call);
	if (render_fd >= 0)
		close(render_fd);
	render_fd = -1;
	if (!*ret && fake_seen.restored_runs && store_holds_files())
		complain("call %u, %s: criu still has files of the restore", nth, call);
	empty_store();
	fds += fake_restored_files();
	if (fixture_open_fds() != fds)
		complain("call %u, %s: %zu fds, %zu before", nth, call, fixture_open_fds(), fds);
	if (fake_seen.is_guarded)
		complain("call %u, %s: the guard is left", nth, call);
	if (fake_seen.nr_allocated)
		complain("call %u, %s: %zu allocations left", nth, call, fake_seen.nr_allocated);
	if (fake_drm_live_objects() || fake_drm_violation())
		complain("call %u, %s: %zu GPU objects left; %s", nth, call, fake_drm_live_objects(), fake_drm_violation());
	/* criu itself has words for a file that is nobody's; why no GPUs match takes several lines. */
	if (*ret && log_errors != (*ret != -ENOTSUP) && !strstr(log_text, "cannot place "))
		complain("call %u, %s: failed with %u error lines", nth, call, log_errors);
	return call;
}

/* Without /dev/kfd there is nothing to run, and the rest is looked at before its files are closed. */
static bool is_restored(void)
{
	return fake_setup.render_only ? !fake_seen.restored_runs : fake_contents_same() && fake_seen.restored_runs;
}

/* What was dumped can be restored, to the last byte. */
static void verify_images(unsigned int nth, const char *call)
{
	int ret;

	run(restore, 0, 0, &ret);
	if (ret || !is_restored())
		complain("call %u, %s: the dump says that it worked, and cannot be restored (%d)", nth, call, ret);
	fake_kfd_forget();
}

static bool fail_dump(unsigned int nth)
{
	const char *call;
	int ret;

	older_images();
	call = run(dump, nth, EIO, &ret);
	if (!call && ret)
		complain("a dump without faults fails");
	if (ret && !is_replaced && count_older() != ARRAY_SIZE(older))
		complain("call %u, %s: fails, and %zu images of an older dump are left", nth, call, count_older());
	if (fake_process_is_paused()) {
		/* Nothing can be done then but to say so, and to let criu fail. */
		if (!call || strcmp(call, "UNPAUSE") || log_errors != 1 || !fake_seen.fails_at_exit)
			complain("call %u, %s: the process stays stopped", nth, call);
		/* The next dump heals it. */
		new_images();
		if (run(dump, 0, 0, &ret) || ret || fake_process_is_paused())
			complain("call %u, %s: the next dump fails", nth, call);
	}
	if (!ret && call && !strcmp(call, FAKE_CLOSE_OF_WRITTEN))
		complain("call %u: an image may not have reached the disk, and the dump says that it worked", nth);
	if (!ret)
		verify_images(nth, call);
	remove_images();
	return call != NULL;
}

/* As the command's check does it. */
static int try_dump(void)
{
	struct settings settings;
	double seconds;
	int err = settings_load(&settings, NULL, -1, NULL);

	if (!err)
		err = dump_try(&settings, &seconds);
	if (err && !fail_text()[0])
		pr_err("%s\n", strerror(-err));
	fail_log();
	return err ? -1 : 0;
}

static bool fail_try(unsigned int nth)
{
	const char *call;
	int ret;

	older_images();
	call = run(try_dump, nth, EIO, &ret);
	if (!call && ret)
		complain("a dump that writes nothing fails without faults");
	if (count_older() != ARRAY_SIZE(older))
		complain("call %u, %s: images are gone, and nothing was to be written", nth, call);
	if (fake_process_is_paused() && (!call || strcmp(call, "UNPAUSE")))
		complain("call %u, %s: the process stays stopped", nth, call);
	remove_images();
	return call != NULL;
}

static bool fail_restore(unsigned int nth)
{
	const char *call;
	int ret;

	call = run(restore, nth, EIO, &ret);
	if (!call && ret)
		complain("a restore without faults fails");
	if (!ret && !is_restored())
		complain("call %u, %s: the restore says that it worked, and did not", nth, call);
	/* criu does not look at the result of a resume. */
	if (call && !strcmp(call, "RESUME") && (!ret || !fake_seen.was_killed))
		complain("a task that cannot be resumed lives on");
	return call != NULL;
}

/* In a child, since a failure may end the program. 1: there was a call to fail; 0: none; others: not as it must be. */
static int in_child(bool (*fails)(unsigned int), unsigned int nth)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(HANG_SECONDS);
		exit(fails(nth));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	fprintf(stderr, "call %u: ended by signal %d\n", nth, WTERMSIG(status));
	return 2;
}

static void (*right)(void);

static bool run_right(unsigned int nth)
{
	right();
	return true;
}

/* @what complains when something is not right. */
static void assert_right_in_child(void (*what)(void))
{
	right = what;
	assert_int_equal(in_child(run_right, 0), 1);
}

/* @what likewise, of each row of a table. */
static void assert_rows_in_child(bool (*what)(unsigned int), unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		assert_int_equal(in_child(what, i), 1);
}

/* Of $FAULTS_EACH calls one, another each day; without it each call. The sanitizers are slow, and a plain build does all. */
static void each_call(bool (*fails)(unsigned int), unsigned int least)
{
	const char *each = getenv("FAULTS_EACH");
	unsigned int step = each ? (unsigned int)atoi(each) : 1, wrong = 0, nth;
	int status;

	assert_in_range(step, 1, 100);
	nth = 1 + (unsigned int)(time(NULL) / 86400 % step);
	for (; (status = in_child(fails, nth)); nth += step) {
		wrong += status != 1;
		assert_true(nth < MAX_FAULTS);
	}
	assert_int_equal(wrong, 0);
	/* Fewer would mean that the loop did not reach what it is for. */
	assert_true(nth > least);
}

/* ---- tests ---- */

static void write_images(void)
{
	int ret;

	new_images();
	if (run(dump, 0, 0, &ret) || ret || log_errors)
		fail_msg("%s", log_text);
}

/* The hooks of a stage follow, without the rest of a dump or restore; until end_stage(). */
static void begin_stage(int stage)
{
	begin(0, 0);
	assert_int_equal(CR_PLUGIN_DESC.init(stage), 0);
}

static void end_stage(int stage, int ret)
{
	CR_PLUGIN_DESC.exit(stage, ret);
	fake_failed();
	empty_store();
	fake_kfd_forget();
}

/* In a child: a dump or a restore without a word of error; @otherwise says what it means if it is not. */
static void must_work(int (*what)(void), const char *otherwise)
{
	int ret;

	if (run(what, 0, 0, &ret) || ret || log_errors)
		complain("%s (%d)", otherwise, ret);
}

/* One error line, which has @text. */
static void must_fail(int (*what)(void), const char *text, const char *otherwise)
{
	int ret;

	run(what, 0, 0, &ret);
	if (!ret || log_errors != 1 || !strstr(log_text, text))
		complain("%s (%d), want \"%s\"", otherwise, ret, text);
}

TEST(a_process_is_dumped_and_restored)
{
	write_images();
	assert_false(fake_process_is_paused());
	verify_images(0, "none");
	assert_int_equal(log_errors, 0);
	remove_images();
}

/* Which says nothing of the GPUs of the machine. */
static bool lack_memory_in_restore(unsigned int nth)
{
	const char *call;
	int ret;

	call = run(restore, nth, ENOMEM, &ret);
	if (strstr(log_text, "cannot place "))
		complain("call %u, %s: a lack of memory is taken for a lack of GPUs", nth, call);
	return call != NULL;
}

TEST(a_lack_of_memory_is_called_that)
{
	write_images();
	/* Its error line is dropped, and stands for no other. */
	touch("amdgpu-kfd-1.img");
	each_call(lack_memory_in_restore, 200);
	remove_images();
}

DUMP_LOOP(any_failure_of_a_dump_is_reported)
{
	each_call(fail_dump, 200);
}

TEST(any_failure_of_a_dump_that_writes_nothing_is_reported)
{
	each_call(fail_try, 80);
}

TEST(any_failure_of_a_restore_is_reported)
{
	write_images();
	each_call(fail_restore, 200);
	remove_images();
}

/* Open files of BOs, and how many of them a program would inherit. */
static size_t count_bo_files(size_t *ret_inheritable)
{
	size_t nr = 0;

	*ret_inheritable = 0;
	for (int fd = 0; fd < 1024; fd++) {
		char path[64], target[64] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, target, sizeof(target) - 1) < 0 || strncmp(target, "/memfd:bo", 9))
			continue;
		nr++;
		*ret_inheritable += !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	return nr;
}

/* criu starts tar, ip and others after its files were saved. */
TEST(programs_that_criu_starts_inherit_nothing)
{
	size_t inheritable, nr_of_stand_in = count_bo_files(&inheritable);

	new_images();
	begin_stage(CRIU_STAGE_DUMP);
	assert_int_equal(one_dump_file(FAKE_KFD_FD, KFD_ID), 0);
	assert_true(count_bo_files(&inheritable) > nr_of_stand_in);
	assert_int_equal(inheritable, 0);
	end_stage(CRIU_STAGE_DUMP, 0);
	remove_images();
}

/* A criu without an inventory asks for every task that it restores. */
TEST(a_task_without_a_gpu_is_not_touched)
{
	new_images();
	begin_stage(CRIU_STAGE_RESTORE);
	/* As where the driver has no GPU to open; the first call is for the list of tasks. */
	fake_fail(2, EINVAL);
	assert_int_equal(resume_task(getpid()), -ENOTSUP);
	assert_false(fake_seen.was_killed);
	fake_failed();
	assert_int_equal(log_errors, 0);
	CR_PLUGIN_DESC.exit(CRIU_STAGE_RESTORE, 0);
	empty_store();
	remove_images();
}

/* ---- pages that RESUME takes ---- */

#define PAGES 5u

static const char *release; /* of the kernel; NULL: of this one */
static size_t pages_written;

int __real_uname(struct utsname *name);
int __wrap_uname(struct utsname *name)
{
	int ret = __real_uname(name);

	if (release)
		snprintf(name->release, sizeof(name->release), "%s", release);
	return ret;
}

/* test_unshare.c shows that it writes those. */
int __wrap_memory_unshare(pid_t pid, const struct svm_range *ranges, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		pages_written += ranges[i].size / 4096;
	return 0;
}

static const struct {
	const char *release;
	bool xnack;
	unsigned int nr_tasks; /* 0: criu does not tell */
	unsigned int written;
} written_cases[] = {
	{ "7.2.12", false, 2, PAGES },
	{ "6.12.117+deb13-amd64", false, 2, PAGES },
	{ "7.2.12", false, 0, PAGES },
	{ "7.2.12", false, 1, 0 },
	{ "6.12.107+deb13-amd64", false, 2, PAGES },
	{ "7.2.12", true, 2, 0 },
};

/* Of the memory of an SVM range. */
static bool pages_are_written(unsigned int nth)
{
	struct pstree_item child = { NULL }, parent = { &child };
	int ret;

	fake_kfd_set(SETUP(.svm_bytes = PAGES * 4096, .has_xnack = written_cases[nth].xnack));
	release = written_cases[nth].release;
	root_item = written_cases[nth].nr_tasks == 1 ? &child : written_cases[nth].nr_tasks ? &parent : NULL;
	new_images();
	run(dump, 0, 0, &ret);
	if (ret)
		complain("case %u: the dump fails", nth);
	run(restore, 0, 0, &ret);
	if (ret || !is_restored() || pages_written != written_cases[nth].written)
		complain("case %u: %d, %zu pages are written, not %u", nth, ret, pages_written, written_cases[nth].written);
	remove_images();
	return true;
}

TEST(pages_are_written_only_where_resume_needs_it)
{
	assert_rows_in_child(pages_are_written, ARRAY_SIZE(written_cases));
}

/* One that shares the tree with a GPU process neither; kernels crash when it is resumed. */
TEST(only_tasks_with_state_are_resumed)
{
	static const int no_tasks[] = { -1, 0, 1, INT_MIN };

	write_images();
	begin_stage(CRIU_STAGE_RESTORE);
	assert_int_equal(one_restore_file(KFD_ID), 0);
	for (int i = 0; i < FAKE_NR_VMAS; i++)
		assert_int_equal(restore_mapping(&fake_vmas[i]), 0);
	assert_int_equal(resume_task(getppid()), -ENOTSUP);
	assert_false(fake_seen.restored_runs);
	for (size_t i = 0; i < ARRAY_SIZE(no_tasks); i++)
		assert_int_equal(resume_task(no_tasks[i]), -ENOTSUP);
	assert_int_equal(resume_task(getpid()), 0);
	assert_true(fake_seen.restored_runs);
	assert_false(fake_seen.was_killed);
	assert_int_equal(log_errors, 0);
	end_stage(CRIU_STAGE_RESTORE, 0);
	remove_images();
}

/* Another plugin restores it: a task without a GPU may have it, and one with. */
TEST(a_foreign_mapping_is_not_ours)
{
	int (*hook)(const char *, uint64_t, uint64_t, uint64_t *, int *) =
		(int (*)(const char *, uint64_t, uint64_t, uint64_t *, int *))CR_PLUGIN_DESC.hooks[CRIU_HOOK_UPDATE_VMA_MAP];
	uint64_t offset = 1;
	int fd = -1;

	write_images();
	begin_stage(CRIU_STAGE_RESTORE);
	assert_int_equal(hook("/dev/dri/renderD140", 0x40000, 0x1000, &offset, &fd), -ENOTSUP);
	assert_int_equal(one_restore_file(KFD_ID), 0);
	assert_int_equal(hook("/dev/dri/renderD140", 0x40000, 0x1000, &offset, &fd), -ENOTSUP);
	assert_true(offset == 1 && fd == -1 && !log_errors);
	end_stage(CRIU_STAGE_RESTORE, 0);
	remove_images();
}

/* Frees @image. */
static void replace_image(struct gpu_process *image)
{
	assert_int_equal(unlinkat(images_fd, "amdgpu-kfd-7.img", 0), 0);
	assert_int_equal(kfd_image_write(KFD_ID, image), 0);
	gpu_process_free(image);
}

/* Other writers' images have no mappings: they are found by path, and by the GPUs that the image names. */
TEST(mappings_that_an_image_does_not_have_are_restored)
{
	struct gpu_process *image = NULL;

	write_images();
	assert_int_equal(kfd_image_read(KFD_ID, &image), 0);
	assert_int_equal(image->nr_vmas, FAKE_NR_VMAS);
	image->nr_vmas = 0;
	replace_image(image);
	verify_images(0, "none");
	remove_images();
}

TEST(a_task_with_the_socket_of_a_streamer_is_dumped_and_restored)
{
	task_socket = "streamer-capture.sock";
	write_images();
	task_socket = "streamer-serve.sock";
	verify_images(0, "the task's socket");
	task_socket = NULL;
	remove_images();
}

/* As criu has it when it restores with --lazy-pages: a connection in its fd store, before any file of ours. */
static void keep_page_server(int *ret_server)
{
	int fd = connection_to("lazy-pages.socket", ret_server);

	assert_int_equal(fdstore_add(fd), 0);
	close(fd);
}

TEST(memory_that_comes_later_is_refused)
{
	int server;

	write_images();
	keep_page_server(&server);
	begin_stage(CRIU_STAGE_RESTORE);
	assert_int_equal(one_restore_file(KFD_ID), -1);
	assert_int_equal(log_errors, 1);
	assert_non_null(strstr(log_text, "--lazy-pages"));
	assert_int_equal(fake_restored_files(), 0);
	end_stage(CRIU_STAGE_RESTORE, -1);
	close(server);
	remove_images();
}

/* ---- settings ---- */

/* Nobody knows yet whether a process with a GPU is dumped. */
TEST(a_mistake_in_the_settings_waits_for_a_gpu)
{
	int (*hook)(int, int) = (int (*)(int, int))CR_PLUGIN_DESC.hooks[CRIU_HOOK_DUMP_EXT_FILE];
	int foreign = open("/dev/null", O_RDWR | O_CLOEXEC);

	new_images();
	assert_int_equal(setenv("KFD_NUMA_CHECK", "maybe", 1), 0);
	begin_stage(CRIU_STAGE_DUMP);
	assert_int_equal(hook(foreign, 1), -ENOTSUP);
	assert_string_equal(log_text, "");
	assert_int_equal(dump_mapping(FAKE_KFD_FD), -1);
	assert_int_equal(log_errors, 1);
	assert_non_null(strstr(log_text, "option or environment: KFD_NUMA_CHECK: value 'maybe' is not valid"));
	assert_false(fake_process_is_paused());
	end_stage(CRIU_STAGE_DUMP, -1);
	unsetenv("KFD_NUMA_CHECK");
	close(foreign);
	remove_images();
}

/* ---- a directory with images ---- */

TEST(a_dump_replaces_the_images_of_an_earlier_one)
{
	static const char *const stale[] = { "amdgpu-kfd-99.img", "amdgpu-renderD-99.img", "amdgpu-shared-3.img",
					     "amdgpu-dmabuf_3.img",
					     "amdgpu-pages-99-00ab.img", "amdgpu-drm-pages-1-128-0001.img" };
	static const char *const others[] = { "amdgpu-kfd-x.img", "amdgpu-pages-99-00ab.img.bak",
					      "pages-1.img", "amdgpu-kfd-7.img.old" };
	size_t i;
	int ret;

	new_images();
	for (i = 0; i < ARRAY_SIZE(stale); i++)
		touch(stale[i]);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		touch(others[i]);
	/* A link must not lead the writer to a file elsewhere. */
	assert_int_equal(symlinkat("pages-1.img", images_fd, "amdgpu-kfd-7.img"), 0);
	assert_int_equal(mkdirat(images_fd, "amdgpu-kfd-98.img", 0700), 0);
	run(dump, 0, 0, &ret);
	assert_int_equal(ret, 0);
	for (i = 0; i < ARRAY_SIZE(stale); i++)
		assert_false(has_image(stale[i]));
	for (i = 0; i < ARRAY_SIZE(others); i++)
		assert_true(has_image(others[i]));
	assert_true(has_image("amdgpu-kfd-98.img"));
	verify_images(0, "none");
	/* Again, on top of whole images. */
	must_work(dump, "a dump into a used directory fails");
	verify_images(0, "none");
	remove_images();
}

/* criu says how it went; a process without a GPU has no images of ours. */
TEST(a_dump_without_a_gpu_removes_images_when_it_succeeded)
{
	new_images();
	touch("amdgpu-kfd-1.img");
	begin_stage(CRIU_STAGE_DUMP);
	CR_PLUGIN_DESC.exit(CRIU_STAGE_DUMP, -1);
	assert_true(has_image("amdgpu-kfd-1.img"));
	assert_int_equal(CR_PLUGIN_DESC.init(CRIU_STAGE_DUMP), 0);
	CR_PLUGIN_DESC.exit(CRIU_STAGE_DUMP, 0);
	assert_false(has_image("amdgpu-kfd-1.img"));
	assert_int_equal(log_errors, 0);
	fake_failed();
	remove_images();
}

TEST(a_refused_incremental_dump_leaves_no_link)
{
	int ret;

	new_images();
	touch("amdgpu-kfd-1.img");
	assert_int_equal(symlinkat("../earlier", images_fd, "parent"), 0);
	run(dump, 0, 0, &ret);
	assert_int_equal(ret, -1);
	assert_non_null(strstr(log_text, "--prev-images-dir"));
	assert_true(has_image("amdgpu-kfd-1.img"));
	assert_false(has_image("parent"));
	must_work(dump, "a dump into a used directory fails");
	verify_images(0, "none");
	remove_images();
}

/* Another plugin has them, or --external: criu is content, and would end the process. */
static int dump_without_files_until(int (*finish)(int))
{
	int ret = CR_PLUGIN_DESC.init(CRIU_STAGE_DUMP);

	if (!ret)
		ret = dump_task();
	ret = ret == -ENOTSUP ? 0 : ret;
	if (finish && finish(ret) != -ENOTSUP)
		ret = -1;
	CR_PLUGIN_DESC.exit(CRIU_STAGE_DUMP, ret);
	return ret;
}

static int dump_without_files(void)
{
	return dump_without_files_until(NULL);
}

/* As criu 4.3 does, which asks before it ends the tasks. */
static int dump_without_files_asked(void)
{
	return dump_without_files_until((int (*)(int))CR_PLUGIN_DESC.hooks[CRIU_HOOK_DUMP_FINISH]);
}

/* By its files, of which criu would ask after it has written over older images of other tasks. */
static void task_with_files_is_refused(void)
{
	older_images();
	if (symlinkat("../earlier", images_fd, "parent"))
		complain("no link: %s", strerror(errno));
	must_fail(dump_without_files, "--prev-images-dir", "a task with files alone is not looked at before criu writes");
	remove_images();
}

TEST(a_task_with_files_and_without_queues_is_refused_before_criu_writes)
{
	assert_right_in_child(task_with_files_is_refused);
}

/* What a dump of a process that is set so says in its one line. */
static const char *refusal;

static void refuses(void)
{
	int ret;

	older_images();
	run(dump, 0, 0, &ret);
	if (!is_replaced && count_older() != ARRAY_SIZE(older))
		complain("refused, and %zu images of an older dump are left", count_older());
	remove_images();
	if (!ret || log_errors != 1 || !strstr(log_text, refusal) || fake_process_is_paused())
		complain("refused with %d, want \"%s\"", ret, refusal);
}

static void assert_refused(const struct fake_setup *setup, const char *text)
{
	fake_kfd_set(setup);
	refusal = text;
	assert_right_in_child(refuses);
}

/* criu calls for mappings, too; the tree has no other process. */
TEST(a_process_that_keeps_only_mappings_is_refused)
{
	assert_refused(SETUP(.closed = { FAKE_KFD_FD, FAKE_RENDER_FD, FAKE_RENDER_FD + 1 }),
		       "pid 4711: mapping at 0x10000 of /dev/kfd: the process has no /dev/kfd open");
}

TEST(a_second_context_is_refused)
{
	assert_refused(SETUP(.second_kfd = FAKE_SECOND_CONTEXT), "pid 4711: has a second KFD context");
}

/* ---- answers of the kernel that cannot be ---- */

/* The process runs again all the same. */
TEST(impossible_counts_are_refused)
{
	assert_refused(SETUP(.counts = { 0, 1, 4096 }), "impossible counts from the KFD: 0 devices, 1 BOs, 4096 bytes");
	assert_refused(SETUP(.counts = { 1, UINT32_MAX, 4096 }),
		       "impossible counts from the KFD: 1 devices, 4294967295 BOs, 4096 bytes");
	assert_refused(SETUP(.counts = { 1, 1, 0 }), "impossible counts from the KFD: 1 devices, 1 BOs, 0 bytes");
}

TEST(a_state_of_another_process_is_refused)
{
	assert_refused(SETUP(.owner = FAKE_PID + 1),
		       "pid 4711 (4711 in its pid namespace): has inherited its /dev/kfd from pid 4712");
}

/* ---- operations of the KFD, and what a restore finds ---- */

static bool is_repeated(int (*what)(void), const char *name)
{
	const char *call;
	int ret;

	fail_name = name;
	call = run(what, 0, EINTR, &ret);
	fail_name = NULL;
	if (!call || strcmp(call, name) || ret || log_errors)
		complain("%s was interrupted by a signal, and that ended with %d", name, ret);
	return true;
}

TEST(operations_that_a_signal_interrupts_are_repeated)
{
	static const char *const of_dump[] = { "PROCESS_INFO", "CHECKPOINT", "UNPAUSE" };
	static const char *const of_restore[] = { "RESTORE", "RESUME" };

	for (size_t i = 0; i < ARRAY_SIZE(of_dump); i++) {
		new_images();
		is_repeated(dump, of_dump[i]);
		verify_images(0, "none");
	}
	for (size_t i = 0; i < ARRAY_SIZE(of_restore); i++) {
		is_repeated(restore, of_restore[i]);
		assert_true(is_restored());
		fake_kfd_forget();
	}
	remove_images();
}

/* Contents, queues and doorbells follow, and to the process the GPU has the id of before. */
TEST(a_gpu_may_have_another_id)
{
	write_images();
	fake_kfd_set(SETUP(.gpu_id = 0x3333));
	verify_images(0, "none");
	assert_non_null(strstr(log_text, "gpu 0x1111 (renderD128 at dump) becomes gpu 0x3333 (renderD128)"));
	remove_images();
}

static void assert_restore_fails(const char *text)
{
	must_fail(restore, text, "restored");
	fake_kfd_forget();
}

static void fail_state(void)
{
	int ret;

	run(restore, 0, ENOENT, &ret);
	if (!ret || ret == -ENOTSUP || !strstr(log_text, "No such file or directory"))
		complain("criu is told %d of a state that the kernel does not restore: %s", ret, log_text);
}

static void fail_resume(void)
{
	int ret;

	run(restore, 0, ESRCH, &ret);
	if (!ret || !fake_seen.was_killed || !strstr(log_text, "cannot resume its GPU queues: No such process"))
		complain("a process whose queues do not run is restored (%d)", ret);
}

TEST(the_image_of_another_process_is_refused)
{
	struct gpu_process *image = NULL;

	write_images();
	assert_int_equal(kfd_image_read(KFD_ID, &image), 0);
	image->state.pid++;
	replace_image(image);
	assert_restore_fails("the GPU state belongs to pid 4712, and criu restores it in pid 4711");
	remove_images();
}

/* In a child: what kills the tasks ends criu as well. */
static void are_refused(void)
{
	static const char name[] = "amdgpu-pages-7-1111.img";
	uint8_t byte = 0;
	int fd;

	write_images();
	fd = openat(images_fd, name, O_RDWR | O_CLOEXEC);
	if (pread(fd, &byte, 1, 8 + 8192) != 1) /* the first one of the second buffer with contents */
		complain("%s is too short", name);
	byte ^= 1;
	if (pwrite(fd, &byte, 1, 8 + 8192) != 1)
		complain("%s is not damaged", name);
	close(fd);
	assert_restore_fails("BO 2: is damaged");
	if (unlinkat(images_fd, name, 0))
		complain("%s is not there", name);
	assert_restore_fails("image amdgpu-pages-7-1111.img is missing: it holds 2 buffers of gpu 0x1111");
	remove_images();
}

TEST(damaged_and_missing_contents_are_refused)
{
	assert_right_in_child(are_refused);
}

static const struct {
	bool connected, truncated, unfinished;
	const char *text;
	bool early; /* with any criu; else only a thread finds it before tasks are resumed */
} damages[] = {
	{ false, false, false, "is damaged", false },
	{ true, false, false, "is damaged", false },
	{ false, true, false, "is truncated: 8200 bytes, and needs 12296", true },
	{ false, false, true, "announces 0 bytes, the buffers have 12288", true },
};

/* Where that costs nothing, criu has restored all else when it shows; in any case no task is left. */
static bool damage_is_found(unsigned int nth)
{
	static const uint8_t wrong = 0xff, no_length[LENGTH_PREFIX_BYTES];
	bool late = !damages[nth].early && !(damages[nth].connected && HOOKS > CRIU_HOOK_POST_FORKING);
	int ret, fd;

	write_images();
	fd = openat(images_fd, "amdgpu-pages-7-1111.img", O_RDWR | O_CLOEXEC);
	if (fd < 0 || pwrite(fd, &wrong, 1, 8 + 8192) != 1 || (damages[nth].truncated && ftruncate(fd, 8 + 8192)))
		complain("case %u: the image is not damaged", nth);
	if (damages[nth].unfinished && pwrite(fd, no_length, sizeof(no_length), 0) != sizeof(no_length))
		complain("case %u: the image keeps its length", nth);
	close(fd);
	if (damages[nth].connected)
		close(openat(images_fd, "tcp-stream-1f.img", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	run(restore, 0, 0, &ret);
	if (!ret || log_errors != 1 || !strstr(log_text, damages[nth].text))
		complain("case %u: restored with %d", nth, ret);
	if (is_mapped != late || fake_seen.was_killed != late)
		complain("case %u: found %s", nth, is_mapped ? "late" : "early");
	remove_images();
	return true;
}

TEST(damage_is_found_late_where_that_costs_nothing)
{
	assert_rows_in_child(damage_is_found, ARRAY_SIZE(damages));
}

static void fail_library(void)
{
	library_error = -ENOENT;
	assert_restore_fails("No such file or directory");
}

/* Errors by which the plugin tells criu, with others, that something is none of its business. */
TEST(an_error_of_the_kernel_is_no_word_about_whose_it_is)
{
	write_images();
	assert_right_in_child(fail_library);
	fail_name = "RESTORE";
	assert_right_in_child(fail_state);
	fail_name = "RESUME";
	assert_right_in_child(fail_resume);
	fail_name = NULL;
	remove_images();
}

/* Its GPUs are chosen with its first file. */
static int restore_render_node_first(void)
{
	int ret = CR_PLUGIN_DESC.init(CRIU_STAGE_RESTORE);

	if (!ret)
		ret = one_restore_file(RENDER_ID);
	if (!ret)
		ret = one_restore_file(KFD_ID);
	CR_PLUGIN_DESC.exit(CRIU_STAGE_RESTORE, ret);
	return ret;
}

/* What the process needs is known before its state is read. */
TEST(a_gpu_that_is_full_is_refused)
{
	int ret;

	write_images();
	fake_kfd_set(SETUP(.vram_free = 8191));
	run(restore_render_node_first, 0, 0, &ret);
	if (!ret || !strstr(log_text, "free VRAM, wanted at least 1 MiB"))
		complain("restored with %d on a full GPU", ret);
	fake_kfd_forget();
	remove_images();
}

/* ---- control stacks that the kernel left out ---- */

static void empty_stack_comes_back(void)
{
	fake_kfd_set(SETUP(.stack = FAKE_NO_STACK_IDLE));
	new_images();
	must_work(dump, "an idle queue is refused");
	verify_images(0, "none");
}

/* The dump was told to go on without the kernel; so has the restore to be. */
static void lost_stack_is_refused(void)
{
	fake_kfd_set(SETUP(.stack = FAKE_NO_STACK_BUSY));
	setenv("KFD_IDLE_WAIT", "0", 1);
	new_images();
	must_fail(dump, "stopped in a kernel", "a kernel that would be lost is dumped");
	setenv("KFD_RESTORABLE_CHECK", "0", 1);
	must_work(dump, "refused although told otherwise");
	unsetenv("KFD_RESTORABLE_CHECK");
	assert_restore_fails("1 queues were stopped in kernels whose control stacks are not");
	setenv("KFD_RESTORABLE_CHECK", "0", 1);
	verify_images(0, "none");
}

static void kernel_that_ends_is_waited_for(void)
{
	fake_kfd_set(SETUP(.stack = FAKE_NO_STACK_BUSY, .ends_after = 4));
	new_images();
	setenv("KFD_IDLE_WAIT", "60", 1);
	must_work(dump, "a kernel that ends is not waited for");
	if (!strstr(log_text, "s for kernels to end\n") || strstr(log_text, "some still run"))
		complain("nothing is said of the wait");
	verify_images(0, "none");
}

static void kernel_that_runs_on_is_refused(void)
{
	double began = monotonic_seconds();

	fake_kfd_set(SETUP(.stack = FAKE_NO_STACK_BUSY));
	new_images();
	setenv("KFD_IDLE_WAIT", "1", 1);
	must_fail(dump, "(KFD_IDLE_WAIT=SECONDS waits longer)", "a kernel that would be lost is dumped");
	if (monotonic_seconds() - began < 1)
		complain("it was not waited for");
	if (!strstr(log_text, "for kernels to end: some still run"))
		complain("nothing is said of the wait");
	if (fake_process_is_paused())
		complain("the queues stand");
	remove_images();
}

TEST(kernels_that_run_are_waited_for)
{
	assert_right_in_child(kernel_that_ends_is_waited_for);
	assert_right_in_child(kernel_that_runs_on_is_refused);
}

static void event_page_is_refused(void)
{
	fake_kfd_set(SETUP(.has_kfd_event_page = true));
	new_images();
	must_work(dump, "a dump with an event in the page of the KFD");
	release = "7.3.4+deb13-amd64";
	assert_restore_fails("1 signal events in a page that the kernel had made by itself");
	release = "6.12.107+deb13-amd64";
	verify_images(0, "none");
	release = NULL;
	remove_images();
}

TEST(events_without_a_page_are_not_restored_where_none_is_made)
{
	assert_right_in_child(event_page_is_refused);
}

TEST(stacks_that_are_not_saved_come_back_empty_or_are_missed)
{
	assert_right_in_child(empty_stack_comes_back);
	assert_right_in_child(lost_stack_is_refused);
}

static void lose_vram(void)
{
	fake_kfd_set(SETUP(.loses_vram = true));
	new_images();
	must_fail(dump, "has reset the GPU of renderD129", "lost VRAM is saved");
	if (has_image("amdgpu-pages-7-1111.img"))
		complain("a file that looks whole is left");
	remove_images();
}

static void lose_files(void)
{
	fake_kfd_set(SETUP(.nr_queues = 2, .vram_bytes = 8192));
	older_images();
	must_fail(dump_without_files, "has not asked for the device files of 1 of 1 processes", "a process without its files is lost");
	must_fail(dump_without_files_asked, "has not asked for the device files of 1 of 1 processes",
		  "a process without its files is lost by a criu that asks");
	if (fake_process_is_paused() || count_older() != ARRAY_SIZE(older))
		complain("stopped, or an older dump is gone");
	remove_images();
}

/* As criu before 4.0 does with tasks that have no AMD files and mappings. */
static int dump_without_a_question(void)
{
	int ret = CR_PLUGIN_DESC.init(CRIU_STAGE_DUMP);

	CR_PLUGIN_DESC.exit(CRIU_STAGE_DUMP, ret);
	return ret;
}

/* Newer ones ask about each task, before they write anything. */
static int dump_with_a_question(void)
{
	int ret = CR_PLUGIN_DESC.init(CRIU_STAGE_DUMP), asked = ret ? ret : dump_task();

	CR_PLUGIN_DESC.exit(CRIU_STAGE_DUMP, asked == -ENOTSUP ? -1 : asked);
	return asked == -ENOTSUP ? 0 : asked;
}

static void keep_suspended(void)
{
	static const char text[] = "pid 4711: is suspended, and its GPU memory is freed";

	fake_kfd_set(SETUP(.is_suspended = true, .is_no_process = true, .maps = FAKE_MAPS_NOTHING,
			   .closed = { FAKE_KFD_FD, FAKE_RENDER_FD, FAKE_RENDER_FD + 1 }));
	older_images();
	must_fail(dump_with_a_question, text, "a suspended process without a GPU is dumped");
	must_fail(dump_without_a_question, text, "a suspended process is dumped by a criu that does not ask");
	if (count_older() != ARRAY_SIZE(older))
		complain("an older dump is gone");
	remove_images();
}

TEST(a_suspended_process_without_a_gpu_is_not_dumped)
{
	assert_right_in_child(keep_suspended);
}

/* Its kernel ends after a resume only: it is not told to wait. */
static void refuses_a_kernel_of_a_suspended_one(void)
{
	static struct bo buffer = { .addr = 0x7f0000400000, .size = 1 << 20 };
	static struct kfd_criu_device_bucket device = { .user_gpu_id = 0x1234, .actual_gpu_id = 0x9e41 };
	struct driver_release driver = { .text = "Linux 7.2.12", .major = 7, .minor = 2, .patch = 12 };
	struct queue_record record = { .type = QUEUE_TYPE_COMPUTE, .gpu_id = 0x1234, .mqd_size = COMPUTE_MQD_SIZE,
				       .cwsr_address = 0x7f0000400000, .mqd_stack_size = 0x3000, .mqd_wave_offset = 0x3000,
				       .mqd_stack_offset = 0x1000 };
	struct topology *machine = machine_of(0x9e41, "1 gfx_target_version=90008 num_xcc=1");
	struct fixture_records f;
	struct kfd_state state;

	log_text[0] = '\0';
	log_errors = 0;
	for (int is_idle = 0; is_idle < 2; is_idle++) {
		fixture_begin(&f, 1, 1);
		fixture_queue(&f, &record);
		state = fixture_state(&f);
		state.devices = &device;
		state.bos = &buffer;
		for (int is_forced = 0; is_forced < 2; is_forced++) {
			int err = refuse_suspended_queues(FAKE_PID, &state, machine, &driver, is_forced);

			if (!err != (is_idle || is_forced))
				complain("idle: %d, forced: %d: %d", is_idle, is_forced, err);
		}
		record.mqd_stack_offset = record.mqd_stack_size;
	}
	fail_log();
	if (log_errors != 1 || !strstr(log_text, "pid 4711: was suspended in the middle of a kernel") ||
	    !strstr(log_text, "resume it first (\"amdgpu-checkpoint resume 4711\")"))
		complain("no word of a resume");
	topology_free(machine);
}

TEST(a_kernel_of_a_suspended_process_is_refused_with_the_resume_that_it_needs)
{
	assert_right_in_child(refuses_a_kernel_of_a_suspended_one);
}

TEST(a_dump_that_is_not_asked_for_the_files_ends_criu)
{
	assert_right_in_child(lose_files);
}

TEST(a_gpu_that_is_reset_in_a_dump_is_refused)
{
	assert_right_in_child(lose_vram);
}

static void lose_restored_vram(void)
{
	write_images();
	fake_kfd_set(SETUP(.loses_vram = true));
	assert_restore_fails("has reset the GPU of renderD129 during the restore");
	if (!fake_seen.was_killed)
		complain("a job without its contents is left");
	remove_images();
}

TEST(a_gpu_that_is_reset_in_a_restore_is_refused)
{
	assert_right_in_child(lose_restored_vram);
}

static void several_xccs_come_back(void)
{
	fake_kfd_set(SETUP(.nr_xcc = 4));
	new_images();
	must_work(dump, "a queue of four XCCs is refused");
	verify_images(0, "none");
}

TEST(states_of_several_xccs_are_restored_as_one)
{
	assert_right_in_child(several_xccs_come_back);
}

/* ---- a task with a render node and without /dev/kfd ---- */

#define RENDER_NODE .closed = { FAKE_KFD_FD, FAKE_RENDER_FD + 1 }, .maps = FAKE_MAPS_NOTHING

static int dump_render_node(void)
{
	int ret = CR_PLUGIN_DESC.init(CRIU_STAGE_DUMP);

	if (!ret)
		ret = one_dump_file(FAKE_RENDER_FD, RENDER_ID);
	CR_PLUGIN_DESC.exit(CRIU_STAGE_DUMP, ret);
	return ret;
}

static int restore_render_node(void)
{
	int fd, ret = CR_PLUGIN_DESC.init(CRIU_STAGE_RESTORE);

	if (ret)
		return ret;
	fd = call_restore_file(RENDER_ID);
	if (fd < 0 || !fake_is_render_node(fd, 0) || resume_task(getpid()) != -ENOTSUP)
		ret = -1;
	if (fd >= 0)
		close(fd);
	CR_PLUGIN_DESC.exit(CRIU_STAGE_RESTORE, ret);
	return ret;
}

static void unused_node_comes_back(void)
{
	fake_kfd_set(SETUP(RENDER_NODE));
	new_images();
	must_work(dump_render_node, "a render node that is not used cannot be dumped");
	must_work(restore_render_node, "a render node that is not used cannot be restored");
	remove_images();
}

TEST(a_render_node_that_is_not_used_is_opened_again)
{
	assert_right_in_child(unused_node_comes_back);
}

/* ---- a process with a file that the KFD does not know ---- */

static void unused_files_are_no_address_spaces(void)
{
	new_images();
	fake_kfd_set(SETUP(.nr_queues = 2, .vram_bytes = 8192, .pasids = { 32768, 32768 }));
	must_work(dump, "a process with two address spaces is not dumped");
	fake_kfd_set(SETUP(.nr_queues = 2, .vram_bytes = 8192, .pasids = { 32768, 32771 }));
	must_fail(dump, "sees 2 GPUs and has an address space on 1", "a GPU without an address space is not noticed");
	/* Where no file has it, it says nothing. */
	fake_kfd_set(SETUP(.nr_queues = 2, .vram_bytes = 8192, .pasids = { 32770, 32771 }));
	must_work(dump, "address spaces with pasids of their own are not dumped");
	remove_images();
}

TEST(a_file_that_the_kfd_does_not_know_is_no_address_space)
{
	assert_right_in_child(unused_files_are_no_address_spaces);
}

/* ---- a task without any file or mapping ---- */

#define BARE_TASK .closed = { FAKE_KFD_FD, FAKE_RENDER_FD, FAKE_RENDER_FD + 1 }, .maps = FAKE_MAPS_NOTHING

/* criu asks for no mapping that it does not have, and does not call CHECKPOINT_DEVICES. */
static int pre_dump_bare_task(void)
{
	int (*pause)(int) = (int (*)(int))CR_PLUGIN_DESC.hooks[CRIU_HOOK_PAUSE_DEVICES];
	int ret = CR_PLUGIN_DESC.init(CRIU_STAGE_PRE_DUMP);

	if (!ret)
		ret = pause(FAKE_PID);
	CR_PLUGIN_DESC.exit(CRIU_STAGE_PRE_DUMP, ret);
	return ret == -ENOTSUP ? 0 : ret;
}

/* Nothing at all is said. */
static void must_be_left_alone(int (*what)(void), const char *otherwise)
{
	must_work(what, otherwise);
	if (log_text[0])
		complain("%s", otherwise);
}

static void bare_tasks_are_refused(void)
{
	new_images();
	fake_kfd_set(SETUP(BARE_TASK, .is_no_process = true));
	must_be_left_alone(dump_without_files, "a task that is no process of the KFD is not left alone");
	fake_kfd_set(SETUP(BARE_TASK));
	must_be_left_alone(pre_dump_bare_task, "a task that has only looked at its GPUs is not pre-dumped");
	must_be_left_alone(dump_without_files, "a task that has only looked at its GPUs is not left alone");
	fake_kfd_set(SETUP(BARE_TASK, .vram_bytes = 8192));
	must_fail(dump_without_files, "has closed /dev/kfd, but still has 0 queues and 8 KiB of VRAM",
		  "a task with VRAM and without files is dumped");
	fake_kfd_set(SETUP(BARE_TASK, .nr_queues = 2));
	must_fail(dump_without_files, "has closed /dev/kfd, but still has 2 queues and 0 KiB of VRAM",
		  "a task with queues and without files is dumped");
	must_fail(pre_dump_bare_task, "cannot be pre-dumped", "a task with queues and without files is pre-dumped");
	remove_images();
}

TEST(a_task_with_state_and_without_files_is_refused)
{
	assert_right_in_child(bare_tasks_are_refused);
}

static void used_nodes_are_refused(void)
{
	new_images();
	fake_kfd_set(SETUP(RENDER_NODE, .nr_contexts = 2));
	must_fail(dump_render_node, "the file is in use: 2 contexts, 0 syncobjs, 0 KiB",
		  "a render node with contexts is dumped");
	fake_kfd_set(SETUP(RENDER_NODE, .nr_syncobjs = 1, .lists_nothing = true));
	must_fail(dump_render_node, "the file is in use: 0 contexts, 1 syncobjs, 0 KiB",
		  "a render node with a syncobj is dumped");
	remove_images();
}

TEST(a_render_node_in_use_is_refused_without_the_kfd)
{
	assert_right_in_child(used_nodes_are_refused);
}

/* ---- several tasks ---- */

/* One with state, found by that and with two files of /dev/kfd, and its children. */
#define TREE .has_tree = true, .second_kfd = FAKE_SECOND_FILE, .nr_queues = 2, .vram_bytes = 8192

static void tree_is_dumped(void)
{
	fake_kfd_set(SETUP(TREE));
	older_images();
	must_work(dump, "a tree of processes cannot be dumped");
	if (!has_image("amdgpu-renderD-11.img") || count_older())
		complain("images of children are missing, or %zu older ones are left", count_older());
	verify_images(0, "none");
	remove_images();
}

TEST(tasks_of_several_kinds_are_dumped)
{
	assert_right_in_child(tree_is_dumped);
	assert_refused(SETUP(TREE, .lost_vma = &fake_vmas[0]),
		       "pid 4715: mapping at 0x10000 of /dev/kfd: the process has no /dev/kfd open");
	assert_refused(SETUP(TREE, .lost_vma = &fake_vmas[1]),
		       "pid 4715: mapping at 0x20000 of renderD128: the process has no /dev/kfd open");
}

DUMP_LOOP(any_failure_of_a_dump_of_several_tasks_is_reported)
{
	fake_kfd_set(SETUP(TREE));
	each_call(fail_dump, 400);
}

/* ---- shared buffers ---- */

static void share_comes_back(void)
{
	fake_kfd_set(SETUP(.shares = true));
	new_images();
	must_work(dump, "a process that shares cannot be dumped");
	verify_images(0, "none");
	remove_images();
}

TEST(a_process_that_shares_comes_back)
{
	assert_right_in_child(share_comes_back);
}

/* What happens to a process that shares, and with which line it is refused; NULL: it is not. */
static const struct {
	struct fake_setup setup;
	const char *line;
} harms[] = {
	{ { .shares = true, .has_stranger = true }, "shares a buffer of renderD128 with pid 4712, which is not dumped" },
	{ { .shares = true, .confused = 2, .with = 0 }, "returned the wrong dma-buf for buffer 2" },
	/* Imports of another GPU's memory look so, but it was allocated here. */
	{ { .shares = true, .confused = 0, .with = 3 }, "returned the wrong dma-buf for buffer 0" },
	{ { .shares = true, .has_second_dmabuf = true }, "by legacy IPC of amdgpu-dkms" },
	{ { .shares = true, .has_foreign_dmabuf = true }, NULL },
};

static bool is_judged(unsigned int nth)
{
	int ret;

	fake_kfd_set(&harms[nth].setup);
	new_images();
	run(dump, 0, 0, &ret);
	if (!ret != !harms[nth].line || (ret && (log_errors != 1 || !strstr(log_text, harms[nth].line))))
		complain("case %u of a process that shares: %d, %s", nth, ret, log_text);
	remove_images();
	return true;
}

TEST(what_is_wrong_with_a_shared_buffer_is_found)
{
	assert_rows_in_child(is_judged, ARRAY_SIZE(harms));
}

static void is_dumped(void)
{
	must_work(dump, "the process cannot be dumped");
}

static void assert_dump_reports(const struct fake_setup *setup)
{
	fake_kfd_set(setup);
	each_call(fail_dump, 300);
}

/* Each call of a restore; @fails is fail_restore() or like it. */
static void assert_restore_reports(const struct fake_setup *setup, bool (*fails)(unsigned int))
{
	fake_kfd_set(setup);
	new_images();
	assert_right_in_child(is_dumped);
	each_call(fails, 300);
	remove_images();
}

DUMP_LOOP(any_failure_of_a_dump_with_shares_is_reported)
{
	assert_dump_reports(SETUP(.shares = true));
}

TEST(any_failure_of_a_restore_with_shares_is_reported)
{
	assert_restore_reports(SETUP(.shares = true), fail_restore);
}

/* The guard was killed as well. */
static bool die_in_dump(unsigned int nth)
{
	const char *call;
	int ret;

	new_images();
	begin(0, 0);
	fake_die_at(nth);
	if (!setjmp(fake_exit))
		dump();
	call = fake_failed();
	empty_store();
	new_images();
	if (run(dump, 0, 0, &ret) || ret)
		complain("criu dies before call %u, %s: the next dump fails", nth, call);
	remove_images();
	return call != NULL;
}

DUMP_LOOP(whenever_a_dump_is_killed_the_next_one_heals)
{
	fake_kfd_set(NULL);
	each_call(die_in_dump, 300);
}

/* ---- exceptions ---- */

/* Is told of them only when it was before. */
static void exceptions_are_told(void)
{
	for (unsigned int told = 0; told < 2; told++) {
		fake_kfd_set(SETUP(.is_told = told));
		new_images();
		must_work(dump, "the process cannot be dumped");
		if (!strstr(log_text, "a trap handler that ROCm has set is not saved"))
			complain("the dump does not say that the trap handler is lost");
		must_work(restore, "the process cannot be restored");
		if (fake_seen.tells_exceptions != told)
			complain("told of exceptions: %u, want %u", fake_seen.tells_exceptions, told);
		remove_images();
	}
}

TEST(a_process_is_told_of_exceptions_as_before)
{
	assert_right_in_child(exceptions_are_told);
}

/* ---- a process with objects in files of render nodes, without /dev/kfd ---- */

static void objects_come_back(void)
{
	int ret;

	fake_kfd_set(SETUP(.render_only = true));
	new_images();
	must_work(dump, "a process without /dev/kfd cannot be dumped");
	if (has_image("amdgpu-kfd-7.img") || !has_image("amdgpu-kfd-8.img") || !has_image("amdgpu-renderD-8.img") ||
	    has_image("amdgpu-kfd-9.img"))
		complain("the state is not with the first file");
	verify_images(0, "none");
	last_comes_first = true;
	verify_images(0, "none");
	unlinkat(images_fd, "amdgpu-renderD-8.img", 0);
	if (run(restore, 0, 0, &ret) || !ret || !strstr(log_text, "amdgpu-renderD-8.img is missing"))
		complain("a missing image is not noticed (%d)", ret);
	remove_images();
}

TEST(a_process_without_kfd_comes_back)
{
	assert_right_in_child(objects_come_back);
}

DUMP_LOOP(any_failure_of_a_dump_without_kfd_is_reported)
{
	assert_dump_reports(SETUP(.render_only = true));
}

TEST(any_failure_of_a_restore_without_kfd_is_reported)
{
	assert_restore_reports(SETUP(.render_only = true), fail_restore);
}

TEST(what_does_not_come_back_is_refused_without_kfd)
{
	assert_refused(SETUP(.render_only = true, .nr_contexts = 1),
		       "has renderD128 open and not /dev/kfd, and the file is in use: 1 contexts");
	assert_refused(SETUP(.render_only = true, .lists_nothing = true),
		       "holds 2 buffers of the render node itself (graphics, video, dma-buf imports), which "
		       "cannot be saved: the kernel does not list them before Linux 6.18");
	assert_refused(SETUP(.render_only = true, .maps = FAKE_MAPS_ALL),
		       "pid 4711: mapping at 0x10000 of /dev/kfd: the process has no /dev/kfd open");
	assert_refused(SETUP(.render_only = true, .hides_gpu = true),
		       "pid 4711: renderD128 is not of a GPU that /dev/kfd shows");
}

static int begin_tests(void **state)
{
	fake_kfd_begin();
	CR_PLUGIN_DESC.max_hooks = HOOKS;
	return 0;
}

static int end_tests(void **state)
{
	if (images_fd >= 0)
		remove_images();
	fake_kfd_end();
	return 0;
}

UNIT_MAIN(begin_tests, end_tests)
