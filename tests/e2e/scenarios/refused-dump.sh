# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# The image directory is full: the dump fails and says so, the job and its queues go on, the next dump works
# gpus: 2xmi100
# kernels: each

job_start --vram 4M
process_shape >"$work/shape"
images_new
mount -t tmpfs -o size=2M tmpfs "$images"
! criu_call dump -t "${job_pids[0]}" || fail "criu dump succeeded in a directory of 2 MiB"
grep -q 'Error (amdgpu_plugin): .*No space left' "$work/$criu_runs-dump.log" ||
	fail "the plugin does not say that there is no space left; first errors: $(criu_errors)"
umount "$images"
job_goes
job_returns
job_end
