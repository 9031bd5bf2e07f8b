# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Restored with memory that comes when it is touched, by the CPU or by the GPU's userptr buffers
# gpus: 1xmi100

job_start --vram 256K --userptr 1M
job_picture
dump
expect_gone
criu lazy-pages -D "$images" -o "$work/lazy.log" -v4 </dev/null >/dev/null 2>&1 &
wait_until 20 test -S "$images/lazy-pages.socket" || fail "criu lazy-pages does not listen"
restore --lazy-pages
expect_unharmed
job_end
