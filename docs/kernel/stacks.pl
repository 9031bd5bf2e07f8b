# SPDX-License-Identifier: GPL-2.0-only
# stacks.md: the size of a control stack is told to the queue manager when the topology knows it.
edit 'amdkfd/kfd_topology.c', sub {
	s{^\tkfd_queue_ctx_save_restore_size\(dev\);\n\K}{
		"\tgpu->dqm->mqd_mgrs[KFD_MQD_TYPE_CP]->ctl_stack_size =\n" .
		"\t\tALIGN(dev->node_props.ctl_stack_size, AMDGPU_GPU_PAGE_SIZE);\n"
	}me;
};
edit 'amdkfd/kfd_mqd_manager_v9.c', sub {
	s{^\t\tif \(dev->kfd->cwsr_enabled\) \{\n\t\t\tstruct kfd_topology_device .*?^\t\t\}\n}{}ms;
};
