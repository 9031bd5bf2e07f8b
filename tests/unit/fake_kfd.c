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
#define NR_PLACEHOLDERS 2u

const struct fake_vma fake_vmas[FAKE_NR_VMAS] = {
	{ "/dev/kfd", 0x10000, 0x12000, DOORBELL(GPU_A), DOORBELL(GPU_A) },
	{ "/dev/dri/renderD128", 0x20000, 0x21000, OFFSET_A, OFFSET_A + OFFSET_RESTORED },
	{ "/dev/dri/renderD129", 0x30000, 0x33000, OFFSET_A, OFFSET_A + OFFSET_RESTORED },
};

const struct fake_vma fake_render_vma = { "/dev/dri/renderD128", 0x20000, 0x21000, OFFSET_A, 0 };

/* A KFD process. */
struct process {
	bool exists, paused;
	bool context_paused;			    /* its second one */
	int bos[FAKE_NR_BOS];			    /* memfds, -1: none */
};

#define FAKE_DMABUF_FD 22
#define NR_FILES       (FAKE_DMABUF_FD + 1)

char fake_root[64];
struct fake_setup fake_setup;
struct fake_seen fake_seen;
int fake_first_dmabuf; /* was made before the process had any BO */
static struct fixture_records records; /* what the kernel knows of the process */
static struct fixture_records taken;  /* what RESTORE takes */
static struct process stopped, restored;
static int files[NR_FILES]; /* by the fd that the stopped process, or another task, has; 0 or less: none */
static ino_t first_inode, inodes[FAKE_FOREIGN + 1]; /* of devices */
static dev_t file_system;
static int object = -1; /* a memfd: an object that is not of the KFD */
static int second_dmabuf = -1, stranger_file = -1; /* those that .has_second_dmabuf and .has_stranger make */
/* What the restored process has done with numbers of the KFD, and the plugin's own process. */
static struct {
	bool is_imported, is_mapped;
	unsigned int nr_freed;
} sharing;
static uint32_t nr_losses; /* of the second GPU's VRAM */

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

static void put_link(const char *target, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", fake_root, name);
	if (symlink(target, path))
		die(path);
}

static void remove_below_root(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", fake_root, name);
	if (remove_all(path))
		die(path);
}

static const char *text_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static const char *text_of(const char *fmt, ...)
{
	static char text[300];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return text;
}

/* To the process the first GPU always is GPU_A. */
static uint32_t id_of_a(void)
{
	return fake_setup.gpu_id ? fake_setup.gpu_id : GPU_A;
}

static uint32_t nr_xcc(void)
{
	return fake_setup.nr_xcc ? fake_setup.nr_xcc : 1;
}

static void make_gpu(int node, uint32_t gpu_id, uint32_t minor_number, uint32_t nr)
{
	put(text_of("%u\n", gpu_id), SYSFS "topology/nodes/%d/gpu_id", node);
	put(text_of("cpu_cores_count 0\nsimd_count 480\nmem_banks_count 1\nio_links_count 1\nvendor_id 4098\n"
		    "device_id 29580\ngfx_target_version 90008\ndrm_render_minor %u\nnum_xcc %u\n", minor_number, nr),
	    SYSFS "topology/nodes/%d/properties", node);
	put("arcturus\n", SYSFS "topology/nodes/%d/name", node);
	put("heap_type 1\nsize_in_bytes 1073741824\n", SYSFS "topology/nodes/%d/mem_banks/0/properties", node);
	put("type 2\nnode_to 0\nweight 20\n", SYSFS "topology/nodes/%d/io_links/0/properties", node);
}

static void make_sysfs(void)
{
	remove_below_root("sys");
	put(text_of("%d:0\n", KFD_MAJOR), SYSFS "dev");
	put("1\n", SYSFS "topology/generation_id");
	put("0\n", SYSFS "topology/nodes/0/gpu_id");
	put("cpu_cores_count 8\nsimd_count 0\n", SYSFS "topology/nodes/0/properties");
	make_gpu(1, id_of_a(), MINOR_A + (fake_setup.hides_gpu ? 70 : 0), 1);
	make_gpu(2, GPU_B, MINOR_A + 1, nr_xcc());
	put("", "sys/dev/char/226:%u/device/drm", MINOR_A);
	put("", "sys/dev/char/226:%u/device/drm", MINOR_A + 1);
	if (fake_setup.release)
		put(fake_setup.release, "sys/module/amdgpu/version");
}

static void make_kfd_process(void)
{
	if (fake_setup.is_no_process)
		return;
	put("", SYSFS "proc/%d/queues/x", FAKE_PID);
	remove_below_root(text_of(SYSFS "proc/%d/queues/x", FAKE_PID));
	for (unsigned int i = 0; i < fake_setup.nr_queues; i++)
		put("4369\n", SYSFS "proc/%d/queues/%u/gpuid", FAKE_PID, i);
	put(text_of("%llu\n", (unsigned long long)fake_setup.vram_bytes), SYSFS "proc/%d/vram_%u", FAKE_PID, GPU_A);
	put("0\n", SYSFS "proc/%d/vram_%u", FAKE_PID, GPU_B);
	put("32768\n", SYSFS "proc/%d/pasid", FAKE_PID);
}

static void make_status(pid_t pid)
{
	put(text_of("Name:\tjob\nTracerPid:\t%d\nNSpid:\t%d\n", gettid(), pid), "proc/%d/status", pid);
}

void fake_trace(void)
{
	pid_t last = fake_setup.lost_vma ? FAKE_LOST_PID : fake_setup.has_tree ? FAKE_FOREIGN_PID : FAKE_PID;

	for (pid_t pid = FAKE_PID; pid <= last; pid++)
		make_status(pid);
}

static void make_maps(pid_t pid, const struct fake_vma *vmas, int nr_vmas)
{
	char text[1024];
	size_t used = 0;

	used += (size_t)snprintf(text, sizeof(text), "00400000-00401000 r-xp 00000000 08:01 77 /usr/bin/job\n");
	for (int i = 0; i < nr_vmas; i++) {
		const struct fake_vma *vma = &vmas[i];
		unsigned long start = (unsigned long)vma->start, end = (unsigned long)vma->end;

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%08lx-%08lx rw-s %08lx 00:05 5 %s\n", start,
					 end, (unsigned long)vma->offset, vma->path);
		same_file(vma->path + 1, text_of("proc/%d/map_files/%lx-%lx", pid, start, end));
	}
	put(text, "proc/%d/maps", pid);
	put("", "proc/%d/map_files/400000-401000", pid);
	put(fake_setup.is_told ? text_of("%080d", 0) : "", "proc/%d/mem", pid);
}

static void make_task(pid_t pid, const struct fake_vma *vmas, int nr_vmas)
{
	make_status(pid);
	put("", "proc/%d/fd/0", pid);
	make_maps(pid, vmas, nr_vmas);
}

static void make_tree(void)
{
	static const struct fake_vma foreigner = { "/dev/dri/renderD140", 0x40000, 0x41000, 0x1000, 0 };

	make_task(FAKE_IDLE_PID, NULL, 0);
	make_task(FAKE_RENDER_PID, NULL, 0);
	same_file("dev/dri/renderD129", "proc/4713/fd/10");
	make_task(FAKE_FOREIGN_PID, &foreigner, 1);
	if (fake_setup.lost_vma)
		make_task(FAKE_LOST_PID, fake_setup.lost_vma, 1);
}

static void make_process(void)
{
	bool maps_object = fake_setup.render_only && fake_setup.maps == FAKE_MAPS_USUAL;

	remove_below_root("proc");
	make_task(FAKE_PID, maps_object ? &fake_render_vma : fake_vmas,
		  maps_object ? 1 : fake_setup.maps == FAKE_MAPS_NOTHING ? 0 : FAKE_NR_VMAS);
	put("", "proc/%d/root/dev/shm/other", FAKE_PID);
	same_file("dev/kfd", "proc/4711/fd/5");
	same_file("dev/dri/renderD128", "proc/4711/fd/6");
	same_file("dev/dri/renderD129", "proc/4711/fd/7");
	if (fake_setup.second_kfd)
		same_file("dev/kfd", "proc/4711/fd/8");
	for (size_t i = 0; i < sizeof(fake_setup.closed) / sizeof(int) && fake_setup.closed[i]; i++)
		remove_below_root(text_of("proc/%d/fd/%d", FAKE_PID, fake_setup.closed[i]));
	if (fake_setup.render_only)
		remove_below_root(text_of("proc/%d/fd/%d", FAKE_PID, FAKE_KFD_FD));
	if (fake_setup.is_suspended)
		put_link("/memfd:amdgpu-suspended (deleted)", text_of("proc/%d/fd/33", FAKE_PID));
	if (fake_setup.has_tree)
		make_tree();
	remove_below_root("fdinfo");
	for (int i = 0; i < FAKE_NR_GPUS; i++)
		if (fake_setup.pasids[i])
			put(text_of("pos:\t0\ndrm-driver:\tamdgpu\npasid:\t%u\n", fake_setup.pasids[i]), "fdinfo/%d",
			    FAKE_RENDER_A + i);
}

uint64_t fake_restored_offset(const struct fake_vma *vma)
{
	return vma->restored == DOORBELL(GPU_A) ? DOORBELL(id_of_a()) : vma->restored;
}

void __real_usage_read(int sysfs, const struct topology *machine, struct gpu_usage *usage);
void __wrap_usage_read(int sysfs, const struct topology *machine, struct gpu_usage *usage)
{
	__real_usage_read(sysfs, machine, usage);
	for (unsigned int i = 0; i < machine->nr_nodes; i++) {
		usage[i].vram_known = fake_setup.vram_free;
		usage[i].vram_free = fake_setup.vram_free;
	}
}

/* Real ones: test_guard.c. */
pid_t __wrap_guard_start(const int *pids, size_t nr)
{
	fake_seen.is_guarded = nr > 0;
	return nr ? FAKE_PID : 0;
}

void __wrap_guard_end(pid_t guard)
{
	if (guard && guard != FAKE_PID)
		abort();
	fake_seen.is_guarded = false;
}

/* test_ending.c */
bool __wrap_criu_task_has_ended(pid_t pid)
{
	return false;
}

static int open_device(const char *name, enum fake_device device)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/dev/%s", fake_root, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		die(path);
	inodes[device] = st.st_ino;
	file_system = st.st_dev;
	return fd;
}

static int make_bo(uint64_t bytes, uint8_t seed)
{
	int fd = memfd_create("bo", MFD_CLOEXEC);
	uint8_t all[16384] = { 0 };

	for (uint64_t i = 0; seed && i < bytes; i++)
		all[i] = (uint8_t)(i * 31 + i / 256 + seed);
	if (fd < 0 || pwrite(fd, all, bytes, 0) != (ssize_t)bytes)
		die("memfd");
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
	return FAKE_NR_BOS + fake_setup.shares;
}

/* The SDMA queue is of so many XCCs. */
static void fill(struct fixture_records *to, const struct queue_record *compute, uint32_t nr)
{
	const struct queue_record sdma = { .gpu_id = GPU_B, .type = QUEUE_TYPE_SDMA, .mqd_size = nr * 512 };

	fixture_begin(to, FAKE_NR_GPUS, nr_bos());
	for (uint32_t i = 0; i < nr_bos(); i++) {
		uint8_t *record = to->bytes + 8 + 8 * FAKE_NR_GPUS + 272 * i;

		fixture_u32(record + 8, numbers[i]);
		fixture_u32(record + 12, bos[i].gpu_id);
	}
	fixture_queue(to, compute);
	fixture_queue(to, &sdma);
	fixture_event(to);
	fixture_u32(to->bytes + to->size - 64 + 8, !fake_setup.has_kfd_event_page);
	if (fake_setup.svm_bytes)
		fixture_svm_place(fixture_svm_range(to), 0x10000, fake_setup.svm_bytes);
	if (fake_setup.has_xnack)
		fixture_xnack(to);
}

/* RESTORE takes an empty stack for one that CHECKPOINT leaves out. */
static void make_records(void)
{
	struct queue_record compute = {
		.gpu_id = GPU_A, .mqd_size = 2048, .ctl_stack_size = 4096, .cwsr_address = fake_setup.is_told,
	};
	bool busy = fake_setup.stack == FAKE_NO_STACK_BUSY;

	if (fake_setup.stack != FAKE_STACK)
		compute = (struct queue_record){
			.gpu_id = GPU_A, .mqd_size = 2048, .cwsr_address = 0x7f0000200000, .mqd_stack_size = 4096,
			.mqd_stack_offset = busy ? 8 : 4096, .mqd_wave_offset = busy ? 8192 : 4096,
		};
	fill(&records, &compute, nr_xcc());
	if (fake_setup.stack != FAKE_STACK)
		compute.mqd_stack_offset = compute.mqd_wave_offset = compute.ctl_stack_size = 4096;
	fill(&taken, &compute, 1);
}

/* ---- what is shared ---- */

static void fill_render_file(void)
{
	int file = files[FAKE_RENDER_FD];

	fake_gem_give(file, 2, stopped.bos[0]);
	fake_gem_give(file, 5, object);
	fake_gem_map(file, 2, bos[0].addr, 0, bos[0].size); /* the KFD's own */
	fake_gem_map(file, 2, 0x7f3000000000, 4096, 4096);
	fake_gem_map(file, 5, 0x7f3000100000, 0, OBJECT_BYTES);
	fake_gem_syncobj(file, 2, 7);
	fake_gem_describe(stopped.bos[0], "token");
}

static void link_to(const char *target, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", fake_root, name);
	if (symlink(target, path))
		die(path);
}

static void add_stranger(void)
{
	struct stat st;

	if (fstat(stopped.bos[0], &st))
		die("memfd");
	put(text_of("pos:\t0\nino:\t%lu\nexp_name:\tdrm\n", (unsigned long)st.st_ino),
	    "proc/4712/task/4712/fdinfo/21");
	put("", "proc/4712/task/4712/fd/none"); /* makes the directory */
	link_to("/dev/null", "proc/4712/task/4712/fd/0");
	link_to("/dmabuf:", "proc/4712/task/4712/fd/21");
	stranger_file = open_device("dri/renderD128", FAKE_RENDER_A);
	fake_gem_give(stranger_file, 1, stopped.bos[0]);
	fake_gem_add_bo(stopped.bos[0]);
	fake_gem_free_bo(stopped.bos[0]);
}

static void open_foreign_dmabuf(void)
{
	files[FAKE_DMABUF_FD] = make_bo(OBJECT_BYTES, 0);
	fake_gem_add(files[FAKE_DMABUF_FD], FAKE_NR_GPUS, OFFSET_A, OBJECT_BYTES, true);
	link_to(text_of("/proc/self/fd/%d", files[FAKE_DMABUF_FD]), "proc/4711/fd/22");
	put("", "sys/class/drm/renderD140/device/vendor");
	link_to("../bus/pci/drivers/amdgpu", "sys/class/drm/renderD140/device/driver");
}

static void make_shares(void)
{
	object = make_bo(OBJECT_BYTES, 77);
	fake_gem_add(object, 0, OFFSET_A + 0x100000, OBJECT_BYTES, true);
	fill_render_file();
	for (int i = 0; fake_setup.shares && i < 2; i++)
		fake_gem_add_bo(stopped.bos[0]);
	if (fake_setup.has_stranger)
		add_stranger();
	if (fake_setup.has_foreign_dmabuf)
		open_foreign_dmabuf();
	if (fake_setup.has_second_dmabuf) {
		second_dmabuf = make_bo(bos[0].size, 1);
		fake_gem_add(second_dmabuf, 0, bos[0].offset, bos[0].size, true);
	}
}

static void close_one(int *fd)
{
	if (*fd > 0)
		close(*fd);
	*fd = -1;
}

/* All but the directory with the devices, and what is older than the BOs. */
static void unmake(void)
{
	fake_kfd_forget();
	for (int i = 0; stopped.exists && i < FAKE_NR_BOS; i++)
		close_one(&stopped.bos[i]);
	for (int i = 0; i < NR_FILES; i++)
		close_one(&files[i]);
	close_one(&object);
	close_one(&second_dmabuf);
	close_one(&stranger_file);
	stopped = (struct process){ 0 };
	fake_seen = (struct fake_seen){ 0 };
	fake_gem_begin();
}

static void open_files(void)
{
	files[FAKE_KFD_FD] = open_device("kfd", FAKE_KFD);
	files[FAKE_SECOND_KFD_FD] = open_device("kfd", FAKE_KFD);
	files[FAKE_RENDER_FD] = open_device("dri/renderD128", FAKE_RENDER_A);
	files[FAKE_RENDER_FD + 1] = open_device("dri/renderD129", FAKE_RENDER_B);
	files[FAKE_UNUSED_FD] = open_device("dri/renderD129", FAKE_RENDER_B);
	files[FAKE_FOREIGN_FD] = open_device("dri/renderD140", FAKE_FOREIGN);
	/* They are known here by numbers that children keep. */
	fake_gem_mappings(files[FAKE_UNUSED_FD]);
	fake_gem_mappings(files[FAKE_RENDER_FD]);
	fake_gem_mappings(files[FAKE_RENDER_FD + 1]);
}

void fake_kfd_set(const struct fake_setup *setup)
{
	unmake();
	fake_setup = setup ? *setup : (struct fake_setup){ 0 };
	open_files();
	make_bos(&stopped, true);
	make_sysfs();
	make_kfd_process();
	make_process();
	make_records();
	if (fake_setup.shares || fake_setup.render_only)
		make_shares();
}

void fake_kfd_begin(void)
{
	struct stat st;

	strcpy(fake_root, "/tmp/fake_kfd.XXXXXX");
	if (!mkdtemp(fake_root))
		die(fake_root);
	put("", "dev/kfd");
	put("", "dev/dri/renderD128");
	put("", "dev/dri/renderD129");
	put("", "dev/dri/renderD140");
	fake_first_dmabuf = make_bo(4096, 0);
	if (fstat(fake_first_dmabuf, &st))
		die("memfd");
	first_inode = st.st_ino;
	fake_kfd_set(NULL);
}

void fake_kfd_forget(void)
{
	for (int i = 0; restored.exists && i < FAKE_NR_BOS; i++)
		if (restored.bos[i] >= 0) {
			fake_gem_remove(restored.bos[i]);
			close(restored.bos[i]);
		}
	restored = (struct process){ 0 };
	fake_seen.restored_runs = false;
	memset(&sharing, 0, sizeof(sharing));
	fake_gem_forget();
}

void fake_kfd_end(void)
{
	unmake();
	close(fake_first_dmabuf);
	if (remove_all(fake_root))
		die(fake_root);
}

/* ---- files ---- */

int fake_process_file(int fd)
{
	return fd >= NR_FILES || files[fd] <= 0 ? -1 : fcntl(files[fd], F_DUPFD_CLOEXEC, 0);
}

enum fake_device fake_device_of(const struct stat *st)
{
	for (enum fake_device device = FAKE_KFD; st->st_dev == file_system && device <= FAKE_FOREIGN; device++)
		if (inodes[device] == st->st_ino)
			return device;
	return FAKE_NO_DEVICE;
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
static unsigned int nr_stops;

static bool *paused_by(int fd)
{
	if (same_open_file(fd, files[FAKE_KFD_FD]))
		return &stopped.paused;
	if (!same_open_file(fd, files[FAKE_SECOND_KFD_FD]))
		return NULL;
	return fake_setup.second_kfd == FAKE_SECOND_CONTEXT ? &stopped.context_paused : &stopped.paused;
}

static int process_info(struct kfd_ioctl_criu_args *args, bool *paused)
{
	if (*paused)
		return -EBUSY; /* a real kernel counts, and the process never runs again */
	if (!fake_seen.is_guarded)
		return -EPERM;
	*paused = true;
	if (fake_setup.stack == FAKE_NO_STACK_BUSY && fake_setup.ends_after == ++nr_stops) {
		fake_setup.stack = FAKE_NO_STACK_IDLE;
		make_records();
	}
	args->num_devices = FAKE_NR_GPUS;
	args->num_bos = nr_bos();
	args->num_objects = records.nr_objects;
	args->priv_data_size = records.size;
	args->pid = fake_setup.owner ? (uint32_t)fake_setup.owner : FAKE_PID;
	if (fake_setup.counts.nr_bos) {
		args->num_devices = fake_setup.counts.nr_devices;
		args->num_bos = fake_setup.counts.nr_bos;
		args->priv_data_size = fake_setup.counts.state_bytes;
	}
	return 0;
}

/* The memfd that is a BO's dma-buf, -1: none. */
static int dmabuf_of(int bo)
{
	if (bo == FAKE_NR_BOS)
		return second_dmabuf >= 0 ? second_dmabuf : stopped.bos[0];
	return stopped.bos[bo == fake_setup.confused ? fake_setup.with : bo];
}

static int checkpoint(const struct kfd_ioctl_criu_args *args)
{
	struct kfd_criu_device_bucket *devices = (void *)(uintptr_t)args->devices;
	struct kfd_criu_bo_bucket *out = (void *)(uintptr_t)args->bos;
	int i;

	nr_losses += fake_setup.loses_vram;
	if (!stopped.paused || args->num_devices != FAKE_NR_GPUS || args->num_bos != nr_bos() ||
	    args->num_objects != records.nr_objects || args->priv_data_size != records.size)
		return -EINVAL;
	devices[0] = (struct kfd_criu_device_bucket){ .user_gpu_id = GPU_A, .actual_gpu_id = GPU_A };
	devices[1] = (struct kfd_criu_device_bucket){ .user_gpu_id = GPU_B, .actual_gpu_id = GPU_B };
	for (i = 0; i < (int)nr_bos(); i++) {
		int memfd = dmabuf_of(i);

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
		bool is_a = devices[i].actual_gpu_id == id_of_a();
		enum fake_device wanted = is_a ? FAKE_RENDER_A : FAKE_RENDER_B;

		if (devices[i].user_gpu_id != (is_a ? GPU_A : GPU_B) || fstat((int)devices[i].drm_fd, &st) ||
		    fake_device_of(&st) != wanted)
			return false;
	}
	return (devices[0].actual_gpu_id == id_of_a()) != (devices[1].actual_gpu_id == id_of_a()) &&
	       (devices[0].actual_gpu_id == GPU_B) != (devices[1].actual_gpu_id == GPU_B);
}

/* Without the import, and with placeholders in the gap before its number. */
static bool records_are_right(const struct kfd_ioctl_criu_args *args)
{
	const uint64_t begin = 8 + 8 * FAKE_NR_GPUS, own = begin + 272 * FAKE_NR_BOS;
	const uint8_t *bytes = (void *)(uintptr_t)args->priv_data;
	const struct kfd_criu_bo_bucket *in = (void *)(uintptr_t)args->bos;
	uint8_t placeholder[272] = { 0 };

	if (!fake_setup.shares)
		return args->num_bos == FAKE_NR_BOS && args->priv_data_size == taken.size &&
		       !memcmp(bytes, taken.bytes, taken.size);
	if (args->num_bos != FAKE_NR_BOS + NR_PLACEHOLDERS || args->priv_data_size != taken.size - 272 + 272 * NR_PLACEHOLDERS)
		return false;
	for (uint32_t i = 0; i < NR_PLACEHOLDERS; i++) {
		fixture_u32(placeholder + 8, 3 + i);
		if (in[FAKE_NR_BOS + i].gpu_id != GPU_A || memcmp(bytes + own + 272 * i, placeholder, 272))
			return false;
	}
	return !memcmp(bytes, taken.bytes, own) &&
	       !memcmp(bytes + own + 272 * NR_PLACEHOLDERS, taken.bytes + own + 272, taken.size - own - 272);
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
	fake_seen.restored_runs = true;
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
		nr_losses += fake_setup.loses_vram;
		return of_stopped ? -EINVAL : restore_process(args);
	case KFD_CRIU_OP_RESUME:
		return resume(args);
	default:
		return -EINVAL;
	}
}

/* ---- exceptions ---- */

/* After RESTORE, in the restored process, before it runs. */
static int enable_runtime(const struct kfd_ioctl_runtime_enable_args *args)
{
	if (restored.exists)
		return -EEXIST; /* its queues */
	fake_seen.tells_exceptions = args->mode_mask & KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK;
	return 0;
}

/* Counts are of the stopped process' file: others are new. */
static int holdings_ioctl(int gpu, int fd, unsigned long op, const void *arg)
{
	bool is_its = same_open_file(fd, files[FAKE_RENDER_FD]);
	const union drm_amdgpu_ctx *context = arg;
	const struct drm_syncobj_timeline_array *array = arg;

	if (op == DRM_IOCTL_AMDGPU_CTX)
		return context->in.op == AMDGPU_CTX_OP_GET_STABLE_PSTATE && is_its &&
		       context->in.ctx_id <= fake_setup.nr_contexts ? 0 : -EINVAL;
	return is_its && *(const uint32_t *)(uintptr_t)array->handles <= fake_setup.nr_syncobjs ? 0 : -ENOENT;
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
	if (op == DRM_IOCTL_AMDGPU_CTX ||
	    ((op == DRM_IOCTL_SYNCOBJ_QUERY || op == DRM_IOCTL_SYNCOBJ_WAIT) && fake_setup.nr_syncobjs))
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

bool fake_shares_same(int render_fd)
{
	return sharing.is_imported && sharing.is_mapped && sharing.nr_freed == NR_PLACEHOLDERS &&
	       fake_gem_mappings(render_fd) == 2 && fake_gem_same(files[FAKE_RENDER_FD], render_fd);
}

/* ---- what tests ask ---- */

bool fake_may_import(ino_t render_node, int dmabuf_fd)
{
	int gpu = fake_gem_gpu(dmabuf_fd);

	return gpu >= 0 && inodes[FAKE_RENDER_A + gpu] == render_node;
}

bool fake_is_render_node(int fd, int gpu)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == inodes[FAKE_RENDER_A + gpu];
}

bool fake_process_is_paused(void)
{
	return stopped.paused || stopped.context_paused;
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
	if (fake_setup.shares && (fake_gem_made(0) < 0 || !same_bytes(object, fake_gem_made(0), OBJECT_BYTES)))
		return false;
	return restored.exists;
}

bool fake_render_only_same(int render_fd, uint64_t offset)
{
	uint64_t first = 0, second = 0;
	int a = fake_gem_made_of(render_fd, 2, &first), b = fake_gem_made_of(render_fd, 5, &second);

	return a >= 0 && b >= 0 && same_bytes(stopped.bos[0], a, bos[0].size) && same_bytes(object, b, OBJECT_BYTES) &&
	       first == offset && fake_gem_mappings(render_fd) == 3 && fake_gem_same(files[FAKE_RENDER_FD], render_fd);
}
