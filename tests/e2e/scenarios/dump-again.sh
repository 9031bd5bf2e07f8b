# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2217
# One directory for several dumps: each replaces the images of the one before and leaves none of them, one that is refused leaves all
# gpus: 2xmi100
# tier: all

job_start --vram 64K --children 1
process_shape >"$work/shape"
dump --leave-running
expect_images 2 2
expect_progress
! criu_call dump -t "${job_pids[0]}" --leave-running --lazy-pages --port 9999 || fail "criu dump --lazy-pages succeeded"
expect_one_error 'lazy-pages'
expect_progress
job_kill
expect_gone
restore
job_goes
job_end

# Another job, with other files; images of names that it does not write, and a link where it will write.
job_start --vram 128K --gtt 64K --chain 5000
process_shape >"$work/shape"
touch "$images/amdgpu-pages-999-1234.img" "$images/amdgpu-kfd-x.img" "$work/elsewhere"
link=$(basename "$(find "$images" -name 'amdgpu-kfd-[0-9]*.img' | sort | head -n 1)")
ln -sf "$work/elsewhere" "$images/$link"
criu_call dump -t "${job_pids[0]}" --leave-running || fail "criu dump into a used directory: $(criu_errors)"
[ ! -s "$work/elsewhere" ] || fail "the dump wrote through a link"
[ -e "$images/amdgpu-kfd-x.img" ] || fail "the dump removed a file that is none of the plugin's"
rm "$images/amdgpu-kfd-x.img"
expect_images 2 1
expect_progress
criu_call dump -t "${job_pids[0]}" || fail "criu dump into a used directory: $(criu_errors)"
expect_gone
expect_images 2 1
restore
job_goes
job_end

# A process without a GPU.
sleep 1000 </dev/null >/dev/null 2>&1 &
job_pids=($!)
disown
criu_call dump -t "${job_pids[0]}" --shell-job || fail "criu dump of a process without a GPU: $(criu_errors)"
[ -z "$(find "$images" -name 'amdgpu-*')" ] || fail "images of the earlier dump are left"
