// SPDX-License-Identifier: GPL-2.0-only
/*
 * The character device /dev/kfd: class and node, the table of ioctls with one
 * row each, who may call what, and mmap. What an ioctl does is elsewhere; here
 * is only how its arguments come in and go out.
 */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kfd.h"

/* ---- the ioctls ---- */

/* The number decides size and direction, whatever the caller encoded. */
#define KFD_NR_GET_VERSION		 0x80084b01
#define KFD_NR_CREATE_QUEUE		 0xc0604b02
#define KFD_NR_DESTROY_QUEUE		 0xc0084b03
#define KFD_NR_SET_MEMORY_POLICY	 0x40204b04
#define KFD_NR_GET_CLOCK_COUNTERS	 0xc0284b05
#define KFD_NR_GET_PROCESS_APERTURES	 0x81904b06
#define KFD_NR_UPDATE_QUEUE		 0x40184b07
#define KFD_NR_CREATE_EVENT		 0xc0204b08
#define KFD_NR_DESTROY_EVENT		 0x40084b09
#define KFD_NR_SET_EVENT		 0x40084b0a
#define KFD_NR_RESET_EVENT		 0x40084b0b
#define KFD_NR_WAIT_EVENTS		 0xc0184b0c
#define KFD_NR_DBG_REGISTER		 0x40084b0d
#define KFD_NR_DBG_UNREGISTER		 0x40084b0e
#define KFD_NR_DBG_ADDRESS_WATCH	 0x40104b0f
#define KFD_NR_DBG_WAVE_CONTROL		 0x40104b10
#define KFD_NR_SET_SCRATCH_BACKING_VA	 0xc0104b11
#define KFD_NR_GET_TILE_CONFIG		 0xc0284b12
#define KFD_NR_SET_TRAP_HANDLER		 0x40184b13
#define KFD_NR_GET_PROCESS_APERTURES_NEW 0xc0104b14
#define KFD_NR_ACQUIRE_VM		 0x40084b15
#define KFD_NR_ALLOC_MEMORY_OF_GPU	 0xc0284b16
#define KFD_NR_FREE_MEMORY_OF_GPU	 0x40084b17
#define KFD_NR_MAP_MEMORY_TO_GPU	 0xc0184b18
#define KFD_NR_UNMAP_MEMORY_FROM_GPU	 0xc0184b19
#define KFD_NR_SET_CU_MASK		 0x40104b1a
#define KFD_NR_GET_QUEUE_WAVE_STATE	 0xc0184b1b
#define KFD_NR_GET_DMABUF_INFO		 0xc0204b1c
#define KFD_NR_IMPORT_DMABUF		 0xc0184b1d
#define KFD_NR_ALLOC_QUEUE_GWS		 0xc0104b1e
#define KFD_NR_SMI_EVENTS		 0xc0084b1f
#define KFD_NR_SVM			 0xc0184b20
#define KFD_NR_SET_XNACK_MODE		 0xc0044b21
#define KFD_NR_CRIU_OP			 0xc0384b22
#define KFD_NR_AVAILABLE_MEMORY		 0xc0104b23
#define KFD_NR_EXPORT_DMABUF		 0xc0104b24
#define KFD_NR_RUNTIME_ENABLE		 0xc0104b25
#define KFD_NR_CREATE_PROCESS		 0x00004b27

#define KFD_NR_LIMIT 0x29

struct kfd_ioctl_row {
	u32 cmd;
	kfd_ioctl_handler *handler;
	int (*file_handler)(struct file *file); /* instead */
	int (*validate)(const void *data, size_t size);
	u32 since; /* KFD minor: older ones answer -ENOTTY */
	bool criu; /* the owner's tracer may call it; wants CAP_CHECKPOINT_RESTORE */
};

/* The file becomes that of a secondary context. */
static int kfd_create_process(struct file *file)
{
	struct kfd_process *p = file->private_data, *context = kfd_context_open(p);

	if (IS_ERR(context))
		return PTR_ERR(context);
	file->private_data = context;
	file->f_mapping = context->inode->i_mapping;
	kfd_process_put(p);
	return 0;
}

#define ROW(nr, func, ...) \
	[_IOC_NR(KFD_NR_##nr)] = { .cmd = KFD_NR_##nr, .handler = func, ##__VA_ARGS__ }

/* DBG_TRAP and PROFILER are not simulated: -ENOTTY, as from a kernel older than they are. */
static const struct kfd_ioctl_row kfd_ioctl_rows[KFD_NR_LIMIT] = {
	ROW(GET_VERSION, kfd_ioctl_get_version),
	ROW(CREATE_QUEUE, kfd_ioctl_create_queue),
	ROW(DESTROY_QUEUE, kfd_ioctl_destroy_queue),
	ROW(SET_MEMORY_POLICY, kfd_ioctl_set_memory_policy),
	ROW(GET_CLOCK_COUNTERS, kfd_ioctl_get_clock_counters),
	ROW(GET_PROCESS_APERTURES, kfd_ioctl_get_process_apertures),
	ROW(UPDATE_QUEUE, kfd_ioctl_update_queue),
	ROW(CREATE_EVENT, kfd_ioctl_create_event),
	ROW(DESTROY_EVENT, kfd_ioctl_destroy_event),
	ROW(SET_EVENT, kfd_ioctl_set_event),
	ROW(RESET_EVENT, kfd_ioctl_reset_event),
	ROW(WAIT_EVENTS, kfd_ioctl_wait_events),
	ROW(DBG_REGISTER, kfd_ioctl_old_debugger),
	ROW(DBG_UNREGISTER, kfd_ioctl_old_debugger),
	ROW(DBG_ADDRESS_WATCH, kfd_ioctl_old_debugger),
	ROW(DBG_WAVE_CONTROL, kfd_ioctl_old_debugger),
	ROW(SET_SCRATCH_BACKING_VA, kfd_ioctl_set_scratch_backing_va),
	ROW(GET_TILE_CONFIG, kfd_ioctl_get_tile_config),
	ROW(SET_TRAP_HANDLER, kfd_ioctl_set_trap_handler),
	ROW(GET_PROCESS_APERTURES_NEW, kfd_ioctl_get_process_apertures_new),
	ROW(ACQUIRE_VM, kfd_ioctl_acquire_vm),
	ROW(ALLOC_MEMORY_OF_GPU, kfd_ioctl_alloc_memory),
	ROW(FREE_MEMORY_OF_GPU, kfd_ioctl_free_memory),
	ROW(MAP_MEMORY_TO_GPU, kfd_ioctl_map_memory),
	ROW(UNMAP_MEMORY_FROM_GPU, kfd_ioctl_unmap_memory),
	ROW(SET_CU_MASK, kfd_ioctl_set_cu_mask),
	ROW(GET_QUEUE_WAVE_STATE, kfd_ioctl_get_queue_wave_state),
	ROW(GET_DMABUF_INFO, kfd_ioctl_get_dmabuf_info),
	ROW(IMPORT_DMABUF, kfd_ioctl_import_dmabuf),
	ROW(ALLOC_QUEUE_GWS, kfd_ioctl_alloc_queue_gws),
	ROW(SMI_EVENTS, kfd_ioctl_smi_events, .since = 3),
	ROW(SVM, kfd_ioctl_svm, .validate = kfd_ioctl_svm_validate, .since = 5),
	ROW(SET_XNACK_MODE, kfd_ioctl_set_xnack_mode, .since = 5),
	ROW(CRIU_OP, kfd_ioctl_criu, .since = 7, .criu = true),
	ROW(AVAILABLE_MEMORY, kfd_ioctl_available_memory, .since = 9),
	ROW(EXPORT_DMABUF, kfd_ioctl_export_dmabuf, .since = 12),
	ROW(RUNTIME_ENABLE, kfd_ioctl_runtime_enable, .since = 13),
	ROW(CREATE_PROCESS, NULL, .file_handler = kfd_create_process, .since = 19),
};

static const struct kfd_ioctl_row *kfd_find_row(unsigned int cmd)
{
	const struct kfd_ioctl_row *row;

	if (_IOC_NR(cmd) >= ARRAY_SIZE(kfd_ioctl_rows))
		return NULL;
	row = &kfd_ioctl_rows[_IOC_NR(cmd)];
	if ((!row->handler && !row->file_handler) || row->since > sim_machine.desc.kernel.kfd_minor)
		return NULL;
	return row;
}

/* The file belongs to the process that opened it; only its tracer, for checkpointing, may use it from outside. */
static int kfd_check_caller(struct kfd_process *p, const struct kfd_ioctl_row *row)
{
	bool tracer = false;

	if (row->criu) {
		rcu_read_lock();
		tracer = ptrace_parent(p->lead_thread) == current;
		rcu_read_unlock();
	}
	if (p->lead_thread != current->group_leader && !tracer)
		return -EBADF;
	/* The opener has since called exec: the object is that of the program before. */
	if (p->mm != current->mm && !tracer)
		return -EBADF;
	if (row->criu && !capable(CAP_CHECKPOINT_RESTORE) && !capable(CAP_SYS_ADMIN))
		return -EACCES;
	return 0;
}

static int kfd_call(struct file *file, const struct kfd_ioctl_row *row, void *data, size_t size)
{
	int ret;

	if (row->validate) {
		ret = row->validate(data, size);
		if (ret)
			return ret;
	}
	return row->file_handler ? row->file_handler(file) : row->handler(file->private_data, data);
}

/*
 * A shorter struct than ours is extended with zeros, a longer one comes in and
 * goes out unchanged behind ours. Results go out also when the call failed.
 */
static long kfd_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	const struct kfd_ioctl_row *row = kfd_find_row(cmd);
	struct kfd_process *p = file->private_data;
	size_t user_size = _IOC_SIZE(cmd), size;
	u8 buffer[128] __aligned(8);
	u8 *data = buffer;
	int ret;

	if (!row)
		return -ENOTTY;
	ret = kfd_check_caller(p, row);
	if (ret)
		return ret;

	size = max_t(size_t, user_size, _IOC_SIZE(row->cmd));
	if (size > sizeof(buffer)) {
		data = kmalloc(size, GFP_KERNEL);
		if (!data)
			return -ENOMEM;
	}
	memset(data, 0, size);
	if ((_IOC_DIR(row->cmd) & _IOC_WRITE) && copy_from_user(data, (void __user *)arg, user_size)) {
		ret = -EFAULT;
		goto out;
	}
	ret = kfd_call(file, row, data, user_size);
	if ((_IOC_DIR(row->cmd) & _IOC_READ) && copy_to_user((void __user *)arg, data, user_size))
		ret = -EFAULT;
out:
	if (data != buffer)
		kfree(data);
	return ret;
}

/* ---- mmap ---- */

static const unsigned long kfd_device_vm_flags =
	VM_IO | VM_PFNMAP | VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP | VM_NORESERVE;

/* Up to 7.2 the kernel takes the id in the offset for the actual one, from 7.3 on for the one the process knows. */
static struct kfd_pdd *kfd_mmap_pdd(struct kfd_process *p, u32 gpu_id)
{
	struct kfd_pdd *pdd;
	struct sim_gpu *gpu;

	if (sim_machine.desc.kernel.mmap_user_id) {
		pdd = kfd_pdd_by_user_id(p, gpu_id);
		return pdd ? pdd : ERR_PTR(-ENODEV);
	}
	gpu = sim_gpu_by_id(gpu_id);
	if (!gpu)
		return ERR_PTR(-ENODEV);
	pdd = kfd_pdd_by_gpu(p, gpu);
	return pdd ? pdd : ERR_PTR(-EINVAL);
}

static int kfd_mmio_mmap(struct kfd_pdd *pdd, struct vm_area_struct *vma)
{
	unsigned long pfn = page_to_pfn(kfd_gpu(pdd->gpu)->mmio);

	if (vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	return remap_pfn_range(vma, vma->vm_start, pfn, PAGE_SIZE, vma->vm_page_prot);
}

static int kfd_mmap(struct file *file, struct vm_area_struct *vma)
{
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	struct kfd_process *p = file->private_data;
	struct kfd_pdd *pdd = NULL;
	u64 type = offset & KFD_MMAP_TYPE_MASK;

	if (p->lead_thread != current->group_leader || p->mm != current->mm)
		return sim_machine.desc.kernel.release < 702 ? -EINVAL : -EBADF;
	/* The kernel used to map its trap handler there on old APUs. */
	if (type == KFD_MMAP_TYPE_RESERVED && sim_machine.desc.kernel.release >= 702)
		return -EINVAL;
	if (type != KFD_MMAP_TYPE_EVENTS) {
		pdd = kfd_mmap_pdd(p, KFD_MMAP_GET_GPU_ID(offset));
		if (IS_ERR(pdd))
			return PTR_ERR(pdd);
	}
	if (type == KFD_MMAP_TYPE_RESERVED)
		return -EINVAL;
	vm_flags_set(vma, kfd_device_vm_flags);
	if (type == KFD_MMAP_TYPE_EVENTS)
		return kfd_events_mmap(p, vma);
	return type == KFD_MMAP_TYPE_DOORBELL ? kfd_doorbells_mmap(pdd, vma) : kfd_mmio_mmap(pdd, vma);
}

/* ---- the device ---- */

static int kfd_open(struct inode *inode, struct file *file)
{
	struct kfd_process *p;

	if (iminor(inode))
		return -ENODEV;
	if (in_compat_syscall()) {
		pr_warn("kfdsim: process %d is a 32-bit one; /dev/kfd serves 64-bit processes only\n", current->pid);
		return -EPERM;
	}
	p = kfd_process_open();
	if (IS_ERR(p))
		return PTR_ERR(p);
	file->private_data = p;
	file->f_mapping = p->inode->i_mapping;
	return 0;
}

static int kfd_release(struct inode *inode, struct file *file)
{
	struct kfd_process *p = file->private_data;

	if (p->primary)
		kfd_context_close(p);
	else
		kfd_process_put(p);
	return 0;
}

static const struct file_operations kfd_fops = {
	.owner = THIS_MODULE,
	.open = kfd_open,
	.release = kfd_release,
	.unlocked_ioctl = kfd_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = kfd_mmap,
};

static char *kfd_devnode(COMPAT_DEVNODE_CONST struct device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0666;
	return NULL;
}

static struct class kfd_class = {
	.name = "kfd",
	.devnode = kfd_devnode,
};

static int kfd_major;
static struct device *kfd_device;

struct device *sim_kfd_device(void)
{
	return kfd_device;
}

static void kfd_fini_gpu(struct sim_gpu *gpu)
{
	struct kfd_gpu *kgpu = kfd_gpu(gpu);

	if (!kgpu)
		return;
	gpu->kfd_priv = NULL;
	kfd_client_fini(kgpu);
	if (kgpu->mmio)
		__free_page(kgpu->mmio);
	bitmap_free(kgpu->sdma_busy);
	bitmap_free(kgpu->xgmi_busy);
	mutex_destroy(&kgpu->lock);
	kfree(kgpu);
}

static int kfd_init_gpu(struct sim_gpu *gpu)
{
	u64 per_engine = max(sim_gpu_prop(gpu, SIM_PROP_num_sdma_queues_per_engine), 1ULL);
	struct kfd_gpu *kgpu = kzalloc(sizeof(*kgpu), GFP_KERNEL);
	int ret;

	if (!kgpu)
		return -ENOMEM;
	gpu->kfd_priv = kgpu;
	kgpu->gpu = gpu;
	mutex_init(&kgpu->lock);
	kfd_smi_init_gpu(kgpu);
	kgpu->nr_sdma = sim_gpu_prop(gpu, SIM_PROP_num_sdma_engines) * per_engine;
	kgpu->nr_xgmi = sim_gpu_prop(gpu, SIM_PROP_num_sdma_xgmi_engines) * per_engine;
	kgpu->sdma_busy = bitmap_zalloc(max(kgpu->nr_sdma, 1U), GFP_KERNEL);
	kgpu->xgmi_busy = bitmap_zalloc(max(kgpu->nr_xgmi, 1U), GFP_KERNEL);
	kgpu->mmio = alloc_page(GFP_KERNEL | __GFP_ZERO);
	ret = kgpu->sdma_busy && kgpu->xgmi_busy && kgpu->mmio ? kfd_client_init(kgpu) : -ENOMEM;
	if (ret)
		kfd_fini_gpu(gpu);
	return ret;
}

static void kfd_fini_gpus(void)
{
	unsigned int i;

	for (i = 0; i < sim_machine.nr_gpus; i++)
		kfd_fini_gpu(sim_machine.gpus[i]);
}

static int kfd_init_gpus(void)
{
	unsigned int i;
	int ret;

	for (i = 0; i < sim_machine.nr_gpus; i++) {
		ret = kfd_init_gpu(sim_machine.gpus[i]);
		if (ret) {
			kfd_fini_gpus();
			return ret;
		}
	}
	return 0;
}

static int kfd_device_init(void)
{
	int ret;

	kfd_major = register_chrdev(0, "kfd", &kfd_fops);
	if (kfd_major < 0)
		return kfd_major;
	ret = class_register(&kfd_class);
	if (ret)
		goto err_chrdev;
	kfd_device = device_create(&kfd_class, NULL, MKDEV(kfd_major, 0), NULL, "kfd");
	if (IS_ERR(kfd_device)) {
		ret = PTR_ERR(kfd_device);
		kfd_device = NULL;
		goto err_class;
	}
	return 0;

err_class:
	class_unregister(&kfd_class);
err_chrdev:
	unregister_chrdev(kfd_major, "kfd");
	return ret;
}

static void kfd_device_fini(void)
{
	device_destroy(&kfd_class, MKDEV(kfd_major, 0));
	kfd_device = NULL;
	class_unregister(&kfd_class);
	unregister_chrdev(kfd_major, "kfd");
}

int sim_kfd_init(void)
{
	int ret;

	BUILD_BUG_ON(sizeof(struct kfdsim_create_queue_args) != _IOC_SIZE(KFD_NR_CREATE_QUEUE));
	BUILD_BUG_ON(sizeof(struct kfd_ioctl_criu_args) != _IOC_SIZE(KFD_NR_CRIU_OP));
	BUILD_BUG_ON(sizeof(struct kfd_ioctl_get_process_apertures_args) != _IOC_SIZE(KFD_NR_GET_PROCESS_APERTURES));
	BUILD_BUG_ON(sizeof(struct kfdsim_event_data) != 48);

	ret = kfd_init_gpus();
	if (ret)
		return ret;
	ret = kfd_process_init();
	if (ret)
		goto err_gpus;
	ret = kfd_device_init();
	if (ret)
		goto err_process;
	ret = kfd_procfs_init(kfd_device);
	if (ret)
		goto err_device;
	return 0;

err_device:
	kfd_device_fini();
err_process:
	kfd_process_fini();
err_gpus:
	kfd_fini_gpus();
	return ret;
}

void sim_kfd_fini(void)
{
	/* No file is open any more, but processes that once opened one may live. */
	kfd_process_fini();
	kfd_procfs_fini();
	kfd_device_fini();
	kfd_fini_gpus();
}
