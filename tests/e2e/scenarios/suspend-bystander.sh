# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A process without a GPU that is suspended with others is no process to dump; killed in the middle, it and the others go on together
# gpus: 1xmi100-256m
# tier: all
# seconds: 300

tool=$top/build/amdgpu-checkpoint

job_start --vram 2M
setsid sleep 1000 </dev/null >/dev/null 2>&1 &
sleeper=$!
job_picture
tool_run suspend "${job_pids[@]}" "$sleeper" || fail "suspend: $(<"$work/tool.out")"
[ "$(find "/proc/$sleeper/fd" -lname '*amdgpu-suspended*')" ] || fail "nothing says that it is suspended"
! tool_run check "$sleeper" || fail "check: $(<"$work/tool.out")"
grep -q 'was suspended together with pid' "$work/tool.out" || fail "check: $(<"$work/tool.out")"
images_new
! criu_call dump -t "$sleeper" || fail "criu has dumped a process that is suspended"
expect_one_error 'was suspended together with pid'
alive "$sleeper" || fail "the process is gone"
tool_run resume "${job_pids[@]}" "$sleeper" || fail "resume: $(<"$work/tool.out")"
expect_unharmed
[ "$(awk '$1 == "State:" { print $2 }' "/proc/$sleeper/status")" = S ] || fail "it does not run: $(grep State "/proc/$sleeper/status")"

# The child of the command is killed at any call: all of them run again, whatever they were.
for ((n = 1; ; n += 1 + n / 4)); do
	faults "sys:ptrace $n KILL"
	status=0
	{
		"${faulty[@]}" "$tool" suspend "${job_pids[@]}" "$sleeper" >"$work/tool.out" 2>&1 || status=$?
	} 2>/dev/null
	faults
	[ "$status" -ne 0 ] || break
	grep -q 'was killed; the processes run again' "$work/tool.out" || fail "call $n: $(<"$work/tool.out")"
	for pid in "${job_pids[@]}" "$sleeper"; do
		! grep -q '^State:.*T' "/proc/$pid/status" || fail "call $n: pid $pid is stopped"
	done
	nothing_kept || fail "call $n: left behind: $(find /run/amdgpu-checkpoint)"
	expect_progress
done
[ "$n" -gt 50 ] || fail "a suspend makes only $n calls"
tool_run resume "${job_pids[@]}" "$sleeper" || fail "resume: $(<"$work/tool.out")"
expect_unharmed

# Killed while they are suspended: what they leave is removed by the next command, whatever that is about.
tool_run suspend "${job_pids[@]}" "$sleeper" || fail "suspend: $(<"$work/tool.out")"
kill -KILL "${job_pids[@]}"
expect_gone
"$tool" state >"$work/state.out" 2>&1 || fail "state: $(<"$work/state.out")"
grep -q "pid ${job_pids[0]}: gone.*, its buffer data are removed" "$work/state.out" || fail "state: $(<"$work/state.out")"
[ -z "$(find /run/amdgpu-checkpoint -name 'amdgpu-pages-*')" ] || fail "data are left: $(find /run/amdgpu-checkpoint)"
tool_run resume "$sleeper" || fail "resume: $(<"$work/tool.out")"
nothing_kept || fail "left behind: $(find /run/amdgpu-checkpoint)"
kill "$sleeper"

# One of several is killed, and its parent does not wait for it, since it is suspended, too: the others come back.
job_start --vram 2M
job_picture
setsid bash -c 'sleep 1000 & exec sleep 1001' </dev/null >/dev/null 2>&1 &
parent=$!
has_child() {
	child=$(pgrep -P "$parent")
}
wait_until 10 has_child || fail "there is no child"
tool_run suspend "${job_pids[@]}" "$parent" "$child" || fail "suspend: $(<"$work/tool.out")"
kill -KILL "$child"
wait_until 10 grep -q '^State:.Z' "/proc/$child/status" || fail "the child has not ended"
tool_run resume "${job_pids[@]}" "$parent" "$child" || fail "one that was killed keeps the others: $(<"$work/tool.out")"
grep -q "pid $child: gone, its buffer data are removed" "$work/tool.out" || fail "resume: $(<"$work/tool.out")"
expect_unharmed
nothing_kept || fail "left behind: $(find /run/amdgpu-checkpoint)"
[ -z "$(find /sys/fs/cgroup -name 'amdgpu-suspended-*')" ] || fail "a cgroup is left"
kill "$parent"
job_end

# What an earlier boot has left on a disk is removed by the next suspend there, if it is this machine's; so says its name.
! [ -e /etc/machine-id ] || cp /etc/machine-id "$work/machine-id"
echo 0123456789abcdef0123456789abcdef >/etc/machine-id
for dir in amdgpu-suspend-0123456789abcdef-1111111111111111-2222222222222222 mine; do
	mkdir -p "$work/disk/$dir"
	touch "$work/disk/$dir/amdgpu-pages-1-1234.img"
done
job_start --vram 2M
job_picture
tool_run suspend -D "$work/disk" "${job_pids[@]}" || fail "suspend: $(<"$work/tool.out")"
[ "$(find "$work/disk" -path '*-1111111111111111-*')" = "" ] || fail "left: $(find "$work/disk")"
[ -e "$work/disk/mine/amdgpu-pages-1-1234.img" ] || fail "another directory was removed: $(find "$work/disk")"
tool_run resume "${job_pids[@]}" || fail "resume: $(<"$work/tool.out")"
expect_progress
[ "$(ls "$work/disk")" = mine ] || fail "left: $(find "$work/disk")"
rm -f /etc/machine-id
! [ -e "$work/machine-id" ] || cp "$work/machine-id" /etc/machine-id

# A suspend for which there is no room is refused, and costs the job nothing.
mkdir "$work/small"
mount -t tmpfs -o size=1M none "$work/small"
! tool_run suspend -D "$work/small" "${job_pids[@]}" || fail "suspended where there is no room"
grep -q 'the buffer data need .* bytes, and .* are free there' "$work/tool.out" || fail "$(<"$work/tool.out")"
[ -z "$(ls "$work/small")" ] || fail "left: $(find "$work/small")"
umount "$work/small"
if echo +memory >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
	mkdir /sys/fs/cgroup/agent
	echo 1M >/sys/fs/cgroup/agent/memory.max
	! bash -c 'echo $$ >/sys/fs/cgroup/agent/cgroup.procs && exec "$@"' - "$tool" suspend "${job_pids[@]}" >"$work/tool.out" 2>&1 ||
		fail "suspended in a cgroup without room"
	grep -q 'bytes of memory, and /sys/fs/cgroup/agent has' "$work/tool.out" || fail "$(<"$work/tool.out")"
	rmdir /sys/fs/cgroup/agent
	echo -memory >/sys/fs/cgroup/cgroup.subtree_control
fi
expect_unharmed
job_end
