// SPDX-License-Identifier: GPL-2.0-only
/* What a struct kfd_state owns. */
#include "amdgpu_plugin_util.h"
#include "kernel/kfd.h"

void kfd_close_dmabufs(struct kfd_state *state)
{
	for (size_t i = 0; state->bos && i < state->nr_bos; i++) {
		if (state->bos[i].dmabuf_fd != KFD_NO_FD)
			close((int)state->bos[i].dmabuf_fd);
		state->bos[i].dmabuf_fd = KFD_NO_FD;
	}
}

void kfd_state_done(struct kfd_state *state)
{
	kfd_close_dmabufs(state);
	free(state->devices);
	free(state->bos);
	free(state->shares);
	free(state->checksums);
	free(state->priv_data);
	*state = (struct kfd_state){ 0 };
}
