# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Two processes by lock, checkpoint, restore and unlock: both are locked before either is copied; refusals, time-outs, and who is killed
# gpus: 1xmi100
# tier: all
# seconds: 400

# expect_word WORD [PID...]: that is the state of all
expect_word() {
	local pid
	for pid in "${@:2}"; do
		tool_says 0 "^$1\$" get-state "$pid"
	done
}

# phase WHAT ARG...: also where less than half of the VRAM is freed, which is status 3
phase() {
	tool_run "$@" || [ $? -eq 3 ] || fail "$*: $(<"$work/tool.out")"
}

# expect_locked: both stand still with all their memory, and nothing of theirs is saved
expect_locked() {
	expect_word locked "${job_pids[@]}"
	stands_still || fail "a locked job runs"
	[ "$(vram_used)" -ge "$used" ] || fail "$1: a locked job has lost VRAM: $(vram_used) bytes of $used"
	[ -z "$(find /run/amdgpu-checkpoint/memory -type f 2>/dev/null)" ] || fail "$1: data of a locked job are left"
}

job_start --children 1 --vram 4M
job_picture
used=$(vram_used)
parent=${job_pids[0]} child=${job_pids[1]}
expect_word running "${job_pids[@]}"

# The way there and back, each process locked by a command of its own, and the second checkpoint without an unlock.
phase lock "$parent"
expect_word locked "$parent"
expect_word running "$child"
tool_says 2 "pid $child: is not locked" checkpoint "${job_pids[@]}"
phase lock "$child"
expect_locked lock
kill -CONT "${job_pids[@]}"
stands_still || fail "SIGCONT lets a locked job run"
tool_says 2 'is locked already' lock "$parent"
tool_says 2 'is locked already' suspend "$parent"
tool_says 1 "is locked" check "$parent"
for round in 1 2; do
	phase checkpoint "${job_pids[@]}"
	expect_word checkpointed "${job_pids[@]}"
	[ "$(vram_used)" -lt "$used" ] || fail "round $round: nothing was freed"
	tool_says 2 'is not locked (it is suspended already)' checkpoint "$parent"
	tool_says 2 '"restore" comes before "unlock"' unlock "${job_pids[@]}"
	tool_says 0 'locked, VRAM back' restore "${job_pids[@]}"
	expect_locked "restore $round"
done
tool_says 0 ': running' unlock "${job_pids[@]}"
tool_says 1 'no process of them is locked' unlock "${job_pids[@]}"
expect_unharmed

# Without a checkpoint.
phase lock --tree "$parent"
expect_locked "lock --tree"
phase unlock --tree "$parent"
expect_unharmed

# Resume comes from wherever they are.
phase lock "${job_pids[@]}"
tool_says 0 ': running' resume "${job_pids[@]}"
expect_unharmed
phase lock "${job_pids[@]}"
phase checkpoint -D "$work/data" "$parent"
expect_word checkpointed "$parent"
expect_word locked "$child"
tool_says 0 ': running' resume "${job_pids[@]}"
[ ! -e "$work/data" ] || fail "the directory of the data is left"
expect_unharmed

# Who waits is told.
phase lock "${job_pids[@]}"
tool_says 1 'locked' state --until running --wait 1 "${job_pids[@]}"
{ sleep 1 && "$top/build/amdgpu-checkpoint" unlock "${job_pids[@]}"; } >"$work/later.out" 2>&1 &
tool_says 0 'running' state --until running --wait 60 "${job_pids[@]}"
wait $!
expect_unharmed

# killed WHAT NTH: the process that works dies at that ptrace() call; 1: it does not get so far
killed() {
	local status=0
	faults "sys:ptrace $2 KILL"
	{
		"${faulty[@]}" "$top/build/amdgpu-checkpoint" "$1" "${job_pids[@]}" >"$work/tool.out" 2>&1 || status=$?
	} 2>"$work/killed.out"
	faults
	[ "$status" -ne 0 ] && [ "$status" -ne 3 ]
}
for ((n = 1; ; n += 1 + n)); do
	killed lock "$n" || break
	grep -q 'was killed; the processes run again' "$work/tool.out" || fail "lock, call $n: $(<"$work/tool.out")"
	expect_progress
done
for ((n = 1; ; n += 1 + n)); do
	killed checkpoint "$n" || break
	grep -q 'was killed; the processes are locked' "$work/tool.out" || fail "checkpoint, call $n: $(<"$work/tool.out")"
	expect_locked "checkpoint, call $n"
done
for ((n = 1; ; n += 1 + n)); do
	killed restore "$n" || break
	grep -q 'was killed; the processes are locked' "$work/tool.out" || fail "restore, call $n: $(<"$work/tool.out")"
	phase checkpoint "${job_pids[@]}"
done
expect_locked "the last restore"
phase unlock "${job_pids[@]}"
expect_unharmed
job_end
