# SPDX-License-Identifier: GPL-2.0-only
# mes.md: RESTORE looks up the buffer of the write pointer, which MES needs, and a restored MQD says where it is itself.
edit 'amdkfd/kfd_process_queue_manager.c', sub {
	my $lookup = <<'END';
	if (pdd->dev->kfd->shared_resources.enable_mes) {
		struct amdgpu_vm *vm = drm_priv_to_vm(pdd->drm_priv);

		ret = amdgpu_bo_reserve(vm->root.bo, false);
		if (ret)
			goto exit;
		ret = kfd_queue_buffer_get(vm, qp.write_ptr, &qp.wptr_bo, PAGE_SIZE);
		amdgpu_bo_unreserve(vm->root.bo);
		if (ret)
			goto exit;
	}

END
	my $undo = "\t\tkfd_queue_unref_bo_vas(pdd, &qp);\n\t\tkfd_queue_buffer_put(&qp.wptr_bo);\n";

	s{^\tret = pqm_create_queue\(&p->pqm, pdd->dev, &qp, &queue_id, q_data,.*?\n\tif \(ret\) \{\n}{$lookup$&$undo}m;
};
edit 'amdkfd/kfd_mqd_manager_v11.c', sub {
	my $place = "\tm->cp_mqd_base_addr_lo = lower_32_bits(addr);\n\tm->cp_mqd_base_addr_hi = upper_32_bits(addr);\n";

	s{^static void restore_mqd\(.*?\n\tmemcpy\(m, mqd_src, sizeof\(\*m\)\);\n\K}{$place}ms;
};
