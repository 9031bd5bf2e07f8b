// SPDX-License-Identifier: GPL-2.0-only
/*
 * Settings: one table of names and types; where values come from.
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

struct load {
	struct settings settings;
	/* The source that is being read. */
	enum setting_source kind;
	char place[PATH_MAX + 16];	/* "FILE:LINE", "option or environment" */
	unsigned int line;		/* of a file */
	unsigned int seen[SETTING_MAX]; /* line of each key met in it, 0: not yet */
};

enum setting_type { TYPE_FLAG, TYPE_SIZE, TYPE_MAP, TYPE_PATH, TYPE_SECONDS };

/* The man page has the same words, which a test compares. */
static const char *const accepted[] = {
	[TYPE_FLAG] = "0/1, yes/no, true/false, on/off",
	[TYPE_SIZE] = ("bytes or a number with K, M, G, T (KiB, MiB, GiB, TiB), rounded down to whole pages, at least one; 0: "
		       "built-in default"),
	[TYPE_MAP] = "SAVED=LOCAL,... each a gpu id (decimal or 0x hex), renderD128, or a PCI address like 0000:c1:00.0",
	[TYPE_PATH] = "absolute path of a file, FIFO or device; empty: none",
	[TYPE_SECONDS] = "seconds, 0 to 86400",
};

static const struct {
	const char *name;
	enum setting_type type;
} rows[SETTING_MAX] = {
	[SETTING_FW_VER_CHECK] = { "KFD_FW_VER_CHECK", TYPE_FLAG },
	[SETTING_SDMA_FW_VER_CHECK] = { "KFD_SDMA_FW_VER_CHECK", TYPE_FLAG },
	[SETTING_CACHES_COUNT_CHECK] = { "KFD_CACHES_COUNT_CHECK", TYPE_FLAG },
	[SETTING_NUM_GWS_CHECK] = { "KFD_NUM_GWS_CHECK", TYPE_FLAG },
	[SETTING_VRAM_SIZE_CHECK] = { "KFD_VRAM_SIZE_CHECK", TYPE_FLAG },
	[SETTING_NUMA_CHECK] = { "KFD_NUMA_CHECK", TYPE_FLAG },
	[SETTING_CAPABILITY_CHECK] = { "KFD_CAPABILITY_CHECK", TYPE_FLAG },
	[SETTING_RESTORABLE_CHECK] = { "KFD_RESTORABLE_CHECK", TYPE_FLAG },
	[SETTING_SHARING_CHECK] = { "KFD_SHARING_CHECK", TYPE_FLAG },
	[SETTING_MAX_BUFFER_SIZE] = { "KFD_MAX_BUFFER_SIZE", TYPE_SIZE },
	[SETTING_DEVICE_MAP] = { "KFD_DEVICE_MAP", TYPE_MAP },
	[SETTING_PROGRESS] = { "KFD_PROGRESS", TYPE_PATH },
	[SETTING_IDLE_WAIT] = { "KFD_IDLE_WAIT", TYPE_SECONDS },
};

const char *setting_name(enum setting id)
{
	return rows[id].name;
}

const char *setting_accepted(enum setting id)
{
	return accepted[rows[id].type];
}

/* Every flag is set. */
static void set_defaults(struct settings *ret)
{
	*ret = (struct settings){ .idle_wait_seconds = 5 };
	for (unsigned int i = 0; i < SETTING_N_FLAGS; i++)
		ret->flag[i] = true;
}

static int setting_by_name(const char *name)
{
	for (unsigned int i = 0; i < SETTING_MAX; i++)
		if (!strcmp(rows[i].name, name))
			return (int)i;
	return -ENOENT;
}

bool settings_flag(const struct settings *settings, const char *name)
{
	return settings->flag[setting_by_name(name)];
}

/* Bytes, with "", K, M, G or T, with or without iB, behind the number. */
static int parse_size(const char *text, uint64_t *ret)
{
	static const char units[] = "kmgt";
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), value;
	const char *end, *unit;
	int err = parse_digits(text, 10, UINT64_MAX, &end, &value);

	if (err)
		return err;
	if (*end) {
		unit = strchr(units, tolower((unsigned char)*end));
		if (!unit || (end[1] && strcasecmp(end + 1, "ib")))
			return -EINVAL;
		if (mul_overflows(value, 1ULL << (10 * (unit - units + 1)), &value))
			return -ERANGE;
	}
	if (value && value < page)
		return -ERANGE;
	/* Staging buffers are registered with the GPU page by page. */
	*ret = value - value % page;
	return 0;
}

/* [DOMAIN:]BUS:DEVICE.FUNCTION in hex */
static int parse_pci(const char *text, uint64_t *ret)
{
	unsigned int domain = 0, bus, dev, fn;
	bool has_domain = strchr(text, ':') != strrchr(text, ':');
	int end = 0;

	/* sscanf() takes signs and blanks. */
	if (text[strspn(text, "0123456789abcdefABCDEF:.")])
		return -EINVAL;
	if (has_domain ? sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &dev, &fn, &end) != 4 :
			 sscanf(text, "%2x:%2x.%1x%n", &bus, &dev, &fn, &end) != 3)
		return -EINVAL;
	if (text[end] || dev > 0x1f || fn > 7)
		return -EINVAL;
	*ret = (uint64_t)domain << 32 | bus << 8 | dev << 3 | fn;
	return 0;
}

static int parse_number(const char *text, int base, uint64_t *ret)
{
	const char *end;
	int err = parse_digits(text, base, UINT32_MAX, &end, ret);

	return !err && *end ? -EINVAL : err;
}

static int parse_device_ref(const char *text, struct device_ref *ret)
{
	static const char render[] = "renderD";
	int err;

	if (!strncmp(text, render, strlen(render))) {
		ret->kind = DEVICE_REF_RENDER_MINOR;
		return parse_number(text + strlen(render), 10, &ret->value);
	}
	if (strchr(text, ':')) {
		ret->kind = DEVICE_REF_PCI;
		return parse_pci(text, &ret->value);
	}
	ret->kind = DEVICE_REF_GPU_ID;
	err = parse_number(text, strncasecmp(text, "0x", 2) ? 10 : 16, &ret->value);
	/* 0 is a node without a GPU. */
	return !err && !ret->value ? -EINVAL : err;
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

static int parse_device_map(const char *text, struct settings *s)
{
	_cleanup_free_ char *copy = strdup(text);
	char *rest = copy, *pair, *equal;

	if (!copy)
		return -ENOMEM;
	s->n_device_map = 0;
	if (!*trim(copy))
		return 0;
	while ((pair = strsep(&rest, ","))) {
		struct device_map_entry *entry = &s->device_map[s->n_device_map];

		equal = strchr(pair, '=');
		if (!equal)
			return -EINVAL;
		if (s->n_device_map == TOPOLOGY_MAX_NODES)
			return -E2BIG;
		*equal = '\0';
		if (parse_device_ref(trim(pair), &entry->saved) < 0 || parse_device_ref(trim(equal + 1), &entry->local) < 0)
			return -EINVAL;
		for (unsigned int i = 0; i < s->n_device_map; i++)
			if (same_ref(&s->device_map[i].saved, &entry->saved) ||
			    same_ref(&s->device_map[i].local, &entry->local))
				return -EINVAL;
		s->n_device_map++;
	}
	return 0;
}

static int parse_value(struct settings *s, enum setting id, const char *text)
{
	static const char *const words[][2] = { { "0", "1" }, { "no", "yes" }, { "false", "true" }, { "off", "on" } };
	size_t len = strlen(text);
	uint64_t seconds;

	switch (rows[id].type) {
	case TYPE_FLAG:
		for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
			s->flag[id] = !strcasecmp(text, words[i][1]);
			if (s->flag[id] || !strcasecmp(text, words[i][0]))
				return 0;
		}
		return -EINVAL;
	case TYPE_SIZE:
		return parse_size(text, &s->max_buffer_size_bytes);
	case TYPE_MAP:
		return parse_device_map(text, s);
	case TYPE_PATH:
		if (len >= PATH_MAX || (len && text[0] != '/'))
			return -EINVAL;
		memcpy(s->progress, text, len + 1);
		return 0;
	case TYPE_SECONDS:
		if (parse_number(text, 10, &seconds) || seconds > 24 * 60 * 60)
			return -EINVAL;
		s->idle_wait_seconds = (unsigned int)seconds;
		return 0;
	}
	return -EINVAL;
}

/* "..." for a text of more than 200 bytes: an error line has more to say and quotes only these. */
static const char *more(const char *text)
{
	return strnlen(text, 201) > 200 ? "..." : "";
}

static int apply(struct load *load, enum setting id, const char *value)
{
	int err = parse_value(&load->settings, id, value);

	if (err == -ENOMEM)
		return fail(err, "%s: %s: %m", load->place, setting_name(id));
	if (err)
		return fail(-EINVAL, "%s: %s: value '%.200s%s' is not valid; accepted: %s", load->place, setting_name(id),
			    value, more(value), setting_accepted(id));
	/* Images travel between machines: they switch off no check of this one, and name no file of it. */
	if (load->kind == SETTING_OF_IMAGE && rows[id].type != TYPE_MAP && rows[id].type != TYPE_SIZE)
		return fail(-EINVAL, "%s: %s may not be set in the image directory; use %s or the environment", load->place,
			    setting_name(id), SETTINGS_MACHINE_CONF);
	load->settings.from[id] = load->kind;
	return 0;
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
	/* A link in the image directory could make root quote another user's file in an error line. */
	int flags = kind == SETTING_OF_IMAGE ? O_NOFOLLOW : 0;
	_cleanup_free_ char *text = NULL;
	char *rest, *line, *key, *equal;
	int id, err;

	load->kind = kind;
	load->line = 0;
	memset(load->seen, 0, sizeof(load->seen));
	err = open_conf(dir_fd, path, flags, &text);
	if (err)
		return fail(err, "%s: cannot be read as a configuration file (text, at most %d bytes): %m", path,
			    CONF_SIZE_MAX);
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		snprintf(load->place, sizeof(load->place), "%s:%u", path, ++load->line);
		/* A comment starts at the beginning or after white space. */
		for (char *p = strchr(line, '#'); p; p = *p ? strchr(p + 1, '#') : NULL)
			if (p == line || isspace((unsigned char)p[-1]))
				*p = '\0';
		key = trim(line);
		if (!*key)
			continue;
		equal = strchr(key, '=');
		if (!equal)
			return fail(-EINVAL, "%s: '%.200s%s' is not of the form KEY = VALUE", load->place, key, more(key));
		*equal = '\0';
		key = trim(key);
		id = setting_by_name(key);
		if (id < 0)
			return fail(-EINVAL, "%s: '%.200s%s' is not a setting of this plugin", load->place, key, more(key));
		if (load->seen[id])
			return fail(-EINVAL, "%s: %s was set already in line %u", load->place, key, load->seen[id]);
		load->seen[id] = load->line;
		err = apply(load, id, trim(equal + 1));
		if (err)
			return err;
	}
	return 0;
}

int settings_load(struct settings *ret, const char *machine_conf, int image_dir_fd, settings_getenv_fn getenv_fn)
{
	_cleanup_free_ struct load *load = calloc(1, sizeof(*load));
	int err;

	if (!load)
		return fail(-ENOMEM, "settings: %m");
	set_defaults(&load->settings);
	err = image_dir_fd < 0 ? 0 : load_file(load, SETTING_OF_IMAGE, image_dir_fd, SETTINGS_IMAGE_CONF);
	if (err)
		return err;
	err = machine_conf ? load_file(load, SETTING_OF_MACHINE, AT_FDCWD, machine_conf) : 0;
	if (err)
		return err;
	load->kind = SETTING_OF_ENVIRONMENT;
	snprintf(load->place, sizeof(load->place), "option or environment");
	for (unsigned int i = 0; getenv_fn && i < SETTING_MAX; i++) {
		const char *value = getenv_fn(rows[i].name);

		err = value ? apply(load, (enum setting)i, value) : 0;
		if (err)
			return err;
	}
	*ret = load->settings;
	return 0;
}

void settings_load_quietly(struct settings *ret, const char *machine_conf, int image_dir_fd,
			   settings_getenv_fn getenv_fn)
{
	if (!settings_load(ret, machine_conf, image_dir_fd, getenv_fn))
		return;
	set_defaults(ret);
	snprintf(ret->mistake, sizeof(ret->mistake), "%s", fail_text());
	fail_clear();
}

int settings_check(const struct settings *settings)
{
	return settings->mistake[0] ? fail(-EINVAL, "%s", settings->mistake) : 0;
}
