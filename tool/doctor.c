// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-checkpoint doctor: the machine, point by point, as a dump or a restore would meet it. It only asks and changes
 * nothing, but opens /dev/kfd as every program with a GPU does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "amdgpu_plugin_util.h"
#include "kernel/kernel.h"
#include "tool/commands.h"

/* ---- criu and the plugin ---- */

/* What "criu @option" prints, cut to @size. Its status, 127 when there is none; -1: not run. */
static int ask_criu(const char *option, char *text, size_t size)
{
	char command[64];
	FILE *pipe;
	size_t len;
	int status;

	snprintf(command, sizeof(command), "timeout -k 1 5 criu %s </dev/null 2>&1", option);
	pipe = popen(command, "re");
	if (!pipe)
		return -1;
	len = fread(text, 1, size - 1, pipe);
	text[len] = '\0';
	status = pclose(pipe);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_criu(void)
{
	char text[16384], *line;
	int status = ask_criu("--version", text, sizeof(text)), major = 0, minor = 0;
	const char *version = status ? NULL : strstr(text, "Version: ");
	bool is_old;

	if (status == 127) {
		print_point(POINT_PROBLEM, "criu",
			    "Install it, or put its directory into PATH; suspend and resume do without", "is not installed");
		return;
	}
	if (!version) {
		print_point(POINT_PROBLEM, "criu", "Run \"criu --version\": it may say why",
			    "fails when it is asked for its version (status %d)", status);
		return;
	}
	version += strlen("Version: ");
	sscanf(version, "%d.%d", &major, &minor);
	is_old = major < 3 || (major == 3 && minor < 17);
	print_point(is_old ? POINT_PROBLEM : POINT_OK, "criu", "Install criu 3.17 or later",
		    "version %.*s", (int)strcspn(version, " \n"), version);
	/* What criu itself finds missing on this machine, in its last line. */
	status = ask_criu("check", text, sizeof(text));
	for (line = text + strlen(text); line > text && strchr("\n.", line[-1]); line--)
		line[-1] = '\0';
	line = strrchr(text, '\n');
	if (status == 124)
		print_point(POINT_WARNING, "criu check", "Run it by hand: \"criu check\"", "did not end within 5 s");
	else
		print_point(status ? POINT_WARNING : POINT_OK, "criu check",
			    geteuid() ? "Run doctor as root" :
					"Jobs that use this feature may not be dumped; \"criu check --all\" lists more",
			    "%s", line ? line + 1 : text);
}

/*
 * Loads the plugin as criu does, which no dump and no restore outlives when it fails, of whatever process. A call that is
 * bound only when it is made would end criu then: of @is_ours all have to be there. In a child, since anything may be
 * in the file. What is wrong, "" for nothing.
 */
static void try_to_load(const char *path, bool is_ours, char *ret, size_t size)
{
	_cleanup_close_ int readable = -1, writable = -1;
	int fds[2], status = 0;
	pid_t child;

	snprintf(ret, size, "cannot be tried");
	if (pipe2(fds, O_CLOEXEC))
		return;
	readable = fds[0];
	writable = fds[1];
	child = fork();
	if (!child) {
		if (!dlopen(path, is_ours ? RTLD_NOW : RTLD_LAZY))
			dprintf(writable, "%s", dlerror());
		_exit(0);
	}
	close(steal_fd(&writable));
	if (child < 0 || waitpid(child, &status, 0) != child)
		return;
	if (read_text(readable, ret, size) || status)
		snprintf(ret, size, "ends the program that loads it");
}

static void check_plugin(void)
{
	const char *set = getenv("CRIU_LIBS_DIR"), *found, *mark = NULL;
	char help[16384], directory[2048] = "/usr/lib/criu", path[PATH_MAX], version[64] = "", why[1024];
	_cleanup_free_ char *text = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	size_t room = 0;
	int err = 0;

	/* Where criu looks for plugins. */
	if (set && set[0])
		snprintf(directory, sizeof(directory), "%s", set);
	else if (!ask_criu("--help", help, sizeof(help)) && (found = strstr(help, "plugin directory (by default ")))
		sscanf(found, "plugin directory (by default %2000[^)\n]", directory);
	snprintf(path, PATH_MAX, "%s%samdgpu_plugin.so", directory, directory[strlen(directory) - 1] == '/' ? "" : "/");
	f = fopen(path, "re");
	if (!f)
		err = -errno;
	/* It is read for its version before it is loaded. */
	while (f && !mark && getdelim(&text, &room, '\0', f) > 0)
		mark = strstr(text, PLUGIN_VERSION_MARK);
	if (mark)
		snprintf(version, sizeof(version), "%s", mark + strlen(PLUGIN_VERSION_MARK));
	if (!err)
		try_to_load(path, version[0], why, sizeof(why));
	if (err)
		print_point(POINT_PROBLEM, "plugin", "Install it there, or name its directory by -L or CRIU_LIBS_DIR",
			    "%s: %s", path, strerror(-err));
	else if (why[0] && !(strstr(why, "undefined symbol") && !version[0]))
		print_point(POINT_PROBLEM, "plugin",
			    "Install the library or remove the plugin: with it criu fails for every process on this machine",
			    "%s cannot be loaded: %s", path, why);
	else if (!version[0])
		print_point(POINT_WARNING, "plugin", "Install this one in its place",
			    "%s reports no version: it is the plugin of CRIU's tree", path);
	else if (strcmp(version, plugin_version))
		print_point(POINT_WARNING, "plugin", "Install the same version of both",
			    "%s has version %s, and this command %s", path, version, plugin_version);
	else
		print_point(POINT_OK, "plugin", NULL, "%s, version %s", path, version);
}

/* ---- permissions ---- */

static bool has_capability(unsigned int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { 0 };

	syscall(SYS_capget, &header, sets);
	return sets[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

void check_permissions(void)
{
	if (task_is_in_user_ns(getpid()))
		print_point(POINT_PROBLEM, "permissions", "Run criu outside of user namespaces",
			    "this shell is in a user namespace, where the driver refuses to checkpoint");
	else if (!has_capability(CAP_SYS_ADMIN) && !has_capability(CAP_CHECKPOINT_RESTORE))
		print_point(POINT_WARNING, "permissions", "Run this and criu as root",
			    "this shell has neither CAP_SYS_ADMIN nor CAP_CHECKPOINT_RESTORE");
	else if (!has_capability(CAP_SYS_PTRACE) || !has_capability(CAP_DAC_READ_SEARCH))
		print_point(POINT_WARNING, "permissions",
			    "Run this and criu as root, or give criu both: see \"Without root\" in docs/limits.md",
			    "this shell lacks CAP_SYS_PTRACE or CAP_DAC_READ_SEARCH, and cannot look whether others have buffers "
			    "of a process");
	else
		print_point(POINT_OK, "permissions", NULL, "enough, when criu is run from this shell");
}

/* ---- the driver and its GPUs ---- */

static const char *advice_for(int error)
{
	if (error == EPERM || error == EACCES)
		return "Allow the device by its permissions (group render) and, in a container, by its device cgroup";
	if (error == ENOENT)
		return "Make its node, or give the device to the container";
	return "Look for messages of amdgpu in the kernel's log";
}

static void doctor_gpu(const struct topology_node *node, const struct gpu_usage *usage, enum limit limit,
		      const char *why)
{
	const char *advice = limit == LIMIT_LOSS ?
				     "See \"Kernels\" in docs/limits.md; KFD_RESTORABLE_CHECK=0 tries it anyway" :
				     "See \"Kernels\" in docs/limits.md";
	char name[32], product[PRODUCT_TEXT_MAX], gfx[NODE_TEXT_MAX], pci[NODE_TEXT_MAX], free_text[64] = "";
	char xccs[32] = "";
	uint64_t nr_xcc = topology_get(node, TOPOLOGY_NUM_XCC), vram = topology_get(node, TOPOLOGY_VRAM_SIZE);

	snprintf(name, sizeof(name), "gpu %#x", topology_gpu_id(node));
	if (nr_xcc > 1)
		snprintf(xccs, sizeof(xccs), ", %" PRIu64 " XCCs", nr_xcc);
	if (usage->vram_known)
		snprintf(free_text, sizeof(free_text), ", of which %" PRIu64 " MiB are free", usage->vram_free >> 20);
	print_point(limit >= LIMIT_LOSS ? POINT_PROBLEM : limit ? POINT_WARNING : POINT_OK, name, advice,
		    "%s (%s%s), renderD%" PRIu64 ", %s, %" PRIu64 " MiB VRAM%s%s; %s%s%s",
		    product_text(node, product), gfx_text(node, gfx), xccs,
		    topology_get(node, TOPOLOGY_DRM_RENDER_MINOR), pci_text(node, pci), vram >> 20, free_text,
		    usage->has_queues ? ", in use" : "",
		    limit <= LIMIT_BUSY ? "its queues can be restored" : "",
		    limit == LIMIT_BUSY ? " when their kernels have ended: " : "", why);
}

static void check_machine(void)
{
	_cleanup_close_ int kfd = -1, sysfs = open("/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_topology_ struct topology *machine = NULL;
	struct gpu_usage usage[TOPOLOGY_MAX_NODES];
	char why[LIMITS_TEXT_MAX], path[48];
	struct driver_release driver;
	dev_t number;
	int err;

	if (!device_kfd_number(&number)) {
		print_point(POINT_PROBLEM, "driver", "Load amdgpu; its GPUs have to have KFD support",
			    "there is no KFD on this machine");
		return;
	}
	driver_ask_release(DRIVER_VERSION_FILE, &driver);
	kfd = kfd_open();
	err = kfd < 0 ? kfd : kfd_check_version(kfd);
	if (kfd < 0)
		print_failure("/dev/kfd", advice_for(-err), err);
	else if (err)
		print_failure("driver", "Use Linux 5.18 or later", err);
	else
		print_point(POINT_OK, "driver", NULL, "%s, with a KFD that can checkpoint", driver.text);
	err = sysfs_read_topology(SYSFS_TOPOLOGY_ROOT, &machine);
	if (err) {
		print_failure("GPUs", "Look for messages of amdgpu in the kernel's log", err);
		return;
	}
	usage_read(sysfs, machine, usage);
	for (unsigned int i = 0; i < machine->nr_nodes; i++) {
		const struct topology_node *node = machine->nodes[i];
		_cleanup_close_ int fd = -1;

		if (!topology_is_gpu(node))
			continue;
		doctor_gpu(node, &usage[i], limits_of_gpu(node, machine, &driver, why), why);
		snprintf(path, sizeof(path), "/dev/dri/renderD%u", topology_minor(node));
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			print_point(POINT_WARNING, path, advice_for(errno), "%s", strerror(errno));
	}
	if (!topology_count_gpus(machine))
		print_point(POINT_PROBLEM, "GPUs", "Is one installed, and allowed by the device cgroup?",
			    "the KFD shows none (%u hidden)", machine->nr_hidden);
}

/* ---- where images go ---- */

void check_images_dir(const char *directory, uint64_t needed_bytes)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	unsigned int device_major, device_minor;
	bool has_huge_pages = false;
	char needed[64] = "";
	uint64_t free_bytes;
	struct statfs fs;
	struct stat st;
	size_t room = 0;

	if (statfs(directory, &fs) || stat(directory, &st)) {
		print_point(POINT_PROBLEM, "images", NULL, "%s: %s", directory, strerror(errno));
		return;
	}
	free_bytes = fs.f_bavail * (uint64_t)fs.f_bsize;
	if (needed_bytes)
		snprintf(needed, sizeof(needed), ", and up to %" PRIu64 " MiB are needed", needed_bytes >> 20);
	print_point(free_bytes < needed_bytes ? POINT_WARNING : POINT_OK, "images",
		    "Pages of zeros are left out, so that less may do; make room, or name another directory",
		    "%s has %" PRIu64 " MiB free%s", directory, free_bytes >> 20, needed);
	if (fs.f_type != TMPFS_MAGIC)
		return;
	f = fopen("/proc/self/mountinfo", "re");
	while (f && getline(&line, &room, f) > 0)
		if (sscanf(line, "%*d %*d %u:%u", &device_major, &device_minor) == 2 &&
		    makedev(device_major, device_minor) == st.st_dev) {
			has_huge_pages = strstr(line, "huge=always") || strstr(line, "huge=within_size");
			break;
		}
	if (!has_huge_pages)
		print_point(POINT_WARNING, "images", "Mount it with -o huge=within_size",
			    "%s is a tmpfs without huge pages: writing to it takes several times the processor time",
			    directory);
}

int command_doctor(const struct arguments *arguments)
{
	_cleanup_fclose_ FILE *f = NULL;
	struct settings settings;
	bool has_cgroup2 = false;
	char line[64];
	int err;

	print_array("points");
	check_criu();
	check_plugin();
	check_permissions();
	/* A restore hides GPUs by a cgroup, in a mount of its own. */
	f = fopen("/proc/filesystems", "re");
	if (!f)
		print_point(POINT_PROBLEM, "cgroups", "Mount /proc", "/proc/filesystems: %s", strerror(errno));
	while (f && !has_cgroup2 && fgets(line, sizeof(line), f))
		has_cgroup2 = !strcmp(line, "nodev\tcgroup2\n");
	if (has_cgroup2)
		print_point(POINT_OK, "cgroups", NULL, "version 2");
	else if (f)
		print_point(POINT_WARNING, "cgroups", "Use a kernel with cgroup v2",
			    "no version 2: a process is restored only where it would see exactly as many GPUs as it had");
	check_machine();
	err = settings_load(&settings, SETTINGS_MACHINE_CONF, -1, options_or_environment);
	if (err)
		print_failure("settings", "Correct it: until then no process with a GPU is dumped or restored", err);
	else if (!print_settings(&settings))
		print_point(POINT_OK, "settings", NULL, "all have their defaults");
	if (arguments->images_dir)
		check_images_dir(arguments->images_dir, 0);
	print_end();
	return print_has_problem() ? TOOL_BAD : TOOL_GOOD;
}
