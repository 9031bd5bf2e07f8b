# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A job in a cgroup: frozen in one of its own below it, also where an engine has frozen one above; its thaw and SIGCONT alone do not let it run
# gpus: 1xmi100
# tier: all

slice=/sys/fs/cgroup/e2e-slice
leaf=$slice/leaf

# expect_held: each process of the job is frozen, alone, below its cgroup
expect_held() {
	local pid own
	for pid in "${job_pids[@]}"; do
		own=$leaf/amdgpu-suspended-$pid
		[ "$(cat "$own/cgroup.procs")" = "$pid" ] || fail "$own: does not have the process $pid alone"
		grep -q '^frozen 1' "$own/cgroup.events" || fail "$own: is not frozen"
		grep -q '^State:.S' "/proc/$pid/status" || fail "pid $pid: is stopped by a signal, too"
	done
}

# expect_held_at_home: an engine that has frozen a cgroup above finds them where they were; that cgroup is frozen, too
expect_held_at_home() {
	expect_home
	[ "$(<"$leaf/cgroup.freeze")" = 1 ] || fail "$leaf is not frozen"
}

# expect_home: all are where they were
expect_home() {
	local dirs
	dirs=$(find "$leaf" -mindepth 1 -type d)
	[ -z "$dirs" ] || fail "left: $dirs"
	[ "$(sort -n "$leaf/cgroup.procs")" = "$(printf '%s\n' "${job_pids[@]}" | sort -n)" ] || fail "not all are in $leaf"
}

is_frozen() {
	grep -q '^frozen 1' "$1/cgroup.events"
}

mkdir -p "$leaf"
job_start --vram 1M --children 1
for pid in "${job_pids[@]}"; do
	echo "$pid" >"$leaf/cgroup.procs"
done
job_picture

# By the command.
tool_run suspend --cgroup e2e-slice || fail "suspend: $(<"$work/tool.out")"
expect_held
kill -CONT "${job_pids[@]}"
stands_still || fail "SIGCONT lets a suspended job run"
tool_run resume --cgroup "$leaf" || fail "resume: $(<"$work/tool.out")"
expect_home
expect_unharmed

# By an engine, whose thaw comes first.
echo 1 >"$slice/cgroup.freeze"
wait_until 5 is_frozen "$slice" || fail "the cgroup above is not frozen"
used=$(vram_used)
tool_run suspend --cgroup "$slice" || fail "suspend: $(<"$work/tool.out")"
[ "$(vram_used)" -lt "$used" ] || fail "nothing was freed"
[ "$(<"$slice/cgroup.freeze")" = 1 ] || fail "the engine does not find its cgroup frozen"
expect_held_at_home
echo 0 >"$slice/cgroup.freeze"
kill -CONT "${job_pids[@]}"
stands_still || fail "the engine's thaw lets a suspended job run"
tool_run resume --cgroup "$slice" || fail "resume: $(<"$work/tool.out")"
expect_home
expect_unharmed

# Stopped by a signal before, as Slurm does, and by whoever did it thawed and continued.
kill -TSTP "${job_pids[@]}"
echo 1 >"$slice/cgroup.freeze"
wait_until 5 is_frozen "$slice" || fail "the cgroup above is not frozen"
tool_run suspend --cgroup "$slice" || fail "suspend: $(<"$work/tool.out")"
expect_held_at_home
echo 0 >"$slice/cgroup.freeze"
kill -CONT "${job_pids[@]}"
stands_still || fail "it runs without its memory"
tool_run resume --cgroup "$slice" || fail "resume: $(<"$work/tool.out")"
expect_home
expect_unharmed

# inside WHAT: the command in a cgroup namespace below the slice, where cgroups of the job have other paths
inside() {
	bash -c 'echo $$ >"$1/cgroup.procs" && exec unshare --cgroup --mount bash -c "mount -t cgroup2 none /sys/fs/cgroup && exec \"\$@\"" - "${@:2}"' - \
		"$slice" "$top/build/amdgpu-checkpoint" "$1" "${job_pids[@]}" >"$work/tool.out" 2>&1 || fail "$1 in a cgroup namespace: $(<"$work/tool.out")"
}
tool_run suspend "${job_pids[@]}" || fail "suspend: $(<"$work/tool.out")"
inside resume
expect_home
expect_unharmed
inside suspend
expect_held
tool_run resume "${job_pids[@]}" || fail "resume: $(<"$work/tool.out")"
expect_home
expect_unharmed

# Where its cgroup is not to be seen, a resume is refused, and changes nothing.
tool_run suspend "${job_pids[@]}" || fail "suspend: $(<"$work/tool.out")"
! unshare --mount bash -c 'umount -l /sys/fs/cgroup; exec "$@"' - "$top/build/amdgpu-checkpoint" resume "${job_pids[@]}" >"$work/tool.out" 2>&1 ||
	fail "resumed where its cgroup is not to be seen"
grep -q 'its cgroup cannot be seen from here' "$work/tool.out" || fail "resume: $(<"$work/tool.out")"
expect_held
tool_run resume "${job_pids[@]}" || fail "resume: $(<"$work/tool.out")"
expect_home
expect_unharmed

# Stopped by a signal while it is suspended: so it is when it is resumed.
tool_run suspend --cgroup "$slice" || fail "suspend: $(<"$work/tool.out")"
kill -STOP "${job_pids[@]}"
tool_run resume --cgroup "$slice" || fail "resume: $(<"$work/tool.out")"
expect_home
for pid in "${job_pids[@]}"; do
	grep -q '^State:.T' "/proc/$pid/status" || fail "SIGSTOP of a suspended job is lost: $(grep ^State "/proc/$pid/status")"
done
kill -CONT "${job_pids[@]}"
expect_unharmed

# by_signal WHY: none can have a cgroup of its own, which is said; SIGSTOP alone holds them
by_signal() {
	tool_run suspend "${job_pids[@]}" || fail "suspend: $(<"$work/tool.out")"
	grep -q "held by SIGSTOP alone, as it cannot have a cgroup of its own (.*$1" "$work/tool.out" || fail "not \"$1\": $(<"$work/tool.out")"
	stands_still || fail "$1: the job runs"
	tool_run resume "${job_pids[@]}" || fail "resume: $(<"$work/tool.out")"
	[ -z "$(find "$slice" -name 'amdgpu-suspended-*')" ] || fail "$1: a cgroup is left"
	expect_unharmed
}

echo 0 >"$leaf/cgroup.max.descendants"
by_signal cgroup.max.descendants
for pid in "${job_pids[@]}"; do
	echo "$pid" >"$slice/cgroup.procs"
done
echo threaded >"$leaf/cgroup.type"
by_signal 'its cgroup is threaded'
job_end
rmdir "$leaf" "$slice"
