/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A stand-in for the kernel, in the process: /dev/kfd with the CRIU operations, render nodes,
 * their tree in sysfs, and one stopped process in /proc that has them open. The plugin's
 * system calls are wrapped by the linker (--wrap, see unit.mk): paths lead into a temporary
 * directory, ioctls to the code here, everything else to the real call.
 *
 * The same wrappers make the n-th call fail, of all threads together.
 */
#ifndef UNIT_FAKE_KFD_H
#define UNIT_FAKE_KFD_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FAKE_PID      4711 /* the stopped process */
#define FAKE_NR_GPUS  2
#define FAKE_NR_BOS   4
#define FAKE_NR_VMAS  3
#define FAKE_KFD_FD   5 /* its fds */
#define FAKE_RENDER_FD 6 /* of the first GPU; that of the second follows */
#define FAKE_SECOND_KFD_FD 8

/* Other tasks of its tree, in the order of their numbers, and their fds. */
#define FAKE_IDLE_PID	 4712 /* has nothing of GPUs */
#define FAKE_RENDER_PID	 4713 /* has a file of a render node open, and nothing in it */
#define FAKE_FOREIGN_PID 4714 /* has mapped a render node of another driver */
#define FAKE_LOST_PID	 4715 /* has inherited a mapping */
#define FAKE_FOREIGN_FD	 9
#define FAKE_UNUSED_FD	 10

/* The name of a call of close() that ends the writing of a file. */
#define FAKE_CLOSE_OF_WRITTEN "close of a written file"

struct fake_vma {
	const char *path;
	uint64_t start, end, offset;
	uint64_t restored; /* the offset that it has to get, see fake_restored_offset() */
};
extern const struct fake_vma fake_vmas[FAKE_NR_VMAS];
extern const struct fake_vma fake_render_vma; /* see .render_only; restored is not known */

/* What a test sets. All zero is the ordinary process: it has its files, fake_vmas, no queue in sysfs, and shares nothing. */
extern struct fake_setup {
	/* Its files and mappings. */
	int closed[3]; /* fds; 0: none */
	enum { FAKE_MAPS_USUAL, FAKE_MAPS_NOTHING, FAKE_MAPS_ALL } maps; /* the last: also with .render_only */
	enum { FAKE_ONE_KFD, FAKE_SECOND_FILE, FAKE_SECOND_CONTEXT } second_kfd; /* /dev/kfd is open once more */
	bool has_tree;			 /* there are the other tasks, */
	const struct fake_vma *lost_vma; /* and the last one, with this */
	uint32_t pasids[FAKE_NR_GPUS];	 /* what fdinfo says of its render nodes; 0: nothing. In sysfs it is 32768 */
	unsigned int nr_contexts, nr_syncobjs; /* in the file of the first render node */
	bool is_suspended; /* it has the mark */
	/* sysfs: what the KFD says of the process */
	bool is_no_process;
	unsigned int nr_queues;
	uint64_t vram_bytes;
	/*
	 * A BO of the first GPU is imported once more, with gaps between the numbers, the file of the render node has
	 * handles of that BO and of an object that is not of the KFD, with metadata and mappings, and a syncobj.
	 */
	bool shares;
	/* With that: */
	bool has_stranger;	 /* another process has imported the first BO, freed that, and kept a handle */
	bool has_second_dmabuf;	 /* the import has a dma-buf of its own */
	bool has_foreign_dmabuf; /* it has a dma-buf open of an AMD GPU that the KFD does not drive */
	int confused, with;	 /* CHECKPOINT gives for a BO the dma-buf of another */
	/* Without /dev/kfd: it has both objects in the file, with all that there is of them, and maps fake_render_vma. */
	bool render_only;
	bool lists_nothing; /* objects cannot be listed, as before Linux 6.18 */

	/* Its state. */
	/* The kernel saves the control stack of the compute queue, or not: of an idle one, one that was stopped in a kernel. */
	enum { FAKE_STACK, FAKE_NO_STACK_IDLE, FAKE_NO_STACK_BUSY } stack;
	unsigned int ends_after; /* that kernel ends when the queues were stopped so often; 0: never */
	uint32_t nr_xcc;    /* of the second GPU, of whose states RESTORE takes one; 0: 1 */
	uint64_t svm_bytes; /* of a range at 0x10000; 0: none */
	bool has_xnack;
	bool has_kfd_event_page; /* its event is in a page that the process has not given */
	bool is_told;	     /* of exceptions in its compute queue */
	const char *release; /* the driver's; NULL: not known */

	/* The machine, and what its kernel says. */
	uint32_t gpu_id;   /* of the first GPU from now on; 0: as ever. To the process it is what it was */
	bool hides_gpu;	   /* the topology shows another GPU instead of the first one, whose render node stays */
	bool loses_vram;   /* the driver resets the second GPU while the state is taken, or put in */
	uint64_t vram_free; /* of each GPU; 0: not known */
	struct {
		uint32_t nr_devices, nr_bos;
		uint64_t state_bytes;
	} counts; /* of a process that there cannot be; all 0: the right ones */
	pid_t owner; /* of the state; 0: the process */
} fake_setup;

/* Makes the machine and the process; once for a program. */
void fake_kfd_begin(void);
void fake_kfd_end(void);

/* Makes them again, so; @setup NULL: as at the beginning. */
void fake_kfd_set(const struct fake_setup *setup);

/* What has happened. */
extern struct fake_seen {
	bool is_guarded;    /* a process watches over criu, without which the process is not paused */
	bool restored_runs;
	bool tells_exceptions; /* the restored process has RUNTIME_ENABLE */
	/* Since fake_fail(). */
	bool was_killed;     /* by a signal, instead of which this is remembered */
	bool fails_at_exit;  /* the program will end with a failure, whatever it returns */
	size_t nr_allocated; /* and not freed */
} fake_seen;

bool fake_process_is_paused(void);
/* How many files the restored process has as long as it exists. */
size_t fake_restored_files(void);
/* Whether its BOs have the contents of the stopped one's. */
bool fake_contents_same(void);
/* Whether it shares just so; @render_fd: its file of the first render node. */
bool fake_shares_same(int render_fd);
/* The same with .render_only, also of contents; @offset: where the mapping was told to go. */
bool fake_render_only_same(int render_fd, uint64_t offset);
/* The offset that a mapping has to get. */
uint64_t fake_restored_offset(const struct fake_vma *vma);
/* Forgets a restored process. */
void fake_kfd_forget(void);

/* Whether the GPU of a render node, known by its inode, has the memory of a dma-buf: GPUs cannot reach each other's. */
bool fake_may_import(ino_t render_node, int dmabuf_fd);

/* A duplicate of a file of the stopped process, as criu has it; -1 when it has no such fd. */
int fake_process_file(int fd);

/* Whether an fd is of the render node of a GPU (0, 1). */
bool fake_is_render_node(int fd, int gpu);

/* The calling thread has stopped the process. The n-th call from now on fails with @err; 0: none. */
void fake_fail(unsigned int nth, int err);
/* It and all that follow: nothing happens any more, as when criu is killed there. */
void fake_die_at(unsigned int nth);
/* The first call of that name fails, such as an operation of the CRIU ioctl. */
void fake_fail_named(const char *name, int err);
/* Ends that. The name of the call that failed, NULL when there were fewer. */
const char *fake_failed(void);
/* Where the program goes on when the plugin ends it: in a child only. */
extern jmp_buf fake_exit;

#endif
