// SPDX-License-Identifier: GPL-2.0-only
/*
 * The restore. criu restores files and mappings in the task itself, which is where the
 * kernel wants RESTORE; its main process resumes the queues.
 *
 * Device files that later hooks need are kept in criu's fd store, so that no number of the
 * task's own fd table is taken. Each device mapping has a file id of its own in criu's
 * images, so criu takes and closes the fd that UPDATE_VMA_MAP hands it for each of them.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/mman.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "checkpoint/early.h"
#include "checkpoint/gpus.h"
#include "checkpoint/leftovers.h"
#include "checkpoint/restore.h"
#include "checkpoint/vma.h"
#include "image/image.h"
#include "kernel/kernel.h"
#include "pages/pages.h"
#include "share/share.h"

/* More than the kernel gives address spaces on GPUs: 16 bits for all processes of the machine. */
#define MAX_RESTORED 65536
#define MAX_RANGES   (1u << 20)
#define MAX_KEPT     (1u << 20)

/* The tasks that have GPU state, shared by all of them and criu's main process. */
struct restored {
	atomic_uint nr, nr_ranges, nr_kept;
	struct restored_task {
		pid_t pid; /* in its own pid namespace, the same one for all */
		bool has_kfd;
		unsigned int first_range, nr_ranges;
	} tasks[MAX_RESTORED];
	struct svm_range ranges[MAX_RANGES];
	int kept[MAX_KEPT]; /* files of devices, by criu's numbers */
};

struct restore {
	const struct settings *settings;
	struct topology *machine;
	int machine_error; /* why there is no topology */
	struct kfd_rules rules;
	struct driver_release driver;
	struct criu_traits traits;
	struct gpus gpus;
	struct chosen *chosen; /* shared by all tasks */
	struct leftovers *leftovers;
	struct mounted *mounted;
	struct kfd_image *image; /* its state is that of the task */
	int early_id;		 /* its number, where it was restored before its file; -1 */
	bool looked_early;	 /* for such an image */
	struct vma_bos bos;	 /* of the image */
	int kept_kfd;  /* the file of /dev/kfd */
	int contents;  /* the worker's token while it copies */
	int resume_fd; /* /dev/kfd in criu's main process */
	struct worker *worker;
	struct restored *restored;
	struct share_table *buffers; /* of all tasks */
	bool let_go;		     /* in criu's main process: all tasks have theirs, and criu nothing */
	struct share_task share;
	struct share_gpu *share_gpus;
	uint32_t nr_files; /* of the task, restored so far */
};

/* The kernel is asked here, where what the question leaves behind does no harm. */
static int ask_kernel(bool certain, struct kfd_rules *ret)
{
	_cleanup_close_ int fd = certain ? kfd_open() : -1;

	*ret = kfd_ask_rules(fd);
	return certain && fd < 0 ? fd : 0;
}

struct restore *restore_new(const struct settings *settings, bool certain)
{
	struct restore *restore = calloc(1, sizeof(*restore));

	if (!restore)
		return NULL;
	early_wait(certain);
	*restore = (struct restore){ .settings = settings, .kept_kfd = -1, .contents = -1, .resume_fd = -1, .early_id = -1 };
	restore->restored = mmap(NULL, sizeof(*restore->restored), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	restore->chosen = chosen_new();
	restore->leftovers = leftovers_new();
	restore->mounted = mounted_read();
	restore->buffers = share_table_new();
	restore->share.table = restore->buffers;
	if (!restore->buffers || restore->restored == MAP_FAILED || !restore->chosen || !restore->leftovers ||
	    ask_kernel(certain, &restore->rules)) {
		restore_free(restore);
		return NULL;
	}
	driver_ask_release(DRIVER_VERSION_FILE, &restore->driver);
	/* Not an error yet: without an inventory there may be no GPU process to restore. */
	restore->machine_error = sysfs_read_topology(SYSFS_TOPOLOGY_ROOT, &restore->machine);
	fail_log();
	if (!restore->machine_error && early_check(restore->machine, settings, restore->chosen, certain)) {
		restore_free(restore);
		return NULL;
	}
	if (!restore->machine_error)
		restore->traits = criu_ask_traits();
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
	gpus_done(&restore->gpus);
	chosen_free(restore->chosen);
	leftovers_free(restore->leftovers);
	mounted_free(restore->mounted);
	share_task_done(&restore->share);
	share_table_free(restore->buffers);
	free(restore->share_gpus);
	vma_bos_done(&restore->bos);
	kfd_image_free(restore->image);
	if (restore->resume_fd >= 0)
		close(restore->resume_fd);
	if (restore->restored != MAP_FAILED)
		munmap(restore->restored, sizeof(*restore->restored));
	free(restore);
}

/* ---- files that criu keeps ---- */

/* More than there is room for stay open as long as criu runs. Returns @token, which may be an error. */
static int note_kept(struct restored *restored, int token)
{
	unsigned int at = token < 0 ? MAX_KEPT : atomic_fetch_add(&restored->nr_kept, 1);

	if (at < MAX_KEPT)
		restored->kept[at] = token;
	return token;
}

static int keep_copy(struct restored *restored, int fd)
{
	int copy = dup(fd);

	return copy < 0 ? -errno : note_kept(restored, criu_keep_file(copy));
}

/* What a task frees, and a task that ends, would stay as long as criu waits for the job. */
static int let_go(struct restore *restore)
{
	const struct restored *restored = restore->restored;
	unsigned int nr = atomic_load(&restored->nr_kept);
	int err = share_table_check(restore->buffers);

	if (!err)
		err = share_table_let_go(restore->buffers);
	for (unsigned int i = 0; !err && i < nr && i < MAX_KEPT; i++)
		err = criu_let_go(restored->kept[i]);
	restore->let_go = !err;
	return err;
}

/* ---- /dev/kfd ---- */

/* @state: of the task; NULL when this file does not have it. */
static int setup_gpus(struct restore *restore, const struct topology *saved, const struct kfd_state *state)
{
	const struct gpus_request request = {
		.saved = saved,
		.machine = restore->machine,
		.machine_error = restore->machine_error,
		.state = state,
		.settings = restore->settings,
		.chosen = restore->chosen,
		.mounted = restore->mounted,
	};
	int err = settings_check(restore->settings);
	size_t nr = restore->gpus.nr;

	if (!err)
		err = gpus_setup(&restore->gpus, &request);
	for (; nr < restore->gpus.nr; nr++)
		note_kept(restore->restored, restore->gpus.list[nr].kept);
	return err;
}

/* How many ranges of SVM there are, and where they begin in the list; more than it has room for are left out. */
static unsigned int note_ranges(struct restored *restored, const struct kfd_state *state, unsigned int *ret_first)
{
	struct records records;
	struct svm_range range;
	unsigned int nr = 0, at = 0;

	if (records_begin(state, &records))
		return 0;
	while (records_next_svm(&records, &range) == 1)
		nr++;
	*ret_first = atomic_fetch_add(&restored->nr_ranges, nr);
	if (*ret_first > MAX_RANGES || nr > MAX_RANGES - *ret_first || records_begin(state, &records))
		return 0;
	while (at < nr && records_next_svm(&records, &range) == 1)
		restored->ranges[*ret_first + at++] = range;
	return at;
}

/* Before the state is put in: so a task that is not noted surely has none. */
static int note_restored(struct restored *restored, bool has_kfd, const struct kfd_state *state)
{
	unsigned int at = atomic_fetch_add(&restored->nr, 1);
	struct restored_task task = { .pid = getpid(), .has_kfd = has_kfd };

	if (at >= MAX_RESTORED) {
		pr_err("more than %d processes with AMD GPUs cannot be restored", MAX_RESTORED);
		return -E2BIG;
	}
	task.nr_ranges = has_kfd ? note_ranges(restored, state, &task.first_range) : 0;
	restored->tasks[at] = task;
	return 0;
}

/* For what another plugin saved, or this one when told to save it all the same. */
static int complete_stacks(const struct restore *restore, struct kfd_state *state)
{
	unsigned int nr_lost;
	int err = stacks_add(state, restore->image->nodes, &restore->driver, &nr_lost);

	if (err || !nr_lost)
		return err;
	if (restore->settings->flag[SETTING_RESTORABLE_CHECK]) {
		pr_err("pid %u: %u queues were stopped in kernels whose control stacks are not in the image: these kernels are "
		       "lost (KFD_RESTORABLE_CHECK=0 restores the rest)", state->pid, nr_lost);
		return -EBADMSG;
	}
	pr_warn("pid %u: the kernels in which %u queues were stopped are lost", state->pid, nr_lost);
	return 0;
}

/* The records of queues become what the local driver takes. */
static int prepare_queues(const struct restore *restore, struct kfd_state *state)
{
	int err = limits_check_harm(state, restore->machine, &restore->driver);

	if (!err)
		err = complete_stacks(restore, state);
	if (err)
		return err;
	fold_queues(state, restore->machine);
	return standin_find(state, restore->machine, &restore->driver);
}

/* Render-node fds for the kernel are open only as long as the ioctl runs. @kfd: -1 for a process without. */
static int restore_state(struct restore *restore, int kfd)
{
	struct kfd_state *state = &restore->image->state;
	int err = gpus_open_devices(&restore->gpus, state);

	if (err)
		return err;
	if (kfd >= 0)
		err = prepare_queues(restore, state);
	if (!err)
		err = note_restored(restore->restored, kfd >= 0, state);
	if (!err)
		err = restore->image->nr_sharers ? share_make(&restore->share, kfd, state) : standin_restore(kfd, state);
	gpus_close_devices(state);
	return err;
}

/* ---- shared buffers ---- */

/* The kernel would take one id for the other when the program exports its next buffer. */
static int check_ids(const struct restore *restore)
{
	bool keeps_ids = kfd_image_keeps_ids(restore->image) && restore->settings->flag[SETTING_SHARING_CHECK];

	for (size_t i = 0; keeps_ids && i < restore->gpus.nr; i++) {
		const struct gpu *gpu = &restore->gpus.list[i];

		if (gpu->user_id == gpu->actual_id)
			continue;
		pr_err("pid %u shares buffers, and its gpu %#x would be gpu %#x: the kernel confuses the two ids when the "
		       "program exports or imports buffers; choose the GPU of the same id by KFD_DEVICE_MAP "
		       "(KFD_SHARING_CHECK=0 restores it all the same)", restore->image->state.pid, gpu->user_id,
		       gpu->actual_id);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int prepare_sharing(struct restore *restore)
{
	size_t nr = restore->gpus.nr;
	int err = check_ids(restore);

	if (err || !restore->image->nr_sharers)
		return err;
	restore->share_gpus = calloc(nr + 1, sizeof(*restore->share_gpus));
	if (!restore->share_gpus)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		restore->share_gpus[i] = (struct share_gpu){
			.user_id = restore->gpus.list[i].user_id,
			.minor = restore->gpus.list[i].minor,
			.kept = restore->gpus.list[i].kept,
		};
	restore->share.gpus = restore->share_gpus;
	restore->share.nr_gpus = nr;
	restore->share.vmas = restore->image->vmas;
	restore->share.nr_vmas = restore->image->nr_vmas;
	restore->share.nr_sharers = restore->image->nr_sharers;
	return 0;
}

/* Once, when all files of the task are there. */
static int attach(struct restore *restore)
{
	_cleanup_close_ int kfd = -1;

	if (!restore->image || !restore->image->nr_sharers || restore->share.attached)
		return 0;
	if (!restore->image->render_only) {
		kfd = criu_kept_file(restore->kept_kfd);
		if (kfd < 0)
			return kfd;
	}
	return share_attach(&restore->share, kfd, &restore->image->state);
}

static int note_file(struct restore *restore)
{
	restore->nr_files++;
	return restore->image && restore->nr_files == restore->image->nr_files ? attach(restore) : 0;
}

/* What a file of a render node has to get. @is_kfds: it is gpu->kept. */
static int note_objects(struct restore *restore, const struct gpu *gpu, struct render_image *image, int fd, bool is_kfds)
{
	const struct render_objects *objects = &image->objects;
	int kept = gpu->kept;

	if (!objects->nr_handles && !objects->nr_syncobjs)
		return 0;
	if (!is_kfds)
		kept = keep_copy(restore->restored, fd);
	return kept < 0 ? kept : share_add_file(&restore->share, kept, gpu->minor, &image->objects);
}

static int open_kfd(const struct restore *restore)
{
	_cleanup_free_ uint32_t *minors = gpus_minors(&restore->gpus);

	return minors ? kfd_open_for(minors, restore->gpus.nr, restore->gpus.nr_visible,
				     leftovers_keeper(restore->leftovers)) :
			-ENOMEM;
}

static int restore_pages(struct restore *restore, int id, const uint32_t *minors)
{
	return pages_restore(id, &restore->image->state, minors, restore->settings, restore->worker,
			     &restore->contents);
}

/* Without a worker, libdrm has to find the render nodes by path in this task. */
static int restore_pages_here(struct restore *restore, int id, const uint32_t *minors)
{
	struct mount_home home;
	int left, err = mount_show_render_nodes(minors, restore->gpus.nr, &home);

	if (err)
		pr_err("cannot show the render nodes to libdrm in this task: %s", strerror(-err));
	else
		err = restore_pages(restore, id, minors);
	left = mount_go_home(&home);
	if (left && !err)
		pr_err("cannot go back to the task's mount namespace: %s", strerror(-left));
	return err ? err : left;
}

static int restore_contents(struct restore *restore, int id)
{
	_cleanup_free_ uint32_t *minors = gpus_minors(&restore->gpus);
	int err = -ENOMEM;

	if (minors)
		err = restore->worker ? restore_pages(restore, id, minors) : restore_pages_here(restore, id, minors);
	kfd_close_dmabufs(&restore->image->state);
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

/* To the driver, pages that are still to come are pages that are not there. */
static int refuse_lazy_pages(const struct restore *restore)
{
	if (!restore->gpus.nr || !chosen_is_lazy(restore->chosen))
		return 0;
	pr_err("a process with an AMD GPU cannot be restored with --lazy-pages: the driver does not wait for memory that "
	       "comes later; restore without it");
	return -EOPNOTSUPP;
}

/* All files of /dev/kfd of a task are alike. Takes @fd; returns one with the flags, or -errno after an error line. */
static int with_flags(int fd, int flags)
{
	int err;

	if ((flags & O_ACCMODE) != O_RDWR) {
		close(fd);
		return kfd_open_as(flags);
	}
	err = device_set_status(fd, flags);
	if (!err)
		return fd;
	pr_err("/dev/kfd cannot be opened with flags %#x: %s", flags, strerror(-err));
	close(fd);
	return err;
}

/* What comes before a state is put in. */
static int prepare_state(struct restore *restore)
{
	int err;

	restore->chosen->choices.keeps_ids |= kfd_image_keeps_ids(restore->image);
	err = setup_gpus(restore, restore->image->nodes, &restore->image->state);
	/* A render node that came before did not say how much is needed. */
	if (!err)
		err = gpus_check_room(&restore->gpus, &restore->image->state, restore->settings);
	if (!err)
		err = refuse_lazy_pages(restore);
	if (!err)
		err = prepare_sharing(restore);
	return err ? err : vma_bos_sort(&restore->image->state, &restore->bos);
}

static int restore_state_and_contents(struct restore *restore, int id, int kfd)
{
	int err = restore_state(restore, kfd);

	if (err)
		return err;
	share_table_copies(restore->buffers, true);
	err = restore_contents(restore, id);
	if (!err && !has_mappings(restore))
		err = settle_contents(restore);
	share_table_copies(restore->buffers, false);
	return err;
}

/* criu chooses the task that restores a file: of those that have it, the one with the lowest pid. */
static int check_process(const struct kfd_image *image)
{
	if (image->state.pid == (uint32_t)getpid())
		return 0;
	pr_err("the GPU state is of pid %u, and criu restores it in pid %d, which has the same file", image->state.pid, getpid());
	return -EBADMSG;
}

static int restore_kfd(struct restore *restore, int id)
{
	_cleanup_close_ int kfd = -1;
	int err = check_process(restore->image);

	if (!err)
		err = prepare_state(restore);
	if (err)
		return err;
	kfd = open_kfd(restore);
	if (kfd < 0)
		return kfd;
	hsakmt_restore("/", &restore->image->hsakmt);
	err = restore_state_and_contents(restore, id, kfd);
	if (err)
		return err;
	restore->kept_kfd = keep_copy(restore->restored, kfd);
	if (restore->kept_kfd < 0)
		return restore->kept_kfd;
	pr_info("GPU state of pid %u restored: %zu GPUs, %u BOs, %u objects", restore->image->state.pid,
		restore->gpus.nr, restore->image->state.nr_bos, restore->image->state.nr_objects);
	return with_flags(steal_fd(&kfd), restore->image->flags);
}

/* It may come before the file that has the state, and then decides what the kernel shows the process. */
static int restore_another_kfd(struct restore *restore, const struct kfd_image *image)
{
	int fd, err = topology_count_gpus(image->nodes) ? setup_gpus(restore, image->nodes, NULL) : 0;

	if (err)
		return err;
	fd = restore->gpus.nr && restore->kept_kfd < 0 ? open_kfd(restore) : kfd_open();
	return fd < 0 ? fd : with_flags(fd, image->flags);
}

/* -ENOENT means that the file or mapping is not ours, which is decided when there is no image of it. */
static int of_ours(int err)
{
	return err == -ENOENT ? -EIO : err;
}

/* ---- render nodes ---- */

static int restore_render_node(struct restore *restore, struct render_image *image)
{
	struct gpu *gpu;
	bool is_kfds;
	int fd, err;

	if (image->nodes) {
		err = setup_gpus(restore, image->nodes, NULL);
		if (err)
			return err;
	}
	gpu = gpus_by_user_id(&restore->gpus, image->gpu_id);
	if (!gpu) {
		pr_err("a render node of gpu %#x comes before the task's /dev/kfd or without it", image->gpu_id);
		return -EBADMSG;
	}
	/* Where it is not known, the first file is the one that the KFD works with; another one is a file of its own. */
	is_kfds = !image->another_file && !gpu->handed_out;
	fd = is_kfds ? criu_kept_file(gpu->kept) : drm_open_minor_as(gpu->minor, image->flags);
	gpu->handed_out = gpu->handed_out || is_kfds;
	if (fd < 0)
		return fd;
	err = device_set_status(fd, image->flags);
	if (!err) {
		err = note_objects(restore, gpu, image, fd, is_kfds);
		if (err)
			close(fd);
		return err ? err : fd;
	}
	pr_err("renderD%u cannot be opened with flags %#x: %s", gpu->minor, image->flags, strerror(-err));
	close(fd);
	return err;
}

/* With the first of its files: what they hold comes when all are there. */
static int restore_render_only(struct restore *restore, int id)
{
	int err = prepare_state(restore);

	if (!err)
		err = restore_state_and_contents(restore, id, -1);
	if (!err)
		pr_info("GPU state of pid %u restored: %zu GPUs, %u buffers of render nodes", restore->image->state.pid,
			restore->gpus.nr, restore->image->state.nr_bos);
	return err;
}

static int restore_render_file(struct restore *restore, int id)
{
	struct render_image *render = NULL;
	int r = render_image_read(id, &render);

	if (!r)
		r = of_ours(restore_render_node(restore, render));
	render_image_free(render);
	return r;
}

/* Of the task; the file itself comes later. */
static int restore_early(struct restore *restore, int id, struct kfd_image *image)
{
	int fd;

	restore->image = image;
	restore->early_id = id;
	if (image->render_only)
		return restore_render_only(restore, id);
	fd = restore_kfd(restore, id);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

/*
 * A dma-buf may have a lower number than the file that brings the state of its task: others wait for that task's buffers
 * while it would wait for theirs, or for its own.
 */
static int restore_state_before(struct restore *restore)
{
	int err = 0, id = restore->image || restore->looked_early ? -1 : kfd_image_next(-1);

	restore->looked_early = true;
	for (; !err && !restore->image && id >= 0; id = kfd_image_next(id)) {
		struct kfd_image *image = NULL;

		err = kfd_image_read(id, &image);
		if (!err && !image->another_file && image->state.pid == (uint32_t)getpid())
			err = restore_early(restore, id, image);
		else
			kfd_image_free(image);
	}
	return err;
}

static int restore_dmabuf(struct restore *restore, int id)
{
	struct dmabuf_image image;
	int err = dmabuf_image_read(id, &image);

	if (!err)
		err = of_ours(restore_state_before(restore));
	return err ? err : of_ours(share_open_dmabuf(restore->buffers, &image));
}

/* That which brought the state of a process without /dev/kfd. */
static int restore_own_render_file(struct restore *restore, int id)
{
	int r = restore_render_file(restore, id);

	if (r != -ENOENT)
		return r;
	pr_err("image amdgpu-renderD-%d.img is missing: it is of a file of pid %u", id, restore->image->state.pid);
	return -EBADMSG;
}

static int restore_early_file(struct restore *restore, int id)
{
	int fd;

	if (restore->image->render_only)
		return restore_own_render_file(restore, id);
	fd = criu_kept_file(restore->kept_kfd);
	return of_ours(fd < 0 ? fd : with_flags(fd, restore->image->flags));
}

static int restore_device_file(struct restore *restore, int id)
{
	struct kfd_image *image = NULL;
	int r;

	if (id == restore->early_id)
		return restore_early_file(restore, id);
	r = kfd_image_read(id, &image);
	if (!r && image->another_file) {
		r = of_ours(restore_another_kfd(restore, image));
		kfd_image_free(image);
		return r;
	}
	if (!r && restore->image) {
		kfd_image_free(image);
		pr_err("the task has two images of the state of its GPUs");
		return -EBADMSG;
	}
	if (r)
		return r == -ENOENT ? restore_render_file(restore, id) : r;
	restore->image = image;
	if (!image->render_only)
		return of_ours(restore_kfd(restore, id));
	r = of_ours(restore_render_only(restore, id));
	return r ? r : restore_own_render_file(restore, id);
}

int restore_file(struct restore *restore, int id)
{
	int fd = restore_device_file(restore, id), err = fd < 0 ? fd : of_ours(note_file(restore));

	if (err == -ENOENT && fd < 0) {
		fd = restore_dmabuf(restore, id);
		err = fd < 0 ? fd : 0;
	}
	if (!err)
		return fd;
	if (err != -ENOENT)
		share_table_fail(restore->buffers);
	if (fd >= 0)
		close(fd);
	return err;
}

/* ---- mappings ---- */

int restore_vma(struct restore *restore, const char *path, uint64_t start, uint64_t offset, uint64_t *ret_offset,
		int *ret_fd)
{
	const struct vma_context context = {
		.image = restore->image,
		.bos = &restore->bos,
		.gpus = &restore->gpus,
		.share = &restore->share,
		.kept_kfd = restore->kept_kfd,
		.rules = restore->rules,
		.traits = restore->traits,
	};
	struct device_vma vma;
	int err;

	if (!vma_find(&context, path, start, offset, &vma))
		return -ENOENT;
	err = attach(restore);
	if (!err)
		err = settle_contents(restore);
	return of_ours(err ? err : vma_restore(&context, path, &vma, ret_offset, ret_fd));
}

/* ---- resume ---- */

/* *ret: NULL for a task without GPU state. 0, or -errno after an error line. */
static int find_restored(const struct restored *restored, pid_t pid, const struct restored_task **ret)
{
	unsigned int nr = atomic_load(&restored->nr);
	pid_t own = nr ? task_own_pid(pid) : 0;

	if (nr && !own) {
		pr_err("pid %d: cannot read its NSpid in /proc, by which it is known whether it has GPU state", pid);
		return -EIO;
	}
	*ret = NULL;
	for (unsigned int i = 0; !*ret && i < nr && i < MAX_RESTORED; i++)
		if (restored->tasks[i].pid == own)
			*ret = &restored->tasks[i];
	return 0;
}

/*
 * Without an inventory this is asked of processes that have nothing to do with GPUs. They must not reach the kernel:
 * for a process that has the KFD open and no address space on a GPU, RESUME follows a NULL pointer.
 */
int restore_resume(struct restore *restore, pid_t pid)
{
	const struct restored_task *task;
	int err = find_restored(restore->restored, pid, &task);

	if (err || !task)
		return err ? err : -ESRCH;
	err = restore->let_go ? 0 : let_go(restore);
	if (!err && restore->worker)
		err = worker_wait_all(restore->worker);
	if (err || !task->has_kfd)
		return err;
	/* Where that fails, RESUME says what it means. */
	if (task->nr_ranges)
		cow_break(pid, &restore->restored->ranges[task->first_range], task->nr_ranges);
	if (restore->resume_fd < 0)
		restore->resume_fd = kfd_open();
	err = restore->resume_fd < 0 ? restore->resume_fd : kfd_resume(restore->resume_fd, pid);
	/* That would say that it has no GPU state. */
	return err == -ESRCH ? -EIO : err;
}
