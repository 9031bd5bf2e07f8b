# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Two ranks of RCCL 7.2, each with a GPU of its own, suspended in the middle of a collective; one is killed while it is suspended
# gpus: 2xmi100
# userland: hip
# needs: build/interop/rccl/version, interop
# tier: all
# seconds: 1200
# memory: 5120

# shellcheck source=tests/e2e/rccl.sh
. "$top/tests/e2e/rccl.sh"

job_start --count 1024
for n in 1 2; do
	wait_collective
	job_suspend
	job_resume
	goes_on
done
echo "# suspended and resumed twice, generation $(state_get "$job" generation)"
ranks_end

# What is left of a rank without its other one: it is resumed, waits for ever, and frees all when it is killed.
job_start --count 1024
wait_collective
job_suspend
kill -KILL "${job_pids[1]}"
tool_run resume "${job_pids[0]}" || fail "resume: $(<"$work/tool.out")"
alive "${job_pids[0]}" || fail "the first rank is gone"
job_kill
expect_gone
wait_until 10 nothing_kept || fail "something is kept of a suspend"
ranks_have_ended
