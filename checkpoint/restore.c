// SPDX-License-Identifier: GPL-2.0-only
/*
 * The restore. Files and mappings are restored by criu in the task itself, which is
 * where the kernel wants RESTORE; resuming is done by criu's main process.
 *
 * Device files that later steps need are kept in criu's fd store, so that no number of
 * the task's own fd table is taken.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>

#include "host/host.h"
#include "amdgpu_plugin_drm.h"
#include "image/image.h"
#include "kernel/kernel.h"
#include "match/match.h"
#include "pages/pages.h"
#include "checkpoint/restore.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/vma.h"


/* A GPU of the process, here and at dump. */
struct gpu {
	uint32_t user_id;     /* by which the process knows it */
	uint32_t actual_id;   /* on this machine */
	uint32_t minor;	      /* render minor on this machine */
	uint32_t saved_minor; /* at dump */
	int kept;	      /* the render-node file that carries the KFD's address space */
	bool handed_out;      /* as a file of the task */
};

struct restore {
	const struct settings *settings;
	struct topology *machine;
	int machine_error; /* why there is no topology */
	struct gpu *gpus;
	size_t nr_gpus;
	size_t nr_visible; /* GPUs of this machine that the kernel would show the task */
	struct kfd_image *image;
	struct kfd_state state;
	int kept_kfd;  /* the file of /dev/kfd */
	int contents;  /* the worker's token while it copies */
	int resume_fd; /* /dev/kfd in criu's main process */
	struct worker *worker;
	bool *any; /* shared by all tasks: one of them has GPU state */
};

/* The kernel is asked here, where nothing is lost by what the asking leaves behind. */
static int ask_kernel(void)
{
	_cleanup_close_ int fd = kfd_open();

	if (fd >= 0)
		kfd_ask_rules(fd);
	return fd < 0 ? fd : 0;
}

struct restore *restore_new(const struct settings *settings, bool certain)
{
	struct restore *restore = calloc(1, sizeof(*restore));

	if (!restore)
		return NULL;
	*restore = (struct restore){ .settings = settings, .kept_kfd = -1, .contents = -1, .resume_fd = -1 };
	restore->any = mmap(NULL, sizeof(*restore->any), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (restore->any == MAP_FAILED || (certain && ask_kernel())) {
		restore_free(restore);
		return NULL;
	}
	criu_restore_begins();
	/* Not an error yet: without an inventory, nobody knows whether there is a GPU process to restore. */
	restore->machine_error = sysfs_read_topology(SYSFS_TOPOLOGY_ROOT, &restore->machine);
	return restore;
}

int restore_prepare_worker(struct restore *restore)
{
	/* Streams come to each task, one file after the other. */
	if (restore->machine_error || criu_is_streaming() || !restore->settings->flag[SETTING_PARALLEL_RESTORE])
		return 0;
	restore->worker = worker_new(restore->settings, topology_count_gpus(restore->machine));
	return restore->worker ? 0 : -EIO;
}

void restore_start_worker(struct restore *restore)
{
	if (restore->worker)
		worker_start(restore->worker);
}

void restore_free(struct restore *restore)
{
	if (!restore)
		return;
	worker_free(restore->worker);
	topology_free(restore->machine);
	free(restore->gpus);
	kfd_image_free(restore->image);
	kfd_state_done(&restore->state);
	if (restore->resume_fd >= 0)
		close(restore->resume_fd);
	if (restore->any != MAP_FAILED)
		munmap(restore->any, sizeof(*restore->any));
	free(restore);
}

/* ---- the task's GPUs ---- */

static struct gpu *gpu_by_user_id(const struct restore *restore, uint32_t user_id)
{
	size_t i;

	for (i = 0; i < restore->nr_gpus; i++)
		if (restore->gpus[i].user_id == user_id)
			return &restore->gpus[i];
	return NULL;
}

static struct gpu *gpu_by_saved_minor(const struct restore *restore, uint32_t minor)
{
	size_t i;

	for (i = 0; i < restore->nr_gpus; i++)
		if (restore->gpus[i].saved_minor == minor)
			return &restore->gpus[i];
	return NULL;
}

/* GPUs whose render node can be opened in this task. Returns how many the kernel shows it. */
static unsigned int find_candidates(const struct topology *machine, bool *candidates)
{
	_cleanup_close_ int sysfs = mount_private("sysfs", NULL);
	unsigned int i, visible = 0;

	for (i = 0; i < machine->n_nodes; i++) {
		const struct topology_node *node = machine->nodes[i];
		uint32_t minor = topology_get(node, TOPOLOGY_DRM_RENDER_MINOR);
		_cleanup_close_ int fd = -1;

		if (!topology_is_gpu(node))
			continue;
		fd = drm_open_minor(minor);
		candidates[i] = fd >= 0;
		visible += !sysfs_node_is_hidden(sysfs, node->id, fd == -EPERM);
		if (fd < 0)
			pr_info("gpu %#x is no candidate: renderD%u: %s", topology_gpu_id(node), minor, strerror(-fd));
	}
	return visible;
}

static int add_gpu(struct restore *restore, const struct match_pair *pair)
{
	struct gpu *gpu = &restore->gpus[restore->nr_gpus];
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
	restore->nr_gpus++;
	pr_info("gpu %#x (renderD%u at dump) becomes gpu %#x (renderD%u)", gpu->user_id, gpu->saved_minor,
		gpu->actual_id, gpu->minor);
	return 0;
}

static int match_gpus(struct restore *restore, const struct topology *saved, struct match_map **ret)
{
	_cleanup_free_ struct match_report *report = calloc(1, sizeof(*report));
	bool candidates[TOPOLOGY_MAX_NODES] = { false };
	int err = report ? restore->machine_error : -ENOMEM;

	/* Of other errors there is a line already. */
	if (err == -ENOENT)
		pr_err("%s is not there: this machine has no GPU to restore on", SYSFS_TOPOLOGY_ROOT);
	if (err)
		return err;
	restore->nr_visible = find_candidates(restore->machine, candidates);
	err = match_devices(saved, restore->machine, candidates, restore->settings, ret, report);
	if (err)
		match_report_log(report);
	else if (!(*ret)->nearest)
		pr_warn("the GPUs keep all rules, but the search for those nearest to the saved ones took too long "
			"(KFD_DEVICE_MAP fixes pairs)");
	return err;
}

static int choose_gpus(struct restore *restore, const struct topology *saved)
{
	struct match_map *map = NULL;
	unsigned int i;
	int err = match_gpus(restore, saved, &map);

	if (err)
		return err;
	restore->gpus = calloc(map->n + 1, sizeof(*restore->gpus));
	if (!restore->gpus)
		err = -ENOMEM;
	for (i = 0; !err && i < map->n; i++)
		err = add_gpu(restore, &map->pairs[i]);
	match_map_free(map);
	return err;
}

/* Once for a task, by whichever of its files comes first; the others have to agree. */
static int setup_gpus(struct restore *restore, const struct topology *saved)
{
	unsigned int i, gpus = 0;

	if (!restore->nr_gpus)
		return choose_gpus(restore, saved);
	for (i = 0; i < saved->n_nodes; i++) {
		if (!topology_is_gpu(saved->nodes[i]))
			continue;
		gpus++;
		if (!gpu_by_user_id(restore, topology_gpu_id(saved->nodes[i])))
			break;
	}
	if (i == saved->n_nodes && gpus == restore->nr_gpus)
		return 0;
	pr_err("the images of the task's files name different GPUs");
	return -EBADMSG;
}

/* ---- /dev/kfd ---- */

static void fill_bos(struct kfd_state *state, const struct kfd_image *image)
{
	size_t i;

	for (i = 0; i < image->nr_bos; i++)
		state->bos[i] = (struct kfd_criu_bo_bucket){
			.addr = image->bos[i].addr,
			.size = image->bos[i].size,
			.offset = image->bos[i].offset,
			.gpu_id = image->bos[i].gpu_id,
			.alloc_flags = image->bos[i].alloc_flags,
			.dmabuf_fd = KFD_NO_FD,
		};
}

/* Render-node fds for the kernel are open only as long as the ioctl runs. */
static int open_devices(struct restore *restore, struct kfd_state *state)
{
	size_t i;
	int fd;

	for (i = 0; i < restore->nr_gpus; i++) {
		fd = criu_kept_file(restore->gpus[i].kept);
		if (fd < 0)
			return fd;
		state->devices[i].user_gpu_id = restore->gpus[i].user_id;
		state->devices[i].actual_gpu_id = restore->gpus[i].actual_id;
		state->devices[i].drm_fd = (uint32_t)fd;
		state->nr_devices++;
	}
	return 0;
}

static void close_devices(struct kfd_state *state)
{
	size_t i;

	for (i = 0; i < state->nr_devices; i++)
		close((int)state->devices[i].drm_fd);
}

static int restore_state(struct restore *restore, int kfd)
{
	struct kfd_image *image = restore->image;
	struct kfd_state *state = &restore->state;
	int err;

	state->pid = image->pid;
	state->nr_objects = image->nr_objects;
	state->devices = calloc(restore->nr_gpus, sizeof(*state->devices));
	state->bos = calloc(image->nr_bos + 1, sizeof(*state->bos));
	if (!state->devices || !state->bos)
		return -ENOMEM;
	state->nr_bos = image->nr_bos;
	fill_bos(state, image);
	state->priv_size = image->priv_size;
	state->priv_data = steal_ptr(image->priv_data);
	err = open_devices(restore, state);
	*restore->any = true;
	if (!err)
		err = kfd_restore(kfd, state);
	close_devices(state);
	return err;
}

static void close_dmabufs(struct kfd_state *state)
{
	size_t i;

	for (i = 0; i < state->nr_bos; i++)
		if (state->bos[i].dmabuf_fd != KFD_NO_FD)
			close((int)state->bos[i].dmabuf_fd);
	for (i = 0; i < state->nr_bos; i++)
		state->bos[i].dmabuf_fd = KFD_NO_FD;
}

static uint32_t *render_minors(const struct restore *restore)
{
	uint32_t *minors = calloc(restore->nr_gpus + 1, sizeof(*minors));
	size_t i;

	for (i = 0; minors && i < restore->nr_gpus; i++)
		minors[i] = restore->gpus[i].minor;
	return minors;
}

static int open_kfd(const struct restore *restore)
{
	_cleanup_free_ uint32_t *minors = render_minors(restore);

	return minors ? kfd_open_for(minors, restore->nr_gpus, restore->nr_visible) : -ENOMEM;
}

static int restore_contents(struct restore *restore, int id)
{
	_cleanup_free_ uint32_t *minors = render_minors(restore);
	int err;

	err = minors ? pages_restore(id, &restore->state, minors, restore->settings, restore->image->bos,
				     restore->worker, &restore->contents) :
		       -ENOMEM;
	close_dmabufs(&restore->state);
	return err;
}

/* Once, before the first device mapping: what comes later in a task cannot fail for our reasons. */
static int settle_contents(struct restore *restore)
{
	int token = restore->contents;

	restore->contents = -1;
	return token < 0 ? 0 : worker_wait(token);
}

static bool has_mappings(const struct restore *restore)
{
	return restore->image->has_vmas && restore->image->nr_vmas;
}

static int restore_kfd(struct restore *restore, int id)
{
	_cleanup_close_ int kfd = -1;
	int err, kept;

	err = setup_gpus(restore, restore->image->nodes);
	if (err)
		return err;
	kfd = open_kfd(restore);
	if (kfd < 0)
		return kfd;
	hsakmt_restore("/", &restore->image->hsakmt);
	err = restore_state(restore, kfd);
	if (!err)
		err = restore_contents(restore, id);
	if (!err && !has_mappings(restore))
		err = settle_contents(restore);
	if (err)
		return err;
	kept = dup(kfd);
	kept = kept < 0 ? -errno : criu_keep_file(kept);
	if (kept < 0)
		return kept;
	restore->kept_kfd = kept;
	pr_info("GPU state of pid %u restored: %zu GPUs, %u BOs, %u objects", restore->state.pid, restore->nr_gpus,
		restore->state.nr_bos, restore->state.nr_objects);
	return steal_fd(&kfd);
}

/* It may come before the file that has the state, and decides what the kernel shows the process then. */
static int restore_another_kfd(struct restore *restore, const struct kfd_image *image)
{
	int err = topology_count_gpus(image->nodes) ? setup_gpus(restore, image->nodes) : 0;

	if (err)
		return err;
	return restore->nr_gpus && restore->kept_kfd < 0 ? open_kfd(restore) : kfd_open();
}

/* ---- render nodes ---- */

static int restore_render_node(struct restore *restore, const struct render_image *image)
{
	struct gpu *gpu;
	int err;

	if (image->nodes) {
		err = setup_gpus(restore, image->nodes);
		if (err)
			return err;
	}
	gpu = gpu_by_user_id(restore, image->gpu_id);
	if (!gpu) {
		pr_err("a render node of gpu %#x comes before the task's /dev/kfd or without it", image->gpu_id);
		return -EBADMSG;
	}
	/* Where it is not known, the first file is the one that the KFD works with; another one is a file of its own. */
	if (image->another_file || gpu->handed_out)
		return drm_open_minor(gpu->minor);
	gpu->handed_out = true;
	return criu_kept_file(gpu->kept);
}

int restore_file(struct restore *restore, int id)
{
	struct render_image *render = NULL;
	struct kfd_image *image = NULL;
	int r = kfd_image_read(id, &image);

	if (!r && image->another_file) {
		r = restore_another_kfd(restore, image);
		kfd_image_free(image);
		return r;
	}
	if (!r && restore->image) {
		kfd_image_free(image);
		pr_err("the task has two images of the state of its GPUs");
		return -EBADMSG;
	}
	if (!r) {
		restore->image = image;
		return restore_kfd(restore, id);
	}
	if (r != -ENOENT)
		return r;
	r = render_image_read(id, &render);
	if (r == -ENOENT)
		return dmabuf_image_refuse(id);
	if (!r)
		r = restore_render_node(restore, render);
	render_image_free(render);
	return r;
}

/* ---- mappings ---- */

/* Doorbells are what every GPU has. */
static bool can_map_doorbells(const struct restore *restore, uint32_t gpu_id)
{
	uint64_t offset = kfd_mmap_with_gpu_id((uint64_t)KFD_MMAP_TYPE_DOORBELL << KFD_MMAP_TYPE_SHIFT, gpu_id);
	uint64_t length = VMA_DOORBELL_PAGES * (uint64_t)sysconf(_SC_PAGESIZE);
	_cleanup_close_ int fd = criu_kept_file(restore->kept_kfd);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (p == MAP_FAILED)
		return false;
	munmap(p, length);
	return true;
}

/* By the first GPU whose ids tell: one that has an id of this machine by which the process knows none. */
static bool maps_by_user_id(const struct restore *restore)
{
	size_t i;

	for (i = 0; i < restore->nr_gpus; i++) {
		uint32_t actual_id = restore->gpus[i].actual_id;

		if (!gpu_by_user_id(restore, actual_id))
			return !can_map_doorbells(restore, actual_id);
	}
	return kfd_maps_by_user_id();
}

/*
 * Doorbells and MMIO. Up to Linux 7.2 the offset names the actual GPU, since 7.3 the
 * user's; asked of the kernel, where the ids differ in a way that it can tell.
 */
static int map_kfd(const struct restore *restore, const struct device_vma *vma, uint64_t *ret_offset)
{
	const struct gpu *gpu;

	*ret_offset = vma->offset;
	if (!vma_names_gpu(vma))
		return 0;
	gpu = gpu_by_user_id(restore, vma->gpu_id ? vma->gpu_id : kfd_mmap_gpu_id(vma->offset));
	if (!gpu)
		return -ENODEV;
	*ret_offset = kfd_mmap_with_gpu_id(vma->offset, maps_by_user_id(restore) ? gpu->user_id : gpu->actual_id);
	return 0;
}

static int map_render(const struct restore *restore, const struct gpu *gpu, const struct device_vma *vma,
		      uint64_t *ret_offset)
{
	const struct kfd_criu_bo_bucket *bo = vma_bo(vma, &restore->state, gpu->user_id);

	if (!bo)
		return -ENODEV;
	*ret_offset = vma_restored_offset(vma, bo);
	return 0;
}

/* The saved description of a mapping; images of other writers have none, and tell ours by the GPUs that they name. */
static bool find_vma(const struct restore *restore, const char *path, uint64_t start, uint64_t offset,
		     struct device_vma *ret)
{
	size_t i;

	for (i = 0; restore->image && i < restore->image->nr_vmas; i++)
		if (restore->image->vmas[i].start == start) {
			*ret = restore->image->vmas[i];
			return true;
		}
	if (restore->image && restore->image->has_vmas)
		return false;
	return vma_from_path(path, start, offset, ret) && (!ret->minor || gpu_by_saved_minor(restore, ret->minor));
}

int restore_vma(struct restore *restore, const char *path, uint64_t start, uint64_t offset, uint64_t *ret_offset,
		int *ret_fd)
{
	const struct gpu *gpu = NULL;
	struct device_vma vma;
	int fd, err;

	if (!find_vma(restore, path, start, offset, &vma))
		return -ENOENT;
	err = settle_contents(restore);
	if (err)
		return err;
	err = -ENODEV;
	if (vma.minor)
		gpu = gpu_by_saved_minor(restore, vma.minor);
	if (restore->kept_kfd >= 0 && !vma.minor)
		err = map_kfd(restore, &vma, ret_offset);
	else if (restore->kept_kfd >= 0 && gpu)
		err = map_render(restore, gpu, &vma, ret_offset);
	if (err) {
		pr_err("mapping at %#" PRIx64 " of %s: no restored GPU or buffer has file offset %#" PRIx64, start, path,
		       vma.offset);
		return err;
	}
	fd = criu_vma_file(gpu ? gpu->kept : restore->kept_kfd);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

/* ---- resume ---- */

int restore_resume(struct restore *restore, pid_t pid)
{
	int err;

	/* Without an inventory this is asked for processes that have nothing to do with GPUs. */
	if (!*restore->any)
		return -ESRCH;
	err = restore->worker ? worker_wait_all(restore->worker) : 0;
	if (err)
		return err;
	if (restore->resume_fd < 0)
		restore->resume_fd = kfd_open();
	return restore->resume_fd < 0 ? restore->resume_fd : kfd_resume(restore->resume_fd, pid);
}
