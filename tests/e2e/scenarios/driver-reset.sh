# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A GPU that hangs, or whose copies hang, while a job is restored, or which is being reset: the job is right, or it is not there
# gpus: 1xmi100
# kernels: each
# tier: all

job_start --vram 1M
process_shape >"$work/shape"
dump
expect_no_objects

# The last word of the driver about resets is that one has begun.
is_resetting() {
	dmesg | grep -E 'GPU reset (begin|succeeded)|GPU reset\(' | tail -n 1 | grep -q begin
}

nr=0
for state in hang rings; do
	nr=$((nr + 1))
	gpus_state "$state"
	states_blank
	if criu_call restore -d; then
		wait_until 30 states_written || fail "$state: the restored job does not compute"
		job_goes
		job_end
		echo "# $state: restored while the GPU was reset"
	else
		echo "# $state: refused while the GPU was reset"
		expect_gone
		expect_no_objects
	fi
	wait_until 60 had_resets "$nr" || fail "$state: the driver does not reset the GPU"
done

# Another job's copies hang, and the driver opens /dev/kfd for nobody while it resets the GPU. Linux 7.3 does that within
# 0.2 s: this reset is held until the plugin has waited 5 s for the end of the other job, and some more for /dev/kfd.
gpus_state held
"$gpujob" --state "$work/stranger" --vram 1M >"$work/stranger.start" 2>&1 &
stranger=$!
disown
wait_until 60 is_resetting || fail "the driver does not reset the GPU of a job whose copies hang"
# The other job waits for its first buffer. It ends before it has a queue, which could have the number of the saved one.
kill -KILL "$stranger"
log=$work/$((criu_runs + 1))-restore.log
{ wait_until 60 grep -qs 'amdgpu_plugin: version' "$log" && sleep 10 && gpus_state ok; } &
release=$!
restore
wait "$release" || fail "the reset was not released"
grep -q 'amdgpu_plugin: waited .* ms for /dev/kfd' "$log" || fail "the reset was over before the restore"
wait_until 10 no_process "$stranger" || fail "the other job does not end"
job_goes
job_end
