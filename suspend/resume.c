// SPDX-License-Identifier: GPL-2.0-only
/*
 * The order of a resume: seize all, allocate the freed buffers, copy the data into them, run the queues, then the
 * threads. It continues any suspend or resume that was interrupted: the kernel tells which buffers are allocated.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>

#include "amdgpu_plugin_drm.h"
#include "suspend/internal.h"

#define MAX_CHANGED 4096 /* so many buffers a process may have allocated or freed since, if it was continued */
#define FIRST_PAUSE 0.5 /* seconds */
#define LAST_PAUSE  16
#define WAIT_USEC   10000

/* ---- what is allocated ---- */

/* The buffers of a process before the suspend, and now. */
struct rebuild {
	struct process *process;
	struct kfd_state now;
	struct bo_number *had, *has; /* numbers of its buffers, then and now */
	uint64_t *placeholders;	     /* handles of buffers that only take numbers */
	size_t nr_placeholders;
};

static void rebuild_end(struct rebuild *rebuild)
{
	kfd_state_done(&rebuild->now);
	free(rebuild->had);
	free(rebuild->has);
	free(rebuild->placeholders);
}

static int rebuild_begin(struct process *process, struct rebuild *ret)
{
	const struct kfd_state *state = &process->gpu.state;
	int err = kfd_checkpoint_again(process->gpu.file.fd, process->head.pid, state, process->nr_bos_now, MAX_CHANGED,
				       &ret->now);

	ret->process = process;
	if (err)
		return err;
	process->nr_bos_now = ret->now.nr_records;
	err = records_numbers(state, &ret->had);
	return err ? err : records_numbers(&ret->now, &ret->has);
}

static const struct bo_number *find_number(const struct bo_number *numbers, const struct kfd_state *state,
					   uint64_t handle)
{
	return bsearch(&handle, numbers, state->nr_records, sizeof(*numbers), compare_u64);
}

/* The buffer that the process has now and had before; NULL: none, or the number is another one's. */
static struct bo *find_current(const struct rebuild *rebuild, const struct bo_number *entry)
{
	const struct bo_number *found = find_number(rebuild->has, &rebuild->now, entry->handle);
	const struct bo *bo = &rebuild->process->gpu.state.bos[entry->bo];
	struct bo *now = found ? &rebuild->now.bos[found->bo] : NULL;

	return now && now->addr == bo->addr && now->size == bo->size && now->alloc_flags == bo->alloc_flags ? now : NULL;
}

/* Allocated by calls_make_placeholder(): without an address, and mapped nowhere. */
static bool is_placeholder(const struct kfd_state *now, const struct bo_number *entry)
{
	const struct bo *bo = &now->bos[entry->bo];
	struct bo_record record;

	return !bo->addr && bo->size == (uint64_t)sysconf(_SC_PAGESIZE) && !(bo->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) &&
	       bo->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_GTT && !records_bo(now, entry->bo, &record) &&
	       !records_nr_mapped(&record);
}

/*
 * A buffer that the process did not have is a placeholder of a resume that was killed, or its own: that stays, unless
 * it has the number of a buffer that is to be allocated.
 */
static int free_leftovers(struct rebuild *rebuild)
{
	pid_t pid = rebuild->process->head.pid;
	int err = 0, nr_own = 0;

	for (size_t i = 0; !err && i < rebuild->now.nr_records; i++) {
		const struct bo_number *known = find_number(rebuild->had, &rebuild->process->gpu.state, rebuild->has[i].handle);
		bool is_own = !is_placeholder(&rebuild->now, &rebuild->has[i]);

		if (known && find_current(rebuild, known))
			continue;
		if (known && is_own)
			return fail(-EEXIST, "pid %d: has run meanwhile, and has a new buffer with the number %#" PRIx64
				    " of one that was freed: it cannot be resumed; end it", pid, known->handle);
		nr_own += is_own;
		if (!is_own)
			err = calls_free_handle(rebuild->process, rebuild->has[i].handle);
	}
	if (!err && nr_own)
		pr_warn("pid %d: has run meanwhile (it was continued, or its cgroup thawed): %d buffers that it has "
			"made since stay\n", pid, nr_own);
	return err;
}

/* ---- buffers ---- */

/*
 * The KFD gives out the lowest number that is free: what was free below that of entry @i is taken. *@next: up to where
 * it is. A number that is taken, and by nothing that is listed, is passed over.
 */
static int fill_gaps(struct rebuild *rebuild, size_t i, size_t *next)
{
	int err = 0;

	for (; !err && *next <= i; (*next)++) {
		const struct bo_number *entry = &rebuild->had[*next];
		uint32_t gpu_id = (uint32_t)(entry->handle >> 32);
		uint64_t from = kfd_handle(gpu_id, 0), handle = 0;

		if (gpu_id != rebuild->had[i].handle >> 32)
			continue;
		if (*next && entry[-1].handle >= from)
			from = entry[-1].handle + 1;
		for (; !err && from < entry->handle; from = handle + 1) {
			err = calls_make_placeholder(rebuild->process, gpu_id, &handle);
			if (!err && handle < entry->handle)
				err = array_add(rebuild->placeholders, rebuild->nr_placeholders, handle);
			else if (!err)
				err = calls_free_handle(rebuild->process, handle);
		}
	}
	return err;
}

static int allocate_missing(struct rebuild *rebuild)
{
	size_t next = 0;
	int err = 0;

	for (size_t i = 0; !err && i < rebuild->process->gpu.state.nr_records; i++) {
		const struct bo_number *entry = &rebuild->had[i];
		const struct bo *now;

		if (rebuild->process->plan[entry->bo] != BO_FREE)
			continue;
		now = find_current(rebuild, entry);
		if (!now)
			err = fill_gaps(rebuild, i, &next);
		if (!err)
			err = calls_allocate(rebuild->process, entry->bo, now);
	}
	return err;
}

/* The dma-bufs of the buffers that were allocated again, of @all or of those that are there. */
static int take_dmabufs(struct rebuild *rebuild, bool all)
{
	struct process *process = rebuild->process;

	for (size_t i = 0; i < process->gpu.state.nr_records; i++) {
		const struct bo_number *entry = &rebuild->had[i];
		struct bo *now = process->plan[entry->bo] ? find_current(rebuild, entry) : NULL;

		if (!now && process->plan[entry->bo] && all)
			return fail(-EPROTO, "pid %d: buffer %u is not there, though it was made", process->head.pid,
				    entry->bo);
		if (!now)
			continue;
		process->gpu.state.bos[entry->bo].dmabuf_fd = now->dmabuf_fd;
		now->dmabuf_fd = KFD_NO_FD;
	}
	return 0;
}

static int collect_dmabufs(struct process *process)
{
	_cleanup_(rebuild_end) struct rebuild rebuild = { 0 };
	int err = rebuild_begin(process, &rebuild);

	return err ? err : take_dmabufs(&rebuild, true);
}

/* For memory that is new: tokens of IPC, by which others know a buffer that they may import later. */
static int set_metadata(const struct process *process)
{
	const struct kfd_state *state = &process->gpu.state;
	int err = 0;

	for (size_t i = 0; !err && i < state->nr_records; i++) {
		const struct bo *bo = &state->bos[i];
		int node = topology_find_gpu(process->gpu.nodes, bo->gpu_id);
		_cleanup_close_ int fd = -1;
		uint32_t handle;

		if (!process->plan[i] || (!bo->share.metadata_size && !bo->share.tiling))
			continue;
		fd = node < 0 ? -ENODEV : drm_open_minor(topology_minor(process->gpu.nodes->nodes[node]));
		err = fd < 0 ? fd : gem_import(fd, bo->dmabuf_fd, &handle);
		if (!err)
			err = gem_set_metadata(fd, handle, &bo->share);
		if (err)
			err = fail(err, "pid %d: cannot set the metadata of a buffer of gpu %#x: %m", process->head.pid,
				   bo->gpu_id);
	}
	return err;
}

/* -ENOMEM without a message: the GPU has no room; with one it is the process' own limit. */
static int allocate_freed(struct process *process)
{
	_cleanup_(rebuild_end) struct rebuild rebuild = { 0 };
	int err = rebuild_begin(process, &rebuild), end = 0;

	if (!err) {
		kfd_close_dmabufs(&rebuild.now);
		err = free_leftovers(&rebuild);
		if (!err)
			err = allocate_missing(&rebuild);
		for (size_t i = 0; !end && i < rebuild.nr_placeholders; i++)
			end = calls_free_handle(process, rebuild.placeholders[i]);
	}
	err = err ? err : end;
	if (!err || err == -ENOMEM)
		return err;
	return fail(err, "pid %d: cannot get its GPU memory back: %m", process->head.pid);
}

/* ---- memory that others use meanwhile ---- */

/* What was allocated is freed again, so that others can use it while this one waits. */
static int free_vram_again(struct process *process)
{
	struct kfd_state *state = &process->gpu.state;
	_cleanup_(rebuild_end) struct rebuild rebuild = { 0 };
	int err = rebuild_begin(process, &rebuild);

	kfd_close_dmabufs(state);
	if (!err)
		err = take_dmabufs(&rebuild, false);
	if (!err)
		err = vmm_close_imported(process);
	kfd_close_dmabufs(&rebuild.now);
	kfd_close_dmabufs(state);
	for (size_t i = 0; !err && i < state->nr_records; i++) {
		const struct bo_number *entry = &rebuild.had[i];
		const struct bo *now = process->plan[entry->bo] == BO_FREE ? find_current(&rebuild, entry) : NULL;
		bool kept;

		if (now)
			err = calls_free(process, entry->bo, now->offset, &kept);
	}
	return err;
}

/* ---- the processes ---- */

/* What is half way, before or behind the changes, has all its memory, and some calls left: that is for a resume. */
static int check_phase(const struct batch *batch, const struct process *process)
{
	enum phase phase = process->head.phase;
	pid_t pid = process->head.pid;

	if (process->has_ended)
		return 0;
	if (batch->to == RESUME_FROM_LOCK && phase == PHASE_SUSPENDED)
		return fail(-EBUSY, "pid %d: is suspended: \"restore\" comes before \"unlock\"", pid);
	if (batch->to == RESUME_TO_LOCK && phase != PHASE_SUSPENDED && phase != PHASE_CHANGING && phase != PHASE_LOCKED)
		return fail(-EBUSY, "pid %d: a command is at work, or was killed: run \"amdgpu-checkpoint resume %d\"", pid, pid);
	return 0;
}

static int seize_process(struct batch *batch, struct process *process)
{
	pid_t pid = process->head.pid;
	uint32_t minor = 0;
	int err = process_seize(process);

	if (err == -ENOENT)
		return fail(-EAGAIN, "pid %d: another command has resumed it meanwhile", pid);
	/* The record knows of no change, and the process has the mark: there it has another number. */
	if (!err && process->head.phase == PHASE_COPYING && task_find_mark(pid, -1) >= 0)
		err = fail(-EALREADY, "pid %d: has been suspended in another pid namespace since: resume it there", pid);
	if (!err)
		err = check_phase(batch, process);
	if (!err && process_has_kfd(process)) {
		err = record_read_count(process, &process->nr_bos_now);
		process->has_freed = !err;
		err = err == -ENOENT ? 0 : err; /* nothing was freed */
	}
	if (!err && process->head.nr_devices)
		err = process_look(batch, process);
	if (!err)
		err = freezer_look_at_thread(batch, process);
	if (!err && process->head.phase != PHASE_COPYING)
		inject_adopt(&process->inject, &process->head.thread);
	if (!err)
		err = resets_find(&process->head, &minor);
	if (err || !minor)
		return err;
	/* From here on the record has the numbers of now. */
	process->head.report.reset_minor = minor;
	return resets_note(process);
}

/* Adds the processes of a suspend; with @middle only those that a command has left half way. */
static int add_others(struct batch *batch, uint64_t id, bool middle)
{
	_cleanup_free_ int *pids = NULL;
	struct suspend_target target = { 0 };
	size_t nr = 0;
	int err = suspend_list(id, &pids, &nr);

	target.pids = pids;
	for (size_t i = 0; !err && i < nr; i++) {
		struct record_head head;

		err = record_find(pids[i], &head);
		if (!err && head.id == id &&
		    !(middle && (head.phase == PHASE_SUSPENDED || head.phase == PHASE_LOCKED || hold_is_traced(pids[i]))))
			pids[target.nr++] = pids[i];
		err = err == -ENOENT ? 0 : err;
	}
	err = err ? err : batch_add(batch, &target);
	return err < 0 ? err : 0;
}

/* Who has its memory or descriptors, too (clone()), would run without what is freed. */
static int add_sharers(struct batch *batch, pid_t pid)
{
	_cleanup_free_ int *pids = NULL;
	struct suspend_target target = { 0 };
	int err = task_list_sharers(pid, &pids, &target.nr);

	target.pids = pids;
	err = err ? err : batch_add(batch, &target);
	return err < 0 ? err : 0;
}

/* Leaves out processes without a record, and adds the others of a suspend that was interrupted. */
static int read_records(struct batch *batch)
{
	size_t kept = 0;
	int err = 0, skipped = -ENOENT;

	for (size_t i = 0; !err && i < batch->nr; i++) {
		bool is_added = false;

		err = process_read_head(&batch->processes[i]);
		if (!err)
			err = check_phase(batch, &batch->processes[i]);
		/* An earlier process has added the others of its suspend. */
		for (size_t j = 0; j < kept; j++)
			is_added |= batch->processes[j].head.id == batch->processes[i].head.id;
		if (!err && !is_added)
			err = add_others(batch, batch->processes[i].head.id, true);
		if (!err && !batch->processes[i].has_ended)
			err = add_sharers(batch, batch->processes[i].head.pid);
		if (!err)
			batch->processes[kept++] = batch->processes[i];
		if (err == -EXDEV || err == -ENOENT) {
			skipped = err == -EXDEV ? err : skipped;
			err = 0;
		}
	}
	batch->nr = kept;
	if (!err && kept)
		fail_clear();
	return err ? err : kept ? 0 : skipped;
}

static int allocate_all(struct batch *batch)
{
	int err = 0;

	for (struct process *process = NULL; !err && (process = batch_next(batch, process));) {
		enum phase before = process->head.phase;

		if (!process_lacks_buffers(process))
			continue;
		err = record_set(process, PHASE_CHANGING);
		if (!err)
			err = inject_begin(&process->inject);
		/* A process that can make no calls stays as it is. */
		if (err) {
			record_set(process, before);
			return err;
		}
		err = allocate_freed(process);
		if (!err)
			err = collect_dmabufs(process);
		if (!err)
			err = vmm_import(process);
		if (!err)
			err = set_metadata(process);
	}
	return err;
}

/* Nothing has run: what was allocated is freed, and the processes stay suspended. */
static void free_all_again(struct batch *batch)
{
	for (struct process *process = NULL; (process = batch_next(batch, process));) {
		int err = process_lacks_buffers(process) && process->inject.memory ? free_vram_again(process) : -ENODEV;

		if (!err && !inject_end(&process->inject))
			record_set(process, PHASE_SUSPENDED);
	}
}

/* No call is made meanwhile: a process in a cgroup of its own is frozen. */
static int while_frozen(struct batch *batch, int (*work)(struct batch *batch))
{
	int err, end;

	freezer_freeze_between_calls(batch);
	err = work(batch);
	end = freezer_stop_for_calls(batch);
	return err ? err : end;
}

/* The driver reports memory that is fragmented or reserved, too: each try that fails is followed by a longer pause. */
static int allocate_or_wait(struct batch *batch)
{
	double pause = FIRST_PAUSE;

	for (;;) {
		int err = while_frozen(batch, wait_for_vram);

		if (!err)
			err = allocate_all(batch);
		if (err != -ENOMEM || fail_text()[0])
			return err;
		free_all_again(batch);
		if (monotonic_seconds() + pause > batch->wait_until)
			return wait_fail(batch);
		freezer_freeze_between_calls(batch);
		usleep((useconds_t)(pause * 1e6));
		pause = pause < LAST_PAUSE ? 2 * pause : pause;
	}
}

/* ---- data ---- */

/* The processes with one directory are copied together. */
static int restore_data(struct batch *batch)
{
	int err = 0;

	for (size_t i = 0; !err && i < batch->nr; i++) {
		const char *dir = batch->processes[i].head.dir;
		bool is_first = process_lacks_buffers(&batch->processes[i]);
		_cleanup_close_ int fd = -1;

		for (size_t j = 0; is_first && j < i; j++)
			is_first = !process_lacks_buffers(&batch->processes[j]) || strcmp(batch->processes[j].head.dir, dir);
		if (!is_first)
			continue;
		err = datadir_open(dir, &fd);
		if (err)
			return err;
		criu_use_image_dir(fd);
		err = batch_copy(batch, dir, false);
		criu_use_image_dir(-1);
	}
	return err;
}

/* What was filled before a reset is lost: it is filled anew by another resume. */
static int check_filled(struct batch *batch)
{
	uint32_t minor = 0;
	int err = 0;

	for (struct process *process = NULL; !err && (process = batch_next(batch, process));) {
		if (process_lacks_buffers(process))
			err = resets_find(&process->head, &minor);
		if (!err && minor)
			err = fail(-EIO, "pid %d: the driver has reset the GPU of renderD%u while its memory was filled: it "
				   "stays suspended, resume it again", process->head.pid, minor);
	}
	return err;
}

/* ---- the end ---- */

static int run_all(struct batch *batch)
{
	int err = 0;

	for (struct process *process = NULL; !err && (process = batch_next(batch, process));) {
		bool has_changed = process->head.phase != PHASE_COPYING;
		bool is_marked = has_changed && task_find_mark(process->head.pid, -1) >= 0;

		err = has_changed ? record_set(process, PHASE_RESTORED) : 0;
		if (!err && is_marked)
			err = inject_begin(&process->inject);
		if (!err && is_marked)
			err = calls_unmark(process);
		if (!err && process->inject.is_changed)
			err = inject_end(&process->inject);
		kfd_close_dmabufs(&process->gpu.state);
		if (!err && process_has_kfd(process))
			err = kfd_unpause(process->gpu.file.fd);
		err = err == -EINVAL ? 0 : err; /* they run */
		if (err)
			err = fail(err, "pid %d: cannot let its GPU queues run again: %m", process->head.pid);
	}
	if (err)
		return err;
	/* Nobody runs before the queues of all do. */
	for (struct process *process = NULL; (process = batch_next(batch, process));)
		process->is_released = freezer_release(process);
	freezer_continue_parents(batch);
	for (struct process *process = NULL; (process = batch_next(batch, process));)
		if (process->is_released)
			record_remove(&process->head);
	return 0;
}

/* None has run since all have their buffers. The cgroup that was followed is forgotten. */
static int lock_again(struct batch *batch)
{
	int err = 0;

	for (struct process *process = NULL; !err && (process = batch_next(batch, process));) {
		kfd_close_dmabufs(&process->gpu.state);
		err = calls_end_marked(process);
	}
	if (err)
		return err;
	freezer_freeze(batch);
	for (struct process *process = NULL; !err && (process = batch_next(batch, process));) {
		process->head.by_stop = false;
		process->head.follows[0] = '\0';
		err = record_set(process, PHASE_LOCKED);
		if (!err)
			err = record_remove_data(process);
	}
	return err;
}

static int restore_memory(struct batch *batch, struct suspend_times *times)
{
	int err = allocate_or_wait(batch);

	times->stopped = monotonic_seconds() - batch->began;
	if (!err)
		err = while_frozen(batch, restore_data);
	if (!err)
		err = check_filled(batch);
	if (err)
		free_all_again(batch);
	times->copied = monotonic_seconds() - batch->began;
	if (err)
		return err;
	return batch->to == RESUME_TO_LOCK ? lock_again(batch) : run_all(batch);
}

/* Whether one was killed meanwhile. Until that shows in /proc its GPU may have to let it go. */
static bool has_one_ended(const struct batch *batch, int err)
{
	double end = monotonic_seconds() + (err == -ESRCH ? HOLD_SECONDS : 0);
	bool ret = false;

	do {
		for (struct process *process = NULL; !ret && (process = batch_next(batch, process));)
			ret = process->head.start && !record_is_alive(&process->head);
	} while (!ret && monotonic_seconds() < end && !usleep(WAIT_USEC));
	return ret;
}

static int resume_once(const struct suspend_target *target, enum resume_to to, double wait_until,
		     const struct settings *settings, struct suspend_result *ret, bool *ret_again)
{
	_cleanup_(batch_end) struct batch batch = batch_begin(settings);
	int err;

	batch.to = to;
	batch.wait_until = wait_until;
	batch.keeps_waiter = target->waiter;
	if (target->waiter)
		batch.waiter = *target->waiter;
	err = target->id ? add_others(&batch, target->id, false) : batch_add(&batch, target);
	if (err >= 0)
		err = read_records(&batch);
	if (!err)
		err = batch_read_machine(&batch);
	/* All has been looked at before a process is touched. */
	for (struct process *process = NULL; !err && (process = batch_next(&batch, process));)
		err = seize_process(&batch, process);
	if (!err) {
		err = freezer_stop_for_calls(&batch);
		if (!err)
			err = restore_memory(&batch, &ret->times);
		if (err)
			freezer_freeze(&batch); /* they stay suspended, or wherever they are */
		freezer_end(&batch);
	}
	ret->times.done = monotonic_seconds() - batch.began;
	*ret_again = err && has_one_ended(&batch, err);
	return err ? err : batch_report(&batch, ret);
}

/* A process that is killed meanwhile does not keep the others from being resumed. */
int suspend_resume(const struct suspend_target *target, enum resume_to to, unsigned int wait_seconds,
		   const struct settings *settings, struct suspend_result *ret)
{
	double wait_until = monotonic_seconds() + wait_seconds;
	bool again;
	int err;

	do {
		fail_clear();
		err = resume_once(target, to, wait_until, settings, ret, &again);
	} while (again);
	return err;
}
