// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is installed: criu, asked by its options --version and --help, and the plugin in its directory, which is read
 * and not loaded.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "amdgpu_plugin_util.h"
#include "host/host.h"
#include "tool/doctor.h"

#define OUTPUT_MAX  65536
#define PLUGIN_FILE "amdgpu_plugin.so"
#define PLUGIN_MAX  (64u << 20)
#define DEFAULT_DIR "/usr/lib/criu"
#define ASK_MS	    5000 /* far more than criu takes to say its version */

/* ---- criu ---- */

/* -ETIMEDOUT: there is more to come, and it does not. */
static int read_output(int fd, char text[OUTPUT_MAX])
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	size_t len = 0;
	ssize_t n = 1;

	while (n) {
		int r = poll(&poll_fd, 1, ASK_MS);

		if (!r)
			return -ETIMEDOUT;
		n = r < 0 ? -1 : read(fd, text + len, OUTPUT_MAX - 1 - len);
		if (n < 0 && errno != EINTR)
			return -errno;
		len += n > 0 ? (size_t)n : 0;
		text[len] = '\0';
	}
	return 0;
}

/* What "criu @option" prints, in @text. 0, -errno, or the number of a failed criu's status; without a message. */
static int ask_criu(const char *option, char text[OUTPUT_MAX])
{
	char *const arguments[] = { "criu", (char *)option, NULL };
	posix_spawn_file_actions_t actions;
	int ends[2], err, status = 0;
	pid_t pid;

	text[0] = '\0';
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
	err = -posix_spawnp(&pid, "criu", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (!err) {
		err = read_output(ends[0], text);
		if (err)
			kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	close(ends[0]);
	return err ? err : status;
}

static void check_version(struct doctor *doctor, const char *text)
{
	const char *version = strstr(text, "Version: ");
	int major = 0, minor = 0, len;

	version = version ? version + strlen("Version: ") : "";
	len = (int)strcspn(version, " \n");
	if (sscanf(version, "%d.%d", &major, &minor) < 1)
		doctor_point(doctor, POINT_WARNING, "criu", NULL, "does not say its version");
	else if (major < 3 || (major == 3 && minor < 17))
		doctor_point(doctor, POINT_PROBLEM, "criu", "Install criu 3.17 or later", "version %.*s", len, version);
	else
		doctor_point(doctor, POINT_OK, "criu", NULL, "version %.*s", len, version);
}

/* Where criu looks for plugins. */
static void plugin_directory(char *ret, size_t size, char text[OUTPUT_MAX])
{
	static const char words[] = "plugin directory (by default ";
	const char *environment = getenv("CRIU_LIBS_DIR"), *found = NULL;

	if (environment && environment[0])
		found = environment;
	else if (!ask_criu("--help", text) && (found = strstr(text, words)))
		found += strlen(words);
	if (found)
		snprintf(ret, size, "%.*s", (int)(found == environment ? strlen(found) : strcspn(found, ")\n")), found);
	else
		snprintf(ret, size, "%s", DEFAULT_DIR);
	while (strlen(ret) > 1 && ret[strlen(ret) - 1] == '/')
		ret[strlen(ret) - 1] = '\0';
}

/* ---- the plugin ---- */

static int read_header(const char *path, Elf64_Ehdr *ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : read_all(fd, ret, sizeof(*ret));
}

/* Whether this machine could load what the file has: of its kind, and with all of its sections. */
static bool is_loadable(const char *bytes, size_t size)
{
	Elf64_Ehdr header, own;

	/* What runs this is of the right kind. */
	if (size < sizeof(header) || read_header("/proc/self/exe", &own))
		return false;
	memcpy(&header, bytes, sizeof(header));
	return !memcmp(header.e_ident, own.e_ident, EI_VERSION) && header.e_machine == own.e_machine &&
	       header.e_type == ET_DYN && header.e_shoff <= size &&
	       (uint64_t)header.e_shnum * header.e_shentsize <= size - header.e_shoff;
}

/* The version that a plugin's file says; "" for none. 0 or -errno. */
static int read_version(const char *path, char *ret, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_free_ char *bytes = NULL;
	const char *mark;
	struct stat st;
	int err;

	ret[0] = '\0';
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > PLUGIN_MAX)
		return -EINVAL;
	bytes = calloc(1, (size_t)st.st_size + 1);
	err = bytes ? read_all(fd, bytes, (size_t)st.st_size) : -ENOMEM;
	if (err)
		return err;
	if (!is_loadable(bytes, (size_t)st.st_size))
		return -ENOEXEC;
	mark = memmem(bytes, (size_t)st.st_size, PLUGIN_VERSION_MARK, strlen(PLUGIN_VERSION_MARK));
	if (mark)
		snprintf(ret, size, "%s", mark + strlen(PLUGIN_VERSION_MARK));
	return 0;
}

static void check_plugin(struct doctor *doctor, const char *directory)
{
	char path[PATH_MAX], version[32];
	int err;

	if (snprintf(path, sizeof(path), "%s/" PLUGIN_FILE, directory) >= (int)sizeof(path))
		return;
	err = read_version(path, version, sizeof(version));
	if (err)
		doctor_point(doctor, POINT_PROBLEM, "plugin",
			     "Install it there, or name its directory by -L or CRIU_LIBS_DIR", "%s: %s", path,
			     strerror(-err));
	else if (!version[0])
		doctor_point(doctor, POINT_WARNING, "plugin", "Install this one in its place",
			     "%s says no version: it is the plugin of CRIU's tree", path);
	else if (strcmp(version, PLUGIN_VERSION))
		doctor_point(doctor, POINT_WARNING, "plugin", "Install both of one version",
			     "%s has version %s, and this command " PLUGIN_VERSION, path, version);
	else
		doctor_point(doctor, POINT_OK, "plugin", NULL, "%s, version %s", path, version);
}

void doctor_criu(struct doctor *doctor)
{
	_cleanup_free_ char *text = malloc(OUTPUT_MAX);
	char directory[PATH_MAX];
	int err = text ? ask_criu("--version", text) : -ENOMEM;

	if (err < 0)
		doctor_point(doctor, POINT_PROBLEM, "criu", "Install it, or put its directory into PATH",
			     "cannot be run: %s", strerror(-err));
	else if (err)
		doctor_point(doctor, POINT_PROBLEM, "criu", "Run \"criu --version\": it may say why",
			     "fails when it is asked for its version (%s %d)", WIFSIGNALED(err) ? "signal" : "status",
			     WIFSIGNALED(err) ? WTERMSIG(err) : WEXITSTATUS(err));
	else
		check_version(doctor, text);
	if (!text)
		return;
	plugin_directory(directory, sizeof(directory), text);
	check_plugin(doctor, directory);
}

/* ---- settings ---- */

static const char *environment(const char *name, void *arg)
{
	(void)arg;
	return getenv(name);
}

static void value_text(const struct settings *settings, enum setting id, char *text, size_t size)
{
	size_t len = 0;

	if (id < SETTING_N_FLAGS) {
		snprintf(text, size, "%d", settings->flag[id]);
	} else if (id == SETTING_MAX_BUFFER_SIZE) {
		snprintf(text, size, "%" PRIu64, settings->max_buffer_size_bytes);
	} else if (id == SETTING_PROGRESS) {
		snprintf(text, size, "%s", settings->progress);
	} else {
		text[0] = '\0';
		for (unsigned int i = 0; i < settings->n_device_map && len + 1 < size; i++) {
			char saved[DEVICE_REF_TEXT_MAX], local[DEVICE_REF_TEXT_MAX];

			device_ref_text(&settings->device_map[i].saved, saved, sizeof(saved));
			device_ref_text(&settings->device_map[i].local, local, sizeof(local));
			len += (size_t)snprintf(text + len, size - len, "%s%s=%s", i ? "," : "", saved, local);
		}
	}
}

void doctor_settings(struct doctor *doctor)
{
	static const char *const sources[] = { "default", SETTINGS_MACHINE_CONF, SETTINGS_IMAGE_CONF,
					       "this shell's environment" };
	_cleanup_free_ struct settings *settings = malloc(sizeof(*settings));
	unsigned int nr = 0;
	char text[PATH_MAX];
	bool is_off;

	if (!settings)
		return;
	settings_load_quietly(settings, SETTINGS_MACHINE_CONF, -1, environment, NULL);
	if (settings->mistake[0]) {
		settings->mistake[strcspn(settings->mistake, "\n")] = '\0';
		doctor_point(doctor, POINT_PROBLEM, "settings",
			     "Until it is right no process with a GPU is dumped or restored", "%s",
			     settings->mistake + strlen(PLUGIN_ERROR_PREFIX));
		return;
	}
	for (unsigned int id = 0; id < SETTING_MAX; id++) {
		if (settings->from[id] == SETTING_BY_DEFAULT)
			continue;
		is_off = id < SETTING_PARALLEL_RESTORE && !settings->flag[id];
		value_text(settings, id, text, sizeof(text));
		doctor_point(doctor, is_off ? POINT_WARNING : POINT_OK, setting_name(id),
			     is_off ? "This check is off, and what it would refuse may not work" : NULL, "%s, from %s",
			     text, sources[settings->from[id]]);
		nr++;
	}
	if (!nr)
		doctor_point(doctor, POINT_OK, "settings", NULL, "all have their defaults");
}
