// SPDX-License-Identifier: GPL-2.0-only
/* What the images say of buffers. The kernel is a few variables here: what it says of the memory, and what it makes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <libdrm/amdgpu_drm.h>

#include "unit.h"
#include "log_stub.h"
#include "machine_text.h"
#include "share/survey.h"
#include "amdgpu_plugin_drm.h"

#define GPU	 0x1111u
#define MINOR	 128u
#define FORCED	 0x208ull
#define COHERENT (1ull << 13)
#define UNCACHED (1ull << 14)
#define IMPORTED (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE)

#define NO_SUBSTITUTE (1u << 28)

static struct gem_info memory;	/* as the kernel tells it */
static uint64_t made_flags;	/* that GEM_CREATE takes */
static struct gem_info created; /* what it was asked for */
static unsigned int nr_created;
static uint32_t home;

int gem_create(int fd, const struct gem_info *info, uint32_t *ret)
{
	nr_created++;
	created = *info;
	*ret = 9;
	return info->flags & ~made_flags ? -EINVAL : 0;
}

int survey_look_at(struct survey *survey, uint32_t minor, int dmabuf_fd, struct memory *ret, struct kfd_share *metadata)
{
	assert_int_equal(minor, home);
	ret->info = memory;
	return 0;
}

int gem_close(int fd, uint32_t handle)
{
	assert_int_equal(handle, 9);
	return 0;
}

STUB(int, gem_mappings, (int fd, uint32_t handle, struct render_objects *objects), 0)

int survey_own_file(struct survey *survey, uint32_t minor)
{
	assert_int_equal(minor, home);
	return 0;
}

int survey_find_gpu(struct survey *survey, struct buffer *buffer)
{
	buffer->minor = home;
	return 0;
}

bool survey_next(const struct survey *survey, struct buffer *buffer)
{
	if (buffer->nr)
		return false;
	*buffer = (struct buffer){ .holders = survey->holders, .nr = 1, .dmabuf_fd = survey->holders->dmabuf_fd };
	return true;
}

STUB(bool, survey_is_private, (const struct survey *survey, const struct buffer *buffer), false)
STUB(bool, survey_same_device, (const struct survey *survey, uint32_t minor, uint32_t other), minor == other)
STUB(bool, references_of_tasks, (const struct references *references, uint64_t inode), false)

/* ---- one process that holds one buffer, which is older than the dump ---- */

static struct topology *nodes;
static struct gpu_process image;

static int decide(struct holder holder, uint32_t alloc_flags)
{
	struct bo bo = { .size = 8192, .gpu_id = GPU, .alloc_flags = alloc_flags, .dmabuf_fd = KFD_NO_FD };
	struct gpu_process *process = &image;
	const struct task_files no_files = { 0 };
	const struct share_request request = {
		.processes = &process, .nr_processes = 1, .files = &no_files,
	};
	struct survey survey = { .request = &request, .holders = &holder, .nr_holders = 1 };
	int err;

	kfd_state_done(&image.state);
	image.file.pid = 7;
	image.nodes = nodes;
	image.state.bos = calloc(1, sizeof(bo));
	assert_non_null(image.state.bos);
	image.state.nr_bos = image.state.nr_records = holder.kind == HOLDER_BO;
	*image.state.bos = bo;
	holder.minor = MINOR;
	holder.inode = 5;
	holder.dmabuf_fd = memfd_create("buffer", MFD_CLOEXEC);
	err = decide_all(&survey);
	free(survey.open);
	close(holder.dmabuf_fd);
	return err;
}

static int decide_bo(uint32_t alloc_flags)
{
	return decide((struct holder){ .bo = 0, .is_mappable = true }, alloc_flags);
}

static int decide_descriptor(void)
{
	return decide((struct holder){ .kind = HOLDER_DMABUF }, 0);
}

static int begin(void **unused)
{
	log_clear();
	memory = (struct gem_info){ .size = 8192, .domains = AMDGPU_GEM_DOMAIN_VRAM, .alignment = 4096 };
	made_flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED | AMDGPU_GEM_CREATE_NO_CPU_ACCESS;
	created = (struct gem_info){ 0 };
	nr_created = 0;
	home = MINOR;
	nodes = machine_of(GPU, "1 drm_render_minor=%u", MINOR);
	return 0;
}

static int end(void **unused)
{
	kfd_state_done(&image.state);
	topology_free(nodes);
	return 0;
}

/* ---- tests ---- */

#define FIXTURE_TEST(test) UNIT_TEST(test, begin, end)

FIXTURE_TEST(an_importer_that_is_left_alone_keeps_the_kind_of_memory)
{
	memory.flags = FORCED | COHERENT | UNCACHED | AMDGPU_GEM_CREATE_VRAM_CONTIGUOUS;
	assert_int_equal(decide_bo(IMPORTED), 0);
	assert_int_equal(image.state.bos->alloc_flags, IMPORTED | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT |
						 KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED | KFD_IOC_ALLOC_MEM_FLAGS_CONTIGUOUS);
	assert_false(kfd_state_shares(&image.state));
	memory.flags = FORCED | AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED;
	assert_int_equal(decide_bo(IMPORTED), 0);
	assert_int_equal(image.state.bos->alloc_flags, IMPORTED | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC);
	memory.flags = FORCED;
	assert_int_equal(decide_bo(IMPORTED), 0);
	assert_int_equal(image.state.bos->alloc_flags, IMPORTED);
}

/* The kernel adds nothing to what the process itself has asked for. */
FIXTURE_TEST(what_was_allocated_stays_as_it_is)
{
	const uint32_t flags = IMPORTED | NO_SUBSTITUTE;

	memory.flags = FORCED | COHERENT;
	assert_int_equal(decide_bo(flags), 0);
	assert_int_equal(image.state.bos->alloc_flags, flags);
}

FIXTURE_TEST(what_the_kernel_gives_all_memory_is_not_asked_for)
{
	memory.flags = FORCED | AMDGPU_GEM_CREATE_NO_CPU_ACCESS;
	assert_int_equal(decide_descriptor(), 0);
	assert_int_equal(image.state.nr_bos, 1);
	assert_int_equal(image.state.bos[0].share.kind, KFD_BO_GEM);
	assert_int_equal(image.state.bos[0].share.flags, AMDGPU_GEM_CREATE_NO_CPU_ACCESS);
	assert_int_equal(created.flags, AMDGPU_GEM_CREATE_NO_CPU_ACCESS);
	assert_int_equal(created.domains, AMDGPU_GEM_DOMAIN_VRAM);
	assert_int_equal(log_errors, 0);
}

FIXTURE_TEST(memory_that_the_kernel_does_not_make_is_refused)
{
	memory.flags = FORCED | COHERENT;
	assert_int_equal(decide_descriptor(), -EOPNOTSUPP);
	assert_int_equal(log_errors, 1);
	assert_non_null(strstr(log_text, "pid 7: a dma-buf of renderD128 is of memory that the kernel cannot recreate "
					 "(flags 0x2000): Invalid argument"));
	assert_int_equal(image.state.nr_bos, 0);
	made_flags |= COHERENT;
	assert_int_equal(decide_descriptor(), 0);
	assert_int_equal(image.state.bos[0].share.flags, COHERENT);
}

/* Even if the kernel would make it. */
FIXTURE_TEST(memory_that_cannot_be_copied_is_refused)
{
	made_flags = ~0ull;
	memory.flags = AMDGPU_GEM_CREATE_ENCRYPTED;
	assert_int_equal(decide_descriptor(), -EOPNOTSUPP);
	memory.flags = AMDGPU_GEM_CREATE_VM_ALWAYS_VALID;
	assert_int_equal(decide_descriptor(), -EOPNOTSUPP);
	memory.flags = 1ull << 20; /* of a later kernel: images do not take it */
	assert_int_equal(decide_descriptor(), -EOPNOTSUPP);
	assert_int_equal(nr_created, 0);
}

FIXTURE_TEST(memory_that_nobody_holds_on_its_own_gpu_is_refused)
{
	home = MINOR + 1;
	assert_int_equal(decide_bo(IMPORTED), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "pid 7: has a buffer of renderD129 that no process of the dump holds there"));
}

UNIT_MAIN(NULL, NULL)
