# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2034,SC2154
# For scenarios whose job is below an engine that pauses, continues and stops it by its cgroup.

# group_do WHAT: by the cgroup of the container or unit
group_do() {
	tool_run "$1" --cgroup "$cgroup" || fail "$1: $(<"$work/tool.out")"
}

# no_group: no cgroup of a suspended process is left
no_group() {
	[ -z "$(find /sys/fs/cgroup -name 'amdgpu-suspended-*')" ]
}

goes_on() {
	no_group || fail "a cgroup is left"
	expect_right
}

# is STATE
is() {
	"$top/build/amdgpu-checkpoint" state "${job_pids[0]}" 2>&1 | grep -q ": $1"
}

# expect_is STATE
expect_is() {
	wait_until 30 is "$1" ||
		fail "not $1: $("$top/build/amdgpu-checkpoint" state "${job_pids[0]}" 2>&1); $(tail -n 3 "$work/follow.out")"
}

# shows_hold: with what a scenario says of an engine: engine_start, engine_pause, engine_unpause, engine_is_paused, engine_stop,
# which ends it after some seconds, and engine_end
shows_hold() {
	engine_start
	cgroup=/sys/fs/cgroup$(sed -n 's/^0:://p' "/proc/${job_pids[0]}/cgroup")

	pair="$1, paused while suspended"
	group_do suspend
	engine_pause
	is_held "pause"
	engine_unpause
	kill -CONT "${job_pids[0]}"
	is_held "unpause and SIGCONT"
	group_do resume
	goes_on

	pair="$1, suspended while paused"
	engine_pause
	group_do suspend
	engine_is_paused || fail "the engine does not find it paused"
	kill -CONT "${job_pids[0]}"
	engine_unpause
	is_held "unpause after SIGCONT"
	group_do resume
	goes_on
	engine_pause
	group_do suspend
	group_do resume
	stands_still || fail "resume lets run what the engine has paused"
	engine_unpause
	goes_on

	pair="$1, with follow"
	"$top/build/amdgpu-checkpoint" follow --cgroup /sys/fs/cgroup >"$work/follow.out" 2>&1 &
	follow=$!
	engine_pause
	expect_is suspended
	engine_is_paused || fail "the engine does not find it paused"
	engine_unpause
	expect_is running
	goes_on
	kill -TERM "$follow"
	wait "$follow" || fail "follow ended with status $?: $(tail -n 2 "$work/follow.out")"

	pair="$1, stopped while suspended"
	group_do suspend
	engine_stop
	expect_gone
	tool_run state || true
	expect_no_objects
	no_group || fail "a cgroup is left"
	nothing_kept || fail "left behind: $(find /run/amdgpu-checkpoint)"
	engine_end
	rm -f /run/amdgpu-checkpoint-follow.lock
	pair=
}
