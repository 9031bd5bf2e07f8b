# SPDX-License-Identifier: GPL-2.0-only
# xccs.md: what RESTORE gets is compared with what CHECKPOINT writes.
edit 'amdkfd/kfd_process_queue_manager.c', sub {
	s{mqd_size_from_queue_type\(pdd->dev->dqm, q_data->type\)\K}{ * NUM_XCC(pdd->dev->xcc_mask)};
};
