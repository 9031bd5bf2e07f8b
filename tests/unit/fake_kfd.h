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

/* Makes the machine and the process; once for a program. */
void fake_kfd_begin(void);
void fake_kfd_end(void);

/* The thread that has stopped the process: the one that began, unless this is called. */
void fake_traced_by(pid_t tracer);

/* Closes a file of the stopped process for good. */
void fake_close(int fd);

/* Opens /dev/kfd once more in the stopped process: for the same KFD process, or (@context) for a further context. */
void fake_open_second_kfd(bool context);

/* Unmaps all that it has mapped of devices, or maps fake_vmas again. */
void fake_unmap_devices(void);
void fake_map_all(void);

/* Makes the other tasks, without the last one; that one, with one of fake_vmas. Until fake_reopen(). */
void fake_make_tree(void);
void fake_make_lost_task(unsigned int vma);

/* Gives the process a directory among the KFD's processes, or takes it away. */
void fake_show_process(unsigned int nr_queues, uint64_t vram_bytes);
void fake_hide_process(void);

/* What fdinfo says of the process' render nodes; fake_hide_process() takes it back. */
void fake_show_pasids(const uint32_t *pasids);

/* Makes contexts and syncobjs in the file of the first render node. */
void fake_use_render_file(unsigned int nr_contexts, unsigned int nr_syncobjs);

/*
 * Lets it share: a BO of the first GPU is imported once more, with gaps between the numbers, its file of the render node
 * has handles of that BO and of an object that is not of the KFD, with metadata and mappings, and a syncobj.
 */
void fake_share(void);
/*
 * Closes /dev/kfd: what the process has is two objects in its file of the first render node, with all that fake_share()
 * makes there, and a mapping of one of them, fake_render_vma.
 */
void fake_render_only(void);
extern const struct fake_vma fake_render_vma; /* restored is not known */
/* Whether the restored process has just that, with its contents; @offset: where the mapping was told to go. */
bool fake_render_only_same(int render_fd, uint64_t offset);
/*
 * The kernel does not save the control stack of the compute queue, which was stopped in a kernel (@busy) or is idle;
 * RESTORE takes an empty one.
 */
void fake_leave_out_stack(bool busy);
/* The driver resets the second GPU while the state is taken, or put in, and its VRAM is lost. */
void fake_lose_vram(void);
/* The SVM knows some memory, with XNACK or without. */
void fake_add_memory(uint64_t start, uint64_t bytes, bool xnack);
/* The second GPU has so many XCCs, of whose states RESTORE takes one. */
void fake_give_xccs(uint32_t nr_xcc);
/* Another process has imported the first BO, freed that, and kept a handle; with fake_share(). */
void fake_add_stranger(void);
/* CHECKPOINT gives the dma-buf of another BO for one. */
void fake_confuse(int bo, int with);
/* With fake_share(): the import has a dma-buf of its own. */
void fake_second_dmabuf(void);
/* The process has a dma-buf open of an AMD GPU that the KFD does not drive. */
void fake_open_foreign_dmabuf(void);
/* Objects cannot be listed any more, as before Linux 6.18. */
void fake_list_nothing(void);

/* Whether the restored process shares just so; @render_fd: its file of the first render node. */
bool fake_shares_same(int render_fd);

/* Takes all that back, also what a child has done. */
void fake_reopen(void);

/* The first GPU has another id from now on, and is otherwise the same; until fake_reopen(). */
void fake_rename_gpu(uint32_t gpu_id);
/* The offset that a mapping has to get. */
uint64_t fake_restored_offset(const struct fake_vma *vma);

/* What the kernel says when it stops the process: counts that no process has, or that the state is another one's. */
void fake_say_counts(uint32_t nr_devices, uint32_t nr_bos, uint64_t state_bytes);
void fake_say_owner(pid_t pid);

/*
 * SET_TRAP_HANDLER of the stopped process on a GPU (0, 1), where the driver is of this release and the parameter
 * cwsr_enable has this text. fake_untrap() takes it back, and what the restored process has.
 */
#define FAKE_TRAP 0x7f0000000100ull /* an address in a BO */
void fake_trap(int gpu, uint64_t tba, uint64_t tma, const char *release, const char *parameter);
void fake_untrap(void);
/* Whether the restored process has just that, and how often it was told. */
bool fake_trap_same(void);
unsigned int fake_traps_set(void);
/* Whether the restored process has RUNTIME_ENABLE. */
bool fake_is_told(void);
/* Whether the stopped process' files have a context or a mapping that was not there. */
bool fake_job_left(void);

/* What is free of each GPU's VRAM; UINT64_MAX: that is not known. */
void fake_leave_free(uint64_t bytes);

/* Whether the GPU of a render node, known by its inode, has the memory of a dma-buf: GPUs cannot reach each other's. */
bool fake_may_import(ino_t render_node, int dmabuf_fd);

/* The topology shows another GPU instead of the first one, whose render node stays; until fake_reopen(). */
void fake_hide_gpu(void);

/* Forgets a restored process. */
void fake_kfd_forget(void);

/* A duplicate of a file of the stopped process, as criu has it; -1 when it has no such fd. */
int fake_process_file(int fd);

/* Whether an fd is of /dev/kfd (-1) or of the render node of a GPU (0, 1). */
bool fake_is_device(int fd, int gpu);

bool fake_process_is_paused(void);
/* Whether a process watches over criu, without which the process is not paused. */
bool fake_is_guarded(void);
bool fake_restored_runs(void);
/* How many files it has as long as it exists. */
size_t fake_restored_files(void);
/* Whether the BOs of the restored process have the contents of the stopped one's. */
bool fake_contents_same(void);

/* The n-th call from now on fails with @err; 0: none. */
void fake_fail(unsigned int nth, int err);
/* It and all that follow: nothing happens any more, as when criu is killed there. */
void fake_die_at(unsigned int nth);
/* The first call of that name fails, such as an operation of the CRIU ioctl. */
void fake_fail_named(const char *name, int err);
/* Ends that. The name of the call that failed, NULL when there were fewer. */
const char *fake_failed(void);
/* How many allocations since fake_fail() were not freed. */
size_t fake_leaks(void);
/* Where the program goes on when the plugin ends it: in a child only. */
extern jmp_buf fake_exit;
/* Whether the program will end with a failure, whatever it returns. */
bool fake_fails_at_exit(void);
/* Whether a signal was sent, instead of which this is remembered. */
bool fake_was_killed(void);

#endif
