# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Completion of amdgpu-checkpoint(1) for bash. Where nothing is offered here, readline offers files.

_amdgpu_checkpoint() {
	local current=${COMP_WORDS[COMP_CWORD]} words="show verify match check doctor suspend resume follow state"
	case " ${COMP_WORDS[*]:1:COMP_CWORD-1} " in
	*" --machine " | *" --images-dir " | *" -D " | *" --dir " | *" --cgroup " | *" show "* | *" verify "* | *" match "* | *" doctor "*) words= ;;
	*" check "* | *" suspend "* | *" resume "* | *" state "*) words=$(cd /proc && echo [0-9]*) ;;
	esac
	[[ $current != -* ]] || words="--json --machine --images-dir --dir --tree --cgroup --wait --help --version"
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _amdgpu_checkpoint amdgpu-checkpoint
