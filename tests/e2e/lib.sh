# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2016,SC2034,SC2119,SC2120
# Helpers of the scenarios with the real criu: a GPU job, dump, restore, what is expected of them.
#
# Sourced inside the machine. A scenario calls these; whatever is not as expected ends it
# with one line (fail). Images and state files are in $work, on the machine's own tmpfs.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
gpujob=$top/build/workloads/gpujob
hsajob=$top/build/workloads/hsajob
gpus_dir=${gpus_dir:-$top/tests/asicsim/gpus}
objects_file=/sys/kernel/debug/asicsim/objects
clients_file=/sys/kernel/debug/asicsim/clients
gpus_file=/sys/kernel/debug/asicsim/gpus
loaded_file=/run/gpus-loaded	# tests/vm/guest/gpus-load

work=${work:-/tmp/e2e}
job=$work/job		# state file of the job's parent; children: $job.1, $job.2 ...
job_pids=()		# the parent first
images=			# directory of the last dump
criu_runs=0		# how often criu was called: names of directories and logs
criu_seconds=		# of the last call
criu_limit=120		# seconds that criu may take
job_limit=120		# and a job to check all its bytes
faulty=()		# command that has criu's calls fail
small=(--vram 16K --gtt 16K --userptr 16K --chain 5000 --busy 4)	# of a job that has as little as it can
pair=			# what is being shown, in scenarios that show several things (pairs.sh)

fail() {
	printf '%s\n' "${pair:+$pair: }$*" >"$work/reason"
	exit 1
}

on_error() {
	[ -s "$work/reason" ] || printf '%s:%s: "%s" failed\n' "${3##*/}" "$1" "$2" >"$work/reason"
}
trap 'on_error "$LINENO" "$BASH_COMMAND" "${BASH_SOURCE[0]}"' ERR
set -E

# seconds_since START: from $EPOCHREALTIME, three digits
seconds_since() {
	local now=$EPOCHREALTIME us
	us=$((10#${now/./} - 10#${1/./}))
	printf '%d.%03d' $((us / 1000000)) $((us / 1000 % 1000))
}

# wait_until SECONDS CONDITION...: asks again and again; status 1 when time is up
wait_until() {
	local deadline=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$deadline" ] || return 1
		sleep 0.05
	done
}

# ---- the machine ----

# machine_load NAME [SED-SCRIPT]: the simulated GPUs of NAME.txt, changed by the script, instead of those that are there
machine_load() {
	local log=$work/gpus-load.log description=$work/gpus.txt
	sed "${2:-}" "$gpus_dir/$1.txt" >"$description"
	gpus-load "$description" >"$log" 2>&1 || fail "loading the machine $1: $(tail -n 1 "$log")"
}

# machine_begin NAME: the GPUs of NAME.txt as they are after loading: those that the scenario before has left are, when
# they are the same and it has ended well
machine_begin() {
	cmp -s "$gpus_dir/$1.txt" "$loaded_file" || machine_load "$1"
}

# topology_says [SED-SCRIPT]: what the driver says of GPUs and their links, changed by the script
topology_says() {
	local dir=/sys/devices/virtual/kfd/kfd/topology node
	rm -f "$loaded_file"
	! mountpoint -q "$dir" || umount "$dir"
	rm -rf "$work/topology"
	[ $# -gt 0 ] || return 0
	cp -r "$dir" "$work/topology"
	for node in "$work/topology/nodes"/*; do
		[ "$(<"$node/gpu_id")" = 0 ] || sed -i "$1" "$node/properties" "$node"/*links/*/properties
	done
	mount --bind "$work/topology" "$dir"
}

# machine_gpus: "GPU_ID RENDER_MINOR NODE" of each, decimal, in the order of nodes
machine_gpus() {
	local dir=/sys/class/kfd/kfd/topology/nodes node id key value
	for node in $(printf '%s\n' "$dir"/* | sed 's,.*/,,' | sort -n); do
		id=$(<"$dir/$node/gpu_id")
		[ "$id" != 0 ] || continue
		while read -r key value; do
			[ "$key" != drm_render_minor ] || printf '%s %s %s\n' "$id" "$value" "$node"
		done <"$dir/$node/properties"
	done
}

# host_bystanders: the processes that have nothing to do with the scenario; threads of the kernel have no program
host_bystanders() {
	local exe pid
	for exe in /proc/[0-9]*/exe; do
		pid=${exe//[!0-9]/}
		[ "$pid" = $$ ] || [ ! -e "$exe" ] || echo "$pid"
	done
}

# host_devices: what is in /dev, but for devices of GPUs that the driver has now, terminals, and the file of claims,
# which the first restore makes
host_devices() {
	local number path
	while read -r number path; do
		[ -e "/sys/dev/char/$number" ] || echo "$path"
	done < <(find /dev/dri /dev/kfd ! -type d -exec stat -c '%Hr:%Lr %n' {} + 2>/dev/null)
	find /dev -path /dev/pts -prune -o -path /dev/dri -prune -o ! -path /dev/kfd ! -path /dev/amdgpu-checkpoint-claims -printf '%M %U %G %p %l\n'
}

# host_state: what is the same before and after each scenario
host_state() {
	local pid files
	sed '/^amdgpu-checkpoint /d; s/^/mounted: /' /proc/mounts # but for suspend's own, which stays
	find /sys/fs/cgroup -type d -printf 'cgroup: %p\n' | sort
	host_devices | sort
	while read -r pid; do
		files=("/proc/$pid/fd/"*)
		echo "process $pid $(<"/proc/$pid/comm"): ${#files[@]} files"
	done <"$work/bystanders"
}

# criu mounts cgroups anew for tasks that are in others than it is itself: the machine's lose their options.
cgroup_options_again() {
	mount -o remount,nsdelegate,memory_recursiveprot /sys/fs/cgroup
}

# host_picture: notes how the host is; expect_host_same: it is like that again
host_picture() {
	host_bystanders >"$work/bystanders"
	host_state >"$work/host"
}

expect_host_same() {
	local difference
	difference=$(diff "$work/host" <(host_state 2>&1)) ||
		fail "mounts, cgroups, /dev or other processes' files differ (< before, > now):" \
			"$(printf '%s' "$difference" | grep '^[<>]' | tr '\n' ';')"
}

# log_mark NAME: what the kernel says from here on is this scenario's, also what it says only once
log_mark() {
	echo 1 >/sys/kernel/debug/clear_warn_once
	echo "e2e: scenario $1" >/dev/kmsg
}

# log_complaints NAME: what the kernel's log has had since then that it should not have
log_complaints() {
	sed "1,/e2e: scenario $1\$/d" "$work/kernel.log" |
		grep -E 'page fault|asicsim: |BUG[: ]|WARNING:|Oops|INFO: task .* blocked'
}

# expect_log_quiet NAME: but for what the scenario's lines "# log: REGULAR EXPRESSION, REASON" expect
expect_log_quiet() {
	local lines
	dmesg >"$work/kernel.log"
	grep -q "e2e: scenario $1\$" "$work/kernel.log" || fail "the kernel's log does not go back to the scenario's begin"
	sed -n 's/^# log: \([^,]*\),.*/\1/p' "$top/tests/e2e/scenarios/$1.sh" >"$work/expected"
	lines=$(log_complaints "$1" | grep -vEf "$work/expected") || [ $? -eq 1 ] || fail "the kernel's log cannot be searched"
	[ -z "$lines" ] || fail "the kernel complained: $(head -n 1 <<<"$lines") ($(wc -l <<<"$lines") lines)"
}

# driver_said PATTERN: since the scenario's begin
driver_said() {
	dmesg | sed "1,/e2e: scenario ${work##*/}\$/d" | grep "$1" >/dev/null
}

# had_resets NUMBER: the driver has reset GPUs so often since the scenario's begin
had_resets() {
	[ "$(dmesg | sed "1,/e2e: scenario ${work##*/}\$/d" | grep -c 'GPU reset([0-9]*) succeeded')" -ge "$1" ]
}

# kernel_since RELEASE
kernel_since() {
	printf '%s\n' "$1" "$(uname -r)" | sort -C -V
}

objects_left() {
	[ ! -e "$objects_file" ] || awk '$2 != 0 { printf "%s%s %s", sep, $1, $2; sep = ", " }' "$objects_file"
}

no_objects_left() {
	[ -z "$(objects_left)" ]
}

# expect_no_objects: every BO, mapping, queue, context ... of the simulator was given back
expect_no_objects() {
	wait_until 10 no_objects_left || fail "objects left in the GPU driver: $(objects_left)"
}

# ---- the job ----

# state_get FILE KEY: from a state file, read again when a write came between
state_get() {
	local text first tries
	for ((tries = 0; tries < 100; tries++)); do
		text=$(<"$1")
		first=${text%%$'\n'*}
		[ "$first" != "${text##*$'\n'}" ] || break
	done
	text=$'\n'$text
	[[ $text == *$'\n'"$2 "* ]] || fail "${1##*/}: no line \"$2\""
	text=${text#*$'\n'"$2" }
	printf '%s\n' "${text%%$'\n'*}"
}

# job_states: the state files, one per process, in the order of job_pids
job_states() {
	local i
	printf '%s\n' "$job"
	for ((i = 1; i < ${#job_pids[@]}; i++)); do
		printf '%s\n' "$job.$i"
	done
}

# job_start ARG...: returns when all its processes compute
job_start() {
	local file
	rm -f "$job" "$job".[0-9]* "$work/shape"
	"$gpujob" --state "$job" --background "$@" >"$work/job.start" 2>&1 ||
		fail "the job did not start: $(head -n 1 "$work/job.start")"
	job_pids=()
	for file in "$job" "$job".[0-9]*; do
		[ ! -e "$file" ] || job_pids+=("$(state_get "$file" pid)")
	done
	! no_objects_left || fail "the GPU driver shows no object of a job that runs: nobody would see one that is left"
}

# job_pids_find NUMBER: sets job_pids where the state files have the pids of another namespace, and nobody else runs the job
job_pids_find() {
	mapfile -t job_pids < <(pgrep -f "^$gpujob --state $job ")
	[ "${#job_pids[@]}" -eq "$1" ] || fail "${#job_pids[@]} processes of the job, not $1"
}

job_message() {
	local file message
	while read -r file; do
		message=$(state_get "$file" message)
		[ -z "$message" ] || printf '%s: %s\n' "$(state_get "$file" pid)" "$message"
	done < <(job_states)
	return 0
}

alive() {
	local stat
	[ -r "/proc/$1/stat" ] && stat=$(<"/proc/$1/stat") 2>/dev/null && [[ $stat != *') Z '* ]]
}

expect_alive() {
	local pid
	for pid in "${job_pids[@]}"; do
		alive "$pid" || fail "process $pid is gone; its last message: $(job_message)"
	done
}

no_process() {
	[ ! -e "/proc/$1" ]
}

# expect_gone: ended and reaped
expect_gone() {
	local pid
	for pid in "${job_pids[@]}"; do
		wait_until 10 no_process "$pid" ||
			fail "process $pid is still there: $(grep ^State "/proc/$pid/status" 2>/dev/null)"
	done
}

# state_above FILE KEY VALUE
state_above() {
	[ "$(state_get "$1" "$2")" -gt "$3" ] || [ "$(state_get "$1" phase)" = failed ]
}

# expect_state_above SECONDS KEY VALUE...: every process gets beyond its VALUE
expect_state_above() {
	local seconds=$1 key=$2 file
	shift 2
	while read -r file; do
		wait_until "$seconds" state_above "$file" "$key" "$1" ||
			fail "${file##*/}: $key stays at $(state_get "$file" "$key") for $seconds s"
		[ "$(state_get "$file" phase)" != failed ] || fail "the job failed: $(job_message)"
		shift
	done < <(job_states)
}

# job_values KEY: of all processes
job_values() {
	local file
	while read -r file; do
		state_get "$file" "$1"
	done < <(job_states)
}

# expect_progress: all processes compute further generations
expect_progress() {
	local generations
	expect_alive
	mapfile -t generations < <(job_values generation | while read -r g; do echo $((g + 1)); done)
	expect_state_above 30 generation "${generations[@]}"
}

# expect_verified: all processes find every byte of theirs right
expect_verified() {
	local before
	expect_alive
	mapfile -t before < <(job_values verifies)
	kill -USR1 "${job_pids[@]}"
	expect_state_above "$job_limit" verifies "${before[@]}"
}

# stranger_start ARG...: a job of somebody else, whose pid is $stranger; stranger_end: all of its data was right
stranger_start() {
	"$gpujob" --state "$work/stranger" --background "$@" >"$work/stranger.start" 2>&1 ||
		fail "the other job did not start: $(head -n 1 "$work/stranger.start")"
	stranger=$(state_get "$work/stranger" pid)
}

stranger_end() {
	kill -TERM "$stranger" 2>/dev/null || true # it may have been told already
	wait_until 60 no_process "$stranger" || fail "the other job does not end"
	[ "$(state_get "$work/stranger" phase)" = "done" ] || fail "the other job's data is wrong: $(state_get "$work/stranger" message)"
}

expect_right() {
	expect_progress
	expect_verified
}

# stands_still [SECONDS]: it does not compute for that long
stands_still() {
	local generation
	generation=$(state_get "$job" generation)
	sleep "${1:-0.5}"
	[ "$(state_get "$job" generation)" = "$generation" ]
}

# is_held WHEN: it lives, and does not compute
is_held() {
	sleep 0.3
	alive "${job_pids[0]}" || fail "$1: the job has run without its memory"
	stands_still || fail "$1: the job runs"
}

# job_end: the job checks everything once more, frees everything without an error and ends
job_end() {
	local file
	kill -TERM "${job_pids[0]}"
	wait_until "$job_limit" no_process "${job_pids[0]}" || fail "the job does not end: $(state_get "$job" phase)"
	expect_gone
	while read -r file; do
		[ "$(state_get "$file" phase)" = "done" ] || fail "the job's end: $(job_message)"
	done < <(job_states)
	! job_complaints | grep . >/dev/null || fail "the job complained: $(job_complaints | head -n 1)"
}

# job_complaints: what the job wrote, except what ROCm's runtime says where the kernel has no SVM ranges, and what HIP 7.2 says
# at the end of every program, and $job_may_say
job_complaints() {
	[ ! -e "$job.log" ] || grep -vE "^(KFD does not support xnack|ROCr must assume xnack|Warning: Resource leak detected by SharedSignalPool${job_may_say:+|$job_may_say})" "$job.log" || true
}

job_kill() {
	kill -KILL "${job_pids[@]}" 2>/dev/null || true
}

# render_minors PID: of the render nodes that it has open, by their numbers: in a container, names are those of the dump
render_minors() {
	{ stat -Lc %Hr:%Lr "/proc/$1/fd/"* || true; } | sed -n 's/^226://p' | sort -nu
}

# fds PID: "NUMBER TARGET" of all open files, without one that is closed meanwhile
fds() {
	{ find "/proc/$1/fd" -mindepth 1 -printf '%f %l\n' 2>/dev/null || true; } | sort -n
}

# fds_anywhere: of all processes, without what differs by machine: render minors, ids of GPUs, numbers of sockets
fds_anywhere() {
	local pid
	for pid in "${job_pids[@]}"; do
		fds "$pid"
	done | sed 's,/dev/dri/renderD.*,render node,; s,socket:.*,socket,'
}

thread_counts() {
	(cd /proc && awk '$1 == "Threads:" { print $2 }' "${job_pids[@]/%//status}")
}

# device_maps: "RANGE PERMISSIONS DEVICE FLAG..." of all device mappings; offsets change with the machine, and the flag
# "soft dirty" with any look at it
device_maps() {
	(
		cd /proc
		awk '/^[0-9a-f]+-/ { map = $6 ~ "^/dev/(kfd|dri/)" ? $1 " " $2 " " $6 : "" }
			map && $1 == "VmFlags:" {
				sub("/dev/dri/renderD[0-9]*", "render node", map)
				$1 = map; sub(/ sd$/, ""); sub(/ sd /, " "); print
			}' "${job_pids[@]/%//smaps}"
	)
}

# process_shape: what must be the same before and after: open files, threads, device mappings
process_shape() {
	fds_anywhere
	thread_counts
	device_maps
}

# expect_shape FILE: as process_shape was when it was written to FILE
expect_shape() {
	local difference
	difference=$(diff "$1" <(process_shape)) || fail "open files, threads or device mappings differ (< before, > now):" \
		"$(printf '%s' "$difference" | grep '^[<>]' | tr '\n' ';')"
}

# ---- criu ----

# criu_call WHAT ARG...: sets criu_seconds; the log is in $work/N-WHAT.log. criu's exit status.
criu_call() {
	local what=$1 status=0 start=$EPOCHREALTIME log
	shift
	criu_runs=$((criu_runs + 1))
	log=$work/$criu_runs-$what.log
	timeout -k 5 "$criu_limit" "${faulty[@]}" criu "$what" "$@" -D "$images" -o "$log" -v4 </dev/null >"$log.out" 2>&1 || status=$?
	criu_seconds=$(seconds_since "$start")
	[ "$status" -lt 124 ] || [ "$status" -eq 255 ] || fail "criu $what did not end by itself (status $status)"
	return "$status"
}

# criu_errors: the first errors in the last log
criu_errors() {
	grep -h 'Error' "$work/$criu_runs"-*.log | head -n 3 | tr '\n' ';'
}

images_new() {
	images=$work/images-$((criu_runs + 1))
	mkdir -p "$images"
}

# dump_at_once ARG...: of the whole job; criu says it succeeded
dump_at_once() {
	images_new
	criu_call dump -t "${job_pids[0]}" "$@" || fail "criu dump ended with status $?: $(criu_errors)"
}

# dump ARG...: likewise, and the job is gone then, unless it is left running
dump() {
	dump_at_once "$@"
	[[ " $* " == *" --leave-running "* ]] || expect_gone
}

# dump_refused ARG...: criu says that it failed
dump_refused() {
	images_new
	! criu_call dump -t "${job_pids[0]}" "$@" || fail "criu dump succeeded, but it should have refused"
}

# action_script FILE COMMANDS: a script for criu, which runs them when all is saved
action_script() {
	printf '#!/bin/bash\n[ "$CRTOOLS_SCRIPT_ACTION" = post-dump ] || exit 0\n%s\n' "$2" >"$1"
	chmod 755 "$1"
}

# Kills the guard of a dump that is killed then: nobody lets the queues run again.
no_guard='pkill -KILL -x amdgpu-guard'

# dump_killed [COMMANDS [ARG...]]: criu is killed when all is saved, after these commands
dump_killed() {
	images_new
	action_script "$work/kill" "${1-}"$'\nkill -KILL "$PPID"'
	{
		! criu dump -t "${job_pids[0]}" --action-script "$work/kill" "${@:2}" -D "$images" -o "$work/killed.log" -v4 </dev/null \
			>/dev/null || fail "criu was not killed"
	} 2>"$work/killed.out"
	expect_alive
}

# expect_one_error PATTERN: in the last log, the plugin says what is wrong, once
expect_one_error() {
	local log=("$work/$criu_runs"-*.log) count
	count=$(grep -c 'Error (amdgpu_plugin)' "${log[0]}" || true)
	[ "$count" -eq 1 ] || fail "$count error lines of the plugin, not one: $(criu_errors)"
	grep -q "Error (amdgpu_plugin): .*$1" "${log[0]}" ||
		fail "the plugin's error line is not about \"$1\": $(grep -h 'Error (amdgpu_plugin)' "${log[0]}")"
}

# expect_criu_error PATTERN: in the last log, criu itself says what is wrong
expect_criu_error() {
	local log=("$work/$criu_runs"-*.log)
	grep -v amdgpu_plugin "${log[0]}" | grep "Error.*$1" >/dev/null || fail "criu does not say \"$1\": $(criu_errors)"
}

# faults "POINT NTH ERRNO [TIMES]"...: which of criu's calls fail from now on (tests/workloads/failcalls.c); none without
faults() {
	rm -f "$work/faults" "$work/faults.counts"
	faulty=()
	[ $# -gt 0 ] || return 0
	printf '%s\n' "$@" >"$work/faults"
	faulty=(env FAILCALLS="$work/faults" LD_PRELOAD="$top/build/workloads/failcalls.so")
}

# gpus_state WORD: ok, hang, slow, rings or held, all of them
gpus_state() {
	local id _
	rm -f "$loaded_file"
	while read -r id _; do
		printf '%#x %s\n' "$id" "$1" >"$gpus_file"
	done < <(machine_gpus)
}

# loses_stacks: this driver saves no control stacks, without which a kernel does not go on (known of these releases; of others
# the first dump has noticed it)
loses_stacks() {
	case $(uname -r) in
	6.12*) return 1 ;;
	7.2.12* | 7.2.13* | 7.3.*) return 0 ;;
	esac
	grep -qs 'the driver left out' "$work"/*-dump.log
}

# What the plugin says then.
no_stacks='this driver saves no control stacks, and the queue was stopped in a kernel'

# leaves_placeholders: a restore by this driver leaves a buffer for each compute queue (kernel/placeholders.c)
leaves_placeholders() {
	local release
	release=$(uname -r)
	[[ $release == 6.12.* ]] && release=${release#6.12.} && [ "${release%%[!0-9]*}" -ge 111 ]
}

# objects: how many there are of each kind; how much memory the driver takes for them may change
objects() {
	grep -vE "_kib $(! leaves_placeholders || echo '|^kfd_bo ')" "$objects_file"
}

objects_are_as_before() {
	objects | cmp -s "$work/objects" -
}

# job_picture: notes how the job is; expect_picture: it is like that again
job_picture() {
	process_shape >"$work/shape"
	objects >"$work/objects"
}

expect_picture() {
	expect_shape "$work/shape"
	wait_until 10 objects_are_as_before || fail "objects of the GPU driver differ (< before, > now):" \
		"$(objects | diff "$work/objects" - | grep '^[<>]' | tr '\n' ';')"
}

# expect_unharmed: the job is as job_picture has noted, computes and finds all its data right
expect_unharmed() {
	expect_right
	expect_picture
}

# Empties the state files without changing their size: what they say after a restore is new.
states_blank() {
	local file
	while read -r file; do
		printf '%4096s' '' | tr ' ' '\n' 1<>"$file"
	done < <(job_states)
}

states_written() {
	local file
	while read -r file; do
		grep -q '^stamp ' "$file" || return 1
	done < <(job_states)
}

# job_goes: all bytes are right, open files, threads and mappings as in $work/shape, and new data follow
job_goes() {
	expect_verified
	expect_shape "$work/shape"
	expect_progress
}

# job_returns [COMMAND ARG...]: the job is dumped and gone, and goes on after a restore; between, the command runs where
# nothing is left in the driver
job_returns() {
	[ -e "$work/shape" ] || process_shape >"$work/shape"
	dump
	[ $# -eq 0 ] || expect_no_objects
	"$@"
	restore
	job_goes
}

# job_comes_back [TIMES]: the job is dumped, gone, restored and as it was, one time after the other
job_comes_back() {
	local n
	for ((n = 0; n < ${1:-1}; n++)); do
		dump
		restore
		expect_unharmed
	done
}

# restore_refused ARG...: criu says that it failed, and no process is left
restore_refused() {
	! criu_call restore -d "$@" || fail "criu restore succeeded, but it should have refused"
	expect_gone
	expect_no_objects
}

# criu_left_end: ends the process that criu 4.3 may leave of a restore that failed or was killed, and with it what tasks had
# handed to criu (docs/troubleshooting.md)
criu_left_end() {
	! printf '4.3\n%s\n' "$(criu --version | sed -n 's/^Version: //p')" | sort -C -V || pkill -KILL -x criu -g "${job_pids[0]}" || true
}

# restore ARG...: criu says it succeeded, and all processes are heard from
restore() {
	states_blank
	criu_call restore -d "$@" || fail "criu restore ended with status $?: $(criu_errors)"
	expect_alive
	wait_until 30 states_written || fail "the restored job does not compute"
}

# expect_images GPUS PROCESSES: the plugin's files are there, and none is empty
expect_images() {
	local nr_gpus=$1 nr_processes=$2 file
	images_count 'amdgpu-kfd-*.img' "$nr_processes"
	images_count 'amdgpu-pages-*.img' $((nr_gpus * nr_processes))
	images_count 'amdgpu-renderD-*.img' $((nr_gpus * nr_processes))
	for file in "$images"/amdgpu-*.img; do
		[ -s "$file" ] || fail "image ${file##*/} is empty"
	done
}

# byte_put FILE AT VALUE
byte_put() {
	# shellcheck disable=SC2059
	printf "\\x$(printf %x "$3")" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# flip_bit FILE AT [BIT]
flip_bit() {
	byte_put "$1" "$2" $(($(od -An -tu1 -j "$2" -N 1 "$1") ^ 1 << ${3:-2}))
}

images_count() {
	local files
	mapfile -t files < <(compgen -G "$images/$1")
	[ "${#files[@]}" -eq "$2" ] || fail "the images have ${#files[@]} files $1, not $2"
}

images_mib() {
	du -sm "$images" | cut -f 1
}

# ---- suspend in place ----

# vram_used: bytes, of all GPUs, by the driver
vram_used() {
	cat /sys/class/drm/card*/device/mem_info_vram_used | awk '{ sum += $1 } END { printf "%d", sum }'
}

vram_below() {
	[ "$(vram_used)" -lt "$1" ]
}

expect_vram_below() {
	wait_until 10 vram_below "$1" || fail "$(vram_used) bytes of VRAM are in use, $1 were expected at most"
}

# tool_run ARG...: the command; what it says is in $work/tool.out. Its status.
tool_run() {
	"$top/build/amdgpu-checkpoint" "$@" >"$work/tool.out" 2>&1
}

# tool_says STATUS PATTERN ARG...: the command ends so, and says that
tool_says() {
	local want=$1 pattern=$2 got=0
	shift 2
	tool_run "$@" || got=$?
	[ "$got" -eq "$want" ] || fail "$* ended with status $got, not $want: $(<"$work/tool.out")"
	grep -q -- "$pattern" "$work/tool.out" || fail "$*: no word of \"$pattern\": $(<"$work/tool.out")"
}

# tool_suspend ARG...: also where less than half of the VRAM is freed, which is status 3
tool_suspend() {
	tool_run suspend "$@" || [ $? -eq 3 ] || fail "suspend: $(<"$work/tool.out")"
}

# job_suspend ARG...; job_resume ARG...: all processes of the job
job_suspend() {
	local used freed
	used=$(vram_used)
	tool_suspend "$@" "${job_pids[@]}"
	freed=$("$top/build/amdgpu-checkpoint" --json state "${job_pids[@]}" |
		grep -o '"vram_bytes": *[0-9]*' | awk '{ sum += $NF } END { printf "%d", sum }')
	wait_until 10 vram_below $((used - freed + 1)) ||
		fail "suspend says that $freed bytes of VRAM are freed; by the driver $used were in use, and $(vram_used) are"
}

job_resume() {
	tool_run resume "$@" "${job_pids[@]}" || fail "resume: $(<"$work/tool.out")"
}

# nothing_kept: no record and no buffer data of any process
nothing_kept() {
	[ ! -e /run/amdgpu-checkpoint ] || [ -z "$(find /run/amdgpu-checkpoint -mindepth 1 ! -path /run/amdgpu-checkpoint/memory)" ]
}

# stranger_refused ARG...: a job of somebody else finds no room
stranger_refused() {
	! "$gpujob" --state "$work/refused" --background "$@" 2>/dev/null || fail "a job with $* found room"
	rm -f "$work/refused"*
}
