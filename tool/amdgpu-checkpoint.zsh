#compdef amdgpu-checkpoint
# SPDX-License-Identifier: GPL-2.0-only
# Completion of amdgpu-checkpoint(8) for zsh.

# Processes that use the GPU; processes that are suspended.
_amdgpu_checkpoint_gpu_pids() {
	compadd -- $(ls /sys/class/kfd/kfd/proc 2>/dev/null)
}
_amdgpu_checkpoint_suspended() {
	compadd -- $(amdgpu-checkpoint state 2>/dev/null | sed -nE 's/^pid ([0-9]+): (suspended|half|locked).*/\1/p')
}

_amdgpu_checkpoint() {
	local state line
	local -a commands=(
		'show:what is in the images'
		'verify:are the images complete and undamaged'
		'match:can they be restored here, and on which GPUs'
		'check:can this process be dumped here'
		'doctor:is this machine ready for dumps and restores'
		'suspend:free the GPU memory of running processes'
		'resume:undo suspend'
		'lock:suspend, first step: stop'
		'checkpoint:suspend, second step: free the memory'
		'restore:resume, first step: get the memory again'
		'unlock:resume, second step: run'
		'follow:suspend the processes of frozen cgroups'
		'state:which processes are suspended'
		'toggle:suspend, or resume'
		'get-state:running, locked, checkpointed or failed'
	)
	local -a json=('--json[output for programs]')
	local -a dir=('(-D --dir)'{-D,--dir}'[where buffer data go]:directory:_files -/')
	local -a tree=('--tree[with all descendants]')
	local -a cgroup=('--cgroup[all processes in a cgroup and below it]:cgroup:_files -/ -W /sys/fs/cgroup')

	_arguments -C $json '(- *)'{-h,--help}'[help]' '(- *)'{-V,--version}'[version]' '1:command:->command' '*::argument:->argument'
	case $state in
	command) _describe command commands ;;
	argument)
		case $words[1] in
		show | verify) _arguments $json '1:directory or archive:_files' ;;
		match) _arguments $json "--machine[another machine's topology]:directory:_files -/" '1:directory or archive:_files' ;;
		check) _arguments $json '--images-dir[where a dump would write]:directory:_files -/' '1:pid:_amdgpu_checkpoint_gpu_pids' ;;
		doctor) _arguments $json '--images-dir[where a dump would write]:directory:_files -/' ;;
		suspend) _arguments $json $dir '--timeout[then the processes run on]:seconds:' $tree $cgroup '*:pid:_amdgpu_checkpoint_gpu_pids' ;;
		resume) _arguments $json '--wait[seconds to wait for memory]:seconds:' $tree $cgroup '*:pid:_amdgpu_checkpoint_suspended' ;;
		lock) _arguments $json '--timeout[then the processes run on]:seconds:' $tree $cgroup '*:pid:_amdgpu_checkpoint_gpu_pids' ;;
		checkpoint) _arguments $json $dir '--timeout[then the processes run on]:seconds:' $tree $cgroup '*:pid:_amdgpu_checkpoint_suspended' ;;
		restore) _arguments $json '--wait[seconds to wait for memory]:seconds:' $tree $cgroup '*:pid:_amdgpu_checkpoint_suspended' ;;
		unlock) _arguments $json $tree $cgroup '*:pid:_amdgpu_checkpoint_suspended' ;;
		follow) _arguments $dir '--stopped[also what a signal stops]' $cgroup ;;
		toggle | get-state) _arguments $json '*:pid:_amdgpu_checkpoint_gpu_pids' ;;
		state) _arguments $json '--until[wait until all are]:state:(running locked suspended)' '--wait[at most so long]:seconds:' '*:pid:_amdgpu_checkpoint_suspended' ;;
		esac
		;;
	esac
}
_amdgpu_checkpoint "$@"
