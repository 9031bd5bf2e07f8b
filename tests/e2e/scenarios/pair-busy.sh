# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# GPUs that another job uses: an idle one comes first where the job works, for all tasks alike; a queue that is taken is named
# gpus: default
# tier: all

# shellcheck source=tests/e2e/pairs.sh
. "$top/tests/e2e/pairs.sh"

job_dump --children 1
machine_load 2xmi100 '/^hive_id/d'
stranger_start --gpus 0 "${small_job[@]}"
accepted "parent and child go to the idle one of two GPUs" 128=129
! grep -q 'becomes gpu .*(renderD128)' "$work/$criu_runs-restore.log" || fail "a task went to the GPU in use"
[ "$(grep -c 'amdgpu_plugin: Warning: pid .* the kernel confuses the two ids' "$work/$criu_runs-restore.log")" -eq 2 ] ||
	fail "no warning of other ids for each of two tasks"
stranger_end

machine_load default
stranger_start --gpus 0 "${small_job[@]}"
pair="the only GPU is in use"
! criu_call restore -d || fail "criu restore succeeded, but it should have refused"
expect_gone
grep -q 'Error (amdgpu_plugin): .*Device or resource busy (another process holds an SDMA queue' \
	"$work/$criu_runs-restore.log" || fail "no line about queues of another process: $(criu_errors)"
alive "$stranger" || fail "the other job is gone"
pair_shown
stranger_end
accepted "and then it is free again" 128=128

# It sees both GPUs and works on one.
machine_load 2xmi100 '/^hive_id/d'
job_dump --gpus 1
stranger_start --gpus 0 "${small_job[@]}"
"$top/build/amdgpu-checkpoint" match "$images" >"$work/match.out" 2>&1 || fail "match: $(tail -n 1 "$work/match.out")"
grep -q '(renderD129 at dump) becomes gpu .*(renderD129,' "$work/match.out" || fail "match moves the job from its own GPU"
accepted "a job on one of two GPUs stays there while others use the one that it never used" 128=128 129=129
stranger_end
