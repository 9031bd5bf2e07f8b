# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2016
# A dump that ends by whatever kills criu, or a task that criu saves, lets the GPU queues of the others run again by itself; where even its guard was killed, amdgpu-checkpoint does
# gpus: 2xmi100
# seconds: 300

tool=$top/build/amdgpu-checkpoint

# resumed STATUS PATTERN: of amdgpu-checkpoint, for the job
resumed() {
	local got=0
	"$tool" resume "${job_pids[0]}" >"$work/resume.out" 2>&1 || got=$?
	[ "$got" -eq "$1" ] || fail "amdgpu-checkpoint ended with status $got, not $1: $(<"$work/resume.out")"
	grep -q "$2" "$work/resume.out" || fail "amdgpu-checkpoint does not say \"$2\": $(<"$work/resume.out")"
}

no_guards() {
	! pgrep -x amdgpu-guard >/dev/null
}

# goes_on WHO: all of the job's processes, within seconds and without help
goes_on() {
	local start=$EPOCHREALTIME
	mapfile -t generations < <(job_values generation | while read -r g; do echo $((g + 1)); done)
	expect_state_above 10 generation "${generations[@]}"
	echo "# $1: all go on, $(seconds_since "$start") s later"
	wait_until 5 no_guards || fail "$1: a guard is left"
}

# dump_begun: criu copies contents, slowly; its pid is $criu
dump_begun() {
	gpus_state slow
	images_new
	rm -f "$work/progress"
	KFD_PROGRESS=$work/progress setsid env --default-signal=INT criu dump --leave-running -t "${1:-${job_pids[0]}}" -D "$images" -o "$work/begun.log" -v4 \
		</dev/null >/dev/null 2>&1 &
	criu=$!
	wait_until 120 test -s "$work/progress" || fail "criu copies nothing: $(tail -n 1 "$work/begun.log")"
	pgrep -x amdgpu-guard >/dev/null || fail "there is no guard"
}

# criu_ends WORD: it ends otherwise than well
criu_ends() {
	! wait "$criu" || fail "$1: the dump was over before"
	gpus_state ok
} 2>/dev/null

job_start --vram 16M --gtt 64K --userptr 64K --children 1
job_picture
resumed 0 'were not stopped'
expect_unharmed

# A dump that ends well has no guard any more when criu ends.
dump --leave-running
no_guards || fail "a guard is left"
expect_unharmed

# While criu has the job, its queues are left alone.
dump_killed "$tool resume ${job_pids[0]} >$work/traced.out 2>&1"
grep -q 'Operation not permitted' "$work/traced.out" || fail "a dump that goes on was disturbed: $(<"$work/traced.out")"
goes_on "kill -9, all saved"
expect_unharmed

# As by an impatient user, or the OOM killer; to the whole process group, as a terminal does.
for signal in KILL INT TERM; do
	dump_begun
	sleep 0.3
	kill "-$signal" -- "-$criu"
	criu_ends "SIG$signal"
	goes_on "SIG$signal to criu's group, contents under way"
	expect_unharmed
done

# A dump that begins at once heals by itself what the guard has not.
dump_begun
kill -KILL "$criu"
criu_ends "a dump right after"
images_new
criu_call dump -t "${job_pids[0]}" --leave-running || sleep 1
goes_on "another dump at once"
expect_unharmed

dump_killed "$no_guard"
wait_until 20 stands_still 1 || fail "the queues run, though criu and its guard were killed"
for pid in "${job_pids[@]}"; do
	"$tool" resume "$pid" >"$work/resume.out" 2>&1 || fail "amdgpu-checkpoint: $(<"$work/resume.out")"
	grep -q 'were stopped and run again' "$work/resume.out" || fail "amdgpu-checkpoint: $(<"$work/resume.out")"
done
resumed 0 'were not stopped'
expect_unharmed
job_comes_back
job_end

# Two jobs below one leader, whose contents criu copies when it has taken the state of both. The task is killed in whose
# place criu's code ran last: criu's own exit() is called then, without the end of a dump.
rm -f "$work"/s[12]
setsid bash -c 'trap : CHLD; for n in 1 2; do "$0" --state "$1/s$n" "${@:2}" & sleep 1; done; while :; do wait; sleep 0.1; done' \
	"$gpujob" "$work" --vram 16M "${small[@]:2}" </dev/null >/dev/null 2>"$work/pair.log" &
leader=$!
disown
for n in 1 2; do
	wait_until 30 grep -qs '^phase running' "$work/s$n" || fail "no job: $(<"$work/pair.log")"
done
other=$(state_get "$work/s1" pid)
victim=$(state_get "$work/s2" pid)
dump_begun "$leader"
kill -KILL "$victim"
criu_ends "a killed task"
! grep -q "resume $victim" "$work/begun.log" || fail "whoever is dead shall be let go: $(grep "resume $victim" "$work/begun.log")"
verifies=$(state_get "$work/s1" verifies)
kill -USR1 "$other"
wait_until 20 state_above "$work/s1" verifies "$verifies" || fail "the other process stands still"
[ "$(state_get "$work/s1" phase)" = running ] || fail "the other process: $(state_get "$work/s1" message)"
wait_until 5 no_guards || fail "a guard is left"
kill -KILL "$leader" "$other"
job_pids=("$leader" "$other" "$victim")
expect_gone
