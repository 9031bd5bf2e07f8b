# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Debian's llama.cpp is suspended in the middle of a sentence, another one speaks in the memory that is free, the first one goes on: both say the same
# gpus: 1xmi100-256m
# userland: programs
# tier: all
# seconds: 1200
# memory: 6144

# shellcheck source=tests/e2e/llama.sh
. "$top/tests/e2e/llama.sh"

undisturbed Q8_0 3
undisturbed F32 9
says first F32 9
said 6
first=("${job_pids[@]}")
vram=$(vram_used)
job_suspend
expect_vram_below $((vram / 10))
said_until=$(words)
says second Q8_0 3
wait_until 400 no_process "${job_pids[0]}" || fail "the second one does not end: $(tail -n 1 "$text")"
expect_same_text second Q8_0
job_pids=("${first[@]}")
text=$work/first.text
[ "$(words)" -eq "$said_until" ] || fail "it went on speaking while it was suspended"
job_resume
said_all
expect_same_text first F32
