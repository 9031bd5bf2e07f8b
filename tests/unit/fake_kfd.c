// SPDX-License-Identifier: GPL-2.0-only
/* The stand-in for the kernel: what the devices do. The wrapped calls are in fake_calls.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>

#include "fake_kfd.h"
#include "fake_kfd_internal.h"
#include "kernel/kfd.h"
#include "kernel/machine.h"
#include "kfd_ioctl.h"
#include "records_fixture.h"
#include "remove_all.h"

#define SYSFS	  "sys/class/kfd/kfd/"
#define KFD_MAJOR 500
#define GPU_A	  0x1111u
#define GPU_B	  0x2222u
#define MINOR_A	  128u
#define MINOR_FOREIGN 140u
#define DOORBELL(gpu) ((3ull << 62) | ((uint64_t)(gpu) << KFD_MMAP_GPU_SHIFT))
/* Where BOs are in a render node: as dumped, and how much higher after a restore. */
#define OFFSET_A	  0x100000000ull
#define OFFSET_RESTORED	  0x40000000ull

#define VRAM 1u
#define GTT  2u
#define BELL 8u
#define PUBLIC	 (1u << 29)
#define WRITABLE (1u << 31)
#define IMPORT_AT 0x7f0000300000ull
#define OBJECT_BYTES 8192u

/* The last one is there when the process shares: an import of the first. */
static const struct kfd_criu_bo_bucket bos[FAKE_NR_BOS + 1] = {
	{ .addr = 0x7f0000000000, .size = 8192, .offset = OFFSET_A, .gpu_id = GPU_A, .alloc_flags = VRAM | PUBLIC },
	{ .addr = 0x7f0000100000, .size = 8192, .offset = DOORBELL(GPU_A), .gpu_id = GPU_A, .alloc_flags = BELL },
	{ .addr = 0x7f0000200000, .size = 4096, .offset = OFFSET_A + 8192, .gpu_id = GPU_A, .alloc_flags = GTT },
	{ .addr = 0x7f1000000000, .size = 12288, .offset = OFFSET_A, .gpu_id = GPU_B, .alloc_flags = VRAM },
	{ .addr = IMPORT_AT, .size = 8192, .offset = OFFSET_A, .gpu_id = GPU_A, .alloc_flags = VRAM | WRITABLE },
};
/* Their numbers: with the import's, there is a gap of two. */
static const uint32_t numbers[FAKE_NR_BOS + 1] = { 0, 1, 2, 0, 5 };
#define NR_FILLERS 2u

const struct fake_vma fake_vmas[FAKE_NR_VMAS] = {
	{ "/dev/kfd", 0x10000, 0x12000, DOORBELL(GPU_A), DOORBELL(GPU_A) },
	{ "/dev/dri/renderD128", 0x20000, 0x21000, OFFSET_A, OFFSET_A + OFFSET_RESTORED },
	{ "/dev/dri/renderD129", 0x30000, 0x33000, OFFSET_A, OFFSET_A + OFFSET_RESTORED },
};

const struct fake_vma fake_render_vma = { "/dev/dri/renderD128", 0x20000, 0x21000, OFFSET_A, 0 };

/* A KFD process. */
struct process {
	bool exists, paused, resumed;
	int bos[FAKE_NR_BOS]; /* memfds, -1: none */
};

char fake_root[64];
static struct fixture_records records; /* what the kernel knows of the process */
static struct fixture_records taken;  /* what RESTORE takes */
static struct process stopped, restored;
static ino_t first_inode;
static int first_dmabuf; /* of an object that was made before the process had any */
static bool context_paused;
static int kfd_file, second_kfd_file = -1, render_files[FAKE_NR_GPUS]; /* of the stopped process */
static int foreign_file, unused_file; /* of other tasks */
static bool second_is_context;
static bool shares;
static int object = -1; /* a memfd: an object that is not of the KFD */
/* What the restored process has done with numbers of the KFD, and the plugin's own process. */
static struct {
	bool is_imported, is_mapped;
	unsigned int nr_freed;
} sharing;
static int handed_out[FAKE_NR_BOS + 1]; /* memfds that CHECKPOINT gives instead of a BO's own; 0: none */
static int stranger_file = -1, foreign = -1;
static unsigned int nr_render_contexts, nr_render_syncobjs;
static uint32_t nr_losses; /* of the second GPU's VRAM */
static bool loses_vram;
static uint32_t id_of_a = GPU_A; /* of now; the process knows the GPU by GPU_A */
static uint64_t vram_free = UINT64_MAX;
/* The second-level trap handlers, and what reads them. */
#define HIGH_END 0xffffffffffbf0000ull
static uint64_t traps[FAKE_NR_GPUS][2], restored_traps[FAKE_NR_GPUS][2];
static unsigned int nr_traps_set, nr_job_contexts[2]; /* of files of the stopped process */
static bool tells_exceptions; /* of exceptions */
static int job_page = -1;
/* What PROCESS_INFO says instead, and whose process it is. */
static struct kfd_ioctl_criu_args claimed;
static pid_t owner = FAKE_PID;
static ino_t kfd_inode, render_inodes[FAKE_NR_GPUS], foreign_inode;
static dev_t file_system;

/* ---- the machine ---- */

static void die(const char *what)
{
	perror(what);
	abort(); /* of a test program */
}

/* A file below the root, with its directories. */
static void put(const char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(const char *text, const char *fmt, ...)
{
	char path[PATH_MAX], *slash;
	size_t used = (size_t)snprintf(path, sizeof(path), "%s/", fake_root);
	va_list args;
	int fd;

	va_start(args, fmt);
	vsnprintf(path + used, sizeof(path) - used, fmt, args);
	va_end(args);
	for (slash = strchr(path + used, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd))
		die(path);
}

static void same_file(const char *from, const char *to)
{
	char a[PATH_MAX], b[PATH_MAX];

	snprintf(a, sizeof(a), "%s/%s", fake_root, from);
	snprintf(b, sizeof(b), "%s/%s", fake_root, to);
	put("", "%s", to);
	if (unlink(b) || link(a, b))
		die(b);
}

static void make_gpu(int node, uint32_t gpu_id, uint32_t minor_number, uint32_t nr_xcc)
{
	char text[300];

	snprintf(text, sizeof(text), "%u\n", gpu_id);
	put(text, SYSFS "topology/nodes/%d/gpu_id", node);
	snprintf(text, sizeof(text),
		 "cpu_cores_count 0\nsimd_count 480\nmem_banks_count 1\nio_links_count 1\nvendor_id 4098\n"
		 "device_id 29580\ngfx_target_version 90008\ndrm_render_minor %u\nnum_xcc %u\n", minor_number,
		 nr_xcc);
	put(text, SYSFS "topology/nodes/%d/properties", node);
	put("arcturus\n", SYSFS "topology/nodes/%d/name", node);
	put("heap_type 1\nsize_in_bytes 1073741824\n", SYSFS "topology/nodes/%d/mem_banks/0/properties", node);
	put("type 2\nnode_to 0\nweight 20\n", SYSFS "topology/nodes/%d/io_links/0/properties", node);
}

static void make_sysfs(void)
{
	char text[32];

	snprintf(text, sizeof(text), "%d:0\n", KFD_MAJOR);
	put(text, SYSFS "dev");
	put("1\n", SYSFS "topology/generation_id");
	put("0\n", SYSFS "topology/nodes/0/gpu_id");
	put("cpu_cores_count 8\nsimd_count 0\n", SYSFS "topology/nodes/0/properties");
	make_gpu(1, GPU_A, MINOR_A, 1);
	make_gpu(2, GPU_B, MINOR_A + 1, 1);
	put("32768\n", SYSFS "proc/%d/pasid", FAKE_PID);
	put("", "sys/dev/char/226:%u/device/drm", MINOR_A);
	put("", "sys/dev/char/226:%u/device/drm", MINOR_A + 1);
}

static void make_status(pid_t pid, pid_t tracer)
{
	char text[100];

	snprintf(text, sizeof(text), "Name:\tjob\nTracerPid:\t%d\nNSpid:\t%d\n", tracer, pid);
	put(text, "proc/%d/status", pid);
}

void fake_traced_by(pid_t tracer)
{
	make_status(FAKE_PID, tracer);
}

static void make_maps(pid_t pid, const struct fake_vma *vmas, int nr_vmas)
{
	char text[1024];
	size_t used = 0;
	int i;

	used += (size_t)snprintf(text, sizeof(text), "00400000-00401000 r-xp 00000000 08:01 77 /usr/bin/job\n");
	for (i = 0; i < nr_vmas; i++) {
		const struct fake_vma *vma = &vmas[i];

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%08lx-%08lx rw-s %08lx 00:05 5 %s\n",
					 (unsigned long)vma->start, (unsigned long)vma->end, (unsigned long)vma->offset,
					 vma->path);
		snprintf(text + 900, 100, "proc/%d/map_files/%lx-%lx", pid, (unsigned long)vma->start,
			 (unsigned long)vma->end);
		same_file(vma->path + 1, text + 900);
	}
	text[used] = '\0';
	put(text, "proc/%d/maps", pid);
	put("", "proc/%d/map_files/400000-401000", pid);
	put("", "proc/%d/mem", pid);
}

void fake_unmap_devices(void)
{
	make_maps(FAKE_PID, NULL, 0);
}

void fake_map_all(void)
{
	make_maps(FAKE_PID, fake_vmas, FAKE_NR_VMAS);
}

static void make_task(pid_t pid, const struct fake_vma *vmas, int nr_vmas)
{
	make_status(pid, gettid());
	put("", "proc/%d/fd/0", pid);
	make_maps(pid, vmas, nr_vmas);
}

void fake_make_tree(void)
{
	static const struct fake_vma foreigner = { "/dev/dri/renderD140", 0x40000, 0x41000, 0x1000, 0 };

	make_task(FAKE_IDLE_PID, NULL, 0);
	make_task(FAKE_RENDER_PID, NULL, 0);
	same_file("dev/dri/renderD129", "proc/4713/fd/10");
	make_task(FAKE_FOREIGN_PID, &foreigner, 1);
}

void fake_make_lost_task(unsigned int vma)
{
	make_task(FAKE_LOST_PID, &fake_vmas[vma], 1);
}

void fake_show_process(unsigned int nr_queues, uint64_t vram_bytes)
{
	char text[32], path[PATH_MAX];

	put("", SYSFS "proc/%d/queues/x", FAKE_PID);
	for (unsigned int i = 0; i < nr_queues; i++)
		put("4369\n", SYSFS "proc/%d/queues/%u/gpuid", FAKE_PID, i);
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)vram_bytes);
	put(text, SYSFS "proc/%d/vram_%u", FAKE_PID, GPU_A);
	put("0\n", SYSFS "proc/%d/vram_%u", FAKE_PID, GPU_B);
	put("32768\n", SYSFS "proc/%d/pasid", FAKE_PID);
	snprintf(path, sizeof(path), "%s/" SYSFS "proc/%d/queues/x", fake_root, FAKE_PID);
	unlink(path);
}

static void remove_below_root(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void remove_below_root(const char *fmt, ...)
{
	char name[128], path[PATH_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(name, sizeof(name), fmt, args);
	va_end(args);
	snprintf(path, sizeof(path), "%s/%s", fake_root, name);
	if (remove_all(path))
		die(path);
}

static void remove_tree(void)
{
	for (pid_t pid = FAKE_IDLE_PID; pid <= FAKE_LOST_PID; pid++)
		remove_below_root("proc/%d", pid);
}

void fake_hide_process(void)
{
	remove_below_root(SYSFS "proc/%d", FAKE_PID);
	remove_below_root("fdinfo");
}

void fake_show_pasids(const uint32_t *pasids)
{
	char text[64];

	for (int i = 0; i < FAKE_NR_GPUS; i++) {
		snprintf(text, sizeof(text), "pos:\t0\ndrm-driver:\tamdgpu\npasid:\t%u\n", pasids[i]);
		put(text, "fdinfo/%d", FAKE_RENDER_A + i);
	}
}

void fake_use_render_file(unsigned int nr_contexts, unsigned int nr_syncobjs)
{
	nr_render_contexts = nr_contexts;
	nr_render_syncobjs = nr_syncobjs;
}

void fake_lose_vram(void)
{
	loses_vram = true;
}

void fake_reopen(void)
{
	id_of_a = GPU_A;
	make_gpu(1, GPU_A, MINOR_A, 1);
	make_maps(FAKE_PID, fake_vmas, FAKE_NR_VMAS);
	remove_tree();
	remove_below_root("proc/4711/fd/22");
	remove_below_root("sys/class/drm/renderD140");
	same_file("dev/kfd", "proc/4711/fd/5");
	same_file("dev/dri/renderD128", "proc/4711/fd/6");
	same_file("dev/dri/renderD129", "proc/4711/fd/7");
	remove_below_root("proc/4711/fd/8");
}

void fake_rename_gpu(uint32_t gpu_id)
{
	id_of_a = gpu_id;
	make_gpu(1, gpu_id, MINOR_A, 1);
}

uint64_t fake_restored_offset(const struct fake_vma *vma)
{
	return vma->restored == DOORBELL(GPU_A) ? DOORBELL(id_of_a) : vma->restored;
}

void fake_say_counts(uint32_t nr_devices, uint32_t nr_of_bos, uint64_t state_bytes)
{
	claimed = (struct kfd_ioctl_criu_args){
		.num_devices = nr_devices, .num_bos = nr_of_bos, .priv_data_size = state_bytes, .pid = FAKE_PID,
	};
}

void fake_say_owner(pid_t pid)
{
	owner = pid;
}

void fake_leave_free(uint64_t bytes)
{
	vram_free = bytes;
}

void __real_usage_read(int sysfs, const struct topology *machine, struct gpu_usage *usage);
void __wrap_usage_read(int sysfs, const struct topology *machine, struct gpu_usage *usage)
{
	__real_usage_read(sysfs, machine, usage);
	for (unsigned int i = 0; i < machine->nr_nodes; i++) {
		usage[i].vram_known = vram_free != UINT64_MAX;
		usage[i].vram_free = vram_free;
	}
}

static bool is_guarded;

bool fake_is_guarded(void)
{
	return is_guarded;
}

/* Real ones: test_guard.c. */
pid_t __wrap_guard_start(const int *pids, size_t nr);
pid_t __wrap_guard_start(const int *pids, size_t nr)
{
	(void)pids;
	is_guarded = nr > 0;
	return nr ? FAKE_PID : 0;
}

void __wrap_guard_end(pid_t guard);
void __wrap_guard_end(pid_t guard)
{
	if (guard && guard != FAKE_PID)
		abort();
	is_guarded = false;
}

/* test_ending.c */
bool __wrap_criu_task_has_ended(pid_t pid);
bool __wrap_criu_task_has_ended(pid_t pid)
{
	(void)pid;
	return false;
}

void fake_hide_gpu(void)
{
	make_gpu(1, GPU_A, MINOR_A + 70, 1);
}

static void make_process_directory(void)
{
	fake_traced_by(gettid());
	put("", "proc/%d/fd/0", FAKE_PID);
	put("", "proc/%d/root/dev/shm/other", FAKE_PID);
	fake_reopen();
}

static int open_device(const char *name, ino_t *ret_inode)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/dev/%s", fake_root, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		die(path);
	*ret_inode = st.st_ino;
	file_system = st.st_dev;
	return fd;
}

static int make_bo(uint64_t bytes, uint8_t seed)
{
	int fd = memfd_create("bo", MFD_CLOEXEC);
	uint64_t i;

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		die("memfd");
	for (i = 0; seed && i < bytes; i++) {
		uint8_t byte = (uint8_t)(i * 31 + i / 256 + seed);

		if (pwrite(fd, &byte, 1, (off_t)i) != 1)
			die("memfd");
	}
	return fd;
}

static void make_bos(struct process *process, bool filled)
{
	int i;

	for (i = 0; i < FAKE_NR_BOS; i++)
		process->bos[i] = bos[i].alloc_flags == BELL ? -1 : make_bo(bos[i].size, filled ? (uint8_t)(i + 1) : 0);
	for (i = 0; i < FAKE_NR_BOS; i++)
		if (process->bos[i] >= 0)
			fake_gem_add(process->bos[i], bos[i].gpu_id == GPU_B,
				     bos[i].offset + (filled ? 0 : OFFSET_RESTORED), bos[i].size,
				     bos[i].alloc_flags & VRAM);
	process->exists = true;
}

static uint32_t nr_bos(void)
{
	return FAKE_NR_BOS + shares;
}

/* The SDMA queue is of so many XCCs. */
static void fill(struct fixture_records *to, const struct queue_record *compute, uint32_t nr_xcc)
{
	const struct queue_record sdma = { .gpu_id = GPU_B, .type = QUEUE_TYPE_SDMA, .mqd_size = nr_xcc * 512 };

	fixture_begin(to, FAKE_NR_GPUS, nr_bos());
	for (uint32_t i = 0; i < nr_bos(); i++) {
		uint8_t *record = to->bytes + 8 + 8 * FAKE_NR_GPUS + 272 * i;

		fixture_u32(record + 8, numbers[i]);
		fixture_u32(record + 12, bos[i].gpu_id);
	}
	fixture_queue(to, compute);
	fixture_queue(to, &sdma);
	fixture_event(to);
}

static const struct queue_record ordinary = { .gpu_id = GPU_A, .mqd_size = 2048, .ctl_stack_size = 4096 };

static void make_records(void)
{
	fill(&records, &ordinary, 1);
	taken = records;
}

void fake_give_xccs(uint32_t nr_xcc)
{
	make_gpu(2, GPU_B, MINOR_A + 1, nr_xcc);
	fill(&records, &ordinary, nr_xcc);
	fill(&taken, &ordinary, 1);
}

void fake_leave_out_stack(bool busy)
{
	struct queue_record compute = {
		.gpu_id = GPU_A, .mqd_size = 2048, .cwsr_address = 0x7f0000200000,
		.mqd_stack_size = 4096, .mqd_stack_offset = busy ? 8 : 4096, .mqd_wave_offset = busy ? 8192 : 4096,
	};

	fill(&records, &compute, 1);
	compute.mqd_stack_offset = compute.mqd_wave_offset = compute.ctl_stack_size = 4096;
	fill(&taken, &compute, 1);
}

static void add_memory(struct fixture_records *to, uint64_t start, uint64_t bytes, bool xnack)
{
	fixture_svm_place(fixture_svm_range(to), start, bytes);
	if (xnack)
		fixture_xnack(to);
}

void fake_add_memory(uint64_t start, uint64_t bytes, bool xnack)
{
	add_memory(&records, start, bytes, xnack);
	add_memory(&taken, start, bytes, xnack);
}

void fake_kfd_begin(void)
{
	struct stat st;

	make_records();
	strcpy(fake_root, "/tmp/fake_kfd.XXXXXX");
	if (!mkdtemp(fake_root))
		die(fake_root);
	put("", "dev/kfd");
	put("", "dev/dri/renderD128");
	put("", "dev/dri/renderD129");
	put("", "dev/dri/renderD140");
	make_sysfs();
	make_process_directory();
	kfd_file = open_device("kfd", &kfd_inode);
	render_files[0] = open_device("dri/renderD128", &render_inodes[0]);
	render_files[1] = open_device("dri/renderD129", &render_inodes[1]);
	unused_file = open_device("dri/renderD129", &render_inodes[1]);
	foreign_file = open_device("dri/renderD140", &foreign_inode);
	/* They are known here by numbers that children keep. */
	fake_gem_mappings(unused_file);
	fake_gem_mappings(render_files[0]);
	fake_gem_mappings(render_files[1]);
	first_dmabuf = make_bo(4096, 0);
	job_page = make_bo(4096, 0);
	if (fstat(first_dmabuf, &st))
		die("memfd");
	first_inode = st.st_ino;
	make_bos(&stopped, true);
	stopped.resumed = true;
}

static void share_files(void)
{
	fake_gem_give(render_files[0], 2, stopped.bos[0]);
	fake_gem_give(render_files[0], 5, object);
	fake_gem_map(render_files[0], 2, bos[0].addr, 0, bos[0].size); /* the KFD's own */
	fake_gem_map(render_files[0], 2, 0x7f3000000000, 4096, 4096);
	fake_gem_map(render_files[0], 5, 0x7f3000100000, 0, OBJECT_BYTES);
	fake_gem_syncobj(render_files[0], 2, 7);
	fake_gem_describe(stopped.bos[0], "token");
}

void fake_share(void)
{
	shares = true;
	object = make_bo(OBJECT_BYTES, 77);
	fake_gem_add(object, 0, OFFSET_A + 0x100000, OBJECT_BYTES, true);
	make_records();
	share_files();
	fake_gem_add_bo(stopped.bos[0]);
	fake_gem_add_bo(stopped.bos[0]);
}

void fake_add_stranger(void)
{
	struct stat st;
	char text[64];
	ino_t inode;

	if (fstat(stopped.bos[0], &st))
		die("memfd");
	snprintf(text, sizeof(text), "pos:\t0\nino:\t%lu\nexp_name:\tdrm\n", (unsigned long)st.st_ino);
	put(text, "proc/4712/task/4712/fdinfo/21");
	stranger_file = open_device("dri/renderD128", &inode);
	fake_gem_give(stranger_file, 1, stopped.bos[0]);
	fake_gem_add_bo(stopped.bos[0]);
	fake_gem_free_bo(stopped.bos[0]);
}

void fake_confuse(int bo, int with)
{
	handed_out[bo] = stopped.bos[with];
}

void fake_second_dmabuf(void)
{
	handed_out[FAKE_NR_BOS] = make_bo(bos[0].size, 1);
	fake_gem_add(handed_out[FAKE_NR_BOS], 0, bos[0].offset, bos[0].size, true);
}

void fake_open_foreign_dmabuf(void)
{
	char path[PATH_MAX], target[64];

	foreign = make_bo(OBJECT_BYTES, 0);
	fake_gem_add(foreign, FAKE_NR_GPUS, OFFSET_A, OBJECT_BYTES, true);
	snprintf(path, sizeof(path), "%s/proc/4711/fd/22", fake_root);
	snprintf(target, sizeof(target), "/proc/self/fd/%d", foreign);
	if (symlink(target, path))
		die(path);
	put("", "sys/class/drm/renderD140/device/vendor");
	snprintf(path, sizeof(path), "%s/sys/class/drm/renderD140/device/driver", fake_root);
	if (symlink("../bus/pci/drivers/amdgpu", path))
		die(path);
}

/* Another child may have closed it already: they have one file system. */
void fake_render_only(void)
{
	fake_reopen();
	fake_close(FAKE_KFD_FD);
	make_maps(FAKE_PID, &fake_render_vma, 1);
	object = make_bo(OBJECT_BYTES, 77);
	fake_gem_add(object, 0, OFFSET_A + 0x100000, OBJECT_BYTES, true);
	share_files();
}

void fake_kfd_forget(void)
{
	int i;

	for (i = 0; restored.exists && i < FAKE_NR_BOS; i++)
		if (restored.bos[i] >= 0) {
			fake_gem_remove(restored.bos[i]);
			close(restored.bos[i]);
		}
	restored = (struct process){ 0 };
	memset(&sharing, 0, sizeof(sharing));
	fake_gem_forget();
}

void fake_kfd_end(void)
{
	int i;

	fake_kfd_forget();
	if (object >= 0)
		close(object);
	close(first_dmabuf);
	close(job_page);
	for (i = 0; i < FAKE_NR_BOS; i++)
		if (stopped.bos[i] >= 0)
			close(stopped.bos[i]);
	close(kfd_file);
	if (second_kfd_file >= 0)
		close(second_kfd_file);
	close(render_files[0]);
	close(render_files[1]);
	close(unused_file);
	close(foreign_file);
	if (remove_all(fake_root))
		die(fake_root);
}

/* ---- files ---- */

int fake_process_file(int fd)
{
	int file = fd == FAKE_KFD_FD ? kfd_file :
		   fd == FAKE_SECOND_KFD_FD ? second_kfd_file :
		   fd == FAKE_RENDER_FD ? render_files[0] :
		   fd == FAKE_RENDER_FD + 1 ? render_files[1] :
		   fd == FAKE_FOREIGN_FD ? foreign_file :
		   fd == FAKE_UNUSED_FD ? unused_file :
		   fd == 22 ? foreign : -1;

	return file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 0);
}

void fake_close(int fd)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/proc/%d/fd/%d", fake_root, FAKE_PID, fd);
	if (unlink(path))
		die(path);
}

void fake_open_second_kfd(bool context)
{
	same_file("dev/kfd", "proc/4711/fd/8");
	second_kfd_file = open_device("kfd", &kfd_inode);
	second_is_context = context;
}

enum fake_device fake_device_of(const struct stat *st)
{
	if (st->st_dev != file_system)
		return FAKE_NO_DEVICE;
	if (st->st_ino == kfd_inode)
		return FAKE_KFD;
	if (st->st_ino == render_inodes[0])
		return FAKE_RENDER_A;
	if (st->st_ino == render_inodes[1])
		return FAKE_RENDER_B;
	return st->st_ino == foreign_inode ? FAKE_FOREIGN : FAKE_NO_DEVICE;
}

void fake_stat(struct stat *st)
{
	enum fake_device device = fake_device_of(st);

	/* Numbers of dma-bufs ascend, those of memfds need not. */
	if (first_inode && st->st_ino == first_inode)
		st->st_ino = 1;
	if (device == FAKE_NO_DEVICE)
		return;
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = device == FAKE_KFD ? makedev(KFD_MAJOR, 0) :
		      device == FAKE_FOREIGN ? makedev(226, MINOR_FOREIGN) :
					       makedev(226, MINOR_A + (device == FAKE_RENDER_B));
}

/* ---- /dev/kfd ---- */

static bool same_open_file(int a, int b)
{
	pid_t self = getpid();

	return b >= 0 && !syscall(SYS_kcmp, self, self, KCMP_FILE, a, b);
}

/* What a file of the stopped process pauses. NULL for other files. */
static bool *paused_by(int fd)
{
	if (same_open_file(fd, kfd_file))
		return &stopped.paused;
	if (!same_open_file(fd, second_kfd_file))
		return NULL;
	return second_is_context ? &context_paused : &stopped.paused;
}

static int process_info(struct kfd_ioctl_criu_args *args, bool *paused)
{
	if (*paused)
		return -EBUSY; /* a real kernel counts, and the process never runs again */
	if (!fake_is_guarded())
		return -EPERM;
	*paused = true;
	if (claimed.pid) {
		*args = claimed;
		return 0;
	}
	args->num_devices = FAKE_NR_GPUS;
	args->num_bos = nr_bos();
	args->num_objects = records.nr_objects;
	args->priv_data_size = records.size;
	args->pid = (uint32_t)owner;
	return 0;
}

static int checkpoint(const struct kfd_ioctl_criu_args *args)
{
	struct kfd_criu_device_bucket *devices = (void *)(uintptr_t)args->devices;
	struct kfd_criu_bo_bucket *out = (void *)(uintptr_t)args->bos;
	int i;

	nr_losses += loses_vram;

	if (!stopped.paused || args->num_devices != FAKE_NR_GPUS || args->num_bos != nr_bos() ||
	    args->num_objects != records.nr_objects || args->priv_data_size != records.size)
		return -EINVAL;
	devices[0] = (struct kfd_criu_device_bucket){ .user_gpu_id = GPU_A, .actual_gpu_id = GPU_A };
	devices[1] = (struct kfd_criu_device_bucket){ .user_gpu_id = GPU_B, .actual_gpu_id = GPU_B };
	for (i = 0; i < (int)nr_bos(); i++) {
		int memfd = handed_out[i] ? handed_out[i] : stopped.bos[i == FAKE_NR_BOS ? 0 : i];

		out[i] = bos[i];
		out[i].dmabuf_fd = (uint32_t)(memfd < 0 ? KFD_NO_FD : dup(memfd));
	}
	memcpy((void *)(uintptr_t)args->priv_data, records.bytes, records.size);
	return 0;
}

static bool devices_are_right(const struct kfd_criu_device_bucket *devices)
{
	struct stat st;
	uint32_t i;

	for (i = 0; i < FAKE_NR_GPUS; i++) {
		bool is_a = devices[i].actual_gpu_id == id_of_a;
		enum fake_device wanted = is_a ? FAKE_RENDER_A : FAKE_RENDER_B;

		if (devices[i].user_gpu_id != (is_a ? GPU_A : GPU_B) || fstat((int)devices[i].drm_fd, &st) ||
		    fake_device_of(&st) != wanted)
			return false;
	}
	return (devices[0].actual_gpu_id == id_of_a) != (devices[1].actual_gpu_id == id_of_a) &&
	       (devices[0].actual_gpu_id == GPU_B) != (devices[1].actual_gpu_id == GPU_B);
}

/* Without the import, and with fillers in the gap before its number. */
static bool records_are_right(const struct kfd_ioctl_criu_args *args)
{
	const uint64_t begin = 8 + 8 * FAKE_NR_GPUS, own = begin + 272 * FAKE_NR_BOS;
	const uint8_t *bytes = (void *)(uintptr_t)args->priv_data;
	const struct kfd_criu_bo_bucket *in = (void *)(uintptr_t)args->bos;
	uint8_t filler[272] = { 0 };

	if (!shares)
		return args->num_bos == FAKE_NR_BOS && args->priv_data_size == taken.size &&
		       !memcmp(bytes, taken.bytes, taken.size);
	if (args->num_bos != FAKE_NR_BOS + NR_FILLERS || args->priv_data_size != taken.size - 272 + 272 * NR_FILLERS)
		return false;
	for (uint32_t i = 0; i < NR_FILLERS; i++) {
		fixture_u32(filler + 8, 3 + i);
		if (in[FAKE_NR_BOS + i].gpu_id != GPU_A || memcmp(bytes + own + 272 * i, filler, 272))
			return false;
	}
	return !memcmp(bytes, taken.bytes, own) &&
	       !memcmp(bytes + own + 272 * NR_FILLERS, taken.bytes + own + 272, taken.size - own - 272);
}

static int restore_process(const struct kfd_ioctl_criu_args *args)
{
	struct kfd_criu_bo_bucket *in = (void *)(uintptr_t)args->bos;
	int i;

	if (restored.exists || args->num_devices != FAKE_NR_GPUS || args->num_objects != records.nr_objects ||
	    !records_are_right(args) || !devices_are_right((void *)(uintptr_t)args->devices))
		return -EINVAL;
	for (i = 0; i < FAKE_NR_BOS; i++)
		if (in[i].addr != bos[i].addr || in[i].size != bos[i].size || in[i].offset != bos[i].offset ||
		    in[i].gpu_id != bos[i].gpu_id || in[i].alloc_flags != bos[i].alloc_flags)
			return -EINVAL;
	make_bos(&restored, false);
	restored.paused = true;
	for (i = 0; i < FAKE_NR_BOS; i++) {
		in[i].restored_offset = bos[i].alloc_flags == BELL ? bos[i].offset : bos[i].offset + OFFSET_RESTORED;
		in[i].dmabuf_fd = (uint32_t)(restored.bos[i] < 0 ? KFD_NO_FD : dup(restored.bos[i]));
	}
	return 0;
}

static int resume(const struct kfd_ioctl_criu_args *args)
{
	if (!restored.exists || args->pid != (uint32_t)getpid()) {
		fprintf(stderr, "the kernel crashes: RESUME of pid %u, which has no GPU state\n", args->pid);
		abort(); /* of a test program */
	}
	if (!restored.paused)
		return -EINVAL;
	restored.paused = false;
	restored.resumed = true;
	return 0;
}

static int criu_op(int fd, struct kfd_ioctl_criu_args *args)
{
	bool *paused = paused_by(fd), of_stopped = paused;

	switch (args->op) {
	case KFD_CRIU_OP_PROCESS_INFO:
		return of_stopped ? process_info(args, paused) : -EINVAL;
	case KFD_CRIU_OP_CHECKPOINT:
		return of_stopped ? checkpoint(args) : -EINVAL;
	case KFD_CRIU_OP_UNPAUSE:
		if (!of_stopped || !*paused)
			return -EINVAL;
		*paused = false;
		return 0;
	case KFD_CRIU_OP_RESTORE:
		nr_losses += loses_vram;
		return of_stopped ? -EINVAL : restore_process(args);
	case KFD_CRIU_OP_RESUME:
		return resume(args);
	default:
		return -EINVAL;
	}
}

/* ---- trap handlers ---- */

void fake_trap(int gpu, uint64_t tba, uint64_t tma, const char *release, const char *parameter)
{
	traps[gpu][0] = tba;
	traps[gpu][1] = tma;
	put(release, "sys/module/amdgpu/version");
	put(parameter, "sys/module/amdgpu/parameters/cwsr_enable");
}

void fake_untrap(void)
{
	memset(traps, 0, sizeof(traps));
	memset(restored_traps, 0, sizeof(restored_traps));
	nr_traps_set = 0;
	remove_below_root("sys/module");
}

bool fake_trap_same(void)
{
	return !memcmp(traps, restored_traps, sizeof(traps));
}

bool fake_is_told(void)
{
	return tells_exceptions;
}

unsigned int fake_traps_set(void)
{
	return nr_traps_set;
}

bool fake_job_left(void)
{
	return nr_job_contexts[0] || nr_job_contexts[1] || fake_gem_at(render_files[0], HIGH_END - 4096) || fake_gem_at(render_files[1], HIGH_END - 4096);
}

int fake_job_page(void)
{
	return job_page;
}

/* After RESTORE, in the restored process, before it runs. */
static int enable_runtime(const struct kfd_ioctl_runtime_enable_args *args)
{
	if (restored.exists)
		return -EEXIST; /* its queues */
	tells_exceptions = args->mode_mask & KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK;
	return 0;
}

static int set_trap(const struct kfd_ioctl_set_trap_handler_args *args)
{
	uint64_t *trap = restored_traps[args->gpu_id == GPU_B];

	if (!restored.exists || !restored.paused || (args->gpu_id != GPU_A && args->gpu_id != GPU_B))
		return -EINVAL;
	trap[0] = args->tba_addr;
	trap[1] = args->tma_addr;
	nr_traps_set++;
	return 0;
}

/* One copy of both addresses into the page itself; elsewhere it would be a page fault. */
static int run_job(int gpu, int fd, const union drm_amdgpu_cs *args)
{
	const uint64_t *chunks = (void *)(uintptr_t)args->in.chunks;
	const struct drm_amdgpu_cs_chunk *first = (void *)(uintptr_t)chunks[0];
	const struct drm_amdgpu_cs_chunk_ib *ib = (void *)(uintptr_t)first->chunk_data;
	uint32_t dw[8];
	uint64_t from, to;

	if (!nr_job_contexts[gpu] || first->chunk_id != AMDGPU_CHUNK_ID_IB || ib->ip_type != AMDGPU_HW_IP_DMA ||
	    ib->ib_bytes != sizeof(dw) || ib->va_start != HIGH_END - 4096 || !fake_gem_at(fd, ib->va_start) ||
	    pread(job_page, dw, sizeof(dw), 0) != sizeof(dw))
		return -EINVAL;
	from = dw[3] | (uint64_t)dw[4] << 32;
	to = dw[5] | (uint64_t)dw[6] << 32;
	if (!same_open_file(fd, render_files[gpu]) || dw[0] != 1 || dw[1] != 15 || from != HIGH_END + 6144 ||
	    to / 4096 != ib->va_start / 4096) {
		fprintf(stderr, "page fault at GPU address %#lx\n", (unsigned long)from);
		abort(); /* of a test program */
	}
	return pwrite(job_page, traps[gpu], 16, (off_t)(to % 4096)) == 16 ? 0 : -EIO;
}

static int job_ioctl(int gpu, int fd, unsigned long op, void *arg)
{
	union drm_amdgpu_ctx *context = arg;

	if (op == DRM_IOCTL_AMDGPU_CS)
		return run_job(gpu, fd, arg);
	if (op == DRM_IOCTL_AMDGPU_WAIT_CS) {
		((union drm_amdgpu_wait_cs *)arg)->out.status = 0;
		return 0;
	}
	if (op == DRM_IOCTL_AMDGPU_INFO) {
		struct drm_amdgpu_info *info = arg;

		((struct drm_amdgpu_info_device *)(uintptr_t)info->return_pointer)->high_va_max = HIGH_END;
		return 0;
	}
	if (context->in.op == AMDGPU_CTX_OP_FREE_CTX)
		return nr_job_contexts[gpu] ? nr_job_contexts[gpu]--, 0 : -EINVAL;
	nr_job_contexts[gpu]++;
	context->out.alloc.ctx_id = 1;
	return 0;
}

/* Counts are of the stopped process' file: others are new. */
static int holdings_ioctl(int gpu, int fd, unsigned long op, const void *arg)
{
	bool is_its = same_open_file(fd, render_files[0]);
	const union drm_amdgpu_ctx *context = arg;
	const struct drm_syncobj_timeline_array *array = arg;

	if (op == DRM_IOCTL_AMDGPU_CTX && context->in.ctx_id <= nr_job_contexts[gpu] && same_open_file(fd, render_files[gpu]))
		return 0;
	if (op == DRM_IOCTL_AMDGPU_CTX)
		return context->in.op == AMDGPU_CTX_OP_GET_STABLE_PSTATE && is_its &&
		       context->in.ctx_id <= nr_render_contexts ? 0 : -EINVAL;
	return is_its && *(const uint32_t *)(uintptr_t)array->handles <= nr_render_syncobjs ? 0 : -ENOENT;
}

static int tell_losses(int gpu, const struct drm_amdgpu_info *info)
{
	*(uint32_t *)(uintptr_t)info->return_pointer = gpu ? nr_losses : 3;
	return 0;
}

static int render_ioctl(int gpu, int fd, unsigned long op, void *arg)
{
	struct drm_version *version = arg;

	if (op == DRM_IOCTL_VERSION) {
		if (version->name && version->name_len >= 6)
			memcpy(version->name, "amdgpu", 6);
		version->name_len = 6;
		version->version_minor = 64;
		return 0;
	}
	if (op == DRM_IOCTL_AMDGPU_INFO && ((struct drm_amdgpu_info *)arg)->query == AMDGPU_INFO_VRAM_LOST_COUNTER)
		return tell_losses(gpu, arg);
	if (op == DRM_IOCTL_AMDGPU_CS || op == DRM_IOCTL_AMDGPU_WAIT_CS || op == DRM_IOCTL_AMDGPU_INFO ||
	    (op == DRM_IOCTL_AMDGPU_CTX && ((union drm_amdgpu_ctx *)arg)->in.op <= AMDGPU_CTX_OP_FREE_CTX))
		return job_ioctl(gpu, fd, op, arg);
	if (op == DRM_IOCTL_AMDGPU_CTX ||
	    ((op == DRM_IOCTL_SYNCOBJ_QUERY || op == DRM_IOCTL_SYNCOBJ_WAIT) && nr_render_syncobjs))
		return holdings_ioctl(gpu, fd, op, arg);
	return fake_gem_ioctl(gpu, fd, op, arg);
}

/* The restored process gets what it had. */
static int import_bo(struct kfd_ioctl_import_dmabuf_args *args)
{
	struct stat of, have;

	if (!restored.exists) {
		fprintf(stderr, "the KFD forgets the handle of the imported buffer when it is freed\n");
		abort(); /* of a test program */
	}
	if (args->gpu_id != GPU_A || fstat((int)args->dmabuf_fd, &of))
		return -EINVAL;
	args->handle = kfd_handle(GPU_A, numbers[FAKE_NR_BOS]);
	sharing.is_imported = args->va_addr == IMPORT_AT && !fstat(restored.bos[0], &have) && have.st_ino == of.st_ino;
	return sharing.is_imported && !sharing.nr_freed ? 0 : -EINVAL;
}

static int free_bo(const struct kfd_ioctl_free_memory_of_gpu_args *args)
{
	if (!restored.exists)
		return -EINVAL;
	return args->handle == kfd_handle(GPU_A, 3 + sharing.nr_freed++) ? 0 : -EINVAL;
}

static int map_bo(const struct kfd_ioctl_map_memory_to_gpu_args *args)
{
	sharing.is_mapped = args->handle == kfd_handle(GPU_A, numbers[FAKE_NR_BOS]) && args->n_devices == 1 &&
			    *(const uint32_t *)(uintptr_t)args->device_ids_array_ptr == GPU_A;
	return sharing.is_mapped ? 0 : -EINVAL;
}

static int dmabuf_info(struct kfd_ioctl_get_dmabuf_info_args *args)
{
	int gpu = fake_gem_gpu((int)args->dmabuf_fd);

	if (gpu >= FAKE_NR_GPUS) {
		fprintf(stderr, "the kernel crashes: GET_DMABUF_INFO of memory of a GPU without KFD\n");
		abort(); /* of a test program */
	}
	args->gpu_id = gpu ? GPU_B : GPU_A;
	return gpu < 0 ? -EINVAL : 0;
}

static int buffer_ioctl(unsigned long op, void *arg)
{
	switch (op) {
	case AMDKFD_IOC_ACQUIRE_VM:
		return 0;
	case AMDKFD_IOC_IMPORT_DMABUF:
		return import_bo(arg);
	case AMDKFD_IOC_FREE_MEMORY_OF_GPU:
		return free_bo(arg);
	case AMDKFD_IOC_MAP_MEMORY_TO_GPU:
		return map_bo(arg);
	case AMDKFD_IOC_SET_TRAP_HANDLER:
		return set_trap(arg);
	case AMDKFD_IOC_RUNTIME_ENABLE:
		return enable_runtime(arg);
	case AMDKFD_IOC_GET_DMABUF_INFO:
		return dmabuf_info(arg);
	default:
		return -ENOTTY;
	}
}

static int foreign_ioctl(unsigned long op, void *arg)
{
	struct drm_version *version = arg;

	if (op != DRM_IOCTL_VERSION)
		return -EINVAL;
	if (version->name && version->name_len >= 4)
		memcpy(version->name, "i915", 4);
	version->name_len = 4;
	return 0;
}

int fake_ioctl(enum fake_device device, int fd, unsigned long op, void *arg)
{
	if (device == FAKE_FOREIGN)
		return foreign_ioctl(op, arg);
	if (device != FAKE_KFD)
		return render_ioctl(device == FAKE_RENDER_B, fd, op, arg);
	if (op == AMDKFD_IOC_GET_VERSION) {
		*(struct kfd_ioctl_get_version_args *)arg = (struct kfd_ioctl_get_version_args){ 1, 14 };
		return 0;
	}
	if (op == AMDKFD_IOC_GET_PROCESS_APERTURES_NEW) {
		((struct kfd_ioctl_get_process_apertures_new_args *)arg)->num_of_nodes = FAKE_NR_GPUS;
		return 0;
	}
	return op == AMDKFD_IOC_CRIU_OP ? criu_op(fd, arg) : buffer_ioctl(op, arg);
}

/* ---- sharing ---- */

int fake_first_dmabuf(void)
{
	return first_dmabuf;
}

bool fake_shares_same(int render_fd)
{
	return sharing.is_imported && sharing.is_mapped && sharing.nr_freed == NR_FILLERS &&
	       fake_gem_mappings(render_fd) == 2 && fake_gem_same(render_files[0], render_fd);
}

/* ---- what tests ask ---- */

bool fake_may_import(ino_t render_node, int dmabuf_fd)
{
	int gpu = fake_gem_gpu(dmabuf_fd);

	return gpu >= 0 && render_inodes[gpu] == render_node;
}

bool fake_is_device(int fd, int gpu)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == (gpu < 0 ? kfd_inode : render_inodes[gpu]);
}

bool fake_process_is_paused(void)
{
	return stopped.paused || context_paused;
}

bool fake_restored_runs(void)
{
	return restored.resumed;
}

size_t fake_restored_files(void)
{
	size_t i, n = 0;

	for (i = 0; restored.exists && i < FAKE_NR_BOS; i++)
		n += restored.bos[i] >= 0;
	while (fake_gem_made(n - (restored.exists ? FAKE_NR_BOS - 1 : 0)) >= 0)
		n++;
	return n;
}

static bool same_bytes(int a, int b, uint64_t bytes)
{
	uint8_t x[16384], y[16384];

	return pread(a, x, bytes, 0) == (ssize_t)bytes && pread(b, y, bytes, 0) == (ssize_t)bytes && !memcmp(x, y, bytes);
}

bool fake_contents_same(void)
{
	int i;

	for (i = 0; i < FAKE_NR_BOS; i++)
		if (stopped.bos[i] >= 0 && !same_bytes(stopped.bos[i], restored.bos[i], bos[i].size))
			return false;
	if (shares && (fake_gem_made(0) < 0 || !same_bytes(object, fake_gem_made(0), OBJECT_BYTES)))
		return false;
	return restored.exists;
}

bool fake_render_only_same(int render_fd, uint64_t offset)
{
	uint64_t first = 0, second = 0;
	int a = fake_gem_made_of(render_fd, 2, &first), b = fake_gem_made_of(render_fd, 5, &second);

	return a >= 0 && b >= 0 && same_bytes(stopped.bos[0], a, bos[0].size) && same_bytes(object, b, OBJECT_BYTES) &&
	       first == offset && fake_gem_mappings(render_fd) == 3 && fake_gem_same(render_files[0], render_fd);
}
