// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/kfd without queues and events: opening and dispatch, what it says about
 * the GPUs, address spaces, buffers, mappings, dma-bufs, mmap. Rule by rule, to
 * the errno.
 */
#include <sys/prctl.h>

#include "kfd_test.h"

static int kfd, drm_fd;
static struct node gpu, gpu2; /* gpu2.gpu_id 0 on a machine with one GPU */
static unsigned int release;
static unsigned int nr_gpus, nr_nodes;

#define BAD_GPU 0xfffe

/* ---- dispatch ---- */

static void check_dispatch(void)
{
	struct {
		struct kfd_ioctl_get_version_args args;
		uint32_t more[14];
	} wide;
	struct kfd_ioctl_get_version_args version = { 0 };
	struct kfd_ioctl_get_clock_counters_args clock = { .gpu_id = gpu.gpu_id };

	check_errno(ioctl(kfd, NR_GET_VERSION, &version), 0, "GET_VERSION");
	check_u64(version.major_version, 1, "GET_VERSION: major");
	check_true(version.minor_version >= 8, "GET_VERSION: minor is %u", version.minor_version);
	check_errno(ioctl(kfd, 0x80085801u, &version), 0, "the type byte does not matter");
	check_errno(ioctl(kfd, 0xc0084b00u, &version), ENOTTY, "number 0");
	check_errno(ioctl(kfd, 0xc0084b29u, &version), ENOTTY, "number 0x29");
	check_errno(ioctl(kfd, 0xc0084b80u, &version), ENOTTY, "number 0x80 (IPC of other drivers)");
	check_errno(ioctl(kfd, NR_GET_VERSION, (void *)8), EFAULT, "results to memory that is not there");
	check_errno(ioctl(kfd, NR_ALLOC, (void *)8), EFAULT, "arguments from memory that is not there");
	memset(&wide, 0x55, sizeof(wide));
	check_errno(ioctl(kfd, 0xc0404b01u, &wide), 0, "a larger struct");
	check_u64(wide.args.major_version, 1, "... is filled");
	version.minor_version = 77;
	check_errno(ioctl(kfd, 0x80044b01u, &version), 0, "a smaller struct");
	check_u64(version.minor_version, 77, "... is filled as far as it goes");
	check_errno(ioctl(kfd, 0xc0004b05u, &clock), 0, "a struct of size 0");
	check_errno(ioctl(kfd, NR_DBG_REGISTER, &version), EPERM, "the old debugger's ioctls");
}

/* What came with a later version of the interface is unknown to an earlier one. */
static void check_generations(void)
{
	static const struct {
		const char *name;
		unsigned int nr, since;
	} later[] = { { "AVAILABLE_MEMORY", NR_AVAILABLE, 9 },
		      { "EXPORT_DMABUF", NR_EXPORT_DMABUF, 12 },
		      { "RUNTIME_ENABLE", NR_RUNTIME_ENABLE, 13 } };
	unsigned int minor = kfd_minor_version(kfd), i;

	for (i = 0; i < sizeof(later) / sizeof(*later); i++) {
		/* Arguments that cannot be read tell a known ioctl from an unknown one, and do nothing. */
		check_errno(ioctl(kfd, later[i].nr, (void *)8), minor < later[i].since ? ENOTTY : EFAULT,
			    "KFD 1.%u %s %s", minor, minor < later[i].since ? "has no" : "has", later[i].name);
	}
}

static int in_child(int (*func)(int fd), int fd)
{
	int status;
	pid_t pid = fork();

	must(pid, "fork");
	if (!pid)
		_exit(func(fd) < 0 ? errno : 0);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int child_version(int fd)
{
	struct kfd_ioctl_get_version_args version;

	return ioctl(fd, NR_GET_VERSION, &version);
}

static int child_mmap(int fd)
{
	void *p = mmap(NULL, DOORBELLS, PROT_WRITE, MAP_SHARED, fd, 3ull << 62 | (uint64_t)gpu.gpu_id << 46);

	return p == MAP_FAILED ? -1 : 0;
}

static int child_own(int fd)
{
	(void)fd;
	return child_version(kfd_open());
}

static void check_owner(void)
{
	int second = kfd_open();
	char path[64];
	struct stat st;

	check_u64(in_child(child_version, kfd), EBADF, "another process may not use the file");
	check_u64(in_child(child_mmap, kfd), release < 702 ? EINVAL : EBADF, "... nor map it");
	check_u64(in_child(child_own, kfd), 0, "... but open its own");
	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d", getpid());
	check_errno(stat(path, &st), 0, "the process has a directory in sysfs");
	check_errno(kfd_acquire(second, drm_fd, gpu.gpu_id), 0, "a second open is the same process");
	close(second);
	check_errno(kfd_acquire(kfd, drm_fd, gpu.gpu_id), 0, "... also after it is closed");
}

/* ---- what it says ---- */

static void check_apertures(void)
{
	struct kfd_process_device_apertures ap[80];
	struct kfd_ioctl_get_process_apertures_new_args args = { .num_of_nodes = 0 };
	struct kfd_ioctl_get_process_apertures_args old;
	unsigned int i;

	check_errno(ioctl(kfd, NR_APERTURES_NEW, &args), 0, "apertures: asking for their number");
	check_u64(args.num_of_nodes, nr_gpus, "... which is that of the GPUs");
	args.num_of_nodes = nr_nodes + 1;
	check_errno(ioctl(kfd, NR_APERTURES_NEW, &args), EINVAL, "apertures for more nodes than there are");
	args.kfd_process_device_apertures_ptr = 8;
	args.num_of_nodes = nr_nodes;
	check_errno(ioctl(kfd, NR_APERTURES_NEW, &args), EFAULT, "apertures to memory that is not there");
	args.kfd_process_device_apertures_ptr = (uintptr_t)ap;
	args.num_of_nodes = nr_nodes;
	check_errno(ioctl(kfd, NR_APERTURES_NEW, &args), 0, "apertures, room for all nodes");
	check_u64(args.num_of_nodes, nr_gpus, "... fills the GPUs'");
	for (i = 0; i < nr_gpus; i++)
		check_true(ap[i].gpu_id && ap[i].lds_base == 1ull << 48 &&
				   ap[i].lds_limit == (1ull << 48) + 0xffffffff && ap[i].scratch_base == 2ull << 48 &&
				   ap[i].gpuvm_base == 0x10000 && ap[i].gpuvm_limit >= (1ull << 47) - 1,
			   "apertures of GPU %u", i);
	check_u64(ap[0].gpu_id, gpu.gpu_id, "apertures: gpu id");
	check_errno(ioctl(kfd, NR_APERTURES, &old), 0, "the old apertures");
	check_u64(old.num_of_nodes, nr_gpus < 7 ? nr_gpus : 7, "... number, at most 7");
	check_u64(old.process_apertures[0].gpu_id, gpu.gpu_id, "... gpu id");
}

static void check_clocks(void)
{
	struct kfd_ioctl_get_clock_counters_args a = { .gpu_id = gpu.gpu_id }, b = a, none = { .gpu_id = BAD_GPU };

	check_errno(ioctl(kfd, NR_CLOCK_COUNTERS, &a), 0, "clock counters");
	usleep(2000);
	must(ioctl(kfd, NR_CLOCK_COUNTERS, &b), "GET_CLOCK_COUNTERS");
	check_u64(a.system_clock_freq, 1000000000, "clock counters: frequency of the system's");
	check_true(b.gpu_clock_counter > a.gpu_clock_counter && b.cpu_clock_counter > a.cpu_clock_counter &&
			   b.system_clock_counter > a.system_clock_counter,
		   "clock counters count up");
	check_errno(ioctl(kfd, NR_CLOCK_COUNTERS, &none), 0, "clock counters of no GPU");
	check_u64(none.gpu_clock_counter, 0, "... have no GPU clock");
}

static void check_tiles(void)
{
	uint32_t tiles[64], macro[64];
	struct kfd_ioctl_get_tile_config_args args = {
		.tile_config_ptr = (uintptr_t)tiles,
		.macro_tile_config_ptr = (uintptr_t)macro,
		.num_tile_configs = 64,
		.num_macro_tile_configs = 64,
		.gpu_id = gpu.gpu_id,
	};

	check_errno(ioctl(kfd, NR_TILE_CONFIG, &args), 0, "tile configuration");
	check_u64(args.num_tile_configs, 32, "... number of tile configurations");
	check_u64(args.num_macro_tile_configs, 16, "... number of macro tile configurations");
	args.gpu_id = BAD_GPU;
	check_errno(ioctl(kfd, NR_TILE_CONFIG, &args), EINVAL, "tile configuration of no GPU");
	args.gpu_id = gpu.gpu_id;
	args.tile_config_ptr = 8;
	check_errno(ioctl(kfd, NR_TILE_CONFIG, &args), EFAULT, "tile configuration to memory that is not there");
}

/* ---- before the address space is there ---- */

static void check_unbound(void)
{
	struct kfd_ioctl_set_memory_policy_args policy = { .gpu_id = gpu.gpu_id };
	struct kfd_ioctl_set_trap_handler_args trap = { .gpu_id = gpu.gpu_id };
	struct kfd_ioctl_set_scratch_backing_va_args scratch = { .gpu_id = gpu.gpu_id };
	struct kfd_ioctl_import_dmabuf_args import = { .gpu_id = gpu.gpu_id };
	struct create_queue queue = { .gpu_id = gpu.gpu_id, .type = 1, .ring_size = 4096, .percentage = 100 };

	check_errno(ioctl(kfd, NR_MEMORY_POLICY, &policy), ESRCH, "memory policy before ACQUIRE_VM");
	check_errno(ioctl(kfd, NR_TRAP_HANDLER, &trap), ESRCH, "trap handler before ACQUIRE_VM");
	check_errno(ioctl(kfd, NR_SCRATCH_VA, &scratch), ENODEV, "scratch address before ACQUIRE_VM");
	check_errno(kfd_alloc(kfd, gpu.gpu_id, reserve(PAGE), PAGE, GTT_RW, NULL, NULL), ENODEV,
		    "ALLOC before ACQUIRE_VM");
	check_errno(ioctl(kfd, NR_IMPORT_DMABUF, &import), ENODEV, "IMPORT before ACQUIRE_VM");
	check_errno(ioctl(kfd, NR_CREATE_QUEUE, &queue), ESRCH, "CREATE_QUEUE before ACQUIRE_VM");
}

static void check_acquire(void)
{
	int null_fd = open("/dev/null", O_RDWR), other = render_open(gpu.render_minor);

	check_errno(kfd_acquire(kfd, 999, gpu.gpu_id), EINVAL, "ACQUIRE_VM with a file that is not open");
	check_errno(kfd_acquire(kfd, null_fd, gpu.gpu_id), EINVAL, "ACQUIRE_VM with /dev/null");
	check_errno(kfd_acquire(kfd, kfd, gpu.gpu_id), EINVAL, "ACQUIRE_VM with /dev/kfd");
	check_errno(kfd_acquire(kfd, drm_fd, BAD_GPU), EINVAL, "ACQUIRE_VM of no GPU");
	check_errno(kfd_acquire(kfd, drm_fd, gpu.gpu_id), 0, "ACQUIRE_VM");
	check_errno(kfd_acquire(kfd, drm_fd, gpu.gpu_id), 0, "ACQUIRE_VM again with the same file");
	check_errno(kfd_acquire(kfd, dup(drm_fd), gpu.gpu_id), 0, "... also under another number");
	check_errno(kfd_acquire(kfd, other, gpu.gpu_id), EBUSY, "ACQUIRE_VM with another file");
	if (gpu2.gpu_id)
		check_errno(kfd_acquire(kfd, drm_fd, gpu2.gpu_id), EINVAL,
			    "ACQUIRE_VM with a file that is another GPU's address space");
	close(other);
	close(null_fd);
}

static bool all_have_xnack(void)
{
	unsigned int i;

	for (i = 0; i < nr_gpus; i++) {
		uint64_t gfx = node_gpu(i).gfx;

		if (gfx != 90010 && gfx != 90402)
			return false;
	}
	return true;
}

static void check_settings(void)
{
	struct kfd_ioctl_set_memory_policy_args policy = { .gpu_id = gpu.gpu_id };
	struct kfd_ioctl_set_trap_handler_args trap = { .gpu_id = gpu.gpu_id };
	struct kfd_ioctl_set_scratch_backing_va_args scratch = { .gpu_id = gpu.gpu_id, .va_addr = 1ull << 32 };
	struct runtime_enable runtime = { .mode_mask = 1 };
	struct kfd_ioctl_set_xnack_mode_args xnack = { .xnack_enabled = -1 };

	check_errno(ioctl(kfd, NR_MEMORY_POLICY, &policy), 0, "memory policy");
	policy.default_policy = 2;
	check_errno(ioctl(kfd, NR_MEMORY_POLICY, &policy), EINVAL, "an unknown default policy");
	policy.default_policy = 1;
	policy.alternate_policy = 2;
	check_errno(ioctl(kfd, NR_MEMORY_POLICY, &policy), EINVAL, "an unknown alternate policy");
	policy.alternate_policy = 0;
	policy.gpu_id = BAD_GPU;
	check_errno(ioctl(kfd, NR_MEMORY_POLICY, &policy), EINVAL, "memory policy of no GPU");
	check_errno(ioctl(kfd, NR_TRAP_HANDLER, &trap), 0, "trap handler");
	trap.gpu_id = BAD_GPU;
	check_errno(ioctl(kfd, NR_TRAP_HANDLER, &trap), EINVAL, "trap handler of no GPU");
	check_errno(ioctl(kfd, NR_SCRATCH_VA, &scratch), 0, "scratch address");
	scratch.gpu_id = BAD_GPU;
	check_errno(ioctl(kfd, NR_SCRATCH_VA, &scratch), EINVAL, "scratch address of no GPU");
	if (kfd_minor_version(kfd) >= 13) {
		check_errno(ioctl(kfd, NR_RUNTIME_ENABLE, &runtime), 0, "RUNTIME_ENABLE");
		check_errno(ioctl(kfd, NR_RUNTIME_ENABLE, &runtime), EBUSY, "RUNTIME_ENABLE again");
		runtime.mode_mask = 0;
		check_errno(ioctl(kfd, NR_RUNTIME_ENABLE, &runtime), 0, "RUNTIME_ENABLE off");
	}
	check_errno(ioctl(kfd, NR_XNACK_MODE, &xnack), 0, "asking for the XNACK mode");
	check_u64(xnack.xnack_enabled, 0, "... which is off");
	xnack.xnack_enabled = 1;
	check_errno(ioctl(kfd, NR_XNACK_MODE, &xnack), all_have_xnack() ? 0 : EPERM,
		    "switching XNACK on (gfx %" PRIu64 ")", gpu.gfx);
	xnack.xnack_enabled = 0;
	check_errno(ioctl(kfd, NR_XNACK_MODE, &xnack), 0, "switching XNACK off");
}

/* ---- buffers ---- */

static uint64_t available(uint32_t gpu_id)
{
	struct {
		uint64_t available;
		uint32_t gpu_id, pad;
	} args = { .gpu_id = gpu_id };

	must(ioctl(kfd, NR_AVAILABLE, &args), "AVAILABLE_MEMORY");
	return args.available;
}

static void check_alloc_errors(void)
{
	uint64_t va = reserve(16 * PAGE), offset;
	uint32_t id = gpu.gpu_id;

	check_errno(kfd_alloc(kfd, id, va, 0, GTT_RW, NULL, NULL), EINVAL, "ALLOC of no bytes");
	check_errno(kfd_alloc(kfd, BAD_GPU, va, PAGE, GTT_RW, NULL, NULL), EINVAL, "ALLOC on no GPU");
	check_errno(kfd_alloc(kfd, id, va, PAGE, MEM_WRITABLE, NULL, NULL), EINVAL, "ALLOC of no kind");
	check_errno(kfd_alloc(kfd, id, va, 1, GTT_RW | MEM_AQL, NULL, NULL), release < 702 ? ENOSPC : EINVAL,
		    "ALLOC of half a byte");
	offset = 0;
	check_errno(kfd_alloc(kfd, id, va, PAGE, MEM_USERPTR | MEM_WRITABLE, &offset, NULL), EINVAL,
		    "ALLOC of user memory at NULL");
	offset = va;
	check_errno(kfd_alloc(kfd, id, va, PAGE, MEM_USERPTR | MEM_WRITABLE, &offset, NULL), EFAULT,
		    "ALLOC of user memory without access");
	check_errno(kfd_alloc(kfd, id, va, PAGE, MEM_DOORBELL | MEM_WRITABLE, NULL, NULL), EINVAL,
		    "ALLOC of doorbells: one page is not all");
	check_errno(kfd_alloc(kfd, id, va, 2 * PAGE, MEM_MMIO | MEM_WRITABLE, NULL, NULL), EINVAL,
		    "ALLOC of MMIO: two pages are too many");
	check_errno(kfd_alloc(kfd, id, va, 1ull << 44, VRAM_RW, NULL, NULL), ENOMEM,
		    "ALLOC of more VRAM than there is");
}

static void check_alloc(void)
{
	uint64_t va = reserve(16 * PAGE), offset = 0, a = 0, b = 0, before = available(gpu.gpu_id);
	uint32_t id = gpu.gpu_id;

	check_true(before && !(before & 0x1fffff), "AVAILABLE_MEMORY is a multiple of 2 MiB");
	check_errno(kfd_alloc(kfd, id, va, PAGE, VRAM_RW, &offset, &a), 0, "ALLOC of VRAM");
	check_u64(a >> 32, id, "handle: gpu id in the upper half");
	check_u64((uint32_t)a, 0, "handle: numbers from 0 in the lower");
	check_true(offset && !(offset & (PAGE - 1)), "ALLOC returns an mmap offset");
	check_u64(before - available(id), 2 << 20, "AVAILABLE_MEMORY counts in 2 MiB");
	check_errno(kfd_alloc(kfd, id, va + PAGE, PAGE, GTT_RW, NULL, &b), 0, "ALLOC of GTT");
	check_u64((uint32_t)b, 1, "handle: the next number");
	check_errno(kfd_free(kfd, a), 0, "FREE");
	check_errno(kfd_free(kfd, a), EINVAL, "FREE again");
	check_errno(kfd_free(kfd, (uint64_t)BAD_GPU << 32 | 1), EINVAL, "FREE on no GPU");
	check_errno(kfd_alloc(kfd, id, va, PAGE, VRAM_RW, NULL, &a), 0, "ALLOC");
	check_u64((uint32_t)a, 0, "a number that was freed is used again");
	check_errno(kfd_alloc(kfd, id, 0, PAGE, MEM_VRAM, NULL, NULL), 0, "ALLOC of VRAM without an address");
	must(kfd_free(kfd, (uint64_t)id << 32 | 2), "FREE");
	must(kfd_free(kfd, a), "FREE");
	must(kfd_free(kfd, b), "FREE");
	check_u64(available(id), before, "all VRAM is available again");
}

static void check_map(void)
{
	uint64_t va = reserve(16 * PAGE), a = 0, b = 0, bad;
	uint32_t ids[3] = { gpu.gpu_id, BAD_GPU, gpu.gpu_id }, done = 0;

	must(kfd_alloc(kfd, gpu.gpu_id, va, 2 * PAGE, GTT_RW, NULL, &a), "ALLOC");
	must(kfd_alloc(kfd, gpu.gpu_id, va + PAGE, PAGE, GTT_RW, NULL, &b), "ALLOC");
	bad = a + 1000;
	check_errno(kfd_map_ids(kfd, a, ids, 0, NULL, true), EINVAL, "MAP on no GPUs");
	done = 2;
	check_errno(kfd_map_ids(kfd, a, ids, 1, &done, true), EINVAL, "MAP with more done than to do");
	check_errno(kfd_map_ids(kfd, a, (void *)8, 1, NULL, true), EFAULT, "MAP with ids that are not there");
	check_errno(kfd_map(kfd, bad, gpu.gpu_id), ENOMEM, "MAP of an unknown handle");
	check_errno(kfd_map(kfd, (uint64_t)BAD_GPU << 32 | 1, gpu.gpu_id), EINVAL, "MAP of a handle of no GPU");
	check_errno(kfd_map(kfd, a, BAD_GPU), EINVAL, "MAP on an unknown GPU");
	check_errno(kfd_unmap(kfd, a, gpu.gpu_id), EINVAL, "UNMAP of what is not mapped");
	check_errno(kfd_unmap(kfd, bad, gpu.gpu_id), ENOMEM, "UNMAP of an unknown handle");
	done = 0;
	check_errno(kfd_map_ids(kfd, a, ids, 3, &done, true), EINVAL, "MAP on a good and a bad GPU");
	check_u64(done, 1, "... says how far it came");
	done = 2;
	check_errno(kfd_map_ids(kfd, a, ids, 3, &done, true), 0, "... and goes on from where it is told");
	check_u64(done, 3, "... to the end");
	check_errno(kfd_map(kfd, b, gpu.gpu_id), EINVAL, "MAP over another buffer");
	check_errno(kfd_free(kfd, a), EBUSY, "FREE of a mapped buffer");
	check_errno(kfd_unmap(kfd, a, gpu.gpu_id), 0, "UNMAP");
	check_errno(kfd_map(kfd, b, gpu.gpu_id), 0, "MAP where another buffer was");
	must(kfd_unmap(kfd, b, gpu.gpu_id), "UNMAP");
	must(kfd_free(kfd, a), "FREE");
	must(kfd_free(kfd, b), "FREE");
}

static void check_peers(void)
{
	uint32_t ids[2] = { gpu.gpu_id, gpu2.gpu_id };
	uint64_t a = 0;
	int drm2;

	if (!gpu2.gpu_id) {
		check_skip("mapping on two GPUs: the machine has one");
		return;
	}
	must(kfd_alloc(kfd, gpu.gpu_id, reserve(PAGE), PAGE, VRAM_RW, NULL, &a), "ALLOC");
	check_errno(kfd_map(kfd, a, gpu2.gpu_id), ENODEV, "MAP on a GPU without address space");
	drm2 = render_open(gpu2.render_minor);
	must(kfd_acquire(kfd, drm2, gpu2.gpu_id), "ACQUIRE_VM");
	if (kfd_map_ids(kfd, a, ids, 2, NULL, true)) {
		check_skip("mapping on two GPUs: the second cannot access the first");
		must(kfd_unmap(kfd, a, gpu.gpu_id), "UNMAP");
		must(kfd_free(kfd, a), "FREE");
		return;
	}
	check_errno(kfd_unmap(kfd, a, gpu.gpu_id), 0, "UNMAP from the first of two GPUs");
	check_errno(kfd_free(kfd, a), EBUSY, "... does not unmap it from the second");
	check_errno(kfd_unmap(kfd, a, gpu2.gpu_id), 0, "UNMAP from the second");
	check_errno(kfd_free(kfd, a), 0, "FREE");
}

static void check_public(void)
{
	uint64_t a = 0;
	int heap = -1, ret, want;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/topology/nodes/%u/mem_banks/0/properties", gpu.number);
	f = fopen(path, "re");
	if (f && fscanf(f, "heap_type %d", &heap) != 1)
		heap = -1;
	if (f)
		fclose(f);
	want = node_property(gpu.number, "mem_banks_count") == 1 && heap == 1 ? 0 : EINVAL;
	ret = kfd_alloc(kfd, gpu.gpu_id, reserve(PAGE), PAGE, VRAM_RW | MEM_PUBLIC, NULL, &a);
	check_errno(ret, want, "ALLOC of VRAM for the CPU: needs a large BAR");
	if (!ret)
		must(kfd_free(kfd, a), "FREE");
}

static void check_mmap(void)
{
	struct buffer a = buffer_new(kfd, drm_fd, gpu.gpu_id, 2 * PAGE, VRAM_RW);
	int other = render_open(gpu.render_minor);
	char line[256];
	bool flags = false, here = false;
	FILE *f;
	void *p;

	check_true(*(char *)a.va == 0, "new VRAM is zero");
	strcpy((char *)a.va, "hello");
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, drm_fd, a.offset);
	check_true(p != MAP_FAILED && !strcmp(p, "hello"), "a second mapping shows the same");
	munmap(p, PAGE);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, other, a.offset);
	check_errno(p == MAP_FAILED ? -1 : 0, EACCES, "another file of the render node may not map it");
	f = fopen("/proc/self/smaps", "re");
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = from == a.va;
		else if (here && !strncmp(line, "VmFlags:", 8))
			flags = strstr(line, " io") && strstr(line, " pf") && strstr(line, " de") &&
				strstr(line, " dd");
	}
	fclose(f);
	check_true(flags, "it is a device mapping: VmFlags have io, pf, de, dd");
	close(other);
	buffer_free(kfd, &a);
}

static void check_special(void)
{
	uint64_t doorbells = 0, mmio = 0, offset = 0, id = gpu.gpu_id;
	volatile uint32_t *p;

	check_errno(kfd_alloc(kfd, id, reserve(DOORBELLS), DOORBELLS, MEM_DOORBELL | MEM_WRITABLE | MEM_COHERENT, NULL,
			      &doorbells),
		    0, "ALLOC of doorbells");
	check_errno(kfd_map(kfd, doorbells, id), 0, "MAP of doorbells");
	check_errno(kfd_alloc(kfd, id, reserve(PAGE), PAGE, MEM_MMIO | MEM_WRITABLE | MEM_COHERENT, &offset, &mmio), 0,
		    "ALLOC of the MMIO page");
	check_u64(offset, id << 46, "... whose mmap offset is one of /dev/kfd");
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, kfd, offset);
	if (check_true(p != MAP_FAILED, "... and works"))
		*p = 1;
	check_errno(mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, kfd, offset) == MAP_FAILED ? -1 : 0, EINVAL,
		    "... for one page");
	munmap((void *)p, PAGE);
	must(kfd_unmap(kfd, doorbells, id), "UNMAP");
	must(kfd_free(kfd, doorbells), "FREE");
	must(kfd_free(kfd, mmio), "FREE");
}

static int try_mmap(uint64_t size, uint64_t offset)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, kfd, offset);

	if (p == MAP_FAILED)
		return -1;
	munmap(p, size);
	return 0;
}

static void check_kfd_mmap(void)
{
	uint64_t doorbell = 3ull << 62 | (uint64_t)gpu.gpu_id << 46;

	check_errno(try_mmap(DOORBELLS, doorbell), 0, "mmap of doorbells");
	check_errno(try_mmap(PAGE, doorbell), EINVAL, "mmap of a part of the doorbells");
	check_errno(try_mmap(2 * DOORBELLS, doorbell), EINVAL, "mmap of more than the doorbells");
	check_errno(try_mmap(DOORBELLS, 3ull << 62 | (uint64_t)BAD_GPU << 46), ENODEV, "mmap of doorbells of no GPU");
	check_errno(try_mmap(PAGE, (uint64_t)BAD_GPU << 46), ENODEV, "mmap of the MMIO page of no GPU");
	check_errno(try_mmap(PAGE, 0), ENODEV, "mmap at offset 0");
	check_errno(try_mmap(PAGE, 1ull << 62), release < 702 ? ENODEV : EINVAL, "mmap of the reserved type of no GPU");
	check_errno(try_mmap(32 << 10, 2ull << 62), EINVAL, "mmap of a signal page that does not exist");
}

/* Whatever the low bits of its offset, a mapping begins with the first doorbell; a private one can be written to. */
static void check_doorbell_mappings(void)
{
	uint64_t offset = 3ull << 62 | (uint64_t)gpu.gpu_id << 46;
	volatile uint32_t *a = mmap(NULL, DOORBELLS, PROT_READ | PROT_WRITE, MAP_SHARED, kfd, offset);
	volatile uint32_t *b = mmap(NULL, DOORBELLS, PROT_READ | PROT_WRITE, MAP_SHARED, kfd, offset + PAGE);
	volatile uint32_t *c = mmap(NULL, DOORBELLS, PROT_READ | PROT_WRITE, MAP_PRIVATE, kfd, offset);

	check_true(b != MAP_FAILED, "mmap of doorbells at the offset of a doorbell in the second page");
	check_true(c != MAP_FAILED, "mmap of doorbells for a process alone");
	a[1] = 0x600d;
	check_u64(b[1], 0x600d, "... both begin with the first doorbell");
	check_u64(c[1], 0x600d, "... and show what was written");
	c[1] = 0xbad;
	check_u64(a[1], 0x600d, "what is written to the private one stays there");
	a[1] = 0;
	munmap((void *)a, PAGE);
	check_u64(b[1], 0, "a mapping goes on when a part of another is unmapped");
	munmap((void *)(a + 1024), PAGE);
	munmap((void *)b, DOORBELLS);
	munmap((void *)c, DOORBELLS);
}

static void check_userptr(void)
{
	uint8_t *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t offset = (uintptr_t)p, a = 0, b = 0;

	check_errno(kfd_alloc(kfd, gpu.gpu_id, (uintptr_t)p, 4 * PAGE, MEM_USERPTR | MEM_WRITABLE, &offset, &a), 0,
		    "ALLOC of user memory");
	check_true(offset != (uintptr_t)p, "... returns an mmap offset");
	check_errno(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, drm_fd, offset) == MAP_FAILED ? -1 : 0, EPERM,
		    "... which cannot be mapped");
	check_errno(kfd_map(kfd, a, gpu.gpu_id), 0, "MAP of user memory");
	mprotect(p, PAGE, PROT_READ);
	offset = (uintptr_t)p;
	check_errno(kfd_alloc(kfd, gpu.gpu_id, reserve(PAGE), PAGE, MEM_USERPTR | MEM_WRITABLE, &offset, &b), EPERM,
		    "ALLOC of read-only user memory for writing");
	offset = (uintptr_t)p;
	check_errno(kfd_alloc(kfd, gpu.gpu_id, reserve(PAGE), PAGE, MEM_USERPTR, &offset, &b), EPERM,
		    "... for reading, too");
	mprotect(p, PAGE, PROT_READ | PROT_WRITE);
	offset = (uintptr_t)p;
	check_errno(kfd_alloc(kfd, gpu.gpu_id, reserve(PAGE), PAGE, MEM_USERPTR, &offset, &b), 0,
		    "ALLOC of writable user memory for reading");
	must(kfd_free(kfd, b), "FREE");
	must(kfd_unmap(kfd, a, gpu.gpu_id), "UNMAP");
	must(kfd_free(kfd, a), "FREE");
	munmap(p, 4 * PAGE);
}

/* ---- memory of another GPU ---- */

static bool linked(const struct node *from, const struct node *to)
{
	static const char *const kinds[] = { "io_links", "p2p_links" };
	char path[160], line[128];
	unsigned int kind, i, node_to;

	for (kind = 0; kind < 2; kind++) {
		for (i = 0;; i++) {
			FILE *f;

			snprintf(path, sizeof(path), "/sys/class/kfd/kfd/topology/nodes/%u/%s/%u/properties",
				 from->number, kinds[kind], i);
			f = fopen(path, "re");
			if (!f)
				break;
			while (fgets(line, sizeof(line), f))
				if (sscanf(line, "node_to %u", &node_to) == 1 && node_to == to->number) {
					fclose(f);
					return true;
				}
			fclose(f);
		}
	}
	return false;
}

/* VRAM of a GPU is mapped on those that have a link to it, doorbells never in the hive alone, GTT anywhere. */
static void check_peer_access(void)
{
	uint64_t hive = node_property(gpu.number, "hive_id"), handle;
	bool peers = linked(&gpu2, &gpu), same_hive = hive && hive == node_property(gpu2.number, "hive_id");

	if (!gpu2.gpu_id) {
		check_skip("memory of another GPU: the machine has one");
		return;
	}
	must(kfd_alloc(kfd, gpu.gpu_id, reserve(PAGE), PAGE, VRAM_RW, NULL, &handle), "ALLOC");
	check_errno(kfd_map(kfd, handle, gpu2.gpu_id), peers || same_hive ? 0 : EINVAL,
		    "MAP of VRAM on a GPU that has %s link to it", peers ? "a" : "no");
	if (peers || same_hive)
		must(kfd_unmap(kfd, handle, gpu2.gpu_id), "UNMAP");
	must(kfd_free(kfd, handle), "FREE");
	must(kfd_alloc(kfd, gpu.gpu_id, reserve(PAGE), PAGE, GTT_RW, NULL, &handle), "ALLOC");
	check_errno(kfd_map(kfd, handle, gpu2.gpu_id), 0, "MAP of system memory on another GPU");
	must(kfd_unmap(kfd, handle, gpu2.gpu_id), "UNMAP");
	must(kfd_free(kfd, handle), "FREE");
	must(kfd_alloc(kfd, gpu.gpu_id, 0, PAGE, VRAM_RW, NULL, &handle), "ALLOC");
	check_errno(kfd_map(kfd, handle, gpu.gpu_id), EINVAL, "MAP of a buffer without address");
	must(kfd_free(kfd, handle), "FREE");
}

/* ---- dma-bufs ---- */

static void check_export(struct buffer *b, int *ret_fd)
{
	struct export_dmabuf args = { .handle = b->handle, .flags = O_CLOEXEC };
	struct export_dmabuf bad = { .handle = b->handle + 1000 };

	check_errno(ioctl(kfd, NR_EXPORT_DMABUF, &bad), EINVAL, "EXPORT of an unknown handle");
	bad.handle = (uint64_t)BAD_GPU << 32 | 1;
	check_errno(ioctl(kfd, NR_EXPORT_DMABUF, &bad), EINVAL, "EXPORT of a handle of no GPU");
	check_errno(ioctl(kfd, NR_EXPORT_DMABUF, &args), 0, "EXPORT");
	check_u64(fcntl(args.fd, F_GETFD), FD_CLOEXEC, "... with the flags asked for");
	check_u64(lseek(args.fd, 0, SEEK_END), b->size, "... of the right size");
	*ret_fd = args.fd;
}

static void check_dmabuf_info(int fd, const struct buffer *b)
{
	struct kfd_ioctl_get_dmabuf_info_args info = { .dmabuf_fd = fd };
	int null_fd = open("/dev/null", O_RDONLY);

	check_errno(ioctl(kfd, NR_DMABUF_INFO, &info), 0, "GET_DMABUF_INFO");
	check_u64(info.size, b->size, "... size");
	check_u64(info.gpu_id, gpu.gpu_id, "... gpu id");
	check_u64(info.flags & (MEM_VRAM | MEM_GTT), MEM_VRAM, "... kind");
	info.dmabuf_fd = 999;
	check_errno(ioctl(kfd, NR_DMABUF_INFO, &info), EBADF, "GET_DMABUF_INFO of a file that is not open");
	info.dmabuf_fd = null_fd;
	check_errno(ioctl(kfd, NR_DMABUF_INFO, &info), EINVAL, "GET_DMABUF_INFO of no dma-buf");
	close(null_fd);
}

static void check_import(int fd, const struct buffer *b)
{
	struct kfd_ioctl_import_dmabuf_args args = { .va_addr = reserve(b->size),
						     .gpu_id = gpu.gpu_id,
						     .dmabuf_fd = fd };
	struct kfd_ioctl_import_dmabuf_args bad = args;
	struct export_dmabuf export;
	struct stat st, st2;

	bad.gpu_id = BAD_GPU;
	check_errno(ioctl(kfd, NR_IMPORT_DMABUF, &bad), EINVAL, "IMPORT on no GPU");
	bad = args;
	bad.dmabuf_fd = 999;
	check_errno(ioctl(kfd, NR_IMPORT_DMABUF, &bad), EBADF, "IMPORT of a file that is not open");
	check_errno(ioctl(kfd, NR_IMPORT_DMABUF, &args), 0, "IMPORT");
	check_true(args.handle != b->handle, "... gives a handle of its own");
	check_errno(kfd_map(kfd, args.handle, gpu.gpu_id), 0, "MAP of an imported buffer");
	export.handle = args.handle;
	export.flags = 0;
	check_errno(ioctl(kfd, NR_EXPORT_DMABUF, &export), 0, "EXPORT of an imported buffer");
	fstat(fd, &st);
	fstat(export.fd, &st2);
	check_u64(st2.st_ino, st.st_ino, "... is the same dma-buf");
	close(export.fd);
	must(kfd_unmap(kfd, args.handle, gpu.gpu_id), "UNMAP");
	check_errno(kfd_free(kfd, args.handle), 0, "FREE of an imported buffer");
}

static void check_dmabufs(void)
{
	struct buffer b = buffer_new(kfd, drm_fd, gpu.gpu_id, 2 * PAGE, VRAM_RW);
	struct export_dmabuf again = { .handle = b.handle };
	struct stat st, st2;
	int fd;

	if (kfd_minor_version(kfd) < 12) {
		check_skip("dma-bufs: KFD 1.%u exports none", kfd_minor_version(kfd));
		buffer_free(kfd, &b);
		return;
	}
	check_export(&b, &fd);
	must(ioctl(kfd, NR_EXPORT_DMABUF, &again), "EXPORT_DMABUF");
	fstat(fd, &st);
	fstat(again.fd, &st2);
	check_u64(st2.st_ino, st.st_ino, "a buffer has one dma-buf");
	close(again.fd);
	check_dmabuf_info(fd, &b);
	check_import(fd, &b);
	close(fd);
	buffer_free(kfd, &b);
}

/* Argument: the release whose rules hold. */
int main(int argc, char **argv)
{
	release = release_of(argc, argv);
	nr_gpus = count_gpus(&nr_nodes);
	gpu = node_gpu(0);
	if (nr_gpus > 1)
		gpu2 = node_gpu(1);
	kfd = kfd_open();
	drm_fd = render_open(gpu.render_minor);
	check_dispatch();
	check_generations();
	check_apertures();
	check_clocks();
	check_tiles();
	check_unbound();
	check_acquire();
	check_owner();
	check_settings();
	check_alloc_errors();
	check_alloc();
	check_map();
	check_peers();
	check_public();
	check_mmap();
	check_special();
	check_kfd_mmap();
	check_doorbell_mappings();
	check_userptr();
	check_peer_access();
	check_dmabufs();
	return conformance_end();
}
