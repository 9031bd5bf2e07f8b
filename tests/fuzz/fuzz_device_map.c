// SPDX-License-Identifier: GPL-2.0-only
/*
 * KFD_DEVICE_MAP: what is accepted means the same when it is written down by the plugin and
 * read again.
 */
#include <string.h>

#include "host/settings.h"
#include "fuzz.h"

static const char *get(const char *name, void *arg)
{
	return strcmp(name, "KFD_DEVICE_MAP") ? NULL : arg;
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

static void check_round_trip(const struct settings *s)
{
	struct settings *again = calloc(1, sizeof(*again));
	char *text = to_text(s);
	unsigned int i;

	expect(again && !settings_load(again, NULL, -1, get, text));
	expect(again->n_device_map == s->n_device_map);
	for (i = 0; i < s->n_device_map; i++) {
		const struct device_map_entry *a = &s->device_map[i], *b = &again->device_map[i];

		expect(a->saved.kind == b->saved.kind && a->saved.value == b->saved.value);
		expect(a->local.kind == b->local.kind && a->local.value == b->local.value);
	}
	free(text);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct settings *s = calloc(1, sizeof(*s));
	char *text = malloc(size + 1);
	int err;

	expect(s && text);
	memcpy(text, data, size);
	text[size] = '\0';
	err = settings_load(s, NULL, -1, get, text);
	expect(fuzz_errors() == (err != 0));
	if (!err)
		check_round_trip(s);
	free(text);
	free(s);
	return 0;
}
