// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who holds which buffer: all BOs of the KFD and all GEM handles of the dumped processes, brought together by what
 * they name.
 *
 * On one GPU a buffer has one file offset for mappings, and from Linux 6.8 on one dma-buf, wherever that is imported.
 * Handle numbers say nothing. Nothing is changed in the files of the tasks, except that a handle whose buffer the KFD
 * does not know gets a dma-buf, which stays with it. Imports are made in files of the plugin's own.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>

#include <libdrm/amdgpu_drm.h>

#include "amdgpu_plugin_drm.h"
#include "amdgpu_plugin_util.h"
#include "share/decide.h"
#include "share/survey.h"

/* ---- files of the plugin ---- */

static int open_minor(uint32_t minor)
{
	int fd = drm_open_minor(minor);

	if (fd < 0)
		pr_err("cannot open renderD%u to look at buffers: %s", minor, strerror(-fd));
	return fd;
}

int survey_scratch(struct survey *survey, uint32_t minor)
{
	int node = topology_find_minor(survey->request->machine, minor);

	if (node < 0)
		return node;
	if (survey->scratch[node] < 0)
		survey->scratch[node] = open_minor(minor);
	return survey->scratch[node];
}

static int inode_of(int fd, uint64_t *ret)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*ret = st.st_ino;
	return 0;
}

/* Exports a buffer for its inode; it goes with its file. */
static int probe_inode(uint32_t minor, uint64_t *ret)
{
	_cleanup_close_ int fd = open_minor(minor), dmabuf = -1;
	uint32_t handle;
	int err = fd < 0 ? fd : gem_create_page(fd, &handle);

	if (fd < 0)
		return fd;
	if (!err) {
		dmabuf = gem_export(fd, handle, false);
		err = dmabuf < 0 ? dmabuf : inode_of(dmabuf, ret);
	}
	if (err)
		pr_err("renderD%u: cannot make a dma-buf to tell new ones from old ones: %s", minor, strerror(-err));
	return err;
}

int survey_begin(const struct topology *machine, uint64_t *ret_inode)
{
	for (unsigned int i = 0; i < machine->nr_nodes; i++)
		if (topology_is_gpu(machine->nodes[i]) && drm_minor_is_amd(minor_of(machine->nodes[i])) == 1)
			return probe_inode(minor_of(machine->nodes[i]), ret_inode);
	pr_err("no render node of the GPUs can be opened to tell new dma-bufs from old ones");
	return -ENODEV;
}

/* ---- BOs of the KFD ---- */

static int add_holder(struct survey *survey, const struct holder *holder)
{
	struct holder *grown = array_grow(survey->holders, survey->nr_holders, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	survey->holders = grown;
	survey->holders[survey->nr_holders++] = *holder;
	return 0;
}

int refuse_memory(pid_t pid, uint32_t minor)
{
	pr_err("pid %d: shares a buffer with renderD%u whose memory is not of an AMD GPU (udmabuf, another driver), which "
	       "cannot be saved", pid, minor);
	return -EOPNOTSUPP;
}

/*
 * Whether a buffer is memory of the GPU with this render minor: 1 or 0; -errno where that cannot be told. Two files then
 * have the same object; else each gets an object of its own, which is mapped at another place.
 */
static int is_home(struct survey *survey, uint32_t minor, int dmabuf_fd)
{
	_cleanup_close_ int other = drm_open_minor(minor);
	int fd = survey_scratch(survey, minor);
	uint64_t offsets[2] = { 0 };
	uint32_t handles[2] = { 0 };
	int err = fd < 0 ? fd : (other < 0 ? other : gem_import(fd, dmabuf_fd, &handles[0]));

	if (err)
		return err;
	err = gem_import(other, dmabuf_fd, &handles[1]);
	err = err ? err : gem_offset(fd, handles[0], &offsets[0]);
	err = err ? err : gem_offset(other, handles[1], &offsets[1]);
	gem_close(fd, handles[0]);
	gem_close(other, handles[1]);
	return err ? err : offsets[0] == offsets[1];
}

/* Whether the machine has an AMD GPU that the KFD does not drive. */
static bool has_gpu_without_kfd(const struct topology *machine)
{
	_cleanup_closedir_ DIR *dir = opendir("/sys/class/drm");
	struct dirent *entry;
	unsigned int minor;

	while (dir && (entry = readdir(dir))) {
		char path[PATH_MAX], driver[PATH_MAX] = "";

		snprintf(path, sizeof(path), "/sys/class/drm/%s/device/driver", entry->d_name);
		if (sscanf(entry->d_name, "renderD%u", &minor) == 1 &&
		    topology_find_minor(machine, minor) < 0 &&
		    readlink(path, driver, sizeof(driver) - 1) > 0 && !strcmp(basename(driver), "amdgpu"))
			return true;
	}
	return false;
}

/*
 * The actual id of the GPU whose memory a dma-buf is. Kernels (6.12, 7.2) follow a NULL pointer when they are asked this
 * of memory of an AMD GPU that the KFD does not drive: where there is one, each of the others is tried before.
 */
static int ask_gpu(struct survey *survey, int dmabuf_fd, uint32_t *ret)
{
	const struct topology *machine = survey->request->machine;
	bool may_ask = !survey->asks_first;

	for (unsigned int i = 0; i < machine->nr_nodes && !may_ask; i++)
		may_ask = topology_is_gpu(machine->nodes[i]) &&
			  is_home(survey, minor_of(machine->nodes[i]), dmabuf_fd) == 1;
	return may_ask ? kfd_dmabuf_gpu(survey->kfd, dmabuf_fd, ret) : -EINVAL;
}

/*
 * Where devices have partitions, the KFD answers for system memory and for what is of no partition with the first GPU
 * that the asker may use.
 */
int survey_home(struct survey *survey, int dmabuf_fd, uint32_t *ret_minor)
{
	const struct topology *machine = survey->request->machine;
	uint32_t gpu_id = 0;
	int node, err = ask_gpu(survey, dmabuf_fd, &gpu_id);

	node = err ? err : topology_find_gpu(machine, gpu_id);
	if (node < 0)
		return node;
	*ret_minor = minor_of(machine->nodes[node]);
	if (!topology_may_be_partition(machine->nodes[node]) || is_home(survey, *ret_minor, dmabuf_fd) != 0)
		return 0;
	for (unsigned int i = 0; i < machine->nr_nodes; i++)
		if (topology_may_be_partition(machine->nodes[i]) &&
		    is_home(survey, minor_of(machine->nodes[i]), dmabuf_fd) == 1) {
			*ret_minor = minor_of(machine->nodes[i]);
			return 0;
		}
	return 0;
}

/* Kernels can hand out another BO's dma-buf (its handle in the KFD's own file was given to that one). */
static int check_dmabuf(struct survey *survey, const struct holder *holder, const struct bo *bo)
{
	const struct share_process *process = holder_process(survey, holder);
	int fd = survey_scratch(survey, holder->minor);
	struct gem_info info = { 0 };
	uint32_t handle = 0, gpu_id = 0;
	uint64_t offset = bo->offset;
	int err = fd < 0 ? fd : gem_import(fd, holder->dmabuf_fd, &handle);

	if (fd < 0)
		return fd;
	if (!err) {
		int asked = gem_offset(fd, handle, &offset);

		err = gem_ask(fd, handle, &info);
		gem_close(fd, handle);
		/* Not for the CPU: it has no offset. */
		if (asked && asked != -EPERM)
			err = asked;
	}
	if (err) {
		pr_err("pid %d: cannot look at buffer %zu of gpu %#x: %s", process->pid, holder->bo, bo->gpu_id,
		       strerror(-err));
		return err;
	}
	if (offset == bo->offset && info.size >= bo->size)
		return 0;
	/* An import of another GPU's memory has an offset of its own in each file; what was allocated here is here. */
	if (!(bo->alloc_flags & ~IMPORT_FLAGS)) {
		err = ask_gpu(survey, holder->dmabuf_fd, &gpu_id);
		if (err == -EINVAL)
			return refuse_memory(process->pid, holder->minor);
		if (!err && info.size >= bo->size && is_home(survey, holder->minor, holder->dmabuf_fd) == 0)
			return 0;
	}
	pr_err("pid %d: the kernel gives another buffer's memory for buffer %zu of gpu %#x (file offset %#" PRIx64
	       " for %#" PRIx64 ", %" PRIu64 " bytes for %" PRIu64 "): its contents cannot be saved", process->pid,
	       holder->bo, bo->gpu_id, offset, (uint64_t)bo->offset, info.size, (uint64_t)bo->size);
	return -EOPNOTSUPP;
}

static int add_bo(struct survey *survey, size_t number, size_t i)
{
	const struct share_process *process = &survey->request->processes[number];
	const struct bo *bo = &process->state->bos[i];
	int node = topology_find_gpu(process->nodes, bo->gpu_id), err;
	struct holder holder = {
		.offset = bo->offset, .dmabuf_fd = bo->dmabuf_fd, .process = number, .bo = i, .is_mappable = true,
	};

	if (node < 0 || bo->dmabuf_fd == KFD_NO_FD) {
		pr_err("pid %d: the kernel gives no dma-buf for buffer %zu of gpu %#x", process->pid, i, bo->gpu_id);
		return -EPROTO;
	}
	holder.minor = minor_of(process->nodes->nodes[node]);
	err = inode_of(holder.dmabuf_fd, &holder.inode);
	if (!err && !survey->request->one_dmabuf && survey->request->check_partners)
		err = older_check_import(survey, &holder);
	if (!err)
		err = check_dmabuf(survey, &holder, bo);
	return err ? err : add_holder(survey, &holder);
}

static int add_process(struct survey *survey, size_t number)
{
	const struct kfd_state *state = survey->request->processes[number].state;
	int err = 0;

	for (size_t i = 0; !err && i < state->nr_bos; i++)
		if (kfd_bo_has_contents(&state->bos[i]))
			err = add_bo(survey, number, i);
	return err;
}

/* ---- handles ---- */

/* By GPU and offset: the names of buffers on one GPU. */
static int compare_names(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;

	if (x->minor != y->minor)
		return x->minor < y->minor ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

#define USERPTR_OF_KFD (1ull << 63)
#define GOOD_DOMAINS   ((uint64_t)(AMDGPU_GEM_DOMAIN_CPU | AMDGPU_GEM_DOMAIN_GTT | AMDGPU_GEM_DOMAIN_VRAM))

/* Why such a handle cannot be made again; NULL: it can. */
static const char *bad_handle(const struct gem_info *info, int mmap_error)
{
	if (info->domains & 0x40)
		return "a doorbell of a user queue";
	if (!info->domains)
		return "memory that no GPU can use (of no domain)";
	if (info->domains & ~GOOD_DOMAINS)
		return "GDS, GWS or OA memory";
	if (info->flags & AMDGPU_GEM_CREATE_VM_ALWAYS_VALID)
		return "a buffer of graphics that is always valid";
	if (info->flags & AMDGPU_GEM_CREATE_ENCRYPTED)
		return "encrypted";
	if (info->flags & USERPTR_OF_KFD ||
	    (mmap_error == -EPERM && !(info->flags & AMDGPU_GEM_CREATE_NO_CPU_ACCESS)))
		return "memory of the process that was given to the GPU (userptr)";
	return NULL;
}

static int keep_dmabuf(struct survey *survey, int fd)
{
	int *grown = array_grow(survey->dmabufs, survey->nr_dmabufs, sizeof(*grown));

	if (!grown) {
		close(fd);
		return -ENOMEM;
	}
	grown[survey->nr_dmabufs++] = fd;
	survey->dmabufs = grown;
	return 0;
}

/* Of a buffer that is not known by its name on this GPU. */
static int name_by_dmabuf(struct survey *survey, int fd, struct holder *holder)
{
	int err;

	holder->dmabuf_fd = gem_export(fd, holder->handle, false);
	if (holder->dmabuf_fd < 0)
		return holder->dmabuf_fd;
	err = keep_dmabuf(survey, holder->dmabuf_fd);
	return err ? err : inode_of(holder->dmabuf_fd, &holder->inode);
}

/* @nr_named: holders at the beginning that are sorted by name. */
static int add_handle(struct survey *survey, size_t file, const struct gem_entry *entry, struct holder holder,
		      size_t nr_named)
{
	const struct task_file *of = &survey->request->files->files[file];
	const struct holder *known = NULL;
	const char *bad = NULL;
	struct gem_info info = { 0 };
	int asked, err = gem_ask(of->fd, entry->handle, &info);

	asked = gem_offset(of->fd, entry->handle, &holder.offset);
	if (!err)
		bad = bad_handle(&info, asked);
	if (bad) {
		pr_err("pid %d: handle %u of its renderD%u is %s (%" PRIu64 " bytes, domains %#" PRIx64 ", flags %#" PRIx64
		       "), which cannot be saved", of->pid, entry->handle, of->minor, bad, info.size, info.domains,
		       info.flags);
		return -EOPNOTSUPP;
	}
	holder.handle = entry->handle;
	holder.is_import = entry->is_import;
	holder.is_mappable = !asked;
	if (!err && asked && asked != -EPERM)
		err = asked;
	if (!asked && !entry->is_import && nr_named)
		known = bsearch(&holder, survey->holders, nr_named, sizeof(holder), compare_names);
	if (known)
		holder.inode = known->inode;
	else if (!err)
		err = name_by_dmabuf(survey, of->fd, &holder);
	if (!err)
		return add_holder(survey, &holder);
	pr_err("pid %d: cannot look at handle %u of its renderD%u: %s", of->pid, entry->handle, of->minor, strerror(-err));
	return err;
}

/* Before Linux 6.18 handles are not listed, nor are mappings. */
static int check_unlisted(const struct task_file *file)
{
	uint32_t count = 0;
	int err = drm_count_objects(file->fd, &count);

	if (err)
		pr_err("pid %d: cannot ask renderD%u for its buffers: %s", file->pid, file->minor, strerror(-err));
	if (err || !count)
		return err;
	pr_err("pid %d: its file of renderD%u holds %u buffers of the render node itself (VMM, IPC, graphics, video), which "
	       "cannot be saved: the kernel does not list them before Linux 6.18", file->pid, file->minor, count);
	return -EOPNOTSUPP;
}

/* What a file holds can be used in its own address space only. */
static int check_settled(const struct survey *survey, size_t file)
{
	const struct task_file *of = &survey->request->files->files[file];

	if (!file_may_be_another(survey, file))
		return 0;
	pr_err("pid %d: has renderD%u open more than once, one of the files holds buffers or syncobjs, and nothing shows which "
	       "file has the KFD's address space: that cannot be saved", of->pid, of->minor);
	return -EOPNOTSUPP;
}

static int add_file(struct survey *survey, size_t file, size_t process, size_t nr_named)
{
	const struct task_file *of = &survey->request->files->files[file];
	const struct holder holder = {
		.minor = of->minor, .dmabuf_fd = -1, .process = process, .bo = NO_BO, .file = file,
	};
	_cleanup_free_ struct gem_entry *entries = NULL;
	size_t nr = 0;
	int err = gem_list(of->fd, &entries, &nr);

	if (err == -EINVAL)
		return check_unlisted(of);
	if (err)
		pr_err("pid %d: cannot list the buffers of its renderD%u: %s", of->pid, of->minor, strerror(-err));
	if (!err && nr)
		err = check_settled(survey, file);
	for (size_t i = 0; !err && i < nr; i++)
		err = add_handle(survey, file, &entries[i], holder, nr_named);
	return err;
}

int share_file_is_used(const struct task_file *file)
{
	_cleanup_free_ struct gem_entry *entries = NULL;
	_cleanup_(render_objects_done) struct render_objects objects = { 0 };
	uint32_t pending;
	size_t nr = 0;
	int err = gem_list(file->fd, &entries, &nr);

	if (err == -EINVAL)
		return 0;
	if (!err && !nr)
		err = gem_syncobjs(file->fd, &objects, &pending);
	if (!err)
		return nr || objects.nr_syncobjs;
	pr_err("pid %d: cannot ask renderD%u for its buffers: %s", file->pid, file->minor, strerror(-err));
	return err;
}

/* ---- what is no buffer ---- */

static int take_rest(struct survey *survey, size_t file)
{
	const struct task_file *of = &survey->request->files->files[file];
	uint32_t nr_contexts = 0, pending = 0;
	int err = drm_count_contexts(of->fd, &nr_contexts);

	if (!err)
		err = gem_syncobjs(of->fd, &survey->objects[file], &pending);
	if (err) {
		pr_err("pid %d: cannot ask renderD%u for contexts and syncobjs: %s", of->pid, of->minor, strerror(-err));
		return err;
	}
	if (nr_contexts)
		pr_err("pid %d: its file of renderD%u has %u contexts (graphics, video), which cannot be saved", of->pid,
		       of->minor, nr_contexts);
	else if (pending)
		pr_err("pid %d: syncobj %u of its renderD%u waits for a fence that has not signalled, which cannot be saved: "
		       "dump it again later", of->pid, pending, of->minor);
	if (nr_contexts || pending)
		return -EOPNOTSUPP;
	return survey->objects[file].nr_syncobjs ? check_settled(survey, file) : 0;
}

/* ---- all ---- */

static size_t process_of(const struct share_request *request, pid_t pid)
{
	size_t i = 0;

	while (i < request->nr_processes && request->processes[i].pid != pid)
		i++;
	return i;
}

static size_t process_with(const struct share_request *request, pid_t pid, uint32_t minor)
{
	size_t i = process_of(request, pid);

	if (i < request->nr_processes && topology_find_minor(request->processes[i].nodes, minor) >= 0)
		return i;
	for (i = 0; i < request->nr_processes; i++)
		if (topology_find_minor(request->processes[i].nodes, minor) >= 0)
			break;
	return i;
}

/* One of another driver is refused when it is to be saved. */
int survey_add_descriptor(struct survey *survey, pid_t pid, uint64_t inode, int dmabuf_fd)
{
	struct holder holder = { .inode = inode, .dmabuf_fd = dmabuf_fd, .bo = NO_BO, .is_descriptor = true };
	int err = keep_dmabuf(survey, dmabuf_fd);

	if (!err)
		err = survey_home(survey, dmabuf_fd, &holder.minor);
	if (err)
		return err == -EINVAL ? 0 : err;
	holder.process = process_with(survey->request, pid, holder.minor);
	return holder.process < survey->request->nr_processes ? add_holder(survey, &holder) : -ENODEV;
}

/* A file of a task without /dev/kfd, which knows no address space of its own. */
static int check_lender(const struct survey *survey, size_t file)
{
	const struct task_file *of = &survey->request->files->files[file];
	size_t lender = file_lender(survey, file);

	if (lender == survey->request->nr_processes)
		return 0;
	pr_err("pid %d: has the file of renderD%u in which pid %d, with a higher pid, has its address space on the GPU: criu "
	       "would restore it in the wrong process", of->pid, of->minor, survey->request->processes[lender].pid);
	return -EOPNOTSUPP;
}

/* A buffer is known by its dma-buf, and must not have two. The holders are sorted by name. */
static int check_names(const struct survey *survey)
{
	for (size_t i = 1; survey->request->one_dmabuf && i < survey->nr_holders; i++) {
		const struct holder *a = &survey->holders[i - 1], *b = a + 1;

		if (compare_names(a, b) || a->inode == b->inode)
			continue;
		pr_err("pid %d: a buffer of renderD%u that pid %d has, too, has two dma-bufs (file offset %#" PRIx64 "), as legacy "
		       "IPC of amdgpu-dkms makes them, which cannot be saved: start the programs with "
		       "HSA_ENABLE_IPC_MODE_LEGACY=0", holder_process(survey, a)->pid, a->minor,
		       holder_process(survey, b)->pid, a->offset);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int collect(struct survey *survey)
{
	const struct share_request *request = survey->request;
	size_t nr_named;
	int err = 0;

	for (size_t i = 0; !err && i < request->nr_processes; i++)
		err = add_process(survey, i);
	if (!err && survey->nr_holders)
		qsort(survey->holders, survey->nr_holders, sizeof(*survey->holders), compare_names);
	nr_named = survey->nr_holders;
	if (!err)
		err = check_names(survey);
	for (size_t i = 0; !err && i < request->files->count; i++) {
		size_t process = process_of(request, request->files->files[i].pid);

		survey->is_another[i] = !request->files->files[i].minor || process == request->nr_processes ||
					request->processes[process].file->minor || file_is_another(survey, process, i);
	}
	if (!err)
		err = files_settle(survey);
	for (size_t i = 0; !err && i < request->files->count; i++) {
		size_t process = process_of(request, request->files->files[i].pid);

		if (process == request->nr_processes || !request->files->files[i].minor)
			continue;
		if (request->processes[process].file->minor)
			err = check_lender(survey, i);
		if (!err)
			err = add_file(survey, i, process, nr_named);
		if (!err)
			err = take_rest(survey, i);
	}
	return err;
}

static int init(const struct share_request *request, struct survey *survey)
{
	size_t nr_nodes = request->machine->nr_nodes;

	survey->request = request;
	survey->asks_first = has_gpu_without_kfd(request->machine);
	survey->objects = calloc(request->files->count + 1, sizeof(*survey->objects));
	survey->is_another = calloc(request->files->count + 1, sizeof(*survey->is_another));
	survey->scratch = calloc(nr_nodes + 1, sizeof(*survey->scratch));
	for (size_t i = 0; survey->scratch && i <= nr_nodes; i++)
		survey->scratch[i] = -1;
	if (!survey->objects || !survey->is_another || !survey->scratch)
		return -ENOMEM;
	survey->kfd = kfd_open();
	return survey->kfd < 0 ? survey->kfd : 0;
}

int survey_take(const struct share_request *request, struct survey **ret)
{
	struct survey *survey = calloc(1, sizeof(*survey));
	int err;

	if (!survey)
		return -ENOMEM;
	survey->kfd = -1;
	err = init(request, survey);
	if (!err)
		err = collect(survey);
	if (!err)
		err = decide_all(survey);
	if (err) {
		survey_free(survey);
		return err;
	}
	*ret = survey;
	return 0;
}

void survey_free(struct survey *survey)
{
	if (!survey)
		return;
	for (size_t i = 0; survey->scratch && i < survey->request->machine->nr_nodes; i++)
		if (survey->scratch[i] >= 0)
			close(survey->scratch[i]);
	for (size_t i = 0; survey->objects && i < survey->request->files->count; i++)
		render_objects_done(&survey->objects[i]);
	for (size_t i = 0; i < survey->nr_dmabufs; i++)
		close(survey->dmabufs[i]);
	if (survey->kfd >= 0)
		close(survey->kfd);
	references_free(survey->references);
	older_free(survey->older);
	free(survey->open);
	free(survey->scratch);
	free(survey->is_another);
	free(survey->objects);
	free(survey->dmabufs);
	free(survey->holders);
	free(survey);
}

static int compare_open(const void *inode, const void *open)
{
	uint64_t a = *(const uint64_t *)inode, b = ((const struct open_buffer *)open)->inode;

	return (a > b) - (a < b);
}

bool survey_dmabuf(const struct survey *survey, int fd, struct dmabuf_image *ret)
{
	const struct open_buffer *open = NULL;
	uint64_t inode = 0;

	if (survey && !inode_of(fd, &inode) && survey->nr_open)
		open = bsearch(&inode, survey->open, survey->nr_open, sizeof(*open), compare_open);
	if (!open)
		return false;
	*ret = (struct dmabuf_image){ .buffer = open->buffer, .nr_sharers = survey->nr_sharers };
	return true;
}

const struct render_objects *survey_objects(const struct survey *survey, size_t file)
{
	return &survey->objects[file];
}

bool survey_is_another_file(const struct survey *survey, size_t file)
{
	return survey->is_another[file];
}
