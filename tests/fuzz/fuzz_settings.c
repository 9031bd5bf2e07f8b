// SPDX-License-Identifier: GPL-2.0-only
/*
 * Settings: the machine's file, the file in the image directory and the environment, in this
 * order, with a zero byte after each of the first two. The environment has the same form.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/settings.h"
#include "fuzz.h"

static const char *environment; /* lines NAME=VALUE */
static char value[8192];

static const char *get(const char *name)
{
	const char *line = environment;
	size_t len = strlen(name);

	while (line) {
		if (!strncmp(line, name, len) && line[len] == '=') {
			snprintf(value, sizeof(value), "%.*s", (int)strcspn(line + len + 1, "\n"), line + len + 1);
			return value;
		}
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return NULL;
}

/* A directory that stays, with the file as it is this time. */
static int image_dir(const char *text, size_t size)
{
	static int dir = -1;
	char path[64];
	int fd;

	if (dir < 0) {
		snprintf(path, sizeof(path), "%.40s/fuzz.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
		expect(mkdtemp(path));
		dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	fd = openat(dir, SETTINGS_IMAGE_CONF, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	expect(fd >= 0 && write(fd, text, size) == (ssize_t)size);
	close(fd);
	return dir;
}

static const char *map_text;

static const char *get_map(const char *name)
{
	return strcmp(name, "KFD_DEVICE_MAP") ? NULL : map_text;
}

static char *to_text(const struct settings *s)
{
	size_t room = s->n_device_map * 2 * DEVICE_REF_TEXT_MAX + 1, used = 0;
	char *text = calloc(1, room);
	unsigned int i;

	expect(text);
	for (i = 0; i < s->n_device_map; i++) {
		char saved[DEVICE_REF_TEXT_MAX], local[DEVICE_REF_TEXT_MAX];

		device_ref_text(&s->device_map[i].saved, saved, sizeof(saved));
		device_ref_text(&s->device_map[i].local, local, sizeof(local));
		used += (size_t)snprintf(text + used, room - used, "%s%s=%s", i ? "," : "", saved, local);
		expect(used < room);
	}
	return text;
}

/* What the plugin writes down of it means the same. */
static void check_map_is_read_again(const struct settings *s)
{
	struct settings *again = calloc(1, sizeof(*again));
	char *text = to_text(s);
	unsigned int i;

	map_text = text;
	expect(again && !settings_load(again, NULL, -1, get_map));
	expect(again->n_device_map == s->n_device_map);
	for (i = 0; i < s->n_device_map; i++) {
		const struct device_map_entry *a = &s->device_map[i], *b = &again->device_map[i];

		expect(a->saved.kind == b->saved.kind && a->saved.value == b->saved.value);
		expect(a->local.kind == b->local.kind && a->local.value == b->local.value);
	}
	free(text);
	free(again);
}

static void check(const struct settings *s)
{
	unsigned int i, j;

	expect(s->max_buffer_size_bytes % 4096 == 0);
	expect(memchr(s->progress, '\0', sizeof(s->progress)) && (!s->progress[0] || s->progress[0] == '/'));
	expect(s->n_device_map <= TOPOLOGY_MAX_NODES);
	for (i = 0; i < s->n_device_map; i++) {
		const struct device_map_entry *entry = &s->device_map[i];

		for (j = 0; j < i; j++)
			expect(memcmp(entry, &s->device_map[j], sizeof(*entry)));
		expect(entry->saved.kind != DEVICE_REF_GPU_ID || (entry->saved.value && entry->saved.value <= UINT32_MAX));
	}
	check_map_is_read_again(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct settings untouched;
	struct settings *s = calloc(1, sizeof(*s));
	char *text = malloc(size + 1), *image;
	char path[32];
	size_t len;
	int err, fd;

	expect(s && text);
	memcpy(text, data, size);
	text[size] = '\0';
	len = strlen(text);
	image = len < size ? text + len + 1 : text + size;
	environment = strlen(image) < size - (size_t)(image - text) ? image + strlen(image) + 1 : NULL;
	fd = fuzz_file(data, len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = settings_load(s, path, image_dir(image, strlen(image)), get);
	expect(fuzz_errors() == (err != 0));
	if (err)
		expect(!memcmp(s, &untouched, sizeof(*s)));
	else
		check(s);
	close(fd);
	free(text);
	free(s);
	return 0;
}
