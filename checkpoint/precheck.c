// SPDX-License-Identifier: GPL-2.0-only
/*
 * A restore that fails before criu has made a task leaves nothing to undo, and engines show its reason. So what no task
 * could overcome is looked for at the start: which GPUs a task may use is not known yet, and they are never more than
 * those of the machine.
 *
 * The directory may have images of other dumps: as long as one process could be restored, each task decides for itself.
 */
#include <fcntl.h>

#include "amdgpu_plugin_util.h"
#include "checkpoint/internal.h"
#include "image/image.h"
#include "match/match.h"
#include "suspend/suspend.h"

#define WAIT_ATTEMPTS 500
#define WAIT_USEC     10000

void precheck_wait(bool certain)
{
	_cleanup_close_ int sysfs = open("/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t ended = certain || image_next(IMAGE_KFD, -1) >= 0 ? usage_count_ended(sysfs) : 0;
	unsigned int i = 0;

	for (; ended && i < WAIT_ATTEMPTS; i++) {
		usleep(WAIT_USEC);
		ended = usage_count_ended(sysfs);
	}
	if (i)
		pr_info("waited %u ms for processes that have ended; the KFD still has %zu\n", i * (WAIT_USEC / 1000), ended);
}

struct match_options precheck_options(const struct settings *settings)
{
	struct match_options options = { .pairs = settings->device_map, .nr_pairs = settings->n_device_map };

	for (unsigned int i = 0; i < MATCH_NR_CHECKS; i++)
		options.relaxed[i] = !settings_flag(settings, match_check_name(i));
	return options;
}

int precheck_ids(const struct settings *settings, const struct gpu_process *image, uint32_t user_id, uint32_t actual_id)
{
	if (user_id == actual_id || !kfd_image_keeps_ids(image) || !settings->flag[SETTING_SHARING_CHECK])
		return 0;
	return fail(-EOPNOTSUPP, "pid %u shares buffers, and its gpu %#x would be gpu %#x: the kernel confuses the two ids when the "
		    "program exports or imports buffers; choose the GPU of the same id by KFD_DEVICE_MAP (KFD_SHARING_CHECK=0 "
		    "accepts it)", image->state.pid, user_id, actual_id);
}

/* 0: it has a chance, or that cannot be told; 1: it has no GPUs; -errno: it has none. */
static int has_chance_of_image(const struct gpu_process *image, const struct topology *machine,
		       const struct match_options *options)
{
	struct device_map_entry pairs[TOPOLOGY_MAX_NODES];
	struct match_options own = *options;
	_cleanup_free_ struct match_map *map = NULL;
	int err;

	/* The others may be of other images. */
	own.pairs = pairs;
	own.nr_pairs = 0;
	for (unsigned int i = 0; i < options->nr_pairs; i++)
		if (topology_find_ref(image->nodes, &options->pairs[i].saved) != -ENODEV)
			pairs[own.nr_pairs++] = options->pairs[i];
	err = topology_count_gpus(image->nodes) ? match_devices(image->nodes, machine, &own, &map) : 1;
	return err == -ENODEV || err == -EINVAL || err == 1 ? err : 0;
}

/* Whether each pair that the user names is of some image; @largest: the GPUs of one. 0, or -errno after fail(). */
static int check_pairs(const struct topology *largest, const struct topology *machine, const struct match_options *options,
		       const struct match_choices *choices)
{
	struct match_options one = *options;
	_cleanup_free_ struct match_map *map = NULL;

	one.nr_pairs = 1;
	for (unsigned int i = 0; i < options->nr_pairs; i++) {
		one.pairs = &options->pairs[i];
		if (!choices->is_named[i])
			return match_devices(largest, machine, &one, &map);
	}
	return 0;
}

int precheck_images(const struct topology *machine, const struct settings *settings, const struct suspend_restore *suspended,
		    struct shared *shared, bool certain, struct topology **largest)
{
	struct match_options options = precheck_options(settings);
	bool has_chance = false, all_are_read = true;
	int refused = 0;

	for (int id = image_next(IMAGE_KFD, -1); id >= 0; id = image_next(IMAGE_KFD, id)) {
		struct gpu_work work[TOPOLOGY_MAX_NODES];
		struct gpu_process *image = NULL;
		int err;

		/* What is wrong with an image is said when the image is needed. */
		if (kfd_image_read(id, &image)) {
			fail_clear();
			has_chance = true;
			all_are_read = false;
			continue;
		}
		err = has_chance ? 0 : has_chance_of_image(image, machine, &options);
		has_chance = has_chance || !err;
		refused = err < 0 ? err : refused;
		kfd_state_work(&image->state, image->nodes, work);
		suspend_restore_add_work(suspended, (pid_t)image->state.pid, image->nodes, work);
		match_need(&shared->choices, image->nodes, work, kfd_image_keeps_ids(image));
		match_note_pairs(&shared->choices, image->nodes, options.pairs, options.nr_pairs);
		if (!*largest || topology_count_gpus(image->nodes) > topology_count_gpus(*largest)) {
			topology_free(*largest);
			*largest = steal_ptr(image->nodes);
		}
		gpu_process_free(image);
	}
	if (!has_chance && certain && refused)
		return refused;
	fail_clear();
	return certain && all_are_read && *largest ? check_pairs(*largest, machine, &options, &shared->choices) : 0;
}
