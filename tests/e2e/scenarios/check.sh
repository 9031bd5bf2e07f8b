# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# amdgpu-checkpoint check says before a dump what it would refuse, and the process goes on, also when check is killed
# gpus: 2xmi100
# kernels: each

# checks STATUS PATTERN [ARG...]: what amdgpu-checkpoint check says of the job
checks() {
	local want=$1 pattern=$2 got=0
	shift 2
	"$top/build/amdgpu-checkpoint" check "$@" "${job_pids[0]}" >"$work/check.out" 2>&1 || got=$?
	cat "$work/check.out" >>"$work/check.log"
	[ "$got" -eq "$want" ] || fail "check ended with status $got, not $want: $(grep -v '^ok' "$work/check.out" | head -n 1)"
	grep -qE -- "$pattern" "$work/check.out" || fail "check does not say \"$pattern\": $(tail -n 1 "$work/check.out")"
}

# refused PATTERN JOB-ARGUMENT...: check says so, harms nothing, and the dump is refused as well
refused() {
	local pattern=$1
	shift
	job_start "${small[@]}" "$@"
	job_picture
	checks 1 "^problem +(pid .*|dump): $pattern"
	expect_unharmed
	dump_refused
	expect_unharmed
	job_kill
	expect_gone
}

# What would be dumped is.
job_start "${small[@]}" --children 1
job_picture
checks 0 "^ok +pid ${job_pids[0]} .*: sees 2 GPUs, has [1-9][0-9]* queues and "
checks 0 "^ok +pid ${job_pids[1]} .*: sees 2 GPUs"
checks 0 '^ok +images: .* MiB free, and up to [1-9]' --images-dir "$work"
checks 0 '^ok +dump: .* queues were stopped for [0-9.]+ s'
checks 0 '^would be dumped'
expect_unharmed
for ms in 20 40 60 80 100 150 200 300; do
	{ timeout -s KILL "0.$(printf %03d $ms)" "$top/build/amdgpu-checkpoint" check "${job_pids[0]}" >/dev/null || true; } 2>/dev/null
done
expect_unharmed
job_comes_back
checks 0 '^would be dumped'
job_end

refused 'has anon_inode:kfd_smi_ev open, which cannot be saved' --extra smi
refused 'has /dev/cpu_dma_latency open, which cannot be saved. criu saves it only with a plugin' --extra misc
refused '.* the process has no /dev/kfd open' --extra lent
refused '.* of /dev/kfd is incomplete: 4096 bytes from ' --extra bells
refused '.* does not begin where its buffer does' --extra hole
refused '.* has renderD.* open and not /dev/kfd, and the file is in use: 1 contexts' --extra drawing
case $(uname -r) in
6.12.*) refused '.* holds 1 buffers of the render node itself' --extra gem ;;
*) refused '.* has a second KFD context' --extra context ;;
esac
