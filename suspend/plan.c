// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which buffers go: VRAM that nobody has but the process, and that none of its queues needs: rings, pointers and save
 * areas cannot be unmapped as long as their queue is there. And where the CPU has them mapped, which comes back as it
 * was.
 */
#include <inttypes.h>
#include <sys/mman.h>

#include "share/share.h"
#include "suspend/internal.h"

/* ---- queues ---- */

static bool contains(const struct bo *bo, uint64_t address)
{
	return address >= bo->addr && address - bo->addr < bo->size;
}

/* Marks buffers with an address of a queue. */
static void mark_queue(const struct kfd_state *state, const struct queue_record *queue, bool *marks)
{
	const uint64_t addresses[] = {
		queue->ring_address, queue->read_address, queue->write_address, queue->eop_address, queue->cwsr_address,
	};

	for (size_t i = 0; i < state->nr_records; i++)
		for (size_t j = 0; j < ARRAY_SIZE(addresses); j++)
			marks[i] |= addresses[j] && contains(&state->bos[i], addresses[j]);
}

static int find_queues(const struct kfd_state *state, bool *marks)
{
	struct queue_record queue;
	struct records records;
	int r = records_begin(state, &records);

	if (!r)
		while ((r = records_next_queue(&records, &queue)) == 1)
			mark_queue(state, &queue, marks);
	return r ? fail(r, "pid %u: its queues cannot be read: %m", state->pid) : 0;
}

/* ---- mappings ---- */

static int32_t prot_of(const char *perms)
{
	return (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
	       (perms[2] == 'x' ? PROT_EXEC : 0);
}

static int add_vma(struct process *process, const struct vma_bos *bos, const struct device_vma *vma, const char *perms)
{
	struct record *record = &process->record;
	int node = vma->minor ? topology_find_minor(process->nodes, vma->minor) : -1;
	const struct bo *bo = node < 0 ? NULL : vma_bo(vma, bos, topology_gpu_id(process->nodes->nodes[node]));
	struct suspend_vma *grown = record->vmas;
	size_t nr = record->head.nr_vmas;
	int err;

	if (!bo || !record->goes[bo - record->state.bos])
		return 0;
	err = array_add(grown, nr,
			(struct suspend_vma){
				.start = vma->start,
				.end = vma->end,
				.offset = vma->offset - bo->offset,
				.bo = (uint32_t)(bo - record->state.bos),
				.minor = vma->minor,
				.prot = prot_of(perms),
				.flags = perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE,
			});
	record->vmas = grown;
	record->head.nr_vmas = (uint32_t)nr;
	return err;
}

/* What only smaps tells: protection, and whether children of the process get it. */
static int read_smaps(struct process *process, const struct vma_bos *bos, const struct device_vma *vmas, size_t nr_vmas)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	struct record *record = &process->record;
	bool is_added = false;
	size_t room = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/smaps", process->pid);
	f = fopen(path, "re");
	if (!f)
		return fail(-errno, "pid %d: cannot read its mappings: %m", process->pid);
	while (getline(&line, &room, f) > 0) {
		const struct device_vma *vma;
		uint32_t before = record->head.nr_vmas;
		uint64_t start, end;
		char perms[8];

		if (is_added && !strncmp(line, "VmFlags:", 8))
			record->vmas[before - 1].dontfork = strstr(line, " dc");
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &start, &end, perms) != 3)
			continue;
		vma = bsearch(&start, vmas, nr_vmas, sizeof(*vmas), compare_u64);
		if (vma && add_vma(process, bos, vma, perms))
			return -ENOMEM;
		is_added = record->head.nr_vmas > before;
	}
	return 0;
}

static int compare_vmas(const void *a, const void *b)
{
	const struct suspend_vma *x = a, *y = b;

	return x->bo != y->bo ? (x->bo > y->bo) - (x->bo < y->bo) : (x->start > y->start) - (x->start < y->start);
}

static int find_vmas(struct process *process)
{
	_cleanup_(vma_bos_done) struct vma_bos bos = { 0 };
	_cleanup_free_ struct device_vma *vmas = NULL;
	struct record *record = &process->record;
	size_t nr = 0;
	int err = task_device_vmas(process->pid, &vmas, &nr);

	if (!err)
		err = vma_bos_sort(&record->state, &bos);
	if (!err && nr)
		err = read_smaps(process, &bos, vmas, nr);
	if (!err && record->head.nr_vmas)
		qsort(record->vmas, record->head.nr_vmas, sizeof(*record->vmas), compare_vmas);
	return err;
}

/* ---- all ---- */

static int plan_process(struct process *process)
{
	struct record *record = &process->record;
	const struct kfd_state *state = &record->state;
	_cleanup_free_ bool *by_queues = calloc(state->nr_bos + 1, sizeof(*by_queues));
	int err;

	record->goes = calloc(state->nr_bos + 1, sizeof(*record->goes));
	if (!by_queues || !record->goes)
		return -ENOMEM;
	err = find_queues(state, by_queues);
	for (size_t i = 0; !err && i < state->nr_records; i++) {
		struct bo *bo = &state->bos[i];
		bool is_vram = bo->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM;

		record->goes[i] = is_vram && !by_queues[i] && bo->is_alone && bo->dmabuf_fd != KFD_NO_FD ? GOES : GOES_NOT;
		if (is_vram && !record->goes[i])
			record->head.report.kept_bytes[by_queues[i] ? KEPT_BY_QUEUES : KEPT_BY_SHARING] += bo->size;
	}
	return err ? err : find_vmas(process);
}

/* The states are lent to the survey. */
static int find_alone(struct cut *cut, struct share_request *request, struct gpu_process *lent,
		      struct gpu_process **processes)
{
	request->processes = processes;
	for (size_t i = 0; i < cut->nr; i++) {
		struct process *process = &cut->processes[i];
		struct gpu_process *next = &lent[request->nr_processes];

		if (process->kfd < 0)
			continue;
		next->file = (struct task_file){ process->pid, process->record.head.kfd_number, process->kfd, 0 };
		next->state = process->record.state;
		next->nodes = process->nodes;
		processes[request->nr_processes++] = next;
	}
	return request->nr_processes ? share_find_alone(request) : 0;
}

int plan_all(struct cut *cut, struct share_request *request)
{
	_cleanup_free_ struct gpu_process *lent = calloc(cut->nr + 1, sizeof(*lent));
	_cleanup_free_ struct gpu_process **processes = calloc(cut->nr + 1, sizeof(*processes));
	int err = lent && processes ? find_alone(cut, request, lent, processes) : -ENOMEM;

	for (size_t i = 0; !err && i < cut->nr; i++)
		if (cut->processes[i].kfd >= 0)
			err = plan_process(&cut->processes[i]);
	return err;
}
