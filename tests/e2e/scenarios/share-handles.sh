# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Handles of KFD buffers, with gaps and metadata, as exporting by IPC leaves them
# gpus: 2xmi100
# tier: all

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

# The job notices memory that is not shared.
! "$gpujob" --state "$work/apart" --rounds 2 apart 2>"$work/apart.txt" || fail "copies were taken for shared memory"
grep -q 'buffer 0 by .*page .* is .*, want' "$work/apart.txt" || fail "copies: $(head -n 1 "$work/apart.txt")"

comes_back_if_listed handles

# Dumped a second time, after a restore.
if kernel_lists; then
	job_start handles
	goes_twice
fi

# A criu that stays until the job ends keeps nothing of what the job shares.
job_start ipc
process_shape >"$work/shape"
dump
restore_staying
job_goes
dump
expect_criu_ended
restore
job_goes
job_end
