# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# Copies of one image at the same time, each in a pid namespace of its own, where its processes can have the pids that they
# had. Sourced by scenarios, measurements and docs/kernel/sdma_twice.

# copy_start DIR IMAGES COMMAND FILE OTHER...: restores when DIR/../go is there, with each FILE of DIR in place of the
# OTHER. DIR/status has criu's status then; if that is 0, COMMAND is run beside the copy. The copy is killed when
# DIR/../enough is there, for which "wait" waits.
copy_start() {
	# shellcheck disable=SC2016
	unshare -m -p -f --propagation private --mount-proc bash -c '
		dir=$1 images=$2 command=$3 status=0
		shift 3
		for (( ; $# > 0; )); do mount --bind "$dir/$1" "$2"; shift 2; done
		until [ -e "$dir/../go" ]; do sleep 0.01; done
		criu restore -d -D "$images" -W "$dir" -o restore.log -v4 </dev/null >"$dir/out" 2>&1 || status=$?
		echo "$status" >"$dir/status"
		[ "$status" -ne 0 ] || $command
		until [ -e "$dir/../enough" ]; do sleep 0.1; done' - "$@" &
}

# job_copy_start DIR: of the job of lib.sh and its images, which are in DIR, too
job_copy_start() {
	rm -f "$1/status"
	cp "$job" "$1/state"
	: >"$1/log"
	copy_start "$1" "$1/images" : state "$job" log "$job.log"
}

# copies_have_gpus DIR...: no two were restored on one GPU
copies_have_gpus() {
	[ "$(grep -ho 'becomes gpu 0x[0-9a-f]*' "${@/%//restore.log}" | sort -u | wc -l)" -eq $# ] || fail "two copies have one GPU"
}
