# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Helpers of the scenarios pair-*: one dump, then restores on other machines from the same images.
#
# Machines are described by what differs from one GPU like the Instinct MI100. What simulated chips do not have, the files
# of the topology say. Each pair of machines that was shown is a line "ok - SCENARIO: PAIR".

restore_options=()	# of criu
small_job=(--vram 64K --gtt 16K --userptr 16K --chain 5000 --busy 4 --pace 30)

# machine KEY=VALUE...: loads a machine; keys of tests/asicsim/README.md
machine() {
	local text=$work/machine.txt argument
	{
		printf '[gpu]\ndevice_id = 0x738c\nvram_size = 512M\n'
		for argument; do echo "${argument%%=*} = ${argument#*=}"; done
	} >"$text"
	expect_no_objects
	topology_says
	gpus-load "$text" >"$work/gpus-load.log" 2>&1 || fail "loading a machine ($*): $(tail -n 1 "$work/gpus-load.log")"
}

# cgroup_enter DIR: this shell and what it starts
cgroup_enter() {
	echo "$BASHPID" >"$1/cgroup.procs"
}

# job_dump ARG...: a job that is dumped and gone
job_dump() {
	job_start "${small_job[@]}" "$@"
	process_shape >"$work/shape"
	dump
}

pair_shown() {
	echo "ok - ${work##*/}: $pair"
	pair=
}

# expect_becomes SAVED=LOCAL...: render minors, as the plugin says and the processes' files are
expect_becomes() {
	local move pid
	for move; do
		grep -q "(renderD${move%=*} at dump) becomes gpu 0x[0-9a-f]* (renderD${move#*=})" \
			"$work/$criu_runs-restore.log" || fail "renderD${move%=*} did not become renderD${move#*=}"
		for pid in "${job_pids[@]}"; do
			stat -Lc %Hr:%Lr "/proc/$pid/fd/"* | grep -x "226:${move#*=}" >/dev/null ||
				fail "process $pid has no renderD${move#*=} open"
		done
	done
}

# expect_gpus NUMBER: the KFD shows the restored process so many
expect_gpus() {
	local gpus=("/sys/class/kfd/kfd/proc/${job_pids[0]}"/vram_*)
	[ "${#gpus[@]}" -eq "$1" ] || fail "the process sees ${#gpus[@]} GPUs, not $1"
}

# accepted WHAT [SAVED=LOCAL...]: the job is restored on GPUs with these minors, and everything of it is right
accepted() {
	pair=$1
	restore "${restore_options[@]}"
	expect_becomes "${@:2}"
	[ -z "${gpus_seen:-}" ] || expect_gpus "$gpus_seen"
	expect_right
	# Slow, and the same for all restores of a dump: once.
	[ ! -e "$work/shape" ] || expect_shape "$work/shape"
	rm -f "$work/shape"
	job_kill
	expect_gone
	pair_shown
}

# refused WHAT TEXT...: criu says no, the plugin says why in a line that has all texts, and nothing is left of the job
refused() {
	local log text lines
	pair=$1
	shift
	! criu_call restore -d || fail "criu restore succeeded, but it should have refused"
	expect_gone
	expect_no_objects
	log=$work/$criu_runs-restore.log
	lines=$(grep 'Error (amdgpu_plugin): ' "$log") || fail "the plugin says nothing; first errors: $(criu_errors)"
	for text; do
		grep -qF -- "$text" <<<"$lines" || fail "no error says \"$text\"; first errors: $(criu_errors)"
	done
	pair_shown
}

# refused_unless WHAT OPTION TEXT...: refused, the option is named, and without that check the job is right
refused_unless() {
	local what=$1 option=$2
	shift 2
	refused "$what" "$option" "$@"
	export "$option=0"
	accepted "$what, $option=0"
	unset "$option"
}
