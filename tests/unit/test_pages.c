// SPDX-License-Identifier: GPL-2.0-only
/* Which contents are saved at the same time. The engine notes what it is given. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "unit.h"
#include "content/content.h"
#include "host/host.h"
#include "log_stub.h"
#include "pages/pages.h"
#include "pages/internal.h"
#include "amdgpu_plugin_drm.h"

#define GPU_A	  0xaaaau
#define GPU_B	  0xbbbbu
#define MINOR_A	  128u
#define MINOR_B	  129u

static char notes[1024]; /* of each run: "[FILE FILE]", then ">FILE" for each that follows on its GPU */
static bool is_streaming;
static unsigned int nr_runs, failing_run;
static struct content_tally tally;

/* ---- what pages.c calls ---- */

STUB(bool, criu_is_streaming, (void), is_streaming)

void image_name_make(enum image_kind kind, int id, uint32_t gpu_id, char ret[IMAGE_NAME_MAX])
{
	assert_int_equal(kind, IMAGE_PAGES);
	snprintf(ret, IMAGE_NAME_MAX, "%d-%x", id, gpu_id);
}

STUB(int, criu_image_create, (const char *name), open("/dev/null", O_WRONLY | O_CLOEXEC))

static bool has_images;

STUB(int, criu_image_open, (const char *name), has_images ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -ENOENT)

STUB(int, drm_open_minor, (uint32_t minor), open("/dev/null", O_RDWR | O_CLOEXEC))

struct progress progress_open(const char *path, const char *stage)
{
	return (struct progress){ .stage = stage, .fd = -1 };
}

STUB(void, progress_close, (struct progress *progress), /* nothing */)
STUB(void, progress_report, (void *arg, const struct content_gpu *gpu), /* nothing */)

int content_check_file(const struct content_gpu *gpu)
{
	assert_true(gpu->pages_fd >= 0);
	return 0;
}

/* What process 8 declares. */
static struct content_range declared[1];

void __wrap_discard_read(pid_t pid, struct discard *ret)
{
	*ret = (struct discard){ 0 };
	if (pid == 1008 && declared[0].to)
		assert_int_equal(array_add(ret->ranges, ret->nr, declared[0]), 0);
}

/* A checksum says of which file and BO it is. */
static uint32_t checksum(const char *name, uint32_t index)
{
	return crc32c(index, name, strlen(name));
}

static void save(struct content_gpu *gpu)
{
	int id = atoi(gpu->pages_name);

	assert_int_equal(gpu->pid, 1000 + id);
	strcat(notes, gpu->pages_name);
	for (size_t i = 0; i < gpu->nr_discarded; i++)
		sprintf(notes + strlen(notes), "(%llu-%llu)", (unsigned long long)gpu->discarded[i].from,
			(unsigned long long)gpu->discarded[i].to);
	for (size_t b = 0; b < gpu->nr_bos; b++) {
		gpu->bos[b].crc32c = checksum(gpu->pages_name, gpu->bos[b].index);
		gpu->bos[b].has_crc32c = true;
	}
}

/* Whether the GPU has something to copy, next. */
static int begin_next(struct content_gpu *gpu, const struct content_options *options)
{
	int r = options->next(options->next_arg, gpu);

	if (r > 0)
		save(gpu);
	return r;
}

/* The last GPU is done with all that it has before the others are with their first. */
static int run_dump(struct content_gpu *gpus, size_t nr_gpus, const struct content_options *options)
{
	int r;

	assert_ptr_equal(options->tally, &tally);
	strcat(notes, "[");
	for (size_t i = 0; i < nr_gpus; i++) {
		strcat(notes, i ? " " : "");
		assert_int_equal(begin_next(&gpus[i], options), 1);
	}
	strcat(notes, "]");
	if (++nr_runs == failing_run)
		return -EIO;
	for (size_t i = nr_gpus; i-- > 0;)
		for (;;) {
			size_t len = strlen(notes);

			strcat(notes, ">");
			r = begin_next(&gpus[i], options);
			if (r < 0)
				return r;
			if (!r) {
				notes[len] = '\0';
				break;
			}
		}
	return 0;
}

int content_copy(enum content_direction direction, struct content_gpu *gpus, size_t nr_gpus,
		 const struct content_options *options)
{
	int r = 0;

	if (direction == CONTENT_DUMP)
		return run_dump(gpus, nr_gpus, options);
	for (size_t i = 0; r >= 0 && i < nr_gpus; i++)
		while ((r = options->next(options->next_arg, &gpus[i])) > 0)
			sprintf(notes + strlen(notes), "%zu:%s.", i, gpus[i].pages_name);
	return r;
}

/* ---- three processes: on GPU A, with a little on both, on GPU B ---- */

struct process {
	struct kfd_criu_device_bucket devices[2];
	struct bo bos[2];
	uint32_t minors[2];
	struct gpu_process saved;
};

static struct process processes[3];
static bool shared; /* the buffer of the second one on GPU B */

static void add_gpu(struct process *process, uint32_t gpu_id, uint32_t minor, uint64_t bytes)
{
	uint32_t at = process->saved.state.nr_devices++;

	process->devices[at].user_gpu_id = gpu_id;
	process->minors[at] = minor;
	process->bos[at] = (struct bo){
		.gpu_id = gpu_id, .size = bytes, .dmabuf_fd = KFD_NO_FD, .alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM,
	};
	process->saved.state.nr_bos++;
	process->saved.state.nr_records++;
	process->saved.state.devices = process->devices;
	process->saved.state.bos = process->bos;
	process->saved.minors = process->minors;
}

static int copy_all(int (*copy)(struct gpu_process *const *processes, size_t nr_processes, const struct settings *settings,
				struct content_tally *tally))
{
	static const struct settings settings;
	struct gpu_process *pages[3];

	notes[0] = '\0';
	nr_runs = 0;
	memset(processes, 0, sizeof(processes));
	add_gpu(&processes[0], GPU_A, MINOR_A, 8192);
	add_gpu(&processes[1], GPU_B, MINOR_B, 4096);
	add_gpu(&processes[1], GPU_A, MINOR_A, 4096);
	add_gpu(&processes[2], GPU_B, MINOR_B, 8192);
	processes[1].bos[0].share.buffer = shared;
	for (int i = 0; i < 3; i++) {
		processes[i].saved.file.pid = 1007 + i;
		processes[i].saved.id = 7 + i;
		pages[i] = &processes[i].saved;
	}
	return copy(pages, 3, &settings, &tally);
}

static int dump(void)
{
	return copy_all(pages_dump);
}

static void expect_checksums(void)
{
	char name[IMAGE_NAME_MAX];

	for (int i = 0; i < 3; i++)
		for (uint32_t b = 0; b < processes[i].saved.state.nr_bos; b++) {
			snprintf(name, sizeof(name), "%d-%x", 7 + i, processes[i].bos[b].gpu_id);
			assert_true(processes[i].bos[b].has_crc32c);
			assert_int_equal(processes[i].bos[b].crc32c, checksum(name, b));
		}
}

TEST(a_gpu_saves_one_process_at_a_time_and_others_meanwhile)
{
	assert_int_equal(dump(), 0);
	assert_string_equal(notes, "[7-aaaa 8-bbbb]>9-bbbb>8-aaaa");
	expect_checksums();
}

/* Of suspended processes: each GPU is one place of the engine, with one staging memory, whatever their number. */
TEST(a_gpu_fills_one_process_after_the_other)
{
	has_images = true;
	assert_int_equal(copy_all(pages_fill), 0);
	has_images = false;
	assert_string_equal(notes, "0:7-aaaa.0:8-aaaa.1:8-bbbb.1:9-bbbb.");
}

TEST(a_stream_has_one_process_at_a_time)
{
	is_streaming = true;
	assert_int_equal(dump(), 0);
	is_streaming = false;
	assert_string_equal(notes, "[7-aaaa][8-bbbb 8-aaaa][9-bbbb]");
	expect_checksums();
}

/* Of the second process: its buffer on GPU B has address 0, as that on A. */
TEST(what_a_process_does_not_need_is_told_to_the_engine)
{
	declared[0] = (struct content_range){ 1024, 4096 };
	assert_int_equal(dump(), 0);
	assert_string_equal(notes, "[7-aaaa 8-bbbb(1032-4104)]>9-bbbb>8-aaaa(1032-4104)");
	assert_non_null(strstr(log_text, "gpu 0xbbbb: pid 1008 does not need 3072 bytes, which will be zeros"));
	assert_int_equal(pages_bytes(&processes[0].saved), 8192);
	assert_int_equal(pages_bytes(&processes[1].saved), 2 * (4096 - 3072));
	shared = true;
	assert_int_equal(dump(), 0);
	assert_int_equal(pages_bytes(&processes[1].saved), 2 * 4096 - 3072);
	assert_string_equal(notes, "[7-aaaa 8-bbbb]>9-bbbb>8-aaaa(1032-4104)");
	shared = false;
	declared[0].to = 0;
}

TEST(the_first_failure_ends_it)
{
	failing_run = 1;
	assert_int_equal(dump(), -EIO);
	failing_run = 0;
	assert_int_equal(nr_runs, 1);
}

/* Other writers leave out the file into which there is nothing to put. */
TEST(a_gpu_without_contents_needs_no_file)
{
	static const struct settings settings;
	struct process process = { 0 };
	struct gpu_process *saved = &process.saved;

	add_gpu(&process, GPU_A, MINOR_A, 4096);
	saved->state.nr_bos = saved->state.nr_records = 0;
	assert_int_equal(pages_fill(&saved, 1, &settings, &tally), 0);
	saved->state.nr_bos = 1;
	assert_int_equal(pages_fill(&saved, 1, &settings, &tally), -ENOENT);
	fail_clear();
}

UNIT_MAIN(NULL, NULL)
