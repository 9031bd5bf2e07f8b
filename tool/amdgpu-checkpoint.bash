# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Completion of amdgpu-checkpoint(8) for bash. Where nothing is offered here, readline offers files.

# Processes that use the GPU; processes that are suspended.
_amdgpu_checkpoint_gpu_pids() {
	ls /sys/class/kfd/kfd/proc 2>/dev/null
}
_amdgpu_checkpoint_suspended() {
	amdgpu-checkpoint state 2>/dev/null | sed -nE 's/^pid ([0-9]+): (suspended|half|locked).*/\1/p'
}

_amdgpu_checkpoint() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' words='' word

	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case $word in
		show | verify | match | check | doctor | suspend | resume | lock | checkpoint | restore | unlock | follow | state | toggle | get-state) command=$word && break ;;
		esac
	done
	COMPREPLY=()
	case $previous in
	--machine | --images-dir | -D | --dir | --wait | --timeout) return ;;
	--cgroup)
		compopt -o nospace 2>/dev/null
		mapfile -t COMPREPLY < <(cd /sys/fs/cgroup && compgen -d -P / -S / -- "${current#/}")
		return
		;;
	esac
	[ "$previous" = --until ] && mapfile -t COMPREPLY < <(compgen -W "running locked suspended" -- "$current") && return
	case $current$command in
	-*match) words="--json --machine" ;;
	-*check | -*doctor) words="--json --images-dir" ;;
	-*unlock) words="--json --tree --cgroup" ;;
	-*suspend | -*checkpoint) words="--json --dir --timeout --tree --cgroup" ;;
	-*lock) words="--json --timeout --tree --cgroup" ;;
	-*resume | -*restore) words="--json --wait --tree --cgroup" ;;
	-*follow) words="--dir --stopped --cgroup" ;;
	-*get-state | -*show | -*verify | -*toggle) words="--json" ;;
	-*state) words="--json --until --wait" ;;
	-*) words="--json --help --version" ;;
	*unlock | *resume | *restore | *checkpoint) words=$(_amdgpu_checkpoint_suspended) ;;
	*check | *suspend | *lock | *toggle | *get-state) words=$(_amdgpu_checkpoint_gpu_pids) ;;
	*state) words=$(_amdgpu_checkpoint_suspended) ;;
	"$current") words="show verify match check doctor suspend resume lock checkpoint restore unlock follow state toggle get-state" ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _amdgpu_checkpoint amdgpu-checkpoint
