# SPDX-License-Identifier: GPL-2.0-only
# partitions.md: the XCCs of the partition, not those of the device.
edit 'amdkfd/kfd_process_queue_manager.c', sub {
	s{NUM_XCC\(pdd->dev->\Kadev->gfx\.(?=xcc_mask\))}{};
};
