/* SPDX-License-Identifier: GPL-2.0-only */
/* Which amdgpu driver runs, what it is known not to save or restore, and what is made up for it. */
#ifndef KERNEL_DRIVER_H
#define KERNEL_DRIVER_H

#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

#include "kernel/state.h"

/* Where a driver that does not come with the kernel says its version. */
#define DRIVER_VERSION_FILE "/sys/module/amdgpu/version"

struct driver_release {
	/*
	 * Of Linux; of an amdgpu-dkms the Linux that it was made from, and a patch number of its own. All 0 when it
	 * cannot be told.
	 */
	int major, minor, patch;
	bool dkms;
	char text[96]; /* for messages: "Linux 6.12.107+deb13-amd64", "amdgpu-dkms 6.12.12" */
};

/* Asks @version_file (DRIVER_VERSION_FILE), and the kernel when there is none. */
void driver_ask_release(const char *version_file, struct driver_release *ret);

/* Whether the driver's release is at least @major.@minor. */
static inline bool driver_is_since(const struct driver_release *driver, int major, int minor)
{
	return driver->major > major || (driver->major == major && driver->minor >= minor);
}

/*
 * Whether its name does not tell which fixes it has: a kernel of RHEL has drivers of later releases; Ubuntu and SUSE mend
 * theirs under a release whose patch number stays 0. It may have any change of any later Linux, and none.
 */
static inline bool driver_may_be_any(const struct driver_release *driver)
{
	if (driver->dkms || !driver->major)
		return !driver->major;
	return strstr(driver->text, ".el") || (!driver->patch && !strstr(driver->text, "-rc"));
}

/*
 * Whether RESTORE wants of a compute queue what CREATE_QUEUE does: memory for waves, and the size of its control stack.
 * "Properly acquire queue buffers in CRIU restore" came to 6.12 with 6.12.111, without the change that reverts it.
 */
static inline bool driver_checks_queues(const struct driver_release *driver)
{
	return !driver->dkms && driver->major == 6 && driver->minor == 12 && driver->patch >= 111;
}

/* ---- limits ---- */

/*
 * What drivers are known not to save or restore: refused at dump, where the process can still go on, not found out at
 * restore.
 */

#define LIMITS_TEXT_MAX 200

enum limit {
	LIMIT_NONE, /* nothing is known against it */
	LIMIT_BUSY, /* nothing, once the queue has ended what it does */
	LIMIT_UNCLEAR, /* of limits_of_gpu(): LIMIT_BUSY or LIMIT_LOSS, by what this driver of a distribution saves */
	LIMIT_LOSS, /* the restored process would lack something: KFD_RESTORABLE_CHECK=0 accepts that */
	LIMIT_HARM, /* RESTORE would harm the kernel, or there is no way at all: never tried */
};

/*
 * Whether the queue of @record on @gpu, which is of @machine, cannot be restored by the driver that saved it, and why,
 * in words. Pure.
 */
enum limit limits_of_queue(const struct queue_record *record, const struct topology_node *gpu,
			   const struct topology *machine, const struct driver_release *driver,
			   char why[LIMITS_TEXT_MAX]);

/* The same for a compute queue on @gpu as ROCm makes it there, without having seen one, idle or not. Pure. */
enum limit limits_of_gpu(const struct topology_node *gpu, const struct topology *machine,
			 const struct driver_release *driver, char why[LIMITS_TEXT_MAX]);

/*
 * Looks at all queues in the state that CHECKPOINT gave of process @pid; @machine has its GPUs by their actual ids.
 * -EOPNOTSUPP when the state cannot be read, or when @driver is known not to restore one; with
 * @try, a warning and 0 for a loss.
 */
int limits_check_queues(pid_t pid, const struct kfd_state *state, const struct topology *machine,
			const struct driver_release *driver, bool try);

/* Whether that refuses the state, or warns of it, only because queues are busy. No message. */
bool limits_are_busy(const struct kfd_state *state, const struct topology *machine, const struct driver_release *driver,
		     bool try);

/*
 * Before RESTORE, whatever saved the state, which names the machine's GPUs by now: -EOPNOTSUPP when
 * it cannot be read, or when @driver would do harm.
 */
int limits_check_harm(const struct kfd_state *state, const struct topology *machine,
		      const struct driver_release *driver);

/* ---- stacks of compute queues ---- */

/*
 * Control stacks of compute queues, which drivers can leave out.
 *
 * On gfx9 the control stack of preempted waves is in memory of the driver, behind the MQD, and RESTORE makes that
 * memory as large as what was saved. Linux 7.2.12 reads the size before it is known (mqd_manager_init_v9()), and saves
 * nothing: a restored queue would write the stacks of its next waves past the end. The MQD, which is saved, says how
 * large the stack is and whether any wave was on it; without one, an empty stack is what has to be restored.
 */

enum stack {
	STACK_SAVED,	 /* or there is none */
	STACK_ELSEWHERE, /* in the memory for waves (gfx10) */
	STACK_EMPTY,	 /* left out, and nothing was on it */
	STACK_LOST,	 /* left out, and waves were on it, or that cannot be told */
};

/* Of a queue on @gpu. Pure. */
enum stack stack_of(const struct queue_record *record, const struct topology_node *gpu);

/*
 * Adds an empty control stack to each queue record that was saved without one; @nodes has the GPUs by user ids. Queues
 * that had waves get one @at_restore only, with MQDs that know of no wave, as do those whose stack is elsewhere, where
 * RESTORE of @driver checks sizes: it ignores the bytes. How many had waves, or -ENOMEM. No message.
 */
int stacks_add(struct kfd_state *state, const struct topology *nodes, const struct driver_release *driver, bool at_restore);

/* ---- queues of several XCCs ---- */

/*
 * Compute queues of several XCCs, for drivers whose RESTORE takes the size of one XCC's state.
 *
 * The fix of CVE-2026-68258 compares the size of the MQDs with that of one, while CHECKPOINT gives those of all XCCs,
 * and what follows (restore_mqd_v9_4_3()) still reads all of them: MQD i at i times their size, control stack i at
 * i times its size behind what the record calls MQDs. So a record that names one MQD, behind which the others lie in
 * what also counts as the begin of the stacks, is read right, as long as nothing is there: a stack fills from its end.
 * Drivers without the comparison read such a record in the same way.
 */

/* Whether the stacks of a compute queue, saved or still to be added, leave room for the MQDs of @nr_xcc. Pure. */
bool fold_fits(const struct queue_record *record, uint64_t nr_xcc);

/*
 * Folds each queue record that fits, in place. An SDMA queue has one MQD only, and gets its size. @machine has the GPUs
 * by actual ids, as the state does.
 */
void fold_queues(struct kfd_state *state, const struct topology *machine);

/* ---- memory for waves ---- */

/*
 * Memory for waves (CWSR) that RESTORE wants to see before it is restored.
 *
 * Drivers whose RESTORE checks queues want that memory as a BO or a range of SVM, of exactly the size that the
 * local GPU needs. Ranges, where ROCm has it, are restored at RESUME, and not where a BO is mapped. So a BO is the
 * placeholder while RESTORE runs: user memory at an address that no process can have, so that it has no pages, ever. Then its
 * mapping is cleared through the render node, as the KFD would not unmap what a queue uses. The BO, mapped nowhere, stays
 * until the process ends, under a handle far above the program's, and kfd_checkpoint() leaves it out.
 */

/*
 * Finds what @driver wants for the queues in *state, which names the GPUs of @machine by now: into state->placeholders.
 * 0 or -ENOMEM.
 */
int placeholders_find(struct kfd_state *state, const struct topology *machine, const struct driver_release *driver);

/* kfd_restore() with what was found. */
int driver_restore(int kfd, struct kfd_state *state);

#endif
