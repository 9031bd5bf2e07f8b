# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Completion of amdgpu-checkpoint(1) for bash.

_amdgpu_checkpoint() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} word command=
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case $word in
		show | verify | match | check | doctor | resume) command=$word ;;
		esac
	done
	compopt +o filenames
	if [[ $current == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "--json --machine --images-dir --help --version" -- "$current")
	elif [[ $previous == --machine || $previous == --images-dir || $command == show || $command == verify || $command == match ]]; then
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
	elif [[ ! $command ]]; then
		mapfile -t COMPREPLY < <(compgen -W "show verify match check doctor resume" -- "$current")
	fi
}
complete -F _amdgpu_checkpoint amdgpu-checkpoint
