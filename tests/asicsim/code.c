// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernels of real code: the compute units of gcn/ with the page tables of a queue's process. When the queue is taken
 * off, the driver's trap handler writes the waves' state into the process's save area; the control stack and the next
 * group to launch go into the MQD's memory. Nothing else is kept.
 */
#include <linux/ktime.h>

#include "chip.h"
#include "gcn/dispatch.h"
#include "gcn/inst.h"
#include "soc15_ih_clientid.h"
#include "v9_structs.h"

/* Instructions of a wave in a row, with interrupts off. */
#define STEPS 128

#define SQ_SOURCE 239 /* messages of shaders (SOC15_INTSRC_SQ_INTERRUPT_MSG) */
#define DOORBELLS 1024 /* of a process */

struct chip_code {
	struct chip_code *next; /* of those without a kernel */
	struct gcn_env env;
	struct gcn_pool pool;
	struct gcn_dispatch dispatch;
	struct chip *chip;
	struct chip_vm vm;
	unsigned long flags;
	bool told_illegal;
	struct gcn_inst decoded[GCN_DECODED];
};

/*
 * Those without a kernel, for the next ones: much memory, and instructions that were decoded, which are looked at again when
 * their place has the same words. Nothing of a queue is in them.
 */
static struct chip_code *idle;
static DEFINE_SPINLOCK(idle_lock);

static struct chip_code *code_new(void)
{
	struct chip_code *code;

	spin_lock(&idle_lock);
	code = idle;
	if (code)
		idle = code->next;
	spin_unlock(&idle_lock);
	return code ?: kvzalloc(sizeof(*code), GFP_KERNEL);
}

void code_done(void)
{
	struct chip_code *code, *next;

	spin_lock(&idle_lock);
	next = idle;
	idle = NULL;
	spin_unlock(&idle_lock);
	while ((code = next)) {
		next = code->next;
		gcn_pool_free(&code->pool);
		kvfree(code);
	}
}

static struct chip_code *code_of(struct gcn_env *env)
{
	return container_of(env, struct chip_code, env);
}

static void enter(struct gcn_env *env)
{
	spin_lock_irqsave(&code_of(env)->chip->walk_lock, code_of(env)->flags);
}

static void leave(struct gcn_env *env)
{
	spin_unlock_irqrestore(&code_of(env)->chip->walk_lock, code_of(env)->flags);
	cond_resched();
}

static void *page(struct gcn_env *env, u64 va, enum gcn_access access)
{
	static const u64 bits[] = { [GCN_READ] = AMDGPU_PTE_READABLE,
				    [GCN_WRITE] = AMDGPU_PTE_READABLE | AMDGPU_PTE_WRITEABLE,
				    [GCN_EXECUTE] = AMDGPU_PTE_EXECUTABLE };

	return chip_walk(code_of(env)->chip, &code_of(env)->vm, va, bits[access]);
}

static u64 clock_ticks(struct gcn_env *env)
{
	return ktime_get_ns() / 10;
}

/* An instruction's message, as the driver takes it apart (kfd_int_process_v9.c): 24 bits in three places. */
static void interrupt(struct gcn_env *env, u32 data, bool in_trap)
{
	enum { PRIVILEGED = 1 << 13, BY_INSTRUCTION = 1 << 26 };
	const u32 words[4] = {
		(data & 0xfff) | (data & 0xf000) << 16 | (in_trap ? PRIVILEGED : 0) | BY_INSTRUCTION, data >> 16,
	};

	chip_interrupt(code_of(env)->chip, SOC15_IH_CLIENTID_SE0SH, SQ_SOURCE, 0, &code_of(env)->vm, words);
}

static void error_show(const struct gcn_error *e, u32 pasid, const char *when)
{
	pr_err("asicsim: compute queue of pasid %#x: %s: %s: %#llx; %s %08x %08x at %#llx\n", pasid, when, e->what,
	       e->value, e->name ?: "no instruction", e->w[0], e->w[1], e->pc);
}

/* All waves of a kernel come to the same. */
static void illegal(struct gcn_env *env, const struct gcn_error *error)
{
	struct chip_code *code = code_of(env);

	if (!code->told_illegal)
		error_show(error, code->vm.pasid, "its trap handler is told of a wave");
	code->told_illegal = true;
}

/* One line for what went wrong, and the error with which the queue stops. */
static int failed(const struct chip_queue *q, const char *when, int err, u64 *fault)
{
	const struct gcn_error *e = &q->code->dispatch.error;

	if (!e->what) {
		pr_err("asicsim: compute queue of pasid %#x: %s: error %d\n", q->vm.pasid, when, err);
		return err;
	}
	error_show(e, q->vm.pasid, when);
	*fault = e->value;
	return e->is_address ? -EFAULT : -EINVAL;
}

static void code_free(struct chip_queue *q)
{
	gcn_dispatch_end(&q->code->dispatch);
	spin_lock(&idle_lock);
	q->code->next = idle;
	idle = q->code;
	spin_unlock(&idle_lock);
	q->code = NULL;
}

/* ---- the save area and the control stack ---- */

static int area_init(const struct chip_queue *q, struct gcn_save_area *area)
{
	*area = (struct gcn_save_area){ .va = q->save_addr,
					.size = q->save_size,
					.stack_size = q->stack_size,
					.stack = kvzalloc(q->stack_size, GFP_KERNEL) };
	if (!area->stack)
		return -ENOMEM;
	return q->save_addr && q->save_size >= q->stack_size ? 0 : -ENOSPC;
}

static u64 stack_addr(const struct chip_queue *q)
{
	return q->mqd_addr + PAGE_SIZE;
}

static int load_waves(struct chip *chip, struct chip_queue *q)
{
	struct gcn_save_area area;
	u32 offset[3]; /* of the stack, its size, of the area */
	int err = area_init(q, &area);

	BUILD_BUG_ON(offsetof(struct v9_mqd, cp_hqd_wg_state_offset) !=
		     offsetof(struct v9_mqd, cp_hqd_cntl_stack_offset) + 8);
	err = err
		      ?: chip_read(chip, &chip_kernel_vm,
				   q->mqd_addr + offsetof(struct v9_mqd, cp_hqd_cntl_stack_offset), offset,
				   sizeof(offset), NULL);
	err = err ?: chip_read(chip, &chip_kernel_vm, stack_addr(q), area.stack, area.stack_size, NULL);
	if (!err) {
		area.stack_at = offset[0];
		area.area_at = offset[2];
		err = gcn_dispatch_load(&q->code->dispatch, &area);
	}
	kvfree(area.stack);
	q->wave_is_saved = false;
	return err ?: wave_set_offsets(chip, q, q->stack_size, q->stack_size);
}

static void set_restart(struct chip_queue *q)
{
	const struct gcn_dispatch *d = &q->code->dispatch;

	q->restart[0] = d->next % d->nr_groups[0];
	q->restart[1] = d->next / d->nr_groups[0] % d->nr_groups[1];
	q->restart[2] = d->next / d->nr_groups[0] / d->nr_groups[1];
}

void code_save(struct chip *chip, struct chip_queue *q)
{
	struct gcn_save_area area;
	u64 fault;
	int err = area_init(q, &area) ?: gcn_dispatch_save(&q->code->dispatch, &area);

	err = err ?: chip_write(chip, &chip_kernel_vm, stack_addr(q), area.stack, area.stack_size, NULL);
	err = err ?: wave_set_offsets(chip, q, area.stack_at, area.area_at);
	if (err)
		failed(q, "its kernel cannot be preempted", err, &fault);
	set_restart(q);
	kvfree(area.stack);
	code_free(q);
}

/* ---- run ---- */

static int start(struct chip *chip, struct chip_queue *q, const struct gcn_packet *packet)
{
	struct gcn_dispatch *d;
	int err;

	q->code = code_new();
	if (!q->code)
		return -ENOMEM;
	q->code->chip = chip;
	q->code->told_illegal = false;
	q->code->vm = q->vm;
	q->code->env = (struct gcn_env){ .page = page,
					 .clock = clock_ticks,
					 .enter = enter,
					 .leave = leave,
					 .interrupt = interrupt,
					 .illegal = illegal,
					 .pool = &q->code->pool,
					 .decoded = q->code->decoded,
					 .doorbell = (q->doorbell - chip->doorbells) % DOORBELLS,
					 .tba = q->shaders.tba,
					 .tma = q->shaders.tma,
					 .sh_mem_bases = q->shaders.sh_mem_bases };
	d = &q->code->dispatch;
	memset(d, 0, sizeof(*d));
	d->env = &q->code->env;
	err = gcn_dispatch_start(d, packet);
	if (err)
		return err;
	d->next = q->restart[0] + (u64)d->nr_groups[0] * (q->restart[1] + (u64)d->nr_groups[1] * q->restart[2]);
	memset(q->restart, 0, sizeof(q->restart));
	return q->wave_is_saved ? load_waves(chip, q) : 0;
}

int code_run(struct chip *chip, struct chip_queue *q, const struct gcn_packet *packet, u64 *fault)
{
	int err;

	if (chip->adev->ip_versions[GC_HWIP][0] != IP_VERSION(9, 4, 1)) {
		pr_err("asicsim: compute queue of pasid %#x: only an MI100 executes code\n", q->vm.pasid);
		return -EINVAL;
	}
	err = q->code ? 0 : start(chip, q, packet);
	if (err == -ENOMEM && !q->code)
		return err;
	err = err ?: gcn_dispatch_run(&q->code->dispatch, STEPS);
	if (err == -EAGAIN)
		return err;
	if (err)
		err = failed(q, "its kernel cannot go on", err, fault);
	code_free(q);
	return err;
}
