// SPDX-License-Identifier: GPL-2.0-only
/*
 * Views: who sees and writes which page of which buffer, and what has to be there.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "pattern.h"
#include "report.h"
#include "sharejob.h"

/* What a page of a buffer holds in a generation. */
static uint64_t page_seed(unsigned int buffer, unsigned int page, uint64_t generation)
{
	return (uint64_t)(buffer + 1) << 52 | (uint64_t)page << 44 | generation;
}

static uint64_t page_generation(const struct share_process *me, unsigned int buffer, unsigned int page)
{
	uint8_t claim = me->control->claims[buffer][page];

	if (claim == SHARE_EACH_GENERATION || (claim == SHARE_AT_THE_END && me->ending))
		return me->state.generation;
	return 0;
}

int share_fill(unsigned int buffer, struct share_gpu *gpu, uint64_t va, void *cpu)
{
	uint8_t *p = cpu ? cpu : gpu->window.cpu;

	for (unsigned int page = 0; page < SHARE_PAGES; page++)
		pattern_fill(p + page * KFD_PAGE_SIZE, KFD_PAGE_SIZE, page_seed(buffer, page, 0), 0);
	return cpu ? 0 : sdma_copy_now(&gpu->queue, va, gpu->window.va, SHARE_BYTES);
}

/* ---- views ---- */

/* Takes a page that nobody has for itself; -1: there is none left, which the view only reads then. */
static int page_claim(struct share_process *me, const struct share_view *view, enum share_claim how)
{
	for (unsigned int page = view->first; page < view->first + view->pages; page++) {
		uint8_t nobody = SHARE_STATIC;

		if (atomic_compare_exchange_strong(&me->control->claims[view->buffer][page], &nobody, how))
			return (int)page;
	}
	return -1;
}

static int view_add(struct share_process *me, struct share_view view, bool writes)
{
	enum share_claim how = view.kind == SHARE_VIEW_DMABUF ? SHARE_AT_THE_END : SHARE_EACH_GENERATION;

	if (me->nr_views == SHARE_MAX_VIEWS || view.buffer >= SHARE_MAX_BUFFERS)
		return report(ENOSPC, "view %u of buffer %u: too many", me->nr_views, view.buffer);
	view.own_page = writes ? page_claim(me, &view, how) : -1;
	if (writes && view.own_page < 0)
		return report(ENOSPC, "buffer %u has no page left for one more view", view.buffer);
	me->views[me->nr_views++] = view;
	return 0;
}

int share_view_cpu(struct share_process *me, unsigned int buffer, void *p, unsigned int first, unsigned int pages,
		   bool writes)
{
	const struct share_view view = {
		.kind = SHARE_VIEW_CPU,
		.buffer = buffer,
		.first = first,
		.pages = pages,
		.cpu = p,
	};

	return view_add(me, view, writes);
}

int share_view_gpu(struct share_process *me, unsigned int buffer, struct share_gpu *gpu, uint64_t va,
		   unsigned int first, unsigned int pages, bool writes)
{
	const struct share_view view = {
		.kind = SHARE_VIEW_GPU,
		.buffer = buffer,
		.first = first,
		.pages = pages,
		.gpu = gpu,
		.va = va,
	};

	return view_add(me, view, writes);
}

int share_view_dmabuf(struct share_process *me, unsigned int buffer, int fd, bool writes)
{
	const struct share_view view = {
		.kind = SHARE_VIEW_DMABUF,
		.buffer = buffer,
		.pages = SHARE_PAGES,
		.dmabuf = fd,
	};

	return view_add(me, view, writes);
}

void share_views_drop(struct share_process *me, unsigned int buffer)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < me->nr_views; i++) {
		struct share_view view = me->views[i];

		if (view.buffer != buffer)
			me->views[nr++] = view;
		else if (view.own_page >= 0)
			me->control->claims[buffer][view.own_page] = SHARE_STATIC;
	}
	me->nr_views = nr;
}

static const char *view_name(const struct share_view *view)
{
	static const char *const names[] = { "mapping of the CPU", "address of the GPU", "dma-buf" };

	return names[view->kind];
}

static int pages_check(struct share_process *me, const struct share_view *view, const uint8_t *p)
{
	struct pattern_diff diff;

	for (unsigned int i = 0; i < view->pages; i++, p += KFD_PAGE_SIZE) {
		unsigned int page = view->first + i;
		uint64_t generation = page_generation(me, view->buffer, page);

		if (!pattern_check(p, KFD_PAGE_SIZE, page_seed(view->buffer, page, generation), 0, &diff))
			return report(EILSEQ,
				      "%s: process %u: buffer %u by %s %#" PRIx64 ": page %u, byte %" PRIu64
				      " of generation %" PRIu64 " is %#04x, want %#04x",
				      me->kase->name, me->number, view->buffer, view_name(view),
				      view->gpu ? view->va : (uint64_t)(uintptr_t)view->cpu, page, diff.offset,
				      generation, diff.got, diff.want);
	}
	me->state.verified_bytes += view->pages * KFD_PAGE_SIZE;
	return 0;
}

/* Mapped only as long as it is looked at: criu does not save such mappings. */
static uint8_t *dmabuf_map(const struct share_view *view, int prot)
{
	void *p = mmap(NULL, SHARE_BYTES, prot, MAP_SHARED, view->dmabuf, 0);

	if (p == MAP_FAILED) {
		report(errno, "mmap of the dma-buf of buffer %u: %m", view->buffer);
		return NULL;
	}
	return p;
}

static int view_check(struct share_process *me, const struct share_view *view)
{
	uint8_t *p = view->cpu;
	int err = 0;

	if (view->kind == SHARE_VIEW_DMABUF) {
		p = dmabuf_map(view, PROT_READ);
		if (!p)
			return -EIO;
	} else if (view->kind == SHARE_VIEW_GPU) {
		p = view->gpu->window.cpu;
		memset(p, 0, view->pages * KFD_PAGE_SIZE);
		err = sdma_copy_now(&view->gpu->queue, view->gpu->window.va, view->va, view->pages * KFD_PAGE_SIZE);
	}
	err = err ? err : pages_check(me, view, p);
	if (view->kind == SHARE_VIEW_DMABUF)
		munmap(p, SHARE_BYTES);
	return err;
}

int share_views_check(struct share_process *me, bool all)
{
	int err = 0;

	me->state.verified_bytes = 0;
	for (unsigned int i = 0; !err && i < me->nr_views; i++)
		if (all || me->views[i].kind != SHARE_VIEW_DMABUF)
			err = view_check(me, &me->views[i]);
	return err;
}

static int view_write(struct share_process *me, const struct share_view *view)
{
	uint64_t seed = page_seed(view->buffer, (unsigned int)view->own_page, me->state.generation);
	uint64_t at = ((uint64_t)view->own_page - view->first) * KFD_PAGE_SIZE;
	uint8_t *p = view->cpu;

	if (view->kind == SHARE_VIEW_GPU) {
		pattern_fill(view->gpu->window.cpu, KFD_PAGE_SIZE, seed, 0);
		return sdma_copy_now(&view->gpu->queue, view->va + at, view->gpu->window.va, KFD_PAGE_SIZE);
	}
	if (view->kind == SHARE_VIEW_DMABUF)
		p = dmabuf_map(view, PROT_READ | PROT_WRITE);
	if (!p)
		return -EIO;
	pattern_fill(p + at, KFD_PAGE_SIZE, seed, 0);
	if (view->kind == SHARE_VIEW_DMABUF)
		munmap(p, SHARE_BYTES);
	return 0;
}

int share_views_write(struct share_process *me)
{
	int err = 0;

	me->state.generation++;
	for (unsigned int i = 0; !err && i < me->nr_views; i++)
		if (me->views[i].own_page >= 0 && (me->ending || me->views[i].kind != SHARE_VIEW_DMABUF))
			err = view_write(me, &me->views[i]);
	return err;
}
