// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chooses the GPUs of a restored task and opens their render nodes, whichever file of the task comes first.
 *
 * The first task chooses for all (match/choose.c). Idle GPUs come first where the job works, since a GPU has few SDMA
 * queues and a restored process needs those that it had. Where a task shares buffers, only GPUs of the same ids would
 * do, idle or not.
 */
#include <inttypes.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/internal.h"
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

/* What is asked while a GPU is looked for. */
struct gpu_search {
	const struct restore *restore;
	const struct topology *saved;
	const struct kfd_state *state;
	struct match_candidates candidates;
	int sysfs;
	int claims;		  /* -1: none */
	unsigned int nr_attempts; /* to find room */
};

/* Whether other tasks have chosen for all GPUs of this one. */
static bool all_are_chosen(const struct gpu_search *search)
{
	for (unsigned int i = 0; i < search->saved->nr_nodes; i++) {
		const struct topology_node *node = search->saved->nodes[i];

		if (topology_is_gpu(node) && !match_choice_local(&search->restore->shared->choices, topology_minor(node)))
			return false;
	}
	return true;
}

/*
 * Whether the node of each can be opened in this task, and how many the kernel shows it. The first task looks at all GPUs,
 * those that follow it at their own ones. 0, or -errno after fail().
 */
static int find_candidates(struct gpu_search *search, size_t *ret_visible)
{
	const struct topology *machine = search->restore->machine;
	bool chosen = search->sysfs >= 0 && all_are_chosen(search), is_claimed[TOPOLOGY_MAX_NODES];

	*ret_visible = 0;
	/* Claims first: what is no longer claimed has its queues. What tasks of this restore have chosen, they claim. */
	for (unsigned int i = 0; !chosen && i < machine->nr_nodes; i++)
		is_claimed[i] = topology_is_gpu(machine->nodes[i]) &&
				match_choice_saved(&search->restore->shared->choices, topology_gpu_id(machine->nodes[i])) < 0 &&
				claims_have(search->claims, topology_minor(machine->nodes[i]));
	if (!chosen)
		usage_read(search->sysfs, machine, search->candidates.usage);
	for (unsigned int i = 0; !chosen && i < machine->nr_nodes; i++)
		if (is_claimed[i]) {
			search->candidates.usage[i].has_queues = true;
			pr_info("gpu %#x: another restore has just chosen it\n", topology_gpu_id(machine->nodes[i]));
		}
	for (unsigned int i = 0; i < machine->nr_nodes; i++) {
		const struct topology_node *node = machine->nodes[i];
		/* The saved GPU of this task that has become this one for another task, by its minor; -ENOENT: there is none. */
		int own = topology_is_gpu(node) ? match_choice_saved(&search->restore->shared->choices, topology_gpu_id(node)) :
						  -ENOENT;
		char *reason = search->candidates.reason[i];
		_cleanup_close_ int fd = -1;

		if (!topology_is_gpu(node))
			continue;
		if (own >= 0 && topology_find_minor(search->saved, (uint32_t)own) < 0)
			own = -ENOENT;
		if (chosen && own < 0) {
			*ret_visible += !sysfs_node_is_hidden(search->sysfs, node->id, false);
			continue;
		}
		if (chosen)
			usage_read_vram(search->sysfs, node, &search->candidates.usage[i]);
		fd = drm_open_minor(topology_minor(node));
		/* An error that is about the caller, not about the GPU. */
		if (fd == -ENOMEM || fd == -EMFILE || fd == -ENFILE || fd == -EINTR)
			return fail(fd, "gpu %#x: cannot look whether renderD%u may be used: %m", topology_gpu_id(node),
				    topology_minor(node));
		*ret_visible += !sysfs_node_is_hidden(search->sysfs, node->id, fd == -EPERM);
		if (fd >= 0)
			continue;
		snprintf(reason, sizeof(search->candidates.reason[i]), "renderD%u: %s", topology_minor(node), strerror(-fd));
		if (own >= 0)
			return fail(-ENODEV, "another process of the restore has chosen gpu %#x for saved renderD%d, but pid "
				    "%d may not use it: %s", topology_gpu_id(node), own, getpid(), reason);
	}
	return 0;
}

/* ---- memory ---- */

#define IN_MIB(bytes) ((bytes) >> 20)

/* VRAM that was just given back is wiped before it counts as free: asks again for some time. */
static void wait_for_free_room(void *arg, unsigned int node, uint64_t needed)
{
	struct gpu_search *search = arg;
	const struct topology_node *local = search->restore->machine->nodes[node];
	struct gpu_usage *usage = &search->candidates.usage[node];
	unsigned int before = search->nr_attempts;

	while (usage->vram_known && needed > usage->vram_free && search->nr_attempts < ROOM_ATTEMPTS) {
		search->nr_attempts++;
		usleep(ROOM_USEC);
		usage_read_vram(search->sysfs, local, usage);
	}
	if (search->nr_attempts > before)
		pr_info("gpu %#x: waited %u ms for room in its VRAM\n", topology_gpu_id(local),
			(search->nr_attempts - before) * (ROOM_USEC / 1000));
}

/* Of a GPU and those that share its device. */
int gpus_check_room(const struct gpus *gpus, const struct restore *restore, const struct kfd_state *state)
{
	const struct topology *machine = restore->machine;

	for (size_t i = 0; restore->settings->flag[SETTING_VRAM_SIZE_CHECK] && i < gpus->nr; i++) {
		const struct gpu *gpu = &gpus->list[i];
		int own = topology_find_gpu(machine, gpu->actual_id);
		uint64_t needed = 0;

		for (size_t j = 0; own >= 0 && j < gpus->nr; j++) {
			int node = topology_find_gpu(machine, gpus->list[j].actual_id);

			if (node >= 0 && topology_same_device(machine->nodes[own], machine->nodes[node]))
				needed += kfd_state_vram_needed(state, gpus->list[j].user_id);
		}
		if (!gpu->vram_known || needed <= gpu->vram_free)
			continue;
		return fail(-ENOSPC, "gpu %#x: %" PRIu64 " MiB of its VRAM are free, and gpu %#x has %" PRIu64 " MiB "
			    "in the image: end what else uses it, or choose another GPU by KFD_DEVICE_MAP "
			    "(KFD_VRAM_SIZE_CHECK=0 tries it anyway)", gpu->actual_id, IN_MIB(gpu->vram_free),
			    gpu->user_id, IN_MIB(needed));
	}
	return 0;
}

/* ---- the choice ---- */

static int choose_gpus(struct gpu_search *search, struct match_map **ret)
{
	const struct restore *restore = search->restore;
	struct match_options options = precheck_options(restore->settings);
	struct match_process process = {
		.saved = search->saved,
		.largest = restore->largest,
		.machine = restore->machine,
		.options = &options,
		.choices = &restore->shared->choices,
		.wait_for_room = wait_for_free_room,
		.arg = search,
	};
	int err;

	options.keeps_ids = restore->shared->choices.keeps_ids && restore->settings->flag[SETTING_SHARING_CHECK];
	kfd_state_work(search->state, search->saved, process.work);
	err = match_choose(&process, &search->candidates, ret);
	for (unsigned int i = 0; i < restore->machine->nr_nodes; i++)
		if (search->candidates.reason[i][0])
			pr_info("gpu %#x is no candidate: %s\n", topology_gpu_id(restore->machine->nodes[i]),
				search->candidates.reason[i]);
	return err;
}

static int take_gpu(struct gpus *gpus, const struct mounted *mounted, const struct match_pair *pair,
		    const struct gpu_usage *usage)
{
	struct gpu *gpu = &gpus->list[gpus->nr];
	int fd, err;

	*gpu = (struct gpu){
		.user_id = pair->user_gpu_id,
		.actual_id = pair->actual_gpu_id,
		.minor = pair->local_minor,
		.saved_minor = pair->saved_minor,
		.vram_known = usage->vram_known,
		.vram_free = usage->vram_free,
	};
	/* The task itself can do without: its files are open. */
	err = nodes_make(mounted, gpu->minor, gpu->saved_minor);
	if (err)
		pr_warn("there is no node of renderD%u in the container's /dev/dri: %s; programs that start there later do "
			"not find the GPU\n", gpu->minor, strerror(-err));
	fd = drm_open_minor(gpu->minor);
	if (fd < 0)
		return fail(fd, "gpu %#x: cannot open renderD%u: %m", gpu->actual_id, gpu->minor);
	err = drm_wait_until_clear(fd);
	if (err) {
		close(fd);
		return fail(err, "gpu %#x: the new address space of renderD%u is not ready: %m", gpu->actual_id,
			    gpu->minor);
	}
	gpu->store_id = criu_keep_file(fd);
	if (gpu->store_id < 0)
		return gpu->store_id;
	gpus->nr++;
	pr_info("gpu %#x (renderD%u at dump) becomes gpu %#x (renderD%u)\n", gpu->user_id, gpu->saved_minor,
		gpu->actual_id, gpu->minor);
	return 0;
}

static int take_gpus(struct gpus *gpus, const struct gpu_search *search, const struct match_map *map)
{
	struct shared *shared = search->restore->shared;
	const struct gpu *other = NULL;

	gpus->list = calloc(map->nr_pairs + 1, sizeof(*gpus->list));
	if (!gpus->list)
		return -ENOMEM;
	for (unsigned int i = 0; i < map->nr_pairs; i++) {
		const struct match_pair *pair = &map->pairs[i];
		int err = take_gpu(gpus, search->restore->mounted, pair, &search->candidates.usage[pair->local]);

		if (err)
			return err;
	}
	/* Once for all tasks: each asking looks at every file that criu keeps. */
	pthread_mutex_lock(&shared->lock);
	if (gpus->nr && !shared->asked_lazy) {
		shared->is_lazy = criu_restores_lazily(gpus->list[0].store_id);
		shared->asked_lazy = true;
	}
	pthread_mutex_unlock(&shared->lock);
	for (size_t i = gpus->nr; i-- > 0;)
		if (gpus->list[i].user_id != gpus->list[i].actual_id)
			other = &gpus->list[i];
	if (other)
		pr_warn("pid %d: gpu %#x is gpu %#x here: when the program exports or imports buffers (IPC, "
			"dma-buf), the kernel confuses the two ids; such programs need GPUs with their old ids\n",
			getpid(), other->user_id, other->actual_id);
	return 0;
}

static int find_gpus(struct gpus *gpus, const struct restore *restore, const struct topology *saved,
		       const struct kfd_state *state)
{
	_cleanup_free_ struct gpu_search *search = calloc(1, sizeof(*search));
	_cleanup_close_ int sysfs = mount_private("sysfs"), claims = -1;
	_cleanup_free_ struct match_map *map = NULL;
	int err;

	if (!search)
		return -ENOMEM;
	*search = (struct gpu_search){ .restore = restore, .saved = saved, .state = state, .sysfs = sysfs };
	pthread_mutex_lock(&restore->shared->lock);
	claims = search->claims = all_are_chosen(search) ? -1 : turn_begin();
	err = find_candidates(search, &gpus->nr_visible);
	if (!err)
		err = choose_gpus(search, &map);
	/*
	 * For the tasks that follow, which need not wait until the GPUs are opened, and for other restores, until all tasks have
	 * their queues.
	 */
	for (unsigned int i = 0; !err && i < map->nr_pairs; i++) {
		err = match_remember(&restore->shared->choices, &map->pairs[i]);
		if (err)
			fail(err, "the images name more GPUs than a machine has (renderD%u and others)",
			     map->pairs[i].saved_minor);
		else
			claims_add(claims, map->pairs[i].local_minor);
	}
	if (!err && claims >= 0) {
		int store_id = criu_keep_files(&claims, 1);

		err = store_id < 0 ? store_id : 0;
	}
	turn_end(claims);
	cleanup_close(&claims);
	claims = -1;
	pthread_mutex_unlock(&restore->shared->lock);
	return err ? err : take_gpus(gpus, search, map);
}

int gpus_setup(struct gpus *gpus, const struct restore *restore, const struct topology *saved,
	       const struct kfd_state *state)
{
	size_t nr = 0;

	for (unsigned int i = 0; i < saved->nr_nodes; i++)
		nr += topology_is_gpu(saved->nodes[i]) && gpus_by_user_id(gpus, topology_gpu_id(saved->nodes[i]));
	if (gpus->nr && (nr != gpus->nr || nr != topology_count_gpus(saved)))
		return fail(-EBADMSG, "the images of the task's files name different GPUs");
	if (gpus->nr)
		return 0;
	/* The other errors were logged at the start: once more would hide the cause. */
	if (restore->machine_error == -ENOENT)
		return fail(-ENOENT, "%s is not there: this machine has no GPU to restore on", SYSFS_TOPOLOGY_ROOT);
	return restore->machine_error ? restore->machine_error : find_gpus(gpus, restore, saved, state);
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
		int fd = criu_kept_file(gpus->list[i].store_id);

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
