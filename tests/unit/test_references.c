// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who holds a buffer: what is told from references and from processes that are not dumped. The kernel is made up of
 * what happens to a buffer, with the references that come and go with it: nothing here knows the plugin's formula.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <libdrm/amdgpu_drm.h>

#include "unit.h"
#include "log_stub.h"
#include "amdgpu_plugin_drm.h"
#include "host/host.h"
#include "share/survey.h"

/* criu's. */
bool criu_is_streaming(void)
{
	return false;
}

#define STRANGER 99
#define DUMPED	 7
#define SCRATCH	 1000 /* a file of the plugin's */
#define OFFSET	 0x100000u
#define BYTES	 8192u
#define OTHER	 10000u /* handles of no buffer of the dump, from this number on */

/* ---- the kernel ---- */

static struct {
	int references, nr_handles;
	bool client_has_handle; /* the KFD's own file */
	int nr_passing, passing_reads; /* references that go when the count was read so often */
	uint64_t domains;
} kernel;

static void add_handle(void)
{
	kernel.references++;
	if (!kernel.nr_handles++)
		kernel.references++;
}

static void drop_handle(void)
{
	kernel.references--;
	if (!--kernel.nr_handles)
		kernel.references--;
}

/* Allocates or imports it on its own GPU, and asks for its dma-buf. */
static void add_bo(void)
{
	kernel.references++;
	if (!kernel.client_has_handle)
		add_handle();
	kernel.client_has_handle = true;
}

static void free_bo(void)
{
	kernel.references--;
	if (kernel.client_has_handle)
		drop_handle();
	kernel.client_has_handle = false;
}

int __wrap_fdinfo_value(int fd, const char *name, char *text, size_t size);
int __wrap_fdinfo_value(int fd, const char *name, char *text, size_t size)
{
	(void)fd;
	assert_string_equal(name, "count");
	if (kernel.passing_reads && !--kernel.passing_reads)
		kernel.nr_passing = 0;
	snprintf(text, size, "%d", kernel.references + kernel.nr_passing);
	return 0;
}

int survey_scratch(struct survey *survey, uint32_t minor)
{
	(void)survey;
	(void)minor;
	return SCRATCH;
}

static unsigned int nr_compared, nr_imported;

bool survey_same_device(const struct survey *survey, uint32_t minor, uint32_t other)
{
	(void)survey;
	nr_compared++;
	return minor == other;
}

/* All dma-bufs are of the dump: no holder is added. */
#define NEVER { fail(); return -ENOSYS; }
int survey_keep_dmabuf(struct survey *survey, int fd) { (void)survey; (void)fd; NEVER }
int survey_home(struct survey *survey, int fd, uint32_t known, uint32_t *ret) { (void)survey; (void)fd; (void)known; (void)ret; NEVER }

size_t survey_process_of(const struct share_request *request, pid_t pid)
{
	return pid == DUMPED ? 0 : request->nr_processes;
}

int gem_import(int fd, int dmabuf_fd, uint32_t *ret)
{
	(void)dmabuf_fd;
	assert_int_equal(fd, SCRATCH);
	add_handle();
	nr_imported++;
	*ret = 1;
	return 0;
}

int gem_close(int fd, uint32_t handle)
{
	(void)handle;
	assert_int_equal(fd, SCRATCH);
	drop_handle();
	return 0;
}

/* ---- a process that is not dumped ---- */

static struct {
	bool exists;
	int open_error;	     /* of its files */
	uint32_t file_minor; /* of its render file; 0: none */
	uint32_t handle;     /* in it */
	uint32_t nr_others;  /* likewise, of the same size */
	uint64_t offset;
	bool lists_handles, has_dmabuf, is_in_kfd;
	const char *spaces; /* what debugfs says; NULL: it is not mounted */
	uint32_t gpu_id;    /* of the GPU that it may use */
} stranger;

static int dmabuf = -1;

int gem_list(int fd, struct gem_entry **ret, size_t *ret_nr)
{
	(void)fd;
	if (!stranger.lists_handles)
		return -EINVAL;
	*ret = calloc(2 + stranger.nr_others, sizeof(**ret));
	**ret = (struct gem_entry){ .handle = stranger.handle };
	*ret_nr = stranger.handle != 0;
	for (uint32_t i = 0; i < stranger.nr_others; i++)
		(*ret)[(*ret_nr)++] = (struct gem_entry){ .handle = OTHER + i };
	return 0;
}

int gem_search(int fd, struct gem_entry **ret, size_t *ret_nr)
{
	(void)fd;
	*ret = calloc(2, sizeof(**ret));
	(*ret)[0] = (struct gem_entry){ .handle = 3000 };
	(*ret)[1] = (struct gem_entry){ .handle = stranger.handle };
	*ret_nr = 2;
	return 0;
}

int gem_ask(int fd, uint32_t handle, struct gem_info *ret)
{
	*ret = (struct gem_info){ .size = BYTES, .domains = kernel.domains };
	return fd == SCRATCH || handle == stranger.handle || handle == 3000 || handle >= OTHER ? 0 : -ENOENT;
}

int survey_look_at(struct survey *survey, uint32_t minor, int dmabuf_fd, struct memory *ret, struct kfd_share *metadata)
{
	uint32_t handle;

	(void)survey;
	(void)minor;
	(void)metadata;
	gem_import(SCRATCH, dmabuf_fd, &handle);
	gem_ask(SCRATCH, handle, &ret->info);
	return gem_close(SCRATCH, handle);
}

int gem_offset(int fd, uint32_t handle, uint64_t *ret)
{
	(void)fd;
	*ret = handle == stranger.handle ? stranger.offset : 0x770000 + handle;
	return 0;
}

int __wrap_list_numbers(int dir_fd, const char *path, int **ret, size_t *ret_nr);
int __wrap_list_numbers(int dir_fd, const char *path, int **ret, size_t *ret_nr)
{
	(void)dir_fd;
	*ret = calloc(4, sizeof(**ret));
	*ret_nr = 0;
	if (!strcmp(path, "/proc/99/fd")) {
		if (stranger.file_minor)
			(*ret)[(*ret_nr)++] = 3;
		if (stranger.has_dmabuf)
			(*ret)[(*ret_nr)++] = 4;
		return 0;
	}
	(*ret)[(*ret_nr)++] = getpid();
	(*ret)[(*ret_nr)++] = DUMPED;
	if (!strcmp(path, "/proc") ? stranger.exists : stranger.is_in_kfd)
		(*ret)[(*ret_nr)++] = STRANGER;
	return 0;
}

int __real_stat(const char *path, struct stat *st);
int __wrap_stat(const char *path, struct stat *st);
int __wrap_stat(const char *path, struct stat *st)
{
	if (strncmp(path, "/proc/99/", 9))
		return __real_stat(path, st);
	if (!strcmp(path, "/proc/99/fd/4"))
		return fstat(dmabuf, st);
	*st = (struct stat){ .st_mode = S_IFCHR, .st_rdev = makedev(226, stranger.file_minor) };
	return 0;
}

int survey_take_file(pid_t pid, int number)
{
	(void)pid;
	(void)number;
	return stranger.open_error ? -stranger.open_error : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
	char its[64], thread[64];

	(void)mode;
	snprintf(its, sizeof(its), "/sys/class/kfd/kfd/proc/99/vram_%u", stranger.gpu_id);
	snprintf(thread, sizeof(thread), "/proc/%d/task/8", DUMPED);
	return !strcmp(path, its) || !strcmp(path, thread) ? 0 : -1;
}

/* One GPU and a link to it. */
static DIR *dri;
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path)
{
	assert_string_equal(path, "/sys/kernel/debug/dri");
	errno = ENOENT;
	dri = stranger.spaces ? __real_opendir("/") : NULL;
	return dri;
}

struct dirent *__real_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir)
{
	static struct dirent entries[] = {
		{ .d_type = DT_DIR, .d_name = "0000:c1:00.0" }, { .d_type = DT_LNK, .d_name = "0" },
	};
	static unsigned int nr;

	if (dir != dri)
		return __real_readdir(dir);
	if (nr < 2)
		return &entries[nr++];
	nr = 0;
	dri = NULL;
	return NULL;
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (!strcmp(path, "/proc/self/status"))
		return __real_fopen(path, mode);
	assert_string_equal(path, "/sys/kernel/debug/dri/0000:c1:00.0/amdgpu_vm_info");
	return fmemopen((void *)(uintptr_t)stranger.spaces, strlen(stranger.spaces), "r");
}

/* ---- the dump ---- */

static struct topology machine;
static struct topology_node nodes[2];
static struct bo bos[2];
static uint32_t nr_mapped;
static bool is_dkms;

int records_bo(const struct kfd_state *state, size_t i, struct bo_record *ret)
{
	(void)state;
	(void)i;
	*ret = (struct bo_record){ .mapped_gpus = { 0x2222 } };
	return 0;
}

uint32_t records_nr_mapped(const struct bo_record *bo)
{
	(void)bo;
	return nr_mapped;
}

void iommu_read_group(int sysfs, const struct topology_node *node, struct iommu_group *ret)
{
	(void)sysfs;
	(void)node;
	*ret = (struct iommu_group){ 0 };
}

/* It translates for each GPU. */
bool iommu_is_common(const struct iommu_group *a, const struct iommu_group *b)
{
	(void)a;
	(void)b;
	return false;
}

static void begin(void)
{
	memset(&kernel, 0, sizeof(kernel));
	memset(&stranger, 0, sizeof(stranger));
	nr_compared = nr_imported = 0;
	stranger.exists = stranger.lists_handles = true;
	stranger.gpu_id = 0x1111;
	nr_mapped = 0;
	is_dkms = false;
	machine = (struct topology){ .nr_nodes = 2, .nodes = { &nodes[0], &nodes[1] } };
	for (uint32_t i = 0; i < 2; i++) {
		memset(&nodes[i], 0, sizeof(nodes[i]));
		topology_node_set(&nodes[i], TOPOLOGY_GPU_ID, i ? 0x2222 : 0x1111);
		topology_node_set(&nodes[i], TOPOLOGY_DRM_RENDER_MINOR, 128 + i);
		topology_node_set(&nodes[i], TOPOLOGY_LOCATION_ID, i << 8);
	}
	log_clear();
	kernel.references = 1; /* the fd of CHECKPOINT */
	if (dmabuf >= 0)
		close(dmabuf);
	dmabuf = memfd_create("dmabuf", MFD_CLOEXEC);
	assert_int_equal(ftruncate(dmabuf, BYTES), 0);
}

/* Of a buffer on the first GPU with these holders: 0, or what the dump fails with. */
static int check(struct holder *holders, size_t nr)
{
	struct kfd_image image = { .state = { .nr_bos = 2, .nr_records = 2, .bos = bos }, .nodes = &machine };
	struct task_file file = { .pid = DUMPED };
	struct share_process process = { &file, &image };
	int pids[] = { DUMPED };
	const struct task_files files = { .pids = pids };
	const struct share_request request = {
		.processes = &process, .nr_processes = 1, .files = &files, .machine = &machine, .is_dkms = is_dkms,
	};
	struct survey survey = { .request = &request, .holders = holders, .nr_holders = nr };
	struct buffer buffer = { .holders = holders, .nr = nr, .dmabuf_fd = dmabuf, .minor = 128 };
	struct stat st;
	int err;

	/* The task's own files are not looked at here. */
	assert_int_equal(fstat(dmabuf, &st), 0);
	for (size_t i = 0; i < nr; i++)
		holders[i].inode = st.st_ino;
	holders[0].dmabuf_fd = dmabuf;
	assert_int_equal(references_read(&survey), 0);
	((struct task_files *)&files)->nr_pids = 1;
	err = references_check(&survey, &buffer);
	references_free(survey.references);
	return err;
}

static int check_bo(void)
{
	struct holder holder = { .minor = 128, .offset = OFFSET };

	return check(&holder, 1);
}

/* The same with a handle of the process. */
static int check_handle(void)
{
	struct holder holders[] = {
		{ .minor = 128, .offset = OFFSET }, { .minor = 128, .offset = OFFSET, .bo = NO_BO, .handle = 1 },
	};

	return check(holders, 2);
}

/* ---- tests ---- */

TEST(what_the_dump_has_alone_is_accepted)
{
	begin();
	add_bo();
	assert_int_equal(check_bo(), 0);
	add_handle();
	assert_int_equal(check_handle(), 0);
	assert_int_equal(log_errors, 0);
}

TEST(an_import_of_a_stranger_is_counted)
{
	begin();
	add_bo();
	add_bo();
	assert_int_equal(check_bo(), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "a process that is not dumped (or a message under way): 5 references"));
	assert_non_null(strstr(log_text, "KFD_SHARING_CHECK=0"));
}

TEST(legacy_ipc_is_named_where_it_may_be)
{
	begin();
	is_dkms = true;
	add_bo();
	kernel.references++;
	assert_int_equal(check_bo(), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "HSA_ENABLE_IPC_MODE_LEGACY=0"));
	assert_null(strstr(log_text, "KFD_SHARING_CHECK"));
}

/* Several have imported it, one of them freed it, and one that is not dumped still has it: the count is as without both. */
static void begin_hidden_import(void)
{
	begin();
	add_bo();
	add_handle();
	add_bo();
	add_bo();
	free_bo();
	stranger.is_in_kfd = true;
}

TEST(a_hidden_import_is_found_by_debugfs)
{
	char spaces[256];
	struct stat st;

	begin_hidden_import();
	fstat(dmabuf, &st);
	snprintf(spaces, sizeof(spaces), "pid:8\tProcess:job ----------\n\t\t0x00000000: 8192 byte VRAM exported as ino:%lu\n"
		 "pid:99\tProcess:other ----------\n\t\t0x00000000: 8192 byte VRAM exported as ino:%lu VRAM_CLEARED\n",
		 (unsigned long)st.st_ino, (unsigned long)st.st_ino);
	stranger.spaces = spaces;
	assert_int_equal(check_handle(), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "shares a buffer of renderD128 with pid 99"));
}

/* Nor is the KFD's own reference taken for one. */
TEST(a_stranger_with_other_buffers_is_none)
{
	char spaces[256];
	struct stat st;

	begin_hidden_import();
	free_bo();
	add_bo();
	free_bo();
	add_bo();
	fstat(dmabuf, &st);
	snprintf(spaces, sizeof(spaces), "pid:8\tProcess:job ----------\n\t\t0x00000000: 8192 byte VRAM exported as ino:%lu\n"
		 "pid:99\tProcess:other ----------\n\t\t0x00000000: 8192 byte VRAM exported as ino:1\n",
		 (unsigned long)st.st_ino);
	stranger.spaces = spaces;
	kernel.references--; /* the stranger has freed it, too */
	assert_int_equal(check_handle(), 0);
}

TEST(without_debugfs_a_hidden_import_is_feared)
{
	begin_hidden_import();
	assert_int_equal(check_handle(), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "may share a buffer of renderD128 with pid 99"));
	assert_non_null(strstr(log_text, "mount debugfs"));
}

TEST(a_stranger_on_another_gpu_is_none)
{
	begin();
	add_bo();
	add_handle();
	stranger.is_in_kfd = true;
	stranger.gpu_id = 0x2222;
	assert_int_equal(check_handle(), 0);
	stranger.gpu_id = 0x1111;
	assert_int_equal(check_handle(), -EOPNOTSUPP);
	stranger.is_in_kfd = false;
	assert_int_equal(check_handle(), 0);
}

/* It has freed its import and keeps the handle: as many references as the KFD's own file has. */
static void begin_kept_handle(uint32_t handle)
{
	begin();
	add_bo();
	add_handle();
	add_bo();
	free_bo();
	stranger.file_minor = 128;
	stranger.handle = handle;
	stranger.offset = OFFSET;
}

TEST(a_kept_handle_is_found)
{
	begin_kept_handle(3);
	assert_int_equal(check_bo(), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "with pid 99, which is not dumped"));
}

TEST(a_handle_is_known_by_the_offset_on_its_own_gpu)
{
	struct holder holders[] = {
		{ .minor = 129, .offset = 0x5000 }, { .minor = 128, .offset = OFFSET, .bo = 1 },
	};

	begin_kept_handle(3);
	kernel.references += 4; /* the import on the other GPU */
	assert_int_equal(check(holders, 2), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "with pid 99, which is not dumped"));
}

/* Another GPU's handle of the same size may be an import of the buffer, where the dump has one, too. */
TEST(a_handle_on_another_gpu_is_known_by_its_size)
{
	struct holder holders[] = {
		{ .minor = 128, .offset = OFFSET }, { .minor = 129, .offset = 0x5000, .bo = 1 },
	};

	begin();
	add_bo();
	kernel.references += 4; /* the import on the other GPU */
	stranger.file_minor = 129;
	stranger.handle = 3;
	stranger.offset = 0x6000;
	assert_int_equal(check(holders, 2), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "with pid 99, which is not dumped"));
	stranger.file_minor = 128;
	assert_int_equal(check(holders, 2), 0);
}

/* Another job's; each buffer of the dump is looked for among them. */
TEST(thousands_of_handles_are_not_walked_over)
{
	begin();
	add_bo();
	stranger.file_minor = 128;
	stranger.nr_others = 5000;
	assert_int_equal(check_bo(), 0);
	assert_in_range(nr_compared, 1, 20);
	stranger.handle = 3;
	stranger.offset = OFFSET;
	assert_int_equal(check_bo(), -EOPNOTSUPP);
}

TEST(handles_are_found_where_they_are_not_listed)
{
	begin_kept_handle(7000);
	stranger.lists_handles = false;
	assert_int_equal(check_bo(), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "with pid 99, which is not dumped"));
}

TEST(files_that_cannot_be_looked_at_are_not_passed_over)
{
	begin_kept_handle(3);
	stranger.open_error = EPERM;
	assert_int_equal(check_bo(), -EPERM);
	assert_int_equal(log_errors, 1);
	assert_non_null(strstr(log_text, "cannot look whether pid 99, which is not dumped, has buffers"));
}

TEST(files_that_are_gone_are)
{
	begin();
	add_bo();
	stranger.file_minor = 128;
	stranger.open_error = EBADF;
	assert_int_equal(check_bo(), 0);
}

TEST(an_open_dmabuf_is_found)
{
	begin_kept_handle(0);
	stranger.has_dmabuf = true;
	add_handle();
	drop_handle();
	drop_handle();
	kernel.references++; /* it holds it as the handle did */
	add_handle();
	assert_int_equal(check_handle(), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "with pid 99, which is not dumped"));
}

TEST(references_that_pass_are_waited_for)
{
	begin();
	add_bo();
	add_bo();
	free_bo(); /* no handle is left, so there is none of the KFD's own */
	kernel.nr_passing = 1;
	kernel.passing_reads = 7;
	assert_int_equal(check_bo(), 0);
	kernel.nr_passing = 1;
	assert_int_equal(check_bo(), -EOPNOTSUPP);
	assert_int_equal(log_errors, 1);
}

/* The KFD imports it for the other GPU, since an IOMMU translates for each. */
TEST(memory_of_an_apu_is_system_memory)
{
	begin();
	bos[0].alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
	topology_node_set(&nodes[0], TOPOLOGY_HIVE_ID, 5);
	topology_node_set(&nodes[1], TOPOLOGY_HIVE_ID, 5);
	nr_mapped = 1;
	add_bo();
	kernel.domains = AMDGPU_GEM_DOMAIN_VRAM;
	assert_int_equal(check_bo(), 0);
	kernel.domains = AMDGPU_GEM_DOMAIN_GTT;
	kernel.references++;
	kernel.client_has_handle = false;
	drop_handle(); /* else the KFD's own reference might explain it */
	assert_int_equal(check_bo(), 0);
}

/* By the mappings of all its holders. */
TEST(a_buffer_is_asked_once_what_memory_it_is)
{
	struct holder holders[8];

	begin();
	nr_mapped = 1;
	for (size_t i = 0; i < ARRAY_SIZE(holders); i++) {
		holders[i] = (struct holder){ .minor = 128, .offset = OFFSET };
		kernel.references++; /* the mapping on the other GPU */
		add_bo();
	}
	assert_int_equal(check(holders, ARRAY_SIZE(holders)), 0);
	assert_in_range(nr_imported, 1, 2);
}

UNIT_MAIN(NULL, NULL)
