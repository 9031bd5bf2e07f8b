// SPDX-License-Identifier: GPL-2.0-only
/*
 * A restore that fails before criu has made a task leaves nothing to undo, and engines show its reason. So what no task
 * could overcome is looked for at the start: which GPUs a task may use is not known yet, and they are never more than
 * those of the machine.
 *
 * The directory may have images of other dumps: as long as one process could be restored, each task decides for itself.
 */
#include "amdgpu_plugin_util.h"
#include "checkpoint/early.h"
#include "checkpoint/gpus.h"
#include "image/image.h"
#include "match/match.h"

static void drop_line(void *arg, enum plugin_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
}

/* What is wrong with an image is said when the image is needed. */
static int read_quietly(int id, struct kfd_image **ret)
{
	int err;

	plugin_log_divert(drop_line, NULL);
	err = kfd_image_read(id, ret);
	plugin_log_divert(NULL, NULL);
	return err;
}

/* 0: it has a chance, or that cannot be told; 1: it has no GPUs; -errno: it has none, *report says why. */
static int check_image(int id, const struct topology *machine, const struct match_options *options,
		       struct match_report *report)
{
	struct kfd_image *image = NULL;
	struct match_map *map = NULL;
	int err;

	if (read_quietly(id, &image))
		return 0;
	err = topology_count_gpus(image->nodes) ? match_devices(image->nodes, machine, options, &map, report) : 1;
	match_map_free(map);
	kfd_image_free(image);
	return err == -ENODEV || err == -EINVAL || err == 1 ? err : 0;
}

int early_check(const struct topology *machine, const struct settings *settings)
{
	_cleanup_free_ struct match_report *report = calloc(1, sizeof(*report));
	struct match_options options = gpus_match_options(settings);
	int refused = 0;

	if (!report)
		return -ENOMEM;
	for (int id = kfd_image_next(-1); id >= 0; id = kfd_image_next(id)) {
		int err = check_image(id, machine, &options, report);

		if (!err)
			return 0;
		refused = err < 0 ? err : refused;
	}
	if (refused)
		match_report_log(report);
	return refused;
}
