// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-image match: the plugin's own choice of GPUs, made without them. As in a restore, the processes choose one
 * after the other and follow what the first of them chose (checkpoint/gpus.c). Of this machine it is also asked how
 * much VRAM is free, who uses which GPU, and what its driver restores; a copy of a topology does not say that.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "host/host.h"
#include "kernel/kernel.h"
#include "match/match.h"
#include "tool/commands.h"
#include "tool/json.h"
#include "tool/summary.h"

#define MIB(bytes) ((bytes) >> 20)

/* What was chosen so far: a saved GPU, by its render minor at dump, is this local one. */
struct choice {
	uint32_t saved_minor, local_gpu_id;
};

struct run {
	struct images images;
	struct topology *machine;
	bool is_here; /* not a copy */
	struct driver_release driver;
	struct settings settings;
	struct gpu_usage usage[TOPOLOGY_MAX_NODES];
	struct choice choices[TOPOLOGY_MAX_NODES];
	size_t nr_choices;
	bool keeps_ids; /* some process shares, as in checkpoint/chosen.h */
	bool all_fit;
	struct json json;
	bool is_json;
};

/* What is to be placed: a process, or a render node that no process of the images has. */
struct guest {
	const struct image_file *file;
	const struct topology *saved;
	const struct kfd_image *kfd; /* NULL: a render node */
	char unusable[TOPOLOGY_MAX_NODES][160];
	struct match_map *map; /* NULL: it does not fit */
	struct match_report report;
	char driver_refuses[LIMITS_TEXT_MAX + 32];
	char sharing_refuses[192];
	bool accepting[MATCH_NR_CHECKS]; /* checks that would have to be off */
	bool is_accepted_then;
};

static const char *environment(const char *name, void *arg)
{
	(void)arg;
	return getenv(name);
}

/* ---- the choice ---- */

static enum setting setting_of(enum match_check check)
{
	for (unsigned int i = 0; i < SETTING_N_FLAGS; i++)
		if (!strcmp(setting_name(i), match_check_name(check)))
			return i;
	return SETTING_NONE;
}

static bool is_pinned(const struct settings *settings, const struct topology *saved, int node)
{
	for (unsigned int i = 0; i < settings->n_device_map; i++)
		if (topology_find_ref(saved, &settings->device_map[i].saved) == node)
			return true;
	return false;
}

/* What others have chosen holds for this one; what they chose for a GPU that it does not have is taken. */
static void follow_choices(const struct run *run, struct guest *guest, struct settings *settings)
{
	for (size_t i = 0; i < run->nr_choices; i++) {
		const struct choice *choice = &run->choices[i];
		int saved = topology_find_minor(guest->saved, choice->saved_minor);
		int local = topology_find_gpu(run->machine, choice->local_gpu_id);

		if (saved < 0) {
			snprintf(guest->unusable[local], sizeof(guest->unusable[local]),
				 "another process has it in the place of renderD%u", choice->saved_minor);
			continue;
		}
		if (is_pinned(&run->settings, guest->saved, saved) || settings->n_device_map == SETTINGS_DEVICE_MAP_MAX)
			continue;
		settings->device_map[settings->n_device_map++] = (struct device_map_entry){
			.saved = { DEVICE_REF_GPU_ID, topology_gpu_id(guest->saved->nodes[saved]) },
			.local = { DEVICE_REF_GPU_ID, choice->local_gpu_id },
		};
	}
}

static int match_once(const struct run *run, struct guest *guest, const struct settings *settings)
{
	struct match_options options = { .pairs = settings->device_map, .nr_pairs = settings->n_device_map };
	const char *unusable[TOPOLOGY_MAX_NODES];
	bool busy[TOPOLOGY_MAX_NODES];

	for (unsigned int i = 0; i < MATCH_NR_CHECKS; i++)
		options.relaxed[i] = !settings->flag[setting_of(i)];
	for (unsigned int i = 0; i < run->machine->nr_nodes; i++) {
		unusable[i] = guest->unusable[i][0] ? guest->unusable[i] : NULL;
		busy[i] = run->usage[i].has_queues;
	}
	options.unusable = unusable;
	options.busy = run->keeps_ids && settings->flag[SETTING_SHARING_CHECK] ? NULL : busy;
	return match_devices(guest->saved, run->machine, &options, &guest->map, &guest->report);
}

static uint64_t vram_needed(const struct kfd_image *kfd, uint32_t gpu_id)
{
	uint64_t needed = 0;

	for (size_t i = 0; kfd && i < kfd->state.nr_bos; i++)
		if (kfd->state.bos[i].gpu_id == gpu_id && bo_kind(&kfd->state.bos[i]) == BO_VRAM &&
		    kfd_state_owns(&kfd->state, i))
			needed += kfd->state.bos[i].size;
	return needed;
}

static bool drop_full(const struct run *run, struct guest *guest, const struct settings *settings)
{
	bool dropped = false;

	for (unsigned int i = 0; settings->flag[SETTING_VRAM_SIZE_CHECK] && i < guest->map->nr_pairs; i++) {
		const struct match_pair *pair = &guest->map->pairs[i];
		const struct gpu_usage *usage = &run->usage[pair->local];
		uint64_t needed = vram_needed(guest->kfd, pair->user_gpu_id);

		if (!usage->knows_vram || needed <= usage->vram_free)
			continue;
		snprintf(guest->unusable[pair->local], sizeof(guest->unusable[pair->local]),
			 "%" PRIu64 " MiB of its VRAM are free, and gpu %#x has %" PRIu64 " MiB in the image "
			 "(KFD_VRAM_SIZE_CHECK)",
			 MIB(usage->vram_free), pair->user_gpu_id, MIB(needed));
		dropped = true;
	}
	return dropped;
}

/* With the checks that @settings has. 0; -errno with guest->report. */
static int place(const struct run *run, struct guest *guest, const struct settings *from)
{
	_cleanup_free_ struct settings *settings = malloc(sizeof(*settings));
	int err;

	if (!settings)
		return -ENOMEM;
	*settings = *from;
	match_map_free(guest->map);
	guest->map = NULL;
	memset(guest->unusable, 0, sizeof(guest->unusable));
	follow_choices(run, guest, settings);
	err = match_once(run, guest, settings);
	while (!err && drop_full(run, guest, settings)) {
		match_map_free(guest->map);
		guest->map = NULL;
		err = match_once(run, guest, settings);
	}
	return err;
}

/* ---- what would help ---- */

/* Whether it fits with these checks off, too; keeps nothing of the attempt. */
static bool would_fit(const struct run *run, const struct guest *guest, const bool *off)
{
	_cleanup_free_ struct settings *settings = malloc(sizeof(*settings));
	_cleanup_free_ struct guest *attempt = malloc(sizeof(*attempt));
	bool fits;

	if (!settings || !attempt)
		return false;
	*settings = run->settings;
	*attempt = *guest;
	attempt->map = NULL;
	for (unsigned int i = 0; i < MATCH_NR_CHECKS; i++)
		settings->flag[setting_of(i)] &= !off[i];
	fits = !place(run, attempt, settings);
	match_map_free(attempt->map);
	return fits;
}

/* All checks off, then on again one by one as long as it fits: what remains is needed. */
static void find_accepting(const struct run *run, struct guest *guest)
{
	for (unsigned int i = 0; i < MATCH_NR_CHECKS; i++)
		guest->accepting[i] = run->settings.flag[setting_of(i)];
	guest->is_accepted_then = would_fit(run, guest, guest->accepting);
	for (unsigned int i = 0; guest->is_accepted_then && i < MATCH_NR_CHECKS; i++) {
		if (!guest->accepting[i])
			continue;
		guest->accepting[i] = false;
		guest->accepting[i] = !would_fit(run, guest, guest->accepting);
	}
}

/* ---- what the driver restores ---- */

static const struct topology_node *local_of(const struct run *run, const struct guest *guest, uint32_t gpu_id)
{
	for (unsigned int i = 0; i < guest->map->nr_pairs; i++)
		if (guest->map->pairs[i].user_gpu_id == gpu_id)
			return run->machine->nodes[guest->map->pairs[i].local];
	return NULL;
}

static void ask_driver(const struct run *run, struct guest *guest)
{
	struct kfd_state state = guest->kfd ? image_state(guest->kfd) : (struct kfd_state){ 0 };
	char why[LIMITS_TEXT_MAX];
	struct queue_record queue;
	struct records records;

	if (!guest->kfd || records_begin(&state, &records))
		return;
	while (!guest->driver_refuses[0] && records_next_queue(&records, &queue) > 0) {
		const struct topology_node *node = local_of(run, guest, queue.gpu_id);

		if (!node)
			continue;
		if (limits_of_queue(&queue, node, run->machine, &run->driver, why))
			snprintf(guest->driver_refuses, sizeof(guest->driver_refuses), "a queue of gpu %#x: %s",
				 queue.gpu_id, why);
	}
}

/* ---- what sharing wants ---- */

/* As checkpoint/restore.c has it. */
static void ask_sharing(const struct run *run, struct guest *guest)
{
	if (!guest->kfd || !kfd_image_keeps_ids(guest->kfd) || !run->settings.flag[SETTING_SHARING_CHECK])
		return;
	for (unsigned int i = 0; !guest->sharing_refuses[0] && i < guest->map->nr_pairs; i++) {
		const struct match_pair *pair = &guest->map->pairs[i];

		if (pair->user_gpu_id != pair->actual_gpu_id)
			snprintf(guest->sharing_refuses, sizeof(guest->sharing_refuses),
				 "it shares buffers, and its gpu %#x would be gpu %#x: the kernel confuses the two ids "
				 "(KFD_SHARING_CHECK=0 accepts it)",
				 pair->user_gpu_id, pair->actual_gpu_id);
	}
}

/* ---- what is said ---- */

static void write_pairs(struct json *json, const struct run *run, const struct guest *guest)
{
	json_array(json, "pairs");
	for (unsigned int i = 0; guest->map && i < guest->map->nr_pairs; i++) {
		const struct match_pair *pair = &guest->map->pairs[i];
		const struct topology_node *node = run->machine->nodes[pair->local];
		char pci[PCI_TEXT_MAX];

		pci_text(node, pci);
		json_object(json, NULL);
		json_number(json, "saved_gpu_id", pair->user_gpu_id);
		json_number(json, "saved_render_minor", pair->saved_minor);
		json_number(json, "gpu_id", pair->actual_gpu_id);
		json_number(json, "render_minor", pair->local_minor);
		json_string(json, "pci", pci[0] ? pci : NULL);
		json_number(json, "node", node->id);
		json_end(json);
	}
	json_end(json);
}

static void write_accepting(struct json *json, const struct guest *guest)
{
	char text[64];

	if ((!guest->map && !guest->is_accepted_then) || guest->driver_refuses[0]) {
		json_null(json, "accepting_settings");
		return;
	}
	json_array(json, "accepting_settings");
	if (guest->sharing_refuses[0])
		json_string(json, NULL, "KFD_SHARING_CHECK=0");
	for (unsigned int i = 0; !guest->map && i < MATCH_NR_CHECKS; i++) {
		if (!guest->accepting[i])
			continue;
		snprintf(text, sizeof(text), "%s=0", match_check_name(i));
		json_string(json, NULL, text);
	}
	json_end(json);
}

static void guest_json(struct run *run, const struct guest *guest, bool fits)
{
	struct json *json = &run->json;

	json_object(json, NULL);
	json_string(json, "file", guest->file->name);
	if (guest->kfd)
		json_number(json, "pid", guest->kfd->state.pid);
	else
		json_null(json, "pid");
	json_bool(json, "fits", fits);
	write_pairs(json, run, guest);
	json_array(json, "reasons");
	for (unsigned int i = 0; !guest->map && i < guest->report.nr_lines; i++)
		json_string(json, NULL, guest->report.line[i]);
	if (guest->driver_refuses[0])
		json_string(json, NULL, guest->driver_refuses);
	if (guest->sharing_refuses[0])
		json_string(json, NULL, guest->sharing_refuses);
	json_end(json);
	write_accepting(json, guest);
	json_end(json);
}

static void show_pairs(const struct run *run, const struct guest *guest)
{
	for (unsigned int i = 0; i < guest->map->nr_pairs; i++) {
		const struct match_pair *pair = &guest->map->pairs[i];
		const struct topology_node *node = run->machine->nodes[pair->local];
		char pci[PCI_TEXT_MAX];

		pci_text(node, pci);
		printf("  gpu %#x (renderD%u at dump) becomes gpu %#x (renderD%u%s%s)%s\n", pair->user_gpu_id,
		       pair->saved_minor, pair->actual_gpu_id, pair->local_minor, pci[0] ? ", " : "", pci,
		       run->usage[pair->local].has_queues ? ", which others use" : "");
	}
}

static void show_accepting(const struct guest *guest)
{
	if (!guest->is_accepted_then) {
		puts("  no setting accepts these GPUs");
		return;
	}
	fputs("  settings that accept it:", stdout);
	for (unsigned int i = 0; i < MATCH_NR_CHECKS; i++)
		if (guest->accepting[i])
			printf(" %s=0", match_check_name(i));
	putchar('\n');
}

/* Whose settings the answer depends on: those beside the images may be a stranger's. */
static void settings_text(const struct settings *settings)
{
	static const char *const sources[] = { "", SETTINGS_MACHINE_CONF, SETTINGS_IMAGE_CONF " beside the images",
					       "the environment" };

	for (unsigned int id = 0; id < SETTING_MAX; id++)
		if (settings->from[id] != SETTING_BY_DEFAULT)
			printf("setting %s%s, from %s\n", setting_name(id),
			       id >= SETTING_N_FLAGS ? "" : settings->flag[id] ? "=1" : "=0", sources[settings->from[id]]);
}

static void guest_text(const struct run *run, const struct guest *guest, bool fits)
{
	printf("%s%s%s", colour(BOLD), guest->file->name, colour(PLAIN));
	if (guest->kfd)
		printf(", process %u", guest->kfd->state.pid);
	printf(": %s%s%s\n", colour(fits ? GREEN : RED), fits ? "fits" : "does not fit", colour(PLAIN));
	if (guest->map)
		show_pairs(run, guest);
	for (unsigned int i = 0; !guest->map && i < guest->report.nr_lines; i++)
		printf("  %s\n", safe(guest->report.line[i]));
	if (guest->driver_refuses[0])
		printf("  %s\n", guest->driver_refuses);
	if (guest->sharing_refuses[0])
		printf("  %s\n", guest->sharing_refuses);
	if (!guest->map)
		show_accepting(guest);
}

/* ---- all ---- */

/* Those that come later follow, and have the rest of the memory. */
static void remember(struct run *run, const struct guest *guest)
{
	for (unsigned int i = 0; i < guest->map->nr_pairs; i++) {
		const struct match_pair *pair = &guest->map->pairs[i];
		struct gpu_usage *usage = &run->usage[pair->local];
		uint64_t needed = vram_needed(guest->kfd, pair->user_gpu_id);
		bool known = false;

		usage->vram_free -= needed < usage->vram_free ? needed : usage->vram_free;
		for (size_t c = 0; c < run->nr_choices; c++)
			known |= run->choices[c].saved_minor == pair->saved_minor;
		if (!known && run->nr_choices < ARRAY_SIZE(run->choices))
			run->choices[run->nr_choices++] = (struct choice){ pair->saved_minor, pair->actual_gpu_id };
	}
}

static int match_guest(struct run *run, const struct image_file *file, const struct topology *saved)
{
	_cleanup_free_ struct guest *guest = calloc(1, sizeof(*guest));
	bool fits;

	if (!guest)
		return complain("out of memory");
	guest->file = file;
	guest->saved = saved;
	guest->kfd = file->kfd;
	if (place(run, guest, &run->settings))
		find_accepting(run, guest);
	if (guest->map && run->is_here)
		ask_driver(run, guest);
	if (guest->map)
		ask_sharing(run, guest);
	fits = guest->map && !guest->driver_refuses[0] && !guest->sharing_refuses[0];
	run->all_fit &= fits;
	if (run->is_json)
		guest_json(run, guest, fits);
	else
		guest_text(run, guest, fits);
	if (guest->map)
		remember(run, guest);
	match_map_free(guest->map);
	return TOOL_GOOD;
}

/* A render node of a GPU that no process has is restored, too. */
static bool is_chosen(const struct run *run, const struct render_image *render)
{
	for (size_t i = 0; i < run->nr_choices; i++)
		if (run->choices[i].saved_minor == render->minor)
			return true;
	return false;
}

static int match_all(struct run *run)
{
	int status = TOOL_GOOD;

	for (size_t i = 0; i < run->images.nr && status == TOOL_GOOD; i++)
		if (image_is_process(&run->images.files[i]))
			status = match_guest(run, &run->images.files[i], run->images.files[i].kfd->nodes);
	for (size_t i = 0; i < run->images.nr && status == TOOL_GOOD; i++) {
		const struct render_image *render = run->images.files[i].render;

		if (render && render->nodes && run->all_fit && !is_chosen(run, render))
			status = match_guest(run, &run->images.files[i], render->nodes);
	}
	return status;
}

static int match_and_say(struct run *run, const struct arguments *arguments)
{
	int status;

	run->all_fit = true;
	if (run->is_json) {
		json_object(&run->json, NULL);
		json_number(&run->json, "format", 1);
		json_string(&run->json, "path", arguments->path);
		json_string(&run->json, "machine", arguments->machine);
		json_array(&run->json, "processes");
	} else {
		settings_text(&run->settings);
	}
	status = match_all(run);
	if (run->is_json) {
		json_end(&run->json);
		json_bool(&run->json, "fits", status == TOOL_GOOD && run->all_fit);
		json_end(&run->json);
	}
	return status == TOOL_GOOD && !run->all_fit ? TOOL_BAD : status;
}

/* ---- what it is made from ---- */

/* A stranger's copy of sysfs has neither links nor FIFOs. */
static int refuse_special(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)type;
	(void)where;
	if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode))
		return 0;
	complain("%s: is neither a file nor a directory, and sysfs has nothing else", path);
	return -1;
}

static int read_machine(const char *path, struct topology **ret)
{
	char inside[PATH_MAX];
	struct stat st;
	int err;

	if (path && stat(path, &st))
		return complain("%s: %s", path, strerror(errno));
	if (path && !S_ISDIR(st.st_mode))
		return complain("%s: is no directory; a copy of %s is one", path, SYSFS_TOPOLOGY_ROOT);
	/* The path itself may be a link. */
	snprintf(inside, sizeof(inside), "%s/.", path ? path : "");
	if (path && nftw(inside, refuse_special, 16, FTW_PHYS | FTW_MOUNT))
		return TOOL_FAIL;
	err = sysfs_read_topology(path ? path : SYSFS_TOPOLOGY_ROOT, ret);
	if (err == -ENOENT && path)
		complain("%s: there is no topology of a KFD in it", path);
	else if (err == -ENOENT)
		complain("%s is not there: this machine has no GPU to restore on (--machine asks about another)",
			 SYSFS_TOPOLOGY_ROOT);
	return err;
}

static int read_settings(struct run *run)
{
	_cleanup_close_ int conf = images_open_other(&run->images, OTHER_SETTINGS);
	bool is_archive = run->images.archive >= 0;

	/* What another machine's file says is not known. */
	return settings_load(&run->settings, run->is_here ? SETTINGS_MACHINE_CONF : NULL,
			     is_archive ? conf : run->images.dir, environment, NULL);
}

static int prepare(struct run *run, const struct arguments *arguments)
{
	_cleanup_close_ int sysfs = -1;
	int status;

	if (images_open(arguments->path, &run->images))
		return TOOL_FAIL;
	status = images_status(&run->images);
	for (size_t i = 0; status != TOOL_GOOD && i < run->images.nr; i++)
		if (run->images.files[i].err)
			complain("%s: %s", run->images.files[i].name, run->images.files[i].problem);
	if (status != TOOL_GOOD)
		return status;
	for (size_t i = 0; i < run->images.nr; i++)
		run->keeps_ids |= run->images.files[i].kfd && kfd_image_keeps_ids(run->images.files[i].kfd);
	run->is_here = !arguments->machine;
	if (read_settings(run) || read_machine(arguments->machine, &run->machine))
		return TOOL_FAIL;
	if (!run->is_here)
		return TOOL_GOOD;
	driver_ask_release(DRIVER_VERSION_FILE, &run->driver);
	sysfs = open("/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	usage_read(sysfs, run->machine, run->usage);
	return TOOL_GOOD;
}

int command_match(const struct arguments *arguments)
{
	_cleanup_free_ struct run *run = calloc(1, sizeof(*run));
	int status;

	if (!run)
		return complain("out of memory");
	run->images = (struct images){ .dir = -1, .archive = -1, .others = { -1, -1 } };
	run->is_json = arguments->json;
	run->json.out = stdout;
	status = prepare(run, arguments);
	if (status == TOOL_GOOD)
		status = match_and_say(run, arguments);
	topology_free(run->machine);
	images_done(&run->images);
	return status;
}
