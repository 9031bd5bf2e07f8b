// SPDX-License-Identifier: GPL-2.0-only
/* What a setting is, and who says so: the file beside images may be a stranger's. */
#include <inttypes.h>

#include "amdgpu_plugin_util.h"
#include "tool/settings.h"

static size_t map_text(const struct settings *settings, char text[SETTING_TEXT_MAX])
{
	size_t len = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < settings->n_device_map && len < SETTING_TEXT_MAX / 2; i++) {
		char saved[DEVICE_REF_TEXT_MAX], local[DEVICE_REF_TEXT_MAX];

		device_ref_text(&settings->device_map[i].saved, saved, sizeof(saved));
		device_ref_text(&settings->device_map[i].local, local, sizeof(local));
		len += (size_t)snprintf(text + len, SETTING_TEXT_MAX - len, "%s%s=%s", i ? "," : "", saved, local);
	}
	return len;
}

void setting_text(const struct settings *settings, enum setting id, char text[SETTING_TEXT_MAX])
{
	static const char *const sources[] = { "default", SETTINGS_MACHINE_CONF,
					       SETTINGS_IMAGE_CONF " beside the images", "this shell's environment" };
	size_t len;

	if (id < SETTING_N_FLAGS)
		len = (size_t)sprintf(text, "%d", settings->flag[id]);
	else if (id == SETTING_MAX_BUFFER_SIZE)
		len = (size_t)sprintf(text, "%" PRIu64, settings->max_buffer_size_bytes);
	else if (id == SETTING_PROGRESS)
		len = (size_t)snprintf(text, SETTING_TEXT_MAX / 2, "%.2000s", settings->progress);
	else
		len = map_text(settings, text);
	snprintf(text + len, SETTING_TEXT_MAX - len, ", from %s", sources[settings->from[id]]);
}
