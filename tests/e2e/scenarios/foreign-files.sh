# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# A job is dumped again and again beside files of others on file systems that deny all, or never answer
# gpus: 1xmi100
# kernels: each

# foreign_start denying|open: a process of a user has a file open in such a file system, whose server is $server
foreign_start() {
	mkdir -p "$work/foreign"
	"$top/build/workloads/foreignfs" "$1" "$work/foreign" >"$work/foreign.log" 2>&1 &
	server=$!
	wait_until 10 grep -q '^open ' "$work/foreign.log" || fail "no file system: $(head -n 1 "$work/foreign.log")"
	stranger=$(sed -n 's/^open //p' "$work/foreign.log")
}

foreign_end() {
	kill -KILL "$server"
	wait "$server" 2>/dev/null || true
	wait_until 10 no_process "$stranger" || fail "the process with the file does not end"
	umount -l "$work/foreign"
}

# goes_again: two dumps of a job that goes on, in seconds
goes_again() {
	for _ in 1 2; do
		dump --leave-running
		[ "${criu_seconds%.*}" -lt 30 ] || fail "the dump took $criu_seconds s"
		job_goes
	done
}

[ -e /dev/fuse ] || modprobe fuse
job_start "${small[@]}"
process_shape >"$work/shape"
dump --leave-running
job_goes

foreign_start denying
! stat -L "/proc/$stranger/fd/"* >"$work/stat" 2>&1 || fail "the file system does not deny root"
goes_again
foreign_end

foreign_start open
kill -STOP "$server"
! timeout 2 stat -L "/proc/$stranger/fd/"* >"$work/stat" 2>&1 || fail "the file system answers"
goes_again
"$top/build/amdgpu-checkpoint" check "${job_pids[0]}" >"$work/check" || fail "amdgpu-checkpoint check: $(tail -n 1 "$work/check")"
foreign_end
job_end
