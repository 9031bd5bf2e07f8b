# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Debian's llama.cpp is caught in the middle of a sentence, three times, the last time it goes on on another GPU, and says the same
# gpus: 1xmi100
# userland: programs
# tier: all
# seconds: 1500
# memory: 6144
# log: ttm_bo_release, the driver leaves the page with events pinned where a GPU has another id (asicsim/complaints)

# shellcheck source=tests/e2e/llama.sh
. "$top/tests/e2e/llama.sh"

export GGML_CUDA_DISABLE_GRAPHS=1
undisturbed F32 9
says caught F32 9
for n in 2 4 6; do
	said "$n"
	falls_silent
	[ "$n" -ne 6 ] || machine_load 2xmi100-b
	goes_on_speaking
done
said_all
expect_same_text caught F32
