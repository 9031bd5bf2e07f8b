// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-image doctor: the machine, point by point, as a dump or a restore would meet it. It only asks and changes
 * nothing, but opens /dev/kfd as every program with a GPU does.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <sys/vfs.h>

#include "amdgpu_plugin_util.h"
#include "kernel/kernel.h"
#include "tool/commands.h"
#include "tool/doctor.h"
#include "tool/summary.h"

#define CAP_BIT_SYS_ADMIN	   21 /* <linux/capability.h> */
#define CAP_BIT_CHECKPOINT_RESTORE 40

void doctor_point(struct doctor *doctor, enum point_state state, const char *name, const char *advice, const char *fmt,
		  ...)
{
	static const struct {
		const char *word;
		enum colour colour;
	} states[] = { { "ok", GREEN }, { "warning", YELLOW }, { "problem", RED } };
	char text[CAUGHT_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	doctor->has_problem |= state == POINT_PROBLEM;
	if (!doctor->is_json) {
		make_safe(text);
		printf("%s%-7s%s  %s: %s%s%s\n", colour(states[state].colour), states[state].word, colour(PLAIN), name,
		       text, advice ? ". " : "", advice ? advice : "");
		return;
	}
	json_object(&doctor->json, NULL);
	json_string(&doctor->json, "name", name);
	json_string(&doctor->json, "state", states[state].word);
	json_string(&doctor->json, "text", text);
	json_string(&doctor->json, "advice", advice);
	json_end(&doctor->json);
}

/* ---- permissions ---- */

static uint64_t capabilities(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	uint64_t ret = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %" SCNx64, &ret) == 1)
			break;
	return ret;
}

static void check_permissions(struct doctor *doctor)
{
	uint64_t caps = capabilities();

	if (task_is_in_user_ns(getpid()))
		doctor_point(doctor, POINT_PROBLEM, "permissions", "Run criu outside of user namespaces",
			     "this shell is in a user namespace, where the driver refuses to checkpoint");
	else if (caps >> CAP_BIT_SYS_ADMIN & 1 || caps >> CAP_BIT_CHECKPOINT_RESTORE & 1)
		doctor_point(doctor, POINT_OK, "permissions", NULL, "enough, when criu is run from this shell");
	else
		doctor_point(doctor, POINT_WARNING, "permissions", "Run this and criu as root",
			     "this shell has neither CAP_SYS_ADMIN nor CAP_CHECKPOINT_RESTORE");
}

/* ---- cgroups ---- */

static void check_cgroups(struct doctor *doctor)
{
	struct statfs fs;

	if (!statfs("/sys/fs/cgroup", &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
		doctor_point(doctor, POINT_OK, "cgroups", NULL, "version 2 at /sys/fs/cgroup");
	else if (!access("/sys/fs/cgroup/devices", F_OK))
		doctor_point(doctor, POINT_OK, "cgroups", NULL, "version 1 with the controller 'devices'");
	else
		doctor_point(doctor, POINT_WARNING, "cgroups", "Mount cgroup2 at /sys/fs/cgroup",
			     "none: a process is restored only where it would see exactly as many GPUs as it had");
}

/* ---- the driver ---- */

static const char *advice_for(int error)
{
	if (error == EPERM || error == EACCES)
		return "Allow the device by its permissions (group render) and, in a container, by its device cgroup";
	if (error == ENOENT)
		return "Make its node, or give the device to the container";
	return "Look for messages of amdgpu in the kernel's log";
}

static void check_driver(struct doctor *doctor, struct driver_release *driver)
{
	char caught[CAUGHT_MAX];
	int fd, err;

	driver_ask_release(DRIVER_VERSION_FILE, driver);
	catch_begin(caught);
	fd = kfd_open();
	err = fd < 0 ? fd : kfd_check_version(fd);
	catch_end();
	if (fd >= 0)
		close(fd);
	if (fd < 0)
		doctor_point(doctor, POINT_PROBLEM, "/dev/kfd", advice_for(-err), "%s",
			     caught[0] ? caught : strerror(-err));
	else if (err)
		doctor_point(doctor, POINT_PROBLEM, "driver", "Use Linux 5.18 or later", "%s: %s", driver->text,
			     caught);
	else
		doctor_point(doctor, POINT_OK, "driver", NULL, "%s, with a KFD that can checkpoint", driver->text);
}

/* ---- GPUs ---- */

static void say_gpu(struct doctor *doctor, const struct topology_node *node, const struct gpu_usage *usage,
		    enum limit limit, const char *why)
{
	static const char *const advice[] = {
		[LIMIT_LOSS] = "See KERNELS in amdgpu_plugin(1); KFD_RESTORABLE_CHECK=0 tries it all the same",
		[LIMIT_HARM] = "See KERNELS in amdgpu_plugin(1)",
	};
	char name[32], gfx[GFX_TEXT_MAX], pci[PCI_TEXT_MAX], free_text[64] = "";
	uint64_t nr_xcc = topology_get(node, TOPOLOGY_NUM_XCC);

	snprintf(name, sizeof(name), "gpu %#x", topology_gpu_id(node));
	gfx_text(node, gfx);
	pci_text(node, pci);
	if (usage->knows_vram)
		snprintf(free_text, sizeof(free_text), ", %s free", size_text(usage->vram_free));
	doctor_point(doctor, limit ? POINT_PROBLEM : POINT_OK, name, advice[limit],
		     "%s %s, %" PRIu64 " XCC%s in a partition, renderD%" PRIu64 ", %s, %s VRAM%s%s; %s",
		     safe(node->name), gfx, nr_xcc ? nr_xcc : 1, nr_xcc > 1 ? "s" : "",
		     topology_get(node, TOPOLOGY_DRM_RENDER_MINOR), pci,
		     size_text(topology_get(node, TOPOLOGY_VRAM_SIZE)), free_text, usage->has_queues ? ", in use" : "",
		     limit ? why : "its queues can be restored");
}

static void check_render_node(struct doctor *doctor, const struct topology_node *node)
{
	uint32_t minor = (uint32_t)topology_get(node, TOPOLOGY_DRM_RENDER_MINOR);
	char path[48], name[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", minor);
	snprintf(name, sizeof(name), "renderD%u", minor);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	else
		doctor_point(doctor, POINT_WARNING, name, advice_for(errno), "%s: %s", path, strerror(errno));
}

static void check_gpus(struct doctor *doctor, const struct driver_release *driver)
{
	_cleanup_close_ int sysfs = open("/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ struct gpu_usage *usage = calloc(TOPOLOGY_MAX_NODES, sizeof(*usage));
	_cleanup_topology_ struct topology *machine = NULL;
	char caught[CAUGHT_MAX], why[LIMITS_TEXT_MAX];
	enum limit limit;
	int err;

	catch_begin(caught);
	err = usage ? sysfs_read_topology(SYSFS_TOPOLOGY_ROOT, &machine) : -ENOMEM;
	catch_end();
	if (err) {
		doctor_point(doctor, POINT_PROBLEM, "GPUs", "Look for messages of amdgpu in the kernel's log", "%s",
			     caught[0] ? caught : strerror(-err));
		return;
	}
	usage_read(sysfs, machine, usage);
	for (unsigned int i = 0; i < machine->nr_nodes; i++) {
		if (!topology_is_gpu(machine->nodes[i]))
			continue;
		limit = limits_of_gpu(machine->nodes[i], machine, driver, why);
		say_gpu(doctor, machine->nodes[i], &usage[i], limit, why);
		check_render_node(doctor, machine->nodes[i]);
	}
	if (!topology_count_gpus(machine))
		doctor_point(doctor, POINT_PROBLEM, "GPUs", "Is one installed, and allowed by the device cgroup?",
			     "the KFD shows none (%u hidden)", machine->nr_hidden);
}

static void check_machine(struct doctor *doctor)
{
	struct driver_release driver;
	dev_t kfd;

	if (!device_kfd_number(&kfd)) {
		doctor_point(doctor, POINT_PROBLEM, "driver", "Load amdgpu; its GPUs have to have KFD support",
			     "there is no KFD on this machine");
		return;
	}
	check_driver(doctor, &driver);
	check_gpus(doctor, &driver);
}

int command_doctor(const struct arguments *arguments)
{
	struct doctor doctor = { .is_json = arguments->json, .json.out = stdout };

	if (doctor.is_json) {
		json_object(&doctor.json, NULL);
		json_number(&doctor.json, "format", 1);
		json_array(&doctor.json, "points");
	}
	doctor_criu(&doctor);
	check_permissions(&doctor);
	check_cgroups(&doctor);
	check_machine(&doctor);
	doctor_settings(&doctor);
	if (doctor.is_json) {
		json_end(&doctor.json);
		json_bool(&doctor.json, "has_problem", doctor.has_problem);
		json_end(&doctor.json);
	}
	return doctor.has_problem ? TOOL_BAD : TOOL_GOOD;
}
