// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chooses the GPUs of a restored task and opens their render nodes, whichever file of the
 * task comes first. The opened files are kept in criu's fd store, so that they take no number
 * of the task's own fd table.
 */
#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/gpus.h"
#include "match/match.h"

struct gpu *gpus_by_user_id(const struct gpus *gpus, uint32_t user_id)
{
	for (size_t i = 0; i < gpus->nr; i++)
		if (gpus->list[i].user_id == user_id)
			return &gpus->list[i];
	return NULL;
}

struct gpu *gpus_by_saved_minor(const struct gpus *gpus, uint32_t minor)
{
	for (size_t i = 0; i < gpus->nr; i++)
		if (gpus->list[i].saved_minor == minor)
			return &gpus->list[i];
	return NULL;
}

/* What says nothing of the GPU, only of the caller. */
static bool is_shortage(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE || err == -EINTR;
}

/* GPUs whose render node can be opened in this task, and how many the kernel shows it. */
static int find_candidates(const struct topology *machine, bool *candidates, size_t *ret_visible)
{
	_cleanup_close_ int sysfs = mount_private("sysfs", NULL);

	*ret_visible = 0;
	for (unsigned int i = 0; i < machine->n_nodes; i++) {
		const struct topology_node *node = machine->nodes[i];
		uint32_t minor = topology_get(node, TOPOLOGY_DRM_RENDER_MINOR);
		_cleanup_close_ int fd = -1;

		if (!topology_is_gpu(node))
			continue;
		fd = drm_open_minor(minor);
		if (is_shortage(fd)) {
			pr_err("gpu %#x: cannot look whether renderD%u may be used: %s", topology_gpu_id(node), minor,
			       strerror(-fd));
			return fd;
		}
		candidates[i] = fd >= 0;
		*ret_visible += !sysfs_node_is_hidden(sysfs, node->id, fd == -EPERM);
		if (fd < 0)
			pr_info("gpu %#x is no candidate: renderD%u: %s", topology_gpu_id(node), minor, strerror(-fd));
	}
	return 0;
}

static int take_gpu(struct gpus *gpus, const struct match_pair *pair)
{
	struct gpu *gpu = &gpus->list[gpus->nr];
	int fd;

	*gpu = (struct gpu){
		.user_id = pair->user_gpu_id,
		.actual_id = pair->actual_gpu_id,
		.minor = pair->local_minor,
		.saved_minor = pair->saved_minor,
	};
	fd = drm_open_minor(gpu->minor);
	if (fd < 0) {
		pr_err("gpu %#x: cannot open renderD%u: %s", gpu->actual_id, gpu->minor, strerror(-fd));
		return fd;
	}
	gpu->kept = criu_keep_file(fd);
	if (gpu->kept < 0)
		return gpu->kept;
	gpus->nr++;
	pr_info("gpu %#x (renderD%u at dump) becomes gpu %#x (renderD%u)", gpu->user_id, gpu->saved_minor,
		gpu->actual_id, gpu->minor);
	return 0;
}

static int match_gpus(struct gpus *gpus, const struct topology *saved, const struct topology *machine,
		      const struct settings *settings, struct match_map **ret)
{
	_cleanup_free_ struct match_report *report = calloc(1, sizeof(*report));
	bool candidates[TOPOLOGY_MAX_NODES] = { false };
	int err;

	if (!report)
		return -ENOMEM;
	err = find_candidates(machine, candidates, &gpus->nr_visible);
	if (err)
		return err;
	err = match_devices(saved, machine, candidates, settings, ret, report);
	if (err)
		match_report_log(report);
	else if (!(*ret)->nearest)
		pr_warn("the GPUs keep all rules, but the search for those nearest to the saved ones took too long "
			"(KFD_DEVICE_MAP fixes pairs)");
	return err;
}

static int choose_gpus(struct gpus *gpus, const struct topology *saved, const struct topology *machine,
		       const struct settings *settings)
{
	struct match_map *map = NULL;
	int err = match_gpus(gpus, saved, machine, settings, &map);

	if (err)
		return err;
	gpus->list = calloc(map->n + 1, sizeof(*gpus->list));
	if (!gpus->list)
		err = -ENOMEM;
	for (unsigned int i = 0; !err && i < map->n; i++)
		err = take_gpu(gpus, &map->pairs[i]);
	match_map_free(map);
	return err;
}

static int check_same(const struct gpus *gpus, const struct topology *saved)
{
	size_t nr = 0;

	for (unsigned int i = 0; i < saved->n_nodes; i++)
		if (topology_is_gpu(saved->nodes[i]) && gpus_by_user_id(gpus, topology_gpu_id(saved->nodes[i])))
			nr++;
	if (nr == gpus->nr && nr == topology_count_gpus(saved))
		return 0;
	pr_err("the images of the task's files name different GPUs");
	return -EBADMSG;
}

int gpus_setup(struct gpus *gpus, const struct topology *saved, const struct topology *machine, int machine_error,
	       const struct settings *settings)
{
	if (gpus->nr)
		return check_same(gpus, saved);
	/* Of other errors there is a line already. */
	if (machine_error == -ENOENT)
		pr_err("%s is not there: this machine has no GPU to restore on", SYSFS_TOPOLOGY_ROOT);
	return machine_error ? machine_error : choose_gpus(gpus, saved, machine, settings);
}

void gpus_done(struct gpus *gpus)
{
	free(gpus->list);
	*gpus = (struct gpus){ 0 };
}

uint32_t *gpus_minors(const struct gpus *gpus)
{
	uint32_t *minors = calloc(gpus->nr + 1, sizeof(*minors));

	for (size_t i = 0; minors && i < gpus->nr; i++)
		minors[i] = gpus->list[i].minor;
	return minors;
}

int gpus_open_devices(const struct gpus *gpus, struct kfd_state *state)
{
	state->devices = calloc(gpus->nr + 1, sizeof(*state->devices));
	if (!state->devices)
		return -ENOMEM;
	for (size_t i = 0; i < gpus->nr; i++) {
		int fd = criu_kept_file(gpus->list[i].kept);

		if (fd < 0) {
			gpus_close_devices(state);
			return fd;
		}
		state->devices[state->nr_devices++] = (struct kfd_criu_device_bucket){
			.user_gpu_id = gpus->list[i].user_id,
			.actual_gpu_id = gpus->list[i].actual_id,
			.drm_fd = (uint32_t)fd,
		};
	}
	return 0;
}

void gpus_close_devices(struct kfd_state *state)
{
	for (size_t i = 0; i < state->nr_devices; i++) {
		close((int)state->devices[i].drm_fd);
		state->devices[i].drm_fd = KFD_NO_FD;
	}
}
