# SPDX-License-Identifier: GPL-2.0-only
# events.md: the GPU is looked for by the id under which the process knows it.
edit 'amdkfd/kfd_process.c', sub {
	s{^static void kfd_process_kunmap_signal_bo\(.*?^\}\n}{
		my $body = $&;
		$body =~ s/^\tstruct kfd_node \*kdev;\n//m;
		$body =~ s/^\tkdev = .*?return;\n\n//ms;
		$body =~ s/kfd_get_process_device_data\(kdev, p\)/kfd_process_device_data_by_id(p, GET_GPU_ID(p->signal_handle))/;
		$body
	}mse;
};
