// SPDX-License-Identifier: GPL-2.0-only
/*
 * Known limits of kernels. Which GPUs a process has queues on is read from the KFD's sysfs:
 * what CHECKPOINT saves of a queue belongs to the kernel.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <limits.h>
#include <sys/utsname.h>

#include "checkpoint/limits.h"
#include "amdgpu_plugin_util.h"

/* Name of the initial pid namespace: a fixed number of the kernel's ABI. sysfs knows processes by their pids there. */
#define INITIAL_PID_NS "pid:[4026531836]"

/* The fix of CVE-2026-68258 compares the size of all XCCs' states with that of one: 6.18.42, 7.1.6, 7.2. */
static bool checks_size_of_one_xcc(const char *release)
{
	int major = 0, minor = 0, patch = 0;

	if (sscanf(release, "%d.%d.%d", &major, &minor, &patch) < 2)
		return false;
	if (major == 6)
		return minor == 18 && patch >= 42;
	return major > 7 || (major == 7 && (minor >= 2 || (minor == 1 && patch >= 6)));
}

const char *limits_of_queue(const struct topology_node *gpu, const char *release)
{
	uint64_t gfx = topology_get(gpu, TOPOLOGY_GFX_TARGET_VERSION);

	if (gfx >= 120000)
		return "kernels do not save queues of gfx12 and later";
	if (gfx >= 110000)
		return "kernels do not restore queues that the GPU's scheduler (MES) runs, as on gfx11 and later";
	if (topology_get(gpu, TOPOLOGY_NUM_XCC) > 1 && checks_size_of_one_xcc(release))
		return "this kernel does not restore queues of GPUs with several XCCs in one partition";
	return NULL;
}

static bool in_initial_pid_ns(void)
{
	char name[64] = "";

	return readlink("/proc/self/ns/pid", name, sizeof(name) - 1) > 0 && !strcmp(name, INITIAL_PID_NS);
}

/* The gpu id in a queue's directory; 0 when the queue is gone. */
static uint32_t queue_gpu_id(const char *queues, const char *queue)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[PATH_MAX];
	uint32_t gpu_id = 0;

	snprintf(path, sizeof(path), "%s/%s/gpuid", queues, queue);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%" SCNu32, &gpu_id) != 1)
		return 0;
	return gpu_id;
}

static int check_queue(pid_t pid, const struct topology *machine, uint32_t gpu_id, const char *release, bool try)
{
	int node = topology_find_gpu(machine, gpu_id);
	const char *limit = node < 0 ? NULL : limits_of_queue(machine->nodes[node], release);

	if (!limit)
		return 0;
	if (try) {
		pr_warn("pid %d: a queue on gpu %#x is dumped, although %s", pid, gpu_id, limit);
		return 0;
	}
	pr_err("pid %d: has a queue on gpu %#x (gfx version %" PRIu64 ", Linux %s): %s (KFD_RESTORABLE_CHECK=0 tries it "
	       "all the same)", pid, gpu_id, topology_get(machine->nodes[node], TOPOLOGY_GFX_TARGET_VERSION), release,
	       limit);
	return -EOPNOTSUPP;
}

int limits_check_queues(const char *proc_root, pid_t pid, const struct topology *machine, bool try)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	struct utsname name;
	char path[128];
	int err = 0;

	snprintf(path, sizeof(path), "%s/%d/queues", proc_root, pid);
	dir = in_initial_pid_ns() ? opendir(path) : NULL;
	if (!dir || uname(&name)) {
		pr_info("pid %d: its queues are not seen in %s; whether they can be restored shows at restore", pid, path);
		return 0;
	}
	while (!err && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			err = check_queue(pid, machine, queue_gpu_id(path, entry->d_name), name.release, try);
	return err;
}
