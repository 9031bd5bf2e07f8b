# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Processes in network, mount, IPC, UTS and pid namespaces of their own, restored by criu's main process
# gpus: 2xmi100
# tier: all

# A container by hand: a root of its own, and directories that criu is told to take from outside.
cp "$gpujob" "$work/gpujob"
gpujob=$work/gpujob
root=$work/root
mkdir "$root"
export root
unshare --pid --net --mount --ipc --uts --propagation private --fork bash -ec '
	mount --bind / "$root"
	mount -t proc proc "$root/proc"
	for dir in tmp dev sys; do mount --bind "/$dir" "$root/$dir"; done
	cd "$root"
	perl -e "exit(syscall(155, map { my \$dir = \$_ } q(.), q(mnt)) != 0)" # pivot_root
	umount -l /mnt
	exec setsid "$@"' - "$gpujob" --state "$job" --children 1 --vram 512K --buffers 5 \
	</dev/null >/dev/null 2>"$job.log" &
disown
wait_until 30 grep -qs '^phase running' "$job.1" || fail "the job does not start: $(head -n 1 "$job.log")"

# namespaces: how many kinds of them the job does not share with criu
namespaces() {
	local kind n=0
	for kind in net mnt ipc uts pid; do
		[ "$(readlink "/proc/${job_pids[0]}/ns/$kind")" = "$(readlink "/proc/self/ns/$kind")" ] || n=$((n + 1))
	done
	echo "$n"
}

job_pids_find 2
[ "$(namespaces)" -eq 5 ] || fail "the job has $(namespaces) namespaces of its own, not 5"
process_shape >"$work/shape"
dump --network-lock skip --external 'mnt[/tmp]:tmp' --external 'mnt[/dev]:dev' --external 'mnt[/sys]:sys'
states_blank
mount --bind / "$root"
criu_call restore -d --root "$root" --external 'mnt[tmp]:/tmp' --external 'mnt[dev]:/dev' --external 'mnt[sys]:/sys' ||
	fail "criu restore ended with status $?: $(criu_errors)"
umount "$root"
job_pids_find 2
wait_until 30 states_written || fail "the restored job does not compute"
[ "$(namespaces)" -eq 5 ] || fail "the restored job has $(namespaces) namespaces of its own, not 5"
[ "$(grep -c "criu's main process restores the buffer data" "$work/$criu_runs-restore.log")" -eq 2 ] ||
	fail "not both processes handed their buffer data over"
job_goes
job_kill
