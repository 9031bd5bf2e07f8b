# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Two programs on ROCm's HSA runtime, whose kernels compute in private memory, suspended and dumped in the middle
# gpus: 2xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

gpujob=$hsajob
# The runtime's default of that time needs a driver of its own, which is not Linux'.
export HSA_ENABLE_IPC_MODE_LEGACY=0
options=(--share ipc --kernels "$top/build/gcn/private.co")

pair="${options[*]}"
job_start "${options[@]}"
process_shape >"$work/shape"
for n in 1 2; do
	job_suspend
	job_resume
	job_goes
done
job_end
expect_no_objects
rm -f "$work/shape"
if loses_stacks; then
	stays "$no_stacks" "${options[@]}"
else
	comes_back "${options[@]}"
fi
