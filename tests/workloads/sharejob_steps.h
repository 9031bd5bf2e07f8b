/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Steps: what a process does when a case is set up, each with numbers. A buffer's number is also that of its BO, handle,
 * dma-buf and mapping in this process; files count as the process has them, the KFD's of each GPU first.
 */
#ifndef WORKLOADS_SHAREJOB_STEPS_H
#define WORKLOADS_SHAREJOB_STEPS_H

#include "sharejob.h"

#define SHARE_SYNCOBJ_POINT 7u

#define IT     (-1) /* in place of a buffer: that of what came last */
#define BY_CPU (-1) /* in place of a GPU */

enum {
	/* KFD BOs and messages */
	BO = 1,	     /* buffer, kind, GPU: with first contents and views */
	BARE,	     /* number, kind, GPU: without an address */
	DROP,	     /* buffer: its BO is freed, which leaves a gap in the numbers */
	UNVIEW,	     /* buffer: its pages are static from here on */
	SEND,	     /* buffer, process: a dma-buf of its BO */
	LEND,	     /* buffer, GPU: that one sees it, too */
	KEPT,	     /* buffer, GPU: as ROCm 7.2 exports, with a handle that has a token */
	RECEIVE,     /* the next dma-buf */
	IMPORT,	     /* GPU: what came last, with a view */
	IMPORT_BARE, /* GPU: the same without an address */
	LOSE,	     /* GPU: the same, and freed again */
	PUT_AWAY,    /* what came last is closed */
	TAKE,	     /* how many: each received and imported on GPU 0; in the second case with a handle */
	MEET,
	LAST_OF_BOS = MEET,
	/* handles and mappings */
	CREATE,	   /* number, file, domain, flags */
	HANDLE_OF, /* buffer, file, number of the handle: of its BO */
	HANDLE,	   /* file: of what came last */
	CLOSE,	   /* number, file */
	DESCRIBE,  /* number, file, tiling, bytes (at most 40; 0: the token): metadata */
	MAP,	   /* buffer, file, GPU or BY_CPU where none may look, number, first page, pages, flags */
	CPU,	   /* buffer, file, pages, protection, 1: where the GPU has it */
	FILL,	   /* buffer, GPU or BY_CPU: first contents, by the last mapping */
	SYNCOBJS,  /* file: three, with gaps */
	LAST_OF_HANDLES = SYNCOBJS,
	/* files */
	EXPORT,	       /* buffer: its BO */
	EXPORT_HANDLE, /* number, file, whether to write by it */
	SEND_FD,       /* buffer, process: what was exported */
	CLOSE_FD,      /* buffer */
	KEEP,	       /* buffer, or IT: the dma-buf stays open, with a view */
	KEEP_TWICE,    /* buffer: it has a name and a duplicate */
	OPEN,	       /* first GPU, last GPU: a render file of each that is there */
	SHARED,	       /* file: another process makes handles in it, too */
	SEND_FILE,     /* file, process */
	KEEP_FILE,     /* what came last is a render file */
	FORGET,	       /* what the parent had */
	INHERIT_DMABUFS,
	INHERIT_FILE, /* the parent's last one */
	LEND_CPU,     /* buffer: processes that are forked later have its mapping */
	BORROW,	      /* buffer: the parent's first BO by such a mapping */
	RENUMBER,     /* /dev/kfd gets a high number */
	IF_GPU,	      /* GPU: without it the steps end here */
	IF_SECOND,    /* in the first case they do */
	/* Steps of one of two cases */
	FIRST = 1 << 8,
	SECOND = 1 << 9,
	WHEN = FIRST | SECOND,
};

extern const uint8_t share_token[4];

/* For a table of cases: the steps of a process. */
#define STEPS(...) (const struct share_step[]){ __VA_ARGS__, { 0 } }

/* Does the steps of the process. */
int share_steps_run(struct share_process *me);
/* As KEPT; not of the exporter: without a token. */
int share_keep_handle(struct share_process *me, struct share_gpu *gpu, const struct kfd_bo *bo, bool exporter);
/* The BO of a buffer, of those that steps have made. */
struct kfd_bo *share_bo_of(unsigned int n);

#endif
