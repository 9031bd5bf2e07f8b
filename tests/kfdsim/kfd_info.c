// SPDX-License-Identifier: GPL-2.0-only
/*
 * The small ioctls of /dev/kfd: what a process asks about its GPUs, and
 * settings that the simulated engines have no use for but the kernel checks
 * and keeps.
 */
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "kfd.h"

#define KFD_APERTURE_SIZE      (4ULL << 30)
#define KFD_LDS_BASE	       (1ULL << 48)
#define KFD_SCRATCH_BASE       (2ULL << 48)
/* The second memory policy aperture: 64 KiB steps in the lower half. */
#define KFD_APE1_FIXED_BITS    0xffff80000000ffffULL
#define KFD_APE1_LIMIT_BITS    0xffffULL
#define KFD_OLD_APERTURES      7
#define KFD_TILE_CONFIGS       32
#define KFD_MACRO_TILE_CONFIGS 16
#define KFD_GB_ADDR_CONFIG     0x2a114042
#define KFD_CAP_SVMAPI	       0x08000000
#define KFD_RUNTIME_ENABLE     1

int kfd_ioctl_get_version(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_get_version_args *args = data;

	args->major_version = 1;
	args->minor_version = sim_machine.desc.kernel.kfd_minor;
	return 0;
}

int kfd_ioctl_old_debugger(struct kfd_process *p, void *data)
{
	return -EPERM;
}

/* ---- apertures ---- */

static void kfd_fill_aperture(const struct kfd_pdd *pdd, struct kfd_process_device_apertures *ap)
{
	ap->lds_base = KFD_LDS_BASE;
	ap->lds_limit = KFD_LDS_BASE + KFD_APERTURE_SIZE - 1;
	ap->scratch_base = KFD_SCRATCH_BASE;
	ap->scratch_limit = KFD_SCRATCH_BASE + KFD_APERTURE_SIZE - 1;
	ap->gpuvm_base = KFD_GPUVM_BASE;
	ap->gpuvm_limit = KFD_GPUVM_LIMIT;
	ap->gpu_id = pdd->gpu->node->gpu_id;
}

int kfd_ioctl_get_process_apertures(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_get_process_apertures_args *args = data;
	unsigned int i, n = min(p->nr_pdds, (unsigned int)KFD_OLD_APERTURES);

	for (i = 0; i < n; i++)
		kfd_fill_aperture(p->pdds[i], &args->process_apertures[i]);
	args->num_of_nodes = n;
	return 0;
}

int kfd_ioctl_get_process_apertures_new(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_get_process_apertures_new_args *args = data;
	struct kfd_process_device_apertures *ap;
	unsigned int i, n;
	int ret = 0;

	if (!args->num_of_nodes) {
		args->num_of_nodes = p->nr_pdds;
		return 0;
	}
	/* The limit counts CPU nodes, too. */
	if (args->num_of_nodes > sim_machine.desc.nr_nodes)
		return -EINVAL;
	n = min(args->num_of_nodes, p->nr_pdds);
	args->num_of_nodes = n;
	if (!n)
		return 0;
	ap = kcalloc(n, sizeof(*ap), GFP_KERNEL);
	if (!ap)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		kfd_fill_aperture(p->pdds[i], &ap[i]);
	if (copy_to_user(u64_to_user_ptr(args->kfd_process_device_apertures_ptr), ap, n * sizeof(*ap)))
		ret = -EFAULT;
	kfree(ap);
	return ret;
}

/* ---- clocks, tiles ---- */

int kfd_ioctl_get_clock_counters(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_get_clock_counters_args *args = data;

	struct kfd_pdd *pdd = kfd_pdd_by_user_id(p, args->gpu_id);

	args->gpu_clock_counter = pdd ? sim_gpu_clock(pdd->gpu) : 0;
	args->cpu_clock_counter = ktime_get_raw_ns();
	args->system_clock_counter = ktime_get_boottime_ns();
	args->system_clock_freq = NSEC_PER_SEC;
	return 0;
}

/* GPUs since gfx9 have the tables, but nothing in them. */
static int kfd_copy_tiles(u64 ptr, u32 *count, u32 have)
{
	*count = min(*count, have);
	if (!clear_user(u64_to_user_ptr(ptr), *count * sizeof(u32)))
		return 0;
	*count = 0;
	return -EFAULT;
}

int kfd_ioctl_get_tile_config(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_get_tile_config_args *args = data;
	int ret;

	if (!kfd_pdd_by_user_id(p, args->gpu_id))
		return -EINVAL;
	args->gb_addr_config = KFD_GB_ADDR_CONFIG;
	args->num_banks = 0;
	args->num_ranks = 0;
	ret = kfd_copy_tiles(args->tile_config_ptr, &args->num_tile_configs, KFD_TILE_CONFIGS);
	if (ret)
		return ret;
	return kfd_copy_tiles(args->macro_tile_config_ptr, &args->num_macro_tile_configs, KFD_MACRO_TILE_CONFIGS);
}

/* ---- settings ---- */

static bool kfd_policy_ok(u32 policy)
{
	return policy == KFD_IOC_CACHE_POLICY_COHERENT || policy == KFD_IOC_CACHE_POLICY_NONCOHERENT;
}

int kfd_ioctl_set_memory_policy(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_set_memory_policy_args *args = data;
	u64 base = args->alternate_aperture_base;
	u64 limit = base + args->alternate_aperture_size - 1;
	struct kfd_pdd *pdd;
	int ret = 0;

	if (!kfd_policy_ok(args->default_policy) || !kfd_policy_ok(args->alternate_policy))
		return -EINVAL;
	mutex_lock(&p->lock);
	pdd = kfd_pdd_by_user_id(p, args->gpu_id);
	if (!pdd)
		ret = -EINVAL;
	else if (!pdd->vm)
		ret = -ESRCH;
	else if (args->alternate_aperture_size &&
		 ((base & KFD_APE1_FIXED_BITS) || (limit & KFD_APE1_FIXED_BITS) != KFD_APE1_LIMIT_BITS))
		ret = -EINVAL;
	mutex_unlock(&p->lock);
	return ret;
}

int kfd_ioctl_set_trap_handler(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_set_trap_handler_args *args = data;
	struct kfd_pdd *pdd;
	int ret = 0;

	mutex_lock(&p->lock);
	pdd = kfd_pdd_by_user_id(p, args->gpu_id);
	if (!pdd) {
		ret = -EINVAL;
	} else if (!pdd->vm) {
		ret = -ESRCH;
	} else {
		pdd->tba = args->tba_addr;
		pdd->tma = args->tma_addr;
	}
	mutex_unlock(&p->lock);
	return ret;
}

int kfd_ioctl_set_scratch_backing_va(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_set_scratch_backing_va_args *args = data;
	struct kfd_pdd *pdd;
	int ret = 0;

	mutex_lock(&p->lock);
	pdd = kfd_pdd_by_user_id(p, args->gpu_id);
	if (!pdd)
		ret = -EINVAL;
	else if (!pdd->vm)
		ret = -ENODEV;
	else
		pdd->scratch_va = args->va_addr;
	mutex_unlock(&p->lock);
	return ret;
}

/* gfx90a, gfx94x and gfx950 choose per process; the older ones run with retry faults off. */
static bool kfd_gpu_has_xnack(const struct sim_gpu *gpu)
{
	u32 gfx = sim_gpu_prop(gpu, SIM_PROP_gfx_target_version);

	return (gfx == 90010 || (gfx >= 90400 && gfx < 100000)) &&
	       (sim_gpu_prop(gpu, SIM_PROP_capability) & KFD_CAP_SVMAPI);
}

bool kfd_process_has_xnack(const struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->nr_pdds; i++)
		if (!kfd_gpu_has_xnack(p->pdds[i]->gpu))
			return false;
	return p->nr_pdds;
}

int kfd_ioctl_set_xnack_mode(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_set_xnack_mode_args *args = data;
	int ret = 0;

	if (!kfd_process_has_svm(p))
		return -EPERM;
	mutex_lock(&p->lock);
	if (args->xnack_enabled < 0)
		args->xnack_enabled = p->xnack;
	else if (!list_empty(&p->queues))
		ret = -EBUSY;
	else if (args->xnack_enabled && !p->xnack && !kfd_process_has_xnack(p))
		ret = -EPERM;
	else
		p->xnack = !!args->xnack_enabled;
	mutex_unlock(&p->lock);
	return ret;
}

static int kfd_runtime_enable(struct kfd_process *p)
{
	if (p->runtime_enabled)
		return -EBUSY;
	if (!list_empty(&p->queues))
		return -EEXIST;
	p->runtime_enabled = true;
	return 0;
}

int kfd_ioctl_runtime_enable(struct kfd_process *p, void *data)
{
	struct kfdsim_runtime_enable_args *args = data;
	int ret = 0;

	mutex_lock(&p->lock);
	if (args->mode_mask & KFD_RUNTIME_ENABLE)
		ret = kfd_runtime_enable(p);
	else
		p->runtime_enabled = false;
	mutex_unlock(&p->lock);
	return ret;
}
