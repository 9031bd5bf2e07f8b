// SPDX-License-Identifier: GPL-2.0-only
/*
 * The DRM driver "amdgpu": its ioctl table, what an open file owns, and the way
 * in from /dev/kfd, which shares a file's address space. Ioctls are handled in
 * drm_gem.c, drm_handles.c, drm_ctx.c, drm_cs.c and drm_info.c.
 */
#include <linux/dma-mapping.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm_drv.h>
#include <drm/drm_gem.h>
#include <drm/drm_ioctl.h>
#include <drm/drm_vma_manager.h>

#include "compat.h"
#include "drm.h"

/* ---- ioctls ---- */

static SIM_IOCTL(ioctl_vm)
{
	union drm_amdgpu_vm *args = data;

	if (args->in.flags)
		return -EINVAL;
	/* A reserved VMID is a matter of speed only. */
	return args->in.op == AMDGPU_VM_OP_RESERVE_VMID || args->in.op == AMDGPU_VM_OP_UNRESERVE_VMID ? 0 : -EINVAL;
}

static SIM_IOCTL(ioctl_sched)
{
	return -EINVAL; /* priorities of other processes' contexts are not simulated */
}

#define ROW(nr, dir, type, handler, access)                                                                \
	[DRM_AMDGPU_##nr] = {                                                                              \
		.cmd = DRM_##dir(DRM_COMMAND_BASE + DRM_AMDGPU_##nr, type),                                \
		.flags = access,                                                                           \
		.func = handler,                                                                           \
		.name = "drm:" #nr,                                                                        \
	}
#define ANY (DRM_AUTH | DRM_RENDER_ALLOW)

static const struct drm_ioctl_desc ioctls[] = {
	ROW(GEM_CREATE, IOWR, union drm_amdgpu_gem_create, sim_ioctl_gem_create, ANY),
	ROW(GEM_MMAP, IOWR, union drm_amdgpu_gem_mmap, sim_ioctl_gem_mmap, ANY),
	ROW(CTX, IOWR, union drm_amdgpu_ctx, sim_ioctl_ctx, ANY),
	ROW(BO_LIST, IOWR, union drm_amdgpu_bo_list, sim_ioctl_bo_list, ANY),
	ROW(CS, IOWR, union drm_amdgpu_cs, sim_ioctl_cs, ANY),
	ROW(INFO, IOW, struct drm_amdgpu_info, sim_ioctl_info, ANY),
	ROW(GEM_METADATA, IOWR, struct drm_amdgpu_gem_metadata, sim_ioctl_gem_metadata, ANY),
	ROW(GEM_WAIT_IDLE, IOWR, union drm_amdgpu_gem_wait_idle, sim_ioctl_gem_wait_idle, ANY),
	ROW(GEM_VA, IOW, struct sim_gem_va, sim_ioctl_gem_va, ANY),
	ROW(WAIT_CS, IOWR, union drm_amdgpu_wait_cs, sim_ioctl_wait_cs, ANY),
	ROW(GEM_OP, IOWR, struct sim_gem_op, sim_ioctl_gem_op, ANY),
	ROW(GEM_USERPTR, IOWR, struct drm_amdgpu_gem_userptr, sim_ioctl_gem_userptr, ANY),
	ROW(WAIT_FENCES, IOWR, union drm_amdgpu_wait_fences, sim_ioctl_wait_fences, ANY),
	ROW(VM, IOWR, union drm_amdgpu_vm, ioctl_vm, ANY),
	ROW(FENCE_TO_HANDLE, IOWR, union drm_amdgpu_fence_to_handle, sim_ioctl_fence_to_handle, ANY),
	ROW(SCHED, IOW, union drm_amdgpu_sched, ioctl_sched, DRM_MASTER),
	[SIM_DRM_GEM_LIST_HANDLES] = {
		.cmd = DRM_IOWR(DRM_COMMAND_BASE + SIM_DRM_GEM_LIST_HANDLES, struct sim_gem_list_handles),
		.flags = ANY,
		.func = sim_ioctl_gem_list_handles,
		.name = "drm:GEM_LIST_HANDLES",
	},
};

/*
 * GEM_CHANGE_HANDLE is the core's, but no core that we run on has it enabled, so
 * it is taken out before the core sees it.
 */
static long change_handle(struct drm_file *file, unsigned long arg)
{
	struct sim_gem_change_handle args;

	if (!sim_machine.desc.kernel.gem_change_handle)
		return -EINVAL;
	if (copy_from_user(&args, (void __user *)arg, sizeof(args)))
		return -EFAULT;
	return sim_ioctl_gem_change_handle(file->minor->dev, &args, file);
}

static long fops_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	unsigned int nr = DRM_IOCTL_NR(cmd);
	struct drm_file *file = filp->private_data;

	if (READ_ONCE(to_sim_gpu(file->minor->dev)->state) == SIM_GPU_LOST)
		return -ENODEV;
	if (DRM_IOCTL_TYPE(cmd) == DRM_IOCTL_BASE && nr == SIM_DRM_NR_GEM_CHANGE_HANDLE)
		return change_handle(file, arg);
	return drm_ioctl(filp, cmd, arg);
}

unsigned long sim_timeout(u64 abs_ns)
{
	s64 left;

	if ((s64)abs_ns < 0)
		return MAX_SCHEDULE_TIMEOUT;
	left = abs_ns - ktime_get_ns();
	if (left <= 0)
		return 0;
	return min_t(u64, nsecs_to_jiffies64(left) + 1, MAX_SCHEDULE_TIMEOUT - 1);
}

/* ---- files ---- */

static int driver_open(struct drm_device *ddev, struct drm_file *file)
{
	struct sim_drm_file *f = kzalloc(sizeof(*f), GFP_KERNEL);

	if (!f)
		return -ENOMEM;
	f->gpu = to_sim_gpu(ddev);
	f->vm = sim_vm_create(f->gpu);
	if (!f->vm) {
		kfree(f);
		return -ENOMEM;
	}
	mutex_init(&f->lock);
	idr_init_base(&f->ctxs, 1);
	idr_init_base(&f->bo_lists, 1);
	xa_init(&f->handles);
	file->driver_priv = f;
	sim_object_add(SIM_OBJ_DRM_FILE, 1);
	return 0;
}

/* The core has closed all handles before. */
static void driver_postclose(struct drm_device *ddev, struct drm_file *file)
{
	struct sim_drm_file *f = to_sim_drm_file(file);

	sim_ctx_file_fini(f);
	xa_destroy(&f->handles);
	sim_vm_put(f->vm);
	mutex_destroy(&f->lock);
	kfree(f);
	sim_object_add(SIM_OBJ_DRM_FILE, -1);
}

/*
 * Jobs come before anything else that a file has, as its buffers are unmapped next. The kernel
 * waits this long, too, but not for a process that was killed.
 */
#define CLOSE_PATIENCE_MS 1000

static int fops_release(struct inode *inode, struct file *filp)
{
	bool killed = (current->flags & PF_EXITING) && current->exit_code == SIGKILL;
	struct sim_drm_file *f = to_sim_drm_file(filp->private_data);

	sim_rings_close_file(f->gpu, f, killed ? 0 : CLOSE_PATIENCE_MS);
	return drm_release(inode, filp);
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.open = drm_open,
	.release = fops_release,
	.unlocked_ioctl = fops_ioctl,
	.compat_ioctl = drm_compat_ioctl,
	.poll = drm_poll,
	.read = drm_read,
	.llseek = noop_llseek,
	.mmap = drm_gem_mmap,
	SIM_DRM_FOPS_EXTRA
};

static int no_dumb_create(struct drm_file *file, struct drm_device *ddev, struct drm_mode_create_dumb *args)
{
	return -ENOSYS;
}

static struct drm_driver driver = {
	/* Modes only for a moment, see kfd_client.c. */
	.driver_features = DRIVER_GEM | DRIVER_RENDER | DRIVER_SYNCOBJ | DRIVER_SYNCOBJ_TIMELINE | DRIVER_MODESET,
	.dumb_create = no_dumb_create,
	.open = driver_open,
	.postclose = driver_postclose,
	.ioctls = ioctls,
	.num_ioctls = ARRAY_SIZE(ioctls),
	.fops = &fops,
	.gem_prime_import = sim_prime_import,
	SIM_DRM_DRIVER_EXTRA.name = "amdgpu",
	.desc = "AMD GPU",
	.major = 3,
};

const struct drm_driver *sim_drm_driver_init(void)
{
	driver.minor = sim_machine.desc.kernel.drm_minor;
	return &driver;
}

static struct drm_file *drm_file_of(struct file *file)
{
	return file->f_op == &fops ? file->private_data : NULL;
}

struct sim_vm *sim_vm_of_file(struct file *file)
{
	struct drm_file *drm_file = drm_file_of(file);

	return drm_file ? sim_vm_get(to_sim_drm_file(drm_file)->vm) : NULL;
}

int sim_bo_allow_file(struct sim_bo *bo, struct file *file)
{
	struct drm_file *drm_file = drm_file_of(file);

	return drm_file ? drm_vma_node_allow(&bo->base.vma_node, drm_file) : -EINVAL;
}

void sim_bo_revoke_file(struct sim_bo *bo, struct file *file)
{
	struct drm_file *drm_file = drm_file_of(file);

	if (drm_file)
		drm_vma_node_revoke(&bo->base.vma_node, drm_file);
}

/* ---- GPUs ---- */

int sim_drm_init_gpu(struct sim_gpu *gpu)
{
	/* Importing foreign dma-bufs maps them for this device. */
	if (!gpu->dev->dma_mask)
		dma_coerce_mask_and_coherent(gpu->dev, DMA_BIT_MASK(48));
	return sim_rings_init(gpu);
}

void sim_drm_fini_gpu(struct sim_gpu *gpu)
{
	sim_rings_fini(gpu);
}
