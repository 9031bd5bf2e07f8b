// SPDX-License-Identifier: GPL-2.0-only
/* The processes of one call: what is asked of the machine and of each, and the copies of all together. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "pages/pages.h"
#include "suspend/internal.h"

struct cut cut_begin(const struct settings *settings)
{
	struct cut ret = { .settings = settings, .began = monotonic_seconds() };

	driver_ask_release(DRIVER_VERSION_FILE, &ret.driver);
	return ret;
}

int cut_read_machine(struct cut *cut)
{
	int err = sysfs_read_topology(SYSFS_TOPOLOGY_ROOT, &cut->machine);

	return err == -ENOENT ? fail(err, "this machine has no KFD, and so no GPU that processes could use") : err;
}

bool cut_has(const struct cut *cut, pid_t pid)
{
	for (size_t i = 0; i < cut->nr; i++)
		if (cut->processes[i].pid == pid)
			return true;
	return false;
}

int cut_add(struct cut *cut, const struct suspend_target *target)
{
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0, before = cut->nr;
	int err = 0;

	for (size_t i = 0; !err && i < target->nr; i++)
		err = array_add(pids, nr, target->pids[i]);
	if (!err && target->cgroup)
		err = cgroup_processes(target->cgroup, true, &pids, &nr);
	if (err)
		return fail(err, "%s: cannot be asked for its processes: %m", target->cgroup);
	err = target->tree ? processes_add_descendants(&pids, &nr) : 0;
	for (size_t i = 0; !err && i < nr; i++)
		if (!cut_has(cut, pids[i]))
			err = array_add(cut->processes, cut->nr, (struct process){ .pid = pids[i], .kfd = -1 });
	return err ? err : (int)(cut->nr - before);
}

static void process_done(struct process *process)
{
	hold_end(&process->hold);
	record_done(&process->record);
	topology_free(process->nodes);
	free(process->minors);
	free(process->fds);
	free(process->fd_minors);
	if (process->kfd >= 0)
		close(process->kfd);
}

void cut_end(struct cut *cut)
{
	for (size_t i = 0; i < cut->nr; i++)
		process_done(&cut->processes[i]);
	for (size_t i = 0; i < cut->nr_thawed; i++)
		thawed_done(&cut->thawed[i]);
	free(cut->thawed);
	free(cut->processes);
	topology_free(cut->machine);
}

static int find_minors(struct process *process)
{
	const struct kfd_state *state = process_state(process);

	process->minors = calloc(state->nr_devices + 1, sizeof(*process->minors));
	if (!process->minors)
		return -ENOMEM;
	for (size_t i = 0; i < state->nr_devices; i++) {
		int node = topology_find_gpu(process->nodes, state->devices[i].user_gpu_id);

		if (node < 0)
			return fail(-ENODEV, "pid %d: gpu %#x is not in the machine's topology", process->pid,
				    state->devices[i].user_gpu_id);
		process->minors[i] = topology_minor(process->nodes->nodes[node]);
	}
	return 0;
}

static int add_fd(struct process *process, int number)
{
	size_t nr = process->nr_fds;
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", process->pid, number);
	if (stat(path, &st) || !device_is_render_node(&st))
		return 0;
	if (array_add(process->fds, nr, number))
		return -ENOMEM;
	return array_add(process->fd_minors, process->nr_fds, minor(st.st_rdev));
}

/* Also descriptors of files that another process has opened. */
static int find_fds(struct process *process)
{
	_cleanup_free_ int *numbers = NULL;
	char path[64];
	size_t nr = 0;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/fd", process->pid);
	err = list_numbers(AT_FDCWD, path, &numbers, &nr);
	if (err)
		return fail(err, "pid %d: cannot look at its files: %m", process->pid);
	for (size_t i = 0; !err && i < nr; i++)
		err = add_fd(process, numbers[i]);
	return err;
}

int process_look(struct cut *cut, struct process *process)
{
	int err = kfd_state_nodes(cut->machine, process->pid, process_state(process), &process->nodes);

	if (!err)
		err = find_minors(process);
	return err ? err : find_fds(process);
}

/* ---- copies ---- */

/* It must be no one else's, nor a link: some are in directories that all may write. */
int open_dir(const char *dir, int *ret)
{
	struct stat st;

	*ret = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret < 0)
		return fail(-errno, "%s: cannot be opened: %m", dir);
	if (fstat(*ret, &st) || st.st_uid != geteuid())
		return fail(-EPERM, "%s: belongs to another user, who could read or change what is saved there", dir);
	return 0;
}

/* Only what goes, and is there, has contents to copy: what is another's is left alone. */
static void choose_contents(struct process *process)
{
	struct kfd_state *state = process_state(process);

	for (size_t i = 0; i < state->nr_bos; i++)
		state->bos[i].share.kind =
			process->record.goes[i] && state->bos[i].dmabuf_fd != KFD_NO_FD ? KFD_BO_OWN : KFD_BO_IMPORT;
}

int cut_copy(struct cut *cut, const char *dir, bool out)
{
	_cleanup_free_ struct gpu_process *lent = calloc(cut->nr + 1, sizeof(*lent));
	_cleanup_free_ struct gpu_process **list = calloc(cut->nr + 1, sizeof(*list));
	struct content_tally tally = { 0 };
	size_t nr = 0;

	if (!list || !lent)
		return -ENOMEM;
	for (size_t i = 0; i < cut->nr; i++) {
		struct process *process = &cut->processes[i];

		if (process->kfd < 0 || strcmp(process->record.head.dir, dir))
			continue;
		choose_contents(process);
		lent[nr] = (struct gpu_process){
			.file.pid = process->pid, .id = process->pid, .state = process->record.state, .minors = process->minors,
		};
		list[nr] = &lent[nr];
		nr++;
	}
	if (!nr)
		return 0;
	return out ? pages_dump(list, nr, cut->settings, &tally) : pages_fill(list, nr, cut->settings, &tally);
}

int record_set(struct process *process, enum phase phase)
{
	process->record.head.phase = phase;
	process->record.head.thread = process->inject.own;
	return record_write(&process->record);
}

int cut_report(const struct cut *cut, struct suspend_result *ret)
{
	ret->reports = calloc(cut->nr + 1, sizeof(*ret->reports));
	if (!ret->reports)
		return -ENOMEM;
	for (; ret->nr < cut->nr; ret->nr++) {
		ret->reports[ret->nr] = cut->processes[ret->nr].record.head.report;
		ret->reports[ret->nr].had_ended = cut->processes[ret->nr].has_ended;
	}
	return 0;
}
