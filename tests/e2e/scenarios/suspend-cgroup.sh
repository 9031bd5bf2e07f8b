# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A job in a cgroup: frozen by it, also where an engine has frozen one above; its thaw and SIGCONT alone do not let it run
# gpus: 1xmi100
# tier: all

slice=/sys/fs/cgroup/e2e-slice
leaf=$slice/leaf

frozen() {
	grep -q '^frozen 1' "$1/cgroup.events"
}

stands_still() {
	local generation
	generation=$(state_get "$job" generation)
	sleep 0.5
	[ "$(state_get "$job" generation)" = "$generation" ]
}

mkdir -p "$leaf"
job_start --vram 1M --children 1
for pid in "${job_pids[@]}"; do
	echo "$pid" >"$leaf/cgroup.procs"
done
job_picture

# By the command.
tool_run suspend --cgroup e2e-slice || fail "suspend: $(<"$work/tool.out")"
wait_until 5 frozen "$leaf" || fail "the cgroup is not frozen"
kill -CONT "${job_pids[@]}"
stands_still || fail "SIGCONT lets a suspended job run"
tool_run resume --cgroup "$leaf" || fail "resume: $(<"$work/tool.out")"
! frozen "$leaf" || fail "the cgroup is still frozen"
expect_unharmed

# By an engine, whose thaw comes first.
echo 1 >"$slice/cgroup.freeze"
wait_until 5 frozen "$slice" || fail "the cgroup above is not frozen"
used=$(vram_used)
tool_run suspend --cgroup "$slice" || fail "suspend: $(<"$work/tool.out")"
[ "$(vram_used)" -lt "$used" ] || fail "nothing was freed"
echo 0 >"$slice/cgroup.freeze"
kill -CONT "${job_pids[@]}"
stands_still || fail "the engine's thaw lets a suspended job run"
tool_run resume --cgroup "$slice" || fail "resume: $(<"$work/tool.out")"
expect_unharmed

# Stopped by a signal before, as Slurm does, and by whoever did it thawed and continued.
kill -TSTP "${job_pids[@]}"
echo 1 >"$slice/cgroup.freeze"
wait_until 5 frozen "$slice" || fail "the cgroup above is not frozen"
tool_run suspend --cgroup "$slice" || fail "suspend: $(<"$work/tool.out")"
echo 0 >"$slice/cgroup.freeze"
kill -CONT "${job_pids[@]}"
stands_still || fail "it runs without its memory"
tool_run resume --cgroup "$slice" || fail "resume: $(<"$work/tool.out")"
kill -CONT "${job_pids[@]}"
expect_unharmed
job_end
rmdir "$leaf" "$slice"
