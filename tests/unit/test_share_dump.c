// SPDX-License-Identifier: GPL-2.0-only
/* The order of a dump of what is shared, and which kernels do not let one know who shares. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>

#include "unit.h"
#include "amdgpu_plugin_drm.h"
#include "log_stub.h"
#include "share/survey.h"

#define NO_SUBSTITUTE (1u << 28)
#define ALLOCATED     (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | NO_SUBSTITUTE)
#define IMPORTED      (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE)
#define FRESH	      1000u

static bool can_export;
static char steps[64]; /* what was done, a letter each */
static struct holder found[2];
static size_t nr_found;
static bool may_look;

bool kfd_can_export(int kfd)
{
	assert_true(kfd >= 0);
	return can_export;
}

STUB(int, kfd_open, (void), open("/dev/null", O_RDONLY | O_CLOEXEC))

int collect_all(struct survey *survey)
{
	strcat(steps, "c");
	for (size_t i = 0; i < nr_found; i++)
		assert_int_equal(array_add(survey->holders, survey->nr_holders, found[i]), 0);
	return 0;
}

#define NEVER { fail(); return -ENOSYS; }
#define ONLY_LOOKS { assert_true(may_look); return 0; }

/* For a suspend; the first is the BO. */
int collect_bos(struct survey *survey)
{
	assert_true(may_look);
	return array_add(survey->holders, survey->nr_holders, found[0]);
}

int collect_known_handles(struct survey *survey)
{
	for (size_t i = 1; i < nr_found; i++)
		assert_int_equal(array_add(survey->holders, survey->nr_holders, found[i]), 0);
	return 0;
}

STUB(int, references_explain, (struct survey *survey, const struct buffer *buffer), (assert_true(may_look), 1))
STUB(bool, references_of_tasks, (const struct references *references, uint64_t inode), false)

int references_read(struct survey *survey)
{
	strcat(steps, "r");
	return 0;
}

int references_check(struct survey *survey, const struct buffer *buffer)
{
	assert_int_equal(buffer->minor, 128);
	strcat(steps, "k");
	return 0;
}

void references_free(struct references *references)
{
	assert_null(references);
}

int decide_all(struct survey *survey)
{
	strcat(steps, "d");
	return 0;
}

int kfd_dmabuf_gpu(int kfd, int dmabuf_fd, uint32_t *ret)
{
	*ret = 0x1111;
	return 0;
}

STUB(void, render_objects_done, (struct render_objects *objects), /* nothing */)

STUB(int, drm_open_minor, (uint32_t minor), (assert_true(may_look), open("/dev/null", O_RDONLY | O_CLOEXEC)))
int gem_create_page(int fd, uint32_t *ret) { NEVER }
int gem_export(int fd, uint32_t handle, bool read_only) { NEVER }
int gem_import(int fd, int dmabuf_fd, uint32_t *ret) ONLY_LOOKS
int gem_offset(int fd, uint32_t handle, uint64_t *ret) ONLY_LOOKS
int gem_ask(int fd, uint32_t handle, struct gem_info *ret) ONLY_LOOKS
int gem_get_metadata(int fd, uint32_t handle, struct kfd_share *ret) ONLY_LOOKS
int gem_close(int fd, uint32_t handle) ONLY_LOOKS

/* A dump of one process with one BO. */
static int dump(uint32_t flags, bool one_dmabuf, bool check_partners)
{
	struct bo bo = { .size = 12288, .gpu_id = 0x1111, .alloc_flags = flags };
	struct gpu_process image = { .file.pid = 7, .state = { .nr_bos = 1, .nr_records = 1, .bos = &bo } }, *process = &image;
	struct topology_node node = { 0 };
	const struct topology machine = { .nr_nodes = 1, .nodes = { &node } };
	const struct task_files files = { 0 };
	const struct share_request request = {
		.processes = &process, .nr_processes = 1, .files = &files, .machine = &machine, .fresh_inode = FRESH,
		.one_dmabuf = one_dmabuf, .check_partners = check_partners,
	};
	struct survey *survey = NULL;
	int err;

	topology_node_set(&node, TOPOLOGY_GPU_ID, 0x1111);
	topology_node_set(&node, TOPOLOGY_DRM_RENDER_MINOR, 128);
	log_clear();
	*steps = '\0';
	err = share_dump_collect(&request, &survey);
	assert_true(err || survey);
	err = err ? err : share_dump_decide(survey);
	share_dump_done(survey);
	return err;
}

TEST(holders_are_collected_then_checked_then_decided_about)
{
	can_export = true;
	nr_found = 0;
	assert_int_equal(dump(ALLOCATED, true, true), 0);
	assert_string_equal(steps, "cd");
	nr_found = 2;
	found[0] = (struct holder){ .inode = FRESH + 1 }; /* made by the dump */
	found[1] = (struct holder){ .inode = FRESH - 1 };
	assert_int_equal(dump(IMPORTED, true, true), 0);
	assert_string_equal(steps, "crkd");
	assert_int_equal(dump(IMPORTED, true, false), 0);
	assert_string_equal(steps, "crd");
}

TEST(before_6_8_nothing_gets_away_without_exports)
{
	can_export = false;
	nr_found = 0;
	assert_int_equal(dump(ALLOCATED, false, true), 0);
	assert_string_equal(steps, "cd");
}

TEST(before_6_8_no_process_is_suspended)
{
	const struct share_request request = { .one_dmabuf = false };
	struct share_names names = { 0 };

	log_clear();
	assert_int_equal(share_find_alone(&request, &names), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "before Linux 6.8 the kernel does not tell who else has a buffer"));
}

TEST(before_6_8_an_import_is_somebodys)
{
	can_export = false;
	assert_int_equal(dump(IMPORTED, false, true), -EOPNOTSUPP);
	assert_string_equal(steps, "");
	assert_non_null(strstr(log_text, "pid 7: has imported a buffer of 12288 bytes on gpu 0x1111"));
}

TEST(before_6_8_what_may_have_been_exported_is_refused)
{
	can_export = true;
	assert_int_equal(dump(ALLOCATED, false, true), -EOPNOTSUPP);
	assert_string_equal(steps, "");
	assert_int_equal(log_errors, 1);
	assert_non_null(strstr(log_text, "pid 7: may have exported a buffer of 12288 bytes on gpu 0x1111"));
	assert_non_null(strstr(log_text, "KFD_SHARING_CHECK=0"));
	nr_found = 0;
	assert_int_equal(dump(ALLOCATED, false, false), 0);
	assert_int_equal(dump(KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL, false, true), 0);
}

/* A BO that was exported, and a handle of it. */
static bool is_alone(size_t file, bool is_import, struct share_names *ret)
{
	struct bo bo = { .size = 12288, .gpu_id = 0x1111, .alloc_flags = ALLOCATED };
	struct gpu_process image = { .file.pid = 7, .state = { .nr_bos = 1, .nr_records = 1, .bos = &bo } }, *process = &image;
	struct topology_node node = { 0 };
	const struct topology machine = { .nr_nodes = 1, .nodes = { &node } };
	struct task_file list[] = { { .pid = 7, .minor = 128 }, { .pid = 9, .minor = 128 } };
	const struct task_files files = { .files = list, .count = 2 };
	const struct share_request request = {
		.processes = &process, .nr_processes = 1, .files = &files, .machine = &machine, .fresh_inode = FRESH,
		.one_dmabuf = true,
	};

	topology_node_set(&node, TOPOLOGY_GPU_ID, 0x1111);
	topology_node_set(&node, TOPOLOGY_DRM_RENDER_MINOR, 128);
	found[0] = (struct holder){ .inode = FRESH - 1, .kind = HOLDER_BO, .minor = 128, .dmabuf_fd = 5 };
	found[1] = (struct holder){ .inode = FRESH - 1, .kind = HOLDER_HANDLE, .minor = 128, .dmabuf_fd = -1, .file = file,
				    .handle = 3, .is_import = is_import };
	nr_found = 2;
	may_look = true;
	assert_int_equal(share_find_alone(&request, ret), 0);
	may_look = false;
	assert_int_equal(ret->nr, 1);
	assert_int_equal(ret->list[0].handle, 3);
	assert_int_equal(ret->list[0].file, file);
	assert_int_equal(ret->list[0].bo, 0);
	share_names_done(ret);
	*ret = (struct share_names){ 0 };
	return bo.is_alone;
}

TEST(a_bo_with_handles_of_its_process_on_its_gpu_is_alone)
{
	struct share_names names = { 0 };

	assert_true(is_alone(0, false, &names));
	assert_false(is_alone(1, false, &names)); /* in a file of another process */
	assert_false(is_alone(0, true, &names));  /* of another GPU */
}

UNIT_MAIN(NULL, NULL)
