// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is installed: criu, asked by its options --version and --help, and the plugin in its directory, which is read
 * and not loaded.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
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

/* ---- criu ---- */

/* What "criu @option" prints, in @text. 0 or -errno, without a message. */
static int ask_criu(const char *option, char text[OUTPUT_MAX])
{
	char *const arguments[] = { "criu", (char *)option, NULL };
	posix_spawn_file_actions_t actions;
	int ends[2], err, status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	text[0] = '\0';
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
	err = -posix_spawnp(&pid, "criu", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	while (!err && (n = read(ends[0], text + len, OUTPUT_MAX - 1 - len)) != 0 && (n > 0 || errno == EINTR))
		len += n > 0 ? (size_t)n : 0;
	close(ends[0]);
	if (!err)
		waitpid(pid, &status, 0);
	text[len] = '\0';
	return err;
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

	if (err)
		doctor_point(doctor, POINT_PROBLEM, "criu", "Install it, or put its directory into PATH",
			     "cannot be run: %s", strerror(-err));
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
		value_text(settings, id, text, sizeof(text));
		doctor_point(doctor, POINT_OK, setting_name(id), NULL, "%s, from %s", text,
			     sources[settings->from[id]]);
		nr++;
	}
	if (!nr)
		doctor_point(doctor, POINT_OK, "settings", NULL, "all have their defaults");
}
