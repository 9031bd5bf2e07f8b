# SPDX-License-Identifier: GPL-2.0-only
# Completion of amdgpu-checkpoint(8) for fish.

# Processes that use the GPU; processes that are suspended.
function __amdgpu_checkpoint_gpu_pids
    ls /sys/class/kfd/kfd/proc 2>/dev/null
end
function __amdgpu_checkpoint_suspended
    amdgpu-checkpoint state 2>/dev/null | string replace -rf '^pid (\d+): (?:suspended|half|locked).*' '$1'
end

set -l command complete -c amdgpu-checkpoint
set -l none not __fish_seen_subcommand_from show verify match check doctor suspend resume lock checkpoint restore unlock follow state toggle get-state

$command -f
$command -n "$none" -a show -d 'what is in the images'
$command -n "$none" -a verify -d 'are the images complete and undamaged'
$command -n "$none" -a match -d 'can they be restored here, and on which GPUs'
$command -n "$none" -a check -d 'can this process be dumped here'
$command -n "$none" -a doctor -d 'is this machine ready for dumps and restores'
$command -n "$none" -a suspend -d 'free the GPU memory of running processes'
$command -n "$none" -a resume -d 'undo suspend'
$command -n "$none" -a lock -d 'suspend, first step: stop'
$command -n "$none" -a checkpoint -d 'suspend, second step: free the memory'
$command -n "$none" -a restore -d 'resume, first step: get the memory again'
$command -n "$none" -a unlock -d 'resume, second step: run'
$command -n "$none" -a follow -d 'suspend the processes of frozen cgroups'
$command -n "$none" -a state -d 'which processes are suspended'
$command -n "$none" -a toggle -d 'suspend, or resume'
$command -n "$none" -a get-state -d 'running, locked, checkpointed or failed'
$command -n "$none" -s h -l help -d help
$command -n "$none" -s V -l version -d version

$command -n '__fish_seen_subcommand_from show verify match' -F
$command -n '__fish_seen_subcommand_from check suspend lock toggle get-state' -a '(__amdgpu_checkpoint_gpu_pids)'
$command -n '__fish_seen_subcommand_from resume checkpoint restore unlock state' -a '(__amdgpu_checkpoint_suspended)'

$command -n 'not __fish_seen_subcommand_from follow' -l json -d 'output for programs'
$command -n '__fish_seen_subcommand_from match' -l machine -rF -d "another machine's topology"
$command -n '__fish_seen_subcommand_from check doctor' -l images-dir -rF -d 'where a dump would write'
$command -n '__fish_seen_subcommand_from suspend checkpoint follow' -s D -l dir -rF -d 'where buffer data go'
$command -n '__fish_seen_subcommand_from suspend resume lock checkpoint restore unlock' -l tree -d 'with all descendants'
$command -n '__fish_seen_subcommand_from suspend resume lock checkpoint restore unlock follow' -l cgroup -rF -d 'all processes in a cgroup and below it'
$command -n '__fish_seen_subcommand_from follow' -l stopped -d 'also what a signal stops'
$command -n '__fish_seen_subcommand_from resume restore state' -l wait -x -d 'seconds to wait for memory'
$command -n '__fish_seen_subcommand_from suspend lock checkpoint' -l timeout -x -d 'seconds, then the processes run on'
$command -n '__fish_seen_subcommand_from state' -l until -x -a 'running locked suspended' -d 'wait until all are'
