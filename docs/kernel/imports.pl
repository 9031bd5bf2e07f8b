# SPDX-License-Identifier: GPL-2.0-only
# imports.md: an import that fails gives the dma-buf back.
edit 'amdgpu/amdgpu_amdkfd_gpuvm.c', sub {
	s{^err_remove_mem:\n.*?drm_vma_node_revoke\(&obj->vma_node, drm_priv\);\n\K(?=err_free_mem)}{\tdma_buf_put(dma_buf);\n}ms;
};
