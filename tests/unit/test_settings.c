// SPDX-License-Identifier: GPL-2.0-only
/*
 * Settings: every accepted form, every refusal with its text, and who may
 * override whom.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "unit.h"
#include "host/settings.h"
#include "log_stub.h"
#include "remove_all.h"

/* ---- a machine's file, an image directory and an environment ---- */

static struct {
	char dir[64]; /* the working directory; it holds both files, and is the image directory */
	const char *machine;
	int image_fd;
	char env[8][2][512];
	unsigned int n_env;
	struct settings settings;
} w;

static int setup(void **state)
{
	memset(&w, 0, sizeof(w));
	log_clear();
	strcpy(w.dir, "/tmp/test_settings.XXXXXX");
	if (!mkdtemp(w.dir) || chdir(w.dir))
		return -1;
	w.machine = "machine.conf";
	w.image_fd = open(w.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return w.image_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	close(w.image_fd);
	return chdir("/") || remove_all(w.dir);
}

#define FIXTURE_TEST(test) UNIT_TEST(test, setup, teardown)

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fclose(f), 0);
}

static void write_machine(const char *text)
{
	write_file("machine.conf", text);
}

static void write_image(const char *text)
{
	write_file(SETTINGS_IMAGE_CONF, text);
}

static void set_env(const char *name, const char *value)
{
	assert_true(w.n_env < 8);
	snprintf(w.env[w.n_env][0], sizeof(w.env[0][0]), "%s", name);
	snprintf(w.env[w.n_env++][1], sizeof(w.env[0][1]), "%s", value);
}

static const char *get_env(const char *name)
{
	for (unsigned int i = 0; i < w.n_env; i++) {
		if (!strcmp(w.env[i][0], name))
			return w.env[i][1];
	}
	return NULL;
}

static int load(void)
{
	log_clear();
	return settings_load(&w.settings, w.machine, w.image_fd, get_env);
}

/* One setting in the environment and nothing else. */
static int load_env(const char *name, const char *value)
{
	w.n_env = 0;
	set_env(name, value);
	return load();
}

static void assert_logged(const char *part)
{
	if (!strstr(log_text, part))
		fail_msg("'%s' is not in the log: %s", part, log_text);
}

/* Refused with this line and no other. */
static void __attribute__((format(printf, 1, 2))) assert_refused(const char *fmt, ...)
{
	char line[2 * PLUGIN_LOG_LINE_MAX];
	size_t len = (size_t)sprintf(line, "%s", PLUGIN_ERROR_PREFIX);
	va_list args;

	va_start(args, fmt);
	len += (size_t)vsnprintf(line + len, sizeof(line) - len, fmt, args);
	va_end(args);
	strcpy(line + len, "\n");
	assert_int_equal(load(), -EINVAL);
	assert_string_equal(log_text, line);
}

/* ---- defaults and flags ---- */

FIXTURE_TEST(settings_without_sources_are_the_defaults)
{
	assert_int_equal(settings_load(&w.settings, NULL, -1, NULL), 0);
	for (unsigned int i = 0; i < SETTING_N_FLAGS; i++)
		assert_true(w.settings.flag[i]);
	for (unsigned int i = 0; i < SETTING_MAX; i++)
		assert_int_equal(w.settings.from[i], SETTING_BY_DEFAULT);
	assert_int_equal(w.settings.max_buffer_size_bytes, 0);
	assert_int_equal(w.settings.n_device_map, 0);
	assert_string_equal(w.settings.progress, "");
	assert_int_equal(w.settings.idle_wait_seconds, 5);
}

FIXTURE_TEST(settings_absent_files_are_no_error)
{
	assert_int_equal(load(), 0);
	w.machine = "no/such/directory/conf";
	assert_int_equal(load(), 0);
	assert_int_equal(log_errors, 0);
}

FIXTURE_TEST(settings_flags_take_every_form_in_any_case)
{
	static const char *const on[] = { "1", "yes", "YES", "true", "True", "on", "oN" };
	static const char *const off[] = { "0", "no", "No", "false", "FALSE", "off", "Off" };

	for (unsigned int id = 0; id < SETTING_N_FLAGS; id++) {
		for (size_t i = 0; i < ARRAY_SIZE(on); i++) {
			assert_int_equal(load_env(setting_name(id), on[i]), 0);
			assert_true(w.settings.flag[id]);
			assert_int_equal(load_env(setting_name(id), off[i]), 0);
			assert_false(w.settings.flag[id]);
		}
	}
}

FIXTURE_TEST(settings_are_untouched_when_refused)
{
	struct settings before;

	memset(&w.settings, 0x5a, sizeof(w.settings));
	before = w.settings;
	assert_int_equal(load_env("KFD_MAX_BUFFER_SIZE", "lots"), -EINVAL);
	assert_memory_equal(&w.settings, &before, sizeof(before));
}

/* ---- values that are none ---- */

/* clang-format off */
static const struct bad {
	const char *what, *name, *accepted, *values[24];
} bad[] = {
	{ "settings_refuse_a_flag_that_is_none", "KFD_NUMA_CHECK", "0/1, yes/no, true/false, on/off",
	  { "", " ", "2", "maybe", "10", "yess", "1 ", "-1", "0x1" } },
	{ "settings_refuse_sizes_that_are_none", "KFD_MAX_BUFFER_SIZE",
	  "bytes or a number with K, M, G, T (KiB, MiB, GiB, TiB), rounded down to whole pages, at least one; 0: built-in default",
	  { "", "-1", "+1", "1.5G", "64X", "64KB", "64KiBx", "K", "64 K", "0x1000", "4096b", "64MM", "1", "4095",
	      "1e9", " 4096", "4096 ", "18446744073709551616", "16777216T", "99999999999999999999999999" } },
	{ "settings_refuse_device_maps_that_are_none", "KFD_DEVICE_MAP",
	  "SAVED=LOCAL,... each a gpu id (decimal or 0x hex), renderD128, or a PCI address like 0000:c1:00.0",
	  { "1", "1=", "=1", "1=2,", ",1=2", "1=2;3=4", "1==2", "0=1", "1=0x", "1=0x1g", "1=renderD", "1=renderDx",
	      "1=card0", "1=c1:00", "1=c1:20.0", "1=c1:00.8", "1=100:00.0", "1=c1:00.0.0", "1=-2", "1=4294967296",
	      "1=2,1=3", "1=2,3=2", "0x10=2,16=3" } },
	{ "settings_refuse_a_path_that_is_relative", "KFD_PROGRESS",
	  "absolute path of a file, FIFO or device; empty: none", { "progress.txt" } },
	{ "settings_refuse_a_wait_that_is_none", "KFD_IDLE_WAIT", "seconds, 0 to 86400",
	  { "", "-1", "+5", "5s", "0x5", "1.5", "86401", "18446744073709551621", " 5" } },
};
/* clang-format on */

ROW_TEST(settings_refuse_a_value, bad, what, setup, teardown)
{
	const struct bad *row = *unit_state;

	for (size_t i = 0; row->values[i]; i++) {
		w.n_env = 0;
		set_env(row->name, row->values[i]);
		assert_refused("option or environment: %s: value '%s' is not valid; accepted: %s", row->name, row->values[i],
			       row->accepted);
	}
}

/* ---- sizes ---- */

FIXTURE_TEST(settings_sizes_take_units)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "64k", 64 << 10 },
		{ "64K", 64 << 10 },
		{ "64KiB", 64 << 10 },
		{ "64kib", 64 << 10 },
		{ "256M", 256 << 20 },
		{ "256MiB", 256 << 20 },
		{ "3g", 3ULL << 30 },
		{ "2GIB", 2ULL << 30 },
		{ "1T", 1ULL << 40 },
		{ "16383T", 16383ULL << 40 },
		{ "16777215T", 16777215ULL << 40 },
		{ "0G", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(load_env("KFD_MAX_BUFFER_SIZE", cases[i].text), 0);
		assert_int_equal(w.settings.max_buffer_size_bytes, cases[i].bytes);
	}
}

FIXTURE_TEST(settings_sizes_are_cut_to_whole_pages)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)(3 * page - 1));
	assert_int_equal(load_env("KFD_MAX_BUFFER_SIZE", text), 0);
	assert_int_equal(w.settings.max_buffer_size_bytes, 2 * page);
}

/* The old trap: errno left over from an earlier call made a good number look bad. */
FIXTURE_TEST(settings_do_not_depend_on_errno)
{
	errno = ERANGE;
	assert_int_equal(load_env("KFD_MAX_BUFFER_SIZE", "64M"), 0);
	assert_int_equal(w.settings.max_buffer_size_bytes, 64 << 20);
}

/* ---- device map ---- */

static void assert_ref(const struct device_ref *ref, enum device_ref_kind kind, uint64_t value, const char *text)
{
	char written[DEVICE_REF_TEXT_MAX];

	assert_int_equal(ref->kind, kind);
	assert_int_equal(ref->value, value);
	device_ref_text(ref, written, sizeof(written));
	assert_string_equal(written, text);
}

FIXTURE_TEST(settings_device_map_takes_ids_minors_and_pci_addresses)
{
	const struct device_map_entry *map = w.settings.device_map;

	assert_int_equal(load_env("KFD_DEVICE_MAP",
				  "0x1f2e=7000, renderD128 = renderD130,0000:c1:00.0=C2:1f.7 ,1=10002:00:00.1"),
			 0);
	assert_int_equal(w.settings.n_device_map, 4);
	assert_ref(&map[0].saved, DEVICE_REF_GPU_ID, 0x1f2e, "0x1f2e");
	assert_ref(&map[0].local, DEVICE_REF_GPU_ID, 7000, "0x1b58");
	assert_ref(&map[1].saved, DEVICE_REF_RENDER_MINOR, 128, "renderD128");
	assert_ref(&map[1].local, DEVICE_REF_RENDER_MINOR, 130, "renderD130");
	assert_ref(&map[2].saved, DEVICE_REF_PCI, 0xc100, "0000:c1:00.0");
	assert_ref(&map[2].local, DEVICE_REF_PCI, 0xc2ff, "0000:c2:1f.7");
	assert_ref(&map[3].local, DEVICE_REF_PCI, 0x10002ULL << 32 | 1, "10002:00:00.1");
}

FIXTURE_TEST(settings_device_map_may_be_empty)
{
	write_machine("KFD_DEVICE_MAP = 1=2\n");
	assert_int_equal(load(), 0);
	assert_int_equal(w.settings.n_device_map, 1);
	set_env("KFD_DEVICE_MAP", "");
	assert_int_equal(load(), 0);
	assert_int_equal(w.settings.n_device_map, 0);
}

FIXTURE_TEST(settings_refuse_more_pairs_than_there_can_be_gpus)
{
	static char text[32 * (TOPOLOGY_MAX_NODES + 2)] = "KFD_DEVICE_MAP = ";
	size_t len = strlen(text);

	for (unsigned int i = 1; i <= TOPOLOGY_MAX_NODES; i++)
		len += (size_t)sprintf(text + len, "%s%u=%u", i > 1 ? "," : "", i, i);
	write_machine(text);
	assert_int_equal(load(), 0);
	assert_int_equal(w.settings.n_device_map, TOPOLOGY_MAX_NODES);
	strcpy(text + len, ",9999=9999");
	write_machine(text);
	assert_int_equal(load(), -EINVAL);
}

/* ---- paths ---- */

FIXTURE_TEST(settings_progress_is_an_absolute_path)
{
	assert_int_equal(load_env("KFD_PROGRESS", "/dev/stderr"), 0);
	assert_string_equal(w.settings.progress, "/dev/stderr");
	assert_int_equal(load_env("KFD_PROGRESS", ""), 0);
	assert_string_equal(w.settings.progress, "");
}

FIXTURE_TEST(settings_idle_wait_is_seconds)
{
	assert_int_equal(load_env("KFD_IDLE_WAIT", "0"), 0);
	assert_int_equal(w.settings.idle_wait_seconds, 0);
	assert_int_equal(load_env("KFD_IDLE_WAIT", "86400"), 0);
	assert_int_equal(w.settings.idle_wait_seconds, 86400);
}

/* ---- files ---- */

FIXTURE_TEST(settings_files_have_comments_and_white_space)
{
	write_machine("# the machine's settings\n\n  KFD_NUMA_CHECK=no\t# trailing\r\n"
			 "\tKFD_VRAM_SIZE_CHECK  =  Off  \n#KFD_FW_VER_CHECK = 0\n"
			 "KFD_PROGRESS = /tmp/a#b # c\nKFD_MAX_BUFFER_SIZE = 1G");
	assert_int_equal(load(), 0);
	assert_false(w.settings.flag[SETTING_NUMA_CHECK]);
	assert_false(w.settings.flag[SETTING_VRAM_SIZE_CHECK]);
	assert_true(w.settings.flag[SETTING_FW_VER_CHECK]);
	assert_string_equal(w.settings.progress, "/tmp/a#b");
	assert_int_equal(w.settings.max_buffer_size_bytes, 1 << 30);
}

#define FLAGS "accepted: 0/1, yes/no, true/false, on/off"

static const struct refused {
	const char *what, *machine, *image, *says;
} refused[] = {
	{ "an unknown key", "\n# x\nKFD_NUMA_CHEK = 0\n", "",
	  "machine.conf:3: 'KFD_NUMA_CHEK' is not a setting of this plugin" },
	{ "a key in small letters", "kfd_numa_check = 0\n", "",
	  "machine.conf:1: 'kfd_numa_check' is not a setting of this plugin" },
	{ "no key", "", "= 1\n", SETTINGS_IMAGE_CONF ":1: '' is not a setting of this plugin" },
	{ "a bad value", "KFD_NUMA_CHECK = 1\nKFD_FW_VER_CHECK = perhaps\n", "",
	  "machine.conf:2: KFD_FW_VER_CHECK: value 'perhaps' is not valid; " FLAGS },
	{ "no value", "KFD_NUMA_CHECK =\n", "", "machine.conf:1: KFD_NUMA_CHECK: value '' is not valid; " FLAGS },
	{ "a line that is no assignment", "", "KFD_NUMA_CHECK\n",
	  SETTINGS_IMAGE_CONF ":1: 'KFD_NUMA_CHECK' is not of the form KEY = VALUE" },
	{ "a key given twice", "KFD_NUMA_CHECK = 0\n\nKFD_NUMA_CHECK = 0\n", "",
	  "machine.conf:3: KFD_NUMA_CHECK was set already in line 1" },
};

ROW_TEST(settings_refuse_a_file, refused, what, setup, teardown)
{
	const struct refused *row = *unit_state;

	write_machine(row->machine);
	write_image(row->image);
	assert_refused("%s", row->says);
}

FIXTURE_TEST(settings_refuse_what_is_no_text_file)
{
	FILE *f = fopen(w.machine, "w");

	assert_non_null(f);
	assert_int_equal(fwrite("KFD_NUMA_CHECK = 0\n\0\n", 1, 21, f), 21);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(load(), -EINVAL);
	assert_int_equal(truncate(w.machine, 1 << 20), 0);
	assert_int_equal(load(), -EFBIG);
	assert_int_equal(log_errors, 1);
	assert_logged(w.machine);
	assert_int_equal(unlink(w.machine), 0);

	/* Neither waited for nor read. */
	assert_int_equal(mkfifo(w.machine, 0600), 0);
	assert_int_equal(load(), -EINVAL);
	assert_int_equal(unlink(w.machine), 0);

	/* Root must not quote /etc/shadow because an image said so. */
	assert_int_equal(symlink("/etc/hostname", SETTINGS_IMAGE_CONF), 0);
	assert_int_equal(load(), -ELOOP);
	assert_logged(SETTINGS_IMAGE_CONF);
}

/* What the machine demands is not dropped in silence because its file is out of reach. */
FIXTURE_TEST(settings_refuse_a_link_that_leads_nowhere)
{
	assert_int_equal(symlink("/nonexistent/amdgpu_plugin.conf", w.machine), 0);
	assert_int_equal(load(), -ENOENT);
	assert_int_equal(log_errors, 1);
	assert_logged(w.machine);
}

FIXTURE_TEST(settings_quote_no_more_than_a_line_of_a_value)
{
	char text[2 * PLUGIN_LOG_LINE_MAX] = "KFD_NUMA_CHECK = ";

	memset(text + strlen(text), 'x', sizeof(text) - strlen(text) - 1);
	write_machine(text);
	assert_int_equal(load(), -EINVAL);
	assert_logged("machine.conf:1: KFD_NUMA_CHECK: value 'xxxx");
	assert_logged("...' is not valid; accepted: 0/1, yes/no, true/false, on/off\n");
	write_machine(text + strlen("KFD_NUMA_CHECK = "));
	assert_int_equal(load(), -EINVAL);
	assert_logged("...' is not of the form KEY = VALUE\n");
	text[PLUGIN_LOG_LINE_MAX] = '=';
	write_machine(text + strlen("KFD_NUMA_CHECK = "));
	assert_int_equal(load(), -EINVAL);
	assert_logged("...' is not a setting of this plugin\n");
}

/* ---- who may override whom ---- */

FIXTURE_TEST(settings_later_sources_win)
{
	write_image("KFD_DEVICE_MAP = 1=2\nKFD_MAX_BUFFER_SIZE = 65M\n");
	write_machine("KFD_NUMA_CHECK = 0\nKFD_VRAM_SIZE_CHECK = 0\nKFD_MAX_BUFFER_SIZE = 64M\n");
	set_env("KFD_NUMA_CHECK", "1");
	assert_int_equal(load(), 0);
	assert_true(w.settings.flag[SETTING_NUMA_CHECK]);
	assert_false(w.settings.flag[SETTING_VRAM_SIZE_CHECK]);
	assert_int_equal(w.settings.n_device_map, 1);
	assert_int_equal(w.settings.max_buffer_size_bytes, 64 << 20);
	assert_int_equal(w.settings.from[SETTING_NUMA_CHECK], SETTING_OF_ENVIRONMENT);
	assert_int_equal(w.settings.from[SETTING_MAX_BUFFER_SIZE], SETTING_OF_MACHINE);
	assert_int_equal(w.settings.from[SETTING_DEVICE_MAP], SETTING_OF_IMAGE);
}

/* Neither does it switch off a check, nor name a file to be written. */
FIXTURE_TEST(settings_image_may_name_gpus_and_sizes_alone)
{
	static const char *const good[SETTING_MAX] = {
		[SETTING_DEVICE_MAP] = "1=2", [SETTING_MAX_BUFFER_SIZE] = "1M", [SETTING_PROGRESS] = "/etc/passwd",
	};

	for (unsigned int id = 0; id < SETTING_MAX; id++) {
		const char *value = good[id] ? good[id] : "0";
		char text[128];

		snprintf(text, sizeof(text), "# a comment\n%s = %s\n", setting_name(id), value);
		write_image(text);
		if (id == SETTING_DEVICE_MAP || id == SETTING_MAX_BUFFER_SIZE)
			assert_int_equal(load(), 0);
		else
			assert_refused(SETTINGS_IMAGE_CONF ":2: %s may not be set in the image directory; use "
				       SETTINGS_MACHINE_CONF " or the environment", setting_name(id));
	}
}

/* ---- mistakes that wait ---- */

FIXTURE_TEST(settings_keep_a_mistake_until_they_are_needed)
{
	write_machine("KFD_NUMA_CHECK = maybe\nKFD_FW_VER_CHECK = 0\n");
	settings_load_quietly(&w.settings, w.machine, w.image_fd, get_env);
	assert_int_equal(log_errors, 0);
	assert_true(w.settings.flag[SETTING_NUMA_CHECK] && w.settings.flag[SETTING_FW_VER_CHECK]);
	assert_int_equal(settings_check(&w.settings), -EINVAL);
	assert_int_equal(log_errors, 1);
	assert_logged("machine.conf:1: KFD_NUMA_CHECK: value 'maybe' is not valid");
	assert_logged(PLUGIN_ERROR_PREFIX);
}

FIXTURE_TEST(settings_without_a_mistake_have_nothing_to_say)
{
	write_machine("KFD_NUMA_CHECK = 0\n");
	settings_load_quietly(&w.settings, w.machine, w.image_fd, get_env);
	assert_int_equal(settings_check(&w.settings), 0);
	assert_int_equal(log_errors, 0);
	assert_false(w.settings.flag[SETTING_NUMA_CHECK]);
}

UNIT_MAIN(NULL, NULL)
