// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who holds a buffer: what is told from references and from processes that are not dumped. The kernel is made up of
 * what happens to a buffer, with the references that come and go with it: nothing here knows the plugin's formula.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <libdrm/amdgpu_drm.h>

#include "unit.h"
#include "log_stub.h"
#include "remove_all.h"
#include "amdgpu_plugin_drm.h"
#include "host/host.h"
#include "share/survey.h"

/* criu's. */
STUB(bool, criu_is_streaming, (void), false)

#define STRANGER 99
#define DUMPED	 7
#define SCRATCH	 1000 /* a file of the plugin's */
#define OFFSET	 0x100000u
#define BYTES	 8192u

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

int __wrap_fdinfo_value(int fd, const char *name, char *text, size_t size)
{
	assert_string_equal(name, "count");
	if (kernel.passing_reads && !--kernel.passing_reads)
		kernel.nr_passing = 0;
	snprintf(text, size, "%d", kernel.references + kernel.nr_passing);
	return 0;
}

STUB(int, survey_own_file, (struct survey *survey, uint32_t minor), SCRATCH)

static unsigned int nr_compared, nr_imported;

bool survey_same_device(const struct survey *survey, uint32_t minor, uint32_t other)
{
	nr_compared++;
	return minor == other;
}

/* All dma-bufs are of the dump: no holder is added. */
#define NEVER { fail(); return -ENOSYS; }
int survey_keep_dmabuf(struct survey *survey, int fd) { NEVER }
int survey_home(struct survey *survey, int fd, uint32_t known, uint32_t *ret) { NEVER }

size_t survey_process_of(const struct share_request *request, pid_t pid)
{
	return pid == DUMPED ? 0 : request->nr_processes;
}

int gem_import(int fd, int dmabuf_fd, uint32_t *ret)
{
	assert_int_equal(fd, SCRATCH);
	add_handle();
	nr_imported++;
	*ret = 1;
	return 0;
}

int gem_close(int fd, uint32_t handle)
{
	assert_int_equal(fd, SCRATCH);
	drop_handle();
	return 0;
}

/* ---- a process that is not dumped ---- */

static struct {
	bool exists, is_in_kfd;
	bool is_criu; /* its program is ours */
	int error;	     /* of its files' descriptions; -1: its first thread has ended */
	bool has_tables;     /* each thread has its own files; the second one that of @fdinfo */
	const char *fdinfo;  /* of its open file */
	const char *handles; /* what debugfs says of open files, and @again each second time; NULL: it cannot be read */
	const char *again;
	const char *spaces;  /* likewise, of address spaces */
	const char *imports; /* of all dma-bufs */
	uint32_t gpu_id;     /* of the GPU that it may use */
	bool is_mounted;     /* debugfs is */
	int initial_ns;
} stranger;

static int dmabuf = -1;
static unsigned int nr_private; /* file systems that were mounted for nobody else */
static unsigned int nr_spaces;  /* readings of address spaces */

int gem_ask(int fd, uint32_t handle, struct gem_info *ret)
{
	*ret = (struct gem_info){ .size = BYTES, .domains = kernel.domains };
	return fd == SCRATCH ? 0 : -ENOENT;
}

int survey_look_at(struct survey *survey, uint32_t minor, int dmabuf_fd, struct memory *ret, struct kfd_share *metadata)
{
	uint32_t handle;

	gem_import(SCRATCH, dmabuf_fd, &handle);
	gem_ask(SCRATCH, handle, &ret->info);
	return gem_close(SCRATCH, handle);
}

int task_take_file(pid_t pid, int number) { NEVER }

STUB(int, task_in_initial_pid_ns, (void), stranger.initial_ns)

long __wrap_syscall(long number, pid_t a, pid_t b, int kind, unsigned long x, unsigned long y)
{
	assert_int_equal(number, SYS_kcmp);
	assert_int_equal(kind, KCMP_FILES);
	assert_true(a == STRANGER && b == STRANGER + 1);
	return stranger.has_tables;
}

ssize_t __wrap_readlink(const char *path, char *text, size_t size)
{
	bool is_own = !strcmp(path, "/proc/self/exe") || stranger.is_criu, is_dmabuf;

	if (strstr(path, "/fd/")) {
		errno = stranger.error;
		is_dmabuf = strstr(stranger.fdinfo, "exp_name:") && !(stranger.has_tables && strstr(path, "task/99/"));
		return stranger.error > 0 ? -1 : snprintf(text, size, is_dmabuf ? "/dmabuf:x" : "socket:[77]");
	}
	if (strcmp(path, "/proc/self/exe"))
		assert_string_equal(path, "/proc/99/exe");
	return snprintf(text, size, "%s", is_own ? "/usr/sbin/criu" : "/usr/sbin/crit");
}

/* The second thread has the files, if the first one has ended. */
static size_t nr_numbers(const char *path, int *ret)
{
	bool has_ended = stranger.error < 0;

	if (!strcmp(path, "/proc/99/task")) {
		ret[0] = STRANGER;
		ret[1] = STRANGER + 1;
		return 2;
	}
	ret[0] = 4;
	if (!strcmp(path, "/proc/99/task/99/fd"))
		return !has_ended && (stranger.fdinfo || stranger.has_tables);
	if (!strcmp(path, "/proc/99/task/100/fd"))
		return stranger.has_tables || (has_ended && stranger.fdinfo);
	ret[0] = getpid();
	ret[1] = DUMPED;
	ret[2] = STRANGER;
	return 2 + (!strcmp(path, "/proc") ? stranger.exists : stranger.is_in_kfd);
}

int __wrap_list_numbers(int dir_fd, const char *path, int **ret, size_t *ret_nr)
{
	*ret = calloc(4, sizeof(**ret));
	*ret_nr = nr_numbers(path, *ret);
	return 0;
}

static int text_file(const char *text)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static int no_file(int err)
{
	errno = err;
	return -1;
}

/* One GPU and a link to it. */
static char debugfs[] = "/tmp/test_references.XXXXXX";

int __real_open(const char *path, int flags, ...);
static int open_debugfs(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", debugfs, name);
	return __real_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int __wrap_open(const char *path, int flags, ...)
{
	if (!strcmp(path, "/sys/kernel/debug/dri"))
		return stranger.is_mounted ? open_debugfs("dri") : no_file(ENOENT);
	if (strncmp(path, "/proc/99/", 9))
		return __real_open(path, flags);
	assert_true(!strcmp(path, "/proc/99/task/99/fdinfo/4") || !strcmp(path, "/proc/99/task/100/fdinfo/4"));
	/* To describe another file may take its driver long. */
	assert_non_null(strstr(stranger.fdinfo, "exp_name:"));
	return stranger.error > 0 ? no_file(stranger.error) : text_file(stranger.fdinfo);
}

int mount_private(const char *type)
{
	if (strcmp(type, "debugfs") || !stranger.handles)
		return -EPERM;
	nr_private++;
	return open_debugfs(".");
}

static const char *debugfs_text(const char *path)
{
	const char *handles = stranger.handles;

	if (strstr(path, "bufinfo"))
		return stranger.imports;
	nr_spaces += strstr(path, "amdgpu_vm_info") != NULL;
	if (strstr(path, "amdgpu_vm_info"))
		return stranger.spaces;
	assert_string_equal(path, "0000:c1:00.0/amdgpu_gem_info");
	if (stranger.again) {
		stranger.handles = stranger.again;
		stranger.again = handles;
	}
	return handles;
}

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
	const char *text = strcmp(path, "dri") ? debugfs_text(path) : NULL;

	if (!strcmp(path, "dri"))
		return __real_openat(dir, path, flags);
	return text ? text_file(text) : no_file(ENOENT);
}

int __wrap_access(const char *path, int mode)
{
	char its[64];

	snprintf(its, sizeof(its), "/sys/class/kfd/kfd/proc/99/vram_%u", stranger.gpu_id);
	return !strcmp(path, its) ? 0 : -1;
}

/* ---- the dump ---- */

static struct topology machine;
static struct topology_node nodes[2];
static struct bo bos[2];
static uint32_t nr_mapped;
static bool is_dkms;

int records_bo(const struct kfd_state *state, size_t i, struct bo_record *ret)
{
	*ret = (struct bo_record){ .mapped_gpus = { 0x2222 } };
	return 0;
}

STUB(uint32_t, records_nr_mapped, (const struct bo_record *bo), nr_mapped)

void iommu_read_group(int sysfs, const struct topology_node *node, struct iommu_group *ret)
{
	*ret = (struct iommu_group){ 0 };
}

/* It translates for each GPU. */
STUB(bool, iommu_is_common, (const struct iommu_group *a, const struct iommu_group *b), false)

/* What debugfs says by and by. */
static char texts[2][1024];

/* A client of the GPU, and what it has: a handle or a KFD BO of the job's buffer, or something else. */
enum { NO_HANDLE = 1, BO_TOO = 2, THREAD = 4 };

static void add_client(int pid, unsigned int what)
{
	size_t handles = strlen(texts[0]), spaces = strlen(texts[1]);
	struct stat st;

	assert_int_equal(fstat(dmabuf, &st), 0);
	snprintf(texts[0] + handles, sizeof(texts[0]) - handles, "pid %8d command job:\n\t\t0x00000001:         8192 byte VRAM exported as ino:%lu VRAM_CLEARED\n",
		 pid, what & NO_HANDLE ? 1 : (unsigned long)st.st_ino);
	snprintf(texts[1] + spaces, sizeof(texts[1]) - spaces, "pid:%d\tProcess:job ----------\n\tDone BOs:\n\t\t0x00000000:         8192 byte VRAM imported from ino:%lu\n",
		 what & THREAD ? 5 : pid, what & BO_TOO ? (unsigned long)st.st_ino : 1);
	stranger.handles = texts[0];
	stranger.spaces = texts[1];
}

static void begin(void)
{
	memset(&kernel, 0, sizeof(kernel));
	memset(&stranger, 0, sizeof(stranger));
	nr_compared = nr_imported = 0;
	stranger.exists = true;
	stranger.is_mounted = true;
	stranger.initial_ns = 1;
	stranger.gpu_id = 0x1111;
	nr_private = nr_spaces = 0;
	strcpy(texts[0], "");
	strcpy(texts[1], "");
	stranger.imports = "Total 0 devices attached\n";
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
	struct gpu_process image = {
		.file.pid = DUMPED, .state = { .nr_bos = 2, .nr_records = 2, .bos = bos }, .nodes = &machine,
	};
	struct gpu_process *process = &image;
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
		{ .minor = 128, .offset = OFFSET }, { .minor = 128, .offset = OFFSET, .kind = HOLDER_HANDLE, .handle = 1 },
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
	assert_non_null(strstr(log_text, "a process that is not dumped (or a message in flight): 5 references"));
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
	begin_hidden_import();
	add_client(STRANGER, NO_HANDLE | BO_TOO);
	add_client(getpid(), NO_HANDLE | BO_TOO);
	assert_int_equal(check_handle(), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "shares a buffer of renderD128 with pid 99"));
}

static void begin_other_job(void)
{
	begin_hidden_import();
	free_bo();
	add_bo();
	free_bo();
	add_bo();
	kernel.references--; /* the stranger has freed it, too */
}

/* Nor is the KFD's own reference taken for one. */
TEST(a_stranger_with_other_buffers_is_none)
{
	begin_other_job();
	add_client(DUMPED, BO_TOO);
	add_client(STRANGER, NO_HANDLE);
	assert_int_equal(check_handle(), 0);
	assert_int_equal(nr_private, 0);
}

/* Its address space is called by it. */
TEST(a_thread_of_the_job_that_has_ended_is_no_stranger)
{
	begin_other_job();
	add_client(STRANGER, NO_HANDLE);
	add_client(DUMPED, BO_TOO | THREAD);
	assert_int_equal(check_handle(), 0);
}

TEST(debugfs_is_mounted_where_it_is_not)
{
	begin_other_job();
	stranger.is_mounted = false;
	add_client(DUMPED, BO_TOO);
	add_client(STRANGER, NO_HANDLE);
	assert_int_equal(check_handle(), 0);
	assert_int_equal(nr_private, 1);
}

static void assert_feared(void)
{
	assert_int_equal(check_handle(), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "may share a buffer of renderD128 with pid 99"));
	assert_non_null(strstr(log_text, "CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE or the kernel's debugfs"));
}

TEST(without_debugfs_a_hidden_import_is_feared)
{
	begin_hidden_import();
	assert_feared();
}

/* Address spaces are known by their place only. */
TEST(a_file_that_is_opened_or_closed_meanwhile_is_noticed)
{
	static char before[1024];

	begin_other_job();
	add_client(DUMPED, BO_TOO);
	add_client(STRANGER, NO_HANDLE);
	strcpy(before, texts[0]);
	add_client(STRANGER, NO_HANDLE);
	stranger.handles = before;
	assert_feared();
	begin_hidden_import();
	add_client(DUMPED, NO_HANDLE);
	strcpy(before, texts[0]);
	strcpy(texts[0], "");
	strcpy(texts[1], "");
	add_client(STRANGER, NO_HANDLE | BO_TOO);
	stranger.again = texts[0];
	stranger.handles = before;
	assert_feared();
}

/* Such a name has room for the first line of an address space, and not for that of an open file. */
TEST(a_process_cannot_hide_behind_a_name)
{
	begin_hidden_import();
	add_client(DUMPED, NO_HANDLE);
	strcat(texts[1], "pid:99\tProcess:\npid:7\tProcess: ----------\n\t\t0x0: 8192 byte VRAM imported from ino:1\n");
	strcat(texts[0], "pid       99 command \npid 7 command :\n");
	assert_feared();
}

/* Kernels follow a NULL pointer then. */
TEST(address_spaces_with_imports_are_not_asked_for)
{
	begin_other_job();
	add_client(DUMPED, BO_TOO);
	add_client(STRANGER, NO_HANDLE);
	stranger.imports = "Total 0 devices attached\n\tAttached Devices:\n\t0000:c6:00.0\nTotal 1 devices attached\n";
	assert_feared();
	assert_int_equal(nr_spaces, 0);
}

/* A stranger is a process of the KFD, and of it no more is known. */
static void begin_kfd_user(void)
{
	begin();
	add_bo();
	add_handle();
	stranger.is_in_kfd = true;
}

TEST(a_stranger_on_another_gpu_is_none)
{
	begin_kfd_user();
	stranger.gpu_id = 0x2222;
	assert_int_equal(check_handle(), 0);
	stranger.gpu_id = 0x1111;
	assert_int_equal(check_handle(), -EOPNOTSUPP);
	stranger.is_in_kfd = false;
	assert_int_equal(check_handle(), 0);
}

TEST(a_criu_that_waits_for_a_job_is_no_stranger)
{
	begin_kfd_user();
	stranger.gpu_id = 0x1111;
	stranger.is_criu = true;
	assert_int_equal(check_handle(), 0);
	stranger.is_criu = false;
	assert_int_equal(check_handle(), -EOPNOTSUPP);
}

/* It has freed its import and keeps the handle: as many references as the KFD's own file has. */
static void begin_kept_handle(unsigned int what)
{
	begin();
	add_bo();
	add_handle();
	add_bo();
	free_bo();
	add_client(getpid(), NO_HANDLE);
	add_client(STRANGER, what);
}

TEST(a_kept_handle_is_found)
{
	begin_kept_handle(0);
	assert_int_equal(check_bo(), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "with pid 99, which is not dumped"));
}

/* Of the same size, and maybe not for the CPU. */
TEST(a_handle_of_another_buffer_is_none)
{
	begin_kept_handle(NO_HANDLE);
	assert_int_equal(check_bo(), 0);
}

/* Where debugfs does not tell, whoever uses the GPU by the KFD may have it. */
TEST(a_kept_handle_is_feared)
{
	begin_kept_handle(0);
	stranger.handles = NULL;
	assert_int_equal(check_bo(), 0);
	stranger.is_in_kfd = true;
	assert_int_equal(check_bo(), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "may share a buffer of renderD128 with pid 99"));
	stranger.initial_ns = 0; /* sysfs has no pids of this one */
	assert_int_equal(check_bo(), 0);
}

/* Each buffer of the dump is looked for among them. */
TEST(handles_are_not_compared_with_gpus)
{
	begin_kept_handle(NO_HANDLE);
	assert_int_equal(check_bo(), 0);
	assert_in_range(nr_compared, 1, 20);
}

static void give_descriptor(void)
{
	static char text[256];
	struct stat st;

	fstat(dmabuf, &st);
	snprintf(text, sizeof(text), "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t%lu\nsize:\t8192\ncount:\t5\nexp_name:\tdrm\n",
		 (unsigned long)st.st_ino);
	stranger.fdinfo = text;
}

/* It holds the buffer as a handle did. */
static void begin_descriptor(void)
{
	begin_kept_handle(NO_HANDLE);
	give_descriptor();
	add_handle();
	drop_handle();
	drop_handle();
	kernel.references++;
	add_handle();
}

TEST(an_open_dmabuf_is_found)
{
	begin_descriptor();
	assert_int_equal(check_handle(), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "with pid 99, which is not dumped"));
	begin_descriptor();
	stranger.error = -1;
	assert_int_equal(check_handle(), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "with pid 99, which is not dumped"));
}

/* After unshare(CLONE_FILES). */
TEST(a_thread_with_files_of_its_own_is_looked_at)
{
	begin_descriptor();
	stranger.has_tables = true;
	assert_int_equal(check_handle(), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "with pid 99, which is not dumped"));
}

/* Another file with the inode's number. */
TEST(a_file_of_a_file_system_is_no_dmabuf)
{
	begin_descriptor();
	*(char *)strstr(stranger.fdinfo, "exp_name") = 'x';
	assert_int_equal(check_handle(), 0);
}

/* It matters only for a buffer that has got out: with a handle, or on several GPUs. */
TEST(a_process_that_cannot_be_looked_at_is_feared_where_it_matters)
{
	begin_descriptor();
	stranger.error = EACCES;
	assert_feared();
	begin();
	add_bo();
	give_descriptor();
	add_client(getpid(), NO_HANDLE);
	stranger.error = EACCES;
	assert_int_equal(check_bo(), 0);
	assert_int_equal(log_errors, 0);
}

TEST(files_that_are_gone_are_passed_over)
{
	begin_descriptor();
	stranger.error = ENOENT;
	assert_int_equal(check_handle(), 0);
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

static int make_debugfs(void **state)
{
	char path[PATH_MAX];

	if (!mkdtemp(debugfs))
		return -1;
	snprintf(path, sizeof(path), "%s/dri", debugfs);
	if (mkdir(path, 0700))
		return -1;
	strcat(path, "/0000:c1:00.0");
	if (mkdir(path, 0700))
		return -1;
	snprintf(path, sizeof(path), "%s/dri/0", debugfs);
	return symlink("0000:c1:00.0", path);
}

static int remove_debugfs(void **state)
{
	return remove_all(debugfs);
}

UNIT_MAIN(make_debugfs, remove_debugfs)
