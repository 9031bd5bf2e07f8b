# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154,SC2317
# Helpers of the scenarios with Slurm: a controller, a node and a user, set up by the files of docs/examples/slurm.
#
# Sourced by a scenario after lib.sh.

examples=$top/docs/examples/slurm
address=10.9.9.1
home=$work/home
PATH=$PATH:/usr/sbin:/sbin

# The machine gets an address, without which Slurm's names lead nowhere, and the user "u"; the scenario before may have done so.
slurm_prepare() {
	[ -e /sys/class/net/t0 ] || ip tuntap add t0 mode tun
	ip addr replace "$address/24" dev t0
	ip link set t0 up
	printf '127.0.0.1 localhost\n%s %s\n' "$address" "$(hostname)" >/etc/hosts
	sed -i '/^\(u\|criu\):/d' /etc/passwd /etc/group /etc/shadow
	# sudo asks whether the account is valid.
	echo 'u:*:20000::::::' >>/etc/shadow
	echo "u:x:2000:2000::$home:/bin/bash" >>/etc/passwd
	printf 'u:x:2000:\ncriu:x:2001:u\n' >>/etc/group
	mkdir -p /etc/slurm "$home"
	chown 2000:2000 "$home"
	chmod 755 /tmp/e2e
	# The jobs write their output here, where it is kept when the scenario fails.
	chmod 1777 "$work"
	head -c 1024 /dev/urandom >/etc/slurm/slurm.key
	chmod 600 /etc/slurm/slurm.key
	printf 'CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\nConstrainDevices=yes\n' >/etc/slurm/cgroup.conf
}

slurm_is_idle() {
	sinfo -h -o %T 2>/dev/null | grep -q '^idle'
}

# slurm_start WAY GRES: by the files WAY.conf and WAY-gres.conf; GRES is what the node has
slurm_start() {
	local host
	host=$(hostname)
	chmod 666 /dev/kfd /dev/dri/*
	install -m 755 "$examples/gpus-empty" /etc/slurm/
	cp "$examples/$1-gres.conf" /etc/slurm/gres.conf
	cp "$examples/$1.conf" /etc/slurm/
	rm -rf "$work/state"
	mkdir -p "$work/state" "$work/spool"
	cat >/etc/slurm/slurm.conf <<-END
	ClusterName=test
	SlurmctldHost=$host($address)
	AuthType=auth/slurm
	CredType=cred/slurm
	SlurmUser=root
	StateSaveLocation=$work/state
	SlurmdSpoolDir=$work/spool
	SlurmctldLogFile=$work/slurmctld.log
	SlurmdLogFile=$work/slurmd.log
	SlurmctldPidFile=/run/slurmctld.pid
	SlurmdPidFile=/run/slurmd.pid
	MpiDefault=none
	MailProg=/bin/true
	ReturnToService=2
	SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=0
	BatchStartTimeout=120
	MinJobAge=3600
	NodeName=$host NodeAddr=$address CPUs=2 RealMemory=2000 Gres=$2
	Include $1.conf
	END
	slurmctld || fail "slurmctld: status $?: $(tail -n 2 "$work/slurmctld.log")"
	slurmd || fail "slurmd: status $?: $(tail -n 2 "$work/slurmd.log")"
	wait_until 120 slurm_is_idle || fail "Slurm does not start: $(sinfo -N -h -o '%T %E' 2>&1; tail -n 2 "$work/slurmd.log")"
}

slurm_stop() {
	local name
	for name in slurmd slurmctld; do
		kill "$(<"/run/$name.pid")"
		wait_until 60 no_process_named "$name" || fail "$name does not end"
	done
}

no_process_named() {
	! pgrep -x "$1" >/dev/null
}

# submit ARG...: as the user; sets id
submit() {
	id=$(cd "$home" && runuser -u u -- sbatch --parsable -o "$work/slurm-%j.out" "$@") || fail "sbatch $*: $id"
}

# job_state ID: RUNNING, SUSPENDED, ...
job_state() {
	squeue -h -t all -j "$1" -o %T
}

job_is() {
	[ "$(job_state "$1")" = "$2" ]
}

# expect_job ID STATE
expect_job() {
	wait_until 120 job_is "$@" || fail "job $1 is not $2: $(squeue -h -t all -o '%i %P %T %r' | tr '\n' ';') $(tail -n 3 "$work/slurmctld.log")"
}

computes() {
	grep -qs '^phase running' "$1" && [ "$(state_get "$1" generation)" -gt 1 ]
}

# expect_computes FILE: a job with this state file does
expect_computes() {
	wait_until 240 computes "$1" || fail "${1##*/} does not compute: $(squeue -h -o '%i %P %T %r' | tr '\n' ';') $(tail -n 3 "$work"/slurm-*.out)"
}

# job_take FILE: from now on that is the scenario's job
job_take() {
	job=$1
	expect_computes "$job"
	job_pids=("$(state_get "$job" pid)")
}

# ends_right FILE: whoever has it is told to end, and all its data was right
ends_right() {
	local pid
	pid=$(state_get "$1" pid)
	kill -TERM "$pid"
	wait_until 120 no_process "$pid" || fail "${1##*/} does not end: $(state_get "$1" phase)"
	[ "$(state_get "$1" phase)" = "done" ] || fail "${1##*/}: $(state_get "$1" message)"
}
