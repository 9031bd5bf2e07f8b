# SPDX-License-Identifier: GPL-2.0-only
# resume.md: RESUME of a process that has no address space yet is refused.
edit 'amdgpu/amdgpu_amdkfd_gpuvm.c', sub {
	s{^int amdgpu_amdkfd_criu_resume\(.*?pinfo = .*?;\n\n\K}{\tif (!pinfo)\n\t\treturn -EINVAL;\n\n}ms;
};
