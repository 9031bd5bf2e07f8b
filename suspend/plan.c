// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which buffers are freed: VRAM that no other process has, and that no queue of this one needs: rings, pointers and
 * save areas cannot be unmapped as long as their queue is there. And where the CPU has them mapped, which a resume
 * restores.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>

#include "share/share.h"
#include "suspend/internal.h"

/* ---- queues ---- */

/* Marks buffers with an address of a queue. */
static int find_queues(const struct process *process, bool *marks)
{
	const struct kfd_state *state = &process->gpu.state;

	for (uint32_t k = 0; k < state->nr_queues; k++) {
		const struct queue_record *queue = &state->queues[k];
		const uint64_t addresses[] = {
			queue->ring_address, queue->read_address, queue->write_address, queue->eop_address, queue->cwsr_address,
		};

		for (size_t j = 0; j < ARRAY_SIZE(addresses); j++) {
			uint64_t address = addresses[j];
			uint32_t in_vmm = address ? vmm_bo_at(process, address) : NO_BO;

			for (size_t i = 0; address && i < state->nr_records; i++)
				marks[i] |= address >= state->bos[i].addr && address - state->bos[i].addr < state->bos[i].size;
			if (in_vmm != NO_BO)
				marks[in_vmm] = true;
		}
	}
	return state->is_known ? 0 : fail(-EPROTO, "pid %u: its queues cannot be read: %m", state->pid);
}

/* ---- mappings ---- */

/* The BO that is mapped there; NULL: none of the process. */
static struct bo *mapped_bo(struct process *process, const struct vma_bos *bos, const struct device_vma *vma)
{
	int node = vma->minor ? topology_find_minor(process->gpu.nodes, vma->minor) : -1;
	const struct bo *bo = node < 0 ? NULL : vma_bo(vma, bos, topology_gpu_id(process->gpu.nodes->nodes[node]));

	return bo ? &process->gpu.state.bos[bo - process->gpu.state.bos] : NULL;
}

static int add_vma(struct process *process, const struct vma_bos *bos, const struct device_vma *vma, const char *perms)
{
	const struct bo *bo = mapped_bo(process, bos, vma);
	struct suspend_vma *grown = process->vmas;
	size_t nr = process->head.nr_vmas;
	int err;

	if (!bo || !process->plan[bo - process->gpu.state.bos])
		return 0;
	err = array_add(grown, nr,
			(struct suspend_vma){
				.start = vma->start,
				.end = vma->end,
				.offset = vma->offset - bo->offset,
				.bo = (uint32_t)(bo - process->gpu.state.bos),
				.minor = vma->minor,
				.prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
					(perms[2] == 'x' ? PROT_EXEC : 0),
				.flags = perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE,
			});
	process->vmas = grown;
	process->head.nr_vmas = (uint32_t)nr;
	return err;
}

static int compare_vmas(const void *a, const void *b)
{
	const struct suspend_vma *x = a, *y = b;

	return x->bo != y->bo ? (x->bo > y->bo) - (x->bo < y->bo) : (x->start > y->start) - (x->start < y->start);
}

/* smaps alone has the key of protection, and whether children get a mapping. mlock() does not work on these. */
static int find_vmas(struct process *process, const struct vma_bos *bos)
{
	_cleanup_free_ struct device_vma *vmas = NULL;
	_cleanup_free_ char *line = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	bool is_added = false;
	size_t nr = 0, room = 0;
	int err = task_device_vmas(process->head.pid, &vmas, &nr);

	if (err || !nr)
		return err;
	f = proc_file(process->head.pid, "smaps");
	if (!f)
		return fail(-errno, "pid %d: cannot read its mappings: %m", process->head.pid);
	while (getline(&line, &room, f) > 0) {
		const struct device_vma *vma;
		uint32_t before = process->head.nr_vmas;
		uint64_t start, end;
		char perms[8];

		if (is_added)
			sscanf(line, "ProtectionKey: %d", &process->vmas[before - 1].key);
		if (is_added && !strncmp(line, "VmFlags:", 8))
			process->vmas[before - 1].dontfork = strstr(line, " dc");
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &start, &end, perms) != 3)
			continue;
		vma = bsearch(&start, vmas, nr, sizeof(*vmas), compare_u64);
		if (vma && add_vma(process, bos, vma, perms))
			return -ENOMEM;
		is_added = process->head.nr_vmas > before;
	}
	if (process->head.nr_vmas)
		qsort(process->vmas, process->head.nr_vmas, sizeof(*process->vmas), compare_vmas);
	return 0;
}

static bool program_of(pid_t pid, char ret[PATH_MAX])
{
	char path[64];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	length = readlink(path, ret, PATH_MAX - 1);
	ret[length < 0 ? 0 : length] = '\0';
	return length >= 0;
}

/*
 * Memory that a forked process has mapped, too, is not free when this one frees it, and each would go on with memory
 * of its own. Such a process was started later, and runs the same program: exec() drops the mappings. No other process
 * is asked for its mappings: that waits for locks that its threads may hold.
 */
static int find_inherited(struct process *process, const struct vma_bos *bos)
{
	char program[PATH_MAX], other[PATH_MAX];
	_cleanup_free_ int *pids = NULL;
	size_t nr = 0;
	int err = list_numbers(AT_FDCWD, "/proc", &pids, &nr);

	if (err)
		return fail(err, "cannot list /proc: %m");
	if (!program_of(process->head.pid, program))
		return fail(errno_or_eio(), "pid %d: cannot tell which program it runs: %m", process->head.pid);
	for (size_t i = 0; i < nr; i++) {
		_cleanup_free_ struct device_vma *vmas = NULL;
		size_t nr_vmas = 0;

		if (pids[i] == process->head.pid || !program_of(pids[i], other) || strcmp(program, other) ||
		    process_start(pids[i]) < process->head.start)
			continue;
		err = task_device_vmas(pids[i], &vmas, &nr_vmas);
		if (err && process_start(pids[i]))
			return err;
		fail_clear(); /* it has ended */
		for (size_t j = 0; j < nr_vmas; j++) {
			struct bo *bo = mapped_bo(process, bos, &vmas[j]);

			if (bo)
				bo->is_alone = false;
		}
	}
	return 0;
}

/* ---- all ---- */

static int plan_process(struct process *process, const struct share_request *request, const struct share_names *names)
{
	_cleanup_(vma_bos_done) struct vma_bos bos = { 0 };
	const struct kfd_state *state = &process->gpu.state;
	_cleanup_free_ bool *by_queues = calloc(state->nr_bos + 1, sizeof(*by_queues));
	int err;

	if (!process->plan)
		process->plan = calloc(state->nr_bos + 1, sizeof(*process->plan));
	if (!by_queues || !process->plan)
		return -ENOMEM;
	err = vma_bos_sort(state, &bos);
	if (!err)
		err = find_inherited(process, &bos);
	if (!err)
		err = vmm_look(process, request, names);
	if (!err)
		err = find_queues(process, by_queues);
	for (size_t i = 0; !err && i < state->nr_records; i++) {
		struct bo *bo = &state->bos[i];
		bool is_vram = bo->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM;

		process->plan[i] =
			is_vram && !by_queues[i] && bo->is_alone && bo->dmabuf_fd != KFD_NO_FD ? BO_FREE : BO_LEAVE;
		if (is_vram && !process->plan[i])
			process->head.report.kept_bytes[by_queues[i] ? KEPT_BY_QUEUES : KEPT_BY_SHARING] += bo->size;
	}
	return err ? err : find_vmas(process, &bos);
}

int plan_all(struct batch *batch, struct share_request *request)
{
	_cleanup_free_ struct gpu_process **list = NULL;
	_cleanup_(share_names_done) struct share_names names = { 0 };
	int err = 0;

	for (struct process *process = NULL; !err && (process = batch_next(batch, process));)
		if (process_has_kfd(process))
			err = array_add(list, request->nr_processes, &process->gpu);
	request->processes = list;
	if (!err && request->nr_processes)
		err = share_find_alone(request, &names);
	for (struct process *process = NULL; !err && (process = batch_next(batch, process));)
		if (process_has_kfd(process))
			err = plan_process(process, request, &names);
	return err;
}
