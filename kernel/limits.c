// SPDX-License-Identifier: GPL-2.0-only
/*
 * Known limits of drivers. What CHECKPOINT gave decides where it shows a limit; the driver's release decides where only
 * RESTORE would show it.
 */
#include <inttypes.h>

#include "kernel/mes.h"
#include "amdgpu_plugin_util.h"

/*
 * The fix of CVE-2026-68258 compares the size of all XCCs' states with that of one: 6.18.42, 7.1.6, 7.2. The patch
 * numbers of an amdgpu-dkms are its own, so all of its releases that may have the fix count as having it. So do kernels of
 * distributions, which take fixes of CVEs: a job that is refused can wait until its queues are idle, one that is lost not.
 */
static bool restores_one_xcc(const struct driver_release *driver)
{
	if (driver_may_be_any(driver))
		return true;
	if (driver->dkms)
		return driver_is_since(driver, 6, 18);
	if (driver->major == 6 && driver->minor == 18)
		return driver->patch >= 42;
	return driver_is_since(driver, 7, 2) || (driver_is_since(driver, 7, 1) && driver->patch >= 6);
}

/* Since 6.16.4 the states of all XCCs are saved. The patch numbers of an amdgpu-dkms are its own. */
static bool saves_every_xcc(const struct driver_release *driver)
{
	if (driver->major == 6 && driver->minor == 16 && !driver->dkms)
		return driver->patch >= 4;
	return driver_is_since(driver, 6, 16);
}

/*
 * From then on, and before 7.3, RESTORE makes room for a control stack by the XCCs of the device and copies it by those
 * of the partition (set_queue_properties_from_criu() and restore_mqd_v9_4_3()): what lies behind the MQD in VRAM is
 * overwritten. An amdgpu-dkms has such changes before the Linux that it is named after, and a kernel of a distribution may
 * have them. Partitions on Ubuntu's 6.8 to 6.14 are refused for it, although most of these may be sound: nobody would notice
 * what is overwritten, and the job goes on.
 */
static bool overruns_in_partitions(const struct driver_release *driver)
{
	if (driver_is_since(driver, 7, 3))
		return false;
	return driver_may_be_any(driver) || saves_every_xcc(driver) || (driver->dkms && driver_is_since(driver, 6, 13));
}

/* What is lost; an empty text: nothing. */
static void find_loss(const struct queue_record *record, const struct topology_node *gpu,
		      const struct driver_release *driver, char why[LIMITS_TEXT_MAX])
{
	uint64_t nr_xcc = topology_get(gpu, TOPOLOGY_NUM_XCC);
	bool is_compute = record->type == QUEUE_TYPE_COMPUTE;

	why[0] = '\0';
	if (is_compute && nr_xcc > 1 && record->mqd_size < nr_xcc * COMPUTE_MQD_SIZE)
		snprintf(why, LIMITS_TEXT_MAX, "this driver saves %u bytes of queue state where %" PRIu64 " XCCs have %" PRIu64
			 ": only the first XCC would be restored", record->mqd_size, nr_xcc, nr_xcc * COMPUTE_MQD_SIZE);
	else if (stack_of(record, gpu) == STACK_LOST)
		snprintf(why, LIMITS_TEXT_MAX, "this driver saves no control stacks, and the queue was stopped in a kernel, which "
			 "would be lost: dump again when the queue is idle");
	else if (is_compute && nr_xcc > 1 && restores_one_xcc(driver) && !fold_fits(record, nr_xcc))
		snprintf(why, LIMITS_TEXT_MAX, "this driver takes the state of %" PRIu64 " XCCs only where their control stacks "
			 "are nearly empty: dump again when fewer waves run", nr_xcc);
}

/*
 * Queues that the GPU's scheduler (MES) maps: drivers save those of gfx11, and they are recreated without RESTORE. That never
 * gets one: from 6.12 to 6.12.110, and in later ones before 7.2, it follows a NULL pointer then (init_user_queue()).
 */
static enum limit limits_of_mes(const struct queue_record *record, const struct topology_node *gpu,
				const struct driver_release *driver, char why[LIMITS_TEXT_MAX])
{
	static const enum limit limits[] = { [MES_FINE] = LIMIT_NONE, [MES_BUSY] = LIMIT_BUSY, [MES_NEVER] = LIMIT_HARM };

	if (mes_maps(gpu) && (driver_is_since(driver, 6, 6) || driver_may_be_any(driver)))
		return limits[mes_judge(record, why)];
	snprintf(why, LIMITS_TEXT_MAX, "%s, which the GPU's scheduler (MES) maps", mes_maps(gpu) ?
		 "Linux before 6.6 does not save the queues of gfx11" : "no kernel saves the queues of gfx12");
	return LIMIT_HARM;
}

enum limit limits_of_queue(const struct queue_record *record, const struct topology_node *gpu,
			   const struct topology *machine, const struct driver_release *driver,
			   char why[LIMITS_TEXT_MAX])
{
	/* Where GPUs are hidden, the other partitions of the device may be among them. */
	bool misses_some = machine->nr_hidden && topology_get(gpu, TOPOLOGY_NUM_XCC) < MAX_XCCS;
	bool may_be_part = topology_may_be_partition(gpu) && (misses_some || topology_shares_device(machine, gpu));
	struct queue_record idle = *record;
	char why_idle[LIMITS_TEXT_MAX];

	if (topology_get(gpu, TOPOLOGY_GFX_TARGET_VERSION) >= 110000)
		return limits_of_mes(record, gpu, driver, why);
	/* What RESTORE of the queue's record does to the kernel. */
	if (record->type == QUEUE_TYPE_COMPUTE && overruns_in_partitions(driver) && may_be_part) {
		snprintf(why, LIMITS_TEXT_MAX, "RESTORE of this driver overwrites memory of the kernel where a GPU is in several "
			 "partitions%s: use Linux 7.3 or later, or one partition (SPX)",
			 machine->nr_hidden ? ", as it may be, since GPUs are hidden" : "");
		return LIMIT_HARM;
	}
	find_loss(record, gpu, driver, why);
	if (!why[0])
		return LIMIT_NONE;
	idle.mqd_stack_offset = idle.mqd_wave_offset = record->mqd_stack_size;
	find_loss(&idle, gpu, driver, why_idle);
	return why_idle[0] ? LIMIT_LOSS : LIMIT_BUSY;
}

/* A control stack of MI300X. It fills from its end. */
#define ROCM_STACK 0x3000u

enum limit limits_of_gpu(const struct topology_node *gpu, const struct topology *machine,
			 const struct driver_release *driver, char why[LIMITS_TEXT_MAX])
{
	uint64_t nr_xcc = topology_get(gpu, TOPOLOGY_NUM_XCC);
	uint32_t nr_mqds = (uint32_t)(nr_xcc && saves_every_xcc(driver) ? nr_xcc : 1);
	struct queue_record record = {
		.type = QUEUE_TYPE_COMPUTE,
		.format = QUEUE_FORMAT_AQL,
		.percent = 100,
		.cwsr_address = 1,
		/* Releases between 6.12 and 7.2 were not looked at (stack_of() sees it in what is saved). */
		.ctl_stack_size = driver_is_since(driver, 7, 2) ? 0 : nr_mqds * ROCM_STACK,
		.mqd_size = nr_mqds * COMPUTE_MQD_SIZE,
		.nr_mqds = nr_mqds,
		.mqd_stack_size = ROCM_STACK,
		.mqd_stack_offset = ROCM_STACK,
		.mqd_wave_offset = ROCM_STACK,
	};
	enum limit limit = limits_of_queue(&record, gpu, machine, driver, why);

	/* An idle queue, and then one with waves. */
	record.mqd_stack_offset = 0;
	if (!limit && limits_of_queue(&record, gpu, machine, driver, why))
		limit = LIMIT_BUSY;
	if (limit != LIMIT_LOSS || nr_xcc <= nr_mqds || !driver_may_be_any(driver))
		return limit;
	snprintf(why, LIMITS_TEXT_MAX, "the release does not tell whether this driver saves the state of all %" PRIu64 " XCCs: a dump "
		 "finds out, and is refused if not, or while a kernel runs", nr_xcc);
	return LIMIT_UNCLEAR;
}

/* What to do about a queue that would be lost. One that does harm is always refused. */
enum loss { LOSS_REFUSED, LOSS_TRIED, LOSS_ACCEPTED };

static int find_queue_limit(pid_t pid, const struct kfd_state *state, const struct topology *machine,
			    const struct driver_release *driver, enum loss loss)
{
	for (uint32_t i = 0; i < state->nr_queues; i++) {
		const struct queue_record *queue = &state->queues[i];
		const struct topology_node *gpu = kfd_state_gpu(state, machine, queue->gpu_id);
		char why[LIMITS_TEXT_MAX];
		enum limit limit;
		bool can_be_tried;

		if (!gpu && loss != LOSS_ACCEPTED)
			return fail(-ENODEV, "pid %d: has a queue on gpu %#x, which the machine's topology does not show",
				    pid, queue->gpu_id);
		if (!gpu)
			continue;
		limit = limits_of_queue(queue, gpu, machine, driver, why);
		/* A queue of gfx11 cannot be recreated in the middle of a kernel. */
		can_be_tried = limit == LIMIT_LOSS || (limit == LIMIT_BUSY && !mes_maps(gpu));
		if (limit == LIMIT_NONE || (can_be_tried && loss == LOSS_ACCEPTED))
			continue;
		if (!can_be_tried || loss != LOSS_TRIED)
			return fail(-EOPNOTSUPP, "pid %d: has a queue on gpu %#x (gfx version %" PRIu64 ", %s): %s%s%s", pid,
				    topology_gpu_id(gpu), topology_get(gpu, TOPOLOGY_GFX_TARGET_VERSION), driver->text, why,
				    limit == LIMIT_BUSY ? " (KFD_IDLE_WAIT=SECONDS waits longer)" : "",
				    can_be_tried ? " (KFD_RESTORABLE_CHECK=0 tries it anyway)" : "");
		pr_warn("pid %d: a queue on gpu %#x is dumped, although %s\n", pid, topology_gpu_id(gpu), why);
	}
	if (state->is_known)
		return 0;
	/* A driver that saves in an unknown way may have other limits, too, and may do harm. */
	return fail(-EOPNOTSUPP, "pid %d: its state of %" PRIu64 " bytes (version %u, %s) has an unknown layout, so it is "
		    "unknown whether its queues would be restored: please report it", pid, state->priv_size, state->version,
		    driver->text);
}

int limits_check_queues(pid_t pid, const struct kfd_state *state, const struct topology *machine,
			const struct driver_release *driver, bool try)
{
	int err = find_queue_limit(pid, state, machine, driver, try ? LOSS_TRIED : LOSS_REFUSED);
	_cleanup_free_ struct queue_record *queues = NULL;
	size_t nr;

	/* Whether those that MES maps could be recreated. */
	return err ? err : mes_list(state, machine, true, &queues, &nr);
}

bool limits_are_busy(const struct kfd_state *state, const struct topology *machine, const struct driver_release *driver,
		     bool try)
{
	char why[LIMITS_TEXT_MAX];
	bool busy = false;

	for (uint32_t i = 0; i < state->nr_queues; i++) {
		const struct queue_record *queue = &state->queues[i];
		const struct topology_node *gpu = kfd_state_gpu(state, machine, queue->gpu_id);
		enum limit limit = gpu ? limits_of_queue(queue, gpu, machine, driver, why) : LIMIT_HARM;

		if (limit == LIMIT_HARM || (limit == LIMIT_LOSS && !try))
			return false;
		busy |= limit == LIMIT_BUSY;
	}
	return state->is_known && busy;
}

int limits_check_harm(const struct kfd_state *state, const struct topology *machine, const struct driver_release *driver)
{
	return find_queue_limit((pid_t)state->pid, state, machine, driver, LOSS_ACCEPTED);
}
