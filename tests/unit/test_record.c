// SPDX-License-Identifier: GPL-2.0-only
/* Records of suspended processes and directories of their data: whose they are, and what removes them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <utime.h>

#include "unit.h"
#include "content/content.h"
#include "log_stub.h"
#define RECORD_DIR "/tmp/record.XXXXXX"
#include "record_dir.h"
#include "remove_all.h"
#include "suspend/internal.h"

#define PID  4711
#define ID   0x5eedull
#define BOOT "0123456789abcdef"

static uint64_t start; /* of the process; 0: it is gone */
static bool is_initial_ns, is_marked;

/* ---- the machine ---- */

STUB(int, drm_open_minor, (uint32_t minor), -ENODEV)
STUB(int, drm_count_losses, (int fd, uint32_t *ret), -ENODEV)
STUB(uint64_t, process_start, (pid_t pid), pid == PID ? start : 0)
static char its_state = 'S';
static uint64_t nr_threads = 1;
STUB(char, task_state, (pid_t pid), its_state)
STUB(uint64_t, __wrap_proc_status, (pid_t pid, const char *name, int base), nr_threads)
STUB(pid_t, task_own_pid, (pid_t pid), pid)
STUB(int, task_in_initial_pid_ns, (void), is_initial_ns)
STUB(int, task_find_mark, (pid_t pid, int after), is_marked ? 9 : -1)
STUB(bool, cgroup_of, (pid_t pid, char path[PATH_MAX]), false)
STUB(bool, cgroup_above, (char *path), false)
STUB(bool, cgroup_is_frozen, (const char *path), false)
STUB(int, cgroup_freeze, (const char *path, bool freeze), 0)

void hold_end(struct hold *hold)
{
}

void gpu_process_done(struct gpu_process *process)
{
}

bool image_name_parse(const char *name, struct image_name *ret)
{
	*ret = (struct image_name){ .kind = IMAGE_PAGES };
	return sscanf(name, "amdgpu-pages-%u-", &ret->id) == 1;
}

static uint64_t available;
STUB(void, memory_ask_room, (struct memory_room *ret),
     (void)(*ret = (struct memory_room){ .bytes = available, .by = "the machine" }))

static long file_system; /* type */
static uint64_t nr_free; /* blocks of 4096 bytes */

int __wrap_fstatfs(int fd, struct statfs *ret)
{
	*ret = (struct statfs){ .f_type = file_system };
	return 0;
}

int __wrap_fstatvfs(int fd, struct statvfs *ret)
{
	*ret = (struct statvfs){ .f_blocks = 1000, .f_bfree = nr_free, .f_frsize = 4096 };
	return 0;
}

/* As a mount: a directory of another device would be needed. */
static unsigned int nr_mounts;
STUB(int, mount_memory, (const char *path), (nr_mounts++, 0))

REDIRECT(int, rmdir, (const char *path), (redirect(path, to)))

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
	char a[PATH_MAX], b[PATH_MAX];

	return __real_rename(redirect(from, a), redirect(to, b));
}

static bool is_there(const char *path)
{
	char to[PATH_MAX];

	return !__real_access(redirect(path, to), F_OK);
}

/* ---- a suspended process ---- */

static struct process process;
static struct datadir place;
static char base[64], record[PATH_MAX], data[PATH_MAX + 64];

/* What the record says is as it is here, but for what the caller changes; record_write() makes it good. */
static void suspend(uint64_t id)
{
	int fd = -1;

	process = (struct process){ .head.pid = PID, .gpu.file.fd = -1 };
	start = 77;
	assert_int_equal(datadir_choose(base, id, &place), 0);
	assert_int_equal(datadir_make_run(), 0);
	assert_int_equal(record_begin(&process.head, id), 0);
	process.head.phase = PHASE_SUSPENDED;
	strcpy(process.head.dir, place.dir);
	assert_int_equal(record_write(&process), 0);
	assert_int_equal(datadir_make(&place, &fd), 0);
	close(openat(fd, "amdgpu-pages-4711-1234.img", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	close(fd);
	snprintf(record, sizeof(record), RUN_ROOT SUSPEND_RUN "/%d.%016" PRIx64, PID, id);
	snprintf(data, sizeof(data), "%s/amdgpu-pages-4711-1234.img", place.dir);
	assert_true(is_there(record) && is_there(data));
}

static int begin(void **state)
{
	return !mkdtemp(directory);
}

static int end(void **state)
{
	remove_all(directory);
	return 0;
}

/* Each test begins with it. */
static void boot(void)
{
	remove_all(directory);
	assert_int_equal(mkdir(directory, 0700), 0);
	put("machine-id", "aaaabbbbccccdddd0000111122223333\n");
	put("boot_id", "01234567-89ab-cdef-0000-000000000000\n");
	snprintf(base, sizeof(base), "%s/run", directory);
	assert_int_equal(mkdir(base, 0755), 0);
	snprintf(base, sizeof(base), "%s/disk", directory);
	assert_int_equal(mkdir(base, 0755), 0);
	is_initial_ns = true;
}

#define expect_text(text)                                              \
	do {                                                           \
		if (!strstr(fail_text(), text))                        \
			fail_msg("\"%s\" is not in: %s", text, fail_text()); \
		fail_clear();                                          \
	} while (0)

static struct suspend_info ask(void)
{
	struct suspend_info info;

	assert_int_equal(suspend_ask(PID, &info), 0);
	return info;
}

TEST(what_a_process_that_is_gone_leaves_is_removed_by_the_next_question)
{
	boot();
	suspend(ID);
	assert_int_equal(ask().state, STATE_SUSPENDED);
	suspend_clean();
	assert_true(is_there(record) && is_there(data));
	start = 78; /* another process of this number */
	assert_int_equal(ask().state, STATE_GONE);
	assert_false(is_there(record) || is_there(place.dir));
	assert_true(is_there(base));
	assert_int_equal(ask().state, STATE_RUNNING);
	suspend(ID);
	start = 0;
	suspend_clean();
	assert_false(is_there(record) || is_there(place.dir));
}

/* From there nobody can tell whether the process lives. */
static void expect_left_alone(int err, const char *text)
{
	struct record_head head;
	struct suspend_info info;

	assert_int_equal(record_write(&process), 0);
	for (start = 0; start < 2; start++) {
		suspend_clean();
		assert_int_equal(record_find(PID, &head), err);
		expect_text(text);
		assert_int_equal(suspend_ask(PID, &info), err);
		expect_text(text);
		assert_true(is_there(record) && is_there(data));
	}
	record_remove(&process.head);
}

/* As while its parent is suspended. The first thread alone may end before the others. */
TEST(a_process_that_nobody_waits_for_is_gone_with_its_last_thread)
{
	boot();
	suspend(ID);
	its_state = 'Z';
	nr_threads = 2;
	assert_int_equal(ask().state, STATE_SUSPENDED);
	nr_threads = 1;
	assert_int_equal(ask().state, STATE_GONE);
	assert_false(is_there(record));
	its_state = 'S';
}

TEST(a_record_of_elsewhere_is_left_alone)
{
	boot();
	suspend(ID);
	process.head.pid_ns++;
	expect_left_alone(-EXDEV, "another pid namespace");
	suspend(ID);
	process.head.time_ns++;
	expect_left_alone(-ESTALE, "another time namespace");
	suspend(ID);
	process.head.boot[0]++;
	expect_left_alone(-ESTALE, "another boot");
}

TEST(a_process_of_the_same_number_elsewhere_has_a_record_of_its_own)
{
	struct record_head head;
	char other[PATH_MAX], others_data[PATH_MAX + 64];

	boot();
	suspend(ID);
	process.head.pid_ns++;
	assert_int_equal(record_write(&process), 0);
	strcpy(other, record);
	strcpy(others_data, data);
	suspend(ID + 1);
	assert_int_equal(record_find(PID, &head), 0);
	assert_int_equal(head.id, ID + 1);
	record_remove(&head);
	assert_false(is_there(record) || is_there(place.dir));
	assert_true(is_there(other) && is_there(others_data));
}

TEST(who_is_suspended_without_a_record_does_not_run)
{
	struct suspend_info info;

	is_marked = true;
	assert_int_equal(suspend_ask(PID + 1, &info), -EXDEV);
	expect_text("is suspended, and nothing here says where its memory is");
	is_marked = false;
}

TEST(a_record_of_another_version_is_named_and_can_be_removed)
{
	struct suspend_info info;
	char to[PATH_MAX];
	int fd;

	boot();
	for (int gone = 0; gone < 2; gone++) {
		suspend(ID);
		strcpy(process.head.writer, "9.1+future");
		process.head.version = 99;
		process.head.crc = crc32c(0, &process.head.pid, RECORD_FIXED - offsetof(struct record_head, pid));
		fd = __real_open(redirect(record, to), O_WRONLY | O_TRUNC, 0);
		assert_int_equal(write_all(fd, &process.head, RECORD_FIXED), 0);
		assert_int_equal(write_all(fd, "something", 9), 0);
		close(fd);
		if (gone) {
			start = 0;
			assert_int_equal(ask().state, STATE_GONE);
			assert_false(is_there(record) || is_there(place.dir));
			continue;
		}
		assert_int_equal(suspend_ask(PID, &info), -EPROTO);
		expect_text("9.1+future");
		assert_true(is_there(record) && is_there(data));
		record_remove(&process.head);
	}
}

static void cut_record(off_t size)
{
	char to[PATH_MAX];

	assert_int_equal(truncate(redirect(record, to), size), 0);
}

TEST(a_damaged_record_hides_no_other_and_is_named)
{
	static const off_t sizes[] = { 0, 100, RECORD_FIXED - 1 };
	struct record_head head;
	int *pids = NULL;
	size_t nr = 0;

	boot();
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		suspend(ID + i);
		cut_record(sizes[i]);
		assert_int_equal(record_find(PID, &head), -EBADMSG);
		expect_text("is damaged");
		suspend_clean();
		assert_true(is_there(record) && is_there(data));
	}
	suspend(ID + 9);
	assert_int_equal(record_find(PID, &head), 0);
	assert_int_equal(head.id, ID + 9);
	assert_int_equal(suspend_list(0, &pids, &nr), 0);
	assert_int_equal(nr, 1);
	free(pids);
}

TEST(a_record_whose_end_is_damaged_still_tells_whose_data_they_are)
{
	struct suspend_info info;

	boot();
	suspend(ID);
	cut_record(RECORD_FIXED + 10);
	assert_int_equal(suspend_ask(PID, &info), -EBADMSG);
	expect_text("is damaged");
	assert_true(is_there(data));
	start = 0;
	suspend_clean();
	assert_false(is_there(record) || is_there(place.dir));
}

TEST(what_was_being_written_when_the_command_died_is_removed)
{
	char fresh[64], stale[64], path[PATH_MAX];

	boot();
	suspend(ID);
	snprintf(fresh, sizeof(fresh), SUSPEND_RUN "/4711.0000000000000001.new");
	snprintf(stale, sizeof(stale), SUSPEND_RUN "/4712.0000000000000002.new");
	put(fresh, "x");
	put(stale, "x");
	snprintf(path, sizeof(path), "%s%s", directory, stale);
	assert_int_equal(utime(path, &(struct utimbuf){ 1, 1 }), 0);
	suspend_clean();
	assert_int_equal(access(path, F_OK), -1);
	snprintf(path, sizeof(path), "%s%s", directory, fresh);
	assert_int_equal(access(path, F_OK), 0);
	assert_true(is_there(record));
}

TEST(each_suspend_has_a_directory_that_it_makes_itself)
{
	struct stat st;
	int fd = -1;

	boot();
	suspend(ID);
	assert_int_equal(stat(place.dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	/* Somebody has made it before. */
	assert_int_equal(datadir_make(&place, &fd), -EEXIST);
	expect_text("cannot be made");
	/* What is not of this process stays, and the directory with it. */
	close(open(strcat(strcpy(data, place.dir), "/amdgpu-pages-4712-1234.img"), O_WRONLY | O_CREAT, 0600));
	record_remove(&process.head);
	assert_true(is_there(data));
	assert_false(is_there(record));
}

TEST(a_directory_that_was_made_for_data_goes_with_the_last)
{
	boot();
	assert_int_equal(rmdir(base), 0);
	suspend(ID);
	assert_true(place.is_new_base);
	process.head.made_base = true;
	record_remove(&process.head);
	assert_false(is_there(base));
}

/* left NAME: whether a directory of that name, with data in it, is there after a suspend into the same directory */
static bool left(const char *name)
{
	char dir[256], file[300];
	struct datadir other;
	bool ret;

	snprintf(dir, sizeof(dir), "%s/%s", base, name);
	snprintf(file, sizeof(file), "%s/amdgpu-pages-1-1.img", dir);
	assert_int_equal(mkdir(dir, 0700), 0);
	close(open(file, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(datadir_choose(base, ID, &other), 0);
	ret = is_there(file);
	unlink(file);
	rmdir(dir);
	return ret;
}

TEST(what_an_earlier_boot_of_this_machine_has_left_is_removed_and_nothing_else)
{
	boot();
	assert_false(left("amdgpu-suspend-aaaabbbbccccdddd-1111111111111111-2222222222222222"));
	/* This boot, another machine, another name. */
	assert_true(left("amdgpu-suspend-aaaabbbbccccdddd-" BOOT "-2222222222222222"));
	assert_true(left("amdgpu-suspend-aaaabbbbccccddde-1111111111111111-2222222222222222"));
	assert_true(left("amdgpu-suspend-aaaabbbbccccdddd-1111111111111111-2222222222222222x"));
	assert_true(left("amdgpu-suspend-aaaabbbbccccdddd-1111111111111111-222222222222222"));
	assert_true(left("mine"));
	is_initial_ns = false;
	assert_true(left("amdgpu-suspend-aaaabbbbccccdddd-1111111111111111-2222222222222222"));
	is_initial_ns = true;
	put("machine-id", "");
	assert_true(left("amdgpu-suspend-0000000000000000-1111111111111111-2222222222222222"));
}

TEST(room_for_the_data_is_asked_for_where_they_go)
{
	boot();
	file_system = EXT4_SUPER_MAGIC;
	nr_free = 10;
	available = 0; /* of no account for a disk */
	assert_int_equal(datadir_check_room("/disk", 0, 40960), 0);
	assert_int_equal(datadir_check_room("/disk", 0, 40961), -ENOSPC);
	expect_text("/disk: the buffer data need 40961 bytes, and 40960 are free there");
	file_system = TMPFS_MAGIC;
	available = 8192;
	assert_int_equal(datadir_check_room("/memory", 0, 8192), 0);
	assert_int_equal(datadir_check_room("/memory", 0, 8193), -ENOSPC);
	expect_text("need 8193 bytes of memory, and the machine has 8192 available");
}

TEST(data_in_memory_are_in_a_file_system_that_is_mounted_once)
{
	struct datadir memory;

	boot();
	nr_mounts = 0;
	assert_int_equal(datadir_choose(NULL, ID, &memory), 0);
	assert_int_equal(nr_mounts, 1); /* by the stub: it is no mount, and would be made again */
	assert_memory_equal(memory.dir, SUSPEND_MEMORY "/", strlen(SUSPEND_MEMORY) + 1);
	assert_false(memory.is_new_base);
}

UNIT_MAIN(begin, end)
