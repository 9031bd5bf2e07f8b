// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chooses the GPUs of a restored task and opens their render nodes, whichever file of the
 * task comes first. The opened files are kept in criu's fd store, so that they take no number
 * of the task's own fd table.
 *
 * A saved GPU becomes the same local one in all tasks, and no two become the same one: the first task chooses. Idle
 * GPUs come first, since a GPU has few SDMA queues and a restored process needs those that it had. Where a task shares
 * buffers, only GPUs of the same ids would do, idle or not.
 */
#include <inttypes.h>
#include <stdarg.h>

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

/* ---- the GPUs of this machine ---- */

#define ROOM_ATTEMPTS 30
#define ROOM_USEC     100000

/* By index of machine->nodes[]. */
struct candidates {
	char reason[TOPOLOGY_MAX_NODES][160]; /* why a GPU may not be used; "": it may */
	struct gpu_usage usage[TOPOLOGY_MAX_NODES];
	int sysfs;
	unsigned int nr_attempts; /* to find room */
};

static void drop(struct candidates *candidates, const struct topology *machine, unsigned int node, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void drop(struct candidates *candidates, const struct topology *machine, unsigned int node, const char *fmt, ...)
{
	char *reason = candidates->reason[node];
	va_list args;

	va_start(args, fmt);
	vsnprintf(reason, sizeof(candidates->reason[node]), fmt, args);
	va_end(args);
	pr_info("gpu %#x is no candidate: %s", topology_gpu_id(machine->nodes[node]), reason);
}

/* The name that a GPU has in all processes of a dump. */
static uint32_t saved_name(const struct topology_node *node)
{
	return (uint32_t)topology_get(node, TOPOLOGY_DRM_RENDER_MINOR);
}

static bool has_gpu(const struct topology *saved, uint32_t minor)
{
	return topology_find_minor(saved, minor) >= 0;
}

/* An error that is about the caller, not about the GPU. */
static bool is_shortage(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE || err == -EINTR;
}

/* Whether other tasks have chosen for all GPUs of this one. */
static bool is_settled(const struct gpus_request *request)
{
	for (unsigned int i = 0; i < request->saved->nr_nodes; i++) {
		const struct topology_node *node = request->saved->nodes[i];

		if (topology_is_gpu(node) && !chosen_local(request->chosen, saved_name(node)))
			return false;
	}
	return true;
}

/* The task may not be able to use what others have chosen for it. */
static int check_chosen(const struct gpus_request *request, const struct candidates *candidates)
{
	for (unsigned int i = 0; i < request->machine->nr_nodes; i++) {
		uint32_t id = topology_gpu_id(request->machine->nodes[i]);
		int saved = candidates->reason[i][0] ? chosen_saved(request->chosen, id) : -ENOENT;

		if (saved < 0 || !has_gpu(request->saved, (uint32_t)saved))
			continue;
		pr_err("gpu %#x has become that of renderD%d in another process of the restore, and pid %d may not use it: %s",
		       id, saved, getpid(), candidates->reason[i]);
		return -ENODEV;
	}
	return 0;
}

/* Whether its node can be opened in this task, and no other saved GPU has become it. 0, or -errno after an error line. */
static int look_at(const struct gpus_request *request, struct candidates *candidates, unsigned int i, size_t *visible)
{
	const struct topology_node *node = request->machine->nodes[i];
	uint32_t minor = topology_get(node, TOPOLOGY_DRM_RENDER_MINOR);
	_cleanup_close_ int fd = drm_open_minor(minor);
	int other = chosen_saved(request->chosen, topology_gpu_id(node));

	if (is_shortage(fd)) {
		pr_err("gpu %#x: cannot look whether renderD%u may be used: %s", topology_gpu_id(node), minor,
		       strerror(-fd));
		return fd;
	}
	*visible += !sysfs_node_is_hidden(candidates->sysfs, node->id, fd == -EPERM);
	if (fd < 0)
		drop(candidates, request->machine, i, "renderD%u: %s", minor, strerror(-fd));
	else if (other >= 0 && !has_gpu(request->saved, (uint32_t)other))
		drop(candidates, request->machine, i, "another process has it in the place of renderD%d", other);
	return 0;
}

/* And how many the kernel shows the task. The first task looks at all GPUs, those that follow it at their own ones. */
static int find_candidates(const struct gpus_request *request, struct candidates *candidates, size_t *ret_visible)
{
	const struct topology *machine = request->machine;
	bool settled = candidates->sysfs >= 0 && is_settled(request);
	int err = 0;

	*ret_visible = 0;
	if (!settled)
		usage_read(candidates->sysfs, machine, candidates->usage);
	for (unsigned int i = 0; !err && i < machine->nr_nodes; i++) {
		const struct topology_node *node = machine->nodes[i];
		int saved = chosen_saved(request->chosen, topology_gpu_id(node));

		if (!topology_is_gpu(node))
			continue;
		if (settled && (saved < 0 || !has_gpu(request->saved, (uint32_t)saved))) {
			*ret_visible += !sysfs_node_is_hidden(candidates->sysfs, node->id, false);
			continue;
		}
		if (settled)
			usage_read_vram(candidates->sysfs, node, &candidates->usage[i]);
		err = look_at(request, candidates, i, ret_visible);
	}
	return err ? err : check_chosen(request, candidates);
}

/* ---- memory ---- */

#define MIB(bytes) ((bytes) >> 20)

uint64_t gpus_vram_needed(const struct kfd_state *state, uint32_t user_id)
{
	uint64_t needed = 0;

	for (size_t i = 0; state && i < state->nr_bos; i++)
		if (state->bos[i].gpu_id == user_id && state->bos[i].alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM &&
		    kfd_state_owns(state, i))
			needed += state->bos[i].size;
	return needed;
}

/* VRAM that was just given back is wiped before it counts as free: asks again for some time. */
static bool has_room(struct candidates *candidates, const struct topology *machine, unsigned int node, uint64_t needed)
{
	struct gpu_usage *usage = &candidates->usage[node];
	unsigned int before = candidates->nr_attempts;

	while (usage->knows_vram && needed > usage->vram_free && candidates->nr_attempts < ROOM_ATTEMPTS) {
		candidates->nr_attempts++;
		usleep(ROOM_USEC);
		usage_read_vram(candidates->sysfs, machine->nodes[node], usage);
	}
	if (candidates->nr_attempts > before)
		pr_info("gpu %#x: waited %u ms for room in its VRAM", topology_gpu_id(machine->nodes[node]),
			(candidates->nr_attempts - before) * (ROOM_USEC / 1000));
	return !usage->knows_vram || needed <= usage->vram_free;
}

/* For the tasks together where that is known: the others follow this one. */
static uint64_t needed_of(const struct gpus_request *request, const struct match_pair *pair)
{
	uint64_t own = gpus_vram_needed(request->state, pair->user_gpu_id);
	uint64_t all = chosen_needed(request->chosen, pair->saved_minor);

	return all > own ? all : own;
}

/*
 * Drops GPUs of the map that have no room for what would come to them, but for those that others have chosen. Returns
 * whether there were any.
 */
static bool drop_full(const struct gpus_request *request, const struct match_map *map, struct candidates *candidates)
{
	bool dropped = false;

	for (unsigned int i = 0; request->settings->flag[SETTING_VRAM_SIZE_CHECK] && i < map->nr_pairs; i++) {
		const struct match_pair *pair = &map->pairs[i];
		uint64_t needed = needed_of(request, pair);

		if (chosen_local(request->chosen, pair->saved_minor) ||
		    has_room(candidates, request->machine, pair->local, needed))
			continue;
		drop(candidates, request->machine, pair->local,
		     "%" PRIu64 " MiB of its VRAM are free, and gpu %#x has %" PRIu64 " MiB in the images "
		     "(KFD_VRAM_SIZE_CHECK)",
		     MIB(candidates->usage[pair->local].vram_free), pair->user_gpu_id, MIB(needed));
		dropped = true;
	}
	return dropped;
}

int gpus_check_room(const struct gpus *gpus, const struct kfd_state *state, const struct settings *settings)
{
	for (size_t i = 0; settings->flag[SETTING_VRAM_SIZE_CHECK] && i < gpus->nr; i++) {
		const struct gpu *gpu = &gpus->list[i];
		uint64_t needed = gpus_vram_needed(state, gpu->user_id);

		if (!gpu->knows_vram || needed <= gpu->vram_free)
			continue;
		pr_err("gpu %#x: %" PRIu64 " MiB of its VRAM are free, and gpu %#x has %" PRIu64 " MiB in the image: "
		       "end what else uses it, or choose another GPU by KFD_DEVICE_MAP (KFD_VRAM_SIZE_CHECK=0 tries it "
		       "all the same)",
		       gpu->actual_id, MIB(gpu->vram_free), gpu->user_id, MIB(needed));
		return -ENOSPC;
	}
	return 0;
}

/* ---- the choice ---- */

static bool is_pinned(const struct settings *settings, const struct topology *saved, int node)
{
	for (unsigned int i = 0; i < settings->n_device_map; i++)
		if (topology_find_ref(saved, &settings->device_map[i].saved) == node)
			return true;
	return false;
}

/* Adds what other tasks have chosen for GPUs of this task to the pairs that the user names. */
static void pin_chosen(const struct gpus_request *request, struct settings *settings)
{
	for (unsigned int i = 0; i < request->saved->nr_nodes; i++) {
		const struct topology_node *node = request->saved->nodes[i];
		uint32_t local = topology_is_gpu(node) ? chosen_local(request->chosen, saved_name(node)) : 0;

		if (!local || is_pinned(request->settings, request->saved, (int)i) ||
		    settings->n_device_map == SETTINGS_DEVICE_MAP_MAX)
			continue;
		settings->device_map[settings->n_device_map++] = (struct device_map_entry){
			.saved = { DEVICE_REF_GPU_ID, topology_gpu_id(node) },
			.local = { DEVICE_REF_GPU_ID, local },
		};
	}
}

struct match_options gpus_match_options(const struct settings *settings)
{
	static const enum setting checks[MATCH_NR_CHECKS] = {
		[MATCH_CHECK_FW_VERSION] = SETTING_FW_VER_CHECK,
		[MATCH_CHECK_SDMA_FW_VERSION] = SETTING_SDMA_FW_VER_CHECK,
		[MATCH_CHECK_CACHES_COUNT] = SETTING_CACHES_COUNT_CHECK,
		[MATCH_CHECK_NUM_GWS] = SETTING_NUM_GWS_CHECK,
		[MATCH_CHECK_VRAM_SIZE] = SETTING_VRAM_SIZE_CHECK,
		[MATCH_CHECK_CAPABILITY] = SETTING_CAPABILITY_CHECK,
		[MATCH_CHECK_NUMA] = SETTING_NUMA_CHECK,
		[MATCH_CHECK_TOPOLOGY] = SETTING_TOPOLOGY_CHECK,
	};
	struct match_options options = { .pairs = settings->device_map, .nr_pairs = settings->n_device_map };

	for (unsigned int i = 0; i < MATCH_NR_CHECKS; i++)
		options.relaxed[i] = !settings->flag[checks[i]];
	return options;
}

static int match_once(const struct gpus_request *request, const struct candidates *candidates,
		      const struct settings *settings, struct match_map **ret, struct match_report *report)
{
	bool keeps_ids = chosen_keeps_ids(request->chosen) && settings->flag[SETTING_SHARING_CHECK];
	struct match_options options = gpus_match_options(settings);
	const char *unusable[TOPOLOGY_MAX_NODES];
	bool busy[TOPOLOGY_MAX_NODES];

	for (unsigned int i = 0; i < request->machine->nr_nodes; i++) {
		unusable[i] = candidates->reason[i][0] ? candidates->reason[i] : NULL;
		busy[i] = candidates->usage[i].has_queues;
	}
	options.unusable = unusable;
	options.busy = keeps_ids ? NULL : busy;
	return match_devices(request->saved, request->machine, &options, ret, report);
}

/* Matches again without the GPUs that turn out to be full. */
static int match_with_room(const struct gpus_request *request, struct candidates *candidates,
			   const struct settings *settings, struct match_map **ret)
{
	_cleanup_free_ struct match_report *report = calloc(1, sizeof(*report));
	int err = report ? match_once(request, candidates, settings, ret, report) : -ENOMEM;

	while (!err && drop_full(request, *ret, candidates)) {
		match_map_free(*ret);
		*ret = NULL;
		memset(report, 0, sizeof(*report));
		err = match_once(request, candidates, settings, ret, report);
	}
	if (err && report)
		match_report_log(report);
	return err;
}

/* The task itself can do without: its files are open. */
static void make_node(const struct mounted *mounted, const struct gpu *gpu)
{
	int err = nodes_make(mounted, gpu->minor, gpu->saved_minor);

	if (err)
		pr_warn("there is no node of renderD%u in the container's /dev/dri: %s; programs that start there later do "
			"not find the GPU", gpu->minor, strerror(-err));
}

static int keep_node(struct gpu *gpu)
{
	int err, fd = drm_open_minor(gpu->minor);

	if (fd < 0) {
		pr_err("gpu %#x: cannot open renderD%u: %s", gpu->actual_id, gpu->minor, strerror(-fd));
		return fd;
	}
	err = drm_wait_until_clear(fd);
	if (err) {
		pr_err("gpu %#x: the new address space of renderD%u is not ready: %s", gpu->actual_id, gpu->minor,
		       strerror(-err));
		close(fd);
		return err;
	}
	gpu->kept = criu_keep_file(fd);
	return gpu->kept < 0 ? gpu->kept : 0;
}

static int take_gpu(struct gpus *gpus, const struct gpus_request *request, const struct match_pair *pair,
		    const struct gpu_usage *usage)
{
	struct gpu *gpu = &gpus->list[gpus->nr];
	int err;

	*gpu = (struct gpu){
		.user_id = pair->user_gpu_id,
		.actual_id = pair->actual_gpu_id,
		.minor = pair->local_minor,
		.saved_minor = pair->saved_minor,
		.knows_vram = usage->knows_vram,
		.vram_free = usage->vram_free,
	};
	make_node(request->mounted, gpu);
	err = keep_node(gpu);
	if (err)
		return err;
	gpus->nr++;
	pr_info("gpu %#x (renderD%u at dump) becomes gpu %#x (renderD%u)", gpu->user_id, gpu->saved_minor,
		gpu->actual_id, gpu->minor);
	return 0;
}

static void warn_of_other_ids(const struct gpus *gpus)
{
	for (size_t i = 0; i < gpus->nr; i++)
		if (gpus->list[i].user_id != gpus->list[i].actual_id) {
			pr_warn("pid %d: gpu %#x is gpu %#x here: when the program exports or imports buffers (IPC, "
				"dma-buf), the kernel confuses the two ids; such programs need GPUs with their old ids",
				getpid(), gpus->list[i].user_id, gpus->list[i].actual_id);
			return;
		}
}

static int take_gpus(struct gpus *gpus, const struct gpus_request *request, const struct candidates *candidates,
		     const struct match_map *map)
{
	int err = 0;

	gpus->list = calloc(map->nr_pairs + 1, sizeof(*gpus->list));
	if (!gpus->list)
		return -ENOMEM;
	for (unsigned int i = 0; !err && i < map->nr_pairs; i++) {
		const struct match_pair *pair = &map->pairs[i];

		err = take_gpu(gpus, request, pair, &candidates->usage[pair->local]);
		if (!err)
			err = chosen_add(request->chosen, pair->saved_minor, pair->actual_gpu_id);
	}
	if (!err && gpus->nr)
		chosen_ask_lazy(request->chosen, criu_restores_lazily, gpus->list[0].kept);
	if (!err)
		warn_of_other_ids(gpus);
	return err;
}

static int choose_gpus(struct gpus *gpus, const struct gpus_request *request)
{
	_cleanup_free_ struct candidates *candidates = calloc(1, sizeof(*candidates));
	_cleanup_free_ struct settings *settings = malloc(sizeof(*settings));
	struct match_map *map = NULL;
	_cleanup_close_ int sysfs = mount_private("sysfs", NULL);
	int err;

	if (!candidates || !settings)
		return -ENOMEM;
	*settings = *request->settings;
	candidates->sysfs = sysfs;
	chosen_lock(request->chosen);
	pin_chosen(request, settings);
	err = find_candidates(request, candidates, &gpus->nr_visible);
	if (!err)
		err = match_with_room(request, candidates, settings, &map);
	if (!err)
		err = take_gpus(gpus, request, candidates, map);
	chosen_unlock(request->chosen);
	match_map_free(map);
	return err;
}

static int check_same(const struct gpus *gpus, const struct topology *saved)
{
	size_t nr = 0;

	for (unsigned int i = 0; i < saved->nr_nodes; i++)
		if (topology_is_gpu(saved->nodes[i]) && gpus_by_user_id(gpus, topology_gpu_id(saved->nodes[i])))
			nr++;
	if (nr == gpus->nr && nr == topology_count_gpus(saved))
		return 0;
	pr_err("the images of the task's files name different GPUs");
	return -EBADMSG;
}

int gpus_setup(struct gpus *gpus, const struct gpus_request *request)
{
	if (gpus->nr)
		return check_same(gpus, request->saved);
	/* Of other errors there is a line already. */
	if (request->machine_error == -ENOENT)
		pr_err("%s is not there: this machine has no GPU to restore on", SYSFS_TOPOLOGY_ROOT);
	return request->machine_error ? request->machine_error : choose_gpus(gpus, request);
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
