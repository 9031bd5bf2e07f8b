# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Parent and child on two GPUs are suspended as one, again and again; nobody suspends what is suspended
# gpus: 2xmi100
# tier: all
# kernels: each
# seconds: 600

job_start --children 1 --vram 2M --extra threads --extra aql --extra svm --extra maps
job_picture
idle=$(vram_used)
tool_says 0 'suspended, VRAM freed' suspend --tree "${job_pids[0]}"
[ "$(vram_used)" -lt "$idle" ] || fail "$(vram_used) bytes of VRAM are in use, as before"
tool_says 0 'suspended since' state "${job_pids[@]}"
tool_says 2 'is suspended already' suspend "${job_pids[0]}"
tool_says 0 'is suspended: it is dumped as it is' check "${job_pids[0]}"
tool_says 0 'running' resume --tree "${job_pids[0]}"
tool_says 0 'running' state "${job_pids[@]}"
expect_unharmed
for ((n = 0; n < 10; n++)); do
	job_suspend
	job_resume
	expect_right
done
expect_picture

# One alone, the other goes on.
tool_run suspend "${job_pids[1]}" || fail "suspend: $(<"$work/tool.out")"
generation=$(state_get "$job" generation)
wait_until 20 state_above "$job" generation "$generation" || fail "the parent does not go on"
tool_run resume "${job_pids[1]}" || fail "resume: $(<"$work/tool.out")"
expect_unharmed

# On a disk that nobody else may read.
job_suspend -D "$work/contents"
[ "$(stat -c %a "$work/contents")" = 700 ] || fail "others may read $work/contents"
job_resume
expect_unharmed
[ ! -e "$work/contents" ] || fail "$work/contents is still there"

# A damaged file is not taken: the job stays suspended, and goes on with the right one.
job_suspend -D "$work/contents"
used=$(vram_used)
file=$(find "$work/contents" -name "amdgpu-pages-${job_pids[0]}-*" -size +64k | head -n 1)
flip_bit "$file" 65000
tool_says 2 'is damaged: CRC-32C' resume "${job_pids[@]}"
tool_says 0 'suspended since' state "${job_pids[@]}"
[ "$(vram_used)" -eq "$used" ] || fail "$(vram_used) bytes of VRAM are in use after a resume that failed, not $used"
flip_bit "$file" 65000
job_resume
expect_unharmed

# It is killed while it is suspended.
job_suspend
kill -KILL "${job_pids[@]}"
expect_gone
expect_no_objects
tool_says 0 'gone, its buffer data are removed' resume "${job_pids[@]}"
nothing_kept || fail "data of a process that is gone are still there"
