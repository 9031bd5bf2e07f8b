// SPDX-License-Identifier: GPL-2.0-only
/*
 * The order of a resume: seize, have the buffers again, fill them, let the queues run, then the threads. It begins
 * wherever a suspend or a resume has got to: which buffers are there is asked of the kernel.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>

#include "amdgpu_plugin_drm.h"
#include "suspend/internal.h"

#define MAX_OFF	  4096 /* so many buffers a process may have made since, or freed, that somebody let run */
#define FIRST_PAUSE 0.5 /* seconds */
#define LAST_PAUSE  16
#define WAIT_USEC   10000

/* ---- what is there ---- */

/* What a process has now, and what it had. */
struct comeback {
	struct process *process;
	struct kfd_state now;
	struct bo_number *had, *has; /* of its buffers before, and now */
	uint64_t *fillers;	     /* handles that are taken only to be passed over */
	size_t nr_fillers;
};

static void comeback_end(struct comeback *back)
{
	kfd_state_done(&back->now);
	free(back->had);
	free(back->has);
	free(back->fillers);
}

static int comeback_ask(struct process *process, struct comeback *ret)
{
	const struct kfd_state *state = &process->gpu.state;
	int err = kfd_checkpoint_again(process->gpu.file.fd, process->head.pid, state, process->nr_bos_now, MAX_OFF,
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
static const struct bo *find_now(const struct comeback *back, const struct bo_number *entry)
{
	const struct bo_number *found = find_number(back->has, &back->now, entry->handle);
	const struct bo *bo = &back->process->gpu.state.bos[entry->bo], *now = found ? &back->now.bos[found->bo] : NULL;

	return now && now->addr == bo->addr && now->size == bo->size && now->alloc_flags == bo->alloc_flags ? now : NULL;
}

/* As calls_fill_number() makes it: without an address, and mapped nowhere. */
static bool is_filler(const struct kfd_state *now, const struct bo_number *entry)
{
	const struct bo *bo = &now->bos[entry->bo];
	struct bo_record record;

	return !bo->addr && bo->size == (uint64_t)sysconf(_SC_PAGESIZE) && !(bo->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) &&
	       bo->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_GTT && !records_bo(now, entry->bo, &record) &&
	       !records_nr_mapped(&record);
}

/*
 * What the process has and had not is a filler, of a resume that was killed. Anything else it has made itself: that stays,
 * but where it has the number of a buffer that is to be made again.
 */
static int drop_left(struct comeback *back)
{
	pid_t pid = back->process->head.pid;
	int err = 0, nr_own = 0;

	for (size_t i = 0; !err && i < back->now.nr_records; i++) {
		const struct bo_number *known = find_number(back->had, &back->process->gpu.state, back->has[i].handle);
		bool is_own = !is_filler(&back->now, &back->has[i]);

		if (known && find_now(back, known))
			continue;
		if (known && is_own)
			return fail(-EEXIST, "pid %d: has run meanwhile, and has a new buffer with the number %#" PRIx64
				    " of one that was freed: it cannot be resumed; end it", pid, known->handle);
		nr_own += is_own;
		if (!is_own)
			err = calls_free_number(back->process, back->has[i].handle);
	}
	if (!err && nr_own)
		pr_warn("pid %d: has run meanwhile (it was continued, or its cgroup thawed): %d buffers that it has "
			"made since stay\n", pid, nr_own);
	return err;
}

/* ---- buffers ---- */

/* Takes the numbers from @from on, up to that of an entry. One that is taken, and by nothing that is listed, is passed
 * over. */
static int pass_numbers(struct comeback *back, uint64_t from, uint64_t end)
{
	uint64_t handle = 0;
	int err = 0;

	for (; !err && from < end; from = handle + 1) {
		err = calls_fill_number(back->process, (uint32_t)(end >> 32), &handle);
		if (!err && handle < end)
			err = array_add(back->fillers, back->nr_fillers, handle);
		else if (!err)
			err = calls_free_number(back->process, handle);
	}
	return err;
}

/* The KFD gives out the lowest number that is free: what was free below that of entry @i is taken. *@next: up to where
 * it is. */
static int pass_gaps(struct comeback *back, size_t i, size_t *next)
{
	int err = 0;

	for (; !err && *next <= i; (*next)++) {
		const struct bo_number *entry = &back->had[*next];
		uint64_t from = kfd_handle((uint32_t)(entry->handle >> 32), 0);

		if (*next && entry[-1].handle >= from)
			from = entry[-1].handle + 1;
		if (entry->handle >> 32 == back->had[i].handle >> 32)
			err = pass_numbers(back, from, entry->handle);
	}
	return err;
}

static int make_missing(struct comeback *back)
{
	size_t next = 0;
	int err = 0;

	for (size_t i = 0; !err && i < back->process->gpu.state.nr_records; i++) {
		const struct bo_number *entry = &back->had[i];
		const struct bo *now;

		if (back->process->goes[entry->bo] != GOES)
			continue;
		now = find_now(back, entry);
		if (!now)
			err = pass_gaps(back, i, &next);
		if (!err)
			err = calls_make(back->process, entry->bo, now);
	}
	return err;
}

static int drop_fillers(struct comeback *back)
{
	int err = 0;

	for (size_t i = 0; !err && i < back->nr_fillers; i++)
		err = calls_free_number(back->process, back->fillers[i]);
	return err;
}

static void take_dmabuf(struct comeback *back, const struct bo_number *entry, const struct bo *now)
{
	int *taken = &back->now.bos[now - back->now.bos].dmabuf_fd;

	back->process->gpu.state.bos[entry->bo].dmabuf_fd = *taken;
	*taken = KFD_NO_FD;
}

/* The dma-bufs of the buffers that are back. */
static int take_dmabufs(struct process *process)
{
	_cleanup_(comeback_end) struct comeback back = { 0 };
	int err = comeback_ask(process, &back);

	for (size_t i = 0; !err && i < process->gpu.state.nr_records; i++) {
		const struct bo_number *entry = &back.had[i];
		const struct bo *now = find_now(&back, entry);

		if (!process->goes[entry->bo])
			continue;
		if (!now)
			return fail(-EPROTO, "pid %d: buffer %u is not there, though it was made", process->head.pid,
				    entry->bo);
		take_dmabuf(&back, entry, now);
	}
	return err;
}

/* Of memory that is new. The numbers of the process' own files are not touched. */
static int set_metadata(const struct process *process, const struct bo *bo)
{
	int node = topology_find_gpu(process->gpu.nodes, bo->gpu_id);
	_cleanup_close_ int fd = node < 0 ? -ENODEV : drm_open_minor(topology_minor(process->gpu.nodes->nodes[node]));
	uint32_t handle;
	int err = fd < 0 ? fd : gem_import(fd, bo->dmabuf_fd, &handle);

	if (!err)
		err = gem_set_metadata(fd, handle, &bo->share);
	return err ? fail(err, "pid %d: cannot set the metadata of a buffer of gpu %#x: %m", process->head.pid, bo->gpu_id) : 0;
}

/* Tokens of IPC, by which others know a buffer that they may import later. */
static int set_all_metadata(const struct process *process)
{
	const struct kfd_state *state = &process->gpu.state;
	int err = 0;

	for (size_t i = 0; !err && i < state->nr_records; i++)
		if (process->goes[i] && (state->bos[i].share.metadata_size || state->bos[i].share.tiling))
			err = set_metadata(process, &state->bos[i]);
	return err;
}

static int have_again(struct process *process)
{
	_cleanup_(comeback_end) struct comeback back = { 0 };
	int err = comeback_ask(process, &back), end;

	if (err)
		return err;
	kfd_close_dmabufs(&back.now);
	err = drop_left(&back);
	if (!err)
		err = make_missing(&back);
	end = drop_fillers(&back);
	return err ? err : end;
}

/* ---- memory that others have meanwhile ---- */

/* What was made is given up again, so that others can use it while this one waits. */
static int vram_give_up_again(struct process *process)
{
	struct kfd_state *state = &process->gpu.state;
	struct comeback back = { 0 };
	int err = comeback_ask(process, &back);

	kfd_close_dmabufs(state);
	for (size_t i = 0; !err && i < state->nr_records; i++) {
		const struct bo *now = process->goes[back.had[i].bo] ? find_now(&back, &back.had[i]) : NULL;

		if (now)
			take_dmabuf(&back, &back.had[i], now);
	}
	if (!err)
		err = vmm_free_again(process);
	kfd_close_dmabufs(&back.now);
	kfd_close_dmabufs(state);
	for (size_t i = 0; !err && i < state->nr_records; i++) {
		const struct bo_number *entry = &back.had[i];
		const struct bo *now = process->goes[entry->bo] == GOES ? find_now(&back, entry) : NULL;
		bool kept;

		if (now)
			err = calls_free(process, entry->bo, now->offset, &kept);
	}
	comeback_end(&back);
	return err;
}

/* -ENOMEM without a message: the GPU has no room; with one it is the process' own limit. */
static int make_one(struct process *process)
{
	int err = have_again(process);

	if (err == -ENOMEM)
		return err;
	return err ? fail(err, "pid %d: cannot get its GPU memory back: %m", process->head.pid) : 0;
}

/* ---- the processes ---- */

/* Nothing has changed in this process, as far as this record knows: then somebody else has suspended it, from a pid
 * namespace in which it has another number. */
static int check_owner(const struct process *process)
{
	pid_t pid = process->head.pid;

	if (process->head.phase != PHASE_COPYING || task_find_mark(pid, -1) < 0)
		return 0;
	return fail(-EALREADY, "pid %d: has been suspended in another pid namespace since: resume it there", pid);
}

/* Where only some phases are an answer. What is half way has all its memory before or behind its changes, and some calls left. */
static int check_phase(const struct cut *cut, const struct process *process)
{
	enum phase phase = process->head.phase;
	pid_t pid = process->head.pid;

	if (process->has_ended)
		return 0;
	if (cut->to == BACK_TO_RUN_FROM_LOCK && phase == PHASE_SUSPENDED)
		return fail(-EBUSY, "pid %d: is suspended: \"restore\" comes before \"unlock\"", pid);
	if (cut->to == BACK_TO_LOCK && phase != PHASE_SUSPENDED && phase != PHASE_CHANGING && phase != PHASE_LOCKED)
		return fail(-EBUSY, "pid %d: a command is at work, or was killed: run \"amdgpu-checkpoint resume %d\"", pid, pid);
	return 0;
}

/* What is not counted is whole. */
static int read_count(struct process *process)
{
	int err = record_read_count(process, &process->nr_bos_now);

	process->has_lost = !err;
	return err == -ENOENT ? 0 : err;
}

/* From here on the record has the numbers of now. */
static int note_resets(struct process *process)
{
	uint32_t minor = 0;
	int err = resets_find(&process->head, &minor);

	if (err || !minor)
		return err;
	process->head.report.reset_minor = minor;
	return resets_note(process);
}

static int take_process(struct cut *cut, struct process *process)
{
	int err = process_take(process);

	if (err == -ENOENT)
		return fail(-EAGAIN, "pid %d: another command has resumed it meanwhile", process->head.pid);
	if (!err)
		err = check_owner(process);
	if (!err)
		err = check_phase(cut, process);
	if (!err && process_has_kfd(process))
		err = read_count(process);
	if (!err && process->head.nr_devices)
		err = process_look(cut, process);
	if (!err)
		err = freezer_look_at_thread(cut, process);
	if (!err && process->head.phase != PHASE_COPYING)
		inject_adopt(&process->inject, &process->head.thread);
	return err ? err : note_resets(process);
}

/* Adds the processes of a suspend; with @middle only those that are not suspended, and with which no command is at work. */
static int add_others(struct cut *cut, uint64_t id, bool middle)
{
	_cleanup_free_ int *pids = NULL;
	struct suspend_target target = { 0 };
	size_t nr = 0;
	int err = record_list(id, &pids, &nr);

	target.pids = pids;
	for (size_t i = 0; !err && i < nr; i++) {
		struct record_head head;

		err = record_find(pids[i], &head);
		if (!err && head.id == id &&
		    !(middle && (head.phase == PHASE_SUSPENDED || head.phase == PHASE_LOCKED || hold_is_traced(pids[i]))))
			pids[target.nr++] = pids[i];
		err = err == -ENOENT ? 0 : err;
	}
	err = err ? err : cut_add(cut, &target);
	return err < 0 ? err : 0;
}

/* Whether an earlier one has brought the others of its suspend along. */
static bool is_brought(const struct cut *cut, size_t nr, uint64_t id)
{
	for (size_t i = 0; i < nr; i++)
		if (cut->processes[i].head.id == id)
			return true;
	return false;
}

/* A process that is not suspended is left out, and what is in the middle comes with others of its suspend. */
static int read_records(struct cut *cut)
{
	size_t kept = 0;
	int err = 0, skipped = -ENOENT;

	for (size_t i = 0; !err && i < cut->nr; i++) {
		err = process_find(&cut->processes[i]);
		if (!err)
			err = check_phase(cut, &cut->processes[i]);
		if (!err && !is_brought(cut, kept, cut->processes[i].head.id))
			err = add_others(cut, cut->processes[i].head.id, true);
		if (!err)
			cut->processes[kept++] = cut->processes[i];
		if (err == -EXDEV || err == -ENOENT) {
			skipped = err == -EXDEV ? err : skipped;
			err = 0;
		}
	}
	cut->nr = kept;
	if (!err && kept)
		fail_clear();
	return err ? err : kept ? 0 : skipped;
}

/* All is looked at before a process is touched. */
static int take_all(struct cut *cut, const struct suspend_target *target)
{
	int err = target->id ? add_others(cut, target->id, false) : cut_add(cut, target);

	if (err >= 0)
		err = read_records(cut);
	if (!err)
		err = cut_read_machine(cut);
	for (size_t i = 0; !err && i < cut->nr; i++)
		if (!cut->processes[i].has_ended)
			err = take_process(cut, &cut->processes[i]);
	return err;
}

/* Who can make none stays as it is. */
static int begin_calls(struct process *process)
{
	enum phase before = process->head.phase;
	int err = record_set(process, PHASE_CHANGING);

	if (!err)
		err = inject_begin(&process->inject);
	if (err)
		record_set(process, before);
	return err;
}

static int make_all(struct cut *cut)
{
	int err = 0;

	for (size_t i = 0; !err && i < cut->nr; i++) {
		struct process *process = &cut->processes[i];

		if (!process_is_to_be_made(process))
			continue;
		err = begin_calls(process);
		if (!err)
			err = make_one(process);
		if (!err)
			err = take_dmabufs(process);
		if (!err)
			err = vmm_make(process);
		if (!err)
			err = set_all_metadata(process);
	}
	return err;
}

/* Nothing has run: what was made goes, and the processes stay suspended. */
static void undo_all(struct cut *cut)
{
	for (size_t i = 0; i < cut->nr; i++) {
		struct process *process = &cut->processes[i];
		int err = process_is_to_be_made(process) && process->inject.memory ? vram_give_up_again(process) : -ENODEV;

		if (!err && !inject_end(&process->inject))
			record_set(process, PHASE_SUSPENDED);
	}
}

/* No call is made meanwhile: whoever is in a cgroup of its own is frozen in it. */
static int while_frozen(struct cut *cut, int (*work)(struct cut *cut))
{
	int err, end;

	freezer_freeze_between_calls(cut);
	err = work(cut);
	end = freezer_stop_for_calls(cut);
	return err ? err : end;
}

/* Memory can be in pieces, or reserved, so that the driver's figures say too much: each try that fails is followed by a
 * longer pause. */
static int have_all_again(struct cut *cut)
{
	double pause = FIRST_PAUSE;
	int err = while_frozen(cut, wait_for_vram);

	if (!err)
		err = make_all(cut);
	while (err == -ENOMEM && !fail_text()[0]) {
		undo_all(cut);
		if (monotonic_seconds() + pause > cut->wait_until)
			return wait_fail(cut);
		usleep((useconds_t)(pause * 1e6));
		pause = pause < LAST_PAUSE ? 2 * pause : pause;
		err = while_frozen(cut, wait_for_vram);
		if (!err)
			err = make_all(cut);
	}
	return err;
}

/* ---- contents ---- */

static int fill_from(struct cut *cut, const char *dir)
{
	_cleanup_close_ int fd = -1;
	int err = datadir_open(dir, &fd);

	if (err)
		return err;
	criu_use_image_dir(fd);
	err = cut_copy(cut, dir, false);
	criu_use_image_dir(-1);
	return err;
}

/* Those of one directory at the same time. */
static int fill_all(struct cut *cut)
{
	int err = 0;

	for (size_t i = 0; !err && i < cut->nr; i++) {
		const char *dir = cut->processes[i].head.dir;
		bool is_first = process_is_to_be_made(&cut->processes[i]);

		for (size_t j = 0; j < i; j++)
			is_first = is_first &&
				   !(process_is_to_be_made(&cut->processes[j]) && !strcmp(cut->processes[j].head.dir, dir));
		if (is_first)
			err = fill_from(cut, dir);
	}
	return err;
}

/* What was filled before a reset is lost: it is filled anew by another resume. */
static int check_filled(struct cut *cut)
{
	uint32_t minor = 0;
	int err = 0;

	for (size_t i = 0; !err && i < cut->nr; i++) {
		struct process *process = &cut->processes[i];

		if (process_is_to_be_made(process))
			err = resets_find(&process->head, &minor);
		if (!err && minor)
			err = fail(-EIO, "pid %d: the driver has reset the GPU of renderD%u while its memory was filled: it "
				   "stays suspended, resume it again", process->head.pid, minor);
	}
	return err;
}

/* ---- the end ---- */

static int finish_calls(struct process *process)
{
	bool is_marked = task_find_mark(process->head.pid, -1) >= 0;
	int err = record_set(process, PHASE_WHOLE);

	if (!err && is_marked)
		err = inject_begin(&process->inject);
	if (!err && is_marked)
		err = calls_unmark(process);
	if (!err && process->inject.is_changed)
		err = inject_end(&process->inject);
	return err;
}

static int queues_run(struct process *process)
{
	bool is_changed = process->head.phase != PHASE_COPYING;
	int err = is_changed ? finish_calls(process) : 0;

	kfd_close_dmabufs(&process->gpu.state);
	if (!err && process_has_kfd(process))
		err = kfd_unpause(process->gpu.file.fd);
	if (err && err != -EINVAL)
		return fail(err, "pid %d: cannot let its GPU queues run again: %m", process->head.pid);
	return 0;
}

static int let_all_run(struct cut *cut)
{
	int err = 0;

	for (size_t i = 0; !err && i < cut->nr; i++)
		if (!cut->processes[i].has_ended)
			err = queues_run(&cut->processes[i]);
	/* Nobody runs before the queues of all do. */
	for (size_t i = 0; !err && i < cut->nr; i++) {
		struct process *process = &cut->processes[i];

		if (!process->has_ended && freezer_release(process))
			record_remove(&process->head);
	}
	return err;
}

/* Nobody has run since all have their buffers. Who froze them is no longer followed. */
static int lock_all_again(struct cut *cut)
{
	int err = 0;

	for (size_t i = 0; !err && i < cut->nr; i++) {
		kfd_close_dmabufs(&cut->processes[i].gpu.state);
		if (!cut->processes[i].has_ended)
			err = calls_end_marked(&cut->processes[i]);
	}
	if (err)
		return err;
	freezer_freeze(cut);
	for (size_t i = 0; !err && i < cut->nr; i++) {
		struct process *process = &cut->processes[i];

		if (process->has_ended)
			continue;
		process->head.by_stop = false;
		process->head.follows[0] = '\0';
		err = record_set(process, PHASE_LOCKED);
		if (!err)
			err = record_remove_data(process);
	}
	return err;
}

static int make_and_fill(struct cut *cut, struct suspend_times *times)
{
	int err = have_all_again(cut);

	times->stopped = monotonic_seconds() - cut->began;
	if (!err)
		err = while_frozen(cut, fill_all);
	if (!err)
		err = check_filled(cut);
	if (err)
		undo_all(cut);
	times->copied = monotonic_seconds() - cut->began;
	if (err)
		return err;
	return cut->to == BACK_TO_LOCK ? lock_all_again(cut) : let_all_run(cut);
}

/* Whether one was killed meanwhile. Until that shows in /proc its GPU may have to let it go. */
static bool has_one_ended(const struct cut *cut, int err)
{
	double end = monotonic_seconds() + (err == -ESRCH ? HOLD_SECONDS : 0);
	bool ret = false;

	do {
		for (size_t i = 0; !ret && i < cut->nr; i++)
			ret = cut->processes[i].was_there && !record_is_alive(&cut->processes[i].head);
	} while (!ret && monotonic_seconds() < end && !usleep(WAIT_USEC));
	return ret;
}

static int back_once(const struct suspend_target *target, enum back_to to, double wait_until,
		     const struct settings *settings, struct suspend_result *ret, bool *ret_again)
{
	_cleanup_(cut_end) struct cut cut = cut_begin(settings);
	int err;

	cut.to = to;
	cut.wait_until = wait_until;
	cut.keeps_waiter = target->waiter;
	if (target->waiter)
		cut.waiter = *target->waiter;
	err = take_all(&cut, target);
	if (!err) {
		err = freezer_stop_for_calls(&cut);
		if (!err)
			err = make_and_fill(&cut, &ret->times);
		if (err)
			freezer_freeze(&cut); /* they stay suspended, or wherever they are */
		freezer_end(&cut);
	}
	ret->times.done = monotonic_seconds() - cut.began;
	*ret_again = err && has_one_ended(&cut, err);
	return err ? err : cut_report(&cut, ret);
}

/* Who is killed meanwhile does not keep the others from coming back. */
static int back(const struct suspend_target *target, enum back_to to, unsigned int wait_seconds,
		const struct settings *settings, struct suspend_result *ret)
{
	double wait_until = monotonic_seconds() + wait_seconds;
	bool again = false;
	int err = back_once(target, to, wait_until, settings, ret, &again);

	while (again) {
		fail_clear();
		err = back_once(target, to, wait_until, settings, ret, &again);
	}
	return err;
}

int suspend_back(const struct suspend_target *target, unsigned int wait_seconds, const struct settings *settings,
		 struct suspend_result *ret)
{
	return back(target, BACK_TO_RUN, wait_seconds, settings, ret);
}

int suspend_unlock(const struct suspend_target *target, const struct settings *settings, struct suspend_result *ret)
{
	return back(target, BACK_TO_RUN_FROM_LOCK, 0, settings, ret);
}

int suspend_restore(const struct suspend_target *target, unsigned int wait_seconds, const struct settings *settings,
		    struct suspend_result *ret)
{
	return back(target, BACK_TO_LOCK, wait_seconds, settings, ret);
}
