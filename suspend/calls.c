// SPDX-License-Identifier: GPL-2.0-only
/*
 * The calls that a process is made to make: it frees a buffer, allocates it again at its address and with its number,
 * and opens the mark by which others know that it is suspended.
 *
 * Each call can be the last: what calls_free() has begun, calls_allocate() reverses, however far it got.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "suspend/internal.h"

static int bo_record(struct process *process, size_t bo, struct bo_record *ret, uint64_t *ret_handle)
{
	int err = records_bo(&process->gpu.state, bo, ret);

	if (!err)
		*ret_handle = kfd_handle(process->gpu.state.bos[bo].gpu_id, ret->handle);
	return err;
}

/* ---- on the GPU ---- */

static int map_or_unmap(struct process *process, const struct bo_record *record, uint64_t handle, unsigned long op)
{
	struct kfd_ioctl_map_memory_to_gpu_args args = {
		.handle = handle,
		.device_ids_array_ptr = process->inject.memory + INJECT_DATA,
		.n_devices = records_nr_mapped(record),
	};
	int err;

	if (!args.n_devices)
		return 0;
	err = inject_write(&process->inject, INJECT_DATA, record->mapped_gpus, sizeof(record->mapped_gpus));
	return err ? err : inject_kfd(&process->inject, op, &args);
}

/* A call that makes a buffer (@step: 1) or takes one (-1). */
static int counted_call(struct process *process, int step, unsigned long op, void *args)
{
	uint32_t before = process->nr_bos_now, after = before + (uint32_t)step;
	int err = record_write_count(process, after);

	if (!err)
		err = inject_kfd(&process->inject, op, args);
	process->nr_bos_now = err ? before : after;
	return err;
}

int calls_free_handle(struct process *process, uint64_t handle)
{
	struct kfd_ioctl_free_memory_of_gpu_args args = { .handle = handle };

	return counted_call(process, -1, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &args);
}

/* ---- for the CPU ---- */

/* The mappings of a buffer, which are neighbours. */
static const struct suspend_vma *first_vma(const struct process *process, size_t bo)
{
	return process->vmas + record_first(process->vmas, process->head.nr_vmas, sizeof(*process->vmas),
					    offsetof(struct suspend_vma, bo), (uint32_t)bo);
}

static bool is_of(const struct process *process, const struct suspend_vma *vma, size_t bo)
{
	return vma < process->vmas + process->head.nr_vmas && vma->bo == bo;
}

/* Addresses stay taken. */
static int cover(struct process *process, const struct suspend_vma *vma)
{
	const uint64_t args[6] = {
		vma->start,   vma->end - vma->start, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
		(uint64_t)-1,
	};

	return inject_call(&process->inject, SYS_mmap, args, NULL);
}

/* The kernel lets only that file map a buffer by which the KFD knows the process: the next time it is the first one. */
static int map_by_any_file(struct process *process, uint32_t minor, uint64_t args[6])
{
	int err = -EBADF;

	for (size_t i = 0; i < process->nr_fds; i++) {
		const struct render_fd fd = process->fds[i];

		if (fd.minor != minor)
			continue;
		args[4] = (uint64_t)fd.number;
		err = inject_call(&process->inject, SYS_mmap, args, NULL);
		if (process->inject.is_lost)
			return err;
		if (err)
			continue;
		memmove(process->fds + 1, process->fds, i * sizeof(fd));
		process->fds[0] = fd;
		return 0;
	}
	return err;
}

static int map_vma(struct process *process, const struct suspend_vma *vma, uint64_t offset)
{
	uint64_t args[6] = {
		vma->start, vma->end - vma->start, (uint64_t)vma->prot, (uint64_t)vma->flags | MAP_FIXED,
		0,	    offset + vma->offset,
	};
	const uint64_t advice[6] = { vma->start, vma->end - vma->start, MADV_DONTFORK };
	const uint64_t key[6] = { vma->start, vma->end - vma->start, (uint64_t)vma->prot, (uint64_t)vma->key };
	int err = map_by_any_file(process, vma->minor, args);

	if (err == -ENOMEM)
		return inject_fail(&process->inject, err, "map its buffers again");
	if (!err && vma->key)
		err = inject_call(&process->inject, SYS_pkey_mprotect, key, NULL);
	return err || !vma->dontfork ? err : inject_call(&process->inject, SYS_madvise, advice, NULL);
}

/* ---- a buffer ---- */

int calls_free(struct process *process, size_t bo, uint64_t offset, bool *ret_kept)
{
	const struct suspend_vma *vma = first_vma(process, bo);
	uint64_t spare[6] = {
		process->inject.memory + INJECT_SPARE, INJECT_MEMORY - INJECT_SPARE,
		PROT_NONE, MAP_SHARED | MAP_FIXED, 0, offset,
	};
	struct bo_record buffer;
	uint64_t handle = 0;
	int err = bo_record(process, bo, &buffer, &handle);

	*ret_kept = false;
	/* Could its mappings be restored? The file may be closed since. This one goes with the memory for calls. */
	if (!err && is_of(process, vma, bo))
		err = map_by_any_file(process, vma->minor, spare);
	/* From here on it has lost something. */
	if (!err)
		err = record_write_count(process, process->nr_bos_now);
	if (!err)
		err = map_or_unmap(process, &buffer, handle, AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU);
	if (!err)
		err = calls_free_handle(process, handle);
	if (err && !process->inject.is_lost) {
		pr_warn("pid %d: a buffer of %" PRIu64 " bytes stays on gpu %#x: %s\n", process->head.pid,
			process->gpu.state.bos[bo].size, process->gpu.state.bos[bo].gpu_id, strerror(-err));
		*ret_kept = true;
		return map_or_unmap(process, &buffer, handle, AMDKFD_IOC_MAP_MEMORY_TO_GPU);
	}
	for (; !err && is_of(process, vma, bo); vma++)
		err = cover(process, vma);
	return err;
}

int calls_allocate(struct process *process, size_t number, const struct bo *now)
{
	const struct suspend_vma *vma = first_vma(process, number);
	const struct bo *bo = &process->gpu.state.bos[number];
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.va_addr = bo->addr,
		.size = bo->size,
		.gpu_id = bo->gpu_id,
		.flags = bo->alloc_flags,
		.mmap_offset = now ? now->offset : 0,
	};
	struct bo_record buffer;
	uint64_t handle = 0;
	int err = bo_record(process, number, &buffer, &handle);

	if (!err && !now) {
		err = counted_call(process, 1, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);
		if (!err && args.handle != handle) {
			calls_free_handle(process, args.handle);
			return fail(-EPROTO, "pid %d: the kernel gives the number %#llx to a buffer that had %#" PRIx64,
				    process->head.pid, (unsigned long long)args.handle, handle);
		}
	}
	if (!err)
		err = map_or_unmap(process, &buffer, handle, AMDKFD_IOC_MAP_MEMORY_TO_GPU);
	for (; !err && is_of(process, vma, number); vma++)
		err = map_vma(process, vma, args.mmap_offset);
	return err;
}

/* ---- numbers ---- */

int calls_make_placeholder(struct process *process, uint32_t gpu_id, uint64_t *ret_handle)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.size = (uint64_t)sysconf(_SC_PAGESIZE),
		.gpu_id = gpu_id,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
	};
	int err = counted_call(process, 1, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);

	*ret_handle = args.handle;
	return err;
}

/* ---- the mark ---- */

int calls_mark(struct process *process)
{
	static const char name[] = TASK_MARK;
	const uint64_t args[6] = { process->inject.memory + INJECT_DATA, MFD_CLOEXEC };
	int err;

	if (task_find_mark(process->head.pid, -1) >= 0)
		return 0;
	err = inject_write(&process->inject, INJECT_DATA, name, sizeof(name));
	if (!err)
		err = inject_call(&process->inject, SYS_memfd_create, args, NULL);
	return err ? inject_fail(&process->inject, err, "open the memfd by which others know that it is suspended") : 0;
}

int calls_unmark(struct process *process)
{
	int fd, err = 0;

	for (fd = task_find_mark(process->head.pid, -1); !err && fd >= 0; fd = task_find_mark(process->head.pid, fd))
		err = inject_call(&process->inject, SYS_close, (const uint64_t[6]){ (uint64_t)fd }, NULL);
	return err;
}

int calls_end_marked(struct process *process)
{
	int err = 0;

	if (task_find_mark(process->head.pid, -1) < 0) {
		err = inject_begin(&process->inject);
		if (!err)
			err = calls_mark(process);
	}
	return err || !process->inject.is_changed ? err : inject_end(&process->inject);
}

/* ---- before anything is changed ---- */

int calls_try(struct process *process)
{
	struct suspend_vma spare = { 0 };
	int err = inject_begin(&process->inject), end;

	if (err)
		return err;
	spare.start = process->inject.memory + INJECT_SPARE;
	spare.end = process->inject.memory + INJECT_MEMORY;
	/* One more mapping, as where a buffer's is tried before it is freed. */
	err = cover(process, &spare);
	if (err)
		inject_fail(&process->inject, err, "map memory in it");
	else
		err = calls_mark(process);
	if (process->inject.is_lost)
		return err;
	end = calls_unmark(process);
	err = err ? err : end;
	end = inject_end(&process->inject);
	return err ? err : end;
}
