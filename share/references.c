// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a buffer is held outside of the dump too: by the references to its dma-buf, of which each has to be explained.
 *
 * Measured on amdgpu of Linux 6.12 ("count:" in fdinfo of the dma-buf):
 *
 *                                                 on the buffer's GPU   on another GPU
 *   open descriptor of the dma-buf                        1                    1
 *   BO of the KFD                                         1                    1
 *   import by the KFD, of BOs with one offset             -                    1
 *   file of a render node with a handle                   1                    3
 *   KFD's own file, until one of the BOs is freed         1                    2
 *   object, as long as it has a handle in any file        1                    -
 *   mapping of a KFD BO on a peer GPU                see peer_references()     -
 *
 * The kernel does not tell whether the KFD's own files have a handle. A further handle of the plugin's own, in a file of
 * its own, shows whether the object has any. What is left may be references of the KFD's own files, or of an external holder
 * who took their place: that is settled by looking for the others (externals.c). The plugin never imports a buffer into
 * the KFD: the KFD deletes the number of its own file's handle when such an import is freed, and the next buffer gets
 * that number.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <libdrm/amdgpu_drm.h>

#include "amdgpu_plugin_util.h"
#include "host/host.h"
#include "share/survey.h"

/* References of another GPU are dropped some time after the handle is closed: counts that do not add up are read again. */
#define RECOUNT_SECONDS 1
#define RECOUNT_US      (20 * 1000)

/* An open descriptor of a dma-buf. */
struct descriptor {
	uint64_t inode;
	pid_t pid; /* 0: the plugin's own */
	int fd;
};

struct references {
	dev_t device; /* of all dma-bufs */
	struct descriptor *list; /* by inode, those of tasks first */
	size_t nr;
	struct externals *externals; /* NULL: they have not been looked for */
	struct iommu_group groups[TOPOLOGY_MAX_NODES]; /* of the machine's nodes */
};

/* ---- descriptors ---- */

/*
 * One that is gone meanwhile was the listing's own. Tasks with one table of descriptors have each descriptor once. The
 * state of a task is restored with its descriptor of /dev/kfd, which may have others of its parent's, or of a render node.
 */
static int add_task(struct references *references, const struct share_request *request, size_t task)
{
	const struct task_files *files = request->files;
	pid_t pid = files->pids[task];
	size_t process = survey_process_of(request, pid), nr = 0, before = references->nr;
	int state_fd = process < request->nr_processes ? request->processes[process]->file.number : -1;
	_cleanup_free_ int *fds = NULL;
	bool early = false;
	char path[64];
	int err;

	err = proc_list(pid, "fd", &fds, &nr);
	for (size_t i = 0; !err && i < nr; i++) {
		struct stat st;

		early |= references->nr > before && fds[i] == state_fd;
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fds[i]);
		err = stat_quietly(AT_FDCWD, path, &st);
		if (!err && st.st_dev == references->device)
			err = array_add(references->list, references->nr, (struct descriptor){ st.st_ino, pid, fds[i] });
		err = err == -ENOMEM ? err : 0;
	}
	if (err)
		return fail(err, "pid %d: cannot look for open dma-bufs: %m", pid);
	if (early && criu_is_streaming())
		return fail(-EOPNOTSUPP, "pid %d: has a dma-buf open under a lower number than /dev/kfd (or its render node), "
			    "which cannot be streamed: dump into a directory", pid);
	for (size_t i = 0; i < task && references->nr > before; i++)
		if (!syscall(SYS_kcmp, files->pids[i], pid, KCMP_FILES, 0, 0))
			references->nr = before;
	return 0;
}

static int compare_descriptors(const void *a, const void *b)
{
	const struct descriptor *x = a, *y = b;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	if (!x->pid != !y->pid)
		return x->pid ? -1 : 1;
	return x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : x->fd - y->fd;
}

static void sort_descriptors(struct references *references)
{
	if (references->nr)
		qsort(references->list, references->nr, sizeof(*references->list), compare_descriptors);
}

/* The first of a buffer, NULL when there is none. */
static const struct descriptor *find_descriptor(const struct references *references, uint64_t inode)
{
	const struct descriptor *found = NULL;

	if (references && references->nr)
		found = bsearch(&inode, references->list, references->nr, sizeof(*found), compare_u64);
	while (found && found > references->list && found[-1].inode == inode)
		found--;
	return found;
}

bool references_of_tasks(const struct references *references, uint64_t inode)
{
	const struct descriptor *first = find_descriptor(references, inode);

	return first && first->pid;
}

/* ---- buffers that only a descriptor holds ---- */

static bool process_has(const struct share_request *request, size_t process, uint32_t minor)
{
	return process < request->nr_processes && topology_find_minor(request->processes[process]->nodes, minor) >= 0;
}

/*
 * Adds a holder that is nothing but an open dma-buf. Whoever is to own a buffer has to have its GPU: best the process that
 * has it open. One of another driver is refused when it is saved.
 */
static int add_lone(struct survey *survey, const struct descriptor *descriptor)
{
	const struct share_request *request = survey->request;
	struct holder holder = { .inode = descriptor->inode, .kind = HOLDER_DMABUF };
	int fd = task_take_file(descriptor->pid, descriptor->fd);
	int err = fd < 0 ? fd : survey_keep_dmabuf(survey, fd);

	if (!err)
		err = survey_home(survey, fd, 0, &holder.minor);
	if (err)
		return err == -EINVAL ? 0 : fail(err, "pid %d: cannot look at its dma-buf %d: %m", descriptor->pid, descriptor->fd);
	holder.dmabuf_fd = fd;
	holder.process = survey_process_of(request, descriptor->pid);
	if (!process_has(request, holder.process, holder.minor))
		for (holder.process = 0; holder.process < request->nr_processes; holder.process++)
			if (process_has(request, holder.process, holder.minor))
				break;
	err = holder.process < request->nr_processes ? array_add(survey->holders, survey->nr_holders, holder) : -ENODEV;
	return err ? fail(err, "pid %d: cannot look at its dma-buf %d: %m", descriptor->pid, descriptor->fd) : 0;
}

int references_read(struct survey *survey)
{
	struct references *references = survey->references = calloc(1, sizeof(*references));
	const struct topology *machine = survey->request->machine;
	_cleanup_close_ int sysfs = open("/sys", O_PATH | O_CLOEXEC);
	size_t nr_known = survey->nr_holders; /* sorted by inode; those that are added come after them */
	unsigned int size = 0;
	uint64_t last = 0;
	char text[32];
	struct stat st;
	int err = references ? 0 : -ENOMEM;

	for (unsigned int i = 0; !err && i < machine->nr_nodes; i++)
		iommu_read_group(sysfs, machine->nodes[i], &references->groups[i]);
	for (size_t i = 0; !err && i < survey->nr_holders && !references->device; i++)
		if (survey->holders[i].dmabuf_fd >= 0 && !fstat(survey->holders[i].dmabuf_fd, &st))
			references->device = st.st_dev;
	for (size_t i = 0; !err && i < survey->request->files->nr_pids; i++)
		err = add_task(references, survey->request, i);
	if (!err)
		sort_descriptors(references);
	for (size_t i = 0; !err && i < references->nr; i++) {
		const struct descriptor *descriptor = &references->list[i];

		if (descriptor->inode != last &&
		    !bsearch(&descriptor->inode, survey->holders, nr_known, sizeof(*survey->holders), compare_u64))
			err = add_lone(survey, descriptor);
		last = descriptor->inode;
	}
	if (err)
		return err;
	/* Our own: there is one for each BO of the dump, and a look at each number costs a tenth of a listing. */
	err = proc_value("/proc/self/status", "FDSize", text, sizeof(text));
	if (!err && sscanf(text, "%u", &size) != 1)
		err = -ENODATA;
	for (unsigned int fd = 0; !err && fd < size; fd++)
		if (!stat_quietly((int)fd, "", &st) && st.st_dev == references->device)
			err = array_add(references->list, references->nr, (struct descriptor){ st.st_ino, 0, (int)fd });
	if (err)
		return fail(err, "cannot look for dma-bufs of criu: %m");
	sort_descriptors(references);
	return 0;
}

void references_free(struct references *references)
{
	if (!references)
		return;
	free(references->list);
	externals_free(references->externals);
	free(references);
}

/* ---- mappings on other GPUs ---- */

/*
 * How many references the mappings of a KFD BO on other GPUs hold; @holder is on the buffer's own device. *vram, of the
 * buffer: -1 to begin with.
 *
 * The KFD maps the BO itself where the other GPU can use the addresses of its memory: partitions of one device, VRAM
 * within an XGMI hive, and system memory unless an IOMMU translates for each of the two GPUs. Else it imports the BO's
 * dma-buf for the other GPU, which holds one reference (kfd_mem_attach() of Linux 6.12 and 7.2). An import of another
 * GPU's memory is never mapped this way.
 */
static int64_t peer_references(struct survey *survey, const struct buffer *buffer, const struct holder *holder, int *vram)
{
	const struct gpu_process *process = holder_process(survey, holder);
	const struct topology *machine = survey->request->machine;
	const struct iommu_group *groups = survey->references->groups;
	int home = topology_find_minor(machine, holder->minor);
	struct memory memory = { 0 };
	struct bo_record record;
	int64_t ret = 0;
	uint64_t hive;

	if (home < 0 || records_bo(&process->state, holder->bo, &record))
		return 0;
	hive = topology_get(machine->nodes[home], TOPOLOGY_HIVE_ID);
	for (uint32_t i = 0; i < records_nr_mapped(&record); i++) {
		int gpu = topology_find_gpu(process->nodes, record.mapped_gpus[i]);
		int peer = gpu < 0 ? -1 : topology_find_minor(machine, topology_minor(process->nodes->nodes[gpu]));

		if (peer < 0 || topology_same_device(machine->nodes[home], machine->nodes[peer]))
			continue;
		/* What the memory is, whatever it was allocated as: "VRAM" of an APU can be system memory. */
		if (*vram < 0)
			*vram = !survey_look_at(survey, buffer->minor, buffer->dmabuf_fd, &memory, NULL) &&
				memory.info.domains & AMDGPU_GEM_DOMAIN_VRAM;
		ret += !(*vram ? hive && hive == topology_get(machine->nodes[peer], TOPOLOGY_HIVE_ID) :
				 iommu_is_common(&groups[home], &groups[peer]));
	}
	return ret;
}

/* ---- the count ---- */

static int read_count(int dmabuf_fd, int64_t *ret)
{
	char text[32];
	int err = fdinfo_value(dmabuf_fd, "count", text, sizeof(text));

	return err || sscanf(text, "%" SCNd64, ret) == 1 ? err : -ENODATA;
}

/* What the dump knows to hold references, and what may hold more of them. */
struct account {
	int64_t known;
	unsigned int nr_here[NR_HOLDER_KINDS]; /* on the buffer's GPU */
	unsigned int nr_other_gpus;	       /* with BOs of the KFD */
};

/* Of one holder, on the buffer's GPU and on another one. Open dma-bufs are counted for all together. */
static const struct {
	int64_t here, there;
} references_of[NR_HOLDER_KINDS] = {
	[HOLDER_BO] = { 1, 1 },
	[HOLDER_HANDLE] = { 1, 3 },
};

/* Of the buffer's BOs of the KFD on one other device; with @object, of those there that are the same import. */
static bool is_first_there(const struct survey *survey, const struct buffer *buffer, const struct holder *holder, bool object)
{
	for (const struct holder *earlier = buffer->holders; earlier < holder; earlier++)
		if (earlier->kind == HOLDER_BO && survey_same_device(survey, earlier->minor, holder->minor) &&
		    (!object || earlier->offset == holder->offset))
			return false;
	return true;
}

static struct account account_for(struct survey *survey, const struct buffer *buffer)
{
	const struct references *references = survey->references;
	const struct descriptor *open = find_descriptor(references, buffer->holders->inode);
	struct account ret = { 0 };
	int vram = -1;

	for (; open && open < references->list + references->nr && open->inode == buffer->holders->inode; open++)
		ret.known++;
	for (size_t i = 0; i < buffer->nr; i++) {
		const struct holder *holder = &buffer->holders[i];
		bool here = survey_same_device(survey, holder->minor, buffer->minor);

		ret.known += here ? references_of[holder->kind].here : references_of[holder->kind].there;
		ret.nr_here[holder->kind] += here;
		if (holder->kind != HOLDER_BO)
			continue;
		ret.known += here ? peer_references(survey, buffer, holder, &vram) :
				    is_first_there(survey, buffer, holder, true);
		ret.nr_other_gpus += !here && is_first_there(survey, buffer, holder, false);
	}
	return ret;
}

/* ---- the verdict ---- */

struct verdict {
	bool is_explained;
	int64_t count, known;
	pid_t pid;	 /* who is not dumped and has the buffer; 0: not known */
	bool is_suspect; /* or may have it */
};

/* Whether the object has a handle: one more adds a reference for the file, and one for the object where it had none. */
static int ask_object(struct survey *survey, const struct buffer *buffer, int64_t *ret)
{
	int fd = survey_own_file(survey, buffer->minor);
	int64_t before = 0, after = 0;
	uint32_t handle;
	int err = fd < 0 ? fd : read_count(buffer->dmabuf_fd, &before);

	if (!err)
		err = gem_import(fd, buffer->dmabuf_fd, &handle);
	if (err)
		return err;
	err = read_count(buffer->dmabuf_fd, &after);
	gem_close(fd, handle);
	*ret = 2 - (after - before);
	return err;
}

/*
 * Some references may be those of the KFD's own files, or of an external holder. Where nobody in the dump has a handle,
 * only an external handle keeps the reference of the object. Where the dump has one, or on another GPU, any holder may.
 * 0, or -errno after fail().
 */
static int judge(struct survey *survey, const struct buffer *buffer, const struct account *account,
		 struct verdict *verdict)
{
	struct references *references = survey->references;
	bool far = account->nr_other_gpus;
	int64_t object = 1, rest, kfds_file;
	int err;

	*verdict = (struct verdict){ 0 };
	err = read_count(buffer->dmabuf_fd, &verdict->count);
	if (!err && !account->nr_here[HOLDER_HANDLE])
		err = ask_object(survey, buffer, &object);
	if (err)
		return fail(err, "pid %d: cannot tell who else holds a buffer of renderD%u: %m",
			    holder_pid(survey, buffer->holders), buffer->minor);
	rest = verdict->count - account->known - object;
	/* The KFD's own file has one reference on the buffer's GPU, two on another one. */
	kfds_file = account->nr_here[HOLDER_BO] && object;
	verdict->known = account->known + object + kfds_file + 2 * account->nr_other_gpus;
	verdict->is_explained = !rest;
	if (rest <= 0 || verdict->count > verdict->known || (rest % 2 && !kfds_file))
		return 0;
	err = references->externals ? 0 : externals_read(survey, &references->externals);
	if (err)
		return err;
	verdict->known = verdict->count - 1;
	verdict->pid = externals_find(references->externals, buffer->holders->inode);
	if (verdict->pid)
		return 0;
	verdict->pid = externals_suspect(survey, references->externals, buffer, account->nr_here[HOLDER_HANDLE] || far, far);
	verdict->is_suspect = verdict->pid;
	verdict->is_explained = !verdict->pid;
	return 0;
}

int references_explain(struct survey *survey, const struct buffer *buffer)
{
	const struct account account = account_for(survey, buffer);
	struct verdict verdict;
	int err = judge(survey, buffer, &account, &verdict);

	return err ? err : verdict.is_explained;
}

int references_check(struct survey *survey, const struct buffer *buffer)
{
	const struct account account = account_for(survey, buffer);
	double end = monotonic_seconds() + RECOUNT_SECONDS;
	pid_t pid = holder_pid(survey, buffer->holders);
	bool dkms = survey->request->is_dkms;
	char who[64] = "a process that is not dumped (or a message in flight)";
	struct verdict verdict;
	int err = judge(survey, buffer, &account, &verdict);

	while (!err && !verdict.is_explained && monotonic_seconds() < end) {
		externals_free(survey->references->externals);
		survey->references->externals = NULL;
		usleep(RECOUNT_US);
		err = judge(survey, buffer, &account, &verdict);
	}
	if (err || verdict.is_explained)
		return err;
	if (verdict.pid)
		snprintf(who, sizeof(who), "pid %d, which is not dumped", verdict.pid);
	else if (dkms)
		strcpy(who, "a process that is not dumped, or by legacy IPC");
	if (verdict.is_suspect)
		return fail(-EOPNOTSUPP, "pid %d: may share a buffer of renderD%u with %s, which criu cannot see without "
			    "CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE or the kernel's debugfs: dump both together "
			    "(KFD_SHARING_CHECK=0 dumps it as if it were not shared)", pid, buffer->minor, who);
	return fail(-EOPNOTSUPP, "pid %d: shares a buffer of renderD%u with %s: %" PRId64 " references, of which the dump has %"
		    PRId64 ": %s", pid, buffer->minor, who, verdict.count, verdict.known,
		    dkms ? "start the programs with HSA_ENABLE_IPC_MODE_LEGACY=0, and dump both together" :
			   "dump both together, or end the sharing first (KFD_SHARING_CHECK=0 dumps it as if it were not shared)");
}
