# SPDX-License-Identifier: GPL-2.0-only
# sdma.md: a restored SDMA queue whose number is in use gets another one of the same engine, and keeps its doorbell.
edit 'amdkfd/kfd_device_queue_manager.c', sub {
	my $helper = <<'END';
/* A free number of the same engine, the saved one if that is free; -EBUSY for none. */
static int free_sdma_id(unsigned long *bitmap, u32 saved, u32 nr_queues, u32 nr_engines)
{
	u32 id;

	if (test_bit(saved, bitmap))
		return saved;
	for (id = saved % nr_engines; id < nr_queues; id += nr_engines)
		if (test_bit(id, bitmap))
			return id;
	return -EBUSY;
}

END
	s{^(?=static int allocate_sdma_queue\([^;]*?\)\n\x7b)}{$helper}m;
	for my $kind ('', 'xgmi_') {
		s{^(\t+)if \(!test_bit\(\*restore_sdma_id, dqm->${kind}sdma_bitmap\)\) \{.*?\n\1\}\n.*?sdma_id = \*restore_sdma_id;\n}{
			"$1bit = free_sdma_id(dqm->${kind}sdma_bitmap, *restore_sdma_id, get_num_${kind}sdma_queues(dqm),\n" .
			"$1\t\t   kfd_get_num_${kind}sdma_engines(dqm->dev));\n" .
			"$1if (bit < 0)\n$1\treturn bit;\n" .
			"$1clear_bit(bit, dqm->${kind}sdma_bitmap);\n$1q->sdma_id = bit;\n"
		}mse;
	}
	# Any doorbell that a queue of the engine can have: its range is routed to the engine, and the queue is told its doorbell.
	s{^(\t+)if \(restore_id && \*restore_id != valid_id\)\n.*?q->doorbell_id = valid_id;\n}{
		"$1if (restore_id && (*restore_id % KFD_QUEUE_DOORBELL_MIRROR_OFFSET < engine_base % KFD_QUEUE_DOORBELL_MIRROR_OFFSET ||\n" .
		"$1    *restore_id % KFD_QUEUE_DOORBELL_MIRROR_OFFSET >= engine_base % KFD_QUEUE_DOORBELL_MIRROR_OFFSET +\n" .
		"$1    dev->kfd->device_info.num_sdma_queues_per_engine / 2))\n$1\treturn -EINVAL;\n" .
		"$1q->doorbell_id = restore_id ? *restore_id : valid_id;\n"
	}mse;
};
