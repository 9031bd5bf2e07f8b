# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154,SC2317
# Slurm with the files of docs/examples/slurm: jobs that are preempted are suspended in place, or dumped, requeued and restored elsewhere
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

# nothing_kept: no contents of any process
nothing_kept() {
	[ ! -e /dev/shm/amdgpu-checkpoint ] && [ -z "$(ls /run/amdgpu-checkpoint)" ]
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
wait_until 60 nothing_kept || fail "of a job that was cancelled there is still something in /dev/shm or /run"
expect_no_objects
kill "$follow"
wait "$follow" || fail "follow ended with status $?: $(tail -n 2 "$work/follow.out")"
slurm_stop

# Dumped, and restored on the other GPU.
machine_load 2xmi100
slurm_start requeue gpu:2
install -m 755 "$examples/job-criu" /usr/local/sbin/
install -m 440 "$examples/job-criu.sudoers" /etc/sudoers.d/job-criu
install -m 755 "$examples/requeue-job.sh" "$home/"

# comes_back GENERATION: the low job is started again, and goes on behind that
comes_back() {
	scontrol update "job=$low" starttime=now
	wait_until 240 state_above "$job" generation "$1" || fail "the job does not come back: $(tail -n 3 "$home/slurm-$low.out")"
	expect_right
}

submit --gres=gpu:1 ./requeue-job.sh "$gpujob" --state "$home/requeued" --vram 64M
low=$id
job_take "$home/requeued"
expect_right

# Preempted, by one that wants both GPUs.
generation=$(state_get "$job" generation)
submit -p high -c 2 --gres=gpu:2 --wrap "$gpujob --state $home/high --vram 1M"
expect_computes "$home/high"
expect_gone
expect_job "$low" PENDING
ends_right "$home/high"
rm "$home/high"
comes_back "$generation"

# Told to go by its user; its GPU is another's when it starts again.
minor=$(render_minors "${job_pids[0]}")
generation=$(state_get "$job" generation)
scancel --batch --signal=USR1 "$low"
expect_gone
expect_job "$low" PENDING
submit -p high --gres=gpu:1 --wrap "$gpujob --state $home/high --vram 1M"
expect_computes "$home/high"
[ "$(render_minors "$(state_get "$home/high" pid)")" = "$minor" ] || fail "the other job did not get the GPU of the first one"
comes_back "$generation"
[ "$(render_minors "${job_pids[0]}")" != "$minor" ] || fail "the job is on the GPU that another one has"
ends_right "$home/high"
ends_right "$home/requeued"
expect_job "$low" COMPLETED
[ -z "$(ls /var/lib/job-criu/2000)" ] || fail "images of a job that has ended are left"
slurm_stop
