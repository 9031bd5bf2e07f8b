// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a dump knows of shared buffers: their holders, by buffer, and the GPUs that they are of.
 *
 * On one GPU a buffer has one file offset for mappings, and from Linux 6.8 on one dma-buf, wherever that is imported.
 * Handle numbers say nothing. Imports are made in files of the plugin's own.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "share/survey.h"

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

int survey_init(struct survey *survey, const struct share_request *request)
{
	*survey = (struct survey){
		.request = request,
		.kfd = -1,
		.has_gpu_without_kfd = has_gpu_without_kfd(request->machine),
		.objects = calloc(request->files->count + 1, sizeof(*survey->objects)),
		.without_kfd_vm = calloc(request->files->count + 1, sizeof(*survey->without_kfd_vm)),
		.holdings = calloc(request->files->count + 1, sizeof(*survey->holdings)),
	};
	memset(survey->own_files, -1, sizeof(survey->own_files));
	if (!survey->objects || !survey->without_kfd_vm || !survey->holdings)
		return -ENOMEM;
	survey->kfd = kfd_open();
	return survey->kfd < 0 ? survey->kfd : 0;
}

void survey_done(struct survey *survey)
{
	for (size_t i = 0; i < survey->request->machine->nr_nodes; i++)
		for (size_t j = 0; j < ARRAY_SIZE(survey->own_files); j++)
			if (survey->own_files[j][i] >= 0)
				close(survey->own_files[j][i]);
	for (size_t i = 0; survey->objects && i < survey->request->files->count; i++)
		render_objects_done(&survey->objects[i]);
	for (size_t i = 0; survey->holdings && i < survey->request->files->count; i++)
		free(survey->holdings[i].handles);
	for (size_t i = 0; i < survey->nr_dmabufs; i++)
		close(survey->dmabufs[i]);
	if (survey->kfd >= 0)
		close(survey->kfd);
	free(survey->open);
	free(survey->without_kfd_vm);
	free(survey->objects);
	free(survey->holdings);
	free(survey->dmabufs);
	free(survey->holders);
}

/* ---- holders and buffers ---- */

int survey_keep_dmabuf(struct survey *survey, int fd)
{
	int err = array_add(survey->dmabufs, survey->nr_dmabufs, fd);

	if (err)
		close(fd);
	return err;
}

static int compare_inodes(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->bo > y->bo) - (x->bo < y->bo);
}

void survey_sort(struct survey *survey)
{
	if (survey->nr_holders)
		qsort(survey->holders, survey->nr_holders, sizeof(*survey->holders), compare_inodes);
}

bool survey_next(const struct survey *survey, struct buffer *buffer)
{
	struct holder *first = buffer->holders ? buffer->holders + buffer->nr : survey->holders;
	size_t nr = 1, room = survey->nr_holders - (size_t)(first - survey->holders);

	if (!room)
		return false;
	while (nr < room && first->inode == first[nr].inode)
		nr++;
	*buffer = (struct buffer){ .holders = first, .nr = nr, .dmabuf_fd = -1 };
	for (size_t i = 0; i < nr && buffer->dmabuf_fd < 0; i++)
		buffer->dmabuf_fd = first[i].dmabuf_fd;
	return true;
}

bool survey_is_private(const struct survey *survey, const struct buffer *buffer)
{
	return buffer->nr == 1 && buffer->holders->kind == HOLDER_BO &&
	       (!survey->request->one_dmabuf || buffer->holders->inode > survey->request->fresh_inode);
}

size_t survey_process_of(const struct share_request *request, pid_t pid)
{
	size_t i = 0;

	while (i < request->nr_processes && request->processes[i]->file.pid != pid)
		i++;
	return i;
}

/* ---- GPUs and dma-bufs ---- */

bool survey_same_device(const struct survey *survey, uint32_t minor, uint32_t other)
{
	const struct topology *machine = survey->request->machine;
	int a, b;

	if (minor == other)
		return true;
	a = topology_find_minor(machine, minor);
	b = topology_find_minor(machine, other);
	return a >= 0 && b >= 0 && topology_same_device(machine->nodes[a], machine->nodes[b]);
}

/* To open one means an address space on the GPU: it stays open. */
static int open_own_file(const struct survey *survey, int fds[TOPOLOGY_MAX_NODES], uint32_t minor)
{
	int node = topology_find_minor(survey->request->machine, minor);

	if (node < 0)
		return node;
	if (fds[node] < 0)
		fds[node] = drm_open_minor(minor);
	return fds[node];
}

int survey_own_file(struct survey *survey, uint32_t minor)
{
	return open_own_file(survey, survey->own_files[0], minor);
}

int survey_look_at(struct survey *survey, uint32_t minor, int dmabuf_fd, struct memory *ret,
		   struct kfd_share *ret_metadata)
{
	int fd = survey_own_file(survey, minor), asked;
	uint32_t handle = 0;
	int err = fd < 0 ? fd : gem_import(fd, dmabuf_fd, &handle);

	if (err)
		return err;
	asked = gem_offset(fd, handle, &ret->offset);
	ret->has_offset = !asked;
	err = asked && asked != -EPERM ? asked : gem_ask(fd, handle, &ret->info);
	if (!err && ret_metadata)
		err = gem_get_metadata(fd, handle, ret_metadata);
	gem_close(fd, handle);
	return err;
}

int survey_inode(int fd, uint64_t *ret)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*ret = st.st_ino;
	return 0;
}

/*
 * Of a GPU's own memory two files have the same object; else each gets an object of its own, which is mapped at another
 * place. Both have to be there at the same time.
 */
int survey_is_home(struct survey *survey, uint32_t minor, int dmabuf_fd, uint32_t known)
{
	uint64_t offsets[2] = { 0 };
	uint32_t handles[2] = { 0 };
	int fds[2], err = 0;

	if (known)
		return survey_same_device(survey, minor, known);
	for (int i = 0; !err && i < 2; i++) {
		fds[i] = open_own_file(survey, survey->own_files[i], minor);
		err = fds[i] < 0 ? fds[i] : gem_import(fds[i], dmabuf_fd, &handles[i]);
		if (!err)
			err = gem_offset(fds[i], handles[i], &offsets[i]);
	}
	for (int i = 0; i < 2; i++)
		if (handles[i])
			gem_close(fds[i], handles[i]);
	return err ? err : offsets[0] == offsets[1];
}

/*
 * Kernels (6.12, 7.2) follow a NULL pointer when they are asked this of memory of an AMD GPU that the KFD does not drive:
 * where there is one, each of the others is tried before.
 */
int survey_ask_gpu(struct survey *survey, int dmabuf_fd, uint32_t known, uint32_t *ret)
{
	const struct topology *machine = survey->request->machine;
	bool may_ask = !survey->has_gpu_without_kfd;

	for (unsigned int i = 0; i < machine->nr_nodes && !may_ask; i++)
		may_ask = topology_is_gpu(machine->nodes[i]) &&
			  survey_is_home(survey, topology_minor(machine->nodes[i]), dmabuf_fd, known) == 1;
	return may_ask ? kfd_dmabuf_gpu(survey->kfd, dmabuf_fd, ret) : -EINVAL;
}

/*
 * Where devices have partitions, the KFD answers for system memory and for what is of no partition with the first GPU
 * that the asker may use.
 */
int survey_home(struct survey *survey, int dmabuf_fd, uint32_t known, uint32_t *ret_minor)
{
	const struct topology *machine = survey->request->machine;
	uint32_t gpu_id = 0;
	int node, err = survey_ask_gpu(survey, dmabuf_fd, known, &gpu_id);

	node = err ? err : topology_find_gpu(machine, gpu_id);
	if (node < 0)
		return node;
	*ret_minor = topology_minor(machine->nodes[node]);
	if (!topology_may_be_partition(machine->nodes[node]) || survey_is_home(survey, *ret_minor, dmabuf_fd, known) != 0)
		return 0;
	for (unsigned int i = 0; i < machine->nr_nodes; i++)
		if (topology_may_be_partition(machine->nodes[i]) &&
		    survey_is_home(survey, topology_minor(machine->nodes[i]), dmabuf_fd, known) == 1) {
			*ret_minor = topology_minor(machine->nodes[i]);
			return 0;
		}
	return 0;
}

int survey_find_gpu(struct survey *survey, struct buffer *buffer)
{
	pid_t pid = holder_pid(survey, buffer->holders);
	uint32_t known = 0, minor = 0, found;
	int err;

	buffer->minor = buffer->holders->gpu_minor;
	if (buffer->minor)
		return 0;
	/* A GPU of the machine that is known to have the memory. */
	for (size_t i = 0; i < buffer->nr && !known; i++)
		if (buffer->holders[i].is_home && topology_find_minor(survey->request->machine, buffer->holders[i].minor) >= 0)
			known = buffer->holders[i].minor;
	err = survey_home(survey, buffer->dmabuf_fd, known, &minor);
	if (err == -EINVAL)
		return survey_refuse_memory(pid, buffer->holders->minor);
	if (err)
		return fail(err, "pid %d: cannot tell whose memory a buffer of renderD%u is: %m", pid,
			    buffer->holders->minor);
	/* Of this partition or, since system memory is the device's, of one that a holder uses. */
	found = minor;
	for (size_t i = buffer->nr; i-- > 0;)
		if (survey_same_device(survey, buffer->holders[i].minor, minor))
			found = buffer->holders[i].minor;
	for (size_t i = 0; i < buffer->nr; i++)
		if (buffer->holders[i].minor == minor)
			found = minor;
	buffer->minor = buffer->holders->gpu_minor = found;
	return 0;
}

int survey_refuse_memory(pid_t pid, uint32_t minor)
{
	return fail(-EOPNOTSUPP, "pid %d: shares a buffer with renderD%u whose memory is not of an AMD GPU (udmabuf, another "
		    "driver), which cannot be saved", pid, minor);
}
