# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# Four processes that share: each kind of call fails in one of them, in dumps and restores; all end soon, nothing is left
# gpus: 2xmi100
# tier: all
# seconds: 900

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"

never=1000000000
dump_points=(kfd:ACQUIRE_VM kfd:CRIU_CHECKPOINT kfd:GET_DMABUF_INFO kfd:IMPORT_DMABUF drm:GEM_CREATE drm:GEM_LIST_HANDLES
	drm:GEM_METADATA drm:GEM_MMAP drm:GEM_OP drm:PRIME_FD_TO_HANDLE drm:PRIME_HANDLE_TO_FD)
restore_points=(kfd:open kfd:CRIU_RESTORE kfd:CRIU_RESUME kfd:FREE_MEMORY_OF_GPU kfd:IMPORT_DMABUF kfd:MAP_MEMORY_TO_GPU
	drm:GEM_CLOSE drm:GEM_CREATE drm:GEM_METADATA drm:GEM_MMAP drm:GEM_VA drm:PRIME_FD_TO_HANDLE drm:PRIME_HANDLE_TO_FD)

# count BYTE POINT: the number at this byte of the point's counts
count() {
	local line
	line=$(grep -n "^$2 " "$work/faults" | cut -d : -f 1)
	od -An -t u8 -j $((16 * (line - 1) + $1)) -N 8 "$work/faults.counts" | tr -d ' '
}

# calls POINT: how many there were since it was armed; failures POINT
calls() {
	count 0 "$1"
}
failures() {
	count 8 "$1"
}

arm() {
	faults "${@/%/ $never EIO}"
}

# counts POINT...: "POINT CALLS" of each that was called
counts() {
	local point
	for point; do
		[ "$(calls "$point")" -eq 0 ] || echo "$point $(calls "$point")"
	done
}

# expect_reason: the plugin says what failed, and not only that another process did
expect_reason() {
	grep 'Error (amdgpu_plugin): ' "$work/$criu_runs-$1.log" | grep -v 'which shares buffers with this process' >/dev/null ||
		fail "the plugin does not say why: $(criu_errors)"
	[ "${criu_seconds%.*}" -lt 60 ] || fail "the $1 took $criu_seconds s to fail"
}

# dump_with_fault POINT NTH: refused, or not touched by it
dump_with_fault() {
	pair="dump, $1 $2"
	faults "$1 $2 ENOMEM"
	images_new
	if criu_call dump --leave-running -t "${job_pids[0]}"; then
		unnoticed=$((unnoticed + $(failures "$1")))
	else
		refused=$((refused + 1))
		expect_reason dump
	fi
	faults
	job_goes
}

# restore_with_fault POINT NTH
restore_with_fault() {
	pair="restore, $1 $2"
	faults "$1 $2 ENOMEM"
	states_blank
	if criu_call restore -d; then
		unnoticed=$((unnoticed + $(failures "$1")))
		faults
		wait_until 30 states_written || fail "the restored job does not compute"
		job_goes
		job_kill
	else
		refused=$((refused + 1))
		faults
		expect_reason restore
		criu_left_end
	fi
	expect_gone
	expect_no_objects
	expect_no_dmabufs
}

# all_with_faults WHAT: each point, and a call in the middle, when some tasks have done theirs
all_with_faults() {
	local point nr
	refused=0 unnoticed=0
	while read -r point nr; do
		"$1_with_fault" "$point" $((nr / 2 + 1)) </dev/null
	done
	[ "$refused" -gt 5 ] || fail "$1: only $refused of the failures were noticed"
	pair=
	echo "# $case: $refused $1s failed, $unnoticed failures did not matter"
	shown "$case, $1s that fail"
}

# fails CASE
fails() {
	case=$1
	job_start "$case"
	process_shape >"$work/shape"
	arm "${dump_points[@]}"
	dump --leave-running
	counts "${dump_points[@]}" >"$work/counts"
	all_with_faults dump <"$work/counts"
	faults
	dump
	arm "${restore_points[@]}"
	restore
	counts "${restore_points[@]}" >"$work/counts"
	faults
	job_kill
	expect_gone
	all_with_faults restore <"$work/counts"
	restore
	job_goes
	job_end
}

if kernel_lists; then
	fails mesh-kept
else
	fails mesh
fi
