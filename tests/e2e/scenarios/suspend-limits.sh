# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A process at one of its limits: what it cannot be made to do is refused before a byte is copied, with the limit's name, and it runs on
# gpus: 1xmi100
# tier: all

# limit OPTION SOFT HARD: of the job, which makes no call of its own at its limit: it is stopped
limit() {
	prlimit --pid "$pid" "--$1=$2:$3"
}

is_stopped() {
	grep -q '^State:.T' "/proc/$pid/status"
}

stopped() {
	kill -STOP "$pid"
	wait_until 10 is_stopped || fail "the job does not stop"
}

# refused NAME: suspend says so, and nothing has happened
refused() {
	! tool_run suspend "$pid" || fail "$1: the job was suspended"
	grep -q "$1" "$work/tool.out" || fail "$1 is not named: $(<"$work/tool.out")"
	grep -q 'raise that' "$work/tool.out" || fail "$1: nothing is said of what to do: $(<"$work/tool.out")"
	nothing_kept || fail "$1: left behind: $(find /run/amdgpu-checkpoint)"
	is_stopped || fail "$1: the job runs, which was stopped before"
}

# goes_on: the limit is as it was
goes_on() {
	kill -CONT "$pid"
	expect_unharmed
}

# suspended_then NAME: a resume at the limit leaves it suspended, and says why
suspended_then() {
	! tool_run resume "$pid" || fail "$1: the job was resumed"
	grep -q "$1" "$work/tool.out" || fail "$1 is not named: $(<"$work/tool.out")"
	tool_run state "$pid"
	grep -q ': suspended since' "$work/tool.out" || fail "$1: it is not suspended any more: $(<"$work/tool.out")"
}

# size_of KEY: of /proc/PID/status, bytes
size_of() {
	awk -v key="$1:" '$1 == key { print $2 * 1024 }' "/proc/$pid/status"
}

job_start --vram 1M --buffers 40
pid=${job_pids[0]}
expect_verified
job_picture

for way in as:VmSize:RLIMIT_AS data:VmData:RLIMIT_DATA; do
	IFS=: read -r option key name <<<"$way"
	stopped
	limit "$option" "$(size_of "$key")" unlimited
	refused "$name"
	limit "$option" unlimited unlimited
	goes_on
	job_suspend
	limit "$option" "$(size_of "$key")" unlimited
	suspended_then "$name"
	limit "$option" unlimited unlimited
	job_resume
	expect_unharmed
done

fds=0
while [ -e "/proc/$pid/fd/$fds" ]; do fds=$((fds + 1)); done
stopped
limit nofile "$fds" 4096
refused RLIMIT_NOFILE
limit nofile 1024 4096
goes_on
job_suspend
limit nofile "$fds" 4096
job_resume
limit nofile 1024 4096
expect_unharmed

before=$(sysctl -n vm.max_map_count)
stopped
sysctl -q vm.max_map_count="$(($(wc -l <"/proc/$pid/maps") - 1))"
refused vm.max_map_count
sysctl -q vm.max_map_count="$before"
goes_on

# What needs no room in these is suspended and resumed.
stopped
limit memlock 0 0
limit nproc 1 1
limit fsize 4096 unlimited
job_suspend
job_resume
is_stopped || fail "the job runs, which was stopped before"
limit fsize unlimited unlimited
goes_on

# The command's own limit: fewer files than the job has buffers.
(
	ulimit -Sn 30
	job_suspend
	job_resume
)
expect_unharmed

# It may write no file: that is said, and nothing is left.
(
	ulimit -f 0
	! "$top/build/amdgpu-checkpoint" suspend "$pid" 2>&1
) | grep -q 'cannot write .*: File too large' || fail "a command that may write no file says something else"
nothing_kept || fail "left behind: $(find /run/amdgpu-checkpoint)"
expect_unharmed

# Whoever reads its answer has ended: that takes nothing back.
exec {gone}> >(:)
wait $!
"$top/build/amdgpu-checkpoint" suspend "$pid" 2>"$work/tool.out" >&$gone && fail "an answer that nobody reads is good"
exec {gone}>&-
grep -q 'cannot write: Broken pipe' "$work/tool.out" || fail "suspend: $(<"$work/tool.out")"
tool_run state "$pid"
grep -q ': suspended since' "$work/tool.out" || fail "it is not suspended: $(<"$work/tool.out")"
job_resume
expect_unharmed
job_end

# without CAPABILITY COMMAND...: the next job is started by that command, and has not the capability by which limits do not count
without() {
	printf '#!/bin/sh\nexec setpriv --bounding-set=-%s %s %s "$@"\n' "$1" "${*:2}" "$top/build/workloads/gpujob" >"$work/without"
	chmod 755 "$work/without"
	gpujob=$work/without
	job_start --vram 1M
	pid=${job_pids[0]}
	expect_verified
	job_picture
}

# It locks all its memory.
without ipc_lock prlimit --memlock=unlimited env CROWD_LOCK=1 LD_PRELOAD="$top/build/workloads/crowd.so"
[ "$(size_of VmLck)" -gt 0 ] || fail "the job has locked nothing"
stopped
limit memlock "$(size_of VmLck)" unlimited
refused RLIMIT_MEMLOCK
limit memlock unlimited unlimited
goes_on
job_suspend
limit memlock "$(size_of VmLck)" unlimited
suspended_then RLIMIT_MEMLOCK
limit memlock unlimited unlimited
job_resume
expect_unharmed
job_end

# promised: the machine has promised all its memory, but for 300 MB to who has CAP_SYS_ADMIN
promised() {
	sysctl -q vm.overcommit_kbytes=$(($(awk '$1 == "Committed_AS:" { print $2 }' /proc/meminfo) + 300000))
	sysctl -q vm.admin_reserve_kbytes=600000 vm.overcommit_memory=2
}

unpromised() {
	sysctl -q vm.overcommit_memory=0 vm.admin_reserve_kbytes="$reserve" vm.overcommit_ratio=50
}

without sys_admin
reserve=$(sysctl -n vm.admin_reserve_kbytes)
stopped
promised
refused vm.overcommit_memory
unpromised
goes_on
job_suspend
promised
suspended_then vm.overcommit_memory
unpromised
job_resume
expect_unharmed
job_end
