# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# What cannot be saved is refused at dump by name, and the process goes on
# gpus: 1xmi100

# refuses PATTERN JOB-ARGUMENT...
refuses() {
	local pattern=$1
	shift
	job_start "${small[@]}" "$@"
	job_picture
	dump_refused
	expect_one_error "$pattern"
	expect_unharmed
	job_kill
	expect_gone
}

refuses 'mapping at .* of renderD.*the process has no /dev/kfd open' --extra lent
refuses 'of /dev/kfd is incomplete: 4096 bytes from ' --extra bells
refuses 'a descriptor of /dev/kfd was sent over a socket' --extra flight
refuses 'has renderD.* open and not /dev/kfd, and the file is in use: 1 contexts, 0 syncobjs' --extra drawing
refuses 'renderD.* does not begin where its buffer does' --extra hole
refuses 'has a file of SMI events open' --extra smi

# No file of the tree is open, and the GPU computes on in what is mapped.
job_start "${small[@]}" --extra closed
job_picture
dump_refused
expect_one_error 'mapping at .* of .*the process has no /dev/kfd open'
expect_progress
expect_shape "$work/shape"
job_kill
expect_gone

# Nor has a process anything mapped: criu asks for no file or mapping of it. No criu before 4.0 asks for its tasks.
job_start "${small[@]}" --extra bare
job_picture
child=$(pgrep -P "${job_pids[0]}")
images_new
! criu_call dump -t "$child" --shell-job || fail "a process with VRAM and without /dev/kfd was dumped"
expect_one_error "pid $child: has closed /dev/kfd, but still has 0 queues and 32 KiB of VRAM on GPUs"
dump_refused
expect_one_error "pid $child: has closed /dev/kfd, but still has 0 queues and 32 KiB of VRAM on GPUs"
images_new
! criu_call pre-dump -t "$child" --shell-job || fail "a process with VRAM and without mappings was pre-dumped"
expect_one_error 'cannot be pre-dumped'
expect_unharmed
alive "$child" || fail "the process with VRAM is gone"
job_kill
expect_gone

# Such a descriptor is no file of a device: criu has its own words for it.
job_start "${small[@]}" --extra path
job_picture
dump_refused
grep -q "Can't dump file .* of that type .*chr" "$work/$criu_runs-dump.log" || fail "criu does not speak of the path"
! grep 'Error (amdgpu_plugin)' "$work/$criu_runs-dump.log" || fail "the plugin takes a path for a file"
expect_unharmed
job_kill
expect_gone

# Linux 6.12 cannot list a file's buffers.
refuses 'renderD.* holds 1 buffers of the render node itself' --extra gem
refuses 'has renderD.* open and not /dev/kfd, and the file is in use: 0 contexts, 1 syncobjs' --extra syncing

# Another process of the tree is what cannot be dumped: criu says so, after the first one's GPU was saved.
job_start "${small[@]}" --children 1 --extra misc --extra-last
job_picture
dump_refused
expect_criu_error "Can't dump file .* of that type"
expect_unharmed
job_kill
expect_gone
