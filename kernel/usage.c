// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who else uses the GPUs: the queues of all KFD processes, what the driver says of VRAM, and which GPUs other restores have
 * chosen. Taken from a sysfs that the caller has opened, since a restored task may see none.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "kernel/machine.h"
#include "kernel/tasks.h"
#include "amdgpu_plugin_util.h"

static int read_mem_info(int sysfs, const struct topology_node *node, const char *which, uint64_t *ret)
{
	char device[SYSFS_PCI_PATH_MAX], path[128];

	sysfs_pci_path(node, device);
	snprintf(path, sizeof(path), "%s/mem_info_vram_%s", device, which);
	return read_number_at(sysfs, path, ret);
}

void usage_read_vram(int sysfs, const struct topology_node *node, struct gpu_usage *usage)
{
	uint64_t total, used;

	if (!topology_has(node, TOPOLOGY_LOCATION_ID) || topology_get(node, TOPOLOGY_CPU_CORES_COUNT) ||
	    read_mem_info(sysfs, node, "total", &total) || read_mem_info(sysfs, node, "used", &used))
		return;
	usage->vram_known = true;
	usage->vram_free = total > used ? total - used : 0;
}

void usage_read(int sysfs, const struct topology *machine, struct gpu_usage *usage)
{
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0;

	memset(usage, 0, machine->nr_nodes * sizeof(*usage));
	for (unsigned int i = 0; i < machine->nr_nodes; i++)
		if (topology_is_gpu(machine->nodes[i]))
			usage_read_vram(sysfs, machine->nodes[i], &usage[i]);
	if (list_numbers(sysfs, SYSFS_PROCESSES, &pids, &nr))
		return;
	for (size_t i = 0; i < nr; i++) {
		_cleanup_free_ int *queues = NULL;
		size_t nr_queues = 0;
		char path[96];

		snprintf(path, sizeof(path), SYSFS_PROCESSES "/%d/queues", pids[i]);
		if (list_numbers(sysfs, path, &queues, &nr_queues))
			continue;
		for (size_t j = 0; j < nr_queues; j++) {
			uint64_t gpu_id;
			int node;

			snprintf(path, sizeof(path), SYSFS_PROCESSES "/%d/queues/%d/gpuid", pids[i], queues[j]);
			node = read_number_at(sysfs, path, &gpu_id) ? -1 : topology_find_gpu(machine, (uint32_t)gpu_id);
			if (node >= 0)
				usage[node].has_queues = true;
		}
	}
}

size_t usage_count_ended(int sysfs)
{
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0, ended = 0;

	if (task_in_initial_pid_ns() <= 0 || list_numbers(sysfs, SYSFS_PROCESSES, &pids, &nr))
		return 0;
	for (size_t i = 0; i < nr; i++)
		ended += kill(pids[i], 0) < 0 && errno == ESRCH;
	return ended;
}

/* ---- claims ---- */

/*
 * Locks of bytes of a file in the machine's devtmpfs, which is one for all namespaces of mounts, processes and networks, and
 * in which only root makes files. Nobody else can open it: a lock of any user would stop restores, and choose
 * GPUs for them. The kernel takes the locks back when the last copy of the file is closed, by death, too. A byte for each
 * render minor, and one for the turn.
 */
#define CLAIMS_FILE   "amdgpu-checkpoint-claims"
#define TURN_AT	      0xffffffffll
#define WAIT_ATTEMPTS 500
#define WAIT_USEC     10000

/* 0; -errno, -EAGAIN: another process has the lock. */
static int set_lock(int fd, off_t at, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &lock) ? -errno : 0;
}

int turn_begin(void)
{
	_cleanup_close_ int dev = mount_private("devtmpfs"), fd = -1;
	struct stat st;
	int err;

	if (dev >= 0)
		fd = openat(dev, CLAIMS_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		return -1;
	err = set_lock(fd, TURN_AT, F_WRLCK);
	for (int i = 0; err == -EAGAIN && i < WAIT_ATTEMPTS; i++) {
		usleep(WAIT_USEC);
		err = set_lock(fd, TURN_AT, F_WRLCK);
	}
	if (err == -EAGAIN)
		pr_warn("another restore has been choosing its GPUs for %d s and is no longer waited for: both may take the same GPUs or queues\n",
			WAIT_ATTEMPTS * (WAIT_USEC / 1000) / 1000);
	return steal_fd(&fd);
}

bool claims_have(int claims, uint32_t minor)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = minor, .l_len = 1 };

	return claims >= 0 && !fcntl(claims, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

void claims_add(int claims, uint32_t minor)
{
	if (claims >= 0)
		set_lock(claims, minor, F_WRLCK);
}

void turn_end(int claims)
{
	if (claims >= 0)
		set_lock(claims, TURN_AT, F_UNLCK);
}
