# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# VMM memory is freed by the driver's own figure, another job takes the room, and every byte, number and mapping is back; killed at any call, too
# gpus: 1xmi100-256m
# kernels: each
# tier: all
# seconds: 400

# shellcheck source=tests/e2e/share.sh
. "$top/tests/e2e/share.sh"
sharejob=$gpujob
other=$top/build/workloads/gpujob

if ! kernel_lists; then
	job_start vmm-large
	status=0
	tool_run suspend "${job_pids[@]}" || status=$?
	[ "$status" -eq 3 ] || fail "suspend ends with status $status: $(<"$work/tool.out")"
	grep -q 'before Linux 6.18' "$work/tool.out" || fail "nothing is said of VMM: $(<"$work/tool.out")"
	job_resume
	expect_right
	job_end
	return 0
fi

job_start vmm-large
expect_verified
process_shape >"$work/shape"
vram=$(vram_used)
for _ in 1 2; do
	gpujob=$other
	stranger_refused --vram 140M
	job_suspend
	expect_vram_below 2097152
	stranger_start --vram 140M
	! tool_run resume "${job_pids[@]}" || fail "the job was resumed in memory that is another's"
	grep -q 'too little memory free' "$work/tool.out" || fail "resume does not say why: $(<"$work/tool.out")"
	stranger_end
	job_resume
	gpujob=$sharejob
	expect_shape "$work/shape"
	expect_right
	[ "$(vram_used)" -eq "$vram" ] || fail "$(vram_used) bytes of VRAM are in use, not $vram as before"
done
ends_clean vmm-large
rm -f "$work/shape"

# Another GPU has it, too (hipMemSetAccess): it stays.
machine_apart
job_start vmm-far-vram
expect_verified
process_shape >"$work/shape"
vram=$(vram_used)
tool_says 3 'KiB stays allocated: it is or may be shared (IPC, dma-buf, VMM)' suspend "${job_pids[@]}"
[ "$(vram_used)" -eq "$vram" ] || fail "$(vram_used) bytes of VRAM are in use, not $vram"
job_resume
expect_shape "$work/shape"
expect_right
ends_clean vmm-far-vram
rm -f "$work/shape"
machine_load 1xmi100-256m

# killed WHAT CALL NTH: the command and what takes the process back die after that call; 1: there are not so many
killed() {
	local status=0
	faults "$2 $3 KILL" "$2 $(($3 + 1)) KILL"
	{
		"${faulty[@]}" "$top/build/amdgpu-checkpoint" "$1" "${job_pids[@]}" >"$work/tool.out" 2>&1 || status=$?
	} 2>"$work/killed.out"
	faults
	[ "$status" -ne 0 ] && [ "$status" -ne 3 ]
}

is_back() {
	tool_run resume "${job_pids[@]}" || fail "$1: resume: $(<"$work/tool.out")"
	expect_shape "$work/shape"
	expect_right
}

job_start vmm
expect_verified
process_shape >"$work/shape"
for call in drm:GEM_VA drm:GEM_CLOSE drm:PRIME_FD_TO_HANDLE drm:GEM_CREATE kfd:CRIU_OP; do
	for ((n = 1; ; n += 1 + n / 2)); do
		killed suspend "$call" "$n" || break
		is_back "suspend killed at $call $n"
	done
	deaths=$n
	# What is left of the last one is that it has gone well.
	is_back "suspend"
	for ((n = 1; ; n += 1 + n / 2)); do
		job_suspend
		killed resume "$call" "$n" || break
		is_back "resume killed at $call $n"
	done
	shown "killed at $call, up to $deaths of a suspend and $n of a resume"
done
expect_shape "$work/shape"
expect_right
ends_clean "vmm, killed"
