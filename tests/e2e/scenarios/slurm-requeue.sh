# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Slurm with the files of docs/examples/slurm: jobs that are preempted, or suspended, are dumped, requeued and restored on another GPU
# gpus: 2xmi100
# userland: slurm
# host: changed, by Slurm's daemons
# memory: 4000
# seconds: 1200

# shellcheck source=tests/e2e/slurm.sh
. "$top/tests/e2e/slurm.sh"

slurm_prepare
slurm_start requeue gpu:2
install -m 755 "$examples/job-criu" /usr/local/sbin/
install -m 440 "$examples/job-criu.sudoers" /etc/sudoers.d/job-criu
install -m 755 "$examples/requeue-job.sh" "$home/"

# comes_back GENERATION: the low job is started again, and goes on behind that
comes_back() {
	states_blank
	scontrol update "job=$low" starttime=now
	wait_until 240 states_written || fail "the job is not restored: $(tail -n 3 "$work/slurm-$low.out")"
	wait_until 60 state_above "$job" generation "$1" || fail "the job does not come back: $(tail -n 3 "$work/slurm-$low.out")"
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

# Suspended when it is told to go: it is dumped as it is, is suspended when it starts again, and goes on with a resume.
arrives_suspended() {
	tool_run state "${job_pids[0]}" && grep -q ': suspended' "$work/tool.out" && grep -q '^TracerPid:[[:space:]]*0$' "/proc/${job_pids[0]}/status"
}
job_suspend
generation=$(state_get "$job" generation)
scancel --batch --signal=USR1 "$low"
wait_until 120 no_process "${job_pids[0]}" || fail "the suspended job was told to go and stays: $(tail -n 3 "$work/slurm-$low.out")"
expect_job "$low" PENDING
expect_no_objects
states_blank
scontrol update "job=$low" starttime=now
wait_until 240 arrives_suspended || fail "the job is not suspended again: $(<"$work/tool.out") $(tail -n 3 "$work/slurm-$low.out")"
expect_job "$low" RUNNING
job_resume
wait_until 60 states_written || fail "the resumed job does not compute: $(tail -n 3 "$work/slurm-$low.out")"
wait_until 60 state_above "$job" generation "$generation" || fail "the job has lost what it had computed"
expect_right
nothing_kept || fail "left behind: $(find /run/amdgpu-checkpoint)"

# Told to go by its user; its GPU is another's when it starts again.
minor=$(render_minors "${job_pids[0]}")
generation=$(state_get "$job" generation)
scancel --batch --signal=USR1 "$low"
wait_until 120 no_process "${job_pids[0]}" || fail "the job was told to go and stays: $(tail -n 3 "$work/slurm-$low.out")"
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
