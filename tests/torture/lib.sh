# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Helpers of the rounds: chance, criu that is disturbed, the job's processes. $1 is the seed.

# shellcheck source=tests/e2e/lib.sh
. "$top/tests/e2e/lib.sh"

plan=$work/plan
notes=$work/notes
tool=$top/build/amdgpu-checkpoint
records=/run/amdgpu-checkpoint
contents=$records/memory	# where a suspend puts them
ms=(2000 2000)		# how long the last dump and restore took
tree=()			# pids of the job
untidy=			# whether criu was killed

# ---- chance: nothing here may run in a subshell, which would draw the same again ----

RANDOM=$(($1 % 32768))
seed_high=$(($1 / 32768))
for ((; seed_high > 0; seed_high /= 32)); do
	RANDOM=$(((RANDOM + seed_high) % 32768))
done

# draw N: sets drawn to one of 0 .. N-1
draw() {
	drawn=$(((RANDOM << 15 | RANDOM) % $1))
}

# one_of WORD...: sets drawn to one of them
one_of() {
	draw $#
	drawn=${*:drawn + 1:1}
}

# chance PERCENT
chance() {
	draw 100
	((drawn < $1))
}

# ---- notes ----

note() {
	printf '%s\n' "$*" >>"$notes"
}

# ---- criu, disturbed ----

not_alive() {
	! alive "$1"
}

# later KIND: sleeps for a part of the time that criu needs for it (0: dump, 1: restore)
later() {
	draw $((ms[$1] * 12 / 10))
	sleep "$((drawn / 1000)).$(printf %03d $((drawn % 1000)))"
}

# criu_has_ended LOG: criu 4.2.1 itself waits for ever for a task that is killed between "Unlock network" and the last stage
# of its restore, from where on it does not look for tasks that have died; then it is killed, too
criu_has_ended() {
	! alive "$criu_pid" && return
	if [ "$killed" = task ] && ! alive "$drawn" && grep -q 'net: Unlock network' "$1" && ! grep -q 'was trapped' "$1" &&
		grep -q futex "/proc/$criu_pid/wchan"; then
		sleep 5
		! grep -q futex "/proc/$criu_pid/wchan" || kill -KILL "$criu_pid"
	fi 2>/dev/null
	return 1
}

# criu_disturbed KIND WHAT ARG...: criu, and "disturb" while it runs. Its status; a signal that we sent counts as failure
criu_disturbed() {
	local kind=$1 what=$2 status=0 start=$EPOCHREALTIME log
	shift 2
	criu_runs=$((criu_runs + 1))
	log=$work/$criu_runs-$what.log
	"${faulty[@]}" criu "$what" "$@" -D "$images" -o "$log" -v4 </dev/null >"$log.out" 2>&1 &
	criu_pid=$!
	disturb "$kind"
	wait_until 120 criu_has_ended "$log" || fail "criu $what does not end"
	{ wait "$criu_pid" || status=$?; } 2>/dev/null
	criu_seconds=$(seconds_since "$start")
	if [ "$status" -eq 0 ]; then
		ms[kind]=$((10#${criu_seconds/./}))
	elif ((status > 128)) && [ -z "$killed" ] && [ "$status" -ne 255 ]; then
		fail "criu $what ended by signal $((status - 128))"
	fi
	return "$status"
}

# disturb KIND: as $disturbance says; sets killed
disturb() {
	killed=
	case $disturbance in
	kill-criu)
		later "$1"
		one_of KILL KILL TERM INT
		# A criu that has ended was not killed.
		! alive "$criu_pid" || killed=criu untidy=1
		kill "-$drawn" "$criu_pid" 2>/dev/null || true
		;;
	kill-task)
		later "$1"
		one_of "${tree[@]}"
		# A pid that is nobody's yet, or that is criu's own, is left alone.
		if [ "$drawn" -ne "$criu_pid" ] && kill -KILL "$drawn" 2>/dev/null; then
			killed=task
		fi
		;;
	slow)
		later "$1"
		gpus_state slow
		;;
	esac
}

# ---- the job ----

all_alive() {
	local pid
	for pid in "${tree[@]}"; do
		alive "$pid" || return 1
	done
}

# tree_find: the job's processes and whatever children they have; the parent first
tree_find() {
	local known=0 pid
	tree=("${job_pids[@]}")
	while ((known < ${#tree[@]})); do
		pid=${tree[known]}
		known=$((known + 1))
		while read -r pid; do
			[[ " ${tree[*]} " == *" $pid "* ]] || tree+=("$pid")
		done < <(pgrep -P "$pid" || true)
	done
}

no_guards() {
	! pgrep -x amdgpu-guard >/dev/null
}

# nobody_stands_still: a dump that has ended, however it did, has left no queue of a process stopped that lives
nobody_stands_still() {
	local pid
	wait_until 10 no_guards || fail "a guard of a dump is left"
	: >"$work/resume.out"
	for pid in "${tree[@]}"; do
		! alive "$pid" || "$top/build/amdgpu-checkpoint" resume "$pid" >"$work/resume.out" 2>&1 || true
		! grep 'were stopped' "$work/resume.out" >/dev/null || fail "a dump has ended, and GPU queues stand still: $(<"$work/resume.out")"
	done
}

tree_gone() {
	local pid
	for pid in "${tree[@]}"; do
		[ ! -e "/proc/$pid" ] || return 1
	done
}

# nothing_left: no process of the job, and nothing in the driver
nothing_left() {
	wait_until 20 tree_gone || fail "processes are left: $(ps -o pid,stat,comm -p "${tree[*]}" | tail -n +2 | tr '\n' ';')"
	expect_no_objects
}

tree_end() {
	kill -KILL "${tree[@]}" 2>/dev/null || true
	nothing_left
}

failure_is_explained() {
	grep -q Error "$work/$criu_runs-"*.log || fail "criu failed without an error line"
}

# ---- suspended processes ----

no_tools() {
	! pgrep -f "^$tool (suspend|resume) " >/dev/null
}

# A killed process that is frozen or has queues takes a while to end.
victim_gone() {
	[ -z "$victim" ] || ! alive "$victim"
}

nothing_kept() {
	local file
	for file in "$records"/[0-9]* "$contents"/*; do
		# A record that was being written when its command died is none.
		[[ ! -e $file || $file == *.new ]] || return 1
	done
}

# come_back: whatever there is, an undisturbed resume completes it
come_back() {
	local pids
	mapfile -t pids < <(find "$records" -maxdepth 1 -name '[0-9]*' ! -name '*.new' -printf '%f\n' 2>/dev/null | sed 's/[.].*//' | sort -u)
	if ((${#pids[@]})); then
		"$tool" resume "${pids[@]}" >"$work/resume.log" 2>&1 || fail "resume: $(<"$work/resume.log")"
	fi
	nothing_kept || fail "left behind: $(find "$records" "$contents" 2>&1 | tr '\n' ' ')"
}
