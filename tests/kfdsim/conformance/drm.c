// SPDX-License-Identifier: GPL-2.0-only
/*
 * Render nodes without commands: ioctl numbers and sizes, buffers, their mappings
 * by processor and GPU, the table of handles, metadata, and what INFO answers.
 */
#include <setjmp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <xf86drm.h>

#include "drm_test.h"

#define MiB (1ull << 20)
#define GiB (1ull << 30)

/* ---- the ioctl interface itself ---- */

static unsigned int release;
static bool alignment_in_pages; /* of GEM_LIST_HANDLES */

static void test_node(int fd)
{
	drmVersionPtr version = drmGetVersion(fd);
	char path[64];
	struct stat st;

	check_str(version->name, "amdgpu", "the driver's name");
	check_u64(version->version_major, 3, "the driver's major version");
	check_u64(version->version_minor, release < 612 ? 49 : release < 617 ? 61 : 64, "the driver's minor version");
	drmFreeVersion(version);
	fstat(fd, &st);
	check_u64(major(st.st_rdev), 226, "render nodes have major number 226");
	snprintf(path, sizeof(path), "/sys/dev/char/226:%u/device/drm", minor(st.st_rdev));
	check_errno(access(path, F_OK), 0, "sysfs has device/drm for it");
	check_u64(drmGetNodeTypeFromFd(fd), DRM_NODE_RENDER, "libdrm takes it for a render node");
}

static void test_dispatch(int fd)
{
	uint8_t args[512] = { 0 };
	struct gem_va va = { .handle = 4711, .operation = 1, .va = 1 << 20, .size = 4096 };

	check_errno(ioctl(fd, 0xc0206540u, args), ENOTTY, "a number of another type");
	check_errno(ioctl(fd, 0xc010646fu, args), EINVAL, "a driver number behind the last");
	check_errno(ioctl(fd, 0xc010644au, args), EINVAL, "a hole in the driver's numbers");
	check_errno(ioctl(fd, 0xc01064f0u, args), EINVAL, "a core number behind the last");
	check_errno(ioctl(fd, NR_USERQ, args), EINVAL, "user queues, which are not simulated");
	check_errno(ioctl(fd, NR_GEM_VA, &va), ENOENT, "GEM_VA with its present size");
	check_errno(ioctl(fd, NR_GEM_VA_OLD, &va), ENOENT, "GEM_VA with the size of older headers");
	check_errno(ioctl(fd, 0x41006448u, memcpy(args, &va, sizeof(va))), ENOENT, "GEM_VA with a larger struct");
	check_errno(ioctl(fd, NR_GEM_VA, (void *)8), EFAULT, "an ioctl with a bad address");
	check_errno(ioctl(fd, NR_VM, memset(args, 0, 8)), EINVAL, "VM with an unknown operation");
	args[0] = 1;
	check_errno(ioctl(fd, NR_VM, args), 0, "VM reserves a VMID");
}

/* ---- creation ---- */

static void test_create(void)
{
	static const uint32_t refused[] = { 1 << 4, 1 << 5, 1 << 10, 1 << 11, 1 << 20 };
	int fd = render_open(0);
	uint32_t handle, second;
	unsigned int i;

	check_errno(try_create(fd, 4096, 0, DOMAIN_VRAM, 0, &handle), 0, "a BO in VRAM");
	check_u64(handle, 1, "the first handle of a file is 1");
	check_errno(try_create(fd, 4096, 0, DOMAIN_GTT, 0, &second), 0, "a BO in GTT");
	check_u64(second, 2, "the second is 2");
	check_errno(bo_close(fd, handle), 0, "a handle can be closed");
	check_errno(bo_close(fd, handle), EINVAL, "but only once");
	check_errno(try_create(fd, 4096, 0, DOMAIN_VRAM, 0, &handle), 0, "another BO");
	check_u64(handle, 1, "gets the lowest free handle");
	check_errno(try_create(fd, 0, 0, DOMAIN_VRAM, 0, &handle), ENOSPC, "a BO of no bytes");
	check_errno(try_create(fd, 4096, 0, 0x80, 0, &handle), EINVAL, "a BO in an unknown domain");
	check_errno(try_create(fd, 4096, 0, 0x40, 0, &handle), EINVAL, "a BO in the doorbell domain");
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		check_errno(try_create(fd, 4096, 0, DOMAIN_VRAM, refused[i], &handle), EINVAL,
			    "a BO with flag %#x, which user space cannot set", refused[i]);
	check_errno(try_create(fd, 1ull << 50, 0, DOMAIN_VRAM | DOMAIN_GTT, 0, &handle), ENOMEM,
		    "a BO that fits nowhere");
	close(fd);
}

static uint64_t info64(int fd, uint32_t query)
{
	uint64_t value = 0;
	struct drm_amdgpu_info info = { .return_pointer = (uintptr_t)&value, .return_size = 8, .query = query };

	if (ioctl(fd, NR_INFO, &info))
		err(2, "INFO %#x", query);
	return value;
}

/* VRAM in use, once what earlier files had has been given back, which may take a moment. */
static uint64_t vram_settled(int fd)
{
	uint64_t usage = info64(fd, AMDGPU_INFO_VRAM_USAGE), before;
	unsigned int same = 0;

	while (same < 20) {
		before = usage;
		usleep(10000);
		usage = info64(fd, AMDGPU_INFO_VRAM_USAGE);
		same = usage == before ? same + 1 : 0;
	}
	return usage;
}

/* Waits until that much VRAM is in use; how much is, when it is not so in the end. */
static uint64_t vram_becomes(int fd, uint64_t want)
{
	for (unsigned int i = 0; i < 1000 && info64(fd, AMDGPU_INFO_VRAM_USAGE) != want; i++)
		usleep(10000);
	return info64(fd, AMDGPU_INFO_VRAM_USAGE);
}

/* VRAM larger than what the machine has (if the GPU has that much): pages are taken when they are touched. */
static void test_lazy(void)
{
	int fd = render_open(0);
	struct drm_amdgpu_info_vram_gtt vram = { 0 };
	struct drm_amdgpu_info info = { .return_pointer = (uintptr_t)&vram, .return_size = sizeof(vram),
					.query = AMDGPU_INFO_VRAM_GTT };
	uint64_t before = vram_settled(fd), size = 8 * GiB, middle;
	uint32_t handle;
	uint8_t *p;

	check_errno(ioctl(fd, NR_INFO, &info), 0, "INFO VRAM_GTT");
	if (size > vram.vram_size / 2)
		size = vram.vram_size / 2 & ~4095ull;
	middle = (size / 8 * 5 & ~4095ull) + 3;
	handle = bo_create(fd, size, DOMAIN_VRAM);
	p = bo_map(fd, handle, size);
	check_u64(info64(fd, AMDGPU_INFO_VRAM_USAGE) - before, size, "%u MiB of VRAM count as used",
		  (unsigned int)(size / MiB));
	check_true(!p[0] && !p[size - 1] && !p[size / 2 + 77], "VRAM is zero at first");
	p[middle] = 0x5a;
	check_true(p[middle] == 0x5a && !p[middle + 4096], "a byte in the middle of it can be written");
	check_errno(bo_close(fd, handle), 0, "closing the handle while it is mapped");
	check_true(p[middle] == 0x5a, "leaves the mapping as it is");
	check_u64(info64(fd, AMDGPU_INFO_VRAM_USAGE) - before, size, "and the memory in use");
	munmap(p, size);
	check_u64(vram_becomes(fd, before), before, "which is free after unmapping");
	close(fd);
}

/* VRAM that is full spills into GTT; VRAM that is too small widens the domains. */
static void test_spill(void)
{
	int fd = render_open(0);
	struct drm_amdgpu_memory_info memory;
	struct drm_amdgpu_info info = { .return_pointer = (uintptr_t)&memory, .return_size = sizeof(memory),
					.query = AMDGPU_INFO_MEMORY };
	struct drm_amdgpu_gem_create_in created;
	struct gem_op op = { .value = (uintptr_t)&created };
	uint64_t gtt, most;
	uint32_t handle, too_large;

	if (ioctl(fd, NR_INFO, &info))
		err(2, "INFO MEMORY");
	gtt = info64(fd, AMDGPU_INFO_GTT_USAGE);
	most = memory.vram.total_heap_size - memory.vram.heap_usage - 4096;
	check_errno(try_create(fd, most, 0, DOMAIN_VRAM, 0, &handle), 0, "nearly all of VRAM in one BO");
	check_errno(try_create(fd, 64 * MiB, 0, DOMAIN_VRAM, 0, &handle), 0, "a VRAM BO when VRAM is full");
	check_u64(info64(fd, AMDGPU_INFO_GTT_USAGE) - gtt, 64 * MiB, "lives in GTT");
	op.handle = handle;
	check_errno(ioctl(fd, NR_GEM_OP, &op), 0, "GEM_OP on it");
	check_u64(created.domains, DOMAIN_VRAM, "still says VRAM");
	if (memory.vram.total_heap_size < memory.gtt.total_heap_size) {
		check_errno(try_create(fd, memory.vram.total_heap_size + 4096, 0, DOMAIN_VRAM, 0, &too_large), 0,
			    "a BO larger than VRAM");
		op.handle = too_large;
		ioctl(fd, NR_GEM_OP, &op);
		check_u64(created.domains, DOMAIN_VRAM | DOMAIN_GTT, "has GTT as its second domain");
	} else {
		check_errno(try_create(fd, memory.gtt.total_heap_size + memory.vram.total_heap_size, 0, DOMAIN_VRAM, 0,
				       &too_large),
			    ENOMEM, "a BO larger than VRAM and GTT");
	}
	close(fd);
}

/* ---- mapping by the processor ---- */

static bool smaps_has(const void *p, const char *flag)
{
	char line[512], start[32];
	bool here = false, found = false;
	FILE *f = fopen("/proc/self/smaps", "r");

	snprintf(start, sizeof(start), "%" PRIxPTR "-", (uintptr_t)p);
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, start, strlen(start)))
			here = true;
		if (here && !strncmp(line, "VmFlags:", 8)) {
			found = strstr(line, flag);
			break;
		}
	}
	if (f)
		fclose(f);
	return found;
}

static void test_mmap(void)
{
	int fd = render_open(0), other = render_open(0);
	uint32_t bo = bo_create(fd, 16384, DOMAIN_VRAM), hidden, user;
	static uint8_t page[4096] __attribute__((aligned(4096)));
	uint64_t offset;
	uint8_t *p, *q;

	check_errno(bo_offset(fd, bo, &offset), 0, "GEM_MMAP");
	check_u64(offset & 4095, 0, "gives an offset that is a multiple of the page size");
	check_errno(bo_offset(fd, 4711, &offset), ENOENT, "GEM_MMAP of an unknown handle");
	try_create(fd, 4096, 0, DOMAIN_VRAM, AMDGPU_GEM_CREATE_NO_CPU_ACCESS, &hidden);
	check_errno(bo_offset(fd, hidden, &offset), EPERM, "GEM_MMAP of a BO without CPU access");
	try_userptr(fd, page, 4096, AMDGPU_GEM_USERPTR_REGISTER, &user);
	check_errno(bo_offset(fd, user, &offset), EPERM, "GEM_MMAP of a userptr BO");
	bo_offset(fd, bo, &offset);
	p = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
	check_errno(p == MAP_FAILED ? -1 : 0, 0, "mapping it");
	q = mmap(NULL, 16384, PROT_READ, MAP_SHARED, other, offset);
	check_errno(q == MAP_FAILED ? -1 : 0, EACCES, "mapping it through a file that has no handle");
	q = mmap(NULL, 20480, PROT_READ, MAP_SHARED, fd, offset);
	check_errno(q == MAP_FAILED ? -1 : 0, EINVAL, "mapping more than there is");
	q = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, offset + 16 * MiB);
	check_errno(q == MAP_FAILED ? -1 : 0, EINVAL, "mapping an offset that belongs to nothing");
	q = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, offset);
	check_errno(q == MAP_FAILED ? -1 : 0, EINVAL, "a private mapping that could be written");
	q = mmap(NULL, 16384, PROT_NONE, MAP_PRIVATE, fd, offset);
	check_errno(q == MAP_FAILED ? -1 : 0, 0, "a private mapping without any access");
	check_errno(mprotect(q, 16384, PROT_READ | PROT_WRITE), EACCES, "which never becomes writable");
	munmap(q, 16384);
	check_true(smaps_has(p, " io"), "smaps shows a mapping of a device (io)");
	check_true(smaps_has(p, " pf"), "of bare page frames (pf)");
	check_true(smaps_has(p, " de"), "that cannot be expanded (de)");
	check_true(smaps_has(p, " dd"), "and is not for core dumps (dd)");
	p[8192] = 1;
	q = mmap(NULL, 16384, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	q = mremap(p, 16384, 16384, MREMAP_MAYMOVE | MREMAP_FIXED, q);
	check_errno(q == MAP_FAILED ? -1 : 0, 0, "it can be moved");
	check_true(q[8192] == 1, "and still is the same memory");
	munmap(q, 4096);
	munmap(q + 12288, 4096);
	check_true(q[8192] == 1 && !q[4096], "also when its ends are cut off");
	munmap(q + 4096, 8192);
	close(other);
	close(fd);
}

static sigjmp_buf bus_jump;

static void on_bus(int sig)
{
	(void)sig;
	siglongjmp(bus_jump, 1);
}

/* Reading and writing through the processor, the other file and the dma-buf are one and the same. */
static void test_coherence(void)
{
	int fd = render_open(0), other = render_open(0), dmabuf;
	uint32_t bo = bo_create(fd, 65536, DOMAIN_VRAM), imported;
	uint8_t *a = bo_map(fd, bo, 65536), *b, *c;

	if (try_export(fd, bo, DRM_CLOEXEC | DRM_RDWR, &dmabuf) || try_import(other, dmabuf, &imported))
		err(2, "sharing a BO");
	b = bo_map(other, imported, 65536);
	c = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 0);
	if (!check_errno(c == MAP_FAILED ? -1 : 0, 0, "a dma-buf can be mapped"))
		return;
	a[100] = 1;
	b[5000] = 2;
	c[60000] = 3;
	check_true(b[100] == 1 && c[100] == 1, "what is written through one mapping is seen by the others");
	check_true(a[5000] == 2 && c[5000] == 2 && a[60000] == 3 && b[60000] == 3, "in all directions");
	check_u64(lseek(dmabuf, 0, SEEK_END), 65536, "the end of a dma-buf is its size");
	munmap(a, 65536);
	munmap(b, 65536);
	munmap(c, 65536);
	close(dmabuf);
	close(other);
	close(fd);
}

/* ---- userptr ---- */

static void test_userptr(void)
{
	int fd = render_open(0), file = open("/proc/self/exe", O_RDONLY);
	const uint32_t normal = AMDGPU_GEM_USERPTR_ANONONLY | AMDGPU_GEM_USERPTR_REGISTER | AMDGPU_GEM_USERPTR_VALIDATE;
	uint8_t *anon = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	uint8_t *device = bo_map(fd, bo_create(fd, 4096, DOMAIN_VRAM), 4096);
	uint32_t handle;
	int dmabuf;

	check_errno(try_userptr(fd, anon, 65536, normal, &handle), 0, "a userptr BO of anonymous memory");
	check_errno(try_export(fd, handle, DRM_CLOEXEC, &dmabuf), EPERM, "cannot be exported");
	check_errno(try_userptr(fd, anon + 1, 4096, normal, &handle), EINVAL, "a userptr that is not aligned");
	check_errno(try_userptr(fd, anon, 100, normal, &handle), EINVAL, "a userptr size that is not aligned");
	check_errno(try_userptr(fd, anon, 4096, 1 << 7, &handle), EINVAL, "a userptr with an unknown flag");
	check_errno(try_userptr(fd, anon, 4096, AMDGPU_GEM_USERPTR_VALIDATE, &handle), EACCES,
		    "a writable userptr without REGISTER");
	check_errno(try_userptr(fd, (void *)(1ull << 40), 4096, normal, &handle), EFAULT,
		    "a userptr where nothing is mapped");
	check_errno(try_userptr(fd, mapped, 4096, normal, &handle), EPERM,
		    "a userptr for anonymous memory only that is a file's");
	check_errno(try_userptr(fd, device, 4096, normal & ~AMDGPU_GEM_USERPTR_ANONONLY, &handle), EFAULT,
		    "a userptr of a device mapping");
	munmap(anon + 32768, 32768);
	check_errno(try_userptr(fd, anon, 65536, normal, &handle), EFAULT, "a userptr that is not mapped to its end");
	munmap(device, 4096);
	munmap(mapped, 4096);
	munmap(anon, 32768);
	close(file);
	close(fd);
}

/* ---- mapping by the GPU ---- */

static void test_gem_va(void)
{
	struct gem_va timeline = {
		.operation = AMDGPU_VA_OP_MAP, .flags = RWX, .va = 1 << 30, .size = 4096, .point = 1, .syncobj_out = 77
	};
	int fd = render_open(0);
	uint32_t bo = bo_create(fd, 65536, DOMAIN_VRAM);
	const uint32_t map = AMDGPU_VA_OP_MAP, unmap = AMDGPU_VA_OP_UNMAP;
	const uint64_t va = 0x40000000;

	check_errno(va_op(fd, bo, map, RWX, va, 0, 65536), 0, "GEM_VA maps a BO");
	check_errno(va_op(fd, bo, map, RWX, va + 65536, 0, 65536), 0, "a second time next to it");
	check_errno(va_op(fd, bo, map, RWX, va - 4096, 0, 8192), EINVAL, "over the beginning of a mapping");
	check_errno(va_op(fd, bo, map, RWX, va + 61440, 0, 4096), EINVAL, "over the end of a mapping");
	check_errno(va_op(fd, bo, map, RWX, va + 8192, 0, 4096), EINVAL, "into a mapping");
	check_errno(va_op(fd, bo, map, RWX, 0x8000, 0, 4096), EINVAL, "below the lowest address");
	check_errno(va_op(fd, bo, map, RWX, 1ull << 47, 0, 4096), EINVAL, "in the hole of the address space");
	check_errno(va_op(fd, bo, map, RWX, 0xfffffffffff00000ull, 0, 4096), EINVAL, "in the reserved top");
	check_errno(va_op(fd, bo, map, RWX, 0xffff800000000000ull, 0, 4096), 0, "at the first address behind the hole");
	check_errno(va_op(fd, bo, map, RWX, va + (1 << 20) + 1, 0, 4096), EINVAL, "at an address that is not aligned");
	check_errno(va_op(fd, bo, map, RWX, va + (1 << 20), 100, 4096), EINVAL, "from an offset that is not aligned");
	check_errno(va_op(fd, bo, map, RWX, va + (1 << 20), 0, 5000), EINVAL, "with a size that is not aligned");
	check_errno(va_op(fd, bo, map, RWX, va + (1 << 20), 0, 0), EINVAL, "without a size");
	check_errno(va_op(fd, bo, map, RWX, va + (1 << 20), 4096, 65536), EINVAL, "beyond the end of the BO");
	check_errno(va_op(fd, bo, map, RWX, va + (1 << 20), 1ull << 63, 65536), EINVAL, "from a huge offset");
	check_errno(va_op(fd, bo, map, 1 << 15, va + (1 << 20), 0, 4096), EINVAL, "with an unknown flag");
	check_errno(va_op(fd, bo, 7, RWX, va + (1 << 20), 0, 4096), EINVAL, "an unknown operation");
	check_errno(va_op(fd, 4711, map, RWX, va + (1 << 20), 0, 4096), ENOENT, "an unknown handle");
	check_errno(va_op(fd, bo, unmap, 0, va + 4096, 0, 4096), ENOENT, "unmapping where no mapping starts");
	check_errno(va_op(fd, bo, unmap, 0, va, 0, 65536), 0, "unmapping");
	check_errno(va_op(fd, bo, unmap, 0, va, 0, 65536), ENOENT, "works once");
	check_errno(va_op(fd, bo, AMDGPU_VA_OP_REPLACE, RWX, va + 69632, 0, 8192), 0, "replacing a part of a mapping");
	check_errno(va_op(fd, bo, unmap, 0, va + 69632, 0, 8192), 0, "the part is a mapping of its own");
	check_errno(va_op(fd, bo, unmap, 0, va + 65536, 0, 4096), 0, "what was in front of it, too");
	check_errno(va_op(fd, bo, unmap, 0, va + 77824, 0, 4096), 0, "and what was behind");
	check_errno(va_op(fd, 0, AMDGPU_VA_OP_CLEAR, 0, va, 0, 1 << 20), 0, "clearing a range that is empty");
	timeline.handle = bo;
	check_errno(ioctl(fd, NR_GEM_VA, &timeline), release < 617 ? 0 : ENOENT,
		    "an unknown timeline, which DRM before 3.64 does not look at");
	close(fd);
}

static unsigned int mappings(int fd, uint32_t bo, struct vm_entry *entries, unsigned int max)
{
	struct gem_op op = { .handle = bo, .op = 2, .value = (uintptr_t)entries, .num_entries = max };

	if (ioctl(fd, NR_GEM_OP, &op))
		return ~0u;
	return op.num_entries;
}

static void test_mapping_info(void)
{
	int fd = render_open(0), other = render_open(0), dmabuf;
	uint32_t bo = bo_create(fd, 65536, DOMAIN_VRAM), imported, again;
	struct vm_entry e[4] = { 0 };
	struct gem_op op = { .handle = bo, .op = 2, .num_entries = 0x7fffffff };

	check_u64(mappings(fd, bo, e, 4), 0, "a BO without mappings has 0 of them");
	va_op(fd, bo, AMDGPU_VA_OP_MAP, RWX, 0x50000000, 4096, 8192);
	va_op(fd, bo, AMDGPU_VA_OP_MAP, 2, 0x40000000, 0, 65536);
	check_u64(mappings(fd, bo, e, 1), 2, "with too small an array the number comes back");
	check_true(!e[0].size, "and nothing is copied");
	check_u64(mappings(fd, bo, e, 4), 2, "with a larger array, too");
	if (e[0].va != 0x40000000) {
		struct vm_entry swap = e[0];

		e[0] = e[1];
		e[1] = swap;
	}
	check_true(e[0].va == 0x40000000 && e[0].size == 65536 && !e[0].offset && e[0].flags == 2,
		   "and the first mapping is right");
	check_true(e[1].va == 0x50000000 && e[1].size == 8192 && e[1].offset == 4096 && e[1].flags == RWX,
		   "the second, too");
	check_errno(ioctl(fd, NR_GEM_OP, &op), EINVAL, "an array of more than 2 GiB");
	try_export(fd, bo, DRM_CLOEXEC, &dmabuf);
	try_import(other, dmabuf, &imported);
	check_u64(mappings(other, imported, e, 4), 0, "mappings are those of one file's address space");
	check_errno(bo_close(fd, bo), 0, "closing the last handle of a file");
	try_import(fd, dmabuf, &again);
	check_u64(mappings(fd, again, e, 4), 0, "removes its mappings");
	close(dmabuf);
	close(other);
	close(fd);
}

static void test_gem_op(void)
{
	int fd = render_open(0);
	struct drm_amdgpu_gem_create_in info;
	struct gem_op op = { .value = (uintptr_t)&info };
	uint32_t bo;

	try_create(fd, 5000, 65536, DOMAIN_VRAM, AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED, &bo);
	op.handle = bo;
	check_errno(ioctl(fd, NR_GEM_OP, &op), 0, "GEM_OP tells how a BO was created");
	check_u64(info.bo_size, 8192, "its size, in whole pages");
	check_u64(info.alignment, 65536, "its alignment");
	check_u64(info.domains, DOMAIN_VRAM, "its domains");
	check_u64(info.domain_flags,
		  AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED | AMDGPU_GEM_CREATE_VRAM_CLEARED |
			  (release >= 612 ? AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE : 0),
		  "its flags, VRAM_CLEARED always among them");
	check_errno(ioctl(fd, NR_GEM_OP_OLD, &op), 0, "GEM_OP with the size of older headers");
	op.value = 8;
	check_errno(ioctl(fd, NR_GEM_OP, &op), EFAULT, "GEM_OP to a bad address");
	op.handle = 4711;
	check_errno(ioctl(fd, NR_GEM_OP, &op), ENOENT, "GEM_OP on an unknown handle");
	op = (struct gem_op){ .handle = bo, .op = 9 };
	check_errno(ioctl(fd, NR_GEM_OP, &op), EINVAL, "an unknown GEM_OP");
	op = (struct gem_op){ .handle = bo, .op = 1, .value = DOMAIN_GTT };
	check_errno(ioctl(fd, NR_GEM_OP, &op), 0, "SET_PLACEMENT");
	op = (struct gem_op){ .handle = bo, .value = (uintptr_t)&info };
	ioctl(fd, NR_GEM_OP, &op);
	check_u64(info.domains, DOMAIN_GTT, "changes the domains");
	close(fd);
}

/* ---- handles ---- */

static void test_list_handles(void)
{
	int fd = render_open(0);
	struct list_handles list = { 0 };
	struct list_entry entries[8] = { 0 };
	uint32_t bo[3];
	unsigned int i;

	check_errno(ioctl(fd, NR_LIST_HANDLES, &list), 0, "GEM_LIST_HANDLES of a file without any");
	check_u64(list.num_entries, 0, "tells 0");
	try_create(fd, 5000, 8192, DOMAIN_VRAM, AMDGPU_GEM_CREATE_EXPLICIT_SYNC, &bo[0]);
	bo[1] = bo_create(fd, 1 << 20, DOMAIN_GTT);
	bo[2] = bo_create(fd, 4096, DOMAIN_VRAM | DOMAIN_GTT);
	bo_close(fd, bo[1]);
	list = (struct list_handles){ .entries = (uintptr_t)entries, .num_entries = 1 };
	check_errno(ioctl(fd, NR_LIST_HANDLES, &list), 0, "with too small an array it succeeds");
	check_u64(list.num_entries, 2, "tells the number");
	check_u64(entries[0].handle, 0, "and copies nothing");
	list.num_entries = 8;
	check_errno(ioctl(fd, NR_LIST_HANDLES, &list), 0, "with a larger array");
	check_u64(list.num_entries, 2, "it tells the number");
	check_true(entries[0].handle == bo[0] && entries[1].handle == bo[2],
		   "and lists the handles in ascending order");
	check_u64(entries[0].size, 8192, "with their sizes");
	check_u64(entries[1].domains, DOMAIN_VRAM | DOMAIN_GTT, "domains");
	check_u64(entries[0].alloc_flags,
		  AMDGPU_GEM_CREATE_EXPLICIT_SYNC | AMDGPU_GEM_CREATE_VRAM_CLEARED | AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE,
		  "and flags");
	check_u64(entries[0].alignment, alignment_in_pages ? 2 : 8192, "alignment, in pages for some releases");
	for (i = 0; i < 2; i++)
		check_u64(entries[i].flags, 0, "number %u is no import", i);
	list.entries = 8;
	check_errno(ioctl(fd, NR_LIST_HANDLES, &list), EFAULT, "with a bad address");
	close(fd);
}

static void test_no_list_handles(int fd)
{
	struct gem_op op = { .handle = bo_create(fd, 4096, DOMAIN_VRAM), .op = 2 };

	check_errno(ioctl(fd, NR_GEM_OP, &op), EINVAL, "before 6.18: GEM_OP does not list mappings either");
	bo_close(fd, op.handle);
}

static void test_change_handle(bool enabled)
{
	int fd = render_open(0), dmabuf;
	uint32_t bo = bo_create(fd, 4096, DOMAIN_VRAM), other = bo_create(fd, 4096, DOMAIN_VRAM), args[2] = { bo, 17 };
	struct vm_entry e;
	uint8_t *p = bo_map(fd, bo, 4096);

	if (!enabled) {
		check_errno(ioctl(fd, NR_CHANGE_HANDLE, args), EINVAL, "GEM_CHANGE_HANDLE is disabled");
		check_errno(bo_close(fd, bo), 0, "the handle is what it was");
		close(fd);
		return;
	}
	try_export(fd, bo, DRM_CLOEXEC, &dmabuf);
	va_map(fd, bo, 1 << 30, 4096);
	p[3] = 99;
	check_errno(ioctl(fd, NR_CHANGE_HANDLE, args), 0, "GEM_CHANGE_HANDLE");
	check_errno(bo_close(fd, bo), EINVAL, "the old handle is gone");
	check_u64(mappings(fd, 17, &e, 1), 1, "the mappings stay with the BO");
	check_errno(try_import(fd, dmabuf, &bo), 0, "importing its dma-buf");
	check_u64(bo, 17, "gives the new handle");
	args[0] = 17, args[1] = other;
	check_errno(ioctl(fd, NR_CHANGE_HANDLE, args), ENOSPC, "to a handle in use");
	args[0] = 4711, args[1] = 20;
	check_errno(ioctl(fd, NR_CHANGE_HANDLE, args), ENOENT, "of an unknown handle");
	args[0] = 4711, args[1] = other;
	check_errno(ioctl(fd, NR_CHANGE_HANDLE, args), ENOENT, "of an unknown handle to one in use");
	args[0] = 4711, args[1] = 4711;
	check_errno(ioctl(fd, NR_CHANGE_HANDLE, args), 0, "to itself: nothing is done");
	args[0] = 17, args[1] = 0x80000000;
	check_errno(ioctl(fd, NR_CHANGE_HANDLE, args), EINVAL, "to a number that is too large");
	args[1] = 0x7ffffffe;
	check_errno(ioctl(fd, NR_CHANGE_HANDLE, args), 0, "to a large number");
	check_errno(bo_close(fd, 0x7ffffffe), 0, "it can be closed");
	check_true(p[3] == 99, "the memory was the same all the time");
	munmap(p, 4096);
	close(dmabuf);
	close(fd);
}

static void test_metadata(void)
{
	int fd = render_open(0);
	struct drm_amdgpu_gem_metadata m = { .handle = bo_create(fd, 4096, DOMAIN_VRAM), .op = 1 };

	m.data.flags = 5;
	m.data.tiling_info = 0x1234567890ull;
	m.data.data_size_bytes = 12;
	memcpy(m.data.data, "hello world", 12);
	check_errno(ioctl(fd, NR_METADATA, &m), 0, "metadata can be set");
	memset(&m.data, 0xff, sizeof(m.data));
	m.op = 2;
	check_errno(ioctl(fd, NR_METADATA, &m), 0, "and read");
	check_true(m.data.tiling_info == 0x1234567890ull && m.data.flags == 5, "tiling and flags are the same");
	check_true(m.data.data_size_bytes == 12 && !memcmp(m.data.data, "hello world", 12), "and so is the data");
	m.op = 1;
	m.data.data_size_bytes = sizeof(m.data.data) + 1;
	check_errno(ioctl(fd, NR_METADATA, &m), EINVAL, "metadata that is too long");
	m.handle = 4711;
	check_errno(ioctl(fd, NR_METADATA, &m), ENOENT, "metadata of an unknown handle");
	close(fd);
}

static void test_wait_idle(void)
{
	int fd = render_open(0);
	union drm_amdgpu_gem_wait_idle w = { .in = { .handle = bo_create(fd, 4096, DOMAIN_VRAM), .timeout = FOREVER } };

	check_errno(ioctl(fd, NR_WAIT_IDLE, &w), 0, "WAIT_IDLE on a BO that nothing uses");
	check_u64(w.out.status, 0, "says idle");
	w = (union drm_amdgpu_gem_wait_idle){ .in = { .handle = 4711 } };
	check_errno(ioctl(fd, NR_WAIT_IDLE, &w), ENOENT, "WAIT_IDLE on an unknown handle");
	close(fd);
}

/* ---- sharing ---- */

static ino_t inode_of(int fd)
{
	struct stat st;

	fstat(fd, &st);
	return st.st_ino;
}

static void test_prime(void)
{
	int a = render_open(0), b = render_open(0), first, second, third;
	uint32_t bo = bo_create(a, 65536, DOMAIN_VRAM), in_a, in_b, again, always;
	struct list_entry entry;
	struct list_handles list = { .entries = (uintptr_t)&entry, .num_entries = 1 };

	check_errno(try_export(a, bo, DRM_CLOEXEC | DRM_RDWR, &first), 0, "exporting a BO");
	try_export(a, bo, DRM_CLOEXEC, &second);
	check_u64(inode_of(second), inode_of(first), "twice gives the same dma-buf");
	check_errno(try_import(a, first, &in_a), 0, "importing it where it comes from");
	check_u64(in_a, bo, "gives the same handle");
	check_errno(try_import(b, first, &in_b), 0, "importing it into another file");
	check_u64(in_b, 1, "gives a handle of that file");
	try_import(b, second, &again);
	check_u64(again, in_b, "importing it again gives the same handle");
	try_export(b, in_b, DRM_CLOEXEC, &third);
	check_u64(inode_of(third), inode_of(first), "exported from there it is the same dma-buf");
	if (!ioctl(b, NR_LIST_HANDLES, &list))
		check_u64(entry.flags, 0, "a BO of the same GPU is not listed as an import");
	check_errno(try_import(a, a, &again), EINVAL, "importing what is no dma-buf");
	check_errno(try_import(a, 999, &again), EBADF, "importing a closed file descriptor");
	check_errno(try_export(a, 4711, DRM_CLOEXEC, &third), ENOENT, "exporting an unknown handle");
	try_create(a, 4096, 0, DOMAIN_VRAM, AMDGPU_GEM_CREATE_VM_ALWAYS_VALID, &always);
	check_errno(try_export(a, always, DRM_CLOEXEC, &third), EPERM, "exporting a BO of one address space only");
	bo_close(a, bo);
	bo_close(b, in_b);
	check_errno(try_import(b, first, &in_b), 0, "a dma-buf keeps its BO when all handles are closed");
	try_export(b, in_b, DRM_CLOEXEC, &third);
	check_u64(inode_of(third), inode_of(first), "and stays the BO's one dma-buf");
	close(first);
	close(second);
	close(third);
	close(a);
	close(b);
}

/* Between GPUs: one memory, an object on each. */
static void test_prime_gpus(void)
{
	int a = render_open(0), b = render_open(1), dmabuf, back;
	uint32_t bo = bo_create(a, 1 << 20, DOMAIN_VRAM), imported, home;
	struct list_entry entry = { 0 };
	struct list_handles list = { .entries = (uintptr_t)&entry, .num_entries = 1 };
	uint8_t *p = bo_map(a, bo, 1 << 20), *q;
	struct engine e;
	uint32_t in_e;
	uint64_t va;

	try_export(a, bo, DRM_CLOEXEC | DRM_RDWR, &dmabuf);
	check_errno(try_import(b, dmabuf, &imported), 0, "importing a BO of another GPU");
	if (!ioctl(b, NR_LIST_HANDLES, &list)) {
		check_u64(entry.flags, 1, "it is listed as an import");
		check_u64(entry.size, 1 << 20, "with the exporter's size");
	}
	check_errno(try_export(b, imported, DRM_CLOEXEC, &back), 0, "exporting the import");
	check_u64(inode_of(back), inode_of(dmabuf), "gives the original dma-buf");
	try_import(a, back, &home);
	check_u64(home, bo, "which at home is the original handle");
	q = bo_map(b, imported, 1 << 20);
	signal(SIGBUS, on_bus);
	if (!sigsetjmp(bus_jump, 1)) {
		*(volatile uint8_t *)q = 1;
		check_true(false, "the importer's mapping gives SIGBUS");
	} else {
		check_true(true, "the importer's mapping gives SIGBUS");
	}
	signal(SIGBUS, SIG_DFL);
	engine_open(&e, 1);
	try_import(e.fd, dmabuf, &in_e);
	va = engine_map(&e, in_e, 1 << 20);
	pattern_fill(p, 4096, 1);
	emit_copy(&e.c, va + 500001, va, 4096);
	check_errno(engine_run(&e), 0, "the other GPU's engine copies within it");
	check_u64(pattern_compare(p + 500001, 0, 4096, 1), 4096, "and the exporter sees all bytes");
	engine_close(&e);
	munmap(p, 1 << 20);
	munmap(q, 1 << 20);
	close(back);
	close(dmabuf);
	close(a);
	close(b);
}

/* Memory of no GPU at all, if the machine has udmabuf. */
static void test_prime_foreign(void)
{
	struct {
		uint32_t memfd, flags;
		uint64_t offset, size;
	} create = { 0 };
	int udmabuf = open("/dev/udmabuf", O_RDWR), memfd = memfd_create("test", MFD_ALLOW_SEALING), dmabuf;
	uint32_t imported;
	struct engine e;
	uint8_t *p;
	uint64_t va;

	if (udmabuf < 0) {
		check_skip("foreign dma-bufs: there is no /dev/udmabuf");
		close(memfd);
		return;
	}
	if (ftruncate(memfd, 1 << 20) || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		err(2, "memfd");
	p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	create.memfd = memfd;
	create.size = 1 << 20;
	dmabuf = ioctl(udmabuf, _IOW('u', 0x42, create), &create);
	if (dmabuf < 0)
		err(2, "UDMABUF_CREATE");
	engine_open(&e, 0);
	check_errno(try_import(e.fd, dmabuf, &imported), 0, "importing a dma-buf of memory that is no GPU's");
	va = engine_map(&e, imported, 1 << 20);
	pattern_fill(p, 100000, 6);
	emit_copy(&e.c, va + 300003, va + 1, 99999);
	check_errno(engine_run(&e), 0, "a copy within it");
	check_u64(pattern_compare(p + 300003, 1, 99999, 6), 99999, "moves the right bytes");
	engine_close(&e);
	munmap(p, 1 << 20);
	close(dmabuf);
	close(memfd);
	close(udmabuf);
}

/* ---- INFO ---- */

static int info_size(int fd, uint32_t query, void *out, uint32_t size)
{
	struct drm_amdgpu_info info = { .return_pointer = (uintptr_t)out, .return_size = size, .query = query };

	return ioctl(fd, NR_INFO, &info);
}

static void test_info(int fd)
{
	struct drm_amdgpu_info_hw_ip ip;
	struct drm_amdgpu_info info = { .return_pointer = (uintptr_t)&ip, .return_size = sizeof(ip),
					.query = AMDGPU_INFO_HW_IP_INFO };
	uint8_t dev[512];
	uint32_t one = 0, reg = 0;
	uint64_t t1, t2;

	check_errno(info_size(fd, AMDGPU_INFO_ACCEL_WORKING, &one, 4), 0, "INFO ACCEL_WORKING");
	check_u64(one, 1, "says yes");
	check_errno(info_size(fd, AMDGPU_INFO_ACCEL_WORKING, &one, 0), EINVAL, "INFO with size 0");
	check_errno(info_size(fd, AMDGPU_INFO_ACCEL_WORKING, NULL, 4), EINVAL, "INFO to address 0");
	check_errno(info_size(fd, AMDGPU_INFO_ACCEL_WORKING, (void *)8, 4), EFAULT, "INFO to a bad address");
	check_errno(info_size(fd, 0x99, &one, 4), EINVAL, "an unknown INFO");
	memset(dev, 0xee, sizeof(dev));
	check_errno(info_size(fd, AMDGPU_INFO_DEV_INFO, dev, sizeof(dev)), 0, "INFO DEV_INFO");
	check_true(dev[439] != 0xee && dev[440] == 0xee, "is 440 bytes long");
	memset(dev, 0xee, sizeof(dev));
	check_errno(info_size(fd, AMDGPU_INFO_DEV_INFO, dev, 100), 0, "with less room");
	check_true(dev[99] != 0xee && dev[100] == 0xee, "it is cut off");
	info.query_hw_ip.type = AMDGPU_HW_IP_DMA;
	check_errno(ioctl(fd, NR_INFO, &info), 0, "INFO HW_IP_INFO of DMA");
	check_u64(ip.available_rings, 3, "there are two rings");
	check_true(ip.ib_start_alignment == 256 && ip.ib_size_alignment == 4, "with the kernel's alignments");
	info.query_hw_ip.ip_instance = 1;
	check_errno(ioctl(fd, NR_INFO, &info), EINVAL, "of another instance");
	info.query_hw_ip.ip_instance = 0;
	info.query_hw_ip.type = 10;
	check_errno(ioctl(fd, NR_INFO, &info), EINVAL, "of an unknown IP");
	info = (struct drm_amdgpu_info){ .return_pointer = (uintptr_t)&reg, .return_size = 4,
					 .query = AMDGPU_INFO_READ_MMR_REG };
	info.read_mmr_reg.dword_offset = 0x263e;
	info.read_mmr_reg.count = 1;
	info.read_mmr_reg.instance = 0xffffffff;
	check_errno(ioctl(fd, NR_INFO, &info), 0, "reading the one register that libdrm reads");
	info.read_mmr_reg.dword_offset = 1;
	check_errno(ioctl(fd, NR_INFO, &info), EFAULT, "reading another one");
	info.read_mmr_reg.count = 129;
	check_errno(ioctl(fd, NR_INFO, &info), EINVAL, "reading too many");
	t1 = info64(fd, AMDGPU_INFO_TIMESTAMP);
	usleep(1000);
	t2 = info64(fd, AMDGPU_INFO_TIMESTAMP);
	check_true(t2 - t1 >= 100000, "the GPU's clock runs at 100 MHz");
}

/* Argument: the release whose rules hold. */
int main(int argc, char **argv)
{
	int fd = render_open(0);
	struct list_handles list = { 0 };
	bool has_list = !ioctl(fd, NR_LIST_HANDLES, &list);
	uint32_t nothing[2] = { 4711, 4711 };
	bool has_change = !ioctl(fd, NR_CHANGE_HANDLE, nothing);

	release = release_of(argc, argv);
	alignment_in_pages = release == 618 || is_since(argc, argv, "7.2.12");
	test_node(fd);
	test_dispatch(fd);
	test_info(fd);
	test_create();
	test_lazy();
	test_spill();
	test_mmap();
	test_coherence();
	test_userptr();
	test_gem_va();
	test_gem_op();
	if (has_list) {
		test_mapping_info();
		test_list_handles();
	} else {
		test_no_list_handles(fd);
	}
	test_change_handle(has_change);
	test_metadata();
	test_wait_idle();
	test_prime();
	if (render_count() > 1)
		test_prime_gpus();
	else
		check_skip("sharing between GPUs: there is only one");
	test_prime_foreign();
	close(fd);
	return conformance_end();
}
