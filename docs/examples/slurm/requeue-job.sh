#!/bin/bash
#SBATCH --partition=low --requeue --open-mode=append
#SBATCH --signal=B:USR1@60
# A batch script whose program is dumped when the job has to go, and restored when it starts again:
#
#     sbatch --gres=gpu:1 requeue-job.sh PROGRAM ARG...
#
# One program on one node, started here and not by srun. Its output is in job-ID.log.
set -u

name=job-$SLURM_JOB_ID

leave() {
	sudo -n /usr/local/sbin/job-criu dump "$SLURM_JOB_ID" "$(<"$name.pid")" || return
	# Who is preempted is requeued by Slurm. At the time limit, or by "scancel --batch --signal=USR1", nobody else does it.
	scontrol requeue "$SLURM_JOB_ID" 2>/dev/null
	exit 0
}
trap leave USR1

if sudo -n /usr/local/sbin/job-criu has "$SLURM_JOB_ID"; then
	sudo -n /usr/local/sbin/job-criu restore "$SLURM_JOB_ID" &
else
	# In a session of its own, and with a log that is not Slurm's: Slurm adds to that.
	setsid "$@" >"$name.log" 2>&1 </dev/null &
	echo $! >"$name.pid"
fi
program=$!
# A signal ends the wait, not the program.
while wait "$program"; status=$?; [ "$status" -gt 128 ] && kill -0 "$program" 2>/dev/null; do
	:
done
# After an error the images stay: it may be the restore that has failed.
[ "$status" -ne 0 ] || sudo -n /usr/local/sbin/job-criu forget "$SLURM_JOB_ID"
exit "$status"
