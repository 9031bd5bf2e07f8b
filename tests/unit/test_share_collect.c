// SPDX-License-Identifier: GPL-2.0-only
/* What it costs to find out who holds what. The kernel counts how often it is asked. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libdrm/amdgpu_drm.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "unit.h"
#include "amdgpu_plugin_drm.h"
#include "log_stub.h"
#include "share/survey.h"

#define NR_PROCESSES 16u
#define NR_BUFFERS   8u
#define BYTES	     8192u
#define IMPORTED     (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE)
#define OFFSET(i)    (0x100000ull * ((i) + 1))
#define FAR_OFFSET   0x1000000000ull /* of an import of another GPU's memory */

static int dmabufs[NR_BUFFERS];
static unsigned int nr_opened, nr_imported;

STUB(int, kfd_open, (void), open("/dev/null", O_RDONLY | O_CLOEXEC))

/* All memory is of the first GPU, and where devices have partitions, it is always the first one that the KFD names. */
static uint32_t answer;
int kfd_dmabuf_gpu(int kfd, int dmabuf_fd, uint32_t *ret)
{
	*ret = answer;
	return 0;
}

/* The file's minor can be told from the descriptor's name. */
static uint32_t minor_of_fd(int fd)
{
	char path[64], target[64] = "";
	unsigned int minor = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_true(readlink(path, target, sizeof(target) - 1) > 0);
	assert_int_equal(sscanf(target, "/memfd:%u", &minor), 1);
	return minor;
}

int drm_open_minor(uint32_t minor)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", minor);
	nr_opened++;
	return memfd_create(name, MFD_CLOEXEC);
}

static int buffer_of(int dmabuf_fd)
{
	struct stat wanted, st;

	assert_int_equal(fstat(dmabuf_fd, &wanted), 0);
	for (unsigned int i = 0; i < NR_BUFFERS; i++)
		if (!fstat(dmabufs[i], &st) && st.st_ino == wanted.st_ino)
			return (int)i;
	return -1;
}

int gem_import(int fd, int dmabuf_fd, uint32_t *ret)
{
	nr_imported++;
	*ret = (uint32_t)buffer_of(dmabuf_fd) + 1;
	return 0;
}

/* One that the kernel lists, which cannot be made again; NULL: it lists none. */
#define LISTED 77u
static const struct gem_info *listed;

int gem_offset(int fd, uint32_t handle, uint64_t *ret)
{
	if (handle == LISTED)
		return -EPERM;
	*ret = minor_of_fd(fd) == 128 ? OFFSET(handle - 1) : FAR_OFFSET + (uint64_t)fd * 0x10000;
	return 0;
}

static uint64_t bytes;
int gem_ask(int fd, uint32_t handle, struct gem_info *ret)
{
	*ret = handle == LISTED ? *listed : (struct gem_info){ .size = bytes };
	return 0;
}

int gem_get_metadata(int fd, uint32_t handle, struct kfd_share *ret) { (void)fd; (void)handle; (void)ret; fail(); return -EIO; }
STUB(int, gem_close, (int fd, uint32_t handle), 0)
STUB(void, render_objects_done, (struct render_objects *objects), /* nothing */)

/* ---- files of the tasks: one has a syncobj ---- */

static int its_file;
/* Each file that is asked waits until so many are asked. */
static _Atomic unsigned int nr_probed, wait_for_probed;

int gem_list(int fd, struct gem_entry **ret, size_t *nr)
{
	*ret = listed ? calloc(1, sizeof(**ret)) : NULL;
	*nr = listed ? 1 : 0;
	if (listed)
		(*ret)->handle = LISTED;
	return 0;
}

int drm_count_contexts(int fd, uint32_t *ret)
{
	*ret = 0;
	return 0;
}

int gem_syncobjs(int fd, struct render_objects *objects, uint32_t *ret_pending)
{
	double end = monotonic_seconds() + 10;

	nr_probed++;
	while (nr_probed < wait_for_probed && monotonic_seconds() < end)
		usleep(1000);
	if (nr_probed < wait_for_probed) {
		wait_for_probed = 0; /* the others need not wait, too */
		return -ETIMEDOUT;
	}
	objects->nr_syncobjs = fd == its_file;
	*ret_pending = 0;
	return 0;
}

int task_ask_kfd(pid_t pid, struct task_kfd *ret)
{
	*ret = (struct task_kfd){ 0 };
	return 0;
}

/* A file of a render node with handles of all buffers but the first; or, as the KFD's own, of all. */
#define LENT 2000
static bool maps_first;

void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (fd == LENT && (maps_first || offset != (off_t)OFFSET(0)))
		return __real_mmap(addr, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return __real_mmap(addr, len, prot, flags, fd, offset);
}

/* ---- what is not called ---- */

#define NEVER { fail(); return -ENOSYS; }
int gem_export(int fd, uint32_t handle, bool read_only) { NEVER }
int drm_count_objects(int fd, uint32_t *ret) { NEVER }
bool task_file_has_pasid(const struct task_file *file, uint32_t pasid) { NEVER }
int criu_kept_file(int store_id) { NEVER }

/* ---- processes that all have all buffers ---- */

static struct topology_node nodes[2];
static struct topology machine;
static struct bo bos[NR_PROCESSES][NR_BUFFERS];
static struct gpu_process images[NR_PROCESSES];
static struct gpu_process *processes[NR_PROCESSES];
static struct task_file file[4];
static struct task_files files;
static struct share_request request;
static struct survey survey;

/* The last process has them on its own GPU. */
static int begin(void **unused)
{
	log_clear();
	nr_opened = nr_imported = nr_probed = wait_for_probed = 0;
	files = (struct task_files){ 0 };
	bytes = BYTES;
	answer = 0x1111;
	machine = (struct topology){ .nr_nodes = 2, .nodes = { &nodes[0], &nodes[1] } };
	for (uint32_t i = 0; i < 2; i++) {
		memset(&nodes[i], 0, sizeof(nodes[i]));
		topology_node_set(&nodes[i], TOPOLOGY_GPU_ID, i ? 0x2222 : 0x1111);
		topology_node_set(&nodes[i], TOPOLOGY_DRM_RENDER_MINOR, 128 + i);
		topology_node_set(&nodes[i], TOPOLOGY_LOCATION_ID, i << 8);
	}
	for (unsigned int i = 0; i < NR_BUFFERS; i++)
		dmabufs[i] = memfd_create("dmabuf", MFD_CLOEXEC);
	for (unsigned int p = 0; p < NR_PROCESSES; p++) {
		bool is_far = p == NR_PROCESSES - 1;

		for (unsigned int i = 0; i < NR_BUFFERS; i++)
			bos[p][i] = (struct bo){
				.size = BYTES, .gpu_id = is_far ? 0x2222 : 0x1111, .alloc_flags = IMPORTED,
				.offset = is_far ? FAR_OFFSET + i * 0x10 : OFFSET(i), .dmabuf_fd = dmabufs[i],
			};
		images[p] = (struct gpu_process){
			.state = { .nr_bos = NR_BUFFERS, .nr_records = NR_BUFFERS, .bos = bos[p] }, .nodes = &machine,
		};
		images[p].file.pid = (pid_t)(100 + p);
		processes[p] = &images[p];
	}
	request = (struct share_request){
		.processes = processes, .nr_processes = NR_PROCESSES, .files = &files, .machine = &machine,
		.one_dmabuf = true,
	};
	return survey_init(&survey, &request);
}

static int end(void **unused)
{
	survey_done(&survey);
	for (unsigned int i = 0; i < NR_BUFFERS; i++)
		close(dmabufs[i]);
	return 0;
}

#define FIXTURE_TEST(test) UNIT_TEST(test, begin, end)

/* On its own GPU once, on the other one once, and there in two files at a time. */
FIXTURE_TEST(each_buffer_is_looked_at_once_on_a_gpu)
{
	assert_int_equal(collect_all(&survey), 0);
	assert_int_equal(survey.nr_holders, NR_PROCESSES * NR_BUFFERS);
	assert_int_equal(nr_imported, 4 * NR_BUFFERS);
	assert_int_equal(log_errors, 0);
}

FIXTURE_TEST(each_render_node_is_opened_twice_at_most)
{
	assert_int_equal(collect_all(&survey), 0);
	assert_in_range(nr_opened, 1, 4);
}

FIXTURE_TEST(anothers_memory_is_refused_whoever_has_it)
{
	bos[3][2].offset = OFFSET(99);
	bos[3][2].alloc_flags |= KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
	assert_int_equal(collect_all(&survey), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "pid 103: the kernel returned the wrong dma-buf for buffer 2 of gpu 0x1111"));
}

FIXTURE_TEST(a_buffer_that_is_too_small_is_refused_whoever_has_it)
{
	bos[9][7].size = 2 * BYTES;
	assert_int_equal(collect_all(&survey), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "pid 109: the kernel returned the wrong dma-buf for buffer 7 of gpu 0x1111"));
}

FIXTURE_TEST(before_6_8_nobody_shares)
{
	request.one_dmabuf = false;
	assert_int_equal(collect_all(&survey), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "shares a buffer of renderD128 with pid 10"));
	assert_non_null(strstr(log_text, "which cannot be saved before Linux 6.8"));
}

/* Both are asked for it, to check the references and to decide who owns it. */
FIXTURE_TEST(the_gpu_of_a_buffer_is_looked_for_once)
{
	struct buffer buffer = { 0 };
	unsigned int nr = 0, imported;

	for (uint32_t i = 0; i < 2; i++)
		topology_node_set(&nodes[i], TOPOLOGY_GFX_TARGET_VERSION, 90402);
	answer = 0x2222;
	assert_int_equal(collect_all(&survey), 0);
	survey_sort(&survey);
	imported = nr_imported;
	for (unsigned int turn = 0; turn < 2; turn++)
		for (buffer = (struct buffer){ 0 }; survey_next(&survey, &buffer); nr++) {
			assert_int_equal(survey_find_gpu(&survey, &buffer), 0);
			assert_int_equal(buffer.minor, 128);
		}
	assert_int_equal(nr, 2 * NR_BUFFERS);
	assert_int_equal(nr_imported, imported);
}

/* None of the process' BOs can be mapped here. */
FIXTURE_TEST(files_of_one_node_are_probed_once_to_tell_them_apart)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(file); i++)
		file[i] = (struct task_file){ .pid = 100, .minor = 128, .fd = 1000 + (int)i };
	its_file = 1002;
	survey_done(&survey);
	files = (struct task_files){ .files = file, .count = ARRAY_SIZE(file) };
	assert_int_equal(survey_init(&survey, &request), 0);
	wait_for_probed = ARRAY_SIZE(file);
	assert_int_equal(collect_all(&survey), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(file); i++)
		assert_int_equal(survey.without_kfd_vm[i], i != 2);
	assert_int_equal(survey.objects[2].nr_syncobjs, 1);
	assert_int_equal(nr_probed, ARRAY_SIZE(file));
}

/* Buffers that a process has imported are for the CPU as well, and say nothing of whose file it is. */
FIXTURE_TEST(a_file_with_what_a_process_imports_is_not_its_own)
{
	file[0] = (struct task_file){ .pid = 500, .minor = 128, .fd = LENT };
	files = (struct task_files){ .files = file, .count = 1 };
	bos[2][0].alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT;
	maps_first = false;
	assert_int_equal(files_owner(&survey, 0), NR_PROCESSES);
	maps_first = true;
	assert_int_equal(files_owner(&survey, 0), 2);
}

static const struct {
	struct gem_info info;
	const char *is;
} bad_handles[] = {
	{ { .domains = 0x40 }, "a doorbell of a user queue" },
	{ { .domains = 0 }, "memory that no GPU can use" },
	{ { .domains = AMDGPU_GEM_DOMAIN_GDS }, "GDS, GWS or OA memory" },
	{ { .domains = AMDGPU_GEM_DOMAIN_VRAM, .flags = AMDGPU_GEM_CREATE_VM_ALWAYS_VALID }, "always valid" },
	{ { .domains = AMDGPU_GEM_DOMAIN_VRAM, .flags = AMDGPU_GEM_CREATE_ENCRYPTED }, "encrypted" },
	{ { .domains = AMDGPU_GEM_DOMAIN_GTT }, "(userptr)" },
};

FIXTURE_TEST(handles_that_cannot_be_made_again_are_refused)
{
	file[0] = (struct task_file){ .pid = 100, .minor = 128, .fd = 1000 };
	files = (struct task_files){ .files = file, .count = 1 };
	for (size_t i = 0; i < ARRAY_SIZE(bad_handles); i++) {
		listed = &bad_handles[i].info;
		log_clear();
		survey_done(&survey);
		assert_int_equal(survey_init(&survey, &request), 0);
		assert_int_equal(collect_all(&survey), -EOPNOTSUPP);
		assert_non_null(strstr(log_text, "pid 100: handle 77 of its renderD128 is "));
		assert_non_null(strstr(log_text, bad_handles[i].is));
		assert_int_equal(log_errors, 1);
	}
	listed = NULL;
}

UNIT_MAIN(NULL, NULL)
