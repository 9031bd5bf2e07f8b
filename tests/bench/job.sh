# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# What the measurements in the machine share: a job, its images on the slow disk. Sourced, never run.

programs=build/bench
debug=/sys/kernel/debug/asicsim
work=/disk/bench
pid=
name= # of what is measured
job=bufferjob

fail() {
	printf 'bench: %s\n' "$*" >&2
	grep -h Error "$work"/*.log 2>/dev/null | head -n 5 >&2 || true
	tail -n 3 "$work/job.log" >&2 2>/dev/null || true
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
	exit 1
}

# job_says TEXT: waits until it has written a line that begins so
job_says() {
	local deadline=$((SECONDS + 300))
	until grep -q "^$1" "$work/job.log"; do
		if [ "$SECONDS" -ge "$deadline" ] || [ ! -e "/proc/$pid" ]; then
			fail "the job did not say \"$1\""
		fi
		sleep 0.1
	done
}

# job_start ARG...
job_start() {
	setsid "$programs/$job" "$@" </dev/null >"$work/job.log" 2>&1 &
	pid=$!
	disown
	job_says ready
}

# criu_seconds WHAT ARG...: of the job $name; sets seconds
criu_seconds() {
	local what=$1 start=$EPOCHREALTIME
	shift
	criu "$what" -D "$work/images" -o "$work/$what.log" -v3 "$@" || fail "criu $what of $name failed"
	# shellcheck disable=SC2034 # of the caller
	seconds=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')
}

# engines_rate MBPS: of each engine of each GPU; a program's copies use two
engines_rate() {
	local id _
	while read -r id _; do
		echo "$id rate $1" >"$debug/gpus"
	done <"$debug/gpus"
}

no_objects_left() {
	awk '$2 != 0 { exit 1 }' "$debug/objects"
}

# Every byte is right, and nothing remains on the GPUs, which free an ended process' memory a little later.
job_end() {
	local deadline=$((SECONDS + 30))
	kill -USR1 "$pid"
	job_says verified
	kill -TERM "$pid"
	while [ -e "/proc/$pid" ]; do
		sleep 0.05
	done
	until no_objects_left; do
		[ "$SECONDS" -lt "$deadline" ] || fail "objects are left in the GPU driver"
		sleep 0.05
	done
}

pages_on_disk() {
	find "$work/images" -name 'amdgpu-pages-*' -printf '%b\n' | awk '{ n += $1 } END { printf "%d", n * 512 }'
}
