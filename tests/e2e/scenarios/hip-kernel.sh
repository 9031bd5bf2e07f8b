# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Two programs on HIP 6.4 are caught in a kernel, with the runtime's own waiting behind it, and go on, also on another GPU
# gpus: 2xmi100
# userland: hip
# tier: all
# seconds: 600
# memory: 4096
# log: ttm_bo_release, the driver leaves the page with events pinned where a GPU has another id (asicsim/complaints)

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

gpujob=$top/build/workloads/hipjob
machine_load 1xmi100
if loses_stacks; then
	stays "$no_stacks" --share nothing --kernels "$top/build/gcn/busy.co"
	return
fi
job_start --share nothing --kernels "$top/build/gcn/busy.co"
process_shape >"$work/shape"
dump --leave-running
job_goes
job_returns expect_no_objects
job_returns machine_load 2xmi100-b
job_end
expect_no_objects

# As the test for users' machines does it.
"$top/tests/hardware/run" --yes --dir "$work" --out "$work/report.tar.gz" kernel >"$work/kit.out" 2>&1 ||
	fail "$(grep -E '^(VERDICT|[a-z]* *kernel )' "$work/kit.out" | tr '\n' ' ')"
grep -q '^ok  *kernel ' "$work/kit.out" || fail "the kernel was not tried: $(grep kernel "$work/kit.out")"
