/* SPDX-License-Identifier: GPL-2.0-only */
/* What fake_kfd.c and fake_calls.c share. */
#ifndef UNIT_FAKE_KFD_INTERNAL_H
#define UNIT_FAKE_KFD_INTERNAL_H

#include <stdarg.h>
#include <sys/stat.h>

enum fake_device { FAKE_NO_DEVICE, FAKE_KFD, FAKE_RENDER_A, FAKE_RENDER_B };

/* Directory of the machine: its /dev, /proc and /sys. */
extern char fake_root[64];

/* The device that a file of the directory stands for, and the status that it has as such. */
enum fake_device fake_device_of(const struct stat *st);
void fake_stat(struct stat *st);

/* 0 or -errno */
int fake_ioctl(enum fake_device device, int fd, unsigned long op, void *arg);

#endif
