/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between the kernels that the module builds against (6.1, 6.12, 7.2). Nothing else goes here. */
#ifndef KFDSIM_COMPAT_H
#define KFDSIM_COMPAT_H

#include <linux/version.h>

#define SIM_KERNEL_BEFORE(major, minor) (LINUX_VERSION_CODE < KERNEL_VERSION(major, minor, 0))

/* The name space became a string in 6.13. */
#if SIM_KERNEL_BEFORE(6, 13)
#define SIM_IMPORT_NS(ns) MODULE_IMPORT_NS(ns)
#else
#define SIM_IMPORT_NS(ns) MODULE_IMPORT_NS(#ns)
#endif

/* Functions with and without the dma-buf's lock were told apart in 6.2. */
#if SIM_KERNEL_BEFORE(6, 2)
#define sim_dma_buf_map dma_buf_map_attachment
#define sim_dma_buf_unmap dma_buf_unmap_attachment
#else
#define sim_dma_buf_map dma_buf_map_attachment_unlocked
#define sim_dma_buf_unmap dma_buf_unmap_attachment_unlocked
#endif

/* Pinning lost an argument in 6.5. */
#if SIM_KERNEL_BEFORE(6, 5)
#define sim_pin_user_pages_remote(mm, start, n, flags, pages, locked) \
	pin_user_pages_remote(mm, start, n, flags, pages, NULL, locked)
#else
#define sim_pin_user_pages_remote pin_user_pages_remote
#endif

/* A file's mmap offsets are unsigned, which the core wants to be told since 6.12; fdinfo came in 6.5. */
#if SIM_KERNEL_BEFORE(6, 5)
#define SIM_DRM_FOPS_EXTRA
#elif SIM_KERNEL_BEFORE(6, 12)
#define SIM_DRM_FOPS_EXTRA .show_fdinfo = drm_show_fdinfo,
#else
#define SIM_DRM_FOPS_EXTRA .show_fdinfo = drm_show_fdinfo, .fop_flags = FOP_UNSIGNED_OFFSET,
#endif

/* PRIME had to be asked for before 6.6. Drivers had a date before 6.14. */
#if SIM_KERNEL_BEFORE(6, 6)
#define SIM_DRM_DRIVER_EXTRA                                                                               \
	.prime_handle_to_fd = drm_gem_prime_handle_to_fd, .prime_fd_to_handle = drm_gem_prime_fd_to_handle, \
	.gem_prime_mmap = drm_gem_prime_mmap, .date = "20150101",
#elif SIM_KERNEL_BEFORE(6, 14)
#define SIM_DRM_DRIVER_EXTRA .date = "20150101",
#else
#define SIM_DRM_DRIVER_EXTRA
#endif

/* Copying arrays with an overflow check came in 6.7, asking the core for a handle's dma-buf in 6.8. */
#if SIM_KERNEL_BEFORE(6, 7)
#define sim_memdup_array_user(src, n, size) memdup_user(src, array_size(n, size))
#else
#define sim_memdup_array_user memdup_array_user
#endif

/* By way of an fd, which another thread of the process may see for a moment. */
#if SIM_KERNEL_BEFORE(6, 8)
#include <linux/dma-buf.h>
#include <linux/fdtable.h>
#include <drm/drm_prime.h>

static inline struct dma_buf *sim_prime_handle_to_dmabuf(struct drm_device *ddev, struct drm_file *file, u32 handle,
							 u32 flags)
{
	struct dma_buf *buf;
	int fd, ret;

	ret = drm_gem_prime_handle_to_fd(ddev, file, handle, flags, &fd);
	if (ret)
		return ERR_PTR(ret);
	buf = dma_buf_get(fd);
	close_fd(fd);
	return buf;
}
#else
#define sim_prime_handle_to_dmabuf drm_gem_prime_handle_to_dmabuf
#endif

/* struct class.devnode got a const device in 6.2. */
#if SIM_KERNEL_BEFORE(6, 2)
#define COMPAT_DEVNODE_CONST
#else
#define COMPAT_DEVNODE_CONST const
#endif

/* A mapping's flags were changed directly before 6.3. */
#if SIM_KERNEL_BEFORE(6, 3)
#define vm_flags_set(vma, flags) ((vma)->vm_flags |= (flags))
#define vm_flags_clear(vma, flags) ((vma)->vm_flags &= ~(flags))
#endif

#endif
