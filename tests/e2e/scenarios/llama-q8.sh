# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Debian's llama.cpp with weights of 8 bits is dumped in the middle of a sentence and goes on, then once more and is restored: the same text
# gpus: 1xmi100
# userland: programs
# tier: all
# seconds: 1200
# memory: 6144

# shellcheck source=tests/e2e/llama.sh
. "$top/tests/e2e/llama.sh"

undisturbed Q8_0 15
says caught Q8_0 15
said 6
dump --leave-running
said 13
falls_silent
goes_on_speaking
said_all
expect_same_text caught Q8_0
