# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A suspended job is dumped as it is, restored as a suspended one, and resumed: on the same GPU, the other one, another machine
# gpus: 2xmi100
# kernels: each
# tier: all
# seconds: 900

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

extra=(--extra code)
if loses_stacks; then
	echo "# caught in a kernel, where the driver saves no control stacks: it stays suspended"
	job_start "${small[@]}" --extra wave
	expect_progress
	process_shape >"$work/shape"
	suspends
	dump_refused
	expect_one_error 'was suspended in the middle of a kernel, and this driver .* restores idle queues only: resume it first'
	is_suspended "after a dump that was refused"
	comes_back "after a dump that was refused"
	job_end
	extra=()
fi

job_start --vram 8M --gpus 0 "${extra[@]}" --extra svm --extra threads
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
for step in lock checkpoint restore unlock; do
	tool_run "$step" "${job_pids[@]}" || [ $? -eq 3 ] || fail "restored, then $step: $(<"$work/tool.out")"
done
job_goes

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

# dies WHAT POINT ARG...: criu is killed at a call of the plugin
dies() {
	local status=0 what=$1 point=$2
	shift 2
	faults "$point 1 KILL"
	{
		"${faulty[@]}" timeout -k 5 60 criu "$what" "$@" -D "$images" -o "$work/killed.log" -v4 </dev/null >/dev/null 2>&1 || status=$?
	} 2>"$work/killed.out"
	faults
	[ "$status" -ne 0 ] || fail "criu $what was not killed at $point"
}

echo "# criu is killed in a restore, and in a dump"
for point in kfd:CRIU_RESTORE kfd:CRIU_PROCESS_INFO kfd:CRIU_RESUME kfd:CRIU_CHECKPOINT; do
	dies restore "$point" -d
	criu_left_end
	expect_gone
	expect_no_objects
	tool_run state || fail "$point: state: $(<"$work/tool.out")"
	nothing_kept || fail "$point: left behind: $(find /run/amdgpu-checkpoint)"
done
arrives "after what was refused and killed"
images_new
dies dump kfd:CRIU_CHECKPOINT -t "${job_pids[0]}" --leave-running
is_suspended "killed in a dump"
comes_back "after what was refused and killed"

echo "# a bit of the data is wrong: it stays suspended, and is resumed when it is right"
suspends
dump
has_left
flip_bit "$(ls -S "$images"/amdgpu-freed-*.img | head -n 1)" 65000
! tool_run verify "$images" || fail "verify: $(<"$work/tool.out")"
grep -q 'amdgpu-freed-.*: is damaged: CRC-32C' "$work/tool.out" || fail "verify: $(<"$work/tool.out")"
arrives "with wrong data"
! tool_run resume "${job_pids[0]}" || fail "resumed with wrong data"
grep -q 'is damaged: CRC-32C' "$work/tool.out" || fail "resume: $(<"$work/tool.out")"
is_suspended "after a resume that was refused"
flip_bit "$(find /run/amdgpu-checkpoint -name 'amdgpu-pages-*' -size +64k | head -n 1)" 65000
comes_back "with data that are right again"
job_end

echo "# two processes of one suspend"
job_start --children 1 --vram 2M
expect_verified
process_shape >"$work/shape"
suspends
moves "of two processes"
comes_back "of two processes"

echo "# two processes, of which one is suspended"
tool_run suspend "${job_pids[1]}" || fail "suspend: $(<"$work/tool.out")"
dump
expect_no_objects
states_blank
criu_call restore -d || fail "criu restore ended with status $?: $(criu_errors)"
expect_alive
wait_until 30 grep -q '^stamp ' "$job" || fail "the process that was not suspended does not compute"
tool_run state "${job_pids[1]}" || fail "state: $(<"$work/tool.out")"
grep -q ': suspended' "$work/tool.out" || fail "state says: $(<"$work/tool.out")"
tool_run resume "${job_pids[1]}" || fail "resume: $(<"$work/tool.out")"
wait_until 30 states_written || fail "the resumed process does not compute"
job_goes
job_end

echo "# a parent without a GPU"
rm -f "$job"*
setsid sh -c "'$gpujob' --state '$job' --vram 2M; exit 0" </dev/null >"$work/sh.log" 2>&1 &
wait_until 60 test -s "$job" || fail "the job does not start: $(<"$work/sh.log")"
child=$(state_get "$job" pid)
parent=$(awk '$1 == "PPid:" { print $2 }' "/proc/$child/status")
job_pids=("$child")
expect_progress
job_pids=("$parent" "$child")
suspends
moves "below a parent"
job_resume
job_pids=("$child")
expect_progress
expect_verified
[ "$(awk '$1 == "State:" { print $2 }' "/proc/$parent/status")" = S ] || fail "the parent does not run: $(grep State "/proc/$parent/status")"
nothing_kept || fail "left behind: $(find /run/amdgpu-checkpoint)"
kill -TERM "$child"
wait_until 60 no_process "$child" || fail "the job does not end"
wait_until 10 no_process "$parent" || fail "the parent does not end"
