// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the render file of a dumper can learn of a GEM handle, and what a handle, an import and a CPU mapping allow.
 */
#include <libdrm/amdgpu_drm.h>
#include <setjmp.h>

#include "share_test.h"

/* Newer than Debian 12's libdrm. */
#define CREATE_COHERENT (1u << 13)
#define CREATE_UNCACHED (1u << 14)

static struct process self;
static sigjmp_buf fault;

static void on_fault(int sig)
{
	siglongjmp(fault, sig);
}

/* The signal that reading from @p gives; 0: none. */
static int touch(volatile uint32_t *p)
{
	int sig = sigsetjmp(fault, 1);

	if (!sig)
		(void)*p;
	return sig;
}

static void check_userptr(void)
{
	int file = render_open(gpus[0].render_minor), fd;
	void *p = must_map(0, BO_BYTES, RW, -1, 0);
	uint64_t offset;
	uint32_t gem;

	must(gem_userptr(file, p, BO_BYTES, &gem), "GEM_USERPTR");
	check_errno(gem_mmap_offset(file, gem, &offset), EPERM, "GEM_MMAP of a userptr handle");
	check_errno(gem_export(file, gem, true, &fd), EPERM, "PRIME export of it");
	close(file);
	munmap(p, BO_BYTES);
	file = render_open(gpus[0].render_minor);
	must(gem_create(file, BO_BYTES, GEM_DOMAIN_VRAM, GEM_NO_CPU_ACCESS, &gem), "GEM_CREATE");
	check_errno(gem_mmap_offset(file, gem, &offset), EPERM, "GEM_MMAP of a handle without CPU access");
	close(file);
}

static void check_mode(void)
{
	int file = render_open(gpus[0].render_minor), fd, fd2;
	uint32_t gem = object_new(file, BO_BYTES, GEM_DOMAIN_GTT);

	must(gem_export(file, gem, false, &fd), "PRIME export");
	must(gem_export(file, gem, true, &fd2), "PRIME export");
	check_u64(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY, "the first export without DRM_RDWR is read-only");
	check_u64(fcntl(fd2, F_GETFL) & O_ACCMODE, O_RDONLY, "... and so is a later one with it");
	close(fd);
	close(fd2);
	must(gem_export(file, gem, true, &fd), "PRIME export");
	check_u64(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY, "... also when all fds of it are closed");
	close(fd);
	close(file);
}

static void check_create_info(const char *what, uint32_t flags, uint64_t want_domains, uint64_t want_flags)
{
	uint64_t h = p_alloc(&self, 0, flags);
	int file = render_open(gpus[0].render_minor), fd = p_export(&self, h);
	struct drm_amdgpu_gem_create_in info = { 0 };
	struct drm_amdgpu_gem_op op = { .op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO, .value = (uintptr_t)&info };

	must(gem_import(file, fd, &op.handle), "PRIME import");
	check_errno(ioctl(file, DRM_IOCTL_AMDGPU_GEM_OP, &op), 0, "GET_GEM_CREATE_INFO of a PRIME import of %s", what);
	check_u64(info.bo_size, BO_BYTES, "... size");
	check_u64(info.alignment, PAGE, "... alignment in bytes");
	check_u64(info.domains, want_domains, "... domains");
	check_u64(info.domain_flags, want_flags, "... flags (%#" PRIx64 ")", (uint64_t)info.domain_flags);
	close(file);
	close(fd);
	p_free(&self, h);
}

static void check_cpu(void)
{
	uint64_t h = p_alloc(&self, 0, VRAM_OWN), offset, far_offset, far_h;
	int fd = p_export(&self, h), file = render_open(gpus[0].render_minor), far, i;
	struct seen seen;
	uint32_t gem;
	void *p, *p2;

	must(p_checkpoint(&self, h, &seen), "CHECKPOINT");
	p = mmap(NULL, BO_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, seen.offset);
	check_errno(p == MAP_FAILED ? -1 : 0, EACCES, "mmap by a file that has neither handle nor KFD BO");
	must(gem_import(file, fd, &gem), "PRIME import");
	p = mmap(NULL, BO_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, seen.offset);
	check_errno(p == MAP_FAILED ? -1 : 0, 0, "... that has imported it");
	*(uint32_t *)p = 4711;
	if (nr_gpus > 1) {
		far = render_open(gpus[1].render_minor);
		must(gem_import(far, fd, &gem), "PRIME import on the other GPU");
		check_errno(gem_mmap_offset(far, gem, &far_offset), 0, "GEM_MMAP of an import on the other GPU");
		p2 = mmap(NULL, BO_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, far, far_offset);
		if (check_errno(p2 == MAP_FAILED ? -1 : 0, 0, "... mmap")) {
			signal(SIGBUS, on_fault);
			signal(SIGSEGV, on_fault);
			check_u64(touch(p2), SIGBUS, "... reading from it");
			munmap(p2, BO_BYTES);
		}
		if (far_vram) {
			far_h = p_import(&self, 1, fd);
			p_free(&self, far_h);
		}
		close(far);
	}
	close(file);
	close(fd);
	p_free(&self, h);
	check_u64(*(uint32_t *)p, 4711, "a mapping keeps a buffer that has no handle, KFD BO or dma-buf fd left");
	file = render_open(gpus[0].render_minor);
	for (i = 0; i < 64; i++) {
		gem = object_new(file, BO_BYTES, GEM_DOMAIN_VRAM);
		must(gem_mmap_offset(file, gem, &offset), "GEM_MMAP");
		if (offset == seen.offset)
			break;
	}
	check_true(i == 64, "... and its offset: 64 new buffers do not get it");
	munmap(p, BO_BYTES);
	close(file);
}

/* Whoever maps an import at once is refused. */
static void check_refused_imports(void)
{
	uint64_t h = p_alloc(&self, 0, VRAM_OWN);
	int fd = p_export(&self, h);
	struct reply reply;

	check_errno(tell(&self, (struct request){ .step = STEP_IMPORT, .gpu = 1 }, fd, &reply, NULL), EINVAL,
		    "IMPORT_DMABUF of VRAM of another GPU of the hive");
	check_errno(tell(&self, (struct request){ .step = STEP_GEM_IMPORT, .gpu = 1 }, fd, &reply, NULL), EINVAL,
		    "... PRIME import by the KFD's file of that GPU");
	close(fd);
	p_free(&self, h);
}

/* Argument: the release whose rules hold. */
int main(int argc, char **argv)
{
	find_gpus(argc, argv);
	self = process_open();
	check_userptr();
	check_mode();
	check_create_info("VRAM", VRAM_RW, GEM_DOMAIN_VRAM,
			  AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE | AMDGPU_GEM_CREATE_VRAM_CLEARED);
	check_create_info("coherent VRAM", VRAM_RW | MEM_COHERENT, GEM_DOMAIN_VRAM,
			  AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE | AMDGPU_GEM_CREATE_VRAM_CLEARED | CREATE_COHERENT);
	check_create_info("GTT", GTT_RW, GEM_DOMAIN_GTT, AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE);
	check_create_info("uncached GTT", GTT_RW | 1u << 25, GEM_DOMAIN_GTT,
			  AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE | CREATE_UNCACHED);
	check_cpu();
	if (nr_gpus > 1 && !far_vram)
		check_refused_imports();
	return conformance_end();
}
