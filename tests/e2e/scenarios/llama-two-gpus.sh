# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Debian's llama.cpp has the layers of its model on two GPUs, is caught in the middle of a sentence, and says the same
# gpus: 2xmi100
# userland: programs
# tier: all
# seconds: 1200
# memory: 6144

# shellcheck source=tests/e2e/llama.sh
. "$top/tests/e2e/llama.sh"

export GGML_CUDA_DISABLE_GRAPHS=1
undisturbed F32 5
says caught F32 5
said 3
grep -q 'layer .* assigned to device ROCm1' "${text%.text}.err" || fail "it has no layer on the second GPU"
falls_silent
expect_images 2 1
goes_on_speaking
said_all
expect_same_text caught F32
