// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many objects, to see what their number costs. They are too many for the lists of a process, and are not freed one by
 * one: a part of them has views or is looked at.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"
#include "sharejob.h"

#define SMALL_BYTES KFD_PAGE_SIZE

/* ---- handles with a mapping each ---- */

static uint32_t *handles;

static uint64_t word_of(unsigned int i)
{
	return 0x5eed000000000000ull + i;
}

/* Writes or checks the first word of an object. */
static int word(int file, unsigned int i, bool write)
{
	uint64_t offset = 0, *p, found;
	int err = gem_mmap_offset(file, handles[i], &offset);

	if (err)
		return err;
	p = mmap(NULL, SMALL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
	if (p == MAP_FAILED)
		return report(errno, "mmap of handle %u: %m", handles[i]);
	if (write)
		*p = word_of(i);
	found = *p;
	munmap(p, SMALL_BYTES);
	return found == word_of(i) ? 0 : report(EILSEQ, "handle %u shows %#llx", handles[i], (unsigned long long)found);
}

static int handles_setup(struct share_process *me)
{
	int file = me->gpus[0].gpu->render_fd, err = 0;
	uint8_t *va = mmap(NULL, (size_t)me->count * SMALL_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	handles = calloc(me->count, sizeof(*handles));
	if (!handles || va == MAP_FAILED)
		return report(ENOMEM, "%u handles", me->count);
	for (unsigned int i = 0; !err && i < me->count; i++) {
		err = gem_create(file, SMALL_BYTES, GEM_DOMAIN_GTT, 0, &handles[i]);
		err = err ? err
			  : gem_va_map(file, handles[i], (uintptr_t)va + (uint64_t)i * SMALL_BYTES, 0, SMALL_BYTES,
				       GEM_READ | GEM_WRITE);
		err = err ? err : word(file, i, true);
	}
	return err;
}

static int handles_check(struct share_process *me)
{
	int file = me->gpus[0].gpu->render_fd, err = 0;
	struct gem_mapping mapping;

	for (unsigned int i = 0; !err && i < me->count; i++) {
		err = word(file, i, false);
		if (!err && gem_mappings(file, handles[i], &mapping, 1) != 1)
			err = report(EILSEQ, "handle %u has another number of mappings than 1", handles[i]);
	}
	return err;
}

/* ---- all to all ---- */

/* Those of the process before this one by @round. The first of them has a view. */
static int take_all(struct share_process *me, unsigned int round)
{
	unsigned int from = (me->number + me->nr_processes - round) % me->nr_processes;
	struct share_gpu *gpu = &me->gpus[from % 2];
	struct kfd_bo bo;
	int err = 0;

	for (unsigned int i = 0; !err && i < me->count; i++) {
		unsigned int buffer;
		int fd;

		err = share_receive(me, &buffer, &fd);
		if (err)
			return err;
		err = kfd_bo_import(&me->kfd, gpu->gpu, fd, i ? SMALL_BYTES : SHARE_BYTES, &bo);
		if (!err && !i)
			err = share_view_gpu(me, buffer, gpu, bo.va, 0, SHARE_PAGES, false);
		close(fd);
	}
	return err;
}

/* The buffers of a process are on one GPU, and the others import them there. */
static int all_to_all_setup(struct share_process *me)
{
	struct kfd_bo *bos = calloc(me->count, sizeof(*bos)), *first;
	struct share_gpu *gpu = &me->gpus[me->number % 2];
	int err = bos ? share_bo_new(me, me->number, gpu, KFD_MEMORY_VRAM_PUBLIC, &first) : -ENOMEM;

	for (unsigned int i = 1; !err && i < me->count; i++)
		err = kfd_bo_alloc(&me->kfd, gpu->gpu, KFD_MEMORY_VRAM, SMALL_BYTES, &bos[i]);
	for (unsigned int round = 1; !err && round < me->nr_processes; round++) {
		unsigned int to = (me->number + round) % me->nr_processes;

		for (unsigned int i = 0; !err && i < me->count; i++)
			err = share_send_bo(me, to, me->number, i ? &bos[i] : first);
		err = err ? err : take_all(me, round);
		err = err ? err : share_meet(me);
	}
	free(bos);
	return err;
}

const struct share_case share_many_cases[] = {
	{ "many-handles", "--count handles with a mapping each", 1, 1, 0, handles_setup, handles_check },
	{ "many-imports", "N processes with --count buffers each, all to all", 0, 2, 0, all_to_all_setup, NULL },
	{ 0 },
};
