/* SPDX-License-Identifier: GPL-2.0-only */
/* The machine: its GPUs and who uses them in sysfs, memory, device nodes, and file systems that are mounted nowhere. */
#ifndef KERNEL_MACHINE_H
#define KERNEL_MACHINE_H

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "amdgpu_plugin_topology.h"

/* ---- the KFD's topology and the directories of PCI devices ---- */

/* Where the KFD keeps the topology. */
#define SYSFS_TOPOLOGY_ROOT "/sys/class/kfd/kfd/topology"
/* The KFD's processes, by their pids in the initial pid namespace; contexts of CREATE_PROCESS are in them. */
#define SYSFS_PROCESSES "class/kfd/kfd/proc"
#define KFD_PROCESSES	"/sys/" SYSFS_PROCESSES
#define DRM_MAJOR 226 /* drivers/gpu/drm/drm_drv.c */

/*
 * Reads what lies below root (".../kfd/topology": generation_id, nodes/N/...).
 * Nodes come out in ascending order of their number. When the generation moves
 * meanwhile it starts again, a bounded number of times.
 *
 * Returns 0 and a topology that the caller frees with topology_free();
 * -ENOENT, no message, when there is no such topology (no KFD);
 * other -errno: -EAGAIN when the generation never stood
 * still, -EINVAL for contents that cannot be understood, -E2BIG for more than
 * TOPOLOGY_MAX_NODES nodes.
 */
int sysfs_read_topology(const char *root, struct topology **ret);

/*
 * Whether the device cgroup of the caller hides a node of the topology. @sysfs: an fd of the root of a sysfs.
 * @otherwise: the answer where it cannot be read, such as with an @sysfs of -1.
 */
bool sysfs_node_is_hidden(int sysfs, uint32_t node, bool otherwise);

/*
 * The directory of a GPU's PCI device in a sysfs, SYSFS_PCI_PATH_MAX bytes with the end. Partitions have no device of
 * their own: theirs is that with function 0.
 */
#define SYSFS_PCI_PATH_MAX 48
void sysfs_pci_path(const struct topology_node *node, char *path);

/* A GPU's group of the IOMMU: GPUs reach system memory by its own addresses, or by those of an IOMMU. */
struct iommu_group {
	char number[16]; /* empty: none */
	bool translates;
};

/* @sysfs: an fd of the root of a sysfs. What cannot be read counts as no IOMMU. */
void iommu_read_group(int sysfs, const struct topology_node *node, struct iommu_group *ret);

/*
 * Whether system memory that is mapped for a GPU in one group is so for a GPU in the other one, too: no IOMMU translates
 * for either, or it is the same group.
 */
bool iommu_is_common(const struct iommu_group *a, const struct iommu_group *b);

/* ---- what others use ---- */

/*
 * Fills in @usage, one for each node of @machine. @sysfs: an fd of the root of a sysfs. What cannot be read is
 * unknown, which is no error. The VRAM of a GPU that has none of its own (APU) is unknown.
 */
void usage_read(int sysfs, const struct topology *machine, struct gpu_usage *usage);

/* As usage_read(), of the VRAM of one GPU: a part of @usage stays as it is. */
void usage_read_vram(int sysfs, const struct topology_node *node, struct gpu_usage *usage);

/*
 * How many processes have ended and are still known to the KFD: their queues and buffers are there until it has taken
 * them down. 0 where pids are not the kernel's own (another pid namespace than the first).
 */
size_t usage_count_ended(int sysfs);

/*
 * Running restores choose GPUs, and recreate queues, one after the other. Each sees what the others have
 * chosen before its queues are there.
 *
 * turn_begin(): a file by which the caller adds claims and looks at those of other files. Nobody else has his turn until
 * turn_end(), or until the last copy of the file is closed, by death, too, with which its claims go. After some seconds
 * it goes on all the same, with a warning. -1, which the others accept, where the machine's devtmpfs cannot be reached.
 */
int turn_begin(void);
bool claims_have(int claims, uint32_t minor); /* the render minor is claimed by another file */
void claims_add(int claims, uint32_t minor);
void turn_end(int claims);

/* ---- file systems in memory ---- */

/*
 * Mounts a tmpfs on the directory @path of the mount namespace of pid 1: root's, of mode 0700, as large as the memory,
 * with huge pages where the kernel has them. 0 or -errno, no message.
 */
int mount_memory(const char *path);

/* ---- device nodes: recognised and opened wherever the caller is ---- */

/*
 * Number of the device /dev/kfd; false without a KFD. Found once and remembered: a
 * restored task may see no sysfs.
 */
bool device_kfd_number(dev_t *ret);

/* Number of the render node of a minor. */
dev_t device_render_number(uint32_t minor);

/* Whether a file's status is that of /dev/kfd. */
bool device_is_kfd(const struct stat *st);

/* Whether it is that of a DRM render node, of whatever driver. */
bool device_is_render_node(const struct stat *st);

/*
 * Opens a character device; @flags as of open(2), O_RDWR for what is not a task's file.
 * @path is where it usually is; when that is absent or another device, as in a container that was made for other GPUs, a
 * private node is made for the open. The device cgroup decides in either case. An fd, or
 * -errno, no message.
 */
int device_open(const char *path, dev_t number, int flags);

/* The flags of an open file that are restored: how it may be accessed, and what fcntl(2) can change. */
#define DEVICE_FLAGS (O_ACCMODE | O_APPEND | O_NONBLOCK)
int device_flags(int fd); /* or -errno */

/* Gives a file those flags that can be changed. 0 or -errno. */
int device_set_status(int fd, int flags);

/* ---- device nodes for a restored container, whose /dev has those of other GPUs ---- */

/* The file systems that are mounted where criu's main process is. */
struct mounted;

/* To be called there, before tasks are made. Freed by mounted_free(). NULL where they cannot be read. */
struct mounted *mounted_read(void);
void mounted_free(struct mounted *mounted);

/*
 * Makes the node of a render minor in the calling task's /dev/dri, with owner and mode of the node of @model, if that
 * is there. Only in a tmpfs that is not among @mounted and that no symbolic link leads to: all others may be another
 * owner's. The device cgroup decides whether there may be a node. 0 where it is there now or is not ours to make,
 * otherwise -errno, no message. @mounted: borrowed; NULL: nothing is made.
 */
int nodes_make(const struct mounted *mounted, uint32_t minor, uint32_t model);

/* ---- file systems that are mounted nowhere: reached by one fd, gone with it ---- */

/*
 * Makes a file system of this type that no path of the mount namespace leads to. An fd of its root directory that the
 * caller closes, or -errno, no message.
 */
int mount_private(const char *type);

#endif
