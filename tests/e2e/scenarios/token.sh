# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# GPUs of two processes pass a token through shared memory: never lost or doubled in 20 dumps, 4 of them restored
# gpus: 2xmi100
# tier: all

job_start --vram 0 --gtt 0 --userptr 0 --chain 1000 --busy 0 --children 1 --split --extra token
for ((round = 1; round <= 20; round++)); do
	token=$(state_get "$job" token)
	if ((round % 5 == 0)); then
		dump
		restore
	else
		dump --leave-running
		rm -rf "$images"
	fi
	expect_state_above 30 token "$token" "$token"
	((round % 5)) || expect_verified
done
job_end
