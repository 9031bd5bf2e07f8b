/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For programs that open render nodes and use the KFD at once.
 *
 * Linux 7.2 does not wait until an engine has cleared a new address space before the CPU writes to it: amdgpu_vm_make_compute()
 * waits for fences that amdgpu_sync_resv() passes over, and what is mapped at once may be cleared again. An engine writes
 * page tables of a file one after the other, so a page is mapped and unmapped, and that waited for.
 *
 * Bare ioctl numbers, as the ABI has them: the installed headers may be older.
 */
#ifndef TESTS_CLEAR_H
#define TESTS_CLEAR_H

#include <errno.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <time.h>

/* The minor number of the DRM driver's version, 64 from Linux 6.16 on; -1 with errno. */
static inline int drm_version(int fd)
{
	struct {
		int major, minor, patch;
		uint64_t texts[6];
	} version = { 0 };

	return ioctl(fd, 0xc0406400u, &version) ? -1 : version.minor;
}

/*
 * Waits for the second point of the syncobj, 20 s at most. The kernel is asked again and again: the clock of a task in a
 * time namespace, as a restored one is, is not the one that the kernel would hold a deadline against.
 */
static inline int wait_for_unmap(int fd, uint32_t syncobj)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	uint64_t point = 2;
	struct {
		uint64_t handles, points;
		int64_t timeout;
		uint32_t count, flags, first, pad;
	} wait = { .handles = (uintptr_t)&syncobj, .points = (uintptr_t)&point, .count = 1 };
	int err = -1;

	for (int try = 0; err && try < 20000; try++) {
		err = ioctl(fd, 0xc02864cau, &wait);
		if (err && errno != ETIME)
			return err;
		if (err)
			nanosleep(&nap, NULL);
	}
	return err;
}

/* 0, or -1 with errno. Without an effect before Linux 6.16, where the kernel waits. */
static inline int wait_until_clear(int fd)
{
	struct {
		uint64_t size, alignment, domains, flags;
	} create = { .size = 4096, .domains = 2 /* GTT */ };
	struct {
		uint32_t handle, pad, operation, flags;
		uint64_t va, offset, size, point;
		uint32_t syncobj, num_syncobjs;
		uint64_t syncobjs;
	} va = { .operation = 1 /* MAP */, .flags = 2 /* READABLE */, .va = 1 << 30, .size = 4096, .point = 1 };
	struct {
		uint32_t handle, flags;
	} syncobj = { 0 }, object = { 0 };
	int version = drm_version(fd), err;

	if (version < 64)
		return version < 0 ? -1 : 0;
	if (ioctl(fd, 0xc0206440u, &create) || ioctl(fd, 0xc00864bfu, &syncobj))
		return -1;
	object.handle = va.handle = (uint32_t)create.size;
	va.syncobj = syncobj.handle;
	err = ioctl(fd, 0x40406448u, &va);
	va.operation = 2; /* UNMAP */
	va.point = 2;
	err = err || ioctl(fd, 0x40406448u, &va) || wait_for_unmap(fd, syncobj.handle);
	/* The file is the program's: with an error it ends. */
	return err || ioctl(fd, 0xc00864c0u, &syncobj) || ioctl(fd, 0x40086409u, &object) ? -1 : 0;
}

#endif
