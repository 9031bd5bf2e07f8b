// SPDX-License-Identifier: GPL-2.0-only
/*
 * Settings: one table of names, types, defaults and help; three sources.
 *
 * Knows nothing of criu or GPUs. Values are parsed into a scratch copy and handed over when all sources are good, so
 * that a caller never sees half of them.
 */
#include <ctype.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "host/settings.h"
#include "amdgpu_plugin_util.h"

/* A configuration file is a handful of lines; more than this is something else. */
#define CONF_SIZE_MAX (64 * 1024)

struct source {
	enum setting_source kind;
	const char *file; /* NULL: environment */
	unsigned int line;
	unsigned int seen[SETTING_MAX]; /* line of each key met, 0: not yet */
};

struct load {
	struct settings settings;
	struct source source; /* the one being read */
};

#define FLAG_ACCEPTED "0/1, yes/no, true/false, on/off"
#define SIZE_ACCEPTED                                                                                            \
	"bytes or a number with K, M, G, T (KiB, MiB, GiB, TiB), cut to whole pages, at least one; 0: built-in " \
	"default"
#define MAP_ACCEPTED                                                                            \
	"SAVED=LOCAL,... each a gpu id (decimal or 0x hex), renderD128, or a PCI address like " \
	"0000:c1:00.0"

#define CHECK(name_, help_)                                          \
	{                                                            \
		name_, FLAG_ACCEPTED, "1", help_, SETTING_TYPE_FLAG, \
	}

static const struct setting_info setting_rows[SETTING_MAX] = {
	[SETTING_FW_VER_CHECK] = CHECK("KFD_FW_VER_CHECK", "the GPU's firmware must be at least as new as at dump"),
	[SETTING_SDMA_FW_VER_CHECK] =
		CHECK("KFD_SDMA_FW_VER_CHECK", "the SDMA firmware must be at least as new as at dump"),
	[SETTING_CACHES_COUNT_CHECK] =
		CHECK("KFD_CACHES_COUNT_CHECK", "the GPU must have at least as many caches as at dump"),
	[SETTING_NUM_GWS_CHECK] =
		CHECK("KFD_NUM_GWS_CHECK", "the GPU must have at least as many global wave sync slots as at dump"),
	[SETTING_VRAM_SIZE_CHECK] = CHECK("KFD_VRAM_SIZE_CHECK", "the GPU must have at least as much VRAM as at dump, "
								 "and as much free as the image has"),
	[SETTING_NUMA_CHECK] =
		CHECK("KFD_NUMA_CHECK", "GPUs that were on one NUMA node must be on one NUMA node again"),
	[SETTING_CAPABILITY_CHECK] =
		CHECK("KFD_CAPABILITY_CHECK", "the capabilities that user space acts on must be the same as at dump"),
	[SETTING_TOPOLOGY_CHECK] =
		CHECK("KFD_TOPOLOGY_CHECK", "GPUs must be linked (XGMI, PCIe P2P, host) at least as well as at dump"),
	[SETTING_RESTORABLE_CHECK] =
		CHECK("KFD_RESTORABLE_CHECK", "what this kernel is known not to restore must not be dumped"),
	[SETTING_SHARING_CHECK] =
		CHECK("KFD_SHARING_CHECK", "buffers must not be shared with processes that are not dumped, and processes "
					   "that share come back on GPUs of the same ids only"),
	[SETTING_PARALLEL_RESTORE] = {
		"KFD_PARALLEL_RESTORE", FLAG_ACCEPTED, "1",
		"one worker in criu's main process restores the contents of all processes (criu 4.2 and "
		"later); 0: each process restores its own",
		SETTING_TYPE_FLAG,
	},
	[SETTING_MAX_BUFFER_SIZE] = {
		"KFD_MAX_BUFFER_SIZE", SIZE_ACCEPTED, "0",
		"limit of the memory used for copies between GPU and image files, all GPUs together",
		SETTING_TYPE_SIZE,
	},
	[SETTING_DEVICE_MAP] = {
		"KFD_DEVICE_MAP", MAP_ACCEPTED, "",
		"GPUs of this machine to restore on; checked like any other, the rest is chosen",
		SETTING_TYPE_MAP,
	},
	[SETTING_PROGRESS] = {
		"KFD_PROGRESS", "absolute path of a file, FIFO or device; empty: none", "",
		"where progress lines are written while contents are copied",
		SETTING_TYPE_PATH,
	},
	[SETTING_WAIT] = {
		"KFD_WAIT", "auto, early", "auto",
		"when a restore waits for contents; early: each process, before its first mapping of a device; auto: "
		"criu, last, unless the images have a TCP connection",
		SETTING_TYPE_WAIT,
	},
};

const char *setting_name(enum setting id)
{
	return setting_rows[id].name;
}

const struct setting_info *setting_info(enum setting id)
{
	return &setting_rows[id];
}

void settings_default(struct settings *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (unsigned int i = 0; i < SETTING_N_FLAGS; i++)
		ret->flag[i] = setting_rows[i].default_value[0] == '1';
}

static int setting_by_name(const char *name, size_t len)
{
	for (unsigned int i = 0; i < SETTING_MAX; i++) {
		const char *known = setting_rows[i].name;

		if (strlen(known) == len && !memcmp(known, name, len))
			return (int)i;
	}
	return -ENOENT;
}

bool settings_flag(const struct settings *settings, const char *name)
{
	return settings->flag[setting_by_name(name, strlen(name))];
}

static int parse_flag(const char *text, bool *ret)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {
		{ "0", false },	    { "1", true },    { "no", false },	{ "yes", true },
		{ "false", false }, { "true", true }, { "off", false }, { "on", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strcasecmp(text, words[i].word)) {
			*ret = words[i].value;
			return 0;
		}
	}
	return -EINVAL;
}

/* Factor of "", K, M, G, T with or without iB; 0 when it is none of them. */
static uint64_t size_unit(const char *text)
{
	static const char units[] = "kmgt";
	const char *unit;

	if (!*text)
		return 1;
	unit = strchr(units, tolower((unsigned char)*text));
	if (!unit || !*unit || (text[1] && strcasecmp(text + 1, "ib")))
		return 0;
	return 1ULL << (10 * (unit - units + 1));
}

static int parse_size(const char *text, uint64_t *ret)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t value, unit;
	const char *end;
	int r;

	r = parse_digits(text, 10, UINT64_MAX, &end, &value);
	if (r < 0)
		return r;
	unit = size_unit(end);
	if (!unit)
		return -EINVAL;
	if (mul_overflows(value, unit, &value))
		return -ERANGE;
	if (value && value < page)
		return -ERANGE;
	/* Staging buffers are registered with the GPU page by page. */
	*ret = value - value % page;
	return 0;
}

/* One number followed by one given byte (0: end of text). */
static int parse_hex_field(const char **text, uint64_t max, char after, uint64_t *ret)
{
	const char *end;
	int r;

	r = parse_digits(*text, 16, max, &end, ret);
	if (r < 0)
		return r;
	if (*end != after)
		return -EINVAL;
	*text = after ? end + 1 : end;
	return 0;
}

/* [DOMAIN:]BUS:DEVICE.FUNCTION in hex */
static int parse_pci(const char *text, uint64_t *ret)
{
	uint64_t domain = 0, bus, dev, fn;
	const char *first = strchr(text, ':');

	if (!first)
		return -EINVAL;
	if (strchr(first + 1, ':') && parse_hex_field(&text, UINT32_MAX, ':', &domain) < 0)
		return -EINVAL;
	if (parse_hex_field(&text, 0xff, ':', &bus) < 0 || parse_hex_field(&text, 0x1f, '.', &dev) < 0 ||
	    parse_hex_field(&text, 7, '\0', &fn) < 0)
		return -EINVAL;
	*ret = domain << 32 | bus << 8 | dev << 3 | fn;
	return 0;
}

static int parse_number_ref(const char *text, int base, uint64_t *ret)
{
	const char *end;
	int r;

	r = parse_digits(text, base, UINT32_MAX, &end, ret);
	if (r < 0)
		return r;
	return *end ? -EINVAL : 0;
}

static int parse_device_ref(const char *text, struct device_ref *ret)
{
	static const char render[] = "renderD";
	int r;

	if (!strncmp(text, render, sizeof(render) - 1)) {
		ret->kind = DEVICE_REF_RENDER_MINOR;
		return parse_number_ref(text + sizeof(render) - 1, 10, &ret->value);
	}
	if (strchr(text, ':')) {
		ret->kind = DEVICE_REF_PCI;
		return parse_pci(text, &ret->value);
	}
	ret->kind = DEVICE_REF_GPU_ID;
	if (!strncasecmp(text, "0x", 2))
		r = parse_number_ref(text + 2, 16, &ret->value);
	else
		r = parse_number_ref(text, 10, &ret->value);
	/* 0 is a node without a GPU. */
	return r == 0 && !ret->value ? -EINVAL : r;
}

static char *trim(char *text)
{
	size_t len;

	while (isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
	return text;
}

static bool same_ref(const struct device_ref *a, const struct device_ref *b)
{
	return a->kind == b->kind && a->value == b->value;
}

static int add_device_pair(struct settings *s, char *pair)
{
	struct device_map_entry *entry = &s->device_map[s->n_device_map];
	char *equal = strchr(pair, '=');

	if (!equal)
		return -EINVAL;
	if (s->n_device_map == SETTINGS_DEVICE_MAP_MAX)
		return -E2BIG;
	*equal = '\0';
	if (parse_device_ref(trim(pair), &entry->saved) < 0 || parse_device_ref(trim(equal + 1), &entry->local) < 0)
		return -EINVAL;
	for (unsigned int i = 0; i < s->n_device_map; i++) {
		if (same_ref(&s->device_map[i].saved, &entry->saved) ||
		    same_ref(&s->device_map[i].local, &entry->local))
			return -EINVAL;
	}
	s->n_device_map++;
	return 0;
}

static int parse_device_map(const char *text, struct settings *s)
{
	_cleanup_free_ char *copy = strdup(text);
	char *rest = copy, *pair;
	int r;

	if (!copy)
		return -ENOMEM;
	s->n_device_map = 0;
	if (!*trim(copy))
		return 0;
	while ((pair = strsep(&rest, ","))) {
		r = add_device_pair(s, pair);
		if (r < 0)
			return r;
	}
	return 0;
}

static int parse_path(const char *text, char *ret)
{
	size_t len = strlen(text);

	if (len >= PATH_MAX || (len && text[0] != '/'))
		return -EINVAL;
	memcpy(ret, text, len + 1);
	return 0;
}

static int parse_wait(const char *text, bool *ret_early)
{
	*ret_early = !strcasecmp(text, "early");
	return *ret_early || !strcasecmp(text, "auto") ? 0 : -EINVAL;
}

static int parse_value(struct settings *s, enum setting id, const char *text)
{
	switch (setting_rows[id].type) {
	case SETTING_TYPE_FLAG:
		return parse_flag(text, &s->flag[id]);
	case SETTING_TYPE_SIZE:
		return parse_size(text, &s->max_buffer_size_bytes);
	case SETTING_TYPE_MAP:
		return parse_device_map(text, s);
	case SETTING_TYPE_PATH:
		return parse_path(text, s->progress);
	case SETTING_TYPE_WAIT:
		return parse_wait(text, &s->waits_early);
	}
	return -EINVAL;
}

static void source_text(const struct source *source, char *text, size_t size)
{
	if (source->file)
		snprintf(text, size, "%s:%u", source->file, source->line);
	else
		snprintf(text, size, "environment");
}

/* "..." for a text of more than 200 bytes: an error line has more to say and quotes only these. */
static const char *more(const char *text)
{
	return strnlen(text, 201) > 200 ? "..." : "";
}

/* Images travel between machines: they name no file of this one. */
static int check_source(const struct source *source, enum setting id)
{
	if (source->kind != SETTING_OF_IMAGE || id != SETTING_PROGRESS)
		return 0;
	return fail(-EINVAL, "%s:%u: %s may not be set in the image directory; use %s or the environment", source->file,
		    source->line, setting_name(id), SETTINGS_MACHINE_CONF);
}

static int apply(struct load *load, enum setting id, const char *value)
{
	const struct setting_info *row = &setting_rows[id];
	char place[PATH_MAX + 16];
	int err = parse_value(&load->settings, id, value);

	source_text(&load->source, place, sizeof(place));
	if (err == -ENOMEM)
		return fail(err, "%s: %s: %m", place, row->name);
	if (err)
		return fail(-EINVAL, "%s: %s: value '%.200s%s' is not valid; accepted: %s", place, row->name, value,
			    more(value), row->accepted);
	load->settings.from[id] = load->source.kind;
	return check_source(&load->source, id);
}

/* Ends the text where a comment starts: at the beginning or after white space. */
static void strip_comment(char *line)
{
	for (char *p = strchr(line, '#'); p; p = strchr(p + 1, '#')) {
		if (p == line || isspace((unsigned char)p[-1])) {
			*p = '\0';
			return;
		}
	}
}

static int apply_line(struct load *load, char *line)
{
	struct source *source = &load->source;
	char *key, *equal;
	int id;

	strip_comment(line);
	key = trim(line);
	if (!*key)
		return 0;
	equal = strchr(key, '=');
	if (!equal)
		return fail(-EINVAL, "%s:%u: '%.200s%s' is not of the form KEY = VALUE", source->file, source->line, key,
			    more(key));
	*equal = '\0';
	key = trim(key);
	id = setting_by_name(key, strlen(key));
	if (id < 0)
		return fail(-EINVAL, "%s:%u: '%.200s%s' is not a setting of this plugin", source->file, source->line, key,
			    more(key));
	if (source->seen[id])
		return fail(-EINVAL, "%s:%u: %s was set already in line %u", source->file, source->line, key,
			    source->seen[id]);
	source->seen[id] = source->line;
	return apply(load, id, trim(equal + 1));
}

/* Returns 0 and no text when there is no such file. A link that leads nowhere is one that cannot be read. */
static int open_conf(int dir_fd, const char *path, int flags, char **ret_text)
{
	_cleanup_free_ char *text = malloc(CONF_SIZE_MAX + 1);
	_cleanup_close_ int fd = -1;
	struct stat st;
	int err;

	if (!text)
		return -ENOMEM;
	if (dir_fd >= 0 && !fstat(dir_fd, &st) && S_ISREG(st.st_mode)) {
		fd = dup(dir_fd);
	} else {
		if (fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 && (errno == ENOENT || errno == ENOTDIR))
			return 0;
		/* O_NONBLOCK: a FIFO of this name is refused below, not waited for. */
		fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
	}
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	err = read_text(fd, text, CONF_SIZE_MAX + 1);
	if (!err)
		*ret_text = steal_ptr(text);
	return err;
}

static int load_file(struct load *load, enum setting_source kind, int dir_fd, const char *path)
{
	/* A link in the image directory could make root quote somebody else's file in an error line. */
	int flags = kind == SETTING_OF_IMAGE ? O_NOFOLLOW : 0;
	_cleanup_free_ char *text = NULL;
	char *rest, *line;
	int err;

	load->source = (struct source){ .kind = kind, .file = path };
	err = open_conf(dir_fd, path, flags, &text);
	if (err)
		return fail(err, "%s: cannot be read as a configuration file (text, at most %d bytes): %m", path,
			    CONF_SIZE_MAX);
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		load->source.line++;
		err = apply_line(load, line);
		if (err)
			return err;
	}
	return 0;
}

const char *settings_environment(const char *name, void *arg)
{
	(void)arg;
	return getenv(name);
}

static int load_env(struct load *load, settings_getenv_fn getenv_fn, void *arg)
{
	load->source = (struct source){ .kind = SETTING_OF_ENVIRONMENT };
	for (unsigned int i = 0; i < SETTING_MAX; i++) {
		const char *value = getenv_fn(setting_rows[i].name, arg);
		int err = value ? apply(load, (enum setting)i, value) : 0;

		if (err)
			return err;
	}
	return 0;
}

int settings_load(struct settings *ret, const char *machine_conf, int image_dir_fd, settings_getenv_fn getenv_fn,
		  void *arg)
{
	_cleanup_free_ struct load *load = calloc(1, sizeof(*load));
	int err;

	if (!load)
		return fail(-ENOMEM, "settings: %m");
	settings_default(&load->settings);
	err = image_dir_fd < 0 ? 0 : load_file(load, SETTING_OF_IMAGE, image_dir_fd, SETTINGS_IMAGE_CONF);
	if (err)
		return err;
	err = machine_conf ? load_file(load, SETTING_OF_MACHINE, AT_FDCWD, machine_conf) : 0;
	if (err)
		return err;
	err = getenv_fn ? load_env(load, getenv_fn, arg) : 0;
	if (err)
		return err;
	*ret = load->settings;
	return 0;
}

void settings_load_quietly(struct settings *ret, const char *machine_conf, int image_dir_fd,
			   settings_getenv_fn getenv_fn, void *arg)
{
	if (!settings_load(ret, machine_conf, image_dir_fd, getenv_fn, arg))
		return;
	settings_default(ret);
	snprintf(ret->mistake, sizeof(ret->mistake), "%s", fail_text());
	fail_clear();
}

int settings_check(const struct settings *settings)
{
	return settings->mistake[0] ? fail(-EINVAL, "%s", settings->mistake) : 0;
}
