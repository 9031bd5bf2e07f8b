# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# From other namespaces a suspended process and its data are left alone; two containers with one /dev/shm do not meet
# gpus: 1xmi100-256m
# tier: all
# seconds: 300

tool=$top/build/amdgpu-checkpoint

# elsewhere NAMESPACE COMMAND...: is refused there by name, and record and data stay
elsewhere() {
	local name=$1 status=0 before
	shift
	before=$(find /run/amdgpu-checkpoint -type f | sort)
	"$@" >"$work/elsewhere.out" 2>&1 || status=$?
	[ "$status" -eq 2 ] || fail "$*: status $status: $(<"$work/elsewhere.out")"
	grep -q "was suspended in another $name namespace" "$work/elsewhere.out" || fail "$*: $(<"$work/elsewhere.out")"
	[ "$before" = "$(find /run/amdgpu-checkpoint -type f | sort)" ] || fail "$*: records or data differ"
}

job_start --vram 2M
job_picture
job_suspend
for what in resume state; do
	elsewhere pid unshare --pid --fork --mount-proc "$tool" "$what" "${job_pids[0]}"
	elsewhere time unshare --time --boottime 5000 --fork "$tool" "$what" "${job_pids[0]}"
done
elsewhere time unshare --time --boottime 5000 --fork "$tool" state

# says PATTERN FILE
says() {
	grep -q "$1" "$2" || fail "not \"$1\": $(<"$2")"
}

unshare --time --boottime 5000 --fork "$tool" state >"$work/state.out" 2>&1 || true
says "^pid ${job_pids[0]}: unknown\$" "$work/state.out"
unshare --time --boottime 5000 --fork "$tool" --json state >"$work/state.out" 2>&1 || true
says '"state": *"unknown"' "$work/state.out"
says '"error": *"pid .*was suspended in another time namespace' "$work/state.out"
tool_run state $$
says "^pid $$: running (without /dev/kfd)\$" "$work/tool.out"

! unshare --pid --fork "$tool" state >"$work/elsewhere.out" 2>&1 || fail "state with another /proc: $(<"$work/elsewhere.out")"
grep -q '/proc is of another pid namespace' "$work/elsewhere.out" || fail "state with another /proc: $(<"$work/elsewhere.out")"

! unshare --mount bash -c 'umount -R -l /proc; exec "$@"' - "$tool" state >"$work/elsewhere.out" 2>&1 ||
	fail "state without /proc: $(<"$work/elsewhere.out")"
grep -q '/proc: is not there' "$work/elsewhere.out" || fail "state without /proc: $(<"$work/elsewhere.out")"

# The same machine with mounts of its own: that is no obstacle.
unshare --mount bash -c 'mount -t tmpfs none /run; exec "$@"' - "$tool" state "${job_pids[0]}" >"$work/state.out" 2>&1 ||
	fail "state with another /run: $(<"$work/state.out")"
grep -q 'suspended since' "$work/state.out" || fail "with another /run: $(<"$work/state.out")"
unshare --mount bash -c 'mount -t tmpfs none /run; exec "$@"' - "$tool" resume "${job_pids[0]}" >"$work/resume.out" 2>&1 ||
	fail "resume with another /run: $(<"$work/resume.out")"
expect_unharmed
unshare --mount bash -c 'mount -t tmpfs none /run; exec "$@"' - "$tool" suspend "${job_pids[0]}" >"$work/suspend.out" 2>&1 ||
	fail "suspend with another /run: $(<"$work/suspend.out")"
job_resume
expect_unharmed
nothing_kept || fail "left behind: $(find /run/amdgpu-checkpoint)"

job_end

# Two suspends that are the first: the file system is mounted once. The data are in huge pages, where the kernel has them.
umount /run/amdgpu-checkpoint/memory
job_start --children 1 --vram 8M
job_picture
"$tool" suspend "${job_pids[0]}" >"$work/first.out" 2>&1 &
first=$!
"$tool" suspend "${job_pids[1]}" >"$work/second.out" 2>&1 || fail "the second of two suspends: $(<"$work/second.out")"
wait "$first" || fail "the first of two suspends: $(<"$work/first.out")"
[ "$(grep -c '^amdgpu-checkpoint ' /proc/mounts)" -eq 1 ] || fail "mounted: $(grep amdgpu-checkpoint /proc/mounts)"
grep -q '^amdgpu-checkpoint /run/amdgpu-checkpoint/memory tmpfs .*nosuid,nodev,noexec' /proc/mounts || fail "$(grep amdgpu-checkpoint /proc/mounts)"
[ "$(stat -c %a:%u /run/amdgpu-checkpoint/memory)" = 700:0 ] || fail "$(stat -c %a:%u /run/amdgpu-checkpoint/memory)"
if [ -e /sys/kernel/mm/transparent_hugepage ]; then
	grep -q '^amdgpu-checkpoint .*huge=within_size' /proc/mounts || fail "no huge pages: $(grep amdgpu-checkpoint /proc/mounts)"
	[ "$(awk '$1 == "ShmemHugePages:" { print $2 }' /proc/meminfo)" -gt 0 ] || fail "no huge pages: $(grep Huge /proc/meminfo)"
fi
# Both are resumed by a command of their own, at the same time.
"$tool" resume "${job_pids[0]}" >"$work/first.out" 2>&1 &
first=$!
"$tool" resume "${job_pids[1]}" >"$work/second.out" 2>&1 || fail "the second of two resumes: $(<"$work/second.out")"
wait "$first" || fail "the first of two resumes: $(<"$work/first.out")"
nothing_kept || fail "left behind: $(find /run/amdgpu-checkpoint)"
expect_unharmed
job_end

# container N: pids and /run of its own, the machine's /dev/shm; suspends its process, and resumes it when $work/goN is there
container() {
	unshare --mount --pid --fork --mount-proc bash -c '
		gpujob=$1 tool=$2 work=$3 n=$4
		mount -t tmpfs none /run
		"$gpujob" --state "$work/c$n" --background --vram 2M --seed "$n" || exit
		pid=$(sed -n "s/^pid //p" "$work/c$n" | head -n 1)
		"$tool" suspend "$pid" >"$work/c$n.suspend" 2>&1
		echo "$pid" >"$work/c$n.ready"
		while [ ! -e "$work/go$n" ]; do sleep 0.2; done
		"$tool" resume "$pid" >"$work/c$n.resume" 2>&1
		kill -USR1 "$pid"
		for ((i = 0; i < 100; i++)); do
			! grep -q "^verifies [1-9]" "$work/c$n" || break
			sleep 0.2
		done
		cp "$work/c$n" "$work/c$n.end"
	' - "$gpujob" "$tool" "$work" "$1" >"$work/c$1.out" 2>&1
}

for n in 1 2; do
	container "$n" &
	wait_until 60 [ -e "$work/c$n.ready" ] || fail "container $n: $(<"$work/c$n.out")"
	grep -q 'suspended' "$work/c$n.suspend" || fail "container $n: $(<"$work/c$n.suspend")"
done
[ "$(<"$work/c1.ready")" = "$(<"$work/c2.ready")" ] || fail "the two processes have different pids: $(cat "$work"/c?.ready)"
for n in 2 1; do
	touch "$work/go$n"
	wait_until 60 [ -e "$work/c$n.end" ] || fail "container $n does not end: $(<"$work/c$n.out")"
	grep -q ': running' "$work/c$n.resume" || fail "container $n: $(<"$work/c$n.resume")"
	grep -q '^verifies [1-9]' "$work/c$n.end" || fail "container $n: $(<"$work/c$n.end")"
	! grep -q '^phase failed' "$work/c$n.end" || fail "container $n: $(<"$work/c$n.end")"
done
