// SPDX-License-Identifier: GPL-2.0-only
/* What a struct kfd_state owns, and what follows from it. */
#include "amdgpu_plugin_util.h"
#include "kernel/state.h"

struct bo *kfd_bos_new(size_t nr)
{
	struct bo *bos = calloc(nr + 1, sizeof(*bos));

	for (size_t i = 0; bos && i < nr; i++)
		bos[i].dmabuf_fd = KFD_NO_FD;
	return bos;
}

void kfd_close_dmabufs(struct kfd_state *state)
{
	for (size_t i = 0; state->bos && i < state->nr_bos; i++) {
		if (state->bos[i].dmabuf_fd != KFD_NO_FD)
			close(state->bos[i].dmabuf_fd);
		state->bos[i].dmabuf_fd = KFD_NO_FD;
	}
}

void kfd_state_done(struct kfd_state *state)
{
	kfd_close_dmabufs(state);
	free(state->devices);
	free(state->bos);
	free(state->priv_data);
	free(state->standins);
	free(state->traps);
	*state = (struct kfd_state){ 0 };
}

bool kfd_state_shares(const struct kfd_state *state)
{
	for (size_t i = 0; i < state->nr_bos; i++)
		if (state->bos[i].share.buffer)
			return true;
	return false;
}

bool kfd_state_has_address(const struct kfd_state *state, uint64_t address)
{
	for (uint32_t i = 0; i < state->nr_records; i++)
		if (address >= state->bos[i].addr && address - state->bos[i].addr < state->bos[i].size)
			return true;
	return false;
}

uint32_t kfd_state_actual_gpu(const struct kfd_state *state, uint32_t user_id)
{
	for (uint32_t i = 0; i < state->nr_devices; i++)
		if (state->devices[i].user_gpu_id == user_id)
			return state->devices[i].actual_gpu_id;
	return 0;
}

uint64_t kfd_state_vram_needed(const struct kfd_state *state, uint32_t user_id)
{
	uint64_t needed = 0;

	for (size_t i = 0; state && i < state->nr_bos; i++)
		if (state->bos[i].alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM && kfd_state_owns_on(state, i, user_id))
			needed += state->bos[i].size;
	return needed;
}

void kfd_state_vram_needs(const struct kfd_state *state, const struct topology *nodes, uint64_t *ret)
{
	for (unsigned int i = 0; i < nodes->nr_nodes; i++)
		ret[i] = kfd_state_vram_needed(state, topology_gpu_id(nodes->nodes[i]));
}
