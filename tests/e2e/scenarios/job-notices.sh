# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# The test job itself: one wrong bit anywhere, or one packet too many, and it says so and ends
# gpus: 1xmi100
# tier: all

declare -A says=(
	[vram]='VRAM seen by the GPU: byte'
	[gtt]='GTT seen by the GPU: byte'
	[userptr]='userptr seen by the GPU: byte'
	[packet]='increments submitted'
)
for what in "${!says[@]}"; do
	job_start --vram 64K --gtt 64K --userptr 64K --spoil "$what"
	expect_verified
	kill -USR2 "${job_pids[@]}"
	kill -USR1 "${job_pids[@]}"
	expect_gone
	[ "$(state_get "$job" phase)" = failed ] || fail "spoiled $what: the job ended as if all were right"
	[[ $(state_get "$job" message) == *"${says[$what]}"* ]] ||
		fail "spoiled $what: the job says \"$(state_get "$job" message)\""
done
