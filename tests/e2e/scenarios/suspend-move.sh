# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A suspended job is dumped as it is, restored as a suspended one, and resumed: on the same GPU, the other one, another machine
# gpus: 2xmi100
# tier: all
# seconds: 400

# is_suspended WHEN: the command says so, the job stands still, and only what stayed on the GPU is there
is_suspended() {
	tool_run state "${job_pids[@]}" || fail "$1: state: $(<"$work/tool.out")"
	[ "$(grep -c ': suspended' "$work/tool.out")" -eq "${#job_pids[@]}" ] || fail "$1: state says: $(<"$work/tool.out")"
	is_held "$1"
	[ "$(vram_used)" -le "$idle" ] || fail "$1: $(vram_used) bytes of VRAM are in use, and $idle were"
}

# comes_back WHEN: it is resumed, and as it was
comes_back() {
	states_blank
	job_resume
	wait_until 30 states_written || fail "$1: the resumed job does not compute"
	job_goes
	nothing_kept || fail "$1: left behind: $(find /run/amdgpu-checkpoint)"
	[ -z "$(find /sys/fs/cgroup -name 'amdgpu-suspended-*')" ] || fail "$1: a cgroup is left"
}

# suspends ARG...
suspends() {
	job_suspend "$@"
	idle=$(vram_used)
}

# arrives WHEN: restored, and suspended
arrives() {
	criu_call restore -d || fail "$1: criu restore ended with status $?: $(criu_errors)"
	expect_alive
	is_suspended "$1"
}

# has_left: everything of the process is gone but its images, which have its data
has_left() {
	expect_no_objects
	images_count 'amdgpu-suspended-*.img' "${#job_pids[@]}"
	tool_run state || fail "state: $(<"$work/tool.out")"
	nothing_kept || fail "left behind: $(find /run/amdgpu-checkpoint)"
	[ -z "$(find /sys/fs/cgroup -name 'amdgpu-suspended-*')" ] || fail "a cgroup is left"
	mv "$images" "$images-moved"
	images=$images-moved
}

moves() {
	dump
	has_left
	arrives "$1"
}

job_start --vram 8M --gpus 0 --extra code --extra svm --extra threads
expect_verified
process_shape >"$work/shape"
mapfile -t ids < <(machine_gpus | cut -d ' ' -f 1)

echo "# left running"
suspends
tool_run check "${job_pids[0]}" || fail "check: $(<"$work/tool.out")"
is_suspended "after a check"
dump --leave-running
is_suspended "left running"
comes_back "left running"

echo "# criu is killed when all is saved, with its guard and without"
suspends
dump_killed
is_suspended "criu was killed"
dump_killed "$no_guard"
is_suspended "criu and its guard were killed"
comes_back "criu was killed"

echo "# the same GPU"
suspends
moves "on the same GPU"
comes_back "on the same GPU"

echo "# the other GPU; a directory; the images are removed before the resume"
suspends -D "$work/data"
export KFD_DEVICE_MAP="${ids[0]}=${ids[1]},${ids[1]}=${ids[0]}"
moves "on the other GPU"
unset KFD_DEVICE_MAP
rm -rf "$images"
comes_back "on the other GPU"

echo "# dumped again while suspended, and on another machine"
suspends -D "$work/data"
moves "before another machine"
dump
has_left
machine_load 2xmi100-b
arrives "on another machine"
comes_back "on another machine"

echo "# damaged, missing and cut: refused before anything runs"
suspends
dump
has_left
whole=$images
for damage in 'flip_bit "$record" 4000' 'flip_bit "$record" 18000' 'rm "$record"' 'rm "$data"' 'truncate -s 1M "$data"'; do
	images=$work/bad
	rm -rf "$images"
	cp -a "$whole" "$images"
	record=$(echo "$images"/amdgpu-suspended-*.img)
	data=$(ls -S "$images"/amdgpu-freed-*.img | head -n 1)
	eval "$damage"
	! tool_run verify "$images" || fail "$damage: verify: $(<"$work/tool.out")"
	restore_refused
	grep -q 'Error (amdgpu_plugin).*amdgpu-\(suspended\|freed\)-' "$work/$criu_runs"-*.log || fail "$damage: $(criu_errors)"
	nothing_kept || fail "$damage: left behind: $(find /run/amdgpu-checkpoint)"
done
images=$whole
tool_run verify "$images" || fail "verify: $(<"$work/tool.out")"
tool_run show "$images" || fail "show: $(<"$work/tool.out")"
grep -q 'suspended' "$work/tool.out" || fail "show: $(<"$work/tool.out")"
arrives "after what was refused"
comes_back "after what was refused"
job_end
