// SPDX-License-Identifier: GPL-2.0-only
/* What a struct kfd_state owns, and what follows from it. */
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
	free(state->standins);
	*state = (struct kfd_state){ 0 };
}

uint32_t kfd_state_actual_gpu(const struct kfd_state *state, uint32_t user_id)
{
	for (uint32_t i = 0; i < state->nr_devices; i++)
		if (state->devices[i].user_gpu_id == user_id)
			return state->devices[i].actual_gpu_id;
	return 0;
}
