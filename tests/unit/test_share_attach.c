// SPDX-License-Identifier: GPL-2.0-only
/* What a restored task imports. The kernel gives numbers of a test's choice, and counts. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "unit.h"
#include "log_stub.h"
#include "records_fixture.h"
#include "amdgpu_plugin_drm.h"
#include "share/table.h"

#define GPU_A	 0x1111u
#define GPU_B	 0x2222u
#define NR_BOS	 3u
#define OLD(i)	 (0x100000ull * ((i) + 1))
#define RESTORED 0x900000ull

static const struct gpu gpus[] = { { .user_id = GPU_A, .minor = 128 }, { .user_id = GPU_B, .minor = 129 } };
static uint32_t first_number; /* that the KFD gives */
static unsigned int nr_imported, nr_mapped, nr_scratch, nr_asked;

int kfd_import_dmabuf(int kfd, uint32_t gpu_id, uint64_t va, int dmabuf_fd, uint64_t *ret_handle)
{
	*ret_handle = kfd_handle(gpu_id, first_number + nr_imported++);
	return 0;
}

int kfd_map(int kfd, uint64_t handle, const uint32_t *gpu_ids, uint32_t nr_gpus)
{
	nr_mapped++;
	return 0;
}

STUB(int, kfd_free, (int kfd, uint64_t handle), 0)
STUB(int, share_table_get, (struct share_table *table, uint32_t buffer), memfd_create("buffer", MFD_CLOEXEC))

int share_table_borrow(struct share_table *table, struct share_open *open, uint32_t buffer)
{
	share_open_done(open);
	open->fds[open->nr++] = share_table_get(table, buffer);
	return *open->fds;
}

void share_open_done(struct share_open *open)
{
	while (open->nr)
		close(open->fds[--open->nr]);
}

int drm_open_minor(uint32_t minor)
{
	nr_scratch++;
	return memfd_create("scratch", MFD_CLOEXEC);
}

int gem_import(int fd, int dmabuf_fd, uint32_t *ret)
{
	*ret = 1;
	return 0;
}

int gem_offset(int fd, uint32_t handle, uint64_t *ret)
{
	nr_asked++;
	*ret = RESTORED;
	return 0;
}

STUB(int, gem_close, (int fd, uint32_t handle), 0)

/* ---- what is not called: the task has no files ---- */

#define NEVER { fail(); return -EIO; }

int gem_create_page(int fd, uint32_t *ret) { NEVER }
int gem_map(int fd, const struct gem_mapping *mapping) { NEVER }
int gem_make_syncobj(int fd, const struct render_syncobj *syncobj, uint32_t *ret) { NEVER }
int gem_drop_syncobj(int fd, uint32_t handle) { NEVER }
int criu_kept_file(int store_id) { NEVER }
int share_table_begin(struct share_table *table, uint32_t nr) { NEVER }

STUB(void, render_objects_done, (struct render_objects *objects), /* nothing */)

/* ---- a process with imports alone, the last one of the other GPU ---- */

static struct bo bos[NR_BOS];

static int attach(const uint32_t *numbers, struct device_vma *vmas, size_t nr_vmas)
{
	struct gpu_process image = { .vmas = vmas, .nr_vmas = nr_vmas };
	static struct share_table table;
	struct share_task task = { .table = &table, .gpus = gpus, .nr_gpus = ARRAY_SIZE(gpus), .image = &image };
	struct fixture_records records;

	fixture_begin(&records, ARRAY_SIZE(gpus), NR_BOS);
	image.state = fixture_state(&records);
	image.state.bos = bos;
	for (uint32_t i = 0; i < NR_BOS; i++) {
		bos[i] = (struct bo){
			.size = 8192, .gpu_id = i + 1 < NR_BOS ? GPU_A : GPU_B, .offset = OLD(i),
			.alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM, .share = { .buffer = i + 1, .kind = KFD_BO_IMPORT },
		};
		fixture_u32(records.bytes + 8 + 8 * ARRAY_SIZE(gpus) + 272 * i + 8, numbers[i]);
	}
	return share_attach(&task, 3);
}

static int begin(void **unused)
{
	log_clear();
	first_number = 4;
	nr_imported = nr_mapped = nr_scratch = nr_asked = 0;
	return 0;
}

static const uint32_t numbers[NR_BOS] = { 4, 5, 6 };

#define FIXTURE_TEST(test) UNIT_TEST(test, begin, NULL)

FIXTURE_TEST(imports_have_their_numbers)
{
	static const uint32_t descending[NR_BOS] = { 5, 4, 6 };

	assert_int_equal(attach(descending, NULL, 0), 0);
	assert_int_equal(nr_mapped, NR_BOS);
	assert_int_equal(log_errors, 0);
}

FIXTURE_TEST(another_number_is_refused)
{
	first_number = 3;
	assert_int_equal(attach(numbers, NULL, 0), -EPROTO);
	assert_int_equal(nr_mapped, 0);
	assert_int_equal(log_errors, 1);
	assert_non_null(strstr(log_text, "gpu 0x1111: shared buffer 1 gets the handle 0x111100000003 instead of 0x111100000004"));
}

FIXTURE_TEST(only_what_is_mapped_is_asked_for_its_place)
{
	struct device_vma vmas[] = { { .minor = 128, .offset = OLD(9) }, { .minor = 128, .offset = OLD(1) } };

	assert_int_equal(attach(numbers, vmas, ARRAY_SIZE(vmas)), 0);
	assert_int_equal(nr_asked, 1);
	assert_int_equal(nr_scratch, 1);
	assert_int_equal(bos[0].restored_offset, 0);
	assert_int_equal(bos[1].restored_offset, RESTORED);
}

FIXTURE_TEST(without_mappings_no_render_node_is_opened)
{
	assert_int_equal(attach(numbers, NULL, 0), 0);
	assert_int_equal(nr_scratch, 0);
	assert_int_equal(nr_asked, 0);
}

UNIT_MAIN(NULL, NULL)
