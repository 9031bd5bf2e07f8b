# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154,SC2317
# Slurm with the files of docs/examples/slurm: jobs that are preempted are suspended in place
# gpus: 1xmi100-256m
# userland: slurm
# host: changed, by Slurm's daemons
# memory: 4000
# seconds: 1500

# shellcheck source=tests/e2e/slurm.sh
. "$top/tests/e2e/slurm.sh"

follow() {
	"$top/build/amdgpu-checkpoint" follow --cgroup / >"$work/follow.out" 2>&1 &
	follow=$!
}

# above_all: a job of the partition high, which does not fit beside the low one, computes, and ends right
above_all() {
	submit -p high -c 2 --gres=gpu:high:1 --wrap "$gpujob --state $home/high --vram 140M"
	high=$id
	expect_computes "$home/high"
	expect_job "$low" SUSPENDED
	ends_right "$home/high"
	expect_job "$high" COMPLETED
	rm -f "$home/high"
}

slurm_prepare
slurm_start suspend gpu:low:1,gpu:high:1
follow

# Preempted, once and by two that follow each other.
submit -p low -c 2 --gres=gpu:low:1 --wrap "$gpujob --state $home/low --vram 140M"
low=$id
job_take "$home/low"
job_picture
above_all
expect_job "$low" RUNNING
expect_unharmed
submit -p high -c 2 --gres=gpu:high:1 --wrap "$gpujob --state $home/second --vram 140M"
second=$id
expect_computes "$home/second"
submit -p high -c 2 --gres=gpu:high:1 --wrap "$gpujob --state $home/third --vram 140M"
third=$id
ends_right "$home/second"
expect_computes "$home/third"
expect_job "$low" SUSPENDED
ends_right "$home/third"
expect_job "$low" RUNNING
expect_unharmed

# By hand.
scontrol suspend "$low"
wait_until 120 vram_below 2097152 || fail "suspended by hand, and $(vram_used) bytes of VRAM are in use"
scontrol resume "$low"
expect_unharmed
job_end
expect_job "$low" COMPLETED

# A step of srun, which Slurm stops by a signal besides.
submit -p low -c 2 --gres=gpu:low:1 --wrap "srun --gres=gpu:low:1 $gpujob --state $home/step --vram 140M"
low=$id
job_take "$home/step"
job_picture
above_all
expect_unharmed

# Cancelled while it is suspended.
scontrol suspend "$low"
wait_until 120 vram_below 2097152 || fail "suspended by hand, and $(vram_used) bytes of VRAM are in use"
scancel "$low"
expect_gone
expect_job "$low" CANCELLED
wait_until 120 slurm_is_idle || fail "the node is not idle: $(sinfo -N -h -o '%T %E')"
wait_until 60 nothing_kept || fail "of a job that was cancelled there is still something in /run"
expect_no_objects
kill "$follow"
wait "$follow" || fail "follow ended with status $?: $(tail -n 2 "$work/follow.out")"
slurm_stop
