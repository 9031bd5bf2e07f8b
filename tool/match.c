// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-checkpoint match: the plugin's own choice of GPUs (match/choose.c), made without them. As in a restore, the
 * processes choose one after the other. Of this machine it is also asked how much VRAM is free, who uses which GPU, and
 * what its driver restores; a copy of a topology does not say that.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "checkpoint/checkpoint.h"
#include "kernel/kernel.h"
#include "match/match.h"
#include "tool/commands.h"
#include "tool/images.h"

struct run {
	struct images images;
	struct topology *machine;
	bool is_here; /* not a copy */
	struct driver_release driver;
	struct settings settings;
	struct gpu_usage usage[TOPOLOGY_MAX_NODES];
	struct match_candidates candidates; /* of the process whose turn it is */
	struct match_choices choices;
	const struct topology *largest; /* the GPUs of the process that has most */
	bool all_fit;
};

/* ---- what else a restore refuses ---- */

/* The first saved GPU whose product the machine does not have: names say more than ids. */
static void print_products(const struct run *run, const struct topology *saved)
{
	char wanted[PRODUCT_TEXT_MAX], found[PRODUCT_TEXT_MAX];

	for (unsigned int i = 0; i < saved->nr_nodes; i++) {
		bool is_there = false, has_gpus = false;

		for (unsigned int j = 0; j < run->machine->nr_nodes && !is_there; j++) {
			if (!topology_is_gpu(run->machine->nodes[j]))
				continue;
			has_gpus = true;
			is_there = !strcmp(product_text(saved->nodes[i], wanted), product_text(run->machine->nodes[j], found));
		}
		if (topology_is_gpu(saved->nodes[i]) && has_gpus && !is_there) {
			print_text("  the image needs %s; this machine has %s\n", wanted, found);
			return;
		}
	}
}

/* ---- all ---- */

/* As a dump asks it, of the GPUs that the saved ones would become; and whether shared buffers keep their gpu ids. */
static int check_map(const struct run *run, const struct gpu_process *kfd, const struct match_map *map)
{
	struct kfd_criu_device_bucket devices[TOPOLOGY_MAX_NODES] = { 0 };
	struct kfd_state state = kfd->state;
	int err = 0;

	for (unsigned int i = 0; i < map->nr_pairs; i++) {
		devices[i].user_gpu_id = map->pairs[i].user_gpu_id;
		devices[i].actual_gpu_id = map->pairs[i].actual_gpu_id;
	}
	state.devices = devices;
	state.nr_devices = map->nr_pairs;
	if (run->is_here && !kfd->no_kfd)
		err = limits_check_queues((pid_t)state.pid, &state, run->machine, &run->driver,
					  !run->settings.flag[SETTING_RESTORABLE_CHECK]);
	for (unsigned int i = 0; !err && i < map->nr_pairs; i++)
		err = precheck_ids(&run->settings, kfd, map->pairs[i].user_gpu_id, map->pairs[i].actual_gpu_id);
	return err;
}

/* The record of a process that comes back suspended; NULL: it does not. */
static const struct suspend_image *record_of(const struct run *run, const struct image_file *file)
{
	const struct image_file *record =
		file->kfd && file->kfd->is_suspended ? images_find(&run->images, IMAGE_SUSPENDED, (int)file->kfd->state.pid, 0) : NULL;

	return record ? record->suspended : NULL;
}

/* What a resume allocates there, which the restore itself does without. */
static void print_later(const struct gpu_usage *usage, uint64_t bytes)
{
	print_bytes("resume_bytes", bytes ? "; its resume needs " : NULL, bytes);
	if (usage->vram_known)
		print_bytes("free_bytes", usage->vram_free < bytes ? " of VRAM, free are " : NULL, usage->vram_free);
	else
		print_null("free_bytes");
	print_text("\n");
}

/* A process that does not fit may have chosen all the same. */
static void match_file(struct run *run, const struct image_file *file, const struct topology *saved)
{
	struct gpu_work later[TOPOLOGY_MAX_NODES] = { 0 };
	struct match_options options = precheck_options(&run->settings);
	struct match_process process = {
		.saved = saved, .largest = run->largest, .machine = run->machine, .options = &options,
		.choices = &run->choices,
	};
	struct match_map *map = NULL;
	int err;

	options.keeps_ids = run->choices.keeps_ids && run->settings.flag[SETTING_SHARING_CHECK];
	kfd_state_work(file->kfd ? &file->kfd->state : NULL, saved, process.work);
	memset(&run->candidates, 0, sizeof(run->candidates));
	memcpy(run->candidates.usage, run->usage, sizeof(run->usage));
	if (record_of(run, file))
		suspend_image_add_work(record_of(run, file), saved, later);
	err = match_choose(&process, &run->candidates, &map);
	if (!err && file->kfd)
		err = check_map(run, file->kfd, map);
	run->all_fit &= !err;
	print_object(NULL);
	print_string("file", "", file->name);
	if (file->kfd)
		print_number("pid", ", process ", file->kfd->state.pid);
	else
		print_null("pid");
	print_bool("fits", !err);
	print_text(": %s\n", err ? "does not fit" : "fits");
	print_array("pairs");
	for (unsigned int i = 0; map && i < map->nr_pairs; i++) {
		const struct match_pair *pair = &map->pairs[i];
		char pci[NODE_TEXT_MAX];

		print_object(NULL);
		print_id("saved_gpu_id", "  gpu ", pair->user_gpu_id);
		print_number("saved_render_minor", " (renderD", pair->saved_minor);
		print_id("gpu_id", " at dump) becomes gpu ", pair->actual_gpu_id);
		print_number("render_minor", " (renderD", pair->local_minor);
		print_string("pci", ", ", pci_text(run->machine->nodes[pair->local], pci));
		print_text(")%s", run->usage[pair->local].has_queues ? ", which others use" : "");
		print_later(&run->usage[pair->local], later[pair->saved].vram_later);
		print_end();
		/* Later processes follow, and have the rest of the memory. */
		match_remember(&run->choices, pair);
	}
	print_end();
	if (err)
		print_products(run, saved);
	print_string("reason", "  ", !err ? NULL : fail_text()[0] ? fail_text() : strerror(-err));
	print_text("%s", err ? "\n" : "");
	print_end();
	fail_clear();
	free(map);
}

static void match_all(struct run *run)
{
	struct gpu_work work[TOPOLOGY_MAX_NODES];

	/* What all need together, as a restore adds it up before the first one chooses. */
	for (size_t i = 0; i < run->images.nr; i++) {
		const struct gpu_process *kfd = run->images.files[i].kfd;

		if (!image_is_process(&run->images.files[i]))
			continue;
		kfd_state_work(&kfd->state, kfd->nodes, work);
		if (record_of(run, &run->images.files[i]))
			suspend_image_add_work(record_of(run, &run->images.files[i]), kfd->nodes, work);
		match_need(&run->choices, kfd->nodes, work, kfd_image_keeps_ids(kfd));
		match_note_pairs(&run->choices, kfd->nodes, run->settings.device_map, run->settings.n_device_map);
		if (!run->largest || topology_count_gpus(kfd->nodes) > topology_count_gpus(run->largest))
			run->largest = kfd->nodes;
	}
	for (size_t i = 0; i < run->images.nr; i++)
		if (image_is_process(&run->images.files[i]))
			match_file(run, &run->images.files[i], run->images.files[i].kfd->nodes);
	/* A render node of a GPU that no process has is restored, too. */
	for (size_t i = 0; i < run->images.nr && run->all_fit; i++) {
		const struct render_image *render = run->images.files[i].render;

		if (render && render->nodes && !match_choice_local(&run->choices, render->minor))
			match_file(run, &run->images.files[i], render->nodes);
	}
}

bool print_settings(const struct settings *settings)
{
	static const char *const sources[] = { "default", SETTINGS_MACHINE_CONF,
					       SETTINGS_IMAGE_CONF " beside the images", "this shell's environment" };
	bool is_any = false;

	for (unsigned int id = 0; id < SETTING_MAX; id++) {
		bool is_off = id < SETTING_N_FLAGS && !settings->flag[id];
		const char *value = id >= SETTING_N_FLAGS ? "" : settings->flag[id] ? "1, " : "0, ";

		if (settings->from[id] == SETTING_BY_DEFAULT)
			continue;
		is_any = true;
		print_point(is_off ? POINT_WARNING : POINT_OK, setting_name(id),
			    "This check is off: a restore that it would refuse may fail", "%sfrom %s", value,
			    sources[settings->from[id]]);
	}
	return is_any;
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
	return 1;
}

/* Images, settings, and this machine or the copy of another one's topology. */
static int read_inputs(struct run *run, const struct arguments *arguments)
{
	_cleanup_close_ int sysfs = -1;
	char inside[PATH_MAX];
	int status, conf, err;

	if (images_open(arguments->path, &run->images))
		return TOOL_FAIL;
	status = images_status(&run->images);
	for (size_t i = 0; status != TOOL_GOOD && i < run->images.nr; i++)
		if (run->images.files[i].err)
			complain("%s: %s", run->images.files[i].name, run->images.files[i].problem);
	if (status != TOOL_GOOD)
		return status;
	run->is_here = !arguments->machine;
	/* Settings as a restore takes them; what another machine's file says is not known. */
	conf = run->images.settings;
	if (conf < 0 && conf != -ENOENT)
		return complain(SETTINGS_IMAGE_CONF ": %s", strerror(-conf));
	if (settings_load(&run->settings, run->is_here ? SETTINGS_MACHINE_CONF : NULL, conf, options_or_environment))
		return TOOL_FAIL;
	if (!run->is_here) {
		/* The path itself may be a link. */
		snprintf(inside, sizeof(inside), "%s/.", arguments->machine);
		err = nftw(inside, refuse_special, 16, FTW_PHYS | FTW_MOUNT);
		if (err)
			return err < 0 ? complain("%s: %s", arguments->machine, strerror(errno)) : TOOL_FAIL;
		err = sysfs_read_topology(arguments->machine, &run->machine);
		if (err == -ENOENT)
			complain("%s: there is no topology of a KFD in it", arguments->machine);
		return err ? TOOL_FAIL : TOOL_GOOD;
	}
	err = sysfs_read_topology(SYSFS_TOPOLOGY_ROOT, &run->machine);
	if (err == -ENOENT)
		complain("%s is not there: this machine has no GPU to restore on (--machine asks about another)",
			 SYSFS_TOPOLOGY_ROOT);
	if (err)
		return TOOL_FAIL;
	driver_ask_release(DRIVER_VERSION_FILE, &run->driver);
	sysfs = open("/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	usage_read(sysfs, run->machine, run->usage);
	return TOOL_GOOD;
}

int command_match(const struct arguments *arguments)
{
	struct run run = { .all_fit = true };
	int status = read_inputs(&run, arguments);

	if (status == TOOL_GOOD) {
		print_string("path", NULL, arguments->path);
		print_string("machine", NULL, arguments->machine);
		print_array("settings");
		print_settings(&run.settings);
		print_end();
		print_array("processes");
		match_all(&run);
		print_end();
		status = run.all_fit ? TOOL_GOOD : TOOL_BAD;
	}
	topology_free(run.machine);
	images_done(&run.images);
	return status;
}
