/* SPDX-License-Identifier: GPL-2.0-only */
/* What fake_kfd.c, fake_gem.c and fake_calls.c share. */
#ifndef UNIT_FAKE_KFD_INTERNAL_H
#define UNIT_FAKE_KFD_INTERNAL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum fake_device { FAKE_NO_DEVICE, FAKE_KFD, FAKE_RENDER_A, FAKE_RENDER_B, FAKE_FOREIGN };

/* Directory of the machine: its /dev, /proc and /sys. */
extern char fake_root[64];

/* The device that a file of the directory stands for, and the status that it has as such. */
enum fake_device fake_device_of(const struct stat *st);
void fake_stat(struct stat *st);

/* The calling thread has stopped the process. */
void fake_trace(void);

/* 0 or -errno */
int fake_ioctl(enum fake_device device, int fd, unsigned long op, void *arg);

/* ---- objects of render nodes ---- */

/* A memfd is an object of a GPU from now on, at @offset of its render node; no longer. */
void fake_gem_add(int memfd, int gpu, uint64_t offset, uint64_t size, bool is_vram);
void fake_gem_remove(int memfd);
/* Forgets the objects that were made in files. */
void fake_gem_forget(void);
/* Forgets all objects and files. */
void fake_gem_begin(void);
/* The GPU of an object, -1: it is none. */
int fake_gem_gpu(int memfd);
/* The i-th object that was made, -1 after the last. */
int fake_gem_made(size_t i);

/* What a file has. */
/* A BO of the KFD is made of an object, and freed again. */
void fake_gem_add_bo(int memfd);
void fake_gem_free_bo(int memfd);
void fake_gem_give(int fd, uint32_t handle, int memfd);
void fake_gem_map(int fd, uint32_t handle, uint64_t va, uint64_t offset, uint64_t size);
void fake_gem_syncobj(int fd, uint32_t handle, uint64_t point);
void fake_gem_describe(int memfd, const char *text);
/* Whether two files have the same numbers for objects that are alike; mappings of the first may come before. */
bool fake_gem_same(int fd_a, int fd_b);
size_t fake_gem_mappings(int fd);
/* The handle of what is mapped at an address of the GPU, or 0. */
uint32_t fake_gem_at(int fd, uint64_t va);
/* The memfd of an object that was made and that a file has; *ret_offset: of its mappings. -1: it has none. */
int fake_gem_made_of(int fd, uint32_t handle, uint64_t *ret_offset);

/* References to an object's dma-buf. */
int fake_gem_references(int memfd);
/* Of an object that is older than all others. */
extern int fake_first_dmabuf;

int fake_gem_ioctl(int gpu, int fd, unsigned long op, void *arg);

#endif
